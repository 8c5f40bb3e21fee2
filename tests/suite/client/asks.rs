//! Which asks are taken, and which make the whole response invalid.

use mrtr_core::{
    client::{Call, InputResponse},
    wire::AskKind,
};

use super::*;

fn with(capabilities: ClientCapabilities) -> Client {
    Client::new(Config::new(Implementation::new("t", "1"), capabilities))
}

fn declaring(change: impl FnOnce(&mut ClientCapabilities)) -> ClientCapabilities {
    let mut capabilities = ClientCapabilities::default();
    change(&mut capabilities);
    capabilities
}

#[test]
fn g_15_r_103_trap_19_an_undeclared_ask_spoils_the_whole_response_and_is_named() {
    let tools = r#"{"method":"sampling/createMessage","params":{"messages":[],"maxTokens":1,"tools":[]}}"#;
    let choice =
        r#"{"method":"sampling/createMessage","params":{"messages":[],"maxTokens":1,"toolChoice":{}}}"#;
    let form = declaring(|can| can.form = true);
    let url = declaring(|can| can.url = true);
    let sampling = declaring(|can| can.sampling = true);
    let roots = declaring(|can| can.roots = true);
    let none = ClientCapabilities::default();
    let all = ClientCapabilities::ALL;
    for (ask, kind, allowed, refused) in [
        (FORM, AskKind::Form, vec![form, all], vec![none, url, sampling, roots]),
        (URL, AskKind::Url, vec![url, all], vec![none, form, sampling, roots]),
        (SAMPLING, AskKind::Sampling, vec![sampling, all], vec![none, form, url, roots]),
        (tools, AskKind::Sampling, vec![all], vec![none, sampling]),
        (choice, AskKind::Sampling, vec![all], vec![none, sampling]),
        (ROOTS, AskKind::Roots, vec![roots, all], vec![none, form, url, sampling]),
    ] {
        for can in allowed {
            assert_eq!(asked(start(&with(can)), &asks(&[("k", ask)]), 0).asks().len(), 1);
        }
        for can in refused {
            let result = asks(&[("k", ask)]);
            let violation = invalid(start(&with(can)), &result);
            assert_eq!(violation, Violation::Undeclared { key: "k".to_owned(), kind });
        }
    }
    // One of several is enough.
    let violation = invalid(start(&with(form)), &asks(&[("a", FORM), ("b", ROOTS), ("c", FORM)]));
    assert_eq!(
        violation.to_string(),
        r#"result.inputRequests["b"] asks for roots, which this call did not declare"#
    );
}

#[test]
fn r_042_the_capabilities_of_the_call_decide() {
    let form = declaring(|can| can.form = true);
    for (client, call, expected) in
        [(form, ClientCapabilities::default(), 0), (ClientCapabilities::default(), form, 1)]
    {
        let mut out = Vec::new();
        let call = Call::new("tools/call", "{}").capabilities(call);
        let exchange = with(client).start(1.into(), call, at(0), &mut out).unwrap();
        match receive(exchange, &asks(&[("k", FORM)]), 0) {
            Received::InputRequired(exchange) => assert_eq!(exchange.asks().len(), expected),
            Received::Invalid(_) => assert_eq!(expected, 0),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn tools_without_sampling_are_not_declared() {
    let odd = declaring(|can| can.sampling_tools = true);
    // It goes out as {"sampling":{"tools":{}}}, and that is what a server may use.
    assert_eq!(asked(start(&with(odd)), &asks(&[("k", SAMPLING)]), 0).asks().len(), 1);
}

#[test]
fn trap_8_malformed_asks_are_named_by_their_key_r_060() {
    let elicit = |params: &str| format!(r#"{{"method":"elicitation/create","params":{params}}}"#);
    let sample = |params: &str| format!(r#"{{"method":"sampling/createMessage","params":{params}}}"#);
    let bad = [
        "null".to_owned(),
        "5".to_owned(),
        "[]".to_owned(),
        r#""elicitation/create""#.to_owned(),
        "{}".to_owned(),
        r#"{"method":null}"#.to_owned(),
        r#"{"method":7}"#.to_owned(),
        r#"{"method":"tools/call","params":{}}"#.to_owned(),
        r#"{"method":"Elicitation/create","params":{}}"#.to_owned(),
        r#"{"method":"roots/list","params":null}"#.to_owned(),
        r#"{"method":"roots/list","params":[]}"#.to_owned(),
        r#"{"method":"elicitation/create"}"#.to_owned(),
        r#"{"method":"sampling/createMessage"}"#.to_owned(),
        elicit("null"),
        elicit("{}"),
        elicit(r#"{"message":1,"requestedSchema":{}}"#),
        elicit(r#"{"message":"m"}"#),
        elicit(r#"{"message":"m","requestedSchema":null}"#),
        elicit(r#"{"message":"m","requestedSchema":[]}"#),
        elicit(r#"{"mode":"other","message":"m","requestedSchema":{}}"#),
        elicit(r#"{"mode":null,"message":"m","requestedSchema":{}}"#),
        elicit(r#"{"mode":"url","message":"m"}"#),
        elicit(r#"{"mode":"url","message":"m","url":1}"#),
        elicit(r#"{"mode":"url","url":"https://x"}"#),
        sample(r#"{"maxTokens":1}"#),
        sample(r#"{"messages":{},"maxTokens":1}"#),
        sample(r#"{"messages":[]}"#),
        sample(r#"{"messages":[],"maxTokens":"1"}"#),
    ];
    for ask in bad {
        for entries in [vec![("x", &*ask)], vec![("a", FORM), ("x", &*ask)], vec![("x", &*ask), ("z", FORM)]]
        {
            let violation = invalid(start(&client()), &asks(&entries));
            let message = violation.to_string();
            assert!(message.starts_with(r#"result.inputRequests["x"]"#), "{ask}: {message}");
        }
    }
    for good in
        [ROOTS, r#"{"method":"roots/list","params":{}}"#, r#"{"method":"roots/list","x":1,"id":1}"#, FORM]
    {
        assert_eq!(asked(start(&client()), &asks(&[("x", good)]), 0).asks().len(), 1);
    }
}

#[test]
fn g_37_any_string_is_a_key() {
    let odd = "\u{0}\"\\\n é😀\u{2028}";
    let keys = ["", "undefined", "__proto__", odd, " ", "a\u{301}"];
    let entries: Vec<_> = keys.iter().map(|key| (*key, FORM)).collect();
    let mut exchange = asked(start(&client()), &asks(&entries), 0);
    assert_eq!(exchange.asks().map(|ask| ask.key().to_owned()).collect::<Vec<_>>(), keys);
    for key in keys {
        exchange.answer(key, InputResponse::decline()).unwrap();
    }
    let (_, sent) = proceed(exchange, 2, 0);
    let value: serde_json::Value = serde_json::from_str(&sent).unwrap();
    let answers = value["params"]["inputResponses"].as_object().unwrap();
    assert_eq!(answers.len(), keys.len());
    assert!(keys.iter().all(|key| answers[*key]["action"] == "decline"));
    // What is no text could not be sent back as it was.
    let result = interim(&format!(r#""inputRequests":{{"a":{FORM},"\ud800":{FORM}}}"#));
    assert_eq!(
        invalid(start(&client()), &result).to_string(),
        "result.inputRequests has a key that is no text"
    );
}

#[test]
fn trap_12_big_responses_are_bounded() {
    let many = |count: usize| {
        let keys: Vec<_> = (0..count).map(|at| at.to_string()).collect();
        asks(&keys.iter().map(|key| (&**key, ROOTS)).collect::<Vec<_>>())
    };
    for count in [65, 1_000, 10_000] {
        let message = invalid(start(&client()), &many(count)).to_string();
        assert!(message.contains("more than 64 entries (Limits::asks_accepted)"), "{message}");
    }
    // The bounded pass comes first: 100,000 asks are too many values, 10 MB too many bytes.
    let message = invalid(start(&client()), &many(100_000)).to_string();
    assert!(message.contains("Limits::nodes"), "{message}");
    let own = Client::new(config().channel(mrtr_core::client::Channel::Own));
    let message = invalid(start(&own), &format!(r#"{{"content":"{}"}}"#, "x".repeat(10 << 20))).to_string();
    assert!(message.contains("Limits::message_bytes"), "{message}");
    let schema = format!("{}1{}", r#"{"a":"#.repeat(200), "}".repeat(200));
    let deep =
        format!(r#"{{"method":"elicitation/create","params":{{"message":"m","requestedSchema":{schema}}}}}"#);
    let message = invalid(start(&client()), &asks(&[("k", &deep)])).to_string();
    assert!(message.contains("Limits::depth"), "{message}");
    let wide = format!("[{}1]", "1,".repeat(100_000));
    let message = invalid(start(&client()), &format!(r#"{{"content":{wide}}}"#)).to_string();
    assert!(message.contains("Limits::nodes"), "{message}");
    let message = invalid(start(&client()), r#"{"a":1,"a":2}"#).to_string();
    assert!(message.contains("same name twice"), "{message}");
}
