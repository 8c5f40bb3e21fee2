//! Conversations with a client's model that use tools: R-147…R-153.

use mrtr_core::{
    handler::{Content, Ctx, RpcError, ToolResult},
    wire::{Sampled, Sampling},
};
use mrtr_tests::{
    legacy::Client,
    world::{World, config, service},
};
use serde_json::{Value, json};

const TOOLS: &str = r#"[{"name":"add","inputSchema":{"type":"object"}}]"#;

/// Asks until the model wants no tool any more; each use is answered with its own input, structured.
async fn talk(ctx: Ctx) -> Result<ToolResult, RpcError> {
    let mut talk = Sampling::new(9)
        .user_content([Content::text("1+1?"), Content::image(&[1, 2, 3], "image/png")])
        .member("tools", TOOLS);
    loop {
        let said = ctx.sample("s", &talk).await?;
        if said.tool_uses().is_empty() {
            return Ok(ToolResult::text(said.text()));
        }
        talk = talk.tool_results(&said, results(&said));
    }
}

fn results(said: &Sampled) -> Vec<(String, ToolResult)> {
    let result = |input: &str| match input {
        "{}" => ToolResult::error("no operands"),
        input => ToolResult::text(input).structured(&json!([input.len(), null])).expect("JSON"),
    };
    said.tool_uses().iter().map(|wanted| (wanted.id.to_string(), result(wanted.input.as_str()))).collect()
}

fn wants(uses: &[(&str, Value)]) -> Value {
    let uses: Vec<Value> = uses
        .iter()
        .map(|(id, input)| {
            json!({"type": "tool_use", "id": id, "name": "add", "input": input, "_meta": {"cache": id}})
        })
        .collect();
    json!({"role": "assistant", "model": "m", "stopReason": "toolUse", "content": uses})
}

fn end() -> Value {
    json!({"role": "assistant", "model": "m", "stopReason": "endTurn", "content": {"type": "text", "text": "2"}})
}

/// R-147, R-148, R-151, R-152, R-153: each round brings the whole conversation; what the model said stands in it as it
/// came, its metadata too; each use has its result right after it, structured content of any kind.
#[test]
fn r_148_a_conversation_with_tools() {
    let mut world = World::new(talk);
    let first = world.call(json!({}));
    let asked = |reply: &mrtr_tests::world::Reply, key: &str| {
        reply.result()["inputRequests"][key]["params"]["messages"].clone()
    };
    let opening = json!({"role": "user", "content": [
        {"type": "text", "text": "1+1?"}, {"type": "image", "data": "AQID", "mimeType": "image/png"}]});
    assert_eq!(asked(&first, "s"), json!([opening]));
    let said = wants(&[("u1", json!({"a": 1})), ("u2", json!({}))]);
    let second = world.retry(&first, json!({"s": said}));
    let answer = json!({"role": "user", "content": [
        {"type": "tool_result", "toolUseId": "u1", "content": [{"type": "text", "text": "{\"a\":1}"}], "structuredContent": [7, null]},
        {"type": "tool_result", "toolUseId": "u2", "content": [{"type": "text", "text": "no operands"}], "isError": true},
    ]});
    assert_eq!(
        asked(&second, "s#1"),
        json!([opening, {"role": "assistant", "content": said["content"]}, answer])
    );
    // A single block instead of an array.
    let mut single = wants(&[("u3", json!({"b": 2}))]);
    single["content"] = single["content"][0].clone();
    let third = world.retry(&second, json!({"s#1": single}));
    assert_eq!(asked(&third, "s#2").as_array().map(Vec::len), Some(5));
    assert_eq!(world.retry(&third, json!({"s#2": end()})).text(), "2");
}

/// R-148: results that are missing, of nobody's, twice, or among other blocks are the author's fault and never sent.
#[test]
fn r_148_what_does_not_match_is_not_sent() {
    type Results = fn(Sampled) -> Sampling;
    let wrong: [Results; 5] = [
        |said| Sampling::new(9).user("1+1?").tool_results(&said, []),
        |said| {
            let results = vec![("other".to_owned(), ToolResult::text("2"))];
            Sampling::new(9).user("1+1?").tool_results(&said, results)
        },
        |said| {
            let twice = results(&said).into_iter().chain(results(&said));
            Sampling::new(9).user("1+1?").tool_results(&said, twice)
        },
        // The assistant goes on before its results.
        |said| Sampling::new(9).tool_results(&said, []).assistant("so").tool_results(&said, results(&said)),
        // Results for what nobody wanted.
        |said| Sampling::new(9).tool_results(&said, results(&said)).tool_results(&said, []),
    ];
    for (index, make) in wrong.into_iter().enumerate() {
        let mut world = World::new(move |ctx: Ctx| async move {
            let said = ctx.sample("s", &Sampling::new(9).user("1+1?").member("tools", TOOLS)).await?;
            Ok(ToolResult::text(ctx.sample("t", &make(said)).await?.text()))
        });
        let first = world.call(json!({}));
        let reply = world.retry(&first, json!({"s": wants(&[("u1", json!({"a": 1}))])}));
        assert_eq!(reply.error(), (-32603, "Internal error"), "{index}");
    }
}

/// R-153, R-246, BT-5: structured content of another kind than an object is left out for a client of 2025-11-25; one of
/// 2025-06-18 knows no tools in sampling and is never asked so.
#[test]
fn r_153_structured_content_towards_older_clients() {
    let capabilities = json!({"sampling": {"tools": {}}});
    let mut client = Client::new(service(config(), talk), "2025-11-25", capabilities.clone());
    client.call();
    let ask = client.only();
    client.answer(&ask, wants(&[("u1", json!({"a": 1})), ("u2", json!({}))]));
    let ask = client.only();
    assert_eq!(
        ask["params"]["messages"][2]["content"],
        json!([
            {"type": "tool_result", "toolUseId": "u1", "content": [{"type": "text", "text": "{\"a\":1}"}]},
            {"type": "tool_result", "toolUseId": "u2", "content": [{"type": "text", "text": "no operands"}], "isError": true},
        ])
    );
    assert_eq!(ask["params"]["messages"][1]["content"][0]["_meta"], json!({"cache": "u1"}));
    client.answer(&ask, end());
    assert_eq!(client.only()["result"]["content"][0]["text"], "2");

    // A use of a tool without its declaration: that revision has no words for it.
    let handler = |ctx: Ctx| async move {
        let said = ctx.sample("s", &Sampling::new(9).user("1+1?")).await?;
        let again = Sampling::new(9).user("1+1?").tool_results(&said, results(&said));
        Ok(ToolResult::text(format!(
            "{:?}",
            ctx.sample("t", &again).optional().await.map(|said| said.text())
        )))
    };
    let mut client = Client::new(service(config(), handler), "2025-06-18", capabilities);
    client.call();
    let ask = client.only();
    let mut single = wants(&[("u1", json!({"a": 1}))]);
    single["content"] = single["content"][0].clone();
    client.answer(&ask, single);
    assert_eq!(client.only()["result"]["content"][0]["text"], "Err(Unavailable)");
}
