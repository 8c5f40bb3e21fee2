//! Calls of legacy servers: held open while the server asks.

use alloc::{boxed::Box, collections::BTreeMap, string::String, vec::Vec};

use super::{
    CallId, Connection, Event, Failure, HeaderRules, Outcome, PostId, Stage, State, Transmit,
    calls::{Entry, Original},
};
use crate::{
    client::{
        Stopped,
        question::{self, Mark, Verdict},
    },
    error::RpcError,
    jsonrpc::Json,
    legacy::client::{self as session, AskGone, AskId, Asked, Carries, ClientSession},
    time::Timestamp,
    wire::{Action, AskKind, Era},
};

/// A legacy call on the wire.
pub(super) struct Held {
    pub(super) request: session::CallId,
    /// Questions so far.
    asked: u32,
    /// What was done with them.
    past: BTreeMap<Mark, Verdict>,
}

/// Whose an ask is.
pub(super) struct AskOf {
    call: Option<CallId>,
    mark: Option<Mark>,
    kind: AskKind,
}

impl Connection {
    /// Answers an ask of a legacy server: `result` goes out as it is. It is not checked; what
    /// [`answer_one`](crate::client::answer_one) gives was.
    ///
    /// # Errors
    ///
    /// If the ask does not wait any more.
    pub fn answer(&mut self, ask: AskId, result: Json<'_>, now: Timestamp) -> Result<(), AskGone> {
        let of = self.asks.remove(&ask).ok_or(AskGone)?;
        let action = match of.kind {
            AskKind::Form | AskKind::Url => result.get("action").and_then(Json::as_string),
            AskKind::Sampling | AskKind::Roots => None,
        };
        if let (Some(action), Some(mark)) = (action.as_deref().and_then(Action::from_name), of.mark)
            && let Some(held) = of.call.and_then(|call| self.held(call))
        {
            let verdict = Verdict::after(held.past.get(&mark).copied(), action);
            held.past.insert(mark, verdict);
        }
        self.with_session(now, |session| session.answer(ask, result, now)).unwrap_or(Err(AskGone))
    }

    /// Answers an ask of a legacy server with an error: nobody could be asked, or somebody refused to sample.
    ///
    /// # Errors
    ///
    /// If the ask does not wait any more.
    pub fn refuse(&mut self, ask: AskId, error: &RpcError, now: Timestamp) -> Result<(), AskGone> {
        self.asks.remove(&ask).ok_or(AskGone)?;
        self.with_session(now, |session| session.refuse(ask, error, now)).unwrap_or(Err(AskGone))
    }

    /// HTTP: an answer to a question of this call ([`Transmit::Message`] names it) was refused, or
    /// was not accepted in time. The server waits for nothing else, so the call fails, and is cancelled there. Nothing
    /// happens if it has ended.
    pub fn handle_unaccepted(&mut self, call: CallId, now: Timestamp) {
        if !matches!(self.calls.get(&call), Some(Entry { stage: Stage::Held(_), .. })) {
            return;
        }
        if let Some(Entry { stage: Stage::Held(held), .. }) = self.calls.remove(&call) {
            self.let_go(&held, "an answer was not accepted", now);
            self.failed(call, Failure::Unaccepted);
        }
    }

    fn held(&mut self, call: CallId) -> Option<&mut Held> {
        match &mut self.calls.get_mut(&call)?.stage {
            Stage::Held(held) => Some(held),
            Stage::Waiting
            | Stage::Doubted(_)
            | Stage::Resumed(_)
            | Stage::Flying(..)
            | Stage::Pausing(_) => None,
        }
    }

    fn with_session<T>(&mut self, now: Timestamp, act: impl FnOnce(&mut ClientSession) -> T) -> Option<T> {
        let (State::Opening { session, .. } | State::Legacy(session)) = &mut self.state else { return None };
        let done = act(session);
        self.pump(now);
        Some(done)
    }

    /// The server is a legacy one: what waits is sent.
    pub(super) fn hold_all(&mut self, now: Timestamp) {
        for call in self.waiting() {
            let Some(Entry { original, stage }) = self.calls.remove(&call) else { continue };
            match (stage, original) {
                (Stage::Doubted(failure), None) => self.failed(call, failure),
                (Stage::Resumed(_), _) | (_, None) => self.failed(call, Failure::OtherEra),
                (_, Some(original)) => self.hold(call, original, now),
            }
        }
        self.pump(now);
    }

    fn hold(&mut self, call: CallId, original: Original, now: Timestamp) {
        let State::Legacy(session) = &mut self.state else { return };
        let (method, params) = (original.method(), Some(original.params()));
        let sent = if original.wants_progress() {
            session.request_with_progress(method, params, now)
        } else {
            session.request(method, params, now)
        };
        match sent {
            Ok(request) => {
                self.requests.insert(request, call);
                let held = Held { request, asked: 0, past: BTreeMap::new() };
                self.calls.insert(call, Entry { original: Some(original), stage: Stage::Held(held) });
            }
            Err(session::RequestError::TooLarge { bytes, limit }) => {
                let error = crate::client::StartError::TooLarge { bytes, limit };
                self.failed(call, Failure::Start(error));
            }
            Err(
                session::RequestError::NotOpen
                | session::RequestError::Closed
                | session::RequestError::NotAnObject
                | session::RequestError::TooManyCalls { .. },
            ) => self.failed(call, Failure::Closed),
        }
    }

    /// Takes a legacy call off the wire.
    pub(super) fn let_go(&mut self, held: &Held, reason: &str, now: Timestamp) {
        self.requests.remove(&held.request);
        self.with_session(now, |session| session.cancel(held.request, reason, now));
    }

    /// Passes on what the session sends and tells.
    pub(super) fn pump(&mut self, now: Timestamp) {
        loop {
            let (State::Opening { session, .. } | State::Legacy(session)) = &mut self.state else { return };
            while let Some(transmit) = session.poll_transmit() {
                let headers = HeaderRules::Legacy(transmit.version);
                self.out.push_back(match transmit.carries {
                    Carries::Request(request) => Transmit::Request {
                        post: PostId::of(request),
                        call: self.requests.get(&request).copied(),
                        bytes: transmit.bytes,
                        headers,
                    },
                    Carries::Notification => Transmit::Message { call: None, bytes: transmit.bytes, headers },
                    Carries::Reply(request) => {
                        let call = request.and_then(|request| self.requests.get(&request).copied());
                        Transmit::Message { call, bytes: transmit.bytes, headers }
                    }
                });
            }
            let Some(event) = session.poll_event() else { return };
            self.on_session(event, now);
        }
    }

    fn on_session(&mut self, event: session::Event, now: Timestamp) {
        match event {
            session::Event::Opened => {
                if let State::Opening { session, .. } = core::mem::replace(&mut self.state, State::Closed) {
                    self.state = State::Legacy(session);
                }
                self.confirm(Era::Legacy);
                self.hold_all(now);
            }
            session::Event::Response { call, outcome } => self.on_response(call, outcome),
            session::Event::Ask(asked) => self.on_ask(asked, now),
            session::Event::AskWithdrawn { ask, .. } => {
                if self.asks.remove(&ask).is_some() {
                    self.events.push_back(Event::AskWithdrawn { ask });
                }
            }
            session::Event::AskRefused { .. } => {}
            session::Event::Progress { call, params } => {
                if let Some(call) = self.requests.get(&call).copied() {
                    self.tell(Event::Progress { call, params });
                }
            }
            session::Event::Notification { via, method, params } => {
                let call = match via {
                    session::Via::Call(request) => self.requests.get(&request).copied(),
                    session::Via::Pipe | session::Via::Standalone => None,
                };
                self.tell(Event::Notification { call, method, params });
            }
            session::Event::Closed(why) => self.session_closed(why, now),
        }
    }

    fn on_response(&mut self, request: session::CallId, outcome: Result<Box<str>, session::Failure>) {
        let Some(call) = self.requests.remove(&request) else { return };
        let Some(entry) = self.calls.remove(&call) else { return };
        let rounds = match &entry.stage {
            Stage::Held(held) => held.asked.saturating_add(1),
            Stage::Waiting
            | Stage::Doubted(_)
            | Stage::Resumed(_)
            | Stage::Flying(..)
            | Stage::Pausing(_) => 1,
        };
        let result = outcome.map_err(Failure::from);
        self.done(call, Outcome { result, era: Some(Era::Legacy), rounds, kept: false });
    }

    /// A question of a legacy server, under the same policy as those of modern ones: bounded, and not again what was
    /// declined.
    fn on_ask(&mut self, asked: Asked, now: Timestamp) {
        let call = asked.call.and_then(|request| self.requests.get(&request).copied());
        let mark = question::mark(&asked.request);
        let limit = self.config.asks_per_call;
        let (mut before, mut stop) = (None, None);
        if let Some(held) = call.and_then(|call| self.held(call)) {
            let verdict = mark.and_then(|mark| held.past.get(&mark).copied());
            before = verdict.map(|verdict| verdict.action);
            stop = match verdict {
                _ if held.asked >= limit => Some(Failure::TooManyAsks { limit }),
                Some(verdict) if verdict.action == Action::Decline => {
                    Some(Failure::Stopped(Stopped::Declined { key: String::new() }))
                }
                Some(verdict) if verdict.dismissed > 1 => {
                    Some(Failure::Stopped(Stopped::Dismissed { key: String::new() }))
                }
                Some(_) | None => None,
            };
            held.asked = held.asked.saturating_add(1);
        }
        if let (Some(failure), Some(call)) = (stop, call) {
            if let Some(Entry { stage: Stage::Held(held), .. }) = self.calls.remove(&call) {
                self.let_go(&held, "the client goes no further", now);
            }
            return self.failed(call, failure);
        }
        let of = AskOf { call, mark, kind: asked.request.kind() };
        self.asks.insert(asked.id, of);
        self.events.push_back(Event::Ask { ask: asked.id, call, request: asked.request, before });
    }

    /// The session is not known to the server any more: the next call opens another. The request that was told
    /// so was not begun, so it is sent again there.
    pub(super) fn session_gone(&mut self, request: Option<session::CallId>, now: Timestamp) {
        let State::Legacy(session) = &self.state else { return };
        self.next_id = self.next_id.max(session.next_id());
        self.state = State::Unknown;
        let again = request.and_then(|request| self.requests.remove(&request));
        let others: Vec<CallId> = core::mem::take(&mut self.requests).into_values().collect();
        for ask in core::mem::take(&mut self.asks).into_keys() {
            self.events.push_back(Event::AskWithdrawn { ask });
        }
        for call in others {
            if self.calls.remove(&call).is_some() {
                self.failed(call, Failure::Closed);
            }
        }
        if let Some(entry) = again.and_then(|call| self.calls.get_mut(&call)) {
            entry.stage = Stage::Waiting;
            self.advance(now);
        }
    }
}

impl PostId {
    /// The ids of a session go on where those of the connection ended.
    pub(super) fn of(request: session::CallId) -> Self {
        Self(request.request_id().as_i64().unwrap_or(0))
    }
}
