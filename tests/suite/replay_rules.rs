//! The rules of replay, each trace through the public API: bytes in, bytes out, no runtime.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures::{future, stream::FuturesUnordered, stream::StreamExt};
use mrtr_core::{
    Limits,
    form::{Elicited, Field, Form},
    handler::{Ask, AskError, Ctx, RpcError, ToolResult},
    tape::{AfterEffects, OnDivergence, TapePolicy},
    wire::{Action, Sampling},
};
use mrtr_tests::world::{World, accept, cancel, decline};
use serde_json::{Value, json};

type Result<T> = std::result::Result<T, RpcError>;

/// A form of one integer `n` from 0 to 9.
fn form(message: &str) -> Form {
    Form::builder(message)
        .field(Field::integer("n").minimum(0).maximum(9).required())
        .build()
        .expect("a valid form")
}

fn number(ctx: &Ctx, key: &str) -> Ask<Elicited<Value>> {
    ctx.elicit(key, &form(key))
}

fn shown(answer: std::result::Result<Elicited<Value>, AskError>) -> String {
    match answer {
        Ok(Elicited::Accept(content)) => content["n"].to_string(),
        Ok(Elicited::Decline) => "declined".into(),
        Ok(Elicited::Cancel) => "cancelled".into(),
        Err(error) => format!("{error:?}"),
    }
}

async fn both(ctx: Ctx) -> Result<ToolResult> {
    let (a, b) = (number(&ctx, "a"), number(&ctx, "b"));
    let (a, b) = future::join(a, b).await;
    Ok(ToolResult::text(format!("{} {}", shown(a), shown(b))))
}

/// A1: asks register at the call, so two made side by side and awaited in turn share one round.
#[test]
fn a1_asks_made_side_by_side_share_a_round() {
    let mut world = World::new(|ctx: Ctx| async move {
        let (a, b) = (number(&ctx, "a"), number(&ctx, "b"));
        let (b, a) = (b.await, a.await);
        Ok(ToolResult::text(format!("{} {}", shown(a), shown(b))))
    });
    let first = world.call(json!({}));
    assert_eq!(first.keys(), ["a", "b"]);
    let done = world.retry(&first, json!({"a": accept(json!({"n": 1})), "b": accept(json!({"n": 2}))}));
    assert_eq!(done.text(), "1 2");
}

/// A1, G-37, R-059: keys outside the alphabet, and a key used while an earlier use is open, are faults of the handler.
#[test]
fn a1_bad_keys_and_keys_in_use_are_internal_errors() {
    for key in ["", "a b", "a#1", &"k".repeat(65), "é"] {
        let key = key.to_owned();
        let mut world = World::new(move |ctx: Ctx| {
            let key = key.clone();
            async move { Ok(ToolResult::text(shown(number(&ctx, &key).await))) }
        });
        assert_eq!(world.call(json!({})).error(), (-32603, "Internal error"));
    }
    let mut world = World::new(|ctx: Ctx| async move {
        let (a, b) = future::join(number(&ctx, "a"), number(&ctx, "a")).await;
        Ok(ToolResult::text(format!("{} {}", shown(a), shown(b))))
    });
    assert_eq!(world.call(json!({})).error(), (-32603, "Internal error"));
}

/// A2: a handler that waits for something that is no ask ends at once where there is no runtime.
#[test]
fn a2_waiting_for_nothing_is_a_stall() {
    let mut world = World::new(|_: Ctx| async move {
        future::pending::<()>().await;
        Ok(ToolResult::text("never"))
    });
    assert_eq!(world.call(json!({})).error(), (-32603, "Internal error"));
    // An ask that was made and not awaited does not block either.
    let mut world = World::new(|ctx: Ctx| async move {
        let _ask = number(&ctx, "a");
        future::pending::<()>().await;
        Ok(ToolResult::text("never"))
    });
    assert_eq!(world.call(json!({})).error(), (-32603, "Internal error"));
}

/// A2: a handler that only wakes itself is found out instead of running for ever.
#[test]
fn a2_spinning_ends() {
    let mut world = World::new(|_: Ctx| async move {
        future::poll_fn(|cx| {
            cx.waker().wake_by_ref();
            std::task::Poll::<()>::Pending
        })
        .await;
        Ok(ToolResult::text("never"))
    });
    assert_eq!(world.call(json!({})).error().0, -32603);
}

/// A3, A5, A6, R-067, R-082: a partial answer asks for the rest alone, under its old key, with a new state; what
/// was answered stays answered, and only keys of the last round are read.
#[test]
fn a6_partial_answers_ask_for_the_rest() {
    let mut world = World::new(both);
    let first = world.call(json!({}));
    let second = world.retry(&first, json!({"a": accept(json!({"n": 1}))}));
    assert_eq!(second.keys(), ["b"]);
    assert_ne!(first.state(), second.state());
    let done = world.retry(&second, json!({"b": accept(json!({"n": 2})), "a": accept(json!({"n": 9}))}));
    assert_eq!(done.text(), "1 2");
}

/// A6, R-082: nothing usable in a retry gives the same questions under the same keys and a new state (R-078).
#[test]
fn a6_nothing_usable_asks_the_same_again() {
    let mut world = World::new(both);
    let first = world.call(json!({}));
    for answers in [json!({}), json!({"wrong": accept(json!({}))})] {
        let again = world.retry(&first, answers);
        assert_eq!(again.keys(), ["a", "b"]);
        assert_ne!(again.state(), first.state());
    }
    // Without the member at all.
    let again = world.call(json!({"requestState": first.state()}));
    assert_eq!(again.keys(), ["a", "b"]);
}

/// A4, A5, G-18, R-132: content that does not fit is asked again under the same key with the reason, three times;
/// then the handler is told.
#[test]
fn a4_invalid_content_is_asked_again_three_times() {
    let mut world =
        World::new(|ctx: Ctx| async move { Ok(ToolResult::text(shown(number(&ctx, "n").await))) });
    let mut last = world.call(json!({}));
    for _ in 0..2 {
        last = world.retry(&last, json!({"n": accept(json!({"n": 10}))}));
        assert_eq!(last.keys(), ["n"]);
        let reason = last.result()["_meta"]["dev.mrtr/invalid"]["n"].as_str().expect("a reason").to_owned();
        assert!(reason.contains('9') && !reason.contains("10"), "{reason}");
    }
    let done = world.retry(&last, json!({"n": accept(json!({"n": 10}))}));
    assert!(done.text().starts_with("Invalid("), "{done:?}");
    // A good answer after a bad one counts.
    let mut last = world.call(json!({}));
    last = world.retry(&last, json!({"n": accept(json!({}))}));
    assert_eq!(world.retry(&last, json!({"n": accept(json!({"n": 3}))})).text(), "3");
}

/// A5, R-079, R-080, B-45: an answer whose structure does not fit what was asked is `-32602` with its path;
/// nothing runs, nothing is consumed.
#[test]
fn a5_wrong_structure_is_invalid_params_and_consumes_nothing() {
    let runs = Arc::new(AtomicUsize::new(0));
    let counted = runs.clone();
    let mut world = World::new(move |ctx: Ctx| {
        counted.fetch_add(1, Ordering::Relaxed);
        async move { Ok(ToolResult::text(shown(number(&ctx, "n").await))) }
    });
    let first = world.call(json!({}));
    for wrong in [
        json!(12345),
        json!(null),
        json!([]),
        json!({}),
        json!({"action": "yes"}),
        json!({"action": "accept", "content": 1}),
    ] {
        let before = runs.load(Ordering::Relaxed);
        let reply = world.retry(&first, json!({"n": wrong}));
        let (code, message) = reply.error();
        assert_eq!(code, -32602);
        assert!(message.contains("inputResponses[\"n\"]"), "{message}");
        assert_eq!(runs.load(Ordering::Relaxed), before);
    }
    assert_eq!(world.retry(&first, json!({"n": accept(json!({"n": 3}))})).text(), "3");
}

/// A7, R-083, G-08: an answer that comes before it was asked for is taken for a form, once.
#[test]
fn a7_answers_without_a_state_are_taken_for_forms() {
    let mut world = World::new(both);
    let done = world.call(json!({"inputResponses": {
        "a": accept(json!({"n": 1})), "b": accept(json!({"n": 2})), "junk": 5
    }}));
    assert_eq!(done.text(), "1 2");
    // Some of them: the rest is asked, and what was given travels in the state.
    let first = world.call(json!({"inputResponses": {"a": accept(json!({"n": 1}))}}));
    assert_eq!(first.keys(), ["b"]);
    assert_eq!(world.retry(&first, json!({"b": accept(json!({"n": 2}))})).text(), "1 2");
    // Structure that does not fit is an error here too.
    assert_eq!(world.call(json!({"inputResponses": {"a": 12345}})).error().0, -32602);
    // After the first live block they are spent.
    let mut world = World::new(|ctx: Ctx| async move {
        let a = shown(number(&ctx, "a").await);
        let b = shown(number(&ctx, "b").await);
        Ok(ToolResult::text(format!("{a} {b}")))
    });
    let first =
        world.call(json!({"inputResponses": {"a": accept(json!({"n": 1})), "b": accept(json!({"n": 2}))}}));
    assert_eq!(first.keys(), ["b"]);
}

/// A7: a confirmation is never taken from a request without a state. Trace "dropped state": the listing has grown
/// since the person said yes, and the client sends the call again with the yes and without the state.
#[test]
fn a7_a_confirmation_without_its_state_is_asked_anew() {
    let files = Arc::new(AtomicUsize::new(3));
    let listing = files.clone();
    let mut world = World::new(move |ctx: Ctx| {
        let count = listing.load(Ordering::Relaxed);
        async move {
            Ok(match ctx.confirm("confirm", format!("Delete {count} files?")).await? {
                Action::Accept => ToolResult::text(format!("deleted {count}")),
                Action::Decline | Action::Cancel => ToolResult::text("kept"),
            })
        }
    });
    let first = world.call(json!({}));
    assert_eq!(first.message("confirm"), "Delete 3 files?");
    files.store(5, Ordering::Relaxed);
    let again = world.call(json!({"inputResponses": {"confirm": accept(json!({}))}}));
    assert_eq!(again.message("confirm"), "Delete 5 files?");
    // With the old state: the question has changed, so the yes answers nothing (G-26).
    let changed = world.retry(&first, json!({"confirm": accept(json!({}))}));
    assert_eq!(changed.message("confirm"), "Delete 5 files?");
    assert_eq!(world.retry(&changed, json!({"confirm": accept(json!({}))})).text(), "deleted 5");
}

/// A7: urls, solicited asks and servers that demand a state take no early answer.
#[test]
fn a7_solicited_asks_take_no_early_answer() {
    let mut world = World::new(|ctx: Ctx| async move {
        let url = ctx.elicit_url("url", "Sign in", "https://example.com/in").await?;
        Ok(ToolResult::text(format!("{url:?}")))
    });
    assert_eq!(world.call(json!({"inputResponses": {"url": {"action": "accept"}}})).keys(), ["url"]);
    let mut world =
        World::new(
            |ctx: Ctx| async move { Ok(ToolResult::text(shown(number(&ctx, "n").solicited().await))) },
        );
    assert_eq!(world.call(json!({"inputResponses": {"n": accept(json!({"n": 1}))}})).keys(), ["n"]);
    let mut config = mrtr_tests::world::config();
    config.require_state = true;
    let mut world = World::of(mrtr_tests::world::service(config, |ctx: Ctx| async move {
        Ok(ToolResult::text(shown(number(&ctx, "n").await)))
    }));
    assert_eq!(world.call(json!({"inputResponses": {"n": accept(json!({"n": 1}))}})).keys(), ["n"]);
}

/// A1, B-36, R-133: a decline is an answer; the same key asked again in a loop is another use of it.
#[test]
fn a1_a_decline_in_a_loop_asks_under_the_next_use() {
    let mut world = World::new(|ctx: Ctx| async move {
        let mut said = Vec::new();
        loop {
            let answer = number(&ctx, "k").await;
            let done = matches!(answer, Ok(Elicited::Accept(_)));
            said.push(shown(answer));
            if done {
                return Ok(ToolResult::text(said.join(" ")));
            }
        }
    });
    let first = world.call(json!({}));
    let second = world.retry(&first, json!({"k": decline()}));
    assert_eq!(second.keys(), ["k#1"]);
    let third = world.retry(&second, json!({"k#1": cancel()}));
    assert_eq!(third.keys(), ["k#2"]);
    let done = world.retry(&third, json!({"k#2": accept(json!({"n": 4}))}));
    assert_eq!(done.text(), "declined cancelled 4");
}

/// A6, G-13, R-106, R-107: required and undeclared is `-32021` with all that is missing; optional and undeclared
/// goes on without.
#[test]
fn a6_the_gate() {
    let mut world = World::new(|ctx: Ctx| async move {
        let sample = ctx.sample("s", &Sampling::new(9).user("hi"));
        let roots = ctx.roots("r");
        let (sample, roots) = future::join(sample, roots).await;
        Ok(ToolResult::text(format!("{} {}", sample?.text(), roots?.len())))
    });
    world.capabilities = json!({"elicitation": {}});
    let refused = world.call(json!({}));
    assert_eq!(refused.error().0, -32021);
    assert_eq!(refused.data(), &json!({"requiredCapabilities": {"sampling": {}, "roots": {}}}));
    let mut world = World::new(|ctx: Ctx| async move {
        let sample = ctx.sample("s", &Sampling::new(9).user("hi")).optional();
        let form = number(&ctx, "n");
        let (sample, form) = future::join(sample, form).await;
        Ok(ToolResult::text(format!("{:?} {}", sample.is_err(), shown(form))))
    });
    world.capabilities = json!({"elicitation": {}});
    let first = world.call(json!({}));
    assert_eq!(first.keys(), ["n"]);
    // Recorded rounds are never gated again: the capability is there now, and nothing changes (R-108).
    world.capabilities = json!({"elicitation": {}, "sampling": {}});
    assert_eq!(world.retry(&first, json!({"n": accept(json!({"n": 1}))})).text(), "true 1");
}

/// A9, B-41: a question that is pending when the handler returns decides the outcome; over the mark, a handler
/// that returns again without the answer fails, and never has its value taken.
#[test]
fn a9_a_fresh_ask_decides_the_outcome() {
    type Held = Arc<std::sync::Mutex<Vec<Ask<Elicited<Value>>>>>;
    let held: Held = Held::default();
    let inside = held.clone();
    let mut world = World::new(move |ctx: Ctx| {
        let held = inside.clone();
        async move {
            let mut ask = number(&ctx, "n");
            let polled = futures::poll!(&mut ask);
            assert!(polled.is_pending());
            // Alive elsewhere when the handler returns.
            held.lock().expect("unpoisoned").push(ask);
            Ok(ToolResult::text("unapproved"))
        }
    });
    let first = world.call(json!({}));
    assert_eq!(first.keys(), ["n"]);
    // The attempt is over for what is still alive.
    let ended = futures::executor::block_on(held.lock().expect("unpoisoned").remove(0));
    assert_eq!(ended.err(), Some(AskError::Ended));
    let again = world.retry(&first, json!({"n": accept(json!({"n": 1}))}));
    assert_eq!(again.error(), (-32603, "Internal error"));
}

/// A9: an ask whose future is dropped is withdrawn; so is one that was sent earlier and never answered.
#[test]
fn a9_a_dropped_ask_is_withdrawn() {
    let mut world = World::new(|ctx: Ctx| async move {
        drop(number(&ctx, "gone"));
        Ok(ToolResult::text(shown(number(&ctx, "n").await)))
    });
    assert_eq!(world.call(json!({})).keys(), ["n"]);
    // `select` keeps the loser alive; finishing withdraws it.
    let mut world = World::new(|ctx: Ctx| async move {
        let won = match future::select(number(&ctx, "a"), number(&ctx, "b")).await {
            future::Either::Left((answer, _)) => format!("a {}", shown(answer)),
            future::Either::Right((answer, _)) => format!("b {}", shown(answer)),
        };
        Ok(ToolResult::text(won))
    });
    let first = world.call(json!({}));
    assert_eq!(first.keys(), ["a", "b"]);
    assert_eq!(world.retry(&first, json!({"b": accept(json!({"n": 2}))})).text(), "b 2");
}

/// A8: a changed question is asked anew and what is still the same keeps its answer; a strict service fails.
#[test]
fn a8_divergence_asks_again_or_fails() {
    let deploy = Arc::new(AtomicUsize::new(0));
    let handler = |version: Arc<AtomicUsize>| {
        move |ctx: Ctx| {
            let version = version.load(Ordering::Relaxed);
            async move {
                let a = number(&ctx, "a");
                let b = ctx.elicit::<Value>("b", &form(&format!("version {version}")));
                let (a, b) = future::join(a, b).await;
                let c = number(&ctx, "c").await;
                Ok(ToolResult::text(format!("{} {} {}", shown(a), shown(b), shown(c))))
            }
        }
    };
    let mut world = World::new(handler(deploy.clone()));
    let first = world.call(json!({}));
    let second = world.retry(&first, json!({"a": accept(json!({"n": 1})), "b": accept(json!({"n": 2}))}));
    assert_eq!(second.keys(), ["c"]);
    deploy.store(1, Ordering::Relaxed);
    let asked = world.retry(&second, json!({"c": accept(json!({"n": 3}))}));
    // The answer to `c` was for a round that was cut off: it answers nothing any more.
    assert_eq!(asked.keys(), ["b"]);
    let third = world.retry(&asked, json!({"b": accept(json!({"n": 5}))}));
    assert_eq!(third.keys(), ["c"]);
    assert_eq!(world.retry(&third, json!({"c": accept(json!({"n": 6}))})).text(), "1 5 6");

    deploy.store(0, Ordering::Relaxed);
    let mut policy = TapePolicy::default();
    policy.divergence = OnDivergence::Fail;
    let mut world = World::with(Limits::default(), policy, handler(deploy.clone()));
    let first = world.call(json!({}));
    deploy.store(1, Ordering::Relaxed);
    let failed = world.retry(&first, json!({"a": accept(json!({"n": 1}))}));
    assert_eq!(failed.error().0, -32603);
}

/// A8: the third divergence of an exchange ends it.
#[test]
fn a8_a_question_that_changes_from_run_to_run_ends_the_exchange() {
    let runs = Arc::new(AtomicUsize::new(0));
    let mut world = World::new(move |ctx: Ctx| {
        let run = runs.fetch_add(1, Ordering::Relaxed);
        async move { Ok(ToolResult::text(shown(ctx.elicit("n", &form(&format!("run {run}"))).await))) }
    });
    let mut last = world.call(json!({}));
    for _ in 0..2 {
        last = world.retry(&last, json!({"n": accept(json!({"n": 1}))}));
        assert_eq!(last.keys(), ["n"]);
    }
    let ended = world.retry(&last, json!({"n": accept(json!({"n": 1}))}));
    assert_eq!(ended.error(), (-32603, "Internal error: this question changes from run to run"));
}

/// A8: once-values made on a path that is left are refused, kept or dropped, as the service chose.
#[test]
fn a8_effects_behind_a_divergence() {
    for (effects, expected) in
        [(AfterEffects::Refuse, None), (AfterEffects::Keep, Some("1")), (AfterEffects::Drop, Some("2"))]
    {
        let (deploy, made) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let (version, counter) = (deploy.clone(), made.clone());
        let mut policy = TapePolicy::default();
        policy.after_effects = effects;
        let mut world = World::with(Limits::default(), policy, move |ctx: Ctx| {
            let (version, counter) = (version.load(Ordering::Relaxed), counter.clone());
            async move {
                let _ = ctx.elicit::<Value>("a", &form(&format!("version {version}"))).await;
                let order = ctx.once("order", || counter.fetch_add(1, Ordering::Relaxed) + 1)?;
                let _ = number(&ctx, "b").await;
                Ok(ToolResult::text(order.to_string()))
            }
        });
        let first = world.call(json!({}));
        let second = world.retry(&first, json!({"a": accept(json!({"n": 1}))}));
        assert_eq!(second.keys(), ["b"]);
        deploy.store(1, Ordering::Relaxed);
        let third = world.retry(&second, json!({"b": accept(json!({"n": 1}))}));
        let Some(expected) = expected else {
            assert_eq!(third.error().0, -32603);
            continue;
        };
        assert_eq!(third.keys(), ["a"]);
        let fourth = world.retry(&third, json!({"a": accept(json!({"n": 1}))}));
        assert_eq!(world.retry(&fourth, json!({"b": accept(json!({"n": 1}))})).text(), expected);
    }
}

/// A9 (a): a handler that returns before its recorded rounds are over has its value taken under `AskAgain`.
#[test]
fn a9_finishing_early_is_a_divergence_whose_value_stands() {
    let skip = Arc::new(AtomicUsize::new(0));
    let handler = |skip: Arc<AtomicUsize>| {
        move |ctx: Ctx| {
            let skip = skip.load(Ordering::Relaxed) > 0;
            async move {
                Ok(ToolResult::text(if skip { "skipped".into() } else { shown(number(&ctx, "n").await) }))
            }
        }
    };
    let mut world = World::new(handler(skip.clone()));
    let first = world.call(json!({}));
    skip.store(1, Ordering::Relaxed);
    assert_eq!(world.retry(&first, json!({})).text(), "skipped");
    skip.store(0, Ordering::Relaxed);
    let mut policy = TapePolicy::default();
    policy.divergence = OnDivergence::Fail;
    let mut world = World::with(Limits::default(), policy, handler(skip.clone()));
    let first = world.call(json!({}));
    skip.store(1, Ordering::Relaxed);
    assert_eq!(world.retry(&first, json!({})).error().0, -32603);
}

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

/// R-086 and the guarantee "no panic": a handler that panics ends its request with `-32603` and says nothing else.
#[test]
fn a_panic_is_an_internal_error() {
    let mut world = World::new(|ctx: Ctx| async move {
        let _ = number(&ctx, "n").await;
        if ctx.target() == "t" {
            panic!("the secret is 42");
        }
        Ok(ToolResult::new())
    });
    let first = world.call(json!({}));
    let reply = world.retry(&first, json!({"n": accept(json!({"n": 1}))}));
    assert_eq!(reply.error(), (-32603, "Internal error"));
    assert!(!reply.0.to_string().contains("42"));
}

/// A3, A4: `FuturesUnordered` sees its answers in the order of the rounds, also on replay.
#[test]
fn a3_unordered_asks_keep_their_order_of_arrival() {
    let mut world = World::new(|ctx: Ctx| async move {
        let mut asks: FuturesUnordered<_> = ["a", "b", "c"]
            .into_iter()
            .map(|key| {
                let ask = number(&ctx, key);
                async move { format!("{key}{}", shown(ask.await)) }
            })
            .collect();
        let mut order = Vec::new();
        while let Some(answer) = asks.next().await {
            order.push(answer);
        }
        Ok(ToolResult::text(order.join(" ")))
    });
    let first = world.call(json!({}));
    let second = world.retry(&first, json!({"c": accept(json!({"n": 3}))}));
    let third = world.retry(&second, json!({"b": accept(json!({"n": 2}))}));
    assert_eq!(world.retry(&third, json!({"a": accept(json!({"n": 1}))})).text(), "c3 b2 a1");
}

/// R-099: no loop is without end: rounds and asks at their edges, named when reached.
#[test]
fn limits_at_their_edges() {
    let mut limits = Limits::default();
    limits.rounds = 2;
    limits.asks_sent = 2;
    let mut world = World::with(limits, TapePolicy::default(), |ctx: Ctx| async move {
        let asks: u32 = ctx.argument("asks")?;
        let keys: Vec<String> = (0..asks).map(|n| format!("k{n}")).collect();
        future::join_all(keys.iter().map(|key| number(&ctx, key))).await;
        let rounds: u32 = ctx.argument("rounds")?;
        for round in 1..rounds {
            let _ = number(&ctx, &format!("r{round}")).await;
        }
        Ok(ToolResult::text("done"))
    });
    let over = world.call(json!({"arguments": {"asks": 3, "rounds": 1}}));
    assert_eq!(
        over.error(),
        (-32603, "Internal error: over the limit of 2 asks in a round (Limits::asks_sent)")
    );
    let arguments = json!({"asks": 2, "rounds": 2});
    let first = world.call(json!({"arguments": arguments}));
    let second = world
        .call(json!({"arguments": arguments, "requestState": first.state(), "inputResponses": {
        "k0": accept(json!({"n": 1})), "k1": decline()}}));
    assert_eq!(second.keys(), ["r1"]);
    // A third round would be one too many, whether the handler or the client brings it about.
    let over = world.call(json!({"arguments": arguments, "requestState": second.state()}));
    assert_eq!(over.error(), (-32603, "Internal error: over the limit of 2 rounds (Limits::rounds)"));
    let done = world.call(
        json!({"arguments": arguments, "requestState": second.state(), "inputResponses": {"r1": decline()}}),
    );
    assert_eq!(done.text(), "done");
}
