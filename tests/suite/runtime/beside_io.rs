//! I/O beside asks (A2, A3), and before them (A11).

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures::{
    future,
    stream::{FuturesUnordered, StreamExt},
};
use mrtr_core::{
    handler::{Ctx, Reception, ToolResult},
    tape::{OnDivergence, TapePolicy},
};
use mrtr_tests::world::decline;
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::{Room, n, number, shown};

/// Asks `a` at once and, beside it, `b` after I/O that takes as long as `delay` says now.
fn slow_sibling(
    delay: Arc<AtomicU64>,
) -> impl Fn(Ctx) -> future::BoxFuture<'static, super::Result<ToolResult>> + Clone {
    move |ctx: Ctx| {
        let delay = Duration::from_millis(delay.load(Ordering::Relaxed));
        Box::pin(async move {
            let (a, b) = future::join(number(&ctx, "a"), async {
                if !delay.is_zero() {
                    sleep(delay).await;
                }
                number(&ctx, "b").await
            })
            .await;
            Ok(ToolResult::text(format!("{} {}", shown(a), shown(b))))
        })
    }
}

/// A3: slow live, fast on replay: `O = {a, b} ⊋ A_1 = {a}` releases `a`; `b` stays open and is asked alone.
#[tokio::test(start_paused = true)]
async fn a3_more_than_was_recorded_releases() {
    let delay = Arc::new(AtomicU64::new(50));
    let mut room = Room::new(slow_sibling(delay.clone()));
    let first = room.call(json!({})).await;
    // It suspends when it is blocked, without waiting for the sibling.
    assert_eq!(first.keys(), ["a"]);
    delay.store(0, Ordering::Relaxed);
    let second = room.retry(&first, json!({"a": n(1)})).await;
    assert_eq!(second.keys(), ["b"]);
    assert_eq!(room.retry(&second, json!({"b": n(2)})).await.text(), "1 2");
}

/// A3: fast live, slow on replay: `O = {a} ⊊ A_1 = {a, b}` is no block while the I/O may still bring `b`.
#[tokio::test(start_paused = true)]
async fn a3_less_than_was_recorded_waits() {
    let delay = Arc::new(AtomicU64::new(0));
    let mut room = Room::new(slow_sibling(delay.clone()));
    let first = room.call(json!({})).await;
    assert_eq!(first.keys(), ["a", "b"]);
    delay.store(1_900, Ordering::Relaxed);
    let begun = Instant::now();
    let done = room.retry(&first, json!({"a": n(1), "b": n(2)})).await;
    assert_eq!(done.text(), "1 2");
    assert_eq!(begun.elapsed(), Duration::from_millis(1_900));
}

/// A3, A8: it waits no longer than `replay_patience`. Then it is a divergence: what is open is asked, and an answer
/// in hand to the same question counts.
#[tokio::test(start_paused = true)]
async fn a3_patience_ends() {
    let delay = Arc::new(AtomicU64::new(0));
    let mut policy = TapePolicy::default();
    policy.replay_patience = Duration::from_millis(300);
    let mut room = Room::with(policy.clone(), slow_sibling(delay.clone()));
    let first = room.call(json!({})).await;
    delay.store(60_000, Ordering::Relaxed);
    let begun = Instant::now();
    // `a` is taken; then only the I/O is left to wait for, and that is plain waiting (A2).
    let asked = room.retry(&first, json!({"a": n(1), "b": n(2)})).await;
    assert_eq!(asked.keys(), ["b"]);
    assert_eq!(begun.elapsed(), Duration::from_millis(60_000));
    delay.store(0, Ordering::Relaxed);
    assert_eq!(room.retry(&asked, json!({"b": n(3)})).await.text(), "1 3");

    policy.divergence = OnDivergence::Fail;
    let mut room = Room::with(policy, slow_sibling(delay.clone()));
    let first = room.call(json!({})).await;
    delay.store(60_000, Ordering::Relaxed);
    let begun = Instant::now();
    assert_eq!(room.retry(&first, json!({"a": n(1), "b": n(2)})).await.error().0, -32603);
    assert_eq!(begun.elapsed(), Duration::from_millis(300));
}

/// A2: I/O alone is plain waiting, before, between and after asks, live and on replay.
#[tokio::test(start_paused = true)]
async fn a2_io_is_waited_for() {
    let mut room = Room::new(|ctx: Ctx| async move {
        sleep(Duration::from_secs(3)).await;
        let a = number(&ctx, "a").await;
        sleep(Duration::from_secs(3)).await;
        let b = number(&ctx, "b").await;
        sleep(Duration::from_secs(3)).await;
        Ok(ToolResult::text(format!("{} {}", shown(a), shown(b))))
    });
    let begun = Instant::now();
    let first = room.call(json!({})).await;
    let second = room.retry(&first, json!({"a": n(1)})).await;
    assert_eq!(room.retry(&second, json!({"b": decline()})).await.text(), "1 declined");
    assert_eq!(begun.elapsed(), Duration::from_secs(3 + 6 + 9));
}

/// A11, B-85: what `once_async` awaited is not awaited again.
#[tokio::test(start_paused = true)]
async fn a11_once_async_before_asks_is_awaited_once() {
    let made = Arc::new(AtomicUsize::new(0));
    let counter = made.clone();
    let mut room = Room::new(move |ctx: Ctx| {
        let counter = counter.clone();
        async move {
            let vm = ctx
                .once_async("vm", async {
                    sleep(Duration::from_secs(5)).await;
                    counter.fetch_add(1, Ordering::Relaxed)
                })
                .await?;
            let a = number(&ctx, "a").await;
            Ok(ToolResult::text(format!("{vm} {}", shown(a))))
        }
    });
    let begun = Instant::now();
    let first = room.call(json!({})).await;
    assert_eq!(room.retry(&first, json!({"a": n(1)})).await.text(), "0 1");
    assert_eq!(begun.elapsed(), Duration::from_secs(5));
    assert_eq!(made.load(Ordering::Relaxed), 1);
}

/// A3, A4: `FuturesUnordered` of asks behind I/O of different length: in the order in which answers came.
#[tokio::test(start_paused = true)]
async fn a3_unordered_asks_behind_io() {
    let mut room = Room::new(|ctx: Ctx| async move {
        let mut asks: FuturesUnordered<_> = [("a", 30), ("b", 20), ("c", 0)]
            .into_iter()
            .map(|(key, millis)| {
                let ctx = ctx.clone();
                async move {
                    sleep(Duration::from_millis(millis)).await;
                    format!("{key}{}", shown(number(&ctx, key).await))
                }
            })
            .collect();
        let mut order = Vec::new();
        while let Some(answer) = asks.next().await {
            order.push(answer);
        }
        Ok(ToolResult::text(order.join(" ")))
    });
    let mut last = room.call(json!({})).await;
    assert_eq!(last.keys(), ["c"]);
    last = room.retry(&last, json!({"c": n(3)})).await;
    assert_eq!(last.keys(), ["b"]);
    last = room.retry(&last, json!({"b": n(2)})).await;
    assert_eq!(last.keys(), ["a"]);
    assert_eq!(room.retry(&last, json!({"a": n(1)})).await.text(), "c3 b2 a1");
}

/// A1, A3: a loop until the answer satisfies, with I/O in every turn.
#[tokio::test(start_paused = true)]
async fn a1_a_loop_until_satisfied() {
    let mut room = Room::new(|ctx: Ctx| async move {
        let mut turns = 0;
        loop {
            sleep(Duration::from_millis(10)).await;
            turns += 1;
            if shown(number(&ctx, "k").await) == "7" {
                return Ok(ToolResult::text(turns.to_string()));
            }
        }
    });
    let mut last = room.call(json!({})).await;
    for (turn, key) in ["k", "k#1", "k#2", "k#3"].into_iter().enumerate() {
        assert_eq!(last.keys(), [key]);
        let answer = if turn == 3 { n(7) } else { n(1) };
        last = room.retry(&last, json!({ key: answer })).await;
    }
    assert_eq!(last.text(), "4");
}

/// notifications of a run come before its reply, and not again on replay.
#[tokio::test(start_paused = true)]
async fn r195_notifications_are_sent_once() {
    let mut room = Room::new(|ctx: Ctx| async move {
        ctx.log(mrtr_core::wire::LogLevel::Info, "begun");
        if ctx.argument("slow")? {
            sleep(Duration::from_millis(10)).await;
        }
        ctx.log(mrtr_core::wire::LogLevel::Info, "asking");
        let a = number(&ctx, "a").await;
        ctx.log(mrtr_core::wire::LogLevel::Info, "done");
        Ok(ToolResult::text(shown(a)))
    });
    for slow in [true, false] {
        let mut seen = Vec::new();
        let mut params = json!({"arguments": {"slow": slow}});
        for _ in 0..2 {
            let mut request = room.world.tool_call(&params);
            request["params"]["_meta"]["io.modelcontextprotocol/logLevel"] = json!("info");
            let request = request.to_string();
            let clock = room.clock;
            let Reception::Run(run) = room.world.receive(request.as_bytes()) else { panic!("a run") };
            let (reply, notifications) = super::drive(run, clock).await;
            seen.push(notifications.iter().map(|one| one["params"]["data"].clone()).collect::<Vec<_>>());
            if reply.result()["resultType"] == "input_required" {
                params["requestState"] = json!(reply.state());
                params["inputResponses"] = json!({"a": n(1)});
            }
        }
        assert_eq!(seen, [vec![json!("begun"), json!("asking")], vec![json!("done")]]);
    }
}
