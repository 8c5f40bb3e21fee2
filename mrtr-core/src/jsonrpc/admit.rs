//! Admission: one bounded pass over a message before anything else looks at it (G-38).
//!
//! Checks size and UTF-8, has `check` go over the text, and sorts the message into its kind. What it allocates
//! does not grow with the length of any string but the id's, which is kept to be echoed.

use alloc::string::String;

use super::{
    Json, JsonKind, Message, Notification, Request, RequestId, Response, check,
    ended::{self, Ended},
    lex, message,
    parts::{Admitted, Parts},
};
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
        /// The bound, in bytes.
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
        /// The bound, in levels.
        limit: usize,
    },
    /// More values than `Limits::nodes`.
    #[error("message has more than {limit} values (Limits::nodes)")]
    TooManyNodes {
        /// The bound, in values.
        limit: usize,
    },
    /// A name stands twice in one object (G-38).
    #[error("an object has the same name twice: byte {at}")]
    DuplicateName {
        /// Offset of the second of the two.
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
    /// The id, if the message is a response whose id could be read: the request with this id has failed.
    ///
    /// A message that has a method and brings a result or an error is both, and has both ids: it is the response to what
    /// waits for one under that id, and a request if nothing does. So neither side waits for what has come already.
    pub response_to: Option<RequestId>,
    wants_answer: bool,
    asks_or_tells: bool,
}

impl Refused {
    /// A response that was refused elsewhere.
    pub(crate) const fn of_response(reason: Refusal) -> Self {
        Self { reason, id: None, response_to: None, wants_answer: false, asks_or_tells: false }
    }

    /// Whether it has a method and brings nothing: it is a request or a notification, and no broken response.
    #[must_use]
    pub const fn asks_or_tells(&self) -> bool {
        self.asks_or_tells
    }

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

    /// Whether a server tells the peer at all: not if the message is plainly a notification (R-005) or a
    /// response. An error in reply to a broken response would be taken for the answer to a request of the
    /// peer's own that happens to have the same id. A client never answers (R-006, B-81).
    #[must_use]
    pub const fn wants_answer(&self) -> bool {
        self.wants_answer
    }
}

/// Admits one message.
///
/// # Errors
///
/// [`Refused`] with the reason and, where it could be read, the id. An id is read even when another part of
/// the message is refused, except when the bytes are too many, not UTF-8 or not JSON. Of a response it is read even from
/// what is not UTF-8 or not JSON, `NaN` for instance: whoever waits for it waits for nothing else.
pub fn admit<'a>(input: &'a [u8], limits: &Limits) -> Result<Message<'a>, Refused> {
    check_size(input, limits)?;
    let text = core::str::from_utf8(input).map_err(|_| not_utf8(input))?;
    outlined(text, limits, sort)
}

pub(super) fn check_size(input: &[u8], limits: &Limits) -> Result<(), Refused> {
    if input.len() > limits.message_bytes {
        let reason = Refusal::TooLarge { bytes: input.len(), limit: limits.message_bytes };
        return Err(Outline::default().refuse(reason));
    }
    Ok(())
}

pub(super) fn not_utf8(input: &[u8]) -> Refused {
    Outline::read(&String::from_utf8_lossy(input)).refuse_unread(Refusal::NotUtf8)
}

/// Checks the text, finds the members that JSON-RPC knows, and does `then` with them.
pub(super) fn outlined<'a, T>(
    text: &'a str,
    limits: &Limits,
    then: impl FnOnce(Json<'a>, &Outline<'a>) -> Result<T, Refused>,
) -> Result<T, Refused> {
    let mut outline = Outline::default();
    match check::check_objects(text, limits, &mut |object| outline.see(&object)) {
        Ok(value) => then(value, &outline),
        Err(
            reason @ (Refusal::TooDeep { .. } | Refusal::TooManyNodes { .. } | Refusal::DuplicateName { .. }),
        ) => {
            // The rest of the text is not checked and need not be JSON: only the outline is taken from it.
            Err(Outline::read(text).refuse(reason))
        }
        Err(reason) => Err(Outline::read(text).refuse_unread(reason)),
    }
}

/// Sorts a checked value into its kind of message.
pub(super) fn sort<'a>(value: Json<'a>, outline: &Outline<'a>) -> Result<Message<'a>, Refused> {
    let refuse = |what| Err(outline.refuse(Refusal::Shape(what)));
    let response = |id, outcome| Response { id, outcome, admitted: outline.admitted };
    match value.kind() {
        JsonKind::Object => {}
        JsonKind::Array => return Err(outline.refuse(Refusal::Batch)),
        JsonKind::Null | JsonKind::Bool | JsonKind::Number | JsonKind::String => {
            return refuse("not an object");
        }
    }
    if outline.version.and_then(Json::as_string).as_deref() != Some("2.0") {
        return refuse("`jsonrpc` is not \"2.0\"");
    }
    match (outline.method, outline.result, outline.error) {
        (Some(method), None, None) => {
            let Some(method) = method.as_string() else {
                return refuse("`method` is not a string");
            };
            let params = outline.params;
            if params.is_some_and(|params| !params.is_object()) {
                return refuse("`params` is not an object");
            }
            match outline.id {
                None => Ok(Message::Notification(Notification { method, params })),
                Some(id) => match RequestId::from_json(id) {
                    Some(id) => {
                        Ok(Message::Request(Request { id, method, params, admitted: outline.admitted }))
                    }
                    None => refuse("`id` is neither a string nor an integer"),
                },
            }
        }
        (None, Some(result), None) => match outline.id.and_then(RequestId::from_json) {
            Some(id) => Ok(Message::Response(response(Some(id), Ok(result)))),
            None => refuse("a result without a readable `id`"),
        },
        (None, None, Some(error)) => {
            let id = outline.id.filter(|id| !id.is_null()).map(RequestId::from_json);
            let Some(error) = message::error_object(error) else {
                return refuse("`error` has no integer `code` or no string `message`");
            };
            match id {
                None => Ok(Message::Response(response(None, Err(error)))),
                Some(Some(id)) => Ok(Message::Response(response(Some(id), Err(error)))),
                Some(None) => refuse("`id` is neither a string nor an integer"),
            }
        }
        (None, None, None) => refuse("neither `method` nor `result` nor `error`"),
        (Some(_), _, _) => refuse("`method` beside `result` or `error`"),
        (None, Some(_), Some(_)) => refuse("`result` beside `error`"),
    }
}

/// The members at the top of a message that JSON-RPC knows.
#[derive(Clone, Copy, Default)]
pub(super) struct Outline<'a> {
    pub(super) version: Option<Json<'a>>,
    pub(super) id: Option<Json<'a>>,
    /// It stood twice: then neither is the message's.
    pub(super) two_ids: bool,
    pub(super) method: Option<Json<'a>>,
    pub(super) params: Option<Json<'a>>,
    pub(super) result: Option<Json<'a>>,
    pub(super) error: Option<Json<'a>>,
    /// What is in `params` or in `result`: in the later, if a response has both.
    pub(super) admitted: Admitted<'a>,
}

impl<'a> Outline<'a> {
    /// Reads the members of the object that begins `text`. The text is not checked; so the members need not be
    /// JSON either.
    pub(super) fn read(text: &'a str) -> Self {
        let mut outline = Self::default();
        let bytes = text.as_bytes();
        let mut at = lex::skip_space(bytes, 0);
        let mut before = b'{';
        while bytes.get(at) == Some(&before) {
            let name = lex::skip_space(bytes, at + 1);
            if bytes.get(name) != Some(&b'"') {
                break;
            }
            let (name_end, plain) = lex::skip_string_plain(bytes, name);
            let colon = lex::skip_space(bytes, name_end);
            let start = lex::skip_space(bytes, colon + 1);
            let end = lex::skip_value(bytes, start);
            let token = text.get(name..name_end).unwrap_or("");
            let id = outline.id;
            if let Some(inside) = token.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'))
                && let Some(name) = ended::name(inside, plain)
            {
                outline.add(&name, Json::trusted(text.get(start..end).unwrap_or("")));
            }
            if end == bytes.len() {
                // The text was cut off here: of an id this may be the beginning of another one.
                outline.id = id;
            }
            at = lex::skip_space(bytes, end);
            before = b',';
        }
        outline
    }

    /// Takes note of what is in an object, if it is the message, or one of the two that are read of most messages.
    fn see(&mut self, object: &Ended<'_, 'a>) {
        if object.is_top() {
            object.members().for_each(|(name, member)| self.add(&name, member));
        } else if let Some((name, value)) = object.member()
            && matches!(&*name, "params" | "result")
        {
            let mut parts = Parts::default();
            object.members().for_each(|(name, part)| parts.see(&name, part));
            self.admitted = Admitted { object: Some(value), parts };
        }
    }

    /// Adds a member of the message, unless JSON-RPC does not know its name.
    fn add(&mut self, name: &str, member: Json<'a>) {
        let place = match name {
            "jsonrpc" => &mut self.version,
            "id" => {
                self.two_ids = self.id.is_some();
                &mut self.id
            }
            "method" => &mut self.method,
            "params" => &mut self.params,
            "result" => &mut self.result,
            "error" => &mut self.error,
            _ => return,
        };
        *place = Some(member);
    }

    /// Whether it brings a result or an error. Beside a method, one that is null is none: programs write it that have one
    /// type for all messages.
    pub(super) fn replies(&self) -> bool {
        let mut brought = self.result.into_iter().chain(self.error);
        brought.any(|brought| self.method.is_none() || !brought.is_null())
    }

    /// The refusal of this message. A message with a method is a request or a notification; one with a result or an
    /// error is a response; one with both is both; of anything else a server says what it thinks.
    fn refuse(&self, reason: Refusal) -> Refused {
        let id = self.id.filter(|_| !self.two_ids).and_then(RequestId::from_json);
        let (asks, replies) = (self.method.is_some(), self.replies());
        let response = replies && !asks;
        let notification =
            self.id.is_none() && self.method.is_some_and(|method| method.kind() == JsonKind::String);
        Refused {
            reason,
            response_to: id.clone().filter(|_| replies),
            id: id.filter(|_| !response),
            wants_answer: !response && !notification,
            asks_or_tells: asks && !replies,
        }
    }

    /// The refusal of what is no JSON. A server says so in any case, under no id (R-003, R-019).
    fn refuse_unread(&self, reason: Refusal) -> Refused {
        Refused { id: None, wants_answer: true, ..self.refuse(reason) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is no JSON may still say that it replies, and to what (B-81).
    #[test]
    fn what_a_message_is_that_is_no_json() {
        for (text, response_to, asks_or_tells) in [
            (r#"{"jsonrpc":"2.0","id":7,"result":{"x":NaN}}"#, Some(7), false),
            (r#"{"jsonrpc":"2.0","id":7,"error":{"code":1,}}"#, Some(7), false),
            (r#"{"jsonrpc":"2.0","id":7,"method":"m","params":{"x":NaN}}"#, None, true),
            (r#"{"jsonrpc":"2.0","method":"m","params":NaN}"#, None, true),
            ("NaN", None, false),
            // Cut off: no id that is not seen to its end.
            (r#"{"jsonrpc":"2.0","result":{},"id":7,"#, Some(7), false),
            (r#"{"jsonrpc":"2.0","result":{},"id":7"#, None, false),
            (r#"{"jsonrpc":"2.0","result":{},"id":"7"#, None, false),
        ] {
            let refused = admit(text.as_bytes(), &Limits::default()).unwrap_err();
            assert_eq!(refused.response_to, response_to.map(RequestId::from), "{text}");
            assert_eq!((refused.asks_or_tells(), refused.wants_answer()), (asks_or_tells, true), "{text}");
            assert_eq!(refused.id, None, "{text}");
        }
    }

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
        let mut stack = alloc::vec![String::new()];
        for _ in 0..4 {
            stack = stack
                .iter()
                .flat_map(|text| pieces.iter().map(move |piece| alloc::format!("{text}{piece}")))
                .collect();
            for text in &stack {
                let theirs = serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok();
                let ours = check::check_value(text, &Limits::default());
                assert_eq!(
                    matches!(ours, Ok(_) | Err(Refusal::DuplicateName { .. })),
                    theirs,
                    "{text}: {ours:?}"
                );
            }
        }
    }
}
