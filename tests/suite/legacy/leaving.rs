//! Questions that the handler leaves behind, or goes on without.

use std::sync::Arc;

use futures::{channel::oneshot, future};
use mrtr_core::handler::{AskError, Ctx, ToolResult};
use mrtr_tests::legacy::text;
use serde_json::{Value, json};

use super::{client, form, n, number, shown};

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
