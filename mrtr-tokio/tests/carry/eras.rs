//! The client and servers of the eras with sessions: the same calls, the same answerer.

use std::sync::{Arc, Mutex};

use mrtr_core::{
    Limits,
    client::{Answerer, NoAnswers},
    wire::{Era, Version},
};
use mrtr_tokio::{
    client::{CallError, Client, Head, Options},
    server::{Anonymous, Endpoint, Identity, LegacyConfig},
    stdio,
};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::{TcpListener, TcpStream},
    sync::Notify,
};

use crate::support::{Answer, Running, Seen, Table, client_config, service, text};

fn legacy(version: Option<Version>) -> Options {
    let mut options = Options::default();
    options.connection.era = Some(Era::Legacy);
    if let Some(version) = version {
        options.connection.legacy = vec![version];
    }
    options
}

/// A client of a server that serves both, on a pipe.
fn pair(options: Options) -> (Client, Seen) {
    let (service, seen) = service(Limits::default());
    let (ours, theirs) = tokio::io::duplex(64 << 10);
    let (input, output) = tokio::io::split(theirs);
    let mut serving = stdio::Options::default();
    serving.legacy = Some(LegacyConfig::default());
    tokio::spawn(stdio::serve(service, Identity::Anonymous, input, output, serving, std::future::pending()));
    let (input, output) = tokio::io::split(ours);
    (Client::pipe(input, output, client_config(), options), seen)
}

async fn greeted(client: &Client, answerer: &dyn Answerer) -> (String, u32) {
    let reply = client.call_tool("name", "{}", answerer).await.unwrap();
    (text(&reply), reply.rounds())
}

#[tokio::test(start_paused = true)]
async fn a_server_with_sessions_on_a_pipe_asks_the_same_answerer() {
    for version in [Version::V2025_11_25, Version::V2025_06_18] {
        let (client, mut seen) = pair(legacy(Some(version)));
        let table = Table::naming("Ada");
        assert_eq!(greeted(&client, &table).await, ("Hello, Ada!".into(), 3));
        assert_eq!((client.era(), table.asked()), (Some(Era::Legacy), vec!["name".into(), "sure".into()]));
        // What was asked counts, as R-202 has it: and a legacy server gives no hints anyway.
        assert!(!client.call_tool("name", "{}", &table).await.unwrap().may_be_kept());
        // Content that does not fit is asked for again here, and never sent (R-098).
        let table = Table::new([
            ("name", Answer::Accept(r#"{"name":"A"}"#.into())),
            ("name", Answer::Accept(r#"{"name":"Eve"}"#.into())),
            ("sure", Answer::Accept("{}".into())),
        ]);
        assert_eq!(greeted(&client, &table).await.0, "Hello, Eve!");
        assert_eq!(table.problems(), 1);
        // A refusal is an answer.
        assert_eq!(greeted(&client, &Table::new([("name", Answer::Decline)])).await.0, "nobody");
        // A call that is dropped is cancelled (R-188).
        let dropped = client.clone();
        let call = tokio::spawn(async move { dropped.call_tool("wait", "{}", &NoAnswers).await });
        assert_eq!(seen.next().await, "waiting");
        call.abort();
        assert_eq!(seen.next().await, "dropped");
        let listed = client.list_tools().await.unwrap();
        assert!(listed.iter().any(|tool| tool.name == "echo"));
        client.close().await;
    }
}

#[tokio::test(start_paused = true)]
async fn nobodys_refusal_is_sent_to_a_server_with_sessions_w_15() {
    let (client, _seen) = pair(legacy(None));
    let table = Table::new([("name", Answer::Unavailable("asleep".into()))]);
    let failed = client.call_tool("name", "{}", &table).await.unwrap_err();
    let CallError::Unanswered { unanswered, waiting } = &failed else { panic!("{failed}") };
    assert!(unanswered.len() == 1 && waiting.is_none());
    assert!(failed.to_string().contains("asleep"), "{failed}");
    // The session goes on.
    assert_eq!(greeted(&client, &Table::naming("Ada")).await.0, "Hello, Ada!");
}

#[tokio::test(start_paused = true)]
async fn the_era_of_a_pipe_is_found_out_r_050() {
    let (client, _seen) = pair(Options::default());
    assert_eq!(greeted(&client, &Table::naming("Ada")).await.0, "Hello, Ada!");
    assert_eq!(client.era(), Some(Era::Modern));

    // One that says nothing to what it does not know, and one that says that it does not know it.
    for answers in [false, true] {
        let (ours, theirs) = tokio::io::duplex(64 << 10);
        tokio::spawn(async move {
            let (input, mut output) = tokio::io::split(theirs);
            let mut lines = BufReader::new(input).lines();
            while let Some(line) = lines.next_line().await.unwrap() {
                let json: serde_json::Value = serde_json::from_str(&line).unwrap();
                let id = &json["id"];
                let said = match json["method"].as_str().unwrap() {
                    "server/discover" if answers => {
                        format!(
                            "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"error\":{{\"code\":-32601,\"message\":\"?\"}}}}\n"
                        )
                    }
                    "initialize" => format!(
                        "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"protocolVersion\":\"2025-06-18\",\
                         \"capabilities\":{{}},\"serverInfo\":{{\"name\":\"old\",\"version\":\"1\"}}}}}}\n"
                    ),
                    "tools/call" => format!(
                        "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"content\":[{{\"type\":\"text\",\"text\":\"old\"}}]}}}}\n"
                    ),
                    _ => continue,
                };
                output.write_all(said.as_bytes()).await.unwrap();
            }
        });
        let (input, output) = tokio::io::split(ours);
        let client = Client::pipe(input, output, client_config(), Options::default());
        let reply = client.call_tool("echo", "{}", &NoAnswers).await.unwrap();
        assert_eq!((text(&reply).as_str(), client.era()), ("old", Some(Era::Legacy)));
    }
}

#[tokio::test]
async fn a_session_over_http_is_opened_used_and_given_back_r_240() {
    let (service, _seen) = service(Limits::default());
    let endpoint = Endpoint::builder(service, Anonymous::new()).legacy(LegacyConfig::default()).build();
    let running = Running::start(endpoint, Default::default()).await;
    let heads = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&heads);
    let mut options = legacy(None);
    options.heads = Some(Arc::new(move |head| {
        let Head::Request { method, headers, .. } = head else { return };
        let value = |name| headers.get(name).map(|value| value.to_str().unwrap().to_owned());
        seen.lock().unwrap().push((
            method.to_string(),
            value("mcp-session-id"),
            value("mcp-protocol-version"),
            headers.get("mcp-session-id").is_none_or(http::HeaderValue::is_sensitive),
        ));
    }));
    let client = Client::http(&running.url(), client_config(), options.clone()).unwrap();
    assert_eq!(greeted(&client, &Table::naming("Ada")).await, ("Hello, Ada!".into(), 3));
    client.close().await;
    let heads = heads.lock().unwrap().clone();
    // `initialize` has neither; everything after it has both, DELETE is the last.
    assert_eq!((&*heads[0].0, &heads[0].1, &heads[0].2), ("POST", &None, &None));
    for (method, session, version, sensitive) in &heads[1..] {
        assert!(session.is_some() && *sensitive, "{method}");
        assert_eq!(version.as_deref(), Some("2025-11-25"), "{method}");
    }
    assert_eq!(heads.last().unwrap().0, "DELETE");
    assert!(heads.iter().any(|(method, ..)| method == "GET"));
    // After that another session is opened.
    assert_eq!(greeted(&client, &Table::naming("Eve")).await.0, "Hello, Eve!");
}

/// A server of 2025-11-25 that refuses what it does not know with a 400, closes the stream of a call at once, asks on
/// the stream that it is taken up by, and remembers what it was sent.
async fn old_server() -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let requests = Arc::new(Mutex::new(Vec::new()));
    let (seen, answered) = (Arc::clone(&requests), Arc::new(Notify::new()));
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            tokio::spawn(old_reply(stream, Arc::clone(&seen), Arc::clone(&answered)));
        }
    });
    (url, requests)
}

async fn old_reply(stream: TcpStream, seen: Arc<Mutex<Vec<String>>>, answered: Arc<Notify>) {
    let mut stream = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if stream.read_line(&mut head).await.unwrap() == 0 {
            return;
        }
    }
    let head = head.to_ascii_lowercase();
    let length = head
        .split("content-length: ")
        .nth(1)
        .map_or(0, |rest| rest.split("\r\n").next().unwrap().parse::<usize>().unwrap());
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.unwrap();
    let json: serde_json::Value = serde_json::from_slice(&body).unwrap_or_default();
    let method = head.split(' ').next().unwrap();
    let what = json["method"].as_str().unwrap_or(if length > 0 { "answer" } else { "" });
    seen.lock().unwrap().push(format!("{method} {what}"));
    let known = head.contains("mcp-session-id: s1\r\n");
    let id = &json["id"];
    let reply = |status: &str, more: &str, body: &str| {
        let length = body.len();
        format!("HTTP/1.1 {status}\r\n{more}Content-Length: {length}\r\nConnection: close\r\n\r\n{body}")
    };
    const EVENTS: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";
    let said = match (method, what) {
        _ if head.contains("mcp-method") => {
            reply("400 Bad Request", "", "Bad Request: unknown protocol version")
        }
        ("post", "initialize") => {
            let result = r#"{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"old","version":"1"}}"#;
            let body = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{result}}}");
            reply("200 OK", "Content-Type: application/json\r\nMcp-Session-Id: s1\r\n", &body)
        }
        _ if !known => reply("404 Not Found", "", ""),
        ("post", "notifications/initialized") => reply("202 Accepted", "", ""),
        ("post", "answer") => {
            answered.notify_one();
            reply("202 Accepted", "", "")
        }
        ("post", "tools/call") => format!("{EVENTS}id: call-{id}\nretry: 10\ndata:\n\n"),
        ("get", _) if head.contains("last-event-id: call-") => {
            let id = head.split("last-event-id: call-").nth(1).unwrap().split("\r\n").next().unwrap();
            let ask = r#"{"jsonrpc":"2.0","id":"ask","method":"elicitation/create","params":{"message":"Your name?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}}}"#;
            // A comment, and an event in two chunks.
            let (first, second) = ask.split_at(40);
            stream.write_all(format!("{EVENTS}: hello\n\nid: x\ndata: {first}").as_bytes()).await.unwrap();
            stream.flush().await.unwrap();
            tokio::task::yield_now().await;
            stream.write_all(format!("{second}\n\n").as_bytes()).await.unwrap();
            answered.notified().await;
            let result = r#"{"content":[{"type":"text","text":"Hello from the old days!"}]}"#;
            format!("data: {{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{result}}}\n\n")
        }
        ("delete", _) => reply("200 OK", "", ""),
        _ => reply("405 Method Not Allowed", "", ""),
    };
    stream.write_all(said.as_bytes()).await.unwrap();
    let _ = stream.shutdown().await;
}

#[tokio::test]
async fn a_400_without_a_modern_error_leads_to_a_session_and_a_closed_stream_is_taken_up_r_051_r_242() {
    let (url, requests) = old_server().await;
    let client = Client::http(&url, client_config(), Options::default()).unwrap();
    let table = Table::naming("Ada");
    let reply = client.call_tool("greet", "{}", &table).await.unwrap();
    assert_eq!((text(&reply).as_str(), client.era()), ("Hello from the old days!", Some(Era::Legacy)));
    assert_eq!(table.asked(), ["name"]);
    // Once known, the era is not found out again (R-049).
    client.call_tool("greet", "{}", &table).await.unwrap();
    client.close().await;
    let requests = requests.lock().unwrap().clone();
    let count = |what: &str| requests.iter().filter(|request| *request == what).count();
    assert_eq!(
        (count("post initialize"), count("post tools/call"), count("post answer")),
        (1, 3, 2),
        "{requests:?}"
    );
    assert_eq!(
        (&*requests[0], &*requests[1], &*requests[2]),
        ("post tools/call", "post initialize", "post notifications/initialized")
    );
    assert_eq!(requests.last().unwrap(), "delete ");
}
