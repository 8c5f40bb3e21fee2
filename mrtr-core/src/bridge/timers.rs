//! Deadlines, each with whom it concerns.

use alloc::collections::BTreeSet;

use super::{HostId, LinkId};
use crate::time::Timestamp;

/// Whom a deadline concerns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Whom {
    Parked(u64),
    Dialogue(u64),
    Sent(i64),
    Link(LinkId),
    Queue,
    Inbox,
    Handed(u64),
    Remote(HostId),
}

/// All deadlines; each party has at most one.
#[derive(Debug, Default)]
pub(super) struct Timers(BTreeSet<(Timestamp, Whom)>);

impl Timers {
    /// Moves a party's deadline.
    pub(super) fn set(&mut self, whom: Whom, slot: &mut Option<Timestamp>, at: Option<Timestamp>) {
        if *slot == at {
            return;
        }
        if let Some(before) = slot.take() {
            self.0.remove(&(before, whom));
        }
        if let Some(at) = at {
            self.0.insert((at, whom));
        }
        *slot = at;
    }

    pub(super) fn next(&self) -> Option<(Timestamp, Whom)> {
        self.0.first().copied()
    }

    /// Takes one that is due.
    pub(super) fn due(&mut self, now: Timestamp) -> Option<Whom> {
        let (at, whom) = self.next()?;
        if at > now {
            return None;
        }
        self.0.remove(&(at, whom));
        Some(whom)
    }
}
