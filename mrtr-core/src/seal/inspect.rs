//! Looking at a token without accepting it: for people who ask why a state was refused.
//!
//! Nothing here may decide anything. What [`inspect`] shows anyone could have written; what
//! [`inspect_with`] shows is authentic but may be expired, or someone else's.

use alloc::vec::Vec;

use subtle::ConstantTimeEq as _;
use zeroize::Zeroizing;

use super::{
    binding::{self, Principal},
    claims::Claims,
    envelope::{self, Head, VERSION},
    key::{KeyId, Purpose},
    ring::{DerivedRing, KeyRing},
    suite::{self, Suite},
    text,
    token::{FIXED, State, keep},
    verdict::Verdict,
};

/// The longest token that is looked at, in characters.
const LIMIT: usize = 4 << 20;

/// What a token shows without a key.
#[derive(Clone)]
#[non_exhaustive]
pub struct Visible {
    /// The format's version.
    pub version: u8,
    /// The suite's name.
    pub suite: &'static str,
    /// The key that it claims to be sealed under.
    pub key: KeyId,
    /// Characters of the token.
    pub characters: usize,
    /// Bytes of the payload.
    pub payload_bytes: usize,
    /// Claims and payload, where the suite leaves them readable. **Unverified**: anyone can write them.
    pub unverified: Option<(Claims, Vec<u8>)>,
}

/// Shows neither the payload nor what it could be guessed from.
impl core::fmt::Debug for Visible {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Visible")
            .field("version", &self.version)
            .field("suite", &self.suite)
            .field("key", &self.key)
            .field("characters", &self.characters)
            .field("payload_bytes", &self.payload_bytes)
            .field("unverified", &self.unverified.as_ref().map(|(claims, _)| claims))
            .finish()
    }
}

/// What a token shows to whoever has the keys.
#[derive(Clone)]
#[non_exhaustive]
pub struct Inspected {
    /// What it shows without.
    pub visible: Visible,
    /// What it says of itself; compare its times with the clock.
    pub claims: Claims,
    /// What was sealed.
    pub payload: Zeroizing<Vec<u8>>,
    /// Whether it was sealed for [`Expected::audience`]; `None` if that was not given.
    pub same_audience: Option<bool>,
    /// Whether it was sealed for [`Expected::principal`].
    pub same_principal: Option<bool>,
    /// Whether it was sealed for [`Expected::request`].
    pub same_request: Option<bool>,
}

impl core::fmt::Debug for Inspected {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Inspected")
            .field("visible", &self.visible)
            .field("claims", &self.claims)
            .field("payload", &format_args!("{} bytes", self.payload.len()))
            .field("same_audience", &self.same_audience)
            .field("same_principal", &self.same_principal)
            .field("same_request", &self.same_request)
            .finish()
    }
}

/// What a state is compared with; what is not known stays out.
#[derive(Clone, Copy, Default)]
pub struct Expected<'a> {
    /// The server's audience.
    pub audience: Option<&'a str>,
    /// Who would send it.
    pub principal: Option<Principal<'a>>,
    /// The digest of the request that would carry it.
    pub request: Option<&'a [u8; 32]>,
}

impl core::fmt::Debug for Expected<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Expected")
            .field("audience", &self.audience)
            .field("principal", &self.principal)
            .finish_non_exhaustive()
    }
}

/// Why a token shows nothing, or not more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InspectError {
    /// Too long to be looked at.
    #[error("more than {LIMIT} characters")]
    TooLarge,
    /// Not canonical base64url without padding.
    #[error("not base64url in its canonical form without padding")]
    Text,
    /// Of another version.
    #[error("format version {0}, of which nothing is known here")]
    Version(u8),
    /// Of a suite that does not exist or is not compiled in.
    #[error("suite {0}, which is not known here")]
    Suite(u8),
    /// Too short to be a state.
    #[error("{0} bytes are too few for a state")]
    Short(usize),
    /// Sealed under a key that is not in the ring.
    #[error("sealed under the key {0}, which is not in the ring")]
    UnknownKey(KeyId),
    /// Changed, made without the key, or not a state but a ticket.
    #[error("changed, or made without the key {0}")]
    Unauthentic(KeyId),
    /// Authentic, but what it says contradicts itself.
    #[error("authentic, but its claims contradict each other")]
    Claims,
}

/// What `token` shows without a key. Verifies nothing.
///
/// # Errors
///
/// [`InspectError`] if it is not a state of this format.
pub fn inspect(token: &str) -> Result<Visible, InspectError> {
    decode(token).map(|(visible, ..)| visible)
}

/// What `token` shows with the keys of `ring`, whatever its suite, and which of its bound parts are as `expected`.
///
/// # Errors
///
/// [`InspectError`] if it is not a state of this format, sealed under one of these keys and unchanged.
pub fn inspect_with(ring: &KeyRing, token: &str, expected: &Expected<'_>) -> Result<Inspected, InspectError> {
    let (visible, suite, mut bytes) = decode(token)?;
    let ring = DerivedRing::new(ring, suite);
    let opening = envelope::open(&ring, Purpose::State, &[], FIXED, &mut bytes).map_err(|refused| {
        if refused.verdict == Verdict::UnknownKey {
            InspectError::UnknownKey(visible.key)
        } else {
            InspectError::Unauthentic(visible.key)
        }
    })?;
    let (keys, nonce) = (opening.keys, &opening.nonce);
    let State { claims, bound } = State::read(&bytes, &opening).ok_or(InspectError::Claims)?;
    let same_audience = expected
        .audience
        .map(|audience| bound.audience.ct_eq(&binding::audience_tag(keys, nonce, audience)).into());
    let same_principal = expected
        .principal
        .map(|principal| bound.principal.ct_eq(&binding::principal_tag(keys, nonce, principal)).into());
    let same_request = expected
        .request
        .map(|request| bound.request.ct_eq(&binding::request_tag(keys, nonce, request)).into());
    let payload = keep(bytes, &opening, FIXED);
    Ok(Inspected { visible, claims, payload, same_audience, same_principal, same_request })
}

fn decode(token: &str) -> Result<(Visible, &'static Suite, Zeroizing<Vec<u8>>), InspectError> {
    let bytes = text::decode(token, LIMIT).map_err(|verdict| {
        if verdict == Verdict::TooLarge { InspectError::TooLarge } else { InspectError::Text }
    })?;
    let short = InspectError::Short(bytes.len());
    let version = *bytes.first().ok_or(short)?;
    if version != VERSION {
        return Err(InspectError::Version(version));
    }
    let head = Head::read(&bytes).ok_or(short)?;
    let suite = suite::by_id(head.suite).ok_or(InspectError::Suite(head.suite))?;
    let payload_bytes = bytes.len().checked_sub(Head::BYTES + FIXED + suite.tag_bytes).ok_or(short)?;
    let unverified = suite.readable.then(|| {
        let (_, body) = bytes.split_at_checked(Head::BYTES)?;
        let (_, payload) = body.split_at_checked(FIXED)?;
        Some((State::read_body(body)?.claims, payload.get(..payload_bytes)?.to_vec()))
    });
    let visible = Visible {
        version,
        suite: suite.name,
        key: head.key,
        characters: token.len(),
        payload_bytes,
        unverified: unverified.flatten(),
    };
    Ok((visible, suite, bytes))
}
