//! A session: what a legacy client and this server have agreed on, and the calls that run in it.

use alloc::{
    boxed::Box,
    collections::{BTreeMap, BTreeSet},
    string::String,
    sync::Arc,
    vec::Vec,
};
use core::task::{Context, Poll, Waker};

use super::{
    Config, Transmit,
    outlet::{Item, ItemKind, Outlet},
};
use crate::{
    Entropy,
    catalog::Change,
    handler::{Service, live::LiveRun},
    http::ReplyClass,
    jsonrpc::{RequestId, write},
    seal::Principal,
    time::Timestamp,
    wire::{AskKind, AskingMethod, ClientCapabilities, LogLevel, Version},
};

/// Where a message goes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(clippy::exhaustive_enums)]
pub enum Stream {
    /// The response to the POST that brought this request: whatever belongs to the request goes there and nowhere
    /// else.
    Request(RequestId),
    /// The stream that the client has opened by GET, for what belongs to no request.
    Standalone,
    /// The pipe: everything.
    Pipe,
}

/// What became of a message.
#[non_exhaustive]
pub enum Handled {
    /// A call runs under this id: what it sends comes from [`Session::poll`] or [`Session::poll_stream`].
    Running(RequestId),
    /// Answered: send these bytes where the message came from, if there are any.
    Reply {
        /// One whole message, or nothing.
        bytes: Vec<u8>,
        /// What it is, for its HTTP status. `-32601` is 200 here: in this era 404 says that the session is gone.
        class: ReplyClass,
    },
    /// A notification or a response: nothing is sent. On HTTP, 202.
    Accepted,
}

impl core::fmt::Debug for Handled {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Running(id) => f.debug_tuple("Running").field(id).finish(),
            Self::Reply { bytes, class } => write!(f, "Reply({class:?}, {} bytes)", bytes.len()),
            Self::Accepted => f.write_str("Accepted"),
        }
    }
}

/// A session of 2025-11-25, 2025-06-18 or 2025-03-26: the server's side.
///
/// A machine without I/O. The adapter
///
/// 1. hands every message of the client to [`handle`](Self::handle) and sends what that returns;
/// 2. calls [`poll`](Self::poll) until it is pending, and sends each message on the stream it names: again after
///    every `handle`, whenever the waker that it passed is woken, and at [`wake_at`](Self::wake_at).
///
/// Handlers run inside `poll`, once each (design: legacy eras): a question suspends the handler's future, not the
/// call, and the client's answer resumes it. One session is driven by one task at a time; several sessions run in
/// parallel. Where each POST has a task of its own, [`poll_stream`](Self::poll_stream) drives one call alone.
///
/// On HTTP the adapter also says when a stream is lost ([`lose`](Self::lose)) and opened
/// ([`open_standalone`](Self::open_standalone), [`resume`](Self::resume)). A lost stream cancels nothing.
///
/// Dropping a session cancels all of it and sends nothing.
pub struct Session {
    pub(super) service: Service,
    pub(super) config: Config,
    pub(super) pipe: bool,
    pub(super) principal: Option<Box<[u8]>>,
    entropy: Entropy,
    drawn: u64,
    pub(super) peer: Option<Peer>,
    /// `notifications/initialized` has come: from here on the client may be asked.
    pub(super) ready: bool,
    pub(super) level: Option<LogLevel>,
    pub(super) subscriptions: BTreeSet<Box<str>>,
    pub(super) calls: BTreeMap<RequestId, Call>,
    /// Requests of ours that are out, by their ids.
    pub(super) asked: BTreeMap<i64, Asked>,
    pub(super) pings: BTreeSet<i64>,
    /// Never goes back: an id is used once in a session, whatever the stream.
    next_id: i64,
    /// The pipe, or the standalone stream.
    pub(super) common: Outlet,
    streams: u64,
    /// The call that was served last, so that all get their turn.
    cursor: Option<RequestId>,
    pub(super) over: bool,
    /// When something last came or ended.
    pub(super) touched: Option<Timestamp>,
}

/// What `initialize` has settled; fixed for the session.
#[derive(Clone, Copy, Debug)]
pub(super) struct Peer {
    pub(super) version: Version,
    pub(super) capabilities: ClientCapabilities,
}

/// A question that is out: whose it is and how its answer is read.
pub(super) struct Asked {
    pub(super) call: RequestId,
    pub(super) key: Arc<str>,
    pub(super) kind: AskKind,
}

pub(super) struct Call {
    pub(super) method: AskingMethod,
    pub(super) target: Box<str>,
    /// None once it is over.
    pub(super) run: Option<LiveRun>,
    pub(super) outlet: Outlet,
    /// Questions that wait until the client is ready for them.
    pub(super) waiting: Vec<Item>,
    /// The client wants nothing of it any more, but its commit has begun.
    pub(super) cancelled: bool,
    pub(super) finished: Option<Timestamp>,
}

impl Session {
    /// A session over a pipe. `principal` is who is at the other end of it.
    #[must_use]
    pub fn on_pipe(service: Service, config: Config, principal: Principal<'_>, entropy: Entropy) -> Self {
        Self::new(service, config, principal, entropy, true)
    }

    /// A session over HTTP; [`Sessions`](super::Sessions) makes them.
    #[must_use]
    pub fn on_http(service: Service, config: Config, principal: Principal<'_>, entropy: Entropy) -> Self {
        Self::new(service, config, principal, entropy, false)
    }

    fn new(service: Service, config: Config, principal: Principal<'_>, entropy: Entropy, pipe: bool) -> Self {
        Self {
            service,
            config,
            pipe,
            principal: match principal {
                Principal::Authenticated(bytes) => Some(bytes.into()),
                Principal::Anonymous => None,
            },
            entropy,
            drawn: 0,
            peer: None,
            ready: false,
            level: None,
            subscriptions: BTreeSet::new(),
            calls: BTreeMap::new(),
            asked: BTreeMap::new(),
            pings: BTreeSet::new(),
            next_id: 1,
            common: Outlet::new(0, pipe),
            streams: 1,
            cursor: None,
            over: false,
            touched: None,
        }
    }

    /// The revision, once it is settled.
    #[must_use]
    pub fn version(&self) -> Option<Version> {
        self.peer.map(|peer| peer.version)
    }

    /// What the client can answer in this session, as its revision has it.
    #[must_use]
    pub fn capabilities(&self) -> ClientCapabilities {
        self.peer.map(|peer| peer.capabilities).unwrap_or_default()
    }

    /// Whether a call runs or a stream is open: then the session does not rest.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        self.calls.values().any(|call| call.run.is_some()) || (!self.pipe && self.common.attached)
    }

    /// Whether it was ended: close all its streams.
    #[must_use]
    pub const fn is_ended(&self) -> bool {
        self.over
    }

    /// Whether it was ended and nothing of it runs any more.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.over && self.calls.is_empty()
    }

    /// The next message to be sent, whatever the stream. Drives all calls.
    pub fn poll(&mut self, cx: &mut Context<'_>, now: Timestamp) -> Poll<Transmit> {
        self.tick(now);
        let common = if self.pipe { Stream::Pipe } else { Stream::Standalone };
        if let Some(transmit) = self.pop_common(&common) {
            return Poll::Ready(transmit);
        }
        let after = self.cursor.clone();
        let (later, sooner): (Vec<_>, Vec<_>) =
            self.calls.keys().cloned().partition(|id| after.as_ref().is_none_or(|after| id > after));
        for id in later.into_iter().chain(sooner) {
            let found = match self.poll_call(&id, cx, now) {
                Poll::Ready(Some(transmit)) => Some(transmit),
                Poll::Ready(None) | Poll::Pending => self.pop_common(&common),
            };
            if let Some(transmit) = found {
                self.cursor = Some(id);
                return Poll::Ready(transmit);
            }
        }
        self.common.set_waker(cx.waker());
        Poll::Pending
    }

    /// The next message to be sent on one stream, `None` after its last. Drives the call that the stream belongs
    /// to and no other: an adapter that lets each POST drive its own call must go on doing so after the stream is
    /// lost, or the call rests.
    pub fn poll_stream(
        &mut self,
        stream: &Stream,
        cx: &mut Context<'_>,
        now: Timestamp,
    ) -> Poll<Option<Transmit>> {
        self.tick(now);
        match stream {
            Stream::Request(id) => self.poll_call(id, cx, now),
            Stream::Standalone | Stream::Pipe => match self.pop_common(stream) {
                Some(transmit) => Poll::Ready(Some(transmit)),
                None if self.over => Poll::Ready(None),
                None => {
                    self.common.set_waker(cx.waker());
                    Poll::Pending
                }
            },
        }
    }

    /// When to poll again even if nothing wakes.
    #[must_use]
    pub fn wake_at(&self) -> Option<Timestamp> {
        let patience = self.config.resume;
        let calls = self.calls.values().flat_map(|call| {
            let run = call.run.as_ref().and_then(LiveRun::wake_at);
            let since = call
                .outlet
                .lost
                .max(call.finished)
                .filter(|_| call.finished.is_some() || self.has_asked(call));
            [run, since.map(|since| since.saturating_add(patience))]
        });
        let common = self.common.lost.map(|lost| lost.saturating_add(patience));
        calls.chain([common]).flatten().min()
    }

    fn has_asked(&self, call: &Call) -> bool {
        call.outlet.lost.is_some() && call.run.as_ref().is_some_and(LiveRun::is_asking)
    }

    /// The connection of a stream is gone. That is no cancellation: the call runs on, and its questions
    /// wait for [`Config::resume`] before they end.
    pub fn lose(&mut self, stream: &Stream, now: Timestamp) {
        self.touched = self.touched.max(Some(now));
        match stream {
            Stream::Request(id) => {
                if let Some(call) = self.calls.get_mut(id) {
                    call.outlet.lose(now);
                }
                // Whoever drives the session has a new time to wake at.
                self.wake_call(id);
            }
            Stream::Standalone => {
                self.common.lose(now);
                self.common.wake();
            }
            Stream::Pipe => {}
        }
    }

    /// The client has opened the standalone stream. A former one is no longer written to.
    pub fn open_standalone(&mut self) {
        if !self.over {
            self.common.attach();
        }
    }

    /// The client takes up the stream of an event it has seen (`Last-Event-ID`, R-242): what came after the event is
    /// sent again. `None` if the event is none of this session's, or its stream no longer kept.
    pub fn resume(&mut self, last_event: &str) -> Option<Stream> {
        let (number, event) = last_event.split_once('-')?;
        let (number, event): (u64, u64) = (number.parse().ok()?, event.parse().ok()?);
        if self.over {
            return None;
        }
        if number == self.common.number {
            self.common.resume(event);
            return Some(Stream::Standalone);
        }
        let (id, call) = self.calls.iter_mut().find(|(_, call)| call.outlet.number == number)?;
        call.outlet.resume(event);
        let id = id.clone();
        self.wake_call(&id);
        Some(Stream::Request(id))
    }

    /// Whether a message that was polled, and is not written yet, waits to be polled again: the client has taken its
    /// stream up since ([`resume`](Self::resume)). Drop it then, or the client gets it twice.
    #[must_use]
    pub fn resends(&self, transmit: &Transmit) -> bool {
        let outlet = match &transmit.stream {
            Stream::Request(id) => self.calls.get(id).map(|call| &call.outlet),
            Stream::Standalone | Stream::Pipe => Some(&self.common),
        };
        transmit
            .event
            .zip(outlet)
            .is_some_and(|((number, event), outlet)| outlet.number == number && outlet.resends(event))
    }

    /// Something of the catalog has changed: the client is told, if it was announced and, for a resource, if it
    /// has subscribed to it. Whether it was.
    pub fn changed(&mut self, change: &Change) -> bool {
        let wanted = match change {
            Change::Tools | Change::Prompts | Change::Resources => true,
            Change::Resource(uri) => self.subscriptions.contains(uri.as_str()),
        };
        let reachable = self.pipe || self.common.attached || self.common.lost.is_some();
        if !wanted || !reachable || !self.ready || !self.service.catalog().changes {
            return false;
        }
        let mut params = b"{".to_vec();
        let method = match change {
            Change::Tools => "notifications/tools/list_changed",
            Change::Prompts => "notifications/prompts/list_changed",
            Change::Resources => "notifications/resources/list_changed",
            Change::Resource(uri) => {
                params.extend_from_slice(b"\"uri\":");
                write::string(&mut params, uri);
                "notifications/resources/updated"
            }
        };
        params.push(b'}');
        let mut bytes = Vec::new();
        write::notification(&mut bytes, method, core::str::from_utf8(&params).unwrap_or("{}"));
        // One that still waits says it already.
        if !self.common.holds(&bytes) {
            self.common.push(Item::new(ItemKind::Notification, bytes));
        }
        true
    }

    /// Asks the client whether it is there. `false` if there is nothing to ask it on, or too many pings are
    /// unanswered (16).
    pub fn ping(&mut self) -> bool {
        if !(self.pipe || self.common.attached) || self.over || self.pings.len() >= 16 {
            return false;
        }
        let id = self.take_id();
        let mut bytes = b"{\"jsonrpc\":\"2.0\",\"id\":".to_vec();
        write::integer(&mut bytes, id);
        bytes.extend_from_slice(b",\"method\":\"ping\"}");
        self.pings.insert(id);
        self.common.push(Item::new(ItemKind::Request(id), bytes));
        true
    }

    /// Pings that were not answered yet.
    #[must_use]
    pub fn unanswered_pings(&self) -> usize {
        self.pings.len()
    }

    /// Ends the session: its streams are to be closed, calls are cancelled. A commit that has begun goes on (A12): poll until
    /// [`is_over`](Self::is_over).
    pub fn end(&mut self) {
        self.over = true;
        let ids: Vec<RequestId> = self.calls.keys().cloned().collect();
        for id in ids {
            self.cancel(&id);
        }
        // What was sent is not sent again: there is nobody to resume.
        self.calls.retain(|_, call| call.run.is_some());
        self.asked.clear();
        self.pings.clear();
        self.common.clear();
        self.common.wake();
    }

    pub(super) const fn take_id(&mut self) -> i64 {
        let id = self.next_id;
        self.next_id = self.next_id.saturating_add(1);
        id
    }

    pub(super) const fn take_stream(&mut self) -> u64 {
        let number = self.streams;
        self.streams = self.streams.saturating_add(1);
        number
    }

    /// 16 bytes that this session has not given before.
    pub(super) fn draw(&mut self) -> [u8; 16] {
        self.expand()
    }

    /// Entropy for one call, which nothing else of this session has.
    pub(super) fn draw_entropy(&mut self) -> Entropy {
        Entropy::new(self.expand())
    }

    fn expand<const N: usize>(&mut self) -> [u8; N] {
        self.drawn += 1;
        let mut label = b"legacy/draw/".to_vec();
        label.extend_from_slice(&self.drawn.to_be_bytes());
        self.entropy.expand(&label)
    }

    pub(super) fn draw_hex(&mut self) -> String {
        alloc::format!("{:032x}", u128::from_be_bytes(self.draw()))
    }

    /// Has whoever polls the session's calls look at them.
    pub(super) fn wake_call(&mut self, id: &RequestId) {
        if let Some(call) = self.calls.get_mut(id) {
            call.outlet.wake();
        }
        self.common.wake();
    }
}

impl core::fmt::Debug for Session {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Session")
            .field("peer", &self.peer)
            .field("ready", &self.ready)
            .field("calls", &self.calls.len())
            .field("asked", &self.asked.len())
            .field("over", &self.over)
            .finish_non_exhaustive()
    }
}

const _: () = {
    const fn sent<T: Send>() {}
    sent::<Session>();
    sent::<Waker>();
};
