//! The rules of replay, each trace through the public API: bytes in, bytes out, no runtime.

mod answers;
mod asking;
mod leaving;
mod values;

use futures::future;
use mrtr_core::{
    form::{Elicited, Field, Form},
    handler::{Ask, AskError, Ctx, RpcError, ToolResult},
};
use serde_json::Value;

type Result<T> = std::result::Result<T, RpcError>;

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

async fn both(ctx: Ctx) -> Result<ToolResult> {
    let (a, b) = (number(&ctx, "a"), number(&ctx, "b"));
    let (a, b) = future::join(a, b).await;
    Ok(ToolResult::text(format!("{} {}", shown(a), shown(b))))
}
