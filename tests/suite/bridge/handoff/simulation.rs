//! Three processes, retries that go to any of them, and a store that loses, repeats, delays and stops, in virtual time.
//!
//! Every request gets one final answer; no call runs twice and no question is answered twice, whatever happens; with an
//! owner that lives, whoever comes back often enough gets the upstream's own result; in the end nothing is left.
//! `MRTR_BRIDGE_EXCHANGES=20000` runs more of them.

use std::collections::BTreeMap;

use super::*;

struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

/// What the store does to messages.
#[derive(Clone, Copy)]
struct Store {
    loses: u64,
    repeats: u64,
    stops: bool,
    kills: bool,
}

enum Event {
    Start(u64),
    /// A host sends its newest request (again), to any process.
    Come(u64),
    Arrives([u8; 16], Vec<u8>),
    Store(bool),
    Kill(usize),
    Upstream(usize, [u8; 16], LinkId, Option<i64>, Value),
    Leave(usize, [u8; 16], HostId),
}

/// A host's exchange.
struct Exchange {
    rounds: u64,
    /// What was sent last.
    params: Value,
    owner: Option<[u8; 16]>,
    tries: u32,
    done: bool,
    /// It has left in the middle and may find its call cancelled.
    left: bool,
}

struct Simulation {
    worlds: Vec<World>,
    lives: u8,
    random: Random,
    store: Store,
    up: bool,
    events: BTreeMap<(u64, u64), Event>,
    number: u64,
    exchanges: BTreeMap<u64, Exchange>,
    posts: BTreeMap<(usize, HostId), u64>,
    runs: BTreeMap<u64, u32>,
    answered: BTreeMap<(u64, u64), u32>,
    calls: BTreeMap<([u8; 16], LinkId), (u64, i64)>,
    dead: Vec<[u8; 16]>,
    repeated: u64,
}

fn process(life: u8) -> World {
    let mut config = config(&[("up", Transport::Http, Era::Legacy)]);
    config.replicas = true;
    World::seeded(config, life)
}

impl Simulation {
    fn new(seed: u64, store: Store) -> Self {
        Self {
            worlds: (1..=3).map(process).collect(),
            lives: 3,
            random: Random(seed | 1),
            store,
            up: true,
            events: BTreeMap::new(),
            number: 0,
            exchanges: BTreeMap::new(),
            posts: BTreeMap::new(),
            runs: BTreeMap::new(),
            answered: BTreeMap::new(),
            calls: BTreeMap::new(),
            dead: Vec::new(),
            repeated: 0,
        }
    }

    fn at(&mut self, millis: u64, event: Event) {
        self.number += 1;
        let now = self.worlds[0].now.as_unix_millis();
        self.events.insert((now + millis, self.number), event);
    }

    fn run(&mut self, count: u64) {
        for k in 0..count {
            self.at(k * 40, Event::Start(k));
        }
        if self.store.stops {
            for _ in 0..count / 100 + 1 {
                let (at, takes) = (self.random.below(count * 40), self.random.below(20_000));
                self.at(at, Event::Store(false));
                self.at(at + takes, Event::Store(true));
            }
            self.at(count * 40 + 20_001, Event::Store(true));
        }
        if self.store.kills {
            for _ in 0..count / 100 + 1 {
                let (at, which) = (self.random.below(count * 40), self.random.below(3));
                self.at(at, Event::Kill(usize::try_from(which).unwrap()));
            }
        }
        loop {
            let timers = self.worlds.iter().filter_map(|world| world.bridge.poll_timeout());
            let timer = timers.map(|(at, _)| at.as_unix_millis()).min();
            let event = self.events.keys().next().map(|(at, _)| *at);
            let Some(at) = timer.into_iter().chain(event).min() else { break };
            for which in 0..3 {
                let now = self.worlds[which].now.as_unix_millis();
                self.worlds[which].pass(Duration::from_millis(at.saturating_sub(now)));
                self.hear(which);
            }
            if event == Some(at) {
                let (_, event) = self.events.pop_first().unwrap();
                self.happen(event);
            }
        }
        for world in &self.worlds {
            over(world);
            assert_eq!(world.bridge.counts().kept, 0);
        }
        assert!(self.posts.is_empty(), "never answered: {:?}", self.posts);
        for (k, exchange) in &self.exchanges {
            let dead = exchange.owner.is_none_or(|owner| self.dead.contains(&owner));
            assert!(exchange.done || exchange.left || dead, "{k} was given up with an owner that lives");
            assert!(self.runs.get(k).is_none_or(|runs| *runs == 1));
        }
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Start(k) => {
                let rounds = 1 + self.random.below(3);
                let params = json!({"arguments": {"n": k}});
                let exchange = Exchange { rounds, params, owner: None, tries: 0, done: false, left: false };
                self.exchanges.insert(k, exchange);
                self.come(k);
            }
            Event::Come(k) => self.come(k),
            Event::Arrives(epoch, bytes) => {
                if let Some(which) = self.worlds.iter().position(|world| *world.bridge.epoch() == epoch) {
                    self.worlds[which].peer(&bytes);
                    self.hear(which);
                }
            }
            Event::Store(up) => {
                self.up = up;
                for which in 0..3 {
                    self.worlds[which].reachable(up);
                    self.hear(which);
                }
            }
            Event::Kill(which) => {
                self.lives += 1;
                let (now, epoch) = (self.worlds[which].now, *self.worlds[which].bridge.epoch());
                self.dead.push(epoch);
                self.worlds[which] = process(self.lives);
                self.worlds[which].now = now;
                if !self.up {
                    self.worlds[which].reachable(false);
                }
                self.calls.retain(|(of, _), _| *of != epoch);
                // Connections to it break; whoever had one comes back.
                let cut: Vec<_> = self.posts.keys().filter(|(at, _)| *at == which).copied().collect();
                for post in cut {
                    let k = self.posts.remove(&post).unwrap();
                    self.again(k);
                }
            }
            Event::Upstream(which, epoch, link, stream, message) => {
                if *self.worlds[which].bridge.epoch() == epoch {
                    self.worlds[which].up_raw(link, stream, &message.to_string());
                    self.hear(which);
                }
            }
            Event::Leave(which, epoch, host) => {
                if *self.worlds[which].bridge.epoch() == epoch
                    && let Some(k) = self.posts.remove(&(which, host))
                {
                    self.exchanges.get_mut(&k).unwrap().left = true;
                    self.worlds[which].leave(host);
                    self.hear(which);
                    self.again(k);
                }
            }
        }
    }

    fn come(&mut self, k: u64) {
        let which = usize::try_from(self.random.below(3)).unwrap();
        let params = self.exchanges[&k].params.clone();
        let (host, _) = self.worlds[which].call("alice", &forms(), &params);
        self.posts.insert((which, host), k);
        if self.random.chance(3) && params.get("requestState").is_some() {
            let (wait, epoch) = (self.random.below(400), *self.worlds[which].bridge.epoch());
            self.at(wait, Event::Leave(which, epoch, host));
        }
        self.hear(which);
    }

    /// A host that has got no result comes again, if it has anything to come with.
    fn again(&mut self, k: u64) {
        let exchange = self.exchanges.get_mut(&k).unwrap();
        exchange.tries += 1;
        if exchange.params.get("requestState").is_none() {
            // Its first request is not sent again: that would be another call.
            exchange.owner = None;
        } else if exchange.tries < 12 {
            let wait = 500 + self.random.below(2_000);
            self.at(wait, Event::Come(k));
        }
    }

    fn hear(&mut self, which: usize) {
        while !self.worlds[which].said.is_empty() {
            for said in self.worlds[which].take() {
                match said {
                    Said::Host { host, ref raw, last, .. } => {
                        let reply = serde_json::from_str(raw).unwrap();
                        if last.is_some() {
                            // Exactly one, and none for a host that has left.
                            let k = self.posts.remove(&(which, host)).expect("one answer for one request");
                            self.replied(k, which, &reply);
                        }
                    }
                    Said::Up { link, call, .. } => self.upstream(which, link, call, &said.json()),
                    Said::Peer { peer, bytes, .. } if self.up => {
                        let copies = match self.random.below(100) {
                            dice if dice < self.store.loses => 0,
                            dice if dice < self.store.loses + self.store.repeats => 2,
                            _ => 1,
                        };
                        self.repeated += u64::from(copies == 2);
                        for _ in 0..copies {
                            let wait = self.random.below(200);
                            self.at(wait, Event::Arrives(peer, bytes.clone()));
                        }
                    }
                    _ => {}
                }
            }
        }
    }

    fn replied(&mut self, k: u64, which: usize, reply: &Value) {
        let result = &reply["result"];
        let epoch = *self.worlds[which].bridge.epoch();
        let exchange = self.exchanges.get_mut(&k).unwrap();
        match result["resultType"].as_str() {
            Some("complete") => {
                assert_eq!(result["content"], text(&format!("{k} in {}", exchange.rounds))["content"]);
                exchange.done = true;
            }
            Some("input_required") => {
                if exchange.params.get("requestState").is_none() {
                    exchange.owner = Some(epoch);
                }
                let mut answers = serde_json::Map::new();
                for (key, ask) in result["inputRequests"].as_object().into_iter().flatten() {
                    let asked = ask["params"]["message"].as_str().unwrap();
                    assert!(asked.starts_with(&format!("{k}/")), "{k} was asked {asked}");
                    answers.insert(key.clone(), json!({"action": "accept", "content": {"n": asked}}));
                }
                exchange.params = json!({"arguments": {"n": k}, "requestState": result["requestState"],
                    "inputResponses": answers});
                exchange.tries = 0;
                let wait = self.random.below(3_000);
                self.at(wait, Event::Come(k));
            }
            _ => {
                let code = &reply["error"]["code"];
                let lawful = *code == -32603 || exchange.left && *code == -32602;
                assert!(lawful, "{k}: {reply}");
                self.again(k);
            }
        }
    }

    fn upstream(&mut self, which: usize, link: LinkId, call: Option<i64>, message: &Value) {
        let epoch = *self.worlds[which].bridge.epoch();
        let id = message["id"].clone();
        match message["method"].as_str() {
            Some("initialize") => {
                let result = json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                    "serverInfo": {"name": "s", "version": "1"}});
                self.says(which, link, call, json!({"jsonrpc": "2.0", "id": id, "result": result}));
            }
            Some("tools/call") => {
                let k = message["params"]["arguments"]["n"].as_u64().unwrap();
                *self.runs.entry(k).or_default() += 1;
                self.calls.insert((epoch, link), (k, id.as_i64().unwrap()));
                self.says(which, link, call, form(json!(0), &format!("{k}/0")));
            }
            Some("notifications/cancelled") => {
                self.calls.remove(&(epoch, link));
            }
            None if message["result"]["content"].is_object() => {
                let Some((k, call)) = self.calls.get(&(epoch, link)).copied() else { return };
                let round = id.as_u64().unwrap();
                assert_eq!(message["result"]["content"]["n"], format!("{k}/{round}"));
                let times = self.answered.entry((k, round)).or_default();
                *times += 1;
                assert_eq!(*times, 1, "{k}/{round} was answered twice");
                let next = if round + 1 < self.exchanges[&k].rounds {
                    form(json!(round + 1), &format!("{k}/{}", round + 1))
                } else {
                    let result = text(&format!("{k} in {}", self.exchanges[&k].rounds));
                    json!({"jsonrpc": "2.0", "id": call, "result": result})
                };
                self.says(which, link, Some(call), next);
            }
            _ => {}
        }
    }

    fn says(&mut self, which: usize, link: LinkId, stream: Option<i64>, message: Value) {
        let (wait, epoch) = (self.random.below(200), *self.worlds[which].bridge.epoch());
        self.at(wait, Event::Upstream(which, epoch, link, stream, message));
    }
}

fn count(usual: u64) -> u64 {
    std::env::var("MRTR_BRIDGE_EXCHANGES").ok().map_or(usual, |count| count.parse().expect("a number"))
}

/// A store that does nothing wrong: every exchange is done, and each hand-off was needed once.
#[test]
fn a_good_store() {
    let mut simulation = Simulation::new(1, Store { loses: 0, repeats: 0, stops: false, kills: false });
    simulation.run(count(300));
    assert!(simulation.exchanges.values().all(|exchange| exchange.done || exchange.left));
    let counts: Vec<_> = simulation.worlds.iter().map(|world| world.bridge.counts()).collect();
    let sum = |of: fn(&mrtr_core::bridge::Counts) -> u64| counts.iter().map(of).sum::<u64>();
    assert!(sum(|counts| counts.handed) > 100);
    assert_eq!(sum(|counts| counts.handed_lost + counts.unreachable), 0);
    // Those that were cancelled before they were acknowledged are the difference.
    assert!(sum(|counts| counts.taken) >= sum(|counts| counts.acknowledged));
}

/// One that loses, repeats and reorders, stops and comes back, and processes that are killed.
#[test]
fn a_bad_store_and_processes_that_die() {
    for seed in 0..4 {
        for (loses, repeats, stops, kills) in
            [(10, 10, false, false), (0, 0, true, false), (5, 5, true, true)]
        {
            let mut simulation = Simulation::new(seed * 77 + 5, Store { loses, repeats, stops, kills });
            simulation.run(count(200));
            let done = simulation.exchanges.values().filter(|exchange| exchange.done).count();
            assert!(done * 10 > simulation.exchanges.len() * 5, "{done}");
            let refused: u64 = simulation.worlds.iter().map(|world| world.bridge.counts().peer_refused).sum();
            assert!(repeats == 0 || simulation.repeated > 10 && refused > 10, "{refused}");
        }
    }
}
