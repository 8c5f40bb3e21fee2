//! Steps 3 to 7: what headers and body must agree on.

use mrtr_core::{
    ErrorCode,
    http::{
        HeaderMismatch, HeaderProblem, ParamHeaders, ReplyClass, SentinelFault, check_notification,
        check_params, check_standard, check_version_matches, check_version_present,
    },
    jsonrpc::Message,
    wire::{MetaFault, RequestMeta},
};

use super::{json, message, request};

type Headers<'h> = &'h [(&'h str, &'h str)];

fn call(method: &str, params: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":7,"method":"{method}","params":{{{params}"_meta":{{
        "io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{{}}}}}}}}"#
    )
}

/// The header and the problem, or nothing.
fn told(checked: Result<(), HeaderMismatch>) -> Result<(), (String, HeaderProblem)> {
    checked.map_err(|mismatch| {
        assert_eq!(mismatch.error().code, ErrorCode::HEADER_MISMATCH);
        (mismatch.header.into_owned(), mismatch.problem)
    })
}

fn standard(headers: Headers<'_>, body: &str) -> Result<(), (String, HeaderProblem)> {
    told(check_standard(headers, &request(body)))
}

/// A server's steps 3 to 7, in order, with one supported version: the code and class of the first error.
fn receive(headers: Headers<'_>, body: &str) -> Result<(), (i64, ReplyClass)> {
    let request = request(body);
    let mismatch = |_| (-32020, ReplyClass::HeaderMismatch);
    let version = check_version_present(headers).map_err(mismatch)?;
    let meta =
        RequestMeta::from_request(&request).map_err(|_: MetaFault| (-32602, ReplyClass::MetaInvalid))?;
    check_version_matches(version, &meta).map_err(mismatch)?;
    if meta.protocol_version != "2026-07-28" {
        return Err((-32022, ReplyClass::UnsupportedVersion));
    }
    check_standard(headers, &request).map_err(mismatch)?;
    check_params(headers, &request, ParamHeaders::NONE).map_err(mismatch)
}

#[test]
fn the_order_of_the_checks_r170() {
    let discover = |meta: &str| {
        format!(r#"{{"jsonrpc":"2.0","id":101,"method":"server/discover","params":{{{meta}}}}}"#)
    };
    let meta = |version: &str| {
        discover(&format!(
            r#""_meta":{{"io.modelcontextprotocol/protocolVersion":"{version}","io.modelcontextprotocol/clientCapabilities":{{}}}}"#
        ))
    };
    let headers =
        |version: &'static str| [("MCP-Protocol-Version", version), ("Mcp-Method", "server/discover")];
    assert_eq!(receive(&headers("2026-07-28"), &meta("2026-07-28")), Ok(()));
    // V02: good headers, no `_meta`.
    assert_eq!(receive(&headers("2026-07-28"), &discover("")), Err((-32602, ReplyClass::MetaInvalid)));
    // No header beats no `_meta`.
    assert_eq!(receive(&[], &discover("")), Err((-32020, ReplyClass::HeaderMismatch)));
    // V04: a difference beats a version that nobody knows ...
    assert_eq!(receive(&headers("2026-07-28"), &meta("v999.0.0")), Err((-32020, ReplyClass::HeaderMismatch)));
    // V05: ... which is refused as such when both say it,
    assert_eq!(
        receive(&headers("v999.0.0"), &meta("v999.0.0")),
        Err((-32022, ReplyClass::UnsupportedVersion))
    );
    // and that beats the other headers.
    let other = [("MCP-Protocol-Version", "v999.0.0"), ("Mcp-Method", "tools/list")];
    assert_eq!(receive(&other, &meta("v999.0.0")), Err((-32022, ReplyClass::UnsupportedVersion)));
    let other = [("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", "tools/list")];
    assert_eq!(receive(&other, &meta("2026-07-28")), Err((-32020, ReplyClass::HeaderMismatch)));
}

#[test]
fn the_version_is_said_twice_r161_r162() {
    let present =
        |headers: Headers<'_>| check_version_present(headers).map(str::to_owned).map_err(|m| m.problem);
    assert_eq!(present(&[("mcp-protocol-version", " 2026-07-28 ")]), Ok("2026-07-28".to_owned()));
    assert_eq!(present(&[]), Err(HeaderProblem::Missing));
    assert_eq!(present(&[("MCP-Protocol-Version", "  ")]), Err(HeaderProblem::Missing));
    let twice = [("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Protocol-Version", "2025-11-25")];
    assert_eq!(present(&twice), Err(HeaderProblem::Conflicting));
    let strange = [("MCP-Protocol-Version", "2026-07-28é")];
    assert_eq!(present(&strange), Err(HeaderProblem::Malformed(SentinelFault::Characters)));
    let body = call("tools/list", "");
    let request = request(&body);
    let meta = RequestMeta::from_request(&request).unwrap();
    assert_eq!(told(check_version_matches("2026-07-28", &meta)), Ok(()));
    for other in ["2026-07-29", "2025-11-25", "2026-07-28, 2026-07-28", ""] {
        let differs = ("MCP-Protocol-Version".to_owned(), HeaderProblem::Differs);
        assert_eq!(told(check_version_matches(other, &meta)), Err(differs));
    }
}

#[test]
fn standard_headers_r163_r164_r166() {
    // V31 and the cases of the conformance scenario `http-header-validation`.
    let list = call("tools/list", "");
    let greet = call("tools/call", r#""name":"greet","arguments":{},"#);
    for headers in [
        &[("Mcp-Method", "tools/list")][..],
        &[("mcp-method", "tools/list")],
        &[("MCP-METHOD", "tools/list")],
        &[("Mcp-Method", "\ttools/list "), ("Mcp-Method", "tools/list")],
        // Of no meaning for this method.
        &[("Mcp-Method", "tools/list"), ("Mcp-Name", "anything")],
    ] {
        assert_eq!(standard(headers, &list), Ok(()), "{headers:?}");
    }
    for headers in [
        &[("Mcp-Method", "tools/call"), ("Mcp-Name", "greet")][..],
        &[("mcp-method", "tools/call"), ("MCP-NAME", "  greet  ")],
        &[("Mcp-Method", "tools/call"), ("Mcp-Name", "=?base64?Z3JlZXQ=?=")],
    ] {
        assert_eq!(standard(headers, &greet), Ok(()), "{headers:?}");
    }
    let method = |problem| Err(("Mcp-Method".to_owned(), problem));
    let name = |problem| Err(("Mcp-Name".to_owned(), problem));
    assert_eq!(standard(&[], &list), method(HeaderProblem::Missing));
    assert_eq!(standard(&[("Mcp-Method", "prompts/list")], &list), method(HeaderProblem::Differs));
    assert_eq!(standard(&[("Mcp-Method", "TOOLS/LIST")], &list), method(HeaderProblem::Differs));
    assert_eq!(
        standard(&[("Mcp-Method", "=?base64?dG9vbHMvbGlzdA==?=")], &list),
        method(HeaderProblem::Differs)
    );
    let twice = [("Mcp-Method", "tools/list"), ("Mcp-Method", "tools/call")];
    assert_eq!(standard(&twice, &list), method(HeaderProblem::Conflicting));
    let call = ("Mcp-Method", "tools/call");
    assert_eq!(standard(&[call], &greet), name(HeaderProblem::Missing));
    for wrong in ["wrong_tool_name", "Greet", "", "greet,greet", "\"greet\""] {
        assert_eq!(standard(&[call, ("Mcp-Name", wrong)], &greet), name(HeaderProblem::Differs), "{wrong}");
    }
    let broken = name(HeaderProblem::Malformed(SentinelFault::Base64));
    assert_eq!(standard(&[call, ("Mcp-Name", "=?base64?Z3JlZXQ?=")], &greet), broken);
    let raw = name(HeaderProblem::Malformed(SentinelFault::Characters));
    assert_eq!(standard(&[call, ("Mcp-Name", "gr\u{e9}et")], &greet), raw);
    let twice = [call, ("Mcp-Name", "greet"), ("Mcp-Name", "delete")];
    assert_eq!(standard(&twice, &greet), name(HeaderProblem::Conflicting));
}

#[test]
fn what_mcp_name_repeats_r164() {
    for (method, member, value) in [
        ("tools/call", "name", "my-hyphenated-tool"),
        ("prompts/get", "name", "test_prompt"),
        ("resources/read", "uri", "file:///path/to/file%20name.txt"),
        ("resources/read", "uri", "https://example.com/resource?id=123"),
        ("tasks/get", "taskId", "t-1"),
        ("tasks/update", "taskId", "t-1"),
        ("tasks/cancel", "taskId", "t-1"),
    ] {
        let body = call(method, &format!("\"{member}\":\"{value}\","));
        assert_eq!(standard(&[("Mcp-Method", method), ("Mcp-Name", value)], &body), Ok(()));
        let missing = standard(&[("Mcp-Method", method)], &body);
        assert_eq!(missing, Err(("Mcp-Name".to_owned(), HeaderProblem::Missing)), "{method}");
        let other = standard(&[("Mcp-Method", method), ("Mcp-Name", "other")], &body);
        assert_eq!(other, Err(("Mcp-Name".to_owned(), HeaderProblem::Differs)), "{method}");
        // The URI is compared as it is, not decoded.
        let decoded = value.replace("%20", " ");
        let same = standard(&[("Mcp-Method", method), ("Mcp-Name", &decoded)], &body).is_ok();
        assert_eq!(same, decoded == value);
        // A body that names nothing is refused later, as bad parameters; a header that names something anyway
        // has nothing to agree with.
        let nameless = call(method, "\"other\":1,");
        assert_eq!(standard(&[("Mcp-Method", method)], &nameless), Ok(()));
        let unexpected = standard(&[("Mcp-Method", method), ("Mcp-Name", value)], &nameless);
        assert_eq!(unexpected, Err(("Mcp-Name".to_owned(), HeaderProblem::Unexpected)));
    }
    // Escapes in the body are the same text.
    let body = call("tools/call", r#""name":"gr\u0065et","#);
    assert_eq!(standard(&[("Mcp-Method", "tools/call"), ("Mcp-Name", "greet")], &body), Ok(()));
}

fn tool() -> ParamHeaders {
    ParamHeaders::from_schema(json(
        r#"{"type":"object","properties":{
        "region":{"type":"string","x-mcp-header":"Region"},
        "count":{"type":"integer","x-mcp-header":"Count"},
        "dry":{"type":["boolean","null"],"x-mcp-header":"Dry"},
        "at":{"properties":{"zone":{"type":"string","x-mcp-header":"Zone"}}}}}"#,
    ))
    .unwrap()
}

fn params(headers: Headers<'_>, arguments: &str) -> Result<(), (String, HeaderProblem)> {
    let body = call("tools/call", &format!("\"name\":\"t\",\"arguments\":{arguments},"));
    told(check_params(headers, &request(&body), &tool()))
}

#[test]
fn arguments_are_repeated_in_headers_r168_r175() {
    // The cases of the conformance scenario `http-custom-header-server-validation`.
    let region = |value| [("Mcp-Param-Region", value)];
    assert_eq!(params(&region("=?base64?SGVsbG8=?="), r#"{"region":"Hello"}"#), Ok(()));
    assert_eq!(params(&region("SGVsbG8="), r#"{"region":"SGVsbG8="}"#), Ok(()));
    assert_eq!(params(&region("=?base64?SGVsbG8="), r#"{"region":"=?base64?SGVsbG8="}"#), Ok(()));
    assert_eq!(params(&region("  eu  "), r#"{"region":"eu"}"#), Ok(()));
    assert_eq!(params(&[("mcp-param-REGION", "eu")], r#"{"region":"eu"}"#), Ok(()));
    assert_eq!(params(&region(""), r#"{"region":""}"#), Ok(()));
    let fault = |problem| Err(("Mcp-Param-Region".to_owned(), problem));
    for broken in ["=?base64?SGVsbG8?=", "=?base64?SGVs!!!bG8=?="] {
        let malformed = fault(HeaderProblem::Malformed(SentinelFault::Base64));
        assert_eq!(params(&region(broken), r#"{"region":"Hello"}"#), malformed);
    }
    assert_eq!(params(&[], r#"{"region":"test-value"}"#), fault(HeaderProblem::Missing));
    assert_eq!(params(&[], r#"{"region":""}"#), fault(HeaderProblem::Missing));
    assert_eq!(params(&region("us"), r#"{"region":"eu"}"#), fault(HeaderProblem::Differs));
    assert_eq!(params(&region("EU"), r#"{"region":"eu"}"#), fault(HeaderProblem::Differs));
    let twice = [("Mcp-Param-Region", "eu"), ("Mcp-Param-Region", "us")];
    assert_eq!(params(&twice, r#"{"region":"eu"}"#), fault(HeaderProblem::Conflicting));
    // A value that no header can say is not the header's.
    assert_eq!(params(&region("[]"), r#"{"region":[]}"#), fault(HeaderProblem::Differs));
    assert_eq!(params(&[], r#"{"region":{}}"#), fault(HeaderProblem::Missing));
}

#[test]
fn no_value_no_header_r175() {
    for arguments in
        ["{}", r#"{"region":null,"dry":null,"at":null}"#, r#"{"at":{}}"#, r#"{"at":{"zone":null}}"#, "null"]
    {
        assert_eq!(params(&[], arguments), Ok(()), "{arguments}");
        let sent = params(&[("Mcp-Param-Region", "eu")], arguments);
        assert_eq!(sent, Err(("Mcp-Param-Region".to_owned(), HeaderProblem::Unexpected)), "{arguments}");
    }
    let absent = request(r#"{"jsonrpc":"2.0","id":1,"method":"tools/call"}"#);
    assert_eq!(told(check_params::<[(&str, &str)]>(&[], &absent, &tool())), Ok(()));
    // Headers that this tool has no use for are nobody's business (R-172).
    assert_eq!(params(&[("Mcp-Param-Tenant", "x"), ("Mcp-Param-Zon", "y")], "{}"), Ok(()));
}

#[test]
fn nested_arguments_r173() {
    assert_eq!(params(&[("Mcp-Param-Zone", "a")], r#"{"at":{"zone":"a"}}"#), Ok(()));
    let differs = Err(("Mcp-Param-Zone".to_owned(), HeaderProblem::Differs));
    assert_eq!(params(&[("Mcp-Param-Zone", "a")], r#"{"zone":"a","at":{"zone":"b"}}"#), differs);
    // Not at the exact path.
    let unexpected = Err(("Mcp-Param-Zone".to_owned(), HeaderProblem::Unexpected));
    assert_eq!(params(&[("Mcp-Param-Zone", "a")], r#"{"zone":"a","at":["zone"]}"#), unexpected);
}

#[test]
fn numbers_are_compared_as_numbers_r169() {
    for (header, body) in [
        ("42", "42"),
        ("42.0", "42"),
        ("42", "42.0"),
        ("42", "4.2e1"),
        ("-0", "0"),
        ("9007199254740993", "9007199254740993"),
        ("=?base64?NDI=?=", "42"),
    ] {
        assert_eq!(
            params(&[("Mcp-Param-Count", header)], &format!("{{\"count\":{body}}}")),
            Ok(()),
            "{header}"
        );
    }
    for (header, body) in [
        ("43", "42"),
        ("-42", "42"),
        ("042", "42"),
        ("+42", "42"),
        ("0x2a", "42"),
        ("", "0"),
        ("9007199254740992", "9007199254740993"),
        ("42", "\"42.0\""),
        ("true", "1"),
    ] {
        let differs = Err(("Mcp-Param-Count".to_owned(), HeaderProblem::Differs));
        assert_eq!(
            params(&[("Mcp-Param-Count", header)], &format!("{{\"count\":{body}}}")),
            differs,
            "{header}"
        );
    }
}

#[test]
fn booleans_are_words_r167() {
    assert_eq!(params(&[("Mcp-Param-Dry", "false")], r#"{"dry":false}"#), Ok(()));
    assert_eq!(params(&[("Mcp-Param-Dry", "true")], r#"{"dry":true}"#), Ok(()));
    for wrong in ["False", "TRUE", "0", "", "true"] {
        let differs = Err(("Mcp-Param-Dry".to_owned(), HeaderProblem::Differs));
        assert_eq!(params(&[("Mcp-Param-Dry", wrong)], r#"{"dry":false}"#), differs, "{wrong}");
    }
}

#[test]
fn a_notification_needs_no_headers_g49() {
    let body = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#;
    let Message::Notification(notification) = message(body) else { panic!() };
    let check = |headers: Headers<'_>| told(check_notification(headers, &notification));
    assert_eq!(check(&[]), Ok(()));
    assert_eq!(check(&[("Mcp-Method", "notifications/cancelled")]), Ok(()));
    let differs = Err(("Mcp-Method".to_owned(), HeaderProblem::Differs));
    assert_eq!(check(&[("Mcp-Method", "tools/call")]), differs);
}

#[test]
fn an_error_names_the_header_and_no_value_r166() {
    let secret = "very-secret".repeat(100);
    let body = call("tools/call", &format!("\"name\":\"t\",\"arguments\":{{\"region\":\"{secret}\"}},"));
    let headers =
        [("Mcp-Param-Region", &*secret.to_uppercase())].map(|(name, value)| (name, value.to_owned()));
    let error = check_params(headers.as_slice(), &request(&body), &tool()).unwrap_err().error();
    assert_eq!(error.message, "Header mismatch: Mcp-Param-Region differs from the value in the body");
    assert_eq!(error.data(), None);
}
