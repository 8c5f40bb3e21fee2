//! Three replicas that share keys and a Redis, behind a proxy that takes turns: processes, killed at random.
//!
//! | file | what |
//! |---|---|
//! | `replica` | what a replica is: this program once more, with a server in it |
//! | `proxy` | hands connections to the replicas by turns |
//! | `fleet` | starts replicas, kills them, and knows whom it killed |
//! | `client` | exchanges, and what may become of them |
//! | `marks` | how far handlers came, noted in Redis by the handlers themselves |
//!
//! Ten seconds of it by `tests/run redis`. `MRTR_TEST_EXCHANGES` says how many exchanges to make instead; with
//! `MRTR_TEST_LOG` the replicas say what they warn of.

mod client;
mod fleet;
mod marks;
mod proxy;
mod replica;

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};

use tokio::{
    task::JoinSet,
    time::{Instant, sleep},
};

use crate::plain;
use client::{Clients, Tally};
use fleet::Fleet;

/// How long a state lives.
const TTL: Duration = Duration::from_secs(5);
/// How long a key mints.
const ROTATION: Duration = Duration::from_secs(2);
const LEASE: Duration = Duration::from_secs(1);
const REPLICAS: usize = 3;
/// Without a count of exchanges.
const RUNS_FOR: Duration = Duration::from_secs(10);
const CLIENTS: usize = 12;

/// The next number of a sequence that looks random (xorshift).
fn draw(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replicas_are_killed_and_every_retry_is_answered_b1_b6() {
    redis::cmd("FLUSHALL").exec_async(&mut plain().await).await.unwrap();
    let exchanges: Option<usize> =
        std::env::var("MRTR_TEST_EXCHANGES").ok().map(|count| count.parse().expect("MRTR_TEST_EXCHANGES"));
    let fleet = Arc::new(Fleet::start().await);
    let clients = Arc::new(Clients::new(proxy::start(Arc::clone(&fleet)).await));
    let begin = Instant::now();
    let mut running = JoinSet::new();
    for client in 0..CLIENTS {
        let clients = Arc::clone(&clients);
        running.spawn(async move {
            let mut random = 0x9e37_79b9_7f4a_7c15 + u64::try_from(client).unwrap();
            loop {
                let number = clients.tally.exchanges.fetch_add(1, SeqCst);
                let over = exchanges.map_or(begin.elapsed() > RUNS_FOR, |count| number >= count);
                if over {
                    clients.tally.exchanges.fetch_sub(1, SeqCst);
                    return;
                }
                clients.exchange(&number.to_string(), draw(&mut random)).await;
                if let Some(count) = exchanges.filter(|_| number % 1000 == 999) {
                    println!("{} of {count} exchanges, {} s", number + 1, begin.elapsed().as_secs());
                }
            }
        });
    }
    let kills = async {
        let mut random = 42;
        loop {
            sleep(Duration::from_millis(100 + draw(&mut random) % 200)).await;
            fleet.kill(usize::try_from(draw(&mut random)).unwrap() % REPLICAS).await;
        }
    };
    let clients_end = async {
        while let Some(ended) = running.join_next().await {
            ended.unwrap();
        }
    };
    tokio::select! {
        () = kills => {}
        () = clients_end => {}
    }
    let outcome = marks::Outcome::read(&fleet.killed(), &clients.tally.unknown()).await;
    report(&clients.tally, &fleet, &outcome, begin.elapsed());
}

/// Says what was seen, and holds it against what is promised.
fn report(tally: &Tally, fleet: &Fleet, outcome: &marks::Outcome, took: Duration) {
    let get = |count: &AtomicUsize| count.load(SeqCst);
    let kills = fleet.killed().len();
    println!(
        "{} exchanges in {} s with {kills} kills: {} complete, {} too slow for the life of their state",
        get(&tally.exchanges),
        took.as_secs(),
        get(&tally.complete),
        get(&tally.too_slow),
    );
    println!(
        "{} retries: {} copies cut off, {} told to come again; {} replies repeated, {} other answers refused",
        get(&tally.retries),
        get(&tally.cut_off),
        get(&tally.busy),
        get(&tally.repeated),
        get(&tally.others_refused),
    );
    println!(
        "double commits: {} of {} commits; handlers killed while running {}, while committing {}",
        outcome.double.len(),
        outcome.commits,
        outcome.killed_running,
        outcome.killed_committing,
    );
    println!(
        "outcome unknown: {} of {} rounds whose replica was killed; without a replica that was killed at it: {}",
        tally.unknown().len(),
        get(&tally.killed_rounds),
        outcome.unexplained.len(),
    );
    println!("good states refused: {}", tally.refused().len());
    assert!(tally.refused().is_empty(), "{:?}", tally.refused());
    assert!(outcome.double.is_empty(), "ran more than once: {:?}", outcome.double);
    assert!(outcome.unexplained.is_empty(), "nobody was killed at {:?}", outcome.unexplained);
    assert!(outcome.commits >= get(&tally.complete));
    assert!(tally.unknown().len() <= get(&tally.killed_rounds));
    // That something was tried at all.
    assert!(get(&tally.complete) > 100 && kills > 10 && get(&tally.killed_rounds) > 0);
}
