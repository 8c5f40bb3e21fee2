//! The era of a server on a pipe (R-049, R-050).

use mrtr_core::{client::EraCache, wire::Version};

use super::*;

/// R-050: `server/discover` goes first and alone; a discovery means modern, and what waited is sent.
#[test]
fn r_050_a_discovery_means_modern() {
    let mut line = Line::pipe(ConnectionConfig::default());
    let calls = [line.call(), line.call()];
    let probe = line.request();
    assert_eq!((probe.message["method"].as_str(), probe.call), (Some("server/discover"), None));
    assert_eq!(probe.message["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"], "2026-07-28");
    assert_eq!(line.connection.era(), None);
    line.reply(&probe, json!({"resultType": "complete", "supportedVersions": ["2027-01-01", "2026-07-28"]}));
    assert!(matches!(line.only(), Event::Era(Era::Modern)));
    let sent = line.requests();
    assert_eq!(sent.iter().map(|out| out.call).collect::<Vec<_>>(), calls.map(Some));
    // B-59, R-002: every id is another.
    assert_eq!(sent.iter().map(|out| out.message["id"].clone()).collect::<Vec<_>>(), [json!(2), json!(3)]);
    // The next one needs no probe.
    line.call();
    assert_eq!(line.request().message["method"], "tools/call");
}

/// R-050: so does an error that only modern servers send; any other, whatever its code, means legacy.
#[test]
fn r_050_the_fallback_does_not_key_on_one_code() {
    for error in [
        unsupported(&["2026-07-28"]),
        json!({"code": -32020, "message": "m"}),
        json!({"code": -32021, "message": "m", "data": {"requiredCapabilities": {}}}),
    ] {
        let mut line = Line::pipe(ConnectionConfig::default());
        line.call();
        let probe = line.request();
        line.error(&probe, error);
        assert!(matches!(line.only(), Event::Era(Era::Modern)));
        assert_eq!(line.request().message["method"], "tools/call");
    }
    for code in [-32601, -32600, -32602, -32603, -32000, -32002, -32022, -32021, 7] {
        let mut line = Line::pipe(ConnectionConfig::default());
        let call = line.call();
        let probe = line.request();
        line.error(&probe, json!({"code": code, "message": "m"}));
        line.initialize();
        assert!(matches!(line.only(), Event::Era(Era::Legacy)), "{code}");
        let sent = line.transmits();
        assert!(matches!(&sent[0], Transmit::Message { .. }));
        assert!(matches!(&sent[1], Transmit::Request { call: of, .. } if *of == Some(call)));
    }
    // What is no discovery, and a reply that cannot be read, or an error that says no id.
    for reply in [
        r#"{"jsonrpc":"2.0","id":1,"result":{"tools":[]}}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":{"supportedVersions":"2026-07-28"}}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":"m"}}"#,
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"m"}}"#,
    ] {
        let mut line = Line::pipe(ConnectionConfig::default());
        line.call();
        line.request();
        line.connection.handle_message(Via::Pipe, reply.as_bytes(), at(0));
        assert_eq!(line.request().message["method"], "initialize", "{reply}");
    }
}

/// R-050: silence means legacy too, but a discovery that comes late is still understood.
#[test]
fn r_050_silence_means_legacy_unless_it_was_slowness() {
    let mut line = Line::pipe(ConnectionConfig::default());
    let call = line.call();
    let probe = line.request();
    assert_eq!(line.connection.poll_timeout(), Some(at(5_000)));
    line.pass(Duration::from_millis(4_999));
    line.nothing();
    line.pass(Duration::from_millis(1));
    let opening = line.request();
    assert_eq!(
        (opening.message["method"].as_str(), opening.message["id"].as_i64()),
        (Some("initialize"), Some(2))
    );
    line.reply(&probe, json!({"supportedVersions": ["2026-07-28"]}));
    assert!(matches!(line.only(), Event::Era(Era::Modern)));
    let first = line.request();
    assert_eq!((first.call, first.message["id"].as_i64()), (Some(call), Some(3)));
    // The reply to `initialize` is nobody's now.
    line.error(&opening, json!({"code": -32601, "message": "m"}));
    line.nothing();

    // A late error changes nothing.
    let mut line = Line::pipe(ConnectionConfig::default());
    line.call();
    let probe = line.request();
    line.pass(Duration::from_secs(5));
    line.error(&probe, json!({"code": -32601, "message": "m"}));
    line.initialize();
    assert!(matches!(line.only(), Event::Era(Era::Legacy)));
    assert_eq!(line.connection.legacy_version(), Some(Version::V2025_11_25));
    assert_eq!(line.connection.server_name().as_deref(), Some("old"));
}

/// R-053: a modern server says so in its error to `initialize`.
#[test]
fn r_053_initialize_can_lead_back() {
    let mut line = Line::pipe(ConnectionConfig::default());
    line.call();
    line.request();
    line.pass(Duration::from_secs(5));
    let opening = line.request();
    line.error(&opening, unsupported(&["2026-07-28"]));
    assert!(matches!(line.only(), Event::Era(Era::Modern)));
    assert_eq!(line.request().message["method"], "tools/call");
}

/// R-049: an era that is known from before is not looked for again; a wrong one is found out, and the calls made under
/// it are made again.
#[test]
fn r_049_what_is_known_is_used_and_what_is_wrong_is_found_out() {
    let known = |era| {
        let mut config = ConnectionConfig::default();
        config.era = Some(era);
        Line::pipe(config)
    };
    let mut line = known(Era::Modern);
    line.call();
    let first = line.request();
    assert_eq!(first.message["method"], "tools/call");
    line.reply(&first, complete());
    assert_eq!(line.events().len(), 2);
    // Now an error is only an error.
    line.call();
    let second = line.request();
    line.error(&second, json!({"code": -32601, "message": "m"}));
    assert!(matches!(failure(line.only()).1, Failure::Peer(_)));

    let mut line = known(Era::Legacy);
    line.call();
    line.initialize();
    assert!(matches!(line.only(), Event::Era(Era::Legacy)));

    // It was modern, and is legacy.
    let mut line = known(Era::Modern);
    let call = line.call();
    let first = line.request();
    line.error(&first, json!({"code": -32000, "message": "not initialized"}));
    let probe = line.request();
    assert_eq!(probe.message["method"], "server/discover");
    line.error(&probe, json!({"code": -32601, "message": "m"}));
    line.initialize();
    assert!(matches!(line.only(), Event::Era(Era::Legacy)));
    assert_eq!(line.request().call, Some(call));
    // It is modern, and the error was one.
    let mut line = known(Era::Modern);
    let call = line.call();
    let first = line.request();
    line.error(&first, json!({"code": -32000, "message": "my own"}));
    let probe = line.request();
    line.reply(&probe, json!({"supportedVersions": ["2026-07-28"]}));
    let mut events = line.events();
    assert!(
        matches!(failure(events.remove(1)), (of, Failure::Peer(error)) if of == call && error.message == "my own")
    );
    assert!(line.sent().is_empty());
    // It was legacy, and is modern.
    let mut line = known(Era::Legacy);
    let call = line.call();
    let opening = line.request();
    line.error(&opening, json!({"code": -32601, "message": "m"}));
    let probe = line.request();
    line.reply(&probe, json!({"supportedVersions": ["2026-07-28"]}));
    assert_eq!(line.request().call, Some(call));
}

/// R-045: a discovery that names no version of ours leads to a legacy one it names, or to an error.
#[test]
fn r_045_versions_have_to_meet() {
    for (supported, next) in
        [(json!(["2025-06-18"]), Some("initialize")), (json!(["2027-01-01"]), None), (json!([]), None)]
    {
        let mut line = Line::pipe(ConnectionConfig::default());
        line.call();
        let probe = line.request();
        line.reply(&probe, json!({"supportedVersions": supported}));
        match next {
            Some(method) => assert_eq!(line.request().message["method"], method),
            None => assert!(matches!(failure(line.only()).1, Failure::NoCommonVersion)),
        }
    }
}

/// Without legacy versions the connection is modern whatever the server says, and never opens a session.
#[test]
fn a_modern_only_client_probes_nothing() {
    let mut config = ConnectionConfig::default();
    config.legacy = Vec::new();
    let mut line = Line::pipe(config);
    line.call();
    let first = line.request();
    assert_eq!(first.message["method"], "tools/call");
    line.error(&first, json!({"code": -32601, "message": "m"}));
    assert!(line.events().into_iter().any(|event| matches!(event, Event::Done { .. })));
    assert!(line.sent().is_empty());
}

/// A handshake that fails fails the calls that waited for it, with its reason; the next call tries anew.
#[test]
fn a_failed_handshake_is_the_outcome_of_what_waited() {
    let mut line = Line::pipe(ConnectionConfig::default());
    line.call();
    let probe = line.request();
    line.error(&probe, json!({"code": -32601, "message": "m"}));
    let opening = line.request();
    line.reply(&opening, json!({"protocolVersion": "2024-11-05", "capabilities": {}}));
    let (_, failed) = failure(line.only());
    assert_eq!(failed.to_string(), r#"no session: the server speaks the version "2024-11-05""#);
    line.call();
    assert_eq!(line.request().message["method"], "server/discover");
}

/// R-049: the cache is bounded and forgets what it learned first.
#[test]
fn r_049_the_cache_of_eras_is_bounded() {
    for limit in [0, 1, 3] {
        let mut cache = EraCache::new(limit);
        for server in ["a", "b", "a", "c", "d"] {
            cache.learn(server, Era::Legacy);
            cache.learn(server, Era::Modern);
        }
        let kept: Vec<_> = ["a", "b", "c", "d"].into_iter().filter(|one| cache.get(one).is_some()).collect();
        assert_eq!(kept, ["a", "c", "d"][3 - limit..]);
        assert!(kept.iter().all(|one| cache.get(one) == Some(Era::Modern)));
    }
}

/// B-81, R-006: a broken request of the server's is no reply, whatever its id: neither to a call nor to the probe.
#[test]
fn b_81_a_broken_request_is_no_reply() {
    let broken = |id: &Value| {
        format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"sampling/createMessage","params":[]}}"#)
    };
    let mut line = Line::pipe(ConnectionConfig::default());
    let call = line.call();
    let probe = line.request();
    line.connection.handle_message(Via::Pipe, broken(&probe.message["id"]).as_bytes(), line.now);
    line.nothing();
    line.reply(&probe, json!({"supportedVersions": ["2026-07-28"], "capabilities": {}}));
    let sent = line.request();
    line.events();
    line.connection.handle_message(Via::Pipe, broken(&sent.message["id"]).as_bytes(), line.now);
    line.nothing();
    line.reply(&sent, complete());
    let (done, outcome) = done(line.only());
    assert!(done == call && outcome.result.is_ok(), "{outcome:?}");
}

/// R-001, R-006, B-81: what is a request and a reply at once is the reply to the call that waits under its id, in either
/// era: the call ends with what is wrong with it, and nothing is answered. Under an id that nothing waits for, a legacy
/// server has asked.
#[test]
fn what_asks_and_replies_at_once_ends_its_call() {
    for (mut line, old) in [(Line::modern(), false), (Line::legacy(ConnectionConfig::default()), true)] {
        for more in [
            json!({"method": "elicitation/create", "params": {}, "result": complete()}),
            json!({"method": "ping", "error": {"code": 1, "message": "m"}}),
            json!({"method": null, "result": complete(), "error": null}),
        ] {
            let with = |id: &Value| {
                let mut message = more.clone();
                message["jsonrpc"] = json!("2.0");
                message["id"] = id.clone();
                message
            };
            let call = line.call();
            let sent = line.request();
            line.receive(&with(&json!(999)));
            let answers = line.sent();
            let codes: Vec<_> = answers.iter().map(|answer| answer["error"]["code"].as_i64()).collect();
            assert_eq!(codes, if old { vec![Some(-32600)] } else { vec![] }, "{more}");
            line.receive(&with(&sent.message["id"]));
            let (failed, failure) = failure(line.only());
            assert_eq!(failed, call);
            assert!(failure.to_string().contains("`method` beside `result` or `error`"), "{failure}");
            line.nothing();
        }
    }
}
