//! Versions, discovery, `initialize`.

use mrtr_core::{http::ReplyClass, wire::Version};
use mrtr_tests::world::{World, config};
use serde_json::json;

use super::{kit, post, reply, world};

const VERSION: &str = "io.modelcontextprotocol/protocolVersion";

/// R-022, R-044: a version that is not served is `-32022` with what is and what was asked for, on every method, each
/// request for itself.
#[test]
fn r_044_versions_that_are_not_served() {
    let mut world = world();
    for method in ["tools/call", "tools/list", "server/discover", "no/such"] {
        for version in ["2025-11-25", "2024-11-05", "2099-01-01", "", "2026-07-28 ", "v1\"\\\n"] {
            let mut request = world.request(method, json!({"name": "plain"}));
            request["params"]["_meta"][VERSION] = json!(version);
            let (class, reply) = post(&mut world, &request.to_string());
            assert_eq!(
                (class, reply["error"]["code"].as_i64()),
                (ReplyClass::UnsupportedVersion, Some(-32022)),
                "{version}"
            );
            assert_eq!(reply["error"]["data"], json!({"supported": ["2026-07-28"], "requested": version}));
        }
        // The next request is judged on its own.
        let request = world.request("tools/call", json!({"name": "plain"}));
        assert_eq!(world.send(&request).text(), "plain");
    }
}

/// R-022: an endless version is not echoed without end.
#[test]
fn r_022_a_long_version_is_echoed_cut_short() {
    let mut world = world();
    let mut request = world.request("tools/list", json!({}));
    request["params"]["_meta"][VERSION] = json!("9".repeat(100_000));
    let (_, reply) = post(&mut world, &request.to_string());
    assert!(reply.to_string().len() < 1_000);
}

/// R-052, R-053: `initialize` without modern `_meta` is told which versions are served; with it, it is unknown here.
#[test]
fn r_053_initialize() {
    let mut world = world();
    for params in [
        json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}),
        json!({"protocolVersion": "2025-11-25", "_meta": {"progressToken": 1}}),
        json!({"protocolVersion": "2025-11-25", "_meta": null}),
        json!({"protocolVersion": 5}),
        json!({}),
    ] {
        let requested = params["protocolVersion"].as_str().unwrap_or("");
        let message =
            json!({"jsonrpc": "2.0", "id": "i", "method": "initialize", "params": params}).to_string();
        let (class, reply) = post(&mut world, &message);
        assert_eq!(class, ReplyClass::UnsupportedVersion);
        assert_eq!(reply["id"], "i");
        assert_eq!(reply["error"]["code"], -32022);
        assert_eq!(reply["error"]["data"], json!({"supported": ["2026-07-28"], "requested": requested}));
    }
    let request = world.request("initialize", json!({"protocolVersion": "2026-07-28"})).to_string();
    let (class, reply) = post(&mut world, &request);
    assert_eq!((class.status(), reply["error"]["code"].as_i64()), (404, Some(-32601)));
    let (class, _) = post(&mut world, r#"{"jsonrpc":"2.0","id":1,"method":"initialize"}"#);
    assert_eq!(class, ReplyClass::UnsupportedVersion);
}

/// R-053: a peer of an older era that goes on without having opened here, after a deploy say, is told which versions are
/// served instead of what its `_meta` lacks; a modern one is told that.
#[test]
fn r_053_an_older_version_in_the_header_alone() {
    let mut world = world();
    for (version, params, expected) in [
        ("2025-06-18", json!({}), -32022),
        ("2025-11-25", json!({"_meta": {"progressToken": 1}}), -32022),
        ("2026-07-28", json!({}), -32602),
    ] {
        let message =
            json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": params}).to_string();
        let headers: &[(&str, &str)] = &[("mcp-protocol-version", version), ("mcp-method", "tools/list")];
        let (class, reply) = reply(world.deliver(message.as_bytes(), Some(headers)));
        assert_eq!((class.status(), reply["error"]["code"].as_i64()), (400, Some(expected)), "{version}");
        if expected == -32022 {
            assert_eq!(reply["error"]["data"], json!({"supported": ["2026-07-28"], "requested": version}));
        }
    }
}

/// R-046, R-199: discovery says what is there and only that.
#[test]
fn r_046_discovery() {
    let mut world = world();
    let request = world.request("server/discover", json!({}));
    let found = world.send(&request);
    assert_eq!(
        found.result(),
        &json!({
            "resultType": "complete",
            "supportedVersions": ["2026-07-28"],
            "capabilities": {"tools": {}, "prompts": {}, "resources": {}, "logging": {}, "completions": {}},
            "ttlMs": 60_000, "cacheScope": "private",
            "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "srv", "version": "1"}},
        })
    );
    let service = kit(config()).instructions("Ask \"nicely\"").announce_changes();
    let mut world = World::of(service);
    let request = world.request("server/discover", json!({}));
    let found = world.send(&request);
    assert_eq!(found.result()["instructions"], "Ask \"nicely\"");
    assert_eq!(found.result()["capabilities"]["tools"], json!({"listChanged": true}));
    assert_eq!(found.result()["capabilities"]["prompts"], json!({"listChanged": true}));
    assert_eq!(found.result()["capabilities"]["resources"], json!({"listChanged": true, "subscribe": true}));
    // Nothing to offer: nothing announced but logs, which any later handler may send.
    let mut bare = World::of(mrtr_core::handler::Service::new(mrtr_core::server::Server::new(
        mrtr_tests::world::config(),
    )));
    let request = bare.request("server/discover", json!({}));
    assert_eq!(bare.send(&request).result()["capabilities"], json!({"logging": {}}));
}

/// R-044, R-052: a server that also lists older versions does not serve their names the modern way: a request with
/// `_meta` is of the modern era or not served at all.
#[test]
fn r_052_older_versions_are_never_served_the_modern_way() {
    let mut config = config();
    config.versions = vec![Version::V2026_07_28, Version::V2025_11_25];
    let mut world = World::of(kit(config));
    let mut request = world.request("tools/call", json!({"name": "plain"}));
    request["params"]["_meta"][VERSION] = json!("2025-11-25");
    let (class, reply) = post(&mut world, &request.to_string());
    assert_eq!(
        (class, reply["error"]["code"].as_i64()),
        (ReplyClass::UnsupportedVersion, Some(-32022)),
        "{reply}"
    );
    let discover = world.request("server/discover", json!({}));
    assert_eq!(world.send(&discover).result()["supportedVersions"], json!(["2026-07-28", "2025-11-25"]));
}
