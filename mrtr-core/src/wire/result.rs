//! `resultType` alone decides what a result is (R-012…R-016); shapes are never guessed from.

use alloc::{borrow::Cow, string::String, vec::Vec};

use super::{AskFault, InputRequest};
use crate::jsonrpc::{Json, JsonKind, Parts};

/// A result, by its `resultType`.
#[derive(Clone, Debug)]
#[allow(clippy::exhaustive_enums)]
pub enum ResultKind<'a> {
    /// `complete`, or no `resultType` at all: the final result.
    Complete(Json<'a>),
    /// `input_required`.
    InputRequired(InterimResult<'a>),
}

/// An interim result: questions, a state, or both.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct InterimResult<'a> {
    /// The asks in their order on the wire. Empty for a state-only result; an empty map with a state
    /// counts as state-only too (G-02).
    pub asks: Vec<(Cow<'a, str>, InputRequest<'a>)>,
    /// The state as the JSON text of a string, as the peer wrote it: what is echoed is this text, so that
    /// even a string that names no text (lone surrogates) comes back. `""` is a state (G-04).
    pub state: Option<Json<'a>>,
    /// The result's `_meta`, if it is an object.
    pub meta: Option<Json<'a>>,
}

/// Why a result is no valid one. The client reports it locally and does not retry (G-03, G-15, G-33).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ResultFault {
    /// The result is no object.
    #[error("result is not an object")]
    NotAnObject,
    /// `resultType` is no string.
    #[error("result.resultType is not a string")]
    ResultType,
    /// A value that nobody announced.
    #[error("result.resultType is {0:?}, which this client did not declare to understand")]
    UnknownResultType(String),
    /// `inputRequests` is no object.
    #[error("result.inputRequests is not an object")]
    InputRequests,
    /// More asks than the limit.
    #[error("result.inputRequests has more than {limit} entries (Limits::asks_accepted)")]
    TooManyAsks {
        /// The bound, in asks.
        limit: usize,
    },
    /// A key that names no text (a lone surrogate): it could not be answered under the same key.
    #[error("result.inputRequests has a key that is no text")]
    AskKey,
    /// An entry that is no valid ask.
    #[error("result.inputRequests[{key:?}] {fault}")]
    Ask {
        /// The key.
        key: String,
        /// What is wrong.
        fault: AskFault,
    },
    /// `requestState` is no string.
    #[error("result.requestState is not a string")]
    State,
    /// More characters than the limit.
    #[error("result.requestState of {bytes} bytes is over the limit of {limit} (Limits::state_accepted)")]
    StateTooLarge {
        /// Bytes of the state.
        bytes: usize,
        /// The bound, in bytes.
        limit: usize,
    },
    /// Neither questions nor a state (G-03), or an empty map without a state (G-02).
    #[error("result has neither inputRequests nor requestState: a retry would only repeat the request")]
    NeitherField,
}

/// Reads a result of a modern response.
///
/// # Errors
///
/// The first fault, with its path.
pub fn read_result<'a>(result: Json<'a>, limits: &crate::Limits) -> Result<ResultKind<'a>, ResultFault> {
    read_parts(result, &Parts::of(result), limits)
}

/// [`read_result`] of a result whose parts were found already.
pub(crate) fn read_parts<'a>(
    result: Json<'a>,
    parts: &Parts<'a>,
    limits: &crate::Limits,
) -> Result<ResultKind<'a>, ResultFault> {
    if !result.is_object() {
        return Err(ResultFault::NotAnObject);
    }
    let &Parts { kind, requests, state, meta, .. } = parts;
    let Some(kind) = kind else { return Ok(ResultKind::Complete(result)) };
    match kind.as_string().ok_or(ResultFault::ResultType)?.as_ref() {
        "complete" => return Ok(ResultKind::Complete(result)),
        "input_required" => {}
        other => return Err(ResultFault::UnknownResultType(other.chars().take(64).collect())),
    }
    let mut asks = Vec::new();
    // Null in a result reads as absent (G-05).
    if let Some(requests) = requests.filter(|value| !value.is_null()) {
        let mut members = requests.members().ok_or(ResultFault::InputRequests)?;
        for (key, value) in members.by_ref() {
            if asks.len() == limits.asks_accepted {
                return Err(ResultFault::TooManyAsks { limit: limits.asks_accepted });
            }
            match InputRequest::from_json(value) {
                Ok(ask) => asks.push((key, ask)),
                Err(fault) => {
                    return Err(ResultFault::Ask { key: key.chars().take(64).collect(), fault });
                }
            }
        }
        if members.nameless() > 0 {
            return Err(ResultFault::AskKey);
        }
    }
    let state = match state.filter(|value| !value.is_null()) {
        None => None,
        Some(value) if value.kind() != JsonKind::String => return Err(ResultFault::State),
        Some(value) if value.as_str().len() - 2 > limits.state_accepted => {
            return Err(ResultFault::StateTooLarge {
                bytes: value.as_str().len() - 2,
                limit: limits.state_accepted,
            });
        }
        Some(value) => Some(value),
    };
    if asks.is_empty() && state.is_none() {
        return Err(ResultFault::NeitherField);
    }
    Ok(ResultKind::InputRequired(InterimResult {
        asks,
        state,
        meta: meta.filter(|meta| meta.kind() == JsonKind::Object),
    }))
}
