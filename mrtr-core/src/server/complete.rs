//! `Complete`: the request has its final answer.

use alloc::vec::Vec;

use super::{Exchange, Open, reply};
use crate::{
    error::{ErrorCode, RpcError},
    http::ReplyClass,
    jsonrpc::{Json, JsonKind},
    wire::AskingMethod,
};

/// The request has its final answer: a result or an error.
#[derive(Debug)]
#[non_exhaustive]
pub struct Complete {
    /// What the reply is, for its HTTP status.
    pub class: ReplyClass,
}

impl<'a, S: Open> Exchange<'a, S> {
    /// Answers `complete` with this result, a JSON object.
    ///
    /// `resultType` and the server's `_meta` are put in; a `resource/read` result without
    /// caching hints gets `ttlMs: 0, cacheScope: "private"`, and always does if the request carried answers
    /// or a state (R-201, R-202, G-40).
    pub fn complete<R: serde::Serialize + ?Sized>(
        self,
        result: &R,
        out: &mut Vec<u8>,
    ) -> Exchange<'a, Complete> {
        match serde_json::to_string(result) {
            Ok(text) => self.complete_json(&text, out),
            Err(_) => self.fail(&RpcError::internal("Internal error"), out),
        }
    }

    /// [`complete`](Self::complete) with what a handler would return.
    pub fn complete_output(
        self,
        output: &crate::catalog::Output,
        out: &mut Vec<u8>,
    ) -> Exchange<'a, Complete> {
        self.complete_json(&output.json, out)
    }

    /// [`complete`](Self::complete) with JSON text that serde wrote.
    pub(crate) fn complete_json(mut self, text: &str, out: &mut Vec<u8>) -> Exchange<'a, Complete> {
        let result = Json::trusted(text);
        if !result.is_object() {
            crate::trace::warn!(exchange = %self.inner.exchange, "a result is not a JSON object");
            return self.fail(&RpcError::internal("Internal error"), out);
        }
        let hints = match self.inner.method {
            AskingMethod::ResourcesRead if self.inner.second_hand => reply::Hints::Never,
            AskingMethod::ResourcesRead => reply::Hints::Default,
            AskingMethod::ToolsCall | AskingMethod::PromptsGet => reply::Hints::AsIs,
        };
        self.inner.observe_end(None);
        let config = self.inner.server.config();
        reply::write_result(out, &self.inner.request.id, &config.info, result, hints);
        Exchange { inner: self.inner, state: Complete { class: ReplyClass::Result } }
    }

    /// Answers with an error. The codes that have an HTTP status of their own keep it (R-020…R-022).
    ///
    /// What no modern exchange may carry goes out as `-32603`, or as `-32602` for an unknown resource: a code of the older
    /// era or a reserved one, `-32021` and `-32022` without the `data` that they must have.
    pub fn fail(self, error: &RpcError, out: &mut Vec<u8>) -> Exchange<'a, Complete> {
        let replaced = replacement(error);
        let error = replaced.as_ref().unwrap_or(error);
        self.fail_as(error, class_of(error.code), out)
    }

    pub(crate) fn fail_as(
        mut self,
        error: &RpcError,
        class: ReplyClass,
        out: &mut Vec<u8>,
    ) -> Exchange<'a, Complete> {
        self.inner.observe_end(Some(error.code));
        crate::jsonrpc::write::error(out, Some(&self.inner.request.id), error);
        Exchange { inner: self.inner, state: Complete { class } }
    }
}

/// An exchange whose reply was made, but must not be the one that is sent.
#[cfg(feature = "std")]
impl<'a, S> Exchange<'a, S> {
    /// Answers with this error instead.
    pub(crate) fn fail_instead(self, error: &RpcError, out: &mut Vec<u8>) -> Exchange<'a, Complete> {
        crate::jsonrpc::write::error(out, Some(&self.inner.request.id), error);
        Exchange { inner: self.inner, state: Complete { class: class_of(error.code) } }
    }

    /// Answers with the reply of an earlier copy of this request, under this one's id (B3).
    pub(crate) fn replay(
        self,
        stored: &crate::ledger::StoredReply,
        out: &mut Vec<u8>,
    ) -> Exchange<'a, Complete> {
        use crate::ledger::ReplyKind;
        let class = match stored.kind() {
            ReplyKind::Interim | ReplyKind::Complete => ReplyClass::Result,
            ReplyKind::HandlerError => core::str::from_utf8(stored.member())
                .ok()
                .and_then(|member| Json::trusted(member).get("code")?.as_str().parse().ok())
                .map_or(ReplyClass::HandlerError, |code| class_of(ErrorCode::new(code))),
        };
        stored.write(&self.inner.request.id, out);
        Exchange { inner: self.inner, state: Complete { class } }
    }
}

/// The codes that have an HTTP status of their own keep it (R-020…R-022).
const fn class_of(code: ErrorCode) -> ReplyClass {
    match code {
        ErrorCode::HEADER_MISMATCH => ReplyClass::HeaderMismatch,
        ErrorCode::MISSING_CAPABILITY => ReplyClass::MissingCapability,
        ErrorCode::UNSUPPORTED_VERSION => ReplyClass::UnsupportedVersion,
        _ => ReplyClass::HandlerError,
    }
}

/// What goes out for an error that no modern exchange may carry, whoever made it: a handler written for both eras, or one
/// that passes on an upstream's (R-021…R-024).
fn replacement(error: &RpcError) -> Option<RpcError> {
    match error.code {
        ErrorCode::LEGACY_RESOURCE_NOT_FOUND => {
            Some(RpcError { code: ErrorCode::INVALID_PARAMS, ..error.clone() })
        }
        ErrorCode::HEADER_MISMATCH => None,
        ErrorCode::MISSING_CAPABILITY if has(error, "requiredCapabilities", JsonKind::Object) => None,
        ErrorCode::UNSUPPORTED_VERSION
            if has(error, "supported", JsonKind::Array) && has(error, "requested", JsonKind::String) =>
        {
            None
        }
        code if (-32_099..=-32_020).contains(&code.get()) => {
            crate::trace::warn!(code = code.get(), "a handler gave a code that may not be sent");
            Some(RpcError::internal("Internal error"))
        }
        _ => None,
    }
}

fn has(error: &RpcError, member: &str, kind: JsonKind) -> bool {
    error.data().and_then(|data| data.get(member)).is_some_and(|value| value.kind() == kind)
}

impl Exchange<'_, Complete> {
    /// What the reply is, for its HTTP status.
    #[must_use]
    pub const fn class(&self) -> ReplyClass {
        self.state.class
    }
}
