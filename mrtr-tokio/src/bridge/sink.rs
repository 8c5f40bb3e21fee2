//! A queue to a peer. Whoever fills it never waits; it is bounded in bytes, and a peer that lets it overflow is given
//! up.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering::Relaxed},
};

use mrtr_core::{bridge::EventId, http::ReplyClass};
use tokio::sync::mpsc;

use crate::room::{Full, Room, Taken};

/// What is to be written.
pub(super) enum Item {
    Message(Message),
    /// A sign of life.
    Alive,
    /// HTTP: the response waits for the name of its session, so nothing of it may be written before.
    Quiet,
    /// HTTP: that name.
    Session(String),
    /// HTTP: the response is a stream from now on.
    Opened,
    /// HTTP: what a stream that opens without a message begins with.
    Prime(EventId),
}

pub(super) struct Message {
    /// One whole message on one line, or nothing.
    pub(super) bytes: Vec<u8>,
    /// The last one, and what it is.
    pub(super) last: Option<ReplyClass>,
    /// HTTP: the event that carries it.
    pub(super) event: Option<EventId>,
    _room: Taken,
}

/// The end that is filled.
#[derive(Clone)]
pub(super) struct Sink {
    sender: mpsc::UnboundedSender<Item>,
    room: Room,
    cut: Arc<AtomicBool>,
}

/// The end that is written from.
pub(super) struct Items {
    receiver: mpsc::UnboundedReceiver<Item>,
    cut: Arc<AtomicBool>,
}

impl Items {
    /// The next one; `None` once nothing comes any more.
    pub(super) async fn recv(&mut self) -> Option<Item> {
        let item = self.receiver.recv().await?;
        if self.is_cut() { None } else { Some(item) }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.receiver.is_empty()
    }

    /// Whether what waits is sent to somebody else instead.
    pub(super) fn is_cut(&self) -> bool {
        self.cut.load(Relaxed)
    }
}

impl Sink {
    pub(super) fn new(bound: usize) -> (Self, Items) {
        let (sender, receiver) = mpsc::unbounded_channel();
        let cut = Arc::<AtomicBool>::default();
        (Self { sender, room: Room::new(bound), cut: Arc::clone(&cut) }, Items { receiver, cut })
    }

    /// A message. An error says that the peer takes too little.
    pub(super) fn message(&self, bytes: Vec<u8>, last: Option<ReplyClass>) -> Result<(), Full> {
        self.event(bytes, last, None)
    }

    /// A message that is an event of this id, if it is one.
    pub(super) fn event(
        &self,
        bytes: Vec<u8>,
        last: Option<ReplyClass>,
        event: Option<EventId>,
    ) -> Result<(), Full> {
        let mut room = self.room.take();
        room.grow(bytes.len())?;
        self.put(Item::Message(Message { bytes, last, event, _room: room }));
        Ok(())
    }

    /// What is not written yet never is: the peer has taken the stream up elsewhere, and gets it there.
    pub(super) fn cut(&self) {
        self.cut.store(true, Relaxed);
    }

    /// Anything else.
    pub(super) fn put(&self, item: Item) {
        // An error says that nobody reads any more; the reader says so by itself.
        let _ = self.sender.send(item);
    }
}
