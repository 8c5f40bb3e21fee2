//! Handlers whose code runs in another engine, such as JavaScript functions: the run waits for their word (A2).

use std::{
    pin::pin,
    sync::{Arc, Mutex},
    task::{Context, Poll, Waker},
};

use futures::future;
use mrtr_core::{
    Entropy, Limits, Timestamp,
    catalog::Tool,
    form::Elicited,
    handler::{Ask, Ctx, Outcome, Reception, RpcError, RunEvent, Service, ToolResult},
    jsonrpc::Json,
    seal::Principal,
    server::{RoundEnv, Server},
    tape::Fault,
    wire::InputRequest,
};
use mrtr_tests::world::{START, config};
use serde_json::{Value, json};

/// A tool whose future only stands for what runs elsewhere: with the context that was handed there.
fn standing_in() -> (Service, Arc<Mutex<Option<Ctx>>>) {
    let handed = Arc::new(Mutex::new(None));
    let hand = handed.clone();
    let handler = move |ctx: Ctx| {
        ctx.runs_elsewhere();
        *hand.lock().unwrap() = Some(ctx);
        future::pending::<Result<ToolResult, RpcError>>()
    };
    let service = Service::new(Server::new(config())).tool(Tool::new("t", ""), handler).unwrap();
    (service, handed)
}

fn request(more: &Value) -> Vec<u8> {
    let mut params = json!({"name": "t", "_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}},
    }});
    params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    serde_json::to_vec(&json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})).unwrap()
}

fn env(now: Timestamp, round: u8) -> RoundEnv<'static> {
    RoundEnv::new(now, Entropy::new([round; 32]), Principal::Anonymous)
}

/// A2, A6: asks that come one by one share a round, however often the run is polled between them; a released ask
/// is no reason to send what is still open before the code elsewhere has said that it rests again.
#[test]
fn a2_nothing_is_judged_before_the_code_elsewhere_rests() {
    let (service, handed) = standing_in();
    let now = Timestamp::from_unix_millis(START);
    let mut cx = Context::from_waker(Waker::noop());

    let bytes = request(&json!({}));
    let Reception::Run(mut run) = service.receive(&bytes, env(now, 1)) else { panic!("a tool runs") };
    let ctx = handed.lock().unwrap().take().unwrap();
    let mut out = Vec::new();
    let mut a = pin!(ctx.confirm("a", "A?"));
    assert!(a.as_mut().poll(&mut cx).is_pending());
    assert!(run.poll_run(&mut cx, now, &mut out).is_pending(), "the other one may still come");
    let mut b = pin!(ctx.confirm("b", "B?"));
    assert!(b.as_mut().poll(&mut cx).is_pending());
    ctx.rests();
    let Poll::Ready(RunEvent::Finished(Outcome::InputRequired(asked))) = run.poll_run(&mut cx, now, &mut out)
    else {
        panic!("it asks")
    };
    assert_eq!(asked.keys().collect::<Vec<_>>(), ["a", "b"]);
    assert!(run.fault().is_none());

    let reply: Value = serde_json::from_slice(&out).unwrap();
    let bytes = request(&json!({
        "requestState": reply["result"]["requestState"],
        "inputResponses": {"a": {"action": "accept"}},
    }));
    let Reception::Run(mut run) = service.receive(&bytes, env(now, 2)) else { panic!("a tool runs") };
    let ctx = handed.lock().unwrap().take().unwrap();
    out.clear();
    let (mut a, mut b) = (pin!(ctx.confirm("a", "A?")), pin!(ctx.confirm("b", "B?")));
    assert!(a.as_mut().poll(&mut cx).is_pending() && b.as_mut().poll(&mut cx).is_pending());
    ctx.rests();
    assert!(run.poll_run(&mut cx, now, &mut out).is_pending(), "`a` is released: it runs again");
    assert!(a.as_mut().poll(&mut cx).is_ready() && b.as_mut().poll(&mut cx).is_pending());
    assert!(run.poll_run(&mut cx, now, &mut out).is_pending());
    ctx.rests();
    let Poll::Ready(RunEvent::Finished(Outcome::InputRequired(asked))) = run.poll_run(&mut cx, now, &mut out)
    else {
        panic!("it asks for what is left")
    };
    assert_eq!(asked.keys().collect::<Vec<_>>(), ["b"]);
}

/// G-07: a state over its bound is told to the embedder by the bound's name, as it is to the peer.
#[test]
fn g07_a_state_over_its_bound_is_told_to_the_embedder() {
    let (service, handed) = standing_in();
    let now = Timestamp::from_unix_millis(START);
    let bytes = request(&json!({}));
    let Reception::Run(mut run) = service.receive(&bytes, env(now, 1)) else { panic!("a tool runs") };
    let ctx = handed.lock().unwrap().take().unwrap();
    let long = format!("\"{}\"", "y".repeat(100_000));
    ctx.set_json("x", Json::parse(&long, &Limits::default()).unwrap());
    let mut ask = pin!(ctx.confirm("k", "?"));
    assert!(ask.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    ctx.rests();
    let mut out = Vec::new();
    assert!(run.poll_run(&mut Context::from_waker(Waker::noop()), now, &mut out).is_ready());
    let Some(Fault::NotSealed(error)) = run.fault() else { panic!("{:?}", run.fault()) };
    assert!(error.to_string().contains("state_minted"), "{error}");
    let reply: Value = serde_json::from_slice(&out).unwrap();
    assert_eq!(reply["error"]["message"], format!("Internal error: {error}"));
}

/// The embedder learns why an attempt broke off; the peer does not (A1).
#[test]
fn a_fault_is_told_to_the_embedder() {
    let (service, handed) = standing_in();
    let now = Timestamp::from_unix_millis(START);
    let mut cx = Context::from_waker(Waker::noop());
    let bytes = request(&json!({}));
    let Reception::Run(mut run) = service.receive(&bytes, env(now, 1)) else { panic!("a tool runs") };
    let ctx = handed.lock().unwrap().take().unwrap();
    let (_first, _second) = (ctx.confirm("k", "1"), ctx.confirm("k", "2"));
    ctx.rests();
    let mut out = Vec::new();
    assert!(run.poll_run(&mut cx, now, &mut out).is_ready());
    assert_eq!(run.fault(), Some(&Fault::KeyInUse(String::from("k"))));
    let reply: Value = serde_json::from_slice(&out).unwrap();
    assert_eq!(reply["error"], json!({"code": -32603, "message": "Internal error"}));
}

/// A11: code elsewhere makes something of an answer after it has come; that is journalled instead, and found again behind
/// a `k` on later runs.
#[test]
fn a11_code_elsewhere_keeps_a_projection() {
    keeps_a_projection(|ask, kept| ask.keep_elsewhere(kept).unwrap());
    keeps_a_projection(|ask, kept| {
        let text = kept.to_string();
        ask.keep_elsewhere_json(Json::parse(&text, &Limits::default()).unwrap());
    });
}

fn keeps_a_projection(keep: impl Fn(&Ask<Elicited<String>>, &Value)) {
    let (service, handed) = standing_in();
    let now = Timestamp::from_unix_millis(START);
    let mut cx = Context::from_waker(Waker::noop());
    let mut more = json!({});
    let (mut seen, mut sizes) = (Vec::new(), Vec::new());
    for round in 1..=3 {
        let bytes = request(&more);
        let Reception::Run(mut run) = service.receive(&bytes, env(now, round)) else { panic!("a tool runs") };
        let ctx = handed.lock().unwrap().take().unwrap();
        let mut ask = ctx.ask("long", InputRequest::confirm("Long?"));
        let mut out = Vec::new();
        let first = loop {
            if let Poll::Ready(answer) = pin!(&mut ask).poll(&mut cx) {
                break Some(answer.unwrap());
            }
            ctx.rests();
            if run.poll_run(&mut cx, now, &mut out).is_ready() {
                break None;
            }
        };
        if let Some(first) = first {
            if round == 2 {
                keep(&ask, &json!({"kept": "x".repeat(500)}));
            }
            seen.push(first);
            let mut next = pin!(ctx.confirm("next", "Next?"));
            assert!(next.as_mut().poll(&mut cx).is_pending());
            ctx.rests();
            assert!(run.poll_run(&mut cx, now, &mut out).is_ready());
        }
        let reply: Value = serde_json::from_slice(&out).unwrap();
        let state = reply["result"]["requestState"].as_str().expect("a question");
        sizes.push(state.len());
        more = json!({"requestState": state, "inputResponses": {"long": {"action": "accept"}}});
    }
    assert_eq!(seen.len(), 2);
    let Elicited::Accept(again) = &seen[1] else { panic!("{seen:?}") };
    assert_eq!(*again, format!(r#"k{{"kept":"{}"}}"#, "x".repeat(500)));
    assert!(sizes[1] > sizes[0] + 500, "{sizes:?}");
}

/// A2: without a runtime nobody can say that the code elsewhere rests: the attempt ends, as any that waits.
#[test]
fn a2_code_elsewhere_takes_a_runtime() {
    let (service, _handed) = standing_in();
    let now = Timestamp::from_unix_millis(START);
    let bytes = request(&json!({}));
    let Reception::Run(run) = service.receive(&bytes, env(now, 1)) else { panic!("a tool runs") };
    let mut out = Vec::new();
    assert!(matches!(run.run(now, &mut out), Outcome::Complete(_)));
    let reply: Value = serde_json::from_slice(&out).unwrap();
    assert_eq!(reply["error"]["code"], -32603);
}
