//! What a server, or an embedder, cannot make a connection hold.

use mrtr_core::client::{StartError, connection::CallError};

use super::*;

/// Calls at a time: 0, 1, n, n + 1; those that wait for answers do not count.
#[test]
fn calls_are_bounded() {
    for limit in [0, 1, 5] {
        let mut config = ConnectionConfig::default();
        config.calls = limit;
        config.era = Some(Era::Modern);
        let mut line = Line::pipe(config);
        for _ in 0..limit {
            line.call();
        }
        assert_eq!(line.connection.call(tool(), at(0)), Err(CallError::TooMany { limit }));
        for sent in line.requests() {
            line.reply(&sent, interim(&[("k", ask("k?"))], "s"));
        }
        let thinking = line.events().len();
        assert!(thinking >= limit && line.connection.calls().len() == 0);
    }
}

/// A call that cannot be made says so at once, whatever the era will be.
#[test]
fn a_bad_call_is_refused_at_once() {
    let mut line = Line::pipe(ConnectionConfig::default());
    for params in ["[]", "{", r#"{"requestState":"x"}"#] {
        let refused = line.connection.call(Call::new("tools/call", params), at(0));
        assert!(matches!(refused, Err(CallError::Start(_))), "{params}");
    }
    line.nothing();
    // One that is too large is known when it is written.
    let mut limits = Limits::default();
    limits.message_bytes = 500;
    let mut config = ConnectionConfig::default();
    config.era = Some(Era::Modern);
    let mut line = Line { connection: Connection::on_pipe(client().limits(limits), config), now: at(0) };
    let params = format!(r#"{{"name":"t","x":"{}"}}"#, "a".repeat(400));
    line.connection.call(Call::new("tools/call", &params), at(0)).unwrap();
    assert!(matches!(failure(line.only()).1, Failure::Start(StartError::TooLarge { .. })));
}

/// B-81: a flood while nobody polls takes bounded memory, and the call still ends.
#[test]
fn a_flood_is_bounded() {
    for mut line in [Line::modern(), Line::legacy(ConnectionConfig::default())] {
        line.call();
        let sent = line.request();
        for id in 0..3_000 {
            line.receive(&json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {}}));
            line.receive(&json!({"jsonrpc": "2.0", "id": id, "method": "ping"}));
            line.receive(&json!({"jsonrpc": "2.0", "id": 1_000 + id, "result": {}}));
        }
        line.reply(&sent, complete());
        let events = line.events();
        assert!(events.len() <= 257, "{}", events.len());
        assert!(matches!(events.last(), Some(Event::Done { .. })));
    }
}

/// No secret in `Debug`: names, counts and sizes only.
#[test]
fn debug_shows_no_content() {
    let mut line = Line::modern();
    let call = Call::new("tools/call", r#"{"name":"t","arguments":{"password":"hunter2"}}"#);
    line.connection.call(call, at(0)).unwrap();
    let transmits = line.transmits();
    assert!(!format!("{transmits:?} {:?}", line.connection).contains("hunter2"));
    let result = json!({"resultType": "input_required", "inputRequests": {"k": ask("hunter2?")}, "requestState": "hunter2"});
    line.receive(&json!({"jsonrpc": "2.0", "id": 3, "result": result}));
    let event = line.only();
    assert!(!format!("{event:?} {event:#?}").contains("hunter2"));
    line.call();
    line.receive(&json!({"jsonrpc": "2.0", "id": 4, "result": {"content": ["hunter2"]}}));
    assert!(!format!("{:?}", line.only()).contains("hunter2"));
}
