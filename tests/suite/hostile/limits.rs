//! Too much of everything. What it may cost in memory is measured in `tests/allocations`.

use std::time::Duration;

use mrtr_core::{
    client::{Policy, Violation},
    jsonrpc::{Refusal, Refused},
    wire::ResultFault,
};
use mrtr_tests::hostile::{Caller, Ended};

use super::{CARRIERS, case};

use Ended::{TimedOut, TooLarge, Violation as Broken};
use Violation::{Message, Result};

cases! {
    // G-07: each bound is named in the error.
    thousand_asks "thousand-asks": 0 1 Broken(Result(ResultFault::TooManyAsks { limit: 64 })),
    hundred_thousand_asks "hundred-thousand-asks": 0 1
        Broken(Message(Refused { reason: Refusal::TooManyNodes { limit: 100_000 }, .. })),
    large_state "large-state": 0 1
        Broken(Result(ResultFault::StateTooLarge { bytes: 307_200, limit: 262_144 })),
    deep_schema "deep-schema": 0 1 Broken(Message(Refused { reason: Refusal::TooDeep { limit: 64 }, .. })),
    deep_result "deep-result": 0 1 Broken(Message(Refused { reason: Refusal::TooDeep { limit: 64 }, .. })),
    many_values "many-values": 0 1
        Broken(Message(Refused { reason: Refusal::TooManyNodes { limit: 100_000 }, .. })),
    ten_megabytes "ten-megabytes": 0 1 TooLarge,
    ten_megabyte_event "ten-megabyte-event": 0 1 TooLarge,
    endless_message "endless-message": 0 1 TooLarge,
    // each request has its own clock.
    endless_comments "endless-comments": 0 1 TimedOut,
    endless_notifications "endless-notifications": 0 1 TimedOut,
    endless_progress "endless-progress": 0 1 TimedOut,
    silence "silence": 0 1 TimedOut,
    silence_in_mid_reply "silence-in-mid-reply": 0 1 TimedOut,
}

/// only progress of the very request is a reason to wait longer, and not for ever.
#[test]
fn progress_is_waited_for_and_words_are_not() {
    let mut policy = Policy::default();
    policy.request_timeout = Duration::from_secs(2);
    policy.request_longest = Duration::from_secs(9);
    for carrier in CARRIERS {
        let elapsed = |name| Caller::with(carrier, policy.clone()).play(case(name)).elapsed;
        assert_eq!(elapsed("endless-notifications"), Duration::from_secs(2));
        assert_eq!(elapsed("silence-in-mid-reply"), Duration::from_secs(2));
        assert_eq!(elapsed("endless-progress"), Duration::from_secs(9));
    }
}
