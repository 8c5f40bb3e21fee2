//! Sessions with legacy upstreams: who may use which, and for how long (R-253, G-46, BT-8, design §9).

use std::time::Duration;

use mrtr_core::{
    bridge::{HostId, LinkId, Reason, Transport},
    wire::Era,
};
use mrtr_tests::bridge::{Said, World, config, form};
use serde_json::{Value, json};

use super::{all, forms, rests, text};

/// Begins a call on a new session and lets it be asked: its host, the session, its id there.
fn park(world: &mut World, principal: &str, question: i64) -> (HostId, LinkId, i64, Value) {
    let (host, _) = world.call(principal, &forms(), &json!({}));
    let (link, _, said) = world.begin("2025-11-25");
    let call = said[1].json()["id"].as_i64().unwrap();
    world.up(link, &form(json!(question), "m"));
    world.pass(Duration::from_millis(10));
    let state = world.reply(host)["result"]["requestState"].clone();
    (host, link, call, state)
}

/// Design §9: one principal gets at most half of the sessions; what it abandons never blocks others; full: 10 s, then `-32603` with `data.retryAfterMs`.
#[test]
fn an_abandoned_conversation_blocks_nobody_else() {
    let mut world = World::single(Transport::Pipe, Era::Legacy);
    for question in 0..2 {
        park(&mut world, "mallory", question);
    }
    let (third, _) = world.call("mallory", &forms(), &json!({}));
    assert!(world.take().is_empty());
    assert_eq!(world.bridge.counts().waiting, 1);
    let (_, link, call, state) = park(&mut world, "alice", 9);
    let (host, _) = world.call(
        "alice",
        &forms(),
        &json!({"requestState": state, "inputResponses": {"u1": {"action": "decline"}}}),
    );
    assert_eq!(world.sent().1["id"], 9);
    world.result(link, call, text("done"));
    assert_eq!(world.reply(host)["result"]["content"], text("done")["content"]);
    // Her session is free, but it is hers; the third call waits for one of its own.
    world.pass(Duration::from_secs(10));
    let reply = world.reply(third);
    assert_eq!(
        (&reply["error"]["code"], &reply["error"]["data"]),
        (&json!(-32603), &json!({"retryAfterMs": 10000}))
    );
    // Until the abandoned ones are given up.
    world.pass(Duration::from_secs(120));
    world.take();
    world.pass(Duration::from_secs(5));
    world.take();
    world.call("mallory", &forms(), &json!({}));
    assert!(!world.take().is_empty());
}

/// Waiters have a bound of their own, and one that is cancelled is forgotten.
#[test]
fn waiters_are_bounded() {
    let mut config = config(&[("up", Transport::Pipe, Era::Legacy)]);
    (config.pool.processes, config.pool.waiters) = (1, 2);
    let mut world = World::new(config);
    let (_, link, call, _) = park(&mut world, "alice", 1);
    let (first, _) = world.call("alice", &forms(), &json!({}));
    let (second, _) = world.call("alice", &forms(), &json!({}));
    let (third, _) = world.call("alice", &forms(), &json!({}));
    assert_eq!(world.reply(third)["error"]["data"], json!({"retryAfterMs": 10000}));
    world.bridge.close_host(first, world.now);
    assert_eq!(world.bridge.counts().waiting, 1);
    assert_eq!(world.bridge.poll_timeout().unwrap().1, Reason::NoSession);
    world.result(link, call, text("x"));
    let (_, sent) = world.sent();
    world.result(link, sent["id"].as_i64().unwrap(), text("y"));
    assert_eq!(world.reply(second)["result"]["content"], text("y")["content"]);
}

/// Design §9: a session that was promised nothing cannot be asked, and runs any number of calls.
#[test]
fn sessions_without_a_promise_are_shared() {
    let mut world = World::single(Transport::Pipe, Era::Legacy);
    let (first, _) = world.call("alice", &json!({}), &json!({}));
    let (link, promise, said) = world.begin("2025-11-25");
    assert_eq!(promise, json!({}));
    let one = said[1].json()["id"].as_i64().unwrap();
    let (second, _) = world.call("alice", &json!({}), &json!({}));
    let (same, sent) = world.sent();
    assert_eq!(same, link);
    world.result(link, sent["id"].as_i64().unwrap(), text("2"));
    assert_eq!(world.reply(second)["result"]["content"], text("2")["content"]);
    world.result(link, one, text("1"));
    assert_eq!(world.reply(first)["result"]["content"], text("1")["content"]);
    rests(&world);
}

/// G-46: one session for each set of capabilities, never a superset; an idle one of the same set is used again; BT-8: sessions of others are not.
#[test]
fn one_session_for_each_promise_g46_bt8() {
    let mut world = World::single(Transport::Http, Era::Legacy);
    let mut used = Vec::new();
    for (principal, capabilities) in
        [("alice", forms()), ("alice", json!({"roots": {}})), ("alice", all()), ("bob", forms())]
    {
        let (host, _) = world.call(principal, &capabilities, &json!({}));
        let (link, promise, said) = world.begin("2025-11-25");
        assert_eq!(promise, capabilities);
        world.result(link, said[1].json()["id"].as_i64().unwrap(), text("x"));
        world.reply(host);
        used.push(link);
    }
    let (host, _) = world.call("bob", &forms(), &json!({}));
    let (link, sent) = world.sent();
    assert_eq!(link, used[3]);
    world.result(link, sent["id"].as_i64().unwrap(), text("x"));
    world.reply(host);
    assert_eq!(world.bridge.counts().sessions, 4);
    // Idle sessions end.
    world.pass(Duration::from_secs(301));
    assert_eq!(world.bridge.counts().sessions, 0);
    assert_eq!(world.take().iter().filter(|said| matches!(said, Said::Closed { .. })).count(), 4);
}

/// Design §9: negotiated down: 2025-06-18 is promised forms only, 2025-03-26 no elicitation; a promise it would misread is taken back before the first call.
#[test]
fn promises_to_older_servers_r246() {
    let urls = json!({"elicitation": {"url": {}}, "sampling": {"tools": {}}});
    let mut world = World::single(Transport::Pipe, Era::Legacy);
    let (host, _) = world.call("alice", &urls, &json!({}));
    let said = world.take();
    let Said::Up { link: first, .. } = said[1] else { panic!("{said:?}") };
    let init = said[1].json();
    assert_eq!(init["params"]["capabilities"], urls);
    let result = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}});
    world.result(first, init["id"].as_i64().unwrap(), result.clone());
    let said = world.take();
    assert!(matches!(said[0], Said::Closed { link } if link == first), "{said:?}");
    let Said::Up { link: second, .. } = said[2] else { panic!("{said:?}") };
    let init = said[2].json();
    assert_eq!(
        (&init["params"]["capabilities"], &init["params"]["protocolVersion"]),
        (&json!({"sampling": {}}), &json!("2025-06-18"))
    );
    world.result(second, init["id"].as_i64().unwrap(), result);
    let call = world.take()[1].json();
    assert_eq!(call["method"], "tools/call");
    world.result(second, call["id"].as_i64().unwrap(), text("done"));
    assert_eq!(world.reply(host)["result"]["content"], text("done")["content"]);
    // Known from now on.
    world.call("bob", &all(), &json!({}));
    let init = world.take()[1].json();
    assert_eq!(
        init["params"]["capabilities"],
        json!({"elicitation": {"form": {}}, "sampling": {"context": {}}, "roots": {}})
    );

    let mut world = World::single(Transport::Pipe, Era::Legacy);
    world.call("alice", &all(), &json!({}));
    let init = world.take()[1].json();
    let result = json!({"protocolVersion": "2025-03-26", "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}});
    world.result(LinkId(1), init["id"].as_i64().unwrap(), result);
    let init = world.take()[2].json();
    assert_eq!(init["params"]["capabilities"], json!({"sampling": {"context": {}}, "roots": {}}));
}

/// A session that cannot begin: its calls fail with a reason, nothing is tried for ever.
#[test]
fn sessions_that_do_not_begin() {
    for answer in [
        json!({"error": {"code": -32602, "message": "no"}}),
        json!({"result": {"protocolVersion": "1999-01-01", "capabilities": {}}}),
        json!({"result": 7}),
    ] {
        let mut world = World::single(Transport::Pipe, Era::Legacy);
        let (host, _) = world.call("alice", &forms(), &json!({}));
        let init = world.take()[1].json();
        let mut message = answer.clone();
        message["jsonrpc"] = json!("2.0");
        message["id"] = init["id"].clone();
        world.up(LinkId(1), &message);
        let said = world.take();
        let reply =
            said.iter().find(|said| matches!(said, Said::Host { .. })).unwrap_or_else(|| panic!("{said:?}"));
        let Said::Host { host: to, .. } = reply else { unreachable!() };
        assert_eq!((*to, &reply.json()["error"]["code"]), (host, &json!(-32603)));
        rests(&world);
        assert_eq!(world.bridge.counts().sessions, 0);
    }
}

/// BT-8: lists, prompts, completions cross one to one, on a session that may be busy with a parked call; discovery is made of `initialize`.
#[test]
fn the_rest_of_the_protocol_crosses_bt8_r260_r046() {
    let mut world = World::single(Transport::Pipe, Era::Legacy);
    let (host, _) = world.post("alice", "server/discover", json!({}), &forms());
    let (_, _, said) = world.begin("2025-11-25");
    let reply = said.last().unwrap().json();
    let Said::Host { host: to, .. } = said.last().unwrap() else { panic!("{said:?}") };
    assert_eq!(*to, host);
    assert_eq!(
        reply["result"],
        json!({"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}, "logging": {}},
        "resultType": "complete", "ttlMs": 0, "cacheScope": "private",
        "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "old", "version": "2"}}})
    );
    let (host, _) = world.post("alice", "tools/list", json!({"cursor": "c"}), &forms());
    let (link, sent) = world.sent();
    assert_eq!(sent["params"], json!({"cursor": "c"}));
    world.result(
        link,
        sent["id"].as_i64().unwrap(),
        json!({"tools": [{"name": "t", "execution": {}, "inputSchema": {}}], "nextCursor": "d"}),
    );
    let reply = world.reply(host);
    assert_eq!(
        (&reply["result"]["tools"], &reply["result"]["nextCursor"], &reply["result"]["ttlMs"]),
        (&json!([{"name": "t", "inputSchema": {}}]), &json!("d"), &json!(0))
    );
    // Busy with a parked call: still there for a list.
    let (host, _) = world.call("alice", &forms(), &json!({}));
    let (same, call) = world.sent();
    assert_eq!(same, link);
    world.up(link, &form(json!(1), "m"));
    world.pass(Duration::from_millis(10));
    world.reply(host);
    let (host, _) = world.post(
        "alice",
        "completion/complete",
        json!({"ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "a", "value": "v"}}),
        &forms(),
    );
    let said = world.take();
    let sent = said.iter().find(|said| matches!(said, Said::Up { .. })).unwrap();
    let Said::Up { link: other, .. } = *sent else { unreachable!() };
    // A session of its own is begun while there is room for one.
    assert_ne!(other, link);
    let _ = (host, call);
    // R-261, G-40: a resource that is not there.
    let (host, _) = world.post("bob", "resources/read", json!({"uri": "file:///x"}), &json!({}));
    let (link, _, said) = world.begin("2025-11-25");
    world.error(link, said[1].json()["id"].as_i64().unwrap(), json!({"code": -32002, "message": "no"}));
    assert_eq!(
        world.reply(host)["error"],
        json!({"code": -32602, "message": "no", "data": {"uri": "file:///x"}})
    );
    // what the modern era has not, or the bridge does not carry.
    for method in ["ping", "logging/setLevel", "resources/subscribe", "initialize", "tasks/get"] {
        let (host, _) = world.post("bob", method, json!({}), &forms());
        assert_eq!(world.reply(host)["error"]["code"], -32601, "{method}");
    }
}

/// Draining: no new calls, parked ones are served.
#[test]
fn draining() {
    let mut world = World::single(Transport::Pipe, Era::Legacy);
    let (_, link, call, state) = park(&mut world, "alice", 1);
    world.bridge.drain();
    let (host, _) = world.call("alice", &forms(), &json!({}));
    assert_eq!(world.reply(host)["error"]["code"], -32603);
    assert!(!world.bridge.is_idle());
    let (host, _) = world.call(
        "alice",
        &forms(),
        &json!({"requestState": state, "inputResponses": {"u1": {"action": "cancel"}}}),
    );
    world.take();
    world.result(link, call, text("done"));
    assert_eq!(world.reply(host)["result"]["content"], text("done")["content"]);
    assert!(world.bridge.is_idle());
}

/// several upstreams: the person sees which one asks; each has sessions of its own.
#[test]
fn several_legacy_upstreams_r264() {
    let mut world =
        World::new(config(&[("a", Transport::Pipe, Era::Legacy), ("b", Transport::Http, Era::Legacy)]));
    for (name, upstream) in [("a__t", 0), ("b__t", 1)] {
        let (host, _) = world.post("alice", "tools/call", json!({"name": name}), &forms());
        assert!(matches!(world.said[0], Said::Opened { upstream: opened, .. } if opened == upstream));
        let (link, _, said) = world.begin("2025-11-25");
        assert_eq!(said[1].json()["params"]["name"], "t");
        world.up(link, &form(json!(1), "Sure?"));
        world.pass(Duration::from_millis(10));
        let reply = world.reply(host);
        assert_eq!(
            reply["result"]["inputRequests"]["u1"]["params"]["message"],
            format!("[{}] Sure?", &name[..1])
        );
        // A state of one is nothing to the other.
        let other = if upstream == 0 { "b__t" } else { "a__t" };
        let (host, _) = world.post(
            "alice",
            "tools/call",
            json!({"name": other, "requestState": reply["result"]["requestState"]}),
            &forms(),
        );
        assert_eq!(world.reply(host)["error"]["code"], -32602);
    }
}

/// Design: no answer meets another question. A session whose call was cancelled is not used again, also if it ends the call; on HTTP a question goes by its stream alone.
#[test]
fn a_late_question_meets_nobody_r253() {
    let mut world = World::single(Transport::Http, Era::Legacy);
    let (host, _) = world.call("alice", &forms(), &json!({}));
    let (link, _, said) = world.begin("2025-11-25");
    let first = said[1].json()["id"].as_i64().unwrap();
    world.bridge.close_host(host, world.now);
    world.send_raw(host, "");
    assert_eq!(world.sent().1["method"], "notifications/cancelled");
    world.error(link, first, json!({"code": -32603, "message": "cancelled"}));
    assert!(matches!(world.only(), Said::Closed { link: closed } if closed == link));
    // A call that has ended, and asks.
    let (host, _) = world.call("alice", &forms(), &json!({}));
    let (link, _, said) = world.begin("2025-11-25");
    let second = said[1].json()["id"].as_i64().unwrap();
    world.result(link, second, text("done"));
    world.reply(host);
    let (_, _) = world.call("alice", &forms(), &json!({}));
    let (same, third) = world.sent();
    assert_eq!(same, link);
    world.up_raw(link, Some(second), &form(json!(9), "late").to_string());
    assert_eq!(world.sent().1["error"]["code"], -32602);
    world.up_raw(link, third["id"].as_i64(), &form(json!(10), "in time").to_string());
    assert!(world.take().is_empty());
    assert_eq!(world.bridge.poll_timeout().unwrap().1, Reason::Coalesced);
}
