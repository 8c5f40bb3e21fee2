//! Sessions with legacy upstreams: who may use which (R-253, G-45, G-46, BT-8, design: the bridge).
//!
//! A session that was promised something runs one asking call at a time, so that a question belongs to exactly one
//! host. One that was promised nothing cannot be asked and runs any number.

use alloc::{boxed::Box, vec::Vec};

use super::{
    Bridge, HostId, LinkId, Output, Owner, Transport,
    host::{Open, busy},
    link::{Link, LinkKind, Purpose, Session, gone},
    relay::Relay,
    timers::Whom,
};
use crate::{
    error::RpcError,
    jsonrpc::{RequestId, write},
    time::Timestamp,
    translate::promise,
    wire::{ClientCapabilities, Version},
};

/// What a request needs of a session.
#[derive(Clone)]
pub(super) struct Want {
    pub(super) upstream: usize,
    pub(super) owner: Owner,
    /// What its host can answer.
    pub(super) host: ClientCapabilities,
    /// It may be asked.
    pub(super) asking: bool,
}

/// A request that waits for a session.
pub(super) struct Queued {
    want: Want,
    what: What,
    until: Timestamp,
}

pub(super) enum What {
    Parked(u64),
    Plain { id: i64, bytes: Vec<u8>, relay: Box<Relay> },
}

impl Bridge {
    pub(super) fn sessions_in_all(&self) -> usize {
        self.upstreams.iter().map(|state| state.sessions).sum()
    }

    pub(super) fn transport(&self, upstream: usize) -> Transport {
        self.config.upstreams.get(upstream).map_or(Transport::Pipe, |up| up.transport)
    }

    /// Sessions with an upstream that are shared.
    fn shared(&self, upstream: usize) -> usize {
        self.upstreams.get(upstream).map_or(0, super::UpstreamState::shared)
    }

    fn room(&self, upstream: usize) -> bool {
        let here = self.shared(upstream);
        match self.transport(upstream) {
            Transport::Http => here < self.config.pool.http_sessions,
            Transport::Pipe => {
                here < self.config.pool.processes && self.processes() < self.config.pool.processes_in_all
            }
        }
    }

    fn processes(&self) -> usize {
        let pipes = self.config.upstreams.iter().zip(&self.upstreams);
        pipes.filter(|(up, _)| up.transport == Transport::Pipe).map(|(_, state)| state.shared()).sum()
    }

    /// Sessions that the calls of one principal may have alone at a time: half, for each of them may be parked.
    fn share(&self, upstream: usize) -> usize {
        let all = match self.transport(upstream) {
            Transport::Http => self.config.pool.http_sessions,
            Transport::Pipe => self.config.pool.processes,
        };
        all.div_ceil(2)
    }

    /// What would be promised.
    fn promised(&self, want: &Want) -> ClientCapabilities {
        let known = self.upstreams.get(want.upstream).and_then(|state| state.version);
        promise(want.host, known.unwrap_or(Version::V2025_11_25)).0
    }

    /// Whether its upstream is told that it may ask something.
    pub(super) fn may_be_asked(&self, want: &Want) -> bool {
        want.asking && self.promised(want) != ClientCapabilities::default()
    }

    /// A session for a request, an existing or a new one. `None`: there is none now.
    pub(super) fn acquire(&mut self, want: &Want, now: Timestamp) -> Option<LinkId> {
        let promised = self.promised(want);
        let alone = self.may_be_asked(want);
        let state = self.upstreams.get(want.upstream)?;
        if alone && state.alone.get(&want.owner).copied().unwrap_or(0) >= self.share(want.upstream) {
            return None;
        }
        let per_principal = self.config.pool.per_principal;
        let limit = self.config.pool.in_flight;
        let fits = |link: &Link, busy: bool| {
            let LinkKind::Legacy(session) = &link.kind else { return false };
            let same = !per_principal || session.owner == want.owner;
            let promise = !want.asking || session.promised == promised;
            link.upstream == want.upstream
                && same
                && promise
                && session.host.is_none()
                && session.draining.is_none()
                && (busy || session.call.is_none())
                && session.in_flight.len() < limit
        };
        let idle = state.idle.iter().copied();
        let mut found = idle.into_iter().find(|id| self.links.get(id).is_some_and(|link| fits(link, false)));
        if found.is_none() && !alone {
            // What cannot be asked shares.
            let shared = self.links.iter().filter(|(_, link)| fits(link, false));
            found = shared.map(|(id, _)| *id).next();
        }
        if found.is_none() && (self.room(want.upstream) || self.make_room(want.upstream, now)) {
            found = Some(self.open_session(want, None, now));
        }
        if found.is_none() && !want.asking {
            found = self.links.iter().find(|(_, link)| fits(link, true)).map(|(id, _)| *id);
        }
        let found = found?;
        if let Some(state) = self.upstreams.get_mut(want.upstream) {
            state.idle.remove(&found);
            if alone {
                *state.alone.entry(want.owner.clone()).or_default() += 1;
            }
        }
        if let Some(link) = self.links.get_mut(&found) {
            self.timers.set(Whom::Link(found), &mut link.timer, None);
        }
        Some(found)
    }

    /// Closes a session that has nothing to do, so that another can be opened.
    fn make_room(&mut self, upstream: usize, now: Timestamp) -> bool {
        let quiet = |id: &LinkId| {
            let link = self.links.get(id).map(|link| &link.kind);
            matches!(link, Some(LinkKind::Legacy(session)) if session.listeners == 0)
        };
        let idle = |state: &super::UpstreamState| state.idle.iter().copied().find(quiet);
        let mut victim = self.upstreams.get(upstream).and_then(idle);
        let here = self.shared(upstream);
        if victim.is_none()
            && self.transport(upstream) == Transport::Pipe
            && here < self.config.pool.processes
        {
            // The bound of all is met: any process will do.
            let pipes = self.config.upstreams.iter().zip(&self.upstreams);
            let mut pipes = pipes.filter(|(up, _)| up.transport == Transport::Pipe);
            victim = pipes.find_map(|(_, state)| idle(state));
        }
        let Some(victim) = victim else { return false };
        self.close_link(victim, &gone(), now);
        true
    }

    /// Begins a session: `initialize` goes out at once, what is sent on it waits for the response.
    pub(super) fn open_session(
        &mut self,
        want: &Want,
        dedicated: Option<(HostId, Version, &str)>,
        now: Timestamp,
    ) -> LinkId {
        let known = self.upstreams.get(want.upstream).and_then(|state| state.version);
        let version =
            dedicated.map_or_else(|| known.unwrap_or(Version::V2025_11_25), |(_, version, _)| version);
        let (promised, json) = promise(want.host, version);
        let session = Session {
            owner: want.owner.clone(),
            host: dedicated.map(|(host, _, _)| host),
            promised,
            wanted: want.host,
            version,
            ready: false,
            backlog: Default::default(),
            in_flight: Default::default(),
            call: None,
            draining: None,
            logging: false,
            listeners: 0,
            rests: None,
            level: None,
            setting: None,
        };
        let link = self.fresh_link(want.upstream, LinkKind::Legacy(Box::new(session)));
        if let Some(state) = self.upstreams.get_mut(want.upstream) {
            state.sessions += 1;
            state.own += usize::from(dedicated.is_some());
        }
        self.initialize(link, version, dedicated.map_or(&*json, |(_, _, declared)| declared), now);
        link
    }

    pub(super) fn initialize(&mut self, link: LinkId, version: Version, promise: &str, now: Timestamp) {
        let id = self.fresh_id();
        let mut bytes = b"{\"jsonrpc\":\"2.0\",\"id\":".to_vec();
        write::integer(&mut bytes, id);
        bytes.extend_from_slice(b",\"method\":\"initialize\",\"params\":{\"protocolVersion\":");
        write::string(&mut bytes, version.name());
        bytes.extend_from_slice(b",\"capabilities\":");
        write::one_line(&mut bytes, promise);
        bytes.extend_from_slice(b",\"clientInfo\":");
        self.config.info.write(&mut bytes);
        bytes.extend_from_slice(b"}}");
        let mut sent = super::Sent { link, purpose: Purpose::Initialize, timer: None };
        let until = self.due(&sent.purpose, true, now);
        self.timers.set(Whom::Sent(id), &mut sent.timer, Some(until));
        self.sent.insert(id, sent);
        if let Some(session) = self.links.get_mut(&link).and_then(Link::session) {
            session.in_flight.insert(id);
        }
        self.transmit(link, Some(id), bytes, Vec::new());
    }

    /// A session may have become free.
    pub(super) fn settle(&mut self, id: LinkId, now: Timestamp) {
        let Some(link) = self.links.get_mut(&id) else { return };
        let upstream = link.upstream;
        let Some(session) = link.session() else { return };
        if session.host.is_some() {
            session.rests = session.in_flight.is_empty().then_some(now);
            return;
        }
        if session.call.is_some() || session.draining.is_some() {
            return;
        }
        if session.in_flight.is_empty() {
            // One that somebody listens to is kept.
            let until = (session.listeners == 0).then(|| now.saturating_add(self.config.waits.idle));
            self.timers.set(Whom::Link(id), &mut link.timer, until);
            if let Some(state) = self.upstreams.get_mut(upstream) {
                state.idle.insert(id);
            }
        }
        self.serve_queue(now);
    }

    /// A call gives its session back. If it was cancelled there, the session takes nothing else: it has a moment to end
    /// the call and is closed then. What it still asks must not meet the next call.
    pub(super) fn give_back(&mut self, id: LinkId, owner: &Owner, cancelled: Option<i64>, now: Timestamp) {
        let Some(link) = self.links.get_mut(&id) else { return };
        let upstream = link.upstream;
        let Some(session) = link.session() else { return };
        if session.call.take().is_none() {
            return;
        }
        if cancelled.is_some() {
            session.draining = cancelled;
            let until = now.saturating_add(self.config.waits.drain);
            self.timers.set(Whom::Link(id), &mut link.timer, Some(until));
        }
        self.free_share(upstream, owner);
        self.settle(id, now);
    }

    /// A call that will be made again gives its session back. If it was cancelled, there is nothing to wait for: the session
    /// is closed at once, unless it is a host's own or somebody else's request is on it.
    pub(super) fn leave(&mut self, id: LinkId, owner: &Owner, cancelled: Option<i64>, now: Timestamp) {
        let Some(link) = self.links.get_mut(&id) else { return };
        let upstream = link.upstream;
        let Some(session) = link.session() else { return };
        let alone = session.call.is_some() && session.in_flight.is_empty() && session.listeners == 0;
        if cancelled.is_none() || !alone {
            self.give_back(id, owner, cancelled, now);
            return self.settle(id, now);
        }
        session.call = None;
        self.free_share(upstream, owner);
        self.close_link(id, &gone(), now);
        self.serve_queue(now);
    }

    /// A call that has a session alone has failed here and may still run there: as if it was cancelled, the session takes
    /// nothing else.
    pub(super) fn doubt(&mut self, id: LinkId, call: i64, now: Timestamp) {
        let Some(link) = self.links.get_mut(&id) else { return };
        let Some(session) = link.session() else { return };
        if session.call.is_some() && session.draining.is_none() {
            session.draining = Some(call);
            let until = now.saturating_add(self.config.waits.drain);
            self.timers.set(Whom::Link(id), &mut link.timer, Some(until));
        }
    }

    pub(super) fn free_share(&mut self, upstream: usize, owner: &Owner) {
        if let Some(state) = self.upstreams.get_mut(upstream)
            && let Some(count) = state.alone.get_mut(owner)
        {
            *count -= 1;
            if *count == 0 {
                state.alone.remove(owner);
            }
        }
    }

    pub(super) fn link_due(&mut self, id: LinkId, now: Timestamp) {
        let Some(link) = self.links.get_mut(&id) else { return };
        link.timer = None;
        self.close_link(id, &gone(), now);
        self.serve_queue(now);
    }

    /// Queues a request that found no session.
    ///
    /// # Errors
    ///
    /// Too many wait already.
    pub(super) fn enqueue(&mut self, want: Want, what: What, now: Timestamp) -> Result<(), RpcError> {
        if self.queue.len() >= self.config.pool.waiters {
            self.counts.over += 1;
            return Err(no_session(self.config.waits.session));
        }
        let until = now.saturating_add(self.config.waits.session);
        self.queue.push_back(Queued { want, what, until });
        self.timers.set(Whom::Queue, &mut self.queue_timer, self.queue.front().map(|first| first.until));
        Ok(())
    }

    /// Gives sessions to those who wait, in their order; one that cannot be served holds up nobody else.
    pub(super) fn serve_queue(&mut self, now: Timestamp) {
        if self.queue.is_empty() {
            return;
        }
        for queued in core::mem::take(&mut self.queue) {
            match self.acquire(&queued.want, now) {
                None => self.queue.push_back(queued),
                Some(link) => match queued.what {
                    What::Parked(call) => self.run_parked(call, link, now),
                    What::Plain { id, bytes, relay } => {
                        self.set_open(relay.host, &relay.id, Open::Sent(id));
                        self.send(link, id, bytes, Vec::new(), Purpose::Relay(relay), now);
                    }
                },
            }
        }
        self.timers.set(Whom::Queue, &mut self.queue_timer, self.queue.front().map(|first| first.until));
    }

    pub(super) fn queue_due(&mut self, now: Timestamp) {
        self.queue_timer = None;
        let error = no_session(self.config.waits.session);
        while self.queue.front().is_some_and(|first| first.until <= now) {
            let Some(first) = self.queue.pop_front() else { break };
            self.counts.over += 1;
            match first.what {
                What::Parked(call) => self.parked_failed(call, &error, now),
                What::Plain { relay, .. } => self.relay_failed(&relay, &error),
            }
        }
        self.timers.set(Whom::Queue, &mut self.queue_timer, self.queue.front().map(|first| first.until));
    }

    /// A queued request is no longer wanted.
    pub(super) fn unqueue(&mut self, host: HostId, id: &RequestId) {
        self.queue.retain(|queued| match &queued.what {
            What::Plain { relay, .. } => !(relay.host == host && relay.id == *id),
            What::Parked(_) => true,
        });
        self.timers.set(Whom::Queue, &mut self.queue_timer, self.queue.front().map(|first| first.until));
    }

    pub(super) fn unqueue_parked(&mut self, call: u64) {
        self.queue.retain(|queued| !matches!(queued.what, What::Parked(other) if other == call));
        self.timers.set(Whom::Queue, &mut self.queue_timer, self.queue.front().map(|first| first.until));
    }

    /// Ends the sessions of a legacy host that is gone.
    pub(super) fn close_dedicated(&mut self, host: HostId) {
        let of = |link: &Link| matches!(&link.kind, LinkKind::Legacy(session) if session.host == Some(host));
        let links: Vec<LinkId> = self.links.iter().filter(|(_, link)| of(link)).map(|(id, _)| *id).collect();
        for id in links {
            let Some(mut link) = self.links.remove(&id) else { continue };
            self.timers.set(Whom::Link(id), &mut link.timer, None);
            if let Some(state) = self.upstreams.get_mut(link.upstream) {
                state.sessions -= 1;
                state.own -= 1;
            }
            if let LinkKind::Legacy(session) = link.kind {
                for sent in session.in_flight {
                    let _ = self.forget_sent(sent);
                }
            }
            self.withdraw_pair_inbox(id);
            self.out.push_back(Output::CloseUpstream { link: id });
        }
    }

    /// Ends everything: every session is closed. For the end of the process.
    pub fn close(&mut self, now: Timestamp) {
        let links: Vec<LinkId> = self.links.keys().copied().collect();
        for link in links {
            self.close_link(link, &gone(), now);
        }
        self.end_all_handed();
    }
}

pub(super) fn no_session(waited: core::time::Duration) -> RpcError {
    let after = u64::try_from(waited.as_millis()).unwrap_or(u64::MAX);
    busy("no session with the upstream is free (Pool)", after)
}
