//! Leaving the recorded path, and ending with questions left: A8, A9.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures::future;
use mrtr_core::{
    Limits, Timestamp,
    form::Elicited,
    handler::{Ask, AskError, Ctx, ToolResult},
    journal::Journal,
    seal::ExchangeId,
    tape::{AfterEffects, AskSpec, Drive, Fault, Finish, OnDivergence, Step, Tape, TapePolicy, TapeSetup},
    wire::InputRequest,
};
use mrtr_tests::world::{START, World, accept};
use serde_json::{Value, json};

use super::{form, number, shown};

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

/// A9 b, the bound of silent rounds: what is settled without a person at the very end counts as well, for a state with
/// more of it could not be read again.
#[test]
fn a9_silent_rounds_at_the_end_are_bounded_too() {
    for (before, endless) in [(255, false), (256, true)] {
        let mut tape = tape();
        let now = Timestamp::from_unix_millis(START);
        let ask = |tape: &mut Tape, key: &str, request, optional| {
            let mut spec = AskSpec::new(key, request);
            spec.optional = optional;
            let ticket = tape.register(spec);
            assert!(tape.take(ticket).is_none());
        };
        for _ in 0..before {
            ask(&mut tape, "roots", InputRequest::roots(), true);
            assert!(matches!(tape.step(Drive::Alone, now), Step::Released(released) if released.len() == 1));
        }
        ask(&mut tape, "roots", InputRequest::roots(), true);
        ask(&mut tape, "sure", InputRequest::confirm("Sure?"), false);
        match tape.finish(now) {
            Finish::Send(outgoing) => assert!(!endless && outgoing.asks.len() == 1),
            Finish::Fault(fault) => assert!(endless && fault == Fault::Endless, "{fault}"),
            other => panic!("{other:?}"),
        }
        let mut bytes = Vec::new();
        tape.journal().encode(&mut bytes);
        assert_eq!(Journal::decode(&bytes, &Limits::default()).is_ok(), !endless);
    }
}

/// The tape of an exchange whose client fills in forms and nothing else.
fn tape() -> Tape {
    let now = Timestamp::from_unix_millis(START);
    let deadline = now.saturating_add(Duration::from_secs(60));
    let mut setup = TapeSetup::new(ExchangeId::from_bytes([1; 16]), Journal::new(now), deadline);
    setup.capabilities.elicitation = true;
    setup.capabilities.form = true;
    Tape::new(setup)
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
