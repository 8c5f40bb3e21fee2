//! Legacy hosts: the bridge runs the rounds (BT-1…BT-6, R-252, B-06, B-71, B-72).

use std::time::Duration;

use mrtr_core::{
    bridge::{HostId, HostKind, HostStream, LinkId, Transport},
    jsonrpc::RequestId,
    wire::Era,
};
use mrtr_tests::bridge::{Said, World};
use serde_json::{Value, json};

use super::{all, rests};

/// A legacy host in front of a modern upstream, ready to call: the host and the upstream's connection.
fn session(world: &mut World, version: &str, capabilities: Value) -> (HostId, LinkId) {
    let host = world.host(HostKind::Session, "alice");
    world.send(
        host,
        &json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": version,
        "capabilities": capabilities, "clientInfo": {"name": "h", "version": "1"}}}),
    );
    let said = world.take();
    let [Said::Opened { link, .. }, discover] = said.as_slice() else { panic!("{said:?}") };
    let discover = discover.json();
    assert_eq!(discover["method"], "server/discover");
    world.result(*link, discover["id"].as_i64().unwrap(), json!({"resultType": "complete", "supportedVersions": ["2026-07-28"],
        "capabilities": {"tools": {}, "extensions": {"io.modelcontextprotocol/tasks": {}}}, "instructions": "Be kind.", "ttlMs": 0, "cacheScope": "private",
        "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "new", "version": "3"}}}));
    let reply = legacy(&world.reply(host));
    assert_eq!(
        reply["result"],
        json!({"protocolVersion": version, "capabilities": {"tools": {}}, "instructions": "Be kind.",
        "serverInfo": {"name": "new", "version": "3"}})
    );
    world.send(host, &json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    assert!(world.take().is_empty());
    (host, *link)
}

pub(super) fn call(id: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "t", "arguments": {"a": 1}, "_meta": {"progressToken": "p", "v": 1}}})
}

/// B-06, R-244, R-260: nothing of the modern era reaches a legacy host.
fn legacy(message: &Value) -> Value {
    let text = message.to_string();
    for word in [
        "resultType",
        "input_required",
        "requestState",
        "inputRequests",
        "ttlMs",
        "cacheScope",
        "io.modelcontextprotocol/",
    ] {
        assert!(!text.contains(word), "{text}");
    }
    let code = message["error"]["code"].as_i64().unwrap_or(0);
    assert!(!(-32029..=-32020).contains(&code), "{text}");
    message.clone()
}

fn asks(state: Option<&str>) -> Value {
    let mut result = json!({"resultType": "input_required", "inputRequests": {
        "one": {"method": "elicitation/create", "params": {"mode": "form", "message": "1?", "requestedSchema": {"type": "object", "properties": {}}}},
        "two": {"method": "elicitation/create", "params": {"mode": "url", "message": "2?", "url": "https://x.example/"}}}});
    if let Some(state) = state {
        result["requestState"] = json!(state);
    }
    result
}

/// BT-1, BT-2, R-252, B-72: all questions at once, on the stream of the call; the retry when all answers are in, with the state verbatim and a new id; B-71: `elicitationId` minted here, and completion told.
#[test]
fn the_bridge_runs_the_rounds_bt1_r252_b71_b72_r234() {
    let mut world = World::single(Transport::Http, Era::Modern);
    let (host, link) = session(&mut world, "2025-11-25", all());
    world.send(host, &call(json!("c")));
    let (_, first) = world.sent();
    let meta = &first["params"]["_meta"];
    assert_eq!(meta["io.modelcontextprotocol/clientCapabilities"], all());
    assert_eq!((&meta["progressToken"], &meta["v"]), (&first["id"], &json!(1)));
    world.result(link, first["id"].as_i64().unwrap(), asks(Some("s=")));
    let said = world.take();
    let stream = HostStream::Request(RequestId::from("c"));
    let mut questions = Vec::new();
    for said in &said {
        let Said::Host { host: to, stream: on, last: None, .. } = said else { panic!("{said:?}") };
        assert_eq!((to, on), (&host, &stream));
        questions.push(legacy(&said.json()));
    }
    assert_eq!((&questions[0]["jsonrpc"], &questions[0]["params"]["message"]), (&json!("2.0"), &json!("1?")));
    let elicitation = questions[1]["params"]["elicitationId"].as_str().unwrap().to_owned();
    assert_eq!((elicitation.len(), &elicitation[14..15]), (36, "4"));
    assert_ne!(questions[0]["id"], questions[1]["id"]);
    let answer = |id: &Value, action: &str| json!({"jsonrpc": "2.0", "id": id, "result": {"action": action, "content": {"x": 1.5}, "_meta": {}}});
    world.send(host, &answer(&questions[1]["id"], "accept"));
    assert!(world.take().is_empty());
    // A second answer under an id that is answered is nobody's (R-191).
    world.send(host, &answer(&questions[1]["id"], "cancel"));
    world.send(host, &answer(&questions[0]["id"], "accept"));
    let (_, second) = world.sent();
    assert_ne!(second["id"], first["id"]);
    assert_eq!(
        (&second["params"]["name"], &second["params"]["arguments"]),
        (&first["params"]["name"], &first["params"]["arguments"])
    );
    assert_eq!(second["params"]["requestState"], "s=");
    assert_eq!(
        second["params"]["inputResponses"],
        json!({"one": {"action": "accept", "content": {"x": 1.5}}, "two": {"action": "accept"}})
    );
    world.result(link, second["id"].as_i64().unwrap(), json!({"resultType": "complete", "content": [{"type": "text", "text": "done"}], "structuredContent": [1], "x": 1}));
    let said = world.take();
    assert_eq!(
        said[0].json(),
        json!({"jsonrpc": "2.0", "method": "notifications/elicitation/complete", "params": {"elicitationId": elicitation}})
    );
    assert_eq!(
        legacy(&said[1].json()),
        json!({"jsonrpc": "2.0", "id": "c", "result": {"content": [{"type": "text", "text": "done"}], "x": 1}})
    );
    rests(&world);
}

/// R-066, G-06, R-090: a state-only round is invisible and paced; absent state stays absent.
#[test]
fn state_only_rounds_are_invisible_r066_g06() {
    let mut world = World::single(Transport::Pipe, Era::Modern);
    let (host, link) = session(&mut world, "2025-11-25", all());
    world.send(host, &call(json!(1)));
    let mut id = world.sent().1["id"].as_i64().unwrap();
    for pause in [50, 100, 200, 250, 250] {
        world.result(link, id, json!({"resultType": "input_required", "requestState": format!("s{pause}")}));
        world.pass(Duration::from_millis(pause - 1));
        assert!(world.take().is_empty());
        world.pass(Duration::from_millis(1));
        let (_, retry) = world.sent();
        assert_eq!(
            (&retry["params"]["requestState"], retry["params"].get("inputResponses")),
            (&json!(format!("s{pause}")), None)
        );
        id = retry["id"].as_i64().unwrap();
    }
    world.result(link, id, asks(None));
    for said in world.take() {
        world
            .send(host, &json!({"jsonrpc": "2.0", "id": said.json()["id"], "result": {"action": "decline"}}));
    }
    let (_, retry) = world.sent();
    assert_eq!(retry["params"].get("requestState"), None);
    // There is a bound.
    let mut id = retry["id"].as_i64().unwrap();
    for _ in 0..56 {
        world.result(link, id, json!({"resultType": "input_required", "requestState": "s"}));
        world.pass(Duration::from_millis(250));
        id = match world.take().pop() {
            Some(said @ Said::Up { .. }) => said.json()["id"].as_i64().unwrap(),
            Some(said) => {
                assert_eq!(legacy(&said.json())["error"]["code"], -32603);
                return rests(&world);
            }
            None => panic!(),
        };
    }
    panic!("no bound");
}

/// BT-6, R-237: an error instead of an answer: the other questions are taken back, the call ends with the cause, the upstream is not asked again.
#[test]
fn a_host_that_refuses_bt6_r237() {
    let mut world = World::single(Transport::Http, Era::Modern);
    let (host, link) = session(&mut world, "2025-11-25", all());
    world.send(host, &call(json!(1)));
    let id = world.sent().1["id"].as_i64().unwrap();
    world.result(link, id, asks(Some("s")));
    let questions: Vec<Value> = world.take().iter().map(Said::json).collect();
    world.send(host, &json!({"jsonrpc": "2.0", "id": questions[0]["id"], "error": {"code": -1, "message": "User rejected sampling request"}}));
    let said: Vec<Value> = world.take().iter().map(|said| legacy(&said.json())).collect();
    assert_eq!(said[0]["params"], json!({"requestId": questions[1]["id"]}));
    assert_eq!(
        (&said[1]["id"], &said[1]["error"]["code"], &said[1]["error"]["data"]),
        (
            &json!(1),
            &json!(-32603),
            &json!({"cause": {"code": -1, "message": "User rejected sampling request"}})
        )
    );
    rests(&world);
}

/// BT-5, BT-6, R-246: a host of 2025-06-18 is asked in its words; what it has none for ends the call as if the capability were missing.
#[test]
fn older_hosts_bt5_r246() {
    let mut world = World::single(Transport::Pipe, Era::Modern);
    let (host, link) = session(&mut world, "2025-06-18", json!({"elicitation": {}}));
    world.send(host, &call(json!(1)));
    let (_, sent) = world.sent();
    assert_eq!(
        sent["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"],
        json!({"elicitation": {"form": {}}})
    );
    let form = |field: Value| {
        json!({"resultType": "input_required", "inputRequests": {"k": {"method": "elicitation/create",
        "params": {"mode": "form", "message": "m", "requestedSchema": {"type": "object", "properties": {"f": field}}}}}})
    };
    world.result(
        link,
        sent["id"].as_i64().unwrap(),
        form(json!({"type": "string", "oneOf": [{"const": "a", "title": "A"}]})),
    );
    let question = world.reply(host);
    assert_eq!(
        question["params"],
        json!({"message": "m", "requestedSchema": {"type": "object", "properties": {"f": {"type": "string", "enum": ["a"], "enumNames": ["A"]}}}})
    );
    world.send(host, &json!({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "accept", "content": {"f": "a"}}}));
    let id = world.sent().1["id"].as_i64().unwrap();
    world.result(link, id, form(json!({"type": "array", "items": {"type": "string", "enum": ["a"]}})));
    assert_eq!(legacy(&world.reply(host))["error"]["code"], -32603);
    // BT-6: `-32021` of the upstream.
    world.send(host, &call(json!(2)));
    let id = world.sent().1["id"].as_i64().unwrap();
    world.error(
        link,
        id,
        json!({"code": -32021, "message": "m", "data": {"requiredCapabilities": {"roots": {}}}}),
    );
    assert_eq!(
        legacy(&world.reply(host))["error"],
        json!({"code": -32603, "message": "m", "data": {"requiredCapabilities": {"roots": {}}}})
    );
}

/// BT-8, R-196, design §9: progress only ever grows, over all rounds; while a person thinks there is a sign of life every 15 s.
#[test]
fn progress_over_rounds_bt8_r196_r232() {
    let mut world = World::single(Transport::Http, Era::Modern);
    let (host, link) = session(&mut world, "2025-11-25", all());
    world.send(host, &call(json!(1)));
    let first = world.sent().1["id"].as_i64().unwrap();
    let progress = |token: i64, value: f64| json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": token, "progress": value, "total": 10}});
    let mut shown = Vec::new();
    let told = |world: &mut World| -> Vec<f64> {
        let said = world.take();
        said.iter()
            .map(|said| {
                let said = said.json();
                assert_eq!(said["params"]["progressToken"], "p");
                said["params"]["progress"].as_f64().unwrap()
            })
            .collect()
    };
    world.up(link, &progress(first, 4.0));
    shown.extend(told(&mut world));
    world.result(link, first, asks(Some("s")));
    let questions: Vec<Value> = world.take().iter().map(Said::json).collect();
    world.pass(Duration::from_secs(46));
    let beats = told(&mut world);
    assert_eq!(beats.len(), 3);
    shown.extend(beats);
    for question in &questions {
        world.send(host, &json!({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "accept"}}));
    }
    let second = world.sent().1["id"].as_i64().unwrap();
    world.up(link, &progress(second, 1.0));
    world.up(link, &progress(second, 2.0));
    shown.extend(told(&mut world));
    assert_eq!(shown.len(), 6);
    assert!(shown.windows(2).all(|pair| pair[0] < pair[1]), "{shown:?}");
}

/// R-001, B-61, B-81: what a host answers and asks at once fails the question that waits under its id, and is not answered;
/// under another id it is a broken request.
#[test]
fn a_host_that_answers_and_asks_at_once_b81() {
    let mut world = World::single(Transport::Http, Era::Modern);
    let (host, link) = session(&mut world, "2025-11-25", all());
    let both =
        |id: &Value| json!({"jsonrpc": "2.0", "id": id, "method": "ping", "result": {"action": "cancel"}});
    world.send(host, &call(json!("c")));
    let first = world.sent().1["id"].as_i64().unwrap();
    world.result(link, first, asks(Some("s")));
    let questions: Vec<Value> = world.take().iter().map(Said::json).collect();
    world.send(host, &both(&json!("mine")));
    let refused = world.reply(host);
    assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!("mine"), &json!(-32600)));
    world.send(host, &both(&questions[0]["id"]));
    let said: Vec<Value> = world.take().iter().map(Said::json).collect();
    // The other question is taken back, and the call is over.
    assert_eq!(said.len(), 2, "{said:?}");
    assert_eq!(said[0]["params"]["requestId"], questions[1]["id"]);
    assert_eq!((&said[1]["id"], &said[1]["error"]["code"]), (&json!("c"), &json!(-32603)));
    rests(&world);
}

/// R-262, R-239, R-188: the host cancels: the upstream's request is cancelled, or between rounds the questions are taken back. A lost stream is no cancellation.
#[test]
fn a_host_that_cancels_r262_r239() {
    let mut world = World::single(Transport::Http, Era::Modern);
    let (host, link) = session(&mut world, "2025-11-25", all());
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}});
    world.send(host, &call(json!(1)));
    let id = world.sent().1["id"].as_i64().unwrap();
    world.send(host, &cancel);
    let said = world.take();
    assert!(matches!(said[0], Said::StreamClosed { call, .. } if call == id), "{said:?}");
    rests(&world);
    world.send(host, &call(json!(1)));
    let id = world.sent().1["id"].as_i64().unwrap();
    world.result(link, id, asks(Some("s")));
    assert_eq!(world.take().len(), 2);
    world.send(host, &cancel);
    let said = world.take();
    assert_eq!(
        said.iter().filter(|said| matches!(said, Said::Host { last: None, .. })).count(),
        2,
        "{said:?}"
    );
    rests(&world);
}

/// BT-8, R-200: `logging/setLevel` is remembered and goes with each request; ping is answered here; lists cross; R-228: nothing before `initialize`.
#[test]
fn the_rest_for_legacy_hosts_bt8() {
    let mut world = World::single(Transport::Pipe, Era::Modern);
    let host = world.host(HostKind::Pipe, "alice");
    world.send(host, &json!({"jsonrpc": "2.0", "id": 9, "method": "ping"}));
    assert_eq!(world.reply(host)["result"], json!({}));
    let (host, link) = session(&mut world, "2025-11-25", all());
    world.send(
        host,
        &json!({"jsonrpc": "2.0", "id": 1, "method": "logging/setLevel", "params": {"level": "notice"}}),
    );
    assert_eq!(world.reply(host)["result"], json!({}));
    world.send(host, &json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"}));
    let (_, sent) = world.sent();
    assert_eq!(sent["params"]["_meta"]["io.modelcontextprotocol/logLevel"], "notice");
    let id = sent["id"].as_i64().unwrap();
    world.up(link, &json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "error", "data": "d"}}));
    assert_eq!(world.reply(host)["params"], json!({"level": "error", "data": "d"}));
    world.result(link, id, json!({"resultType": "complete", "tools": [{"name": "t", "outputSchema": {"type": "array"}}], "ttlMs": 5, "cacheScope": "public"}));
    assert_eq!(legacy(&world.reply(host))["result"], json!({"tools": [{"name": "t"}]}));
    world.send(host, &json!({"jsonrpc": "2.0", "id": 3, "method": "vendor/x"}));
    assert_eq!(legacy(&world.reply(host))["error"]["code"], -32601);
    let fresh = world.host(HostKind::Session, "alice");
    world.send(fresh, &json!({"jsonrpc": "2.0", "id": 3, "method": "tools/list"}));
    assert_eq!(world.reply(fresh)["error"]["code"], -32600);
}

/// Questions wait until the host is ready to be asked (R-228).
#[test]
fn a_host_that_is_not_ready_r228() {
    let mut world = World::single(Transport::Pipe, Era::Modern);
    let (_, link) = session(&mut world, "2025-11-25", all());
    let host = world.host(HostKind::Session, "bob");
    world.send(host, &json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": "2025-11-25", "capabilities": all()}}));
    assert_eq!(world.reply(host)["result"]["protocolVersion"], "2025-11-25");
    world.send(host, &call(json!(1)));
    let id = world.sent().1["id"].as_i64().unwrap();
    world.result(link, id, asks(None));
    assert!(world.take().is_empty());
    world.send(host, &json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    assert_eq!(world.take().len(), 2);
}

/// An answer that cannot be read is an answer: the call does not wait for another one.
#[test]
fn an_answer_that_cannot_be_read_ends_its_call() {
    let mut world = World::single(Transport::Pipe, Era::Modern);
    let (host, link) = session(&mut world, "2025-11-25", all());
    world.send(host, &call(json!(1)));
    let id = world.sent().1["id"].as_i64().unwrap();
    world.result(link, id, asks(None));
    let asked = world.take()[0].json()["id"].clone();
    world.send_raw(
        host,
        &format!(r#"{{"jsonrpc":"2.0","id":{asked},"result":{{"action":"accept","content":{{"n":NaN}}}}}}"#),
    );
    let said: Vec<Value> = world.take().iter().map(Said::json).collect();
    assert!(said.iter().any(|said| said["id"] == 1 && said["error"]["code"] == -32603), "{said:?}");
    rests(&world);
}

/// A host on a pipe that asks in the modern era first, and begins a session when that fails or takes too long (R-050, R-052).
#[test]
fn a_host_that_falls_back_r050_r052() {
    let ask = |id: i64, version: &str| {
        let mut meta = mrtr_tests::bridge::meta(json!({}));
        meta["io.modelcontextprotocol/protocolVersion"] = json!(version);
        json!({"jsonrpc": "2.0", "id": id, "method": "server/discover", "params": {"_meta": meta}})
    };
    let initialize = json!({"jsonrpc": "2.0", "id": 9, "method": "initialize", "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "h", "version": "1"}}});
    let mut world = World::single(Transport::Pipe, Era::Modern);
    let host = world.host(HostKind::Pipe, "alice");
    world.send(host, &ask(1, "2031-01-01"));
    assert_eq!(world.reply(host)["error"]["code"], -32022);
    world.send(host, &ask(2, "2026-07-28"));
    let said = world.take();
    assert_eq!(said.last().unwrap().json()["method"], "server/discover");
    // It has waited long enough.
    world.send(
        host,
        &json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 2}}),
    );
    assert_eq!(world.sent().1["method"], "notifications/cancelled");
    world.send(host, &json!({"jsonrpc": "2.0", "id": 3, "method": "ping"}));
    assert_eq!(world.reply(host), json!({"jsonrpc": "2.0", "id": 3, "result": {}}));
    world.send(host, &initialize);
    let (link, discover) = world.sent();
    world.result(
        link,
        discover["id"].as_i64().unwrap(),
        json!({"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}),
    );
    let said: Vec<Value> = world.take().iter().map(Said::json).collect();
    assert_eq!(said.len(), 1, "{said:?}");
    assert_eq!((&said[0]["id"], &said[0]["result"]["protocolVersion"]), (&json!(9), &json!("2025-11-25")));
    world.send(host, &json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    world.send(host, &call(json!(1)));
    assert_eq!(world.sent().1["params"]["name"], "t");
    // With modern `_meta` it is no session's beginning.
    let mut other = World::single(Transport::Pipe, Era::Modern);
    let host = other.host(HostKind::Pipe, "alice");
    let mut modern = initialize;
    modern["params"]["_meta"] = mrtr_tests::bridge::meta(json!({}));
    other.send(host, &modern);
    assert_eq!(other.reply(host)["error"]["code"], -32601);
}
