//! What a ledger adds to a run: the claim before it, the entry after it (B1…B7).

use alloc::{boxed::Box, vec::Vec};
use core::task::{Context, Poll, Waker};

use super::{Outcome, Phase, Reply, Run, RunEvent};
use crate::{
    error::RpcError,
    handler::single::Turn,
    http::ReplyClass,
    ledger::{Command, Refusal, ReplyKind, StoreEvent, StoredReply},
    tape::Drive,
    time::Timestamp,
};

/// How a run goes on after the ledger's turn.
pub(super) enum Next<'a> {
    /// With the phase it is in.
    Go,
    /// With another look at itself.
    Again,
    /// Not before this was given out.
    Give(RunEvent<'a>),
}

impl<'a> Run<'a> {
    /// Reports what the store said to a [`RunEvent::Store`]; then poll again. Ignored when no command is out.
    pub fn handle_store(&mut self, now: Timestamp, event: StoreEvent) {
        if let Some(single) = &mut self.single {
            single.handle_store(now, event);
        }
    }

    /// Whether an entry of the ledger waits for this run's end: instead of dropping it,
    /// [`cancel`](Self::cancel) it and poll on.
    #[must_use]
    pub const fn is_claimed(&self) -> bool {
        self.single.is_some()
    }

    /// Nobody waits for the reply any more: stops the handler and gives the state back (B5). Poll to the end,
    /// and throw away what comes. A commit that has begun goes on (A12, B6), and a reply that is made is kept.
    pub fn cancel(&mut self) {
        match &self.phase {
            Phase::Claim(_) => {
                if let Some(single) = &mut self.single {
                    single.cancel();
                }
            }
            Phase::Handler(_) => self.break_off(Refusal::Cancelled),
            Phase::Begin { .. }
            | Phase::Commit { .. }
            | Phase::Reply(_)
            | Phase::Settle { .. }
            | Phase::Over => {}
        }
    }

    /// Stops the handler. Another copy carries the retry out, now or later, and tells the observer of it; so this one tells
    /// nothing.
    fn break_off(&mut self, refusal: Refusal) {
        if let Some(exchange) = &mut self.exchange {
            exchange.tell_never();
        }
        self.conclude(Reply::Break(refusal.to_error()));
    }

    /// [`run`](Self::run) with a store for the ledger, which answers each command at once.
    ///
    /// Without a runtime nothing can wait: while another copy of the retry runs, the reply is at once the one
    /// that says so, with `data.retry: true` (B4).
    pub fn run_with(
        mut self,
        now: Timestamp,
        out: &mut Vec<u8>,
        store: &mut dyn FnMut(Command) -> StoreEvent,
    ) -> Outcome<'a> {
        let mut cx = Context::from_waker(Waker::noop());
        // The ledger waits for a store that is down; that the time of its few tries passes changes nothing else.
        let (mut time, mut down) = (now, false);
        loop {
            let from = out.len();
            match self.advance(&mut cx, Drive::Alone, time, out) {
                Poll::Ready(RunEvent::Finished(outcome)) => return outcome,
                Poll::Ready(RunEvent::Notification) => out.truncate(from),
                Poll::Ready(RunEvent::Store(command)) => {
                    let event = store(command);
                    down = matches!(event, StoreEvent::Unavailable | StoreEvent::Full);
                    self.handle_store(time, event);
                }
                Poll::Pending => match (self.single_at, &mut self.single) {
                    (Some(_), Some(single)) if !down && matches!(self.phase, Phase::Claim(_)) => {
                        single.cancel();
                    }
                    (Some(at), _) => time = time.max(at),
                    // `Drive::Alone` never waits otherwise.
                    (None, _) => {}
                },
            }
        }
    }

    /// Lets the ledger have its turn.
    pub(super) fn turn(&mut self, now: Timestamp, out: &mut Vec<u8>) -> Next<'a> {
        let Some(single) = &mut self.single else { return Next::Go };
        match single.poll(now) {
            Turn::Store(command) => Next::Give(RunEvent::Store(command)),
            Turn::Wait(at) => {
                self.single_at = Some(at);
                Next::Go
            }
            Turn::Idle => Next::Go,
            Turn::Granted => {
                if let Phase::Claim(start) = core::mem::replace(&mut self.phase, Phase::Over) {
                    self.start(start);
                }
                Next::Again
            }
            Turn::Superseded => {
                if let Phase::Handler(_) = self.phase {
                    self.break_off(Refusal::Busy);
                }
                Next::Again
            }
            Turn::Commit => {
                if matches!(self.phase, Phase::Begin { .. })
                    && let Phase::Begin { output, rest } = core::mem::replace(&mut self.phase, Phase::Over)
                {
                    self.phase = Phase::Commit { output, rest, step: None };
                }
                Next::Again
            }
            Turn::Own => {
                self.single = None;
                if matches!(self.phase, Phase::Settle { .. })
                    && let Phase::Settle { message, outcome } =
                        core::mem::replace(&mut self.phase, Phase::Over)
                {
                    out.extend_from_slice(&message);
                    return Next::Give(RunEvent::Finished(outcome.told()));
                }
                Next::Go
            }
            Turn::Replay(stored) => {
                self.end_otherwise(out, &Otherwise::Replay(stored)).map_or(Next::Go, Next::Give)
            }
            Turn::Refuse(refusal) => {
                crate::trace::warn!(exchange = %self.exchange(), target = self.shared.facts.texts.target(), refusal = %refusal, "the ledger refused a retry");
                // Where nothing waits, the claim was given up because there was somebody to wait for.
                let refusal = if refusal == Refusal::Cancelled { Refusal::Busy } else { refusal };
                self.end_otherwise(out, &Otherwise::Fail(refusal.to_error())).map_or(Next::Go, Next::Give)
            }
        }
    }

    /// The reply is due: writes it, and tells the ledger (B5).
    pub(super) fn settle(&mut self, now: Timestamp) {
        let Phase::Reply(reply) = core::mem::replace(&mut self.phase, Phase::Over) else { return };
        let chosen = match &reply {
            Reply::Send(_) => Some(ReplyKind::Interim),
            Reply::Complete(_) => Some(ReplyKind::Complete),
            Reply::Fail(_) => Some(ReplyKind::HandlerError),
            Reply::Missing(_) | Reply::Break(_) => None,
        };
        let mut message = Vec::new();
        if let Some(exchange) = &mut self.exchange {
            exchange.tell_later();
        }
        let Some(outcome) = self.write(reply, now, &mut message) else { return };
        let kind = match (chosen, outcome.class()) {
            // The next state could not be minted.
            (Some(ReplyKind::Interim), class) if class != ReplyClass::Result => None,
            // What the handler returned could not be sent.
            (Some(_), class) if class != ReplyClass::Result => Some(ReplyKind::HandlerError),
            (kind, _) => kind,
        };
        if let Some(single) = &mut self.single {
            single.finish(kind, &message);
        }
        self.phase = Phase::Settle { message, outcome: Box::new(outcome) };
    }

    /// Ends the run with another reply than its own.
    fn end_otherwise(&mut self, out: &mut Vec<u8>, otherwise: &Otherwise) -> Option<RunEvent<'a>> {
        self.single = None;
        if !matches!(self.phase, Phase::Settle { .. }) {
            // The handler and what it left to be done are dropped, and whatever is alive of it is ended.
            self.conclude(Reply::Break(RpcError::internal("Internal error")));
        }
        let outcome = if let Phase::Settle { outcome, .. } = core::mem::replace(&mut self.phase, Phase::Over)
        {
            match *outcome {
                Outcome::InputRequired(exchange) => otherwise.write(exchange, out),
                Outcome::Complete(exchange) | Outcome::Replayed(exchange) => otherwise.write(exchange, out),
            }
        } else {
            otherwise.write(self.exchange.take()?, out)
        };
        Some(RunEvent::Finished(outcome))
    }
}

impl Outcome<'_> {
    /// The attempt's own reply goes out: so much has happened.
    pub(in crate::handler) fn told(mut self) -> Self {
        match &mut self {
            Self::InputRequired(exchange) => exchange.told(),
            Self::Complete(exchange) => exchange.told(),
            Self::Replayed(_) => {}
        }
        self
    }
}

/// A reply that is not the attempt's own.
enum Otherwise {
    Replay(StoredReply),
    Fail(RpcError),
}

impl Otherwise {
    fn write<'a, S>(&self, exchange: crate::server::Exchange<'a, S>, out: &mut Vec<u8>) -> Outcome<'a> {
        match self {
            Self::Replay(stored) => Outcome::Replayed(exchange.replay(stored, out)),
            Self::Fail(error) => Outcome::Complete(exchange.fail_instead(error, out)),
        }
    }
}
