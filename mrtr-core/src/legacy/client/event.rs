//! What comes out of a session, and the names of things in it.

use alloc::{boxed::Box, string::String, vec::Vec};

use crate::{
    error::{ErrorCode, RpcError},
    jsonrpc::{Refusal, RequestId},
    wire::{InputRequest, Version},
};

/// A request of ours, by the id it has on the wire. An id is used once in a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallId(pub(super) i64);

impl CallId {
    /// The id on the wire, which is the progress token of the request too if progress was wanted.
    #[must_use]
    pub fn request_id(self) -> RequestId {
        self.0.into()
    }
}

/// An ask of the server. Not the id it has on the wire, which a server may use again: this one never comes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AskId(pub(super) u64);

/// Where a message came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums)]
pub enum Via {
    /// The pipe.
    Pipe,
    /// HTTP: the reply to the POST of this request, or its stream taken up again.
    Call(CallId),
    /// HTTP: the stream that was opened by GET.
    Standalone,
}

/// A message to be sent.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Transmit {
    /// What it is, which decides on HTTP what its POST is answered with.
    pub carries: Carries,
    /// One whole message on one line, without a line break.
    pub bytes: Vec<u8>,
    /// HTTP: the value of `MCP-Protocol-Version`. None for `initialize`.
    pub version: Option<Version>,
}

/// What a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums)]
pub enum Carries {
    /// A request: what its POST brings comes [`Via::Call`].
    Request(CallId),
    /// A notification: its POST brings nothing.
    Notification,
    /// A reply to a request of the server's: its POST brings nothing. If it answers an ask of a request whose call is known,
    /// that cannot go on without it: [cancel](super::ClientSession::cancel) the call if the POST is refused.
    Reply(Option<CallId>),
}

/// What happened.
#[derive(Clone)]
#[non_exhaustive]
pub enum Event {
    /// The session is open: requests can be made, and [`peer`](super::ClientSession::peer) says with whom.
    Opened,
    /// A request has its outcome: the last that is heard of it.
    Response {
        /// Which one.
        call: CallId,
        /// The result as the server wrote it, or why there is none.
        outcome: Result<Box<str>, Failure>,
    },
    /// The server asks: [`answer`](super::ClientSession::answer) or [`refuse`](super::ClientSession::refuse).
    Ask(Asked),
    /// An ask is not to be answered any more.
    AskWithdrawn {
        /// Which one.
        ask: AskId,
        /// Why.
        why: Withdrawn,
    },
    /// An ask was answered with an error before anybody saw it.
    AskRefused {
        /// The request it came for, if that can be told.
        call: Option<CallId>,
        /// Its method, at most 64 characters of it.
        method: String,
        /// The error it was answered with.
        error: RpcError,
    },
    /// Progress of a request for which it [was wanted](super::ClientSession::request_with_progress).
    Progress {
        /// Which one.
        call: CallId,
        /// The parameters as the server wrote them.
        params: Box<str>,
    },
    /// Any other notification: logs, changed lists, `notifications/elicitation/complete` (whose id may be unknown,
    /// R-234), ….
    Notification {
        /// Where it came from.
        via: Via,
        /// Its method.
        method: Box<str>,
        /// The parameters as the server wrote them.
        params: Option<Box<str>>,
    },
    /// The session is over, or was never opened. Requests that were under way have failed before this event.
    Closed(Closed),
}

/// An ask of the server.
///
/// `Debug` shows ids, kind and sizes.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Asked {
    /// Its name here.
    pub id: AskId,
    /// The request it belongs to: the one whose stream it came on, or else the only one under way that may ask.
    /// On a pipe nothing more can be told.
    pub call: Option<CallId>,
    /// What is asked; the parameters are the text the server wrote.
    pub request: InputRequest<'static>,
}

/// Why a request has no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Failure {
    /// The server's error.
    #[error(transparent)]
    Peer(RpcError),
    /// The reply is no message, or breaks a bound.
    #[error("the reply cannot be read: {0}")]
    Unreadable(Refusal),
    /// A line or event over `Limits::message_bytes` came, which may have been the reply.
    #[error("a message over the limit of {limit} bytes came (Limits::message_bytes)")]
    Overlong {
        /// The bound, in bytes.
        limit: usize,
    },
    /// Nothing came in time (`ClientConfig::request_timeout`, `ClientConfig::request_longest`). The server was told.
    #[error("the reply did not come in time")]
    Timeout,
    /// HTTP: its stream ended without it.
    #[error("the connection broke while the request was under way")]
    Lost,
    /// The session is over.
    #[error("the session ended while the request was under way")]
    Closed,
}

/// Why an ask is not to be answered any more. An answer that comes all the same is not sent.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Withdrawn {
    /// The server takes it back.
    ByServer {
        /// What it says, at most 500 characters of it.
        reason: Option<String>,
    },
    /// The request it belongs to is over: it was answered with `-32602`.
    CallEnded,
    /// The session is over.
    Closed,
}

/// Why a session is over.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Closed {
    /// The peer is gone.
    #[error("the peer is gone")]
    ByPeer,
    /// The server refuses `initialize`.
    #[error("the server refuses to open a session: {0}")]
    Refused(RpcError),
    /// The server answers with a version that is not spoken here.
    #[error("the server speaks the version {0:?}")]
    Version(String),
    /// The reply to `initialize` is no valid one.
    #[error("the reply to initialize {0}")]
    Malformed(&'static str),
    /// The reply to `initialize` did not come.
    #[error("initialize failed: {0}")]
    Failed(Failure),
}

impl core::fmt::Debug for Transmit {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Transmit")
            .field("carries", &self.carries)
            .field("bytes", &self.bytes.len())
            .field("version", &self.version)
            .finish()
    }
}

impl core::fmt::Debug for Event {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Opened => f.write_str("Opened"),
            Self::Response { call, outcome: Ok(result) } => {
                write!(f, "Response({}, {} bytes)", call.0, result.len())
            }
            Self::Response { call, outcome: Err(Failure::Peer(error)) } => {
                write!(f, "Response({}, error {})", call.0, error.code)
            }
            Self::Response { call, outcome: Err(failure) } => write!(f, "Response({}, {failure})", call.0),
            Self::Ask(asked) => asked.fmt(f),
            Self::AskWithdrawn { ask, .. } => write!(f, "AskWithdrawn({})", ask.0),
            Self::AskRefused { method, error, .. } => write!(f, "AskRefused({method:?}, {})", error.code),
            Self::Progress { call, params } => write!(f, "Progress({}, {} bytes)", call.0, params.len()),
            Self::Notification { via, method, params } => f
                .debug_struct("Notification")
                .field("via", via)
                .field("method", &method.chars().take(64).collect::<String>())
                .field("params_bytes", &params.as_deref().map(str::len))
                .finish(),
            Self::Closed(why) => write!(f, "Closed({})", why.kind()),
        }
    }
}

impl Closed {
    /// Without the peer's words.
    const fn kind(&self) -> &'static str {
        match self {
            Self::ByPeer => "by the peer",
            Self::Refused(_) => "refused",
            Self::Version(_) => "version",
            Self::Malformed(_) => "malformed",
            Self::Failed(_) => "failed",
        }
    }
}

/// `-32602` for an ask that belongs to nothing.
pub(super) fn unassociated() -> RpcError {
    RpcError::new(ErrorCode::INVALID_PARAMS, "No request that this could belong to is under way")
}
