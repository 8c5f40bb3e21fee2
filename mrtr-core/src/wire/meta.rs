//! `_meta` of a request: the fields every modern request carries (R-032…R-043).

use alloc::{borrow::Cow, string::String};

use super::ClientCapabilities;
use crate::jsonrpc::{Json, JsonKind, Request, RequestId};

/// Names of the protocol's own members of `_meta`.
pub mod key {
    /// The version of this request.
    pub const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
    /// What the client can answer in this request.
    pub const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
    /// Who the client says it is. Never a principal.
    pub const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
    /// Asks for log notifications.
    pub const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
    /// Who the server says it is, in every result.
    pub const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
    /// Which `subscriptions/listen` a notification belongs to.
    pub const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";
    /// Asks for progress notifications.
    pub const PROGRESS_TOKEN: &str = "progressToken";
}

/// Name and version of a client or server.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Implementation {
    /// The name, for programs.
    pub name: String,
    /// The version.
    pub version: String,
    /// The name, for people.
    pub title: Option<String>,
}

impl Implementation {
    /// A name and a version.
    #[must_use]
    pub fn new(name: impl Into<String>, version: impl Into<String>) -> Self {
        Self { name: name.into(), version: version.into(), title: None }
    }

    pub(crate) fn write(&self, out: &mut alloc::vec::Vec<u8>) {
        use crate::jsonrpc::write::string;
        out.extend_from_slice(b"{\"name\":");
        string(out, &self.name);
        out.extend_from_slice(b",\"version\":");
        string(out, &self.version);
        if let Some(title) = &self.title {
            out.extend_from_slice(b",\"title\":");
            string(out, title);
        }
        out.push(b'}');
    }
}

/// Levels of log notifications, least severe first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(clippy::exhaustive_enums)]
pub enum LogLevel {
    /// Detail for debugging.
    Debug,
    /// Ordinary events.
    Info,
    /// Ordinary but significant events.
    Notice,
    /// Something may be wrong.
    Warning,
    /// Something failed.
    Error,
    /// A component failed.
    Critical,
    /// Action is needed at once.
    Alert,
    /// The system is unusable.
    Emergency,
}

impl LogLevel {
    const ALL: [Self; 8] = [
        Self::Debug,
        Self::Info,
        Self::Notice,
        Self::Warning,
        Self::Error,
        Self::Critical,
        Self::Alert,
        Self::Emergency,
    ];

    /// The word on the wire.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Notice => "notice",
            Self::Warning => "warning",
            Self::Error => "error",
            Self::Critical => "critical",
            Self::Alert => "alert",
            Self::Emergency => "emergency",
        }
    }

    /// Reads the word on the wire.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.name() == name)
    }
}

/// `_meta` of a modern request, checked.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RequestMeta<'a> {
    /// `…/protocolVersion` as sent; whether it is served is another question.
    pub protocol_version: Cow<'a, str>,
    /// `…/clientCapabilities`, the part asks depend on.
    pub capabilities: ClientCapabilities,
    /// `…/clientCapabilities` as sent.
    pub raw_capabilities: Json<'a>,
    /// `…/clientInfo` as sent (R-035: never rejected for lack of it).
    pub client_info: Option<Json<'a>>,
    /// `…/logLevel`.
    pub log_level: Option<LogLevel>,
    /// `progressToken`: a string or an integer, as an id is.
    pub progress_token: Option<RequestId>,
    /// The whole object.
    pub raw: Json<'a>,
}

/// What is wrong with `_meta`; the peer gets `-32602`, on HTTP with status 400.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MetaFault {
    /// No `_meta` object.
    #[error("params._meta is missing or not an object")]
    Missing,
    /// No version.
    #[error("params._meta[\"io.modelcontextprotocol/protocolVersion\"] is missing or not a string")]
    ProtocolVersion,
    /// No capabilities.
    #[error(
        "params._meta[\"io.modelcontextprotocol/clientCapabilities\"] is missing or not an object of objects"
    )]
    ClientCapabilities,
    /// An unknown level.
    #[error("params._meta[\"io.modelcontextprotocol/logLevel\"] is not a log level")]
    LogLevel,
    /// A token that is no string or integer.
    #[error("params._meta.progressToken is neither a string nor an integer")]
    ProgressToken,
}

impl<'a> RequestMeta<'a> {
    /// Reads `params._meta` of a request.
    ///
    /// # Errors
    ///
    /// The first fault.
    pub fn from_request(request: &Request<'a>) -> Result<Self, MetaFault> {
        Self::from_json(request.param("_meta"))
    }

    /// Reads `_meta`.
    pub(crate) fn from_json(meta: Option<Json<'a>>) -> Result<Self, MetaFault> {
        let raw = meta.filter(|meta| meta.is_object()).ok_or(MetaFault::Missing)?;
        let (mut version, mut capabilities, mut client_info, mut level, mut token) =
            (None, None, None, None, None);
        for (name, value) in raw.members().into_iter().flatten() {
            match &*name {
                key::PROTOCOL_VERSION => version = Some(value),
                key::CLIENT_CAPABILITIES => capabilities = Some(value),
                key::CLIENT_INFO => client_info = Some(value),
                key::LOG_LEVEL => level = Some(value),
                key::PROGRESS_TOKEN => token = Some(value),
                _ => {}
            }
        }
        let protocol_version = version.and_then(Json::as_string).ok_or(MetaFault::ProtocolVersion)?;
        let raw_capabilities = capabilities.ok_or(MetaFault::ClientCapabilities)?;
        let capabilities =
            ClientCapabilities::from_json(raw_capabilities).ok_or(MetaFault::ClientCapabilities)?;
        let log_level = level
            .map(|level| {
                level.as_string().and_then(|name| LogLevel::from_name(&name)).ok_or(MetaFault::LogLevel)
            })
            .transpose()?;
        let progress_token =
            token.map(|token| RequestId::from_json(token).ok_or(MetaFault::ProgressToken)).transpose()?;
        Ok(Self {
            protocol_version,
            capabilities,
            raw_capabilities,
            client_info: client_info.filter(|info| info.kind() == JsonKind::Object),
            log_level,
            progress_token,
            raw,
        })
    }
}
