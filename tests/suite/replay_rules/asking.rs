//! Asks register, block and are sent: A1, A2, A3, A6.

use futures::{
    future,
    stream::{FuturesUnordered, StreamExt},
};
use mrtr_core::{
    Limits,
    form::Elicited,
    handler::{Ctx, ToolResult},
    tape::TapePolicy,
    wire::Sampling,
};
use mrtr_tests::world::{World, accept, cancel, decline};
use serde_json::json;

use super::{both, number, shown};

/// A1: asks register at the call, so two made side by side and awaited in turn share one round.
#[test]
fn a1_asks_made_side_by_side_share_a_round() {
    let mut world = World::new(|ctx: Ctx| async move {
        let (a, b) = (number(&ctx, "a"), number(&ctx, "b"));
        let (b, a) = (b.await, a.await);
        Ok(ToolResult::text(format!("{} {}", shown(a), shown(b))))
    });
    let first = world.call(json!({}));
    assert_eq!(first.keys(), ["a", "b"]);
    let done = world.retry(&first, json!({"a": accept(json!({"n": 1})), "b": accept(json!({"n": 2}))}));
    assert_eq!(done.text(), "1 2");
}

/// A1, G-37, R-059: keys outside the alphabet, and a key used while an earlier use is open, are faults of the handler.
#[test]
fn a1_bad_keys_and_keys_in_use_are_internal_errors() {
    for key in ["", "a b", "a#1", &"k".repeat(65), "é"] {
        let key = key.to_owned();
        let mut world = World::new(move |ctx: Ctx| {
            let key = key.clone();
            async move { Ok(ToolResult::text(shown(number(&ctx, &key).await))) }
        });
        assert_eq!(world.call(json!({})).error(), (-32603, "Internal error"));
    }
    let mut world = World::new(|ctx: Ctx| async move {
        let (a, b) = future::join(number(&ctx, "a"), number(&ctx, "a")).await;
        Ok(ToolResult::text(format!("{} {}", shown(a), shown(b))))
    });
    assert_eq!(world.call(json!({})).error(), (-32603, "Internal error"));
}

/// A2: a handler that waits for something that is no ask ends at once where there is no runtime.
#[test]
fn a2_waiting_for_nothing_is_a_stall() {
    let mut world = World::new(|_: Ctx| async move {
        future::pending::<()>().await;
        Ok(ToolResult::text("never"))
    });
    assert_eq!(world.call(json!({})).error(), (-32603, "Internal error"));
    // An ask that was made and not awaited does not block either.
    let mut world = World::new(|ctx: Ctx| async move {
        let _ask = number(&ctx, "a");
        future::pending::<()>().await;
        Ok(ToolResult::text("never"))
    });
    assert_eq!(world.call(json!({})).error(), (-32603, "Internal error"));
}

/// A2: a handler that only wakes itself is found out instead of running for ever.
#[test]
fn a2_spinning_ends() {
    let mut world = World::new(|_: Ctx| async move {
        future::poll_fn(|cx| {
            cx.waker().wake_by_ref();
            std::task::Poll::<()>::Pending
        })
        .await;
        Ok(ToolResult::text("never"))
    });
    assert_eq!(world.call(json!({})).error().0, -32603);
}

/// A3, A5, A6, R-067, R-082: a partial answer asks for the rest alone, under its old key, with a new state; what
/// was answered stays answered, and only keys of the last round are read.
#[test]
fn a6_partial_answers_ask_for_the_rest() {
    let mut world = World::new(both);
    let first = world.call(json!({}));
    let second = world.retry(&first, json!({"a": accept(json!({"n": 1}))}));
    assert_eq!(second.keys(), ["b"]);
    assert_ne!(first.state(), second.state());
    let done = world.retry(&second, json!({"b": accept(json!({"n": 2})), "a": accept(json!({"n": 9}))}));
    assert_eq!(done.text(), "1 2");
}

/// A6, R-082: nothing usable in a retry gives the same questions under the same keys and a new state (R-078).
#[test]
fn a6_nothing_usable_asks_the_same_again() {
    let mut world = World::new(both);
    let first = world.call(json!({}));
    for answers in [json!({}), json!({"wrong": accept(json!({}))})] {
        let again = world.retry(&first, answers);
        assert_eq!(again.keys(), ["a", "b"]);
        assert_ne!(again.state(), first.state());
    }
    // Without the member at all.
    let again = world.call(json!({"requestState": first.state()}));
    assert_eq!(again.keys(), ["a", "b"]);
}

/// A1, B-36, R-133: a decline is an answer; the same key asked again in a loop is another use of it.
#[test]
fn a1_a_decline_in_a_loop_asks_under_the_next_use() {
    let mut world = World::new(|ctx: Ctx| async move {
        let mut said = Vec::new();
        loop {
            let answer = number(&ctx, "k").await;
            let done = matches!(answer, Ok(Elicited::Accept(_)));
            said.push(shown(answer));
            if done {
                return Ok(ToolResult::text(said.join(" ")));
            }
        }
    });
    let first = world.call(json!({}));
    let second = world.retry(&first, json!({"k": decline()}));
    assert_eq!(second.keys(), ["k#1"]);
    let third = world.retry(&second, json!({"k#1": cancel()}));
    assert_eq!(third.keys(), ["k#2"]);
    let done = world.retry(&third, json!({"k#2": accept(json!({"n": 4}))}));
    assert_eq!(done.text(), "declined cancelled 4");
}

/// A6, G-13, R-106, R-107: required and undeclared is `-32021` with all that is missing; optional and undeclared
/// goes on without.
#[test]
fn a6_the_gate() {
    let mut world = World::new(|ctx: Ctx| async move {
        let sample = ctx.sample("s", &Sampling::new(9).user("hi"));
        let roots = ctx.roots("r");
        let (sample, roots) = future::join(sample, roots).await;
        Ok(ToolResult::text(format!("{} {}", sample?.text(), roots?.len())))
    });
    world.capabilities = json!({"elicitation": {}});
    let refused = world.call(json!({}));
    assert_eq!(refused.error().0, -32021);
    assert_eq!(refused.data(), &json!({"requiredCapabilities": {"sampling": {}, "roots": {}}}));
    let mut world = World::new(|ctx: Ctx| async move {
        let sample = ctx.sample("s", &Sampling::new(9).user("hi")).optional();
        let form = number(&ctx, "n");
        let (sample, form) = future::join(sample, form).await;
        Ok(ToolResult::text(format!("{:?} {}", sample.is_err(), shown(form))))
    });
    world.capabilities = json!({"elicitation": {}});
    let first = world.call(json!({}));
    assert_eq!(first.keys(), ["n"]);
    // Recorded rounds are never gated again: the capability is there now, and nothing changes (R-108).
    world.capabilities = json!({"elicitation": {}, "sampling": {}});
    assert_eq!(world.retry(&first, json!({"n": accept(json!({"n": 1}))})).text(), "true 1");
}

/// R-086 and the guarantee "no panic": a handler that panics ends its request with `-32603` and says nothing else.
#[test]
#[cfg_attr(panic = "abort", ignore = "a panic ends the process")]
fn a_panic_is_an_internal_error() {
    let mut world = World::new(|ctx: Ctx| async move {
        let _ = number(&ctx, "n").await;
        if ctx.target() == "t" {
            panic!("the secret is 42");
        }
        Ok(ToolResult::new())
    });
    let first = world.call(json!({}));
    let reply = world.retry(&first, json!({"n": accept(json!({"n": 1}))}));
    assert_eq!(reply.error(), (-32603, "Internal error"));
    assert!(!reply.0.to_string().contains("42"));
}

/// A3, A4: `FuturesUnordered` sees its answers in the order of the rounds, also on replay.
#[test]
fn a3_unordered_asks_keep_their_order_of_arrival() {
    let mut world = World::new(|ctx: Ctx| async move {
        let mut asks: FuturesUnordered<_> = ["a", "b", "c"]
            .into_iter()
            .map(|key| {
                let ask = number(&ctx, key);
                async move { format!("{key}{}", shown(ask.await)) }
            })
            .collect();
        let mut order = Vec::new();
        while let Some(answer) = asks.next().await {
            order.push(answer);
        }
        Ok(ToolResult::text(order.join(" ")))
    });
    let first = world.call(json!({}));
    let second = world.retry(&first, json!({"c": accept(json!({"n": 3}))}));
    let third = world.retry(&second, json!({"b": accept(json!({"n": 2}))}));
    assert_eq!(world.retry(&third, json!({"a": accept(json!({"n": 1}))})).text(), "c3 b2 a1");
}

/// R-084, R-099: no loop is without end: rounds and asks at their edges, named when reached.
#[test]
fn limits_at_their_edges() {
    let mut limits = Limits::default();
    limits.rounds = 2;
    limits.asks_sent = 2;
    let mut world = World::with(limits, TapePolicy::default(), |ctx: Ctx| async move {
        let asks: u32 = ctx.argument("asks")?;
        let keys: Vec<String> = (0..asks).map(|n| format!("k{n}")).collect();
        future::join_all(keys.iter().map(|key| number(&ctx, key))).await;
        let rounds: u32 = ctx.argument("rounds")?;
        for round in 1..rounds {
            let _ = number(&ctx, &format!("r{round}")).await;
        }
        Ok(ToolResult::text("done"))
    });
    let over = world.call(json!({"arguments": {"asks": 3, "rounds": 1}}));
    assert_eq!(
        over.error(),
        (-32603, "Internal error: over the limit of 2 asks in a round (Limits::asks_sent)")
    );
    let arguments = json!({"asks": 2, "rounds": 2});
    let first = world.call(json!({"arguments": arguments}));
    let second = world
        .call(json!({"arguments": arguments, "requestState": first.state(), "inputResponses": {
        "k0": accept(json!({"n": 1})), "k1": decline()}}));
    assert_eq!(second.keys(), ["r1"]);
    // A third round would be one too many, whether the handler or the client brings it about.
    let over = world.call(json!({"arguments": arguments, "requestState": second.state()}));
    assert_eq!(over.error(), (-32603, "Internal error: over the limit of 2 rounds (Limits::rounds)"));
    let done = world.call(
        json!({"arguments": arguments, "requestState": second.state(), "inputResponses": {"r1": decline()}}),
    );
    assert_eq!(done.text(), "done");
}
