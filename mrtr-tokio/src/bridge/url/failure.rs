//! Why a request has no response, of what the transport says of it.

use std::time::Duration;

use http::{HeaderMap, header};
use mrtr_core::{
    bridge::CallFailure,
    http::{HttpError, HttpErrorKind},
};

use crate::client::WireError;

/// Further off than this nobody is sent.
const LONGEST: u64 = 24 * 60 * 60;

/// When to come again, if the server says so in seconds.
pub(super) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let value = headers.get(header::RETRY_AFTER)?.to_str().ok()?;
    let seconds: u64 = value.trim().parse().ok()?;
    Some(Duration::from_secs(seconds.min(LONGEST)))
}

pub(super) const fn of_status(error: &HttpError, retry_after: Option<Duration>) -> CallFailure {
    if matches!(error.kind, HttpErrorKind::NoMessage) {
        CallFailure::NoMessage
    } else if matches!(error.kind, HttpErrorKind::Redirect) {
        CallFailure::Redirected
    } else {
        CallFailure::Status { status: error.status, retry_after }
    }
}

pub(super) const fn of_wire(error: &WireError) -> CallFailure {
    match error {
        WireError::Connect(_) => CallFailure::Unreachable,
        WireError::Broken { .. } | WireError::Ended(_) => CallFailure::Broken,
        WireError::Redirect { .. } => CallFailure::Redirected,
        WireError::Credentials(_) => CallFailure::NoCredentials,
        WireError::Http(error) => of_status(error, None),
        WireError::Header(_) => CallFailure::Unsayable,
        WireError::TooLarge { limit } => CallFailure::TooLarge { limit: *limit },
    }
}
