//! Requests of ours that get no response: it does not come, not in time, nobody wants it
//! any more, or it is too long to be looked at.

use alloc::{format, vec::Vec};

use super::{
    Bridge, CallFailure, LinkId, Output, Transport,
    link::{Link, Purpose, Sent},
};
use crate::{
    error::{ErrorCode, RpcError},
    jsonrpc::{Begun, reply_begun, write},
    time::Timestamp,
    trace::debug,
    wire::AskingMethod,
};

impl Bridge {
    /// The HTTP response to a request ended without a JSON-RPC response, or the request could not be sent. Nothing, if its
    /// response has come already. Its host hears why ([`CallFailure::error`]).
    pub fn fail_call(&mut self, link: LinkId, call: i64, failure: CallFailure, now: Timestamp) {
        if self.sent_on(link, call).is_none() {
            return;
        }
        // The response of a modern server was its stream, which is over; a legacy one may run the call without.
        if failure.may_run() && self.links.get_mut(&link).and_then(Link::session).is_some() {
            self.give_up(link, call, now);
        }
        if let Some(sent) = self.take_sent(call, link) {
            self.on_failure(sent, &failure.error(), now);
        }
    }

    /// Over HTTP a reply to a question of this upstream was refused, or not accepted in time. The call that has asked waits
    /// for nothing else: it fails, and is cancelled there. If several calls are under way on the connection that may have
    /// asked, nobody can tell which it was, and they go on.
    pub fn fail_reply(&mut self, link: LinkId, failure: CallFailure, now: Timestamp) {
        let asks = |sent: &Sent| match &sent.purpose {
            Purpose::Parked(_) => true,
            Purpose::Relay(relay) => AskingMethod::from_name(&relay.method).is_some(),
            Purpose::Dialogue(_)
            | Purpose::Gather(..)
            | Purpose::Relist(..)
            | Purpose::Initialize
            | Purpose::Discover
            | Purpose::Listen(_)
            | Purpose::Level
            | Purpose::Ignored => false,
        };
        let mut asking =
            self.sent.iter().filter(|(_, sent)| sent.link == link && asks(sent)).map(|(id, _)| *id);
        let (Some(call), None) = (asking.next(), asking.next()) else { return };
        self.give_up(link, call, now);
        if let Some(sent) = self.take_sent(call, link) {
            self.on_failure(sent, &failure.error(), now);
        }
    }

    /// A line of an upstream was over `Limits::message_bytes` and was skipped; `beginning` is as much of it as is at hand
    /// ([`LineDecoder::overlong`](crate::framing::LineDecoder::overlong)). The upstream stays, and nothing waits for what
    /// has passed by:
    ///
    /// - the response to a request fails that request, and no other;
    /// - if its id cannot be seen, it is that of the only request under way; if there are several, all of them fail and
    ///   are cancelled;
    /// - a question is answered by an error;
    /// - a notification is lost.
    pub fn handle_overlong(&mut self, link: LinkId, beginning: &[u8], now: Timestamp) {
        let failure = CallFailure::TooLarge { limit: self.config.limits.message_bytes };
        let open = |this: &Self| -> Vec<i64> {
            this.sent.iter().filter(|(_, sent)| sent.link == link).map(|(id, _)| *id).collect()
        };
        match reply_begun(beginning) {
            Begun::Reply(id) => match id.as_i64().and_then(|id| self.take_sent(id, link)) {
                Some(sent) => self.on_failure(sent, &failure.error(), now),
                None => self.drained(link, id.as_i64(), now),
            },
            Begun::Unclear => {
                let open = open(self);
                let several = open.len() > 1;
                for id in open {
                    if several {
                        self.give_up(link, id, now);
                    }
                    if let Some(sent) = self.take_sent(id, link) {
                        self.on_failure(sent, &failure.error(), now);
                    }
                }
            }
            Begun::Request(id) => {
                if self.links.get_mut(&link).and_then(Link::session).is_some() {
                    let limit = self.config.limits.message_bytes;
                    let text = format!("Invalid request: over the limit of {limit} bytes");
                    self.answer_upstream_error(link, &id, &RpcError::new(ErrorCode::INVALID_REQUEST, text));
                }
            }
            Begun::NoReply => debug!("a message of an upstream was too long and is lost"),
        }
    }

    pub(super) fn sent_due(&mut self, id: i64, now: Timestamp) {
        let Some(sent) = self.sent.get_mut(&id) else { return };
        sent.timer = None;
        let link = sent.link;
        self.give_up(link, id, now);
        if let Some(sent) = self.take_sent(id, link) {
            self.on_failure(sent, &CallFailure::TimedOut.error(), now);
        }
    }

    /// A request of ours that the upstream may still work on is cancelled there, and what a call of it still asks meets
    /// nobody else's.
    fn give_up(&mut self, link: LinkId, id: i64, now: Timestamp) {
        self.cancel_upstream(id);
        if let Some(Purpose::Parked(_)) = self.sent_on(link, id).map(|sent| &sent.purpose) {
            self.doubt(link, id, now);
        }
    }

    /// A host does not want the response to a request of ours any more.
    pub(super) fn cancel_sent(&mut self, id: i64, now: Timestamp) {
        self.cancel_upstream(id);
        let Some(sent) = self.forget_sent(id) else { return };
        if let Some(session) = self.links.get_mut(&sent.link).and_then(Link::session) {
            session.in_flight.remove(&id);
        }
        self.settle(sent.link, now);
    }

    /// Tells the upstream, unless it has not got the request yet.
    pub(super) fn cancel_upstream(&mut self, id: i64) {
        let Some(link) = self.sent.get(&id).map(|sent| sent.link) else { return };
        let Some(entry) = self.links.get_mut(&link) else { return };
        let upstream = entry.upstream;
        if let Some(session) = entry.session() {
            let waited = session.backlog.len();
            session.backlog.retain(|(waiting, _)| *waiting != id);
            if !session.ready || session.backlog.len() < waited {
                return;
            }
        } else if self.config.upstreams.get(upstream).is_some_and(|up| up.transport == Transport::Http) {
            self.out.push_back(Output::CloseStream { link, call: id });
            return;
        }
        let mut bytes = Vec::new();
        let params = alloc::format!("{{\"requestId\":{id}}}");
        write::notification(&mut bytes, "notifications/cancelled", &params);
        self.transmit(link, None, bytes, Vec::new());
    }
}
