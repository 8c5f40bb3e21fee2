//! Modern to modern: bytes through, the upstream's state wrapped, nothing held (R-254, R-255, R-258, R-259, B-55, B-68, B-69, W-03, W-04).

use mrtr_core::{
    bridge::{HostKind, Transport},
    wire::Era,
};
use mrtr_tests::bridge::{Said, World, config};
use serde_json::{Value, json};

use super::{all, forms, rests};

fn raw(world: &mut World) -> String {
    match world.only() {
        Said::Host { raw, .. } | Said::Up { raw, .. } => raw,
        other => panic!("{other:?}"),
    }
}

/// The first message opens the connection; what follows it.
pub(super) fn opened(world: &mut World) -> (mrtr_core::bridge::LinkId, String) {
    let said = world.take();
    match said.as_slice() {
        [Said::Opened { link, upstream: 0 }, Said::Up { raw, .. }] => (*link, raw.clone()),
        other => panic!("{other:?}"),
    }
}

/// B-68, W-03, R-258: everything but id, client info and progress token arrives as it was sent, and so does the result.
#[test]
fn bytes_go_through_both_ways_b68_w03_r258() {
    let mut world = World::single(Transport::Pipe, Era::Modern);
    let host = world.host(HostKind::Pipe, "alice");
    let meta = |info: &str, token: &str| {
        format!(
            concat!(
                r#"{{ "x/y":[1.0, 2e3],"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{info},"#,
                r#""progressToken":{token},"io.modelcontextprotocol/clientCapabilities":{{"elicitation":{{}},"v":{{}}}} }}"#
            ),
            info = info,
            token = token
        )
    };
    let request = |id: &str, meta: &str| {
        format!(
            r#"{{"id":{id}, "params":{{"unknown":18446744073709551616,"name":"\u0074","arguments":{{"z":1,"a":-0.0}},"_meta":{meta}}},"method":"tools/call","jsonrpc":"2.0"}}"#
        )
    };
    world.send_raw(host, &request(r#""abc""#, &meta(r#"{"name":"h","version":"1"}"#, r#""tok""#)));
    let (link, sent) = opened(&mut world);
    let id = serde_json::from_str::<Value>(&sent).unwrap()["id"].to_string();
    assert_eq!(sent, request(&id, &meta(r#"{"name":"bridge","version":"1"}"#, &id)));
    // Progress under the host's own token (R-194, BT-8).
    world.up_raw(link, None, &format!(r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{id},"progress":0.50,"x":1}}}}"#));
    assert_eq!(
        raw(&mut world),
        r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"tok","progress":0.50,"x":1}}"#
    );
    let result = |id: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","result":{{"content":[],"resultType":"complete", "big":123456789012345678901234567890,"z":{{"b":1,"a":2}},"_meta":{{"io.modelcontextprotocol/serverInfo":{{"name":"s","version":"9"}}}}}},"id":{id}}}"#
        )
    };
    world.up_raw(link, None, &result(&id));
    assert_eq!(raw(&mut world), result(r#""abc""#));
    rests(&world);
}

/// W-04, B-55: the end client's capabilities, mode by mode and member by member; R-211: without the extension that the bridge does not carry.
#[test]
fn the_hosts_own_capabilities_w04_b55() {
    let mut world = World::single(Transport::Pipe, Era::Modern);
    for capabilities in
        [json!({}), json!({"elicitation": {"url": {}}}), json!({"sampling": {}, "vendor": {"a": 1}})]
    {
        world.call("alice", &capabilities, &json!({}));
        let said = world.take();
        let sent = said.last().unwrap().json();
        assert_eq!(sent["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"], capabilities);
        assert_eq!(
            sent["params"]["_meta"]["io.modelcontextprotocol/clientInfo"],
            json!({"name": "bridge", "version": "1"})
        );
    }
    world.call("alice", &json!({"extensions": {"io.modelcontextprotocol/tasks": {}, "v/e": {}}}), &json!({}));
    let sent = world.take().pop().unwrap().json();
    assert_eq!(
        sent["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"],
        json!({"extensions": {"v/e": {}}})
    );
}

const ASK: &str = r#""inputRequests":{"q\u0031":{"method":"elicitation/create","params":{"message":"Sure?","requestedSchema":{"type":"object","properties":{}},"x":1.0}}}"#;

/// The state that a host was given.
fn state(reply: &str) -> String {
    serde_json::from_str::<Value>(reply).unwrap()["result"]["requestState"].as_str().unwrap().to_owned()
}

/// R-254, R-255, B-69: wrapped for one principal, unwrapped to the byte, absent stays absent; every retry has a new id (R-091).
#[test]
fn the_upstreams_state_is_wrapped_r254_r255_b69() {
    for theirs in [Some(r#""s\u0074ate\/""#), Some(r#""""#), None] {
        let mut world = World::single(Transport::Pipe, Era::Modern);
        let (host, id) = world.call("alice", &forms(), &json!({}));
        let (link, sent) = opened(&mut world);
        let first = serde_json::from_str::<Value>(&sent).unwrap()["id"].as_i64().unwrap();
        let with = theirs.map_or(String::new(), |state| format!(r#","requestState":{state}"#));
        world.up_raw(link, None, &format!(r#"{{"jsonrpc":"2.0","id":{first},"result":{{"resultType":"input_required",{ASK}{with},"v":1e2}}}}"#));
        let said = world.only();
        let Said::Host { raw, host: to, .. } = &said else { panic!("{said:?}") };
        let wrapped = state(raw);
        assert_eq!(*to, host);
        let expected = match theirs {
            Some(_) => format!(
                r#"{{"jsonrpc":"2.0","id":{id},"result":{{"resultType":"input_required",{ASK},"requestState":"{wrapped}","v":1e2}}}}"#
            ),
            None => format!(
                r#"{{"jsonrpc":"2.0","id":{id},"result":{{"resultType":"input_required",{ASK},"v":1e2,"requestState":"{wrapped}"}}}}"#
            ),
        };
        assert_eq!(*raw, expected);
        rests(&world);
        // Nothing is held: another replica with the keys takes the retry.
        let mut other = World::seeded(config(&[("up", Transport::Pipe, Era::Modern)]), 77);
        for (world, fresh) in [(&mut world, false), (&mut other, true)] {
            let answers = json!({"q1": {"action": "accept", "content": {}}});
            let (host, _) =
                world.call("alice", &forms(), &json!({"inputResponses": answers, "requestState": wrapped}));
            let sent = if fresh { opened(world).1 } else { raw_of(world) };
            let value = serde_json::from_str::<Value>(&sent).unwrap();
            assert_eq!(value["params"]["inputResponses"], answers);
            match theirs {
                Some(state) => assert!(sent.contains(&format!(r#""requestState":{state}"#)), "{sent}"),
                None => assert_eq!(value["params"].get("requestState"), None),
            }
            let second = value["id"].as_i64().unwrap();
            assert!(fresh || second != first);
            let link = if fresh { mrtr_core::bridge::LinkId(1) } else { link };
            world.result(link, second, json!({"resultType": "complete", "content": []}));
            assert_eq!(world.reply(host)["result"]["resultType"], "complete");
            rests(world);
        }
    }
}

fn raw_of(world: &mut World) -> String {
    raw(world)
}

/// R-254, R-074, G-11: not for others, not for other requests, not changed; the upstream hears nothing of it.
#[test]
fn a_state_is_nobody_elses_r254_g11() {
    let mut world = World::single(Transport::Pipe, Era::Modern);
    world.call("alice", &forms(), &json!({}));
    let (link, sent) = opened(&mut world);
    let first = serde_json::from_str::<Value>(&sent).unwrap()["id"].as_i64().unwrap();
    world.up_raw(link, None, &format!(r#"{{"jsonrpc":"2.0","id":{first},"result":{{"resultType":"input_required",{ASK},"requestState":"s"}}}}"#));
    let wrapped = state(&raw(&mut world));
    let mut changed = wrapped.clone();
    changed.replace_range(60..61, if wrapped.as_bytes()[60] == b'A' { "B" } else { "A" });
    let cases = [
        ("bob", json!({"requestState": wrapped})),
        ("alice", json!({"requestState": wrapped, "arguments": {"a": 2}})),
        ("alice", json!({"requestState": wrapped, "name": "other"})),
        ("alice", json!({"requestState": changed})),
        ("alice", json!({"requestState": "s"})),
        ("alice", json!({"requestState": ""})),
    ];
    for (principal, params) in cases {
        let (host, _) = world.call(principal, &forms(), &params);
        let reply = world.reply(host);
        assert_eq!(reply["error"], json!({"code": -32602, "message": "Invalid or expired requestState"}));
    }
    assert_eq!(world.bridge.counts().refused, 6);
    // Another upstream of the same bridge is another request.
    let mut two = World::new(config(&[("other", Transport::Pipe, Era::Modern)]));
    let (host, _) = two.call("alice", &forms(), &json!({"requestState": wrapped}));
    assert_eq!(two.reply(host)["error"]["code"], -32602);
}

/// R-249: what the request did not declare is not relayed; R-264: with names on, the person sees who asks.
#[test]
fn gate_and_origin_r249_r264() {
    let mut config = config(&[("up", Transport::Pipe, Era::Modern)]);
    config.name_origin = true;
    let mut world = World::new(config);
    let ask = json!({"resultType": "input_required", "inputRequests": {
        "f": {"method": "elicitation/create", "params": {"message": "Sure?", "requestedSchema": {}}},
        "s": {"method": "sampling/createMessage", "params": {"messages": [], "maxTokens": 1}},
        "r": {"method": "roots/list"}}});
    let (host, _) = world.call("alice", &forms(), &json!({}));
    let (link, sent) = opened(&mut world);
    let id = serde_json::from_str::<Value>(&sent).unwrap()["id"].as_i64().unwrap();
    world.result(link, id, ask.clone());
    assert_eq!(
        world.reply(host)["error"],
        json!({"code": -32021, "message": "Missing required client capability",
        "data": {"requiredCapabilities": {"sampling": {}, "roots": {}}}})
    );
    let (host, _) = world.call("alice", &all(), &json!({}));
    let id = world.sent().1["id"].as_i64().unwrap();
    world.result(link, id, ask);
    let reply = world.reply(host);
    let asks = &reply["result"]["inputRequests"];
    assert_eq!(asks["f"]["params"], json!({"message": "[up] Sure?", "requestedSchema": {}}));
    assert_eq!(
        asks["s"]["params"],
        json!({"messages": [], "maxTokens": 1, "_meta": {"dev.mrtr/origin": "up"}})
    );
    assert_eq!(asks["r"]["params"], json!({"_meta": {"dev.mrtr/origin": "up"}}));
}

/// BT-6: what breaks the protocol is `-32603`, and nothing is tried again; errors of the upstream go through.
#[test]
fn results_that_are_none_bt6() {
    let mut world = World::single(Transport::Pipe, Era::Modern);
    world.call("alice", &forms(), &json!({}));
    let (link, _) = opened(&mut world);
    for result in [
        json!({"resultType": "later"}),
        json!({"resultType": 1}),
        json!({"resultType": "input_required"}),
        json!([]),
    ] {
        let (host, _) = world.call("alice", &forms(), &json!({}));
        let id = world.sent().1["id"].as_i64().unwrap();
        world.result(link, id, result);
        assert_eq!(world.reply(host)["error"]["code"], -32603);
    }
    // Where nothing may be asked.
    let (host, _) = world.post("alice", "tools/list", json!({}), &forms());
    let id = world.sent().1["id"].as_i64().unwrap();
    world.up_raw(
        link,
        None,
        &format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"resultType":"input_required",{ASK}}}}}"#),
    );
    assert_eq!(world.reply(host)["error"]["code"], -32603);
    // R-014: an earlier draft's result is stamped.
    let (host, _) = world.post("alice", "tools/list", json!({}), &forms());
    let id = world.sent().1["id"].as_i64().unwrap();
    world.result(link, id, json!({"tools": []}));
    assert_eq!(world.reply(host)["result"], json!({"tools": [], "resultType": "complete"}));
    for (code, there) in [(-32602, -32602), (-32021, -32021), (7, 7), (-32601, -32601), (-32022, -32603)] {
        let (host, _) = world.call("alice", &forms(), &json!({}));
        let id = world.sent().1["id"].as_i64().unwrap();
        world.error(
            link,
            id,
            json!({"code": code, "message": "m", "data": {"requiredCapabilities": {"roots": {}}}}),
        );
        assert_eq!(world.reply(host)["error"]["code"], there);
    }
}

/// Design §9: a wrapped state above the bound is a named error.
#[test]
fn a_state_that_is_too_large_is_named() {
    let mut config = config(&[("up", Transport::Pipe, Era::Modern)]);
    config.limits.state_accepted = 2_000;
    let mut world = World::new(config);
    let (host, _) = world.call("alice", &forms(), &json!({}));
    let (link, sent) = opened(&mut world);
    let id = serde_json::from_str::<Value>(&sent).unwrap()["id"].as_i64().unwrap();
    world.result(link, id, json!({"resultType": "input_required", "requestState": "s".repeat(1_900)}));
    let reply = world.reply(host);
    assert_eq!(reply["error"]["code"], -32603);
    assert!(
        reply["error"]["message"]
            .as_str()
            .unwrap()
            .contains("more than the limit of 2000 (Limits::state_accepted)")
    );
}

/// A result of a modern upstream that is over a bound of the bridge is an error that names the bound, for hosts of both
/// eras; one that is none of the protocol's says nothing of bounds.
#[test]
fn a_result_over_a_bound_names_the_bound() {
    let asks = |count: usize| -> Value {
        let ask = json!({"method": "roots/list"});
        (0..count).map(|n| (format!("k{n}"), ask.clone())).collect::<serde_json::Map<_, _>>().into()
    };
    let cases = [
        (
            json!({"requestState": "s".repeat(3_000_000)}),
            "result.requestState of 3000000 bytes is over the limit of 262144 (Limits::state_accepted)",
        ),
        (
            json!({"inputRequests": asks(65)}),
            "result.inputRequests has more than 64 entries (Limits::asks_accepted)",
        ),
        (json!({"inputRequests": 1}), "not valid"),
    ];
    for (mut result, said) in cases {
        result["resultType"] = json!("input_required");
        let mut world = World::single(Transport::Pipe, Era::Modern);
        let (host, _) = world.call("alice", &forms(), &json!({}));
        let (link, sent) = opened(&mut world);
        let id = serde_json::from_str::<Value>(&sent).unwrap()["id"].as_i64().unwrap();
        world.result(link, id, result.clone());
        let modern = world.reply(host)["error"].take();

        let host = world.host(HostKind::Pipe, "alice");
        let begin = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "h", "version": "1"}});
        world.send(host, &json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": begin}));
        let (link, discover) = world.sent();
        world.result(
            link,
            discover["id"].as_i64().unwrap(),
            json!({"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}),
        );
        world.take();
        world.send(host, &json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        world.take();
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "t"}});
        world.send(host, &call);
        let (link, sent) = world.sent();
        world.result(link, sent["id"].as_i64().unwrap(), result);
        let legacy = world.reply(host)["error"].take();
        for error in [modern, legacy] {
            assert_eq!(error["code"], -32603);
            let message = error["message"].as_str().unwrap();
            assert!(message.starts_with("the upstream's ") && message.ends_with(said), "{message}");
        }
        rests(&world);
    }
}

/// R-262, R-187, R-188: the host's stream closes, or the host says so: the upstream's request is cancelled its way.
#[test]
fn cancellation_r262_r187() {
    let mut world = World::single(Transport::Http, Era::Modern);
    let (host, _) = world.call("alice", &forms(), &json!({}));
    let (link, sent) = opened(&mut world);
    let id = serde_json::from_str::<Value>(&sent).unwrap()["id"].as_i64().unwrap();
    world.bridge.close_host(host, world.now);
    let Some(mrtr_core::bridge::Output::CloseStream { link: closed, call }) = world.bridge.poll_output()
    else {
        panic!()
    };
    assert_eq!((closed, call), (link, id));
    world.result(link, id, json!({"resultType": "complete"}));
    assert!(world.take().is_empty());
    rests(&world);

    let mut world = World::single(Transport::Pipe, Era::Modern);
    let host = world.host(HostKind::Pipe, "alice");
    let request = json!({"jsonrpc": "2.0", "id": "x", "method": "tools/call", "params": {"name": "t",
        "_meta": mrtr_tests::bridge::meta(json!({}))}});
    world.send(host, &request);
    let (_, sent) = opened(&mut world);
    let id = serde_json::from_str::<Value>(&sent).unwrap()["id"].clone();
    world.send(
        host,
        &json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "x"}}),
    );
    let (_, cancelled) = world.sent();
    assert_eq!(
        cancelled,
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}})
    );
    rests(&world);
}

/// R-259, R-173, BT-6: headers come from the body that is sent and the upstream's schema; after `-32020` the list is read again and the call made once more.
#[test]
fn headers_are_the_bridges_own_r259_r173_bt6() {
    let mut world =
        World::new(config(&[("a", Transport::Http, Era::Modern), ("b", Transport::Http, Era::Modern)]));
    let params = json!({"name": "b__t", "arguments": {"region": "eu"}});
    let (host, _) = world.post("alice", "tools/call", params, &forms());
    let said = world.take();
    let [Said::Opened { link, upstream: 1 }, Said::Up { headers, call: Some(call), .. }] = said.as_slice()
    else {
        panic!("{said:?}")
    };
    let header = |headers: &[(String, String)], name: &str| {
        headers.iter().find(|(found, _)| found == name).map(|(_, value)| value.clone())
    };
    assert_eq!(header(headers, "Mcp-Name").as_deref(), Some("t"));
    assert_eq!(header(headers, "Mcp-Param-Region"), None);
    assert_eq!(said[1].json()["params"]["name"], "t");
    world.error(*link, *call, json!({"code": -32020, "message": "header mismatch"}));
    let (_, list) = world.sent();
    assert_eq!(list["method"], "tools/list");
    let tools = json!({"resultType": "complete", "tools": [{"name": "t", "inputSchema": {"type": "object",
        "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}}}]});
    world.result(*link, list["id"].as_i64().unwrap(), tools);
    let again = world.only();
    let Said::Up { headers, call: Some(second), .. } = &again else { panic!("{again:?}") };
    assert_eq!(header(headers, "Mcp-Param-Region").as_deref(), Some("eu"));
    assert_ne!(second, call);
    world.error(*link, *second, json!({"code": -32020, "message": "header mismatch"}));
    assert_eq!(world.reply(host)["error"]["code"], -32603);
    rests(&world);
}
