//! Patterns over JSON: a subset that must match, values to capture, captured values to fill in.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// What steps have captured so far, by name.
pub(super) type Captures = BTreeMap<String, Value>;

/// What a pattern says at one place; everything that is no operator is matched as it stands.
pub(super) enum Operator<'a> {
    Any(&'a str),
    Contains(&'a Value),
    Captured { name: &'a str, append: &'a str },
    OtherThan(&'a str),
}

/// Reads an operator, `None` if the value is an ordinary one.
pub(super) fn operator(value: &Value) -> Option<Operator<'_>> {
    let object = value.as_object()?;
    let text = |name: &str| object.get(name).and_then(Value::as_str);
    match object.len() {
        1 => text("$any")
            .map(Operator::Any)
            .or_else(|| text("$captured").map(|name| Operator::Captured { name, append: "" }))
            .or_else(|| text("$other_than").map(Operator::OtherThan))
            .or_else(|| object.get("$contains").map(Operator::Contains)),
        2 => Some(Operator::Captured { name: text("$captured")?, append: text("append")? }),
        _ => None,
    }
}

/// Whether `actual` is what `expected` describes; if not, where not and why.
pub(super) fn matches(expected: &Value, actual: &Value, captures: &Captures) -> Result<(), String> {
    at("", expected, actual, captures)
}

fn at(path: &str, expected: &Value, actual: &Value, captures: &Captures) -> Result<(), String> {
    let wrong = |wanted: &str| Err(format!("at {path:?}: expected {wanted}, found {actual}"));
    if let Some(operator) = operator(expected) {
        let good = match operator {
            Operator::Any(kind) => kind == "value" || kind == kind_of(actual),
            Operator::Contains(part) => contains(actual, part),
            Operator::Captured { name, append } => *actual == captured(captures, name, append)?,
            Operator::OtherThan(name) => {
                let first = captured(captures, name, "")?;
                kind_of(actual) == kind_of(&first) && *actual != first
            }
        };
        return if good { Ok(()) } else { wrong(&expected.to_string()) };
    }
    match (expected, actual) {
        (Value::Object(expected), Value::Object(actual)) => {
            for (name, expected) in expected {
                let path = format!("{path}/{}", escape(name));
                let Some(actual) = actual.get(name) else {
                    return Err(format!("at {path:?}: expected {expected}, found nothing"));
                };
                at(&path, expected, actual, captures)?;
            }
            Ok(())
        }
        (Value::Array(expected), Value::Array(actual)) if expected.len() == actual.len() => {
            for (index, (expected, actual)) in expected.iter().zip(actual).enumerate() {
                at(&format!("{path}/{index}"), expected, actual, captures)?;
            }
            Ok(())
        }
        (Value::Number(expected), Value::Number(actual)) if same_number(expected, actual) => Ok(()),
        _ if expected == actual => Ok(()),
        _ => wrong(&expected.to_string()),
    }
}

/// A template with every `$captured` replaced.
pub(super) fn fill(template: &Value, captures: &Captures) -> Result<Value, String> {
    if let Some(Operator::Captured { name, append }) = operator(template) {
        return captured(captures, name, append);
    }
    Ok(match template {
        Value::Object(members) => {
            let filled = members.iter().map(|(name, value)| Ok((name.clone(), fill(value, captures)?)));
            Value::Object(filled.collect::<Result<Map<_, _>, String>>()?)
        }
        Value::Array(items) => {
            Value::Array(items.iter().map(|item| fill(item, captures)).collect::<Result<_, _>>()?)
        }
        plain => plain.clone(),
    })
}

/// What a step says of a message beside its pattern.
pub(super) struct Claims<'a> {
    pub(super) capture: &'a BTreeMap<String, String>,
    pub(super) absent: &'a [String],
    pub(super) exact: &'a [String],
}

impl Claims<'_> {
    /// Matches a message and takes its captures.
    pub(super) fn check(
        &self,
        expected: &Value,
        actual: &Value,
        captures: &mut Captures,
    ) -> Result<(), String> {
        matches(expected, actual, captures)?;
        for pointer in self.absent {
            if let Some(found) = actual.pointer(pointer) {
                return Err(format!("at {pointer:?}: expected nothing, found {found}"));
            }
        }
        for pointer in self.exact {
            let names = |value: &Value| {
                value
                    .pointer(pointer)
                    .and_then(Value::as_object)
                    .map(|o| o.keys().cloned().collect::<Vec<_>>())
            };
            let (wanted, found) = (names(expected), names(actual));
            if wanted.is_none() || wanted != found {
                return Err(format!("at {pointer:?}: expected exactly {wanted:?}, found {found:?}"));
            }
        }
        for (name, pointer) in self.capture {
            let found =
                actual.pointer(pointer).ok_or_else(|| format!("at {pointer:?}: nothing to capture"))?;
            captures.insert(name.clone(), found.clone());
        }
        Ok(())
    }
}

fn captured(captures: &Captures, name: &str, append: &str) -> Result<Value, String> {
    let value = captures.get(name).ok_or_else(|| format!("nothing was captured as {name:?}"))?;
    match value {
        Value::String(text) => Ok(Value::String(format!("{text}{append}"))),
        other if append.is_empty() => Ok(other.clone()),
        other => Err(format!("only text can be appended to, {name:?} is {other}")),
    }
}

fn contains(actual: &Value, part: &Value) -> bool {
    match (actual, part) {
        (Value::String(text), Value::String(part)) => text.contains(part.as_str()),
        (Value::Array(items), part) => items.contains(part),
        _ => false,
    }
}

/// By value: `3` and `3.0` are the same, also where serde_json keeps numbers as text.
fn same_number(a: &serde_json::Number, b: &serde_json::Number) -> bool {
    match (a.as_i64(), b.as_i64()) {
        (Some(a), Some(b)) => a == b,
        _ => a == b || (a.as_f64().is_some() && a.as_f64() == b.as_f64()),
    }
}

pub(super) fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// A member's name as a part of a JSON Pointer.
pub(super) fn escape(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn ok(expected: Value, actual: Value) -> bool {
        let captures = Captures::from([("s".to_owned(), json!("first")), ("n".to_owned(), json!(1))]);
        matches(&expected, &actual, &captures).is_ok()
    }

    #[test]
    fn objects_may_have_more_and_must_have_what_is_listed() {
        assert!(ok(json!({"a": 1}), json!({"a": 1, "b": 2})));
        assert!(ok(json!({}), json!({"b": 2})));
        assert!(!ok(json!({"a": 1}), json!({"b": 1})));
        assert!(!ok(json!({"a": {"b": 1}}), json!({"a": {"b": 2}})));
        assert!(!ok(json!({"a": null}), json!({})), "null is not absent");
        assert!(!ok(json!({}), json!([])));
    }

    #[test]
    fn lists_match_member_by_member() {
        assert!(ok(json!([1, {"a": 1}]), json!([1, {"a": 1, "b": 2}])));
        assert!(!ok(json!([1]), json!([1, 2])));
        assert!(!ok(json!([1, 2]), json!([2, 1])));
        assert!(!ok(json!([]), json!({})));
    }

    #[test]
    fn numbers_match_by_value_and_everything_else_exactly() {
        assert!(ok(json!(3), json!(3.0)));
        assert!(!ok(json!(3), json!(3.5)));
        assert!(!ok(json!(9007199254740993_i64), json!(9007199254740992_i64)));
        assert!(!ok(json!(3), json!("3")));
        assert!(!ok(json!("a"), json!("A")));
        assert!(!ok(json!(false), json!(null)));
    }

    #[test]
    fn operators() {
        assert!(ok(json!({"$any": "string"}), json!("x")));
        assert!(!ok(json!({"$any": "string"}), json!(1)));
        assert!(ok(json!({"$any": "value"}), json!(null)));
        assert!(ok(json!({"$contains": "ell"}), json!("hello")));
        assert!(!ok(json!({"$contains": "ell"}), json!("help")));
        assert!(ok(json!({"$contains": 2}), json!([1, 2])));
        assert!(!ok(json!({"$contains": 2}), json!([1, 22])));
        assert!(ok(json!({"$captured": "s"}), json!("first")));
        assert!(!ok(json!({"$captured": "s"}), json!("first ")));
        assert!(ok(json!({"$captured": "s", "append": "!"}), json!("first!")));
        assert!(ok(json!({"$other_than": "s"}), json!("second")));
        assert!(!ok(json!({"$other_than": "s"}), json!("first")));
        assert!(!ok(json!({"$other_than": "s"}), json!(2)), "another, of the same type");
        assert!(ok(json!({"$other_than": "n"}), json!(2)));
        assert!(!ok(json!({"$captured": "unknown"}), json!("x")));
    }

    #[test]
    fn a_mismatch_is_named_by_its_place() {
        let found = matches(&json!({"a": [{"x/y": 1}]}), &json!({"a": [{"x/y": 2}]}), &Captures::new());
        assert_eq!(found.unwrap_err(), r#"at "/a/0/x~1y": expected 1, found 2"#);
    }

    #[test]
    fn captured_values_are_filled_in_and_tampered_with() {
        let captures = Captures::from([("s".to_owned(), json!("first")), ("n".to_owned(), json!(1))]);
        let filled = |template: Value| fill(&template, &captures);
        assert_eq!(filled(json!({"a": [{"$captured": "s"}, 1]})), Ok(json!({"a": ["first", 1]})));
        assert_eq!(filled(json!({"$captured": "s", "append": "-X"})), Ok(json!("first-X")));
        assert_eq!(filled(json!({"$captured": "n"})), Ok(json!(1)));
        assert!(filled(json!({"$captured": "n", "append": "-X"})).is_err());
        assert!(filled(json!({"$captured": "nobody"})).is_err());
        assert_eq!(filled(json!({"$schema": "x"})), Ok(json!({"$schema": "x"})));
    }

    #[test]
    fn claims_beside_the_pattern() {
        let capture = BTreeMap::from([("new".to_owned(), "/a/b".to_owned())]);
        let (absent, exact) = (["/a/c".to_owned()], ["/a".to_owned()]);
        let claims = Claims { capture: &capture, absent: &absent, exact: &exact };
        let pattern = json!({"a": {"b": {"$any": "number"}}});
        let check = |actual: Value| {
            let mut captures = Captures::new();
            claims.check(&pattern, &actual, &mut captures).map(|()| captures)
        };
        assert_eq!(check(json!({"a": {"b": 1}, "d": 1})), Ok(Captures::from([("new".to_owned(), json!(1))])));
        assert!(check(json!({"a": {"b": 1, "c": null}})).unwrap_err().contains("expected nothing"));
        assert!(check(json!({"a": {"b": 1, "d": 1}})).unwrap_err().contains("exactly"));
    }
}
