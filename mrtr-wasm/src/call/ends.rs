//! What a handler comes to, and what a return-style handler's exchange does.

use super::{Call, error};
use crate::asks;
use crate::returning::Wish;
use crate::settings::raw;
use mrtr_core::RpcError;
use mrtr_core::catalog::{Content, Output, PromptResult, ResourceResult, ToolResult};
use mrtr_core::wire::AskingMethod;
use wasm_bindgen::prelude::*;

#[wasm_bindgen]
impl Call {
    /// The arguments are not those of its schema; where and why.
    pub fn refused_arguments(&self, problem: &str) {
        let error = RpcError::invalid_params(format!("Invalid params: {problem}"));
        self.mail.lock().result = Some(Err(error));
    }

    /// A result, JSON text.
    pub fn returned(&self, json: &str) {
        let output = raw(json).map(Output::from_json);
        self.mail.lock().result = Some(output.map_err(|_| RpcError::internal("Internal error")));
    }

    /// A result that is a text, of what was called.
    pub fn returned_text(&mut self, text: &str) {
        let method = self.ctx().map_or(AskingMethod::ToolsCall, |ctx| ctx.method());
        let output = match method {
            AskingMethod::ToolsCall => ToolResult::text(text).into(),
            AskingMethod::PromptsGet => PromptResult::new().user(Content::text(text)).into(),
            AskingMethod::ResourcesRead => {
                let target = self.target();
                ResourceResult::text(&target, "text/plain", text).into()
            }
        };
        self.mail.lock().result = Some(Ok(output));
    }

    /// An error of its own.
    pub fn failed(&self, code: f64, message: String, data: Option<String>) {
        self.mail.lock().result = Some(Err(error(code, message, data)));
    }

    /// An error of an ask that it did not catch.
    pub fn failed_ask(&self, kind: &str, reason: &str) {
        self.mail.lock().result = Some(Err(asks::uncaught(kind, reason)));
    }

    // What a return-style handler's exchange does.

    /// The answer to a question as it would be asked now; see `returning.rs`.
    ///
    /// # Errors
    ///
    /// If it is not JSON.
    pub fn answer(&mut self, kind: char, key: &str, a: &str, b: &str) -> Result<String, JsError> {
        let request = Self::request(kind, a, b)?.into_owned();
        Ok(self.wish(Wish::Answer { key: key.to_owned(), request }).unwrap_or_default())
    }

    /// The state that the handler left in an earlier round: `a` and JSON text, or nothing.
    pub fn state(&mut self) -> String {
        self.wish(Wish::State).unwrap_or_default()
    }

    /// Adds a question to those of the next round.
    ///
    /// # Errors
    ///
    /// If it is not JSON.
    pub fn want(&mut self, kind: char, key: &str, a: &str, b: &str) -> Result<(), JsError> {
        let request = Self::request(kind, a, b)?;
        self.wanted = core::mem::take(&mut self.wanted).ask(key, request);
        Ok(())
    }

    /// Asks them, with a state of the handler's own.
    ///
    /// # Errors
    ///
    /// If it is not JSON.
    pub fn require(&mut self, state: String) -> Result<(), JsError> {
        raw(&state)?;
        let asks = core::mem::take(&mut self.wanted);
        self.mail.lock().wish = Some(Wish::Require { asks, state });
        Ok(())
    }
}
