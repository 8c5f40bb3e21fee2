//! The inbox's doors, for whoever answers questions that hosts cannot show: a socket in the file system that only its
//! owner can open, or an address on this machine and a token.

mod loopback;
mod socket;
mod token;

use mrtr_core::{
    Limits, Timestamp,
    bridge::{Bridge as Core, InboxAnswer, InboxId},
    jsonrpc::Json,
};
use serde_json::{Value, json};
use tokio::sync::oneshot;

pub(super) use self::{loopback::serve as serve_loopback, socket::serve};
pub use self::{
    socket::bind_inbox,
    token::{InboxToken, TokenError},
};
use super::{Bridge, driver::In};

/// Hands a request to the bridge; nothing if it has ended. `by` is who makes it, for the record.
async fn ask(bridge: &Bridge, line: Vec<u8>, by: &str) -> Option<String> {
    let (done, reply) = oneshot::channel();
    bridge.tell(In::Inbox { line, by: by.into(), done });
    reply.await.ok()
}

/// The reply to a line.
pub(super) fn reply(bridge: &mut Core, line: &[u8], by: &str, now: Timestamp) -> String {
    let done = handle(bridge, line, by, now).unwrap_or_else(|error| json!({"error": error}));
    done.to_string()
}

fn handle(bridge: &mut Core, line: &[u8], by: &str, now: Timestamp) -> Result<Value, String> {
    let text = std::str::from_utf8(line).map_err(|_| "not UTF-8")?;
    let request = Json::parse(text.trim(), &Limits::default()).map_err(|_| "not JSON")?;
    let op = request.get("op").and_then(Json::as_string);
    let id = || {
        let id = request.get("id").and_then(|id| id.as_str().parse().ok());
        id.map(InboxId).ok_or_else(|| String::from("`id` is missing or no number"))
    };
    let done = |answer: InboxAnswer| {
        tracing::info!(id = answer.id.0, by = %answer.by, accepted = answer.accepted, "a question in the inbox was answered");
        json!({"answered": answer.id.0, "accepted": answer.accepted})
    };
    match op.as_deref() {
        Some("list") => Ok(json!({"entries": entries(bridge)})),
        Some("answer") => {
            let answer = request.get("answer").ok_or("`answer` is missing")?;
            bridge.answer_inbox(id()?, by, answer, now).map(done).map_err(|error| error.to_string())
        }
        Some("decline") => bridge.decline_inbox(id()?, by, now).map(done).map_err(|error| error.to_string()),
        _ => Err(String::from("`op` is not list, answer or decline")),
    }
}

fn entries(bridge: &Core) -> Vec<Value> {
    let entry = |entry: mrtr_core::bridge::InboxEntry<'_>| {
        let principal = match entry.principal {
            mrtr_core::seal::Principal::Anonymous => Value::Null,
            mrtr_core::seal::Principal::Authenticated(name) => String::from_utf8_lossy(name).into(),
        };
        json!({
            "id": entry.id.0,
            "principal": principal,
            "upstream": entry.upstream,
            "target": entry.target,
            "kind": entry.kind.to_string(),
            "created": entry.created.as_unix_millis(),
            "expires": entry.expires.as_unix_millis(),
            "question": serde_json::from_str::<Value>(entry.question).unwrap_or_default(),
        })
    };
    bridge.inbox().map(entry).collect()
}
