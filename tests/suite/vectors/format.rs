//! The files of `tests/vectors/exchanges`, read strictly: a misspelt member is an error, not a check less.

use std::{collections::BTreeMap, fs, path::Path};

use serde::Deserialize;
use serde_json::Value;

/// One file. Its `steps` are read by role.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Exchange {
    pub(super) title: String,
    pub(super) rules: Vec<String>,
    pub(super) role: Role,
    pub(super) fixture: String,
    /// `null`: requests are sent as written.
    pub(super) capabilities: Value,
    #[serde(default)]
    pub(super) known_tools: Vec<Value>,
    #[serde(default)]
    pub(super) principal: Option<String>,
    pub(super) steps: Vec<Value>,
}

#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Role {
    Server,
    Client,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ServerStep {
    #[serde(default)]
    pub(super) event: Option<String>,
    #[serde(default)]
    pub(super) later: u64,
    #[serde(default)]
    pub(super) principal: Option<String>,
    pub(super) send: Value,
    #[serde(default)]
    pub(super) capabilities: Option<Value>,
    #[serde(default)]
    pub(super) headers: Option<BTreeMap<String, String>>,
    #[serde(default = "ok")]
    pub(super) status: u16,
    /// `null`: no reply.
    pub(super) expect: Value,
    #[serde(default)]
    pub(super) capture: BTreeMap<String, String>,
    #[serde(default)]
    pub(super) absent: Vec<String>,
    #[serde(default)]
    pub(super) exact: Vec<String>,
}

const fn ok() -> u16 {
    200
}

/// What happens to a call of the client, and what it must come to.
#[derive(Debug, Clone)]
pub(super) struct ClientStep {
    pub(super) call: String,
    pub(super) later: u64,
    pub(super) action: Action,
    pub(super) outcome: Outcome,
}

#[derive(Debug, Clone)]
pub(super) enum Action {
    Start { method: String, params: Value },
    Receive { status: u16, message: Value },
    Proceed { answers: Value },
}

#[derive(Debug, Clone)]
pub(super) enum Outcome {
    Request(Request),
    Asks(Vec<String>),
    Pause,
    Complete(Value),
    Refused(Value),
    Invalid,
}

#[derive(Debug, Clone)]
pub(super) struct Request {
    pub(super) expect: Value,
    pub(super) headers: BTreeMap<String, Option<String>>,
    pub(super) capture: BTreeMap<String, String>,
    pub(super) absent: Vec<String>,
    pub(super) exact: Vec<String>,
}

/// A client step as it is written; [`ClientStep`] is what it means.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenStep {
    start: Option<String>,
    receive: Option<String>,
    proceed: Option<String>,
    method: Option<String>,
    params: Option<Value>,
    message: Option<Value>,
    #[serde(default = "ok")]
    status: u16,
    answers: Option<Value>,
    #[serde(default)]
    later: u64,
    expect: Option<Value>,
    #[serde(default)]
    headers: BTreeMap<String, Option<String>>,
    #[serde(default)]
    capture: BTreeMap<String, String>,
    #[serde(default)]
    absent: Vec<String>,
    #[serde(default)]
    exact: Vec<String>,
    asks: Option<Vec<String>>,
    #[serde(default)]
    pause: bool,
    complete: Option<Value>,
    refused: Option<Value>,
    #[serde(default)]
    invalid: bool,
}

impl Exchange {
    /// Reads an exchange, its steps included, so that a mistake in one is found here.
    pub(super) fn read(text: &str) -> Result<Self, String> {
        let exchange: Self = serde_json::from_str(text).map_err(|e| e.to_string())?;
        match exchange.role {
            Role::Server => exchange.server_steps().map(drop)?,
            Role::Client => exchange.client_steps().map(drop)?,
        }
        if exchange.steps.is_empty() || exchange.rules.is_empty() {
            return Err("an exchange has steps and rules".to_owned());
        }
        exchange.steps.iter().try_for_each(check_operators)?;
        Ok(exchange)
    }

    pub(super) fn server_steps(&self) -> Result<Vec<ServerStep>, String> {
        self.steps
            .iter()
            .map(|step| serde_json::from_value(step.clone()).map_err(|e| e.to_string()))
            .collect()
    }

    pub(super) fn client_steps(&self) -> Result<Vec<ClientStep>, String> {
        self.steps.iter().map(ClientStep::read).collect()
    }
}

impl ClientStep {
    fn read(step: &Value) -> Result<Self, String> {
        let w: WrittenStep = serde_json::from_value(step.clone()).map_err(|e| e.to_string())?;
        let wrong = |what: &str| Err(format!("{what}: {step}"));
        let (call, action) = match (w.start, w.receive, w.proceed, w.method, w.params, w.message, w.answers) {
            (Some(call), None, None, Some(method), Some(params), None, None) => {
                (call, Action::Start { method, params })
            }
            (None, Some(call), None, None, None, Some(message), None) => {
                (call, Action::Receive { status: w.status, message })
            }
            (None, None, Some(call), None, None, None, answers) => (
                call,
                Action::Proceed { answers: answers.unwrap_or_else(|| Value::Object(Default::default())) },
            ),
            _ => return wrong("a step starts, receives or proceeds, with what belongs to it"),
        };
        let claims =
            !(w.headers.is_empty() && w.capture.is_empty() && w.absent.is_empty() && w.exact.is_empty());
        let outcome = match (w.expect, w.asks, w.pause, w.complete, w.refused, w.invalid) {
            (Some(expect), None, false, None, None, false) => Outcome::Request(Request {
                expect,
                headers: w.headers,
                capture: w.capture,
                absent: w.absent,
                exact: w.exact,
            }),
            (None, Some(asks), false, None, None, false) if !claims => Outcome::Asks(asks),
            (None, None, true, None, None, false) if !claims => Outcome::Pause,
            (None, None, false, Some(result), None, false) if !claims => Outcome::Complete(result),
            (None, None, false, None, Some(error), false) if !claims => Outcome::Refused(error),
            (None, None, false, None, None, true) if !claims => Outcome::Invalid,
            _ => return wrong("a step has one outcome, with what belongs to it"),
        };
        let fits = match (&action, &outcome) {
            (Action::Receive { .. }, _) => true,
            (Action::Start { .. } | Action::Proceed { .. }, outcome) => {
                matches!(outcome, Outcome::Request(_))
            }
        };
        if fits {
            Ok(Self { call, later: w.later, action, outcome })
        } else {
            wrong("here a request must go out")
        }
    }
}

/// A member that begins with `$` is an operator, spelt right and alone where it must be, or `$schema`.
fn check_operators(value: &Value) -> Result<(), String> {
    match value {
        Value::Object(members) => {
            let known =
                super::pattern::operator(value).is_some() || value["$request_id"] == Value::Bool(true);
            if let Some(name) = members.keys().find(|name| name.starts_with('$') && *name != "$schema")
                && !known
            {
                return Err(format!("{name} is no operator here: {value}"));
            }
            members.values().try_for_each(check_operators)
        }
        Value::Array(items) => items.iter().try_for_each(check_operators),
        _ => Ok(()),
    }
}

/// Every exchange, by file name; panics with the file's name if one cannot be read.
pub(super) fn load() -> BTreeMap<String, Exchange> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("vectors/exchanges");
    let entries = fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    entries
        .map(|entry| {
            let path = entry.expect("a listed file").path();
            let text = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
            let exchange = Exchange::read(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
            (path.file_stem().expect("a file name").to_string_lossy().into_owned(), exchange)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exchange(role: &str, step: &str) -> Result<Exchange, String> {
        Exchange::read(&format!(
            r#"{{"title": "t", "rules": ["R-001"], "role": "{role}", "fixture": "f", "capabilities": {{}}, "steps": [{step}]}}"#
        ))
    }

    #[test]
    fn every_file_is_read() {
        let exchanges = load();
        assert!(exchanges.len() >= 30, "{} files", exchanges.len());
        let titles: std::collections::BTreeSet<_> =
            exchanges.values().map(|exchange| &exchange.title).collect();
        assert_eq!(titles.len(), exchanges.len(), "two files with one title");
        for (name, exchange) in &exchanges {
            let fixtures: &[&str] = match exchange.role {
                Role::Server => &["desk", "forms", "waiting"],
                Role::Client => &["caller"],
            };
            assert!(fixtures.contains(&exchange.fixture.as_str()), "{name}: fixture {:?}", exchange.fixture);
            assert!(
                exchange.role == Role::Client || exchange.known_tools.is_empty(),
                "{name}: tools a server knows"
            );
        }
    }

    #[test]
    fn mistakes_are_found_when_reading() {
        assert!(exchange("server", r#"{"send": {}, "expect": null}"#).is_ok());
        for (role, step) in [
            ("server", r#"{"send": {}}"#),
            ("server", r#"{"send": {}, "expect": null, "absnet": []}"#),
            ("server", r#"{"send": {"x": {"$capture": "s"}}, "expect": null}"#),
            ("server", r#"{"send": {"x": {"$captured": "s", "apend": "x"}}, "expect": null}"#),
            ("client", r#"{"start": "a", "method": "m", "params": {}, "pause": true}"#),
            ("client", r#"{"start": "a", "method": "m", "params": {}, "expect": {}, "complete": {}}"#),
            ("client", r#"{"receive": "a", "expect": {}}"#),
            ("client", r#"{"receive": "a", "message": {}, "asks": [], "absent": ["/x"]}"#),
            ("client", r#"{"start": "a", "proceed": "a", "expect": {}}"#),
            ("client", r#"{"proceed": "a", "invalid": true}"#),
        ] {
            assert!(exchange(role, step).is_err(), "{step}");
        }
        assert!(
            exchange(
                "client",
                r#"{"receive": "a", "message": {"id": {"$request_id": true}}, "pause": true}"#
            )
            .is_ok()
        );
    }
}
