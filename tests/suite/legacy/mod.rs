//! The legacy eras: sessions of 2025-11-25, 2025-06-18 and 2025-03-26, with virtual time and no runtime.

mod asks;
mod bounds;
mod calls;
mod driving;
mod http;
mod laws;
mod leaving;
mod notices;
mod opening;
mod random;
mod rounds;

use mrtr_core::{
    form::{Elicited, Field, Form},
    handler::{Ask, AskError, Ctx, RpcError, Service},
};
use mrtr_tests::{legacy::Client, world};
use serde_json::{Value, json};

type Result<T> = std::result::Result<T, RpcError>;

const NEWEST: &str = "2025-11-25";
const NARROW: &str = "2025-06-18";
const OLDEST: &str = "2025-03-26";

/// Everything a client of 2025-11-25 can declare.
fn all() -> Value {
    json!({"elicitation": {"form": {}, "url": {}}, "sampling": {"tools": {}, "context": {}}, "roots": {"listChanged": true}})
}

fn service<F, R, O>(handler: F) -> Service
where
    F: Fn(Ctx) -> R + Send + Sync + Clone + 'static,
    R: Future<Output = Result<O>> + Send + 'static,
    O: Into<mrtr_core::handler::Output> + 'static,
{
    world::service(world::config(), handler)
}

/// A client of 2025-11-25 that can answer everything.
fn client<F, R, O>(handler: F) -> Client
where
    F: Fn(Ctx) -> R + Send + Sync + Clone + 'static,
    R: Future<Output = Result<O>> + Send + 'static,
    O: Into<mrtr_core::handler::Output> + 'static,
{
    Client::new(service(handler), NEWEST, all())
}

/// A form of one integer `n` from 0 to 9.
fn form(message: &str) -> Form {
    Form::builder(message)
        .field(Field::integer("n").minimum(0).maximum(9).required())
        .build()
        .expect("a valid form")
}

fn number(ctx: &Ctx, key: &str) -> Ask<Elicited<Value>> {
    ctx.elicit(key, &form(key))
}

fn shown(answer: std::result::Result<Elicited<Value>, AskError>) -> String {
    match answer {
        Ok(Elicited::Accept(content)) => content["n"].to_string(),
        Ok(Elicited::Decline) => "declined".into(),
        Ok(Elicited::Cancel) => "cancelled".into(),
        Err(error) => format!("{error:?}"),
    }
}

fn n(value: i64) -> Value {
    json!({"action": "accept", "content": {"n": value}})
}
