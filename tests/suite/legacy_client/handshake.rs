//! `initialize`: what is promised, what is settled, how it fails (R-228, R-241, R-246).

use mrtr_core::{
    legacy::client::RequestError,
    wire::{ClientCapabilities, Version},
};

use super::*;

fn opening(config: ClientConfig) -> (Script, Value) {
    let mut script = Script { session: ClientSession::new(config), now: at(0) };
    script.session.open(at(0));
    let mut sent = script.sent();
    (script, sent.remove(0))
}

/// R-228: version, capabilities and name go into `initialize`; no header names a version before it is settled, all do
/// after (R-241).
#[test]
fn r_228_the_handshake_to_the_letter() {
    let members = object(r#"{"experimental":{"x":1},"roots":{"listChanged":true}}"#);
    let mut session = ClientSession::new(config().capability_members(members));
    session.open(at(0));
    let first = session.poll_transmit().expect("initialize");
    assert_eq!(
        (first.carries, first.version),
        (Carries::Request(session.calls().next().expect("one")), None)
    );
    assert_eq!(
        String::from_utf8(first.bytes).expect("UTF-8"),
        concat!(
            r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","#,
            r#""capabilities":{"elicitation":{"form":{},"url":{}},"sampling":{"tools":{},"context":{}},"roots":{},"#,
            r#""experimental":{"x":1}},"clientInfo":{"name":"host","version":"1"}}}"#,
        )
    );
    // A second `open` does nothing, and nothing else may be sent yet.
    session.open(at(0));
    assert!(session.poll_transmit().is_none());
    assert_eq!(session.request("tools/list", None, at(0)), Err(RequestError::NotOpen));
    assert_eq!(session.notify("notifications/x", None), Err(RequestError::NotOpen));

    let reply = r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"instructions":"hi"}}"#;
    session.handle_message(Via::Pipe, reply.as_bytes(), at(0));
    assert!(matches!(session.poll_event(), Some(Event::Opened)));
    let initialized = session.poll_transmit().expect("initialized");
    assert_eq!(
        (initialized.carries, initialized.version),
        (Carries::Notification, Some(Version::V2025_06_18))
    );
    assert_eq!(session.peer().and_then(|peer| peer.get("instructions")).map(Json::as_str), Some(r#""hi""#));
}

/// R-246: what a revision has no words for is not asked in it, whatever was promised.
#[test]
fn r_246_the_settled_version_narrows_what_may_be_asked() {
    let url = json!({"mode": "url", "message": "m", "url": "https://x.example", "elicitationId": "e"});
    let form = json!({"message": "m", "requestedSchema": {"type": "object", "properties": {}}});
    let tools = json!({"messages": [], "maxTokens": 1, "tools": []});
    let plain = json!({"messages": [], "maxTokens": 1});
    for (version, expected) in [
        ("2025-11-25", [None, None, None, None]),
        ("2025-06-18", [None, Some(-32602), None, Some(-32602)]),
        ("2025-03-26", [Some(-32601), Some(-32601), None, Some(-32602)]),
    ] {
        let mut script = Script::open(config(), version);
        script.call();
        let asks = [
            ("elicitation/create", &form),
            ("elicitation/create", &url),
            ("sampling/createMessage", &plain),
            ("sampling/createMessage", &tools),
        ];
        for (number, ((method, params), expected)) in asks.into_iter().zip(expected).enumerate() {
            script.receive(&json!({"jsonrpc": "2.0", "id": number, "method": method, "params": params}));
            match (script.only(), expected) {
                (Event::Ask(asked), None) => {
                    let params: Value =
                        serde_json::from_str(asked.request.params().expect("params").as_str()).expect("JSON");
                    assert_eq!(&params, asks[number].1);
                }
                (Event::AskRefused { error, .. }, Some(code)) => {
                    assert_eq!(error.code.get(), code, "{version} {method}");
                    assert_eq!(script.sent()[0]["error"]["code"], code);
                }
                (other, _) => panic!("{version} {method}: {other:?}"),
            }
        }
    }
}

/// R-228: only versions that are configured are spoken; the best of them is asked for.
#[test]
fn the_versions_are_those_of_the_configuration() {
    let mut narrow = config();
    narrow.versions = vec![Version::V2026_07_28, Version::V2025_06_18];
    let (mut script, sent) = opening(narrow);
    assert_eq!(sent["params"]["protocolVersion"], "2025-06-18");
    // Nothing is promised that the version has no words for.
    assert_eq!(sent["params"]["capabilities"]["elicitation"], json!({"form": {}}));
    let result = json!({"protocolVersion": "2025-11-25", "capabilities": {}});
    script.receive(&json!({"jsonrpc": "2.0", "id": 1, "result": result}));
    assert_eq!(closed(script.only()), Closed::Version("2025-11-25".into()));
    assert!(script.session.is_closed() && script.session.poll_transmit().is_none());

    let mut none = config();
    none.versions = vec![Version::V2026_07_28];
    let mut session = ClientSession::new(none);
    session.open(at(0));
    assert!(session.is_closed() && session.poll_transmit().is_none());
}

/// R-228: every way in which the handshake fails closes the session and says why.
#[test]
fn a_handshake_that_fails_says_why() {
    let reply = |result: Value| json!({"jsonrpc": "2.0", "id": 1, "result": result});
    let error = json!({"code": -32601, "message": "no"});
    let broken = [
        (reply(json!({"capabilities": {}})), "the reply to initialize has no string protocolVersion"),
        (reply(json!({"protocolVersion": NEWEST})), "the reply to initialize has no capabilities object"),
        (reply(json!(5)), "the reply to initialize has no string protocolVersion"),
        (
            reply(json!({"protocolVersion": "2026-07-28", "capabilities": {}})),
            "the server speaks the version \"2026-07-28\"",
        ),
        (
            json!({"jsonrpc": "2.0", "id": 1, "error": error}),
            "the server refuses to open a session: no (-32601)",
        ),
        // Nothing else was sent that an error without an id could be about.
        (json!({"jsonrpc": "2.0", "error": error}), "the server refuses to open a session: no (-32601)"),
        (
            json!({"jsonrpc": "2.0", "id": 1, "result": {}, "error": error}),
            "initialize failed: the reply cannot be read: not a JSON-RPC 2.0 message: `result` beside `error`",
        ),
    ];
    for (message, expected) in broken {
        let (mut script, _) = opening(config());
        script.receive(&message);
        assert_eq!(closed(script.only()).to_string(), expected);
        assert!(script.sent().is_empty());
        assert_eq!(script.session.request("ping", None, at(0)), Err(RequestError::Closed));
    }
    let (mut script, _) = opening(config());
    assert_eq!(script.session.poll_timeout(), Some(at(60_000)));
    script.pass(Duration::from_secs(60));
    // R-239: `initialize` is never cancelled.
    assert!(script.sent().is_empty());
    assert_eq!(closed(script.only()), Closed::Failed(Failure::Timeout));

    let (mut script, _) = opening(config());
    let opening = script.session.calls().next().expect("one");
    script.session.cancel(opening, "", at(0));
    assert!(script.sent().is_empty() && script.session.calls().len() == 1);
    script.session.handle_closed();
    assert_eq!(closed(script.only()), Closed::ByPeer);
}

/// Nothing is promised that is not configured.
#[test]
fn nothing_is_promised_by_itself() {
    let (_, sent) = opening(ClientConfig::new(Implementation::new("h", "1"), ClientCapabilities::default()));
    assert_eq!(sent["params"]["capabilities"], json!({}));
}
