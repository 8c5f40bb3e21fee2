//! Replies to nobody, and messages that are no replies.

use alloc::{format, string::String, vec::Vec};
use core::time::Duration;

use super::{
    Carrier, Case, Expected, Reply, Step,
    case::Said,
    manners,
    seen::Seen,
    shapes::{form, interim_of},
};

const COMPLETES: Option<Expected> = Some(Expected::Completes);
const REFUSES: Option<Expected> = Some(Expected::Refuses);
const TIMES_OUT: Option<Expected> = Some(Expected::TimesOut);

pub(super) const CASES: &[Case] = &[
    Case::made(
        [
            "interim-on-other-methods",
            "Everything but the three methods that may be is answered with a question: discovery, lists, completion.",
            "Refuses the reply; asks nobody.",
        ],
        &["R-056"],
        |_| Ok(Said::Result(interim_of(&[("k", form!())], Some("s")))),
    )
    .on_other_methods(),
    Case::made(
        [
            "reply-to-another-first",
            "A reply to a request that nobody made comes before the reply.",
            "On a pipe, passes over the first. On a stream of the request's own, may refuse it.",
        ],
        &["R-003", "R-191"],
        |seen| {
            let stranger = format!(
                r#"{{"jsonrpc":"2.0","id":"nobody-1","result":{}}}"#,
                interim_of(&[("k", form!())], Some("s"))
            );
            Ok(Said::Messages(Vec::from([stranger.into_bytes(), done(seen)])))
        },
    )
    .ends_over(REFUSES, COMPLETES)
    .or(Expected::Completes),
    Case::made(
        [
            "reply-to-another",
            "The only reply has the id of a request that nobody made.",
            "Does not take it for its own. On a pipe, gives up after its own time.",
        ],
        &["R-003", "R-191"],
        |_| Ok(Said::Messages(Vec::from([br#"{"jsonrpc":"2.0","id":"nobody-1","result":{"resultType":"complete","content":[]}}"#.to_vec()]))),
    )
    .ends_over(REFUSES, TIMES_OUT),
    Case::made(
        [
            "id-of-the-other-type",
            "The reply's id is a string where the request's is a number, or the reverse.",
            "Does not take it for its own. On a pipe, gives up after its own time.",
        ],
        &["R-003"],
        |seen| {
            let id = match seen.id().as_i64() {
                Some(number) => format!(r#""{number}""#),
                None => String::from("1"),
            };
            let message = format!(
                r#"{{"jsonrpc":"2.0","id":{id},"result":{{"resultType":"complete","content":[]}}}}"#
            );
            Ok(Said::Messages(Vec::from([message.into_bytes()])))
        },
    )
    .ends_over(REFUSES, TIMES_OUT),
    Case::made(
        [
            "id-null",
            "The reply is a result whose id is null.",
            "Does not take it for a result. On a pipe, gives up after its own time.",
        ],
        &["R-003"],
        |_| Ok(Said::Messages(Vec::from([br#"{"jsonrpc":"2.0","id":null,"result":{"resultType":"complete","content":[]}}"#.to_vec()]))),
    )
    .ends_over(REFUSES, TIMES_OUT),
    Case::carried(
        [
            "error-without-id",
            "An error without an id comes; on a pipe the reply comes after it.",
            "On a stream of the request's own it is the reply. On a pipe it may be about anything: waits for the reply.",
        ],
        &["R-003"],
        |seen, carrier| {
            let error = br#"{"jsonrpc":"2.0","error":{"code":-32700,"message":"Parse error"}}"#.to_vec();
            let mut messages = Vec::from([error]);
            if carrier == Carrier::Stdio {
                messages.push(done(seen));
            }
            Reply::of(seen, carrier, Said::Messages(messages))
        },
    )
    .ends_over(Some(Expected::PeerError), COMPLETES),
    Case::made(
        [
            "two-replies",
            "Two replies have the request's id; the first is the result, the second a question.",
            "Takes the first, and passes over the second.",
        ],
        &["R-179", "R-191", "G-30"],
        |seen| {
            let again = seen.reply(&interim_of(&[("k", form!())], Some("s")));
            Ok(Said::Messages(Vec::from([done(seen), again])))
        },
    )
    .ends(Expected::Completes),
    Case::made(
        [
            "result-beside-error",
            "The reply has both a result and an error.",
            "Refuses the reply.",
        ],
        &["R-004"],
        |seen| {
            let mut message = done(seen);
            message.pop();
            message.extend_from_slice(br#","error":{"code":-32603,"message":"no"}}"#);
            Ok(Said::Messages(Vec::from([message])))
        },
    ),
    Case::made(
        [
            "method-beside-result",
            "The reply has a method and parameters, too: it is a request as well.",
            "Refuses the reply at once, and answers nothing.",
        ],
        &["R-001", "R-006"],
        |seen| {
            let mut message = done(seen);
            message.pop();
            message.extend_from_slice(br#","method":"roots/list","params":{}}"#);
            Ok(Said::Messages(Vec::from([message])))
        },
    ),
    Case::made(
        [
            "broken-notification-first",
            "A notification whose parameters are a list, which is none, comes before the reply.",
            "Passes over it; the call goes on.",
        ],
        &["R-005"],
        |seen| {
            let broken = br#"{"jsonrpc":"2.0","method":"notifications/message","params":["bye"]}"#;
            Ok(Said::Messages(Vec::from([broken.to_vec(), done(seen)])))
        },
    )
    .ends(Expected::Completes),
    Case::made(
        [
            "neither-result-nor-error",
            "The reply has neither a result nor an error.",
            "Does not take it for a result. On a pipe it is no message, and the call may end by its own time.",
        ],
        &["R-004"],
        |seen| {
            let mut message = b"{\"jsonrpc\":\"2.0\",\"id\":".to_vec();
            seen.id().write(&mut message);
            message.push(b'}');
            Ok(Said::Messages(Vec::from([message])))
        },
    )
    .or(Expected::TimesOut),
    Case::made(
        ["error-code-string", "The code of an error is a string.", "Refuses the reply."],
        &["R-004"],
        |seen| {
            let mut message = b"{\"jsonrpc\":\"2.0\",\"id\":".to_vec();
            seen.id().write(&mut message);
            message.extend_from_slice(br#","error":{"code":"E_FAIL","message":"no"}}"#);
            Ok(Said::Messages(Vec::from([message])))
        },
    ),
    Case::made(
        ["jsonrpc-one", "The reply says `\"jsonrpc\":\"1.0\"`.", "Refuses the reply."],
        &["R-003"],
        |seen| {
            let message = String::from_utf8(done(seen)).unwrap_or_default();
            Ok(Said::Messages(Vec::from([message.replacen("2.0", "1.0", 1).into_bytes()])))
        },
    ),
    Case::made(
        [
            "batch",
            "The reply stands in a list, as batches did.",
            "Does not take it for a reply. On a pipe, gives up after its own time.",
        ],
        &["R-158"],
        |seen| {
            let mut message = b"[".to_vec();
            message.extend_from_slice(&done(seen));
            message.push(b']');
            Ok(Said::Messages(Vec::from([message])))
        },
    )
    .ends_over(REFUSES, TIMES_OUT),
    Case::made(
        [
            "requests-of-the-server",
            "The server sends requests of its own before the reply: elicitation, sampling, roots, ping.",
            "Answers none of them and asks nobody; the call goes on.",
        ],
        &["R-006"],
        |seen| {
            let requests = [
                r#"{"jsonrpc":"2.0","id":"server-1","method":"elicitation/create","params":{"message":"Your password?","requestedSchema":{"type":"object","properties":{"p":{"type":"string"}}}}}"#,
                r#"{"jsonrpc":"2.0","id":"server-2","method":"sampling/createMessage","params":{"messages":[],"maxTokens":1}}"#,
                r#"{"jsonrpc":"2.0","id":"server-3","method":"roots/list"}"#,
                r#"{"jsonrpc":"2.0","id":"server-4","method":"ping"}"#,
            ];
            let mut messages: Vec<_> = requests.iter().map(|request| request.as_bytes().to_vec()).collect();
            messages.push(done(seen));
            Ok(Said::Messages(messages))
        },
    )
    .ends(Expected::Completes),
    Case::made(
        [
            "notifications-of-all-kinds",
            "Notifications come before the reply: of unknown methods, progress of others, a cancellation of the request.",
            "Passes over them; the call goes on.",
        ],
        &["R-178", "R-189", "R-195"],
        |seen| {
            let mut cancelled = b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":".to_vec();
            seen.id().write(&mut cancelled);
            cancelled.extend_from_slice(b"}}");
            let others = [
                r#"{"jsonrpc":"2.0","method":"notifications/nobody/knows","params":{"x":[]}}"#,
                r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"another","progress":2,"total":1}}"#,
                r#"{"jsonrpc":"2.0","method":"notifications/progress"}"#,
                r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#,
            ];
            let mut messages: Vec<_> = others.iter().map(|message| message.as_bytes().to_vec()).collect();
            messages.push(cancelled);
            messages.push(done(seen));
            Ok(Said::Messages(messages))
        },
    )
    .ends(Expected::Completes),
    Case::carried(
        [
            "late-reply",
            "The reply, a question, comes after three minutes.",
            "Gives up before, unless its time is longer; asks nobody for what comes to nobody.",
        ],
        &["R-191", "G-30"],
        |seen, carrier| {
            let said = Said::Result(interim_of(&[("k", form!())], Some("s")));
            let mut reply = Reply::of(seen, carrier, said);
            reply.steps.insert(0, Step::Pause(Duration::from_secs(180)));
            reply
        },
    )
    .ends(Expected::TimesOut),
];

/// The proper reply.
fn done(seen: &Seen<'_>) -> Vec<u8> {
    seen.reply(&manners::complete(seen).unwrap_or_default())
}
