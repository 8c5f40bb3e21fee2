//! Laws over random texts: admission against serde_json, the lazy view against the value that was written.

use std::{cell::Cell, collections::BTreeSet, fmt};

use mrtr_core::{
    Limits,
    jsonrpc::{Json, JsonKind, Message, Refusal, RequestId, admit},
};
use proptest::prelude::*;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::wide;
use crate::json_tree::{Choices, Decimal, Tree, choices, decimal, tree};

/// What serde_json finds: whether it is JSON, and whether a name stands twice (unknown if a name is no text).
#[derive(Debug, PartialEq, Eq)]
enum Theirs {
    NotJson,
    Json,
    Twice,
    Unknown,
}

fn theirs(bytes: &[u8]) -> Theirs {
    // serde_json does not look at the encoding of strings that it ignores.
    if str::from_utf8(bytes).is_err() || serde_json::from_slice::<IgnoredAny>(bytes).is_err() {
        return Theirs::NotJson;
    }
    let twice = Cell::new(false);
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    match (Names(&twice).deserialize(&mut reader), twice.get()) {
        (Ok(()), false) => Theirs::Json,
        (Ok(()), true) => Theirs::Twice,
        (Err(_), _) => Theirs::Unknown,
    }
}

/// Goes through a value and notes whether an object has a name twice.
#[derive(Clone, Copy)]
struct Names<'a>(&'a Cell<bool>);

impl<'de> DeserializeSeed<'de> for Names<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Names<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }
    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }
    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }
    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }
    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<(), A::Error> {
        while elements.next_element_seed(self)?.is_some() {}
        Ok(())
    }
    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        let mut names = BTreeSet::new();
        while let Some(name) = members.next_key::<String>()? {
            if !names.insert(name) {
                self.0.set(true);
            }
            members.next_value_seed(self)?;
        }
        Ok(())
    }
}

/// G-38: both agree on what is JSON; where it is, on whether a name stands twice.
fn agree(bytes: &[u8]) {
    let ours = core::str::from_utf8(bytes)
        .map_or(Err(Refusal::NotUtf8), |text| Json::parse(text, &wide()).map(|_| ()));
    let theirs = theirs(bytes);
    let shown = String::from_utf8_lossy(bytes);
    match ours {
        Ok(()) => assert!(matches!(theirs, Theirs::Json | Theirs::Unknown), "{theirs:?}: {shown}"),
        // The pass ends at the duplicate: what follows need not be JSON.
        Err(Refusal::DuplicateName { .. }) => assert_ne!(theirs, Theirs::Json, "{shown}"),
        Err(Refusal::Syntax { .. } | Refusal::NotUtf8) => assert_eq!(theirs, Theirs::NotJson, "{shown}"),
        Err(other) => panic!("{other}: {shown}"),
    }
}

/// Reads everything a value has through the lazy view.
fn read(value: Json<'_>) -> Tree {
    match value.kind() {
        JsonKind::Null => Tree::Null,
        JsonKind::Bool => Tree::Bool(value.as_bool().unwrap()),
        JsonKind::Number => {
            let (mantissa, exponent) = value.as_str().split_once(['e', 'E']).unwrap_or((value.as_str(), "0"));
            let (negative, mantissa) =
                mantissa.strip_prefix('-').map_or((false, mantissa), |rest| (true, rest));
            let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
            let exponent = exponent.parse::<i64>().unwrap() - i64::try_from(fraction.len()).unwrap();
            Tree::Number(Decimal::new(negative, &format!("{whole}{fraction}"), exponent))
        }
        JsonKind::String => Tree::Text(value.as_string().unwrap().into_owned()),
        JsonKind::Array => Tree::Array(value.items().unwrap().map(read).collect()),
        JsonKind::Object => {
            let members = value.members().unwrap();
            Tree::Object(members.map(|(name, member)| (name.into_owned(), read(member))).collect())
        }
    }
}

fn message(tree: &Tree, choices: &mut Choices) -> String {
    let members = [
        ("jsonrpc", Tree::Text("2.0".into())),
        ("id", Tree::Text("i".into())),
        ("method", Tree::Text("m".into())),
        ("params", Tree::Object([("value".into(), tree.clone())].into())),
    ];
    Tree::Object(members.map(|(name, member)| (name.into(), member)).into()).spell(choices)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(384))]

    #[test]
    fn g_38_arbitrary_bytes_are_judged_as_serde_json_does(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
        agree(&bytes);
    }

    #[test]
    fn g_38_token_soup_is_judged_as_serde_json_does(
        tokens in prop::collection::vec(
            prop::sample::select(vec![
                "{", "}", "[", "]", ",", ":", "\"a\"", "\"\\u0061\"", "\"b\"", "\"\\ud800\"", "\"\\", "\"", "1", "-0", "0",
                ".5", "e+1", "E", "true", "null", "nul", " ", "\n", "\u{feff}", "é", "{\"a\":1,", "\"a\":[", "}}", "]]",
            ]),
            0..12,
        ),
    ) {
        agree(tokens.concat().as_bytes());
    }

    /// A good message with a few bytes changed, removed or put in.
    #[test]
    fn g_38_mutated_messages_are_judged_as_serde_json_does(tree in tree(decimal()), mut choices in choices()) {
        let text = message(&tree, &mut choices).into_bytes();
        agree(&text);
        for _ in 0..16 {
            let mut text = text.clone();
            for _ in 0..=choices.below(2) {
                let at = choices.below(text.len());
                let byte = choices.pick(b"\"\\{}[]:,u0e.-+ \n\t\x01\x80ad");
                match choices.below(4) {
                    0 => drop(text.remove(at)),
                    1 => text.insert(at, byte),
                    2 => text[at] = byte,
                    _ => text.truncate(at.max(1)),
                }
            }
            agree(&text);
            // Admission of the whole never panics either, and what it lets through is JSON.
            if super::twice(&text, &Limits::default()).is_ok() {
                prop_assert_ne!(theirs(&text), Theirs::NotJson);
            }
        }
    }

    #[test]
    fn the_lazy_view_reads_what_was_written(tree in tree(decimal()), mut choices in choices()) {
        let text = message(&tree, &mut choices);
        let Ok(Message::Request(request)) = admit(text.as_bytes(), &Limits::default()) else {
            return Err(TestCaseError::fail(text));
        };
        let value = request.param("value").unwrap();
        prop_assert_eq!(&read(value), &tree, "{}", text);
        if let Tree::Object(members) = &tree {
            for (name, member) in members {
                prop_assert_eq!(value.get(name).map(read), Some(member.clone()), "{} in {}", name, text);
            }
            prop_assert!(value.get("no such name").is_none());
        }
        prop_assert_eq!(request.id, RequestId::from("i"));
    }

    /// R-003: what is written is read as the same id.
    #[test]
    fn r_003_ids_survive_a_round_trip(text in any::<String>(), number in any::<i64>(), big in "-?[1-9][0-9]{18,40}") {
        for id in [RequestId::from(&*text), RequestId::from(number)] {
            let mut out = Vec::new();
            id.write(&mut out);
            let message = super::request(core::str::from_utf8(&out).unwrap());
            prop_assert!(!message.contains(['\n', '\r']));
            let Message::Request(request) = super::admitted(&message) else { panic!() };
            prop_assert_eq!(request.id, id);
        }
        let message = super::request(&big);
        let Message::Request(request) = super::admitted(&message) else { panic!() };
        let mut out = Vec::new();
        request.id.write(&mut out);
        prop_assert_eq!(out, big.as_bytes());
    }
}

/// `decode` gives the reader's own types, whatever features of serde_json are on.
#[test]
fn values_decode_into_types() {
    #[derive(Debug, PartialEq, serde::Deserialize)]
    struct Arguments<'a> {
        #[serde(borrow)]
        to: std::borrow::Cow<'a, str>,
        amount: f64,
        count: u64,
        note: Option<String>,
    }
    let value =
        Json::parse(r#"{"note":null,"to":"é","count":18446744073709551615,"amount":0.1}"#, &wide()).unwrap();
    let expected = Arguments { to: "é".into(), amount: 0.1, count: u64::MAX, note: None };
    assert_eq!(value.decode::<Arguments<'_>>().unwrap(), expected);
    assert!(value.decode::<Vec<u8>>().is_err());
}

/// Without this the feature could fall out of use and nobody would see it.
#[cfg(feature = "hostile-serde-json")]
#[test]
fn the_hostile_features_are_on() {
    let text = r#"{"b":1e+400,"a":0.1000}"#;
    assert_eq!(serde_json::from_str::<serde_json::Value>(text).unwrap().to_string(), text);
    serde_json::Deserializer::from_str(text).disable_recursion_limit();
}
