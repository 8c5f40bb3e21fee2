//! Runs an exchange against a client.

use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet};

use mrtr_core::Timestamp;
use serde_json::{Value, json};

use super::{
    Failure,
    format::{Action, ClientStep, Exchange, Outcome, Request},
    pattern::{Captures, Claims, fill, matches},
    server::START,
};

/// A client under test, which declares the exchange's capabilities and knows its tools. Calls have names.
pub(super) trait Caller {
    /// Begins a call.
    fn start(&mut self, call: &str, method: &str, params: &Value, now: Timestamp) -> Outgoing;

    /// The server's reply to the call's latest request has come.
    fn receive(&mut self, call: &str, status: u16, message: &Value, now: Timestamp) -> Event;

    /// All asks of the call's round are answered, or the pause of a round without asks is over.
    fn proceed(&mut self, call: &str, answers: &Value, now: Timestamp) -> Outgoing;
}

/// A request on its way to the server.
#[derive(Debug, Clone)]
pub(super) struct Outgoing {
    pub(super) message: Value,
    pub(super) headers: Vec<(String, String)>,
}

/// What a reply came to.
#[derive(Debug, Clone)]
pub(super) enum Event {
    /// The application is asked for these keys.
    Asks(Vec<String>),
    /// A round without asks; it goes on after a pause.
    Pause,
    /// The client sends another request at once.
    Request(Outgoing),
    /// The call's result.
    Complete(Value),
    /// The reply is refused locally; the call is over.
    Invalid,
    /// The server's error ends the call.
    Refused(Value),
}

/// Goes through all steps; the first expectation that is not met is the failure.
pub(super) fn run(exchange: &Exchange, caller: &mut dyn Caller) -> Result<(), Failure> {
    let failure = |step: usize, why: String| Failure { title: exchange.title.clone(), step, why };
    let steps = exchange.client_steps().map_err(|why| failure(0, why))?;
    let mut run = Run {
        exchange,
        now: START,
        captures: Captures::new(),
        latest: BTreeMap::new(),
        ids: BTreeSet::new(),
    };
    for (index, step) in steps.iter().enumerate() {
        run.now = run.now.saturating_add(Duration::from_secs(step.later));
        run.take(step, caller).map_err(|why| failure(index, why))?;
    }
    Ok(())
}

struct Run<'a> {
    exchange: &'a Exchange,
    now: Timestamp,
    captures: Captures,
    /// The id of each call's latest request.
    latest: BTreeMap<String, Value>,
    /// Every id that went out, as text.
    ids: BTreeSet<String>,
}

impl Run<'_> {
    fn take(&mut self, step: &ClientStep, caller: &mut dyn Caller) -> Result<(), String> {
        let event = match &step.action {
            Action::Start { method, params } => {
                Event::Request(caller.start(&step.call, method, params, self.now))
            }
            Action::Proceed { answers } => Event::Request(caller.proceed(&step.call, answers, self.now)),
            Action::Receive { status, message } => {
                let id = self
                    .latest
                    .get(&step.call)
                    .ok_or_else(|| format!("call {:?} has not begun", step.call))?;
                let message = with_id(&fill(message, &self.captures)?, id);
                caller.receive(&step.call, *status, &message, self.now)
            }
        };
        match (&step.outcome, event) {
            (Outcome::Request(request), Event::Request(outgoing)) => {
                self.sent(&step.call, request, &outgoing)
            }
            (Outcome::Asks(expected), Event::Asks(keys)) => {
                let sorted = |keys: &[String]| keys.iter().cloned().collect::<BTreeSet<_>>();
                let same = sorted(expected) == sorted(&keys) && expected.len() == keys.len();
                if same { Ok(()) } else { Err(format!("expected asks {expected:?}, found {keys:?}")) }
            }
            (Outcome::Complete(expected), Event::Complete(found))
            | (Outcome::Refused(expected), Event::Refused(found)) => {
                matches(expected, &found, &self.captures)
            }
            (Outcome::Pause, Event::Pause) | (Outcome::Invalid, Event::Invalid) => Ok(()),
            (expected, event) => Err(format!("expected {expected:?}, found {event:?}")),
        }
    }

    /// A request went out: its metadata, its id, what the step expects of it, its headers.
    fn sent(&mut self, call: &str, request: &Request, outgoing: &Outgoing) -> Result<(), String> {
        let message = &outgoing.message;
        let metadata = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": self.exchange.capabilities,
        });
        matches(&json!({"jsonrpc": "2.0", "params": {"_meta": metadata}}), message, &self.captures)?;
        let id = &message["id"];
        if !(id.is_string() || id.is_i64() || id.is_u64()) {
            return Err(format!("{id} is no request id"));
        }
        if !self.ids.insert(id.to_string()) {
            return Err(format!("the id {id} was used before"));
        }
        self.latest.insert(call.to_owned(), id.clone());

        let claims = Claims { capture: &request.capture, absent: &request.absent, exact: &request.exact };
        claims
            .check(&request.expect, message, &mut self.captures)
            .map_err(|why| format!("{why}\n  in {message}"))?;
        for (name, expected) in &request.headers {
            let mut values =
                outgoing.headers.iter().filter(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, v)| v);
            let (first, second) = (values.next(), values.next());
            if first != expected.as_ref() || second.is_some() {
                return Err(format!("header {name}: expected {expected:?}, found {:?}", outgoing.headers));
            }
        }
        Ok(())
    }
}

/// The server's message with the request's id where `$request_id` stands.
fn with_id(message: &Value, id: &Value) -> Value {
    let mut message = message.clone();
    if let Some(place) = message.get_mut("id")
        && place.get("$request_id").is_some()
    {
        *place = id.clone();
    }
    message
}
