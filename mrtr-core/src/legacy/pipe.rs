//! A pipe that speaks both eras.

use alloc::{boxed::Box, vec::Vec};
use core::task::{Context, Poll};

use super::{Config, Handled, Session, Transmit};
use crate::{
    Entropy,
    handler::Service,
    http::{Opening, ReplyClass},
    jsonrpc::{self, Message, Refused, Request, RequestId, write},
    seal::Principal,
    time::Timestamp,
};

/// Where a message belongs.
#[derive(Debug)]
#[non_exhaustive]
pub enum Piped {
    /// To the modern era: hand it to [`Service::receive_message`].
    Modern,
    /// To the session, which has taken it.
    Legacy(Handled),
}

/// Decides for each message on a pipe which era it belongs to, and holds the one legacy session a pipe can have.
///
/// A request with modern `_meta` is modern, whatever else is going on. `initialize` without it begins the session;
/// from then on everything that says no version belongs to the session. Before that it belongs to the modern era,
/// which says what is missing; a bare `ping` is answered in either case.
pub struct Pipe {
    service: Service,
    config: Config,
    principal: Option<Box<[u8]>>,
    entropy: Option<Entropy>,
    session: Option<Session>,
}

impl Pipe {
    /// A pipe with `principal` at its other end.
    #[must_use]
    pub fn new(service: Service, config: Config, principal: Principal<'_>, entropy: Entropy) -> Self {
        let principal = match principal {
            Principal::Authenticated(bytes) => Some(bytes.into()),
            Principal::Anonymous => None,
        };
        Self { service, config, principal, entropy: Some(entropy), session: None }
    }

    /// Takes one line.
    pub fn handle(&mut self, input: &[u8], now: Timestamp) -> Piped {
        self.handle_message(jsonrpc::admit(input, &self.service.server().config().limits), now)
    }

    /// Takes one line that was admitted: a modern one is still there to be handed on
    /// ([`Admission`](jsonrpc::Admission)).
    pub fn handle_message(&mut self, message: Result<Message<'_>, Refused>, now: Timestamp) -> Piped {
        const NO_HEADERS: &[(&str, &str)] = &[];
        let opening = match &message {
            Ok(message) => Opening::judge(NO_HEADERS, message),
            Err(refused) if refused.response_to.is_some() => Opening::Unversioned,
            Err(_) => Opening::Modern,
        };
        if opening == Opening::Modern || self.config.negotiate(None).is_none() {
            return Piped::Modern;
        }
        if let Some(session) = &mut self.session {
            if let Ok(Message::Notification(notification)) = &message
                && notification.method == "notifications/cancelled"
            {
                // Ids are the client's, in both eras: it names a call of one of them.
                let id = notification.param("requestId").and_then(RequestId::from_json);
                if !id.is_some_and(|id| session.calls.contains_key(&id)) {
                    return Piped::Modern;
                }
            }
            return Piped::Legacy(session.handle_admitted(message, now, true));
        }
        match message {
            Ok(Message::Request(request)) if request.method == "ping" => Piped::Legacy(pong(&request)),
            Ok(Message::Request(request)) if request.method == "initialize" => {
                Piped::Legacy(self.open(request, now))
            }
            Ok(Message::Request(_) | Message::Notification(_) | Message::Response(_)) | Err(_) => {
                Piped::Modern
            }
        }
    }

    /// Begins the session, unless its parameters are bad: then another `initialize` may.
    fn open(&mut self, request: Request<'_>, now: Timestamp) -> Handled {
        let principal = self.principal.as_deref().map_or(Principal::Anonymous, Principal::Authenticated);
        let seed: [u8; 32] = self.entropy.as_ref().map_or([0; 32], |entropy| entropy.expand(b"legacy/pipe"));
        let mut session =
            Session::on_pipe(self.service.clone(), self.config.clone(), principal, Entropy::new(seed));
        let handled = session.handle_admitted(Ok(Message::Request(request)), now, true);
        if session.version().is_some() {
            self.session = Some(session);
            self.entropy = None;
        }
        handled
    }

    /// The session, once there is one.
    #[must_use]
    pub const fn session(&self) -> Option<&Session> {
        self.session.as_ref()
    }

    /// The session, to tell it of changes.
    pub const fn session_mut(&mut self) -> Option<&mut Session> {
        self.session.as_mut()
    }

    /// The next message of the session to be written; see [`Session::poll`]. Pending for ever while there is none.
    pub fn poll(&mut self, cx: &mut Context<'_>, now: Timestamp) -> Poll<Transmit> {
        self.session.as_mut().map_or(Poll::Pending, |session| session.poll(cx, now))
    }

    /// When to poll again even if nothing wakes.
    #[must_use]
    pub fn wake_at(&self) -> Option<Timestamp> {
        self.session.as_ref().and_then(Session::wake_at)
    }
}

fn pong(request: &Request<'_>) -> Handled {
    let mut bytes = Vec::new();
    write::result_head(&mut bytes, &request.id);
    bytes.extend_from_slice(b"{}}");
    Handled::Reply { bytes, class: ReplyClass::Result }
}

impl core::fmt::Debug for Pipe {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Pipe").field("session", &self.session).finish_non_exhaustive()
    }
}
