//! Whole exchanges: scripts of messages.

use mrtr_core::{
    client::{Call, InputResponse, Received},
    jsonrpc::Json,
};

use super::*;

fn greet(client: &Client, name: &str, id: i64) -> (Exchange<Pending>, String) {
    let mut out = Vec::new();
    let params = format!(r#"{{"name":"{name}","arguments":{{}}}}"#);
    let exchange = client.start(id.into(), Call::new("tools/call", &params), at(0), &mut out).unwrap();
    (exchange, String::from_utf8(out).unwrap())
}

/// The same message, whatever the order of its members.
fn same(one: &str, other: &str) {
    let value = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
    assert_eq!(value(one), value(other));
}

#[test]
fn v32_echoes_the_state_takes_a_new_id_and_keeps_calls_apart_r_089_r_091_r_092_r_093() {
    let client = client();
    let (greeting, first) = greet(&client, "greet", 1);
    let state = r#""{\"b\": 1,  \"a\":2}""#;
    let ask = interim(&format!(
        r#""inputRequests":{{"confirm":{FORM}}},"requestState":{state},"_meta":{{"x/y":1}}"#
    ));
    let mut greeting = asked(greeting, &ask, 0);
    assert_eq!(greeting.meta().map(Json::as_str), Some(r#"{"x/y":1}"#));

    // Another call goes on meanwhile, with another state, and neither shows up in the other.
    let (other, text) = greet(&client, "other", 2);
    assert!(!text.contains("requestState") && !text.contains("inputResponses"));
    let mut other = asked(other, &asks(&[("confirm", NAME)]), 0);

    greeting.answer("confirm", InputResponse::accept(json(r#"{"yes":true}"#))).unwrap();
    other.answer("confirm", InputResponse::decline()).unwrap();
    let (greeting, text) = proceed(greeting, 3, 0);
    let answers = r#""inputResponses":{"confirm":{"action":"accept","content":{"yes":true}}}"#;
    let original = first.strip_suffix("}}").unwrap().replacen(r#""id":1"#, r#""id":3"#, 1);
    assert_eq!(text, format!(r#"{original},{answers},"requestState":{state}}}}}"#));
    let (_, text) = proceed(other, 4, 0);
    assert!(
        text.ends_with(r#""inputResponses":{"confirm":{"action":"decline"}},"requestState":"s"}}"#),
        "{text}"
    );
    assert!(text.contains(r#""name":"other""#));

    let done = complete(greeting, DONE);
    assert_eq!(done.result().unwrap().as_str(), DONE);
    assert_eq!((done.rounds(), done.carried_answers_or_state()), (2, true));
}

#[test]
fn v34_an_empty_state_is_a_state_r_089_g_04_b_21() {
    let ask = interim(&format!(r#""inputRequests":{{"k":{NAME}}},"requestState":"""#));
    let mut exchange = asked(start(&client()), &ask, 0);
    exchange.answer("k", InputResponse::accept(json(r#"{"name":"A"}"#))).unwrap();
    let (_, text) = proceed(exchange, 2, 0);
    let tail = r#","inputResponses":{"k":{"action":"accept","content":{"name":"A"}}},"requestState":"""#;
    assert_eq!(text, request("2", tail));
}

#[test]
fn v35_state_only_and_empty_map_r_066_r_088_g_02_g_06_b_09_b_11() {
    let exchange = asked(start(&client()), &interim(r#""requestState":"s""#), 1_000);
    assert_eq!(exchange.asks().len(), 0);
    let not_before = exchange.not_before().unwrap();
    assert!((1_050..=1_060).contains(&not_before.as_unix_millis()), "{not_before:?}");
    let (exchange, text) = proceed(exchange, 2, not_before.as_unix_millis());
    assert_eq!(text, request("2", r#","requestState":"s""#));

    let exchange = asked(exchange, &interim(r#""inputRequests":{},"requestState":"s2""#), 2_000);
    assert_eq!(exchange.asks().len(), 0);
    let (exchange, text) = proceed(exchange, 3, 3_000);
    assert_eq!(text, request("3", r#","requestState":"s2""#));
    let done = complete(exchange, DONE);
    assert_eq!((done.rounds(), done.carried_answers_or_state()), (3, true));
}

#[test]
fn v37_the_result_type_alone_decides_r_014_r_015_r_016_g_33_b_05() {
    let plain = r#"{"content":[]}"#;
    assert_eq!(complete(start(&client()), plain).result().unwrap().as_str(), plain);
    // Questions without the word are no questions: nothing is guessed from shape.
    let odd = format!(r#"{{"inputRequests":{{"k":{FORM}}},"requestState":"s"}}"#);
    assert_eq!(complete(start(&client()), &odd).result().unwrap().as_str(), odd);
    for kind in
        [r#""partial""#, r#""task""#, r#""INPUT_REQUIRED""#, r#""streaming""#, r#""""#, "42", "null", "{}"]
    {
        let result = format!(r#"{{"resultType":{kind},"inputRequests":{{"k":{FORM}}},"requestState":"s"}}"#);
        let violation = invalid(start(&client()), &result);
        assert!(violation.to_string().starts_with("result.resultType"), "{violation}");
    }
    for result in ["null", "[]", "1", r#""input_required""#] {
        assert_eq!(invalid(start(&client()), result).to_string(), "result is not an object");
    }
}

#[test]
fn r_016_the_result_type_of_a_declared_extension_ends_the_exchange() {
    let config = config()
        .capability_members(r#"{"extensions":{"io.modelcontextprotocol/tasks":{}}}"#)
        .unwrap()
        .result_type("task");
    let result = r#"{"resultType":"task","taskId":"a"}"#;
    assert_eq!(complete(start(&Client::new(config)), result).result().unwrap().as_str(), result);
}

#[test]
fn b_01_meta_on_an_interim_result_does_not_finish_it() {
    let ask =
        interim(&format!(r#""_meta":{{}},"content":[],"inputRequests":{{"k":{FORM}}},"requestState":"s""#));
    assert_eq!(asked(start(&client()), &ask, 0).asks().len(), 1);
}

#[test]
fn b_02_a_url_ask_of_a_client_that_declared_urls_is_an_ask() {
    let mut exchange = asked(start(&client()), &asks(&[("a", URL)]), 0);
    let ask = exchange.ask("a").unwrap();
    assert_eq!(ask.request().url().as_deref(), Some("https://id.example/1"));
    exchange.answer("a", InputResponse::accepted_url()).unwrap();
    let (_, text) = proceed(exchange, 2, 0);
    assert!(text.contains(r#""inputResponses":{"a":{"action":"accept"}},"#), "{text}");
}

#[test]
fn b_22_a_state_of_an_earlier_round_is_never_sent_again_r_090_trap_3() {
    let mut exchange = asked(start(&client()), &asks(&[("a", FORM)]), 0);
    exchange.answer("a", InputResponse::cancel()).unwrap();
    let (exchange, text) = proceed(exchange, 2, 0);
    assert_eq!(text, request("2", r#","inputResponses":{"a":{"action":"cancel"}},"requestState":"s""#));
    // No state this time: none goes back.
    let ask = interim(&format!(r#""inputRequests":{{"b":{NAME}}}"#));
    let mut exchange = asked(exchange, &ask, 0);
    exchange.answer("b", InputResponse::decline()).unwrap();
    let (exchange, text) = proceed(exchange, 3, 0);
    assert_eq!(text, request("3", r#","inputResponses":{"b":{"action":"decline"}}"#));
    // No questions this time: no answers go back.
    let exchange = asked(exchange, &interim(r#""requestState":"t""#), 0);
    let (exchange, text) = proceed(exchange, 4, 60);
    assert_eq!(text, request("4", r#","requestState":"t""#));
    assert_eq!(complete(exchange, DONE).rounds(), 4);
}

#[test]
fn r_089_odd_spellings_of_a_state_come_back_as_they_were() {
    let states = [
        r#""\u0061\/\u00e9é""#,
        r#"" \t ""#,
        r#""\ud83d\ude00😀""#,
        r#""\ud800""#,
        r#""{\"requestState\":null}""#,
        r#""null""#,
        "\"\u{2028}\u{feff}\"",
    ];
    for state in states {
        let exchange = asked(start(&client()), &interim(&format!(r#""requestState":{state}"#)), 0);
        let (_, text) = proceed(exchange, 2, 60);
        assert_eq!(text, request("2", &format!(r#","requestState":{state}"#)));
    }
}

#[test]
fn g_05_null_in_a_result_is_absent() {
    let exchange = asked(start(&client()), &interim(r#""inputRequests":null,"requestState":"s""#), 0);
    assert_eq!(exchange.asks().len(), 0);
    let mut exchange = asked(
        start(&client()),
        &interim(&format!(r#""inputRequests":{{"k":{FORM}}},"requestState":null"#)),
        0,
    );
    exchange.answer("k", InputResponse::cancel()).unwrap();
    let (_, text) = proceed(exchange, 2, 0);
    assert_eq!(text, request("2", r#","inputResponses":{"k":{"action":"cancel"}}"#));
}

#[test]
fn trap_6_malformed_fields_are_named_and_not_retried_g_02_g_03() {
    let bad = [
        (interim(r#""requestState":42"#), "result.requestState is not a string"),
        (interim(r#""requestState":{}"#), "result.requestState is not a string"),
        (interim(r#""requestState":true,"inputRequests":{}"#), "result.requestState is not a string"),
        (interim(r#""inputRequests":[],"requestState":"s""#), "result.inputRequests is not an object"),
        (interim(r#""inputRequests":"","requestState":"s""#), "result.inputRequests is not an object"),
        (interim(r#""inputRequests":{}"#), "result has neither"),
        (interim(r#""inputRequests":null"#), "result has neither"),
        (interim(r#""requestState":null"#), "result has neither"),
        (interim(r#""x":1"#), "result has neither"),
    ];
    for (result, message) in bad {
        let violation = invalid(start(&client()), &result);
        assert!(violation.to_string().starts_with(message), "{result}: {violation}");
    }
}

#[test]
fn b_03_only_three_methods_may_ask_r_056_trap_10() {
    for method in ["tools/call", "prompts/get", "resources/read"] {
        let mut out = Vec::new();
        let exchange = client().start(1.into(), Call::new(method, "{}"), at(0), &mut out).unwrap();
        assert_eq!(exchange.method(), method);
        assert_eq!(asked(exchange, &asks(&[("k", FORM)]), 0).asks().len(), 1);
    }
    for method in ["tools/list", "initialize", "completion/complete", "tools/call ", "server/discover"] {
        for result in [asks(&[("k", FORM)]), interim(r#""requestState":"s""#)] {
            let mut out = Vec::new();
            let exchange = client().start(1.into(), Call::new(method, "{}"), at(0), &mut out).unwrap();
            let violation = invalid(exchange, &result);
            assert_eq!(violation, Violation::NotAllowed { method: method.to_owned() });
        }
        let mut out = Vec::new();
        let exchange = client().start(1.into(), Call::new(method, "{}"), at(0), &mut out).unwrap();
        assert!(!complete(exchange, DONE).carried_answers_or_state());
    }
}

#[test]
fn r_027_an_error_of_the_peer_is_an_outcome() {
    for code in [-32603, -32602, -32021, -32601, -32002, 7] {
        let message = error("1", code, r#"{"x":[1]}"#);
        let Received::Complete(done) = start(&client()).receive(message.as_bytes(), at(0)) else { panic!() };
        let failure = done.result().unwrap_err();
        assert_eq!(
            (failure.code.get(), failure.data().map(Json::as_str)),
            (i64::from(code), Some(r#"{"x":[1]}"#))
        );
        assert_eq!((done.rounds(), done.carried_answers_or_state()), (1, false));
    }
}

#[test]
fn r_202_trap_17_every_outcome_says_whether_it_may_be_cached() {
    let mut out = Vec::new();
    for _ in 0..2 {
        let call = Call::new("resources/read", r#"{"uri":"file:///a"}"#);
        let exchange = client().start(1.into(), call, at(0), &mut out).unwrap();
        let mut exchange = asked(exchange, &interim(&format!(r#""inputRequests":{{"k":{FORM}}}"#)), 0);
        exchange.answer("k", InputResponse::accept(json("{}"))).unwrap();
        let (exchange, _) = proceed(exchange, 2, 0);
        let done = complete(exchange, r#"{"contents":[],"ttlMs":60000,"cacheScope":"public"}"#);
        assert!(done.carried_answers_or_state());
    }
}

#[test]
fn v39_a_refused_version_is_sent_again_even_if_it_is_the_same_r_045() {
    let refusal = |id: &str, supported: &str| {
        error(id, -32022, &format!(r#"{{"supported":{supported},"requested":"2026-07-28"}}"#))
    };
    let message = refusal("1", r#"["2026-07-28","2025-11-25"]"#);
    let Received::Resend(resend) = start(&client()).receive(message.as_bytes(), at(0)) else { panic!() };
    let mut out = Vec::new();
    // The id must be a new one.
    let resend = resend.send(1.into(), at(0), &mut out).unwrap_err().given_back;
    assert!(out.is_empty());
    let exchange = resend.send(2.into(), at(0), &mut out).unwrap();
    same(std::str::from_utf8(&out).unwrap(), &request("2", ""));
    // Once for each version; then the error is the outcome.
    let Received::Complete(done) = exchange.receive(refusal("2", r#"["2026-07-28"]"#).as_bytes(), at(0))
    else {
        panic!()
    };
    assert_eq!(done.result().unwrap_err().code.get(), -32022);
    assert_eq!(done.rounds(), 1);
    // Nothing in common, or nothing readable: the error is the outcome at once.
    for supported in
        [r#"["2025-11-25"]"#, "[]", "null", r#""2026-07-28""#, "[20260728]", r#"{"2026-07-28":1}"#]
    {
        let message = refusal("1", supported);
        assert!(
            matches!(start(&client()).receive(message.as_bytes(), at(0)), Received::Complete(_)),
            "{supported}"
        );
    }
}

#[test]
fn r_045_a_retry_is_sent_again_with_its_answers_and_state() {
    let mut exchange = asked(start(&client()), &asks(&[("k", FORM)]), 0);
    exchange.answer("k", InputResponse::accept(json(r#"{"yes":true}"#))).unwrap();
    let (exchange, text) = proceed(exchange, 2, 0);
    let message = error("2", -32022, r#"{"supported":["2026-07-28"]}"#);
    let Received::Resend(resend) = exchange.receive(message.as_bytes(), at(0)) else { panic!() };
    let mut out = Vec::new();
    let exchange = resend.send("three".into(), at(0), &mut out).unwrap();
    assert_eq!(String::from_utf8(out).unwrap(), text.replacen(r#""id":2"#, r#""id":"three""#, 1));
    let done = complete(exchange, DONE);
    assert_eq!((done.rounds(), done.carried_answers_or_state()), (2, true));
}

#[test]
fn g_11_a_refused_state_is_told_apart_and_the_call_can_begin_again() {
    let refuse =
        |exchange: Exchange<Retrying>, message: &str| match exchange.receive(message.as_bytes(), at(0)) {
            Received::StateRefused(refused) => refused,
            other => panic!("{other:?}"),
        };
    let mut exchange = asked(start(&client()), &asks(&[("k", FORM)]), 0);
    exchange.answer("k", InputResponse::accept(json("{}"))).unwrap();
    let refused = refuse(proceed(exchange, 2, 0).0, &error("2", -32602, "null"));
    let mut out = Vec::new();
    let refused = refused.restart(1.into(), at(0), &mut out).unwrap_err().given_back;
    let exchange = refused.restart(3.into(), at(0), &mut out).unwrap();
    assert_eq!(String::from_utf8(out).unwrap(), request("3", ""));
    // The rest of the way is as usual, and the outcome of a first request may be cached.
    assert!(!complete(exchange, DONE).carried_answers_or_state());

    // Without a state, and with another code, an error is only an error.
    let ask = interim(&format!(r#""inputRequests":{{"k":{FORM}}}"#));
    let mut exchange = asked(start(&client()), &ask, 0);
    exchange.answer("k", InputResponse::accept(json("{}"))).unwrap();
    let exchange = proceed(exchange, 2, 0).0;
    assert!(matches!(exchange.receive(error("2", -32602, "1").as_bytes(), at(0)), Received::Complete(_)));
    let exchange = asked(start(&client()), &interim(r#""requestState":"s""#), 0);
    let exchange = proceed(exchange, 2, 60).0;
    assert!(matches!(exchange.receive(error("2", -32603, "1").as_bytes(), at(0)), Received::Complete(_)));
}
