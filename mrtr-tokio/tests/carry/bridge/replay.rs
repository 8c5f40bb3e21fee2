//! `mrtr bridge` with tools that are run again instead of parked.

use super::{command::Listening, *};

/// Writes what the server is told into a file, line by line.
const HEARD: &str = r#"tee -a "$0" | "$1" serve --stdio"#;

/// G-48: of two processes with one key, which know nothing of one another, each takes the next round of a tool that is
/// named on the command line of one and in the file of the other. The server gets the call once a round.
#[tokio::test]
async fn rounds_go_to_any_process_g48() {
    let folder = std::env::temp_dir().join(format!("mrtr-replay-{}", std::process::id()));
    std::fs::create_dir(&folder).unwrap();
    let (file, log) = (folder.join("upstreams.toml"), folder.join("heard"));
    let table = format!(
        "[upstreams.a]\ncommand = [\"sh\", \"-c\", {HEARD:?}, {log:?}, {MRTR:?}]\nera = \"legacy\"\nreplay = [\"plan\"]\n"
    );
    std::fs::write(&file, table).unwrap();
    let front =
        ["bridge", "--listen", "127.0.0.1:0", "--principal-header", "X-User", "--key-env", "REPLAY_KEY"];
    let by_file = ["--config", file.to_str().unwrap()];
    let by_words = ["--name", "a", "--era", "legacy", "--replay", "other", "--replay", "plan"];
    let command = ["--", "sh", "-c", HEARD, log.to_str().unwrap(), MRTR];
    let key = mrtr_tokio::keys::generate().unwrap();
    let with_key = |command: &mut Command| {
        command.env("REPLAY_KEY", &*key);
    };
    let one = Listening::start_with(&[&front[..], &by_file].concat(), with_key).await;
    let other = Listening::start_with(&[&front[..], &by_words, &command].concat(), with_key).await;

    let plan = call(1, "plan", r#"{"city":"Lisbon"}"#);
    let retry = |asked: &Value, content: Value| {
        let mut retry: Value = serde_json::from_str(&plan).unwrap();
        let key = asked["result"]["inputRequests"].as_object().unwrap().keys().next().unwrap();
        retry["params"]["requestState"] = asked["result"]["requestState"].clone();
        retry["params"]["inputResponses"] = json!({key: {"action": "accept", "content": content}});
        retry.to_string()
    };
    let days = one.ask("ada", &plan).await;
    assert!(days["result"]["inputRequests"]["u1"].is_object(), "{days}");
    let answered = retry(&days, json!({"days": 3}));
    assert_eq!(other.ask("bob", &answered).await["error"]["code"], -32602);
    let pace = other.ask("ada", &answered).await;
    assert!(pace["result"]["inputRequests"]["u2"].is_object(), "{pace}");
    let done = one.ask("ada", &retry(&pace, json!({"pace": "slow"}))).await;
    assert_eq!(done["result"]["content"][0]["text"], "Lisbon, 3 days, slow", "{done}");
    for bridge in [&one, &other] {
        let metrics = bridge.metrics().await;
        for line in ["mrtr_bridge_calls_rerun_total 1\n", "mrtr_bridge_calls_parked 0\n"] {
            assert!(metrics.contains(line), "{line}: {metrics}");
        }
    }
    one.end().await;
    other.end().await;
    let heard = std::fs::read_to_string(&log).unwrap();
    let count = |method: &str| heard.lines().filter(|line| line.contains(method)).count();
    assert_eq!((count("\"tools/call\""), count("\"notifications/cancelled\"")), (3, 2), "{heard}");
    std::fs::remove_dir_all(folder).unwrap();
}

/// What cannot be meant is said at once.
#[tokio::test]
async fn tools_that_cannot_be_named() {
    for (args, fault) in [
        (&["--replay", "", "--era", "legacy", "--", "cat"][..], "a tool without a name"),
        (&["--replay", "t", "--config", "file.toml"], "--config"),
    ] {
        let mut command = Command::new(MRTR);
        command.args(["bridge", "--listen", "127.0.0.1:0"]).args(args);
        let output = command.output().await.unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(2) && said.contains(fault), "{said}");
    }
}

/// A server that takes its whole grace to end, whatever it is told: there are no more of them than may run, and as many
/// again on their way out. Nobody's call fails for it.
#[cfg(unix)]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn processes_that_do_not_end_count_until_they_have() {
    let folder = std::env::temp_dir().join(format!("mrtr-stubborn-{}", std::process::id()));
    std::fs::create_dir(&folder).unwrap();
    let begun = folder.join("begun");
    let noted = begun.clone();
    let reach = Reach::process(
        move || {
            let mut command = Command::new("sh");
            let script = r#"trap "" TERM; echo $$ >> "$0"; "$1" --log off serve --stdio; sleep 60"#;
            command.args(["-c", script]).arg(&noted).arg(MRTR);
            command
        },
        Stderr::Read,
    );
    let mut config = config(reach.transport(), Era::Legacy);
    config.upstreams[0].replay = vec!["plan".into()];
    config.pool.processes = 2;
    let mut options = Options::default();
    options.grace = Duration::from_millis(500);
    let fronted = front(Bridge::start(config, vec![reach], options).unwrap(), Anonymous::new()).await;
    let alive = || {
        let text = std::fs::read_to_string(&begun).unwrap();
        let is_alive = |pid: &&str| {
            // A zombie has ended, and waits to be seen.
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            !stat.is_empty() && !stat.contains(") Z ")
        };
        (text.lines().count(), text.lines().filter(is_alive).count())
    };
    let mut most = 0;
    for round in 0..12 {
        let (_, reply) = fronted.modern("", &call(round, "plan", r#"{"city":"Lisbon"}"#)).await;
        assert_eq!(reply["result"]["resultType"], "input_required", "{reply}");
        most = most.max(alive().1);
    }
    assert_eq!(alive().0, 12);
    assert!((1..=4).contains(&most), "{most} processes at a time");
    fronted.end().await;
    assert_eq!(alive().1, 0);
    std::fs::remove_dir_all(folder).unwrap();
}
