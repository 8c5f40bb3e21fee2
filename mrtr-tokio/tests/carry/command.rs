//! The command itself, as a child process.

use std::process::Stdio;

use mrtr_tokio::client::{Client, Options};
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    process::Command,
};

use crate::support::{Answer, Table, client_config, text};

pub(crate) const MRTR: &str = env!("CARGO_BIN_EXE_mrtr");

/// Standard output, standard error, exit code.
pub(crate) async fn run(args: &[&str]) -> (String, String, i32) {
    let output = Command::new(MRTR).args(args).stdin(Stdio::null()).output().await.unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (text(output.stdout), text(output.stderr), output.status.code().unwrap())
}

#[tokio::test]
async fn demo_goes_all_the_way_with_answers_given_in_advance() {
    let (out, err, code) =
        run(&["demo", "plan", "--answer", "days=3", "--answer", "pace=\"slow\"", "--trace"]).await;
    assert_eq!((out.as_str(), code), ("Lisbon, 3 days, slow\n", 0), "{err}");
    assert!(err.contains("At what pace would you like to see Lisbon in 3 days?"), "{err}");
    assert!(err.contains("What happened: "), "{err}");
    // Answers are not in a trace, and of the state there are eight characters.
    assert!(!err.contains("\"days\":3"), "{err}");
    let state = err.split(" characters ").nth(1).unwrap().split_whitespace().next().unwrap();
    assert_eq!(state.chars().count(), 9, "{state}");
}

#[tokio::test]
async fn without_a_terminal_the_missing_answer_is_named_and_none_is_invented() {
    let (out, err, code) = run(&["demo", "plan", "--answer", "days=3", "--answer", "speed=1"]).await;
    assert_eq!((out.as_str(), code), ("", 3), "{err}");
    assert!(err.contains("not answered: \"pace\"") && err.contains("--answer pace="), "{err}");
    assert!(err.contains("\"speed\" was not used"), "{err}");
    // What this command cannot do is not advised.
    assert!(!err.contains("--save"), "{err}");
    // One that does not fit is not sent either.
    let (_, err, code) = run(&["demo", "plan", "--answer", "days=31"]).await;
    assert_eq!(code, 3, "{err}");
    assert!(err.contains("days"), "{err}");
    // What may be chosen is said, also to who has chosen something else.
    let (_, err, _) = run(&["demo", "--answer", "days=3", "--answer", "pace=slow"]).await;
    assert!(
        err.contains("not JSON at byte 0") && err.contains(r#"one of "slow", "normal", "fast""#),
        "{err}"
    );
    assert!(run(&["demo", "--answer", "days=3"]).await.1.contains(r#"one of "slow", "normal", "fast""#));
    // Nothing but a yes is a yes.
    for other in [r#"sure={"action":"yes"}"#, r#"sure={"confirm":false}"#, "sure=false"] {
        let (out, err, code) = run(&["demo", "delete_files", "--answer", other]).await;
        assert_eq!((out.as_str(), code), ("", 3), "{other}: {err}");
    }
    // A refusal that somebody gave is sent.
    for no in ["sure=decline", r#"sure={"action":"decline"}"#] {
        let (out, err, code) = run(&["demo", "delete_files", "--answer", no]).await;
        assert_eq!((out.as_str(), code), ("Nothing was deleted.\n", 0), "{err}");
    }
}

#[tokio::test]
async fn what_makes_no_sense_is_refused_before_anything_is_sent() {
    let cases: [&[&str]; 14] = [
        &["call", "http://127.0.0.1:1/mcp", "file:///a", "--kind", "resource", "--args", r#"{"a":1}"#],
        &["demo", "plan", "--args", "[]"],
        &["demo", "plan", "--args", ""],
        &["serve", "--listen", "localhost:3000"],
        &["serve", "--listen", "127.0.0.1:0", "--allow-host", "http://name"],
        &["call"],
        &["call", "nowhere", "plain"],
        &["call", "http://127.0.0.1:1/mcp", "plain", "--args", "[]"],
        &["call", "http://127.0.0.1:1/mcp", "plain", "--args", "{bad"],
        &["call", "http://127.0.0.1:1/mcp", "plain", "--answer", "days"],
        &["call", "http://127.0.0.1:1/mcp", "plain", "--header", "bad"],
        &["call", "http://127.0.0.1:1/mcp", "plain", "--", "command"],
        &["call", "--stdio", "plain"],
        &["serve"],
    ];
    for args in cases {
        let (out, err, code) = run(args).await;
        assert_eq!((out.as_str(), code), ("", 2), "{args:?}: {err}");
    }
    // What is expected is said, and an answer whose key was forgotten is not repeated.
    assert!(run(&["serve", "--listen", "localhost:3000"]).await.1.contains("127.0.0.1:3000"));
    let (_, err, _) = run(&["call", "http://127.0.0.1:1/mcp", "plain", "--answer", "hunter2"]).await;
    assert!(err.contains("number 1 is not KEY=JSON") && !err.contains("hunter2"), "{err}");
    // Nobody listens there, and the reason is the system's.
    let (_, err, code) = run(&["call", "http://127.0.0.1:1/mcp", "plain"]).await;
    assert!(code == 7 && err.contains("refused"), "{err}");
    let (_, err, code) = run(&["call", "--stdio", "plain", "--", "/no/such/program"]).await;
    assert!(code == 7 && err.contains("/no/such/program"), "{err}");
}

#[tokio::test]
async fn every_example_tool_works() {
    let cases: [(&[&str], &str); 8] = [
        (&["plain"], "Hello."),
        (&["greet_two", "--answer", "first=\"Ada\"", "--answer", "second=\"Eve\""], "Hello, Ada and Eve!"),
        (&["delete_files", "--answer", "sure=accept"], "Deleted 3 files."),
        (&["summarize", "--answer", "summary=\"Short.\""], "person says: Short."),
        (&["list_project", "--answer", "folders=[\"file:///tmp\"]"], "file:///tmp"),
        (&["connect_account", "--answer", "consent=accept"], "Your calendar account is connected."),
        (&["add_file", "--args", r#"{"name":"a.txt"}"#], "The inbox has 4 files now."),
        (
            &[
                "book_table",
                "--answer",
                "date=\"2026-11-30\"",
                "--answer",
                "date#1=\"2026-12-24\"",
                "--answer",
                "time=\"19:30\"",
                "--answer",
                "book=true",
            ],
            "Booked: a table for 2 on 2026-12-24 at 19:30. Reference T",
        ),
    ];
    for (args, expected) in cases {
        let (out, err, code) = run(&[&["demo"], args].concat()).await;
        assert!(code == 0 && out.starts_with(expected), "{args:?}: {out}{err}");
    }
}

#[tokio::test]
async fn call_over_stdio_and_over_http() {
    let over_stdio = [
        "call",
        "--stdio",
        "plan",
        "--args",
        r#"{"city":"Oslo"}"#,
        "--answer",
        "days=1",
        "--answer",
        "pace=\"fast\"",
        "--",
        MRTR,
        "serve",
        "--stdio",
    ];
    let (out, err, code) = run(&over_stdio).await;
    assert_eq!((out.as_str(), code), ("Oslo, 1 day, fast\n", 0), "{err}");

    let mut server = Command::new(MRTR);
    server
        .args(["serve", "--listen", "127.0.0.1:0"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true);
    let mut server = server.spawn().unwrap();
    let mut lines = BufReader::new(server.stdout.take().unwrap()).lines();
    let url = lines.next_line().await.unwrap().unwrap();
    let (out, err, code) = run(&["call", &url, "plain", "--args", r#"{"text":"hi"}"#]).await;
    assert_eq!((out.as_str(), code), ("hi\n", 0), "{err}");
    let (out, _, code) = run(&["call", &url]).await;
    assert!(code == 0 && out.contains("delete_files"), "{out}");
    let (out, err, code) = run(&["call", &url, "nonesuch"]).await;
    assert_eq!((out.as_str(), code), ("", 4), "{err}");
}

#[tokio::test]
async fn the_library_drives_the_command_as_its_child_and_lets_it_end() {
    let mut command = Command::new(MRTR);
    command.args(["serve", "--stdio"]).stderr(Stdio::null());
    let client = Client::stdio(command, client_config(), Options::default());
    let table = Table::new([
        ("days", Answer::Accept(r#"{"days":3}"#.into())),
        ("pace", Answer::Accept(r#"{"pace":"slow"}"#.into())),
    ]);
    let reply = client.call_tool("plan", r#"{"city":"Lisbon"}"#, &table).await.unwrap();
    assert_eq!((text(&reply).as_str(), reply.rounds()), ("Lisbon, 3 days, slow", 3));
    client.close().await;
}

#[tokio::test]
async fn keys_are_made_for_their_owner_alone() {
    let path = std::env::temp_dir().join(format!("mrtr-keygen-{}", std::process::id()));
    let _ = std::fs::remove_file(&path);
    let text = path.to_str().unwrap();
    assert_eq!(run(&["keygen", "--out", text]).await.2, 0);
    // Never overwritten.
    assert_eq!(run(&["keygen", "--out", text]).await.2, 1);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }
    let served = [
        "call",
        "--stdio",
        "plain",
        "--args",
        r#"{"text":"hi"}"#,
        "--",
        MRTR,
        "serve",
        "--stdio",
        "--key-file",
        text,
    ];
    let (out, err, code) = run(&served).await;
    assert_eq!((out.as_str(), code), ("hi\n", 0), "{err}");
    // With a key of its own there is nothing to warn of.
    assert_eq!(err, "");
    std::fs::remove_file(&path).unwrap();
}

/// Nobody takes a result for written that is not.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_result_that_cannot_be_written_is_a_failure() {
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let child = Command::new(MRTR).arg("keygen").stdout(full).stderr(Stdio::piped()).spawn().unwrap();
    let output = child.wait_with_output().await.unwrap();
    let err = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{err}");
    assert!(err.contains("standard output: No space left"), "{err}");
}

/// The url that is printed is one that reaches the server, at whatever address of this machine it listens.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn the_printed_url_is_where_it_listens() {
    let v6 = tokio::net::TcpListener::bind("[::1]:0").await.is_ok();
    for address in ["127.0.0.1:0", "127.0.0.2:0", "[::1]:0"].into_iter().take(if v6 { 3 } else { 2 }) {
        let (_server, url) = served_at(address, &[]).await;
        let (out, err, code) = run(&["call", &url, "plain", "--args", r#"{"text":"hi"}"#]).await;
        assert_eq!((out.as_str(), code), ("hi\n", 0), "{url}: {err}");
    }
}

async fn served(more: &[&str]) -> (tokio::process::Child, String) {
    served_at("127.0.0.1:0", more).await
}

async fn served_at(address: &str, more: &[&str]) -> (tokio::process::Child, String) {
    let mut server = Command::new(MRTR);
    server.args(["serve", "--listen", address]).args(more);
    server.stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true);
    let mut server = server.spawn().unwrap();
    let mut lines = BufReader::new(server.stdout.take().unwrap()).lines();
    let url = lines.next_line().await.unwrap().unwrap();
    (server, url)
}

#[tokio::test]
async fn servers_of_the_eras_with_sessions_are_called_alike() {
    let (_server, url) = served(&[]).await;
    let answers = ["--args", r#"{"city":"Oslo"}"#, "--answer", "days=2", "--answer", "pace=\"slow\""];
    for era in [&["--era", "legacy"][..], &["--era", "modern"], &[]] {
        let (out, err, code) = run(&[&["call", &url, "plan"], era, &answers].concat()).await;
        assert_eq!((out.as_str(), code), ("Oslo, 2 days, slow\n", 0), "{era:?}: {err}");
        let stdio = [&["call", "--stdio", "plan"], era, &answers, &["--", MRTR, "serve", "--stdio"]].concat();
        let (out, err, code) = run(&stdio).await;
        assert_eq!((out.as_str(), code), ("Oslo, 2 days, slow\n", 0), "{era:?}: {err}");
    }
    // A list asks nothing.
    let (out, err, code) = run(&["call", &url, "--answer", "days=2"]).await;
    assert!(code == 0 && out.contains("plan") && err.contains("\"days\" was not used"), "{err}");
    // Questions without keys are numbered, and one that is not answered is a failure of its own.
    let numbered = ["call", &url, "delete_files", "--era", "legacy", "--answer", "1=accept"];
    assert_eq!(run(&numbered).await.0, "Deleted 3 files.\n");
    let (out, err, code) =
        run(&["call", &url, "greet_two", "--era", "legacy", "--answer", "1=decline"]).await;
    assert_eq!((out.as_str(), code), ("", 3), "{err}");
    assert!(err.contains("--answer 2="), "{err}");
    // What cannot be saved is not silently lost.
    let file = std::env::temp_dir().join(format!("mrtr-legacy-save-{}", std::process::id()));
    let save = ["--era", "legacy", "--save", file.to_str().unwrap()];
    let (_, err, code) = run(&[&["call", &url, "greet_two"][..], &save].concat()).await;
    assert!(code == 3 && err.contains("not saved: a server of 2025-11-25"), "{err}");
    assert!(!file.exists());
    // A server of one era is not a server of the other.
    let (_modern, url) = served(&["--modern-only"]).await;
    let (_, err, code) = run(&["call", &url, "plain", "--args", r#"{"text":"hi"}"#, "--era", "legacy"]).await;
    assert_eq!(code, 0, "{err}");
}

#[tokio::test]
async fn heads_are_shown_without_what_is_secret() {
    let (_server, url) = served(&[]).await;
    let call =
        ["call", &url, "plain", "--args", r#"{"text":"hi"}"#, "--trace-headers", "--header", "X-Key: secret"];
    let (_, err, code) = run(&call).await;
    assert_eq!(code, 0, "{err}");
    for shown in
        ["→ POST /mcp", "→   mcp-method: tools/call", "→   mcp-name: plain", "← 200 OK", "←   content-type:"]
    {
        assert!(err.contains(shown), "{shown}: {err}");
    }
    assert!(err.contains("x-key: (6 bytes, not shown)") && !err.contains("secret"), "{err}");
    let (_, err, _) = run(&[&call[..], &["--era", "legacy"]].concat()).await;
    assert!(err.contains("mcp-session-id: (32 bytes, not shown)"), "{err}");
}

#[tokio::test]
async fn proxies_are_those_of_the_environment() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let proxy = format!("http://{}", listener.local_addr().unwrap());
    let asked = tokio::spawn(async move {
        let mut lines = BufReader::new(listener.accept().await.unwrap().0).lines();
        lines.next_line().await.unwrap().unwrap()
    });
    let call = |name: &'static str, value: String, more: &'static [&'static str]| {
        let mut command = Command::new(MRTR);
        command.args(["call", "http://mcp.example.invalid/mcp", "plain"]).args(more).stdin(Stdio::null());
        for name in ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy", "NO_PROXY", "no_proxy"] {
            command.env_remove(name);
        }
        command.env(name, value);
        async move { command.output().await.unwrap() }
    };
    // Somebody is asked, and hangs up.
    assert_eq!(call("http_proxy", proxy.clone(), &[]).await.status.code(), Some(7));
    assert_eq!(asked.await.unwrap(), "POST http://mcp.example.invalid/mcp HTTP/1.1");
    // Otherwise the name would have to be found, and there is no such name.
    let direct = call("http_proxy", proxy, &["--proxy", "none"]).await;
    assert_eq!(direct.status.code(), Some(7));
    assert!(!String::from_utf8_lossy(&direct.stderr).contains("proxy"));
    assert_eq!(call("http_proxy", "socks5://p.example".into(), &[]).await.status.code(), Some(2));
}
