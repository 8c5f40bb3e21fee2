//! Handlers that ask, or make something once, for each of many elements: the work grows with their number and no faster.

use std::time::{Duration, Instant};

use mrtr_core::handler::{Ctx, RpcError, ToolResult};
use mrtr_tests::world::World;
use serde_json::json;

async fn for_each(ctx: Ctx, kind: &str, count: usize) -> Result<ToolResult, RpcError> {
    let key = |n: usize| format!("k{n}");
    match kind {
        "asks" => {
            let asks: Vec<_> = (0..count).map(|n| ctx.confirm(&key(n), "Sure?")).collect();
            for ask in asks {
                let _ = ask.await;
            }
        }
        "asks that nobody wants" => {
            drop((0..count).map(|n| ctx.confirm(&key(n), "Sure?")).collect::<Vec<_>>())
        }
        "asks that cannot be answered" => {
            let url = |n| ctx.elicit_url(&key(n), "Open it", "https://page.example/").optional();
            let _ = futures::future::join_all((0..count).map(url)).await;
        }
        "uses of a key" => (0..count).for_each(|_| drop(ctx.confirm("k", "Sure?"))),
        "once-values" => {
            for n in 0..count {
                ctx.once(&key(n), || n)?;
            }
        }
        "uses of a once-name" => {
            for n in 0..count {
                ctx.once("k", || n)?;
            }
        }
        _ => {
            for n in 0..count {
                ctx.set(&key(n), &n)?;
                let _ = ctx.get::<usize>(&key(n));
            }
        }
    }
    Ok(ToolResult::text("done"))
}

/// The shortest of five runs: what another program takes meanwhile does not count.
#[expect(clippy::disallowed_methods, reason = "this is about time itself")]
fn shortest(kind: &'static str, count: usize) -> Duration {
    let mut world = World::new(move |ctx: Ctx| for_each(ctx, kind, count));
    world.capabilities = json!({"elicitation": {"form": {}}});
    let run = |_| {
        let begun = Instant::now();
        let _ = world.call(json!({}));
        begun.elapsed()
    };
    (0..5).map(run).min().unwrap_or_default()
}

/// A1, A11: eight times as many elements take about eight times as long. Sixty-four times would be too long for the number
/// of elements that a request may have (`Limits::nodes`).
#[test]
fn a1_a11_work_grows_with_the_number_of_elements() {
    for kind in [
        "asks",
        "asks that nobody wants",
        "asks that cannot be answered",
        "uses of a key",
        "once-values",
        "uses of a once-name",
        "named values",
    ] {
        let (few, many) = (shortest(kind, 2_000), shortest(kind, 16_000));
        assert!(many < few * 40, "{kind}: {few:?} for 2,000, {many:?} for 16,000");
    }
}
