//! The forms and answers of vectors V14, V21 and V22, as far as they are about content.

use mrtr_core::{
    form::{Elicited, Field, Form},
    wire::{Answer, AskKind, read_answer},
};

use super::json;

fn judge(form: &Form, answer: &str) -> Result<String, String> {
    let Ok(Answer::Form { action, content }) = read_answer(AskKind::Form, json(answer)) else {
        panic!("{answer}")
    };
    match form.schema().judge(action, content) {
        Ok(Elicited::Accept(cleaned)) => Ok(cleaned.into_string()),
        Ok(other) => panic!("{other:?}"),
        Err(invalid) => Err(invalid.to_string()),
    }
}

/// V14: R-132, G-18, G-19.
#[test]
fn v14_content_that_violates_the_schema() {
    let form = Form::builder("What is your name?").field(Field::string("name").required()).build().unwrap();
    let requested = r#"{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}"#;
    assert_eq!(form.requested_schema().as_str(), requested);
    assert_eq!(judge(&form, r#"{"action":"accept","content":{}}"#).unwrap_err(), "name: is required");
    assert_eq!(
        judge(&form, r#"{"action":"accept","content":{"name":5}}"#).unwrap_err(),
        "name: must be text"
    );
    assert_eq!(judge(&form, r#"{"action":"accept"}"#).unwrap_err(), "name: is required");
}

/// V21: R-131, G-22, G-23.
#[test]
fn v21_real_numbers() {
    let form = Form::builder("?")
        .field(Field::number("ratio").minimum(0).maximum(1).required())
        .field(Field::integer("n").required())
        .build()
        .unwrap();
    let left = judge(&form, r#"{"action":"accept","content":{"ratio":0.25,"n":3.0}}"#).unwrap();
    assert_eq!(left, r#"{"ratio":0.25,"n":3}"#);
}

/// V22: R-119, R-121, R-132.
#[test]
fn v22_values_not_titles() {
    let form = Form::builder("Pick")
        .field(Field::select("c").option("#F00", "Red").option("#0F0", "Green").required())
        .field(
            Field::multi_select("m")
                .option("a", "A")
                .option("b", "B")
                .option("c", "C")
                .min_items(1)
                .max_items(2)
                .required(),
        )
        .build()
        .unwrap();
    let requested = concat!(
        r##"{"type":"object","properties":{"c":{"type":"string","oneOf":[{"const":"#F00","title":"Red"},"##,
        r##"{"const":"#0F0","title":"Green"}]},"m":{"type":"array","minItems":1,"maxItems":2,"items":{"anyOf":["##,
        r#"{"const":"a","title":"A"},{"const":"b","title":"B"},{"const":"c","title":"C"}]}}},"required":["c","m"]}"#,
    );
    assert_eq!(form.requested_schema().as_str(), requested);
    let answer = |content: &str| judge(&form, &format!(r#"{{"action":"accept","content":{content}}}"#));
    assert_eq!(answer(r##"{"c":"Red","m":["a"]}"##).unwrap_err(), "c: must be chosen from the options");
    assert_eq!(answer(r##"{"c":"#F00","m":["a","b","c"]}"##).unwrap_err(), "m: must have at most 2 items");
    assert_eq!(answer(r##"{"c":"#F00","m":["a","b"]}"##).unwrap(), r##"{"c":"#F00","m":["a","b"]}"##);
}
