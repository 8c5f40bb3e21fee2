//! Scripts: the client of a unit test, strict about handlers that are not the same twice (B-85, B-86).

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use mrtr_core::{
    form::{Elicited, Field, Form},
    handler::{
        Ctx, RpcError, ToolResult,
        testing::{Script, ScriptError, accept, cancel, decline, raw, roots, sampled, withhold},
    },
    wire::{AskKind, AskingMethod, ClientCapabilities, Sampling},
};
use serde_json::{Value, json};

type Result<T> = std::result::Result<T, RpcError>;

fn form(message: &str) -> Form {
    Form::builder(message)
        .field(Field::integer("n").minimum(0).maximum(9).required())
        .build()
        .expect("a valid form")
}

fn yes() -> mrtr_core::handler::testing::Reply {
    accept(&json!({}))
}

async fn everything(ctx: Ctx) -> Result<ToolResult> {
    let id: u64 = ctx.once("id", || 7)?;
    let form = ctx.elicit::<Value>("form", &form(&format!("Number for {id}?")));
    let (form, roots) = futures::future::join(form, ctx.roots("roots")).await;
    let form = form?.accepted().map_or(Value::Null, |content| content["n"].clone());
    let said = ctx.sample("sample", &Sampling::new(9).user("?")).await?.text().to_string();
    ctx.checkpoint().await?;
    let url = ctx.elicit_url("url", "Open", "https://example.com/").await?;
    Ok(ToolResult::text(format!("{form} {} {said} {url:?} {}", roots?.len(), ctx.target())))
}

#[test]
fn a_script_plays_every_round() {
    let played = Script::new(everything)
        .answer("form", accept(&json!({"n": 3})))
        .answer("roots", roots(&["file:///a", "file:///b"]))
        .answer("sample", sampled("hello"))
        .answer("url", cancel())
        .play();
    assert_eq!(played.keys(), [vec!["form", "roots"], vec!["sample"], vec![], vec!["url"]]);
    assert_eq!(played.rounds[0].asks[0].message, "Number for 7?");
    assert_eq!(played.rounds[0].asks[1].kind, AskKind::Roots);
    assert!(played.rounds[1].state_bytes > played.rounds[0].state_bytes);
    assert_eq!(played.text(), "3 2 hello Cancel test");
    assert!(!played.is_error());
}

#[test]
fn answers_may_be_withheld_invalid_and_up_front() {
    async fn ask(ctx: Ctx) -> Result<ToolResult> {
        let answer = ctx.elicit::<Value>("k", &form("?")).await?;
        Ok(ToolResult::text(format!("{:?}", answer.action())))
    }
    let script = || Script::new(ask).answer("k", withhold()).answer("k", accept(&json!({"n": 10})));
    let played = script().answer("k", decline()).play();
    assert_eq!(played.keys(), [["k"], ["k"], ["k"]]);
    assert_eq!(played.text(), "Decline");
    assert_eq!(Script::new(ask).up_front("k", accept(&json!({"n": 1}))).play().rounds.len(), 0);
    let refused = Script::new(ask).answer("k", raw("12345")).play();
    assert_eq!(refused.error().code.get(), -32602);
    let refused = Script::new(ask).capabilities(ClientCapabilities::default()).play();
    assert_eq!(refused.error().code.get(), -32021);
    let prompt = Script::new(ask).called(AskingMethod::PromptsGet, "p").arguments(&json!({"x": 1}));
    assert_eq!(prompt.answer("k", cancel()).play().text(), "Cancel");
}

#[test]
fn commits_run_once() {
    let commits = Arc::new(AtomicUsize::new(0));
    let counter = commits.clone();
    let script = Script::new(move |ctx: Ctx| {
        let counter = counter.clone();
        async move {
            ctx.on_commit(move || {
                counter.fetch_add(1, Ordering::Relaxed);
                Ok(())
            });
            ctx.confirm("k", "?").await?;
            Ok::<_, RpcError>(ToolResult::text("done"))
        }
    });
    assert_eq!(script.answer("k", yes()).play().text(), "done");
    assert_eq!(commits.load(Ordering::Relaxed), 1);
}

/// What is in a once-value may be random: it is made once.
#[test]
fn once_values_may_differ_between_exchanges() {
    let made = Arc::new(AtomicUsize::new(0));
    let counter = made.clone();
    let script = Script::new(move |ctx: Ctx| {
        let counter = counter.clone();
        async move {
            let id = ctx.once("id", || counter.fetch_add(1, Ordering::Relaxed))?;
            ctx.confirm("k", format!("Order {id}?")).await?;
            let last = ctx.once("last", || counter.fetch_add(1, Ordering::Relaxed))?;
            Ok::<_, RpcError>(ToolResult::text(format!("{id} {last}")))
        }
    });
    assert_eq!(script.answer("k", yes()).play().text(), "0 1");
    assert_eq!(made.load(Ordering::Relaxed), 2);
}

/// A handler whose behaviour depends on how often it has started.
fn by_run<F, R>(handler: F) -> Script
where
    F: Fn(Ctx, usize) -> R + Send + Sync + 'static,
    R: Future<Output = Result<ToolResult>> + Send + 'static,
{
    let runs = AtomicUsize::new(0);
    Script::new(move |ctx: Ctx| handler(ctx, runs.fetch_add(1, Ordering::Relaxed)))
}

/// A8: a question that is another one when it is replayed fails with both texts; so does one that is there no more.
#[test]
fn what_differs_on_replay_is_shown() {
    // Runs 0 and 1 are the first request, 2 and 3 the first retry.
    let script = by_run(|ctx, run| async move {
        ctx.confirm("a", format!("Delete {} files?", if run < 2 { 3 } else { 4 })).await?;
        Ok(ToolResult::text("done"))
    });
    let failed = script.answer("a", yes()).try_play().unwrap_err();
    assert_eq!(
        failed.to_string(),
        "round 1: the handler does not ask the same when it runs again\n  - a (form) \"Delete 3 files?\"\n  + a (form) \
         \"Delete 4 files?\"\nput what it reads from outside into `once`, and asks that wait for the same thing into \
         one round"
    );
    let script = by_run(|ctx, run| async move {
        if run < 2 {
            ctx.confirm("a", "A?").await?;
        }
        Ok(ToolResult::text("done"))
    });
    let failed = script.answer("a", yes()).try_play().unwrap_err();
    let ScriptError::OtherQuestions { round: 1, first, then } = &failed else { panic!("{failed}") };
    assert_eq!((first.len(), then.len()), (1, 0));
    // Only the second run of a retry differs.
    let script = by_run(|ctx, run| async move {
        ctx.confirm("a", if run == 3 { "Really?" } else { "A?" }).await?;
        Ok(ToolResult::text("done"))
    });
    let failed = script.answer("a", yes()).try_play().unwrap_err();
    assert!(failed.to_string().contains("+ a (form) \"Really?\""), "{failed}");
}

#[test]
fn a_result_that_differs_is_shown() {
    let script = by_run(|ctx, run| async move {
        ctx.confirm("a", "A?").await?;
        Ok(ToolResult::text(format!("run {run}")))
    });
    let failed = script.answer("a", yes()).try_play().unwrap_err();
    let text = failed.to_string();
    assert!(matches!(failed, ScriptError::OtherResult { .. }));
    assert!(text.contains("run 2") && text.contains("run 3"), "{text}");
}

#[test]
fn scripts_that_do_not_fit_fail() {
    async fn ask(ctx: Ctx) -> Result<ToolResult> {
        match ctx.elicit::<Value>("k", &form("Which?")).await? {
            Elicited::Accept(_) => Ok(ToolResult::text("done")),
            Elicited::Decline | Elicited::Cancel => Ok(ToolResult::error("no")),
        }
    }
    let failed = Script::new(ask).try_play().unwrap_err();
    assert_eq!(failed.to_string(), "round 1: the script has no answer to k (form) \"Which?\"");
    let failed = Script::new(ask).answer("k", decline()).answer("z", decline()).try_play().unwrap_err();
    assert_eq!(failed, ScriptError::NeverAsked(vec!["z".into()]));
    let played = Script::new(ask).answer("k", decline()).play();
    assert!(played.is_error());
}

#[test]
#[should_panic(expected = "the script has no answer to k")]
fn play_panics_with_the_report() {
    let _ = Script::new(|ctx: Ctx| async move {
        ctx.confirm("k", "?").await?;
        Ok::<_, RpcError>(ToolResult::new())
    })
    .play();
}
