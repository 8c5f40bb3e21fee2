//! What differed when a handler asked other questions than it had asked before (A8), in words.

use alloc::{string::String, vec::Vec};
use core::fmt;

use super::Asked;
use crate::wire::AskKind;

/// An ask as a journal remembers it, without content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AskedBefore<'a> {
    /// Index of the round, silent ones counted.
    pub round: usize,
    /// Its key.
    pub key: &'a str,
    /// Its kind.
    pub kind: AskKind,
    /// `open`, `answered`, `invalid`, `unavailable` or `not yet`.
    pub outcome: &'static str,
    /// The round was never sent.
    pub silent: bool,
}

/// How a run left the path that its journal records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DivergenceKind {
    /// Other questions were open where a recorded round ended.
    OtherQuestions,
    /// The handler returned although rounds are recorded that it did not reach.
    FinishedEarly,
}

/// A divergence: recorded and replayed asks of one round, for the log and for tests. Keys and kinds only.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Divergence {
    /// What kind.
    pub kind: DivergenceKind,
    /// Index of the round, silent ones counted.
    pub round: usize,
    /// Keys that were recorded and not asked now.
    pub missing: Vec<String>,
    /// Keys that were asked now and not recorded.
    pub added: Vec<String>,
    /// Keys asked both times, with another question.
    pub changed: Vec<String>,
    /// Named values that the run had read: a handler that decides by one whether to ask will diverge (A11).
    pub values_read: Vec<String>,
    /// How many divergences this exchange has had, this one counted.
    pub count: u8,
}

impl Divergence {
    pub(crate) fn new(
        kind: DivergenceKind,
        round: usize,
        recorded: &[Asked],
        replayed: &[Asked],
        values_read: Vec<String>,
        count: u8,
    ) -> Self {
        let keys = |from: &[Asked], keep: &dyn Fn(&Asked) -> bool| {
            from.iter().filter(|asked| keep(asked)).map(|asked| String::from(&*asked.key)).collect::<Vec<_>>()
        };
        let other = |list: &[Asked], asked: &Asked| list.iter().any(|found| found.key == asked.key);
        Self {
            kind,
            round,
            missing: keys(recorded, &|asked| !other(replayed, asked)),
            added: keys(replayed, &|asked| !other(recorded, asked)),
            changed: keys(replayed, &|asked| {
                recorded.iter().any(|found| found.key == asked.key && !found.same_question(asked))
            }),
            values_read,
            count,
        }
    }
}

impl fmt::Display for Divergence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            DivergenceKind::OtherQuestions => {
                write!(f, "round {}: the handler asks other questions than before", self.round)?
            }
            DivergenceKind::FinishedEarly => {
                write!(f, "round {}: the handler returned before its recorded rounds were over", self.round)?
            }
        }
        for (sign, keys) in [("-", &self.missing), ("+", &self.added), ("~", &self.changed)] {
            for key in keys {
                write!(f, " {sign}{key}")?;
            }
        }
        if !self.values_read.is_empty() {
            write!(f, "; it had read the values")?;
            for name in &self.values_read {
                write!(f, " {name}")?;
            }
        }
        Ok(())
    }
}
