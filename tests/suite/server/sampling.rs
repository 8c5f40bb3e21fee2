//! Sampling and roots: deprecated, and they work (R-144).

use mrtr_core::{
    handler::{Ctx, RpcError, ToolResult},
    wire::Sampling,
};
use mrtr_tests::world::World;
use serde_json::{Value, json};

use super::{call, retry, world};

/// R-145, R-147, R-149: the parameters on the wire, with the members the author put in and no others.
#[test]
fn r_145_sampling_parameters() {
    let mut world = World::new(|ctx: Ctx| async move {
        let ask = Sampling::new(100)
            .system("Answer \"briefly\"")
            .user("Capital?")
            .assistant("Of what?")
            .user("France\n")
            .member("temperature", "0.5")
            .member("stopSequences", r#"["\n"]"#)
            .member("modelPreferences", r#"{"hints":[{"name":"small"}],"costPriority":1}"#)
            .member("tools", "[]")
            .member("toolChoice", r#"{"mode":"auto"}"#)
            .member("temperature", "0.25");
        Ok(ToolResult::text(ctx.sample("s", &ask).await?.text()))
    });
    let text = |text: &str| json!({"type": "text", "text": text});
    assert_eq!(
        world.call(json!({})).result()["inputRequests"]["s"],
        json!({
            "method": "sampling/createMessage",
            "params": {
                "messages": [
                    {"role": "user", "content": text("Capital?")},
                    {"role": "assistant", "content": text("Of what?")},
                    {"role": "user", "content": text("France\n")},
                ],
                "maxTokens": 100, "systemPrompt": "Answer \"briefly\"", "temperature": 0.25, "stopSequences": ["\n"],
                "modelPreferences": {"hints": [{"name": "small"}], "costPriority": 1}, "tools": [], "toolChoice": {"mode": "auto"},
            },
        })
    );
}

/// R-145: parameters that are no JSON, or that stand twice, are the author's fault and never sent.
#[test]
fn r_145_parameters_that_are_no_json_are_not_sent() {
    for (name, json) in [
        ("temperature", "0.5}"),
        ("tools", "["),
        ("x", ""),
        ("x", "1,\"y\":2"),
        ("maxTokens", "5"),
        ("messages", "[]"),
        ("x", "{\"a\":1,\"a\":2}"),
    ] {
        let mut world = World::new(move |ctx: Ctx| async move {
            Ok(ToolResult::text(
                ctx.sample("s", &Sampling::new(9).user("hi").member(name, json)).await?.text(),
            ))
        });
        let reply = world.call(json!({}));
        if json == "1,\"y\":2" {
            // Two members for one: odd, but JSON.
            assert_eq!(reply.keys(), ["s"]);
        } else {
            assert_eq!(reply.error(), (-32603, "Internal error"), "{name}: {json}");
        }
    }
}

/// R-150, R-151: one block or many, any stop reason; only text is text.
#[test]
fn r_150_sampling_answers() {
    let mut world = world();
    let first = call(&mut world, "sample", json!({}));
    let block = |text: &str| json!({"type": "text", "text": text});
    for (content, stop, said) in [
        (block("Paris"), json!("endTurn"), r#"Paris m Some("endTurn")"#),
        (
            json!([block("Pa"), {"type": "image", "data": "AA==", "mimeType": "image/png"}, block("ris")]),
            json!("own word"),
            r#"Paris m Some("own word")"#,
        ),
        (
            json!([{"type": "tool_use", "id": "1", "name": "t", "input": {}}]),
            json!("toolUse"),
            r#" m Some("toolUse")"#,
        ),
        (json!([]), Value::Null, " m None"),
        (json!({"type": "text"}), json!(5), " m None"),
    ] {
        let answer = json!({"role": "assistant", "model": "m", "content": content, "stopReason": stop});
        assert_eq!(retry(&mut world, "sample", &first, json!({"s": answer})).text(), said);
    }
}

/// R-151: tool use is one more round, whose request the handler builds from what its replay gives it.
#[test]
fn r_151_tool_use_is_one_more_round() {
    let mut world = World::new(|ctx: Ctx| async move {
        let tools = r#"[{"name":"add","inputSchema":{"type":"object"}}]"#;
        let mut ask = Sampling::new(9).user("1+1?").member("tools", tools);
        for turn in 0..3 {
            let sampled = ctx.sample("s", &ask).await?;
            if sampled.stop_reason().as_deref() != Some("toolUse") {
                return Ok(ToolResult::text(format!("{} after {turn}", sampled.text())));
            }
            ask = ask.assistant(&sampled.json().as_str().len().to_string()).user("2");
        }
        Err(RpcError::internal("too many turns"))
    });
    let first = world.call(json!({}));
    assert_eq!(first.keys(), ["s"]);
    let answer = json!({"role": "assistant", "model": "m", "stopReason": "toolUse", "content": [{"type": "tool_use", "id": "1", "name": "add", "input": {}}]});
    let second = world.retry(&first, json!({"s": answer}));
    assert_eq!(second.keys(), ["s#1"]);
    assert_eq!(
        second.result()["inputRequests"]["s#1"]["params"]["messages"].as_array().expect("an array").len(),
        3
    );
    let answer = json!({"role": "assistant", "model": "m", "stopReason": "endTurn", "content": {"type": "text", "text": "2"}});
    assert_eq!(world.retry(&second, json!({"s#1": answer})).text(), "2 after 1");
}

/// R-154, R-155: roots as the handler sees them.
#[test]
fn r_155_roots() {
    let mut world = world();
    let first = call(&mut world, "roots", json!({}));
    assert_eq!(first.result()["inputRequests"]["r"], json!({"method": "roots/list", "params": {}}));
    let answer = json!({"roots": [{"uri": "file:///a%20b", "name": "A"}, {"uri": "file:///", "_meta": {}}], "_meta": {}});
    let done = retry(&mut world, "roots", &first, json!({"r": answer}));
    assert_eq!(
        done.text(),
        r#"[Root { uri: "file:///a%20b", name: Some("A") }, Root { uri: "file:///", name: None }]"#
    );
    assert_eq!(retry(&mut world, "roots", &first, json!({"r": {"roots": []}})).text(), "[]");
}

/// R-094, G-17: a refusal has no form here: no answer means asking again.
#[test]
fn r_094_no_answer_means_asking_again() {
    let mut world = world();
    for (tool, key) in [("sample", "s"), ("roots", "r")] {
        let first = call(&mut world, tool, json!({}));
        assert_eq!(retry(&mut world, tool, &first, json!({})).keys(), [key]);
        assert_eq!(retry(&mut world, tool, &first, json!({key: {"action": "decline"}})).error().0, -32602);
    }
}
