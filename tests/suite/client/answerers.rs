//! One answerer for both eras: what it declares, how a round is put to it, what becomes of failures.

use std::{
    collections::BTreeMap,
    future::Future,
    pin::pin,
    sync::Mutex,
    task::{Context, Poll, Waker},
};

use mrtr_core::{
    client::{
        AnswerError, Answerer, Answering, Asking, Elicit, ElicitUrl, InputResponse, ListRoots, NoAnswers,
        NotAnswered, Question, RoundFailed, Sample, Why, answer_one,
    },
    form::Elicited,
    wire::{Action, AskKind, InputRequest, Root},
};

use super::*;

/// What is done with a question: the answers in their order, and how often it is polled before each.
type Script = Vec<(u32, Result<String, NotAnswered>)>;

/// A line of a script as tests write it.
type Line<'a> = (u32, Result<&'a str, &'a str>);

/// Answers by script, and remembers what it was asked.
#[derive(Default)]
struct Table {
    parts: [bool; 6],
    script: Mutex<BTreeMap<String, Script>>,
    seen: Mutex<Vec<String>>,
    /// Questions at a time, now and at most.
    open: Mutex<(usize, usize)>,
    not_now: Vec<&'static str>,
}

impl Table {
    fn new(script: &[(&str, &[Line<'_>])]) -> Self {
        let entry = |(key, script): &(&str, &[Line<'_>])| {
            let line = |(polls, outcome): &Line<'_>| {
                let outcome = outcome.map(String::from);
                (*polls, outcome.map_err(|reason| NotAnswered::Unavailable(reason.into())))
            };
            ((*key).to_owned(), script.iter().map(line).collect())
        };
        Self { parts: [true; 6], script: Mutex::new(script.iter().map(entry).collect()), ..Self::default() }
    }

    fn seen(&self) -> Vec<String> {
        self.seen.lock().unwrap().clone()
    }

    async fn give(&self, question: Question<'_>) -> Result<String, NotAnswered> {
        let key = question.key().unwrap_or("").to_owned();
        let problem = question.problem().map(|problem| format!(": {problem}")).unwrap_or_default();
        self.seen.lock().unwrap().push(format!("{key}{problem}"));
        let (polls, outcome) = self.script.lock().unwrap().get_mut(&key).expect("scripted").remove(0);
        {
            let mut open = self.open.lock().unwrap();
            open.0 += 1;
            open.1 = open.1.max(open.0);
        }
        for _ in 0..polls {
            yield_once().await;
        }
        self.open.lock().unwrap().0 -= 1;
        outcome
    }
}

async fn yield_once() {
    let mut polled = false;
    std::future::poll_fn(
        |_| if std::mem::replace(&mut polled, true) { Poll::Ready(()) } else { Poll::Pending },
    )
    .await;
}

impl Answerer for Table {
    fn forms(&self) -> Option<&dyn Elicit> {
        self.parts[0].then_some(self)
    }

    fn urls(&self) -> Option<&dyn ElicitUrl> {
        self.parts[1].then_some(self)
    }

    fn sampling(&self) -> Option<&dyn Sample> {
        self.parts[2].then_some(self)
    }

    fn roots(&self) -> Option<&dyn ListRoots> {
        self.parts[5].then_some(self)
    }

    fn could_answer(&self, question: Question<'_>) -> Result<(), NotAnswered> {
        match question.key().is_some_and(|key| self.not_now.contains(&key)) {
            true => Err(NotAnswered::Unavailable("no screen".into())),
            false => Ok(()),
        }
    }
}

impl Elicit for Table {
    fn elicit<'a>(&'a self, question: Question<'a>) -> Answering<'a, Elicited<String>> {
        Box::pin(async move {
            Ok(match &*self.give(question).await? {
                "decline" => Elicited::Decline,
                "cancel" => Elicited::Cancel,
                content => Elicited::Accept(content.to_owned()),
            })
        })
    }
}

impl ElicitUrl for Table {
    fn elicit_url<'a>(&'a self, question: Question<'a>) -> Answering<'a, Action> {
        Box::pin(async move {
            let url = question.request().url().map(|url| url.into_owned()).expect("a url");
            self.seen.lock().unwrap().push(format!("{url} {:?}", question.before()));
            Ok(Action::from_name(&self.give(question).await?).expect("an action"))
        })
    }
}

impl Sample for Table {
    fn sample<'a>(&'a self, question: Question<'a>) -> Answering<'a, String> {
        Box::pin(self.give(question))
    }

    fn tools(&self) -> bool {
        self.parts[3]
    }

    fn context(&self) -> bool {
        self.parts[4]
    }
}

impl ListRoots for Table {
    fn list_roots<'a>(&'a self, question: Question<'a>) -> Answering<'a, Vec<Root>> {
        Box::pin(async move {
            self.give(question).await?;
            Ok(vec![Root::new("file:///home/ada").named("home \"1\""), Root::new("file:///tmp")])
        })
    }
}

/// Polls to the end; nothing here waits for anything but being polled.
fn run<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    let mut cx = Context::from_waker(Waker::noop());
    for _ in 0..10_000 {
        if let Poll::Ready(done) = future.as_mut().poll(&mut cx) {
            return done;
        }
    }
    panic!("never done");
}

fn round(entries: &[(&str, &str)]) -> Exchange<InputRequired> {
    asked(start(&client()), &asks(entries), 0)
}

fn answer_of(exchange: &Exchange<InputRequired>, key: &str) -> Option<String> {
    exchange.ask(key).unwrap().answer().map(|answer| answer.as_str().to_owned())
}

/// R-100…R-105: what is declared is exactly what there is a part for, each mode by itself.
#[test]
fn r_100_the_parts_are_what_is_declared() {
    for set in 0..64_u32 {
        let parts: [bool; 6] = std::array::from_fn(|bit| set >> bit & 1 == 1);
        let [form, url, sampling, tools, context, roots] = parts;
        let can = ClientCapabilities::of(&Table { parts, ..Table::default() });
        assert_eq!((can.elicitation, can.form, can.url), (form || url, form, url));
        assert_eq!((can.sampling, can.roots), (sampling, roots));
        assert_eq!((can.sampling_tools, can.sampling_context), (sampling && tools, sampling && context));
    }
    assert_eq!(ClientCapabilities::of(&NoAnswers), ClientCapabilities::default());
}

/// R-087, R-128, R-150, R-155: a round of every kind is answered and can go on.
#[test]
fn a_round_of_every_kind() {
    let mut exchange =
        round(&[("f", NAME), ("u", URL), ("s", SAMPLING), ("r", ROOTS), ("d", FORM), ("c", FORM)]);
    let sampled = r#"{"role":"assistant","content":{"type":"text","text":"hi"},"model":"m"}"#;
    let table = Table::new(&[
        ("f", &[(3, Ok(r#"{"name":"Ada"}"#))]),
        ("u", &[(0, Ok("accept"))]),
        ("s", &[(1, Ok(sampled))]),
        ("r", &[(0, Ok(""))]),
        ("d", &[(2, Ok("decline"))]),
        ("c", &[(0, Ok("cancel"))]),
    ]);
    run(exchange.ask_all(&table, &Asking::default())).unwrap();
    assert!(exchange.can_proceed(at(0)));
    for (key, answer) in [
        ("f", r#"{"action":"accept","content":{"name":"Ada"}}"#),
        ("u", r#"{"action":"accept"}"#),
        ("s", sampled),
        ("r", r#"{"roots":[{"uri":"file:///home/ada","name":"home \"1\""},{"uri":"file:///tmp"}]}"#),
        ("d", r#"{"action":"decline"}"#),
        ("c", r#"{"action":"cancel"}"#),
    ] {
        assert_eq!(answer_of(&exchange, key).as_deref(), Some(answer));
    }
    // Nothing is left to ask, so nobody is.
    run(exchange.ask_all(&NoAnswers, &Asking::default())).unwrap();
}

/// Questions are asked at the same time, in their order, up to the limit.
#[test]
fn at_most_so_many_at_a_time() {
    let keys: Vec<String> = (0..9).map(|n| format!("k{n}")).collect();
    for (at_a_time, most) in [(0, 1), (1, 1), (4, 4), (9, 9), (10, 9)] {
        let entries: Vec<_> = keys.iter().map(|key| (&**key, FORM)).collect();
        let mut exchange = round(&entries);
        let script: Vec<(&str, &[Line<'_>])> =
            keys.iter().map(|key| (&**key, &[(2, Ok("{}"))][..])).collect();
        let table = Table::new(&script);
        let mut asking = Asking::default();
        asking.at_a_time = at_a_time;
        run(exchange.ask_all(&table, &asking)).unwrap();
        assert_eq!(table.open.lock().unwrap().1, most);
        assert_eq!(table.seen(), keys);
        assert_eq!(exchange.missing().count(), 0);
    }
}

/// G-17, trap 15, W-15: a failure names its key, keeps the answers of the others (those under way too), and nobody
/// further is asked; it is no decline. The exchange can be answered later.
#[test]
fn g_17_a_failure_keeps_the_answers_of_the_others() {
    let mut exchange = round(&[("a", FORM), ("b", FORM), ("c", FORM), ("d", FORM)]);
    let table = Table::new(&[
        ("a", &[(0, Ok("{}"))]),
        ("b", &[(1, Err("the window was closed")), (0, Ok("{}"))]),
        ("c", &[(5, Ok("decline"))]),
        ("d", &[(0, Ok("{}"))]),
    ]);
    let mut asking = Asking::default();
    asking.at_a_time = 2;
    let RoundFailed { unanswered, .. } = run(exchange.ask_all(&table, &asking)).unwrap_err();
    assert_eq!(unanswered.len(), 1);
    assert_eq!(unanswered[0].to_string(), r#""b" (nobody could be asked: the window was closed)"#);
    assert_eq!(table.seen(), ["a", "b", "c"]);
    assert_eq!(exchange.missing().collect::<Vec<_>>(), ["b", "d"]);
    assert!(!exchange.can_proceed(at(0)));
    run(exchange.ask_all(&table, &asking)).unwrap();
    assert_eq!(table.seen(), ["a", "b", "c", "b", "d"]);
    assert_eq!(answer_of(&exchange, "c").as_deref(), Some(r#"{"action":"decline"}"#));
}

/// W-16, B-58: if one cannot be asked, none is.
#[test]
fn nobody_is_asked_in_vain() {
    let mut exchange = round(&[("a", FORM), ("b", URL), ("c", FORM), ("d", ROOTS)]);
    let mut table = Table::new(&[]);
    table.not_now = vec!["c"];
    table.parts[1] = false;
    let failed = run(exchange.ask_all(&table, &Asking::default())).unwrap_err();
    assert_eq!(
        failed.to_string(),
        r#"not answered: "b" (there is nobody who answers such questions), "c" (nobody could be asked: no screen)"#
    );
    assert!(table.seen().is_empty() && exchange.missing().count() == 4);
}

/// R-098: an answer that does not fit is asked for again with what is wrong with it, so often and no oftener, and is
/// never sent; the error names the key and the field.
#[test]
fn r_098_content_that_does_not_fit_is_asked_for_again() {
    let bad = r#"{"name":5}"#;
    for (attempts, asked, fits) in [(0, 1, false), (1, 1, false), (2, 2, false), (3, 3, true), (4, 3, true)] {
        let mut exchange = round(&[("n", NAME)]);
        let table = Table::new(&[("n", &[(0, Ok(bad)), (0, Ok("{")), (0, Ok(r#"{"name":"Ada"}"#))])]);
        let mut asking = Asking::default();
        asking.attempts = attempts;
        let outcome = run(exchange.ask_all(&table, &asking));
        assert_eq!((table.seen().len(), outcome.is_ok()), (asked, fits), "{attempts}");
        let second = table.seen().get(1).cloned();
        assert!(
            second.is_none_or(|second| second == "n: answer.content: name: must be text"),
            "{:?}",
            table.seen()
        );
        if let Err(failed) = outcome {
            assert_eq!(failed.unanswered[0].key, "n");
            assert!(matches!(failed.unanswered[0].why, Why::Invalid(_)));
            assert!(!failed.to_string().contains('5'));
            assert_eq!(exchange.missing().count(), 1);
        }
    }
}

/// R-098, R-132, G-18…G-24: content is held against the schema that was asked with, every field; of a schema outside
/// the form language (G-16) only what holds for all.
#[test]
fn r_132_content_is_held_against_its_schema() {
    let form = r#"{"method":"elicitation/create","params":{"message":"m","requestedSchema":{"type":"object",
        "properties":{"n":{"type":"integer","minimum":1},"s":{"type":"string","enum":["a","b"]}},"required":["n","s"]}}}"#;
    let nested = r#"{"method":"elicitation/create","params":{"message":"m","requestedSchema":{"type":"object",
        "properties":{"o":{"type":"object","properties":{}}}}}}"#;
    let mut exchange = round(&[("f", form), ("o", nested)]);
    let accept = |text| InputResponse::accept(json(text));
    let wire = |text| InputResponse::from_wire(json(text));
    let fault = exchange.answer("f", accept(r#"{"n":0}"#)).unwrap_err();
    assert_eq!(fault.to_string(), "answer.content: n: must be at least 1; s: is required");
    let AnswerError::Fields(invalid) = fault else { panic!() };
    assert_eq!(invalid.faults().len(), 2);
    for text in [r#"{"action":"accept","content":{"n":1,"s":"c"}}"#, r#"{"action":"accept"}"#] {
        assert!(matches!(exchange.answer("f", wire(text)), Err(AnswerError::Fields(_))), "{text}");
    }
    // A refusal has no content that could be wrong (B-38).
    exchange.answer("f", wire(r#"{"action":"decline","content":{"n":"x"}}"#)).unwrap();
    exchange.answer("f", accept(r#"{"n":1.0,"s":"b","x":1}"#)).unwrap();
    exchange.answer("o", accept(r#"{"o":"anything"}"#)).unwrap();
    assert!(matches!(exchange.answer("o", accept(r#"{"o":{}}"#)), Err(AnswerError::Content { .. })));
}

/// R-141, G-32: a url reaches whoever opens it whole and unchanged, is accepted by nobody else, and comes back with
/// what was done with it.
#[test]
fn r_141_urls_are_shown_whole_and_never_accepted_by_themselves() {
    let url = r#"{"method":"elicitation/create","params":{"mode":"url","message":"m","url":"https://xn--e1awd7f.example/a?b=%20#c"}}"#;
    let mut exchange = round(&[("u", url)]);
    let failed = run(exchange.ask_all(&NoAnswers, &Asking::default())).unwrap_err();
    assert!(matches!(failed.unanswered[0].why, Why::NotImplemented));
    assert_eq!(answer_of(&exchange, "u"), None);
    let table = Table::new(&[("u", &[(0, Ok("accept"))]), ("again", &[(0, Ok("accept"))])]);
    run(exchange.ask_all(&table, &Asking::default())).unwrap();
    let (retrying, _) = proceed(exchange, 2, 0);
    let mut exchange = asked(retrying, &asks(&[("again", url)]), 0);
    run(exchange.ask_all(&table, &Asking::default())).unwrap();
    let whole = "https://xn--e1awd7f.example/a?b=%20#c";
    assert_eq!(
        table.seen(),
        [format!("{whole} None"), "u".into(), format!("{whole} Some(Accept)"), "again".into()]
    );
}

/// G-31, B-63: dropping a round ends its questions, keeps what was answered, and answers nothing.
#[test]
fn g_31_dropping_a_round_keeps_what_was_answered() {
    let mut exchange = round(&[("a", FORM), ("b", FORM)]);
    let table = Table::new(&[("a", &[(0, Ok("{}"))]), ("b", &[(9, Ok("{}"))])]);
    {
        let mut round = pin!(exchange.ask_all(&table, &Asking::default()));
        assert!(round.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    }
    assert_eq!(exchange.missing().collect::<Vec<_>>(), ["b"]);
    // Between rounds nothing is under way: there is nothing to cancel, and nothing to send (R-190).
    exchange.abandon();
}

/// The server's name is passed on as a claim (R-036, R-122).
#[test]
fn the_server_is_named() {
    let result = interim(&format!(
        r#""inputRequests":{{"k":{FORM}}},"_meta":{{"io.modelcontextprotocol/serverInfo":{{"name":"files","version":"1"}}}}"#
    ));
    let exchange = asked(start(&client()), &result, 0);
    assert_eq!(exchange.server_name().as_deref(), Some("files"));
    assert_eq!(round(&[("k", FORM)]).server_name(), None);
}

/// R-237, W-15: a legacy server gets the same answers as results, and an error for what nobody answered.
#[test]
fn r_237_the_same_answerer_serves_legacy_requests() {
    let limits = Limits::default();
    let ask = |text| InputRequest::from_json(json(text)).unwrap().into_owned();
    let one = |table: &Table, text| {
        let (request, asking) = (ask(text), Asking::default());
        run(answer_one(table, &request, Some("srv"), &limits, &asking))
    };
    let table = Table::new(&[("", &[(1, Ok(r#"{"name":1}"#)), (0, Ok(r#"{"name":"Ada"}"#))])]);
    assert_eq!(one(&table, NAME).unwrap(), r#"{"action":"accept","content":{"name":"Ada"}}"#);
    assert_eq!(table.seen().len(), 2);
    for (text, kind, outcome, code) in [
        (SAMPLING, AskKind::Sampling, NotAnswered::Refused("no".into()), -1),
        (SAMPLING, AskKind::Sampling, NotAnswered::Unavailable("no".into()), -32603),
        (FORM, AskKind::Form, NotAnswered::Refused("no".into()), -32603),
        (ROOTS, AskKind::Roots, NotAnswered::Unavailable("no".into()), -32603),
    ] {
        let table = Table::new(&[("", &[])]);
        table.script.lock().unwrap().insert(String::new(), vec![(0, Err(outcome))]);
        let failed = one(&table, text).unwrap_err();
        assert_eq!((failed.kind, failed.to_error().code.get()), (kind, code));
    }
}
