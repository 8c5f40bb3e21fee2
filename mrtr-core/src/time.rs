//! Points in time. The clock is an argument everywhere: nothing here reads one.

use core::time::Duration;

/// A point in time, in milliseconds since the Unix epoch (UTC, no leap seconds).
///
/// `std`'s own types cannot be made from a number, which a pure machine needs; hence this one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(u64);

impl Timestamp {
    /// The point `millis` milliseconds after the Unix epoch.
    #[must_use]
    pub const fn from_unix_millis(millis: u64) -> Self {
        Self(millis)
    }

    /// Milliseconds since the Unix epoch.
    #[must_use]
    pub const fn as_unix_millis(self) -> u64 {
        self.0
    }

    /// This point plus `by`, rounded **up** to a whole millisecond so that no lifetime is cut short;
    /// stays at the far end of time instead of overflowing.
    #[must_use]
    pub fn saturating_add(self, by: Duration) -> Self {
        let millis = by.as_secs().saturating_mul(1_000);
        Self(self.0.saturating_add(millis).saturating_add(by.subsec_nanos().div_ceil(1_000_000).into()))
    }

    /// How long ago `earlier` was; zero if it lies ahead.
    #[must_use]
    pub const fn saturating_since(self, earlier: Self) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }
}
