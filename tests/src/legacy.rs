//! A legacy client in a test: a session on a pipe, driven without a runtime by a clock that only tests move.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
    time::Duration,
};

use mrtr_core::{
    Entropy, Timestamp,
    handler::Service,
    legacy::{Config, Handled, Session, Stream, Transmit},
    seal::Principal,
};
use serde_json::{Value, json};

use crate::world::START;

/// A session and what its client knows.
pub struct Client {
    pub session: Session,
    pub now: Timestamp,
    next: i64,
}

impl Client {
    /// A session that is begun and ready.
    pub fn new(service: Service, version: &str, capabilities: Value) -> Self {
        let mut client = Self::silent(service);
        let reply = client.initialize(version, capabilities);
        assert_eq!(reply["result"]["protocolVersion"], version, "{reply}");
        client.initialized();
        client
    }

    /// A session before its first message.
    pub fn silent(service: Service) -> Self {
        let entropy = Entropy::new([5; 32]);
        let session =
            Session::on_pipe(service, Config::default(), Principal::Authenticated(b"alice"), entropy);
        Self { session, now: Timestamp::from_unix_millis(START), next: 0 }
    }

    pub fn initialize(&mut self, version: &str, capabilities: Value) -> Value {
        let params = json!({"protocolVersion": version, "capabilities": capabilities,
            "clientInfo": {"name": "c", "version": "1"}});
        self.request("initialize", params)
    }

    pub fn initialized(&mut self) {
        self.notify("notifications/initialized", json!({}));
    }

    pub fn pass(&mut self, time: Duration) {
        self.now = self.now.saturating_add(time);
    }

    /// Sends one message; what is said to it at once, if anything.
    pub fn send(&mut self, message: &Value) -> Option<Value> {
        self.send_bytes(message.to_string().as_bytes())
    }

    pub fn send_bytes(&mut self, message: &[u8]) -> Option<Value> {
        match self.session.handle(message, self.now) {
            Handled::Reply { bytes, .. } if !bytes.is_empty() => Some(parse(&bytes)),
            Handled::Reply { .. } | Handled::Running(_) | Handled::Accepted => None,
            other => panic!("{other:?}"),
        }
    }

    pub fn notify(&mut self, method: &str, params: Value) {
        assert_eq!(self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params})), None);
    }

    /// A request that is answered at once.
    pub fn request(&mut self, method: &str, params: Value) -> Value {
        self.next += 1;
        let message = json!({"jsonrpc": "2.0", "id": self.next, "method": method, "params": params});
        self.send(&message).unwrap_or_else(|| panic!("{method} is not answered at once"))
    }

    /// A call that runs; its id.
    pub fn start(&mut self, method: &str, params: Value) -> i64 {
        self.next += 1;
        let message = json!({"jsonrpc": "2.0", "id": self.next, "method": method, "params": params});
        assert_eq!(self.send(&message), None);
        self.next
    }

    /// Calls the tool `t`.
    pub fn call(&mut self) -> i64 {
        self.start("tools/call", json!({"name": "t", "arguments": {}}))
    }

    /// Everything that the session sends now.
    pub fn drain(&mut self) -> Vec<Value> {
        drain(&mut self.session, self.now)
            .into_iter()
            .map(|transmit| {
                assert_eq!((&transmit.stream, transmit.last), (&Stream::Pipe, false));
                parse(&transmit.bytes)
            })
            .collect()
    }

    /// The one message that the session sends now.
    pub fn only(&mut self) -> Value {
        let mut messages = self.drain();
        assert_eq!(messages.len(), 1, "{messages:?}");
        messages.remove(0)
    }

    /// Answers a request of the server's.
    pub fn answer(&mut self, request: &Value, result: Value) {
        assert_eq!(self.send(&json!({"jsonrpc": "2.0", "id": request["id"], "result": result})), None);
    }

    pub fn refuse(&mut self, request: &Value, code: i64, message: &str) {
        let error = json!({"code": code, "message": message});
        assert_eq!(self.send(&json!({"jsonrpc": "2.0", "id": request["id"], "error": error})), None);
    }
}

/// Everything that a session sends now, wherever: polled for as long as it sends or wakes.
pub fn drain(session: &mut Session, now: Timestamp) -> Vec<Transmit> {
    let woken = Arc::new(Woken::default());
    let waker = Waker::from(woken.clone());
    let mut all = Vec::new();
    for _ in 0..10_000 {
        match session.poll(&mut Context::from_waker(&waker), now) {
            Poll::Ready(transmit) => all.push(transmit),
            Poll::Pending if woken.0.swap(false, Ordering::Relaxed) => {}
            Poll::Pending => return all,
        }
    }
    panic!("a session that never rests");
}

#[derive(Default)]
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A message; it is one line, and nothing of the modern era is in it (R-182, R-244, R-260, B-06).
pub fn parse(bytes: &[u8]) -> Value {
    assert!(!bytes.contains(&b'\n'));
    let message: Value = serde_json::from_slice(bytes).expect("JSON");
    let result = &message["result"];
    for member in ["resultType", "ttlMs", "cacheScope", "inputRequests", "requestState"] {
        assert_eq!(result.get(member), None, "{message}");
    }
    let meta = result["_meta"].as_object().into_iter().flatten();
    assert!(meta.into_iter().all(|(name, _)| !name.starts_with("io.modelcontextprotocol/")), "{message}");
    let code = message["error"]["code"].as_i64().unwrap_or(0);
    assert!(!(-32029..=-32020).contains(&code), "{message}");
    message
}

/// The text of a tool's result.
pub fn text(message: &Value) -> &str {
    message["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("no text: {message}"))
}
