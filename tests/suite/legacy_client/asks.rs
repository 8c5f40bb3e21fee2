//! Requests of the server: asks, pings, and what is neither.

use mrtr_core::{
    ErrorCode, RpcError,
    legacy::client::{AskGone, Unsolicited, Withdrawn},
    wire::AskKind,
};

use super::*;

fn elicitation(id: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "elicitation/create",
        "params": {"message": "ok?", "requestedSchema": {"type": "object", "properties": {}}}})
}

/// R-230: an answer goes out as it is under the server's id, of whatever kind, once.
#[test]
fn r_230_asks_are_answered_under_their_ids() {
    let mut script = Script::newest();
    let call = script.call();
    for id in [json!(0), json!("a"), json!(-7)] {
        script.receive(&elicitation(id.clone()));
        let asked = script.asked();
        assert_eq!((asked.call, asked.request.kind()), (Some(call), AskKind::Form));
        script
            .session
            .answer(asked.id, object("{\"action\":\"decline\",\n\"x\":1.0}"), at(0))
            .expect("it waits");
        let sent = script.session.poll_transmit().expect("one");
        assert_eq!(sent.carries, Carries::Reply(Some(call)));
        assert_eq!(
            String::from_utf8(sent.bytes).expect("UTF-8"),
            format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"action":"decline","x":1.0}}}}"#)
        );
        assert_eq!(script.session.answer(asked.id, object("{}"), at(0)), Err(AskGone));
        let late = RpcError::internal("late");
        assert_eq!(script.session.refuse(asked.id, &late, at(0)), Err(AskGone));
    }
    // R-237: nobody's refusal to sample is an error, and no answer.
    let params = json!({"messages": [], "maxTokens": 1});
    script.receive(&json!({"jsonrpc": "2.0", "id": 1, "method": "sampling/createMessage", "params": params}));
    let asked = script.asked();
    let refused = RpcError::new(ErrorCode::LEGACY_REJECTED, "User rejected sampling request");
    script.session.refuse(asked.id, &refused, at(0)).expect("it waits");
    assert_eq!(script.sent()[0]["error"]["code"], -1);
}

/// R-231, SEP-2260: an ask that no request under way may have caused is refused; which ones may is told by method.
#[test]
fn r_231_nothing_is_asked_out_of_the_blue() {
    let mut script = Script::newest();
    script.ask_roots(1);
    let Event::AskRefused { call: None, error, .. } = script.only() else { panic!() };
    assert_eq!(
        (error.code, script.sent()[0]["error"]["code"].clone()),
        (ErrorCode::INVALID_PARAMS, json!(-32602))
    );
    for method in ["tools/list", "ping", "completion/complete"] {
        script.session.request(method, None, at(0)).expect("open");
    }
    script.sent();
    script.ask_roots(2);
    assert!(matches!(script.only(), Event::AskRefused { .. }));
    script.sent();
    // One that may ask; then two, of which nobody can tell (R-253).
    let first = script.call();
    script.ask_roots(3);
    assert_eq!(script.asked().call, Some(first));
    let second = script.call();
    script.ask_roots(4);
    assert_eq!(script.asked().call, None);
    // Over HTTP the stream tells.
    script.receive_via(Via::Call(second), &json!({"jsonrpc": "2.0", "id": 5, "method": "roots/list"}));
    assert_eq!(script.asked().call, Some(second));
}

/// The option: many servers ask for roots right after the handshake.
#[test]
fn unsolicited_asks_can_be_let_in() {
    for (unsolicited, roots, form) in [
        (Unsolicited::Refuse, false, false),
        (Unsolicited::RootsOnly, true, false),
        (Unsolicited::Allow, true, true),
    ] {
        let mut config = config();
        config.unsolicited = unsolicited;
        let mut script = Script::open(config, NEWEST);
        script.ask_roots(1);
        assert_eq!(matches!(script.only(), Event::Ask(_)), roots);
        script.receive(&elicitation(json!(2)));
        assert_eq!(matches!(script.only(), Event::Ask(_)), form);
        // They belong to nothing, so nothing that ends takes them back.
        let waiting = script.session.asks().len();
        let call = script.call();
        script.reply(call, json!({}));
        assert_eq!(script.session.asks().len(), waiting);
    }
}

/// R-239, R-191: the server takes an ask back: no answer is sent, its id may come again as another ask.
#[test]
fn r_239_asks_are_taken_back() {
    let mut script = Script::newest();
    script.call();
    script.receive(&elicitation(json!("e")));
    let first = script.asked();
    let cancel = |id: Value| json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id, "reason": "too slow"}});
    script.receive(&cancel(json!("other")));
    assert!(script.events().is_empty());
    script.receive(&cancel(json!("e")));
    let Event::AskWithdrawn { ask, why } = script.only() else { panic!() };
    assert_eq!((ask, why), (first.id, Withdrawn::ByServer { reason: Some("too slow".into()) }));
    script.receive(&elicitation(json!("e")));
    let second = script.asked();
    // The answer that comes too late does not meet the second question.
    assert_eq!(script.session.answer(first.id, object("{}"), at(0)), Err(AskGone));
    assert!(script.sent().is_empty());
    script.session.answer(second.id, object("{}"), at(0)).expect("it waits");
    // One that was never told of is never told of as taken back.
    script.receive(&elicitation(json!("f")));
    script.receive(&cancel(json!("f")));
    assert!(script.events().is_empty() && script.session.asks().len() == 0);
}

/// Asks end with the request they belong to; the server gets an error, nobody's answer.
#[test]
fn asks_end_with_their_request() {
    let mut script = Script::newest();
    let (first, second) = (script.call(), script.call());
    script.receive_via(Via::Call(first), &elicitation(json!(1)));
    let of_first = script.asked().id;
    script.ask_roots(2);
    let of_either = script.asked().id;
    script.reply(first, json!({}));
    let mut events = script.events();
    let Event::AskWithdrawn { ask, why: Withdrawn::CallEnded } = events.remove(1) else { panic!() };
    assert_eq!(ask, of_first);
    let sent = script.sent();
    assert_eq!((&sent[0]["id"], &sent[0]["error"]["code"]), (&json!(1), &json!(-32602)));
    script.session.cancel(second, "", at(0));
    let Event::AskWithdrawn { ask, .. } = script.only() else { panic!() };
    assert_eq!(ask, of_either);
    // And with the session.
    script.call();
    script.ask_roots(3);
    let asked = script.asked();
    script.session.handle_closed();
    let Event::AskWithdrawn { ask, why: Withdrawn::Closed } = script.events().remove(0) else { panic!() };
    assert_eq!(ask, asked.id);
    assert!(script.sent().iter().all(|message| message.get("error").is_none()));
}

/// R-232, R-192, B-62: the time a person takes is not charged to the request.
#[test]
fn r_232_thinking_is_not_charged() {
    let mut script = Script::newest();
    let call = script.call();
    script.pass(Duration::from_secs(50));
    script.receive(&elicitation(json!(1)));
    let asked = script.asked();
    assert_eq!(script.session.poll_timeout(), None);
    script.pass(Duration::from_secs(86_400));
    assert!(script.events().is_empty());
    script.session.answer(asked.id, object("{}"), script.now).expect("it waits");
    assert_eq!(script.session.poll_timeout(), Some(at(86_400_000 + 60_000)));
    script.pass(Duration::from_secs(10));
    assert_eq!(failed(script.only()), (call, Failure::Timeout));
}

/// R-230, R-006: a ping is answered at any time; what is no ask gets `-32601`, what is broken `-32600` or `-32602`
/// with its id.
#[test]
fn other_requests_get_their_replies() {
    let mut script = Script { session: ClientSession::new(config()), now: at(0) };
    script.session.open(at(0));
    script.sent();
    script.receive(&json!({"jsonrpc": "2.0", "id": "p", "method": "ping"}));
    assert_eq!(script.sent(), [json!({"jsonrpc": "2.0", "id": "p", "result": {}})]);

    let mut script = Script::newest();
    script.call();
    let request =
        |method: &str, params: Value| json!({"jsonrpc": "2.0", "id": 5, "method": method, "params": params});
    for (message, code) in [
        (request("tasks/list", json!({})), -32601),
        (request("elicitation/create", json!({})), -32602),
        (request("elicitation/create", json!({"message": "m", "mode": "other"})), -32602),
        (request("sampling/createMessage", json!({"messages": 5, "maxTokens": 1})), -32602),
        (request("elicitation/create", json!([])), -32600),
    ] {
        script.receive(&message);
        let sent = script.sent();
        assert_eq!((&sent[0]["id"], &sent[0]["error"]["code"]), (&json!(5), &json!(code)), "{message}");
        assert!(script.session.asks().len() == 0);
    }
}

/// What is only told: logs, changed lists, completed elicitations (R-234), to the byte.
#[test]
fn r_234_notifications_are_passed_on() {
    let mut script = Script::newest();
    for method in
        ["notifications/message", "notifications/tools/list_changed", "notifications/elicitation/complete"]
    {
        let message =
            format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{{"elicitationId":"e","n":1.0}}}}"#);
        script.session.handle_message(Via::Standalone, message.as_bytes(), at(0));
        let Event::Notification { via: Via::Standalone, method: told, params } = script.only() else {
            panic!()
        };
        assert_eq!((&*told, params.as_deref()), (method, Some(r#"{"elicitationId":"e","n":1.0}"#)));
    }
    script.session.notify("notifications/roots/list_changed", None).expect("open");
    assert_eq!(script.sent(), [json!({"jsonrpc": "2.0", "method": "notifications/roots/list_changed"})]);
}

/// R-229: a second request under an id that waits is ignored, for a reply could be taken for either's.
#[test]
fn r_229_an_id_that_waits_is_not_asked_twice() {
    let mut script = Script::newest();
    script.call();
    script.receive(&elicitation(json!(1)));
    let asked: AskId = script.asked().id;
    script.ask_roots(1);
    assert!(script.events().is_empty() && script.sent().is_empty());
    script.session.answer(asked, object("{}"), at(0)).expect("it waits");
    assert_eq!(script.sent().len(), 1);
}
