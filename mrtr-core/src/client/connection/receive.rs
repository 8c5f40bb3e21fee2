//! What comes from the wire.

use alloc::{boxed::Box, vec::Vec};

use super::{
    CallId, Connection, Event, Failure, Flying, PostId, Stage, State, Via,
    calls::{Entry, Original},
};
use crate::{
    client::{
        Aside, Exchange, Received,
        receive::{Open, progress_token},
    },
    error::RpcError,
    http::{HttpError, Judgement},
    jsonrpc::{self, Begun, Json, Message, Notification, Refused, RequestId},
    legacy::client::{self as session, ClientSession},
    time::Timestamp,
    wire::Era,
};

type Admitted<'a> = Result<Message<'a>, Refused>;

impl Connection {
    /// Takes one message: a line of the pipe, a body, an event's data. Any bytes are fine, and there is nothing to write
    /// in reply but what [`poll_transmit`](Self::poll_transmit) gives.
    pub fn handle_message(&mut self, via: Via, input: &[u8], now: Timestamp) {
        let message = jsonrpc::admit(input, &self.client.shared.config.limits);
        match via {
            Via::Post(post) if self.posts.contains_key(&post) => self.on_modern(post, message, now),
            Via::Pipe => match replied(&message).map(PostId) {
                Some(post) if self.posts.contains_key(&post) => self.on_modern(post, message, now),
                Some(post) if self.is_probe(post) => self.on_probe(&message, now),
                _ => self.on_line(input, message, now),
            },
            Via::Post(_) | Via::Standalone => self.pass_on(via, input, now),
        }
    }

    /// HTTP: takes the response to a POST whose body was read whole, as [`judge`](crate::http::judge) judged it. For
    /// the POST of a notification or a reply, nothing has to be called unless it failed.
    pub fn handle_http(&mut self, post: PostId, judgement: Judgement<'_>, now: Timestamp) {
        match judgement {
            Judgement::Message(message) => self.handle_message(Via::Post(post), message, now),
            Judgement::MaybeLegacy(error) => self.on_http_error(post, error, MaybeLegacy::Yes, now),
            Judgement::Failed(error) => self.on_http_error(post, error, MaybeLegacy::No, now),
            Judgement::Accepted => self.handle_lost(post, now),
        }
    }

    /// A line or event was over `Limits::message_bytes` and was skipped; `beginning` is as much of it as is at hand
    /// ([`LineDecoder::overlong`](crate::framing::LineDecoder::overlong)). The call that it replied to fails; if
    /// nobody can tell which that was, all that it may have been do: nothing waits for a reply that has passed by.
    pub fn handle_overlong(&mut self, via: Via, beginning: &[u8], now: Timestamp) {
        let limit = self.client.shared.config.limits.message_bytes;
        let begun = match jsonrpc::reply_begun(beginning) {
            Begun::Reply(id) => id.as_i64().map(PostId),
            Begun::Request(_) | Begun::NoReply => return,
            Begun::Unclear => None,
        };
        let posts: Vec<PostId> = match (via, begun) {
            (Via::Post(post), _) => Vec::from([post]),
            (Via::Pipe, Some(post)) => Vec::from([post]),
            (Via::Pipe, None) => self.posts.keys().copied().collect(),
            (Via::Standalone, _) => Vec::new(),
        };
        for post in posts.iter().copied() {
            if let Some((call, _)) = self.land(post) {
                self.failed(call, Failure::Overlong { limit });
            }
        }
        let probe = match self.state {
            State::Probing { post, .. } => begun.is_none_or(|begun| begun == post),
            State::Unknown | State::Modern | State::Opening { .. } | State::Legacy(_) | State::Closed => {
                false
            }
        };
        if probe && via == Via::Pipe {
            self.probed(None, now);
        } else if let Some(via) = self.session_via(via) {
            self.on_session_now(now, |session| session.handle_overlong(via, beginning, now));
        }
    }

    /// HTTP: the response stream of a request ended without its reply, or the connection broke. A call that
    /// [may run twice](crate::client::Call::may_run_twice) is sent again (R-096, G-29), another fails. In the legacy
    /// eras take the stream up again first if you can.
    pub fn handle_lost(&mut self, post: PostId, now: Timestamp) {
        match self.land(post) {
            Some((call, (original, Flying::Pending(exchange)))) => self.again(call, exchange, original, now),
            Some((call, (original, Flying::Retrying(exchange)))) => self.again(call, exchange, original, now),
            None => {
                let found = self.request_of(post);
                self.on_session_now(now, |session| {
                    if let Some(request) =
                        found.or_else(|| session.calls().find(|one| PostId::of(*one) == post))
                    {
                        session.lost(request, now);
                    }
                });
            }
        }
    }

    /// HTTP: the server does not know the session any more, which it said (404) to something other than a request: a
    /// request that it said so to goes into [`handle_http`](Self::handle_http). What is on the wire fails, and the next
    /// call opens another session.
    pub fn handle_session_gone(&mut self, now: Timestamp) {
        self.session_gone(None, now);
    }

    /// The server's process has ended. What is on the wire fails; exchanges that wait for answers are with the
    /// embedder, and untouched.
    pub fn handle_closed(&mut self, now: Timestamp) {
        self.end_session(now);
        self.state = State::Closed;
        self.posts.clear();
        for (call, entry) in core::mem::take(&mut self.calls) {
            let failure = match entry.stage {
                Stage::Doubted(failure) => failure,
                Stage::Waiting
                | Stage::Resumed(_)
                | Stage::Flying(..)
                | Stage::Pausing(_)
                | Stage::Held(_) => Failure::Closed,
            };
            self.failed(call, failure);
        }
        self.out.clear();
    }

    /// The server's process has ended, and another one has been started in its place, which may be of another
    /// era. What was on the wire fails, but for calls that [may run twice](crate::client::Call::may_run_twice): they are
    /// sent again, as is what was not sent yet. After [`handle_closed`](Self::handle_closed) it only begins anew.
    pub fn handle_restarted(&mut self, now: Timestamp) {
        self.out.clear();
        let flying: Vec<PostId> = self.posts.keys().copied().collect();
        let held: Vec<CallId> = core::mem::take(&mut self.requests).into_values().collect();
        for call in held {
            let Some(mut entry) = self.calls.remove(&call) else { continue };
            if entry.original.as_ref().is_some_and(Original::may_run_twice) {
                entry.stage = Stage::Waiting;
                self.calls.insert(call, entry);
            } else {
                self.failed(call, Failure::Closed);
            }
        }
        self.end_session(now);
        self.state = State::Unknown;
        self.config.era = None;
        self.confirmed = false;
        for post in flying {
            let Some((call, (original, flying))) = self.land(post) else { continue };
            let twice = original.as_ref().is_some_and(Original::may_run_twice);
            match (flying, original) {
                (Flying::Pending(_), Some(original)) if twice => {
                    // It goes out as the new process wants it.
                    self.calls.insert(call, Entry { original: Some(original), stage: Stage::Waiting });
                }
                (Flying::Pending(exchange), original) => self.again(call, exchange, original, now),
                (Flying::Retrying(exchange), original) => self.again(call, exchange, original, now),
            }
        }
        if !self.calls.is_empty() {
            self.advance(now);
        }
    }

    fn end_session(&mut self, now: Timestamp) {
        if let State::Opening { session, .. } | State::Legacy(session) = &mut self.state {
            session.handle_closed();
            self.next_id = self.next_id.max(session.next_id());
            if let State::Opening { .. } = self.state {
                // Whatever comes of the handshake comes of the waiting calls.
                self.state = State::Closed;
            }
            self.pump(now);
        }
        for ask in core::mem::take(&mut self.asks).into_keys() {
            self.events.push_back(Event::AskWithdrawn { ask });
        }
    }

    const fn is_probe(&self, post: PostId) -> bool {
        match &self.state {
            State::Probing { post: of, .. } | State::Opening { probe: Some(of), .. } => of.0 == post.0,
            State::Unknown
            | State::Modern
            | State::Opening { probe: None, .. }
            | State::Legacy(_)
            | State::Closed => false,
        }
    }

    /// The reply to `server/discover`; a late one counts only if it says that the server is modern.
    fn on_probe(&mut self, message: &Admitted<'_>, now: Timestamp) {
        let outcome: Option<Result<Json<'_>, RpcError>> = match message {
            Ok(Message::Response(response)) => Some(response.outcome.clone()),
            Ok(Message::Request(_) | Message::Notification(_)) | Err(_) => None,
        };
        if let State::Opening { probe, .. } = &mut self.state {
            *probe = None;
            let modern = match &outcome {
                Some(Ok(result)) => {
                    result.get("supportedVersions").and_then(Json::items).is_some_and(|list| {
                        let ours = &self.client.shared.config.versions;
                        list.filter_map(Json::as_string)
                            .any(|name| ours.iter().any(|version| version.name() == name))
                    })
                }
                Some(Err(error)) => crate::http::is_modern(error),
                None => false,
            };
            if modern {
                self.be_modern(now);
            }
            return;
        }
        self.probed(outcome, now);
    }

    /// A line that is no reply to a modern request.
    fn on_line(&mut self, input: &[u8], message: Admitted<'_>, now: Timestamp) {
        if self.session().is_some() {
            return self.pass_on(Via::Pipe, input, now);
        }
        match message {
            Ok(Message::Notification(notification)) => self.on_notification(None, &notification, now),
            // An error without an id while nothing but the probe is under way is about the probe.
            Ok(Message::Response(response)) if response.id.is_none() => {
                if matches!(self.state, State::Probing { .. }) {
                    self.probed(Some(response.outcome), now);
                }
            }
            // Late and unknown replies, requests that a modern server must not send, and rubbish (R-006, R-191, B-81).
            Ok(Message::Response(_) | Message::Request(_)) | Err(_) => {}
        }
    }

    fn on_notification(&mut self, on: Option<CallId>, notification: &Notification<'_>, now: Timestamp) {
        let params = notification.params.map(|params| Box::from(params.as_str()));
        if let Some(token) = progress_token(notification) {
            let of = self.calls.iter_mut().find_map(|(call, entry)| match &mut entry.stage {
                Stage::Flying(_, flying) => {
                    (on.is_none_or(|on| on == *call) && flying.hear(&token, now)).then_some(*call)
                }
                Stage::Waiting
                | Stage::Doubted(_)
                | Stage::Resumed(_)
                | Stage::Pausing(_)
                | Stage::Held(_) => None,
            });
            if let Some(call) = of {
                return self.tell(Event::Progress { call, params: params.unwrap_or_default() });
            }
        }
        self.tell(Event::Notification { call: on, method: Box::from(&*notification.method), params });
    }

    /// A message for a request of the modern era.
    fn on_modern(&mut self, post: PostId, message: Admitted<'_>, now: Timestamp) {
        if let Ok(Message::Notification(notification)) = &message {
            let call = self.posts.get(&post).copied();
            return self.on_notification(call, notification, now);
        }
        let Some((call, (original, flying))) = self.land(post) else { return };
        if self.doubts(&message) {
            let Ok(Message::Response(response)) = message else { return };
            let failure = response.outcome.err().map_or(Failure::Closed, Failure::Peer);
            self.calls.insert(call, Entry { original, stage: Stage::Doubted(failure) });
            self.config.era = None;
            return self.advance(now);
        }
        match flying {
            Flying::Pending(exchange) => {
                self.received(call, post, original, exchange.receive_admitted(message, now), now)
            }
            Flying::Retrying(exchange) => {
                self.received(call, post, original, exchange.receive_admitted(message, now), now)
            }
        }
    }

    /// Whether an error may come from a legacy server that was only assumed to be modern.
    fn doubts(&self, message: &Admitted<'_>) -> bool {
        let Ok(Message::Response(response)) = message else { return false };
        let Err(error) = &response.outcome else { return false };
        self.is_pipe()
            && !self.confirmed
            && matches!(self.state, State::Unknown | State::Probing { .. })
            && !self.config.legacy.is_empty()
            && !crate::http::is_modern(error)
    }

    fn received<S>(
        &mut self,
        call: CallId,
        post: PostId,
        original: Option<Original>,
        received: Received<'_, S>,
        now: Timestamp,
    ) where
        S: Open,
        Flying: From<Exchange<S>>,
    {
        if matches!(self.state, State::Unknown)
            && matches!(
                received,
                Received::InputRequired(_)
                    | Received::Complete(_)
                    | Received::Resend(_)
                    | Received::StateRefused(_)
                    | Received::Stopped(_)
            )
        {
            self.state = State::Modern;
            self.confirm(Era::Modern);
        }
        match received {
            Received::InputRequired(exchange) => match exchange.not_before() {
                None => self.events.push_back(Event::InputRequired { call, exchange }),
                Some(until) => {
                    self.calls.insert(call, Entry { original, stage: Stage::Pausing(exchange) });
                    self.tell(Event::Deferred { call, until });
                }
            },
            Received::Complete(exchange) => self.completed(call, &exchange),
            Received::Aside(exchange, aside) => {
                self.posts.insert(post, call);
                let stage = Stage::Flying(post, exchange.into());
                self.calls.insert(call, Entry { original, stage });
                match aside {
                    Aside::Progress(_)
                    | Aside::Notification(_)
                    | Aside::Reply(_)
                    | Aside::Request(_)
                    | Aside::Error(_)
                    | Aside::Unreadable(_) => {}
                }
            }
            Received::Resend(resend) => self.resend(call, resend, original, now),
            Received::StateRefused(refused) => self.failed(call, Failure::StateRefused(refused)),
            Received::Invalid(violation) => self.failed(call, Failure::Violation(violation)),
            Received::Stopped(stopped) => self.failed(call, Failure::Stopped(stopped)),
        }
    }

    /// Takes a modern request off the books.
    #[allow(clippy::type_complexity)]
    fn land(&mut self, post: PostId) -> Option<(CallId, (Option<Original>, Flying))> {
        let call = self.posts.remove(&post)?;
        let entry = self.calls.remove(&call)?;
        match entry.stage {
            Stage::Flying(_, flying) => Some((call, (entry.original, flying))),
            stage @ (Stage::Waiting
            | Stage::Doubted(_)
            | Stage::Resumed(_)
            | Stage::Pausing(_)
            | Stage::Held(_)) => {
                self.calls.insert(call, Entry { stage, ..entry });
                None
            }
        }
    }

    fn on_http_error(&mut self, post: PostId, error: HttpError, legacy: MaybeLegacy, now: Timestamp) {
        if let Some((call, (original, flying))) = self.land(post) {
            let may = legacy == MaybeLegacy::Yes && !self.config.legacy.is_empty();
            let first = matches!(flying, Flying::Pending(_)) && original.is_some();
            let known = matches!(self.state, State::Modern);
            if !(may && first) || known {
                return self.failed(call, Failure::Http(error));
            }
            let stage = Stage::Doubted(Failure::Http(error));
            self.calls.insert(call, Entry { original, stage });
            return match self.state {
                State::Unknown => self.fall_back(None, now),
                State::Legacy(_) => self.hold_all(now),
                State::Probing { .. } | State::Modern | State::Opening { .. } | State::Closed => {}
            };
        }
        let request = self.request_of(post);
        match (&mut self.state, request) {
            (State::Opening { fault, session, .. }, _) => {
                *fault = Some(error);
                let opening = session.calls().find(|one| PostId::of(*one) == post);
                if let Some(opening) = opening {
                    session.lost(opening, now);
                }
                self.pump(now);
            }
            (State::Legacy(_), Some(request)) if error.status == 404 => self.session_gone(Some(request), now),
            (State::Legacy(_), Some(request)) => {
                // A JSON-RPC error is the server's word on the request, whatever the status (G-01).
                let Some(call) = self.requests.remove(&request) else { return };
                self.calls.remove(&call);
                self.failed(call, Failure::Http(error));
                self.on_session_now(now, |session| session.lost(request, now));
            }
            (
                State::Unknown | State::Probing { .. } | State::Modern | State::Legacy(_) | State::Closed,
                _,
            ) => {}
        }
    }

    fn request_of(&self, post: PostId) -> Option<session::CallId> {
        self.requests.keys().copied().find(|request| PostId::of(*request) == post)
    }

    fn pass_on(&mut self, via: Via, input: &[u8], now: Timestamp) {
        if let Some(via) = self.session_via(via) {
            self.on_session_now(now, |session| session.handle_message(via, input, now));
        }
    }

    fn session_via(&self, via: Via) -> Option<session::Via> {
        match via {
            Via::Pipe => Some(session::Via::Pipe),
            Via::Standalone => Some(session::Via::Standalone),
            Via::Post(post) => {
                let mut calls = self.session()?.calls();
                calls.find(|request| PostId::of(*request) == post).map(session::Via::Call)
            }
        }
    }

    fn on_session_now(&mut self, now: Timestamp, act: impl FnOnce(&mut ClientSession)) {
        if let State::Opening { session, .. } | State::Legacy(session) = &mut self.state {
            act(session);
            self.pump(now);
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum MaybeLegacy {
    Yes,
    No,
}

/// The id that a message replies to, if it is a reply or a broken one.
fn replied(message: &Admitted<'_>) -> Option<i64> {
    let id: Option<&RequestId> = match message {
        Ok(Message::Response(response)) => response.id.as_ref(),
        Ok(Message::Request(_) | Message::Notification(_)) => None,
        Err(refused) if refused.asks_or_tells() => None,
        // A message with an id and nothing else can only be meant as one.
        Err(refused) => refused.response_to.as_ref().or(refused.id.as_ref()),
    };
    id.and_then(RequestId::as_i64)
}
