//! What a form says that the form language has no word for.

use alloc::vec::Vec;

use super::{SchemaFault, SchemaProblem};
use crate::jsonrpc::Json;

/// The first member of a readable form that the form language has no word for at its place: `pattern`, `minimum` on a
/// string, `additionalProperties`, … A server must not send such.
pub(crate) fn stray(value: Json<'_>) -> Option<SchemaFault> {
    if let Some(fault) = beyond(value, &["$schema", "type", "properties", "required"]) {
        return Some(fault);
    }
    let properties = value.get("properties").and_then(Json::members).into_iter().flatten();
    properties
        .filter_map(|(name, property)| Some(stray_in_field(property)?.below_name(&name).below("properties")))
        .next()
}

fn stray_in_field(property: Json<'_>) -> Option<SchemaFault> {
    let has = |name| property.get(name).is_some();
    let own: &[&str] = match property.get("type").and_then(Json::as_string).as_deref() {
        Some("array") => &["items", "minItems", "maxItems"],
        Some("integer" | "number") => &["minimum", "maximum"],
        Some("boolean") => &[],
        _ if has("enum") => &["enum", "enumNames"],
        _ if has("oneOf") => &["oneOf"],
        _ if has("anyOf") => &["anyOf"],
        _ => &["minLength", "maxLength", "format"],
    };
    let common = ["type", "title", "description", "default"];
    let words: Vec<&str> = common.iter().chain(own).copied().collect();
    let items = property.get("items").filter(|_| own.contains(&"items"));
    beyond(property, &words).or_else(|| stray_in_options(property)).or_else(|| {
        let items = items?;
        let fault = beyond(items, &["type", "enum", "anyOf", "oneOf"]).or_else(|| stray_in_options(items));
        Some(fault?.below("items"))
    })
}

fn stray_in_options(holder: Json<'_>) -> Option<SchemaFault> {
    ["oneOf", "anyOf"].into_iter().find_map(|word| {
        let entries = holder.get(word).and_then(Json::items)?;
        let mut faults = entries
            .enumerate()
            .filter_map(|(at, entry)| Some(beyond(entry, &["const", "title"])?.at(at).below(word)));
        faults.next()
    })
}

fn beyond(value: Json<'_>, words: &[&str]) -> Option<SchemaFault> {
    let mut members = value.members()?;
    let (name, _) = members.find(|(name, _)| !words.contains(&&**name))?;
    Some(SchemaFault::new(SchemaProblem::Stray).below_name(&name))
}
