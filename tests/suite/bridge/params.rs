//! Headers of a modern host that repeat arguments of its call.

use mrtr_core::{
    bridge::{HostKind, Transport},
    http::ReplyClass,
    wire::Era,
};
use mrtr_tests::bridge::{Said, World, meta};
use serde_json::json;

/// once a list has shown which arguments stand in headers, those headers must be true.
#[test]
fn headers_that_repeat_arguments_must_be_true() {
    let mut world = World::single(Transport::Pipe, Era::Modern);
    world.post("alice", "tools/list", json!({}), &json!({}));
    let said = world.take();
    let list = said.iter().find_map(|said| match said {
        Said::Up { link, call: Some(call), .. } => Some((*link, *call)),
        _ => None,
    });
    let (link, list) = list.expect("the list is asked for");
    let tools = json!({"resultType": "complete", "ttlMs": 0, "cacheScope": "private", "tools": [{"name": "t",
        "inputSchema": {"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}}}]});
    world.result(link, list, tools);
    world.take();
    for (region, passes) in [
        (Some("eu"), true),
        (Some("=?base64?ZXU=?="), true),
        (Some("us"), false),
        (Some("=?base64?!?="), false),
        (None, false),
    ] {
        let host = world.host(HostKind::Post, "alice");
        let body = json!({"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": {"name": "t",
            "arguments": {"region": "eu"}, "_meta": meta(json!({}))}});
        let mut headers =
            vec![("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", "tools/call"), ("Mcp-Name", "t")];
        headers.extend(region.map(|region| ("Mcp-Param-Region", region)));
        world.send_with(host, &body.to_string(), &headers.as_slice());
        match world.only() {
            Said::Up { .. } => assert!(passes, "{region:?}"),
            said @ Said::Host { last, .. } => {
                assert!(!passes && last == Some(ReplyClass::HeaderMismatch), "{region:?}: {said:?}");
                assert_eq!(said.json()["error"]["code"], -32020);
            }
            other => panic!("{other:?}"),
        }
    }
}
