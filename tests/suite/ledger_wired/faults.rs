//! Copies that die, stores that go down, attempts that break off: B5…B7.

use std::{
    sync::{Arc, Mutex, atomic::Ordering::SeqCst},
    time::Duration,
};

use mrtr_core::{
    audit::Counters,
    handler::{RunEvent, ToolResult},
    ledger::{Command, Once, Policy, StoreEvent, WhenDown},
    wire::Sampling,
};
use mrtr_tests::world::lawful;
use serde_json::{Value, json};

use super::{Bench, error, is_lost, ledgered, number, text};

/// What becomes of the first copy.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fate {
    /// Its process dies before the command reaches the store.
    Dies,
    /// Its process dies after the store has carried the command out.
    DiesAfter,
    /// Its connection is closed, and it is polled to its end.
    Cancelled,
}

/// Drives the first copy up to its n-th event, lets it meet its fate, and returns what a second copy gets, how
/// often what happened, and whether the first copy ended before its turn came.
fn crash(policy: Policy, at: usize, fate: Fate) -> (Value, (usize, usize, usize), bool) {
    let (mut bench, counts) = Bench::committing(policy);
    let state = bench.state();
    let message = bench.retry(&state, 5);
    let mut run = bench.attempt(&message);
    let (mut out, mut ended) = (Vec::new(), false);
    counts.open.store(false, SeqCst);
    for step in 0.. {
        let event = bench.poll(&mut run, &mut out);
        let now = step == at;
        match event {
            Some(RunEvent::Store(command)) => {
                if !now || fate != Fate::Dies {
                    let said = bench.store.apply(bench.now, &command);
                    run.handle_store(bench.now, said);
                }
            }
            Some(RunEvent::Finished(_)) => ended = true,
            // The handler waits for the gate: it has been seen while it runs.
            None if !now => counts.open.store(true, SeqCst),
            Some(_) | None => {}
        }
        if now || ended {
            break;
        }
    }
    if fate == Fate::Cancelled && !ended {
        run.cancel();
        assert!(run.is_claimed());
        bench.finish(&mut run);
    } else {
        bench.pass(Duration::from_secs(36));
    }
    drop(run);
    counts.open.store(true, SeqCst);
    let again = bench.retry(&state, 5);
    let mut again = bench.attempt(&again);
    let reply = bench.finish(&mut again);
    (reply, counts.get(), ended)
}

/// W-09: an effect that is left for the commit happens once, whatever dies and whoever comes again.
#[test]
fn no_step_of_a_commit_runs_twice_wherever_a_copy_dies_b6() {
    for once in [Once::AtLeastOnce, Once::AtMostOnce] {
        let mut policy = Policy::default();
        policy.once = once;
        for fate in [Fate::Dies, Fate::DiesAfter, Fate::Cancelled] {
            let (mut lost, mut done) = (0, 0);
            for at in 0.. {
                assert!(at < 50, "the first copy never ends");
                let (reply, (handler, first, second), ended) = crash(policy, at, fate);
                let what = format!("{once:?} {fate:?} at {at}: {reply}");
                assert!(first <= 1 && second <= 1, "{what}");
                assert!(once == Once::AtLeastOnce || handler <= 1, "{what}");
                if is_lost(&reply) {
                    lost += 1;
                    assert!(!ended, "{what}");
                } else {
                    done += 1;
                    assert_eq!((text(&reply), first, second), ("did 5", 1, 1), "{what}");
                }
                if ended {
                    break;
                }
            }
            // Both ways happen where they can: cancelled before the commit under AtLeastOnce, nothing is lost.
            assert!(done > 0, "{once:?} {fate:?}");
            assert_eq!(lost == 0, (once, fate) == (Once::AtLeastOnce, Fate::Cancelled), "{once:?} {fate:?}");
        }
    }
}

#[test]
fn a_missing_capability_does_not_consume_b5_g13() {
    let mut bench = Bench::new(ledgered(Policy::default()), |ctx| async move {
        let n = number(&ctx, "n").await?;
        let said = ctx.sample("say", &Sampling::new(9).user("hi")).await?;
        let _ = said;
        Ok(ToolResult::text(n.to_string()).into())
    });
    let first = bench.state();
    bench.capabilities = json!({"elicitation": {"form": {}}});
    let without = bench.retry(&first, 1);
    assert_eq!(error(&bench.send(&without)).0, -32021);
    assert!(bench.store.is_empty());
    bench.capabilities = json!({"elicitation": {"form": {}}, "sampling": {}});
    // Free again: with other answers, too.
    let with = bench.retry(&first, 2);
    let asked = bench.send(&with);
    assert!(asked["result"]["inputRequests"]["say"].is_object(), "{asked}");
}

#[test]
fn a_limit_at_the_next_question_does_not_consume_b5() {
    let mut config = ledgered(Policy::default());
    config.limits.rounds = 1;
    let mut bench = Bench::new(config, |ctx| async move {
        let n = number(&ctx, "n").await?;
        Ok(ToolResult::text((n + number(&ctx, "m").await?).to_string()).into())
    });
    let first = bench.state();
    for n in [1, 2] {
        let message = bench.retry(&first, n);
        assert_eq!(error(&bench.send(&message)).0, -32603);
        assert!(bench.store.is_empty());
    }
}

#[test]
#[cfg_attr(panic = "abort", ignore = "a panic ends the process")]
fn a_panic_frees_the_state_before_the_commit_and_loses_it_in_it_b5_b6() {
    let panics = Arc::new(Mutex::new(Some(false)));
    let seen = panics.clone();
    let mut bench = Bench::new(ledgered(Policy::default()), move |ctx| {
        let seen = seen.clone();
        async move {
            let n = number(&ctx, "n").await?;
            let when = seen.lock().unwrap().take();
            if when == Some(false) {
                panic!("in the handler");
            }
            ctx.on_commit(move || {
                assert!(when.is_none(), "in the commit");
                Ok(())
            });
            Ok(ToolResult::text(n.to_string()).into())
        }
    });
    let state = bench.state();
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let (one, two) = (bench.retry(&state, 1), bench.retry(&state, 2));
    let broke = bench.send(&one);
    assert_eq!(error(&broke), (-32603, "Internal error"));
    assert!(bench.store.is_empty());
    *panics.lock().unwrap() = Some(true);
    assert_eq!(error(&bench.send(&two)), (-32603, "Internal error"));
    std::panic::set_hook(hook);
    let again = bench.retry(&state, 2);
    assert!(is_lost(&bench.send(&again)));
}

#[test]
fn without_a_store_the_policy_decides_b7() {
    for when_down in [WhenDown::FailClosed, WhenDown::FailOpen] {
        let mut policy = Policy::default();
        policy.when_down = when_down;
        let (mut bench, counts) = Bench::committing(policy);
        let state = bench.state();
        for _ in 0..2 {
            let message = bench.retry(&state, 7);
            let run = bench.attempt(&message);
            let mut out = Vec::new();
            let _ = run.run(bench.now, &mut out);
            let reply = lawful(&out);
            match when_down {
                WhenDown::FailClosed => assert_eq!(error(&reply).0, -32603),
                WhenDown::FailOpen => assert_eq!(text(&reply), "did 7"),
            }
        }
        let runs = if when_down == WhenDown::FailOpen { 2 } else { 0 };
        assert_eq!(counts.get(), (runs, runs, runs));
    }
}

#[test]
fn a_store_that_goes_down_at_the_end_does_not_hold_the_reply_back_b7() {
    let (mut bench, counts) = Bench::committing(Policy::default());
    let state = bench.state();
    let message = bench.retry(&state, 7);
    let run = bench.attempt(&message);
    let (now, mut commands, mut out) = (bench.now, 0, Vec::new());
    let store = &mut bench.store;
    let _ = run.run_with(now, &mut out, &mut |command: Command| {
        commands += 1;
        // The claim and the commit are stored, the end is not.
        if commands <= 2 { store.apply(now, &command) } else { StoreEvent::Unavailable }
    });
    assert_eq!(text(&lawful(&out)), "did 7");
    bench.pass(Duration::from_secs(36));
    let again = bench.retry(&state, 7);
    assert!(is_lost(&bench.send(&again)), "nobody knows how far it came");
    assert_eq!(counts.get(), (1, 1, 1));
}

/// B5: a copy that was cancelled, or whose reply is not the one that goes out, has told the observer nothing: whoever counts
/// sees each question, answer and end once.
#[test]
fn observers_are_told_once_b5() {
    let counters = Arc::new(Counters::new());
    let mut config = ledgered(Policy::default());
    config.observer = Some(counters.clone());
    let (mut bench, counts) = Bench::committing_with(config);
    let state = bench.state();
    counts.open.store(false, SeqCst);
    let told = || {
        let counts = counters.counts();
        (counts.asked, counts.accepted, counts.completed, counts.failed)
    };
    assert_eq!(told(), (1, 0, 0, 0));
    // Cancelled while its handler waits: it has taken the answer, and it will be taken again.
    let first = bench.retry(&state, 5);
    let mut first = bench.attempt(&first);
    assert!(bench.drive(&mut first).is_none());
    first.cancel();
    bench.finish(&mut first);
    assert_eq!(told(), (1, 0, 0, 0));
    // Its lease runs out while it waits, and another copy has the reply: it goes out twice and is told once.
    let (second, third) = (bench.retry(&state, 5), bench.retry(&state, 5));
    let mut second = bench.attempt(&second);
    assert!(bench.drive(&mut second).is_none());
    bench.pass(Duration::from_secs(60));
    counts.open.store(true, SeqCst);
    let mut third = bench.attempt(&third);
    let mut replies = vec![bench.finish(&mut third), bench.finish(&mut second)];
    // Whichever of them it was that carried it out.
    replies.retain(|reply| reply["result"].is_object());
    assert!(!replies.is_empty() && replies.iter().all(|reply| text(reply) == "did 5"), "{replies:?}");
    assert_eq!(told(), (1, 1, 1, 0));
    assert_eq!(counts.get().1, 1);
}
