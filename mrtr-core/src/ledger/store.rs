//! What is asked of a store: get, and compare-and-set with an expiry. All decisions are in the machines.

use alloc::vec::Vec;
use core::fmt;

use super::Key;
use crate::time::Timestamp;

/// One command for the store, to be carried out once.
///
/// A store must be linearizable for one key: in memory behind a lock, one Redis primary (a script of five
/// lines), one Durable Object. A command that is repeated or delayed by the network does no harm.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Command {
    /// Which entry.
    pub key: Key,
    /// What to do with it.
    pub operation: Operation,
}

impl Command {
    /// A command of your own: to inspect a store, or to test one.
    #[must_use]
    pub const fn new(key: Key, operation: Operation) -> Self {
        Self { key, operation }
    }
}

/// What to do with an entry.
#[derive(Clone, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums)]
pub enum Operation {
    /// Report what the key holds: [`StoreEvent::Current`].
    Get,
    /// If the key holds exactly `expected` (`None`: nothing), put `new` in its place and report
    /// [`StoreEvent::Applied`]; otherwise change nothing and report what it holds as
    /// [`StoreEvent::Current`]. Comparison and change are one atomic step.
    CompareAndSet {
        /// Bytes that must be there; at most 316.
        expected: Option<Vec<u8>>,
        /// Bytes to put there; `None` removes the key.
        new: Option<Vec<u8>>,
        /// When the store forgets the entry, on its own clock; the store must not forget it earlier (a Redis
        /// needs `maxmemory-policy noeviction`).
        expires: Timestamp,
    },
}

/// What a store reports about one command.
#[derive(Clone, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums)]
pub enum StoreEvent {
    /// The compare-and-set took place.
    Applied,
    /// What the key holds now: the answer to a get, or to a compare-and-set that did not take place.
    Current(Option<Vec<u8>>),
    /// There is no room for the new bytes; nothing was changed.
    Full,
    /// No answer, a broken connection, a time-out: the command may have taken place, may yet, or never will.
    Unavailable,
}

/// Shows sizes, never content.
impl fmt::Debug for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Get => f.write_str("Get"),
            Self::CompareAndSet { expected, new, expires } => f
                .debug_struct("CompareAndSet")
                .field("expected_bytes", &expected.as_ref().map(Vec::len))
                .field("new_bytes", &new.as_ref().map(Vec::len))
                .field("expires", expires)
                .finish(),
        }
    }
}

/// Shows sizes, never content.
impl fmt::Debug for StoreEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Applied => f.write_str("Applied"),
            Self::Current(None) => f.write_str("Current(nothing)"),
            Self::Current(Some(bytes)) => write!(f, "Current({} bytes)", bytes.len()),
            Self::Full => f.write_str("Full"),
            Self::Unavailable => f.write_str("Unavailable"),
        }
    }
}
