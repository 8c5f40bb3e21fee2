//! The store goes away and comes back.

use super::*;

/// `-32603` for what is not acknowledged and for what comes now, at once; the parked call is untouched.
#[test]
fn while_nobody_can_be_reached() {
    let (mut owner, mut other) = (replica(1), replica(2));
    let (link, call, state) = park(&mut owner);
    let first = retry(&mut other, "alice", &state);
    posted(&mut other, &owner);
    other.reachable(false);
    let failed = other.reply(first);
    assert_eq!(
        (&failed["error"]["code"], &failed["error"]["data"]["retryAfterMs"]),
        (&json!(-32603), &json!(1_000))
    );
    let second = retry(&mut other, "alice", &state);
    assert_eq!(other.reply(second)["error"]["code"], -32603);
    over(&other);
    assert_eq!(other.bridge.counts().unreachable, 2);
    owner.reachable(false);
    assert_eq!(owner.bridge.counts().parked, 1);
    owner.reachable(true);
    other.reachable(true);
    assert!(owner.take().is_empty() && other.take().is_empty());
    let (host, said) = handed(&mut other, &mut owner, &state);
    assert_eq!(said.len(), 1);
    ends(&mut owner, &mut other, (link, call), host);
}

/// What was acknowledged survives: the store has lost the reply, the request is said once more, the reply comes again.
#[test]
fn nothing_that_was_acknowledged_is_lost() {
    for lost in [false, true] {
        let (mut owner, mut other) = (replica(1), replica(2));
        let (link, call, state) = park(&mut owner);
        let (host, _) = handed(&mut other, &mut owner, &state);
        other.reachable(false);
        owner.reachable(false);
        // Long enough for the owner to take the forwarder for dead, if it were not told why.
        owner.pass(Duration::from_secs(59));
        other.pass(Duration::from_secs(59));
        assert!(other.take().is_empty() && owner.take().is_empty());
        if lost {
            owner.result(link, call, text("done"));
            let _in_a_store_that_forgets = posted(&mut owner, &other);
        }
        owner.reachable(true);
        other.reachable(true);
        let again = posted(&mut other, &owner);
        owner.peer(&again);
        let said = owner.take();
        let ack = for_peer(&said[0], &other);
        other.peer(&ack);
        assert!(other.take().is_empty());
        if lost {
            let reply = for_peer(&said[1], &other);
            other.peer(&reply);
        } else {
            assert_eq!(said.len(), 1);
            owner.result(link, call, text("done"));
            let reply = posted(&mut owner, &other);
            other.peer(&reply);
        }
        assert_eq!(other.reply(host)["result"]["content"], text("done")["content"]);
        over(&owner);
        over(&other);
    }
}

/// An outage that is longer than anybody waits: the host hears of it, and comes back for its reply.
#[test]
fn an_outage_that_takes_too_long() {
    let (mut owner, mut other) = (replica(1), replica(2));
    let (link, call, state) = park(&mut owner);
    let (host, _) = handed(&mut other, &mut owner, &state);
    other.reachable(false);
    owner.reachable(false);
    other.pass(Duration::from_secs(60));
    let failed = other.reply(host);
    assert_eq!(failed["error"]["data"]["retryAfterMs"], 1_000);
    owner.pass(Duration::from_secs(90));
    other.pass(Duration::from_secs(30));
    owner.result(link, call, text("done"));
    owner.take();
    owner.reachable(true);
    other.reachable(true);
    assert!(other.take().is_empty());
    let (host, said) = handed(&mut other, &mut owner, &state);
    let reply = for_peer(&said[0], &other);
    other.peer(&reply);
    assert_eq!(other.reply(host)["result"]["content"], text("done")["content"]);
}

/// The owner's silence is measured from its last word: a connection that breaks again and again makes it no longer, and
/// after an outage a living owner has its time to answer.
#[test]
fn an_owner_that_is_gone_while_the_connection_breaks() {
    let (mut owner, mut other) = (replica(1), replica(2));
    let (_, _, state) = park(&mut owner);
    handed(&mut other, &mut owner, &state);
    let mut seconds = 0;
    let failed = loop {
        other.pass(Duration::from_secs(1));
        seconds += 1;
        if let Some(Said::Host { raw, .. }) = other.take().first() {
            break serde_json::from_str::<Value>(raw).unwrap();
        }
        assert!(seconds < 70);
        other.reachable(false);
        other.reachable(true);
        posted(&mut other, &owner);
    };
    assert_eq!(seconds, 60);
    assert!(failed["error"]["message"].as_str().unwrap().contains("not run again"));
    over(&other);
}

/// After an outage a living owner has its time to answer, once between two words of it.
#[test]
fn an_owner_that_lives_is_heard_after_an_outage() {
    let (mut owner, mut other) = (replica(1), replica(2));
    let (_, _, state) = park(&mut owner);
    let (host, _) = handed(&mut other, &mut owner, &state);
    other.pass(Duration::from_secs(58));
    other.reachable(false);
    other.pass(Duration::from_millis(1_900));
    other.reachable(true);
    posted(&mut other, &owner);
    other.pass(Duration::from_secs(4));
    assert!(other.take().is_empty());
    other.reachable(false);
    other.reachable(true);
    let sent = posted(&mut other, &owner);
    owner.reachable(false);
    owner.pass(Duration::from_millis(63_900));
    owner.reachable(true);
    owner.peer(&sent);
    let said = owner.take();
    other.peer(&for_peer(&said[0], &other));
    other.pass(Duration::from_secs(59));
    assert!(other.take().is_empty(), "a word of it counts again");
    other.reachable(false);
    other.reachable(true);
    posted(&mut other, &owner);
    other.pass(Duration::from_secs(4));
    // The second outage gives it nothing more.
    other.reachable(false);
    other.reachable(true);
    posted(&mut other, &owner);
    other.pass(Duration::from_secs(1));
    assert_eq!(other.reply(host)["error"]["code"], -32603);
    over(&other);
}

/// An owner that has not acknowledged a request has five seconds, however often it is said within them.
#[test]
fn repetitions_do_not_make_it_longer() {
    let (mut owner, mut other) = (replica(1), replica(2));
    let (_, _, state) = park(&mut owner);
    let host = retry(&mut other, "alice", &state);
    posted(&mut other, &owner);
    let mut said = Vec::new();
    for _ in 0..50 {
        assert!(!said.iter().any(|said| matches!(said, Said::Host { .. })));
        // A connection that was made anew before anybody noticed that it had broken.
        other.reachable(true);
        other.pass(Duration::from_millis(100));
        said.extend(other.take());
    }
    let [copies @ .., Said::Host { host: to, .. }] = &said[..] else { panic!("{said:?}") };
    assert_eq!((copies.len(), *to), (50, host));
    over(&other);
}
