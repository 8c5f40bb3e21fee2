//! The sessions of an HTTP endpoint.

use alloc::{boxed::Box, collections::BTreeMap, string::String, sync::Arc, vec::Vec};
use core::cmp::Ordering;
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use sha2::{Digest, Sha256};

use super::{
    Config, Handled, Session, Stream,
    receive::{invalid, over},
};
use crate::{
    Entropy,
    error::RpcError,
    handler::Service,
    http::{Accepts, Headers, Opening, ReplyClass, name},
    jsonrpc::{self, Message, Refused, RequestId, write},
    seal::Principal,
    time::Timestamp,
    wire::{AskingMethod, Version},
};

/// The name of a session: 128 random bits in hex. Whoever has it, and is the principal it was given to, is in the
/// session. `Debug` does not show it.
#[derive(Clone, PartialEq, Eq)]
pub struct SessionId(String);

impl SessionId {
    /// The value of `Mcp-Session-Id`.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl core::fmt::Debug for SessionId {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("SessionId(..)")
    }
}

/// A session that several tasks share: the one that drives it and those that bring messages.
///
/// Two handles are equal if they are of the same session; their order is the same as long as one of them is held, and
/// says nothing else. So an adapter can keep what it knows of a session in a map.
#[derive(Clone, Debug)]
pub struct SessionHandle(Arc<Mutex<Session>>);

impl PartialEq for SessionHandle {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for SessionHandle {}

impl PartialOrd for SessionHandle {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for SessionHandle {
    fn cmp(&self, other: &Self) -> Ordering {
        Arc::as_ptr(&self.0).cmp(&Arc::as_ptr(&other.0))
    }
}

impl SessionHandle {
    /// The session. Handlers run under this lock when the session is polled: hold it for one call at a time.
    pub fn lock(&self) -> MutexGuard<'_, Session> {
        // A panic under the lock comes from a waker: the session's own state is whole at those points.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// `None` while somebody holds it.
    fn try_rest_since(&self) -> Option<Result<Option<Timestamp>, ()>> {
        match self.0.try_lock() {
            Ok(session) if session.is_busy() => Some(Err(())),
            Ok(session) => Some(Ok(session.touched)),
            Err(TryLockError::Poisoned(session)) => Some(Ok(session.into_inner().touched)),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}

/// A reply that is known at once.
#[non_exhaustive]
pub struct Reply {
    /// One whole message, or nothing.
    pub bytes: Vec<u8>,
    /// What it is, for its status.
    pub class: ReplyClass,
}

impl core::fmt::Debug for Reply {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Reply({:?}, {} bytes)", self.class, self.bytes.len())
    }
}

/// What a POST is.
#[derive(Debug)]
#[non_exhaustive]
pub enum Posted<'b> {
    /// Of the modern era: hand it to [`Service::receive`] with its headers.
    Modern,
    /// Answer with this.
    Reply(Reply),
    /// `initialize` has begun a session: answer with the reply and the id in `Mcp-Session-Id`, and poll the
    /// session from now on.
    Opened {
        /// Its name.
        id: SessionId,
        /// The session.
        session: SessionHandle,
        /// The response.
        reply: Reply,
    },
    /// A message to a session: [`deliver`](Delivery::deliver) it, outside whatever lock guards [`Sessions`].
    Session(Delivery<'b>),
}

/// A message on its way to its session.
#[derive(Debug)]
#[must_use = "a message wants to be delivered"]
pub struct Delivery<'b> {
    session: SessionHandle,
    message: Result<Message<'b>, Refused>,
    streams: bool,
}

impl Delivery<'_> {
    /// The session it goes to.
    #[must_use]
    pub const fn session(&self) -> &SessionHandle {
        &self.session
    }

    /// The id, if it is a request: a call of that id may send on its stream as soon as it is delivered, so make that
    /// stream known to whoever drives the session before.
    #[must_use]
    pub fn request_id(&self) -> Option<&RequestId> {
        match &self.message {
            Ok(Message::Request(request)) => Some(&request.id),
            Ok(Message::Notification(_) | Message::Response(_)) | Err(_) => None,
        }
    }

    /// Whether it is a request whose handler may run, and send on a stream of its own. Any other is answered at once.
    #[must_use]
    pub fn is_call(&self) -> bool {
        match &self.message {
            Ok(Message::Request(request)) => AskingMethod::from_name(&request.method).is_some(),
            Ok(Message::Notification(_) | Message::Response(_)) | Err(_) => false,
        }
    }

    /// Hands it over. After [`Handled::Running`] the response is what the session sends on
    /// [`Stream::Request`] of that id.
    #[must_use]
    pub fn deliver(self, now: Timestamp) -> Handled {
        self.session.lock().handle_admitted(self.message, now, self.streams)
    }
}

/// What a GET is.
#[derive(Debug)]
#[non_exhaustive]
pub enum Got {
    /// Answer with an event stream of what the session sends on `stream`: the standalone one, or one that is taken
    /// up again.
    Stream {
        /// The session.
        session: SessionHandle,
        /// Which.
        stream: Stream,
    },
    /// Answer with this.
    Reply(Reply),
}

/// All sessions of an HTTP endpoint, each bound to the principal that began it: for everybody else, and after its
/// end, it does not exist (404), for answers too.
///
/// Call [`sweep`](Self::sweep) every minute or so.
pub struct Sessions {
    service: Service,
    config: Config,
    /// By the digest of the id: how long a look-up takes says nothing about ids.
    table: BTreeMap<[u8; 32], Entry>,
}

struct Entry {
    principal: Option<Box<[u8]>>,
    version: Option<Version>,
    session: SessionHandle,
    used: Timestamp,
}

impl Sessions {
    /// No sessions yet.
    #[must_use]
    pub const fn new(service: Service, config: Config) -> Self {
        Self { service, config, table: BTreeMap::new() }
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    /// Judges a POST: the era first (R-052, G-44), then the session.
    ///
    /// `entropy` is asked for when a session begins.
    pub fn post<'b, H: Headers + ?Sized>(
        &mut self,
        headers: &H,
        body: &'b [u8],
        accepts: Accepts,
        principal: Principal<'_>,
        now: Timestamp,
        entropy: impl FnOnce() -> Entropy,
    ) -> Posted<'b> {
        let message = jsonrpc::admit(body, &self.service.server().config().limits);
        self.post_message(headers, message, accepts, principal, now, entropy)
    }

    /// Judges a POST whose body was admitted: a modern one is still there to be handed on
    /// ([`Admission`](jsonrpc::Admission)).
    pub fn post_message<'b, H: Headers + ?Sized>(
        &mut self,
        headers: &H,
        message: Result<Message<'b>, Refused>,
        accepts: Accepts,
        principal: Principal<'_>,
        now: Timestamp,
        entropy: impl FnOnce() -> Entropy,
    ) -> Posted<'b> {
        let opening = match &message {
            Ok(message) => Opening::judge(headers, message),
            // What cannot be read cannot say its era; the session does.
            Err(_) if matches!(header(headers, name::SESSION_ID), Sent::Absent) => Opening::Modern,
            Err(_) => Opening::Legacy,
        };
        match opening {
            Opening::Modern => return Posted::Modern,
            Opening::Unversioned if !self.config.serves(Version::V2025_03_26) => return Posted::Modern,
            Opening::Legacy | Opening::Unversioned if self.config.negotiate(None).is_none() => {
                return Posted::Modern;
            }
            Opening::Legacy | Opening::Unversioned => {}
        }
        if matches!(&message, Ok(Message::Request(request)) if request.method == "initialize") {
            return self.open(message, principal, now, entropy());
        }
        let id = match &message {
            Ok(Message::Request(request)) => Some(request.id.clone()),
            Ok(Message::Notification(_) | Message::Response(_)) => None,
            Err(refused) => refused.id.clone(),
        };
        match self.find(headers, principal, now) {
            Ok((_, session)) => Posted::Session(Delivery { session, message, streams: accepts.event_stream }),
            Err((error, class)) => Posted::Reply(refusal(id.as_ref(), &error, class)),
        }
    }

    /// Judges a GET: the standalone stream, or with `Last-Event-ID` one that is taken up again. One that is no
    /// longer kept is 400.
    pub fn get<H: Headers + ?Sized>(&mut self, headers: &H, principal: Principal<'_>, now: Timestamp) -> Got {
        let session = match self.find(headers, principal, now) {
            Ok((_, session)) => session,
            Err((error, class)) => return Got::Reply(refusal(None, &error, class)),
        };
        let stream = match header(headers, "Last-Event-ID") {
            Sent::Absent => {
                session.lock().open_standalone();
                Some(Stream::Standalone)
            }
            Sent::One(event) => {
                core::str::from_utf8(event).ok().and_then(|event| session.lock().resume(event))
            }
            Sent::Conflicting => None,
        };
        match stream {
            Some(stream) => Got::Stream { session, stream },
            None => {
                let error = invalid("Last-Event-ID names no event that is kept");
                Got::Reply(refusal(None, &error, ReplyClass::InvalidRequest))
            }
        }
    }

    /// Ends the session that a DELETE names: 202, and 404 from now on.
    pub fn delete<H: Headers + ?Sized>(
        &mut self,
        headers: &H,
        principal: Principal<'_>,
        now: Timestamp,
    ) -> Reply {
        match self.find(headers, principal, now) {
            Ok((key, session)) => {
                session.lock().end();
                self.table.remove(&key);
                Reply { bytes: Vec::new(), class: ReplyClass::Accepted }
            }
            Err((error, class)) => refusal(None, &error, class),
        }
    }

    /// Ends sessions that have rested for longer than [`Config::idle`]; how many.
    pub fn sweep(&mut self, now: Timestamp) -> usize {
        let before = self.table.len();
        let idle = self.config.idle;
        self.table.retain(|_, entry| {
            let kept = !entry.is_stale(now, idle);
            if !kept {
                entry.session.lock().end();
            }
            kept
        });
        before - self.table.len()
    }

    fn open(
        &mut self,
        message: Result<Message<'_>, Refused>,
        principal: Principal<'_>,
        now: Timestamp,
        entropy: Entropy,
    ) -> Posted<'static> {
        let request_id = match &message {
            Ok(Message::Request(request)) => Some(request.id.clone()),
            Ok(Message::Notification(_) | Message::Response(_)) | Err(_) => None,
        };
        if self.is_full(principal) {
            self.sweep(now);
        }
        let limit = self.config.sessions;
        let mut full = (self.table.len() >= limit).then(|| over("sessions", limit, "sessions"));
        if full.is_none() && self.is_full(principal) {
            let limit = self.config.sessions_per_principal;
            full = Some(over("sessions of a principal", limit, "sessions_per_principal"));
        }
        if let Some(error) = full {
            return Posted::Reply(refusal(request_id.as_ref(), &error, ReplyClass::Internal));
        }
        let id = SessionId(alloc::format!("{:032x}", u128::from_be_bytes(entropy.expand(b"legacy/session"))));
        let mut session = Session::on_http(self.service.clone(), self.config.clone(), principal, entropy);
        let handled = session.handle_admitted(message, now, true);
        let version = session.version();
        let Handled::Reply { bytes, class } = handled else {
            return Posted::Reply(Reply { bytes: Vec::new(), class: ReplyClass::Accepted });
        };
        let reply = Reply { bytes, class };
        if version.is_none() {
            return Posted::Reply(reply);
        }
        let session = SessionHandle(Arc::new(Mutex::new(session)));
        let entry = Entry { principal: owned(principal), version, session: session.clone(), used: now };
        self.table.insert(digest(id.as_str().as_bytes()), entry);
        Posted::Opened { id, session, reply }
    }

    fn is_full(&self, principal: Principal<'_>) -> bool {
        let own =
            || self.table.values().filter(|entry| is_same(entry.principal.as_deref(), principal)).count();
        self.table.len() >= self.config.sessions
            || principal != Principal::Anonymous && own() >= self.config.sessions_per_principal
    }

    /// The session that a request's headers name. A missing id is 400, one that is nobody's or somebody else's 404.
    fn find<H: Headers + ?Sized>(
        &mut self,
        headers: &H,
        principal: Principal<'_>,
        now: Timestamp,
    ) -> Result<([u8; 32], SessionHandle), (RpcError, ReplyClass)> {
        let id = match header(headers, name::SESSION_ID) {
            Sent::One(id) => id,
            Sent::Absent => return Err((invalid("Mcp-Session-Id is missing"), ReplyClass::InvalidRequest)),
            Sent::Conflicting => {
                return Err((
                    invalid("Mcp-Session-Id was sent with different values"),
                    ReplyClass::InvalidRequest,
                ));
            }
        };
        let key = digest(id);
        let gone = || (invalid("there is no such session"), ReplyClass::UnknownSession);
        let idle = self.config.idle;
        let entry = self.table.get_mut(&key).filter(|entry| is_same(entry.principal.as_deref(), principal));
        let entry = entry.ok_or_else(gone)?;
        if entry.is_stale(now, idle) {
            entry.session.lock().end();
            self.table.remove(&key);
            return Err(gone());
        }
        let version = match header(headers, name::PROTOCOL_VERSION) {
            Sent::Absent => None,
            Sent::One(version) => Some(core::str::from_utf8(version).ok().and_then(Version::from_name)),
            Sent::Conflicting => Some(None),
        };
        if version.is_some_and(|version| version.is_none() || version != entry.version) {
            let error = invalid("MCP-Protocol-Version is not the version of this session");
            return Err((error, ReplyClass::InvalidRequest));
        }
        entry.used = entry.used.max(now);
        Ok((key, entry.session.clone()))
    }
}

impl Entry {
    /// Whether it has rested for longer than it may.
    fn is_stale(&mut self, now: Timestamp, idle: core::time::Duration) -> bool {
        match self.session.try_rest_since() {
            Some(Ok(touched)) => self.used = touched.map_or(self.used, |touched| self.used.max(touched)),
            Some(Err(())) | None => self.used = self.used.max(now),
        }
        now > self.used.saturating_add(idle)
    }
}

enum Sent<'h> {
    Absent,
    One(&'h [u8]),
    Conflicting,
}

fn header<'h, H: Headers + ?Sized>(headers: &'h H, name: &str) -> Sent<'h> {
    let mut found = Sent::Absent;
    headers.get_all(name, &mut |value| {
        let value = value.trim_ascii();
        found = match found {
            Sent::Absent => Sent::One(value),
            Sent::One(first) if first == value => Sent::One(first),
            Sent::One(_) | Sent::Conflicting => Sent::Conflicting,
        };
    });
    found
}

fn digest(id: &[u8]) -> [u8; 32] {
    Sha256::digest(id).into()
}

fn owned(principal: Principal<'_>) -> Option<Box<[u8]>> {
    match principal {
        Principal::Authenticated(bytes) => Some(bytes.into()),
        Principal::Anonymous => None,
    }
}

fn is_same(owner: Option<&[u8]>, principal: Principal<'_>) -> bool {
    match principal {
        Principal::Authenticated(bytes) => owner == Some(bytes),
        Principal::Anonymous => owner.is_none(),
    }
}

fn refusal(id: Option<&RequestId>, error: &RpcError, class: ReplyClass) -> Reply {
    let mut bytes = Vec::new();
    write::error(&mut bytes, id, error);
    Reply { bytes, class }
}

impl core::fmt::Debug for Sessions {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Sessions").field("len", &self.table.len()).finish_non_exhaustive()
    }
}

const _: () = {
    const fn shared<T: Clone + Send + Sync>() {}
    shared::<SessionHandle>();
};
