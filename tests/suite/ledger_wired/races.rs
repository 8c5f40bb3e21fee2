//! Copies of one retry side by side, in random order, some cancelled, some dead (B3…B7).

use std::{sync::Arc, time::Duration};

use mrtr_core::{
    audit::Counters,
    handler::{Run, RunEvent},
    ledger::{Command, Once, Policy},
};
use mrtr_tests::{model::Random, world::lawful};
use serde_json::Value;

use super::{Bench, Counts, SeqCst, is_lost, ledgered};

/// Races in a run of the test suite, under either policy; `MRTR_RACES` overrides it.
const RACES: u64 = 200;

/// One copy: its run, and a command that has not reached the store yet.
struct Copy<'a> {
    run: Option<Run<'a>>,
    command: Option<Command>,
    cancelled: bool,
    out: Vec<u8>,
    reply: Option<Value>,
}

impl<'a> Copy<'a> {
    fn new(run: Run<'a>) -> Self {
        Self { run: Some(run), command: None, cancelled: false, out: Vec::new(), reply: None }
    }

    /// Goes one step further; whether there was one.
    fn step(&mut self, bench: &mut Bench) -> bool {
        let Some(run) = &mut self.run else { return false };
        if let Some(command) = self.command.take() {
            let said = bench.store.apply(bench.now, &command);
            run.handle_store(bench.now, said);
            return true;
        }
        match bench.poll(run, &mut self.out) {
            Some(RunEvent::Store(command)) => self.command = Some(command),
            Some(RunEvent::Finished(_)) => {
                self.reply = Some(lawful(&self.out));
                self.run = None;
            }
            Some(_) => self.out.clear(),
            None => return false,
        }
        true
    }
}

/// What happened while they raced.
struct Raced {
    replies: Vec<(bool, Value)>,
    died_in_commit: bool,
    last: Value,
}

fn race(seed: u64, once: Once) -> (Raced, Counts) {
    let mut random = Random::new(seed);
    let mut policy = Policy::default();
    policy.once = once;
    let counters = Arc::new(Counters::new());
    let mut config = ledgered(policy);
    config.observer = Some(counters.clone());
    let (mut bench, counts) = Bench::committing_with(config);
    counts.open.store(random.chance(2), SeqCst);
    let state = bench.state();
    let messages: Vec<Vec<u8>> = (0..4).map(|_| bench.retry(&state, 5)).collect();
    let mut copies: Vec<Copy<'_>> = Vec::new();
    let mut died_in_commit = false;
    for _ in 0..random.below(80) {
        let index = random.below(4) as usize;
        match (copies.get_mut(index), random.below(24)) {
            (None, _) => {
                if let Some(message) = messages.get(copies.len()) {
                    let run = bench.attempt(message);
                    copies.push(Copy::new(run));
                }
            }
            // Its process dies.
            (Some(copy), 0) => {
                died_in_commit |= copy.run.as_ref().is_some_and(Run::is_committing);
                copy.run = None;
                copy.command = None;
            }
            // Its connection is closed.
            (Some(copy), 1) => {
                copy.cancelled = true;
                if let Some(run) = &mut copy.run {
                    run.cancel();
                }
            }
            (Some(_), 2) => bench.pass(Duration::from_secs(1 + random.below(20))),
            (Some(_), 3) => counts.open.store(true, SeqCst),
            (Some(copy), _) => drop(copy.step(&mut bench)),
        }
    }
    // What still runs comes to its end, in whatever time that takes.
    counts.open.store(true, SeqCst);
    for _ in 0..200 {
        let mut moved = false;
        for copy in &mut copies {
            for _ in 0..50 {
                moved |= copy.step(&mut bench);
            }
        }
        if !moved {
            bench.pass(Duration::from_secs(1));
        }
    }
    assert!(copies.iter().all(|copy| copy.run.is_none()), "seed {seed}: a copy never ends");
    let replies = copies.into_iter().filter_map(|copy| Some((copy.cancelled, copy.reply?))).collect();
    let again = bench.retry(&state, 5);
    let mut again = bench.attempt(&again);
    let last = bench.finish(&mut again);
    // Whoever counts sees the end once, and no answer without one.
    let told = counters.counts();
    assert!(told.completed <= 1 && told.accepted <= told.completed + told.failed, "seed {seed}: {told:?}");
    (Raced { replies, died_in_commit, last }, counts)
}

/// B3…B6: no step of a commit runs twice; every copy that is heard to its end gets the one reply, or is told to come
/// again, or that the outcome is unknown, and that only where a copy died; and whoever comes last gets the reply.
#[test]
fn copies_in_any_order_b4() {
    let (mut replayed, mut busy, mut lost) = (0, 0, 0);
    let races = std::env::var("MRTR_RACES").ok().and_then(|text| text.parse().ok()).unwrap_or(RACES);
    for seed in 0..races {
        for once in [Once::AtLeastOnce, Once::AtMostOnce] {
            let (raced, counts) = race(seed, once);
            let (_, first, second) = counts.get();
            assert!(first <= 1 && second <= 1, "seed {seed} {once:?}: {:?}", counts.get());
            for (cancelled, reply) in &raced.replies {
                if reply["result"].is_object() {
                    assert_eq!(super::text(reply), "did 5", "seed {seed} {once:?}");
                    replayed += 1;
                } else if is_lost(reply) {
                    lost += 1;
                } else {
                    let retry = reply["error"]["data"]["retry"] == true;
                    assert!(retry || *cancelled, "seed {seed} {once:?}: {reply}");
                    busy += 1;
                }
            }
            let got = raced.last["result"].is_object();
            if got {
                assert_eq!(super::text(&raced.last), "did 5");
                assert_eq!((first, second), (1, 1), "seed {seed} {once:?}");
            } else {
                assert!(is_lost(&raced.last), "seed {seed} {once:?}: {}", raced.last);
                let spoiled = raced.died_in_commit || once == Once::AtMostOnce;
                assert!(spoiled, "seed {seed}: lost, and no copy died in its commit");
            }
        }
    }
    println!("{races} races twice: {replayed} replies, {busy} told to come again, {lost} lost");
    assert!(replayed > races && busy > races / 20 && lost > 0, "{replayed} {busy} {lost}");
}
