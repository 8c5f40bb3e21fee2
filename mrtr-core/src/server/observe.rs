//! Tells the observer what happens to an exchange.

use alloc::{sync::Arc, vec::Vec};

use super::{Server, call::Inner};
#[cfg(feature = "std")]
use crate::journal::Divergence;
use crate::{
    audit::{Event, Said},
    error::ErrorCode,
    jsonrpc::Json,
    seal::ExchangeId,
    tape::{Answers, Outgoing},
    wire::{Action, Answer, AskKind, read_answer},
};

/// When the observer is told of an exchange.
#[derive(Default)]
pub(super) enum Telling {
    /// As it happens.
    #[default]
    Now,
    /// Once it is settled that the reply goes out: with a ledger another may go out instead.
    #[cfg(feature = "std")]
    Later(Vec<Told>),
    /// Never: the attempt was broken off, and another one will do what it did not.
    #[cfg(feature = "std")]
    Never,
}

/// An event that waits to be told.
pub(super) enum Told {
    Asked {
        round: u32,
        key: Arc<str>,
        kind: AskKind,
    },
    StateOnly {
        round: u32,
    },
    Answered {
        round: u32,
        key: Arc<str>,
        kind: AskKind,
        said: Said,
    },
    #[cfg(feature = "std")]
    Diverged(Divergence),
    Ended(Option<ErrorCode>),
}

impl Told {
    fn event(&self, exchange: ExchangeId) -> Event<'_> {
        match self {
            Self::Asked { round, key, kind } => Event::Asked { exchange, round: *round, key, kind: *kind },
            Self::StateOnly { round } => Event::StateOnly { exchange, round: *round },
            Self::Answered { round, key, kind, said } => {
                Event::Answered { exchange, round: *round, key, kind: *kind, said: *said }
            }
            #[cfg(feature = "std")]
            Self::Diverged(divergence) => Event::Diverged { exchange, divergence },
            Self::Ended(error) => Event::Ended { exchange, error: *error },
        }
    }
}

impl Server {
    pub(crate) fn observe(&self, event: &Event<'_>) {
        if let Some(observer) = &self.config().observer {
            observer.observe(event);
        }
    }

    fn is_observed(&self) -> bool {
        self.config().observer.is_some()
    }
}

impl Inner<'_> {
    fn tell(&mut self, told: Told) {
        match &mut self.telling {
            Telling::Now => self.server.observe(&told.event(self.exchange)),
            #[cfg(feature = "std")]
            Telling::Later(list) => list.push(told),
            #[cfg(feature = "std")]
            Telling::Never => {}
        }
    }

    /// Tells nothing until [`tell_now`](Self::tell_now).
    #[cfg(feature = "std")]
    pub(super) fn tell_later(&mut self) {
        if matches!(self.telling, Telling::Now) {
            self.telling = Telling::Later(Vec::new());
        }
    }

    /// Tells nothing from now on.
    #[cfg(feature = "std")]
    pub(super) fn tell_never(&mut self) {
        self.telling = Telling::Never;
    }

    /// Tells what has waited.
    #[cfg(feature = "std")]
    pub(super) fn tell_now(&mut self) {
        if let Telling::Later(list) = core::mem::take(&mut self.telling) {
            list.iter().for_each(|told| self.server.observe(&told.event(self.exchange)));
        }
    }

    /// A round that goes out.
    pub(super) fn observe_asks(&mut self, outgoing: &Outgoing, round: u32) {
        if !self.server.is_observed() {
            return;
        }
        if outgoing.asks.is_empty() {
            self.tell(Told::StateOnly { round });
        }
        for ask in &outgoing.asks {
            self.tell(Told::Asked { round, key: ask.key.clone(), kind: ask.request.kind() });
        }
    }

    /// What a handler's run made of the answers it met.
    #[cfg(feature = "std")]
    pub(super) fn observe_run(&mut self, notes: Vec<crate::tape::Note>, divergences: Vec<Divergence>) {
        if !self.server.is_observed() {
            return;
        }
        for divergence in divergences {
            self.tell(Told::Diverged(divergence));
        }
        for crate::tape::Note { round, key, kind, said } in notes {
            self.tell(Told::Answered { round, key, kind, said });
        }
    }

    /// What a return-style server was answered, before its content is judged.
    pub(super) fn observe_answers(&mut self) {
        let (Answers::LastRound(answers), true) = (&self.answers, self.server.is_observed()) else {
            return;
        };
        let Some(last) = self.journal.last_sent() else { return };
        let round = u32::try_from(self.journal.rounds_sent()).unwrap_or(u32::MAX);
        let mut all = Vec::new();
        for (key, text) in answers {
            let Some(asked) = last.asks.iter().find(|asked| *asked.key == **key) else { continue };
            let said = match read_answer(asked.kind, Json::trusted(text)) {
                Ok(Answer::Form { action, .. } | Answer::Url(action)) => match action {
                    Action::Accept => Said::Accept,
                    Action::Decline => Said::Decline,
                    Action::Cancel => Said::Cancel,
                },
                Ok(Answer::Sampling(_) | Answer::Roots(_)) => Said::Result,
                Err(_) => Said::Invalid,
            };
            all.push(Told::Answered { round, key: asked.key.clone(), kind: asked.kind, said });
        }
        all.into_iter().for_each(|told| self.tell(told));
    }

    /// The request has its final answer.
    pub(super) fn observe_end(&mut self, error: Option<ErrorCode>) {
        self.observe_answers();
        if self.server.is_observed() {
            self.tell(Told::Ended(error));
        }
    }
}
