//! Our validation of forms against the `jsonschema` crate.

use std::collections::BTreeSet;

use jsonschema::{Draft, error::ValidationErrorKind};
use mrtr_core::{Limits, form::Schema, jsonrpc::Json};
use serde_json::Value;

use super::{Source, pair};

/// What both said about a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Both found it valid.
    Valid,
    /// Both found the same fields at fault.
    Invalid,
}

/// Makes a schema and a content from `data` and compares.
///
/// # Panics
///
/// As [`compare`].
pub fn differential(data: &[u8]) -> Verdict {
    let (schema, content) = pair(&mut Source::new(data));
    compare(&schema, &content)
}

/// Judges `content` by `schema` with both validators; the oracle asserts formats and reads 2020-12.
///
/// # Panics
///
/// If one finds a field valid that the other does not; if what we cleaned is not valid to the oracle; if it is not the
/// content without unknown members, by value.
pub fn compare(schema_text: &str, content_text: &str) -> Verdict {
    let context = || format!("\nschema  {schema_text}\ncontent {content_text}");
    let json = |text| Json::parse(text, &Limits::default()).expect("generated text is JSON");
    let schema = Schema::read(json(schema_text)).unwrap_or_else(|fault| panic!("{fault}{}", context()));
    let ours = schema.validate(json(content_text));

    let value = |text| serde_json::from_str::<Value>(text).expect("generated text is JSON");
    let oracle = jsonschema::options()
        .with_draft(Draft::Draft202012)
        .should_validate_formats(true)
        .build(&value(schema_text))
        .unwrap_or_else(|fault| panic!("{fault}{}", context()));
    let content = value(content_text);
    let theirs: BTreeSet<String> = oracle
        .iter_errors(&content)
        .map(|error| match error.kind() {
            ValidationErrorKind::Required { property } => property.as_str().unwrap_or_default().to_string(),
            _ => {
                let path = error.instance_path().as_str().to_string();
                let name = path.split('/').nth(1).unwrap_or_default();
                name.replace("~1", "/").replace("~0", "~")
            }
        })
        .collect();
    match ours {
        Ok(cleaned) => {
            assert!(theirs.is_empty(), "ours: valid; theirs: {theirs:?}{}", context());
            let cleaned = value(cleaned.as_str());
            assert!(oracle.is_valid(&cleaned), "cleaned: {cleaned}{}", context());
            let members = |value: &Value| value.as_object().map_or(0, serde_json::Map::len);
            let known =
                content.as_object().into_iter().flatten().filter(|(name, _)| schema.field(name).is_some());
            assert_eq!(members(&cleaned), known.count(), "cleaned: {cleaned}{}", context());
            for (name, value) in cleaned.as_object().into_iter().flatten() {
                let exactly = serde_json::json!({ "const": content[name] });
                assert!(jsonschema::is_valid(&exactly, value), "{name}: {value}{}", context());
            }
            Verdict::Valid
        }
        Err(invalid) => {
            let ours: BTreeSet<String> = invalid.faults().iter().map(|fault| fault.field.clone()).collect();
            assert_eq!(ours, theirs, "{invalid}{}", context());
            Verdict::Invalid
        }
    }
}
