//! A session's stream as the body of an HTTP response.

use alloc::vec::Vec;

use super::Transmit;
use crate::http::{Accepts, ReplyBody, ReplyClass, ReplyHead};

/// Turns the messages of one stream into status, headers and body, as [`ReplyBody`] does in the modern era: JSON if
/// the response is all there is, an event stream otherwise. Events carry ids, so that the stream can be resumed
///
#[derive(Clone, Debug)]
pub struct StreamBody {
    body: ReplyBody,
    accepts: Accepts,
    open: bool,
}

impl StreamBody {
    /// The response to a POST of a client that reads what `accepts` says.
    #[must_use]
    pub const fn new(accepts: Accepts) -> Self {
        Self { body: ReplyBody::new(accepts), accepts, open: false }
    }

    /// The response to a GET: an event stream at once. What is appended to `out` goes first.
    #[must_use]
    pub fn for_get(out: &mut Vec<u8>) -> (Self, ReplyHead) {
        let mut body = Self::new(Accepts::EVENT_STREAM);
        body.open = true;
        let head = body.body.keep_alive(out);
        (body, head.unwrap_or(ReplyHead { status: 200, content: crate::http::Content::EventStream }))
    }

    /// Appends a message; gives the head if it has to go first.
    #[must_use]
    pub fn push(&mut self, transmit: &Transmit, out: &mut Vec<u8>) -> Option<ReplyHead> {
        match (transmit.last, transmit.bytes.is_empty()) {
            // The client has cancelled the call: there is nothing to say.
            (true, true) if self.open => {
                self.open = false;
                None
            }
            (true, true) => self.body.finish(ReplyClass::Accepted, b"", out),
            (true, false) => {
                if self.open || !self.accepts.json {
                    transmit.write_event_id(out);
                }
                self.open = false;
                self.body.finish(ReplyClass::Result, &transmit.bytes, out)
            }
            (false, _) if !self.accepts.event_stream => None,
            (false, _) => {
                self.open = true;
                transmit.write_event_id(out);
                self.body.notification(&transmit.bytes, out)
            }
        }
    }

    /// A comment, so that nobody takes a silent connection for a dead one while a person thinks. It opens
    /// the stream. Nothing if the client reads no streams.
    #[must_use]
    pub fn keep_alive(&mut self, out: &mut Vec<u8>) -> Option<ReplyHead> {
        self.open |= self.accepts.event_stream;
        self.body.keep_alive(out)
    }
}
