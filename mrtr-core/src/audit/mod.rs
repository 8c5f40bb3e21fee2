//! What is told of an exchange to those who keep count: exchanges, rounds, keys, kinds and outcomes. Never a
//! message, an answer, a state or a principal.
//!
//! An [`Observer`] sits in a server's [`Config`](crate::server::Config) and is told plain data, so that metrics and
//! audit logs need no event of a logging library, in `no_std` builds too. It is told of what has happened: an
//! answer when the attempt that met it writes its reply, an ask when it is written. An attempt that was cancelled
//! has answered nothing and tells nothing; its client will come again. In a legacy session a handler runs once: there
//! an answer is told when the handler gets it.
//!
//! ```
//! use std::sync::Arc;
//! use mrtr_core::audit::{Counters, Event, Observer};
//!
//! #[derive(Debug)]
//! struct Print;
//! impl Observer for Print {
//!     fn observe(&self, event: &Event<'_>) {
//!         println!("{event}");
//!     }
//! }
//!
//! # use mrtr_core::{seal::{KeyRing, Sealer, Secret}, server::Config, wire::Implementation};
//! # let ring = KeyRing::new(Secret::from_bytes(&[7; 32])?);
//! # let mut config = Config::new(Implementation::new("s", "1"), Sealer::encrypted(&ring, "s"));
//! let counters = Arc::new(Counters::and_then(Print));
//! config.observer = Some(counters.clone());
//! // Later, for a page of metrics:
//! assert_eq!(counters.counts().asked, 0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod counters;

use core::fmt;

pub use counters::{Counters, Counts};

use crate::{
    error::ErrorCode,
    journal::Divergence,
    seal::{ExchangeId, Verdict},
    wire::AskKind,
};

/// Is told what happens in exchanges.
///
/// Called in the middle of writing a reply: be quick, do not block, do not panic.
pub trait Observer: fmt::Debug + Send + Sync {
    /// Something happened.
    fn observe(&self, event: &Event<'_>);
}

/// Something that happened in an exchange. Without content: nothing that a person read or wrote is in it.
///
/// `Display` is one line for an audit log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event<'a> {
    /// A question went out.
    Asked {
        /// Its exchange.
        exchange: ExchangeId,
        /// Which round, from 1.
        round: u32,
        /// The key on the wire.
        key: &'a str,
        /// The kind.
        kind: AskKind,
    },
    /// A round without a question went out (R-066).
    StateOnly {
        /// Its exchange.
        exchange: ExchangeId,
        /// Which round, from 1.
        round: u32,
    },
    /// A question was answered, or settled without a person.
    Answered {
        /// Its exchange.
        exchange: ExchangeId,
        /// Which round asked, from 1; 0 for an answer that came with the first request (A7).
        round: u32,
        /// The key on the wire.
        key: &'a str,
        /// The kind.
        kind: AskKind,
        /// What was said.
        said: Said,
    },
    /// A handler left its recorded path (A8).
    Diverged {
        /// Its exchange.
        exchange: ExchangeId,
        /// The keys in question.
        divergence: &'a Divergence,
    },
    /// A request got its final answer.
    Ended {
        /// Its exchange.
        exchange: ExchangeId,
        /// The code of an error; `None` for a result.
        error: Option<ErrorCode>,
    },
    /// A state was refused (G-11).
    Refused {
        /// Its exchange, if the state was authentic.
        exchange: Option<ExchangeId>,
        /// Why.
        verdict: Verdict,
    },
}

/// What was said to a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Said {
    /// Yes: to a form with content that fits, to a url with consent.
    Accept,
    /// No.
    Decline,
    /// Dismissed.
    Cancel,
    /// A model's message, or roots.
    Result,
    /// Content that does not fit; it is asked again or has failed (G-18).
    Invalid,
    /// Nothing: optional, and the client cannot answer it (G-13).
    Unavailable,
    /// Consent to open a url; what is behind it was not done yet (A10).
    NotYet,
    /// An error instead of an answer, which only the legacy revisions know (R-237, R-238).
    Refused,
}

impl Said {
    /// A stable word for logs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Accept => "accept",
            Self::Decline => "decline",
            Self::Cancel => "cancel",
            Self::Result => "result",
            Self::Invalid => "invalid",
            Self::Unavailable => "unavailable",
            Self::NotYet => "not yet",
            Self::Refused => "refused",
        }
    }
}

impl fmt::Display for Event<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Asked { exchange, round, key, kind } => {
                write!(f, "{exchange} round {round}: asked {key} ({kind})")
            }
            Self::StateOnly { exchange, round } => write!(f, "{exchange} round {round}: asked nothing"),
            Self::Answered { exchange, round, key, kind, said } => {
                write!(f, "{exchange} round {round}: {key} ({kind}) {}", said.name())
            }
            Self::Diverged { exchange, divergence } => write!(f, "{exchange} {divergence}"),
            Self::Ended { exchange, error: None } => write!(f, "{exchange} ended with a result"),
            Self::Ended { exchange, error: Some(code) } => write!(f, "{exchange} ended with error {code}"),
            Self::Refused { exchange: Some(exchange), verdict } => write!(f, "{exchange} refused: {verdict}"),
            Self::Refused { exchange: None, verdict } => write!(f, "refused: {verdict}"),
        }
    }
}
