//! What a handler's context, its asks and the driver share.

use alloc::{boxed::Box, collections::VecDeque, string::String, sync::Arc, vec::Vec};
use core::{
    sync::atomic::{AtomicBool, Ordering},
    task::Waker,
};
use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    task::Wake,
};

use super::commit::Commit;
use crate::{
    entropy::Entropy,
    jsonrpc::{Json, RequestId},
    seal::ExchangeId,
    server::Server,
    tape::{Resolution, Tape, Ticket},
    time::Timestamp,
    wire::{AskingMethod, ClientCapabilities, InputRequest, LogLevel},
};

/// Facts of the request that do not change while it runs.
pub(super) struct Facts {
    pub(super) method: AskingMethod,
    pub(super) texts: Texts,
    pub(super) parts: Vec<(String, String)>,
    pub(super) capabilities: ClientCapabilities,
    pub(super) principal: Option<Box<[u8]>>,
    pub(super) exchange: ExchangeId,
    pub(super) started: Timestamp,
    pub(super) log_level: Option<LogLevel>,
    pub(super) progress_token: Option<RequestId>,
    pub(super) tickets: (Server, Arc<Entropy>, Timestamp),
}

/// The target and, behind it, the arguments.
pub(super) struct Texts {
    both: Box<str>,
    target_bytes: usize,
}

impl Texts {
    pub(super) fn new(target: &str, arguments: Json<'_>) -> Self {
        let mut both = String::with_capacity(target.len() + arguments.as_str().len());
        both.push_str(target);
        both.push_str(arguments.as_str());
        Self { both: both.into(), target_bytes: target.len() }
    }

    pub(super) fn target(&self) -> &str {
        self.both.get(..self.target_bytes).unwrap_or_default()
    }

    /// An object.
    pub(super) fn arguments(&self) -> Json<'_> {
        Json::trusted(self.both.get(self.target_bytes..).unwrap_or("{}"))
    }
}

pub(super) struct Shared {
    pub(super) facts: Facts,
    pub(super) flag: Flag,
    inner: Mutex<Inner>,
}

pub(super) struct Inner {
    pub(super) tape: Tape,
    /// Who waits for which ask, by ticket.
    wakers: Wakers,
    /// The run waits for something else than an answer: what a spawned task asks, or no longer asks, may be that.
    pub(super) waiting: bool,
    /// Whether the handler's code runs somewhere that this run does not poll.
    pub(super) elsewhere: Elsewhere,
    /// Notifications that wait to be sent, one message each.
    pub(super) outbox: VecDeque<Vec<u8>>,
    /// The last progress sent: it only rises.
    pub(super) progress: Option<f64>,
    pub(super) commits: VecDeque<Commit>,
    /// Something was left for the commit.
    pub(super) committed: bool,
}

/// Where a handler's code runs; see [`Ctx::runs_elsewhere`](super::Ctx::runs_elsewhere).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Elsewhere {
    /// In its future: pending means that it can get no further.
    No,
    /// In another engine, which has not said that it can get no further.
    Running,
    /// In another engine, which has.
    AtRest,
}

impl Shared {
    pub(super) fn new(facts: Facts, tape: Tape) -> Arc<Self> {
        Arc::new(Self {
            facts,
            flag: Flag::default(),
            inner: Mutex::new(Inner {
                tape,
                wakers: Wakers::default(),
                waiting: false,
                elsewhere: Elsewhere::No,
                outbox: VecDeque::new(),
                progress: None,
                commits: VecDeque::new(),
                committed: false,
            }),
        })
    }

    /// A handler that panicked while it held the lock did so inside one of our own calls, none of which leaves
    /// the tape half-changed at a point that can panic; so the data is good.
    pub(super) fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes an ask's resolution, or leaves the waker to be woken by it.
    pub(super) fn take(&self, ticket: Ticket, waker: &Waker) -> Option<Resolution> {
        let mut inner = self.lock();
        let resolution = inner.tape.take(ticket);
        if resolution.is_some() {
            return resolution;
        }
        let replaced = inner.wakers.put(ticket, waker);
        let waiting = core::mem::take(&mut inner.waiting);
        drop(inner);
        // Foreign code, as waking is.
        drop(replaced);
        self.nudge(waiting);
        None
    }

    /// Registers an ask.
    pub(super) fn register(
        &self,
        key: &str,
        request: Option<InputRequest<'static>>,
        solicited: bool,
    ) -> Ticket {
        let mut inner = self.lock();
        let ticket = inner.tape.register_as(key, request, solicited);
        let waiting = core::mem::take(&mut inner.waiting);
        drop(inner);
        self.nudge(waiting);
        ticket
    }

    /// What looking at an errand brought. The run steps on it.
    pub(super) fn looked(&self, ticket: Ticket, done: bool) {
        let mut inner = self.lock();
        inner.tape.looked(ticket, done);
        let waiting = core::mem::take(&mut inner.waiting);
        drop(inner);
        self.nudge(waiting);
    }

    pub(super) fn withdraw(&self, ticket: Ticket) {
        let mut inner = self.lock();
        inner.tape.withdraw(ticket);
        let waker = inner.take_waker(ticket);
        let waiting = core::mem::take(&mut inner.waiting);
        drop(inner);
        drop(waker);
        self.nudge(waiting);
    }

    /// Wakes whoever waits for these asks. Wakers run foreign code: never under the lock.
    pub(super) fn wake(&self, tickets: &[Ticket]) {
        for ticket in tickets {
            let waker = self.lock().take_waker(*ticket);
            if let Some(waker) = waker {
                waker.wake();
            }
        }
    }

    /// Whether there is nothing to send; from here on what another thread says or asks wakes the run.
    pub(super) fn waits(&self) -> bool {
        let mut inner = self.lock();
        inner.waiting = inner.outbox.is_empty();
        inner.waiting
    }

    /// Leaves a notification to be sent, unless the attempt is over or what runs now has run before.
    pub(super) fn notify(&self, make: impl FnOnce(&mut Inner) -> Option<Vec<u8>>) {
        let mut inner = self.lock();
        if inner.tape.is_replaying() || inner.tape.has_ended() {
            return;
        }
        let Some(message) = make(&mut inner) else { return };
        inner.outbox.push_back(message);
        let waiting = core::mem::take(&mut inner.waiting);
        drop(inner);
        self.nudge(waiting);
    }

    /// Has a run that waited look again.
    fn nudge(&self, waiting: bool) {
        if waiting {
            self.flag.wake();
        }
    }

    /// The handler has succeeded: no ask can be answered any more (A12). Gives what it has left for its commit.
    pub(super) fn close(&self) -> VecDeque<Commit> {
        let mut inner = self.lock();
        let commits = core::mem::take(&mut inner.commits);
        inner.committed = !commits.is_empty();
        inner.tape.close();
        let wakers = core::mem::take(&mut inner.wakers);
        drop(inner);
        wakers.wake();
        commits
    }

    /// What steps of the commit have left for it.
    pub(super) fn more_commits(&self) -> VecDeque<Commit> {
        core::mem::take(&mut self.lock().commits)
    }

    /// Ends the attempt for asks that are alive in detached tasks.
    pub(super) fn end(&self) {
        let mut inner = self.lock();
        inner.tape.end();
        inner.waiting = false;
        let wakers = core::mem::take(&mut inner.wakers);
        // What was left for a commit that never comes may hold anything of the author's.
        let commits = core::mem::take(&mut inner.commits);
        drop(inner);
        drop(commits);
        wakers.wake();
        self.flag.clear();
    }
}

/// Who waits for which ask, at the place that its ticket names: tickets are counted from 0.
#[derive(Default)]
struct Wakers(Vec<Option<Waker>>);

impl Wakers {
    /// Gives back the one that stood there.
    fn put(&mut self, ticket: Ticket, waker: &Waker) -> Option<Waker> {
        let place = ticket.0 as usize;
        if place >= self.0.len() {
            if self.0.is_empty() {
                // Enough for most runs.
                self.0.reserve(16);
            }
            self.0.resize_with(place + 1, || None);
        }
        match self.0.get_mut(place)? {
            Some(known) if known.will_wake(waker) => None,
            known => known.replace(waker.clone()),
        }
    }

    fn take(&mut self, ticket: Ticket) -> Option<Waker> {
        self.0.get_mut(ticket.0 as usize)?.take()
    }

    /// Wakes whoever waits, also for an ask that the tape has forgotten: finishing withdraws what was asked in an earlier
    /// round (A9 c), and all are over now. Wakers run foreign code: never under the lock.
    fn wake(self) {
        self.0.into_iter().flatten().for_each(Waker::wake);
    }
}

impl Inner {
    /// A handler elsewhere has something to go on with.
    pub(super) fn set_running(&mut self) {
        if self.elsewhere == Elsewhere::AtRest {
            self.elsewhere = Elsewhere::Running;
        }
    }

    fn take_waker(&mut self, ticket: Ticket) -> Option<Waker> {
        self.wakers.take(ticket)
    }
}

/// Remembers that the handler was woken, and passes it on.
#[derive(Default)]
pub(super) struct Flag {
    woken: AtomicBool,
    outer: Mutex<Option<Waker>>,
}

impl Flag {
    pub(super) fn set(&self, waker: &Waker) {
        let mut outer = self.outer.lock().unwrap_or_else(PoisonError::into_inner);
        if outer.as_ref().is_none_or(|known| !known.will_wake(waker)) {
            *outer = Some(waker.clone());
        }
    }

    /// Forgets whom to wake, who may be gone before the last detached task is.
    fn clear(&self) {
        let outer = self.outer.lock().unwrap_or_else(PoisonError::into_inner).take();
        drop(outer);
    }

    fn wake(&self) {
        self.woken.store(true, Ordering::Release);
        let outer = self.outer.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(outer) = outer {
            outer.wake();
        }
    }

    pub(super) fn take(&self) -> bool {
        self.woken.swap(false, Ordering::AcqRel)
    }

    pub(super) fn is_woken(&self) -> bool {
        self.woken.load(Ordering::Acquire)
    }

    /// As if the handler had been woken, without telling anybody.
    pub(super) fn mark(&self) {
        self.woken.store(true, Ordering::Release);
    }

    /// Has the run polled without the handler's having been woken.
    pub(super) fn notify(&self) {
        let outer = self.outer.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(outer) = outer {
            outer.wake();
        }
    }
}

/// The waker that the handler is polled with. Asks leave it in what it points to; [`Shared::end`] and
/// [`Shared::withdraw`] take it out again.
impl Wake for Shared {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.flag.wake();
    }
}
