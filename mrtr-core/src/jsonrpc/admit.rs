//! Admission: one bounded pass over a message before anything else looks at it (G-38).
//!
//! Checks size, UTF-8, syntax, depth, the number of values and duplicate names (by decoded name, in every
//! object), and sorts the message into its kind. It never recurses and allocates for names only.

use alloc::{borrow::Cow, vec::Vec};

use super::{Json, JsonKind, Message, Notification, Request, RequestId, Response, lex, message};
use crate::{
    error::{ErrorCode, RpcError},
    limits::Limits,
};

/// Why a message was not admitted. For logs; the peer gets [`Refused::error`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// More bytes than `Limits::message_bytes`.
    #[error("message of {bytes} bytes is over the limit of {limit} (Limits::message_bytes)")]
    TooLarge {
        /// Bytes of the message.
        bytes: usize,
        /// The bound.
        limit: usize,
    },
    /// Not UTF-8 (R-007).
    #[error("message is not UTF-8")]
    NotUtf8,
    /// Not JSON.
    #[error("message is not JSON: byte {at}")]
    Syntax {
        /// Offset of the first byte that does not fit.
        at: usize,
    },
    /// Nested deeper than `Limits::depth`.
    #[error("message is nested deeper than {limit} (Limits::depth)")]
    TooDeep {
        /// The bound.
        limit: usize,
    },
    /// More values than `Limits::nodes`.
    #[error("message has more than {limit} values (Limits::nodes)")]
    TooManyNodes {
        /// The bound.
        limit: usize,
    },
    /// A name stands twice in one object (G-38).
    #[error("an object has the same name twice: byte {at}")]
    DuplicateName {
        /// Offset of the end of the object.
        at: usize,
    },
    /// An array at the top: batches do not exist (R-158).
    #[error("batches are not supported")]
    Batch,
    /// No JSON-RPC 2.0 message.
    #[error("not a JSON-RPC 2.0 message: {0}")]
    Shape(&'static str),
}

/// A message that was not admitted.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Refused {
    /// Why, for the log.
    pub reason: Refusal,
    /// The id, if the message is a request whose id could be read: echo it (R-003).
    pub id: Option<RequestId>,
}

impl Refused {
    /// What to tell the peer: `-32700` for what is no JSON, `-32600` for everything else (R-019).
    #[must_use]
    pub fn error(&self) -> RpcError {
        match self.reason {
            Refusal::NotUtf8 => {
                RpcError::new(ErrorCode::PARSE_ERROR, "Parse error: the message is not UTF-8")
            }
            Refusal::Syntax { at } => {
                RpcError::new(ErrorCode::PARSE_ERROR, alloc::format!("Parse error: not JSON at byte {at}"))
            }
            Refusal::TooLarge { .. }
            | Refusal::TooDeep { .. }
            | Refusal::TooManyNodes { .. }
            | Refusal::DuplicateName { .. }
            | Refusal::Batch
            | Refusal::Shape(_) => {
                RpcError::new(ErrorCode::INVALID_REQUEST, alloc::format!("Invalid request: {}", self.reason))
            }
        }
    }
}

/// Admits one message.
///
/// # Errors
///
/// [`Refused`] with the reason and, where it could be read, the id. An id is read even when another part of
/// the message is refused, except when the bytes are too many, not UTF-8 or not JSON.
pub fn admit<'a>(input: &'a [u8], limits: &Limits) -> Result<Message<'a>, Refused> {
    let refuse = |reason| Refused { reason, id: None };
    if input.len() > limits.message_bytes {
        return Err(refuse(Refusal::TooLarge { bytes: input.len(), limit: limits.message_bytes }));
    }
    let text = core::str::from_utf8(input).map_err(|_| refuse(Refusal::NotUtf8))?;
    match check_value(text, limits) {
        Ok(value) => sort(value),
        Err(
            reason @ (Refusal::TooDeep { .. } | Refusal::TooManyNodes { .. } | Refusal::DuplicateName { .. }),
        ) => Err(Refused { reason, id: salvage_id(text) }),
        Err(reason) => Err(refuse(reason)),
    }
}

/// The id of a message that breaks a bound: looked for among the members at the top only, once, without
/// trust in the rest. If it stands there twice, neither is it.
fn salvage_id(text: &str) -> Option<RequestId> {
    let at = lex::skip_space(text.as_bytes(), 0);
    let mut found = None;
    for (name, value) in Json::trusted(text.get(at..)?).members()? {
        if name == "id" {
            if found.is_some() {
                return None;
            }
            found = Some(RequestId::from_json(value)?);
        }
    }
    found
}

/// Sorts a checked value into its kind of message.
fn sort(value: Json<'_>) -> Result<Message<'_>, Refused> {
    let refuse = |reason, id| Err(Refused { reason, id });
    match value.kind() {
        JsonKind::Object => {}
        JsonKind::Array => return refuse(Refusal::Batch, None),
        JsonKind::Null | JsonKind::Bool | JsonKind::Number | JsonKind::String => {
            return refuse(Refusal::Shape("not an object"), None);
        }
    }
    let (mut version, mut id, mut method, mut params, mut result, mut error) =
        (None, None, None, None, None, None);
    for (name, member) in value.members().into_iter().flatten() {
        match &*name {
            "jsonrpc" => version = Some(member),
            "id" => id = Some(member),
            "method" => method = Some(member),
            "params" => params = Some(member),
            "result" => result = Some(member),
            "error" => error = Some(member),
            _ => {}
        }
    }
    let read = id.and_then(RequestId::from_json);
    if version.and_then(Json::as_string).as_deref() != Some("2.0") {
        return refuse(Refusal::Shape("`jsonrpc` is not \"2.0\""), read);
    }
    match (method, result, error) {
        (Some(method), None, None) => {
            let Some(method) = method.as_string() else {
                return refuse(Refusal::Shape("`method` is not a string"), read);
            };
            let params = match params {
                None => None,
                Some(value) if value.is_object() => Some(value),
                Some(_) => return refuse(Refusal::Shape("`params` is not an object"), read),
            };
            match (id, read) {
                (None, _) => Ok(Message::Notification(Notification { method, params })),
                (Some(_), Some(id)) => Ok(Message::Request(Request { id, method, params })),
                (Some(_), None) => refuse(Refusal::Shape("`id` is neither a string nor an integer"), None),
            }
        }
        (None, Some(result), None) => match read {
            Some(id) => Ok(Message::Response(Response { id: Some(id), outcome: Ok(result) })),
            None => refuse(Refusal::Shape("a result without a readable `id`"), None),
        },
        (None, None, Some(error)) => {
            let id = match id {
                None => None,
                Some(value) if value.is_null() => None,
                Some(_) if read.is_some() => read,
                Some(_) => return refuse(Refusal::Shape("`id` is neither a string nor an integer"), None),
            };
            match message::error_object(error) {
                Some(error) => Ok(Message::Response(Response { id, outcome: Err(error) })),
                None => refuse(Refusal::Shape("`error` has no integer `code` or no string `message`"), id),
            }
        }
        (None, None, None) => refuse(Refusal::Shape("neither `method` nor `result` nor `error`"), read),
        (Some(_), _, _) => refuse(Refusal::Shape("`method` beside `result` or `error`"), read),
        (None, Some(_), Some(_)) => refuse(Refusal::Shape("`result` beside `error`"), read),
    }
}

/// What stands at a position of the pass.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Expect {
    /// A value.
    Value,
    /// A value or `]`: just after `[`.
    ValueOrEnd,
    /// A name or `}`: just after `{`.
    NameOrEnd,
    /// A name: after a comma in an object.
    Name,
    /// A comma or the end of the container.
    CommaOrEnd,
}

/// A container that is still open: an array, or an object with the place of its first name.
#[derive(Clone, Copy)]
enum Frame {
    Array,
    Object { names_from: usize },
}

/// Checks that `text` is one JSON value, white space around it allowed, and within the bounds.
pub(super) fn check_value<'a>(text: &'a str, limits: &Limits) -> Result<Json<'a>, Refusal> {
    let bytes = text.as_bytes();
    let mut frames: Vec<Frame> = Vec::new();
    // The names of all open objects, one after another; an object's own are at the end when it closes.
    let mut names: Vec<Cow<'a, [u8]>> = Vec::new();
    let mut nodes = 0usize;
    let start = lex::skip_space(bytes, 0);
    let mut at = start;
    let mut expect = Expect::Value;
    loop {
        at = lex::skip_space(bytes, at);
        let Some(&byte) = bytes.get(at) else { return Err(Refusal::Syntax { at }) };
        match (expect, byte) {
            (Expect::Name | Expect::NameOrEnd, b'"') => {
                let end = check_string(bytes, at)?;
                names.push(name_bytes(bytes.get(at + 1..end - 1).unwrap_or_default()));
                at = lex::skip_space(bytes, end);
                if bytes.get(at) != Some(&b':') {
                    return Err(Refusal::Syntax { at });
                }
                at += 1;
                expect = Expect::Value;
                continue;
            }
            (Expect::NameOrEnd | Expect::CommaOrEnd, b'}')
            | (Expect::ValueOrEnd | Expect::CommaOrEnd, b']') => {
                match (frames.pop(), byte) {
                    (Some(Frame::Array), b']') => {}
                    (Some(Frame::Object { names_from }), b'}') => {
                        let own = names.get_mut(names_from..).unwrap_or_default();
                        own.sort_unstable();
                        if own.windows(2).any(|pair| matches!(pair, [a, b] if a == b)) {
                            return Err(Refusal::DuplicateName { at });
                        }
                        names.truncate(names_from);
                    }
                    _ => return Err(Refusal::Syntax { at }),
                }
                at += 1;
                expect = Expect::CommaOrEnd;
            }
            (Expect::CommaOrEnd, b',') => {
                at += 1;
                expect = match frames.last() {
                    Some(Frame::Object { .. }) => Expect::Name,
                    Some(Frame::Array) => Expect::Value,
                    None => return Err(Refusal::Syntax { at: at - 1 }),
                };
                continue;
            }
            (Expect::Value | Expect::ValueOrEnd, _) => {
                nodes += 1;
                if nodes > limits.nodes {
                    return Err(Refusal::TooManyNodes { limit: limits.nodes });
                }
                match byte {
                    b'{' | b'[' => {
                        if frames.len() >= limits.depth {
                            return Err(Refusal::TooDeep { limit: limits.depth });
                        }
                        at += 1;
                        if byte == b'{' {
                            frames.push(Frame::Object { names_from: names.len() });
                            expect = Expect::NameOrEnd;
                        } else {
                            frames.push(Frame::Array);
                            expect = Expect::ValueOrEnd;
                        }
                        continue;
                    }
                    b'"' => at = check_string(bytes, at)?,
                    b't' => at = check_word(bytes, at, b"true")?,
                    b'f' => at = check_word(bytes, at, b"false")?,
                    b'n' => at = check_word(bytes, at, b"null")?,
                    b'-' | b'0'..=b'9' => at = check_number(bytes, at)?,
                    _ => return Err(Refusal::Syntax { at }),
                }
                expect = Expect::CommaOrEnd;
            }
            _ => return Err(Refusal::Syntax { at }),
        }
        if frames.is_empty() {
            let rest = lex::skip_space(bytes, at);
            if rest != bytes.len() {
                return Err(Refusal::Syntax { at: rest });
            }
            return text.get(start..at).map(Json::trusted).ok_or(Refusal::Syntax { at: start });
        }
    }
}

/// The end of a string token that begins at `at`.
fn check_string(bytes: &[u8], at: usize) -> Result<usize, Refusal> {
    let mut at = at + 1;
    loop {
        match bytes.get(at) {
            Some(b'"') => return Ok(at + 1),
            Some(b'\\') => match bytes.get(at + 1) {
                Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => at += 2,
                Some(b'u') => {
                    let digits = bytes.get(at + 2..at + 6);
                    if !digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit)) {
                        return Err(Refusal::Syntax { at });
                    }
                    at += 6;
                }
                _ => return Err(Refusal::Syntax { at }),
            },
            Some(0..=0x1f) | None => return Err(Refusal::Syntax { at }),
            Some(_) => at += 1,
        }
    }
}

fn check_word(bytes: &[u8], at: usize, word: &[u8]) -> Result<usize, Refusal> {
    if bytes.get(at..at + word.len()) == Some(word) {
        Ok(at + word.len())
    } else {
        Err(Refusal::Syntax { at })
    }
}

fn check_number(bytes: &[u8], at: usize) -> Result<usize, Refusal> {
    let digits = |from: usize| {
        let mut end = from;
        while bytes.get(end).is_some_and(u8::is_ascii_digit) {
            end += 1;
        }
        if end == from { Err(Refusal::Syntax { at: from }) } else { Ok(end) }
    };
    let first = if bytes.get(at) == Some(&b'-') { at + 1 } else { at };
    let mut end = digits(first)?;
    if bytes.get(first) == Some(&b'0') && end > first + 1 {
        return Err(Refusal::Syntax { at: first + 1 });
    }
    if bytes.get(end) == Some(&b'.') {
        end = digits(end + 1)?;
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        end = digits(end + 1 + sign)?;
    }
    Ok(end)
}

/// A name as bytes for comparison: escapes decoded; lone surrogates, which are no text, in the generalised
/// three-byte form, so that they too are equal only to themselves.
fn name_bytes(inner: &[u8]) -> Cow<'_, [u8]> {
    if !inner.contains(&b'\\') {
        return Cow::Borrowed(inner);
    }
    let mut out = Vec::with_capacity(inner.len());
    let mut at = 0;
    let unit = |at: usize| -> Option<u32> {
        let digits = inner.get(at..at + 4)?;
        digits.iter().try_fold(0u32, |value, &byte| Some((value << 4) | char::from(byte).to_digit(16)?))
    };
    while let Some(&byte) = inner.get(at) {
        at += 1;
        if byte != b'\\' {
            out.push(byte);
            continue;
        }
        let escape = inner.get(at).copied().unwrap_or(b'\\');
        at += 1;
        match escape {
            b'n' => out.push(b'\n'),
            b't' => out.push(b'\t'),
            b'r' => out.push(b'\r'),
            b'b' => out.push(8),
            b'f' => out.push(12),
            b'u' => {
                let Some(mut scalar) = unit(at) else { break };
                at += 4;
                if (0xd800..0xdc00).contains(&scalar) && inner.get(at..at + 2) == Some(b"\\u") {
                    if let Some(low @ 0xdc00..=0xdfff) = unit(at + 2) {
                        scalar = 0x1_0000 + ((scalar - 0xd800) << 10) + (low - 0xdc00);
                        at += 6;
                    }
                }
                match char::from_u32(scalar) {
                    Some(character) => {
                        out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
                    }
                    None => {
                        let low = |bits: u32| 0x80 | u8::try_from(bits & 0x3f).unwrap_or(0);
                        out.extend_from_slice(&[0xed, low(scalar >> 6), low(scalar)]);
                    }
                }
            }
            other => out.push(other),
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(text: &str) -> Result<&'static str, Refusal> {
        match admit(text.as_bytes(), &Limits::default()) {
            Ok(Message::Request(_)) => Ok("request"),
            Ok(Message::Notification(_)) => Ok("notification"),
            Ok(Message::Response(_)) => Ok("response"),
            Err(refused) => Err(refused.reason),
        }
    }

    #[test]
    fn sorts_messages_into_their_kinds() {
        assert_eq!(kind(r#"{"jsonrpc":"2.0","id":1,"method":"m"}"#), Ok("request"));
        assert_eq!(kind(r#"{"jsonrpc":"2.0","method":"m","params":{}}"#), Ok("notification"));
        assert_eq!(kind(r#"{"jsonrpc":"2.0","id":"a","result":{}}"#), Ok("response"));
        assert_eq!(kind(r#"{"jsonrpc":"2.0","error":{"code":-1,"message":"m"}}"#), Ok("response"));
    }

    #[test]
    fn agrees_with_serde_json_on_what_is_json() {
        let pieces = [
            "{",
            "}",
            "[",
            "]",
            ",",
            ":",
            "\"a\"",
            "\"\\u00e9\"",
            "1",
            "-0.5e+3",
            "01",
            "1.",
            "tru",
            "true",
            " ",
        ];
        // Every sequence of up to four tokens.
        let mut stack = alloc::vec![alloc::string::String::new()];
        for _ in 0..4 {
            stack = stack
                .iter()
                .flat_map(|text| pieces.iter().map(move |piece| alloc::format!("{text}{piece}")))
                .collect();
            for text in &stack {
                let theirs = serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok();
                let ours = check_value(text, &Limits::default());
                assert_eq!(
                    matches!(ours, Ok(_) | Err(Refusal::DuplicateName { .. })),
                    theirs,
                    "{text}: {ours:?}"
                );
            }
        }
    }
}
