//! What a handler's context, its asks and the driver share.

use alloc::{boxed::Box, collections::{BTreeMap, VecDeque}, string::String, sync::Arc, vec::Vec};
use core::task::Waker;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::commit::Commit;
use crate::{
    entropy::Entropy,
    jsonrpc::RequestId,
    seal::ExchangeId,
    server::Server,
    tape::{AskSpec, Resolution, Tape, Ticket},
    time::Timestamp,
    wire::{AskingMethod, ClientCapabilities, LogLevel},
};

/// Facts of the request that do not change while it runs.
pub(super) struct Facts {
    pub(super) method: AskingMethod,
    pub(super) target: Box<str>,
    /// JSON text of an object.
    pub(super) arguments: Box<str>,
    pub(super) parts: Vec<(String, String)>,
    pub(super) capabilities: ClientCapabilities,
    pub(super) principal: Option<Box<[u8]>>,
    pub(super) exchange: ExchangeId,
    pub(super) started: Timestamp,
    pub(super) log_level: Option<LogLevel>,
    pub(super) progress_token: Option<RequestId>,
    pub(super) tickets: (Server, Arc<Entropy>, Timestamp),
}

pub(super) struct Shared {
    pub(super) facts: Facts,
    inner: Mutex<Inner>,
}

pub(super) struct Inner {
    pub(super) tape: Tape,
    /// Who waits for which ask.
    pub(super) wakers: BTreeMap<Ticket, Waker>,
    /// The run's own waker, while it waits for something else than an answer: what a spawned task asks, or no
    /// longer asks, may be what it waits for.
    pub(super) waiting: Option<Waker>,
    /// Notifications that wait to be sent, one message each.
    pub(super) outbox: VecDeque<Vec<u8>>,
    /// The last progress sent: it only rises.
    pub(super) progress: Option<f64>,
    pub(super) commits: VecDeque<Commit>,
    /// Something was left for the commit.
    pub(super) committed: bool,
}

impl Shared {
    pub(super) fn new(facts: Facts, tape: Tape) -> Arc<Self> {
        Arc::new(Self {
            facts,
            inner: Mutex::new(Inner {
                tape,
                wakers: BTreeMap::new(),
                waiting: None,
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
        inner.wakers.insert(ticket, waker.clone());
        let waiting = inner.waiting.take();
        drop(inner);
        waiting.into_iter().for_each(Waker::wake);
        None
    }

    /// Registers an ask.
    pub(super) fn register(&self, spec: AskSpec) -> Ticket {
        let mut inner = self.lock();
        let ticket = inner.tape.register(spec);
        let waiting = inner.waiting.take();
        drop(inner);
        waiting.into_iter().for_each(Waker::wake);
        ticket
    }

    /// What looking at an errand brought. The run steps on it.
    pub(super) fn looked(&self, ticket: Ticket, done: bool) {
        let mut inner = self.lock();
        inner.tape.looked(ticket, done);
        let waiting = inner.waiting.take();
        drop(inner);
        waiting.into_iter().for_each(Waker::wake);
    }

    pub(super) fn withdraw(&self, ticket: Ticket) {
        let mut inner = self.lock();
        inner.tape.withdraw(ticket);
        let waker = inner.wakers.remove(&ticket);
        let waiting = inner.waiting.take();
        drop(inner);
        drop(waker);
        waiting.into_iter().for_each(Waker::wake);
    }

    /// Wakes whoever waits for these asks. Wakers run foreign code: never under the lock.
    pub(super) fn wake(&self, tickets: &[Ticket]) {
        let mut inner = self.lock();
        let wakers: Vec<Waker> = tickets.iter().filter_map(|ticket| inner.wakers.remove(ticket)).collect();
        drop(inner);
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Ends the attempt for asks that are alive in detached tasks.
    pub(super) fn end(&self) {
        let mut inner = self.lock();
        let tickets = inner.tape.end();
        let waiting = inner.waiting.take();
        // What was left for a commit that never comes may hold anything of the author's.
        let commits = core::mem::take(&mut inner.commits);
        drop(inner);
        drop((waiting, commits));
        self.wake(&tickets);
    }
}
