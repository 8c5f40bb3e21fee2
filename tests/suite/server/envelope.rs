//! Messages and their ids.

use mrtr_core::http::ReplyClass;
use mrtr_tests::world::{Delivered, lawful};
use serde_json::{Value, json};

use super::{call, post, tool_call, world};

/// R-001, R-003, G-38, R-019: what is no request, and which id its refusal carries. The id is left out, never null,
/// where it could not be read.
#[test]
fn r_001_r_003_what_is_no_request() {
    let meta = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;
    let list = |id: &str| format!(r#"{{"jsonrpc":"2.0",{id}"method":"tools/list","params":{{{meta}}}}}"#);
    let table: Vec<(String, i64, Option<Value>)> = vec![
        ("".into(), -32700, None),
        ("{".into(), -32700, None),
        ("nonsense".into(), -32700, None),
        ("\u{feff}{}".into(), -32700, None),
        (list("\"id\":1,").replace("tools", "to\nols"), -32700, None),
        ("[]".into(), -32600, None),
        (format!("[{}]", list("\"id\":1,")), -32600, None),
        ("1".into(), -32600, None),
        ("null".into(), -32600, None),
        ("{}".into(), -32600, None),
        (list("\"id\":null,"), -32600, None),
        (list("\"id\":1.5,"), -32600, None),
        (list("\"id\":1.0,"), -32600, None),
        (list("\"id\":{},"), -32600, None),
        (list("\"id\":[1],"), -32600, None),
        (list("\"id\":true,"), -32600, None),
        // Which of two ids is the message's is not known.
        (list("\"id\":1,\"id\":2,"), -32600, None),
        (list("\"id\":1,").replace("2.0", "1.0"), -32600, Some(json!(1))),
        (list("\"id\":1,").replace("\"jsonrpc\":\"2.0\",", ""), -32600, Some(json!(1))),
        (r#"{"jsonrpc":"2.0","id":7,"method":5}"#.into(), -32600, Some(json!(7))),
        (r#"{"jsonrpc":"2.0","id":"x","method":"m","params":[]}"#.into(), -32600, Some(json!("x"))),
        (r#"{"jsonrpc":"2.0","id":"x","method":"m","params":null}"#.into(), -32600, Some(json!("x"))),
        (r#"{"jsonrpc":"2.0","id":3,"method":"m","result":{}}"#.into(), -32600, Some(json!(3))),
        // Twice the same name, anywhere, in any spelling.
        (list("\"id\":4,").replace(meta, r#""a":{"b":1,"\u0062":2}"#), -32600, Some(json!(4))),
    ];
    let mut world = world();
    for (text, code, id) in table {
        let (_, reply) = post(&mut world, &text);
        assert_eq!(reply["error"]["code"], code, "{text}: {reply}");
        assert_eq!(reply.get("id"), id.as_ref(), "{text}: {reply}");
    }
}

/// R-003: every id is echoed with its type and to the digit, in results and in errors.
#[test]
fn r_003_ids_are_echoed_as_they_came() {
    let mut world = world();
    for id in [
        "0",
        "-1",
        "9007199254740993",
        "123456789012345678901234567890",
        r#""""#,
        r#""1""#,
        r#""a\u00e9\"b""#,
    ] {
        for tool in ["plain", "form", "breaks", "nobody"] {
            let message = tool_call(&mut world, tool, json!({})).to_string();
            let (head, tail) = message.split_once("\"id\":").expect("an id");
            let (_, tail) = tail.split_once(',').expect("more");
            let message = format!("{head}\"id\":{id},{tail}");
            let Delivered::Reply(_, bytes) = world.deliver(message.as_bytes(), None) else {
                panic!("no reply")
            };
            let reply = lawful(&bytes);
            let expected: Value = serde_json::from_str(id).expect("JSON");
            if id.len() < 20 {
                assert_eq!(reply["id"], expected);
            }
            if id.starts_with(|first: char| first.is_ascii_digit()) {
                assert!(String::from_utf8(bytes).expect("UTF-8").contains(&format!("\"id\":{id},")), "{id}");
            }
        }
    }
}

/// R-005, R-191: notifications get no answer, whatever is in them.
#[test]
fn r_005_notifications_get_no_answer() {
    let mut world = world();
    for text in [
        r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/unknown","params":{"a":{"b":[1]}}}"#,
        r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"plain"}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled"}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":null}}"#,
    ] {
        assert!(matches!(world.deliver(text.as_bytes(), None), Delivered::Accepted), "{text}");
    }
    // One that is broken gets none either, but HTTP has a status for it.
    for text in
        [r#"{"jsonrpc":"2.0","method":"notifications/x","params":[]}"#, r#"{"jsonrpc":"1.0","method":"n"}"#]
    {
        let Delivered::Reply(class, bytes) = world.deliver(text.as_bytes(), None) else { panic!("{text}") };
        assert_eq!((class.status(), bytes.len()), (400, 0), "{text}");
    }
}

/// R-006: a client must not send responses. They are not answered: the error would be taken for the answer to a
/// request of the client's own.
#[test]
fn r_006_responses_are_refused_in_silence() {
    let mut world = world();
    for text in [
        r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":{"action":"accept","content":{}}}"#,
        r#"{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"User rejected"}}"#,
        r#"{"jsonrpc":"2.0","error":{"code":-32600,"message":"m"}}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{}}"#,
        r#"{"jsonrpc":"2.0","id":1.5,"result":{}}"#,
    ] {
        let Delivered::Reply(class, bytes) = world.deliver(text.as_bytes(), None) else { panic!("{text}") };
        assert_eq!((class, bytes.len()), (ReplyClass::InvalidRequest, 0), "{text}");
    }
}

/// R-007: messages are UTF-8, inside strings too.
#[test]
fn r_007_other_encodings_are_parse_errors() {
    let mut world = world();
    let good = tool_call(&mut world, "plain", json!({"arguments": {"a": "XX"}})).to_string().into_bytes();
    let at = good.windows(2).position(|pair| pair == b"XX").expect("there");
    for bad in [[0xc3, 0x28], [0xff, 0xfe], [0xed, 0xa0]] {
        let mut bytes = good.clone();
        bytes[at..at + 2].copy_from_slice(&bad);
        let Delivered::Reply(class, bytes) = world.deliver(&bytes, None) else { panic!("no reply") };
        assert_eq!((class, lawful(&bytes)["error"]["code"].as_i64()), (ReplyClass::ParseError, Some(-32700)));
    }
}

/// R-008, R-009, R-108: nothing is remembered between requests. Ids may come again, and a request means the same
/// after any other as before it.
#[test]
fn r_008_requests_know_nothing_of_each_other() {
    let mut world = world();
    let mut form = tool_call(&mut world, "form", json!({}));
    form["id"] = json!(1);
    let first = world.send(&form);
    assert_eq!(first.keys(), ["n"]);
    form["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({});
    assert_eq!(world.send(&form).error().0, -32021);
    form["params"]["_meta"]
        .as_object_mut()
        .expect("an object")
        .remove("io.modelcontextprotocol/clientCapabilities");
    assert_eq!(world.send(&form).error().0, -32602);
    // A clone of the service is another replica: the retry may go to either.
    let mut replica = mrtr_tests::world::World::of(super::kit(mrtr_tests::world::config()));
    let retried =
        super::retry(&mut replica, "form", &first, json!({"n": {"action": "accept", "content": {"n": 4}}}));
    assert_eq!(retried.text(), "4");
}

/// R-010, R-081, R-110: unknown members are tolerated everywhere.
#[test]
fn r_010_unknown_members_are_tolerated() {
    let mut world = world();
    let first = call(&mut world, "everything", json!({"x": 1, "task": {"ttl": 5}}));
    let mut message = tool_call(
        &mut world,
        "everything",
        json!({
            "requestState": first.state(), "extra": {"deep": [null]},
            "inputResponses": {
                "n": {"action": "accept", "content": {"n": 1, "more": "x"}, "resultType": "complete", "method": "m", "result": {}},
                "in": {"action": "accept", "content": {"ignored": 1}, "_meta": {}},
                "s": {"role": "assistant", "model": "m", "content": {"type": "text", "text": "yes", "x": 1}, "y": 2},
                "r": {"roots": [{"uri": "file:///a", "name": "a", "z": 3}], "w": 4},
                "unasked": {"surprise": 1}, "__proto__": {"n": 9}, "": null,
            },
        }),
    );
    message["more"] = json!({"at": "the top"});
    message["params"]["_meta"]["com.example/own"] = json!([1]);
    message["params"]["_meta"]["traceparent"] =
        json!("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
    message["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"]["experimental"] =
        json!({"x": {}});
    assert_eq!(world.send(&message).text(), "1 Accept yes 1");
}

/// R-182, R-183: a reply is one line even where the parts that authors and peers brought have line breaks.
#[test]
fn r_182_a_reply_is_one_line() {
    use mrtr_core::{
        catalog::Tool,
        handler::{Ctx, Output, RpcError, Service},
        server::Server,
    };
    let service = Service::new(Server::new(mrtr_tests::world::config()))
        .tool(
            Tool::new("t", "two\nlines").input_schema("{\n \"type\": \"object\"\r\n}"),
            |ctx: Ctx| async move {
                ctx.ask(
                    "k",
                    super::ask(&json!({"method": "elicitation/create", "params": {
                "message": "two\nlines", "requestedSchema": {"type": "object", "properties": {}}}})),
                )
                .await?;
                Output::from_serialize(&json!({"a": "two\r\nlines"})).map_err(|_| RpcError::internal("no"))
            },
        )
        .expect("a valid tool");
    let mut world = mrtr_tests::world::World::of(service);
    let list = world.request("tools/list", json!({}));
    assert_eq!(world.send(&list).result()["tools"][0]["description"], "two\nlines");
    let first = world.call(json!({}));
    assert_eq!(first.message("k"), "two\nlines");
    assert_eq!(world.retry(&first, json!({"k": {"action": "decline"}})).result()["a"], "two\r\nlines");
}
