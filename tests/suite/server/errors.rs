//! Error codes, their data, and what they are on HTTP.

use mrtr_core::{
    ErrorCode,
    catalog::Tool,
    handler::{Ctx, RpcError, Service, ToolResult},
    http::ReplyClass,
    server::Server,
};
use mrtr_tests::world::{World, config};
use serde_json::{Value, json};

use super::{call, post, tool_call, world};

/// R-019… …, G-01: each fault with its code, its class, its status and its data.
#[test]
fn r_019_r_031_codes_classes_and_data() {
    let mut world = world();
    let meta = "io.modelcontextprotocol";
    let mut request = |method: &str, params: Value, edit: &dyn Fn(&mut Value)| {
        let mut message = world.request(method, params);
        edit(&mut message);
        message.to_string()
    };
    let same = |_: &mut Value| {};
    let no_capabilities = |message: &mut Value| {
        message["params"]["_meta"][format!("{meta}/clientCapabilities")] = json!({});
    };
    let old = |message: &mut Value| {
        message["params"]["_meta"][format!("{meta}/protocolVersion")] = json!("2025-11-25");
    };
    let no_meta = |message: &mut Value| {
        message["params"].as_object_mut().expect("an object").remove("_meta");
    };
    let table = [
        ("{".to_owned(), -32700, ReplyClass::ParseError, 400, Value::Null),
        ("{}".to_owned(), -32600, ReplyClass::InvalidRequest, 400, Value::Null),
        (
            request("tools/call", json!({"name": "plain"}), &no_meta),
            -32602,
            ReplyClass::MetaInvalid,
            400,
            Value::Null,
        ),
        (request("no/such", json!({}), &same), -32601, ReplyClass::MethodNotFound, 404, Value::Null),
        (
            request("tools/call", json!({"name": "form"}), &no_capabilities),
            -32021,
            ReplyClass::MissingCapability,
            400,
            json!({"requiredCapabilities": {"elicitation": {}}}),
        ),
        (
            request("tools/call", json!({"name": "declared"}), &no_capabilities),
            -32021,
            ReplyClass::MissingCapability,
            400,
            json!({"requiredCapabilities": {"elicitation": {}}}),
        ),
        (
            request("tools/call", json!({"name": "plain"}), &old),
            -32022,
            ReplyClass::UnsupportedVersion,
            400,
            json!({"supported": ["2026-07-28"], "requested": "2025-11-25"}),
        ),
        // What has no rule of its own is an answer like any other: 200.
        (
            request("tools/call", json!({"name": "nobody"}), &same),
            -32602,
            ReplyClass::HandlerError,
            200,
            Value::Null,
        ),
        (
            request("prompts/get", json!({"name": "nobody"}), &same),
            -32602,
            ReplyClass::HandlerError,
            200,
            Value::Null,
        ),
        (
            request("resources/read", json!({"uri": "r:no\u{e9}"}), &same),
            -32602,
            ReplyClass::HandlerError,
            200,
            json!({"uri": "r:no\u{e9}"}),
        ),
        (
            request("prompts/get", json!({"name": "greet"}), &same),
            -32602,
            ReplyClass::HandlerError,
            200,
            Value::Null,
        ),
        (
            request("tools/call", json!({"name": "breaks"}), &same),
            -32603,
            ReplyClass::HandlerError,
            200,
            Value::Null,
        ),
        (
            request("tools/list", json!({"cursor": "x"}), &same),
            -32602,
            ReplyClass::HandlerError,
            200,
            Value::Null,
        ),
        (
            request("tools/call", json!({"name": "form", "requestState": "x"}), &same),
            -32602,
            ReplyClass::HandlerError,
            200,
            Value::Null,
        ),
    ];
    for (text, code, class, status, data) in table {
        let (found, reply) = super::post(&mut world, &text);
        assert_eq!(reply["error"]["code"], code, "{text}: {reply}");
        assert_eq!((found, found.status()), (class, status), "{text}");
        assert_eq!(reply["error"].get("data").unwrap_or(&Value::Null), &data, "{text}");
    }
}

/// methods of other revisions, and methods of capabilities that are not offered, are unknown here, also with
/// modern `_meta`.
#[test]
fn r_030_methods_that_are_not_there() {
    let mut full = world();
    let mut bare = World::of(Service::new(Server::new(config())));
    let removed = [
        "initialize",
        "ping",
        "logging/setLevel",
        "resources/subscribe",
        "resources/unsubscribe",
        "tasks/get",
        "tasks/result",
        "tasks/list",
        "tasks/update",
        "elicitation/create",
        "sampling/createMessage",
        "roots/list",
        "",
        "TOOLS/CALL",
        "tools/call ",
        "notifications/cancelled",
        "subscriptions/listen",
    ];
    let gated =
        ["tools/list", "prompts/list", "resources/list", "resources/templates/list", "completion/complete"];
    for (is_full, methods) in [(true, &removed[..]), (false, &removed[..]), (false, &gated[..])] {
        let world = if is_full { &mut full } else { &mut bare };
        for method in methods {
            let request = world.request(method, json!({"inputResponses": 5, "requestState": 7})).to_string();
            let (class, reply) = post(world, &request);
            assert_eq!((class.status(), reply["error"]["code"].as_i64()), (404, Some(-32601)), "{method}");
        }
    }
    // What is gated but asks is answered by name: nothing of that name is there.
    for (method, params) in [("tools/call", json!({"name": "t"})), ("resources/read", json!({"uri": "t"}))] {
        let request = bare.request(method, params);
        assert_eq!(bare.send(&request).error().0, -32602);
    }
}

/// a handler's own error goes out as it is, with its data, and is a JSON-RPC error, not a tool result.
#[test]
fn r_004_a_handlers_own_error() {
    let mut world = World::new(|_: Ctx| async move {
        let error = RpcError::new(ErrorCode::new(4711), "No more paper").with_data(&json!({"tray": [1, 2]}));
        Err::<ToolResult, _>(error.expect("JSON"))
    });
    let reply = world.call(json!({}));
    assert_eq!(reply.error(), (4711, "No more paper"));
    assert_eq!(reply.data(), &json!({"tray": [1, 2]}));
}

/// B-52: a missing capability is an error, not a tool result with `isError`.
#[test]
fn b_52_a_missing_capability_is_no_tool_result() {
    let mut world = world();
    world.capabilities = json!({});
    for tool in ["form", "confirm", "url", "sample", "roots", "declared"] {
        assert_eq!(call(&mut world, tool, json!({})).error().0, -32021, "{tool}");
    }
}

/// names are shown cut short, and never break the reply.
#[test]
fn r_207_unknown_names_are_shown_cut_short() {
    let mut world = world();
    let long = "\u{1f600}\"\\\n".repeat(500);
    for (method, member) in [("tools/call", "name"), ("prompts/get", "name"), ("resources/read", "uri")] {
        let request = world.request(method, json!({member: long}));
        let reply = world.send(&request);
        assert_eq!(reply.error().0, -32602);
        assert!(reply.error().1.len() < 400, "{}", reply.error().1.len());
    }
}

/// R-029, B-45: parameters of the wrong shape are `-32602` that names the member.
#[test]
fn r_029_parameters_of_the_wrong_shape() {
    let mut world = world();
    let wrong = [json!(null), json!(5), json!("x"), json!([]), json!(true)];
    for value in &wrong {
        for (method, target, member) in [
            ("tools/call", json!({"name": "form"}), "arguments"),
            ("tools/call", json!({"name": "form"}), "inputResponses"),
            ("prompts/get", json!({"name": "ask"}), "inputResponses"),
            ("prompts/get", json!({"name": "ask"}), "arguments"),
            ("resources/read", json!({"uri": "r:asks"}), "inputResponses"),
        ] {
            let mut params = target;
            params[member] = value.clone();
            let request = world.request(method, params);
            let reply = world.send(&request);
            assert_eq!(reply.error().0, -32602, "{request}");
            assert!(reply.error().1.contains(member), "{reply:?}");
        }
    }
    for value in [json!(null), json!(5), json!({}), json!([]), json!(true)] {
        for (method, member) in [("tools/call", "name"), ("prompts/get", "name"), ("resources/read", "uri")] {
            let request = world.request(method, json!({member: value}));
            assert_eq!(world.send(&request).error().0, -32602);
            let request = world.request(method, json!({}));
            assert_eq!(world.send(&request).error().0, -32602);
        }
    }
}

/// R-020…R-022: a handler that sends one of the codes with a status of its own gets that status.
#[test]
fn r_021_codes_with_a_status_keep_it_when_a_handler_sends_them() {
    let service = Service::new(Server::new(config())).tool(Tool::new("t", "A tool"), |_: Ctx| async move {
        let error = RpcError::new(ErrorCode::MISSING_CAPABILITY, "Needs sampling");
        Err::<ToolResult, RpcError>(
            error.with_data(&json!({"requiredCapabilities": {"sampling": {}}})).expect("JSON"),
        )
    });
    let mut world = World::of(service.expect("a valid tool"));
    let message = tool_call(&mut world, "t", json!({})).to_string();
    let (class, reply) = post(&mut world, &message);
    assert_eq!((class.status(), reply["error"]["code"].as_i64()), (400, Some(-32021)));
}

/// codes of 2025-11-25, and reserved ones without a meaning, are not sent in a modern exchange, even if a
/// handler written for both eras gives them.
#[test]
fn r_024_codes_of_the_older_era_are_not_sent() {
    for code in [ErrorCode::LEGACY_RESOURCE_NOT_FOUND, ErrorCode::LEGACY_URL_REQUIRED] {
        let mut world =
            World::new(move |_: Ctx| async move { Err::<ToolResult, _>(RpcError::new(code, "Gone")) });
        let found = world.call(json!({})).error().0;
        assert!(found == -32602 || found == -32603, "{code} went out as {found}");
    }
    for (code, sent) in [
        (-32019, -32019),
        (-32020, -32020),
        (-32023, -32603),
        (-32050, -32603),
        (-32099, -32603),
        (-32100, -32100),
    ] {
        let mut world = World::new(move |_: Ctx| async move {
            Err::<ToolResult, _>(RpcError::new(ErrorCode::new(code), "Own"))
        });
        assert_eq!(world.call(json!({})).error().0, sent, "{code}");
    }
}

/// `-32021` and `-32022` have their `data`, or do not go out. The status is that of what goes out.
#[test]
fn r_022_codes_that_need_data_are_not_sent_without() {
    let required = json!({"requiredCapabilities": {"roots": {}}});
    let versions = json!({"supported": ["2026-07-28"], "requested": "v9"});
    for (code, data, sent) in [
        (-32021, required.clone(), (400, -32021)),
        (-32021, Value::Null, (200, -32603)),
        (-32021, json!({"requiredCapabilities": ["roots"]}), (200, -32603)),
        (-32022, versions, (400, -32022)),
        (-32022, Value::Null, (200, -32603)),
        (-32022, json!({"supported": ["2026-07-28"]}), (200, -32603)),
        (-32022, required, (200, -32603)),
    ] {
        let given = data.clone();
        let service = Service::new(Server::new(config())).tool(Tool::new("t", "A tool"), move |_: Ctx| {
            let error = RpcError::new(ErrorCode::new(code), "Own").with_data(&given).expect("JSON");
            async move { Err::<ToolResult, RpcError>(error) }
        });
        let mut world = World::of(service.expect("a valid tool"));
        let message = tool_call(&mut world, "t", json!({})).to_string();
        let (class, reply) = post(&mut world, &message);
        assert_eq!(
            (class.status(), reply["error"]["code"].as_i64()),
            (sent.0, Some(sent.1)),
            "{code} {data}"
        );
    }
}
