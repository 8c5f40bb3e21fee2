//! A queue to a peer. Whoever fills it never waits; it is bounded in bytes, and a peer that lets it overflow is given
//! up.

use mrtr_core::http::ReplyClass;
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
    /// HTTP: the stream that belongs to no call is open.
    Opened,
}

pub(super) struct Message {
    /// One whole message on one line, or nothing.
    pub(super) bytes: Vec<u8>,
    /// The last one, and what it is.
    pub(super) last: Option<ReplyClass>,
    _room: Taken,
}

/// The end that is filled.
#[derive(Clone)]
pub(super) struct Sink {
    sender: mpsc::UnboundedSender<Item>,
    room: Room,
}

/// The end that is written from.
pub(super) type Items = mpsc::UnboundedReceiver<Item>;

impl Sink {
    pub(super) fn new(bound: usize) -> (Self, Items) {
        let (sender, items) = mpsc::unbounded_channel();
        (Self { sender, room: Room::new(bound) }, items)
    }

    /// A message. An error says that the peer takes too little.
    pub(super) fn message(&self, bytes: Vec<u8>, last: Option<ReplyClass>) -> Result<(), Full> {
        let mut room = self.room.take();
        room.grow(bytes.len())?;
        self.put(Item::Message(Message { bytes, last, _room: room }));
        Ok(())
    }

    /// Anything else.
    pub(super) fn put(&self, item: Item) {
        // An error says that nobody reads any more; the reader says so by itself.
        let _ = self.sender.send(item);
    }
}
