//! Hosts' connections and the messages they bring.

use alloc::{borrow::Cow, boxed::Box, collections::BTreeMap, format, vec::Vec};

use super::{Bridge, HostId, HostKind, HostStream, Output, Owner};
use crate::{
    error::{ErrorCode, RpcError},
    http::{self, Headers, ReplyClass},
    jsonrpc::{self, Json, Message, Notification, Parts, Refused, Request, RequestId, write},
    seal::Principal,
    time::Timestamp,
    wire::{AskKind, ClientCapabilities, Era, LogLevel, RequestMeta, Version, key},
};

pub(super) struct Host {
    pub(super) kind: HostKind,
    pub(super) owner: Owner,
    pub(super) era: HostEra,
    /// Requests without a response yet, and what they wait for.
    pub(super) open: BTreeMap<RequestId, Open>,
}

pub(super) enum HostEra {
    Unknown,
    Modern,
    Legacy(Box<LegacyHost>),
}

/// What `initialize` has settled, and what was asked since.
pub(super) struct LegacyHost {
    pub(super) version: Version,
    pub(super) capabilities: ClientCapabilities,
    /// As the host wrote them.
    pub(super) declared: Box<str>,
    pub(super) ready: bool,
    pub(super) level: Option<LogLevel>,
    /// Our requests to it that are out.
    pub(super) asked: BTreeMap<i64, AskedHost>,
    /// Sent once it is ready.
    pub(super) waiting: Vec<(HostStream, Vec<u8>)>,
}

pub(super) struct AskedHost {
    pub(super) whose: Whose,
    /// The host's call that it belongs to.
    pub(super) call: Option<RequestId>,
}

pub(super) enum Whose {
    Dialogue {
        call: u64,
        key: Box<str>,
        kind: AskKind,
    },
    /// A legacy upstream's own request, under its id there.
    Pair {
        link: super::LinkId,
        id: RequestId,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Open {
    /// Being decided.
    New,
    Sent(i64),
    Parked(u64),
    Dialogue(u64),
    Queued,
    Gather(u64),
    /// Another process works on it.
    Handed(u64),
    /// It hears of changes.
    Listen(u64),
    /// Waits until an upstream has said who it is.
    Profile,
}

impl Host {
    pub(super) const fn is_legacy(&self) -> bool {
        matches!(self.era, HostEra::Legacy(_))
    }

    pub(super) fn legacy(&mut self) -> Option<&mut LegacyHost> {
        match &mut self.era {
            HostEra::Legacy(legacy) => Some(legacy),
            HostEra::Unknown | HostEra::Modern => None,
        }
    }
}

/// A modern request, read.
pub(super) struct Modern<'a> {
    /// The whole message.
    pub(super) whole: Json<'a>,
    pub(super) request: Request<'a>,
    pub(super) meta: RequestMeta<'a>,
    pub(super) parts: Parts<'a>,
}

type Refusal = (RpcError, ReplyClass);

impl Bridge {
    /// A host's connection begins. `principal` is who is at its other end, as the embedder has verified it (R-257:
    /// a token is never passed on).
    pub fn open_host(&mut self, host: HostId, kind: HostKind, principal: Principal<'_>) {
        let era = match kind {
            HostKind::Post => HostEra::Modern,
            HostKind::Pipe | HostKind::Session => HostEra::Unknown,
        };
        let owner = Owner::new(principal);
        self.hosts.insert(host, Host { kind, owner, era, open: BTreeMap::new() });
    }

    /// A message of a host. `headers` are those of its POST, if it is a modern one: they must agree with the body
    ///
    ///
    /// A message that needs no response ([`Output::ToHost`] with `last`) gets none: 202 over HTTP.
    pub fn handle_host(
        &mut self,
        host: HostId,
        message: &[u8],
        headers: Option<&dyn Headers>,
        now: Timestamp,
    ) {
        let Some(entry) = self.hosts.get(&host) else { return };
        match jsonrpc::admit(message, &self.config.limits) {
            Ok(Message::Request(request)) => {
                if entry.open.contains_key(&request.id) {
                    // A second answer under this id could only be taken for the first request's.
                    let error = RpcError::new(
                        ErrorCode::INVALID_REQUEST,
                        "Invalid request: the id of a request that runs was used again",
                    );
                    return self.reply_unasked(host, None, &error, ReplyClass::InvalidRequest);
                }
                if self.is_legacy_request(host, &request) {
                    self.legacy_request(host, &request, now);
                } else {
                    let whole = core::str::from_utf8(message).unwrap_or_default().trim_ascii();
                    self.modern_request(host, Json::trusted(whole), request, headers, now);
                }
            }
            Ok(Message::Notification(notification)) => {
                self.host_notification(host, &notification, headers, now);
            }
            Ok(Message::Response(response)) => self.host_response(host, response, now),
            Err(refused) => self.host_refused(host, &refused, now),
        }
    }

    /// A host's connection is gone: a pipe closed, a session ended (DELETE, idle), a POST's stream closed before its
    /// response.
    ///
    /// A modern host's requests are cancelled with it, but for a running round that continues a parked call:
    /// that one may be taken up again for [`Waits::grace`](super::Waits::grace). Parked calls stay: between two rounds
    /// a closed connection means nothing. That a legacy host's single stream is lost is no end of the session: say
    /// nothing then.
    pub fn close_host(&mut self, host: HostId, now: Timestamp) {
        let Some(entry) = self.hosts.get_mut(&host) else { return };
        let open: Vec<(RequestId, Open)> = entry.open.iter().map(|(id, open)| (id.clone(), *open)).collect();
        for (id, open) in open {
            match open {
                Open::Parked(call) => self.detach(call, host, &id, now),
                Open::New
                | Open::Sent(_)
                | Open::Dialogue(_)
                | Open::Queued
                | Open::Gather(_)
                | Open::Handed(_)
                | Open::Listen(_)
                | Open::Profile => {
                    self.cancel(host, &id, now);
                }
            }
        }
        let Some(entry) = self.hosts.remove(&host) else { return };
        for _ in &entry.open {
            self.counts.open -= 1;
            self.release(&entry.owner, |usage| &mut usage.calls);
        }
        if entry.is_legacy() {
            self.stop_listening_for(host, now);
            self.close_dedicated(host);
            self.serve_queue(now);
        }
        self.curious.retain(|curious| curious.host != host);
    }

    /// A request comes in under this id: it is open until [`finish`](Self::finish).
    pub(super) fn take(&mut self, host: HostId, id: &RequestId) -> Result<(), RpcError> {
        let Some(entry) = self.hosts.get_mut(&host) else {
            return Err(RpcError::internal("the connection is gone"));
        };
        entry.open.insert(id.clone(), Open::New);
        let usage = self.usage.entry(entry.owner.clone()).or_default();
        usage.calls += 1;
        let over = usage.calls > self.config.quota.calls;
        self.counts.open += 1;
        self.counts.requests += 1;
        if over {
            self.counts.over += 1;
            return Err(busy("too many requests under way (Quota::calls)", 1_000));
        }
        Ok(())
    }

    pub(super) fn set_open(&mut self, host: HostId, id: &RequestId, open: Open) {
        if let Some(place) = self.hosts.get_mut(&host).and_then(|entry| entry.open.get_mut(id)) {
            *place = open;
        }
    }

    fn is_legacy_request(&mut self, host: HostId, request: &Request<'_>) -> bool {
        let Some(entry) = self.hosts.get_mut(&host) else { return false };
        let modern = || {
            let meta = request.params.and_then(|params| params.get("_meta"));
            meta.and_then(|meta| meta.get(key::PROTOCOL_VERSION)).is_some()
        };
        match (&entry.era, entry.kind) {
            (HostEra::Legacy(_), _) => true,
            (HostEra::Modern, HostKind::Post | HostKind::Session) => false,
            (HostEra::Unknown, HostKind::Session) => true,
            // A host that knows both eras asks in the modern one first and begins a session if that fails, or takes too
            // long: whatever it said before, a bare `initialize` is one.
            (HostEra::Modern, HostKind::Pipe) => {
                matches!(&*request.method, "initialize" | "ping") && !modern()
            }
            // The era by what the message says of itself (R-052, G-44).
            (HostEra::Unknown, HostKind::Pipe | HostKind::Post) => {
                let legacy = matches!(&*request.method, "initialize" | "ping") && !modern();
                if !legacy {
                    entry.era = HostEra::Modern;
                }
                legacy
            }
        }
    }

    /// Says something that answers no open request.
    pub(super) fn reply_unasked(
        &mut self,
        host: HostId,
        id: Option<&RequestId>,
        error: &RpcError,
        class: ReplyClass,
    ) {
        let mut bytes = Vec::new();
        write::error(&mut bytes, id, error);
        let Some(entry) = self.hosts.get(&host) else { return };
        let post = entry.kind == HostKind::Post;
        let stream = id.map_or(HostStream::Common, |id| HostStream::Request(id.clone()));
        if post {
            self.hosts.remove(&host);
        }
        self.out.push_back(Output::ToHost { host, stream, bytes, last: Some(class) });
    }

    fn host_refused(&mut self, host: HostId, refused: &Refused, now: Timestamp) {
        // A broken response still says which of our requests has failed; then it was no request.
        let failed = refused.response_to.as_ref().is_some_and(|id| {
            let error = RpcError::internal("the host's answer is not a valid message");
            self.host_answered(host, id, Err(error), now)
        });
        if refused.wants_answer() && !(failed && refused.id.is_some()) {
            self.reply_unasked(host, refused.id.as_ref(), &refused.error(), ReplyClass::from(refused));
        }
    }

    fn modern_request<'a>(
        &mut self,
        host: HostId,
        whole: Json<'a>,
        request: Request<'a>,
        headers: Option<&dyn Headers>,
        now: Timestamp,
    ) {
        let id = request.id.clone();
        let taken = self.take(host, &id);
        let parts = request.parts();
        let read = match taken {
            Err(error) => Err((error, ReplyClass::Internal)),
            Ok(()) => check_modern(&request, parts, headers),
        };
        match read {
            Err((error, class)) => self.respond_error(host, &id, class, &error),
            Ok(meta) => {
                let modern = Modern { whole, request, meta, parts };
                match headers.and_then(|headers| self.params_fault(&modern, headers)) {
                    Some(error) => self.respond_error(host, &id, ReplyClass::HeaderMismatch, &error),
                    None => self.route_modern(host, &modern, now),
                }
            }
        }
    }

    fn host_notification(
        &mut self,
        host: HostId,
        notification: &Notification<'_>,
        headers: Option<&dyn Headers>,
        now: Timestamp,
    ) {
        if let Some(Err(fault)) = headers.map(|headers| http::check_notification(headers, notification)) {
            return self.reply_unasked(host, None, &fault.error(), ReplyClass::HeaderMismatch);
        }
        match &*notification.method {
            "notifications/cancelled" => {
                if let Some(id) = notification.param("requestId").and_then(RequestId::from_json) {
                    self.cancel(host, &id, now);
                }
            }
            "notifications/initialized" => self.host_ready(host, now),
            // BT-4: no pooled session was promised to be told; the host's own one hears what it has declared.
            "notifications/roots/list_changed" | "notifications/progress" => {
                self.tell_dedicated(host, notification);
            }
            _ => {}
        }
        if self.hosts.get(&host).is_some_and(|entry| entry.kind == HostKind::Post) {
            self.hosts.remove(&host);
        }
    }

    /// A host no longer wants a response: nothing more is sent for it, and its upstream request is cancelled.
    pub(super) fn cancel(&mut self, host: HostId, id: &RequestId, now: Timestamp) {
        let Some(open) = self.hosts.get(&host).and_then(|entry| entry.open.get(id)).copied() else { return };
        match open {
            Open::Sent(sent) => self.cancel_sent(sent, now),
            Open::Parked(call) => self.cancel_parked(call, host, id, now),
            Open::Dialogue(call) => self.cancel_dialogue(call, now),
            Open::Queued => self.unqueue(host, id),
            Open::Gather(gather) => {
                self.gathers.remove(&gather);
            }
            Open::Handed(number) => self.cancel_handed(number),
            Open::Listen(number) => self.stop_listening(number, now),
            Open::New | Open::Profile => {}
        }
        self.withdraw_asks(host, id);
        self.drop_open(host, id);
    }

    /// Forgets an open request without a response; its stream ends.
    pub(super) fn drop_open(&mut self, host: HostId, id: &RequestId) {
        let Some(entry) = self.hosts.get_mut(&host) else { return };
        if entry.open.remove(id).is_none() {
            return;
        }
        let (owner, kind) = (entry.owner.clone(), entry.kind);
        self.counts.open -= 1;
        self.release(&owner, |usage| &mut usage.calls);
        match kind {
            HostKind::Pipe => {}
            HostKind::Session => {
                let stream = HostStream::Request(id.clone());
                let last = Some(ReplyClass::Accepted);
                self.out.push_back(Output::ToHost { host, stream, bytes: Vec::new(), last });
            }
            HostKind::Post => {
                self.hosts.remove(&host);
            }
        }
    }

    pub(super) fn owner(&self, host: HostId) -> Owner {
        self.hosts.get(&host).map_or(Owner(None), |entry| entry.owner.clone())
    }
}

/// The check order of R-170.
fn check_modern<'a>(
    request: &Request<'a>,
    parts: Parts<'a>,
    headers: Option<&dyn Headers>,
) -> Result<RequestMeta<'a>, Refusal> {
    let mismatch = |fault: http::HeaderMismatch| (fault.error(), ReplyClass::HeaderMismatch);
    let version = headers.map(http::check_version_present).transpose().map_err(mismatch)?;
    let meta = RequestMeta::from_json(parts.meta).map_err(|fault| {
        (RpcError::invalid_params(format!("Invalid params: {fault}")), ReplyClass::MetaInvalid)
    })?;
    if let Some(version) = version {
        http::check_version_matches(version, &meta).map_err(mismatch)?;
    }
    let served = Version::from_name(&meta.protocol_version).filter(|version| version.era() == Era::Modern);
    if served.is_none() {
        return Err((unsupported(&meta.protocol_version), ReplyClass::UnsupportedVersion));
    }
    if let Some(headers) = headers {
        http::check_standard(headers, request).map_err(mismatch)?;
    }
    Ok(meta)
}

/// `-32022` with what is served and what was asked for.
fn unsupported(requested: &str) -> RpcError {
    let mut data = b"{\"supported\":[\"2026-07-28\"],\"requested\":".to_vec();
    let shown: alloc::string::String = requested.chars().take(64).collect();
    write::string(&mut data, &shown);
    data.push(b'}');
    let error = RpcError::new(ErrorCode::UNSUPPORTED_VERSION, "Unsupported protocol version");
    error.with_raw_data(alloc::string::String::from_utf8(data).unwrap_or_default())
}

/// `-32603` for what may be tried again later.
pub(super) fn busy(message: &'static str, after_ms: u64) -> RpcError {
    RpcError::internal(message).with_raw_data(format!("{{\"retryAfterMs\":{after_ms}}}"))
}

/// A parameter that has to be text.
pub(super) fn text<'a>(value: Option<Json<'a>>, name: &str) -> Result<Cow<'a, str>, RpcError> {
    let text = value.and_then(Json::as_string);
    text.ok_or_else(|| RpcError::invalid_params(format!("Invalid params: {name} is missing or not a string")))
}
