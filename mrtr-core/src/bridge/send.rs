//! Requests to upstreams go out, at once or when what they have to wait for has come.

use alloc::vec::Vec;
use core::time::Duration;

use super::{
    Bridge, LinkId, Output, Transport, level,
    link::{Headers, Link, Purpose, Sent, Session},
    timers::Whom,
};
use crate::time::Timestamp;

impl Session {
    /// Whether what is sent now has to wait.
    pub(super) const fn holds(&self) -> bool {
        !self.ready || self.setting.is_some()
    }
}

impl Bridge {
    /// Sends a request.
    pub(super) fn send(
        &mut self,
        link: LinkId,
        id: i64,
        bytes: Vec<u8>,
        headers: Headers,
        purpose: Purpose,
        now: Timestamp,
    ) {
        let endless = matches!(&purpose, Purpose::Listen(_))
            || matches!(&purpose, Purpose::Relay(relay) if relay.method == "subscriptions/listen");
        let mut sent = Sent { link, purpose, timer: None };
        if !endless {
            let until = self.due(&sent.purpose, now);
            self.timers.set(Whom::Sent(id), &mut sent.timer, Some(until));
        }
        self.sent.insert(id, sent);
        if let Some(session) = self.links.get_mut(&link).and_then(Link::session) {
            session.in_flight.insert(id);
            session.rests = None;
            if session.holds() {
                session.backlog.push_back((id, bytes));
                return;
            }
        }
        self.pass(link, id, bytes, headers);
    }

    /// Until when there is to be a response.
    pub(super) fn due(&self, purpose: &Purpose, now: Timestamp) -> Timestamp {
        let within = match purpose {
            Purpose::Initialize | Purpose::Discover => self.config.waits.handshake,
            Purpose::Level => level::PATIENCE,
            Purpose::Relay(_)
            | Purpose::Parked(_)
            | Purpose::Dialogue(_)
            | Purpose::Gather(..)
            | Purpose::Relist(..)
            | Purpose::Listen(_)
            | Purpose::Ignored => Duration::MAX,
        };
        now.saturating_add(within.min(self.config.limits.exchange))
    }

    pub(super) fn transmit(&mut self, link: LinkId, call: Option<i64>, bytes: Vec<u8>, mut headers: Headers) {
        let Some(entry) = self.links.get_mut(&link) else { return };
        let http =
            self.config.upstreams.get(entry.upstream).is_some_and(|up| up.transport == Transport::Http);
        if let Some(session) = entry.session()
            && http
            && session.ready
        {
            headers.push(("MCP-Protocol-Version".into(), session.version.name().into()));
        }
        self.out.push_back(Output::ToUpstream { link, call, bytes, headers });
    }

    /// A request goes out. Over HTTP each goes by itself, and an upstream may read a call before the level that was set
    /// ahead of it: what comes after a level waits until it is set.
    fn pass(&mut self, link: LinkId, id: i64, bytes: Vec<u8>, headers: Headers) {
        let level = self.sent.get(&id).is_some_and(|sent| matches!(sent.purpose, Purpose::Level));
        if let Some(entry) = self.links.get_mut(&link)
            && level
            && self.config.upstreams.get(entry.upstream).is_some_and(|up| up.transport == Transport::Http)
            && let Some(session) = entry.session()
        {
            session.setting = Some(id);
        }
        self.transmit(link, Some(id), bytes, headers);
    }

    /// What has waited goes out, up to what has to be waited for again.
    pub(super) fn send_waiting(&mut self, link: LinkId) {
        while let Some(session) = self.links.get_mut(&link).and_then(Link::session)
            && !session.holds()
            && let Some((id, bytes)) = session.backlog.pop_front()
        {
            self.pass(link, id, bytes, Vec::new());
        }
    }
}
