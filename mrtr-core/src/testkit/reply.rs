//! A reply as it is carried: pieces, pauses, and how it ends.

use alloc::{borrow::Cow, string::String, vec::Vec};
use core::time::Duration;

use super::{case::Said, seen::Seen};
use crate::{
    error::{ErrorCode, RpcError},
    framing::{write_event, write_line},
    jsonrpc::write,
};

/// How messages are carried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums)]
pub enum Carrier {
    /// Streamable HTTP: a response of its own for each request.
    Http,
    /// Lines on a pipe.
    Stdio,
}

/// What is sent for one request.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reply {
    /// The HTTP status; not sent over stdio.
    pub status: u16,
    /// The HTTP headers, without `Content-Length`; not sent over stdio.
    pub headers: Vec<(&'static str, Cow<'static, str>)>,
    /// What is sent, piece by piece.
    pub steps: Vec<Step>,
    /// What comes after that.
    pub end: End,
}

/// A piece of a reply.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums)]
pub enum Step {
    /// These bytes, at once and by themselves.
    Bytes(Vec<u8>),
    /// Nothing for so long.
    Pause(Duration),
}

/// What comes after the last piece.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums)]
pub enum End {
    /// The body is at its end; a pipe stays open.
    Whole,
    /// The connection is cut before the body is at its end; the server on the pipe dies.
    Cut,
    /// Nothing, and nothing is closed. If there are no steps, not even the status is sent.
    Silence,
    /// These, again and again.
    Endless(Vec<Step>),
}

impl Reply {
    /// The bytes of all steps.
    #[must_use]
    pub fn whole(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for step in &self.steps {
            if let Step::Bytes(bytes) = step {
                out.extend_from_slice(bytes);
            }
        }
        out
    }

    /// A status without a body; over stdio nothing.
    pub(super) fn nothing(carrier: Carrier, status: u16) -> Option<Self> {
        (carrier == Carrier::Http).then(|| Self {
            status,
            headers: Vec::new(),
            steps: Vec::new(),
            end: End::Whole,
        })
    }

    /// Bytes of a body, or of lines.
    pub(super) fn bytes(media: &'static str, bytes: Vec<u8>) -> Self {
        Self {
            status: 200,
            headers: Vec::from([("Content-Type", Cow::Borrowed(media))]),
            steps: Vec::from([Step::Bytes(bytes)]),
            end: End::Whole,
        }
    }

    pub(super) fn json(bytes: Vec<u8>) -> Self {
        Self::bytes("application/json", bytes)
    }

    pub(super) fn events(bytes: Vec<u8>) -> Self {
        Self::bytes("text/event-stream", bytes)
    }

    pub(super) fn status(self, status: u16) -> Self {
        Self { status, ..self }
    }

    pub(super) fn then(self, end: End) -> Self {
        Self { end, ..self }
    }

    /// The same bytes, cut into pieces of these sizes, again and again, with a short pause between them.
    pub(super) fn cut_into(mut self, sizes: &[usize]) -> Self {
        let whole = self.whole();
        let mut rest = whole.as_slice();
        self.steps.clear();
        for size in sizes.iter().cycle() {
            let (piece, more) = rest.split_at((*size).clamp(1, rest.len().max(1)).min(rest.len()));
            self.steps.push(Step::Bytes(piece.into()));
            rest = more;
            if rest.is_empty() {
                break;
            }
            self.steps.push(Step::Pause(Duration::from_millis(1)));
        }
        self
    }

    /// Carries what was said as it should be carried.
    pub(super) fn of(seen: &Seen<'_>, carrier: Carrier, said: Said) -> Self {
        let (status, messages) = match said {
            Said::Result(result) => (200, Vec::from([seen.reply(&result)])),
            Said::Error { code, message, data } => {
                let mut error = RpcError::new(ErrorCode::new(code), message);
                error = data.into_iter().fold(error, |error, data| error.with_raw_data(data));
                let mut out = Vec::new();
                write::error(&mut out, Some(seen.id()), &error);
                let status = match code {
                    -32_022..=-32_020 => 400,
                    -32_601 => 404,
                    _ => 200,
                };
                (status, Vec::from([out]))
            }
            Said::Messages(messages) => (200, messages),
        };
        match (carrier, messages.as_slice()) {
            (Carrier::Http, [message]) => Self::json(message.clone()).status(status),
            (Carrier::Http, _) => Self::events(framed(&messages, write_event)),
            (Carrier::Stdio, _) => Self::json(framed(&messages, write_line)),
        }
    }
}

fn framed(messages: &[Vec<u8>], write: impl Fn(&mut Vec<u8>, &[u8])) -> Vec<u8> {
    let mut out = Vec::new();
    messages.iter().for_each(|message| write(&mut out, message));
    out
}

/// Text of a body that is not worth a file.
pub(super) fn text(text: impl Into<String>) -> Vec<u8> {
    text.into().into_bytes()
}
