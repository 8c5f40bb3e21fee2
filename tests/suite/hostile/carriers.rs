//! Lines, event streams, statuses, and connections that break.

use mrtr_core::{
    client::{Policy, Stopped, Violation},
    http::HttpErrorKind,
    jsonrpc::{Refusal, Refused},
};
use mrtr_tests::hostile::{Caller, Ended};

use super::{CARRIERS, case};

use Ended::{Complete, Http, Stopped as Stops, Violation as Broken};
use Violation::Message;

cases! {
    // however it comes, it is the same.
    split_stream "split-stream": 0 1 Complete(_),
    stream_with_everything "stream-with-everything": 0 1 Complete(_),
    rubbish_lines "rubbish-lines": 0 1 Complete(_),
    split_lines "split-lines": 0 1 Complete(_),
    half_line "half-line": 0 1 Complete(_),
    // G-29: what was under way is lost.
    stream_without_reply "stream-without-reply": 0 1 Stops(Stopped::Lost),
    stream_cut "stream-cut": 0 1 Stops(Stopped::Lost),
    body_cut "body-cut": 0 1 Stops(Stopped::Lost),
    json_called_events "json-called-events": 0 1 Stops(Stopped::Lost),
    death "death": 0 1 Stops(Stopped::Lost),
    death_in_mid_line "death-in-mid-line": 0 1 Stops(Stopped::Lost),
    death_in_mid_exchange "death-in-mid-exchange": 1 2 Stops(Stopped::Lost),
    // what is no reply is not taken for one.
    events_called_json "events-called-json": 0 1 Broken(Message(Refused { reason: Refusal::Syntax { .. }, .. })),
    page "page": 0 1 Http(HttpErrorKind::NoMessage),
    empty_body "empty-body": 0 1 Http(HttpErrorKind::NoMessage),
    accepted "accepted": 0 1 Http(HttpErrorKind::NoMessage),
    not_utf_8 "not-utf-8": 0 1 Broken(Message(Refused { reason: Refusal::NotUtf8, .. })),
    not_json "not-json": 0 1 Broken(Message(Refused { reason: Refusal::Syntax { .. }, .. })),
    redirect "redirect": 0 1 Http(HttpErrorKind::Redirect),
    status_400 "status-400": 0 1 Http(HttpErrorKind::BadRequest),
    status_401 "status-401": 0 1 Http(HttpErrorKind::Unauthorized),
    status_404 "status-404": 0 1 Http(HttpErrorKind::NotFound),
    status_500 "status-500": 0 1 Http(HttpErrorKind::Server),
    status_500_with_question "status-500-with-question": 0 1 Http(HttpErrorKind::Server),
}

/// R-096, G-29: a call that may run twice is sent anew after a break, a bounded number of times, and each time the retry
/// of the same round: nobody is asked again.
#[test]
fn a_call_that_may_run_twice_is_sent_anew_and_nobody_is_asked_again() {
    for carrier in CARRIERS {
        for resends in [0, 1, 3] {
            let mut policy = Policy::default();
            policy.resends = resends;
            let mut caller = Caller::with(carrier, policy);
            caller.twice = true;
            let more = usize::try_from(resends).unwrap();
            let played = caller.play(case("death"));
            assert!(
                matches!(played.ended, Stops(Stopped::Lost)) && played.requests == 1 + more,
                "{played:?}"
            );
            let played = caller.play(case("death-in-mid-exchange"));
            assert_eq!((played.requests, played.prompts.len()), (2 + more, 1), "{played:?}");
            assert!(played.faults.is_empty());
        }
    }
}
