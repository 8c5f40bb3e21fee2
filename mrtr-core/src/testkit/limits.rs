//! Too much of everything. What matters is that memory and time stay bounded.

use alloc::{format, string::String, vec, vec::Vec};
use core::time::Duration;

use super::{
    Carrier, Case, End, Expected, Reply, Step,
    case::Said,
    reply::text,
    shapes::{form, form_of},
};
use crate::framing::{write_event, write_line};

const REFUSES: Option<Expected> = Some(Expected::Refuses);
const TIMES_OUT: Option<Expected> = Some(Expected::TimesOut);

pub(super) const CASES: &[Case] = &[
    Case::made(
        ["thousand-asks", "Asks 1,000 questions at once.", "Refuses the reply by its bound; asks nobody."],
        &["G-07"],
        |_| Ok(Said::Result(many_asks(1_000))),
    ),
    Case::made(
        ["hundred-thousand-asks", "Asks 100,000 questions at once.", "Refuses the reply by its bound; asks nobody."],
        &["G-07"],
        |_| Ok(Said::Result(many_asks(100_000))),
    ),
    Case::made(
        ["large-state", "The state has 300 KiB.", "Refuses the reply by its bound; asks nobody."],
        &["G-07"],
        |_| {
            let state = "s".repeat(300 << 10);
            Ok(Said::Result(format!(r#"{{"resultType":"input_required","requestState":"{state}"}}"#)))
        },
    ),
    Case::made(
        ["deep-schema", "The schema of a form is nested 200 deep.", "Refuses the reply by its bound; asks nobody."],
        &["G-07"],
        |_| {
            let nested = format!(r#""a":{}{}"#, r#"{"a":"#.repeat(200), format_args!("1{}", "}".repeat(200)));
            let ask = form_of("Your name?", &nested);
            Ok(Said::Result(format!(r#"{{"resultType":"input_required","inputRequests":{{"k":{ask}}}}}"#)))
        },
    ),
    Case::made(
        ["deep-result", "The result is nested 100,000 deep.", "Refuses the reply by its bound."],
        &["G-07"],
        |_| {
            let (open, close) = ("[".repeat(100_000), "]".repeat(100_000));
            Ok(Said::Result(format!(r#"{{"resultType":"complete","content":{open}{close}}}"#)))
        },
    ),
    Case::made(
        [
            "many-values",
            "The result has a list of 2,000,000 numbers.",
            "Refuses the reply by a bound, or takes it if it has none on values; memory stays near the reply's size.",
        ],
        &["G-07"],
        |_| Ok(Said::Result(format!(r#"{{"resultType":"complete","content":[0{}]}}"#, ",0".repeat(1_999_999)))),
    )
    .or(Expected::Completes),
    Case::carried(
        [
            "ten-megabytes",
            "The result has 10 MB of text in it, in one piece.",
            "Refuses the reply by its bound, and does not hold all of it. Over a pipe, where the id of such a line is not \
             read, the call may end by its time instead.",
        ],
        &["G-07"],
        |seen, carrier| {
            let result = format!(
                r#"{{"resultType":"complete","content":[{{"type":"text","text":"{}"}}]}}"#,
                "x".repeat(10_000_000)
            );
            Reply::of(seen, carrier, Said::Result(result))
        },
    )
    .or(Expected::TimesOut),
    Case::carried(
        ["ten-megabyte-event", "An event has 10 MB.", "Refuses the reply by its bound, and does not hold all of it."],
        &["G-07"],
        |seen, _| {
            let result = format!(
                r#"{{"resultType":"complete","content":[{{"type":"text","text":"{}"}}]}}"#,
                "x".repeat(10_000_000)
            );
            let mut events = Vec::new();
            write_event(&mut events, &seen.reply(&result));
            Reply::events(events)
        },
    )
    .ends_over(REFUSES, None),
    Case::carried(
        [
            "endless-message",
            "The reply begins well and never ends.",
            "Refuses it when its bound is met. Over a pipe, where the id of such a line is not read, the call may end by its \
             time instead.",
        ],
        &["G-07", "R-192"],
        |seen, _| {
            let mut begin = seen.reply(r#"{"resultType":"complete","content":[{"type":"text","text":""#);
            begin.pop();
            Reply::json(begin).then(endless(vec![b'x'; 128 << 10]))
        },
    )
    .or(Expected::TimesOut),
    Case::carried(
        [
            "endless-comments",
            "Comments keep the event stream alive, and the reply never comes.",
            "Gives up after its own time and closes the stream.",
        ],
        &["R-180", "R-187", "R-192"],
        |_, _| Reply::events(text(": soon\n\n")).then(endless(text(": soon\n\n"))),
    )
    .ends_over(TIMES_OUT, None),
    Case::carried(
        [
            "endless-notifications",
            "Log messages come for ever, and the reply never.",
            "Gives up after its own time, and cancels: words are no progress.",
        ],
        &["R-187", "R-188", "R-192"],
        |_, carrier| {
            let message = br#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"soon"}}"#;
            for_ever(carrier, message)
        },
    )
    .ends(Expected::TimesOut),
    Case::carried(
        [
            "endless-progress",
            "Progress of the very request comes for ever (if it has a token), and the reply never.",
            "Gives up after the longest time that it gives a request with progress, and cancels.",
        ],
        &["R-187", "R-188", "R-192"],
        |seen, carrier| {
            let meta = seen.param("_meta").and_then(|meta| meta.get(crate::wire::key::PROGRESS_TOKEN));
            let token = meta.map_or("0", crate::jsonrpc::Json::as_str);
            let message = format!(
                r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{token},"progress":1}}}}"#
            );
            for_ever(carrier, message.as_bytes())
        },
    )
    .ends(Expected::TimesOut),
    Case::carried(
        [
            "silence",
            "Nothing comes, not even a status.",
            "Gives up after its own time, and cancels.",
        ],
        &["R-187", "R-188", "R-192"],
        |_, _| {
            let mut reply = Reply::json(Vec::new()).then(End::Silence);
            reply.steps.clear();
            reply
        },
    )
    .ends(Expected::TimesOut),
    Case::carried(
        [
            "silence-in-mid-reply",
            "Half of the reply comes, and then nothing.",
            "Gives up after its own time, and cancels.",
        ],
        &["R-187", "R-188", "R-192"],
        |seen, _| {
            let whole = seen.reply(r#"{"resultType":"complete","content":[]}"#);
            let half = whole.get(..whole.len() / 2).unwrap_or_default();
            Reply::json(half.into()).then(End::Silence)
        },
    )
    .ends(Expected::TimesOut),
];

fn many_asks(count: usize) -> String {
    let mut out = String::from(r#"{"resultType":"input_required","requestState":"s","inputRequests":{"k":"#);
    out.push_str(form!());
    for number in 1..count {
        out.push_str(&format!(r#","k{number}":{{"method":"roots/list"}}"#));
    }
    out.push_str("}}");
    out
}

fn endless(bytes: Vec<u8>) -> End {
    End::Endless(vec![Step::Bytes(bytes), Step::Pause(Duration::from_millis(20))])
}

fn for_ever(carrier: Carrier, message: &[u8]) -> Reply {
    let mut framed = Vec::new();
    match carrier {
        Carrier::Http => write_event(&mut framed, message),
        Carrier::Stdio => write_line(&mut framed, message),
    }
    Reply::events(framed.clone()).then(endless(framed))
}
