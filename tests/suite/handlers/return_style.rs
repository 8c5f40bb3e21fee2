//! Return-style handlers: typed state, typed answers, the protection that async handlers have (A7, G-25, G-26).

use mrtr_core::{
    Entropy, Timestamp,
    form::{Field, Form},
    seal::Principal,
    server::{Config, Exchange, Given, InputRequests, Open, Received, RoundEnv, Server},
    wire::Sampling,
};
use mrtr_tests::world::{Reply, START, World, accept, cancel, config, decline};
use serde_json::{Value, json};

#[derive(Debug, PartialEq, serde::Deserialize)]
struct Party {
    people: u8,
}

#[derive(Default, serde::Serialize, serde::Deserialize)]
struct Seen {
    rounds: u32,
}

fn party() -> Form {
    Form::builder("For how many?")
        .field(Field::integer("people").minimum(1).maximum(12).required())
        .build()
        .expect("a valid form")
}

/// What a step of a test does with an exchange: what it sees, and what it asks next (`None`: it completes).
type Step<'s> = &'s dyn Fn(&dyn Look) -> (String, Option<InputRequests>);

/// The answers of an exchange in either state.
trait Look {
    fn party(&self) -> Given<Party>;
    fn confirm(&self, message: &str) -> Given<()>;
    fn url(&self) -> Given<()>;
    fn sample(&self) -> Option<String>;
    fn roots(&self) -> Option<usize>;
}

impl<S: Open> Look for Exchange<'_, S> {
    fn party(&self) -> Given<Party> {
        self.answer_form("party", &party())
    }
    fn confirm(&self, message: &str) -> Given<()> {
        self.answer_confirm("sure", message)
    }
    fn url(&self) -> Given<()> {
        self.answer_url("url", "Open", "https://example.com/")
    }
    fn sample(&self) -> Option<String> {
        self.answer_sample("sample", &Sampling::new(9).user("?")).given().map(|said| said.text().to_string())
    }
    fn roots(&self) -> Option<usize> {
        self.answer_roots("roots").given().map(|roots| roots.len())
    }
}

struct Desk {
    server: Server,
    world: World,
    entropy: u8,
}

impl Desk {
    fn new(config: Config) -> Self {
        let world = World::new(|_| async { Ok(mrtr_core::handler::ToolResult::new()) });
        Self { server: Server::new(config), world, entropy: 0 }
    }

    fn call(&mut self, params: Value, step: Step<'_>) -> (String, Reply) {
        let request = self.world.tool_call(&params).to_string();
        self.entropy += 1;
        let now = Timestamp::from_unix_millis(START);
        let env = RoundEnv::new(now, Entropy::new([self.entropy; 32]), Principal::Authenticated(b"ada"));
        let mut out = Vec::new();
        let seen = match self.server.receive(request.as_bytes(), env) {
            Received::Pending(exchange) => serve(exchange, Seen::default(), step, now, &mut out),
            Received::Retrying(exchange) => {
                let state = exchange.state().expect("its own state").expect("a state");
                serve(exchange, state, step, now, &mut out)
            }
            Received::Rejected(rejected) => {
                rejected.write(&mut out);
                "rejected".to_owned()
            }
            other => panic!("{other:?}"),
        };
        (seen, Reply(serde_json::from_slice(&out).expect("a reply is JSON")))
    }

    fn retry(&mut self, last: &Reply, answers: Value, step: Step<'_>) -> (String, Reply) {
        self.call(json!({"requestState": last.state(), "inputResponses": answers}), step)
    }
}

fn serve<S: Open>(
    exchange: Exchange<'_, S>,
    state: Seen,
    step: Step<'_>,
    now: Timestamp,
    out: &mut Vec<u8>,
) -> String {
    let (seen, asks) = step(&exchange);
    match asks {
        Some(asks) => {
            let _ = exchange.require(asks, &Seen { rounds: state.rounds + 1 }, now, out).expect("asked");
        }
        None => {
            let text = json!({"content": [{"type": "text", "text": state.rounds.to_string()}]});
            let _ = exchange.complete(&text, out);
        }
    }
    seen
}

fn ask_party(look: &dyn Look) -> (String, Option<InputRequests>) {
    (format!("{:?}", look.party()), Some(InputRequests::new().form("party", &party())))
}

/// the outcomes of one form, each in its own word; typed state counts the rounds.
#[test]
fn every_outcome_of_a_form() {
    let mut desk = Desk::new(config());
    let (seen, first) = desk.call(json!({}), &ask_party);
    assert_eq!(seen, "Missing");
    for (answers, expected) in [
        (json!({"party": accept(json!({"people": 4}))}), "Given(Party { people: 4 })"),
        (json!({"party": decline()}), "Declined"),
        (json!({"party": cancel()}), "Cancelled"),
        (json!({}), "Missing"),
        (json!({"other": decline()}), "Missing"),
    ] {
        assert_eq!(desk.retry(&first, answers, &ask_party).0, expected);
    }
    let (seen, _) = desk.retry(&first, json!({"party": accept(json!({"people": 13}))}), &ask_party);
    assert!(seen.starts_with("Invalid(") && !seen.contains("13"), "{seen}");
    assert_eq!(desk.retry(&first, json!({"party": 5}), &ask_party).0, "rejected");
    // The state goes along.
    let (_, second) = desk.retry(&first, json!({}), &ask_party);
    let (_, done) = desk.retry(&second, json!({}), &|look| (format!("{:?}", look.party()), None));
    assert_eq!(done.text(), "2");
}

/// G-26, B-42: an answer counts for the question that was shown, in whichever round that was.
#[test]
fn answers_of_earlier_rounds_and_changed_questions() {
    let mut desk = Desk::new(config());
    let (_, first) = desk.call(json!({}), &ask_party);
    let confirm = |message: &'static str| {
        move |look: &dyn Look| {
            let seen = format!("{:?} {:?}", look.party(), look.confirm(message));
            (seen, Some(InputRequests::new().confirm("sure", message)))
        }
    };
    let given = json!({"party": accept(json!({"people": 4}))});
    let (seen, second) = desk.retry(&first, given, &confirm("Book?"));
    assert_eq!(seen, "Given(Party { people: 4 }) Missing");
    let yes = json!({"sure": accept(json!({}))});
    let (seen, _) = desk.retry(&second, yes.clone(), &confirm("Book?"));
    assert_eq!(seen, "Given(Party { people: 4 }) Given(())");
    // The same key, another question: a yes to the one is none to the other.
    let (seen, third) = desk.retry(&second, yes.clone(), &confirm("Book the ballroom?"));
    assert_eq!(seen, "Given(Party { people: 4 }) Changed");
    // Asked by now, and not answered.
    let (seen, _) = desk.retry(&third, json!({}), &confirm("Book the ballroom?"));
    assert_eq!(seen, "Given(Party { people: 4 }) Missing");
    // Back to the first question: the yes to it is older than another question under its key, and counts no more; as in a
    // handler, whose journal was cut off there (A8).
    let (seen, again) = desk.retry(&third, yes, &confirm("Book?"));
    assert_eq!(seen, "Given(Party { people: 4 }) Changed");
    let (seen, _) = desk.retry(&again, json!({}), &confirm("Book?"));
    assert_eq!(seen, "Given(Party { people: 4 }) Missing");
    let (seen, _) = desk.retry(&again, json!({"sure": decline()}), &confirm("Book?"));
    assert_eq!(seen, "Given(Party { people: 4 }) Declined");
}

/// Content that did not fit stays so in later rounds until it is answered again.
#[test]
fn an_invalid_answer_of_an_earlier_round() {
    let mut desk = Desk::new(config());
    let (_, first) = desk.call(json!({}), &ask_party);
    let other =
        |look: &dyn Look| (format!("{:?}", look.party()), Some(InputRequests::new().confirm("sure", "?")));
    let (_, second) = desk.retry(&first, json!({"party": accept(json!({"people": 0}))}), &other);
    let (seen, third) = desk.retry(&second, json!({}), &ask_party);
    assert!(seen.starts_with("Invalid("), "{seen}");
    let (seen, _) = desk.retry(&third, json!({"party": accept(json!({"people": 1}))}), &ask_party);
    assert_eq!(seen, "Given(Party { people: 1 })");
}

/// A7, R-083: without a state only forms, sampling and roots are answered; never a confirmation or a url, and
/// nothing at all where the server demands states.
#[test]
fn answers_without_a_state() {
    let answers = json!({"inputResponses": {
        "party": accept(json!({"people": 4})), "sure": accept(json!({})), "url": {"action": "accept"},
        "sample": {"role": "assistant", "model": "m", "content": {"type": "text", "text": "hi"}},
        "roots": {"roots": [{"uri": "file:///a"}]},
    }});
    let look = |look: &dyn Look| {
        let (sample, roots) = (look.sample(), look.roots());
        let seen =
            format!("{:?} {:?} {:?} {sample:?} {roots:?}", look.party(), look.confirm("Book?"), look.url());
        (seen, None)
    };
    let (seen, _) = Desk::new(config()).call(answers.clone(), &look);
    assert_eq!(seen, "Given(Party { people: 4 }) Missing Missing Some(\"hi\") Some(1)");
    let mut config = config();
    config.require_state = true;
    let (seen, _) = Desk::new(config).call(answers, &look);
    assert_eq!(seen, "Missing Missing Missing None None");
}

/// Every kind goes there and back in one line each way.
#[test]
fn every_kind_there_and_back() {
    let mut desk = Desk::new(config());
    let asks = |_: &dyn Look| {
        let asks = InputRequests::new()
            .form("party", &party())
            .confirm("sure", "Book?")
            .url("url", "Open", "https://example.com/")
            .sample("sample", &Sampling::new(9).user("?"))
            .roots("roots");
        (String::new(), Some(asks))
    };
    let (_, first) = desk.call(json!({}), &asks);
    assert_eq!(first.keys().len(), 5);
    let answers = json!({
        "party": accept(json!({"people": 4})), "sure": accept(json!({})), "url": {"action": "accept"},
        "sample": {"role": "assistant", "model": "m", "content": {"type": "text", "text": "hi"}},
        "roots": {"roots": []},
    });
    let look = |look: &dyn Look| {
        let (sample, roots) = (look.sample(), look.roots());
        let seen =
            format!("{:?} {:?} {:?} {sample:?} {roots:?}", look.party(), look.confirm("Book?"), look.url());
        (seen, None)
    };
    let (seen, _) = desk.retry(&first, answers, &look);
    assert_eq!(seen, "Given(Party { people: 4 }) Given(()) Given(()) Some(\"hi\") Some(0)");
}
