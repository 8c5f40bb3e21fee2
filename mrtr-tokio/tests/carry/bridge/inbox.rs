//! The inbox at an address on this machine: who may come in, and that it does what it does at a socket.

use std::{net::SocketAddr, path::Path};

use mrtr_tokio::bridge::InboxToken;

use super::{command::Listening, *};
use crate::command::run;

const TOKEN: &str = "0123456789-abcdefghijkl";

/// A request of these lines, to whatever listens there: status, head, body.
async fn post(address: SocketAddr, start: &str, lines: &str, body: &str) -> (u16, String, String) {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let head =
        format!("{start} HTTP/1.1\r\nConnection: close\r\n{lines}Content-Length: {}\r\n\r\n", body.len());
    let mut bytes = Vec::new();
    // One that is refused before its body is read may not take all of it.
    let _ = stream.write_all(format!("{head}{body}").as_bytes()).await;
    let _ = stream.read_to_end(&mut bytes).await;
    let text = String::from_utf8(bytes).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), head.to_ascii_lowercase(), body.into())
}

/// W-16, R-159: nobody comes in without the token; no page does with it, whatever name it came under.
#[tokio::test]
async fn nothing_opens_it_but_the_token_and_no_page_does() {
    let bridge = bridge(example(), Era::Legacy);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let token = InboxToken::new(TOKEN).unwrap();
    let serving = bridge.clone();
    let serving = tokio::spawn(async move { serving.serve_inbox_at(listener, token).await });
    let (host, json, open) = (
        "Host: localhost\r\n",
        "Content-Type: application/json\r\n",
        format!("Authorization: Bearer {TOKEN}\r\n"),
    );
    let list = r#"{"op":"list"}"#;
    let good = format!("{host}{json}{open}");
    let (status, head, body) = post(address, "POST /inbox", &good, list).await;
    assert_eq!((status, &*body), (200, r#"{"entries":[]}"#));
    assert!(head.contains("cache-control: no-store"), "{head}");
    let cases = [
        (401, "POST /inbox", format!("{host}{json}")),
        (401, "POST /inbox", format!("{host}{json}{}", open.replace("-a", "-b"))),
        (401, "POST /inbox", format!("{host}{json}{}", open.replace(TOKEN, ""))),
        (401, "POST /inbox", format!("{good}{open}")),
        (401, "POST /inbox", format!("{host}{json}{}", open.replace("Bearer", "Basic"))),
        (403, "POST /inbox", format!("{good}Origin: https://evil.example\r\n")),
        (403, "POST /inbox", format!("{good}Origin: http://localhost:8080\r\n")),
        (403, "POST /inbox", format!("{good}Origin: null\r\n")),
        (403, "POST /inbox", format!("Host: evil.example\r\n{json}{open}")),
        (403, "POST /inbox", format!("{json}{open}")),
        (415, "POST /inbox", format!("{host}Content-Type: text/plain\r\n{open}")),
        (405, "GET /inbox", good.clone()),
        (405, "OPTIONS /inbox", good.clone()),
        (404, "POST /", good.clone()),
    ];
    for (expected, start, lines) in cases {
        let (status, head, body) = post(address, start, &lines, list).await;
        assert_eq!(status, expected, "{start} {lines}: {head}{body}");
        assert!(!body.contains("entries") && !head.contains("access-control"), "{head}{body}");
        assert!(!body.contains(TOKEN) && !head.contains(TOKEN));
    }
    for (request, expected) in [
        ("nonsense", r#"{"error":"not JSON"}"#),
        (r#"{"op":"drop"}"#, r#"{"error":"`op` is not list, answer or decline"}"#),
        (r#"{"op":"decline"}"#, r#"{"error":"`id` is missing or no number"}"#),
    ] {
        let (status, _, body) = post(address, "POST /inbox", &good, request).await;
        assert_eq!((status, &*body), (200, expected));
    }
    let (status, ..) = post(address, "POST /inbox", &good, &" ".repeat((4 << 20) + 1)).await;
    assert_eq!(status, 413);
    bridge.close().await;
    let (status, ..) = post(address, "POST /inbox", &good, list).await;
    assert_eq!(status, 503);
    serving.abort();
}

/// Whoever has the token may answer for everybody, so it is not for a network.
#[tokio::test]
async fn it_listens_on_this_machine_only() {
    let bridge = bridge(example(), Era::Legacy);
    let listener = TcpListener::bind("0.0.0.0:0").await.unwrap();
    let error = bridge.serve_inbox_at(listener, InboxToken::new(TOKEN).unwrap()).await.unwrap_err();
    assert!(error.to_string().contains("loopback"), "{error}");
    bridge.close().await;
    for wrong in ["0.0.0.0:3001", "192.0.2.7:3001", "localhost:3001", "127.0.0.1:0"] {
        for words in
            [&["bridge", "--stdio", "--inbox", wrong, "--", "true"][..], &["inbox", "list", "--inbox", wrong]]
        {
            let (_, err, code) = run(words).await;
            assert!(
                code == 2 && err.contains("127.0.0.1:PORT") | err.contains("port"),
                "{words:?}: {code} {err}"
            );
        }
    }
}

/// Everybody on this machine can connect: whoever says nothing, or never ends its head, shuts nobody out for long, and
/// does not fill the log either.
#[tokio::test]
async fn who_says_nothing_shuts_nobody_out() {
    let (address, bridge) = guarded().await;
    let mut idle = Vec::new();
    for number in 0..200 {
        let mut stream = TcpStream::connect(address).await.unwrap();
        if number % 2 == 0 {
            stream.write_all(b"POST /inbox HTTP/1.1\r\nHost: loc").await.unwrap();
        }
        idle.push(stream);
    }
    let lines =
        format!("Host: localhost\r\nContent-Type: application/json\r\nAuthorization: Bearer {TOKEN}\r\n");
    let asked = post(address, "POST /inbox", &lines, r#"{"op":"list"}"#);
    let (status, _, body) = tokio::time::timeout(Duration::from_secs(10), asked).await.expect("let in");
    assert_eq!((status, &*body), (200, r#"{"entries":[]}"#));
    drop(idle);
    let logged = bridge.end().await;
    let full = logged.lines().filter(|line| line.contains("further ones wait")).count();
    assert!((1..=8).contains(&full), "{logged}");
    assert!(!logged.contains(TOKEN));
}

/// Nor does whoever speaks without the token: a connection that was refused is closed, and few lines are logged.
#[tokio::test]
async fn who_has_no_token_shuts_nobody_out() {
    let (address, bridge) = guarded().await;
    for start in ["POST /inbox", "POST /elsewhere", "GET /inbox"] {
        for _ in 0..20 {
            let mut stream = TcpStream::connect(address).await.unwrap();
            let request = format!(
                "{start} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{{}}"
            );
            stream.write_all(request.repeat(5).as_bytes()).await.unwrap();
            let mut bytes = Vec::new();
            let ended = tokio::time::timeout(Duration::from_secs(1), stream.read_to_end(&mut bytes)).await;
            // What was not read may make the end of it a reset.
            let _ = ended.expect("closed, and not for its silence");
            assert!(String::from_utf8_lossy(&bytes).matches("HTTP/1.1 ").count() <= 1);
        }
    }
    let logged = bridge.end().await;
    let refused = logged.lines().filter(|line| line.contains("without its token")).count();
    assert_eq!(refused, 5, "1, 2, 4, 8 and 16 of 20: {logged}");
}

/// A bridge that logs warnings, with an inbox at an address whose token it knows.
async fn guarded() -> (SocketAddr, Listening) {
    let address = free();
    let at = address.to_string();
    let args = serving("warn", &at, ["--inbox-token-env", "TOKEN"]);
    let bridge = Listening::start_with(&args, |command| {
        command.env("TOKEN", TOKEN);
    })
    .await;
    (address, bridge)
}

/// What the command is told: an inbox at this address, and a silent legacy server.
fn serving<'w>(log: &'w str, at: &'w str, token: [&'w str; 2]) -> Vec<&'w str> {
    let mut words = vec!["--log", log, "bridge", "--listen", "127.0.0.1:0", "--era", "legacy", "--inbox", at];
    words.extend(token);
    words.extend(["--", MRTR, "--log", "off", "serve", "--stdio"]);
    words
}

fn free() -> SocketAddr {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

async fn inbox(address: SocketAddr, token: &Path, words: &[&str]) -> (String, String, i32) {
    let at = address.to_string();
    run(&[&["inbox"], words, &["--inbox", &at, "--inbox-token-file", token.to_str().unwrap()]].concat()).await
}

/// W-16: a host that can show nothing, and somebody at a terminal who answers for it, by the command itself. The token
/// is made, into a file of one's own, and in no log.
#[tokio::test]
async fn questions_are_answered_over_loopback() {
    let (address, folder) = (free(), std::env::temp_dir().join(format!("mrtr-inbox-{}", std::process::id())));
    std::fs::create_dir(&folder).unwrap();
    let token = folder.join("token");
    let at = address.to_string();
    let args = serving("debug", &at, ["--inbox-token-file", token.to_str().unwrap()]);
    let bridge = Listening::start(&args).await;
    let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&token).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
    let plan = call(1, "plan", r#"{"city":"Lisbon"}"#).replace(r#"{"elicitation":{}}"#, "{}");
    let mut host = {
        let mut stream = TcpStream::connect(bridge.address).await.unwrap();
        let head =
            format!("POST /mcp HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{}", lines_of(&plan));
        stream
            .write_all(format!("{head}Content-Length: {}\r\n\r\n{plan}", plan.len()).as_bytes())
            .await
            .unwrap();
        stream
    };
    for (id, answer, words) in [("1", r#"{"days":3}"#, "days"), ("2", r#"{"pace":"slow"}"#, "pace")] {
        let listed = loop {
            let (out, err, code) = inbox(address, &token, &["list"]).await;
            assert_eq!(code, 0, "{err}");
            if out.starts_with(id) {
                break out;
            }
        };
        assert!(listed.contains("plan") && listed.contains(words), "{listed}");
        let (out, ..) = inbox(address, &token, &["show", id]).await;
        let shown: Value = serde_json::from_str(&out).unwrap();
        assert!(listed.contains(shown["question"]["params"]["message"].as_str().unwrap()), "{listed}");
        assert_eq!(inbox(address, &token, &["answer", "99", answer]).await.2, 4);
        let (_, err, code) = inbox(address, &token, &["answer", id, answer]).await;
        assert_eq!(code, 0, "{err}");
    }
    let mut body = String::new();
    host.read_to_string(&mut body).await.unwrap();
    assert!(body.contains("Lisbon, 3 days, slow"), "{body}");
    // Another token is none, and says so.
    let other = folder.join("other");
    std::fs::copy(&token, &other).unwrap();
    std::fs::write(&other, TOKEN).unwrap();
    let (_, err, code) = inbox(address, &other, &["list"]).await;
    assert!(code == 4 && err.contains("token"), "{err}");
    // A link that leads nowhere is no place for one, and what is wrong is said of the right file.
    let link = folder.join("link");
    std::os::unix::fs::symlink(folder.join("nothing"), &link).unwrap();
    let nowhere = ["--inbox", &at, "--inbox-token-file", link.to_str().unwrap()];
    let elsewhere = ["--inbox", &free().to_string(), "--inbox-token-file", link.to_str().unwrap()];
    for words in [
        [&["inbox", "list"][..], &nowhere].concat(),
        [&["bridge", "--stdio", "--era", "legacy"][..], &elsewhere, &["--", "true"]].concat(),
    ] {
        let (_, err, code) = run(&words).await;
        assert!(code == 2 && err.contains("symbolic link") && !err.contains("key file"), "{words:?}: {err}");
    }
    // Neither is one that others can read.
    std::fs::set_permissions(&other, std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
    let (_, err, code) = inbox(address, &other, &["list"]).await;
    assert!(code == 2 && err.contains("chmod 600"), "{err}");
    let (_, err, code) = run(&["inbox", "list", "--inbox", &at]).await;
    assert!(code == 2 && err.contains("--inbox-token-file"), "{err}");
    let secret = std::fs::read_to_string(&token).unwrap();
    let logged = bridge.end().await;
    assert!(logged.contains("a question in the inbox was answered"), "{logged}");
    assert!(!logged.contains(secret.trim()) && !logged.contains("slow"), "{logged}");
    std::fs::remove_dir_all(folder).unwrap();
}

/// Without a word about a token there is one, for as long as the bridge runs, and a question can be declined.
#[tokio::test]
async fn a_token_is_made_where_both_commands_look() {
    let (address, folder) =
        (free(), std::env::temp_dir().join(format!("mrtr-inbox-run-{}", std::process::id())));
    std::fs::create_dir(&folder).unwrap();
    let at = address.to_string();
    let token = folder.join(format!("mrtr-inbox-127.0.0.1-{}.token", address.port()));
    // What one that died has left.
    std::fs::write(&token, "old").unwrap();
    let args = [
        "bridge",
        "--listen",
        "127.0.0.1:0",
        "--era",
        "legacy",
        "--inbox",
        &at,
        "--",
        MRTR,
        "serve",
        "--stdio",
    ];
    let bridge = Listening::start_with(&args, |command| {
        command.env("XDG_RUNTIME_DIR", &folder);
    })
    .await;
    let ask = async |words: &[&str]| {
        let mut command = Command::new(MRTR);
        command.arg("inbox").args(words).args(["--inbox", &at]).env("XDG_RUNTIME_DIR", &folder);
        command.output().await.unwrap()
    };
    let done = ask(&["decline", "7"]).await;
    assert_eq!(done.status.code(), Some(4), "{}", String::from_utf8_lossy(&done.stderr));
    assert!(String::from_utf8_lossy(&done.stderr).contains("no such question"));
    assert_eq!(ask(&["list"]).await.status.code(), Some(0));
    bridge.end().await;
    assert!(!token.exists(), "it goes with its bridge");
    std::fs::remove_dir_all(folder).unwrap();
}
