//! Modern host, legacy upstream, tools that are run again instead of parked (G-48).

mod edges;
mod scripted;

use std::time::Duration;

use mrtr_core::{
    bridge::{Config, HostId, LinkId, Transport},
    wire::Era,
};
use mrtr_tests::bridge::{Said, World, config, form};
use serde_json::{Value, json};

use super::{accept, forms, rests, text};

/// One legacy upstream whose tool `t` is replayed.
fn replaying(transport: Transport) -> Config {
    let mut config = config(&[("up", transport, Era::Legacy)]);
    config.upstreams[0].replay = vec!["t".into()];
    config
}

fn world() -> World {
    World::new(replaying(Transport::Pipe))
}

/// One run of the tool at the upstream.
struct Run {
    host: HostId,
    link: LinkId,
    call: i64,
}

/// The call that a request of `host` makes, on a session of its own.
fn run_of(world: &mut World, host: HostId) -> Run {
    let (link, _, said) = world.begin("2025-11-25");
    let sent = said[1].json();
    assert_eq!(sent["method"], "tools/call");
    // What it is told is the same in every run.
    assert_eq!(sent["params"], json!({"name": "t", "arguments": {"a": 1}}));
    Run { host, link, call: sent["id"].as_i64().unwrap() }
}

fn first(world: &mut World) -> Run {
    let (host, _) = world.call("alice", &forms(), &json!({}));
    run_of(world, host)
}

/// A retry as it comes from the host.
fn retry_by(world: &mut World, principal: &str, result: &Value, answers: Value) -> HostId {
    let more = json!({"requestState": result["requestState"], "inputResponses": answers});
    world.call(principal, &forms(), &more).0
}

fn again(world: &mut World, result: &Value, answers: Value) -> Run {
    let host = retry_by(world, "alice", result, answers);
    run_of(world, host)
}

/// The keys of what is asked, in their order.
fn keys(result: &Value) -> Vec<&String> {
    result["inputRequests"].as_object().unwrap().keys().collect()
}

impl Run {
    /// The upstream asks, and nobody answers at once.
    fn asks(&self, world: &mut World, id: i64, message: &str) {
        world.up(self.link, &form(json!(id), message));
        assert!(world.take().is_empty());
    }

    /// The upstream asks and has its answer at once.
    fn knows(&self, world: &mut World, id: i64, message: &str) -> Value {
        world.up(self.link, &form(json!(id), message));
        let (link, mut answer) = world.sent();
        assert_eq!((link, &answer["id"]), (self.link, &json!(id)));
        answer["result"].take()
    }

    /// The end of the round: what the host gets. The run is cancelled, before its questions (as many as `open`) hear that
    /// nobody has answered them, and its session is closed at once: nothing is to be waited for.
    fn left(&self, world: &mut World, open: usize) -> Value {
        world.pass(Duration::from_millis(10));
        let said = world.take();
        assert!(matches!(said[0], Said::Host { host, last: Some(_), .. } if host == self.host), "{said:?}");
        let result = said[0].json()["result"].take();
        assert_eq!(result["resultType"], "input_required");
        let [told @ .., Said::Closed { link }] = &said[1..] else { panic!("{said:?}") };
        assert_eq!(*link, self.link);
        let up: Vec<Value> = told.iter().map(Said::json).collect();
        assert_eq!(up[0]["method"], "notifications/cancelled");
        assert_eq!(up[0]["params"], json!({"requestId": self.call}));
        assert_eq!(up.len(), 1 + open);
        assert!(up[1..].iter().all(|answer| answer["error"]["code"] == -32603), "{up:?}");
        nothing_is_held(world);
        result
    }

    fn ends(&self, world: &mut World) {
        world.result(self.link, self.call, text("done"));
        assert_eq!(world.reply(self.host)["result"]["content"], text("done")["content"]);
        nothing_is_held(world);
    }
}

/// Between two rounds: no call, no result, nothing that would keep a bridge from ending.
fn nothing_is_held(world: &World) {
    rests(world);
    let counts = world.bridge.counts();
    assert_eq!((counts.running, counts.kept, counts.inbox), (0, 0, 0), "{counts:?}");
    assert!(world.bridge.is_idle());
}

/// G-48: each round is a run of its own, what was answered is answered at once, and nothing waits in between.
#[test]
fn two_rounds_then_a_result_g48() {
    for transport in [Transport::Pipe, Transport::Http] {
        let mut world = World::new(replaying(transport));
        let run = first(&mut world);
        run.asks(&mut world, 70, "city");
        let one = run.left(&mut world, 1);
        assert_eq!(one["inputRequests"]["u1"]["params"], form(json!(0), "city")["params"]);
        assert_eq!(one["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "old");
        // What it still asks meets nobody.
        world.up(run.link, &form(json!(71), "late"));
        assert!(world.take().is_empty());
        assert_eq!((world.bridge.counts().sessions, world.bridge.poll_timeout()), (0, None));

        let run = again(&mut world, &one, json!({"u1": accept("Lisbon")}));
        assert_eq!(run.knows(&mut world, 1, "city"), accept("Lisbon"));
        run.asks(&mut world, 2, "days");
        let two = run.left(&mut world, 1);
        // Keys are used once in an exchange (BT-1).
        assert_eq!(keys(&two), ["u2"]);

        let run = again(&mut world, &two, json!({"u2": accept("3")}));
        assert_eq!(run.knows(&mut world, 5, "city"), accept("Lisbon"));
        assert_eq!(run.knows(&mut world, 6, "days"), accept("3"));
        run.ends(&mut world);
        let counts = world.bridge.counts();
        assert_eq!((counts.rounds, counts.asks, counts.rerun, counts.asked_again), (2, 2, 2, 0));
    }
}

/// G-48: any process with the keys takes the next round, with no word between them; the same retry twice is two runs.
#[test]
fn any_process_takes_the_next_round_g48() {
    let mut worlds = [9, 7, 8].map(|seed| World::seeded(replaying(Transport::Pipe), seed));
    let run = first(&mut worlds[0]);
    run.asks(&mut worlds[0], 1, "city");
    let one = run.left(&mut worlds[0], 1);
    let run = again(&mut worlds[1], &one, json!({"u1": accept("Lisbon")}));
    run.knows(&mut worlds[1], 1, "city");
    run.asks(&mut worlds[1], 2, "days");
    let two = run.left(&mut worlds[1], 1);
    for world in [2, 0] {
        let run = again(&mut worlds[world], &two, json!({"u2": accept("3")}));
        assert_eq!(run.knows(&mut worlds[world], 3, "city"), accept("Lisbon"));
        assert_eq!(run.knows(&mut worlds[world], 4, "days"), accept("3"));
        run.ends(&mut worlds[world]);
    }
}

/// G-48: an answer is for the question that was shown. In other words, or with another form, it is another question; what
/// no person sees of it may differ.
#[test]
fn a_changed_question_is_asked_again_g48() {
    let mut world = world();
    let run = first(&mut world);
    run.asks(&mut world, 1, "Pay 10?");
    let one = run.left(&mut world, 1);
    let run = again(&mut world, &one, json!({"u1": accept("yes")}));
    run.asks(&mut world, 1, "Pay 1000?");
    let mut other = form(json!(2), "Pay 10?");
    other["params"]["requestedSchema"]["required"] = json!(["n"]);
    world.up(run.link, &other);
    let two = run.left(&mut world, 2);
    assert_eq!(two["inputRequests"]["u2"]["params"]["message"], "Pay 1000?");
    assert_eq!(two["inputRequests"]["u3"]["params"], other["params"]);
    let run = again(&mut world, &two, json!({"u2": accept("no"), "u3": accept("maybe")}));
    let raw = r#"{"jsonrpc":"2.0","id":3,"method":"elicitation/create","params":{"_meta":{"progressToken":8},
        "requestedSchema":{"properties":{"n":{"type":"string"}},"type":"object"},"message":"Pay \u00310?"}}"#;
    world.up_raw(run.link, None, raw);
    assert_eq!(world.sent().1["result"], accept("yes"));
    assert_eq!(run.knows(&mut world, 4, "Pay 1000?"), accept("no"));
    run.ends(&mut world);
}

/// G-48: what was turned down stays turned down; what was not answered, or not asked, is asked.
#[test]
fn answers_are_replayed_as_they_were_given_g48() {
    let mut world = world();
    let run = first(&mut world);
    for (id, message) in [(1, "a"), (2, "b"), (3, "c")] {
        run.asks(&mut world, id, message);
    }
    let one = run.left(&mut world, 3);
    assert_eq!(keys(&one), ["u1", "u2", "u3"]);
    // u9 was never asked.
    let given = json!({"u1": {"action": "decline"}, "u2": {"action": "cancel"}, "u9": accept("x")});
    let run = again(&mut world, &one, given);
    assert_eq!(run.knows(&mut world, 1, "a"), json!({"action": "decline"}));
    assert_eq!(run.knows(&mut world, 2, "b"), json!({"action": "cancel"}));
    run.asks(&mut world, 3, "c");
    let two = run.left(&mut world, 1);
    assert_eq!(keys(&two), ["u4"]);
    // The key of a former round is none of this one.
    let run = again(&mut world, &two, json!({"u3": accept("late")}));
    run.knows(&mut world, 1, "a");
    run.asks(&mut world, 3, "c");
    let three = run.left(&mut world, 1);
    let run = again(&mut world, &three, json!({"u5": accept("c")}));
    assert_eq!(run.knows(&mut world, 1, "a"), json!({"action": "decline"}));
    assert_eq!(run.knows(&mut world, 3, "c"), accept("c"));
    run.ends(&mut world);
}

/// G-48: one question several times in one run gets its answers in the order in which they were given.
#[test]
fn a_question_that_comes_twice_has_two_answers_g48() {
    let mut world = world();
    let run = first(&mut world);
    run.asks(&mut world, 1, "next?");
    run.asks(&mut world, 2, "next?");
    let one = run.left(&mut world, 2);
    let run = again(&mut world, &one, json!({"u2": accept("second"), "u1": accept("first")}));
    assert_eq!(run.knows(&mut world, 1, "next?"), accept("first"));
    assert_eq!(run.knows(&mut world, 2, "next?"), accept("second"));
    run.asks(&mut world, 3, "next?");
    let two = run.left(&mut world, 1);
    let run = again(&mut world, &two, json!({"u3": accept("third")}));
    for (id, answer) in [(1, "first"), (2, "second"), (3, "third")] {
        assert_eq!(run.knows(&mut world, id, "next?"), accept(answer));
    }
    run.ends(&mut world);
}

/// G-48: known and unknown questions side by side: the known ones are answered while the others gather.
#[test]
fn what_is_known_does_not_wait_for_what_is_not_g48() {
    let mut world = world();
    let run = first(&mut world);
    run.asks(&mut world, 1, "a");
    let one = run.left(&mut world, 1);
    let run = again(&mut world, &one, json!({"u1": accept("a")}));
    run.asks(&mut world, 1, "new");
    assert_eq!(run.knows(&mut world, 2, "a"), accept("a"));
    run.asks(&mut world, 3, "newer");
    // The upstream takes one back, in time.
    world.up(
        run.link,
        &json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}),
    );
    let two = run.left(&mut world, 1);
    assert_eq!(two["inputRequests"]["u3"]["params"]["message"], "newer");
}
