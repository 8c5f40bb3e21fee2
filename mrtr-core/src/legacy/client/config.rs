//! What a client promises a session, and how much of it there may be.

use alloc::{string::String, vec::Vec};
use core::time::Duration;

use crate::{
    Limits,
    client::text,
    jsonrpc::{Json, write},
    wire::{ClientCapabilities, Era, Implementation, Version},
};

/// How a [`ClientSession`](super::ClientSession) behaves. Every bound is inclusive.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ClientConfig {
    /// Who the client says it is.
    pub info: Implementation,
    /// What is promised for the whole session. The version that is settled on narrows what may be asked
    /// . Promise only what can be served.
    pub capabilities: ClientCapabilities,
    /// Further members of the capabilities object, each followed by a comma.
    pub(crate) members: String,
    /// The revisions spoken, best first; modern ones are passed over. Default: 2025-11-25, 2025-06-18, 2025-03-26.
    pub versions: Vec<Version>,
    /// Bounds of messages; `asks_accepted` is how many asks may wait for their answers at a time, and one more is
    /// refused with `-32603`.
    pub limits: Limits,
    /// Requests under way at a time. Default 64.
    pub calls: usize,
    /// What becomes of an ask that no request under way may have caused. Default: [`Unsolicited::Refuse`].
    pub unsolicited: Unsolicited,
    /// How long a request may go without a reply or progress. The time in which one of its asks waits for its answer
    /// does not count (R-232, B-62). Default 60 s.
    pub request_timeout: Duration,
    /// How long a request may take even with progress, the time of its asks not counted. Default 600 s.
    pub request_longest: Duration,
    /// The id of the first request; later ones count up from there. Default 1.
    pub first_id: i64,
    /// Events that wait to be polled; notifications beyond it are dropped. Default 256.
    pub events: usize,
}

/// What becomes of an ask while nothing that may ask is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums)]
pub enum Unsolicited {
    /// It is refused with `-32602`.
    Refuse,
    /// `roots/list` is passed on, for many servers ask it right after the handshake; others are refused.
    RootsOnly,
    /// It is passed on.
    Allow,
}

impl ClientConfig {
    /// A client that says who it is and what it can answer.
    #[must_use]
    pub fn new(info: Implementation, capabilities: ClientCapabilities) -> Self {
        Self {
            info,
            capabilities,
            members: String::new(),
            versions: Vec::from([Version::V2025_11_25, Version::V2025_06_18, Version::V2025_03_26]),
            limits: Limits::default(),
            calls: 64,
            unsolicited: Unsolicited::Refuse,
            request_timeout: Duration::from_secs(60),
            request_longest: Duration::from_secs(600),
            first_id: 1,
            events: 256,
        }
    }

    /// Further members of the capabilities object (`experimental`): those of `object` that
    /// [`ClientCapabilities`] does not decide, kept as they are. Replaces those given before.
    #[must_use]
    pub fn capability_members(mut self, object: Json<'_>) -> Self {
        let mut kept = Vec::new();
        for member in text::members(object).into_iter().flatten() {
            if !["elicitation", "sampling", "roots"].into_iter().any(|typed| member.is_called(typed)) {
                member.write(&mut kept);
                kept.push(b',');
            }
        }
        self.members = text::into_string(kept);
        self
    }

    /// The best version, for the handshake.
    pub(super) fn best(&self) -> Option<Version> {
        self.versions.iter().copied().find(|version| version.era() == Era::Legacy)
    }

    pub(super) fn speaks(&self, version: Version) -> bool {
        version.era() == Era::Legacy && self.versions.contains(&version)
    }

    /// Appends the parameters of `initialize`.
    pub(super) fn write_opening(&self, version: Version, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"protocolVersion\":");
        write::string(out, version.name());
        out.extend_from_slice(b",\"capabilities\":");
        let typed = super::super::revision::effective(self.capabilities, version).to_json();
        match self.members.strip_suffix(',') {
            None => out.extend_from_slice(typed.as_bytes()),
            Some(members) => {
                let open = typed.strip_suffix('}').unwrap_or("{");
                out.extend_from_slice(open.as_bytes());
                if open.len() > 1 {
                    out.push(b',');
                }
                out.extend_from_slice(members.as_bytes());
                out.push(b'}');
            }
        }
        out.extend_from_slice(b",\"clientInfo\":");
        self.info.write(out);
        out.push(b'}');
    }
}
