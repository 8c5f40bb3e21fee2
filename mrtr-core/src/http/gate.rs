//! Steps 1 and 2: what can be refused before the body is read (R-159, R-171).

use alloc::{string::String, vec::Vec};

use super::{
    ReplyClass,
    authority::{AllowedHost, Authority, Origin},
    cors::Cors,
    headers::{Headers, Single, name, plain, single},
    media::{Accepts, is_json},
};
use crate::{
    Limits,
    error::{ErrorCode, RpcError},
    jsonrpc::write,
};

/// Where a server listens, which decides who may call it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums)]
pub enum Bind {
    /// On this machine only. Every `Host` and `Origin` must name this machine, or be allowed by name: a page
    /// that has pointed its own name at 127.0.0.1 is refused.
    Loopback,
    /// On a network, possibly behind a proxy.
    Network,
}

/// The rules for requests before their body is read. Made once, shared by all requests.
///
/// | | [`Bind::Loopback`] | [`Bind::Network`] |
/// |---|---|---|
/// | `Host` | this machine, or allowed | allowed, if any is; otherwise any |
/// | `Origin` absent | fine: no browser sent it | fine |
/// | `Origin` allowed | fine | fine |
/// | `Origin` of this machine | fine | refused |
/// | `Origin` same as `Host` | fine if the host is allowed | fine if the host is allowed, or an address |
///
/// "Same as `Host`" alone would protect nobody: a page that points its own name at this server (DNS rebinding)
/// is same-origin with it. A host that was allowed by name, or an address, cannot be taken over so.
///
/// ```
/// use mrtr_core::{Limits, http::{Bind, Gate, Verdict}};
///
/// let gate = Gate::new(Bind::Loopback, &Limits::default());
/// let foreign = [("Host", "evil.example"), ("Content-Type", "application/json")];
/// let Verdict::Refuse(refusal) = gate.check("POST", &foreign).verdict else { panic!() };
/// assert_eq!(refusal.class().status(), 403);
/// let local = [("Host", "localhost:3000"), ("Content-Type", "application/json")];
/// assert!(matches!(gate.check("POST", &local).verdict, Verdict::Read(_)));
/// ```
#[derive(Clone, Debug)]
pub struct Gate {
    bind: Bind,
    hosts: Vec<AllowedHost>,
    origins: Vec<String>,
    sessions: bool,
    body_bytes: usize,
}

/// What is to be done with a request.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Ruling<'h> {
    /// Go on, or answer at once.
    pub verdict: Verdict,
    /// The page to be told that it may read the answer: add its headers to whatever is answered. Only for
    /// origins that were allowed by name.
    pub cors: Option<Cors<'h>>,
}

/// Go on, or answer at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums)]
pub enum Verdict {
    /// Read the body, of at most `Limits::message_bytes`, whatever its length was said to be.
    Read(Accepts),
    /// A browser asks whether a page may call: answer 204 without a body, and the headers of [`Ruling::cors`].
    Preflight,
    /// Answer with the refusal; the body need not be read.
    Refuse(GateFault),
}

/// Why a request is refused before its body is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GateFault {
    /// `Host` is missing, malformed, or none of this server's names (R-159).
    #[error("Host is not a name of this server")]
    Host,
    /// `Origin` is of a page that may not call (R-159).
    #[error("Origin may not call this server")]
    Origin,
    /// The method is not served (R-171).
    #[error("the method is not allowed here")]
    Method {
        /// The value of `Allow`.
        allow: &'static str,
    },
    /// The body is not said to be JSON in UTF-8, or is compressed.
    #[error("Content-Type is not application/json")]
    MediaType,
    /// `Accept` rules out all that this server sends.
    #[error("Accept rules out both application/json and text/event-stream")]
    NotAcceptable,
    /// `Content-Length` is over `Limits::message_bytes`.
    #[error("the body is over the limit of {limit} bytes")]
    TooLarge {
        /// The bound, in bytes.
        limit: usize,
    },
    /// `Content-Length` is no number.
    #[error("Content-Length is not a length")]
    Length,
}

/// A host or origin that cannot be allowed because it is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a host (`name`, `name:port`) or an origin (`scheme://name:port`, `null`)")]
pub struct NotAName(pub String);

impl Gate {
    /// A gate that allows no names beside those of the table.
    #[must_use]
    pub const fn new(bind: Bind, limits: &Limits) -> Self {
        Self {
            bind,
            hosts: Vec::new(),
            origins: Vec::new(),
            sessions: false,
            body_bytes: limits.message_bytes,
        }
    }

    /// Allows a name in `Host`: `mcp.example.com` at any port, `mcp.example.com:8443` at that one.
    ///
    /// # Errors
    ///
    /// If it is no host.
    pub fn allow_host(mut self, host: &str) -> Result<Self, NotAName> {
        self.hosts.push(AllowedHost::parse(host).ok_or_else(|| NotAName(host.into()))?);
        Ok(self)
    }

    /// Allows pages of an origin to call, and to read the answers: `https://app.example.com`. The origin `null`
    /// is that of every sandboxed page.
    ///
    /// # Errors
    ///
    /// If it is no origin.
    pub fn allow_origin(mut self, origin: &str) -> Result<Self, NotAName> {
        if origin != "null" && Origin::parse(origin.as_bytes()).is_none() {
            return Err(NotAName(origin.into()));
        }
        self.origins.push(origin.into());
        Ok(self)
    }

    /// Also serves sessions of 2025-11-25, which use GET and DELETE (R-171).
    #[must_use]
    pub const fn serve_sessions(mut self) -> Self {
        self.sessions = true;
        self
    }

    /// Judges a request by its method and headers, in this order: `Host`, `Origin`, method, `Content-Type`,
    /// `Accept`, `Content-Length`. Allocates nothing.
    #[must_use]
    pub fn check<'h, H: Headers + ?Sized>(&self, method: &str, headers: &'h H) -> Ruling<'h> {
        let refuse = |refusal, cors| Ruling { verdict: Verdict::Refuse(refusal), cors };
        let host = match self.check_host(headers) {
            Ok(host) => host,
            Err(refusal) => return refuse(refusal, None),
        };
        let cors = match self.check_origin(headers, host) {
            Ok(cors) => cors,
            Err(refusal) => return refuse(refusal, None),
        };
        if let ("OPTIONS", Some(cors)) = (method, cors.filter(Cors::is_preflight)) {
            return Ruling { verdict: Verdict::Preflight, cors: Some(cors) };
        }
        match self.check_request(method, headers) {
            Ok(accepts) => Ruling { verdict: Verdict::Read(accepts), cors },
            Err(refusal) => refuse(refusal, cors),
        }
    }

    /// The host that the request goes to, and whether it is one that only this server has.
    fn check_host<'h, H: Headers + ?Sized>(
        &self,
        headers: &'h H,
    ) -> Result<Option<KnownHost<'h>>, GateFault> {
        let authority = match single(headers, name::HOST) {
            Single::One(value) => Authority::parse(value),
            Single::Absent | Single::Conflicting => None,
        };
        let listed = |authority| self.hosts.iter().any(|allowed| allowed.allows(authority));
        match (self.bind, authority) {
            (_, Some(authority)) if listed(authority) => Ok(Some(KnownHost(authority))),
            (Bind::Loopback, Some(authority)) if authority.is_loopback() => Ok(None),
            (Bind::Network, Some(authority)) if self.hosts.is_empty() => {
                Ok(authority.address().map(|_| KnownHost(authority)))
            }
            (Bind::Network, None) if self.hosts.is_empty() => Ok(None),
            (Bind::Loopback | Bind::Network, _) => Err(GateFault::Host),
        }
    }

    fn check_origin<'h, H: Headers + ?Sized>(
        &self,
        headers: &'h H,
        host: Option<KnownHost<'h>>,
    ) -> Result<Option<Cors<'h>>, GateFault> {
        let value = match single(headers, name::ORIGIN) {
            Single::Absent => return Ok(None),
            Single::Conflicting => return Err(GateFault::Origin),
            Single::One(value) => value,
        };
        let origin = Origin::parse(value);
        let listed = |allowed: &String| match (origin, Origin::parse(allowed.as_bytes())) {
            (Some(origin), Some(allowed)) => origin.is_same(allowed),
            (None, None) => value == allowed.as_bytes(),
            _ => false,
        };
        if self.origins.iter().any(listed) {
            return Ok(plain(value).map(|origin| Cors::new(origin, headers, self.methods())));
        }
        let Some(origin) = origin.filter(|origin| origin.is_web()) else { return Err(GateFault::Origin) };
        let local = self.bind == Bind::Loopback && origin.authority().is_loopback();
        if local || host.is_some_and(|host| origin.is_from(host.0)) {
            Ok(None)
        } else {
            Err(GateFault::Origin)
        }
    }

    fn check_request<H: Headers + ?Sized>(&self, method: &str, headers: &H) -> Result<Accepts, GateFault> {
        let accepts = Accepts::from_headers(headers);
        match method {
            "POST" => self.check_body(headers)?,
            "GET" if self.sessions && !accepts.event_stream => return Err(GateFault::NotAcceptable),
            "GET" | "DELETE" if self.sessions => return Ok(accepts),
            _ => return Err(GateFault::Method { allow: self.methods() }),
        }
        if !accepts.json && !accepts.event_stream {
            return Err(GateFault::NotAcceptable);
        }
        match single(headers, name::CONTENT_LENGTH) {
            Single::Absent => Ok(accepts),
            Single::Conflicting => Err(GateFault::Length),
            Single::One(value) => self.check_length(value).map(|()| accepts),
        }
    }

    /// A browser sends JSON across origins only after it has asked, so a request that is not said to be JSON is
    /// one that a page could send unasked.
    fn check_body<H: Headers + ?Sized>(&self, headers: &H) -> Result<(), GateFault> {
        let json = matches!(single(headers, name::CONTENT_TYPE), Single::One(value) if is_json(value));
        let bare = match single(headers, name::CONTENT_ENCODING) {
            Single::Absent => true,
            Single::One(value) => value.is_empty() || value.eq_ignore_ascii_case(b"identity"),
            Single::Conflicting => false,
        };
        if json && bare { Ok(()) } else { Err(GateFault::MediaType) }
    }

    fn check_length(&self, value: &[u8]) -> Result<(), GateFault> {
        if value.is_empty() || !value.iter().all(u8::is_ascii_digit) {
            return Err(GateFault::Length);
        }
        // What does not fit in a number is too large as well.
        let length = core::str::from_utf8(value).ok().and_then(|digits| digits.parse::<usize>().ok());
        match length {
            Some(length) if length <= self.body_bytes => Ok(()),
            Some(_) | None => Err(GateFault::TooLarge { limit: self.body_bytes }),
        }
    }

    const fn methods(&self) -> &'static str {
        if self.sessions { "GET, POST, DELETE" } else { "POST" }
    }
}

/// A host that belongs to this server: allowed by name, or an address.
#[derive(Clone, Copy)]
struct KnownHost<'h>(Authority<'h>);

impl GateFault {
    /// The class, and with it the status.
    #[must_use]
    pub const fn class(self) -> ReplyClass {
        match self {
            Self::Host | Self::Origin => ReplyClass::Forbidden,
            Self::Method { .. } => ReplyClass::MethodNotAllowed,
            Self::MediaType => ReplyClass::UnsupportedMediaType,
            Self::NotAcceptable => ReplyClass::NotAcceptable,
            Self::TooLarge { .. } => ReplyClass::TooLarge,
            Self::Length => ReplyClass::InvalidRequest,
        }
    }

    /// The value of the `Allow` header, which goes with a 405.
    #[must_use]
    pub const fn allow(self) -> Option<&'static str> {
        match self {
            Self::Method { allow } => Some(allow),
            Self::Host
            | Self::Origin
            | Self::MediaType
            | Self::NotAcceptable
            | Self::TooLarge { .. }
            | Self::Length => None,
        }
    }

    /// Appends the body: a JSON-RPC error without an id (R-159, R-003).
    pub fn write(self, out: &mut Vec<u8>) {
        let error = RpcError::new(ErrorCode::INVALID_REQUEST, alloc::format!("Invalid request: {self}"));
        write::error(out, None, &error);
    }
}
