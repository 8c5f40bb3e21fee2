//! Both drivers with a ledger, under virtual time.

use std::{sync::Arc, time::Duration};

use mrtr_core::{
    Timestamp,
    catalog::Tool,
    form::{Elicited, Field, Form},
    handler::{Ctx, RpcError, Service, ToolResult},
    ledger::{MemoryLimits, Policy},
    server::{Config, Server},
    wire::Implementation,
};
use mrtr_tokio::{
    clock::Clock,
    keys::KeySource,
    server::{Anonymous, Endpoint, Identity},
    stdio,
    store::MemoryStore,
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader},
    sync::{Notify, mpsc},
    time::Instant,
};

use crate::{
    endpoint::{Pieces, post, text},
    support::request,
};

/// What a handler does, as tests see it.
struct Bench {
    service: Service,
    store: MemoryStore,
    clock: Clock,
    events: mpsc::UnboundedReceiver<&'static str>,
    go: Arc<Notify>,
}

struct Witness(mpsc::UnboundedSender<&'static str>);

impl Drop for Witness {
    fn drop(&mut self) {
        let _ = self.0.send("dropped");
    }
}

impl Bench {
    fn new() -> Self {
        let (sender, events) = mpsc::unbounded_channel();
        let go = Arc::new(Notify::new());
        let sealer = KeySource::Bytes(&[7; 32]).sealer("tests").unwrap();
        let mut config = Config::new(Implementation::new("tests", "1"), sealer);
        config.ledger = Some(Policy::default());
        let waits = Arc::clone(&go);
        let service = Service::new(Server::new(config))
            .tool(Tool::new("work", "Asks, waits, has an effect."), move |ctx: Ctx| {
                let (events, go) = (sender.clone(), Arc::clone(&waits));
                async move {
                    let form = Form::builder("n?").field(Field::integer("n").required()).build().unwrap();
                    let Elicited::Accept(content) = ctx.elicit::<Value>("n", &form).await? else {
                        return Ok::<_, RpcError>(ToolResult::text("nothing"));
                    };
                    let _witness = Witness(events.clone());
                    let _ = events.send("running");
                    go.notified().await;
                    ctx.on_commit(move || {
                        let _ = events.send("committed");
                        Ok(())
                    });
                    Ok(ToolResult::text(content["n"].to_string()))
                }
            })
            .unwrap();
        let clock = Clock::tokio(Timestamp::from_unix_millis(1_800_000_000_000));
        Self { service, store: MemoryStore::new(MemoryLimits::default(), clock), clock, events, go }
    }

    fn endpoint(&self) -> Endpoint {
        Endpoint::builder(self.service.clone(), Anonymous::new())
            .clock(self.clock)
            .ledger(self.store.clone())
            .build()
    }

    async fn next(&mut self) -> &'static str {
        self.events.recv().await.unwrap()
    }
}

fn first(id: u32) -> String {
    request(id, "tools/call", r#""name":"work","arguments":{},"#, "")
}

fn retry(id: u32, state: &str, n: u32) -> String {
    let params = format!(
        r#""name":"work","arguments":{{}},"inputResponses":{{"n":{{"action":"accept","content":{{"n":{n}}}}}}},"requestState":"{state}","#
    );
    request(id, "tools/call", &params, "")
}

async fn send(endpoint: Endpoint, body: String) -> Value {
    let response = endpoint.call(post(&body, Pieces::whole(&body))).await;
    let text = text(response).await;
    // The last event of a stream, or the whole.
    let json = text.rsplit("data: ").next().unwrap().trim();
    serde_json::from_str(json).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn state(reply: &Value) -> String {
    reply["result"]["requestState"].as_str().unwrap_or_else(|| panic!("{reply}")).to_owned()
}

#[tokio::test(start_paused = true)]
async fn copies_of_a_retry_get_one_reply_b3_b4() {
    let mut bench = Bench::new();
    let endpoint = bench.endpoint();
    let state = state(&send(endpoint.clone(), first(1)).await);
    let one = tokio::spawn(send(endpoint.clone(), retry(2, &state, 5)));
    assert_eq!(bench.next().await, "running");
    let two = tokio::spawn(send(endpoint.clone(), retry(3, &state, 5)));
    // Longer than a lease: the first renews its own. The second waits as long as it saw the lease last.
    let begin = Instant::now();
    let busy = two.await.unwrap();
    assert_eq!(busy["error"]["data"]["retry"], json!(true), "{busy}");
    assert_eq!(begin.elapsed().as_secs(), 30);
    let three = tokio::spawn(send(endpoint.clone(), retry(4, &state, 5)));
    tokio::time::sleep(Duration::from_secs(1)).await;
    bench.go.notify_one();
    let (one, three) = (one.await.unwrap(), three.await.unwrap());
    assert_eq!((bench.next().await, bench.next().await), ("dropped", "committed"));
    assert_eq!(one["result"]["content"][0]["text"], json!("5"), "{one}");
    assert_eq!((&three["result"], &three["id"]), (&one["result"], &json!(4)));
    // And afterwards.
    let again = send(endpoint.clone(), retry(5, &state, 5)).await;
    assert_eq!((&again["result"], &again["id"]), (&one["result"], &json!(5)));
    let other = send(endpoint, retry(6, &state, 6)).await;
    assert_eq!(other["error"]["message"], json!("Invalid or expired requestState"));
    assert!(bench.events.try_recv().is_err(), "the handler ran once");
    // Nothing stays for ever.
    assert_eq!(bench.store.len(), 1);
    tokio::time::sleep(Duration::from_secs(661)).await;
    assert!(bench.store.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_leaves_gives_its_state_back_b5() {
    let mut bench = Bench::new();
    let endpoint = bench.endpoint();
    let state = state(&send(endpoint.clone(), first(1)).await);
    let left = tokio::spawn(send(endpoint.clone(), retry(2, &state, 5)));
    assert_eq!(bench.next().await, "running");
    assert_eq!(bench.store.len(), 1);
    left.abort();
    assert_eq!(bench.next().await, "dropped");
    endpoint.idle().await;
    assert!(bench.store.is_empty());
    bench.go.notify_one();
    let other = send(endpoint, retry(3, &state, 6)).await;
    assert_eq!(other["result"]["content"][0]["text"], json!("6"), "{other}");
}

#[tokio::test(start_paused = true)]
async fn without_a_store_retries_are_refused_b7() {
    let bench = Bench::new();
    let endpoint = Endpoint::builder(bench.service.clone(), Anonymous::new()).clock(bench.clock).build();
    let state = state(&send(endpoint.clone(), first(1)).await);
    let refused = send(endpoint, retry(2, &state, 5)).await;
    assert_eq!(refused["error"]["code"], json!(-32603), "{refused}");
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_request_gives_its_state_back_on_a_pipe_b5_r_188() {
    let mut bench = Bench::new();
    let mut options = stdio::Options::default().ledger(bench.store.clone());
    options.clock = bench.clock;
    let (ours, theirs) = tokio::io::duplex(64 << 10);
    let (input, output) = tokio::io::split(theirs);
    let forever = std::future::pending();
    tokio::spawn(stdio::serve(bench.service.clone(), Identity::Anonymous, input, output, options, forever));
    let (output, mut input) = tokio::io::split(ours);
    let mut lines = BufReader::new(output).lines();
    let mut write = async |line: String| input.write_all(format!("{line}\n").as_bytes()).await.unwrap();
    write(first(1)).await;
    let asked: Value = serde_json::from_str(&lines.next_line().await.unwrap().unwrap()).unwrap();
    let state = state(&asked);
    write(retry(2, &state, 5)).await;
    assert_eq!(bench.next().await, "running");
    write(String::from(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}"#))
        .await;
    assert_eq!(bench.next().await, "dropped");
    bench.go.notify_one();
    write(retry(3, &state, 6)).await;
    let reply: Value = serde_json::from_str(&lines.next_line().await.unwrap().unwrap()).unwrap();
    assert_eq!((&reply["id"], &reply["result"]["content"][0]["text"]), (&json!(3), &json!("6")), "{reply}");
}
