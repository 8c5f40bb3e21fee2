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
        let (mut begun, mut holds) = (true, false);
        if let Some(session) = self.links.get_mut(&link).and_then(Link::session) {
            session.in_flight.insert(id);
            session.rests = None;
            (begun, holds) = (session.ready, session.holds());
        }
        if !endless {
            let until = self.due(&sent.purpose, begun, now);
            self.timers.set(Whom::Sent(id), &mut sent.timer, Some(until));
        }
        self.sent.insert(id, sent);
        match self.links.get_mut(&link).and_then(Link::session) {
            Some(session) if holds => session.backlog.push_back((id, bytes)),
            Some(_) | None => self.pass(link, id, bytes, headers, now),
        }
    }

    /// Until when there is to be a response. What is said in a session that has not `begun` is not held up by it.
    pub(super) fn due(&self, purpose: &Purpose, begun: bool, now: Timestamp) -> Timestamp {
        let within = match purpose {
            Purpose::Initialize | Purpose::Discover => self.config.waits.handshake,
            Purpose::Level if begun => level::PATIENCE,
            Purpose::Level
            | Purpose::Relay(_)
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
    fn pass(&mut self, link: LinkId, id: i64, bytes: Vec<u8>, headers: Headers, now: Timestamp) {
        let until = now.saturating_add(level::PATIENCE);
        let mut level = false;
        if let Some(sent) = self.sent.get_mut(&id).filter(|sent| matches!(sent.purpose, Purpose::Level)) {
            level = true;
            let due = sent.timer.map_or(until, |due| due.min(until));
            self.timers.set(Whom::Sent(id), &mut sent.timer, Some(due));
        }
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
    pub(super) fn send_waiting(&mut self, link: LinkId, now: Timestamp) {
        while let Some(session) = self.links.get_mut(&link).and_then(Link::session)
            && !session.holds()
            && let Some((id, bytes)) = session.backlog.pop_front()
        {
            // One that was answered before it was asked is over.
            if self.sent.contains_key(&id) {
                self.pass(link, id, bytes, Vec::new(), now);
            }
        }
    }
}
