//! Errors that travel: JSON-RPC codes and error objects (R-019…R-031).
//!
//! What goes wrong locally (a limit, a timeout, a peer's broken message) has no code on the wire and is an
//! error type of the room where it happens, so that nobody can take it for something the peer said.

use alloc::{borrow::Cow, string::String};

use crate::jsonrpc::Json;

/// A JSON-RPC error code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ErrorCode(i64);

impl ErrorCode {
    /// The message is not JSON.
    pub const PARSE_ERROR: Self = Self(-32700);
    /// The message is JSON but not a request, or breaks a bound (R-019, G-38).
    pub const INVALID_REQUEST: Self = Self(-32600);
    /// No such method here.
    pub const METHOD_NOT_FOUND: Self = Self(-32601);
    /// Bad parameters, unknown names, refused states (R-029, G-11).
    pub const INVALID_PARAMS: Self = Self(-32602);
    /// The server failed.
    pub const INTERNAL_ERROR: Self = Self(-32603);
    /// Headers and body disagree, or a required header is missing.
    pub const HEADER_MISMATCH: Self = Self(-32020);
    /// The request did not declare a capability that serving it needs.
    pub const MISSING_CAPABILITY: Self = Self(-32021);
    /// The protocol version is not served.
    pub const UNSUPPORTED_VERSION: Self = Self(-32022);
    /// 2025-11-25 only: no such resource. Understood, never sent in a modern exchange.
    pub const LEGACY_RESOURCE_NOT_FOUND: Self = Self(-32002);
    /// 2025-11-25 only: open these URLs first. Never sent in a modern exchange.
    pub const LEGACY_URL_REQUIRED: Self = Self(-32042);
    /// 2025-11-25 only, client to server: the person refused to sample.
    pub const LEGACY_REJECTED: Self = Self(-1);

    /// Any code; application codes lie outside -32768…-32000.
    #[must_use]
    pub const fn new(code: i64) -> Self {
        Self(code)
    }

    /// The number on the wire.
    #[must_use]
    pub const fn get(self) -> i64 {
        self.0
    }
}

impl core::fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.0.fmt(f)
    }
}

/// A JSON-RPC error object, to send or as received.
///
/// `message` and `data` reach the peer: put nothing secret there.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message} ({code})")]
#[non_exhaustive]
pub struct RpcError {
    /// The code.
    pub code: ErrorCode,
    /// One sentence for the peer.
    pub message: Cow<'static, str>,
    /// JSON text of `data`, if any: always one valid JSON value, hence not for everybody to set.
    pub(crate) data: Option<String>,
}

impl RpcError {
    /// An error without `data`.
    #[must_use]
    pub fn new(code: ErrorCode, message: impl Into<Cow<'static, str>>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    /// `-32602` with a message of your own.
    #[must_use]
    pub fn invalid_params(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ErrorCode::INVALID_PARAMS, message)
    }

    /// `-32603` with a message of your own.
    #[must_use]
    pub fn internal(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ErrorCode::INTERNAL_ERROR, message)
    }

    /// The same error with `data`.
    ///
    /// # Errors
    ///
    /// If `data` cannot be written as JSON (a map with keys that are no strings, for instance).
    pub fn with_data<T: serde::Serialize + ?Sized>(mut self, data: &T) -> Result<Self, serde_json::Error> {
        self.data = Some(serde_json::to_string(data)?);
        Ok(self)
    }

    /// The same error with JSON as `data`.
    pub fn with_json_data(mut self, data: Json<'_>) -> Self {
        self.data = Some(data.as_str().into());
        self
    }

    /// `data`, if there is any; `null` is.
    #[must_use]
    pub fn data(&self) -> Option<Json<'_>> {
        self.data.as_deref().map(Json::trusted)
    }

    /// Takes what is one JSON value.
    pub(crate) fn with_raw_data(mut self, data: String) -> Self {
        self.data = Some(data);
        self
    }
}
