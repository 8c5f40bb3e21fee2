//! `_meta` of requests and results.

use mrtr_core::http::ReplyClass;
use mrtr_tests::world::{Reply, accept};
use serde_json::{Value, json};

use super::{call, post, retry, tool_call, world};

const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
const INFO: &str = "io.modelcontextprotocol/clientInfo";
const LEVEL: &str = "io.modelcontextprotocol/logLevel";

/// R-032, R-033, R-038, R-042, R-200: a missing or broken member is `-32602`, on HTTP 400, on every method; on
/// retries too.
#[test]
fn r_033_members_that_are_missing_or_broken() {
    let mut world = world();
    let first = call(&mut world, "form", json!({}));
    let broken = [json!(null), json!(5), json!([]), json!(true)];
    let mut edits: Vec<(&str, Option<Value>)> = vec![(VERSION, None), (CAPABILITIES, None)];
    for value in &broken {
        edits.extend([VERSION, CAPABILITIES, LEVEL].map(|name| (name, Some(value.clone()))));
    }
    edits.extend([(VERSION, Some(json!({}))), (CAPABILITIES, Some(json!("x"))), (LEVEL, Some(json!({})))]);
    edits.extend([json!("INFO"), json!("warn"), json!("")].map(|level| (LEVEL, Some(level))));
    edits.extend(
        [json!(null), json!(1.5), json!({}), json!([1]), json!(true)]
            .map(|token| ("progressToken", Some(token))),
    );
    for name in ["elicitation", "sampling", "roots"] {
        edits.extend(broken.iter().map(|value| (CAPABILITIES, Some(json!({name: value})))));
    }
    for (method, params) in [
        ("tools/call", json!({"name": "plain"})),
        (
            "tools/call",
            json!({"name": "form", "requestState": first.state(), "inputResponses": {"n": accept(json!({"n": 1}))}}),
        ),
        ("prompts/get", json!({"name": "ask"})),
        ("resources/read", json!({"uri": "r:plain"})),
        ("tools/list", json!({})),
        ("server/discover", json!({})),
        ("no/such", json!({})),
    ] {
        for (name, value) in &edits {
            let mut request = world.request(method, params.clone());
            let meta = request["params"]["_meta"].as_object_mut().expect("an object");
            match value {
                Some(value) => meta.insert((*name).into(), value.clone()),
                None => meta.remove(*name),
            };
            let (class, reply) = post(&mut world, &request.to_string());
            assert_eq!(
                (class, reply["error"]["code"].as_i64()),
                (ReplyClass::MetaInvalid, Some(-32602)),
                "{request}"
            );
            assert!(reply["error"]["message"].as_str().expect("text").contains(name), "{reply}");
        }
        for meta in [None, Some(json!(null)), Some(json!([])), Some(json!("x"))] {
            let mut request = world.request(method, params.clone());
            match meta {
                Some(meta) => request["params"]["_meta"] = meta,
                None => drop(request["params"].as_object_mut().expect("an object").remove("_meta")),
            }
            let (class, reply) = post(&mut world, &request.to_string());
            assert_eq!(
                (class, reply["error"]["code"].as_i64()),
                (ReplyClass::MetaInvalid, Some(-32602)),
                "{request}"
            );
        }
    }
    // No params at all.
    let (class, _) = post(&mut world, r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#);
    assert_eq!(class, ReplyClass::MetaInvalid);
}

/// R-034, R-035: who the client says it is changes nothing: absent, broken, or another one on the retry.
#[test]
fn r_035_client_info_decides_nothing() {
    let mut world = world();
    let infos = [
        None,
        Some(json!(null)),
        Some(json!(5)),
        Some(json!({})),
        Some(json!({"name": "a", "version": "1"})),
    ];
    let with = |mut request: Value, info: &Option<Value>| {
        if let Some(info) = info {
            request["params"]["_meta"][INFO] = info.clone();
        }
        request
    };
    for first in &infos {
        for second in &infos {
            let request = with(tool_call(&mut world, "form", json!({})), first);
            let asked = world.send(&request);
            let params =
                json!({"requestState": asked.state(), "inputResponses": {"n": accept(json!({"n": 2}))}});
            let request = with(tool_call(&mut world, "form", params), second);
            assert_eq!(world.send(&request).text(), "2");
        }
    }
}

/// R-036, G-41: every result says who the server is, in `_meta` and nowhere else (R-046); R-039: and no subscription.
#[test]
fn r_036_every_result_names_the_server() {
    let mut world = world();
    let mut results: Vec<Reply> =
        ["plain", "form", "fails"].map(|tool| call(&mut world, tool, json!({}))).into();
    for (method, params) in [
        ("server/discover", json!({})),
        ("tools/list", json!({})),
        ("prompts/list", json!({})),
        ("resources/list", json!({})),
        ("resources/templates/list", json!({})),
        ("resources/read", json!({"uri": "r:plain"})),
        ("resources/read", json!({"uri": "r:asks"})),
        ("prompts/get", json!({"name": "greet", "arguments": {"who": "you"}})),
        ("prompts/get", json!({"name": "ask"})),
        (
            "completion/complete",
            json!({"ref": {"type": "ref/prompt", "name": "greet"}, "argument": {"name": "how", "value": ""}}),
        ),
    ] {
        let request = world.request(method, params);
        results.push(world.send(&request));
    }
    for reply in results {
        let meta = reply.result()["_meta"].as_object().expect("an object");
        assert_eq!(meta.keys().collect::<Vec<_>>(), ["io.modelcontextprotocol/serverInfo"]);
        assert_eq!(meta["io.modelcontextprotocol/serverInfo"], json!({"name": "srv", "version": "1"}));
        assert!(reply.result().get("serverInfo").is_none());
    }
}

/// R-036, R-041: a handler's own `_meta` is kept beside ours, but it cannot say that the server is another one, nor
/// what kind of result it is.
#[test]
fn r_036_a_handlers_meta_is_kept_beside_ours() {
    use mrtr_core::handler::{Ctx, Output, RpcError};
    let mut world = mrtr_tests::world::World::new(|_: Ctx| async move {
        let result = json!({
            "content": [], "resultType": "input_required",
            "_meta": {"com.example/own": [1], "io.modelcontextprotocol/serverInfo": {"name": "evil", "version": "9"}},
        });
        Output::from_serialize(&result).map_err(|_| RpcError::internal("no"))
    });
    let reply = world.call(json!({}));
    assert_eq!(
        reply.result(),
        &json!({
            "resultType": "complete", "content": [],
            "_meta": {"com.example/own": [1], "io.modelcontextprotocol/serverInfo": {"name": "srv", "version": "1"}},
        })
    );
}

/// R-043, R-041, G-39: asks carry no `_meta`; the only member of our own is in the result's, under our own prefix.
#[test]
fn r_043_asks_carry_no_meta() {
    let mut world = world();
    let first = call(&mut world, "everything", json!({}));
    for (key, ask) in first.result()["inputRequests"].as_object().expect("asks") {
        assert!(ask["params"].get("_meta").is_none(), "{key}");
        assert!(ask.get("id").is_none() && ask.get("jsonrpc").is_none(), "{key}");
    }
    let again = retry(&mut world, "everything", &first, json!({"n": accept(json!({"n": 99}))}));
    let mut members: Vec<_> = again.result()["_meta"].as_object().expect("an object").keys().collect();
    members.sort();
    assert_eq!(members, ["dev.mrtr/invalid", "io.modelcontextprotocol/serverInfo"]);
}

/// R-037, R-038, R-040, B-24, B-64, G-54: what legally changes in `_meta` from round to round breaks nothing.
#[test]
fn b_24_what_may_change_in_meta_from_round_to_round() {
    let mut world = world();
    let first = call(&mut world, "form", json!({"arguments": {"a": 1}}));
    for (name, value) in [
        ("progressToken", json!("t")),
        ("progressToken", json!(7)),
        (LEVEL, json!("debug")),
        (INFO, json!({"name": "x", "version": "2"})),
        ("traceparent", json!("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")),
        ("com.example/x", json!(null)),
        (CAPABILITIES, json!({"elicitation": {"form": {}, "url": {}}})),
    ] {
        let mut request = tool_call(
            &mut world,
            "form",
            json!({
            "arguments": {"a": 1}, "requestState": first.state(), "inputResponses": {"n": accept(json!({"n": 3}))}}),
        );
        request["id"] = json!("another");
        request["params"]["_meta"][name] = value;
        assert_eq!(world.send(&request).text(), "3", "{name}");
    }
}
