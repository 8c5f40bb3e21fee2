//! A modern host's call at a legacy upstream (BT-7): the upstream's call waits here while its questions go to the host
//! as interim results and the answers come back with retries.
//!
//! ```text
//!  new ──▶ running ──(questions, after a short while)──▶ parked ──(retry)──▶ running ──▶ … ──▶ over, kept for a while
//!             ▲                                            │ nobody comes back
//!             └── host's stream lost: grace                └──▶ questions answered `cancel`, call cancelled
//! ```

mod asks;
mod ends;
pub(super) mod replay;
mod retry;
mod urls;

use self::{ends::Unanswered, replay::Replay};
use super::{
    Bridge, HostId, HostStream, LinkId, Output, Owner, Reason, Transport, handoff,
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
        Origin, UrlRequired, answer_to_legacy, ask_to_modern, error_to_modern, lacking_to_modern,
        params_to_legacy, result_to_modern, url_required,
    },
    wire::{Action, AskKind, AskingMethod, ClientCapabilities, LogLevel, Requirement, key},
};
use alloc::{borrow::Cow, boxed::Box, collections::BTreeSet, format, string::String, vec::Vec};

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
    /// It is not parked but run again (G-48).
    replay: Option<Box<Replay>>,
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
        let own = name.map(Cow::Borrowed).or_else(|| m.parts.name.and_then(Json::as_string));
        let replayed = self.is_replayed(method, upstream, own.as_deref());
        let whose = (method, upstream, name);
        let Some(token) = m.parts.state.and_then(Json::as_string) else {
            return self.new_call(attached, m, whose, digest, replayed.then(Box::default), now);
        };
        let owner = self.owner(host);
        let origin = self.config.upstreams.get(upstream).map_or("", |up| &*up.name);
        let opened =
            self.vault.open(&token, &Bound { owner: &owner, request: &digest, upstream: origin }, now);
        match opened.map(|opened| (opened.carried, opened.claims)) {
            Ok((Carried::Handle { epoch, call, round }, _)) if epoch == self.epoch => {
                self.resume(call, round, attached, m, now);
            }
            // One that came from another process already is not sent on.
            Ok((Carried::Handle { epoch, call, round }, _))
                if self.config.replicas && !self.remotes.contains(host) =>
            {
                self.hand_over(host, m, (epoch, call, round), now);
            }
            // Whether the other process lives, nobody here knows.
            Ok((Carried::Handle { .. }, _)) => {
                self.counts.handed_lost += 1;
                self.respond_error(host, id, ReplyClass::Internal, &handoff::elsewhere());
            }
            Ok((Carried::Record(record), claims)) if replayed => {
                self.run_again(attached, m, whose, digest, (record, claims), now);
            }
            // Of a tool that the operator no longer names: it is not to be run again.
            Ok((Carried::Record(_) | Carried::Wrapped { .. }, _)) => {
                self.refuse_state(host, id, Verdict::OtherRequest)
            }
            Err(verdict) => self.refuse_state(host, id, verdict),
        }
    }

    fn new_call(
        &mut self,
        attached: Attached,
        m: &Modern<'_>,
        (method, upstream, name): (AskingMethod, usize, Option<&str>),
        digest: [u8; 32],
        replay: Option<Box<Replay>>,
        now: Timestamp,
    ) {
        let (host, id) = (attached.host, attached.id.clone());
        let owner = self.owner(host);
        let can = m.meta.capabilities;
        let host_can = if replay.is_some() { can } else { can.union(self.config.inbox) };
        let want = Want { upstream, owner: owner.clone(), host: host_can, asking: true };
        // What cannot be asked anything never waits for an answer.
        let full = self.usage.get(&owner).is_some_and(|usage| usage.parked >= self.config.quota.parked);
        if full && replay.is_none() && self.may_be_asked(&want) {
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
        let claims = replay.as_ref().and_then(|replay| replay.claims);
        let (exchange, round, deadline) = claims.map_or_else(
            || {
                let exchange = ExchangeId::from_bytes(self.random.bytes(b"bridge/exchange"));
                (exchange, 0, now.saturating_add(self.config.limits.exchange))
            },
            |claims| (claims.exchange, claims.round, claims.deadline),
        );
        let refused = replay.as_ref().is_some_and(|replay| replay.refused);
        let parked = Parked {
            owner,
            upstream,
            link: None,
            method,
            target: target.into_owned().into(),
            digest,
            exchange,
            deadline,
            params: String::from_utf8(text).ok().map(String::into_boxed_str),
            can,
            in_flight: None,
            attached: Some(attached),
            waiters: Vec::new(),
            asks: Vec::new(),
            keys: replay.as_ref().map_or(0, |replay| replay.keys),
            asked: round,
            round,
            consumed: true,
            last: None,
            urls: None,
            reissued: 0,
            replay,
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
        if refused {
            return self.refused_url(call, now);
        }
        self.counts.rerun += u64::from(claims.is_some());
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
        if let Some(replay) = &mut parked.replay {
            replay.begin();
        }
        self.send(link, id, bytes, Vec::new(), Purpose::Parked(call), now);
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
            return self.end_call(call, Unanswered::Nobody, now);
        }
        if due(parked.alive) {
            self.show_life(call, now);
        }
        self.advance(call, now);
    }
}
