//! Servers on a pipe that die, or say too much.

use std::time::Duration;

use mrtr_core::client::NoAnswers;
use mrtr_tokio::client::{CallError, Client, Options, Stderr, WireError};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader},
    process::Command,
};

use crate::support::{client_config, text};

#[cfg(unix)]
fn shell(script: &str, options: Options) -> Client {
    let mut command = Command::new("sh");
    command.arg("-c").arg(script);
    Client::stdio(command, client_config(), options)
}

#[cfg(unix)]
#[tokio::test]
async fn a_child_that_dies_says_how_and_what_it_said_last_r_185() {
    let client = shell("read line; echo no licence >&2; exit 3", Options::default());
    let failed = client.call_tool("echo", "{}", &NoAnswers).await.unwrap_err();
    let CallError::Wire(WireError::Ended(ended)) = &failed else { panic!("{failed}") };
    assert_eq!((ended.status.unwrap().code(), &*ended.last), (Some(3), &[String::from("no licence")][..]));
    assert!(failed.to_string().contains("exit status: 3") && failed.to_string().contains("no licence"));

    // One that dies before it is asked, and one that is killed.
    let client = shell("echo unasked >&2; exit 4", Options::default());
    let failed = client.call_tool("echo", "{}", &NoAnswers).await.unwrap_err();
    assert!(
        failed.to_string().contains("exit status: 4") && failed.to_string().contains("unasked"),
        "{failed}"
    );
    let client = shell("read line; kill -9 $$", Options::default());
    let failed = client.call_tool("echo", "{}", &NoAnswers).await.unwrap_err();
    assert!(failed.to_string().contains("signal: 9"), "{failed}");

    // What the command says of its standard error is done, if that is wanted.
    let mut options = Options::default();
    options.stderr = Stderr::AsCommanded;
    let mut command = Command::new("sh");
    command.arg("-c").arg("read line; echo unheard >&2; exit 5").stderr(std::process::Stdio::null());
    let client = Client::stdio(command, client_config(), options);
    let failed = client.call_tool("echo", "{}", &NoAnswers).await.unwrap_err();
    assert!(failed.to_string().contains("exit status: 5") && !failed.to_string().contains("unheard"));
}

/// A client whose server says this once it is asked, `ID` being the id it was asked under, and then stays silent.
fn saying(said: impl Fn(&str) -> String + Send + 'static, options: Options) -> Client {
    let (ours, theirs) = tokio::io::duplex(64 << 10);
    tokio::spawn(async move {
        let (input, mut output) = tokio::io::split(theirs);
        let mut lines = BufReader::new(input).lines();
        while let Some(line) = lines.next_line().await.unwrap() {
            if let Some(id) = line.split("\"id\":").nth(1) {
                let id = id.split(',').next().unwrap();
                if line.contains("server/discover") {
                    let versions = r#""supportedVersions":["2026-07-28"],"capabilities":{},"ttlMs":0,"cacheScope":"private""#;
                    let found = format!(
                        "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"resultType\":\"complete\",{versions}}}}}\n"
                    );
                    output.write_all(found.as_bytes()).await.unwrap();
                    continue;
                }
                output.write_all(said(id).as_bytes()).await.unwrap();
            }
        }
    });
    let (input, output) = tokio::io::split(ours);
    Client::pipe(input, output, client_config(), options)
}

const RESULT: &str = r#""result":{"resultType":"complete","content":[{"type":"text","text":"#;

#[tokio::test(start_paused = true)]
async fn a_line_that_is_too_long_fails_its_call_and_no_other() {
    let mut options = Options::default();
    options.limits.message_bytes = 2_000;
    let long = "x".repeat(3_000);
    let started = tokio::time::Instant::now();
    let shapes = [
        format!("{{\"jsonrpc\":\"2.0\",\"id\":ID,{RESULT}\"{long}\"}}]}}}}\n"),
        // It does not say whose it is, and nobody else waits.
        format!("{{{RESULT}\"{long}\"}}]}},\"id\":ID,\"jsonrpc\":\"2.0\"}}\n"),
        // It has no end.
        format!("{{\"jsonrpc\":\"2.0\",\"id\":ID,{RESULT}\"{long}"),
    ];
    for shape in shapes {
        let client = saying(move |id| shape.replace("ID", id), options.clone());
        let failed = client.call_tool("echo", "{}", &NoAnswers).await.unwrap_err();
        assert!(matches!(failed, CallError::Wire(WireError::TooLarge { limit: 2_000 })), "{failed}");
    }
    assert!(started.elapsed() < Duration::from_secs(1), "nothing was waited for");

    // Others that are under way, and calls after it, are not harmed; what is no reply harms nobody.
    let answer =
        |id: &str, text: &str| format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},{RESULT}\"{text}\"}}]}}}}\n");
    let notice =
        format!("{{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":\"{long}\"}}\n");
    let client = saying(
        move |id| match id {
            "2" => String::new(),
            "3" => answer(id, &long),
            _ => format!("{notice}{long}\n{}{}", answer(id, "fine"), answer("2", "late")),
        },
        options,
    );
    let other = client.clone();
    let waits = tokio::spawn(async move { other.call_tool("echo", "{}", &NoAnswers).await });
    tokio::task::yield_now().await;
    let failed = client.call_tool("echo", "{}", &NoAnswers).await.unwrap_err();
    assert!(matches!(failed, CallError::Wire(WireError::TooLarge { .. })), "{failed}");
    assert_eq!(text(&client.call_tool("echo", "{}", &NoAnswers).await.unwrap()), "fine");
    assert_eq!(text(&waits.await.unwrap().unwrap()), "late");
}
