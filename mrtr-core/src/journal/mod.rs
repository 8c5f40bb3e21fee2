//! The journal: what was asked and answered in an exchange, round by round. Plain data.
//!
//! It is what a sealed state carries. `codec` writes and reads it; the [tape](crate::tape) replays it.
//!
//! ```text
//! journal ── rounds ── asks ── verdict: open · answer · invalid n · unavailable · not yet
//!    │          └───── silent (never sent) · checkpoint · swallowed
//!    ├────── once-values by (name, use), with the segment that made them
//!    ├────── named values, the return-style state
//!    └────── started, number of divergences
//! ```

mod codec;
mod divergence;
#[cfg(test)]
mod tests;

use alloc::{boxed::Box, format, string::String, sync::Arc, vec::Vec};

pub use codec::CodecFault;
pub use divergence::{AskedBefore, Divergence, DivergenceKind};

use crate::{digest::Fingerprint, time::Timestamp, wire::AskKind};

/// An answer that fails validation this often is handed to the handler as a failure (A4, G-18).
pub const INVALID_ANSWERS: u8 = 3;

/// Rounds that were never sent: each settles at least one ask without a person. Far above what a handler
/// needs, low enough that one that loops over optional asks ends.
pub(crate) const SILENT_ROUNDS: usize = 256;

/// Everything an exchange has to remember between two requests.
///
/// `Debug` shows keys, kinds and counts; never an answer or a value.
#[derive(Clone, PartialEq, Eq)]
pub struct Journal {
    pub(crate) started: Timestamp,
    pub(crate) rounds: Vec<Round>,
    pub(crate) once: Vec<Once>,
    pub(crate) values: Vec<Named>,
    pub(crate) state: Option<Box<str>>,
    pub(crate) divergences: u8,
}

/// One round: the asks that were open when the handler blocked.
#[derive(Clone, PartialEq, Eq, Default)]
pub(crate) struct Round {
    /// In the order in which they were registered.
    pub(crate) asks: Vec<Asked>,
    /// Never sent: all its verdicts were known at once (A6, A7). Counts against no cap.
    pub(crate) silent: bool,
    /// A checkpoint was open in it (A10).
    pub(crate) checkpoint: bool,
    /// The handler had already returned when it was sent (A9 b).
    pub(crate) swallowed: bool,
}

/// One ask of a round and what became of it.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Asked {
    /// Shared with whoever else names the ask: it stands in every round until it is answered.
    pub(crate) key: Arc<str>,
    pub(crate) kind: AskKind,
    pub(crate) fingerprint: Fingerprint,
    pub(crate) verdict: Verdict,
}

/// What became of an ask in a round (A4). Once recorded it is sealed and never computed again (A5).
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// No usable answer: asked again under its old key.
    Open,
    /// Answered: the text that [`Recorded`] wrote.
    Answer(Arc<str>),
    /// Answered with content that does not fit, for the n-th time.
    Invalid { count: u8, reason: Box<str> },
    /// Optional, and the client cannot answer it (A6).
    Unavailable,
    /// A url whose errand is not done yet (A10).
    NotYet,
}

/// A value made once (A11).
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Once {
    pub(crate) name: Box<str>,
    /// Which use of the name in a run, from 0.
    pub(crate) nth: u32,
    /// How many rounds had been released when it was made.
    pub(crate) segment: u32,
    /// JSON text.
    pub(crate) value: Box<str>,
}

/// A named value (A11): memory across attempts, not part of the tape.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Named {
    pub(crate) name: Box<str>,
    /// JSON text.
    pub(crate) value: Box<str>,
}

impl Journal {
    /// The journal of an exchange that begins now.
    #[must_use]
    pub const fn new(started: Timestamp) -> Self {
        Self {
            started,
            rounds: Vec::new(),
            once: Vec::new(),
            values: Vec::new(),
            state: None,
            divergences: 0,
        }
    }

    /// When the exchange began, by the clock of the server that began it.
    #[must_use]
    pub const fn started(&self) -> Timestamp {
        self.started
    }

    /// Rounds that went out, questions or not.
    #[must_use]
    pub fn rounds_sent(&self) -> usize {
        self.rounds.iter().filter(|round| !round.silent).count()
    }

    /// Keys, kinds and whether answered, of every ask of every round, oldest first; for people who look into
    /// a state. No content.
    pub fn asks(&self) -> impl Iterator<Item = AskedBefore<'_>> {
        self.rounds.iter().enumerate().flat_map(|(round, data)| {
            data.asks.iter().map(move |asked| AskedBefore {
                round,
                key: &asked.key,
                kind: asked.kind,
                outcome: asked.verdict.name(),
                silent: data.silent,
            })
        })
    }

    /// The recorded answers: index of the round, key, and the JSON text of the answer as it stands on the wire, or of
    /// what was kept of it (A11); for people who look into a state and were allowed to see them.
    pub fn answers(&self) -> impl Iterator<Item = (usize, &str, String)> {
        self.rounds.iter().enumerate().flat_map(|(round, data)| {
            data.asks.iter().filter_map(move |asked| match &asked.verdict {
                Verdict::Answer(text) => Some((round, &*asked.key, on_the_wire(text))),
                Verdict::Open | Verdict::Invalid { .. } | Verdict::Unavailable | Verdict::NotYet => None,
            })
        })
    }

    /// The last round, if it was sent: the only one whose keys may be answered (A5).
    pub(crate) fn last_sent(&self) -> Option<&Round> {
        self.rounds.last().filter(|round| !round.silent)
    }

    /// How often the ask under this key was answered with content that did not fit.
    pub(crate) fn invalid_count(&self, key: &str) -> u8 {
        let asks = self.rounds.iter().flat_map(|round| &round.asks).filter(|asked| &*asked.key == key);
        let counts = asks.filter_map(|asked| match asked.verdict {
            Verdict::Invalid { count, .. } => Some(count),
            Verdict::Open | Verdict::Answer(_) | Verdict::Unavailable | Verdict::NotYet => None,
        });
        counts.max().unwrap_or(0)
    }
}

/// The text of an answer that was recorded as `a` with the content of a form, as `d`, `c`, as the array of the roots, as
/// the model's reply came, or as `k` with what was kept of it.
fn on_the_wire(recorded: &str) -> String {
    match (recorded.strip_prefix('a'), recorded) {
        (Some(""), _) => "{\"action\":\"accept\"}".into(),
        (Some(content), _) => format!("{{\"action\":\"accept\",\"content\":{content}}}"),
        (None, "d") => "{\"action\":\"decline\"}".into(),
        (None, "c") => "{\"action\":\"cancel\"}".into(),
        (None, other) if other.starts_with('k') => other.split_at(1).1.into(),
        (None, other) if other.starts_with('[') => format!("{{\"roots\":{other}}}"),
        (None, other) => other.into(),
    }
}

impl Verdict {
    pub(crate) const fn name(&self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Answer(_) => "answered",
            Self::Invalid { .. } => "invalid",
            Self::Unavailable => "unavailable",
            Self::NotYet => "not yet",
        }
    }

    /// Whether the ask stays open after its round is released (A4).
    pub(crate) const fn stays_open(&self) -> bool {
        match self {
            Self::Open | Self::NotYet => true,
            Self::Invalid { count, .. } => *count < INVALID_ANSWERS,
            Self::Answer(_) | Self::Unavailable => false,
        }
    }
}

impl Asked {
    /// Equal in key, kind and fingerprint: the same question (decision: an answer only ever answers the
    /// question that was asked).
    pub(crate) fn same_question(&self, other: &Self) -> bool {
        self.key == other.key && self.kind == other.kind && self.fingerprint == other.fingerprint
    }
}

impl core::fmt::Debug for Journal {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Journal")
            .field("started", &self.started)
            .field("rounds", &self.rounds)
            .field("once", &self.once.len())
            .field("values", &self.values.len())
            .field("divergences", &self.divergences)
            .finish_non_exhaustive()
    }
}

impl core::fmt::Debug for Round {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Round")
            .field("asks", &self.asks)
            .field("silent", &self.silent)
            .field("checkpoint", &self.checkpoint)
            .field("swallowed", &self.swallowed)
            .finish()
    }
}

impl core::fmt::Debug for Asked {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{} {} {}", self.key, self.kind, self.verdict.name())
    }
}
