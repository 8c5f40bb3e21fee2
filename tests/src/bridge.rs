//! A bridge in a test, between hosts and upstreams that tests play by hand, with a clock that only tests move.

use std::time::Duration;

use mrtr_core::{
    Entropy, Timestamp,
    bridge::{
        Bridge, CallFailure, Config, HostId, HostKind, HostStream, LinkId, Output, Transport, Upstream,
    },
    http::{Headers, ReplyClass},
    seal::{KeyRing, Principal, Sealer, Secret},
    wire::{Era, Implementation},
};
use serde_json::{Value, json};

use crate::world::{SECRET, START};

/// The bridge and what it has said so far and nobody has looked at yet.
pub struct World {
    pub bridge: Bridge,
    pub now: Timestamp,
    hosts: u64,
    ids: i64,
    pub said: Vec<Said>,
}

/// One output, taken apart.
#[derive(Clone, Debug)]
pub enum Said {
    Host { host: HostId, stream: HostStream, raw: String, last: Option<ReplyClass> },
    Alive { host: HostId },
    Up { link: LinkId, call: Option<i64>, raw: String, headers: Vec<(String, String)> },
    Opened { link: LinkId, upstream: usize },
    Closed { link: LinkId },
    StreamClosed { link: LinkId, call: i64 },
    Peer { peer: [u8; 16], bytes: Vec<u8>, keep: Duration },
}

impl Said {
    pub fn json(&self) -> Value {
        match self {
            Self::Host { raw, .. } | Self::Up { raw, .. } => serde_json::from_str(raw).expect("JSON"),
            other => panic!("no message: {other:?}"),
        }
    }
}

pub fn config(upstreams: &[(&str, Transport, Era)]) -> Config {
    let ring = KeyRing::new(Secret::from_bytes(SECRET).expect("32 bytes"));
    let sealer = Sealer::encrypted(&ring, "bridge");
    let upstreams =
        upstreams.iter().map(|(name, transport, era)| Upstream::new(*name, *transport, *era)).collect();
    Config::new(Implementation::new("bridge", "1"), sealer, upstreams)
}

/// `_meta` of a modern request.
pub fn meta(capabilities: Value) -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": capabilities,
    })
}

/// A form as a legacy server asks it.
pub fn form(id: Value, message: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "elicitation/create", "params": {"message": message,
        "requestedSchema": {"type": "object", "properties": {"n": {"type": "string"}}}}})
}

impl World {
    pub fn new(config: Config) -> Self {
        Self::seeded(config, 9)
    }

    pub fn seeded(config: Config, seed: u8) -> Self {
        let bridge = Bridge::new(config, Entropy::new([seed; 32])).expect("a good configuration");
        Self { bridge, now: Timestamp::from_unix_millis(START), hosts: 0, ids: 100, said: Vec::new() }
    }

    /// One upstream called `up`.
    pub fn single(transport: Transport, era: Era) -> Self {
        Self::new(config(&[("up", transport, era)]))
    }

    pub fn host(&mut self, kind: HostKind, principal: &str) -> HostId {
        self.hosts += 1;
        let host = HostId(self.hosts);
        self.bridge.open_host(host, kind, Principal::Authenticated(principal.as_bytes()));
        host
    }

    pub fn send_raw(&mut self, host: HostId, message: &str) {
        self.bridge.handle_host(host, message.as_bytes(), None, self.now);
        self.drain();
    }

    pub fn send_with(&mut self, host: HostId, message: &str, headers: &dyn Headers) {
        self.bridge.handle_host(host, message.as_bytes(), Some(headers), self.now);
        self.drain();
    }

    pub fn send(&mut self, host: HostId, message: &Value) {
        self.send_raw(host, &message.to_string());
    }

    /// A modern request by POST: the host and the id.
    pub fn post(
        &mut self,
        principal: &str,
        method: &str,
        mut params: Value,
        capabilities: &Value,
    ) -> (HostId, i64) {
        let host = self.host(HostKind::Post, principal);
        self.ids += 1;
        params["_meta"] = meta(capabilities.clone());
        let id = self.ids;
        self.send(host, &json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        (host, id)
    }

    /// A call of the tool `t`, with more params.
    pub fn call(&mut self, principal: &str, capabilities: &Value, more: &Value) -> (HostId, i64) {
        let mut params = json!({"name": "t", "arguments": {"a": 1}});
        params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        self.post(principal, "tools/call", params, capabilities)
    }

    /// A message of an upstream.
    pub fn up_raw(&mut self, link: LinkId, call: Option<i64>, message: &str) {
        self.bridge.handle_upstream(link, call, message.as_bytes(), self.now);
        self.drain();
    }

    pub fn up(&mut self, link: LinkId, message: &Value) {
        self.up_raw(link, None, &message.to_string());
    }

    /// A message of another process.
    pub fn peer(&mut self, message: &[u8]) {
        self.bridge.handle_peer(message, self.now);
        self.drain();
    }

    /// Whether other processes can be reached.
    pub fn reachable(&mut self, reachable: bool) {
        self.bridge.peers_reachable(reachable, self.now);
        self.drain();
    }

    /// A connection to an upstream is gone.
    pub fn close(&mut self, link: LinkId) {
        self.bridge.close_upstream(link, self.now);
        self.drain();
    }

    /// A host's connection is gone.
    pub fn leave(&mut self, host: HostId) {
        self.bridge.close_host(host, self.now);
        self.drain();
    }

    /// An upstream's result.
    pub fn result(&mut self, link: LinkId, call: i64, result: Value) {
        self.up(link, &json!({"jsonrpc": "2.0", "id": call, "result": result}));
    }

    pub fn error(&mut self, link: LinkId, call: i64, error: Value) {
        self.up(link, &json!({"jsonrpc": "2.0", "id": call, "error": error}));
    }

    /// No response comes to a request.
    pub fn fail(&mut self, link: LinkId, call: i64, failure: CallFailure) {
        self.bridge.fail_call(link, call, failure, self.now);
        self.drain();
    }

    /// A line of an upstream was too long, and began so.
    pub fn overlong(&mut self, link: LinkId, beginning: &str) {
        self.bridge.handle_overlong(link, beginning.as_bytes(), self.now);
        self.drain();
    }

    pub fn pass(&mut self, time: Duration) {
        let until = self.now.saturating_add(time);
        while let Some((at, _)) = self.bridge.poll_timeout() {
            if at > until {
                break;
            }
            self.now = self.now.max(at);
            self.bridge.handle_timeout(self.now);
            self.drain();
        }
        self.now = until;
    }

    fn drain(&mut self) {
        while let Some(output) = self.bridge.poll_output() {
            let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
            self.said.push(match output {
                Output::ToHost { host, stream, bytes, last } => {
                    Said::Host { host, stream, raw: text(bytes), last }
                }
                Output::KeepAlive { host, .. } => Said::Alive { host },
                Output::ToUpstream { link, call, bytes, headers } => Said::Up {
                    link,
                    call,
                    raw: text(bytes),
                    headers: headers.into_iter().map(|(name, value)| (name.into(), value.into())).collect(),
                },
                Output::OpenUpstream { link, upstream } => Said::Opened { link, upstream },
                Output::CloseUpstream { link } => Said::Closed { link },
                Output::CloseStream { link, call } => Said::StreamClosed { link, call },
                Output::ToPeer { peer, bytes, keep } => Said::Peer { peer, bytes, keep },
                other => panic!("{other:?}"),
            });
        }
    }

    /// Takes what was said; line breaks inside a message would end it on a pipe.
    pub fn take(&mut self) -> Vec<Said> {
        let said = std::mem::take(&mut self.said);
        for said in &said {
            if let Said::Host { raw, .. } | Said::Up { raw, .. } = said {
                assert!(!raw.contains('\n'), "{raw}");
            }
        }
        said
    }

    /// The one thing that was said.
    pub fn only(&mut self) -> Said {
        let mut said = self.take();
        assert_eq!(said.len(), 1, "{said:?}");
        said.remove(0)
    }

    /// The one message to a host, and nothing else.
    pub fn reply(&mut self, host: HostId) -> Value {
        match self.only() {
            said @ Said::Host { host: to, .. } => {
                assert_eq!(to, host);
                said.json()
            }
            other => panic!("{other:?}"),
        }
    }

    /// The one message to an upstream, and nothing else.
    pub fn sent(&mut self) -> (LinkId, Value) {
        match self.only() {
            said @ Said::Up { link, .. } => (link, said.json()),
            other => panic!("{other:?}"),
        }
    }

    /// Answers the `initialize` that was just sent on a fresh legacy session; the session, its promise, and what was
    /// sent after it.
    pub fn begin(&mut self, version: &str) -> (LinkId, Value, Vec<Said>) {
        let said = self.take();
        let position = said
            .iter()
            .position(|said| matches!(said, Said::Up { .. }) && said.json()["method"] == "initialize");
        let init = &said[position.unwrap_or_else(|| panic!("no initialize: {said:?}"))];
        let Said::Up { link, .. } = *init else { unreachable!() };
        let init = init.json();
        let result = json!({"protocolVersion": version, "capabilities": {"tools": {}, "logging": {}},
            "serverInfo": {"name": "old", "version": "2"}});
        self.result(link, init["id"].as_i64().unwrap(), result);
        (link, init["params"]["capabilities"].clone(), self.take())
    }
}
