//! Handlers that misbehave: panic, never wake, wake without end.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
    time::Duration,
};

use mrtr_core::{
    Timestamp,
    handler::{Ctx, RunEvent, ToolResult},
};
use mrtr_tests::world::START;
use serde_json::json;
use tokio::time::{sleep, timeout};

use super::{Room, n, number, shown};

/// The guarantee "no panic": before, between and after asks, under a runtime too.
#[tokio::test(start_paused = true)]
async fn a_panic_is_an_internal_error() {
    let mut room = Room::new(|ctx: Ctx| async move {
        let when: u32 = ctx.argument("when")?;
        assert!(when != 0, "the secret is 42");
        let a = number(&ctx, "a").await;
        sleep(Duration::from_millis(1)).await;
        assert!(when != 1, "the secret is 42");
        ctx.on_commit(|| panic!("the secret is 42"));
        Ok(ToolResult::text(shown(a)))
    });
    for when in [0, 1, 2] {
        let params = json!({"arguments": {"when": when}});
        let mut last = room.call(params.clone()).await;
        if when > 0 {
            let answer = json!({
                "arguments": {"when": when}, "requestState": last.state(), "inputResponses": {"a": n(1)}
            });
            last = room.call(answer).await;
        }
        assert_eq!(last.error(), (-32603, "Internal error"));
        assert!(!last.0.to_string().contains("42"));
    }
}

/// A2: a run that nothing wakes waits without a time of its own; what ends it is the embedder's timeout.
#[tokio::test(start_paused = true)]
async fn a2_a_run_that_never_wakes_can_be_dropped() {
    let mut room = Room::new(|_: Ctx| async move {
        std::future::pending::<()>().await;
        Ok(ToolResult::new())
    });
    room.with_run(json!({}), async |mut run, clock| {
        let mut out = Vec::new();
        let mut cx = Context::from_waker(Waker::noop());
        assert!(run.poll_run(&mut cx, clock.now(), &mut out).is_pending());
        assert_eq!(run.wake_at(), None);
        assert!(timeout(Duration::from_secs(600), super::drive(run, clock)).await.is_err());
    })
    .await;
}

struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// A handler that wakes itself without end lets others run after a bounded number of polls.
#[test]
fn a_handler_that_wakes_itself_lets_others_run() {
    let polls = Arc::new(AtomicUsize::new(0));
    let counter = polls.clone();
    let mut world = mrtr_tests::world::World::new(move |_: Ctx| {
        let counter = counter.clone();
        async move {
            std::future::poll_fn(|cx| {
                counter.fetch_add(1, Ordering::Relaxed);
                cx.waker().wake_by_ref();
                Poll::<()>::Pending
            })
            .await;
            Ok(ToolResult::new())
        }
    });
    let request = world.tool_call(&json!({})).to_string();
    let mrtr_core::handler::Reception::Run(mut run) = world.receive(request.as_bytes()) else {
        panic!("a run")
    };
    let count = Arc::new(Count(AtomicUsize::new(0)));
    let waker = Waker::from(count.clone());
    let mut out = Vec::new();
    for turn in 1..=10 {
        let before = count.0.load(Ordering::Relaxed);
        let now = Timestamp::from_unix_millis(START);
        assert!(run.poll_run(&mut Context::from_waker(&waker), now, &mut out).is_pending());
        assert!(polls.load(Ordering::Relaxed) <= turn * 200, "{polls:?} polls in {turn} turns");
        assert!(count.0.load(Ordering::Relaxed) > before, "it asks to be polled again");
    }
}

/// A waiting run is not woken by its own polls.
#[test]
fn a_waiting_run_does_not_wake_itself() {
    let mut world = mrtr_tests::world::World::new(|ctx: Ctx| async move {
        let a = number(&ctx, "a");
        let io = std::future::pending::<()>();
        futures::future::join(async { drop(a) }, io).await;
        Ok(ToolResult::new())
    });
    let request = world.tool_call(&json!({})).to_string();
    let mrtr_core::handler::Reception::Run(mut run) = world.receive(request.as_bytes()) else {
        panic!("a run")
    };
    let count = Arc::new(Count(AtomicUsize::new(0)));
    let waker = Waker::from(count.clone());
    let mut out = Vec::new();
    for _ in 0..100 {
        let now = Timestamp::from_unix_millis(START);
        assert!(run.poll_run(&mut Context::from_waker(&waker), now, &mut out).is_pending());
    }
    assert_eq!(count.0.load(Ordering::Relaxed), 0);
}

/// A storm of wakes from other threads, while asks come and go: the outcome is the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_storm_of_wakes_changes_nothing() {
    let mut room = Room::new(|ctx: Ctx| async move {
        let stop = Arc::new(AtomicBool::new(false));
        let wakers: Arc<std::sync::Mutex<Option<Waker>>> = Arc::default();
        let storm: Vec<_> = (0..2)
            .map(|_| {
                let (stop, wakers) = (stop.clone(), wakers.clone());
                std::thread::spawn(move || {
                    while !stop.load(Ordering::Relaxed) {
                        if let Some(waker) = &*wakers.lock().expect("unpoisoned") {
                            waker.wake_by_ref();
                        }
                        std::thread::yield_now();
                    }
                })
            })
            .collect();
        struct Calm(Arc<AtomicBool>, Vec<std::thread::JoinHandle<()>>);
        impl Drop for Calm {
            fn drop(&mut self) {
                self.0.store(true, Ordering::Relaxed);
                self.1.drain(..).for_each(|thread| thread.join().expect("no panic"));
            }
        }
        let _calm = Calm(stop, storm);
        let mut text = String::new();
        for key in ["a", "b", "c"] {
            let ask = number(&ctx, key);
            let stormy = std::future::poll_fn(|cx| {
                *wakers.lock().expect("unpoisoned") = Some(cx.waker().clone());
                Poll::Ready(())
            });
            let (answer, ()) = futures::future::join(ask, stormy).await;
            text.push_str(&shown(answer));
        }
        Ok(ToolResult::text(text))
    });
    let mut last = room.call(json!({})).await;
    for (key, number) in [("a", 1), ("b", 2), ("c", 3)] {
        assert_eq!(last.keys(), [key]);
        last = room.retry(&last, json!({ key: n(number) })).await;
    }
    assert_eq!(last.text(), "123");
}

/// A run that is over stays over.
#[tokio::test(start_paused = true)]
async fn a_finished_run_stays_finished() {
    let mut room = Room::new(|_: Ctx| async move { Ok(ToolResult::text("done")) });
    room.with_run(json!({}), async |mut run, clock| {
        let mut out = Vec::new();
        let mut cx = Context::from_waker(Waker::noop());
        let event = run.poll_run(&mut cx, clock.now(), &mut out);
        assert!(matches!(event, Poll::Ready(RunEvent::Finished(_))));
        out.clear();
        assert!(run.poll_run(&mut cx, clock.now(), &mut out).is_pending());
        assert!(out.is_empty());
    })
    .await;
}
