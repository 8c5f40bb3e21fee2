//! What the future behind a call and JavaScript leave for each other.
//!
//! There is one thread. The lock is here because the core's handlers may move between threads, and it is never held
//! across a call.

use std::{
    collections::VecDeque,
    future::Future,
    pin::Pin,
    sync::{Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
};

use mrtr_core::{
    RpcError, Timestamp,
    catalog::Change,
    handler::{Ctx, Output},
    http::ReplyHead,
    ledger::{Command, StoreEvent},
};

use crate::returning::Wish;

/// What JavaScript is to do.
pub(crate) enum Event {
    /// Call this handler. `returning`: it wants an exchange instead of a context.
    Start { handler: u32, returning: bool },
    /// Send this: the head first, if there is one.
    Chunk { head: Option<ReplyHead>, bytes: Vec<u8>, last: bool },
    /// Carry this out, and say what came of it.
    Store(Command),
    /// Do what was left for the commit.
    Commit(u32),
    /// The attempt is over without a result of the handler's: whatever it holds is to be let go. Text for the log, if
    /// something went wrong.
    Suspended(Option<String>),
}

#[derive(Default)]
pub(crate) struct Inner {
    pub(crate) events: VecDeque<Event>,
    pub(crate) ctx: Option<Ctx>,
    /// What the handler came to.
    pub(crate) result: Option<Result<Output, RpcError>>,
    pub(crate) commits: u32,
    /// What came of steps of the commit.
    pub(crate) committed: Vec<(u32, Result<(), RpcError>)>,
    pub(crate) stored: Option<StoreEvent>,
    /// What a return-style handler wants of its exchange, and what it got.
    pub(crate) wish: Option<Wish>,
    pub(crate) granted: Option<String>,
    /// Changes for a subscription; `None` ends it.
    pub(crate) changes: VecDeque<Option<Change>>,
    pub(crate) now: Option<Timestamp>,
    pub(crate) wake_at: Option<Timestamp>,
    /// Nobody reads the reply any more.
    pub(crate) left: bool,
    /// The reply has been silent for a while.
    pub(crate) silent: bool,
    /// The attempt is carried on without a reader.
    pub(crate) goes_on: bool,
}

#[derive(Default)]
pub(crate) struct Mail(Mutex<Inner>);

impl Mail {
    pub(crate) fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn event(&self, event: Event) {
        self.lock().events.push_back(event);
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.lock().now.unwrap_or(Timestamp::from_unix_millis(0))
    }
}

/// The handler's future: what JavaScript hands in.
pub(crate) struct Returned(pub(crate) std::sync::Arc<Mail>);

impl Future for Returned {
    type Output = Result<Output, RpcError>;

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Self::Output> {
        self.0.lock().result.take().map_or(Poll::Pending, Poll::Ready)
    }
}

/// A step of the commit that JavaScript does.
pub(crate) struct Committed(pub(crate) std::sync::Arc<Mail>, pub(crate) u32);

impl Future for Committed {
    type Output = Result<(), RpcError>;

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Self::Output> {
        let mut inner = self.0.lock();
        let at = inner.committed.iter().position(|(number, _)| *number == self.1);
        at.map_or(Poll::Pending, |at| Poll::Ready(inner.committed.swap_remove(at).1))
    }
}
