//! Newline-delimited JSON, as stdio carries it.

use alloc::vec::Vec;

use super::clear;
use crate::{
    jsonrpc::{Json, Refusal},
    limits::Limits,
};

/// A line had more bytes than the decoder's limit. It was skipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a line is longer than {limit} bytes (Limits::message_bytes)")]
#[non_exhaustive]
pub struct LineTooLong {
    /// The bound, in bytes without the line's end.
    pub limit: usize,
}

/// Bytes kept of how a line begins that is too long.
const BEGINNING: usize = 1 << 10;

/// Cuts a stream of bytes into lines.
///
/// A line ends with LF or CR LF; the end is not part of it. Lines of nothing but white space are skipped. A
/// line that is too long gives one error, and decoding goes on after its end.
///
/// After each [`push`](Self::push), call [`next`](Self::next) until it gives `None`: then at most the limit and
/// one byte are held, whatever the peer sends.
#[derive(Clone)]
pub struct LineDecoder {
    buffer: Vec<u8>,
    /// Where the line in hand begins.
    start: usize,
    /// Up to where no line end was found: long lines are not searched again with every push.
    scanned: usize,
    limit: usize,
    /// The rest of a line that was too long is still to come.
    skipping: bool,
    /// How the last line that was too long begins.
    overlong: Vec<u8>,
}

impl LineDecoder {
    /// A decoder for lines of at most `limit` bytes; give it `Limits::message_bytes`.
    #[must_use]
    pub const fn new(limit: usize) -> Self {
        Self { buffer: Vec::new(), start: 0, scanned: 0, limit, skipping: false, overlong: Vec::new() }
    }

    /// Takes bytes as they came.
    pub fn push(&mut self, bytes: &[u8]) {
        self.compact();
        self.buffer.extend_from_slice(bytes);
    }

    /// The next whole line, or `None` if more bytes are needed.
    // Not an `Iterator`: the line borrows the decoder.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Option<Result<&[u8], LineTooLong>> {
        loop {
            let unseen = self.buffer.get(self.scanned..).unwrap_or_default();
            let Some(found) = unseen.iter().position(|byte| *byte == b'\n') else {
                return self.wait().map(Err);
            };
            let (from, to) = (self.start, self.scanned + found);
            self.start = to + 1;
            self.scanned = to + 1;
            if core::mem::take(&mut self.skipping) {
                continue;
            }
            let to = if to > from && self.buffer.get(to - 1) == Some(&b'\r') { to - 1 } else { to };
            if to - from > self.limit {
                self.keep_beginning(from, to);
                return Some(Err(LineTooLong { limit: self.limit }));
            }
            if !is_blank(self.buffer.get(from..to).unwrap_or_default()) {
                return Some(Ok(self.buffer.get(from..to).unwrap_or_default()));
            }
        }
    }

    /// What stands after the last line end when the input is over: a peer that ends without a newline has
    /// still said it. Call it when [`next`](Self::next) has given `None`.
    ///
    /// # Errors
    ///
    /// [`LineTooLong`], as from [`next`](Self::next).
    pub fn finish(&mut self) -> Option<Result<&[u8], LineTooLong>> {
        self.push(b"\n");
        self.next()
    }

    /// The same for a peer that may have died in the middle of a line: what is no JSON to its end is lost with it, so that
    /// whoever waits hears that the peer has ended, and not that it said something odd.
    ///
    /// # Errors
    ///
    /// [`LineTooLong`], as from [`next`](Self::next).
    pub fn finish_whole(&mut self) -> Option<Result<&[u8], LineTooLong>> {
        self.finish().filter(|last| !last.is_ok_and(is_cut))
    }

    /// How the last line that was too long began, up to 1 KiB of it: enough to tell what it replied to. Empty before
    /// the first [`LineTooLong`].
    #[must_use]
    pub fn overlong(&self) -> &[u8] {
        &self.overlong
    }

    fn keep_beginning(&mut self, from: usize, to: usize) {
        let line = self.buffer.get(from..to).unwrap_or_default();
        self.overlong.clear();
        self.overlong.extend_from_slice(line.get(..BEGINNING).unwrap_or(line));
    }

    /// Bytes held at the moment.
    #[must_use]
    pub const fn buffered(&self) -> usize {
        self.buffer.len()
    }

    /// No line end in sight: remembers how far was looked, and gives up on a line that is too long already.
    fn wait(&mut self) -> Option<LineTooLong> {
        let held = self.buffer.len() - self.start;
        // One byte more than the limit may still be the CR of a line that just fits.
        let overlong = !self.skipping && held > self.limit.saturating_add(1);
        if overlong {
            self.keep_beginning(self.start, self.buffer.len());
        }
        if overlong || self.skipping || held == 0 {
            self.skipping |= overlong;
            clear(&mut self.buffer);
            self.start = 0;
        }
        self.scanned = self.buffer.len();
        self.compact();
        overlong.then_some(LineTooLong { limit: self.limit })
    }

    /// Removes the lines that were given.
    fn compact(&mut self) {
        self.buffer.drain(..self.start);
        self.scanned -= self.start;
        self.start = 0;
    }
}

impl core::fmt::Debug for LineDecoder {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("LineDecoder")
            .field("buffered", &self.buffer.len())
            .field("limit", &self.limit)
            .finish()
    }
}

fn is_blank(line: &[u8]) -> bool {
    line.iter().all(|byte| matches!(byte, b' ' | b'\t' | b'\r'))
}

/// Whether this is no JSON to its end, whatever else may be wrong with it.
fn is_cut(line: &[u8]) -> bool {
    let parsed = core::str::from_utf8(line).map(|text| Json::parse(text, &Limits::default()));
    matches!(parsed, Err(_) | Ok(Err(Refusal::Syntax { .. })))
}
