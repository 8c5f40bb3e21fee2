//! Cancellation, progress, logs.

use std::task::{Context, Poll, Waker};

use mrtr_core::{
    Entropy,
    handler::{Ctx, Reception, RunEvent, ToolResult},
    seal::Principal,
    server::RoundEnv,
    wire::LogLevel,
};
use mrtr_tests::world::{Delivered, World, accept, lawful};
use serde_json::{Value, json};

use super::{number, world};

/// a cancellation by name, with the id in its own type; what names nothing is ignored.
#[test]
fn r_188_cancellations() {
    let mut world = world();
    let mut cancelled = |params: Value| {
        let message =
            json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}).to_string();
        match world.deliver(message.as_bytes(), None) {
            Delivered::Cancelled(id) => Some(format!("{:?} {:?}", id.as_i64(), id.as_str())),
            Delivered::Accepted => None,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(
        cancelled(json!({"requestId": 7, "reason": "changed my mind"})).as_deref(),
        Some("Some(7) None")
    );
    assert_eq!(cancelled(json!({"requestId": "7"})).as_deref(), Some("None Some(\"7\")"));
    for params in [
        json!({}),
        json!({"requestId": null}),
        json!({"requestId": 1.5}),
        json!({"requestId": [7]}),
        json!({"id": 7}),
    ] {
        assert_eq!(cancelled(params), None);
    }
}

/// What a request says while it runs, then its reply.
fn events(world: &World, meta: &Value, more: &Value) -> (Vec<Value>, Value) {
    let mut params = json!({"name": "t", "_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}}}});
    super::merge(&mut params["_meta"], meta);
    super::merge(&mut params, more);
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string();
    let env = RoundEnv::new(world.now, Entropy::new([9; 32]), Principal::Anonymous);
    let Reception::Run(mut run) = world.service.receive(message.as_bytes(), env) else { panic!("no run") };
    let mut cx = Context::from_waker(Waker::noop());
    let mut notifications = Vec::new();
    loop {
        let mut out = Vec::new();
        match run.poll_run(&mut cx, world.now, &mut out) {
            Poll::Ready(RunEvent::Notification) => {
                assert!(!out.contains(&b'\n'));
                let message: Value = serde_json::from_slice(&out).expect("one message");
                assert!(message.get("id").is_none() && message["jsonrpc"] == "2.0");
                notifications.push(message);
            }
            Poll::Ready(RunEvent::Finished(_)) => return (notifications, lawful(&out)),
            Poll::Ready(other) => panic!("{other:?}"),
            Poll::Pending => panic!("nothing to wait for"),
        }
    }
}

/// B-64: progress only if a token came with this very request, only rising, and not again
/// for what has run before.
#[test]
fn r_195_progress() {
    let world = World::new(|ctx: Ctx| async move {
        for value in [0.0, 50.0, 50.0, 20.0, f64::NAN, f64::INFINITY, 50.5, 1e21] {
            ctx.progress(value, Some(100.0), Some("half\nway"));
        }
        number(&ctx, "n").await?;
        ctx.progress(0.5, Some(f64::NAN), None);
        ctx.progress(-1.0, None, None);
        Ok(ToolResult::text(format!("{}", ctx.wants_progress())))
    });
    let (none, first) = events(&world, &json!({}), &json!({}));
    assert_eq!(none, Vec::<Value>::new());
    for token in [json!("p"), json!(7), json!("")] {
        let (sent, reply) = events(&world, &json!({"progressToken": token}), &json!({}));
        let params = |progress: Value| json!({"progressToken": token, "progress": progress, "total": 100, "message": "half\nway"});
        let shown: Vec<&Value> = sent.iter().map(|message| &message["params"]).collect();
        assert_eq!(shown.len(), 4, "{shown:?}");
        assert_eq!(shown[..3], [&params(json!(0)), &params(json!(50)), &params(json!(50.5))]);
        assert_eq!(shown[3]["progress"].as_f64(), Some(1e21));
        assert!(sent.iter().all(|message| message["method"] == "notifications/progress"));
        // The retry has its own token, and reports only what is new.
        let answers = json!({"requestState": reply["result"]["requestState"], "inputResponses": {"n": accept(json!({"n": 1}))}});
        let (sent, reply) = events(&world, &json!({"progressToken": "other"}), &answers);
        let shown: Vec<&Value> = sent.iter().map(|message| &message["params"]).collect();
        assert_eq!(shown, [&json!({"progressToken": "other", "progress": 0.5})]);
        assert_eq!(reply["result"]["content"][0]["text"], "true");
    }
    let answers = json!({"requestState": first["result"]["requestState"], "inputResponses": {"n": accept(json!({"n": 1}))}});
    let (none, reply) = events(&world, &json!({}), &answers);
    assert_eq!((none, &reply["result"]["content"][0]["text"]), (Vec::<Value>::new(), &json!("false")));
}

/// logs only from the level that this request asked for, and not again for what has run before.
#[test]
fn r_198_logs() {
    let levels = [
        LogLevel::Debug,
        LogLevel::Info,
        LogLevel::Notice,
        LogLevel::Warning,
        LogLevel::Error,
        LogLevel::Critical,
        LogLevel::Alert,
        LogLevel::Emergency,
    ];
    let world = World::new(move |ctx: Ctx| async move {
        for level in levels {
            ctx.log(level, &json!({"text": "two\nlines"}));
        }
        number(&ctx, "n").await?;
        ctx.log(LogLevel::Emergency, "after");
        ctx.log(LogLevel::Debug, &[1, 2]);
        Ok(ToolResult::new())
    });
    let (none, first) = events(&world, &json!({}), &json!({}));
    assert_eq!(none, Vec::<Value>::new());
    for (index, level) in levels.iter().enumerate() {
        let meta = json!({"io.modelcontextprotocol/logLevel": level.name()});
        let (sent, _) = events(&world, &meta, &json!({}));
        let shown: Vec<_> =
            sent.iter().map(|message| message["params"]["level"].as_str().expect("a level")).collect();
        assert_eq!(shown, levels[index..].iter().map(|level| level.name()).collect::<Vec<_>>());
        assert!(sent.iter().all(|message| message["method"] == "notifications/message"
            && message["params"]["data"]["text"] == "two\nlines"));
        let answers = json!({"requestState": first["result"]["requestState"], "inputResponses": {"n": {"action": "decline"}}});
        let (sent, _) = events(&world, &meta, &answers);
        assert_eq!(sent.len(), if *level == LogLevel::Debug { 2 } else { 1 }, "{level:?}");
        assert_eq!(sent[0]["params"], json!({"level": "emergency", "data": "after"}));
        // A retry that does not ask for logs gets none.
        assert_eq!(events(&world, &json!({}), &answers).0, Vec::<Value>::new());
    }
}

/// a request that asks in every way sends no other kind of message.
#[test]
fn r_135_nothing_else_is_ever_sent() {
    let world = World::new(|ctx: Ctx| async move {
        let (url, form) =
            futures::future::join(ctx.elicit_url("u", "m", "https://example.com"), number(&ctx, "n")).await;
        Ok(ToolResult::text(format!("{:?} {}", url?, super::shown(form))))
    });
    let meta = json!({"progressToken": 1, "io.modelcontextprotocol/logLevel": "debug",
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}, "url": {}}}});
    let (none, first) = events(&world, &meta, &json!({}));
    let answers = json!({"u": {"action": "accept"}, "n": accept(json!({"n": 1}))});
    let (none_either, done) = events(
        &world,
        &meta,
        &json!({"requestState": first["result"]["requestState"], "inputResponses": answers}),
    );
    assert_eq!((none.len(), none_either.len()), (0, 0));
    assert_eq!(done["result"]["content"][0]["text"], "Accept 1");
}

/// a run that is dropped has sent nothing and left nothing behind.
#[test]
fn r_187_a_dropped_run_is_cancelled() {
    let dropped = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    struct Guard(std::sync::Arc<std::sync::atomic::AtomicUsize>);
    impl Drop for Guard {
        fn drop(&mut self) {
            self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        }
    }
    let count = dropped.clone();
    let mut world = World::new(move |ctx: Ctx| {
        let guard = Guard(count.clone());
        async move {
            ctx.on_commit(|| panic!("a cancelled run does not commit"));
            futures::future::pending::<()>().await;
            drop(guard);
            Ok(ToolResult::new())
        }
    });
    let message = world.request("tools/call", json!({"name": "t"})).to_string();
    let env = RoundEnv::new(world.now, Entropy::new([9; 32]), Principal::Anonymous);
    let Reception::Run(mut run) = world.service.receive(message.as_bytes(), env) else { panic!("no run") };
    let mut out = Vec::new();
    assert!(run.poll_run(&mut Context::from_waker(Waker::noop()), world.now, &mut out).is_pending());
    drop(run);
    assert!(out.is_empty());
    assert_eq!(dropped.load(std::sync::atomic::Ordering::Relaxed), 1);
}
