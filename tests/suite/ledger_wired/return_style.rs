//! The same for return-style handlers: `Attempt` instead of `Run`.

use std::{task::Poll, time::Duration};

use mrtr_core::{
    handler::{Attempt, AttemptEvent, RpcError, ToolResult},
    ledger::Policy,
    seal::Principal,
    server::{Given, InputRequests, Received, RoundEnv, Server},
    wire::InputRequest,
};
use serde_json::{Value, json};

use super::{Bench, REFUSED, error, ledgered, same, state, text};

/// What a handler is to end with once it has its number.
#[derive(Clone, Copy)]
enum End {
    Result,
    Error,
    Unfit,
    Missing,
    BadKey,
}

struct Desk {
    bench: Bench,
    server: Server,
    looks: usize,
    end: End,
}

impl Desk {
    fn new() -> Self {
        let policy = Policy::default();
        let bench = Bench::new(ledgered(policy), |_| async { Ok(ToolResult::new().into()) });
        Self { bench, server: Server::new(ledgered(policy)), looks: 0, end: End::Result }
    }

    fn attempt<'a>(&mut self, message: &'a [u8]) -> Attempt<'a> {
        let env = RoundEnv::new(self.bench.now, self.bench.entropy(), Principal::Authenticated(b"alice"));
        match self.server.receive(message, env) {
            Received::Pending(exchange) => Attempt::new(exchange),
            Received::Retrying(exchange) => Attempt::new(exchange),
            other => panic!("no attempt: {other:?}"),
        }
    }

    fn look(&mut self, attempt: &mut Attempt<'_>) {
        self.looks += 1;
        let ask = InputRequest::confirm("Sure?");
        let exchange = attempt.exchange().expect("it may look");
        let rounds = exchange.state::<u32>().expect("a number").unwrap_or(0) + 1;
        let given = exchange.answer("sure", &ask);
        match (given, self.end) {
            (Given::Missing, _) => {
                let asks = InputRequests::new().ask("sure", ask);
                attempt.require(asks, &rounds, self.bench.now).expect("asked");
            }
            (_, End::Result) => attempt.complete(&ToolResult::text(format!("round {rounds}")).into()),
            (_, End::Error) => attempt.fail(&RpcError::invalid_params("does not go together")),
            (_, End::Unfit) => {
                let list = mrtr_core::handler::Output::from_serialize(&json!([1])).expect("JSON");
                attempt.complete(&list);
            }
            (_, End::Missing) => {
                let model = InputRequest::from_parts(
                    "sampling/createMessage",
                    Some(
                        mrtr_core::jsonrpc::Json::parse(
                            r#"{"messages":[],"maxTokens":1}"#,
                            &mrtr_core::Limits::default(),
                        )
                        .expect("JSON"),
                    ),
                )
                .expect("sampling");
                let asks = InputRequests::new().ask("model", model);
                assert!(attempt.require(asks, &rounds, self.bench.now).is_err());
            }
            (_, End::BadKey) => {
                let asks = InputRequests::new().ask("no key", ask);
                assert!(attempt.require(asks, &rounds, self.bench.now).is_err());
            }
        }
    }

    /// Polls and serves the store; lets the handler look when it may, unless it is to wait.
    fn drive(&mut self, attempt: &mut Attempt<'_>, waits: bool) -> Option<Value> {
        let mut out = Vec::new();
        loop {
            match attempt.poll(self.bench.now, &mut out) {
                Poll::Ready(AttemptEvent::Store(command)) => {
                    let event = self.bench.store.apply(self.bench.now, &command);
                    attempt.handle_store(self.bench.now, event);
                }
                Poll::Ready(AttemptEvent::Look) if waits => {}
                Poll::Ready(AttemptEvent::Look) => self.look(attempt),
                Poll::Ready(AttemptEvent::Finished(_)) => return Some(mrtr_tests::world::lawful(&out)),
                Poll::Ready(other) => panic!("{other:?}"),
                Poll::Pending => return None,
            }
        }
    }

    fn send(&mut self, message: &[u8]) -> Value {
        let mut attempt = self.attempt(message);
        self.drive(&mut attempt, false).expect("nothing to wait for")
    }

    fn state(&mut self) -> String {
        let first = self.bench.request(json!({}));
        state(&self.send(&first))
    }

    fn retry(&mut self, state: &str, action: &str) -> Vec<u8> {
        self.bench.retry_with(state, json!({"sure": {"action": action}}))
    }
}

/// B1, B2, B3: one look a state; copies get the reply that the first one got, other answers are refused.
#[test]
fn a_state_is_used_once_and_its_reply_found_again_b1_b3() {
    let mut desk = Desk::new();
    let state = desk.state();
    let [one, two, other] = ["accept", "accept", "decline"].map(|action| desk.retry(&state, action));
    let first = desk.send(&one);
    assert_eq!(text(&first), "round 2");
    assert!(same(&first, &desk.send(&two)));
    assert_eq!(error(&desk.send(&other)), REFUSED);
    assert_eq!(desk.looks, 2, "the first request and one retry");
}

/// B5: a result, also one that cannot be sent, and the handler's own error use a state up; what is not its doing does not.
#[test]
fn what_uses_a_state_up_b5() {
    for (end, code, used) in [
        (End::Error, -32602, true),
        (End::Unfit, -32603, true),
        (End::Missing, -32021, false),
        (End::BadKey, -32603, false),
    ] {
        let mut desk = Desk::new();
        desk.bench.capabilities = json!({"elicitation": {"form": {}}});
        let state = desk.state();
        let (one, two) = (desk.retry(&state, "accept"), desk.retry(&state, "accept"));
        desk.end = end;
        let first = desk.send(&one);
        assert_eq!(first["error"]["code"], code);
        desk.end = End::Result;
        let second = desk.send(&two);
        if used {
            assert!(same(&first, &second), "{second}");
        } else {
            assert_eq!(text(&second), "round 2");
        }
    }
}

/// B4, B5, B6: a copy waits while the first looks, whose lease is renewed; if that is given up, the copy may look.
#[test]
fn a_copy_waits_for_the_first_or_takes_over_b4() {
    let mut desk = Desk::new();
    let state = desk.state();
    let (one, two) = (desk.retry(&state, "accept"), desk.retry(&state, "accept"));
    let mut first = desk.attempt(&one);
    assert_eq!(desk.drive(&mut first, true), None);
    assert!(first.is_claimed());
    let mut copy = desk.attempt(&two);
    assert_eq!(desk.drive(&mut copy, false), None);
    for _ in 0..200 {
        let at = first.wake_at().expect("a lease to renew");
        desk.bench.now = desk.bench.now.max(at);
        assert_eq!(desk.drive(&mut first, true), None, "renewed");
        if desk.drive(&mut copy, false).is_some() {
            break;
        }
    }
    assert_eq!(desk.looks, 1, "nobody looked but at the first request");
    first.cancel();
    assert_eq!(desk.drive(&mut first, true).expect("given up")["error"]["code"], -32603);
    let again = desk.retry(&state, "accept");
    assert_eq!(text(&desk.send(&again)), "round 2");
}

/// B6: one that gives no sign of life for a lease is taken over, and its late reply does not count.
#[test]
fn a_crashed_one_is_taken_over_b6() {
    let mut desk = Desk::new();
    let state = desk.state();
    let (one, two) = (desk.retry(&state, "accept"), desk.retry(&state, "accept"));
    let mut first = desk.attempt(&one);
    assert_eq!(desk.drive(&mut first, true), None);
    desk.bench.pass(Duration::from_secs(120));
    let second = desk.send(&two);
    assert_eq!(text(&second), "round 2");
    desk.end = End::Error;
    desk.look(&mut first);
    let late = desk.drive(&mut first, false).expect("its end");
    assert!(same(&second, &late), "{late}");
}
