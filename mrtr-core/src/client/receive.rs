//! What comes in while a request is on the wire (`Pending`, `Retrying`).

use alloc::{boxed::Box, vec::Vec};

use super::{
    Channel, Complete, Exchange, InputRequired, Resend, StateRefused, Stopped, Violation,
    call::{Method, Progress},
    input_required::Asked,
    ongoing::CarriesState,
    question, text,
};
use crate::{
    error::{ErrorCode, RpcError},
    jsonrpc::{Json, Message, Notification, Parts, Refused, Request, RequestId, admit, write},
    time::Timestamp,
    trace::{debug, warn},
    wire::{Action, InterimResult, ResultKind, read_parts},
};

/// A state with a request on the wire: [`Pending`](super::Pending) or [`Retrying`](super::Retrying).
pub trait Open: InFlight {}

/// What the open states have in common, out of reach of other crates: nobody else can make one.
pub trait InFlight: Sized + core::fmt::Debug {
    #[doc(hidden)]
    fn new(flight: Flight) -> Self;
    #[doc(hidden)]
    fn flight(&self) -> &Flight;
    #[doc(hidden)]
    fn flight_mut(&mut self) -> &mut Flight;
}

/// When the request went out, and when it was last heard of.
#[derive(Debug)]
pub struct Flight {
    sent: Timestamp,
    heard: Timestamp,
}

impl Flight {
    pub(super) const fn new(now: Timestamp) -> Self {
        Self { sent: now, heard: now }
    }
}

/// What a message means to the exchange it was handed to.
#[derive(Debug)]
#[must_use = "the exchange goes on in here"]
#[allow(clippy::exhaustive_enums)]
pub enum Received<'a, S: Open> {
    /// The server asks, or defers.
    InputRequired(Exchange<InputRequired>),
    /// The outcome: a result, or an error that the peer sent.
    Complete(Exchange<Complete>),
    /// The message is no reply to the request. The exchange goes on.
    Aside(Exchange<S>, Aside<'a>),
    /// The server does not serve the version; the request can go out again.
    Resend(Resend<S>),
    /// The server refused a retry that carried a state, most likely for the state (G-11).
    StateRefused(StateRefused),
    /// The reply breaks the protocol.
    Invalid(Violation),
    /// The reply is legal, but this client goes no further.
    Stopped(Stopped),
}

/// A message that is no reply to the request. None of them is to be answered.
#[derive(Debug)]
#[non_exhaustive]
pub enum Aside<'a> {
    /// Progress of this very request: it carries the request's token.
    Progress(Notification<'a>),
    /// Another notification. On a [`Channel::Own`] it is about this request, on a shared one about anything.
    Notification(Notification<'a>),
    /// A reply to another request, or a late one to a request that was given up (R-191, G-30).
    Reply(RequestId),
    /// A request. Modern servers must not send any.
    Request(Request<'a>),
    /// On a shared channel: an error without an id, which may be about any message.
    Error(RpcError),
    /// Something that is no message, or breaks a bound, and is not the reply: a broken notification or request, and, on
    /// a shared channel, whatever cannot be said to be the reply.
    Unreadable(Refused),
}

impl<S: Open> Exchange<S> {
    /// When to give the request up unless something is received before: it has been silent for
    /// `Policy::request_timeout`, is under way for `Policy::request_longest`, or the exchange's time is up.
    #[must_use]
    pub fn timeout(&self) -> Timestamp {
        let (policy, flight) = (&self.call.shared.config.policy, self.state.flight());
        let silent = flight.heard.saturating_add(policy.request_timeout);
        let longest = flight.sent.saturating_add(policy.request_longest);
        silent.min(longest).min(self.call.deadline())
    }

    /// Takes one message of the peer: a line of a pipe, a body, an event's data.
    ///
    /// Any bytes are fine. Only a reply under this request's id ends it; a result without a `resultType` is
    /// complete, and one with an unknown one an error (R-012…R-018). Whatever else the result is, there is nothing to
    /// write in reply.
    pub fn receive<'a>(self, input: &'a [u8], now: Timestamp) -> Received<'a, S> {
        let message = admit(input, &self.call.shared.config.limits);
        self.receive_admitted(message, now)
    }

    /// [`Exchange::receive`] for a message that was admitted already.
    pub(super) fn receive_admitted<'a>(
        mut self,
        message: Result<Message<'a>, Refused>,
        now: Timestamp,
    ) -> Received<'a, S> {
        let channel = self.call.shared.config.channel;
        let message = match message {
            Ok(message) => message,
            Err(refused) => {
                // What asks or tells is no reply, wherever it comes: it fails nothing but itself (B-81).
                if refused.asks_or_tells() {
                    return Received::Aside(self, Aside::Unreadable(refused));
                }
                let replied_to = refused.response_to.as_ref().or(refused.id.as_ref());
                let ours = replied_to == Some(&self.call.id);
                return match (replied_to, channel) {
                    (Some(_), _) if ours => invalid(Violation::Message(refused)),
                    (_, Channel::Own) => invalid(Violation::Message(refused)),
                    (_, Channel::Shared) => Received::Aside(self, Aside::Unreadable(refused)),
                };
            }
        };
        let response = match message {
            Message::Response(response) => response,
            Message::Request(request) => return Received::Aside(self, Aside::Request(request)),
            Message::Notification(notification) => {
                let token = progress_token(&notification);
                if self.progress_token().is_none_or(|ours| token.as_ref() != Some(ours)) {
                    return Received::Aside(self, Aside::Notification(notification));
                }
                self.hear(now);
                return Received::Aside(self, Aside::Progress(notification));
            }
        };
        match (response.id, channel) {
            (Some(id), _) if id == self.call.id => {}
            (Some(id), Channel::Shared) => return Received::Aside(self, Aside::Reply(id)),
            (Some(_), Channel::Own) => return invalid(Violation::OtherId),
            (None, Channel::Own) => {}
            (None, Channel::Shared) => {
                let error = response.outcome.err().unwrap_or_else(|| RpcError::internal(""));
                return Received::Aside(self, Aside::Error(error));
            }
        }
        self.call.spent = self.call.spent.counting(now);
        match response.outcome {
            Ok(result) => self.result(result, &response.admitted.parts(result), now),
            Err(error) => self.error(error),
        }
    }

    /// Gives the request up. On a shared channel this appends `notifications/cancelled`; a request with a
    /// stream of its own is cancelled by closing that stream, and nothing is appended.
    ///
    /// A reply that still arrives belongs to nobody (R-191, G-30).
    pub fn cancel(self, reason: &str, out: &mut Vec<u8>) {
        if self.call.shared.config.channel == Channel::Own {
            return;
        }
        write::cancelled(out, &self.call.id, reason);
    }

    /// Takes note of progress of this very request.
    pub(super) fn hear(&mut self, now: Timestamp) {
        self.state.flight_mut().heard = now;
    }

    /// The token of this request, if it wants progress.
    pub(super) fn progress_token(&self) -> Option<&RequestId> {
        match &self.call.options.progress {
            Progress::Unwanted => None,
            Progress::RequestId => Some(&self.call.id),
            Progress::Token(token) => Some(token),
        }
    }

    fn error<'a>(self, error: RpcError) -> Received<'a, S> {
        match error.code {
            ErrorCode::UNSUPPORTED_VERSION => match self.with_another_version(error) {
                Ok(resend) => Received::Resend(resend),
                Err((exchange, error)) => Received::Complete(exchange.complete(Err(error))),
            },
            ErrorCode::INVALID_PARAMS if self.call.tail.state == CarriesState::Yes => {
                Received::StateRefused(StateRefused::new(self.complete(Err(error))))
            }
            _ => Received::Complete(self.complete(Err(error))),
        }
    }

    fn result<'a>(self, result: Json<'_>, parts: &Parts<'_>, now: Timestamp) -> Received<'a, S> {
        let config = &self.call.shared.config;
        if !config.result_types.is_empty() {
            let named = parts.kind.and_then(Json::as_string);
            if named.is_some_and(|named| config.result_types.iter().any(|known| **known == *named)) {
                return Received::Complete(self.complete(Ok(result)));
            }
        }
        match read_parts(result, parts, &config.limits) {
            Ok(ResultKind::Complete(result)) => Received::Complete(self.complete(Ok(result))),
            Ok(ResultKind::InputRequired(interim)) => {
                let members = [("inputRequests", parts.requests), ("requestState", parts.state)];
                for (name, _) in members.into_iter().filter(|(_, member)| member.is_some_and(Json::is_null)) {
                    debug!(member = name, "the server sends null for a member it should leave out (G-05)");
                }
                self.asked(interim, now)
            }
            Err(fault) => invalid(fault.into()),
        }
    }

    /// The end of the way, with its outcome.
    fn complete(self, outcome: Result<Json<'_>, RpcError>) -> Exchange<Complete> {
        let outcome = outcome.map(|result| Box::from(result.as_str()));
        Exchange { call: self.call, state: Complete { outcome } }
    }

    /// An interim result: every reason not to ask comes before anybody is asked.
    fn asked<'a>(mut self, interim: InterimResult<'_>, now: Timestamp) -> Received<'a, S> {
        if let Method::Other(method) = &self.call.method {
            return invalid(Violation::NotAllowed { method: text::excerpt(method) });
        }
        let undeclared =
            interim.asks.iter().find(|(_, ask)| !self.call.capabilities.allow(ask.requirement()));
        if let Some((key, ask)) = undeclared {
            return invalid(Violation::Undeclared { key: text::excerpt(key), kind: ask.kind() });
        }
        let call = &mut self.call;
        question::remember(&mut call.past, core::mem::take(&mut call.last));
        let mut asks = Vec::with_capacity(interim.asks.len());
        for (key, request) in interim.asks {
            let mut ask = Asked {
                key: key.into_owned().into_boxed_str(),
                request: request.into_owned(),
                before: None,
                answer: None,
            };
            if !call.past.is_empty() {
                let verdict = ask.mark().and_then(|mark| call.past.get(&mark));
                ask.before = verdict.map(|verdict| verdict.action);
                match verdict {
                    Some(verdict) if verdict.action == Action::Decline => {
                        return stopped(Stopped::Declined { key: text::excerpt(&ask.key) });
                    }
                    Some(verdict) if verdict.dismissed > 1 => {
                        return stopped(Stopped::Dismissed { key: text::excerpt(&ask.key) });
                    }
                    Some(_) | None => {}
                }
            }
            asks.push(ask);
        }
        let state = interim.state.map(|state| Box::from(state.as_str()));
        let meta = interim.meta.map(|meta| Box::from(meta.as_str()));
        let mut next = InputRequired { asks, state, meta, not_before: None };
        match self.may_go_on(&mut next, now) {
            Ok(()) => Received::InputRequired(Exchange { call: self.call, state: next }),
            Err(reason) => stopped(reason),
        }
    }

    /// Checks every limit that the retry could fail on, and sets the pause of a state-only round.
    fn may_go_on(&self, next: &mut InputRequired, now: Timestamp) -> Result<(), Stopped> {
        self.call.may_retry(&next.asks)?;
        let config = &self.call.shared.config;
        let bytes = self.call.base + next.least_tail();
        if bytes > config.limits.message_bytes {
            return Err(Stopped::RetryTooLarge { bytes, limit: config.limits.message_bytes });
        }
        let mut earliest = now;
        if next.asks.is_empty() {
            let state = next.state.as_deref().unwrap_or("");
            let counts = &self.call.counts;
            let seed =
                state.bytes().fold(self.call.options.jitter ^ u64::from(counts.state_only), |seed, byte| {
                    (seed ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
                });
            earliest = now.saturating_add(config.policy.pause(counts.in_a_row, seed));
            next.not_before = Some(earliest);
        }
        // The time of the exchange counts up to `now` here.
        if self.call.spent.so_far > config.limits.exchange || earliest > self.call.deadline() {
            return Err(Stopped::Deadline { limit: config.limits.exchange });
        }
        Ok(())
    }
}

/// The token that a progress notification carries.
pub(super) fn progress_token(notification: &Notification<'_>) -> Option<RequestId> {
    if notification.method != "notifications/progress" {
        return None;
    }
    notification.param("progressToken").and_then(RequestId::from_json)
}

fn invalid<'a, S: Open>(violation: Violation) -> Received<'a, S> {
    warn!(reason = %violation, "the server's reply breaks the protocol");
    Received::Invalid(violation)
}

fn stopped<'a, S: Open>(reason: Stopped) -> Received<'a, S> {
    warn!(reason = %reason, "the exchange goes no further");
    Received::Stopped(reason)
}
