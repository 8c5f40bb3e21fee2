//! Requests that other processes work on.

use alloc::{collections::BTreeMap, vec::Vec};

use super::{
    PATIENCE, RESEND,
    message::{self, Head, Kind},
};
use crate::{
    bridge::{
        Bridge, HostId, HostStream, Output,
        host::{Modern, Open, busy},
        timers::Whom,
    },
    error::RpcError,
    http::ReplyClass,
    jsonrpc::RequestId,
    time::Timestamp,
};

/// Bytes of all requests that other processes work on: they are kept, for they may have to be sent again.
const BYTES: usize = 64 << 20;

/// A request that was handed to its call's owner.
struct Handed {
    host: HostId,
    id: RequestId,
    owner: [u8; 16],
    call: u64,
    round: u32,
    /// Principal and request.
    payload: Vec<u8>,
    acknowledged: bool,
    /// Without a word of the owner until then, it is gone. However often the connection breaks meanwhile.
    until: Timestamp,
    /// Whether the owner still has its time to answer after an outage: once between two words of it.
    spare: bool,
    /// Of the last message to the owner.
    turn: u32,
    /// Of the last message of the owner: what is not newer came before.
    heard: u32,
    timer: Option<Timestamp>,
}

impl Handed {
    fn next(&mut self, from: [u8; 16], number: u64) -> Head {
        self.turn = self.turn.saturating_add(1);
        Head { to: self.owner, from, call: self.call, round: self.round, number, turn: self.turn }
    }
}

/// All of them, by number.
#[derive(Default)]
pub(in crate::bridge) struct Forwarded {
    open: BTreeMap<u64, Handed>,
    last: u64,
    bytes: usize,
    pub(super) unreachable: bool,
}

impl Forwarded {
    pub(in crate::bridge) fn len(&self) -> usize {
        self.open.len()
    }

    pub(in crate::bridge) const fn is_cut_off(&self) -> bool {
        self.unreachable
    }
}

impl Bridge {
    /// Hands a retry to the process that holds its call.
    pub(in crate::bridge) fn hand_over(
        &mut self,
        host: HostId,
        m: &Modern<'_>,
        (owner, call, round): ([u8; 16], u64, u32),
        now: Timestamp,
    ) {
        let id = &m.request.id;
        if self.forwarded.unreachable {
            self.counts.unreachable += 1;
            return self.respond_error(host, id, ReplyClass::Internal, &unreachable());
        }
        let payload = message::request(self.owner(host).principal(), m.whole.as_str());
        if self.forwarded.bytes.saturating_add(payload.len()) > BYTES {
            self.counts.over += 1;
            let error = busy("too much is with other processes", 1_000);
            return self.respond_error(host, id, ReplyClass::Internal, &error);
        }
        self.forwarded.last += 1;
        let number = self.forwarded.last;
        self.set_open(host, id, Open::Handed(number));
        self.forwarded.bytes += payload.len();
        let handed = Handed {
            host,
            id: id.clone(),
            owner,
            call,
            round,
            payload,
            acknowledged: false,
            until: now.saturating_add(PATIENCE),
            spare: false,
            turn: 0,
            heard: 0,
            timer: None,
        };
        self.forwarded.open.insert(number, handed);
        self.counts.handed += 1;
        self.send_request(number, now);
    }

    /// Sends a request (again), and waits for word of its owner.
    fn send_request(&mut self, number: u64, now: Timestamp) {
        let Some(handed) = self.forwarded.open.get_mut(&number) else { return };
        let again =
            if handed.acknowledged { handed.until } else { now.saturating_add(RESEND).min(handed.until) };
        let head = handed.next(self.epoch, number);
        let payload = message::sent_at(now, &handed.payload);
        self.timers.set(Whom::Handed(number), &mut handed.timer, Some(again));
        if !self.post(Kind::Request, head, &payload, RESEND) {
            self.end_handed(number, &RpcError::internal("the call cannot be handed over"));
        }
    }

    pub(in crate::bridge) fn handed_due(&mut self, number: u64, now: Timestamp) {
        let Some(handed) = self.forwarded.open.get_mut(&number) else { return };
        handed.timer = None;
        if now < handed.until {
            self.counts.resent += 1;
            return self.send_request(number, now);
        }
        if self.forwarded.unreachable {
            self.counts.unreachable += 1;
            return self.end_handed(number, &unreachable());
        }
        self.counts.handed_lost += 1;
        crate::trace::warn!(call = %handed.call, round = %handed.round, "the process that holds a call is silent");
        self.end_handed(number, &gone());
    }

    /// The host has cancelled, or is gone.
    pub(in crate::bridge) fn cancel_handed(&mut self, number: u64) {
        let Some(mut handed) = self.forget_handed(number) else { return };
        let (head, keep) = (handed.next(self.epoch, number), self.silence());
        self.post(Kind::Cancel, head, &[], keep);
    }

    /// Nobody knows whether these have arrived: the retry of the retry will find out.
    pub(super) fn fail_unacknowledged(&mut self) {
        let open = self.forwarded.open.iter();
        let these: Vec<u64> =
            open.filter(|(_, handed)| !handed.acknowledged).map(|(number, _)| *number).collect();
        for number in these {
            self.counts.unreachable += 1;
            self.end_handed(number, &unreachable());
        }
    }

    /// Sends what is open once more: an owner that works on it acknowledges, one that has replied replies again.
    pub(super) fn forward_again(&mut self, now: Timestamp) {
        let numbers: Vec<u64> = self.forwarded.open.keys().copied().collect();
        for number in numbers {
            if let Some(handed) = self.forwarded.open.get_mut(&number)
                && core::mem::take(&mut handed.spare)
            {
                handed.until = handed.until.max(now.saturating_add(PATIENCE));
            }
            self.counts.resent += 1;
            self.send_request(number, now);
        }
    }

    /// The end of this process: hosts hear of it; owners find out by themselves, for another process may be asked.
    pub(in crate::bridge) fn end_all_handed(&mut self) {
        let numbers: Vec<u64> = self.forwarded.open.keys().copied().collect();
        for number in numbers {
            self.end_handed(number, &busy("the bridge is shutting down", 1_000));
        }
    }

    fn end_handed(&mut self, number: u64, error: &RpcError) {
        if let Some(handed) = self.forget_handed(number) {
            self.respond_error(handed.host, &handed.id, ReplyClass::Internal, error);
        }
    }

    fn forget_handed(&mut self, number: u64) -> Option<Handed> {
        let mut handed = self.forwarded.open.remove(&number)?;
        self.forwarded.bytes -= handed.payload.len();
        self.timers.set(Whom::Handed(number), &mut handed.timer, None);
        Some(handed)
    }

    /// What the owner says. Whether it was new.
    pub(super) fn peer_reply(&mut self, kind: Kind, head: Head, opened: &[u8], now: Timestamp) -> bool {
        let silence = self.silence();
        let Some(handed) = self.forwarded.open.get_mut(&head.number) else { return false };
        let same = (handed.owner, handed.call, handed.round) == (head.from, head.call, head.round);
        if !same || head.turn <= handed.heard {
            return false;
        }
        handed.heard = head.turn;
        if !core::mem::replace(&mut handed.acknowledged, true) {
            self.counts.acknowledged += 1;
        }
        (handed.until, handed.spare) = (now.saturating_add(silence), true);
        self.timers.set(Whom::Handed(head.number), &mut handed.timer, Some(handed.until));
        let (host, id) = (handed.host, handed.id.clone());
        match (kind, message::read_message(opened)) {
            (Kind::Message, Some((bytes, None))) => self.tell(host, HostStream::Request(id), bytes.into()),
            (Kind::Message, Some((bytes, Some(class)))) => {
                let _ = self.forget_handed(head.number);
                self.finish(host, &id, class, bytes.into());
            }
            (Kind::Alive, _) => {
                let answer = handed.next(self.epoch, head.number);
                self.out.push_back(Output::KeepAlive { host, stream: HostStream::Request(id) });
                self.post(Kind::Waiting, answer, &[], RESEND);
            }
            (Kind::Full, _) => {
                let error = busy("the process that holds this call has too much of others", 1_000);
                self.end_handed(head.number, &error);
            }
            _ => {}
        }
        true
    }
}

/// What became of the call nobody can tell, and so it is not made again (design: between replicas).
fn gone() -> RpcError {
    RpcError::internal("the process that held this call is gone; it is not run again")
}

/// A call of another process that this one has no way to; what became of it is not known here either.
pub(in crate::bridge) fn elsewhere() -> RpcError {
    RpcError::internal(
        "this call is held by another process of the bridge, or was by one that has ended, and cannot be reached from \
         here; it is not run again",
    )
}

fn unreachable() -> RpcError {
    busy("the process that holds this call cannot be reached now", 1_000)
}
