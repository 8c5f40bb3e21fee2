//! What a request looks like.

use mrtr_core::{
    ErrorCode,
    client::{Call, ConfigError, IdFault, Progress, StartError},
    jsonrpc::{Message, RequestId, admit},
    wire::{LogLevel, RequestMeta, Version, key},
};

use super::*;

fn sent(client: &Client, call: Call<'_>) -> String {
    let mut out = Vec::new();
    let _ = client.start(1.into(), call, at(0), &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn r_032_r_034_every_request_says_version_capabilities_and_name() {
    let text = sent(&client(), Call::new("tools/call", r#"{"name":"t","arguments":{}}"#));
    assert_eq!(text, request("1", ""));
    let Ok(Message::Request(request)) = admit(text.as_bytes(), &Limits::default()) else { panic!() };
    let meta = RequestMeta::from_request(&request).unwrap();
    assert_eq!(meta.protocol_version, "2026-07-28");
    assert_eq!(meta.capabilities, ClientCapabilities::ALL);
    assert!(meta.client_info.is_some());

    let text =
        sent(&Client::new(Config::nameless(ClientCapabilities::default())), Call::new("tools/list", "{}"));
    assert_eq!(
        text,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#
    );
}

/// R-010, R-040, R-093: trace headers among them.
#[test]
fn r_010_r_093_members_go_out_as_they_are_and_in_their_order() {
    let params = concat!(
        " {\n \"z\": 1.0e0, \"name\":\"t\",\r\n\"_meta\": { \"x/\\u0061\" : [1,\n2] , \"traceparent\":\"00-a\"},",
        "\"\\ud800\":null,\"arguments\":{\"big\":123456789012345678901234567890,\"s\":\"a\\/b\"} } "
    );
    let text = sent(&client(), Call::new("tools/call", params));
    let expected = format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{{\"z\":1.0e0,\"name\":\"t\",\"\\ud800\":null,{}\"_meta\":{{{META},{}}}}}}}",
        "\"arguments\":{\"big\":123456789012345678901234567890,\"s\":\"a\\/b\"},",
        "\"x/\\u0061\":[1,2] ,\"traceparent\":\"00-a\""
    )
    .replace("[1,2] ,", "[1,2],");
    assert_eq!(text, expected);
    assert!(!text.contains(['\n', '\r']));
}

#[test]
fn b_64_trap_18_options_are_said_again_in_every_round_r_037_r_194_g_35() {
    let options =
        |text: &str| text[text.find(r#","io.modelcontextprotocol/logLevel""#).unwrap()..].to_owned();
    for (progress, first, second) in [
        (Progress::Unwanted, "", ""),
        (Progress::RequestId, r#","progressToken":1"#, r#","progressToken":"two""#),
        (Progress::Token("p".into()), r#","progressToken":"p""#, r#","progressToken":"p""#),
    ] {
        let call = Call::new("tools/call", r#"{"name":"t","_meta":{"x":1}}"#)
            .log_level(LogLevel::Warning)
            .progress(progress);
        let mut out = Vec::new();
        let exchange = client().start(1.into(), call, at(0), &mut out).unwrap();
        let level = r#","io.modelcontextprotocol/logLevel":"warning""#;
        assert_eq!(options(std::str::from_utf8(&out).unwrap()), format!(r#"{level}{first},"x":1}}}}}}"#));
        let exchange = asked(exchange, &interim(r#""requestState":"s""#), 0);
        out.clear();
        let _ = exchange.proceed("two".into(), at(60), &mut out).unwrap();
        assert_eq!(
            options(std::str::from_utf8(&out).unwrap()),
            format!(r#"{level}{second},"x":1}},"requestState":"s"}}}}"#)
        );
    }
}

#[test]
fn what_the_client_writes_itself_is_not_taken_from_the_caller() {
    for (params, path) in [
        (r#"{"requestState":"STALE"}"#.to_owned(), "requestState"),
        (r#"{"\u0069nputResponses":{}}"#.to_owned(), "inputResponses"),
        (
            format!(r#"{{"_meta":{{"{}":"x"}}}}"#, key::PROTOCOL_VERSION),
            "_meta[\"io.modelcontextprotocol/protocolVersion\"]",
        ),
        (
            format!(r#"{{"_meta":{{"{}":{{}}}}}}"#, key::CLIENT_CAPABILITIES),
            "_meta[\"io.modelcontextprotocol/clientCapabilities\"]",
        ),
        (
            format!(r#"{{"_meta":{{"{}":{{}}}}}}"#, key::CLIENT_INFO),
            "_meta[\"io.modelcontextprotocol/clientInfo\"]",
        ),
        (
            format!(r#"{{"_meta":{{"{}":"x"}}}}"#, key::LOG_LEVEL),
            "_meta[\"io.modelcontextprotocol/logLevel\"]",
        ),
        (r#"{"_meta":{"progressToken":1}}"#.to_owned(), "_meta.progressToken"),
    ] {
        let mut out = Vec::new();
        let refused =
            client().start(1.into(), Call::new("tools/call", &params), at(0), &mut out).unwrap_err();
        assert_eq!(refused, StartError::Owned(path));
        assert!(out.is_empty());
    }
    for (params, expected) in [
        ("[]", StartError::NotAnObject),
        ("null", StartError::NotAnObject),
        (r#"{"_meta":null}"#, StartError::Meta),
        (r#"{"_meta":[]}"#, StartError::Meta),
    ] {
        let mut out = Vec::new();
        assert_eq!(client().start(1.into(), Call::new("m", params), at(0), &mut out).unwrap_err(), expected);
    }
    for params in ["", "{", r#"{"a":1,"a":2}"#, "{}}", "tools"] {
        let refused = client().start(1.into(), Call::new("m", params), at(0), &mut Vec::new()).unwrap_err();
        assert!(matches!(refused, StartError::Params(_)), "{refused}");
    }
}

#[test]
fn r_042_r_110_capabilities_are_what_was_declared_and_more_can_be_added() {
    let mut form = ClientCapabilities::default();
    form.form = true;
    let config = Config::nameless(form)
        .capability_members(r#"{ "extensions": {"a/b":{}}, "experimental":{"x":{ }} }"#)
        .unwrap();
    let client = Client::new(config.clone());
    let declared = |text: &str| {
        let (_, rest) = text.split_once(r#"clientCapabilities":"#).unwrap();
        rest.strip_suffix("}}}").unwrap().to_owned()
    };
    let more = r#""extensions":{"a/b":{}},"experimental":{"x":{ }}"#;
    assert_eq!(
        declared(&sent(&client, Call::new("m", "{}"))),
        format!(r#"{{"elicitation":{{"form":{{}}}},{more}}}"#)
    );
    // None for a call that nobody watches, others for a call on somebody's behalf.
    let none = Call::new("m", "{}").capabilities(ClientCapabilities::default());
    assert_eq!(declared(&sent(&client, none)), format!("{{{more}}}"));
    let all = Call::new("m", "{}").capabilities(ClientCapabilities::ALL);
    assert!(declared(&sent(&client, all)).ends_with(&format!(r#""roots":{{}},{more}}}"#)));

    assert_eq!(config.clone().capability_members("[]").unwrap_err(), ConfigError::NotAnObject);
    assert!(matches!(config.clone().capability_members("{").unwrap_err(), ConfigError::Json(_)));
    assert_eq!(
        config.clone().capability_members(r#"{"roots":{}}"#).unwrap_err(),
        ConfigError::Typed("roots")
    );
    assert_eq!(config.clone().versions(&[]).unwrap_err(), ConfigError::Versions);
    assert_eq!(config.clone().versions(&[Version::V2025_11_25]).unwrap_err(), ConfigError::Versions);
    assert!(config.versions(&[Version::LATEST]).is_ok());
}

#[test]
fn r_001_r_002_r_091_ids_of_any_kind_and_never_twice() {
    let long = "x".repeat(255);
    let mut out = Vec::new();
    let refused = client().start(long.as_str().into(), Call::new("m", "{}"), at(0), &mut out).unwrap_err();
    assert_eq!(refused, StartError::Id(IdFault::TooLong(257)));
    let just = &long[1..];
    assert!(client().start(just.into(), Call::new("m", "{}"), at(0), &mut out).is_ok());

    // No id of the exchange comes again, not only the last one; "1" and 1 are two ids.
    let mut exchange = asked(start(&client()), &interim(r#""requestState":"s""#), 0);
    for (id, now) in [(2, 60), (3, 1_000)] {
        let (retrying, _) = proceed(exchange, id, now);
        exchange = asked(retrying, &interim(r#""requestState":"s""#), now);
    }
    let mut out = Vec::new();
    for id in [1, 2, 3] {
        let refused = exchange.proceed(id.into(), at(9_000), &mut out).unwrap_err();
        assert_eq!(refused.reason.to_string(), IdFault::Reused.to_string());
        exchange = refused.given_back;
    }
    assert!(out.is_empty());
    let exchange = exchange.proceed("1".into(), at(9_000), &mut out).unwrap();
    assert_eq!(exchange.request_id(), &RequestId::from("1"));
    assert_eq!(String::from_utf8(out).unwrap(), request(r#""1""#, r#","requestState":"s""#));
    // An integer is no answer to a string.
    assert!(matches!(exchange.receive(reply("1", DONE).as_bytes(), at(0)), Received::Aside(..)));
}

#[test]
fn trap_4_the_same_params_serve_any_number_of_calls() {
    let params = r#"{"name":"t","arguments":{}}"#.to_owned();
    let call = Call::new("tools/call", &params);
    let client = client();
    let mut exchange = asked(start(&client), &asks(&[("k", FORM)]), 0);
    exchange.answer("k", mrtr_core::client::InputResponse::cancel()).unwrap();
    let _ = proceed(exchange, 2, 0);
    let mut out = Vec::new();
    let _ = client.start(9.into(), call, at(0), &mut out).unwrap();
    assert_eq!(String::from_utf8(out).unwrap(), request("9", ""));
}

#[test]
fn debug_shows_no_content() {
    let secret = "hunter2";
    let call = Call::new("tools/call", r#"{"name":"t","arguments":{"p":"hunter2"}}"#);
    let shown = format!("{call:?}");
    let mut out = Vec::new();
    let exchange = client().start(1.into(), call, at(0), &mut out).unwrap();
    let shown = shown + &format!("{exchange:?}");
    let ask = interim(&format!(
        r#""inputRequests":{{"pin":{}}},"requestState":"hunter2","_meta":{{"x":"hunter2"}}"#,
        FORM.replace("ok?", secret)
    ));
    let mut exchange = asked(exchange, &ask, 0);
    let response = mrtr_core::client::InputResponse::accept(json(r#"{"p":"hunter2"}"#));
    let shown = shown + &format!("{response:?}");
    exchange.answer("pin", response).unwrap();
    let shown = shown + &format!("{exchange:?} {:?}", exchange.ask("pin"));
    let (exchange, _) = proceed(exchange, 2, 0);
    let shown = shown + &format!("{exchange:?}");
    let done = complete(exchange, r#"{"content":"hunter2"}"#);
    let shown = shown + &format!("{done:?} {:?}", done.result());
    let message = format!(
        r#"{{"jsonrpc":"2.0","id":1,"error":{{"code":{},"message":"hunter2"}}}}"#,
        ErrorCode::INTERNAL_ERROR
    );
    let shown = shown + &format!("{:?}", start(&client()).receive(message.as_bytes(), at(0)));
    assert!(!shown.contains(secret), "{shown}");
    assert!(shown.contains("pin") && shown.contains("tools/call"), "{shown}");
}
