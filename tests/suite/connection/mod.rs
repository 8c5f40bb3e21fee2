//! Many calls on one connection, through the public API with virtual time: eras, ids, faults, ends.

mod bounds;
mod calls;
mod held;
mod http;
mod paired;
mod pipe;
mod random;

use std::time::Duration;

use mrtr_core::{
    Limits, Timestamp,
    client::{
        Call, Config, Connection, ConnectionConfig, Exchange, InputRequired, InputResponse,
        connection::{CallId, Event, Failure, HeaderRules, Outcome, PostId, Transmit, Via},
    },
    http::{Judgement, Sent, judge},
    jsonrpc::Json,
    wire::{ClientCapabilities, Era, Implementation},
};
use serde_json::{Value, json};

fn at(millis: u64) -> Timestamp {
    Timestamp::from_unix_millis(millis)
}

fn client() -> Config {
    Config::new(Implementation::new("host", "1"), ClientCapabilities::ALL)
}

fn tool() -> Call<'static> {
    Call::new("tools/call", r#"{"name":"t","arguments":{}}"#)
}

/// A question with this message.
fn ask(message: &str) -> Value {
    json!({"method": "elicitation/create", "params": {"message": message,
        "requestedSchema": {"type": "object", "properties": {}}}})
}

fn complete() -> Value {
    json!({"resultType": "complete", "content": []})
}

fn interim(asks: &[(&str, Value)], state: &str) -> Value {
    let asks: serde_json::Map<String, Value> =
        asks.iter().map(|(key, ask)| ((*key).to_owned(), ask.clone())).collect();
    json!({"resultType": "input_required", "inputRequests": asks, "requestState": state})
}

/// The error that only a modern server sends.
fn unsupported(supported: &[&str]) -> Value {
    json!({"code": -32022, "message": "no", "data": {"supported": supported, "requested": "x"}})
}

/// A connection and the time.
struct Line {
    connection: Connection,
    now: Timestamp,
}

/// A request that went out.
#[derive(Clone, Debug)]
struct Out {
    post: PostId,
    call: Option<CallId>,
    headers: HeaderRules,
    message: Value,
}

impl Line {
    fn pipe(config: ConnectionConfig) -> Self {
        Self { connection: Connection::on_pipe(client(), config), now: at(0) }
    }

    fn http(config: ConnectionConfig) -> Self {
        Self { connection: Connection::over_http(client(), config), now: at(0) }
    }

    /// A pipe to a server that was found to be modern.
    fn modern() -> Self {
        let mut line = Self::pipe(ConnectionConfig::default());
        let call = line.call();
        let probe = line.request();
        line.reply(
            &probe,
            json!({"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {}}),
        );
        let first = line.request();
        line.reply(&first, complete());
        let mut events = line.events();
        assert!(matches!(events.remove(0), Event::Era(Era::Modern)));
        assert_eq!(done(events.remove(0)).0, call);
        line
    }

    /// A pipe to a server that was found to be a legacy one.
    fn legacy(config: ConnectionConfig) -> Self {
        let mut line = Self::pipe(config);
        let call = line.call();
        let probe = line.request();
        line.error(&probe, json!({"code": -32601, "message": "Method not found"}));
        line.initialize();
        line.sent();
        line.receive(&json!({"jsonrpc": "2.0", "id": 3, "result": {"content": []}}));
        let mut events = line.events();
        assert!(matches!(events.remove(0), Event::Era(Era::Legacy)));
        assert_eq!(done(events.remove(0)).0, call);
        line
    }

    /// The server's part of the handshake.
    fn initialize(&mut self) {
        let opening = self.request();
        assert_eq!(opening.message["method"], "initialize");
        self.reply(&opening, json!({"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "old", "version": "1"}}));
    }

    fn call(&mut self) -> CallId {
        self.connection.call(tool(), self.now).expect("a call")
    }

    fn pass(&mut self, time: Duration) {
        self.now = self.now.saturating_add(time);
        self.connection.handle_timeout(self.now);
    }

    fn receive(&mut self, message: &Value) {
        self.connection.handle_message(Via::Pipe, message.to_string().as_bytes(), self.now);
    }

    /// The server's reply to a request, on its way.
    fn reply(&mut self, to: &Out, result: Value) {
        let message = json!({"jsonrpc": "2.0", "id": to.message["id"], "result": result});
        let via = if self.is_http() { Via::Post(to.post) } else { Via::Pipe };
        self.connection.handle_message(via, message.to_string().as_bytes(), self.now);
    }

    fn error(&mut self, to: &Out, error: Value) {
        let message = json!({"jsonrpc": "2.0", "id": to.message["id"], "error": error});
        let via = if self.is_http() { Via::Post(to.post) } else { Via::Pipe };
        self.connection.handle_message(via, message.to_string().as_bytes(), self.now);
    }

    /// An HTTP response with a whole body.
    fn respond(&mut self, to: &Out, status: u16, body: &str) {
        let judgement: Judgement<'_> =
            judge(Sent::Request, status, Some(b"application/json"), body.as_bytes(), &Limits::default());
        self.connection.handle_http(to.post, judgement, self.now);
    }

    fn is_http(&self) -> bool {
        format!("{:?}", self.connection.client()).contains("Own")
    }

    fn events(&mut self) -> Vec<Event> {
        std::iter::from_fn(|| self.connection.poll_event()).collect()
    }

    fn only(&mut self) -> Event {
        let mut events = self.events();
        assert_eq!(events.len(), 1, "{events:?}");
        events.remove(0)
    }

    fn nothing(&mut self) {
        let (events, sent) = (self.events(), self.sent());
        assert!(events.is_empty() && sent.is_empty(), "{events:?} {sent:?}");
    }

    fn transmits(&mut self) -> Vec<Transmit> {
        std::iter::from_fn(|| self.connection.poll_transmit()).collect()
    }

    /// Everything that is sent, as messages.
    fn sent(&mut self) -> Vec<Value> {
        let parse = |bytes: &[u8]| serde_json::from_slice(bytes).expect("JSON");
        self.transmits()
            .iter()
            .map(|transmit| match transmit {
                Transmit::Request { bytes, .. } | Transmit::Message { bytes, .. } => parse(bytes),
                Transmit::Close { post } => json!({"closed": post.request_id().as_i64()}),
                other => panic!("{other:?}"),
            })
            .collect()
    }

    /// The requests that go out.
    fn requests(&mut self) -> Vec<Out> {
        let requests = self.transmits().into_iter().filter_map(|transmit| match transmit {
            Transmit::Request { post, call, bytes, headers } => {
                assert!(!bytes.contains(&b'\n'), "R-183");
                let message: Value = serde_json::from_slice(&bytes).expect("JSON");
                assert_eq!(message["id"].as_i64(), post.request_id().as_i64());
                Some(Out { post, call, headers, message })
            }
            _ => None,
        });
        requests.collect()
    }

    /// The one request that goes out.
    fn request(&mut self) -> Out {
        let mut requests = self.requests();
        assert_eq!(requests.len(), 1, "{requests:?}");
        requests.remove(0)
    }

    fn asked(&mut self) -> (CallId, Exchange<InputRequired>) {
        match self.only() {
            Event::InputRequired { call, exchange } => (call, exchange),
            other => panic!("{other:?}"),
        }
    }
}

fn done(event: Event) -> (CallId, Outcome) {
    match event {
        Event::Done { call, outcome } => (call, outcome),
        other => panic!("{other:?}"),
    }
}

fn failure(event: Event) -> (CallId, Failure) {
    let (call, outcome) = done(event);
    (call, outcome.result.expect_err("no result"))
}

fn object(text: &str) -> Json<'_> {
    Json::parse(text, &Limits::default()).expect("JSON")
}

/// Answers everything with an empty form.
fn accept_all(exchange: &mut Exchange<InputRequired>) {
    let keys: Vec<String> = exchange.missing().map(String::from).collect();
    for key in keys {
        exchange.answer(&key, InputResponse::accept(Json::EMPTY_OBJECT)).expect("it fits");
    }
}
