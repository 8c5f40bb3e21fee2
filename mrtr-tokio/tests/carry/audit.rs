//! What the audit log says of an exchange, of either era: who asked what, and what was said, without content.

use std::{
    cell::RefCell,
    fmt::Write as _,
    sync::{Arc, Once},
};

use mrtr_core::{
    audit::Counters,
    catalog::Tool,
    form::{Elicited, Field, Form},
    handler::{Ctx, RpcError, Service, ToolResult},
    server::{Config, Server},
    wire::Implementation,
};
use mrtr_tokio::{audit, keys::KeySource, server::LegacyConfig, stdio};
use serde_json::{Value, json};
use tracing::{
    Metadata, Subscriber,
    field::{Field as Named, Visit},
    span,
};

use crate::stdio::{Peer, serve_on_a_pipe};

/// Collects a thread's audit events as text. One subscriber for all threads: what one of a single thread sees depends
/// on which thread met an event first.
struct Log;

thread_local! {
    static SEEN: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

struct Line<'a>(&'a mut String);

impl Visit for Line<'_> {
    fn record_debug(&mut self, field: &Named, value: &dyn std::fmt::Debug) {
        let text = format!("{value:?}");
        // Exchanges differ from run to run.
        let text = if field.name() == "exchange" { format!("<{}>", text.len()) } else { text };
        write!(self.0, " {}={text}", field.name()).unwrap();
    }
}

impl Subscriber for Log {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == audit::TARGET
    }
    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }
    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}
    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
    fn event(&self, event: &tracing::Event<'_>) {
        let mut line = event.metadata().level().to_string();
        event.record(&mut Line(&mut line));
        SEEN.with_borrow_mut(|seen| seen.push(line));
    }
    fn enter(&self, _: &span::Id) {}
    fn exit(&self, _: &span::Id) {}
}

/// A server of both eras whose tool asks twice.
fn start(counters: Arc<Counters>) -> Peer {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| tracing::subscriber::set_global_default(Log).unwrap());
    let sealer = KeySource::Bytes(&[7; 32]).sealer("tests").unwrap();
    let mut config = Config::new(Implementation::new("tests", "1"), sealer);
    config.observer = Some(counters);
    let service = Service::new(Server::new(config)).tool(Tool::new("t", "Asks."), |ctx: Ctx| async move {
        let form = Form::builder("Xyzzy?").field(Field::string("a").max_length(5).required()).build()?;
        let given: Elicited<Value> = ctx.elicit("form", &form).await?;
        let url = ctx.elicit_url("page", "Xyzzy?", "https://xyzzy.example/").await;
        Ok::<_, RpcError>(ToolResult::text(format!("{} {}", given.accepted().is_some(), url.is_ok())))
    });
    let mut options = stdio::Options::default();
    options.legacy = Some(LegacyConfig::default());
    serve_on_a_pipe(service.unwrap(), options)
}

fn seen() -> Vec<String> {
    SEEN.with_borrow_mut(std::mem::take)
}

async fn say(peer: &mut Peer, message: Value) {
    peer.send(&message.to_string()).await;
}

async fn hear(peer: &mut Peer) -> Value {
    serde_json::from_str(&peer.line().await).unwrap()
}

/// W-24: one event per ask and answer, under one target, with fields to search by; nothing a person read or wrote.
#[tokio::test(start_paused = true)]
async fn an_exchange_in_the_audit_log() {
    let counters = Arc::new(Counters::and_then(audit::Log));
    let mut peer = start(counters.clone());
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}, "url": {}}}});
    let request = |more: Value| {
        let mut params = json!({"name": "t", "arguments": {"x": "Xyzzy"}, "_meta": meta});
        params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
    };
    let mut reply = Value::Null;
    for answers in [
        json!({}),
        json!({"form": {"action": "accept", "content": {"a": "Xyzzy too long"}}}),
        json!({"form": {"action": "accept", "content": {"a": "Xyzzy"}}}),
        json!({"page": {"action": "decline"}}),
    ] {
        let state = &reply["result"]["requestState"];
        let more = if state.is_null() {
            json!({})
        } else {
            json!({"inputResponses": answers, "requestState": state})
        };
        say(&mut peer, request(more)).await;
        reply = hear(&mut peer).await;
    }
    assert_eq!(reply["result"]["resultType"], "complete");
    say(&mut peer, request(json!({"requestState": "Xyzzy"}))).await;
    assert_eq!(hear(&mut peer).await["error"]["code"], -32602);
    let asked = |round: u8, key: &str, kind: &str| {
        format!("INFO message=asked exchange=<32> round={round} key={key:?} kind={kind:?}")
    };
    let answered = |round: u8, key: &str, kind: &str, said: &str| {
        format!("INFO message=answered exchange=<32> round={round} key={key:?} kind={kind:?} said={said:?}")
    };
    assert_eq!(
        seen(),
        [
            asked(1, "form", "form"),
            answered(1, "form", "form", "invalid"),
            asked(2, "form", "form"),
            answered(2, "form", "form", "accept"),
            asked(3, "page", "url"),
            answered(3, "page", "url", "decline"),
            "INFO message=ended exchange=<32>".into(),
            "WARN message=refused verdict=malformed".into(),
        ]
    );
    assert_eq!((counters.counts().asked, counters.counts().completed, counters.counts().refused), (3, 1, 1));
}

/// R-233, R-236: the same in a legacy session, whose url asks have an id of their own and whose client may answer with an
/// error.
#[tokio::test(start_paused = true)]
async fn a_legacy_call_in_the_audit_log_r_233() {
    let counters = Arc::new(Counters::and_then(audit::Log));
    let mut peer = start(counters.clone());
    say(
        &mut peer,
        json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": "2025-11-25",
            "capabilities": {"elicitation": {"form": {}, "url": {}}}, "clientInfo": {"name": "c", "version": "1"}}}),
    )
    .await;
    hear(&mut peer).await;
    say(&mut peer, json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
    let mut elicitations = Vec::new();
    for id in 1..3 {
        say(
            &mut peer,
            json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "t", "arguments": {}}}),
        )
        .await;
        let form = hear(&mut peer).await;
        let content = json!({"action": "accept", "content": {"a": "Xyzzy"}});
        say(&mut peer, json!({"jsonrpc": "2.0", "id": form["id"], "result": content})).await;
        let page = hear(&mut peer).await;
        assert_eq!(page["method"], "elicitation/create");
        elicitations.push(page["params"]["elicitationId"].as_str().unwrap().to_owned());
        let error = json!({"code": -32602, "message": "Xyzzy"});
        say(&mut peer, json!({"jsonrpc": "2.0", "id": page["id"], "error": error})).await;
        assert_eq!(hear(&mut peer).await["result"]["content"][0]["text"], "true false");
    }
    assert!(elicitations[0].len() == 32 && elicitations[0] != elicitations[1], "{elicitations:?}");
    let log = seen();
    assert_eq!(
        log.get(..5).unwrap(),
        [
            r#"INFO message=asked exchange=<32> round=1 key="form" kind="form""#,
            r#"INFO message=answered exchange=<32> round=1 key="form" kind="form" said="accept""#,
            r#"INFO message=asked exchange=<32> round=2 key="page" kind="url""#,
            r#"INFO message=answered exchange=<32> round=2 key="page" kind="url" said="refused""#,
            r#"INFO message=ended exchange=<32>"#,
        ]
    );
    assert_eq!(log.len(), 10);
    assert_eq!((counters.counts().errors, counters.counts().completed), (2, 2));
}
