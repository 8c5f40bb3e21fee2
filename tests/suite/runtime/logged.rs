//! What is logged, and told to observers: enough to find a fault, nothing of what people wrote.

use std::{
    cell::RefCell,
    fmt::Write as _,
    sync::{
        Arc, Mutex, Once,
        atomic::{AtomicUsize, Ordering},
    },
};

use mrtr_core::{
    audit::{Counters, Event, Observer},
    handler::{Ctx, ToolResult},
    wire::Sampling,
};
use mrtr_tests::world::{World, accept, cancel, config, decline, service};
use serde_json::json;
use tracing::{
    Metadata, Subscriber,
    field::{Field, Visit},
    span,
};

use super::{form, number, shown};

/// Collects the events of each thread as text, for those that want them. One for all threads: what a subscriber of a
/// single thread sees depends on which thread met an event first.
struct Log;

thread_local! {
    static SEEN: RefCell<Option<String>> = const { RefCell::new(None) };
}

impl Log {
    fn of(act: impl FnOnce()) -> String {
        static ONCE: Once = Once::new();
        ONCE.call_once(|| tracing::subscriber::set_global_default(Self).expect("the only one"));
        SEEN.set(Some(String::new()));
        act();
        SEEN.take().unwrap_or_default()
    }
}

struct Line<'a>(&'a mut String);

impl Visit for Line<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        write!(self.0, " {}={value:?}", field.name()).expect("memory");
    }
}

impl Subscriber for Log {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }
    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }
    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}
    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
    fn event(&self, event: &tracing::Event<'_>) {
        SEEN.with_borrow_mut(|seen| {
            if let Some(seen) = seen {
                write!(seen, "{}", event.metadata().level()).expect("memory");
                event.record(&mut Line(seen));
                seen.push('\n');
            }
        });
    }
    fn enter(&self, _: &span::Id) {}
    fn exit(&self, _: &span::Id) {}
}

/// A8: the third divergence of an exchange ends it, and the log names the key.
#[test]
fn a8_the_third_divergence_names_the_key_in_the_log() {
    let runs = Arc::new(AtomicUsize::new(0));
    let mut world = World::new(move |ctx: Ctx| {
        let run = runs.fetch_add(1, Ordering::Relaxed);
        async move {
            let steady = number(&ctx, "steady");
            let (a, b) =
                futures::future::join(steady, ctx.elicit("shaky", &form(&format!("run {run}")))).await;
            Ok(ToolResult::text(format!("{} {}", shown(a), shown(b))))
        }
    });
    let mut last = world.call(json!({}));
    for _ in 0..2 {
        last = world.retry(&last, json!({"shaky": accept(json!({"n": 1}))}));
    }
    let log = Log::of(|| {
        let ended = world.retry(&last, json!({"shaky": accept(json!({"n": 1}))}));
        assert_eq!(ended.error(), (-32603, "Internal error: this question changes from run to run"));
    });
    assert!(log.contains("this question changes from run to run: shaky"), "{log}");
    assert!(!log.contains("steady"), "{log}");
}

/// A11: a handler that decides by `get` whether to ask diverges, and the report names what it had read.
#[test]
fn a11_divergences_name_the_values_that_were_read() {
    let mut world = World::new(|ctx: Ctx| async move {
        let asked_before: bool = ctx.get("asked_before").unwrap_or(false);
        ctx.set("asked_before", &true)?;
        let _ = ctx.get::<String>("another");
        if !asked_before {
            let _ = number(&ctx, "a").await;
        }
        Ok(ToolResult::text(shown(number(&ctx, "b").await)))
    });
    let first = world.call(json!({}));
    assert_eq!(first.keys(), ["a"]);
    let log = Log::of(|| {
        let second = world.retry(&first, json!({"a": accept(json!({"n": 1}))}));
        assert_eq!(second.keys(), ["b"]);
    });
    assert!(log.contains("-a +b; it had read the values asked_before another"), "{log}");
}

/// No secret, state or answer in a log: everything that two servers log while they are asked, answered, refused and
/// fail, searched for what went over the wire.
#[test]
fn logs_hold_no_content() {
    let marker = "Xyzzy-4711";
    let handler = |ctx: Ctx| async move {
        let mode: String = ctx.argument("mode")?;
        let a = ctx.confirm("a", format!("Xyzzy-4711 {mode}?")).await;
        match mode.as_str() {
            "panic" => panic!("Xyzzy-4711"),
            "stall" => std::future::pending::<()>().await,
            _ => {}
        }
        Ok(ToolResult::text(format!("Xyzzy-4711 {a:?}")))
    };
    let mut world = World::new(handler);
    let log = Log::of(|| {
        for mode in ["panic", "stall", "none"] {
            let arguments = json!({"mode": mode, "extra": marker});
            let first = world.call(json!({"arguments": arguments}));
            let answer = json!({"a": accept(json!({"x": marker}))});
            let params =
                json!({"arguments": arguments, "requestState": first.state(), "inputResponses": answer});
            world.call(params.clone());
            world.principal = Some(b"Xyzzy-4711".to_vec());
            assert_eq!(world.call(params).error().0, -32602);
            world.principal = Some(b"alice".to_vec());
        }
    });
    assert!(
        log.contains("a handler panicked") && log.contains("awaits something that is not an ask"),
        "{log}"
    );
    assert!(log.contains("a state was refused"), "{log}");
    assert!(!log.contains("Xyzzy"), "{log}");
}

/// Collects what an observer is told.
#[derive(Clone, Debug, Default)]
struct Told(Arc<Mutex<Vec<String>>>);

impl Observer for Told {
    fn observe(&self, event: &Event<'_>) {
        let line = event.to_string();
        // Exchange ids differ from one exchange to the next; what matters here is the rest.
        let line = line.split_once(' ').map_or(line.clone(), |(first, rest)| {
            if first.len() == 32 { rest.to_owned() } else { line.clone() }
        });
        self.0.lock().expect("unpoisoned").push(line);
        let debug = format!("{event:?}");
        assert!(!debug.contains("Xyzzy"), "{debug}");
    }
}

impl Told {
    fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().expect("unpoisoned"))
    }
}

/// W-24, the guarantee "no answer in a log": one event per ask and answer, in order, without content; and counts.
#[test]
fn observers_are_told_every_ask_and_answer_without_content() {
    let told = Told::default();
    let counters = Arc::new(Counters::and_then(told.clone()));
    let mut config = config();
    config.observer = Some(counters.clone());
    let mut world = World::of(service(config, |ctx: Ctx| async move {
        let roots = ctx.roots("roots").optional();
        let form = ctx.elicit::<serde_json::Value>("form", &form("Xyzzy?"));
        let sample = ctx.sample("sample", &Sampling::new(9).user("Xyzzy?"));
        let (roots, form, sample) = futures::future::join3(roots, form, sample).await;
        let url = ctx.elicit_url("url", "Xyzzy?", "https://xyzzy.example/Xyzzy").until(async || false).await;
        ctx.checkpoint().await?;
        Ok(ToolResult::text(format!("Xyzzy {} {} {} {url:?}", roots.is_ok(), shown(form), sample.is_ok())))
    }));
    world.capabilities = json!({"elicitation": {"form": {}, "url": {}}, "sampling": {}});
    let first = world.call(json!({}));
    assert_eq!(
        told.take(),
        [
            "round 0: roots (roots) unavailable",
            "round 1: asked form (form)",
            "round 1: asked sample (sampling)"
        ]
    );
    let model = json!({"role": "assistant", "model": "Xyzzy", "content": {"type": "text", "text": "Xyzzy"}});
    let second =
        world.retry(&first, json!({"form": accept(json!({"n": 99, "x": "Xyzzy"})), "sample": model}));
    assert_eq!(
        told.take(),
        ["round 1: form (form) invalid", "round 1: sample (sampling) result", "round 2: asked form (form)"]
    );
    let third = world.retry(&second, json!({"form": decline()}));
    assert_eq!(told.take(), ["round 2: form (form) decline", "round 3: asked url (url)"]);
    let fourth = world.retry(&third, json!({"url": {"action": "accept"}}));
    assert_eq!(told.take(), ["round 3: url (url) not yet", "round 4: asked url (url)"]);
    let fifth = world.retry(&fourth, json!({"url": cancel()}));
    assert_eq!(told.take(), ["round 4: url (url) cancel", "round 5: asked nothing"]);
    world.call(json!({"requestState": fifth.state()})).text();
    assert_eq!(told.take(), ["ended with a result"]);
    assert_eq!(world.call(json!({"requestState": "Xyzzy"})).error().0, -32602);
    assert_eq!(told.take().len(), 1);
    let counts: Vec<_> = counters.counts().iter().filter(|(_, count)| *count > 0).collect();
    assert_eq!(
        counts,
        [
            ("asked", 5),
            ("state_only", 1),
            ("declined", 1),
            ("cancelled", 1),
            ("results", 1),
            ("invalid", 1),
            ("unavailable", 1),
            ("not_yet", 1),
            ("completed", 1),
            ("refused", 1)
        ]
    );
}

/// A8, A7: divergences are told with their keys, early answers under round 0, errors with their code.
#[test]
fn observers_are_told_of_divergences_and_errors() {
    let told = Told::default();
    let mut config = config();
    config.observer = Some(Arc::new(told.clone()));
    let runs = Arc::new(AtomicUsize::new(0));
    let mut world = World::of(service(config, move |ctx: Ctx| {
        let run = runs.fetch_add(1, Ordering::Relaxed);
        async move {
            let _ = number(&ctx, "early").await;
            let _ = ctx.elicit::<serde_json::Value>("shaky", &form(&format!("Xyzzy {run}"))).await;
            Err::<ToolResult, _>(mrtr_core::handler::RpcError::internal("Xyzzy"))
        }
    }));
    let first = world.call(json!({"inputResponses": {"early": accept(json!({"n": 1}))}}));
    assert_eq!(told.take(), ["round 0: early (form) accept", "round 1: asked shaky (form)"]);
    let again = world.retry(&first, json!({"shaky": accept(json!({"n": 1}))}));
    assert_eq!(again.keys(), ["shaky"]);
    assert_eq!(
        told.take(),
        ["round 1: the handler asks other questions than before ~shaky", "round 2: asked shaky (form)"]
    );
}
