//! Urls whose errand takes longer than consent, and checkpoints that are held (A10, R-137, G-32).

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    task::{Context, Waker},
    time::Duration,
};

use futures::future;
use mrtr_core::{
    Timestamp,
    handler::{Ctx, ToolResult},
    tape::TapePolicy,
};
use mrtr_tests::world::{World, decline};
use serde_json::{Value, json};
use tokio::{
    sync::Notify,
    time::{Instant, sleep},
};

use super::{Room, n, number, shown};

fn consent() -> Value {
    json!({"action": "accept"})
}

/// Something behind a url that is done at a point in time, and counts how often it was looked at.
#[derive(Clone)]
struct Errand {
    done_at: Arc<AtomicU64>,
    looks: Arc<AtomicUsize>,
    begun: Instant,
}

impl Errand {
    fn done_after(millis: u64) -> Self {
        Self { done_at: Arc::new(AtomicU64::new(millis)), looks: Arc::default(), begun: Instant::now() }
    }

    fn look(&self) -> bool {
        self.looks.fetch_add(1, Ordering::Relaxed);
        self.begun.elapsed() >= Duration::from_millis(self.done_at.load(Ordering::Relaxed))
    }

    fn looks(&self) -> usize {
        self.looks.load(Ordering::Relaxed)
    }

    fn handler(
        &self,
    ) -> impl Fn(Ctx) -> future::BoxFuture<'static, super::Result<ToolResult>> + Clone + use<> {
        let errand = self.clone();
        move |ctx: Ctx| {
            let errand = errand.clone();
            Box::pin(async move {
                let pay = ctx
                    .elicit_url("pay", "Pay", "https://pay.example/")
                    .until(|| future::ready(errand.look()))
                    .await?;
                let then = shown(number(&ctx, "then").await);
                Ok(ToolResult::text(format!("{pay:?} {then}")))
            })
        }
    }
}

/// A10: done when the consent comes: resolves at once, and is not looked at again on replay.
#[tokio::test(start_paused = true)]
async fn a10_an_errand_that_is_done_resolves() {
    let errand = Errand::done_after(0);
    let mut room = Room::new(errand.handler());
    let first = room.call(json!({})).await;
    assert_eq!((first.keys(), errand.looks()), (vec!["pay"], 0));
    let second = room.retry(&first, json!({"pay": consent()})).await;
    assert_eq!((second.keys(), errand.looks()), (vec!["then"], 1));
    // Undone again: what was found is in the state.
    errand.done_at.store(u64::MAX, Ordering::Relaxed);
    let done = room.retry(&second, json!({"then": n(1)})).await;
    assert_eq!((done.text(), errand.looks()), ("Accept 1", 1));
}

/// A10, G-32: not done: the retry is held and looked at every second, and resolves when it is done.
#[tokio::test(start_paused = true)]
async fn a10_a_retry_is_held_while_the_errand_runs() {
    let errand = Errand::done_after(7_500);
    let mut room = Room::new(errand.handler());
    let first = room.call(json!({})).await;
    let second = room.retry(&first, json!({"pay": consent()})).await;
    assert_eq!(second.keys(), ["then"]);
    assert_eq!(errand.begun.elapsed(), Duration::from_secs(8));
    assert_eq!(errand.looks(), 9);
    assert_eq!(room.retry(&second, json!({"then": n(1)})).await.text(), "Accept 1");
}

/// A10: after 25 s the same key is asked again, and the decided rounds are not looked at again.
#[tokio::test(start_paused = true)]
async fn a10_after_the_hold_the_same_key_is_asked_again() {
    let errand = Errand::done_after(30_000);
    let mut room = Room::new(errand.handler());
    let first = room.call(json!({})).await;
    let second = room.retry(&first, json!({"pay": consent()})).await;
    assert_eq!(second.keys(), ["pay"]);
    assert_eq!(second.result()["inputRequests"], first.result()["inputRequests"]);
    assert_eq!(errand.begun.elapsed(), Duration::from_secs(25));
    let looked = errand.looks();
    // Nothing said: asked again at once, nothing looked at.
    let third = room.retry(&second, json!({})).await;
    assert_eq!((third.keys(), errand.looks()), (vec!["pay"], looked));
    assert_eq!(errand.begun.elapsed(), Duration::from_secs(25));
    let fourth = room.retry(&third, json!({"pay": consent()})).await;
    assert_eq!(fourth.keys(), ["then"]);
    assert_eq!(errand.begun.elapsed(), Duration::from_secs(30));
    assert_eq!(room.retry(&fourth, json!({"then": n(1)})).await.text(), "Accept 1");
}

/// a decline is an answer, whatever the errand.
#[tokio::test(start_paused = true)]
async fn a10_a_decline_is_not_looked_at() {
    let errand = Errand::done_after(0);
    let mut room = Room::new(errand.handler());
    let first = room.call(json!({})).await;
    let second = room.retry(&first, json!({"pay": decline()})).await;
    assert_eq!((second.keys(), errand.looks()), (vec!["then"], 0));
    assert_eq!(room.retry(&second, json!({"then": n(1)})).await.text(), "Decline 1");
}

/// A10: without a runtime nothing is held: looked at once, then asked again.
#[tokio::test(start_paused = true)]
async fn a10_without_a_runtime_nothing_is_held() {
    let errand = Errand::done_after(10);
    let mut world = World::new(errand.handler());
    let first = world.call(json!({}));
    let second = world.retry(&first, json!({"pay": consent()}));
    assert_eq!((second.keys(), errand.looks()), (vec!["pay"], 1));
    sleep(Duration::from_millis(10)).await;
    let third = world.retry(&second, json!({"pay": consent()}));
    assert_eq!((third.keys(), errand.looks()), (vec!["then"], 2));
    assert_eq!(world.retry(&third, json!({"then": n(1)})).text(), "Accept 1");
}

/// A10: a check may wait for the news itself; when the hold is over it is dropped.
#[tokio::test(start_paused = true)]
async fn a10_a_check_may_wait_itself() {
    let (news, looks) = (Arc::new(Notify::new()), Arc::new(AtomicUsize::new(0)));
    let (inside, counter) = (news.clone(), looks.clone());
    let mut room = Room::new(move |ctx: Ctx| {
        let (news, looks) = (inside.clone(), counter.clone());
        async move {
            let check = || {
                looks.fetch_add(1, Ordering::Relaxed);
                async {
                    news.notified().await;
                    true
                }
            };
            let action = ctx.elicit_url("pay", "Pay", "https://pay.example/").until(check).await?;
            Ok(ToolResult::text(format!("{action:?}")))
        }
    });
    let first = room.call(json!({})).await;
    let begun = Instant::now();
    let second = room.retry(&first, json!({"pay": consent()})).await;
    assert_eq!(second.keys(), ["pay"]);
    assert_eq!(begun.elapsed(), Duration::from_secs(25));
    tokio::spawn(async move {
        sleep(Duration::from_millis(3_210)).await;
        news.notify_one();
    });
    let begun = Instant::now();
    assert_eq!(room.retry(&second, json!({"pay": consent()})).await.text(), "Accept");
    assert_eq!(begun.elapsed(), Duration::from_millis(3_210));
    assert_eq!(looks.load(Ordering::Relaxed), 2);
}

/// A4, A10: an answer that came with the consent is met before the errand is done, also on replay: a race between
/// them keeps its winner.
#[tokio::test(start_paused = true)]
async fn a10_an_errand_comes_after_what_came_with_the_consent() {
    let errand = Errand::done_after(5_000);
    let inside = errand.clone();
    let mut room = Room::new(move |ctx: Ctx| {
        let errand = inside.clone();
        async move {
            let pay =
                ctx.elicit_url("pay", "Pay", "https://pay.example/").until(|| future::ready(errand.look()));
            let asks = futures::stream::FuturesUnordered::<future::BoxFuture<'_, String>>::new();
            asks.push(Box::pin(async { format!("{:?}", pay.await) }));
            asks.push(Box::pin(async { shown(number(&ctx, "form").await) }));
            let order: Vec<String> = futures::StreamExt::collect(asks).await;
            let then = shown(number(&ctx, "then").await);
            Ok(ToolResult::text(format!("{} {then}", order.join(" "))))
        }
    });
    let first = room.call(json!({})).await;
    assert_eq!(first.keys(), ["pay", "form"]);
    let second = room.retry(&first, json!({"pay": consent(), "form": n(4)})).await;
    assert_eq!(second.keys(), ["then"]);
    assert_eq!(errand.begun.elapsed(), Duration::from_secs(5));
    assert_eq!(room.retry(&second, json!({"then": n(1)})).await.text(), "4 Ok(Accept) 1");
}

/// A10: an errand beside a question that is still open: held together, then the question alone is asked.
#[tokio::test(start_paused = true)]
async fn a10_an_errand_beside_an_open_question() {
    let errand = Errand::done_after(2_000);
    let inside = errand.clone();
    let mut room = Room::new(move |ctx: Ctx| {
        let errand = inside.clone();
        async move {
            let pay =
                ctx.elicit_url("pay", "Pay", "https://pay.example/").until(|| future::ready(errand.look()));
            let (pay, form) = future::join(pay, number(&ctx, "form")).await;
            Ok(ToolResult::text(format!("{pay:?} {}", shown(form))))
        }
    });
    let first = room.call(json!({})).await;
    let second = room.retry(&first, json!({"pay": consent()})).await;
    assert_eq!(second.keys(), ["form"]);
    assert_eq!(room.retry(&second, json!({"form": n(3)})).await.text(), "Ok(Accept) 3");
}

/// A2, A10: an errand that is waited for in a spawned task; the handler itself waits for the task.
#[tokio::test(start_paused = true)]
async fn a10_an_errand_in_a_spawned_task() {
    let errand = Errand::done_after(2_000);
    let inside = errand.clone();
    let mut room = Room::new(move |ctx: Ctx| {
        let errand = inside.clone();
        async move {
            let pay = ctx.elicit_url("pay", "Pay", "https://pay.example/");
            let task = tokio::spawn(pay.until(move || future::ready(errand.look())));
            let action = task.await.expect("no panic")?;
            Ok(ToolResult::text(format!("{action:?}")))
        }
    });
    let first = room.call(json!({})).await;
    assert_eq!(first.keys(), ["pay"]);
    assert_eq!(room.retry(&first, json!({"pay": consent()})).await.text(), "Accept");
    assert_eq!(errand.begun.elapsed(), Duration::from_secs(2));
}

/// A10: how long is held is the service's choice; zero never holds. Only urls have an errand.
#[tokio::test(start_paused = true)]
async fn a10_holding_is_configurable() {
    let mut policy = TapePolicy::default();
    policy.hold_urls = Duration::ZERO;
    let errand = Errand::done_after(10_000);
    let mut room = Room::with(policy.clone(), errand.handler());
    let first = room.call(json!({})).await;
    assert_eq!(room.retry(&first, json!({"pay": consent()})).await.keys(), ["pay"]);
    assert_eq!((errand.begun.elapsed(), errand.looks()), (Duration::ZERO, 1));
    policy.hold_urls = Duration::from_millis(2_500);
    policy.look_interval = Duration::from_millis(600);
    let errand = Errand::done_after(10_000);
    let mut room = Room::with(policy, errand.handler());
    let first = room.call(json!({})).await;
    assert_eq!(room.retry(&first, json!({"pay": consent()})).await.keys(), ["pay"]);
    assert_eq!((errand.begun.elapsed(), errand.looks()), (Duration::from_millis(2_500), 5));

    let mut room = Room::new(|ctx: Ctx| async move {
        let action = ctx.confirm("sure", "Sure?").until(async || true).await?;
        Ok(ToolResult::text(format!("{action:?}")))
    });
    assert_eq!(room.call(json!({})).await.error(), (-32603, "Internal error"));
}

/// A10: a checkpoint that is held goes out only if nothing else has got the handler further meanwhile.
#[tokio::test(start_paused = true)]
async fn a10_checkpoints_can_be_held() {
    let mut policy = TapePolicy::default();
    for (hold, sent_after) in [(0, Some(0)), (3, Some(3)), (5, None)] {
        policy.hold_checkpoints = Duration::from_secs(hold);
        let mut room = Room::with(policy.clone(), |ctx: Ctx| async move {
            let work = Box::pin(sleep(Duration::from_secs(4)));
            future::select(ctx.checkpoint(), work).await;
            Ok(ToolResult::text("done"))
        });
        let begun = Instant::now();
        let reply = room.call(json!({})).await;
        match sent_after {
            Some(seconds) => {
                assert!(reply.keys().is_empty());
                assert_eq!(begun.elapsed(), Duration::from_secs(seconds));
                assert_eq!(room.call(json!({"requestState": reply.state()})).await.text(), "done");
            }
            None => {
                assert_eq!(reply.text(), "done");
                assert_eq!(begun.elapsed(), Duration::from_secs(4));
            }
        }
    }
}

/// A3, A10: a clock that is set back while a retry is held, or while a replayed round is short of an ask, does not make it
/// wait for as long as the clock was set back.
#[tokio::test(start_paused = true)]
async fn a10_a_clock_that_is_set_back_holds_nobody_up() {
    let errand = Errand::done_after(u64::MAX);
    let mut held = Room::new(errand.handler());
    let first = held.call(json!({})).await;
    let answers = json!({"requestState": first.state(), "inputResponses": {"pay": consent()}});
    set_back(&mut held, answers, [1, 25]).await;

    let asks_both = Arc::new(AtomicUsize::new(1));
    let inside = asks_both.clone();
    let mut short = Room::new(move |ctx: Ctx| {
        let both = inside.swap(0, Ordering::Relaxed) == 1;
        async move {
            let _one = number(&ctx, "one");
            let two = number(&ctx, "two");
            if !both {
                drop(two);
                let _ = _one.await;
                return std::future::pending().await;
            }
            Ok(ToolResult::text(shown(two.await)))
        }
    });
    let first = short.call(json!({})).await;
    assert_eq!(first.keys(), ["one", "two"]);
    set_back(&mut short, json!({"requestState": first.state()}), [2, 2]).await;
}

/// Polls a retry that waits, sets the clock back by an hour, and expects the next look and the end of the wait so many
/// seconds from then.
async fn set_back(room: &mut Room, params: Value, [look, end]: [u64; 2]) {
    room.with_run(params, async |mut run, clock| {
        let mut cx = Context::from_waker(Waker::noop());
        let (now, mut out) = (clock.now(), Vec::new());
        assert!(run.poll_run(&mut cx, now, &mut out).is_pending());
        assert_eq!(run.wake_at(), Some(now.saturating_add(Duration::from_secs(look))));
        let earlier = Timestamp::from_unix_millis(now.as_unix_millis() - 3_600_000);
        assert!(run.poll_run(&mut cx, earlier, &mut out).is_pending());
        assert_eq!(run.wake_at(), Some(earlier.saturating_add(Duration::from_secs(look))));
        let over = earlier.saturating_add(Duration::from_secs(end));
        assert!(run.poll_run(&mut cx, over, &mut out).is_ready());
    })
    .await;
}
