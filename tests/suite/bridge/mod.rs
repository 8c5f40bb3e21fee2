//! The bridge through its public API, by hand-played hosts and upstreams (design §9).

mod changes;
mod failures;
mod handoff;
mod hosts;
mod inbox;
mod levels;
mod own;
mod pairs;
mod params;
mod parked;
mod pools;
mod relay;
mod replay;
mod resources;
mod resumption;
mod scripts;
mod simulation;
mod unaccepted;
mod upstreams;
mod urls;

use mrtr_tests::bridge::World;
use serde_json::{Value, json};

/// What a host can answer: everything.
fn all() -> Value {
    json!({"elicitation": {"form": {}, "url": {}}, "sampling": {"tools": {}, "context": {}}, "roots": {}})
}

fn forms() -> Value {
    json!({"elicitation": {"form": {}}})
}

/// A form with `n` filled in.
fn accept(n: &str) -> Value {
    json!({"action": "accept", "content": {"n": n}})
}

/// A text result of a tool.
fn text(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}]})
}

/// Nothing is left over: no request, no parked call, no timer but those of idle sessions.
fn rests(world: &World) {
    let counts = world.bridge.counts();
    assert_eq!((counts.open, counts.parked, counts.waiting), (0, 0, 0), "{counts:?}");
}
