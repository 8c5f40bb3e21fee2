//! The three kinds of message, borrowed from the bytes they came in.

use alloc::borrow::Cow;

use super::{
    Json, RequestId,
    parts::{Admitted, Parts},
};
use crate::error::{ErrorCode, RpcError};

/// One admitted JSON-RPC message.
#[derive(Clone, Debug)]
#[allow(clippy::exhaustive_enums)]
pub enum Message<'a> {
    /// Has an id and a method: wants an answer.
    Request(Request<'a>),
    /// Has a method and no id: gets no answer.
    Notification(Notification<'a>),
    /// Has a result or an error.
    Response(Response<'a>),
}

/// A request.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Request<'a> {
    /// Its id, to be echoed.
    pub id: RequestId,
    /// The method's name.
    pub method: Cow<'a, str>,
    /// Its parameters: an object, or absent.
    pub params: Option<Json<'a>>,
    pub(crate) admitted: Admitted<'a>,
}

/// A notification.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Notification<'a> {
    /// The method's name.
    pub method: Cow<'a, str>,
    /// Its parameters: an object, or absent.
    pub params: Option<Json<'a>>,
}

/// A response.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Response<'a> {
    /// The id of the request it answers; absent (or null) when the peer could not read one.
    pub id: Option<RequestId>,
    /// The result (any JSON value; a valid one is an object) or the error.
    pub outcome: Result<Json<'a>, RpcError>,
    pub(crate) admitted: Admitted<'a>,
}

impl<'a> Request<'a> {
    /// One that nobody sent.
    pub(crate) fn made(id: RequestId, method: &'a str, params: Option<Json<'a>>) -> Self {
        Self { id, method: Cow::Borrowed(method), params, admitted: Admitted::default() }
    }

    /// The parameters that are read of most requests.
    pub(crate) fn parts(&self) -> Parts<'a> {
        self.params.map(|params| self.admitted.parts(params)).unwrap_or_default()
    }

    /// A parameter by name; `null` is `Some`.
    #[must_use]
    pub fn param(&self, name: &str) -> Option<Json<'a>> {
        self.params?.get(name)
    }
}

impl<'a> Notification<'a> {
    /// A parameter by name; `null` is `Some`.
    #[must_use]
    pub fn param(&self, name: &str) -> Option<Json<'a>> {
        self.params?.get(name)
    }
}

/// Reads an error object; `None` if it has no integer `code` or no string `message`.
pub(super) fn error_object(value: Json<'_>) -> Option<RpcError> {
    let code = value.get("code")?.as_str().parse().ok()?;
    let message = value.get("message")?.as_string()?;
    let mut error = RpcError::new(ErrorCode::new(code), message.into_owned());
    if let Some(data) = value.get("data") {
        error = error.with_raw_data(data.as_str().into());
    }
    Some(error)
}
