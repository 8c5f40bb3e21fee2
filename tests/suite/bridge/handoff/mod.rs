//! Several processes with the same keys: a retry reaches another one than its call's (design §9).

mod hostile;
mod outage;
mod simulation;

use std::time::Duration;

use mrtr_core::{
    bridge::{HostId, LinkId, Reason, Transport},
    wire::Era,
};
use mrtr_tests::bridge::{Said, World, config, form};
use serde_json::{Value, json};

use super::{forms, rests, text};

fn replica(seed: u8) -> World {
    let mut config = config(&[("up", Transport::Pipe, Era::Legacy)]);
    config.replicas = true;
    World::seeded(config, seed)
}

/// Parks a call at `owner`: the session, the upstream's call, the state.
fn park(owner: &mut World) -> (LinkId, i64, Value) {
    park_with(owner, &json!({}))
}

fn park_with(owner: &mut World, more: &Value) -> (LinkId, i64, Value) {
    let (host, _) = owner.call("alice", &forms(), more);
    let (link, _, said) = owner.begin("2025-11-25");
    let call = said[1].json()["id"].as_i64().unwrap();
    owner.up(link, &form(json!(1), "m"));
    owner.pass(Duration::from_millis(10));
    (link, call, owner.reply(host)["result"]["requestState"].clone())
}

fn retry(world: &mut World, principal: &str, state: &Value) -> HostId {
    let answers = json!({"u1": {"action": "accept", "content": {"n": "a"}}});
    world.call(principal, &forms(), &json!({"requestState": state, "inputResponses": answers})).0
}

/// The one message for another process.
fn posted(world: &mut World, to: &World) -> Vec<u8> {
    match world.only() {
        said @ Said::Peer { .. } => for_peer(&said, to),
        other => panic!("{other:?}"),
    }
}

/// A message for another process among others.
fn for_peer(said: &Said, to: &World) -> Vec<u8> {
    match said {
        Said::Peer { peer, bytes, keep } => {
            assert_eq!(peer, to.bridge.epoch());
            assert!(*keep >= Duration::from_secs(1));
            bytes.clone()
        }
        other => panic!("{other:?}"),
    }
}

/// Hands a retry over and has it acknowledged: the host at the forwarder, and what the owner does for it.
fn handed(other: &mut World, owner: &mut World, state: &Value) -> (HostId, Vec<Said>) {
    let host = retry(other, "alice", state);
    let request = posted(other, owner);
    owner.peer(&request);
    let mut said = owner.take();
    let ack = for_peer(&said.remove(0), other);
    other.peer(&ack);
    assert!(other.take().is_empty());
    (host, said)
}

/// The upstream's call ends at the owner, and its result reaches the host at the other.
fn ends(owner: &mut World, other: &mut World, (link, call): (LinkId, i64), host: HostId) {
    owner.result(link, call, text("done"));
    let reply = posted(owner, other);
    other.peer(&reply);
    assert_eq!(other.reply(host)["result"]["content"], text("done")["content"]);
}

/// Nothing is left of any hand-off.
fn over(world: &World) {
    rests(world);
    let counts = world.bridge.counts();
    assert_eq!((counts.handed_open, counts.remote_open), (0, 0), "{counts:?}");
}

/// The owner gets the retry, acknowledges, and its reply comes back; signs of life both ways.
#[test]
fn a_retry_is_handed_to_the_owner_and_its_reply_comes_back() {
    let (mut owner, mut other) = (replica(1), replica(2));
    let (link, call, state) = park(&mut owner);
    let host = retry(&mut other, "alice", &state);
    assert_eq!(other.bridge.poll_timeout().unwrap().1, Reason::Owner);
    let request = posted(&mut other, &owner);
    owner.peer(&request);
    let said = owner.take();
    let [ack @ Said::Peer { .. }, answer] = said.as_slice() else { panic!("{said:?}") };
    assert_eq!(answer.json()["result"], json!({"action": "accept", "content": {"n": "a"}}));
    let ack = for_peer(ack, &other);
    other.peer(&ack);
    assert!(other.take().is_empty());
    owner.pass(Duration::from_secs(15));
    let alive = posted(&mut owner, &other);
    other.peer(&alive);
    let said = other.take();
    let [Said::Alive { host: to }, waiting] = said.as_slice() else { panic!("{said:?}") };
    assert_eq!(*to, host);
    let waiting = for_peer(waiting, &owner);
    owner.peer(&waiting);
    assert!(owner.take().is_empty());
    // The next questions, and then the result.
    owner.up(link, &form(json!(2), "m"));
    owner.pass(Duration::from_millis(10));
    let reply = posted(&mut owner, &other);
    other.peer(&reply);
    let reply = other.reply(host);
    assert!(reply["result"]["inputRequests"].get("u2").is_some(), "{reply}");
    let answers = json!({"u2": {"action": "decline"}});
    let again = json!({"requestState": reply["result"]["requestState"], "inputResponses": answers});
    let (host, _) = other.call("alice", &forms(), &again);
    let request = posted(&mut other, &owner);
    owner.peer(&request);
    assert_eq!(owner.take().len(), 2);
    ends(&mut owner, &mut other, (link, call), host);
    over(&owner);
    over(&other);
    // A reply that was lost on the way is found again by the same retry.
    let (host, _) = other.call("alice", &forms(), &again);
    let request = posted(&mut other, &owner);
    owner.peer(&request);
    let said = owner.take();
    let reply = for_peer(&said[1], &other);
    other.peer(&reply);
    assert_eq!(other.reply(host)["result"]["content"], text("done")["content"]);
    let (counts, owned) = (other.bridge.counts(), owner.bridge.counts());
    assert_eq!((counts.handed, counts.acknowledged, counts.resent, counts.handed_lost), (3, 3, 0, 0));
    assert_eq!((owned.taken, owned.replayed, owned.peer_refused), (3, 1, 0));
}

/// Progress and logs cross, to the stream of the retry.
#[test]
fn progress_and_logs_cross() {
    let (mut owner, mut other) = (replica(1), replica(2));
    let (link, call, state) = park(&mut owner);
    let answers = json!({"u1": {"action": "decline"}});
    let mut params =
        json!({"name": "t", "arguments": {"a": 1}, "requestState": state, "inputResponses": answers});
    params["_meta"] = mrtr_tests::bridge::meta(forms());
    params["_meta"]["progressToken"] = json!("p");
    params["_meta"]["io.modelcontextprotocol/logLevel"] = json!("info");
    let host = other.host(mrtr_core::bridge::HostKind::Post, "alice");
    other.send(host, &json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params}));
    let request = posted(&mut other, &owner);
    owner.peer(&request);
    let said = owner.take();
    let ack = for_peer(&said[0], &other);
    other.peer(&ack);
    // Without a token in the first request the upstream has none to name: a log crosses in any case.
    let log = json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "error", "data": "d"}});
    owner.up(link, &log);
    let crossed = posted(&mut owner, &other);
    other.peer(&crossed);
    assert_eq!(other.reply(host)["params"]["data"], "d");
    owner.result(link, call, text("done"));
    let reply = posted(&mut owner, &other);
    other.peer(&reply);
    assert_eq!(other.reply(host)["id"], 7);
    over(&owner);
    over(&other);
}

/// An owner that is gone: sent again every second, then a clear error, and never a second run; B: a restart has another epoch.
#[test]
fn an_owner_that_is_gone() {
    let (mut owner, mut other) = (replica(1), replica(2));
    let (_, _, state) = park(&mut owner);
    let host = retry(&mut other, "alice", &state);
    let mut copies = vec![posted(&mut other, &owner)];
    for _ in 0..4 {
        other.pass(Duration::from_secs(1));
        let copy = posted(&mut other, &owner);
        assert!(!copies.contains(&copy), "each is sealed anew, so that copies can be told from repetitions");
        copies.push(copy);
    }
    other.pass(Duration::from_secs(1));
    let reply = other.reply(host);
    assert_eq!(reply["error"]["code"], -32603);
    assert!(reply["error"]["message"].as_str().unwrap().contains("not run again"));
    over(&other);
    assert_eq!((other.bridge.counts().resent, other.bridge.counts().handed_lost), (4, 1));
    let restarted = replica(9);
    assert_ne!(restarted.bridge.epoch(), owner.bridge.epoch());
    // Acknowledged, and then silent.
    let (host, _) = handed(&mut other, &mut owner, &state);
    other.pass(Duration::from_secs(59));
    assert!(other.take().is_empty());
    other.pass(Duration::from_secs(1));
    assert_eq!(other.reply(host)["error"]["code"], -32603);
    over(&other);
}

/// Without a way to other processes: the host hears that it is one of them that holds its call, or has ended. A call that
/// is over at its own process is refused like any state that is no longer good, and another's state says nothing of either.
#[test]
fn a_call_of_another_process_that_cannot_be_reached() {
    let alone = |seed| World::seeded(config(&[("up", Transport::Pipe, Era::Legacy)]), seed);
    let (mut owner, mut other) = (alone(1), alone(2));
    let (link, call, state) = park(&mut owner);
    let host = retry(&mut other, "alice", &state);
    let error = other.reply(host)["error"].take();
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("held by another process") && message.contains("not run again"), "{message}");
    assert_eq!((&error["code"], error.get("data")), (&json!(-32603), None));
    let counts = other.bridge.counts();
    assert_eq!((counts.handed, counts.handed_lost, counts.refused), (0, 1, 0));
    over(&other);
    // Nobody else learns even that.
    let host = retry(&mut other, "bob", &state);
    let stranger = other.reply(host)["error"].take();
    assert_eq!(stranger["code"], -32602);
    // The call was not touched, and ends where it is.
    let host = retry(&mut owner, "alice", &state);
    owner.take();
    owner.result(link, call, text("done"));
    assert_eq!(owner.reply(host)["result"]["content"], text("done")["content"]);
    owner.pass(Duration::from_secs(3_600));
    owner.take();
    let host = retry(&mut owner, "alice", &state);
    assert_eq!(owner.reply(host)["error"], stranger, "it is over, and no longer known");
    over(&owner);
}

/// A forwarder that is gone: its host is one whose stream was lost, and its call is not kept for nobody.
#[test]
fn a_forwarder_that_is_gone() {
    let (mut owner, mut other) = (replica(1), replica(2));
    let (_, call, state) = park(&mut owner);
    let _ = handed(&mut other, &mut owner, &state);
    owner.pass(Duration::from_secs(59));
    assert_eq!(owner.take().len(), 3);
    owner.pass(Duration::from_secs(1));
    assert_eq!(owner.bridge.counts().remote_open, 0);
    // Within the grace the host may come back by another way.
    let again = retry(&mut owner, "alice", &state);
    assert!(owner.take().is_empty());
    owner.leave(again);
    owner.pass(Duration::from_secs(5));
    assert_eq!(owner.sent().1["params"]["requestId"], call);
    over(&owner);
}

/// Cancellation crosses: the host's stream closes elsewhere, the owner waits for its grace and then cancels.
#[test]
fn cancellation_crosses() {
    let (mut owner, mut other) = (replica(1), replica(2));
    let (_, call, state) = park(&mut owner);
    let (host, _) = handed(&mut other, &mut owner, &state);
    other.leave(host);
    let cancel = posted(&mut other, &owner);
    owner.peer(&cancel);
    owner.pass(Duration::from_secs(5));
    let (_, cancelled) = owner.sent();
    assert_eq!(cancelled["params"]["requestId"], call);
    over(&owner);
    over(&other);
}

/// SIGTERM at the owner: no new calls, but parked ones are served to other processes until they are done.
#[test]
fn a_draining_owner_serves_others() {
    let (mut owner, mut other) = (replica(1), replica(2));
    let (link, call, state) = park(&mut owner);
    owner.bridge.drain();
    assert!(!owner.bridge.is_idle());
    let (host, _) = handed(&mut other, &mut owner, &state);
    assert!(!owner.bridge.is_idle());
    ends(&mut owner, &mut other, (link, call), host);
    assert!(owner.bridge.is_idle());
    // A forwarder that ends tells its host so, and takes nothing from the owner.
    let (_, _, state) = park_with(&mut other, &json!({"arguments": {"a": 1}}));
    let (host, _) = {
        let host = retry(&mut owner, "alice", &state);
        let request = posted(&mut owner, &other);
        other.peer(&request);
        (host, other.take())
    };
    owner.bridge.close(owner.now);
    owner.send_raw(HostId(0), "");
    let said = owner.take();
    let last = said.iter().find(|said| matches!(said, Said::Host { host: to, .. } if *to == host)).unwrap();
    assert_eq!(last.json()["error"]["code"], -32603);
    assert!(!said.iter().any(|said| matches!(said, Said::Peer { .. })), "{said:?}");
}
