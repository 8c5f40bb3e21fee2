//! Hosts over HTTP: a modern POST is a host of its own, a legacy session one host with a stream for each of its calls.

use http::{Method, request::Parts};
use mrtr_core::{
    Timestamp,
    bridge::{HostId, HostKind, HostStream, Missed, Posted, Resumed, SessionFault},
    http::ReplyClass,
    jsonrpc::{Message, RequestId, admit},
    wire::Version,
};

use super::{
    driver::{Driver, In},
    sink::{Item, Sink},
};
use crate::{
    clock,
    room::Taken,
    server::{Identity, rules::Head},
};

/// An HTTP request that has passed the gate.
pub(super) struct Visit {
    pub(super) parts: Parts,
    pub(super) identity: Identity,
    /// Its body, if it is a POST.
    pub(super) body: Vec<u8>,
    /// Where its response goes.
    pub(super) sink: Sink,
    /// What its response is called.
    pub(super) ticket: u64,
    /// The room that its body takes.
    pub(super) room: Taken,
}

/// A response that a session writes to.
pub(super) struct Stream {
    pub(super) sink: Sink,
    ticket: u64,
    /// It begins a session, of this principal.
    begins: Option<Identity>,
}

/// A POST to a session that has no stream of its own, while it is handled.
pub(super) struct Current {
    host: HostId,
    sink: Sink,
    /// It cannot be read, or its id is taken: what is said of it is said to it alone.
    refused: bool,
    answered: bool,
}

/// Messages that wait for a host's GET.
const UNHEARD: usize = 64;

impl Driver {
    pub(super) fn visit(&mut self, visit: Visit, now: Timestamp) {
        if visit.parts.method == Method::POST {
            return self.post(visit, now);
        }
        let found = self.sessions.find(&self.bridge, &Head(&visit.parts), visit.identity.principal(), now);
        let host = match found {
            Ok(host) => host,
            Err(fault) => return refuse(&visit.sink, fault),
        };
        if visit.parts.method == Method::DELETE {
            self.sessions.forget(host);
            self.end_session(host, now);
            self.flush();
            return finish(&visit.sink, Vec::new(), ReplyClass::Accepted);
        }
        match self.sessions.resume(host, &Head(&visit.parts), now) {
            Ok(resumed) => self.listen(host, visit.sink, visit.ticket, resumed, now),
            Err(fault) => refuse(&visit.sink, fault),
        }
    }

    /// A GET: the stream that belongs to no call, or one that the host has lost.
    fn listen(&mut self, host: HostId, sink: Sink, ticket: u64, resumed: Option<Resumed>, now: Timestamp) {
        let again = resumed.is_some();
        let (name, missed, over) = match resumed {
            Some(Resumed { stream, missed, over, .. }) => (stream, missed, over),
            None => (HostStream::Common, Vec::new(), false),
        };
        if !again {
            self.prime(host, &name, &sink, now);
        }
        sink.put(Item::Opened);
        let ends = over && missed.last().is_none_or(|missed| missed.last.is_none());
        for Missed { bytes, last, id, .. } in missed {
            // It is new: there is room for all that is kept.
            let _ = sink.event(bytes, last, Some(id));
        }
        if over {
            if ends {
                finish(&sink, Vec::new(), ReplyClass::Accepted);
            }
            return;
        }
        if name == HostStream::Common {
            for bytes in self.unheard.remove(&host).unwrap_or_default() {
                let id = self.sessions.say(host, &name, &bytes, None, now);
                let _ = sink.event(bytes, None, id);
            }
        }
        self.tickets.insert(ticket, (host, Some(name.clone())));
        if let Some(before) = self.streams.insert((host, name), Stream { sink, ticket, begins: None }) {
            self.tickets.remove(&before.ticket);
            if again {
                // What was not written there was said here.
                before.sink.cut();
            }
        }
    }

    /// A stream begins that can be taken up again, by hosts of 2025-11-25 even before anything was said on it.
    fn prime(&mut self, host: HostId, name: &HostStream, sink: &Sink, now: Timestamp) {
        let primes = self.bridge.host_version(host) == Some(Version::V2025_11_25);
        if let Some(id) = self.sessions.begin_stream(host, name, now).filter(|_| primes) {
            sink.put(Item::Prime(id));
        }
    }

    fn post(&mut self, visit: Visit, now: Timestamp) {
        let principal = visit.identity.principal();
        let posted = self.sessions.post(&self.bridge, &Head(&visit.parts), &visit.body, principal, now);
        match posted {
            Posted::Modern => self.modern(visit, now),
            Posted::Begin => {
                visit.sink.put(Item::Quiet);
                let host = self.numbers.host();
                self.bridge.open_host(host, HostKind::Session, principal);
                self.in_session(host, visit, true, now);
            }
            Posted::Session(host) => self.in_session(host, visit, false, now),
            Posted::Refused(fault) => refuse(&visit.sink, fault),
            _ => finish(&visit.sink, Vec::new(), ReplyClass::InvalidRequest),
        }
    }

    fn modern(&mut self, visit: Visit, now: Timestamp) {
        let host = self.numbers.host();
        let waits = matches!(admit(&visit.body, &self.bridge.config().limits), Ok(Message::Request(_)));
        self.bridge.open_host(host, HostKind::Post, visit.identity.principal());
        self.tickets.insert(visit.ticket, (host, None));
        self.posts.insert(host, (visit.sink, visit.ticket));
        self.bridge.handle_host(host, &visit.body, Some(&Head(&visit.parts)), now);
        self.flush();
        if !waits && let Some((sink, ticket)) = self.posts.remove(&host) {
            // Nothing was wrong with it, and nothing more will be said of it.
            self.tickets.remove(&ticket);
            finish(&sink, Vec::new(), ReplyClass::Accepted);
            self.bridge.close_host(host, now);
            self.flush();
        }
    }

    fn in_session(&mut self, host: HostId, visit: Visit, begins: bool, now: Timestamp) {
        let Visit { identity, body, sink, ticket, room: _room, .. } = visit;
        let (id, admitted) = match admit(&body, &self.bridge.config().limits) {
            Ok(Message::Request(request)) => (Some(request.id), true),
            Ok(Message::Notification(_) | Message::Response(_)) => (None, true),
            Err(_) => (None, false),
        };
        let key = id.map(|id: RequestId| (host, HostStream::Request(id)));
        match key {
            Some(key) if !self.streams.contains_key(&key) => {
                self.tickets.insert(ticket, (host, Some(key.1.clone())));
                self.prime(host, &key.1, &sink, now);
                self.streams.insert(key, Stream { sink, ticket, begins: begins.then_some(identity) });
                self.bridge.handle_host(host, &body, None, now);
                self.flush();
            }
            key => {
                let refused = !admitted || key.is_some();
                self.current = Some(Current { host, sink, refused, answered: false });
                self.bridge.handle_host(host, &body, None, now);
                self.flush();
                if let Some(Current { sink, answered: false, .. }) = self.current.take() {
                    finish(&sink, Vec::new(), ReplyClass::Accepted);
                }
            }
        }
    }

    pub(super) fn tell_http(
        &mut self,
        host: HostId,
        stream: HostStream,
        bytes: Vec<u8>,
        last: Option<ReplyClass>,
    ) {
        if let Some(current) = &mut self.current
            && let Some(class) = last
            && current.host == host
            && (current.refused || stream == HostStream::Common)
        {
            current.answered = true;
            return finish(&current.sink, bytes, class);
        }
        if let Some((sink, ticket)) = self.posts.get(&host) {
            let (full, ticket) = (sink.message(bytes, last).is_err(), *ticket);
            if last.is_some() {
                self.posts.remove(&host);
                self.tickets.remove(&ticket);
            } else if full {
                tracing::warn!(host = host.0, "a host that does not read is given up");
                self.posts.remove(&host);
                self.pending.push_back(In::Left { ticket });
            }
            return;
        }
        let key = (host, stream);
        let common = key.1 == HostStream::Common;
        let now = self.clock.now();
        let Some(found) = self.streams.get_mut(&key) else {
            if common && last.is_none() {
                let unheard = self.unheard.entry(host).or_default();
                if unheard.len() == UNHEARD {
                    unheard.pop_front();
                }
                unheard.push_back(bytes);
            } else if self.sessions.say(host, &key.1, &bytes, last, now).is_some() {
                tracing::debug!(host = host.0, "a message is kept for a stream that was lost");
            } else {
                tracing::debug!(host = host.0, "a message for a stream that is gone");
            }
            return;
        };
        let event = self.sessions.say(host, &key.1, &bytes, last, now);
        if let Some(class) = last
            && let Some(identity) = found.begins.take()
        {
            let entropy = clock::entropy().ok().filter(|_| class == ReplyClass::Result);
            match entropy {
                Some(entropy) => {
                    let id = self.sessions.name(host, identity.principal(), &entropy, now);
                    found.sink.put(Item::Session(id));
                    tracing::info!(host = host.0, "a session begins");
                }
                None => self.pending.push_back(In::Gone { host }),
            }
        }
        let full = found.sink.event(bytes, last, event).is_err();
        if (last.is_some() || full)
            && let Some(stream) = self.streams.remove(&key)
        {
            self.tickets.remove(&stream.ticket);
        }
    }

    /// Nobody reads a response any more. A legacy session loses only this stream by that, unless it has not
    /// begun.
    pub(super) fn left(&mut self, ticket: u64, now: Timestamp) {
        match self.tickets.remove(&ticket) {
            Some((host, None)) => {
                self.posts.remove(&host);
                self.bridge.close_host(host, now);
            }
            Some((host, Some(stream))) => {
                if let Some(Stream { begins: Some(_), .. }) = self.streams.remove(&(host, stream)) {
                    self.bridge.close_host(host, now);
                }
            }
            None => {}
        }
    }

    /// The end of a session whose name is forgotten already.
    pub(super) fn end_session(&mut self, host: HostId, now: Timestamp) {
        tracing::info!(host = host.0, "a session ends");
        self.bridge.close_host(host, now);
        self.unheard.remove(&host);
        let tickets = &mut self.tickets;
        self.streams.retain(|(of, _), stream| {
            if *of == host {
                tickets.remove(&stream.ticket);
            }
            *of != host
        });
    }
}

fn finish(sink: &Sink, bytes: Vec<u8>, class: ReplyClass) {
    // It is new: there is room.
    let _ = sink.message(bytes, Some(class));
}

fn refuse(sink: &Sink, fault: SessionFault) {
    let SessionFault { bytes, class, .. } = fault;
    finish(sink, bytes, class);
}
