//! From bytes to a request whose envelope is in order: the check order of R-170.

use alloc::{borrow::Cow, string::String};

use super::{Call, Rejected, RoundEnv, Server, reject::RejectReason};
use crate::{
    digest::RequestDigest,
    error::{ErrorCode, RpcError},
    http::{self, ReplyClass},
    jsonrpc::{self, Json, JsonKind, Message, Notification, Parts, Request},
    wire::{AskingMethod, Era, RequestMeta, Version},
};

/// What a message turned out to be, before any state is opened.
#[derive(Debug)]
#[non_exhaustive]
pub enum Incoming<'a> {
    /// `tools/call`, `prompts/get` or `resources/read`.
    Call(Call<'a>),
    /// Another request.
    Other(Plain<'a>),
    /// A notification.
    Notification(Notification<'a>),
    /// Refused.
    Rejected(Rejected),
}

/// A request of a method that never asks. `inputResponses` and `requestState` on it are not looked
/// at (G-12).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Plain<'a> {
    /// The request.
    pub request: Request<'a>,
    /// Its `_meta`.
    pub meta: RequestMeta<'a>,
}

impl Server {
    /// Reads one message as far as it can be judged without a handler: admission, `_meta`, headers, version.
    ///
    /// The order is that of R-170: a version header must be there, `_meta` complete, both equal, the version
    /// served, then the other headers must agree with the body. On a pipe there are no headers.
    #[must_use]
    pub fn read<'a>(&self, input: &'a [u8], env: RoundEnv<'a>) -> Incoming<'a> {
        self.read_message(jsonrpc::admit(input, &self.config().limits), env)
    }

    /// The same for a message that was admitted before, within the bounds of this server's
    /// [limits](crate::server::Config::limits): see [`Admission`](jsonrpc::Admission).
    #[must_use]
    pub fn read_message<'a>(
        &self,
        message: Result<Message<'a>, jsonrpc::Refused>,
        env: RoundEnv<'a>,
    ) -> Incoming<'a> {
        match message {
            Ok(Message::Request(request)) => {
                let params = request.parts();
                match self.check(&request, &params, &env) {
                    Ok(meta) => self.sort(request, meta, &params, env),
                    Err((error, class)) => Incoming::Rejected(Rejected::new(
                        Some(request.id),
                        error,
                        class,
                        RejectReason::Envelope,
                    )),
                }
            }
            Ok(Message::Notification(notification)) => {
                // What headers were sent with it must be true; none is required (G-49).
                match env.headers.map(|headers| http::check_notification(headers, &notification)).transpose()
                {
                    Ok(_) => Incoming::Notification(notification),
                    Err(fault) => {
                        let (error, class) = (fault.error(), ReplyClass::HeaderMismatch);
                        Incoming::Rejected(Rejected::new(None, error, class, RejectReason::Envelope))
                    }
                }
            }
            Ok(Message::Response(_)) => Incoming::Rejected(Rejected::silent(
                RpcError::new(
                    ErrorCode::INVALID_REQUEST,
                    "Invalid request: no request of this server is open",
                ),
                ReplyClass::InvalidRequest,
                RejectReason::UnaskedResponse,
            )),
            Err(refused) => {
                let (error, reason) = (refused.error(), RejectReason::NotAdmitted(refused.reason));
                let class = ReplyClass::from(&refused);
                Incoming::Rejected(if refused.wants_answer() {
                    Rejected::new(refused.id, error, class, reason)
                } else {
                    Rejected::silent(error, class, reason)
                })
            }
        }
    }

    fn check<'a>(
        &self,
        request: &Request<'a>,
        params: &Parts<'a>,
        env: &RoundEnv<'_>,
    ) -> Result<RequestMeta<'a>, (RpcError, ReplyClass)> {
        let mismatch = |fault: http::HeaderMismatch| (fault.error(), ReplyClass::HeaderMismatch);
        // A peer of an older era opens like this; it learns what is served instead of what is missing.
        if request.method == "initialize"
            && params.meta.and_then(|meta| meta.get(crate::wire::key::PROTOCOL_VERSION)).is_none()
        {
            let requested = request.param("protocolVersion").and_then(Json::as_string);
            return Err((
                self.unsupported(requested.as_deref().unwrap_or("")),
                ReplyClass::UnsupportedVersion,
            ));
        }
        let version = env.headers.map(http::check_version_present).transpose().map_err(mismatch)?;
        // The same for one that goes on as if it had been opened: its version is in the header alone.
        if let Some(version) = version
            && params.meta.and_then(|meta| meta.get(crate::wire::key::PROTOCOL_VERSION)).is_none()
            && Version::from_name(version).is_some_and(|version| version.era() != Era::Modern)
        {
            return Err((self.unsupported(version), ReplyClass::UnsupportedVersion));
        }
        let meta = RequestMeta::from_json(params.meta).map_err(|fault| {
            (RpcError::invalid_params(alloc::format!("Invalid params: {fault}")), ReplyClass::MetaInvalid)
        })?;
        version.map_or(Ok(()), |version| http::check_version_matches(version, &meta)).map_err(mismatch)?;
        let served = Version::from_name(&meta.protocol_version);
        // An older version has no `_meta` of this kind: a server that lists one serves it by `initialize`.
        let served = served.filter(|version| version.era() == Era::Modern);
        if !served.is_some_and(|version| self.config().versions.contains(&version)) {
            return Err((self.unsupported(&meta.protocol_version), ReplyClass::UnsupportedVersion));
        }
        if let Some(headers) = env.headers {
            http::check_standard(headers, request).map_err(mismatch)?;
        }
        Ok(meta)
    }

    /// `-32022` with what is served and what was asked for.
    fn unsupported(&self, requested: &str) -> RpcError {
        let mut requested_json = alloc::vec::Vec::new();
        let shown: String = requested.chars().take(64).collect();
        jsonrpc::write::string(&mut requested_json, &shown);
        let requested_json = String::from_utf8(requested_json).unwrap_or_default();
        let data =
            alloc::format!("{{\"supported\":{},\"requested\":{requested_json}}}", self.version_names());
        RpcError::new(ErrorCode::UNSUPPORTED_VERSION, "Unsupported protocol version").with_raw_data(data)
    }

    fn sort<'a>(
        &self,
        request: Request<'a>,
        meta: RequestMeta<'a>,
        params: &Parts<'a>,
        env: RoundEnv<'a>,
    ) -> Incoming<'a> {
        let Some(method) = AskingMethod::from_name(&request.method) else {
            return Incoming::Other(Plain { request, meta });
        };
        match CallParams::read(method, params, self.config().limits.state_minted) {
            Ok(params) => Incoming::Call(Call::new(self.clone(), request, meta, method, params, env)),
            Err(message) => Incoming::Rejected(Rejected::new(
                Some(request.id),
                RpcError::invalid_params(message),
                ReplyClass::HandlerError,
                RejectReason::Params,
            )),
        }
    }
}

/// The parameters of a request that may ask, checked for their shape (B-45, G-05).
#[derive(Clone, Debug)]
pub(super) struct CallParams<'a> {
    pub(super) target: Cow<'a, str>,
    pub(super) arguments: Option<Json<'a>>,
    pub(super) digest: RequestDigest,
    pub(super) responses: Option<Json<'a>>,
    pub(super) state: Option<Cow<'a, str>>,
}

impl<'a> CallParams<'a> {
    fn read(method: AskingMethod, params: &Parts<'a>, longest: usize) -> Result<Self, String> {
        let &Parts { name, uri, arguments, responses, state, .. } = params;
        let target = match method {
            AskingMethod::ToolsCall | AskingMethod::PromptsGet => name,
            AskingMethod::ResourcesRead => uri,
        };
        let wrong = |path: &str, what: &str| alloc::format!("Invalid params: {path} is not {what}");
        let target =
            target.and_then(Json::as_string).ok_or_else(|| wrong(method.target_param(), "a string"))?;
        if arguments.is_some_and(|value| !value.is_object()) {
            return Err(wrong("arguments", "an object"));
        }
        if responses.is_some_and(|value| !value.is_object()) {
            return Err(wrong("inputResponses", "an object"));
        }
        let state = match state {
            None => None,
            Some(value) => Some(token(value, longest).ok_or_else(|| wrong("requestState", "a string"))?),
        };
        let digest = RequestDigest::new(method.name(), &target, arguments)
            .map_err(|fault| alloc::format!("Invalid params: arguments: {fault}"))?;
        Ok(Self { target, arguments, digest, responses, state })
    }
}

/// A state as text. One that is longer than `longest` characters however its escapes are read (each character is at most
/// six) is not decoded: it is refused by its length, and costs no memory.
fn token(value: Json<'_>, longest: usize) -> Option<Cow<'_, str>> {
    let raw = value.as_str();
    if value.kind() == JsonKind::String && raw.len() > 2 + longest.saturating_mul(6) {
        return Some(Cow::Borrowed(raw));
    }
    value.as_string()
}
