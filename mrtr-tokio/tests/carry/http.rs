//! Over real loopback sockets.

use std::time::Duration;

use mrtr_core::{Limits, catalog::Change};
use mrtr_tokio::{
    changes::Changes,
    client::{Client, Options as ClientOptions},
    server::{Anonymous, Bounds, Endpoint, Options},
};

use crate::support::{Running, Table, call, call_with_progress, client_config, request, service, text};

#[tokio::test]
async fn a_whole_exchange_r_057_r_087() {
    let (service, _seen) = service(Limits::default());
    let running = Running::start(Endpoint::new(service, Anonymous::new()), Options::default()).await;
    let client = Client::http(&running.url(), client_config(), ClientOptions::default()).unwrap();
    let table = Table::naming("Ada");
    let reply = client.call_tool("name", "{}", &table).await.unwrap();
    assert_eq!((text(&reply).as_str(), reply.rounds(), reply.may_be_kept()), ("Hello, Ada!", 3, false));
    assert_eq!(table.asked(), ["name", "sure"]);
    let tools = client.list_tools().await.unwrap();
    assert!(tools.iter().any(|tool| tool.name == "mirrored"), "{tools:?}");
}

#[tokio::test]
async fn json_unless_something_must_stream_r_177_r_180() {
    let (service, seen) = service(Limits::default());
    let running = Running::start(Endpoint::new(service, Anonymous::new()), Options::default()).await;
    let mut peer = running.connect().await;
    peer.post(&call(1, "echo", r#"{"text":"hi"}"#), "").await;
    let response = peer.response().await;
    assert_eq!(response.status, 200);
    assert!(response.head.contains("content-type: application/json"), "{}", response.head);
    assert!(response.body.contains("\"hi\"") && !response.body.contains('\n'), "{}", response.body);

    // The same connection, and a handler that reports progress: an event stream, ended by the reply.
    seen.go.notify_one();
    peer.post(&call_with_progress(2, "wait"), "").await;
    let head = peer.until("\r\n\r\n").await.to_ascii_lowercase();
    assert!(head.starts_with("http/1.1 200") && head.contains("content-type: text/event-stream"), "{head}");
    assert!(head.contains("x-accel-buffering: no"), "{head}");
    let events = peer.until("0\r\n\r\n").await;
    let (progress, reply) = (events.find("notifications/progress").unwrap(), events.find("went on").unwrap());
    assert!(progress < reply, "{events}");

    // Without a token there is nothing to tell, and no stream.
    seen.go.notify_one();
    peer.post(&call(3, "wait", "{}"), "").await;
    assert!(peer.response().await.head.contains("application/json"));
}

#[tokio::test]
async fn a_closed_stream_stops_the_handler_r_187() {
    let (service, mut seen) = service(Limits::default());
    let endpoint = Endpoint::new(service, Anonymous::new());
    let running = Running::start(endpoint.clone(), Options::default()).await;
    for body in [call_with_progress(1, "wait"), call(1, "wait", "{}")] {
        let mut peer = running.connect().await;
        peer.post(&body, "").await;
        assert_eq!(seen.next().await, "waiting");
        drop(peer);
        assert_eq!(seen.next().await, "dropped");
    }
    endpoint.idle().await;
}

#[tokio::test]
async fn a_commit_goes_on_without_its_peer_a12() {
    let (service, mut seen) = service(Limits::default());
    let endpoint = Endpoint::new(service, Anonymous::new());
    let running = Running::start(endpoint.clone(), Options::default()).await;
    let mut peer = running.connect().await;
    peer.post(&call(1, "commit", "{}"), "").await;
    assert_eq!(seen.next().await, "committing");
    drop(peer);
    // A shutdown waits for it.
    drop(running.stop);
    tokio::task::yield_now().await;
    assert!(!running.ended.is_finished());
    seen.go.notify_one();
    assert_eq!(seen.next().await, "committed");
    running.ended.await.unwrap().unwrap();
    endpoint.idle().await;
}

#[tokio::test]
async fn only_loopback_names_on_loopback_r_159() {
    let (service, _seen) = service(Limits::default());
    let running = Running::start(Endpoint::new(service, Anonymous::new()), Options::default()).await;
    let body = call(1, "echo", r#"{"text":"hi"}"#);
    for (more, status) in [
        ("Host: localhost:1\r\n", 200),
        ("Host: 127.0.0.1\r\n", 200),
        ("Host: evil.example\r\n", 403),
        ("Origin: http://evil.example\r\n", 403),
        ("Origin: http://localhost:9\r\n", 200),
    ] {
        let mut peer = running.connect().await;
        peer.post(&body, more).await;
        assert_eq!(peer.response().await.status, status, "{more}");
    }
    // Wrong method, wrong path.
    for (line, status) in [("GET /mcp", 405), ("POST /", 404)] {
        let mut peer = running.connect().await;
        peer.write(&format!("{line} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n")).await;
        assert_eq!(peer.response().await.status, status, "{line}");
    }
}

#[tokio::test]
async fn too_many_connections_wait_and_too_many_requests_are_told() {
    let (service, mut seen) = service(Limits::default());
    let mut bounds = Bounds::default();
    bounds.requests = 1;
    let mut options = Options::default();
    options.connections = 2;
    let endpoint = Endpoint::builder(service, Anonymous::new()).bounds(bounds).build();
    let running = Running::start(endpoint, options).await;
    let mut first = running.connect().await;
    first.post(&call(1, "wait", "{}"), "").await;
    assert_eq!(seen.next().await, "waiting");
    let mut second = running.connect().await;
    second.post(&call(2, "echo", r#"{"text":"hi"}"#), "").await;
    let refused = second.response().await;
    assert!(refused.status == 503 && refused.head.contains("retry-after: 1"), "{}", refused.head);

    // A third connection is not accepted while there are two.
    let mut third = running.connect().await;
    third.post(&call(3, "wait", "{}"), "").await;
    seen.go.notify_one();
    assert!(first.response().await.body.contains("went on"));
    assert_eq!(seen.next().await, "dropped");
    for id in 4..20 {
        second.post(&call(id, "echo", r#"{"text":"hi"}"#), "").await;
        assert_eq!(second.response().await.status, 200);
    }
    assert!(seen.events.is_empty());
    drop(first);
    assert_eq!(seen.next().await, "waiting");
    seen.go.notify_one();
    assert_eq!(third.response().await.status, 200);
}

/// G-38: many messages that are each within their bound do not add up to more than all may take.
#[tokio::test]
async fn bodies_share_a_bound_of_bytes() {
    let mut limits = Limits::default();
    limits.message_bytes = 800;
    let (service, mut seen) = service(limits);
    let mut bounds = Bounds::default();
    bounds.body_bytes = 1_000;
    let endpoint = Endpoint::builder(service, Anonymous::new()).bounds(bounds).build();
    let running = Running::start(endpoint, Options::default()).await;
    let long = |bytes: usize| format!("{:bytes$}", call(2, "echo", r#"{"text":"hi"}"#));
    let send = async |bytes: usize| {
        let mut peer = running.connect().await;
        peer.post(&long(bytes), "").await;
        peer.response().await
    };
    let mut first = running.connect().await;
    let bytes = 400;
    first.post(&format!("{:bytes$}", call(1, "wait", "{}")), "").await;
    assert_eq!(seen.next().await, "waiting");
    assert!(long(0).len() <= 600 && send(600).await.status == 200);
    let refused = send(601).await;
    assert!(refused.status == 503 && refused.head.contains("retry-after: 1"), "{}", refused.head);
    assert_eq!(refused.body, "too many bytes at once\n");
    seen.go.notify_one();
    assert!(first.response().await.body.contains("went on"));
    assert_eq!(send(800).await.status, 200);
    assert_eq!(send(801).await.status, 413);
}

/// G-38: a message over the limit is answered so that its sender, who writes all of it before it reads, gets the answer and
/// no "connection reset".
#[tokio::test]
async fn a_message_over_the_limit_is_answered_and_not_reset() {
    let (service, _seen) = service(Limits::default());
    let running = Running::start(Endpoint::new(service, Anonymous::new()), Options::default()).await;
    let long = call(2, "echo", r#"{"text":"hi"}"#) + &" ".repeat(12 << 20);
    let chunked = |text: &str| format!("{:x}\r\n{text}\r\n0\r\n\r\n", text.len());
    let head = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
                Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: echo\r\n";
    for request in [
        format!("{head}Content-Length: {}\r\n\r\n{long}", long.len()),
        format!("{head}Transfer-Encoding: chunked\r\n\r\n{}", chunked(&long)),
    ] {
        let mut peer = running.connect().await;
        peer.write(&request).await;
        let response = peer.response().await;
        assert_eq!(response.status, 413);
        assert!(response.body.contains("4194304"), "{}", response.body);
    }
    // Nor where nothing is, nor once it was told to go on.
    let mut peer = running.connect().await;
    peer.write(&format!(
        "POST /elsewhere HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n{long}",
        long.len()
    ))
    .await;
    assert_eq!(peer.response().await.status, 404);
    let mut peer = running.connect().await;
    peer.write(&format!("{head}Expect: 100-continue\r\nTransfer-Encoding: chunked\r\n\r\n")).await;
    assert_eq!(peer.response().await.status, 100);
    peer.write(&chunked(&long)).await;
    assert_eq!(peer.response().await.status, 413);
}

#[tokio::test]
async fn slow_heads_and_idle_connections_are_closed() {
    let (service, _seen) = service(Limits::default());
    let mut options = Options::default();
    options.idle = Duration::from_millis(30);
    let running = Running::start(Endpoint::new(service, Anonymous::new()), options).await;
    let mut slow = running.connect().await;
    slow.write("POST /mcp HTTP/1.1\r\nHost: loc").await;
    let mut idle = running.connect().await;
    idle.post(&call(1, "echo", r#"{"text":"hi"}"#), "").await;
    assert_eq!(idle.response().await.status, 200);
    let (slow, idle) = tokio::join!(slow.rest(), idle.rest());
    assert!(slow.is_empty() || slow.starts_with("HTTP/1.1 408"), "{slow}");
    assert_eq!(idle, "");
}

#[tokio::test]
async fn large_heads_are_refused() {
    let (service, _seen) = service(Limits::default());
    let running = Running::start(Endpoint::new(service, Anonymous::new()), Options::default()).await;
    let mut peer = running.connect().await;
    // More than the bound, less than a socket's buffers, so that writing does not fail first.
    let padding = "x".repeat(40 << 10);
    peer.write(&format!("POST /mcp HTTP/1.1\r\nHost: localhost\r\nX-Padding: {padding}\r\n\r\n")).await;
    let answer = peer.rest().await;
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 431"), "{answer}");
}

#[tokio::test]
async fn a_shutdown_finishes_what_is_in_hand_r_205() {
    let (service, mut seen) = service(Limits::default());
    let changes = Changes::new();
    let endpoint = Endpoint::builder(service, Anonymous::new()).changes(changes.clone()).build();
    let mut running = Running::start(endpoint, Options::default()).await;
    let mut caller = running.connect().await;
    caller.post(&call(1, "wait", "{}"), "").await;
    assert_eq!(seen.next().await, "waiting");

    let mut listener = running.connect().await;
    let wanted = "\"notifications\":{\"toolsListChanged\":true},";
    listener.post(&request(2, "subscriptions/listen", wanted, ""), "").await;
    let head = listener.until("\r\n\r\n").await;
    assert!(head.to_ascii_lowercase().contains("text/event-stream"), "{head}");
    listener.until("notifications/subscriptions/acknowledged").await;
    changes.notify(Change::Prompts);
    changes.notify(Change::Tools);
    let heard = listener.until("notifications/tools/list_changed").await;
    assert!(!heard.contains("prompts"), "{heard}");

    drop(running.stop.take());
    let closing = listener.until("0\r\n\r\n").await;
    assert!(closing.contains("\"id\":2") && closing.contains("\"result\""), "{closing}");
    assert!(!running.ended.is_finished());
    seen.go.notify_one();
    assert!(caller.response().await.body.contains("went on"));
    assert_eq!(caller.rest().await, "");
    running.ended.await.unwrap().unwrap();
    assert!(tokio::net::TcpStream::connect(running.address).await.is_err());
}

#[tokio::test]
async fn the_grace_of_a_shutdown_is_finite() {
    let (service, mut seen) = service(Limits::default());
    let mut options = Options::default();
    options.grace = Duration::from_millis(30);
    let running = Running::start(Endpoint::new(service, Anonymous::new()), options).await;
    let mut caller = running.connect().await;
    caller.post(&call(1, "wait", "{}"), "").await;
    assert_eq!(seen.next().await, "waiting");
    drop(running.stop);
    assert_eq!(seen.next().await, "dropped");
    running.ended.await.unwrap().unwrap();
    assert_eq!(caller.rest().await, "");
}
