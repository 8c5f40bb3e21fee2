//! The waker of a live run.

use alloc::sync::Arc;
use core::{
    sync::atomic::{AtomicBool, Ordering},
    task::Waker,
};
use std::{
    sync::{Mutex, PoisonError},
    task::Wake,
};

/// Remembers that it was woken, and passes it on to whoever polled last.
#[derive(Default)]
pub(super) struct RunWaker {
    woken: AtomicBool,
    outer: Mutex<Option<Waker>>,
}

impl RunWaker {
    pub(super) fn set(&self, waker: &Waker) {
        let mut outer = self.outer.lock().unwrap_or_else(PoisonError::into_inner);
        if outer.as_ref().is_none_or(|known| !known.will_wake(waker)) {
            *outer = Some(waker.clone());
        }
    }

    /// As if it had been woken.
    pub(super) fn mark(&self) {
        self.woken.store(true, Ordering::Release);
    }

    pub(super) fn take(&self) -> bool {
        self.woken.swap(false, Ordering::AcqRel)
    }

    /// Has the run polled without the handler's having been woken.
    pub(super) fn notify(&self) {
        let outer = self.outer.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(outer) = outer {
            outer.wake();
        }
    }

    pub(super) fn is_woken(&self) -> bool {
        self.woken.load(Ordering::Acquire)
    }
}

impl Wake for RunWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.woken.store(true, Ordering::Release);
        self.notify();
    }
}
