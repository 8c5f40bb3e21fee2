//! A Redis that is slow, silent, cut off in the middle of a word, or says no (B7).

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use mrtr_core::{
    Timestamp,
    ledger::{Command, Key, Operation, StoreEvent},
};
use mrtr_tokio::{
    clock::Clock,
    store::{Redis, Store as _},
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    time::{Instant, sleep, timeout},
};

use crate::url;

/// What becomes of what the Redis says.
#[derive(Clone, Copy, Debug)]
enum Mode {
    Passes,
    /// It comes so much later.
    Late(Duration),
    /// It does not come.
    Silent,
    /// So many bytes come, and the connection is closed.
    Cut(usize),
    /// Something else comes instead.
    Says(&'static str),
}

/// A way to the Redis of the tests on which it can fail.
struct Way {
    address: SocketAddr,
    mode: Arc<Mutex<Mode>>,
}

impl Way {
    async fn open() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mode = Arc::new(Mutex::new(Mode::Passes));
        let all = Arc::clone(&mode);
        tokio::spawn(async move {
            let redis = url().trim_start_matches("redis://").to_owned();
            while let Ok((client, _)) = listener.accept().await {
                let (from_client, to_client) = client.into_split();
                let (from_redis, to_redis) = TcpStream::connect(&redis).await.unwrap().into_split();
                tokio::spawn(asks(from_client, to_redis));
                tokio::spawn(answers(from_redis, to_client, Arc::clone(&all)));
            }
        });
        Self { address, mode }
    }

    fn becomes(&self, mode: Mode) {
        *self.mode.lock().unwrap() = mode;
    }

    async fn store(&self) -> Redis {
        Redis::connect(&format!("redis://{}", self.address)).await.unwrap()
    }
}

async fn asks(mut from: OwnedReadHalf, mut to: OwnedWriteHalf) {
    let _ = tokio::io::copy(&mut from, &mut to).await;
}

async fn answers(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, mode: Arc<Mutex<Mode>>) {
    let mut bytes = [0; 4096];
    while let Ok(count @ 1..) = from.read(&mut bytes).await {
        let mode = *mode.lock().unwrap();
        let said = match mode {
            Mode::Silent => continue,
            Mode::Cut(at) => &bytes[..at.min(count)],
            Mode::Says(what) => what.as_bytes(),
            Mode::Passes | Mode::Late(_) => &bytes[..count],
        };
        if let Mode::Late(by) = mode {
            sleep(by).await;
        }
        if to.write_all(said).await.is_err() || matches!(mode, Mode::Cut(_)) {
            return;
        }
    }
}

fn key(exchange: u8) -> Key {
    Key::new("fault tests", [exchange; 16], 1)
}

fn later() -> Timestamp {
    Clock::system().now().saturating_add(Duration::from_secs(60))
}

fn get(key: Key) -> Command {
    Command::new(key, Operation::Get)
}

fn set(key: Key, expected: Option<&[u8]>, new: &[u8]) -> Command {
    let expected = expected.map(<[u8]>::to_vec);
    Command::new(key, Operation::CompareAndSet { expected, new: Some(new.to_vec()), expires: later() })
}

/// A Redis that is far away is waited for, for as long as is said.
#[tokio::test]
async fn a_slow_redis_is_waited_for_b7() {
    let way = Way::open().await;
    way.becomes(Mode::Late(Duration::from_millis(700)));
    let store = way.store().await;
    assert_eq!(store.apply(set(key(1), None, b"v")).await, StoreEvent::Applied);
}

/// However many wait for one that says nothing, each is told in its time, on an old connection and on a new one.
#[tokio::test]
async fn a_silent_redis_holds_nobody_longer_b7() {
    let way = Way::open().await;
    let store = way.store().await;
    way.becomes(Mode::Silent);
    for _ in 0..2 {
        let all = (0..8).map(|n: u64| {
            let store = store.clone();
            tokio::spawn(async move {
                sleep(Duration::from_millis(250 * n)).await;
                let asked = Instant::now();
                let said = store.apply(get(key(2))).await;
                (said, asked.elapsed())
            })
        });
        for one in all.collect::<Vec<_>>() {
            let (said, took) = one.await.unwrap();
            assert_eq!(said, StoreEvent::Unavailable);
            assert!(took < Duration::from_millis(3_200), "{took:?}");
        }
    }
    way.becomes(Mode::Passes);
    assert_eq!(store.apply(get(key(2))).await, StoreEvent::Current(None));
}

/// A connection that is cut at any byte of a reply leaves the entry as it was or as it should be, and the next command
/// finds out which.
#[tokio::test]
async fn a_reply_that_is_cut_anywhere_is_no_reply_b7() {
    let way = Way::open().await;
    let store = way.store().await;
    // `*1`, `:1`.
    const REPLY: usize = 8;
    let mut before = None;
    for at in 0..=REPLY {
        way.becomes(Mode::Cut(at));
        let new = vec![b'a'; at];
        let said = store.apply(set(key(3), before.as_deref(), &new)).await;
        assert_eq!(said, if at < REPLY { StoreEvent::Unavailable } else { StoreEvent::Applied }, "{at}");
        way.becomes(Mode::Passes);
        let mut found = store.apply(get(key(3))).await;
        if at == REPLY {
            // The connection was closed behind the reply, which may not be known yet.
            found = store.apply(get(key(3))).await;
        }
        assert_eq!(found, StoreEvent::Current(Some(new.clone())), "{at}");
        before = Some(new);
    }
    // The same while it connects.
    for at in 0..12 {
        way.becomes(Mode::Cut(0));
        assert_eq!(store.apply(get(key(3))).await, StoreEvent::Unavailable);
        way.becomes(Mode::Cut(at));
        let said = timeout(Duration::from_secs(5), store.apply(get(key(3)))).await.expect("an end");
        assert_eq!(said, StoreEvent::Unavailable, "{at}");
        way.becomes(Mode::Passes);
        assert_eq!(store.apply(get(key(3))).await, StoreEvent::Current(before.clone()), "{at}");
    }
}

/// What else a Redis may say is no answer, and no reason not to ask again.
#[tokio::test]
async fn a_redis_that_says_no_is_asked_again_b7() {
    let way = Way::open().await;
    let store = way.store().await;
    for (says, expected) in [
        ("-MOVED 3999 10.0.0.1:6379\r\n", StoreEvent::Unavailable),
        ("-ASK 3999 10.0.0.1:6379\r\n", StoreEvent::Unavailable),
        ("-NOAUTH Authentication required.\r\n", StoreEvent::Unavailable),
        ("-NOPERM this user has no permissions\r\n", StoreEvent::Unavailable),
        ("-LOADING Redis is loading the dataset in memory\r\n", StoreEvent::Unavailable),
        ("-READONLY You can't write against a read only replica.\r\n", StoreEvent::Unavailable),
        ("-MASTERDOWN Link with MASTER is down\r\n", StoreEvent::Unavailable),
        ("-BUSY Redis is busy running a script\r\n", StoreEvent::Unavailable),
        ("-WRONGTYPE Operation against a key\r\n", StoreEvent::Unavailable),
        ("-NOSCRIPT No matching script.\r\n", StoreEvent::Unavailable),
        ("-OOM command not allowed when used memory > 'maxmemory'.\r\n", StoreEvent::Full),
        ("+OK\r\n", StoreEvent::Unavailable),
        ("*0\r\n", StoreEvent::Unavailable),
        ("*1\r\n:2\r\n", StoreEvent::Unavailable),
        ("*2\r\n:1\r\n$1\r\nx\r\n", StoreEvent::Unavailable),
        ("*2\r\n:0\r\n*0\r\n", StoreEvent::Unavailable),
        ("$-1\r\n", StoreEvent::Unavailable),
        (":1\r\n", StoreEvent::Unavailable),
        ("HTTP/1.1 400 Bad Request\r\n\r\n", StoreEvent::Unavailable),
    ] {
        way.becomes(Mode::Says(says));
        assert_eq!(store.apply(set(key(4), Some(b"x"), b"y")).await, expected, "{says}");
        way.becomes(Mode::Passes);
        assert_eq!(store.apply(get(key(4))).await, StoreEvent::Current(None), "{says}");
        way.becomes(Mode::Says(says));
        let said = store.apply(get(key(4))).await;
        let nothing = StoreEvent::Current(None);
        assert_eq!(said, if says == "$-1\r\n" { nothing } else { expected }, "{says}");
        way.becomes(Mode::Passes);
        assert_eq!(store.apply(get(key(4))).await, StoreEvent::Current(None), "{says}");
    }
}
