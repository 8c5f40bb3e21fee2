//! Driving the calls of a session: their events become messages on their streams.

use alloc::{string::String, vec::Vec};
use core::task::{Context, Poll};

use super::{
    Session, Stream, Transmit,
    asks::{Wording, write_request},
    narrow,
    outlet::{Item, ItemKind},
    session::{Asked, Call, Peer},
};
use crate::{
    handler::live::LiveEvent,
    jsonrpc::{Json, RequestId, write},
    tape::{OutgoingAsk, held::Held},
    time::Timestamp,
    wire::{AskKind, LogLevel, Version},
};

impl Call {
    /// Whether it runs, or has something to say that nobody has taken yet.
    pub(super) fn is_under_way(&self) -> bool {
        self.run.is_some() || (self.outlet.attached && !self.outlet.is_empty())
    }
}

impl Session {
    /// The client no longer wants a call's answer: nothing more is sent for it, and what it has asked is taken back.
    pub(super) fn cancel(&mut self, id: &RequestId) {
        let Some(call) = self.calls.get_mut(id) else { return };
        let Some(run) = &call.run else { return };
        call.cancelled = true;
        if !run.is_committing() {
            call.run = None;
        }
        self.take_back(id, |_| true);
        let Some(call) = self.calls.get_mut(id) else { return };
        if !self.pipe && !self.over {
            call.outlet.push(Item::new(ItemKind::Last, Vec::new()));
        }
        call.outlet.wake();
        self.common.wake();
        // Nobody reads the end of a stream that is lost.
        if call.run.is_none() && (self.pipe || !call.outlet.attached) {
            self.calls.remove(id);
        }
    }

    /// Cancels requests of ours that are out for a call, or recalls those that were not sent yet.
    fn take_back(&mut self, id: &RequestId, which: impl Fn(&str) -> bool) {
        let mut found = Vec::new();
        self.asked.retain(|ask, asked| {
            let taken = asked.call == *id && which(&asked.key);
            if taken {
                found.push(*ask);
            }
            !taken
        });
        let Some(call) = self.calls.get_mut(id) else { return };
        let outlet = if self.pipe { &mut self.common } else { &mut call.outlet };
        for ask in found {
            let unsent = call.waiting.iter().position(|item| item.kind == ItemKind::Request(ask));
            if let Some(unsent) = unsent {
                call.waiting.remove(unsent);
            } else if !outlet.recall(ask) {
                let mut params = b"{\"requestId\":".to_vec();
                write::integer(&mut params, ask);
                params.push(b'}');
                let mut bytes = Vec::new();
                write::notification(
                    &mut bytes,
                    "notifications/cancelled",
                    core::str::from_utf8(&params).unwrap_or("{}"),
                );
                outlet.push(Item::new(ItemKind::Notification, bytes));
            }
        }
    }

    /// What time alone brings.
    pub(super) fn tick(&mut self, now: Timestamp) {
        let patience = self.config.resume;
        let lost = |call: &Call| call.outlet.is_given_up(now, patience);
        let given_up: Vec<RequestId> = self
            .calls
            .iter()
            .filter(|(_, call)| lost(call) && call.run.is_some())
            .map(|(id, _)| id.clone())
            .collect();
        for id in given_up {
            self.asked.retain(|_, asked| asked.call != id);
            let Some(call) = self.calls.get_mut(&id) else { continue };
            call.waiting.clear();
            if let Some(run) = &mut call.run {
                run.end_asks();
            }
        }
        self.calls.retain(|_, call| {
            let since =
                call.finished.map(|finished| call.outlet.lost.map_or(finished, |lost| lost.max(finished)));
            since.is_none_or(|since| {
                now < since.saturating_add(patience) || (call.outlet.attached && !call.outlet.is_empty())
            })
        });
        if self.common.is_given_up(now, patience) {
            self.common.clear();
        }
    }

    pub(super) fn pop_common(&mut self, stream: &Stream) -> Option<Transmit> {
        if self.pipe {
            let item = self.common.pop_once()?;
            return Some(Transmit { stream: Stream::Pipe, bytes: item.bytes, last: false, event: None });
        }
        let number = self.common.number;
        let (item, event) = self.common.pop()?;
        Some(Transmit {
            stream: stream.clone(),
            bytes: item.bytes,
            last: false,
            event: Some((number, event)),
        })
    }

    pub(super) fn poll_call(
        &mut self,
        id: &RequestId,
        cx: &mut Context<'_>,
        now: Timestamp,
    ) -> Poll<Option<Transmit>> {
        loop {
            let Some(call) = self.calls.get_mut(id) else { return Poll::Ready(None) };
            if let Some((item, event)) = call.outlet.pop() {
                let transmit = Transmit {
                    stream: Stream::Request(id.clone()),
                    bytes: item.bytes,
                    last: item.kind == ItemKind::Last,
                    event: Some((call.outlet.number, event)),
                };
                if transmit.last
                    && call.run.is_none()
                    && (transmit.bytes.is_empty() || !call.outlet.is_resumable())
                {
                    self.calls.remove(id);
                }
                return Poll::Ready(Some(transmit));
            }
            let Some(run) = &mut call.run else {
                // It is kept to be resumed; for whoever reads it now it is over.
                return if call.outlet.attached { Poll::Ready(None) } else { Poll::Pending };
            };
            match run.poll(cx, now) {
                Poll::Pending => {
                    call.outlet.set_waker(cx.waker());
                    return Poll::Pending;
                }
                Poll::Ready(event) => self.take_event(id, event, now),
            }
            // On a pipe everything goes to the pipe; whoever polls looks there after each event.
            if self.pipe && !self.common.is_empty() {
                return Poll::Pending;
            }
        }
    }

    fn take_event(&mut self, id: &RequestId, event: LiveEvent, now: Timestamp) {
        let Some(call) = self.calls.get_mut(id) else { return };
        match event {
            LiveEvent::Notification(bytes) => {
                if !call.cancelled && is_wanted(&bytes, self.level) {
                    self.push(id, Item::new(ItemKind::Notification, bytes));
                }
            }
            LiveEvent::Asks(asks) => self.ask(id, &asks, now),
            LiveEvent::Withdrawn(keys) => self.take_back(id, |key| keys.iter().any(|found| **found == *key)),
            LiveEvent::Finished(outcome) => {
                self.take_back(id, |_| true);
                let version = self.peer.map_or(Version::V2025_11_25, |peer| peer.version);
                let Some(call) = self.calls.get_mut(id) else { return };
                call.run = None;
                call.finished = Some(now);
                self.touched = self.touched.max(Some(now));
                if !call.cancelled {
                    let mut bytes = Vec::new();
                    narrow::write_outcome(&mut bytes, id, (call.method, &call.target), version, outcome);
                    self.push(id, Item::new(ItemKind::Last, bytes));
                }
                let done =
                    self.calls.get(id).is_some_and(|call| self.pipe || self.over || call.outlet.is_empty());
                if done {
                    self.calls.remove(id);
                }
                self.forget();
            }
        }
    }

    /// What is kept only to be sent again is as many calls as may run, the latest.
    fn forget(&mut self) {
        let kept = || self.calls.iter().filter(|(_, call)| call.finished.is_some() && !call.is_under_way());
        if kept().count() > self.config.calls {
            let oldest =
                kept().min_by_key(|(_, call)| (call.finished, call.outlet.number)).map(|(id, _)| id.clone());
            oldest.and_then(|oldest| self.calls.remove(&oldest));
        }
    }

    fn push(&mut self, id: &RequestId, item: Item) {
        if self.pipe {
            self.common.push(item);
        } else if let Some(call) = self.calls.get_mut(id) {
            call.outlet.push(item);
        }
    }

    /// A round's questions, each a request of its own.
    fn ask(&mut self, id: &RequestId, asks: &[OutgoingAsk], now: Timestamp) {
        let Some(Peer { version, capabilities }) = self.peer else { return };
        let patience = self.config.resume;
        for ask in asks {
            let request = self.take_id();
            let elicitation =
                if ask.request.kind() == AskKind::Url { self.draw_hex() } else { String::new() };
            let Some(call) = self.calls.get_mut(id) else { return };
            let unreachable = call.outlet.is_given_up(now, patience);
            if unreachable || call.cancelled {
                if let Some(run) = &mut call.run {
                    run.answer(&ask.key, Held::Ended);
                }
                continue;
            }
            let mut bytes = Vec::new();
            write_request(
                &mut bytes,
                request,
                ask,
                &Wording { version, capabilities, elicitation: &elicitation },
            );
            let asked = Asked { call: id.clone(), key: ask.key.clone(), kind: ask.request.kind() };
            self.asked.insert(request, asked);
            let item = Item::new(ItemKind::Request(request), bytes);
            if self.ready { self.push(id, item) } else { call.waiting.push(item) }
        }
    }

    /// The client is ready: what waited for that goes out.
    pub(super) fn make_ready(&mut self) {
        self.ready = true;
        for call in self.calls.values_mut() {
            let outlet = if self.pipe { &mut self.common } else { &mut call.outlet };
            call.waiting.drain(..).for_each(|item| outlet.push(item));
        }
    }
}

/// Whether the session's level lets a notification through: everything but log messages below it, or any log
/// message if no level was ever set.
fn is_wanted(message: &[u8], level: Option<LogLevel>) -> bool {
    let message = core::str::from_utf8(message).map_or(Json::NULL, Json::trusted);
    if message.get("method").and_then(Json::as_string).as_deref() != Some("notifications/message") {
        return true;
    }
    let of = message.get("params").and_then(|params| params.get("level")).and_then(Json::as_string);
    let of = of.as_deref().and_then(LogLevel::from_name);
    level.is_some_and(|level| of.is_some_and(|of| of >= level))
}
