//! A server in a test: a service, a clock that only tests move, entropy that only counts.

use std::time::Duration;

use mrtr_core::{
    Entropy, Limits, Timestamp,
    catalog::{Prompt, Resource, Tool},
    handler::{Ctx, Outcome, Output, Reception, RpcError, Service},
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
        Reply(
            serde_json::from_slice(&self.send_bytes(message.to_string().as_bytes()))
                .expect("a reply is JSON"),
        )
    }

    /// The same in bytes.
    pub fn send_bytes(&mut self, message: &[u8]) -> Vec<u8> {
        let entropy = self.entropy();
        let principal = self.principal.clone();
        let principal = principal.as_deref().map_or(Principal::Anonymous, Principal::Authenticated);
        match self.service.receive(message, RoundEnv::new(self.now, entropy, principal)) {
            Reception::Run(run) => {
                let mut out = Vec::new();
                let outcome = run.run(self.now, &mut out);
                assert!(matches!(outcome, Outcome::InputRequired(_) | Outcome::Complete(_)));
                out
            }
            Reception::Reply { bytes, .. } => bytes,
            other => panic!("no reply: {other:?}"),
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
