//! What a client says of itself, and how it behaves.

use alloc::{boxed::Box, string::String, vec::Vec};

use super::{Policy, text};
use crate::{
    jsonrpc::{Json, Refusal, write},
    limits::Limits,
    wire::{ClientCapabilities, Era, Implementation, Version},
};

/// Everything a [`Client`](super::Client) is made from.
#[derive(Clone, Debug)]
pub struct Config {
    pub(super) info: Option<Implementation>,
    pub(super) capabilities: ClientCapabilities,
    /// Further members of the capabilities object, each followed by a comma.
    pub(super) members: String,
    pub(super) versions: Vec<Version>,
    pub(super) result_types: Vec<Box<str>>,
    pub(super) limits: Limits,
    pub(super) policy: Policy,
    pub(super) channel: Channel,
}

/// How messages of the peer reach an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums)]
pub enum Channel {
    /// One pipe carries many requests (stdio): replies are told apart by their ids, and a request is cancelled
    /// by a message.
    Shared,
    /// Each request has a stream of its own (HTTP): whatever comes there belongs to it, an error without an id
    /// too, and a request is cancelled by closing the stream.
    Own,
}

/// Why a configuration is not possible.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// Text that is no JSON, or breaks a bound.
    #[error("capability members: {0}")]
    Json(Refusal),
    /// Not an object.
    #[error("capability members are not an object")]
    NotAnObject,
    /// A member that [`ClientCapabilities`] decides.
    #[error("capability member {0:?} is declared by ClientCapabilities")]
    Typed(&'static str),
    /// No version, or one of the era in which a server asks over a held connection.
    #[error("a client of this kind speaks versions from 2026-07-28 on, and at least one")]
    Versions,
}

impl Config {
    /// A client that says who it is and what it can answer.
    ///
    /// Declare only what the loop around the exchange can serve: asks of other kinds are refused before
    /// anybody sees them, and a server will not send them.
    #[must_use]
    pub fn new(info: Implementation, capabilities: ClientCapabilities) -> Self {
        Self { info: Some(info), ..Self::nameless(capabilities) }
    }

    /// A client that does not say who it is.
    #[must_use]
    pub fn nameless(capabilities: ClientCapabilities) -> Self {
        Self {
            info: None,
            capabilities,
            members: String::new(),
            versions: Vec::from([Version::LATEST]),
            result_types: Vec::new(),
            limits: Limits::default(),
            policy: Policy::default(),
            channel: Channel::Shared,
        }
    }

    /// Other bounds.
    #[must_use]
    pub fn limits(self, limits: Limits) -> Self {
        Self { limits, ..self }
    }

    /// Another policy.
    #[must_use]
    pub fn policy(self, policy: Policy) -> Self {
        Self { policy, ..self }
    }

    /// How messages reach the exchanges. Default: [`Channel::Shared`].
    #[must_use]
    pub fn channel(self, channel: Channel) -> Self {
        Self { channel, ..self }
    }

    /// Further members of `clientCapabilities` (`extensions`, `experimental`): JSON text of an object, kept as
    /// it is. Replaces those given before.
    ///
    /// # Errors
    ///
    /// If the text is no JSON object within the limits, or has a member that [`ClientCapabilities`] decides.
    pub fn capability_members(mut self, json: &str) -> Result<Self, ConfigError> {
        let object = Json::parse(json, &self.limits).map_err(ConfigError::Json)?;
        let members = text::members(object).ok_or(ConfigError::NotAnObject)?;
        let mut kept = Vec::new();
        for member in members {
            let typed = ["elicitation", "sampling", "roots"];
            if let Some(name) = typed.into_iter().find(|name| member.is_called(name)) {
                return Err(ConfigError::Typed(name));
            }
            member.write(&mut kept);
            kept.push(b',');
        }
        self.members = text::into_string(kept);
        Ok(self)
    }

    /// The versions to speak, best first. Default: the latest one.
    ///
    /// # Errors
    ///
    /// If there is none, or one is of the legacy era.
    pub fn versions(self, versions: &[Version]) -> Result<Self, ConfigError> {
        if versions.is_empty() || versions.iter().any(|version| version.era() == Era::Legacy) {
            return Err(ConfigError::Versions);
        }
        Ok(Self { versions: versions.to_vec(), ..self })
    }

    /// A `resultType` of an extension that was declared with [`Config::capability_members`]. A result
    /// of that type ends the exchange like a complete one.
    #[must_use]
    pub fn result_type(mut self, name: &str) -> Self {
        self.result_types.push(name.into());
        self
    }

    /// The capabilities object of a client with these typed capabilities.
    pub(super) fn declared(&self, capabilities: ClientCapabilities) -> String {
        let mut json = capabilities.to_json();
        if !self.members.is_empty() {
            let typed = json.len() > 2;
            json.pop();
            if typed {
                json.push(',');
            }
            json.push_str(self.members.strip_suffix(',').unwrap_or(&self.members));
            json.push('}');
        }
        json
    }

    /// `"…/clientInfo":{…},` or nothing.
    pub(super) fn client_info(&self) -> String {
        let mut out = Vec::new();
        if let Some(info) = &self.info {
            write::string(&mut out, crate::wire::key::CLIENT_INFO);
            out.push(b':');
            info.write(&mut out);
            out.push(b',');
        }
        text::into_string(out)
    }
}
