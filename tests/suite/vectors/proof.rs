//! Is each expectation of each exchange looked at?
//!
//! A scripted party gives what the exchange expects, made up from its patterns, and passes; then one thing after the
//! other is changed in what it gives, and each change must fail the run.

use std::collections::VecDeque;

use mrtr_core::Timestamp;
use serde_json::{Map, Value, json};

use super::{
    client::{self, Caller, Event, Outgoing},
    format::{Action, Exchange, Outcome, Role, load},
    pattern::{Captures, Operator, escape, kind_of, operator},
    server::{self, Party, START},
};

/// A message that a pattern describes. Values that are left open are new each time.
fn example(pattern: &Value, captures: &Captures, serial: &mut u32) -> Value {
    *serial += 1;
    let of_kind = |kind: &str| match kind {
        "string" => json!(format!("made up {serial}")),
        "number" => json!(*serial),
        "boolean" => json!(true),
        "array" => json!([]),
        "object" => json!({}),
        _ => json!(format!("anything {serial}")),
    };
    match operator(pattern) {
        Some(Operator::Any(kind)) => of_kind(kind),
        Some(Operator::Contains(part)) => json!([part]),
        Some(Operator::Captured { name, append }) => match &captures[name] {
            Value::String(text) => json!(format!("{text}{append}")),
            other => other.clone(),
        },
        Some(Operator::OtherThan(name)) => of_kind(kind_of(&captures[name])),
        None => match pattern {
            Value::Object(members) => {
                let members =
                    members.iter().map(|(name, value)| (name.clone(), example(value, captures, serial)));
                Value::Object(members.collect::<Map<_, _>>())
            }
            Value::Array(items) => items.iter().map(|item| example(item, captures, serial)).collect(),
            plain => plain.clone(),
        },
    }
}

/// Every change to a message that its pattern and claims must notice.
fn spoilt(pattern: &Value, absent: &[String], exact: &[String], good: &Value) -> Vec<(String, Value)> {
    let mut changes = Vec::new();
    for (pointer, part) in places(pattern, "") {
        let (parent, name) = pointer.rsplit_once('/').expect("a pointer below the root");
        let name = name.replace("~1", "/").replace("~0", "~");
        if good.pointer(parent).is_some_and(Value::is_object) {
            let mut without = good.clone();
            without.pointer_mut(parent).and_then(Value::as_object_mut).expect("an object").remove(&name);
            changes.push((format!("{pointer} removed"), without));
        }
        if !matches!(operator(part), Some(Operator::Any("value"))) {
            let mut other = good.clone();
            let place = other.pointer_mut(&pointer).expect("the example has what the pattern names");
            *place = if place.is_null() { json!("not null") } else { Value::Null };
            changes.push((format!("{pointer} replaced"), other));
        }
        if let Value::String(text) = part {
            let mut other = good.clone();
            *other.pointer_mut(&pointer).expect("as above") = json!(format!("{text} "));
            changes.push((format!("{pointer} with a blank more"), other));
        }
        if let Value::Array(_) = part {
            let mut longer = good.clone();
            longer.pointer_mut(&pointer).and_then(Value::as_array_mut).expect("a list").push(json!({}));
            changes.push((format!("{pointer} one longer"), longer));
        }
    }
    for pointer in absent {
        let (parent, name) = pointer.rsplit_once('/').expect("a pointer below the root");
        let mut more = good.clone();
        let parent = more
            .pointer_mut(parent)
            .unwrap_or_else(|| panic!("{pointer} lies below nothing that is expected"));
        parent.as_object_mut().expect("an object").insert(name.replace("~1", "/"), Value::Null);
        changes.push((format!("{pointer} present"), more));
    }
    for pointer in exact {
        let mut more = good.clone();
        more.pointer_mut(pointer)
            .and_then(Value::as_object_mut)
            .expect("an object")
            .insert("surplus".into(), json!({}));
        changes.push((format!("{pointer} with a member more"), more));
    }
    changes
}

/// Each place that a pattern speaks of, with what it says there.
fn places<'a>(pattern: &'a Value, at: &str) -> Vec<(String, &'a Value)> {
    let below: Vec<(String, &Value)> = match (operator(pattern), pattern) {
        (None, Value::Object(members)) => {
            members.iter().map(|(name, value)| (format!("{at}/{}", escape(name)), value)).collect()
        }
        (None, Value::Array(items)) => {
            items.iter().enumerate().map(|(index, value)| (format!("{at}/{index}"), value)).collect()
        }
        _ => Vec::new(),
    };
    below
        .into_iter()
        .flat_map(|(at, value)| [vec![(at.clone(), value)], places(value, &at)].concat())
        .collect()
}

/// A party that gives what it was told to give, and keeps what it was sent.
#[derive(Clone, Default)]
struct Script {
    replies: VecDeque<(u16, Option<Value>)>,
    events: VecDeque<Event>,
    seen: Vec<(Value, Option<String>, Timestamp)>,
    happened: Vec<String>,
}

impl Party for Script {
    fn send(
        &mut self,
        message: &Value,
        _: &[(String, String)],
        who: Option<&str>,
        now: Timestamp,
    ) -> (u16, Option<Value>) {
        self.seen.push((message.clone(), who.map(str::to_owned), now));
        self.replies.pop_front().expect("a reply for each step")
    }

    fn happen(&mut self, event: &str) {
        self.happened.push(event.to_owned());
    }
}

impl Script {
    fn outgoing(&mut self) -> Outgoing {
        match self.events.pop_front() {
            Some(Event::Request(outgoing)) => outgoing,
            // The run asked for a request where the exchange has none: let it see that nothing sensible came.
            _ => Outgoing { message: Value::Null, headers: Vec::new() },
        }
    }
}

impl Caller for Script {
    fn start(&mut self, _: &str, _: &str, _: &Value, _: Timestamp) -> Outgoing {
        self.outgoing()
    }

    fn receive(&mut self, _: &str, _: u16, message: &Value, now: Timestamp) -> Event {
        self.seen.push((message.clone(), None, now));
        self.events.pop_front().expect("an event for each step")
    }

    fn proceed(&mut self, _: &str, _: &Value, _: Timestamp) -> Outgoing {
        self.outgoing()
    }
}

fn server_script(exchange: &Exchange) -> Script {
    let (mut captures, mut serial, mut script) = (Captures::new(), 0, Script::default());
    for step in exchange.server_steps().expect("read before") {
        let reply = example(&step.expect, &captures, &mut serial);
        for (name, pointer) in &step.capture {
            captures.insert(
                name.clone(),
                reply.pointer(pointer).expect("captured from what is expected").clone(),
            );
        }
        script.replies.push_back((step.status, (!reply.is_null()).then_some(reply)));
    }
    script
}

fn client_script(exchange: &Exchange) -> Script {
    let (mut captures, mut serial, mut script) = (Captures::new(), 0, Script::default());
    for step in exchange.client_steps().expect("read before") {
        script.events.push_back(match step.outcome {
            Outcome::Request(request) => {
                let mut message = example(&request.expect, &captures, &mut serial);
                message["jsonrpc"] = json!("2.0");
                serial += 1;
                message["id"] = json!(format!("id {serial}"));
                message["params"]["_meta"] = json!({
                    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                    "io.modelcontextprotocol/clientCapabilities": exchange.capabilities,
                });
                for (name, pointer) in &request.capture {
                    captures.insert(name.clone(), message.pointer(pointer).expect("expected").clone());
                }
                let headers =
                    request.headers.iter().filter_map(|(n, v)| Some((n.to_lowercase(), v.clone()?)));
                Event::Request(Outgoing { message, headers: headers.collect() })
            }
            Outcome::Asks(keys) => Event::Asks(keys),
            Outcome::Pause => Event::Pause,
            Outcome::Complete(result) => Event::Complete(example(&result, &captures, &mut serial)),
            Outcome::Refused(error) => Event::Refused(example(&error, &captures, &mut serial)),
            Outcome::Invalid => Event::Invalid,
        });
    }
    script
}

#[test]
fn each_expectation_of_a_server_counts() {
    let mut changes = 0;
    for (name, exchange) in load().iter().filter(|(_, exchange)| exchange.role == Role::Server) {
        let good = server_script(exchange);
        server::run(exchange, &mut good.clone()).unwrap_or_else(|failure| panic!("{name}: {failure}"));
        for (index, step) in exchange.server_steps().expect("read before").iter().enumerate() {
            let (status, reply) = good.replies[index].clone();
            let mut wrong = vec![
                ("another status".to_owned(), (status + 1, reply.clone())),
                ("a reply more or less".to_owned(), (status, reply.is_none().then(|| json!({})))),
            ];
            for (what, spoilt) in spoilt(&step.expect, &step.absent, &step.exact, &reply.unwrap_or_default())
            {
                wrong.push((what, (status, Some(spoilt))));
            }
            for (what, reply) in wrong {
                let mut bad = good.clone();
                bad.replies[index] = reply;
                let failure =
                    server::run(exchange, &mut bad).expect_err(&format!("{name}, step {index}: {what}"));
                assert_eq!(failure.step, index, "{name}, {what}: {failure}");
                changes += 1;
            }
        }
    }
    assert!(changes > 1_000, "only {changes} changes tried");
}

#[test]
fn each_expectation_of_a_client_counts() {
    let mut changes = 0;
    for (name, exchange) in load().iter().filter(|(_, exchange)| exchange.role == Role::Client) {
        let good = client_script(exchange);
        client::run(exchange, &mut good.clone()).unwrap_or_else(|failure| panic!("{name}: {failure}"));
        for (index, step) in exchange.client_steps().expect("read before").iter().enumerate() {
            let mut wrong = Vec::new();
            match (&step.outcome, &good.events[index]) {
                (Outcome::Request(request), Event::Request(outgoing)) => {
                    for (what, message) in
                        spoilt(&request.expect, &request.absent, &request.exact, &outgoing.message)
                    {
                        wrong.push((what, Event::Request(Outgoing { message, ..outgoing.clone() })));
                    }
                    let mut bare = outgoing.clone();
                    bare.message["params"].as_object_mut().expect("params").remove("_meta");
                    wrong.push(("no metadata".to_owned(), Event::Request(bare)));
                    for header in request.headers.keys() {
                        let mut more = outgoing.clone();
                        more.headers.push((header.clone(), "surplus".to_owned()));
                        wrong.push((format!("header {header} twice or unwanted"), Event::Request(more)));
                    }
                    for at in 0..outgoing.headers.len() {
                        let mut less = outgoing.clone();
                        less.headers.remove(at);
                        wrong.push((format!("header {at} missing"), Event::Request(less)));
                    }
                    if let Some(Event::Request(earlier)) =
                        good.events.iter().take(index).rev().find(is_request)
                    {
                        let mut again = outgoing.clone();
                        again.message["id"] = earlier.message["id"].clone();
                        wrong.push(("an id used before".to_owned(), Event::Request(again)));
                    }
                }
                (Outcome::Asks(keys), _) => {
                    let more = [keys.clone(), vec!["more".to_owned()]].concat();
                    wrong.push(("an ask more".to_owned(), Event::Asks(more)));
                    wrong.push(("no ask".to_owned(), Event::Asks(Vec::new())));
                }
                (Outcome::Complete(expected), Event::Complete(result)) => {
                    for (what, result) in spoilt(expected, &[], &[], result) {
                        wrong.push((what, Event::Complete(result)));
                    }
                }
                (Outcome::Refused(expected), Event::Refused(error)) => {
                    for (what, error) in spoilt(expected, &[], &[], error) {
                        wrong.push((what, Event::Refused(error)));
                    }
                    wrong.push(("a local failure".to_owned(), Event::Invalid));
                }
                (Outcome::Pause, _) => wrong.push(("goes on at once".to_owned(), Event::Complete(json!({})))),
                (Outcome::Invalid, _) => wrong.push(("takes it".to_owned(), Event::Complete(json!({})))),
                (expected, scripted) => panic!("{name}: {expected:?} was scripted as {scripted:?}"),
            }
            if matches!(step.action, Action::Receive { .. }) && !matches!(step.outcome, Outcome::Refused(_)) {
                wrong.push(("the server's error".to_owned(), Event::Refused(json!({"code": -32603}))));
            }
            for (what, event) in wrong {
                let mut bad = good.clone();
                bad.events[index] = event;
                let failure =
                    client::run(exchange, &mut bad).expect_err(&format!("{name}, step {index}: {what}"));
                assert_eq!(failure.step, index, "{name}, {what}: {failure}");
                changes += 1;
            }
        }
    }
    assert!(changes > 350, "only {changes} changes tried");
}

fn is_request(event: &&Event) -> bool {
    matches!(event, Event::Request(_))
}

/// What a party is sent: the captured state, the tampered one, who calls and when.
#[test]
fn captures_principals_and_the_clock_reach_the_party() {
    let exchanges = load();
    let states = |name: &str| {
        let mut script = server_script(&exchanges[name]);
        server::run(&exchanges[name], &mut script).expect("the script is good");
        let minted =
            server_script(&exchanges[name]).replies[0].1.as_ref().expect("a reply")["result"]["requestState"]
                .clone();
        (script, minted.as_str().expect("a state").to_owned())
    };
    let (script, minted) = states("state-tampered");
    let sent: Vec<_> =
        script.seen.iter().map(|(message, ..)| message["params"]["requestState"].as_str()).collect();
    assert_eq!(sent, [None, Some(format!("{minted}-TAMPERED").as_str()), Some(minted.as_str())]);

    let (script, _) = states("state-bound");
    let who: Vec<_> = script
        .seen
        .iter()
        .map(|(_, who, now)| (who.as_deref(), now.saturating_since(START).as_secs()))
        .collect();
    assert_eq!(who, [(Some("alice"), 0), (Some("bob"), 1), (Some("alice"), 599), (Some("alice"), 601)]);

    let (script, _) = states("url-until-done");
    assert_eq!(script.happened, ["connected"]);
}

/// The server's replies carry the id of the request they answer, also where two calls cross.
#[test]
fn replies_carry_the_id_of_their_request() {
    let exchange = &load()["client-echo-and-isolation"];
    let mut script = client_script(exchange);
    let ids: Vec<Value> = script
        .events
        .iter()
        .filter_map(|event| match event {
            Event::Request(outgoing) => Some(outgoing.message["id"].clone()),
            _ => None,
        })
        .collect();
    client::run(exchange, &mut script).expect("the script is good");
    let answered: Vec<_> = script.seen.iter().map(|(message, ..)| message["id"].clone()).collect();
    assert_eq!(answered, [ids[0].clone(), ids[1].clone(), ids[2].clone()]);
}
