//! Replay is the same as running live: random handlers, each request a new run from sealed bytes, against a
//! direct evaluation that is kept alive.

use std::{
    collections::BTreeMap,
    sync::{Arc, atomic::Ordering},
};

use mrtr_core::{
    Limits,
    handler::{Ctx, ToolResult},
    tape::{AfterEffects, TapePolicy},
};
use mrtr_tests::{
    model::{
        Random,
        oracle::{Able, Expected, Given, Oracle},
        program::{self, Kind, Outside, Program},
    },
    world::{Reply, World, accept, cancel, decline},
};
use serde_json::{Value, json};

/// Programs in a run of the test suite; `MRTR_PROGRAMS` overrides it.
const PROGRAMS: u64 = 5_000;

fn programs() -> u64 {
    std::env::var("MRTR_PROGRAMS").ok().and_then(|text| text.parse().ok()).unwrap_or(PROGRAMS)
}

fn wire(kind: Kind, given: &Given) -> Value {
    match (given, kind) {
        (Given::Refused, _) => unreachable!("no modern client can say so"),
        (Given::Decline, _) => decline(),
        (Given::Cancel, _) => cancel(),
        (Given::Bad, _) => accept(json!({"n": 10})),
        (Given::Number(n), Kind::OptionalSampling) => {
            json!({"role": "assistant", "model": "m", "content": {"type": "text", "text": n.to_string()}})
        }
        (Given::Number(n), Kind::OptionalRoots | Kind::RequiredRoots) => {
            json!({"roots": (0..*n).map(|i| json!({"uri": format!("file:///{i}")})).collect::<Vec<_>>()})
        }
        (Given::Number(_), Kind::Errand(_)) => json!({"action": "accept"}),
        (Given::Number(n), kind) => accept(if kind.has_fields() { json!({"n": n}) } else { json!({}) }),
    }
}

fn given(random: &mut Random, kind: Kind) -> Given {
    match kind {
        Kind::OptionalSampling | Kind::OptionalRoots | Kind::RequiredRoots => {
            Given::Number(random.below(6) as i64)
        }
        kind => match random.below(10) {
            0 => Given::Decline,
            1 => Given::Cancel,
            2 | 3 if kind.has_fields() => Given::Bad,
            _ => Given::Number(random.below(10) as i64),
        },
    }
}

fn able(random: &mut Random) -> Able {
    Able { sampling: !random.chance(3), roots: !random.chance(3), url: !random.chance(3) }
}

fn declare(world: &mut World, able: Able) {
    let mut capabilities = json!({"elicitation": {"form": {}}});
    if able.sampling {
        capabilities["sampling"] = json!({});
    }
    if able.roots {
        capabilities["roots"] = json!({});
    }
    if able.url {
        capabilities["elicitation"]["url"] = json!({});
    }
    world.capabilities = capabilities;
}

fn observed(reply: &Reply) -> Expected {
    if reply.0.get("error").is_some() {
        return match reply.error() {
            (-32021, _) => Expected::Missing,
            (-32603, "Internal error: this question changes from run to run") => Expected::Unstable,
            (-32603, "Internal error") => Expected::Effects,
            _ => panic!("{reply:?}"),
        };
    }
    match reply.result()["resultType"].as_str() {
        Some("complete") => Expected::Complete(reply.text().parse().expect("a number")),
        _ => {
            let mut keys: Vec<String> = reply.keys().into_iter().map(String::from).collect();
            keys.sort();
            Expected::Sent(keys)
        }
    }
}

/// What came of many programs.
#[derive(Default)]
struct Tally {
    rounds: u64,
    complete: u64,
    missing: u64,
    unstable: u64,
    effects: u64,
    divergences: u64,
    longest: u64,
}

/// A3…A8, A9…A11, G-13, G-18, R-066, R-067, R-082, R-083, R-137: optional asks, partial, invalid and stateless answers,
/// capabilities that change between rounds, answers to keys nobody asked, checkpoints, once-values, kept projections,
/// urls whose errand takes a while, and questions that are others by the time they are answered.
#[test]
fn replay_equals_live() {
    let mut tally = Tally::default();
    for seed in 0..programs() {
        play(seed, &mut tally);
    }
    let Tally { rounds, complete, missing, unstable, effects, divergences, longest } = tally;
    println!(
        "{} handlers: {complete} completed, {missing} ended -32021, {unstable} unstable, {effects} left after \
         once-values, {divergences} divergences, {rounds} rounds, longest {longest}",
        programs()
    );
    assert!(complete > programs() / 2 && divergences > programs() / 50 && effects > 1);
}

fn play(seed: u64, tally: &mut Tally) {
    let mut limits = Limits::default();
    limits.rounds = 200;
    limits.asks_sent = 64;
    let mut random = Random::new(seed);
    let tree = Program::random(&mut random, 3, "");
    let outside = Arc::new(Outside::default());
    let inside = (tree.clone(), outside.clone());
    let mut policy = TapePolicy::default();
    policy.after_effects = match random.below(3) {
        0 => AfterEffects::Refuse,
        1 => AfterEffects::Keep,
        _ => AfterEffects::Drop,
    };
    let effects = policy.after_effects;
    let mut world = World::with(limits, policy, move |ctx: Ctx| {
        let (tree, outside) = inside.clone();
        async move { Ok(ToolResult::text(program::run(ctx, tree, outside).await.to_string())) }
    });
    // One in three exchanges begins with answers to what it may guess will be asked.
    let mut early = BTreeMap::new();
    if random.chance(3) {
        for key in ["q1", "q2", "0.q1", "1.q1", "loop", "r.q1"] {
            if random.chance(2) {
                early.insert(key.to_owned(), Given::Number(random.below(10) as i64));
            }
        }
    }
    let mut oracle = Oracle::new(&tree, early.clone(), effects);
    let mut able_now = able(&mut random);
    declare(&mut world, able_now);
    // A guess that turns out to be for another kind is a fault of the client; find the kind by asking the tree.
    let kinds = kinds(&tree);
    early.retain(|key, _| kinds.contains_key(key));
    let wired: BTreeMap<&String, Value> =
        early.iter().map(|(key, given)| (key, wire(kinds[key], given))).collect();
    let params = if wired.is_empty() { json!({}) } else { json!({"inputResponses": wired}) };
    let mut reply = world.call(params);
    let mut expected = oracle.request(&BTreeMap::new(), able_now, 0);
    let mut turns = 0;
    loop {
        let mut sorted = expected.clone();
        if let Expected::Sent(keys) = &mut sorted {
            keys.sort();
        }
        assert_eq!(observed(&reply), sorted, "seed {seed}, request {turns}: {tree:#?}");
        let keys = match &expected {
            Expected::Sent(keys) => keys.clone(),
            Expected::Complete(_) => {
                tally.complete += 1;
                break;
            }
            Expected::Missing => {
                tally.missing += 1;
                break;
            }
            Expected::Unstable => {
                tally.unstable += 1;
                break;
            }
            Expected::Effects => {
                tally.effects += 1;
                break;
            }
        };
        tally.rounds += 1;
        turns += 1;
        let mut answers = BTreeMap::new();
        for key in keys {
            if !random.chance(4) {
                let given = given(&mut random, oracle.kind(&key));
                answers.insert(key, given);
            }
        }
        let mut wired: BTreeMap<String, Value> =
            answers.iter().map(|(key, given)| (key.clone(), wire(oracle.kind(key), given))).collect();
        wired.insert("nobody-asked".into(), json!("nonsense"));
        able_now = able(&mut random);
        declare(&mut world, able_now);
        if random.chance(6) {
            outside.version.fetch_add(1, Ordering::Relaxed);
        }
        reply = world.retry(&reply, json!(wired));
        expected = oracle.request(&answers, able_now, outside.version.load(Ordering::Relaxed));
    }
    tally.divergences += u64::from(oracle.divergences());
    tally.longest = tally.longest.max(turns);
}

/// The kind of every question by its first key.
fn kinds(tree: &Program) -> BTreeMap<String, Kind> {
    tree.questions().into_iter().map(|question| (question.key.clone(), question.kind)).collect()
}
