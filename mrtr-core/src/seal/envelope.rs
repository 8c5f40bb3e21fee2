//! The sealed bytes: version ‖ suite ‖ key id ‖ nonce ‖ body ‖ tag. States, tickets and blobs share them.

use alloc::{borrow::Cow, vec::Vec};
use core::ops::Range;

use super::{
    key::{KeyId, Keys, Purpose},
    ring::DerivedRing,
    suite::{Nonce, TooLong},
    verdict::{Refused, Verdict},
};

/// The version of the format. Whoever changes a byte of it changes this too.
pub(super) const VERSION: u8 = 1;

/// What every authenticated input starts with.
const DOMAIN: &[u8] = b"mrtr/v1";

/// What stands before the body: version 1, suite 1, key id 4, nonce 24.
#[derive(Clone, Copy)]
pub(super) struct Head {
    pub(super) version: u8,
    pub(super) suite: u8,
    pub(super) key: KeyId,
    pub(super) nonce: Nonce,
}

impl Head {
    pub(super) const BYTES: usize = 30;

    /// Domain ‖ head.
    fn bytes(&self) -> [u8; DOMAIN.len() + Self::BYTES] {
        let mut bytes = [0; DOMAIN.len() + Self::BYTES];
        let mut rest = bytes.as_mut_slice();
        for part in [DOMAIN, &[self.version, self.suite], self.key.as_bytes(), &self.nonce] {
            let Some((place, after)) = rest.split_at_mut_checked(part.len()) else { break };
            place.copy_from_slice(part);
            rest = after;
        }
        bytes
    }

    /// `None` if `bytes` is shorter than a head.
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        let ([version, suite], rest) = bytes.split_first_chunk()?;
        let (key, rest) = rest.split_first_chunk()?;
        let (nonce, _) = rest.split_first_chunk()?;
        Some(Self { version: *version, suite: *suite, key: KeyId(*key), nonce: *nonce })
    }
}

/// What is authenticated beside the body: domain ‖ head ‖ extra. What `extra` holds must be readable in one way only.
fn authenticated<'h>(head: &'h [u8], extra: &[&[u8]]) -> Cow<'h, [u8]> {
    if extra.is_empty() { Cow::Borrowed(head) } else { Cow::Owned([&[head], extra].concat().concat()) }
}

/// The size of what [`seal`] makes of a body of `body` bytes.
pub(super) const fn sealed_len(ring: &DerivedRing, body: usize) -> usize {
    Head::BYTES + body + ring.suite.tag_bytes
}

/// Seals what `body` writes (`body_bytes` bytes) under the minting key; also authenticates `extra`.
pub(super) fn seal(
    ring: &DerivedRing,
    purpose: Purpose,
    extra: &[&[u8]],
    nonce: Nonce,
    body_bytes: usize,
    body: impl FnOnce(&Keys, &mut Vec<u8>),
) -> Result<Vec<u8>, TooLong> {
    let keys = &ring.minting;
    let head = Head { version: VERSION, suite: ring.suite.id, key: keys.id, nonce };
    let head = head.bytes();
    let mut sealed = Vec::with_capacity(sealed_len(ring, body_bytes));
    sealed.extend_from_slice(head.get(DOMAIN.len()..).unwrap_or_default());
    body(keys, &mut sealed);
    debug_assert_eq!(sealed.len(), Head::BYTES + body_bytes);
    keys.cipher(purpose).seal(&nonce, &authenticated(&head, extra), &mut sealed, Head::BYTES)?;
    keys.counts.sealed();
    Ok(sealed)
}

/// What [`open`] found.
pub(super) struct Opening<'r> {
    pub(super) keys: &'r Keys,
    pub(super) nonce: Nonce,
    /// Where the body lies in the bytes that were opened.
    pub(super) body: Range<usize>,
}

/// Opens `sealed` where it lies. A body shorter than `least` bytes is malformed.
pub(super) fn open<'r>(
    ring: &'r DerivedRing,
    purpose: Purpose,
    extra: &[&[u8]],
    least: usize,
    sealed: &mut [u8],
) -> Result<Opening<'r>, Refused> {
    let malformed = Refused::new(Verdict::Malformed, None);
    let head = Head::read(sealed).ok_or(malformed)?;
    if head.version != VERSION || head.suite != ring.suite.id {
        return Err(malformed);
    }
    let malformed = Refused::new(Verdict::Malformed, Some(head.key));
    let body_bytes = sealed
        .len()
        .checked_sub(Head::BYTES + ring.suite.tag_bytes)
        .filter(|&bytes| bytes >= least)
        .ok_or(malformed)?;
    let (_, body_and_tag) = sealed.split_at_mut_checked(Head::BYTES).ok_or(malformed)?;
    let (body, tag) = body_and_tag.split_at_mut_checked(body_bytes).ok_or(malformed)?;
    let keys = ring.find(head.key).ok_or(Refused::new(Verdict::UnknownKey, Some(head.key)))?;
    keys.cipher(purpose)
        .open(&head.nonce, &authenticated(&head.bytes(), extra), body, tag)
        .map_err(|_| Refused::new(Verdict::Unauthentic, Some(head.key)))?;
    keys.counts.opened(keys.id == ring.minting.id);
    Ok(Opening { keys, nonce: head.nonce, body: Head::BYTES..Head::BYTES + body_bytes })
}
