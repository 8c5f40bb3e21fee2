//! Clients of 2025-11-25 and 2025-06-18, over loopback and over a pipe, beside those of 2026-07-28.

use std::{sync::Arc, time::Duration};

use mrtr_core::{Limits, catalog::Change};
use mrtr_tokio::{
    server::{Anonymous, Bounds, Endpoint, LegacyConfig, Options},
    stdio,
};

use tokio::task::JoinSet;

use crate::{
    stdio::start,
    support::{Raw, Response, Running, Seen, call, service},
};

const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
pub(crate) const CALL: &str =
    r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"name","arguments":{}}}"#;
pub(crate) const NAME: &str =
    r#"{"jsonrpc":"2.0","id":1,"result":{"action":"accept","content":{"name":"Ada"}}}"#;
pub(crate) const SURE: &str = r#"{"jsonrpc":"2.0","id":2,"result":{"action":"accept","content":{}}}"#;
pub(crate) const HELLO: &str =
    r#"{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"Hello, Ada!"}]}}"#;

fn initialize(version: &str) -> String {
    format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{{\"protocolVersion\":\"{version}\",\
         \"capabilities\":{{\"elicitation\":{{}}}},\"clientInfo\":{{\"name\":\"c\",\"version\":\"1\"}}}}}}"
    )
}

/// A client of a legacy revision, in a session.
pub(crate) struct Client {
    pub(crate) server: Running,
    pub(crate) session: String,
}

impl Client {
    pub(crate) async fn begin(version: &str, config: LegacyConfig, bounds: Bounds) -> (Self, Seen, Endpoint) {
        let (service, seen) = service(Limits::default());
        let endpoint = Endpoint::builder(service, Anonymous::new()).legacy(config).bounds(bounds).build();
        let server = Running::start(endpoint.clone(), Options::default()).await;
        let mut client = Self { server, session: String::new() };
        let response = client.post(&initialize(version)).await;
        assert_eq!(response.status, 200);
        assert!(response.body.contains(&format!("\"protocolVersion\":\"{version}\"")), "{}", response.body);
        let id = response.head.split("mcp-session-id: ").nth(1).unwrap().split("\r\n").next().unwrap();
        assert_eq!(id.len(), 32);
        client.session = format!("Mcp-Session-Id: {id}\r\nMCP-Protocol-Version: {version}\r\n");
        let response = client.post(INITIALIZED).await;
        assert_eq!((response.status, &*response.body), (202, ""));
        (client, seen, endpoint)
    }

    pub(crate) async fn send(&self, method: &str, more: &str, body: &str) -> Raw {
        let mut raw = self.server.connect().await;
        let session = &self.session;
        let accept = "Accept: application/json, text/event-stream\r\nContent-Type: application/json\r\n";
        let length =
            if method == "POST" { format!("Content-Length: {}\r\n", body.len()) } else { String::new() };
        raw.write(&format!(
            "{method} /mcp HTTP/1.1\r\nHost: localhost\r\n{accept}{session}{more}{length}\r\n{body}"
        ))
        .await;
        raw
    }

    pub(crate) async fn post(&self, body: &str) -> Response {
        self.send("POST", "", body).await.response().await
    }

    /// Posts a call and reads to its first question.
    pub(crate) async fn ask(&self) -> (Raw, Event) {
        let mut stream = self.send("POST", "", CALL).await;
        let head = stream.until("\r\n\r\n").await.to_ascii_lowercase();
        assert!(head.starts_with("http/1.1 200") && head.contains("text/event-stream"), "{head}");
        let event = event(&mut stream).await;
        assert!(event.data.starts_with(r#"{"jsonrpc":"2.0","id":1,"method":"elicitation/create""#));
        (stream, event)
    }
}

pub(crate) struct Event {
    pub(crate) id: String,
    pub(crate) data: String,
}

pub(crate) async fn event(stream: &mut Raw) -> Event {
    let mut lines = stream.until("\n\n").await;
    // Comments first.
    while !lines.contains("data: ") {
        lines = stream.until("\n\n").await;
    }
    let line = |name: &str| {
        let found = lines.lines().find_map(|line| line.strip_prefix(name));
        found.unwrap_or_else(|| panic!("no {name} in {lines:?}")).to_owned()
    };
    Event { id: line("id: "), data: line("data: ") }
}

#[tokio::test]
async fn a_session_from_initialize_to_404_r_229_r_240() {
    let (client, _seen, _) = Client::begin("2025-11-25", LegacyConfig::default(), Bounds::default()).await;
    let (mut stream, _) = client.ask().await;
    assert_eq!(client.post(NAME).await.status, 202);
    assert!(event(&mut stream).await.data.contains(r#""id":2,"method":"elicitation/create""#));
    assert_eq!(client.post(SURE).await.status, 202);
    assert_eq!(event(&mut stream).await.data, HELLO);
    // The stream ends with the response.
    stream.until("\r\n0\r\n\r\n").await;

    // A call that needs no stream is answered with JSON.
    let echo = r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"echo","arguments":{"text":"hi"}}}"#;
    let response = client.post(echo).await;
    assert!(response.head.contains("application/json") && response.body.contains("\"hi\""));

    assert_eq!(client.send("DELETE", "", "").await.response().await.status, 202);
    assert_eq!(client.post(echo).await.status, 404);
    assert_eq!(client.post(NAME).await.status, 404);
    assert_eq!(client.send("GET", "", "").await.response().await.status, 404);
    assert_eq!(client.send("DELETE", "", "").await.response().await.status, 404);
}

/// Each call's questions come on its own stream, and each answer goes to its own call.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn calls_side_by_side_in_one_session_r_231() {
    let (client, _seen, _) = Client::begin("2025-11-25", LegacyConfig::default(), Bounds::default()).await;
    let client = Arc::new(client);
    let mut calls = JoinSet::new();
    for id in 10..26 {
        let client = Arc::clone(&client);
        calls.spawn(async move {
            let call = CALL.replace("\"id\":1", &format!("\"id\":{id}"));
            let mut stream = client.send("POST", "", &call).await;
            for content in [format!("{{\"name\":\"N{id}\"}}"), "{}".into()] {
                let asked: serde_json::Value = serde_json::from_str(&event(&mut stream).await.data).unwrap();
                let ask = &asked["id"];
                let answer = format!(
                    "{{\"jsonrpc\":\"2.0\",\"id\":{ask},\"result\":{{\"action\":\"accept\",\"content\":{content}}}}}"
                );
                assert_eq!(client.post(&answer).await.status, 202);
            }
            let last: serde_json::Value = serde_json::from_str(&event(&mut stream).await.data).unwrap();
            assert_eq!(last["id"], id);
            assert_eq!(last["result"]["content"][0]["text"], format!("Hello, N{id}!"));
        });
    }
    while let Some(done) = calls.join_next().await {
        done.unwrap();
    }
}

#[tokio::test]
async fn forms_of_2025_06_18_are_of_its_language_bt_5() {
    let (client, _seen, _) = Client::begin("2025-06-18", LegacyConfig::default(), Bounds::default()).await;
    let (_stream, question) = client.ask().await;
    assert!(!question.data.contains("\"mode\""), "{}", question.data);
}

#[tokio::test]
async fn both_eras_on_one_port_r_052_g_44() {
    let (client, _seen, _) = Client::begin("2025-11-25", LegacyConfig::default(), Bounds::default()).await;
    let mut modern = client.server.connect().await;
    modern.post(&call(1, "echo", r#"{"text":"hi"}"#), "").await;
    let response = modern.response().await;
    assert_eq!(response.status, 200);
    assert!(response.body.contains("\"resultType\":\"complete\""), "{}", response.body);
    // And without the option there are no sessions.
    let (service, _seen) = service(Limits::default());
    let server = Running::start(Endpoint::new(service, Anonymous::new()), Options::default()).await;
    let alone = Client { server, session: String::new() };
    let response = alone.post(&initialize("2025-11-25")).await;
    assert_eq!(response.status, 400);
    assert!(!response.head.contains("mcp-session-id"));
    assert_eq!(alone.send("GET", "", "").await.response().await.status, 405);
}

#[tokio::test]
async fn a_lost_stream_is_taken_up_again_r_239_r_242() {
    let (client, _seen, _) = Client::begin("2025-11-25", LegacyConfig::default(), Bounds::default()).await;
    let (stream, first) = client.ask().await;
    drop(stream);
    // Answered while nobody reads: the next question waits for whoever comes.
    assert_eq!(client.post(NAME).await.status, 202);
    let mut stream = client.send("GET", &format!("Last-Event-ID: {}\r\n", first.id), "").await;
    let again = event(&mut stream).await;
    assert!(again.data.contains(r#""id":2,"method":"elicitation/create""#), "{}", again.data);
    assert_eq!(client.post(SURE).await.status, 202);
    let last = event(&mut stream).await;
    assert_eq!(last.data, HELLO);
    stream.until("\r\n0\r\n\r\n").await;
    // The call is over, and its end can still be had: a task has to be started anew for it.
    let mut stream = client.send("GET", &format!("Last-Event-ID: {}\r\n", again.id), "").await;
    assert_eq!(event(&mut stream).await.data, HELLO);
    let unknown = client.send("GET", "Last-Event-ID: 77-0\r\n", "").await.response().await;
    assert_eq!(unknown.status, 400);
}

#[tokio::test]
async fn questions_end_when_nobody_comes_back_r_239() {
    let mut config = LegacyConfig::default();
    config.resume = Duration::from_millis(50);
    let (client, mut seen, endpoint) = Client::begin("2025-11-25", config, Bounds::default()).await;
    // A call that asks nothing is not cancelled by the loss of its connection.
    let wait = CALL.replace("\"name\":\"name\"", "\"name\":\"wait\"").replace("\"id\":1", "\"id\":5");
    let wait = wait.replace("{}}", "{},\"_meta\":{\"progressToken\":1}}");
    let mut stream = client.send("POST", "", &wait).await;
    assert!(event(&mut stream).await.data.contains("notifications/progress"));
    assert_eq!(seen.next().await, "waiting");
    drop(stream);
    // One that asks ends without its answer.
    drop(client.ask().await);
    seen.go.notify_one();
    assert_eq!(seen.next().await, "dropped");
    tokio::time::timeout(Duration::from_secs(10), endpoint.idle()).await.unwrap();
}

/// R-232: nothing that a client or a proxy counts as silence while it waits for a person.
#[tokio::test]
async fn comments_while_a_person_thinks_r_232() {
    let mut bounds = Bounds::default();
    bounds.keep_alive = Duration::from_millis(20);
    let (client, _seen, _) = Client::begin("2025-11-25", LegacyConfig::default(), bounds).await;
    let (mut stream, _) = client.ask().await;
    stream.until(":\n\n").await;
    stream.until(":\n\n").await;
}

#[tokio::test]
async fn changes_go_to_the_standalone_stream_and_it_closes_with_the_server() {
    let (client, _seen, endpoint) =
        Client::begin("2025-11-25", LegacyConfig::default(), Bounds::default()).await;
    let mut stream = client.send("GET", "", "").await;
    stream.until("\r\n\r\n").await;
    stream.until(":\n\n").await;
    endpoint.changes().notify(Change::Tools);
    assert!(event(&mut stream).await.data.contains("notifications/tools/list_changed"));
    let Client { mut server, .. } = client;
    server.stop.take().unwrap().send(()).unwrap();
    stream.until("\r\n0\r\n\r\n").await;
    server.ended.await.unwrap().unwrap();
}

#[tokio::test]
async fn answers_find_room_when_streams_do_not() {
    let mut bounds = Bounds::default();
    bounds.streams = 1;
    let (client, _seen, _) = Client::begin("2025-11-25", LegacyConfig::default(), bounds).await;
    let (mut stream, _) = client.ask().await;
    assert_eq!(client.send("GET", "", "").await.response().await.status, 503);
    assert_eq!(client.post(&CALL.replace("\"id\":1", "\"id\":9")).await.status, 503);
    assert_eq!(client.post(NAME).await.status, 202);
    assert!(event(&mut stream).await.data.contains(r#""id":2"#));
    // What is answered at once needs no stream.
    let ping = client.post(r#"{"jsonrpc":"2.0","id":9,"method":"ping"}"#).await;
    assert_eq!((ping.status, &*ping.body), (200, r#"{"jsonrpc":"2.0","id":9,"result":{}}"#));
}

#[tokio::test]
async fn a_session_that_ends_closes_its_streams_r_241() {
    let (client, _seen, _) = Client::begin("2025-11-25", LegacyConfig::default(), Bounds::default()).await;
    let (mut asking, _) = client.ask().await;
    let mut standalone = client.send("GET", "", "").await;
    standalone.until(":\n\n").await;
    assert_eq!(client.send("DELETE", "", "").await.response().await.status, 202);
    asking.until("0\r\n\r\n").await;
    standalone.until("0\r\n\r\n").await;
}

fn both() -> stdio::Options {
    let mut options = stdio::Options::default();
    options.legacy = Some(LegacyConfig::default());
    options
}

#[tokio::test(start_paused = true)]
async fn a_session_on_a_pipe_beside_modern_requests_r_052() {
    let (mut peer, _seen) = start(Limits::default(), both());
    peer.send(&call(7, "echo", r#"{"text":"before"}"#)).await;
    assert!(peer.line().await.contains("before"));
    peer.send(&initialize("2025-11-25")).await;
    assert!(peer.line().await.contains("\"protocolVersion\":\"2025-11-25\""));
    peer.send(INITIALIZED).await;
    peer.send(CALL).await;
    assert!(peer.line().await.starts_with(r#"{"jsonrpc":"2.0","id":1,"method":"elicitation/create""#));
    peer.send(&call(8, "echo", r#"{"text":"between"}"#)).await;
    assert!(peer.line().await.contains("\"resultType\":\"complete\""));
    peer.send(NAME).await;
    assert!(peer.line().await.contains(r#""id":2,"method":"elicitation/create""#));
    peer.send(SURE).await;
    assert_eq!(peer.line().await, HELLO);
    peer.close().await;
    peer.served.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn what_runs_in_a_session_may_finish_after_the_end_of_the_input() {
    let (mut peer, mut seen) = start(Limits::default(), both());
    peer.send(&initialize("2025-11-25")).await;
    peer.line().await;
    peer.send(INITIALIZED).await;
    peer.send(&CALL.replace("\"name\":\"name\"", "\"name\":\"wait\"")).await;
    assert_eq!(seen.next().await, "waiting");
    peer.close().await;
    seen.go.notify_one();
    assert!(peer.line().await.contains("went on"));
    peer.served.await.unwrap().unwrap();
}
