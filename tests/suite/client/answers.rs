//! Which answers are taken, and what goes out for them.

use mrtr_core::client::{AnswerError, InputResponse, Reason};

use super::*;

/// A round with one ask of each kind.
fn round() -> Exchange<InputRequired> {
    let entries = [("form", FORM), ("url", URL), ("sampling", SAMPLING), ("roots", ROOTS)];
    asked(start(&client()), &asks(&entries), 0)
}

/// What goes out for an answer.
fn sent(key: &str, response: InputResponse<'_>) -> Result<String, AnswerError> {
    let mut exchange = round();
    exchange.answer(key, response)?;
    Ok(exchange.ask(key).unwrap().answer().unwrap().as_str().to_owned())
}

const SAMPLED: &str =
    r#"{"role":"assistant","content":{"type":"text","text":"4"},"model":"m","stopReason":"x"}"#;

#[test]
fn r_128_r_129_r_095_each_answer_has_its_form_on_the_wire() {
    for (key, response, expected) in [
        ("form", InputResponse::accept(json("{ }")), r#"{"action":"accept","content":{ }}"#),
        (
            "form",
            InputResponse::accept(json("{\n\"a\":[\"x\"],\"b\":1.50}")),
            r#"{"action":"accept","content":{"a":["x"],"b":1.50}}"#,
        ),
        ("form", InputResponse::decline(), r#"{"action":"decline"}"#),
        ("form", InputResponse::cancel(), r#"{"action":"cancel"}"#),
        ("url", InputResponse::accepted_url(), r#"{"action":"accept"}"#),
        ("url", InputResponse::decline(), r#"{"action":"decline"}"#),
        ("url", InputResponse::cancel(), r#"{"action":"cancel"}"#),
        ("sampling", InputResponse::sampling(json(SAMPLED)), SAMPLED),
        ("roots", InputResponse::roots(json("[]")), r#"{"roots":[]}"#),
        (
            "roots",
            InputResponse::roots(json(r#"[{"uri":"file:///a","name":"A"},{"uri":"file://b"}]"#)),
            r#"{"roots":[{"uri":"file:///a","name":"A"},{"uri":"file://b"}]}"#,
        ),
    ] {
        assert_eq!(sent(key, response).unwrap(), expected);
    }
    let value = std::collections::BTreeMap::from([("a", 1)]);
    assert_eq!(
        sent("form", InputResponse::accept_value(&value).unwrap()).unwrap(),
        r#"{"action":"accept","content":{"a":1}}"#
    );
}

#[test]
fn r_079_an_answer_of_another_kind_is_refused() {
    let given = [
        ("form", InputResponse::accept(json("{}"))),
        ("url", InputResponse::accepted_url()),
        ("sampling", InputResponse::sampling(json(SAMPLED))),
        ("roots", InputResponse::roots(json("[]"))),
    ];
    for (fits, response) in &given {
        for (key, _) in &given {
            match sent(key, response.clone()) {
                Ok(_) => assert_eq!(key, fits),
                Err(error) => {
                    assert_ne!(key, fits);
                    assert!(matches!(error, AnswerError::WrongKind(kind) if kind.name() == *key), "{error}");
                }
            }
        }
    }
    for key in ["sampling", "roots"] {
        for refusal in [InputResponse::decline(), InputResponse::cancel()] {
            assert!(matches!(sent(key, refusal), Err(AnswerError::WrongKind(_))));
        }
    }
    for key in ["", "Form", "form ", "other"] {
        assert_eq!(sent_error(key), AnswerError::UnknownKey);
    }
}

fn sent_error(key: &str) -> AnswerError {
    round().answer(key, InputResponse::decline()).unwrap_err()
}

#[test]
fn r_098_r_130_content_is_flat() {
    for content in
        [r#"{"a":null}"#, r#"{"a":{}}"#, r#"{"a":[1]}"#, r#"{"a":["x",null]}"#, r#"{"b":1,"a":[[]]}"#]
    {
        let error = sent("form", InputResponse::accept(json(content))).unwrap_err();
        assert!(matches!(&error, AnswerError::Content { member, .. } if member == "a"), "{error}");
    }
    for content in ["[]", "null", "1", r#""{}""#] {
        let error = sent("form", InputResponse::accept(json(content))).unwrap_err();
        assert_eq!(error.to_string(), "answer.content: is not an object");
    }
    for content in [r#"{"a":"","b":-0.5e3,"c":false,"d":[],"e":["x","y"]}"#, "{}"] {
        assert!(sent("form", InputResponse::accept(json(content))).is_ok());
    }
}

#[test]
fn r_150_r_155_results_of_the_wrong_structure_are_refused_with_their_path() {
    for (result, message) in [
        ("[]", "answer: is not an object"),
        (r#"{"content":{},"model":"m"}"#, "answer.role:"),
        (r#"{"role":"system","content":{},"model":"m"}"#, "answer.role:"),
        (r#"{"role":"user","content":{}}"#, "answer.model:"),
        (r#"{"role":"user","model":"m"}"#, "answer.content:"),
        (r#"{"role":"user","content":"hi","model":"m"}"#, "answer.content:"),
        (r#"{"role":"user","content":[1],"model":"m"}"#, "answer.content:"),
    ] {
        let error = sent("sampling", InputResponse::sampling(json(result))).unwrap_err();
        assert!(error.to_string().starts_with(message), "{result}: {error}");
    }
    for list in ["{}", "null", "[1]", "[{}]", r#"[{"uri":"http://a"}]"#, r#"[{"uri":"file:///a","name":1}]"#]
    {
        let error = sent("roots", InputResponse::roots(json(list))).unwrap_err();
        assert!(error.to_string().starts_with("answer.roots:"), "{list}: {error}");
    }
}

#[test]
fn answers_from_the_wire_keep_what_is_unknown_and_lose_what_does_not_belong_r_010_r_129() {
    for (key, given, expected) in [
        (
            "form",
            r#"{"content":{"a":1},"x":[1],"action":"accept"}"#,
            r#"{"action":"accept","content":{"a":1},"x":[1]}"#,
        ),
        ("form", r#"{"action":"accept"}"#, r#"{"action":"accept","content":{}}"#),
        ("form", r#"{"action":"accept","content":null}"#, r#"{"action":"accept","content":{}}"#),
        ("form", r#"{"action":"decline","content":{"a":1}}"#, r#"{"action":"decline"}"#),
        ("url", r#"{"action":"accept","content":{"a":1}}"#, r#"{"action":"accept"}"#),
        ("url", r#"{"action":"cancel","_meta":{}}"#, r#"{"action":"cancel","_meta":{}}"#),
        ("sampling", SAMPLED, SAMPLED),
        ("roots", r#"{"roots":[],"x":1}"#, r#"{"roots":[],"x":1}"#),
    ] {
        assert_eq!(sent(key, InputResponse::from_wire(json(given))).unwrap(), expected);
    }
    for (key, given) in [
        ("form", "{}"),
        ("form", r#"{"action":"yes"}"#),
        ("form", r#"{"action":"accept","content":[]}"#),
        ("form", r#"{"action":"accept","content":{"a":{}}}"#),
        ("url", "null"),
        ("sampling", r#"{"action":"accept"}"#),
        ("roots", r#"{"roots":{}}"#),
    ] {
        assert!(sent(key, InputResponse::from_wire(json(given))).is_err(), "{given}");
    }
}

#[test]
fn r_087_b_63_nothing_goes_out_before_everything_is_answered() {
    let mut exchange = round();
    let mut out = Vec::new();
    for (answered, (key, response)) in [
        ("roots", InputResponse::roots(json("[]"))),
        ("form", InputResponse::accept(json("{}"))),
        ("sampling", InputResponse::sampling(json(SAMPLED))),
        ("url", InputResponse::accepted_url()),
    ]
    .into_iter()
    .enumerate()
    {
        assert!(!exchange.can_proceed(at(0)));
        assert_eq!(exchange.missing().count(), 4 - answered);
        let refused = exchange.proceed(2.into(), at(0), &mut out).unwrap_err();
        let Reason::Missing { keys } = refused.reason else { panic!("{:?}", refused.reason) };
        assert_eq!(keys.len(), 4 - answered);
        assert!(keys.iter().any(|missing| missing == key));
        exchange = refused.given_back;
        exchange.answer(key, response).unwrap();
    }
    assert!(out.is_empty());
    assert!(exchange.can_proceed(at(0)));
    exchange.withdraw("form");
    assert!(!exchange.can_proceed(at(0)));
    exchange.answer("form", InputResponse::decline()).unwrap();
    let (_, sent) = proceed(exchange, 2, 0);
    // In the order in which they were asked.
    let tail = concat!(
        r#","inputResponses":{"form":{"action":"decline"},"url":{"action":"accept"},"sampling":"#,
        r#"{"role":"assistant","content":{"type":"text","text":"4"},"model":"m","stopReason":"x"},"#,
        r#""roots":{"roots":[]}},"requestState":"s""#
    );
    assert_eq!(sent, request("2", tail));
}

#[test]
fn trap_15_an_answer_survives_the_failure_of_another_g_17() {
    let mut exchange = round();
    exchange.answer("form", InputResponse::accept(json(r#"{"a":"kept"}"#))).unwrap();
    assert!(exchange.answer("sampling", InputResponse::sampling(json("{}"))).is_err());
    assert!(exchange.answer("form", InputResponse::accept(json(r#"{"a":null}"#))).is_err());
    assert_eq!(
        exchange.ask("form").unwrap().answer().unwrap().as_str(),
        r#"{"action":"accept","content":{"a":"kept"}}"#
    );
    // A second thought replaces the first.
    exchange.answer("form", InputResponse::cancel()).unwrap();
    assert_eq!(exchange.ask("form").unwrap().answer().unwrap().as_str(), r#"{"action":"cancel"}"#);
    // Given up, nothing is sent, and there is nothing to write to.
    exchange.abandon();
}

#[test]
fn nothing_goes_out_that_no_peer_would_take() {
    struct Twice;
    impl serde::Serialize for Twice {
        fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            use serde::ser::SerializeMap as _;
            let mut map = serializer.serialize_map(Some(2))?;
            map.serialize_entry("a", &1)?;
            map.serialize_entry("a", &2)?;
            map.end()
        }
    }
    let response = InputResponse::accept_value(&Twice).unwrap();
    assert!(matches!(sent("form", response), Err(AnswerError::Json(_))));
    assert!(InputResponse::accept_value(&std::collections::BTreeMap::from([((1, 2), 3)])).is_err());
    // Parsed under looser bounds than the client's.
    let mut loose = Limits::default();
    loose.depth = 1_000;
    let deep =
        format!(r#"{{"role":"user","model":"m","content":{{"x":{}{}}}}}"#, "[".repeat(90), "]".repeat(90));
    let deep = Json::parse(&deep, &loose).unwrap();
    assert!(matches!(sent("sampling", InputResponse::sampling(deep)), Err(AnswerError::Json(_))));
}
