//! What the tests need: a Redis that may be killed, bridges that are processes, hosts that speak HTTP.

use std::{
    path::PathBuf,
    process::Stdio,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::{TcpListener, TcpStream},
    process::{Child, Command},
    time::{Instant, sleep},
};

/// On a machine that is busy with something else everything takes long; nothing here is meant to.
const DEADLINE: Duration = Duration::from_secs(60);

/// Waits until there is something.
pub(super) async fn until<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let begin = Instant::now();
    loop {
        if let Some(found) = look().await {
            return found;
        }
        assert!(begin.elapsed() < DEADLINE, "waited in vain: {what}");
        sleep(Duration::from_millis(10)).await;
    }
}

/// A folder that is gone after the test.
pub(super) struct Place(pub(super) PathBuf);

impl Place {
    pub(super) fn new(name: &str) -> Self {
        let place = std::env::temp_dir().join(format!("mrtr-bridges-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&place).unwrap();
        Self(place)
    }

    /// What the upstream has noted and begins so.
    pub(super) fn notes(&self, begin: &str) -> usize {
        let notes = std::fs::read_to_string(self.0.join("notes")).unwrap_or_default();
        notes.lines().filter(|line| line.starts_with(begin)).count()
    }

    /// A file that calls wait for.
    pub(super) fn gate(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A Redis of the test's own, that keeps nothing when it ends.
pub(super) struct Server {
    child: Option<Child>,
    port: u16,
    place: PathBuf,
}

impl Server {
    pub(super) async fn start(place: &Place) -> Self {
        // Another process may take the port first, hence more than one try.
        for _ in 0..5 {
            let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
            let mut server = Self { child: None, port, place: place.0.clone() };
            if server.revive().await {
                return server;
            }
        }
        panic!("no redis-server starts");
    }

    pub(super) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// Starts it, at its port, empty.
    pub(super) async fn revive(&mut self) -> bool {
        let port = self.port.to_string();
        let mut child = Command::new("redis-server")
            .args(["--bind", "127.0.0.1", "--port", &port, "--save", "", "--appendonly", "no"])
            .args(["--maxmemory-policy", "noeviction", "--dir"])
            .arg(&self.place)
            .stdout(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let up = until("a redis-server", async || {
            if child.try_wait().unwrap().is_some() {
                return Some(false);
            }
            let answers = async {
                let client = redis::Client::open(self.url()).unwrap();
                let mut connection = client.get_multiplexed_async_connection().await?;
                redis::cmd("PING").exec_async(&mut connection).await
            };
            answers.await.ok().map(|()| true)
        });
        let up = up.await;
        self.child = Some(child);
        up
    }

    /// Kills it (SIGKILL).
    pub(super) async fn kill(&mut self) {
        self.child.take().unwrap().kill().await.unwrap();
    }

    pub(super) async fn connection(&self) -> redis::aio::MultiplexedConnection {
        let patience = Some(DEADLINE);
        let patient = redis::AsyncConnectionConfig::new()
            .set_connection_timeout(patience)
            .set_response_timeout(patience);
        let client = redis::Client::open(self.url()).unwrap();
        client.get_multiplexed_async_connection_with_config(&patient).await.unwrap()
    }
}

/// A way to a Redis that does not hold back its replies; how often something was read on it.
pub(super) async fn hasty(redis: &Server) -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("redis://{}", listener.local_addr().unwrap());
    let (read, port) = (Arc::new(AtomicUsize::new(0)), redis.port);
    let count = Arc::clone(&read);
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let (mut from, mut to) = client.into_split();
            let (mut answers, mut asks) = TcpStream::connect(("127.0.0.1", port)).await.unwrap().into_split();
            tokio::spawn(async move { tokio::io::copy(&mut answers, &mut to).await });
            let count = Arc::clone(&count);
            tokio::spawn(async move {
                let mut bytes = [0; 4096];
                while let Ok(some @ 1..) = from.read(&mut bytes).await {
                    const BLOCK: &[u8] = b"BLOCK\r\n$4\r\n2000\r\n";
                    let mut said = bytes[..some].to_vec();
                    if let Some(at) = said.windows(BLOCK.len()).position(|part| part == BLOCK) {
                        count.fetch_add(1, Ordering::Relaxed);
                        said.splice(at..at + BLOCK.len(), *b"COUNT\r\n$2\r\n16\r\n");
                    }
                    asks.write_all(&said).await.unwrap();
                }
            });
        }
    });
    (url, read)
}

/// The command of a bridge before the server that counts.
pub(super) fn command(place: &Place, redis: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mrtr"));
    command.args(["--log", "warn", "bridge", "--listen", "127.0.0.1:0", "--redis", redis]);
    command.args(["--key-env", "MRTR_TEST_KEY", "--principal-header", "x-user", "--era", "legacy"]);
    command.args(["--processes", "16", "--"]);
    command.args(["python3", concat!(env!("CARGO_MANIFEST_DIR"), "/tests/redis/bridges/upstream.py")]);
    command.arg(place.0.join("notes"));
    command.env("MRTR_TEST_KEY", "ab".repeat(32)).kill_on_drop(true).stdin(Stdio::null());
    command
}

/// A bridge that runs.
pub(super) struct Process {
    pub(super) child: Child,
    address: String,
}

impl Process {
    pub(super) async fn start(place: &Place, redis: &str) -> Self {
        let mut child = command(place, redis).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let url = lines.next_line().await.unwrap().expect("a bridge that says where it listens");
        let port: u16 = url.rsplit_once(':').unwrap().1.split('/').next().unwrap().parse().unwrap();
        Self { child, address: format!("127.0.0.1:{port}") }
    }

    pub(super) fn signal(&self, signal: rustix::process::Signal) {
        let pid = i32::try_from(self.child.id().unwrap()).unwrap();
        rustix::process::kill_process(rustix::process::Pid::from_raw(pid).unwrap(), signal).unwrap();
    }

    /// Sends a request and leaves the reply to be read.
    pub(super) async fn send(&self, user: &str, body: &Value) -> TcpStream {
        let body = body.to_string();
        let message = mrtr_core::jsonrpc::admit(body.as_bytes(), &mrtr_core::Limits::default()).unwrap();
        let headers =
            mrtr_core::http::request_headers(&message, mrtr_core::http::ParamHeaders::NONE).unwrap();
        let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let mut stream = TcpStream::connect(&self.address).await.unwrap();
        let length = body.len();
        let head = format!(
            "POST /mcp HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nX-User: {user}\r\n{headers}Content-Length: {length}\r\n\r\n"
        );
        stream.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
        stream
    }

    /// Sends a request: the messages of the reply, the last one at the end.
    pub(super) async fn ask(&self, user: &str, body: &Value) -> Vec<Value> {
        messages(self.send(user, body).await).await
    }

    /// One number of `/metrics`.
    pub(super) async fn number(&self, name: &str) -> u64 {
        let mut stream = TcpStream::connect(&self.address).await.unwrap();
        stream
            .write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            .await
            .unwrap();
        let mut page = String::new();
        stream.read_to_string(&mut page).await.unwrap();
        let line = page.lines().find_map(|line| line.strip_prefix(&format!("mrtr_bridge_{name} ")));
        line.unwrap_or_else(|| panic!("no {name}: {page}")).parse().unwrap()
    }

    /// Waits until a number is what it should be.
    pub(super) async fn number_is(&self, name: &str, expected: u64) {
        until(name, async || (self.number(name).await == expected).then_some(())).await;
    }
}

/// The messages of a reply, JSON or event stream, to its end.
pub(super) async fn messages(mut stream: TcpStream) -> Vec<Value> {
    let mut reply = String::new();
    tokio::time::timeout(DEADLINE, stream.read_to_string(&mut reply)).await.expect("a reply").unwrap();
    let (head, body) = reply.split_once("\r\n\r\n").unwrap();
    if !head.to_ascii_lowercase().contains("text/event-stream") {
        return vec![serde_json::from_str(body).unwrap()];
    }
    body.lines()
        .filter_map(|line| line.strip_prefix("data:"))
        .map(|data| serde_json::from_str(data.trim()).unwrap())
        .collect()
}

/// A call of the tool, which asks so often and ends when the gate is there.
pub(super) fn call(k: &str, rounds: u32, gate: Option<&PathBuf>) -> Value {
    let mut arguments = json!({"k": k, "rounds": rounds});
    if let Some(gate) = gate {
        arguments["hold"] = json!(gate);
    }
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}},
        "io.modelcontextprotocol/logLevel": "info",
        "progressToken": format!("p-{k}"),
    });
    let params = json!({"name": "work", "arguments": arguments, "_meta": meta});
    json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
}

/// The retry of a call that was answered with questions: the answers are the questions' own words and `say`.
pub(super) fn retry(call: &Value, reply: &[Value], say: &str) -> Value {
    let result = &reply.last().unwrap()["result"];
    let asks = result["inputRequests"].as_object().unwrap_or_else(|| panic!("no questions: {reply:?}"));
    let mut retry = call.clone();
    retry["id"] = json!(call["id"].as_u64().unwrap() + 1);
    retry["params"]["requestState"] = result["requestState"].clone();
    retry["params"]["inputResponses"] = asks
        .iter()
        .map(|(key, ask)| {
            let value = format!("{say} to {}", ask["params"]["message"].as_str().unwrap());
            (key.clone(), json!({"action": "accept", "content": {"value": value}}))
        })
        .collect::<serde_json::Map<_, _>>()
        .into();
    retry
}

/// What the tool has said in the end.
pub(super) fn outcome(reply: &[Value]) -> &str {
    let last = reply.last().unwrap();
    last["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("no result: {last}"))
}

/// The error in the end.
pub(super) fn error(reply: &[Value]) -> (i64, &str) {
    let error = &reply.last().unwrap()["error"];
    (
        error["code"].as_i64().unwrap_or_else(|| panic!("no error: {reply:?}")),
        error["message"].as_str().unwrap(),
    )
}
