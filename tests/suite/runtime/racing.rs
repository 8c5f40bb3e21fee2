//! Races between asks (A3, A9).

use mrtr_core::handler::{Ctx, ToolResult};
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
