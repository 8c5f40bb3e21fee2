//! Why an attempt ends with an error.

use alloc::{string::String, vec::Vec};

use crate::{error::RpcError, seal::SealError, wire::AnswerFault};

/// Why an attempt ends with an error, for the log; the peer gets [`Fault::error`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// The handler waits for something that is not an ask, and no runtime is there to bring it (A2).
    #[error(
        "the handler awaits something that is not an ask: run it under a runtime, or wrap it in `once_async`"
    )]
    Stalled,
    /// The handler kept waking itself without getting anywhere.
    #[error("the handler wakes itself without end")]
    Spinning,
    /// A key was used while an earlier use of it was still open (A1).
    #[error("the handler asks under the key {0:?} while an earlier use of it is still open")]
    KeyInUse(String),
    /// A key that is not `[A-Za-z0-9_.-]{1,64}` (A1, G-37).
    #[error("the key {0:?} is not made of 1 to 64 of A-Z a-z 0-9 _ . -")]
    BadKey(String),
    /// An ask whose parameters are no JSON, or numbers that cannot be digested, or whose url is none.
    #[error("the ask {0:?} has parameters that cannot be sent")]
    BadAsk(String),
    /// A form that may not be asked; the client could only refuse to show it.
    #[error("the form of ask {key:?}: {problem}")]
    BadForm {
        /// Its key.
        key: String,
        /// What is wrong.
        problem: String,
    },
    /// More than consent is wanted of something that is no url (A10).
    #[error("the ask {0:?} is no url: there is nothing behind it to wait for")]
    NotAUrl(String),
    /// A once-value that is no JSON or cannot be read back.
    #[error("the once-value {0:?} cannot be written or read as JSON")]
    BadValue(String),
    /// The handler left its recorded path and the service does not go on from there (A8).
    #[error("diverged: {0}")]
    Diverged(String),
    /// The third divergence of the exchange (A8).
    #[error("this question changes from run to run: {}", .0.join(", "))]
    UnstableQuestion(Vec<String>),
    /// Once-values were made on a path that was left (A8).
    #[error("the handler left its recorded path after the once-values {} were made", .0.join(", "))]
    AfterEffects(Vec<String>),
    /// The handler returned again over a question that it had swallowed (A9 b).
    #[error("the handler returned without taking the answer to {}", .0.join(", "))]
    Swallowed(Vec<String>),
    /// A bound of [`Limits`](crate::Limits), by its field's name.
    #[error("over the limit of {limit} {what} (Limits::{field})")]
    Limit {
        /// What there is too much of.
        what: &'static str,
        /// The field of `Limits`.
        field: &'static str,
        /// The bound, in what `what` names.
        limit: usize,
    },
    /// A question that goes out now could not be answered in time.
    #[error("the exchange is past its deadline (Limits::exchange)")]
    Deadline,
    /// The state of the next question cannot be sealed: it is over a bound (G-07).
    #[error(transparent)]
    NotSealed(#[from] SealError),
    /// More rounds settled without a person than any handler needs.
    #[error("the handler asks for ever without anybody being asked")]
    Endless,
    /// An answer without a state whose structure does not fit (A7, G-18).
    #[error("inputResponses[{key:?}]{fault}")]
    BadAnswer {
        /// Its key.
        key: String,
        /// What is wrong.
        fault: AnswerFault,
    },
}

impl Fault {
    /// What to tell the peer: `-32602` where the peer is at fault, else `-32603`. Limits and deadlines are
    /// named; the handler's own faults stay in the log.
    #[must_use]
    pub fn error(&self) -> RpcError {
        match self {
            Self::BadAnswer { .. } => RpcError::invalid_params(alloc::format!("Invalid params: {self}")),
            Self::Limit { .. } | Self::Deadline | Self::NotSealed(_) => {
                RpcError::internal(alloc::format!("Internal error: {self}"))
            }
            Self::UnstableQuestion(_) => {
                RpcError::internal("Internal error: this question changes from run to run")
            }
            Self::Stalled
            | Self::Spinning
            | Self::KeyInUse(_)
            | Self::BadKey(_)
            | Self::BadAsk(_)
            | Self::BadForm { .. }
            | Self::NotAUrl(_)
            | Self::BadValue(_)
            | Self::Diverged(_)
            | Self::AfterEffects(_)
            | Self::Swallowed(_)
            | Self::Endless => RpcError::internal("Internal error"),
        }
    }
}
