//! What a server, or an embedder, cannot make it hold.

use mrtr_core::legacy::client::RequestError;
use proptest::prelude::*;

use super::*;

/// Each bound at 0, 1, n and n + 1.
#[test]
fn calls_and_asks_are_bounded() {
    for bound in [0, 1, 5] {
        let mut config = config();
        config.calls = bound;
        let mut script = Script::open(config, NEWEST);
        for _ in 0..bound {
            script.call();
        }
        let error = RequestError::TooManyCalls { limit: bound };
        assert_eq!(script.session.request("tools/call", None, at(0)), Err(error));
        assert!(script.sent().is_empty());
    }
    for bound in [0, 1, 5_i64] {
        let mut config = config();
        config.limits.asks_accepted = usize::try_from(bound).expect("small");
        let mut script = Script::open(config, NEWEST);
        script.call();
        for id in 0..bound {
            script.ask_roots(id);
            script.asked();
        }
        script.ask_roots(bound);
        assert!(matches!(script.only(), Event::AskRefused { .. }));
        assert_eq!(script.sent()[0]["error"]["code"], -32603);
    }
}

/// The bytes of a message out, at n and n + 1.
#[test]
fn messages_are_bounded() {
    let frame = r#"{"jsonrpc":"2.0","id":2,"method":"m","params":{"x":""}}"#.len();
    let limit = 2_000;
    let mut config = config();
    config.limits.message_bytes = limit;
    let mut script = Script::open(config, NEWEST);
    let params = |bytes: usize| format!(r#"{{"x":"{}"}}"#, "a".repeat(bytes - frame));
    script.session.request("m", Some(object(&params(limit))), at(0)).expect("it fits");
    assert_eq!(script.session.poll_transmit().expect("one").bytes.len(), limit);
    let error = RequestError::TooLarge { bytes: limit + 1, limit };
    assert_eq!(script.session.request("m", Some(object(&params(limit + 1))), at(0)), Err(error));
    assert_eq!(script.session.request("m", Some(object("[]")), at(0)), Err(RequestError::NotAnObject));
    assert_eq!((script.sent().len(), script.session.calls().len()), (0, 1));
}

/// B-81: a flood of pings, rubbish and notifications while nobody polls takes bounded memory, and the session lives.
#[test]
fn a_flood_is_bounded() {
    let mut script = Script::newest();
    let call = script.call();
    for id in 0..5_000 {
        script.receive(&json!({"jsonrpc": "2.0", "id": id, "method": "ping"}));
        script.receive(&json!({"jsonrpc": "2.0", "id": id, "method": "x"}));
        script.receive(&json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {}}));
        script.receive(&json!({"jsonrpc": "2.0", "id": format!("a{id}"), "method": "roots/list"}));
        script.receive(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": format!("a{id}")}}));
    }
    script.reply(call, json!({}));
    assert_eq!(script.sent().len(), 256);
    let events = script.events();
    assert!(events.len() <= 257, "{}", events.len());
    assert!(events.iter().any(|event| matches!(event, Event::Response { .. })));
}

fn message() -> impl Strategy<Value = Value> {
    let id = prop_oneof![(0..6_i64).prop_map(|id| json!(id)), Just(json!("a")), Just(json!(null))];
    let method = prop::sample::select(vec![
        "ping",
        "roots/list",
        "elicitation/create",
        "sampling/createMessage",
        "notifications/cancelled",
        "notifications/progress",
        "x",
    ]);
    let params = prop::sample::select(vec![
        json!({}),
        json!({"requestId": "a"}),
        json!({"progressToken": 2}),
        json!({"message": "m", "requestedSchema": {"type": "object"}}),
        json!({"messages": [], "maxTokens": 1}),
    ]);
    prop_oneof![
        (id.clone(), method.clone(), params.clone()).prop_map(
            |(id, method, params)| json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
        ),
        (method, params.clone())
            .prop_map(|(method, params)| json!({"jsonrpc": "2.0", "method": method, "params": params})),
        (id.clone(), params).prop_map(|(id, result)| json!({"jsonrpc": "2.0", "id": id, "result": result})),
        id.prop_map(|id| json!({"jsonrpc": "2.0", "id": id, "error": {"code": -1, "message": "m"}})),
    ]
}

#[derive(Clone, Debug)]
enum Step {
    Receive(Value),
    Raw(Vec<u8>),
    Overlong(Value),
    Call,
    Cancel(usize),
    Lose(usize),
    Answer(usize),
    Pass(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => message().prop_map(Step::Receive),
        1 => prop::collection::vec(any::<u8>(), 0..20).prop_map(Step::Raw),
        1 => message().prop_map(Step::Overlong),
        4 => Just(Step::Call),
        1 => (0..4_usize).prop_map(Step::Cancel),
        1 => (0..4_usize).prop_map(Step::Lose),
        3 => (0..4_usize).prop_map(Step::Answer),
        1 => (0..90_000_u64).prop_map(Step::Pass),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    /// R-229, R-191: whatever comes, each call ends exactly once (with its cancellation, or with one event), each ask is
    /// answered at most once, and what is told of as open is what is open.
    #[test]
    fn every_call_ends_once(steps in prop::collection::vec(step(), 0..60)) {
        let mut script = Script::newest();
        let (mut open, mut asks) = (Vec::new(), Vec::new());
        for step in steps {
            match step {
                Step::Receive(message) => script.receive(&message),
                Step::Raw(bytes) => script.session.handle_message(Via::Pipe, &bytes, script.now),
                Step::Overlong(message) => {
                    let text = message.to_string();
                    script.session.handle_overlong(Via::Pipe, &text.as_bytes()[..text.len() / 2], script.now);
                }
                Step::Call => {
                    open.push(script.session.request("tools/call", None, script.now).expect("few"));
                }
                Step::Cancel(at) => {
                    if at < open.len() {
                        script.session.cancel(open.remove(at), "", script.now);
                    }
                }
                Step::Lose(at) => {
                    if let Some(call) = open.get(at) {
                        script.session.lost(*call, script.now);
                    }
                }
                Step::Answer(at) => {
                    if at < asks.len() {
                        script.session.answer(asks.remove(at), object("{}"), script.now).expect("it waits");
                    }
                }
                Step::Pass(millis) => script.pass(Duration::from_millis(millis)),
            }
            for event in script.events() {
                match event {
                    Event::Response { call, .. } => {
                        let before = open.len();
                        open.retain(|open| *open != call);
                        prop_assert_eq!(open.len() + 1, before);
                    }
                    Event::Ask(asked) => asks.push(asked.id),
                    Event::AskWithdrawn { ask, .. } => {
                        let before = asks.len();
                        asks.retain(|open| *open != ask);
                        prop_assert_eq!(asks.len() + 1, before);
                    }
                    _ => {}
                }
            }
            script.sent();
            prop_assert_eq!(script.session.calls().collect::<Vec<_>>(), open.clone());
            prop_assert_eq!(script.session.asks().collect::<Vec<_>>(), asks.clone());
        }
        script.session.handle_closed();
        prop_assert_eq!(script.events().len(), open.len() + asks.len() + 1);
    }
}
