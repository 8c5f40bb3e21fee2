//! One call as the embedder describes it, and the part of it that every attempt repeats.

use alloc::{boxed::Box, string::String, vec::Vec};

use super::{Config, text};
use crate::{
    jsonrpc::{Json, Refusal, RequestId},
    wire::{AskingMethod, ClientCapabilities, LogLevel, key},
};

/// A call to make: a method, its parameters, and what is wanted for it.
///
/// `Debug` shows the method and the size of the parameters.
#[derive(Clone)]
pub struct Call<'a> {
    pub(super) method: &'a str,
    pub(super) params: &'a str,
    pub(super) options: Options,
}

/// What is wanted for a call beside its parameters.
#[derive(Clone)]
pub(super) struct Options {
    pub(super) log_level: Option<LogLevel>,
    pub(super) progress: Progress,
    /// Other capabilities than the client's.
    pub(super) capabilities: Option<ClientCapabilities>,
    pub(super) repeat: Repeat,
    pub(super) jitter: u64,
}

/// Which progress token the requests of a call carry.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums)]
pub enum Progress {
    /// None: no progress is wanted.
    Unwanted,
    /// The request's own id: a new token each round, and as unique among active requests as ids are (R-194, G-35).
    RequestId,
    /// This one in every round. Legal, for the former request is over.
    Token(RequestId),
}

/// Whether a call may run twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Repeat {
    Never,
    Allowed,
}

/// Why a call cannot be started. Nothing was appended.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The parameters are no JSON, or break a bound.
    #[error("params: {0}")]
    Params(Refusal),
    /// The parameters are no object.
    #[error("params is not an object")]
    NotAnObject,
    /// `_meta` is no object.
    #[error("params._meta is not an object")]
    Meta,
    /// A member that mrtr writes itself, from the configuration, the options of the call, or the exchange.
    #[error("params.{0} is written by the client itself")]
    Owned(&'static str),
    /// The id cannot be used.
    #[error(transparent)]
    Id(#[from] IdFault),
    /// The request would be over the limit.
    #[error("request of {bytes} bytes is over the limit of {limit} (Limits::message_bytes)")]
    TooLarge {
        /// Bytes of the request.
        bytes: usize,
        /// The bound, in bytes.
        limit: usize,
    },
}

/// Why an id cannot be used for the next request of an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum IdFault {
    /// An earlier request of this exchange had it.
    #[error("an earlier request of this exchange had the same id")]
    Reused,
    /// More than 256 bytes of JSON.
    #[error("an id of {0} bytes is over the limit of 256")]
    TooLong(usize),
}

impl<'a> Call<'a> {
    /// A call of `method` with `params`, the JSON text of an object.
    ///
    /// The members of `params` go out as they are and in their order; then comes `_meta` with the protocol's own
    /// members followed by those that `params._meta` has. Line breaks between tokens are dropped.
    ///
    /// Any method may be called; only `tools/call`, `prompts/get` and `resources/read` may be answered with
    /// questions.
    #[must_use]
    pub fn new(method: &'a str, params: &'a str) -> Self {
        let options = Options {
            log_level: None,
            progress: Progress::Unwanted,
            capabilities: None,
            repeat: Repeat::Never,
            jitter: 0,
        };
        Self { method, params, options }
    }

    /// Asks for log notifications, in every round anew.
    #[must_use]
    pub fn log_level(mut self, level: LogLevel) -> Self {
        self.options.log_level = Some(level);
        self
    }

    /// Asks for progress notifications.
    #[must_use]
    pub fn progress(mut self, progress: Progress) -> Self {
        self.options.progress = progress;
        self
    }

    /// Declares other capabilities than the client's for this call, in all its rounds: none where nobody is
    /// there to answer, those of a host on whose behalf the call is made.
    #[must_use]
    pub fn capabilities(mut self, capabilities: ClientCapabilities) -> Self {
        self.options.capabilities = Some(capabilities);
        self
    }

    /// Says that the call does no harm if it runs twice, so that it may be sent again after its connection
    /// broke ([`Exchange::lost`](super::Exchange::lost), R-096, G-29).
    #[must_use]
    pub fn may_run_twice(mut self) -> Self {
        self.options.repeat = Repeat::Allowed;
        self
    }

    /// Random bits that spread the pauses between state-only rounds (G-06). They need not be secret. The state
    /// itself is mixed in, so calls differ even without them.
    #[must_use]
    pub fn jitter(mut self, seed: u64) -> Self {
        self.options.jitter = seed;
        self
    }
}

impl core::fmt::Debug for Call<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Call({}, {} bytes)", self.method, self.params.len())
    }
}

/// A method's name, without an allocation for the three that matter.
#[derive(Clone, PartialEq, Eq)]
pub(super) enum Method {
    Asking(AskingMethod),
    Other(Box<str>),
}

impl Method {
    pub(super) fn from_name(name: &str) -> Self {
        AskingMethod::from_name(name).map_or_else(|| Self::Other(name.into()), Self::Asking)
    }

    pub(super) fn name(&self) -> &str {
        match self {
            Self::Asking(method) => method.name(),
            Self::Other(name) => name,
        }
    }
}

/// The parameters of a call, checked, in the pieces that every attempt is put together from.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Params {
    /// Members of `params`, each followed by a comma.
    pub(super) members: String,
    /// The caller's members of `params._meta`, each preceded by a comma.
    pub(super) meta: String,
}

impl Params {
    /// Takes the parameters apart.
    pub(super) fn read(json: &str, config: &Config) -> Result<Self, StartError> {
        let object = Json::parse(json, &config.limits).map_err(StartError::Params)?;
        let mut members = Vec::with_capacity(object.as_str().len() + 1);
        let mut meta = Vec::new();
        for member in text::members(object).ok_or(StartError::NotAnObject)? {
            if member.is_called("_meta") {
                for inner in text::members(member.value).ok_or(StartError::Meta)? {
                    if let Some(path) = owned_meta(&inner) {
                        return Err(StartError::Owned(path));
                    }
                    meta.push(b',');
                    inner.write(&mut meta);
                }
                continue;
            }
            for name in ["inputResponses", "requestState"] {
                if member.is_called(name) {
                    return Err(StartError::Owned(name));
                }
            }
            member.write(&mut members);
            members.push(b',');
        }
        Ok(Self { members: text::into_string(members), meta: text::into_string(meta) })
    }

    /// The parameters as [`Params::read`] takes them apart again.
    pub(super) fn put_together(&self) -> String {
        match self.meta.strip_prefix(',') {
            None => alloc::format!("{{{}}}", self.members.strip_suffix(',').unwrap_or("")),
            Some(meta) => alloc::format!("{{{}\"_meta\":{{{meta}}}}}", self.members),
        }
    }
}

/// The path of a member of `_meta` that the caller must not give.
fn owned_meta(member: &text::Member<'_>) -> Option<&'static str> {
    let owned = [
        (key::PROTOCOL_VERSION, "_meta[\"io.modelcontextprotocol/protocolVersion\"]"),
        (key::CLIENT_CAPABILITIES, "_meta[\"io.modelcontextprotocol/clientCapabilities\"]"),
        (key::CLIENT_INFO, "_meta[\"io.modelcontextprotocol/clientInfo\"]"),
        (key::LOG_LEVEL, "_meta[\"io.modelcontextprotocol/logLevel\"]"),
        (key::PROGRESS_TOKEN, "_meta.progressToken"),
    ];
    owned.into_iter().find(|(name, _)| member.is_called(name)).map(|(_, path)| path)
}
