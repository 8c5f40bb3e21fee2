//! Calls of legacy servers: the same events, the same policy.

use mrtr_core::{RpcError, client::Progress, legacy::client::AskGone, wire::Action};

use super::*;

fn ask_as(id: i64, message: &str) -> Value {
    let ask = ask(message);
    json!({"jsonrpc": "2.0", "id": id, "method": ask["method"], "params": ask["params"]})
}

fn legacy() -> Line {
    Line::legacy(ConnectionConfig::default())
}

/// R-230, W-02: a call with questions ends in the same kind of outcome as a modern one.
#[test]
fn r_230_a_legacy_call_has_the_same_outcome() {
    let mut line = legacy();
    let call = line.connection.call(tool().progress(Progress::RequestId), at(0)).unwrap();
    let sent = line.request();
    assert_eq!(sent.message["params"], json!({"name": "t", "arguments": {}, "_meta": {"progressToken": 4}}));
    line.receive(&json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": 4, "progress": 1}}));
    assert!(matches!(line.only(), Event::Progress { call: of, .. } if of == call));
    line.receive(&ask_as(0, "sure?"));
    let Event::Ask { ask, call: of, request, before } = line.only() else { panic!() };
    assert_eq!((of, before, request.message().as_deref()), (Some(call), None, Some("sure?")));
    line.connection.answer(ask, object(r#"{"action":"accept","content":{}}"#), at(0)).unwrap();
    assert_eq!(
        line.sent(),
        [json!({"jsonrpc": "2.0", "id": 0, "result": {"action": "accept", "content": {}}})]
    );
    assert_eq!(line.connection.answer(ask, object("{}"), at(0)), Err(AskGone));
    let text = r#"{"jsonrpc":"2.0","id":4,"result":{"content":[],"ttlMs":60000,"n":1.50}}"#;
    line.connection.handle_message(Via::Pipe, text.as_bytes(), at(0));
    let (of, outcome) = done(line.only());
    assert_eq!((of, outcome.era, outcome.rounds), (call, Some(Era::Legacy), 2));
    assert_eq!(outcome.json().map(Json::as_str), Some(r#"{"content":[],"ttlMs":60000,"n":1.50}"#));
    // A legacy server gives no hints, whatever it sends (R-244).
    assert!(!outcome.may_be_kept());
}

/// Design: the same question after a decline stops the call, in this era too; after a dismissal it may come once more.
#[test]
fn what_was_declined_is_not_asked_again() {
    for (action, allowed) in [(Action::Decline, 1), (Action::Cancel, 2), (Action::Accept, 20)] {
        let mut line = legacy();
        let call = line.call();
        line.sent();
        let mut shown = 0;
        for id in 0..20 {
            line.receive(&ask_as(id, "again?"));
            match line.only() {
                Event::Ask { ask, before, .. } => {
                    assert_eq!(before, (shown > 0).then_some(action));
                    shown += 1;
                    let answer = json!({"action": action.name(), "content": {}}).to_string();
                    line.connection.answer(ask, object(&answer), at(0)).unwrap();
                }
                event => {
                    let (of, failed) = failure(event);
                    assert!(of == call && matches!(failed, Failure::Stopped(_)), "{failed:?}");
                    // The server is told, and its question gets an error, no answer.
                    let sent = line.sent();
                    let told = |wanted: &dyn Fn(&Value) -> bool| sent.iter().any(wanted);
                    assert!(told(&|message| message["method"] == "notifications/cancelled"));
                    assert!(told(&|message| message["error"]["code"] == -32602));
                    break;
                }
            }
        }
        assert_eq!(shown, allowed);
    }
}

/// Questions of one call are bounded: 0, 1, n and n + 1.
#[test]
fn questions_of_a_call_are_bounded() {
    for limit in [0, 1, 4] {
        let mut config = ConnectionConfig::default();
        config.asks_per_call = limit;
        let mut line = Line::legacy(config);
        let call = line.call();
        line.sent();
        for id in 0..limit {
            line.receive(&ask_as(i64::from(id), &format!("{id}?")));
            let Event::Ask { ask, .. } = line.only() else { panic!() };
            line.connection.answer(ask, object(r#"{"action":"accept","content":{}}"#), at(0)).unwrap();
        }
        line.receive(&ask_as(99, "one more?"));
        assert!(
            matches!(failure(line.only()), (of, Failure::TooManyAsks { limit: at }) if of == call && at == limit)
        );
    }
}

/// R-239: an answer that the server does not accept ends its call, whose name goes with it, and no other; once.
#[test]
fn r_239_an_answer_that_is_not_accepted_ends_its_call() {
    let mut line = legacy();
    let (call, other) = (line.call(), line.call());
    line.sent();
    line.receive(&ask_as(1, "sure?"));
    let Event::Ask { ask, .. } = line.only() else { panic!() };
    line.connection.answer(ask, object(r#"{"action":"decline"}"#), at(0)).unwrap();
    let Some(Transmit::Message { call: named, .. }) = line.connection.poll_transmit() else { panic!() };
    // On a pipe nobody can tell which of two calls has asked.
    assert_eq!(named, None);
    line.receive(&json!({"jsonrpc": "2.0", "id": 5, "result": {"content": []}}));
    assert_eq!(done(line.only()).0, other);

    line.receive(&ask_as(2, "really?"));
    let Event::Ask { ask, .. } = line.only() else { panic!() };
    line.receive(&ask_as(3, "and this?"));
    let Event::Ask { ask: open, .. } = line.only() else { panic!() };
    line.connection.answer(ask, object(r#"{"action":"decline"}"#), at(0)).unwrap();
    let Some(Transmit::Message { call: named, .. }) = line.connection.poll_transmit() else { panic!() };
    assert_eq!(named, Some(call));
    line.connection.handle_unaccepted(other, at(0));
    assert!(line.events().is_empty() && line.sent().is_empty());
    for _ in 0..2 {
        line.connection.handle_unaccepted(call, at(0));
    }
    let events = line.events();
    let ended = |event: &Event| matches!(event, Event::Done { call: of, outcome } if *of == call && matches!(outcome.result, Err(Failure::Unaccepted)));
    assert_eq!(events.iter().filter(|event| ended(event)).count(), 1, "{events:?}");
    assert!(events.iter().any(|event| matches!(event, Event::AskWithdrawn { ask } if *ask == open)));
    assert!(line.sent().iter().any(|message| message["method"] == "notifications/cancelled"));
}

/// R-185, R-239: cancellation, death and restart, as in the modern era.
#[test]
fn r_239_legacy_calls_end_too() {
    let mut line = legacy();
    let call = line.call();
    line.sent();
    line.receive(&ask_as(1, "a?"));
    let Event::Ask { ask, .. } = line.only() else { panic!() };
    line.connection.cancel(call, "enough", at(0));
    let sent = line.sent();
    assert!(sent.iter().any(|message| message["params"] == json!({"requestId": 4, "reason": "enough"})));
    assert!(matches!(line.only(), Event::AskWithdrawn { ask: of } if of == ask));
    let late = RpcError::internal("late");
    assert_eq!(line.connection.refuse(ask, &late, at(0)), Err(AskGone));

    let flying = line.call();
    let twice = line.connection.call(tool().may_run_twice(), at(0)).unwrap();
    line.sent();
    line.receive(&ask_as(2, "whose?"));
    assert!(matches!(line.only(), Event::Ask { call: None, .. }));
    line.connection.handle_restarted(at(0));
    let mut events = line.events();
    assert!(matches!(failure(events.remove(0)), (of, Failure::Closed) if of == flying));
    assert!(events.iter().any(|event| matches!(event, Event::AskWithdrawn { .. })));
    assert_eq!(line.request().message["method"], "server/discover");
    assert_eq!(line.connection.calls().collect::<Vec<_>>(), [twice]);
    line.connection.handle_closed(at(0));
    assert!(matches!(failure(line.only()), (of, Failure::Closed) if of == twice));
}

/// R-231: roots may be asked right after the handshake, other things not.
#[test]
fn r_231_roots_may_be_asked_at_once() {
    let mut line = legacy();
    line.receive(&json!({"jsonrpc": "2.0", "id": 1, "method": "roots/list"}));
    let Event::Ask { ask, call: None, .. } = line.only() else { panic!() };
    let refused = RpcError::internal("no");
    line.connection.refuse(ask, &refused, at(0)).unwrap();
    assert_eq!(line.sent()[0]["error"]["code"], -32603);
    line.receive(&ask_as(2, "a?"));
    assert!(line.events().is_empty());
    assert_eq!(line.sent()[0]["error"]["code"], -32602);
}

/// R-191: a broken or over-long line fails one call.
#[test]
fn r_191_one_bad_message_fails_one_call() {
    let mut line = legacy();
    let (first, second) = (line.call(), line.call());
    line.sent();
    line.connection.handle_message(Via::Pipe, br#"{"jsonrpc":"2.0","id":4,"result":{"a":1,"a":1}}"#, at(0));
    assert!(matches!(failure(line.only()), (of, Failure::Violation(_)) if of == first));
    line.connection.handle_overlong(Via::Pipe, b"{\"jsonrpc\":\"2.0\",", at(0));
    assert!(matches!(failure(line.only()), (of, Failure::Overlong { .. }) if of == second));
    line.connection.handle_message(Via::Pipe, b"rubbish", at(0));
    line.nothing();
}
