//! Whether a question was put to somebody before in the same exchange.
//!
//! What counts is what people see, whatever key it comes under: the message and the schema of a form, the
//! address of a url ask (G-32). `_meta`, `mode` and the order of members do not matter.

use alloc::{collections::BTreeMap, vec::Vec};

use sha2::{Digest as _, Sha256};

use super::input_required::Asked;
use crate::{
    digest,
    jsonrpc::Json,
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

/// The value's structural digest. What has none (a number of absurd size, a lone surrogate) counts by its text:
/// a server may ask it, and a person may refuse it.
fn structural(json: Json<'_>) -> Mark {
    digest::structural(json).unwrap_or_else(|_| Sha256::digest(json.as_str()).into())
}

#[cfg(test)]
mod tests {
    use super::*;
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
