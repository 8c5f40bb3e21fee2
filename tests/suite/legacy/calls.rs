//! What a session does besides asking: its beginning, calls, lists, cancellation.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use futures::future;
use mrtr_core::{
    ErrorCode,
    catalog::{CacheHints, Prompt, Resource, ResourceTemplate, Tool},
    handler::{Content, Ctx, Output, PromptResult, ResourceResult, RpcError, Service, ToolResult},
    server::Server,
    wire::{AskKind, Requirement},
};
use mrtr_tests::{
    legacy::{Client, text},
    world,
};
use serde_json::{Value, json};

use super::{NARROW, NEWEST, OLDEST, all, client, n, number, service, shown};

/// A service with something of every kind.
pub(super) fn rich() -> Service {
    let echo = |ctx: Ctx| async move { Ok::<_, RpcError>(ToolResult::text(ctx.target())) };
    Service::new(Server::new(world::config()))
        .instructions("Be kind.")
        .announce_changes()
        .hints(CacheHints::new(std::time::Duration::from_secs(9), true))
        .tool(
            Tool::new("one", "First")
                .title("One")
                .output_schema(r#"{"type":"object"}"#)
                .annotations(r#"{"readOnlyHint":true}"#),
            echo,
        )
        .and_then(|service| {
            service.tool(Tool::new("two", "Second").output_schema(r#"{"type":"array"}"#), |_: Ctx| async {
                Ok::<_, RpcError>(ToolResult::new().structured(&[1, 2]).expect("JSON"))
            })
        })
        .and_then(|service| {
            service.tool(Tool::new("three", "Third").requires(Requirement::new(AskKind::Url)), echo)
        })
        .and_then(|service| {
            service.tool(Tool::new("own", "Its own result"), |ctx: Ctx| async move {
                let result: Value = ctx.argument("result")?;
                Ok::<_, RpcError>(Output::from_serialize(&result).expect("JSON"))
            })
        })
        .and_then(|service| {
            service.tool(Tool::new("fails", "Fails"), |ctx: Ctx| async move {
                Err::<ToolResult, _>(RpcError::new(ErrorCode::new(ctx.argument("code")?), "so"))
            })
        })
        .and_then(|service| {
            let prompt = Prompt::new("p", "A prompt")
                .title("P")
                .required_argument("name", "Who")
                .completions(["ada", "adam", "eve"]);
            service.prompt(prompt, |_: Ctx| async {
                Ok::<_, RpcError>(PromptResult::new().user(Content::text("hello")))
            })
        })
        .and_then(|service| {
            service.resource(Resource::new("r:x", "x"), |_: Ctx| async {
                Ok::<_, RpcError>(ResourceResult::text("r:x", "text/plain", "x").hints(CacheHints::default()))
            })
        })
        .and_then(|service| {
            service.template(ResourceTemplate::new("r:{id}/t", "t"), |ctx: Ctx| async move {
                match ctx.part("id") {
                    Some("none") => Err(RpcError::invalid_params("Resource not found")
                        .with_data(&json!({"uri": ctx.target()}))
                        .expect("JSON")),
                    Some("else") => Err(RpcError::invalid_params("Bad")
                        .with_data(&json!({"uri": "r:other"}))
                        .expect("JSON")),
                    other => Ok(ResourceResult::text(ctx.target(), "text/plain", other.unwrap_or_default())),
                }
            })
        })
        .expect("valid names")
}

/// R-228: the revision of the client if it is served, else our newest of this era; capabilities, identity and
/// instructions; once a session.
#[test]
fn a_session_begins_with_its_revision_r228() {
    for (asked, agreed) in [
        (NEWEST, NEWEST),
        (NARROW, NARROW),
        (OLDEST, OLDEST),
        ("2024-11-05", NEWEST),
        ("2026-07-28", NEWEST),
        ("2099-01-01", NEWEST),
        ("", NEWEST),
    ] {
        let mut client = Client::silent(rich());
        let reply = client.initialize(asked, all());
        assert_eq!(
            reply["result"],
            json!({"protocolVersion": agreed, "serverInfo": {"name": "srv", "version": "1"}, "instructions": "Be kind.",
                "capabilities": {"tools": {"listChanged": true}, "prompts": {"listChanged": true}, "logging": {},
                    "resources": {"listChanged": true, "subscribe": true}, "completions": {}}})
        );
        assert_eq!(client.session.version().map(|version| version.name()), Some(agreed));
        let again = client.initialize(asked, all());
        assert_eq!(again["error"]["code"], -32600);
    }
    let mut client = Client::silent(rich());
    assert_eq!(client.initialize(NEWEST, json!({"roots": 1}))["error"]["code"], -32602);
    assert_eq!(client.request("initialize", json!({"capabilities": {}}))["error"]["code"], -32602);
    // After bad parameters one may try again.
    assert_eq!(client.initialize(NEWEST, json!({}))["result"]["protocolVersion"], NEWEST);
}

/// R-228, R-244, trap 38: before `initialize` there is only ping.
#[test]
fn nothing_before_initialize_but_ping_r228() {
    let mut client = Client::silent(rich());
    assert_eq!(client.request("ping", json!({}))["result"], json!({}));
    for method in ["tools/list", "tools/call", "logging/setLevel", "server/discover"] {
        assert_eq!(client.request(method, json!({"name": "one"}))["error"]["code"], -32600);
    }
    client.initialized();
    assert!(client.drain().is_empty());
}

/// R-228: a call that comes before `notifications/initialized` runs, but the client is asked only after it.
#[test]
fn questions_wait_until_the_client_is_ready_r228() {
    let mut client = Client::silent(service(|ctx: Ctx| async move {
        ctx.progress(1.0, None, None);
        Ok(ToolResult::text(shown(number(&ctx, "a").await)))
    }));
    client.initialize(NEWEST, all());
    let params = json!({"name": "t", "_meta": {"progressToken": "p"}});
    client.start("tools/call", params);
    assert_eq!(client.only()["method"], "notifications/progress");
    client.initialized();
    let ask = client.only();
    client.answer(&ask, n(1));
    assert_eq!(text(&client.only()), "1");
}

/// R-244, R-246, BT-6: lists without caching hints, and without members that the revision does not know.
#[test]
fn lists_are_of_the_revision_bt6() {
    for version in [NEWEST, NARROW, OLDEST] {
        let mut client = Client::new(rich(), version, json!({}));
        let tools = client.request("tools/list", json!({}))["result"].clone();
        assert_eq!(tools.as_object().expect("an object").len(), 1);
        let modern = version != OLDEST;
        assert_eq!(tools["tools"][0].get("title").is_some(), modern);
        assert_eq!(tools["tools"][0].get("outputSchema").is_some(), modern);
        assert_eq!(tools["tools"][0]["annotations"], json!({"readOnlyHint": true}));
        assert_eq!(tools["tools"][1].get("outputSchema"), None);
        let prompts = client.request("prompts/list", json!({}))["result"].clone();
        assert_eq!(prompts["prompts"][0].get("title").is_some(), modern);
        assert_eq!(prompts["prompts"][0]["arguments"][0]["required"], true);
        assert_eq!(
            client.request("resources/list", json!({}))["result"],
            json!({"resources": [{"name": "x", "uri": "r:x"}]})
        );
        assert_eq!(
            client.request("resources/templates/list", json!({}))["result"],
            json!({"resourceTemplates": [{"name": "t", "uriTemplate": "r:{id}/t"}]})
        );
        assert_eq!(client.request("tools/list", json!({"cursor": "x"}))["error"]["code"], -32602);
        let complete =
            json!({"ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "name", "value": "ad"}});
        assert_eq!(
            client.request("completion/complete", complete)["result"],
            json!({"completion": {"values": ["ada", "adam"], "total": 2, "hasMore": false}})
        );
        for method in ["server/discover", "subscriptions/listen", "tasks/list", "nonsense"] {
            assert_eq!(client.request(method, json!({}))["error"]["code"], -32601);
        }
    }
}

/// R-244, R-260, B-06, BT-6: results without what belongs to the modern era; an interim result of a handler's own making
/// does not get out.
#[test]
fn results_are_of_the_era_b06() {
    for version in [NEWEST, NARROW, OLDEST] {
        let mut client = Client::new(rich(), version, all());
        let own = |client: &mut Client, result: Value| {
            client.start("tools/call", json!({"name": "own", "arguments": {"result": result}}));
            client.only()
        };
        let meta = json!({"io.modelcontextprotocol/serverInfo": {"name": "n"}, "vendor/x": 1});
        let said = own(
            &mut client,
            json!({"resultType": "complete", "content": [], "ttlMs": 1, "cacheScope": "public", "_meta": meta, "more": 1}),
        );
        assert_eq!(said["result"], json!({"content": [], "_meta": {"vendor/x": 1}, "more": 1}));
        let said = own(
            &mut client,
            json!({"content": [{"type": "text", "text": "t"}], "_meta": {"io.modelcontextprotocol/serverInfo": {}}}),
        );
        assert_eq!(said["result"], json!({"content": [{"type": "text", "text": "t"}]}));
        let said = own(&mut client, json!({"structuredContent": {"a": 1}}));
        let structured = (version != OLDEST).then(|| json!({"a": 1}));
        assert_eq!(said["result"].get("structuredContent"), structured.as_ref());
        assert_eq!(
            said["result"]["content"].as_array().map(Vec::len),
            Some(usize::from(structured.is_none()))
        );
        let interim = json!({"resultType": "input_required", "inputRequests": {}, "requestState": "s"});
        assert_eq!(own(&mut client, interim)["error"]["code"], -32603);
        assert_eq!(own(&mut client, json!([1]))["error"]["code"], -32603);
        // What is structured and no object is said in text.
        client.start("tools/call", json!({"name": "two"}));
        assert_eq!(client.only()["result"], json!({"content": [{"type": "text", "text": "[1,2]"}]}));
        client.start("prompts/get", json!({"name": "p", "arguments": {"name": "x"}}));
        assert_eq!(client.only()["result"]["messages"][0]["role"], "user");
        client.start("resources/read", json!({"uri": "r:x"}));
        assert_eq!(
            client.only()["result"],
            json!({"contents": [{"uri": "r:x", "mimeType": "text/plain", "text": "x"}]})
        );
    }
}

/// R-243, R-260, BT-6: errors in the codes of the era.
#[test]
fn errors_are_of_the_era_r243() {
    let mut client = Client::new(rich(), NEWEST, json!({"elicitation": {}}));
    let missing = client.request("resources/read", json!({"uri": "r:y"}));
    assert_eq!(
        (&missing["error"]["code"], &missing["error"]["data"]),
        (&json!(-32002), &json!({"uri": "r:y"}))
    );
    for (uri, code) in [("r:none/t", -32002), ("r:else/t", -32602)] {
        client.start("resources/read", json!({"uri": uri}));
        assert_eq!(client.only()["error"]["code"], code, "{uri}");
    }
    for (code, sent) in
        [(-32020, -32603), (-32021, -32603), (-32022, -32603), (-32602, -32602), (42, 42), (-32000, -32000)]
    {
        client.start("tools/call", json!({"name": "fails", "arguments": {"code": code}}));
        assert_eq!(client.only()["error"]["code"], sent, "{code}");
    }
    for params in [
        json!({}),
        json!({"name": 1}),
        json!({"name": "nobody"}),
        json!({"name": "one", "arguments": null}),
        json!({"name": "one", "_meta": {"progressToken": 1.5}}),
    ] {
        assert_eq!(client.request("tools/call", params.clone())["error"]["code"], -32602, "{params}");
    }
    assert_eq!(client.request("prompts/get", json!({"name": "p"}))["error"]["code"], -32602);
    // Declared requirements, before the first line runs.
    let refused = client.request("tools/call", json!({"name": "three"}));
    assert_eq!(refused["error"]["code"], -32603);
    assert_eq!(refused["error"]["data"], json!({"requiredCapabilities": {"elicitation": {"url": {}}}}));
}

/// G-12, R-245: what belongs to other eras is not looked at.
#[test]
fn foreign_parameters_are_ignored_g12() {
    let mut client = client(|ctx: Ctx| async move { Ok(ToolResult::text(shown(number(&ctx, "a").await))) });
    let params = json!({"name": "t", "inputResponses": {"a": n(1)}, "requestState": "s", "task": {"ttl": 1}});
    client.start("tools/call", params);
    let ask = client.only();
    client.answer(&ask, n(2));
    assert_eq!(text(&client.only()), "2");
}

/// A11, A12: `once` makes its value once; commits run in order after an `Ok`, and the first `Err` is the reply.
#[test]
fn once_and_commits_a12() {
    let made = Arc::new(AtomicUsize::new(0));
    let done = Arc::new(AtomicUsize::new(0));
    let (making, doing) = (made.clone(), done.clone());
    let mut client = client(move |ctx: Ctx| {
        let (making, doing) = (making.clone(), doing.clone());
        async move {
            let value: usize = ctx.once("v", || making.fetch_add(1, Ordering::Relaxed))?;
            let how: String = ctx.argument("how")?;
            for fails in [false, how == "commit fails", false] {
                let doing = doing.clone();
                ctx.on_commit(move || {
                    doing.fetch_add(1, Ordering::Relaxed);
                    if fails { Err(RpcError::internal("no commit")) } else { Ok(()) }
                });
            }
            number(&ctx, "a").await?;
            match how.as_str() {
                "error" => Err(RpcError::internal("failed")),
                "isError" => Ok(ToolResult::error("failed")),
                _ => Ok(ToolResult::text(value.to_string())),
            }
        }
    });
    let mut run = |how: &str| {
        let before = done.load(Ordering::Relaxed);
        client.start("tools/call", json!({"name": "t", "arguments": {"how": how}}));
        let ask = client.only();
        assert_eq!(done.load(Ordering::Relaxed), before);
        client.answer(&ask, n(1));
        (client.only(), done.load(Ordering::Relaxed) - before)
    };
    let (reply, ran) = run("ok");
    assert_eq!((text(&reply), ran), ("0", 3));
    let (reply, ran) = run("commit fails");
    assert_eq!((reply["error"]["message"].as_str(), ran), (Some("no commit"), 2));
    assert_eq!(run("error").1, 0);
    let (reply, ran) = run("isError");
    assert_eq!((&reply["result"]["isError"], ran), (&json!(true), 0));
    assert_eq!(made.load(Ordering::Relaxed), 4);
}

/// R-188, R-239: a cancelled call says nothing more, takes back its questions, and stops; late answers, cancellations of
/// what is over, and unknown ids change nothing.
#[test]
fn a_cancelled_call_stops_r239() {
    let alive = Arc::new(());
    let inside = alive.clone();
    let mut client = client(move |ctx: Ctx| {
        let held = inside.clone();
        async move {
            let (a, b) = future::join(number(&ctx, "a"), number(&ctx, "b")).await;
            drop(held);
            Ok(ToolResult::text(format!("{} {}", shown(a), shown(b))))
        }
    });
    let idle = Arc::strong_count(&alive);
    let call = client.call();
    let asks = client.drain();
    client.answer(&asks[0], n(1));
    assert_eq!(Arc::strong_count(&alive), idle + 1);
    client.notify("notifications/cancelled", json!({"requestId": call, "reason": "bored"}));
    assert_eq!(Arc::strong_count(&alive), idle);
    let said = client.only();
    assert_eq!(
        (&said["method"], &said["params"]),
        (&json!("notifications/cancelled"), &json!({"requestId": asks[1]["id"]}))
    );
    client.answer(&asks[1], n(2));
    client.notify("notifications/cancelled", json!({"requestId": call}));
    client.notify("notifications/cancelled", json!({"requestId": "unknown"}));
    client.notify("notifications/cancelled", json!({}));
    assert!(client.drain().is_empty());
    // One that was not asked yet is not asked any more, and needs no cancellation.
    let call = client.call();
    let other = client.call();
    client.notify("notifications/cancelled", json!({"requestId": call}));
    let asks = client.drain();
    assert_eq!(asks.len(), 2);
    asks.iter().for_each(|ask| client.answer(ask, n(3)));
    assert_eq!(client.only()["id"], other);
}

/// A12, R-239: a commit that has begun is not cancelled; its reply is not sent.
#[test]
fn a_commit_goes_on_after_cancellation_a12() {
    let (release, wait) = futures::channel::oneshot::channel::<()>();
    let wait = Arc::new(std::sync::Mutex::new(Some(wait)));
    let done = Arc::new(AtomicUsize::new(0));
    let doing = done.clone();
    let mut client = client(move |ctx: Ctx| {
        let wait = wait.lock().expect("a lock").take().expect("one call");
        let doing = doing.clone();
        async move {
            ctx.on_commit_async(move || async move {
                let _ = wait.await;
                doing.fetch_add(1, Ordering::Relaxed);
                Ok(())
            });
            Ok(ToolResult::text("done"))
        }
    });
    let call = client.call();
    assert!(client.drain().is_empty());
    client.notify("notifications/cancelled", json!({"requestId": call}));
    client.session.end();
    assert!(client.drain().is_empty() && !client.session.is_over());
    release.send(()).expect("it waits");
    assert!(client.drain().is_empty());
    assert_eq!(done.load(Ordering::Relaxed), 1);
    assert!(client.session.is_over());
}

/// B-61: two calls ask under the same key; each answer meets the call whose request it answers, whatever the order. Strings
/// that look like our ids, and ids of others, meet nobody.
#[test]
fn answers_meet_their_own_question_b61() {
    let mut client = client(|ctx: Ctx| async move { Ok(ToolResult::text(shown(number(&ctx, "q").await))) });
    let calls: Vec<i64> = (0..8).map(|_| client.call()).collect();
    let asks = client.drain();
    assert_eq!(asks.len(), 8);
    for ask in &asks {
        let text = ask["id"].to_string();
        client.answer(&json!({"id": text}), n(9));
        client.answer(&json!({"id": 1_000_000 + ask["id"].as_i64().expect("a number")}), n(9));
    }
    client.send(&json!({"jsonrpc": "2.0", "error": {"code": 1, "message": "whose?"}}));
    assert!(client.drain().is_empty());
    // On a pipe nothing says which call a request serves (R-231): the answers tell.
    for (index, ask) in asks.iter().enumerate().rev() {
        client.answer(ask, n(index as i64));
        let done = client.only();
        assert_eq!(done["id"].as_i64(), Some(calls[index]));
        assert_eq!(text(&done), index.to_string());
    }
}

/// R-229: an id of a call that runs is not taken a second time; the refusal cannot be mistaken for that call's reply.
#[test]
fn an_id_in_use_is_refused_r229() {
    let mut client = client(|ctx: Ctx| async move { Ok(ToolResult::text(shown(number(&ctx, "q").await))) });
    let call = client.call();
    let ask = client.only();
    let again = client.send(&json!({"jsonrpc": "2.0", "id": call, "method": "ping"})).expect("a reply");
    assert_eq!((again.get("id"), &again["error"]["code"]), (None, &json!(-32600)));
    client.answer(&ask, n(1));
    assert_eq!(client.only()["id"], call);
}

/// A panic ends its call and no other.
#[test]
#[cfg_attr(panic = "abort", ignore = "a panic ends the process")]
fn a_panic_is_an_internal_error() {
    let mut client = client(|ctx: Ctx| async move {
        let answer = shown(number(&ctx, "a").await);
        assert_ne!(answer, "1", "asked for");
        Ok(ToolResult::text(answer))
    });
    let calls = [client.call(), client.call()];
    let asks = client.drain();
    client.answer(&asks[0], n(1));
    let failed = client.only();
    assert_eq!(
        (failed["id"].as_i64(), &failed["error"]),
        (Some(calls[0]), &json!({"code": -32603, "message": "Internal error"}))
    );
    client.answer(&asks[1], n(2));
    assert_eq!(text(&client.only()), "2");
}

/// A12: what a commit asks has nobody to answer it, in a session too, nor has what the handler left open. What a step
/// leaves for the commit is done in its turn.
#[test]
fn a_commit_that_asks_comes_to_its_end_a12() {
    let done = Arc::new(AtomicUsize::new(0));
    let doing = done.clone();
    let mut client = client(move |ctx: Ctx| {
        let doing = doing.clone();
        async move {
            let (open, inside) = (number(&ctx, "open"), ctx.clone());
            ctx.on_commit_async(move || async move {
                let said = [shown(open.await), shown(number(&inside, "late").await)];
                if said != ["Ended", "Ended"] {
                    return Err(RpcError::internal(said.concat()));
                }
                inside.on_commit(move || {
                    doing.fetch_add(1, Ordering::Relaxed);
                    Ok(())
                });
                Ok(())
            });
            Ok(ToolResult::text("done"))
        }
    });
    client.call();
    assert_eq!(text(&client.only()), "done");
    assert_eq!(done.load(Ordering::Relaxed), 1);
}
