//! The client, against servers that behave and servers that do not.

use std::time::Duration;

use mrtr_core::{
    Limits,
    client::{Call, NoAnswers, Policy, Why},
    http::HttpErrorKind,
};
use mrtr_tokio::{
    client::{CallError, Client, Options, WireError},
    server::{Anonymous, Endpoint, Identity},
    stdio,
};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::TcpListener,
    process::Command,
};

use crate::support::{Answer, Running, Seen, Table, client_config, service, text};

/// A client and a server with nothing but two pipes between them.
fn pair(options: Options) -> (Client, Seen) {
    let (service, seen) = service(Limits::default());
    let (ours, theirs) = tokio::io::duplex(64 << 10);
    let (input, output) = tokio::io::split(theirs);
    let forever = std::future::pending();
    tokio::spawn(stdio::serve(
        service,
        Identity::Anonymous,
        input,
        output,
        stdio::Options::default(),
        forever,
    ));
    let (input, output) = tokio::io::split(ours);
    (Client::pipe(input, output, client_config(), options), seen)
}

#[tokio::test(start_paused = true)]
async fn calls_over_one_pipe_do_not_mix_r_002() {
    let (client, mut seen) = pair(Options::default());
    let waiting = client.clone();
    let waiting = tokio::spawn(async move { waiting.call_tool("wait", "{}", &NoAnswers).await });
    assert_eq!(seen.next().await, "waiting");
    let (ada, eve) = (Table::naming("Ada"), Table::naming("Eve"));
    let (first, second) =
        tokio::join!(client.call_tool("name", "{}", &ada), client.call_tool("name", "{}", &eve));
    assert_eq!((text(&first.unwrap()), text(&second.unwrap())), ("Hello, Ada!".into(), "Hello, Eve!".into()));
    seen.go.notify_one();
    assert_eq!(text(&waiting.await.unwrap().unwrap()), "went on");
}

#[tokio::test(start_paused = true)]
async fn a_dropped_call_is_cancelled_r_188() {
    let (client, mut seen) = pair(Options::default());
    let dropped = client.clone();
    let call = tokio::spawn(async move { dropped.call_tool("wait", "{}", &NoAnswers).await });
    assert_eq!(seen.next().await, "waiting");
    call.abort();
    assert_eq!(seen.next().await, "dropped");
    assert_eq!(text(&client.call_tool("echo", r#"{"text":"hi"}"#, &NoAnswers).await.unwrap()), "hi");
}

#[tokio::test(start_paused = true)]
async fn a_silent_server_is_given_up_and_told_r_192() {
    let (client, mut seen) = pair(Options::default());
    let started = tokio::time::Instant::now();
    let failed = client.call_tool("wait", "{}", &NoAnswers).await.unwrap_err();
    assert!(matches!(failed, CallError::Timeout), "{failed}");
    // The clock of a call is the system's here; its timeout is waited for in virtual time.
    assert!(started.elapsed() >= Policy::default().request_timeout - Duration::from_secs(1));
    assert_eq!((seen.next().await, seen.next().await), ("waiting", "dropped"));
}

#[tokio::test(start_paused = true)]
async fn nobody_is_asked_when_another_answer_is_missing_b_63() {
    let (client, _seen) = pair(Options::default());
    let table = Table::new([("name", Answer::Accept(r#"{"name":"Ada"}"#.into()))]);
    let failed = client.call_tool("name", "{}", &table).await.unwrap_err();
    let CallError::Unanswered { unanswered, .. } = &failed else { panic!("{failed}") };
    assert_eq!(unanswered[0].key, "sure");
    assert_eq!(failed.to_string(), "not answered: \"sure\" (nobody could be asked: not in the table)");
    assert_eq!(table.asked(), ["name"]);
    // A refusal is an answer, the want of one is not.
    let table = Table::new([("name", Answer::Decline)]);
    assert_eq!(text(&client.call_tool("name", "{}", &table).await.unwrap()), "nobody");
    let table = Table::new([("name", Answer::Unavailable("asleep".into()))]);
    assert!(matches!(client.call_tool("name", "{}", &table).await, Err(CallError::Unanswered { .. })));
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_does_not_fit_is_asked_for_again() {
    let (client, _seen) = pair(Options::default());
    let table = Table::new([
        ("name", Answer::Accept("[]".into())),
        ("name", Answer::Accept(r#"{"name":"A"}"#.into())),
        ("name", Answer::Accept(r#"{"name":"Ada"}"#.into())),
        ("sure", Answer::Accept("{}".into())),
    ]);
    assert_eq!(text(&client.call_tool("name", "{}", &table).await.unwrap()), "Hello, Ada!");
    assert_eq!((table.asked().len(), table.problems()), (4, 2));
    let table = Table::new([("name", Answer::Accept("nonsense".into()))]);
    let failed = client.call_tool("name", "{}", &table).await.unwrap_err();
    let CallError::Unanswered { unanswered, .. } = &failed else { panic!("{failed}") };
    assert!(matches!(&unanswered[0].why, Why::Invalid(_)), "{failed}");
    assert_eq!(table.asked().len(), 3);
}

#[tokio::test]
async fn a_tool_that_wants_headers_is_looked_up_when_the_server_insists_r_176() {
    let (service, _seen) = service(Limits::default());
    let running = Running::start(Endpoint::new(service, Anonymous::new()), Default::default()).await;
    let client = Client::http(&running.url(), client_config(), Options::default()).unwrap();
    let reply = client.call_tool("mirrored", r#"{"region":"Zürich"}"#, &NoAnswers).await.unwrap();
    assert_eq!(text(&reply), "Zürich");
    // An error of the server's own stays one.
    let failed = client.call_tool("no-such-tool", "{}", &NoAnswers).await.unwrap_err();
    assert!(matches!(&failed, CallError::Peer(error) if error.code.get() == -32602), "{failed}");
}

/// A server that gives each connection one answer, whatever it is asked.
async fn answering(answer: String) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let answer = answer.clone();
            tokio::spawn(async move {
                let mut lines = BufReader::new(&mut stream).lines();
                while lines.next_line().await.unwrap().is_some_and(|line| !line.is_empty()) {}
                stream.write_all(answer.as_bytes()).await.unwrap();
                // Until the client has had enough.
                let _ = stream.read_to_end(&mut Vec::new()).await;
            });
        }
    });
    url
}

#[tokio::test]
async fn redirects_are_not_followed_and_garbage_is_no_answer() {
    let call = |url: String, options: Options| async move {
        let client = Client::http(&url, client_config(), options).unwrap();
        client.call_tool("echo", "{}", &NoAnswers).await.unwrap_err()
    };
    let moved = "HTTP/1.1 307 Moved\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n";
    let failed = call(answering(moved.into()).await, Options::default()).await;
    let CallError::Wire(WireError::Redirect { to }) = &failed else { panic!("{failed}") };
    assert_eq!(to, "http://127.0.0.1:1");
    let moved = "HTTP/1.1 303 See Other\r\nLocation: /mcp\r\nContent-Length: 0\r\n\r\n";
    let failed = call(answering(moved.into()).await, Options::default()).await;
    let CallError::Wire(WireError::Http(error)) = &failed else { panic!("{failed}") };
    assert_eq!(error.kind, HttpErrorKind::Redirect);

    let page = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 4\r\n\r\n<p/>";
    let failed = call(answering(page.into()).await, Options::default()).await;
    assert!(matches!(&failed, CallError::Wire(WireError::Http(_))), "{failed}");

    let mut options = Options::default();
    options.limits.message_bytes = 2_000;
    for kind in ["application/json", "text/event-stream"] {
        let body = format!("data: {}\n\n", "x".repeat(3_000));
        let length = body.len();
        let large =
            format!("HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\r\n{body}");
        let failed = call(answering(large).await, options.clone()).await;
        assert!(matches!(&failed, CallError::Wire(WireError::TooLarge { limit: 2_000 })), "{failed}");
    }

    // A stream that breaks off before the reply.
    let broken = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 3\r\n\r\n:\n\n";
    let failed = call(answering(broken.into()).await, Options::default()).await;
    assert!(matches!(&failed, CallError::Wire(WireError::Broken { .. })), "{failed}");
}

#[tokio::test]
async fn addresses_that_are_none_are_refused() {
    for url in ["", "ftp://a.example/", "/mcp", "http://user:word@a.example/", "http:///x"] {
        assert!(Client::http(url, client_config(), Options::default()).is_err(), "{url}");
    }
    // Nobody listens: nothing was sent.
    let client = Client::http("http://127.0.0.1:1/mcp", client_config(), Options::default()).unwrap();
    let failed = client.call_tool("echo", "{}", &NoAnswers).await.unwrap_err();
    assert!(matches!(&failed, CallError::Wire(WireError::Connect(_))), "{failed}");
}

#[tokio::test]
async fn a_server_that_has_died_is_started_again_r_185() {
    let runs = std::env::temp_dir().join(format!("mrtr-runs-{}", std::process::id()));
    let _ = std::fs::remove_file(&runs);
    let mut command = Command::new("sh");
    // Says that it is modern, and dies of the call.
    command.arg("-c").arg(concat!(
        "echo run >> \"$0\"; read line; id=$(printf %s \"$line\" | sed 's/.*\"id\":\\([0-9]*\\).*/\\1/'); ",
        r#"echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"resultType\":\"complete\",\"supportedVersions\":[\"2026-07-28\"],"#,
        r#"\"capabilities\":{},\"ttlMs\":0,\"cacheScope\":\"private\"}}"; read line; exit 1"#,
    ));
    command.arg(&runs);
    let client = Client::stdio(command, client_config(), Options::default());
    let failed = client.call_tool("echo", "{}", &NoAnswers).await.unwrap_err();
    assert!(matches!(&failed, CallError::Wire(WireError::Ended(_))), "{failed}");
    // A call that may run twice is sent again, each time to a new process.
    let call = Call::new("tools/call", r#"{"name":"echo","arguments":{}}"#).may_run_twice();
    let failed = client.call(call, &NoAnswers).await.unwrap_err();
    assert!(matches!(&failed, CallError::Wire(WireError::Ended(_))), "{failed}");
    let count = std::fs::read_to_string(&runs).unwrap().lines().count();
    std::fs::remove_file(&runs).unwrap();
    assert_eq!(count, 1 + 1 + usize::try_from(Policy::default().resends).unwrap());
}
