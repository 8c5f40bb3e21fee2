//! What kind of message it is, whose id it has, and whether a refused one is answered (R-001…R-006, B-81).

use mrtr_core::{
    ErrorCode, Limits,
    jsonrpc::{Admission, Json, JsonKind, Message, Refusal, RequestId, admit},
};

use super::{admitted, refused, request};

fn written(id: &RequestId) -> String {
    let mut out = Vec::new();
    id.write(&mut out);
    String::from_utf8(out).unwrap()
}

/// G-38: a name is what it decodes to, also where every character of it is escaped.
#[test]
fn names_may_be_escaped() {
    let escaped = |name: &str| name.chars().map(|c| format!("\\u{:04X}", u32::from(c))).collect::<String>();
    let [version, id, method, params] = ["jsonrpc", "id", "method", "params"].map(escaped);
    let text = format!(r#"{{"{version}":"2.0","{id}":7,"{method}":"m","{params}":{{"x":1}}}}"#);
    let Message::Request(request) = admitted(&text) else { panic!("{text}") };
    assert_eq!((written(&request.id).as_str(), &*request.method), ("7", "m"));
    assert!(request.param("x").is_some());
    for (name, value) in [("result", "{}"), ("error", r#"{"code":1,"message":"m"}"#)] {
        let text = format!(r#"{{"{version}":"2.0","{id}":7,"{}":{value}}}"#, escaped(name));
        assert!(matches!(admitted(&text), Message::Response(_)), "{text}");
    }
}

/// B-82: what is refused at a bound is not JSON behind it, and its outline is read all the same, to an end.
#[test]
fn b_82_an_outline_of_what_is_not_json() {
    let deep = "[".repeat(65);
    for (rest, id) in [
        (r#"","id":7,"method":"m"}"#, Some("7")),
        ("\n\u{1}\",\"id\":7,\"method\":\"m\"}", Some("7")),
        ("\n\",\"id\":7,", Some("7")),
        // Of a longer id, perhaps.
        ("\n\",\"id\":7", None),
        ("\n", None),
        ("\u{1f}\\", None),
    ] {
        let closed = "]".repeat(65);
        let text = format!(r#"{{"jsonrpc":"2.0","x":{deep}{closed},"y":"{rest}"#);
        let refused = refused(&text);
        assert!(matches!(refused.reason, Refusal::TooDeep { .. }), "{text:?}");
        assert_eq!(refused.id.as_ref().map(written).as_deref(), id, "{text:?}");
    }
}

/// In logs an id is shown as it stands on the wire.
#[test]
fn ids_are_shown() {
    assert_eq!(RequestId::from(7).to_string(), "7");
    assert!(RequestId::from("a b").to_string().contains("a b"));
}

/// R-001, R-003: an id comes back with the type and the digits it came with.
#[test]
fn r_003_ids_are_echoed_with_their_type() {
    for (id, echo) in [
        ("0", "0"),
        ("1", "1"),
        ("-1", "-1"),
        ("-0", "0"),
        ("9007199254740993", "9007199254740993"),
        ("9223372036854775807", "9223372036854775807"),
        ("9223372036854775808", "9223372036854775808"),
        ("-9223372036854775808", "-9223372036854775808"),
        ("-9223372036854775809", "-9223372036854775809"),
        ("123456789012345678901234567890", "123456789012345678901234567890"),
        ("\"\"", "\"\""),
        ("\"1\"", "\"1\""),
        ("\"null\"", "\"null\""),
        (r#""a\u0062\/\"\\\n\u0001é😀\ud83d\ude00""#, r#""ab/\"\\\n\u0001é😀😀""#),
    ] {
        let text = request(id);
        let Message::Request(request) = admitted(&text) else { panic!("{id}") };
        assert_eq!(written(&request.id), echo);
        // It is echoed the same when the rest is refused, whether by its shape or by a bound.
        for broken in [
            text.replace("2.0", "1.0"),
            text.replace("\"m\"", "5"),
            text.replace("\"method\":\"m\"", "\"method\":\"m\",\"params\":[]"),
            text.replace("\"method\":\"m\"", "\"method\":\"m\",\"x\":1,\"x\":1"),
            text.replace(
                "\"method\":\"m\"",
                &format!("\"method\":\"m\",\"x\":{}", "[".repeat(65) + &"]".repeat(65)),
            ),
            text.replace(",\"method\":\"m\"", ""),
            text.replace("\"method\":\"m\"", "\"method\":\"m\",\"method\":\"n\""),
            text.replace("\"method\":\"m\"", "\"method\":\"m\",\"x\":[{\"y\":0}],\"method\":5"),
            text.replace("\"method\":\"m\"", "\"method\":\"m\",\"method\":\"m\",\"params\":{},\"params\":{}"),
        ] {
            let refused = refused(&broken);
            assert_eq!(refused.id.as_ref().map(written).as_deref(), Some(echo), "{broken}");
            assert_eq!(refused.error().code, ErrorCode::INVALID_REQUEST);
            assert!(refused.wants_answer());
        }
    }
    assert_ne!(RequestId::from(1), RequestId::from("1"));
}

/// R-001: a fraction, null or anything else is no id, and there is nothing to echo.
#[test]
fn r_001_other_ids_are_refused() {
    for id in
        ["null", "1.0", "1e2", "1E2", "-1.5", "0.0", "true", "[]", "{}", "[1]", r#""\ud800""#, "1e999999999"]
    {
        let refused = refused(&request(id));
        assert_eq!(refused.reason, Refusal::Shape("`id` is neither a string nor an integer"), "{id}");
        assert_eq!((refused.error().code, refused.id.clone()), (ErrorCode::INVALID_REQUEST, None), "{id}");
        assert!(refused.wants_answer(), "{id}");
    }
}

/// R-003: what stands where an id would be in a message that broke a bound, and is not JSON, is not echoed.
#[test]
fn r_003_an_id_in_unchecked_text_must_be_json() {
    let deep = "[".repeat(65);
    for id in ["", "-", "--1", "01", "-01", "1x", "x", "+1", "1.", "٣", "}"] {
        let text = format!(r#"{{"method":"m","params":{deep}{},"id":{id}"#, "]".repeat(65));
        let refused = refused(&text);
        assert_eq!(refused.reason, Refusal::TooDeep { limit: 64 }, "{text}");
        assert_eq!(refused.id, None, "{text}");
    }
    let text = format!(r#"{{"method":"m","params":{deep}{}}}"id":7"#, "]".repeat(65));
    assert_eq!(refused(&text).id, None, "what follows the object is not in it");
    let text = format!(r#"{{"method":"m","params":{deep}{},"id":7 and then no JSON"#, "]".repeat(65));
    assert_eq!(refused(&text).id, Some(RequestId::from(7)));
}

/// R-005: absent and null are different facts.
#[test]
fn null_is_not_absent() {
    assert!(matches!(admitted(r#"{"jsonrpc":"2.0","method":"m"}"#), Message::Notification(_)));
    assert_eq!(
        refused(r#"{"jsonrpc":"2.0","method":"m","params":null}"#).reason,
        Refusal::Shape("`params` is not an object")
    );
    let text = r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"null":null}}"#;
    let Message::Request(request) = admitted(text) else { panic!() };
    assert_eq!(request.param("null").map(Json::kind), Some(JsonKind::Null));
    assert_eq!(request.param("absent"), None);
    let text = r#"{"jsonrpc":"2.0","method":"m","params":{"null":null}}"#;
    let Message::Notification(notification) = admitted(text) else { panic!() };
    assert!(notification.param("null").is_some() && notification.param("absent").is_none());
    // An error may come without an id or, from 2025 peers, with null; a result may not.
    for id in ["", "\"id\":null,"] {
        let text = format!(r#"{{"jsonrpc":"2.0",{id}"error":{{"code":1,"message":"m"}}}}"#);
        let Message::Response(response) = admitted(&text) else { panic!() };
        assert_eq!(response.id, None);
        let refused = refused(&format!(r#"{{"jsonrpc":"2.0",{id}"result":{{}}}}"#));
        assert_eq!(refused.reason, Refusal::Shape("a result without a readable `id`"));
    }
}

#[test]
fn batches_do_not_exist() {
    let limits = Limits::default();
    for text in
        ["[]".to_owned(), format!("[{}]", request("1")), format!("[{0},{0}]", request("1")), "[1]".to_owned()]
    {
        let refused = refused(&text);
        assert_eq!((refused.reason, refused.id.clone()), (Refusal::Batch, None));
        assert_eq!(refused.error().code, ErrorCode::INVALID_REQUEST);
        assert!(refused.wants_answer());
    }
    // What is no JSON is no batch.
    assert!(matches!(admit(b"[{]", &limits).unwrap_err().reason, Refusal::Syntax { at: 2 }));
}

#[test]
fn what_is_not_an_object_is_no_message() {
    for text in ["null", "true", "1", "\"{}\""] {
        assert_eq!(refused(text).reason, Refusal::Shape("not an object"));
    }
    assert_eq!(refused("{}").reason, Refusal::Shape("`jsonrpc` is not \"2.0\""));
    for version in ["null", "2.0", "2", "\"2\"", "\"2.0 \"", "\"1.0\"", "[\"2.0\"]"] {
        let refused = refused(&format!(r#"{{"jsonrpc":{version},"id":1,"method":"m"}}"#));
        assert_eq!(refused.reason, Refusal::Shape("`jsonrpc` is not \"2.0\""), "{version}");
    }
    assert!(matches!(
        admitted(r#"{"\u006asonrpc":"2\u002e0","\u0069d":1,"method":"m"}"#),
        Message::Request(_)
    ));
}

/// R-003: an id is the integer or the string that came, and no other value of either kind.
#[test]
fn r_003_an_id_is_one_number_or_one_string() {
    for (id, number, string) in [
        ("7", Some(7), None),
        ("-9223372036854775808", Some(i64::MIN), None),
        ("9223372036854775808", None, None),
        (r#""""#, None, Some("")),
        (r#""7""#, None, Some("7")),
    ] {
        let text = request(id);
        let Message::Request(request) = admitted(&text) else { panic!("{id}") };
        assert_eq!((request.id.as_i64(), request.id.as_str()), (number, string), "{id}");
    }
}

/// R-010: members that nobody knows are let through.
#[test]
fn r_010_unknown_members_are_tolerated() {
    let text = r#"{"x":{"id":5},"jsonrpc":"2.0","ID":2,"id":1,"Method":null,"method":"m","\ud800":0,"params":{"y":[]}}"#;
    let Message::Request(request) = admitted(text) else { panic!() };
    assert_eq!((request.id.as_i64(), &*request.method), (Some(1), "m"));
}

/// B-81, R-005, R-006: a server answers broken requests and rubbish, never broken responses or notifications;
/// and what it answers never carries the id of a response, which the peer would take for a request of its own.
#[test]
fn b_81_what_is_not_a_request_gets_no_answer() {
    let version = r#""jsonrpc":"2.0""#;
    for (text, echo, response_to, answered) in [
        (r#"{V,"id":5,"method":"m","params":1}"#, Some(5), None, true),
        (r#"{V,"id":5,"method":7}"#, Some(5), None, true),
        (r#"{V,"id":5}"#, Some(5), None, true),
        (r#"{V,"id":5,"method":"m","result":null,"error":null}"#, Some(5), None, true),
        (r#"{"id":5,"method":"m"}"#, Some(5), None, true),
        (r#"{V}"#, None, None, true),
        (r#"{V,"method":7}"#, None, None, true),
        (r#"{V,"id":null,"method":"m"}"#, None, None, true),
        // Notifications.
        (r#"{V,"method":"m","params":1}"#, None, None, false),
        (r#"{V,"method":"m","params":{"a":1,"a":2}}"#, None, None, false),
        (r#"{"method":"m"}"#, None, None, false),
        // Responses.
        (r#"{V,"id":5,"result":{},"error":{"code":1,"message":"m"}}"#, None, Some(5), false),
        (r#"{V,"id":5,"result":{"a":1,"a":2}}"#, None, Some(5), false),
        (r#"{V,"id":5,"error":{"code":1.5,"message":"m"}}"#, None, Some(5), false),
        (r#"{V,"id":5,"error":{"code":"1","message":"m"}}"#, None, Some(5), false),
        (r#"{V,"id":5,"error":{"code":1,"message":null}}"#, None, Some(5), false),
        (r#"{V,"id":5,"error":{"code":1}}"#, None, Some(5), false),
        (r#"{V,"id":5,"error":null}"#, None, Some(5), false),
        (r#"{V,"id":1.5,"error":{"code":1,"message":"m"}}"#, None, None, false),
        (r#"{V,"id":null,"result":{}}"#, None, None, false),
        (r#"{"id":5,"result":{}}"#, None, Some(5), false),
        // Both: whoever waits under that id takes it for a response, everybody else for a request.
        (r#"{V,"id":5,"method":"m","result":{}}"#, Some(5), Some(5), true),
        (r#"{V,"id":5,"method":"m","error":{"code":1,"message":"m"}}"#, Some(5), Some(5), true),
        (r#"{V,"id":5,"method":null,"result":{},"error":null}"#, Some(5), Some(5), true),
        (r#"{V,"method":"m","result":{}}"#, None, None, false),
    ] {
        let refused = refused(&text.replace('V', version));
        assert_eq!(refused.id, echo.map(RequestId::from), "{text}");
        assert_eq!(refused.response_to, response_to.map(RequestId::from), "{text}");
        assert_eq!(refused.wants_answer(), answered, "{text}");
        assert!(refused.response_to.is_none() || !refused.asks_or_tells(), "{text}");
        assert_eq!(refused.error().code, ErrorCode::INVALID_REQUEST);
    }
}

/// R-004: error objects.
#[test]
fn r_004_errors_are_read_with_their_data() {
    let read = |error: &str| {
        let text = format!(r#"{{"jsonrpc":"2.0","id":1,"error":{error}}}"#);
        let Message::Response(response) = admitted(&text) else { panic!("{error}") };
        response.outcome.unwrap_err()
    };
    let error = read(r#"{"code":-32602,"message":"a\u0062","data":{"x": [1]},"more":1}"#);
    assert_eq!(
        (error.code, &*error.message, error.data().map(Json::as_str)),
        (ErrorCode::INVALID_PARAMS, "ab", Some(r#"{"x": [1]}"#))
    );
    assert_eq!(read(r#"{"code":1,"message":"","data":null}"#).data().map(Json::as_str), Some("null"));
    assert_eq!(read(r#"{"code":9223372036854775807,"message":""}"#).data(), None);
}

/// No content of a message reaches a log by way of `Debug` of what was not understood.
#[test]
fn debug_shows_kinds_and_lengths() {
    let text = r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"requestState":"SECRET"}}"#;
    let shown = format!("{:?}", admitted(text));
    assert!(shown.contains("Json(Object, 25 bytes)") && !shown.contains("SECRET"), "{shown}");
    let refused =
        refused(&text.replace("\"2.0\"", "\"SECRET\"").replace(":{", ":{\"SECRET\":1,\"SECRET\":1,"));
    assert!(!format!("{refused:?} {}", refused.error()).contains("SECRET"));
    let shown = |text: &str| format!("{:?}", Admission::of(text.as_bytes().to_vec(), &Limits::default()));
    assert_eq!(shown(text), format!("Admission({} bytes)", text.len()));
    assert_eq!(shown(&text[1..]), format!("Admission({})", super::refused(&text[1..]).reason));
}
