//! Tells the observer what happens to an exchange.

use super::{Server, call::Inner};
use crate::{
    audit::{Event, Said},
    error::ErrorCode,
    jsonrpc::Json,
    tape::{Answers, Outgoing},
    wire::{Action, Answer, read_answer},
};

impl Server {
    pub(crate) fn observe(&self, event: &Event<'_>) {
        if let Some(observer) = &self.config().observer {
            observer.observe(event);
        }
    }
}

impl Inner<'_> {
    /// A round that goes out.
    pub(super) fn observe_asks(&self, outgoing: &Outgoing, round: u32) {
        let exchange = self.exchange;
        if outgoing.asks.is_empty() {
            self.server.observe(&Event::StateOnly { exchange, round });
        }
        for ask in &outgoing.asks {
            self.server.observe(&Event::Asked { exchange, round, key: &ask.key, kind: ask.request.kind() });
        }
    }

    /// What a handler's run made of the answers it met.
    #[cfg(feature = "std")]
    pub(super) fn observe_run(
        &self,
        notes: &[crate::tape::Note],
        divergences: &[crate::journal::Divergence],
    ) {
        let exchange = self.exchange;
        for divergence in divergences {
            self.server.observe(&Event::Diverged { exchange, divergence });
        }
        for crate::tape::Note { round, key, kind, said } in notes {
            self.server.observe(&Event::Answered { exchange, round: *round, key, kind: *kind, said: *said });
        }
    }

    /// What a return-style server was answered, before its content is judged.
    pub(super) fn observe_answers(&self) {
        let (Answers::LastRound(answers), Some(_)) = (&self.answers, &self.server.config().observer) else {
            return;
        };
        let Some(last) = self.journal.last_sent() else { return };
        let round = u32::try_from(self.journal.rounds_sent()).unwrap_or(u32::MAX);
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
            self.server.observe(&Event::Answered {
                exchange: self.exchange,
                round,
                key,
                kind: asked.kind,
                said,
            });
        }
    }

    /// The request has its final answer.
    pub(super) fn observe_end(&self, error: Option<ErrorCode>) {
        self.observe_answers();
        self.server.observe(&Event::Ended { exchange: self.exchange, error });
    }
}
