//! Drives an attempt under tokio: polls it when it wakes, and when its own time has come; carries out what it
//! wants of the ledger's store meanwhile.

use std::{
    future::{Future, poll_fn},
    pin::{Pin, pin},
    sync::atomic::{AtomicU8, Ordering},
    task::{Context, Poll},
    time::Duration,
};

use mrtr_core::{
    handler::{Run, RunEvent},
    http::ReplyClass,
    ledger::StoreEvent,
};

use crate::{
    clock::Clock,
    store::{AnyStore, Saying},
};

/// What came next of an attempt: one whole message.
pub(crate) enum Next {
    /// A notification; more comes.
    Notification(Vec<u8>),
    /// The reply; nothing comes after it.
    Reply(ReplyClass, Vec<u8>),
}

/// What is to become of an attempt whose peer leaves: whoever drops it asks first.
#[derive(Debug, Default)]
pub(crate) struct Committing(AtomicU8);

/// Bits of [`Committing`].
const GOES_ON: u8 = 1;
const CLAIMED: u8 = 2;
const LEFT: u8 = 4;

impl Committing {
    /// Whether it goes on without its peer: its commit has begun, or it has a claim to give back.
    pub(crate) fn is_on(&self) -> bool {
        self.0.load(Ordering::Acquire) & (GOES_ON | CLAIMED) != 0
    }

    /// Says that the peer has left. The attempt is stopped, unless its commit has begun.
    pub(crate) fn leave(&self) {
        self.0.fetch_or(LEFT, Ordering::AcqRel);
    }

    fn has_left(&self) -> bool {
        self.0.load(Ordering::Acquire) & LEFT != 0
    }

    fn set(&self, run: &Run<'_>) {
        for (bit, on) in [(GOES_ON, run.is_committing()), (CLAIMED, run.is_claimed())] {
            if on {
                self.0.fetch_or(bit, Ordering::AcqRel);
            } else {
                self.0.fetch_and(!bit, Ordering::AcqRel);
            }
        }
    }
}

/// An attempt under way.
pub(crate) struct Attempt<'a> {
    run: Run<'a>,
    clock: &'a Clock,
    store: Option<&'a AnyStore>,
    committing: &'a Committing,
    /// What the store was asked.
    saying: Option<Saying>,
}

impl<'a> Attempt<'a> {
    pub(crate) fn new(
        run: Run<'a>,
        clock: &'a Clock,
        store: Option<&'a AnyStore>,
        committing: &'a Committing,
    ) -> Self {
        committing.set(&run);
        Self { run, clock, store, committing, saying: None }
    }

    /// The next message. May be dropped between polls and called again: nothing is lost.
    pub(crate) async fn next(&mut self) -> Next {
        let mut out = Vec::new();
        loop {
            // A tokio timer, or one that never fires until the attempt has said when to wake it.
            let mut sleep = pin!(tokio::time::sleep(Duration::MAX));
            let mut armed = None;
            let event = poll_fn(|cx| {
                if self.committing.has_left() {
                    self.run.cancel();
                }
                let polled = self.poll(cx, &mut out);
                self.committing.set(&self.run);
                if let Poll::Ready(event) = polled {
                    return Poll::Ready(Some(event));
                }
                let Some(at) = self.run.wake_at() else { return Poll::Pending };
                if armed != Some(at) {
                    armed = Some(at);
                    // At least a moment, so that a time that is past does not make this spin.
                    let wait = self.clock.until(at).max(Duration::from_millis(1));
                    sleep.as_mut().reset(tokio::time::Instant::now() + wait);
                }
                sleep.as_mut().poll(cx).map(|()| None)
            })
            .await;
            match event {
                None => {}
                Some(RunEvent::Finished(outcome)) => return Next::Reply(outcome.class(), out),
                Some(_) => return Next::Notification(out),
            }
        }
    }

    /// Polls the run and its store, each as often as the other has news for it.
    fn poll(&mut self, cx: &mut Context<'_>, out: &mut Vec<u8>) -> Poll<RunEvent<'a>> {
        loop {
            if let Some(saying) = &mut self.saying
                && let Poll::Ready(event) = saying.as_mut().poll(cx)
            {
                self.saying = None;
                self.run.handle_store(self.clock.now(), event);
            }
            match self.run.poll_run(cx, self.clock.now(), out) {
                Poll::Ready(RunEvent::Store(command)) => {
                    self.saying = Some(match self.store {
                        Some(store) => store.apply(command),
                        None => Box::pin(std::future::ready(StoreEvent::Unavailable)) as Pin<Box<_>>,
                    });
                }
                Poll::Ready(event) => return Poll::Ready(event),
                Poll::Pending => return Poll::Pending,
            }
        }
    }
}
