//! Event streams as the WHATWG HTML standard defines them, in §9.2 "Server-sent events".

use alloc::vec::Vec;
use core::time::Duration;

use super::clear;

/// An event had more bytes than the decoder's limit. It was skipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an event is longer than {limit} bytes (Limits::message_bytes)")]
#[non_exhaustive]
pub struct EventTooLarge {
    /// The bound, in bytes of the event's data.
    pub limit: usize,
}

/// One event. [`Debug`](core::fmt::Debug) shows lengths, never the data.
#[derive(Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Event<'a> {
    /// The `data` lines, joined by LF. Nobody has checked that this is UTF-8 or JSON.
    pub data: &'a [u8],
    /// The `event` field; empty if there was none.
    pub kind: &'a [u8],
    /// The last `id` seen so far in the stream; empty if there was none. Only 2025-11-25 streams use it
    ///
    pub id: &'a [u8],
}

impl Event<'_> {
    /// Whether the event carries a message: its type is `message`, said or unsaid. Others are to be ignored.
    #[must_use]
    pub fn is_message(&self) -> bool {
        matches!(self.kind, b"" | b"message")
    }
}

impl core::fmt::Debug for Event<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Event({} bytes)", self.data.len())
    }
}

/// Decodes an event stream.
///
/// Lines end with LF, CR or CR LF; a byte order mark at the very beginning is dropped; comments and unknown
/// fields are ignored; an event ends at an empty line, and one that the stream ends before is never given.
/// An event that is too large gives one error, and decoding goes on after its end.
///
/// After each [`push`](Self::push), call [`next`](Self::next) until it gives `None`: then at most the data of
/// one event, one line and two short fields are held, each bounded.
#[derive(Clone)]
pub struct EventStreamDecoder {
    /// In this order: dead bytes, the data of the event in hand, dead bytes, the line in hand. Data lines are
    /// joined in place, so that a message is copied once, by `push`.
    buffer: Vec<u8>,
    /// Where the event's data stands, if it has had a `data` line.
    data: Option<(usize, usize)>,
    /// Where the line in hand begins.
    line: usize,
    /// Up to where no line end was found.
    scanned: usize,
    kind: Vec<u8>,
    /// The id of the event in hand; it holds for later events too.
    id: Vec<u8>,
    /// The id as of the last empty line.
    last_id: Vec<u8>,
    retry: Option<Duration>,
    limit: usize,
    mode: Mode,
    /// No byte has been looked at yet: a byte order mark may come.
    fresh: bool,
    /// The last line ended with CR: an LF now belongs to it.
    after_cr: bool,
    /// The event that was given last is still in the buffer.
    given: bool,
}

/// What happens to the line in hand.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Read,
    /// It is a comment of any length: nothing of it is kept.
    SkipLine,
    /// The event is too large: nothing is kept up to the next empty line.
    SkipEvent {
        /// Bytes of the line in hand have been dropped, so it is not empty.
        midline: bool,
    },
}

/// Bound on `event` and `id`, which are names and not content.
const FIELD_BYTES: usize = 1024;

/// What a line may have beside the value of its field: the longest name we know, the colon, a space.
const LINE_OVERHEAD: usize = 8;

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

impl EventStreamDecoder {
    /// A decoder for events of at most `limit` bytes of data; give it `Limits::message_bytes`.
    #[must_use]
    pub const fn new(limit: usize) -> Self {
        Self {
            buffer: Vec::new(),
            data: None,
            line: 0,
            scanned: 0,
            kind: Vec::new(),
            id: Vec::new(),
            last_id: Vec::new(),
            retry: None,
            limit,
            mode: Mode::Read,
            fresh: true,
            after_cr: false,
            given: false,
        }
    }

    /// Takes bytes as they came.
    pub fn push(&mut self, bytes: &[u8]) {
        self.forget_given();
        self.compact();
        self.buffer.extend_from_slice(bytes);
    }

    /// The next event, or `None` if more bytes are needed.
    // Not an `Iterator`: the event borrows the decoder.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Option<Result<Event<'_>, EventTooLarge>> {
        self.forget_given();
        self.skip_mark()?;
        loop {
            if self.after_cr {
                let Some(byte) = self.buffer.get(self.line).copied() else {
                    return self.wait().map(Err);
                };
                self.after_cr = false;
                if byte == b'\n' {
                    self.line += 1;
                    self.scanned = self.scanned.max(self.line);
                }
            }
            let unseen = self.buffer.get(self.scanned..).unwrap_or_default();
            let Some(found) = unseen.iter().position(|byte| matches!(byte, b'\n' | b'\r')) else {
                return self.wait().map(Err);
            };
            let (from, to) = (self.line, self.scanned + found);
            self.after_cr = self.buffer.get(to) == Some(&b'\r');
            self.line = to + 1;
            self.scanned = to + 1;
            match self.mode {
                Mode::SkipLine => self.mode = Mode::Read,
                Mode::SkipEvent { midline } => {
                    let empty = !midline && from == to;
                    self.mode = if empty { Mode::Read } else { Mode::SkipEvent { midline: false } };
                }
                Mode::Read if from == to => {
                    self.last_id.clone_from(&self.id);
                    if let Some((start, end)) = self.data {
                        self.given = true;
                        return Some(Ok(Event {
                            data: self.buffer.get(start..end).unwrap_or_default(),
                            kind: &self.kind,
                            id: &self.last_id,
                        }));
                    }
                    self.kind.clear();
                }
                Mode::Read => {
                    if let Err(error) = self.field(from, to) {
                        self.drop_event(false);
                        return Some(Err(error));
                    }
                }
            }
        }
    }

    /// How long the server wants a client to wait before it connects again (`retry`). Only 2025-11-25 streams
    /// use it.
    #[must_use]
    pub const fn retry(&self) -> Option<Duration> {
        self.retry
    }

    /// The last `id` seen so far in the stream, also without an event; empty if there was none.
    #[must_use]
    pub fn last_event_id(&self) -> &[u8] {
        &self.last_id
    }

    /// Bytes held at the moment.
    #[must_use]
    pub const fn buffered(&self) -> usize {
        self.buffer.len() + self.kind.len() + self.id.len() + self.last_id.len()
    }

    /// Drops a byte order mark; `None` while it is open whether there is one.
    fn skip_mark(&mut self) -> Option<()> {
        if self.fresh {
            let begin = self.buffer.get(self.line..).unwrap_or_default();
            if begin.len() < BYTE_ORDER_MARK.len() && BYTE_ORDER_MARK.starts_with(begin) {
                return None;
            }
            if begin.starts_with(BYTE_ORDER_MARK) {
                self.line += BYTE_ORDER_MARK.len();
                self.scanned = self.line;
            }
            self.fresh = false;
        }
        Some(())
    }

    /// Reads a line that is not empty.
    fn field(&mut self, from: usize, to: usize) -> Result<(), EventTooLarge> {
        let too_large = EventTooLarge { limit: self.limit };
        let line = self.buffer.get(from..to).unwrap_or_default();
        if line.first() == Some(&b':') {
            return Ok(());
        }
        if line.len() > self.limit.saturating_add(LINE_OVERHEAD) {
            return Err(too_large);
        }
        let (name, value) = match line.iter().position(|byte| *byte == b':') {
            None => (line, &[][..]),
            Some(colon) => {
                let value = line.get(colon + 1..).unwrap_or_default();
                (line.get(..colon).unwrap_or_default(), value.strip_prefix(b" ").unwrap_or(value))
            }
        };
        match name {
            b"data" => {
                let begin = to - value.len();
                let held = self.data.map_or(0, |(start, end)| end - start + 1);
                if held + value.len() > self.limit {
                    return Err(too_large);
                }
                match &mut self.data {
                    None => self.data = Some((begin, to)),
                    Some((_, end)) => {
                        // At least the end of the former line and the name lie between the two: room for LF.
                        if let Some(gap) = self.buffer.get_mut(*end) {
                            *gap = b'\n';
                        }
                        self.buffer.copy_within(begin..to, *end + 1);
                        *end += 1 + to - begin;
                    }
                }
            }
            b"event" | b"id" if value.len() > FIELD_BYTES => return Err(too_large),
            b"event" => {
                self.kind.clear();
                self.kind.extend_from_slice(value);
            }
            b"id" if !value.contains(&0) => {
                self.id.clear();
                self.id.extend_from_slice(value);
            }
            b"retry" if !value.is_empty() && value.iter().all(u8::is_ascii_digit) => {
                let millis = core::str::from_utf8(value).ok().and_then(|digits| digits.parse().ok());
                self.retry = millis.map(Duration::from_millis).or(self.retry);
            }
            _ => {}
        }
        Ok(())
    }

    /// No line end in sight: remembers how far was looked, and gives up on what is too long already.
    fn wait(&mut self) -> Option<EventTooLarge> {
        self.scanned = self.buffer.len();
        let held = self.scanned - self.line;
        match self.mode {
            Mode::Read if held > self.limit.saturating_add(LINE_OVERHEAD) => {
                if self.buffer.get(self.line) != Some(&b':') {
                    self.drop_event(true);
                    self.drop_line();
                    return Some(EventTooLarge { limit: self.limit });
                }
                self.mode = Mode::SkipLine;
                self.drop_line();
            }
            Mode::Read if held == 0 && self.data.is_none() => {
                clear(&mut self.buffer);
                (self.line, self.scanned) = (0, 0);
            }
            Mode::Read => {}
            Mode::SkipLine => self.drop_line(),
            Mode::SkipEvent { midline } => {
                self.mode = Mode::SkipEvent { midline: midline || held > 0 };
                self.drop_line();
            }
        }
        self.compact();
        None
    }

    /// Drops what there is of the line in hand.
    fn drop_line(&mut self) {
        if self.data.is_none() {
            clear(&mut self.buffer);
            self.line = 0;
        }
        self.buffer.truncate(self.line);
        self.scanned = self.line;
    }

    fn drop_event(&mut self, midline: bool) {
        self.mode = Mode::SkipEvent { midline };
        self.data = None;
        self.kind.clear();
        self.id.clone_from(&self.last_id);
    }

    fn forget_given(&mut self) {
        if core::mem::take(&mut self.given) {
            self.data = None;
            self.kind.clear();
        }
    }

    /// Removes the dead bytes before and behind the data.
    fn compact(&mut self) {
        let (start, end) = self.data.unwrap_or((0, 0));
        // Behind first: the places before it stay right.
        self.buffer.drain(end..self.line);
        self.buffer.drain(..start);
        if self.data.is_some() {
            self.data = Some((0, end - start));
        }
        self.scanned -= self.line - (end - start);
        self.line = end - start;
    }
}

impl core::fmt::Debug for EventStreamDecoder {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("EventStreamDecoder")
            .field("buffered", &self.buffered())
            .field("limit", &self.limit)
            .finish()
    }
}
