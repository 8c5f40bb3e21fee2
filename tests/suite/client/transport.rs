//! Messages that are no replies, broken ones, cancelling and broken connections.

use mrtr_core::client::{Aside, Call, Channel, InputResponse, Progress};

use super::*;

fn own() -> Client {
    Client::new(config().channel(Channel::Own))
}

/// The exchange goes on after such a message, and ends as if nothing had been.
fn aside<'a>(client: &Client, message: &'a str) -> Aside<'a> {
    match start(client).receive(message.as_bytes(), at(0)) {
        Received::Aside(exchange, aside) => {
            assert!(complete(exchange, DONE).result().is_ok());
            aside
        }
        other => panic!("{message}: {other:?}"),
    }
}

#[test]
fn r_191_g_30_b_59_replies_to_others_and_late_ones_are_nobodys() {
    for id in ["2", "0", r#""1""#, "10", "-1", "123456789012345678901234567890"] {
        for message in [reply(id, DONE), reply(id, &asks(&[("k", FORM)])), error(id, -32603, "1")] {
            assert!(matches!(aside(&client(), &message), Aside::Reply(_)));
            // On the request's own stream it is a fault.
            assert!(matches!(
                start(&own()).receive(message.as_bytes(), at(0)),
                Received::Invalid(Violation::OtherId)
            ));
        }
    }
}

#[test]
fn r_006_a_request_of_the_server_is_not_answered() {
    let message = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{}}}"#, "{}");
    for client in [client(), own()] {
        assert!(
            matches!(aside(&client, &message), Aside::Request(request) if request.method == "elicitation/create")
        );
    }
}

#[test]
fn notifications_are_handed_out_and_progress_is_told_apart_r_005_r_038() {
    let progress = |token: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{token},"progress":1}}}}"#
        )
    };
    let log = r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}}"#;
    assert!(matches!(aside(&client(), log), Aside::Notification(log) if log.param("level").is_some()));
    // Without a token of ours there is no progress of ours.
    assert!(matches!(aside(&client(), &progress("1")), Aside::Notification(_)));
    let mut out = Vec::new();
    for (wanted, token, ours) in [
        (Progress::RequestId, "1", true),
        (Progress::RequestId, r#""1""#, false),
        (Progress::Token("p".into()), r#""p""#, true),
        (Progress::Token("p".into()), "null", false),
    ] {
        let call = Call::new("tools/call", "{}").progress(wanted);
        let exchange = client().start(1.into(), call, at(0), &mut out).unwrap();
        let message = progress(token);
        let Received::Aside(_, aside) = exchange.receive(message.as_bytes(), at(0)) else { panic!() };
        assert_eq!(matches!(aside, Aside::Progress(_)), ours, "{aside:?}");
    }
}

#[test]
fn r_003_an_error_without_an_id_belongs_to_the_request_only_on_its_own_stream() {
    for id in ["", r#""id":null,"#] {
        let message = format!(r#"{{"jsonrpc":"2.0",{id}"error":{{"code":-32600,"message":"m"}}}}"#);
        assert!(matches!(aside(&client(), &message), Aside::Error(error) if error.code.get() == -32600));
        let Received::Complete(done) = start(&own()).receive(message.as_bytes(), at(0)) else { panic!() };
        assert_eq!(done.result().unwrap_err().message, "m");
    }
}

#[test]
fn what_is_no_message_is_blamed_on_the_request_only_if_it_is_known_to_be_its_reply() {
    for message in
        ["", " ", "Listening on :8080", "{", "[]", "null", r#"{"jsonrpc":"2.0","result":{}}"#, "\u{feff}{}"]
    {
        assert!(matches!(aside(&client(), message), Aside::Unreadable(_)), "{message}");
        assert!(matches!(
            start(&own()).receive(message.as_bytes(), at(0)),
            Received::Invalid(Violation::Message(_))
        ));
    }
    assert!(matches!(start(&client()).receive(b"\xff", at(0)), Received::Aside(_, Aside::Unreadable(_))));
    for broken in [
        r#"{"jsonrpc":"2.0","id":ID,"result":{},"error":{"code":1,"message":""}}"#,
        r#"{"jsonrpc":"2.0","id":ID,"result":{"a":1,"\u0061":1}}"#,
        r#"{"jsonrpc":"1.0","id":ID,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":ID}"#,
        r#"{"jsonrpc":"2.0","id":ID,"error":{"code":"1","message":""}}"#,
        r#"{"jsonrpc":"2.0","id":ID,"error":null}"#,
    ] {
        let ours = broken.replace("ID", "1");
        assert!(matches!(
            start(&client()).receive(ours.as_bytes(), at(0)),
            Received::Invalid(Violation::Message(_))
        ));
        assert!(matches!(aside(&client(), &broken.replace("ID", "2")), Aside::Unreadable(_)));
    }
}

#[test]
fn r_188_r_187_cancelling_takes_a_message_on_a_pipe_and_none_on_an_own_stream() {
    let mut out = Vec::new();
    start(&client()).cancel("too \"slow\"\n", &mut out);
    assert_eq!(
        String::from_utf8(std::mem::take(&mut out)).unwrap(),
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"reason":"too \"slow\"\n"}}"#
    );
    // Of the newest request, not of the first.
    let exchange = asked(start(&client()), &interim(r#""requestState":"s""#), 0);
    proceed(exchange, 2, 60).0.cancel("", &mut out);
    assert_eq!(
        String::from_utf8(std::mem::take(&mut out)).unwrap(),
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}"#
    );
    start(&own()).cancel("gone", &mut out);
    assert!(out.is_empty());
}

/// `Policy::resends` at its edges: 0, 1, n, n + 1.
#[test]
fn g_29_a_call_is_sent_again_so_often_and_no_oftener() {
    for resends in [0, 1, 4] {
        let client = client_with(|_, policy| policy.resends = resends);
        let call = Call::new("tools/call", r#"{"name":"t"}"#).may_run_twice();
        let mut exchange = client.start(0.into(), call, at(0), &mut Vec::new()).unwrap();
        for id in 1..=resends {
            exchange = exchange.lost().unwrap().send(i64::from(id).into(), at(0), &mut Vec::new()).unwrap();
        }
        assert_eq!(exchange.lost().unwrap_err(), Stopped::Lost);
    }
}

#[test]
fn r_096_g_29_a_broken_connection_repeats_only_what_may_run_twice() {
    assert_eq!(start(&client()).lost().unwrap_err(), Stopped::Lost);
    for resends in [0, 1, 3] {
        let client = client_with(|_, policy| policy.resends = resends);
        let call = Call::new("tools/call", r#"{"name":"t","arguments":{}}"#).may_run_twice();
        let mut out = Vec::new();
        let exchange = client.start(1.into(), call, at(0), &mut out).unwrap();
        let mut exchange = asked(exchange, &asks(&[("k", FORM)]), 0);
        exchange.answer("k", InputResponse::accept(json("{}"))).unwrap();
        let (mut exchange, text) = proceed(exchange, 2, 0);
        for sent in 0..resends {
            let id = i64::from(sent) + 3;
            out.clear();
            exchange = exchange.lost().unwrap().send(id.into(), at(0), &mut out).unwrap();
            // Same answers, same state, new id; no new round.
            assert_eq!(
                std::str::from_utf8(&out).unwrap(),
                text.replacen(r#""id":2"#, &format!(r#""id":{id}"#), 1)
            );
        }
        if resends == 1 {
            let done = complete(exchange, DONE);
            assert_eq!((done.rounds(), done.carried_answers_or_state()), (2, true));
        } else {
            assert_eq!(exchange.lost().unwrap_err(), Stopped::Lost);
        }
    }
}
