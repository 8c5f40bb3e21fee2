//! `Complete`: the request has its final answer.

use alloc::vec::Vec;

use super::{Exchange, Open, reply};
use crate::{error::RpcError, http::ReplyClass, jsonrpc::Json, wire::AskingMethod};

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

    /// [`complete`](Self::complete) with JSON text that serde wrote.
    pub(crate) fn complete_json(self, text: &str, out: &mut Vec<u8>) -> Exchange<'a, Complete> {
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

    /// Answers with an error.
    pub fn fail(self, error: &RpcError, out: &mut Vec<u8>) -> Exchange<'a, Complete> {
        self.fail_as(error, ReplyClass::HandlerError, out)
    }

    pub(crate) fn fail_as(
        self,
        error: &RpcError,
        class: ReplyClass,
        out: &mut Vec<u8>,
    ) -> Exchange<'a, Complete> {
        self.inner.observe_end(Some(error.code));
        crate::jsonrpc::write::error(out, Some(&self.inner.request.id), error);
        Exchange { inner: self.inner, state: Complete { class } }
    }
}

impl Exchange<'_, Complete> {
    /// What the reply is, for its HTTP status.
    #[must_use]
    pub const fn class(&self) -> ReplyClass {
        self.state.class
    }
}
