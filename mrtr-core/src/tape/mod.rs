//! The tape: a journal while it is replayed (rules A1…A12). No futures here: Rust handlers and JavaScript
//! handlers drive the same one.
//!
//! A handler runs from its start on every request. Whatever drives it tells the tape what happens —
//! [`register`](Tape::register) when the handler asks, [`take`](Tape::take) when it waits for the answer,
//! [`withdraw`](Tape::withdraw) when it no longer wants it — and, when the handler can get no further, calls
//! [`step`](Tape::step), which says what to do:
//!
//! ```text
//!                         ┌────────────── Released: go on running the handler
//!  handler is pending ──▶ step ─────────── Wait: something else must happen first (only with a runtime)
//!                         ├────────────── Send: these asks go out, the attempt is over
//!                         └────────────── Missing · Fault: the request ends with an error
//!  handler returned ────▶ finish ───────── Return · Send · Missing · Fault
//! ```
//!
//! Answers are released **round by round**: a replayed round ends exactly where the recorded one did, so a
//! handler meets its answers in the order in which it met them before. A map from key to answer cannot do
//! that, and most handlers that join or select leave their path under one.

mod fault;
#[cfg(feature = "std")]
pub(crate) mod held;
mod hold;
mod live;
mod names;
mod notes;
mod once;
pub(crate) mod replay;
mod slot;

use alloc::{boxed::Box, string::String, sync::Arc, vec::Vec};
use core::time::Duration;

pub use fault::Fault;
pub(crate) use live::check_form;
pub use notes::Note;
#[cfg(feature = "std")]
pub(crate) use once::OnceValues;
pub(crate) use once::TICKETS;
pub(crate) use slot::key_is_valid;
#[cfg(feature = "std")]
pub(crate) use slot::never_early;
pub use slot::{AskSpec, Outgoing, OutgoingAsk, Resolution, Ticket};

use crate::{
    journal::{Divergence, Journal},
    jsonrpc::Json,
    limits::Limits,
    seal::ExchangeId,
    time::Timestamp,
    wire::{ClientCapabilities, InputRequest},
};
use names::{OnceNames, ValueNames};
use slot::{Slot, Slots, Uses};

/// What to do when a run leaves the recorded path (A8).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnDivergence {
    /// Go on from the round that differs: keep the answers whose question is the same, ask the rest again.
    #[default]
    AskAgain,
    /// `-32603`, with both sides in the log. For tests and strict services.
    Fail,
}

/// What to do with once-values that were made after a divergence (A8).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum AfterEffects {
    /// `-32603`: something has been done that this run does not know of.
    #[default]
    Refuse,
    /// Keep them: the same name and use gives the same value on the new path.
    Keep,
    /// Forget them: they are made again.
    Drop,
}

/// How a tape behaves; part of a server's configuration.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TapePolicy {
    /// On a divergence.
    pub divergence: OnDivergence,
    /// On once-values behind a divergence.
    pub after_effects: AfterEffects,
    /// With a runtime: how long a replayed round may stay short of its recorded asks while the handler waits
    /// for something else (A3). Default 2 s.
    pub replay_patience: Duration,
    /// With a runtime: how long a retry is held whose url was consented to while what is behind it is not done
    /// (A10, G-32). Default 25 s; zero never holds.
    pub hold_urls: Duration,
    /// How often it is looked at while it is held. Default 1 s.
    pub look_interval: Duration,
    /// With a runtime: how long a checkpoint is held before it is sent alone, for whatever else the handler waits
    /// for (A10). Default zero.
    pub hold_checkpoints: Duration,
}

impl Default for TapePolicy {
    fn default() -> Self {
        Self {
            divergence: OnDivergence::default(),
            after_effects: AfterEffects::default(),
            replay_patience: Duration::from_secs(2),
            hold_urls: Duration::from_secs(25),
            look_interval: Duration::from_secs(1),
            hold_checkpoints: Duration::ZERO,
        }
    }
}

/// Whether something besides answers can wake the handler (A2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums)]
pub enum Drive {
    /// Nobody else: pending without an open ask is a stall, and a recorded round must match exactly.
    Alone,
    /// A runtime: I/O beside an ask is plain waiting, and early further asks are benign (A3).
    Runtime,
}

/// What [`Tape::step`] wants.
#[derive(Debug)]
#[non_exhaustive]
pub enum Step {
    /// These asks have their answers now, or are to be looked at (A10): wake whoever waits for them and run the
    /// handler again. May be empty: then call `step` again at once, nothing changed for the handler.
    Released(Vec<Ticket>),
    /// Not blocked on asks: run the handler when it wakes. With a time: call `step` again then at the latest.
    Wait(Option<Timestamp>),
    /// The attempt is over: seal [`Tape::journal`] and send these asks.
    Send(Outgoing),
    /// The attempt is over: `-32021` with this `data`, JSON text (A6).
    Missing(String),
    /// The attempt is over.
    Fault(Fault),
}

/// What [`Tape::finish`] wants.
#[derive(Debug)]
#[non_exhaustive]
pub enum Finish {
    /// What the handler returned is the outcome.
    Return,
    /// A fresh ask decides the outcome, whatever was returned (A9 b).
    Send(Outgoing),
    /// As in [`Step::Missing`].
    Missing(String),
    /// As in [`Step::Fault`].
    Fault(Fault),
}

/// The answers that came with the request in hand.
#[derive(Clone, Default)]
#[non_exhaustive]
pub enum Answers {
    /// None, or all of them used up.
    #[default]
    None,
    /// With a state: to the asks of the last recorded round, already checked for structure (A5). Key and
    /// JSON text.
    LastRound(Vec<(Box<str>, Box<str>)>),
    /// Without a state: for asks that allow it (A7). Key and JSON text.
    Early(Vec<(Box<str>, Box<str>)>),
}

impl Answers {
    /// The answers to the last recorded round, once; anything else stays.
    fn take_last_round(&mut self) -> Option<Vec<(Box<str>, Box<str>)>> {
        match self {
            Self::LastRound(answers) => {
                let answers = core::mem::take(answers);
                *self = Self::None;
                Some(answers)
            }
            Self::None | Self::Early(_) => None,
        }
    }
}

impl core::fmt::Debug for Answers {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::None => f.write_str("None"),
            Self::LastRound(list) => write!(f, "LastRound({})", list.len()),
            Self::Early(list) => write!(f, "Early({})", list.len()),
        }
    }
}

/// A journal while it is replayed; see the [module](self).
#[derive(Debug)]
pub struct Tape {
    exchange: ExchangeId,
    journal: Journal,
    /// Rounds released so far: the index of the segment that runs now.
    segment: usize,
    uses: Uses,
    slots: Slots,
    next_ticket: u32,
    answers: Answers,
    capabilities: ClientCapabilities,
    policy: TapePolicy,
    limits: Limits,
    deadline: Timestamp,
    /// Since when a replayed round has been short of asks.
    short_since: Option<Timestamp>,
    /// Since when the request in hand is held, and when an errand is looked at again (A10).
    held_since: Option<Timestamp>,
    look_at: Option<Timestamp>,
    /// The attempt is over: what is asked from now on ends at once.
    ended: bool,
    /// No ask can be answered any more.
    closed: bool,
    /// What became of asks in this run, if somebody wants to know.
    notes: Option<Vec<Note>>,
    /// Where the journal's once-values stand, and how often each name has been used in this run.
    once: OnceNames,
    /// Where its named values stand, and which have been read in this run.
    values: ValueNames,
    /// A misuse seen at a call that cannot return it; ends the attempt at the next step.
    misuse: Option<Fault>,
    diverged: Vec<Divergence>,
    /// Under `Fail`: what was open when the run left its path, for a report that shows it.
    left_with: Vec<(Arc<str>, InputRequest<'static>)>,
}

/// What a tape is made of.
#[derive(Debug)]
#[non_exhaustive]
pub struct TapeSetup {
    /// The exchange.
    pub exchange: ExchangeId,
    /// What is recorded.
    pub journal: Journal,
    /// What came with the request.
    pub answers: Answers,
    /// What the request in hand declared (R-108).
    pub capabilities: ClientCapabilities,
    /// How to behave.
    pub policy: TapePolicy,
    /// The bounds.
    pub limits: Limits,
    /// When the exchange must be over.
    pub deadline: Timestamp,
    /// Whether to keep [notes](Tape::take_notes).
    pub noting: bool,
}

impl TapeSetup {
    /// Everything a tape needs.
    #[must_use]
    pub fn new(exchange: ExchangeId, journal: Journal, deadline: Timestamp) -> Self {
        Self {
            exchange,
            journal,
            answers: Answers::None,
            capabilities: ClientCapabilities::default(),
            policy: TapePolicy::default(),
            limits: Limits::default(),
            deadline,
            noting: false,
        }
    }
}

impl Tape {
    /// A tape at its beginning.
    #[must_use]
    pub fn new(setup: TapeSetup) -> Self {
        // What was asked before is about to be asked again, and one ask more.
        let asks = setup.journal.rounds.iter().map(|round| round.asks.len()).sum::<usize>() + 1;
        Self {
            once: OnceNames::of(&setup.journal.once),
            values: ValueNames::of(&setup.journal.values),
            exchange: setup.exchange,
            journal: setup.journal,
            segment: 0,
            uses: Uses::default(),
            slots: Slots::with_capacity(asks),
            next_ticket: 0,
            answers: setup.answers,
            capabilities: setup.capabilities,
            policy: setup.policy,
            limits: setup.limits,
            deadline: setup.deadline,
            short_since: None,
            held_since: None,
            look_at: None,
            ended: false,
            closed: false,
            notes: setup.noting.then(Vec::new),
            misuse: None,
            diverged: Vec::new(),
            left_with: Vec::new(),
        }
    }

    /// Whether recorded rounds are still to come: what runs now has run before. Logs and notifications wait
    /// for `false`.
    #[must_use]
    pub fn is_replaying(&self) -> bool {
        self.segment < self.journal.rounds.len()
    }

    /// The journal as it stands.
    #[must_use]
    pub const fn journal(&self) -> &Journal {
        &self.journal
    }

    /// Gives the journal back when the attempt is over.
    #[must_use]
    pub fn into_journal(self) -> Journal {
        self.journal
    }

    /// Takes the journal out when the attempt is over and the tape stays shared with detached futures.
    #[cfg(feature = "std")]
    pub(crate) fn take_journal(&mut self) -> Journal {
        let started = self.journal.started;
        core::mem::replace(&mut self.journal, Journal::new(started))
    }

    /// The divergences of this run, oldest first.
    #[must_use]
    pub fn divergences(&self) -> &[Divergence] {
        &self.diverged
    }

    /// What was open when this run left its path; only under [`OnDivergence::Fail`].
    #[cfg(feature = "std")]
    pub(crate) fn left_with(&self) -> impl Iterator<Item = (&str, &InputRequest<'static>)> {
        self.left_with.iter().map(|(key, request)| (&**key, request))
    }

    /// Hands in answers to the round that [`Step::Send`] just made, for a peer that is asked over a held
    /// connection: `step` then releases it as if it had been recorded.
    pub fn answer(&mut self, answers: Vec<(Box<str>, Box<str>)>) {
        self.answers = Answers::LastRound(answers);
    }

    /// Ends the attempt for asks that are still alive somewhere: they resolve with
    /// [`Resolution::Ended`], and so will those that are still to come. Gives their tickets, to be woken.
    pub fn end(&mut self) -> Vec<Ticket> {
        self.ended = true;
        self.close()
    }

    /// The handler has succeeded: what its commit asks has nobody to answer it (A12), and resolves as after the
    /// [end](Self::end).
    pub(crate) fn close(&mut self) -> Vec<Ticket> {
        self.closed = true;
        self.slots.open_mut().filter_map(|(ticket, slot)| slot.end().then_some(ticket)).collect()
    }

    /// Whether the attempt is over: nothing may be sent for it any more (R-064).
    #[must_use]
    pub const fn has_ended(&self) -> bool {
        self.ended
    }

    /// What the handler can do no further without (A2…A8). `now` is only used for patience and deadlines.
    pub fn step(&mut self, drive: Drive, now: Timestamp) -> Step {
        if let Some(fault) = self.misuse.take() {
            return Step::Fault(fault);
        }
        if !self.slots.open().any(Slot::blocks) {
            return match drive {
                Drive::Alone => Step::Fault(Fault::Stalled),
                Drive::Runtime => Step::Wait(None),
            };
        }
        if self.is_replaying() { self.replay_step(drive, now) } else { self.live_step(drive, now) }
    }

    /// The handler has returned (A9).
    pub fn finish(&mut self, now: Timestamp) -> Finish {
        if let Some(fault) = self.misuse.take() {
            return Finish::Fault(fault);
        }
        if let Some(fault) = self.unheeded_mark() {
            return Finish::Fault(fault);
        }
        if self.is_replaying() {
            return match self.finished_early() {
                Ok(()) => Finish::Return,
                Err(fault) => Finish::Fault(fault),
            };
        }
        self.fresh_step(now)
    }
}

/// Reads a `{key: answer}` object into owned pairs, at most `limit` of them.
pub(crate) fn owned_answers(responses: Json<'_>, limit: usize) -> Vec<(Box<str>, Box<str>)> {
    let members = responses.members().into_iter().flatten().take(limit);
    members.map(|(key, value)| (key.into(), value.as_str().into())).collect()
}
