//! What is JSON, and within the bounds: every refusal at its bound (G-38, B-82).

use allocation_counter::measure;
use mrtr_core::{
    ErrorCode, Limits,
    jsonrpc::{Json, JsonKind, Refusal, RequestId, admit},
};

use super::{refused, refused_by, request, wide, with};

/// R-007, R-019: what is no JSON gets -32700 and no id.
#[test]
fn r_019_what_is_not_json_is_a_parse_error() {
    let syntax = |text: &str, at: usize| {
        let refused = refused(text);
        assert_eq!(refused.reason, Refusal::Syntax { at }, "{text}");
        assert_eq!(refused.error().code, ErrorCode::PARSE_ERROR, "{text}");
        assert_eq!(
            (&refused.id, &refused.response_to, refused.wants_answer()),
            (&None, &None, true),
            "{text}"
        );
    };
    syntax("", 0);
    syntax(" \t\r\n", 4);
    syntax("\u{feff}{}", 0);
    syntax("{", 1);
    syntax("}", 0);
    syntax("[1,]", 3);
    syntax("[,1]", 1);
    syntax("[1 2]", 3);
    syntax("[1", 2);
    syntax("[1}", 2);
    syntax("{]", 1);
    syntax("{\"a\":1]", 6);
    syntax("{\"a\"}", 4);
    syntax("{\"a\":}", 5);
    syntax("{\"a\" 1}", 5);
    syntax("{\"a\":1,}", 7);
    syntax("{,\"a\":1}", 1);
    syntax("{\"a\"::1}", 5);
    syntax("{a:1}", 1);
    syntax("{1:1}", 1);
    syntax("{\"a\":1,\"b\"", 10);
    syntax("{} {}", 3);
    syntax("{}x", 2);
    syntax("{}\0", 2);
    syntax("{},", 2);
    syntax("1 1", 2);
    syntax("\u{a0}{}", 0);
    syntax("\u{c}{}", 0);
    syntax("// c\n{}", 0);
    syntax("'a'", 0);
    for word in ["tru", "truE", "nul", "fals", "True", "NaN", "Infinity", "-Infinity", "undefined"] {
        syntax(word, usize::from(word.starts_with('-')));
    }
    syntax("truee", 4);
    syntax("nullnull", 4);
}

#[test]
fn numbers_follow_the_grammar() {
    for good in [
        "0",
        "-0",
        "1",
        "-1",
        "10",
        "0.0",
        "-0.5",
        "1e0",
        "1E+00",
        "1e-9",
        "1.5e400",
        "123456789012345678901234567890",
    ] {
        assert_eq!(Json::parse(good, &wide()).map(Json::kind), Ok(JsonKind::Number), "{good}");
        assert_eq!(Json::parse(good, &wide()).map(Json::as_str), Ok(good));
    }
    for (bad, at) in [
        ("-", 1),
        ("+1", 0),
        (".5", 0),
        ("1.", 2),
        ("1.e1", 2),
        ("01", 1),
        ("-01", 2),
        ("00", 1),
        ("1e", 2),
        ("1e+", 3),
        ("1e1.5", 3),
        ("1.5.5", 3),
        ("--1", 1),
        ("0x1", 1),
        ("1_0", 1),
        ("1a", 1),
        ("١", 0),
    ] {
        assert_eq!(Json::parse(bad, &wide()), Err(Refusal::Syntax { at }), "{bad}");
    }
}

#[test]
fn strings_follow_the_grammar() {
    for good in ["\"\"", "\"\u{7f}\u{85}\u{2028}\"", r#""\"\\\/\b\f\n\r\t\u0000\uABCD\uabcd""#, r#""\ud800""#]
    {
        assert_eq!(Json::parse(good, &wide()).map(Json::kind), Ok(JsonKind::String), "{good}");
    }
    for control in '\0'..' ' {
        // At every distance from the start, because strings are read in words.
        for before in 0..18 {
            let text = format!("\"{}{control}aaaaaaaaaaaa\"", "a".repeat(before));
            assert_eq!(Json::parse(&text, &wide()), Err(Refusal::Syntax { at: before + 1 }), "{text:?}");
        }
    }
    for (bad, at) in [
        ("\"", 1),
        ("\"a", 2),
        ("\"\\\"", 3),
        ("\"\\", 1),
        ("\"\\x\"", 1),
        ("\"\\u\"", 1),
        ("\"\\u123\"", 1),
        ("\"\\u12g4\"", 1),
        ("\"\\u+123\"", 1),
        ("\"\\U0041\"", 1),
        ("\"\\é\"", 1),
        ("\"abcdefgh\\'\"", 9),
    ] {
        assert_eq!(Json::parse(bad, &wide()), Err(Refusal::Syntax { at }), "{bad}");
    }
}

/// R-007
#[test]
fn r_007_what_is_not_utf_8_is_a_parse_error() {
    for bytes in [
        &b"\xff"[..],
        b"{\"a\":\"\x80\"}",
        b"\"\xc3\"",
        b"\"\xc0\xaf\"",
        b"\"\xed\xa0\x80\"",
        b"\"\xf5\x80\x80\x80\"",
        b"\xef\xbb",
        b"{}\xc3\xa9\xa9",
    ] {
        let refused = refused_by(bytes, &Limits::default());
        assert_eq!(refused.reason, Refusal::NotUtf8, "{bytes:?}");
        assert_eq!(refused.error().code, ErrorCode::PARSE_ERROR);
        assert_eq!(refused.id, None);
    }
}

#[test]
fn a_message_may_have_exactly_as_many_bytes_as_allowed() {
    let text = request("1");
    let mut limits = Limits::default();
    limits.message_bytes = text.len();
    assert!(admit(text.as_bytes(), &limits).is_ok());
    limits.message_bytes -= 1;
    let refused = refused_by(text.as_bytes(), &limits);
    assert_eq!(refused.reason, Refusal::TooLarge { bytes: text.len(), limit: text.len() - 1 });
    assert_eq!((refused.error().code, refused.id.clone()), (ErrorCode::INVALID_REQUEST, None));
    assert!(refused.error().message.contains("Limits::message_bytes"));
    // A message over the limit is not looked at: that it is no UTF-8 is not noticed.
    assert_eq!(
        refused_by(&[0xff; 5], &{
            let mut limits = Limits::default();
            limits.message_bytes = 4;
            limits
        })
        .reason,
        Refusal::TooLarge { bytes: 5, limit: 4 }
    );
}

/// B-82: depth is counted over arrays and objects, and the id is read whether it stands before or after.
#[test]
fn b_82_a_message_may_be_exactly_as_deep_as_allowed() {
    let limits = Limits::default();
    // The message and its params are two levels.
    let inner = limits.depth - 2;
    for (open, close) in [("[", "]"), ("{\"a\":", "}"), ("[{\"a\":", "}]")] {
        let pairs = inner / if open.len() > 5 { 2 } else { 1 };
        let exact = open.repeat(pairs) + "1" + &close.repeat(pairs);
        assert!(admit(with(&exact).as_bytes(), &limits).is_ok(), "{open}");
        let over = format!("[{exact}]");
        for text in [with(&over), format!(r#"{{"x":[{over}],"id":"i","method":"m"}}"#)] {
            let refused = refused_by(text.as_bytes(), &limits);
            assert_eq!(refused.reason, Refusal::TooDeep { limit: limits.depth }, "{text}");
            assert_eq!(refused.error().code, ErrorCode::INVALID_REQUEST);
            assert_eq!(refused.id, Some(RequestId::from("i")), "{text}");
            assert!(refused.error().message.contains("Limits::depth"));
        }
    }
    let mut none = Limits::default();
    none.depth = 0;
    assert_eq!(Json::parse("[]", &none), Err(Refusal::TooDeep { limit: 0 }));
    assert!(Json::parse("1", &none).is_ok());
}

#[test]
fn a_message_may_have_exactly_as_many_values_as_allowed() {
    // The object, four members, and the members and elements inside: names are no values.
    let text = with(r#"[1,{"a":[],"b":null},""]"#);
    let values = 5 + 1 + 3 + 2;
    let mut limits = Limits::default();
    limits.nodes = values;
    assert!(admit(text.as_bytes(), &limits).is_ok());
    limits.nodes -= 1;
    let refused = refused_by(text.as_bytes(), &limits);
    assert_eq!(refused.reason, Refusal::TooManyNodes { limit: values - 1 });
    assert_eq!(refused.error().code, ErrorCode::INVALID_REQUEST);
    assert_eq!(refused.id, Some(RequestId::from("i")));
    assert!(refused.error().message.contains("Limits::nodes"));
}

/// G-38: the same name twice, as decoded, in any object.
#[test]
fn g_38_no_object_has_a_name_twice() {
    for twice in [
        r#"{"a":1,"a":1}"#,
        r#"{"a":1,"\u0061":2}"#,
        r#"{"\u0061":1,"b":0,"a":2}"#,
        r#"{"":1,"":2}"#,
        r#"{"é":1,"\u00e9":2}"#,
        r#"{"\u00E9":1,"\u00e9":2}"#,
        r#"{"😀":1,"\ud83d\ude00":2}"#,
        r#"{"\ud83d\ude00":1,"\uD83D\uDE00":2}"#,
        r#"{"\ud800":1,"\uD800":2}"#,
        r#"{"\n":1,"\u000a":2}"#,
        r#"{"\/":1,"/":2}"#,
        r#"{"aaaaaaaaaaaaaaaaaaaaaaaaa":1,"c":2,"aaaaaaaaaaaaaaaaaaaaaaaa\u0061":3}"#,
    ] {
        for text in [
            with(twice),
            with(&format!("[0,[{twice}]]")),
            with(&format!(r#"{{"x":{{"y":{twice}}},"z":[]}}"#)),
            twice.replacen('{', r#"{"jsonrpc":"2.0","id":"i","method":"m","#, 1),
            format!(r#"{{"params":{{"_meta":{twice}}},"method":"m","id":"i","jsonrpc":"2.0"}}"#),
        ] {
            let refused = refused(&text);
            let Refusal::DuplicateName { at } = refused.reason else { panic!("{text}: {refused:?}") };
            assert!(text[at..].starts_with('"'), "{text} {at}");
            assert_eq!(refused.error().code, ErrorCode::INVALID_REQUEST);
            assert_eq!(refused.id, Some(RequestId::from("i")), "{text}");
        }
    }
    for once in [
        r#"{"a":1,"A":1,"\u00e1":1,"a\u0301":1,"a ":1}"#,
        r#"{"a":{"a":{"a":[{"a":1},{"a":1}]}}}"#,
        r#"{"\ud800":1,"\ud801":1,"\udc00":1,"\udc00\ud800":1,"\ud800\udc00":1}"#,
        r#"{"\\u0061":1,"a":1}"#,
        r#"{"":1,"\u0000":1}"#,
    ] {
        assert!(admit(with(once).as_bytes(), &Limits::default()).is_ok(), "{once}");
    }
    for known in ["method", "params", "jsonrpc", "m\\u0065thod"] {
        let refused = refused(&format!(r#"{{"id":1,"{known}":{{}},"{known}":1}}"#));
        assert!(matches!(refused.reason, Refusal::DuplicateName { .. }));
        assert_eq!(refused.id, Some(RequestId::from(1)), "{known}");
    }
    // Which of the two ids would it be?
    assert_eq!(refused(r#"{"jsonrpc":"2.0","id":1,"method":"m","id":2}"#).id, None);
    assert_eq!(refused(r#"{"jsonrpc":"2.0","id":1,"method":"m","\u0069d":1}"#).id, None);
}

/// G-38 in objects with many names, where they are compared in another way.
#[test]
fn g_38_one_name_twice_among_thousands_is_found() {
    let count = 30_000;
    let object = |last: &str| {
        let members: String = (0..count).map(|n| format!("\"name{n}\":0,")).collect();
        with(&format!("{{{members}{last}:0}}"))
    };
    assert!(admit(object("\"other\"").as_bytes(), &Limits::default()).is_ok());
    for twin in [0, 777, count - 1] {
        let text = object(&format!("\"n\\u0061me{twin}\""));
        let refused = refused(&text);
        let Refusal::DuplicateName { at } = refused.reason else { panic!("{refused:?}") };
        assert!(text[at..].starts_with("\"n\\u0061me"));
    }
}

/// As many members as the default limits allow, and one more.
#[test]
fn an_object_of_100_000_members_is_bounded_by_nodes() {
    let limits = Limits::default();
    let object = |count: usize| {
        let members: String = (0..count).map(|n| format!("\"{n}\":0,")).collect();
        format!("{{{}}}", members.trim_end_matches(','))
    };
    assert!(Json::parse(&object(limits.nodes - 1), &limits).is_ok());
    let over = object(limits.nodes);
    assert_eq!(Json::parse(&over, &limits), Err(Refusal::TooManyNodes { limit: limits.nodes }));
}

/// B-82: brackets without end use no stack and no memory beyond the bound.
#[test]
fn b_82_ten_thousand_brackets_are_refused_at_the_bound() {
    for text in ["[".repeat(10_000), "{\"a\":".repeat(10_000), "[{\"\":".repeat(10_000)] {
        let text = with(&text);
        let mut result = None;
        let info = measure(|| result = admit(text.as_bytes(), &Limits::default()).err());
        assert_eq!(result.unwrap().reason, Refusal::TooDeep { limit: 64 });
        assert!(info.bytes_max < 8_192, "{} bytes", info.bytes_max);
    }
    // Without a bound they are read all the same.
    let deep = "[".repeat(1_000_000) + &"]".repeat(1_000_000);
    assert!(Json::parse(&deep, &wide()).is_ok());
    assert_eq!(Json::parse(&deep, &wide()).unwrap().items().unwrap().count(), 1);
}

/// A message with a token of 3 MB is admitted, or refused, without an allocation that grows with it.
#[test]
fn a_string_of_3_mb_is_not_copied() {
    let plain = "A".repeat(3_000_000);
    let escaped = "\\u0041\\n".repeat(400_000);
    for text in [
        format!(r#"{{"jsonrpc":"2.0","id":7,"method":"m","params":{{"requestState":"{plain}"}}}}"#),
        format!(r#"{{"jsonrpc":"2.0","id":7,"method":"m","params":{{"requestState":"{escaped}"}}}}"#),
        format!(r#"{{"jsonrpc":"2.0","id":7,"method":"m","params":{{"{plain}":1,"x":2}}}}"#),
        format!(r#"{{"jsonrpc":"2.0","id":7,"method":"m","params":{{"{escaped}":1,"x":2}}}}"#),
        format!(r#"{{"jsonrpc":"2.0","id":7,"method":"m","params":{{"{escaped}":1,"{escaped}":2}}}}"#),
        format!(r#"{{"jsonrpc":"2.0","id":7,"method":"m","params":[{plain}]}}"#),
        format!(r#"{{"jsonrpc":"2.0","id":7,"method":"m","params":{{"n":1{}}}}}"#, "0".repeat(3_000_000)),
    ] {
        let info = measure(|| drop(admit(text.as_bytes(), &Limits::default())));
        assert!(info.bytes_total < 2_048, "{} bytes", info.bytes_total);
    }
    let text = format!(r#"{{"params":{{"requestState":"{plain}"}}}}"#);
    let value = Json::parse(&text, &Limits::default()).unwrap();
    let info = measure(|| {
        let state =
            value.get("params").and_then(|params| params.get("requestState")).and_then(Json::as_string);
        assert_eq!(state.unwrap().len(), plain.len());
    });
    assert_eq!(info.count_total, 0, "a string without escapes is borrowed");
}

/// A usual message takes two allocations to admit: one for what is open, one for names.
#[test]
fn a_usual_message_takes_two_allocations() {
    let text = with(r#"{"_meta":{"a/b":"c","d":{"name":"e","version":"f"}},"name":"greet","arguments":{"x":1.5,"y":[true,null]}}"#)
        .replace("\"i\"", "7");
    let info = measure(|| drop(std::hint::black_box(admit(text.as_bytes(), &Limits::default()))));
    assert!(info.count_total <= 2, "{info:?}");
}
