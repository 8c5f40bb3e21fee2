//! Legacy hosts at legacy upstreams: everything crosses as it is, under other ids (R-258, BT-8).

use mrtr_core::{
    bridge::{HostKind, HostStream, Transport},
    jsonrpc::RequestId,
    wire::Era,
};
use mrtr_tests::bridge::{Said, World, form};
use serde_json::{Value, json};

use super::{all, hosts::call, rests};

/// Legacy to legacy: ids and tokens are mapped, everything else is as it was; each host has a session of its own.
#[test]
fn legacy_to_legacy_r258_bt8() {
    let mut world = World::single(Transport::Pipe, Era::Legacy);
    let host = world.host(HostKind::Pipe, "alice");
    let declared = json!({"elicitation": {}, "roots": {"listChanged": true}, "x": {}});
    world.send(host, &json!({"jsonrpc": "2.0", "id": "i", "method": "initialize", "params": {"protocolVersion": "2025-06-18", "capabilities": declared, "clientInfo": {"name": "h", "version": "1"}}}));
    let said = world.take();
    let [Said::Opened { link, .. }, init] = said.as_slice() else { panic!("{said:?}") };
    let (link, init) = (*link, init.json());
    assert_eq!(
        (&init["params"]["capabilities"], &init["params"]["protocolVersion"]),
        (&declared, &json!("2025-06-18"))
    );
    world.result(link, init["id"].as_i64().unwrap(), json!({"protocolVersion": "2025-06-18", "capabilities": {"tools": {"listChanged": true}, "tasks": {}}, "serverInfo": {"name": "old", "version": "2"}}));
    let said = world.take();
    assert_eq!(
        said[1].json()["result"],
        json!({"protocolVersion": "2025-06-18", "capabilities": {"tools": {"listChanged": true}}, "serverInfo": {"name": "old", "version": "2"}})
    );
    world.send(host, &json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    world.send_raw(host, r#"{"jsonrpc":"2.0","id":"c","method":"tools/call","params":{"name":"t","arguments":{"n":1.50},"_meta":{"progressToken":"p","v":[ ]},"z":1}}"#);
    let said = world.only();
    let Said::Up { raw, call: Some(call), .. } = &said else { panic!("{said:?}") };
    let call = *call;
    assert_eq!(
        *raw,
        format!(
            r#"{{"jsonrpc":"2.0","id":{call},"method":"tools/call","params":{{"name":"t","arguments":{{"n":1.50}},"_meta":{{"progressToken":{call},"v":[ ]}},"z":1}}}}"#
        )
    );
    world.up(link, &json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": call, "progress": 1}}));
    assert_eq!(world.reply(host)["params"]["progressToken"], "p");
    world.up(link, &form(json!("q"), "sure?"));
    let said = world.only();
    let Said::Host { stream, .. } = &said else { panic!("{said:?}") };
    assert_eq!(*stream, HostStream::Request(RequestId::from("c")));
    let question = said.json();
    assert_eq!(question["params"], form(json!(0), "sure?")["params"]);
    world.send_raw(
        host,
        &format!(
            r#"{{"jsonrpc":"2.0","id":{},"result":{{"action":"accept","content":{{"n":1e2}},"extra":1}}}}"#,
            question["id"]
        ),
    );
    let Said::Up { raw, .. } = world.only() else { panic!() };
    assert_eq!(
        raw,
        r#"{"jsonrpc":"2.0","id":"q","result":{"action":"accept","content":{"n":1e2},"extra":1}}"#
    );
    world.up(link, &json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}));
    assert_eq!(world.reply(host)["method"], "notifications/tools/list_changed");
    world.up_raw(
        link,
        None,
        &format!(r#"{{"jsonrpc":"2.0","id":{call},"result":{{"content":[],"resultType":"odd"}}}}"#),
    );
    let Said::Host { raw, .. } = world.only() else { panic!() };
    assert_eq!(raw, r#"{"jsonrpc":"2.0","id":"c","result":{"content":[],"resultType":"odd"}}"#);
    // What the host itself declared, its own session hears of.
    let changed = json!({"jsonrpc": "2.0", "method": "notifications/roots/list_changed", "params": {}});
    world.send(host, &changed);
    assert_eq!(world.sent().1, changed);
    world.bridge.close_host(host, world.now);
    world.send_raw(host, "");
    assert!(matches!(world.only(), Said::Closed { .. }));
    rests(&world);
}

/// A legacy host is asked no more at a time than `Limits::asks_accepted`, whoever asks: what it has not answered is held.
#[test]
fn questions_of_a_legacy_upstream_are_bounded() {
    let mut world = World::single(Transport::Pipe, Era::Legacy);
    let host = world.host(HostKind::Pipe, "alice");
    world.send(host, &json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": "2025-11-25", "capabilities": all(), "clientInfo": {"name": "h", "version": "1"}}}));
    let (link, _, _) = world.begin("2025-11-25");
    world.send(host, &call(json!(1)));
    world.take();
    for question in 0..200 {
        world.up(link, &form(json!(question), "m"));
    }
    // Nobody has said that it is ready: all of them wait.
    let refused = world.take();
    assert_eq!(refused.len(), 200 - 64);
    assert!(refused.iter().all(|said| said.json()["error"]["code"] == -32603));
    world.send(host, &json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    let asked: Vec<Value> =
        world.take().iter().map(Said::json).filter(|said| said["method"] == "elicitation/create").collect();
    assert_eq!(asked.len(), 64);
    // An answered one makes room.
    world.send(host, &json!({"jsonrpc": "2.0", "id": asked[0]["id"], "result": {"action": "decline"}}));
    world.take();
    world.up(link, &form(json!(999), "m"));
    assert_eq!(world.only().json()["method"], "elicitation/create");
}
