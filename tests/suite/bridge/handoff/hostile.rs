//! What a store that lies can do: nothing but lose messages.

use super::*;

/// What was changed, goes elsewhere, or comes from somebody without the keys is dropped; a state of somebody else never
/// leaves.
#[test]
fn messages_are_sealed_for_their_place() {
    let (mut owner, mut other, mut third) = (replica(1), replica(2), replica(3));
    let (_, _, state) = park(&mut owner);
    let stolen = retry(&mut other, "bob", &state);
    assert_eq!(other.reply(stolen)["error"]["code"], -32602);
    retry(&mut other, "alice", &state);
    let request = posted(&mut other, &owner);
    let mut refused = 0;
    for at in 0..request.len() {
        let mut changed = request.clone();
        changed[at] ^= 1;
        owner.peer(&changed);
        owner.peer(&request[..at]);
        refused += 2;
        assert_eq!(owner.bridge.counts().peer_refused, refused);
    }
    third.peer(&request);
    assert!(owner.take().is_empty() && third.take().is_empty());
    owner.peer(&request);
    assert_eq!(owner.take().len(), 2);
    // Of a process with other keys, in the same store.
    let mut foreign = config(&[("up", Transport::Pipe, Era::Legacy)]);
    let ring = mrtr_core::seal::KeyRing::new(mrtr_core::seal::Secret::from_bytes(&[7; 32]).unwrap());
    foreign.sealer = mrtr_core::seal::Sealer::encrypted(&ring, "bridge");
    foreign.replicas = true;
    let mut foreign = World::seeded(foreign, 2);
    foreign.peer(&request);
    assert!(foreign.take().is_empty());
}

/// Each message counts once: not the request a second time, not progress twice, not an old sign of life.
#[test]
fn copies_do_not_count() {
    let (mut owner, mut other) = (replica(1), replica(2));
    let (link, call, state) = park(&mut owner);
    let host = retry(&mut other, "alice", &state);
    let request = posted(&mut other, &owner);
    owner.peer(&request);
    let said = owner.take();
    assert_eq!(said.len(), 2);
    let ack = for_peer(&said[0], &other);
    owner.peer(&request);
    assert!(owner.take().is_empty());
    // Sent again because no acknowledgement came, it is acknowledged again, and does not run again.
    other.pass(Duration::from_secs(1));
    let again = posted(&mut other, &owner);
    owner.peer(&again);
    let acked = posted(&mut owner, &other);
    other.peer(&acked);
    other.peer(&ack);
    assert_eq!(other.bridge.counts().peer_refused, 1);
    owner.pass(Duration::from_secs(15));
    let alive = posted(&mut owner, &other);
    other.peer(&alive);
    assert_eq!(other.take().len(), 2);
    for _ in 0..10 {
        other.pass(Duration::from_secs(7));
        other.peer(&alive);
        if let Some(Said::Host { raw, .. }) = other.take().pop() {
            // The old sign of life has kept nobody alive.
            assert!(raw.contains("-32603"), "{raw}");
            break;
        }
    }
    over(&other);
    owner.result(link, call, text("done"));
    let reply = posted(&mut owner, &other);
    // It comes to nobody, once or twice.
    other.peer(&reply);
    other.peer(&reply);
    assert!(other.take().is_empty());
    // And the request is over, whoever says it again.
    for copy in [&request, &again] {
        owner.peer(copy);
        assert!(owner.take().is_empty());
    }
    let _ = host;
}

/// A request that was kept back until its host has been told that it failed is not worked on; nor one from the future.
#[test]
fn an_old_request_is_refused() {
    let (mut owner, mut other) = (replica(1), replica(2));
    let (_, _, state) = park(&mut owner);
    retry(&mut other, "alice", &state);
    let kept_back = posted(&mut other, &owner);
    owner.pass(Duration::from_millis(65_001));
    owner.peer(&kept_back);
    assert!(owner.take().is_empty());
    // From a clock that is a minute ahead it is taken, from one further ahead not.
    for (ahead, taken) in [(60_001, false), (60_000, true)] {
        let (mut owner, mut other) = (replica(1), replica(2));
        let (_, _, state) = park(&mut owner);
        other.now = owner.now.saturating_add(Duration::from_millis(ahead));
        retry(&mut other, "alice", &state);
        let request = posted(&mut other, &owner);
        owner.peer(&request);
        assert_eq!(!owner.take().is_empty(), taken, "{ahead}");
    }
}

/// A cancellation is not undone by a copy of its request, nor by one that it has overtaken.
#[test]
fn what_was_cancelled_stays_so() {
    for overtaken in [false, true] {
        let (mut owner, mut other) = (replica(1), replica(2));
        let (_, call, state) = park(&mut owner);
        let host = retry(&mut other, "alice", &state);
        let request = posted(&mut other, &owner);
        if !overtaken {
            owner.peer(&request);
            owner.take();
        }
        other.leave(host);
        let cancel = posted(&mut other, &owner);
        owner.peer(&cancel);
        owner.peer(&request);
        owner.peer(&cancel);
        assert!(owner.take().is_empty());
        assert_eq!(owner.bridge.counts().remote_open, 0);
        owner.pass(Duration::from_secs(5));
        if overtaken {
            // It never ran, and waits for another retry.
            assert_eq!(owner.bridge.counts().parked, 1);
            owner.pass(Duration::from_secs(120));
            owner.take();
        } else {
            assert_eq!(owner.sent().1["params"]["requestId"], call);
        }
        over(&owner);
    }
}

/// Requests of others are bounded: the one too many hears that it may come again.
#[test]
fn an_owner_takes_no_more_than_it_can() {
    let http = || {
        let mut config = config(&[("up", Transport::Http, Era::Legacy)]);
        config.replicas = true;
        config.pool.http_sessions = 30_000;
        config.waits.alive = Duration::from_secs(3_600);
        config
    };
    let (mut owner, mut other) = (World::seeded(http(), 1), World::seeded(http(), 2));
    let most = 10_000;
    for number in 0..=most {
        let principal = format!("p{}", number % 20);
        let (host, _) = owner.call(&principal, &forms(), &json!({}));
        let (link, _, said) = owner.begin("2025-11-25");
        let call = said[1].json()["id"].as_i64().unwrap();
        owner.up_raw(link, Some(call), &form(json!(1), "m").to_string());
        owner.pass(Duration::from_millis(10));
        let state = owner.reply(host)["result"]["requestState"].clone();
        other.now = owner.now;
        let host = retry(&mut other, &principal, &state);
        let last = other.said.pop().unwrap();
        other.take();
        owner.peer(&for_peer(&last, &owner));
        let said = owner.take();
        let ack = for_peer(&said[0], &other);
        assert_eq!(said.len(), if number < most { 2 } else { 1 });
        if number == most {
            other.peer(&ack);
            let told = other.take();
            let told =
                told.iter().find(|said| matches!(said, Said::Host { host: to, .. } if *to == host)).unwrap();
            assert_eq!(told.json()["error"]["data"]["retryAfterMs"], 1_000);
        }
    }
    assert_eq!(owner.bridge.counts().remote_open, most);
}

/// A forwarder holds on to so many bytes of what it has handed over, and no more.
#[test]
fn a_forwarder_keeps_no_more_than_it_can() {
    let (mut owner, mut other) = (replica(3), replica(4));
    let big = json!({"a": "x".repeat(3 << 20)});
    let (_, _, state) = park_with(&mut owner, &json!({"arguments": big}));
    let mut told = None;
    for _ in 0..30 {
        let answers = json!({"u1": {"action": "decline"}});
        let more = json!({"arguments": big, "requestState": state, "inputResponses": answers});
        let (host, _) = other.call("alice", &forms(), &more);
        if let Said::Host { .. } = &other.said[0] {
            told = Some(other.reply(host));
            break;
        }
        other.take();
    }
    assert_eq!(told.unwrap()["error"]["data"]["retryAfterMs"], 1_000);
    assert_eq!(other.bridge.counts().handed_open, 21);
}
