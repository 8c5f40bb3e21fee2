//! Questions in the words of each revision, and those that a revision has no words for.

use futures::future;
use mrtr_core::{
    form::{Field, Form},
    handler::{Ctx, RpcError, ToolResult},
    wire::Sampling,
};
use mrtr_tests::legacy::{Client, text};
use serde_json::{Value, json};

use super::{NARROW, NEWEST, OLDEST, all, client, n, number, service, shown};

async fn every_kind(ctx: Ctx) -> Result<ToolResult, RpcError> {
    let room = Form::builder("Which room?")
        .field(Field::select("room").option("a", "Garden").option("b", "Hall").default("a"))
        .build()
        .expect("a valid form");
    let form = ctx.elicit::<Value>("f", &room);
    let url = ctx.elicit_url("u", "Sign in", "https://x.example/?a=b").optional();
    let sampled = ctx.sample("s", &Sampling::new(9).user("hi").member("includeContext", "\"none\""));
    let roots = ctx.roots("r");
    let (form, url, sampled, roots) = future::join4(form, url, sampled, roots).await;
    Ok(ToolResult::text(format!(
        "{:?} {url:?} {} {}",
        form?.accepted().map(|content| content["room"].to_string()),
        sampled?.text(),
        roots?.len()
    )))
}

fn answer_all(client: &mut Client, asks: &[Value]) {
    for ask in asks {
        let result = match (ask["method"].as_str().expect("a method"), ask["params"]["mode"].as_str()) {
            ("elicitation/create", Some("url")) => json!({"action": "accept"}),
            ("elicitation/create", _) => json!({"action": "accept", "content": {"room": "b"}}),
            ("sampling/createMessage", _) => {
                json!({"role": "assistant", "model": "m", "content": [{"type": "text", "text": "yes"}]})
            }
            _ => json!({"roots": [{"uri": "file:///a"}], "_meta": {"x": 1}}),
        };
        client.answer(ask, result);
    }
}

/// BT-1…BT-4, R-229, R-230, R-233, R-252, B-71: every kind in the words of 2025-11-25, under ids of its own, the url
/// with an id that nobody has seen before.
#[test]
fn the_newest_revision_is_asked_in_its_words_bt1() {
    let mut client = client(every_kind);
    let mut elicitations = Vec::new();
    let mut ids = Vec::new();
    for _ in 0..2 {
        let call = client.call();
        let asks = client.drain();
        assert_eq!(asks.len(), 4);
        for ask in &asks {
            assert_eq!(ask["jsonrpc"], "2.0");
            assert!(!ids.contains(&ask["id"]), "an id was used twice in a session");
            ids.push(ask["id"].clone());
        }
        assert_eq!(asks[0]["method"], "elicitation/create");
        assert_eq!(
            asks[0]["params"],
            json!({"mode": "form", "message": "Which room?", "requestedSchema": {"type": "object", "properties": {
                "room": {"type": "string", "oneOf": [{"const": "a", "title": "Garden"}, {"const": "b", "title": "Hall"}],
                    "default": "a"}}}})
        );
        let elicitation = asks[1]["params"]["elicitationId"].as_str().expect("an id").to_owned();
        assert_eq!(elicitation.len(), 32);
        assert!(!elicitations.contains(&elicitation));
        assert_eq!(
            asks[1]["params"],
            json!({"mode": "url", "message": "Sign in", "url": "https://x.example/?a=b", "elicitationId": elicitation})
        );
        elicitations.push(elicitation);
        assert_eq!(asks[2]["method"], "sampling/createMessage");
        assert_eq!(
            asks[2]["params"],
            json!({"messages": [{"role": "user", "content": {"type": "text", "text": "hi"}}], "maxTokens": 9,
                "includeContext": "none"})
        );
        assert_eq!((&asks[3]["method"], &asks[3]["params"]), (&json!("roots/list"), &json!({})));
        answer_all(&mut client, &asks);
        let done = client.only();
        assert_eq!((done["id"].as_i64(), text(&done)), (Some(call), r#"Some("\"b\"") Ok(Accept) yes 1"#));
    }
}

/// BT-3: `includeContext` goes only to a client that declared it.
#[test]
fn context_is_dropped_where_it_was_not_declared_bt3() {
    let mut client =
        Client::new(service(every_kind), NEWEST, json!({"elicitation": {}, "sampling": {}, "roots": {}}));
    client.call();
    let asks = client.drain();
    // `{}` is forms alone (R-100, B-50): the optional url is not asked.
    assert_eq!(asks.len(), 3);
    assert_eq!(asks[1]["params"].get("includeContext"), None);
    answer_all(&mut client, &asks);
    assert_eq!(text(&client.only()), r#"Some("\"b\"") Err(Unavailable) yes 1"#);
}

/// BT-5, R-246: 2025-06-18 gets forms in its smaller language, and never a url, whatever it declared. The answer is
/// judged by the form as the handler made it.
#[test]
fn the_narrow_revision_gets_its_own_forms_bt5() {
    let mut client = Client::new(service(every_kind), NARROW, all());
    client.call();
    let asks = client.drain();
    assert_eq!(asks.len(), 3);
    assert_eq!(
        asks[0]["params"],
        json!({"message": "Which room?", "requestedSchema": {"type": "object", "properties": {
            "room": {"type": "string", "enum": ["a", "b"], "enumNames": ["Garden", "Hall"]}}}})
    );
    answer_all(&mut client, &asks);
    assert_eq!(text(&client.only()), r#"Some("\"b\"") Err(Unavailable) yes 1"#);
    // Elicitation is an object of any kind there: `{"url":{}}` means forms too.
    let mut client = Client::new(
        service(|ctx: Ctx| async move { Ok(ToolResult::text(shown(number(&ctx, "a").await))) }),
        NARROW,
        json!({"elicitation": {"url": {}}}),
    );
    client.call();
    let ask = client.only();
    assert_eq!(ask["params"].get("mode"), None);
    client.answer(&ask, n(4));
    assert_eq!(text(&client.only()), "4");
}

/// R-001, B-61, B-81: what is an answer and a request at once is the answer to the question that waits under its id, and a
/// broken one; under another id it is a broken request.
#[test]
fn what_answers_and_asks_at_once_fails_its_question() {
    let mut client = client(|ctx: Ctx| async move { Ok(ToolResult::text(shown(number(&ctx, "a").await))) });
    client.call();
    let ask = client.only();
    let both = |id: &Value| json!({"jsonrpc": "2.0", "id": id, "method": "ping", "result": n(4)});
    let refused = client.send(&both(&json!("mine"))).expect("an answer");
    assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!("mine"), &json!(-32600)));
    assert!(client.drain().is_empty());
    assert_eq!(client.send(&both(&ask["id"])), None);
    assert!(text(&client.only()).contains("`method` beside `result` or `error`"));
}

/// BT-5, BT-6, R-246, G-13: what a revision has no words for is missing: required ends the call with `-32603` and
/// what is lacking, optional resolves, and what else was open is asked.
#[test]
fn what_cannot_be_said_is_missing_bt6() {
    async fn many(ctx: Ctx) -> Result<ToolResult, RpcError> {
        let several = Form::builder("Which?")
            .field(Field::multi_select("m").option("a", "A").option("b", "B"))
            .build()
            .expect("a valid form");
        let optional: bool = ctx.argument("optional")?;
        let asked = ctx.elicit::<Value>("m", &several);
        let asked = if optional { asked.optional() } else { asked };
        let (a, m) = future::join(number(&ctx, "a"), asked).await;
        Ok(ToolResult::text(format!("{} {:?}", shown(a), m.is_ok())))
    }
    let start = |client: &mut Client, optional: bool| {
        client.start("tools/call", json!({"name": "t", "arguments": {"optional": optional}}))
    };
    let mut narrow = Client::new(service(many), NARROW, all());
    start(&mut narrow, false);
    let refused = narrow.only();
    assert_eq!(refused["error"]["code"], -32603);
    assert_eq!(refused["error"]["data"], json!({"requiredCapabilities": {"elicitation": {}}}));
    start(&mut narrow, true);
    let ask = narrow.only();
    assert_eq!(ask["params"]["message"], "a");
    narrow.answer(&ask, n(3));
    assert_eq!(text(&narrow.only()), "3 false");
    // 2025-11-25 has multi-selects.
    let mut newest = Client::new(service(many), NEWEST, all());
    start(&mut newest, false);
    assert_eq!(newest.drain().len(), 2);
}

/// BT-6, R-100, R-102, R-228, R-246, B-50, trap 38: a required ask that the session did not declare is `-32603` with
/// `data.requiredCapabilities`, before anything was asked.
#[test]
fn a_missing_capability_is_named_b50() {
    type Make = fn(Ctx) -> futures::future::BoxFuture<'static, Result<ToolResult, RpcError>>;
    let kinds: [Make; 4] = [
        |ctx| Box::pin(async move { Ok(ToolResult::text(shown(number(&ctx, "a").await))) }),
        |ctx| {
            Box::pin(async move {
                Ok(ToolResult::text(format!("{:?}", ctx.elicit_url("u", "m", "https://x").await?)))
            })
        },
        |ctx| {
            Box::pin(async move {
                let tools = Sampling::new(1).user("u").member("tools", "[]");
                Ok(ToolResult::text(ctx.sample("s", &tools).await?.text()))
            })
        },
        |ctx| Box::pin(async move { Ok(ToolResult::text(format!("{}", ctx.roots("r").await?.len()))) }),
    ];
    let cases = [
        (
            NEWEST,
            json!({}),
            [
                Some(json!({"elicitation": {}})),
                Some(json!({"elicitation": {"url": {}}})),
                Some(json!({"sampling": {"tools": {}}})),
                Some(json!({"roots": {}})),
            ],
        ),
        (
            NEWEST,
            json!({"elicitation": {"url": {}}, "sampling": {}}),
            [
                Some(json!({"elicitation": {"form": {}}})),
                None,
                Some(json!({"sampling": {"tools": {}}})),
                Some(json!({"roots": {}})),
            ],
        ),
        (
            NEWEST,
            json!({"elicitation": {}, "roots": {}}),
            [None, Some(json!({"elicitation": {"url": {}}})), Some(json!({"sampling": {"tools": {}}})), None],
        ),
        (
            NARROW,
            all(),
            [None, Some(json!({"elicitation": {"url": {}}})), Some(json!({"sampling": {"tools": {}}})), None],
        ),
        (
            OLDEST,
            all(),
            [
                Some(json!({"elicitation": {}})),
                Some(json!({"elicitation": {"url": {}}})),
                Some(json!({"sampling": {"tools": {}}})),
                None,
            ],
        ),
    ];
    for (version, capabilities, lacking) in cases {
        for (make, lacking) in kinds.iter().zip(lacking) {
            let mut client = Client::new(service(*make), version, capabilities.clone());
            client.call();
            let said = client.only();
            match lacking {
                None => assert!(said.get("method").is_some(), "{version} {capabilities} {said}"),
                Some(lacking) => {
                    assert_eq!(said["error"]["code"], -32603, "{version} {capabilities} {said}");
                    assert_eq!(said["error"]["data"], json!({"requiredCapabilities": lacking}));
                }
            }
        }
    }
}
