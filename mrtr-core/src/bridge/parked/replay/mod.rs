//! Run again instead of parked (G-48), for tools that the operator has named ([`Upstream::replay`]).
//!
//! ```text
//!  first request ──▶ run 1 ──(questions)──▶ left: cancelled, session given back; state = asked + answers
//!  retry, anywhere ─▶ run 2: what the state knows is answered at once ──(new questions)──▶ left ─▶ …
//!  retry, anywhere ─▶ run n ──▶ result
//! ```
//!
//! A run is a parked call up to the moment in which its questions go out: then it is left, and nothing of it stays here.
//!
//! An answer belongs to the question with its kind and its fingerprint, not to a key or a place. A question that comes
//! n times in one run gets the n-th answer that was given to it, in the order of rounds and of keys within a round; once
//! these are used up it is asked. A question in other words is another question.
//!
//! [`Upstream::replay`]: crate::bridge::Upstream::replay

mod record;

pub(in crate::bridge) use self::record::Record;
use self::record::{Answered, Asked, Question};
use super::{
    ends::{Unanswered, take_hosts},
    retry::read_answer,
    *,
};
use crate::{digest::DigestFault, seal::Claims, seal::SealError};

/// What a call that is run again knows.
#[derive(Default)]
pub(super) struct Replay {
    answers: Vec<Known>,
    /// What the state said of itself, from the second run on.
    pub(super) claims: Option<Claims>,
    /// The last key that was given out.
    pub(super) keys: u32,
    /// A url without which the upstream does not take the call was not opened.
    pub(super) refused: bool,
}

struct Known {
    answered: Answered,
    /// This run has it.
    taken: bool,
}

impl Replay {
    /// The answer to a question, if there is one that this run has not had.
    pub(super) fn answer(
        &mut self,
        kind: AskKind,
        required: bool,
        entry: &str,
    ) -> Result<Option<Vec<u8>>, DigestFault> {
        let question = Question::new(kind, required, Json::trusted(entry))?;
        let fits = |known: &&mut Known| !known.taken && known.answered.question == question;
        Ok(self.answers.iter_mut().find(fits).map(|known| {
            known.taken = true;
            known.answered.value.clone()
        }))
    }

    /// The call is made (again): it will ask from the beginning. Urls of `-32042` are no part of a run.
    pub(super) fn begin(&mut self) {
        for known in self.answers.iter_mut().filter(|known| !known.answered.question.required) {
            known.taken = false;
        }
    }

    /// What the state of this round says.
    fn record(&mut self, asks: &[Ask], keys: u32) -> Result<Record, DigestFault> {
        let asked = asks.iter().map(|ask| {
            let required = matches!(ask.from, From::Url);
            let question = Question::new(ask.kind, required, Json::trusted(&ask.entry))?;
            // Every key here is `u` and a number.
            let key = ask.key.strip_prefix('u').and_then(|key| key.parse().ok()).unwrap_or(keys);
            Ok(Asked { key, question })
        });
        let asked = asked.collect::<Result<_, DigestFault>>()?;
        let answers = core::mem::take(&mut self.answers).into_iter().map(|known| known.answered).collect();
        Ok(Record { keys, asked, answers })
    }

    /// What a state knows, and what came with it.
    fn of<'a>(
        record: Record,
        claims: Claims,
        given: impl Fn(&str) -> Option<Json<'a>>,
        limit: usize,
    ) -> Result<Self, RpcError> {
        let mut answers = record.answers;
        let mut refused = false;
        for Asked { key, question } in record.asked {
            let key = format!("u{key}");
            let Some(answer) = given(&key) else { continue };
            let (mut value, action) = read_answer(&key, question.kind, answer, limit)?;
            if question.required {
                value.clear();
                refused |= action != Some(Action::Accept);
            }
            answers.push(Answered { question, value });
        }
        let answers = answers.into_iter().map(|answered| Known { answered, taken: false }).collect();
        Ok(Self { answers, claims: Some(claims), keys: record.keys, refused })
    }
}

impl Bridge {
    /// Whether the operator has said that a tool may be run again.
    pub(super) fn is_replayed(&self, method: AskingMethod, upstream: usize, own: Option<&str>) -> bool {
        let named = self.config.upstreams.get(upstream).map_or(&[][..], |up| &up.replay);
        method == AskingMethod::ToolsCall && own.is_some_and(|own| named.iter().any(|tool| **tool == *own))
    }

    /// A retry with the state of a run that was left, by this process or another.
    pub(super) fn run_again(
        &mut self,
        attached: Attached,
        m: &Modern<'_>,
        whose: (AskingMethod, usize, Option<&str>),
        digest: [u8; 32],
        (record, claims): (Record, Claims),
        now: Timestamp,
    ) {
        let given = |key: &str| m.parts.responses.and_then(|responses| responses.get(key));
        match Replay::of(record, claims, given, self.config.limits.answer_bytes) {
            Ok(replay) => self.new_call(attached, m, whose, digest, Some(Box::new(replay)), now),
            Err(error) => self.respond_error(attached.host, &attached.id, ReplyClass::HandlerError, &error),
        }
    }

    /// The state of the round that is open: all that the next run needs.
    pub(super) fn seal_record(
        &mut self,
        call: u64,
        claims: &NewClaims,
        now: Timestamp,
    ) -> Result<String, RpcError> {
        let Some(parked) = self.parked.get_mut(&call) else { return Err(gone()) };
        let Some(replay) = &mut parked.replay else { return Err(gone()) };
        let record = replay.record(&parked.asks, parked.keys).map_err(|fault| fault.error())?;
        let name = self.config.upstreams.get(parked.upstream).map_or("", |up| &*up.name);
        let bound = Bound { owner: &parked.owner, request: &parked.digest, upstream: name };
        self.vault.record(claims, &record, &bound, now, &mut self.random).map_err(|error| {
            let SealError::TooLarge { size, limit } = error else { return seal_error(&error) };
            RpcError::internal(format!(
                "the state with the answers so far has {size} characters, more than the limit of {limit} (Limits::state_accepted)"
            ))
        })
    }

    /// The questions go to the host, and the run is left: nothing of it stays.
    pub(super) fn leave_run(&mut self, call: u64, body: &[u8], now: Timestamp) {
        let Some(parked) = self.parked.get_mut(&call) else { return };
        for (host, id) in take_hosts(parked) {
            self.respond(host, &id, ReplyClass::Result, |out| out.extend_from_slice(body));
        }
        self.end_call(call, Unanswered::Later, now);
    }
}
