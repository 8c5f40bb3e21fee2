//! Runs under a runtime: what else than answers may wake a handler, how long a replayed round waits, how a run ends.

use std::{
    pin::Pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll, Waker},
    time::Duration,
};

use mrtr_core::{
    Entropy, RpcError, Timestamp,
    handler::{Ctx, Reception, Run, RunEvent, ToolResult},
    seal::Principal,
    server::RoundEnv,
};
use mrtr_tests::world::{Reply, World, accept, lawful};
use serde_json::{Value, json};

use super::{number, shown};

/// Something outside that a handler waits for.
#[derive(Clone, Default)]
struct Outside(Arc<Mutex<(bool, Option<Waker>)>>);

impl Outside {
    fn set(&self, open: bool) {
        let mut inner = self.0.lock().expect("unpoisoned");
        inner.0 = open;
        if let Some(waker) = inner.1.take().filter(|_| open) {
            waker.wake();
        }
    }
}

impl Future for Outside {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut inner = self.0.lock().expect("unpoisoned");
        if inner.0 {
            return Poll::Ready(());
        }
        inner.1 = Some(cx.waker().clone());
        Poll::Pending
    }
}

/// A request on its way: the message must live as long as its run.
fn message(world: &mut World, last: Option<(&Reply, Value)>) -> Vec<u8> {
    let mut params = json!({"name": "t"});
    if let Some((last, answers)) = last {
        params["requestState"] = json!(last.state());
        params["inputResponses"] = answers;
    }
    world.request("tools/call", params).to_string().into_bytes()
}

fn start<'a>(world: &World, message: &'a [u8], draw: u8) -> Run<'a> {
    match world
        .service
        .receive(message, RoundEnv::new(world.now, Entropy::new([draw; 32]), Principal::Anonymous))
    {
        Reception::Run(run) => run,
        other => panic!("no run: {other:?}"),
    }
}

fn poll(run: &mut Run<'_>, now: Timestamp) -> Option<Reply> {
    let mut out = Vec::new();
    match run.poll_run(&mut Context::from_waker(Waker::noop()), now, &mut out) {
        Poll::Ready(RunEvent::Finished(_)) => Some(Reply(lawful(&out))),
        Poll::Ready(other) => panic!("{other:?}"),
        Poll::Pending => {
            assert!(out.is_empty());
            None
        }
    }
}

/// A handler that asks `a` at once and `b` once something outside has happened.
fn beside(outside: &Outside) -> World {
    let outside = outside.clone();
    let mut world = World::new(move |ctx: Ctx| {
        let outside = outside.clone();
        async move {
            let late = async {
                outside.await;
                shown(number(&ctx, "b").await)
            };
            let (a, b) = futures::future::join(number(&ctx, "a"), late).await;
            Ok(ToolResult::text(format!("{} {b}", shown(a))))
        }
    });
    world.principal = None;
    world
}

/// A2: under a runtime, waiting for something else than an answer is plain waiting.
#[test]
fn a2_waiting_for_the_outside() {
    let outside = Outside::default();
    let inside = outside.clone();
    let mut world = World::new(move |ctx: Ctx| {
        let inside = inside.clone();
        async move {
            inside.await;
            Ok(ToolResult::text(shown(number(&ctx, "n").await)))
        }
    });
    let sent = message(&mut world, None);
    let mut run = start(&world, &sent, 1);
    assert_eq!((poll(&mut run, world.now), run.wake_at()), (None, None));
    outside.set(true);
    assert_eq!(poll(&mut run, world.now).expect("finished").keys(), ["n"]);
}

/// A3: asks that come earlier on replay than they did before are benign: they stay open and go out next.
#[test]
fn a3_further_asks_on_replay_stay_open() {
    let outside = Outside::default();
    let mut world = beside(&outside);
    let sent = message(&mut world, None);
    let first = poll(&mut start(&world, &sent, 1), world.now).expect("finished");
    assert_eq!(first.keys(), ["a"]);
    outside.set(true);
    let sent = message(
        &mut world,
        Some((&first, json!({"a": accept(json!({"n": 1})), "b": accept(json!({"n": 9}))}))),
    );
    let second = poll(&mut start(&world, &sent, 2), world.now).expect("finished");
    assert_eq!(second.keys(), ["b"]);
    let sent = message(&mut world, Some((&second, json!({"b": accept(json!({"n": 2}))}))));
    assert_eq!(poll(&mut start(&world, &sent, 3), world.now).expect("finished").text(), "1 2");
}

/// A3: a replayed round that is short of asks waits for them, up to the patience; then it is a divergence, which keeps
/// what is still the same question.
#[test]
fn a3_a_short_round_waits() {
    for comes in [true, false] {
        let outside = Outside::default();
        outside.set(true);
        let mut world = beside(&outside);
        let sent = message(&mut world, None);
        let first = poll(&mut start(&world, &sent, 1), world.now).expect("finished");
        assert_eq!(first.keys(), ["a", "b"]);
        outside.set(false);
        let sent = message(
            &mut world,
            Some((&first, json!({"a": accept(json!({"n": 1})), "b": accept(json!({"n": 2}))}))),
        );
        let mut run = start(&world, &sent, 2);
        let begin = world.now;
        assert_eq!(poll(&mut run, begin), None);
        assert_eq!(run.wake_at(), Some(begin.saturating_add(Duration::from_secs(2))));
        let nearly = begin.saturating_add(Duration::from_millis(1_999));
        assert_eq!(poll(&mut run, nearly), None);
        if comes {
            outside.set(true);
            assert_eq!(poll(&mut run, nearly).expect("finished").text(), "1 2");
            continue;
        }
        let patience = begin.saturating_add(Duration::from_secs(2));
        assert_eq!((poll(&mut run, patience), run.wake_at()), (None, None));
        outside.set(true);
        // The answer to `b` was for a round that is no longer the last: it is asked again.
        let asked = poll(&mut run, patience).expect("finished");
        assert_eq!(asked.keys(), ["b"]);
        let sent = message(&mut world, Some((&asked, json!({"b": accept(json!({"n": 3}))}))));
        assert_eq!(poll(&mut start(&world, &sent, 3), world.now).expect("finished").text(), "1 3");
    }
}

/// A12: a commit may wait for the outside; a panic in one, and in the handler before its first await, says nothing.
#[test]
#[cfg_attr(panic = "abort", ignore = "a panic ends the process")]
fn a12_commits_under_a_runtime() {
    let outside = Outside::default();
    let (inside, steps) = (outside.clone(), Arc::new(AtomicUsize::new(0)));
    let count = steps.clone();
    let mut world = World::new(move |ctx: Ctx| {
        let (inside, count) = (inside.clone(), count.clone());
        async move {
            ctx.on_commit_async(move || async move {
                inside.await;
                count.fetch_add(1, Ordering::Relaxed);
                Ok(())
            });
            if ctx.args::<Value>()?["panic"] == true {
                ctx.on_commit(|| panic!("the secret is 42"));
            }
            Ok(ToolResult::text("done"))
        }
    });
    let sent = message(&mut world, None);
    let mut run = start(&world, &sent, 1);
    assert!(!run.is_committing());
    assert_eq!(poll(&mut run, world.now), None);
    assert!(run.is_committing());
    assert_eq!(steps.load(Ordering::Relaxed), 0);
    outside.set(true);
    assert_eq!(poll(&mut run, world.now).expect("finished").text(), "done");
    assert_eq!(steps.load(Ordering::Relaxed), 1);
    assert_eq!(world.call(json!({"arguments": {"panic": true}})).error(), (-32603, "Internal error"));
    let mut world = World::new(|ctx: Ctx| {
        assert!(ctx.target() == "u", "the secret is 42");
        async move { Ok::<_, RpcError>(ToolResult::new()) }
    });
    assert_eq!(world.call(json!({})).error(), (-32603, "Internal error"));
}

/// A2: a handler that wakes itself lets others run, and gets there.
#[test]
fn a2_a_handler_that_wakes_itself_yields() {
    let mut world = World::new(|_: Ctx| async move {
        for _ in 0..1_000 {
            let mut first = true;
            futures::future::poll_fn(|cx| {
                cx.waker().wake_by_ref();
                if std::mem::take(&mut first) { Poll::Pending } else { Poll::Ready(()) }
            })
            .await;
        }
        Ok(ToolResult::text("there"))
    });
    let sent = message(&mut world, None);
    let mut run = start(&world, &sent, 1);
    let polls = (1..).find(|_| poll(&mut run, world.now).is_some()).expect("it ends");
    assert!((2..20).contains(&polls), "{polls}");
    assert_eq!(world.call(json!({})).text(), "there");
}
