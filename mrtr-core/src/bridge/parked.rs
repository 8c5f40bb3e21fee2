//! A modern host's call at a legacy upstream (BT-7): the upstream's call waits here while its questions go to the host
//! as interim results and the answers come back with retries.
//!
//! ```text
//!  new ──▶ running ──(questions, after a short while)──▶ parked ──(retry)──▶ running ──▶ … ──▶ over, kept for a while
//!             ▲                                            │ nobody comes back
//!             └── host's stream lost: grace                └──▶ questions answered `cancel`, call cancelled
//! ```

use alloc::{borrow::Cow, boxed::Box, collections::BTreeSet, format, string::String, vec::Vec};

use super::{
    Bridge, HostId, HostStream, LinkId, Output, Owner, Reason, Transport,
    host::{Modern, Open, busy},
    inbox::{Asker, Entry},
    link::{Link, Purpose, gone},
    pool::{Want, What},
    relay::{class_of, digest, head, progress, renamed, seal_error},
    state::{Bound, Carried},
    timers::Whom,
};
use crate::{
    error::RpcError,
    http::ReplyClass,
    jsonrpc::{Json, Notification, Request, RequestId, write},
    ledger::{AnswersDigest, effective_digest},
    seal::{ExchangeId, NewClaims, Ttl, Verdict},
    time::Timestamp,
    translate::{
        Origin, UrlRequired, answer_to_legacy, ask_to_modern, error_to_modern, params_to_legacy,
        result_to_modern, url_required,
    },
    wire::{Action, AskKind, AskingMethod, ClientCapabilities, LogLevel, Requirement, key},
};

/// Retries that may wait for one outcome (B4).
const WAITERS: usize = 4;

/// How often a call is made again after `-32042`.
const REISSUES: u8 = 3;

/// Bytes of a result that is kept in case it was lost (B3).
const KEPT: usize = 256 << 10;

/// Results that are kept at a time.
const KEPT_AT_A_TIME: usize = 10_000;

pub(super) struct Parked {
    owner: Owner,
    upstream: usize,
    pub(super) link: Option<LinkId>,
    method: AskingMethod,
    /// The tool's or prompt's name, or the uri.
    target: Box<str>,
    digest: [u8; 32],
    exchange: ExchangeId,
    deadline: Timestamp,
    /// Params for the upstream, for as long as the call may be made (again).
    params: Option<Box<str>>,
    /// What the newest request declared.
    can: ClientCapabilities,
    in_flight: Option<i64>,
    attached: Option<Attached>,
    waiters: Vec<(HostId, RequestId)>,
    asks: Vec<Ask>,
    keys: u32,
    /// Rounds with questions so far.
    asked: u32,
    /// The round whose questions are out, or whose answers are being worked with.
    round: u32,
    /// Its answers have come.
    consumed: bool,
    last: Option<Box<Last>>,
    urls: Option<Box<Urls>>,
    reissued: u8,
    outcome: Option<Outcome>,
    delivered: bool,
    /// The upstream has taken its questions back and goes on.
    withdrawn: bool,
    counted: bool,
    beats: u32,
    flush: Option<Timestamp>,
    hold: Option<Timestamp>,
    grace: Option<Timestamp>,
    expires: Option<Timestamp>,
    alive: Option<Timestamp>,
    timer: Option<Timestamp>,
}

/// The host's request that is open.
struct Attached {
    host: HostId,
    id: RequestId,
    progress: Option<RequestId>,
    level: Option<LogLevel>,
}

struct Ask {
    key: Box<str>,
    kind: AskKind,
    needs: Requirement,
    /// The entry of `inputRequests`.
    entry: Box<str>,
    from: From,
    /// It waits in the inbox: the host cannot be asked.
    inbox: Option<u64>,
    /// It was out before.
    shown: bool,
    /// The upstream wants signs of life under this token.
    token: Option<RequestId>,
}

enum From {
    /// A request of the upstream.
    Upstream(RequestId),
    /// An entry of `-32042`.
    Url,
}

/// The retry that was used last.
struct Last {
    round: u32,
    keys: Vec<Box<str>>,
    digest: AnswersDigest,
}

/// Urls that the upstream wants opened before it takes the call.
struct Urls {
    urls: Vec<Box<str>>,
    open: BTreeSet<Box<str>>,
    /// All were accepted: until then their completion is waited for.
    wait: Option<Timestamp>,
}

struct Outcome {
    class: ReplyClass,
    /// `"result":…` or `"error":…`.
    body: Box<[u8]>,
}

impl Parked {
    /// What its deadline is for.
    pub(super) fn reason(&self) -> Reason {
        match self.next().map(|(_, reason)| reason) {
            Some(reason) => reason,
            None => Reason::Abandoned,
        }
    }

    fn next(&self) -> Option<(Timestamp, Reason)> {
        let here = self.attached.is_some();
        let of = |at: Option<Timestamp>, when: bool, reason| at.filter(|_| when).map(|at| (at, reason));
        let waits = self.urls.as_ref().and_then(|urls| urls.wait);
        [
            of(self.flush, here, Reason::Coalesced),
            of(self.hold.or(waits), here, Reason::Held),
            of(self.grace, !here, Reason::StreamLost),
            of(self.expires, !here, if self.delivered { Reason::Kept } else { Reason::Abandoned }),
            of(self.alive, true, Reason::Alive),
        ]
        .into_iter()
        .flatten()
        .min()
    }

    pub(super) fn log_target(&self) -> Option<(HostId, RequestId, Option<LogLevel>)> {
        let attached = self.attached.as_ref()?;
        Some((attached.host, attached.id.clone(), attached.level))
    }

    fn error(&mut self, error: &RpcError) {
        let mut body = Vec::new();
        write::error(&mut body, None, error);
        // `{"jsonrpc":"2.0",` goes, and the last brace.
        let from = b"{\"jsonrpc\":\"2.0\",".len();
        let body = body.get(from..body.len().saturating_sub(1)).unwrap_or_default().into();
        self.outcome = Some(Outcome { class: class_of(error.code), body });
    }
}

impl Bridge {
    /// A request that may ask, for a legacy upstream: a new call, or the retry of a parked one.
    pub(super) fn park_or_resume(
        &mut self,
        host: HostId,
        m: &Modern<'_>,
        method: AskingMethod,
        upstream: usize,
        name: Option<&str>,
        now: Timestamp,
    ) {
        let id = &m.request.id;
        let digest = match digest(method, &m.parts) {
            Ok(digest) => digest,
            Err(error) => return self.respond_error(host, id, ReplyClass::HandlerError, &error),
        };
        let attached = Attached {
            host,
            id: id.clone(),
            progress: m.meta.progress_token.clone(),
            level: m.meta.log_level,
        };
        let Some(token) = m.parts.state.and_then(Json::as_string) else {
            return self.new_call(attached, m, (method, upstream, name), digest, now);
        };
        let owner = self.owner(host);
        let origin = self.config.upstreams.get(upstream).map_or("", |up| &*up.name);
        let opened =
            self.vault.open(&token, &Bound { owner: &owner, request: &digest, upstream: origin }, now);
        match opened.map(|opened| opened.carried) {
            Ok(Carried::Handle { epoch, call, round }) if epoch == self.epoch => {
                self.resume(call, round, attached, m, now);
            }
            // One that came from another process already is not sent on.
            Ok(Carried::Handle { epoch, call, round })
                if self.config.replicas && !self.remote.contains_key(&host) =>
            {
                self.hand_over(host, m, (epoch, call, round), now);
            }
            Ok(Carried::Handle { .. }) => {
                self.counts.lost += 1;
                let error =
                    RpcError::internal("the process that held this call is gone; it is not run again");
                self.respond_error(host, id, ReplyClass::Internal, &error);
            }
            Ok(Carried::Wrapped { .. }) => self.refuse_state(host, id, Verdict::OtherRequest),
            Err(verdict) => self.refuse_state(host, id, verdict),
        }
    }

    fn new_call(
        &mut self,
        attached: Attached,
        m: &Modern<'_>,
        (method, upstream, name): (AskingMethod, usize, Option<&str>),
        digest: [u8; 32],
        now: Timestamp,
    ) {
        let (host, id) = (attached.host, attached.id.clone());
        let owner = self.owner(host);
        if self.usage.get(&owner).is_some_and(|usage| usage.parked >= self.config.quota.parked) {
            self.counts.over += 1;
            let error = busy("too many calls wait for answers (Quota::parked)", 1_000);
            return self.respond_error(host, &id, ReplyClass::Internal, &error);
        }
        let params = m.request.params.unwrap_or(Json::EMPTY_OBJECT);
        let named = name.map(|name| renamed(params, name));
        let mut text = Vec::new();
        params_to_legacy(&mut text, named.as_deref().map_or(params, Json::trusted), None);
        let target = match method {
            AskingMethod::ToolsCall | AskingMethod::PromptsGet => m.parts.name,
            AskingMethod::ResourcesRead => m.parts.uri,
        };
        let target = target.and_then(Json::as_string).unwrap_or_default();
        let call = u64::try_from(self.fresh_id()).unwrap_or(0);
        let can = m.meta.capabilities;
        let parked = Parked {
            owner: owner.clone(),
            upstream,
            link: None,
            method,
            target: target.into_owned().into(),
            digest,
            exchange: ExchangeId::from_bytes(self.random.bytes(b"bridge/exchange")),
            deadline: now.saturating_add(self.config.limits.exchange),
            params: String::from_utf8(text).ok().map(String::into_boxed_str),
            can,
            in_flight: None,
            attached: Some(attached),
            waiters: Vec::new(),
            asks: Vec::new(),
            keys: 0,
            asked: 0,
            round: 0,
            consumed: true,
            last: None,
            urls: None,
            reissued: 0,
            outcome: None,
            delivered: false,
            withdrawn: false,
            counted: false,
            beats: 0,
            flush: None,
            hold: None,
            grace: None,
            expires: None,
            alive: Some(now.saturating_add(self.config.waits.alive)),
            timer: None,
        };
        self.parked.insert(call, Box::new(parked));
        self.set_open(host, &id, Open::Parked(call));
        let want = Want { upstream, owner, host: can.union(self.config.inbox), asking: true };
        match self.acquire(&want, now) {
            Some(link) => self.run_parked(call, link, now),
            None => {
                if let Err(error) = self.enqueue(want, What::Parked(call), now) {
                    self.parked_failed(call, &error, now);
                }
            }
        }
        self.schedule(call);
    }

    /// A call has its session.
    pub(super) fn run_parked(&mut self, call: u64, link: LinkId, now: Timestamp) {
        let level = self.wanted_level(call);
        let Some(session) = self.links.get_mut(&link).and_then(Link::session) else { return };
        if session.promised != ClientCapabilities::default() {
            session.call = Some(call);
        }
        if let Some(level) = level.filter(|_| session.ready && session.logging) {
            self.set_session_level(link, level, now);
        }
        if let Some(parked) = self.parked.get_mut(&call) {
            parked.link = Some(link);
        }
        self.issue(call, now);
    }

    /// What the host of a call wants to hear.
    pub(super) fn wanted_level(&self, call: u64) -> Option<LogLevel> {
        self.parked.get(&call)?.attached.as_ref()?.level
    }

    /// Sends the call upstream, under a new id.
    fn issue(&mut self, call: u64, now: Timestamp) {
        let id = self.fresh_id();
        let Some(parked) = self.parked.get_mut(&call) else { return };
        let (Some(link), Some(params)) = (parked.link, parked.params.take()) else {
            return self.parked_failed(call, &gone(), now);
        };
        let wanted = parked.attached.as_ref().is_some_and(|attached| attached.progress.is_some());
        let token = RequestId::from(id);
        let mut bytes = head(id, parked.method.name());
        params_to_legacy(&mut bytes, Json::trusted(&params), wanted.then_some(&token));
        bytes.push(b'}');
        // Only urls can make it necessary to call again.
        if parked.can.url {
            parked.params = Some(params);
        }
        parked.in_flight = Some(id);
        self.send(link, id, bytes, Vec::new(), Purpose::Parked(call), now);
    }

    /// A question of a legacy upstream. It belongs to the call that has the session alone, or on HTTP to the one on
    /// whose stream it came (R-253, G-45).
    pub(super) fn upstream_asks(
        &mut self,
        link: LinkId,
        stream: Option<i64>,
        request: &Request<'_>,
        now: Timestamp,
    ) {
        let alone = self.links.get_mut(&link).and_then(Link::session).and_then(|session| session.call);
        let streamed = stream.and_then(|id| match self.sent_on(link, id)?.purpose {
            Purpose::Parked(call) => Some(call),
            _ => None,
        });
        let call = alone.or(streamed).filter(|call| {
            self.parked.get(call).is_some_and(|p| p.in_flight.is_some() && p.link == Some(link))
        });
        let Some(call) = call else {
            let error = RpcError::invalid_params("no request that may ask is in flight in this session");
            return self.answer_upstream_error(link, &request.id, &error);
        };
        let named = self.named;
        let Some(parked) = self.parked.get_mut(&call) else { return };
        let name = self.config.upstreams.get(parked.upstream).map_or("", |up| &*up.name);
        let origin = if named { Origin::Named(name) } else { Origin::Untouched };
        let mut entry = Vec::new();
        let can = parked.can.union(self.config.inbox);
        let read = ask_to_modern(&mut entry, &request.method, request.params, can, origin);
        let error = match &read {
            Err(fault) => Some(RpcError::invalid_params(format!("Invalid params: the question {fault}"))),
            Ok(_) if parked.asks.len() >= self.config.limits.asks_accepted => {
                Some(RpcError::internal("too many questions at a time (Limits::asks_accepted)"))
            }
            Ok(_) => None,
        };
        let (Ok(ask), None) = (read, &error) else {
            let error = error.unwrap_or_else(|| RpcError::invalid_params("Invalid params"));
            return self.answer_upstream_error(link, &request.id, &error);
        };
        parked.keys += 1;
        let ask = Ask {
            key: format!("u{}", parked.keys).into(),
            kind: ask.kind,
            needs: ask.needs,
            entry: String::from_utf8(entry).unwrap_or_default().into(),
            from: From::Upstream(request.id.clone()),
            inbox: None,
            shown: false,
            token: ask.progress_token,
        };
        if ask.token.is_some() && parked.alive.is_none() {
            parked.alive = Some(now.saturating_add(self.config.waits.alive));
        }
        if !parked.can.allow(ask.needs) && self.config.inbox.allow(ask.needs) {
            parked.asks.push(ask);
            parked.withdrawn = false;
            return self.divert(call, now);
        }
        // R-250: at once where it is known that nobody can be asked.
        let hopeless = parked.attached.is_some() && !parked.can.allow(ask.needs);
        parked.asks.push(ask);
        parked.withdrawn = false;
        if hopeless {
            return self.undeclared_ask(call, now);
        }
        let soon = now.saturating_add(self.config.waits.coalesce);
        parked.flush = Some(parked.flush.map_or(soon, |at| at.max(now).min(soon)));
        self.schedule(call);
    }

    /// The host cannot be asked: `-32021` for it, errors for the questions, and the call is cancelled (R-250).
    fn undeclared_ask(&mut self, call: u64, now: Timestamp) {
        let Some(parked) = self.parked.get_mut(&call) else { return };
        let data = parked.can.missing(parked.asks.iter().map(|ask| ask.needs));
        let hosts = take_hosts(parked);
        for (host, id) in hosts {
            self.undeclared(host, &id, data.clone());
        }
        self.end_call(call, true, now);
    }

    /// The questions that are open go to the host, which comes back with their answers.
    fn flush(&mut self, call: u64, now: Timestamp) {
        let Some(parked) = self.parked.get_mut(&call) else { return };
        if parked.asks.iter().any(|ask| ask.inbox.is_none() && !parked.can.allow(ask.needs)) {
            return self.undeclared_ask(call, now);
        }
        let asks = parked.asks.iter().filter(|ask| ask.inbox.is_none()).count();
        if asks > 0 && parked.asked >= self.config.limits.rounds {
            let limit = self.config.limits.rounds;
            let error = RpcError::internal(format!("more than {limit} rounds of questions (Limits::rounds)"));
            return self.fail_call_of(call, &error, now);
        }
        parked.asked += u32::from(asks > 0);
        parked.round += 1;
        parked.consumed = false;
        parked.withdrawn = false;
        (parked.flush, parked.hold, parked.grace) = (None, None, None);
        let again = parked.asks.iter().filter(|ask| ask.shown).count();
        for ask in parked.asks.iter_mut().filter(|ask| ask.inbox.is_none()) {
            ask.shown = true;
        }
        let (body, expires) = match self.interim(call, now) {
            Ok(interim) => interim,
            Err(error) => return self.fail_call_of(call, &error, now),
        };
        let Some(parked) = self.parked.get_mut(&call) else { return };
        parked.expires = Some(expires);
        let hosts = take_hosts(parked);
        parked.alive = parked
            .asks
            .iter()
            .any(|ask| ask.token.is_some())
            .then(|| now.saturating_add(self.config.waits.alive));
        if !core::mem::replace(&mut parked.counted, true) {
            let owner = parked.owner.clone();
            self.usage.entry(owner).or_default().parked += 1;
            self.counts.parked += 1;
        }
        self.counts.rounds += 1;
        self.counts.asks += u64::try_from(asks).unwrap_or(0);
        self.counts.asked_again += u64::try_from(again).unwrap_or(0);
        for (host, id) in hosts {
            self.respond(host, &id, ReplyClass::Result, |out| out.extend_from_slice(&body));
        }
    }

    /// The interim result of the round that is open, and until when its state is good.
    fn interim(&mut self, call: u64, now: Timestamp) -> Result<(Vec<u8>, Timestamp), RpcError> {
        let Some(parked) = self.parked.get(&call) else { return Err(gone()) };
        let up = self.config.upstreams.get(parked.upstream);
        let waits = match up.map_or(Transport::Pipe, |up| up.transport) {
            Transport::Pipe => self.config.waits.parked_pipe,
            Transport::Http => self.config.waits.parked_http,
        };
        let claims = NewClaims {
            exchange: parked.exchange,
            round: parked.round,
            state_only: 0,
            deadline: parked.deadline,
            ttl: Some(Ttl::new(waits).unwrap_or(Ttl::DEFAULT)),
        };
        let name = up.map_or("", |up| &*up.name);
        let bound = Bound { owner: &parked.owner, request: &parked.digest, upstream: name };
        let sealed = self.vault.handle(&claims, (&self.epoch, call), &bound, now, &mut self.random);
        let token = sealed.map_err(|error| seal_error(&error))?;
        let mut body = b"\"result\":{\"resultType\":\"input_required\"".to_vec();
        let asks = || parked.asks.iter().filter(|ask| ask.inbox.is_none());
        for (index, ask) in asks().enumerate() {
            body.extend_from_slice(if index == 0 { b",\"inputRequests\":{" } else { b"," });
            write::string(&mut body, &ask.key);
            body.push(b':');
            body.extend_from_slice(ask.entry.as_bytes());
        }
        if asks().next().is_some() {
            body.push(b'}');
        }
        body.extend_from_slice(b",\"requestState\":");
        write::string(&mut body, &token);
        if let Some(info) = self.server_info(parked.upstream) {
            body.extend_from_slice(b",\"_meta\":{");
            write::string(&mut body, key::SERVER_INFO);
            body.push(b':');
            write::one_line(&mut body, info);
            body.push(b'}');
        }
        body.push(b'}');
        Ok((body, now.saturating_add(waits).min(parked.deadline)))
    }

    /// A retry of a parked call. Who sends it, and that it is the same request, the seal has said.
    fn resume(&mut self, call: u64, round: u32, attached: Attached, m: &Modern<'_>, now: Timestamp) {
        let (host, id) = (attached.host, attached.id.clone());
        let Some(parked) = self.parked.get_mut(&call) else {
            return self.refuse_state(host, &id, Verdict::Expired);
        };
        let given = |key: &str| m.parts.responses.and_then(|responses| responses.get(key));
        if round == parked.round && !parked.consumed {
            // Checked before anything is used: what is refused consumes nothing (A5).
            let answers = match check(parked, given, self.config.limits.answer_bytes) {
                Ok(answers) => answers,
                Err(error) => return self.respond_error(host, &id, ReplyClass::HandlerError, &error),
            };
            let shown = parked.asks.iter().filter(|ask| ask.inbox.is_none());
            let keys: Vec<Box<str>> = shown.map(|ask| ask.key.clone()).collect();
            match effective_digest(keys.iter().map(|key| &**key), given) {
                Ok(digest) => parked.last = Some(Box::new(Last { round, keys, digest })),
                Err(fault) => {
                    return self.respond_error(host, &id, ReplyClass::HandlerError, &fault.to_error());
                }
            }
            parked.can = m.meta.capabilities;
            return self.continue_call(call, attached, answers, now);
        }
        let same = parked.last.as_ref().filter(|last| last.round == round).is_some_and(|last| {
            effective_digest(last.keys.iter().map(|key| &**key), given)
                .is_ok_and(|digest| digest == last.digest)
        });
        if !same {
            return self.refuse_state(host, &id, Verdict::Expired);
        }
        self.counts.replayed += 1;
        self.set_open(host, &id, Open::Parked(call));
        let Some(parked) = self.parked.get_mut(&call) else { return };
        if let Some(outcome) = &parked.outcome {
            let (class, body) = (outcome.class, outcome.body.clone());
            return self.respond(host, &id, class, |out| out.extend_from_slice(&body));
        }
        if !parked.consumed {
            // The next questions were on their way.
            return match self.interim(call, now) {
                Ok((body, _)) => {
                    self.respond(host, &id, ReplyClass::Result, |out| out.extend_from_slice(&body))
                }
                Err(error) => self.respond_error(host, &id, ReplyClass::Internal, &error),
            };
        }
        if parked.attached.is_none() {
            parked.attached = Some(attached);
            parked.grace = None;
            self.advance(call, now);
        } else if parked.waiters.len() < WAITERS {
            parked.waiters.push((host, id));
        } else {
            let error =
                RpcError::internal("this retry is being worked on").with_raw_data("{\"retry\":true}".into());
            self.respond_error(host, &id, ReplyClass::Internal, &error);
        }
    }

    /// The answers go to the upstream; the host's new request waits for what comes of them.
    fn continue_call(&mut self, call: u64, attached: Attached, answers: Vec<Given>, now: Timestamp) {
        self.unpark(call);
        let (host, id) = (attached.host, attached.id.clone());
        self.set_open(host, &id, Open::Parked(call));
        let Some(parked) = self.parked.get_mut(&call) else { return };
        parked.consumed = true;
        parked.attached = Some(attached);
        parked.alive = Some(now.saturating_add(self.config.waits.alive));
        // What the upstream has finished by itself needs no answers.
        if parked.outcome.is_none() {
            let link = parked.link;
            let (mut refused, mut replies) = (false, Vec::new());
            for Given { key, value, action } in answers {
                let Some(place) = parked.asks.iter().position(|ask| ask.key == key) else { continue };
                match parked.asks.remove(place).from {
                    From::Upstream(id) => replies.push((id, value)),
                    From::Url => refused |= action != Some(Action::Accept),
                }
            }
            for (id, value) in replies {
                if let Some(link) = link {
                    self.answer_upstream(link, &id, &value);
                }
            }
            let Some(parked) = self.parked.get_mut(&call) else { return };
            if refused {
                return self.refused_url(call, now);
            }
            if parked.asks.iter().any(|ask| ask.inbox.is_some()) {
                parked.hold = Some(now.saturating_add(self.config.waits.hold));
            }
            if parked.asks.iter().any(|ask| ask.inbox.is_none()) {
                // Those that are missing are asked again (BT-7).
                parked.flush = Some(now.saturating_add(self.config.waits.coalesce));
            } else if let Some(urls) = &mut parked.urls {
                urls.wait = Some(now.saturating_add(self.config.waits.hold));
            } else if parked.withdrawn {
                parked.hold = Some(now.saturating_add(self.config.waits.hold));
            }
        }
        self.advance(call, now);
    }

    /// Does what can be done for the host that waits.
    fn advance(&mut self, call: u64, now: Timestamp) {
        let Some(parked) = self.parked.get_mut(&call) else { return };
        if parked.attached.is_some() {
            let done = parked.urls.as_ref().is_some_and(|urls| {
                parked.asks.is_empty() && (urls.open.is_empty() || urls.wait.is_some_and(|at| at <= now))
            });
            if parked.outcome.is_some() {
                return self.deliver(call, now);
            } else if done && parked.in_flight.is_none() {
                self.reissue(call, now);
            } else if parked.flush.is_some_and(|at| at <= now) || parked.hold.is_some_and(|at| at <= now) {
                self.flush(call, now);
            }
        }
        self.schedule(call);
    }

    /// The final result goes to whoever waits for it, and is kept for as long as the state that led to it is good.
    fn deliver(&mut self, call: u64, now: Timestamp) {
        let Some(parked) = self.parked.get_mut(&call) else { return };
        let Some(outcome) = &parked.outcome else { return };
        let (class, body) = (outcome.class, outcome.body.clone());
        let keep = parked.expires.is_some_and(|at| at > now)
            && body.len() <= KEPT
            && self.counts.kept < KEPT_AT_A_TIME;
        let hosts = take_hosts(parked);
        if keep {
            if !core::mem::replace(&mut parked.delivered, true) {
                self.counts.kept += 1;
            }
            (parked.params, parked.urls, parked.asks) = (None, None, Vec::new());
            (parked.flush, parked.hold, parked.grace, parked.alive) = (None, None, None, None);
            self.schedule(call);
        } else {
            self.forget(call);
        }
        for (host, id) in hosts {
            self.respond(host, &id, class, |out| out.extend_from_slice(&body));
        }
    }

    /// The upstream has responded to the call.
    pub(super) fn parked_response(&mut self, call: u64, outcome: Result<Json<'_>, RpcError>, now: Timestamp) {
        let Some(parked) = self.parked.get_mut(&call) else { return };
        parked.in_flight = None;
        let error = match outcome {
            Ok(result) if result.is_object() => {
                let info = self
                    .upstreams
                    .get(parked.upstream)
                    .and_then(|state| state.profile.as_ref()?.info.as_deref());
                let mut body = b"\"result\":".to_vec();
                result_to_modern(&mut body, parked.method.name(), result, info.map(Json::trusted));
                parked.outcome = Some(Outcome { class: ReplyClass::Result, body: body.into() });
                None
            }
            Ok(_) => Some(RpcError::internal("the upstream's result is not valid")),
            Err(error) => match url_required(&error) {
                Ok(Some(urls)) => return self.urls_required(call, urls, now),
                Ok(None) => Some({
                    let read = parked.method == AskingMethod::ResourcesRead;
                    error_to_modern(error, read.then_some(&*parked.target))
                }),
                Err(_) => Some(RpcError::internal("the upstream wants urls opened and names none")),
            },
        };
        if let Some(error) = error {
            parked.error(&error);
        }
        self.finished(call, now);
    }

    /// There is an outcome: the session is free, the questions are moot.
    fn finished(&mut self, call: u64, now: Timestamp) {
        let Some(parked) = self.parked.get_mut(&call) else { return };
        parked.asks.clear();
        parked.urls = None;
        (parked.flush, parked.hold, parked.grace) = (None, None, None);
        self.inbox.withdraw(&Asker::Parked(call), None);
        let Some(parked) = self.parked.get_mut(&call) else { return };
        if let Some(link) = parked.link.take() {
            let owner = parked.owner.clone();
            self.give_back(link, &owner, None, now);
        }
        self.advance(call, now);
        self.drop_if_useless(call);
    }

    /// Without a state there is no way back to it.
    fn drop_if_useless(&mut self, call: u64) {
        let useless = |p: &Parked| p.attached.is_none() && p.outcome.is_some() && p.expires.is_none();
        if self.parked.get(&call).is_some_and(|parked| useless(parked)) {
            self.forget(call);
        }
    }

    /// The call has failed: its upstream died, was not reached, or did not respond.
    pub(super) fn parked_failed(&mut self, call: u64, error: &RpcError, now: Timestamp) {
        let Some(parked) = self.parked.get_mut(&call) else { return };
        parked.in_flight = None;
        if parked.outcome.is_none() {
            parked.error(error);
            self.counts.lost += 1;
        }
        self.finished(call, now);
    }

    /// The session that a call has alone is gone.
    pub(super) fn session_lost(&mut self, call: u64, now: Timestamp) {
        let Some(parked) = self.parked.get_mut(&call) else { return };
        parked.link = None;
        let (upstream, owner) = (parked.upstream, parked.owner.clone());
        let waits = parked.in_flight.is_none();
        self.free_share(upstream, &owner);
        if waits {
            self.parked_failed(call, &gone(), now);
        }
    }

    /// Ends a call that the bridge cannot go on with, telling its host.
    fn fail_call_of(&mut self, call: u64, error: &RpcError, now: Timestamp) {
        let Some(parked) = self.parked.get_mut(&call) else { return };
        for (host, id) in take_hosts(parked) {
            self.respond_error(host, &id, ReplyClass::Internal, error);
        }
        self.end_call(call, false, now);
    }

    /// Takes the call back from the upstream: its questions are answered as by nobody, the call is cancelled (BT-7).
    fn end_call(&mut self, call: u64, undeclared: bool, now: Timestamp) {
        self.unqueue_parked(call);
        let Some(parked) = self.parked.get_mut(&call) else { return };
        let (asks, in_flight) = (core::mem::take(&mut parked.asks), parked.in_flight.take());
        let (link, owner) = (parked.link.take(), parked.owner.clone());
        if let Some(link) = link {
            for ask in asks {
                let From::Upstream(id) = ask.from else { continue };
                match ask.kind {
                    AskKind::Form | AskKind::Url if !undeclared => {
                        self.answer_upstream(link, &id, br#"{"action":"cancel"}"#);
                    }
                    AskKind::Form | AskKind::Url | AskKind::Sampling | AskKind::Roots => {
                        let error = if undeclared {
                            RpcError::invalid_params("the host does not support this kind of question")
                        } else {
                            RpcError::internal("nobody answers")
                        };
                        self.answer_upstream_error(link, &id, &error);
                    }
                }
            }
            if let Some(id) = in_flight {
                self.cancel_upstream(id);
                let _ = self.forget_sent(id);
                if let Some(session) = self.links.get_mut(&link).and_then(Link::session) {
                    session.in_flight.remove(&id);
                }
            }
            self.give_back(link, &owner, in_flight, now);
            self.settle(link, now);
        }
        self.forget(call);
    }

    fn forget(&mut self, call: u64) {
        self.unpark(call);
        self.inbox.withdraw(&Asker::Parked(call), None);
        self.schedule_inbox();
        if let Some(mut parked) = self.parked.remove(&call) {
            self.counts.kept -= usize::from(parked.delivered);
            self.timers.set(Whom::Parked(call), &mut parked.timer, None);
        }
    }

    fn unpark(&mut self, call: u64) {
        let Some(parked) = self.parked.get_mut(&call) else { return };
        if core::mem::take(&mut parked.counted) {
            let owner = parked.owner.clone();
            self.counts.parked -= 1;
            self.release(&owner, |usage| &mut usage.parked);
        }
    }

    fn schedule(&mut self, call: u64) {
        if let Some(parked) = self.parked.get_mut(&call) {
            let next = parked.next().map(|(at, _)| at);
            self.timers.set(Whom::Parked(call), &mut parked.timer, next);
        }
    }

    pub(super) fn parked_due(&mut self, call: u64, now: Timestamp) {
        let Some(parked) = self.parked.get_mut(&call) else { return };
        parked.timer = None;
        let here = parked.attached.is_some();
        let due = |at: Option<Timestamp>| at.is_some_and(|at| at <= now);
        if !here && parked.outcome.is_some() && due(parked.expires) {
            return self.forget(call);
        }
        if !here && (due(parked.grace) || due(parked.expires)) {
            self.counts.abandoned += 1;
            return self.end_call(call, false, now);
        }
        if due(parked.alive) {
            self.show_life(call, now);
        }
        self.advance(call, now);
    }

    /// Comments for a host that waits, progress for an upstream that does (design: the bridge).
    fn show_life(&mut self, call: u64, now: Timestamp) {
        let Some(parked) = self.parked.get_mut(&call) else { return };
        let waiting = parked.attached.is_some();
        let tokens: Vec<RequestId> = parked.asks.iter().filter_map(|ask| ask.token.clone()).collect();
        parked.alive = (waiting || !tokens.is_empty()).then(|| now.saturating_add(self.config.waits.alive));
        parked.beats += 1;
        let (beats, link) = (parked.beats, parked.link);
        let hosts = parked.attached.iter().map(|attached| (attached.host, &attached.id));
        let hosts = hosts.chain(parked.waiters.iter().map(|(host, id)| (*host, id)));
        for (host, id) in hosts {
            self.out.push_back(Output::KeepAlive { host, stream: HostStream::Request(id.clone()) });
        }
        for token in tokens {
            let Some(link) = link else { break };
            let mut params = b"{\"progressToken\":".to_vec();
            token.write(&mut params);
            params.extend_from_slice(format!(",\"progress\":{beats}}}").as_bytes());
            let mut bytes = Vec::new();
            write::notification(
                &mut bytes,
                "notifications/progress",
                core::str::from_utf8(&params).unwrap_or("{}"),
            );
            self.transmit(link, None, bytes, Vec::new());
        }
    }

    /// Progress of the upstream, for the round that is open; with none open there is nobody to tell (R-196).
    pub(super) fn parked_progress(&mut self, call: u64, params: Json<'_>) {
        let Some(attached) = self.parked.get(&call).and_then(|parked| parked.attached.as_ref()) else {
            return;
        };
        let Some(token) = &attached.progress else { return };
        let (host, id, bytes) = (attached.host, attached.id.clone(), progress(params, token, None));
        self.tell(host, HostStream::Request(id), bytes);
    }

    /// The upstream takes a question back: a later answer to it is ignored.
    pub(super) fn upstream_cancels(&mut self, link: LinkId, id: &RequestId, now: Timestamp) {
        if let Some(host) = self.host_of(link) {
            return self.pair_cancels(link, host, id);
        }
        let of = |parked: &Parked| {
            parked.asks.iter().position(|ask| matches!(&ask.from, From::Upstream(own) if own == id))
        };
        let alone = self.links.get_mut(&link).and_then(Link::session).and_then(|session| session.call);
        let Some(call) = alone else { return };
        let Some(parked) = self.parked.get_mut(&call) else { return };
        let Some(place) = of(parked) else { return };
        let ask = parked.asks.remove(place);
        if let Some(entry) = ask.inbox {
            let _ = self.inbox.remove(entry);
        }
        if parked.asks.is_empty() {
            parked.flush = None;
            parked.withdrawn = ask.shown && parked.in_flight.is_some();
            if parked.withdrawn && parked.attached.is_some() {
                parked.hold = Some(now.saturating_add(self.config.waits.hold));
            }
        }
        self.schedule(call);
    }

    /// A question that the host cannot be asked goes to the inbox; its request is held, then gets a state alone.
    fn divert(&mut self, call: u64, now: Timestamp) {
        let Some(parked) = self.parked.get_mut(&call) else { return };
        let target = parked.target.clone();
        let until = now.saturating_add(self.config.waits.inbox).min(parked.deadline);
        let Some(ask) = parked.asks.last_mut() else { return };
        let entry = Entry {
            owner: parked.owner.clone(),
            upstream: parked.upstream,
            target,
            kind: ask.kind,
            question: ask.entry.clone(),
            created: now,
            expires: until,
            asker: Asker::Parked(call),
            key: ask.key.clone(),
        };
        ask.inbox = Some(self.inbox.add(entry));
        if parked.attached.is_some() && parked.hold.is_none() {
            parked.hold = Some(now.saturating_add(self.config.waits.hold));
        }
        self.schedule_inbox();
        self.schedule(call);
    }

    /// An answer from the inbox.
    pub(super) fn parked_inbox(
        &mut self,
        call: u64,
        key: &str,
        outcome: Result<Json<'_>, RpcError>,
        now: Timestamp,
    ) {
        let Some(parked) = self.parked.get_mut(&call) else { return };
        let Some(place) = parked.asks.iter().position(|ask| *ask.key == *key) else { return };
        let ask = parked.asks.remove(place);
        if parked.asks.iter().all(|ask| ask.inbox.is_none()) {
            parked.hold = None;
        }
        let (From::Upstream(id), Some(link)) = (ask.from, parked.link) else { return };
        match outcome {
            Ok(answer) => {
                let mut value = Vec::new();
                // It was checked when it was given.
                if answer_to_legacy(&mut value, ask.kind, answer).is_ok() {
                    self.answer_upstream(link, &id, &value);
                }
            }
            Err(error) => self.answer_upstream_error(link, &id, &error),
        }
        self.advance(call, now);
    }

    /// `-32042`: each url becomes a question of this parked call.
    fn urls_required(&mut self, call: u64, required: Vec<UrlRequired>, now: Timestamp) {
        let named = self.named;
        let Some(parked) = self.parked.get_mut(&call) else { return };
        if parked.reissued >= REISSUES || parked.params.is_none() && parked.can.url {
            let error = RpcError::internal("the upstream wants urls opened again and again");
            parked.error(&error);
            return self.finished(call, now);
        }
        let urls: Vec<Box<str>> = required.iter().map(|required| required.url.clone()).collect();
        let before = parked.urls.take();
        let same = before.is_some_and(|before| before.urls == urls);
        let name = self.config.upstreams.get(parked.upstream).map_or("", |up| &*up.name);
        parked.asks.clear();
        for required in &required {
            parked.keys += 1;
            let message = if named {
                Cow::Owned(format!("[{name}] {}", required.message))
            } else {
                Cow::Borrowed(&*required.message)
            };
            let mut entry =
                b"{\"method\":\"elicitation/create\",\"params\":{\"mode\":\"url\",\"message\":".to_vec();
            write::string(&mut entry, &message);
            entry.extend_from_slice(b",\"url\":");
            write::string(&mut entry, &required.url);
            entry.extend_from_slice(b"}}");
            parked.asks.push(Ask {
                key: format!("u{}", parked.keys).into(),
                kind: AskKind::Url,
                needs: Requirement::new(AskKind::Url),
                entry: String::from_utf8(entry).unwrap_or_default().into(),
                from: From::Url,
                inbox: None,
                shown: false,
                token: None,
            });
        }
        let open = required.into_iter().map(|required| required.elicitation_id).collect();
        parked.urls = Some(Box::new(Urls { urls, open, wait: None }));
        // Opened a moment ago, perhaps not done with: no need to ask again at once.
        parked.flush = Some(if same { now.saturating_add(self.config.waits.hold) } else { now });
        self.advance(call, now);
    }

    /// `notifications/elicitation/complete`: never passed on to a modern host (BT-2).
    pub(super) fn elicitation_completed(
        &mut self,
        link: LinkId,
        id: &str,
        notification: &Notification<'_>,
        now: Timestamp,
    ) {
        if self.host_of(link).is_some() {
            return self.on_change(link, None, notification);
        }
        let Some(call) = self.links.get_mut(&link).and_then(Link::session).and_then(|session| session.call)
        else {
            return;
        };
        let Some(parked) = self.parked.get_mut(&call) else { return };
        let Some(urls) = &mut parked.urls else { return };
        urls.open.remove(id);
        if urls.open.is_empty() && parked.asks.iter().all(|ask| !ask.shown) {
            // Asked for a second time, and done before anybody was shown it again.
            parked.asks.clear();
        }
        self.advance(call, now);
    }

    fn reissue(&mut self, call: u64, now: Timestamp) {
        let Some(parked) = self.parked.get_mut(&call) else { return };
        parked.reissued += 1;
        parked.flush = None;
        if let Some(urls) = &mut parked.urls {
            urls.wait = None;
        }
        self.issue(call, now);
    }

    /// A url that has to be opened was refused: the call ends (BT-6).
    fn refused_url(&mut self, call: u64, now: Timestamp) {
        let Some(parked) = self.parked.get_mut(&call) else { return };
        if parked.method == AskingMethod::ToolsCall {
            let mut body = b"\"result\":".to_vec();
            let result = r#"{"content":[{"type":"text","text":"The page that this tool needs was not opened."}],"isError":true}"#;
            let info =
                self.upstreams.get(parked.upstream).and_then(|state| state.profile.as_ref()?.info.as_deref());
            result_to_modern(&mut body, "tools/call", Json::trusted(result), info.map(Json::trusted));
            parked.outcome = Some(Outcome { class: ReplyClass::Result, body: body.into() });
        } else {
            parked.error(&RpcError::internal("the page that this request needs was not opened"));
        }
        self.finished(call, now);
    }

    /// A host's stream closed before its response. With a state it may come back within the grace; without one it
    /// cannot, and the call is cancelled (R-262).
    pub(super) fn detach(&mut self, call: u64, host: HostId, id: &RequestId, now: Timestamp) {
        let Some(parked) = self.parked.get_mut(&call) else { return };
        if !parked.attached.as_ref().is_some_and(|attached| attached.host == host && attached.id == *id) {
            parked.waiters.retain(|(other, waiting)| !(*other == host && waiting == id));
            return;
        }
        parked.attached = None;
        if let Some((host, id)) = parked.waiters.pop() {
            parked.attached = Some(Attached { host, id, progress: None, level: None });
        } else if parked.last.is_some() {
            parked.grace = Some(now.saturating_add(self.config.waits.grace));
        } else {
            return self.end_call(call, false, now);
        }
        self.schedule(call);
    }

    /// A host cancels its request.
    pub(super) fn cancel_parked(&mut self, call: u64, host: HostId, id: &RequestId, now: Timestamp) {
        let Some(parked) = self.parked.get_mut(&call) else { return };
        if parked.attached.as_ref().is_some_and(|attached| attached.host == host && attached.id == *id) {
            parked.attached = None;
            let error = RpcError::internal("the call was cancelled");
            self.fail_call_of(call, &error, now);
        } else {
            parked.waiters.retain(|(other, waiting)| !(*other == host && waiting == id));
        }
    }
}

/// An answer that fits its question, as the upstream will read it.
struct Given {
    key: Box<str>,
    value: Vec<u8>,
    action: Option<Action>,
}

/// Reads the answers to the questions that are out.
fn check<'a>(
    parked: &Parked,
    given: impl Fn(&str) -> Option<Json<'a>>,
    limit: usize,
) -> Result<Vec<Given>, RpcError> {
    let mut answers = Vec::new();
    // What is over needs no answers.
    if parked.outcome.is_some() {
        return Ok(answers);
    }
    for ask in parked.asks.iter().filter(|ask| ask.shown && ask.inbox.is_none()) {
        let Some(answer) = given(&ask.key) else { continue };
        let bad = |what: String| {
            RpcError::invalid_params(format!("Invalid params: inputResponses[{:?}]{what}", ask.key))
        };
        if answer.as_str().len() > limit {
            return Err(bad(format!(" is over the limit of {limit} bytes (Limits::answer_bytes)")));
        }
        let mut value = Vec::new();
        answer_to_legacy(&mut value, ask.kind, answer).map_err(|fault| bad(format!("{fault}")))?;
        let action =
            answer.get("action").and_then(Json::as_string).and_then(|action| Action::from_name(&action));
        answers.push(Given { key: ask.key.clone(), value, action });
    }
    Ok(answers)
}

/// Everybody who waits for a response.
fn take_hosts(parked: &mut Parked) -> Vec<(HostId, RequestId)> {
    let attached = parked.attached.take().map(|attached| (attached.host, attached.id));
    attached.into_iter().chain(core::mem::take(&mut parked.waiters)).collect()
}
