//! The client's half.

use mrtr_core::{
    Limits,
    http::{
        BodyPlan, HeaderFault, HttpErrorKind, Judgement, ParamHeaders, Sent, check_params, check_standard,
        fuzzing, judge, request_headers,
    },
};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{message, request};

const VERSION: &str = "io.modelcontextprotocol/protocolVersion";

fn annotations(schema: &Value) -> ParamHeaders {
    ParamHeaders::from_schema(super::json(&schema.to_string())).unwrap()
}

fn call(method: &str, mut params: Value) -> String {
    params["_meta"] = json!({VERSION: "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}});
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string()
}

/// Names and values, without the four that every request has.
fn headers(body: &str, annotations: &ParamHeaders) -> Vec<(String, String)> {
    let all = request_headers(&message(body), annotations).unwrap();
    let all: Vec<_> = all.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    let (common, own) = all.split_at(4);
    let names = ["Content-Type", "Accept", "MCP-Protocol-Version", "Mcp-Method"];
    assert_eq!(common.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), names);
    own.to_vec()
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

#[test]
fn every_request_has_the_standard_headers_r158_r161_r163_r164() {
    for (method, params, name) in [
        ("server/discover", json!({}), None),
        ("tools/list", json!({"cursor": "c"}), None),
        ("prompts/list", json!({"name": "x"}), None),
        ("tools/call", json!({"name": "test_headers"}), Some("test_headers")),
        ("tools/call", json!({"name": "my-hyphenated-tool"}), Some("my-hyphenated-tool")),
        ("prompts/get", json!({"name": "test_prompt"}), Some("test_prompt")),
        ("prompts/get", json!({"name": "日本"}), Some("=?base64?5pel5pys?=")),
        (
            "resources/read",
            json!({"uri": "file:///path/to/file%20name.txt"}),
            Some("file:///path/to/file%20name.txt"),
        ),
        (
            "resources/read",
            json!({"uri": "https://example.com/resource?id=123"}),
            Some("https://example.com/resource?id=123"),
        ),
        ("tasks/get", json!({"taskId": "t1", "name": "n"}), Some("t1")),
        ("tasks/update", json!({"taskId": "t1", "inputResponses": {}}), Some("t1")),
        ("tasks/cancel", json!({"taskId": "t1"}), Some("t1")),
        ("tools/call", json!({"arguments": {}}), None),
    ] {
        let body = call(method, params);
        let message = message(&body);
        let found = request_headers(&message, ParamHeaders::NONE).unwrap();
        let mut expected = vec![
            ("Content-Type", "application/json"),
            ("Accept", "application/json, text/event-stream"),
            ("MCP-Protocol-Version", "2026-07-28"),
            ("Mcp-Method", method),
        ];
        expected.extend(name.map(|name| ("Mcp-Name", name)));
        assert_eq!(found.iter().collect::<Vec<_>>(), expected);
        assert_eq!(check_standard(&found, &request(&body)), Ok(()));
    }
}

#[test]
fn arguments_are_mirrored_r167_r173_r175() {
    // The case of the conformance scenario `http-custom-headers`.
    let annotated = |kind: &str, name: &str| json!({"type": kind, "x-mcp-header": name});
    let annotations = annotations(&json!({"type": "object", "properties": {
        "region": annotated("string", "Region"), "priority": annotated("integer", "Priority"),
        "verbose": annotated("boolean", "Verbose"), "debug": annotated("boolean", "Debug"),
        "empty_val": annotated("string", "EmptyVal"), "method_val": annotated("string", "Method"),
        "float_val": {"type": "number"}, "non_ascii_val": annotated("string", "NonAscii"),
        "whitespace_val": annotated("string", "Whitespace"),
        "leading_space_val": annotated("string", "LeadingSpace"),
        "trailing_space_val": annotated("string", "TrailingSpace"),
        "internal_space_val": annotated("string", "InternalSpace"),
        "control_char_val": annotated("string", "ControlChar"), "crlf_val": annotated("string", "CrLf"),
        "tab_val": annotated("string", "Tab"), "query": {"type": "string"}}}));
    let body = call(
        "tools/call",
        json!({"name": "test_custom_headers", "arguments": {
            "region": "us-west1", "priority": 42, "verbose": false, "debug": true, "empty_val": "",
            "method_val": "test-method", "float_val": 1.5, "non_ascii_val": "Hello, 世界",
            "whitespace_val": " padded ", "leading_space_val": " us-west1", "trailing_space_val": "us-west1 ",
            "internal_space_val": "us west 1", "control_char_val": "line1\nline2",
            "crlf_val": "line1\r\nline2", "tab_val": "\tindented", "query": "SELECT 1"}}),
    );
    let mut found = headers(&body, &annotations);
    let mut expected = pairs(&[
        ("Mcp-Name", "test_custom_headers"),
        ("Mcp-Param-Region", "us-west1"),
        ("Mcp-Param-Priority", "42"),
        ("Mcp-Param-Verbose", "false"),
        ("Mcp-Param-Debug", "true"),
        ("Mcp-Param-EmptyVal", ""),
        ("Mcp-Param-Method", "test-method"),
        ("Mcp-Param-NonAscii", "=?base64?SGVsbG8sIOS4lueVjA==?="),
        ("Mcp-Param-Whitespace", "=?base64?IHBhZGRlZCA=?="),
        ("Mcp-Param-LeadingSpace", "=?base64?IHVzLXdlc3Qx?="),
        ("Mcp-Param-TrailingSpace", "=?base64?dXMtd2VzdDEg?="),
        ("Mcp-Param-InternalSpace", "us west 1"),
        ("Mcp-Param-ControlChar", "=?base64?bGluZTEKbGluZTI=?="),
        ("Mcp-Param-CrLf", "=?base64?bGluZTENCmxpbmUy?="),
        ("Mcp-Param-Tab", "=?base64?CWluZGVudGVk?="),
    ]);
    // The schema's order is the map's of whoever wrote it down.
    found.sort();
    expected.sort();
    assert_eq!(found, expected);
    let null = call("tools/call", json!({"name": "t", "arguments": {"region": "us-east1", "verbose": null}}));
    assert_eq!(headers(&null, &annotations), pairs(&[("Mcp-Name", "t"), ("Mcp-Param-Region", "us-east1")]));
    // Another method has no arguments to mirror.
    let prompt = call("prompts/get", json!({"name": "p", "arguments": {"region": "eu"}}));
    assert_eq!(headers(&prompt, &annotations), pairs(&[("Mcp-Name", "p")]));
}

#[test]
fn a_retry_has_the_same_headers_r165_r176() {
    // V40.
    let annotations = annotations(&json!({"properties": {
        "region": {"type": "string", "x-mcp-header": "Region"},
        "n": {"type": "integer", "x-mcp-header": "N"},
        "opt": {"type": "boolean", "x-mcp-header": "Opt"}}}));
    let arguments = json!({"region": "Zürich", "n": 42, "opt": null});
    let first = call("tools/call", json!({"name": "sql", "arguments": arguments}));
    let retry = call(
        "tools/call",
        json!({"name": "sql", "arguments": arguments, "requestState": "s",
            "inputResponses": {"k": {"action": "accept", "content": {"name": "A"}}}}),
    );
    let mut found = headers(&first, &annotations);
    assert_eq!(found, headers(&retry, &annotations));
    found.sort();
    let all = [("Mcp-Name", "sql"), ("Mcp-Param-N", "42"), ("Mcp-Param-Region", "=?base64?WsO8cmljaA==?=")];
    assert_eq!(found, pairs(&all));
    // A client that has not seen the schema calls without them (R-176).
    assert_eq!(headers(&first, ParamHeaders::NONE), pairs(&all[..1]));
}

#[test]
fn integers_are_written_in_decimal_r167() {
    let annotations = annotations(&json!({"properties": {"n": {"type": "integer", "x-mcp-header": "N"}}}));
    for (number, value) in [
        ("42", "42"),
        ("42.0", "42"),
        ("4.2e1", "42"),
        ("-7", "-7"),
        ("-0", "0"),
        ("9007199254740991", "9007199254740991"),
        // Beyond what every peer can hold, and fractions: as they are, to the digit.
        ("9007199254740993", "9007199254740993"),
        ("1e400", "1e400"),
        ("0.5", "0.5"),
        ("1E99999999999", "1E99999999999"),
    ] {
        let body = call("tools/call", json!({"name": "t", "arguments": {"n": "N"}})).replace("\"N\"", number);
        let message = message(&body);
        let found = request_headers(&message, &annotations).unwrap();
        assert_eq!(found.iter().last(), Some(("Mcp-Param-N", value)));
        assert_eq!(check_params(&found, &request(&body), &annotations), Ok(()), "{number}");
    }
}

#[test]
fn a_notification_has_version_and_method_g49() {
    let body = r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"name":"x"}}"#;
    let message = message(body);
    let found = request_headers(&message, ParamHeaders::NONE).unwrap();
    let found: Vec<_> = found.iter().skip(2).collect();
    assert_eq!(found, [("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", "notifications/progress")]);
}

#[test]
fn what_cannot_be_sent_r158_r161() {
    let schema = json!({"properties": {"a": {"type": "string", "x-mcp-header": "A"}}});
    let annotations = annotations(&schema);
    let fault = |body: &str| request_headers(&message(body), &annotations).map(|_| ()).unwrap_err();
    assert_eq!(fault(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#), HeaderFault::Response);
    assert_eq!(fault(r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#), HeaderFault::Version);
    let plain = |header| HeaderFault::NotPlain { header };
    assert_eq!(
        fault(&call("tools/list", json!({})).replace("2026-07-28", "é")),
        plain("MCP-Protocol-Version")
    );
    for method in ["", "tools/liste\u{301}", " tools/list", "tools\\r\\nX: y"] {
        assert_eq!(fault(&call("METHOD", json!({})).replace("METHOD", method)), plain("Mcp-Method"));
    }
    let value = |header: &str| HeaderFault::Value { header: header.to_owned() };
    for argument in ["[]", "{}", r#""\ud800""#] {
        let body = call("tools/call", json!({"name": "t", "arguments": {"a": "HERE"}}))
            .replace("\"HERE\"", argument);
        assert_eq!(fault(&body), value("Mcp-Param-A"));
    }
    assert_eq!(
        fault(&call("tools/call", json!({"name": "t"})).replace("\"t\"", r#""\udc00""#)),
        value("Mcp-Name")
    );
}

#[test]
fn debug_output_hides_values() {
    let body = call("tools/call", json!({"name": "secret"}));
    let message = message(&body);
    let shown = format!("{:?}", request_headers(&message, ParamHeaders::NONE).unwrap());
    assert!(shown.contains("Mcp-Name") && !shown.contains("secret"));
}

fn judged(sent: Sent, status: u16, content_type: &str, body: &str) -> Judgement<'static> {
    let body: &'static [u8] = body.to_owned().leak().as_bytes();
    judge(sent, status, Some(content_type.as_bytes()), body, &Limits::default())
}

fn is_message(status: u16, content_type: &str, body: &str) -> bool {
    matches!(judged(Sent::Request, status, content_type, body), Judgement::Message(m) if m == body.as_bytes())
}

const JSON: &str = "application/json; charset=utf-8";

#[test]
fn answers_r177_g01() {
    assert_eq!(BodyPlan::from_content_type(Some(b"text/event-stream")), BodyPlan::Events);
    assert_eq!(BodyPlan::from_content_type(Some(b"Text/Event-Stream; charset=utf-8")), BodyPlan::Events);
    assert_eq!(BodyPlan::from_content_type(Some(b"application/json")), BodyPlan::Whole);
    assert_eq!(BodyPlan::from_content_type(None), BodyPlan::Whole);
    for body in [
        r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete"}}"#,
        r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"Invalid or expired requestState"}}"#,
        // What is wrong with these is for the reader of the message to say.
        r#"{"jsonrpc":"1.0"}"#,
        "{",
    ] {
        assert!(is_message(200, JSON, body), "{body}");
    }
    // A wrong or missing type is forgiven when the body is a response beyond doubt.
    let result = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
    assert!(is_message(200, "text/plain", result));
    assert!(matches!(
        judge(Sent::Request, 201, None, result.as_bytes(), &Limits::default()),
        Judgement::Message(_)
    ));
}

#[test]
fn accepted_r160() {
    for status in [200, 202, 204] {
        for (content_type, body) in [("", ""), (JSON, ""), ("text/plain", "ok"), (JSON, "{}")] {
            assert!(matches!(judged(Sent::Message, status, content_type, body), Judgement::Accepted));
        }
        // A request wants more than that.
        for (content_type, body) in [("", ""), (JSON, " \n"), ("text/html", "<html>"), ("text/plain", "{}")] {
            let Judgement::Failed(error) = judged(Sent::Request, status, content_type, body) else {
                panic!()
            };
            assert_eq!((error.status, error.kind, error.error), (status, HttpErrorKind::NoMessage, None));
        }
    }
}

fn error(code: i64, data: &Value) -> String {
    json!({"jsonrpc": "2.0", "id": 1, "error": {"code": code, "message": "m", "data": data}}).to_string()
}

#[test]
fn a_400_of_a_modern_server_r045_r051() {
    let supported = json!({"supported": ["2026-07-28"], "requested": "v9"});
    assert!(is_message(400, JSON, &error(-32020, &Value::Null)));
    assert!(is_message(400, JSON, &error(-32021, &json!({"requiredCapabilities": {"elicitation": {}}}))));
    assert!(is_message(400, JSON, &error(-32022, &supported)));
    // The type may be wrong, and the id may be missing: the harness of a proxy, a check before the body.
    assert!(is_message(400, "text/plain", &error(-32022, &supported)));
    assert!(is_message(400, JSON, r#"{"jsonrpc":"2.0","error":{"code":-32020,"message":"m"}}"#));
    assert!(is_message(404, JSON, &error(-32601, &Value::Null)));
}

#[test]
fn a_400_that_may_be_legacy_r051() {
    for (body, code) in [
        (String::new(), None),
        ("Bad Request".to_owned(), None),
        ("{}".to_owned(), None),
        (r#"{"jsonrpc":"2.0","id":1,"result":{}}"#.to_owned(), None),
        // Legacy servers use these as they like; the old numbers of the new errors prove nothing either.
        (error(-32602, &Value::Null), Some(-32602)),
        (error(-32600, &Value::Null), Some(-32600)),
        (error(-32601, &Value::Null), Some(-32601)),
        (error(-32000, &Value::Null), Some(-32000)),
        (error(-32001, &Value::Null), Some(-32001)),
        (error(-32004, &json!({"supported": ["2026-07-28"]})), Some(-32004)),
        // Not the data that must go with the code.
        (error(-32022, &Value::Null), Some(-32022)),
        (error(-32022, &json!({"supported": "2026-07-28"})), Some(-32022)),
        (error(-32021, &json!({"requiredCapabilities": ["elicitation"]})), Some(-32021)),
    ] {
        let Judgement::MaybeLegacy(found) = judged(Sent::Request, 400, JSON, &body) else { panic!("{body}") };
        assert_eq!((found.status, found.kind), (400, HttpErrorKind::BadRequest));
        assert_eq!(found.error.map(|error| error.code.get()), code, "{body}");
    }
}

#[test]
fn other_statuses_keep_the_error_of_the_body_g01() {
    for (status, kind) in [
        (302, HttpErrorKind::Redirect),
        (401, HttpErrorKind::Unauthorized),
        (403, HttpErrorKind::Forbidden),
        (404, HttpErrorKind::NotFound),
        (405, HttpErrorKind::MethodNotAllowed),
        (406, HttpErrorKind::Client),
        (413, HttpErrorKind::TooLarge),
        (429, HttpErrorKind::TooManyRequests),
        (500, HttpErrorKind::Server),
        (503, HttpErrorKind::Server),
        (101, HttpErrorKind::Unknown),
        (999, HttpErrorKind::Unknown),
    ] {
        for sent in [Sent::Request, Sent::Message] {
            let Judgement::Failed(bare) = judged(sent, status, "text/html", "<html>") else { panic!() };
            assert_eq!((bare.status, bare.kind, bare.error), (status, kind, None));
            let Judgement::Failed(found) =
                judged(sent, status, JSON, &error(-32603, &json!({"retry": true})))
            else {
                panic!()
            };
            let kept = found.error.unwrap();
            assert_eq!(
                (kept.code.get(), kept.data().map(|data| data.as_str())),
                (-32603, Some(r#"{"retry":true}"#))
            );
        }
    }
    let Judgement::Failed(found) = judged(Sent::Request, 404, JSON, &error(-32001, &Value::Null)) else {
        panic!()
    };
    assert_eq!(found.to_string(), "HTTP status 404: no MCP endpoint at this address, or the session is over");
}

/// Arguments of all kinds, and a schema that annotates some of them.
fn tools() -> impl Strategy<Value = (Value, Value)> {
    let argument = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "\\PC{0,8}|[ \t\n=?base64]{0,16}".prop_map(Value::from),
        Just(json!([])),
        "[a-z]{1,2}".prop_map(|inner| json!({"x": inner})),
    ];
    let kind = prop_oneof![Just(json!("string")), Just(json!("integer")), Just(json!(["boolean", "null"]))];
    prop::collection::vec((argument, kind, any::<bool>()), 0..6).prop_map(|parts| {
        let (mut schema, mut arguments) = (json!({"properties": {}}), json!({}));
        for (n, (argument, kind, nested)) in parts.into_iter().enumerate() {
            let annotated = json!({"type": kind, "x-mcp-header": format!("H{n}")});
            let name = format!("a{n}");
            schema["properties"][&name] =
                if nested { json!({"properties": {"x": annotated}}) } else { annotated };
            arguments[&name] = argument;
        }
        (schema, arguments)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    /// R-166, R-173, R-175: what a client mirrors is what a server expects, whatever the arguments.
    #[test]
    fn both_sides_agree(tool in tools(), name in "\\PC{0,8}|[ =?base64]{0,12}") {
        let (schema, arguments) = tool;
        let body = call("tools/call", json!({"name": name, "arguments": arguments}));
        fuzzing::client_and_server_agree(format!("{schema}\0{body}").as_bytes());
    }

    /// G-01: no response makes a client stumble.
    #[test]
    fn any_response_is_judged(
        status in 0u16..1000, content_type in "(application/json|text/event-stream|[a-z/; ]{0,10})",
        body in "(\\PC{0,30}|\\{\"jsonrpc\":\"2.0\",\"error\":\\{\"code\":-3202[0-9],\"message\":\"\"\\}\\})",
    ) {
        let judgement = judge(Sent::Request, status, Some(content_type.as_bytes()), body.as_bytes(), &Limits::default());
        let accepted = matches!(judgement, Judgement::Accepted);
        prop_assert!(!accepted, "a request wants an answer");
        fuzzing::any_headers(format!("Host: {content_type}\nAccept: {body}\n{body}").as_bytes());
    }
}
