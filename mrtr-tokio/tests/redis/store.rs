//! Get, and compare-and-set.

use std::time::Duration;

use mrtr_core::{
    Timestamp,
    ledger::{Command, Key, Operation, StoreEvent},
};
use mrtr_tokio::{
    clock::Clock,
    store::{Redis, RedisError, Store as _},
};

use crate::{plain, url};

fn key(exchange: u8) -> Key {
    Key::new("store tests", [exchange; 16], 1)
}

fn set(key: Key, expected: Option<&[u8]>, new: Option<&[u8]>, expires: Timestamp) -> Command {
    let operation = Operation::CompareAndSet {
        expected: expected.map(<[u8]>::to_vec),
        new: new.map(<[u8]>::to_vec),
        expires,
    };
    Command::new(key, operation)
}

fn later() -> Timestamp {
    Clock::system().now().saturating_add(Duration::from_secs(60))
}

async fn settings(name: &str, value: &str) {
    redis::cmd("CONFIG").arg("SET").arg(name).arg(value).exec_async(&mut plain().await).await.unwrap();
}

#[tokio::test]
async fn compare_and_set_is_one_step() {
    let store = Redis::connect(&url()).await.unwrap();
    let key = key(1);
    let get = || Command::new(key, Operation::Get);
    assert_eq!(store.apply(get()).await, StoreEvent::Current(None));
    // Bytes that are no text, and an empty value, which is not the same as none.
    for value in [&b"\x00\xff\r\n"[..], b""] {
        assert_eq!(store.apply(set(key, Some(b"x"), Some(value), later())).await, StoreEvent::Current(None));
        assert_eq!(store.apply(set(key, None, Some(value), later())).await, StoreEvent::Applied);
        let there = StoreEvent::Current(Some(value.to_vec()));
        assert_eq!(store.apply(set(key, None, Some(b"y"), later())).await, there);
        assert_eq!(store.apply(set(key, Some(b"z"), None, later())).await, there);
        assert_eq!(store.apply(get()).await, there);
        assert_eq!(store.apply(set(key, Some(value), None, later())).await, StoreEvent::Applied);
        assert_eq!(store.apply(get()).await, StoreEvent::Current(None));
    }
    // Of many at once one wins.
    let all = (0..16u8).map(|n| {
        let store = store.clone();
        tokio::spawn(async move { store.apply(set(key, None, Some(&[n]), later())).await })
    });
    let mut applied = 0;
    for one in all.collect::<Vec<_>>() {
        applied += usize::from(one.await.unwrap() == StoreEvent::Applied);
    }
    assert_eq!(applied, 1);
}

#[tokio::test]
async fn an_entry_is_kept_until_it_expires_b3() {
    let store = Redis::connect(&url()).await.unwrap();
    let key = key(2);
    let expires = Clock::system().now().saturating_add(Duration::from_secs(60));
    assert_eq!(store.apply(set(key, None, Some(b"v"), expires)).await, StoreEvent::Applied);
    let at: u64 =
        redis::cmd("PEXPIRETIME").arg(key.to_string()).query_async(&mut plain().await).await.unwrap();
    assert_eq!(at, expires.as_unix_millis());
}

#[tokio::test]
async fn a_redis_that_evicts_is_refused_b7() {
    settings("maxmemory-policy", "allkeys-lru").await;
    let refused = Redis::connect(&url()).await;
    settings("maxmemory-policy", "noeviction").await;
    match refused {
        Err(RedisError::Evicts { policy }) => assert_eq!(policy, "allkeys-lru"),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_full_redis_refuses_what_is_new_b7() {
    let store = Redis::connect(&url()).await.unwrap();
    settings("maxmemory", "1").await;
    let full = store.apply(set(key(3), None, Some(&[7; 4096]), later())).await;
    settings("maxmemory", "0").await;
    assert_eq!(full, StoreEvent::Full);
    assert_eq!(store.apply(set(key(3), None, Some(b"v"), later())).await, StoreEvent::Applied);
}

#[tokio::test]
async fn a_broken_connection_is_made_anew_b7() {
    // A port that nobody listens on.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let nobody = Redis::connect(&format!("redis://127.0.0.1:{port}")).await;
    assert!(matches!(nobody, Err(RedisError::Unreachable(_))), "{nobody:?}");
    let store = Redis::connect(&url()).await.unwrap();
    let get = || Command::new(key(4), Operation::Get);
    assert_eq!(store.apply(get()).await, StoreEvent::Current(None));
    let mut plain = plain().await;
    // Its connection is closed from the other side, by the server's own word.
    let _: i64 = redis::cmd("CLIENT")
        .arg(&["KILL", "TYPE", "normal", "SKIPME", "yes"])
        .query_async(&mut plain)
        .await
        .unwrap();
    let first = store.apply(get()).await;
    let second = store.apply(get()).await;
    // The first may have met the old connection before it was known to be closed.
    assert!(matches!(first, StoreEvent::Unavailable | StoreEvent::Current(None)), "{first:?}");
    assert_eq!(second, StoreEvent::Current(None));
}
