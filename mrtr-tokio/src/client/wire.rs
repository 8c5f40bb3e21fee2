//! Why no message comes back.

use std::process::ExitStatus;

use mrtr_core::http::{HeaderFault, HttpError};

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
        /// The bound, in bytes.
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

    /// The same for another call.
    pub(super) fn again(&self) -> Self {
        let copied = |cause: &(dyn std::error::Error + Send + Sync + 'static)| root(cause).to_string().into();
        match self {
            Self::Connect(cause) => Self::Connect(copied(cause.as_ref())),
            Self::Broken { cause } => Self::Broken { cause: cause.as_deref().map(copied) },
            Self::Ended(ended) => Self::Ended(ended.clone()),
            Self::Redirect { to } => Self::Redirect { to: to.clone() },
            Self::Credentials(cause) => Self::Credentials(copied(cause.as_ref())),
            Self::Http(error) => Self::Http(error.clone()),
            Self::Header(fault) => Self::Header(fault.clone()),
            Self::TooLarge { limit } => Self::TooLarge { limit: *limit },
        }
    }

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
