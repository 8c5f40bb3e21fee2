//! A request, and the messages that come back for it.

use std::process::ExitStatus;

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
    #[error("the connection broke before the reply came{}", because(.cause.as_deref()))]
    Broken {
        /// Why, if that is known.
        #[source]
        cause: Option<Box<dyn std::error::Error + Send + Sync>>,
    },
    /// The child ended before the reply came.
    #[error(transparent)]
    Ended(Ended),
    /// The server wants the request at another origin, where its arguments and credentials do not go.
    #[error("the server redirects to {to}, which is another origin: not followed")]
    Redirect {
        /// That origin.
        to: String,
    },
    /// [`Authorize`](super::Authorize) gave no credentials.
    #[error("no credentials: {0}")]
    Credentials(#[source] Box<dyn std::error::Error + Send + Sync>),
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

/// How a server that is a child of this process ended.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the server ended{}{}", .status.map(|status| format!(" ({status})")).unwrap_or_default(), said(.last))]
#[non_exhaustive]
pub struct Ended {
    /// Its exit status, unless it only closed its output.
    pub status: Option<ExitStatus>,
    /// The last lines of its standard error, at most 20, cut off after 500 characters; none if that is not
    /// [read](super::Stderr).
    pub last: Vec<String>,
}

fn said(last: &[String]) -> String {
    if last.is_empty() { String::new() } else { format!(", and said last:\n{}", last.join("\n")) }
}

fn because(cause: Option<&(dyn std::error::Error + Send + Sync + 'static)>) -> String {
    cause.map(|cause| format!(": {}", root(cause))).unwrap_or_default()
}

impl WireError {
    /// Nothing more comes.
    pub(super) const ENDED: Self = Self::Broken { cause: None };

    pub(super) fn broken(cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Broken { cause: Some(cause.into()) }
    }
}

/// The cause of an error: hyper's own texts, `client error (Connect)`, say nothing.
pub(super) fn root<'e>(
    error: &'e (dyn std::error::Error + 'static),
) -> &'e (dyn std::error::Error + 'static) {
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
