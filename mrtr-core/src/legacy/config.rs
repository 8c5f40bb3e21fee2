//! What a server allows sessions of the legacy eras.

use alloc::vec::Vec;
use core::time::Duration;

use crate::wire::{Era, Version};

/// Bounds of sessions, and which legacy revisions are served. Every bound is inclusive.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Config {
    /// The revisions served. Default: 2025-11-25, 2025-06-18, 2025-03-26. Modern ones are passed over.
    pub versions: Vec<Version>,
    /// Calls that may run in one session at a time. Default 16.
    pub calls: usize,
    /// How long a call whose stream is gone waits for it to be resumed, before its questions end; and how long
    /// what was sent on a stream is kept to be sent again. Default 30 s.
    pub resume: Duration,
    /// How long a session may rest: nothing sent to it, no call running, no stream open. Default 30 min.
    pub idle: Duration,
    /// Sessions in all. Default 10,000.
    pub sessions: usize,
    /// Sessions of one authenticated principal. Default 64. Anonymous callers cannot be told apart and share only
    /// the bound of all.
    pub sessions_per_principal: usize,
    /// Resources one session may subscribe to. Default 1,000.
    pub subscriptions: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            versions: alloc::vec![Version::V2025_11_25, Version::V2025_06_18, Version::V2025_03_26],
            calls: 16,
            resume: Duration::from_secs(30),
            idle: Duration::from_secs(30 * 60),
            sessions: 10_000,
            sessions_per_principal: 64,
            subscriptions: 1_000,
        }
    }
}

impl Config {
    /// The revision for a client that asked for `requested`: that one if it is served, else our newest
    /// . `None` if no legacy revision is served.
    pub(crate) fn negotiate(&self, requested: Option<Version>) -> Option<Version> {
        let served = || self.versions.iter().copied().filter(|version| version.era() == Era::Legacy);
        served().find(|version| Some(*version) == requested).or_else(|| served().max())
    }

    pub(crate) fn serves(&self, version: Version) -> bool {
        version.era() == Era::Legacy && self.versions.contains(&version)
    }
}
