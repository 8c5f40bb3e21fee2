//! How far a client goes along: retries, pauses, time.

use core::time::Duration;

use crate::time::Timestamp;

/// What a client puts up with in one exchange, beside [`Limits`](crate::Limits) (G-06, G-07, R-192).
///
/// Every bound is inclusive. Of `Limits` the client uses `message_bytes`, `depth`, `nodes`, `asks_accepted`,
/// `answer_bytes`, `state_accepted`, `state_only_rounds` (its cap on retries that carry a state and no answers)
/// and `exchange` (the deadline of the whole exchange).
///
/// ```
/// let mut policy = mrtr_core::client::Policy::default();
/// policy.retries = 3;
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Policy {
    /// Retries with answers. When none is left, nobody is asked: an answer that will not be sent is never
    /// collected (B-58). 0 means that no question is ever answered. Default 10.
    pub retries: u32,
    /// The first pause before a retry with a state only; each further one in a row doubles. Default 50 ms.
    pub pause_first: Duration,
    /// The longest such pause. Default 250 ms.
    pub pause_longest: Duration,
    /// Whether the time people take to answer counts towards `Limits::exchange` (B-62). Default: it does not.
    pub thinking: Thinking,
    /// How long one request may go without a reply or progress before it should be cancelled. Default 60 s.
    pub request_timeout: Duration,
    /// How long one request may take even with progress. Default 600 s.
    pub request_longest: Duration,
    /// How often a call that [may run twice](super::Call::may_run_twice) is sent again after its connection
    /// broke (G-29). Default 3.
    pub resends: u32,
}

/// Whether thinking time counts towards the deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums)]
pub enum Thinking {
    /// Only the time while a request is on the wire and the pauses between state-only rounds count.
    Free,
    /// All time counts, from the first request on.
    Counted,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            retries: 10,
            pause_first: Duration::from_millis(50),
            pause_longest: Duration::from_millis(250),
            thinking: Thinking::Free,
            request_timeout: Duration::from_secs(60),
            request_longest: Duration::from_secs(600),
            resends: 3,
        }
    }
}

impl Policy {
    /// The pause before the `nth` state-only retry in a row (from 0), in whole milliseconds: within a fifth of
    /// `pause_first · 2^nth`, never outside `pause_first..=pause_longest`. `seed` chooses the point.
    pub(super) fn pause(&self, nth: u32, seed: u64) -> Duration {
        let millis = |duration: Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        let longest = millis(self.pause_longest);
        let first = millis(self.pause_first).min(longest);
        let base = first.saturating_mul(1u64 << nth.min(32)).min(longest);
        let low = (base - base / 5).max(first);
        let high = base.saturating_add(base / 5).min(longest);
        let spread = high.saturating_sub(low);
        Duration::from_millis(low + mix(seed) % spread.saturating_add(1))
    }
}

/// Time an exchange has used up, without a clock of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Spent {
    /// What counted so far.
    pub(super) so_far: Duration,
    /// Up to when it is counted.
    pub(super) until: Timestamp,
}

impl Spent {
    pub(super) const fn new(now: Timestamp) -> Self {
        Self { so_far: Duration::ZERO, until: now }
    }

    /// With the time since the last step.
    pub(super) const fn counting(self, now: Timestamp) -> Self {
        Self { so_far: self.so_far.saturating_add(now.saturating_since(self.until)), until: now }
    }

    /// Without the time since the last step.
    pub(super) const fn passing_over(self, now: Timestamp) -> Self {
        Self { so_far: self.so_far, until: now }
    }
}

/// Spreads the bits of `seed` over the whole word (the finaliser of SplitMix64).
const fn mix(seed: u64) -> u64 {
    let mut word = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_stay_in_their_bounds_and_differ_g_06() {
        let policy = Policy::default();
        for nth in 0..80 {
            let pauses: alloc::collections::BTreeSet<_> =
                (0..200).map(|seed| policy.pause(nth, seed)).collect();
            let (least, most) = (pauses.first().unwrap(), pauses.last().unwrap());
            let expected = [(50, 60), (80, 120), (160, 240), (200, 250)];
            let (low, high) = expected[usize::try_from(nth.min(3)).unwrap()];
            assert!(least.as_millis() >= low && most.as_millis() <= high, "{nth}: {least:?} {most:?}");
            assert!(pauses.len() > 5, "{nth}: no jitter");
        }
    }

    #[test]
    fn pauses_of_odd_policies() {
        let mut policy = Policy { pause_first: Duration::ZERO, ..Policy::default() };
        assert_eq!(policy.pause(9, 1), Duration::ZERO);
        policy.pause_first = Duration::from_secs(9);
        assert_eq!(policy.pause(0, 1), policy.pause_longest);
        policy.pause_longest = Duration::MAX;
        policy.pause_first = Duration::MAX;
        assert_eq!(policy.pause(70, 1), Duration::from_millis(u64::MAX));
    }
}
