//! Random interleavings of hosts, retries, duplicates, drops, deaths and timeouts in virtual time (design §9, R-248, B-28, B-61).
//!
//! Every host request gets exactly one final answer; without an injected fault it is the upstream's, byte for byte; no
//! answer reaches another call's question; parked calls never exceed their bound; in the end nothing is left.
//! `MRTR_BRIDGE_EXCHANGES=200000` runs more of them.

mod plan;
mod upstream;

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    time::Duration,
};

use mrtr_core::{
    bridge::{Config, HostId, HostKind, LinkId, Transport},
    wire::Era,
};
use mrtr_tests::bridge::{Said, World, config, meta};
use serde_json::{Value, json};

use self::plan::{Fault, Plan, Random, answer, message, outcome, plan};

/// A call as the legacy upstream sees it.
struct Running {
    k: u64,
    round: usize,
    open: BTreeMap<i64, String>,
}

#[derive(Default)]
struct Process {
    calls: BTreeMap<i64, Running>,
    asked: i64,
}

impl Process {
    /// Nothing but this exchange runs here.
    fn only(&self, k: u64) -> bool {
        self.calls.len() == 1 && self.calls.values().all(|running| running.k == k)
    }
}

enum Event {
    Start(u64),
    /// A modern host's retry.
    Retry {
        k: u64,
        principal: String,
        params: Value,
        expected: bool,
    },
    /// A legacy host's answer.
    Answer {
        host: HostId,
        message: Value,
    },
    Upstream {
        link: LinkId,
        stream: Option<i64>,
        message: Value,
    },
    /// A legacy host does not want its call any more.
    Cancel {
        host: HostId,
        k: u64,
    },
    Close(HostId),
    Kill(LinkId, u64),
}

struct Simulation {
    world: World,
    seed: u64,
    transport: Transport,
    era: Era,
    random: Random,
    events: BTreeMap<(u64, u64), Event>,
    number: u64,
    processes: BTreeMap<LinkId, Process>,
    /// Whose a modern POST is, and whether the outcome of the exchange is to be right.
    posts: BTreeMap<HostId, (u64, bool)>,
    sessions: BTreeMap<String, (HostId, bool)>,
    waiting: BTreeMap<HostId, VecDeque<u64>>,
    calls: BTreeSet<(HostId, u64)>,
    finals: BTreeMap<HostId, u32>,
    closed: BTreeSet<HostId>,
    done: BTreeMap<u64, Value>,
    busy: u64,
    bound: usize,
}

impl Simulation {
    fn new(seed: u64, transport: Transport, era: Era) -> Self {
        Self::with(config(&[("up", transport, era)]), seed)
    }

    fn with(mut config: Config, seed: u64) -> Self {
        let (transport, era) = (config.upstreams[0].transport, config.upstreams[0].era);
        // Each of the three principals' legacy sessions has one for itself, and what hangs or dies keeps one for a while.
        config.pool.processes = 16;
        // What hangs is under way until its deadline.
        config.quota.calls = usize::MAX;
        let bound = match transport {
            // Nothing waits that is run again.
            _ if !config.upstreams[0].replay.is_empty() => 0,
            Transport::Pipe => config.pool.processes,
            Transport::Http => config.pool.http_sessions,
        };
        Self {
            world: World::new(config),
            seed,
            transport,
            era,
            random: Random(seed | 1),
            events: BTreeMap::new(),
            number: 0,
            processes: BTreeMap::new(),
            posts: BTreeMap::new(),
            sessions: BTreeMap::new(),
            waiting: BTreeMap::new(),
            calls: BTreeSet::new(),
            finals: BTreeMap::new(),
            closed: BTreeSet::new(),
            done: BTreeMap::new(),
            busy: 0,
            bound,
        }
    }

    fn at(&mut self, millis: u64, event: Event) {
        self.number += 1;
        self.events.insert((self.world.now.as_unix_millis() + millis, self.number), event);
    }

    fn soon(&mut self, event: Event) {
        let millis = self.random.below(300);
        self.at(millis, event);
    }

    fn run(&mut self, exchanges: u64, apart: u64) {
        for k in 0..exchanges {
            self.at(k * apart, Event::Start(k));
        }
        while let Some((at, _)) = self.events.keys().next().copied() {
            let now = self.world.now.as_unix_millis();
            self.world.pass(Duration::from_millis(at.saturating_sub(now)));
            self.hear();
            let Some(((_, _), event)) = self.events.pop_first() else { break };
            self.happen(event);
            self.hear();
            let counts = self.world.bridge.counts();
            assert!(counts.parked <= self.bound, "{counts:?}");
        }
        // Whatever hangs ends with its deadline.
        self.world.pass(Duration::from_secs(20_000));
        self.hear();
        while let Some(((_, _), event)) = self.events.pop_first() {
            self.happen(event);
            self.hear();
        }
        self.world.pass(Duration::from_secs(20_000));
        self.hear();
        let counts = self.world.bridge.counts();
        assert_eq!((counts.open, counts.parked, counts.waiting, counts.kept), (0, 0, 0, 0), "{counts:?}");
        for host in self.posts.keys() {
            let finals = self.finals.get(host).copied().unwrap_or(0);
            let closed = self.closed.contains(host);
            assert!(finals == 1 || closed && finals <= 1, "{host:?} got {finals} final answers");
        }
        assert!(self.calls.is_empty(), "{:?} were never answered", self.calls);
        for k in 0..exchanges {
            let plan = plan(k, self.seed);
            let fine = matches!(plan.fault, Fault::None | Fault::Twice | Fault::Partial | Fault::Stolen);
            if fine || self.done.contains_key(&k) {
                let done = self.done.get(&k).unwrap_or_else(|| panic!("exchange {k} has no outcome"));
                assert!(
                    *done == Value::Null || *done == outcome(k, &plan.rounds),
                    "{k} {:?}: {done}",
                    plan.fault
                );
            }
        }
        assert!(self.busy * 4 < exchanges, "{} of {exchanges} found no session", self.busy);
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Start(k) => self.start(k),
            Event::Retry { k, principal, params, expected } => {
                let (host, _) = self.world.call(&principal, &super::forms(), &params);
                self.posts.insert(host, (k, expected));
                if plan(k, self.seed).fault == Fault::Dropped && expected && self.random.chance(50) {
                    let (again, wait) =
                        (Event::Retry { k, principal, params, expected: false }, self.random.below(8_000));
                    self.soon(Event::Close(host));
                    self.at(wait, again);
                }
            }
            Event::Answer { host, message } => self.world.send(host, &message),
            Event::Cancel { host, k } => {
                if self.calls.remove(&(host, k)) {
                    let params = json!({"requestId": k});
                    self.world.send(
                        host,
                        &json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}),
                    );
                }
            }
            Event::Upstream { link, stream, message } => {
                if self.processes.contains_key(&link) {
                    // On HTTP each message comes on the stream of its call.
                    let stream = stream.filter(|_| self.transport == Transport::Http);
                    self.world.up_raw(link, stream, &message.to_string());
                }
            }
            Event::Close(host) => {
                if !self.finals.contains_key(&host) && self.closed.insert(host) {
                    self.world.bridge.close_host(host, self.world.now);
                    self.world.send_raw(host, "");
                }
            }
            Event::Kill(link, k) => {
                // Only where no other exchange is hit.
                if self.processes.get(&link).is_some_and(|process| process.only(k)) {
                    self.processes.remove(&link);
                    self.world.bridge.close_upstream(link, self.world.now);
                    self.world.send_raw(HostId(0), "");
                }
            }
        }
    }

    fn start(&mut self, k: u64) {
        let plan = plan(k, self.seed);
        if !plan.legacy_host {
            let (host, _) =
                self.world.call(&plan.principal, &super::forms(), &json!({"arguments": {"n": k}}));
            self.posts.insert(host, (k, true));
            return;
        }
        let (host, ready) = match self.sessions.get(&plan.principal) {
            Some(session) => *session,
            None => {
                let host = self.world.host(HostKind::Session, &plan.principal);
                self.sessions.insert(plan.principal.clone(), (host, false));
                self.world.send(
                    host,
                    &json!({"jsonrpc": "2.0", "id": "init", "method": "initialize",
                    "params": {"protocolVersion": "2025-11-25", "capabilities": super::forms()}}),
                );
                (host, false)
            }
        };
        if ready {
            self.legacy_call(host, k);
        } else {
            self.waiting.entry(host).or_default().push_back(k);
        }
    }

    fn legacy_call(&mut self, host: HostId, k: u64) {
        self.calls.insert((host, k));
        self.world.send(host, &json!({"jsonrpc": "2.0", "id": k, "method": "tools/call", "params": {"name": "t", "arguments": {"n": k}}}));
    }

    /// Looks at all that the bridge has said.
    fn hear(&mut self) {
        while !self.world.said.is_empty() {
            for said in self.world.take() {
                match &said {
                    Said::Host { host, last, .. } if self.posts.contains_key(host) => {
                        assert!(last.is_some(), "{said:?}");
                        assert!(!self.closed.contains(host), "{said:?}");
                        self.modern_reply(*host, &said.json());
                    }
                    // The end of a stream whose call was cancelled.
                    Said::Host { raw, .. } if raw.is_empty() => {}
                    Said::Host { host, .. } => self.legacy_message(*host, &said.json()),
                    Said::Up { link, .. } => self.upstream(*link, &said.json()),
                    Said::Closed { link } => {
                        self.processes.remove(link);
                    }
                    Said::Opened { link, .. } => {
                        self.processes.insert(*link, Process::default());
                    }
                    Said::Alive { .. } | Said::Peer { .. } => {}
                    Said::StreamClosed { .. } => {}
                }
            }
        }
    }

    fn modern_reply(&mut self, host: HostId, reply: &Value) {
        let (k, expected) = self.posts[&host];
        *self.finals.entry(host).or_default() += 1;
        assert_eq!(self.finals[&host], 1);
        let plan = plan(k, self.seed);
        let result = &reply["result"];
        match result["resultType"].as_str() {
            Some("complete") => self.outcome(k, &result["content"]),
            Some("input_required") if expected => self.answer(k, &plan, result),
            Some("input_required") => {}
            _ => self.failed(k, &plan, expected, &reply["error"]),
        }
    }

    fn outcome(&mut self, k: u64, content: &Value) {
        let plan = plan(k, self.seed);
        assert_eq!(*content, outcome(k, &plan.rounds), "{k}");
        self.done.insert(k, content.clone());
    }

    fn failed(&mut self, k: u64, plan: &Plan, expected: bool, error: &Value) {
        if error["data"]["retryAfterMs"].is_u64() {
            self.busy += 1;
            self.done.entry(k).or_insert(Value::Null);
        } else if expected {
            let lawful = matches!(plan.fault, Fault::Dies | Fault::Hangs | Fault::TakenBack | Fault::Dropped);
            assert!(lawful, "{k} {:?}: {error}", plan.fault);
        }
    }

    fn answer(&mut self, k: u64, plan: &Plan, result: &Value) {
        let state = &result["requestState"];
        let mut answers = serde_json::Map::new();
        for (key, ask) in result["inputRequests"].as_object().into_iter().flatten() {
            let message = ask["params"]["message"].as_str().unwrap();
            assert!(message.starts_with(&format!("{k}/")), "{k} was asked {message}");
            answers.insert(key.clone(), answer(message));
        }
        if plan.fault == Fault::Abandoned && self.random.chance(60) {
            return;
        }
        if plan.fault == Fault::Stolen {
            let params =
                |n: u64| json!({"arguments": {"n": n}, "requestState": state, "inputResponses": answers});
            for (principal, n) in [("thief", k), (&*plan.principal, k + 1)] {
                let (host, _) = self.world.call(principal, &super::forms(), &params(n));
                let reply = self.world.take().pop().unwrap();
                assert_eq!(reply.json()["error"]["code"], -32602);
                let _ = host;
            }
        }
        if plan.fault == Fault::Partial && answers.len() > 1 {
            let first = answers.keys().next().unwrap().clone();
            answers.retain(|key, _| *key == first);
        }
        let params = json!({"arguments": {"n": k}, "requestState": state, "inputResponses": answers});
        let retry = |params: &Value, expected| Event::Retry {
            k,
            principal: plan.principal.clone(),
            params: params.clone(),
            expected,
        };
        self.soon(retry(&params, true));
        if plan.fault == Fault::Twice {
            self.soon(retry(&params, false));
        }
    }

    fn legacy_message(&mut self, host: HostId, message: &Value) {
        if message["id"] == "init" {
            assert!(message["result"].is_object(), "{message}");
            self.world.send(host, &json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
            for session in self.sessions.values_mut().filter(|session| session.0 == host) {
                session.1 = true;
            }
            for k in self.waiting.remove(&host).into_iter().flatten() {
                self.legacy_call(host, k);
            }
        } else if message["method"] == "elicitation/create" {
            let question = message["params"]["message"].as_str().unwrap();
            let k: u64 = question.split('/').next().unwrap().parse().unwrap();
            // On a pipe nothing says that it is of a call that was cancelled a moment ago.
            let known = self.calls.contains(&(host, k)) || plan(k, self.seed).fault == Fault::Abandoned;
            assert!(known, "{question} is no question of {host:?}");
            if plan(k, self.seed).fault != Fault::Abandoned {
                let reply = json!({"jsonrpc": "2.0", "id": message["id"], "result": answer(question)});
                self.soon(Event::Answer { host, message: reply });
            } else {
                self.soon(Event::Cancel { host, k });
            }
        } else if let Some(k) = message["id"].as_u64() {
            assert!(self.calls.remove(&(host, k)), "a second answer: {message}");
            match message.get("error") {
                Some(error) => {
                    let plan = plan(k, self.seed);
                    let lawful = matches!(plan.fault, Fault::Dies | Fault::Hangs | Fault::TakenBack);
                    assert!(lawful, "{k} {:?}: {error}", plan.fault);
                }
                None => self.outcome(k, &message["result"]["content"]),
            }
        }
    }
}

fn message_of(k: u64, round: usize, question: u64) -> String {
    message(k, round, question)
}

fn exchanges() -> u64 {
    std::env::var("MRTR_BRIDGE_EXCHANGES").ok().and_then(|count| count.parse().ok()).unwrap_or(5_000)
}

/// Half of all exchanges with sessions over HTTP, where there are enough of them.
#[test]
fn many_exchanges_with_legacy_sessions_over_http_r248_b28_b61() {
    Simulation::new(11, Transport::Http, Era::Legacy).run(exchanges() * 2 / 5, 40);
}

/// G-48: the same where each round is a run of its own, and nothing is ever parked.
#[test]
fn many_exchanges_that_are_run_again_g48() {
    let mut config = config(&[("up", Transport::Http, Era::Legacy)]);
    config.upstreams[0].replay = vec!["t".into()];
    Simulation::with(config, 15).run(exchanges() / 5, 40);
}

/// A few processes, for which calls wait.
#[test]
fn many_exchanges_with_few_processes() {
    Simulation::new(12, Transport::Pipe, Era::Legacy).run(exchanges() / 5, 9_000);
}

#[test]
fn many_exchanges_with_a_modern_upstream() {
    Simulation::new(13, Transport::Http, Era::Modern).run(exchanges() / 5, 20);
    Simulation::new(14, Transport::Pipe, Era::Modern).run(exchanges() / 5, 20);
    let _ = meta(json!({}));
}
