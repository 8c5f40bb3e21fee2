//! Forms under random input: for the suite and for the fuzz targets, which are three lines each.

mod generate;
#[cfg(feature = "differential")]
mod oracle;

use mrtr_core::{
    Limits,
    form::{Schema, downgrade},
    jsonrpc::Json,
};

pub use generate::{Source, pair};
#[cfg(feature = "differential")]
pub use oracle::{Verdict, compare, differential};

/// For any bytes: a schema before the first zero byte, content after it. What is no JSON is not looked at further.
///
/// # Panics
///
/// If a law breaks: what validates must validate again and stay as it is, must not need its defaults, and a form that
/// a peer of 2025-06-18 can be shown must read back with the same fields.
pub fn robust(data: &[u8]) {
    let at = data.iter().position(|byte| *byte == 0).unwrap_or(data.len());
    let (schema, content) = data.split_at(at);
    let text = |bytes| core::str::from_utf8(bytes).unwrap_or("");
    if let Ok(schema) = Json::parse(text(schema), &Limits::default()) {
        laws(schema, text(content.get(1..).unwrap_or_default()));
    }
}

/// The laws of [`robust`] for a random schema and content that were made from `data` to nearly fit each other.
///
/// # Panics
///
/// If a law breaks.
pub fn structured(data: &[u8]) {
    let (schema, content) = pair(&mut Source::new(data));
    let schema = Json::parse(&schema, &Limits::default()).expect("a generated schema is JSON");
    laws(schema, &content);
}

fn laws(schema_json: Json<'_>, content: &str) {
    let schema = match Schema::read(schema_json) {
        Ok(schema) => schema,
        Err(fault) => {
            assert!(fault.to_string().starts_with("requestedSchema"));
            return;
        }
    };
    let params = format!(r#"{{"mode":"form","message":"","requestedSchema":{}}}"#, schema_json.as_str());
    if let Ok(params) = Json::parse(&params, &Limits::default())
        && let Ok(narrow) = downgrade(params)
    {
        let narrow = Json::parse(&narrow, &Limits::default()).expect("a downgraded form is JSON");
        let narrow =
            Schema::read(narrow.get("requestedSchema").expect("it has its schema")).expect("it is a form");
        let names = |schema: &Schema| -> Vec<String> {
            schema.fields().iter().map(|field| format!("{}{}", field.name(), field.is_required())).collect()
        };
        assert_eq!(names(&schema), names(&narrow));
    }
    let Ok(content) = Json::parse(content, &Limits::default()) else { return };
    let prefilled = schema.prefill(content);
    let prefilled = Json::parse(&prefilled, &Limits::default()).expect("what is filled in is JSON");
    match schema.validate(content) {
        Ok(cleaned) => {
            let again = Json::parse(cleaned.as_str(), &Limits::default()).expect("what is cleaned is JSON");
            assert_eq!(schema.validate(again).expect("what is cleaned validates").as_str(), cleaned.as_str());
            // Defaults are values that the form takes.
            assert!(schema.validate(prefilled).is_ok());
        }
        Err(invalid) => assert!(!invalid.faults().is_empty() && !invalid.to_string().is_empty()),
    }
}
