//! The sealed state: what a server lets the client carry from one round to the next (R-069…R-078).
//!
//! A [`Sealer`] turns claims and a payload into a token that nobody can change, that tells nothing (but for the
//! signed suite), and that is refused when it is late, or shown by someone else, to another server, or on another
//! request. It knows nothing of what the payload means.
//!
//! ```
//! use core::time::Duration;
//! use mrtr_core::seal::{Binding, ExchangeId, KeyRing, NewClaims, Principal, Sealer, Secret, Verdict};
//! use mrtr_core::{Entropy, Timestamp};
//!
//! let secret = Secret::from_bytes(&[7; 32])?; // from your secret store, the same on every replica
//! let sealer = Sealer::signed_readable(&KeyRing::new(secret), "billing");
//!
//! let now = Timestamp::from_unix_millis(1_785_000_000_000);
//! let entropy = Entropy::new([9; 32]); // from the system's random source, anew for each round
//! let claims = NewClaims {
//!     exchange: ExchangeId::from_entropy(&entropy),
//!     round: 1,
//!     state_only: 0,
//!     deadline: now.saturating_add(Duration::from_secs(3_600)),
//!     ttl: None,
//! };
//! let binding = Binding { principal: Principal::Authenticated(b"issuer|ada"), request: &[3; 32] };
//! let token = sealer.seal(&claims, b"journal", &binding, now, &entropy)?;
//!
//! let opened = sealer.open(&token, &binding, now)?;
//! assert_eq!(&*opened.payload, b"journal");
//!
//! let eve = Binding { principal: Principal::Authenticated(b"issuer|eve"), ..binding };
//! assert_eq!(sealer.open(&token, &eve, now).unwrap_err().verdict, Verdict::OtherPrincipal);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # The format, version 1
//!
//! Enough to write another implementation from. `‖` joins bytes; numbers are big-endian; text in quotes is ASCII.
//!
//! ```text
//! token     base64url(sealed), RFC 4648 §5, no padding, unused bits of the last character zero
//! sealed    head ‖ body ‖ tag
//! head      version 1 = 0x01 ‖ suite 1 ‖ key id 4 ‖ nonce 24                                   30 bytes
//! body      exchange id 16 ‖ round 2 ‖ state-only rounds 2 ‖ issued 6 ‖ expires 6 ‖ deadline 6
//!           ‖ bound audience 16 ‖ bound principal 16 ‖ bound request 16 ‖ payload              86 bytes + payload
//! ```
//!
//! Times are milliseconds since the Unix epoch in 48 bits; a later one is written as 2⁴⁸ − 1. In an authentic body
//! issued < expires ≤ deadline; any other is malformed. The payload is whatever is left: its own codec refuses
//! bytes that it does not know.
//!
//! | suite | name | tag | sealing |
//! |---|---|---|---|
//! | 1 | `hmac-sha256` | 32 | body in clear; tag = HMAC-SHA256(key, aad ‖ body) |
//! | 2 | `xchacha20-poly1305` | 16 | AEAD with the 24-byte nonce |
//! | 3 | `aes-256-gcm` | 16 | AEAD with key 32 ‖ IV 12 = HKDF-SHA256(salt nonce, ikm key, info label ‖ "/token") |
//! | 255 | `transparent` | 0 | none; in builds for fuzzers and simulators only |
//!
//! With aad = "mrtr/v1" ‖ head. Nothing of the request is in it: what a state is bound to is compared after
//! authentication, so that the log can tell a state of another request from a forged one.
//!
//! **Keys.** Each secret has 32 bytes or more. Derived(label) = HKDF-SHA256(no salt, ikm secret, info label), 32 bytes:
//!
//! | label | use |
//! |---|---|
//! | `mrtr/v1/kid` | the first 4 bytes are the key id |
//! | `mrtr/v1/bind` | the key of the bound tags |
//! | `mrtr/v1/seal/<suite name>` | the key of states |
//! | `mrtr/v1/ticket/<suite name>` | of [tickets](Ticket) |
//! | `mrtr/v1/ledger/<suite name>`, `mrtr/v1/handle/<suite name>`, `mrtr/v1/saved/<suite name>` | of [blobs](BlobKind) |
//!
//! **Bound tags.** HMAC-SHA256(bind key, label ‖ nonce ‖ length 8 ‖ value), the first 16 bytes. The nonce is the
//! head's. Labels and values:
//!
//! ```text
//! "audience"   the audience's UTF-8
//! "principal"  0x00 for the anonymous one; 0x01 ‖ length 8 ‖ bytes for any other
//! "request"    32 bytes that name method, target and arguments
//! ```
//!
//! **Entropy.** 32 bytes a round, from a cryptographic source. Expanded(info) = HKDF-Expand-SHA256(prk entropy, info). The
//! n-th nonce drawn from it, n from 0, is Expanded("nonce" ‖ n in 4 bytes), 24 bytes; a new exchange id is
//! Expanded("exchange"), 16 bytes. (Whoever opens a token need not know this.)
//!
//! **Tickets** are tokens under their own key, with the body exchange id 16 ‖ expires 6 ‖ bound audience 16 ‖ bound
//! principal 16 ‖ key of the ask (1 to 128 bytes of UTF-8).
//!
//! **Blobs** are sealed bytes (not text) under their kind's key, with
//! aad = "mrtr/v1" ‖ head ‖ length 8 ‖ audience ‖ length 8 ‖ place; the body is what was given.
//!
//! # Verdicts
//!
//! Checked in the order of [`Verdict`], the first that applies wins, and the peer sees one sentence for all (G-11).
//! `issued > now + skew` is not yet valid; `now >= expires` is expired, without tolerance.
//!
//! # What is not here
//!
//! A state can be shown twice until it expires: single use needs memory (R-075), which is the ledger's.

use alloc::sync::Arc;
use core::time::Duration;

use self::{claims::Caps, current::Current, ring::DerivedRing, suite::Suite};
use crate::Limits;

#[cfg(feature = "aes-gcm")]
mod aes_gcm;
mod binding;
mod blob;
mod claims;
mod current;
mod envelope;
mod hmac;
mod inspect;
mod key;
mod ring;
mod suite;
mod text;
mod ticket;
mod token;
#[cfg(any(fuzzing, feature = "test-utils"))]
mod transparent;
mod verdict;
#[cfg(feature = "encrypted")]
mod xchacha;

pub use binding::{Binding, Principal};
pub use blob::BlobKind;
pub use claims::{Claims, ExchangeId, InvalidTtl, NewClaims, Ttl};
pub use current::KeyUse;
pub use inspect::{Expected, InspectError, Inspected, Visible, inspect, inspect_with};
pub use key::{KeyId, KeyTooShort, Secret};
pub use ring::{KeyRing, RingError};
pub use ticket::Ticket;
pub use token::Opened;
pub(crate) use token::Sealed;
pub use verdict::{Refused, SealError, Verdict};

/// Seals and opens states under one suite, for one audience. Shared between threads, cheap to clone; clones share their
/// keys, which alone can change while it is in use ([`set_ring`](Self::set_ring)).
///
/// The suite is the constructor's: what a token says of its suite is only ever compared with it. `Debug` shows
/// key ids, never keys.
#[derive(Clone)]
pub struct Sealer {
    suite: &'static Suite,
    current: Current,
    audience: Arc<str>,
    ttl: Ttl,
    skew: Duration,
    max_token: usize,
    caps: Caps,
    soft_expiry: bool,
}

const _: () = {
    const fn shared<T: Send + Sync + Clone>() {}
    shared::<Sealer>();
};

impl Sealer {
    /// HMAC-SHA256: tamper-proof, but **the client can read the state** (R-077), with every answer in it.
    ///
    /// `audience` names the service that accepts the states, the same on all its replicas: `serverInfo.name`, say,
    /// or the mount path of a tenant; never a version, host, port or process (G-52).
    #[must_use]
    pub fn signed_readable(ring: &KeyRing, audience: &str) -> Self {
        Self::new(ring, audience, &hmac::HMAC_SHA256)
    }

    /// XChaCha20-Poly1305: the client learns nothing but the state's size. Take this one unless a rule forbids it.
    ///
    /// `audience` as for [`signed_readable`](Self::signed_readable).
    #[cfg(feature = "encrypted")]
    #[must_use]
    pub fn encrypted(ring: &KeyRing, audience: &str) -> Self {
        Self::new(ring, audience, &xchacha::XCHACHA20_POLY1305)
    }

    /// AES-256-GCM under a key of its own for each token, for those whose rules name it.
    ///
    /// `audience` as for [`signed_readable`](Self::signed_readable).
    #[cfg(feature = "aes-gcm")]
    #[must_use]
    pub fn encrypted_aes_gcm(ring: &KeyRing, audience: &str) -> Self {
        Self::new(ring, audience, &aes_gcm::AES_256_GCM)
    }

    /// **No protection at all**: anyone can write such a state. For fuzzers and simulators.
    #[cfg(any(fuzzing, feature = "test-utils"))]
    #[must_use]
    pub fn transparent(ring: &KeyRing, audience: &str) -> Self {
        Self::new(ring, audience, &transparent::TRANSPARENT)
    }

    fn new(ring: &KeyRing, audience: &str, suite: &'static Suite) -> Self {
        Self {
            suite,
            current: Current::new(DerivedRing::new(ring, suite)),
            audience: audience.into(),
            ttl: Ttl::DEFAULT,
            skew: Duration::from_secs(60),
            max_token: Limits::default().state_minted,
            caps: Caps { rounds: u16::MAX, state_only: u16::MAX },
            soft_expiry: false,
        }
    }

    /// A sealer like this one with other keys, and counts of its own. A running service rotates keys with
    /// `set_ring`.
    #[must_use]
    pub fn with_ring(&self, ring: &KeyRing) -> Self {
        Self { current: Current::new(DerivedRing::new(ring, self.suite)), ..self.clone() }
    }

    /// How long a state may be used. Default 600 s. [`NewClaims::ttl`] overrides it for one state.
    #[must_use]
    pub fn ttl(self, ttl: Ttl) -> Self {
        Self { ttl, ..self }
    }

    /// How far in the future a state may have been issued, to allow for clocks that differ and for one that steps
    /// back. Default 60 s. It never prolongs a state.
    #[must_use]
    pub fn skew(self, skew: Duration) -> Self {
        Self { skew, ..self }
    }

    /// The most characters of a token, when sealed and when opened. Default 65,536 ([`Limits::state_minted`]).
    #[must_use]
    pub fn max_token(self, characters: usize) -> Self {
        Self { max_token: characters, ..self }
    }

    /// The most rounds and state-only rounds, when sealed and when opened. Default, and at most, 65,535 each.
    #[must_use]
    pub fn max_rounds(self, rounds: u32, state_only: u32) -> Self {
        let cap = |value: u32| u16::try_from(value).unwrap_or(u16::MAX);
        Self { caps: Caps { rounds: cap(rounds), state_only: cap(state_only) }, ..self }
    }

    /// Opens an expired state too, marked [`expired`](Opened::expired), if that is its only fault and the exchange's
    /// deadline is still ahead. What the caller must then do: discard the answers that came with it and ask anew,
    /// keeping count and deadline.
    ///
    /// With a [`ledger`](crate::ledger), read there what comes first where replicas ran without it.
    #[must_use]
    pub fn soft_expiry(self) -> Self {
        Self { soft_expiry: true, ..self }
    }

    /// The audience that states are sealed for.
    #[must_use]
    pub fn audience(&self) -> &str {
        &self.audience
    }

    /// Whether it opens expired states too.
    pub(crate) const fn is_soft(&self) -> bool {
        self.soft_expiry
    }

    /// Whether whoever holds what it seals can read it.
    pub(crate) const fn is_readable(&self) -> bool {
        self.suite.readable
    }

    /// The key that mints.
    #[must_use]
    pub fn minting(&self) -> KeyId {
        self.current.get().minting.id
    }
}

impl core::fmt::Debug for Sealer {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Sealer")
            .field("suite", &self.suite.name)
            .field("keys", &self.current.get().ids().collect::<alloc::vec::Vec<_>>())
            .field("audience", &self.audience)
            .field("ttl", &self.ttl)
            .field("skew", &self.skew)
            .field("max_token", &self.max_token)
            .field("caps", &self.caps)
            .field("soft_expiry", &self.soft_expiry)
            .finish()
    }
}
