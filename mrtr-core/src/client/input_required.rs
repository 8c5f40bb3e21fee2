//! State `InputRequired`: the server asks. Plain data, that can be shown, kept, saved and resumed.

use alloc::{boxed::Box, string::String, vec::Vec};
use core::time::Duration;

use super::{
    AnswerError, Exchange, InputResponse, Retrying, Thinking,
    call::IdFault,
    ongoing::{CarriesState, Tail, Unsent},
    policy::Spent,
    question,
    receive::{Flight, InFlight as _},
    response::{self, Answered},
};
use crate::{
    jsonrpc::{Json, RequestId, write},
    time::Timestamp,
    wire::{Action, InputRequest},
};

/// The server asks, or only wants the call again with a state.
pub struct InputRequired {
    pub(super) asks: Vec<Asked>,
    /// The state as the peer wrote it: the JSON text of a string.
    pub(super) state: Option<Box<str>>,
    /// `_meta` of the interim result.
    pub(super) meta: Option<Box<str>>,
    pub(super) not_before: Option<Timestamp>,
}

/// An ask with what became of it.
pub(super) struct Asked {
    pub(super) key: Box<str>,
    pub(super) request: InputRequest<'static>,
    /// What was done when the same question was put before.
    pub(super) before: Option<Action>,
    pub(super) answer: Option<Answered>,
}

/// One question of a round.
///
/// `Debug` shows key, kind and sizes.
#[derive(Clone, Copy)]
pub struct Ask<'a>(&'a Asked);

impl<'a> Ask<'a> {
    /// The server's key for it.
    #[must_use]
    pub const fn key(self) -> &'a str {
        &self.0.key
    }

    /// What is asked.
    #[must_use]
    pub const fn request(self) -> &'a InputRequest<'static> {
        &self.0.request
    }

    /// The answer given so far.
    #[must_use]
    pub fn answer(self) -> Option<Json<'a>> {
        self.0.answer.as_ref().map(|answer| Json::trusted(&answer.text))
    }

    /// What was done when the same question was put earlier in this exchange. A url that was accepted before is
    /// not to be opened again: the interaction is unfinished, and the person says when to go on (G-32).
    #[must_use]
    pub const fn before(self) -> Option<Action> {
        self.0.before
    }
}

/// A request that was not sent, with what it would have been sent from. Nothing was appended.
#[derive(Debug, thiserror::Error)]
#[error("{reason}")]
#[allow(clippy::exhaustive_structs)]
pub struct NotSent<T> {
    /// As it was before.
    pub given_back: T,
    /// Why.
    pub reason: Reason,
}

/// A retry that was not sent.
pub type NotReady = NotSent<Exchange<InputRequired>>;

/// Why a request was not sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Reason {
    /// Asks without answers. All of them have to be answered, so if one cannot be, abandon the call (G-17).
    #[error("{} asks are not answered yet", .keys.len())]
    Missing {
        /// Their keys.
        keys: Vec<String>,
    },
    /// The pause before a state-only retry is not over (G-06).
    #[error("the pause before this retry is not over")]
    TooEarly {
        /// When it is.
        not_before: Timestamp,
    },
    /// The time of the exchange is up, with thinking time counted.
    #[error("the exchange is over its time of {limit:?} (Limits::exchange)")]
    Deadline {
        /// The bound.
        limit: Duration,
    },
    /// The id cannot be used.
    #[error(transparent)]
    Id(#[from] IdFault),
    /// The request would be over the limit.
    #[error("request of {bytes} bytes is over the limit of {limit} (Limits::message_bytes)")]
    TooLarge {
        /// Bytes of the request.
        bytes: usize,
        /// The bound, in bytes.
        limit: usize,
    },
}

impl From<Unsent> for Reason {
    fn from(unsent: Unsent) -> Self {
        match unsent {
            Unsent::Id(fault) => Self::Id(fault),
            Unsent::TooLarge { bytes, limit } => Self::TooLarge { bytes, limit },
        }
    }
}

impl Exchange<InputRequired> {
    /// The asks of this round, in their order; none in a state-only round. Each has to be answered under its
    /// key, and a person is to see who asks.
    #[must_use]
    pub fn asks(&self) -> impl ExactSizeIterator<Item = Ask<'_>> {
        self.state.asks.iter().map(Ask)
    }

    /// The ask with that key.
    #[must_use]
    pub fn ask(&self, key: &str) -> Option<Ask<'_>> {
        self.asks().find(|ask| ask.key() == key)
    }

    /// The keys of the asks that are not answered yet.
    pub fn missing(&self) -> impl Iterator<Item = &str> {
        self.asks().filter(|ask| ask.answer().is_none()).map(Ask::key)
    }

    /// `_meta` of the interim result; it may hold `…/serverInfo`, the name the server gives itself.
    #[must_use]
    pub fn meta(&self) -> Option<Json<'_>> {
        self.state.meta.as_deref().map(Json::trusted)
    }

    /// The state for a trace: how many characters it has, and the first eight of them. Never the whole of it: a
    /// state is a credential.
    #[must_use]
    pub fn state_excerpt(&self) -> Option<(usize, String)> {
        let state = self.state.state.as_deref().map(Json::trusted).and_then(Json::as_string)?;
        Some((state.chars().count(), state.chars().take(8).collect()))
    }

    /// Keeps an answer; one given before under the same key is replaced. It is held against what was asked: its kind, and
    /// the content of a form against the form. A refused form is an answer too; after a refused sampling
    /// or roots question there is no retry: [`abandon`](Exchange::abandon) the call.
    ///
    /// # Errors
    ///
    /// If the answer does not fit the ask. The exchange is as it was: other answers are kept, and the ask can
    /// be answered again.
    pub fn answer(&mut self, key: &str, response: InputResponse<'_>) -> Result<(), AnswerError> {
        let ask = self.state.asks.iter_mut().find(|ask| &*ask.key == key).ok_or(AnswerError::UnknownKey)?;
        let limits = &self.call.shared.config.limits;
        ask.answer = Some(response::check(&ask.request, &response, limits)?);
        Ok(())
    }

    /// Takes an answer back.
    pub fn withdraw(&mut self, key: &str) {
        for ask in self.state.asks.iter_mut().filter(|ask| &*ask.key == key) {
            ask.answer = None;
        }
    }

    /// When a state-only round may go on (G-06).
    #[must_use]
    pub const fn not_before(&self) -> Option<Timestamp> {
        self.state.not_before
    }

    /// Until when the retry has to go out, if thinking time counts ([`Thinking::Counted`]).
    #[must_use]
    pub fn answer_by(&self) -> Option<Timestamp> {
        match self.call.shared.config.policy.thinking {
            Thinking::Counted => Some(self.call.deadline()),
            Thinking::Free => None,
        }
    }

    /// Whether everything is answered and no pause or deadline stands in the way at this time. If so,
    /// [`Exchange::proceed`] fails only for its id or the size of the answers together.
    #[must_use]
    pub fn can_proceed(&self, now: Timestamp) -> bool {
        self.ready(now).is_ok()
    }

    /// Appends the retry: the original parameters, the answers of this round, and the state if this round's
    /// result had one, to the letter (R-087…R-093). It needs a new id.
    ///
    /// # Errors
    ///
    /// If something is missing; the exchange is given back and nothing is appended.
    pub fn proceed(
        mut self,
        id: RequestId,
        now: Timestamp,
        out: &mut Vec<u8>,
    ) -> Result<Exchange<Retrying>, NotReady> {
        let spent = match self.ready(now) {
            Ok(spent) => spent,
            Err(reason) => return Err(NotSent { given_back: self, reason }),
        };
        let tail = self.state.tail();
        match self.call.write_next(&id, &tail, out) {
            Ok(base) => {
                let counts = &mut self.call.counts;
                if self.state.asks.is_empty() {
                    counts.state_only = counts.state_only.saturating_add(1);
                    counts.in_a_row = counts.in_a_row.saturating_add(1);
                } else {
                    counts.retries = counts.retries.saturating_add(1);
                    counts.in_a_row = 0;
                }
                self.call.spent = spent;
                self.call.last = self.state.asks;
                self.call.sent(id, tail, base);
                Ok(Exchange { call: self.call, state: Retrying::new(Flight::new(now)) })
            }
            Err(unsent) => Err(NotSent { given_back: self, reason: unsent.into() }),
        }
    }

    /// Gives the call up. Nothing is sent: between rounds no request is under way that could be cancelled
    /// (R-190, G-31), and an abort is no answer (B-63).
    pub fn abandon(self) {}

    /// Checks all but the id and the size, and gives the time spent if the retry goes out now.
    pub(super) fn ready(&self, now: Timestamp) -> Result<Spent, Reason> {
        let mut missing = self.missing().peekable();
        if missing.peek().is_some() {
            return Err(Reason::Missing { keys: missing.map(String::from).collect() });
        }
        if let Some(not_before) = self.state.not_before.filter(|not_before| now < *not_before) {
            return Err(Reason::TooEarly { not_before });
        }
        let spent = self.call.spent;
        match self.call.shared.config.policy.thinking {
            Thinking::Counted if now > self.call.deadline() => {
                Err(Reason::Deadline { limit: self.call.shared.config.limits.exchange })
            }
            Thinking::Counted => Ok(spent.counting(now)),
            // Of a pause only the pause counts, however long the exchange lay saved after it.
            Thinking::Free => {
                Ok(self.state.not_before.map_or(spent, |until| spent.counting(until)).passing_over(now))
            }
        }
    }
}

impl InputRequired {
    /// What the retry carries beside the original parameters.
    fn tail(&self) -> Tail {
        let sizes =
            self.asks.iter().map(|ask| ask.key.len() + ask.answer.as_ref().map_or(0, |a| a.text.len()) + 4);
        let state = self.state.as_deref().unwrap_or("");
        let mut text = Vec::with_capacity(40 + sizes.sum::<usize>() + state.len());
        if !self.asks.is_empty() {
            text.extend_from_slice(b",\"inputResponses\":{");
            let answered = self.asks.iter().filter_map(|ask| Some((&ask.key, ask.answer.as_ref()?)));
            for (at, (key, answer)) in answered.enumerate() {
                if at > 0 {
                    text.push(b',');
                }
                write::string(&mut text, key);
                text.push(b':');
                text.extend_from_slice(answer.text.as_bytes());
            }
            text.push(b'}');
        }
        if self.state.is_some() {
            text.extend_from_slice(b",\"requestState\":");
            text.extend_from_slice(state.as_bytes());
        }
        let state = if self.state.is_some() { CarriesState::Yes } else { CarriesState::No };
        Tail { text, state }
    }

    /// Bytes of the shortest tail that this round could end with.
    pub(super) fn least_tail(&self) -> usize {
        let answers = if self.asks.is_empty() { 0 } else { b",\"inputResponses\":{}".len() };
        answers + self.state.as_deref().map_or(0, |state| b",\"requestState\":".len() + state.len())
    }
}

impl Asked {
    /// The mark of the question, if it is one that can be refused.
    pub(super) fn mark(&self) -> Option<question::Mark> {
        question::mark(&self.request)
    }
}

impl core::fmt::Debug for Ask<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.0.fmt(f)
    }
}

impl core::fmt::Debug for Asked {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Ask")
            .field("key", &super::text::excerpt(&self.key))
            .field("request", &self.request)
            .field("answer_bytes", &self.answer.as_ref().map(|answer| answer.text.len()))
            .finish()
    }
}

impl core::fmt::Debug for InputRequired {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("InputRequired")
            .field("asks", &self.asks)
            .field("state_bytes", &self.state.as_deref().map(str::len))
            .field("not_before", &self.not_before)
            .finish()
    }
}
