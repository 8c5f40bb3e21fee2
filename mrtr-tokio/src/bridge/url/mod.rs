//! An upstream behind a url: a POST a message, sessions of the legacy eras, their stream by GET, their end by DELETE.

mod failure;
mod stream;

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode, header};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use mrtr_core::{
    Limits,
    bridge::{CallFailure, LinkId},
    http::{BodyPlan, HttpErrorKind, Judgement, Sent, judge, name},
    jsonrpc::{Message, admit, write_error},
    wire::Era,
};
use tokio::{
    sync::{Semaphore, mpsc},
    task::{AbortHandle, JoinHandle},
    time::{sleep, timeout},
};

use self::stream::Stream;
use super::driver::{Events, In};
use crate::{
    client::{WireError, carry::Url},
    room::{Full, Room, Taken},
};

/// How long a server may take to accept what wants no reply.
const ACCEPTED: Duration = Duration::from_secs(10);

/// Messages of one connection that wait for the bridge to look at them.
const AHEAD: usize = 64;

/// Headers as the core writes them.
pub(super) type Headers = Vec<(Box<str>, Box<str>)>;

/// A connection to a server behind a url: a session, or all requests to a modern one.
pub(super) struct Connection {
    queue: mpsc::UnboundedSender<Out>,
    /// What waits in it, in bytes: a server that does not accept what it is told is given up, and not waited for.
    room: Room,
    carrying: JoinHandle<()>,
}

enum Out {
    Request { call: i64, bytes: Vec<u8>, headers: Headers, room: Taken },
    Message { bytes: Vec<u8>, headers: Headers, room: Taken },
    Close { call: i64 },
}

/// What a message takes beside its bytes: many short ones are much, too.
pub(super) const MESSAGE: usize = 256;

impl Connection {
    pub(super) fn start(
        link: LinkId,
        url: Url,
        era: Era,
        (limits, queued): (Limits, usize),
        events: &Events,
    ) -> Self {
        let (queue, outs) = mpsc::unbounded_channel();
        let shared = Shared {
            link,
            url,
            era,
            limits,
            events: events.clone(),
            session: Mutex::default(),
            ahead: Arc::new(Semaphore::new(AHEAD)),
        };
        Self { queue, room: Room::new(queued), carrying: tokio::spawn(carry(Arc::new(shared), outs)) }
    }

    /// An error says that the server accepts too little.
    pub(super) fn send(&self, call: Option<i64>, bytes: Vec<u8>, headers: Headers) -> Result<(), Full> {
        let mut room = self.room.take();
        room.grow(bytes.len() + MESSAGE)?;
        let out = match call {
            Some(call) => Out::Request { call, bytes, headers, room },
            None => Out::Message { bytes, headers, room },
        };
        // An error says that it has ended, and then the bridge is about to hear of it.
        let _ = self.queue.send(out);
        Ok(())
    }

    /// Closes the response stream of a request.
    pub(super) fn close_stream(&self, call: i64) {
        let _ = self.queue.send(Out::Close { call });
    }

    /// Ends what is under way, and the session.
    pub(super) async fn end(self, grace: Duration) {
        let Self { queue, mut carrying, .. } = self;
        drop(queue);
        if timeout(grace, &mut carrying).await.is_err() {
            carrying.abort();
        }
    }
}

struct Shared {
    link: LinkId,
    url: Url,
    era: Era,
    limits: Limits,
    events: Events,
    session: Mutex<Session>,
    ahead: Arc<Semaphore>,
}

/// What belongs to a session of a legacy era.
#[derive(Default)]
struct Session {
    id: Option<HeaderValue>,
    /// As the last message had it.
    version: Option<HeaderValue>,
}

/// Tasks that end with what carries them.
#[derive(Default)]
struct Tasks {
    calls: BTreeMap<i64, AbortHandle>,
    listening: Option<AbortHandle>,
    prune_at: usize,
}

impl Tasks {
    fn put(&mut self, call: i64, task: AbortHandle) {
        if self.calls.len() >= self.prune_at {
            self.calls.retain(|_, task| !task.is_finished());
            self.prune_at = (2 * self.calls.len()).max(64);
        }
        self.calls.insert(call, task);
    }
}

impl Drop for Tasks {
    fn drop(&mut self) {
        for task in self.calls.values().chain(&self.listening) {
            task.abort();
        }
    }
}

/// Notifications and answers are accepted before what was said after them goes out.
async fn carry(shared: Arc<Shared>, mut queue: mpsc::UnboundedReceiver<Out>) {
    let mut tasks = Tasks::default();
    while let Some(out) = queue.recv().await {
        match out {
            Out::Request { call, bytes, headers, room } => {
                // From here on it is one of the requests under way, which have a bound of their own.
                drop(room);
                let task = tokio::spawn(Arc::clone(&shared).request(call, bytes, headers));
                tasks.put(call, task.abort_handle());
            }
            Out::Message { bytes, headers, room } => {
                shared.message(bytes, &headers).await;
                drop(room);
                if tasks.listening.is_none() && shared.session().id.is_some() {
                    tasks.listening = Some(tokio::spawn(Arc::clone(&shared).listen()).abort_handle());
                }
            }
            Out::Close { call } => {
                if let Some(task) = tasks.calls.remove(&call) {
                    task.abort();
                }
            }
        }
    }
    drop(tasks);
    shared.end_session().await;
}

/// Whether a message answers a question, for which somebody waits: an empty result is the reply to a ping.
fn answers(message: &[u8], limits: &Limits) -> bool {
    let Ok(Message::Response(response)) = admit(message, limits) else { return false };
    response
        .outcome
        .map_or(true, |result| result.members().is_none_or(|mut members| members.next().is_some()))
}

impl Shared {
    fn session(&self) -> MutexGuard<'_, Session> {
        // Nothing panics while it is held.
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn headers(&self, given: &Headers) -> HeaderMap {
        let mut headers = post_headers(given);
        if self.era == Era::Legacy {
            let mut session = self.session();
            if let Some(version) = headers.get(name::PROTOCOL_VERSION) {
                session.version = Some(version.clone());
            }
            session.write(&mut headers);
        }
        headers
    }

    /// A request, to the end of whatever comes back.
    async fn request(self: Arc<Self>, call: i64, bytes: Vec<u8>, headers: Headers) {
        let failure = match self.try_request(call, bytes, &headers).await {
            Ok(None) => CallFailure::Broken,
            Ok(Some(failure)) => {
                tracing::warn!(
                    link = self.link.0,
                    call,
                    kind = failure.kind(),
                    "a request to an upstream has failed"
                );
                failure
            }
            Err(problem) => {
                tracing::warn!(link = self.link.0, call, %problem, "a request to an upstream has failed");
                failure::of_wire(&problem)
            }
        };
        // Nothing, if its response has come.
        self.events.send(In::Failed { link: self.link, call, failure });
    }

    /// What its response was that is none, if it was.
    async fn try_request(
        &self,
        call: i64,
        bytes: Vec<u8>,
        headers: &Headers,
    ) -> Result<Option<CallFailure>, WireError> {
        let headers = self.headers(headers);
        let in_session = headers.contains_key(name::SESSION_ID);
        let response = self.url.send(Method::POST, headers, bytes.into()).await?;
        let status = response.status();
        if in_session && status == StatusCode::NOT_FOUND {
            self.events.send(In::Closed { link: self.link });
            return Ok(None);
        }
        if self.era == Era::Legacy && status.is_success() {
            self.session().learn(response.headers());
        }
        if !status.is_success() || plan(&response) == BodyPlan::Whole {
            let after = failure::retry_after(response.headers());
            let (status, kind, bytes) = match whole(response, &self.limits).await {
                // The status has said enough.
                Err(_) if !status.is_success() => {
                    let status = status.as_u16();
                    return Ok(Some(CallFailure::Status { status, retry_after: after }));
                }
                read => read?,
            };
            let judgement = judge(Sent::Request, status, kind.as_deref(), &bytes, &self.limits);
            return Ok(self.judged(call, judgement, after).await);
        }
        let mut stream = Stream::new(Some(call));
        if !stream.read(self, response.into_body()).await? && self.resumable(&stream) {
            // A server of a legacy era may close its stream and go on in another one.
            sleep(stream.retry).await;
            self.take_up(&mut stream).await;
        }
        Ok(None)
    }

    async fn judged(
        &self,
        call: i64,
        judgement: Judgement<'_>,
        after: Option<Duration>,
    ) -> Option<CallFailure> {
        match judgement {
            Judgement::Message(bytes) => self.tell(Some(call), bytes.to_vec()).await,
            Judgement::Failed(fault) | Judgement::MaybeLegacy(fault) => {
                // Who may call is between the bridge and its upstream, whatever words it has for it.
                let ours = matches!(fault.kind, HttpErrorKind::Unauthorized | HttpErrorKind::Forbidden);
                let Some(error) = fault.error.as_ref().filter(|_| !ours) else {
                    return Some(failure::of_status(&fault, after));
                };
                // What the server said of the request, whatever id it put there.
                let mut bytes = Vec::new();
                write_error(&mut bytes, Some(&call.into()), error);
                self.tell(Some(call), bytes).await;
            }
            Judgement::Accepted | _ => {}
        }
        None
    }

    async fn tell(&self, call: Option<i64>, bytes: Vec<u8>) {
        // Never closed.
        let permit = Arc::clone(&self.ahead).acquire_owned().await.ok();
        self.events.send(In::Upstream { link: self.link, call, bytes, permit });
    }

    /// Something that wants no reply.
    async fn message(&self, bytes: Vec<u8>, headers: &Headers) {
        let headers = self.headers(headers);
        let in_session = headers.contains_key(name::SESSION_ID);
        let bytes = Bytes::from(bytes);
        let failure = match timeout(ACCEPTED, self.url.send(Method::POST, headers, bytes.clone())).await {
            Ok(Ok(response)) if response.status().is_success() => return,
            Ok(Ok(response)) if in_session && response.status() == StatusCode::NOT_FOUND => {
                self.events.send(In::Closed { link: self.link });
                return;
            }
            Ok(Ok(response)) => CallFailure::Status {
                status: response.status().as_u16(),
                retry_after: failure::retry_after(response.headers()),
            },
            Ok(Err(problem)) => failure::of_wire(&problem),
            Err(_) => CallFailure::TimedOut,
        };
        tracing::warn!(link = self.link.0, ?failure, "an upstream was not told something");
        if answers(&bytes, &self.limits) {
            self.events.send(In::Unaccepted { link: self.link, failure });
        }
    }

    /// The headers of a GET or DELETE, if there is a session.
    fn of_session(&self) -> Option<HeaderMap> {
        let session = self.session();
        session.id.as_ref()?;
        let mut headers = HeaderMap::new();
        session.write(&mut headers);
        Some(headers)
    }

    /// The stream that belongs to no call, if the server has one.
    async fn listen(self: Arc<Self>) {
        self.take_up(&mut Stream::new(None)).await;
    }

    /// Tells the server that it may forget the session. Those that mind say 405.
    async fn end_session(&self) {
        let Some(headers) = self.of_session() else { return };
        match timeout(ACCEPTED, self.url.send(Method::DELETE, headers, Bytes::new())).await {
            Ok(Ok(response)) => {
                tracing::debug!(link = self.link.0, status = %response.status(), "a session was ended")
            }
            Ok(Err(_)) | Err(_) => tracing::debug!(link = self.link.0, "a session was not ended"),
        }
    }
}

impl Session {
    fn write(&self, headers: &mut HeaderMap) {
        for (name, value) in [(name::SESSION_ID, &self.id), (name::PROTOCOL_VERSION, &self.version)] {
            if let (Ok(name), Some(value)) = (HeaderName::try_from(name), value) {
                headers.insert(name, value.clone());
            }
        }
    }

    fn learn(&mut self, headers: &HeaderMap) {
        if self.id.is_none()
            && let Some(id) = headers.get(name::SESSION_ID)
        {
            let mut id = id.clone();
            id.set_sensitive(true);
            self.id = Some(id);
        }
    }
}

/// The headers of a POST: those that the core gives, and what every POST has.
pub(super) fn post_headers(given: &Headers) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
    for (name, value) in given {
        // The core has written them so that they fit.
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(&**name), HeaderValue::try_from(&**value)) {
            headers.insert(name, value);
        }
    }
    headers
}

pub(super) fn plan(response: &Response<Incoming>) -> BodyPlan {
    BodyPlan::from_content_type(response.headers().get(header::CONTENT_TYPE).map(HeaderValue::as_bytes))
}

/// Reads a body whole: its status, what it is said to be, its bytes.
pub(super) async fn whole(
    response: Response<Incoming>,
    limits: &Limits,
) -> Result<(u16, Option<Vec<u8>>, Vec<u8>), WireError> {
    let (head, mut body) = response.into_parts();
    let limit = limits.message_bytes;
    let mut bytes = Vec::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| WireError::Broken { cause: Some(error.into()) })?;
        let Ok(data) = frame.into_data() else { continue };
        if data.len() > limit - bytes.len() {
            return Err(WireError::TooLarge { limit });
        }
        bytes.extend_from_slice(&data);
    }
    let kind = head.headers.get(header::CONTENT_TYPE).map(|kind| kind.as_bytes().to_vec());
    Ok((head.status.as_u16(), kind, bytes))
}
