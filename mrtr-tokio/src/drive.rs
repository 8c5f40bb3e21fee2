//! Drives an attempt under tokio: polls it when it wakes, and when its own time has come.

use std::{
    future::{Future, poll_fn},
    pin::pin,
    sync::atomic::{AtomicBool, Ordering},
    task::Poll,
    time::Duration,
};

use mrtr_core::{
    handler::{Run, RunEvent},
    http::ReplyClass,
};

use crate::clock::Clock;

/// What came next of an attempt: one whole message.
pub(crate) enum Next {
    /// A notification; more comes.
    Notification(Vec<u8>),
    /// The reply; nothing comes after it.
    Reply(ReplyClass, Vec<u8>),
}

/// Whether an attempt has begun its commit: whoever drops it asks first, and lets it go on if so.
#[derive(Debug, Default)]
pub(crate) struct Committing(AtomicBool);

impl Committing {
    pub(crate) fn is_on(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }

    fn set(&self, on: bool) {
        self.0.store(on, Ordering::Release);
    }
}

/// The next message of an attempt. May be dropped between polls and called again: nothing is lost.
pub(crate) async fn next(run: &mut Run<'_>, clock: &Clock, committing: &Committing) -> Next {
    let mut out = Vec::new();
    loop {
        // A tokio timer, or one that never fires until the attempt has said when to wake it.
        let mut sleep = pin!(tokio::time::sleep(Duration::MAX));
        let mut armed = None;
        let event = poll_fn(|cx| {
            let polled = run.poll_run(cx, clock.now(), &mut out);
            committing.set(run.is_committing());
            if let Poll::Ready(event) = polled {
                return Poll::Ready(Some(event));
            }
            let Some(at) = run.wake_at() else { return Poll::Pending };
            if armed != Some(at) {
                armed = Some(at);
                // At least a moment, so that a time that is past does not make this spin.
                let wait = clock.until(at).max(Duration::from_millis(1));
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
