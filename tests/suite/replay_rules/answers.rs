//! What counts as an answer: A4, A5, A7.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use mrtr_core::{
    handler::{Ctx, ToolResult},
    wire::Action,
};
use mrtr_tests::world::{World, accept};
use serde_json::json;

use super::{both, number, shown};

/// A4, A5, G-18, R-132: content that does not fit is asked again under the same key with the reason, three times;
/// then the handler is told.
#[test]
fn a4_invalid_content_is_asked_again_three_times() {
    let mut world =
        World::new(|ctx: Ctx| async move { Ok(ToolResult::text(shown(number(&ctx, "n").await))) });
    let mut last = world.call(json!({}));
    for _ in 0..2 {
        last = world.retry(&last, json!({"n": accept(json!({"n": 10}))}));
        assert_eq!(last.keys(), ["n"]);
        let reason = last.result()["_meta"]["dev.mrtr/invalid"]["n"].as_str().expect("a reason").to_owned();
        assert!(reason.contains('9') && !reason.contains("10"), "{reason}");
    }
    let done = world.retry(&last, json!({"n": accept(json!({"n": 10}))}));
    assert!(done.text().starts_with("Invalid("), "{done:?}");
    // A good answer after a bad one counts.
    let mut last = world.call(json!({}));
    last = world.retry(&last, json!({"n": accept(json!({}))}));
    assert_eq!(world.retry(&last, json!({"n": accept(json!({"n": 3}))})).text(), "3");
}

/// A5, R-079, R-080, B-45: an answer whose structure does not fit what was asked is `-32602` with its path;
/// nothing runs, nothing is consumed.
#[test]
fn a5_wrong_structure_is_invalid_params_and_consumes_nothing() {
    let runs = Arc::new(AtomicUsize::new(0));
    let counted = runs.clone();
    let mut world = World::new(move |ctx: Ctx| {
        counted.fetch_add(1, Ordering::Relaxed);
        async move { Ok(ToolResult::text(shown(number(&ctx, "n").await))) }
    });
    let first = world.call(json!({}));
    for wrong in [
        json!(12345),
        json!(null),
        json!([]),
        json!({}),
        json!({"action": "yes"}),
        json!({"action": "accept", "content": 1}),
    ] {
        let before = runs.load(Ordering::Relaxed);
        let reply = world.retry(&first, json!({"n": wrong}));
        let (code, message) = reply.error();
        assert_eq!(code, -32602);
        assert!(message.contains("inputResponses[\"n\"]"), "{message}");
        assert_eq!(runs.load(Ordering::Relaxed), before);
    }
    assert_eq!(world.retry(&first, json!({"n": accept(json!({"n": 3}))})).text(), "3");
}

/// A7, R-083, G-08: an answer that comes before it was asked for is taken for a form, once.
#[test]
fn a7_answers_without_a_state_are_taken_for_forms() {
    let mut world = World::new(both);
    let done = world.call(json!({"inputResponses": {
        "a": accept(json!({"n": 1})), "b": accept(json!({"n": 2})), "junk": 5
    }}));
    assert_eq!(done.text(), "1 2");
    // Some of them: the rest is asked, and what was given travels in the state.
    let first = world.call(json!({"inputResponses": {"a": accept(json!({"n": 1}))}}));
    assert_eq!(first.keys(), ["b"]);
    assert_eq!(world.retry(&first, json!({"b": accept(json!({"n": 2}))})).text(), "1 2");
    // Structure that does not fit is an error here too.
    assert_eq!(world.call(json!({"inputResponses": {"a": 12345}})).error().0, -32602);
    // After the first live block they are spent.
    let mut world = World::new(|ctx: Ctx| async move {
        let a = shown(number(&ctx, "a").await);
        let b = shown(number(&ctx, "b").await);
        Ok(ToolResult::text(format!("{a} {b}")))
    });
    let first =
        world.call(json!({"inputResponses": {"a": accept(json!({"n": 1})), "b": accept(json!({"n": 2}))}}));
    assert_eq!(first.keys(), ["b"]);
}

/// A7: a confirmation is never taken from a request without a state. Trace "dropped state": the listing has grown
/// since the person said yes, and the client sends the call again with the yes and without the state.
#[test]
fn a7_a_confirmation_without_its_state_is_asked_anew() {
    let files = Arc::new(AtomicUsize::new(3));
    let listing = files.clone();
    let mut world = World::new(move |ctx: Ctx| {
        let count = listing.load(Ordering::Relaxed);
        async move {
            Ok(match ctx.confirm("confirm", format!("Delete {count} files?")).await? {
                Action::Accept => ToolResult::text(format!("deleted {count}")),
                Action::Decline | Action::Cancel => ToolResult::text("kept"),
            })
        }
    });
    let first = world.call(json!({}));
    assert_eq!(first.message("confirm"), "Delete 3 files?");
    files.store(5, Ordering::Relaxed);
    let again = world.call(json!({"inputResponses": {"confirm": accept(json!({}))}}));
    assert_eq!(again.message("confirm"), "Delete 5 files?");
    // With the old state: the question has changed, so the yes answers nothing (G-26).
    let changed = world.retry(&first, json!({"confirm": accept(json!({}))}));
    assert_eq!(changed.message("confirm"), "Delete 5 files?");
    assert_eq!(world.retry(&changed, json!({"confirm": accept(json!({}))})).text(), "deleted 5");
}

/// A7: urls, solicited asks and servers that demand a state take no early answer.
#[test]
fn a7_solicited_asks_take_no_early_answer() {
    let mut world = World::new(|ctx: Ctx| async move {
        let url = ctx.elicit_url("url", "Sign in", "https://example.com/in").await?;
        Ok(ToolResult::text(format!("{url:?}")))
    });
    assert_eq!(world.call(json!({"inputResponses": {"url": {"action": "accept"}}})).keys(), ["url"]);
    let mut world =
        World::new(
            |ctx: Ctx| async move { Ok(ToolResult::text(shown(number(&ctx, "n").solicited().await))) },
        );
    assert_eq!(world.call(json!({"inputResponses": {"n": accept(json!({"n": 1}))}})).keys(), ["n"]);
    let mut config = mrtr_tests::world::config();
    config.require_state = true;
    let mut world = World::of(mrtr_tests::world::service(config, |ctx: Ctx| async move {
        Ok(ToolResult::text(shown(number(&ctx, "n").await)))
    }));
    assert_eq!(world.call(json!({"inputResponses": {"n": accept(json!({"n": 1}))}})).keys(), ["n"]);
}
