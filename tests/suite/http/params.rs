//! `x-mcp-header` annotations in a tool's schema.

use mrtr_core::http::{ParamFault, ParamHeaders, ParamType};

use super::json;

fn read(schema: &str) -> Result<Vec<(String, Vec<String>, ParamType)>, ParamFault> {
    let annotations = ParamHeaders::from_schema(json(schema))?;
    Ok(annotations
        .iter()
        .map(|param| (param.name().to_owned(), param.path().map(str::to_owned).collect(), param.kind()))
        .collect())
}

/// The path in the message of a fault, and which fault.
fn fault(schema: &str) -> (&'static str, String) {
    match read(schema).unwrap_err() {
        ParamFault::Unreachable { at } => ("unreachable", at),
        ParamFault::Name { at } => ("name", at),
        ParamFault::Type { at } => ("type", at),
        ParamFault::Repeated { at } => ("repeated", at),
        other => panic!("{other}"),
    }
}

fn property(schema: &str) -> String {
    format!(r#"{{"type":"object","properties":{{"value":{schema}}}}}"#)
}

#[test]
fn annotations_in_the_order_of_the_schema_r173() {
    let found = read(
        r#"{"type":"object","required":["region"],"properties":{
        "region":{"type":"string","description":"d","x-mcp-header":"Region"},
        "query":{"type":"string"},
        "target":{"type":"object","properties":{
            "issue":{"x-mcp-header":"Issue","type":"integer"},
            "deep":{"properties":{"er":{"type":"boolean","x-mcp-header":"x-y_z.1"}}}}},
        "dry":{"type":["boolean","null"],"x-mcp-header":"Dry"}}}"#,
    );
    let param = |name: &str, path: &[&str], kind| {
        (name.to_owned(), path.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>(), kind)
    };
    assert_eq!(
        found.unwrap(),
        [
            param("Region", &["region"], ParamType::String),
            param("Issue", &["target", "issue"], ParamType::Integer),
            param("x-y_z.1", &["target", "deep", "er"], ParamType::Boolean),
            param("Dry", &["dry"], ParamType::Boolean),
        ]
    );
    for none in
        ["{}", r#"{"type":"object"}"#, r#"{"properties":{}}"#, r#"{"properties":{"a":true}}"#, "true", "null"]
    {
        assert!(ParamHeaders::from_schema(json(none)).unwrap().is_empty(), "{none}");
    }
    assert!(ParamHeaders::NONE.is_empty());
}

#[test]
fn a_name_is_a_token_r174() {
    for name in ["A", "region", "X-Y", "!#$%&'*+-.^_`|~0Az"] {
        let schema = property(&format!(r#"{{"type":"string","x-mcp-header":"{name}"}}"#));
        assert_eq!(ParamHeaders::from_schema(json(&schema)).unwrap().iter().next().unwrap().name(), name);
    }
    for name in [
        r#""""#,
        r#""My Region""#,
        r#""Region:Primary""#,
        r#""Région""#,
        r#""Region\t1""#,
        r#""a\r\nb""#,
        r#""a/b""#,
        r#""(a)""#,
        "1",
        "null",
        "true",
        r#"["A"]"#,
        r#"{"name":"A"}"#,
    ] {
        let schema = property(&format!(r#"{{"type":"string","x-mcp-header":{name}}}"#));
        assert_eq!(fault(&schema), ("name", "/properties/value".to_owned()), "{name}");
    }
}

#[test]
fn a_name_stands_once_r174() {
    for (first, second) in [("Region", "Region"), ("MyField", "myfield")] {
        let schema = format!(
            r#"{{"properties":{{"field1":{{"type":"string","x-mcp-header":"{first}"}},
            "field2":{{"properties":{{"a":{{"type":"integer","x-mcp-header":"{second}"}}}}}}}}}}"#
        );
        assert_eq!(fault(&schema), ("repeated", "/properties/field2/properties/a".to_owned()));
    }
}

#[test]
fn only_primitive_types_r174() {
    for kind in [
        r#""object""#,
        r#""array""#,
        r#""null""#,
        r#""number""#,
        r#""String""#,
        r#"["string","integer"]"#,
        r#"["null"]"#,
        r#"["string","object"]"#,
        "[]",
        "5",
        "null",
    ] {
        let schema = property(&format!(r#"{{"type":{kind},"x-mcp-header":"A"}}"#));
        assert_eq!(fault(&schema), ("type", "/properties/value".to_owned()), "{kind}");
    }
    assert_eq!(fault(&property(r#"{"x-mcp-header":"A"}"#)).0, "type");
    assert_eq!(fault(&property(r##"{"$ref":"#/$defs/a","x-mcp-header":"A"}"##)).0, "type");
    assert_eq!(fault(&property(r#"{"enum":["a"],"x-mcp-header":"A"}"#)).0, "type");
}

#[test]
fn only_through_properties_r174() {
    let inner = r#"{"type":"string","x-mcp-header":"A"}"#;
    assert_eq!(fault(inner), ("unreachable", "the root".to_owned()));
    for keyword in [
        "items",
        "prefixItems",
        "additionalItems",
        "unevaluatedItems",
        "contains",
        "additionalProperties",
        "unevaluatedProperties",
        "propertyNames",
        "contentSchema",
        "oneOf",
        "anyOf",
        "allOf",
        "not",
        "if",
        "then",
        "else",
    ] {
        for schema in [inner.to_owned(), format!("[{inner}]"), format!(r#"{{"properties":{{"a":{inner}}}}}"#)]
        {
            let schema = property(&format!(r#"{{"type":"object","{keyword}":{schema}}}"#));
            let (kind, at) = fault(&schema);
            assert_eq!(kind, "unreachable", "{keyword}");
            assert!(at.starts_with(&format!("/properties/value/{keyword}")), "{at}");
        }
    }
    for keyword in ["patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"] {
        let schema = format!(r#"{{"{keyword}":{{"x":{inner}}},"properties":{{}}}}"#);
        assert_eq!(fault(&schema), ("unreachable", format!("/{keyword}")));
    }
}

#[test]
fn data_is_no_schema_r174() {
    // Something called like the annotation, where no schema stands: a property of that name, defaults, examples.
    for schema in [
        r#"{"properties":{"x-mcp-header":{"type":"string"}}}"#,
        r#"{"properties":{"a":{"default":{"x-mcp-header":""}}}}"#,
        r#"{"properties":{"a":{"const":{"x-mcp-header":""},"enum":[{"x-mcp-header":1}],"examples":[{"x-mcp-header":1}]}}}"#,
        r#"{"properties":{"properties":{"type":"object","properties":{"b":{"type":"string"}}}}}"#,
        r#"{"$comment":{"x-mcp-header":""},"vendor":{"x-mcp-header":""}}"#,
        r#"{"dependencies":{"a":["x-mcp-header"]}}"#,
    ] {
        assert!(ParamHeaders::from_schema(json(schema)).unwrap().is_empty(), "{schema}");
    }
    let found =
        read(r#"{"properties":{"properties":{"properties":{"b":{"type":"string","x-mcp-header":"B"}}}}}"#);
    assert_eq!(found.unwrap()[0].1, ["properties", "b"]);
}

#[test]
fn annotations_are_bounded() {
    let schema = |count: usize| {
        let properties: Vec<String> =
            (0..count).map(|n| format!(r#""p{n}":{{"type":"string","x-mcp-header":"H{n}"}}"#)).collect();
        format!(r#"{{"properties":{{{}}}}}"#, properties.join(","))
    };
    assert_eq!(read(&schema(ParamHeaders::MAX)).unwrap().len(), 64);
    assert_eq!(read(&schema(ParamHeaders::MAX + 1)), Err(ParamFault::TooMany { limit: 64 }));
}

#[test]
fn one_bad_tool_does_not_cost_the_others_r174() {
    // The tools of the conformance scenario `http-invalid-tool-headers`: only the first may be offered.
    let tools = [
        r#"{"properties":{"region":{"type":"string","x-mcp-header":"Region"}}}"#,
        r#"{"properties":{"value":{"type":"string","x-mcp-header":""}}}"#,
        r#"{"properties":{"data":{"type":"object","x-mcp-header":"Data"}}}"#,
        r#"{"properties":{"items":{"type":"array","items":{"type":"string"},"x-mcp-header":"Items"}}}"#,
        r#"{"properties":{"nil":{"type":"null","x-mcp-header":"Nil"}}}"#,
        r#"{"properties":{"a":{"type":"string","x-mcp-header":"R"},"b":{"type":"string","x-mcp-header":"R"}}}"#,
        r#"{"properties":{"a":{"type":"string","x-mcp-header":"R"},"b":{"type":"string","x-mcp-header":"r"}}}"#,
        r#"{"properties":{"value":{"type":"string","x-mcp-header":"My Region"}}}"#,
        r#"{"properties":{"value":{"type":"string","x-mcp-header":"Region:Primary"}}}"#,
        r#"{"properties":{"value":{"type":"string","x-mcp-header":"Région"}}}"#,
        r#"{"properties":{"value":{"type":"string","x-mcp-header":"Region\t1"}}}"#,
    ];
    let offered: Vec<bool> = tools.iter().map(|tool| ParamHeaders::from_schema(json(tool)).is_ok()).collect();
    assert_eq!(offered.iter().filter(|offered| **offered).count(), 1);
    assert!(offered[0]);
}
