//! The structural digest (design: exact, by value) through the public API: G-09, B-24, B-25, B-82.

use allocation_counter::measure;
use mrtr_core::{
    ErrorCode, Limits,
    digest::{DigestFault, Fingerprint, RequestDigest, structural},
    jsonrpc::Json,
    wire::AskKind,
};
use proptest::prelude::*;
use serde::{Serialize, Serializer};
use serde_json::Value;

use crate::json_tree::{Choices, Encoder, Tree, choices, decimal, double_decimal, small_decimal, tree};

fn limits() -> Limits {
    let mut limits = Limits::default();
    (limits.depth, limits.nodes) = (1_000_000, 10_000_000);
    limits
}

fn json(text: &str) -> Json<'_> {
    Json::parse(text, &limits()).unwrap_or_else(|refusal| panic!("{refusal}"))
}

fn digest(text: &str) -> [u8; 32] {
    structural(json(text)).unwrap_or_else(|fault| panic!("{fault}"))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn vectors() -> Value {
    serde_json::from_str(include_str!("../vectors/digest.json")).unwrap()
}

fn each<'a>(vectors: &'a Value, name: &str) -> &'a [Value] {
    let list = vectors[name].as_array().unwrap();
    assert!(list.len() > 5, "{name}");
    list
}

/// The bytes are frozen: they were computed by another program (vectors/tools/digest.py). B-25, trap 24.
#[test]
fn g_09_digests_are_the_frozen_ones() {
    for group in each(&vectors(), "structural") {
        for text in group["texts"].as_array().unwrap() {
            assert_eq!(hex(&digest(text.as_str().unwrap())), group["digest"].as_str().unwrap(), "{group}");
        }
    }
}

#[test]
fn g_09_request_digests_are_the_frozen_ones() {
    for vector in each(&vectors(), "requests") {
        let text = |name: &str| vector[name].as_str().unwrap();
        let arguments = vector["arguments"].as_str().map(json);
        let digest = RequestDigest::new(text("method"), text("target"), arguments).unwrap();
        assert_eq!(hex(digest.as_bytes()), text("digest"), "{vector}");
        assert_eq!(format!("{digest:?}"), "RequestDigest(..)");
    }
}

#[test]
fn fingerprints_are_the_frozen_ones() {
    for vector in each(&vectors(), "fingerprints") {
        let kind = match vector["kind"].as_str().unwrap() {
            "form" => AskKind::Form,
            "url" => AskKind::Url,
            "sampling" => AskKind::Sampling,
            "roots" => AskKind::Roots,
            other => panic!("{other}"),
        };
        let print = Fingerprint::new(kind, vector["params"].as_str().map(json)).unwrap();
        assert_eq!(hex(print.as_bytes()), vector["digest"].as_str().unwrap(), "{vector}");
        assert_eq!(Fingerprint::from_bytes(*print.as_bytes()), print);
        assert_eq!(format!("{print:?}"), "Fingerprint(..)");
    }
}

/// What has no digest gets -32602 (R-029), with the place and without the content.
#[test]
fn faults_are_the_frozen_ones() {
    for vector in each(&vectors(), "faults") {
        let text = vector["text"].as_str().unwrap();
        let fault = structural(json(text)).unwrap_err();
        let (name, at) = match fault {
            DigestFault::Number { at } => ("number", at),
            DigestFault::LoneSurrogate { at } => ("lone surrogate", at),
            other => panic!("{other:?}"),
        };
        assert_eq!(name, vector["fault"].as_str().unwrap(), "{text}");
        let there = &text[at..];
        assert!(
            there.starts_with(if name == "number" { ['-', '0', '1'].as_slice() } else { &['"'] }),
            "{text} {at}"
        );
        assert_eq!(fault.error().code, ErrorCode::INVALID_PARAMS);
    }
}

/// Absent arguments are `{}` and nothing else is; the method and the target are told apart (G-09).
#[test]
fn g_09_absent_arguments_are_the_empty_object() {
    let new = |method, target, arguments: Option<&str>| {
        RequestDigest::new(method, target, arguments.map(json)).unwrap()
    };
    let absent = new("tools/call", "t", None);
    assert_eq!(absent, new("tools/call", "t", Some(" { } ")));
    for other in ["null", "[]", "\"\"", "{\"a\":null}", "{\"_meta\":{}}"] {
        assert_ne!(absent, new("tools/call", "t", Some(other)), "{other}");
    }
    assert_ne!(absent, new("prompts/get", "t", None));
    assert_ne!(absent, new("tools/call", "tt", None));
    assert_ne!(absent, new("tools/callt", "", None));
}

/// Only the top-level `_meta` of an ask is left out (B-24), under any spelling, even where it has no digest.
#[test]
fn b_24_a_fingerprint_does_not_see_meta() {
    let print = |params: &str| Fingerprint::new(AskKind::Form, Some(json(params)));
    let plain = print(r#"{"message":"m","x":{"_meta":1}}"#).unwrap();
    for same in [
        r#"{"message":"m","x":{"_meta":1},"_meta":null}"#,
        r#"{"_meta" : {"a":[1,{"b":"}"}]} , "message":"m","x":{"_meta":1}}"#,
        r#"{"message":"m","_me\u0074a":["\ud800",1e99999999999],"x":{"_meta":1}}"#,
    ] {
        assert_eq!(print(same), Ok(plain), "{same}");
    }
    for other in [
        r#"{"message":"m","x":{"_meta":2}}"#,
        r#"{"message":"m","x":{}}"#,
        r#"{"message":"m","x":{"_meta":1},"_Meta":1}"#,
    ] {
        assert_ne!(print(other), Ok(plain), "{other}");
    }
    let other_kind = Fingerprint::new(AskKind::Url, Some(json(r#"{"message":"m","x":{"_meta":1}}"#)));
    assert_ne!(other_kind.unwrap(), plain);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(384))]

    /// B-25: however a value is written, it has one digest.
    #[test]
    fn b_25_equal_values_have_equal_digests(tree in tree(decimal()), mut a in choices(), mut b in choices()) {
        let (a, b) = (tree.spell(&mut a), tree.spell(&mut b));
        prop_assert_eq!(digest(&a), digest(&b), "{} {}", a, b);
    }

    /// One change anywhere gives another digest, unless it leaves the value as it was.
    #[test]
    fn any_change_of_the_value_changes_the_digest(tree in tree(decimal()), mut choices in choices()) {
        for _ in 0..8 {
            let changed = tree.mutate(&mut choices);
            let (a, b) = (tree.spell(&mut choices), changed.spell(&mut choices));
            prop_assert_eq!(digest(&a) == digest(&b), tree == changed, "{} {}", a, b);
        }
    }

    /// B-25: what JavaScript, Python and Go make of a value when they write it again has its digest.
    #[test]
    fn b_25_encoders_do_not_change_the_digest(tree in tree(double_decimal()), mut choices in choices()) {
        let spelled = tree.spell(&mut choices);
        for encoder in [Encoder::JavaScript, Encoder::Python, Encoder::Go] {
            let text = encoder.encode(&tree);
            prop_assert_eq!(digest(&text), digest(&spelled), "{:?} {}", encoder, text);
        }
    }

    /// Where RFC 8785 tells numbers apart, values have equal digests if and only if they have one canonical text,
    /// and that text has the same digest.
    #[test]
    fn agrees_with_rfc_8785(tree in tree(small_decimal()), mut choices in choices()) {
        let canonical = |tree: &Tree| serde_jcs::to_string(&Doubles(tree)).unwrap();
        let text = canonical(&tree);
        let spelled = digest(&tree.spell(&mut choices));
        prop_assert_eq!(digest(&text), spelled, "{}", text);
        for _ in 0..8 {
            let changed = tree.mutate(&mut choices);
            if small(&changed) {
                let other = canonical(&changed);
                let equal = digest(&changed.spell(&mut choices)) == spelled;
                prop_assert_eq!(equal, other == text, "{} {}", text, other);
            }
        }
    }

    /// Numbers with exponents that no double has, one unit apart.
    #[test]
    fn numbers_are_compared_to_the_last_digit(number in decimal(), mut choices in choices()) {
        let tree = Tree::Number(number);
        for _ in 0..16 {
            let changed = tree.mutate(&mut choices);
            let (a, b) = (tree.spell(&mut choices), changed.spell(&mut choices));
            prop_assert_eq!(digest(&a) == digest(&b), tree == changed, "{} {}", a, b);
        }
    }
}

/// A tree with its numbers as doubles, which is what RFC 8785 takes them for.
struct Doubles<'a>(&'a Tree);

impl Serialize for Doubles<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Tree::Null => serializer.serialize_unit(),
            Tree::Bool(value) => serializer.serialize_bool(*value),
            Tree::Number(number) => serializer.serialize_f64(number.double()),
            Tree::Text(text) => serializer.serialize_str(text),
            Tree::Array(elements) => serializer.collect_seq(elements.iter().map(Doubles)),
            Tree::Object(members) => {
                serializer.collect_map(members.iter().map(|(name, member)| (name, Doubles(member))))
            }
        }
    }
}

/// Whether all numbers are such that a double tells them apart.
fn small(tree: &Tree) -> bool {
    match tree {
        Tree::Null | Tree::Bool(_) | Tree::Text(_) => true,
        Tree::Number(number) => number.digits.len() <= 15 && number.exponent.abs() <= 290,
        Tree::Array(elements) => elements.iter().all(small),
        Tree::Object(members) => members.values().all(small),
    }
}

/// RFC 8785 rounds: this is why it is not what is digested.
#[test]
fn values_that_doubles_confuse_are_told_apart() {
    for (a, b) in [
        ("9007199254740992", "9007199254740993"),
        ("18446744073709551616", "18446744073709551617"),
        ("1e400", "1e401"),
        ("1e-400", "0"),
        ("0.1", "0.1000000000000000055511151231257827021181583404541015625"),
        ("1e999999999", "1e999999998"),
    ] {
        assert_ne!(digest(a), digest(b), "{a} {b}");
        assert_ne!(digest(&format!("{{\"a\":{a}}}")), digest(&format!("{{\"a\":{b}}}")), "{a} {b}");
    }
}

/// Bytes allocated at the same time, and how many allocations it took.
fn cost(text: &str) -> (u64, u64) {
    let value = json(text);
    let mut result = None;
    let info = measure(|| result = Some(structural(value)));
    result.unwrap().unwrap();
    (info.bytes_max, info.count_total)
}

/// A flat object without containers in it takes two allocations, however its strings are written.
#[test]
fn small_objects_take_few_allocations() {
    for text in [
        r#"{"city":"Oslo"}"#,
        r#"{"amount":10.50,"to":"a\u00e9b","note":"x","urgent":true,"ref":null}"#,
        r#"{"a":1,"b":2,"c":3,"d":4,"e":5,"f":6,"g":7,"h":8,"i":9,"j":10,"k":11,"l":12,"m":13,"n":14,"o":15,"p":16}"#,
    ] {
        assert!(cost(text).1 <= 2, "{text}: {:?}", cost(text));
    }
    assert!(cost(r#"{"to":{"name":"a","tags":["x","y"]},"n":1}"#).1 <= 3);
    assert_eq!(cost("\"scalar\""), (0, 0));
}

/// B-82 and the extremes: memory in proportion to the message, nothing expanded, no stack used up.
#[test]
fn b_82_extremes_cost_no_more_than_their_size_justifies() {
    let members: String = (0..400_000).map(|n| format!("\"{n:x}\":1,")).collect();
    let escaped: String = (0..50_000).map(|n| format!("\"\\u0041{n:x}\":[],")).collect();
    let object = |members: &str| format!("{{{}}}", members.trim_end_matches(','));
    let nested = "[".repeat(100_000) + &"]".repeat(100_000);
    let objects = "{\"a\":".repeat(100_000) + "1" + &"}".repeat(100_000);
    for text in [object(&members), object(&escaped), nested, objects, format!("[{}1]", "1,".repeat(100_000))]
    {
        let (bytes, count) = cost(&text);
        let length = u64::try_from(text.len()).unwrap();
        // At the worst two bytes of text are a frame, a child and a digest (80 bytes), in vectors that may be
        // half empty and are copied while they grow.
        assert!(bytes <= length * 120, "{bytes} for {length}");
        assert!(count <= 64, "{count} allocations for {length} bytes");
    }
    for text in [
        "1e999999999".to_owned(),
        format!("1{}", "0".repeat(1_000_000)),
        format!("0.{}1e-999999999", "0".repeat(1_000_000)),
        format!("\"{}\"", "a".repeat(3_000_000)),
        format!("\"{}\"", "\\u00e9".repeat(500_000)),
    ] {
        assert_eq!(cost(&text), (0, 0), "{} bytes", text.len());
    }
}

/// The digest is one of values, not of how the test writes them: names that sort differently as UTF-16.
#[test]
fn names_sort_by_their_utf_8() {
    let tree = Tree::Object([("\u{e000}".into(), Tree::Null), ("😀".into(), Tree::Bool(true))].into());
    let mut choices = Choices(1);
    assert_eq!(digest(&tree.spell(&mut choices)), digest("{\"\\ud83d\\ude00\":true,\"\u{e000}\":null}"));
}
