//! The bridge over tokio: HTTP and pipes on one side, processes and urls on the other.

mod command;
mod failures;
#[cfg(unix)]
mod inbox;
mod replay;
mod resume;
mod sessions;

use std::{
    sync::{
        Arc,
        mpsc::{self, Receiver},
    },
    time::Duration,
};

use http::request::Parts;
use mrtr_core::{
    bridge::{Config, Transport, Upstream},
    wire::{Era, Implementation},
};
use mrtr_tokio::{
    bridge::{Bridge, Front, Options, Reach},
    client::{self, Bearer, Client, Stderr},
    keys::KeySource,
    server::{self, Anonymous, Bounds, Identity, Misconfigured, Principals},
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, duplex},
    net::{TcpListener, TcpStream},
    process::Command,
    sync::oneshot,
};

use crate::{
    command::MRTR,
    support::{Answer, Table, call, client_config, headers, text},
};

fn config(transport: Transport, era: Era) -> Config {
    let sealer = KeySource::Bytes(&[5; 32]).sealer("bridge").unwrap();
    Config::new(Implementation::new("bridge", "1"), sealer, vec![Upstream::new("up", transport, era)])
}

/// The example tools on a pipe.
fn example() -> Reach {
    Reach::process(
        || {
            let mut command = Command::new(MRTR);
            command.args(["--log", "off", "serve", "--stdio"]);
            command
        },
        Stderr::Read,
    )
}

/// A process that does what a shell script says; what it says on standard error.
fn shell(script: &'static str) -> (Reach, Receiver<String>) {
    let (sender, lines) = mpsc::channel();
    let hears = move |line: &str| drop(sender.send(line.into()));
    let command = move || {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    };
    (Reach::process(command, Stderr::Lines(Arc::new(hears))), lines)
}

fn bridge(reach: Reach, era: Era) -> Bridge {
    let mut options = Options::default();
    options.grace = Duration::from_millis(200);
    Bridge::start(config(reach.transport(), era), vec![reach], options).unwrap()
}

/// A front on a loopback socket.
struct Fronted {
    bridge: Bridge,
    address: std::net::SocketAddr,
    stop: oneshot::Sender<()>,
    ended: tokio::task::JoinHandle<std::io::Result<()>>,
}

async fn front(bridge: Bridge, principals: impl Principals) -> Fronted {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = oneshot::channel::<()>();
    let shutdown = async {
        let _ = stopped.await;
    };
    let front = Front::new(bridge.clone(), principals, Bounds::default());
    let ended = tokio::spawn(front.serve(listener, server::Options::default(), shutdown));
    Fronted { bridge, address, stop, ended }
}

impl Fronted {
    /// Sends a request of these lines and reads to the end of the connection: status, head and body.
    async fn ask(&self, method: &str, path: &str, more: &str, body: &str) -> (u16, String, String) {
        let mut stream = self.send(method, path, more, body).await;
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).await.unwrap();
        let text = String::from_utf8(bytes).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        (head.split(' ').nth(1).unwrap().parse().unwrap(), head.to_ascii_lowercase(), body.into())
    }

    async fn send(&self, method: &str, path: &str, more: &str, body: &str) -> TcpStream {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        let length =
            if body.is_empty() { String::new() } else { format!("Content-Length: {}\r\n", body.len()) };
        let head =
            format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{more}{length}\r\n");
        stream.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
        stream
    }

    async fn modern(&self, more: &str, body: &str) -> (u16, Value) {
        let (status, _, body) = self.ask("POST", "/mcp", &format!("{}{more}", lines_of(body)), body).await;
        (status, serde_json::from_str(&body).unwrap())
    }

    async fn end(self) {
        self.stop.send(()).unwrap();
        self.ended.await.unwrap().unwrap();
        self.bridge.close().await;
        assert!(self.bridge.counts().await.is_none());
    }
}

fn lines_of(body: &str) -> String {
    headers(body).iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect()
}

const LEGACY: &str = "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n";

fn initialize() -> String {
    json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": "2025-11-25",
        "capabilities": {"elicitation": {}}, "clientInfo": {"name": "c", "version": "1"}}})
    .to_string()
}

/// R-248, R-253: questions of a legacy server become rounds; the result is the server's own. The pages for operators.
#[tokio::test]
async fn a_modern_client_is_asked_what_a_legacy_server_wants() {
    let fronted = front(bridge(example(), Era::Legacy), Anonymous::new()).await;
    let url = format!("http://{}/mcp", fronted.address);
    let client = Client::http(&url, client_config(), client::Options::default()).unwrap();
    let table = Table::new([
        ("u1", Answer::Accept(r#"{"days":3}"#.into())),
        ("u2", Answer::Accept(r#"{"pace":"slow"}"#.into())),
    ]);
    let reply = client.call_tool("plan", r#"{"city":"Lisbon"}"#, &table).await.unwrap();
    assert_eq!(text(&reply), "Lisbon, 3 days, slow");
    let counts = fronted.bridge.counts().await.unwrap();
    assert_eq!((counts.open, counts.parked, counts.rounds, counts.asks, counts.sessions), (0, 0, 2, 2, 1));
    let (status, head, page) = fronted.ask("GET", "/metrics", "", "").await;
    assert!(status == 200 && head.contains("text/plain"), "{head}");
    assert!(page.lines().any(|line| line == "mrtr_bridge_rounds_total 2"), "{page}");
    assert!(!page.contains("plan") && !page.contains("Lisbon"), "{page}");
    assert_eq!(fronted.ask("GET", "/healthz", "", "").await.0, 200);
    // Under other names there is nothing (R-159).
    let other = fronted.ask("GET", "/metrics", "Origin: https://evil.example\r\n", "").await;
    assert_eq!(other.0, 403);
    fronted.end().await;
}

/// Whom a header names.
struct Named;

impl Principals for Named {
    fn identify(&self, head: &Parts) -> Result<Identity, Misconfigured> {
        Ok(Identity::authenticated(
            head.headers.get("x-user").map_or(b"nobody".as_slice(), |name| name.as_bytes()),
        ))
    }
}

/// R-240, R-241, G-44: sessions begin with `initialize`, are their principal's alone, and end with DELETE; a modern
/// request at the same address needs none.
#[tokio::test]
async fn sessions_of_legacy_hosts_are_named_and_end() {
    let fronted = front(bridge(example(), Era::Modern), Named).await;
    let post =
        async |more: &str, body: &str| fronted.ask("POST", "/mcp", &format!("{LEGACY}{more}"), body).await;
    let (status, head, body) = post("X-User: ada\r\n", &initialize()).await;
    assert_eq!(status, 200, "{body}");
    assert!(body.contains(r#""protocolVersion":"2025-11-25""#), "{body}");
    let id = head.split("mcp-session-id: ").nth(1).unwrap().split("\r\n").next().unwrap();
    let ada = format!("X-User: ada\r\nMcp-Session-Id: {id}\r\nMCP-Protocol-Version: 2025-11-25\r\n");
    let ready = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    assert_eq!(post(&ada, ready).await.0, 202);
    let plain = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"plain","arguments":{"text":"hi"}}}"#;
    let (status, _, body) = post(&ada, plain).await;
    // R-244: nothing of the other era.
    assert_eq!(
        (status, &*body),
        (200, r#"{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"hi"}]}}"#)
    );
    for (more, expected) in [
        (ada.replace("ada", "bob"), 404),
        (ada.replace(id, "00"), 404),
        (ada.replace("2025-11-25", "2025-06-18"), 400),
        (String::from("X-User: ada\r\nMCP-Protocol-Version: 2025-11-25\r\n"), 400),
    ] {
        assert_eq!(post(&more, plain).await.0, expected, "{more}");
    }
    let modern = fronted.modern("", &call(5, "plain", r#"{"text":"hi"}"#)).await;
    assert_eq!((modern.0, &modern.1["result"]["resultType"]), (200, &json!("complete")));
    // What cannot begin a session leaves none behind.
    let (status, head, _) =
        post("X-User: ada\r\n", r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}"#).await;
    assert!(status == 200 && !head.contains("mcp-session-id"), "{head}");
    let sse = "Accept: text/event-stream\r\n";
    let mut listening = fronted.send("GET", "/mcp", &format!("{sse}{ada}"), "").await;
    let mut first = [0; 12];
    listening.read_exact(&mut first).await.unwrap();
    assert_eq!(&first, b"HTTP/1.1 200");
    assert_eq!(fronted.ask("DELETE", "/mcp", &ada, "").await.0, 202);
    // The stream ends with its session, and the session is gone.
    listening.read_to_end(&mut Vec::new()).await.unwrap();
    assert_eq!(post(&ada, plain).await.0, 404);
    assert_eq!(fronted.ask("DELETE", "/mcp", &ada, "").await.0, 404);
    fronted.end().await;
}

/// R-187, R-188, R-262: a host that leaves cancels its request at the server.
#[tokio::test]
async fn a_host_that_leaves_cancels() {
    let (reach, lines) = shell("cat >&2");
    let fronted = front(bridge(reach, Era::Modern), Anonymous::new()).await;
    let body = call(1, "slow", "{}");
    let stream = fronted.send("POST", "/mcp", &lines_of(&body), &body).await;
    let (lines, first) = heard(lines).await;
    assert!(first.contains(r#""method":"tools/call""#), "{first}");
    assert_eq!(fronted.bridge.counts().await.unwrap().open, 1);
    drop(stream);
    let (_lines, second) = heard(lines).await;
    assert!(second.contains("notifications/cancelled"), "{second}");
    assert_eq!(fronted.bridge.counts().await.unwrap().open, 0);
    fronted.end().await;
}

async fn heard(lines: Receiver<String>) -> (Receiver<String>, String) {
    tokio::task::spawn_blocking(move || {
        let line = lines.recv_timeout(Duration::from_secs(30)).unwrap();
        (lines, line)
    })
    .await
    .unwrap()
}

/// R-185: a process that dies fails what was sent to it, and nothing is run again by itself; the next call starts
/// another one.
#[tokio::test]
async fn a_process_that_dies_fails_its_calls_and_no_others() {
    let (reach, lines) = shell("read line; echo started >&2; exit 3");
    let fronted = front(bridge(reach, Era::Modern), Anonymous::new()).await;
    for id in 1..=2 {
        let (status, reply) = fronted.modern("", &call(id, "t", "{}")).await;
        assert_eq!((status, &reply["error"]["code"], &reply["id"]), (200, &json!(-32603), &json!(id)));
    }
    fronted.end().await;
    assert_eq!(lines.iter().count(), 2);
}

/// One that cannot be started at all fails its calls as well, and is looked for before anything is served.
#[tokio::test]
async fn a_program_that_is_not_there() {
    let reach = Reach::process(|| Command::new("/no/such/program"), Stderr::Read);
    let error = reach.era(&mrtr_core::Limits::default()).await.unwrap_err();
    assert!(error.to_string().contains("/no/such/program"), "{error}");
    let fronted = front(bridge(reach, Era::Modern), Anonymous::new()).await;
    assert_eq!(fronted.modern("", &call(1, "t", "{}")).await.1["error"]["code"], -32603);
    fronted.end().await;
}

/// R-257: credentials of a host never reach a server; the server's own do.
#[tokio::test]
async fn tokens_are_never_passed_on() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let mut options = client::Options::default();
    options.authorize = Some(Arc::new(Bearer::new("for-the-server").unwrap()));
    let reach = Reach::url(&url, &options).unwrap();
    assert!(!format!("{reach:?}").contains("for-the-server"));
    let fronted = front(bridge(reach, Era::Modern), Anonymous::with_authorization_ignored()).await;
    let server = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut bytes = Vec::new();
        while !bytes.ends_with(b"}}}}") {
            assert!(stream.read_buf(&mut bytes).await.unwrap() > 0);
        }
        let request = String::from_utf8(bytes).unwrap();
        let (_, body) = request.split_once("\r\n\r\n").unwrap();
        let id = serde_json::from_str::<Value>(body).unwrap()["id"].clone();
        let reply = json!({"jsonrpc": "2.0", "id": id, "result": {"resultType": "complete", "content": []}})
            .to_string();
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            reply.len()
        );
        stream.write_all(format!("{head}{reply}").as_bytes()).await.unwrap();
        request
    });
    let (status, reply) = fronted.modern("Authorization: Bearer of-the-host\r\n", &call(9, "t", "{}")).await;
    assert_eq!((status, &reply["id"], &reply["result"]["content"]), (200, &json!(9), &json!([])));
    let request = server.await.unwrap();
    assert!(request.contains("Bearer for-the-server") && !request.contains("of-the-host"), "{request}");
    fronted.end().await;
}

/// While it drains, calls that wait for answers are served and new ones are not.
#[tokio::test]
async fn drains_once_nothing_waits() {
    let fronted = front(bridge(example(), Era::Legacy), Anonymous::new()).await;
    let body = call(1, "plan", r#"{"city":"Lisbon"}"#);
    let (_, asked) = fronted.modern("", &body).await;
    let state = asked["result"]["requestState"].as_str().unwrap();
    let bridge = fronted.bridge.clone();
    let draining = tokio::spawn(async move { bridge.drain().await });
    while fronted.ask("GET", "/healthz", "", "").await.0 != 503 {}
    assert!(!draining.is_finished());
    let (_, refused) = fronted.modern("", &call(2, "plain", r#"{"text":"hi"}"#)).await;
    assert_eq!(refused["error"]["code"], -32603, "{refused}");
    let mut retry: Value = serde_json::from_str(&body).unwrap();
    retry["id"] = json!(3);
    retry["params"]["requestState"] = json!(state);
    let key = asked["result"]["inputRequests"].as_object().unwrap().keys().next().unwrap();
    retry["params"]["inputResponses"] = json!({key: {"action": "decline"}});
    let (_, done) = fronted.modern("", &retry.to_string()).await;
    assert_eq!(done["result"]["resultType"], "complete", "{done}");
    draining.await.unwrap();
    fronted.end().await;
}

/// A host on a pipe hears the responses to all it has said, also if it has said its last word.
#[tokio::test]
async fn a_pipe_that_ends_is_still_answered() {
    let bridge = bridge(example(), Era::Modern);
    let (mut host, input) = duplex(1 << 16);
    let (output, mut heard) = duplex(1 << 16);
    let long = format!("\"{}\"\n", "x".repeat(5 << 20));
    let lines = format!(
        "{}\nnonsense\n{long}{}",
        call(1, "plain", r#"{"text":"a"}"#),
        call(2, "plain", r#"{"text":"b"}"#)
    );
    let writing = tokio::spawn(async move { host.write_all(lines.as_bytes()).await });
    let reading = tokio::spawn(async move {
        let mut said = String::new();
        heard.read_to_string(&mut said).await.unwrap();
        said
    });
    bridge.serve_pipe(Identity::Anonymous, input, output, std::future::pending()).await.unwrap();
    writing.await.unwrap().unwrap();
    let said = reading.await.unwrap();
    let mut ids: Vec<String> =
        said.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["id"].to_string()).collect();
    ids.sort();
    assert_eq!(ids, ["1", "2", "null", "null"], "{said}");
    bridge.close().await;
}

/// Nobody waits for the response to a call that its host has taken back (R-188).
#[tokio::test]
async fn a_pipe_that_ends_does_not_wait_for_what_was_cancelled_r188() {
    let (reach, _said) = shell("cat >/dev/null");
    let mut options = Options::default();
    options.grace = Duration::from_secs(600);
    let bridge = Bridge::start(config(reach.transport(), Era::Modern), vec![reach], options).unwrap();
    let cancelled = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#;
    let lines = format!("{}\n{cancelled}\n", call(1, "plain", r#"{"text":"a"}"#));
    let mut output = Vec::new();
    let (sink, mut heard) = duplex(1 << 16);
    let served = bridge.serve_pipe(Identity::Anonymous, lines.as_bytes(), sink, std::future::pending());
    tokio::time::timeout(Duration::from_secs(60), served).await.expect("it ends at once").unwrap();
    heard.read_to_end(&mut output).await.unwrap();
    assert!(output.is_empty());
}

/// R-050, R-051: which era a server is of, by what it says.
#[tokio::test]
async fn eras_are_found_out() {
    let limits = mrtr_core::Limits::default();
    assert_eq!(example().era(&limits).await.unwrap(), Era::Modern);
    let old = r#"read -r a; echo '{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no"}}'; read -r b; \
        id=$(echo "$b" | sed 's/.*"id":\([0-9]*\).*/\1/'); \
        echo '{"jsonrpc":"2.0","id":'$id',"result":{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"o","version":"1"}}}'; \
        read -r c"#;
    assert_eq!(shell(old).0.era(&limits).await.unwrap(), Era::Legacy);
    let error = shell("echo why >&2; exit 7").0.era(&limits).await.unwrap_err().to_string();
    assert!(error.contains("exit status: 7") && error.contains("why"), "{error}");
}

#[test]
fn what_does_not_fit_together_does_not_start() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let _inside = runtime.enter();
    assert!(
        Bridge::start(config(Transport::Http, Era::Modern), vec![example()], Options::default()).is_err()
    );
    assert!(Bridge::start(config(Transport::Pipe, Era::Modern), vec![], Options::default()).is_err());
}
