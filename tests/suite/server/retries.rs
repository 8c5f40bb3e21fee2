//! What a server makes of answers.

use mrtr_core::{
    catalog::Tool,
    form::{Elicited, Field, Form},
    handler::{Ctx, RpcError, Service, ToolResult},
    server::Server,
    wire::Action,
};
use mrtr_tests::world::{World, accept, cancel, config, decline};
use serde_json::{Value, json};

use super::{call, number, retry, shown, world};

/// R-079, R-080, B-34, B-35, B-45, R-128, R-150, R-155: what fits the kind that was asked, and what does not.
#[test]
fn r_079_answers_are_read_by_the_kind_that_was_asked() {
    let sampled = json!({"role": "assistant", "model": "m", "content": {"type": "text", "text": "x"}});
    let roots = json!({"roots": [{"uri": "file:///a"}]});
    let good: [(&str, &str, Vec<Value>); 4] = [
        (
            "form",
            "n",
            vec![
                accept(json!({"n": 1})),
                json!({"action": "accept"}),
                json!({"action": "accept", "content": null}),
                json!({"action": "decline"}),
                json!({"action": "decline", "content": {"n": 1}}),
                json!({"action": "cancel", "content": null}),
                json!({"action": "cancel", "content": 5}),
                json!({"action": "decline", "resultType": "complete", "_meta": {}}),
            ],
        ),
        (
            "url",
            "in",
            vec![
                json!({"action": "accept"}),
                json!({"action": "accept", "content": {"x": 1}}),
                json!({"action": "cancel"}),
            ],
        ),
        (
            "sample",
            "s",
            vec![
                sampled.clone(),
                json!({"role": "user", "model": "", "content": []}),
                json!({"role": "assistant", "model": "m", "stopReason": "toolUse", "_meta": {}, "content": [
                {"type": "tool_use", "id": "1", "name": "t", "input": {}}]}),
            ],
        ),
        (
            "roots",
            "r",
            vec![
                roots.clone(),
                json!({"roots": []}),
                json!({"roots": [{"uri": "file://h/x", "name": "n", "_meta": {}}]}),
            ],
        ),
    ];
    let mut bad: [(&str, &str, Vec<Value>); 4] = [
        (
            "form",
            "n",
            vec![
                json!({"action": "yes"}),
                json!({"action": "Accept"}),
                json!({"action": null}),
                json!({"action": 1}),
                json!({"content": {"n": 1}}),
                json!({"action": "accept", "content": 1}),
                json!({"action": "accept", "content": []}),
                json!({"action": "accept", "content": "n"}),
                json!({"method": "elicitation/create", "result": {"action": "accept"}}),
                sampled.clone(),
                roots.clone(),
            ],
        ),
        (
            "url",
            "in",
            vec![json!({"action": "opened"}), json!({"url": "https://example.com/in"}), sampled.clone()],
        ),
        (
            "sample",
            "s",
            vec![
                json!({"action": "decline"}),
                json!({"model": "m", "content": []}),
                json!({"role": "system", "model": "m", "content": []}),
                json!({"role": "assistant", "content": []}),
                json!({"role": "assistant", "model": 1, "content": []}),
                json!({"role": "assistant", "model": "m"}),
                json!({"role": "assistant", "model": "m", "content": "x"}),
                json!({"role": "assistant", "model": "m", "content": ["x"]}),
                roots,
            ],
        ),
        (
            "roots",
            "r",
            vec![
                json!({}),
                json!({"roots": null}),
                json!({"roots": {}}),
                json!({"roots": ["file:///a"]}),
                json!({"roots": [{}]}),
                json!({"roots": [{"uri": 5}]}),
                json!({"roots": [{"uri": "https://example.com"}]}),
                json!({"roots": [{"uri": "file:///a", "name": 5}]}),
                json!({"roots": [{"uri": "FILE:///a"}]}),
                json!({"action": "accept"}),
                sampled,
            ],
        ),
    ];
    for (_, _, list) in &mut bad {
        list.extend([
            json!(null),
            json!(12345),
            json!("accept"),
            json!([]),
            json!([{"action": "accept"}]),
            json!(true),
        ]);
    }
    let mut world = world();
    for (tool, key, answers) in good {
        let first = call(&mut world, tool, json!({}));
        for answer in answers {
            let reply = retry(&mut world, tool, &first, json!({key: answer}));
            assert!(reply.0.get("result").is_some(), "{tool} {answer}: {reply:?}");
        }
    }
    for (tool, key, answers) in bad {
        let first = call(&mut world, tool, json!({}));
        for answer in answers {
            let reply = retry(&mut world, tool, &first, json!({key: answer}));
            let (code, message) = reply.error();
            assert_eq!(code, -32602, "{tool} {answer}");
            assert!(message.starts_with(&format!("Invalid params: inputResponses[{key:?}]")), "{message}");
            // What was sent is not repeated.
            assert!(!message.contains("12345") && !message.contains("example"), "{message}");
            // Without a state it is an error too where it would have been taken (R-080), and nothing where not.
            let reply = call(&mut world, tool, json!({"inputResponses": {key: answer}}));
            if tool == "url" {
                assert_eq!(reply.keys(), ["in"])
            } else {
                assert_eq!(reply.error().0, -32602, "{tool} {answer}")
            }
        }
    }
}

/// R-081, R-082, B-43, B-44, traps 29, 30, 33: only outstanding keys are read; the rest is asked again; nothing that was
/// not asked is carried along.
#[test]
fn b_43_only_outstanding_keys_are_read() {
    let mut world = world();
    let first = call(&mut world, "both", json!({}));
    let junk = json!({
        "zzz": {"surprise": 1}, "a#1": accept(json!({"n": 8})), "A": accept(json!({"n": 8})), "b ": accept(json!({"n": 8})),
        "__proto__": {"b": accept(json!({"n": 8}))}, "inputResponses": {"b": accept(json!({"n": 8}))}, "": 5,
    });
    let mut answers = junk.clone();
    answers["a"] = accept(json!({"n": 1}));
    let second = retry(&mut world, "both", &first, answers);
    assert_eq!(second.keys(), ["b"]);
    let clean = retry(&mut world, "both", &first, json!({"a": accept(json!({"n": 1}))}));
    assert_eq!(second.state().len(), clean.state().len());
    // A client that accumulates: the old answer again, changed, is not read (G-25).
    let done = retry(
        &mut world,
        "both",
        &second,
        json!({"a": accept(json!({"n": 9})), "b": accept(json!({"n": 2}))}),
    );
    assert_eq!(done.text(), "1 2");
    // Even a malformed one under an old key.
    let done = retry(&mut world, "both", &second, json!({"a": 5, "b": accept(json!({"n": 2}))}));
    assert_eq!(done.text(), "1 2");
    // All junk: the same questions.
    assert_eq!(retry(&mut world, "both", &first, junk).keys(), ["a", "b"]);
    // An answer for a later question, sent early with a state, is not kept for it.
    let first = call(&mut world, "two", json!({}));
    let second =
        retry(&mut world, "two", &first, json!({"a": accept(json!({"n": 1})), "b": accept(json!({"n": 2}))}));
    assert_eq!(second.keys(), ["b"]);
}

/// R-082, R-083: without a state, wrong keys ask and right keys beside junk are enough.
#[test]
fn r_083_answers_without_a_state() {
    let mut world = world();
    for answers in
        [json!({}), json!({"wrong_key": accept(json!({"n": 1}))}), json!({"n#1": accept(json!({"n": 1}))})]
    {
        assert_eq!(call(&mut world, "form", json!({"inputResponses": answers})).keys(), ["n"]);
    }
    let answers = json!({"x": 1, "n": accept(json!({"n": 1})), "y": {"z": []}});
    assert_eq!(call(&mut world, "form", json!({"inputResponses": answers})).text(), "1");
    assert_eq!(call(&mut world, "form", json!({"inputResponses": {"n": decline()}})).text(), "declined");
    // Content that does not fit is asked for, with the reason.
    let reply = call(&mut world, "form", json!({"inputResponses": {"n": accept(json!({"n": "1"}))}}));
    assert!(reply.result()["_meta"]["dev.mrtr/invalid"]["n"].is_string());
    // A tool that asks nothing ignores answers.
    assert_eq!(call(&mut world, "plain", json!({"inputResponses": {"n": 5}})).text(), "plain");
}

/// R-085, R-133, B-36, B-38: accept, decline and cancel are three things; the content of a refusal is none.
#[test]
fn b_36_the_three_actions() {
    let mut world = world();
    for (tool, key, yes) in [("form", "n", "1"), ("confirm", "sure", "deleted"), ("url", "in", "Accept")] {
        let first = call(&mut world, tool, json!({}));
        let mut said =
            |answer: Value| retry(&mut world, tool, &first, json!({key: answer})).text().to_lowercase();
        assert_eq!(said(accept(json!({"n": 1}))), yes.to_lowercase());
        for content in [json!(null), json!({"n": 1}), json!({"ok": true})] {
            assert!(said(json!({"action": "decline", "content": content})).starts_with("decline"), "{tool}");
            assert!(said(json!({"action": "cancel", "content": content})).starts_with("cancel"), "{tool}");
        }
    }
}

/// B-41: a handler that swallows the interruption does not get past the question, whichever way it swallows it.
#[test]
fn b_41_a_swallowed_question_is_still_asked() {
    let service = Service::new(Server::new(config()))
        .tool(Tool::new("default", "Takes a default"), |ctx: Ctx| async move {
            let yes = ctx.confirm("sure", "Sure?").await.unwrap_or(Action::Accept);
            Ok::<_, RpcError>(ToolResult::text(format!("{yes:?}")))
        })
        .and_then(|service| {
            service.tool(Tool::new("now", "Does not wait"), |ctx: Ctx| async move {
                let yes = futures::FutureExt::now_or_never(ctx.confirm("sure", "Sure?"));
                Ok::<_, RpcError>(ToolResult::text(format!("{}", yes.is_some())))
            })
        })
        .and_then(|service| {
            service.tool(Tool::new("error", "Fails beside it"), |ctx: Ctx| async move {
                let mut ask = ctx.confirm("sure", "Sure?");
                assert!(futures::poll!(&mut ask).is_pending());
                std::mem::forget(ask);
                Err::<ToolResult, _>(RpcError::internal("proceed on error"))
            })
        })
        .and_then(|service| {
            service.tool(Tool::new("race", "Races it"), |ctx: Ctx| async move {
                let ask = ctx.confirm("sure", "Sure?");
                let won = futures::future::select(ask, futures::future::ready(())).await;
                let text = if matches!(won, futures::future::Either::Left(_)) { "asked" } else { "went on" };
                std::mem::forget(won);
                Ok::<_, RpcError>(ToolResult::text(text))
            })
        });
    let mut world = World::of(service.expect("valid tools"));
    let first = call(&mut world, "default", json!({}));
    assert_eq!(first.keys(), ["sure"]);
    assert_eq!(retry(&mut world, "default", &first, json!({"sure": decline()})).text(), "Decline");
    // Not waiting drops the ask, which withdraws it: nothing is pending, and the handler knows that nobody said yes.
    assert_eq!(call(&mut world, "now", json!({})).text(), "false");
    assert_eq!(call(&mut world, "error", json!({})).keys(), ["sure"]);
    let first = call(&mut world, "race", json!({}));
    assert_eq!(first.keys(), ["sure"]);
    // It would go past the question again: over its own mark it fails instead (A9 b).
    assert_eq!(
        retry(&mut world, "race", &first, json!({"sure": accept(json!({}))})).error(),
        (-32603, "Internal error")
    );
}

/// B-42, B-59: three dependent questions, newest answer only, the same JSON-RPC id each time.
#[test]
fn b_42_a_chain_converges() {
    let mut world = World::new(|ctx: Ctx| async move {
        let a = shown(number(&ctx, "a").await);
        let b = shown(ctx.elicit(&format!("b{a}"), &super::form(&format!("after {a}"))).await);
        let c = shown(ctx.elicit(&format!("c{b}"), &super::form(&format!("after {a} {b}"))).await);
        Ok(ToolResult::text(format!("{a} {b} {c}")))
    });
    let mut send = |params: Value| {
        let mut all = json!({"name": "t"});
        super::merge(&mut all, &params);
        let mut request = world.request("tools/call", all);
        request["id"] = json!(1);
        world.send(&request)
    };
    let first = send(json!({}));
    let second =
        send(json!({"requestState": first.state(), "inputResponses": {"a": accept(json!({"n": 1}))}}));
    assert_eq!((second.keys(), second.message("b1")), (vec!["b1"], "after 1"));
    let third =
        send(json!({"requestState": second.state(), "inputResponses": {"b1": accept(json!({"n": 2}))}}));
    assert_eq!((third.keys(), third.message("c2")), (vec!["c2"], "after 1 2"));
    let done =
        send(json!({"requestState": third.state(), "inputResponses": {"c2": accept(json!({"n": 3}))}}));
    assert_eq!(done.text(), "1 2 3");
}

/// B-86, G-26, trap 30: after a deploy the same key asks something else; the old answer is not taken for it.
#[test]
fn b_86_a_changed_question_is_asked_anew() {
    let deployed = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let deploy = deployed.clone();
    let mut world = World::new(move |ctx: Ctx| {
        let version = deploy.load(std::sync::atomic::Ordering::Relaxed);
        async move {
            Ok(ToolResult::text(match version {
                0 => shown(number(&ctx, "input-0").await),
                1 => shown(ctx.elicit("input-0", &super::form("reworded")).await),
                2 => format!("{:?}", ctx.confirm("input-0", "Delete it?").await?),
                3 => format!("{:?}", ctx.elicit_url("input-0", "Sign in", "https://example.com").await?),
                4 => ctx.sample("input-0", &super::sampling()).await?.text(),
                _ => {
                    let wider =
                        Form::builder("input-0").field(Field::integer("n").minimum(0).maximum(10).required());
                    shown(ctx.elicit("input-0", &wider.build().expect("valid")).await)
                }
            }))
        }
    });
    let first = world.call(json!({}));
    for version in 1..=5 {
        deployed.store(version, std::sync::atomic::Ordering::Relaxed);
        assert_eq!(
            world.retry(&first, json!({"input-0": accept(json!({"n": 4}))})).keys(),
            ["input-0"],
            "{version}"
        );
    }
    deployed.store(0, std::sync::atomic::Ordering::Relaxed);
    assert_eq!(world.retry(&first, json!({"input-0": accept(json!({"n": 4}))})).text(), "4");
}

/// B-85, G-27: what is done once is done once per exchange, however often the handler runs.
#[test]
fn b_85_effects_before_a_question() {
    let made = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let counter = made.clone();
    let mut world = World::new(move |ctx: Ctx| {
        let counter = counter.clone();
        async move {
            let vm = ctx.once("vm", || counter.fetch_add(1, std::sync::atomic::Ordering::Relaxed))?;
            let a = shown(number(&ctx, "a").await);
            let b = shown(number(&ctx, "b").await);
            Ok(ToolResult::text(format!("vm {vm} {a} {b}")))
        }
    });
    let first = world.call(json!({}));
    let second = world.retry(&first, json!({"a": accept(json!({"n": 1}))}));
    let second = world.retry(&second, json!({}));
    assert_eq!(world.retry(&second, json!({"b": cancel()})).text(), "vm 0 1 cancelled");
    assert_eq!(made.load(std::sync::atomic::Ordering::Relaxed), 1);
}

/// R-133, G-18: a cancelled question may be asked again; it is another use of its key.
#[test]
fn r_133_a_cancelled_question_may_come_again() {
    let mut world = World::new(|ctx: Ctx| async move {
        let mut answer = number(&ctx, "n").await?;
        if matches!(answer, Elicited::Cancel) {
            answer = number(&ctx, "n").await?;
        }
        Ok(ToolResult::text(shown(Ok(answer))))
    });
    let first = world.call(json!({}));
    let second = world.retry(&first, json!({"n": cancel()}));
    assert_eq!(second.keys(), ["n#1"]);
    // The old key answers nothing any more.
    assert_eq!(world.retry(&second, json!({"n": accept(json!({"n": 1}))})).keys(), ["n#1"]);
    assert_eq!(world.retry(&second, json!({"n#1": accept(json!({"n": 1}))})).text(), "1");
}
