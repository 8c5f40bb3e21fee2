//! What a state says of itself.

use alloc::vec::Vec;
use core::time::Duration;

use super::verdict::SealError;
use crate::{Entropy, Timestamp};

/// The name of one exchange, the same in all its rounds: 128 random bits. Fine to log.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ExchangeId([u8; 16]);

impl ExchangeId {
    /// A new one, expanded from the entropy of the exchange's first round (label `"exchange"`).
    #[must_use]
    pub fn from_entropy(entropy: &Entropy) -> Self {
        Self(entropy.expand(b"exchange"))
    }

    /// One that was written down before.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// Its bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

impl core::fmt::Display for ExchangeId {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{:032x}", u128::from_be_bytes(self.0))
    }
}

impl core::fmt::Debug for ExchangeId {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "ExchangeId({self})")
    }
}

/// How long a state may be used after it was sealed: more than nothing, at most 30 days.
///
/// Rounded up to whole milliseconds, so that a lifetime of half a second is one (B-19). Flows that need longer
/// than a person's attention use a url ask with state stored by the server (G-55).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ttl(Duration);

impl Ttl {
    /// 600 s (G-07).
    pub const DEFAULT: Self = Self(Duration::from_secs(600));
    /// The longest: 30 days. What is longer is a mistake of units.
    pub const MAX: Self = Self(Duration::from_secs(30 * 24 * 3_600));

    /// Checks a lifetime.
    ///
    /// # Errors
    ///
    /// [`InvalidTtl`] for zero and for more than [`MAX`](Self::MAX).
    pub const fn new(ttl: Duration) -> Result<Self, InvalidTtl> {
        if ttl.is_zero() || ttl.as_nanos() > Self::MAX.0.as_nanos() {
            return Err(InvalidTtl { ttl });
        }
        Ok(Self(ttl))
    }

    /// The lifetime.
    #[must_use]
    pub const fn get(self) -> Duration {
        self.0
    }
}

/// A lifetime of zero, or one of more than 30 days.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a state can live for more than nothing and at most 30 days, not for {} ms", ttl.as_millis())]
#[non_exhaustive]
pub struct InvalidTtl {
    /// What was asked for.
    pub ttl: Duration,
}

/// What to seal beside the payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewClaims {
    /// The exchange.
    pub exchange: ExchangeId,
    /// The round that this state ends; at most the sealer's cap.
    pub round: u32,
    /// State-only rounds so far; at most the sealer's cap.
    pub state_only: u32,
    /// When the whole exchange is over; the state expires then at the latest. Carried from round to round.
    pub deadline: Timestamp,
    /// Another lifetime than the sealer's, for a tool whose questions take longer or must not.
    pub ttl: Option<Ttl>,
}

/// What an opened state says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Claims {
    /// The exchange.
    pub exchange: ExchangeId,
    /// The round that this state ended.
    pub round: u32,
    /// State-only rounds so far.
    pub state_only: u32,
    /// When it was sealed.
    pub issued: Timestamp,
    /// The first moment at which it is no longer good.
    pub expires: Timestamp,
    /// When the whole exchange is over; never before `expires`.
    pub deadline: Timestamp,
}

impl Claims {
    /// Exchange id 16, round 2, state-only rounds 2, issued 6, expires 6, deadline 6.
    pub(super) const BYTES: usize = 38;

    /// Checks the counts and fixes the times: `expires` is the earlier of `now` + TTL and the deadline.
    pub(super) fn at(new: &NewClaims, ttl: Ttl, now: Timestamp, caps: Caps) -> Result<Self, SealError> {
        let &NewClaims { exchange, round, state_only, .. } = new;
        if round > caps.rounds.into() {
            return Err(SealError::TooManyRounds { rounds: round, limit: caps.rounds.into() });
        }
        if state_only > caps.state_only.into() {
            return Err(SealError::TooManyStateOnlyRounds {
                rounds: state_only,
                limit: caps.state_only.into(),
            });
        }
        let (issued, deadline) = (in_range(now), in_range(new.deadline));
        let expires = in_range(issued.saturating_add(ttl.0)).min(deadline);
        if expires <= issued {
            return Err(SealError::DeadlinePassed);
        }
        Ok(Self { exchange, round, state_only, issued, expires, deadline })
    }

    /// Writes claims made by [`at`](Self::at), whose counts fit in 16 bits.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.exchange.0);
        for count in [self.round, self.state_only] {
            let [_, _, low @ ..] = count.to_be_bytes();
            out.extend_from_slice(&low);
        }
        for time in [self.issued, self.expires, self.deadline] {
            write_time(time, out);
        }
    }

    pub(super) fn within(&self, caps: Caps) -> bool {
        self.round <= caps.rounds.into() && self.state_only <= caps.state_only.into()
    }

    /// `None` if the times contradict each other.
    pub(super) fn read(bytes: &[u8; Self::BYTES]) -> Option<Self> {
        let (exchange, rest) = bytes.split_first_chunk()?;
        let (round, rest) = rest.split_first_chunk()?;
        let (state_only, rest) = rest.split_first_chunk()?;
        let (issued, rest) = rest.split_first_chunk()?;
        let (expires, deadline) = rest.split_first_chunk()?;
        let this = Self {
            exchange: ExchangeId(*exchange),
            round: u16::from_be_bytes(*round).into(),
            state_only: u16::from_be_bytes(*state_only).into(),
            issued: read_time(*issued),
            expires: read_time(*expires),
            deadline: read_time(deadline.try_into().ok()?),
        };
        (this.issued < this.expires && this.expires <= this.deadline).then_some(this)
    }
}

/// The most rounds that are sealed and accepted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Caps {
    pub(super) rounds: u16,
    pub(super) state_only: u16,
}

/// The last moment that 48 bits of milliseconds can name, in the year 10889.
const END_OF_TIME: Timestamp = Timestamp::from_unix_millis((1 << 48) - 1);

/// `time`, or the end of time if that comes first. It keeps the order of times, and what is sealed then has
/// expired already.
pub(super) fn in_range(time: Timestamp) -> Timestamp {
    time.min(END_OF_TIME)
}

/// Writes a time as 48 bits, big-endian.
pub(super) fn write_time(time: Timestamp, out: &mut Vec<u8>) {
    let [_, _, low @ ..] = in_range(time).as_unix_millis().to_be_bytes();
    out.extend_from_slice(&low);
}

/// Reads what [`write_time`] wrote.
pub(super) const fn read_time([a, b, c, d, e, f]: [u8; 6]) -> Timestamp {
    Timestamp::from_unix_millis(u64::from_be_bytes([0, 0, a, b, c, d, e, f]))
}
