//! `mrtr bridge` as a child process.

use std::{net::SocketAddr, process::Stdio};

use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    process::Child,
};

use super::*;

/// The command, listening.
pub(super) struct Listening {
    pub(super) address: SocketAddr,
    child: Child,
    logged: tokio::task::JoinHandle<String>,
}

impl Listening {
    pub(super) async fn start(args: &[&str]) -> Self {
        Self::start_with(args, |_| {}).await
    }

    pub(super) async fn start_with(args: &[&str], with: impl FnOnce(&mut Command)) -> Self {
        let mut command = Command::new(MRTR);
        command
            .args(args)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        with(&mut command);
        let mut child = command.spawn().unwrap();
        let mut err = child.stderr.take().unwrap();
        let logged = tokio::spawn(async move {
            let mut text = String::new();
            err.read_to_string(&mut text).await.unwrap();
            text
        });
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let url = lines.next_line().await.unwrap();
        let port = url.as_deref().and_then(|url| url.strip_prefix("http://localhost:")?.strip_suffix("/mcp"));
        let Some(port) = port.and_then(|port| port.parse().ok()) else {
            panic!("{url:?}: {}", logged.await.unwrap());
        };
        Self { address: SocketAddr::from(([127, 0, 0, 1], port)), child, logged }
    }

    /// Ends it in order; what it has logged.
    pub(super) async fn end(mut self) -> String {
        let id = rustix::process::Pid::from_raw(self.child.id().unwrap().try_into().unwrap()).unwrap();
        rustix::process::kill_process(id, rustix::process::Signal::TERM).unwrap();
        assert!(self.child.wait().await.unwrap().success());
        self.logged.await.unwrap()
    }

    async fn send(&self, user: &str, body: &str) -> TcpStream {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        let head = format!(
            "POST /mcp HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nX-User: {user}\r\n{}Content-Length: {}\r\n\r\n",
            lines_of(body),
            body.len()
        );
        stream.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
        stream
    }

    pub(super) async fn ask(&self, user: &str, body: &str) -> Value {
        reply_of(self.send(user, body).await).await
    }

    pub(super) async fn metrics(&self) -> String {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        let head = "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).await.unwrap();
        text
    }
}

async fn reply_of(mut stream: TcpStream) -> Value {
    let mut text = String::new();
    stream.read_to_string(&mut text).await.unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200"), "{text}");
    serde_json::from_str(body).unwrap()
}

/// Answers what has `quick` in it, a modern result; nothing else ever.
const SLOW: &str = r#"while read -r line; do case "$line" in *quick*) id=$(printf %s "$line" | sed 's/.*"id":\([0-9]*\).*/\1/'); \
    echo '{"jsonrpc":"2.0","id":'$id',"result":{"resultType":"complete","content":[]}}';; esac; done"#;

/// `--quota-calls`: a principal with as many requests under way hears when to come again; others are not touched, and
/// it is served again once one of its requests has ended.
#[tokio::test]
async fn a_principal_over_its_quota_of_requests_is_told_so_and_no_other() {
    let args = [
        "bridge",
        "--listen",
        "127.0.0.1:0",
        "--principal-header",
        "X-User",
        "--quota-calls",
        "2",
        "--era",
        "modern",
        "--",
        "sh",
        "-c",
        SLOW,
    ];
    let bridge = Listening::start(&args).await;
    let first = bridge.send("ada", &call(1, "slow", "{}")).await;
    let second = bridge.send("ada", &call(1, "slow", "{}")).await;
    while !bridge.metrics().await.contains("mrtr_bridge_requests_open 2\n") {}
    let quick = call(2, "quick", "{}");
    let refused = bridge.ask("ada", &quick).await;
    assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!(2), &json!(-32603)), "{refused}");
    assert_eq!(refused["error"]["data"]["retryAfterMs"], 1000, "{refused}");
    assert!(refused["error"]["message"].as_str().unwrap().contains("Quota::calls"), "{refused}");
    assert_eq!(bridge.ask("bob", &quick).await["result"]["resultType"], "complete");
    assert!(bridge.metrics().await.contains("mrtr_bridge_requests_over_bound_total 1\n"));
    drop(second);
    while !bridge.metrics().await.contains("mrtr_bridge_requests_open 1\n") {}
    assert_eq!(bridge.ask("ada", &quick).await["result"]["resultType"], "complete");
    drop(first);
    bridge.end().await;
}

/// `--quota-parked`: so with calls that wait for answers, of which the one that waits goes on untouched.
#[tokio::test]
async fn a_principal_over_its_quota_of_parked_calls_is_told_so_and_no_other() {
    let args = [
        "bridge",
        "--listen",
        "127.0.0.1:0",
        "--principal-header",
        "X-User",
        "--quota-parked",
        "1",
        "--drain",
        "0",
        "--era",
        "legacy",
        "--",
        MRTR,
        "serve",
        "--stdio",
    ];
    let bridge = Listening::start(&args).await;
    let plan = call(1, "plan", r#"{"city":"Lisbon"}"#);
    let asked = bridge.ask("ada", &plan).await;
    assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
    let refused = bridge.ask("ada", &plan).await;
    assert_eq!(refused["error"]["code"], -32603, "{refused}");
    assert_eq!(refused["error"]["data"]["retryAfterMs"], 1000, "{refused}");
    assert!(refused["error"]["message"].as_str().unwrap().contains("Quota::parked"), "{refused}");
    assert_eq!(bridge.ask("bob", &plan).await["result"]["resultType"], "input_required");
    // Whatever could be asked might have to wait; a call that cannot be asked anything is no matter of this quota.
    let plain = call(2, "plain", r#"{"text":"hi"}"#);
    assert_eq!(bridge.ask("ada", &plain).await["error"]["code"], -32603);
    let mute = plain.replace(r#"{"elicitation":{}}"#, "{}");
    assert_eq!(bridge.ask("ada", &mute).await["result"]["resultType"], "complete");
    let key = asked["result"]["inputRequests"].as_object().unwrap().keys().next().unwrap();
    let mut retry: Value = serde_json::from_str(&plan).unwrap();
    retry["params"]["requestState"] = asked["result"]["requestState"].clone();
    retry["params"]["inputResponses"] = json!({key: {"action": "decline"}});
    let done = bridge.ask("ada", &retry.to_string()).await;
    assert_eq!(done["result"]["resultType"], "complete", "{done}");
    // And it may wait for answers again.
    assert_eq!(bridge.ask("ada", &plan).await["result"]["resultType"], "input_required");
    bridge.end().await;
}

/// What is no address of a Redis is bad usage and not a Redis that is away, by either way to say it; the value is not
/// repeated, for it may hold a password.
#[cfg(feature = "redis")]
#[tokio::test]
async fn what_is_no_redis_is_bad_usage() {
    let tls = "proxy";
    for (url, said) in [
        ("127.0.0.1:6379", "redis://["),
        ("s3cr3t", "redis://["),
        ("", "redis://["),
        ("http://:s3cr3t@127.0.0.1:9/", "redis://["),
        ("redis://:s3cr3t@127.0.0.1:99999", "redis://["),
        ("redis:///", "redis://["),
        ("rediss://:s3cr3t@127.0.0.1:9", tls),
        ("REDISS://:s3cr3t@127.0.0.1:9", tls),
    ] {
        for way in [["--redis", url], ["--redis-env", "PLACE"]] {
            let mut command = Command::new(MRTR);
            command.args(["bridge", "--listen", "127.0.0.1:0", "--key-env", "SEALED_WITH"]).args(way);
            command.args(["--", "true"]).stdin(Stdio::null());
            command.env("PLACE", url).env("SEALED_WITH", &*mrtr_tokio::keys::generate().unwrap());
            let output = command.output().await.unwrap();
            let err = String::from_utf8(output.stderr).unwrap();
            assert_eq!(output.status.code(), Some(2), "{way:?}: {err}");
            assert!(err.contains(way[0]) && err.contains(said), "{way:?}: {err}");
            assert!(!err.contains("s3cr3t"), "{err}");
        }
    }
    // One that is away is no bad usage.
    let nobody = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let mut command = Command::new(MRTR);
    let key = mrtr_tokio::keys::generate().unwrap();
    command.args(["bridge", "--listen", "127.0.0.1:0", "--key-env", "SEALED_WITH", "--redis"]);
    command.arg(format!("redis://:s3cr3t@{nobody}")).args(["--", "true"]).env("SEALED_WITH", &*key);
    let output = command.stdin(Stdio::null()).output().await.unwrap();
    let err = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(7), "{err}");
    assert!(err.contains("cannot be reached") && !err.contains("s3cr3t"), "{err}");
}

/// R-265: what is started is what the operator has named; it does not see the secrets of the bridge, unless they are
/// given to it, and its beginning, its words and its end are logged.
#[tokio::test]
async fn a_server_that_is_started_sees_no_secret_of_the_bridge_r265() {
    let folder = std::env::temp_dir().join(format!("mrtr-spawn-{}", std::process::id()));
    std::fs::create_dir(&folder).unwrap();
    let (file, script) = (folder.join("upstreams.toml"), folder.join("server.sh"));
    std::fs::write(&script, format!("env | grep ^SPAWN_ >&2\n{SLOW}\n")).unwrap();
    let text = format!(
        "[upstreams.a]\ncommand = [\"sh\", {script:?}]\nera = \"modern\"\n[upstreams.a.env]\nSPAWN_OWN = \"own\"\n\
         SPAWN_GIVEN = \"given on purpose\"\n[upstreams.b]\nurl = \"http://127.0.0.1:9/mcp\"\nbearer_env = \"SPAWN_TOKEN\"\n\
         era = \"modern\"\n"
    );
    std::fs::write(&file, text).unwrap();
    let args = [
        "--log",
        "info",
        "bridge",
        "--listen",
        "127.0.0.1:0",
        "--key-env",
        "SPAWN_KEY",
        "--config",
        file.to_str().unwrap(),
    ];
    let key = mrtr_tokio::keys::generate().unwrap();
    let bridge = Listening::start_with(&args, |command| {
        command.env("SPAWN_KEY", &*key).env("SPAWN_TOKEN", "secret-token").env("SPAWN_OTHER", "seen");
    })
    .await;
    let done = bridge.ask("ada", &call(1, "a__quick", "{}")).await;
    assert_eq!(done["result"]["resultType"], "complete", "{done}");
    let logged = bridge.end().await;
    for seen in ["SPAWN_OTHER=seen", "SPAWN_OWN=own", "SPAWN_GIVEN=given on purpose"] {
        assert!(logged.contains(seen), "{seen}: {logged}");
    }
    for hidden in ["SPAWN_KEY", "SPAWN_TOKEN", "secret-token", &*key] {
        assert!(!logged.contains(hidden), "{hidden}: {logged}");
    }
    assert!(logged.contains("a connection to an upstream begins"), "{logged}");
    assert!(logged.contains("an upstream process has ended"), "{logged}");
    std::fs::remove_dir_all(folder).unwrap();
}
