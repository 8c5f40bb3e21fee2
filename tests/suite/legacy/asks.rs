//! Questions over a held connection: their words in each revision, their answers, their rounds.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures::{channel::oneshot, future};
use mrtr_core::{
    Limits,
    form::{Field, Form},
    handler::{AskError, Ctx, RpcError, ToolResult},
    wire::Sampling,
};
use mrtr_tests::{
    legacy::{Client, text},
    world,
};
use serde_json::{Value, json};

use super::{NARROW, NEWEST, OLDEST, all, client, form, n, number, service, shown};

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

/// Trap 38: 0, 1, 3 and 9 rounds; the handler runs once, whatever their number (design: legacy eras).
#[test]
fn any_number_of_rounds_in_one_run() {
    for rounds in [0usize, 1, 3, 9] {
        let runs = Arc::new(AtomicUsize::new(0));
        let counted = runs.clone();
        let mut client = client(move |ctx: Ctx| {
            counted.fetch_add(1, Ordering::Relaxed);
            async move {
                let mut total = 0;
                for _ in 0..rounds {
                    total = total * 10 + shown(number(&ctx, "a").await).parse::<i64>().expect("a number");
                }
                Ok(ToolResult::text(total.to_string()))
            }
        });
        client.call();
        let mut total = 0;
        for round in 1..=rounds as i64 {
            let ask = client.only();
            client.answer(&ask, n(round));
            total = total * 10 + round;
        }
        assert_eq!(text(&client.only()), total.to_string());
        assert_eq!(runs.load(Ordering::Relaxed), 1);
    }
}

/// A3, A4, R-237, R-238: the answers of a round come together, when the last is there; an error is an answer.
#[test]
fn a_round_is_released_together_and_errors_count() {
    let mut client = client(|ctx: Ctx| async move {
        let first = async { shown(number(&ctx, "a").await) };
        let second = async {
            let roots = ctx.roots("r").await;
            let next = shown(number(&ctx, "b").await);
            format!("{roots:?} {next}")
        };
        let (first, second) = future::join(first, second).await;
        Ok(ToolResult::text(format!("{first} {second}")))
    });
    client.call();
    let asks = client.drain();
    client.refuse(&asks[1], -32601, "Roots not supported");
    assert_eq!(client.drain(), Vec::<Value>::new());
    client.answer(&asks[0], n(1));
    let next = client.only();
    client.answer(&next, json!({"action": "decline"}));
    assert_eq!(
        text(&client.only()),
        r#"1 Err(Refused { code: ErrorCode(-32601), message: "Roots not supported" }) declined"#
    );
}

/// BT-6, R-237: what `?` makes of a refusal names its cause.
#[test]
fn a_refusal_is_named_in_the_error_bt6() {
    let mut client = client(|ctx: Ctx| async move {
        Ok(ToolResult::text(ctx.sample("s", &Sampling::new(1).user("u")).await?.text()))
    });
    client.call();
    let ask = client.only();
    client.refuse(&ask, -1, "User rejected \"sampling\" request");
    let error = &client.only()["error"];
    assert_eq!(error["code"], -32603);
    assert_eq!(
        error["data"],
        json!({"cause": {"code": -1, "message": "User rejected \"sampling\" request"}})
    );
}

/// A4, G-18, R-132, R-229: content that does not fit is asked again, with the reason, under a new id; after three
/// times the handler is told.
#[test]
fn invalid_content_is_sent_again_three_times_a4() {
    let mut client = client(|ctx: Ctx| async move { Ok(ToolResult::text(shown(number(&ctx, "n").await))) });
    client.call();
    let first = client.only();
    assert_eq!(first["params"].get("_meta"), None);
    client.answer(&first, n(10));
    let second = client.only();
    assert_ne!(first["id"], second["id"]);
    let reason = second["params"]["_meta"]["dev.mrtr/invalid"].as_str().expect("a reason");
    assert!(reason.contains('9'), "{reason}");
    client.answer(&second, json!({"action": "accept"}));
    let third = client.only();
    assert_eq!(third["params"]["requestedSchema"], first["params"]["requestedSchema"]);
    client.answer(&third, n(-1));
    let done = client.only();
    assert!(text(&done).starts_with("Invalid("), "{done}");
    // A good answer after a bad one counts.
    client.call();
    let ask = client.only();
    client.answer(&ask, n(10));
    let ask = client.only();
    client.answer(&ask, n(7));
    assert_eq!(text(&client.only()), "7");
}

/// A5, R-079: what is no answer at all is not asked again: the handler is told at once. So is what was not admitted.
#[test]
fn a_malformed_answer_ends_its_ask_a5() {
    let mut client = client(|ctx: Ctx| async move { Ok(ToolResult::text(shown(number(&ctx, "n").await))) });
    for bad in [json!(1), json!({}), json!({"action": "maybe"}), json!({"action": "accept", "content": []})] {
        client.call();
        let ask = client.only();
        client.answer(&ask, bad);
        let done = client.only();
        assert!(text(&done).starts_with("Invalid("), "{done}");
    }
    client.call();
    let ask = client.only();
    let id = &ask["id"];
    let both = format!(
        r#"{{"jsonrpc":"2.0","id":{id},"result":{{"action":"decline"}},"error":{{"code":1,"message":"m"}}}}"#
    );
    assert_eq!(client.send_bytes(both.as_bytes()), None);
    let done = client.only();
    assert!(text(&done).starts_with("Invalid("), "{done}");
}

/// A10: a checkpoint rests for 250 ms, then twice as long each time, at most 5 s; it makes no message.
#[test]
fn a_checkpoint_is_a_timer_a10() {
    let mut client = client(|ctx: Ctx| async move {
        for _ in 0..7 {
            ctx.checkpoint().await?;
        }
        Ok(ToolResult::text("rested"))
    });
    client.call();
    for millis in [250, 500, 1_000, 2_000, 4_000, 5_000, 5_000] {
        assert_eq!(client.drain(), Vec::<Value>::new());
        let wake_at = client.session.wake_at().expect("a timer");
        assert_eq!(wake_at.saturating_since(client.now), Duration::from_millis(millis));
        client.pass(Duration::from_millis(millis - 1));
        assert_eq!(client.drain(), Vec::<Value>::new());
        client.pass(Duration::from_millis(1));
    }
    assert_eq!(text(&client.only()), "rested");
    assert_eq!(client.session.wake_at(), None);
}

/// A10: beside a question a checkpoint passes with it.
#[test]
fn a_checkpoint_rides_with_a_question_a10() {
    let mut client = client(|ctx: Ctx| async move {
        let (a, passed) = future::join(number(&ctx, "a"), ctx.checkpoint()).await;
        Ok(ToolResult::text(format!("{} {passed:?}", shown(a))))
    });
    client.call();
    let ask = client.only();
    client.pass(Duration::from_secs(600));
    assert_eq!(client.drain(), Vec::<Value>::new());
    client.answer(&ask, n(1));
    assert_eq!(text(&client.only()), "1 Ok(())");
}

/// R-239, A9: an ask that the handler drops is taken back; its late answer meets nobody.
#[test]
fn a_dropped_ask_is_cancelled_r239() {
    let (done, wait) = oneshot::channel::<()>();
    let wait = Arc::new(std::sync::Mutex::new(Some(wait)));
    let mut client = client(move |ctx: Ctx| {
        let wait = wait.lock().expect("a lock").take().expect("one call");
        async move {
            let asked = number(&ctx, "a");
            let first = match future::select(asked, wait).await {
                future::Either::Left((answer, _)) => shown(answer),
                future::Either::Right((_, asked)) => {
                    drop(asked);
                    "bored".into()
                }
            };
            Ok(ToolResult::text(format!("{first} {}", shown(number(&ctx, "a").await))))
        }
    });
    client.call();
    let ask = client.only();
    done.send(()).expect("it waits");
    let said = client.drain();
    assert_eq!(said[0]["method"], "notifications/cancelled");
    assert_eq!(said[0]["params"], json!({"requestId": ask["id"]}));
    assert_eq!(said[1]["method"], "elicitation/create");
    client.answer(&ask, n(1));
    assert_eq!(client.drain(), Vec::<Value>::new());
    client.answer(&said[1], n(2));
    assert_eq!(text(&client.only()), "bored 2");
}

/// A9 c: a handler that returns while its questions are out takes them back and is heard.
#[test]
fn a_return_withdraws_what_was_sent_a9() {
    let (done, wait) = oneshot::channel::<()>();
    let wait = Arc::new(std::sync::Mutex::new(Some(wait)));
    let mut client = client(move |ctx: Ctx| {
        let wait = wait.lock().expect("a lock").take().expect("one call");
        async move {
            let asked = number(&ctx, "a");
            let _ = future::select(asked, wait).await;
            Ok(ToolResult::text("gone"))
        }
    });
    let call = client.call();
    let ask = client.only();
    done.send(()).expect("it waits");
    let said = client.drain();
    assert_eq!(said.len(), 2, "{said:?}");
    assert_eq!(said[0]["params"], json!({"requestId": ask["id"]}));
    assert_eq!((said[1]["id"].as_i64(), text(&said[1])), (Some(call), "gone"));
}

/// A5 of the decisions, A9 b: a handler that swallows a fresh question does not get its value out; and nobody is asked,
/// for the handler runs once.
#[test]
fn a_swallowed_question_is_an_error_a9() {
    let mut client = client(|ctx: Ctx| async move {
        let mut asked = Box::pin(number(&ctx, "a"));
        assert!(futures::poll!(asked.as_mut()).is_pending());
        std::mem::forget(asked);
        Ok(ToolResult::text("swallowed"))
    });
    client.call();
    assert_eq!(client.only()["error"]["code"], -32603);
}

/// A6: the bounds of rounds and of asks in a round, and the deadline of the exchange, are those of the modern era.
#[test]
fn bounds_of_a_call_a6() {
    let mut config = world::config();
    config.limits.rounds = 2;
    config.limits.asks_sent = 3;
    let asking = |ctx: Ctx| async move {
        let width: usize = ctx.argument("width")?;
        loop {
            let asks = (0..width).map(|i| number(&ctx, &format!("k{i}")));
            let answers = future::join_all(asks).await;
            if answers.into_iter().map(shown).all(|answer| answer == "0") {
                return Ok(ToolResult::text("done"));
            }
        }
    };
    let mut client = Client::new(world::service(config, asking), NEWEST, all());
    let start = |client: &mut Client, width: usize| {
        client.start("tools/call", json!({"name": "t", "arguments": {"width": width}}))
    };
    start(&mut client, 4);
    let message = client.only()["error"]["message"].as_str().expect("a message").to_owned();
    assert!(message.contains("Limits::asks_sent"), "{message}");
    start(&mut client, 3);
    for _ in 0..2 {
        let asks = client.drain();
        assert_eq!(asks.len(), 3);
        asks.iter().for_each(|ask| client.answer(ask, n(1)));
    }
    let message = client.only()["error"]["message"].as_str().expect("a message").to_owned();
    assert!(message.contains("Limits::rounds"), "{message}");
    // The deadline: a question that is out is taken back, and the call ends with its name.
    start(&mut client, 1);
    let ask = client.only();
    let exchange = Limits::default().exchange;
    assert_eq!(client.session.wake_at(), Some(client.now.saturating_add(exchange)));
    client.pass(exchange - Duration::from_millis(1));
    assert_eq!(client.drain(), Vec::<Value>::new());
    client.pass(Duration::from_millis(1));
    let said = client.drain();
    assert_eq!(said[0]["params"], json!({"requestId": ask["id"]}));
    assert!(
        said[1]["error"]["message"].as_str().is_some_and(|text| text.contains("Limits::exchange")),
        "{said:?}"
    );
}

/// A1: a key in use is a fault of the handler here too.
#[test]
fn a_key_in_use_is_an_error_a1() {
    let mut client = client(|ctx: Ctx| async move {
        let (a, b) = future::join(number(&ctx, "a"), number(&ctx, "a")).await;
        Ok(ToolResult::text(format!("{} {}", shown(a), shown(b))))
    });
    client.call();
    assert_eq!(client.only()["error"]["message"], "Internal error");
}

/// A11: what is kept of an answer is what the handler gets; `get` begins empty.
#[test]
fn keep_and_values_work_a11() {
    let mut client = client(|ctx: Ctx| async move {
        let before: Option<i64> = ctx.get("v");
        let kept: std::result::Result<bool, AskError> =
            ctx.elicit::<Value>("a", &form("a")).keep(|answer| answer.accepted().is_some()).await;
        ctx.set("v", &1)?;
        let after: Option<i64> = ctx.get("v");
        Ok(ToolResult::text(format!("{before:?} {kept:?} {after:?}")))
    });
    for _ in 0..2 {
        client.call();
        let ask = client.only();
        client.answer(&ask, n(1));
        assert_eq!(text(&client.only()), "None Ok(true) Some(1)");
    }
}

/// A2, A3, A6: what a handler does while its questions are out: it reports, and what it asks goes out in the next round.
#[test]
fn a_handler_goes_on_while_its_questions_are_out_a3() {
    let (done, wait) = oneshot::channel::<()>();
    let wait = Arc::new(std::sync::Mutex::new(Some(wait)));
    let mut client = client(move |ctx: Ctx| {
        let wait = wait.lock().expect("a lock").take().expect("one call");
        async move {
            let first = async { shown(number(&ctx, "a").await) };
            let second = async {
                let _ = wait.await;
                ctx.progress(1.0, None, None);
                let made: i64 = ctx.once("v", || 7).expect("a number");
                format!("{made} {}", shown(number(&ctx, "b").await))
            };
            let (first, second) = future::join(first, second).await;
            Ok(ToolResult::text(format!("{first} {second}")))
        }
    });
    client.start("tools/call", json!({"name": "t", "_meta": {"progressToken": 1}}));
    let ask = client.only();
    assert_eq!(ask["params"]["message"], "a");
    done.send(()).expect("it waits");
    assert_eq!(client.only()["method"], "notifications/progress");
    client.answer(&ask, n(1));
    let next = client.only();
    assert_eq!(next["params"]["message"], "b");
    client.answer(&next, n(2));
    assert_eq!(text(&client.only()), "1 7 2");
}

/// A9 b: a question that was made while others are out, waited for, and left behind, is swallowed too.
#[test]
fn a_question_swallowed_while_others_are_out_is_an_error_a9() {
    let (done, wait) = oneshot::channel::<()>();
    let wait = Arc::new(std::sync::Mutex::new(Some(wait)));
    let mut client = client(move |ctx: Ctx| {
        let wait = wait.lock().expect("a lock").take().expect("one call");
        async move {
            let asked = number(&ctx, "a");
            let _ = future::select(asked, wait).await;
            let mut fresh = Box::pin(number(&ctx, "b"));
            assert!(futures::poll!(fresh.as_mut()).is_pending());
            std::mem::forget(fresh);
            Ok(ToolResult::text("swallowed"))
        }
    });
    client.call();
    let ask = client.only();
    done.send(()).expect("it waits");
    let said = client.drain();
    assert_eq!(said[0]["params"], json!({"requestId": ask["id"]}));
    assert_eq!(said[1]["error"]["code"], -32603);
}

/// A6, BT-5: what cannot be said was never sent, so it counts against no bound of rounds; and a handler that goes on asking
/// it ends.
#[test]
fn what_cannot_be_said_is_no_round_a6() {
    let mut config = world::config();
    config.limits.rounds = 1;
    let several = || {
        let field = Field::multi_select("m").option("a", "A").option("b", "B");
        Form::builder("Which?").field(field).build().expect("a valid form")
    };
    let service = world::service(config, move |ctx: Ctx| async move {
        let times: usize = ctx.argument("times")?;
        for _ in 0..times {
            let answer = ctx.elicit::<Value>("m", &several()).optional().await;
            assert!(matches!(answer, Err(AskError::Unavailable)));
        }
        Ok(ToolResult::text(shown(number(&ctx, "a").await)))
    });
    let mut client = Client::new(service, NARROW, all());
    client.start("tools/call", json!({"name": "t", "arguments": {"times": 256}}));
    let ask = client.only();
    client.answer(&ask, n(6));
    assert_eq!(text(&client.only()), "6");
    client.start("tools/call", json!({"name": "t", "arguments": {"times": 257}}));
    assert_eq!(client.only()["error"]["message"], "Internal error");
}
