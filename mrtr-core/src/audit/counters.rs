//! Counts of what happens, for a page of metrics.

use alloc::{boxed::Box, sync::Arc};
use core::sync::atomic::{AtomicUsize, Ordering};

use super::{Event, Observer, Said};

macro_rules! counts {
    ($($(#[$doc:meta])+ $name:ident,)+) => {
        /// How often what has happened. They only rise; each is read by itself, so their sums may be off by what
        /// happens meanwhile.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct Counts {
            $($(#[$doc])+ pub $name: u64,)+
        }

        // Words of the machine: 64-bit atomics are not everywhere.
        #[derive(Debug, Default)]
        struct Atomics {
            $($name: AtomicUsize,)+
        }

        impl Atomics {
            fn read(&self) -> Counts {
                Counts { $($name: u64::try_from(self.$name.load(Ordering::Relaxed)).unwrap_or(u64::MAX),)+ }
            }
        }

        impl Counts {
            /// Names and values, for whatever exposes them.
            pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
                [$((stringify!($name), self.$name),)+].into_iter()
            }
        }
    };
}

counts! {
    /// Questions sent.
    asked,
    /// State-only rounds sent.
    state_only,
    /// Accepts.
    accepted,
    /// Declines.
    declined,
    /// Cancels.
    cancelled,
    /// Models' messages and roots.
    results,
    /// Answers whose content did not fit.
    invalid,
    /// Optional questions that could not be asked.
    unavailable,
    /// Urls consented to whose errand was not done.
    not_yet,
    /// Questions that a client of a legacy revision answered with an error of its own.
    errors,
    /// Divergences.
    diverged,
    /// Requests that ended with a result.
    completed,
    /// Requests that ended with an error.
    failed,
    /// States refused.
    refused,
}

/// An [`Observer`] that counts, and may tell another.
#[derive(Debug, Default)]
pub struct Counters {
    atomics: Atomics,
    next: Option<Box<dyn Observer>>,
}

impl Counters {
    /// Counts.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Counts, then tells `next`.
    #[must_use]
    pub fn and_then(next: impl Observer + 'static) -> Self {
        Self { atomics: Atomics::default(), next: Some(Box::new(next)) }
    }

    /// The counts as they are.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.atomics.read()
    }
}

impl Observer for Counters {
    fn observe(&self, event: &Event<'_>) {
        let all = &self.atomics;
        let counter = match event {
            Event::Asked { .. } => &all.asked,
            Event::StateOnly { .. } => &all.state_only,
            Event::Answered { said, .. } => match said {
                Said::Accept => &all.accepted,
                Said::Decline => &all.declined,
                Said::Cancel => &all.cancelled,
                Said::Result => &all.results,
                Said::Invalid => &all.invalid,
                Said::Unavailable => &all.unavailable,
                Said::NotYet => &all.not_yet,
                Said::Refused => &all.errors,
            },
            Event::Diverged { .. } => &all.diverged,
            Event::Ended { error: None, .. } => &all.completed,
            Event::Ended { error: Some(_), .. } => &all.failed,
            Event::Refused { .. } => &all.refused,
        };
        counter.fetch_add(1, Ordering::Relaxed);
        if let Some(next) = &self.next {
            next.observe(event);
        }
    }
}

impl<T: Observer + ?Sized> Observer for Arc<T> {
    fn observe(&self, event: &Event<'_>) {
        (**self).observe(event);
    }
}
