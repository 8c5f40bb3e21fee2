//! What a client answers: one entry of `inputResponses`, decoded by the kind that was asked (R-079, R-128…R-131,
//! There is no discriminator in the value itself.

use crate::jsonrpc::{Json, JsonKind};

use super::AskKind;

/// What a person did with an elicitation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(clippy::exhaustive_enums)]
pub enum Action {
    /// Said yes: the form's content, or consent to open the url.
    Accept,
    /// Said no.
    Decline,
    /// Said nothing: dismissed, or it could not be shown.
    Cancel,
}

impl Action {
    /// The word on the wire.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Accept => "accept",
            Self::Decline => "decline",
            Self::Cancel => "cancel",
        }
    }

    /// Reads the word on the wire.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "accept" => Some(Self::Accept),
            "decline" => Some(Self::Decline),
            "cancel" => Some(Self::Cancel),
            _ => None,
        }
    }
}

/// An answer whose structure fits the kind of ask it answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums)]
pub enum Answer<'a> {
    /// To a form: `content` is there on accept only, an object; a missing or null one reads as `{}` (G-19).
    /// Content of a refusal is ignored.
    Form {
        /// What the person did.
        action: Action,
        /// What they filled in; `{}` unless accepted.
        content: Json<'a>,
    },
    /// To a url: what the person did. Accept is consent to open it, not completion.
    Url(Action),
    /// To a sampling ask: the whole `CreateMessageResult`.
    Sampling(Json<'a>),
    /// To a roots ask: the array of roots.
    Roots(Json<'a>),
}

/// Why an answer's structure does not fit; `path` is inside the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {problem}")]
#[non_exhaustive]
pub struct AnswerFault {
    /// Where, as `.member` below the answer; empty for the answer itself.
    pub path: &'static str,
    /// What is wrong there.
    pub problem: &'static str,
}

/// Reads an answer by the kind that was asked.
///
/// Only structure is judged here; a form's content is validated against its schema when the schema is at
/// hand. Unknown members are tolerated, `resultType` among them.
///
/// # Errors
///
/// The first fault, with its path.
pub fn read_answer(kind: AskKind, value: Json<'_>) -> Result<Answer<'_>, AnswerFault> {
    let fault = |path, problem| Err(AnswerFault { path, problem });
    if !value.is_object() {
        return fault("", "is not an object");
    }
    match kind {
        AskKind::Form | AskKind::Url => {
            let [action, content] = value.pick(["action", "content"]).unwrap_or_default();
            let action = action.and_then(Json::as_string);
            let Some(action) = action.as_deref().and_then(Action::from_name) else {
                return fault(".action", "is not \"accept\", \"decline\" or \"cancel\"");
            };
            if kind == AskKind::Url {
                return Ok(Answer::Url(action));
            }
            let content = match (action, content) {
                (Action::Accept, Some(content)) if content.is_object() => content,
                (Action::Accept, Some(content)) if !content.is_null() => {
                    return fault(".content", "is not an object");
                }
                _ => Json::EMPTY_OBJECT,
            };
            Ok(Answer::Form { action, content })
        }
        AskKind::Sampling => {
            if !matches!(value.get("role").and_then(Json::as_string).as_deref(), Some("user" | "assistant")) {
                return fault(".role", "is not \"user\" or \"assistant\"");
            }
            if !value.get("model").is_some_and(|model| model.kind() == JsonKind::String) {
                return fault(".model", "is not a string");
            }
            match value.get("content") {
                Some(block) if block.is_object() => {}
                Some(blocks) if blocks.items().is_some_and(|mut items| items.all(Json::is_object)) => {}
                _ => return fault(".content", "is neither a content block nor an array of them"),
            }
            Ok(Answer::Sampling(value))
        }
        AskKind::Roots => {
            let Some(roots) = value.get("roots").filter(|roots| roots.kind() == JsonKind::Array) else {
                return fault(".roots", "is not an array");
            };
            let is_root = |root: Json<'_>| {
                root.get("uri").and_then(Json::as_string).is_some_and(|uri| uri.starts_with("file://"))
                    && root.get("name").is_none_or(|name| name.kind() == JsonKind::String)
            };
            if !roots.items().is_some_and(|mut items| items.all(is_root)) {
                return fault(".roots", "has an entry without a `uri` that begins with \"file://\"");
            }
            Ok(Answer::Roots(roots))
        }
    }
}
