//! The one table of decisions: what an entry means to somebody who looks at it.

use alloc::vec::Vec;

use super::{
    AnswersDigest, Key, Once, Policy,
    entry::{Done, Entry, Held, Lost, Phase},
};
use crate::time::Timestamp;

/// One copy of a retry: what it wants to use, and with what.
///
/// The claim stands after every check that needs no handler (authenticity, binding, expiry, the structure of
/// the answers) and before the handler: what is refused earlier consumes nothing (B1).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Retry {
    /// The state it brings.
    pub key: Key,
    /// The effective answers it brings.
    pub digest: AnswersDigest,
    /// The last moment at which any replica accepts this state. Nothing is claimed later, and entries are kept
    /// until then.
    pub expires: Timestamp,
    /// When nobody waits for the reply any more, if that is known (B4).
    pub deadline: Option<Timestamp>,
}

impl Retry {
    /// A retry without a deadline of its own.
    #[must_use]
    pub const fn new(key: Key, digest: AnswersDigest, expires: Timestamp) -> Self {
        Self { key, digest, expires, deadline: None }
    }

    /// When a store may forget `entry`, written now. A held entry outlives its lease, however long its run
    /// takes.
    pub(super) fn kept_until(&self, policy: &Policy, now: Timestamp, entry: Option<&Entry>) -> Timestamp {
        let held = match entry {
            Some(Entry::Held(held)) => held.lease_until.saturating_add(policy.skew),
            Some(Entry::Done(_) | Entry::Lost(_)) | None => now,
        };
        self.expires.max(held).saturating_add(policy.retention)
    }
}

/// What an entry means to one claim or run.
pub(super) enum Standing {
    /// Nobody uses the state.
    Free,
    /// Held by whoever looks, lease or no lease.
    Mine(Held),
    /// Held with the same answers under a lease that has not run out.
    Live(Held),
    /// The lease ran out before a commit began, and the state may be used again, with any answers (B6).
    Abandoned(Held),
    /// The lease ran out and nobody can know how far the run came: to be marked lost (B6).
    Dead(Held),
    /// Ended with the same answers.
    Done { sealed: Option<Vec<u8>>, mine: bool },
    /// Lost with the same answers.
    Lost { mine: bool },
    /// Used with other answers (B2).
    OtherAnswers,
    /// Not an entry of this version.
    Unreadable,
}

/// Judges what a store holds under the key of `retry`, as seen by `owner` at `now`.
pub(super) fn judge(
    current: Option<&[u8]>,
    retry: &Retry,
    owner: &[u8; 16],
    policy: &Policy,
    now: Timestamp,
) -> Standing {
    let Some(bytes) = current else {
        return Standing::Free;
    };
    let Ok(entry) = Entry::decode(bytes) else {
        return Standing::Unreadable;
    };
    let mine = entry.owner() == owner;
    let same = *entry.digest() == retry.digest;
    match entry {
        Entry::Held(held) if mine && same => Standing::Mine(held),
        Entry::Held(held) => {
            let over = now >= held.lease_until.saturating_add(policy.skew);
            let again = held.phase == Phase::Running
                && held.once == Once::AtLeastOnce
                && policy.once == Once::AtLeastOnce;
            match (over, again, same) {
                (true, true, _) => Standing::Abandoned(held),
                (_, _, false) => Standing::OtherAnswers,
                (true, false, true) => Standing::Dead(held),
                (false, _, true) => Standing::Live(held),
            }
        }
        Entry::Done(_) | Entry::Lost(_) if !same => Standing::OtherAnswers,
        Entry::Done(Done { sealed, .. }) => Standing::Done { sealed, mine },
        Entry::Lost(Lost { .. }) => Standing::Lost { mine },
    }
}
