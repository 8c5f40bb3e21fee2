//! Asks in spawned tasks: they work, they end, they leave nothing behind (A2, A9).

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use mrtr_core::{
    handler::{Ctx, Reception, RpcError, RunEvent, ToolResult},
    wire::LogLevel,
};
use serde_json::json;
use tokio::{runtime::Handle, sync::mpsc, time::sleep};

use super::{Room, n, number, shown};

fn lost(_: tokio::task::JoinError) -> RpcError {
    RpcError::internal("a task was lost")
}

/// Two asks, each in a task of its own.
async fn in_tasks(ctx: Ctx) -> super::Result<ToolResult> {
    let tasks = ["a", "b"].map(|key| {
        let ctx = ctx.clone();
        tokio::spawn(async move { shown(number(&ctx, key).await) })
    });
    let [a, b] = tasks;
    Ok(ToolResult::text(format!("{} {}", a.await.map_err(lost)?, b.await.map_err(lost)?)))
}

/// Waits until as many tasks are alive as before. A leak fails; a busy machine does not.
async fn settled(before: usize) {
    let alive = || Handle::current().metrics().num_alive_tasks();
    for _ in 0..5_000 {
        if alive() == before {
            return;
        }
        sleep(Duration::from_millis(1)).await;
    }
    assert_eq!(alive(), before, "tasks were left behind");
}

/// A1, A2: what a spawned task asks is seen although the handler itself waits for something else; tasks of a
/// suspended attempt end.
async fn tasks_ask_and_end() {
    let before = Handle::current().metrics().num_alive_tasks();
    let mut room = Room::new(in_tasks);
    let mut last = room.call(json!({})).await;
    let mut given = json!({});
    for _ in 0..4 {
        settled(before).await;
        if last.result()["resultType"] == "complete" {
            break;
        }
        for key in last.keys() {
            given[key] = n(if key == "a" { 1 } else { 2 });
        }
        last = room.retry(&last, given.clone()).await;
    }
    assert_eq!(last.text(), "1 2");
}

#[tokio::test(start_paused = true)]
async fn a2_tasks_ask_and_end_on_one_thread() {
    tasks_ask_and_end().await;
}

// Which of the two is asked first, and whether together, is up to the threads; the outcome is not.
#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a2_tasks_ask_and_end_on_many_threads() {
    for _ in 0..50 {
        tasks_ask_and_end().await;
    }
}

/// Asks in detached tasks resolve to `Ended` when the attempt suspends, ends, or is dropped.
#[tokio::test(start_paused = true)]
async fn asks_of_ended_attempts_resolve_to_ended() {
    let before = Handle::current().metrics().num_alive_tasks();
    let (sender, mut ends) = mpsc::unbounded_channel();
    let mut room = Room::new(move |ctx: Ctx| {
        let sender = sender.clone();
        async move {
            let ask = number(&ctx, "detached");
            let late = ctx.clone();
            tokio::spawn(async move {
                let ended = shown(ask.await);
                // What is asked after the end has nobody to answer it, and must not wait for ever.
                let again = shown(number(&late, "later").await);
                let _ = sender.send(format!("{ended} {again}"));
            });
            tokio::task::yield_now().await;
            match ctx.argument::<String>("mode")?.as_str() {
                "panic" => panic!("on purpose"),
                _ => {
                    std::future::pending::<()>().await;
                    Ok(ToolResult::new())
                }
            }
        }
    });
    let suspended = room.call(json!({"arguments": {"mode": "suspend"}})).await;
    assert_eq!(suspended.keys(), ["detached"]);
    assert_eq!(ends.recv().await.as_deref(), Some("Ended Ended"));
    let failed = room.call(json!({"arguments": {"mode": "panic"}})).await;
    assert_eq!(failed.error().0, -32603);
    assert_eq!(ends.recv().await.as_deref(), Some("Ended Ended"));
    settled(before).await;
}

/// Dropping a run in mid-flight: its tasks' asks end, and nothing is left of it.
#[tokio::test(start_paused = true)]
async fn a_run_dropped_in_mid_flight_leaves_nothing() {
    let before = Handle::current().metrics().num_alive_tasks();
    let (sender, mut ends) = mpsc::unbounded_channel();
    let mut room = Room::new(move |ctx: Ctx| {
        let sender = sender.clone();
        async move {
            let ask = number(&ctx, "a");
            tokio::spawn(async move {
                sleep(Duration::from_secs(60)).await;
                let _ = sender.send(shown(ask.await));
            });
            sleep(Duration::from_secs(3_600)).await;
            Ok(ToolResult::new())
        }
    });
    room.with_run(json!({}), async |run, clock| {
        let driven = tokio::time::timeout(Duration::from_secs(1), super::drive(run, clock)).await;
        assert!(driven.is_err());
    })
    .await;
    assert_eq!(Handle::current().metrics().num_alive_tasks(), before + 1);
    assert_eq!(ends.recv().await.as_deref(), Some("Ended"));
    settled(before).await;
}

/// what a spawned task says, or a commit that waits, goes out when it is said and not with the reply.
#[tokio::test(start_paused = true)]
async fn r195_notifications_of_tasks_and_commits_go_out_at_once() {
    let mut room = Room::new(|ctx: Ctx| async move {
        let (inside, commit) = (ctx.clone(), ctx.clone());
        tokio::spawn(async move {
            sleep(Duration::from_secs(1)).await;
            inside.log(LogLevel::Info, "from a task");
            sleep(Duration::from_secs(3_600)).await;
            // Long over: said to nobody.
            inside.log(LogLevel::Info, "too late");
        });
        ctx.on_commit_async(move || async move {
            commit.log(LogLevel::Info, "committing");
            sleep(Duration::from_secs(10)).await;
            Ok(())
        });
        sleep(Duration::from_secs(10)).await;
        Ok(ToolResult::text("done"))
    });
    let mut request = room.world.tool_call(&json!({}));
    request["params"]["_meta"]["io.modelcontextprotocol/logLevel"] = json!("info");
    let (request, clock) = (request.to_string(), room.clock);
    let Reception::Run(mut run) = room.world.receive(request.as_bytes()) else { panic!("a run") };
    let mut seen = Vec::new();
    loop {
        let mut out = Vec::new();
        let event = std::future::poll_fn(|cx| run.poll_run(cx, clock.now(), &mut out)).await;
        let message: serde_json::Value = serde_json::from_slice(&out).expect("JSON");
        seen.push((clock.0.elapsed().as_secs(), message["params"]["data"].clone()));
        if matches!(event, RunEvent::Finished(_)) {
            break;
        }
    }
    assert_eq!(seen, [(1, json!("from a task")), (10, json!("committing")), (20, json!(null))]);
}

/// A12: nobody answers what a commit asks, whether it was registered there or before: it ends at once instead of holding
/// the request for ever.
#[tokio::test(start_paused = true)]
async fn a12_what_a_commit_asks_ends_at_once() {
    let mut room = Room::new(|ctx: Ctx| async move {
        let (before, inside) = (number(&ctx, "before"), ctx.clone());
        ctx.on_commit_async(move || async move {
            assert_eq!(shown(before.await), "Ended");
            assert_eq!(shown(number(&inside, "inside").await), "Ended");
            inside.once("effect", || ())
        });
        Ok(ToolResult::text("done"))
    });
    assert_eq!(room.call(json!({})).await.text(), "done");
}

/// A9 (b), B-41: a handler that returns over a spawned task that holds an ask is asked all the same; a later run
/// that takes the answer has its value taken.
#[tokio::test(start_paused = true)]
async fn a9_returning_over_a_spawned_ask() {
    let runs = Arc::new(AtomicUsize::new(0));
    let counter = runs.clone();
    let mut room = Room::new(move |ctx: Ctx| {
        let patient = counter.fetch_add(1, Ordering::Relaxed) > 0;
        async move {
            let mut ask = number(&ctx, "a");
            assert!(futures::poll!(&mut ask).is_pending());
            let task = tokio::spawn(ask);
            if !patient {
                return Ok(ToolResult::text("unapproved"));
            }
            Ok(ToolResult::text(shown(task.await.map_err(lost)?)))
        }
    });
    let first = room.call(json!({})).await;
    assert_eq!(first.keys(), ["a"]);
    assert_eq!(room.retry(&first, json!({"a": n(5)})).await.text(), "5");
}

/// A9 (b): and one that never takes it never has its value taken.
#[tokio::test(start_paused = true)]
async fn a9_returning_over_it_again_is_an_error() {
    let mut room = Room::new(|ctx: Ctx| async move {
        let mut ask = number(&ctx, "a");
        assert!(futures::poll!(&mut ask).is_pending());
        tokio::spawn(ask);
        Ok(ToolResult::text("unapproved"))
    });
    let first = room.call(json!({})).await;
    assert_eq!(first.keys(), ["a"]);
    assert_eq!(room.retry(&first, json!({"a": n(5)})).await.error(), (-32603, "Internal error"));
}

/// A9 (c), A12: finishing withdraws what an earlier round asked and nobody answered. A detached task that waits for it
/// learns of the end as any other does, and is not left behind.
#[tokio::test(start_paused = true)]
async fn an_ask_that_finishing_withdraws_ends_where_it_is_waited_for() {
    let before = Handle::current().metrics().num_alive_tasks();
    let (sender, mut ends) = mpsc::unbounded_channel();
    let mut room = Room::new(move |ctx: Ctx| {
        let sender = sender.clone();
        async move {
            let aside = number(&ctx, "aside");
            let _detached = tokio::spawn(async move {
                let _ = sender.send(shown(aside.await));
            });
            tokio::task::yield_now().await;
            let shown = shown(number(&ctx, "main").await);
            if ctx.argument::<String>("mode")? == "error" {
                return Err(RpcError::internal("failed"));
            }
            Ok(ToolResult::text(shown))
        }
    });
    for mode in ["ok", "error"] {
        let arguments = json!({"arguments": {"mode": mode}});
        let asked = room.call(arguments.clone()).await;
        assert_eq!(asked.keys(), ["aside", "main"]);
        assert_eq!(ends.recv().await.as_deref(), Some("Ended"));
        let mut more = arguments;
        more["requestState"] = asked.result()["requestState"].clone();
        more["inputResponses"] = json!({"main": n(1)});
        let last = room.call(more).await;
        match mode {
            "ok" => assert_eq!(last.text(), "1"),
            _ => assert_eq!(last.error(), (-32603, "failed")),
        }
        let end = tokio::time::timeout(Duration::from_secs(9), ends.recv()).await;
        assert_eq!(end.ok().flatten().as_deref(), Some("Ended"), "{mode}");
    }
    settled(before).await;
}

/// A12: what is left for a commit after the attempt is over is dropped, and keeps nothing: also a step that holds its own
/// context.
#[tokio::test(start_paused = true)]
async fn a12_a_step_that_comes_too_late_is_dropped() {
    let (sender, mut contexts) = mpsc::unbounded_channel();
    let mut room = Room::new(move |ctx: Ctx| {
        let _ = sender.send(ctx);
        async { Ok(ToolResult::text("done")) }
    });
    assert_eq!(room.call(json!({})).await.text(), "done");
    let ctx = contexts.recv().await.unwrap();
    let held = Arc::new(());
    let (own, also) = (ctx.clone(), Arc::clone(&held));
    ctx.on_commit(move || {
        drop((own, also));
        Ok(())
    });
    assert_eq!(Arc::strong_count(&held), 1);
}

/// Wakers run foreign code, also when the last of one is dropped: never under the lock.
#[tokio::test(start_paused = true)]
async fn a_waker_that_is_replaced_may_use_the_context() {
    struct Uses(std::sync::Mutex<Option<Ctx>>);
    impl std::task::Wake for Uses {
        fn wake(self: Arc<Self>) {}
    }
    impl Drop for Uses {
        fn drop(&mut self) {
            let ctx = self.0.lock().unwrap().take();
            ctx.unwrap().on_commit(|| Ok(()));
        }
    }
    let mut room = Room::new(|ctx: Ctx| async move {
        let mut ask = number(&ctx, "a");
        let waker = std::task::Waker::from(Arc::new(Uses(std::sync::Mutex::new(Some(ctx.clone())))));
        assert!(std::pin::Pin::new(&mut ask).poll(&mut std::task::Context::from_waker(&waker)).is_pending());
        drop(waker);
        Ok(ToolResult::text(shown(ask.await)))
    });
    let first = room.call(json!({})).await;
    assert_eq!(room.retry(&first, json!({"a": n(5)})).await.text(), "5");
}
