//! Urls that an upstream wants opened before it takes a call: `-32042` (BT-6, R-235).

use std::time::Duration;

use mrtr_core::{bridge::Transport, wire::Era};
use mrtr_tests::bridge::{Said, World};
use serde_json::{Value, json};

use super::{all, forms, rests};

/// BT-6, R-235: `-32042`: urls to open; once all are accepted and done with, the call is made again under a new id; never more than three times.
#[test]
fn urls_that_are_required_bt6_r235_r261() {
    let required = |ids: &[&str]| {
        let urls: Vec<Value> = ids.iter().map(|id| json!({"mode": "url", "elicitationId": id, "message": format!("open {id}"), "url": "https://x.example/"})).collect();
        json!({"code": -32042, "message": "open", "data": {"elicitations": urls}})
    };
    let mut world = World::single(Transport::Pipe, Era::Legacy);
    let (host, _) = world.call("alice", &all(), &json!({}));
    let (link, _, said) = world.begin("2025-11-25");
    let first = said[1].json();
    world.error(link, first["id"].as_i64().unwrap(), required(&["e1", "e2"]));
    let reply = world.reply(host);
    assert_eq!(
        reply["result"]["inputRequests"]["u1"],
        json!({"method": "elicitation/create", "params": {"mode": "url", "message": "open e1", "url": "https://x.example/"}})
    );
    let accepted = json!({"u1": {"action": "accept"}, "u2": {"action": "accept"}});
    let (host, _) = world.call(
        "alice",
        &all(),
        &json!({"requestState": reply["result"]["requestState"], "inputResponses": accepted}),
    );
    // Until it is done with, or 25 s have passed.
    assert!(world.take().is_empty());
    let complete = |id: &str| json!({"jsonrpc": "2.0", "method": "notifications/elicitation/complete", "params": {"elicitationId": id}});
    world.up(link, &complete("e1"));
    assert!(world.take().is_empty());
    world.up(link, &complete("e2"));
    let (_, again) = world.sent();
    assert_eq!(again["params"], first["params"]);
    assert_ne!(again["id"], first["id"]);
    // The same again: held, in case it is done with meanwhile; then asked.
    world.error(link, again["id"].as_i64().unwrap(), required(&["e3", "e4"]));
    assert!(world.take().is_empty());
    world.pass(Duration::from_secs(25));
    let said = world.take();
    let reply = said.last().unwrap().json();
    let _ = host;
    assert_eq!(reply["result"]["inputRequests"].as_object().unwrap().len(), 2, "{reply}");
    let (host, _) = world.call("alice", &all(), &json!({"requestState": reply["result"]["requestState"], "inputResponses": {"u3": {"action": "accept"}, "u4": {"action": "accept"}}}));
    world.pass(Duration::from_secs(25));
    let said = world.take();
    let again = said.iter().find(|said| matches!(said, Said::Up { .. })).unwrap().json();
    world.error(link, again["id"].as_i64().unwrap(), required(&["e5"]));
    let reply = world.reply(host);
    let (host, _) = world.call("alice", &all(), &json!({"requestState": reply["result"]["requestState"], "inputResponses": {"u5": {"action": "accept"}}}));
    world.up(link, &complete("e5"));
    let (_, third) = world.sent();
    world.error(link, third["id"].as_i64().unwrap(), required(&["e6"]));
    assert_eq!(world.reply(host)["error"]["code"], -32603);
    rests(&world);
}

/// a url goes through as it is, whichever way the upstream asks, whatever scheme it has: what may be opened is for
/// the host to say, which shows it in full.
#[test]
fn urls_go_through_as_they_are_r264() {
    for url in ["javascript:alert(1)", "data:text/html,<b>", "app+x://h/%2f?a=%20#f", "HTTP://u@X.example:1"]
    {
        let asks = json!({"mode": "url", "elicitationId": "e", "message": "m", "url": url});
        let required = json!({"code": -32042, "message": "open", "data": {"elicitations": [asks]}});
        let question = json!({"jsonrpc": "2.0", "id": 1, "method": "elicitation/create", "params": asks});
        let mut shown = Vec::new();
        for (asked, error) in [(true, required), (false, question)] {
            let mut world = World::single(Transport::Pipe, Era::Legacy);
            let (host, _) = world.call("alice", &all(), &json!({}));
            let (link, _, said) = world.begin("2025-11-25");
            match asked {
                true => world.error(link, said[1].json()["id"].as_i64().unwrap(), error),
                false => world.up(link, &error),
            }
            world.pass(Duration::from_millis(10));
            shown.push(world.reply(host)["result"]["inputRequests"]["u1"].take());
        }
        let expected =
            json!({"method": "elicitation/create", "params": {"mode": "url", "message": "m", "url": url}});
        assert_eq!(shown, [expected.clone(), expected]);
    }
}

/// BT-6: a url that is refused ends the call; a host that cannot open any gets `-32021`; empty or malformed data is `-32603`.
#[test]
fn urls_that_are_not_opened_bt6() {
    let required = json!({"code": -32042, "message": "open", "data": {"elicitations": [{"elicitationId": "e", "message": "m", "url": "https://x.example/"}]}});
    for (method, params) in [("tools/call", json!({"name": "t"})), ("prompts/get", json!({"name": "p"}))] {
        let mut world = World::single(Transport::Http, Era::Legacy);
        let (host, _) = world.post("alice", method, params.clone(), &all());
        let (link, _, said) = world.begin("2025-11-25");
        world.error(link, said[1].json()["id"].as_i64().unwrap(), required.clone());
        let mut again = params;
        again["requestState"] = world.reply(host)["result"]["requestState"].clone();
        again["inputResponses"] = json!({"u1": {"action": "decline"}});
        let (host, _) = world.post("alice", method, again, &all());
        let reply = world.reply(host);
        if method == "tools/call" {
            assert_eq!(
                (&reply["result"]["isError"], &reply["result"]["resultType"]),
                (&json!(true), &json!("complete"))
            );
        } else {
            assert_eq!(reply["error"]["code"], -32603);
        }
        rests(&world);
    }
    for (data, code) in [
        (required, -32021),
        (json!({"code": -32042, "message": "m", "data": {"elicitations": []}}), -32603),
        (json!({"code": -32042, "message": "m"}), -32603),
    ] {
        let mut world = World::single(Transport::Pipe, Era::Legacy);
        let (host, _) = world.call("alice", &forms(), &json!({}));
        let (link, _, said) = world.begin("2025-11-25");
        world.error(link, said[1].json()["id"].as_i64().unwrap(), data);
        let reply = world.reply(host);
        assert_eq!(reply["error"]["code"], code, "{reply}");
        if code == -32021 {
            assert_eq!(reply["error"]["data"], json!({"requiredCapabilities": {"elicitation": {"url": {}}}}));
        }
        rests(&world);
    }
}
