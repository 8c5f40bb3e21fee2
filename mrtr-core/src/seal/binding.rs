//! What a state is bound to: it is refused anywhere else, from anyone else, on any other request.

use alloc::vec::Vec;

use hmac::Mac as _;
use subtle::{Choice, ConstantTimeEq as _};

use super::{key::Keys, suite::Nonce, verdict::Verdict};

/// Who is at the other end, as the embedder has verified it.
///
/// Never token text, which changes when it is refreshed (B-16), nor anything out of the message (B-14).
/// `Debug` does not show who it is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Principal<'a> {
    /// Nobody was authenticated. All anonymous callers are one: there is nothing to tell them apart (B-15).
    Anonymous,
    /// A stable name, for instance issuer and subject (G-10). An empty one is not [`Anonymous`](Self::Anonymous).
    Authenticated(&'a [u8]),
}

impl core::fmt::Debug for Principal<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::Anonymous => "Anonymous",
            Self::Authenticated(_) => "Authenticated(..)",
        })
    }
}

/// What a state is bound to beside the sealer's audience.
///
/// `Debug` does not show the digest: it would let one guess the arguments.
#[derive(Clone, Copy)]
pub struct Binding<'a> {
    /// Who sent the request.
    pub principal: Principal<'a>,
    /// Digest of the request's method, target and arguments (R-074, G-09, B-12).
    pub request: &'a [u8; 32],
}

impl core::fmt::Debug for Binding<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Binding").field("principal", &self.principal).finish_non_exhaustive()
    }
}

/// Bytes of one bound tag.
pub(super) const TAG: usize = 16;

/// HMAC-SHA256(bind key, label ‖ nonce ‖ length of value ‖ value), the first 16 bytes.
///
/// Keyed, so that a readable state does not let anyone guess the principal; with the nonce, so that two states of
/// one person do not show that they are. No label is the beginning of another and the nonce's size is fixed, so
/// the input can be read in one way only.
fn tag(keys: &Keys, label: &str, nonce: &Nonce, value: &[&[u8]]) -> [u8; TAG] {
    let mut mac = keys.bind.clone();
    mac.update(label.as_bytes());
    mac.update(nonce);
    mac.update(&length(value.iter().map(|part| part.len()).sum()));
    for part in value {
        mac.update(part);
    }
    let full: [u8; 32] = mac.finalize().into_bytes().into();
    let [tag @ .., _, _, _, _, _, _, _, _, _, _, _, _, _, _, _, _] = full;
    tag
}

/// A length as it stands wherever one is authenticated: 64 bits, big-endian.
pub(super) const fn length(bytes: usize) -> [u8; 8] {
    (bytes as u64).to_be_bytes()
}

pub(super) fn audience_tag(keys: &Keys, nonce: &Nonce, audience: &str) -> [u8; TAG] {
    tag(keys, "audience", nonce, &[audience.as_bytes()])
}

pub(super) fn principal_tag(keys: &Keys, nonce: &Nonce, principal: Principal<'_>) -> [u8; TAG] {
    match principal {
        Principal::Anonymous => tag(keys, "principal", nonce, &[&[0]]),
        Principal::Authenticated(name) => tag(keys, "principal", nonce, &[&[1], &length(name.len()), name]),
    }
}

pub(super) fn request_tag(keys: &Keys, nonce: &Nonce, request: &[u8; 32]) -> [u8; TAG] {
    tag(keys, "request", nonce, &[request])
}

/// The three tags of a state, in the order in which they are sealed.
#[derive(Clone, Copy)]
pub(super) struct Bound {
    pub(super) audience: [u8; TAG],
    pub(super) principal: [u8; TAG],
    pub(super) request: [u8; TAG],
}

impl Bound {
    pub(super) const BYTES: usize = 3 * TAG;

    pub(super) fn new(keys: &Keys, nonce: &Nonce, audience: &str, binding: &Binding<'_>) -> Self {
        Self {
            audience: audience_tag(keys, nonce, audience),
            principal: principal_tag(keys, nonce, binding.principal),
            request: request_tag(keys, nonce, binding.request),
        }
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.audience);
        out.extend_from_slice(&self.principal);
        out.extend_from_slice(&self.request);
    }

    pub(super) fn read(bytes: &[u8; Self::BYTES]) -> Option<Self> {
        let (audience, rest) = bytes.split_first_chunk()?;
        let (principal, request) = rest.split_first_chunk()?;
        Some(Self { audience: *audience, principal: *principal, request: request.try_into().ok()? })
    }

    /// The first part that differs. All three are compared, in constant time, before any is looked at.
    pub(super) fn compare(&self, expected: &Self) -> Result<(), Verdict> {
        let audience = self.audience.ct_eq(&expected.audience);
        let principal = self.principal.ct_eq(&expected.principal);
        let request = self.request.ct_eq(&expected.request);
        let differs = |same: Choice| !bool::from(same);
        if differs(audience) {
            Err(Verdict::OtherAudience)
        } else if differs(principal) {
            Err(Verdict::OtherPrincipal)
        } else if differs(request) {
            Err(Verdict::OtherRequest)
        } else {
            Ok(())
        }
    }
}
