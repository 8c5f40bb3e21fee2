//! Whether a question was put to somebody before in the same exchange.
//!
//! What counts is what people see, whatever key it comes under: the message and the schema of a form, the
//! address of a url ask (G-32). `_meta`, `mode` and the order of members do not matter.

use alloc::{collections::BTreeMap, vec::Vec};

use sha2::{Digest as _, Sha256};

use super::input_required::Asked;
use crate::{
    jsonrpc::{Items, Json, JsonKind, Members},
    wire::{Action, AskKind, InputRequest},
};

/// Stands for the content of a question.
pub(super) type Mark = [u8; 32];

/// What somebody did with a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Verdict {
    /// The last time.
    pub(super) action: Action,
    /// How often it was dismissed since it was last accepted.
    pub(super) dismissed: u8,
}

impl Verdict {
    pub(super) const fn after(before: Option<Self>, action: Action) -> Self {
        let dismissed = match (action, before) {
            (Action::Cancel, Some(before)) => before.dismissed.saturating_add(1),
            (Action::Cancel, None) => 1,
            (Action::Decline, Some(before)) => before.dismissed,
            (Action::Accept, _) | (Action::Decline, None) => 0,
        };
        Self { action, dismissed }
    }
}

/// The mark of an elicitation; other asks are never refused, so they have none.
pub(super) fn mark(request: &InputRequest<'_>) -> Option<Mark> {
    let mut hash = Sha256::new();
    match request.kind() {
        AskKind::Form => {
            hash.update(b"form");
            hash.update(structural(request.params()?.get("message")?));
            hash.update(structural(request.requested_schema()?));
        }
        AskKind::Url => {
            hash.update(b"url");
            hash.update(structural(request.params()?.get("url")?));
        }
        AskKind::Sampling | AskKind::Roots => return None,
    }
    Some(hash.finalize().into())
}

/// Moves the asks of a finished round into the memory of the exchange.
pub(super) fn remember(past: &mut BTreeMap<Mark, Verdict>, asked: Vec<Asked>) {
    for ask in asked {
        let action = ask.answer.as_ref().and_then(|answer| answer.action);
        if let (Some(action), Some(mark)) = (action, mark(&ask.request)) {
            let verdict = Verdict::after(past.get(&mark).copied(), action);
            past.insert(mark, verdict);
        }
    }
}

// The seam to the crate's structural digest: this one function.
/// A digest of a JSON value that the order of members does not change. Numbers count by their text.
fn structural(json: Json<'_>) -> Mark {
    let mut open: Vec<Container<'_>> = Vec::new();
    let mut value = json;
    loop {
        let mut done = match value.kind() {
            JsonKind::Array => {
                open.extend(value.items().map(|items| Container::Array { items, inside: Sha256::new() }));
                None
            }
            JsonKind::Object => {
                open.extend(value.members().map(|members| Container::Object {
                    members,
                    name: [0; 32],
                    inside: Vec::new(),
                }));
                None
            }
            JsonKind::Null | JsonKind::Bool | JsonKind::Number | JsonKind::String => Some(scalar(value)),
        };
        loop {
            let Some(container) = open.last_mut() else { return done.unwrap_or_default() };
            if let Some(hash) = done.take() {
                container.add(hash);
            }
            if let Some(next) = container.next() {
                value = next;
                break;
            }
            done = open.pop().map(Container::close);
        }
    }
}

/// An array or object whose elements are being digested.
enum Container<'a> {
    Array { items: Items<'a>, inside: Sha256 },
    Object { members: Members<'a>, name: Mark, inside: Vec<(Mark, Mark)> },
}

impl<'a> Container<'a> {
    fn next(&mut self) -> Option<Json<'a>> {
        match self {
            Self::Array { items, .. } => items.next(),
            Self::Object { members, name, .. } => {
                let (found, value) = members.next()?;
                *name = Sha256::digest(found.as_bytes()).into();
                Some(value)
            }
        }
    }

    fn add(&mut self, hash: Mark) {
        match self {
            Self::Array { inside, .. } => inside.update(hash),
            Self::Object { name, inside, .. } => inside.push((*name, hash)),
        }
    }

    fn close(self) -> Mark {
        match self {
            Self::Array { inside, .. } => Sha256::new().chain_update(b"[").chain_update(inside.finalize()),
            Self::Object { mut inside, .. } => {
                inside.sort_unstable();
                inside.iter().fold(Sha256::new().chain_update(b"{"), |hash, (name, value)| {
                    hash.chain_update(name).chain_update(value)
                })
            }
        }
        .finalize()
        .into()
    }
}

fn scalar(value: Json<'_>) -> Mark {
    let hash = match value.as_string() {
        Some(text) => Sha256::new().chain_update(b"\"").chain_update(text.as_bytes()),
        None => Sha256::new().chain_update(b".").chain_update(value.as_str()),
    };
    hash.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Limits;

    fn of(text: &str) -> Mark {
        structural(Json::parse(text, &Limits::default()).unwrap())
    }

    #[test]
    fn order_of_members_and_spelling_of_strings_do_not_matter() {
        let same = [
            (r#"{"a":1,"b":[{"c":"\u00e9","d":null}]}"#, r#" { "b" : [ {"d":null, "c":"é"} ] , "a" : 1 } "#),
            (r#"{"\u0061":{}}"#, r#"{"a":{}}"#),
        ];
        for (one, other) in same {
            assert_eq!(of(one), of(other), "{one} {other}");
        }
    }

    #[test]
    fn everything_else_does() {
        let all = [
            "null",
            "true",
            "1",
            "\"1\"",
            "\"null\"",
            "[]",
            "{}",
            "[[]]",
            "[{}]",
            "{\"a\":[]}",
            "{\"a\":{}}",
            "[1,2]",
            "[2,1]",
            "[[1],2]",
            "[[1,2]]",
            "{\"a\":1,\"b\":2}",
            "{\"a\":2,\"b\":1}",
            "{\"a\":{\"b\":2}}",
            "\"\\ud800\"",
            "\"\"",
        ];
        for (at, one) in all.iter().enumerate() {
            for other in &all[at + 1..] {
                assert_ne!(of(one), of(other), "{one} {other}");
            }
        }
    }

    #[test]
    fn dismissals_are_counted_until_an_accept() {
        use Action::{Accept, Cancel, Decline};
        let after = |actions: &[Action]| {
            actions.iter().fold(None, |before, action| Some(Verdict::after(before, *action))).unwrap()
        };
        assert_eq!(after(&[Cancel, Cancel]), Verdict { action: Cancel, dismissed: 2 });
        assert_eq!(after(&[Cancel, Accept, Cancel]), Verdict { action: Cancel, dismissed: 1 });
        assert_eq!(after(&[Cancel, Decline]), Verdict { action: Decline, dismissed: 1 });
    }
}
