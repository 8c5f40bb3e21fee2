//! The client's half, on the way back: what a response is, by its status, its content type and its body.

use super::media::{is_event_stream, is_json};
use crate::{
    Limits,
    error::{ErrorCode, RpcError},
    jsonrpc::{JsonKind, Message, admit},
};

/// What a client sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums)]
pub enum Sent {
    /// A request: it wants an answer.
    Request,
    /// A notification, or a legacy response: it wants to be accepted.
    Message,
}

/// How to read the body of a response, known from its head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums)]
pub enum BodyPlan {
    /// Feed it to an [`EventStreamDecoder`](crate::framing::EventStreamDecoder): messages come one by one, the
    /// response last. Each is treated as a [`Judgement::Message`].
    Events,
    /// Read it whole, up to `Limits::message_bytes`, whatever the status (G-01), and [`judge`] it.
    Whole,
}

/// What a response is.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Judgement<'b> {
    /// One JSON-RPC message, as it came, to be admitted by whoever sent the request. An error that came with an
    /// error status is among these if it is one that only modern servers send. Such an error may lack an id;
    /// it belongs to the request all the same, for nothing else was sent here.
    Message(&'b [u8]),
    /// What was sent was accepted; there is nothing to read.
    Accepted,
    /// Status 400, without a modern error: a client that does not know the server's era falls back to
    /// `initialize`. One that knows it to be modern treats it as failed.
    MaybeLegacy(HttpError),
    /// No answer, and no hope in another era.
    Failed(HttpError),
}

/// A response that is no answer. It happened here or in the transport: it is not what the server said about the
/// request, except for `error`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("HTTP status {status}: {kind}")]
#[non_exhaustive]
pub struct HttpError {
    /// The HTTP status.
    pub status: u16,
    /// What that means.
    pub kind: HttpErrorKind,
    /// The body's JSON-RPC error, if there was one (G-01).
    pub error: Option<RpcError>,
}

/// What a response that is no answer means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HttpErrorKind {
    /// A success status to a request, without a JSON-RPC response.
    #[error("no JSON-RPC message in the response that could be the reply")]
    NoMessage,
    /// 3xx: the client follows no redirects by itself, since it would send the arguments elsewhere.
    #[error("redirected elsewhere")]
    Redirect,
    /// 400.
    #[error("the server takes the request for a bad one")]
    BadRequest,
    /// 401.
    #[error("authorization is required")]
    Unauthorized,
    /// 403.
    #[error("forbidden")]
    Forbidden,
    /// 404 without a JSON-RPC error: there is no MCP endpoint, or a legacy session has ended.
    #[error("no MCP endpoint at this address, or the session is over")]
    NotFound,
    /// 405.
    #[error("the address does not take POST: no MCP endpoint, or one of 2024-11-05")]
    MethodNotAllowed,
    /// 413.
    #[error("the request is too large for the server")]
    TooLarge,
    /// 429.
    #[error("too many requests")]
    TooManyRequests,
    /// Another 4xx.
    #[error("refused by the server")]
    Client,
    /// 5xx.
    #[error("the server or something before it failed")]
    Server,
    /// A status that a final response cannot have.
    #[error("not a status of a response")]
    Unknown,
}

impl BodyPlan {
    /// The plan for a response with this `Content-Type`.
    #[must_use]
    pub fn from_content_type(content_type: Option<&[u8]>) -> Self {
        if content_type.is_some_and(is_event_stream) { Self::Events } else { Self::Whole }
    }
}

/// Judges a response whose body was read whole.
///
/// | status | body | judgement |
/// |---|---|---|
/// | 2xx | said to be JSON and neither request nor notification, or a JSON-RPC response | message |
/// | 2xx | anything else | accepted, or failed if an answer was wanted |
/// | 400 | `-32020`, `-32021`, `-32022` | message |
/// | 400 | anything else | maybe legacy |
/// | 404 | `-32601` | message |
/// | others | | failed, with the body's JSON-RPC error |
#[must_use]
pub fn judge<'b>(
    sent: Sent,
    status: u16,
    content_type: Option<&[u8]>,
    body: &'b [u8],
    limits: &Limits,
) -> Judgement<'b> {
    let failed = |error| HttpError { status, kind: HttpErrorKind::from_status(status), error };
    let (response, asks_or_tells) = match admit(body, limits) {
        Ok(Message::Response(response)) => (Some(response), false),
        Ok(Message::Request(_) | Message::Notification(_)) => (None, true),
        Err(refused) => (None, refused.asks_or_tells()),
    };
    if (200..300).contains(&status) {
        // After a whole body nothing comes: one that asks or tells leaves the request without a reply.
        let json = content_type.is_some_and(is_json) && !body.trim_ascii().is_empty() && !asks_or_tells;
        return match sent {
            Sent::Request if json || response.is_some() => Judgement::Message(body),
            Sent::Request => Judgement::Failed(failed(None)),
            Sent::Message => Judgement::Accepted,
        };
    }
    let error = response.and_then(|response| response.outcome.err());
    match (status, &error) {
        (400, Some(error)) if is_modern(error) => Judgement::Message(body),
        (404, Some(error)) if error.code == ErrorCode::METHOD_NOT_FOUND => Judgement::Message(body),
        (400, _) => Judgement::MaybeLegacy(failed(error)),
        _ => Judgement::Failed(failed(error)),
    }
}

/// Whether only a modern server says this: its code, and the data that must go with it (R-020…R-022). Legacy
/// servers are free to use `-32602` and `-32600` with a 400, so these prove nothing.
pub(crate) fn is_modern(error: &RpcError) -> bool {
    let data = |name: &str, kind: JsonKind| {
        error.data().and_then(|data| data.get(name)).is_some_and(|value| value.kind() == kind)
    };
    match error.code {
        ErrorCode::HEADER_MISMATCH => true,
        ErrorCode::MISSING_CAPABILITY => data("requiredCapabilities", JsonKind::Object),
        ErrorCode::UNSUPPORTED_VERSION => data("supported", JsonKind::Array),
        _ => false,
    }
}

impl HttpErrorKind {
    const fn from_status(status: u16) -> Self {
        match status {
            200..=299 => Self::NoMessage,
            300..=399 => Self::Redirect,
            400 => Self::BadRequest,
            401 => Self::Unauthorized,
            403 => Self::Forbidden,
            404 => Self::NotFound,
            405 => Self::MethodNotAllowed,
            413 => Self::TooLarge,
            429 => Self::TooManyRequests,
            402..=499 => Self::Client,
            500..=599 => Self::Server,
            _ => Self::Unknown,
        }
    }
}
