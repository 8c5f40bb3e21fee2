//! The journal as bytes: strict, length-prefixed, one spelling for each journal.
//!
//! ```text
//! journal  = version 0x01 · started u64 BE · divergences u8 · state? · rounds · once* · values*
//! state?   = 0x00 | 0x01 text
//! rounds   = count(entries) · entry*
//! entry    = flags u8 (1 silent · 2 checkpoint · 4 swallowed · 8 run) · if run: count(n ≥ 2), else: count(asks) · ask*
//! ask      = text(key) · kind u8 · fingerprint 32 · verdict
//! verdict  = 0 | 1 text | 2 count u8 text | 3 | 4
//! once     = text(name) · count(nth) · count(segment) · text(value)
//! value    = text(name) · text(value)
//! text     = count(bytes) · UTF-8
//! count    = LEB128, shortest form, at most 32 bits
//! ```
//!
//! A run is a sequence of checkpoint rounds without questions, stored as a count (A10).

use alloc::vec::Vec;

use super::{Asked, Journal, Named, Once, Round, SILENT_ROUNDS, Verdict};
use crate::{digest::Fingerprint, limits::Limits, time::Timestamp, wire::AskKind};

const VERSION: u8 = 1;

const SILENT: u8 = 1;
const CHECKPOINT: u8 = 2;
const SWALLOWED: u8 = 4;
const RUN: u8 = 8;

/// Bytes that are no journal, or one over a cap. They were authentic when they get here, so this is a
/// configuration that changed or a fault of our own; the peer is told what every refused state is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CodecFault {
    /// Another version.
    #[error("journal version {0} is not known here")]
    Version(u8),
    /// Cut short, trailing bytes, not the one spelling, not UTF-8.
    #[error("journal is malformed")]
    Malformed,
    /// A count above a cap.
    #[error("journal has more {0} than allowed")]
    Cap(&'static str),
}

impl Journal {
    /// Appends the journal's bytes.
    pub fn encode(&self, out: &mut Vec<u8>) {
        self.write(out);
    }

    /// How many bytes [`encode`](Self::encode) appends.
    #[must_use]
    pub fn encoded_len(&self) -> usize {
        let mut length = Length(0);
        self.write(&mut length);
        length.0
    }

    fn write(&self, out: &mut impl Sink) {
        out.put(&[VERSION]);
        out.put(&self.started.as_unix_millis().to_be_bytes());
        out.put(&[self.divergences]);
        match &self.state {
            None => out.put(&[0]),
            Some(state) => {
                out.put(&[1]);
                put_text(out, state);
            }
        }
        let entries = || self.rounds.chunk_by(|a, b| is_plain_checkpoint(a) && is_plain_checkpoint(b));
        put_count(out, entries().count());
        for run in entries() {
            let Some(round) = run.first() else { continue };
            let flags = if round.silent { SILENT } else { 0 }
                | if round.checkpoint { CHECKPOINT } else { 0 }
                | if round.swallowed { SWALLOWED } else { 0 };
            if run.len() > 1 {
                out.put(&[flags | RUN]);
                put_count(out, run.len());
                continue;
            }
            out.put(&[flags]);
            put_count(out, round.asks.len());
            for asked in &round.asks {
                put_text(out, &asked.key);
                out.put(&[asked.kind.code()]);
                out.put(asked.fingerprint.as_bytes());
                match &asked.verdict {
                    Verdict::Open => out.put(&[0]),
                    Verdict::Answer(text) => {
                        out.put(&[1]);
                        put_text(out, text);
                    }
                    Verdict::Invalid { count, reason } => {
                        out.put(&[2, *count]);
                        put_text(out, reason);
                    }
                    Verdict::Unavailable => out.put(&[3]),
                    Verdict::NotYet => out.put(&[4]),
                }
            }
        }
        put_count(out, self.once.len());
        for once in &self.once {
            put_text(out, &once.name);
            put_count(out, once.nth as usize);
            put_count(out, once.segment as usize);
            put_text(out, &once.value);
        }
        put_count(out, self.values.len());
        for value in &self.values {
            put_text(out, &value.name);
            put_text(out, &value.value);
        }
    }

    /// Reads a journal.
    ///
    /// # Errors
    ///
    /// If the bytes are not exactly one journal in its one spelling, or a count is above its cap in `limits`.
    pub fn decode(bytes: &[u8], limits: &Limits) -> Result<Self, CodecFault> {
        let mut input = Reader { bytes };
        match input.byte()? {
            VERSION => {}
            other => return Err(CodecFault::Version(other)),
        }
        let started = Timestamp::from_unix_millis(u64::from_be_bytes(input.array()?));
        let divergences = input.byte()?;
        let state = match input.byte()? {
            0 => None,
            1 => Some(input.text()?),
            _ => return Err(CodecFault::Malformed),
        };
        let mut journal =
            Self { started, rounds: Vec::new(), once: Vec::new(), values: Vec::new(), state, divergences };
        let (mut asking, mut plain, mut silent) = (0usize, 0usize, 0usize);
        let entries = input.count()?;
        // One more is likely to follow. Runs are longer than their entries, absurd counts shorter than they say.
        journal.rounds.reserve(entries.min(limits.rounds as usize) + 1);
        // Each entry takes at least two bytes, so a count that the bytes cannot hold fails before long.
        for _ in 0..entries {
            let flags = input.byte()?;
            if flags & RUN != 0 {
                let times = input.count()?;
                if flags != CHECKPOINT | RUN
                    || times < 2
                    || journal.rounds.last().is_some_and(is_plain_checkpoint)
                {
                    return Err(CodecFault::Malformed);
                }
                plain = plain.saturating_add(times);
                if plain > limits.state_only_rounds as usize {
                    return Err(CodecFault::Cap("state-only rounds"));
                }
                let round = Round { checkpoint: true, ..Round::default() };
                journal.rounds.extend(core::iter::repeat_n(round, times));
                continue;
            }
            if flags > SILENT | CHECKPOINT | SWALLOWED {
                return Err(CodecFault::Malformed);
            }
            let mut round = Round {
                asks: Vec::new(),
                silent: flags & SILENT != 0,
                checkpoint: flags & CHECKPOINT != 0,
                swallowed: flags & SWALLOWED != 0,
            };
            let asks = input.count()?;
            round.asks.reserve_exact(asks.min(limits.asks_sent));
            for _ in 0..asks {
                round.asks.push(input.asked()?);
            }
            if is_plain_checkpoint(&round) && journal.rounds.last().is_some_and(is_plain_checkpoint) {
                return Err(CodecFault::Malformed);
            }
            if round.silent {
                silent += 1;
                if silent > SILENT_ROUNDS {
                    return Err(CodecFault::Cap("silent rounds"));
                }
            } else if round.asks.is_empty() {
                plain += 1;
                if plain > limits.state_only_rounds as usize {
                    return Err(CodecFault::Cap("state-only rounds"));
                }
            } else {
                asking += 1;
                if asking > limits.rounds as usize {
                    return Err(CodecFault::Cap("rounds"));
                }
                if round.asks.len() > limits.asks_sent {
                    return Err(CodecFault::Cap("asks in a round"));
                }
            }
            journal.rounds.push(round);
        }
        for _ in 0..input.count()? {
            let name = input.text()?;
            let nth = u32::try_from(input.count()?).map_err(|_| CodecFault::Malformed)?;
            let segment = u32::try_from(input.count()?).map_err(|_| CodecFault::Malformed)?;
            journal.once.push(Once { name, nth, segment, value: input.text()? });
        }
        for _ in 0..input.count()? {
            let name = input.text()?;
            journal.values.push(Named { name, value: input.text()? });
        }
        if input.bytes.is_empty() { Ok(journal) } else { Err(CodecFault::Malformed) }
    }
}

fn is_plain_checkpoint(round: &Round) -> bool {
    round.checkpoint && round.asks.is_empty() && !round.silent && !round.swallowed
}

/// Where a journal is written to.
trait Sink {
    fn put(&mut self, bytes: &[u8]);
}

impl Sink for Vec<u8> {
    fn put(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}

/// Counts what is written.
struct Length(usize);

impl Sink for Length {
    fn put(&mut self, bytes: &[u8]) {
        self.0 += bytes.len();
    }
}

fn put_count(out: &mut impl Sink, count: usize) {
    // Everything counted here lies far below 32 bits: a state is at most a few hundred kilobytes.
    let mut rest = u32::try_from(count).unwrap_or(u32::MAX);
    while rest >= 0x80 {
        out.put(&[u8::try_from(rest & 0x7f).unwrap_or(0) | 0x80]);
        rest >>= 7;
    }
    out.put(&[u8::try_from(rest).unwrap_or(0)]);
}

fn put_text(out: &mut impl Sink, text: &str) {
    put_count(out, text.len());
    out.put(text.as_bytes());
}

struct Reader<'a> {
    bytes: &'a [u8],
}

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], CodecFault> {
        let (taken, rest) = self.bytes.split_at_checked(count).ok_or(CodecFault::Malformed)?;
        self.bytes = rest;
        Ok(taken)
    }

    fn byte(&mut self) -> Result<u8, CodecFault> {
        self.array::<1>().map(|[byte]| byte)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], CodecFault> {
        self.take(N)?.try_into().map_err(|_| CodecFault::Malformed)
    }

    fn count(&mut self) -> Result<usize, CodecFault> {
        let mut value = 0u32;
        for shift in [0u32, 7, 14, 21, 28] {
            let byte = self.byte()?;
            let part = u32::from(byte & 0x7f);
            if shift == 28 && part > 0x0f {
                return Err(CodecFault::Malformed);
            }
            value |= part << shift;
            if byte & 0x80 == 0 {
                // The shortest form only: a last byte of zero adds nothing.
                if byte == 0 && shift > 0 {
                    return Err(CodecFault::Malformed);
                }
                return usize::try_from(value).map_err(|_| CodecFault::Malformed);
            }
        }
        Err(CodecFault::Malformed)
    }

    fn text<T: From<&'a str>>(&mut self) -> Result<T, CodecFault> {
        let count = self.count()?;
        core::str::from_utf8(self.take(count)?).map(T::from).map_err(|_| CodecFault::Malformed)
    }

    fn asked(&mut self) -> Result<Asked, CodecFault> {
        let key = self.text()?;
        let kind = AskKind::from_code(self.byte()?).ok_or(CodecFault::Malformed)?;
        let fingerprint = Fingerprint::from_bytes(self.array()?);
        let verdict = match self.byte()? {
            0 => Verdict::Open,
            1 => Verdict::Answer(self.text()?),
            2 => Verdict::Invalid { count: self.byte()?, reason: self.text()? },
            3 => Verdict::Unavailable,
            4 => Verdict::NotYet,
            _ => return Err(CodecFault::Malformed),
        };
        Ok(Asked { key, kind, fingerprint, verdict })
    }
}
