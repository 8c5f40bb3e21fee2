//! The client's side of legacy sessions, with virtual time: against scripts, and against our own server.

mod asks;
mod bounds;
mod calls;
mod handshake;
mod paired;

use std::time::Duration;

use mrtr_core::{
    Limits, Timestamp,
    jsonrpc::Json,
    legacy::client::{
        AskId, Asked, CallId, Carries, ClientConfig, ClientSession, Closed, Event, Failure, Via,
    },
    wire::{ClientCapabilities, Implementation},
};
use serde_json::{Value, json};

const NEWEST: &str = "2025-11-25";

fn at(millis: u64) -> Timestamp {
    Timestamp::from_unix_millis(millis)
}

fn config() -> ClientConfig {
    ClientConfig::new(Implementation::new("host", "1"), ClientCapabilities::ALL)
}

/// A session and the time.
struct Script {
    session: ClientSession,
    now: Timestamp,
}

impl Script {
    /// A session that is open and has nothing to tell.
    fn open(config: ClientConfig, version: &str) -> Self {
        let mut script = Self { session: ClientSession::new(config), now: at(0) };
        script.session.open(script.now);
        assert_eq!(script.sent().len(), 1);
        let result = json!({"protocolVersion": version, "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}});
        script.receive(&json!({"jsonrpc": "2.0", "id": 1, "result": result}));
        assert!(matches!(script.only(), Event::Opened));
        assert_eq!(script.sent(), [json!({"jsonrpc": "2.0", "method": "notifications/initialized"})]);
        script
    }

    /// One of 2025-11-25.
    fn newest() -> Self {
        Self::open(config(), NEWEST)
    }

    fn pass(&mut self, time: Duration) {
        self.now = self.now.saturating_add(time);
        self.session.handle_timeout(self.now);
    }

    fn receive(&mut self, message: &Value) {
        self.receive_via(Via::Pipe, message);
    }

    fn receive_via(&mut self, via: Via, message: &Value) {
        self.session.handle_message(via, message.to_string().as_bytes(), self.now);
    }

    /// The server's reply to a request.
    fn reply(&mut self, call: CallId, result: Value) {
        let id: i64 = call.request_id().as_i64().expect("a number");
        self.receive(&json!({"jsonrpc": "2.0", "id": id, "result": result}));
    }

    fn events(&mut self) -> Vec<Event> {
        std::iter::from_fn(|| self.session.poll_event()).collect()
    }

    /// The one event there is.
    fn only(&mut self) -> Event {
        let mut events = self.events();
        assert_eq!(events.len(), 1, "{events:?}");
        events.remove(0)
    }

    fn sent(&mut self) -> Vec<Value> {
        std::iter::from_fn(|| self.session.poll_transmit())
            .map(|transmit| {
                assert!(!transmit.bytes.contains(&b'\n'), "R-183");
                serde_json::from_slice(&transmit.bytes).expect("JSON")
            })
            .collect()
    }

    /// Makes a call of the tool `t` and takes it off the queue.
    fn call(&mut self) -> CallId {
        let call = self
            .session
            .request("tools/call", Some(object(r#"{"name":"t","arguments":{}}"#)), self.now)
            .expect("the session is open");
        self.sent();
        call
    }

    /// The server asks for roots under this id.
    fn ask_roots(&mut self, id: i64) {
        self.receive(&json!({"jsonrpc": "2.0", "id": id, "method": "roots/list"}));
    }

    /// The ask that is the only event.
    fn asked(&mut self) -> Asked {
        match self.only() {
            Event::Ask(asked) => asked,
            other => panic!("{other:?}"),
        }
    }
}

fn object(text: &str) -> Json<'_> {
    Json::parse(text, &Limits::default()).expect("JSON")
}

fn failed(event: Event) -> (CallId, Failure) {
    match event {
        Event::Response { call, outcome: Err(failure) } => (call, failure),
        other => panic!("{other:?}"),
    }
}

fn result(event: Event) -> (CallId, String) {
    match event {
        Event::Response { call, outcome: Ok(result) } => (call, result.into()),
        other => panic!("{other:?}"),
    }
}

fn closed(event: Event) -> Closed {
    match event {
        Event::Closed(why) => why,
        other => panic!("{other:?}"),
    }
}
