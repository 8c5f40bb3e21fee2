//! Random days of a service: replicas with clocks apart, copies of a retry at random times, handlers that are slow
//! or stall, a network that delays, drops and forgets to answer, states that expire on the way. The laws of
//! `world` hold throughout (B1…B7).

use core::time::Duration;
use std::collections::BTreeMap;

use mrtr_core::{
    Timestamp,
    ledger::{Command, Once, Retry, StoreEvent},
};
use proptest::prelude::*;

use super::{
    support::*,
    world::{Actor, Laws, Script},
};

/// One copy of the retry.
#[derive(Clone, Debug)]
struct Copy {
    replica: usize,
    starts: u64,
    script: Script,
    crashes_after: Option<u64>,
    /// From when, and for how long, its process does nothing.
    stalls: Option<(u64, u64)>,
    deadline: Option<u64>,
}

#[derive(Clone, Debug)]
struct Day {
    once: Once,
    copies: Vec<Copy>,
    ahead: [i64; 3],
    expires: u64,
    /// Percent of commands that meet trouble.
    trouble: u64,
    seed: u64,
}

fn millis(most: u64) -> impl Strategy<Value = u64> {
    prop_oneof![3 => 0..=most / 100, 2 => 0..=most]
}

fn copy() -> impl Strategy<Value = Copy> {
    let script = (1u8..=10, millis(60_000), prop::option::of(millis(50_000)), 0..10u8, any::<bool>())
        .prop_map(|(which, work, commit, replies, yields)| Script {
            answers: if which == 10 { 2 } else { 1 },
            work: Duration::from_millis(work),
            commit: commit.map(Duration::from_millis),
            replies: replies > 1,
            yields,
        });
    let crash = prop::option::weighted(0.3, millis(60_000));
    let stall = prop::option::weighted(0.4, (millis(60_000), millis(300_000)));
    let deadline = prop::option::weighted(0.3, millis(60_000));
    (0usize..3, 0..120_000u64, script, crash, stall, deadline).prop_map(
        |(replica, starts, script, crashes_after, stalls, deadline)| Copy {
            replica,
            starts,
            script,
            crashes_after,
            stalls,
            deadline,
        },
    )
}

fn day() -> impl Strategy<Value = Day> {
    let once = prop_oneof![Just(Once::AtLeastOnce), Just(Once::AtMostOnce)];
    // The policy allows for clocks 5 s apart.
    let ahead = [-2_500i64..=2_500, -2_500..=2_500, -2_500..=2_500];
    let trouble = prop_oneof![Just(0u64), 0..60u64];
    let expires = prop_oneof![1 => 0..2_000u64, 6 => 20_000..300_000u64];
    (once, prop::collection::vec(copy(), 2..9), ahead, expires, trouble, any::<u64>()).prop_map(
        |(once, copies, ahead, expires, trouble, seed)| Day { once, copies, ahead, expires, trouble, seed },
    )
}

enum Event {
    Poll(usize),
    Crash(usize),
    Arrive(usize, u64, Command, u64),
    Heard(usize, u64, StoreEvent),
}

struct Simulation {
    queue: BTreeMap<(Timestamp, u64), Event>,
    next: u64,
    random: u64,
    trouble: u64,
}

impl Simulation {
    fn random(&mut self, below: u64) -> u64 {
        // SplitMix64.
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.random;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % below
    }

    fn push(&mut self, time: Timestamp, event: Event) {
        self.next += 1;
        self.queue.insert((time, self.next), event);
    }

    fn later(&mut self, now: Timestamp, millis: u64, event: Event) {
        self.push(now.saturating_add(Duration::from_millis(millis)), event);
    }

    /// Sends a command into the network.
    fn send(&mut self, now: Timestamp, actor: usize, id: u64, command: Command, laws: &mut Laws) {
        let trouble = self.random(100) < self.trouble;
        let there = 1 + self.random(20);
        let back = 1 + self.random(20);
        if !trouble {
            return self.later(now, there, Event::Arrive(actor, id, command, back));
        }
        laws.store_failed = true;
        let patience = if self.random(4) == 0 { 200_000 } else { 250 };
        let slow = [400, 20_000, 90_000, 150_000][usize::try_from(self.random(4)).unwrap()];
        match self.random(4) {
            // Never arrives.
            0 => {}
            // Arrives, and the answer does not.
            1 => self.later(now, there, Event::Arrive(actor, id, command, 1_000_000)),
            // Is slow to arrive.
            2 => self.later(now, self.next % slow, Event::Arrive(actor, id, command, back)),
            // Its answer is slow.
            _ => self.later(now, there, Event::Arrive(actor, id, command, slow)),
        }
        self.later(now, patience, Event::Heard(actor, id, StoreEvent::Unavailable));
    }
}

/// What a day amounted to, for the test that not all days are empty.
#[derive(Default)]
struct Sum {
    starts: usize,
    commits: usize,
}

fn live_through(day: &Day) -> Sum {
    let policy = policy(|policy| policy.once = day.once);
    let mut laws = Laws::new(policy);
    let expires = at(0.0).saturating_add(Duration::from_millis(day.expires));
    let mut actors: Vec<Actor> = Vec::new();
    let mut simulation =
        Simulation { queue: BTreeMap::new(), next: 0, random: day.seed, trouble: day.trouble };
    for (number, copy) in day.copies.iter().enumerate() {
        let mut retry = Retry::new(key(), answers(copy.script.answers), expires);
        retry.deadline = copy
            .deadline
            .map(|after| at(0.0).saturating_add(Duration::from_millis(copy.starts.saturating_add(after))));
        actors.push(Actor::new(number, copy.script, day.ahead[copy.replica], &policy, retry));
        simulation.later(at(0.0), copy.starts, Event::Poll(number));
        if let Some(after) = copy.crashes_after {
            simulation.later(at(0.0), copy.starts + after, Event::Crash(number));
        }
    }
    // The command that each actor waits for, by number.
    let mut waits: Vec<Option<u64>> = vec![None; actors.len()];
    let mut commands = 0u64;
    let mut steps = 0;
    while let Some(((now, _), event)) = simulation.queue.pop_first() {
        steps += 1;
        assert!(steps < 50_000, "law 7: no end in sight");
        let number = match event {
            Event::Arrive(number, id, command, back) => {
                let event = laws.apply(now, number, &command, &actors);
                simulation.later(now, back, Event::Heard(number, id, event));
                continue;
            }
            Event::Poll(number) | Event::Crash(number) | Event::Heard(number, ..) => number,
        };
        if actors[number].is_over() {
            continue;
        }
        if let Some((from, length)) = day.copies[number].stalls {
            let from = at(0.0).saturating_add(Duration::from_millis(day.copies[number].starts + from));
            let until = from.saturating_add(Duration::from_millis(length));
            if now >= from && now < until && !matches!(event, Event::Crash(_)) {
                simulation.push(until, event);
                continue;
            }
        }
        match event {
            Event::Crash(_) => {
                actors[number].crash(&mut laws);
                continue;
            }
            Event::Heard(_, id, event) => {
                if waits[number] != Some(id) {
                    continue;
                }
                waits[number] = None;
                actors[number].handle(now, event);
            }
            Event::Poll(_) | Event::Arrive(..) => {}
        }
        actors[number].settle(now, &mut laws);
        if waits[number].is_none()
            && let Some(command) = actors[number].out.clone()
        {
            commands += 1;
            waits[number] = Some(commands);
            simulation.send(now, number, commands, command, &mut laws);
        }
        if let Some(wake) = actors[number].wake {
            simulation.push(wake.max(now), Event::Poll(number));
        }
    }
    assert_eq!(laws.ends.len(), actors.len(), "law 7: every claim ends");
    Sum { starts: laws.starts(), commits: laws.commits() }
}

proptest! {
    /// Laws 1 to 5 and 7.
    #[test]
    fn laws_hold_on_any_day(day in day()) {
        live_through(&day);
    }
}

/// The days are not empty: handlers start twice, commits happen, and states expire before they are used.
#[test]
fn days_are_eventful() {
    use proptest::{strategy::ValueTree as _, test_runner::TestRunner};
    let mut runner = TestRunner::deterministic();
    let mut seen = [0; 3];
    for _ in 0..200 {
        let day = day().new_tree(&mut runner).unwrap().current();
        let sum = live_through(&day);
        seen[0] += usize::from(sum.starts > 1);
        seen[1] += usize::from(sum.commits > 0);
        seen[2] += usize::from(sum.starts == 0);
    }
    assert!(seen.iter().all(|count| *count >= 5), "{seen:?}");
}
