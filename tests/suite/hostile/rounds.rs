//! What goes back in a retry, and when to stop.

use std::{collections::BTreeSet, time::Duration};

use mrtr_core::client::{InputResponse, Policy, Stopped};
use mrtr_tests::hostile::{Caller, Ended};

use super::{CARRIERS, case};

use Ended::{Complete, Peer, StateRefused, Stopped as Stops};

cases! {
    // R-013, R-066, R-088, G-02, G-05, G-06: what an interim result may look like.
    interim_with_extras "interim-with-extras": 1 2 Complete(_),
    state_only "state-only": 0 2 Complete(_),
    empty_asks "empty-asks": 0 2 Complete(_),
    null_asks "null-asks": 0 2 Complete(_),
    odd_keys "odd-keys": 8 2 Complete(_),
    roots_without_params "roots-without-params": 1 2 Complete(_),
    // R-087, R-089, R-090, R-091, R-092, R-093, G-04: what the retry carries. The kit looks at ids and arguments, too.
    empty_state "empty-state": 1 2 Complete(_),
    odd_state "odd-state": 1 2 Complete(_),
    lone_surrogate_state "lone-surrogate-state": 1 2 Complete(_),
    no_state "no-state": 1 2 Complete(_),
    stale_state "stale-state": 2 3 Complete(_),
    stale_answers "stale-answers": 1 3 Complete(_),
    key_used_again "key-used-again": 2 3 Complete(_),
    // R-095, R-134, R-137: a script is cancelled; the others are for a person to look at.
    url_script "url-script": 1 2 Complete(_),
    url_lookalike "url-lookalike": 1 2 Complete(_),
    url_user_info "url-user-info": 1 2 Complete(_),
    // R-202: see also below.
    cached_question "cached-question": 1 2 Complete(_),
    // R-099, G-06, G-07, G-32: the eleventh question is not put to anybody.
    asks_for_ever "asks-for-ever": 10 11 Stops(Stopped::Retries { limit: 10 }),
    state_only_for_ever "state-only-for-ever": 0 61 Stops(Stopped::StateOnlyRounds { limit: 60 }),
    same_question_for_ever "same-question-for-ever": 10 11 Stops(Stopped::Retries { limit: 10 }),
    // G-11, R-045: told as the server's, and not tried for ever.
    state_refused "state-refused": 1 2 StateRefused(_),
    version_refused_for_ever "version-refused-for-ever": 0 2 Peer(_),
}

/// R-095, R-099: a decline is an answer, which is sent, and the last word: the question is not put again.
#[test]
fn a_question_that_was_declined_ends_the_call_when_it_returns() {
    for carrier in CARRIERS {
        let mut caller = Caller::new(carrier);
        caller.answer = |_| InputResponse::decline();
        let played = caller.play(case("same-question-for-ever"));
        assert!(
            matches!(&played.ended, Stops(Stopped::Declined { key }) if key == "k2"),
            "under another key, too: {played:?}"
        );
        assert_eq!((played.prompts.len(), played.requests, played.faults.len()), (1, 2, 0));
        // One that was dismissed may be put once more.
        caller.answer = |_| InputResponse::cancel();
        let played = caller.play(case("same-question-for-ever"));
        assert!(matches!(played.ended, Stops(Stopped::Dismissed { .. })), "{played:?}");
        assert_eq!((played.prompts.len(), played.requests), (2, 3));
        // Whoever declines other questions is asked the next.
        caller.answer = |_| InputResponse::decline();
        assert_eq!(caller.play(case("asks-for-ever")).prompts.len(), 10);
    }
}

/// B-58, G-07: at the edge of the bound no question is put whose answer would not be sent.
#[test]
fn every_question_that_was_put_is_answered_on_the_wire() {
    for carrier in CARRIERS {
        for retries in [0, 1, 2, 7] {
            let mut policy = Policy::default();
            policy.retries = retries;
            for name in ["asks-for-ever", "same-question-for-ever"] {
                let played = Caller::with(carrier, policy.clone()).play(case(name));
                assert!(matches!(played.ended, Stops(Stopped::Retries { limit }) if limit == retries));
                assert_eq!(played.requests, played.prompts.len() + 1, "{name}: {played:?}");
                assert_eq!(played.prompts.len(), usize::try_from(retries).unwrap());
            }
        }
    }
}

/// B-57, G-06: 60 pauses of 50 to 250 ms.
#[test]
fn a_server_that_only_defers_is_not_hammered() {
    for carrier in CARRIERS {
        let played = Caller::new(carrier).play(case("state-only-for-ever"));
        let (least, most) = (Duration::from_secs(10), Duration::from_secs(15));
        assert!((least..=most).contains(&played.elapsed), "{:?}", played.elapsed);
    }
}

/// R-087: the keys come back to the letter, the empty one and the one with a zero in it included.
#[test]
fn keys_are_strings_and_nothing_else() {
    let played = Caller::new(super::Carrier::Stdio).play(case("odd-keys"));
    let keys: BTreeSet<_> = played.prompts.iter().map(String::as_str).collect();
    assert!(["", "undefined", "__proto__", "k\0"].iter().all(|key| keys.contains(key)), "{keys:?}");
}

/// R-202, R-203: the same call again leads to the same question again.
#[test]
fn what_depends_on_an_answer_is_asked_anew() {
    for carrier in CARRIERS {
        let caller = Caller::new(carrier);
        for _ in 0..2 {
            let played = caller.call(case("cached-question"), "resources/read", r#"{"uri":"test:hostile"}"#);
            assert_eq!((played.prompts.len(), played.requests), (1, 2));
        }
    }
}
