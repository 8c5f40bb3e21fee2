//! A server in a test: a service, a clock that only tests move, entropy that only counts.

use std::time::Duration;

use mrtr_core::{
    Entropy, Limits, Timestamp,
    catalog::{Listen, Prompt, Resource, Tool},
    handler::{Ctx, Outcome, Output, Reception, RpcError, Service},
    http::ReplyClass,
    jsonrpc::RequestId,
    seal::{KeyRing, Principal, Sealer, Secret},
    server::{Config, RoundEnv, Server},
    tape::TapePolicy,
    wire::Implementation,
};
use serde_json::{Value, json};

/// The secret of every test.
pub const SECRET: &[u8; 32] = b"a secret for the tests, 32 bytes";

/// When every test begins.
pub const START: u64 = 1_800_000_000_000;

/// A server and its surroundings.
pub struct World {
    pub service: Service,
    pub now: Timestamp,
    pub principal: Option<Vec<u8>>,
    pub capabilities: Value,
    entropy: u64,
    id: i64,
}

/// What a server said: its reply, parsed.
#[derive(Clone, Debug, PartialEq)]
pub struct Reply(pub Value);

/// What became of a message.
#[derive(Debug)]
pub enum Delivered {
    /// One whole message, and what it is.
    Reply(ReplyClass, Vec<u8>),
    /// A stream of changes.
    Listen(Listen),
    /// A request is no longer wanted.
    Cancelled(RequestId),
    /// Nothing is to be sent.
    Accepted,
}

/// A configuration with the encrypted suite and fixed keys.
pub fn config() -> Config {
    let ring = KeyRing::new(Secret::from_bytes(SECRET).expect("32 bytes"));
    Config::new(Implementation::new("srv", "1"), Sealer::encrypted(&ring, "srv"))
}

/// A service of one tool named `t` that takes any arguments, a prompt `p` and a resource `r:x` with the same handler.
pub fn service<F, R, O>(config: Config, handler: F) -> Service
where
    F: Fn(Ctx) -> R + Send + Sync + Clone + 'static,
    R: Future<Output = Result<O, RpcError>> + Send + 'static,
    O: Into<Output> + 'static,
{
    Service::new(Server::new(config))
        .tool(Tool::new("t", "A tool"), handler.clone())
        .and_then(|service| service.tool(Tool::new("u", "The same tool by another name"), handler.clone()))
        .and_then(|service| service.prompt(Prompt::new("p", "A prompt"), handler.clone()))
        .and_then(|service| service.resource(Resource::new("r:x", "x"), handler))
        .expect("names are valid")
}

impl World {
    /// A world around a handler, with the default configuration.
    pub fn new<F, R, O>(handler: F) -> Self
    where
        F: Fn(Ctx) -> R + Send + Sync + Clone + 'static,
        R: Future<Output = Result<O, RpcError>> + Send + 'static,
        O: Into<Output> + 'static,
    {
        Self::of(service(config(), handler))
    }

    /// The same with other limits and policy.
    pub fn with<F, R, O>(limits: Limits, policy: TapePolicy, handler: F) -> Self
    where
        F: Fn(Ctx) -> R + Send + Sync + Clone + 'static,
        R: Future<Output = Result<O, RpcError>> + Send + 'static,
        O: Into<Output> + 'static,
    {
        let mut config = config();
        config.limits = limits;
        config.tape = policy;
        Self::of(service(config, handler))
    }

    pub fn of(service: Service) -> Self {
        Self {
            service,
            now: Timestamp::from_unix_millis(START),
            principal: Some(b"alice".to_vec()),
            capabilities: json!({"elicitation": {"form": {}, "url": {}}, "sampling": {"tools": {}}, "roots": {}}),
            entropy: 0,
            id: 0,
        }
    }

    pub fn pass(&mut self, time: Duration) {
        self.now = self.now.saturating_add(time);
    }

    /// Leaves out so many values of the entropy: two worlds must not draw the same ones.
    pub fn skip_entropy(&mut self, count: u64) {
        self.entropy += count;
    }

    fn entropy(&mut self) -> Entropy {
        self.entropy += 1;
        let mut bytes = [7u8; 32];
        bytes[..8].copy_from_slice(&self.entropy.to_be_bytes());
        Entropy::new(bytes)
    }

    /// A modern request with `_meta`.
    pub fn request(&mut self, method: &str, mut params: Value) -> Value {
        self.id += 1;
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": self.capabilities,
        });
        json!({"jsonrpc": "2.0", "id": self.id, "method": method, "params": params})
    }

    /// Sends one message over a pipe and runs what it starts, without a runtime.
    pub fn send(&mut self, message: &Value) -> Reply {
        Reply(lawful(&self.send_bytes(message.to_string().as_bytes())))
    }

    /// The same in bytes.
    pub fn send_bytes(&mut self, message: &[u8]) -> Vec<u8> {
        match self.deliver(message, None) {
            Delivered::Reply(_, bytes) => bytes,
            other => panic!("no reply: {other:?}"),
        }
    }

    /// Sends one message over a pipe, or over HTTP with these headers.
    pub fn deliver(&mut self, message: &[u8], headers: Option<&[(&str, &str)]>) -> Delivered {
        let entropy = self.entropy();
        let principal = self.principal.clone();
        let principal = principal.as_deref().map_or(Principal::Anonymous, Principal::Authenticated);
        let mut env = RoundEnv::new(self.now, entropy, principal);
        if let Some(headers) = &headers {
            env = env.with_headers(headers);
        }
        match self.service.receive(message, env) {
            Reception::Run(run) => {
                let mut out = Vec::new();
                let outcome = run.run(self.now, &mut out);
                assert!(matches!(outcome, Outcome::InputRequired(_) | Outcome::Complete(_)));
                Delivered::Reply(outcome.class(), out)
            }
            Reception::Reply { bytes, class } => Delivered::Reply(class, bytes),
            Reception::Listen(listen) => Delivered::Listen(listen),
            Reception::Cancelled(id) => Delivered::Cancelled(id),
            Reception::Accepted => Delivered::Accepted,
            other => panic!("unknown: {other:?}"),
        }
    }

    /// Sends one message and hands over what it starts, for a driver of the caller's.
    pub fn receive<'a>(&'a mut self, message: &'a [u8]) -> Reception<'a> {
        let entropy = self.entropy();
        let world: &'a Self = self;
        let principal = world.principal.as_deref().map_or(Principal::Anonymous, Principal::Authenticated);
        world.service.receive(message, RoundEnv::new(world.now, entropy, principal))
    }

    /// A request for the tool `t` with these further params.
    pub fn tool_call(&mut self, params: &Value) -> Value {
        let mut all = json!({"name": "t", "arguments": {}});
        for (name, value) in params.as_object().expect("an object") {
            all[name] = value.clone();
        }
        self.request("tools/call", all)
    }

    /// Calls the tool `t` with these further params.
    pub fn call(&mut self, params: Value) -> Reply {
        let request = self.tool_call(&params);
        self.send(&request)
    }

    /// Retries the tool `t` with answers and the state of `last`.
    pub fn retry(&mut self, last: &Reply, answers: Value) -> Reply {
        self.call(json!({"inputResponses": answers, "requestState": last.state()}))
    }
}

impl Reply {
    pub fn result(&self) -> &Value {
        self.0.get("result").unwrap_or_else(|| panic!("not a result: {self:?}"))
    }

    pub fn error(&self) -> (i64, &str) {
        let error = self.0.get("error").unwrap_or_else(|| panic!("not an error: {self:?}"));
        (error["code"].as_i64().expect("a code"), error["message"].as_str().expect("a message"))
    }

    pub fn data(&self) -> &Value {
        &self.0["error"]["data"]
    }

    /// The state of an interim result.
    pub fn state(&self) -> &str {
        assert_eq!(self.result()["resultType"], "input_required", "{self:?}");
        self.result()["requestState"].as_str().expect("a state")
    }

    /// The keys asked, in their order in the JSON text.
    pub fn keys(&self) -> Vec<&str> {
        assert_eq!(self.result()["resultType"], "input_required", "{self:?}");
        self.result()["inputRequests"]
            .as_object()
            .map(|asks| asks.keys().map(String::as_str).collect())
            .unwrap_or_default()
    }

    /// The message of an ask.
    pub fn message(&self, key: &str) -> &str {
        self.result()["inputRequests"][key]["params"]["message"].as_str().expect("a message")
    }

    /// The text of a complete tool result.
    pub fn text(&self) -> &str {
        assert_eq!(self.result()["resultType"], "complete", "{self:?}");
        self.result()["content"][0]["text"].as_str().expect("a text")
    }
}

/// A reply, held against what every reply of a modern server must be: one line of JSON, a result with
/// `resultType` and `serverInfo` or an error with an integer code that may be sent (R-004, R-023,
/// R-024), an id that is no null, and no caching hints on an interim result.
pub fn lawful(bytes: &[u8]) -> Value {
    let text = std::str::from_utf8(bytes).expect("UTF-8");
    assert!(!text.contains(['\n', '\r']), "more than one line: {text}");
    let value: Value = serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"));
    let message = value.as_object().expect("an object");
    assert_eq!(message.get("jsonrpc"), Some(&json!("2.0")), "{text}");
    if let Some(id) = message.get("id") {
        assert!(id.is_string() || id.is_number(), "{text}");
    }
    match (message.get("result"), message.get("error")) {
        (Some(result), None) => {
            assert!(message.contains_key("id"), "{text}");
            assert_eq!(result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "srv", "{text}");
            match result["resultType"].as_str() {
                Some("complete") => {
                    for member in ["inputRequests", "requestState"] {
                        assert!(result.get(member).is_none(), "{text}");
                    }
                }
                Some("input_required") => {
                    for member in ["ttlMs", "cacheScope"] {
                        assert!(result.get(member).is_none(), "{text}");
                    }
                    if let Some(asks) = result.get("inputRequests") {
                        assert!(asks.as_object().is_some_and(|asks| !asks.is_empty()), "{text}");
                    }
                    assert!(result["requestState"].as_str().is_some_and(|state| !state.is_empty()), "{text}");
                }
                _ => panic!("no resultType: {text}"),
            }
        }
        (None, Some(error)) => {
            let code = error["code"].as_i64().unwrap_or_else(|| panic!("no code: {text}"));
            assert!(error["message"].as_str().is_some_and(|message| !message.is_empty()), "{text}");
            assert!(!(-32099..=-32023).contains(&code) && code != -32002, "{text}");
        }
        _ => panic!("neither a result nor an error: {text}"),
    }
    value
}

/// An accepted form.
pub fn accept(content: Value) -> Value {
    json!({"action": "accept", "content": content})
}

/// A refused one.
pub fn decline() -> Value {
    json!({"action": "decline"})
}

/// A dismissed one.
pub fn cancel() -> Value {
    json!({"action": "cancel"})
}
