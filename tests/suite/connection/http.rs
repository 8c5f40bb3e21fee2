//! The era of a server over HTTP, and what goes wrong there (R-051, R-096, R-187, R-240).

use super::*;

const LEGACY_400: &str =
    r#"{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: no session"},"id":null}"#;

/// R-051: the first request is modern. A 400 whose body only a modern server sends means modern; any other leads to
/// `initialize`, and the call is made again, for it was not begun.
#[test]
fn r_051_the_body_of_a_400_is_read() {
    let modern = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32021,"message":"m","data":{"requiredCapabilities":{"roots":{}}}}}"#;
    for (body, expected) in
        [(modern, Era::Modern), ("", Era::Legacy), ("<html>", Era::Legacy), (LEGACY_400, Era::Legacy)]
    {
        let mut line = Line::http(ConnectionConfig::default());
        let call = line.call();
        let first = line.request();
        assert_eq!((first.call, first.headers), (Some(call), HeaderRules::Modern));
        line.respond(&first, 400, body);
        match expected {
            Era::Modern => {
                let mut events = line.events();
                assert!(matches!(events.remove(0), Event::Era(Era::Modern)));
                assert!(matches!(failure(events.remove(0)).1, Failure::Peer(_)));
            }
            Era::Legacy => {
                line.initialize();
                assert!(matches!(line.only(), Event::Era(Era::Legacy)));
                let sent = line.request();
                let version = mrtr_core::wire::Version::V2025_11_25;
                assert_eq!((sent.call, sent.headers), (Some(call), HeaderRules::Legacy(Some(version))));
                line.reply(&sent, json!({"content": []}));
                assert_eq!(done(line.only()).1.era, Some(Era::Legacy));
            }
        }
    }
}

/// R-051: calls that were under way together fall back together, over one session.
#[test]
fn r_051_calls_fall_back_together() {
    let mut line = Line::http(ConnectionConfig::default());
    let calls = [line.call(), line.call(), line.call()];
    let sent = line.requests();
    line.respond(&sent[1], 400, "");
    let opening = line.request();
    line.respond(&sent[0], 400, "");
    line.nothing();
    line.reply(&opening, json!({"protocolVersion": "2025-06-18", "capabilities": {}}));
    assert!(matches!(line.only(), Event::Era(Era::Legacy)));
    assert_eq!(
        line.requests().iter().map(|out| out.call).collect::<Vec<_>>(),
        [Some(calls[0]), Some(calls[1])]
    );
    line.respond(&sent[2], 400, "");
    assert_eq!(line.request().call, Some(calls[2]));
}

/// R-051, R-049: no session after all: the outcome is the 400 that the call met.
#[test]
fn the_first_400_is_the_outcome_if_there_is_no_session_either() {
    for (status, body) in [(400, ""), (404, ""), (405, "")] {
        let mut line = Line::http(ConnectionConfig::default());
        line.call();
        let first = line.request();
        line.respond(&first, 400, LEGACY_400);
        let opening = line.request();
        line.respond(&opening, status, body);
        let Failure::Http(error) = failure(line.only()).1 else { panic!("not HTTP") };
        assert_eq!((error.status, error.error.is_some()), (400, true));
    }
    // A modern error to `initialize`: the call was refused for another reason.
    let mut line = Line::http(ConnectionConfig::default());
    line.call();
    let first = line.request();
    line.respond(&first, 400, "");
    let opening = line.request();
    line.respond(&opening, 400, r#"{"jsonrpc":"2.0","error":{"code":-32020,"message":"m"}}"#);
    let mut events = line.events();
    assert!(matches!(events.remove(0), Event::Era(Era::Modern)));
    assert!(matches!(failure(events.remove(0)).1, Failure::Http(_)));
    // Once it is known to be modern, a 400 is a failure.
    line.call();
    let next = line.request();
    line.respond(&next, 400, "");
    assert!(matches!(failure(line.only()).1, Failure::Http(error) if error.status == 400));
}

/// Other statuses have nothing to do with the era.
#[test]
fn other_statuses_fail_their_call_alone() {
    for status in [302, 401, 403, 404, 405, 413, 429, 500, 503] {
        let mut line = Line::http(ConnectionConfig::default());
        let (first, second) = (line.call(), line.call());
        let sent = line.requests();
        line.respond(&sent[0], status, "");
        let (call, failed) = failure(line.only());
        assert!(call == first && matches!(failed, Failure::Http(error) if error.status == status));
        line.reply(&sent[1], complete());
        assert!(
            line.events()
                .into_iter()
                .any(|event| matches!(event, Event::Done { call, .. } if call == second))
        );
        assert!(line.sent().is_empty());
    }
}

/// R-096, G-29: a broken connection fails a call; one that may run twice is sent again, under a new id, so often.
#[test]
fn r_096_what_may_run_twice_is_sent_again() {
    let mut line = Line::http(ConnectionConfig::default());
    line.call();
    let first = line.request();
    line.connection.handle_lost(first.post, at(0));
    assert!(matches!(failure(line.only()).1, Failure::Lost));
    line.connection.handle_lost(first.post, at(0));
    line.nothing();

    let call = line.connection.call(tool().may_run_twice(), at(0)).unwrap();
    let mut sent = line.request();
    for _ in 0..3 {
        line.connection.handle_lost(sent.post, at(0));
        let again = line.request();
        assert_eq!(again.call, Some(call));
        assert_ne!(again.message["id"], sent.message["id"]);
        sent = again;
    }
    line.connection.handle_lost(sent.post, at(0));
    assert!(matches!(failure(line.only()).1, Failure::Lost));
}

/// R-187: over HTTP a request is cancelled by closing its stream, and only while it is under way (R-190).
#[test]
fn r_187_cancelling_closes_the_stream() {
    let mut line = Line::http(ConnectionConfig::default());
    let call = line.call();
    let first = line.request();
    line.connection.cancel(call, "enough", at(0));
    assert_eq!(line.sent(), [json!({"closed": 1})]);
    line.reply(&first, complete());
    line.connection.cancel(call, "", at(0));
    line.nothing();
    // R-192: so does a timeout.
    line.call();
    line.request();
    line.pass(Duration::from_secs(60));
    assert_eq!(line.sent(), [json!({"closed": 2})]);
    assert!(matches!(failure(line.only()).1, Failure::Timeout));
}

/// R-240: a session that the server has forgotten is opened anew, and the request that found out is sent again.
#[test]
fn r_240_a_forgotten_session_is_opened_anew() {
    let mut config = ConnectionConfig::default();
    config.era = Some(Era::Legacy);
    let mut line = Line::http(config);
    let (first, second) = (line.call(), line.call());
    line.initialize();
    line.events();
    let sent = line.requests();
    line.respond(&sent[0], 404, "");
    let (call, failed) = failure(line.only());
    assert!(call == second && matches!(failed, Failure::Closed));
    let opening = line.request();
    // R-229: ids are not used again, though it is another session.
    assert_eq!(
        (opening.message["method"].as_str(), opening.message["id"].as_i64()),
        (Some("initialize"), Some(4))
    );
    line.reply(&opening, json!({"protocolVersion": "2025-11-25", "capabilities": {}}));
    assert_eq!(line.request().call, Some(first));
    // The same said to an answer or a notification.
    line.events();
    line.connection.handle_session_gone(at(0));
    let (call, failed) = failure(line.only());
    assert!(call == first && matches!(failed, Failure::Closed));
    line.call();
    assert_eq!(line.request().message["method"], "initialize");
}

/// R-003: on a request's own stream an error without an id is about that request, and another id is a violation.
#[test]
fn r_003_streams_are_not_crossed() {
    let mut line = Line::http(ConnectionConfig::default());
    let (first, second) = (line.call(), line.call());
    let sent = line.requests();
    line.connection.handle_message(
        Via::Post(sent[0].post),
        br#"{"jsonrpc":"2.0","id":2,"result":{}}"#,
        at(0),
    );
    let (call, failed) = failure(line.only());
    assert!(call == first && matches!(failed, Failure::Violation(_)));
    line.connection.handle_message(
        Via::Post(sent[1].post),
        br#"{"jsonrpc":"2.0","error":{"code":-32602,"message":"m"}}"#,
        at(0),
    );
    let failed = line.events().into_iter().find(|event| matches!(event, Event::Done { .. })).map(failure);
    assert!(matches!(failed, Some((call, Failure::Peer(_))) if call == second));
}

/// B-81, R-178: what asks or tells on a request's own stream and is broken fails nothing but itself; the reply comes after
/// it. In a session, too.
#[test]
fn b_81_a_broken_notification_on_the_stream_of_a_call_fails_nothing() {
    let broken = [
        r#"{"jsonrpc":"2.0","method":"notifications/progress","params":[1]}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"a":1,"a":2}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"data":NaN}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"sampling/createMessage","params":7}"#,
    ];
    let mut line = Line::http(ConnectionConfig::default());
    let call = line.call();
    let sent = line.request();
    for message in broken {
        line.connection.handle_message(Via::Post(sent.post), message.as_bytes(), line.now);
        line.nothing();
    }
    line.reply(&sent, complete());
    let (done, outcome) = line.events().into_iter().find_map(finished).expect("an outcome");
    assert!(done == call && outcome.result.is_ok(), "{outcome:?}");

    let mut line = Line::http(ConnectionConfig::default());
    line.call();
    let first = line.request();
    line.respond(&first, 400, "");
    line.initialize();
    line.events();
    let sent = line.request();
    for message in broken {
        line.connection.handle_message(Via::Post(sent.post), message.as_bytes(), line.now);
        assert!(line.events().is_empty(), "{message}");
    }
    line.reply(&sent, json!({"content": []}));
    assert!(line.events().into_iter().find_map(finished).expect("an outcome").1.result.is_ok());
}

/// A body that was read whole is the reply or there is none: one that asks or tells ends its call at once (R-177).
#[test]
fn a_whole_body_that_is_no_reply_ends_its_call() {
    for body in [
        r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/progress","params":[]}"#,
    ] {
        let mut line = Line::http(ConnectionConfig::default());
        let call = line.call();
        let sent = line.request();
        line.respond(&sent, 200, body);
        let (failed, Failure::Http(error)) = failure(line.only()) else { panic!("{body}") };
        assert_eq!((failed, error.status), (call, 200));
    }
}

fn finished(event: Event) -> Option<(CallId, Outcome)> {
    match event {
        Event::Done { call, outcome } => Some((call, outcome)),
        _ => None,
    }
}
