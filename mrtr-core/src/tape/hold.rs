//! Holding a request before its questions go out: an errand behind a url that is not done yet, a checkpoint (A10).
//!
//! Consent to open a url is not completion (R-137). An ask that waits for more than consent
//! ([`wait_for_errand`](Tape::wait_for_errand)) takes an accept as *not yet* and begins an errand:
//!
//! ```text
//!            accept             look            looked(true)
//!   Idle ───────────────▶ Due ─────────▶ Looking ───────────▶ Done ──▶ a silent round with the answer
//!    ▲                     ▲                │ looked(false)
//!    │ the hold is over    └── later ─── NotDone
//!    └── the same key is asked again
//! ```
//!
//! Only an accept in the request in hand begins one, so nothing is looked up again on replay. That the answer gets
//! a round of its own keeps it behind whatever was released with the consent, as it was when it came.

use alloc::vec::Vec;

use super::{Drive, Fault, Step, Tape, Ticket};
use crate::{
    journal::{Round, Verdict},
    time::Timestamp,
    wire::AskKind,
};

/// How far an errand behind a url is, in this run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Errand {
    #[default]
    Idle,
    Due,
    Looking,
    NotDone,
    Done,
}

impl Tape {
    /// This url ask wants more than consent: what is behind the url must be done (R-137, A10). A fault of the
    /// handler for any other kind.
    pub fn wait_for_errand(&mut self, ticket: Ticket) {
        let Some(slot) = self.slots.get_mut(ticket.0) else { return };
        match &slot.asked {
            Some(asked) if asked.kind == AskKind::Url => slot.waits = true,
            asked => {
                let key = asked.as_ref().map_or("", |asked| &asked.key).into();
                self.misuse.get_or_insert(Fault::NotAUrl(key));
            }
        }
    }

    /// Whether to look now whether the errand is done: true once for each time it is to be looked at. Then tell
    /// with [`looked`](Self::looked).
    pub fn look(&mut self, ticket: Ticket) -> bool {
        let slot = self.slots.get_mut(ticket.0).filter(|slot| slot.errand == Errand::Due);
        slot.map(|slot| slot.errand = Errand::Looking).is_some()
    }

    /// What looking brought. The next [`step`](Self::step) acts on it.
    pub fn looked(&mut self, ticket: Ticket, done: bool) {
        if let Some(slot) = self.slots.get_mut(ticket.0).filter(|slot| slot.errand == Errand::Looking) {
            slot.errand = if done { Errand::Done } else { Errand::NotDone };
        }
    }

    /// What was just said to an ask of the last round: whether that is consent, and the ask waits for more.
    pub(super) fn begin_errand(&mut self, index: usize, position: usize, said: &Verdict) -> bool {
        let asked = self.journal.rounds.get(index).and_then(|round| round.asks.get(position));
        let (Some(asked), Verdict::Answer(said)) = (asked, said) else { return false };
        if asked.kind != AskKind::Url || &**said != "a" {
            return false;
        }
        let mut slots = self.slots.open_mut().map(|(_, slot)| slot).filter(|slot| slot.waits);
        let slot = slots.find(|slot| slot.asked.as_ref().is_some_and(|own| own.same_question(asked)));
        slot.map(|slot| slot.errand = Errand::Due).is_some()
    }

    /// What to do at a live block before anything is sent; `None`: send.
    ///
    /// A request is held once: what it was held for urls counts against its checkpoints.
    pub(super) fn hold(&mut self, drive: Drive, now: Timestamp) -> Option<Step> {
        if self.any_errand(Errand::Done) {
            return Some(self.errands_done());
        }
        let (mut waits, mut bare) = (false, true);
        for slot in self.slots.open() {
            waits |= slot.errand != Errand::Idle;
            bare &= slot.asked.is_none();
        }
        let span = match drive {
            Drive::Alone => None,
            Drive::Runtime if waits => Some(self.policy.hold_urls),
            Drive::Runtime if bare => Some(self.policy.hold_checkpoints),
            Drive::Runtime => None,
        };
        let until = span.map(|span| {
            // A clock that steps back must not hold the request for as long as it stepped.
            let since = (*self.held_since.get_or_insert(now)).min(now);
            self.held_since = Some(since);
            since.saturating_add(span).min(self.deadline)
        });
        let Some(until) = until.filter(|until| now < *until) else {
            self.slots.open_mut().for_each(|(_, slot)| slot.errand = Errand::Idle);
            return None;
        };
        if !self.any_errand(Errand::NotDone) {
            return Some(Step::Wait(Some(until)));
        }
        let next = now.saturating_add(self.policy.look_interval);
        let again = (*self.look_at.get_or_insert(next)).min(next);
        self.look_at = Some(again);
        if now < again {
            return Some(Step::Wait(Some(until.min(again))));
        }
        self.look_at = None;
        let mut due = Vec::new();
        for (ticket, slot) in self.slots.open_mut().filter(|(_, slot)| slot.errand == Errand::NotDone) {
            slot.errand = Errand::Due;
            due.push(ticket);
        }
        Some(Step::Released(due))
    }

    fn any_errand(&self, errand: Errand) -> bool {
        self.slots.open().any(|slot| slot.errand == errand)
    }

    /// Ends a silent round in which what was done is answered.
    fn errands_done(&mut self) -> Step {
        let asks = self.slots.open_mut().filter_map(|(_, slot)| {
            let mut asked = slot.asked.clone()?;
            if slot.errand == Errand::Done {
                slot.errand = Errand::Idle;
                asked.verdict = Verdict::Answer("a".into());
            }
            Some(asked)
        });
        let asks = asks.collect();
        let checkpoint = self.checkpoint_open();
        self.settle(Round { asks, silent: true, checkpoint, swallowed: false })
    }
}
