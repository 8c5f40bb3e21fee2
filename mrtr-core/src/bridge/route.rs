//! Which upstream a request is for. With several upstreams, names of tools and prompts carry the upstream's name:
//! `files__read`. Resources keep their uris: whose they are is `resources`' to say.

use alloc::{borrow::Cow, boxed::Box, collections::BTreeMap, format, string::String, vec::Vec};

use super::{
    Bridge, HostId,
    host::{Modern, Open, Parts, busy, text},
    link::Purpose,
    pool::Want,
    relay::Relay,
    resources::{Held, held_legacy},
};
use crate::{
    error::{ErrorCode, RpcError},
    http::{Headers, ParamHeaders, ReplyClass, check_params},
    jsonrpc::{Json, Request, RequestId, write},
    seal::Verdict,
    time::Timestamp,
    translate::{ModernMeta, params_to_legacy, params_to_modern, result_to_legacy, result_to_modern},
    wire::{AskingMethod, Era, Version},
};

/// Between the upstream's name and the tool's.
const SEPARATOR: &str = "__";

/// Pages of one upstream's list that are put together, at most.
const PAGES: u32 = 100;

/// Tools whose annotations are remembered, of one upstream.
const TOOLS: usize = 10_000;

/// A list that is being put together.
pub(super) struct Gather {
    host: HostId,
    id: RequestId,
    method: &'static str,
    /// Of the host, as the upstreams are to be told.
    declared: Box<str>,
    missing: usize,
    /// Of those upstreams that have answered.
    parts: BTreeMap<usize, Part>,
    version: Option<Version>,
    failed: Option<RpcError>,
    /// The request that the list is asked for, if the host has not asked for it.
    held: Option<Held>,
}

/// One upstream's share of a list.
#[derive(Default)]
struct Part {
    /// Entries, each followed by a comma.
    entries: Vec<u8>,
    pages: u32,
}

/// The lists, and the member that holds their entries.
fn list_member(method: &str) -> Option<(&'static str, &'static str)> {
    match method {
        "tools/list" => Some(("tools/list", "tools")),
        "prompts/list" => Some(("prompts/list", "prompts")),
        "resources/list" => Some(("resources/list", "resources")),
        "resources/templates/list" => Some(("resources/templates/list", "resourceTemplates")),
        _ => None,
    }
}

fn no_method() -> RpcError {
    RpcError::new(ErrorCode::METHOD_NOT_FOUND, "Method not found")
}

impl Bridge {
    pub(super) fn is_single(&self) -> bool {
        self.upstreams.len() == 1
    }

    fn era(&self, upstream: usize) -> Era {
        self.config.upstreams.get(upstream).map_or(Era::Modern, |up| up.era)
    }

    /// The upstream that a request names, and its name for what is called.
    ///
    /// # Errors
    ///
    /// There is none.
    fn target<'a>(&self, method: &str, parts: &Parts<'a>) -> Result<(usize, Option<Cow<'a, str>>), RpcError> {
        let unknown = |what: &str, name: &str| {
            let shown: String = name.chars().take(64).collect();
            RpcError::invalid_params(format!("Unknown {what}: {shown}"))
        };
        match method {
            "tools/call" | "prompts/get" => {
                let name = text(parts.name, "name")?;
                let what = if method == "tools/call" { "tool" } else { "prompt" };
                self.named(name).map_err(|name| unknown(what, &name))
            }
            "resources/read" | "resources/subscribe" | "resources/unsubscribe" => {
                let uri = text(parts.uri, "uri")?;
                Ok((self.whose(&uri), None))
            }
            "completion/complete" => {
                let reference = parts.reference.unwrap_or(Json::NULL);
                match reference.get("name").and_then(Json::as_string) {
                    Some(name) => self.named(name).map_err(|name| unknown("prompt", &name)),
                    None => {
                        let uri = reference.get("uri").and_then(Json::as_string).unwrap_or_default();
                        Ok((self.whose(&uri), None))
                    }
                }
            }
            _ => Ok((0, None)),
        }
    }

    fn named<'a>(&self, name: Cow<'a, str>) -> Result<(usize, Option<Cow<'a, str>>), Cow<'a, str>> {
        if self.is_single() {
            return Ok((0, None));
        }
        let found = self.config.upstreams.iter().enumerate().find_map(|(index, up)| {
            let rest = name.strip_prefix(&*up.name)?.strip_prefix(SEPARATOR)?;
            Some((index, String::from(rest)))
        });
        found.map(|(index, rest)| (index, Some(Cow::Owned(rest)))).ok_or(name)
    }

    pub(super) fn route_modern(&mut self, host: HostId, m: &Modern<'_>, now: Timestamp) {
        let id = m.request.id.clone();
        let method = &*m.request.method;
        if self.draining && m.parts.state.is_none() {
            let error = busy("the bridge is shutting down", 1_000);
            return self.respond_error(host, &id, ReplyClass::Internal, &error);
        }
        if matches!(
            method,
            "ping" | "initialize" | "logging/setLevel" | "resources/subscribe" | "resources/unsubscribe"
        ) {
            // Gone in this revision.
            return self.respond_error(host, &id, ReplyClass::MethodNotFound, &no_method());
        }
        if let Some((method, _)) = list_member(method)
            && !self.is_single()
        {
            let declared = m.meta.raw_capabilities.as_str().into();
            return self.gather(host, id, method, (declared, None, None), now);
        }
        if self.is_unlisted(method, &m.parts) {
            return self.look_up(host, id, Held::Modern(m.whole.as_str().into()), now);
        }
        self.route_modern_on(host, m, now);
    }

    /// Once it is known, as well as it can be, whose a resource is.
    pub(super) fn route_modern_on(&mut self, host: HostId, m: &Modern<'_>, now: Timestamp) {
        let id = m.request.id.clone();
        let method = &*m.request.method;
        let (upstream, name) = match self.target(method, &m.parts) {
            // Names say it themselves; of a resource its state knows better than the lists.
            Ok((upstream, None)) => (self.whose_state(host, m, now).unwrap_or(upstream), None),
            Ok(target) => target,
            Err(error) => return self.respond_error(host, &id, ReplyClass::HandlerError, &error),
        };
        match (self.era(upstream), AskingMethod::from_name(method)) {
            (Era::Modern, Some(_)) => self.relay_modern(host, m, upstream, name.as_deref(), now),
            (Era::Modern, None) => {
                let everywhere = matches!(method, "completion/complete") || self.is_single();
                match method {
                    _ if everywhere => self.relay_modern(host, m, upstream, name.as_deref(), now),
                    "server/discover" => self.discover(host, &id, m.meta.capabilities, now),
                    "subscriptions/listen" => self.listen(host, m, now),
                    _ => self.respond_error(host, &id, ReplyClass::MethodNotFound, &no_method()),
                }
            }
            (Era::Legacy, Some(asking)) => {
                self.park_or_resume(host, m, asking, upstream, name.as_deref(), now);
            }
            (Era::Legacy, None) => match method {
                "server/discover" => self.discover(host, &id, m.meta.capabilities, now),
                "subscriptions/listen" => self.listen(host, m, now),
                "completion/complete"
                | "tools/list"
                | "prompts/list"
                | "resources/list"
                | "resources/templates/list" => self.relay_to_legacy(host, m, upstream, name.as_deref(), now),
                _ => self.respond_error(host, &id, ReplyClass::MethodNotFound, &no_method()),
            },
        }
    }

    /// What is wrong with the headers that repeat arguments, of a tool whose annotations a list has shown.
    pub(super) fn params_fault(&self, m: &Modern<'_>, headers: &dyn Headers) -> Option<RpcError> {
        let asking = AskingMethod::from_name(&m.request.method)?;
        if asking != AskingMethod::ToolsCall {
            return None;
        }
        let (upstream, own) = self.target(asking.name(), &m.parts).ok()?;
        let name = own.or_else(|| m.parts.name.and_then(Json::as_string))?;
        let annotations = self.upstreams.get(upstream)?.annotations.get(&*name)?;
        check_params(headers, &m.request, annotations).err().map(|fault| fault.error())
    }

    pub(super) fn legacy_request(&mut self, host: HostId, request: &Request<'_>, now: Timestamp) {
        let id = &request.id;
        if let Err(error) = self.take(host, id) {
            return self.respond_error(host, id, ReplyClass::Internal, &error);
        }
        let invalid = |what: &'static str| RpcError::new(ErrorCode::INVALID_REQUEST, what);
        let begun = self.hosts.get(&host).is_some_and(super::Host::is_legacy);
        let refused = match (&*request.method, begun) {
            ("ping", _) => {
                return self
                    .respond(host, id, ReplyClass::Result, |out| out.extend_from_slice(b"\"result\":{}"));
            }
            ("initialize", false) if !self.draining => return self.initialize_host(host, request, now),
            ("initialize", false) => Some(busy("the bridge is shutting down", 1_000)),
            ("initialize", true) => Some(invalid("Invalid request: this session is initialised")),
            (_, false) => Some(invalid("Invalid request: this session is not initialised")),
            (_, true) if self.draining => Some(busy("the bridge is shutting down", 1_000)),
            (_, true) => None,
        };
        if let Some(error) = refused {
            return self.respond_error(host, id, ReplyClass::HandlerError, &error);
        }
        self.route_legacy(host, request, now);
    }

    fn route_legacy(&mut self, host: HostId, request: &Request<'_>, now: Timestamp) {
        let (id, method) = (&request.id, &*request.method);
        if let Some((method, _)) = list_member(method)
            && !self.is_single()
        {
            let legacy = self.hosts.get_mut(&host).and_then(super::Host::legacy);
            let (declared, version) = legacy.map_or(("{}".into(), Version::V2025_11_25), |legacy| {
                (legacy.declared.clone(), legacy.version)
            });
            return self.gather(host, id.clone(), method, (declared, Some(version), None), now);
        }
        if self.is_unlisted(method, &Parts::of(request.params))
            && let Some(legacy) = self.hosts.get_mut(&host).and_then(super::Host::legacy)
        {
            let held = held_legacy(request, legacy.version, legacy.declared.clone());
            return self.look_up(host, id.clone(), held, now);
        }
        self.route_legacy_on(host, request, now);
    }

    pub(super) fn route_legacy_on(&mut self, host: HostId, request: &Request<'_>, now: Timestamp) {
        let (id, method) = (&request.id, &*request.method);
        let parts = Parts::of(request.params);
        let (upstream, name) = match self.target(method, &parts) {
            Ok(target) => target,
            Err(error) => return self.respond_error(host, id, ReplyClass::HandlerError, &error),
        };
        match (self.era(upstream), method) {
            (_, "logging/setLevel") => self.set_level(host, request, now),
            (Era::Modern, "resources/subscribe" | "resources/unsubscribe") => {
                self.subscribe_modern(host, request, now);
            }
            (Era::Legacy, _) => self.relay_pair(host, request, upstream, name.as_deref(), now),
            (Era::Modern, _) if AskingMethod::from_name(method).is_some() => {
                self.begin_dialogue(host, request, upstream, name.as_deref(), now);
            }
            (
                Era::Modern,
                "completion/complete"
                | "tools/list"
                | "prompts/list"
                | "resources/list"
                | "resources/templates/list",
            ) => {
                self.relay_from_legacy(host, request, upstream, name.as_deref(), now);
            }
            (Era::Modern, _) => self.respond_error(host, id, ReplyClass::HandlerError, &no_method()),
        }
    }

    /// What the host wants to hear from now on: added to each request to a modern upstream, passed on to legacy ones.
    fn set_level(&mut self, host: HostId, request: &Request<'_>, now: Timestamp) {
        use crate::wire::LogLevel;
        let level = request.param("level").and_then(Json::as_string);
        let Some(level) = level.as_deref().and_then(LogLevel::from_name) else {
            let error = RpcError::invalid_params("Invalid params: level is not a log level");
            return self.respond_error(host, &request.id, ReplyClass::HandlerError, &error);
        };
        if let Some(legacy) = self.hosts.get_mut(&host).and_then(super::Host::legacy) {
            legacy.level = Some(level);
        }
        for upstream in 0..self.upstreams.len() {
            if let Some(link) = self.dedicated(host, upstream) {
                self.set_session_level(link, level, now);
            }
        }
        self.respond(host, &request.id, ReplyClass::Result, |out| out.extend_from_slice(b"\"result\":{}"));
    }

    /// Asks every upstream for a list because of a request that needs it.
    pub(super) fn gather_for(
        &mut self,
        host: HostId,
        id: RequestId,
        method: &'static str,
        held: Held,
        now: Timestamp,
    ) {
        let declared = match &held {
            Held::Modern(whole) => {
                let meta = Json::trusted(whole).get("params").and_then(|params| params.get("_meta"));
                let declared = meta.and_then(|meta| meta.get(crate::wire::key::CLIENT_CAPABILITIES));
                declared.unwrap_or(Json::EMPTY_OBJECT).as_str().into()
            }
            Held::Legacy { declared, .. } => declared.clone(),
        };
        self.gather(host, id, method, (declared, held.version(), Some(held)), now);
    }

    /// Asks every upstream for its list.
    fn gather(
        &mut self,
        host: HostId,
        id: RequestId,
        method: &'static str,
        (declared, version, held): (Box<str>, Option<Version>, Option<Held>),
        now: Timestamp,
    ) {
        self.next_gather += 1;
        let key = self.next_gather;
        self.set_open(host, &id, Open::Gather(key));
        let asked: Vec<usize> = match held {
            Some(_) => self.with_resources().collect(),
            None => (0..self.upstreams.len()).collect(),
        };
        let gather = Gather {
            host,
            id,
            method,
            declared,
            missing: asked.len(),
            parts: BTreeMap::new(),
            version,
            failed: None,
            held,
        };
        self.gathers.insert(key, gather);
        for upstream in asked {
            self.gather_page(key, upstream, None, now);
        }
    }

    fn gather_page(&mut self, key: u64, upstream: usize, cursor: Option<&str>, now: Timestamp) {
        let Some(gather) = self.gathers.get(&key) else { return };
        let (host, method, declared) = (gather.host, gather.method, gather.declared.clone());
        let params = cursor.map_or_else(|| String::from("{}"), |cursor| format!("{{\"cursor\":{cursor}}}"));
        let params = Json::trusted(&params);
        let id = self.fresh_id();
        let mut bytes = super::relay::head(id, method);
        let from = bytes.len();
        let link = match self.era(upstream) {
            Era::Modern => {
                let meta = ModernMeta {
                    client: &self.config.info,
                    capabilities: &declared,
                    log_level: None,
                    progress_token: None,
                };
                params_to_modern(&mut bytes, Some(params), &meta, None, None);
                Some(self.modern_link(upstream))
            }
            Era::Legacy => {
                params_to_legacy(&mut bytes, params, None);
                let host_can = crate::wire::ClientCapabilities::from_json(Json::trusted(&declared));
                let want = Want {
                    upstream,
                    owner: self.owner(host),
                    host: host_can.unwrap_or_default(),
                    asking: false,
                };
                self.dedicated(host, upstream).or_else(|| self.acquire(&want, now))
            }
        };
        let sent = core::str::from_utf8(bytes.get(from..).unwrap_or_default()).unwrap_or("{}");
        let headers = self.headers(upstream, method, Json::trusted(sent)).unwrap_or_default();
        bytes.push(b'}');
        match link {
            Some(link) => self.send(link, id, bytes, headers, Purpose::Gather(key, upstream), now),
            None => {
                let error = busy("no session with the upstream is free (Pool)", 1_000);
                self.gathered(key, upstream, Err(error), now);
            }
        }
    }

    /// One upstream's page of a list. One that has no such list has an empty one; one that fails is left out, unless
    /// all do.
    pub(super) fn gathered(
        &mut self,
        key: u64,
        upstream: usize,
        outcome: Result<Json<'_>, RpcError>,
        now: Timestamp,
    ) {
        let Some(mut gather) = self.gathers.remove(&key) else { return };
        let mut next = None;
        match outcome {
            Ok(result) => {
                self.learn(upstream, gather.method, result);
                let mut part = gather.parts.remove(&upstream).unwrap_or_default();
                if gather.held.is_none() {
                    self.add_page(&mut part.entries, upstream, &gather, result);
                }
                part.pages += 1;
                if part.entries.len() > self.config.limits.message_bytes {
                    let limit = self.config.limits.message_bytes;
                    let error = format!("a list is over the limit of {limit} bytes (Limits::message_bytes)");
                    gather.failed = Some(RpcError::internal(error));
                } else {
                    next = result.get("nextCursor").filter(|cursor| cursor.as_string().is_some());
                    next = next.filter(|_| part.pages < PAGES);
                    gather.parts.insert(upstream, part);
                }
            }
            Err(error) if error.code == ErrorCode::METHOD_NOT_FOUND => {
                gather.parts.entry(upstream).or_default();
            }
            Err(error) => gather.failed = Some(error),
        }
        if let Some(cursor) = next {
            self.gathers.insert(key, gather);
            return self.gather_page(key, upstream, Some(cursor.as_str()), now);
        }
        gather.missing -= 1;
        if gather.missing > 0 {
            self.gathers.insert(key, gather);
            return;
        }
        let Gather { host, id, method, parts, version, failed, held, .. } = gather;
        if let Some(held) = held {
            return self.looked_up(host, &id, (method, held, failed), now);
        }
        if let Some(error) = failed.filter(|_| parts.is_empty()) {
            let code = crate::translate::error_to_modern(error, None);
            return self.respond_error(host, &id, ReplyClass::HandlerError, &code);
        }
        let mut out = b"\"result\":{".to_vec();
        write::string(&mut out, list_member(method).map_or("", |(_, member)| member));
        out.extend_from_slice(b":[");
        for part in parts.values() {
            out.extend_from_slice(&part.entries);
        }
        if out.last() == Some(&b',') {
            out.pop();
        }
        out.push(b']');
        if version.is_none() {
            out.extend_from_slice(
                b",\"resultType\":\"complete\",\"ttlMs\":0,\"cacheScope\":\"private\",\"_meta\":{",
            );
            write::string(&mut out, crate::wire::key::SERVER_INFO);
            out.push(b':');
            self.config.info.write(&mut out);
            out.push(b'}');
        }
        out.push(b'}');
        self.respond(host, &id, ReplyClass::Result, |bytes| bytes.extend_from_slice(&out));
    }

    /// One page's entries, in the host's words.
    fn add_page(&self, out: &mut Vec<u8>, upstream: usize, gather: &Gather, result: Json<'_>) {
        let member = list_member(gather.method).map_or("", |(_, member)| member);
        let translated = self.translated(gather.method, result, gather.version);
        let entries = Json::trusted(&translated).get(member);
        for entry in entries.and_then(Json::items).into_iter().flatten() {
            self.prefixed(out, upstream, gather.method, entry);
            out.push(b',');
        }
    }

    /// A list in the host's words.
    fn translated(&self, method: &str, result: Json<'_>, version: Option<Version>) -> String {
        let mut out = Vec::new();
        match version {
            Some(version) => result_to_legacy(&mut out, method, result, version),
            None => result_to_modern(&mut out, method, result, None),
        }
        String::from_utf8(out).unwrap_or_default()
    }

    /// An entry of a list under its upstream's name.
    fn prefixed(&self, out: &mut Vec<u8>, upstream: usize, method: &str, entry: Json<'_>) {
        use crate::translate::{Edit, Keep, edit_object};
        if !matches!(method, "tools/list" | "prompts/list") {
            return write::one_line(out, entry.as_str());
        }
        let prefix = self.config.upstreams.get(upstream).map_or("", |up| &*up.name);
        let edit = |name: &str, value: Json<'_>, out: &mut Vec<u8>| match (name, value.as_string()) {
            ("name", Some(name)) => {
                write::string(out, &format!("{prefix}{SEPARATOR}{name}"));
                Edit::Replaced
            }
            _ => Edit::Keep,
        };
        edit_object(out, entry, edit, Keep);
    }

    /// Remembers what a list says that later requests need.
    pub(super) fn learn(&mut self, upstream: usize, method: &str, result: Json<'_>) {
        match method {
            "tools/list" if result.as_str().contains("\"x-mcp-header\"") => {
                let Some(state) = self.upstreams.get_mut(upstream) else { return };
                for tool in result.get("tools").and_then(Json::items).into_iter().flatten() {
                    let name = tool.get("name").and_then(Json::as_string);
                    let headers = tool.get("inputSchema").map(ParamHeaders::from_schema);
                    if let (Some(name), Some(Ok(headers))) = (name, headers)
                        && (state.annotations.len() < TOOLS || state.annotations.contains_key(&*name))
                    {
                        state.annotations.insert(name.as_ref().into(), headers);
                    }
                }
            }
            _ => self.learn_resources(upstream, method, result),
        }
    }

    /// A host's request is refused because of its state: one sentence whatever was wrong (G-11).
    pub(super) fn refuse_state(&mut self, host: HostId, id: &RequestId, verdict: Verdict) {
        self.counts.refused += 1;
        let place = Verdict::ALL.iter().position(|known| *known == verdict);
        if let Some(count) = place.and_then(|place| self.counts.refused_by.get_mut(place)) {
            *count += 1;
        }
        crate::trace::warn!(verdict = %verdict, "a state was refused");
        let error = RpcError::invalid_params(crate::seal::Refused::WIRE_MESSAGE);
        self.respond_error(host, id, ReplyClass::HandlerError, &error);
    }

    pub(super) fn relay_failed(&mut self, relay: &Relay, error: &RpcError) {
        self.respond_error(relay.host, &relay.id, ReplyClass::Internal, error);
    }
}
