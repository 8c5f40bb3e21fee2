//! Handlers that ask, or make something once, for each of many elements: the work grows with their number and no faster.

use core::hint::black_box;

use mrtr_core::handler::{Ctx, RpcError, ToolResult};
use serde_json::json;

use super::Case;
use crate::world::World;

/// What a handler does for each element.
const KINDS: [&str; 7] = [
    "asks",
    "asks-that-nobody-wants",
    "asks-that-cannot-be-answered",
    "uses-of-a-key",
    "once-values",
    "uses-of-a-once-name",
    "named-values",
];

/// A1, A11: eight times as many elements are about eight times the work. Sixty-four times would be too much for the number
/// of elements that a request may have (`Limits::nodes`). Each kind with few elements and with eight times as many.
#[must_use]
pub fn growth() -> Vec<Case> {
    let case = |kind: &'static str, count: usize| {
        let name: &'static str = format!("growth/{kind}/{count}").leak();
        let mut world = World::new(move |ctx: Ctx| for_each(ctx, kind, count));
        world.capabilities = json!({"elicitation": {"form": {}}});
        Case::new(name, move || {
            black_box(world.call(json!({})));
        })
    };
    KINDS.into_iter().flat_map(|kind| [case(kind, 500), case(kind, 4_000)]).collect()
}

async fn for_each(ctx: Ctx, kind: &str, count: usize) -> Result<ToolResult, RpcError> {
    let key = |n: usize| format!("k{n}");
    match kind {
        "asks" => {
            let asks: Vec<_> = (0..count).map(|n| ctx.confirm(&key(n), "Sure?")).collect();
            for ask in asks {
                let _ = ask.await;
            }
        }
        "asks-that-nobody-wants" => {
            drop((0..count).map(|n| ctx.confirm(&key(n), "Sure?")).collect::<Vec<_>>())
        }
        "asks-that-cannot-be-answered" => {
            let url = |n| ctx.elicit_url(&key(n), "Open it", "https://page.example/").optional();
            let _ = futures::future::join_all((0..count).map(url)).await;
        }
        "uses-of-a-key" => (0..count).for_each(|_| drop(ctx.confirm("k", "Sure?"))),
        "once-values" => {
            for n in 0..count {
                ctx.once(&key(n), || n)?;
            }
        }
        "uses-of-a-once-name" => {
            for n in 0..count {
                ctx.once("k", || n)?;
            }
        }
        "named-values" => {
            for n in 0..count {
                ctx.set(&key(n), &n)?;
                let _ = ctx.get::<usize>(&key(n));
            }
        }
        other => panic!("nothing is known of {other}"),
    }
    Ok(ToolResult::text("done"))
}
