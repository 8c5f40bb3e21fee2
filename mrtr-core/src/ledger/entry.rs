//! What a store keeps under a [`Key`](super::Key): a small versioned binary record.
//!
//! ```text
//! version 1 ‖ tag ‖ digest 32 ‖ owner 16 ‖
//!   Running 1, Committing 2:  once ‖ lease until 8 ‖ count ‖ count × (waiter 8 ‖ until 8)
//!   Done 3:                   0, or 1 ‖ length 4 ‖ sealed reply
//!   Lost 4:                   nothing
//! ```
//!
//! Integers are big-endian, times are milliseconds since the Unix epoch. One record has one encoding, and
//! bytes left over are refused, so that equal records are equal bytes for the compare-and-set.

use alloc::vec::Vec;
use core::fmt;

use super::{AnswersDigest, Once};
use crate::time::Timestamp;

const VERSION: u8 = 1;
const RUNNING: u8 = 1;
const COMMITTING: u8 = 2;
const DONE: u8 = 3;
const LOST: u8 = 4;

/// Waiters that one record can name.
pub(super) const MAX_WAITERS: usize = 16;

/// A record longer than this is not one of ours: the longest reply kept (4 MiB) and room for its seal.
const MAX_BYTES: usize = (4 << 20) + (16 << 10);

/// What a state has been used for. A state without an entry is free.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Entry {
    /// A run holds it.
    Held(Held),
    /// A run has ended with a reply.
    Done(Done),
    /// A run began and nobody knows how it ended (B6).
    Lost(Lost),
}

/// How far the run has come that holds an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums)]
pub enum Phase {
    /// The handler may have started.
    Running,
    /// A commit may have started.
    Committing,
}

/// A run's claim.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Held {
    /// How far it has come.
    pub phase: Phase,
    /// The policy of the run; see [`Policy`](super::Policy) on how two policies meet.
    pub once: Once,
    /// What it answers with.
    pub digest: AnswersDigest,
    /// Drawn anew by each claim: tells a run whether a compare-and-set whose reply was lost was its own.
    pub owner: [u8; 16],
    /// Until when the claim holds, on the clock of its run.
    pub lease_until: Timestamp,
    /// Other copies of the same retry that wait for its end (B4).
    pub waiters: Vec<Waiter>,
}

/// One copy of a retry that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Waiter {
    /// Drawn anew by each claim.
    pub id: [u8; 8],
    /// When its place is free again, whatever became of it.
    pub until: Timestamp,
}

/// A run's end.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Done {
    /// What it answered with.
    pub digest: AnswersDigest,
    /// The run that ended.
    pub owner: [u8; 16],
    /// The sealed reply; `None` if it was too large to keep.
    pub sealed: Option<Vec<u8>>,
}

/// A run whose end is not known.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Lost {
    /// What it answered with.
    pub digest: AnswersDigest,
    /// The run.
    pub owner: [u8; 16],
}

/// Bytes in a store are not an entry that this version reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a ledger entry of version 1")]
pub struct Malformed;

impl Entry {
    /// What it answers with.
    #[must_use]
    pub const fn digest(&self) -> &AnswersDigest {
        match self {
            Self::Held(held) => &held.digest,
            Self::Done(done) => &done.digest,
            Self::Lost(lost) => &lost.digest,
        }
    }

    /// The run that wrote it.
    #[must_use]
    pub const fn owner(&self) -> &[u8; 16] {
        match self {
            Self::Held(held) => &held.owner,
            Self::Done(done) => &done.owner,
            Self::Lost(lost) => &lost.owner,
        }
    }

    /// The bytes for the store.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let sealed = match self {
            Self::Done(done) => done.sealed.as_ref().map_or(0, Vec::len),
            Self::Held(_) | Self::Lost(_) => 0,
        };
        let mut out = Vec::with_capacity(64 + sealed);
        out.push(VERSION);
        out.push(match self {
            Self::Held(Held { phase: Phase::Running, .. }) => RUNNING,
            Self::Held(Held { phase: Phase::Committing, .. }) => COMMITTING,
            Self::Done(_) => DONE,
            Self::Lost(_) => LOST,
        });
        out.extend_from_slice(self.digest().as_bytes());
        out.extend_from_slice(self.owner());
        match self {
            Self::Held(held) => {
                out.push(match held.once {
                    Once::AtLeastOnce => 0,
                    Once::AtMostOnce => 1,
                });
                out.extend_from_slice(&held.lease_until.as_unix_millis().to_be_bytes());
                // Whoever adds a waiter checks the bound; a longer list would not be read back.
                out.push(u8::try_from(held.waiters.len()).unwrap_or(u8::MAX));
                for waiter in &held.waiters {
                    out.extend_from_slice(&waiter.id);
                    out.extend_from_slice(&waiter.until.as_unix_millis().to_be_bytes());
                }
            }
            Self::Done(Done { sealed: None, .. }) => out.push(0),
            Self::Done(Done { sealed: Some(sealed), .. }) => {
                out.push(1);
                out.extend_from_slice(&u32::try_from(sealed.len()).unwrap_or(u32::MAX).to_be_bytes());
                out.extend_from_slice(sealed);
            }
            Self::Lost(_) => {}
        }
        out
    }

    /// Reads what a store holds.
    ///
    /// # Errors
    ///
    /// [`Malformed`] for another version, an unknown tag, a count over 16, a length that is not exactly what
    /// follows, or more than 4 MiB and 16 KiB.
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        if bytes.len() > MAX_BYTES {
            return Err(Malformed);
        }
        let mut rest = Reader(bytes);
        if rest.byte()? != VERSION {
            return Err(Malformed);
        }
        let tag = rest.byte()?;
        let digest = AnswersDigest::from_bytes(rest.take()?);
        let owner = rest.take()?;
        let entry = match tag {
            RUNNING | COMMITTING => {
                let phase = if tag == RUNNING { Phase::Running } else { Phase::Committing };
                let once = match rest.byte()? {
                    0 => Once::AtLeastOnce,
                    1 => Once::AtMostOnce,
                    _ => return Err(Malformed),
                };
                let lease_until = rest.time()?;
                let count = usize::from(rest.byte()?);
                if count > MAX_WAITERS {
                    return Err(Malformed);
                }
                let mut waiters = Vec::with_capacity(count);
                for _ in 0..count {
                    waiters.push(Waiter { id: rest.take()?, until: rest.time()? });
                }
                Self::Held(Held { phase, once, digest, owner, lease_until, waiters })
            }
            DONE => {
                let sealed = match rest.byte()? {
                    0 => None,
                    1 => {
                        let length = u32::from_be_bytes(rest.take()?);
                        if usize::try_from(length) != Ok(rest.0.len()) {
                            return Err(Malformed);
                        }
                        Some(core::mem::take(&mut rest.0).to_vec())
                    }
                    _ => return Err(Malformed),
                };
                Self::Done(Done { digest, owner, sealed })
            }
            LOST => Self::Lost(Lost { digest, owner }),
            _ => return Err(Malformed),
        };
        if rest.0.is_empty() { Ok(entry) } else { Err(Malformed) }
    }
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (head, rest) = self.0.split_first_chunk::<N>().ok_or(Malformed)?;
        self.0 = rest;
        Ok(*head)
    }

    fn byte(&mut self) -> Result<u8, Malformed> {
        self.take::<1>().map(|[byte]| byte)
    }

    fn time(&mut self) -> Result<Timestamp, Malformed> {
        self.take().map(|bytes| Timestamp::from_unix_millis(u64::from_be_bytes(bytes)))
    }
}

/// Shows the state and sizes, never digests or replies.
impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Held(held) => held.fmt(f),
            Self::Done(done) => done.fmt(f),
            Self::Lost(lost) => lost.fmt(f),
        }
    }
}

/// Shows neither digest nor owner.
impl fmt::Debug for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Held")
            .field("phase", &self.phase)
            .field("once", &self.once)
            .field("lease_until", &self.lease_until)
            .field("waiters", &self.waiters.len())
            .finish_non_exhaustive()
    }
}

/// Shows the length of the sealed reply.
impl fmt::Debug for Done {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Done")
            .field("sealed_bytes", &self.sealed.as_ref().map(Vec::len))
            .finish_non_exhaustive()
    }
}

/// Shows nothing but its name.
impl fmt::Debug for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Lost")
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    fn samples() -> [Entry; 6] {
        let digest = AnswersDigest::from_bytes([3; 32]);
        let owner = [9; 16];
        let held = |phase, once, waiters| {
            let lease_until = Timestamp::from_unix_millis(0x0102_0304);
            Entry::Held(Held { phase, once, digest, owner, lease_until, waiters })
        };
        let waiter = Waiter { id: [5; 8], until: Timestamp::from_unix_millis(u64::MAX) };
        [
            held(Phase::Running, Once::AtLeastOnce, vec![]),
            held(Phase::Running, Once::AtMostOnce, vec![waiter; MAX_WAITERS]),
            held(Phase::Committing, Once::AtLeastOnce, vec![waiter]),
            Entry::Done(Done { digest, owner, sealed: None }),
            Entry::Done(Done { digest, owner, sealed: Some(vec![1, 2, 3]) }),
            Entry::Lost(Lost { digest, owner }),
        ]
    }

    #[test]
    fn one_record_has_one_encoding() {
        for entry in samples() {
            assert_eq!(Entry::decode(&entry.encode()), Ok(entry));
        }
    }

    #[test]
    fn every_truncation_and_every_byte_more_is_refused() {
        for entry in samples() {
            let mut bytes = entry.encode();
            for end in 0..bytes.len() {
                assert_eq!(Entry::decode(&bytes[..end]), Err(Malformed), "{entry:?} cut at {end}");
            }
            bytes.push(0);
            assert_eq!(Entry::decode(&bytes), Err(Malformed));
        }
    }

    #[test]
    fn other_versions_tags_and_counts_are_refused() {
        let bytes = samples()[0].encode();
        for (at, wrong) in [(0, 0), (0, 2), (1, 0), (1, 5), (50, 2), (59, 17)] {
            let mut bytes = bytes.clone();
            bytes[at] = wrong;
            assert_eq!(Entry::decode(&bytes), Err(Malformed), "byte {at} = {wrong}");
        }
        assert_eq!(Entry::decode(&vec![1; MAX_BYTES + 1]), Err(Malformed));
    }

    /// The memory store counts on it: what ends a run never needs more room than the run had.
    #[test]
    fn an_end_without_a_reply_is_no_longer_than_a_claim() {
        let [running, .., lost] = samples().map(|entry| entry.encode().len());
        let done = samples()[3].encode().len();
        assert_eq!((running, done, lost), (60, 51, 50));
    }
}
