//! Notes of what became of asks, for those who keep count: keys and outcomes, no content.

use alloc::{sync::Arc, vec::Vec};

use super::Tape;
use crate::{
    audit::Said,
    journal::{Asked, Journal, Verdict},
    wire::AskKind,
};

/// What became of one ask.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Note {
    /// The round that asked, from 1; the rounds sent so far for what was settled without one.
    pub round: u32,
    /// Its key on the wire.
    pub key: Arc<str>,
    /// Its kind.
    pub kind: AskKind,
    /// What was said.
    pub said: Said,
}

impl Tape {
    /// The notes of this run so far, oldest first. Empty unless [`TapeSetup::noting`](super::TapeSetup).
    pub fn take_notes(&mut self) -> Vec<Note> {
        self.notes.as_mut().map(core::mem::take).unwrap_or_default()
    }
}

/// Notes what became of an ask.
pub(super) fn note(notes: &mut Vec<Note>, journal: &Journal, asked: &Asked) {
    if let Some(said) = said(asked) {
        note_as(notes, journal, asked, said);
    }
}

/// Notes what was said to an ask in a way that no verdict has.
pub(super) fn note_as(notes: &mut Vec<Note>, journal: &Journal, asked: &Asked, said: Said) {
    let round = u32::try_from(journal.rounds_sent()).unwrap_or(u32::MAX);
    notes.push(Note { round, key: asked.key.clone(), kind: asked.kind, said });
}

/// What a verdict says, without content; `None` for an ask that is still open.
fn said(asked: &Asked) -> Option<Said> {
    Some(match (&asked.verdict, asked.kind) {
        (Verdict::Open, _) => return None,
        (Verdict::Answer(_), AskKind::Sampling | AskKind::Roots) => Said::Result,
        (Verdict::Answer(text), AskKind::Form | AskKind::Url) => match text.as_bytes().first() {
            Some(b'd') => Said::Decline,
            Some(b'c') => Said::Cancel,
            _ => Said::Accept,
        },
        (Verdict::Invalid { .. }, _) => Said::Invalid,
        (Verdict::Unavailable, _) => Said::Unavailable,
        (Verdict::NotYet, _) => Said::NotYet,
    })
}
