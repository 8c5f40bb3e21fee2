//! An upstream over HTTP that does not accept the answer to its own question: its call ends, and no other (R-239, B-60).

use std::time::Duration;

use mrtr_core::{
    bridge::{CallFailure, HostKind, Transport},
    wire::Era,
};
use mrtr_tests::bridge::{Said, World, form};
use serde_json::{Value, json};

use super::{accept, all, forms, hosts::call, rests};

/// A parked call: the retry that brought the answer hears why, and the upstream, which still waits, is told.
#[test]
fn a_parked_call_ends_r_239() {
    let mut world = World::single(Transport::Http, Era::Legacy);
    let (host, _) = world.call("alice", &forms(), &json!({}));
    let (link, _, said) = world.begin("2025-11-25");
    let id = said[1].json()["id"].as_i64().unwrap();
    world.up_raw(link, Some(id), &form(json!("q"), "m").to_string());
    world.pass(Duration::from_millis(10));
    let state = world.reply(host)["result"]["requestState"].clone();
    let more = json!({"requestState": state, "inputResponses": {"u1": accept("a")}});
    let (host, _) = world.call("alice", &forms(), &more);
    assert_eq!(world.sent().1["result"], accept("a"));
    for _ in 0..2 {
        world.bridge.fail_reply(link, CallFailure::Broken, world.now);
    }
    world.send_raw(host, "");
    let said: Vec<Value> = world
        .take()
        .iter()
        .filter(|said| matches!(said, Said::Host { .. } | Said::Up { .. }))
        .map(Said::json)
        .collect();
    let failed = |message: &&Value| message["error"]["data"]["kind"] == "broken";
    assert_eq!(said.iter().filter(failed).count(), 1, "{said:?}");
    let cancelled = |message: &&Value| {
        message["method"] == "notifications/cancelled" && message["params"]["requestId"] == id
    };
    assert_eq!(said.iter().filter(cancelled).count(), 1, "{said:?}");
    world.pass(Duration::from_secs(3_600));
    world.take();
    rests(&world);
}

/// In a session of a legacy host's own: the only call that may have asked ends; of two nobody can tell, and neither does.
#[test]
fn a_call_of_a_legacy_host_ends_if_it_is_the_one_r_239() {
    for two in [false, true] {
        let mut world = World::single(Transport::Http, Era::Legacy);
        let host = world.host(HostKind::Session, "alice");
        world.send(host, &json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": "2025-11-25",
            "capabilities": all(), "clientInfo": {"name": "h", "version": "1"}}}));
        let (link, _, _) = world.begin("2025-11-25");
        world.send(host, &json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        world.take();
        world.send(host, &call(json!("one")));
        let id = world.sent().1["id"].as_i64().unwrap();
        // What cannot ask is none of them.
        world.send(host, &json!({"jsonrpc": "2.0", "id": "list", "method": "tools/list"}));
        if two {
            world.send(host, &call(json!("two")));
        }
        world.take();
        world.up_raw(link, Some(id), &form(json!("q"), "m").to_string());
        let question = world.only().json();
        world.send(host, &json!({"jsonrpc": "2.0", "id": question["id"], "result": accept("a")}));
        assert_eq!(world.sent().1["result"], accept("a"));
        world.bridge.fail_reply(link, CallFailure::TimedOut, world.now);
        world.send_raw(host, "");
        let said: Vec<Value> = world.take().iter().map(Said::json).collect();
        let ended: Vec<Value> = said
            .iter()
            .filter(|message| message["error"]["data"]["kind"] == "timeout")
            .map(|message| message["id"].clone())
            .collect();
        assert_eq!(ended, if two { vec![] } else { vec![json!("one")] }, "{said:?}");
    }
}
