//! Clients of the legacy eras: a POST that belongs to a session, GET and DELETE.
//!
//! ```text
//!  POST of a call ──▶ Session::deliver ──▶ drive: a task ──Transmit──▶ read: the response's body
//!  GET             ──▶ open or resume   ──▶ the same       ───────────▶ a new body
//!  POST of an answer ▶ Session::deliver     wakes it
//! ```
//!
//! A call is driven by a task of its own, because it runs on when its connection is gone (R-239); what it sends goes
//! to whoever reads its stream at the time. The channel between them holds one message: a peer that does not
//! read holds its handler back.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use http::{Method, Response, StatusCode, request::Parts};
use mrtr_core::{
    Timestamp,
    handler::Service,
    http::{Accepts, ReplyBody as Reply, ReplyClass, ReplyHead, name},
    jsonrpc::Admission,
    legacy::{Config, Got, Handled, Posted, SessionHandle, Sessions, Stream, StreamBody, Transmit},
};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch};

use super::{
    ReplyBody,
    body::Producer,
    endpoint::Shared,
    exchange,
    principal::Identity,
    rules::{self, Extra, Head},
    stream::{self, Reader, Slot},
};
use crate::{clock, drive::Committing};

/// All sessions of an endpoint, and the streams of theirs that are driven.
pub(super) struct Hub {
    sessions: Mutex<Swept>,
    slots: Mutex<BTreeMap<(SessionHandle, Stream), Driven>>,
    /// Numbers the tasks that drive a stream.
    tasks: AtomicU64,
    streams: Arc<Semaphore>,
}

struct Swept {
    sessions: Sessions,
    next: Timestamp,
}

/// A stream that a task drives, and who reads it.
struct Driven {
    task: u64,
    reader: watch::Sender<Option<Reader>>,
}

/// How often sessions that have rested too long are looked for: with the next request after that.
const SWEEP: Duration = Duration::from_secs(60);

/// Who comes, and with what.
#[derive(Clone, Copy)]
pub(super) struct Visit<'a> {
    pub(super) parts: &'a Parts,
    pub(super) identity: &'a Identity,
    pub(super) accepts: Accepts,
}

/// What became of a POST.
pub(super) enum Posting {
    Answered(Response<ReplyBody>),
    /// It belongs to the modern era.
    Modern(Extra),
}

impl Hub {
    pub(super) fn new(service: Service, config: Config, streams: usize) -> Self {
        Self {
            sessions: Mutex::new(Swept {
                sessions: Sessions::new(service, config),
                next: Timestamp::from_unix_millis(0),
            }),
            slots: Mutex::new(BTreeMap::new()),
            tasks: AtomicU64::new(0),
            streams: Arc::new(Semaphore::new(streams.min(Semaphore::MAX_PERMITS))),
        }
    }

    /// Answers a POST, unless it is modern.
    pub(super) async fn post(
        &self,
        shared: &Arc<Shared>,
        visit: &Visit<'_>,
        admission: &Admission,
        mut extra: Extra,
    ) -> Posting {
        let Ok(entropy) = clock::entropy() else {
            // It would be refused in the other era as well, and is.
            return Posting::Modern(extra);
        };
        let now = shared.clock.now();
        let (head, principal) = (Head(visit.parts), visit.identity.principal());
        let message = admission.message();
        let posted =
            self.sessions(now).post_message(&head, message, visit.accepts, principal, now, || entropy);
        let delivery = match posted {
            Posted::Modern => return Posting::Modern(extra),
            Posted::Opened { id, reply, .. } => {
                extra.put(name::SESSION_ID, id.as_str());
                return Posting::Answered(whole(visit.accepts, reply.class, &reply.bytes, extra));
            }
            Posted::Session(delivery) => delivery,
            Posted::Reply(reply) => {
                return Posting::Answered(whole(visit.accepts, reply.class, &reply.bytes, extra));
            }
            _ => return Posting::Modern(extra),
        };
        let room = if delivery.is_call() { self.room() } else { None };
        if room.is_none() && delivery.is_call() {
            return Posting::Answered(rules::bare(StatusCode::SERVICE_UNAVAILABLE, extra, FULL));
        }
        let session = delivery.session().clone();
        let response = match (delivery.deliver(now), room) {
            (Handled::Running(id), Some(room)) => {
                let (reader, messages) = mpsc::channel(1);
                let stream = Stream::Request(id);
                self.drive(shared, session, stream, reader, room);
                respond(shared, messages, StreamBody::new(visit.accepts), None, extra).await
            }
            (Handled::Reply { bytes, class }, _) => whole(visit.accepts, class, &bytes, extra),
            _ => whole(visit.accepts, ReplyClass::Accepted, &[], extra),
        };
        Posting::Answered(response)
    }

    /// Answers what is no POST: what the gate lets through is a GET or a DELETE.
    pub(super) async fn without_body(
        &self,
        shared: &Arc<Shared>,
        visit: &Visit<'_>,
        extra: Extra,
    ) -> Response<ReplyBody> {
        let now = shared.clock.now();
        let (head, principal) = (Head(visit.parts), visit.identity.principal());
        if visit.parts.method == Method::DELETE {
            let reply = self.sessions(now).delete(&head, principal, now);
            return whole(visit.accepts, reply.class, &reply.bytes, extra);
        }
        let Some(room) = self.room() else {
            return rules::bare(StatusCode::SERVICE_UNAVAILABLE, extra, FULL);
        };
        let (reader, messages) = mpsc::channel(1);
        {
            // From here on the stream may send again; whoever drives it looks for its reader only after this.
            let mut slots = self.slots();
            let got = self.sessions(now).get(&head, principal, now);
            let (session, stream) = match got {
                Got::Stream { session, stream } => (session, stream),
                Got::Reply(reply) => return whole(visit.accepts, reply.class, &reply.bytes, extra),
                _ => return whole(visit.accepts, ReplyClass::InvalidRequest, &[], extra),
            };
            let key = (session, stream);
            if let Some(driven) = slots.get(&key) {
                driven.reader.send_replace(Some(reader));
            } else {
                self.spawn(shared, &mut slots, key, reader, room);
            }
        }
        let mut bytes = Vec::new();
        let (body, head) = StreamBody::for_get(&mut bytes);
        respond(shared, messages, body, Some((head, bytes)), extra).await
    }

    fn drive(
        &self,
        shared: &Arc<Shared>,
        session: SessionHandle,
        stream: Stream,
        reader: Reader,
        room: OwnedSemaphorePermit,
    ) {
        self.spawn(shared, &mut self.slots(), (session, stream), reader, room);
    }

    /// Begins to drive a stream. A task that still drives one of the same name ends: its call is over.
    // The key is where a session is, not what it holds.
    #[allow(clippy::mutable_key_type)]
    fn spawn(
        &self,
        shared: &Arc<Shared>,
        slots: &mut BTreeMap<(SessionHandle, Stream), Driven>,
        key: (SessionHandle, Stream),
        reader: Reader,
        room: OwnedSemaphorePermit,
    ) {
        let task = self.tasks.fetch_add(1, Ordering::Relaxed);
        let (reader, watched) = watch::channel(Some(reader));
        slots.insert(key.clone(), Driven { task, reader });
        let (session, stream) = key;
        tokio::spawn(stream::drive(Slot::new(Arc::clone(shared), session, stream, task), watched, room));
    }

    /// Room for one stream more.
    fn room(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.streams).try_acquire_owned().ok()
    }

    /// A task drives a stream no longer.
    pub(super) fn forget(&self, session: &SessionHandle, stream: &Stream, task: u64) {
        let key = (session.clone(), stream.clone());
        let mut slots = self.slots();
        if slots.get(&key).is_some_and(|driven| driven.task == task) {
            slots.remove(&key);
        }
    }

    /// Who reads a stream now: not before a GET that is just taking it up has said so.
    pub(super) fn reader(&self, watched: &mut watch::Receiver<Option<Reader>>) -> Option<Reader> {
        let _slots = self.slots();
        watched.borrow_and_update().clone()
    }

    /// The connection of a stream is gone, or to be closed, unless somebody has taken the stream up since.
    pub(super) fn lose(
        &self,
        session: &SessionHandle,
        stream: &Stream,
        watched: &watch::Receiver<Option<Reader>>,
        now: Timestamp,
    ) {
        let slots = self.slots();
        if let Ok(false) = watched.has_changed() {
            session.lock().lose(stream, now);
            if let Some(driven) = slots.get(&(session.clone(), stream.clone())) {
                driven.reader.send_replace(None);
            }
        }
    }

    fn slots(&self) -> MutexGuard<'_, BTreeMap<(SessionHandle, Stream), Driven>> {
        // Whole at any point where something could panic.
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn sessions(&self, now: Timestamp) -> SessionsGuard<'_> {
        let mut swept = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        if now >= swept.next {
            swept.next = now.saturating_add(SWEEP);
            let ended = swept.sessions.sweep(now);
            if ended > 0 {
                tracing::debug!(ended, "sessions that had rested too long were ended");
            }
        }
        SessionsGuard(swept)
    }
}

struct SessionsGuard<'a>(MutexGuard<'a, Swept>);

impl std::ops::Deref for SessionsGuard<'_> {
    type Target = Sessions;

    fn deref(&self) -> &Sessions {
        &self.0.sessions
    }
}

impl std::ops::DerefMut for SessionsGuard<'_> {
    fn deref_mut(&mut self) -> &mut Sessions {
        &mut self.0.sessions
    }
}

const FULL: &str = "too many streams at once\n";

/// A reply that is known.
fn whole(accepts: Accepts, class: ReplyClass, message: &[u8], extra: Extra) -> Response<ReplyBody> {
    let mut bytes = Vec::new();
    if message.is_empty() && class != ReplyClass::Accepted {
        return rules::bare(rules::status(class.status()), extra, "");
    }
    match Reply::new(accepts).finish(class, message, &mut bytes) {
        Some(head) => rules::reply(head, extra, ReplyBody::whole(bytes)),
        None => rules::bare(StatusCode::INTERNAL_SERVER_ERROR, extra, "the server failed\n"),
    }
}

/// The response that a stream is written into; `opened` if it is open from the start.
async fn respond(
    shared: &Arc<Shared>,
    messages: mpsc::Receiver<Transmit>,
    body: StreamBody,
    opened: Option<(ReplyHead, Vec<u8>)>,
    extra: Extra,
) -> Response<ReplyBody> {
    let (sender, output) = mpsc::channel(1);
    let every = shared.bounds.keep_alive;
    let closing = opened.is_some().then(|| shared.closing.subscribe());
    let producer = Producer::new(
        stream::read(messages, body, sender, every, closing),
        output,
        Arc::new(Committing::default()),
    );
    match opened {
        Some((head, first)) => rules::reply(head, extra, ReplyBody::stream(first, producer)),
        // A stream that ends without a word is one of a session that has ended.
        None => {
            let status = rules::status(ReplyClass::UnknownSession.status());
            exchange::begin(producer, extra, status, "the session has ended\n").await
        }
    }
}
