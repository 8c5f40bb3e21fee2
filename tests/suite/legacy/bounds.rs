//! Every bound of sessions at its edge.

use std::time::Duration;

use mrtr_core::{
    Entropy, Timestamp,
    handler::{Ctx, Service, ToolResult},
    http::{Accepts, ReplyClass},
    legacy::{Config, Got, Handled, Posted, Session, SessionHandle, SessionId, Sessions, Stream},
    seal::Principal,
};
use mrtr_tests::{
    legacy::{drain, parse, text},
    world::{self, START},
};
use serde_json::{Value, json};

use super::{NEWEST, all, client, n, number, service, shown};

fn asking() -> Service {
    service(|ctx: Ctx| async move { Ok(ToolResult::text(shown(number(&ctx, "a").await))) })
}

fn at(millis: u64) -> Timestamp {
    Timestamp::from_unix_millis(START + millis)
}

/// Design: 16 calls run in a session at a time.
#[test]
fn sixteen_calls_at_a_time() {
    let mut client = client(|ctx: Ctx| async move { Ok(ToolResult::text(shown(number(&ctx, "a").await))) });
    for _ in 0..16 {
        client.call();
    }
    let asks = client.drain();
    assert_eq!(asks.len(), 16);
    let refused = client.request("tools/call", json!({"name": "t"}));
    assert_eq!(refused["error"]["code"], -32603);
    assert!(refused["error"]["message"].as_str().is_some_and(|text| text.contains("legacy::Config::calls")));
    client.answer(&asks[3], n(1));
    client.only();
    client.call();
    assert_eq!(client.drain().len(), 1);
}

/// Design: answers of at most `Limits::answer_bytes`; exactly that many are fine.
#[test]
fn an_answer_of_exactly_the_limit_fits() {
    let mut config = world::config();
    let answer = r#"{"action":"decline"}"#;
    config.limits.answer_bytes = answer.len();
    let service =
        world::service(
            config,
            |ctx: Ctx| async move { Ok(ToolResult::text(shown(number(&ctx, "a").await))) },
        );
    let mut client = mrtr_tests::legacy::Client::new(service, NEWEST, all());
    for (answer, expected) in
        [(answer.to_owned(), "declined"), (format!("{} }}", &answer[..answer.len() - 1]), "Invalid(")]
    {
        client.call();
        let id = client.only()["id"].clone();
        client.send_bytes(format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{answer}}}"#).as_bytes());
        let said = client.only();
        assert!(text(&said).starts_with(expected), "{said}");
    }
}

/// Subscriptions are bounded.
#[test]
fn subscriptions_are_bounded() {
    let service = service(|_: Ctx| async { Ok(ToolResult::text("")) })
        .announce_changes()
        .template(mrtr_core::catalog::ResourceTemplate::new("s:{id}", "s"), |_: Ctx| async {
            Ok::<_, mrtr_core::handler::RpcError>(ToolResult::text(""))
        })
        .expect("a valid template");
    let mut client = mrtr_tests::legacy::Client::new(service, NEWEST, all());
    let subscribe = |client: &mut mrtr_tests::legacy::Client, which: usize| {
        client.request("resources/subscribe", json!({"uri": format!("s:{which}")}))
    };
    for which in 0..1_000 {
        assert_eq!(subscribe(&mut client, which)["result"], json!({}));
    }
    assert_eq!(subscribe(&mut client, 1_000)["error"]["code"], -32603);
    assert_eq!(subscribe(&mut client, 0)["result"], json!({}));
}

fn http_session(service: Service) -> Session {
    let mut session =
        Session::on_http(service, Config::default(), Principal::Anonymous, Entropy::new([3; 32]));
    let params = json!({"protocolVersion": NEWEST, "capabilities": all()});
    say(&mut session, json!({"jsonrpc": "2.0", "id": "i", "method": "initialize", "params": params}), at(0));
    say(&mut session, json!({"jsonrpc": "2.0", "method": "notifications/initialized"}), at(0));
    session
}

fn say(session: &mut Session, message: Value, now: Timestamp) -> Handled {
    session.handle(message.to_string().as_bytes(), now)
}

fn call(session: &mut Session, id: i64, now: Timestamp) -> Stream {
    let params = json!({"name": "t", "_meta": {"progressToken": id}});
    match say(session, json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}), now) {
        Handled::Running(id) => Stream::Request(id),
        other => panic!("{other:?}"),
    }
}

/// Design, R-239, R-242: a lost stream cancels nothing. Questions wait for 30 s, then they end; before that the stream can be
/// taken up, and what was missed is sent again; and answers count all the while.
#[test]
fn a_lost_stream_is_waited_for_30_seconds() {
    let mut session = http_session(asking());
    // Ended.
    let stream = call(&mut session, 1, at(0));
    assert_eq!(drain(&mut session, at(0)).len(), 1);
    session.lose(&stream, at(1_000));
    assert_eq!(session.wake_at(), Some(at(31_000)));
    assert!(drain(&mut session, at(30_999)).is_empty());
    assert!(drain(&mut session, at(31_000)).is_empty());
    // The reply is kept for as long again, for whoever takes up the stream.
    let resumed = session.resume("1-0");
    assert_eq!(resumed.as_ref(), Some(&stream));
    let said = drain(&mut session, at(60_999));
    assert_eq!((said.len(), text(&parse(&said[0].bytes))), (1, "Ended"));
    // Answered while nobody reads.
    let stream = call(&mut session, 2, at(100_000));
    let ask = parse(&drain(&mut session, at(100_000))[0].bytes);
    session.lose(&stream, at(100_000));
    say(&mut session, json!({"jsonrpc": "2.0", "id": ask["id"], "result": n(5)}), at(129_999));
    assert!(drain(&mut session, at(129_999)).is_empty());
    assert_eq!(session.resume("2-0"), Some(stream));
    let said = drain(&mut session, at(130_000));
    assert_eq!((said.len(), text(&parse(&said[0].bytes))), (1, "5"));
    // Nobody comes back: nothing is kept.
    let stream = call(&mut session, 3, at(200_000));
    drain(&mut session, at(200_000));
    session.lose(&stream, at(200_000));
    assert!(drain(&mut session, at(230_000)).is_empty());
    assert!(drain(&mut session, at(260_000)).is_empty());
    assert_eq!(session.resume("3-0"), None);
    assert_eq!(session.wake_at(), None);
}

/// R-242: what came after the event that the client has seen is sent again, in its order and under its numbers.
#[test]
fn a_resumed_stream_goes_on_after_the_last_event_r242() {
    let mut session = http_session(service(|ctx: Ctx| async move {
        for step in 1..=4 {
            ctx.progress(f64::from(step), None, None);
        }
        Ok(ToolResult::text(shown(number(&ctx, "a").await)))
    }));
    let stream = call(&mut session, 1, at(0));
    let ids = |session: &mut Session| -> Vec<String> {
        let said = drain(session, at(0));
        said.iter()
            .map(|transmit| {
                let mut line = Vec::new();
                transmit.write_event_id(&mut line);
                String::from_utf8(line).expect("UTF-8").trim_end().to_owned()
            })
            .collect()
    };
    assert_eq!(ids(&mut session), ["id: 1-0", "id: 1-1", "id: 1-2", "id: 1-3", "id: 1-4"]);
    session.lose(&stream, at(0));
    assert_eq!(session.resume("1-2"), Some(stream.clone()));
    assert_eq!(ids(&mut session), ["id: 1-3", "id: 1-4"]);
    session.lose(&stream, at(0));
    for unknown in ["", "1", "2-0", "x-y", "1-x", "-1-2", "99999999999999999999-0"] {
        assert_eq!(session.resume(unknown), None, "{unknown}");
    }
    assert_eq!(session.resume("1-4"), Some(stream));
    assert!(ids(&mut session).is_empty());
}

/// R-242: what was polled when the stream is taken up, and not written yet, is polled again: whoever holds it is told.
#[test]
fn what_waits_again_is_not_written_twice_r242() {
    let mut session = http_session(service(|ctx: Ctx| async move {
        ctx.progress(1.0, None, None);
        Ok(ToolResult::text(shown(number(&ctx, "a").await)))
    }));
    let stream = call(&mut session, 1, at(0));
    let said = drain(&mut session, at(0));
    let resent = |session: &Session| said.iter().map(|said| session.resends(said)).collect::<Vec<_>>();
    assert_eq!(resent(&session), [false, false]);
    // The client has the first; the second is on its way to a reader that is left now.
    assert_eq!(session.resume("1-0"), Some(stream));
    assert_eq!(resent(&session), [false, true]);
    assert_eq!(drain(&mut session, at(0)).len(), 1);
    assert_eq!(resent(&session), [false, false]);
}

/// A handler that goes on reporting to a stream that nobody reads does not fill the memory.
#[test]
fn a_lost_stream_keeps_little() {
    let mut session = http_session(service(|ctx: Ctx| async move {
        number(&ctx, "a").await?;
        for step in 1..=100_000 {
            ctx.progress(f64::from(step), None, None);
        }
        Ok(ToolResult::text("done"))
    }));
    let stream = call(&mut session, 1, at(0));
    let ask = parse(&drain(&mut session, at(0))[0].bytes);
    session.lose(&stream, at(0));
    say(&mut session, json!({"jsonrpc": "2.0", "id": ask["id"], "result": n(5)}), at(0));
    assert!(drain(&mut session, at(0)).is_empty());
    assert_eq!(session.resume("1-0"), Some(stream));
    let said = drain(&mut session, at(0));
    assert_eq!(said.len(), 65);
    assert_eq!(parse(&said[63].bytes)["params"]["progress"], 100_000);
    assert!(said[64].last);
}

type Header<'a> = (&'a str, &'a str);

fn open(
    sessions: &mut Sessions,
    principal: Principal<'_>,
    now: Timestamp,
    seed: u64,
) -> Result<(SessionId, SessionHandle), Value> {
    let params = json!({"protocolVersion": NEWEST, "capabilities": {}});
    let body = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}).to_string();
    let headers: [Header<'_>; 0] = [];
    let entropy = || {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&seed.to_be_bytes());
        Entropy::new(bytes)
    };
    match sessions.post(&headers, body.as_bytes(), Accepts::BOTH, principal, now, entropy) {
        Posted::Opened { id, session, reply } => {
            assert_eq!(reply.class, ReplyClass::Result);
            Ok((id, session))
        }
        Posted::Reply(reply) => {
            assert_eq!(reply.class, ReplyClass::Internal);
            Err(serde_json::from_slice(&reply.bytes).expect("JSON"))
        }
        other => panic!("{other:?}"),
    }
}

fn message(error: &Value) -> &str {
    error["error"]["message"].as_str().expect("a message")
}

/// Design: 64 sessions a principal, 10,000 in all; what has rested for too long makes room.
#[test]
fn sessions_are_bounded() {
    let mut sessions = Sessions::new(asking(), Config::default());
    let alice = Principal::Authenticated(b"alice");
    for seed in 0..64 {
        open(&mut sessions, alice, at(0), seed).expect("a session");
    }
    let refused = open(&mut sessions, alice, at(0), 64).expect_err("too many");
    assert!(message(&refused).contains("64 sessions of a principal"), "{refused}");
    open(&mut sessions, Principal::Authenticated(b"bob"), at(0), 65).expect("another principal");
    for seed in 0..10_000 - 65 {
        open(&mut sessions, Principal::Anonymous, at(0), 1_000 + seed).expect("a session");
    }
    assert_eq!(sessions.len(), 10_000);
    let refused = open(&mut sessions, Principal::Anonymous, at(0), 20_000).expect_err("too many");
    assert!(message(&refused).contains("10000 sessions"), "{refused}");
    // Exactly the limit is no rest too long.
    let idle = 30 * 60 * 1_000;
    open(&mut sessions, alice, at(idle), 20_001).expect_err("still too many");
    open(&mut sessions, alice, at(idle + 1), 20_002).expect("room");
    assert_eq!(sessions.len(), 1);
}

/// Design, R-240: a session may rest for 30 min; while a call runs or a stream is open it does not rest.
#[test]
fn a_session_ends_after_its_rest_r240() {
    let idle = Config::default().idle.as_millis() as u64;
    let mut sessions = Sessions::new(asking(), Config::default());
    let get = |sessions: &mut Sessions, id: &SessionId, now| {
        let headers = [("Mcp-Session-Id", id.as_str())];
        match sessions.get(&headers, Principal::Anonymous, at(now)) {
            Got::Stream { session, stream } => Ok((session, stream)),
            Got::Reply(reply) => Err(reply.class),
            other => panic!("{other:?}"),
        }
    };
    let (id, _) = open(&mut sessions, Principal::Anonymous, at(0), 1).expect("a session");
    let (session, stream) = get(&mut sessions, &id, idle).expect("not yet");
    // A stream is open for hours.
    assert_eq!(sessions.sweep(at(10 * idle)), 0);
    session.lock().lose(&stream, at(10 * idle));
    assert_eq!(sessions.sweep(at(11 * idle)), 0);
    // A call runs for hours.
    let params = json!({"name": "u"});
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
    session.lock().handle(call.to_string().as_bytes(), at(11 * idle));
    assert_eq!(sessions.sweep(at(13 * idle)), 0);
    session.lock().handle(
        br#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#,
        at(14 * idle),
    );
    assert_eq!(sessions.sweep(at(15 * idle)), 0);
    assert_eq!(get(&mut sessions, &id, 15 * idle + 1).expect_err("gone"), ReplyClass::UnknownSession);
    assert!(sessions.is_empty() && session.lock().is_over());
    let (_, _) = open(&mut sessions, Principal::Anonymous, at(0), 2).expect("a session");
    assert_eq!((sessions.sweep(at(idle)), sessions.sweep(at(idle + 1))), (0, 1));
    assert_eq!(Duration::from_millis(idle), Duration::from_secs(1_800));
}
