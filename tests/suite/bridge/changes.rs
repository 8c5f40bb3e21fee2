//! Changes cross: `subscriptions/listen` on one side, `resources/subscribe` and list_changed on the other (BT-8, R-039, R-186, R-205, R-206).

use std::time::Duration;

use mrtr_core::{
    bridge::{HostKind, HostStream, Transport},
    wire::Era,
};
use mrtr_tests::bridge::{Said, World};
use serde_json::{Value, json};

use super::forms;

fn note(method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "method": method, "params": params})
}

const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

/// A modern host hears what its legacy session tells, and nothing else; what it does not listen to any more is unsubscribed.
#[test]
fn a_modern_host_hears_a_legacy_upstream_bt8_r186_r205_r206() {
    let mut world = World::single(Transport::Pipe, Era::Legacy);
    let filter = json!({"toolsListChanged": true, "resourceSubscriptions": ["file:///a"]});
    let (host, id) = world.post("alice", "subscriptions/listen", json!({"notifications": filter}), &forms());
    let said = world.take();
    assert_eq!(
        said[0].json(),
        note(
            "notifications/subscriptions/acknowledged",
            json!({"notifications": filter, "_meta": {SUBSCRIPTION: id}})
        )
    );
    world.said = said[1..].to_vec();
    let (link, _, said) = world.begin("2025-11-25");
    let subscribe = said[1].json();
    assert_eq!(
        (&subscribe["method"], &subscribe["params"]),
        (&json!("resources/subscribe"), &json!({"uri": "file:///a"}))
    );
    world.result(link, subscribe["id"].as_i64().unwrap(), json!({}));
    for (method, params, heard) in [
        ("notifications/tools/list_changed", json!({"_meta": {"v": 1}}), true),
        ("notifications/prompts/list_changed", json!({}), false),
        ("notifications/resources/updated", json!({"uri": "file:///a"}), true),
        ("notifications/resources/updated", json!({"uri": "file:///b"}), false),
    ] {
        world.up(link, &note(method, params.clone()));
        if heard {
            let mut expected = params;
            expected["_meta"][SUBSCRIPTION] = json!(id);
            assert_eq!(world.reply(host), note(method, expected));
        } else {
            assert!(world.take().is_empty());
        }
    }
    // The session is kept for as long as somebody listens, and used for calls meanwhile.
    world.pass(Duration::from_secs(10_000));
    assert!(world.take().is_empty());
    assert!(world.bridge.is_idle() && !world.bridge.owes(host), "nobody waits for a subscription to end");
    let (caller, _) = world.call("alice", &forms(), &json!({}));
    assert!(!world.bridge.is_idle() && world.bridge.owes(caller) && !world.bridge.owes(host));
    let (same, call) = world.sent();
    assert_eq!(same, link);
    world.result(link, call["id"].as_i64().unwrap(), json!({"content": []}));
    world.reply(caller);
    world.bridge.close_host(host, world.now);
    world.send_raw(host, "");
    let (_, unsubscribe) = world.sent();
    assert_eq!(
        (&unsubscribe["method"], &unsubscribe["params"]),
        (&json!("resources/unsubscribe"), &json!({"uri": "file:///a"}))
    );
    world.result(link, unsubscribe["id"].as_i64().unwrap(), json!({}));
    world.pass(Duration::from_secs(301));
    assert!(matches!(world.only(), Said::Closed { .. }));
    // The session dies: the host is told, and listens again.
    let (host, _) = world.post("alice", "subscriptions/listen", json!({"notifications": {}}), &forms());
    world.said.remove(0);
    let (link, _, _) = world.begin("2025-11-25");
    world.bridge.close_upstream(link, world.now);
    world.send_raw(host, "");
    assert_eq!(world.reply(host)["error"]["code"], -32603);
    assert_eq!(world.bridge.counts().open, 0);
    let (host, _) = world.post(
        "alice",
        "subscriptions/listen",
        json!({"notifications": {"resourceSubscriptions": 1}}),
        &forms(),
    );
    assert_eq!(world.reply(host)["error"]["code"], -32602);
}

/// A legacy host hears what a modern upstream's stream tells, without its id; its subscriptions become one filter.
#[test]
fn a_legacy_host_hears_a_modern_upstream_bt8_r039() {
    let mut world = World::single(Transport::Http, Era::Modern);
    let host = world.host(HostKind::Session, "alice");
    world.send(host, &json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": "2025-11-25", "capabilities": {}}}));
    let said = world.take();
    let Said::Up { link, call: Some(discover), .. } = said[1] else { panic!("{said:?}") };
    let capabilities = json!({"tools": {"listChanged": true}, "resources": {"subscribe": true}});
    world.result(
        link,
        discover,
        json!({"resultType": "complete", "supportedVersions": [], "capabilities": capabilities}),
    );
    assert_eq!(world.reply(host)["result"]["capabilities"], capabilities);
    world.send(host, &json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    let (_, listen) = world.sent();
    assert_eq!(
        (&listen["method"], &listen["params"]["notifications"]),
        (&json!("subscriptions/listen"), &json!({"toolsListChanged": true}))
    );
    let first = listen["id"].as_i64().unwrap();
    let told = |id: i64, method: &str, mut params: Value| {
        params["_meta"] = json!({SUBSCRIPTION: id});
        note(method, params).to_string()
    };
    world.up_raw(
        link,
        Some(first),
        &told(first, "notifications/subscriptions/acknowledged", json!({"notifications": {}})),
    );
    assert!(world.take().is_empty());
    world.up_raw(link, Some(first), &told(first, "notifications/tools/list_changed", json!({})));
    let said = world.only();
    assert!(matches!(&said, Said::Host { stream: HostStream::Common, .. }), "{said:?}");
    assert_eq!(said.json(), note("notifications/tools/list_changed", json!({})));
    world.send(
        host,
        &json!({"jsonrpc": "2.0", "id": 1, "method": "resources/subscribe", "params": {"uri": "file:///a"}}),
    );
    let said = world.take();
    assert!(matches!(said[0], Said::StreamClosed { call, .. } if call == first), "{said:?}");
    let listen = said[1].json();
    assert_eq!(
        listen["params"]["notifications"],
        json!({"toolsListChanged": true, "resourceSubscriptions": ["file:///a"]})
    );
    assert_eq!(said[2].json()["result"], json!({}));
    let second = listen["id"].as_i64().unwrap();
    world.up_raw(
        link,
        Some(second),
        &told(second, "notifications/resources/updated", json!({"uri": "file:///a"})),
    );
    assert_eq!(world.reply(host)["params"], json!({"uri": "file:///a"}));
    world.send(host, &json!({"jsonrpc": "2.0", "id": 2, "method": "resources/unsubscribe", "params": {"uri": "file:///a"}}));
    let said = world.take();
    assert_eq!(said[1].json()["params"]["notifications"], json!({"toolsListChanged": true}));
    world.bridge.close_host(host, world.now);
    world.send_raw(host, "");
    assert!(matches!(world.only(), Said::StreamClosed { .. }));
}
