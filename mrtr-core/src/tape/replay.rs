//! A recorded round: matching it, releasing it, leaving it (A3, A4, A5, A8, A9 a).

use alloc::{boxed::Box, string::String, vec::Vec};

use super::{
    AfterEffects, Answers, Drive, Fault, OnDivergence, Resolution, Step, TICKETS, Tape, Ticket, hold::Errand,
    notes,
};
use crate::{
    form::Schema,
    journal::{Asked, Divergence, DivergenceKind, Round, Verdict},
    jsonrpc::Json,
    time::Timestamp,
    wire::{Action, Answer, AnswerFault, InputRequest, read_answer},
};

/// The third divergence of an exchange ends it (A8).
const DIVERGENCES: u8 = 3;

impl Tape {
    /// The handler is blocked where a recorded round may end (A3).
    pub(super) fn replay_step(&mut self, drive: Drive, now: Timestamp) -> Step {
        let checkpoint = self.checkpoint_open();
        let Some(round) = self.journal.rounds.get(self.segment) else { return Step::Wait(None) };
        let open = || self.open();
        let recorded = |asked: &Asked| round.asks.iter().find(|found| found.key == asked.key);
        let changed = open().any(|asked| recorded(asked).is_some_and(|found| !found.same_question(asked)));
        let short = round.checkpoint && !checkpoint
            || round.asks.iter().any(|asked| !open().any(|found| found.key == asked.key));
        let extra = checkpoint && !round.checkpoint || open().any(|asked| recorded(asked).is_none());
        if !changed && !short && (!extra || drive == Drive::Runtime) {
            self.short_since = None;
            return Step::Released(self.release());
        }
        if !changed && short && drive == Drive::Runtime {
            // Something else than an answer may still bring the missing asks: not a block yet.
            let since = (*self.short_since.get_or_insert(now)).min(now);
            self.short_since = Some(since);
            let until = since.saturating_add(self.policy.replay_patience);
            if now < until {
                return Step::Wait(Some(until));
            }
        }
        self.short_since = None;
        match self.leave_path(self.open_asks(), checkpoint) {
            Ok(()) => Step::Released(self.release()),
            Err(fault) => Step::Fault(fault),
        }
    }

    /// The asks that are open now, in the order of registration.
    fn open(&self) -> impl Iterator<Item = &Asked> {
        self.slots.open().filter_map(|slot| slot.asked.as_ref())
    }

    /// The same as a journal records them.
    pub(super) fn open_asks(&self) -> Vec<Asked> {
        let mut asks = Vec::with_capacity(self.open().count());
        asks.extend(self.open().cloned());
        asks
    }

    pub(super) fn checkpoint_open(&self) -> bool {
        self.slots.open().any(|slot| slot.asked.is_none())
    }

    /// Ends the round at hand: its last answers get their verdicts, every ask of it gets what was decided,
    /// and the next segment begins (A4, A5).
    pub(super) fn release(&mut self) -> Vec<Ticket> {
        let index = self.segment;
        // A silent round is settled already; answers that wait for one that was asked stay.
        if index + 1 == self.journal.rounds.len()
            && let Some(answers) = self.answers.take_last_round()
        {
            self.record(index, &answers);
        }
        self.segment += 1;
        let Some(round) = self.journal.rounds.get(index) else { return Vec::new() };
        let mut released = Vec::new();
        // They stand in the order in which they were registered, and are mostly all there.
        let mut next = 0;
        let mut recorded_of = |asked: &Asked| {
            let asks = &round.asks;
            let is_next = asks.get(next).is_some_and(|found| found.same_question(asked));
            let at = if is_next { next } else { asks.iter().position(|found| found.same_question(asked))? };
            next = at + 1;
            asks.get(at)
        };
        for (ticket, slot) in self.slots.open_mut() {
            let mut looks = slot.errand == Errand::Due;
            let resolution = match &slot.asked {
                // A round that was never sent passes no checkpoint (A10).
                None => (round.checkpoint && !round.silent).then_some(Resolution::Passed),
                Some(asked) => {
                    let recorded = recorded_of(asked);
                    // Whoever looked then was woken then: what is polled first must not depend on whether it is replayed.
                    looks |= recorded.is_some_and(|recorded| recorded.verdict == Verdict::NotYet);
                    recorded.and_then(|recorded| match &recorded.verdict {
                        verdict if verdict.stays_open() => None,
                        Verdict::Answer(text) => Some(Resolution::Answer(text.clone())),
                        Verdict::Unavailable => Some(Resolution::Unavailable),
                        Verdict::Invalid { reason, .. } => Some(Resolution::Invalid(reason.clone())),
                        Verdict::Open | Verdict::NotYet => None,
                    })
                }
            };
            if let Some(resolution) = resolution {
                slot.resolution = Some(resolution);
                slot.resolved_by = Some(index);
                released.push(ticket);
            } else if looks {
                released.push(ticket);
            }
        }
        released
    }

    /// Gives the answers of the request in hand their verdicts (A5): only keys of the round, only asks that
    /// have none yet, content judged by the form that the handler has just registered under that key.
    fn record(&mut self, index: usize, answers: &[(Box<str>, Box<str>)]) {
        let asks = self.journal.rounds.get(index).map_or(0, |round| round.asks.len());
        for position in 0..asks {
            // Structure was checked when the request came in; what does not fit here is no answer.
            let Some(verdict) = self.verdict_at(index, position, answers) else { continue };
            // Consent is not completion: an ask that waits for that is not answered by it (A10).
            let verdict =
                if self.begin_errand(index, position, &verdict) { Verdict::NotYet } else { verdict };
            if let Some(round) = self.journal.rounds.get_mut(index)
                && let Some(asked) = round.asks.get_mut(position)
            {
                asked.verdict = verdict;
            }
            if let Some(notes) = &mut self.notes
                && let Some(asked) = self.journal.rounds.get(index).and_then(|round| round.asks.get(position))
            {
                notes::note(notes, &self.journal, asked);
            }
        }
    }

    fn verdict_at(&self, index: usize, position: usize, answers: &[(Box<str>, Box<str>)]) -> Option<Verdict> {
        let asked = self.journal.rounds.get(index)?.asks.get(position)?;
        if !asked.verdict.stays_open() {
            return None;
        }
        let (_, text) = answers.iter().find(|(key, _)| **key == *asked.key)?;
        self.verdict(asked, self.request_of(asked), Json::trusted(text)).ok()
    }

    fn request_of(&self, asked: &Asked) -> Option<&InputRequest<'static>> {
        let mut slots = self.slots.open();
        let slot = slots.find(|slot| slot.asked.as_ref().is_some_and(|own| own.same_question(asked)));
        slot.and_then(|slot| slot.request.as_ref())
    }

    /// The verdict on one answer to one ask.
    pub(super) fn verdict(
        &self,
        asked: &Asked,
        request: Option<&InputRequest<'static>>,
        answer: Json<'_>,
    ) -> Result<Verdict, AnswerFault> {
        let text = match read_answer(asked.kind, answer)? {
            Answer::Form { action: Action::Accept, content } => {
                match request.map(|request| judge(request, content, "a")) {
                    None => alloc::format!("a{}", content.as_str()),
                    Some(Ok(text)) => text,
                    Some(Err(reason)) => {
                        let count = self.journal.invalid_count(&asked.key).saturating_add(1);
                        return Ok(Verdict::Invalid { count, reason: reason.into() });
                    }
                }
            }
            Answer::Url(Action::Accept) => String::from("a"),
            Answer::Form { action: Action::Decline, .. } | Answer::Url(Action::Decline) => String::from("d"),
            Answer::Form { action: Action::Cancel, .. } | Answer::Url(Action::Cancel) => String::from("c"),
            Answer::Sampling(value) | Answer::Roots(value) => String::from(value.as_str()),
        };
        Ok(Verdict::Answer(text.into()))
    }

    /// A divergence: cut the journal here, keep of this round what is still the same question (A8).
    fn leave_path(&mut self, open: Vec<Asked>, checkpoint: bool) -> Result<(), Fault> {
        let index = self.segment;
        self.report(DivergenceKind::OtherQuestions, &open)?;
        self.drop_effects(index)?;
        let Some(old) = self.journal.rounds.get(index).cloned() else { return Ok(()) };
        // As for a round that goes out: one that is wider could not be read back.
        let limit = self.limits.asks_sent;
        if !old.silent && open.len() > limit {
            return Err(Fault::Limit { what: "asks in a round", field: "asks_sent", limit });
        }
        let last = index + 1 == self.journal.rounds.len();
        let kept = |asked: &Asked| old.asks.iter().find(|found| found.same_question(asked));
        // The answers in hand are for the last round: if that one is cut off they answer nothing any more,
        // and if it is this one they still answer only what was really asked.
        match &mut self.answers {
            Answers::LastRound(answers) if last => {
                answers
                    .retain(|(key, _)| open.iter().any(|asked| *asked.key == **key && kept(asked).is_some()));
            }
            Answers::LastRound(_) => self.answers = Answers::None,
            Answers::None | Answers::Early(_) => {}
        }
        let asks = open.into_iter().map(|mut asked| {
            if let Some(found) = kept(&asked) {
                asked.verdict = found.verdict.clone();
            }
            asked
        });
        let round = Round { asks: asks.collect(), silent: old.silent, checkpoint, swallowed: old.swallowed };
        self.journal.rounds.truncate(index);
        self.journal.rounds.push(round);
        Ok(())
    }

    /// The handler returned although recorded rounds are left (A9 a): under `AskAgain` its value stands.
    pub(super) fn finished_early(&mut self) -> Result<(), Fault> {
        self.report(DivergenceKind::FinishedEarly, &[])?;
        self.drop_effects(self.segment)
    }

    /// Counts a divergence and decides whether the exchange goes on.
    fn report(&mut self, kind: DivergenceKind, open: &[Asked]) -> Result<(), Fault> {
        self.journal.divergences = self.journal.divergences.saturating_add(1);
        let recorded = self.journal.rounds.get(self.segment).map_or(&[][..], |round| &round.asks);
        let report = Divergence::new(
            kind,
            self.segment,
            recorded,
            open,
            self.values.read().map(String::from).collect(),
            self.journal.divergences,
        );
        crate::trace::warn!(exchange = %self.exchange, round = report.round, count = report.count, report = %report, "diverged");
        let outcome = if self.policy.divergence == OnDivergence::Fail {
            let left = self
                .slots
                .open()
                .filter_map(|slot| Some((slot.asked.as_ref()?.key.clone(), slot.request.clone()?)));
            self.left_with = left.collect();
            Err(Fault::Diverged(alloc::format!("{report}")))
        } else if self.journal.divergences >= DIVERGENCES {
            let keys = report.changed.iter().chain(&report.missing).chain(&report.added);
            Err(Fault::UnstableQuestion(keys.cloned().collect()))
        } else {
            Ok(())
        };
        self.diverged.push(report);
        outcome
    }

    /// Once-values that were made behind the round that differs.
    fn drop_effects(&mut self, index: usize) -> Result<(), Fault> {
        let behind = |segment: u32| segment as usize > index;
        match self.policy.after_effects {
            AfterEffects::Keep => Ok(()),
            AfterEffects::Drop => {
                self.journal.once.retain(|once| !behind(once.segment));
                self.once.find_again(&self.journal.once);
                Ok(())
            }
            AfterEffects::Refuse => {
                // A ticket is not an effect: it names its ask and may be shown again.
                let effects = self.journal.once.iter().filter(|once| !once.name.starts_with(TICKETS));
                let made = effects.filter(|once| behind(once.segment));
                let names: Vec<String> = made.map(|once| String::from(&*once.name)).collect();
                if names.is_empty() { Ok(()) } else { Err(Fault::AfterEffects(names)) }
            }
        }
    }
}

/// Judges the content of an accepted form by the form that was shown (R-132, G-20): the members the form knows,
/// or a sentence for the person. `before` is what the text begins with.
pub(crate) fn judge(request: &InputRequest<'_>, content: Json<'_>, before: &str) -> Result<String, String> {
    let mut text = String::with_capacity(before.len() + content.as_str().len());
    text.push_str(before);
    let read;
    let schema = match request.built() {
        Some(schema) => schema,
        None => {
            // Forms that cannot be read are not sent, so an answer to one is nothing to judge.
            let schema = request.requested_schema().map(Schema::read);
            let Some(Ok(schema)) = schema else {
                text.push_str(content.as_str());
                return Ok(text);
            };
            read = schema;
            &read
        }
    };
    schema.clean(content, text).map_err(|invalid| alloc::format!("{invalid}"))
}
