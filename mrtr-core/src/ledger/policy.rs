//! What an operator chooses.

use core::time::Duration;

use super::entry::MAX_WAITERS;

/// What becomes of a state whose run crashed before it began to commit (B6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums)]
pub enum Once {
    /// It may be used again once the lease has run out: the handler can start more than once, its commits
    /// cannot. The default.
    AtLeastOnce,
    /// It is lost: the handler starts at most once, and after a crash nobody learns how far it came. That holds
    /// for a handler that is cancelled with its connection too (B5); let it run to its end instead, and the next
    /// copy gets its reply.
    AtMostOnce,
}

/// What to do with a claim while the store does not answer or has no room (B7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums)]
pub enum WhenDown {
    /// Refuse with `-32603`. The default.
    FailClosed,
    /// Run without the ledger: available, but no longer single use while the store is down.
    FailOpen,
}

/// How a ledger behaves. All replicas of a service should use the same one; where they differ (in the middle
/// of a deployment), the stricter [`Once`] of the two that meet in an entry decides.
///
/// ```
/// use mrtr_core::ledger::{Once, Policy};
///
/// let mut policy = Policy::default();
/// policy.once = Once::AtMostOnce;
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Policy {
    /// After a crash in the handler. Default [`Once::AtLeastOnce`].
    pub once: Once,
    /// How long a run holds its claim without a sign of life. It is renewed every third of this, so it bounds
    /// how long a crash stays unnoticed, not how long a handler may run. Default 30 s, at least 1 s.
    pub lease: Duration,
    /// How long a second copy of a retry waits for the first one's reply; never past the lease it sees, nor
    /// past its request's deadline (B4). Default 30 s.
    pub wait: Duration,
    /// Copies that wait at one entry at a time (B4). Default 4, at most 16.
    pub waiters: usize,
    /// While the store is down. Default [`WhenDown::FailClosed`].
    pub when_down: WhenDown,
    /// Bytes of a result or error member that is kept for replay (B3). A longer one is sent but not kept: the
    /// state stays used, and a repetition is told that its reply is gone. Default 256 KiB, at most 4 MiB.
    pub reply_bytes: usize,
    /// How far the clocks of two replicas may be apart. A lease counts as run out only this much later.
    /// Should they be further apart, a slow run can lose its claim early; its commits still happen at most
    /// once. Default 5 s.
    pub skew: Duration,
    /// How long an entry stays in the store after its state has expired, so that no replica whose clock is
    /// behind finds a used state free again. Default 60 s.
    pub retention: Duration,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            once: Once::AtLeastOnce,
            lease: Duration::from_secs(30),
            wait: Duration::from_secs(30),
            waiters: 4,
            when_down: WhenDown::FailClosed,
            reply_bytes: 256 << 10,
            skew: Duration::from_secs(5),
            retention: Duration::from_secs(60),
        }
    }
}

impl Policy {
    /// Store commands that may fail in a row before the store counts as down.
    pub(super) const TRIES: u8 = 3;

    /// How often one step may lose a race and look again. Nobody can make a claim loop for ever.
    pub(super) const TURNS: u8 = 32;

    pub(super) fn effective_lease(&self) -> Duration {
        self.lease.max(Duration::from_secs(1))
    }

    pub(super) fn effective_waiters(&self) -> usize {
        self.waiters.min(MAX_WAITERS)
    }

    pub(super) fn effective_reply_bytes(&self) -> usize {
        self.reply_bytes.min(4 << 20)
    }

    /// The pause before the next try after `failures` failures in a row: 50 ms, then 100 ms.
    pub(super) fn pause(failures: u8) -> Duration {
        Duration::from_millis(25 << failures.min(4))
    }
}
