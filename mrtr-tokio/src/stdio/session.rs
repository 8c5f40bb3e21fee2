//! The one legacy session that a pipe can have: which lines are for it, and the task that drives its calls.

use std::{
    future::poll_fn,
    io,
    pin::pin,
    sync::{Mutex, MutexGuard, PoisonError},
    task::Poll,
    time::Duration,
};

use mrtr_core::{
    Timestamp,
    catalog::Change,
    handler::Service,
    jsonrpc::Admission,
    legacy::{Config, Handled, Pipe, Piped},
};
use tokio::{
    sync::{Notify, watch},
    time::{Instant, sleep},
};

use super::Shared;
use crate::{
    clock::{self, Clock},
    server::Identity,
};

pub(super) struct Legacy {
    pipe: Mutex<Pipe>,
    /// A line was taken: there may be a session now, and something to drive.
    news: Notify,
}

impl Legacy {
    pub(super) fn new(service: Service, config: Config, identity: &Identity) -> io::Result<Self> {
        let pipe = Pipe::new(service, config, identity.principal(), clock::entropy()?);
        Ok(Self { pipe: Mutex::new(pipe), news: Notify::new() })
    }

    /// Takes a line, unless it is modern; what is to be sent at once, which may be nothing.
    pub(super) fn take(&self, line: &Admission, now: Timestamp) -> Option<Vec<u8>> {
        let piped = self.pipe().handle_message(line.message(), now);
        let Piped::Legacy(handled) = piped else { return None };
        self.news.notify_one();
        match handled {
            Handled::Reply { bytes, .. } => Some(bytes),
            Handled::Running(_) | Handled::Accepted | _ => Some(Vec::new()),
        }
    }

    fn pipe(&self) -> MutexGuard<'_, Pipe> {
        // A panic under the lock comes from a waker: the session's own state is whole at those points.
        self.pipe.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next message of the session; `None` if it is `closed` and nothing of it runs. May be dropped between
    /// polls.
    async fn next(&self, clock: &Clock, closed: bool) -> Option<Vec<u8>> {
        // A tokio timer that never fires until the session has said when to wake it.
        let mut sleep = pin!(sleep(Duration::MAX));
        let mut armed = None;
        poll_fn(|cx| {
            loop {
                let mut pipe = self.pipe();
                if let Poll::Ready(transmit) = pipe.poll(cx, clock.now()) {
                    return Poll::Ready(Some(transmit.bytes));
                }
                if closed && !pipe.session().is_some_and(mrtr_core::legacy::Session::is_busy) {
                    return Poll::Ready(None);
                }
                let at = pipe.wake_at();
                drop(pipe);
                let Some(at) = at else { return Poll::Pending };
                if armed != Some(at) {
                    armed = Some(at);
                    // At least a moment, so that a time that is past does not make this spin.
                    let wait = clock.until(at).max(Duration::from_millis(1));
                    sleep.as_mut().reset(Instant::now() + wait);
                }
                if sleep.as_mut().poll(cx).is_pending() {
                    return Poll::Pending;
                }
                armed = None;
            }
        })
        .await
    }

    fn tell(&self, change: &Change) {
        if let Some(session) = self.pipe().session_mut() {
            session.changed(change);
        }
    }
}

/// Drives the session, once there is one, until the server goes away; what runs then may finish.
pub(super) async fn drive(shared: &Shared, mut closing: watch::Receiver<bool>) {
    let Some(legacy) = &shared.legacy else { return };
    let mut changes = shared.changes.subscribe();
    let mut closed = false;
    loop {
        tokio::select! {
            biased;
            message = legacy.next(&shared.clock, closed) => match message {
                Some(message) => shared.send(&message).await,
                None => return,
            },
            () = legacy.news.notified() => {}
            _ = closing.changed(), if !closed => closed = true,
            change = changes.next() => match change {
                Some(change) => legacy.tell(&change),
                // Some were lost: whatever they were, the lists are to be read anew.
                None => {
                    changes = shared.changes.subscribe();
                    for change in [Change::Tools, Change::Prompts, Change::Resources] {
                        legacy.tell(&change);
                    }
                }
            },
        }
    }
}
