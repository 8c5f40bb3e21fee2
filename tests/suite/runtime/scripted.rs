//! Scripts of handlers that await I/O.

use std::time::Duration;

use mrtr_core::handler::{
    Ctx, ToolResult,
    testing::{Script, accept},
};
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::{number, shown};

async fn slow(ctx: Ctx) -> super::Result<ToolResult> {
    let (a, b) = futures::future::join(number(&ctx, "a"), async {
        sleep(Duration::from_secs(1)).await;
        number(&ctx, "b").await
    })
    .await;
    let mut paid = false;
    let url = ctx.elicit_url("pay", "Pay", "https://pay.example/").until(|| {
        // Done when it is looked at again.
        let done = std::mem::replace(&mut paid, true);
        async move { done }
    });
    let url = url.await?;
    Ok(ToolResult::text(format!("{} {} {url:?}", shown(a), shown(b))))
}

/// A2, A3, A10: every segment is run twice, with its I/O and its holds.
#[tokio::test(start_paused = true)]
async fn a_script_plays_under_a_runtime() {
    let begun = Instant::now();
    let script = Script::new(slow)
        .answer("a", accept(&json!({"n": 1})))
        .answer("b", accept(&json!({"n": 2})))
        .answer("pay", accept(&json!({})));
    let played = script.play_under(sleep).await.expect("the same twice");
    assert_eq!(played.keys(), [["a"], ["b"], ["pay"]]);
    assert_eq!(played.text(), "1 2 Accept");
    // The sibling's second in all requests but the first, which suspends at `a`; one look more in the last. Twice.
    assert_eq!(begun.elapsed(), Duration::from_secs(2 * (1 + 1 + 1 + 1)));
}

/// A2: without a runtime such a handler ends with an error instead of waiting for ever.
#[test]
fn without_a_runtime_it_ends_with_an_error() {
    let script = Script::new(|_: Ctx| async move {
        std::future::pending::<()>().await;
        Ok::<_, mrtr_core::handler::RpcError>(ToolResult::new())
    });
    assert_eq!(script.play().error().code.get(), -32603);
}
