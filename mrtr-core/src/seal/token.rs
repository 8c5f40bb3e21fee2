//! States: claims, bound tags and payload behind one seal, as text.

use alloc::{string::String, vec::Vec};

use zeroize::Zeroizing;

use super::{
    Sealer,
    binding::{Binding, Bound},
    claims::{Claims, NewClaims},
    envelope::{self, Opening},
    key::{KeyId, Purpose},
    text,
    verdict::{Refused, SealError, Verdict},
};
use crate::{Entropy, Timestamp};

/// The body of a state without payload: claims 38, bound tags 48.
pub(super) const FIXED: usize = Claims::BYTES + Bound::BYTES;

impl Sealer {
    /// Seals a state: `claims` and `payload`, bound to this sealer's audience and to `binding`.
    ///
    /// Two calls never give the same token, not even with one `entropy`. What comes out, [`open`](Self::open)
    /// accepts with the same binding until it expires.
    ///
    /// # Errors
    ///
    /// A limit that would make the state useless: its size, the deadline, a count.
    pub fn seal(
        &self,
        claims: &NewClaims,
        payload: &[u8],
        binding: &Binding<'_>,
        now: Timestamp,
        entropy: &Entropy,
    ) -> Result<String, SealError> {
        let write = |body: &mut Vec<u8>| body.extend_from_slice(payload);
        self.seal_with(claims, payload.len(), write, binding, now, entropy)
            .map(|sealed| text::encode(&sealed.0))
    }

    /// [`seal`](Self::seal) for a payload of `payload_bytes` bytes that `payload` appends, so that it never lies
    /// anywhere but where it is sealed.
    pub(crate) fn seal_with(
        &self,
        claims: &NewClaims,
        payload_bytes: usize,
        payload: impl FnOnce(&mut Vec<u8>),
        binding: &Binding<'_>,
        now: Timestamp,
        entropy: &Entropy,
    ) -> Result<Sealed, SealError> {
        let claims = Claims::at(claims, claims.ttl.unwrap_or(self.ttl), now, self.caps)?;
        let body_bytes = FIXED + payload_bytes;
        let ring = self.current.get();
        let size = text::text_len(envelope::sealed_len(&ring, body_bytes));
        if size > self.max_token {
            return Err(SealError::TooLarge { size, limit: self.max_token });
        }
        let nonce = entropy.nonce();
        let sealed = envelope::seal(&ring, Purpose::State, &[], nonce, body_bytes, |keys, body| {
            claims.write(body);
            Bound::new(keys, &nonce, &self.audience, binding).write(body);
            payload(body);
        });
        sealed.map(Sealed).map_err(|_| SealError::TooLongForCipher)
    }

    /// Until when a state with these claims, sealed now, is good: the earlier of `now` + TTL and the deadline.
    #[must_use]
    pub fn expiry(&self, claims: &NewClaims, now: Timestamp) -> Timestamp {
        now.saturating_add(claims.ttl.unwrap_or(self.ttl).get()).min(claims.deadline)
    }

    /// Opens a state that came from a peer, who may have made it up.
    ///
    /// Does not allocate for a token that is too long. May be called again with the same token: single use is the
    /// ledger's (R-075, G-28).
    ///
    /// # Errors
    ///
    /// [`Refused`] with the first [`Verdict`] that applies, in their order.
    pub fn open(&self, token: &str, binding: &Binding<'_>, now: Timestamp) -> Result<Opened, Refused> {
        let mut bytes = text::decode(token, self.max_token).map_err(|verdict| Refused::new(verdict, None))?;
        let ring = self.current.get();
        let opening = envelope::open(&ring, Purpose::State, &[], FIXED, &mut bytes)?;
        let key = opening.keys.id;
        let malformed = Refused::new(Verdict::Malformed, Some(key));
        let State { claims, bound } = State::read(&bytes, &opening).ok_or(malformed)?;
        let refused = |verdict| Refused::authentic(verdict, key, &claims, now);
        if !claims.within(self.caps) {
            return Err(refused(Verdict::Malformed));
        }
        if claims.issued > now.saturating_add(self.skew) {
            return Err(refused(Verdict::NotYetValid));
        }
        let expired = now >= claims.expires;
        if expired && !(self.soft_expiry && now < claims.deadline) {
            return Err(refused(Verdict::Expired));
        }
        let expected = Bound::new(opening.keys, &opening.nonce, &self.audience, binding);
        if let Err(other) = bound.compare(&expected) {
            // Soft expiry forgives expiry where it is the only fault.
            return Err(refused(if expired { Verdict::Expired } else { other }));
        }
        let payload = keep(bytes, &opening, FIXED);
        Ok(Opened { claims, payload, key, by_retired_key: key != ring.minting.id, expired })
    }
}

/// A sealed state that is not text yet.
pub(crate) struct Sealed(Vec<u8>);

impl Sealed {
    /// Characters of the token.
    pub(crate) fn text_len(&self) -> usize {
        text::text_len(self.0.len())
    }

    /// Appends the token. No character of it needs an escape in JSON.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        text::append(&self.0, out);
    }
}

/// A state that was opened.
///
/// It is authentic, bound to the caller and this request, and (unless [`expired`](Self::expired)) in time. That is
/// not a permission: what the caller may do is checked anew each round (G-51). `Debug` does not show the payload.
#[derive(Clone)]
#[non_exhaustive]
pub struct Opened {
    /// What the state says of itself.
    pub claims: Claims,
    /// What was sealed, byte for byte; wiped when dropped.
    pub payload: Zeroizing<Vec<u8>>,
    /// The key that it was sealed under.
    pub key: KeyId,
    /// That key is not the one that mints here. Once all replicas mint with the new one, this tells that the old
    /// one is still needed.
    pub by_retired_key: bool,
    /// Past its expiry but before the exchange's deadline; only with [`Sealer::soft_expiry`].
    pub expired: bool,
}

impl core::fmt::Debug for Opened {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Opened")
            .field("claims", &self.claims)
            .field("payload", &format_args!("{} bytes", self.payload.len()))
            .field("key", &self.key)
            .field("by_retired_key", &self.by_retired_key)
            .field("expired", &self.expired)
            .finish()
    }
}

/// What stands before the payload.
pub(super) struct State {
    pub(super) claims: Claims,
    pub(super) bound: Bound,
}

impl State {
    pub(super) fn read(bytes: &[u8], opening: &Opening<'_>) -> Option<Self> {
        Self::read_body(bytes.get(opening.body.clone())?)
    }

    pub(super) fn read_body(body: &[u8]) -> Option<Self> {
        let (claims, rest) = body.split_first_chunk()?;
        let (bound, _) = rest.split_first_chunk()?;
        Some(Self { claims: Claims::read(claims)?, bound: Bound::read(bound)? })
    }
}

/// What follows the first `skip` bytes of the body, in the allocation that it was opened in.
pub(super) fn keep(mut bytes: Zeroizing<Vec<u8>>, opening: &Opening<'_>, skip: usize) -> Zeroizing<Vec<u8>> {
    bytes.truncate(opening.body.end);
    bytes.drain(..(opening.body.start + skip).min(opening.body.end));
    bytes
}
