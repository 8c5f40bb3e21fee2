//! The content as a whole, and the three actions: R-128…R-133, G-18…G-21, B-38, B-39, B-77.

use mrtr_core::{
    form::{Elicited, Problem, Schema},
    wire::{Action, Answer, AskKind, read_answer},
};

use super::{json, schema};

fn booking() -> Schema {
    schema(
        r#"{"type":"object","properties":{
            "z":{"type":"string","minLength":1},
            "people":{"type":"integer","default":2},
            "a":{"type":"boolean","default":true}
        },"required":["z","people"]}"#,
    )
}

#[test]
fn keeps_the_order_of_the_form_and_drops_what_it_does_not_have_g20() {
    let content = json(r#"{"a":false,"evil":{"deep":[1,2]},"people":2.0,"z":"x","__proto__":{"z":1}}"#);
    assert_eq!(booking().validate(content).unwrap().as_str(), r#"{"z":"x","people":2,"a":false}"#);
}

#[test]
fn nothing_is_filled_in_by_the_server_g21() {
    let cleaned = booking().validate(json(r#"{"z":"x","people":1}"#)).unwrap();
    assert_eq!(cleaned.as_str(), r#"{"z":"x","people":1}"#);
    // A default does not make up for a required field either.
    let invalid = booking().validate(json(r#"{"z":"x"}"#)).unwrap_err();
    assert_eq!(invalid.to_string(), "people: is required");
}

#[test]
fn names_every_field_at_fault_r132() {
    let invalid = booking().validate(json(r#"{"a":"yes","z":""}"#)).unwrap_err();
    assert_eq!(
        invalid.to_string(),
        "z: must have at least 1 character; people: is required; a: must be yes or no (true or false)"
    );
    let fields: Vec<&str> = invalid.faults().iter().map(|fault| fault.field.as_str()).collect();
    assert_eq!(fields, ["z", "people", "a"]);
    assert_eq!(invalid.faults()[1].problem, Problem::Missing);
}

#[test]
fn a_long_sentence_ends() {
    let properties: Vec<String> = (0..20).map(|at| format!(r#""f{at}":{{"type":"string"}}"#)).collect();
    let names: Vec<String> = (0..20).map(|at| format!(r#""f{at}""#)).collect();
    let text = format!(r#"{{"properties":{{{}}},"required":[{}]}}"#, properties.join(","), names.join(","));
    let invalid = schema(&text).validate(json("{}")).unwrap_err();
    assert_eq!(invalid.faults().len(), 20);
    assert!(invalid.to_string().ends_with("f7: is required; and 12 more"), "{invalid}");
}

#[test]
fn accept_without_content_is_an_empty_form_g19() {
    for text in [r#"{"action":"accept"}"#, r#"{"action":"accept","content":null}"#] {
        let Ok(Answer::Form { action, content }) = read_answer(AskKind::Form, json(text)) else {
            panic!("{text}")
        };
        let invalid = booking().judge(action, content).unwrap_err();
        assert_eq!(invalid.to_string(), "z: is required; people: is required");
        let empty = schema(r#"{"type":"object","properties":{}}"#);
        assert_eq!(empty.judge(action, content).unwrap().to_json(), r#"{"action":"accept","content":{}}"#);
    }
}

#[test]
fn content_of_a_refusal_is_not_looked_at_b38() {
    for (action, word) in [(Action::Decline, "decline"), (Action::Cancel, "cancel")] {
        for content in [r#"{"z":"x","people":1}"#, r#"{"z":7}"#, "null", "[]"] {
            let judged = booking().judge(action, json(content)).unwrap();
            assert_eq!(judged.to_json(), format!(r#"{{"action":"{word}"}}"#));
            assert!(judged.accepted().is_none());
            assert_eq!(Elicited::<u8>::from_parts(action, json(content)).unwrap().action(), action);
        }
    }
}

#[test]
fn decodes_into_a_type_w17() {
    #[derive(serde::Deserialize, PartialEq)]
    struct Booking {
        z: String,
        people: i64,
        a: Option<bool>,
    }
    let judged = booking().judge(Action::Accept, json(r#"{"people":1e2,"z":"\u00e9"}"#)).unwrap();
    let Elicited::Accept(decoded) = judged.decode::<Booking>().unwrap() else { panic!() };
    assert!(decoded == Booking { z: "é".into(), people: 100, a: None });
    // A recorded answer is decoded without the form.
    let recorded = judged.to_json();
    let Ok(Answer::Form { action, content }) = read_answer(AskKind::Form, json(&recorded)) else { panic!() };
    assert!(Elicited::from_parts(action, content).unwrap() == Elicited::Accept(decoded));
}

/// The form takes 2^64, `i64` does not: a fault like any other, and the decoder's quotation stays inside.
#[test]
fn content_that_fits_the_form_and_not_the_type_is_invalid() {
    #[derive(Debug, serde::Deserialize)]
    struct Booking {
        #[allow(dead_code)]
        people: i64,
    }
    let cleaned = booking().validate(json(r#"{"z":"x","people":18446744073709551616}"#)).unwrap();
    let invalid = cleaned.decode::<Booking>().unwrap_err();
    assert_eq!(invalid.faults()[0].problem, Problem::Unfit);
    assert!(!invalid.to_string().contains("1844"), "{invalid}");
}

#[test]
fn content_that_is_no_object_is_invalid() {
    for content in ["[]", "null", "1", r#""{}""#] {
        let invalid = booking().validate(json(content)).unwrap_err();
        assert_eq!(invalid.faults()[0].problem, Problem::NotAnObject);
    }
}

/// No answer content in `Debug` or in errors.
#[test]
fn what_was_given_is_never_shown() {
    let form = schema(
        r#"{"properties":{"s":{"type":"string","maxLength":3,"format":"email"},"n":{"type":"integer","maximum":3},
            "o":{"enum":["a"]},"m":{"type":"array","items":{"enum":["a"]},"maxItems":1},"b":{"type":"boolean"}}}"#,
    );
    let content = r#"{"s":"hunter2","n":7777777,"o":"hunter2","m":["hunter2"],"b":"hunter2"}"#;
    let invalid = form.validate(json(content)).unwrap_err();
    assert_eq!(invalid.faults().len(), 5);
    let shown = format!("{invalid} {invalid:?}");
    assert!(!shown.contains("hunter2") && !shown.contains("7777777"), "{shown}");

    let free = schema(r#"{"properties":{"s":{"type":"string"}}}"#);
    let judged = free.judge(Action::Accept, json(r#"{"s":"hunter2"}"#)).unwrap();
    assert_eq!(
        format!("{judged:?} {:?}", judged.as_ref().accepted().unwrap()),
        "Accept(..) Cleaned(15 bytes)"
    );
}

/// B-77, R-124: only missing keys, never over an explicit value.
#[test]
fn prefill_adds_missing_members_only() {
    let form = schema(
        r#"{"properties":{
            "s":{"type":"string","default":"d\n\"q\""},"n":{"type":"number","default":0.5},"b":{"type":"boolean","default":false},
            "o":{"oneOf":[{"const":"a","title":"A"}],"default":"a"},
            "m":{"type":"array","items":{"enum":["a","b"]},"default":["b","a"]},"none":{"type":"string"}
        }}"#,
    );
    let all = r#"{"s":"d\n\"q\"","n":0.5,"b":false,"o":"a","m":["b","a"]}"#;
    assert_eq!(form.prefill(json("{}")), all);
    assert_eq!(form.validate(json(all)).unwrap().as_str(), all);
    assert_eq!(
        form.prefill(json(r#"{ "b" : true, "n": null, "other": [ 1 ] }"#)),
        r#"{"b":true,"n":null,"other":[ 1 ],"s":"d\n\"q\"","o":"a","m":["b","a"]}"#
    );
}
