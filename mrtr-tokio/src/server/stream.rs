//! One stream of a legacy session: the task that drives it, and the body of the response that it is written into.

use std::{
    future::poll_fn,
    pin::{Pin, pin},
    sync::Arc,
    task::Poll,
    time::Duration,
};

use mrtr_core::legacy::{SessionHandle, Stream, StreamBody, Transmit};
use tokio::{
    sync::{OwnedSemaphorePermit, mpsc, watch},
    time::{Instant, Sleep, sleep},
};

use super::{
    body::Output,
    endpoint::Shared,
    exchange::{raised, restart},
};
use crate::{changes::Subscription, clock::Clock};

/// Where the messages of a stream go while somebody reads it.
pub(super) type Reader = mpsc::Sender<Transmit>;

/// A task's place in the table of streams that are driven; given back when it is dropped.
pub(super) struct Slot {
    shared: Arc<Shared>,
    session: SessionHandle,
    stream: Stream,
    task: u64,
}

impl Slot {
    pub(super) const fn new(shared: Arc<Shared>, session: SessionHandle, stream: Stream, task: u64) -> Self {
        Self { shared, session, stream, task }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        if let Some(hub) = &self.shared.legacy {
            hub.forget(&self.session, &self.stream, self.task);
        }
    }
}

/// Drives a stream until nothing more can come on it: until a call is over, or a session.
///
/// A connection that is lost stops nothing. When the server goes away there is no other to come: then what
/// waits for one ends, but for a commit that has begun (A12).
pub(super) async fn drive(
    slot: Slot,
    mut watched: watch::Receiver<Option<Reader>>,
    _room: OwnedSemaphorePermit,
) {
    let Slot { shared, session, stream, .. } = &slot;
    let Some(hub) = &shared.legacy else { return };
    let _busy = shared.busy.subscribe();
    let mut closing = shared.closing.subscribe();
    let mut changes = (*stream == Stream::Standalone).then(|| shared.changes.subscribe());
    let mut reader = hub.reader(&mut watched);
    let mut ended = false;
    loop {
        let transmit = tokio::select! {
            biased;
            polled = next(session, stream, &shared.clock, reader.is_some()) => match polled {
                Next::Message(transmit) => transmit,
                Next::Closed => {
                    // A commit goes on, unheard (A12).
                    reader = None;
                    hub.lose(session, stream, &watched, shared.clock.now());
                    continue;
                }
                Next::End => return,
            },
            changed = watched.changed() => {
                if changed.is_err() {
                    // The stream of another call has its name now.
                    return;
                }
                reader = hub.reader(&mut watched);
                continue;
            }
            () = left(reader.as_ref()) => {
                reader = None;
                hub.lose(session, stream, &watched, shared.clock.now());
                continue;
            }
            () = raised(&mut closing), if reader.is_none() && !ended => {
                if *stream == Stream::Standalone {
                    return;
                }
                ended = true;
                session.lock().end();
                continue;
            }
            change = next_change(&mut changes) => {
                match change {
                    Some(change) => drop(session.lock().changed(&change)),
                    // Some were lost. The client sees its stream end, and reads anew.
                    None => {
                        changes = Some(shared.changes.subscribe());
                        reader = None;
                        hub.lose(session, stream, &watched, shared.clock.now());
                    }
                }
                continue;
            }
        };
        loop {
            reader = hub.reader(&mut watched);
            let Some(reader) = &reader else { break };
            // Somebody has taken the stream up since, and what was on its way is sent again.
            if session.lock().resends(&transmit) {
                break;
            }
            tokio::select! {
                biased;
                room = reader.reserve() => {
                    // An error says that nobody reads any more; the next round of the outer loop sees it as well.
                    if let Ok(room) = room {
                        room.send(transmit);
                    }
                    break;
                }
                _ = watched.changed() => {}
            }
        }
    }
}

/// What comes next on a stream.
enum Next {
    Message(Transmit),
    /// Nothing more for whoever reads it: the session has ended.
    Closed,
    /// Nothing more at all.
    End,
}

/// What comes next on a stream, which somebody reads or not. May be dropped between polls.
async fn next(session: &SessionHandle, stream: &Stream, clock: &Clock, is_read: bool) -> Next {
    // A tokio timer that never fires until the session has said when to wake it.
    let mut sleep = pin!(sleep(Duration::MAX));
    let mut armed = None;
    let mut least = Duration::from_millis(1);
    poll_fn(|cx| {
        loop {
            let mut held = session.lock();
            if let Poll::Ready(transmit) = held.poll_stream(stream, cx, clock.now()) {
                return Poll::Ready(transmit.map_or(Next::End, Next::Message));
            }
            if is_read && held.is_ended() {
                return Poll::Ready(Next::Closed);
            }
            let at = held.wake_at();
            drop(held);
            let Some(at) = at else { return Poll::Pending };
            if armed != Some(at) {
                armed = Some(at);
                sleep.as_mut().reset(Instant::now() + clock.until(at).max(least));
            }
            if sleep.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
            // It may be for another stream to do what it is time for: look again, but not as fast as one can.
            armed = None;
            least = Duration::from_millis(50);
        }
    })
    .await
}

/// Ready when whoever reads the stream has left.
async fn left(reader: Option<&Reader>) {
    match reader {
        Some(reader) => reader.closed().await,
        None => std::future::pending().await,
    }
}

async fn next_change(changes: &mut Option<Subscription>) -> Option<Arc<mrtr_core::catalog::Change>> {
    match changes {
        Some(changes) => changes.next().await,
        None => std::future::pending().await,
    }
}

/// Writes what comes on a stream into a response, with comments while nothing comes. A stream that no
/// call depends on also ends when the server goes away: `closing`.
pub(super) async fn read(
    mut messages: mpsc::Receiver<Transmit>,
    mut body: StreamBody,
    output: mpsc::Sender<Output>,
    every: Duration,
    mut closing: Option<watch::Receiver<bool>>,
) {
    let mut silence: Pin<&mut Sleep> = pin!(sleep(every));
    loop {
        let mut bytes = Vec::new();
        let mut last = false;
        let head = tokio::select! {
            biased;
            message = messages.recv() => match message {
                Some(transmit) => {
                    last = transmit.last;
                    body.push(&transmit, &mut bytes)
                }
                None => return,
            },
            () = going(&mut closing) => return,
            () = &mut silence => body.keep_alive(&mut bytes),
        };
        restart(silence.as_mut(), every);
        if head.is_some() || !bytes.is_empty() {
            // An error says that nobody reads any more, and then nobody polls this either.
            let _ = output.send(Output { head, bytes, last }).await;
        }
        if last {
            return;
        }
    }
}

async fn going(closing: &mut Option<watch::Receiver<bool>>) {
    match closing {
        Some(closing) => raised(closing).await,
        None => std::future::pending().await,
    }
}
