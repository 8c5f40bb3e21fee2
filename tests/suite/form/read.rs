//! Reading a peer's `requestedSchema`: R-114…R-123, R-247, G-16, B-75, B-76, W-18.

use mrtr_core::form::{FIELDS_MAX, FieldKind, OPTIONS_MAX, Schema};

use super::{json, one, schema};

fn fault(text: &str) -> String {
    Schema::read(json(text)).expect_err(text).to_string()
}

fn property_fault(property: &str) -> String {
    fault(&format!(r#"{{"type":"object","properties":{{"f":{property}}}}}"#))
        .strip_prefix("requestedSchema.properties.f")
        .expect("it names the path")
        .to_string()
}

/// The nine shapes of the elicitation page, in an order that is neither alphabetical nor reversed (B-75).
#[test]
fn reads_the_nine_shapes_in_order() {
    let schema = schema(
        r#"{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{
            "text":{"type":"string","title":"T","description":"D","minLength":1,"maxLength":9,"format":"email","default":"a@b"},
            "number":{"type":"number","minimum":0.5,"maximum":1e2,"default":1.0},
            "whole":{"type":"integer","minimum":-1},
            "bool":{"type":"boolean","default":false},
            "one":{"type":"string","enum":["a","b"],"default":"b"},
            "one_titled":{"type":"string","oneOf":[{"const":"a","title":"A"},{"const":"b","title":"B"}]},
            "many":{"type":"array","items":{"type":"string","enum":["a","b"]},"minItems":1,"maxItems":2,"default":["a"]},
            "many_titled":{"type":"array","items":{"anyOf":[{"const":"a","title":"A"}]}},
            "legacy":{"type":"string","enum":["a","b"],"enumNames":["A"]}
        },"required":["legacy","text"]}"#,
    );
    let names: Vec<&str> = schema.fields().iter().map(|field| field.name()).collect();
    assert_eq!(
        names,
        ["text", "number", "whole", "bool", "one", "one_titled", "many", "many_titled", "legacy"]
    );
    let required: Vec<&str> =
        schema.fields().iter().filter(|field| field.is_required()).map(|field| field.name()).collect();
    assert_eq!(required, ["text", "legacy"]);

    let field = |name: &str| schema.field(name).unwrap();
    assert_eq!((field("text").title(), field("text").description()), (Some("T"), Some("D")));
    assert_eq!((field("text").label(), field("whole").label()), ("T", "whole"));
    let FieldKind::String(rules) = field("text").kind() else { panic!() };
    assert_eq!((rules.min_length, rules.max_length), (Some(1), Some(9)));
    assert_eq!(rules.default.as_deref(), Some("a@b"));
    let FieldKind::Number(rules) = field("number").kind() else { panic!() };
    assert!(!rules.whole);
    assert_eq!(rules.minimum, Some("0.5".parse().unwrap()));
    assert_eq!(rules.maximum, Some(100.into()));
    assert_eq!(field("number").default().as_deref(), Some("1"));
    let FieldKind::Number(rules) = field("whole").kind() else { panic!() };
    assert!(rules.whole && rules.maximum.is_none());
    assert_eq!(field("bool").default().as_deref(), Some("false"));

    let labels = |name: &str| -> Vec<(String, String)> {
        let options = match field(name).kind() {
            FieldKind::Select(rules) => &rules.options,
            FieldKind::MultiSelect(rules) => &rules.options,
            FieldKind::String(_) | FieldKind::Number(_) | FieldKind::Boolean(_) => panic!("{name}"),
        };
        options.choices().iter().map(|choice| (choice.value.clone(), choice.label().to_string())).collect()
    };
    let pair = |value: &str, label: &str| (value.to_string(), label.to_string());
    assert_eq!(labels("one"), [pair("a", "a"), pair("b", "b")]);
    assert_eq!(labels("one_titled"), [pair("a", "A"), pair("b", "B")]);
    assert_eq!(labels("many"), [pair("a", "a"), pair("b", "b")]);
    assert_eq!(labels("many_titled"), [pair("a", "A")]);
    assert_eq!(labels("legacy"), [pair("a", "A"), pair("b", "b")]);
    let FieldKind::MultiSelect(rules) = field("many").kind() else { panic!() };
    assert_eq!((rules.min_items, rules.max_items), (Some(1), Some(2)));
    assert!(matches!(field("legacy").kind(), FieldKind::Select(rules) if rules.legacy_names));
}

/// R-247, B-76: what does not change what an answer may be is no reason to refuse a form.
#[test]
fn tolerates() {
    for property in [
        r#"{"type":"string","pattern":"^a"}"#,
        r#"{"type":"string","format":"uuid","x-vendor":{"$ref":"x"},"examples":[1]}"#,
        r#"{"type":"string","title":7,"description":[],"enumNames":3}"#,
        r#"{"type":"string","title":null,"minLength":null,"default":null,"enum":null,"allOf":null}"#,
        r#"{"type":"string","minLength":2.0,"maxLength":1e400}"#,
        r#"{"type":"string","minLength":9,"maxLength":1}"#,
        r#"{"type":"integer","format":"int32","multipleOf":2,"exclusiveMinimum":0}"#,
        r#"{"type":"string","anyOf":[{"const":"a"}]}"#,
        r#"{"oneOf":[{"const":"a","title":null,"description":"x"}]}"#,
        r#"{"type":"array","items":{"oneOf":[{"const":"a","title":"A"}]},"uniqueItems":true}"#,
        r#"{"type":"array","items":{"type":"string","enum":["a"],"enumNames":["A"]}}"#,
        r#"{"type":"boolean","required":true}"#,
        r#"{"type":"string","minimum":1}"#,
    ] {
        assert_eq!(one(property).fields().len(), 1, "{property}");
    }
    for text in [
        "{}",
        r#"{"type":"object"}"#,
        r#"{"type":"object","properties":null,"required":null}"#,
        r#"{"type":"object","properties":{},"required":[],"additionalProperties":false,"title":"T"}"#,
    ] {
        assert!(schema(text).fields().is_empty(), "{text}");
    }
    let twice = schema(r#"{"properties":{"a":{"type":"string"}},"required":["a","a"]}"#);
    assert!(twice.field("a").unwrap().is_required());
    let FieldKind::Select(rules) =
        one(r#"{"enum":["b","a","b","c","a"],"enumNames":["1","2","3"]}"#).field("f").unwrap().kind().clone()
    else {
        panic!()
    };
    let labels: Vec<&str> = rules.options.choices().iter().map(|choice| choice.label()).collect();
    assert_eq!(labels, ["1", "2", "c"]);
    assert!(
        ["a", "b", "c"].iter().all(|value| rules.options.contains(value)) && !rules.options.contains("1")
    );
}

/// `enumNames` are titles of an `enum` and of nothing else.
#[test]
fn enum_names_beside_titles_are_ignored() {
    let schema = one(r#"{"type":"string","oneOf":[{"const":"a","title":"A"}],"enumNames":["X"]}"#);
    let FieldKind::Select(rules) = schema.field("f").unwrap().kind() else { panic!() };
    assert_eq!((rules.options.choices()[0].label(), rules.legacy_names), ("A", false));
}

/// A default that the field itself would refuse is not filled in (B-77).
#[test]
fn defaults_that_break_the_rules_are_ignored() {
    for property in [
        r#"{"type":"string","default":1}"#,
        r#"{"type":"string","maxLength":1,"default":"ab"}"#,
        r#"{"type":"string","format":"date","default":"today"}"#,
        r#"{"type":"string","default":"\ud800"}"#,
        r#"{"type":"integer","default":1.5}"#,
        r#"{"type":"integer","maximum":1,"default":2}"#,
        r#"{"type":"boolean","default":"true"}"#,
        r#"{"type":"string","enum":["a"],"default":"b"}"#,
        r#"{"type":"array","items":{"enum":["a"]},"default":"a"}"#,
        r#"{"type":"array","items":{"enum":["a"]},"default":["a","b"]}"#,
        r#"{"type":"array","items":{"enum":["a"]},"minItems":2,"default":["a"]}"#,
    ] {
        assert_eq!(one(property).prefill(json("{}")), "{}", "{property}");
    }
}

/// R-123, G-16: what a form may not contain, and where it is.
#[test]
fn refuses_with_the_path() {
    let no_composition = "a form has no references and no composition";
    for (property, fault) in [
        (r#"{"type":"object","properties":{}}"#, ": a form has no nested objects"),
        (r#"{"type":"array"}"#, ": a form has no arrays but of options"),
        (r#"{"type":"array","items":true}"#, ": a form has no arrays but of options"),
        (r#"{"type":"array","items":{"type":"string"}}"#, ".items: a form has no arrays but of options"),
        (r#"{"type":"array","items":{"type":"object"}}"#, ".items: a form has no arrays but of options"),
        (
            r#"{"type":"array","items":{"type":"integer","enum":[1]}}"#,
            ".items: a form has no arrays but of options",
        ),
        (r#"{"type":"array","items":{"enum":["a",1]}}"#, ".items.enum[1]: options are strings"),
        (r#"{"type":"array","items":{"$ref":"x","enum":["a"]}}"#, &format!(".items.$ref: {no_composition}")),
        (r##"{"$ref":"#/$defs/x"}"##, &format!(".$ref: {no_composition}")),
        (r#"{"type":"string","allOf":[]}"#, &format!(".allOf: {no_composition}")),
        (r#"{"type":"string","not":{}}"#, &format!(".not: {no_composition}")),
        (r#"{"type":"string","enum":["a"],"oneOf":[{"const":"a"}]}"#, &format!(": {no_composition}")),
        (r#"{"anyOf":[{"type":"string"},{"type":"null"}]}"#, ".anyOf[0]: options are strings"),
        (r#"{"oneOf":[{"const":"a"},{"const":1}]}"#, ".oneOf[1]: options are strings"),
        (r#"{"oneOf":[{"const":"\ud800"}]}"#, ".oneOf[0]: options are strings"),
        (r#"{"oneOf":["a"]}"#, ".oneOf[0]: options are strings"),
        (r#"{"type":"integer","enum":[1,2]}"#, ": options are strings"),
        (r#"{"type":"boolean","enum":[true]}"#, ": options are strings"),
        (r#"{"type":"string","enum":[]}"#, ".enum: has no options"),
        (r#"{"type":"string","enum":"a"}"#, ".enum: has a value that this keyword does not take"),
        (r#"{"type":["string","null"]}"#, ".type: a field has one type"),
        (r#"{"type":"null"}"#, ".type: no field has this type"),
        (r#"{"type":"date"}"#, ".type: no field has this type"),
        (r#"{"type":7}"#, ".type: has a value that this keyword does not take"),
        (r#"{"title":"T"}"#, ": has no type"),
        ("true", ": is not an object"),
        (r#"{"type":"string","minLength":-1}"#, ".minLength: has a value that this keyword does not take"),
        (r#"{"type":"string","minLength":1.5}"#, ".minLength: has a value that this keyword does not take"),
        (r#"{"type":"string","maxLength":"9"}"#, ".maxLength: has a value that this keyword does not take"),
        (r#"{"type":"number","minimum":"0"}"#, ".minimum: has a value that this keyword does not take"),
        (
            r#"{"type":"number","maximum":1e9999999999}"#,
            ".maximum: has a value that this keyword does not take",
        ),
        (
            r#"{"type":"array","items":{"enum":["a"]},"maxItems":[]}"#,
            ".maxItems: has a value that this keyword does not take",
        ),
    ] {
        assert_eq!(property_fault(property), fault, "{property}");
    }
    for (text, expected) in [
        ("[]", ": is not an object"),
        ("null", ": is not an object"),
        (r#"{"type":"string"}"#, ".type: a form describes an object"),
        (r#"{"properties":[]}"#, ".properties: is not an object"),
        (r#"{"required":"a"}"#, ".required: has a value that this keyword does not take"),
        (r#"{"required":[1]}"#, ".required: has a value that this keyword does not take"),
        (
            r#"{"properties":{"a":{"type":"string"}},"required":["b"]}"#,
            ".required.b: is required and has no field",
        ),
        (r#"{"oneOf":[]}"#, ": a form has no references and no composition"),
        (r#"{"if":{}}"#, ".if: a form has no references and no composition"),
    ] {
        assert_eq!(fault(text), format!("requestedSchema{expected}"), "{text}");
    }
}

/// A terminal that shows the fault must not obey a field's name.
#[test]
fn a_fault_shows_no_control_characters() {
    let fault =
        fault(&format!(r#"{{"properties":{{"\u001b[2J\r{}":{{"type":"object"}}}}}}"#, "x".repeat(100_000)));
    assert!(fault.len() < 200 && !fault.contains(char::is_control), "{fault:?}");
}

#[test]
fn fields_and_options_are_bounded() {
    let form = |fields: usize| {
        let properties: Vec<String> =
            (0..fields).map(|at| format!(r#""f{at}":{{"type":"string"}}"#)).collect();
        format!(r#"{{"properties":{{{}}}}}"#, properties.join(","))
    };
    assert_eq!(schema(&form(FIELDS_MAX)).fields().len(), FIELDS_MAX);
    assert_eq!(fault(&form(FIELDS_MAX + 1)), "requestedSchema: has more than 100 fields (FIELDS_MAX)");
    let select = |options: usize| {
        let values: Vec<String> = (0..options).map(|at| format!(r#""{at}""#)).collect();
        format!(r#"{{"properties":{{"f":{{"enum":[{}]}}}}}}"#, values.join(","))
    };
    assert_eq!(schema(&select(OPTIONS_MAX)).fields().len(), 1);
    assert!(fault(&select(OPTIONS_MAX + 1)).ends_with(".f.enum: has more than 1000 options (OPTIONS_MAX)"));
}
