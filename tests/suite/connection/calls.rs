//! Calls to a modern server: rounds, faults, ends.

use mrtr_core::client::{Progress, connection::CallError};

use super::*;

/// R-091, R-092, B-59, B-61: calls side by side keep their answers and states apart; each leg has another id.
#[test]
fn r_092_calls_are_not_crossed() {
    let mut line = Line::modern();
    let calls = [line.call(), line.call()];
    let sent = line.requests();
    line.reply(&sent[1], interim(&[("k", ask("b?"))], "state b"));
    line.reply(&sent[0], interim(&[("k", ask("a?"))], "state a"));
    let mut asked: Vec<_> = line
        .events()
        .into_iter()
        .map(|event| match event {
            Event::InputRequired { call, exchange } => (call, exchange),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!([asked[1].0, asked[0].0], calls);
    // Nothing is here while somebody thinks.
    assert_eq!((line.connection.calls().len(), line.connection.poll_timeout()), (0, None));
    for (call, mut exchange) in asked.drain(..) {
        accept_all(&mut exchange);
        line.connection.proceed(call, exchange, at(0)).unwrap();
    }
    let retries = line.requests();
    let states: Vec<_> = retries.iter().map(|out| out.message["params"]["requestState"].clone()).collect();
    assert_eq!(states, [json!("state b"), json!("state a")]);
    line.reply(&retries[0], complete());
    let (call, outcome) = done(line.only());
    assert_eq!(
        (call, outcome.rounds, outcome.era, outcome.may_be_kept()),
        (calls[1], 2, Some(Era::Modern), false)
    );
    let ids: Vec<_> = sent.iter().chain(&retries).map(|out| out.message["id"].as_i64()).collect();
    assert_eq!(ids, [Some(3), Some(4), Some(5), Some(6)]);
}

/// An exchange that is not ready comes back.
#[test]
fn what_is_not_answered_does_not_go_out() {
    let mut line = Line::modern();
    line.call();
    let sent = line.request();
    line.reply(&sent, interim(&[("a", ask("a?"))], "s"));
    let (call, exchange) = line.asked();
    let mut unready = line.connection.proceed(call, exchange, at(0)).unwrap_err();
    line.nothing();
    accept_all(&mut unready.given_back);
    line.connection.proceed(call, unready.given_back, at(0)).unwrap();
    assert_eq!(line.request().call, Some(call));
}

/// R-088, B-57, G-06, trap 13: a state-only round goes on by itself after its pause; a cancel ends it at once.
#[test]
fn r_088_state_only_rounds_go_on_by_themselves() {
    let mut line = Line::modern();
    let call = line.call();
    let mut sent = line.request();
    for round in 0..3 {
        line.reply(&sent, json!({"resultType": "input_required", "requestState": format!("s{round}")}));
        let Event::Deferred { call: of, until } = line.only() else { panic!() };
        assert_eq!((of, line.connection.poll_timeout()), (call, Some(until)));
        assert!(until > line.now && line.sent().is_empty());
        let pause = until.saturating_since(line.now);
        line.pass(pause - Duration::from_millis(1));
        assert!(line.sent().is_empty());
        line.pass(Duration::from_millis(1));
        sent = line.request();
        assert_eq!(sent.message["params"]["requestState"], format!("s{round}"));
        assert_eq!(sent.message["params"].get("inputResponses"), None);
    }
    line.reply(&sent, json!({"resultType": "input_required", "requestState": ""}));
    line.events();
    line.connection.cancel(call, "", line.now);
    line.pass(Duration::from_secs(1));
    line.nothing();
}

/// R-191, B-81: rubbish, late and unknown replies, requests of the server are ignored; a broken reply fails its call.
#[test]
fn r_191_one_bad_message_fails_one_call() {
    let mut line = Line::modern();
    let (first, second) = (line.call(), line.call());
    let sent = line.requests();
    for rubbish in [
        "",
        "Listening on stdio…",
        "{",
        "null",
        "[]",
        r#"{"jsonrpc":"2.0","id":99,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":"3","result":{}}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
        r#"{"jsonrpc":"2.0","error":{"code":1,"message":"m"}}"#,
        r#"{"jsonrpc":"2.0","id":7,"method":"elicitation/create","params":{}}"#,
        r#"[{"jsonrpc":"2.0","id":3,"result":{}}]"#,
    ] {
        line.connection.handle_message(Via::Pipe, rubbish.as_bytes(), at(0));
        line.nothing();
    }
    let id = sent[0].message["id"].as_i64().unwrap();
    for broken in [r#""result":{"a":1,"a":2}"#, r#""result":{},"error":{"code":1,"message":"m"}"#] {
        let text = format!(r#"{{"jsonrpc":"2.0","id":{id},{broken}}}"#);
        line.connection.handle_message(Via::Pipe, text.as_bytes(), at(0));
    }
    let (call, failed) = failure(line.only());
    assert!(call == first && matches!(failed, Failure::Violation(_)), "{failed:?}");
    line.reply(&sent[0], complete());
    line.nothing();
    line.reply(&sent[1], json!({"resultType": "streaming"}));
    let (call, failed) = failure(line.only());
    assert!(call == second && matches!(failed, Failure::Violation(_)));
}

/// An over-long line fails what it replied to, or all that it may have: nothing waits for it.
#[test]
fn an_overlong_line_lets_nothing_wait() {
    let mut line = Line::modern();
    let calls = [line.call(), line.call(), line.call()];
    line.requests();
    line.connection.handle_overlong(Via::Pipe, br#"{"jsonrpc":"2.0","id":4,"result":{"x":"aaaaa"#, at(0));
    assert!(
        matches!(failure(line.only()), (call, Failure::Overlong { limit: 4_194_304 }) if call == calls[1])
    );
    // What is no reply harms nobody.
    for other in [r#"{"jsonrpc":"2.0","method":"notifications/message","params""#, "rubbish"] {
        line.connection.handle_overlong(Via::Pipe, other.as_bytes(), at(0));
        assert!(line.events().is_empty());
    }
    line.connection.handle_overlong(Via::Pipe, br#"{"jsonrpc":"2.0","result":{"x":"aaaaa"#, at(0));
    let failed: Vec<_> = line.events().into_iter().map(|event| failure(event).0).collect();
    assert_eq!(failed, [calls[0], calls[2]]);
    // While the server is probed, it is the probe's reply.
    let mut line = Line::pipe(ConnectionConfig::default());
    line.call();
    line.request();
    line.connection.handle_overlong(Via::Pipe, b"", at(0));
    assert_eq!(line.request().message["method"], "initialize");
}

/// R-045: a version that both know is tried once more under a new id, also when it is the one that was refused.
#[test]
fn r_045_an_unsupported_version_is_retried_with_a_mutual_one() {
    let mut line = Line::modern();
    let call = line.call();
    let first = line.request();
    line.error(&first, unsupported(&["2026-07-28"]));
    let second = line.request();
    assert_eq!(second.call, Some(call));
    assert_ne!(second.message["id"], first.message["id"]);
    line.error(&second, unsupported(&["2026-07-28"]));
    assert!(matches!(failure(line.only()), (of, Failure::Peer(_)) if of == call));
    line.call();
    let sent = line.request();
    line.error(&sent, unsupported(&["2027-01-01"]));
    assert!(matches!(failure(line.only()).1, Failure::Peer(_)));
}

/// R-194, R-197, R-192: progress finds its call and keeps it alive; other notifications are passed on to the byte.
#[test]
fn r_197_progress_finds_its_call() {
    let mut line = Line::modern();
    let call = line.connection.call(tool().progress(Progress::RequestId), at(0)).unwrap();
    let silent = line.call();
    line.requests();
    let progress = |token: Value| json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": token, "progress": 1}});
    line.pass(Duration::from_secs(59));
    line.receive(&progress(json!(3)));
    assert!(matches!(line.only(), Event::Progress { call: of, .. } if of == call));
    line.receive(&progress(json!(4)));
    assert!(matches!(line.only(), Event::Notification { call: None, .. }));
    line.pass(Duration::from_secs(1));
    assert_eq!(
        line.sent(),
        [
            json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 4, "reason": "timed out"}})
        ]
    );
    assert!(matches!(failure(line.only()), (of, Failure::Timeout) if of == silent));
    let text = r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1.0}}"#;
    line.connection.handle_message(Via::Pipe, text.as_bytes(), line.now);
    let Event::Notification { method, params, .. } = line.only() else { panic!() };
    assert_eq!(
        (&*method, params.as_deref()),
        ("notifications/message", Some(r#"{"level":"info","data":1.0}"#))
    );
}

/// R-188, R-190: on a pipe a message cancels, while the request is under way and only then.
#[test]
fn r_190_only_what_is_under_way_is_cancelled() {
    let mut line = Line::modern();
    let call = line.call();
    line.connection.cancel(call, "never sent", at(0));
    line.nothing();
    let call = line.call();
    let sent = line.request();
    line.connection.cancel(call, "", at(0));
    assert_eq!(
        line.sent(),
        [json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 4}})]
    );
    // G-30: what comes late starts no questions.
    line.reply(&sent, interim(&[("k", ask("k?"))], "s"));
    line.nothing();
    // G-31: between rounds there is nothing to cancel.
    let call = line.call();
    let sent = line.request();
    line.reply(&sent, interim(&[("k", ask("k?"))], "s"));
    let (_, exchange) = line.asked();
    line.connection.cancel(call, "enough", at(0));
    exchange.abandon();
    line.nothing();
}

/// R-185: the server's death fails what is on the wire and nothing else; the exchange that waits goes on with the
/// next process.
#[test]
fn r_185_death_fails_what_is_on_the_wire() {
    let mut line = Line::modern();
    let thinking = line.call();
    let sent = line.request();
    line.reply(&sent, interim(&[("k", ask("k?"))], "kept"));
    let (_, mut exchange) = line.asked();
    let flying = line.call();
    let twice = line.connection.call(tool().may_run_twice(), at(0)).unwrap();
    let before: Vec<_> = line.requests().iter().map(|out| out.message["id"].clone()).collect();
    line.connection.handle_restarted(at(0));
    assert!(matches!(failure(line.only()), (call, Failure::Closed) if call == flying));
    // The other process is asked what it is; then what may run twice goes out.
    let probe = line.request();
    assert_eq!(probe.message["method"], "server/discover");
    assert!(!before.contains(&probe.message["id"]));
    line.reply(&probe, json!({"supportedVersions": ["2026-07-28"]}));
    assert_eq!(line.request().call, Some(twice));
    assert!(matches!(line.only(), Event::Era(Era::Modern)));
    accept_all(&mut exchange);
    line.connection.proceed(thinking, exchange, at(0)).unwrap();
    assert_eq!(line.request().message["params"]["requestState"], "kept");

    line.connection.handle_closed(at(0));
    let failed: Vec<_> = line.events().into_iter().map(failure).collect();
    assert!(failed.len() == 2 && failed.iter().all(|(_, failed)| matches!(failed, Failure::Closed)));
    assert_eq!(line.connection.call(tool(), at(0)), Err(CallError::Closed));
    assert_eq!(line.connection.poll_timeout(), None);
    line.connection.handle_restarted(at(0));
    line.call();
    assert_eq!(line.request().message["method"], "server/discover");
}

/// G-11: a refused state is its own failure, and the call can begin again from the original parameters.
#[test]
fn g_11_a_refused_state_can_be_restarted() {
    let mut line = Line::modern();
    line.call();
    let sent = line.request();
    line.reply(&sent, interim(&[("k", ask("k?"))], "old"));
    let (call, mut exchange) = line.asked();
    accept_all(&mut exchange);
    line.connection.proceed(call, exchange, at(0)).unwrap();
    let retry = line.request();
    line.error(&retry, json!({"code": -32602, "message": "Invalid or expired requestState"}));
    let Failure::StateRefused(refused) = failure(line.only()).1 else { panic!() };
    let again = line.connection.restart(refused, at(0)).unwrap();
    let sent = line.request();
    assert_eq!(sent.call, Some(again));
    assert_eq!(sent.message["params"].get("requestState"), None);
    assert_eq!(sent.message["params"]["name"], "t");
}

/// R-185, W-01: an exchange that was saved goes on with another connection, to a server that may have to be found out
/// about first; if that is a legacy one, it cannot.
#[test]
fn a_saved_exchange_goes_on_elsewhere() {
    for (reply, modern) in [(json!({"supportedVersions": ["2026-07-28"]}), true), (json!({}), false)] {
        let mut line = Line::modern();
        line.call();
        let sent = line.request();
        line.reply(&sent, interim(&[("k", ask("k?"))], "s"));
        let (_, mut exchange) = line.asked();
        let mut saved = Vec::new();
        exchange.save("here", &mut saved);
        drop(exchange);
        let mut line = Line::pipe(ConnectionConfig::default());
        exchange = line.connection.client().resume(&saved, "here").unwrap();
        // Its questions come first.
        line.connection.resume(exchange, at(0)).unwrap();
        let (_, mut exchange) = line.asked();
        assert!(line.sent().is_empty());
        accept_all(&mut exchange);
        let call = line.connection.resume(exchange, at(0)).unwrap();
        let probe = line.request();
        line.reply(&probe, reply);
        if modern {
            let retry = line.request();
            assert_eq!((retry.call, &retry.message["params"]["requestState"]), (Some(call), &json!("s")));
        } else {
            line.initialize();
            let failed = line.events().into_iter().find(|event| matches!(event, Event::Done { .. })).unwrap();
            assert!(matches!(failure(failed).1, Failure::OtherEra));
        }
    }
}

/// R-092, R-229: an exchange with a modern server does not go to a legacy one that took its place, whether it waited for
/// answers or for its pause, and no id comes again.
#[test]
fn an_exchange_does_not_go_to_another_era() {
    let mut line = Line::modern();
    let (thinking, pausing) = (line.call(), line.call());
    let sent = line.requests();
    line.reply(&sent[0], interim(&[("k", ask("k?"))], "s"));
    let (_, mut exchange) = line.asked();
    line.reply(&sent[1], json!({"resultType": "input_required", "requestState": "s"}));
    let Event::Deferred { until, .. } = line.only() else { panic!() };
    line.connection.handle_restarted(at(0));
    let probe = line.request();
    line.error(&probe, json!({"code": -32601, "message": "m"}));
    accept_all(&mut exchange);
    line.connection.proceed(thinking, exchange, at(0)).unwrap();
    assert_eq!(line.connection.calls().len(), 2);
    line.initialize();
    let mut events = line.events();
    assert!(matches!(events.remove(0), Event::Era(Era::Legacy)));
    assert!(matches!(failure(events.remove(0)), (call, Failure::OtherEra) if call == thinking));
    assert_eq!(line.sent(), [json!({"jsonrpc": "2.0", "method": "notifications/initialized"})]);
    line.pass(until.saturating_since(at(0)));
    assert!(matches!(failure(line.only()), (call, Failure::OtherEra) if call == pausing));
    assert!(line.sent().is_empty());
    // After the end, at once.
    let mut line = Line::modern();
    line.call();
    let sent = line.request();
    line.reply(&sent, interim(&[("k", ask("k?"))], "s"));
    let (call, mut exchange) = line.asked();
    line.connection.handle_closed(at(0));
    accept_all(&mut exchange);
    line.connection.proceed(call, exchange, at(0)).unwrap();
    assert!(matches!(failure(line.only()), (of, Failure::Closed) if of == call));
}

/// R-202, R-203, B-67, trap 17: nothing is served from memory; what may be kept is what depends on nobody's answer.
#[test]
fn r_203_nothing_is_served_from_memory() {
    let mut line = Line::modern();
    for _ in 0..2 {
        let call = Call::new("resources/read", r#"{"uri":"r:x"}"#);
        line.connection.call(call, at(0)).unwrap();
        let sent = line.request();
        line.reply(
            &sent,
            json!({"resultType": "complete", "contents": [], "ttlMs": 60_000, "cacheScope": "public"}),
        );
        let (_, outcome) = done(line.only());
        assert!(outcome.may_be_kept() && outcome.json().is_some_and(|result| result.get("ttlMs").is_some()));
    }
    line.call();
    let sent = line.request();
    line.error(&sent, json!({"code": 1, "message": "m"}));
    assert!(!done(line.only()).1.may_be_kept());
}

/// R-048, R-016: a result of an extension that was not declared is refused; one that was ends the call.
#[test]
fn r_048_extensions_are_as_declared() {
    for declared in [false, true] {
        let mut client = client();
        if declared {
            client = client.capability_members(r#"{"extensions":{"x":{}}}"#).unwrap().result_type("task");
        }
        let mut config = ConnectionConfig::default();
        config.era = Some(Era::Modern);
        let mut line = Line { connection: Connection::on_pipe(client, config), now: at(0) };
        line.call();
        let sent = line.request();
        line.reply(&sent, json!({"resultType": "task", "taskId": "1"}));
        let outcome =
            line.events().into_iter().find(|event| matches!(event, Event::Done { .. })).map(done).unwrap().1;
        assert_eq!(outcome.result.is_ok(), declared);
    }
}

/// R-025: an error of the legacy eras is understood as what it says, also from a modern server.
#[test]
fn r_025_minus_32002_is_still_an_error_of_the_server() {
    let mut line = Line::modern();
    line.call();
    let sent = line.request();
    line.error(&sent, json!({"code": -32002, "message": "Resource not found", "data": {"uri": "r:x"}}));
    let Failure::Peer(error) = failure(line.only()).1 else { panic!() };
    assert_eq!(
        (error.code, error.data().map(mrtr_core::jsonrpc::Json::as_str)),
        (mrtr_core::ErrorCode::LEGACY_RESOURCE_NOT_FOUND, Some(r#"{"uri":"r:x"}"#))
    );
}
