//! What the embedder does with calls, and how they get onto the wire.

use alloc::{boxed::Box, vec::Vec};

use super::{CallError, CallId, Connection, Event, Failure, HeaderRules, Outcome, PostId, State, Transmit};
use crate::{
    client::{
        Call, Complete, Exchange, InputRequired, NotReady, NotSent, Pending, Retrying, StateRefused,
        call::{Options, Params, Progress, Repeat},
        receive::Open,
    },
    jsonrpc::{Json, RequestId},
    time::Timestamp,
    wire::Era,
};

/// A call that is here.
pub(super) struct Entry {
    /// What was wanted, for the other era.
    pub(super) original: Option<Original>,
    pub(super) stage: Stage,
}

/// A call as it was given.
pub(super) struct Original {
    method: Box<str>,
    params: Box<str>,
    options: Options,
}

/// How far a call is.
pub(super) enum Stage {
    /// Waits for the era to be known.
    Waiting,
    /// Was sent, and met what may only mean another era: this is its outcome unless it does.
    Doubted(Failure),
    /// A resumed exchange that waits for the era to be known.
    Resumed(Exchange<InputRequired>),
    /// On the wire, modern.
    Flying(PostId, Flying),
    /// Waits to be sent again with its state (G-06).
    Pausing(Exchange<InputRequired>),
    /// On the wire, legacy: questions that it asked so far, and what was done with them.
    Held(super::held::Held),
}

/// An exchange on the wire.
pub(super) enum Flying {
    Pending(Exchange<Pending>),
    Retrying(Exchange<Retrying>),
}

impl From<Exchange<Pending>> for Flying {
    fn from(exchange: Exchange<Pending>) -> Self {
        Self::Pending(exchange)
    }
}

impl From<Exchange<Retrying>> for Flying {
    fn from(exchange: Exchange<Retrying>) -> Self {
        Self::Retrying(exchange)
    }
}

impl Flying {
    /// Takes note of progress, if the token is its own; whether it is.
    pub(super) fn hear(&mut self, token: &RequestId, now: Timestamp) -> bool {
        let ours = match self {
            Self::Pending(exchange) => exchange.progress_token() == Some(token),
            Self::Retrying(exchange) => exchange.progress_token() == Some(token),
        };
        match self {
            Self::Pending(exchange) if ours => exchange.hear(now),
            Self::Retrying(exchange) if ours => exchange.hear(now),
            Self::Pending(_) | Self::Retrying(_) => {}
        }
        ours
    }
}

impl Entry {
    /// When something has to be done about it.
    pub(super) fn due(&self) -> Option<Timestamp> {
        match &self.stage {
            Stage::Flying(_, Flying::Pending(exchange)) => Some(exchange.timeout()),
            Stage::Flying(_, Flying::Retrying(exchange)) => Some(exchange.timeout()),
            Stage::Pausing(exchange) => exchange.not_before(),
            Stage::Waiting | Stage::Doubted(_) | Stage::Resumed(_) | Stage::Held(_) => None,
        }
    }
}

impl Original {
    fn new(call: &Call<'_>) -> Self {
        Self { method: call.method.into(), params: call.params.into(), options: call.options.clone() }
    }

    fn call(&self) -> Call<'_> {
        Call { method: &self.method, params: &self.params, options: self.options.clone() }
    }

    pub(super) fn wants_progress(&self) -> bool {
        self.options.progress != Progress::Unwanted
    }

    pub(super) fn may_run_twice(&self) -> bool {
        self.options.repeat == Repeat::Allowed
    }

    pub(super) fn method(&self) -> &str {
        &self.method
    }

    pub(super) fn params(&self) -> Json<'_> {
        // Checked when the call came.
        Json::trusted(self.params.trim_ascii())
    }
}

impl Connection {
    /// Makes a call.
    ///
    /// Of what a call can [want](Call), a legacy session gets the method, the parameters and the wish for progress;
    /// what can be answered is settled for the whole session there.
    ///
    /// # Errors
    ///
    /// If it cannot be made. What is found out later is the call's outcome.
    pub fn call(&mut self, call: Call<'_>, now: Timestamp) -> Result<CallId, CallError> {
        Params::read(call.params, &self.client.shared.config)?;
        self.admit()?;
        let entry = Entry { original: Some(Original::new(&call)), stage: Stage::Waiting };
        let id = self.take_call();
        self.calls.insert(id, entry);
        self.advance(now);
        Ok(id)
    }

    /// Goes on with an exchange whose questions are answered, under the name it had. If the server has been restarted
    /// meanwhile, its era is found out first.
    ///
    /// # Errors
    ///
    /// If something is missing; the exchange is given back, and nothing is sent.
    pub fn proceed(
        &mut self,
        call: CallId,
        exchange: Exchange<InputRequired>,
        now: Timestamp,
    ) -> Result<(), Box<NotReady>> {
        if matches!(self.state, State::Modern) {
            return self.launch_retry(call, exchange, None, now);
        }
        if let Err(reason) = exchange.ready(now) {
            return Err(Box::new(NotSent { given_back: exchange, reason }));
        }
        if matches!(self.state, State::Closed) {
            self.failed(call, Failure::Closed);
            return Ok(());
        }
        self.calls.insert(call, Entry { original: None, stage: Stage::Resumed(exchange) });
        self.advance(now);
        Ok(())
    }

    /// Goes on with an exchange that was saved, as a call of this connection (R-185: of another process, too). It may
    /// have unanswered questions: then it comes back as [`Event::InputRequired`].
    ///
    /// # Errors
    ///
    /// If no further call can be made; the exchange is lost then, but what it was saved as is not.
    pub fn resume(&mut self, exchange: Exchange<InputRequired>, now: Timestamp) -> Result<CallId, CallError> {
        self.admit()?;
        let call = self.take_call();
        if exchange.missing().next().is_some() {
            self.events.push_back(Event::InputRequired { call, exchange });
            return Ok(call);
        }
        self.calls.insert(call, Entry { original: None, stage: Stage::Resumed(exchange) });
        self.advance(now);
        Ok(call)
    }

    /// Begins again with a call whose state was refused: from the original parameters, under the limits that are left
    /// (G-11).
    ///
    /// # Errors
    ///
    /// If no further call can be made.
    pub fn restart(&mut self, refused: StateRefused, now: Timestamp) -> Result<CallId, CallError> {
        self.admit()?;
        let (call, post) = (self.take_call(), self.take_id_for(&refused.exchange.call));
        let mut bytes = Vec::new();
        match refused.restart(post.request_id(), now, &mut bytes) {
            Ok(exchange) => self.fly(call, post, exchange.into(), bytes, None),
            Err(unsent) => self.failed(call, Failure::NotSent(unsent.reason)),
        }
        Ok(call)
    }

    /// Gives a call up, wherever it is: what is on the wire is cancelled, its questions are taken back.
    /// There is no event for it, and what still comes is ignored. Does nothing for a call that was handed over
    /// or is done: between rounds there is nothing to cancel (R-190, G-31).
    pub fn cancel(&mut self, call: CallId, reason: &str, now: Timestamp) {
        let Some(entry) = self.calls.remove(&call) else { return };
        match entry.stage {
            Stage::Flying(post, flying) => self.give_up(post, flying, reason),
            Stage::Held(held) => self.let_go(&held, reason, now),
            Stage::Waiting | Stage::Doubted(_) | Stage::Resumed(_) | Stage::Pausing(_) => {}
        }
    }

    fn admit(&self) -> Result<(), CallError> {
        let limit = self.config.calls;
        match self.state {
            State::Closed => Err(CallError::Closed),
            _ if self.calls.len() >= limit => Err(CallError::TooMany { limit }),
            State::Unknown
            | State::Probing { .. }
            | State::Modern
            | State::Opening { .. }
            | State::Legacy(_) => Ok(()),
        }
    }

    /// Puts what waits onto the wire, as far as the era is known.
    pub(super) fn advance(&mut self, now: Timestamp) {
        match &self.state {
            State::Unknown => self.find_out(now),
            State::Modern => self.launch_all(now),
            State::Legacy(_) => self.hold_all(now),
            State::Probing { .. } | State::Opening { .. } | State::Closed => {}
        }
    }

    /// The calls that wait, taken out of the books one by one.
    pub(super) fn waiting(&self) -> Vec<CallId> {
        let waits = |entry: &Entry| match entry.stage {
            Stage::Waiting | Stage::Doubted(_) | Stage::Resumed(_) => true,
            Stage::Flying(..) | Stage::Pausing(_) | Stage::Held(_) => false,
        };
        self.calls.iter().filter(|(_, entry)| waits(entry)).map(|(call, _)| *call).collect()
    }

    /// The server is modern, or taken for it.
    pub(super) fn launch_all(&mut self, now: Timestamp) {
        for call in self.waiting() {
            let Some(Entry { original, stage }) = self.calls.remove(&call) else { continue };
            match (stage, original) {
                // It was no matter of the era.
                (Stage::Doubted(failure), _) => self.failed(call, failure),
                (Stage::Resumed(exchange), _) => {
                    if let Err(unsent) = self.launch_retry(call, exchange, None, now) {
                        self.failed(call, Failure::NotSent(unsent.reason));
                    }
                }
                (_, Some(original)) => self.launch(call, original, now),
                (_, None) => self.failed(call, Failure::OtherEra),
            }
        }
    }

    fn launch(&mut self, call: CallId, original: Original, now: Timestamp) {
        let post = self.take_id();
        let mut bytes = Vec::new();
        match self.client.start(post.request_id(), original.call(), now, &mut bytes) {
            Ok(exchange) => self.fly(call, post, exchange.into(), bytes, Some(original)),
            Err(error) => self.failed(call, Failure::Start(error)),
        }
    }

    fn launch_retry(
        &mut self,
        call: CallId,
        exchange: Exchange<InputRequired>,
        original: Option<Original>,
        now: Timestamp,
    ) -> Result<(), Box<NotReady>> {
        let post = self.take_id_for(&exchange.call);
        let mut bytes = Vec::new();
        let retrying = exchange.proceed(post.request_id(), now, &mut bytes).map_err(Box::new)?;
        self.fly(call, post, retrying.into(), bytes, original);
        Ok(())
    }

    pub(super) fn fly(
        &mut self,
        call: CallId,
        post: PostId,
        flying: Flying,
        bytes: Vec<u8>,
        original: Option<Original>,
    ) {
        self.posts.insert(post, call);
        self.calls.insert(call, Entry { original, stage: Stage::Flying(post, flying) });
        let headers = HeaderRules::Modern;
        self.out.push_back(Transmit::Request { post, call: Some(call), bytes, headers });
    }

    /// Takes an exchange off the wire.
    pub(super) fn give_up(&mut self, post: PostId, flying: Flying, reason: &str) {
        self.posts.remove(&post);
        let unsent = self.out.iter().position(|transmit| match transmit {
            Transmit::Request { post: of, .. } => *of == post,
            Transmit::Message { .. } | Transmit::Close { .. } => false,
        });
        if let Some(unsent) = unsent {
            self.out.remove(unsent);
            return;
        }
        let mut bytes = Vec::new();
        match flying {
            Flying::Pending(exchange) => exchange.cancel(reason, &mut bytes),
            Flying::Retrying(exchange) => exchange.cancel(reason, &mut bytes),
        }
        self.out.push_back(if bytes.is_empty() {
            Transmit::Close { post }
        } else {
            Transmit::Message { call: None, bytes, headers: HeaderRules::Modern }
        });
    }

    /// Gives up what takes too long, and goes on with what only waited.
    pub(super) fn wake(&mut self, now: Timestamp) {
        let due: Vec<CallId> = self
            .calls
            .iter()
            .filter(|(_, entry)| entry.due().is_some_and(|due| due <= now))
            .map(|(call, _)| *call)
            .collect();
        for call in due {
            let Some(Entry { original, stage }) = self.calls.remove(&call) else { continue };
            match stage {
                Stage::Flying(post, flying) => {
                    self.give_up(post, flying, "timed out");
                    self.failed(call, Failure::Timeout);
                }
                Stage::Pausing(exchange) if !matches!(self.state, State::Modern) => {
                    // The server has been restarted meanwhile.
                    self.calls.insert(call, Entry { original, stage: Stage::Resumed(exchange) });
                    self.advance(now);
                }
                Stage::Pausing(exchange) => {
                    if let Err(unsent) = self.launch_retry(call, exchange, original, now) {
                        self.failed(call, Failure::NotSent(unsent.reason));
                    }
                }
                stage @ (Stage::Waiting | Stage::Doubted(_) | Stage::Resumed(_) | Stage::Held(_)) => {
                    self.calls.insert(call, Entry { original, stage });
                }
            }
        }
    }

    /// An exchange whose connection broke (R-096, G-29).
    pub(super) fn again<S>(
        &mut self,
        call: CallId,
        exchange: Exchange<S>,
        original: Option<Original>,
        now: Timestamp,
    ) where
        S: Open,
        Flying: From<Exchange<S>>,
    {
        match exchange.lost() {
            Ok(resend) => self.resend(call, resend, original, now),
            Err(_) => {
                let failure = if self.is_pipe() { Failure::Closed } else { Failure::Lost };
                self.failed(call, failure);
            }
        }
    }

    pub(super) fn resend<S>(
        &mut self,
        call: CallId,
        resend: crate::client::Resend<S>,
        original: Option<Original>,
        now: Timestamp,
    ) where
        S: Open,
        Flying: From<Exchange<S>>,
    {
        let post = self.take_id_for(&resend.exchange.call);
        let mut bytes = Vec::new();
        match resend.send(post.request_id(), now, &mut bytes) {
            Ok(exchange) => self.fly(call, post, exchange.into(), bytes, original),
            Err(unsent) => self.failed(call, Failure::NotSent(unsent.reason)),
        }
    }

    /// A modern exchange has come to its end.
    pub(super) fn completed(&mut self, call: CallId, exchange: &Exchange<Complete>) {
        let (rounds, kept) = (exchange.rounds(), !exchange.carried_answers_or_state());
        let result = match exchange.result() {
            Ok(result) => Ok(Box::from(result.as_str())),
            Err(error) => Err(Failure::Peer(error.clone())),
        };
        self.done(call, Outcome { result, era: Some(Era::Modern), rounds, kept });
    }
}
