//! Requests of other processes that run here.

use alloc::collections::{BTreeMap, VecDeque};
use core::time::Duration;

use super::{
    RESEND,
    message::{self, Head, Kind},
};
use crate::{
    bridge::{Bridge, HostId, HostKind, HostStream, Output, timers::Whom},
    time::Timestamp,
};

/// Requests of other processes that run here at a time, and as many that are remembered when they are over.
const REMOTE: usize = 10_000;

/// Hosts of other processes have ids of their own.
const FIRST: u64 = 1 << 63;

/// A request that was sent longer ago is not worked on: its forwarder has given up.
const AGE: Duration = Duration::from_secs(65);

/// How far the clock of another process may be ahead.
const SKEW: Duration = Duration::from_secs(60);

/// Names a hand-off.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Name {
    forwarder: [u8; 16],
    call: u64,
    round: u32,
    number: u64,
}

impl Name {
    const fn of(head: &Head) -> Self {
        Self { forwarder: head.from, call: head.call, round: head.round, number: head.number }
    }
}

/// How far the two sides have counted.
#[derive(Clone, Copy, Default)]
struct Turns {
    /// Of the last message to the forwarder.
    said: u32,
    /// Of the last message of the forwarder: what is not newer came before.
    heard: u32,
}

struct Remote {
    name: Name,
    turns: Turns,
    heard: Timestamp,
    timer: Option<Timestamp>,
}

/// A hand-off that is over, for as long as a copy of it could still be taken for new.
struct Ended {
    at: Timestamp,
    turns: Turns,
    cancelled: bool,
}

/// All of them.
#[derive(Default)]
pub(in crate::bridge) struct Remotes {
    hosts: BTreeMap<HostId, Remote>,
    names: BTreeMap<Name, HostId>,
    ended: BTreeMap<Name, Ended>,
    order: VecDeque<(Timestamp, Name)>,
    last: u64,
}

impl Remotes {
    pub(in crate::bridge) fn len(&self) -> usize {
        self.hosts.len()
    }

    /// Whether an output is for a host of another process.
    pub(in crate::bridge) const fn concerns(output: &Output) -> bool {
        match output {
            Output::ToHost { host, .. } | Output::KeepAlive { host, .. } => host.0 >= FIRST,
            Output::OpenUpstream { .. }
            | Output::ToUpstream { .. }
            | Output::CloseStream { .. }
            | Output::ToPeer { .. }
            | Output::CloseUpstream { .. } => false,
        }
    }

    /// Whether a host is one of another process.
    pub(in crate::bridge) fn contains(&self, host: HostId) -> bool {
        self.hosts.contains_key(&host)
    }

    /// A sign of life of a forwarder. Whether it was new.
    pub(super) fn heard_of(&mut self, head: Head, now: Timestamp) -> bool {
        let host = self.names.get(&Name::of(&head));
        match host.and_then(|host| self.hosts.get_mut(host)) {
            Some(remote) if head.turn > remote.turns.heard => {
                (remote.turns.heard, remote.heard) = (head.turn, now);
                true
            }
            _ => false,
        }
    }

    /// Nobody could be heard until now.
    pub(super) fn hear_all(&mut self, now: Timestamp) {
        for remote in self.hosts.values_mut() {
            remote.heard = now;
        }
    }

    fn remember(&mut self, name: Name, turns: Turns, cancelled: bool, now: Timestamp) {
        self.forget_old(now);
        if self.order.len() >= REMOTE
            && let Some((at, oldest)) = self.order.pop_front()
        {
            self.forget(at, &oldest);
        }
        self.order.push_back((now, name));
        self.ended.insert(name, Ended { at: now, turns, cancelled });
    }

    fn forget_old(&mut self, now: Timestamp) {
        let life = AGE + SKEW;
        while let Some((at, name)) = self.order.front().copied()
            && at.saturating_add(life) <= now
        {
            self.order.pop_front();
            self.forget(at, &name);
        }
    }

    /// Unless it ended once more since.
    fn forget(&mut self, at: Timestamp, name: &Name) {
        if self.ended.get(name).is_some_and(|ended| ended.at == at) {
            self.ended.remove(name);
        }
    }
}

impl Bridge {
    /// A retry of a call that is held here, from a host of another process. Whether it was new.
    pub(super) fn peer_request(&mut self, head: Head, opened: &[u8], now: Timestamp) -> bool {
        let Some((sent, principal, request)) = message::read_request(opened) else { return false };
        if sent.saturating_add(AGE) < now || sent > now.saturating_add(SKEW) {
            return false;
        }
        let name = Name::of(&head);
        // It runs already: the acknowledgement was lost.
        if let Some(host) = self.remotes.names.get(&name).copied() {
            let new = self.remotes.heard_of(head, now);
            if new {
                self.say(host, Kind::Ack, &[], RESEND);
            }
            return new;
        }
        self.remotes.forget_old(now);
        let before = self.remotes.ended.get(&name);
        if before.is_some_and(|ended| ended.cancelled || head.turn <= ended.turns.heard) {
            return false;
        }
        // It is over and the reply was lost: the retry finds it again.
        let mut turns = before.map_or_else(Turns::default, |ended| ended.turns);
        let first = before.is_none();
        turns.heard = head.turn;
        if self.remotes.hosts.len() >= REMOTE {
            turns.said = turns.said.saturating_add(1);
            self.counts.over += 1;
            self.remotes.remember(name, turns, false, now);
            return self.post(Kind::Full, back(&name, self.epoch, turns.said), &[], RESEND);
        }
        self.counts.taken += u64::from(first);
        self.remotes.last += 1;
        let host = HostId(FIRST | self.remotes.last);
        let mut remote = Remote { name, turns, heard: now, timer: None };
        let alive = now.saturating_add(self.config.waits.alive);
        self.timers.set(Whom::Remote(host), &mut remote.timer, Some(alive));
        self.remotes.names.insert(name, host);
        self.remotes.hosts.insert(host, remote);
        self.say(host, Kind::Ack, &[], RESEND);
        self.open_host(host, HostKind::Post, principal);
        self.handle_host(host, request, None, now);
        true
    }

    /// The host has left the forwarder. Whether that was new.
    pub(super) fn peer_cancel(&mut self, head: Head, now: Timestamp) -> bool {
        let name = Name::of(&head);
        let turns = |said| Turns { said, heard: head.turn };
        match self.remotes.names.get(&name).copied() {
            Some(host) => {
                if !self.remotes.heard_of(head, now) {
                    return false;
                }
                self.remote_left(host, now);
                true
            }
            // It was overtaken by nobody, but its request may have got lost, or be over.
            None => match self.remotes.ended.get(&name) {
                Some(ended) if head.turn <= ended.turns.heard => false,
                before => {
                    let said = before.map_or(0, |ended| ended.turns.said);
                    self.remotes.remember(name, turns(said), true, now);
                    true
                }
            },
        }
    }

    fn remote_left(&mut self, host: HostId, now: Timestamp) {
        let Some(remote) = self.forget_remote(host) else { return };
        self.remotes.remember(remote.name, remote.turns, true, now);
        self.close_host(host, now);
    }

    fn forget_remote(&mut self, host: HostId) -> Option<Remote> {
        let mut remote = self.remotes.hosts.remove(&host)?;
        self.remotes.names.remove(&remote.name);
        self.timers.set(Whom::Remote(host), &mut remote.timer, None);
        Some(remote)
    }

    /// A sign of life for a forwarder is due; one that has given none for long is gone, and its host with it.
    pub(in crate::bridge) fn remote_due(&mut self, host: HostId, now: Timestamp) {
        let silence = self.silence();
        let Some(remote) = self.remotes.hosts.get_mut(&host) else { return };
        remote.timer = None;
        let reachable = !self.forwarded.unreachable;
        if reachable && remote.heard.saturating_add(silence) <= now {
            crate::trace::warn!(host = host.0, "a process that has handed a retry over is silent");
            return self.remote_left(host, now);
        }
        let next = now.saturating_add(self.config.waits.alive);
        self.timers.set(Whom::Remote(host), &mut remote.timer, Some(next));
        if reachable {
            // In line with what is said to the host, so that turns and order agree.
            self.out.push_back(Output::KeepAlive { host, stream: HostStream::Common });
        }
    }

    /// Says something to the forwarder of a host.
    fn say(&mut self, host: HostId, kind: Kind, payload: &[u8], keep: Duration) {
        let Some(remote) = self.remotes.hosts.get_mut(&host) else { return };
        remote.turns.said = remote.turns.said.saturating_add(1);
        let head = back(&remote.name, self.epoch, remote.turns.said);
        self.post(kind, head, payload, keep);
    }

    /// Before all that was put in line since.
    fn say_now(&mut self, host: HostId, kind: Kind, payload: &[u8], keep: Duration) {
        let later = core::mem::take(&mut self.out);
        self.say(host, kind, payload, keep);
        self.out.extend(later);
    }

    /// An output for a host of another process becomes a message to that process; that it waits is told by itself. That
    /// of one that has left while it was in line is for nobody.
    pub(in crate::bridge) fn redirect(&mut self, output: Output) {
        match output {
            Output::ToHost { host, bytes, last, .. } => {
                let payload = message::message(&bytes, last);
                let keep = self.silence();
                self.say_now(host, Kind::Message, &payload, keep);
                if last.is_some()
                    && let Some(remote) = self.forget_remote(host)
                {
                    // Copies of what it has said were sent before it was heard the last time.
                    self.remotes.remember(remote.name, remote.turns, false, remote.heard);
                }
            }
            Output::KeepAlive { host, stream: HostStream::Common } => {
                self.say_now(host, Kind::Alive, &[], RESEND);
            }
            Output::KeepAlive { .. }
            | Output::OpenUpstream { .. }
            | Output::ToUpstream { .. }
            | Output::CloseStream { .. }
            | Output::ToPeer { .. }
            | Output::CloseUpstream { .. } => {}
        }
    }
}

const fn back(name: &Name, owner: [u8; 16], turn: u32) -> Head {
    Head { to: name.forwarder, from: owner, call: name.call, round: name.round, number: name.number, turn }
}
