//! How a client brought back a state, for tools that watch both sides: proxies, recorders, test kits (W-11).
//!
//! A server cannot know this: what it did not mint it only refuses.

use alloc::borrow::Cow;

use crate::{
    digest,
    jsonrpc::{Json, JsonKind},
    limits::Limits,
};

/// What became of the state of an interim result in the retry that answers it (R-089, R-090).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Echo {
    /// There was none, and none came.
    None,
    /// It came back as it was.
    Whole,
    /// It came back as something else.
    Changed(Change),
    /// It did not come back.
    Missing,
    /// One came although the last result had none.
    Invented,
    /// One of an earlier round came, whatever the last result had (B-22).
    Stale {
        /// Which one, counted from 0.
        round: usize,
    },
}

/// What was done to a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Change {
    /// It is no string any more: parsed, perhaps, or null.
    NotAString,
    /// White space around it is gone or new.
    Trimmed,
    /// It is cut short after so many characters.
    Cut {
        /// Characters that came back.
        after: usize,
    },
    /// It is the same JSON value, written anew.
    Rewritten,
    /// Something else, from this character on.
    At {
        /// Characters that are the same.
        same: usize,
    },
}

impl Echo {
    /// Compares. `issued` are the states of the results of one exchange so far, in their order, `None` for a result
    /// without one; `returned` is `requestState` of the retry to the last of them, if it has one. What counts is the
    /// string, not how it is escaped.
    ///
    /// ```
    /// use mrtr_core::{Limits, jsonrpc::Json, wire::{Change, Echo}};
    ///
    /// let returned = Json::parse(r#""eyJh""#, &Limits::default())?;
    /// assert_eq!(Echo::of(&[Some("eyJhIjoxfQ")], Some(returned)), Echo::Changed(Change::Cut { after: 4 }));
    /// assert_eq!(Echo::of(&[Some("eyJh"), None], Some(returned)), Echo::Stale { round: 0 });
    /// assert_eq!(Echo::of(&[None], Some(returned)), Echo::Invented);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn of(issued: &[Option<&str>], returned: Option<Json<'_>>) -> Self {
        let (last, earlier) = match issued.split_last() {
            Some((last, earlier)) => (*last, earlier),
            None => (None, issued),
        };
        let Some(returned) = returned else {
            return if last.is_some() { Self::Missing } else { Self::None };
        };
        let text = returned.as_string();
        if last.is_some() && text.as_deref() == last {
            return Self::Whole;
        }
        let stale = earlier.iter().rposition(|state| state.is_some() && *state == text.as_deref());
        match (stale, last) {
            (Some(round), _) => Self::Stale { round },
            (None, None) => Self::Invented,
            (None, Some(last)) => Self::Changed(Change::of(last, returned, text)),
        }
    }
}

impl Change {
    fn of(state: &str, returned: Json<'_>, text: Option<Cow<'_, str>>) -> Self {
        let Some(text) = text else {
            // The very text of it, unquoted: it was parsed on the way.
            let parsed = returned.kind() != JsonKind::String && same_value(state, returned.as_str());
            return if parsed { Self::Rewritten } else { Self::NotAString };
        };
        if text.trim() == state.trim() {
            return Self::Trimmed;
        }
        if same_value(state, &text) {
            return Self::Rewritten;
        }
        let same = state.chars().zip(text.chars()).take_while(|(one, other)| one == other).count();
        if state.starts_with(&*text) { Self::Cut { after: same } } else { Self::At { same } }
    }
}

fn same_value(one: &str, other: &str) -> bool {
    let limits = Limits::default();
    let digest = |text| Json::parse(text, &limits).ok().and_then(|json| digest::structural(json).ok());
    digest(one).is_some_and(|one| Some(one) == digest(other))
}
