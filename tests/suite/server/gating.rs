//! Capabilities: what may be asked of whom.

use mrtr_core::{
    Limits,
    catalog::Tool,
    form::Elicited,
    handler::{Ctx, RpcError, Service, ToolResult},
    jsonrpc::Json,
    server::Server,
    wire::{AskKind, InputRequest, Requirement, Sampling},
};
use mrtr_tests::world::{Reply, World, accept, config};
use serde_json::{Value, json};

use super::{call, retry, world};

/// R-100…R-106, R-110, R-021, G-13, G-14, B-18, B-50, B-51, trap 34: every shape of a declaration against every kind of
/// ask, with the exact data of `-32021`. `None`: it may be asked.
#[test]
fn r_100_r_106_every_declaration_against_every_ask() {
    let elicitation = || Some(json!({"elicitation": {}}));
    let form = || Some(json!({"elicitation": {"form": {}}}));
    let url = || Some(json!({"elicitation": {"url": {}}}));
    let sampling = || Some(json!({"sampling": {}}));
    let tools = || Some(json!({"sampling": {"tools": {}}}));
    let roots = || Some(json!({"roots": {}}));
    // form, url, sampling, sampling with tools, roots
    let table: Vec<(Value, [Option<Value>; 5])> = vec![
        (json!({}), [elicitation(), url(), sampling(), tools(), roots()]),
        (json!({"elicitation": {}}), [None, url(), sampling(), tools(), roots()]),
        (json!({"elicitation": {"form": {}}}), [None, url(), sampling(), tools(), roots()]),
        (json!({"elicitation": {"url": {}}}), [form(), None, sampling(), tools(), roots()]),
        (json!({"elicitation": {"form": {}, "url": {}}}), [None, None, sampling(), tools(), roots()]),
        (
            json!({"elicitation": {"form": {"x": 1}, "later": {}}}),
            [None, url(), sampling(), tools(), roots()],
        ),
        (json!({"elicitation": {"later": {}}}), [None, url(), sampling(), tools(), roots()]),
        // A mode that is null, or no object, is not declared; `{}` means forms only where no mode is named.
        (json!({"elicitation": {"form": null}}), [form(), url(), sampling(), tools(), roots()]),
        (json!({"elicitation": {"url": null, "form": {}}}), [None, url(), sampling(), tools(), roots()]),
        (json!({"elicitation": {"url": true}}), [form(), url(), sampling(), tools(), roots()]),
        (json!({"sampling": {}}), [elicitation(), url(), None, tools(), roots()]),
        (json!({"sampling": {"tools": {}}}), [elicitation(), url(), None, None, roots()]),
        (json!({"sampling": {"tools": null}}), [elicitation(), url(), None, tools(), roots()]),
        (json!({"sampling": {"context": {}}}), [elicitation(), url(), None, tools(), roots()]),
        (json!({"roots": {}}), [elicitation(), url(), sampling(), tools(), None]),
        (json!({"roots": {"listChanged": true}}), [elicitation(), url(), sampling(), tools(), None]),
        (
            json!({"Elicitation": {}, "experimental": {"elicitation": {}}, "extensions": {"roots": {}}}),
            [elicitation(), url(), sampling(), tools(), roots()],
        ),
        (
            json!({"elicitation": {"form": {}, "url": {}}, "sampling": {"tools": {}}, "roots": {}, "x": null}),
            [None, None, None, None, None],
        ),
    ];
    let mut world = world();
    for (declared, expected) in table {
        world.capabilities = declared.clone();
        let tools =
            [&["form", "confirm"][..], &["url"], &["sample"], &["sample_tools", "sample_choice"], &["roots"]];
        for (tools, missing) in tools.into_iter().zip(expected) {
            for tool in tools {
                let reply = call(&mut world, tool, json!({}));
                match &missing {
                    None => assert_eq!(reply.keys().len(), 1, "{tool} {declared}"),
                    Some(missing) => {
                        assert_eq!(reply.error().0, -32021, "{tool} {declared}");
                        assert_eq!(
                            reply.data(),
                            &json!({"requiredCapabilities": missing}),
                            "{tool} {declared}"
                        );
                    }
                }
            }
        }
    }
}

/// R-021, G-13: all that a round lacks, merged, and nothing that it has.
#[test]
fn g_13_what_a_round_lacks_is_named_together() {
    let mut world = world();
    for (declared, missing) in [
        (json!({}), json!({"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {}})),
        (json!({"elicitation": {}}), json!({"elicitation": {"url": {}}, "sampling": {}, "roots": {}})),
        (
            json!({"elicitation": {"url": {}}}),
            json!({"elicitation": {"form": {}}, "sampling": {}, "roots": {}}),
        ),
        (json!({"elicitation": {"form": {}, "url": {}}, "roots": {}}), json!({"sampling": {}})),
    ] {
        world.capabilities = declared;
        let reply = call(&mut world, "everything", json!({}));
        assert_eq!(reply.error().0, -32021);
        assert_eq!(reply.data(), &json!({"requiredCapabilities": missing}));
    }
}

/// R-061, R-107, G-13: optional asks are dropped one by one, and the handler learns which.
#[test]
fn r_107_optional_asks_are_dropped() {
    let mut world = world();
    for (declared, asked, shown) in [
        (json!({}), vec![], "false false false false"),
        (json!({"sampling": {}}), vec!["s"], "false false true false"),
        (json!({"elicitation": {}}), vec!["n"], "true false false false"),
        (json!({"elicitation": {"url": {}}, "roots": {}}), vec!["in", "r"], "false true false true"),
    ] {
        world.capabilities = declared;
        let mut reply = call(&mut world, "optional", json!({}));
        if !asked.is_empty() {
            assert_eq!(reply.keys().len(), asked.len());
            assert!(asked.iter().all(|key| reply.keys().contains(key)));
            let answers = json!({
                "n": accept(json!({"n": 1})), "in": {"action": "accept"}, "r": {"roots": []},
                "s": {"role": "assistant", "model": "m", "content": []}});
            reply = retry(&mut world, "optional", &reply, answers);
        }
        assert_eq!(reply.text(), shown);
    }
    // An answer to an ask that was dropped is not taken either.
    world.capabilities = json!({"sampling": {}});
    let first = call(&mut world, "optional", json!({"inputResponses": {"n": accept(json!({"n": 1}))}}));
    assert_eq!(first.keys(), ["s"]);
}

/// R-108: the request in hand decides. Capabilities that come and go between rounds; recorded rounds are settled.
#[test]
fn r_108_capabilities_may_change_between_rounds() {
    let mut world = world();
    let all = world.capabilities.clone();
    let first = call(&mut world, "two", json!({}));
    world.capabilities = json!({});
    // The first question is answered; the second needs what is no longer declared.
    let reply = retry(&mut world, "two", &first, json!({"a": accept(json!({"n": 1}))}));
    assert_eq!(reply.error().0, -32021);
    // Asking the first again needs it too.
    assert_eq!(retry(&mut world, "two", &first, json!({})).error().0, -32021);
    // The refusal consumed nothing.
    world.capabilities = all.clone();
    let second = retry(&mut world, "two", &first, json!({"a": accept(json!({"n": 1}))}));
    assert_eq!(second.keys(), ["b"]);
    // Nothing more to ask: nothing needs to be declared.
    world.capabilities = json!({});
    assert_eq!(retry(&mut world, "two", &second, json!({"b": accept(json!({"n": 2}))})).text(), "1 2");
    // An optional ask that was settled as unavailable stays so.
    world.capabilities = json!({"sampling": {}});
    let first = call(&mut world, "optional", json!({}));
    world.capabilities = all;
    let answers = json!({"s": {"role": "assistant", "model": "m", "content": []}});
    assert_eq!(retry(&mut world, "optional", &first, answers).text(), "false false true false");
}

/// R-104: `includeContext` goes out only if the request in hand declares `sampling.context`; the ask goes out all the
/// same, without it, however its name is written. The recorded question stays the same one.
#[test]
fn r_104_included_context_needs_its_own_capability() {
    for escaped in [false, true] {
        let mut world = World::new(move |ctx: Ctx| async move {
            let ask = Sampling::new(9)
                .user("hi \u{1f600}\n")
                .member("temperature", "0.25")
                .member("includeContext", "\"thisServer\"")
                .member("metadata", r#"{"includeContext":"kept"}"#);
            let Elicited::Accept(sampled) = (if escaped {
                let request = ask.request();
                let params = request.params().expect("parameters").as_str();
                let params = params.replacen("\"includeC", "\"include\\u0043", 1);
                let params = Json::parse(&params, &Limits::default()).expect("JSON");
                let ask = InputRequest::from_parts("sampling/createMessage", Some(params)).expect("an ask");
                ctx.ask("s", ask).await?
            } else {
                Elicited::Accept(ctx.sample("s", &ask).await?.json().as_str().to_owned())
            }) else {
                panic!("sampling is never declined")
            };
            let sampled: Value = serde_json::from_str(&sampled).expect("JSON");
            Ok(ToolResult::text(sampled["content"]["text"].as_str().expect("a text")))
        });
        for (declared, sent) in [
            (json!({"sampling": {"context": {}}}), true),
            (json!({"sampling": {"context": {}, "tools": {}}}), true),
            (json!({"sampling": {}}), false),
            (json!({"sampling": {"tools": {}}}), false),
            (json!({"sampling": {"context": null}}), false),
        ] {
            world.capabilities = declared.clone();
            let first = world.call(json!({}));
            let mut expected = json!({
                "messages": [{"role": "user", "content": {"type": "text", "text": "hi \u{1f600}\n"}}],
                "maxTokens": 9, "temperature": 0.25, "metadata": {"includeContext": "kept"},
            });
            if sent {
                expected["includeContext"] = json!("thisServer");
            }
            let ask = |reply: &Reply| reply.result()["inputRequests"]["s"].clone();
            assert_eq!(
                ask(&first),
                json!({"method": "sampling/createMessage", "params": expected}),
                "{declared}"
            );
            // The declaration may change from round to round (R-108): the same question, asked and answered.
            let again = world.retry(&first, json!({}));
            assert_eq!(ask(&again), ask(&first));
            world.capabilities = json!({"sampling": {"context": {}}});
            let content = json!({"type": "text", "text": "yes"});
            let answer = json!({"s": {"role": "assistant", "model": "m", "content": content}});
            assert_eq!(ask(&world.retry(&again, json!({})))["params"]["includeContext"], "thisServer");
            assert_eq!(world.retry(&again, answer).text(), "yes");
        }
    }
}

/// R-106: declared needs are gated before the first line of the tool, merged, also those the tool would reach late.
#[test]
fn r_106_declared_needs() {
    let runs = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let count = runs.clone();
    let tool = Tool::new("t", "A tool")
        .requires(Requirement::new(AskKind::Form))
        .requires(Requirement::sampling_with_tools())
        .requires(Requirement::new(AskKind::Roots));
    let service = Service::new(Server::new(config())).tool(tool, move |_: Ctx| {
        count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        async move { Ok::<_, RpcError>(ToolResult::text("ran")) }
    });
    let mut world = World::of(service.expect("a valid tool"));
    world.capabilities = json!({"sampling": {}, "roots": {}});
    let reply = world.call(json!({}));
    assert_eq!(reply.error().0, -32021);
    assert_eq!(
        reply.data(),
        &json!({"requiredCapabilities": {"elicitation": {}, "sampling": {"tools": {}}}})
    );
    assert_eq!(runs.load(std::sync::atomic::Ordering::Relaxed), 0);
    world.capabilities = json!({"elicitation": {}, "sampling": {"tools": {}}, "roots": {}});
    assert_eq!(world.call(json!({})).text(), "ran");
}

/// A7, R-106: an answer that comes unasked does not make up for a capability that is not declared.
#[test]
fn r_106_early_answers_do_not_open_the_gate() {
    let mut world = world();
    world.capabilities = json!({});
    let reply = call(&mut world, "form", json!({"inputResponses": {"n": accept(json!({"n": 1}))}}));
    assert_eq!(reply.error().0, -32021);
}
