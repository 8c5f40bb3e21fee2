//! The body of a reply: one JSON message, or an event stream from the first notification on.

use alloc::vec::Vec;

use super::{
    ReplyClass,
    headers::name,
    media::{Accepts, EVENT_STREAM, JSON},
};
use crate::framing::{one_line, write_comment, write_event};

/// Status and headers of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReplyHead {
    /// The HTTP status.
    pub status: u16,
    /// What the body is.
    pub content: Content,
}

/// What a reply's body is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Content {
    /// There is none.
    Empty,
    /// One JSON message; the whole body is known.
    Json,
    /// Events, sent as they come.
    EventStream,
}

impl ReplyHead {
    /// The headers, names and values. Nothing of a reply may be stored: it answers one person's request. What
    /// carries a stream shall not hold it back to fill a buffer or to compress it (R-180).
    #[must_use]
    pub const fn headers(&self) -> &'static [(&'static str, &'static str)] {
        match self.content {
            Content::Empty => &[(CACHE_CONTROL, "no-store")],
            Content::Json => &[(name::CONTENT_TYPE, JSON), (CACHE_CONTROL, "no-store")],
            Content::EventStream => &[
                (name::CONTENT_TYPE, EVENT_STREAM),
                (CACHE_CONTROL, "no-store, no-transform"),
                ("X-Accel-Buffering", "no"),
            ],
        }
    }
}

const CACHE_CONTROL: &str = "Cache-Control";

/// Turns what a request leads to into status, headers and body.
///
/// ```text
///              notification, keep_alive              finish
///  Unopened ───────────────────────────▶ Stream ─────────────────▶ Ended
///     │                                  200, events               last event
///     └──────────────────────────────────────────────────────────▶ Ended
///              finish: the class's status, one JSON message
/// ```
///
/// The stream opens at the first notification, so that an error found before it still has its own status; an
/// error found later is an event on a 200. Every method appends to `out` what is to be sent now, and gives the
/// head if it has to go first. After the end nothing is appended (R-179, R-196).
///
/// ```
/// use mrtr_core::http::{Accepts, Content, ReplyBody, ReplyClass};
///
/// let mut body = ReplyBody::new(Accepts::BOTH);
/// let mut out = Vec::new();
/// let head = body.notification(br#"{"jsonrpc":"2.0","method":"notifications/progress"}"#, &mut out).unwrap();
/// assert_eq!((head.status, head.content), (200, Content::EventStream));
/// assert!(body.finish(ReplyClass::Result, br#"{"jsonrpc":"2.0","id":1,"result":{}}"#, &mut out).is_none());
/// assert!(body.is_ended());
/// assert!(out.ends_with(b"event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n\n"));
/// ```
#[derive(Clone, Debug)]
pub struct ReplyBody {
    accepts: Accepts,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Unopened,
    Stream,
    Ended,
}

impl ReplyBody {
    /// A reply to a client that reads what `accepts` says.
    #[must_use]
    pub const fn new(accepts: Accepts) -> Self {
        Self { accepts, state: State::Unopened }
    }

    /// A notification about the request, while it runs (R-178). Dropped if the client reads no streams.
    #[must_use]
    pub fn notification(&mut self, message: &[u8], out: &mut Vec<u8>) -> Option<ReplyHead> {
        self.event(out, |out| write_event(out, message))
    }

    /// A comment, so that nobody takes a silent connection for a dead one (R-180). It opens the stream, after
    /// which every status is 200: send the first one late. Nothing if the client reads no streams.
    #[must_use]
    pub fn keep_alive(&mut self, out: &mut Vec<u8>) -> Option<ReplyHead> {
        self.event(out, |out| write_comment(out, ""))
    }

    /// The response, which is the last thing (R-179), or the end of an accepted notification, which has no
    /// body (R-160; `message` is not looked at).
    #[must_use]
    pub fn finish(&mut self, class: ReplyClass, message: &[u8], out: &mut Vec<u8>) -> Option<ReplyHead> {
        let before = core::mem::replace(&mut self.state, State::Ended);
        let status = class.status();
        let content = match before {
            State::Ended => return None,
            State::Stream => {
                write_event(out, message);
                return None;
            }
            State::Unopened if class == ReplyClass::Accepted => Content::Empty,
            State::Unopened if !self.accepts.json && self.accepts.event_stream && status == 200 => {
                write_event(out, message);
                Content::EventStream
            }
            State::Unopened => {
                one_line(out, message);
                Content::Json
            }
        };
        Some(ReplyHead { status, content })
    }

    /// Whether the response was given. The body ends here.
    #[must_use]
    pub fn is_ended(&self) -> bool {
        self.state == State::Ended
    }

    /// Writes to the stream, which is opened if it is not yet open. Nothing if there can be none.
    fn event(&mut self, out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) -> Option<ReplyHead> {
        let head = match self.state {
            State::Stream => None,
            State::Unopened if self.accepts.event_stream => {
                self.state = State::Stream;
                Some(ReplyHead { status: 200, content: Content::EventStream })
            }
            State::Unopened | State::Ended => return None,
        };
        write(out);
        head
    }
}
