//! A client that is told anything, message after message, and stopped, saved, lost and taken up again in between: no
//! panic; every request is one line of JSON under a new id, carries the state of the last interim result to the letter
//! or none, and answers exactly its questions; nobody is asked more often than retries go out, or what they declined; an
//! exchange that was saved goes on as if it had not been.
//!
//! The first byte is the set-up. Then a line each: a message, in which `$` is the id of the request under way, or `!` and
//! an order.
#![no_main]

use std::collections::BTreeSet;

use libfuzzer_sys::fuzz_target;
use mrtr_core::{
    Limits, Timestamp,
    client::{
        Call, Channel, Client, Config, Exchange, InputRequired, InputResponse, NotSent, Open, Pending,
        Policy, Received, Resend, Retrying, StateRefused,
    },
    jsonrpc::{Json, Message, RequestId, admit},
    wire::{Action, AskKind, ClientCapabilities, Implementation},
};

const ORIGIN: &str = "https://fuzz.example";
const ARGUMENTS: &str = r#"{"n":1.0}"#;

fuzz_target!(|input: &[u8]| {
    let Some((flags, lines)) = input.split_first() else { return };
    let mut course = Course::new(*flags);
    let mut now = course.start();
    for line in lines.split(|&byte| byte == b'\n').take(64) {
        now = match line.strip_prefix(b"!") {
            Some(order) => course.obey(now, order),
            None => course.hear(now, line),
        };
        if matches!(now, Now::Over) {
            return;
        }
    }
});

/// Where the exchange is.
enum Now {
    Pending(Exchange<Pending>),
    Retrying(Exchange<Retrying>),
    Asked(Exchange<InputRequired>),
    Over,
}

/// What is known of it from outside.
struct Course {
    client: Client,
    policy: Policy,
    flags: u8,
    time: Timestamp,
    id: i64,
    ids: BTreeSet<i64>,
    /// What the next retry has to carry.
    state: Option<String>,
    keys: BTreeSet<String>,
    /// Rounds with questions.
    asked: u32,
    answer: Action,
    declined: BTreeSet<String>,
}

impl Course {
    fn new(flags: u8) -> Self {
        let mut policy = Policy::default();
        if flags & 1 != 0 {
            policy.retries = 2;
        }
        let channel = if flags & 2 == 0 { Channel::Shared } else { Channel::Own };
        let config = Config::new(Implementation::new("fuzz", "1"), ClientCapabilities::ALL);
        Self {
            client: Client::new(config.policy(policy.clone()).channel(channel)),
            policy,
            flags,
            time: Timestamp::from_unix_millis(1_000_000),
            id: 0,
            ids: BTreeSet::new(),
            state: None,
            keys: BTreeSet::new(),
            asked: 0,
            answer: Action::Accept,
            declined: BTreeSet::new(),
        }
    }

    fn start(&mut self) -> Now {
        let mut out = Vec::new();
        let params = format!(r#"{{"name":"t","arguments":{ARGUMENTS}}}"#);
        let mut call = Call::new("tools/call", &params);
        if self.flags & 4 != 0 {
            call = call.may_run_twice();
        }
        let id = self.next_id();
        let pending = self.client.start(id, call, self.time, &mut out).expect("a proper call");
        self.sent(&out);
        Now::Pending(pending)
    }

    fn next_id(&mut self) -> RequestId {
        self.id += 1;
        self.id.into()
    }

    /// Looks at a request that went out.
    fn sent(&mut self, out: &[u8]) {
        assert!(!out.contains(&b'\n'));
        let Ok(Message::Request(request)) = admit(out, &Limits::default()) else { panic!("not a request") };
        assert_eq!(request.id, RequestId::from(self.id));
        assert!(self.ids.insert(self.id), "an id twice");
        assert_eq!(request.param("arguments").map(Json::as_str), Some(ARGUMENTS));
        assert_eq!(request.param("requestState").map(Json::as_str), self.state.as_deref());
        let answers = request.param("inputResponses").and_then(Json::members).into_iter().flatten();
        let answers: BTreeSet<String> = answers.map(|(key, _)| key.into_owned()).collect();
        assert_eq!(answers, self.keys);
    }

    fn hear(&mut self, now: Now, line: &[u8]) -> Now {
        let now = match now {
            Now::Asked(asked) => self.proceed(asked),
            other => other,
        };
        // What stands for the id.
        let id = self.id.to_string();
        let parts: Vec<&[u8]> = line.split(|&byte| byte == b'$').collect();
        let line = parts.join(id.as_bytes());
        match now {
            Now::Pending(exchange) => self.receive(exchange, &line, Now::Pending),
            Now::Retrying(exchange) => self.receive(exchange, &line, Now::Retrying),
            Now::Asked(_) | Now::Over => Now::Over,
        }
    }

    fn receive<S: Open>(&mut self, exchange: Exchange<S>, line: &[u8], wrap: fn(Exchange<S>) -> Now) -> Now {
        match exchange.receive(line, self.time) {
            Received::Aside(exchange, _) => wrap(exchange),
            Received::InputRequired(asked) => self.asked(asked, line),
            Received::Resend(resend) => self.resend(resend, wrap),
            Received::StateRefused(refused) => self.restart(refused),
            Received::Complete(complete) => {
                assert_eq!(
                    complete.carried_answers_or_state(),
                    self.state.is_some() || !self.keys.is_empty()
                );
                Now::Over
            }
            Received::Invalid(violation) => {
                assert!(!format!("{violation}").is_empty());
                Now::Over
            }
            Received::Stopped(_) => Now::Over,
        }
    }

    fn asked(&mut self, asked: Exchange<InputRequired>, line: &[u8]) -> Now {
        let Ok(Message::Response(response)) = admit(line, &Limits::default()) else { panic!("not a reply") };
        let result = response.outcome.expect("not a result");
        self.state = result.get("requestState").filter(|state| !state.is_null()).map(|s| s.as_str().into());
        self.keys = asked.asks().map(|ask| ask.key().to_owned()).collect();
        if self.keys.is_empty() {
            assert!(self.state.is_some() && asked.not_before().is_some());
        } else {
            self.asked += 1;
            assert!(self.asked <= self.policy.retries, "asked, though no retry is left");
        }
        for ask in asked.asks() {
            assert!(!self.declined.contains(&shown(ask.request().params())), "asked what was declined");
        }
        Now::Asked(asked)
    }

    fn proceed(&mut self, mut asked: Exchange<InputRequired>) -> Now {
        let asks: Vec<(String, AskKind, String)> = asked
            .asks()
            .map(|ask| (ask.key().to_owned(), ask.request().kind(), shown(ask.request().params())))
            .collect();
        for (key, kind, shown) in asks {
            let json = mrtr_fuzz::server::json;
            let response = match (kind, self.answer) {
                (AskKind::Form, Action::Accept) => InputResponse::accept(json("{}")),
                (AskKind::Url, Action::Accept) => InputResponse::accepted_url(),
                (AskKind::Form | AskKind::Url, Action::Decline) => InputResponse::decline(),
                (AskKind::Form | AskKind::Url, Action::Cancel) => InputResponse::cancel(),
                (AskKind::Roots, _) => InputResponse::roots(json("[]")),
                (AskKind::Sampling, _) => InputResponse::sampling(json(
                    r#"{"role":"assistant","model":"m","content":{"type":"text","text":""}}"#,
                )),
            };
            // A form may want more than an empty object.
            if asked.answer(&key, response).is_err() {
                asked.answer(&key, InputResponse::cancel()).expect("a form was asked");
            } else if self.answer == Action::Decline && matches!(kind, AskKind::Form | AskKind::Url) {
                self.declined.insert(shown);
            }
        }
        self.time = asked.not_before().unwrap_or(self.time).max(self.time);
        let mut out = Vec::new();
        let id = self.next_id();
        match asked.proceed(id, self.time, &mut out) {
            Ok(retrying) => {
                self.sent(&out);
                Now::Retrying(retrying)
            }
            Err(NotSent { .. }) => {
                assert!(out.is_empty());
                Now::Over
            }
        }
    }

    fn resend<S: Open>(&mut self, resend: Resend<S>, wrap: fn(Exchange<S>) -> Now) -> Now {
        let mut out = Vec::new();
        let id = self.next_id();
        let exchange = resend.send(id, self.time, &mut out).expect("a new id");
        self.sent(&out);
        wrap(exchange)
    }

    fn restart(&mut self, refused: StateRefused) -> Now {
        assert!(self.state.take().is_some(), "a state was refused that was not sent");
        self.keys.clear();
        let mut out = Vec::new();
        let id = self.next_id();
        let pending = refused.restart(id, self.time, &mut out).expect("a new id");
        self.sent(&out);
        Now::Pending(pending)
    }

    fn obey(&mut self, now: Now, order: &[u8]) -> Now {
        match (order.first(), now) {
            (Some(b'a'), now) => self.mood(Action::Accept, now),
            (Some(b'd'), now) => self.mood(Action::Decline, now),
            (Some(b'c'), now) => self.mood(Action::Cancel, now),
            (Some(b's'), Now::Asked(asked)) => self.save(asked),
            (Some(b'l'), Now::Pending(exchange)) => match exchange.lost() {
                Ok(resend) => self.resend(resend, Now::Pending),
                Err(_) => Now::Over,
            },
            (Some(b'l'), Now::Retrying(exchange)) => match exchange.lost() {
                Ok(resend) => self.resend(resend, Now::Retrying),
                Err(_) => Now::Over,
            },
            (Some(b'x'), Now::Pending(exchange)) => cancel(exchange),
            (Some(b'x'), Now::Retrying(exchange)) => cancel(exchange),
            (Some(b'w'), now) => {
                self.time = Timestamp::from_unix_millis(self.time.as_unix_millis() + 1_000);
                now
            }
            (_, now) => now,
        }
    }

    fn mood(&mut self, action: Action, now: Now) -> Now {
        self.answer = action;
        now
    }

    /// Saved and taken up again it goes on the same; nowhere else; and its bytes do not change.
    fn save(&mut self, asked: Exchange<InputRequired>) -> Now {
        let (mut disk, mut again) = (Vec::new(), Vec::new());
        asked.save(ORIGIN, &mut disk);
        let resumed = self.client.resume(&disk, ORIGIN).expect("our own bytes");
        assert!(self.client.resume(&disk, "https://other.example").is_err());
        resumed.save(ORIGIN, &mut again);
        assert_eq!(disk, again);
        Now::Asked(resumed)
    }
}

fn cancel<S: Open>(exchange: Exchange<S>) -> Now {
    let mut out = Vec::new();
    exchange.cancel("reason", &mut out);
    assert!(out.is_empty() || matches!(admit(&out, &Limits::default()), Ok(Message::Notification(_))));
    Now::Over
}

fn shown(params: Option<Json<'_>>) -> String {
    params.map_or(String::new(), |params| params.as_str().into())
}
