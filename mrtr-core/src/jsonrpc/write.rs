//! Appends JSON and whole messages to a buffer. What is written is one line.

use alloc::vec::Vec;

use super::{RequestId, lex};
use crate::error::RpcError;

/// Appends a string with the escapes JSON demands and no others.
pub(crate) fn string(out: &mut Vec<u8>, text: &str) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    out.push(b'"');
    let bytes = text.as_bytes();
    let mut from = 0;
    loop {
        let at = lex::skip_plain(bytes, from);
        out.extend_from_slice(bytes.get(from..at).unwrap_or_default());
        let Some(&byte) = bytes.get(at) else { break };
        from = at + 1;
        let short = match byte {
            b'\n' => b'n',
            b'\r' => b'r',
            b'\t' => b't',
            8 => b'b',
            12 => b'f',
            0..=0x1f => {
                out.extend_from_slice(b"\\u00");
                out.push(HEX.get(usize::from(byte >> 4)).copied().unwrap_or(b'0'));
                out.push(HEX.get(usize::from(byte & 15)).copied().unwrap_or(b'0'));
                continue;
            }
            // A quote or a backslash.
            other => other,
        };
        out.extend_from_slice(&[b'\\', short]);
    }
    out.push(b'"');
}

/// Appends an integer.
pub(crate) fn integer(out: &mut Vec<u8>, number: i64) {
    use core::fmt::Write as _;
    struct Sink<'a>(&'a mut Vec<u8>);
    impl core::fmt::Write for Sink<'_> {
        fn write_str(&mut self, text: &str) -> core::fmt::Result {
            self.0.extend_from_slice(text.as_bytes());
            Ok(())
        }
    }
    // Writing to a Vec cannot fail.
    let _ = write!(Sink(out), "{number}");
}

/// Appends JSON text with its line breaks removed; the text is valid JSON, where a raw line break can only
/// be white space between tokens. `RawValue`s that callers pass through may be pretty-printed.
pub(crate) fn one_line(out: &mut Vec<u8>, json: &str) {
    if json.bytes().any(|byte| matches!(byte, b'\n' | b'\r')) {
        out.extend(json.bytes().filter(|byte| !matches!(byte, b'\n' | b'\r')));
    } else {
        out.extend_from_slice(json.as_bytes());
    }
}

/// Appends `{"jsonrpc":"2.0","id":…,"result":`; the caller adds the result and `}`.
pub(crate) fn result_head(out: &mut Vec<u8>, id: &RequestId) {
    out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
    id.write(out);
    out.extend_from_slice(b",\"result\":");
}

/// Appends a whole error response; without an id the member is left out, never null.
pub(crate) fn error(out: &mut Vec<u8>, id: Option<&RequestId>, error: &RpcError) {
    out.extend_from_slice(b"{\"jsonrpc\":\"2.0\"");
    if let Some(id) = id {
        out.extend_from_slice(b",\"id\":");
        id.write(out);
    }
    out.extend_from_slice(b",\"error\":{\"code\":");
    integer(out, error.code.get());
    out.extend_from_slice(b",\"message\":");
    string(out, &error.message);
    if let Some(data) = &error.data {
        out.extend_from_slice(b",\"data\":");
        one_line(out, data);
    }
    out.extend_from_slice(b"}}");
}

/// Appends a whole notification. `params` is JSON text of an object.
pub(crate) fn notification(out: &mut Vec<u8>, method: &str, params: &str) {
    out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"method\":");
    string(out, method);
    out.extend_from_slice(b",\"params\":");
    one_line(out, params);
    out.push(b'}');
}
