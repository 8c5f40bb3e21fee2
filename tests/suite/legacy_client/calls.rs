//! Requests: ids, raw bytes, progress, cancellation, time, death.

use mrtr_core::{ErrorCode, legacy::client::RequestError};

use super::*;

/// R-229: ids are never used again; parameters and results cross as they are (line breaks between tokens excepted,
/// R-183), in any order.
#[test]
fn r_229_requests_and_results_cross_to_the_byte() {
    let mut script = Script::newest();
    let params =
        "{\"name\":\"t\",\n \"big\":123456789012345678901234567890,\"e\":1.0e0,\"\\u0061\":\"\\ud800\"}";
    let first = script.session.request("tools/call", Some(object(params)), at(0)).expect("open");
    let second = script.session.request("x/y", None, at(0)).expect("open");
    let sent = script.session.poll_transmit().expect("one");
    assert_eq!(sent.carries, Carries::Request(first));
    let expected =
        format!(r#"{{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{}}}"#, params.replace('\n', ""));
    assert_eq!(String::from_utf8(sent.bytes).expect("UTF-8"), expected);
    assert_eq!(script.sent(), [json!({"jsonrpc": "2.0", "id": 3, "method": "x/y"})]);

    let text = r#"{"content":[],"n":1.50,"x":{"b":1,"a":2},"_meta":{"k":"\u00e9"}}"#;
    for (call, id) in [(second, 3), (first, 2)] {
        let message = format!(r#"{{"id":{id},"result":{text},"jsonrpc":"2.0"}}"#);
        script.session.handle_message(Via::Pipe, message.as_bytes(), at(0));
        assert_eq!(result(script.only()), (call, text.to_owned()));
    }
    let third = script.call();
    assert_eq!(third.request_id().as_i64(), Some(4));
}

/// R-004, R-025: errors come as they are, `-32042` and `-32002` with their data too.
#[test]
fn r_025_errors_of_the_server_keep_code_and_data() {
    let mut script = Script::newest();
    for code in [-32042, -32002, -32602, 7] {
        let call = script.call();
        let id = call.request_id().as_i64().expect("a number");
        let message = format!(
            r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":{code},"message":"m","data":{{"b":1.0,"a":[]}}}}}}"#
        );
        script.session.handle_message(Via::Pipe, message.as_bytes(), at(0));
        let (failed, failure) = failed(script.only());
        let Failure::Peer(error) = failure else { panic!("{failure:?}") };
        assert_eq!(
            (failed, error.code, error.data().map(mrtr_core::jsonrpc::Json::as_str)),
            (call, ErrorCode::new(code), Some(r#"{"b":1.0,"a":[]}"#))
        );
    }
}

/// R-003, R-191, B-61, B-81: unknown ids, late replies and rubbish are ignored; a reply that is broken fails its own call.
#[test]
fn r_191_one_bad_message_costs_one_call() {
    let mut script = Script::newest();
    let (first, second) = (script.call(), script.call());
    for rubbish in [
        "",
        "null",
        "[]",
        "{",
        "\u{0}",
        "loading…",
        r#"{"jsonrpc":"2.0"}"#,
        r#"{"jsonrpc":"2.0","id":99,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":"2","result":{}}"#,
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"m"}}"#,
        r#"[{"jsonrpc":"2.0","id":2,"result":{}}]"#,
        r#"{"jsonrpc":"2.0","result":{}}"#,
    ] {
        script.session.handle_message(Via::Pipe, rubbish.as_bytes(), at(0));
        assert!(script.events().is_empty() && script.sent().is_empty(), "{rubbish}");
    }
    script.session.handle_message(Via::Pipe, br#"{"jsonrpc":"2.0","id":2,"result":{"a":1,"a":2}}"#, at(0));
    let (broken, failure) = failed(script.only());
    assert!(broken == first && matches!(failure, Failure::Unreadable(_)), "{failure:?}");
    // It is late now.
    script.reply(first, json!({}));
    assert!(script.events().is_empty());
    script.reply(second, json!({"ok": true}));
    assert_eq!(result(script.only()), (second, r#"{"ok":true}"#.to_owned()));
    script.reply(second, json!({}));
    assert!(script.events().is_empty());
}

/// An over-long line fails what it replied to, or, if nobody can tell, all that it may have.
#[test]
fn an_overlong_line_lets_nothing_wait() {
    let mut script = Script::newest();
    let calls = [script.call(), script.call(), script.call()];
    script.session.handle_overlong(
        Via::Pipe,
        br#"{"jsonrpc":"2.0","id":3,"result":{"content":[{"text":"aaaa"#,
        at(0),
    );
    let limit = Limits::default().message_bytes;
    assert_eq!(failed(script.only()), (calls[1], Failure::Overlong { limit }));
    // Replies to others, and ids that are cut.
    for beginning in [r#"{"jsonrpc":"2.0","id":77,"result":{"#, r#"{"jsonrpc":"2.0","id":77,"error":{"#] {
        script.session.handle_overlong(Via::Pipe, beginning.as_bytes(), at(0));
        assert!(script.events().is_empty());
    }
    script.session.handle_overlong(Via::Pipe, br#"{"jsonrpc":"2.0","id":2"#, at(0));
    let failures: Vec<_> = script.events().into_iter().map(failed).collect();
    assert_eq!(failures, [(calls[0], Failure::Overlong { limit }), (calls[2], Failure::Overlong { limit })]);
    assert!(!script.session.is_closed());

    // On a stream of its own it can only be that request's.
    let (first, second) = (script.call(), script.call());
    script.session.handle_overlong(Via::Call(second), b"", at(0));
    assert_eq!(failed(script.only()).0, second);
    script.session.handle_overlong(Via::Standalone, b"", at(0));
    assert!(script.events().is_empty());
    assert_eq!(script.session.calls().collect::<Vec<_>>(), [first]);
}

/// R-194, R-197: the token is the request's own id, beside what else `_meta` has; only progress of requests that want
/// it is theirs, and it keeps them alive (R-192).
#[test]
fn r_194_progress_finds_its_request() {
    let mut script = Script::newest();
    let params = r#"{"name":"t","_meta":{"progressToken":"mine","k":[1]},"z":0}"#;
    let wanted =
        script.session.request_with_progress("tools/call", Some(object(params)), at(0)).expect("open");
    let other = script.session.request("tools/call", None, at(0)).expect("open");
    let sent = script.session.poll_transmit().expect("one").bytes;
    assert!(
        String::from_utf8(sent)
            .expect("UTF-8")
            .ends_with(r#""params":{"name":"t","z":0,"_meta":{"k":[1],"progressToken":2}}}"#)
    );
    script.sent();
    let progress = |token: Value| json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": token, "progress": 1}});

    script.pass(Duration::from_secs(59));
    script.receive(&progress(json!(2)));
    let Event::Progress { call, params } = script.only() else { panic!() };
    let params: Value = serde_json::from_str(&params).expect("JSON");
    assert_eq!((call, params), (wanted, json!({"progressToken": 2, "progress": 1})));
    for token in [json!(3), json!("2"), json!(9)] {
        script.receive(&progress(token));
        assert!(matches!(script.only(), Event::Notification { .. }));
    }
    // The other one was silent for 60 s.
    script.pass(Duration::from_secs(1));
    assert_eq!(failed(script.only()), (other, Failure::Timeout));
    assert_eq!(
        script.sent(),
        [
            json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 3, "reason": "timed out"}})
        ]
    );
    // Progress does not keep it alive for ever.
    for _ in 0..11 {
        script.pass(Duration::from_secs(49));
        script.receive(&progress(json!(2)));
    }
    script.events();
    assert_eq!(script.session.poll_timeout(), Some(at(600_000)));
    script.pass(Duration::from_secs(1));
    assert_eq!(failed(script.only()), (wanted, Failure::Timeout));
}

/// R-188, R-190, R-239: a cancelled request is told to the server once; what still comes for it is ignored.
#[test]
fn r_190_only_what_is_under_way_is_cancelled() {
    let mut script = Script::newest();
    let call = script.call();
    script.session.cancel(call, "changed my mind", at(0));
    let cancelled = json!({"requestId": 2, "reason": "changed my mind"});
    assert_eq!(
        script.sent(),
        [json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancelled})]
    );
    script.session.cancel(call, "", at(0));
    script.reply(call, json!({}));
    assert!(script.sent().is_empty() && script.events().is_empty());
    // One that is not on the wire yet is not sent at all.
    let unsent = script.session.request("tools/call", None, at(0)).expect("open");
    script.session.cancel(unsent, "", at(0));
    assert!(script.sent().is_empty());
    // One that has its outcome is not cancelled.
    let done = script.call();
    script.reply(done, json!({}));
    script.events();
    script.session.cancel(done, "", at(0));
    assert!(script.sent().is_empty());
}

/// R-096, R-185: the peer's death fails what is under way, once, and a broken stream only its own request.
#[test]
fn r_185_death_fails_what_is_under_way() {
    let mut script = Script::newest();
    let (first, second) = (script.call(), script.call());
    script.session.lost(second, at(0));
    assert_eq!(failed(script.only()), (second, Failure::Lost));
    script.session.lost(second, at(0));
    assert!(script.events().is_empty());
    script.session.handle_closed();
    let mut events = script.events();
    assert_eq!(events.len(), 2);
    assert_eq!(closed(events.remove(1)), Closed::ByPeer);
    assert_eq!(failed(events.remove(0)), (first, Failure::Closed));
    script.session.handle_closed();
    script.receive(&json!({"jsonrpc": "2.0", "id": 2, "result": {}}));
    assert!(script.events().is_empty() && script.session.poll_timeout().is_none());
    assert_eq!(script.session.request("ping", None, at(0)), Err(RequestError::Closed));
}

/// R-003, R-231: over HTTP a request's stream brings its own reply or none.
#[test]
fn r_231_streams_are_not_crossed() {
    let mut script = Script::newest();
    let (first, second) = (script.call(), script.call());
    script.receive_via(Via::Call(first), &json!({"jsonrpc": "2.0", "id": 3, "result": {}}));
    assert!(script.events().is_empty());
    script
        .receive_via(Via::Call(first), &json!({"jsonrpc": "2.0", "error": {"code": -32600, "message": "m"}}));
    assert_eq!(failed(script.only()).0, first);
    script.session.handle_message(Via::Call(second), b"<html>", at(0));
    let (broken, failure) = failed(script.only());
    assert!(broken == second && matches!(failure, Failure::Unreadable(_)));
}
