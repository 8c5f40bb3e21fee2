//! A replica: this program once more, with a server in it, until it is killed.

use std::{process::Stdio, time::Duration};

use mrtr_core::{
    catalog::Tool,
    form::{Elicited, Field, Form},
    handler::{Ctx, RpcError, Service, ToolResult},
    ledger::Policy,
    seal::{KeyRing, Sealer, Secret, Ttl},
    server::{Config, Server},
    wire::Implementation,
};
use mrtr_tokio::{
    clock::Clock,
    server::{Anonymous, Endpoint, Options, serve},
    store::Redis,
};
use redis::aio::MultiplexedConnection;
use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader},
    net::{TcpListener, TcpStream},
    process::{Child, Command},
    time::{sleep, timeout},
};

use super::{
    LEASE, ROTATION, TTL,
    marks::{self, Stage},
};
use crate::{plain, url};

/// Which life of a replica the process is; unset in the process that tests.
const LIFE: &str = "MRTR_TEST_LIFE";
/// What a replica says when it can be called.
const LISTENS: &str = "replica listens on port ";

/// Starts life number `life`; ready when it can be called, at the port.
pub(super) async fn spawn(life: usize) -> (Child, u16) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["replicas::replica::ends_with_the_process_that_started_it", "--exact", "--nocapture"])
        .env(LIFE, life.to_string())
        // It ends when this ends, however that may come.
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    loop {
        let line = lines.next_line().await.unwrap().expect("a replica that says where it listens");
        // The runner's own words stand before it, on the same line.
        if let Some((_, port)) = line.split_once(LISTENS) {
            let port = port.parse().unwrap();
            tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
            return (child, port);
        }
    }
}

/// A replica does not outlive who started it. In a process of its own, this is the replica.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn ends_with_the_process_that_started_it() {
    if let Ok(life) = std::env::var(LIFE) {
        return be(life.parse().unwrap()).await;
    }
    let (mut replica, port) = spawn(0).await;
    TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    drop(replica.stdin.take());
    let status = timeout(Duration::from_secs(30), replica.wait()).await.expect("it ends");
    assert!(status.unwrap().success());
}

async fn be(life: usize) {
    if std::env::var_os("MRTR_TEST_LOG").is_some() {
        tracing_subscriber::fmt()
            .with_writer(std::io::stderr)
            .with_ansi(false)
            .with_max_level(tracing::Level::WARN)
            .init();
    }
    let sealer = Sealer::encrypted(&ring(epoch()), "replicas").ttl(Ttl::new(TTL).unwrap());
    let endpoint = Endpoint::builder(service(&sealer, life, plain().await), Anonymous::new())
        .ledger(Redis::connect(&url()).await.unwrap())
        .build();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    println!("{LISTENS}{}", listener.local_addr().unwrap().port());
    // Each a little later than the other.
    let jitter = Duration::from_millis(u64::try_from(life * 37 % 400).unwrap());
    tokio::spawn(async move {
        loop {
            let into = unix_millis() % rotation_millis();
            sleep(ROTATION - Duration::from_millis(into) + jitter).await;
            sealer.set_ring(&ring(epoch()));
        }
    });
    let parent = async {
        let _ = tokio::io::stdin().read(&mut [0]).await;
    };
    serve(listener, endpoint, Options::default(), parent).await.unwrap();
}

fn unix_millis() -> u64 {
    Clock::system().now().as_unix_millis()
}

fn rotation_millis() -> u64 {
    u64::try_from(ROTATION.as_millis()).unwrap()
}

/// Whose turn it is to mint.
fn epoch() -> u64 {
    unix_millis() / rotation_millis()
}

fn secret(epoch: u64) -> Secret {
    let mut bytes = [0x5a; 32];
    bytes[..8].copy_from_slice(&epoch.to_be_bytes());
    Secret::from_bytes(&bytes).unwrap()
}

/// Mints with this epoch's secret; opens the next one's, which another replica may mint with already, and those
/// of all epochs whose states are still good.
fn ring(epoch: u64) -> KeyRing {
    let mut ring = KeyRing::new(secret(epoch));
    for other in (epoch - 4..=epoch + 1).filter(|other| *other != epoch) {
        ring.accept(secret(other)).unwrap();
    }
    ring
}

fn service(sealer: &Sealer, life: usize, redis: MultiplexedConnection) -> Service {
    let mut config = Config::new(Implementation::new("replicas", "1"), sealer.clone());
    let mut policy = Policy::default();
    policy.lease = LEASE;
    // One machine, one clock.
    policy.skew = Duration::from_millis(50);
    config.ledger = Some(policy);
    Service::new(Server::new(config))
        .tool(Tool::new("work", "Asks twice, then has an effect."), move |ctx: Ctx| {
            work(ctx, life, redis.clone())
        })
        .unwrap()
}

async fn number(ctx: &Ctx, key: &str) -> Result<u64, RpcError> {
    let form = Form::builder(key).field(Field::integer("n").required()).build().unwrap();
    match ctx.elicit::<Value>(key, &form).await? {
        Elicited::Accept(content) => Ok(content["n"].as_u64().unwrap()),
        Elicited::Decline | Elicited::Cancel => Err(RpcError::invalid_params("no number")),
    }
}

async fn work(ctx: Ctx, life: usize, redis: MultiplexedConnection) -> Result<ToolResult, RpcError> {
    let name: String = ctx.argument("name")?;
    let a = number(&ctx, "a").await?;
    let b = number(&ctx, "b").await?;
    let unreachable = |_| RpcError::internal("the Redis cannot be reached");
    marks::note(redis.clone(), &name, life, Stage::Running).await.map_err(unreachable)?;
    sleep(Duration::from_millis(30)).await;
    let done = format!("{name}: {a} {b}");
    ctx.on_commit_async(move || async move {
        marks::note(redis.clone(), &name, life, Stage::Committing).await.map_err(unreachable)?;
        marks::commit(redis.clone(), &name).await.map_err(unreachable)?;
        sleep(Duration::from_millis(20)).await;
        marks::note(redis, &name, life, Stage::Committed).await.map_err(unreachable)
    });
    Ok(ToolResult::text(done))
}
