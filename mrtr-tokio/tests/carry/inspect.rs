//! `mrtr state inspect`, and keys that change under a server that runs (G-53, B-17, W-11).
#![cfg(unix)]

use std::{
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use mrtr_core::{
    Timestamp,
    handler::Reception,
    seal::{KeyRing, Principal, Sealer},
    server::RoundEnv,
};
use mrtr_tokio::{
    clock::{Clock, entropy},
    example_tools,
    keys::{self, KeySource},
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines},
    process::{Child, ChildStdin, ChildStdout, Command},
};

const MRTR: &str = env!("CARGO_BIN_EXE_mrtr");

/// A folder that is gone when the test is.
struct Dir(PathBuf);

impl Dir {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("mrtr-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir(&path).unwrap();
        Self(path)
    }

    fn key(&self, name: &str) -> String {
        let path = self.0.join(name);
        keys::generate_file(&path).unwrap();
        path.to_str().unwrap().into()
    }

    fn write(&self, name: &str, text: &str) -> String {
        let path = self.0.join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        path.to_str().unwrap().into()
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A call of the example tool `plan`, with what `more` has to say.
fn request(id: u32, city: &str, more: &Value) -> String {
    let mut params = json!({
        "name": "plan", "arguments": {"city": city},
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}},
        },
    });
    for (name, value) in more.as_object().unwrap() {
        params[name] = value.clone();
    }
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}).to_string()
}

fn days(state: &str) -> Value {
    json!({"requestState": state, "inputResponses": {"days": {"action": "accept", "content": {"days": 3}}}})
}

/// The state after the first answer, `days`, of ada's call about Lisbon.
fn state(sealer: &Sealer, now: Timestamp) -> String {
    let service = example_tools::service(sealer.clone()).unwrap();
    let send = |message: String| {
        let env = RoundEnv::new(now, entropy().unwrap(), Principal::Authenticated(b"ada"));
        let mut out = Vec::new();
        let Reception::Run(run) = service.receive(message.as_bytes(), env) else { panic!("not a call") };
        drop(run.run(now, &mut out));
        let reply: Value = serde_json::from_slice(&out).unwrap();
        String::from(reply["result"]["requestState"].as_str().unwrap())
    };
    let first = send(request(1, "Lisbon", &json!({})));
    send(request(2, "Lisbon", &days(&first)))
}

/// Standard output, standard error, exit code.
async fn inspect(args: &[&str], input: &str) -> (String, String, i32) {
    let mut command = Command::new(MRTR);
    command.args(["state", "inspect"]).args(args);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // The command may end without having read all of it.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes()).await;
    let output = child.wait_with_output().await.unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (text(output.stdout), text(output.stderr), output.status.code().unwrap())
}

fn sealer(path: &str) -> Sealer {
    KeySource::File(Path::new(path)).sealer(example_tools::NAME).unwrap()
}

#[tokio::test]
async fn w_11_a_state_with_its_key() {
    let dir = Dir::new("inspect-key");
    let (other, key) = (dir.key("other"), dir.key("key"));
    let now = Clock::system().now();
    let token = state(&sealer(&key), now);
    // One of several keys will do.
    let keys = ["--key-file", &other, "--key-file", &key];
    let (out, err, code) = inspect(&[&[token.as_str()], &keys[..]].concat(), "").await;
    assert_eq!((err.as_str(), code), ("", 0), "{out}");
    let id = sealer(&key).minting().to_string();
    for expected in [
        "suite      xchacha20-poly1305",
        &format!("key        {id}"),
        "round      2",
        "(in 59",
        "principal  not compared",
        "verdict    nothing wrong with what was compared",
        "round 1 \"days\": form, answered\n",
        "round 2 \"pace\": form, open",
    ] {
        assert!(out.contains(expected), "{expected}: {out}");
    }
    assert!(!out.contains("accept") && !out.contains(&token[40..60]), "{out}");

    let (out, err, code) =
        inspect(&["-", "--key-file", &key, "--show-answers"], &format!(" {token}\n")).await;
    assert_eq!((err.as_str(), code), ("", 0), "{out}");
    assert!(out.contains(r#"answered: {"action":"accept","content":{"days":3}}"#), "{out}");

    let (out, err, code) = inspect(&["-", "--key-file", &key, "--json"], &token).await;
    assert_eq!((err.as_str(), code), ("", 0), "{out}");
    let found: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(
        found["asked"],
        json!([
            {"round": 1, "key": "days", "kind": "form", "outcome": "answered", "sent": true},
            {"round": 2, "key": "pace", "kind": "form", "outcome": "open", "sent": true},
        ])
    );
    assert_eq!((&found["verified"], &found["round"], &found["key"]), (&json!(true), &json!(2), &json!(id)));
    assert_eq!(found["verdict"], Value::Null);
    assert_eq!(found["exchange"].as_str().unwrap().len(), 32);
    assert!(found["issued"].as_str().unwrap().ends_with('Z'));
    let (out, _, _) = inspect(&["-", "--key-file", &key, "--json", "--show-answers"], &token).await;
    let found: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(found["asked"][0]["answer"], json!({"action": "accept", "content": {"days": 3}}));
    assert_eq!(found["asked"][1].get("answer"), None);
}

/// R-072, R-074, G-52: the part that differs is named, and the verdict is the one that a server would log.
#[tokio::test]
async fn r_072_the_part_that_differs_is_named() {
    let dir = Dir::new("inspect-part");
    let key = dir.key("key");
    let token = state(&sealer(&key), Clock::system().now());
    let lisbon = r#"{"city": "Lisb\u006fn"}"#;
    type Case<'a> = (&'a [&'a str], [Option<bool>; 3], Option<&'a str>);
    let cases: [Case<'_>; 9] = [
        (&[], [None, None, None], None),
        (&["--audience", "mrtr-examples"], [Some(true), None, None], None),
        (&["--audience", "another"], [Some(false), None, None], Some("other_audience")),
        (&["--principal", "ada"], [None, Some(true), None], None),
        (&["--principal", "eve"], [None, Some(false), None], Some("other_principal")),
        (&["--anonymous"], [None, Some(false), None], Some("other_principal")),
        (&["--target", "plan", "--args", lisbon], [None, None, Some(true)], None),
        (&["--target", "plan"], [None, None, Some(false)], Some("other_request")),
        (
            &[
                "--audience",
                "mrtr-examples",
                "--principal",
                "eve",
                "--method",
                "prompts/get",
                "--target",
                "plan",
                "--args",
                lisbon,
            ],
            [Some(true), Some(false), Some(false)],
            Some("other_principal"),
        ),
    ];
    for (more, [audience, principal, request], verdict) in cases {
        let (out, err, code) = inspect(&[&["-", "--json", "--key-file", &key], more].concat(), &token).await;
        assert_eq!((err.as_str(), code), ("", 0), "{more:?}");
        let found: Value = serde_json::from_str(&out).unwrap();
        assert_eq!(found["same"], json!({"audience": audience, "principal": principal, "request": request}));
        assert_eq!(found["verdict"], json!(verdict), "{more:?}");
    }
    let all = ["--audience", "mrtr-examples", "--principal", "ada", "--target", "plan", "--args", lisbon];
    let (out, ..) = inspect(&[&["-", "--key-file", &key], &all[..]].concat(), &token).await;
    assert!(out.contains("verdict    it would be accepted"), "{out}");
    // Old ones and ones of the future: before all that is compared.
    let now = Clock::system().now();
    let past = Timestamp::from_unix_millis(now.as_unix_millis() - 601_000);
    let future = now.saturating_add(Duration::from_secs(90));
    for (at, verdict) in [(past, "expired"), (future, "not_yet_valid")] {
        let token = state(&sealer(&key), at);
        let (out, _, code) = inspect(&["-", "--key-file", &key, "--principal", "eve"], &token).await;
        assert!(code == 0 && out.contains(&format!("verdict    {verdict}: it would be refused")), "{out}");
        assert!(out.contains("principal  DIFFERS"), "{out}");
    }
}

#[tokio::test]
async fn w_11_a_state_without_its_key() {
    let dir = Dir::new("inspect-none");
    let (key, other) = (dir.key("key"), dir.key("other"));
    let id = sealer(&key).minting().to_string();
    let now = Clock::system().now();
    let encrypted = state(&sealer(&key), now);
    let (out, err, code) = inspect(&[&encrypted], "").await;
    assert_eq!((err.as_str(), code), ("", 0));
    assert!(out.contains("xchacha20-poly1305") && out.contains(&id), "{out}");
    assert!(out.contains("nothing more to see") && !out.contains("exchange"), "{out}");
    // With a key that is not its own: what anybody can see, and what is wrong.
    let (out, err, code) = inspect(&["-", "--key-file", &other, "--json"], &encrypted).await;
    assert_eq!(code, 1);
    assert!(err.contains(&format!("sealed under the key {id}, which is not in the ring")), "{err}");
    let found: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((&found["key"], &found["verified"]), (&json!(id), &json!(false)));
    // Changed.
    let at = encrypted.len() - 4;
    let letter = if encrypted.as_bytes()[at] == b'A' { "B" } else { "A" };
    let changed = format!("{}{letter}{}", &encrypted[..at], &encrypted[at + 1..]);
    let (_, err, code) = inspect(&["-", "--key-file", &key], &changed).await;
    assert!(code == 1 && err.contains("changed, or made without the key"), "{err}");
    // The signed suite hides nothing, and says that nothing of it is verified.
    let secret = KeySource::File(Path::new(&key)).secret().unwrap();
    let readable = state(&Sealer::signed_readable(&KeyRing::new(secret), example_tools::NAME), now);
    let (out, _, code) = inspect(&[&readable], "").await;
    assert!(code == 0 && out.contains("NOT VERIFIED") && out.contains("\"days\": form, answered"), "{out}");
    assert!(out.contains("verdict    none without a key") && !out.contains("\"content\""), "{out}");
    let (out, _, code) = inspect(&["-", "--key-file", &key, "--json"], &readable).await;
    let found: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, &found["verified"], &found["suite"]), (0, &json!(true), &json!("hmac-sha256")));
}

#[tokio::test]
async fn w_11_what_is_no_state_is_said() {
    let dir = Dir::new("inspect-bad");
    let key = dir.key("key");
    let open = dir.write("open", "x");
    std::fs::set_permissions(&open, std::fs::Permissions::from_mode(0o644)).unwrap();
    let empty = dir.write("empty", "\n");
    let missing = dir.0.join("missing");
    let missing = missing.to_str().unwrap();
    let token = state(&sealer(&key), Clock::system().now());
    let large = "A".repeat((4 << 20) + 10);
    let cases: [(&[&str], &str, i32, &str); 10] = [
        (&["-"], "", 1, "there is no state"),
        (&["-"], "a b", 1, "not a state: not base64url"),
        (&["-"], "AQ", 1, "not a state"),
        (&["-"], "BAAA", 1, "format version 4"),
        (&["-"], &large, 1, "not a state: more than"),
        (&["-", "--key-file", missing], &token, 1, "missing"),
        (&["-", "--key-file", &open], &token, 1, "chmod 600"),
        (&["-", "--key-file", &empty], &token, 1, "holds no key"),
        (
            &["-", "--key-file", &key, "--target", "plan", "--args", "[]"],
            &token,
            2,
            "--args is not a JSON object",
        ),
        (&["-", "--principal", "ada"], &token, 2, "--key-file"),
    ];
    for (args, input, expected_code, expected) in cases {
        let (out, err, code) = inspect(args, input).await;
        assert_eq!((out.as_str(), code), ("", expected_code), "{args:?}: {err}");
        assert!(err.contains(expected), "{args:?}: {err}");
    }
}

/// A server on standard input and output.
struct Served {
    child: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
    log: Lines<BufReader<tokio::process::ChildStderr>>,
}

impl Served {
    fn start(args: &[&str]) -> Self {
        let mut command = Command::new(MRTR);
        command.args(["serve", "--stdio"]).args(args).kill_on_drop(true);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let input = child.stdin.take().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap()).lines();
        let log = BufReader::new(child.stderr.take().unwrap()).lines();
        Self { child, input, output, log }
    }

    async fn send(&mut self, message: String) -> Value {
        self.input.write_all((message + "\n").as_bytes()).await.unwrap();
        serde_json::from_str(&self.output.next_line().await.unwrap().unwrap()).unwrap()
    }

    /// SIGHUP; the line that the log has of it.
    async fn reload(&mut self) -> String {
        let id = self.child.id().unwrap().to_string();
        assert!(Command::new("kill").args(["-HUP", &id]).status().await.unwrap().success());
        self.log.next_line().await.unwrap().unwrap()
    }
}

/// B-17, G-53: a running server follows its key files at SIGHUP, through all phases of a rotation; a file that is not
/// in order changes nothing.
#[tokio::test]
async fn b_17_keys_are_read_again_at_sighup() {
    let dir = Dir::new("sighup");
    let (mint, accepted) = (dir.key("mint"), dir.write("accepted", ""));
    let old = std::fs::read_to_string(&mint).unwrap();
    let new = keys::generate().unwrap();
    let mut server = Served::start(&["--key-file", &mint, "--accept-key-file", &accepted]);
    let state = |reply: &Value| String::from(reply["result"]["requestState"].as_str().unwrap());
    let first = state(&server.send(request(1, "Oslo", &json!({}))).await);
    let key_of = |token: &str| mrtr_core::seal::inspect(token).unwrap().key;
    let old_id = key_of(&first);

    dir.write("accepted", "no key");
    let line = server.reload().await;
    assert!(line.contains("the keys stay as they were") && line.contains("line 1"), "{line}");
    dir.write("accepted", &new);
    let line = server.reload().await;
    assert!(line.contains("the keys were read again") && line.contains(&format!("mints={old_id}")), "{line}");
    let second = state(&server.send(request(2, "Oslo", &days(&first))).await);
    assert_eq!(key_of(&second), old_id);

    dir.write("mint", &new);
    dir.write("accepted", &format!("{old}{}", &*new));
    server.reload().await;
    let third = state(&server.send(request(3, "Oslo", &days(&first))).await);
    assert_ne!(key_of(&third), old_id);

    dir.write("accepted", "");
    server.reload().await;
    let reply = server.send(request(4, "Oslo", &days(&first))).await;
    assert_eq!(reply["error"]["message"], "Invalid or expired requestState");
    let pace = json!({"requestState": third, "inputResponses": {"pace": {"action": "accept", "content": {"pace": "slow"}}}});
    let reply = server.send(request(5, "Oslo", &pace)).await;
    assert_eq!(reply["result"]["content"][0]["text"], "Oslo, 3 days, slow");
    drop(server.input);
    assert!(server.child.wait().await.unwrap().success());
}
