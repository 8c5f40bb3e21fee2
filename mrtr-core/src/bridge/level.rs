//! What is logged in a session with a legacy upstream: said before the call that it is for (BT-8).

use alloc::vec::Vec;
use core::time::Duration;

use super::{
    Bridge, LinkId,
    link::{Link, Purpose},
    relay::head,
};
use crate::{jsonrpc::write, time::Timestamp, wire::LogLevel};

/// How long an upstream may take to say that it has set a level. Then it is sent the call all the same: what it logs
/// matters less.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);

impl Bridge {
    /// What the calls want to hear that are on a connection; the most that one of them wants.
    pub(super) fn wanted_on(&mut self, link: LinkId) -> Option<LogLevel> {
        let session = self.links.get_mut(&link).and_then(Link::session)?;
        let calls = session.in_flight.clone();
        let calls = calls.iter().filter_map(|id| self.sent.get(id)?.parked());
        calls.filter_map(|call| self.wanted_level(call)).min()
    }

    /// Has the upstream log what is wanted, if it does not yet.
    pub(super) fn set_session_level(&mut self, link: LinkId, level: LogLevel, now: Timestamp) {
        let Some(session) = self.links.get_mut(&link).and_then(Link::session) else { return };
        if session.level == Some(level) {
            return;
        }
        session.level = Some(level);
        let id = self.fresh_id();
        let mut bytes = head(id, "logging/setLevel");
        bytes.extend_from_slice(b"{\"level\":");
        write::string(&mut bytes, level.name());
        bytes.extend_from_slice(b"}}");
        self.send(link, id, bytes, Vec::new(), Purpose::Level, now);
    }
}
