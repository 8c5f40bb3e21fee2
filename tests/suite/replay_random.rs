//! Replay is the same as running live: random handlers, each request a new run from sealed bytes, against a
//! direct evaluation that is kept alive.

use std::{
    collections::BTreeMap,
    sync::{Arc, atomic::AtomicI64},
};

use mrtr_core::{
    Limits,
    handler::{Ctx, ToolResult},
    tape::TapePolicy,
};
use mrtr_tests::{
    model::{
        Random,
        oracle::{Able, Expected, Given, Oracle},
        program::{self, Kind, Program},
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
        (Given::Decline, _) => decline(),
        (Given::Cancel, _) => cancel(),
        (Given::Bad, _) => accept(json!({"n": 10})),
        (Given::Number(n), Kind::Form | Kind::Solicited) => accept(json!({"n": n})),
        (Given::Number(n), Kind::OptionalSampling) => {
            json!({"role": "assistant", "model": "m", "content": {"type": "text", "text": n.to_string()}})
        }
        (Given::Number(n), Kind::OptionalRoots | Kind::RequiredRoots) => {
            json!({"roots": (0..*n).map(|i| json!({"uri": format!("file:///{i}")})).collect::<Vec<_>>()})
        }
    }
}

fn given(random: &mut Random, kind: Kind) -> Given {
    match kind {
        Kind::Form | Kind::Solicited => match random.below(10) {
            0 => Given::Decline,
            1 => Given::Cancel,
            2 | 3 => Given::Bad,
            _ => Given::Number(random.below(10) as i64),
        },
        Kind::OptionalSampling | Kind::OptionalRoots | Kind::RequiredRoots => {
            Given::Number(random.below(6) as i64)
        }
    }
}

fn able(random: &mut Random) -> Able {
    Able { sampling: !random.chance(3), roots: !random.chance(3) }
}

fn declare(world: &mut World, able: Able) {
    let mut capabilities = json!({"elicitation": {"form": {}}});
    if able.sampling {
        capabilities["sampling"] = json!({});
    }
    if able.roots {
        capabilities["roots"] = json!({});
    }
    world.capabilities = capabilities;
}

fn observed(reply: &Reply) -> Expected {
    if reply.0.get("error").is_some() {
        assert_eq!(reply.error().0, -32021, "{reply:?}");
        return Expected::Missing;
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

/// A3…A7, A9, A11, G-13, R-067, R-082, R-083: optional asks, partial, invalid and stateless answers, capabilities
/// that change between rounds, answers to keys nobody asked.
#[test]
fn replay_equals_live() {
    let (mut rounds, mut complete, mut missing, mut longest) = (0u64, 0u64, 0u64, 0u64);
    let mut limits = Limits::default();
    limits.rounds = 200;
    limits.asks_sent = 64;
    for seed in 0..programs() {
        let mut random = Random::new(seed);
        let tree = Program::random(&mut random, 3, "");
        let made = Arc::new(AtomicI64::new(0));
        let inside = (tree.clone(), made.clone());
        let mut world = World::with(limits.clone(), TapePolicy::default(), move |ctx: Ctx| {
            let (tree, made) = inside.clone();
            async move { Ok(ToolResult::text(program::run(ctx, tree, made).await.to_string())) }
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
        let mut oracle = Oracle::new(&tree, early.clone());
        let mut able_now = able(&mut random);
        declare(&mut world, able_now);
        // A guess that turns out to be for another kind is a fault of the client; find the kind by asking the tree.
        let kinds = kinds(&tree);
        early.retain(|key, _| kinds.contains_key(key));
        let wired: BTreeMap<&String, Value> =
            early.iter().map(|(key, given)| (key, wire(kinds[key], given))).collect();
        let params = if wired.is_empty() { json!({}) } else { json!({"inputResponses": wired}) };
        let mut reply = world.call(params);
        let mut expected = oracle.request(&BTreeMap::new(), able_now);
        let mut turns = 0;
        loop {
            let mut sorted = expected.clone();
            if let Expected::Sent(keys) = &mut sorted {
                keys.sort();
            }
            assert_eq!(observed(&reply), sorted, "seed {seed}, request {turns}: {tree:#?}");
            let keys = match &expected {
                Expected::Complete(_) => {
                    complete += 1;
                    break;
                }
                Expected::Missing => {
                    missing += 1;
                    break;
                }
                Expected::Sent(keys) => keys.clone(),
            };
            rounds += 1;
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
            reply = world.retry(&reply, json!(wired));
            expected = oracle.request(&answers, able_now);
        }
        longest = longest.max(turns);
    }
    println!(
        "{} handlers: {complete} completed, {missing} ended -32021, {rounds} rounds, longest {longest}",
        programs()
    );
    assert!(complete > programs() / 2);
}

/// The kind of every question by its first key.
fn kinds(tree: &Program) -> BTreeMap<String, Kind> {
    let mut found = BTreeMap::new();
    let mut todo = vec![tree];
    while let Some(program) = todo.pop() {
        match program {
            Program::Ask(question) | Program::Loop(question) => {
                found.insert(question.key.clone(), question.kind);
            }
            Program::Sequence(children) | Program::Join(children) | Program::Unordered(children) => {
                todo.extend(children)
            }
            Program::Race(question, child) => {
                found.insert(question.key.clone(), question.kind);
                todo.push(child);
            }
            Program::Once(_, child) => todo.push(child),
        }
    }
    found
}
