//! Single use of the state of a return-style handler's attempt (B1…B7).

use alloc::{boxed::Box, vec::Vec};
use core::task::Poll;

use super::{
    Outcome, Output, RpcError,
    single::{Single, Turn},
};
use crate::{
    error::ErrorCode,
    http::ReplyClass,
    jsonrpc::Json,
    ledger::{Command, Refusal, ReplyKind, StoreEvent, StoredReply},
    server::{Complete, Exchange, InputRequests, InputRequired, Open, Pending, RequireError},
    time::Timestamp,
};

/// An attempt of a return-style handler with a ledger: what [`Run`](super::Run) is to a handler that asks by awaiting.
///
/// Poll it until it says [`Look`](AttemptEvent::Look), and on while the handler works, so that the claim's lease is renewed. The
/// handler looks at the answers in the [exchange](Self::exchange) and ends with one of [`require`](Self::require),
/// [`complete`](Self::complete) and [`fail`](Self::fail), of which the first counts, and none before it may look or after the
/// attempt was given up: those do nothing. The reply comes with [`Finished`](AttemptEvent::Finished), once it is
/// stored (B3). At a first request, and without a ledger, it says so at once.
///
/// To give it up, [`cancel`](Self::cancel) it and poll it to its end. One that is dropped counts as crashed: its lease runs out.
///
/// ```
/// # use core::task::Poll;
/// # use mrtr_core::{Timestamp, handler::{Attempt, AttemptEvent, ToolResult}, ledger::Memory, server::{Exchange, Open}};
/// fn serve<S: Open>(exchange: Exchange<'_, S>, store: &mut Memory, now: Timestamp) -> Vec<u8> {
///     let (mut attempt, mut out) = (Attempt::new(exchange), Vec::new());
///     loop {
///         match attempt.poll(now, &mut out) {
///             Poll::Ready(AttemptEvent::Store(command)) => {
///                 let event = store.apply(now, &command);
///                 attempt.handle_store(now, event);
///             }
///             Poll::Ready(AttemptEvent::Look) => attempt.complete(&ToolResult::text("done").into()),
///             Poll::Ready(AttemptEvent::Finished(_)) => return out,
///             _ => { /* wait until `wake_at` */ }
///         }
///     }
/// }
/// ```
#[must_use = "an attempt does nothing until it is polled"]
pub struct Attempt<'a> {
    stage: Stage<'a>,
    /// Between a claim's begin and its end.
    single: Option<Box<Single>>,
    wake_at: Option<Timestamp>,
}

/// What a poll brought.
#[derive(Debug)]
#[non_exhaustive]
pub enum AttemptEvent<'a> {
    /// For the ledger's store. Carry it out once, report with [`Attempt::handle_store`], and go on polling meanwhile.
    Store(Command),
    /// The handler may be called. Given out once.
    Look,
    /// The reply, which is in `out`: nothing comes after it.
    Finished(Outcome<'a>),
}

enum Stage<'a> {
    /// The ledger is asked.
    Claim(Exchange<'a, Pending>),
    /// The handler looks.
    Look(Exchange<'a, Pending>),
    /// The reply is written; the ledger is to know of it before it goes out.
    Settle(Vec<u8>, Box<Outcome<'a>>),
    Over,
}

/// The questions are out, or why not.
type Asked<'a> = Result<Exchange<'a, InputRequired>, (Exchange<'a, Complete>, RequireError)>;

impl<'a> Attempt<'a> {
    /// An attempt at this exchange.
    pub fn new<S: Open>(exchange: Exchange<'a, S>) -> Self {
        let mut exchange = exchange.either();
        let single = exchange.take_claim().map(|to_claim| Box::new(Single::new(to_claim)));
        if single.is_some() {
            exchange.tell_later();
        }
        Self { stage: Stage::Claim(exchange), single, wake_at: None }
    }

    /// The exchange, as long as the handler may look at it.
    #[must_use]
    pub const fn exchange(&self) -> Option<&Exchange<'a, Pending>> {
        match &self.stage {
            Stage::Claim(exchange) | Stage::Look(exchange) => Some(exchange),
            Stage::Settle(..) | Stage::Over => None,
        }
    }

    /// Whether an entry of the ledger waits for its end.
    #[must_use]
    pub const fn is_claimed(&self) -> bool {
        self.single.is_some()
    }

    /// When to poll again even if nothing happens.
    #[must_use]
    pub const fn wake_at(&self) -> Option<Timestamp> {
        self.wake_at
    }

    /// Reports what the store said; then poll again.
    pub fn handle_store(&mut self, now: Timestamp, event: StoreEvent) {
        if let Some(single) = &mut self.single {
            single.handle_store(now, event);
        }
    }

    /// Nobody waits for the reply any more: gives the state back (B5), unless the reply is made already.
    pub fn cancel(&mut self) {
        match &self.stage {
            Stage::Claim(_) => {
                if let Some(single) = &mut self.single {
                    single.cancel();
                }
            }
            Stage::Look(_) => self.break_off(Refusal::Cancelled),
            Stage::Settle(..) | Stage::Over => {}
        }
    }

    /// Goes on as far as it gets. `out` holds the whole reply when it is [`Finished`](AttemptEvent::Finished).
    pub fn poll(&mut self, now: Timestamp, out: &mut Vec<u8>) -> Poll<AttemptEvent<'a>> {
        self.wake_at = None;
        loop {
            let turn = match &mut self.single {
                Some(single) => single.poll(now),
                // Not covered, or not any more.
                None if matches!(self.stage, Stage::Claim(_)) => Turn::Granted,
                None if matches!(self.stage, Stage::Settle(..)) => Turn::Own,
                None => Turn::Idle,
            };
            match turn {
                Turn::Store(command) => return Poll::Ready(AttemptEvent::Store(command)),
                Turn::Wait(at) => {
                    self.wake_at = Some(at);
                    return Poll::Pending;
                }
                Turn::Idle => return Poll::Pending,
                Turn::Granted => {
                    if let Stage::Claim(exchange) = core::mem::replace(&mut self.stage, Stage::Over) {
                        self.stage = Stage::Look(exchange);
                        return Poll::Ready(AttemptEvent::Look);
                    }
                }
                // There are no commits; what else may begin is the handler's reply.
                Turn::Commit => {}
                Turn::Superseded => {
                    if matches!(self.stage, Stage::Look(_)) {
                        self.break_off(Refusal::Busy);
                    }
                }
                Turn::Own => {
                    self.single = None;
                    let Stage::Settle(message, outcome) = core::mem::replace(&mut self.stage, Stage::Over)
                    else {
                        return Poll::Pending;
                    };
                    out.extend_from_slice(&message);
                    return Poll::Ready(AttemptEvent::Finished(outcome.told()));
                }
                Turn::Replay(stored) => return self.otherwise(Ok(&stored), out),
                Turn::Refuse(refusal) => {
                    let refusal = if refusal == Refusal::Cancelled { Refusal::Busy } else { refusal };
                    return self.otherwise(Err(&refusal.to_error()), out);
                }
            }
        }
    }

    /// Ends with these questions and a state of the handler's own, as [`Exchange::require`].
    ///
    /// # Errors
    ///
    /// Why the questions could not be asked; the reply says so.
    pub fn require<T: serde::Serialize + ?Sized>(
        &mut self,
        asks: InputRequests,
        state: &T,
        now: Timestamp,
    ) -> Result<(), RequireError> {
        self.ask(|exchange, out| exchange.try_require(asks, state, now, out))
    }

    /// [`require`](Self::require) with a state that is JSON already.
    ///
    /// # Errors
    ///
    /// As for [`require`](Self::require).
    pub fn require_json(
        &mut self,
        asks: InputRequests,
        state: Json<'_>,
        now: Timestamp,
    ) -> Result<(), RequireError> {
        self.ask(|exchange, out| exchange.require_text(asks, state.as_str().into(), now, out))
    }

    fn ask(
        &mut self,
        write: impl FnOnce(Exchange<'a, Pending>, &mut Vec<u8>) -> Asked<'a>,
    ) -> Result<(), RequireError> {
        let mut result = Ok(());
        self.conclude(|exchange, out| match write(exchange, out) {
            Ok(exchange) => (Some(ReplyKind::Interim), Outcome::InputRequired(exchange)),
            Err((exchange, error)) => {
                result = Err(error);
                (None, Outcome::Complete(exchange))
            }
        });
        result
    }

    /// Ends with a result.
    pub fn complete(&mut self, output: &Output) {
        self.conclude(|exchange, out| {
            let exchange = exchange.complete_output(output, out);
            // What cannot be sent has become an error.
            let sent = exchange.class() == ReplyClass::Result;
            let kind = if sent { ReplyKind::Complete } else { ReplyKind::HandlerError };
            (Some(kind), Outcome::Complete(exchange))
        });
    }

    /// Ends with an error of the handler's. One that says that a capability is missing uses nothing up (B5).
    pub fn fail(&mut self, error: &RpcError) {
        self.conclude(|exchange, out| {
            let kind = (error.code != ErrorCode::MISSING_CAPABILITY).then_some(ReplyKind::HandlerError);
            (kind, Outcome::Complete(exchange.fail(error, out)))
        });
    }

    /// Another copy of the retry carries it out, and tells the observer of it.
    fn break_off(&mut self, refusal: Refusal) {
        self.conclude(|mut exchange, out| {
            exchange.tell_never();
            (None, Outcome::Complete(exchange.fail(&refusal.to_error(), out)))
        });
    }

    /// Writes the reply and tells the ledger (B5). Nothing happens when the handler may not, or no longer, reply.
    fn conclude(
        &mut self,
        write: impl FnOnce(Exchange<'a, Pending>, &mut Vec<u8>) -> (Option<ReplyKind>, Outcome<'a>),
    ) {
        match core::mem::replace(&mut self.stage, Stage::Over) {
            Stage::Look(exchange) => {
                let mut message = Vec::new();
                let (kind, outcome) = write(exchange, &mut message);
                if let Some(single) = &mut self.single {
                    single.finish(kind, &message);
                }
                self.stage = Stage::Settle(message, Box::new(outcome));
            }
            other @ (Stage::Claim(_) | Stage::Settle(..) | Stage::Over) => self.stage = other,
        }
    }

    /// Ends with another reply than its own.
    fn otherwise(
        &mut self,
        reply: Result<&StoredReply, &RpcError>,
        out: &mut Vec<u8>,
    ) -> Poll<AttemptEvent<'a>> {
        self.single = None;
        let outcome = match core::mem::replace(&mut self.stage, Stage::Over) {
            Stage::Claim(exchange) | Stage::Look(exchange) => instead(exchange, reply, out),
            Stage::Settle(_, outcome) => match *outcome {
                Outcome::InputRequired(exchange) => instead(exchange, reply, out),
                Outcome::Complete(exchange) | Outcome::Replayed(exchange) => instead(exchange, reply, out),
            },
            Stage::Over => return Poll::Pending,
        };
        Poll::Ready(AttemptEvent::Finished(outcome))
    }
}

impl core::fmt::Debug for Attempt<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Attempt").field("exchange", &self.exchange()).finish_non_exhaustive()
    }
}

fn instead<'a, S>(
    exchange: Exchange<'a, S>,
    reply: Result<&StoredReply, &RpcError>,
    out: &mut Vec<u8>,
) -> Outcome<'a> {
    match reply {
        Ok(stored) => Outcome::Replayed(exchange.replay(stored, out)),
        Err(error) => Outcome::Complete(exchange.fail_instead(error, out)),
    }
}
