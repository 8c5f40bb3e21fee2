//! Why a request to an upstream has no response, as its host hears it.
//!
//! `-32603` for hosts of both eras: neither has a code for what goes wrong between a bridge and a server, and those that
//! the modern era added (`-3202x`) would send the host looking for the fault in its own request. `data.kind` says for
//! programs what the message says for people. Nothing else of the upstream is in either, for a body, a url and a header
//! may hold what is nobody else's business: the status, and how long the upstream asks to be left alone.

use alloc::{borrow::Cow, format};
use core::time::Duration;

use crate::error::RpcError;

/// Why no response comes to a request that was sent to an upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CallFailure {
    /// No connection could be made: nothing was sent.
    Unreachable,
    /// The connection ended or broke before the response, or the response's stream did.
    Broken,
    /// There was no response in time.
    TimedOut,
    /// The upstream answered with an HTTP status that is no success, and with no JSON-RPC response.
    Status {
        /// The status.
        status: u16,
        /// The value of `Retry-After`, if it was a number of seconds.
        retry_after: Option<Duration>,
    },
    /// It redirects elsewhere, where arguments and credentials do not go.
    Redirected,
    /// A success without a JSON-RPC message.
    NoMessage,
    /// The response is over `Limits::message_bytes`.
    TooLarge {
        /// That bound, in bytes.
        limit: usize,
    },
    /// There are no credentials to send.
    NoCredentials,
    /// The request cannot be said in HTTP.
    Unsayable,
}

impl CallFailure {
    /// Its name in `data.kind` of the error that the host gets.
    #[must_use]
    pub const fn kind(self) -> &'static str {
        match self {
            Self::Unreachable => "unreachable",
            Self::Broken => "broken",
            Self::TimedOut => "timeout",
            Self::Status { status: 401, .. } => "unauthorized",
            Self::Status { status: 403, .. } => "forbidden",
            Self::Status { status: 404, .. } => "not_found",
            Self::Status { status: 429, .. } => "too_many_requests",
            Self::Status { status: 503, .. } => "unavailable",
            Self::Status { .. } => "http_status",
            Self::Redirected => "redirected",
            Self::NoMessage => "no_message",
            Self::TooLarge { .. } => "too_large",
            Self::NoCredentials => "no_credentials",
            Self::Unsayable => "unsayable",
        }
    }

    /// Whether the upstream may work on the request all the same, of what can be told from here.
    pub(super) const fn may_run(self) -> bool {
        match self {
            Self::Broken | Self::TimedOut | Self::NoMessage | Self::TooLarge { .. } => true,
            // What a proxy says whose patience is over.
            Self::Status { status, .. } => status >= 500,
            Self::Unreachable | Self::Redirected | Self::NoCredentials | Self::Unsayable => false,
        }
    }

    fn message(self) -> Cow<'static, str> {
        Cow::Borrowed(match self {
            Self::Unreachable => "the upstream cannot be reached",
            Self::Broken => "the upstream's connection ended before its response",
            Self::TimedOut => "the upstream did not respond in time",
            Self::Status { status: 401, .. } => {
                "the upstream does not take the bridge's credentials (HTTP 401)"
            }
            Self::Status { status: 403, .. } => "the upstream forbids the bridge this request (HTTP 403)",
            Self::Status { status: 404, .. } => "the upstream's address has no MCP endpoint (HTTP 404)",
            Self::Status { status: 429, .. } => "the upstream has too many requests (HTTP 429)",
            Self::Status { status: 503, .. } => "the upstream is not available now (HTTP 503)",
            Self::Status { status, .. } => {
                return format!("the upstream answered with HTTP status {status}").into();
            }
            Self::Redirected => "the upstream redirects elsewhere, which is not followed",
            Self::NoMessage => "the upstream's HTTP response holds no message",
            Self::TooLarge { limit } => {
                return format!(
                    "the upstream's response is over the limit of {limit} bytes (Limits::message_bytes)"
                )
                .into();
            }
            Self::NoCredentials => "the bridge has no credentials for the upstream",
            Self::Unsayable => "the request cannot be said to the upstream over HTTP",
        })
    }

    /// The error for the host.
    #[must_use]
    pub fn error(self) -> RpcError {
        let mut data = format!("{{\"kind\":\"{}\"", self.kind());
        if let Self::Status { status, retry_after } = self {
            data.push_str(&format!(",\"status\":{status}"));
            if let Some(after) = retry_after {
                data.push_str(&format!(",\"retryAfterMs\":{}", after.as_millis()));
            }
        }
        data.push('}');
        RpcError::internal(self.message()).with_raw_data(data)
    }
}
