//! How sealing and opening end when they do not succeed.

use core::time::Duration;

use super::{
    claims::{Claims, ExchangeId},
    key::KeyId,
};
use crate::{RpcError, Timestamp};

/// What is wrong with a state, found in this order. For the log and for counters, never for the wire (G-11).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Verdict {
    /// Longer than this side mints; not even decoded (B-27).
    TooLarge,
    /// Not a token of this format and suite: text that is not canonical base64url, a length, version or suite
    /// that cannot be; or an authentic one whose times contradict each other or whose counts exceed the caps.
    Malformed,
    /// Sealed under a key that is not in the ring (B-17).
    UnknownKey,
    /// Changed, or made by someone without the key.
    Unauthentic,
    /// From further in the future than the clocks may differ.
    NotYetValid,
    /// Past its expiry: `now >= expires` (R-073, B-19).
    Expired,
    /// Sealed for another server (G-52).
    OtherAudience,
    /// Sealed for someone else.
    OtherPrincipal,
    /// Sealed for another request: method, target or arguments differ.
    OtherRequest,
}

impl Verdict {
    /// All of them, in order.
    pub const ALL: [Self; 9] = [
        Self::TooLarge,
        Self::Malformed,
        Self::UnknownKey,
        Self::Unauthentic,
        Self::NotYetValid,
        Self::Expired,
        Self::OtherAudience,
        Self::OtherPrincipal,
        Self::OtherRequest,
    ];

    /// A short name that stays, for a log or a counter.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::TooLarge => "too_large",
            Self::Malformed => "malformed",
            Self::UnknownKey => "unknown_key",
            Self::Unauthentic => "unauthentic",
            Self::NotYetValid => "not_yet_valid",
            Self::Expired => "expired",
            Self::OtherAudience => "other_audience",
            Self::OtherPrincipal => "other_principal",
            Self::OtherRequest => "other_request",
        }
    }
}

impl core::fmt::Display for Verdict {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(self.name())
    }
}

/// A refused state or ticket.
///
/// Everything here is for the log; a peer gets [`RpcError::from`] it, which is the same for all (G-11).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{verdict}")]
#[non_exhaustive]
pub struct Refused {
    /// What was wrong first.
    pub verdict: Verdict,
    /// The key id that it carries, once it could be read. Anyone can write one.
    pub key: Option<KeyId>,
    /// The exchange, once authenticated.
    pub exchange: Option<ExchangeId>,
    /// The round, once authenticated; a ticket has none.
    pub round: Option<u32>,
    /// How long ago it was sealed, once authenticated; a ticket does not say.
    pub age: Option<Duration>,
}

impl Refused {
    /// The one sentence that a peer gets, whatever was wrong.
    pub const WIRE_MESSAGE: &'static str = "Invalid or expired requestState";

    pub(super) const fn new(verdict: Verdict, key: Option<KeyId>) -> Self {
        Self { verdict, key, exchange: None, round: None, age: None }
    }

    pub(super) fn authentic(verdict: Verdict, key: KeyId, claims: &Claims, now: Timestamp) -> Self {
        Self {
            verdict,
            key: Some(key),
            exchange: Some(claims.exchange),
            round: Some(claims.round),
            age: Some(now.saturating_since(claims.issued)),
        }
    }
}

/// `-32602` with [`Refused::WIRE_MESSAGE`] and no data: one answer for all refusals (G-11).
impl From<Refused> for RpcError {
    fn from(_: Refused) -> Self {
        Self::invalid_params(Refused::WIRE_MESSAGE)
    }
}

/// Why something was not sealed. All of these are limits of this side, to be reported as its own failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SealError {
    /// The token would be longer than `state_minted` allows, so nobody would accept it (B-27, G-07).
    #[error("the sealed state would have {size} characters, more than the limit of {limit} (state_minted)")]
    TooLarge {
        /// Characters that the token would have.
        size: usize,
        /// Characters that it may have.
        limit: usize,
    },
    /// The exchange's deadline is not after now, so no answer could be used.
    #[error("the exchange is past its deadline")]
    DeadlinePassed,
    /// More rounds than the cap, so the state would be refused.
    #[error("{rounds} rounds exceed the limit of {limit}")]
    TooManyRounds {
        /// The count.
        rounds: u32,
        /// Its cap, in rounds.
        limit: u32,
    },
    /// More state-only rounds than their cap, so the state would be refused.
    #[error("{rounds} state-only rounds exceed the limit of {limit}")]
    TooManyStateOnlyRounds {
        /// The count.
        rounds: u32,
        /// Its cap, in state-only rounds.
        limit: u32,
    },
    /// The suite only signs, and what was to be sealed must not be readable.
    #[error("the sealer only signs: what it seals can be read")]
    Readable,
    /// The key of a ticket's ask is empty or too long.
    #[error("the key of a ticket's ask has {size} bytes, not 1 to {limit}")]
    TicketKey {
        /// Its bytes.
        size: usize,
        /// The most it may have, in bytes.
        limit: usize,
    },
    /// A blob longer than the suite's algorithm can take (64 GiB).
    #[error("too long for the cipher")]
    TooLongForCipher,
}
