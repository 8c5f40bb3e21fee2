//! What people answer, checked before it is kept: nothing goes out that the peer would have to refuse.

use alloc::{borrow::Cow, string::String, vec::Vec};

use super::text;
use crate::{
    form::{Invalid, Schema},
    jsonrpc::{Json, JsonKind, Refusal, write},
    limits::Limits,
    wire::{Action, Answer, AnswerFault, AskKind, InputRequest, read_answer},
};

/// An answer to one ask.
///
/// A refusal is one that somebody made: if nobody did (the dialog could not be shown, nobody is there), do not
/// answer at all and [abandon](super::Exchange::abandon) the exchange (R-094, B-63).
///
/// `Debug` shows what kind of answer it is and its size.
#[derive(Clone)]
pub struct InputResponse<'a>(Given<'a>);

#[derive(Clone)]
enum Given<'a> {
    Accept(Cow<'a, str>),
    AcceptedUrl,
    Refusal(Action),
    Sampling(Cow<'a, str>),
    Roots(Cow<'a, str>),
    Result(Json<'a>),
}

/// Why an answer was not taken. The exchange is as it was.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AnswerError {
    /// No ask of this round has that key.
    #[error("this round has no ask with that key")]
    UnknownKey,
    /// The ask is of another kind than the answer.
    #[error("the ask is of the kind {0}, which is not answered so")]
    WrongKind(AskKind),
    /// Something that no peer would take: a name twice, or a bound of this client broken.
    #[error("answer: {0}")]
    Json(Refusal),
    /// The answer's structure does not fit.
    #[error("answer{0}")]
    Structure(#[from] AnswerFault),
    /// The content is not what the form asks for: every field at fault.
    #[error("answer.content: {0}")]
    Fields(#[from] Invalid),
    /// A member of the content that no form may have, which the schema that was asked with does not forbid.
    #[error("answer.content[{member:?}] {problem}")]
    Content {
        /// The member's name, at most 64 characters of it.
        member: String,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// More bytes than the limit.
    #[error("answer of {bytes} bytes is over the limit of {limit} (Limits::answer_bytes)")]
    TooLarge {
        /// Bytes of the answer.
        bytes: usize,
        /// The bound, in bytes.
        limit: usize,
    },
}

impl<'a> InputResponse<'a> {
    /// Somebody filled in a form: `content` is an object of strings, numbers, booleans and lists of strings.
    #[must_use]
    pub fn accept(content: Json<'a>) -> Self {
        Self(Given::Accept(Cow::Borrowed(content.as_str())))
    }

    /// Somebody agreed to open the url. No content goes with it.
    #[must_use]
    pub const fn accepted_url() -> Self {
        Self(Given::AcceptedUrl)
    }

    /// Somebody said no, to a form or a url.
    #[must_use]
    pub const fn decline() -> Self {
        Self(Given::Refusal(Action::Decline))
    }

    /// Somebody dismissed a form or a url without a choice, or the form could not be shown as it is (G-16).
    #[must_use]
    pub const fn cancel() -> Self {
        Self(Given::Refusal(Action::Cancel))
    }

    /// A model's reply: an object with `role`, `content` and `model`.
    #[must_use]
    pub fn sampling(result: Json<'a>) -> Self {
        Self(Given::Sampling(Cow::Borrowed(result.as_str())))
    }

    /// The permitted roots: an array of objects with a `uri` that begins with `file://`.
    #[must_use]
    pub fn roots(list: Json<'a>) -> Self {
        Self(Given::Roots(Cow::Borrowed(list.as_str())))
    }

    /// A whole answer as it stands on the wire (`{"action":"accept","content":{…}}`), read by the kind of the
    /// ask. Unknown members are kept; content that does not belong there is dropped.
    #[must_use]
    pub const fn from_wire(result: Json<'a>) -> Self {
        Self(Given::Result(result))
    }
}

impl InputResponse<'static> {
    /// [`InputResponse::accept`] with a value of your own.
    ///
    /// # Errors
    ///
    /// If the value cannot be written as JSON.
    pub fn accept_value<T: serde::Serialize + ?Sized>(content: &T) -> Result<Self, serde_json::Error> {
        serde_json::to_string(content).map(|text| Self(Given::Accept(Cow::Owned(text))))
    }
}

impl core::fmt::Debug for InputResponse<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let (name, bytes) = match &self.0 {
            Given::Accept(text) => ("accept", text.len()),
            Given::AcceptedUrl => ("accepted_url", 0),
            Given::Refusal(action) => (action.name(), 0),
            Given::Sampling(text) => ("sampling", text.len()),
            Given::Roots(text) => ("roots", text.len()),
            Given::Result(json) => ("from_wire", json.as_str().len()),
        };
        write!(f, "InputResponse({name}, {bytes} bytes)")
    }
}

/// An answer that was taken: its text for the wire, and what was done if it is an elicitation.
pub(super) struct Answered {
    pub(super) text: String,
    pub(super) action: Option<Action>,
}

/// Checks an answer against its ask and writes it down.
pub(super) fn check(
    ask: &InputRequest<'_>,
    response: &InputResponse<'_>,
    limits: &Limits,
) -> Result<Answered, AnswerError> {
    let mut out = Vec::new();
    let action = match (&response.0, ask.kind()) {
        (Given::Accept(content), AskKind::Form) => {
            let content = Json::trusted(content);
            check_content(ask, content)?;
            elicited(&mut out, Action::Accept, Some(content), None);
            Some(Action::Accept)
        }
        (Given::AcceptedUrl, AskKind::Url) => {
            elicited(&mut out, Action::Accept, None, None);
            Some(Action::Accept)
        }
        (Given::Refusal(action), AskKind::Form | AskKind::Url) => {
            elicited(&mut out, *action, None, None);
            Some(*action)
        }
        (Given::Sampling(result), AskKind::Sampling) => {
            read_answer(AskKind::Sampling, Json::trusted(result))?;
            write::one_line(&mut out, result);
            None
        }
        (Given::Roots(list), AskKind::Roots) => {
            out.extend_from_slice(b"{\"roots\":");
            write::one_line(&mut out, list);
            out.push(b'}');
            None
        }
        (Given::Result(result), kind) => match read_answer(kind, *result)? {
            Answer::Form { action, content } => {
                let content = (action == Action::Accept).then_some(content);
                if let Some(content) = content {
                    check_content(ask, content)?;
                }
                elicited(&mut out, action, content, Some(*result));
                Some(action)
            }
            Answer::Url(action) => {
                elicited(&mut out, action, None, Some(*result));
                Some(action)
            }
            Answer::Sampling(_) | Answer::Roots(_) => {
                write::one_line(&mut out, result.as_str());
                None
            }
        },
        (
            Given::Accept(_) | Given::AcceptedUrl | Given::Refusal(_) | Given::Sampling(_) | Given::Roots(_),
            kind,
        ) => return Err(AnswerError::WrongKind(kind)),
    };
    if out.len() > limits.answer_bytes {
        return Err(AnswerError::TooLarge { bytes: out.len(), limit: limits.answer_bytes });
    }
    let text = text::into_string(out);
    // The parts may come from a looser check than this client's, or from an encoder. Flat content of a checked
    // value can only be over the bounds on nesting and values.
    let flat = matches!(
        response.0,
        Given::Accept(Cow::Borrowed(_)) | Given::AcceptedUrl | Given::Refusal(_) if limits.depth > 2 && text.len() <= limits.nodes
    );
    if !flat {
        let whole = Json::parse(&text, limits).map_err(AnswerError::Json)?;
        if ask.kind() == AskKind::Roots {
            read_answer(AskKind::Roots, whole)?;
        }
    }
    Ok(Answered { text, action })
}

/// Appends an elicitation's answer, with the further members that `relayed` has.
fn elicited(out: &mut Vec<u8>, action: Action, content: Option<Json<'_>>, relayed: Option<Json<'_>>) {
    out.reserve_exact(20 + content.map_or(0, |content| content.as_str().len() + 11));
    out.extend_from_slice(b"{\"action\":\"");
    out.extend_from_slice(action.name().as_bytes());
    out.push(b'"');
    if let Some(content) = content {
        out.extend_from_slice(b",\"content\":");
        write::one_line(out, content.as_str());
    }
    for member in relayed.and_then(text::members).into_iter().flatten() {
        if !member.is_called("action") && !member.is_called("content") {
            out.push(b',');
            member.write(out);
        }
    }
    out.push(b'}');
}

/// Checks content before it is sent, as it is: what holds for that of any form, flat and without null, and
/// the schema that was asked with, unless that is outside the form language (G-16).
fn check_content(ask: &InputRequest<'_>, content: Json<'_>) -> Result<(), AnswerError> {
    let Some(members) = content.members() else {
        return Err(AnswerFault { path: ".content", problem: "is not an object" }.into());
    };
    if let Some(Ok(schema)) = ask.requested_schema().map(Schema::read) {
        schema.hold_against(content, |_, _| {})?;
    }
    for (name, value) in members {
        let flat = match value.kind() {
            JsonKind::String | JsonKind::Number | JsonKind::Bool => true,
            JsonKind::Array => {
                value.items().into_iter().flatten().all(|item| item.kind() == JsonKind::String)
            }
            JsonKind::Null | JsonKind::Object => false,
        };
        if !flat {
            let problem = "is not a string, number, boolean or list of strings";
            return Err(AnswerError::Content { member: text::excerpt(&name), problem });
        }
    }
    Ok(())
}
