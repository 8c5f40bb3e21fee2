//! Requests that come with headers: the order of the checks, and what must agree.

use mrtr_core::http::ReplyClass;
use mrtr_tests::world::{Delivered, World, accept};
use serde_json::{Value, json};

use super::{reply, world};

const VERSION: &str = "io.modelcontextprotocol/protocolVersion";

fn sent(world: &mut World, message: &Value, headers: &[(&str, &str)]) -> (u16, Option<i64>, Value) {
    let (class, reply) = reply(world.deliver(message.to_string().as_bytes(), Some(headers)));
    (class.status(), reply["error"]["code"].as_i64(), reply)
}

/// R-170: the whole table. Each request has some of the faults; the first in the order decides.
#[test]
fn r_170_the_order_of_the_checks() {
    let mut world = world();
    // Step, code, status, as in the specification's harness.
    let steps = [
        ("3 no version header", -32020, 400),
        ("4 no capabilities in _meta", -32602, 400),
        ("5 another version in the header", -32020, 400),
        ("6 a version that is not served", -32022, 400),
        ("7 another method in the header", -32020, 400),
        ("8 an unknown method", -32601, 404),
        ("9 a capability that is not declared", -32021, 400),
    ];
    for faults in 0u32..1 << steps.len() {
        let has = |step: usize| faults & (1 << step) != 0;
        world.capabilities = if has(6) { json!({}) } else { json!({"elicitation": {}}) };
        let method = if has(5) { "tools/unknown" } else { "tools/call" };
        let mut message = world.request(method, json!({"name": "form"}));
        let meta = message["params"]["_meta"].as_object_mut().expect("an object");
        if has(1) {
            meta.remove("io.modelcontextprotocol/clientCapabilities");
        }
        let version = if has(3) { "2099-01-01" } else { "2026-07-28" };
        meta.insert(VERSION.into(), json!(version));
        let mut headers =
            vec![("mcp-method", if has(4) { "tools/list" } else { method }), ("Mcp-Name", "form")];
        if !has(0) {
            headers.push(("MCP-Protocol-Version", if has(2) { "2025-11-25" } else { version }));
        }
        let (status, code, reply) = sent(&mut world, &message, &headers);
        match (0..steps.len()).find(|step| has(*step)) {
            Some(first) => assert_eq!(
                (code, status),
                (Some(steps[first].1), steps[first].2),
                "{}: {reply}",
                steps[first].0
            ),
            None => {
                assert_eq!((reply["result"]["resultType"].as_str(), status), (Some("input_required"), 200))
            }
        }
    }
}

/// R-162, R-163, R-164, R-166: each header missing, different, twice, in another case, with white space.
#[test]
fn r_166_headers_and_body_agree() {
    let mut world = world();
    let good = [("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", "tools/call"), ("Mcp-Name", "plain")];
    let message = super::tool_call(&mut world, "plain", json!({}));
    assert_eq!(sent(&mut world, &message, &good).0, 200);
    for (index, (name, value)) in good.iter().enumerate() {
        let with = |replaced: Option<(&str, &str)>| -> Vec<(String, String)> {
            let mut headers: Vec<_> =
                good.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
            headers.remove(index);
            headers.extend(replaced.map(|(name, value)| (name.to_owned(), value.to_owned())));
            headers
        };
        let spaced = format!(" \t{value}  ");
        let lower = name.to_lowercase();
        for (header, fine) in [
            (None, false),
            (Some((*name, "")), false),
            (Some((*name, "x")), false),
            (Some((*name, "caf\u{e9}")), false),
            (Some((*name, spaced.as_str())), true),
            (Some((lower.as_str(), *value)), true),
        ] {
            let headers = with(header);
            let headers: Vec<(&str, &str)> =
                headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
            let (status, code, _) = sent(&mut world, &message, &headers);
            let expected = if fine { (200, None) } else { (400, Some(-32020)) };
            assert_eq!((status, code), expected, "{name} {header:?}");
        }
        // Sent twice with two values, whichever comes first.
        let mut twice = good.to_vec();
        twice.push((name, "other"));
        assert_eq!(sent(&mut world, &message, &twice).1, Some(-32020));
        twice.rotate_right(1);
        assert_eq!(sent(&mut world, &message, &twice).1, Some(-32020));
    }
    let upper = [("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", "TOOLS/CALL"), ("Mcp-Name", "plain")];
    assert_eq!(sent(&mut world, &message, &upper).1, Some(-32020));
}

/// R-164, R-167, R-168: names and uris, plain and encoded.
#[test]
fn r_164_names() {
    let mut world = world();
    let version = ("MCP-Protocol-Version", "2026-07-28");
    for (method, params, name, code) in [
        ("resources/read", json!({"uri": "r:plain"}), Some("r:plain"), None),
        ("resources/read", json!({"uri": "r:plain"}), Some("=?base64?cjpwbGFpbg==?="), None),
        ("resources/read", json!({"uri": "r:plain"}), Some("=?base64?cjpwbGFpbg=?="), Some(-32020)),
        ("resources/read", json!({"uri": "r:plain"}), Some("=?base64?cjpwbGFp*g==?="), Some(-32020)),
        ("resources/read", json!({"uri": "r:plain"}), Some("=?BASE64?cjpwbGFpbg==?="), Some(-32020)),
        ("resources/read", json!({"uri": "r:plain"}), Some("r:hints"), Some(-32020)),
        ("resources/read", json!({"uri": "r:caf\u{e9}"}), Some("=?base64?cjpjYWbDqQ==?="), Some(-32602)),
        ("prompts/get", json!({"name": "ask"}), Some("ask"), None),
        ("prompts/get", json!({"name": "ask"}), None, Some(-32020)),
        ("tools/list", json!({}), None, None),
        ("tools/list", json!({}), Some("unneeded"), None),
        ("server/discover", json!({}), None, None),
        // A body without a name is refused for that.
        ("tools/call", json!({}), None, Some(-32602)),
        ("tools/call", json!({}), Some("plain"), Some(-32020)),
    ] {
        let message = world.request(method, params);
        let mut headers = vec![version, ("Mcp-Method", method)];
        headers.extend(name.map(|name| ("Mcp-Name", name)));
        assert_eq!(sent(&mut world, &message, &headers).1, code, "{method} {name:?}");
    }
}

/// R-166, R-168, R-169, R-172, R-175: arguments that the tool mirrors in headers.
#[test]
fn r_175_mirrored_arguments() {
    let mut world = world();
    for (arguments, headers, fine) in [
        (json!({}), vec![], true),
        (json!({"region": "eu"}), vec![("Mcp-Param-Region", "eu")], true),
        (json!({"region": "eu"}), vec![("mcp-param-REGION", "=?base64?ZXU=?=")], true),
        (
            json!({"region": "eu", "size": 42}),
            vec![("Mcp-Param-Region", "eu"), ("Mcp-Param-Size", "42.0")],
            true,
        ),
        (json!({"region": null}), vec![], true),
        (json!({"region": "eu"}), vec![], false),
        (json!({"region": "eu"}), vec![("Mcp-Param-Region", "us")], false),
        (json!({"region": "eu"}), vec![("Mcp-Param-Region", "=?base64?ZXU?=")], false),
        (json!({}), vec![("Mcp-Param-Region", "eu")], false),
        (json!({"region": null}), vec![("Mcp-Param-Region", "eu")], false),
        (json!({"size": 42}), vec![("Mcp-Param-Size", "43")], false),
        // Headers nobody asked for are nobody's business.
        (
            json!({"region": "eu"}),
            vec![("Mcp-Param-Region", "eu"), ("Mcp-Param-Other", "x"), ("Mcp-Session-Id", "s")],
            true,
        ),
    ] {
        let message = super::tool_call(&mut world, "header", json!({"arguments": arguments}));
        let mut all = vec![
            ("MCP-Protocol-Version", "2026-07-28"),
            ("Mcp-Method", "tools/call"),
            ("Mcp-Name", "header"),
        ];
        all.extend(headers.iter().copied());
        let (status, code, _) = sent(&mut world, &message, &all);
        let expected = if fine { (200, None) } else { (400, Some(-32020)) };
        assert_eq!((status, code), expected, "{arguments} {headers:?}");
        // On a pipe there are none, and nothing is missed (R-184).
        assert_eq!(world.send(&message).text(), "header");
    }
}

/// R-165: a retry is a request like any other: the same headers, and none for its state and answers.
#[test]
fn r_165_a_retry_has_the_same_headers() {
    let mut world = world();
    let headers =
        [("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", "tools/call"), ("Mcp-Name", "form")];
    let message = super::tool_call(&mut world, "form", json!({}));
    let (_, _, first) = sent(&mut world, &message, &headers);
    let state = first["result"]["requestState"].clone();
    let message = super::tool_call(
        &mut world,
        "form",
        json!({"requestState": state, "inputResponses": {"n": accept(json!({"n": 1}))}}),
    );
    assert_eq!(sent(&mut world, &message, &headers).2["result"]["content"][0]["text"], "1");
    assert_eq!(sent(&mut world, &message, &headers[..2]).1, Some(-32020));
    // A state that came over HTTP may be answered over a pipe, and the other way round: no connection is bound (B-13).
    assert_eq!(world.send(&message).text(), "1");
}

/// R-052, R-170: `initialize` of an older era has no headers of ours, and is told what is served.
#[test]
fn r_053_initialize_over_http() {
    let mut world = world();
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-11-25", "capabilities": {}}});
    for headers in [&[][..], &[("MCP-Protocol-Version", "2025-11-25")]] {
        let (status, code, _) = sent(&mut world, &message, headers);
        assert_eq!((status, code), (400, Some(-32022)));
    }
    let modern = world.request("initialize", json!({}));
    let headers = [("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", "initialize")];
    let (status, code, _) = sent(&mut world, &modern, &headers);
    assert_eq!((status, code), (404, Some(-32601)));
}

/// R-158: one message a request, whatever the headers say.
#[test]
fn r_158_no_batches_over_http() {
    let mut world = world();
    let one = super::tool_call(&mut world, "plain", json!({}));
    let headers =
        [("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", "tools/call"), ("Mcp-Name", "plain")];
    let (status, code, reply) = sent(&mut world, &json!([one, one]), &headers);
    assert_eq!((status, code, reply.get("id")), (400, Some(-32600), None));
}

/// R-160, G-49: a notification needs no headers; those that it has must be true.
#[test]
fn r_160_notifications() {
    let mut world = world();
    let message = br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    for headers in
        [&[][..], &[("Mcp-Method", "notifications/initialized"), ("MCP-Protocol-Version", "2026-07-28")]]
    {
        assert!(matches!(world.deliver(message, Some(headers)), Delivered::Accepted));
    }
    let Delivered::Reply(class, bytes) = world.deliver(message, Some(&[("Mcp-Method", "tools/call")])) else {
        panic!("a notification whose header lies was accepted");
    };
    assert_eq!(class, ReplyClass::HeaderMismatch);
    assert!(bytes.is_empty() || mrtr_tests::world::lawful(&bytes)["error"]["code"] == -32020);
}

/// R-187, R-188: over HTTP a request is cancelled by closing its stream. Ids of other clients' requests are not unique
/// there, so a message that names one cancels nothing.
#[test]
fn r_187_nothing_is_cancelled_by_name_over_http() {
    let mut world = world();
    let message = br#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#;
    assert!(matches!(world.deliver(message, Some(&[])), Delivered::Accepted));
    assert!(matches!(world.deliver(message, None), Delivered::Cancelled(_)));
}
