//! What is refused, what ends, what is bounded, and what is not replayed (G-48).

use mrtr_core::{
    Entropy,
    bridge::{Bridge, CallFailure, ConfigError},
    http::ReplyClass,
};

use super::{super::all, *};

const REFUSED: &str = "Invalid or expired requestState";

/// Makes a first round; its result.
fn one_round(world: &mut World) -> Value {
    let run = first(world);
    run.asks(world, 1, "city");
    run.left(world, 1)
}

/// G-48, G-11: a state is for its principal, its request, its time, and for a tool that is still named; whatever is wrong
/// with it, nothing runs.
#[test]
fn a_state_that_is_not_for_this_runs_nothing_g48() {
    let mut world = world();
    let one = one_round(&mut world);
    let state = one["requestState"].as_str().unwrap();
    let mut tampered = String::from(state);
    let last = if tampered.pop() == Some('A') { 'E' } else { 'A' };
    tampered.push(last);
    let answers = json!({"u1": accept("x")});
    let with = |state: &str, more: Value| {
        let mut params = json!({"requestState": state, "inputResponses": answers});
        params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        params
    };
    for (principal, params) in [
        ("bob", with(state, json!({}))),
        ("alice", with(state, json!({"arguments": {"a": 2}}))),
        ("alice", with(state, json!({"name": "other"}))),
        ("alice", with(&tampered, json!({}))),
        ("alice", with("AAAA", json!({}))),
    ] {
        let (host, _) = world.call(principal, &forms(), &params);
        assert_eq!(world.reply(host)["error"], json!({"code": -32602, "message": REFUSED}));
    }
    // Other processes: one that no longer names the tool, one with another server of that kind.
    let mut forgetful = World::new(config(&[("up", Transport::Pipe, Era::Legacy)]));
    let mut elsewhere = replaying(Transport::Pipe);
    elsewhere.upstreams[0].name = "down".into();
    for world in [&mut forgetful, &mut World::new(elsewhere)] {
        let host = retry_by(world, "alice", &one, answers.clone());
        assert_eq!(world.reply(host)["error"]["message"], REFUSED);
    }
    // It is good for as long as a wrapped state.
    world.pass(Duration::from_secs(3_599 - 1));
    world.take();
    let run = again(&mut world, &one, answers.clone());
    run.knows(&mut world, 1, "city");
    run.ends(&mut world);
    world.pass(Duration::from_secs(120));
    world.take();
    let host = retry_by(&mut world, "alice", &one, answers);
    assert_eq!(world.reply(host)["error"]["message"], REFUSED);
    nothing_is_held(&world);
}

/// G-48: the deadline of an exchange is that of its first request, whoever seals the later states.
#[test]
fn an_exchange_has_one_deadline_g48() {
    let mut world = world();
    let one = one_round(&mut world);
    world.pass(Duration::from_secs(3_500));
    world.take();
    let run = again(&mut world, &one, json!({"u1": accept("x")}));
    run.knows(&mut world, 1, "city");
    run.asks(&mut world, 2, "days");
    let two = run.left(&mut world, 1);
    world.pass(Duration::from_secs(100));
    world.take();
    let host = retry_by(&mut world, "alice", &two, json!({"u2": accept("y")}));
    assert_eq!(world.reply(host)["error"]["message"], REFUSED);
}

/// G-48, A5: answers that cannot be ones are refused before anything runs, and the state is as good as before.
#[test]
fn a_malformed_answer_runs_nothing_g48() {
    let mut config = replaying(Transport::Pipe);
    config.limits.answer_bytes = 100;
    let mut world = World::new(config);
    let one = one_round(&mut world);
    for (answer, fault) in [
        (json!({"action": "perhaps"}), "inputResponses[\"u1\"].action"),
        (json!({"roots": []}), "inputResponses[\"u1\"]"),
        (accept(&"x".repeat(100)), "Limits::answer_bytes"),
    ] {
        let host = retry_by(&mut world, "alice", &one, json!({"u1": answer}));
        let error = world.reply(host)["error"].take();
        assert_eq!(error["code"], -32602);
        assert!(error["message"].as_str().unwrap().contains(fault), "{error}");
    }
    assert_eq!(world.bridge.counts().rerun, 0);
    let run = again(&mut world, &one, json!({"u1": accept("x")}));
    run.knows(&mut world, 1, "city");
    run.ends(&mut world);
}

/// G-48: a tool that asks something else in every run comes to an end (Limits::rounds), over all processes.
#[test]
fn rounds_are_bounded_g48() {
    let mut config = replaying(Transport::Pipe);
    config.limits.rounds = 3;
    let mut worlds = [9, 7].map(|seed| World::seeded(config.clone(), seed));
    let mut run = first(&mut worlds[0]);
    for round in 1..=3 {
        let world = &mut worlds[(round + 1) % 2];
        run.asks(world, 1, &format!("token {round}"));
        let result = run.left(world, 1);
        run = again(&mut worlds[round % 2], &result, json!({format!("u{round}"): accept("x")}));
    }
    let world = &mut worlds[1];
    run.asks(world, 1, "token 4");
    world.pass(Duration::from_millis(10));
    let said = world.take();
    let error = said[0].json()["error"].take();
    assert_eq!(error["code"], -32603);
    assert!(error["message"].as_str().unwrap().contains("3 rounds of questions (Limits::rounds)"), "{error}");
    assert!(said[1..].iter().any(|said| said.json()["method"] == "notifications/cancelled"));
    nothing_is_held(world);
}

/// G-48: a state that would be too large is a named error, and the run is taken back.
#[test]
fn the_state_is_bounded_g48() {
    let mut config = replaying(Transport::Pipe);
    config.limits.state_accepted = 2_000;
    let mut world = World::new(config);
    let one = one_round(&mut world);
    let run = again(&mut world, &one, json!({"u1": accept(&"x".repeat(1_600))}));
    run.knows(&mut world, 1, "city");
    run.asks(&mut world, 2, "days");
    world.pass(Duration::from_millis(10));
    let said = world.take();
    let error = said[0].json()["error"].take();
    assert_eq!(error["code"], -32603);
    assert!(error["message"].as_str().unwrap().contains("2000 (Limits::state_accepted)"), "{error}");
    assert!(said[1..].iter().any(|said| said.json()["method"] == "notifications/cancelled"));
    nothing_is_held(&world);
    // Questions are bounded as ever.
    let mut config = replaying(Transport::Pipe);
    config.limits.asks_accepted = 2;
    let mut world = World::new(config);
    let run = first(&mut world);
    run.asks(&mut world, 1, "a");
    run.asks(&mut world, 2, "b");
    world.up(run.link, &form(json!(3), "c"));
    assert_eq!(world.sent().1["error"]["code"], -32603);
}

/// G-48: what the operator has not named is parked as before, whatever the server says of it; so are prompts and resources.
#[test]
fn what_is_not_named_is_parked_g48() {
    let mut config = replaying(Transport::Pipe);
    config.pool.processes = 8;
    let mut world = World::new(config);
    for (parked, (method, params)) in [
        ("tools/call", json!({"name": "T", "arguments": {}})),
        ("prompts/get", json!({"name": "t"})),
        ("resources/read", json!({"uri": "t"})),
    ]
    .into_iter()
    .enumerate()
    {
        let (host, _) = world.post("alice", method, params, &forms());
        let (link, _, _) = world.begin("2025-11-25");
        world.up(link, &form(json!(1), "m"));
        world.pass(Duration::from_millis(10));
        assert_eq!(world.reply(host)["result"]["resultType"], "input_required");
        assert_eq!(world.bridge.counts().parked, parked + 1);
    }
}

/// G-48: names are the upstream's own; with several upstreams, each has its own list, and the origin is part of what a
/// person saw.
#[test]
fn each_upstream_names_its_own_tools_g48() {
    let mut config = config(&[("a", Transport::Pipe, Era::Legacy), ("b", Transport::Pipe, Era::Legacy)]);
    config.upstreams[1].replay = vec!["t".into()];
    let mut world = World::new(config);
    for (name, parked) in [("a__t", 1), ("b__t", 0)] {
        let (host, _) = world.call("alice", &forms(), &json!({"name": name}));
        let (link, _, said) = world.begin("2025-11-25");
        assert_eq!(said[1].json()["params"]["name"], "t");
        world.up(link, &form(json!(1), "m"));
        world.pass(Duration::from_millis(10));
        let said = world.take();
        let result = said[0].json()["result"].take();
        assert!(matches!(said[0], Said::Host { host: to, .. } if to == host));
        assert_eq!(said.len() == 1, parked == 1);
        if parked == 0 {
            let more = json!({"name": name, "requestState": result["requestState"],
                "inputResponses": {"u1": accept("x")}});
            world.call("alice", &forms(), &more);
            let (link, _, said) = world.begin("2025-11-25");
            assert_eq!(said[1].json()["params"]["name"], "t");
            world.up(link, &form(json!(4), "m"));
            assert_eq!(world.sent().1["result"], accept("x"));
        }
    }
    assert_eq!(world.bridge.counts().parked, 1);
    let mut nameless = replaying(Transport::Pipe);
    nameless.upstreams[0].replay.push("".into());
    let fault = Bridge::new(nameless, Entropy::new([1; 32])).unwrap_err();
    assert_eq!(fault, ConfigError::Nameless("up".into()));
}

/// G-48: such a call counts as a request under way and as nothing else; what its host cannot show waits in no inbox.
#[test]
fn quotas_and_inbox_g48() {
    let mut config = replaying(Transport::Pipe);
    config.quota.parked = 0;
    config.quota.calls = 1;
    config.inbox.form = true;
    let mut world = World::new(config);
    let run = first(&mut world);
    let (second, _) = world.call("alice", &forms(), &json!({}));
    assert!(world.reply(second)["error"]["message"].as_str().unwrap().contains("Quota::calls"));
    run.asks(&mut world, 1, "city");
    let one = run.left(&mut world, 1);
    // A host that has lost the capability meanwhile: the upstream is told that nobody can be asked.
    let more = json!({"requestState": one["requestState"], "inputResponses": {"u1": accept("x")}});
    let (host, _) = world.call("alice", &json!({}), &more);
    let (link, promise, _) = world.begin("2025-11-25");
    assert_eq!(promise, json!({}));
    world.up(link, &form(json!(1), "days"));
    assert_eq!(world.sent().1["error"]["code"], -32602);
    assert_eq!(world.bridge.counts().inbox, 0);
    world.leave(host);
    assert_eq!(world.take().len(), 1);
    nothing_is_held(&world);
}

/// G-48, R-250: a kind of question that the host has not declared ends the call, also if an inbox would take it.
#[test]
fn undeclared_questions_g48_r250() {
    let mut config = replaying(Transport::Pipe);
    config.inbox.roots = true;
    let mut world = World::new(config);
    let one = one_round(&mut world);
    let run = again(&mut world, &one, json!({"u1": accept("x")}));
    world.up(run.link, &json!({"jsonrpc": "2.0", "id": 9, "method": "roots/list"}));
    let said = world.take();
    assert!(matches!(said[0], Said::Host { last: Some(ReplyClass::MissingCapability), .. }), "{said:?}");
    assert_eq!(said[2].json()["method"], "notifications/cancelled");
    nothing_is_held(&world);
}

/// G-48: an upstream that dies, fails or is not there in a later run: an error, as for any call, and nothing stays. The
/// state is as good as before.
#[test]
fn an_upstream_that_dies_g48() {
    let mut world = world();
    let one = one_round(&mut world);
    let answers = json!({"u1": accept("x")});
    let run = again(&mut world, &one, answers.clone());
    world.close(run.link);
    let error = world.reply(run.host)["error"].take();
    assert_eq!((&error["code"], &error["data"]["kind"]), (&json!(-32603), &json!("broken")));
    nothing_is_held(&world);
    let counts = world.bridge.counts();
    assert_eq!((counts.lost, counts.rerun), (1, 1));
    let run = again(&mut world, &one, answers.clone());
    world.fail(run.link, run.call, CallFailure::TimedOut);
    let said = world.take();
    let told = said.iter().find(|said| matches!(said, Said::Host { .. })).unwrap().json();
    assert_eq!(told["error"]["data"]["kind"], "timeout");
    nothing_is_held(&world);
    let run = again(&mut world, &one, answers);
    run.knows(&mut world, 1, "city");
    run.ends(&mut world);
}

/// G-48, R-262: a host that cancels in the middle of a run, or leaves, cancels it there.
#[test]
fn a_host_that_cancels_g48_r262() {
    let mut world = world();
    let one = one_round(&mut world);
    let run = again(&mut world, &one, json!({"u1": accept("x")}));
    run.knows(&mut world, 1, "city");
    run.asks(&mut world, 2, "days");
    world.leave(run.host);
    let up: Vec<Value> = world.take().iter().map(Said::json).collect();
    let cancelled = up.iter().find(|message| message["method"] == "notifications/cancelled").unwrap();
    assert_eq!(cancelled["params"], json!({"requestId": run.call}));
    nothing_is_held(&world);
    // Its questions are gone with it.
    world.pass(Duration::from_secs(1));
    assert!(world.take().is_empty());
}

fn urls(capabilities: &Value, answer: Option<(&Value, &str)>, world: &mut World) -> Run {
    let more = answer.map_or_else(
        || json!({}),
        |(result, action)| {
            let key = keys(result)[0];
            json!({"requestState": result["requestState"], "inputResponses": {key: {"action": action}}})
        },
    );
    let (host, _) = world.call("alice", capabilities, &more);
    run_of(world, host)
}

/// G-48, BT-6: a url that has to be opened first is asked for like anything else. Opened, and the upstream does not know
/// yet: it is given time and asked once more; then the host is. Not opened: the call ends, and nothing runs.
#[test]
fn urls_that_have_to_be_opened_g48() {
    let required = json!({"code": -32042, "message": "open", "data": {"elicitations": [
        {"mode": "url", "elicitationId": "e", "url": "https://u.example/", "message": "Sign in"}]}});
    let mut world = world();
    let run = urls(&all(), None, &mut world);
    world.error(run.link, run.call, required.clone());
    let one = world.reply(run.host)["result"].take();
    nothing_is_held(&world);
    assert_eq!(one["inputRequests"]["u1"]["params"]["url"], "https://u.example/");
    let (host, _) = world.call(
        "alice",
        &all(),
        &json!({"requestState": one["requestState"], "inputResponses": {"u1": {"action": "decline"}}}),
    );
    assert_eq!(world.reply(host)["result"]["isError"], true);
    assert_eq!(world.bridge.counts().rerun, 0);
    nothing_is_held(&world);

    // The session was not cancelled in the middle of anything, so it is used again.
    let more = json!({"requestState": one["requestState"], "inputResponses": {"u1": {"action": "accept"}}});
    let (host, _) = world.call("alice", &all(), &more);
    let (link, sent) = world.sent();
    assert_eq!((link, &sent["method"]), (run.link, &json!("tools/call")));
    world.error(link, sent["id"].as_i64().unwrap(), required.clone());
    assert!(world.take().is_empty());
    world.pass(Duration::from_secs(25));
    let said = world.take();
    let repeated = said.iter().find(|said| matches!(said, Said::Up { .. })).unwrap().json();
    assert_eq!(repeated["method"], "tools/call");
    world.error(link, repeated["id"].as_i64().unwrap(), required);
    world.pass(Duration::from_secs(25));
    let said = world.take();
    let two = said.last().unwrap().json()["result"].take();
    assert_eq!(keys(&two), ["u3"]);
    nothing_is_held(&world);
    let more = json!({"requestState": two["requestState"], "inputResponses": {"u3": {"action": "accept"}}});
    let (last, _) = world.call("alice", &all(), &more);
    assert_ne!(last, host);
    let (link, sent) = world.sent();
    world.result(link, sent["id"].as_i64().unwrap(), text("done"));
    assert_eq!(world.reply(last)["result"]["content"], text("done")["content"]);
    nothing_is_held(&world);
}

/// G-48, BT-6: a call that is made again for a url, within one request, asks from its beginning and is answered again.
#[test]
fn a_call_that_is_made_again_for_a_url_g48() {
    let required = json!({"code": -32042, "message": "open", "data": {"elicitations": [
        {"mode": "url", "elicitationId": "e", "url": "https://u.example/", "message": "Sign in"}]}});
    let mut world = world();
    let run = urls(&all(), None, &mut world);
    run.asks(&mut world, 1, "city");
    let one = run.left(&mut world, 1);
    let more = json!({"requestState": one["requestState"], "inputResponses": {"u1": accept("Oslo")}});
    let (host, _) = world.call("alice", &all(), &more);
    let run = run_of(&mut world, host);
    run.knows(&mut world, 1, "city");
    world.error(run.link, run.call, required.clone());
    let two = world.reply(host)["result"].take();
    let more = json!({"requestState": two["requestState"], "inputResponses": {"u2": {"action": "accept"}}});
    let (host, _) = world.call("alice", &all(), &more);
    let mut call = world.sent().1["id"].as_i64().unwrap();
    for again in [true, false] {
        assert_eq!(run.knows(&mut world, 2, "city"), accept("Oslo"));
        if again {
            world.error(run.link, call, required.clone());
            // It has heard by now, and says so (BT-2).
            world.up(
                run.link,
                &json!({"jsonrpc": "2.0", "method": "notifications/elicitation/complete", "params": {"elicitationId": "e"}}),
            );
            call = world.sent().1["id"].as_i64().unwrap();
        }
    }
    world.result(run.link, call, text("done"));
    assert_eq!(world.reply(host)["result"]["content"], text("done")["content"]);
    nothing_is_held(&world);
}
