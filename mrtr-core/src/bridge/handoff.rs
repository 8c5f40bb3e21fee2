//! Between replicas: a retry that reaches another process than the one that holds its call is handed to the owner, and
//! what the owner says comes back. This is the pure part; carrying the bytes is the embedder's.
//!
//! ```text
//! message   version 1 = 0x01 ‖ kind 1 ‖ to 16 ‖ from 16 ‖ call 8 ‖ round 4 ‖ number 8 ‖ sealed
//! ```
//!
//! `to` and `from` are [epochs](super::Bridge::epoch): each process reads the stream named by its own. All that stands
//! before the sealed bytes is authenticated with them ([`BlobKind::Handle`]), so nobody who can write to the store can
//! move a message to another call, or send the reply elsewhere.
//!
//! | kind | from | sealed |
//! |---|---|---|
//! | 1 request | forwarder | verified principal, the host's request |
//! | 2 acknowledgement | owner | nothing |
//! | 3 message | owner | whether it is the last, its class, the message |
//! | 4 cancellation | forwarder | nothing |
//! | 5 sign of life | owner | nothing |
//!
//! The owner acknowledges at once; the forwarder sends again after a second without, and gives up after five: the
//! call is lost, never run again. A request that comes twice is one; a reply that got lost is found again by the retry
//! itself (BT-7).

use alloc::vec::Vec;
use core::time::Duration;

use super::{
    Bridge, HostId, HostKind, HostStream, Output,
    host::{Modern, Open},
    timers::Whom,
};
use crate::{
    error::RpcError,
    http::ReplyClass,
    jsonrpc::RequestId,
    seal::{BlobKind, Principal},
    time::Timestamp,
};

/// Bytes before the sealed ones.
const HEAD: usize = 54;

/// After which a request without acknowledgement is sent again.
const RESEND: Duration = Duration::from_secs(1);

/// How often at most.
const SENDS: u8 = 5;

/// Without a sign of life of the owner for so many of its intervals it counts as gone.
const SILENCE: u32 = 4;

/// Requests of other processes that run here at a time.
const REMOTE: usize = 10_000;

/// Hosts of other processes have ids of their own.
const FIRST_REMOTE: u64 = 1 << 63;

const REQUEST: u8 = 1;
const ACK: u8 = 2;
const MESSAGE: u8 = 3;
const CANCEL: u8 = 4;
const ALIVE: u8 = 5;

/// A request that was handed to its call's owner.
pub(super) struct Handed {
    pub(super) host: HostId,
    pub(super) id: RequestId,
    head: Head,
    /// The request as it goes out, until it is acknowledged.
    unacknowledged: Option<Vec<u8>>,
    sends: u8,
    timer: Option<Timestamp>,
}

/// Who gets what is said to a host of another process.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Head {
    to: [u8; 16],
    from: [u8; 16],
    call: u64,
    round: u32,
    number: u64,
}

impl Head {
    fn bytes(&self, kind: u8) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEAD);
        bytes.extend_from_slice(&[1, kind]);
        bytes.extend_from_slice(&self.to);
        bytes.extend_from_slice(&self.from);
        bytes.extend_from_slice(&self.call.to_be_bytes());
        bytes.extend_from_slice(&self.round.to_be_bytes());
        bytes.extend_from_slice(&self.number.to_be_bytes());
        bytes
    }

    fn read(bytes: &[u8]) -> Option<(u8, Self, &[u8])> {
        let ([1, kind], rest) = bytes.split_first_chunk::<2>().map(|(head, rest)| (*head, rest))? else {
            return None;
        };
        let (to, rest) = rest.split_first_chunk()?;
        let (from, rest) = rest.split_first_chunk()?;
        let (call, rest) = rest.split_first_chunk()?;
        let (round, rest) = rest.split_first_chunk()?;
        let (number, sealed) = rest.split_first_chunk()?;
        let head = Self {
            to: *to,
            from: *from,
            call: u64::from_be_bytes(*call),
            round: u32::from_be_bytes(*round),
            number: u64::from_be_bytes(*number),
        };
        Some((kind, head, sealed))
    }

    const fn back(self) -> Self {
        Self { to: self.from, from: self.to, ..self }
    }
}

impl Bridge {
    /// A message of another process, from the stream that this one's [`epoch`](Self::epoch) names. What is not sealed
    /// for this place is dropped.
    pub fn handle_peer(&mut self, message: &[u8], now: Timestamp) {
        let Some((kind, head, sealed)) = Head::read(message).filter(|(_, head, _)| head.to == self.epoch)
        else {
            return;
        };
        let place = head.bytes(kind);
        let Ok(opened) = self.config.sealer.open_blob(BlobKind::Handle, &place, sealed) else {
            return crate::trace::warn!(kind = %kind, "a message of another process is not authentic");
        };
        match kind {
            REQUEST => self.peer_request(head, &opened, now),
            CANCEL => self.peer_cancel(head, now),
            ACK | ALIVE | MESSAGE => self.peer_reply(kind, head, &opened, now),
            _ => {}
        }
    }

    /// The other process cannot be reached: its stream, or the store, is down. Calls that were handed to it get an
    /// error; what it holds is untouched.
    pub fn fail_peer(&mut self, peer: &[u8; 16]) {
        let gone: Vec<u64> = self
            .handed
            .iter()
            .filter(|(_, handed)| handed.head.to == *peer)
            .map(|(number, _)| *number)
            .collect();
        let error = RpcError::internal("the process that holds this call cannot be reached");
        for number in gone {
            self.end_handed(number, &error);
        }
    }

    /// Hands a retry to the process that holds its call.
    pub(super) fn hand_over(
        &mut self,
        host: HostId,
        m: &Modern<'_>,
        (owner, call, round): ([u8; 16], u64, u32),
        now: Timestamp,
    ) {
        self.next_handed += 1;
        let number = self.next_handed;
        let head = Head { to: owner, from: self.epoch, call, round, number };
        let mut payload = Vec::with_capacity(m.whole.as_str().len() + 64);
        match self.owner(host).principal() {
            Principal::Anonymous => payload.push(0),
            Principal::Authenticated(name) => {
                payload.push(1);
                payload.extend_from_slice(&u32::try_from(name.len()).unwrap_or(u32::MAX).to_be_bytes());
                payload.extend_from_slice(name);
            }
        }
        payload.extend_from_slice(m.whole.as_str().as_bytes());
        let Some(bytes) = self.sealed(REQUEST, head, &payload) else {
            let error = RpcError::internal("the call cannot be handed over");
            return self.respond_error(host, &m.request.id, ReplyClass::Internal, &error);
        };
        self.set_open(host, &m.request.id, Open::Handed(number));
        let mut handed = Handed {
            host,
            id: m.request.id.clone(),
            head,
            unacknowledged: Some(bytes.clone()),
            sends: 1,
            timer: None,
        };
        self.timers.set(Whom::Handed(number), &mut handed.timer, Some(now.saturating_add(RESEND)));
        self.handed.insert(number, handed);
        self.out.push_back(Output::ToPeer { peer: owner, bytes });
    }

    pub(super) fn handed_due(&mut self, number: u64, now: Timestamp) {
        let Some(handed) = self.handed.get_mut(&number) else { return };
        handed.timer = None;
        match &handed.unacknowledged {
            Some(bytes) if handed.sends < SENDS => {
                handed.sends += 1;
                let (peer, bytes) = (handed.head.to, bytes.clone());
                self.timers.set(Whom::Handed(number), &mut handed.timer, Some(now.saturating_add(RESEND)));
                self.out.push_back(Output::ToPeer { peer, bytes });
            }
            Some(_) | None => {
                self.counts.lost += 1;
                let error =
                    RpcError::internal("the process that held this call is gone; it is not run again");
                self.end_handed(number, &error);
            }
        }
    }

    /// The host has cancelled, or is gone.
    pub(super) fn cancel_handed(&mut self, number: u64) {
        let Some(handed) = self.forget_handed(number) else { return };
        if let Some(bytes) = self.sealed(CANCEL, handed.head, &[]) {
            self.out.push_back(Output::ToPeer { peer: handed.head.to, bytes });
        }
    }

    fn end_handed(&mut self, number: u64, error: &RpcError) {
        if let Some(handed) = self.forget_handed(number) {
            self.respond_error(handed.host, &handed.id, ReplyClass::Internal, error);
        }
    }

    fn forget_handed(&mut self, number: u64) -> Option<Handed> {
        let mut handed = self.handed.remove(&number)?;
        self.timers.set(Whom::Handed(number), &mut handed.timer, None);
        Some(handed)
    }

    /// What the owner says.
    fn peer_reply(&mut self, kind: u8, head: Head, opened: &[u8], now: Timestamp) {
        let Some(handed) = self.handed.get_mut(&head.number).filter(|handed| handed.head == head.back())
        else {
            return;
        };
        handed.unacknowledged = None;
        let silence = self.config.waits.alive.saturating_mul(SILENCE);
        self.timers.set(Whom::Handed(head.number), &mut handed.timer, Some(now.saturating_add(silence)));
        let (host, id) = (handed.host, handed.id.clone());
        match (kind, opened.split_first_chunk::<2>()) {
            (MESSAGE, Some(([0, _], message))) => self.tell(host, HostStream::Request(id), message.into()),
            (MESSAGE, Some(([_, class], message))) => {
                let _ = self.forget_handed(head.number);
                self.finish(host, &id, class_from(*class), message.into());
            }
            (ALIVE, _) => self.out.push_back(Output::KeepAlive { host, stream: HostStream::Request(id) }),
            _ => {}
        }
    }

    /// A retry of a call that is held here, from a host of another process.
    fn peer_request(&mut self, head: Head, opened: &[u8], now: Timestamp) {
        let known = self.remote.values().any(|running| *running == head);
        if !known && self.remote.len() >= REMOTE {
            return;
        }
        self.acknowledge(head);
        // It runs already: the acknowledgement was lost.
        if known {
            return;
        }
        let Some((principal, request)) = read_request(opened) else { return };
        self.next_remote += 1;
        let host = HostId(FIRST_REMOTE | self.next_remote);
        self.remote.insert(host, head);
        self.open_host(host, HostKind::Post, principal);
        self.handle_host(host, request, None, now);
    }

    fn peer_cancel(&mut self, head: Head, now: Timestamp) {
        let found = self.remote.iter().find(|(_, running)| **running == head).map(|(host, _)| *host);
        if let Some(host) = found {
            self.remote.remove(&host);
            self.close_host(host, now);
        }
    }

    fn acknowledge(&mut self, head: Head) {
        if let Some(bytes) = self.sealed(ACK, head.back(), &[]) {
            self.out.push_back(Output::ToPeer { peer: head.from, bytes });
        }
    }

    /// An output for a host of another process becomes a message to that process.
    pub(super) fn redirected(&mut self, output: Output) -> Option<Output> {
        let (host, kind, payload, last) = match &output {
            Output::ToHost { host, bytes, last, .. } if self.remote.contains_key(host) => {
                let mut payload = Vec::with_capacity(bytes.len() + 2);
                payload.extend_from_slice(&[u8::from(last.is_some()), last.map_or(0, class_code)]);
                payload.extend_from_slice(bytes);
                (*host, MESSAGE, payload, last.is_some())
            }
            Output::KeepAlive { host, .. } if self.remote.contains_key(host) => {
                (*host, ALIVE, Vec::new(), false)
            }
            Output::ToHost { .. }
            | Output::KeepAlive { .. }
            | Output::OpenUpstream { .. }
            | Output::ToUpstream { .. }
            | Output::CloseStream { .. }
            | Output::ToPeer { .. }
            | Output::CloseUpstream { .. } => return Some(output),
        };
        let head = self.remote.get(&host).copied()?.back();
        if last {
            self.remote.remove(&host);
        }
        let bytes = self.sealed(kind, head, &payload)?;
        Some(Output::ToPeer { peer: head.to, bytes })
    }

    fn sealed(&mut self, kind: u8, head: Head, payload: &[u8]) -> Option<Vec<u8>> {
        let mut bytes = head.bytes(kind);
        let sealed =
            self.config.sealer.seal_blob(BlobKind::Handle, &bytes, payload, self.random.draw()).ok()?;
        bytes.extend_from_slice(&sealed);
        Some(bytes)
    }
}

fn read_request(opened: &[u8]) -> Option<(Principal<'_>, &[u8])> {
    let (&known, rest) = opened.split_first()?;
    if known == 0 {
        return Some((Principal::Anonymous, rest));
    }
    let (length, rest) = rest.split_first_chunk()?;
    let length = usize::try_from(u32::from_be_bytes(*length)).ok()?;
    let (name, request) = rest.split_at_checked(length)?;
    Some((Principal::Authenticated(name), request))
}

const CLASSES: [ReplyClass; 6] = [
    ReplyClass::Internal,
    ReplyClass::Result,
    ReplyClass::HandlerError,
    ReplyClass::MissingCapability,
    ReplyClass::MethodNotFound,
    ReplyClass::InvalidRequest,
];

fn class_code(class: ReplyClass) -> u8 {
    CLASSES.iter().position(|known| *known == class).and_then(|index| u8::try_from(index).ok()).unwrap_or(0)
}

fn class_from(code: u8) -> ReplyClass {
    CLASSES.get(usize::from(code)).copied().unwrap_or(ReplyClass::Internal)
}
