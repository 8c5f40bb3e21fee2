//! The digest of one value, or of two (one a line): a value that serde_json reads and writes again keeps its
//! digest if it kept its numbers, and two values have one digest exactly if they are the same value.
#![no_main]

use libfuzzer_sys::fuzz_target;
use mrtr_core::{
    Limits,
    digest::{Fingerprint, RequestDigest, structural},
    jsonrpc::{Json, JsonKind},
    wire::AskKind,
};

fuzz_target!(|text: &str| {
    let limits = Limits::default();
    let values: Vec<Json<'_>> =
        text.splitn(2, '\n').filter_map(|line| Json::parse(line, &limits).ok()).collect();
    for &value in &values {
        one(value);
    }
    if let [a, b] = values[..] {
        let digests = (structural(a).ok(), structural(b).ok());
        if let (Some(a_digest), Some(b_digest)) = digests {
            assert_eq!(a_digest == b_digest, mrtr_fuzz::canonical(a) == mrtr_fuzz::canonical(b));
        }
        let prints = [a, b].map(|value| Fingerprint::new(AskKind::Form, Some(value)).ok());
        if digests.0.is_some() && digests.0 == digests.1 {
            assert_eq!(prints[0], prints[1]);
        }
    }
});

fn one(value: Json<'_>) {
    let digest = structural(value);
    assert_eq!(digest.is_ok(), mrtr_fuzz::canonical(value).is_some());
    assert_eq!(digest.is_ok(), RequestDigest::new("m", "t", Some(value)).is_ok());
    // `_meta` is not looked at, so a fingerprint may be there where a digest is not.
    assert!(digest.is_err() || Fingerprint::new(AskKind::Url, Some(value)).is_ok());
    let (Ok(digest), Ok(theirs)) = (digest, serde_json::from_str::<serde_json::Value>(value.as_str())) else {
        return;
    };
    if !exact(value) {
        return;
    }
    let limits = mrtr_fuzz::wide();
    for text in [theirs.to_string(), serde_json::to_string_pretty(&theirs).expect("a value")] {
        let again = Json::parse(&text, &limits).expect("what serde_json writes is JSON");
        assert_eq!(structural(again), Ok(digest), "{text}");
    }
}

/// Whether serde_json keeps all the numbers: it takes them for 64-bit integers or doubles.
fn exact(value: Json<'_>) -> bool {
    match value.kind() {
        JsonKind::Null | JsonKind::Bool | JsonKind::String => true,
        JsonKind::Array => value.items().expect("an array").all(exact),
        JsonKind::Object => value.members().expect("an object").all(|(_, member)| exact(member)),
        JsonKind::Number => {
            let text = value.as_str();
            if text.parse::<i64>().is_ok() || text.parse::<u64>().is_ok() {
                return true;
            }
            // The shortest decimal that reads as this double is what serde_json writes.
            let Ok(double) = text.parse::<f64>() else { return false };
            let shortest = format!("{double:e}");
            Json::parse(&shortest, &mrtr_fuzz::wide())
                .is_ok_and(|again| structural(again) == structural(value))
        }
    }
}
