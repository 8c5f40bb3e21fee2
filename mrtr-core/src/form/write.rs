//! A form as the JSON of `requestedSchema`, in the words of a revision.

use alloc::{string::String, vec::Vec};

use super::{Field, FieldKind, Number, Options, field::json_string};
use crate::jsonrpc::write;

/// Which revision's form language to write.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    /// 2025-11-25 and 2026-07-28, which have the same one.
    Full,
    /// 2025-06-18: titles as `enumNames`, defaults on booleans only, no multi-select (R-246).
    Narrow,
}

/// Appends the `requestedSchema` of these fields (R-114). A multi-select is written in full in either dialect; that
/// the narrow one has none is for the caller to refuse.
pub(super) fn schema(out: &mut Vec<u8>, fields: &[Field], dialect: Dialect) {
    out.extend_from_slice(b"{\"type\":\"object\",\"properties\":{");
    for (at, field) in fields.iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        write::string(out, &field.name);
        out.push(b':');
        property(out, field, dialect);
    }
    out.push(b'}');
    let mut required =
        fields.iter().filter(|field| field.required).map(|field| field.name.as_str()).peekable();
    if required.peek().is_some() {
        out.extend_from_slice(b",\"required\":");
        strings(out, required);
    }
    out.push(b'}');
}

fn property(out: &mut Vec<u8>, field: &Field, dialect: Dialect) {
    out.extend_from_slice(match &field.kind {
        FieldKind::String(_) | FieldKind::Select(_) => br#"{"type":"string""#.as_slice(),
        FieldKind::Number(rules) if rules.whole => br#"{"type":"integer""#,
        FieldKind::Number(_) => br#"{"type":"number""#,
        FieldKind::Boolean(_) => br#"{"type":"boolean""#,
        FieldKind::MultiSelect(_) => br#"{"type":"array""#,
    });
    member(out, "title", field.title.as_deref().map(json_string));
    member(out, "description", field.description.as_deref().map(json_string));
    match &field.kind {
        FieldKind::String(rules) => {
            count(out, "minLength", rules.min_length);
            count(out, "maxLength", rules.max_length);
            member(out, "format", rules.format.map(|format| json_string(format.name())));
        }
        FieldKind::Number(rules) => {
            member(out, "minimum", rules.minimum.as_ref().map(Number::as_str));
            member(out, "maximum", rules.maximum.as_ref().map(Number::as_str));
        }
        FieldKind::Boolean(_) => {}
        FieldKind::Select(rules) => {
            out.push(b',');
            if !rules.options.are_titled() {
                values(out, &rules.options);
            } else if rules.legacy_names || dialect == Dialect::Narrow {
                values(out, &rules.options);
                out.extend_from_slice(b",\"enumNames\":");
                strings(out, rules.options.choices().iter().map(|choice| choice.label()));
            } else {
                titled(out, "oneOf", &rules.options);
            }
        }
        FieldKind::MultiSelect(rules) => {
            count(out, "minItems", rules.min_items);
            count(out, "maxItems", rules.max_items);
            out.extend_from_slice(b",\"items\":{");
            if rules.options.are_titled() {
                titled(out, "anyOf", &rules.options);
            } else {
                out.extend_from_slice(br#""type":"string","#);
                values(out, &rules.options);
            }
            out.push(b'}');
        }
    }
    if dialect == Dialect::Full || matches!(field.kind, FieldKind::Boolean(_)) {
        member(out, "default", field.kind.default_json());
    }
    out.push(b'}');
}

/// Appends `,"name":json` if there is something to say.
fn member(out: &mut Vec<u8>, name: &str, json: Option<impl AsRef<str>>) {
    if let Some(json) = json {
        out.push(b',');
        write::string(out, name);
        out.push(b':');
        out.extend_from_slice(json.as_ref().as_bytes());
    }
}

fn count(out: &mut Vec<u8>, name: &str, bound: Option<u64>) {
    member(out, name, bound.map(|bound| alloc::format!("{bound}")));
}

fn values(out: &mut Vec<u8>, options: &Options) {
    out.extend_from_slice(b"\"enum\":");
    strings(out, options.choices().iter().map(|choice| choice.value.as_str()));
}

fn titled(out: &mut Vec<u8>, keyword: &str, options: &Options) {
    write::string(out, keyword);
    let choices: Vec<String> = options
        .choices()
        .iter()
        .map(|choice| {
            alloc::format!(
                r#"{{"const":{},"title":{}}}"#,
                json_string(&choice.value),
                json_string(choice.label())
            )
        })
        .collect();
    out.extend_from_slice(b":[");
    out.extend_from_slice(choices.join(",").as_bytes());
    out.push(b']');
}

fn strings<'a>(out: &mut Vec<u8>, texts: impl Iterator<Item = &'a str>) {
    out.push(b'[');
    for (at, text) in texts.enumerate() {
        if at > 0 {
            out.push(b',');
        }
        write::string(out, text);
    }
    out.push(b']');
}
