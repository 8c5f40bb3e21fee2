//! Modern to modern: bytes through, the upstream's state wrapped, nothing held (R-254, R-255, R-258, R-259, B-55, B-68, B-69, W-03, W-04).

use mrtr_core::{
    bridge::{HostKind, Transport},
    wire::Era,
};
use mrtr_tests::bridge::{Said, World, config};
use serde_json::{Value, json};

use super::{all, forms, rests, text};

fn raw(world: &mut World) -> String {
    match world.only() {
        Said::Host { raw, .. } | Said::Up { raw, .. } => raw,
        other => panic!("{other:?}"),
    }
}

/// The first message opens the connection; what follows it.
fn opened(world: &mut World) -> (mrtr_core::bridge::LinkId, String) {
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
    world.bridge.fail_call(link, id, world.now);
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
