//! Checkpoints, values that stay the same, commits: A10, A11, A12.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures::{
    future::{self, FutureExt},
    stream::{FuturesUnordered, StreamExt},
};
use mrtr_core::{
    Limits,
    form::{Field, Form},
    handler::{Ctx, RpcError, ToolResult},
    tape::{OnDivergence, TapePolicy},
    wire::Sampling,
};
use mrtr_tests::world::{World, accept, cancel};
use serde_json::json;

use super::{form, number, shown};

/// A10, R-066, R-058: a checkpoint alone is a state-only round; with an ask open it rides in that round.
#[test]
fn a10_checkpoints() {
    let mut world = World::new(|ctx: Ctx| async move {
        ctx.checkpoint().await?;
        ctx.checkpoint().await?;
        let (n, ()) = future::try_join(number(&ctx, "n"), ctx.checkpoint()).await?;
        Ok(ToolResult::text(shown(Ok(n))))
    });
    let mut last = world.call(json!({}));
    for _ in 0..2 {
        assert!(last.result().get("inputRequests").is_none(), "{last:?}");
        last = world.call(json!({"requestState": last.state()}));
    }
    assert_eq!(last.keys(), ["n"]);
    assert_eq!(world.retry(&last, json!({"n": accept(json!({"n": 1}))})).text(), "1");
}

/// A6, A10: a silent round beside a checkpoint neither sends nor passes it, and replays as it was.
#[test]
fn a10_a_checkpoint_beside_an_optional_ask_that_cannot_be_asked() {
    let mut policy = TapePolicy::default();
    policy.divergence = OnDivergence::Fail;
    let mut world = World::with(Limits::default(), policy, |ctx: Ctx| async move {
        let (roots, ()) =
            future::join(ctx.roots("r").optional(), async { ctx.checkpoint().await.unwrap_or(()) }).await;
        let n = number(&ctx, "n").await;
        Ok(ToolResult::text(format!("{} {}", roots.is_err(), shown(n))))
    });
    world.capabilities = json!({"elicitation": {}});
    let first = world.call(json!({}));
    assert!(first.keys().is_empty());
    let second = world.call(json!({"requestState": first.state()}));
    assert_eq!(second.keys(), ["n"]);
    assert_eq!(world.retry(&second, json!({"n": accept(json!({"n": 1}))})).text(), "true 1");
}

/// A10, A3: whoever had a look at an errand was polled for it, and is polled for it on every replay: here that decides what
/// the next question says.
#[test]
fn a10_a_look_at_an_errand_keeps_its_place_in_the_order() {
    let mut world = World::new(|ctx: Ctx| async move {
        let url = ctx.elicit_url("url", "Open", "https://example.org/").until(|| future::ready(false));
        let (b, a) = (number(&ctx, "b"), number(&ctx, "a"));
        let order = Mutex::new(String::new());
        let first = async {
            let a = async {
                let _ = a.await;
                order.lock().expect("unpoisoned").push('a');
            };
            format!("{:?}", future::join(url, a).await.0)
        };
        let second = async {
            let _ = b.await;
            order.lock().expect("unpoisoned").push('b');
            let message = order.lock().expect("unpoisoned").clone();
            shown(ctx.elicit("c", &form(&message)).await)
        };
        let mut both: FuturesUnordered<_> =
            [first.left_future(), second.right_future()].into_iter().collect();
        let mut said = Vec::new();
        while let Some(one) = both.next().await {
            said.push(one);
        }
        Ok(ToolResult::text(said.join(" ")))
    });
    let yes = accept(json!({"n": 1}));
    let first = world.call(json!({}));
    let all = json!({"url": {"action": "accept"}, "a": yes, "b": yes});
    let second = world.retry(&first, all);
    assert_eq!((second.keys(), second.message("c")), (vec!["url", "c"], "ab"));
    let third = world.retry(&second, json!({"c": accept(json!({"n": 2}))}));
    assert_eq!(third.keys(), ["url"]);
    assert_eq!(world.retry(&third, json!({"url": cancel()})).text(), "2 Ok(Cancel)");
}

/// A10: state-only rounds have a cap of their own and cost the state next to nothing.
#[test]
fn a10_state_only_rounds_are_capped_and_counted() {
    let mut world = World::new(|ctx: Ctx| async move {
        loop {
            ctx.checkpoint().await?;
        }
        #[allow(unreachable_code)]
        Ok(ToolResult::new())
    });
    let mut last = world.call(json!({}));
    let mut sizes = vec![last.state().len()];
    for _ in 1..60 {
        last = world.call(json!({"requestState": last.state()}));
        sizes.push(last.state().len());
    }
    assert!(sizes[59] <= sizes[1] + 4, "{sizes:?}");
    let over = world.call(json!({"requestState": last.state()}));
    let (code, message) = over.error();
    assert_eq!(code, -32603);
    assert!(message.contains("Limits::state_only_rounds"), "{message}");
}

/// A11: a once-value is made once per exchange, named values are memory, time and seed stay the same.
#[test]
fn a11_what_stays_the_same_from_run_to_run() {
    let made = Arc::new(AtomicUsize::new(0));
    let counter = made.clone();
    let mut world = World::new(move |ctx: Ctx| {
        let counter = counter.clone();
        async move {
            let first = ctx.once("id", || counter.fetch_add(1, Ordering::Relaxed))?;
            let second = ctx.once("id", || counter.fetch_add(1, Ordering::Relaxed))?;
            let third = ctx.once_async("other", async { counter.fetch_add(1, Ordering::Relaxed) }).await?;
            let attempts: u32 = ctx.get("attempts").unwrap_or(0) + 1;
            ctx.set("attempts", &attempts)?;
            let before = (ctx.started(), ctx.seed());
            let _ = number(&ctx, "n").await;
            Ok(ToolResult::text(format!(
                "{first} {second} {third} {attempts} {:?} {:02x?}",
                before.0,
                &before.1[..4]
            )))
        }
    });
    let first = world.call(json!({}));
    world.pass(Duration::from_secs(5));
    let a = world.retry(&first, json!({"n": accept(json!({"n": 1}))}));
    let b = world.retry(&first, json!({"n": accept(json!({"n": 1}))}));
    assert_eq!(a.text(), b.text());
    assert!(a.text().starts_with("0 1 2 2 Timestamp(1800000000000)"), "{}", a.text());
    assert_eq!(made.load(Ordering::Relaxed), 3);
}

/// A11: `keep` puts a projection into the state instead of the answer; every later run sees the projection.
#[test]
fn a11_keep_journals_a_projection() {
    let projected = Arc::new(AtomicUsize::new(0));
    let counter = projected.clone();
    let mut world = World::new(move |ctx: Ctx| {
        let counter = counter.clone();
        async move {
            let length = ctx
                .ask(
                    "text",
                    Form::builder("Paste it")
                        .field(Field::string("text").required())
                        .build()
                        .expect("valid")
                        .to_request(),
                )
                .keep(move |answer| {
                    counter.fetch_add(1, Ordering::Relaxed);
                    answer.accepted().map_or(0, |content| content.len())
                })
                .await?;
            let _ = number(&ctx, "n").await;
            Ok(ToolResult::text(length.to_string()))
        }
    });
    let first = world.call(json!({}));
    let second = world.retry(&first, json!({"text": accept(json!({"text": "x".repeat(4000)}))}));
    assert_eq!(second.keys(), ["n"]);
    assert!(second.state().len() < 600, "{}", second.state().len());
    let done = world.retry(&second, json!({"n": accept(json!({"n": 1}))}));
    assert_eq!(done.text(), "4011");
    assert_eq!(projected.load(Ordering::Relaxed), 1);
}

/// A12: what is left for the commit runs after success only, in order, and its error becomes the reply.
#[test]
fn a12_commits_run_after_success() {
    let log = Arc::new(std::sync::Mutex::new(Vec::new()));
    let inside = log.clone();
    let mut world = World::new(move |ctx: Ctx| {
        let log = inside.clone();
        async move {
            let mode: String = ctx.argument("mode")?;
            for step in 1..=3 {
                let (log, mode) = (log.clone(), mode.clone());
                ctx.on_commit_async(move || async move {
                    log.lock().expect("unpoisoned").push(step);
                    if mode == "broken" && step == 2 { Err(RpcError::internal("step 2")) } else { Ok(()) }
                });
            }
            let _ = number(&ctx, "n").await;
            match mode.as_str() {
                "error" => Err(RpcError::internal("no")),
                "is_error" => Ok(ToolResult::error("no")),
                _ => Ok(ToolResult::text("done")),
            }
        }
    });
    for (mode, steps) in
        [("good", vec![1, 2, 3]), ("error", vec![]), ("is_error", vec![]), ("broken", vec![1, 2])]
    {
        log.lock().expect("unpoisoned").clear();
        let first = world.call(json!({"arguments": {"mode": mode}}));
        assert_eq!(*log.lock().expect("unpoisoned"), Vec::<i32>::new());
        let done = world.call(json!({
            "arguments": {"mode": mode}, "requestState": first.state(), "inputResponses": {"n": accept(json!({"n": 1}))}
        }));
        assert_eq!(*log.lock().expect("unpoisoned"), steps, "{mode}");
        match mode {
            "good" => assert_eq!(done.text(), "done"),
            "is_error" => assert_eq!(done.result()["isError"], true),
            "broken" => assert_eq!(done.error(), (-32603, "step 2")),
            _ => assert_eq!(done.error(), (-32603, "no")),
        }
    }
}

/// A12: a step may leave further ones: they run after those that are there, and not at all behind one that fails.
#[test]
fn a12_what_a_step_leaves_is_done_in_its_turn() {
    let log = Arc::new(std::sync::Mutex::new(Vec::new()));
    let inside = log.clone();
    let mut world = World::new(move |ctx: Ctx| {
        let log = inside.clone();
        async move {
            let fails: bool = ctx.argument("fails")?;
            for step in 1..=2 {
                let (log, ctx2) = (log.clone(), ctx.clone());
                ctx.on_commit(move || {
                    log.lock().expect("unpoisoned").push(step);
                    ctx2.on_commit(move || {
                        log.lock().expect("unpoisoned").push(step + 10);
                        if fails { Err(RpcError::internal("broken")) } else { Ok(()) }
                    });
                    Ok(())
                });
            }
            Ok(ToolResult::text("done"))
        }
    });
    assert_eq!(world.call(json!({"arguments": {"fails": false}})).text(), "done");
    assert_eq!(*log.lock().expect("unpoisoned"), [1, 2, 11, 12]);
    log.lock().expect("unpoisoned").clear();
    assert_eq!(world.call(json!({"arguments": {"fails": true}})).error(), (-32603, "broken"));
    assert_eq!(*log.lock().expect("unpoisoned"), [1, 2, 11]);
}

/// A11, B-86: a handler that asks for the whole answer where only a projection of it was kept, after a deploy say, is told so:
/// the answer is not what nobody said.
#[test]
fn a11_a_projection_is_not_taken_for_an_answer() {
    for kind in ["form", "confirm", "sample", "roots"] {
        let keeps = Arc::new(AtomicUsize::new(1));
        let inside = keeps.clone();
        let mut world = World::new(move |ctx: Ctx| {
            let keeps = inside.load(Ordering::Relaxed) == 1;
            async move {
                let said = match (kind, keeps) {
                    ("form", true) => number(&ctx, "n").keep(|_| 1).await.map(|_| ()),
                    ("form", false) => number(&ctx, "n").await.map(|_| ()),
                    ("confirm", true) => ctx.confirm("n", "?").keep(|_| 1).await.map(|_| ()),
                    ("confirm", false) => ctx.confirm("n", "?").await.map(|_| ()),
                    ("sample", true) => ctx.sample("n", &Sampling::new(9)).keep(|_| 1).await.map(|_| ()),
                    ("sample", false) => ctx.sample("n", &Sampling::new(9)).await.map(|_| ()),
                    (_, true) => ctx.roots("n").keep(|_| 1).await.map(|_| ()),
                    (_, false) => ctx.roots("n").await.map(|_| ()),
                };
                let _ = number(&ctx, "next").await;
                Ok(ToolResult::text(format!("{said:?}")))
            }
        });
        let answer = match kind {
            "sample" => json!({"role": "user", "model": "m", "content": []}),
            "roots" => json!({"roots": []}),
            _ => accept(json!({"n": 1})),
        };
        let first = world.call(json!({}));
        let second = world.retry(&first, json!({"n": answer}));
        assert_eq!(second.keys(), ["next"], "{kind}");
        let next = json!({"next": accept(json!({"n": 1}))});
        assert_eq!(world.retry(&second, next.clone()).text(), "Ok(())");
        keeps.store(0, Ordering::Relaxed);
        let said = world.retry(&second, next);
        assert!(said.text().starts_with("Err(Invalid("), "{kind}: {}", said.text());
    }
}
