//! Sessions over HTTP: ids, principals, versions, streams.

use mrtr_core::{
    Entropy, Timestamp,
    catalog::Change,
    handler::{Ctx, Service, ToolResult},
    http::{Accepts, Content, ReplyClass},
    legacy::{Config, Got, Handled, Posted, SessionHandle, SessionId, Sessions, Stream, StreamBody},
    seal::Principal,
};
use mrtr_tests::{
    legacy::{drain, parse, text},
    world::START,
};
use serde_json::{Value, json};

use super::{NARROW, NEWEST, all, n, number, service, shown};

const ALICE: Principal<'_> = Principal::Authenticated(b"alice");
const BOB: Principal<'_> = Principal::Authenticated(b"bob");
const NOW: Timestamp = Timestamp::from_unix_millis(START);

/// An endpoint, and what a client of it remembers.
struct Endpoint {
    sessions: Sessions,
    seed: u8,
}

/// What a POST came to.
#[derive(Debug, PartialEq)]
enum Said {
    Modern,
    Reply(u16, Value),
    Running,
}

impl Endpoint {
    fn new(service: Service) -> Self {
        Self { sessions: Sessions::new(service, Config::default()), seed: 0 }
    }

    fn open(&mut self, principal: Principal<'_>, version: &str) -> (SessionId, SessionHandle) {
        self.seed += 1;
        let seed = self.seed;
        let params = json!({"protocolVersion": version, "capabilities": all()});
        let body = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}).to_string();
        let headers: [(&str, &str); 0] = [];
        let posted = self
            .sessions
            .post(&headers, body.as_bytes(), Accepts::BOTH, principal, NOW, || Entropy::new([seed; 32]));
        let Posted::Opened { id, session, .. } = posted else { panic!("{posted:?}") };
        let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        assert_eq!(
            self.post(&[("Mcp-Session-Id", id.as_str())], principal, &ready),
            Said::Reply(202, Value::Null)
        );
        (id, session)
    }

    fn post(&mut self, headers: &[(&str, &str)], principal: Principal<'_>, message: &Value) -> Said {
        self.post_as(headers, principal, message.to_string().as_bytes(), Accepts::BOTH)
    }

    fn post_as(
        &mut self,
        headers: &[(&str, &str)],
        principal: Principal<'_>,
        body: &[u8],
        accepts: Accepts,
    ) -> Said {
        let reply = |class: ReplyClass, bytes: &[u8]| {
            let body = if bytes.is_empty() { Value::Null } else { parse(bytes) };
            Said::Reply(class.status(), body)
        };
        match self.sessions.post(headers, body, accepts, principal, NOW, || unreachable!("no session begins"))
        {
            Posted::Modern => Said::Modern,
            Posted::Reply(said) => reply(said.class, &said.bytes),
            Posted::Session(delivery) => match delivery.deliver(NOW) {
                Handled::Running(_) => Said::Running,
                Handled::Reply { bytes, class } => reply(class, &bytes),
                Handled::Accepted => Said::Reply(202, Value::Null),
                other => panic!("{other:?}"),
            },
            other => panic!("{other:?}"),
        }
    }

    fn get(&mut self, headers: &[(&str, &str)], principal: Principal<'_>) -> Result<Stream, u16> {
        match self.sessions.get(headers, principal, NOW) {
            Got::Stream { stream, .. } => Ok(stream),
            Got::Reply(reply) => Err(reply.class.status()),
            other => panic!("{other:?}"),
        }
    }
}

fn asking() -> Service {
    service(|ctx: Ctx| async move { Ok(ToolResult::text(shown(number(&ctx, "a").await))) })
}

fn call(id: i64) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "t"}})
}

fn status(said: Said) -> u16 {
    match said {
        Said::Reply(status, _) => status,
        other => panic!("{other:?}"),
    }
}

/// R-240, B-61: a session is its principal's alone: for everybody else it does not exist, for answers too; and after DELETE
/// for nobody.
#[test]
fn a_session_belongs_to_its_principal_r240() {
    let mut endpoint = Endpoint::new(asking());
    let (id, session) = endpoint.open(ALICE, NEWEST);
    let headers = [("Mcp-Session-Id", id.as_str())];
    assert_eq!(id.as_str().len(), 32);
    assert!(!format!("{id:?} {session:?}").contains(id.as_str()));
    assert_eq!(endpoint.post(&headers, ALICE, &call(1)), Said::Running);
    let ask = parse(&drain(&mut session.lock(), NOW)[0].bytes);
    let answer = json!({"jsonrpc": "2.0", "id": ask["id"], "result": n(3)});
    for other in [BOB, Principal::Anonymous, Principal::Authenticated(b"")] {
        assert_eq!(status(endpoint.post(&headers, other, &answer)), 404);
        assert_eq!(status(endpoint.post(&headers, other, &call(2))), 404);
        assert_eq!(endpoint.get(&headers, other), Err(404));
        assert_eq!(endpoint.sessions.delete(&headers, other, NOW).class.status(), 404);
    }
    assert!(drain(&mut session.lock(), NOW).is_empty());
    assert_eq!(endpoint.post(&headers, ALICE, &answer), Said::Reply(202, Value::Null));
    assert_eq!(text(&parse(&drain(&mut session.lock(), NOW)[0].bytes)), "3");
    assert_eq!(endpoint.sessions.delete(&headers, ALICE, NOW).class.status(), 202);
    assert!(session.lock().is_over());
    let Said::Reply(404, gone) = endpoint.post(&headers, ALICE, &call(3)) else { panic!("it is there") };
    assert_eq!((&gone["id"], &gone["error"]["code"]), (&json!(3), &json!(-32600)));
    assert_eq!(endpoint.sessions.delete(&headers, ALICE, NOW).class.status(), 404);
}

/// B-61, R-240: two sessions of one principal ask under ids that may be equal; an answer goes by its session.
#[test]
fn answers_go_by_their_session_b61() {
    let mut endpoint = Endpoint::new(asking());
    let (first, one) = endpoint.open(ALICE, NEWEST);
    let (second, two) = endpoint.open(ALICE, NEWEST);
    assert_ne!(first, second);
    for id in [&first, &second] {
        assert_eq!(endpoint.post(&[("Mcp-Session-Id", id.as_str())], ALICE, &call(1)), Said::Running);
    }
    let asks = [&one, &two].map(|session| parse(&drain(&mut session.lock(), NOW)[0].bytes));
    assert_eq!(asks[0]["id"], asks[1]["id"]);
    let answer = json!({"jsonrpc": "2.0", "id": asks[0]["id"], "result": n(3)});
    endpoint.post(&[("Mcp-Session-Id", second.as_str())], ALICE, &answer);
    assert!(drain(&mut one.lock(), NOW).is_empty());
    assert_eq!(text(&parse(&drain(&mut two.lock(), NOW)[0].bytes)), "3");
}

/// R-240, R-241: what the headers must say. A method that is not known is 200, for 404 would end the session.
#[test]
fn headers_of_a_session_r241() {
    let mut endpoint = Endpoint::new(asking());
    let (id, _) = endpoint.open(ALICE, NARROW);
    let session = ("Mcp-Session-Id", id.as_str());
    let ping = json!({"jsonrpc": "2.0", "id": "p", "method": "ping"});
    let cases: &[(&[(&str, &str)], u16)] = &[
        (&[session], 200),
        (&[session, ("mcp-protocol-version", " 2025-06-18 ")], 200),
        (&[session, ("MCP-Protocol-Version", "2025-11-25")], 400),
        (&[session, ("MCP-Protocol-Version", "2026-07-28")], 400),
        (&[session, ("MCP-Protocol-Version", "nonsense")], 400),
        (&[session, ("MCP-Protocol-Version", NARROW), ("MCP-Protocol-Version", NEWEST)], 400),
        (&[("MCP-Protocol-Version", NARROW)], 400),
        (&[], 400),
        (&[session, ("Mcp-Session-Id", "other")], 400),
        (&[session, session], 200),
        (&[("Mcp-Session-Id", "")], 404),
        (&[("Mcp-Session-Id", "0123456789abcdef0123456789abcdef")], 404),
    ];
    for (headers, expected) in cases {
        assert_eq!(status(endpoint.post(headers, ALICE, &ping)), *expected, "{headers:?}");
    }
    let unknown = json!({"jsonrpc": "2.0", "id": 1, "method": "nonsense"});
    let Said::Reply(200, said) = endpoint.post(&[session], ALICE, &unknown) else { panic!("not 200") };
    assert_eq!(said["error"]["code"], -32601);
    for (body, expected) in [("{", 400), ("[]", 400), (r#"{"jsonrpc":"2.0","id":1}"#, 400)] {
        assert_eq!(
            status(endpoint.post_as(&[session], ALICE, body.as_bytes(), Accepts::BOTH)),
            expected,
            "{body}"
        );
    }
}

/// R-052, R-054, G-44, trap 21: the era of each POST; both live at once.
#[test]
fn both_eras_at_one_endpoint_g44() {
    let mut endpoint = Endpoint::new(asking());
    let (id, _) = endpoint.open(ALICE, NEWEST);
    let session = ("Mcp-Session-Id", id.as_str());
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}});
    for method in ["tools/call", "initialize", "server/discover"] {
        let modern =
            json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": {"name": "t", "_meta": meta}});
        assert_eq!(endpoint.post(&[], ALICE, &modern), Said::Modern);
        assert_eq!(endpoint.post(&[session], ALICE, &modern), Said::Modern);
    }
    let version = ("MCP-Protocol-Version", "2026-07-28");
    assert_eq!(endpoint.post(&[version], ALICE, &call(1)), Said::Modern);
    assert_eq!(endpoint.post(&[("MCP-Protocol-Version", "v9")], ALICE, &call(1)), Said::Modern);
    assert_eq!(endpoint.post_as(&[], ALICE, b"{", Accepts::BOTH), Said::Modern);
    assert_eq!(endpoint.post(&[session], ALICE, &call(1)), Said::Running);
    // Without 2025-03-26 a request that says nothing is refused as a modern one is (-32020).
    let mut config = Config::default();
    config.versions.pop();
    let mut endpoint = Endpoint { sessions: Sessions::new(asking(), config.clone()), seed: 0 };
    assert_eq!(endpoint.post(&[], ALICE, &call(1)), Said::Modern);
    // With no legacy revision at all everything is modern.
    config.versions.clear();
    let mut endpoint = Endpoint { sessions: Sessions::new(asking(), config), seed: 0 };
    let bare =
        json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": NEWEST}});
    assert_eq!(endpoint.post(&[], ALICE, &bare), Said::Modern);
    assert_eq!(endpoint.post(&[("MCP-Protocol-Version", NEWEST)], ALICE, &call(1)), Said::Modern);
}

/// R-231, B-72: what belongs to a call goes on the stream of its POST, also while the standalone stream is open, which gets
/// the rest.
#[test]
fn each_message_on_its_own_stream_b72() {
    let changing = service(|ctx: Ctx| async move { Ok(ToolResult::text(shown(number(&ctx, "a").await))) })
        .announce_changes();
    let mut endpoint = Endpoint::new(changing);
    let (id, session) = endpoint.open(ALICE, NEWEST);
    let headers = [("Mcp-Session-Id", id.as_str())];
    assert!(!session.lock().changed(&Change::Tools), "nobody would hear it");
    assert_eq!(endpoint.get(&headers, ALICE), Ok(Stream::Standalone));
    assert_eq!(endpoint.post(&headers, ALICE, &call(1)), Said::Running);
    assert_eq!(endpoint.post(&headers, ALICE, &call(2)), Said::Running);
    assert!(session.lock().changed(&Change::Tools) && session.lock().ping());
    let said = drain(&mut session.lock(), NOW);
    let streams: Vec<(&Stream, Value)> =
        said.iter().map(|t| (&t.stream, parse(&t.bytes)["method"].clone())).collect();
    let of = |id: i64| Stream::Request(id.into());
    assert_eq!(
        streams,
        [
            (&Stream::Standalone, json!("notifications/tools/list_changed")),
            (&Stream::Standalone, json!("ping")),
            (&of(1), json!("elicitation/create")),
            (&of(2), json!("elicitation/create")),
        ]
    );
    // A cancelled call ends its stream without a message.
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 2}});
    endpoint.post(&headers, ALICE, &cancel);
    let said = drain(&mut session.lock(), NOW);
    assert_eq!(parse(&said[0].bytes)["method"], "notifications/cancelled");
    assert_eq!((&said[1].stream, said[1].last, said[1].bytes.len(), said.len()), (&of(2), true, 0, 2));
}

/// R-178, R-230: a client that reads JSON alone cannot be asked: there is nothing to ask on.
#[test]
fn a_client_without_streams_is_not_asked() {
    let mut endpoint = Endpoint::new(asking());
    let (id, session) = endpoint.open(ALICE, NEWEST);
    let headers = [("Mcp-Session-Id", id.as_str())];
    assert_eq!(
        endpoint.post_as(&headers, ALICE, call(1).to_string().as_bytes(), Accepts::JSON),
        Said::Running
    );
    let said = parse(&drain(&mut session.lock(), NOW)[0].bytes);
    assert_eq!(said["error"]["data"], json!({"requiredCapabilities": {"elicitation": {}}}));
}

/// R-242: the bodies: JSON if the response is all there is, else events with ids, by which a GET takes the stream up again.
#[test]
fn bodies_r242() {
    let mut endpoint = Endpoint::new(service(|ctx: Ctx| async move {
        match ctx.argument::<bool>("ask") {
            Ok(true) => Ok(ToolResult::text(shown(number(&ctx, "a").await))),
            _ => Ok(ToolResult::text("at once")),
        }
    }));
    let (id, session) = endpoint.open(ALICE, NEWEST);
    let headers = [("Mcp-Session-Id", id.as_str())];
    endpoint.post(&headers, ALICE, &call(1));
    let said = drain(&mut session.lock(), NOW);
    let (mut body, mut out) = (StreamBody::new(Accepts::BOTH), Vec::new());
    let head = body.push(&said[0], &mut out).expect("a head");
    assert_eq!((head.status, head.content, out == said[0].bytes), (200, Content::Json, true));

    let asking = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "t", "arguments": {"ask": true}}});
    endpoint.post(&headers, ALICE, &asking);
    let said = drain(&mut session.lock(), NOW);
    let (mut body, mut out) = (StreamBody::new(Accepts::BOTH), Vec::new());
    let head = body.push(&said[0], &mut out).expect("a head");
    assert_eq!((head.status, head.content), (200, Content::EventStream));
    assert!(out.starts_with(b"id: 2-0\n") && out.ends_with(b"\n\n"));
    assert!(body.keep_alive(&mut out).is_none());
    let ask = parse(&said[0].bytes);
    session.lock().lose(&said[0].stream, NOW);
    endpoint.post(&headers, ALICE, &json!({"jsonrpc": "2.0", "id": ask["id"], "result": n(3)}));
    assert_eq!(endpoint.get(&[headers[0], ("Last-Event-ID", "2-7")], BOB), Err(404));
    assert_eq!(endpoint.get(&[headers[0], ("Last-Event-ID", "9-0")], ALICE), Err(400));
    assert_eq!(endpoint.get(&[headers[0], ("Last-Event-ID", "2-0")], ALICE), Ok(said[0].stream.clone()));
    let mut out = Vec::new();
    let (mut body, head) = StreamBody::for_get(&mut out);
    assert_eq!((head.status, head.content), (200, Content::EventStream));
    let said = drain(&mut session.lock(), NOW);
    out.clear();
    assert!(body.push(&said[0], &mut out).is_none());
    let event = format!("id: 2-1\nevent: message\ndata: {}\n\n", String::from_utf8_lossy(&said[0].bytes));
    assert_eq!(String::from_utf8_lossy(&out), event);
    // A call that was cancelled before anything was sent.
    endpoint.post(&headers, ALICE, &call(3));
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 3}});
    endpoint.post(&headers, ALICE, &cancel);
    let said = drain(&mut session.lock(), NOW);
    let (mut body, mut out) = (StreamBody::new(Accepts::BOTH), Vec::new());
    let head = body.push(&said[0], &mut out).expect("a head");
    assert_eq!((head.status, head.content, out.len()), (202, Content::Empty, 0));
}
