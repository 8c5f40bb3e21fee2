//! How a connection behaves, and what is remembered of servers.

use alloc::{collections::BTreeMap, string::String, vec::Vec};
use core::time::Duration;

use crate::{
    legacy::client::Unsolicited,
    wire::{Era, Version},
};

/// How a [`Connection`](super::Connection) behaves, beside its [`Config`](super::super::Config). Every bound is
/// inclusive.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ConnectionConfig {
    /// The server's era, if it is known from an earlier connection. A wrong one is found out.
    pub era: Option<Era>,
    /// The legacy revisions spoken, best first. None: the connection is modern whatever the server says. Default:
    /// 2025-11-25, 2025-06-18, 2025-03-26.
    pub legacy: Vec<Version>,
    /// How long a server on a pipe may take to say something to `server/discover`, before it is taken for a legacy one
    /// . A reply that comes later is still understood. Default 5 s.
    pub probe: Duration,
    /// Calls under way at a time; those that wait for answers are not under way. Default 256.
    pub calls: usize,
    /// Questions that a legacy server may ask in one call. Default 64.
    pub asks_per_call: u32,
    /// What becomes of asks of a legacy server that belong to no call. Default: roots are listed, other asks refused.
    pub unsolicited: Unsolicited,
    /// Events that wait to be polled; notifications beyond it are dropped. Default 256.
    pub events: usize,
}

impl Default for ConnectionConfig {
    fn default() -> Self {
        Self {
            era: None,
            legacy: Vec::from([Version::V2025_11_25, Version::V2025_06_18, Version::V2025_03_26]),
            probe: Duration::from_secs(5),
            calls: 256,
            asks_per_call: 64,
            unsolicited: Unsolicited::RootsOnly,
            events: 256,
        }
    }
}

/// The eras of servers, by process or origin. Bounded: when it is full, the one that was learned first goes.
#[derive(Clone, Debug)]
pub struct EraCache {
    limit: usize,
    next: u64,
    eras: BTreeMap<String, (u64, Era)>,
}

impl EraCache {
    /// A cache of at most `limit` servers.
    #[must_use]
    pub const fn new(limit: usize) -> Self {
        Self { limit, next: 0, eras: BTreeMap::new() }
    }

    /// The era of a server.
    #[must_use]
    pub fn get(&self, origin: &str) -> Option<Era> {
        self.eras.get(origin).map(|(_, era)| *era)
    }

    /// Learns the era of a server, from [`Event::Era`](super::Event::Era).
    pub fn learn(&mut self, origin: &str, era: Era) {
        let number = self.next;
        self.next += 1;
        self.eras.insert(origin.into(), (number, era));
        if self.eras.len() > self.limit {
            let oldest = self.eras.iter().min_by_key(|(_, (number, _))| *number);
            if let Some(oldest) = oldest.map(|(origin, _)| origin.clone()) {
                self.eras.remove(&oldest);
            }
        }
    }
}
