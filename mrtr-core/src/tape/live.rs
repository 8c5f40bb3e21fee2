//! The live segment: the gate, answers without a state, a new round, the end (A6, A7, A9).

use alloc::{boxed::Box, string::String, vec::Vec};

use super::{Answers, Drive, Fault, Finish, Outgoing, OutgoingAsk, Step, Tape, notes};
use crate::{
    journal::{Asked, Round, SILENT_ROUNDS, Verdict},
    jsonrpc::Json,
    time::Timestamp,
    wire::{InputRequest, Requirement},
};

/// What the gate says about the open asks (A6).
enum Gate {
    /// All may be sent.
    Open,
    /// Optional ones cannot be answered: settled without a person.
    Settled,
    /// Required ones cannot be answered: `data` of `-32021`.
    Missing(String),
}

impl Tape {
    /// The handler is blocked and no recorded round is left (A6).
    pub(super) fn live_step(&mut self, drive: Drive, now: Timestamp) -> Step {
        if let Some(step) = self.hold(drive, now) {
            return step;
        }
        match self.gate() {
            Gate::Missing(data) => return Step::Missing(data),
            Gate::Settled => return self.silent(),
            Gate::Open => {}
        }
        match self.early_answers() {
            Err(fault) => return Step::Fault(fault),
            Ok(true) => return self.silent(),
            Ok(false) => {}
        }
        match self.send(now, false) {
            Ok(outgoing) => Step::Send(outgoing),
            Err(fault) => Step::Fault(fault),
        }
    }

    /// Records a round that needs nobody, and releases it.
    pub(super) fn settle(&mut self, round: Round) -> Step {
        self.push_silent(round);
        self.silent()
    }

    fn push_silent(&mut self, round: Round) {
        if let Some(notes) = &mut self.notes {
            round.asks.iter().for_each(|asked| notes::note(notes, &self.journal, asked));
        }
        self.journal.rounds.push(round);
    }

    /// Releases the silent round that was just recorded.
    fn silent(&mut self) -> Step {
        if self.is_endless() { Step::Fault(Fault::Endless) } else { Step::Released(self.release()) }
    }

    /// Whether more rounds were settled without a person than a state may hold.
    pub(super) fn is_endless(&self) -> bool {
        self.journal.rounds.iter().filter(|round| round.silent).count() > SILENT_ROUNDS
    }

    /// Checks every open ask against what the request in hand declared. Records a silent round if optional
    /// ones must do without (G-13); recorded rounds are never gated again.
    fn gate(&mut self) -> Gate {
        let capabilities = self.capabilities;
        let refused = |need: Option<Requirement>| need.is_some_and(|need| !capabilities.allow(need));
        let open = || self.slots.open();
        let required = || open().filter(|slot| !slot.optional).filter_map(super::slot::Slot::requirement);
        if required().any(|need| !capabilities.allow(need)) {
            return Gate::Missing(capabilities.missing(required()));
        }
        if !open().any(|slot| refused(slot.requirement())) {
            return Gate::Open;
        }
        let asks = open().filter_map(|slot| {
            let mut asked = slot.asked.clone()?;
            if refused(slot.requirement()) {
                asked.verdict = Verdict::Unavailable;
            }
            Some(asked)
        });
        let (asks, checkpoint) = (asks.collect(), self.checkpoint_open());
        self.push_silent(Round { asks, silent: true, checkpoint, swallowed: false });
        Gate::Settled
    }

    /// Answers that came without a state end a silent round, once, for asks that allow it (A7). Whether a
    /// silent round was recorded.
    fn early_answers(&mut self) -> Result<bool, Fault> {
        let Answers::Early(answers) = &self.answers else { return Ok(false) };
        let mut asks = Vec::new();
        let mut used = false;
        for slot in self.slots.open() {
            let Some(mut asked) = slot.asked.clone() else { continue };
            let answer = answers.iter().find(|(key, _)| **key == *asked.key).filter(|_| !slot.solicited);
            if let Some((_, text)) = answer {
                asked.verdict = self
                    .verdict(&asked, slot.request.as_ref(), Json::trusted(text))
                    .map_err(|fault| Fault::BadAnswer { key: String::from(&*asked.key), fault })?;
                used = true;
            }
            asks.push(asked);
        }
        self.answers = Answers::None;
        if used {
            let checkpoint = self.checkpoint_open();
            self.push_silent(Round { asks, silent: true, checkpoint, swallowed: false });
        }
        Ok(used)
    }

    /// Records the open asks as a round that goes out, after checking every bound, so that no question goes
    /// out whose answer could not be used.
    fn send(&mut self, now: Timestamp, swallowed: bool) -> Result<Outgoing, Fault> {
        let asks = self.open_asks();
        let limits = &self.limits;
        if asks.len() > limits.asks_sent {
            return Err(Fault::Limit {
                what: "asks in a round",
                field: "asks_sent",
                limit: limits.asks_sent,
            });
        }
        if now >= self.deadline {
            return Err(Fault::Deadline);
        }
        self.check_forms()?;
        let sent = self.journal.rounds.iter().filter(|round| !round.silent);
        let alike = sent.filter(|round| round.asks.is_empty() == asks.is_empty()).count();
        let (limit, what, field) = if asks.is_empty() {
            (limits.state_only_rounds, "state-only rounds", "state_only_rounds")
        } else {
            (limits.rounds, "rounds", "rounds")
        };
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        if alike >= limit {
            return Err(Fault::Limit { what, field, limit });
        }
        let mut outgoing = Vec::with_capacity(asks.len());
        for slot in self.slots.open() {
            let (Some(asked), Some(request)) = (&slot.asked, &slot.request) else { continue };
            let (key, request, invalid) = (asked.key.clone(), request.clone(), self.last_reason(asked));
            outgoing.push(OutgoingAsk { key, request, invalid });
        }
        let outgoing = Outgoing { asks: outgoing };
        let checkpoint = self.checkpoint_open();
        self.journal.rounds.push(Round { asks, silent: false, checkpoint, swallowed });
        Ok(outgoing)
    }

    fn check_forms(&self) -> Result<(), Fault> {
        let mut open =
            self.slots.open().filter_map(|slot| Some((slot.asked.as_ref()?, slot.request.as_ref()?)));
        open.try_for_each(|(asked, request)| check_form(&asked.key, request))
    }

    /// Why the latest answer to this ask did not fit.
    fn last_reason(&self, asked: &Asked) -> Option<Box<str>> {
        let mut verdicts = self.journal.rounds.iter().rev().flat_map(|round| &round.asks);
        let latest = verdicts.find(|found| found.same_question(asked) && found.verdict != Verdict::Open)?;
        match &latest.verdict {
            Verdict::Invalid { reason, .. } => Some(reason.clone()),
            Verdict::Open | Verdict::Answer(_) | Verdict::Unavailable | Verdict::NotYet => None,
        }
    }

    /// The handler returned in the live segment: asks that it made there, waited for and left alive decide
    /// the outcome (A9 b).
    pub(super) fn fresh_step(&mut self, now: Timestamp) -> Finish {
        let segment = self.segment;
        // What an earlier segment left open is withdrawn by finishing (A9 c).
        self.slots.retain(|slot| !slot.is_open() || (slot.segment == segment && slot.polled));
        loop {
            if !self.slots.open().any(super::slot::Slot::blocks) {
                return Finish::Return;
            }
            match self.gate() {
                Gate::Missing(data) => return Finish::Missing(data),
                Gate::Settled if self.is_endless() => return Finish::Fault(Fault::Endless),
                Gate::Settled => {
                    self.release();
                }
                Gate::Open => {
                    return match self.send(now, true) {
                        Ok(outgoing) => Finish::Send(outgoing),
                        Err(fault) => Finish::Fault(fault),
                    };
                }
            }
        }
    }

    /// A round was sent over the handler's return (A9 b): did this run take one of its answers?
    pub(super) fn unheeded_mark(&self) -> Option<Fault> {
        self.journal.rounds.iter().enumerate().filter(|(_, round)| round.swallowed).find_map(
            |(index, round)| {
                let taken = self.slots.values().any(|slot| {
                    slot.taken
                        && slot.resolved_by.is_some_and(|by| by >= index)
                        && slot
                            .asked
                            .as_ref()
                            .is_some_and(|asked| round.asks.iter().any(|own| own.same_question(asked)))
                });
                let keys = || round.asks.iter().map(|asked| String::from(&*asked.key)).collect();
                (!taken).then(|| Fault::Swallowed(keys()))
            },
        )
    }
}

/// Whether a form may be asked. One outside the language of forms could only be refused by the client (R-123, G-16), and one
/// that says more than that language has words for would not be judged by all it says. One that was built here
/// always may.
pub(crate) fn check_form(key: &str, request: &InputRequest<'_>) -> Result<(), Fault> {
    let Some(schema) = request.requested_schema().filter(|_| request.built().is_none()) else {
        return Ok(());
    };
    let fault = crate::form::Schema::read(schema).err().or_else(|| crate::form::stray(schema));
    fault.map_or(Ok(()), |fault| {
        Err(Fault::BadForm { key: String::from(key), problem: alloc::format!("{fault}") })
    })
}
