//! What was sent on a legacy host's streams, kept for a while: a host that has lost one takes it up again by GET with
//! `Last-Event-ID` and gets what came after that event.
//!
//! A session of this crate's own server keeps what waits for its client stream by stream, and decides when each message
//! goes out ([`legacy::Session`](crate::legacy)). A bridge hands messages on as they come and does not know which of them
//! were read, so it has a memory beside the streams instead: one for the session, in the order of time, so that whatever
//! is oldest goes first when it is full.

use alloc::{
    collections::{BTreeMap, VecDeque},
    format,
    string::String,
    vec::Vec,
};

use core::time::Duration;

use super::super::HostStream;
use crate::{http::ReplyClass, time::Timestamp};

/// Names an event of a session: its stream, and its place on it from 1; 0 is the place before all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct EventId {
    stream: u64,
    event: u64,
}

impl EventId {
    fn parse(text: &str) -> Option<Self> {
        let (stream, event) = text.split_once('-')?;
        let number = |text: &str| {
            let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            if digits { text.parse().ok() } else { None }
        };
        Some(Self { stream: number(stream)?, event: number(event)? })
    }

    /// Appends the `id` line of an event; put it before the event's other lines.
    pub fn write(self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.line().as_bytes());
    }

    /// Appends an event of this id and without data: a host that has seen it can take the stream up again, although
    /// nothing was said on it yet.
    pub fn write_prime(self, out: &mut Vec<u8>) {
        self.write(out);
        out.extend_from_slice(b"data:\n\n");
    }

    fn line(self) -> String {
        format!("id: {}-{}\n", self.stream, self.event)
    }
}

impl core::fmt::Display for EventId {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{}-{}", self.stream, self.event)
    }
}

/// A stream that is taken up again.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Resumed {
    /// Which one it is.
    pub stream: HostStream,
    /// What the host has not got, in order.
    pub missed: Vec<Missed>,
    /// Nothing will follow that.
    pub over: bool,
}

/// A message that is sent again.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Missed {
    /// Its event.
    pub id: EventId,
    /// The message.
    pub bytes: Vec<u8>,
    /// The last one on its stream, and what it is.
    pub last: Option<ReplyClass>,
}

impl core::fmt::Debug for Missed {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Missed({}, {} bytes, {:?})", self.id, self.bytes.len(), self.last)
    }
}

impl core::fmt::Debug for Resumed {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Resumed")
            .field("stream", &self.stream)
            .field("missed", &self.missed)
            .finish_non_exhaustive()
    }
}

/// The streams of one session.
#[derive(Default)]
pub(super) struct Streams {
    next: u64,
    /// Those that are not over, by name.
    open: BTreeMap<HostStream, u64>,
    /// Those that something may still be asked of, by number.
    known: BTreeMap<u64, Known>,
    /// In the order of time.
    kept: VecDeque<Kept>,
    /// Streams whose last message is out, since when, in that order.
    ended: VecDeque<(Timestamp, u64)>,
    pub(super) bytes: usize,
}

struct Known {
    name: HostStream,
    next: u64,
    over: bool,
}

/// Streams that are over and that something may still be asked of: a session's last ones.
const ENDED: usize = 256;

struct Kept {
    at: Timestamp,
    message: Missed,
}

impl Streams {
    /// A stream begins; one of this name before it is over.
    pub(super) fn begin(&mut self, name: &HostStream, now: Timestamp) -> EventId {
        let number = self.next;
        self.next += 1;
        if let Some(replaced) = self.open.insert(name.clone(), number)
            && let Some(before) = self.known.get_mut(&replaced)
        {
            before.over = true;
            self.ended.push_back((now, replaced));
        }
        self.known.insert(number, Known { name: name.clone(), next: 1, over: false });
        EventId { stream: number, event: 0 }
    }

    /// The next message of a stream gets its id, and is kept if there is room for so many bytes.
    pub(super) fn say(
        &mut self,
        name: &HostStream,
        bytes: &[u8],
        last: Option<ReplyClass>,
        room: usize,
        now: Timestamp,
    ) -> Option<EventId> {
        let stream = *self.open.get(name)?;
        let known = self.known.get_mut(&stream)?;
        let id = EventId { stream, event: known.next };
        known.next += 1;
        if last.is_some() {
            known.over = true;
            self.ended.push_back((now, stream));
            self.open.remove(name);
        }
        while self.bytes.saturating_add(bytes.len()) > room {
            if self.drop_oldest().is_none() {
                break;
            }
        }
        if bytes.len() <= room {
            self.bytes += bytes.len();
            self.kept.push_back(Kept { at: now, message: Missed { id, bytes: bytes.into(), last } });
        }
        Some(id)
    }

    /// What came after the event with this id. `None`: there is no such event, or its stream is forgotten.
    pub(super) fn after(&self, last_event: &str) -> Option<Resumed> {
        let seen = EventId::parse(last_event)?;
        let known = self.known.get(&seen.stream).filter(|known| seen.event < known.next)?;
        let missed = self.kept.iter().map(|kept| &kept.message);
        let missed =
            missed.filter(|message| message.id.stream == seen.stream && message.id.event > seen.event);
        Some(Resumed { stream: known.name.clone(), missed: missed.cloned().collect(), over: known.over })
    }

    /// Forgets what was said longer ago than `kept`, and streams that are over for so long.
    pub(super) fn forget_old(&mut self, now: Timestamp, kept: Duration) {
        let old = |at: Timestamp| now.saturating_since(at) > kept;
        while self.kept.front().is_some_and(|kept| old(kept.at)) {
            let _ = self.drop_oldest();
        }
        while self.ended.front().is_some_and(|(at, _)| old(*at)) || self.ended.len() > ENDED {
            if let Some((_, stream)) = self.ended.pop_front() {
                self.known.remove(&stream);
            }
        }
    }

    /// Forgets what has waited longest.
    fn drop_oldest(&mut self) -> Option<()> {
        let kept = self.kept.pop_front()?;
        self.bytes -= kept.message.bytes.len();
        Some(())
    }
}
