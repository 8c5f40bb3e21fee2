//! Lists, lookups, completion, subscriptions.

use mrtr_core::{
    catalog::{CacheHints, CatalogError, Change, Listen, Prompt, Resource, ResourceTemplate, Tool},
    handler::{Ctx, ResourceResult, RpcError, Service, ToolResult},
    server::Server,
};
use mrtr_tests::world::{Delivered, World, config};
use serde_json::{Value, json};
use std::time::Duration;

use super::{kit, world};

fn list(world: &mut World, method: &str) -> Value {
    let request = world.request(method, json!({}));
    world.send(&request).result().clone()
}

/// R-201, R-204, R-210, B-05: lists in the order of declaration, with hints, the same for everyone at any time.
#[test]
fn r_201_lists() {
    let mut world = world();
    for (method, member, first, count) in [
        (
            "tools/list",
            "tools",
            json!({"name": "plain", "description": "A tool", "inputSchema": {"type": "object"}}),
            17,
        ),
        (
            "prompts/list",
            "prompts",
            json!({"name": "greet", "description": "Greets", "arguments": [
            {"name": "who", "description": "Whom", "required": true}, {"name": "how", "description": "How", "required": false}]}),
            2,
        ),
        ("resources/list", "resources", json!({"name": "plain", "uri": "r:plain"}), 3),
        (
            "resources/templates/list",
            "resourceTemplates",
            json!({"name": "data", "uriTemplate": "t:{id}/data"}),
            1,
        ),
    ] {
        let result = list(&mut world, method);
        assert_eq!(result[member][0], first, "{method}");
        assert_eq!(result[member].as_array().expect("an array").len(), count, "{method}");
        assert_eq!(
            (&result["ttlMs"], &result["cacheScope"]),
            (&json!(60_000), &json!("private")),
            "{method}"
        );
        assert!(result.get("nextCursor").is_none());
        world.principal = None;
        world.capabilities = json!({});
        world.pass(Duration::from_secs(1_000));
        assert_eq!(list(&mut world, method), result, "{method}");
    }
    let mut world = World::of(kit(config()).hints(CacheHints::new(Duration::from_millis(1_500), true)));
    for method in
        ["tools/list", "prompts/list", "resources/list", "resources/templates/list", "server/discover"]
    {
        let result = list(&mut world, method);
        assert_eq!((&result["ttlMs"], &result["cacheScope"]), (&json!(1_500), &json!("public")), "{method}");
    }
}

/// R-029: there is one page, so any cursor is one that was never given out.
#[test]
fn r_029_cursors() {
    let mut world = world();
    for method in ["tools/list", "prompts/list", "resources/list", "resources/templates/list"] {
        for cursor in [json!("x"), json!(""), json!(null), json!(5)] {
            let request = world.request(method, json!({"cursor": cursor}));
            assert_eq!(world.send(&request).error().0, -32602, "{method} {cursor}");
        }
    }
}

/// R-208, R-209: schemas are passed on as they are, `$ref`s to the network and unknown dialects among them: nobody
/// follows them here.
#[test]
fn r_208_schemas_are_passed_on() {
    let schema = r#"{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{"a":{"$ref":"https://example.com/x.json"},"z":{"const":1.0e2}},"$defs":{},"if":true,"unevaluatedProperties":false}"#;
    let tool = Tool::new("t", "d")
        .title("T")
        .input_schema(schema)
        .output_schema(r#"{"type":"object"}"#)
        .annotations(r#"{"readOnlyHint":true}"#);
    let service = Service::new(Server::new(config()))
        .tool(tool, |_: Ctx| async move { Ok::<_, RpcError>(ToolResult::text("ran")) });
    let mut world = World::of(service.expect("a valid tool"));
    let request = world.request("tools/list", json!({})).to_string();
    let text = String::from_utf8(world.send_bytes(request.as_bytes())).expect("UTF-8");
    assert!(text.contains(schema), "{text}");
    let result = list(&mut world, "tools/list");
    assert_eq!(result["tools"][0]["title"], "T");
    assert_eq!(result["tools"][0]["annotations"], json!({"readOnlyHint": true}));
    assert_eq!(world.call(json!({"arguments": {"anything": [1]}})).text(), "ran");
}

/// R-174, R-207: what cannot be offered is refused when it is declared.
#[test]
fn what_cannot_be_offered() {
    let handler = |_: Ctx| async move { Ok::<_, RpcError>(ToolResult::new()) };
    let resource = |_: Ctx| async move { Ok::<_, RpcError>(ResourceResult::default()) };
    let new = || Service::new(Server::new(config()));
    for name in ["", "a b", "é", "a#b", &"x".repeat(65)] {
        assert!(matches!(new().tool(Tool::new(name, ""), handler), Err(CatalogError::Name(_))), "{name}");
    }
    assert!(new().tool(Tool::new("a/b.c_D-9".repeat(7), ""), handler).is_ok());
    for schema in ["", "5", "[]", "{", "{\"a\":1,\"a\":2}", "true"] {
        assert!(
            matches!(
                new().tool(Tool::new("t", "").input_schema(schema), handler),
                Err(CatalogError::Schema { .. })
            ),
            "{schema}"
        );
        assert!(
            matches!(
                new().tool(Tool::new("t", "").annotations(schema), handler),
                Err(CatalogError::Schema { .. })
            ),
            "{schema}"
        );
    }
    let header = r#"{"type":"object","properties":{"a":{"type":"object","x-mcp-header":"A"}}}"#;
    assert!(matches!(
        new().tool(Tool::new("t", "").input_schema(header), handler),
        Err(CatalogError::Header { .. })
    ));
    let twice =
        new().tool(Tool::new("t", ""), handler).and_then(|service| service.tool(Tool::new("t", ""), handler));
    assert!(matches!(twice, Err(CatalogError::Taken(name)) if name == "t"));
    // A prompt and a tool may share a name.
    assert!(
        new()
            .tool(Tool::new("t", ""), handler)
            .and_then(|service| service.prompt(Prompt::new("t", ""), handler))
            .is_ok()
    );
    assert!(new().resource(Resource::new("", "x"), resource).is_err());
    for template in ["plain", "a{", "a{}", "a{b", "a}b{c}", "a{b}{c}", "a{b c}", "a{+b}", "a{b*}"] {
        let found = new().template(ResourceTemplate::new(template, "x"), resource);
        assert!(matches!(found, Err(CatalogError::Template(_))), "{template}");
    }
}

/// R-029, R-207: prompts and their arguments.
#[test]
fn r_029_prompt_arguments() {
    let mut world = world();
    for (params, said) in [
        (json!({"name": "greet", "arguments": {"who": "you"}}), Ok("Greet you")),
        (json!({"name": "greet", "arguments": {"who": "you", "more": 1}}), Ok("Greet you")),
        (json!({"name": "greet", "arguments": {"how": "warmly"}}), Err("\"who\" is missing")),
        (json!({"name": "greet", "arguments": {"who": null}}), Err("\"who\" is missing")),
        (json!({"name": "greet", "arguments": {}}), Err("\"who\" is missing")),
        (json!({"name": "greet"}), Err("\"who\" is missing")),
        (json!({"name": "greet", "arguments": {"who": 5}}), Err("arguments.who")),
        (json!({"name": "Greet", "arguments": {"who": "you"}}), Err("Unknown prompt: Greet")),
    ] {
        let request = world.request("prompts/get", params.clone());
        let reply = world.send(&request);
        match said {
            Ok(text) => assert_eq!(
                reply.result()["messages"][0],
                json!({"role": "user", "content": {"type": "text", "text": text}})
            ),
            Err(part) => {
                assert!(reply.error().0 == -32602 && reply.error().1.contains(part), "{params}: {reply:?}")
            }
        }
    }
}

/// Completion: what was offered and begins with what was typed, at most a hundred.
#[test]
fn completion() {
    let prompt = Prompt::new("p", "P")
        .argument("many", "")
        .completions((0..150).map(|n| format!("v{n}")))
        .argument("none", "");
    let service = kit(config())
        .prompt(prompt, |_: Ctx| async move { Ok::<_, RpcError>(ToolResult::new()) })
        .expect("valid");
    let mut world = World::of(service);
    let mut complete = |reference: Value, argument: Value| {
        let request = world.request("completion/complete", json!({"ref": reference, "argument": argument}));
        world.send(&request)
    };
    let prompt = |name: &str| json!({"type": "ref/prompt", "name": name});
    let argument = |name: &str, value: &str| json!({"name": name, "value": value});
    for (reference, typed, values, total, more) in [
        (prompt("greet"), argument("how", ""), vec!["warmly", "coldly"], 2, false),
        (prompt("greet"), argument("how", "co"), vec!["coldly"], 1, false),
        (prompt("greet"), argument("how", "x"), vec![], 0, false),
        (prompt("greet"), argument("who", ""), vec![], 0, false),
        (prompt("greet"), argument("nobody", ""), vec![], 0, false),
        (json!({"type": "ref/resource", "uri": "t:{id}/data"}), argument("id", ""), vec![], 0, false),
        (
            prompt("p"),
            argument("many", "v14"),
            vec!["v14", "v140", "v141", "v142", "v143", "v144", "v145", "v146", "v147", "v148", "v149"],
            11,
            false,
        ),
    ] {
        let reply = complete(reference, typed);
        assert_eq!(reply.result()["completion"], json!({"values": values, "total": total, "hasMore": more}));
    }
    let reply = complete(prompt("p"), argument("many", ""));
    assert_eq!(reply.result()["completion"]["values"].as_array().expect("an array").len(), 100);
    assert_eq!(
        (&reply.result()["completion"]["total"], &reply.result()["completion"]["hasMore"]),
        (&json!(150), &json!(true))
    );
    for (reference, argument) in [
        (prompt("nobody"), argument("how", "")),
        (json!({"type": "ref/tool", "name": "greet"}), argument("how", "")),
        (json!({"type": "ref/prompt"}), argument("how", "")),
        (json!("greet"), argument("how", "")),
        (json!(null), argument("how", "")),
        (prompt("greet"), json!({"name": "how"})),
        (prompt("greet"), json!({"value": ""})),
        (prompt("greet"), json!({"name": "how", "value": 5})),
        (prompt("greet"), json!(null)),
    ] {
        assert_eq!(complete(reference, argument).error().0, -32602);
    }
}

fn listening(world: &mut World, id: Value, notifications: Value) -> Listen {
    let mut request = world.request("subscriptions/listen", json!({"notifications": notifications}));
    request["id"] = id;
    match world.deliver(request.to_string().as_bytes(), None) {
        Delivered::Listen(listen) => listen,
        other => panic!("{other:?}"),
    }
}

fn message(write: impl FnOnce(&mut Vec<u8>)) -> Value {
    let mut out = Vec::new();
    write(&mut out);
    assert!(!out.contains(&b'\n'));
    serde_json::from_slice(&out).expect("JSON")
}

/// R-039, R-205, R-206: a subscription's messages, tagged with its id in its own type, and only what was asked for.
#[test]
fn r_205_subscriptions() {
    let mut world = World::of(kit(config()).announce_changes());
    for id in [json!(5), json!("5"), json!("é\"")] {
        let wanted = json!({"toolsListChanged": true, "promptsListChanged": false, "resourceSubscriptions": ["r:plain", "r:\n"], "later": true});
        let listen = listening(&mut world, id.clone(), wanted);
        let meta = json!({"io.modelcontextprotocol/subscriptionId": id});
        assert_eq!(
            message(|out| listen.acknowledge(out)),
            json!({
                "jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged",
                "params": {"notifications": {"toolsListChanged": true, "resourceSubscriptions": ["r:plain", "r:\n"]}, "_meta": meta},
            })
        );
        assert_eq!(
            message(|out| assert!(listen.change(&Change::Tools, out))),
            json!({
            "jsonrpc": "2.0", "method": "notifications/tools/list_changed", "params": {"_meta": meta}})
        );
        assert_eq!(
            message(|out| assert!(listen.change(&Change::Resource("r:\n".into()), out))),
            json!({
            "jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {"uri": "r:\n", "_meta": meta}})
        );
        for change in [Change::Prompts, Change::Resources, Change::Resource("r:hints".into())] {
            let mut out = Vec::new();
            assert!(!listen.change(&change, &mut out) && out.is_empty());
        }
        let mut out = Vec::new();
        listen.close(&mut out);
        let closed = mrtr_tests::world::lawful(&out);
        assert_eq!(
            (&closed["id"], &closed["result"]["_meta"]["io.modelcontextprotocol/subscriptionId"]),
            (&id, &id)
        );
        assert_eq!(closed["result"]["resultType"], "complete");
    }
    let listen = listening(&mut world, json!(1), json!({}));
    assert_eq!(message(|out| listen.acknowledge(out))["params"]["notifications"], json!({}));
    let all = json!({"toolsListChanged": true, "promptsListChanged": true, "resourcesListChanged": true});
    let listen = listening(&mut world, json!(1), all.clone());
    assert_eq!(message(|out| listen.acknowledge(out))["params"]["notifications"], all);
}

/// R-030, R-205: subscriptions nobody announced are unknown; filters of the wrong shape, or without end, are refused.
#[test]
fn r_205_subscriptions_that_are_refused() {
    let request = |world: &mut World, params: Value| {
        let request = world.request("subscriptions/listen", params);
        world.send(&request).error().0
    };
    assert_eq!(request(&mut world(), json!({"notifications": {}})), -32601);
    let mut world = World::of(kit(config()).announce_changes());
    for params in [
        json!({}),
        json!({"notifications": null}),
        json!({"notifications": []}),
        json!({"notifications": true}),
        json!({"notifications": {"resourceSubscriptions": "r:plain"}}),
        json!({"notifications": {"resourceSubscriptions": [5]}}),
        json!({"notifications": {"resourceSubscriptions": vec!["x"; 1_001]}}),
    ] {
        assert_eq!(request(&mut world, params), -32602);
    }
    listening(&mut world, json!(1), json!({"resourceSubscriptions": vec!["x"; 1_000]}));
}

/// R-207: which uris a template stands for, and what its parts are.
#[test]
fn r_207_templates() {
    let match_of = |template: &str, uri: &str| -> Option<String> {
        let service = Service::new(Server::new(config())).template(
            ResourceTemplate::new(template, "x"),
            |ctx: Ctx| async move {
                let parts = ["a", "b"].map(|name| ctx.part(name).unwrap_or("-").to_owned()).join(" ");
                Ok::<_, RpcError>(ResourceResult::text(ctx.target(), "text/plain", &parts))
            },
        );
        let mut world = World::of(service.expect("a template"));
        let request = world.request("resources/read", json!({"uri": uri}));
        let reply = world.send(&request);
        if reply.0.get("error").is_some() {
            assert_eq!((reply.error().0, reply.data()), (-32602, &json!({"uri": uri})));
            return None;
        }
        Some(reply.result()["contents"][0]["text"].as_str().expect("text").to_owned())
    };
    for (template, uri, parts) in [
        ("t:{a}", "t:1", Some("1 -")),
        ("t:{a}", "t:", None),
        ("t:{a}", "t:1/2", None),
        ("t:{a}", "T:1", None),
        ("t:{a}", "t:%2F..", Some("%2F.. -")),
        ("t:{a}/data", "t:123/data", Some("123 -")),
        ("t:{a}/data", "t:/data", None),
        ("t:{a}/data", "t:1/2/data", None),
        ("t:{a}/data", "t:1/data/", None),
        ("t:{a}/{b}", "t:1/2", Some("1 2")),
        ("t:{a}/{b}", "t:1/", None),
        ("t:{a}-{b}", "t:1-2-3", Some("1 2-3")),
        ("t:{a}-{b}", "t:--1", Some("- 1")),
        ("{a}:x", "y:x", Some("y -")),
        // A part stands for any text: what follows it in the template may also stand inside it.
        ("t:{a}.txt", "t:notes.txt.txt", Some("notes.txt -")),
        ("t:{a}-{b}.txt", "t:1-2.txt.txt", Some("1 2.txt")),
        ("t:{a}x", "t:xx", Some("x -")),
        ("t:{a}x", "t:x", None),
        // Uris should be ASCII; those that are not break nothing.
        ("t:{a}/data", "t:é/data", Some("é -")),
        ("t:{a}/data", "t:日本/data", Some("日本 -")),
        ("t:{a}é", "t:éé", Some("é -")),
        ("t:{a}", "t:😀", Some("😀 -")),
    ] {
        assert_eq!(match_of(template, uri).as_deref(), parts, "{template} {uri}");
    }
}
