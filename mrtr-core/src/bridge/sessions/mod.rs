//! Which session a POST, GET or DELETE of a legacy host belongs to (R-052, R-240, R-241, G-44).

use alloc::{collections::BTreeMap, format, string::String, vec::Vec};
use core::time::Duration;

use sha2::{Digest as _, Sha256};

use super::{Bridge, HostId, Owner};
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
}

impl Default for SessionBounds {
    fn default() -> Self {
        Self { sessions: 10_000, per_principal: 64, idle: Duration::from_secs(30 * 60) }
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
}

struct Entry {
    owner: Owner,
    host: HostId,
    used: Timestamp,
}

impl HostSessions {
    /// None yet.
    #[must_use]
    pub const fn new(bounds: SessionBounds) -> Self {
        Self { bounds, table: BTreeMap::new(), names: BTreeMap::new() }
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
        self.table.insert(key, Entry { owner: Owner::new(principal), host, used: now });
        self.names.insert(host, key);
        id
    }

    /// Forgets a host's session; whether it had one.
    pub fn forget(&mut self, host: HostId) -> bool {
        self.names.remove(&host).is_some_and(|key| self.table.remove(&key).is_some())
    }

    /// Forgets what has rested too long and is not `busy`; whose it was.
    pub fn sweep(&mut self, now: Timestamp, busy: impl Fn(HostId) -> bool) -> Vec<HostId> {
        let mut over = Vec::new();
        for entry in self.table.values_mut() {
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
    /// The revision that was settled on with a legacy host.
    fn host_version(&self, host: HostId) -> Option<Version> {
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
