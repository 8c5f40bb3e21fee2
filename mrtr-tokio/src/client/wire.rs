//! A request, and the messages that come back for it.

use mrtr_core::{
    http::{HeaderFault, HttpError, ParamHeaders},
    jsonrpc::RequestId,
};

use super::{http, pipe};

/// Where requests go.
#[derive(Debug)]
pub(super) enum Wire {
    Http(http::Http),
    Pipe(pipe::Pipe),
}

/// The messages that come back for one request. Dropping it tells nobody, but over HTTP closes the stream.
pub(super) enum Replies {
    Http(http::Replies),
    Pipe(pipe::Replies),
}

/// Why no message came back. It happened here or on the way: the server did not say it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WireError {
    /// The server cannot be reached, or the child cannot be started. Nothing was sent.
    #[error("no connection: {}", root(.0.as_ref()))]
    Connect(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The connection broke before the reply came.
    #[error("the connection broke before the reply came")]
    Broken,
    /// The HTTP response is no reply.
    #[error(transparent)]
    Http(#[from] HttpError),
    /// The request cannot be sent over HTTP.
    #[error(transparent)]
    Header(#[from] HeaderFault),
    /// The reply, or an event before it, is over the limit.
    #[error("the reply is over the limit of {limit} bytes (Limits::message_bytes)")]
    TooLarge {
        /// The bound.
        limit: usize,
    },
}

/// The cause of an error: hyper's own texts, `client error (Connect)`, say nothing.
fn root<'e>(error: &'e (dyn std::error::Error + 'static)) -> &'e (dyn std::error::Error + 'static) {
    std::iter::successors(Some(error), |error| error.source()).last().unwrap_or(error)
}

impl Wire {
    /// Sends a request.
    pub(super) async fn open(
        &self,
        id: &RequestId,
        message: Vec<u8>,
        annotations: &ParamHeaders,
    ) -> Result<Replies, WireError> {
        match self {
            Self::Http(http) => http.open(message, annotations).await.map(Replies::Http),
            Self::Pipe(pipe) => pipe.request(id, &message).await.map(Replies::Pipe),
        }
    }

    /// Sends what wants no reply, if there is anything. Never waits: it is called while things are dropped.
    pub(super) fn post(&self, message: &[u8]) {
        match self {
            Self::Pipe(pipe) if !message.is_empty() => pipe.post(message),
            // Over HTTP a request is cancelled by closing its stream.
            Self::Pipe(_) | Self::Http(_) => {}
        }
    }
}

impl Replies {
    /// The next message.
    pub(super) async fn next(&mut self) -> Result<Vec<u8>, WireError> {
        match self {
            Self::Http(replies) => replies.next().await,
            Self::Pipe(replies) => replies.next().await,
        }
    }
}
