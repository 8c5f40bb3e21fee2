//! Drives a handler: from its start to its next question or its end.

use alloc::{boxed::Box, collections::VecDeque, string::String, sync::Arc, vec::Vec};
use core::{
    future::Future,
    panic::AssertUnwindSafe,
    pin::Pin,
    task::{Context, Poll, Waker},
};
use std::panic::catch_unwind;

use super::{
    Ctx, HandlerFuture, Output, RpcError,
    commit::Commit,
    shared::{Facts, Shared, Texts},
};
use crate::{
    http::ReplyClass,
    seal::Principal,
    server::{Complete, Exchange, InputRequired, Open, Pending},
    tape::{Drive, Fault, Finish, OnceValues, Outgoing, Step},
    time::Timestamp,
};

/// How often a handler may wake itself in one go before it must let others run (or, where there are no
/// others, is found to be spinning).
const BUDGET: u32 = 128;
const ALONE_BUDGET: u32 = 100_000;

/// How an attempt ended. The reply is in `out`.
#[derive(Debug)]
#[non_exhaustive]
pub enum Outcome<'a> {
    /// With questions.
    InputRequired(Exchange<'a, InputRequired>),
    /// With a result or an error.
    Complete(Exchange<'a, Complete>),
}

impl Outcome<'_> {
    /// What the reply is, for its HTTP status.
    #[must_use]
    pub fn class(&self) -> ReplyClass {
        match self {
            Self::InputRequired(_) => ReplyClass::Result,
            Self::Complete(exchange) => exchange.class(),
        }
    }
}

/// What a poll brought. `out` holds one whole message.
#[derive(Debug)]
#[non_exhaustive]
pub enum RunEvent<'a> {
    /// A notification that belongs to this request.
    Notification,
    /// The reply: nothing comes after it.
    Finished(Outcome<'a>),
}

/// An attempt: a handler that runs against what its exchange has recorded.
///
/// Dropping it cancels the attempt; nothing is sent. Asks that are alive in detached tasks resolve to
/// [`AskError::Ended`](super::AskError::Ended).
#[must_use = "a run does nothing until it is polled"]
pub struct Run<'a> {
    exchange: Option<Exchange<'a, Pending>>,
    shared: Arc<Shared>,
    phase: Phase,
    wake_at: Option<Timestamp>,
    rehearsal: bool,
}

enum Phase {
    /// The handler runs.
    Handler(HandlerFuture),
    /// The handler has returned; what it left to be done at the end runs (A12).
    Commit { output: Output, rest: VecDeque<Commit>, step: Option<HandlerStep> },
    /// The handler is gone; what is left is to reply.
    Reply(Reply),
    /// Over.
    Over,
}

/// What the reply will be.
enum Reply {
    Send(Outgoing),
    Complete(Output),
    Missing(String),
    Fail(RpcError),
}

type HandlerStep = Pin<Box<dyn Future<Output = Result<(), RpcError>> + Send>>;

impl<'a> Run<'a> {
    /// An attempt of `handler` at this exchange.
    pub fn new<S: Open>(exchange: Exchange<'a, S>, handler: impl FnOnce(Ctx) -> HandlerFuture) -> Self {
        Self::with_parts(exchange, Vec::new(), handler)
    }

    pub(super) fn with_parts<S: Open>(
        exchange: Exchange<'a, S>,
        parts: Vec<(String, String)>,
        handler: impl FnOnce(Ctx) -> HandlerFuture,
    ) -> Self {
        let mut exchange = exchange.running();
        let tape = exchange.tape();
        let facts = Facts {
            method: exchange.method(),
            texts: Texts::new(exchange.target(), exchange.arguments()),
            parts,
            capabilities: exchange.meta().capabilities,
            principal: match exchange.principal() {
                Principal::Authenticated(bytes) => Some(bytes.into()),
                Principal::Anonymous => None,
            },
            exchange: exchange.id(),
            started: tape.journal().started(),
            log_level: exchange.meta().log_level,
            progress_token: exchange.meta().progress_token.clone(),
            tickets: exchange.for_tickets(),
        };
        let shared = Shared::new(facts, tape);
        let future = match catch_unwind(AssertUnwindSafe(|| handler(Ctx { shared: shared.clone() }))) {
            Ok(future) => future,
            Err(_) => Box::pin(core::future::ready(Err(RpcError::internal("Internal error")))),
        };
        Self {
            exchange: Some(exchange),
            shared,
            phase: Phase::Handler(future),
            wake_at: None,
            rehearsal: false,
        }
    }

    /// A second run of the same bytes: with the once-values of the first, and without its commit.
    pub(super) fn rehearse(mut self, once: Option<OnceValues>) -> Self {
        if let Some(once) = once {
            self.rehearsal = true;
            self.shared.lock().tape.lend(once);
        }
        self
    }

    /// The exchange's name, for logs.
    #[must_use]
    pub fn exchange(&self) -> crate::seal::ExchangeId {
        self.shared.facts.exchange
    }

    pub(super) const fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Whether the handler has succeeded and its commit has begun: from here on a closed connection no longer
    /// cancels it (A12).
    #[must_use]
    pub const fn is_committing(&self) -> bool {
        matches!(self.phase, Phase::Commit { .. })
    }

    /// When to poll again even if nothing wakes: a replayed round waits for asks that something else must
    /// bring (A3).
    #[must_use]
    pub const fn wake_at(&self) -> Option<Timestamp> {
        self.wake_at
    }

    /// Runs the handler without a runtime, to its next question or its end. The reply is appended to `out`.
    /// Notifications are not sent (there is no stream to send them on).
    ///
    /// Nothing but answers can wake the handler: one that awaits anything else ends with `-32603`, and the log
    /// says so (A2).
    pub fn run(mut self, now: Timestamp, out: &mut Vec<u8>) -> Outcome<'a> {
        let mut cx = Context::from_waker(Waker::noop());
        loop {
            let from = out.len();
            match self.advance(&mut cx, Drive::Alone, now, out) {
                Poll::Ready(RunEvent::Finished(outcome)) => return outcome,
                Poll::Ready(RunEvent::Notification) => out.truncate(from),
                // `Drive::Alone` never waits.
                Poll::Pending => {}
            }
        }
    }

    /// Runs the handler under a runtime, as far as it gets now. Ready with each notification and, last, with
    /// the reply; `out` then holds that one message.
    ///
    /// It suspends as soon as the handler is blocked on asks, even if a sibling in a `join!` still waits for
    /// I/O: it will run again.
    pub fn poll_run(
        &mut self,
        cx: &mut Context<'_>,
        now: Timestamp,
        out: &mut Vec<u8>,
    ) -> Poll<RunEvent<'a>> {
        self.advance(cx, Drive::Runtime, now, out)
    }

    fn advance(
        &mut self,
        cx: &mut Context<'_>,
        drive: Drive,
        now: Timestamp,
        out: &mut Vec<u8>,
    ) -> Poll<RunEvent<'a>> {
        self.shared.flag.set(cx.waker());
        self.wake_at = None;
        self.shared.lock().waiting = false;
        let waker = Waker::from(self.shared.clone());
        let mut inner_cx = Context::from_waker(&waker);
        let mut budget = if drive == Drive::Alone { ALONE_BUDGET } else { BUDGET };
        loop {
            let message = self.shared.lock().outbox.pop_front();
            if let Some(message) = message {
                out.extend_from_slice(&message);
                return Poll::Ready(RunEvent::Notification);
            }
            match &mut self.phase {
                Phase::Over => return Poll::Pending,
                Phase::Reply(_) => {
                    return self
                        .reply(now, out)
                        .map_or(Poll::Pending, |outcome| Poll::Ready(RunEvent::Finished(outcome)));
                }
                Phase::Handler(future) => {
                    let polled = catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(&mut inner_cx)));
                    match polled {
                        Err(_) => self.panicked(),
                        Ok(Poll::Ready(result)) => self.returned(result, now),
                        Ok(Poll::Pending) if self.shared.flag.take() => {
                            budget -= 1;
                            if budget == 0 {
                                if drive == Drive::Alone {
                                    self.fault(&Fault::Spinning);
                                } else {
                                    cx.waker().wake_by_ref();
                                    return Poll::Pending;
                                }
                            }
                        }
                        Ok(Poll::Pending) => {
                            if self.blocked(drive, now).is_pending() && self.shared.waits() {
                                return Poll::Pending;
                            }
                        }
                    }
                }
                Phase::Commit { step: Some(step), .. } => {
                    let polled = catch_unwind(AssertUnwindSafe(|| step.as_mut().poll(&mut inner_cx)));
                    match polled {
                        Err(_) => self.panicked(),
                        Ok(Poll::Ready(Err(error))) => self.conclude(Reply::Fail(error)),
                        Ok(Poll::Ready(Ok(()))) => self.next_commit(),
                        Ok(Poll::Pending) if drive == Drive::Alone && !self.shared.flag.take() => {
                            self.fault(&Fault::Stalled)
                        }
                        Ok(Poll::Pending) if drive == Drive::Alone => {
                            budget -= 1;
                            if budget == 0 {
                                self.fault(&Fault::Spinning);
                            }
                        }
                        Ok(Poll::Pending) if self.shared.waits() => return Poll::Pending,
                        // What it said meanwhile goes out first.
                        Ok(Poll::Pending) => {}
                    }
                }
                Phase::Commit { step: None, .. } => self.next_commit(),
            }
        }
    }

    /// The handler can get no further by itself. Pending: wait for something else than an answer.
    fn blocked(&mut self, drive: Drive, now: Timestamp) -> Poll<()> {
        loop {
            let mut inner = self.shared.lock();
            let step = inner.tape.step(drive, now);
            // Set under the lock under which the tape said so: what another thread asks next is not missed.
            inner.waiting = matches!(step, Step::Wait(_));
            drop(inner);
            match step {
                Step::Released(tickets) if tickets.is_empty() => {}
                Step::Released(tickets) => {
                    self.shared.wake(&tickets);
                    return Poll::Ready(());
                }
                Step::Wait(until) => {
                    self.wake_at = until;
                    return Poll::Pending;
                }
                Step::Send(outgoing) => {
                    self.conclude(Reply::Send(outgoing));
                    return Poll::Ready(());
                }
                Step::Missing(data) => {
                    self.conclude(Reply::Missing(data));
                    return Poll::Ready(());
                }
                Step::Fault(fault) => {
                    self.fault(&fault);
                    return Poll::Ready(());
                }
            }
        }
    }

    /// The handler has returned (A9).
    fn returned(&mut self, result: Result<Output, RpcError>, now: Timestamp) {
        let finish = self.shared.lock().tape.finish(now);
        match finish {
            Finish::Return => match result {
                Err(error) => self.conclude(Reply::Fail(error)),
                Ok(output) => {
                    let mut inner = self.shared.lock();
                    let rest = core::mem::take(&mut inner.commits);
                    inner.committed = !rest.is_empty();
                    drop(inner);
                    let rest = if output.is_error || self.rehearsal { VecDeque::new() } else { rest };
                    self.phase = Phase::Commit { output, rest, step: None };
                }
            },
            Finish::Send(outgoing) => self.conclude(Reply::Send(outgoing)),
            Finish::Missing(data) => self.conclude(Reply::Missing(data)),
            Finish::Fault(fault) => self.fault(&fault),
        }
    }

    fn next_commit(&mut self) {
        let Phase::Commit { rest, step, .. } = &mut self.phase else { return };
        if let Some(next) = rest.pop_front() {
            *step = Some(next());
            return;
        }
        if let Phase::Commit { output, .. } = core::mem::replace(&mut self.phase, Phase::Over) {
            self.conclude(Reply::Complete(output));
        }
    }

    fn fault(&mut self, fault: &Fault) {
        crate::trace::warn!(exchange = %self.exchange(), target = self.shared.facts.texts.target(), fault = %fault, "an attempt failed");
        self.conclude(Reply::Fail(fault.error()));
    }

    /// A panic's message may hold anything: it goes nowhere (the panic hook has had it).
    fn panicked(&mut self) {
        crate::trace::warn!(exchange = %self.exchange(), target = self.shared.facts.texts.target(), "a handler panicked");
        self.conclude(Reply::Fail(RpcError::internal("Internal error")));
    }

    /// Ends the attempt: drops the handler, ends what is still alive of it. Its notifications go out before the reply.
    fn conclude(&mut self, reply: Reply) {
        // Dropping a handler's future runs foreign code, which may panic once more.
        let phase = core::mem::replace(&mut self.phase, Phase::Over);
        let _ = catch_unwind(AssertUnwindSafe(|| drop(phase)));
        self.shared.end();
        self.phase = Phase::Reply(reply);
    }

    /// Writes the reply; `None` if that was done before.
    fn reply(&mut self, now: Timestamp, out: &mut Vec<u8>) -> Option<Outcome<'a>> {
        let Phase::Reply(reply) = core::mem::replace(&mut self.phase, Phase::Over) else { return None };
        let mut exchange = self.exchange.take()?;
        let mut inner = self.shared.lock();
        exchange.set_journal(inner.tape.take_journal());
        let (notes, divergences) = (inner.tape.take_notes(), inner.tape.divergences().to_vec());
        drop(inner);
        // Foreign code: not under the lock.
        exchange.observe_run(&notes, &divergences);
        Some(match reply {
            Reply::Send(outgoing) => match exchange.suspend(&outgoing, now, out) {
                Ok(exchange) => Outcome::InputRequired(exchange),
                Err((exchange, error)) => {
                    crate::trace::warn!(exchange = %exchange.id(), error = %error, "a question was not sent");
                    Outcome::Complete(exchange)
                }
            },
            Reply::Complete(output) => Outcome::Complete(exchange.complete_json(&output.json, out)),
            Reply::Missing(data) => Outcome::Complete(exchange.missing(data, out)),
            Reply::Fail(error) => Outcome::Complete(exchange.fail(&error, out)),
        })
    }
}

impl Drop for Run<'_> {
    fn drop(&mut self) {
        // Before what is alive elsewhere learns of the end, so that nothing wakes a handler that is going away.
        let phase = core::mem::replace(&mut self.phase, Phase::Over);
        let _ = catch_unwind(AssertUnwindSafe(|| drop(phase)));
        self.shared.end();
    }
}

impl core::fmt::Debug for Run<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Run").field("exchange", &self.exchange).finish_non_exhaustive()
    }
}
