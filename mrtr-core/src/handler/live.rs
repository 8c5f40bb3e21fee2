//! Drives a handler once, from its start to its end, while its questions are asked over a held connection: the
//! legacy eras (design decision 10). The same tape as in [`run`](super::run), the same rounds.
//!
//! ```text
//!           blocked on asks: Asks            all answered
//!  running ───────────────────────▶ asking ───────────────▶ running ─▶ commit ─▶ Finished
//!     │     blocked on a checkpoint                  time     ▲
//!     └───────────────────────────▶ resting ──────────────────┘
//! ```

use alloc::{boxed::Box, collections::VecDeque, string::String, sync::Arc, vec::Vec};
use core::{
    future::Future,
    panic::AssertUnwindSafe,
    pin::Pin,
    task::{Context, Poll, Waker},
    time::Duration,
};
use std::panic::catch_unwind;

use super::{
    BoxHandler, Ctx, HandlerFuture, Output, RpcError,
    commit::Commit,
    shared::{Facts, Shared, Texts},
};
use crate::{
    audit::Event,
    entropy::Entropy,
    journal::Journal,
    jsonrpc::{Json, RequestId},
    limits::Limits,
    seal::ExchangeId,
    server::Server,
    tape::{
        Drive, Fault, Finish, Note, Outgoing, OutgoingAsk, Step, Tape, TapePolicy, TapeSetup,
        held::{Held, Unsayable},
    },
    time::Timestamp,
    wire::{AskingMethod, ClientCapabilities, InputRequest, LogLevel},
};

/// How often a handler may wake itself in one go before it must let others run.
const BUDGET: u32 = 128;

/// How long a checkpoint rests: doubling from the first to the last.
const REST_FIRST: Duration = Duration::from_millis(250);
const REST_LAST: Duration = Duration::from_secs(5);

/// What a live run is made of.
pub(crate) struct LiveSetup<'a> {
    pub(crate) method: AskingMethod,
    pub(crate) target: &'a str,
    /// An object.
    pub(crate) arguments: Json<'a>,
    pub(crate) parts: Vec<(String, String)>,
    pub(crate) capabilities: ClientCapabilities,
    pub(crate) principal: Option<Box<[u8]>>,
    pub(crate) exchange: ExchangeId,
    pub(crate) progress_token: Option<RequestId>,
    /// What tickets are sealed with: the server, this call's own entropy, the time of receipt.
    pub(crate) tickets: (Server, Arc<Entropy>, Timestamp),
    pub(crate) limits: Limits,
    pub(crate) policy: TapePolicy,
    pub(crate) now: Timestamp,
    /// Whether the peer's revision has words for an ask.
    pub(crate) sayable: fn(&InputRequest<'_>) -> bool,
}

/// What a poll brought.
pub(crate) enum LiveEvent {
    /// A notification that belongs to this request: one whole message.
    Notification(Vec<u8>),
    /// Send these asks, and bring what becomes of each to [`LiveRun::answer`].
    Asks(Vec<OutgoingAsk>),
    /// The handler no longer wants the asks of these keys: cancel their requests.
    Withdrawn(Vec<Arc<str>>),
    /// Over: nothing comes after it.
    Finished(Result<Output, RpcError>),
}

/// A handler that runs once. Dropping it cancels it.
pub(crate) struct LiveRun {
    shared: Arc<Shared>,
    phase: Phase,
    wait: Wait,
    /// When the tape wants to be asked again: it holds the call for an errand behind a url (A10).
    step_at: Option<Timestamp>,
    rest: Duration,
    sayable: fn(&InputRequest<'_>) -> bool,
    deadline: Timestamp,
    events: VecDeque<LiveEvent>,
}

enum Phase {
    Handler(HandlerFuture),
    /// The handler has returned; what it left to be done at the end runs (A12).
    Commit {
        output: Output,
        rest: VecDeque<Commit>,
        step: Option<CommitStep>,
    },
    Over,
}

type CommitStep = Pin<Box<dyn Future<Output = Result<(), RpcError>> + Send>>;

enum Wait {
    /// For nothing of ours.
    Nothing,
    /// For the answers of the round that is out.
    Asks(Vec<(Arc<str>, Option<Held>)>),
    /// For time: a checkpoint.
    Rest(Timestamp),
}

impl LiveRun {
    pub(crate) fn new(setup: LiveSetup<'_>, handler: &BoxHandler) -> Self {
        let deadline = setup.now.saturating_add(setup.limits.exchange);
        let mut tape = TapeSetup::new(setup.exchange, Journal::new(setup.now), deadline);
        tape.capabilities = setup.capabilities;
        tape.limits = setup.limits;
        tape.policy = setup.policy;
        tape.noting = setup.tickets.0.config().observer.is_some();
        let facts = Facts {
            method: setup.method,
            texts: Texts::new(setup.target, setup.arguments),
            parts: setup.parts,
            capabilities: setup.capabilities,
            principal: setup.principal,
            exchange: setup.exchange,
            started: setup.now,
            // The session sorts out what its level does not want: it may change while the call runs.
            log_level: Some(LogLevel::Debug),
            progress_token: setup.progress_token,
            tickets: setup.tickets,
        };
        let shared = Shared::new(facts, Tape::new(tape));
        let future = match catch_unwind(AssertUnwindSafe(|| handler(Ctx { shared: shared.clone() }))) {
            Ok(future) => future,
            Err(_) => Box::pin(core::future::ready(Err(RpcError::internal("Internal error")))),
        };
        shared.flag.mark();
        Self {
            shared,
            phase: Phase::Handler(future),
            wait: Wait::Nothing,
            step_at: None,
            rest: REST_FIRST,
            sayable: setup.sayable,
            deadline,
            events: VecDeque::new(),
        }
    }

    /// Whether the handler has succeeded and its commit has begun: from here on nothing cancels it (A12).
    pub(crate) const fn is_committing(&self) -> bool {
        matches!(self.phase, Phase::Commit { .. })
    }

    /// Whether questions are out.
    pub(crate) const fn is_asking(&self) -> bool {
        matches!(self.wait, Wait::Asks(_))
    }

    /// When to poll again even if nothing wakes.
    pub(crate) fn wake_at(&self) -> Option<Timestamp> {
        match (&self.phase, &self.wait) {
            (Phase::Handler(_), Wait::Asks(_)) => Some(self.deadline),
            (Phase::Handler(_), Wait::Rest(until)) => Some(*until),
            (Phase::Handler(_), Wait::Nothing) => self.step_at,
            (Phase::Commit { .. } | Phase::Over, _) => None,
        }
    }

    /// What became of an ask that is out. Others, and second outcomes, are ignored.
    pub(crate) fn answer(&mut self, key: &str, outcome: Held) {
        let Wait::Asks(asks) = &mut self.wait else { return };
        if let Some((_, place @ None)) = asks.iter_mut().find(|(found, _)| **found == *key) {
            *place = Some(outcome);
            self.shared.flag.notify();
        }
    }

    /// Nobody can answer what is out any more: those asks end.
    pub(crate) fn end_asks(&mut self) {
        let Wait::Asks(asks) = &mut self.wait else { return };
        for (_, place) in asks.iter_mut().filter(|(_, place)| place.is_none()) {
            *place = Some(Held::Ended);
        }
        self.shared.flag.notify();
    }

    /// Runs the handler as far as it gets.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>, now: Timestamp) -> Poll<LiveEvent> {
        self.shared.flag.set(cx.waker());
        let waker = Waker::from(self.shared.clone());
        let mut inner_cx = Context::from_waker(&waker);
        let mut budget = BUDGET;
        loop {
            // Before the round or the end that came after it.
            let message = self.shared.lock().outbox.pop_front();
            if let Some(message) = message {
                return Poll::Ready(LiveEvent::Notification(message));
            }
            if let Some(event) = self.events.pop_front() {
                return Poll::Ready(event);
            }
            let woken = self.shared.flag.take();
            match &mut self.phase {
                Phase::Over => return Poll::Pending,
                Phase::Handler(future) => {
                    if woken {
                        if budget == 0 {
                            self.shared.flag.mark();
                            self.shared.flag.notify();
                            return Poll::Pending;
                        }
                        budget -= 1;
                        match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(&mut inner_cx))) {
                            Err(_) => self.panicked(),
                            Ok(Poll::Ready(result)) => self.returned(result, now),
                            Ok(Poll::Pending) => {}
                        }
                        if self.shared.flag.is_woken() || !matches!(self.phase, Phase::Handler(_)) {
                            continue;
                        }
                    }
                    if self.blocked(now).is_pending() && self.is_quiet() {
                        return Poll::Pending;
                    }
                }
                Phase::Commit { step: Some(step), .. } => {
                    match catch_unwind(AssertUnwindSafe(|| step.as_mut().poll(&mut inner_cx))) {
                        Err(_) => self.panicked(),
                        Ok(Poll::Ready(Err(error))) => self.conclude(Err(error)),
                        Ok(Poll::Ready(Ok(()))) => self.next_commit(),
                        Ok(Poll::Pending) if self.is_quiet() => return Poll::Pending,
                        Ok(Poll::Pending) => {}
                    }
                }
                Phase::Commit { step: None, .. } => self.next_commit(),
            }
        }
    }

    fn is_quiet(&self) -> bool {
        self.events.is_empty() && self.shared.lock().outbox.is_empty()
    }

    /// The handler can get no further by itself. Ready: something has changed for it, or it has ended.
    fn blocked(&mut self, now: Timestamp) -> Poll<()> {
        match core::mem::replace(&mut self.wait, Wait::Nothing) {
            Wait::Nothing => self.step(now),
            Wait::Rest(until) if now < until => {
                self.wait = Wait::Rest(until);
                Poll::Pending
            }
            Wait::Rest(_) => self.release(Vec::new()),
            Wait::Asks(asks) => self.await_answers(asks, now),
        }
    }

    fn await_answers(&mut self, asks: Vec<(Arc<str>, Option<Held>)>, now: Timestamp) -> Poll<()> {
        let mut withdrawn = Vec::new();
        let mut wanted = Vec::new();
        {
            let inner = self.shared.lock();
            for (key, outcome) in asks {
                if outcome.is_some() || inner.tape.wants(&key) {
                    wanted.push((key, outcome))
                } else {
                    withdrawn.push(key)
                }
            }
        }
        if !withdrawn.is_empty() {
            self.events.push_back(LiveEvent::Withdrawn(withdrawn));
        }
        if wanted.iter().any(|(_, outcome)| outcome.is_none()) {
            if now >= self.deadline {
                self.fault(&Fault::Deadline);
                return Poll::Ready(());
            }
            self.wait = Wait::Asks(wanted);
            return Poll::Pending;
        }
        self.release(wanted.into_iter().filter_map(|(key, outcome)| Some((key, outcome?))).collect())
    }

    /// Ends a round: the answers are handed out together.
    fn release(&mut self, outcomes: Vec<(Arc<str>, Held)>) -> Poll<()> {
        let tickets = self.shared.lock().tape.release_held(outcomes);
        self.tell_answers();
        self.shared.wake(&tickets);
        Poll::Ready(())
    }

    fn step(&mut self, now: Timestamp) -> Poll<()> {
        self.step_at = None;
        loop {
            let step = self.shared.lock().tape.step(Drive::Runtime, now);
            match step {
                Step::Released(tickets) if tickets.is_empty() => {}
                Step::Released(tickets) => {
                    self.shared.wake(&tickets);
                    return Poll::Ready(());
                }
                Step::Wait(until) => {
                    self.step_at = until;
                    return Poll::Pending;
                }
                Step::Send(outgoing) => {
                    if let Some(polled) = self.send(outgoing, now) {
                        return polled;
                    }
                }
                Step::Missing(data) => {
                    self.conclude(Err(missing(data)));
                    return Poll::Ready(());
                }
                Step::Fault(fault) => {
                    self.fault(&fault);
                    return Poll::Ready(());
                }
            }
        }
    }

    /// A round goes out. None: it did not, for optional asks of it cannot be said, and nobody waits for those.
    fn send(&mut self, outgoing: Outgoing, now: Timestamp) -> Option<Poll<()>> {
        let unsayable: Vec<Arc<str>> = outgoing
            .asks
            .iter()
            .filter(|ask| !(self.sayable)(&ask.request))
            .map(|ask| ask.key.clone())
            .collect();
        if !unsayable.is_empty() {
            let verdict = self.shared.lock().tape.unsayable(&unsayable);
            match verdict {
                Unsayable::Settled(tickets) if tickets.is_empty() => return None,
                Unsayable::Settled(tickets) => self.shared.wake(&tickets),
                Unsayable::Required(needs) => {
                    self.conclude(Err(missing(ClientCapabilities::default().missing(needs))));
                }
                Unsayable::Fault(fault) => self.fault(&fault),
            }
            return Some(Poll::Ready(()));
        }
        self.shared.lock().tape.await_held();
        if outgoing.asks.is_empty() {
            self.wait = Wait::Rest(now.saturating_add(self.rest));
            self.rest = (self.rest * 2).min(REST_LAST);
        } else {
            self.rest = REST_FIRST;
            self.wait = Wait::Asks(outgoing.asks.iter().map(|ask| (ask.key.clone(), None)).collect());
            self.tell_asks(&outgoing);
            self.events.push_back(LiveEvent::Asks(outgoing.asks));
        }
        Some(Poll::Pending)
    }

    /// The handler has returned (A9). What is still out is withdrawn by that.
    fn returned(&mut self, result: Result<Output, RpcError>, now: Timestamp) {
        if let Wait::Asks(asks) = core::mem::replace(&mut self.wait, Wait::Nothing) {
            let open = asks.into_iter().filter(|(_, outcome)| outcome.is_none()).map(|(key, _)| key);
            self.events.push_back(LiveEvent::Withdrawn(open.collect()));
        }
        let finish = self.shared.lock().tape.finish(now);
        match finish {
            Finish::Return => match result {
                Err(error) => self.conclude(Err(error)),
                Ok(output) => {
                    let rest = self.shared.close();
                    let rest = if output.is_error { VecDeque::new() } else { rest };
                    self.phase = Phase::Commit { output, rest, step: None };
                }
            },
            // The handler runs once: nobody is left to take the answer, so nobody is asked.
            Finish::Send(outgoing) => {
                self.fault(&Fault::Swallowed(
                    outgoing.asks.iter().map(|ask| String::from(&*ask.key)).collect(),
                ));
            }
            Finish::Missing(data) => self.conclude(Err(missing(data))),
            Finish::Fault(fault) => self.fault(&fault),
        }
    }

    fn server(&self) -> &Server {
        &self.shared.facts.tickets.0
    }

    /// Tells the observer of a round that goes out.
    fn tell_asks(&self, outgoing: &Outgoing) {
        let exchange = self.shared.facts.exchange;
        let round = self.shared.lock().tape.journal().rounds_sent();
        let round = u32::try_from(round).unwrap_or(u32::MAX);
        for ask in &outgoing.asks {
            self.server().observe(&Event::Asked { exchange, round, key: &ask.key, kind: ask.request.kind() });
        }
    }

    /// Tells the observer what has become of asks since it was told last. Foreign code: not under the lock.
    fn tell_answers(&self) {
        let exchange = self.shared.facts.exchange;
        let notes = self.shared.lock().tape.take_notes();
        for Note { round, key, kind, said } in notes {
            self.server().observe(&Event::Answered { exchange, round, key: &key, kind, said });
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
            self.conclude(Ok(output));
        }
    }

    fn fault(&mut self, fault: &Fault) {
        let facts = &self.shared.facts;
        crate::trace::warn!(exchange = %facts.exchange, target = facts.texts.target(), fault = %fault, "a call failed");
        self.conclude(Err(fault.error()));
    }

    /// A panic's message may hold anything: it goes nowhere (the panic hook has had it).
    fn panicked(&mut self) {
        let facts = &self.shared.facts;
        crate::trace::warn!(exchange = %facts.exchange, target = facts.texts.target(), "a handler panicked");
        self.conclude(Err(RpcError::internal("Internal error")));
    }

    fn conclude(&mut self, outcome: Result<Output, RpcError>) {
        // Dropping a handler's future runs foreign code, which may panic.
        let phase = core::mem::replace(&mut self.phase, Phase::Over);
        let _ = catch_unwind(AssertUnwindSafe(|| drop(phase)));
        self.wait = Wait::Nothing;
        self.shared.end();
        self.tell_answers();
        let error = outcome.as_ref().err().map(|error| error.code);
        self.server().observe(&Event::Ended { exchange: self.shared.facts.exchange, error });
        self.events.push_back(LiveEvent::Finished(outcome));
    }
}

/// No code of the modern era reaches a legacy client (R-260, BT-6).
fn missing(data: String) -> RpcError {
    RpcError::internal("The client did not declare a capability that answering this needs")
        .with_raw_data(data)
}

impl Drop for LiveRun {
    fn drop(&mut self) {
        let phase = core::mem::replace(&mut self.phase, Phase::Over);
        let _ = catch_unwind(AssertUnwindSafe(|| drop(phase)));
        self.shared.end();
    }
}
