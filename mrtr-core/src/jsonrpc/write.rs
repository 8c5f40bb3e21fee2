//! Appends JSON and whole messages to a buffer. What is written is one line (R-182, R-183).

use alloc::vec::Vec;

use super::{RequestId, lex};
use crate::error::RpcError;

/// Appends a string with the escapes JSON demands and no others.
pub(crate) fn string(out: &mut Vec<u8>, text: &str) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    let bytes = text.as_bytes();
    out.push(b'"');
    let mut from = 0;
    loop {
        let end = lex::skip_plain(bytes, from);
        out.extend_from_slice(bytes.get(from..end).unwrap_or_default());
        let Some(&byte) = bytes.get(end) else { break };
        from = end + 1;
        let short = match byte {
            b'"' | b'\\' => byte,
            b'\n' => b'n',
            b'\r' => b'r',
            b'\t' => b't',
            8 => b'b',
            12 => b'f',
            _ => {
                out.extend_from_slice(b"\\u00");
                out.push(HEX.get(usize::from(byte >> 4)).copied().unwrap_or(b'0'));
                out.push(HEX.get(usize::from(byte & 15)).copied().unwrap_or(b'0'));
                continue;
            }
        };
        out.extend_from_slice(&[b'\\', short]);
    }
    out.push(b'"');
}

/// Appends a string that needs no escapes: a word of the protocol.
pub(crate) fn word(out: &mut Vec<u8>, word: &str) {
    out.push(b'"');
    out.extend_from_slice(word.as_bytes());
    out.push(b'"');
}

/// Appends an integer.
pub(crate) fn integer(out: &mut Vec<u8>, number: i64) {
    if number < 0 {
        out.push(b'-');
    }
    let (mut digits, mut left) = ([0; 19], number.unsigned_abs());
    let mut from = digits.len();
    for digit in digits.iter_mut().rev() {
        // Less than ten.
        *digit = b'0' + (left % 10) as u8;
        left /= 10;
        from -= 1;
        if left == 0 {
            break;
        }
    }
    out.extend_from_slice(digits.get(from..).unwrap_or_default());
}

/// Appends JSON text with its line breaks removed; the text is valid JSON, where a raw line break can only
/// be white space between tokens. `RawValue`s that callers pass through may be pretty-printed (R-182).
pub(crate) fn one_line(out: &mut Vec<u8>, json: &str) {
    // No byte of valid JSON is below a space but white space, of which there mostly is none.
    if json.bytes().fold(u8::MAX, u8::min) < b' ' {
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

/// Appends a whole error response; without an id the member is left out, never null (R-003).
pub fn error(out: &mut Vec<u8>, id: Option<&RequestId>, error: &RpcError) {
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

/// Appends `notifications/cancelled` (R-188).
pub(crate) fn cancelled(out: &mut Vec<u8>, id: &RequestId, reason: &str) {
    out.extend_from_slice(
        b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":",
    );
    id.write(out);
    if !reason.is_empty() {
        out.extend_from_slice(b",\"reason\":");
        string(out, reason);
    }
    out.extend_from_slice(b"}}");
}

#[cfg(test)]
mod tests {
    use alloc::string::String;

    use super::*;
    use crate::error::ErrorCode;

    fn written(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        assert!(serde_json::from_slice::<serde::de::IgnoredAny>(&out).is_ok());
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn strings_have_the_escapes_that_json_demands() {
        let every: String = (0..0x800).filter_map(char::from_u32).collect();
        // Escapes at every distance from the start, because runs are found in words.
        for from in every.char_indices().map(|(at, _)| at).take(300) {
            let text = &every[from..];
            assert_eq!(written(|out| string(out, text)), serde_json::to_string(text).unwrap());
        }
        assert_eq!(written(|out| string(out, "")), "\"\"");
        assert_eq!(written(|out| string(out, "\u{7f}\u{2028}😀/")), "\"\u{7f}\u{2028}😀/\"");
    }

    #[test]
    fn integers_are_written_to_the_digit() {
        for number in [0, 1, -1, i64::MAX, i64::MIN] {
            assert_eq!(written(|out| integer(out, number)), alloc::format!("{number}"));
        }
    }

    /// R-003: an error without an id has no such member. R-188: what a cancellation is. R-182, R-183: every message is one line.
    #[test]
    fn r_182_messages_are_one_line() {
        let mut fault = RpcError::new(ErrorCode::INVALID_PARAMS, "a\nb");
        assert_eq!(
            written(|out| error(out, None, &fault)),
            r#"{"jsonrpc":"2.0","error":{"code":-32602,"message":"a\nb"}}"#
        );
        fault.data = Some("{\r\n  \"x\": [\n1\n]\n}".into());
        assert_eq!(
            written(|out| error(out, Some(&RequestId::from("i")), &fault)),
            r#"{"jsonrpc":"2.0","id":"i","error":{"code":-32602,"message":"a\nb","data":{  "x": [1]}}}"#
        );
        assert_eq!(
            written(|out| notification(out, "n\"", "{\n}")),
            r#"{"jsonrpc":"2.0","method":"n\"","params":{}}"#
        );
        assert_eq!(
            written(|out| cancelled(out, &RequestId::from(7), "a\nb")),
            r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7,"reason":"a\nb"}}"#
        );
        assert_eq!(
            written(|out| cancelled(out, &RequestId::from("i"), "")),
            r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"i"}}"#
        );
        let result = |out: &mut Vec<u8>| {
            result_head(out, &RequestId::from(7));
            out.extend_from_slice(b"{}}");
        };
        assert_eq!(written(result), r#"{"jsonrpc":"2.0","id":7,"result":{}}"#);
    }
}
