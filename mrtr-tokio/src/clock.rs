//! The wall clock and the random source: what the pure core takes as arguments.

use std::time::Duration;

use mrtr_core::{Entropy, Timestamp};
use tokio::time::Instant;

/// Where the time comes from.
///
/// ```
/// use mrtr_tokio::clock::Clock;
///
/// let clock = Clock::system();
/// assert!(clock.now().as_unix_millis() > 1_700_000_000_000);
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Clock(Source);

#[derive(Clone, Copy, Debug, Default)]
enum Source {
    #[default]
    System,
    Tokio {
        base: Timestamp,
        start: Instant,
    },
}

impl Clock {
    /// The system's clock.
    #[must_use]
    pub const fn system() -> Self {
        Self(Source::System)
    }

    /// Follows tokio's own time, from `base` on: under paused time it stands still, too. For tests.
    #[must_use]
    pub fn tokio(base: Timestamp) -> Self {
        Self(Source::Tokio { base, start: Instant::now() })
    }

    /// Now.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        match self.0 {
            // The one place where the clock is read.
            #[allow(clippy::disallowed_methods)]
            Source::System => {
                let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
                let millis = since.unwrap_or_default().as_millis();
                Timestamp::from_unix_millis(u64::try_from(millis).unwrap_or(u64::MAX))
            }
            Source::Tokio { base, start } => base.saturating_add(start.elapsed()),
        }
    }

    /// How long it is until `at`; zero if it is over.
    #[must_use]
    pub fn until(&self, at: Timestamp) -> Duration {
        at.saturating_since(self.now())
    }
}

/// 32 bytes from the system's random source.
///
/// # Errors
///
/// If the system has none to give, which on the systems that tokio runs on does not happen after boot.
pub fn entropy() -> std::io::Result<Entropy> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(std::io::Error::from)?;
    Ok(Entropy::new(bytes))
}
