//! How an exchange ends without a result. None of these came from the peer as an error, and none has a code on
//! the wire: an error of the peer is the outcome of [`Exchange<Complete>`](super::Exchange).

use alloc::string::String;
use core::time::Duration;

use crate::{
    jsonrpc::Refused,
    wire::{AskKind, ResultFault},
};

/// The peer's message breaks the protocol. There is no retry, and nobody is asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Violation {
    /// The reply is no message, or breaks a bound.
    #[error("{}", .0.reason)]
    Message(Refused),
    /// A reply with another id on the request's own stream.
    #[error("the reply on this request's own stream has another id")]
    OtherId,
    /// A result that is none (R-015, G-02, G-03, G-15, G-33).
    #[error(transparent)]
    Result(#[from] ResultFault),
    /// An interim result in reply to a method that may not be answered so (R-056, B-03).
    #[error("result.resultType is \"input_required\", which {method:?} is never answered with")]
    NotAllowed {
        /// The method, at most 64 characters of it.
        method: String,
    },
    /// An ask for something that this call did not declare (R-103, G-15).
    #[error("result.inputRequests[{key:?}] asks for {kind}, which this call did not declare")]
    Undeclared {
        /// The ask's key, at most 64 characters of it.
        key: String,
        /// What it asks for.
        kind: AskKind,
    },
}

/// This client goes no further. Nobody is asked, because no answer would be sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Stopped {
    /// No retry with answers is left (B-58).
    #[error("the server asks again after {limit} retries (Policy::retries)")]
    Retries {
        /// The bound, in retries.
        limit: u32,
    },
    /// No state-only retry is left (B-57).
    #[error("the server defers again after {limit} state-only rounds (Limits::state_only_rounds)")]
    StateOnlyRounds {
        /// The bound, in state-only rounds.
        limit: u32,
    },
    /// The time of the exchange is up, or would be before the next request may go out.
    #[error("the exchange is over its time of {limit:?} (Limits::exchange)")]
    Deadline {
        /// The bound.
        limit: Duration,
    },
    /// The retry would be over the limit even with empty answers.
    #[error("a retry of {bytes} bytes is over the limit of {limit} (Limits::message_bytes)")]
    RetryTooLarge {
        /// Bytes of the retry without answers.
        bytes: usize,
        /// The bound, in bytes.
        limit: usize,
    },
    /// A question that was declined comes again.
    #[error("result.inputRequests[{key:?}] repeats a question that was declined")]
    Declined {
        /// The ask's key this time, at most 64 characters of it.
        key: String,
    },
    /// A question that was dismissed twice comes again.
    #[error("result.inputRequests[{key:?}] repeats a question that was dismissed twice")]
    Dismissed {
        /// The ask's key this time, at most 64 characters of it.
        key: String,
    },
    /// The connection broke, and the call may not run twice or was sent again often enough (R-096, G-29).
    #[error("the connection broke while the request was under way")]
    Lost,
}
