//! What a legacy upstream is to log is settled before the call that it is for (BT-8, R-200).

use std::time::Duration;

use mrtr_core::{
    bridge::{CallFailure, HostId, HostKind, LinkId, Transport},
    wire::Era,
};
use mrtr_tests::bridge::{Said, World, meta};
use serde_json::{Value, json};

use super::{all, hosts::call};

/// A legacy host whose session with a legacy upstream behind a url has begun.
fn session() -> (World, HostId, LinkId) {
    let mut world = World::single(Transport::Http, Era::Legacy);
    let host = world.host(HostKind::Session, "alice");
    world.send(
        host,
        &json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": "2025-11-25",
        "capabilities": all(), "clientInfo": {"name": "h", "version": "1"}}}),
    );
    let (link, _, _) = world.begin("2025-11-25");
    world.send(host, &json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    world.take();
    (world, host, link)
}

/// The host sets a level and is told so at once; gives the request that sets it upstream.
fn set(world: &mut World, host: HostId, level: &str) -> Vec<Value> {
    world.send(
        host,
        &json!({"jsonrpc": "2.0", "id": level, "method": "logging/setLevel", "params": {"level": level}}),
    );
    let (up, down): (Vec<Said>, Vec<Said>) =
        world.take().into_iter().partition(|said| matches!(said, Said::Up { .. }));
    assert_eq!(down.len(), 1);
    assert_eq!(down[0].json(), json!({"jsonrpc": "2.0", "id": level, "result": {}}));
    up.iter().map(Said::json).collect()
}

fn number(message: &Value) -> i64 {
    message["id"].as_i64().unwrap()
}

fn methods(world: &mut World) -> Vec<String> {
    world.take().iter().map(|said| said.json()["method"].as_str().unwrap().to_owned()).collect()
}

/// Over HTTP each request goes by itself, and the upstream may read them in any order: a call waits until the level before
/// it is set, refused or given up, and goes out once.
#[test]
fn a_call_waits_for_the_level_before_it_bt8_r200() {
    type Ends = fn(&mut World, LinkId, i64);
    let ends: [(Ends, &[&str]); 4] = [
        (|world, link, level| world.result(link, level, json!({})), &[]),
        (|world, link, level| world.error(link, level, json!({"code": -32601, "message": "no"})), &[]),
        (|world, link, level| world.fail(link, level, CallFailure::Broken), &["notifications/cancelled"]),
        (|world, _, _| world.pass(Duration::from_secs(5)), &["notifications/cancelled"]),
    ];
    for (end, before) in ends {
        let (mut world, host, link) = session();
        let level = set(&mut world, host, "debug");
        assert_eq!(
            (&level[0]["method"], &level[0]["params"]),
            (&json!("logging/setLevel"), &json!({"level": "debug"}))
        );
        world.send(host, &call(json!(1)));
        world.send(
            host,
            &json!({"jsonrpc": "2.0", "id": 2, "method": "prompts/get", "params": {"name": "p"}}),
        );
        assert!(world.take().is_empty());
        end(&mut world, link, number(&level[0]));
        assert_eq!(methods(&mut world), [before, &["tools/call", "prompts/get"]].concat());
        // It is set: nothing waits, and nothing is set again.
        assert!(set(&mut world, host, "debug").is_empty());
        world.send(host, &call(json!(3)));
        assert_eq!(methods(&mut world), ["tools/call"]);
    }
}

/// One that is set while another is goes out after it, and the call after both.
#[test]
fn levels_are_set_one_after_the_other_bt8() {
    let (mut world, host, link) = session();
    let first = set(&mut world, host, "debug");
    world.send(host, &call(json!(1)));
    assert!(set(&mut world, host, "error").is_empty());
    world.send(host, &call(json!(2)));
    world.result(link, number(&first[0]), json!({}));
    let said: Vec<Value> = world.take().iter().map(Said::json).collect();
    let [one, level] = said.as_slice() else { panic!("{said:?}") };
    assert_eq!((&one["method"], &level["params"]["level"]), (&json!("tools/call"), &json!("error")));
    world.result(link, number(level), json!({}));
    assert_eq!(methods(&mut world), ["tools/call"]);
}

/// A call that its host takes back while it waits is never sent, and nothing of it is cancelled.
#[test]
fn a_waiting_call_that_is_cancelled_is_not_sent_r188() {
    let (mut world, host, link) = session();
    let level = set(&mut world, host, "debug");
    world.send(host, &call(json!(1)));
    world.send(
        host,
        &json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}),
    );
    let said = world.take();
    assert!(!said.iter().any(|said| matches!(said, Said::Up { .. })), "{said:?}");
    world.result(link, number(&level[0]), json!({}));
    assert!(world.take().is_empty());
}

/// A modern host's level goes with its call; at a legacy upstream behind a url it is set first, also in a session that has
/// just begun, and whether the call may ask or shares its session. Of several the most talkative is set.
#[test]
fn the_level_of_a_modern_call_is_set_first_bt8() {
    for (capabilities, levels, expected) in [
        (all(), ["warning"].as_slice(), "warning"),
        (json!({}), &["warning"], "warning"),
        (json!({}), &["error", "info"], "info"),
    ] {
        let mut world = World::single(Transport::Http, Era::Legacy);
        for level in levels {
            let host = world.host(HostKind::Post, "alice");
            let mut meta = meta(capabilities.clone());
            meta["io.modelcontextprotocol/logLevel"] = json!(level);
            world.send(
                host,
                &json!({"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": {"name": "t", "_meta": meta}}),
            );
        }
        let (link, _, said) = world.begin("2025-11-25");
        let said: Vec<Value> = said.iter().map(Said::json).collect();
        let [_, level] = said.as_slice() else { panic!("{said:?}") };
        assert_eq!(
            (&level["method"], &level["params"]["level"]),
            (&json!("logging/setLevel"), &json!(expected))
        );
        world.result(link, number(level), json!({}));
        assert_eq!(methods(&mut world), vec!["tools/call"; levels.len()]);
    }
}

/// A session may take long to begin, a process above all: a level that its host has set meanwhile is set then, and has its
/// time from there.
#[test]
fn a_level_outlasts_a_slow_beginning_bt8() {
    for transport in [Transport::Pipe, Transport::Http] {
        let mut world = World::single(transport, Era::Legacy);
        let greet = |world: &mut World, name: &str| {
            let host = world.host(HostKind::Session, name);
            world.send(
                host,
                &json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
                "protocolVersion": "2025-11-25", "capabilities": all(), "clientInfo": {"name": "h", "version": "1"}}}),
            );
            host
        };
        greet(&mut world, "alice");
        world.begin("2025-11-25");
        let host = greet(&mut world, "bob");
        world.send(
            host,
            &json!({"jsonrpc": "2.0", "id": 1, "method": "logging/setLevel", "params": {"level": "debug"}}),
        );
        world.pass(Duration::from_secs(50));
        let (link, _, said) = world.begin("2025-11-25");
        let said: Vec<Value> =
            said.iter().filter(|said| matches!(said, Said::Up { .. })).map(Said::json).collect();
        let [_, level] = said.as_slice() else { panic!("{said:?}") };
        assert_eq!(level["params"], json!({"level": "debug"}));
        world.send(host, &call(json!(2)));
        let sent = world.take().len();
        assert_eq!(sent, usize::from(transport == Transport::Pipe));
        world.pass(Duration::from_secs(5));
        let mut after = methods(&mut world);
        assert_eq!(after.remove(0), "notifications/cancelled");
        assert_eq!(after, ["tools/call"][sent..]);
        assert!(world.bridge.poll_timeout().is_some());
        world.error(link, number(level), json!({"code": -32601, "message": "late"}));
        assert!(world.take().is_empty());
    }
}

/// An upstream that answers a call before it has got it has answered it; it is not sent after that.
#[test]
fn a_waiting_call_that_is_answered_is_not_sent_r001() {
    let (mut world, host, link) = session();
    let level = set(&mut world, host, "debug");
    world.send(host, &call(json!(1)));
    world.result(link, number(&level[0]) + 1, json!({"content": []}));
    assert_eq!(world.reply(host)["id"], 1);
    world.result(link, number(&level[0]), json!({}));
    assert!(world.take().is_empty());
}

/// However many levels are set ahead of it, a call waits no longer than for one. Over HTTP all is said under the revision
/// that was settled on.
#[test]
fn a_call_waits_no_longer_for_several_levels_bt8() {
    let (mut world, host, link) = session();
    set(&mut world, host, "debug");
    world.send(host, &call(json!(1)));
    assert!(set(&mut world, host, "error").is_empty());
    world.send(host, &call(json!(2)));
    world.pass(Duration::from_secs(5));
    let said = world.take();
    let revision = ("MCP-Protocol-Version".to_owned(), "2025-11-25".to_owned());
    for said in &said {
        assert!(
            matches!(said, Said::Up { link: to, headers, .. } if *to == link && headers.contains(&revision))
        );
    }
    let calls = said.iter().filter(|said| said.json()["method"] == "tools/call");
    assert_eq!(calls.count(), 2, "{said:?}");
}
