//! Sessions with legacy upstreams that a legacy host has for itself (R-253, design §9).

use std::time::Duration;

use mrtr_core::{
    bridge::{HostId, HostKind, Transport},
    wire::Era,
};
use mrtr_tests::bridge::{Said, World, config};
use serde_json::json;

use super::text;

/// What each legacy host over HTTP has for itself is bounded, and takes nothing from the hosts that share: over the bound
/// `initialize` is refused, until a session has ended. A host on a pipe has its own in any case.
#[test]
fn what_legacy_hosts_have_for_themselves_is_bounded() {
    let mut config = config(&[("up", Transport::Pipe, Era::Legacy)]);
    (config.pool.processes, config.pool.processes_in_all, config.pool.own_processes) = (1, 1, 4);
    let mut world = World::new(config);
    let initialize = |world: &mut World, kind, principal: &str| {
        let host = world.host(kind, principal);
        world.send(
            host,
            &json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": "2025-11-25",
            "capabilities": {}, "clientInfo": {"name": "h", "version": "1"}}}),
        );
        let said = world.take();
        let opened = said.iter().any(|said| matches!(said, Said::Opened { .. }));
        (host, opened, said)
    };
    let begun: Vec<HostId> = (0..2)
        .map(|_| initialize(&mut world, HostKind::Session, "alice"))
        .map(|(host, opened, _)| {
            assert!(opened);
            host
        })
        .collect();
    // One principal has half of them at most.
    let (_, opened, said) = initialize(&mut world, HostKind::Session, "alice");
    assert!(!opened);
    assert_eq!(said[0].json()["error"]["data"], json!({"retryAfterMs": 10000}));
    for principal in ["bob", "carol"] {
        assert!(initialize(&mut world, HostKind::Session, principal).1);
    }
    assert!(!initialize(&mut world, HostKind::Session, "dave").1);
    assert!(initialize(&mut world, HostKind::Pipe, "dave").1);
    assert_eq!(world.bridge.counts().sessions, 5);
    // A modern host finds the one process that it may share.
    let (host, _) = world.call("erin", &json!({}), &json!({}));
    let (link, _, said) = world.begin("2025-11-25");
    let call =
        said.iter().find(|said| matches!(said, Said::Up { .. }) && said.json()["method"] == "tools/call");
    world.result(link, call.unwrap().json()["id"].as_i64().unwrap(), text("x"));
    assert_eq!(world.reply(host)["result"]["content"], text("x")["content"]);
    // A session that has ended makes room.
    world.leave(begun[0]);
    assert!(initialize(&mut world, HostKind::Session, "dave").1);
    assert!(!initialize(&mut world, HostKind::Session, "frank").1);
}

/// What a legacy host over HTTP has for itself and does not use goes for another host; its next request begins it anew.
#[test]
fn what_a_legacy_host_has_for_itself_may_go_once_it_rests() {
    let mut config = config(&[("up", Transport::Pipe, Era::Legacy)]);
    config.pool.own_processes = 1;
    let mut world = World::new(config);
    let initialize = |world: &mut World, principal: &str| {
        let host = world.host(HostKind::Session, principal);
        let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "h", "version": "1"}});
        world.send(host, &json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}));
        host
    };
    let alice = initialize(&mut world, "alice");
    let (first, _, _) = world.begin("2025-11-25");
    world.pass(Duration::from_secs(299));
    let bob = initialize(&mut world, "bob");
    assert_eq!(world.reply(bob)["error"]["data"], json!({"retryAfterMs": 10000}));
    // Work in between: it has not rested.
    world.send(alice, &json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}));
    let (_, sent) = world.sent();
    world.pass(Duration::from_secs(299));
    initialize(&mut world, "bob");
    world.take();
    world.result(first, sent["id"].as_i64().unwrap(), json!({"tools": []}));
    world.reply(alice);
    world.pass(Duration::from_secs(300));
    initialize(&mut world, "bob");
    let said = world.take();
    assert!(said.iter().any(|said| matches!(said, Said::Closed { link } if *link == first)), "{said:?}");
    let second = said.iter().find_map(|said| match said {
        Said::Opened { link, .. } => Some(*link),
        _ => None,
    });
    let id = said.iter().find(|said| matches!(said, Said::Up { .. })).unwrap().json()["id"].as_i64().unwrap();
    world.result(second.unwrap(), id, json!({"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "old", "version": "2"}}));
    world.take();
    // Alice is still there, and gets another as soon as there is room.
    world.send(alice, &json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"}));
    assert_eq!(world.reply(alice)["error"]["data"], json!({"retryAfterMs": 10000}));
    world.pass(Duration::from_secs(300));
    world.send(alice, &json!({"jsonrpc": "2.0", "id": 3, "method": "tools/list"}));
    let (third, _, said) = world.begin("2025-11-25");
    let call =
        said.iter().find(|said| matches!(said, Said::Up { .. }) && said.json()["method"] == "tools/list");
    world.result(third, call.unwrap().json()["id"].as_i64().unwrap(), json!({"tools": []}));
    assert_eq!(world.reply(alice)["result"], json!({"tools": []}));
}
