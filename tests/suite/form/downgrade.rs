//! Forms for a peer of 2025-06-18: BT-5, R-246, R-247.

use mrtr_core::form::{NotExpressible, downgrade};

use super::json;

#[test]
fn rewrites_what_that_revision_lacks() {
    let params = r##"{
        "mode": "form",
        "_meta": { "progressToken": 7,
                   "vendor": [ 1 ] },
        "message": "Pick \u00e9",
        "requestedSchema": {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "properties": {
                "z": {"type":"string","title":"Z","minLength":1,"pattern":"^a","default":"a"},
                "n": {"type":"number","minimum":0.5,"default":1},
                "b": {"type":"boolean","description":"D","default":true},
                "plain": {"type":"string","enum":["a"],"default":"a"},
                "titled": {"type":"string","oneOf":[{"const":"#f00","title":"Red"},{"const":"#0f0"}],"default":"#f00"},
                "legacy": {"type":"string","enum":["a"],"enumNames":["A"]},
                "odd": {"type":"string","format":"uuid","x-vendor":1}
            },
            "required": ["b","z"]
        },
        "unknown": 1.50
    }"##;
    assert_eq!(
        downgrade(json(params)).unwrap(),
        concat!(
            r#"{"_meta":{ "progressToken": 7,                   "vendor": [ 1 ] },"message":"Pick \u00e9","requestedSchema":{"#,
            r#""type":"object","properties":{"#,
            r#""z":{"type":"string","title":"Z","minLength":1},"#,
            r#""n":{"type":"number","minimum":0.5},"#,
            r#""b":{"type":"boolean","description":"D","default":true},"#,
            r#""plain":{"type":"string","enum":["a"]},"#,
            r##""titled":{"type":"string","enum":["#f00","#0f0"],"enumNames":["Red","#0f0"]},"##,
            r#""legacy":{"type":"string","enum":["a"],"enumNames":["A"]},"#,
            r#""odd":{"type":"string"}"#,
            r#"},"required":["z","b"]},"unknown":1.50}"#,
        )
    );
}

#[test]
fn a_multi_select_is_not_faked() {
    for items in [r#"{"type":"string","enum":["a"]}"#, r#"{"anyOf":[{"const":"a","title":"A"}]}"#] {
        let params = format!(
            r#"{{"message":"m","requestedSchema":{{"properties":{{"s":{{"type":"string"}},"m":{{"type":"array","items":{items}}}}}}}}}"#
        );
        let refused = downgrade(json(&params)).unwrap_err();
        assert_eq!(refused, NotExpressible::MultiSelect { field: "m".into() });
        assert_eq!(refused.to_string(), "field m: the form language of 2025-06-18 has no multi-select");
    }
}

#[test]
fn what_is_no_form_is_none_there_either() {
    for params in
        [r#"{"message":"m"}"#, r#"{"requestedSchema":{"properties":{"f":{"type":"object"}}}}"#, "{}", "[]"]
    {
        assert!(matches!(downgrade(json(params)), Err(NotExpressible::Schema(_))), "{params}");
    }
}
