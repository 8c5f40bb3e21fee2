//! Connections to upstreams and what is in flight on them.

use alloc::{
    boxed::Box,
    collections::{BTreeMap, BTreeSet, VecDeque},
    vec::Vec,
};

use super::{
    Bridge, CallFailure, HostId, LinkId, Output, Owner, Transport, profile::Profile, relay::Relay,
    timers::Whom,
};
use crate::{
    error::{ErrorCode, RpcError},
    http::{ParamHeaders, request_headers},
    jsonrpc::{self, Json, Message, Notification, Request, RequestId, Response, write},
    time::Timestamp,
    trace::debug,
    wire::{ClientCapabilities, LogLevel, Version},
};

/// Names and values.
pub(super) type Headers = Vec<(Box<str>, Box<str>)>;

/// What is known of an upstream beside its configuration.
#[derive(Default)]
pub(super) struct UpstreamState {
    /// The connection, if it is modern.
    pub(super) modern: Option<LinkId>,
    /// What it said of itself.
    pub(super) profile: Option<Profile>,
    /// The revision that a legacy one has settled on before.
    pub(super) version: Option<Version>,
    /// Sessions with it.
    pub(super) sessions: usize,
    /// Of these, such as a legacy host has for itself.
    pub(super) own: usize,
    /// Those without work.
    pub(super) idle: BTreeSet<LinkId>,
    /// Calls that have a session alone, by whose they are.
    pub(super) alone: BTreeMap<Owner, usize>,
    /// Arguments that tools want mirrored into headers, as its lists said.
    pub(super) annotations: BTreeMap<Box<str>, ParamHeaders>,
    /// It has been asked who it is.
    pub(super) asked: bool,
    /// Its resources, as far as they were seen.
    pub(super) listed: super::resources::Listed,
}

impl UpstreamState {
    /// Sessions that are no legacy host's own.
    pub(super) const fn shared(&self) -> usize {
        self.sessions - self.own
    }
}

pub(super) struct Link {
    pub(super) upstream: usize,
    pub(super) kind: LinkKind,
    pub(super) timer: Option<Timestamp>,
}

pub(super) enum LinkKind {
    Modern,
    Legacy(Box<Session>),
}

/// A session with a legacy upstream.
pub(super) struct Session {
    pub(super) owner: Owner,
    /// The legacy host that has it for itself.
    pub(super) host: Option<HostId>,
    /// What it was promised (G-46): asked for by a host that can answer `wanted`.
    pub(super) promised: ClientCapabilities,
    pub(super) wanted: ClientCapabilities,
    pub(super) version: Version,
    pub(super) ready: bool,
    /// What waits until it is, or until the level is set.
    pub(super) backlog: VecDeque<(i64, Vec<u8>)>,
    pub(super) in_flight: BTreeSet<i64>,
    /// The parked call that has it alone.
    pub(super) call: Option<u64>,
    /// A call that was cancelled on it and has not ended.
    pub(super) draining: Option<i64>,
    pub(super) logging: bool,
    /// Who hears of changes through it.
    pub(super) listeners: usize,
    /// Since when a legacy host's own one has had nothing to do.
    pub(super) rests: Option<Timestamp>,
    pub(super) level: Option<LogLevel>,
    /// The request that sets it, while what comes after has to wait for its response.
    pub(super) setting: Option<i64>,
}

/// A request of ours that has no response yet.
pub(super) struct Sent {
    pub(super) link: LinkId,
    pub(super) purpose: Purpose,
    pub(super) timer: Option<Timestamp>,
}

pub(super) enum Purpose {
    Relay(Box<Relay>),
    Parked(u64),
    Dialogue(u64),
    /// A list that is put together from several upstreams' ones.
    Gather(u64, usize),
    /// The list of tools again, and then the call that failed without it.
    Relist(usize, Then),
    Initialize,
    Discover,
    /// Changes for somebody who listens.
    Listen(u64),
    /// What an upstream is to log.
    Level,
    /// Its result is of no interest.
    Ignored,
}

/// What is done again.
pub(super) enum Then {
    /// This message.
    Relay(Box<Relay>, Vec<u8>),
    /// The round of a dialogue.
    Dialogue(u64),
}

impl Sent {
    /// The parked call that it is.
    pub(super) const fn parked(&self) -> Option<u64> {
        if let Purpose::Parked(call) = self.purpose { Some(call) } else { None }
    }

    /// The request of a host that it relays.
    pub(super) fn relay(&self) -> Option<&Relay> {
        if let Purpose::Relay(relay) = &self.purpose { Some(relay) } else { None }
    }
}

impl Link {
    pub(super) fn session(&mut self) -> Option<&mut Session> {
        match &mut self.kind {
            LinkKind::Legacy(session) => Some(session),
            LinkKind::Modern => None,
        }
    }
}

impl Bridge {
    /// A message of an upstream. Over HTTP, `call` is the request on whose response stream it came; `None` on the GET
    /// stream and on a pipe.
    pub fn handle_upstream(&mut self, link: LinkId, call: Option<i64>, message: &[u8], now: Timestamp) {
        if !self.links.contains_key(&link) {
            return;
        }
        match jsonrpc::admit(message, &self.config.limits) {
            Ok(Message::Response(response)) => {
                let id = response.id.as_ref().map_or(call, RequestId::as_i64);
                let Some(sent) = id.and_then(|id| self.take_sent(id, link)) else {
                    return self.drained(link, id, now);
                };
                let whole = core::str::from_utf8(message).unwrap_or_default().trim_ascii();
                self.on_response(sent, Json::trusted(whole), response, now);
            }
            Ok(Message::Notification(notification)) => {
                self.on_upstream_notification(link, call, &notification, now);
            }
            Ok(Message::Request(request)) => self.on_upstream_request(link, call, &request, now),
            Err(refused) => {
                debug!(reason = %refused.reason, "an upstream's message is not admitted");
                // What asks or tells on the stream of a call fails nothing but itself.
                let streams = call.filter(|_| !refused.asks_or_tells());
                let id = refused.response_to.as_ref().map_or(streams, RequestId::as_i64);
                // A modern server is never answered.
                let mut over = self.links.get_mut(&link).and_then(Link::session).is_none();
                if let Some(sent) = id.and_then(|id| self.take_sent(id, link)) {
                    over |= refused.response_to.is_some();
                    self.on_failure(sent, &RpcError::internal("the upstream's response is not valid"), now);
                }
                if let Some(id) = refused.id.as_ref().filter(|_| !over) {
                    self.answer_upstream_error(link, id, &refused.error());
                }
            }
        }
    }

    /// A connection is gone: its process ended, its session is unknown (404), it could not be opened. What was in
    /// flight on it has failed and is never run again by itself.
    pub fn close_upstream(&mut self, link: LinkId, now: Timestamp) {
        self.drop_link(link, &gone(), now);
        self.serve_queue(now);
    }

    pub(super) fn drop_link(&mut self, id: LinkId, error: &RpcError, now: Timestamp) {
        let Some(mut link) = self.links.remove(&id) else { return };
        self.timers.set(Whom::Link(id), &mut link.timer, None);
        let upstream = link.upstream;
        let mut failed: Vec<i64> = Vec::new();
        match link.kind {
            LinkKind::Modern => {
                if let Some(state) = self.upstreams.get_mut(upstream) {
                    state.modern = None;
                }
                failed.extend(self.sent.iter().filter(|(_, sent)| sent.link == id).map(|(id, _)| *id));
            }
            LinkKind::Legacy(session) => {
                if let Some(state) = self.upstreams.get_mut(upstream) {
                    state.sessions -= 1;
                    state.own -= usize::from(session.host.is_some());
                    state.idle.remove(&id);
                }
                failed.extend(session.in_flight.iter().copied());
                if !session.ready {
                    self.unknown_profile(upstream, error);
                }
                if let Some(call) = session.call {
                    self.session_lost(call, now);
                }
                if let Some(host) = session.host {
                    self.withdraw_pair(id, host);
                    self.withdraw_pair_inbox(id);
                }
                if session.listeners > 0 {
                    self.listeners_lost(id, error, now);
                }
            }
        }
        for id in failed {
            if let Some(sent) = self.forget_sent(id) {
                self.on_failure(sent, error, now);
            }
        }
    }

    /// The end of a call that was cancelled: so ends its session, for a question that comes even later must not meet
    /// the next call.
    pub(super) fn drained(&mut self, link: LinkId, id: Option<i64>, now: Timestamp) {
        let Some(session) = self.links.get_mut(&link).and_then(Link::session) else { return };
        if session.draining.is_some() && session.draining == id {
            self.close_link(link, &gone(), now);
            self.serve_queue(now);
        }
    }

    pub(super) fn forget_sent(&mut self, id: i64) -> Option<Sent> {
        let mut sent = self.sent.remove(&id)?;
        self.timers.set(Whom::Sent(id), &mut sent.timer, None);
        Some(sent)
    }

    /// Takes the request that a response on `link` is for.
    pub(super) fn take_sent(&mut self, id: i64, link: LinkId) -> Option<Sent> {
        if self.sent.get(&id)?.link != link {
            return None;
        }
        let sent = self.forget_sent(id)?;
        if let Some(session) = self.links.get_mut(&link).and_then(Link::session) {
            session.in_flight.remove(&id);
            session.setting.take_if(|setting| *setting == id);
        }
        Some(sent)
    }

    fn on_response(&mut self, sent: Sent, whole: Json<'_>, response: Response<'_>, now: Timestamp) {
        let link = sent.link;
        match sent.purpose {
            Purpose::Relay(relay) => self.relay_response(*relay, whole, response.outcome, now),
            Purpose::Parked(call) => self.parked_response(call, response.outcome, now),
            Purpose::Dialogue(call) => self.dialogue_response(call, response.outcome, now),
            Purpose::Gather(gather, index) => self.gathered(gather, index, response.outcome, now),
            Purpose::Relist(upstream, then) => self.relisted(upstream, then, response.outcome, now),
            Purpose::Initialize => self.initialized(link, response.outcome, now),
            Purpose::Discover => self.discovered(link, response.outcome, now),
            Purpose::Listen(number) => self.listening_ended(number, &gone(), now),
            Purpose::Level => self.send_waiting(link, now),
            Purpose::Ignored => {}
        }
        self.settle(link, now);
    }

    /// A request of ours will get no response.
    pub(super) fn on_failure(&mut self, sent: Sent, error: &RpcError, now: Timestamp) {
        let link = sent.link;
        match sent.purpose {
            Purpose::Relay(relay) => self.relay_failed(&relay, error),
            Purpose::Parked(call) => self.parked_failed(call, error, now),
            Purpose::Dialogue(call) => self.dialogue_failed(call, error, now),
            Purpose::Gather(gather, index) => self.gathered(gather, index, Err(error.clone()), now),
            Purpose::Relist(_, Then::Relay(relay, _)) => self.relay_failed(&relay, error),
            Purpose::Relist(_, Then::Dialogue(call)) => self.dialogue_failed(call, error, now),
            Purpose::Initialize => self.close_link(link, error, now),
            Purpose::Discover => self.no_profile(link, error),
            Purpose::Listen(number) => self.listening_ended(number, error, now),
            Purpose::Level => self.send_waiting(link, now),
            Purpose::Ignored => {}
        }
        self.settle(link, now);
    }

    /// Ends a connection from this side.
    pub(super) fn close_link(&mut self, link: LinkId, error: &RpcError, now: Timestamp) {
        if self.links.contains_key(&link) {
            self.drop_link(link, error, now);
            self.out.push_back(Output::CloseUpstream { link });
        }
    }

    pub(super) fn answer_upstream(&mut self, link: LinkId, id: &RequestId, result: &[u8]) {
        let mut bytes = Vec::with_capacity(64 + result.len());
        write::result_head(&mut bytes, id);
        bytes.extend_from_slice(result);
        bytes.push(b'}');
        self.transmit(link, None, bytes, Vec::new());
    }

    pub(super) fn answer_upstream_error(&mut self, link: LinkId, id: &RequestId, error: &RpcError) {
        let mut bytes = Vec::new();
        write::error(&mut bytes, Some(id), error);
        self.transmit(link, None, bytes, Vec::new());
    }

    /// The connection to a modern upstream.
    pub(super) fn modern_link(&mut self, upstream: usize) -> LinkId {
        if let Some(link) = self.upstreams.get(upstream).and_then(|state| state.modern) {
            return link;
        }
        let link = self.fresh_link(upstream, LinkKind::Modern);
        if let Some(state) = self.upstreams.get_mut(upstream) {
            state.modern = Some(link);
        }
        link
    }

    pub(super) fn fresh_link(&mut self, upstream: usize, kind: LinkKind) -> LinkId {
        let link = LinkId(self.next_link);
        self.next_link += 1;
        self.links.insert(link, Link { upstream, kind, timer: None });
        self.out.push_back(Output::OpenUpstream { link, upstream });
        link
    }

    /// Headers of a request to a modern upstream over HTTP, from the body that is sent.
    pub(super) fn headers(
        &self,
        upstream: usize,
        method: &str,
        params: Json<'_>,
    ) -> Result<Headers, RpcError> {
        if self.config.upstreams.get(upstream).is_none_or(|up| up.transport == Transport::Pipe) {
            return Ok(Vec::new());
        }
        let name = if method == "tools/call" { params.get("name").and_then(Json::as_string) } else { None };
        let known = self.upstreams.get(upstream).zip(name);
        let annotations = known.and_then(|(state, name)| state.annotations.get(&*name));
        let request = Request::made(0.into(), method, Some(params));
        let request = Message::Request(request);
        let headers = request_headers(&request, annotations.unwrap_or(ParamHeaders::NONE))
            .map_err(|fault| RpcError::invalid_params(alloc::format!("Invalid params: {fault}")))?;
        Ok(headers.iter().map(|(name, value)| (name.into(), value.into())).collect())
    }

    fn on_upstream_request(
        &mut self,
        link: LinkId,
        call: Option<i64>,
        request: &Request<'_>,
        now: Timestamp,
    ) {
        let Some(session) = self.links.get_mut(&link).and_then(Link::session) else {
            // A modern server sends no requests.
            return debug!(method = %request.method, "a modern upstream sent a request");
        };
        match &*request.method {
            "ping" => self.answer_upstream(link, &request.id, b"{}"),
            "elicitation/create" | "sampling/createMessage" | "roots/list" => match session.host {
                Some(host) => self.pair_ask(link, host, call, request, now),
                None => self.upstream_asks(link, call, request, now),
            },
            _ => {
                let error = RpcError::new(ErrorCode::METHOD_NOT_FOUND, "Method not found");
                self.answer_upstream_error(link, &request.id, &error);
            }
        }
    }

    fn on_upstream_notification(
        &mut self,
        link: LinkId,
        call: Option<i64>,
        notification: &Notification<'_>,
        now: Timestamp,
    ) {
        match &*notification.method {
            "notifications/progress" => self.on_progress(link, notification, now),
            "notifications/message" => self.on_log(link, call, notification),
            "notifications/cancelled" => {
                if let Some(id) = notification.param("requestId").and_then(RequestId::from_json) {
                    self.upstream_cancels(link, &id, now);
                }
            }
            "notifications/elicitation/complete" => {
                if let Some(id) = notification.param("elicitationId").and_then(Json::as_string) {
                    self.elicitation_completed(link, &id, notification, now);
                }
            }
            _ => self.on_change(link, call, notification),
        }
    }

    /// Which of our requests a notification is about.
    pub(super) fn sent_on(&self, link: LinkId, id: i64) -> Option<&Sent> {
        self.sent.get(&id).filter(|sent| sent.link == link)
    }
}

/// What a host hears when its upstream is no more.
pub(super) fn gone() -> RpcError {
    CallFailure::Broken.error()
}
