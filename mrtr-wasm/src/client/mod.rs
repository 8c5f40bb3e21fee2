//! The client's half: exchanges, which JavaScript carries over `fetch` and whose questions it answers.

mod trip;

use std::{cell::RefCell, collections::BTreeMap, rc::Rc};

use mrtr_core::{
    Limits,
    client::{Call, Channel, Client, Config, Progress},
    http::ParamHeaders,
    jsonrpc::{Json, RequestId},
    wire::{AskingMethod, ClientCapabilities, LogLevel},
};
use wasm_bindgen::prelude::*;

pub use trip::Trip;

use crate::settings::{self, flag, millis, number, parse, text, time};
use trip::State;

struct Shared {
    client: Client,
    limits: Limits,
    /// Arguments that tools want mirrored into headers, by the tools' names.
    annotations: RefCell<BTreeMap<String, ParamHeaders>>,
    ids: RefCell<i64>,
}

impl Shared {
    fn next_id(&self) -> RequestId {
        let mut ids = self.ids.borrow_mut();
        *ids += 1;
        RequestId::from(*ids)
    }
}

/// Makes calls.
#[wasm_bindgen]
pub struct Dialer(Rc<Shared>);

impl core::fmt::Debug for Dialer {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_tuple("Dialer").field(&self.0.client).finish()
    }
}

#[wasm_bindgen]
impl Dialer {
    /// A client; `settings` is JSON. Its ids follow `firstId`.
    ///
    /// # Errors
    ///
    /// What is wrong with the settings.
    #[wasm_bindgen(constructor)]
    pub fn new(settings: &str) -> Result<Self, JsError> {
        let of = parse(settings)?;
        let limits = settings::limits(of);
        let capabilities = of.get("capabilities").and_then(ClientCapabilities::from_json).unwrap_or_default();
        let mut config = Config::new(settings::implementation(of), capabilities)
            .channel(Channel::Own)
            .limits(limits.clone());
        if let Some(policy) = of.get("policy") {
            let mut chosen = mrtr_core::client::Policy::default();
            chosen.retries = number(policy, "retries").unwrap_or(chosen.retries);
            chosen.resends = number(policy, "resends").unwrap_or(chosen.resends);
            chosen.pause_first = millis(policy, "pauseFirstMs").unwrap_or(chosen.pause_first);
            chosen.pause_longest = millis(policy, "pauseLongestMs").unwrap_or(chosen.pause_longest);
            chosen.request_timeout = millis(policy, "requestTimeoutMs").unwrap_or(chosen.request_timeout);
            chosen.request_longest = millis(policy, "requestLongestMs").unwrap_or(chosen.request_longest);
            if flag(policy, "countThinking") == Some(true) {
                chosen.thinking = mrtr_core::client::Thinking::Counted;
            }
            config = config.policy(chosen);
        }
        Ok(Self(Rc::new(Shared {
            client: Client::new(config),
            limits,
            annotations: RefCell::default(),
            // Not those of a client whose saved exchange is taken up here.
            ids: RefCell::new(number(of, "firstId").unwrap_or(0)),
        })))
    }

    /// Takes in what a list of tools says about headers. Gives the names of tools whose annotations are invalid,
    /// a line each: they must not be called over HTTP.
    pub fn learn(&self, listed: &str) -> String {
        let mut invalid = String::new();
        let Ok(listed) = Json::parse(listed, &self.0.limits) else { return invalid };
        let mut annotations = self.0.annotations.borrow_mut();
        for tool in listed.get("tools").and_then(Json::items).into_iter().flatten() {
            let Some(name) = text(tool, "name") else { continue };
            match ParamHeaders::from_schema(tool.get("inputSchema").unwrap_or(Json::EMPTY_OBJECT)) {
                Ok(found) => {
                    annotations.insert(name, found);
                }
                Err(_) => {
                    invalid.push_str(&name);
                    invalid.push('\n');
                }
            }
        }
        invalid
    }

    /// Whether a list of tools has said anything about this one.
    pub fn knows(&self, tool: &str) -> bool {
        self.0.annotations.borrow().contains_key(tool)
    }

    /// Begins a call: a `t`ool, a `p`rompt, a `r`esource, or any `m`ethod. `more` is JSON with `progress`, `logLevel`,
    /// `mayRunTwice`.
    ///
    /// # Errors
    ///
    /// If it cannot be begun.
    pub fn dial(
        &self,
        kind: char,
        target: &str,
        arguments: Option<String>,
        more: &str,
        now: f64,
    ) -> Result<Trip, JsError> {
        let (method, params) = match kind {
            't' => (Some(AskingMethod::ToolsCall), None),
            'p' => (Some(AskingMethod::PromptsGet), None),
            'r' => (Some(AskingMethod::ResourcesRead), None),
            _ => (None, arguments.clone()),
        };
        let params = params.unwrap_or_else(|| {
            method.map_or_else(|| "{}".into(), |method| method.params(target, arguments.as_deref()))
        });
        let name = match method {
            Some(method) => method.name(),
            None => target,
        };
        let more = parse(more)?;
        let mut call = Call::new(name, &params);
        if flag(more, "progress") == Some(true) {
            call = call.progress(Progress::RequestId);
        }
        if let Some(level) = text(more, "logLevel").as_deref().and_then(LogLevel::from_name) {
            call = call.log_level(level);
        }
        if flag(more, "mayRunTwice") == Some(true) {
            call = call.may_run_twice();
        }
        if let Some(capabilities) = more.get("capabilities").and_then(ClientCapabilities::from_json) {
            call = call.capabilities(capabilities);
        }
        call = call.jitter(number(more, "jitter").unwrap_or(0));
        let mut body = Vec::new();
        let exchange = self
            .0
            .client
            .start(self.0.next_id(), call, time(now), &mut body)
            .map_err(|error| JsError::new(&error.to_string()))?;
        let tool = (kind == 't').then(|| target.to_owned());
        Ok(Trip::new(Rc::clone(&self.0), State::Pending(exchange), tool, body))
    }

    /// Takes up what [`Trip::save`] wrote.
    ///
    /// # Errors
    ///
    /// If the bytes are not whole, were saved for another server, or are over what this client allows.
    pub fn resume(&self, saved: &[u8], origin: &str) -> Result<Trip, JsError> {
        let (tool, saved) = unwrap(saved).ok_or_else(|| JsError::new("not a saved exchange"))?;
        let exchange =
            self.0.client.resume(saved, origin).map_err(|error| JsError::new(&error.to_string()))?;
        Ok(Trip::new(Rc::clone(&self.0), State::Asked(exchange), tool, Vec::new()))
    }
}

/// Begins what is saved: format, how long the tool's name is, the name.
const SAVED: u8 = 1;

fn wrap(tool: Option<&str>) -> Vec<u8> {
    let name = tool.unwrap_or_default().as_bytes();
    let length = u16::try_from(name.len()).unwrap_or(0);
    let mut out = vec![SAVED];
    out.extend_from_slice(&length.to_be_bytes());
    out.extend_from_slice(name.get(..usize::from(length)).unwrap_or_default());
    out
}

fn unwrap(saved: &[u8]) -> Option<(Option<String>, &[u8])> {
    let [SAVED, high, low, rest @ ..] = saved else { return None };
    let (name, rest) = rest.split_at_checked(usize::from(u16::from_be_bytes([*high, *low])))?;
    let name = core::str::from_utf8(name).ok()?;
    Some(((!name.is_empty()).then(|| name.to_owned()), rest))
}
