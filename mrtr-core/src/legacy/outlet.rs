//! One stream to the client: what waits to be sent, and what was sent and may have to be sent again.

use alloc::{collections::VecDeque, vec::Vec};
use core::{task::Waker, time::Duration};

use crate::time::Timestamp;

/// Bytes kept of what was sent on a stream, and notifications kept while nobody reads it.
const KEPT_BYTES: usize = 64 << 10;
const KEPT_NOTIFICATIONS: usize = 64;

/// One message that waits.
#[derive(Clone)]
pub(crate) struct Item {
    pub(crate) bytes: Vec<u8>,
    pub(crate) kind: ItemKind,
    /// Its number on the stream, once it was handed out.
    event: Option<u64>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum ItemKind {
    Notification,
    /// A request of ours, by its id.
    Request(i64),
    /// The stream ends with it; it may be empty.
    Last,
}

impl Item {
    pub(crate) const fn new(kind: ItemKind, bytes: Vec<u8>) -> Self {
        Self { bytes, kind, event: None }
    }
}

pub(crate) struct Outlet {
    /// Names the stream in event ids.
    pub(crate) number: u64,
    queue: VecDeque<Item>,
    sent: VecDeque<Item>,
    next_event: u64,
    /// Somebody reads it.
    pub(crate) attached: bool,
    /// Since when nobody reads it.
    pub(crate) lost: Option<Timestamp>,
    waker: Option<Waker>,
}

impl Outlet {
    pub(crate) const fn new(number: u64, attached: bool) -> Self {
        Self {
            number,
            queue: VecDeque::new(),
            sent: VecDeque::new(),
            next_event: 0,
            attached,
            lost: None,
            waker: None,
        }
    }

    pub(crate) fn push(&mut self, item: Item) {
        self.queue.push_back(item);
        let notifications = || self.queue.iter().filter(|item| item.kind == ItemKind::Notification);
        if !self.attached && notifications().count() > KEPT_NOTIFICATIONS {
            let oldest = self.queue.iter().position(|item| item.kind == ItemKind::Notification);
            oldest.and_then(|oldest| self.queue.remove(oldest));
        }
        self.wake();
    }

    /// The next message for whoever reads the stream, with its number.
    pub(crate) fn pop(&mut self) -> Option<(Item, u64)> {
        if !self.attached {
            return None;
        }
        let mut item = self.queue.pop_front()?;
        let event = item.event.unwrap_or(self.next_event);
        self.next_event = self.next_event.max(event + 1);
        item.event = Some(event);
        if item.bytes.len() > KEPT_BYTES {
            self.sent.clear();
            return Some((item, event));
        }
        self.sent.push_back(item.clone());
        while self.sent.iter().map(|item| item.bytes.len()).sum::<usize>() > KEPT_BYTES {
            self.sent.pop_front();
        }
        Some((item, event))
    }

    /// The same for a stream that is never resumed.
    pub(crate) fn pop_once(&mut self) -> Option<Item> {
        self.queue.pop_front()
    }

    /// Takes back a request that was not handed out yet; whether it was still there.
    pub(crate) fn recall(&mut self, id: i64) -> bool {
        let kind = ItemKind::Request(id);
        let found = self.queue.iter().position(|item| item.kind == kind && item.event.is_none());
        found.and_then(|found| self.queue.remove(found)).is_some()
    }

    /// Whether this very message waits to be sent.
    pub(crate) fn holds(&self, bytes: &[u8]) -> bool {
        self.queue.iter().any(|item| item.bytes == bytes)
    }

    /// Whether the message with this number waits to be sent again.
    pub(crate) fn resends(&self, event: u64) -> bool {
        self.queue.iter().any(|item| item.event == Some(event))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Whether anything that came before the end was sent: only then does the client know an event to resume from.
    pub(crate) fn is_resumable(&self) -> bool {
        self.next_event > 1 && !self.sent.is_empty()
    }

    pub(crate) fn lose(&mut self, now: Timestamp) {
        if self.attached {
            self.attached = false;
            self.lost = Some(now);
        }
    }

    pub(crate) fn is_given_up(&self, now: Timestamp, patience: Duration) -> bool {
        self.lost.is_some_and(|lost| now >= lost.saturating_add(patience))
    }

    /// Somebody reads it again, and has everything up to the event `seen`.
    pub(crate) fn resume(&mut self, seen: u64) {
        while let Some(item) = self.sent.pop_back() {
            if item.event.is_none_or(|event| event <= seen) {
                self.sent.push_back(item);
                break;
            }
            self.queue.push_front(item);
        }
        self.attach();
    }

    pub(crate) fn attach(&mut self) {
        self.attached = true;
        self.lost = None;
        self.wake();
    }

    /// Nothing is kept any more.
    pub(crate) fn clear(&mut self) {
        self.queue.clear();
        self.sent.clear();
        self.lost = None;
    }

    pub(crate) fn set_waker(&mut self, waker: &Waker) {
        if self.waker.as_ref().is_none_or(|known| !known.will_wake(waker)) {
            self.waker = Some(waker.clone());
        }
    }

    pub(crate) fn wake(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}
