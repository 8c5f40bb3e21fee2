//! Races between asks (A3, A9).

use mrtr_core::handler::{Ctx, ToolResult, Won, race, race_all};
use serde_json::json;

use super::{Room, n, number, shown};

async fn biased(ctx: Ctx) -> super::Result<ToolResult> {
    let (a, b) = (number(&ctx, "a"), number(&ctx, "b"));
    let first = tokio::select! {
        biased;
        answer = b => format!("b{}", shown(answer)),
        answer = a => format!("a{}", shown(answer)),
    };
    let then = shown(number(&ctx, "then").await);
    Ok(ToolResult::text(format!("{first} {then}")))
}

/// A3, A4: whoever wins a biased race wins it again on every replay; the loser is not asked again.
#[tokio::test(start_paused = true)]
async fn a3_biased_races_keep_their_winner() {
    for (answers, winner) in
        [(json!({"a": n(1)}), "a1"), (json!({"b": n(2)}), "b2"), (json!({"a": n(1), "b": n(2)}), "b2")]
    {
        let mut room = Room::new(biased);
        let first = room.call(json!({})).await;
        assert_eq!(first.keys(), ["a", "b"]);
        let second = room.retry(&first, answers).await;
        assert_eq!(second.keys(), ["then"]);
        // A late answer to the loser changes nothing.
        let done = room.retry(&second, json!({"then": n(3), "a": n(9), "b": n(9)})).await;
        assert_eq!(done.text(), format!("{winner} 3"));
    }
}

/// The same with what the library offers for it, and no macro.
async fn raced(ctx: Ctx) -> super::Result<ToolResult> {
    let (a, b) = (number(&ctx, "a"), number(&ctx, "b"));
    let first = match race(b, a).await {
        Won::First(answer, _) => format!("b{}", shown(answer)),
        Won::Second(answer, _) => format!("a{}", shown(answer)),
    };
    let then = shown(number(&ctx, "then").await);
    Ok(ToolResult::text(format!("{first} {then}")))
}

async fn raced_in_a_list(ctx: Ctx) -> super::Result<ToolResult> {
    let asks = ["b", "a"].map(|key| number(&ctx, key));
    let (index, answer, rest) = race_all(asks).await;
    assert_eq!(rest.len(), 1);
    drop(rest);
    let first = format!("{}{}", ["b", "a"][index], shown(answer));
    let then = shown(number(&ctx, "then").await);
    Ok(ToolResult::text(format!("{first} {then}")))
}

/// A3, A4, A9: the races of the library are biased: without a runtime as well as under one.
#[tokio::test(start_paused = true)]
async fn a3_our_races_keep_their_winner() {
    for (answers, winner) in
        [(json!({"a": n(1)}), "a1"), (json!({"b": n(2)}), "b2"), (json!({"a": n(1), "b": n(2)}), "b2")]
    {
        for mut room in [Room::new(raced), Room::new(raced_in_a_list)] {
            let first = room.call(json!({})).await;
            let mut keys = first.keys();
            keys.sort_unstable();
            assert_eq!(keys, ["a", "b"]);
            let second = room.retry(&first, answers.clone()).await;
            assert_eq!(second.keys(), ["then"]);
            let done = room.retry(&second, json!({"then": n(3), "a": n(9), "b": n(9)})).await;
            assert_eq!(done.text(), format!("{winner} 3"));
            let done = room.world.retry(&second, json!({"then": n(3)}));
            assert_eq!(done.text(), format!("{winner} 3"));
        }
    }
}

/// A9 c: the loser that goes on is asked alone in the next round, and its answer counts.
#[test]
fn a9_the_loser_of_a_race_may_go_on() {
    let mut world = mrtr_tests::world::World::new(|ctx: Ctx| async move {
        let (a, b) = (number(&ctx, "a"), number(&ctx, "b"));
        let (won, other) = match race(a, b).await {
            Won::First(won, other) => (won, other),
            Won::Second(won, other) => (won, other),
        };
        Ok(ToolResult::text(format!("{} {}", shown(won), shown(other.await))))
    });
    let first = world.call(json!({}));
    let second = world.retry(&first, json!({"b": n(2)}));
    assert_eq!(second.keys(), ["a"]);
    assert_eq!(world.retry(&second, json!({"a": n(1)})).text(), "2 1");
}

/// Without `biased;` a race that both answers win in one round is decided by chance, on every run anew. What then
/// differs is asked again or ends the exchange; no answer ever reaches another question.
#[tokio::test(start_paused = true)]
async fn unbiased_races_never_mix_answers() {
    let mut room = Room::new(|ctx: Ctx| async move {
        let (a, b) = (number(&ctx, "a"), number(&ctx, "b"));
        let (won, answer) = tokio::select! {
            answer = a => ("a", shown(answer)),
            answer = b => ("b", shown(answer)),
        };
        let then = shown(ctx.elicit("then", &super::form(&format!("{won} won"))).await);
        Ok(ToolResult::text(format!("{won}{answer} {then}")))
    });
    let mut asked_again = 0;
    for _ in 0..64 {
        let first = room.call(json!({})).await;
        let mut last = room.retry(&first, json!({"a": n(1), "b": n(2)})).await;
        let done = loop {
            if last.0.get("error").is_some() {
                assert_eq!(last.error(), (-32603, "Internal error: this question changes from run to run"));
                break None;
            }
            if last.result()["resultType"] == "complete" {
                break Some(last);
            }
            let won = last.message("then").to_owned();
            // The answer names the question that it was given to.
            let answer = if won == "a won" { n(4) } else { n(5) };
            last = room.retry(&last, json!({"then": answer})).await;
            asked_again += usize::from(last.result_is_a_question());
        };
        if let Some(done) = done {
            assert!(["a1 4", "b2 5"].contains(&done.text()), "{done:?}");
        }
    }
    assert!(asked_again > 0, "64 races and none was decided otherwise on replay");
}

trait IsQuestion {
    fn result_is_a_question(&self) -> bool;
}

impl IsQuestion for mrtr_tests::world::Reply {
    fn result_is_a_question(&self) -> bool {
        self.0["result"]["resultType"] == "input_required"
    }
}
