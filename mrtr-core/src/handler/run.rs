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
    shared::{Elsewhere, Facts, Shared, Texts},
    single::Single,
};
use crate::{
    error::ErrorCode,
    http::ReplyClass,
    ledger::{Command, StoreEvent},
    seal::Principal,
    server::{Complete, Exchange, InputRequired, Open, Pending},
    tape::{Drive, Fault, Finish, OnceValues, Outgoing, Step},
    time::Timestamp,
};

mod covered;

use covered::Next;

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
    /// With the reply that an earlier copy of this retry was given, from the ledger (B3).
    Replayed(Exchange<'a, Complete>),
}

impl Outcome<'_> {
    /// What the reply is, for its HTTP status.
    #[must_use]
    pub fn class(&self) -> ReplyClass {
        match self {
            Self::InputRequired(_) => ReplyClass::Result,
            Self::Complete(exchange) | Self::Replayed(exchange) => exchange.class(),
        }
    }
}

/// What a poll brought. Except for a command, `out` holds one whole message.
#[derive(Debug)]
#[non_exhaustive]
pub enum RunEvent<'a> {
    /// For the ledger's store, with a ledger only. Carry it out once, report with [`Run::handle_store`], and go
    /// on polling meanwhile: the handler may be running.
    Store(Command),
    /// A notification that belongs to this request.
    Notification,
    /// The reply: nothing comes after it.
    Finished(Outcome<'a>),
}

/// An attempt: a handler that runs against what its exchange has recorded.
///
/// Dropping it cancels the attempt; nothing is sent. Asks that are alive in detached tasks resolve to
/// [`AskError::Ended`](super::AskError::Ended).
///
/// With a ledger ([`Config::ledger`](crate::server::Config::ledger)) a retry's handler is called only once the
/// claim on its state is granted (B1), and the reply is out only once it is stored (B3). To cancel such an attempt,
/// [`cancel`](Self::cancel) it and poll it to its end, which gives the state back. One that is dropped counts as
/// crashed: its lease runs out.
#[must_use = "a run does nothing until it is polled"]
pub struct Run<'a> {
    exchange: Option<Exchange<'a, Pending>>,
    shared: Arc<Shared>,
    phase: Phase<'a>,
    /// Between a claim's begin and its end.
    single: Option<Box<Single>>,
    wake_at: Option<Timestamp>,
    rehearsal: bool,
    /// The same for the ledger.
    single_at: Option<Timestamp>,
    /// Why it broke off, if the handler or a bound is the reason.
    fault: Option<Fault>,
}

/// What calls the handler.
type Start<'a> = Box<dyn FnOnce(Ctx) -> HandlerFuture + Send + 'a>;

enum Phase<'a> {
    /// The ledger is asked.
    Claim(Start<'a>),
    /// The handler runs.
    Handler(HandlerFuture),
    /// The handler has returned; the ledger is to know of the commit before it begins (B6).
    Begin { output: Output, rest: VecDeque<Commit> },
    /// The handler has returned; what it left to be done at the end runs (A12).
    Commit { output: Output, rest: VecDeque<Commit>, step: Option<HandlerStep> },
    /// The handler is gone; what is left is to reply.
    Reply(Reply),
    /// The reply is written; the ledger is to know of it before it goes out.
    Settle { message: Vec<u8>, outcome: Box<Outcome<'a>> },
    /// Over.
    Over,
}

/// What the reply will be.
enum Reply {
    Send(Outgoing),
    Complete(Output),
    Missing(String),
    /// The handler's own error, or that of a step of its commit.
    Fail(RpcError),
    /// The attempt broke off: no end that the handler chose, so none that uses up the state (B5).
    Break(RpcError),
}

type HandlerStep = Pin<Box<dyn Future<Output = Result<(), RpcError>> + Send>>;

impl<'a> Run<'a> {
    /// An attempt of `handler` at this exchange.
    pub fn new<S: Open>(
        exchange: Exchange<'a, S>,
        handler: impl FnOnce(Ctx) -> HandlerFuture + Send + 'a,
    ) -> Self {
        Self::with_parts(exchange, Vec::new(), handler)
    }

    /// An attempt of a handler that a [route](crate::catalog::Route) leads to, with the parts of the uri that it
    /// found.
    pub fn with_parts<S: Open>(
        exchange: Exchange<'a, S>,
        parts: Vec<(String, String)>,
        handler: impl FnOnce(Ctx) -> HandlerFuture + Send + 'a,
    ) -> Self {
        let mut exchange = exchange.either();
        let to_claim = exchange.take_claim();
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
        let mut run = Self {
            exchange: Some(exchange),
            shared,
            phase: Phase::Over,
            single: None,
            wake_at: None,
            rehearsal: false,
            single_at: None,
            fault: None,
        };
        match to_claim {
            None => run.start(handler),
            Some(to_claim) => {
                run.single = Some(Box::new(Single::new(to_claim)));
                run.phase = Phase::Claim(Box::new(handler));
            }
        }
        run
    }

    /// A second run of the same bytes: with the once-values of the first, and without its commit.
    pub(super) fn rehearse(mut self, once: Option<OnceValues>) -> Self {
        if let Some(once) = once {
            self.rehearsal = true;
            self.shared.lock().tape.lend(once);
        }
        self
    }

    /// Calls the handler.
    fn start(&mut self, handler: impl FnOnce(Ctx) -> HandlerFuture) {
        let ctx = Ctx { shared: self.shared.clone() };
        match catch_unwind(AssertUnwindSafe(|| handler(ctx))) {
            Ok(future) => self.phase = Phase::Handler(future),
            Err(_) => self.panicked(),
        }
    }

    /// The exchange's name, for logs.
    #[must_use]
    pub fn exchange(&self) -> crate::seal::ExchangeId {
        self.shared.facts.exchange
    }

    /// Why the attempt broke off, if the handler or a bound is the reason: for a log of one's own. The peer is told
    /// less (see [`Fault::error`]).
    #[must_use]
    pub const fn fault(&self) -> Option<&Fault> {
        self.fault.as_ref()
    }

    pub(super) const fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Whether the handler has succeeded and its commit has begun: from here on a closed connection no longer
    /// cancels it (A12, B6).
    #[must_use]
    pub const fn is_committing(&self) -> bool {
        match self.phase {
            Phase::Begin { .. } | Phase::Commit { .. } | Phase::Settle { .. } => true,
            Phase::Claim(_) | Phase::Handler(_) | Phase::Reply(_) | Phase::Over => false,
        }
    }

    /// When to poll again even if nothing wakes: a replayed round waits for asks that something else must
    /// bring (A3), a claim for another copy's reply (B4), a lease for its renewal.
    #[must_use]
    pub fn wake_at(&self) -> Option<Timestamp> {
        match (self.wake_at, self.single_at) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        }
    }

    /// Runs the handler without a runtime, to its next question or its end. The reply is appended to `out`.
    /// Notifications are not sent (there is no stream to send them on).
    ///
    /// Nothing but answers can wake the handler: one that awaits anything else ends with `-32603`, and the log
    /// says so (A2). With a ledger there is no store: it counts as down (B7). See
    /// [`run_with`](Self::run_with).
    pub fn run(self, now: Timestamp, out: &mut Vec<u8>) -> Outcome<'a> {
        self.run_with(now, out, &mut |_| StoreEvent::Unavailable)
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
        self.single_at = None;
        let waker = Waker::from(self.shared.clone());
        let mut inner_cx = Context::from_waker(&waker);
        let mut budget = if drive == Drive::Alone { ALONE_BUDGET } else { BUDGET };
        loop {
            let message = self.shared.lock().outbox.pop_front();
            if let Some(message) = message {
                out.extend_from_slice(&message);
                return Poll::Ready(RunEvent::Notification);
            }
            match self.turn(now, out) {
                Next::Give(event) => return Poll::Ready(event),
                Next::Again => continue,
                Next::Go => {}
            }
            match &mut self.phase {
                Phase::Over | Phase::Claim(_) | Phase::Begin { .. } | Phase::Settle { .. } => {
                    return Poll::Pending;
                }
                Phase::Reply(_) if self.single.is_some() => self.settle(now),
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
                                    self.fail(Fault::Spinning);
                                } else {
                                    cx.waker().wake_by_ref();
                                    return Poll::Pending;
                                }
                            }
                        }
                        Ok(Poll::Pending) if self.shared.lock().elsewhere == Elsewhere::Running => {
                            if drive == Drive::Alone {
                                // Nobody else is there to say that the code rests.
                                self.fail(Fault::Stalled);
                            } else if self.shared.waits() {
                                return Poll::Pending;
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
                            self.fail(Fault::Stalled)
                        }
                        Ok(Poll::Pending) if drive == Drive::Alone => {
                            budget -= 1;
                            if budget == 0 {
                                self.fail(Fault::Spinning);
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
                    self.shared.lock().set_running();
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
                    self.fail(fault);
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
                // It says that a capability is missing, as the gate does, and uses nothing up (B5).
                Err(error) if error.code == ErrorCode::MISSING_CAPABILITY => {
                    self.conclude(Reply::Break(error));
                }
                Err(error) => self.conclude(Reply::Fail(error)),
                Ok(output) => {
                    let rest = self.shared.close();
                    let rest = if output.is_error || self.rehearsal { VecDeque::new() } else { rest };
                    self.phase = match &mut self.single {
                        Some(single) if !rest.is_empty() => {
                            single.begin_commit();
                            Phase::Begin { output, rest }
                        }
                        Some(_) | None => Phase::Commit { output, rest, step: None },
                    };
                }
            },
            Finish::Send(outgoing) => self.conclude(Reply::Send(outgoing)),
            Finish::Missing(data) => self.conclude(Reply::Missing(data)),
            Finish::Fault(fault) => self.fail(fault),
        }
    }

    fn next_commit(&mut self) {
        let Phase::Commit { rest, step, .. } = &mut self.phase else { return };
        if rest.is_empty() && step.is_some() {
            *rest = self.shared.more_commits();
        }
        if let Some(next) = rest.pop_front() {
            *step = Some(next());
            return;
        }
        if let Phase::Commit { output, .. } = core::mem::replace(&mut self.phase, Phase::Over) {
            self.conclude(Reply::Complete(output));
        }
    }

    fn fail(&mut self, fault: Fault) {
        crate::trace::warn!(exchange = %self.exchange(), target = self.shared.facts.texts.target(), fault = %fault, "an attempt failed");
        self.conclude(Reply::Break(fault.error()));
        self.fault = Some(fault);
    }

    /// A panic's message may hold anything: it goes nowhere (the panic hook has had it).
    fn panicked(&mut self) {
        crate::trace::warn!(exchange = %self.exchange(), target = self.shared.facts.texts.target(), "a handler panicked");
        self.conclude(Reply::Break(RpcError::internal("Internal error")));
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
        self.write(reply, now, out)
    }

    fn write(&mut self, reply: Reply, now: Timestamp, out: &mut Vec<u8>) -> Option<Outcome<'a>> {
        let mut exchange = self.exchange.take()?;
        let mut inner = self.shared.lock();
        exchange.set_journal(inner.tape.take_journal());
        let (notes, divergences) = (inner.tape.take_notes(), inner.tape.divergences().to_vec());
        drop(inner);
        // Foreign code: not under the lock.
        exchange.observe_run(notes, divergences);
        Some(match reply {
            Reply::Send(outgoing) => match exchange.suspend(&outgoing, now, out) {
                Ok(exchange) => Outcome::InputRequired(exchange),
                Err((exchange, error)) => {
                    crate::trace::warn!(exchange = %exchange.id(), error = %error, "a question was not sent");
                    self.fault = Some(error.into());
                    Outcome::Complete(exchange)
                }
            },
            Reply::Complete(output) => Outcome::Complete(exchange.complete_json(&output.json, out)),
            Reply::Missing(data) => Outcome::Complete(exchange.missing(data, out)),
            Reply::Fail(error) | Reply::Break(error) => Outcome::Complete(exchange.fail(&error, out)),
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
