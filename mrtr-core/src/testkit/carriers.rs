//! Lines, event streams, statuses, and connections that break.

use alloc::{borrow::Cow, vec::Vec};

use super::{
    Case, End, Expected, Reply, Step, manners,
    reply::text,
    seen::Seen,
    shapes::{form, interim_of},
};
use crate::framing::{write_event, write_line};

const BREAKS: Option<Expected> = Some(Expected::Breaks);
const COMPLETES: Option<Expected> = Some(Expected::Completes);
const REFUSES: Option<Expected> = Some(Expected::Refuses);

/// A case whose HTTP response is no reply.
macro_rules! no_reply {
    ($name:literal, $does:literal, $rules:expr, $carry:expr) => {
        Case::carried([$name, $does, "Says that this is no reply, and what it is instead."], $rules, $carry)
            .ends_over(REFUSES, None)
    };
}

pub(super) const CASES: &[Case] = &[
    Case::carried(
        [
            "split-stream",
            "The event stream comes in pieces of one to seven bytes: within characters, between CR and LF.",
            "Reads it as if it had come in one piece.",
        ],
        &["R-177", "R-182"],
        |seen, _| {
            let mut events = Vec::new();
            write_event(
                &mut events,
                br#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"z\u00fc \u20ac"}}"#,
            );
            events.extend_from_slice("event: message\r\ndata: ".as_bytes());
            events.extend_from_slice(&done(seen));
            events.extend_from_slice(b"\r\n\r\n");
            Reply::events(events).cut_into(&[1, 2, 7, 3, 5])
        },
    )
    .ends_over(COMPLETES, None),
    Case::carried(
        [
            "stream-with-everything",
            "The event stream has a byte order mark, comments, `id` and `retry`, empty events, events of other types, ends \
             of lines of all three kinds, and a message on several `data` lines.",
            "Reads the reply out of it.",
        ],
        &["R-180", "R-181"],
        |seen, _| {
            let mut events = "\u{feff}: hello\r\rretry: 10\nid: 7\n\ndata\n\nevent: other\ndata: {not json\n\nunknown: x\r\n\r\n"
                .as_bytes()
                .to_vec();
            // Between two members a line may end.
            let message = done(seen);
            let at = message.iter().position(|byte| *byte == b',').map_or(0, |at| at + 1);
            events.extend_from_slice(b"data:");
            events.extend_from_slice(message.get(..at).unwrap_or_default());
            events.extend_from_slice(b"\r\ndata: ");
            events.extend_from_slice(message.get(at..).unwrap_or_default());
            events.extend_from_slice(b"\r\n\r\n: that was it\n\n");
            Reply::events(events)
        },
    )
    .ends_over(COMPLETES, None),
    Case::carried(
        [
            "stream-without-reply",
            "The event stream ends in order before the reply.",
            "Takes the request for lost: tells it, or sends it anew if it may run twice.",
        ],
        &["R-096", "R-179", "G-29"],
        |_, _| {
            let mut events = Vec::new();
            write_event(&mut events, br#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"bye"}}"#);
            Reply::events(events)
        },
    )
    .ends_over(BREAKS, None),
    Case::carried(
        [
            "stream-cut",
            "The event stream is cut in the middle of the reply.",
            "Takes the request for lost. Half an event is none, even if it reads as a message.",
        ],
        &["R-096", "R-181", "G-29"],
        |seen, _| {
            let mut events = b"data: ".to_vec();
            events.extend_from_slice(&done(seen));
            events.push(b'\n');
            Reply::events(events).then(End::Cut)
        },
    )
    .ends_over(BREAKS, None),
    Case::carried(
        ["body-cut", "The body of the reply is cut.", "Takes the request for lost."],
        &["R-096", "G-29"],
        |seen, _| {
            let whole = done(seen);
            Reply::json(whole.get(..whole.len() - 9).unwrap_or_default().into()).then(End::Cut)
        },
    )
    .ends_over(BREAKS, None),
    Case::carried(
        [
            "json-called-events",
            "A JSON message is said to be an event stream.",
            "Finds no event in it: takes the request for lost, or refuses the reply.",
        ],
        &["R-177"],
        |seen, _| Reply::events(done(seen)),
    )
    .ends_over(BREAKS, None)
    .or(Expected::Refuses),
    no_reply!("events-called-json", "An event stream is said to be JSON.", &["R-177"], |seen, _| {
        let mut events = Vec::new();
        write_event(&mut events, &done(seen));
        Reply::json(events)
    }),
    no_reply!("page", "The response is a page of HTML with status 200.", &["R-177"], |_, _| {
        Reply::bytes("text/html; charset=utf-8", text("<!doctype html><title>Sign in</title>"))
    }),
    no_reply!("empty-body", "The response says JSON and is empty.", &["R-177"], |_, _| Reply::json(Vec::new())),
    no_reply!("accepted", "The response is a 202 without a body.", &["R-160", "R-177"], |_, _| {
        let mut reply = Reply::json(Vec::new()).status(202);
        reply.headers.clear();
        reply
    }),
    no_reply!("not-utf-8", "The reply is not UTF-8.", &["R-007"], |seen, _| {
        let mut message = done(seen);
        message.iter_mut().filter(|byte| **byte == b'd').for_each(|byte| *byte = 0xff);
        Reply::json(message)
    }),
    no_reply!("not-json", "The reply is no JSON.", &["R-158"], |_, _| Reply::json(text("{'jsonrpc':'2.0'}"))),
    Case::carried(
        [
            "redirect",
            "The response sends the client to another server.",
            "Does not follow: arguments, answers and tokens are for this server.",
        ],
        &["R-092"],
        |_, _| {
            let mut reply = Reply::json(Vec::new()).status(307);
            reply.headers = Vec::from([("Location", Cow::Borrowed("http://127.0.0.1:9/elsewhere"))]);
            reply
        },
    )
    .ends_over(REFUSES, None),
    no_reply!("status-400", "Status 400 with nothing that a modern server would say.", &["R-051"], |_, _| {
        Reply::bytes("text/plain", text("Bad Request")).status(400)
    }),
    no_reply!("status-401", "Status 401.", &["R-027"], |_, _| {
        let mut reply = Reply::json(text("{}")).status(401);
        reply.headers.push(("WWW-Authenticate", Cow::Borrowed("Bearer")));
        reply
    }),
    no_reply!("status-404", "Status 404 with a page.", &["R-027"], |_, _| {
        Reply::bytes("text/html", text("<h1>Not Found</h1>")).status(404)
    }),
    no_reply!("status-500", "Status 500 with a page.", &["R-027"], |_, _| {
        Reply::bytes("text/html", text("<h1>Internal Server Error</h1>")).status(500)
    }),
    no_reply!(
        "status-500-with-question",
        "Status 500, and the body is a question under the request's id.",
        &["R-027"],
        |seen, _| Reply::json(seen.reply(&interim_of(&[("k", form!())], Some("s")))).status(500)
    ),
    Case::carried(
        [
            "rubbish-lines",
            "Lines that are no messages come before the reply: a log line, bytes that are not UTF-8, blank lines, half a \
             message.",
            "Passes over them, and says nothing about them to the server.",
        ],
        &["R-183", "R-191"],
        |seen, _| {
            let mut lines = b"\n  \r\n2026-07-28 INFO starting up\n\xff\xfe\x00\n{\"jsonrpc\":\"2.0\",\"id\":\n[]\nnull\n\x1b[31mred\x1b[0m\n"
                .to_vec();
            write_line(&mut lines, &done(seen));
            Reply::json(lines)
        },
    )
    .ends_over(None, COMPLETES),
    Case::carried(
        [
            "split-lines",
            "Lines come in pieces of one to seven bytes, and end with CR LF.",
            "Reads them as if they had come in one piece.",
        ],
        &["R-183"],
        |seen, _| {
            let mut lines = br#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"z"}}"#.to_vec();
            lines.extend_from_slice(b"\r\n");
            lines.extend_from_slice(&done(seen));
            lines.extend_from_slice(b"\r\n");
            Reply::json(lines).cut_into(&[1, 2, 7, 3, 5])
        },
    )
    .ends_over(None, COMPLETES),
    Case::carried(
        [
            "half-line",
            "Half of the reply's line comes, and the other half a while later.",
            "Waits for the other half.",
        ],
        &["R-183"],
        |seen, _| {
            let mut line = Vec::new();
            write_line(&mut line, &done(seen));
            let (first, second) = line.split_at(line.len() / 2);
            let mut reply = Reply::json(first.into());
            reply.steps.push(Step::Pause(core::time::Duration::from_millis(500)));
            reply.steps.push(Step::Bytes(second.into()));
            reply
        },
    )
    .ends_over(None, COMPLETES),
    Case::carried(
        [
            "death",
            "The server dies without a word.",
            "Takes what is under way for lost, and starts the server anew for the next call.",
        ],
        &["R-096", "R-185", "G-29"],
        |_, _| {
            let mut reply = Reply::json(Vec::new()).then(End::Cut);
            reply.steps.clear();
            reply
        },
    )
    .ends(Expected::Breaks),
    Case::carried(
        [
            "death-in-mid-line",
            "The server dies in the middle of the reply's line.",
            "Takes what is under way for lost: half a line is no message.",
        ],
        &["R-096", "R-183", "R-185"],
        |seen, _| {
            let whole = done(seen);
            Reply::json(whole.get(..whole.len() / 2).unwrap_or_default().into()).then(End::Cut)
        },
    )
    .ends_over(None, BREAKS),
    Case::carried(
        [
            "death-in-mid-exchange",
            "The server asks, and dies when the answer comes.",
            "Takes the retry for lost. Sends it to a new process only if the call may run twice.",
        ],
        &["R-096", "R-185", "G-29"],
        |seen, carrier| {
            if seen.is_retry() {
                let mut reply = Reply::json(Vec::new()).then(End::Cut);
                reply.steps.clear();
                return reply;
            }
            let state = seen.trail(1, '0');
            let result = interim_of(&[("k", form!())], Some(&state));
            Reply::of(seen, carrier, super::case::Said::Result(result))
        },
    )
    .ends(Expected::Breaks),
];

/// The proper reply.
fn done(seen: &Seen<'_>) -> Vec<u8> {
    seen.reply(&manners::complete(seen).unwrap_or_default())
}
