//! A message that is refused before any handler runs.

use alloc::vec::Vec;

use crate::{
    error::RpcError,
    http::ReplyClass,
    jsonrpc::{Refusal, RequestId, write},
    seal, trace,
};

/// A refused message: its reply and, for the log, the reason.
#[derive(Debug)]
#[must_use = "a refused request still has an answer: write it"]
pub struct Rejected {
    id: Option<RequestId>,
    error: RpcError,
    class: ReplyClass,
    silent: bool,
    reason: RejectReason,
}

/// Why a message was refused. For the log: the peer is told less.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum RejectReason {
    /// Admission refused it.
    NotAdmitted(Refusal),
    /// A response, which a client must not send.
    UnaskedResponse,
    /// `_meta`, version or headers; the reply says which.
    Envelope,
    /// The parameters' shape; the reply says which.
    Params,
    /// An answer's shape; the reply says which.
    Answer,
    /// No such method, tool, prompt or resource.
    Unknown,
    /// The state, and which check it failed.
    State(seal::Refused),
    /// An authentic state whose journal this server cannot use.
    Journal(crate::journal::CodecFault),
}

impl Rejected {
    pub(crate) const fn new(
        id: Option<RequestId>,
        error: RpcError,
        class: ReplyClass,
        reason: RejectReason,
    ) -> Self {
        Self { id, error, class, silent: false, reason }
    }

    pub(crate) const fn silent(error: RpcError, class: ReplyClass, reason: RejectReason) -> Self {
        Self { id: None, error, class, silent: true, reason }
    }

    pub(crate) fn state(id: RequestId, reason: RejectReason) -> Self {
        Self::new(
            Some(id),
            RpcError::invalid_params(seal::Refused::WIRE_MESSAGE),
            ReplyClass::HandlerError,
            reason,
        )
    }

    /// Why, for the log.
    #[must_use]
    pub const fn reason(&self) -> &RejectReason {
        &self.reason
    }

    /// Logs why, with the feature `tracing`: a refused state as a warning, with the verdict (which says which part
    /// differed), the key it claims, and, if it was authentic, its exchange, round and age in milliseconds; anything
    /// else a peer did wrong at debug. Never the state, an answer, an argument or the principal (G-11).
    pub fn log(&self) {
        match &self.reason {
            RejectReason::State(refused) => {
                let age = refused.age.map(|age| u64::try_from(age.as_millis()).unwrap_or(u64::MAX));
                trace::warn!(
                    verdict = refused.verdict.name(),
                    key = trace::shown(refused.key),
                    exchange = trace::shown(refused.exchange),
                    round = refused.round,
                    age_ms = age,
                    "a state was refused"
                );
            }
            RejectReason::Journal(fault) => trace::warn!(fault = %fault, "an authentic state cannot be used"),
            RejectReason::NotAdmitted(_)
            | RejectReason::UnaskedResponse
            | RejectReason::Envelope
            | RejectReason::Params
            | RejectReason::Answer
            | RejectReason::Unknown => trace::debug!(code = self.error.code.get(), "a request was refused"),
        }
    }

    /// What the peer is told.
    #[must_use]
    pub const fn error(&self) -> &RpcError {
        &self.error
    }

    /// What the reply is, for its HTTP status.
    #[must_use]
    pub const fn class(&self) -> ReplyClass {
        self.class
    }

    /// Appends the reply. On a pipe nothing is appended for what gets no answer there (a stray response).
    pub fn write(&self, out: &mut Vec<u8>) {
        if !self.silent {
            write::error(out, self.id.as_ref(), &self.error);
        }
    }
}
