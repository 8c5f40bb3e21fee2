//! One call on its way, step by step.

use super::{Shared, wrap};
use crate::settings::{date, text, time};
use mrtr_core::Timestamp;
use mrtr_core::client::{
    Aside, Complete, Exchange, InputRequired, InputResponse, Open, Pending, Reason, Received, Resend,
    Retrying, StateRefused, Stopped,
};
use mrtr_core::framing::EventStreamDecoder;
use mrtr_core::http::{BodyPlan, Judgement, ParamHeaders, Sent, judge, request_headers};
use mrtr_core::jsonrpc::{Json, admit};
use mrtr_core::wire::key::SERVER_INFO;
use std::rc::Rc;
use wasm_bindgen::prelude::*;

/// What a step of a [`Trip`] gives.
mod now {
    /// More of the stream is needed.
    pub(super) const MORE: u32 = 0;
    /// The server asks, or defers.
    pub(super) const ASKED: u32 = 1;
    /// The result is there.
    pub(super) const DONE: u32 = 2;
    /// The peer's error is there.
    pub(super) const PEER: u32 = 3;
    /// The state was refused; the peer's error is there.
    pub(super) const STATE_REFUSED: u32 = 4;
    /// A notification: its text is there.
    pub(super) const ASIDE: u32 = 5;
    /// The request has to be sent again; its body is there.
    pub(super) const RESEND: u32 = 6;
    /// The peer breaks the protocol: why is there.
    pub(super) const VIOLATION: u32 = 7;
    /// This client goes no further: why is there.
    pub(super) const STOPPED: u32 = 8;
    /// No message came back: why is there.
    pub(super) const HTTP: u32 = 9;
    /// The next request is not to be sent yet, or at all: why is there.
    pub(super) const NOT_SENT: u32 = 10;
    /// The connection broke, and the request may not be sent again.
    pub(super) const LOST: u32 = 11;
}

pub(super) enum State {
    Pending(Exchange<Pending>),
    Retrying(Exchange<Retrying>),
    Asked(Exchange<InputRequired>),
    Done(Exchange<Complete>),
    Refused(StateRefused),
    Over,
}

/// A state with a request on the wire.
trait Flying: Open {
    fn state(exchange: Exchange<Self>) -> State;
}

impl Flying for Pending {
    fn state(exchange: Exchange<Self>) -> State {
        State::Pending(exchange)
    }
}

impl Flying for Retrying {
    fn state(exchange: Exchange<Self>) -> State {
        State::Retrying(exchange)
    }
}

/// One call on its way.
#[wasm_bindgen]
pub struct Trip {
    shared: Rc<Shared>,
    state: State,
    tool: Option<String>,
    body: Vec<u8>,
    events: Option<EventStreamDecoder>,
    text: String,
    not_before: Option<Timestamp>,
}

impl core::fmt::Debug for Trip {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Trip").field("body_bytes", &self.body.len()).finish_non_exhaustive()
    }
}

impl Trip {
    pub(super) fn new(shared: Rc<Shared>, state: State, tool: Option<String>, body: Vec<u8>) -> Self {
        Self { shared, state, tool, body, events: None, text: String::new(), not_before: None }
    }

    fn say(&mut self, code: u32, text: impl ToString) -> u32 {
        self.text = text.to_string();
        code
    }

    fn receive(&mut self, message: &[u8], at: Timestamp) -> u32 {
        match core::mem::replace(&mut self.state, State::Over) {
            State::Pending(exchange) => self.received(exchange.receive(message, at), at),
            State::Retrying(exchange) => self.received(exchange.receive(message, at), at),
            other @ (State::Asked(_) | State::Done(_) | State::Refused(_) | State::Over) => {
                self.state = other;
                now::MORE
            }
        }
    }

    fn received<S: Flying>(&mut self, received: Received<'_, S>, at: Timestamp) -> u32 {
        match received {
            Received::InputRequired(exchange) => {
                self.state = State::Asked(exchange);
                now::ASKED
            }
            Received::Complete(exchange) => self.complete(exchange),
            Received::StateRefused(refused) => {
                self.state = State::Refused(refused);
                now::STATE_REFUSED
            }
            Received::Aside(exchange, aside) => {
                self.state = S::state(exchange);
                match aside {
                    Aside::Progress(message) | Aside::Notification(message) => {
                        let params = message.params.map_or("{}", Json::as_str);
                        let method = serde_json::to_string(&message.method).unwrap_or_default();
                        self.say(now::ASIDE, format!(r#"{{"method":{method},"params":{params}}}"#))
                    }
                    Aside::Reply(_) | Aside::Request(_) | Aside::Error(_) | Aside::Unreadable(_) | _ => {
                        now::MORE
                    }
                }
            }
            Received::Resend(resend) => self.resend(resend, at),
            Received::Invalid(violation) => self.say(now::VIOLATION, violation),
            Received::Stopped(stopped) => self.say(now::STOPPED, stopped),
        }
    }

    fn complete(&mut self, exchange: Exchange<Complete>) -> u32 {
        let code = if exchange.result().is_ok() { now::DONE } else { now::PEER };
        self.state = State::Done(exchange);
        code
    }

    fn resend<S: Flying>(&mut self, resend: Resend<S>, at: Timestamp) -> u32 {
        self.body.clear();
        self.events = None;
        match resend.send(self.shared.next_id(), at, &mut self.body) {
            Ok(exchange) => {
                self.state = S::state(exchange);
                now::RESEND
            }
            Err(not_sent) => self.say(now::NOT_SENT, not_sent.reason),
        }
    }

    fn broke<S: Flying>(&mut self, exchange: Exchange<S>, at: Timestamp) -> u32 {
        match exchange.lost() {
            Ok(resend) => self.resend(resend, at),
            Err(Stopped::Lost) => self.say(now::LOST, Stopped::Lost),
            Err(stopped) => self.say(now::STOPPED, stopped),
        }
    }

    fn asked(&self) -> Option<&Exchange<InputRequired>> {
        if let State::Asked(exchange) = &self.state { Some(exchange) } else { None }
    }

    fn outcome(&self) -> Option<Result<Json<'_>, &mrtr_core::RpcError>> {
        if let State::Done(exchange) = &self.state { Some(exchange.result()) } else { None }
    }
}

#[wasm_bindgen]
impl Trip {
    /// The body of the request to be sent.
    pub fn body(&self) -> Vec<u8> {
        self.body.clone()
    }

    /// Its headers: lines of `name: value`.
    ///
    /// # Errors
    ///
    /// If it cannot be sent over HTTP.
    pub fn headers(&self) -> Result<String, JsError> {
        let fault = |error: &dyn core::fmt::Display| JsError::new(&error.to_string());
        let message = admit(&self.body, &self.shared.limits).map_err(|refused| fault(&refused.reason))?;
        let known = self.shared.annotations.borrow();
        let annotations = self.tool.as_ref().and_then(|tool| known.get(tool)).unwrap_or(ParamHeaders::NONE);
        let headers = request_headers(&message, annotations).map_err(|error| fault(&error))?;
        let mut lines = String::new();
        for (name, value) in headers.iter() {
            for part in [name, ": ", value, "\n"] {
                lines.push_str(part);
            }
        }
        Ok(lines)
    }

    /// Until when a reply is waited for, as things stand; 0: for none.
    pub fn timeout(&self) -> f64 {
        match &self.state {
            State::Pending(exchange) => date(exchange.timeout()),
            State::Retrying(exchange) => date(exchange.timeout()),
            State::Asked(_) | State::Done(_) | State::Refused(_) | State::Over => 0.0,
        }
    }

    /// Bytes that a reply may have.
    pub fn limit(&self) -> usize {
        self.shared.limits.message_bytes
    }

    /// Whether the response is to be read as a stream: [`push`](Self::push) its pieces. Otherwise read it whole.
    pub fn streams(&mut self, status: u16, content_type: Option<String>) -> bool {
        let plan = BodyPlan::from_content_type(content_type.as_deref().map(str::as_bytes));
        let streams = plan == BodyPlan::Events && (200..300).contains(&status);
        self.events = streams.then(|| EventStreamDecoder::new(self.shared.limits.message_bytes));
        streams
    }

    /// A response that was read whole.
    pub fn whole(&mut self, status: u16, content_type: Option<String>, body: &[u8], now: f64) -> u32 {
        let kind = content_type.as_deref().map(str::as_bytes);
        let limits = self.shared.limits.clone();
        match judge(Sent::Request, status, kind, body, &limits) {
            Judgement::Message(message) => self.receive(message, time(now)),
            Judgement::Failed(error) | Judgement::MaybeLegacy(error) => self.say(now::HTTP, error),
            Judgement::Accepted | _ => self.say(now::HTTP, "no reply"),
        }
    }

    /// A piece of the stream; then call [`next`](Self::next) until it gives 0.
    pub fn push(&mut self, piece: &[u8]) {
        if let Some(events) = &mut self.events {
            events.push(piece);
        }
    }

    /// What the next event of the stream means.
    pub fn next(&mut self, now: f64) -> u32 {
        let Some(mut events) = self.events.take() else { return now::MORE };
        let mut code = now::MORE;
        while code == now::MORE {
            let message = match events.next() {
                None => break,
                Some(Err(error)) => return self.say(now::VIOLATION, error),
                Some(Ok(event)) if event.is_message() && !event.data.is_empty() => event.data.to_vec(),
                Some(Ok(_)) => continue,
            };
            code = self.receive(&message, time(now));
        }
        if code == now::MORE || code == now::ASIDE {
            self.events = Some(events);
        }
        code
    }

    /// The connection broke before the reply was there (R-096).
    pub fn lost(&mut self, now: f64) -> u32 {
        match core::mem::replace(&mut self.state, State::Over) {
            State::Pending(exchange) => self.broke(exchange, time(now)),
            State::Retrying(exchange) => self.broke(exchange, time(now)),
            other @ (State::Asked(_) | State::Done(_) | State::Refused(_) | State::Over) => {
                self.state = other;
                self.say(now::LOST, Stopped::Lost)
            }
        }
    }

    /// What goes with the last step.
    pub fn text(&self) -> String {
        self.text.clone()
    }

    /// The result, JSON text.
    pub fn result(&self) -> Option<String> {
        self.outcome()?.ok().map(|result| result.as_str().to_owned())
    }

    /// The peer's error: its code.
    pub fn peer_code(&self) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "codes are small")]
        let code = |error: &mrtr_core::RpcError| error.code.get() as f64;
        match &self.state {
            State::Done(exchange) => exchange.result().err().map_or(0.0, code),
            State::Pending(_) | State::Retrying(_) | State::Asked(_) | State::Refused(_) | State::Over => 0.0,
        }
    }

    /// The peer's error: its message.
    pub fn peer_message(&self) -> String {
        self.outcome().and_then(Result::err).map(|error| error.message.to_string()).unwrap_or_default()
    }

    /// The peer's error: its data, JSON text.
    pub fn peer_data(&self) -> Option<String> {
        self.outcome()
            .and_then(Result::err)
            .and_then(|error| error.data().map(|data| data.as_str().to_owned()))
    }

    /// The state was refused: takes the peer's error as the outcome.
    pub fn settle(&mut self) {
        if matches!(self.state, State::Refused(_))
            && let State::Refused(refused) = core::mem::replace(&mut self.state, State::Over)
        {
            self.state = State::Done(refused.into_outcome());
        }
    }

    /// The state was refused: begins again with the original parameters; 6, or why not.
    pub fn restart(&mut self, now: f64) -> u32 {
        let State::Refused(refused) = core::mem::replace(&mut self.state, State::Over) else {
            return self.say(now::NOT_SENT, "no state was refused");
        };
        self.body.clear();
        match refused.restart(self.shared.next_id(), time(now), &mut self.body) {
            Ok(exchange) => {
                self.state = State::Pending(exchange);
                now::RESEND
            }
            Err(not_sent) => self.say(now::NOT_SENT, not_sent.reason),
        }
    }

    /// Whether the peer misses headers that only a list of tools tells of (R-176).
    pub fn misses_headers(&self) -> bool {
        let unknown =
            self.tool.as_ref().is_some_and(|tool| !self.shared.annotations.borrow().contains_key(tool));
        unknown
            && self
                .outcome()
                .and_then(Result::err)
                .is_some_and(|error| error.code == mrtr_core::ErrorCode::HEADER_MISMATCH)
    }

    /// The tool that is called.
    pub fn tool(&self) -> Option<String> {
        self.tool.clone()
    }

    /// Request/result legs so far.
    pub fn rounds(&self) -> u32 {
        if let State::Done(exchange) = &self.state { exchange.rounds() } else { 0 }
    }

    /// Whether the result may be kept for as long as its hints say (R-202).
    pub fn may_be_kept(&self) -> bool {
        if let State::Done(exchange) = &self.state { !exchange.carried_answers_or_state() } else { false }
    }

    /// The questions, JSON text: `[{"key", "kind", "params", "before"}]`.
    pub fn asks(&self) -> String {
        let mut out = String::from("[");
        for ask in self.asked().into_iter().flat_map(|exchange| exchange.asks()) {
            if out.len() > 1 {
                out.push(',');
            }
            let key = serde_json::to_string(ask.key()).unwrap_or_default();
            let params = ask.request().params().map_or("{}", Json::as_str);
            let kind = ask.request().kind().name();
            out.push_str(&format!(r#"{{"key":{key},"kind":"{kind}","params":{params}"#));
            if let Some(before) = ask.before() {
                out.push_str(&format!(r#","before":"{}""#, before.name()));
            }
            out.push('}');
        }
        out.push(']');
        out
    }

    /// The name that the server gives itself: a claim (R-122).
    pub fn server(&self) -> Option<String> {
        text(self.asked()?.meta()?.get(SERVER_INFO)?, "name")
    }

    /// Keys without an answer, JSON text of an array.
    pub fn missing(&self) -> String {
        let keys: Vec<&str> = self.asked().map(|exchange| exchange.missing().collect()).unwrap_or_default();
        serde_json::to_string(&keys).unwrap_or_default()
    }

    /// Answers a question: `a`ccept with content, a url `o`pened, `d`ecline, `c`ancel, what a `s`ampling brought, the
    /// `r`oots. Gives what is wrong with the answer, if anything is.
    pub fn answer(&mut self, key: &str, how: char, content: &str) -> Option<String> {
        let limits = self.shared.limits.clone();
        let State::Asked(exchange) = &mut self.state else { return Some("nothing is asked".into()) };
        let json = match Json::parse(content, &limits) {
            Ok(json) => json,
            Err(refusal) => return Some(refusal.to_string()),
        };
        let response = match how {
            'a' => InputResponse::accept(json),
            'o' => InputResponse::accepted_url(),
            'd' => InputResponse::decline(),
            's' => InputResponse::sampling(json),
            'r' => InputResponse::roots(json),
            _ => InputResponse::cancel(),
        };
        exchange.answer(key, response).err().map(|error| error.to_string())
    }

    /// Writes the retry: 6, or why not. If it is only too early, [`not_before`](Self::not_before) says when.
    pub fn proceed(&mut self, now: f64) -> u32 {
        let State::Asked(exchange) = core::mem::replace(&mut self.state, State::Over) else {
            return self.say(now::NOT_SENT, "nothing is asked");
        };
        self.body.clear();
        self.events = None;
        self.not_before = None;
        match exchange.proceed(self.shared.next_id(), time(now), &mut self.body) {
            Ok(exchange) => {
                self.state = State::Retrying(exchange);
                now::RESEND
            }
            Err(not_sent) => {
                self.state = State::Asked(not_sent.given_back);
                if let Reason::TooEarly { not_before } = &not_sent.reason {
                    self.not_before = Some(*not_before);
                }
                self.say(now::NOT_SENT, not_sent.reason)
            }
        }
    }

    /// When the retry may go out; 0 if that is not what is in the way.
    pub fn not_before(&self) -> f64 {
        self.not_before.map_or(0.0, date)
    }

    /// The exchange, to be taken up elsewhere and later; nothing if no question is open.
    pub fn save(&self, origin: &str) -> Option<Vec<u8>> {
        let exchange = self.asked()?;
        let mut out = wrap(self.tool.as_deref());
        exchange.save(origin, &mut out);
        Some(out)
    }
}
