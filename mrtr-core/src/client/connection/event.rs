//! What comes out of a connection, and the names of things in it.

use alloc::{boxed::Box, vec::Vec};

use super::super::{Exchange, InputRequired, Reason, StartError, StateRefused, Stopped, Violation};
use crate::{
    error::RpcError,
    http::HttpError,
    jsonrpc::{Json, RequestId},
    legacy::client::{AskId, Closed},
    time::Timestamp,
    wire::{Action, Era, InputRequest, Version},
};

/// A call, from its first request to its outcome, whatever ids its requests have on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallId(pub(super) u64);

/// One request on the wire. Its id there is used once in the life of a connection (R-002, R-229, B-59).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PostId(pub(super) i64);

impl PostId {
    /// The id on the wire.
    #[must_use]
    pub fn request_id(self) -> RequestId {
        self.0.into()
    }
}

/// Where a message came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums)]
pub enum Via {
    /// The pipe.
    Pipe,
    /// HTTP: the reply to this request's POST.
    Post(PostId),
    /// HTTP: a stream opened by GET, in the legacy eras.
    Standalone,
}

/// What is to be done on the wire.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Transmit {
    /// Send a request. Over HTTP: POST it; what comes back is [`Via::Post`].
    Request {
        /// Its name.
        post: PostId,
        /// The call it belongs to; none for what the connection asks for itself.
        call: Option<CallId>,
        /// The whole message, on one line.
        bytes: Vec<u8>,
        /// Which headers it has over HTTP.
        headers: HeaderRules,
    },
    /// Send a notification or a reply. Over HTTP: POST it; nothing comes back but 202.
    Message {
        /// The call whose question it answers: if the POST is refused, say so by
        /// [`handle_unaccepted`](super::Connection::handle_unaccepted).
        call: Option<CallId>,
        /// The whole message, on one line.
        bytes: Vec<u8>,
        /// Which headers it has over HTTP.
        headers: HeaderRules,
    },
    /// HTTP: close the response stream of a request, which cancels it.
    Close {
        /// Which one.
        post: PostId,
    },
}

/// Which headers a POST has, beside content type and `Accept`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums)]
pub enum HeaderRules {
    /// Those of [`request_headers`](crate::http::request_headers).
    Modern,
    /// The session id, if the server gave one, and `MCP-Protocol-Version`, if one is settled.
    Legacy(Option<Version>),
}

/// What happened.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event {
    /// The server's era is known. Keep it for the next connection to the same server.
    Era(Era),
    /// A modern server asks. Answer in the exchange and give it to [`proceed`](super::Connection::proceed); the
    /// connection keeps nothing of it, so that it may also be saved, or dropped.
    InputRequired {
        /// The call.
        call: CallId,
        /// The exchange.
        exchange: Exchange<InputRequired>,
    },
    /// A modern server only defers: the connection goes on by itself.
    Deferred {
        /// The call.
        call: CallId,
        /// When the call goes on.
        until: Timestamp,
    },
    /// A legacy server asks: [`answer`](super::Connection::answer) or [`refuse`](super::Connection::refuse).
    Ask {
        /// Its name.
        ask: AskId,
        /// The call it belongs to, if that can be told.
        call: Option<CallId>,
        /// What is asked.
        request: InputRequest<'static>,
        /// What was done when the same question was put earlier in the same call.
        before: Option<Action>,
    },
    /// A legacy ask is not to be answered any more.
    AskWithdrawn {
        /// Which one.
        ask: AskId,
    },
    /// Progress of a call that wants it.
    Progress {
        /// The call.
        call: CallId,
        /// The parameters as the server wrote them.
        params: Box<str>,
    },
    /// Any other notification.
    Notification {
        /// The call on whose own stream it came.
        call: Option<CallId>,
        /// Its method.
        method: Box<str>,
        /// The parameters as the server wrote them.
        params: Option<Box<str>>,
    },
    /// A call has its outcome: the last that is heard of it.
    Done {
        /// The call.
        call: CallId,
        /// What came of it.
        outcome: Outcome,
    },
}

/// What came of a call, in either era.
///
/// `Debug` shows sizes and codes.
#[non_exhaustive]
pub struct Outcome {
    /// The result as the server wrote it, or why there is none.
    pub result: Result<Box<str>, Failure>,
    /// The era of the server, as far as it was known.
    pub era: Option<Era>,
    /// Request/result legs, or with a legacy server its questions and one: 1 if nothing was asked.
    pub rounds: u32,
    /// Answers or a state led to it, or a legacy server, which gives no hints: then it must not be kept.
    pub(super) kept: bool,
}

impl Outcome {
    /// The result, an object unless a legacy server sends something else.
    #[must_use]
    pub fn json(&self) -> Option<Json<'_>> {
        self.result.as_deref().ok().map(Json::trusted)
    }

    /// Whether the result may be kept for as long as its own hints say, for the same method and parameters and the same
    /// authorization: never one that depends on answers or a state.
    #[must_use]
    pub const fn may_be_kept(&self) -> bool {
        self.kept && self.result.is_ok()
    }

    pub(super) const fn failed(failure: Failure, era: Option<Era>) -> Self {
        Self { result: Err(failure), era, rounds: 1, kept: false }
    }
}

impl core::fmt::Debug for Outcome {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match &self.result {
            Ok(result) => write!(f, "Outcome({} bytes, {} rounds)", result.len(), self.rounds),
            Err(Failure::Peer(error)) => write!(f, "Outcome(error {})", error.code),
            Err(failure) => write!(f, "Outcome({failure})"),
        }
    }
}

/// Why a call has no result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Failure {
    /// The server's error.
    #[error(transparent)]
    Peer(RpcError),
    /// The server refuses a retry, most likely for its state (G-11): [`restart`](super::Connection::restart) begins
    /// again from the original parameters.
    #[error("the server refuses to go on")]
    StateRefused(StateRefused),
    /// The reply breaks the protocol.
    #[error(transparent)]
    Violation(Violation),
    /// The reply is legal, but this client goes no further.
    #[error(transparent)]
    Stopped(Stopped),
    /// A message over `Limits::message_bytes` came, which may have been the reply.
    #[error("a message over the limit of {limit} bytes came (Limits::message_bytes)")]
    Overlong {
        /// The bound, in bytes.
        limit: usize,
    },
    /// The reply did not come in time; the request was cancelled.
    #[error("the reply did not come in time")]
    Timeout,
    /// HTTP: the connection broke, and the call may not run twice (R-096, G-29).
    #[error("the connection broke while the request was under way")]
    Lost,
    /// HTTP: a response that is no reply.
    #[error(transparent)]
    Http(HttpError),
    /// HTTP: an answer to a question of a legacy server was not accepted; the call was cancelled.
    #[error("the server did not accept an answer")]
    Unaccepted,
    /// The server is gone.
    #[error("the server is gone")]
    Closed,
    /// No session with the server could be opened.
    #[error("no session: {0}")]
    Session(Closed),
    /// Server and client have no version in common.
    #[error("server and client have no version of the protocol in common")]
    NoCommonVersion,
    /// The exchange belongs to a modern server, and this one is not.
    #[error("the server is of an era that cannot go on with this exchange")]
    OtherEra,
    /// A legacy server asks too often in one call.
    #[error("the server asks more than {limit} times in one call (ConnectionConfig::asks_per_call)")]
    TooManyAsks {
        /// The bound, in asks.
        limit: u32,
    },
    /// The request cannot be made.
    #[error(transparent)]
    Start(StartError),
    /// The next request of the exchange was not sent.
    #[error(transparent)]
    NotSent(Reason),
}

/// Why a call is not begun. Nothing was sent for it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// The call cannot be made.
    #[error(transparent)]
    Start(#[from] StartError),
    /// Too many calls are under way.
    #[error("more than {limit} calls at a time (ConnectionConfig::calls)")]
    TooMany {
        /// The bound, in calls.
        limit: usize,
    },
    /// The server is gone.
    #[error("the server is gone")]
    Closed,
}

impl core::fmt::Debug for Transmit {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Request { post, call, bytes, headers } => f
                .debug_struct("Request")
                .field("post", &post.0)
                .field("call", call)
                .field("bytes", &bytes.len())
                .field("headers", headers)
                .finish(),
            Self::Message { call, bytes, headers } => f
                .debug_struct("Message")
                .field("call", call)
                .field("bytes", &bytes.len())
                .field("headers", headers)
                .finish(),
            Self::Close { post } => write!(f, "Close({})", post.0),
        }
    }
}

impl From<crate::legacy::client::Failure> for Failure {
    fn from(failure: crate::legacy::client::Failure) -> Self {
        use crate::{jsonrpc::Refused, legacy::client::Failure as Of};
        match failure {
            Of::Peer(error) => Self::Peer(error),
            Of::Unreadable(reason) => Self::Violation(Violation::Message(Refused::of_response(reason))),
            Of::Overlong { limit } => Self::Overlong { limit },
            Of::Timeout => Self::Timeout,
            Of::Lost => Self::Lost,
            Of::Closed => Self::Closed,
        }
    }
}
