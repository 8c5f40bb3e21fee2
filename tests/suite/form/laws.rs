//! Laws over random forms: R-114…, B-75, BT-5.

use mrtr_core::form::{Draft, Field, Form, Format, Problem, Schema};
use mrtr_tests::form::{robust, structured};
use proptest::{collection::vec, prelude::*, sample::select};

use super::json;

/// A field, a value that it takes, and one that breaks a rule of it together with the problem that names the rule.
#[derive(Clone, Debug)]
struct Case {
    draft: Draft,
    good: String,
    bad: Option<(String, Problem)>,
}

fn quote(text: &str) -> String {
    serde_json::to_string(text).unwrap()
}

fn letters(count: u64) -> String {
    quote(&"\u{1f600}é a".chars().cycle().take(usize::try_from(count).unwrap()).collect::<String>())
}

/// Which rule of the case's field is broken is drawn with it.
fn text(name: String) -> impl Strategy<Value = Case> {
    (0..5u64, 0..5u64, any::<bool>()).prop_map(move |(min, more, over)| {
        let max = min + more;
        let bad = if over {
            Some((letters(max + 1), Problem::TooLong { max }))
        } else {
            min.checked_sub(1).map(|length| (letters(length), Problem::TooShort { min }))
        };
        let draft = Field::string(name.as_str()).min_length(min).max_length(max).into();
        Case { draft, good: letters(if over { min } else { max }), bad }
    })
}

fn formatted(name: String) -> impl Strategy<Value = Case> {
    let samples = [
        (Format::Date, "2024-02-29", "2023-02-29"),
        (Format::DateTime, "2016-12-31T23:59:60Z", "2016-12-31T23:59:61Z"),
        (Format::Email, "a@b", "a@b@c"),
        (Format::Uri, "a:b", "a b"),
    ];
    select(samples.to_vec()).prop_map(move |(format, good, bad)| Case {
        draft: Field::string(name.as_str()).format(format).into(),
        good: quote(good),
        bad: Some((quote(bad), Problem::Format(format))),
    })
}

/// Thousandths, so that the bounds and the values around them are exact decimals, spelled in several ways.
fn spell(thousandths: i128, spelling: u8) -> String {
    let sign = if thousandths < 0 { "-" } else { "" };
    let size = thousandths.unsigned_abs();
    match spelling % 3 {
        0 => format!("{sign}{}.{:03}", size / 1000, size % 1000),
        1 => format!("{thousandths}e-3"),
        _ => format!("{sign}0.{size:030}E+27"),
    }
}

fn number(name: String, whole: bool) -> impl Strategy<Value = Case> {
    let unit = if whole { 1000 } else { 1 };
    let any_low = prop_oneof![-5_000..5_000_i64, any::<i64>()];
    (any_low, 0..4_i64, any::<bool>(), any::<u8>()).prop_map(move |(low, more, over, spelling)| {
        let (low, high) = (i128::from(low) * unit, (i128::from(low) + i128::from(more)) * unit);
        let bound = |thousandths| spell(thousandths, 0).parse::<mrtr_core::form::Number>().unwrap();
        let draft = if whole { Field::integer(name.as_str()) } else { Field::number(name.as_str()) };
        let bad = if over {
            (spell(high + unit, spelling), Problem::TooLarge { maximum: bound(high) })
        } else {
            (spell(low - unit, spelling), Problem::TooSmall { minimum: bound(low) })
        };
        Case {
            draft: draft.minimum(bound(low)).maximum(bound(high)).into(),
            good: spell(if over { low } else { high }, spelling),
            bad: Some(bad),
        }
    })
}

fn options() -> impl Strategy<Value = Vec<String>> {
    vec("[a-zé\"]{0,3}", 1..6).prop_map(|mut values| {
        values.sort();
        values.dedup();
        values
    })
}

fn one_of(name: String) -> impl Strategy<Value = Case> {
    (options(), any::<bool>(), any::<prop::sample::Index>()).prop_map(move |(values, titled, index)| {
        let field = values.iter().fold(Field::select(name.as_str()), |field, value| {
            if titled { field.option(value.as_str(), "TITLE") } else { field.choice(value.as_str()) }
        });
        Case {
            draft: field.into(),
            good: quote(&values[index.index(values.len())]),
            bad: Some((quote("TITLE"), Problem::NotAnOption)),
        }
    })
}

fn several_of(name: String) -> impl Strategy<Value = Case> {
    (options(), any::<bool>(), 0..3_u8).prop_map(move |(values, titled, broken)| {
        let field = values.iter().fold(Field::multi_select(name.as_str()), |field, value| {
            if titled { field.option(value.as_str(), "TITLE") } else { field.choice(value.as_str()) }
        });
        let count = u64::try_from(values.len()).unwrap();
        let list = |values: &[String]| {
            format!("[{}]", values.iter().map(|v| quote(v)).collect::<Vec<_>>().join(", "))
        };
        let mut other = values.clone();
        let bad = match broken {
            0 => {
                other[0] = "TITLE".into();
                (list(&other), Problem::NotAnOption)
            }
            1 => {
                other.pop();
                (list(&other), Problem::TooFew { min: count })
            }
            _ => {
                other.push(values[0].clone());
                (list(&other), Problem::TooMany { max: count })
            }
        };
        Case { draft: field.min_items(count).max_items(count).into(), good: list(&values), bad: Some(bad) }
    })
}

fn case(name: String) -> impl Strategy<Value = Case> {
    prop_oneof![
        text(name.clone()),
        formatted(name.clone()),
        number(name.clone(), true),
        number(name.clone(), false),
        one_of(name.clone()),
        several_of(name),
    ]
}

fn cases() -> impl Strategy<Value = Vec<(String, Case)>> {
    vec("[a-z\"é ]{1,6}", 1..5)
        .prop_map(|mut names| {
            names.sort();
            names.dedup();
            names.reverse();
            names
        })
        .prop_flat_map(|names| {
            names.into_iter().map(|name| (Just(name.clone()), case(name))).collect::<Vec<_>>()
        })
}

fn content<'a>(members: impl Iterator<Item = (&'a String, &'a str)>) -> String {
    let members: Vec<String> = members.map(|(name, value)| format!("{}:{value}", quote(name))).collect();
    format!("{{{}}}", members.join(","))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// What is built to satisfy the form validates; breaking one rule of one field names that field and rule, by the
    /// form that was built and by the schema that a client reads of it alike.
    #[test]
    fn a_broken_rule_is_named(cases in cases(), at in any::<prop::sample::Index>()) {
        let form = cases.iter().fold(Form::builder("m"), |form, (_, case)| form.field(case.draft.clone()));
        let form = form.build().unwrap();
        let read = Schema::read(form.requested_schema()).unwrap();
        for schema in [form.schema(), &read] {
            let good = content(cases.iter().rev().map(|(name, case)| (name, case.good.as_str())));
            let cleaned = schema.validate(json(&good)).unwrap();
            let names: Vec<&String> = cases.iter().map(|(name, _)| name).collect();
            let left: Vec<String> = cleaned.as_json().members().unwrap().map(|(name, _)| name.into_owned()).collect();
            prop_assert_eq!(left.iter().collect::<Vec<_>>(), names);

            let broken = at.index(cases.len());
            let (name, case) = &cases[broken];
            if let Some((bad, problem)) = &case.bad {
                let members = cases.iter().enumerate().map(|(index, (name, case))| {
                    (name, if index == broken { bad.as_str() } else { case.good.as_str() })
                });
                let invalid = schema.validate(json(&content(members))).unwrap_err();
                prop_assert_eq!(invalid.faults().len(), 1);
                prop_assert_eq!(&invalid.faults()[0].field, name);
                prop_assert_eq!(&invalid.faults()[0].problem, problem);
            }
        }
    }

    /// Random schemas with contents that nearly fit them.
    #[test]
    fn cleaning_is_done_once(data in vec(any::<u8>(), 0..160)) {
        structured(&data);
    }

    /// Any text: pieces of JSON in any order, and plain bytes.
    #[test]
    fn no_input_panics(
        pieces in vec(select(vec![
            "{", "}", "[", "]", ":", ",", "\"type\"", "\"object\"", "\"properties\"", "\"string\"", "\"enum\"", "\"oneOf\"",
            "\"const\"", "\"a\"", "\"items\"", "\"array\"", "\"minLength\"", "\"default\"", "1", "1e999999999", "-0.5", "null",
            "true", "\"\\ud800\"", "{\"type\":\"object\",\"properties\":{\"a\":", "{\"type\":\"integer\"}", "}}", "\0", "{\"a\":",
        ]), 0..24),
        bytes in vec(any::<u8>(), 0..64),
    ) {
        robust(pieces.concat().as_bytes());
        robust(&bytes);
    }
}
