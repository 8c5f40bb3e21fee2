//! Random servers: whatever they do, every call ends exactly once.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;

#[derive(Clone, Debug)]
enum Step {
    Call,
    CallTwice,
    /// The server replies to the n-th request that is out.
    Reply(usize, Value),
    Error(usize, Value),
    /// To none.
    Stray(Value),
    Raw(Vec<u8>),
    Overlong(usize, usize),
    Ask(i64),
    Answer(usize),
    Proceed(usize),
    Cancel(usize),
    Lose(usize),
    Http(usize, u16, &'static str),
    Pass(u64),
    Restart,
}

fn step() -> impl Strategy<Value = Step> {
    let results = prop::sample::select(vec![
        complete(),
        json!({"content": []}),
        interim(&[("a", ask("a?"))], "s"),
        interim(&[("a", ask("a?")), ("b", ask("b?"))], "t"),
        json!({"resultType": "input_required", "requestState": "u"}),
        json!({"resultType": "input_required"}),
        json!({"supportedVersions": ["2026-07-28"]}),
        json!({"protocolVersion": "2025-11-25", "capabilities": {}}),
        json!(null),
    ]);
    let errors = prop::sample::select(vec![
        json!({"code": -32601, "message": "m"}),
        json!({"code": -32602, "message": "m"}),
        unsupported(&["2026-07-28"]),
        json!({"code": -32000}),
    ]);
    let n = || 0..4_usize;
    prop_oneof![
        6 => Just(Step::Call),
        2 => Just(Step::CallTwice),
        12 => (n(), results.clone()).prop_map(|(n, result)| Step::Reply(n, result)),
        4 => (n(), errors).prop_map(|(n, error)| Step::Error(n, error)),
        1 => results.prop_map(Step::Stray),
        1 => prop::collection::vec(any::<u8>(), 0..12).prop_map(Step::Raw),
        1 => (n(), 0..30_usize).prop_map(|(n, cut)| Step::Overlong(n, cut)),
        2 => (0..4_i64).prop_map(Step::Ask),
        2 => n().prop_map(Step::Answer),
        5 => n().prop_map(Step::Proceed),
        2 => n().prop_map(Step::Cancel),
        1 => n().prop_map(Step::Lose),
        2 => (n(), prop::sample::select(vec![400, 404, 500, 200]), prop::sample::select(vec!["", "{}"])).prop_map(|(n, status, body)| Step::Http(n, status, body)),
        2 => (0..70_000_u64).prop_map(Step::Pass),
        1 => Just(Step::Restart),
    ]
}

fn obey(mut line: Line, steps: Vec<Step>) {
    let http = line.is_http();
    let mut ids = BTreeSet::new();
    let mut out: Vec<Out> = Vec::new();
    let mut open = BTreeSet::new();
    let mut thinking: BTreeMap<CallId, Exchange<InputRequired>> = BTreeMap::new();
    let mut asks = Vec::new();
    for step in steps {
        let nth = |n: usize| out.get(n).cloned();
        match step {
            Step::Call => {
                open.insert(line.call());
            }
            Step::CallTwice => {
                open.insert(line.connection.call(tool().may_run_twice(), line.now).expect("a call"));
            }
            Step::Reply(n, result) => {
                if let Some(to) = nth(n) {
                    line.reply(&to, result);
                }
            }
            Step::Error(n, error) => {
                if let Some(to) = nth(n) {
                    line.error(&to, error);
                }
            }
            Step::Stray(result) => line.receive(&json!({"jsonrpc": "2.0", "id": 9_999, "result": result})),
            Step::Raw(bytes) => {
                let via = out.first().filter(|_| http).map_or(Via::Pipe, |to| Via::Post(to.post));
                line.connection.handle_message(via, &bytes, line.now);
            }
            Step::Overlong(n, cut) => {
                if let Some(to) = nth(n) {
                    let text = json!({"jsonrpc": "2.0", "id": to.message["id"], "result": {"x": "aaaaaaaa"}})
                        .to_string();
                    let via = if http { Via::Post(to.post) } else { Via::Pipe };
                    line.connection.handle_overlong(via, &text.as_bytes()[..cut.min(text.len())], line.now);
                }
            }
            Step::Ask(id) => {
                let ask = ask("?");
                let message =
                    json!({"jsonrpc": "2.0", "id": id, "method": ask["method"], "params": ask["params"]});
                let via = out.first().filter(|_| http).map_or(Via::Pipe, |to| Via::Post(to.post));
                line.connection.handle_message(via, message.to_string().as_bytes(), line.now);
            }
            Step::Answer(n) => {
                if n < asks.len() {
                    let ask = asks.remove(n);
                    let answer = object(r#"{"action":"accept","content":{}}"#);
                    line.connection.answer(ask, answer, line.now).expect("it waits");
                }
            }
            Step::Proceed(n) => {
                if let Some(call) = thinking.keys().nth(n).copied() {
                    let mut exchange = thinking.remove(&call).expect("it is there");
                    accept_all(&mut exchange);
                    if line.connection.proceed(call, exchange, line.now).is_ok() {
                        open.insert(call);
                    }
                }
            }
            Step::Cancel(n) => {
                if let Some(call) = open.iter().nth(n).copied() {
                    open.remove(&call);
                    line.connection.cancel(call, "enough", line.now);
                }
            }
            Step::Lose(n) => {
                if let Some(to) = nth(n) {
                    line.connection.handle_lost(to.post, line.now);
                }
            }
            Step::Http(n, status, body) => {
                if let Some(to) = nth(n).filter(|_| http) {
                    line.respond(&to, status, body);
                }
            }
            Step::Pass(millis) => line.pass(Duration::from_millis(millis)),
            Step::Restart => {
                if !http {
                    line.connection.handle_restarted(line.now);
                    out.clear();
                }
            }
        }
        for event in line.events() {
            match event {
                Event::Done { call, .. } => assert!(open.remove(&call), "a call ends that is not open"),
                Event::InputRequired { call, exchange } => {
                    assert!(open.remove(&call), "a call is handed over that is not open");
                    thinking.insert(call, exchange);
                }
                Event::Ask { ask, .. } => asks.push(ask),
                Event::AskWithdrawn { ask } => {
                    let before = asks.len();
                    asks.retain(|of| *of != ask);
                    assert_eq!(asks.len() + 1, before, "an ask is withdrawn that does not wait");
                }
                _ => {}
            }
        }
        for sent in line.requests() {
            // R-002, R-229: whatever happens, no id is used again.
            assert!(ids.insert(sent.message["id"].as_i64()), "an id is used twice: {sent:?}");
            out.push(sent);
        }
        if out.len() > 8 {
            out.drain(..out.len() - 8);
        }
        assert_eq!(line.connection.calls().collect::<BTreeSet<_>>(), open);
    }
    line.connection.handle_closed(line.now);
    for event in line.events() {
        if let Event::Done { call, .. } = event {
            assert!(open.remove(&call));
        }
    }
    assert!(open.is_empty(), "calls without an end");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    /// R-191, R-185, R-229: on a pipe.
    #[test]
    fn every_call_on_a_pipe_ends_once(steps in prop::collection::vec(step(), 0..50)) {
        obey(Line::pipe(ConnectionConfig::default()), steps);
    }

    /// The same over HTTP.
    #[test]
    fn every_call_over_http_ends_once(steps in prop::collection::vec(step(), 0..50)) {
        obey(Line::http(ConnectionConfig::default()), steps);
    }
}
