//! Several processes with the same keys: a retry reaches another one than its call's (design §9).

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
    let (host, _) = owner.call("alice", &forms(), &json!({}));
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
        Said::Peer { peer, bytes } => {
            assert_eq!(peer, *to.bridge.epoch());
            bytes
        }
        other => panic!("{other:?}"),
    }
}

/// The owner gets the retry, acknowledges, and its reply comes back; signs of life and progress too.
#[test]
fn a_retry_is_handed_to_the_owner_and_its_reply_comes_back() {
    let (mut owner, mut other) = (replica(1), replica(2));
    let (link, call, state) = park(&mut owner);
    let host = retry(&mut other, "alice", &state);
    assert_eq!(other.bridge.poll_timeout().unwrap().1, Reason::Owner);
    let request = posted(&mut other, &owner);
    owner.peer(&request);
    let said = owner.take();
    let [Said::Peer { bytes: ack, .. }, answer] = said.as_slice() else { panic!("{said:?}") };
    assert_eq!(answer.json()["result"], json!({"action": "accept", "content": {"n": "a"}}));
    other.peer(ack);
    assert!(other.take().is_empty());
    // The same message again is the same request.
    owner.peer(&request);
    assert_eq!(owner.take().len(), 1);
    owner.pass(Duration::from_secs(15));
    let alive = posted(&mut owner, &other);
    other.peer(&alive);
    assert!(matches!(other.only(), Said::Alive { host: to } if to == host));
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
    owner.result(link, call, text("done"));
    let reply = posted(&mut owner, &other);
    other.peer(&reply);
    assert_eq!(other.reply(host)["result"]["content"], text("done")["content"]);
    rests(&owner);
    rests(&other);
    // A reply that was lost on the way is found again by the same retry.
    let (host, _) = other.call("alice", &forms(), &again);
    let request = posted(&mut other, &owner);
    owner.peer(&request);
    let said = owner.take();
    let Said::Peer { bytes, .. } = &said[1] else { panic!("{said:?}") };
    other.peer(bytes);
    assert_eq!(other.reply(host)["result"]["content"], text("done")["content"]);
}

/// What was changed, goes elsewhere, or comes from somebody without the keys is dropped; a state of somebody else never leaves.
#[test]
fn messages_are_sealed_for_their_place() {
    let (mut owner, mut other, mut third) = (replica(1), replica(2), replica(3));
    let (_, _, state) = park(&mut owner);
    let stolen = retry(&mut other, "bob", &state);
    assert_eq!(other.reply(stolen)["error"]["code"], -32602);
    retry(&mut other, "alice", &state);
    let request = posted(&mut other, &owner);
    for at in 0..request.len() {
        let mut changed = request.clone();
        changed[at] ^= 1;
        owner.peer(&changed);
        owner.peer(&request[..at]);
    }
    third.peer(&request);
    assert!(owner.take().is_empty() && third.take().is_empty());
    owner.peer(&request);
    assert_eq!(owner.take().len(), 2);
}

/// An owner that is gone: sent again every second, then a clear error, and never a second run; B: a restart has another epoch.
#[test]
fn an_owner_that_is_gone() {
    let (mut owner, mut other) = (replica(1), replica(2));
    let (_, _, state) = park(&mut owner);
    let host = retry(&mut other, "alice", &state);
    let first = posted(&mut other, &owner);
    for _ in 0..4 {
        other.pass(Duration::from_secs(1));
        assert_eq!(posted(&mut other, &owner), first);
    }
    other.pass(Duration::from_secs(1));
    let reply = other.reply(host);
    assert_eq!(reply["error"]["code"], -32603);
    assert!(reply["error"]["message"].as_str().unwrap().contains("not run again"));
    rests(&other);
    let restarted = replica(9);
    assert_ne!(restarted.bridge.epoch(), owner.bridge.epoch());
    // Acknowledged, and then silent.
    let host = retry(&mut other, "alice", &state);
    let request = posted(&mut other, &owner);
    owner.peer(&request);
    let said = owner.take();
    let Said::Peer { bytes: ack, .. } = &said[0] else { panic!("{said:?}") };
    other.peer(ack);
    other.pass(Duration::from_secs(59));
    assert!(other.take().is_empty());
    other.pass(Duration::from_secs(1));
    assert_eq!(other.reply(host)["error"]["code"], -32603);
    // The store is down: `-32603`, and the parked call is untouched.
    let (_, _, state) = park(&mut owner);
    let host = retry(&mut other, "alice", &state);
    posted(&mut other, &owner);
    other.bridge.fail_peer(owner.bridge.epoch());
    other.send_raw(host, "");
    assert_eq!(other.reply(host)["error"]["code"], -32603);
    let host = retry(&mut owner, "alice", &state);
    assert_eq!(owner.sent().1["id"], 1);
    let _ = host;
}

/// Cancellation crosses: the host's stream closes elsewhere, the owner waits for its grace and then cancels.
#[test]
fn cancellation_crosses() {
    let (mut owner, mut other) = (replica(1), replica(2));
    let (_, call, state) = park(&mut owner);
    let host = retry(&mut other, "alice", &state);
    let request = posted(&mut other, &owner);
    owner.peer(&request);
    owner.take();
    other.bridge.close_host(host, other.now);
    other.send_raw(host, "");
    let cancel = posted(&mut other, &owner);
    owner.peer(&cancel);
    owner.pass(Duration::from_secs(5));
    let (_, cancelled) = owner.sent();
    assert_eq!(cancelled["params"]["requestId"], call);
    rests(&owner);
    rests(&other);
}
