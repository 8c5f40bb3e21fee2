//! What the server sends.

use alloc::{borrow::Cow, boxed::Box, string::String, vec::Vec};

use super::{
    CallId, Carries, ClientSession, Closed, Event, Failure, Unsolicited, Via, Withdrawn, event,
    session::{Opened, Owner, Phase, Waiting},
};
use crate::{
    client::text,
    error::{ErrorCode, RpcError},
    jsonrpc::{
        self, Begun, Json, JsonKind, Message, Notification, Refused, Request, RequestId, Response, write,
    },
    legacy::revision::effective,
    time::Timestamp,
    trace::debug,
    wire::{AskFault, AskKind, InputRequest, Version},
};

/// Characters kept of a reason the server gives.
const REASON_CHARS: usize = 500;

/// Replies that nobody asked the embedder for (pongs, errors) and that wait to be sent; more are not written, so
/// that a peer that does not read cannot fill the memory.
const REPLIES: usize = 256;

impl ClientSession {
    /// Takes one message of the server: a line of the pipe, a body, an event's data. Any bytes are fine.
    pub fn handle_message(&mut self, via: Via, input: &[u8], now: Timestamp) {
        if matches!(self.phase, Phase::New | Phase::Closed) {
            return;
        }
        match jsonrpc::admit(input, &self.config.limits) {
            Ok(Message::Response(response)) => self.on_response(via, response, now),
            Ok(Message::Request(request)) => self.on_request(via, &request, now),
            Ok(Message::Notification(notification)) => self.on_notification(via, &notification, now),
            Err(refused) => self.on_refused(via, refused, now),
        }
    }

    /// A line or event was over `Limits::message_bytes` and was skipped; `beginning` is as much of it as is at hand.
    ///
    /// If it begins with the id of a request that is under way, that one fails; if it says nothing of the kind, all
    /// that it may have replied to: nothing waits for a reply that has passed by.
    pub fn handle_overlong(&mut self, via: Via, beginning: &[u8], now: Timestamp) {
        let limit = self.config.limits.message_bytes;
        let failed: Vec<CallId> = match (jsonrpc::reply_begun(beginning), via) {
            (Begun::Reply(id), _) => Vec::from_iter(self.under_way(via, &id)),
            (Begun::Request(_) | Begun::NoReply, _) | (Begun::Unclear, Via::Standalone) => Vec::new(),
            (Begun::Unclear, Via::Call(call)) => Vec::from([call]),
            (Begun::Unclear, Via::Pipe) => self.calls.keys().copied().collect(),
        };
        for call in failed {
            self.fail(call, Failure::Overlong { limit }, now);
        }
    }

    /// The request of ours with that id, if a reply to it may come from there.
    fn under_way(&self, via: Via, id: &RequestId) -> Option<CallId> {
        let call = id.as_i64().map(CallId).filter(|call| self.calls.contains_key(call))?;
        match via {
            Via::Call(own) if own != call => None,
            Via::Call(_) | Via::Pipe | Via::Standalone => Some(call),
        }
    }

    fn on_response(&mut self, via: Via, response: Response<'_>, now: Timestamp) {
        let call = match (&response.id, via, &self.phase) {
            (Some(id), _, _) => self.under_way(via, id),
            (None, Via::Call(call), _) => Some(call),
            // Nothing else was sent that it could be about.
            (None, _, Phase::Opening(call)) => Some(*call),
            (None, Via::Pipe | Via::Standalone, Phase::New | Phase::Open(_) | Phase::Closed) => None,
        };
        let Some(call) = call else {
            debug!("a reply to nothing that is under way is ignored (R-191)");
            return;
        };
        match response.outcome {
            Err(error) => self.fail(call, Failure::Peer(error), now),
            Ok(result) if matches!(self.phase, Phase::Opening(_)) => self.on_opened(call, result),
            Ok(result) => {
                if self.calls.remove(&call).is_some() {
                    self.events.push_back(Event::Response { call, outcome: Ok(Box::from(result.as_str())) });
                    self.settle(now);
                }
            }
        }
    }

    /// The reply to `initialize`.
    fn on_opened(&mut self, call: CallId, result: Json<'_>) {
        self.calls.remove(&call);
        let Some(name) = result.get("protocolVersion").and_then(Json::as_string) else {
            return self.close(Closed::Malformed("has no string protocolVersion"));
        };
        if !result.get("capabilities").is_some_and(Json::is_object) {
            return self.close(Closed::Malformed("has no capabilities object"));
        }
        let Some(version) = Version::from_name(&name).filter(|version| self.config.speaks(*version)) else {
            return self.close(Closed::Version(text::excerpt(&name)));
        };
        self.phase = Phase::Open(Box::new(Opened {
            version,
            capabilities: effective(self.config.capabilities, version),
            result: result.as_str().into(),
        }));
        self.transmit(
            Carries::Notification,
            b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}".to_vec(),
        );
        self.events.push_back(Event::Opened);
    }

    fn on_refused(&mut self, via: Via, refused: Refused, now: Timestamp) {
        let call = match (&refused.response_to, via) {
            (Some(id), _) => self.under_way(via, id),
            // Nothing else comes there that one could wait for; but what tells fails nothing but itself.
            (None, Via::Call(call)) if refused.id.is_none() && !refused.asks_or_tells() => Some(call),
            (None, Via::Call(_) | Via::Pipe | Via::Standalone) => None,
        };
        match (call, &refused.id) {
            (Some(call), _) => self.fail(call, Failure::Unreadable(refused.reason), now),
            // A request that got no reply would hang; a reply with an id starts no storm (B-81).
            (None, Some(id)) => self.reply_error(id, &refused.error()),
            (None, None) => debug!("what is no message is ignored (B-81)"),
        }
    }

    fn on_request(&mut self, via: Via, request: &Request<'_>, now: Timestamp) {
        if request.method == "ping" {
            if self.may_reply() {
                let mut bytes = Vec::new();
                write::result_head(&mut bytes, &request.id);
                bytes.extend_from_slice(b"{}}");
                self.transmit(Carries::Reply(None), bytes);
            }
            return;
        }
        if self.asks.values().any(|waiting| waiting.id == request.id) {
            // Whatever was replied could only be taken for the reply to the first.
            debug!("a request under the id of one that waits is ignored");
            return;
        }
        let owner = self.owner(via);
        let call = match owner {
            Owner::One(call) => Some(call),
            Owner::None | Owner::Unknown => None,
        };
        match self.judge(request, owner) {
            Ok(ask) => {
                let solicited = owner != Owner::None;
                let waiting = Waiting { id: request.id.clone(), call, solicited };
                self.ask(waiting, ask.into_owned(), now);
            }
            Err(error) => {
                self.reply_error(&request.id, &error);
                let method = text::excerpt(&request.method);
                self.tell(Event::AskRefused { call, method, error });
            }
        }
    }

    /// Whether a request is an ask that may be shown to somebody.
    fn judge<'a>(&self, request: &Request<'a>, owner: Owner) -> Result<InputRequest<'a>, RpcError> {
        let invalid = |what: String| RpcError::invalid_params(what);
        let unknown = || RpcError::new(ErrorCode::METHOD_NOT_FOUND, "Method not found");
        let can = self.capabilities();
        let served = match &*request.method {
            "elicitation/create" => can.form || can.url,
            "sampling/createMessage" => can.sampling,
            "roots/list" => can.roots,
            _ => false,
        };
        if !served {
            return Err(unknown());
        }
        let ask = InputRequest::from_parts(&request.method, request.params).map_err(|fault| match fault {
            AskFault::UnknownMethod(_) => unknown(),
            AskFault::NotAnObject
            | AskFault::NoMethod
            | AskFault::NoParams
            | AskFault::UnknownMode
            | AskFault::Member(_) => invalid(alloc::format!("Invalid params: the request {fault}")),
        })?;
        if !can.allow(ask.requirement()) {
            return Err(invalid(alloc::format!(
                "Invalid params: {} was not declared in this session",
                if ask.kind() == AskKind::Sampling { "sampling with tools" } else { ask.kind().name() }
            )));
        }
        let allowed = match self.config.unsolicited {
            Unsolicited::Refuse => false,
            Unsolicited::RootsOnly => ask.kind() == AskKind::Roots,
            Unsolicited::Allow => true,
        };
        if owner == Owner::None && !allowed {
            return Err(event::unassociated());
        }
        let limit = self.config.limits.asks_accepted;
        if self.asks.len() >= limit {
            return Err(RpcError::internal(alloc::format!(
                "Internal error: over the limit of {limit} asks at a time (Limits::asks_accepted)"
            )));
        }
        Ok(ask)
    }

    fn on_notification(&mut self, via: Via, notification: &Notification<'_>, now: Timestamp) {
        let params = || notification.params.map(|params| Box::from(params.as_str()));
        match &*notification.method {
            "notifications/cancelled" => self.on_cancelled(notification, now),
            "notifications/progress" => {
                let token = notification.param("progressToken").and_then(RequestId::from_json);
                let call = token.and_then(|token| self.under_way(via, &token));
                if let Some(call) = call
                    && let Some(found) = self.calls.get_mut(&call).filter(|call| call.progress)
                {
                    found.heard = found.heard.max(now);
                    self.tell(Event::Progress { call, params: params().unwrap_or_default() });
                    return;
                }
                self.tell(Event::Notification {
                    via,
                    method: Box::from(&*notification.method),
                    params: params(),
                });
            }
            method => self.tell(Event::Notification { via, method: method.into(), params: params() }),
        }
    }

    /// The server takes an ask back. It gets no reply.
    fn on_cancelled(&mut self, notification: &Notification<'_>, now: Timestamp) {
        let id = notification.param("requestId").and_then(RequestId::from_json);
        let ask = self.asks.iter().find(|(_, waiting)| Some(&waiting.id) == id.as_ref()).map(|(ask, _)| *ask);
        let Some(ask) = ask else { return };
        self.asks.remove(&ask);
        let untold = self.events.iter().position(|event| match event {
            Event::Ask(asked) => asked.id == ask,
            Event::Opened
            | Event::Response { .. }
            | Event::AskWithdrawn { .. }
            | Event::AskRefused { .. }
            | Event::Progress { .. }
            | Event::Notification { .. }
            | Event::Closed(_) => false,
        });
        if let Some(untold) = untold {
            // Nobody has heard of it yet.
            self.events.remove(untold);
            return self.settle(now);
        }
        let reason = notification.param("reason").filter(|reason| reason.kind() == JsonKind::String);
        let reason = reason.and_then(Json::as_string).map(Cow::into_owned);
        let reason = reason.map(|reason| reason.chars().take(REASON_CHARS).collect());
        self.events.push_back(Event::AskWithdrawn { ask, why: Withdrawn::ByServer { reason } });
        self.settle(now);
    }

    fn may_reply(&self) -> bool {
        self.out.iter().filter(|transmit| matches!(transmit.carries, Carries::Reply(_))).count() < REPLIES
    }

    fn reply_error(&mut self, id: &RequestId, error: &RpcError) {
        if self.may_reply() {
            self.send_error(id, None, error);
        }
    }

    /// Tells something that may be missed.
    fn tell(&mut self, event: Event) {
        if self.events.len() < self.config.events {
            self.events.push_back(event);
        } else {
            debug!("a notification is dropped: nobody polls (ClientConfig::events)");
        }
    }
}
