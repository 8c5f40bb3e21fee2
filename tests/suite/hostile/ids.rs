//! Replies to nobody, and messages that are no replies.

use mrtr_core::{
    client::Violation,
    jsonrpc::{Refusal, Refused},
};
use mrtr_tests::hostile::{Caller, Ended};

use super::{CARRIERS, Expected, case, check};

use Ended::{Complete, Peer, TimedOut, Violation as Broken};
use Violation::{Message, OtherId};

cases! {
    // on a stream of its own another id breaks the protocol, on a pipe it is somebody else's.
    reply_to_another_first "reply-to-another-first": 0 1 Complete(_) | Broken(OtherId),
    reply_to_another "reply-to-another": 0 1 Broken(OtherId) | TimedOut,
    id_of_the_other_type "id-of-the-other-type": 0 1 Broken(OtherId) | TimedOut,
    id_null "id-null": 0 1 Broken(Message(Refused { reason: Refusal::Shape(_), .. })) | TimedOut,
    error_without_id "error-without-id": 0 1 Peer(_) | Complete(_),
    result_beside_error "result-beside-error": 0 1 Broken(Message(Refused { reason: Refusal::Shape(_), .. })),
    // what asks and replies at once is a broken reply to what waits for one.
    method_beside_result "method-beside-result": 0 1
        Broken(Message(Refused { reason: Refusal::Shape(_), .. })),
    // R-005, B-81: what tells fails nothing but itself.
    broken_notification_first "broken-notification-first": 0 1 Complete(_),
    neither_result_nor_error "neither-result-nor-error": 0 1
        Broken(Message(Refused { reason: Refusal::Shape(_), .. })),
    error_code_string "error-code-string": 0 1 Broken(Message(Refused { reason: Refusal::Shape(_), .. })),
    jsonrpc_one "jsonrpc-one": 0 1 Broken(Message(Refused { reason: Refusal::Shape(_), .. })),
    // there are no batches.
    batch "batch": 0 1 Broken(Message(Refused { reason: Refusal::Batch, .. })) | TimedOut,
    // G-30: the first reply counts; nothing else is one.
    two_replies "two-replies": 0 1 Complete(_),
    requests_of_the_server "requests-of-the-server": 0 1 Complete(_),
    notifications_of_all_kinds "notifications-of-all-kinds": 0 1 Complete(_),
    late_reply "late-reply": 0 1 TimedOut,
}

/// Tested here, and not by the table: it is about the other methods.
pub(super) const ALSO: &str = "interim-on-other-methods";

/// R-056, B-03: a question in reply to anything else is refused, and nobody is asked.
#[test]
fn only_three_methods_are_answered_with_questions() {
    for method in [
        "server/discover",
        "tools/list",
        "prompts/list",
        "resources/list",
        "resources/templates/list",
        "completion/complete",
        "subscriptions/listen",
        "vendor/anything",
    ] {
        for carrier in CARRIERS {
            let played = Caller::new(carrier).call(case(ALSO), method, "{}");
            check(&played, Expected::Refuses);
            let Broken(Violation::NotAllowed { method: named }) = &played.ended else { panic!("{played:?}") };
            assert_eq!(named, method);
        }
    }
}
