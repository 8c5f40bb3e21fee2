//! Whose a resource is, with several upstreams: lists, templates and links tell, and a retry goes where its state was made
//!

use mrtr_core::{
    bridge::{Config, HostKind, LinkId, Transport},
    wire::Era,
};
use mrtr_tests::bridge::{Said, World, config};
use serde_json::{Value, json};

use super::forms;

fn two() -> Config {
    config(&[("a", Transport::Pipe, Era::Modern), ("b", Transport::Pipe, Era::Modern)])
}

fn read(world: &mut World, uri: &str, more: Value) -> mrtr_core::bridge::HostId {
    let mut params = json!({"uri": uri});
    params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    world.post("alice", "resources/read", params, &forms()).0
}

/// What was sent upstream: upstreams are known by the order in which their connections were opened.
fn sent(world: &mut World) -> Vec<(LinkId, Value)> {
    let said = world.take();
    let up = |said: &Said| matches!(said, Said::Up { link, .. } if { let _ = link; true });
    said.iter()
        .filter(|said| up(said))
        .map(|said| match said {
            Said::Up { link, .. } => (*link, said.json()),
            other => panic!("{other:?}"),
        })
        .collect()
}

/// Answers a list that both are asked for; the connections.
fn listed(world: &mut World, method: &str, member: &str, entries: [Value; 2]) -> [LinkId; 2] {
    let asked = sent(world);
    assert_eq!(asked.len(), 2, "{asked:?}");
    for ((link, request), entries) in asked.iter().zip(entries) {
        assert_eq!(request["method"], method);
        world.result(
            *link,
            request["id"].as_i64().unwrap(),
            json!({"resultType": "complete", member: entries}),
        );
    }
    [asked[0].0, asked[1].0]
}

/// what nobody has listed yet is looked for before it is read, and its retry reaches the same upstream: in a process
/// that has never heard of it, and even if another upstream has listed it meanwhile.
#[test]
fn a_read_and_its_retry_reach_the_upstream_whose_resource_it_is_r254() {
    let mut world = World::new(two());
    let host = read(&mut world, "x://1", json!({}));
    let [a, b] = listed(
        &mut world,
        "resources/list",
        "resources",
        [json!([{"uri": "x://0"}]), json!([{"uri": "x://1"}])],
    );
    let (link, request) = world.sent();
    assert_eq!(
        (link, &request["method"], &request["params"]["uri"]),
        (b, &json!("resources/read"), &json!("x://1"))
    );
    world.result(
        link,
        request["id"].as_i64().unwrap(),
        json!({"resultType": "input_required", "requestState": "s"}),
    );
    let state = world.reply(host)["result"]["requestState"].clone();
    // Now it is listed, nobody is asked again.
    read(&mut world, "x://0", json!({}));
    assert_eq!(world.sent().0, a);
    // The first of the configuration lists it, too: that is for new calls.
    world.post("alice", "resources/list", json!({}), &forms());
    listed(&mut world, "resources/list", "resources", [json!([{"uri": "x://1"}]), json!([])]);
    world.take();
    read(&mut world, "x://1", json!({}));
    assert_eq!(world.sent().0, a);
    read(&mut world, "x://1", json!({"requestState": state}));
    let (link, request) = world.sent();
    assert_eq!((link, &request["params"]["requestState"]), (b, &json!("s")));

    // Another process with the same keys.
    let mut other = World::seeded(two(), 10);
    let host = read(&mut other, "x://1", json!({"requestState": state}));
    let opened: Vec<usize> = other
        .said
        .iter()
        .filter_map(|said| match said {
            Said::Opened { upstream, .. } => Some(*upstream),
            _ => None,
        })
        .collect();
    assert_eq!(opened, [1], "the second upstream alone");
    let (link, request) = sent(&mut other).remove(0);
    assert_eq!(
        (&request["method"], &request["params"]["requestState"]),
        (&json!("resources/read"), &json!("s"))
    );
    other.result(link, request["id"].as_i64().unwrap(), json!({"resultType": "complete", "contents": []}));
    assert_eq!(other.reply(host)["result"]["contents"], json!([]));
    // Somebody else's state leads nowhere.
    let (mallory, _) =
        other.post("mallory", "resources/read", json!({"uri": "x://1", "requestState": state}), &forms());
    assert_eq!(other.said.last().unwrap().json()["error"]["code"], -32602);
    let _ = mallory;
}

/// A template tells by how it begins, the longest first; a result by the resources that it links to; and of what nobody says
/// anything the first upstream is asked.
#[test]
fn templates_and_links_tell_whose_a_resource_is() {
    let mut world = World::new(two());
    read(&mut world, "t://b/9", json!({}));
    listed(&mut world, "resources/list", "resources", [json!([]), json!([])]);
    let [a, b] = listed(
        &mut world,
        "resources/templates/list",
        "resourceTemplates",
        [
            json!([{"uriTemplate": "t://{+path}"}, {"uriTemplate": "{+any}"}]),
            json!([{"uriTemplate": "t://b/{id}"}]),
        ],
    );
    assert_eq!(world.sent().0, b);
    read(&mut world, "t://c", json!({}));
    assert_eq!(world.sent().0, a);
    let (host, _) = world.post("alice", "tools/call", json!({"name": "b__make"}), &forms());
    let (link, call) = world.sent();
    let content = json!([{"type": "resource_link", "uri": "made://1", "name": "n"}]);
    world.result(link, call["id"].as_i64().unwrap(), json!({"resultType": "complete", "content": content}));
    world.reply(host);
    read(&mut world, "made://1", json!({}));
    assert_eq!(world.sent().0, b);
    read(&mut world, "nobody://1", json!({}));
    listed(&mut world, "resources/list", "resources", [json!([]), json!([])]);
    listed(&mut world, "resources/templates/list", "resourceTemplates", [json!([]), json!([])]);
    assert_eq!(world.sent().0, a);
    // One that did not say what it has may have it: nobody else is asked in its place.
    let host = read(&mut world, "nobody://2", json!({}));
    let asked = sent(&mut world);
    world.result(
        asked[0].0,
        asked[0].1["id"].as_i64().unwrap(),
        json!({"resultType": "complete", "resources": []}),
    );
    world.error(
        asked[1].0,
        asked[1].1["id"].as_i64().unwrap(),
        json!({"code": -32000, "message": "not now"}),
    );
    assert_eq!(world.reply(host)["error"]["code"], -32000);
}

/// The same for a legacy host.
#[test]
fn a_legacy_host_reads_what_it_has_not_listed() {
    let mut world = World::new(two());
    let host = world.host(HostKind::Pipe, "alice");
    world.send(host, &json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "h", "version": "1"}}}));
    for (link, request) in sent(&mut world) {
        let result = json!({"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {"resources": {}}});
        world.result(link, request["id"].as_i64().unwrap(), result);
    }
    world.take();
    world.send(host, &json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    world.send(
        host,
        &json!({"jsonrpc": "2.0", "id": 2, "method": "resources/read", "params": {"uri": "x://1"}}),
    );
    let [_, b] = listed(&mut world, "resources/list", "resources", [json!([]), json!([{"uri": "x://1"}])]);
    let (link, request) = world.sent();
    assert_eq!((link, &request["params"]["uri"]), (b, &json!("x://1")));
    world.result(link, request["id"].as_i64().unwrap(), json!({"resultType": "complete", "contents": []}));
    let reply = world.reply(host);
    assert_eq!((&reply["id"], &reply["result"]["contents"]), (&json!(2), &json!([])));
}

/// Pages are bounded for each upstream and so are their bytes: one that lists without end is left out, the others stay whole.
#[test]
fn a_list_without_end_is_left_out() {
    let mut config = two();
    config.limits.message_bytes = 4_096;
    let mut world = World::new(config);
    let (host, _) = world.post("alice", "tools/list", json!({}), &forms());
    let asked = sent(&mut world);
    let (mut id, mut pages) = (asked[0].1["id"].as_i64().unwrap(), 1);
    let page = json!({"resultType": "complete", "tools": [{"name": "x".repeat(1_000)}], "nextCursor": "c"});
    loop {
        world.result(asked[0].0, id, page.clone());
        let said = sent(&mut world);
        let Some((_, next)) = said.first() else { break };
        id = next["id"].as_i64().unwrap();
        pages += 1;
    }
    assert_eq!(pages, 5);
    world.result(
        asked[1].0,
        asked[1].1["id"].as_i64().unwrap(),
        json!({"resultType": "complete", "tools": [{"name": "y"}]}),
    );
    let reply = world.reply(host);
    assert_eq!(reply["result"]["tools"], json!([{"name": "b__y"}]));
}
