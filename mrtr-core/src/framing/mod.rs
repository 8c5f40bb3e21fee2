//! How messages stand in a stream of bytes: one a line (stdio, R-183), or one an event (HTTP, R-177…R-182).
//!
//! | | in | out |
//! |---|---|---|
//! | newline-delimited JSON | [`LineDecoder`] | [`write_line`] |
//! | event stream (WHATWG "server-sent events") | [`EventStreamDecoder`] | [`write_event`], [`write_comment`] |
//!
//! Both decoders are fed with [`push`](LineDecoder::push) and drained with `next` until it gives `None`; bytes
//! may be cut anywhere, also inside a character or between CR and LF. A peer cannot make them hold more than
//! their limit and the bytes of one push. What is too long is reported once and skipped, and the stream goes
//! on at the next line or event: one bad message costs one message.
//!
//! They look for boundaries only. Whether a line is JSON is for [`jsonrpc::admit`](crate::jsonrpc::admit) to
//! say; a client that meets a line that is none ignores it, and only a server answers it (B-81).
//!
//! ```
//! use mrtr_core::framing::{LineDecoder, write_line};
//!
//! let mut lines = LineDecoder::new(1024);
//! lines.push(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"meth");
//! assert!(lines.next().is_none());
//! lines.push(b"od\":\"ping\"}\r\n\n{}");
//! let line = lines.next().unwrap().unwrap();
//! assert_eq!(line, br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#);
//! assert!(lines.next().is_none());
//!
//! let mut out = Vec::new();
//! write_line(&mut out, b"{}");
//! assert_eq!(out, b"{}\n");
//! ```

mod event_stream;
#[cfg(any(fuzzing, feature = "test-utils"))]
pub mod fuzzing;
mod line;

use alloc::vec::Vec;

pub use event_stream::{Event, EventStreamDecoder, EventTooLarge};
pub use line::{LineDecoder, LineTooLong};

/// Appends a JSON message and a newline. Raw line breaks inside it are left out: in valid JSON they can only
/// be white space between tokens (R-183).
pub fn write_line(out: &mut Vec<u8>, message: &[u8]) {
    one_line(out, message);
    out.push(b'\n');
}

/// Appends an event that carries a JSON message, its `data` on one line (R-182). No event id: streams are not
/// resumed (R-181).
pub fn write_event(out: &mut Vec<u8>, message: &[u8]) {
    out.extend_from_slice(b"event: message\ndata: ");
    one_line(out, message);
    out.extend_from_slice(b"\n\n");
}

/// Appends a comment, which every reader ignores (R-180): the keep-alive of a stream that is silent for long.
/// Line breaks in `text` are left out.
pub fn write_comment(out: &mut Vec<u8>, text: &str) {
    out.push(b':');
    if !text.is_empty() {
        out.push(b' ');
        one_line(out, text.as_bytes());
    }
    out.extend_from_slice(b"\n\n");
}

/// Appends bytes without their line breaks, in one piece if there are none.
pub(crate) fn one_line(out: &mut Vec<u8>, bytes: &[u8]) {
    for piece in bytes.split(|byte| matches!(byte, b'\n' | b'\r')) {
        out.extend_from_slice(piece);
    }
}

/// A buffer that grew for one large message is given back when it is empty: idle connections stay cheap
/// (design decision 13).
const KEPT_WHEN_EMPTY: usize = 16 << 10;

fn clear(buffer: &mut Vec<u8>) {
    buffer.clear();
    buffer.shrink_to(KEPT_WHEN_EMPTY);
}
