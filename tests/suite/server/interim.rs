//! What a server may send in place of a result.

use mrtr_core::{
    handler::{Ctx, Output, RpcError, ToolResult},
    http::ReplyClass,
};
use mrtr_tests::world::{World, accept};
use serde_json::{Value, json};

use super::{call, post, retry, world};

/// R-012, R-055, R-057…R-061, R-112…R-114, R-134, R-145, R-154: an interim result, member by member.
#[test]
fn r_055_an_interim_result_member_by_member() {
    let mut world = world();
    let reply = call(&mut world, "everything", json!({}));
    let mut result = reply.result().clone();
    let state = result["requestState"].take();
    assert!(state.as_str().is_some_and(|state| state.len() > 100));
    assert_eq!(
        result,
        json!({
            "resultType": "input_required",
            "requestState": null,
            "inputRequests": {
                "n": {"method": "elicitation/create", "params": {
                    "mode": "form", "message": "n", "requestedSchema": {
                        "type": "object", "properties": {"n": {"type": "integer", "minimum": 0, "maximum": 9}}, "required": ["n"]}}},
                "in": {"method": "elicitation/create", "params": {"mode": "url", "message": "Sign in", "url": "https://example.com/in"}},
                "s": {"method": "sampling/createMessage", "params": {
                    "messages": [{"role": "user", "content": {"type": "text", "text": "hi"}}], "maxTokens": 9}},
                "r": {"method": "roots/list", "params": {}},
            },
            "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "srv", "version": "1"}},
        })
    );
}

/// G-36: asks go out in the order in which the handler made them.
#[test]
fn g_36_asks_keep_their_order() {
    let mut world = World::new(|ctx: Ctx| async move {
        let asks = ["z", "a", "m", "B", "10", "9"].map(|key| super::number(&ctx, key));
        futures::future::join_all(asks).await;
        Ok(ToolResult::new())
    });
    let request = world.request("tools/call", json!({"name": "t"})).to_string();
    let text = String::from_utf8(world.send_bytes(request.as_bytes())).expect("UTF-8");
    let places: Vec<_> = ["z", "a", "m", "B", "10", "9"]
        .map(|key| text.find(&format!("\"{key}\":{{\"method\"")).expect("asked"))
        .into();
    assert!(places.is_sorted(), "{text}");
}

/// R-056, G-12, B-03, B-46: only the three methods ask; on others `inputResponses` and `requestState` are not looked
/// at, whatever they are.
#[test]
fn g_12_fields_on_other_methods_are_ignored() {
    let mut world = World::of(super::kit(mrtr_tests::world::config()).announce_changes());
    let state = call(&mut world, "form", json!({})).state().to_owned();
    let complete =
        json!({"ref": {"type": "ref/prompt", "name": "greet"}, "argument": {"name": "how", "value": "w"}});
    for (method, params) in [
        ("tools/list", json!({})),
        ("prompts/list", json!({})),
        ("resources/list", json!({})),
        ("resources/templates/list", json!({})),
        ("server/discover", json!({})),
        ("completion/complete", complete),
    ] {
        let request = world.request(method, params.clone());
        let mut plain = world.send(&request).0;
        plain["id"] = json!(0);
        for (answers, state) in [
            (json!(null), json!(null)),
            (json!([]), json!(7)),
            (json!({"n": 5}), json!("")),
            (json!({"n": accept(json!({"n": 1}))}), json!(state)),
        ] {
            let mut params = params.clone();
            params["inputResponses"] = answers;
            params["requestState"] = state;
            let request = world.request(method, params);
            let mut reply = world.send(&request).0;
            reply["id"] = json!(0);
            assert_eq!(reply, plain, "{method}");
        }
    }
}

/// B-46: the fields are siblings of `name`. In `_meta`, or inside `arguments`, they are somebody else's.
#[test]
fn b_46_fields_elsewhere_are_somebody_elses() {
    let mut world = world();
    let state = call(&mut world, "form", json!({})).state().to_owned();
    let mut request = super::tool_call(
        &mut world,
        "form",
        json!({"arguments": {"requestState": 7, "inputResponses": null}}),
    );
    request["params"]["_meta"]["requestState"] = json!(state);
    request["params"]["_meta"]["inputResponses"] = json!({"n": accept(json!({"n": 1}))});
    request["requestState"] = json!("x");
    assert_eq!(world.send(&request).keys(), ["n"]);
}

/// R-057, R-067, R-078, B-42: any number of rounds, each retry with the last answer alone, each state another one.
#[test]
fn r_057_rounds_in_a_row() {
    let mut world = World::new(|ctx: Ctx| async move {
        let mut said = Vec::new();
        for key in ["a", "b", "c", "d", "e"] {
            said.push(super::shown(super::number(&ctx, key).await));
        }
        Ok(ToolResult::text(said.join(" ")))
    });
    let mut last = world.call(json!({}));
    let mut states = vec![last.state().to_owned()];
    for (n, key) in ["a", "b", "c", "d"].into_iter().enumerate() {
        last = world.retry(&last, json!({key: accept(json!({"n": n}))}));
        assert!(!states.contains(&last.state().to_owned()));
        states.push(last.state().to_owned());
    }
    assert_eq!(world.retry(&last, json!({"e": accept(json!({"n": 4}))})).text(), "0 1 2 3 4");
}

/// R-065, R-201, R-202, G-40, B-67: an interim result has no hints; a `resources/read` that carried answers or a state
/// ends as one that nobody may keep, and any other as its handler says.
#[test]
fn g_40_hints_of_resources() {
    let mut world = world();
    let mut read = |uri: &str, more: Value| {
        let mut params = json!({"uri": uri});
        super::merge(&mut params, &more);
        let request = world.request("resources/read", params);
        world.send(&request)
    };
    let hints = |reply: &mrtr_tests::world::Reply| {
        (reply.result()["ttlMs"].clone(), reply.result()["cacheScope"].clone())
    };
    let kept = (json!(9_000), json!("public"));
    let never = (json!(0), json!("private"));
    assert_eq!(hints(&read("r:hints", json!({}))), kept);
    assert_eq!(hints(&read("r:plain", json!({}))), never);
    assert_eq!(hints(&read("t:1/data", json!({}))), never);
    let first = read("r:asks", json!({}));
    assert_eq!(hints(&first), (Value::Null, Value::Null));
    let answers = json!({"n": accept(json!({"n": 5}))});
    let done = read("r:asks", json!({"requestState": first.state(), "inputResponses": answers}));
    assert_eq!(hints(&done), never);
    assert_eq!(done.result()["contents"][0]["text"], "5");
    // Answers alone count too, needed or not.
    assert_eq!(hints(&read("r:asks", json!({"inputResponses": answers}))), never);
    assert_eq!(hints(&read("r:hints", json!({"inputResponses": {}}))), never);
    // Hints appear once.
    let text = done.0.to_string();
    assert_eq!((text.matches("ttlMs").count(), text.matches("cacheScope").count()), (1, 1));
}

/// R-065, R-201: tool and prompt results get no hints of ours.
#[test]
fn r_201_only_resources_and_lists_have_hints() {
    let mut world = world();
    let request = world.request("prompts/get", json!({"name": "greet", "arguments": {"who": "you"}}));
    for reply in [call(&mut world, "plain", json!({})), world.send(&request)] {
        assert!(reply.result().get("ttlMs").is_none() && reply.result().get("cacheScope").is_none());
    }
}

/// R-056, B-08: prompts and resources ask too, and the question is never wrapped into content.
#[test]
fn b_08_prompts_and_resources_ask() {
    let mut world = world();
    for (method, params) in
        [("prompts/get", json!({"name": "ask"})), ("resources/read", json!({"uri": "r:asks"}))]
    {
        let request = world.request(method, params.clone());
        let first = world.send(&request);
        assert_eq!(first.keys(), ["n"]);
        assert!(first.result().get("contents").is_none() && first.result().get("messages").is_none());
        let mut params = params;
        params["requestState"] = json!(first.state());
        params["inputResponses"] = json!({"n": accept(json!({"n": 6}))});
        let request = world.request(method, params);
        let done = world.send(&request);
        let result = done.result();
        let text = if method == "prompts/get" {
            &result["messages"][0]["content"]["text"]
        } else {
            &result["contents"][0]["text"]
        };
        assert_eq!(text, "6");
    }
}

/// R-058, R-066, G-02, B-11: a round without questions has a state and no map.
#[test]
fn r_066_a_state_alone() {
    let mut world = World::new(|ctx: Ctx| async move {
        ctx.checkpoint().await?;
        Ok(ToolResult::text("went on"))
    });
    let first = world.call(json!({}));
    let mut members: Vec<_> = first.result().as_object().expect("an object").keys().collect();
    members.sort();
    assert_eq!(members, ["_meta", "requestState", "resultType"]);
    // Answers to nothing are ignored.
    for answers in [json!({}), json!({"x": accept(json!({}))})] {
        assert_eq!(world.retry(&first, answers).text(), "went on");
    }
    assert_eq!(world.call(json!({"requestState": first.state()})).text(), "went on");
}

/// R-062, R-063, B-28, trap 39: a server that asks and is never asked again keeps nothing: what it needs is in the
/// retry, so a thousand forgotten flows change nothing for one that goes on.
#[test]
fn r_062_forgotten_questions_cost_nothing() {
    let live = std::sync::Arc::new(());
    let held = live.clone();
    let mut world = World::new(move |ctx: Ctx| {
        let held = held.clone();
        async move {
            let n = super::shown(super::number(&ctx, "n").await);
            drop(held);
            Ok(ToolResult::text(n))
        }
    });
    let first = world.call(json!({}));
    for _ in 0..1_000 {
        assert_eq!(world.call(json!({})).keys(), ["n"]);
    }
    // The handler's own clones are gone as well: this one, and the service's.
    assert!(std::sync::Arc::strong_count(&live) <= 5, "{}", std::sync::Arc::strong_count(&live));
    assert_eq!(world.retry(&first, json!({"n": accept(json!({"n": 1}))})).text(), "1");
}

/// R-086: a tool's own failure is a complete result; an error of the protocol is none.
#[test]
fn r_086_failures_of_tools_are_results() {
    let mut world = world();
    let reply = call(&mut world, "fails", json!({}));
    assert_eq!(reply.result()["isError"], true);
    assert_eq!(reply.text(), "it broke");
    let message = super::tool_call(&mut world, "fails", json!({})).to_string();
    assert_eq!(post(&mut world, &message).0, ReplyClass::Result);
    assert_eq!(call(&mut world, "breaks", json!({})).error(), (-32603, "it broke"));
}

/// R-012, decision 1: a result that is no object, or that cannot be written, becomes a whole error.
#[test]
fn results_that_are_no_objects_become_errors() {
    for result in [json!(null), json!([1]), json!("x"), json!(5)] {
        let mut world = World::new(move |_: Ctx| {
            let result = result.clone();
            async move { Output::from_serialize(&result).map_err(|_| RpcError::internal("no")) }
        });
        assert_eq!(world.call(json!({})).error(), (-32603, "Internal error"));
    }
}

/// R-134, R-135, B-71: url asks have no id of their own and no notice follows them.
#[test]
fn r_134_url_asks() {
    let mut world = world();
    let first = call(&mut world, "url", json!({}));
    assert_eq!(
        first.result()["inputRequests"]["in"]["params"],
        json!({
        "mode": "url", "message": "Sign in", "url": "https://example.com/in"})
    );
    assert_eq!(retry(&mut world, "url", &first, json!({"in": {"action": "accept"}})).text(), "Accept");
}

/// A12, R-086: a result that says `isError` keeps the commit from running, however it was made.
#[test]
fn a12_is_error_is_no_success_however_it_was_written() {
    let commits = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    for (failed, expected) in [(true, 0), (false, 1)] {
        let count = commits.clone();
        let mut world = World::new(move |ctx: Ctx| {
            let count = count.clone();
            async move {
                ctx.on_commit(move || {
                    count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                    Ok(())
                });
                Output::from_serialize(&json!({"content": [], "isError": failed}))
                    .map_err(|_| RpcError::internal("no"))
            }
        });
        assert_eq!(world.call(json!({})).result()["isError"], failed);
        assert_eq!(commits.load(std::sync::atomic::Ordering::Relaxed), expected, "isError: {failed}");
    }
}

/// R-064: nothing comes after the reply; what the handler said before comes before it.
#[test]
fn r_064_nothing_follows_an_interim_result() {
    use mrtr_core::handler::RunEvent;
    use std::task::{Context, Poll, Waker};
    let ctxs = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let kept = ctxs.clone();
    let world = World::new(move |ctx: Ctx| {
        kept.lock().expect("unpoisoned").push(ctx.clone());
        async move {
            ctx.progress(1.0, None, None);
            super::number(&ctx, "n").await?;
            Ok(ToolResult::new())
        }
    });
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "t", "_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28", "progressToken": "p",
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}}, "io.modelcontextprotocol/logLevel": "debug"}}}).to_string();
    let env = mrtr_core::server::RoundEnv::new(
        world.now,
        mrtr_core::Entropy::new([1; 32]),
        mrtr_core::seal::Principal::Anonymous,
    );
    let mrtr_core::handler::Reception::Run(mut run) = world.service.receive(message.as_bytes(), env) else {
        panic!("no run")
    };
    let mut cx = Context::from_waker(Waker::noop());
    let mut next = |out: &mut Vec<u8>| run.poll_run(&mut cx, world.now, out);
    let mut out = Vec::new();
    assert!(matches!(next(&mut out), Poll::Ready(RunEvent::Notification)));
    let mut out = Vec::new();
    assert!(matches!(next(&mut out), Poll::Ready(RunEvent::Finished(_))));
    mrtr_tests::world::lawful(&out);
    // A task that outlives the request still holds its context.
    let ctx = ctxs.lock().expect("unpoisoned").remove(0);
    ctx.progress(2.0, None, None);
    ctx.log(mrtr_core::wire::LogLevel::Error, "late");
    let mut out = Vec::new();
    assert!(next(&mut out).is_pending());
    assert!(out.is_empty(), "{}", String::from_utf8_lossy(&out));
    // An ask that it makes now has no answer.
    let mut late = super::number(&ctx, "late");
    match futures::executor::block_on(async { futures::poll!(&mut late) }) {
        Poll::Ready(answer) => assert_eq!(answer.err(), Some(mrtr_core::handler::AskError::Ended)),
        Poll::Pending => panic!("an ask of an ended request waits for ever"),
    }
}
