//! Every shape with its rules, at n-1, n and n+1: R-115…R-122, R-130…R-132, G-22…G-24, B-31, B-32, B-39, trap 32.

use super::{judge, one};

/// Whatever the shape, these types do not fit it (R-130, trap 32); `fits` is the one of them that does.
fn refuses_other_types(property: &str, fits: &str, sentence: &str) {
    let schema = one(property);
    for value in ["null", "true", "1", r#""text""#, "[]", r#"["a"]"#, "{}", r#"{"a":1}"#, "[[]]", "[null]"] {
        let outcome = judge(&schema, value);
        if value != fits {
            assert_eq!(outcome.unwrap_err(), sentence, "{property} {value}");
        }
    }
}

#[test]
fn every_shape_refuses_other_types_r130() {
    refuses_other_types(r#"{"type":"string"}"#, r#""text""#, "must be text");
    refuses_other_types(r#"{"type":"number"}"#, "1", "must be a number");
    refuses_other_types(r#"{"type":"integer"}"#, "1", "must be a whole number");
    refuses_other_types(r#"{"type":"boolean"}"#, "true", "must be yes or no (true or false)");
    let list = "must be a list of options";
    for (value, outcome) in
        [("null", list), ("[null]", list), ("[1]", list), ("[[\"a\"]]", list), ("\"a\"", list)]
    {
        let schema = one(r#"{"type":"array","items":{"type":"string","enum":["a"]}}"#);
        assert_eq!(judge(&schema, value).unwrap_err(), outcome);
    }
    for value in ["null", "0", "true", "[\"a\"]"] {
        assert_eq!(judge(&one(r#"{"type":"string","enum":["a"]}"#), value).unwrap_err(), "must be text");
    }
}

#[test]
fn lengths_are_code_points_g22() {
    let schema = one(r#"{"type":"string","minLength":2,"maxLength":4}"#);
    for (text, outcome) in [
        (r#""""#, Err("must have at least 2 characters")),
        (r#""a""#, Err("must have at least 2 characters")),
        (r#""ab""#, Ok(())),
        (r#""abc""#, Ok(())),
        (r#""abcd""#, Ok(())),
        (r#""abcde""#, Err("must have at most 4 characters")),
        // One code point each: four bytes of UTF-8; two UTF-16 units; an escaped pair.
        ("\"\u{1f600}\"", Err("must have at least 2 characters")),
        ("\"\u{1f600}\u{1f600}\u{1f600}\u{1f600}\"", Ok(())),
        ("\"\u{1f600}\u{1f600}\u{1f600}\u{1f600}\u{1f600}\"", Err("must have at most 4 characters")),
        (r#""\ud83d\ude00""#, Err("must have at least 2 characters")),
        (r#""\ud83d\ude00\n""#, Ok(())),
        // A letter and its accent are two.
        ("\"e\u{301}\"", Ok(())),
        (r#""\u0041\u0042""#, Ok(())),
    ] {
        assert_eq!(judge(&schema, text).map(|_| ()), outcome.map_err(String::from), "{text}");
    }
    assert_eq!(
        judge(&one(r#"{"type":"string","minLength":1}"#), r#""""#).unwrap_err(),
        "must have at least 1 character"
    );
}

#[test]
fn half_a_surrogate_pair_is_no_text() {
    let sentence = "must be text: it has half of a character in it";
    for value in [r#""\ud83d""#, r#""\ude00""#, r#""a\ud83dx""#, r#""\ude00\ud83d""#, r#""\ud83d\u0041""#] {
        assert_eq!(judge(&one(r#"{"type":"string"}"#), value).unwrap_err(), sentence, "{value}");
        assert_eq!(judge(&one(r#"{"type":"string","enum":["a"]}"#), value).unwrap_err(), sentence, "{value}");
        let schema = one(r#"{"type":"array","items":{"enum":["a"]}}"#);
        assert_eq!(judge(&schema, &format!("[{value}]")).unwrap_err(), sentence, "{value}");
    }
}

/// What is left of a whole number is what an integer type decodes from; nothing loses its value (B-31, B-32).
#[test]
fn integers_are_judged_by_value_g22() {
    let schema = one(r#"{"type":"integer"}"#);
    let whole = "must be a whole number";
    for (given, left) in [
        ("3", Ok("3")),
        ("3.0", Ok("3")),
        ("3.000e0", Ok("3")),
        ("1e2", Ok("100")),
        ("1E+2", Ok("100")),
        ("1200e-2", Ok("12")),
        ("1.5e1", Ok("15")),
        ("-0", Ok("0")),
        ("-0.0", Ok("0")),
        ("0e999999999", Ok("0")),
        ("9007199254740993", Ok("9007199254740993")),
        ("9007199254740993.0", Ok("9007199254740993")),
        ("9007199254740992.5", Err(whole)),
        ("18446744073709551616", Ok("18446744073709551616")),
        ("1.8446744073709551616e19", Ok("18446744073709551616")),
        ("1e38", Ok("100000000000000000000000000000000000000")),
        // Too long for any integer type: stays as it is.
        ("1e39", Ok("1e39")),
        ("1e999999999", Ok("1e999999999")),
        ("3.5", Err(whole)),
        ("0.5", Err(whole)),
        ("1.5", Err(whole)),
        ("1e-1", Err(whole)),
        ("1e-999999999", Err(whole)),
        (r#""1""#, Err(whole)),
        (r#""42xyz""#, Err(whole)),
        ("1e1000000001", Err("must be a number of ordinary size")),
        ("1e99999999999999999999", Err("must be a number of ordinary size")),
    ] {
        let left = left.map(|left| format!(r#"{{"f":{left}}}"#)).map_err(String::from);
        assert_eq!(judge(&schema, given), left, "{given}");
    }
}

#[test]
fn fractions_are_numbers_r131() {
    let schema = one(r#"{"type":"number"}"#);
    for (given, left) in [
        ("2.5", "2.5"),
        ("0.10", "0.10"),
        ("1e-999999999", "1e-999999999"),
        // B-31: strict peers take whole numbers without a fraction only.
        ("1.0", "1"),
        ("1e2", "100"),
        // Beyond what is exact in a float either way, the spelling stays.
        ("1e15", "1e15"),
        ("9007199254740993.0", "9007199254740993.0"),
    ] {
        assert_eq!(judge(&schema, given).unwrap(), format!(r#"{{"f":{left}}}"#));
    }
}

#[test]
fn bounds_are_exact() {
    let low = "at least";
    let high = "at most";
    for (property, value, outcome) in [
        (r#"{"type":"integer","minimum":1,"maximum":12}"#, "0", Some(low)),
        (r#"{"type":"integer","minimum":1,"maximum":12}"#, "1", None),
        (r#"{"type":"integer","minimum":1,"maximum":12}"#, "2", None),
        (r#"{"type":"integer","minimum":1,"maximum":12}"#, "11", None),
        (r#"{"type":"integer","minimum":1,"maximum":12}"#, "12", None),
        (r#"{"type":"integer","minimum":1,"maximum":12}"#, "13", Some(high)),
        (r#"{"type":"integer","minimum":1,"maximum":12}"#, "1.2e1", None),
        (r#"{"type":"number","minimum":0.1,"maximum":0.3}"#, "0.09999999999999999999999", Some(low)),
        (r#"{"type":"number","minimum":0.1,"maximum":0.3}"#, "0.1", None),
        (r#"{"type":"number","minimum":0.1,"maximum":0.3}"#, "10e-2", None),
        (r#"{"type":"number","minimum":0.1,"maximum":0.3}"#, "0.3", None),
        (r#"{"type":"number","minimum":0.1,"maximum":0.3}"#, "0.30000000000000000000001", Some(high)),
        // Pairs that are one and the same float.
        (r#"{"type":"integer","maximum":9007199254740992}"#, "9007199254740992", None),
        (r#"{"type":"integer","maximum":9007199254740992}"#, "9007199254740993", Some(high)),
        (r#"{"type":"integer","minimum":9007199254740993}"#, "9007199254740992", Some(low)),
        (r#"{"type":"integer","minimum":9007199254740993}"#, "9007199254740993.0", None),
        (r#"{"type":"number","minimum":9007199254740993.0}"#, "9007199254740992.5", Some(low)),
        (r#"{"type":"integer","maximum":18446744073709551615}"#, "18446744073709551616", Some(high)),
        (r#"{"type":"integer","maximum":1e400}"#, "1e999999999", Some(high)),
        (r#"{"type":"number","maximum":0.0}"#, "1e-400", Some(high)),
        (r#"{"type":"number","minimum":0}"#, "-0.0", None),
        (r#"{"type":"number","minimum":-1.5}"#, "-1.5000", None),
        (r#"{"type":"number","minimum":-1.5}"#, "-1.51", Some(low)),
        (r#"{"type":"integer","minimum":1.5}"#, "1", Some(low)),
        (r#"{"type":"integer","minimum":1.5}"#, "2", None),
    ] {
        match (judge(&one(property), value), outcome) {
            (Ok(_), None) => {}
            (Err(sentence), Some(part)) => assert!(sentence.contains(part), "{property} {value}: {sentence}"),
            (outcome, _) => panic!("{property} {value}: {outcome:?}"),
        }
    }
}

#[test]
fn booleans_are_not_numbers_g22() {
    let schema = one(r#"{"type":"boolean"}"#);
    assert_eq!(judge(&schema, "true").unwrap(), r#"{"f":true}"#);
    assert_eq!(judge(&schema, "false").unwrap(), r#"{"f":false}"#);
    assert!(judge(&schema, "0").is_err() && judge(&one(r#"{"type":"integer"}"#), "true").is_err());
}

/// All four spellings of a select; values count, titles do not (R-118, R-119, R-122).
#[test]
fn selects_take_values() {
    for property in [
        r#"{"type":"string","enum":["a","b",""]}"#,
        r#"{"type":"string","oneOf":[{"const":"a","title":"A"},{"const":"b","title":"B"},{"const":"","title":"-"}]}"#,
        r#"{"type":"string","enum":["a","b",""],"enumNames":["A","B","-"]}"#,
        r#"{"enum":["a","b",""]}"#,
    ] {
        let schema = one(property);
        for value in [r#""a""#, r#""b""#, r#""""#, r#""\u0061""#] {
            assert!(judge(&schema, value).is_ok(), "{property} {value}");
        }
        for value in [r#""A""#, r#""c""#, r#""ab""#, r#"" a""#] {
            assert_eq!(
                judge(&schema, value).unwrap_err(),
                "must be chosen from the options",
                "{property} {value}"
            );
        }
    }
}

/// Item counts at n-1, n, n+1; duplicates count as given (R-120, R-121, G-24).
#[test]
fn multi_selects_count_items() {
    for items in [
        r#"{"type":"string","enum":["a","b","c"]}"#,
        r#"{"anyOf":[{"const":"a","title":"A"},{"const":"b","title":"B"},{"const":"c","title":"C"}]}"#,
    ] {
        let schema = one(&format!(r#"{{"type":"array","minItems":2,"maxItems":3,"items":{items}}}"#));
        for (value, outcome) in [
            ("[]", Err("must have at least 2 items")),
            (r#"["a"]"#, Err("must have at least 2 items")),
            (r#"["a","b"]"#, Ok(())),
            (r#"["a","a"]"#, Ok(())),
            (r#"["a","a","a"]"#, Ok(())),
            (r#"["c","b","a","a"]"#, Err("must have at most 3 items")),
            (r#"["a","x"]"#, Err("must be chosen from the options")),
            (r#"["A","B"]"#, Err("must be chosen from the options")),
        ] {
            assert_eq!(judge(&schema, value).map(|_| ()), outcome.map_err(String::from), "{items} {value}");
        }
        assert_eq!(judge(&schema, "[ \"b\" ,\n \"a\" ]").unwrap(), r#"{"f":["b","a"]}"#);
    }
}
