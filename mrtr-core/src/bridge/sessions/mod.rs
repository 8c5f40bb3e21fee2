//! Which session a POST, GET or DELETE of a legacy host belongs to (R-052, R-240, R-241, G-44), and what its streams may
//! have to say again.

mod kept;

use alloc::{collections::BTreeMap, format, string::String, vec::Vec};
use core::time::Duration;

use sha2::{Digest as _, Sha256};

use self::kept::Streams;
pub use self::kept::{EventId, Missed, Resumed};
use super::{Bridge, HostId, HostStream, Owner};
use crate::{
    Entropy,
    error::{ErrorCode, RpcError},
    http::{Headers, Opening, ReplyClass, Single, name, single},
    jsonrpc::{self, Message, RequestId, write},
    seal::Principal,
    time::Timestamp,
    wire::{Era, Version},
};

/// Bounds of the sessions of legacy hosts. All are inclusive.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SessionBounds {
    /// Sessions in all. Default 10,000.
    pub sessions: usize,
    /// Those of one authenticated principal. Default 64. Anonymous callers cannot be told apart and share only the
    /// bound of all.
    pub per_principal: usize,
    /// How long one may rest: nothing sent to it, no stream open. Default 30 min.
    pub idle: Duration,
    /// How long what was sent on a stream is kept for a host that may have lost it. Default 60 s.
    pub kept: Duration,
    /// Bytes of it that one session keeps; then its oldest go first, and a message that is longer is not kept. Default
    /// 256 KiB.
    pub kept_bytes: usize,
    /// Bytes of it in all; then each session makes room for its own. Default 64 MiB.
    pub kept_bytes_in_all: usize,
}

impl Default for SessionBounds {
    fn default() -> Self {
        Self {
            sessions: 10_000,
            per_principal: 64,
            idle: Duration::from_secs(30 * 60),
            kept: Duration::from_secs(60),
            kept_bytes: 256 << 10,
            kept_bytes_in_all: 64 << 20,
        }
    }
}

/// What a POST is.
#[derive(Debug)]
#[non_exhaustive]
pub enum Posted {
    /// Of the modern era: a host of its own ([`HostKind::Post`](super::HostKind::Post)).
    Modern,
    /// It wants to begin a session. Open a host ([`HostKind::Session`](super::HostKind::Session)), hand it the message,
    /// and if its response is a [`ReplyClass::Result`], [name](HostSessions::name) it.
    Begin,
    /// A message of this host.
    Session(HostId),
    /// Answer with this.
    Refused(SessionFault),
}

/// Why a request belongs to no session: a whole message, and its class.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SessionFault {
    /// One whole message.
    pub bytes: Vec<u8>,
    /// What it is, for its status.
    pub class: ReplyClass,
}

impl core::fmt::Debug for SessionFault {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "SessionFault({:?}, {} bytes)", self.class, self.bytes.len())
    }
}

/// The sessions of the legacy hosts at an HTTP endpoint, each bound to the principal that began it: for everybody else,
/// and after its end, it does not exist (404).
pub struct HostSessions {
    bounds: SessionBounds,
    /// By the digest of the id: how long a look-up takes says nothing about ids.
    table: BTreeMap<[u8; 32], Entry>,
    names: BTreeMap<HostId, [u8; 32]>,
    /// What all streams keep.
    bytes: usize,
}

struct Entry {
    owner: Owner,
    host: HostId,
    used: Timestamp,
    streams: Streams,
}

impl HostSessions {
    /// None yet.
    #[must_use]
    pub const fn new(bounds: SessionBounds) -> Self {
        Self { bounds, table: BTreeMap::new(), names: BTreeMap::new(), bytes: 0 }
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
    pub fn post<H: Headers + ?Sized>(
        &mut self,
        bridge: &Bridge,
        headers: &H,
        body: &[u8],
        principal: Principal<'_>,
        now: Timestamp,
    ) -> Posted {
        let message = jsonrpc::admit(body, &bridge.config.limits);
        let opening = match &message {
            Ok(message) => Opening::judge(headers, message),
            // What cannot be read cannot say its era; the session does.
            Err(_) if matches!(single(headers, name::SESSION_ID), Single::Absent) => Opening::Modern,
            Err(_) => Opening::Legacy,
        };
        let served = |version: Version| bridge.config.versions.contains(&version);
        let legacy = bridge.config.versions.iter().any(|version| version.era() == Era::Legacy);
        match opening {
            Opening::Modern => return Posted::Modern,
            Opening::Unversioned if !served(Version::V2025_03_26) => return Posted::Modern,
            Opening::Legacy | Opening::Unversioned if !legacy => return Posted::Modern,
            Opening::Legacy | Opening::Unversioned => {}
        }
        let id = match &message {
            Ok(Message::Request(request)) => Some(&request.id),
            Ok(Message::Notification(_) | Message::Response(_)) => None,
            Err(refused) => refused.id.as_ref(),
        };
        if matches!(&message, Ok(Message::Request(request)) if request.method == "initialize") {
            if self.is_full(principal) {
                let error = RpcError::internal("too many sessions");
                return Posted::Refused(fault(id, &error, ReplyClass::Internal));
            }
            return Posted::Begin;
        }
        match self.find_for(bridge, id, headers, principal, now) {
            Ok(host) => Posted::Session(host),
            Err(fault) => Posted::Refused(fault),
        }
    }

    /// The host whose session a GET or DELETE names.
    ///
    /// # Errors
    ///
    /// A missing id, or another version than was settled on, is 400; one that is nobody's or somebody else's 404.
    pub fn find<H: Headers + ?Sized>(
        &mut self,
        bridge: &Bridge,
        headers: &H,
        principal: Principal<'_>,
        now: Timestamp,
    ) -> Result<HostId, SessionFault> {
        self.find_for(bridge, None, headers, principal, now)
    }

    /// A name for a session that has begun: 128 random bits in hex, the value of `Mcp-Session-Id`.
    pub fn name(
        &mut self,
        host: HostId,
        principal: Principal<'_>,
        entropy: &Entropy,
        now: Timestamp,
    ) -> String {
        let id = format!("{:032x}", u128::from_be_bytes(entropy.expand(b"bridge/session")));
        let key = digest(id.as_bytes());
        self.table.insert(
            key,
            Entry { owner: Owner::new(principal), host, used: now, streams: Streams::default() },
        );
        self.names.insert(host, key);
        id
    }

    /// Forgets a host's session; whether it had one.
    pub fn forget(&mut self, host: HostId) -> bool {
        let entry = self.names.remove(&host).and_then(|key| self.table.remove(&key));
        self.bytes -= entry.as_ref().map_or(0, |entry| entry.streams.bytes);
        entry.is_some()
    }

    /// A stream to a session's host begins: the response to one of its requests, or to a GET. With
    /// [`EventId::write_prime`] it can be taken up before anything was said on it; hosts of revisions before 2025-11-25
    /// do not know such events. `None` if the host has no session yet.
    pub fn begin_stream(&mut self, host: HostId, stream: &HostStream, now: Timestamp) -> Option<EventId> {
        let entry = self.names.get(&host).and_then(|key| self.table.get_mut(key))?;
        Some(entry.streams.begin(stream, now))
    }

    /// The id of the event that carries this message, which is kept in case the host loses it: say so of every message
    /// on a stream that has begun, whether or not anybody reads it now. `None` if it has not.
    pub fn say(
        &mut self,
        host: HostId,
        stream: &HostStream,
        bytes: &[u8],
        last: Option<ReplyClass>,
        now: Timestamp,
    ) -> Option<EventId> {
        let SessionBounds { kept, kept_bytes, kept_bytes_in_all, .. } = self.bounds;
        let entry = self.names.get(&host).and_then(|key| self.table.get_mut(key))?;
        let before = entry.streams.bytes;
        entry.streams.forget_old(now, kept);
        let others = self.bytes - before;
        let room = kept_bytes.min(kept_bytes_in_all.saturating_sub(others));
        let id = entry.streams.say(stream, bytes, last, room, now);
        self.bytes = others + entry.streams.bytes;
        id
    }

    /// The stream that a GET of a session's host wants to take up again, by its `Last-Event-ID`; `None` if it has none
    /// and wants the stream that belongs to no request.
    ///
    /// What is said again is bounded ([`SessionBounds::kept_bytes`]): of a host that was away for long the oldest is gone.
    /// It is said once: nothing of what came up to that event, nothing of other streams.
    ///
    /// # Errors
    ///
    /// 400, if there is no such event in this session, or its stream is not kept any more.
    pub fn resume<H: Headers + ?Sized>(
        &mut self,
        host: HostId,
        headers: &H,
        now: Timestamp,
    ) -> Result<Option<Resumed>, SessionFault> {
        let found = match single(headers, "Last-Event-ID") {
            Single::Absent => return Ok(None),
            Single::One(event) => core::str::from_utf8(event).ok().and_then(|event| {
                let entry = self.names.get(&host).and_then(|key| self.table.get_mut(key))?;
                self.bytes -= entry.streams.bytes;
                entry.streams.forget_old(now, self.bounds.kept);
                self.bytes += entry.streams.bytes;
                entry.streams.after(event)
            }),
            Single::Conflicting => None,
        };
        found.map(Some).ok_or_else(|| {
            let what = "Last-Event-ID names no event that is kept";
            fault(None, &RpcError::new(ErrorCode::INVALID_REQUEST, what), ReplyClass::InvalidRequest)
        })
    }

    /// Forgets what has rested too long and is not `busy`; whose it was.
    pub fn sweep(&mut self, now: Timestamp, busy: impl Fn(HostId) -> bool) -> Vec<HostId> {
        let mut over = Vec::new();
        for entry in self.table.values_mut() {
            self.bytes -= entry.streams.bytes;
            entry.streams.forget_old(now, self.bounds.kept);
            self.bytes += entry.streams.bytes;
            if busy(entry.host) {
                entry.used = entry.used.max(now);
            } else if now > entry.used.saturating_add(self.bounds.idle) {
                over.push(entry.host);
            }
        }
        for host in &over {
            self.forget(*host);
        }
        over
    }

    fn is_full(&self, principal: Principal<'_>) -> bool {
        let owner = Owner::new(principal);
        let own = || self.table.values().filter(|entry| entry.owner == owner).count();
        self.table.len() >= self.bounds.sessions
            || principal != Principal::Anonymous && own() >= self.bounds.per_principal
    }

    fn find_for<H: Headers + ?Sized>(
        &mut self,
        bridge: &Bridge,
        id: Option<&RequestId>,
        headers: &H,
        principal: Principal<'_>,
        now: Timestamp,
    ) -> Result<HostId, SessionFault> {
        let invalid =
            |what: &'static str, class| fault(id, &RpcError::new(ErrorCode::INVALID_REQUEST, what), class);
        let named = match single(headers, name::SESSION_ID) {
            Single::One(id) => id,
            Single::Absent => {
                return Err(invalid("Mcp-Session-Id is missing", ReplyClass::InvalidRequest));
            }
            Single::Conflicting => {
                let what = "Mcp-Session-Id was sent with different values";
                return Err(invalid(what, ReplyClass::InvalidRequest));
            }
        };
        let owner = Owner::new(principal);
        let entry = self.table.get_mut(&digest(named)).filter(|entry| entry.owner == owner);
        let entry = entry.ok_or_else(|| invalid("there is no such session", ReplyClass::UnknownSession))?;
        let version = match single(headers, name::PROTOCOL_VERSION) {
            Single::Absent => None,
            Single::One(version) => Some(core::str::from_utf8(version).ok().and_then(Version::from_name)),
            Single::Conflicting => Some(None),
        };
        if version.is_some_and(|version| version.is_none() || version != bridge.host_version(entry.host)) {
            let what = "MCP-Protocol-Version is not the version of this session";
            return Err(invalid(what, ReplyClass::InvalidRequest));
        }
        entry.used = entry.used.max(now);
        Ok(entry.host)
    }
}

impl core::fmt::Debug for HostSessions {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("HostSessions").field("len", &self.table.len()).finish_non_exhaustive()
    }
}

impl Bridge {
    /// The revision that was settled on with a legacy host; `None` if it is none, or has not begun.
    #[must_use]
    pub fn host_version(&self, host: HostId) -> Option<Version> {
        match &self.hosts.get(&host)?.era {
            super::host::HostEra::Legacy(legacy) => Some(legacy.version),
            super::host::HostEra::Unknown | super::host::HostEra::Modern => None,
        }
    }
}

fn digest(id: &[u8]) -> [u8; 32] {
    Sha256::digest(id).into()
}

fn fault(id: Option<&RequestId>, error: &RpcError, class: ReplyClass) -> SessionFault {
    let mut bytes = Vec::new();
    write::error(&mut bytes, id, error);
    SessionFault { bytes, class }
}
