//! Rounds over a held connection: when answers are released, what counts as one, checkpoints, bounds.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures::future;
use mrtr_core::{
    Limits,
    form::{Field, Form},
    handler::{AskError, Ctx, ToolResult},
    wire::Sampling,
};
use mrtr_tests::{
    legacy::{Client, text},
    world,
};
use serde_json::{Value, json};

use super::{NARROW, NEWEST, all, client, n, number, shown};

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

/// A10, R-137: the errand behind a url is looked at again every second while the call is held, without a message; when the
/// hold is over the url is asked again under a new id, and a later accept that finds it done ends it.
#[test]
fn an_errand_is_looked_at_again_a10() {
    let looks = Arc::new(AtomicUsize::new(0));
    let (seen, done_at) = (looks.clone(), Arc::new(AtomicUsize::new(3)));
    let done = done_at.clone();
    let mut client = client(move |ctx: Ctx| {
        let (looks, done) = (seen.clone(), done.clone());
        async move {
            let url = ctx.elicit_url("u", "Pay", "https://pay.example/");
            let paid = url.until(move || {
                let looks = looks.fetch_add(1, Ordering::Relaxed) + 1;
                future::ready(looks >= done.load(Ordering::Relaxed))
            });
            Ok(ToolResult::text(format!("{:?}", paid.await?)))
        }
    });
    client.call();
    let asked = client.only();
    client.answer(&asked, json!({"action": "accept"}));
    for second in 1..3 {
        assert_eq!(client.drain(), Vec::<Value>::new());
        assert_eq!(looks.load(Ordering::Relaxed), second);
        assert_eq!(client.session.wake_at(), Some(client.now.saturating_add(Duration::from_secs(1))));
        client.pass(Duration::from_secs(1));
    }
    assert_eq!(text(&client.only()), "Accept");
    assert_eq!(looks.load(Ordering::Relaxed), 3);

    // Not done for as long as the call is held: 25 s.
    done_at.store(100, Ordering::Relaxed);
    client.call();
    let asked = client.only();
    client.answer(&asked, json!({"action": "accept"}));
    assert_eq!(client.drain(), Vec::<Value>::new());
    for _ in 0..24 {
        client.pass(Duration::from_secs(1));
        assert_eq!(client.drain(), Vec::<Value>::new());
    }
    client.pass(Duration::from_secs(1));
    let again = client.only();
    assert_ne!(again["id"], asked["id"]);
    assert_eq!(again["params"]["url"], asked["params"]["url"]);
    done_at.store(0, Ordering::Relaxed);
    client.answer(&again, json!({"action": "accept"}));
    assert_eq!(text(&client.only()), "Accept");
}
