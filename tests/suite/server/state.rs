//! Sealed states as they cross the server.

use std::time::Duration;

use mrtr_core::{
    catalog::{Prompt, Resource, ResourceTemplate, Tool},
    handler::{Content, Ctx, Output, PromptResult, ResourceResult, RpcError, Service, ToolResult},
    http::ReplyClass,
    seal::{KeyRing, Sealer, Secret, Ttl},
    server::{Config, Server},
    wire::{AskingMethod, Implementation},
};
use mrtr_tests::world::{Reply, SECRET, World, accept, config, service};
use serde_json::{Value, json};

use super::{call, kit, number, post, retry, shown, tool_call, world};

/// The one sentence for every refused state (G-11).
const REFUSED: (i64, &str) = (-32602, "Invalid or expired requestState");

fn answers() -> Value {
    json!({"n": accept(json!({"n": 1}))})
}

fn keyed(secret: &[u8], audience: &str) -> World {
    let ring = KeyRing::new(Secret::from_bytes(secret).expect("32 bytes"));
    World::of(kit(Config::new(Implementation::new("srv", "1"), Sealer::encrypted(&ring, audience))))
}

/// G-04, G-05, G-12, B-45, trap 26: a state that is no string is named; one that is not ours gets the one sentence,
/// on tools that ask and on tools that never do. Nothing runs.
#[test]
fn trap_26_states_that_are_none() {
    let mut world = world();
    for tool in ["plain", "form", "fails", "breaks", "url"] {
        for state in [json!(null), json!(5), json!({}), json!([]), json!(true)] {
            let reply = call(&mut world, tool, json!({"requestState": state, "inputResponses": answers()}));
            assert_eq!(
                reply.error(),
                (-32602, "Invalid params: requestState is not a string"),
                "{tool} {state}"
            );
        }
        for state in ["", " ", "garbage", "\u{0}", "{\"a\":1}", "AQ", &"A".repeat(200), &"A".repeat(100_000)]
        {
            let message =
                tool_call(&mut world, tool, json!({"requestState": state, "inputResponses": answers()}));
            let (class, reply) = post(&mut world, &message.to_string());
            assert_eq!(Reply(reply).error(), REFUSED, "{tool}");
            assert_eq!(class, ReplyClass::HandlerError);
        }
    }
    for (method, params) in [
        ("prompts/get", json!({"name": "greet", "arguments": {"who": "x"}})),
        ("resources/read", json!({"uri": "r:plain"})),
    ] {
        let mut params = params;
        params["requestState"] = json!("garbage");
        let request = world.request(method, params);
        assert_eq!(world.send(&request).error(), REFUSED);
    }
}

/// R-070, R-071, trap 20: every prefix, every other character at every place, anything put before or after it.
#[test]
fn r_071_changed_states() {
    let mut world = world();
    let first = call(&mut world, "form", json!({}));
    let state = first.state();
    let mut refused = |changed: String| {
        let reply = call(&mut world, "form", json!({"requestState": changed, "inputResponses": answers()}));
        assert_eq!(reply.error(), REFUSED, "{changed}");
    };
    for at in 0..state.len() {
        refused(state[..at].to_owned());
        let other = if &state[at..=at] == "A" { "B" } else { "A" };
        refused(format!("{}{other}{}", &state[..at], &state[at + 1..]));
    }
    for (before, after) in [
        ("", "-TAMPERED"),
        ("", "="),
        ("", "=="),
        ("", "\n"),
        (" ", ""),
        ("", " "),
        ("", "A"),
        ("A", ""),
        ("", "AAAA"),
    ] {
        refused(format!("{before}{state}{after}"));
    }
    refused(state.replace('-', "+").replace('_', "/") + "+");
    refused(state.chars().rev().collect());
    refused(state.to_uppercase());
    refused(format!("{state}{state}"));
    assert_eq!(retry(&mut world, "form", &first, answers()).text(), "1");
}

/// R-072, R-126, G-10, B-14…B-16: another principal, and none at all.
#[test]
fn r_072_foreign_principals() {
    let principals = [
        None,
        Some(b"".to_vec()),
        Some(b"alice".to_vec()),
        Some(b"bob".to_vec()),
        Some(b"alice\0".to_vec()),
        Some(b"\0".to_vec()),
    ];
    let mut world = world();
    for mine in &principals {
        world.principal = mine.clone();
        let first = call(&mut world, "form", json!({}));
        for theirs in &principals {
            world.principal = theirs.clone();
            let reply = retry(&mut world, "form", &first, answers());
            if mine == theirs {
                assert_eq!(reply.text(), "1");
            } else {
                assert_eq!(reply.error(), REFUSED, "{mine:?} {theirs:?}");
            }
        }
    }
}

/// R-074, B-12, trap 23, trap 24, G-09: another tool, other arguments, another method; the same arguments however they
/// are written.
#[test]
fn r_074_other_requests() {
    let mut world = World::of(service(config(), |ctx: Ctx| async move {
        Ok(ToolResult::text(shown(number(&ctx, "n").await)))
    }));
    let send = |world: &mut World, method: &str, target: &str, arguments: &str, more: Option<&str>| {
        let member = if method == "resources/read" { "uri" } else { "name" };
        let mut request = world.request(method, json!({member: target}));
        if let Some(state) = more {
            request["params"]["requestState"] = json!(state);
            request["params"]["inputResponses"] = answers();
        }
        let mut text = request.to_string();
        if !arguments.is_empty() {
            text = text.replacen("\"params\":{", &format!("\"params\":{{\"arguments\":{arguments},"), 1);
        }
        Reply(mrtr_tests::world::lawful(&world.send_bytes(text.as_bytes())))
    };
    let transfer = r#"{"amount":10,"to":"é","list":[1,2]}"#;
    let first = send(&mut world, "tools/call", "t", transfer, None);
    let state = first.state().to_owned();
    for arguments in [
        transfer,
        r#"{"list":[1,2],"to":"\u00e9","amount":10}"#,
        r#"{"amount":10.0,"to":"é","list":[1e0,2]}"#,
        "{ \"amount\" : 1e1,\t\"to\":\"é\",\n\"list\":[1,2.00] }",
    ] {
        let reply = send(&mut world, "tools/call", "t", arguments, Some(&state));
        assert_eq!(reply.result()["content"][0]["text"], "1", "{arguments}");
    }
    for (method, target, arguments) in [
        ("tools/call", "u", transfer),
        ("prompts/get", "p", transfer),
        ("resources/read", "r:x", transfer),
        ("tools/call", "t", ""),
        ("tools/call", "t", "{}"),
        ("tools/call", "t", r#"{"amount":1000000,"to":"é","list":[1,2]}"#),
        ("tools/call", "t", r#"{"amount":"10","to":"é","list":[1,2]}"#),
        ("tools/call", "t", r#"{"amount":10,"to":"e","list":[1,2]}"#),
        ("tools/call", "t", r#"{"amount":10,"to":"é","list":[2,1]}"#),
        ("tools/call", "t", r#"{"amount":10,"to":"é","list":[1,2],"dry":null}"#),
        ("tools/call", "t", r#"{"amount":10,"to":"é"}"#),
        ("tools/call", "t", r#"{"amount":10.000000000000000001,"to":"é","list":[1,2]}"#),
    ] {
        assert_eq!(
            send(&mut world, method, target, arguments, Some(&state)).error(),
            REFUSED,
            "{method} {target} {arguments}"
        );
    }
    // Absent arguments are `{}`; numbers past 2^53 and zeros are exact.
    let first = send(&mut world, "tools/call", "t", "", None);
    assert_eq!(send(&mut world, "tools/call", "t", "{}", Some(first.state())).text(), "1");
    let first = send(&mut world, "tools/call", "t", r#"{"n":9007199254740993,"z":-0}"#, None);
    assert_eq!(
        send(&mut world, "tools/call", "t", r#"{"z":0.0,"n":9007199254740993}"#, Some(first.state())).text(),
        "1"
    );
    let reply = send(&mut world, "tools/call", "t", r#"{"z":0,"n":9007199254740992}"#, Some(first.state()));
    assert_eq!(reply.error(), REFUSED);
    // A state of the prompt with the tool's name, and the other way round.
    let first = send(&mut world, "prompts/get", "p", "", None);
    assert_eq!(send(&mut world, "tools/call", "t", "", Some(first.state())).error(), REFUSED);
    assert_eq!(send(&mut world, "resources/read", "r:x", "", Some(first.state())).error(), REFUSED);
}

/// R-073, trap 27: to the millisecond, at the server's TTL and at the end of the exchange; what the clock may do.
#[test]
fn r_073_expired_states() {
    let mut config = config();
    config.sealer = config.sealer.ttl(Ttl::new(Duration::from_secs(100)).expect("in range"));
    config.limits.exchange = Duration::from_secs(150);
    let mut world = World::of(kit(config));
    let begin = world.now;
    let first = call(&mut world, "two", json!({}));
    let first_answers = json!({"a": accept(json!({"n": 1}))});
    let at = |world: &mut World, millis: i64, last: &Reply, answers: &Value| {
        world.now = mrtr_core::Timestamp::from_unix_millis(
            begin.as_unix_millis().checked_add_signed(millis).expect("in range"),
        );
        retry(world, "two", last, answers.clone())
    };
    assert_eq!(at(&mut world, 99_999, &first, &first_answers).keys(), ["b"]);
    assert_eq!(at(&mut world, 100_000, &first, &first_answers).error(), REFUSED);
    assert_eq!(at(&mut world, 1_000_000_000, &first, &first_answers).error(), REFUSED);
    // A clock that steps back by up to the skew.
    assert_eq!(at(&mut world, -60_000, &first, &first_answers).keys(), ["b"]);
    assert_eq!(at(&mut world, -60_001, &first, &first_answers).error(), REFUSED);
    // A state from late in the exchange ends with it.
    let second = at(&mut world, 99_000, &first, &first_answers);
    let answers = json!({"b": accept(json!({"n": 2}))});
    assert_eq!(at(&mut world, 149_999, &second, &answers).text(), "1 2");
    assert_eq!(at(&mut world, 150_000, &second, &answers).error(), REFUSED);
}

/// Design §4: soft expiry takes no answer of an expired state, asks again, and only if nothing else is wrong with it.
#[test]
fn soft_expiry_asks_again() {
    let mut config = config();
    config.sealer = config.sealer.soft_expiry();
    let mut world = World::of(kit(config));
    let first = call(&mut world, "two", json!({}));
    let second = retry(&mut world, "two", &first, json!({"a": accept(json!({"n": 1}))}));
    world.pass(Duration::from_secs(600));
    let again = retry(&mut world, "two", &second, json!({"b": accept(json!({"n": 2}))}));
    assert_eq!(again.keys(), ["b"]);
    assert_eq!(retry(&mut world, "two", &again, json!({"b": accept(json!({"n": 3}))})).text(), "1 3");
    // Structure is not judged where answers are not taken.
    assert_eq!(retry(&mut world, "two", &second, json!({"b": 5})).keys(), ["b"]);
    world.principal = Some(b"bob".to_vec());
    assert_eq!(retry(&mut world, "two", &second, json!({})).error(), REFUSED);
    // Past the end of the exchange there is nothing to ask for.
    world.principal = Some(b"alice".to_vec());
    world.pass(Duration::from_secs(3_600));
    assert_eq!(retry(&mut world, "two", &second, json!({})).error(), REFUSED);
}

/// G-52, B-17, trap 23: a state of another key or audience; of a replica with the same.
#[test]
fn g_52_states_of_other_servers() {
    let mut mine = keyed(SECRET, "srv");
    let first = call(&mut mine, "form", json!({}));
    for mut other in [
        keyed(b"another secret, 32 bytes or more", "srv"),
        keyed(SECRET, "other"),
        keyed(SECRET, "srv2"),
        keyed(SECRET, ""),
        World::of(kit(Config::new(
            Implementation::new("srv", "1"),
            Sealer::signed_readable(&KeyRing::new(Secret::from_bytes(SECRET).expect("32 bytes")), "srv"),
        ))),
    ] {
        assert_eq!(retry(&mut other, "form", &first, answers()).error(), REFUSED);
    }
    assert_eq!(retry(&mut keyed(SECRET, "srv"), "form", &first, answers()).text(), "1");
    // The version a server reports, and its title, are not part of it: a deploy breaks nothing.
    let ring = KeyRing::new(Secret::from_bytes(SECRET).expect("32 bytes"));
    let mut newer =
        World::of(kit(Config::new(Implementation::new("srv", "2"), Sealer::encrypted(&ring, "srv"))));
    assert_eq!(retry(&mut newer, "form", &first, answers()).text(), "1");
}

/// R-075, G-28, trap 22: without a ledger a state is good until it expires; both copies of a retry are answered alike.
#[test]
fn g_28_the_same_retry_twice() {
    let mut world = world();
    let first = call(&mut world, "form", json!({}));
    for _ in 0..2 {
        assert_eq!(retry(&mut world, "form", &first, answers()).text(), "1");
    }
    // Other answers to the same state are another continuation of it.
    assert_eq!(retry(&mut world, "form", &first, json!({"n": {"action": "decline"}})).text(), "declined");
}

/// R-077, G-50: what the encrypted suite seals shows nothing; what is only signed can be read, and is checked all the same.
#[test]
fn r_077_what_the_client_can_read() {
    use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
    let ring = KeyRing::new(Secret::from_bytes(SECRET).expect("32 bytes"));
    for (sealer, readable) in
        [(Sealer::encrypted(&ring, "srv"), false), (Sealer::signed_readable(&ring, "srv"), true)]
    {
        let mut world = World::of(kit(Config::new(Implementation::new("srv", "1"), sealer)));
        let first = call(&mut world, "two", json!({}));
        let second = retry(&mut world, "two", &first, json!({"a": accept(json!({"n": 7}))}));
        let bytes = URL_SAFE_NO_PAD.decode(second.state()).expect("base64url");
        let holds = |part: &[u8]| bytes.windows(part.len()).any(|window| window == part);
        assert_eq!(holds(b"{\"n\":7}"), readable);
        // The principal and the arguments are in neither.
        assert!(!holds(b"alice") && !second.state().contains("alice"));
        assert_eq!(retry(&mut world, "two", &second, json!({"b": accept(json!({"n": 1}))})).text(), "7 1");
    }
}

/// G-51: a tool that is gone, or an argument that is no longer right, is refused before the state is looked at.
#[test]
fn g_51_everything_is_checked_again_each_round() {
    let mut world = world();
    let request = world.request("prompts/get", json!({"name": "greet", "requestState": "garbage"}));
    assert!(world.send(&request).error().1.contains("who"));
    assert!(
        call(&mut world, "nobody", json!({"requestState": "garbage"})).error().1.contains("Unknown tool")
    );
    world.capabilities = json!({});
    assert_eq!(call(&mut world, "declared", json!({"requestState": "garbage"})).error().0, -32021);
}

/// R-078: the same request at the same time gives another state each time; the same entropy the same (determinism).
#[test]
fn r_078_states_differ() {
    let mut world = world();
    let first = call(&mut world, "form", json!({}));
    let again = retry(&mut world, "form", &first, json!({}));
    let third = retry(&mut world, "form", &first, json!({}));
    assert!(first.state() != again.state() && again.state() != third.state());
}

/// A state that was sealed under wider limits is refused like any other, not half used.
#[test]
fn states_over_the_caps_are_refused() {
    let mut wide = config();
    wide.limits.asks_sent = 20;
    let many = |ctx: Ctx| async move {
        let asks = (0..18).map(|n| number(&ctx, &format!("k{n}"))).collect::<Vec<_>>();
        let done = futures::future::join_all(asks).await.len();
        Ok(ToolResult::text(done.to_string()))
    };
    let mut wide = World::of(service(wide, many));
    let first = wide.call(json!({}));
    assert_eq!(first.keys().len(), 18);
    let mut narrow = World::of(service(config(), many));
    assert_eq!(narrow.retry(&first, json!({})).error(), REFUSED);
    let all: serde_json::Map<_, _> = (0..18).map(|n| (format!("k{n}"), accept(json!({"n": 1})))).collect();
    assert_eq!(wide.retry(&first, Value::Object(all)).text(), "18");
}

/// R-073, G-55, design of states: a tool, prompt, resource or family of resources may give its questions more or less time than
/// the sealer does; every round anew, and never beyond the exchange's deadline.
#[test]
fn r_073_a_time_of_its_own_for_each_thing_that_asks() {
    let ttl = |seconds| Ttl::new(Duration::from_secs(seconds)).expect("a lifetime");
    let ask_twice = |ctx: Ctx| async move {
        let text = format!("{} {}", shown(number(&ctx, "n").await), shown(number(&ctx, "m").await));
        Ok::<_, RpcError>(match ctx.method() {
            AskingMethod::ToolsCall => Output::from(ToolResult::text(text)),
            AskingMethod::PromptsGet => Output::from(PromptResult::new().user(Content::text(&text))),
            AskingMethod::ResourcesRead => {
                Output::from(ResourceResult::text(ctx.target(), "text/plain", &text))
            }
        })
    };
    let service = Service::new(Server::new(config()))
        .tool(Tool::new("t", "As the sealer says"), ask_twice)
        .and_then(|service| service.tool(Tool::new("short", "Soon").state_ttl(ttl(5)), ask_twice))
        .and_then(|service| service.tool(Tool::new("long", "Late").state_ttl(ttl(3_000)), ask_twice))
        .and_then(|service| service.tool(Tool::new("longer", "Later").state_ttl(ttl(90_000)), ask_twice))
        .and_then(|service| service.prompt(Prompt::new("p", "A prompt").state_ttl(ttl(7)), ask_twice))
        .and_then(|service| service.resource(Resource::new("r:x", "x").state_ttl(ttl(8)), ask_twice))
        .and_then(|service| {
            service.template(ResourceTemplate::new("f:{name}", "f").state_ttl(ttl(9)), ask_twice)
        })
        .expect("names are valid");
    let mut world = World::of(service);
    let tool = |name: &str| ("tools/call", json!({"name": name, "arguments": {}}));
    for ((method, params), seconds) in [
        (tool("t"), 600),
        (tool("short"), 5),
        (tool("long"), 3_000),
        (tool("longer"), 3_600),
        (("prompts/get", json!({"name": "p"})), 7),
        (("resources/read", json!({"uri": "r:x"})), 8),
        (("resources/read", json!({"uri": "f:a"})), 9),
    ] {
        let begun = world.now;
        let send = |world: &mut World, last: Option<(&Reply, Value)>| {
            let mut params = params.clone();
            if let Some((last, answers)) = last {
                params["requestState"] = json!(last.state());
                params["inputResponses"] = answers;
            }
            let request = world.request(method, params);
            world.send(&request)
        };
        let almost = Duration::from_millis(seconds * 1_000 - 1);
        let first = send(&mut world, None);
        world.pass(almost);
        let second = send(&mut world, Some((&first, answers())));
        assert_eq!(second.keys(), ["m"], "{method} {params}");
        world.pass(Duration::from_millis(1));
        assert_eq!(send(&mut world, Some((&first, answers()))).error(), REFUSED, "{method} {params}");
        // The second round has the same time, until the exchange is over.
        world.now = begun.saturating_add((almost + almost).min(Duration::from_millis(3_600_000 - 1)));
        let answers = json!({"m": accept(json!({"n": 2}))});
        assert!(send(&mut world, Some((&second, answers.clone()))).result()["resultType"] == "complete");
        world.pass(Duration::from_millis(1));
        assert_eq!(send(&mut world, Some((&second, answers))).error(), REFUSED, "{method} {params}");
    }
}
