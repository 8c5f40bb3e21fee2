//! What happens in exchanges as `tracing` events, for an audit log; counts of it for a page of metrics.
//!
//! ```
//! use std::sync::Arc;
//! use mrtr_core::audit::Counters;
//! use mrtr_tokio::audit::Log;
//!
//! # use mrtr_core::{seal::{KeyRing, Sealer, Secret}, server::Config, wire::Implementation};
//! # let ring = KeyRing::new(Secret::from_bytes(&[7; 32])?);
//! # let mut config = Config::new(Implementation::new("s", "1"), Sealer::encrypted(&ring, "s"));
//! let counters = Arc::new(Counters::and_then(Log));
//! config.observer = Some(counters.clone());
//! // Later, for a page of metrics: names and values.
//! for (name, value) in counters.counts().iter() {
//!     println!("mrtr_{name}_total {value}");
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use mrtr_core::audit::{Event, Observer};

/// The target of all events of [`Log`], to be filtered by.
pub const TARGET: &str = "mrtr::audit";

/// An [`Observer`] that makes a `tracing` event of everything, under the target [`TARGET`].
///
/// | event | level | fields |
/// |---|---|---|
/// | `asked` | info | `exchange` `round` `key` `kind` |
/// | `asked nothing` | info | `exchange` `round` |
/// | `answered` | info | `exchange` `round` `key` `kind` `said` |
/// | `ended` | info | `exchange`, and the `code` of an error |
/// | `diverged` | warn | `exchange` `round` `count`, and the keys `missing` `added` `changed` |
/// | `refused` | warn | `exchange` if the state was authentic, `verdict` |
///
/// Nothing that a person read or wrote is in them, no state and no principal. Keys are the handler's.
#[derive(Clone, Copy, Debug, Default)]
pub struct Log;

impl Observer for Log {
    fn observe(&self, event: &Event<'_>) {
        match *event {
            Event::Asked { exchange, round, key, kind } => {
                tracing::info!(target: TARGET, %exchange, round, key, kind = kind.name(), "asked");
            }
            Event::StateOnly { exchange, round } => {
                tracing::info!(target: TARGET, %exchange, round, "asked nothing");
            }
            Event::Answered { exchange, round, key, kind, said } => {
                let (kind, said) = (kind.name(), said.name());
                tracing::info!(target: TARGET, %exchange, round, key, kind, said, "answered");
            }
            Event::Ended { exchange, error } => match error {
                None => tracing::info!(target: TARGET, %exchange, "ended"),
                Some(code) => tracing::info!(target: TARGET, %exchange, %code, "ended"),
            },
            Event::Diverged { exchange, divergence } => tracing::warn!(
                target: TARGET,
                %exchange,
                round = divergence.round,
                count = divergence.count,
                missing = divergence.missing.join(" "),
                added = divergence.added.join(" "),
                changed = divergence.changed.join(" "),
                "diverged"
            ),
            Event::Refused { exchange, verdict } => match exchange {
                Some(exchange) => tracing::warn!(target: TARGET, %exchange, %verdict, "refused"),
                None => tracing::warn!(target: TARGET, %verdict, "refused"),
            },
            // What a later core tells besides has a line of its own.
            ref other => tracing::info!(target: TARGET, "{other}"),
        }
    }
}
