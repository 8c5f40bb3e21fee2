//! Processes that were told to end and have not: as long as there are too many, another one does not start.
//!
//! The core gives a place in its pool back when it closes a session. A process may take its whole grace after that, and a
//! pool that is used up again and again would run any number of them.

use std::collections::{BTreeMap, VecDeque};

use mrtr_core::bridge::LinkId;

/// By upstream.
#[derive(Default)]
pub(super) struct Leaving {
    going: BTreeMap<usize, usize>,
    held: VecDeque<(LinkId, usize)>,
}

impl Leaving {
    /// A process was told to end.
    pub(super) fn begin(&mut self, upstream: usize) {
        *self.going.entry(upstream).or_default() += 1;
    }

    /// It has. Gives the connection that has waited longest for it.
    pub(super) fn ended(&mut self, upstream: usize) -> Option<LinkId> {
        if let Some(going) = self.going.get_mut(&upstream) {
            *going = going.saturating_sub(1);
        }
        let place = self.held.iter().position(|(_, of)| *of == upstream)?;
        self.held.remove(place).map(|(link, _)| link)
    }

    /// Whether as many are going as may run at a time; then `link` waits for one of them.
    pub(super) fn hold(&mut self, link: LinkId, upstream: usize, processes: usize) -> bool {
        let full = self.going.get(&upstream).is_some_and(|going| *going >= processes.max(1));
        if full {
            self.held.push_back((link, upstream));
        }
        full
    }

    /// It waits no longer.
    pub(super) fn forget(&mut self, link: LinkId) {
        self.held.retain(|(held, _)| *held != link);
    }
}
