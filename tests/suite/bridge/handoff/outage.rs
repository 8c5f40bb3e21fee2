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
