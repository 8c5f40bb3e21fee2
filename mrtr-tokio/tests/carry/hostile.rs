//! The client against every case of the test kit, over real HTTP and over pipes: it ends as a correct client does.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use mrtr_core::{
    client::{Call, Config, Policy, Stopped},
    testkit::{self, Carrier, Case, Expected},
    wire::{AskKind, ClientCapabilities, Implementation},
};
use mrtr_tokio::{
    client::{Answer, Answerer, CallError, Client, Options, Question, WireError},
    hostile,
};
use tokio::{net::TcpListener, task::JoinSet};

/// Accepts everything but scripts, and gives each field its first choice.
struct Willing;

impl Answerer for Willing {
    async fn answer(&mut self, question: Question<'_>) -> Answer {
        let request = question.request();
        match request.kind() {
            AskKind::Form => {
                let word = request.requested_schema().and_then(|schema| {
                    schema.get("properties")?.get("word")?.get("enum")?.items()?.next()?.as_string()
                });
                Answer::Accept(
                    word.map_or_else(|| String::from("{}"), |word| format!(r#"{{"word":"{word}"}}"#)),
                )
            }
            AskKind::Url if request.url().is_some_and(|url| url.starts_with("javascript:")) => Answer::Cancel,
            AskKind::Url => Answer::AcceptUrl,
            AskKind::Roots => Answer::Roots("[]".into()),
            AskKind::Sampling => Answer::Unavailable("nothing here samples".into()),
        }
    }
}

/// Short of patience, so that what takes its time takes little.
fn config() -> Config {
    let mut policy = Policy::default();
    policy.request_timeout = Duration::from_millis(1_500);
    policy.request_longest = Duration::from_millis(2_500);
    policy.pause_first = Duration::from_millis(1);
    policy.pause_longest = Duration::from_millis(2);
    Config::new(Implementation::new("t", "1"), ClientCapabilities::default().all_but_sampling())
        .policy(policy)
}

trait Capabilities {
    fn all_but_sampling(self) -> Self;
}

impl Capabilities for ClientCapabilities {
    fn all_but_sampling(mut self) -> Self {
        (self.form, self.url, self.roots) = (true, true, true);
        self
    }
}

fn kind(ended: &Result<(), CallError>) -> Option<Expected> {
    Some(match ended {
        Ok(()) => Expected::Completes,
        Err(CallError::Peer(_) | CallError::StateRefused(_)) => Expected::PeerError,
        Err(CallError::Violation(_) | CallError::Wire(WireError::Http(_) | WireError::TooLarge { .. })) => {
            Expected::Refuses
        }
        Err(CallError::Stopped(Stopped::Lost) | CallError::Wire(WireError::Broken)) => Expected::Breaks,
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
    client.call(call, &mut Willing).await.map(drop)
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
        if kind(&ended) != Some(expected) {
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
        Client::http(&format!("http://{address}/{}", case.name()), config(), Options::default()).unwrap()
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
        Client::pipe(input, output, config(), Options::default())
    });
    assert_eq!(wrong.await, [""; 0]);
    assert_eq!(*faults.lock().unwrap(), [""; 0]);
}
