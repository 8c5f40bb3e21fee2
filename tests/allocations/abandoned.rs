//! What nobody comes back for: memory stays flat where the client holds the state, and at its bound where the server does.
//! `MRTR_ABANDONED` says how many exchanges (2,000).

use std::{
    task::{Context, Waker},
    time::Duration,
};

use allocation_counter::measure;
use mrtr_core::{
    Entropy, Timestamp,
    handler::{Ctx, Reception, RunEvent, Service, ToolResult},
    http::Accepts,
    ledger::{Memory, MemoryLimits, Policy},
    legacy::{self, Handled, Posted, Sessions, Stream},
    seal::Principal,
    server::RoundEnv,
};
use mrtr_tests::{
    legacy::{drain, parse},
    world::{START, config, lawful, service},
};
use serde_json::{Value, json};

fn abandoned() -> u64 {
    std::env::var("MRTR_ABANDONED").ok().and_then(|text| text.parse().ok()).unwrap_or(2_000)
}

fn entropy(number: u64) -> Entropy {
    let mut bytes = [3; 32];
    bytes[..8].copy_from_slice(&number.to_be_bytes());
    Entropy::new(bytes)
}

/// A tool that asks twice and makes a value in between.
async fn ask_twice(ctx: Ctx) -> Result<ToolResult, mrtr_core::RpcError> {
    let first = ctx.confirm("a", "Sure?").await?;
    ctx.once("made", || vec![7; 64])?;
    let second = ctx.confirm("b", "Really?").await?;
    Ok(ToolResult::text(format!("{first:?} {second:?}")))
}

fn request(params: Value) -> Vec<u8> {
    let mut all = json!({"name": "t", "arguments": {}, "_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}},
    }});
    for (name, value) in params.as_object().expect("an object") {
        all[name] = value.clone();
    }
    json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": all}).to_string().into()
}

/// One request without a ledger; its reply.
fn serve(service: &Service, message: &[u8], number: u64) -> Value {
    let now = Timestamp::from_unix_millis(START);
    let env = RoundEnv::new(now, entropy(number), Principal::Authenticated(b"alice"));
    let Reception::Run(run) = service.receive(message, env) else { panic!("no handler runs") };
    let mut reply = Vec::new();
    let _ = run.run(now, &mut reply);
    lawful(&reply)
}

fn retry(reply: &Value, key: &str) -> Vec<u8> {
    request(
        json!({"requestState": reply["result"]["requestState"], "inputResponses": {key: {"action": "accept"}}}),
    )
}

/// Design §1: the server keeps nothing of an exchange that waits, after one round or two, nor of an attempt that is
/// dropped before its end.
#[test]
fn abandoned_exchanges_leave_nothing() {
    let service = service(config(), ask_twice);
    let abandon = |number: u64| {
        let first = serve(&service, &request(json!({})), 2 * number);
        if number.is_multiple_of(3) {
            let second = serve(&service, &retry(&first, "a"), 2 * number + 1);
            assert!(second["result"]["inputRequests"]["b"].is_object(), "{second}");
        } else if number % 3 == 1 {
            let message = retry(&first, "a");
            let now = Timestamp::from_unix_millis(START);
            let env = RoundEnv::new(now, entropy(2 * number + 1), Principal::Authenticated(b"alice"));
            drop(service.receive(&message, env));
        }
    };
    (0..16).for_each(abandon);
    let left = measure(|| (16..16 + abandoned()).for_each(abandon));
    assert_eq!((left.count_current, left.bytes_current), (0, 0), "{left:?}");
}

const SESSIONS: u64 = 50;

/// R-240, design §7: sessions whose clients went away in mid-question, batch after batch at the bound: the most that they
/// ever take is what one batch takes, and nothing is left when the last has been swept out.
#[test]
fn abandoned_sessions_stay_at_their_bound() {
    let mut bounds = legacy::Config::default();
    bounds.sessions = usize::try_from(SESSIONS).expect("few");
    let (idle, resume) = (bounds.idle, bounds.resume);
    let mut sessions = Sessions::new(service(config(), ask_twice), bounds);
    let mut now = Timestamp::from_unix_millis(START);
    let mut batch = |batch: u64| {
        for number in 0..SESSIONS {
            begin(&mut sessions, now, batch * SESSIONS + number);
        }
        assert_eq!(sessions.len(), usize::try_from(SESSIONS).expect("few"));
        // Its questions have ended by now, and then it rests.
        now = now.saturating_add(resume + idle + Duration::from_secs(2));
        assert_eq!(sessions.sweep(now), usize::try_from(SESSIONS).expect("few"));
    };
    batch(0);
    let one = measure(|| batch(1));
    let all = measure(|| (2..2 + abandoned() / SESSIONS).for_each(&mut batch));
    assert_eq!((all.count_current, all.bytes_current), (0, 0), "{all:?}");
    assert!(all.bytes_max <= one.bytes_max + one.bytes_max / 10, "{one:?} {all:?}");
}

/// A session that is asked something, whose connection breaks, and whose question ends 30 s later.
fn begin(sessions: &mut Sessions, now: Timestamp, number: u64) {
    let headers: [(&str, &str); 0] = [];
    let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params":
        {"protocolVersion": "2025-11-25", "capabilities": {"elicitation": {}}}});
    let hello = hello.to_string();
    let posted = sessions
        .post(&headers, hello.as_bytes(), Accepts::BOTH, Principal::Anonymous, now, || entropy(number));
    let Posted::Opened { session, .. } = posted else { panic!("{posted:?}") };
    let mut session = session.lock();
    for message in [
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "t", "arguments": {}}}),
    ] {
        let handled = session.handle(message.to_string().as_bytes(), now);
        assert!(matches!(handled, Handled::Accepted | Handled::Running(_)), "{handled:?}");
    }
    let asked = drain(&mut session, now);
    assert_eq!(parse(&asked[0].bytes)["method"], "elicitation/create");
    session.lose(&Stream::Request(1.into()), now);
    let later = session.wake_at().expect("a time at which the question ends");
    drain(&mut session, later);
    assert!(!session.is_busy());
}

/// B4, B6, R-075: claims whose replica died: the store takes no more than its bound, and gives it back as they expire.
#[test]
fn abandoned_claims_stay_at_their_bound() {
    const ENTRIES: usize = 100;
    let mut config = config();
    config.ledger = Some(Policy::default());
    let service = service(config, ask_twice);
    let mut limits = MemoryLimits::default();
    limits.entries = ENTRIES;
    let mut store = Memory::new(limits);
    let mut now = Timestamp::from_unix_millis(START);
    let mut number = 0;
    let mut batch = |_: u64| {
        for place in 0..ENTRIES + 10 {
            number += 2;
            let env = |number| RoundEnv::new(now, entropy(number), Principal::Authenticated(b"alice"));
            let first = request(json!({}));
            let Reception::Run(run) = service.receive(&first, env(number)) else { panic!("no handler runs") };
            let mut reply = Vec::new();
            let _ = run.run(now, &mut reply);
            let message = retry(&lawful(&reply), "a");
            let Reception::Run(mut run) = service.receive(&message, env(number + 1)) else {
                panic!("no handler runs")
            };
            let mut cx = Context::from_waker(Waker::noop());
            reply.clear();
            for _ in 0..2 {
                if let std::task::Poll::Ready(RunEvent::Store(command)) =
                    run.poll_run(&mut cx, now, &mut reply)
                {
                    let said = store.apply(now, &command);
                    run.handle_store(now, said);
                }
            }
            drop(run);
            assert_eq!(store.len(), (place + 1).min(ENTRIES));
        }
        now = now.saturating_add(Duration::from_secs(3_600));
        store.expire(now);
        assert!(store.is_empty());
    };
    batch(0);
    let one = measure(|| batch(1));
    let batches = abandoned() / (ENTRIES as u64 + 10);
    let all = measure(|| (0..batches.max(2)).for_each(&mut batch));
    assert_eq!((all.count_current, all.bytes_current), (0, 0), "{all:?}");
    assert!(all.bytes_max <= one.bytes_max + one.bytes_max / 10, "{one:?} {all:?}");
}
