//! Runs an exchange against a server.

use core::time::Duration;

use mrtr_core::Timestamp;
use serde_json::{Value, json};

use super::{
    Failure,
    format::{Exchange, ServerStep},
    pattern::{Captures, Claims, fill},
};

/// When every exchange begins. Any moment will do; this one makes failures the same from run to run.
pub(super) const START: Timestamp = Timestamp::from_unix_millis(1_785_000_000_000);

const VERSION: &str = "2026-07-28";

/// A server under test, with the fixture that the exchange names.
pub(super) trait Party {
    /// Sends one request: headers as on HTTP, who calls (`None`: nobody is logged in) and when.
    /// Gives the HTTP status and the reply, if there is one.
    fn send(
        &mut self,
        message: &Value,
        headers: &[(String, String)],
        principal: Option<&str>,
        now: Timestamp,
    ) -> (u16, Option<Value>);

    /// Something happens in the world that the fixture knows by this name.
    fn happen(&mut self, event: &str);
}

/// Goes through all steps; the first expectation that is not met is the failure.
pub(super) fn run(exchange: &Exchange, party: &mut dyn Party) -> Result<(), Failure> {
    let failure = |step: usize, why: String| Failure { title: exchange.title.clone(), step, why };
    let steps = exchange.server_steps().map_err(|why| failure(0, why))?;
    let (mut now, mut captures) = (START, Captures::new());
    for (index, step) in steps.iter().enumerate() {
        now = now.saturating_add(Duration::from_secs(step.later));
        take(exchange, step, party, now, &mut captures).map_err(|why| failure(index, why))?;
    }
    Ok(())
}

fn take(
    exchange: &Exchange,
    step: &ServerStep,
    party: &mut dyn Party,
    now: Timestamp,
    captures: &mut Captures,
) -> Result<(), String> {
    if let Some(event) = &step.event {
        party.happen(event);
    }
    let mut message = fill(&step.send, captures)?;
    add_metadata(&mut message, step.capabilities.as_ref().unwrap_or(&exchange.capabilities));
    let headers = match &step.headers {
        Some(headers) => headers.iter().map(|(name, value)| (name.clone(), value.clone())).collect(),
        None => headers_of(&message),
    };
    let principal = step.principal.as_deref().or(exchange.principal.as_deref());
    let (status, reply) = party.send(&message, &headers, principal, now);

    let shown = |reply: &Option<Value>| reply.as_ref().map_or("nothing".to_owned(), Value::to_string);
    if status != step.status {
        return Err(format!("expected status {}, found {status} with {}", step.status, shown(&reply)));
    }
    let claims = Claims { capture: &step.capture, absent: &step.absent, exact: &step.exact };
    match (&step.expect, &reply) {
        (Value::Null, None) => Ok(()),
        (expected, Some(actual)) if !expected.is_null() => {
            claims.check(expected, actual, captures).map_err(|why| format!("{why}\n  in {actual}"))
        }
        (expected, reply) => Err(format!("expected {expected}, found {}", shown(reply))),
    }
}

/// The members that every modern request carries, unless the exchange writes its own.
fn add_metadata(message: &mut Value, capabilities: &Value) {
    if capabilities.is_null() {
        return;
    }
    if let Some(params) = message.get_mut("params").and_then(Value::as_object_mut) {
        params.entry("_meta").or_insert_with(|| {
            json!({
                "io.modelcontextprotocol/protocolVersion": VERSION,
                "io.modelcontextprotocol/clientInfo": {"name": "vectors", "version": "1"},
                "io.modelcontextprotocol/clientCapabilities": capabilities,
            })
        });
    }
}

/// The headers that follow from a body.
fn headers_of(message: &Value) -> Vec<(String, String)> {
    let mut headers = vec![("MCP-Protocol-Version".to_owned(), VERSION.to_owned())];
    let method = message["method"].as_str().unwrap_or_default();
    headers.push(("Mcp-Method".to_owned(), method.to_owned()));
    let target = match method {
        "tools/call" | "prompts/get" => message["params"]["name"].as_str(),
        "resources/read" => message["params"]["uri"].as_str(),
        _ => None,
    };
    headers.extend(target.map(|target| ("Mcp-Name".to_owned(), target.to_owned())));
    headers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_is_added_where_none_is_written() {
        let mut message = json!({"params": {}});
        add_metadata(&mut message, &json!({"roots": {}}));
        assert_eq!(
            message["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"],
            json!({"roots": {}})
        );
        let written = json!({"params": {"_meta": {"x": 1}}});
        for (before, capabilities) in [(written, json!({})), (json!({"params": {}}), Value::Null)] {
            let mut after = before.clone();
            add_metadata(&mut after, &capabilities);
            assert_eq!(after, before);
        }
    }

    #[test]
    fn headers_follow_from_the_body() {
        let headers =
            headers_of(&json!({"method": "resources/read", "params": {"uri": "x://y", "name": "n"}}));
        let expected =
            [("MCP-Protocol-Version", VERSION), ("Mcp-Method", "resources/read"), ("Mcp-Name", "x://y")];
        assert_eq!(headers, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
        assert_eq!(headers_of(&json!({"method": "tools/list", "params": {"name": "n"}})).len(), 2);
    }
}
