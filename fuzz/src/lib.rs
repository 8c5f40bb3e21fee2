//! What the targets share: limits, and a second reading of JSON to compare with.

pub mod bridge;
pub mod server;

use std::{collections::BTreeMap, fmt::Write as _};

use mrtr_core::{
    Limits, Timestamp,
    client::{Call, Client, Received},
    jsonrpc::{Json, JsonKind},
};

/// Limits that only what would overflow the stack of serde_json breaks.
#[must_use]
pub fn wide() -> Limits {
    let mut limits = Limits::default();
    (limits.message_bytes, limits.depth, limits.nodes) = (usize::MAX, 100, usize::MAX);
    limits
}

/// Limits that most messages break.
#[must_use]
pub fn tight() -> Limits {
    let mut limits = Limits::default();
    (limits.message_bytes, limits.depth, limits.nodes) = (1_000, 3, 12);
    limits
}

/// A value in one form: members sorted, strings decoded and escaped by one rule, numbers as digits and exponent.
/// `None` if it has none: a lone surrogate somewhere, or an exponent that is not digested.
#[must_use]
pub fn canonical(value: Json<'_>) -> Option<String> {
    Some(match value.kind() {
        JsonKind::Null | JsonKind::Bool => value.as_str().to_owned(),
        JsonKind::Number => decimal(value.as_str())?,
        JsonKind::String => format!("{:?}", value.as_string()?),
        JsonKind::Array => {
            let mut out = "[".to_owned();
            for element in value.items()? {
                write!(out, "{},", canonical(element)?).ok()?;
            }
            out + "]"
        }
        JsonKind::Object => {
            let mut members = BTreeMap::new();
            for (name, member) in value.members()? {
                let before = members.insert(name, canonical(member)?);
                assert!(before.is_none(), "admitted with a name twice");
            }
            // Names that are no text are left out by `members`, and counted here.
            assert!(members.len() <= value.as_str().len());
            if names(value) != members.len() {
                return None;
            }
            // Members as they are: escaped once more at each level they would double with each.
            let mut out = "{".to_owned();
            for (name, member) in members {
                write!(out, "{name:?}:{member},").ok()?;
            }
            out + "}"
        }
    })
}

/// How many members an object has, whether their names are text or not.
fn names(object: Json<'_>) -> usize {
    // Members end with a value and are parted by commas at depth 1.
    let (mut depth, mut count, mut in_string, mut escaped, mut empty) = (0, 1, false, false, true);
    for byte in object.as_str().bytes() {
        if in_string {
            in_string = escaped || byte != b'"';
            escaped = !escaped && byte == b'\\';
            continue;
        }
        match byte {
            b'"' => (in_string, empty) = (true, false),
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth -= 1,
            b',' if depth == 1 => count += 1,
            _ => {}
        }
    }
    if empty { 0 } else { count }
}

/// A number as its significant digits and a power of ten, by shifting digits one at a time.
fn decimal(text: &str) -> Option<String> {
    let (negative, text) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    if exponent.trim_start_matches(['+', '-']).len() > 10 {
        return None;
    }
    let mut exponent: i64 = exponent.parse().ok()?;
    if exponent.abs() > 1_000_000_000 {
        return None;
    }
    let mut digits: Vec<u8> = Vec::new();
    let mut after_point = false;
    for byte in mantissa.bytes() {
        match byte {
            b'.' => after_point = true,
            digit => {
                digits.push(digit);
                exponent -= i64::from(after_point);
            }
        }
    }
    while digits.last() == Some(&b'0') {
        digits.pop();
        exponent += 1;
    }
    let digits: String =
        digits.iter().map(|&digit| char::from(digit)).skip_while(|&digit| digit == '0').collect();
    if digits.is_empty() {
        return Some("0".into());
    }
    Some(format!("{}{digits}e{exponent}", if negative { "-" } else { "" }))
}

/// An origin, and how every exchange begins that this client saved for it.
///
/// # Panics
///
/// If nothing can be saved.
#[must_use]
pub fn saved_head(client: &Client) -> (&'static str, Vec<u8>) {
    let now = Timestamp::from_unix_millis(0);
    let pending =
        client.start(1.into(), Call::new("tools/call", "{}"), now, &mut Vec::new()).expect("a call");
    let defer = br#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required","requestState":"s"}}"#;
    let Received::InputRequired(asked) = pending.receive(defer, now) else { panic!("a state is enough") };
    let mut saved = Vec::new();
    asked.save("https://fuzz.example", &mut saved);
    // A name, a format, and the digest of the origin.
    saved.truncate(5 + 1 + 32);
    ("https://fuzz.example", saved)
}

/// The bytes that hexadecimal digits stand for; anything else is left out.
#[must_use]
pub fn unhex(text: &[u8]) -> Vec<u8> {
    let digits: Vec<u8> =
        text.iter().filter_map(|&byte| char::from(byte).to_digit(16)?.try_into().ok()).collect();
    digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}
