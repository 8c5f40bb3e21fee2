//! The session: what was settled, what is under way, what waits to be sent or told.

use alloc::{
    boxed::Box,
    collections::{BTreeMap, VecDeque},
    vec::Vec,
};

use super::{
    AskId, Asked, CallId, Carries, ClientConfig, Closed, Event, Failure, Transmit, Via, Withdrawn, event,
};
use crate::{
    jsonrpc::{Json, RequestId, write},
    time::Timestamp,
    wire::{ClientCapabilities, Version},
};

/// One session with one server: the client's side. See the [module](super).
///
/// `Debug` shows counts only.
pub struct ClientSession {
    pub(super) config: ClientConfig,
    pub(super) phase: Phase,
    /// Never goes back.
    next_call: i64,
    next_ask: u64,
    pub(super) calls: BTreeMap<CallId, Call>,
    pub(super) asks: BTreeMap<AskId, Waiting>,
    pub(super) out: VecDeque<Transmit>,
    pub(super) events: VecDeque<Event>,
}

/// How far the handshake is.
pub(super) enum Phase {
    New,
    Opening(CallId),
    Open(Box<Opened>),
    Closed,
}

/// What the handshake settled.
pub(super) struct Opened {
    pub(super) version: Version,
    /// What was promised, as that version has it.
    pub(super) capabilities: ClientCapabilities,
    /// The result of `initialize`.
    pub(super) result: Box<str>,
}

/// A request of ours that is under way.
pub(super) struct Call {
    /// Whether the server may ask for it.
    pub(super) may_ask: bool,
    /// Its id is its progress token.
    pub(super) progress: bool,
    /// When it was sent and last heard of, shifted by the time in which its asks waited.
    pub(super) sent: Timestamp,
    pub(super) heard: Timestamp,
    /// Since when an ask of it waits.
    pub(super) paused: Option<Timestamp>,
}

/// An ask that waits for its answer.
pub(super) struct Waiting {
    /// The id on the wire.
    pub(super) id: RequestId,
    pub(super) call: Option<CallId>,
    /// It came for a request, even if not for which one.
    pub(super) solicited: bool,
}

impl ClientSession {
    /// A session that was not begun.
    #[must_use]
    pub fn new(config: ClientConfig) -> Self {
        Self {
            next_call: config.first_id,
            config,
            phase: Phase::New,
            next_ask: 0,
            calls: BTreeMap::new(),
            asks: BTreeMap::new(),
            out: VecDeque::new(),
            events: VecDeque::new(),
        }
    }

    /// The version, once the session is open.
    #[must_use]
    pub fn version(&self) -> Option<Version> {
        self.opened().map(|opened| opened.version)
    }

    /// What the server may ask for in this session: what was promised, as its version has it.
    #[must_use]
    pub fn capabilities(&self) -> ClientCapabilities {
        self.opened().map(|opened| opened.capabilities).unwrap_or_default()
    }

    /// The result of `initialize`, once the session is open: an object with `protocolVersion`, `capabilities`, and as
    /// a rule `serverInfo` and `instructions`.
    #[must_use]
    pub fn peer(&self) -> Option<Json<'_>> {
        self.opened().map(|opened| Json::trusted(&opened.result))
    }

    /// Requests under way.
    pub fn calls(&self) -> impl ExactSizeIterator<Item = CallId> {
        self.calls.keys().copied()
    }

    /// Asks that wait for their answers.
    pub fn asks(&self) -> impl ExactSizeIterator<Item = AskId> {
        self.asks.keys().copied()
    }

    /// Whether it is over.
    #[must_use]
    pub const fn is_closed(&self) -> bool {
        matches!(self.phase, Phase::Closed)
    }

    /// The next message to be sent. On HTTP each is a POST of its own.
    pub fn poll_transmit(&mut self) -> Option<Transmit> {
        self.out.pop_front()
    }

    /// What happened next.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// When to call [`handle_timeout`](Self::handle_timeout).
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Timestamp> {
        self.calls.values().filter_map(|call| self.deadline(call)).min()
    }

    /// Gives up the requests whose time is up: the server is told, except of `initialize`.
    pub fn handle_timeout(&mut self, now: Timestamp) {
        let due = |call: &Call| self.deadline(call).is_some_and(|deadline| deadline <= now);
        let late: Vec<CallId> = self.calls.iter().filter(|(_, call)| due(call)).map(|(id, _)| *id).collect();
        for id in late {
            if matches!(self.phase, Phase::Opening(_)) {
                return self.close(Closed::Failed(Failure::Timeout));
            }
            self.calls.remove(&id);
            self.send_cancellation(id, "timed out");
            self.events.push_back(Event::Response { call: id, outcome: Err(Failure::Timeout) });
            self.settle(now);
        }
    }

    /// The peer is gone: the process has ended, or the server does not know the session any more. What is under way
    /// fails, and nothing else.
    pub fn handle_closed(&mut self) {
        self.close(Closed::ByPeer);
    }

    /// HTTP: the stream of a request has ended without its response and is not taken up again. The
    /// session goes on.
    pub fn lost(&mut self, call: CallId, now: Timestamp) {
        self.fail(call, Failure::Lost, now);
    }

    /// The id that the next request would have.
    pub(crate) const fn next_id(&self) -> i64 {
        self.next_call
    }

    pub(super) fn opened(&self) -> Option<&Opened> {
        match &self.phase {
            Phase::Open(opened) => Some(opened),
            Phase::New | Phase::Opening(_) | Phase::Closed => None,
        }
    }

    /// Ends a request without a result.
    pub(super) fn fail(&mut self, call: CallId, failure: Failure, now: Timestamp) {
        if self.calls.remove(&call).is_none() {
            return;
        }
        match &self.phase {
            Phase::Opening(opening) if *opening == call => self.close(match failure {
                Failure::Peer(error) => Closed::Refused(error),
                Failure::Unreadable(_)
                | Failure::Overlong { .. }
                | Failure::Timeout
                | Failure::Lost
                | Failure::Closed => Closed::Failed(failure),
            }),
            Phase::New | Phase::Opening(_) | Phase::Open(_) | Phase::Closed => {
                self.events.push_back(Event::Response { call, outcome: Err(failure) });
                self.settle(now);
            }
        }
    }

    /// The end.
    pub(super) fn close(&mut self, why: Closed) {
        if self.is_closed() {
            return;
        }
        let opening = match self.phase {
            Phase::Opening(call) => Some(call),
            Phase::New | Phase::Open(_) | Phase::Closed => None,
        };
        self.phase = Phase::Closed;
        self.out.clear();
        for ask in core::mem::take(&mut self.asks).into_keys() {
            self.events.push_back(Event::AskWithdrawn { ask, why: Withdrawn::Closed });
        }
        for call in core::mem::take(&mut self.calls).into_keys().filter(|call| Some(*call) != opening) {
            self.events.push_back(Event::Response { call, outcome: Err(Failure::Closed) });
        }
        self.events.push_back(Event::Closed(why));
    }

    pub(crate) const fn take_call(&mut self) -> CallId {
        let id = CallId(self.next_call);
        self.next_call = self.next_call.saturating_add(1);
        id
    }

    /// Keeps an ask and tells of it.
    pub(super) fn ask(
        &mut self,
        waiting: Waiting,
        request: crate::wire::InputRequest<'static>,
        now: Timestamp,
    ) {
        let id = AskId(self.next_ask);
        self.next_ask = self.next_ask.saturating_add(1);
        self.events.push_back(Event::Ask(Asked { id, call: waiting.call, request }));
        self.asks.insert(id, waiting);
        self.pause(now);
    }

    /// The requests that an ask from there may belong to: none, the one, or more than one.
    pub(super) fn owner(&self, via: Via) -> Owner {
        let mut asking = self.calls.iter().filter(|(id, call)| {
            call.may_ask
                && match via {
                    Via::Pipe | Via::Standalone => true,
                    Via::Call(of) => of == **id,
                }
        });
        match (asking.next(), asking.next()) {
            (None, _) => Owner::None,
            (Some((call, _)), None) => Owner::One(*call),
            (Some(_), Some(_)) => Owner::Unknown,
        }
    }

    /// After a request or an ask has ended: takes back the asks that belong to nothing any more, and lets the clocks
    /// of the requests run on that no ask holds up.
    pub(super) fn settle(&mut self, now: Timestamp) {
        let any = self.calls.values().any(|call| call.may_ask);
        let calls = &self.calls;
        let over = |waiting: &Waiting| match waiting.call {
            Some(call) => !calls.contains_key(&call),
            None => waiting.solicited && !any,
        };
        let orphans: Vec<AskId> =
            self.asks.iter().filter(|(_, waiting)| over(waiting)).map(|(id, _)| *id).collect();
        for ask in orphans {
            if let Some(waiting) = self.asks.remove(&ask) {
                self.send_error(&waiting.id, None, &event::unassociated());
                self.events.push_back(Event::AskWithdrawn { ask, why: Withdrawn::CallEnded });
            }
        }
        self.pause(now);
    }

    /// Stops and starts the clocks of requests by whether an ask of theirs waits.
    fn pause(&mut self, now: Timestamp) {
        let asks = &self.asks;
        for (id, call) in &mut self.calls {
            let held = asks.values().any(|waiting| match waiting.call {
                Some(owner) => owner == *id,
                None => waiting.solicited && call.may_ask,
            });
            match (held, call.paused) {
                (true, None) => call.paused = Some(now),
                (false, Some(since)) => {
                    let pause = now.saturating_since(since);
                    call.sent = call.sent.saturating_add(pause);
                    call.heard = call.heard.saturating_add(pause);
                    call.paused = None;
                }
                (true, Some(_)) | (false, None) => {}
            }
        }
    }

    fn deadline(&self, call: &Call) -> Option<Timestamp> {
        let silent = call.heard.saturating_add(self.config.request_timeout);
        let longest = call.sent.saturating_add(self.config.request_longest);
        call.paused.is_none().then(|| silent.min(longest))
    }

    pub(super) fn transmit(&mut self, carries: Carries, bytes: Vec<u8>) {
        self.out.push_back(Transmit { carries, bytes, version: self.version() });
    }

    pub(super) fn send_error(&mut self, id: &RequestId, call: Option<CallId>, error: &crate::RpcError) {
        let mut bytes = Vec::new();
        write::error(&mut bytes, Some(id), error);
        self.transmit(Carries::Reply(call), bytes);
    }
}

/// What request an ask may belong to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    None,
    One(CallId),
    Unknown,
}

impl core::fmt::Debug for ClientSession {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("ClientSession")
            .field("version", &self.version())
            .field("closed", &self.is_closed())
            .field("calls", &self.calls.len())
            .field("asks", &self.asks.len())
            .field("out", &self.out.len())
            .field("events", &self.events.len())
            .finish()
    }
}

const _: () = {
    const fn sent<T: Send + Sync>() {}
    sent::<ClientSession>();
};
