//! A round that is asked over a held connection: the run stays alive while its questions are out, and goes on
//! where it stands (design: legacy eras). The rules are those of a recorded round; what differs is that asks may
//! be withdrawn while they are out, and that an ask may end in ways no retry can express.

use alloc::{boxed::Box, sync::Arc, vec::Vec};

use super::{Answers, Fault, Resolution, Tape, Ticket, notes, slot::Slot};
use crate::{audit::Said, error::ErrorCode, journal::Verdict, wire::Requirement};

/// What became of one ask of a held round.
pub(crate) enum Held {
    /// An answer whose structure fits what was asked, JSON text: judged as in A5.
    Answer(Box<str>),
    /// The client answered with an error of its own.
    Refused(ErrorCode, Box<str>),
    /// What the client sent is no answer to such an ask; why.
    Malformed(Box<str>),
    /// Nobody can answer it any more.
    Ended,
}

/// What is to be done about asks that the peer's revision cannot express.
pub(crate) enum Unsayable {
    /// All of them were optional: they resolved to "unavailable", and the round was not sent after all.
    Settled(Vec<Ticket>),
    /// These are required.
    Required(Vec<Requirement>),
    /// The run goes on like this for ever.
    Fault(Fault),
}

impl Tape {
    /// Begins to wait for the round that [`Step::Send`](super::Step::Send) has just made. What the handler does
    /// meanwhile belongs to the next segment.
    pub(crate) fn await_held(&mut self) {
        self.segment = self.journal.rounds.len();
    }

    /// Ends the wait: every ask of the held round that is still wanted gets what became of it, all at once. What
    /// is not in `outcomes` stays open and is asked again, as is content that does not fit for the first times
    /// (A4). A checkpoint in the round is passed.
    pub(crate) fn release_held(&mut self, outcomes: Vec<(Arc<str>, Held)>) -> Vec<Ticket> {
        let index = self.journal.rounds.len().saturating_sub(1);
        let mut answers = Vec::new();
        let mut others = Vec::new();
        for (key, outcome) in outcomes {
            match outcome {
                Held::Answer(text) => answers.push((Box::from(&*key), text)),
                Held::Refused(code, message) => others.push((key, Resolution::Refused { code, message })),
                Held::Malformed(reason) => others.push((key, Resolution::Invalid(reason))),
                Held::Ended => others.push((key, Resolution::Ended)),
            }
        }
        self.segment = index;
        self.answers = Answers::LastRound(answers);
        let mut released = self.release();
        for (key, resolution) in others {
            if let Some((ticket, slot)) = self.slots.open_mut().find(|(_, slot)| is_open_as(slot, &key)) {
                let said = match &resolution {
                    Resolution::Refused { .. } => Some(Said::Refused),
                    Resolution::Invalid(_) => Some(Said::Invalid),
                    Resolution::Answer(_)
                    | Resolution::Passed
                    | Resolution::Unavailable
                    | Resolution::Ended => None,
                };
                if let (Some(notes), Some(said), Some(asked)) = (&mut self.notes, said, &slot.asked) {
                    notes::note_as(notes, &self.journal, asked, said);
                }
                slot.resolution = Some(resolution);
                slot.resolved_by = Some(index);
                released.push(ticket);
            }
        }
        released.sort_unstable();
        released
    }

    /// Whether the handler still wants the answer to the ask of this key.
    pub(crate) fn wants(&self, key: &str) -> bool {
        self.slots.open().any(|slot| is_open_as(slot, key))
    }

    /// Takes back the round that was just made, before it is held, because these asks of it cannot be said in the
    /// peer's revision: to the handler that is the same as a missing capability (A6, BT-5).
    pub(crate) fn unsayable(&mut self, keys: &[Arc<str>]) -> Unsayable {
        let is_one = |key: &str| keys.iter().any(|found| **found == *key);
        let of = |slot: &&Slot| slot.is_open() && slot.asked.as_ref().is_some_and(|asked| is_one(&asked.key));
        let required: Vec<Requirement> = self
            .slots
            .values()
            .filter(of)
            .filter(|slot| !slot.optional)
            .filter_map(Slot::requirement)
            .collect();
        if !required.is_empty() {
            return Unsayable::Required(required);
        }
        if let Some(mut round) = self.journal.rounds.pop() {
            round.silent = true;
            round.checkpoint = false;
            for asked in round.asks.iter_mut().filter(|asked| is_one(&asked.key)) {
                asked.verdict = Verdict::Unavailable;
                if let Some(notes) = &mut self.notes {
                    notes::note(notes, &self.journal, asked);
                }
            }
            self.journal.rounds.push(round);
        }
        if self.is_endless() {
            return Unsayable::Fault(Fault::Endless);
        }
        Unsayable::Settled(self.release())
    }
}

fn is_open_as(slot: &Slot, key: &str) -> bool {
    slot.is_open() && slot.asked.as_ref().is_some_and(|asked| &*asked.key == key)
}
