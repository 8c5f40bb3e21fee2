//! One request, one response: all four ways. What the bridge does not own goes through byte for byte (R-258, B-68,
//! W-03): it owns the id, the protocol's members of `_meta`, progress tokens, states, and with several upstreams the
//! names of tools and the messages of questions.

mod notes;
mod pair;
mod response;

pub(super) use notes::progress;
pub(super) use response::result_error;

use super::{
    Bridge, HostId, HostStream, LinkId, Sent,
    host::{Modern, Open},
    link::{Link, Purpose, Then},
    pool::{Want, What},
    state::{Bound, Carried},
};
use crate::{
    digest::RequestDigest,
    error::{ErrorCode, RpcError},
    http::ReplyClass,
    jsonrpc::{Json, Notification, Parts, Request, RequestId, write},
    seal::{ExchangeId, NewClaims, SealError, Verdict},
    time::Timestamp,
    translate::{
        Edit, Keep, ModernMeta, Tail, edit_object, error_to_legacy, error_to_modern, lacking_to_modern,
        params_to_legacy, params_to_modern, result_to_legacy, result_to_modern, write_message,
    },
    wire::{
        AskKind, AskingMethod, ClientCapabilities, Era, InputRequest, LogLevel, ResultFault, ResultKind,
        Version, key, read_result,
    },
};
use alloc::{borrow::Cow, boxed::Box, format, string::String, vec::Vec};

/// A host's request that one upstream request answers.
pub(super) struct Relay {
    pub(super) host: HostId,
    pub(super) id: RequestId,
    pub(super) method: Cow<'static, str>,
    pub(super) upstream: usize,
    /// The revision of a legacy host.
    version: Option<Version>,
    upstream_era: Era,
    progress: Option<RequestId>,
    level: Option<LogLevel>,
    /// What the host can answer.
    can: ClientCapabilities,
    asking: Option<Asking>,
    /// What is called, where the inbox may show it.
    target: Option<Box<str>>,
}

/// What the next state is sealed with.
struct Asking {
    digest: Digest,
    exchange: Option<(ExchangeId, u32, Timestamp)>,
    /// The request as it was sent, for the one repetition after `-32020`.
    repeat: Option<Vec<u8>>,
}

/// An upstream's state, and what the wrapping state said of itself.
type Unwrapped = (Option<Box<str>>, (ExchangeId, u32, Timestamp));

/// What a state is bound to. Most calls end without a question: it is taken when one comes.
enum Digest {
    Known([u8; 32]),
    Later { method: AskingMethod, target: Box<str>, arguments: Option<Box<str>> },
}

impl Digest {
    fn later(method: AskingMethod, parts: &Parts<'_>) -> Result<Self, RpcError> {
        let target = target(method, parts)?.into_owned().into();
        Ok(Self::Later {
            method,
            target,
            arguments: parts.arguments.map(|arguments| arguments.as_str().into()),
        })
    }

    fn take(&self) -> Result<[u8; 32], RpcError> {
        match self {
            Self::Known(digest) => Ok(*digest),
            Self::Later { method, target, arguments } => {
                let arguments = arguments.as_deref().map(Json::trusted);
                let digest = RequestDigest::new(method.name(), target, arguments);
                digest.map(|digest| *digest.as_bytes()).map_err(|fault| fault.error())
            }
        }
    }
}

/// A known method costs no allocation.
pub(super) fn known(method: &str) -> Cow<'static, str> {
    const KNOWN: [&str; 11] = [
        "tools/call",
        "prompts/get",
        "resources/read",
        "tools/list",
        "prompts/list",
        "resources/list",
        "resources/templates/list",
        "completion/complete",
        "server/discover",
        "subscriptions/listen",
        "resources/subscribe",
    ];
    KNOWN.into_iter().find(|known| *known == method).map_or_else(|| Cow::Owned(method.into()), Cow::Borrowed)
}

/// A request up to its params.
pub(super) fn head(id: i64, method: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(256);
    bytes.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
    write::integer(&mut bytes, id);
    bytes.extend_from_slice(b",\"method\":");
    write::string(&mut bytes, method);
    bytes.extend_from_slice(b",\"params\":");
    bytes
}

/// The name of what is called, of a request whose parameters have the right shape (B-45, G-05).
fn target<'a>(method: AskingMethod, parts: &Parts<'a>) -> Result<Cow<'a, str>, RpcError> {
    let target = match method {
        AskingMethod::ToolsCall | AskingMethod::PromptsGet => super::host::text(parts.name, "name")?,
        AskingMethod::ResourcesRead => super::host::text(parts.uri, "uri")?,
    };
    if parts.arguments.is_some_and(|arguments| !arguments.is_object()) {
        return Err(RpcError::invalid_params("Invalid params: arguments is not an object"));
    }
    if parts.state.is_some_and(|state| state.as_string().is_none()) {
        return Err(RpcError::invalid_params("Invalid params: requestState is not a string"));
    }
    if parts.responses.is_some_and(|responses| !responses.is_object()) {
        return Err(RpcError::invalid_params("Invalid params: inputResponses is not an object"));
    }
    Ok(target)
}

/// The digest that states are bound to: of the request as the host knows it.
pub(super) fn digest(method: AskingMethod, parts: &Parts<'_>) -> Result<[u8; 32], RpcError> {
    let target = target(method, parts)?;
    let digest = RequestDigest::new(method.name(), &target, parts.arguments);
    digest.map(|digest| *digest.as_bytes()).map_err(|fault| fault.error())
}

impl Bridge {
    /// A modern host's request for a modern upstream.
    pub(super) fn relay_modern(
        &mut self,
        host: HostId,
        m: &Modern<'_>,
        upstream: usize,
        name: Option<&str>,
        now: Timestamp,
    ) {
        let method = AskingMethod::from_name(&m.request.method);
        let taken = method.map(|method| match m.parts.state {
            Some(_) => digest(method, &m.parts).map(Digest::Known),
            None => Digest::later(method, &m.parts),
        });
        let mut asking = match taken.transpose() {
            Ok(digest) => digest.map(|digest| Asking { digest, exchange: None, repeat: None }),
            Err(error) => return self.respond_error(host, &m.request.id, ReplyClass::HandlerError, &error),
        };
        let mut state = None;
        if let Some(Asking { digest: Digest::Known(digest), exchange, .. }) = &mut asking
            && let Some(token) = m.parts.state.and_then(Json::as_string)
        {
            match self.unwrap_state(host, upstream, digest, &token, now) {
                Ok((carried, found)) => (state, *exchange) = (carried, Some(found)),
                Err(verdict) => return self.refuse_state(host, &m.request.id, verdict),
            }
        }
        let link = self.modern_link(upstream);
        let id = self.fresh_id();
        let mut bytes = Vec::with_capacity(m.whole.as_str().len() + 64);
        let params = self.write_modern(&mut bytes, m, id, name, state.as_deref());
        let params = core::str::from_utf8(bytes.get(params).unwrap_or_default()).unwrap_or("{}");
        let headers = match self.headers(upstream, &m.request.method, Json::trusted(params)) {
            Ok(headers) => headers,
            Err(error) => return self.respond_error(host, &m.request.id, ReplyClass::HandlerError, &error),
        };
        if let Some(asking) =
            asking.as_mut().filter(|_| !headers.is_empty() && method == Some(AskingMethod::ToolsCall))
        {
            asking.repeat = Some(bytes.clone());
        }
        let relay = Relay {
            host,
            id: m.request.id.clone(),
            method: known(&m.request.method),
            upstream,
            version: None,
            upstream_era: Era::Modern,
            progress: m.meta.progress_token.clone(),
            level: m.meta.log_level,
            can: m.meta.capabilities,
            asking,
            target: None,
        };
        self.set_open(host, &m.request.id, Open::Sent(id));
        self.send(link, id, bytes, headers, Purpose::Relay(Box::new(relay)), now);
    }

    /// The host's message with what is the bridge's replaced; where its params stand.
    fn write_modern(
        &self,
        out: &mut Vec<u8>,
        m: &Modern<'_>,
        id: i64,
        name: Option<&str>,
        state: Option<&str>,
    ) -> core::ops::Range<usize> {
        let mut found = 0..0;
        let info = |out: &mut Vec<u8>| self.config.info.write(out);
        let meta = |member: &str, value: Json<'_>, out: &mut Vec<u8>| match member {
            key::CLIENT_INFO => {
                info(out);
                Edit::Replaced
            }
            key::PROGRESS_TOKEN => {
                write::integer(out, id);
                Edit::Replaced
            }
            key::CLIENT_CAPABILITIES => without_tasks(out, value),
            _ => Edit::Keep,
        };
        let asking = AskingMethod::from_name(&m.request.method).is_some();
        let params = |member: &str, value: Json<'_>, out: &mut Vec<u8>| match (member, name) {
            ("_meta", _) => {
                if m.meta.client_info.is_some() {
                    edit_object(out, value, meta, Keep);
                } else {
                    edit_object(out, value, meta, |tail: &mut Tail<'_>| info(tail.member(key::CLIENT_INFO)));
                }
                Edit::Replaced
            }
            ("name" | "ref", Some(name)) => rename(member, value, name, out),
            ("requestState", _) if asking => match state {
                // Unwrapped to the byte; absent stays absent.
                Some(state) => {
                    out.extend_from_slice(state.as_bytes());
                    Edit::Replaced
                }
                None => Edit::Drop,
            },
            _ => Edit::Keep,
        };
        let message = |member: &str, value: Json<'_>, out: &mut Vec<u8>| match member {
            "id" => {
                write::integer(out, id);
                Edit::Replaced
            }
            "params" => {
                let from = out.len();
                edit_object(out, value, params, Keep);
                found = from..out.len();
                Edit::Replaced
            }
            _ => Edit::Keep,
        };
        edit_object(out, m.whole, message, Keep);
        found
    }

    fn unwrap_state(
        &self,
        host: HostId,
        upstream: usize,
        digest: &[u8; 32],
        token: &str,
        now: Timestamp,
    ) -> Result<Unwrapped, Verdict> {
        let owner = self.owner(host);
        let name = self.config.upstreams.get(upstream).map_or("", |up| &*up.name);
        let opened =
            self.vault.open(token, &Bound { owner: &owner, request: digest, upstream: name }, now)?;
        match opened.carried {
            Carried::Wrapped { state } => {
                Ok((state, (opened.claims.exchange, opened.claims.round, opened.claims.deadline)))
            }
            Carried::Handle { .. } | Carried::Record(_) => Err(Verdict::OtherRequest),
        }
    }

    /// A modern host's request, of a method that asks nothing, for a legacy upstream.
    pub(super) fn relay_to_legacy(
        &mut self,
        host: HostId,
        m: &Modern<'_>,
        upstream: usize,
        name: Option<&str>,
        now: Timestamp,
    ) {
        let id = self.fresh_id();
        let token = m.meta.progress_token.as_ref().map(|_| RequestId::from(id));
        let mut bytes = head(id, &m.request.method);
        let params = m.request.params.unwrap_or(Json::EMPTY_OBJECT);
        let named = name.map(|name| renamed(params, name));
        params_to_legacy(&mut bytes, named.as_deref().map_or(params, Json::trusted), token.as_ref());
        bytes.push(b'}');
        let relay = Box::new(Relay {
            host,
            id: m.request.id.clone(),
            method: known(&m.request.method),
            upstream,
            version: None,
            upstream_era: Era::Legacy,
            progress: m.meta.progress_token.clone(),
            level: m.meta.log_level,
            can: m.meta.capabilities,
            asking: None,
            target: None,
        });
        let want = Want { upstream, owner: self.owner(host), host: m.meta.capabilities, asking: false };
        match self.acquire(&want, now) {
            Some(link) => {
                self.set_open(host, &m.request.id, Open::Sent(id));
                self.send(link, id, bytes, Vec::new(), Purpose::Relay(relay), now);
            }
            None => {
                self.set_open(host, &m.request.id, Open::Queued);
                if let Err(error) = self.enqueue(want, What::Plain { id, bytes, relay }, now) {
                    self.respond_error(host, &m.request.id, ReplyClass::Internal, &error);
                }
            }
        }
    }

    /// A legacy host's request, of a method that asks nothing, for a modern upstream.
    pub(super) fn relay_from_legacy(
        &mut self,
        host: HostId,
        request: &Request<'_>,
        upstream: usize,
        name: Option<&str>,
        now: Timestamp,
    ) {
        let Some(legacy) = self.hosts.get_mut(&host).and_then(super::Host::legacy) else { return };
        let (version, can, level) = (legacy.version, legacy.capabilities, legacy.level);
        let id = self.fresh_id();
        let progress = progress_of(request);
        let token = RequestId::from(id);
        let mut bytes = head(id, &request.method);
        let from = bytes.len();
        let (_, declared) = crate::translate::promise(can, version);
        let meta = ModernMeta {
            client: &self.config.info,
            capabilities: &declared,
            log_level: level,
            progress_token: progress.as_ref().map(|_| &token),
        };
        let named = name.zip(request.params).map(|(name, params)| renamed(params, name));
        let params = named.as_deref().map(Json::trusted).or(request.params);
        params_to_modern(&mut bytes, params, &meta, None, None);
        let params = core::str::from_utf8(bytes.get(from..).unwrap_or_default()).unwrap_or("{}");
        let headers = self.headers(upstream, &request.method, Json::trusted(params)).unwrap_or_default();
        bytes.push(b'}');
        let relay = Relay {
            host,
            id: request.id.clone(),
            method: known(&request.method),
            upstream,
            version: Some(version),
            upstream_era: Era::Modern,
            progress,
            level,
            can,
            asking: None,
            target: None,
        };
        let link = self.modern_link(upstream);
        self.set_open(host, &request.id, Open::Sent(id));
        self.send(link, id, bytes, headers, Purpose::Relay(Box::new(relay)), now);
    }

    /// The session that a legacy host has for itself.
    pub(super) fn dedicated(&self, host: HostId, upstream: usize) -> Option<LinkId> {
        let of = |link: &Link| {
            let super::link::LinkKind::Legacy(session) = &link.kind else { return false };
            link.upstream == upstream && session.host == Some(host)
        };
        if !self.hosts.get(&host).is_some_and(super::Host::is_legacy) {
            return None;
        }
        self.links.iter().find(|(_, link)| of(link)).map(|(id, _)| *id)
    }
}

/// The host's capabilities, without the extension whose messages the bridge does not carry.
fn without_tasks(out: &mut Vec<u8>, capabilities: Json<'_>) -> Edit {
    const TASKS: &str = "io.modelcontextprotocol/tasks";
    if !capabilities.as_str().contains(TASKS) {
        return Edit::Keep;
    }
    let edit = |member: &str, value: Json<'_>, out: &mut Vec<u8>| {
        if member != "extensions" || !value.is_object() {
            return Edit::Keep;
        }
        edit_object(out, value, |name, _, _| if name == TASKS { Edit::Drop } else { Edit::Keep }, Keep);
        Edit::Replaced
    };
    edit_object(out, capabilities, edit, Keep);
    Edit::Replaced
}

/// Params with another name of what is called.
pub(super) fn renamed(params: Json<'_>, name: &str) -> String {
    let mut out = Vec::new();
    let edit = |member: &str, value: Json<'_>, out: &mut Vec<u8>| rename(member, value, name, out);
    edit_object(&mut out, params, edit, Keep);
    String::from_utf8(out).unwrap_or_default()
}

/// Writes an upstream's own name where parameters have the one that hosts see: in `name`, and in the `ref` of a completion.
fn rename(member: &str, value: Json<'_>, name: &str, out: &mut Vec<u8>) -> Edit {
    match member {
        "name" => write::string(out, name),
        "ref" => {
            let edit = |member: &str, value: Json<'_>, out: &mut Vec<u8>| match member {
                "name" => rename(member, value, name, out),
                _ => Edit::Keep,
            };
            edit_object(out, value, edit, Keep);
        }
        _ => return Edit::Keep,
    }
    Edit::Replaced
}

/// The token that a host gave for progress.
pub(super) fn progress_of(request: &Request<'_>) -> Option<RequestId> {
    request.param("_meta").and_then(|meta| meta.get(key::PROGRESS_TOKEN)).and_then(RequestId::from_json)
}

/// `_meta.progressToken` becomes this leg's.
fn token_edit(name: &str, value: Json<'_>, id: i64, out: &mut Vec<u8>) -> Edit {
    if name != "_meta" {
        return Edit::Keep;
    }
    let edit = |member: &str, _: Json<'_>, out: &mut Vec<u8>| {
        if member != key::PROGRESS_TOKEN {
            return Edit::Keep;
        }
        write::integer(out, id);
        Edit::Replaced
    };
    edit_object(out, value, edit, Keep);
    Edit::Replaced
}

/// The class of an error, for its status (G-01).
pub(super) fn class_of(code: ErrorCode) -> ReplyClass {
    match code {
        ErrorCode::METHOD_NOT_FOUND => ReplyClass::MethodNotFound,
        ErrorCode::MISSING_CAPABILITY => ReplyClass::MissingCapability,
        ErrorCode::INTERNAL_ERROR => ReplyClass::Internal,
        _ => ReplyClass::HandlerError,
    }
}

/// A state could not be sealed: which bound, by its name.
pub(super) fn seal_error(error: &SealError) -> RpcError {
    crate::trace::warn!(reason = %error, "a state cannot be sealed");
    RpcError::internal(match error {
        SealError::TooLarge { size, limit } => Cow::Owned(format!(
            "the upstream's requestState, wrapped, has {size} characters, more than the limit of {limit} (Limits::state_accepted)"
        )),
        SealError::DeadlinePassed => "the exchange is past its deadline (Limits::exchange)".into(),
        SealError::TooManyRounds { .. }
        | SealError::TooManyStateOnlyRounds { .. }
        | SealError::TicketKey { .. }
        | SealError::TooLongForCipher
        | SealError::Readable => "the state cannot be sealed".into(),
    })
}
