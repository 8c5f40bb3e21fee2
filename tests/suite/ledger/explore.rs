//! Every interleaving of a few copies of one retry, with store faults, crashes, cancellation and leases that run
//! out at any point: the laws of `world` hold in all of them (B1…B7).

use core::{hash::Hash as _, hash::Hasher as _, time::Duration};
use std::{collections::BTreeSet, hash::DefaultHasher};

use mrtr_core::{
    Timestamp,
    ledger::{Command, Once, Operation, Policy, StoreEvent},
};

use super::{
    support::*,
    world::{Actor, Laws, Observed, Script},
};

/// Replays the choices of one branch and takes the first of each new one.
struct Chooser {
    path: Vec<(usize, usize)>,
    at: usize,
}

impl Chooser {
    fn choose(&mut self, width: usize) -> usize {
        if self.at == self.path.len() {
            self.path.push((0, width));
        }
        let (choice, known) = self.path[self.at];
        assert_eq!(known, width, "the world is deterministic");
        self.at += 1;
        choice
    }

    /// Goes to the next branch; false if there is none.
    fn advance(&mut self) -> bool {
        self.at = 0;
        while let Some((choice, width)) = self.path.pop() {
            if choice + 1 < width {
                self.path.push((choice + 1, width));
                return true;
            }
        }
        false
    }
}

/// How much may go wrong in one branch.
#[derive(Clone, Copy, Hash)]
struct Budget {
    faults: u8,
    crashes: u8,
    cancels: u8,
    jumps: u8,
}

#[derive(Clone, Copy)]
enum Choice {
    Answer(usize),
    /// Does not take place, and nobody hears of it.
    Drop(usize),
    /// Takes place, and nobody hears of it.
    Deafen(usize),
    /// Is given up by its sender and takes place later.
    Delay(usize),
    Deliver(usize),
    /// Crashes before its command takes place, or while it works.
    Crash(usize),
    /// Crashes after its command took place.
    ApplyAndCrash(usize),
    Cancel(usize),
    /// Time goes on to the next thing that somebody waits for.
    Tick,
    /// Every lease runs out at once, whoever is still there.
    Jump,
}

struct World {
    now: Timestamp,
    laws: Laws,
    actors: Vec<Actor>,
    in_flight: Vec<(usize, Command)>,
    budget: Budget,
}

impl World {
    fn choices(&self) -> Vec<Choice> {
        let mut choices = Vec::new();
        let asking = self.actors.iter().any(|actor| actor.out.is_some());
        for (number, actor) in self.actors.iter().enumerate() {
            if actor.out.is_some() {
                choices.push(Choice::Answer(number));
                if self.budget.faults > 0 {
                    choices.extend([Choice::Drop(number), Choice::Deafen(number), Choice::Delay(number)]);
                }
                if self.budget.crashes > 0 {
                    choices.push(Choice::ApplyAndCrash(number));
                }
            }
            if self.budget.crashes > 0 && !actor.is_over() {
                choices.push(Choice::Crash(number));
            }
            if self.budget.cancels > 0 && actor.is_claiming() {
                choices.push(Choice::Cancel(number));
            }
        }
        choices.extend((0..self.in_flight.len()).map(Choice::Deliver));
        if !asking && self.next_wake().is_some() {
            choices.push(Choice::Tick);
        }
        if self.budget.jumps > 0 && self.actors.iter().any(|actor| !actor.is_over()) {
            choices.push(Choice::Jump);
        }
        choices
    }

    fn next_wake(&self) -> Option<Timestamp> {
        self.actors.iter().filter_map(|actor| actor.wake).min()
    }

    fn apply(&mut self, number: usize, command: &Command) -> StoreEvent {
        self.laws.apply(self.now, number, command, &self.actors)
    }

    fn take(&mut self, choice: Choice) {
        match choice {
            Choice::Answer(number) => {
                let command = self.actors[number].out.clone().unwrap();
                let event = self.apply(number, &command);
                self.actors[number].handle(self.now, event);
            }
            Choice::Drop(number) | Choice::Deafen(number) | Choice::Delay(number) => {
                self.budget.faults -= 1;
                self.laws.store_failed = true;
                let command = self.actors[number].out.clone().unwrap();
                match choice {
                    Choice::Deafen(_) => drop(self.apply(number, &command)),
                    Choice::Delay(_) => self.in_flight.push((number, command)),
                    _ => {}
                }
                self.actors[number].handle(self.now, StoreEvent::Unavailable);
            }
            Choice::Deliver(which) => {
                let (number, command) = self.in_flight.remove(which);
                self.apply(number, &command);
            }
            Choice::Crash(number) | Choice::ApplyAndCrash(number) => {
                self.budget.crashes -= 1;
                if let Choice::ApplyAndCrash(_) = choice {
                    let command = self.actors[number].out.clone().unwrap();
                    self.apply(number, &command);
                }
                self.actors[number].crash(&mut self.laws);
            }
            Choice::Cancel(number) => {
                self.budget.cancels -= 1;
                self.actors[number].cancel();
            }
            Choice::Tick => self.now = self.next_wake().unwrap().max(self.now),
            Choice::Jump => {
                self.budget.jumps -= 1;
                self.now = self.now.saturating_add(Duration::from_secs(16));
            }
        }
        for actor in &mut self.actors {
            actor.settle(self.now, &mut self.laws);
        }
    }

    fn fingerprint(&mut self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.now.hash(&mut hasher);
        self.budget.hash(&mut hasher);
        hasher.write_u64(self.laws.fingerprint(self.now));
        for actor in &self.actors {
            hasher.write_u64(actor.fingerprint());
        }
        for (number, command) in &self.in_flight {
            hasher.write_usize(*number);
            if let Operation::CompareAndSet { expected, new, expires } = &command.operation {
                (expected, new, expires).hash(&mut hasher);
            }
        }
        hasher.finish()
    }
}

/// What was reached, so that no law passes for want of a case.
#[derive(Debug, Default)]
struct Seen {
    branches: usize,
    states: usize,
    most_starts: usize,
    /// Branches in which a commit began.
    commits: usize,
    replayed: usize,
    refusals: BTreeSet<String>,
}

/// Explores all branches.
fn explore(once: Once, scripts: &[Script], budget: Budget) -> Seen {
    let policy = policy(|policy: &mut Policy| {
        policy.once = once;
        policy.lease = Duration::from_secs(10);
        policy.wait = Duration::from_millis(60);
    });
    let mut chooser = Chooser { path: Vec::new(), at: 0 };
    let mut known = BTreeSet::new();
    let mut seen = Seen::default();
    loop {
        let mut world = World {
            now: at(0.0),
            laws: Laws::new(policy),
            actors: scripts
                .iter()
                .enumerate()
                .map(|(number, script)| {
                    let retry = mrtr_core::ledger::Retry::new(key(), answers(script.answers), at(600.0));
                    Actor::new(number, *script, 0, &policy, retry)
                })
                .collect(),
            in_flight: Vec::new(),
            budget,
        };
        for actor in &mut world.actors {
            actor.settle(world.now, &mut world.laws);
        }
        let mut steps = 0;
        loop {
            let replayed = chooser.at < chooser.path.len();
            if !replayed && !known.insert(world.fingerprint()) {
                break;
            }
            let choices = world.choices();
            if choices.is_empty() {
                // Law 7: every claim has ended, or crashed.
                assert_eq!(world.laws.ends.len(), scripts.len(), "law 7");
                seen.branches += 1;
                for end in world.laws.ends.values().flatten() {
                    match end {
                        Observed::Replayed(_) => seen.replayed += 1,
                        Observed::Refused(refusal) => drop(seen.refusals.insert(format!("{refusal:?}"))),
                        Observed::Own => {}
                    }
                }
                seen.most_starts = seen.most_starts.max(world.laws.starts());
                seen.commits += world.laws.commits();
                break;
            }
            steps += 1;
            assert!(steps < 400, "law 7: no end in sight");
            let choice = choices[chooser.choose(choices.len())];
            world.take(choice);
        }
        seen.states = known.len();
        if !chooser.advance() {
            return seen;
        }
    }
}

fn script(answers: u8, commits: bool, replies: bool) -> Script {
    Script {
        answers,
        work: Duration::from_millis(20),
        commit: commits.then_some(Duration::from_millis(10)),
        replies,
        yields: false,
    }
}

const CALM: Budget = Budget { faults: 0, crashes: 0, cancels: 0, jumps: 0 };

const BOTH: [Once; 2] = [Once::AtLeastOnce, Once::AtMostOnce];

/// Two copies with the same answers; each would commit and reply.
fn two() -> [Script; 2] {
    [script(1, true, true); 2]
}

/// The first consumes nothing, the second commits and replies.
fn mixed() -> [Script; 2] {
    [script(1, false, false), script(1, true, true)]
}

/// Two with the same answers, one with others.
fn three() -> [Script; 3] {
    [script(1, true, true), script(1, true, true), script(2, true, true)]
}

/// B2, B3, B4: with nothing going wrong one runs, the other gets its reply, and other answers are refused.
#[test]
fn b4_calm() {
    for once in BOTH {
        let seen = explore(once, &two(), CALM);
        assert_eq!((seen.most_starts, seen.commits, seen.replayed), (1, seen.branches, seen.branches));
        assert!(seen.refusals.is_empty());
        let seen = explore(once, &three(), CALM);
        assert_eq!((seen.most_starts, seen.commits), (1, seen.branches));
        assert_eq!(seen.refusals, BTreeSet::from(["OtherAnswers".to_owned()]));
    }
}

/// B7: any two commands are dropped, applied unheard, or applied later. (Without crashes and leases that run out
/// the two policies do the same.)
#[test]
fn b7_store_faults() {
    let seen = explore(Once::AtLeastOnce, &two(), Budget { faults: 2, ..CALM });
    assert_eq!((seen.most_starts, seen.commits), (1, seen.branches));
    assert!(seen.replayed > 0 && seen.refusals.contains("Busy"));
    let seen = explore(Once::AtLeastOnce, &three(), Budget { faults: 1, ..CALM });
    assert_eq!((seen.most_starts, seen.commits), (1, seen.branches));
}

/// B6: a crash between any two actions, before or after a command took place, and leases that run out at any
/// point, of the living too.
#[test]
fn b6_crashes_and_leases() {
    for once in BOTH {
        for scripts in [two(), mixed()] {
            let seen = explore(once, &scripts, Budget { crashes: 1, jumps: 1, ..CALM });
            assert_eq!(seen.most_starts, if once == Once::AtMostOnce { 1 } else { 2 });
            assert!(seen.commits > 0 && seen.commits < seen.branches);
            assert!(seen.replayed > 0 && seen.refusals.contains("Lost"));
        }
        let seen = explore(once, &three(), Budget { jumps: 1, ..CALM });
        assert!(
            seen.replayed > 0 && seen.refusals.contains("Lost") && seen.refusals.contains("OtherAnswers")
        );
    }
}

/// B6, B7: a fault of the store together with a crash.
#[test]
fn b7_faults_and_crashes() {
    let seen = explore(Once::AtMostOnce, &two(), Budget { faults: 1, crashes: 1, ..CALM });
    assert!(seen.commits > 0 && seen.replayed > 0);
}

/// B6, B7: a fault of the store together with leases that run out: slow runs and late commands.
#[test]
fn b7_faults_and_leases() {
    for once in BOTH {
        let seen = explore(once, &two(), Budget { faults: 1, jumps: 1, ..CALM });
        assert_eq!(seen.most_starts, if once == Once::AtMostOnce { 1 } else { 2 });
        assert!(seen.commits > 0 && seen.replayed > 0 && seen.refusals.contains("Lost"));
    }
}

/// B5: claims that are cancelled at any point, with a fault or a lease that runs out.
#[test]
fn b5_cancelled_claims() {
    for (once, budget) in [
        (Once::AtMostOnce, Budget { faults: 1, cancels: 1, ..CALM }),
        (Once::AtMostOnce, Budget { jumps: 1, cancels: 1, ..CALM }),
        (Once::AtLeastOnce, Budget { jumps: 1, cancels: 1, ..CALM }),
    ] {
        let seen = explore(once, &two(), budget);
        assert!(seen.commits > 0 && seen.refusals.contains("Cancelled"));
    }
}

/// All of it together: a million states, which takes seconds where it is optimised and minutes where it is not.
#[cfg(not(debug_assertions))]
#[test]
fn deep() {
    for once in BOTH {
        for (scripts, budget) in [
            (two().to_vec(), Budget { faults: 1, crashes: 1, cancels: 1, jumps: 1 }),
            (two().to_vec(), Budget { faults: 2, jumps: 1, ..CALM }),
            (two().to_vec(), Budget { faults: 3, ..CALM }),
            (two().to_vec(), Budget { faults: 1, jumps: 2, ..CALM }),
            (mixed().to_vec(), Budget { faults: 1, crashes: 1, jumps: 1, ..CALM }),
            (three().to_vec(), Budget { faults: 1, crashes: 1, jumps: 1, ..CALM }),
        ] {
            let seen = explore(once, &scripts, budget);
            println!("{once:?}: {seen:?}");
            assert!(seen.commits > 0);
        }
    }
}
