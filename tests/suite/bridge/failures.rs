//! Calls that get no response: their host hears why, in words of the bridge's own (BT-6, R-019); a capability that an
//! upstream misses (R-021, R-106).

use std::time::Duration;

use mrtr_core::{
    bridge::{CallFailure, HostId, HostKind, HostStream, LinkId, Transport},
    http::ReplyClass,
    jsonrpc::RequestId,
    wire::Era,
};
use mrtr_tests::bridge::{Said, World, config};
use serde_json::{Value, json};

use super::{forms, rests, text};

fn status(status: u16, seconds: Option<u64>) -> CallFailure {
    let mut failure = CallFailure::Status { status, retry_after: None };
    if let CallFailure::Status { retry_after, .. } = &mut failure {
        *retry_after = seconds.map(Duration::from_secs);
    }
    failure
}

/// Every way in which a call can fail, and what the host gets as `data`.
fn failures() -> Vec<(CallFailure, Value)> {
    vec![
        (CallFailure::Unreachable, json!({"kind": "unreachable"})),
        (CallFailure::Broken, json!({"kind": "broken"})),
        (CallFailure::TimedOut, json!({"kind": "timeout"})),
        (status(401, None), json!({"kind": "unauthorized", "status": 401})),
        (status(403, None), json!({"kind": "forbidden", "status": 403})),
        (status(404, None), json!({"kind": "not_found", "status": 404})),
        (status(429, Some(7)), json!({"kind": "too_many_requests", "status": 429, "retryAfterMs": 7_000})),
        (status(503, Some(0)), json!({"kind": "unavailable", "status": 503, "retryAfterMs": 0})),
        (status(502, None), json!({"kind": "http_status", "status": 502})),
        (CallFailure::Redirected, json!({"kind": "redirected"})),
        (CallFailure::NoMessage, json!({"kind": "no_message"})),
        (CallFailure::TooLarge { limit: 9 }, json!({"kind": "too_large"})),
        (CallFailure::NoCredentials, json!({"kind": "no_credentials"})),
        (CallFailure::Unsayable, json!({"kind": "unsayable"})),
    ]
}

/// A host that has a call at an upstream: its connection there, its id there.
fn under_way(host_era: Era, upstream: Era) -> (World, HostId, LinkId, i64) {
    let mut world = World::single(Transport::Http, upstream);
    let host = match host_era {
        Era::Modern => world.call("alice", &forms(), &json!({})).0,
        Era::Legacy => {
            let host = world.host(HostKind::Session, "alice");
            world.send(
                host,
                &json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
                    "protocolVersion": "2025-11-25", "capabilities": {"elicitation": {}},
                    "clientInfo": {"name": "h", "version": "1"}}}),
            );
            let said = world.take();
            let (link, id) = said
                .iter()
                .find_map(|said| match said {
                    Said::Up { link, .. } => Some((*link, said.json()["id"].as_i64().unwrap())),
                    _ => None,
                })
                .unwrap();
            let result = match upstream {
                Era::Modern => {
                    json!({"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}})
                }
                Era::Legacy => {
                    json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "o", "version": "1"}})
                }
            };
            world.result(link, id, result);
            world.send(host, &json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
            world.take();
            let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "t", "arguments": {}}});
            world.send(host, &call);
            host
        }
    };
    if (host_era, upstream) == (Era::Modern, Era::Legacy) {
        let (link, _, said) = world.begin("2025-11-25");
        return (world, host, link, said[1].json()["id"].as_i64().unwrap());
    }
    let said = world.take();
    let sent = said.iter().find(|said| matches!(said, Said::Up { .. })).unwrap();
    let Said::Up { link, .. } = sent else { unreachable!() };
    let id = sent.json()["id"].as_i64().unwrap();
    (world, host, *link, id)
}

/// R-019, R-027, BT-6: whoever asks and whoever was asked, the host hears once why there is no response, by `-32603`,
/// which both eras have, and by a kind.
#[test]
fn a_host_of_either_era_hears_why_r019() {
    for (host_era, upstream) in [
        (Era::Modern, Era::Modern),
        (Era::Modern, Era::Legacy),
        (Era::Legacy, Era::Modern),
        (Era::Legacy, Era::Legacy),
    ] {
        for (failure, data) in failures() {
            let (mut world, host, link, id) = under_way(host_era, upstream);
            world.fail(link, id, failure);
            // Late words change nothing.
            world.fail(link, id, CallFailure::Broken);
            world.result(link, id, text("late"));
            let mut replies = world.take();
            replies.retain(|said| matches!(said, Said::Host { .. }));
            let [Said::Host { host: to, stream, raw, last }] = replies.as_slice() else {
                panic!("{replies:?}")
            };
            assert_eq!((*to, *last), (host, Some(ReplyClass::Internal)), "{raw}");
            let error = serde_json::from_str::<Value>(raw).unwrap()["error"].take();
            assert_eq!(
                (&error["code"], &error["data"]),
                (&json!(-32603), &data),
                "{host_era:?} {upstream:?}"
            );
            let message = error["message"].as_str().unwrap();
            assert!(message.contains("upstream"), "{message}");
            if host_era == Era::Legacy {
                assert_eq!(*stream, HostStream::Request(RequestId::from(1)));
            }
            rests(&world);
        }
    }
}

/// A session that does not begin: the calls that wait for it hear why it did not.
#[test]
fn what_waits_for_a_session_hears_why_there_is_none() {
    let mut world = World::single(Transport::Http, Era::Legacy);
    let (host, _) = world.call("alice", &forms(), &json!({}));
    let said = world.take();
    let Said::Up { link, .. } = said[1] else { panic!("{said:?}") };
    assert_eq!(said[1].json()["method"], "initialize");
    world.fail(link, said[1].json()["id"].as_i64().unwrap(), status(401, None));
    let said = world.take();
    let reply = said.iter().find(|said| matches!(said, Said::Host { .. })).unwrap();
    assert_eq!(reply.json()["error"]["data"], json!({"kind": "unauthorized", "status": 401}));
    assert!(said.iter().any(|said| matches!(said, Said::Closed { .. })));
    let _ = host;
    rests(&world);
}

/// One that never says who it is costs its callers a minute, not the hour that an exchange may take.
#[test]
fn what_waits_for_an_upstream_that_says_nothing_hears_so() {
    let mut world = World::single(Transport::Http, Era::Legacy);
    let _ = world.call("alice", &forms(), &json!({}));
    let said = world.take();
    assert_eq!(said[1].json()["method"], "initialize");
    world.pass(Duration::from_millis(59_999));
    assert!(!world.take().iter().any(|said| matches!(said, Said::Host { .. } | Said::Closed { .. })));
    world.pass(Duration::from_millis(1));
    let said = world.take();
    let reply = said.iter().find(|said| matches!(said, Said::Host { .. })).unwrap();
    assert_eq!(reply.json()["error"]["data"], json!({"kind": "timeout"}));
    assert!(said.iter().any(|said| matches!(said, Said::Closed { .. })));
    rests(&world);
}

/// R-021, R-106, BT-6: a legacy upstream says `-32603` and names what it misses. A host that did not declare that hears
/// `-32021`, as from a modern server; one that did hears what the upstream said.
#[test]
fn a_capability_that_a_legacy_upstream_misses_is_named_as_such_r106() {
    let missing = |required: Value| json!({"code": -32603, "message": "cannot ask", "data": {"requiredCapabilities": required}});
    let cases = [
        (json!({}), missing(json!({"sampling": {}})), true),
        (forms(), missing(json!({"sampling": {}})), true),
        (forms(), missing(json!({"elicitation": {"url": {}}})), true),
        (json!({"sampling": {}}), missing(json!({"sampling": {"tools": {}}})), true),
        (forms(), missing(json!({"elicitation": {}})), false),
        (json!({"sampling": {}}), missing(json!({"sampling": {}})), false),
        // Names, not objects; things that no host declares; nothing.
        (json!({}), missing(json!(["sampling"])), false),
        (json!({}), missing(json!({"sampling": true})), false),
        (json!({}), missing(json!({"teleport": {}})), false),
        (json!({}), missing(json!({})), false),
        (json!({}), json!({"code": -32603, "message": "m"}), false),
        // Another code is another thing.
        (
            json!({}),
            json!({"code": -32602, "message": "m", "data": {"requiredCapabilities": {"sampling": {}}}}),
            false,
        ),
    ];
    for (capabilities, error, becomes) in cases {
        let mut world = World::single(Transport::Pipe, Era::Legacy);
        let (host, id) = world.call("alice", &capabilities, &json!({}));
        let (link, _, said) = world.begin("2025-11-25");
        let call = said[1].json()["id"].as_i64().unwrap();
        world.error(link, call, error.clone());
        let said = world.take();
        let Said::Host { host: to, last, raw, .. } = &said[0] else { panic!("{said:?}") };
        let reply: Value = serde_json::from_str(raw).unwrap();
        assert_eq!((*to, &reply["id"]), (host, &json!(id)));
        if becomes {
            assert_eq!(*last, Some(ReplyClass::MissingCapability));
            assert_eq!((&reply["error"]["code"], &reply["error"]["data"]), (&json!(-32021), &error["data"]));
        } else {
            assert_eq!(last.unwrap().status(), 200);
            assert_eq!(reply["error"], error, "{capabilities}");
        }
        rests(&world);
    }
}

/// `Quota::parked` is about calls that could be asked something: what cannot never waits for an answer.
#[test]
fn a_call_that_cannot_be_asked_is_no_matter_of_the_parked_quota() {
    let mut config = config(&[("up", Transport::Pipe, Era::Legacy)]);
    config.quota.parked = 1;
    let mut world = World::new(config);
    let (host, _) = world.call("alice", &forms(), &json!({}));
    let (link, _, said) = world.begin("2025-11-25");
    world.up(link, &mrtr_tests::bridge::form(json!(1), "q"));
    world.pass(Duration::from_millis(10));
    assert_eq!(world.reply(host)["result"]["resultType"], "input_required");
    let _ = said;
    let (host, _) = world.call("alice", &forms(), &json!({}));
    let refused = world.reply(host);
    assert_eq!(
        (&refused["error"]["code"], &refused["error"]["data"]),
        (&json!(-32603), &json!({"retryAfterMs": 1000}))
    );
    let (host, _) = world.call("alice", &json!({}), &json!({}));
    let (link, promise, said) = world.begin("2025-11-25");
    assert_eq!(promise, json!({}));
    world.result(link, said[1].json()["id"].as_i64().unwrap(), text("done"));
    assert_eq!(world.reply(host)["result"]["content"][0]["text"], "done");
}

/// The error that a host got, of all that was said.
fn error_for(world: &mut World, host: HostId) -> (Value, Vec<Said>) {
    let (replies, others): (Vec<Said>, Vec<Said>) =
        world.take().into_iter().partition(|said| matches!(said, Said::Host { host: to, .. } if *to == host));
    assert_eq!(replies.len(), 1, "{replies:?} {others:?}");
    (replies[0].json()["error"].clone(), others)
}

fn too_large(error: &Value) -> bool {
    error["code"] == -32603 && error["data"] == json!({"kind": "too_large"})
}

/// R-185, B-13: a line that is over the bound fails the call that it answers, and no other; the process stays.
#[test]
fn a_line_that_is_too_long_fails_one_call_r185() {
    let mut world = World::single(Transport::Pipe, Era::Modern);
    let (first, _) = world.call("alice", &forms(), &json!({}));
    let said = world.take();
    let Said::Opened { link, .. } = said[0] else { panic!("{said:?}") };
    let one = said[1].json()["id"].as_i64().unwrap();
    let (second, _) = world.call("bob", &forms(), &json!({}));
    let two = world.sent().1["id"].as_i64().unwrap();
    world.overlong(link, &format!(r#"{{"jsonrpc":"2.0","id":{one},"result":{{"content":[{{"text":"xx"#));
    let (error, others) = error_for(&mut world, first);
    assert!(too_large(&error) && others.is_empty(), "{error} {others:?}");
    // One that is nobody's, a notification, a request of a server that may send none.
    for lost in [
        r#"{"id":999,"result":"#,
        r#"{"method":"notifications/message","params":{"#,
        r#"{"id":1,"method":"x","params":{"#,
    ] {
        world.overlong(link, lost);
        assert!(world.take().is_empty(), "{lost}");
    }
    world.result(link, two, json!({"resultType": "complete", "content": []}));
    assert_eq!(world.reply(second)["result"]["resultType"], "complete");
    // Its id cannot be seen, and there is one: it is that one's.
    let (third, _) = world.call("alice", &forms(), &json!({}));
    world.take();
    world.overlong(link, r#"{"jsonrpc":"2.0","result":{"content":[{"text":"xx"#);
    let (error, others) = error_for(&mut world, third);
    assert!(too_large(&error) && others.is_empty(), "{error} {others:?}");
    // There are two: nobody may wait for ever, and both are cancelled.
    let hosts = ["alice", "bob"].map(|who| world.call(who, &forms(), &json!({})).0);
    world.take();
    world.overlong(link, r#"{"jsonrpc":"2.0","result":{"content":[{"text":"xx"#);
    let said = world.take();
    let cancelled = said.iter().filter(|said| said.json()["method"] == "notifications/cancelled").count();
    let failed = said
        .iter()
        .filter(|said| matches!(said, Said::Host { .. }))
        .filter(|said| too_large(&said.json()["error"]));
    assert_eq!((cancelled, failed.count(), said.len()), (2, hosts.len(), 4), "{said:?}");
    rests(&world);
}

/// R-253: so at a legacy server, whose session goes on with the next call. A question that is too long is answered by an
/// error, so that whoever asked can go on.
#[test]
fn a_session_outlives_lines_that_are_too_long_r253() {
    let (mut world, host, link, call) = under_way_on_a_pipe();
    world.overlong(
        link,
        r#"{"jsonrpc":"2.0","id":"q","method":"sampling/createMessage","params":{"messages":[{"x"#,
    );
    let (to, answer) = world.sent();
    assert_eq!((to, &answer["id"], &answer["error"]["code"]), (link, &json!("q"), &json!(-32600)));
    world.overlong(link, &format!(r#"{{"id":{call},"jsonrpc":"2.0","result":{{"content":"#));
    let (error, others) = error_for(&mut world, host);
    assert!(too_large(&error) && others.is_empty(), "{error} {others:?}");
    let (host, _) = world.call("alice", &forms(), &json!({}));
    let (again, sent) = world.sent();
    assert_eq!((again, &sent["method"]), (link, &json!("tools/call")), "the same session");
    world.result(link, sent["id"].as_i64().unwrap(), text("fine"));
    assert_eq!(world.reply(host)["result"]["content"][0]["text"], "fine");
    rests(&world);
}

fn under_way_on_a_pipe() -> (World, HostId, LinkId, i64) {
    let mut world = World::single(Transport::Pipe, Era::Legacy);
    let (host, _) = world.call("alice", &forms(), &json!({}));
    let (link, _, said) = world.begin("2025-11-25");
    (world, host, link, said[1].json()["id"].as_i64().unwrap())
}

/// R-253, R-262: a call that has failed here and may still run at its legacy server is cancelled there, and its session
/// takes no other: what it still asks meets nobody else.
#[test]
fn what_a_failed_call_still_asks_meets_nobody_r253_r262() {
    type Fail = fn(&mut World, LinkId, i64);
    let ways: [(&str, Fail); 3] = [
        ("broken", |world, link, call| world.fail(link, call, CallFailure::Broken)),
        ("504", |world, link, call| world.fail(link, call, status(504, None))),
        ("timeout", |world, _, _| world.pass(Duration::from_secs(3_601))),
    ];
    for (name, fail) in ways {
        let (mut world, host, link, call) = under_way(Era::Modern, Era::Legacy);
        fail(&mut world, link, call);
        let (error, others) = error_for(&mut world, host);
        assert_eq!(error["code"], -32603, "{name}");
        let cancelled = |said: &&Said| {
            matches!(said, Said::Up { .. }) && said.json()["method"] == "notifications/cancelled"
        };
        assert_eq!(others.iter().filter(cancelled).count(), 1, "{name}: {others:?}");
        let (next, _) = world.call("bob", &forms(), &json!({}));
        let (other, _, said) = world.begin("2025-11-25");
        assert_ne!(other, link, "{name}");
        // The old call asks after all: it is refused, and bob hears nothing of it.
        world.up(link, &mrtr_tests::bridge::form(json!(5), "of alice"));
        let (to, refused) = world.sent();
        assert_eq!((to, &refused["error"]["code"]), (link, &json!(-32602)), "{name}");
        world.result(other, said[1].json()["id"].as_i64().unwrap(), text("bob's"));
        assert_eq!(world.reply(next)["result"]["content"][0]["text"], "bob's");
        // It has a moment to end, and is closed then.
        world.pass(Duration::from_secs(5));
        assert!(
            world.take().iter().any(|said| matches!(said, Said::Closed { link: closed } if *closed == link)),
            "{name}"
        );
        rests(&world);
    }
}

/// A response that is no JSON (`NaN`), or no UTF-8, fails its request at once, wherever its id stands; lines that are no
/// message fail nothing (B-81).
#[test]
fn a_response_that_cannot_be_read_fails_its_call_b81() {
    for broken in [
        br#"{"jsonrpc":"2.0","id":ID,"result":{"content":[],"x":NaN}}"#.as_slice(),
        br#"{"result":{"content":[{"type":"text","text":"}\""}],"x":Infinity},"jsonrpc":"2.0","id":ID}"#,
        b"{\"jsonrpc\":\"2.0\",\"id\":ID,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"\xff\xfe\"}]}}",
        b"{\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"\xc3\"}]},\"id\":ID,\"jsonrpc\":\"2.0\"}",
        br#"{"jsonrpc":"2.0","id":ID,"result":"#,
        br#"{"jsonrpc":"2.0","id":ID,"method":"ping","result":{"content":[]}}"#,
    ] {
        for era in [Era::Legacy, Era::Modern] {
            let mut world = World::single(Transport::Pipe, era);
            let (host, _) = world.call("alice", &json!({}), &json!({}));
            let (link, sent) = match era {
                Era::Legacy => {
                    let (link, _, said) = world.begin("2025-11-25");
                    (link, said.last().unwrap().json())
                }
                Era::Modern => {
                    let said = world.take();
                    let Some(Said::Up { link, .. }) = said.last() else { panic!("{said:?}") };
                    (*link, said.last().unwrap().json())
                }
            };
            for noise in ["Server started", "{ debug: true }", "{", "[1", "\"id\""] {
                world.up_raw(link, None, noise);
                assert!(world.take().is_empty(), "{noise}");
            }
            let id = sent["id"].to_string();
            let parts: Vec<&[u8]> = split(broken, b"ID");
            let line = parts.join(id.as_bytes());
            world.bridge.handle_upstream(link, None, &line, world.now);
            world.send_raw(HostId(9_999), "");
            assert_eq!(world.reply(host)["error"]["code"], -32603, "{}", String::from_utf8_lossy(&line));
            rests(&world);
        }
    }
}

/// R-006, B-81: a modern server that asks is not answered, however broken what it asks is.
#[test]
fn a_modern_server_is_not_answered_r006() {
    let mut world = World::single(Transport::Pipe, Era::Modern);
    let (host, _) = world.call("alice", &json!({}), &json!({}));
    let said = world.take();
    let Some(sent @ Said::Up { link, .. }) = said.last() else { panic!("{said:?}") };
    for asks in [
        r#"{"jsonrpc":"2.0","id":"s","method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":"s","method":"ping","params":[]}"#,
        r#"{"jsonrpc":"2.0","id":"s"}"#,
    ] {
        world.up_raw(*link, None, asks);
        assert!(world.take().is_empty(), "{asks}");
    }
    world.result(*link, sent.json()["id"].as_i64().unwrap(), text("done"));
    assert_eq!(world.reply(host)["result"]["content"], text("done")["content"]);
}

fn split<'a>(text: &'a [u8], mark: &[u8]) -> Vec<&'a [u8]> {
    let at = text.windows(mark.len()).position(|window| window == mark).expect("the mark");
    vec![&text[..at], &text[at + mark.len()..]]
}

/// What asks or tells on the stream of a call and is not valid fails nothing but itself (R-187, B-81).
#[test]
fn a_broken_notification_on_its_stream_does_not_fail_a_call_b81() {
    let mut world = World::single(Transport::Http, Era::Legacy);
    let (host, _) = world.call("alice", &forms(), &json!({}));
    let (link, _, said) = world.begin("2025-11-25");
    let id = said.last().unwrap().json()["id"].as_i64().unwrap();
    let deep = format!("{}1{}", "[".repeat(100), "]".repeat(100));
    for broken in [
        format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/message","params":{{"level":"info","data":{deep}}}}}"#
        ),
        String::from(
            r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":NaN}}"#,
        ),
    ] {
        world.up_raw(link, Some(id), &broken);
        assert!(world.take().is_empty(), "{broken}");
    }
    let question =
        format!(r#"{{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{{"x":{deep}}}}}"#);
    world.up_raw(link, Some(id), &question);
    let (_, answer) = world.sent();
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!("q"), &json!(-32600)));
    world.result(link, id, text("done"));
    assert_eq!(world.reply(host)["result"]["content"], text("done")["content"]);
}
