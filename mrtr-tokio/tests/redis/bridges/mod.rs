//! Several bridges before a legacy server, with one key and one Redis: processes, and hosts that come to any of them
//! (design §9).
//!
//! | file | what |
//! |---|---|
//! | `world` | a Redis that may be killed, bridges, hosts |
//! | `upstream.py` | a server that asks, and notes how often it was run |

mod world;

use std::{sync::atomic::Ordering, time::Duration};

use redis::AsyncCommands as _;
use rustix::process::Signal;
use serde_json::json;
use tokio::time::{Instant, sleep};

use self::world::{Place, Process, Server, call, command, error, hasty, messages, outcome, retry, until};

/// Some bridges, their Redis, and where their server notes what it does.
struct Bridges {
    all: Vec<Process>,
    redis: Server,
    place: Place,
}

async fn bridges(name: &str, count: usize) -> Bridges {
    let place = Place::new(name);
    let redis = Server::start(&place).await;
    let mut all = Vec::new();
    for _ in 0..count {
        all.push(Process::start(&place, &redis.url()).await);
    }
    Bridges { all, redis, place }
}

/// Every round goes to another process; progress and logs come with the reply; the tool runs once.
#[tokio::test]
async fn retries_may_come_to_any_process() {
    let Bridges { all, place, redis } = bridges("any", 3).await;
    let first = call("a", 4, None);
    let mut reply = all[0].ask("alice", &first).await;
    let mut slowest = Duration::ZERO;
    for (round, process) in [1, 2, 1, 2].into_iter().enumerate() {
        let next = retry(&first, &reply, "yes");
        let begin = Instant::now();
        reply = all[process].ask("alice", &next).await;
        slowest = slowest.max(begin.elapsed());
        let methods: Vec<&str> = reply.iter().filter_map(|message| message["method"].as_str()).collect();
        assert_eq!(methods, ["notifications/progress", "notifications/message"], "{round}: {reply:?}");
        assert_eq!(reply[0]["params"]["progressToken"], "p-a");
        assert_eq!(reply[1]["params"]["data"], "heard a");
        // What was asked came from the call of this principal, and is nobody else's to answer, at any process.
        if round < 3 {
            let stolen = all[process].ask("bob", &retry(&first, &reply, "no")).await;
            assert_eq!(error(&stolen).0, -32602);
        }
    }
    assert_eq!(outcome(&reply), "a: yes to a/0, yes to a/1, yes to a/2, yes to a/3");
    assert_eq!((place.notes("run"), place.notes("answer")), (1, 4));
    println!("a round through another process takes {} ms at most", slowest.as_millis());
    let numbers = async |process: usize, names: [&str; 3]| {
        let mut found = [0; 3];
        for (place, name) in found.iter_mut().zip(names) {
            *place = all[process].number(name).await;
        }
        found
    };
    let sent = ["handoffs_sent_total", "handoffs_acknowledged_total", "handoffs_lost_total"];
    assert_eq!(numbers(1, sent).await, [2, 2, 0]);
    assert_eq!(numbers(2, sent).await, [2, 2, 0]);
    let taken = ["handoffs_taken_total", "peer_messages_refused_total", "calls_parked"];
    assert_eq!(numbers(0, taken).await, [4, 0, 0]);
    // Letter-boxes hold what is unread, and that is nothing.
    let mut plain = redis.connection().await;
    let streams: Vec<String> = plain.keys("mrtr:bridge:*").await.unwrap();
    for stream in streams {
        until("an empty stream", async || {
            let length: u64 = redis::cmd("XLEN").arg(&stream).query_async(&mut plain).await.unwrap();
            (length == 0).then_some(())
        })
        .await;
        let life: i64 = redis::cmd("PTTL").arg(&stream).query_async(&mut plain).await.unwrap();
        assert!((-2..=120_000).contains(&life) && life != -1, "{stream} never expires");
    }
}

/// A host that leaves the process it came to cancels its call at the other one.
#[tokio::test]
async fn a_cancellation_crosses() {
    let Bridges { all, place, redis: _redis } = bridges("cancel", 2).await;
    let first = call("a", 1, Some(&place.gate("never")));
    let reply = all[0].ask("alice", &first).await;
    let stream = all[1].send("alice", &retry(&first, &reply, "yes")).await;
    until("the answer", async || (place.notes("answer a/0 accept") == 1).then_some(())).await;
    assert_eq!(all[0].number("handoffs_taken_open").await, 1);
    drop(stream);
    until("the cancellation", async || (place.notes("cancelled a") == 1).then_some(())).await;
    all[0].number_is("handoffs_taken_open", 0).await;
    assert_eq!((all[1].number("requests_open").await, place.notes("run")), (0, 1));
}

/// What somebody else writes into a stream, what was changed, and copies are refused; the hand-off itself counts once.
#[tokio::test]
async fn an_intruder_in_the_stream() {
    let Bridges { all, place, redis } = bridges("intruder", 2).await;
    let first = call("a", 2, None);
    let reply = all[0].ask("alice", &first).await;
    let next = retry(&first, &reply, "yes");
    // While the owner is stopped what is said to it can be looked at.
    all[0].signal(Signal::STOP);
    let waiting = all[1].send("alice", &next).await;
    let mut plain = redis.connection().await;
    type Entries = Vec<(String, Vec<Vec<u8>>)>;
    let (stream, said) = until("the hand-off", async || {
        let streams: Vec<String> = plain.keys("mrtr:bridge:*").await.unwrap();
        for stream in streams {
            let entries: Entries =
                redis::cmd("XRANGE").arg(&[&*stream, "-", "+"]).query_async(&mut plain).await.unwrap();
            if let Some((_, fields)) = entries.into_iter().next() {
                return Some((stream, fields[1].clone()));
            }
        }
        None
    })
    .await;
    assert!(!said.windows(5).any(|bytes| bytes == b"yes t"), "an answer can be read in the Redis");
    let mut add = async |field: &str, bytes: &[u8]| {
        redis::cmd("XADD").arg(&[&*stream, "*", field]).arg(bytes).exec_async(&mut plain).await.unwrap();
    };
    let mut forged = 0;
    for at in [0, 1, 2, 20, 35, 45, 50, 57, 60, said.len() - 1] {
        let mut changed = said.clone();
        changed[at] ^= 1;
        add("m", &changed).await;
        forged += 1;
    }
    for bytes in [&b""[..], b"hello", &said[..said.len() - 1], &[0xff; 100_000]] {
        add("m", bytes).await;
        forged += 1;
    }
    add("other", &said).await;
    for _ in 0..3 {
        add("m", &said).await;
        forged += 1;
    }
    all[0].signal(Signal::CONT);
    let reply = messages(waiting).await;
    assert!(reply.last().unwrap()["result"]["inputRequests"].is_object(), "{reply:?}");
    until("refusals", async || (all[0].number("peer_messages_refused_total").await >= forged).then_some(()))
        .await;
    assert_eq!((place.notes("run"), place.notes("answer")), (1, 1));
    // A copy that comes when all is over changes nothing either.
    let reply = all[1].ask("alice", &retry(&first, &reply, "yes")).await;
    assert_eq!(outcome(&reply), "a: yes to a/0, yes to a/1");
    let before = all[0].number("peer_messages_refused_total").await;
    add("m", &said).await;
    all[0].number_is("peer_messages_refused_total", before + 1).await;
    assert_eq!((place.notes("run"), place.notes("answer")), (1, 2));
    assert_eq!(all[1].number("peer_messages_refused_total").await, 0);
}

/// The Redis is killed and forgets everything: what comes to the wrong process meanwhile fails and may come again, what
/// the owner holds is untouched, what was acknowledged is finished when the Redis is back.
#[tokio::test]
async fn the_redis_is_killed_and_comes_back() {
    let Bridges { all, place, mut redis } = bridges("outage", 2).await;
    let gate = place.gate("gate");
    let (here, held, later) = (call("here", 1, None), call("held", 1, Some(&gate)), call("later", 1, None));
    let here = retry(&here, &all[0].ask("alice", &here).await, "1");
    let held = retry(&held, &all[0].ask("alice", &held).await, "2");
    let later = retry(&later, &all[0].ask("alice", &later).await, "3");
    let acknowledged = all[1].send("alice", &held).await;
    until("the answer", async || (place.notes("answer held/0") == 1).then_some(())).await;
    all[1].number_is("handoffs_acknowledged_total", 1).await;
    redis.kill().await;
    let failed = all[1].ask("alice", &later).await;
    assert_eq!(error(&failed).0, -32603, "{failed:?}");
    all[1].number_is("peers_unreachable", 1).await;
    all[0].number_is("peers_unreachable", 1).await;
    let begin = Instant::now();
    let failed = all[1].ask("alice", &later).await;
    assert_eq!(failed[0]["error"]["data"], json!({"retryAfterMs": 1_000}));
    println!("while the Redis is down a retry fails within {} ms", begin.elapsed().as_millis());
    assert_eq!(outcome(&all[0].ask("alice", &here).await), "here: 1 to here/0");
    // The call ends while nobody can be told.
    std::fs::write(&gate, "").unwrap();
    all[0].number_is("calls_running", 0).await;
    // And a bridge that would begin now says why it does not.
    let started = command(&place, &redis.url()).output().await.unwrap();
    let said = String::from_utf8(started.stderr).unwrap();
    assert_eq!(started.status.code(), Some(7), "{said}");
    assert!(said.contains("--redis: the Redis cannot be reached"), "{said}");
    assert!(redis.revive().await);
    assert_eq!(outcome(&messages(acknowledged).await), "held: 2 to held/0");
    all[1].number_is("peers_unreachable", 0).await;
    all[0].number_is("peers_unreachable", 0).await;
    assert_eq!(outcome(&all[1].ask("alice", &later).await), "later: 3 to later/0");
    assert_eq!((place.notes("run"), place.notes("answer")), (3, 3));
}

/// An owner that was killed: a clear error at every other process, and at the one that comes in its place; no second run.
#[tokio::test]
async fn an_owner_that_was_killed() {
    let Bridges { mut all, place, redis } = bridges("killed", 3).await;
    let first = call("a", 2, None);
    let reply = all[0].ask("alice", &first).await;
    let reply = all[1].ask("alice", &retry(&first, &reply, "yes")).await;
    all[0].child.kill().await.unwrap();
    all[0] = Process::start(&place, &redis.url()).await;
    let next = retry(&first, &reply, "yes");
    for process in &all {
        let begin = Instant::now();
        let failed = process.ask("alice", &next).await;
        let (code, what) = error(&failed);
        assert_eq!((code, what), (-32603, "the process that held this call is gone; it is not run again"));
        println!("that an owner is gone is known after {} ms", begin.elapsed().as_millis());
        assert_eq!(process.number("handoffs_lost_total").await, 1);
        assert_eq!(process.number("handoffs_resent_total").await, 4);
    }
    assert_eq!((place.notes("run"), place.notes("answer")), (1, 1));
}

/// SIGTERM: the owner takes no new calls, serves those that are parked to the others until they are done, and ends.
#[tokio::test]
async fn an_owner_that_is_told_to_end() {
    let Bridges { mut all, place, redis } = bridges("drain", 2).await;
    let first = call("a", 2, None);
    let reply = all[0].ask("alice", &first).await;
    all[0].signal(Signal::TERM);
    all[0].number_is("draining", 1).await;
    let reply = all[1].ask("alice", &retry(&first, &reply, "yes")).await;
    let refused = all[0].ask("alice", &call("b", 1, None)).await;
    assert_eq!(error(&refused).0, -32603);
    let reply = all[1].ask("alice", &retry(&first, &reply, "yes")).await;
    assert_eq!(outcome(&reply), "a: yes to a/0, yes to a/1");
    let ended = until("the end", async || all[0].child.try_wait().unwrap()).await;
    assert!(ended.success(), "{ended}");
    assert_eq!((place.notes("run"), place.notes("answer")), (1, 2));
    // It leaves no letter-box behind; the other one may have one.
    let streams: Vec<String> = redis.connection().await.keys("mrtr:bridge:*").await.unwrap();
    assert!(streams.len() <= 1, "{streams:?}");
}

/// A Redis, or what stands before it, that gives its reply at once where it should wait for something is not asked without
/// end; and what is handed over there comes over all the same.
#[tokio::test]
async fn a_redis_that_does_not_wait_is_not_asked_without_end() {
    let place = Place::new("hasty");
    let redis = Server::start(&place).await;
    let (url, read) = hasty(&redis).await;
    let all = [Process::start(&place, &url).await, Process::start(&place, &url).await];
    let first = call("a", 1, None);
    let reply = all[0].ask("alice", &first).await;
    assert_eq!(outcome(&all[1].ask("alice", &retry(&first, &reply, "yes")).await), "a: yes to a/0");
    let before = read.load(Ordering::Relaxed);
    sleep(Duration::from_secs(2)).await;
    // 20 a second and process; without a pause it was 27,000 in all.
    let times = read.load(Ordering::Relaxed) - before;
    assert!((1..=100).contains(&times), "{times}");
}

/// A Redis that lets write and not read, or not delete, is one over which nobody can be reached: that is said once and not
/// every second, and a retry at the wrong process fails at once. When it may be used again it is.
#[tokio::test]
async fn a_redis_that_lets_half_be_done_is_out_of_reach() {
    let Bridges { all, place, redis } = bridges("half", 2).await;
    let first = call("a", 1, None);
    let next = retry(&first, &all[0].ask("alice", &first).await, "yes");
    for command in ["xread", "xdel"] {
        let mut connection = redis.connection().await;
        let mut acl = async |rule: String| {
            let set = redis::cmd("ACL").arg(&["SETUSER", "default", &rule]).exec_async(&mut connection).await;
            set.unwrap();
            let kill: &[&str] = &["KILL", "TYPE", "normal", "SKIPME", "yes"];
            redis::cmd("CLIENT").arg(kill).exec_async(&mut connection).await.unwrap();
        };
        acl(format!("-{command}")).await;
        all[1].number_is("peers_unreachable", 1).await;
        for _ in 0..150 {
            assert_eq!(all[1].number("peers_unreachable").await, 1, "{command}");
            sleep(Duration::from_millis(10)).await;
        }
        let failed = all[1].ask("alice", &next).await;
        assert_eq!(failed[0]["error"]["data"], json!({"retryAfterMs": 1_000}));
        acl(format!("+{command}")).await;
        for process in &all {
            process.number_is("peers_unreachable", 0).await;
        }
    }
    assert_eq!(outcome(&all[1].ask("alice", &next).await), "a: yes to a/0");
    assert_eq!((place.notes("run"), place.notes("answer")), (1, 1));
}
