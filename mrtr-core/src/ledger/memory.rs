//! A store in this process: for tests, and for one process behind a lock.

use alloc::{
    collections::{BTreeMap, BTreeSet},
    vec::Vec,
};
use core::fmt;

use super::{Command, Key, Operation, StoreEvent};
use crate::time::Timestamp;

/// Bounds of a [`Memory`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryLimits {
    /// States that are remembered at a time. When as many are, new claims find no room, as if the store were
    /// down, until one expires. Default 16,384, which take 4 MB beside the replies, 8 MB with 16 waiters each.
    pub entries: usize,
    /// Bytes of replies that are kept. A reply beyond is sent but not kept; claims are not affected. Default
    /// 64 MiB.
    pub reply_bytes: usize,
}

impl Default for MemoryLimits {
    fn default() -> Self {
        Self { entries: 16_384, reply_bytes: 64 << 20 }
    }
}

/// Entries in memory, bounded in number and bytes, each until it expires. Nothing is dropped earlier: a full
/// store refuses what is new.
///
/// It has no clock: `now` is an argument, and nothing happens between calls. It is for one process, and
/// what it knows ends with it; several replicas need a store that they share.
#[derive(Default)]
pub struct Memory {
    limits: MemoryLimits,
    entries: BTreeMap<Key, Slot>,
    /// The same keys by the time at which they may be forgotten.
    by_expiry: BTreeSet<(Timestamp, Key)>,
    /// Sum of [`reply_bytes`] over all entries.
    replies: usize,
}

struct Slot {
    bytes: Vec<u8>,
    expires: Timestamp,
}

/// An entry up to this size counts as one of `entries` only: every claim fits in it, with 16 waiters.
const SMALL: usize = 320;

/// What an entry counts towards the bound on replies.
const fn reply_bytes(length: usize) -> usize {
    if length <= SMALL { 0 } else { length }
}

impl Memory {
    /// An empty store.
    #[must_use]
    pub fn new(limits: MemoryLimits) -> Self {
        Self { limits, ..Self::default() }
    }

    /// Carries out one command at `now`.
    pub fn apply(&mut self, now: Timestamp, command: &Command) -> StoreEvent {
        self.expire(now);
        let slot = self.entries.get(&command.key);
        let current = slot.map(|slot| &slot.bytes);
        let Operation::CompareAndSet { expected, new, expires } = &command.operation else {
            return StoreEvent::Current(current.cloned());
        };
        if current != expected.as_ref() {
            return StoreEvent::Current(current.cloned());
        }
        let old = current.map(|bytes| reply_bytes(bytes.len()));
        if let Some(new) = new {
            let replies =
                self.replies.saturating_sub(old.unwrap_or(0)).saturating_add(reply_bytes(new.len()));
            let no_entry = old.is_none() && self.entries.len() >= self.limits.entries;
            // An end without its reply is small, so a run can always end.
            let no_bytes = replies > self.limits.reply_bytes;
            if no_entry || no_bytes {
                return StoreEvent::Full;
            }
        }
        self.remove(&command.key);
        if let Some(new) = new {
            self.replies = self.replies.saturating_add(reply_bytes(new.len()));
            self.by_expiry.insert((*expires, command.key));
            self.entries.insert(command.key, Slot { bytes: new.clone(), expires: *expires });
        }
        StoreEvent::Applied
    }

    /// Forgets what has expired at `now`; [`apply`](Self::apply) does so too.
    pub fn expire(&mut self, now: Timestamp) {
        while let Some((_, key)) = self.by_expiry.first().copied().filter(|(expires, _)| *expires <= now) {
            self.remove(&key);
        }
    }

    /// When the next entry expires, if there is one.
    #[must_use]
    pub fn next_expiry(&self) -> Option<Timestamp> {
        self.by_expiry.first().map(|(expires, _)| *expires)
    }

    /// Entries in the store.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Bytes of the replies that are kept, seals included.
    #[must_use]
    pub const fn reply_bytes(&self) -> usize {
        self.replies
    }

    fn remove(&mut self, key: &Key) {
        if let Some(slot) = self.entries.remove(key) {
            self.by_expiry.remove(&(slot.expires, *key));
            self.replies = self.replies.saturating_sub(reply_bytes(slot.bytes.len()));
        }
    }
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Memory")
            .field("entries", &self.entries.len())
            .field("reply_bytes", &self.replies)
            .finish_non_exhaustive()
    }
}
