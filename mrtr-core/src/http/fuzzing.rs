//! Laws of this module as functions of any bytes: the bodies of fuzz targets, and of property tests.

use alloc::vec::Vec;

use super::{
    Bind, Gate, Opening, ParamHeaders, Sent, check_params, check_standard, check_version_matches,
    check_version_present, decode_value, encode_value, judge, request_headers,
};
use crate::{
    Limits,
    jsonrpc::{Json, Message, admit},
    wire::RequestMeta,
};

/// Decoding never panics, and encoding what was decoded gives something that decodes to the same.
///
/// # Panics
///
/// If the law is broken.
pub fn sentinel(input: &[u8]) {
    if let Ok(text) = decode_value(input) {
        let encoded = encode_value(&text);
        assert_eq!(decode_value(encoded.as_bytes()).as_deref(), Ok(&*text));
    }
    if let Ok(text) = core::str::from_utf8(input) {
        assert_eq!(decode_value(encode_value(text).as_bytes()).as_deref(), Ok(text));
    }
}

/// The headers that a client builds for a request are the ones a server expects of it. The input is a tool's
/// schema and a message, with a zero byte between them.
///
/// # Panics
///
/// If the law is broken.
pub fn client_and_server_agree(input: &[u8]) {
    let limits = Limits::default();
    let mut parts = input.splitn(2, |byte| *byte == 0);
    let schema = core::str::from_utf8(parts.next().unwrap_or_default()).unwrap_or_default();
    let Ok(schema) = Json::parse(schema, &limits) else { return };
    let Ok(annotations) = ParamHeaders::from_schema(schema) else { return };
    let Ok(message) = admit(parts.next().unwrap_or_default(), &limits) else { return };
    let Ok(headers) = request_headers(&message, &annotations) else { return };
    let headers = &headers;
    let _ = Opening::judge(headers, &message);
    let Message::Request(request) = message else { return };
    let version = check_version_present(headers).unwrap_or_else(|error| unreachable!("{error}"));
    if let Ok(meta) = RequestMeta::from_request(&request) {
        assert_eq!(check_version_matches(version, &meta), Ok(()));
    }
    assert_eq!(check_standard(headers, &request), Ok(()));
    if request.method == "tools/call" {
        assert_eq!(check_params(headers, &request, &annotations), Ok(()));
    }
}

/// No headers make the gate or the client panic. The input is lines of `name: value`, an empty line, a body.
pub fn any_headers(input: &[u8]) {
    let limits = Limits::default();
    let mut lines = input.splitn(64, |byte| *byte == b'\n');
    let mut headers: Vec<(&str, &[u8])> = Vec::new();
    for line in lines.by_ref() {
        let Some(colon) = line.iter().position(|byte| *byte == b':') else { break };
        let (name, value) = line.split_at(colon);
        headers.push((core::str::from_utf8(name).unwrap_or_default(), value.get(1..).unwrap_or_default()));
    }
    let body = lines.next().unwrap_or_default();
    for bind in [Bind::Loopback, Bind::Network] {
        let gate = Gate::new(bind, &limits);
        let gate = gate.allow_host("mcp.example").and_then(|gate| gate.allow_origin("https://app.example"));
        let _ = gate.map(|gate| gate.check("POST", headers.as_slice()));
    }
    let content_type = headers.first().map(|(_, value)| *value);
    for status in [200, 400, 404] {
        let _ = judge(Sent::Request, status, content_type, body, &limits);
    }
    if let Ok(message) = admit(body, &limits) {
        let _ = Opening::judge(headers.as_slice(), &message);
        if let Message::Request(request) = message {
            let _ = check_standard(headers.as_slice(), &request);
        }
    }
}
