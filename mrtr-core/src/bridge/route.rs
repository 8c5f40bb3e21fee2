//! Which upstream a request is for. With several upstreams, names of tools and prompts carry the upstream's name:
//! `files__read`. Resources keep their uris: whose they are is `resources`' to say.

use alloc::{borrow::Cow, format, string::String};

use super::{
    Bridge, HostId,
    host::{Modern, busy, text},
    relay::Relay,
    resources::{Held, held_legacy},
};
use crate::{
    error::{ErrorCode, RpcError},
    http::{Headers, ReplyClass, check_params},
    jsonrpc::{Json, Parts, Request, RequestId},
    seal::Verdict,
    time::Timestamp,
    wire::{AskingMethod, Era, Version},
};

/// Between the upstream's name and the tool's.
pub(super) const SEPARATOR: &str = "__";

/// The lists, and the member that holds their entries.
pub(super) fn list_member(method: &str) -> Option<(&'static str, &'static str)> {
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

    pub(super) fn era(&self, upstream: usize) -> Era {
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
        if self.is_unlisted(method, &request.parts())
            && let Some(legacy) = self.hosts.get_mut(&host).and_then(super::Host::legacy)
        {
            let held = held_legacy(request, legacy.version, legacy.declared.clone());
            return self.look_up(host, id.clone(), held, now);
        }
        self.route_legacy_on(host, request, now);
    }

    pub(super) fn route_legacy_on(&mut self, host: HostId, request: &Request<'_>, now: Timestamp) {
        let (id, method) = (&request.id, &*request.method);
        let parts = request.parts();
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
