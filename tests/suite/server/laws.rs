//! Laws over random messages.

use std::time::Duration;

use mrtr_core::{
    Timestamp,
    seal::{KeyRing, Sealer, Secret},
    server::Config,
    wire::Implementation,
};
use mrtr_tests::world::{Delivered, Reply, SECRET, START, World, accept, lawful};
use proptest::{collection::vec, prelude::*, sample::select};
use serde_json::{Value, json};

use super::{call, kit, tool_call, world};

/// JSON that can be wrong in ways that `Value` cannot: members may stand twice.
#[derive(Clone, Debug)]
enum Node {
    Object(Vec<(String, Node)>),
    Array(Vec<Node>),
    Text(String),
}

impl Node {
    fn of(value: &Value) -> Self {
        match value {
            Value::Object(members) => {
                Self::Object(members.iter().map(|(name, value)| (name.clone(), Self::of(value))).collect())
            }
            Value::Array(items) => Self::Array(items.iter().map(Self::of).collect()),
            other => Self::Text(other.to_string()),
        }
    }

    fn write(&self, out: &mut String) {
        match self {
            Self::Object(members) => {
                out.push('{');
                for (index, (name, value)) in members.iter().enumerate() {
                    if index > 0 {
                        out.push(',');
                    }
                    out.push_str(&Value::from(name.as_str()).to_string());
                    out.push(':');
                    value.write(out);
                }
                out.push('}');
            }
            Self::Array(items) => {
                out.push('[');
                for (index, item) in items.iter().enumerate() {
                    if index > 0 {
                        out.push(',');
                    }
                    item.write(out);
                }
                out.push(']');
            }
            Self::Text(text) => out.push_str(text),
        }
    }

    fn count(&self) -> usize {
        1 + match self {
            Self::Object(members) => members.iter().map(|(_, value)| value.count()).sum(),
            Self::Array(items) => items.iter().map(Self::count).sum(),
            Self::Text(_) => 0,
        }
    }

    /// Applies `change` to the node with this number, counted from the top, the top not among them.
    fn change(&mut self, mut at: usize, change: &Change) -> bool {
        match self {
            Self::Object(members) => {
                for index in 0..members.len() {
                    let size = members[index].1.count();
                    if at == 0 {
                        match change {
                            Change::Drop => drop(members.remove(index)),
                            Change::Twice(value) => {
                                let name = members[index].0.clone();
                                members.push((name, Self::Text((*value).into())));
                            }
                            Change::Retype(value) => members[index].1 = Self::Text((*value).into()),
                            Change::Rename(name) => members[index].0 = (*name).into(),
                            Change::Wrap => {
                                let inner = std::mem::replace(&mut members[index].1, Self::Text("0".into()));
                                members[index].1 = Self::Array(vec![inner]);
                            }
                        }
                        return true;
                    }
                    if at < size {
                        return members[index].1.change(at - 1, change);
                    }
                    at -= size;
                }
                false
            }
            Self::Array(items) => {
                for item in items {
                    let size = item.count();
                    if at == 0 {
                        *item = Self::Text("null".into());
                        return true;
                    }
                    if at < size {
                        return item.change(at - 1, change);
                    }
                    at -= size;
                }
                false
            }
            Self::Text(_) => false,
        }
    }
}

#[derive(Clone, Debug)]
enum Change {
    Drop,
    Twice(&'static str),
    Retype(&'static str),
    Rename(&'static str),
    Wrap,
}

fn changes() -> impl Strategy<Value = Vec<(usize, Change)>> {
    let values = select(vec![
        "null",
        "0",
        "-1",
        "1.5",
        "1e400",
        "true",
        "\"\"",
        "\"x\"",
        "\"accept\"",
        "\"decline\"",
        "\"\\ud800\"",
        "\"2026-07-28\"",
        "[]",
        "[[]]",
        "{}",
        "{\"action\":\"accept\"}",
        "{\"action\":\"accept\",\"content\":{\"n\":1}}",
        "{\"a\":1,\"a\":2}",
        "123456789012345678901234567890",
        "nul",
        "\"",
    ]);
    let names = select(vec![
        "",
        "n",
        "sure",
        "id",
        "method",
        "params",
        "_meta",
        "requestState",
        "inputResponses",
        "arguments",
        "name",
        "__proto__",
        "sure#1",
    ]);
    let change = prop_oneof![
        2 => Just(Change::Drop),
        2 => values.clone().prop_map(Change::Twice),
        4 => values.prop_map(Change::Retype),
        1 => names.prop_map(Change::Rename),
        1 => Just(Change::Wrap),
    ];
    vec((0usize..40, change), 1..4)
}

fn said(delivered: Delivered) -> Option<Value> {
    match delivered {
        Delivered::Reply(_, bytes) if bytes.is_empty() => None,
        Delivered::Reply(_, bytes) => Some(lawful(&bytes)),
        Delivered::Listen(_) | Delivered::Cancelled(_) | Delivered::Accepted => None,
    }
}

/// Requests as they should be: first ones, retries, of every kind.
fn seeds(world: &mut World) -> Vec<Value> {
    let mut seeds = Vec::new();
    for tool in ["confirm", "form", "both", "optional", "plain"] {
        seeds.push(tool_call(world, tool, json!({"arguments": {"a": [1, {"b": "c"}]}})));
    }
    seeds.push(tool_call(world, "form", json!({"inputResponses": {"n": accept(json!({"n": 1}))}})));
    for method in ["tools/list", "server/discover"] {
        seeds.push(world.request(method, json!({})));
    }
    seeds.push(world.request("prompts/get", json!({"name": "greet", "arguments": {"who": "you"}})));
    seeds.push(world.request(
        "completion/complete",
        json!({"ref": {"type": "ref/prompt", "name": "greet"}, "argument": {"name": "how", "value": ""}}),
    ));
    seeds.push(json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}));
    seeds
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    /// Guarantee "no panic on any input", R-003, R-012, R-036, R-182: any bytes get a lawful reply, or none.
    #[test]
    fn any_bytes_get_a_lawful_reply_or_none(bytes in vec(any::<u8>(), 0..300)) {
        said(world().deliver(&bytes, None));
    }

    /// The same for what looks like JSON.
    #[test]
    fn any_tokens_get_a_lawful_reply_or_none(tokens in vec(select(vec![
        "{", "}", "[", "]", ":", ",", " ", "\"jsonrpc\":\"2.0\"", "\"id\":1", "\"id\"", "\"method\":\"tools/call\"", "\"params\":{", "\"name\":\"confirm\"",
        "\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\",\"io.modelcontextprotocol/clientCapabilities\":{\"elicitation\":{}}}",
        "\"requestState\":\"\"", "\"inputResponses\":{}", "null", "1", "\"\\u0000\"", "\u{e9}", "true", "\n",
    ]), 0..24)) {
        said(world().deliver(tokens.concat().as_bytes(), None));
    }

    /// B-41, B-45, R-080: however a request is bent, the reply is lawful, the same bytes get the same reply, and the tool that
    /// asks for a yes runs only if exactly that yes, to that question, in that state, came in.
    #[test]
    fn bent_requests_never_get_past_a_question(which in 0usize..3, seed in 0usize..16, changes in changes(), now in 0u64..2_000_000) {
        let mut world = world();
        let first = call(&mut world, "confirm", json!({"arguments": {"id": 1}}));
        let answer = [accept(json!({})), json!({"action": "decline"}), json!({"action": "cancel", "content": {}})][which].clone();
        let retry = tool_call(&mut world, "confirm", json!({
            "arguments": {"id": 1}, "requestState": first.state(), "inputResponses": {"sure": answer, "n": accept(json!({"n": 1}))}}));
        let mut seeds = seeds(&mut world);
        seeds.resize(16, retry);
        let mut bent = Node::of(&seeds[seed]);
        for (at, change) in &changes {
            let count = bent.count();
            if count > 1 {
                bent.change(at % (count - 1), change);
            }
        }
        let mut text = String::new();
        bent.write(&mut text);
        world.now = Timestamp::from_unix_millis(START + now);
        let headers = [("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", "tools/call"), ("Mcp-Name", "confirm")];
        said(world.deliver(text.as_bytes(), Some(&headers)));
        let Some(reply) = said(world.deliver(text.as_bytes(), None)) else { return Ok(()) };
        if reply["result"]["content"][0]["text"] == "deleted" {
            // A lone surrogate where nobody looks is no fault, but serde_json reads none.
            let text = text.replace("\\ud800", "x");
            let sent: Value = serde_json::from_str(&text).expect("what is answered is JSON");
            prop_assert_eq!(&sent["params"]["requestState"], first.state());
            prop_assert_eq!(&sent["params"]["inputResponses"]["sure"]["action"], "accept");
            prop_assert_eq!(&sent["params"]["arguments"], &json!({"id": 1}));
            prop_assert_eq!(&sent["params"]["name"], "confirm");
            prop_assert!(now < 600_000);
        }
    }
}

/// Whose request it is, which, when and where: what a state is bound to.
#[derive(Clone, Debug, PartialEq)]
struct Place {
    principal: Option<&'static str>,
    secret: u8,
    audience: &'static str,
    method: &'static str,
    target: &'static str,
    arguments: &'static str,
}

prop_compose! {
    fn place()(
        principal in select(vec![None, Some(""), Some("alice"), Some("bob")]),
        secret in 0u8..2,
        audience in select(vec!["srv", "other"]),
        (method, target) in select(vec![("tools/call", "t"), ("tools/call", "u"), ("prompts/get", "p"), ("prompts/get", "t"), ("resources/read", "t")]),
        arguments in select(vec!["{}", r#"{"a":1}"#, r#"{"a":2}"#, r#"{"a":"1"}"#, r#"{"b":1}"#, r#"{"a":[1]}"#]),
    ) -> Place {
        Place { principal, secret, audience, method, target, arguments }
    }
}

impl Place {
    fn world(&self) -> World {
        let mut secret = *SECRET;
        secret[0] ^= self.secret;
        let ring = KeyRing::new(Secret::from_bytes(&secret).expect("32 bytes"));
        let config = Config::new(Implementation::new("srv", "1"), Sealer::encrypted(&ring, self.audience));
        let handler = |ctx: mrtr_core::handler::Ctx| async move {
            Ok::<_, mrtr_core::RpcError>(mrtr_core::handler::ToolResult::text(super::shown(
                super::number(&ctx, "n").await,
            )))
        };
        let service = mrtr_core::handler::Service::new(mrtr_core::server::Server::new(config))
            .tool(mrtr_core::catalog::Tool::new("t", ""), handler)
            .and_then(|service| service.tool(mrtr_core::catalog::Tool::new("u", ""), handler))
            .and_then(|service| service.prompt(mrtr_core::catalog::Prompt::new("p", ""), handler))
            .and_then(|service| service.prompt(mrtr_core::catalog::Prompt::new("t", ""), handler))
            .and_then(|service| service.resource(mrtr_core::catalog::Resource::new("t", "t"), handler));
        let mut world = World::of(service.expect("valid"));
        world.principal = self.principal.map(|name| name.as_bytes().to_vec());
        world
    }

    fn request(&self, world: &mut World, more: Value) -> Value {
        let arguments: Value = serde_json::from_str(self.arguments).expect("JSON");
        let mut params = json!({"arguments": arguments});
        params[if self.method == "resources/read" { "uri" } else { "name" }] = json!(self.target);
        super::merge(&mut params, &more);
        world.request(self.method, params)
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    /// R-071…R-074, G-52: a state is accepted where it was made and nowhere else, by nobody else, in its time, unchanged.
    #[test]
    fn a_state_is_accepted_only_where_it_was_made(
        mine in place(),
        theirs in prop_oneof![Just(None), place().prop_map(Some)],
        flip in prop_oneof![3 => Just(None), 1 => (0usize..2_000, 1u8..64).prop_map(Some)],
        later in prop_oneof![Just(0u64), Just(599_999), Just(600_000), 0..1_200_000u64],
    ) {
        const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
        let theirs = theirs.unwrap_or_else(|| mine.clone());
        let mut world = mine.world();
        let request = mine.request(&mut world, json!({}));
        let first = world.send(&request);
        let mut state = first.state().as_bytes().to_vec();
        if let Some((at, by)) = flip {
            let at = at % state.len();
            let place = ALPHABET.iter().position(|byte| *byte == state[at]).expect("base64url");
            state[at] = ALPHABET[(place + usize::from(by)) % 64];
        }
        let state = String::from_utf8(state).expect("ASCII");
        let mut world = theirs.world();
        world.pass(Duration::from_millis(later));
        let request = theirs.request(&mut world, json!({"requestState": state, "inputResponses": {"n": accept(json!({"n": 5}))}}));
        let reply = world.send(&request);
        let accepted = mine == theirs && flip.is_none() && later < 600_000;
        if accepted {
            prop_assert_eq!(&reply.result()["content"][0]["text"], "5");
        } else {
            prop_assert_eq!(reply.error(), (-32602, "Invalid or expired requestState"));
        }
    }

    /// Guarantee "same bytes in, same bytes out": two replicas with the same time and entropy say the same, byte for byte.
    #[test]
    fn the_same_in_gives_the_same_out(answers in vec((select(vec!["n", "in", "s", "r", "a", "b"]), 0usize..5), 0..6), tool in select(vec![
        "everything", "optional", "both", "two", "form", "confirm",
    ])) {
        let answer = |which: usize| [
            accept(json!({"n": 1})), json!({"action": "decline"}), json!({"role": "assistant", "model": "m", "content": []}), json!({"roots": []}), json!(5),
        ][which].clone();
        let answers: serde_json::Map<String, Value> = answers.into_iter().map(|(key, which)| (key.into(), answer(which))).collect();
        let run = || {
            let mut world = World::of(kit(mrtr_tests::world::config()));
            let request = tool_call(&mut world, tool, json!({})).to_string();
            let first = world.send_bytes(request.as_bytes());
            let state = Reply(lawful(&first)).state().to_owned();
            let request = tool_call(&mut world, tool, json!({"requestState": state, "inputResponses": answers})).to_string();
            (first, world.send_bytes(request.as_bytes()))
        };
        prop_assert_eq!(run(), run());
    }
}
