//! What kind of reply it is, and the HTTP status that goes with it (G-01).

use crate::jsonrpc::{Refusal, Refused};

/// The class of a reply. The status cannot be read off the reply's bytes (`-32602` is 400 for a broken `_meta`
/// and 200 for a refused state), so whoever makes a reply says what it is (design decision 9).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum ReplyClass {
    /// A result, final or interim. 200.
    Result,
    /// An error of what was called: bad arguments, unknown names, a refused state. 200.
    HandlerError,
    /// `-32603`. 200, since the server is there and has answered.
    Internal,
    /// A notification was taken; there is no body. 202.
    Accepted,
    /// `-32700`. 400.
    ParseError,
    /// `-32600`. 400.
    InvalidRequest,
    /// `-32602` for a missing or broken field of `_meta`. 400.
    MetaInvalid,
    /// `-32020`. 400.
    HeaderMismatch,
    /// `-32021`. 400.
    MissingCapability,
    /// `-32022`. 400.
    UnsupportedVersion,
    /// `-32601`. 404.
    MethodNotFound,
    /// No such session, or one of somebody else: 2025-11-25 only. 404.
    UnknownSession,
    /// `Host` or `Origin` is not one that may call. 403.
    Forbidden,
    /// Not POST. 405.
    MethodNotAllowed,
    /// The client reads neither JSON nor event streams. 406.
    NotAcceptable,
    /// The body is over the limit. 413.
    TooLarge,
    /// The body is said not to be JSON. 415.
    UnsupportedMediaType,
}

impl ReplyClass {
    /// The HTTP status.
    #[must_use]
    pub const fn status(self) -> u16 {
        match self {
            Self::Result | Self::HandlerError | Self::Internal => 200,
            Self::Accepted => 202,
            Self::ParseError
            | Self::InvalidRequest
            | Self::MetaInvalid
            | Self::HeaderMismatch
            | Self::MissingCapability
            | Self::UnsupportedVersion => 400,
            Self::Forbidden => 403,
            Self::MethodNotFound | Self::UnknownSession => 404,
            Self::MethodNotAllowed => 405,
            Self::NotAcceptable => 406,
            Self::TooLarge => 413,
            Self::UnsupportedMediaType => 415,
        }
    }
}

impl From<&Refused> for ReplyClass {
    /// The class of the reply to a message that was not admitted.
    fn from(refused: &Refused) -> Self {
        match refused.reason {
            Refusal::TooLarge { .. } => Self::TooLarge,
            Refusal::NotUtf8 | Refusal::Syntax { .. } => Self::ParseError,
            Refusal::TooDeep { .. }
            | Refusal::TooManyNodes { .. }
            | Refusal::DuplicateName { .. }
            | Refusal::Batch
            | Refusal::Shape(_) => Self::InvalidRequest,
        }
    }
}
