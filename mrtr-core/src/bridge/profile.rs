//! Who the upstreams say they are: `server/discover` and `initialize` put together (R-046, R-228, BT-8).

use alloc::{boxed::Box, string::String, vec::Vec};

use super::{
    Bridge, HostId, LinkId,
    host::{Host, HostEra, LegacyHost, Open},
    link::{Link, Purpose},
    pool::Want,
};
use crate::{
    error::RpcError,
    http::ReplyClass,
    jsonrpc::{Json, Request, RequestId, write},
    time::Timestamp,
    translate::{ModernMeta, params_to_modern, promise, understood},
    wire::{ClientCapabilities, Era, Version, key},
};

/// What an upstream said of itself, as JSON text.
pub(super) struct Profile {
    capabilities: Box<str>,
    pub(super) info: Option<Box<str>>,
    instructions: Option<Box<str>>,
}

/// A host that wants to know who the server is.
pub(super) struct Curious {
    pub(super) host: HostId,
    id: RequestId,
    /// For `initialize`: the revision offered.
    version: Option<Version>,
}

impl Profile {
    fn read(result: Json<'_>, info: Option<Json<'_>>) -> Self {
        let text = |value: Json<'_>| Box::from(value.as_str());
        Self {
            capabilities: result
                .get("capabilities")
                .filter(|value| value.is_object())
                .map_or("{}".into(), text),
            info: info.filter(|value| value.is_object()).map(text),
            instructions: result.get("instructions").filter(|value| value.as_string().is_some()).map(text),
        }
    }

    /// Whether a flag of a capability is set.
    pub(super) fn says(&self, name: &str, flag: &str) -> bool {
        self.has(name).and_then(|value| value.get(flag)?.as_bool()) == Some(true)
    }

    pub(super) fn has(&self, name: &str) -> Option<Json<'_>> {
        Json::trusted(&self.capabilities).get(name)
    }
}

impl Bridge {
    /// `server/discover` of a modern host.
    pub(super) fn discover(&mut self, host: HostId, id: &RequestId, can: ClientCapabilities, now: Timestamp) {
        self.ask_all(host, id, None, can, now);
    }

    /// `initialize` of a legacy host: revision and capabilities are settled for the session (R-228).
    pub(super) fn initialize_host(&mut self, host: HostId, request: &Request<'_>, now: Timestamp) {
        let id = &request.id;
        let invalid = |what: &str| RpcError::invalid_params(alloc::format!("Invalid params: {what}"));
        let requested = request.param("protocolVersion").and_then(Json::as_string);
        let declared = request.param("capabilities").unwrap_or(Json::EMPTY_OBJECT);
        let read = match (&requested, ClientCapabilities::from_json(declared)) {
            (None, _) => Err(invalid("protocolVersion is missing or not a string")),
            (_, None) => Err(invalid("capabilities is not an object of objects")),
            (Some(requested), Some(declared)) => {
                let version = self.config.negotiate(Version::from_name(requested));
                version
                    .map(|version| (version, declared))
                    .ok_or_else(|| invalid("no legacy revision is served"))
            }
        };
        let (mut version, capabilities) = match read {
            Ok(read) => read,
            Err(error) => return self.respond_error(host, id, ReplyClass::HandlerError, &error),
        };
        // A legacy upstream and a legacy host speak the older one's words, for nothing is translated between them.
        for (config, state) in self.config.upstreams.iter().zip(&self.upstreams) {
            if config.era == Era::Legacy
                && let Some(known) = state.version
            {
                version = version.min(known);
            }
        }
        let upstreams: Vec<usize> = self.legacy_upstreams();
        if let Err(error) = self.may_have_own(host, &upstreams, now) {
            self.counts.over += 1;
            return self.respond_error(host, id, ReplyClass::Internal, &error);
        }
        let legacy = LegacyHost {
            version,
            capabilities: understood(capabilities, version),
            declared: declared.as_str().into(),
            ready: false,
            level: None,
            asked: Default::default(),
            waiting: Vec::new(),
        };
        if let Some(entry) = self.hosts.get_mut(&host) {
            entry.era = HostEra::Legacy(Box::new(legacy));
        }
        for upstream in upstreams {
            let _ = self.open_dedicated(host, upstream, now);
        }
        self.ask_all(host, id, Some(version), capabilities, now);
    }

    fn legacy_upstreams(&self) -> Vec<usize> {
        let configured = self.config.upstreams.iter().enumerate();
        configured.filter(|(_, up)| up.era == Era::Legacy).map(|(upstream, _)| upstream).collect()
    }

    /// Begins a legacy host's own session with a legacy upstream, with what the host itself has declared.
    pub(super) fn open_dedicated(&mut self, host: HostId, upstream: usize, now: Timestamp) -> LinkId {
        let legacy = self.hosts.get_mut(&host).and_then(Host::legacy);
        let (version, can, declared) = legacy
            .map_or((Version::V2025_11_25, ClientCapabilities::default(), "{}".into()), |legacy| {
                (legacy.version, legacy.capabilities, legacy.declared.clone())
            });
        let declared = self.declared_with_inbox(&declared, can, version);
        let want = Want { upstream, owner: self.owner(host), host: can, asking: true };
        self.open_session(&want, Some((host, version, &declared)), now)
    }

    fn ask_all(
        &mut self,
        host: HostId,
        id: &RequestId,
        version: Option<Version>,
        can: ClientCapabilities,
        now: Timestamp,
    ) {
        self.set_open(host, id, Open::Profile);
        self.curious.push(Curious { host, id: id.clone(), version });
        for upstream in 0..self.upstreams.len() {
            let era = self.config.upstreams.get(upstream).map_or(Era::Modern, |up| up.era);
            let Some(state) = self.upstreams.get_mut(upstream) else { continue };
            if state.profile.is_some() || core::mem::replace(&mut state.asked, true) {
                continue;
            }
            match era {
                Era::Modern => self.ask_profile(upstream, now),
                // Its session says it.
                Era::Legacy if version.is_some() => {}
                Era::Legacy => {
                    let want = Want { upstream, owner: self.owner(host), host: can, asking: false };
                    if self.acquire(&want, now).is_none()
                        && let Some(state) = self.upstreams.get_mut(upstream)
                    {
                        state.asked = false;
                    }
                }
            }
        }
        self.answer_curious(None);
    }

    fn ask_profile(&mut self, upstream: usize, now: Timestamp) {
        let link = self.modern_link(upstream);
        let id = self.fresh_id();
        let mut bytes = b"{\"jsonrpc\":\"2.0\",\"id\":".to_vec();
        write::integer(&mut bytes, id);
        bytes.extend_from_slice(b",\"method\":\"server/discover\",\"params\":");
        let from = bytes.len();
        let meta = ModernMeta {
            client: &self.config.info,
            capabilities: "{}",
            log_level: None,
            progress_token: None,
        };
        params_to_modern(&mut bytes, None, &meta, None, None);
        let params = core::str::from_utf8(bytes.get(from..).unwrap_or_default()).unwrap_or("{}");
        let headers = self.headers(upstream, "server/discover", Json::trusted(params)).unwrap_or_default();
        bytes.push(b'}');
        self.send(link, id, bytes, headers, Purpose::Discover, now);
    }

    /// The result of `server/discover`.
    pub(super) fn discovered(&mut self, link: LinkId, outcome: Result<Json<'_>, RpcError>, _now: Timestamp) {
        let Some(upstream) = self.links.get(&link).map(|link| link.upstream) else { return };
        match outcome {
            Ok(result) if result.is_object() => {
                let info = result.get("_meta").and_then(|meta| meta.get(key::SERVER_INFO));
                let profile = Profile::read(result, info);
                if let Some(state) = self.upstreams.get_mut(upstream) {
                    state.profile = Some(profile);
                }
                self.answer_curious(None);
            }
            Ok(_) => self.no_profile(link, &RpcError::internal("the upstream's result is not valid")),
            Err(error) => self.no_profile(link, &error),
        }
    }

    /// An upstream has not said who it is.
    pub(super) fn no_profile(&mut self, link: LinkId, error: &RpcError) {
        if let Some(upstream) = self.links.get(&link).map(|link| link.upstream) {
            self.unknown_profile(upstream, error);
        }
    }

    pub(super) fn unknown_profile(&mut self, upstream: usize, error: &RpcError) {
        if let Some(state) = self.upstreams.get_mut(upstream) {
            state.asked = false;
        }
        self.answer_curious(Some(error));
    }

    /// The result of `initialize` on a session.
    pub(super) fn initialized(&mut self, id: LinkId, outcome: Result<Json<'_>, RpcError>, now: Timestamp) {
        let version = |result: Json<'_>| Version::from_name(&result.get("protocolVersion")?.as_string()?);
        let (result, version) = match outcome.map(|result| (result, version(result))) {
            Ok((result, Some(version))) if version.era() == Era::Legacy => (result, version),
            Ok(_) => {
                let error =
                    RpcError::internal("the upstream settles on a revision that the bridge does not speak");
                return self.close_link(id, &error, now);
            }
            Err(error) => {
                let error = crate::translate::caused("the upstream refused to begin a session", &error);
                return self.close_link(id, &error, now);
            }
        };
        let Some(link) = self.links.get_mut(&id) else { return };
        let upstream = link.upstream;
        let Some(session) = link.session() else { return };
        let (promised, json) = promise(session.wanted, version);
        // An older server reads more out of a promise than its host can keep, or less: begin again in its own words.
        let again = session.host.is_none() && version != session.version && promised != session.promised;
        session.version = version;
        if let Some(state) = self.upstreams.get_mut(upstream) {
            state.version = Some(version);
            state.profile = Some(Profile::read(result, result.get("serverInfo")));
        }
        if again {
            self.begin_again(id, promised, &json, now);
        } else {
            session.ready = true;
            session.logging = result.get("capabilities").and_then(|can| can.get("logging")).is_some();
            let logging = session.logging;
            self.transmit(
                id,
                None,
                br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#.to_vec(),
                Vec::new(),
            );
            if let Some(level) = self.wanted_on(id).filter(|_| logging) {
                self.set_session_level(id, level, now);
            }
            self.send_waiting(id, now);
        }
        self.answer_curious(None);
    }

    /// Replaces a session's connection, with all that waits for it.
    fn begin_again(&mut self, old: LinkId, promised: ClientCapabilities, json: &str, now: Timestamp) {
        let Some(mut link) = self.links.remove(&old) else { return };
        self.timers.set(super::Whom::Link(old), &mut link.timer, None);
        self.out.push_back(super::Output::CloseUpstream { link: old });
        let super::link::LinkKind::Legacy(mut session) = link.kind else { return };
        session.promised = promised;
        let version = session.version;
        let (waiting, call) = (session.in_flight.clone(), session.call);
        let new = self.fresh_link(link.upstream, super::link::LinkKind::Legacy(session));
        if let Some(state) = self.upstreams.get_mut(link.upstream) {
            state.idle.remove(&old);
        }
        for id in waiting {
            if let Some(sent) = self.sent.get_mut(&id) {
                sent.link = new;
            }
        }
        if let Some(call) = call.and_then(|call| self.parked.get_mut(&call)) {
            call.link = Some(new);
        }
        self.initialize(new, version, json, now);
    }

    /// Answers those who wanted to know, once all upstreams have spoken or failed.
    fn answer_curious(&mut self, error: Option<&RpcError>) {
        if self.curious.is_empty()
            || self.upstreams.iter().any(|state| state.profile.is_none() && state.asked)
        {
            return;
        }
        let unknown = self.upstreams.iter().all(|state| state.profile.is_none());
        for Curious { host, id, version } in core::mem::take(&mut self.curious) {
            if unknown {
                let fallback = RpcError::internal("no upstream is there");
                self.respond_error(host, &id, ReplyClass::Internal, error.unwrap_or(&fallback));
                continue;
            }
            let mut body = b"\"result\":".to_vec();
            self.write_profile(&mut body, host, version);
            self.respond(host, &id, ReplyClass::Result, |out| out.extend_from_slice(&body));
        }
    }

    fn write_profile(&mut self, out: &mut Vec<u8>, host: HostId, version: Option<Version>) {
        let version = version.map(|offered| {
            let legacy = self.hosts.get_mut(&host).and_then(Host::legacy);
            let known = self.config.upstreams.iter().zip(&self.upstreams);
            let known =
                known.filter(|(config, _)| config.era == Era::Legacy).filter_map(|(_, state)| state.version);
            let version = known.fold(offered, Version::min);
            if let Some(legacy) = legacy {
                legacy.version = version;
                legacy.capabilities = understood(legacy.capabilities, version);
            }
            version
        });
        match version {
            Some(version) => {
                out.extend_from_slice(b"{\"protocolVersion\":");
                write::string(out, version.name());
            }
            None => out.extend_from_slice(b"{\"supportedVersions\":[\"2026-07-28\"]"),
        }
        out.extend_from_slice(b",\"capabilities\":");
        self.write_capabilities(out);
        let profiles: Vec<&Profile> =
            self.upstreams.iter().filter_map(|state| state.profile.as_ref()).collect();
        let single = match (profiles.as_slice(), self.upstreams.len()) {
            ([profile], 1) => profile.info.as_deref(),
            _ => None,
        };
        let mut instructions = String::new();
        for profile in &profiles {
            if let Some(text) =
                profile.instructions.as_deref().and_then(|text| Json::trusted(text).as_string())
            {
                if !instructions.is_empty() {
                    instructions.push_str("\n\n");
                }
                instructions.push_str(&text);
            }
        }
        if !instructions.is_empty() {
            out.extend_from_slice(b",\"instructions\":");
            write::string(out, &instructions);
        }
        let info = |out: &mut Vec<u8>| match single {
            Some(info) => write::one_line(out, info),
            None => self.config.info.write(out),
        };
        if version.is_some() {
            out.extend_from_slice(b",\"serverInfo\":");
            info(out);
        } else {
            out.extend_from_slice(
                b",\"resultType\":\"complete\",\"ttlMs\":0,\"cacheScope\":\"private\",\"_meta\":{",
            );
            write::string(out, key::SERVER_INFO);
            out.push(b':');
            info(out);
            out.push(b'}');
        }
        out.push(b'}');
    }

    /// What the upstreams together can do, as far as it crosses (BT-8): no tasks.
    fn write_capabilities(&self, out: &mut Vec<u8>) {
        let states = || self.config.upstreams.iter().zip(&self.upstreams);
        out.push(b'{');
        let mut first = true;
        for name in ["tools", "prompts", "resources", "completions", "logging"] {
            let has =
                |state: &super::UpstreamState| state.profile.as_ref().is_some_and(|p| p.has(name).is_some());
            if !states().any(|(_, state)| has(state)) {
                continue;
            }
            if !core::mem::take(&mut first) {
                out.push(b',');
            }
            write::string(out, name);
            out.extend_from_slice(b":{");
            let mut inner = true;
            for flag in ["listChanged", "subscribe"] {
                let said = |state: &super::UpstreamState| {
                    state.profile.as_ref().is_some_and(|profile| profile.says(name, flag))
                };
                if states().any(|(_, state)| said(state)) {
                    if !core::mem::take(&mut inner) {
                        out.push(b',');
                    }
                    write::string(out, flag);
                    out.extend_from_slice(b":true");
                }
            }
            out.push(b'}');
        }
        out.push(b'}');
    }

    /// What the upstream of a connection is called, for `_meta` of results (R-036).
    pub(super) fn server_info(&self, upstream: usize) -> Option<&str> {
        self.upstreams.get(upstream)?.profile.as_ref()?.info.as_deref()
    }

    pub(super) fn host_of(&mut self, link: LinkId) -> Option<HostId> {
        self.links.get_mut(&link).and_then(Link::session)?.host
    }
}
