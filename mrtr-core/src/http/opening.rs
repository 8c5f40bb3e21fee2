//! Which era a message of an HTTP request belongs to, at an endpoint that serves both (R-052, G-44).

use super::headers::{Headers, Single, is_present, name, single};
use crate::{
    jsonrpc::Message,
    wire::{Era, Version, key},
};

/// How a message opens: by it a dual-era server decides how to handle it, for each message anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums)]
pub enum Opening {
    /// Stateless handling, with the checks of this module. Also what is meant to be modern and is not quite:
    /// those checks say what it lacks.
    Modern,
    /// A session of 2025-11-25 or before, or the `initialize` that begins one.
    Legacy,
    /// Nothing says a version. A server of 2025-03-26 takes it as that; others refuse it with `-32020`,
    /// as [`check_version_present`](super::check_version_present) does.
    Unversioned,
}

impl Opening {
    /// Judges one message by what it says of itself. In this order:
    ///
    /// | found | opening |
    /// |---|---|
    /// | `_meta` with a protocol version of any kind, even in an `initialize` | modern |
    /// | a session id, or a version header of the legacy era | legacy |
    /// | any other version header | modern |
    /// | `initialize` | legacy |
    /// | nothing | unversioned |
    #[must_use]
    pub fn judge<H: Headers + ?Sized>(headers: &H, message: &Message<'_>) -> Self {
        let (method, params) = match message {
            Message::Request(request) => (&*request.method, request.params),
            Message::Notification(notification) => (&*notification.method, notification.params),
            Message::Response(_) => ("", None),
        };
        if params.and_then(|params| params.get("_meta")?.get(key::PROTOCOL_VERSION)).is_some() {
            return Self::Modern;
        }
        if is_present(headers, name::SESSION_ID) {
            return Self::Legacy;
        }
        match single(headers, name::PROTOCOL_VERSION) {
            Single::One(version) if is_legacy(version) => Self::Legacy,
            Single::One(_) | Single::Conflicting => Self::Modern,
            Single::Absent if method == "initialize" => Self::Legacy,
            Single::Absent => Self::Unversioned,
        }
    }
}

fn is_legacy(version: &[u8]) -> bool {
    let version = core::str::from_utf8(version).ok().and_then(Version::from_name);
    version.is_some_and(|version| version.era() == Era::Legacy)
}
