//! Handlers in another language hand over JSON text where Rust hands over values: both say the same on the wire (A11).

use std::task::Poll;

use mrtr_core::{
    Entropy, ErrorCode, Limits, Timestamp,
    handler::{Attempt, AttemptEvent, Ctx, Output, RpcError},
    jsonrpc::Json,
    seal::Principal,
    server::{InputRequests, Received, RequireError, RoundEnv, Server},
    wire::{InputRequest, LogLevel},
};
use mrtr_tests::world::{Reply, START, World, accept, config};
use serde_json::{Value, json};

fn parsed(text: &str) -> Json<'_> {
    Json::parse(text, &Limits::default()).expect("JSON")
}

/// A11: what is made once, set and returned as text is what serde would have written, to the byte of the state.
#[test]
fn text_and_values_are_the_same_on_the_wire_a11() {
    let values = World::new(|ctx: Ctx| async move {
        let made: Value = ctx.once_async("made", async { json!({"n": [1, 2]}) }).await?;
        ctx.set("seen", &made)?;
        ctx.log(LogLevel::Error, &made);
        ctx.confirm("sure", "Sure?").await?;
        let seen: Option<Value> = ctx.get("seen");
        if seen.is_none() {
            return Err(RpcError::new(ErrorCode::new(-5), "lost").with_data(&made).expect("JSON"));
        }
        Ok(Output::from_serialize(&json!({"content": [], "isError": true, "structuredContent": seen}))
            .expect("JSON"))
    });
    let texts = World::new(|ctx: Ctx| async move {
        let made = ctx.once_json("made", async { String::from(r#"{"n":[1,2]}"#) }).await?;
        ctx.set_json("seen", parsed(&made));
        ctx.log_json(LogLevel::Error, parsed(&made));
        ctx.confirm("sure", "Sure?").await?;
        let Some(seen) = ctx.get_json("seen") else {
            return Err(RpcError::new(ErrorCode::new(-5), "lost").with_json_data(parsed(&made)));
        };
        let result = format!(r#"{{"content":[],"isError":true,"structuredContent":{seen}}}"#);
        Ok(Output::from_json(parsed(&result)))
    });
    let [values, texts] = [values, texts].map(|mut world| {
        let asked = world.call(json!({"_meta": {"io.modelcontextprotocol/logLevel": "debug"}}));
        let done = world.retry(&asked, json!({"sure": accept(json!({}))}));
        (asked, done)
    });
    assert_eq!(values, texts);
    assert_eq!(texts.1.result()["structuredContent"], json!({"n": [1, 2]}));
}

/// A11: an error's data as text is what it is as a value; text that is no JSON spoils the attempt, whatever the handler
/// makes of the error.
#[test]
fn what_is_no_json_is_never_kept_a11() {
    let mut world = World::new(|ctx: Ctx| async move {
        let text = if ctx.argument::<bool>("good")? { r#" {"a":1} "# } else { r#"{"a":1,"a":2}"# };
        let made =
            ctx.once_json("made", async { String::from(text) }).await.unwrap_or_else(|_| "null".into());
        Err::<Output, _>(RpcError::new(ErrorCode::new(-5), "as text").with_json_data(parsed(&made)))
    });
    let good = world.call(json!({"arguments": {"good": true}}));
    assert_eq!((good.error().0, good.data()), (-5, &json!({"a": 1})));
    let bad = world.call(json!({"arguments": {"good": false}}));
    assert_eq!(bad.error(), (-32603, "Internal error"));
}

/// A return-style server's state as text, and one code for first and later rounds.
#[test]
fn a_state_as_text_comes_back_as_it_was_g26() {
    let server = Server::new(config());
    let mut world = World::new(|_| async { Ok(Output::from_json(parsed("{}"))) });
    let mut serve = |params: &Value, entropy: u8| {
        let message = world.request("tools/call", params.clone()).to_string();
        let now = Timestamp::from_unix_millis(START);
        let env = RoundEnv::new(now, Entropy::new([entropy; 32]), Principal::Authenticated(b"alice"));
        let mut out = Vec::new();
        let (exchange, state) = match server.receive(message.as_bytes(), env) {
            Received::Pending(exchange) => (exchange.either(), None),
            Received::Retrying(exchange) => {
                let state = exchange.state_json().map(|state| state.as_str().to_owned());
                (exchange.either(), state)
            }
            other => panic!("{other:?}"),
        };
        let asks = InputRequests::new().ask("sure", InputRequest::confirm("Sure?"));
        match state {
            None => {
                drop(exchange.require_json(asks, parsed(r#"{"step":[1]}"#), now, &mut out).expect("asked"))
            }
            Some(state) => {
                let result = format!(r#"{{"content":[],"structuredContent":{state}}}"#);
                drop(exchange.complete_output(&Output::from_json(parsed(&result)), &mut out));
            }
        }
        Reply(serde_json::from_slice(&out).expect("JSON"))
    };
    let asked = serve(&json!({"name": "t"}), 1);
    let retry = json!({"name": "t", "requestState": asked.state(), "inputResponses": {"sure": {"action": "decline"}}});
    assert_eq!(serve(&retry, 2).result()["structuredContent"], json!({"step": [1]}));
}

/// The same in an attempt: whoever hands over text or a value, the reply is the same to the byte.
#[test]
fn an_attempt_asks_with_a_state_as_text_or_as_a_value_g26() {
    let server = Server::new(config());
    let mut world = World::new(|_| async { Ok(Output::from_json(parsed("{}"))) });
    let message = world.request("tools/call", json!({"name": "t"})).to_string();
    let now = Timestamp::from_unix_millis(START);
    let ask = |text: bool, key: &str| {
        let env = RoundEnv::new(now, Entropy::new([7; 32]), Principal::Authenticated(b"alice"));
        let Received::Pending(exchange) = server.receive(message.as_bytes(), env) else { panic!("a call") };
        let (mut attempt, mut out) = (Attempt::new(exchange), Vec::new());
        assert!(matches!(attempt.poll(now, &mut out), Poll::Ready(AttemptEvent::Look)));
        let asks = InputRequests::new().ask(key, InputRequest::confirm("Sure?"));
        let asked = if text {
            attempt.require_json(asks, parsed(r#"{"step":[1]}"#), now)
        } else {
            attempt.require(asks, &json!({"step": [1]}), now)
        };
        assert!(matches!(attempt.poll(now, &mut out), Poll::Ready(AttemptEvent::Finished(_))));
        (asked, out)
    };
    assert_eq!(ask(true, "sure"), ask(false, "sure"));
    assert_eq!(ask(true, "sure").0, Ok(()));
    let (refused, out) = ask(true, "no key");
    assert!(matches!(refused, Err(RequireError::Fault(_))), "{refused:?}");
    assert_eq!((refused, out), ask(false, "no key"));
}
