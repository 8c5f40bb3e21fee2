//! Servers that answer with values instead of awaiting: `Exchange::require`, `answer`, `state`, `complete`, `fail`.

use mrtr_core::{
    Entropy, Limits, RpcError, Timestamp,
    form::{Field, Form},
    http::ReplyClass,
    jsonrpc::Json,
    seal::Principal,
    server::{Config, Exchange, Given, InputRequests, Open, Received, RequireError, RoundEnv, Server},
    wire::{InputRequest, Sampling},
};
use mrtr_tests::world::{START, accept, config, lawful};
use serde_json::{Value, json};

use super::ask;

const REFUSED: &str = "Invalid or expired requestState";

struct Bench {
    server: Server,
    now: Timestamp,
    draws: u8,
    capabilities: Value,
}

/// A retry of the bench: what the last reply had, with answers.
fn with(last: &Value, answers: Value) -> Value {
    json!({"requestState": last["result"]["requestState"], "inputResponses": answers})
}

impl Bench {
    fn new(config: Config) -> Self {
        let capabilities = json!({"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {}});
        Self { server: Server::new(config), now: Timestamp::from_unix_millis(START), draws: 0, capabilities }
    }

    /// Sends a call and lets `serve` answer it.
    fn send(&mut self, more: &Value, serve: impl FnOnce(Either<'_>, Timestamp, &mut Vec<u8>)) -> Value {
        self.draws += 1;
        let mut params = json!({"name": "t", "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": self.capabilities}});
        super::merge(&mut params, more);
        let message =
            json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string();
        let env = RoundEnv::new(self.now, Entropy::new([self.draws; 32]), Principal::Anonymous);
        let mut out = Vec::new();
        match self.server.receive(message.as_bytes(), env) {
            Received::Pending(exchange) => serve(Either::First(exchange), self.now, &mut out),
            Received::Retrying(exchange) => serve(Either::Again(exchange), self.now, &mut out),
            Received::Rejected(rejected) => rejected.write(&mut out),
            other => panic!("{other:?}"),
        }
        lawful(&out)
    }
}

enum Either<'a> {
    First(Exchange<'a, mrtr_core::server::Pending>),
    Again(Exchange<'a, mrtr_core::server::Retrying>),
}

fn date() -> InputRequest<'static> {
    Form::builder("When?")
        .field(Field::integer("n").minimum(0).maximum(9).required())
        .build()
        .expect("valid")
        .to_request()
}

fn text(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}]})
}

/// A server that asks for a date, then for a yes, and keeps the date in its own state.
fn book(either: Either<'_>, now: Timestamp, out: &mut Vec<u8>) {
    fn go<S: Open>(exchange: Exchange<'_, S>, kept: Option<String>, now: Timestamp, out: &mut Vec<u8>) {
        let date_given = match (kept, exchange.answer("date", &date())) {
            (Some(kept), _) => kept,
            (None, Given::Given(content)) => content,
            (None, Given::Declined) => {
                let _ = exchange.complete(&text("declined"), out);
                return;
            }
            (None, Given::Cancelled) => {
                let _ = exchange.fail(&RpcError::invalid_params("cancelled"), out);
                return;
            }
            (None, _) => {
                let _ =
                    exchange.require(InputRequests::new().ask("date", date()), &(), now, out).expect("asked");
                return;
            }
        };
        let sure = InputRequest::confirm(&format!("Book {date_given}?"));
        match exchange.answer("sure", &sure) {
            Given::Given(_) => drop(exchange.complete(&text(&format!("booked {date_given}")), out)),
            Given::Declined | Given::Cancelled => drop(exchange.complete(&text("not booked"), out)),
            _ => drop(
                exchange
                    .require(InputRequests::new().ask("sure", sure), &Some(date_given), now, out)
                    .expect("asked"),
            ),
        }
    }
    match either {
        Either::First(exchange) => go(exchange, None, now, out),
        Either::Again(exchange) => {
            let kept = exchange.state::<Option<String>>().expect("our own state").flatten();
            go(exchange, kept, now, out);
        }
    }
}

/// R-057, R-066, R-067, R-078: rounds, states of the server's own, the end.
#[test]
fn r_057_a_flow_of_two_rounds() {
    let mut bench = Bench::new(config());
    let first = bench.send(&json!({}), book);
    assert_eq!(first["result"]["inputRequests"]["date"]["method"], "elicitation/create");
    let second = bench.send(&with(&first, json!({"date": accept(json!({"n": 3, "unknown": 1}))})), book);
    assert_eq!(second["result"]["inputRequests"]["sure"]["params"]["message"], "Book {\"n\":3}?");
    assert_ne!(first["result"]["requestState"], second["result"]["requestState"]);
    let done = bench.send(&with(&second, json!({"sure": accept(json!({}))})), book);
    assert_eq!(done["result"]["content"][0]["text"], "booked {\"n\":3}");
    for (action, said) in [("decline", "not booked"), ("cancel", "not booked")] {
        let done = bench.send(&with(&second, json!({"sure": {"action": action}})), book);
        assert_eq!(done["result"]["content"][0]["text"], said);
    }
    let declined = bench.send(&with(&first, json!({"date": {"action": "decline"}})), book);
    assert_eq!(declined["result"]["content"][0]["text"], "declined");
    let cancelled = bench.send(&with(&first, json!({"date": {"action": "cancel"}})), book);
    assert_eq!(cancelled["error"], json!({"code": -32602, "message": "cancelled"}));
    // Nothing usable: the same question. Content that does not fit: the same question.
    for answers in [json!({}), json!({"other": accept(json!({}))}), json!({"date": accept(json!({"n": 10}))})]
    {
        let again = bench.send(&with(&first, answers), book);
        assert!(again["result"]["inputRequests"]["date"].is_object(), "{again}");
        let done = bench.send(&with(&again, json!({"date": accept(json!({"n": 3}))})), book);
        assert!(done["result"]["inputRequests"]["sure"].is_object(), "{done}");
    }
    // Wrong structure is refused before the server sees it.
    let wrong = bench.send(&with(&first, json!({"date": 5})), |_, _, _| panic!("not reached"));
    assert_eq!(wrong["error"]["code"], -32602);
}

/// R-069…R-074: a return-style server's state is protected like any other.
#[test]
fn r_071_states_are_protected() {
    let mut bench = Bench::new(config());
    let first = bench.send(&json!({"arguments": {"id": "A"}}), book);
    let mut retry = with(&first, json!({"date": accept(json!({"n": 3}))}));
    retry["arguments"] = json!({"id": "B"});
    assert_eq!(bench.send(&retry, |_, _, _| panic!("not reached"))["error"]["message"], REFUSED);
    retry["arguments"] = json!({"id": "A"});
    retry["requestState"] = json!(format!("{}A", first["result"]["requestState"].as_str().expect("a state")));
    assert_eq!(bench.send(&retry, |_, _, _| panic!("not reached"))["error"]["message"], REFUSED);
}

/// G-26, A7, R-083: what an answer answers. `Changed` when the question under the key is another one by now.
#[test]
fn g_26_given_is_for_the_question_as_it_is_now() {
    let mut bench = Bench::new(config());
    let given = |bench: &mut Bench, more: &Value, key: &str, now_asked: &InputRequest<'_>| {
        let mut seen = None;
        bench.send(more, |either, _, out| {
            seen = Some(match &either {
                Either::First(exchange) => exchange.answer(key, now_asked),
                Either::Again(exchange) => exchange.answer(key, now_asked),
            });
            match either {
                Either::First(exchange) => drop(exchange.complete(&json!({}), out)),
                Either::Again(exchange) => drop(exchange.complete(&json!({}), out)),
            }
        });
        seen.expect("seen")
    };
    let url = InputRequest::open_url("m", "https://example.com/");
    let sample = Sampling::new(5).user("x").request();
    let roots = InputRequest::roots();
    let asks = InputRequests::new()
        .ask("f", date())
        .ask("u", url.clone())
        .ask("s", sample.clone())
        .ask("r", roots.clone());
    let first = bench.send(&json!({}), |either, now, out| {
        let Either::First(exchange) = either else { panic!("a first request") };
        let exchange = exchange.require(asks, &json!({"step": 1}), now, out).expect("asked");
        assert_eq!(exchange.keys().collect::<Vec<_>>(), ["f", "u", "s", "r"]);
        assert_eq!(exchange.expires(), now.saturating_add(std::time::Duration::from_secs(600)));
    });
    let sampled = json!({"role": "assistant", "model": "m", "content": {"type": "text", "text": "y"}});
    let answers = with(
        &first,
        json!({
        "f": accept(json!({"n": 1})), "u": {"action": "accept"}, "s": sampled, "r": {"roots": [{"uri": "file:///a"}]}}),
    );
    let form_is = Given::Given(String::from("{\"n\":1}"));
    assert_eq!(given(&mut bench, &answers, "f", &date()), form_is);
    assert_eq!(given(&mut bench, &answers, "u", &url), Given::Given(String::new()));
    assert!(
        matches!(given(&mut bench, &answers, "s", &sample), Given::Given(text) if text.contains("\"model\":\"m\""))
    );
    assert_eq!(given(&mut bench, &answers, "r", &roots), Given::Given("[{\"uri\":\"file:///a\"}]".into()));
    // Another question under the key, by wording, by form, by kind.
    for other in [
        InputRequest::confirm("When?"),
        Form::builder("When?")
            .field(Field::integer("n").minimum(0).maximum(10).required())
            .build()
            .expect("valid")
            .to_request(),
        url.clone(),
        sample.clone(),
        roots.clone(),
    ] {
        assert_eq!(given(&mut bench, &answers, "f", &other), Given::Changed, "{other:?}");
    }
    assert_eq!(
        given(&mut bench, &answers, "u", &InputRequest::open_url("m", "https://example.com/2")),
        Given::Changed
    );
    assert_eq!(given(&mut bench, &answers, "unknown", &date()), Given::Missing);
    // The same question in other words of JSON is the same.
    let spelled = ask(
        &json!({"method": "elicitation/create", "params": {"requestedSchema": {"required": ["n"], "properties": {
        "n": {"maximum": 9.0, "minimum": 0, "type": "integer"}}, "type": "object"}, "message": "When?", "mode": "form", "_meta": {"x": 1}}}),
    );
    assert_eq!(given(&mut bench, &answers, "f", &spelled), form_is);
    assert_eq!(
        given(&mut bench, &with(&first, json!({"f": {"action": "decline"}})), "f", &date()),
        Given::Declined
    );
    assert_eq!(
        given(&mut bench, &with(&first, json!({"u": {"action": "cancel"}})), "u", &url),
        Given::Cancelled
    );
    assert!(matches!(
        given(&mut bench, &with(&first, json!({"f": accept(json!({}))})), "f", &date()),
        Given::Invalid(_)
    ));
    assert_eq!(given(&mut bench, &with(&first, json!({})), "f", &date()), Given::Missing);
    // Without a state: forms, sampling and roots, not urls.
    let early = json!({"inputResponses": answers["inputResponses"]});
    assert_eq!(given(&mut bench, &early, "f", &date()), form_is);
    assert!(matches!(given(&mut bench, &early, "s", &sample), Given::Given(_)));
    assert!(matches!(given(&mut bench, &early, "r", &roots), Given::Given(_)));
    assert_eq!(given(&mut bench, &early, "u", &url), Given::Missing);
    let mut strict = config();
    strict.require_state = true;
    assert_eq!(given(&mut Bench::new(strict), &early, "f", &date()), Given::Missing);
}

/// R-067, G-25: answers of earlier rounds are found again, and later ones cannot change them.
#[test]
fn g_25_earlier_answers_travel_in_the_state() {
    let mut bench = Bench::new(config());
    let other = InputRequest::confirm("And this?");
    let round = |asks: InputRequests| {
        move |either: Either<'_>, now: Timestamp, out: &mut Vec<u8>| match either {
            Either::First(exchange) => drop(exchange.require(asks, &0, now, out).expect("asked")),
            Either::Again(exchange) => drop(exchange.require(asks, &0, now, out).expect("asked")),
        }
    };
    let first = bench.send(&json!({}), round(InputRequests::new().ask("f", date())));
    let second = bench.send(
        &with(&first, json!({"f": accept(json!({"n": 1}))})),
        round(InputRequests::new().ask("o", other.clone())),
    );
    let answers = json!({"o": accept(json!({})), "f": accept(json!({"n": 2}))});
    bench.send(&with(&second, answers), |either, _, out| {
        let Either::Again(exchange) = either else { panic!("a retry") };
        assert_eq!(exchange.answer("f", &date()), Given::Given("{\"n\":1}".into()));
        assert_eq!(exchange.answer("o", &other), Given::Given("{}".into()));
        assert_eq!(exchange.state::<u8>().expect("ours"), Some(0));
        assert!(exchange.state::<String>().is_err());
        let _ = exchange.complete(&json!({}), out);
    });
}

/// R-061, R-106, R-058, G-37: what cannot be asked, with a whole error in `out`.
#[test]
fn r_106_what_cannot_be_asked() {
    let mut limits = Limits::default();
    limits.asks_sent = 2;
    limits.rounds = 2;
    limits.state_only_rounds = 2;
    let mut config = config();
    config.limits = limits;
    let mut bench = Bench::new(config);
    let mut refused = |asks: InputRequests, state: Value| {
        let mut error = None;
        let reply = bench.send(&json!({}), |either, now, out| {
            let Either::First(exchange) = either else { panic!("a first request") };
            error = exchange.require(asks, &state, now, out).err();
        });
        (error.expect("refused"), reply["error"].clone())
    };
    let (error, reply) =
        refused(InputRequests::new().ask("s", Sampling::new(5).member("tools", "[]").request()), json!(0));
    assert!(matches!(error, RequireError::MissingCapability));
    assert_eq!(reply["data"], json!({"requiredCapabilities": {"sampling": {"tools": {}}}}));
    for key in ["", "a b", "a#1", "é"] {
        let (error, reply) = refused(InputRequests::new().ask(key, date()), json!(0));
        assert!(matches!(error, RequireError::Fault(_)));
        assert_eq!(reply["code"], -32603);
    }
    let three = InputRequests::new().ask("a", date()).ask("b", date()).ask("c", date());
    let (_, reply) = refused(three, json!(0));
    assert!(reply["message"].as_str().expect("text").contains("Limits::asks_sent"), "{reply}");
    let (error, reply) = refused(InputRequests::new().ask("a", date()), json!("x".repeat(70_000)));
    assert!(matches!(error, RequireError::Seal(_)));
    let message = reply["message"].as_str().expect("text");
    assert!(message.contains("state_minted") && message.contains("65536"), "{message}");
    // A later ask under the same key takes the earlier one's place.
    let twice = InputRequests::new().ask("a", InputRequest::roots()).ask("a", date());
    let reply = bench.send(&json!({}), |either, now, out| {
        let Either::First(exchange) = either else { panic!("a first request") };
        let _ = exchange.require(twice, &0, now, out).expect("asked");
    });
    assert_eq!(reply["result"]["inputRequests"]["a"]["method"], "elicitation/create");
}

/// R-066, limits: rounds with and without questions have caps of their own, named when reached.
#[test]
fn rounds_of_both_kinds_are_capped() {
    for (asks, field) in [
        (InputRequests::new(), "state_only_rounds"),
        (InputRequests::new().ask("a", date()), "Limits::rounds"),
    ] {
        let mut config = config();
        config.limits.rounds = 3;
        config.limits.state_only_rounds = 3;
        let mut bench = Bench::new(config);
        let serve = |either: Either<'_>, now: Timestamp, out: &mut Vec<u8>| match either {
            Either::First(exchange) => drop(exchange.require(asks.clone(), &0, now, out)),
            Either::Again(exchange) => drop(exchange.require(asks.clone(), &0, now, out)),
        };
        let mut last = bench.send(&json!({}), serve);
        for _ in 1..3 {
            last = bench.send(&with(&last, json!({})), serve);
            assert_eq!(last["result"]["resultType"], "input_required");
        }
        let over = bench.send(&with(&last, json!({})), serve);
        assert!(over["error"]["message"].as_str().expect("an error").contains(field), "{over}");
    }
}

/// R-012, R-036, R-086, decision 1: results and errors of a return-style server, and their classes.
#[test]
fn results_and_errors() {
    let mut bench = Bench::new(config());
    let done = bench.send(&json!({}), |either, _, out| {
        let Either::First(exchange) = either else { panic!("a first request") };
        assert_eq!(exchange.arguments().as_str(), "{}");
        assert_eq!((exchange.target(), exchange.method().name()), ("t", "tools/call"));
        let done = exchange.complete(&json!({"content": [], "isError": true, "resultType": "task"}), out);
        assert_eq!(done.class(), ReplyClass::Result);
    });
    assert_eq!(
        (&done["result"]["resultType"], &done["result"]["isError"]),
        (&json!("complete"), &json!(true))
    );
    let failed = bench.send(&json!({}), |either, _, out| {
        let Either::First(exchange) = either else { panic!("a first request") };
        let failed = exchange.complete(&[1, 2], out);
        assert_eq!(failed.class().status(), 200);
    });
    assert_eq!(failed["error"], json!({"code": -32603, "message": "Internal error"}));
    // A map whose keys are no strings cannot be written.
    let failed = bench.send(&json!({}), |either, _, out| {
        let Either::First(exchange) = either else { panic!("a first request") };
        let _ = exchange.complete(&std::collections::BTreeMap::from([((1, 2), 3)]), out);
    });
    assert_eq!(failed["error"]["code"], -32603);
    let failed = bench.send(&json!({}), |either, now, out| {
        let Either::First(exchange) = either else { panic!("a first request") };
        let unwritable = std::collections::BTreeMap::from([((1, 2), 3)]);
        assert!(matches!(
            exchange.require(InputRequests::new(), &unwritable, now, out),
            Err(RequireError::State)
        ));
    });
    assert_eq!(failed["error"]["code"], -32603);
    let _ = Json::EMPTY_OBJECT;
}

/// R-060, R-115, R-123, R-134, R-145: asks that no client could answer are not sent by a return-style server either.
#[test]
fn r_123_asks_that_nobody_could_answer_are_not_sent() {
    let nested = json!({"type": "object", "properties": {"p": {"type": "object", "properties": {}}}});
    let beyond = json!({"type": "object", "properties": {"p": {"type": "string", "pattern": "^a"}}});
    for request in [
        Sampling::new(5).user("x").member("temperature", "0.5}").request(),
        Sampling::new(5).user("x").member("messages", "[]").request(),
        ask(&json!({"method": "elicitation/create", "params": {"message": "m", "requestedSchema": nested}})),
        ask(&json!({"method": "elicitation/create", "params": {"message": "m", "requestedSchema": beyond}})),
        InputRequest::open_url("m", "no url"),
    ] {
        let mut error = None;
        let mut out = Vec::new();
        let mut bench = Bench::new(config());
        let reply = bench.send(&json!({}), |either, now, sent| {
            let Either::First(exchange) = either else { panic!("a first request") };
            error = exchange.require(InputRequests::new().ask("k", request.clone()), &0, now, &mut out).err();
            sent.extend_from_slice(&out);
        });
        assert_eq!(reply["error"], json!({"code": -32603, "message": "Internal error"}), "{request:?}");
        assert!(matches!(error, Some(RequireError::Fault(_))), "{request:?}");
    }
}
