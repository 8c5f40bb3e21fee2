//! Exchanges, in several copies now and then, and what may become of them.

use std::{
    collections::BTreeSet,
    net::SocketAddr,
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt as _, Full};
use hyper_util::rt::TokioIo;
use mrtr_core::{
    Limits,
    http::{ParamHeaders, request_headers},
    jsonrpc::admit,
};
use serde_json::{Value, json};
use tokio::{
    net::TcpStream,
    time::{Instant, sleep},
};

use super::TTL;

/// The sentence of every refused state.
const REFUSED: &str = "Invalid or expired requestState";

/// What all clients saw.
#[derive(Default)]
pub(super) struct Tally {
    pub(super) exchanges: AtomicUsize,
    pub(super) complete: AtomicUsize,
    pub(super) retries: AtomicUsize,
    pub(super) busy: AtomicUsize,
    /// Copies that were cut off.
    pub(super) cut_off: AtomicUsize,
    /// Rounds of which at least one copy was.
    pub(super) killed_rounds: AtomicUsize,
    unknown: Mutex<BTreeSet<String>>,
    refused: Mutex<Vec<String>>,
    pub(super) repeated: AtomicUsize,
    pub(super) others_refused: AtomicUsize,
    /// The client took longer than the state lived.
    pub(super) too_slow: AtomicUsize,
}

impl Tally {
    /// Exchanges whose outcome is not known.
    pub(super) fn unknown(&self) -> BTreeSet<String> {
        self.unknown.lock().unwrap().clone()
    }

    /// Retries that were refused while their state was good, and what they were told.
    pub(super) fn refused(&self) -> Vec<String> {
        self.refused.lock().unwrap().clone()
    }
}

/// What the clients of one run share.
pub(super) struct Clients {
    pub(super) tally: Tally,
    address: SocketAddr,
    ids: AtomicU64,
}

/// How a retry ended, after as many copies as it took.
enum Round {
    Reply(Value),
    Unknown,
    /// For no good reason.
    Refused,
    TooSlow,
}

fn params(name: &str, answer: Option<(&str, u64, &str)>) -> Value {
    let mut params = json!({"name": "work", "arguments": {"name": name}, "_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}},
    }});
    if let Some((key, n, state)) = answer {
        params["inputResponses"] = json!({key: {"action": "accept", "content": {"n": n}}});
        params["requestState"] = state.into();
    }
    params
}

impl Clients {
    pub(super) fn new(address: SocketAddr) -> Self {
        Self { tally: Tally::default(), address, ids: AtomicU64::new(1) }
    }

    /// Sends one copy under a new id, on a connection of its own; `None` if it was cut off.
    async fn send(&self, params: &Value) -> Option<Value> {
        let id = self.ids.fetch_add(1, SeqCst);
        let body = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}).to_string();
        let message = admit(body.as_bytes(), &Limits::default()).unwrap();
        let mut request = Request::post("/mcp").header("Host", "localhost").header("Connection", "close");
        for (name, value) in request_headers(&message, ParamHeaders::NONE).unwrap().iter() {
            request = request.header(name, value);
        }
        let request = request.body(Full::new(Bytes::from(body.clone()))).unwrap();
        let stream = TcpStream::connect(self.address).await.unwrap();
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.ok()?;
        // An error is a connection that was cut off, which shows below.
        tokio::spawn(async move { drop(connection.await) });
        let response = sender.send_request(request).await.ok()?;
        let bytes = response.into_body().collect().await.ok()?.to_bytes();
        let reply: Value = serde_json::from_slice(&bytes)
            .unwrap_or_else(|error| panic!("{error}: {:?}", String::from_utf8_lossy(&bytes)));
        assert_eq!(reply["id"], json!(id));
        Some(reply)
    }

    /// One retry of a state that was handed out after `issued`. `cut_off` is shared by all copies of it.
    async fn retry(&self, name: &str, params: &Value, issued: Instant, cut_off: &AtomicBool) -> Round {
        let tally = &self.tally;
        tally.retries.fetch_add(1, SeqCst);
        loop {
            let Some(reply) = self.send(params).await else {
                tally.cut_off.fetch_add(1, SeqCst);
                if !cut_off.swap(true, SeqCst) {
                    tally.killed_rounds.fetch_add(1, SeqCst);
                }
                continue;
            };
            if reply["error"].is_null() {
                return Round::Reply(reply);
            }
            if reply["error"]["data"]["retry"] == json!(true) {
                tally.busy.fetch_add(1, SeqCst);
                sleep(Duration::from_millis(50)).await;
                continue;
            }
            if issued.elapsed() >= TTL {
                tally.too_slow.fetch_add(1, SeqCst);
                return Round::TooSlow;
            }
            let message = reply["error"]["message"].as_str().unwrap();
            if message.starts_with("Outcome unknown") {
                tally.unknown.lock().unwrap().insert(name.to_owned());
                return Round::Unknown;
            }
            let age = issued.elapsed();
            tally.refused.lock().unwrap().push(format!("{name} after at most {age:?}: {message}"));
            return Round::Refused;
        }
    }

    /// A retry, in two copies at once now and then: both get the same.
    async fn copies(&self, name: &str, params: &Value, issued: Instant, dice: u64) -> Round {
        let cut_off = AtomicBool::new(false);
        let one = self.retry(name, params, issued, &cut_off);
        if !dice.is_multiple_of(5) {
            return one.await;
        }
        let two = async {
            sleep(Duration::from_millis(dice % 60)).await;
            self.retry(name, params, issued, &cut_off).await
        };
        match tokio::join!(one, two) {
            (Round::Reply(one), Round::Reply(two)) => {
                assert_eq!(one["result"], two["result"], "{name}: two copies, two replies");
                self.tally.repeated.fetch_add(1, SeqCst);
                Round::Reply(one)
            }
            // One of them may come too late, but not learn another end.
            (Round::TooSlow, other) | (other, Round::TooSlow) => other,
            // With a reply for the other copy its replica lives, and the tally will say that nothing explains this.
            (Round::Unknown, _) | (_, Round::Unknown) => Round::Unknown,
            (Round::Refused, _) | (_, Round::Refused) => Round::Refused,
        }
    }

    /// One exchange from its first request to its end.
    pub(super) async fn exchange(&self, name: &str, dice: u64) {
        let tally = &self.tally;
        let first = params(name, None);
        let (mut reply, mut issued) = loop {
            let now = Instant::now();
            if let Some(reply) = self.send(&first).await {
                break (reply, now);
            }
        };
        let mut last = first;
        for (key, n) in [("a", dice % 100), ("b", dice / 7 % 100)] {
            let state =
                reply["result"]["requestState"].as_str().unwrap_or_else(|| panic!("{reply}")).to_owned();
            last = params(name, Some((key, n, &state)));
            let began = Instant::now();
            reply = match self.copies(name, &last, issued, dice).await {
                Round::Reply(reply) => reply,
                Round::Unknown | Round::Refused | Round::TooSlow => return,
            };
            // Other answers to the same state, now and then, are refused with the one sentence.
            if dice.is_multiple_of(3) && issued.elapsed() + Duration::from_secs(1) < TTL {
                let others = params(name, Some((key, n + 1, &state)));
                if let Some(refused) = self.send(&others).await {
                    assert_eq!(refused["error"]["message"], json!(REFUSED), "{name}");
                    tally.others_refused.fetch_add(1, SeqCst);
                }
            }
            if key == "a" {
                issued = began;
            }
        }
        assert_eq!(reply["result"]["resultType"], json!("complete"), "{name}: {reply}");
        tally.complete.fetch_add(1, SeqCst);
        // The reply was lost on its way, now and then: the same retry again.
        if dice.is_multiple_of(4)
            && issued.elapsed() + Duration::from_secs(1) < TTL
            && let Some(again) = self.send(&last).await
            && issued.elapsed() < TTL
        {
            assert_eq!(again["result"], reply["result"], "{name}");
            tally.repeated.fetch_add(1, SeqCst);
        }
    }
}
