//! The server's half: bytes of a request in, an exchange in a known state out; bytes of a reply out.
//!
//! ```text
//!            receive, no state       require · the handler blocked
//!  request ─────────────────▶ Pending ───────────────────────────▶ InputRequired ─▶ input_required, asks, sealed state
//!            receive, state, answers                                 ▲
//!  retry ───────────────────▶ Retrying ──────────────────────────────┤ (again, next round)
//!                                 │ complete · fail
//!                                 └─────────────────────────────────▶ Complete ───▶ complete | error
//! ```
//!
//! Nothing is kept between two requests: what the next round needs travels in the sealed state (R-008,
//! R-063). Whatever a call appended to `out` is sent, also after an `Err`; an exchange that is dropped has
//! answered nothing.

mod answer;
mod call;
mod complete;
mod input_required;
mod observe;
mod pending;
mod read;
mod reject;
mod reply;
mod retrying;
mod typed;

use alloc::{string::String, sync::Arc, vec::Vec};

pub use answer::Given;
#[cfg(feature = "std")]
pub(crate) use call::ToClaim;
pub use call::{Call, Exchange, Open, Pending, Retrying};
pub use complete::Complete;
pub use input_required::{InputRequests, InputRequired, RequireError};
pub use read::{Incoming, Plain};
pub use reject::{RejectReason, Rejected};
pub(crate) use reply::{Hints, write_result};

use crate::{
    audit::Observer,
    entropy::Entropy,
    http::Headers,
    ledger,
    limits::Limits,
    seal::{Principal, Sealer},
    tape::TapePolicy,
    time::Timestamp,
    wire::{Implementation, Version},
};

/// What a server is made of.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Config {
    /// Who the server says it is, in `_meta` of every result (R-036, G-41).
    pub info: Implementation,
    /// Seals and opens states.
    pub sealer: Sealer,
    /// Bounds.
    pub limits: Limits,
    /// How handlers are replayed.
    pub tape: TapePolicy,
    /// Take no answer that comes without a state (A7, G-08). Default false.
    pub require_state: bool,
    /// Is told what is asked, answered and refused (no content). Default: nobody.
    pub observer: Option<Arc<dyn Observer>>,
    /// Uses each state once and keeps replies for retries whose reply was lost (B1…B7); implies
    /// [`require_state`](Self::require_state). Default `None`.
    ///
    /// [`handler::Run`](crate::handler::Run) asks the ledger before it calls a handler; whoever drives it
    /// carries out its store's commands. Exchanges that are answered without it are not covered, nor are first
    /// requests, which bring no state.
    pub ledger: Option<ledger::Policy>,
    /// Versions served, for `-32022` and discovery. Default: 2026-07-28 alone.
    pub versions: Vec<Version>,
}

impl Config {
    /// A configuration with the defaults.
    #[must_use]
    pub fn new(info: Implementation, sealer: Sealer) -> Self {
        Self {
            info,
            sealer,
            limits: Limits::default(),
            tape: TapePolicy::default(),
            require_state: false,
            observer: None,
            ledger: None,
            versions: alloc::vec![Version::LATEST],
        }
    }
}

/// What a request meets besides its bytes: all that a pure machine cannot know by itself.
#[non_exhaustive]
pub struct RoundEnv<'a> {
    /// The time of receipt.
    pub now: Timestamp,
    /// Randomness for this round.
    pub entropy: Entropy,
    /// Who sends the request, as the transport has verified it (G-10). Never taken from the message.
    pub principal: Principal<'a>,
    /// The request's headers, if it came over HTTP: they must agree with the body (R-170).
    pub headers: Option<&'a (dyn Headers + Sync)>,
}

impl<'a> RoundEnv<'a> {
    /// A request that came over a pipe.
    #[must_use]
    pub const fn new(now: Timestamp, entropy: Entropy, principal: Principal<'a>) -> Self {
        Self { now, entropy, principal, headers: None }
    }

    /// A request that came over HTTP.
    #[must_use]
    pub const fn with_headers(mut self, headers: &'a (dyn Headers + Sync)) -> Self {
        self.headers = Some(headers);
        self
    }
}

impl core::fmt::Debug for RoundEnv<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("RoundEnv")
            .field("now", &self.now)
            .field("headers", &self.headers.is_some())
            .finish_non_exhaustive()
    }
}

/// A server: an immutable value, cheap to clone, shared by every request.
#[derive(Clone, Debug)]
pub struct Server(Arc<Config>);

/// What a message turned out to be.
#[derive(Debug)]
#[non_exhaustive]
pub enum Received<'a> {
    /// The first request of an exchange.
    Pending(Exchange<'a, Pending>),
    /// A retry whose state is ours, for this principal and this request; its answers are recorded.
    Retrying(Exchange<'a, Retrying>),
    /// Refused: write its reply, if it has one, and [log](Rejected::log) the reason.
    Rejected(Rejected),
    /// A request of a method that never asks. Its `_meta` and headers are checked; route it.
    Other(Plain<'a>),
    /// A notification: no answer (R-005).
    Notification(crate::jsonrpc::Notification<'a>),
}

impl Server {
    /// A server. The sealer's own bounds are set to those of `limits`.
    #[must_use]
    pub fn new(mut config: Config) -> Self {
        let limits = &config.limits;
        let rounds = limits.rounds.saturating_add(limits.state_only_rounds);
        config.sealer =
            config.sealer.max_token(limits.state_minted).max_rounds(rounds, limits.state_only_rounds);
        config.require_state |= config.ledger.is_some();
        Self(Arc::new(config))
    }

    /// Its configuration.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.0
    }

    /// Reads one message and, if it is a request that may ask, opens its exchange.
    ///
    /// [`read`](Self::read) does the same in two steps, for servers that look the name up before any state
    /// is opened (G-51).
    #[must_use]
    pub fn receive<'a>(&self, input: &'a [u8], env: RoundEnv<'a>) -> Received<'a> {
        match self.read(input, env) {
            Incoming::Call(call) => call.open(),
            Incoming::Other(plain) => Received::Other(plain),
            Incoming::Notification(notification) => Received::Notification(notification),
            Incoming::Rejected(rejected) => Received::Rejected(rejected),
        }
    }

    /// The names of the versions served.
    pub(crate) fn version_names(&self) -> String {
        let mut out = String::from("[");
        for (index, version) in self.0.versions.iter().enumerate() {
            if index > 0 {
                out.push(',');
            }
            out.push('"');
            out.push_str(version.name());
            out.push('"');
        }
        out.push(']');
        out
    }
}

const _: () = {
    const fn shared<T: Clone + Send + Sync>() {}
    shared::<Server>();
};
