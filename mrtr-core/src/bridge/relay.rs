//! One request, one response: all four ways. What the bridge does not own goes through byte for byte (R-258, B-68,
//! W-03): it owns the id, the protocol's members of `_meta`, progress tokens, states, and with several upstreams the
//! names of tools and the messages of questions.

use alloc::{borrow::Cow, boxed::Box, format, string::String, vec::Vec};

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
    jsonrpc::{Json, Notification, Request, RequestId, write},
    seal::{ExchangeId, NewClaims, SealError, Verdict},
    time::Timestamp,
    translate::{
        Edit, Keep, ModernMeta, Tail, edit_object, error_to_legacy, error_to_modern, params_to_legacy,
        params_to_modern, result_to_legacy, result_to_modern, write_message,
    },
    wire::{
        AskKind, AskingMethod, ClientCapabilities, Era, InputRequest, LogLevel, ResultKind, Version, key,
        read_result,
    },
};

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
}

/// What the next state is sealed with.
struct Asking {
    digest: [u8; 32],
    exchange: Option<(ExchangeId, u32, Timestamp)>,
    /// The request as it was sent, for the one repetition after `-32020`.
    repeat: Option<Vec<u8>>,
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

/// The digest that states are bound to: of the request as the host knows it.
pub(super) fn digest(method: AskingMethod, parts: &super::host::Parts<'_>) -> Result<[u8; 32], RpcError> {
    let target = match method {
        AskingMethod::ToolsCall | AskingMethod::PromptsGet => super::host::text(parts.name, "name")?,
        AskingMethod::ResourcesRead => super::host::text(parts.uri, "uri")?,
    };
    let arguments = parts.arguments;
    if arguments.is_some_and(|arguments| !arguments.is_object()) {
        return Err(RpcError::invalid_params("Invalid params: arguments is not an object"));
    }
    if parts.state.is_some_and(|state| state.as_string().is_none()) {
        return Err(RpcError::invalid_params("Invalid params: requestState is not a string"));
    }
    if parts.responses.is_some_and(|responses| !responses.is_object()) {
        return Err(RpcError::invalid_params("Invalid params: inputResponses is not an object"));
    }
    let digest = RequestDigest::new(method.name(), &target, arguments).map_err(|fault| fault.error())?;
    Ok(*digest.as_bytes())
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
        let asking = method.map(|method| digest(method, &m.parts)).transpose();
        let mut asking = match asking {
            Ok(asking) => asking.map(|digest| Asking { digest, exchange: None, repeat: None }),
            Err(error) => return self.respond_error(host, &m.request.id, ReplyClass::HandlerError, &error),
        };
        let mut state = None;
        if let (Some(asking), Some(token)) = (&mut asking, m.parts.state.and_then(Json::as_string)) {
            match self.unwrap_state(host, upstream, &asking.digest, &token, now) {
                Ok((carried, exchange)) => (state, asking.exchange) = (carried, Some(exchange)),
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
            ("name", Some(name)) => {
                write::string(out, name);
                Edit::Replaced
            }
            ("ref", Some(name)) => {
                let edit = |member: &str, _: Json<'_>, out: &mut Vec<u8>| {
                    if member != "name" {
                        return Edit::Keep;
                    }
                    write::string(out, name);
                    Edit::Replaced
                };
                edit_object(out, value, edit, Keep);
                Edit::Replaced
            }
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
    ) -> Result<(Option<Box<str>>, (ExchangeId, u32, Timestamp)), Verdict> {
        let owner = self.owner(host);
        let name = self.config.upstreams.get(upstream).map_or("", |up| &*up.name);
        let opened =
            self.vault.open(token, &Bound { owner: &owner, request: digest, upstream: name }, now)?;
        match opened.carried {
            Carried::Wrapped { state } => {
                Ok((state, (opened.claims.exchange, opened.claims.round, opened.claims.deadline)))
            }
            Carried::Handle { .. } => Err(Verdict::OtherRequest),
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
        };
        let link = self.modern_link(upstream);
        self.set_open(host, &request.id, Open::Sent(id));
        self.send(link, id, bytes, headers, Purpose::Relay(Box::new(relay)), now);
    }

    /// A legacy host's request for a legacy upstream: ids and tokens are mapped, nothing else.
    pub(super) fn relay_pair(
        &mut self,
        host: HostId,
        request: &Request<'_>,
        upstream: usize,
        name: Option<&str>,
        now: Timestamp,
    ) {
        // One that has died is begun anew: what was in flight on it has failed, and the host was told.
        let link = self.dedicated(host, upstream).unwrap_or_else(|| self.open_dedicated(host, upstream, now));
        let Some(legacy) = self.hosts.get_mut(&host).and_then(super::Host::legacy) else { return };
        let (version, can, level) = (legacy.version, legacy.capabilities, legacy.level);
        let id = self.fresh_id();
        let progress = progress_of(request);
        let mut bytes = head(id, &request.method);
        let named = name.zip(request.params).map(|(name, params)| renamed(params, name));
        match named.as_deref().map(Json::trusted).or(request.params) {
            Some(params) => {
                edit_object(&mut bytes, params, |name, value, out| token_edit(name, value, id, out), Keep)
            }
            None => bytes.extend_from_slice(b"{}"),
        }
        bytes.push(b'}');
        let relay = Relay {
            host,
            id: request.id.clone(),
            method: known(&request.method),
            upstream,
            version: Some(version),
            upstream_era: Era::Legacy,
            progress,
            level,
            can,
            asking: None,
        };
        self.set_open(host, &request.id, Open::Sent(id));
        self.send(link, id, bytes, Vec::new(), Purpose::Relay(Box::new(relay)), now);
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

    pub(super) fn relay_response(
        &mut self,
        mut relay: Relay,
        whole: Json<'_>,
        outcome: Result<Json<'_>, RpcError>,
        now: Timestamp,
    ) {
        let result = match outcome {
            Ok(result) if result.is_object() => result,
            Ok(_) => {
                let error = RpcError::internal("the upstream's result is not valid");
                return self.relay_failed(&relay, &error);
            }
            Err(error) => {
                if error.code == ErrorCode::HEADER_MISMATCH
                    && let Some(body) = relay.asking.as_mut().and_then(|asking| asking.repeat.take())
                {
                    let upstream = relay.upstream;
                    return self.relist(upstream, Then::Relay(Box::new(relay), body), now);
                }
                return self.relay_error(&relay, whole, error);
            }
        };
        self.learn(relay.upstream, &relay.method, result);
        match (relay.version, relay.upstream_era) {
            (None, Era::Modern) => self.pass_modern(&relay, whole, result, now),
            (None, Era::Legacy) => {
                let mut body = b"\"result\":".to_vec();
                let info = self.server_info(relay.upstream).map(Json::trusted);
                result_to_modern(&mut body, &relay.method, result, info);
                self.respond(relay.host, &relay.id, ReplyClass::Result, |out| out.extend_from_slice(&body));
            }
            (Some(version), Era::Modern) => {
                if !matches!(read_result(result, &self.config.limits), Ok(ResultKind::Complete(_))) {
                    let error = RpcError::internal("the upstream's result is not valid");
                    return self.relay_failed(&relay, &error);
                }
                self.respond(relay.host, &relay.id, ReplyClass::Result, |out| {
                    out.extend_from_slice(b"\"result\":");
                    result_to_legacy(out, &relay.method, result, version);
                });
            }
            (Some(_), Era::Legacy) => {
                let bytes = with_id(whole, &relay.id);
                self.finish(relay.host, &relay.id, ReplyClass::Result, bytes);
            }
        }
    }

    fn relay_error(&mut self, relay: &Relay, whole: Json<'_>, error: RpcError) {
        let error = match (relay.version, relay.upstream_era) {
            (None, Era::Modern) => match error.code {
                // Between the bridge and the upstream; the host would look for the fault in its own request.
                ErrorCode::HEADER_MISMATCH | ErrorCode::UNSUPPORTED_VERSION => {
                    crate::translate::caused("the upstream refused the bridge's request", &error)
                }
                code => {
                    let class = class_of(code);
                    let bytes = with_id(whole, &relay.id);
                    return self.finish(relay.host, &relay.id, class, bytes);
                }
            },
            (Some(_), Era::Legacy) => {
                let bytes = with_id(whole, &relay.id);
                return self.finish(relay.host, &relay.id, ReplyClass::HandlerError, bytes);
            }
            (None, Era::Legacy) => error_to_modern(error, None),
            (Some(_), Era::Modern) => error_to_legacy(error, None),
        };
        self.respond_error(relay.host, &relay.id, class_of(error.code), &error);
    }

    /// A modern result for a modern host.
    fn pass_modern(&mut self, relay: &Relay, whole: Json<'_>, result: Json<'_>, now: Timestamp) {
        let stamped = result.get("resultType");
        let invalid = |this: &mut Self, what: &'static str| {
            crate::trace::warn!(what = %what, "the upstream's result breaks the protocol");
            this.relay_failed(relay, &RpcError::internal(what));
        };
        match stamped.map(Json::as_string) {
            None => {
                // An earlier draft's server: every result says what it is.
                let stamp = |tail: &mut Tail<'_>| write::string(tail.member("resultType"), "complete");
                let bytes = with_result(whole, &relay.id, |out, result| {
                    edit_object(out, result, |_, _, _| Edit::Keep, stamp);
                });
                self.finish(relay.host, &relay.id, ReplyClass::Result, bytes);
            }
            Some(Some(kind)) if kind == "complete" => {
                let bytes = with_id(whole, &relay.id);
                self.finish(relay.host, &relay.id, ReplyClass::Result, bytes);
            }
            Some(Some(kind)) if kind == "input_required" => match &relay.asking {
                None => invalid(self, "the upstream asks where nothing may be asked"),
                Some(asking) => self.pass_interim(relay, asking, whole, result, now),
            },
            Some(_) => invalid(self, "the upstream's result is of an unknown kind"),
        }
    }

    /// Questions of a modern upstream for a modern host: its state wrapped, everything else as it is.
    fn pass_interim(
        &mut self,
        relay: &Relay,
        asking: &Asking,
        whole: Json<'_>,
        result: Json<'_>,
        now: Timestamp,
    ) {
        let interim = match read_result(result, &self.config.limits) {
            Ok(ResultKind::InputRequired(interim)) => interim,
            Ok(ResultKind::Complete(_)) => return,
            Err(fault) => {
                crate::trace::warn!(fault = %fault, "the upstream's questions break the protocol");
                return self
                    .relay_failed(relay, &RpcError::internal("the upstream's questions are not valid"));
            }
        };
        // by what this request declared, whoever asks.
        let needs: Vec<_> = interim.asks.iter().map(|(_, ask)| ask.requirement()).collect();
        if needs.iter().any(|need| !relay.can.allow(*need)) {
            return self.undeclared(relay.host, &relay.id, relay.can.missing(needs));
        }
        let owner = self.owner(relay.host);
        let name = self.config.upstreams.get(relay.upstream).map_or("", |up| &*up.name);
        let (exchange, round, deadline) = asking.exchange.unwrap_or_else(|| {
            let exchange = ExchangeId::from_bytes(self.random.bytes(b"bridge/exchange"));
            (exchange, 0, now.saturating_add(self.config.limits.exchange))
        });
        let claims = NewClaims {
            exchange,
            round: round.saturating_add(1),
            state_only: 0,
            deadline,
            ttl: Some(self.config.waits.wrapped),
        };
        let bound = Bound { owner: &owner, request: &asking.digest, upstream: name };
        let state = interim.state.map(Json::as_str);
        let token = match self.vault.wrap(&claims, state, &bound, now, &mut self.random) {
            Ok(token) => token,
            Err(error) => return self.relay_failed(relay, &seal_error(&error)),
        };
        let count = interim.asks.len();
        let origin = self.named.then_some(name);
        let had_state = result.get("requestState").is_some();
        let bytes = with_result(whole, &relay.id, |out, result| {
            let edit = |member: &str, value: Json<'_>, out: &mut Vec<u8>| match (member, origin) {
                ("requestState", _) => {
                    write::string(out, &token);
                    Edit::Replaced
                }
                ("inputRequests", Some(name)) if value.is_object() => {
                    edit_object(out, value, |_, ask, out| named_ask(out, ask, name), Keep);
                    Edit::Replaced
                }
                _ => Edit::Keep,
            };
            if had_state {
                edit_object(out, result, edit, Keep);
            } else {
                edit_object(out, result, edit, |tail: &mut Tail<'_>| {
                    write::string(tail.member("requestState"), &token);
                });
            }
        });
        self.counts.rounds += 1;
        self.counts.asks += u64::try_from(count).unwrap_or(u64::MAX);
        self.finish(relay.host, &relay.id, ReplyClass::Result, bytes);
    }

    /// `-32021` with what is missing.
    pub(super) fn undeclared(&mut self, host: HostId, id: &RequestId, data: String) {
        let error = RpcError::new(ErrorCode::MISSING_CAPABILITY, "Missing required client capability");
        self.respond_error(host, id, ReplyClass::MissingCapability, &error.with_raw_data(data));
    }

    /// `-32020`: the bridge's headers came from a stale schema. The list is read again and the call made once more
    /// (BT-6).
    pub(super) fn relist(&mut self, upstream: usize, then: Then, now: Timestamp) {
        let id = self.fresh_id();
        let mut bytes = head(id, "tools/list");
        let from = bytes.len();
        let info = &self.config.info;
        let meta = ModernMeta { client: info, capabilities: "{}", log_level: None, progress_token: None };
        params_to_modern(&mut bytes, None, &meta, None, None);
        let params = core::str::from_utf8(bytes.get(from..).unwrap_or_default()).unwrap_or("{}");
        let headers = self.headers(upstream, "tools/list", Json::trusted(params)).unwrap_or_default();
        bytes.push(b'}');
        let link = self.modern_link(upstream);
        match &then {
            Then::Relay(relay, _) => self.set_open(relay.host, &relay.id, Open::Sent(id)),
            Then::Dialogue(_) => {}
        }
        self.send(link, id, bytes, headers, Purpose::Relist(upstream, then), now);
    }

    pub(super) fn relisted(
        &mut self,
        upstream: usize,
        then: Then,
        outcome: Result<Json<'_>, RpcError>,
        now: Timestamp,
    ) {
        if let Ok(result) = outcome {
            self.learn(upstream, "tools/list", result);
        }
        let (relay, body) = match then {
            Then::Relay(relay, body) => (relay, body),
            Then::Dialogue(call) => return self.repeat_dialogue(call, now),
        };
        let text = Json::trusted(core::str::from_utf8(&body).unwrap_or("{}"));
        let id = self.fresh_id();
        let mut bytes = Vec::with_capacity(body.len() + 16);
        let edit = |member: &str, value: Json<'_>, out: &mut Vec<u8>| match member {
            "id" => {
                write::integer(out, id);
                Edit::Replaced
            }
            "params" => {
                edit_object(out, value, |name, value, out| token_edit(name, value, id, out), Keep);
                Edit::Replaced
            }
            _ => Edit::Keep,
        };
        edit_object(&mut bytes, text, edit, Keep);
        match self.headers(upstream, "tools/call", text.get("params").unwrap_or(Json::EMPTY_OBJECT)) {
            Ok(headers) => {
                let link = self.modern_link(upstream);
                self.set_open(relay.host, &relay.id, Open::Sent(id));
                self.send(link, id, bytes, headers, Purpose::Relay(relay), now);
            }
            Err(error) => self.relay_failed(&relay, &error),
        }
    }

    /// Progress goes where the token says, under the host's own token (R-258, BT-8).
    pub(super) fn on_progress(&mut self, link: LinkId, notification: &Notification<'_>, now: Timestamp) {
        let token = notification.param("progressToken").and_then(RequestId::from_json);
        let Some(id) = token.as_ref().and_then(RequestId::as_i64) else { return };
        let Some(params) = notification.params else { return };
        match self.sent_on(link, id).map(|sent| &sent.purpose) {
            Some(Purpose::Relay(relay)) => {
                let Some(token) = relay.progress.clone() else { return };
                let (host, stream) = (relay.host, HostStream::Request(relay.id.clone()));
                self.tell(host, stream, progress(params, &token, None));
            }
            Some(Purpose::Parked(call)) => self.parked_progress(*call, params),
            Some(Purpose::Dialogue(call)) => self.dialogue_progress(*call, params, now),
            _ => {}
        }
    }

    /// A log message goes to the request it came with: by its stream, or because no other is in flight. Requests that
    /// did not ask for that level get none.
    pub(super) fn on_log(&mut self, link: LinkId, call: Option<i64>, notification: &Notification<'_>) {
        let level = notification.param("level").and_then(Json::as_string);
        let Some(level) = level.as_deref().and_then(LogLevel::from_name) else { return };
        if let Some(host) = self.host_of(link) {
            // The host's own session: it has set the level itself.
            let stream = call.and_then(|call| self.host_stream(link, call)).unwrap_or(HostStream::Common);
            return self.tell(host, stream, with_params(notification));
        }
        let id = call.or_else(|| self.only_on(link));
        let Some(id) = id else { return };
        let found = match self.sent_on(link, id).map(|sent| &sent.purpose) {
            Some(Purpose::Relay(relay)) => Some((relay.host, relay.id.clone(), relay.level)),
            Some(Purpose::Parked(call)) => self.parked.get(call).and_then(|call| call.log_target()),
            Some(Purpose::Dialogue(call)) => self.dialogues.get(call).map(|dialogue| dialogue.log_target()),
            _ => None,
        };
        let Some((host, id, Some(wanted))) = found else { return };
        if level >= wanted {
            self.tell(host, HostStream::Request(id), with_params(notification));
        }
    }

    /// The one request that is in flight on a connection.
    fn only_on(&mut self, link: LinkId) -> Option<i64> {
        if let Some(session) = self.links.get_mut(&link).and_then(Link::session) {
            return (session.in_flight.len() == 1).then(|| session.in_flight.first().copied()).flatten();
        }
        let talks = |sent: &Sent| sent.link == link && !matches!(sent.purpose, Purpose::Listen(_));
        let mut found = self.sent.iter().filter(|(_, sent)| talks(sent)).map(|(id, _)| *id);
        let first = found.next();
        if found.next().is_some() { None } else { first }
    }

    pub(super) fn host_stream(&self, link: LinkId, call: i64) -> Option<HostStream> {
        match self.sent_on(link, call)? {
            Sent { purpose: Purpose::Relay(relay), .. } => Some(HostStream::Request(relay.id.clone())),
            _ => None,
        }
    }

    /// Other notifications cross between peers of one era: a legacy host's own session, a modern host's own stream.
    pub(super) fn on_change(&mut self, link: LinkId, call: Option<i64>, notification: &Notification<'_>) {
        if let Some(host) = self.host_of(link) {
            let stream = call.and_then(|call| self.host_stream(link, call)).unwrap_or(HostStream::Common);
            return self.tell(host, stream, with_params(notification));
        }
        if self.links.get(&link).is_some_and(|link| matches!(link.kind, super::link::LinkKind::Legacy(_))) {
            return self.changed(link, None, notification);
        }
        // which stream it belongs to.
        let meta = notification.param("_meta");
        let named = meta.and_then(|meta| meta.get(key::SUBSCRIPTION_ID)).and_then(RequestId::from_json);
        let Some(id) = named.as_ref().and_then(RequestId::as_i64) else { return };
        let relay = match self.sent_on(link, id).map(|sent| &sent.purpose) {
            Some(Purpose::Relay(relay)) if relay.version.is_none() => relay,
            Some(Purpose::Listen(number)) => {
                let number = *number;
                return self.changed(link, Some(number), notification);
            }
            _ => return,
        };
        let (host, id) = (relay.host, relay.id.clone());
        let mut bytes = b"{\"jsonrpc\":\"2.0\",\"method\":".to_vec();
        write::string(&mut bytes, &notification.method);
        bytes.extend_from_slice(b",\"params\":");
        let own = id.clone();
        let edit = |member: &str, value: Json<'_>, out: &mut Vec<u8>| {
            if member != "_meta" {
                return Edit::Keep;
            }
            let edit = |member: &str, _: Json<'_>, out: &mut Vec<u8>| {
                if member != key::SUBSCRIPTION_ID {
                    return Edit::Keep;
                }
                own.write(out);
                Edit::Replaced
            };
            edit_object(out, value, edit, Keep);
            Edit::Replaced
        };
        edit_object(&mut bytes, notification.params.unwrap_or(Json::EMPTY_OBJECT), edit, Keep);
        bytes.push(b'}');
        self.tell(host, HostStream::Request(id), bytes);
    }

    /// A legacy upstream asks a legacy host: under an id of ours, on the stream of the call it belongs to (B-72).
    pub(super) fn pair_ask(&mut self, link: LinkId, host: HostId, call: Option<i64>, request: &Request<'_>) {
        let found = match call {
            Some(call) => self.host_stream(link, call),
            // On a pipe nothing says which call it belongs to. All are this host's: the newest that may ask.
            None => self.newest_asking(link),
        };
        let Some(stream) = found else {
            let error = RpcError::invalid_params("no request that may ask is in flight in this session");
            return self.answer_upstream_error(link, &request.id, &error);
        };
        let id = self.fresh_id();
        let whose = super::host::Whose::Pair { link, id: request.id.clone() };
        // What is only guessed must not be taken back with the call.
        let call = match &stream {
            HostStream::Request(id) if call.is_some() => Some(id.clone()),
            HostStream::Request(_) | HostStream::Common => None,
        };
        let Some(legacy) = self.hosts.get_mut(&host).and_then(super::Host::legacy) else { return };
        legacy.asked.insert(id, super::host::AskedHost { whose, call });
        let mut bytes = b"{\"jsonrpc\":\"2.0\",\"id\":".to_vec();
        write::integer(&mut bytes, id);
        bytes.extend_from_slice(b",\"method\":");
        write::string(&mut bytes, &request.method);
        if let Some(params) = request.params {
            bytes.extend_from_slice(b",\"params\":");
            let origin = self.links.get(&link).and_then(|link| self.config.upstreams.get(link.upstream));
            match origin.filter(|_| self.named) {
                Some(up) if request.method == "elicitation/create" => {
                    let edit = |member: &str, value: Json<'_>, out: &mut Vec<u8>| match member {
                        "message" => write_message(out, value, crate::translate::Origin::Named(&up.name)),
                        _ => Edit::Keep,
                    };
                    edit_object(&mut bytes, params, edit, Keep);
                }
                Some(_) | None => write::one_line(&mut bytes, params.as_str()),
            }
        }
        bytes.push(b'}');
        self.ask_host(host, stream, bytes);
    }

    fn newest_asking(&self, link: LinkId) -> Option<HostStream> {
        let session = match &self.links.get(&link)?.kind {
            super::link::LinkKind::Legacy(session) => session,
            super::link::LinkKind::Modern => return None,
        };
        let mut calls = session.in_flight.iter().rev().filter_map(|id| self.sent_on(link, *id));
        calls.find_map(|sent| match &sent.purpose {
            Purpose::Relay(relay) if AskingMethod::from_name(&relay.method).is_some() => {
                Some(HostStream::Request(relay.id.clone()))
            }
            _ => None,
        })
    }

    /// A legacy host's answer for a legacy upstream, as it is.
    pub(super) fn pair_answered(
        &mut self,
        link: LinkId,
        id: &RequestId,
        outcome: Result<Json<'_>, RpcError>,
    ) {
        match outcome {
            Ok(result) => {
                let mut text = Vec::new();
                write::one_line(&mut text, result.as_str());
                self.answer_upstream(link, id, &text);
            }
            Err(error) => self.answer_upstream_error(link, id, &error),
        }
    }

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
        self.send(link, id, bytes, Vec::new(), Purpose::Ignored, now);
    }
}

/// A question of a modern upstream with its name.
fn named_ask(out: &mut Vec<u8>, ask: Json<'_>, name: &str) -> Edit {
    use crate::translate::Origin;
    let Ok(read) = InputRequest::from_json(ask) else { return Edit::Keep };
    let elicits = matches!(read.kind(), AskKind::Form | AskKind::Url);
    let vendor = |tail: &mut Tail<'_>| write::string(tail.member("dev.mrtr/origin"), name);
    if ask.get("params").is_none() {
        edit_object(
            out,
            ask,
            |_, _, _| Edit::Keep,
            |tail: &mut Tail<'_>| {
                edit_object(
                    tail.member("params"),
                    Json::EMPTY_OBJECT,
                    |_, _, _| Edit::Keep,
                    |tail: &mut Tail<'_>| {
                        edit_object(tail.member("_meta"), Json::EMPTY_OBJECT, |_, _, _| Edit::Keep, vendor);
                    },
                );
            },
        );
        return Edit::Replaced;
    }
    let edit = |member: &str, params: Json<'_>, out: &mut Vec<u8>| {
        if member != "params" {
            return Edit::Keep;
        }
        let edit = |member: &str, value: Json<'_>, out: &mut Vec<u8>| match member {
            "message" if elicits => write_message(out, value, Origin::Named(name)),
            "_meta" if !elicits && value.is_object() => {
                edit_object(out, value, |_, _, _| Edit::Keep, vendor);
                Edit::Replaced
            }
            _ => Edit::Keep,
        };
        if elicits || params.get("_meta").is_some() {
            edit_object(out, params, edit, Keep);
        } else {
            edit_object(out, params, edit, |tail: &mut Tail<'_>| {
                edit_object(tail.member("_meta"), Json::EMPTY_OBJECT, |_, _, _| Edit::Keep, vendor);
            });
        }
        Edit::Replaced
    };
    edit_object(out, ask, edit, Keep);
    Edit::Replaced
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
    let edit = |member: &str, value: Json<'_>, out: &mut Vec<u8>| match member {
        "name" => {
            write::string(out, name);
            Edit::Replaced
        }
        "ref" => {
            let edit = |member: &str, _: Json<'_>, out: &mut Vec<u8>| {
                if member != "name" {
                    return Edit::Keep;
                }
                write::string(out, name);
                Edit::Replaced
            };
            edit_object(out, value, edit, Keep);
            Edit::Replaced
        }
        _ => Edit::Keep,
    };
    edit_object(&mut out, params, edit, Keep);
    String::from_utf8(out).unwrap_or_default()
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

/// The message under another id.
fn with_id(whole: Json<'_>, id: &RequestId) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(whole.as_str().len() + 16);
    let edit = |member: &str, _: Json<'_>, out: &mut Vec<u8>| {
        if member != "id" {
            return Edit::Keep;
        }
        id.write(out);
        Edit::Replaced
    };
    edit_object(&mut bytes, whole, edit, Keep);
    bytes
}

/// The message under another id and with its result rewritten.
fn with_result(whole: Json<'_>, id: &RequestId, result: impl Fn(&mut Vec<u8>, Json<'_>)) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(whole.as_str().len() + 256);
    let edit = |member: &str, value: Json<'_>, out: &mut Vec<u8>| match member {
        "id" => {
            id.write(out);
            Edit::Replaced
        }
        "result" => {
            result(out, value);
            Edit::Replaced
        }
        _ => Edit::Keep,
    };
    edit_object(&mut bytes, whole, edit, Keep);
    bytes
}

/// A progress notification under the host's token; `value` is a progress of the bridge's own, if it is not the
/// upstream's.
pub(super) fn progress(params: Json<'_>, token: &RequestId, value: Option<&str>) -> Vec<u8> {
    let mut bytes = b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":".to_vec();
    let edit = |member: &str, _: Json<'_>, out: &mut Vec<u8>| match (member, value) {
        ("progressToken", _) => {
            token.write(out);
            Edit::Replaced
        }
        // It was a total of the upstream's own count.
        ("total", Some(_)) => Edit::Drop,
        ("progress", Some(value)) => {
            out.extend_from_slice(value.as_bytes());
            Edit::Replaced
        }
        _ => Edit::Keep,
    };
    edit_object(&mut bytes, params, edit, Keep);
    bytes.push(b'}');
    bytes
}

/// A notification as it came.
fn with_params(notification: &Notification<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    let params = notification.params.map_or("{}", Json::as_str);
    write::notification(&mut bytes, &notification.method, params);
    bytes
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
