//! The client against every case of the test kit, over real HTTP and over pipes: it ends as a correct client does.

use std::{
    process::Stdio,
    sync::{Arc, Mutex},
    time::Duration,
};

use mrtr_core::{
    client::{Answerer, Answering, Call, Config, Elicit, ElicitUrl, ListRoots, Policy, Question, Stopped},
    form::Elicited,
    testkit::{self, Carrier, Case, Expected},
    wire::{Action, ClientCapabilities, Implementation, Root},
};
use mrtr_tokio::{
    client::{CallError, Client, Options, WireError},
    hostile,
};
use tokio::{io::AsyncWriteExt as _, net::TcpListener, process::Command, task::JoinSet};

/// Accepts everything but scripts, and gives each field its first choice.
struct Willing;

impl Answerer for Willing {
    fn forms(&self) -> Option<&dyn Elicit> {
        Some(self)
    }

    fn urls(&self) -> Option<&dyn ElicitUrl> {
        Some(self)
    }

    fn roots(&self) -> Option<&dyn ListRoots> {
        Some(self)
    }
}

impl Elicit for Willing {
    fn elicit<'a>(&'a self, question: Question<'a>) -> Answering<'a, Elicited<String>> {
        let word = question.request().requested_schema().and_then(|schema| {
            schema.get("properties")?.get("word")?.get("enum")?.items()?.next()?.as_string()
        });
        let content = word.map_or_else(|| String::from("{}"), |word| format!(r#"{{"word":"{word}"}}"#));
        Box::pin(async { Ok(Elicited::Accept(content)) })
    }
}

impl ElicitUrl for Willing {
    fn elicit_url<'a>(&'a self, question: Question<'a>) -> Answering<'a, Action> {
        let script = question.request().url().is_some_and(|url| url.starts_with("javascript:"));
        Box::pin(async move { Ok(if script { Action::Cancel } else { Action::Accept }) })
    }
}

impl ListRoots for Willing {
    fn list_roots<'a>(&'a self, _: Question<'a>) -> Answering<'a, Vec<Root>> {
        Box::pin(async { Ok(Vec::new()) })
    }
}

/// Short of patience, so that what takes its time takes little.
fn config() -> Config {
    let (mut can, mut policy) = (ClientCapabilities::default(), Policy::default());
    (can.form, can.url, can.roots) = (true, true, true);
    policy.request_timeout = Duration::from_secs(3);
    policy.request_longest = Duration::from_secs(4);
    policy.pause_first = Duration::from_millis(1);
    policy.pause_longest = Duration::from_millis(2);
    Config::new(Implementation::new("t", "1"), can).policy(policy)
}

/// A bound that an endless body meets before the time is over.
fn options() -> Options {
    let mut options = Options::default();
    options.limits.message_bytes = 1 << 20;
    options
}

fn kind(ended: &Result<(), CallError>) -> Option<Expected> {
    Some(match ended {
        Ok(()) => Expected::Completes,
        Err(CallError::Peer(_) | CallError::StateRefused(_)) => Expected::PeerError,
        Err(
            CallError::Violation(_)
            | CallError::Wire(WireError::Http(_) | WireError::TooLarge { .. } | WireError::Redirect { .. }),
        ) => Expected::Refuses,
        Err(
            CallError::Stopped(Stopped::Lost)
            | CallError::Wire(WireError::Broken { .. } | WireError::Ended(_)),
        ) => Expected::Breaks,
        Err(CallError::Stopped(_)) => Expected::Stops,
        Err(CallError::Timeout) => Expected::TimesOut,
        Err(_) => return None,
    })
}

async fn call(client: Client, case: &'static Case) -> Result<(), CallError> {
    if case.name() == "interim-on-other-methods" {
        return client.list_tools().await.map(drop);
    }
    let progress = mrtr_core::client::Progress::RequestId;
    let call = Call::new("tools/call", r#"{"name":"hostile","arguments":{"a":1}}"#).progress(progress);
    client.call(call, &Willing).await.map(drop)
}

/// Runs the cases, a few at a time, and says which ended otherwise.
async fn all(carrier: Carrier, client: impl Fn(&'static Case) -> Client) -> Vec<String> {
    let mut cases = testkit::cases().filter_map(|case| Some((case, case.expected(carrier)?)));
    let (mut running, mut wrong) = (JoinSet::new(), Vec::new());
    loop {
        while running.len() < 16
            && let Some((case, expected)) = cases.next()
        {
            let client = client(case);
            running.spawn(async move { (case, expected, call(client, case).await) });
        }
        let Some(done) = running.join_next().await else { return wrong };
        let (case, expected, ended) = done.unwrap();
        if kind(&ended).is_none_or(|kind| !case.allows(carrier, kind)) {
            wrong.push(format!("{}: {ended:?}, and not {expected:?}", case.name()));
        }
    }
}

/// What the kit has to say of the client.
fn watch() -> (Arc<Mutex<Vec<String>>>, impl hostile::Watch + Clone) {
    let faults = Arc::new(Mutex::new(Vec::new()));
    let told = Arc::clone(&faults);
    let watch = move |case: &'static str, fault: &'static str| {
        told.lock().unwrap().push(format!("{case}: {fault}"));
    };
    (faults, watch)
}

// R-003, R-006, R-014, R-015, R-056, R-087, R-089, R-090, R-091, R-092, R-093, R-096, R-103, R-177, R-180, R-187, R-192,
// G-02, G-03, G-04, G-05, G-06, G-07, G-11, G-15, G-33: the same cases as in the suite, with the transport in between.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn over_http() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (faults, watch) = watch();
    let server = tokio::spawn(hostile::http(listener, watch, std::future::pending()));
    let wrong = all(Carrier::Http, |case| {
        Client::http(&format!("http://{address}/{}", case.name()), config(), options()).unwrap()
    });
    assert_eq!(wrong.await, [""; 0]);
    assert_eq!(*faults.lock().unwrap(), [""; 0]);
    server.abort();
}

// R-183, R-185, R-188, R-191, G-30, and those above.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn over_pipes() {
    let (faults, watch) = watch();
    let wrong = all(Carrier::Stdio, |case| {
        let (ours, theirs) = tokio::io::duplex(64 << 10);
        let (input, output) = tokio::io::split(theirs);
        tokio::spawn(hostile::stdio(case, input, output, watch.clone()));
        let (input, output) = tokio::io::split(ours);
        // The cases are those of modern servers; without an era to find out the first request is the call.
        let mut options = Options::default();
        options.connection.legacy.clear();
        Client::pipe(input, output, config(), options)
    });
    assert_eq!(wrong.await, [""; 0]);
    assert_eq!(*faults.lock().unwrap(), [""; 0]);
}

const MRTR: &str = env!("CARGO_BIN_EXE_mrtr");

async fn mrtr(args: &[&str], input: &str) -> (String, String, Option<i32>) {
    let mut child = Command::new(MRTR)
        .arg("hostile")
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Closed at the end of the statement.
    child.stdin.take().unwrap().write_all(input.as_bytes()).await.unwrap();
    let output = child.wait_with_output().await.unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (text(output.stdout), text(output.stderr), output.status.code())
}

const CALL: &str = concat!(
    r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"hostile","arguments":{}}}"#,
    "\n"
);

#[tokio::test]
async fn the_command_serves_a_case_and_says_what_the_client_does_wrong() {
    let (out, err, code) = mrtr(&["state-number", "--stdio"], CALL).await;
    assert_eq!((out.lines().count(), err.as_str(), code), (1, "", Some(0)));
    assert!(out.contains(r#""requestState":42"#));
    // Half a client goes on with it.
    let retry = CALL.replace(r#""name""#, r#""requestState":"42","name""#).replace(r#""id":1"#, r#""id":2"#);
    let (_, err, code) = mrtr(&["state-number", "--stdio"], &format!("{CALL}{retry}")).await;
    assert!(err.contains("state-number: the client went on"), "{err}");
    assert_eq!(code, Some(1));
    // It dies when it should, in the middle of a line.
    let (out, err, code) = mrtr(&["death-in-mid-line", "--stdio"], CALL).await;
    assert!(code == Some(1) && err.is_empty() && !out.ends_with('\n') && !out.is_empty(), "{out}{err}");
}

#[tokio::test]
async fn the_command_lists_the_cases_for_people_and_for_programs() {
    let (out, _, code) = mrtr(&["--list"], "").await;
    assert!(code == Some(0) && testkit::cases().all(|case| out.contains(case.right())), "{out}");
    let (out, _, _) = mrtr(&["--list", "death"], "").await;
    assert!(out.starts_with("death (breaks) "), "{out}");
    let (out, _, _) = mrtr(&["--list", "--json"], "").await;
    let cases: Vec<serde_json::Value> = out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(cases.len(), testkit::cases().count());
    assert!(cases.iter().all(|case| case["http"].is_string() || case["stdio"].is_string()), "{out}");
    for (args, hint) in [
        (&["--stdio"] as &[&str], "CASE"),
        (&["state-nmber", "--stdio"], "--list"),
        (&["state", "--stdio"], "state-number"),
        (&["half-line", "--listen", "127.0.0.1:0"], "--stdio"),
        (&["half-line"], "--listen"),
        (&["half-line", "--stdio", "--json"], "--json"),
    ] {
        let (out, err, code) = mrtr(args, "").await;
        assert!(out.is_empty() && code == Some(2) && err.contains(hint), "{args:?}: {err}");
    }
}

/// R-185: a child that dies is started anew for the next call, and one that dies in each is given up.
#[tokio::test]
async fn the_command_as_a_child_that_dies() {
    let mut command = Command::new(MRTR);
    command.args(["hostile", "death-in-mid-exchange", "--stdio"]).stderr(Stdio::null());
    let client = Client::stdio(command, config(), Options::default());
    for _ in 0..2 {
        let failed = client.call_tool("hostile", "{}", &Willing).await.unwrap_err();
        assert_eq!(kind(&Err(failed)), Some(Expected::Breaks));
    }
    client.close().await;
}
