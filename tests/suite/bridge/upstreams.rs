//! What is relayed from modern host to modern upstream beside calls, and between several upstreams: names, quotas,
//! subscriptions, failures, credentials.

use mrtr_core::{
    bridge::{HostKind, Transport},
    wire::Era,
};
use mrtr_tests::bridge::{Said, World, config};
use serde_json::{Value, json};

use super::{forms, relay::opened, rests, text};

/// Several upstreams: tools are called by their upstream's name; one that nobody has is `-32602`; lists are put together.
#[test]
fn several_upstreams() {
    let mut world =
        World::new(config(&[("a", Transport::Pipe, Era::Modern), ("b-2", Transport::Pipe, Era::Modern)]));
    let (host, _) = world.post("alice", "tools/call", json!({"name": "c__t"}), &forms());
    assert_eq!(world.reply(host)["error"]["code"], -32602);
    let (host, _) = world.post("alice", "tools/list", json!({}), &forms());
    let said = world.take();
    let sent: Vec<_> = said
        .iter()
        .filter_map(|said| match said {
            Said::Up { link, call: Some(call), .. } => Some((*link, *call)),
            _ => None,
        })
        .collect();
    world.result(
        sent[1].0,
        sent[1].1,
        json!({"resultType": "complete", "tools": [{"name": "t", "inputSchema": {"n": 1.5}}]}),
    );
    assert!(world.take().is_empty());
    world.result(
        sent[0].0,
        sent[0].1,
        json!({"resultType": "complete", "tools": [{"name": "x"}], "nextCursor": "c\"1"}),
    );
    let (link, page) = world.sent();
    assert_eq!((link, &page["params"]["cursor"]), (sent[0].0, &json!("c\"1")));
    world.result(
        link,
        page["id"].as_i64().unwrap(),
        json!({"resultType": "complete", "tools": [{"name": "y"}]}),
    );
    let reply = world.reply(host);
    let names: Vec<_> = reply["result"]["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["a__x", "a__y", "b-2__t"]);
    assert_eq!(reply["result"]["resultType"], "complete");
    assert_eq!(reply["result"]["cacheScope"], "private");
    rests(&world);
}

/// Quotas per principal: one that has too much under way is told so; others are not.
#[test]
fn quotas_are_per_principal() {
    let mut config = config(&[("up", Transport::Pipe, Era::Modern)]);
    config.quota.calls = 2;
    let mut world = World::new(config);
    for _ in 0..2 {
        world.call("alice", &forms(), &json!({}));
    }
    world.take();
    let (host, _) = world.call("alice", &forms(), &json!({}));
    let reply = world.reply(host);
    assert_eq!(
        (&reply["error"]["code"], &reply["error"]["data"]),
        (&json!(-32603), &json!({"retryAfterMs": 1000}))
    );
    world.call("bob", &forms(), &json!({}));
    assert_eq!(world.sent().1["method"], "tools/call");
    assert_eq!(world.bridge.counts().open, 3);
}

/// BT-8, R-039, R-258: subscriptions go through under the host's own id.
#[test]
fn subscriptions_r039_r258_r186() {
    let mut world = World::single(Transport::Http, Era::Modern);
    let (host, id) = world.post(
        "alice",
        "subscriptions/listen",
        json!({"notifications": {"toolsListChanged": true}}),
        &forms(),
    );
    let (link, sent) = opened(&mut world);
    let up = serde_json::from_str::<Value>(&sent).unwrap()["id"].as_i64().unwrap();
    let note = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed", "params": {"_meta": {"io.modelcontextprotocol/subscriptionId": up, "v": 1}}});
    world.up_raw(link, Some(up), &note.to_string());
    let said = world.reply(host);
    assert_eq!(said["params"]["_meta"], json!({"io.modelcontextprotocol/subscriptionId": id, "v": 1}));
    // No bound of time, and nobody waits for its end.
    world.pass(std::time::Duration::from_secs(100_000));
    assert!(world.take().is_empty() && world.bridge.is_idle());
    world.bridge.close_host(host, world.now);
    assert!(matches!(world.bridge.poll_output(), Some(mrtr_core::bridge::Output::CloseStream { .. })));
}

/// An upstream that does not respond, or ends: the host gets an error, once.
#[test]
fn upstreams_that_fail() {
    let mut world = World::single(Transport::Http, Era::Modern);
    let (host, _) = world.call("alice", &forms(), &json!({}));
    let (link, sent) = opened(&mut world);
    let id = serde_json::from_str::<Value>(&sent).unwrap()["id"].as_i64().unwrap();
    world.pass(std::time::Duration::from_secs(3_601));
    let said = world.take();
    assert!(matches!(said[0], Said::StreamClosed { .. }), "{said:?}");
    assert_eq!(said[1].json()["error"]["code"], -32603);
    let _ = (host, id);
    let (host, _) = world.call("alice", &forms(), &json!({}));
    let id = world.sent().1["id"].as_i64().unwrap();
    world.bridge.fail_call(link, id, mrtr_core::bridge::CallFailure::Broken, world.now);
    world.result(link, id, json!({"resultType": "complete"}));
    assert_eq!(world.reply(host)["error"]["code"], -32603);
    let (host, _) = world.call("alice", &forms(), &json!({}));
    world.take();
    world.bridge.close_upstream(link, world.now);
    world.send_raw(host, "");
    assert_eq!(world.reply(host)["error"]["code"], -32603);
    rests(&world);
    // The next call opens another connection.
    world.call("alice", &forms(), &json!({}));
    assert_ne!(opened(&mut world).0, link);
    let _ = text("");
}

/// R-257: nothing of the host's headers goes upstream, its token least of all; R-259: what goes is of the body that is sent. R-170: headers and body agree, or the host hears of it.
#[test]
fn no_token_is_passed_on_r257_r170() {
    struct Sent(Vec<(&'static str, &'static str)>);
    impl mrtr_core::http::Headers for Sent {
        fn get_all<'h>(&'h self, name: &str, each: &mut dyn FnMut(&'h [u8])) {
            self.0
                .iter()
                .filter(|(found, _)| found.eq_ignore_ascii_case(name))
                .for_each(|(_, value)| each(value.as_bytes()));
        }
    }
    let mut world = World::single(Transport::Http, Era::Modern);
    let request = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "t", "_meta": mrtr_tests::bridge::meta(json!({}))}}).to_string();
    let mut headers = Sent(vec![
        ("Authorization", "Bearer secret"),
        ("Cookie", "a=b"),
        ("MCP-Protocol-Version", "2026-07-28"),
        ("Mcp-Method", "tools/call"),
        ("Mcp-Name", "t"),
    ]);
    let host = world.host(HostKind::Post, "alice");
    world.send_with(host, &request, &headers);
    let said = world.take();
    let Said::Up { headers: sent, raw, .. } = &said[1] else { panic!("{said:?}") };
    let names: Vec<&str> = sent.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["Content-Type", "Accept", "MCP-Protocol-Version", "Mcp-Method", "Mcp-Name"]);
    assert!(!format!("{sent:?}{raw}").contains("secret"));
    headers.0[4] = ("Mcp-Name", "other");
    let host = world.host(HostKind::Post, "alice");
    world.send_with(host, &request, &headers);
    assert_eq!(world.reply(host)["error"]["code"], -32020);
}

/// R-263, R-202: nothing is cached: the same request goes upstream each time.
#[test]
fn nothing_is_cached_r263() {
    for era in [Era::Modern, Era::Legacy] {
        let mut world = World::single(Transport::Pipe, era);
        for round in 0..3 {
            let (host, _) = world.post("alice", "resources/read", json!({"uri": "file:///a"}), &json!({}));
            let said =
                if round == 0 && era == Era::Legacy { world.begin("2025-11-25").2 } else { world.take() };
            let Said::Up { link, .. } = said.last().unwrap() else { panic!("{said:?}") };
            let sent = said.last().unwrap().json();
            assert_eq!(sent["method"], "resources/read");
            world.result(
                *link,
                sent["id"].as_i64().unwrap(),
                json!({"resultType": "complete", "contents": [], "ttlMs": 0, "cacheScope": "private"}),
            );
            // G-40
            let reply = world.reply(host);
            assert_eq!(
                (&reply["result"]["ttlMs"], &reply["result"]["cacheScope"]),
                (&json!(0), &json!("private"))
            );
        }
    }
}

/// R-033, R-022, R-001: a request that is not in order is the bridge's to answer; the upstream does not hear of it.
#[test]
fn requests_that_are_not_in_order_r033_r022() {
    let mut world = World::single(Transport::Pipe, Era::Modern);
    for (message, code) in [
        (r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}"#.to_owned(), -32602),
        (r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","_meta":{"io.modelcontextprotocol/protocolVersion":"2031-01-01","io.modelcontextprotocol/clientCapabilities":{}}}}"#.to_owned(), -32022),
        (r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"a":1,"a":2}}"#.to_owned(), -32600),
        ("{".to_owned(), -32700),
    ] {
        let host = world.host(HostKind::Post, "alice");
        world.send_raw(host, &message);
        assert_eq!(world.reply(host)["error"]["code"], code);
    }
    for params in [
        json!({"arguments": 1}),
        json!({"requestState": null}),
        json!({"inputResponses": []}),
        json!({"name": 7}),
    ] {
        let (host, _) = world.call("alice", &forms(), &params);
        assert_eq!(world.reply(host)["error"]["code"], -32602);
    }
    // The same id while it runs.
    let host = world.host(HostKind::Pipe, "alice");
    let request = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "t", "_meta": mrtr_tests::bridge::meta(json!({}))}});
    world.send(host, &request);
    world.take();
    world.send(host, &request);
    assert_eq!(world.reply(host)["error"]["code"], -32600);
}
