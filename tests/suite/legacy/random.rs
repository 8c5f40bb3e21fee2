//! The held connection is the same as replay: the random handlers of `replay_random`, four at a time in one session,
//! against the same direct evaluation.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use mrtr_core::{
    Entropy, Limits, Timestamp,
    handler::{Ctx, ToolResult},
    legacy::{Config, Handled, Session, Stream},
    seal::Principal,
    tape::AfterEffects,
};
use mrtr_tests::{
    legacy::{drain, parse, text},
    model::{
        Random,
        oracle::{Able, Expected, Given, Oracle},
        program::{self, Kind, Outside, Program, shaky_message},
    },
    world::{self, START},
};
use serde_json::{Value, json};

use super::{NARROW, NEWEST};

/// Programs in a run of the test suite, four in a session; `MRTR_PROGRAMS` overrides it.
const PROGRAMS: u64 = 2_000;
const TOGETHER: u64 = 4;

/// How often time may pass until what is held has something to say: the looks of three errands and a rest.
const PATIENCE: u32 = 12;

fn given(random: &mut Random, kind: Kind) -> Given {
    match kind {
        _ if random.chance(12) => Given::Refused,
        Kind::OptionalSampling | Kind::OptionalRoots | Kind::RequiredRoots => {
            Given::Number(random.below(6) as i64)
        }
        kind => match random.below(10) {
            0 => Given::Decline,
            1 => Given::Cancel,
            2 | 3 if kind.has_fields() => Given::Bad,
            _ => Given::Number(random.below(10) as i64),
        },
    }
}

fn response(id: &Value, kind: Kind, given: &Given) -> Value {
    let result = match (given, kind) {
        (Given::Refused, _) => {
            return json!({"jsonrpc": "2.0", "id": id, "error": {"code": -1, "message": "no"}});
        }
        (Given::Decline, _) => json!({"action": "decline"}),
        (Given::Cancel, _) => json!({"action": "cancel"}),
        (Given::Bad, _) => json!({"action": "accept", "content": {"n": 10}}),
        (Given::Number(n), Kind::OptionalSampling) => {
            json!({"role": "assistant", "model": "m", "content": {"type": "text", "text": n.to_string()}})
        }
        (Given::Number(n), Kind::OptionalRoots | Kind::RequiredRoots) => {
            json!({"roots": (0..*n).map(|i| json!({"uri": format!("file:///{i}")})).collect::<Vec<_>>()})
        }
        (Given::Number(_), Kind::Errand(_)) => json!({"action": "accept"}),
        (Given::Number(n), kind) => {
            let content = if kind.has_fields() { json!({"n": n}) } else { json!({}) };
            json!({"action": "accept", "content": content})
        }
    };
    json!({"jsonrpc": "2.0", "id": id, "result": result})
}

/// One call of a session and where it stands.
struct Talk {
    tree: Program,
    oracle: Oracle,
    expected: Option<Expected>,
    /// The questions that are out, by their keys.
    open: Vec<(String, Value)>,
    given: BTreeMap<String, Given>,
    /// How often time has passed for it.
    waited: u32,
}

impl Talk {
    /// Takes what the session says to this call in one go. False: the questions are right and their order is not the
    /// evaluation's. A nested `FuturesUnordered` lets others go first after as many polls as it has children, which the
    /// evaluation knows nothing of.
    fn hear(&mut self, messages: &[Value], ids: &mut BTreeSet<i64>) -> bool {
        let expected = self.expected.take().expect("it runs");
        let keys = match &expected {
            Expected::Complete(value) => {
                assert_eq!(messages.len(), 1, "{messages:?} {:#?}", self.tree);
                assert_eq!(text(&messages[0]), value.to_string(), "{:#?}", self.tree);
                return true;
            }
            Expected::Missing => {
                assert_eq!(messages.len(), 1, "{messages:?} {:#?}", self.tree);
                assert_eq!(messages[0]["error"]["code"], -32603);
                assert_eq!(messages[0]["error"]["data"], json!({"requiredCapabilities": {"roots": {}}}));
                return true;
            }
            Expected::Unstable | Expected::Effects => unreachable!("nothing is replayed"),
            Expected::Sent(keys) => keys,
        };
        let own = |key: &String| match self.oracle.kind(key) {
            Kind::OptionalRoots | Kind::RequiredRoots => String::from("roots/list"),
            Kind::Shaky => shaky_message(key, 0),
            _ => key.split('#').next().expect("a key").into(),
        };
        let mut wanted: Vec<String> = keys.iter().map(own).collect();
        let mut shown: Vec<String> = messages.iter().map(name).collect();
        for (key, message) in keys.iter().zip(messages) {
            assert!(ids.insert(message["id"].as_i64().expect("a number")), "an id was used twice");
            self.open.push((key.clone(), message["id"].clone()));
        }
        let ordered = wanted == shown;
        wanted.sort();
        shown.sort();
        assert_eq!(wanted, shown, "{:#?}", self.tree);
        self.expected = Some(expected);
        ordered
    }
}

/// What a question shows of its key.
fn name(message: &Value) -> String {
    let params = &message["params"];
    let shown = match message["method"].as_str().expect("a method") {
        "sampling/createMessage" => &params["messages"][0]["content"]["text"],
        "elicitation/create" => &params["message"],
        _ => &message["method"],
    };
    shown.as_str().expect("a text").into()
}

/// W-02; design: legacy eras; A3, A4, A6, A10, A11, G-13, R-137, R-229, R-231, B-61: the same programs over a held connection
/// come to the same results, with answers in any order, refusals among them, and other calls in between; nothing is said
/// to a call before all its questions are answered, and nothing at all for a checkpoint, which rests for a while.
#[test]
fn holding_equals_replaying() {
    let programs = std::env::var("MRTR_PROGRAMS").ok().and_then(|text| text.parse().ok()).unwrap_or(PROGRAMS);
    let (mut rounds, mut complete, mut missing, mut unordered) = (0u64, 0u64, 0u64, 0u64);
    for seed in 0..programs / TOGETHER {
        let mut random = Random::new(seed);
        let trees: Vec<Program> = (0..TOGETHER).map(|_| Program::random(&mut random, 3, "")).collect();
        let inside = trees.clone();
        let mut config = world::config();
        config.limits = Limits::default();
        config.limits.rounds = 200;
        config.limits.asks_sent = 64;
        // Held, every errand is done after three looks at most; not held, its url is asked again each time.
        let holds = random.chance(2);
        if !holds {
            config.tape.hold_urls = Duration::ZERO;
        }
        let service = world::service(config, move |ctx: Ctx| {
            let trees = inside.clone();
            async move {
                let which: usize = ctx.argument("which")?;
                let outside = Arc::new(Outside::default());
                Ok(ToolResult::text(program::run(ctx, trees[which].clone(), outside).await.to_string()))
            }
        });
        let version = if random.chance(2) { NEWEST } else { NARROW };
        // The older revision has no urls, whatever its client says.
        let urls = random.chance(2);
        let able =
            Able { sampling: !random.chance(3), roots: !random.chance(3), url: urls && version == NEWEST };
        let mut capabilities =
            json!({"elicitation": if urls { json!({"form": {}, "url": {}}) } else { json!({}) }});
        if able.sampling {
            capabilities["sampling"] = json!({});
        }
        if able.roots {
            capabilities["roots"] = json!({});
        }
        let mut now = Timestamp::from_unix_millis(START);
        let mut session =
            Session::on_http(service, Config::default(), Principal::Anonymous, Entropy::new([1; 32]));
        let say = |session: &mut Session, message: Value, now: Timestamp| {
            session.handle(message.to_string().as_bytes(), now)
        };
        let params = json!({"protocolVersion": version, "capabilities": capabilities});
        say(
            &mut session,
            json!({"jsonrpc": "2.0", "id": "i", "method": "initialize", "params": params}),
            now,
        );
        say(&mut session, json!({"jsonrpc": "2.0", "method": "notifications/initialized"}), now);
        let mut talks = BTreeMap::new();
        for (which, tree) in trees.iter().enumerate() {
            let mut oracle = Oracle::new(tree, BTreeMap::new(), AfterEffects::Refuse);
            if holds {
                oracle = oracle.holding();
            }
            let expected = Some(oracle.request(&BTreeMap::new(), able, 0));
            let (open, given) = (Vec::new(), BTreeMap::new());
            talks.insert(which as i64, Talk { tree: tree.clone(), oracle, expected, open, given, waited: 0 });
            let params = json!({"name": "t", "arguments": {"which": which}});
            let call = json!({"jsonrpc": "2.0", "id": which, "method": "tools/call", "params": params});
            assert!(matches!(say(&mut session, call, now), Handled::Running(_)));
        }
        let mut ids = BTreeSet::new();
        loop {
            let mut heard: BTreeMap<i64, Vec<Value>> = BTreeMap::new();
            for transmit in drain(&mut session, now) {
                let Stream::Request(id) = &transmit.stream else { panic!("{transmit:?}") };
                let message = parse(&transmit.bytes);
                assert_eq!(transmit.last, message.get("method").is_none());
                heard.entry(id.as_i64().expect("ours")).or_default().push(message);
            }
            let mut resting = false;
            for (which, talk) in &mut talks {
                if talk.expected == Some(Expected::Sent(Vec::new())) {
                    // A checkpoint: it rests, at most five seconds.
                    assert_eq!(heard.remove(which), None, "seed {seed}, call {which}");
                    resting = true;
                    talk.expected = Some(talk.oracle.request(&BTreeMap::new(), able, 0));
                    continue;
                }
                let ready = talk.expected.is_some() && talk.open.is_empty();
                let messages = heard.remove(which).unwrap_or_default();
                if holds && ready && messages.is_empty() && talk.waited < PATIENCE {
                    // An errand that is looked at once a second.
                    talk.waited += 1;
                    resting = true;
                    continue;
                }
                talk.waited = 0;
                assert_eq!(ready, !messages.is_empty(), "seed {seed}, call {which}");
                if ready {
                    match &talk.expected {
                        Some(Expected::Complete(_)) => complete += 1,
                        Some(Expected::Missing) => missing += 1,
                        Some(Expected::Sent(_) | Expected::Unstable | Expected::Effects) | None => {
                            rounds += 1
                        }
                    }
                    if !talk.hear(&messages, &mut ids) {
                        // Its call is cancelled; the others go on.
                        let params = json!({"requestId": which});
                        say(
                            &mut session,
                            json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}),
                            now,
                        );
                        let said = drain(&mut session, now);
                        assert_eq!(said.len(), talk.open.len() + 1);
                        assert!(
                            said.iter().all(|transmit| transmit.stream == Stream::Request((*which).into()))
                        );
                        talk.open.clear();
                        talk.expected = None;
                        unordered += 1;
                    }
                }
            }
            assert!(heard.is_empty());
            if resting {
                let later = now.saturating_add(Duration::from_secs(5));
                assert!(session.wake_at().is_some_and(|at| at <= later), "seed {seed}: nobody comes again");
                now = later;
                continue;
            }
            let waiting: Vec<i64> =
                talks.iter().filter(|(_, talk)| !talk.open.is_empty()).map(|(which, _)| *which).collect();
            if waiting.is_empty() {
                break;
            }
            let which = waiting[random.below(waiting.len() as u64) as usize];
            let talk = talks.get_mut(&which).expect("it waits");
            let (key, id) = talk.open.remove(random.below(talk.open.len() as u64) as usize);
            let kind = talk.oracle.kind(&key);
            let answer = given(&mut random, kind);
            assert!(matches!(say(&mut session, response(&id, kind, &answer), now), Handled::Accepted));
            // Late and second answers change nothing.
            if random.chance(4) {
                say(&mut session, response(&id, kind, &Given::Refused), now);
            }
            talk.given.insert(key, answer);
            if talk.open.is_empty() {
                talk.expected = Some(talk.oracle.request(&std::mem::take(&mut talk.given), able, 0));
            }
        }
        assert!(talks.values().all(|talk| talk.expected.is_none()), "seed {seed}");
    }
    println!(
        "{programs} handlers: {complete} completed, {missing} refused, {unordered} left, {rounds} rounds"
    );
    assert!(complete > programs * 9 / 10 && unordered <= programs / 100);
}
