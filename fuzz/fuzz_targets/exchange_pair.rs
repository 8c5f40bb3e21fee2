//! Our client and our server with a line between them that loses, doubles, reorders, cuts and repeats what goes over it,
//! both ways and of any age, as the input says: no panic; an answer only ever meets the question that it was given to; a
//! call has one outcome, and if it is a result, then the one of its own questions and answers.
#![no_main]

use std::{collections::VecDeque, sync::LazyLock};

use libfuzzer_sys::fuzz_target;
use mrtr_core::{
    Limits, Timestamp,
    client::{
        Aside, Call, Client, Config, Exchange, InputRequired, InputResponse, Open, Pending, Received, Resend,
        Retrying, Stopped,
    },
    jsonrpc::Json,
    wire::{ClientCapabilities, Implementation},
};
use mrtr_fuzz::server::Server;

const CALLS: usize = 2;

/// It keeps nothing of what it is told.
static SERVER: LazyLock<Server> = LazyLock::new(Server::encrypted);

fuzz_target!(|script: &[u8]| {
    let mut world = World::new();
    let mut bytes = script.iter().copied().take(128);
    while let (Some(order), Some(operand)) = (bytes.next(), bytes.next()) {
        world.obey(order, usize::from(operand));
    }
    world.finish();
});

/// A call, where it is.
enum Now {
    Pending(Exchange<Pending>),
    Retrying(Exchange<Retrying>),
    Over(Outcome),
}

enum Outcome {
    /// The text of the result.
    Result(String),
    /// There will be no other reply.
    Lost,
}

struct World {
    client: Client,
    calls: Vec<Option<Now>>,
    time: Timestamp,
    id: i64,
    entropy: u64,
    up: VecDeque<Vec<u8>>,
    down: VecDeque<Vec<u8>>,
    /// All that ever went over the line.
    past_up: Vec<Vec<u8>>,
    past_down: Vec<Vec<u8>>,
}

impl World {
    fn new() -> Self {
        let client = Client::new(Config::new(Implementation::new("fuzz", "1"), ClientCapabilities::ALL));
        let mut world = Self {
            client,
            calls: Vec::new(),
            time: Timestamp::from_unix_millis(1_000),
            id: 0,
            entropy: 0,
            up: VecDeque::new(),
            down: VecDeque::new(),
            past_up: Vec::new(),
            past_down: Vec::new(),
        };
        for number in 0..CALLS {
            let params = format!(r#"{{"name":"words","arguments":{{"n":{number}}}}}"#);
            let call = Call::new("tools/call", &params).may_run_twice();
            let mut out = Vec::new();
            let id = world.next_id();
            let pending = world.client.start(id.into(), call, world.time, &mut out).expect("a proper call");
            world.send(out);
            world.calls.push(Some(Now::Pending(pending)));
        }
        world
    }

    fn next_id(&mut self) -> i64 {
        self.id += 1;
        self.id
    }

    fn send(&mut self, message: Vec<u8>) {
        self.past_up.push(message.clone());
        self.up.push_back(message);
    }

    fn obey(&mut self, order: u8, operand: usize) {
        let pick = |length: usize| if length == 0 { 0 } else { operand % length };
        match order % 12 {
            0 => self.serve(),
            1 => self.deliver(),
            2 => drop(self.up.remove(pick(self.up.len()))),
            3 => drop(self.down.remove(pick(self.down.len()))),
            4 => double(&mut self.up, operand),
            5 => double(&mut self.down, operand),
            6 => turn(&mut self.up, operand),
            7 => turn(&mut self.down, operand),
            8 => cut(&mut self.up, operand),
            9 => cut(&mut self.down, operand),
            10 if operand % 2 == 0 => {
                let old = self.past_up.get(pick(self.past_up.len())).cloned();
                self.up.extend(old.filter(|_| self.up.len() < 16));
            }
            10 => {
                let old = self.past_down.get(pick(self.past_down.len())).cloned();
                self.down.extend(old.filter(|_| self.down.len() < 16));
            }
            _ => self.lose(operand % CALLS),
        }
    }

    /// The server takes a message.
    fn serve(&mut self) {
        let Some(message) = self.up.pop_front() else { return };
        self.entropy += 1;
        let reply = SERVER.receive(&message, self.entropy);
        if !reply.is_empty() {
            self.past_down.push(reply.clone());
            self.down.push_back(reply);
        }
    }

    /// Every call of the client sees a message, and at most one takes it for its reply.
    fn deliver(&mut self) {
        let Some(message) = self.down.pop_front() else { return };
        let mut takers = 0;
        for number in 0..CALLS {
            let (now, took) = match self.calls[number].take().expect("there always") {
                Now::Pending(exchange) => self.receive(number, exchange, &message, Now::Pending),
                Now::Retrying(exchange) => self.receive(number, exchange, &message, Now::Retrying),
                over @ Now::Over(_) => (over, false),
            };
            self.calls[number] = Some(now);
            takers += usize::from(took);
        }
        assert!(takers <= 1, "a reply was taken twice");
    }

    fn receive<S: Open>(
        &mut self,
        number: usize,
        exchange: Exchange<S>,
        message: &[u8],
        wrap: fn(Exchange<S>) -> Now,
    ) -> (Now, bool) {
        match exchange.receive(message, self.time) {
            Received::Aside(exchange, Aside::Reply(_) | Aside::Unreadable(_) | Aside::Error(_)) => {
                (wrap(exchange), false)
            }
            Received::InputRequired(asked) => (self.answer(number, asked), true),
            Received::Complete(complete) => {
                let result = complete.result().unwrap_or_else(|error| panic!("{error}"));
                let text = result.get("content").and_then(Json::items).and_then(|mut items| items.next());
                let text = text.and_then(|text| text.get("text")?.as_string()).expect("a text");
                (Now::Over(Outcome::Result(text.into_owned())), true)
            }
            // What is left of a reply that was cut says whose it is, and no more comes.
            Received::Invalid(violation) => {
                assert!(serde_json::from_slice::<serde::de::IgnoredAny>(message).is_err(), "{violation}");
                (Now::Over(Outcome::Lost), true)
            }
            Received::Stopped(stopped) => panic!("{stopped}"),
            Received::StateRefused(refused) => panic!("{refused:?}"),
            Received::Aside(..) | Received::Resend(_) => panic!("the server says no such thing"),
        }
    }

    /// Each answer repeats its question.
    fn answer(&mut self, number: usize, mut asked: Exchange<InputRequired>) -> Now {
        let asks: Vec<(String, String)> = asked
            .asks()
            .map(|ask| (ask.key().into(), ask.request().message().expect("a form").into_owned()))
            .collect();
        for (key, message) in asks {
            assert!(message.starts_with(&format!("{number} ")), "a question of another call");
            let content = format!(r#"{{"word":"{message}"}}"#);
            let content = Json::parse(&content, &Limits::default()).expect("our own");
            asked.answer(&key, InputResponse::accept(content)).expect("it fits");
        }
        self.time = asked.not_before().unwrap_or(self.time).max(self.time);
        let mut out = Vec::new();
        let id = self.next_id();
        let retrying = asked.proceed(id.into(), self.time, &mut out).expect("all is answered");
        self.send(out);
        Now::Retrying(retrying)
    }

    /// The connection of a call breaks.
    fn lose(&mut self, number: usize) {
        let now = match self.calls[number].take().expect("there always") {
            Now::Pending(exchange) => self.again(exchange.lost(), Now::Pending),
            Now::Retrying(exchange) => self.again(exchange.lost(), Now::Retrying),
            over @ Now::Over(_) => over,
        };
        self.calls[number] = Some(now);
    }

    fn again<S: Open>(&mut self, lost: Result<Resend<S>, Stopped>, wrap: fn(Exchange<S>) -> Now) -> Now {
        let Ok(resend) = lost else { return Now::Over(Outcome::Lost) };
        let mut out = Vec::new();
        let id = self.next_id();
        let exchange = resend.send(id.into(), self.time, &mut out).expect("a new id");
        self.send(out);
        wrap(exchange)
    }

    /// The line is mended: everything arrives.
    fn finish(mut self) {
        for _ in 0..1_000 {
            while !self.up.is_empty() || !self.down.is_empty() {
                self.serve();
                self.deliver();
            }
            let open = |call: &Option<Now>| !matches!(call, Some(Now::Over(_)));
            let Some(number) = self.calls.iter().position(open) else { break };
            self.lose(number);
        }
        for (number, call) in self.calls.into_iter().enumerate() {
            match call {
                Some(Now::Over(Outcome::Result(text))) => {
                    assert_eq!(text, format!("{number} a, {number} b, {number} c"));
                }
                Some(Now::Over(Outcome::Lost)) => {}
                _ => panic!("a call without an outcome"),
            }
        }
    }
}

fn double(queue: &mut VecDeque<Vec<u8>>, operand: usize) {
    if !queue.is_empty() && queue.len() < 16 {
        let message = queue[operand % queue.len()].clone();
        queue.push_back(message);
    }
}

fn turn(queue: &mut VecDeque<Vec<u8>>, operand: usize) {
    if !queue.is_empty() {
        queue.rotate_left(operand % queue.len());
    }
}

/// What is left of a message that was cut is none.
fn cut(queue: &mut VecDeque<Vec<u8>>, operand: usize) {
    if let Some(message) = queue.front_mut() {
        message.truncate(message.len() * (operand % 256) / 256);
    }
}
