//! Three replicas that share keys and a Redis, each in a runtime of its own, killed at random.

use std::{
    collections::BTreeMap,
    convert::Infallible,
    pin::Pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, AtomicUsize, Ordering::SeqCst},
    },
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http::Request;
use http_body::{Body, Frame};
use mrtr_core::{
    Limits,
    catalog::Tool,
    form::{Elicited, Field, Form},
    handler::{Ctx, RpcError, Service, ToolResult},
    http::{ParamHeaders, request_headers},
    jsonrpc::admit,
    ledger::Policy,
    seal::{KeyRing, Sealer, Secret, Ttl},
    server::{Config, Server},
    wire::Implementation,
};
use mrtr_tokio::{
    server::{Anonymous, Endpoint},
    store::Redis,
};
use serde_json::{Value, json};
use tokio::{
    runtime::{Handle, Runtime},
    time::{Instant, sleep},
};

use crate::{plain, url};

const TTL: Duration = Duration::from_secs(5);
const ROTATION: Duration = Duration::from_secs(2);
const RUNS_FOR: Duration = Duration::from_secs(10);
const REPLICAS: usize = 3;
const CLIENTS: usize = 8;
/// The sentence of every refused state.
const REFUSED: &str = "Invalid or expired requestState";

/// What handlers were doing when their replica was killed, and for which exchange.
#[derive(Default)]
struct Seen {
    began: Mutex<BTreeMap<String, &'static str>>,
    killed_running: AtomicUsize,
    killed_committing: AtomicUsize,
}

/// Counts a piece of work that was dropped before its end.
struct Unfinished<'a>(Option<&'a AtomicUsize>);

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        if let Some(count) = self.0 {
            count.fetch_add(1, SeqCst);
        }
    }
}

/// One replica. Its runtime is its process: when it is shut down, everything in it stops where it is.
struct Replica {
    up: Mutex<Option<(Runtime, Redis)>>,
}

struct World {
    replicas: Vec<Replica>,
    seen: Arc<Seen>,
    begin: Instant,
    turn: AtomicUsize,
    ids: AtomicU64,
    kills: AtomicUsize,
}

fn secret(epoch: u64) -> Secret {
    let mut bytes = [0x5a; 32];
    bytes[..8].copy_from_slice(&epoch.to_be_bytes());
    Secret::from_bytes(&bytes).unwrap()
}

/// Mints with this epoch's secret; opens the next one's, which another replica may mint with already, and those
/// of all epochs whose states are still good.
fn sealer(epoch: u64) -> Sealer {
    let mut ring = KeyRing::new(secret(epoch));
    for other in (epoch.saturating_sub(4)..=epoch + 1).filter(|other| *other != epoch) {
        ring.accept(secret(other)).unwrap();
    }
    Sealer::encrypted(&ring, "replicas").ttl(Ttl::new(TTL).unwrap())
}

async fn number(ctx: &Ctx, key: &str) -> Result<u64, RpcError> {
    let form = Form::builder(key).field(Field::integer("n").required()).build().unwrap();
    match ctx.elicit::<Value>(key, &form).await? {
        Elicited::Accept(content) => Ok(content["n"].as_u64().unwrap()),
        Elicited::Decline | Elicited::Cancel => Err(RpcError::invalid_params("no number")),
    }
}

fn service(epoch: u64, seen: &Arc<Seen>) -> Service {
    let mut config = Config::new(Implementation::new("replicas", "1"), sealer(epoch));
    let mut policy = Policy::default();
    policy.lease = Duration::from_secs(1);
    // One machine, one clock.
    policy.skew = Duration::from_millis(50);
    config.ledger = Some(policy);
    let seen = Arc::clone(seen);
    Service::new(Server::new(config))
        .tool(Tool::new("work", "Asks twice, then has an effect."), move |ctx: Ctx| {
            let seen = Arc::clone(&seen);
            async move { work(ctx, seen).await }
        })
        .unwrap()
}

async fn work(ctx: Ctx, seen: Arc<Seen>) -> Result<ToolResult, RpcError> {
    let name: String = ctx.argument("name")?;
    let a = number(&ctx, "a").await?;
    let b = number(&ctx, "b").await?;
    seen.began.lock().unwrap().entry(name.clone()).or_insert("running");
    {
        let mut unfinished = Unfinished(Some(&seen.killed_running));
        sleep(Duration::from_millis(30)).await;
        unfinished.0 = None;
    }
    let done = format!("{name}: {a} {b}");
    ctx.on_commit_async(move || async move {
        seen.began.lock().unwrap().insert(name.clone(), "committing");
        let mut unfinished = Unfinished(Some(&seen.killed_committing));
        let key = format!("commit:{name}");
        let counted = redis::cmd("INCR").arg(key).exec_async(&mut plain().await).await;
        sleep(Duration::from_millis(20)).await;
        unfinished.0 = None;
        counted.map_err(|_| RpcError::internal("the counter cannot be reached"))
    });
    Ok(ToolResult::text(done))
}

struct Whole(Option<Bytes>);

impl Body for Whole {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.0.take().map(|bytes| Ok(Frame::data(bytes))))
    }
}

/// How one copy of a request ended.
enum Ended {
    Reply(Value),
    Killed,
}

impl World {
    fn start(replica: &Replica) {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let redis = {
            let handle = runtime.handle().clone();
            std::thread::spawn(move || handle.block_on(Redis::connect(&url())).unwrap()).join().unwrap()
        };
        *replica.up.lock().unwrap() = Some((runtime, redis));
    }

    fn kill(&self, replica: usize) {
        let up = self.replicas[replica].up.lock().unwrap().take();
        if let Some((runtime, _)) = up {
            self.kills.fetch_add(1, SeqCst);
            runtime.shutdown_background();
        }
    }

    /// The next replica that is up, by turns.
    fn next(&self) -> (Handle, Redis) {
        loop {
            let turn = self.turn.fetch_add(1, SeqCst) % REPLICAS;
            if let Some((runtime, redis)) = &*self.replicas[turn].up.lock().unwrap() {
                return (runtime.handle().clone(), redis.clone());
            }
        }
    }

    /// Sends one copy under a new id.
    async fn send(&self, params: &Value) -> Ended {
        let id = self.ids.fetch_add(1, SeqCst);
        let body = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}).to_string();
        let message = admit(body.as_bytes(), &Limits::default()).unwrap();
        let mut request = Request::post("/mcp").header("Host", "localhost");
        for (name, value) in request_headers(&message, ParamHeaders::NONE).unwrap().iter() {
            request = request.header(name, value);
        }
        let request = request.body(Whole(Some(body.clone().into()))).unwrap();
        let (handle, redis) = self.next();
        let epoch = 10 + u64::try_from(self.begin.elapsed().as_millis() / ROTATION.as_millis()).unwrap();
        let service = service(epoch, &self.seen);
        let answered = handle.spawn(async move {
            let endpoint = Endpoint::builder(service, Anonymous::new()).ledger(redis).build();
            let mut body = Box::pin(endpoint.call(request).await.into_body());
            let mut bytes = Vec::new();
            while let Some(Ok(frame)) = std::future::poll_fn(|cx| body.as_mut().poll_frame(cx)).await {
                bytes.extend_from_slice(&frame.into_data().unwrap());
            }
            bytes
        });
        match answered.await {
            Ok(bytes) => {
                let reply: Value = serde_json::from_slice(&bytes)
                    .unwrap_or_else(|error| panic!("{error}: {:?}", String::from_utf8_lossy(&bytes)));
                assert_eq!(reply["id"], json!(id));
                Ended::Reply(reply)
            }
            Err(error) => {
                assert!(error.is_cancelled(), "{error}");
                Ended::Killed
            }
        }
    }
}

fn params(name: &str, key: Option<(&str, u64, &str)>) -> Value {
    let mut params = json!({"name": "work", "arguments": {"name": name}, "_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}},
    }});
    if let Some((key, n, state)) = key {
        params["inputResponses"] = json!({key: {"action": "accept", "content": {"n": n}}});
        params["requestState"] = state.into();
    }
    params
}

/// What all clients saw.
#[derive(Debug, Default)]
struct Tally {
    exchanges: AtomicUsize,
    retries: AtomicUsize,
    complete: AtomicUsize,
    busy: AtomicUsize,
    /// Copies whose replica was killed.
    killed: AtomicUsize,
    /// Rounds of which at least one copy was.
    killed_rounds: AtomicUsize,
    unknown: AtomicUsize,
    /// Of these, those that had begun a step of their commit; the others were between the entry that says so and
    /// the step.
    unknown_committing: AtomicUsize,
    repeated: AtomicUsize,
    others_refused: AtomicUsize,
    /// The client took longer than the state lived.
    too_slow: AtomicUsize,
}

/// How a retry ended, after as many copies as it took.
enum Round {
    Reply(Value),
    Unknown,
    TooSlow,
}

async fn retry(world: &World, tally: &Tally, name: &str, params: &Value, issued: Instant) -> Round {
    tally.retries.fetch_add(1, SeqCst);
    let mut killed = false;
    loop {
        if issued.elapsed() + Duration::from_millis(100) > TTL {
            tally.too_slow.fetch_add(1, SeqCst);
            return Round::TooSlow;
        }
        match world.send(params).await {
            Ended::Killed => {
                tally.killed.fetch_add(1, SeqCst);
                if !std::mem::replace(&mut killed, true) {
                    tally.killed_rounds.fetch_add(1, SeqCst);
                }
            }
            Ended::Reply(reply) if reply["error"]["data"]["retry"] == json!(true) => {
                tally.busy.fetch_add(1, SeqCst);
                sleep(Duration::from_millis(50)).await;
            }
            Ended::Reply(reply) if reply["error"].is_object() => {
                if issued.elapsed() >= TTL {
                    tally.too_slow.fetch_add(1, SeqCst);
                    return Round::TooSlow;
                }
                let message = reply["error"]["message"].as_str().unwrap();
                assert!(message.starts_with("Outcome unknown"), "{name} was refused: {reply}");
                assert!(killed, "{name}: nobody was killed, but {reply}");
                let how_far = world.seen.began.lock().unwrap().get(name).copied();
                assert!(how_far.is_some(), "{name}: no handler had begun, but {reply}");
                tally.unknown.fetch_add(1, SeqCst);
                if how_far == Some("committing") {
                    tally.unknown_committing.fetch_add(1, SeqCst);
                }
                return Round::Unknown;
            }
            Ended::Reply(reply) => return Round::Reply(reply),
        }
    }
}

/// One exchange from its first request to its end.
async fn exchange(world: &World, tally: &Tally, name: &str, dice: u64) {
    tally.exchanges.fetch_add(1, SeqCst);
    let first = params(name, None);
    let (mut reply, mut issued) = loop {
        let now = Instant::now();
        if let Ended::Reply(reply) = world.send(&first).await {
            break (reply, now);
        }
    };
    let mut last = first;
    for (key, n) in [("a", dice % 100), ("b", dice / 7 % 100)] {
        let state = reply["result"]["requestState"].as_str().unwrap_or_else(|| panic!("{reply}")).to_owned();
        last = params(name, Some((key, n, &state)));
        let began = Instant::now();
        // Two copies at once, now and then: both get the same.
        let both = dice.is_multiple_of(5);
        let (one, two) = if both {
            let (one, two) = tokio::join!(retry(world, tally, name, &last, issued), async {
                sleep(Duration::from_millis(dice % 60)).await;
                // Its replica may not have been killed, but the other one's.
                loop {
                    match world.send(&last).await {
                        Ended::Reply(reply) if reply["error"]["data"]["retry"] == json!(true) => {
                            sleep(Duration::from_millis(50)).await;
                        }
                        Ended::Reply(reply) => break Some(reply),
                        Ended::Killed => break None,
                    }
                }
            });
            (one, two)
        } else {
            (retry(world, tally, name, &last, issued).await, None)
        };
        match one {
            Round::Reply(next) => {
                if let Some(two) = two {
                    let same = two["result"] == next["result"] && two["error"] == next["error"];
                    assert!(same || issued.elapsed() > TTL, "{name}: two copies, two replies: {next} {two}");
                    tally.repeated.fetch_add(1, SeqCst);
                }
                reply = next;
            }
            Round::Unknown | Round::TooSlow => return,
        }
        // Other answers to the same state, now and then, are refused with the one sentence.
        if dice.is_multiple_of(3) && issued.elapsed() + Duration::from_secs(1) < TTL {
            let others = params(name, Some((key, n + 1, &state)));
            if let Ended::Reply(refused) = world.send(&others).await {
                assert_eq!(refused["error"]["message"], json!(REFUSED), "{name}");
                tally.others_refused.fetch_add(1, SeqCst);
            }
        }
        if key == "a" {
            issued = began;
        }
    }
    assert_eq!(reply["result"]["resultType"], json!("complete"), "{name}: {reply}");
    tally.complete.fetch_add(1, SeqCst);
    // The reply was lost on its way, now and then: the same retry again.
    if dice.is_multiple_of(4)
        && issued.elapsed() + Duration::from_secs(1) < TTL
        && let Ended::Reply(again) = world.send(&last).await
    {
        assert_eq!(again["result"], reply["result"], "{name}");
        tally.repeated.fetch_add(1, SeqCst);
    }
}

/// The next number of a sequence that looks random (xorshift).
fn draw(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a Redis: tests/run redis"]
async fn replicas_are_killed_and_every_retry_is_answered_b1_b6() {
    let mut plain_connection = plain().await;
    redis::cmd("FLUSHALL").exec_async(&mut plain_connection).await.unwrap();
    let replicas = (0..REPLICAS).map(|_| Replica { up: Mutex::new(None) }).collect();
    let world = Arc::new(World {
        replicas,
        seen: Arc::default(),
        begin: Instant::now(),
        turn: AtomicUsize::new(0),
        ids: AtomicU64::new(1),
        kills: AtomicUsize::new(0),
    });
    world.replicas.iter().for_each(World::start);
    let tally = Arc::new(Tally::default());
    let clients: Vec<_> = (0..CLIENTS)
        .map(|client| {
            let (world, tally) = (Arc::clone(&world), Arc::clone(&tally));
            tokio::spawn(async move {
                let mut random = 0x9e37_79b9_7f4a_7c15 + u64::try_from(client).unwrap();
                for number in 0.. {
                    if world.begin.elapsed() > RUNS_FOR {
                        return;
                    }
                    exchange(&world, &tally, &format!("{client}-{number}"), draw(&mut random)).await;
                }
            })
        })
        .collect();
    let mut random = 42;
    while world.begin.elapsed() < RUNS_FOR {
        sleep(Duration::from_millis(100 + draw(&mut random) % 200)).await;
        let victim = usize::try_from(draw(&mut random) % 3).unwrap();
        world.kill(victim);
        sleep(Duration::from_millis(50 + draw(&mut random) % 100)).await;
        let world = Arc::clone(&world);
        tokio::task::spawn_blocking(move || World::start(&world.replicas[victim])).await.unwrap();
    }
    for client in clients {
        client.await.unwrap();
    }
    let names: Vec<String> =
        redis::cmd("KEYS").arg("commit:*").query_async(&mut plain_connection).await.unwrap();
    let mut commits = 0;
    for name in &names {
        let count: u64 = redis::cmd("GET").arg(name).query_async(&mut plain_connection).await.unwrap();
        assert_eq!(count, 1, "{name} ran more than once");
        commits += 1;
    }
    let get = |count: &AtomicUsize| count.load(SeqCst);
    println!("kills {}, {tally:?}", get(&world.kills));
    println!(
        "outcome unknown: {} of {} rounds whose replica was killed; handlers cut off {}, commits cut off {}; commits {commits}",
        get(&tally.unknown),
        get(&tally.killed_rounds),
        get(&world.seen.killed_running),
        get(&world.seen.killed_committing),
    );
    assert!(get(&tally.complete) > 100 && get(&world.kills) > 10 && get(&tally.killed_rounds) > 0);
    assert!(commits >= get(&tally.complete));
    assert!(get(&tally.unknown) <= get(&tally.killed_rounds));
    for replica in 0..REPLICAS {
        world.kill(replica);
    }
}
