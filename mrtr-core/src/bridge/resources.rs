//! Whose a resource is. Uris carry no name of an upstream, so the lists tell; and a retry goes where its state was made,
//! whatever a process has heard of lists since (R-254: any replica takes it).
//!
//! The first of these that says something counts:
//!
//! 1. the state of a retry, which names its upstream;
//! 2. an upstream that has listed the uri, or linked to it in a result: the first of the configuration;
//! 3. a listed template that begins as the uri does: the longest beginning, then the first of the configuration;
//! 4. the only upstream that has resources at all;
//! 5. the lists, which are asked for now, and then 2 and 3 once more;
//! 6. the first upstream that has resources.

use alloc::{boxed::Box, collections::BTreeSet, string::String};

use super::{Bridge, HostId, host::Modern};
use crate::{
    error::RpcError,
    http::ReplyClass,
    jsonrpc::{self, Json, Message, Parts, Request, RequestId},
    time::Timestamp,
    wire::{AskingMethod, RequestMeta, Version},
};

/// Uris of one upstream that are remembered: one that lists more takes no room from another.
const URIS: usize = 10_000;

/// Templates of one upstream that are remembered.
const TEMPLATES: usize = 1_000;

/// Bytes of a uri that is remembered.
const URI_BYTES: usize = 4_096;

/// What one upstream has listed.
#[derive(Default)]
pub(super) struct Listed {
    uris: BTreeSet<Box<str>>,
    /// Templates up to their first expression.
    beginnings: BTreeSet<Box<str>>,
}

/// A request that waits for the lists.
pub(super) enum Held {
    /// The whole message.
    Modern(Box<str>),
    Legacy {
        method: Box<str>,
        params: Option<Box<str>>,
        version: Version,
        declared: Box<str>,
    },
}

impl Held {
    /// Of a legacy host that is asked for, its revision.
    pub(super) const fn version(&self) -> Option<Version> {
        match self {
            Self::Modern(_) => None,
            Self::Legacy { version, .. } => Some(*version),
        }
    }
}

impl Listed {
    fn add(set: &mut BTreeSet<Box<str>>, text: &str, most: usize) {
        if set.len() < most && !text.is_empty() && text.len() <= URI_BYTES && !set.contains(text) {
            set.insert(text.into());
        }
    }

    /// The length of the longest beginning that `uri` has.
    fn begins(&self, uri: &str) -> Option<usize> {
        let beginnings = self.beginnings.iter().map(|beginning| &**beginning);
        beginnings.filter(|beginning| uri.starts_with(beginning)).map(str::len).max()
    }
}

/// The uri that decides where a request goes.
fn uri<'a>(method: &str, parts: &Parts<'a>) -> Option<alloc::borrow::Cow<'a, str>> {
    match method {
        "resources/read" | "resources/subscribe" | "resources/unsubscribe" => parts.uri?.as_string(),
        "completion/complete" => parts.reference?.get("uri")?.as_string(),
        _ => None,
    }
}

impl Bridge {
    /// Remembers whose the resources in a result are.
    pub(super) fn learn_resources(&mut self, upstream: usize, method: &str, result: Json<'_>) {
        if self.is_single() {
            return;
        }
        let Some(listed) = self.upstreams.get_mut(upstream).map(|state| &mut state.listed) else { return };
        let items = |name: &str| result.get(name).and_then(Json::items).into_iter().flatten();
        match method {
            "resources/list" => {
                for resource in items("resources") {
                    if let Some(uri) = resource.get("uri").and_then(Json::as_string) {
                        Listed::add(&mut listed.uris, &uri, URIS);
                    }
                }
            }
            "resources/templates/list" => {
                for template in items("resourceTemplates") {
                    if let Some(template) = template.get("uriTemplate").and_then(Json::as_string) {
                        let beginning = template.split('{').next().unwrap_or_default();
                        Listed::add(&mut listed.beginnings, beginning, TEMPLATES);
                    }
                }
            }
            "tools/call" if result.as_str().contains("\"resource_link\"") => {
                for block in items("content") {
                    let kind = block.get("type").and_then(Json::as_string);
                    if kind.as_deref() == Some("resource_link")
                        && let Some(uri) = block.get("uri").and_then(Json::as_string)
                    {
                        Listed::add(&mut listed.uris, &uri, URIS);
                    }
                }
            }
            _ => {}
        }
    }

    /// The upstream that has listed a resource.
    fn listed(&self, uri: &str) -> Option<usize> {
        let listed = || self.upstreams.iter().map(|state| &state.listed).enumerate();
        let exact = listed().find(|(_, listed)| listed.uris.contains(uri)).map(|(upstream, _)| upstream);
        exact.or_else(|| {
            let found = listed().filter_map(|(upstream, listed)| Some((listed.begins(uri)?, upstream)));
            // The first of those with the longest.
            found.rev().max_by_key(|(length, _)| *length).map(|(_, upstream)| upstream)
        })
    }

    /// Those that may have resources: who has not said what it has may have all.
    pub(super) fn with_resources(&self) -> impl Iterator<Item = usize> {
        let has = |state: &super::UpstreamState| {
            state.profile.as_ref().is_none_or(|profile| profile.has("resources").is_some())
        };
        self.upstreams.iter().enumerate().filter(move |(_, state)| has(state)).map(|(upstream, _)| upstream)
    }

    /// The upstream whose resource it is, as far as it is known.
    pub(super) fn whose(&self, uri: &str) -> usize {
        self.listed(uri).or_else(|| self.with_resources().next()).unwrap_or(0)
    }

    /// The upstream that made the state of a retry.
    pub(super) fn whose_state(&self, host: HostId, m: &Modern<'_>, now: Timestamp) -> Option<usize> {
        if self.is_single() {
            return None;
        }
        let method = AskingMethod::from_name(&m.request.method)?;
        let token = m.parts.state.and_then(Json::as_string)?;
        let digest = super::relay::digest(method, &m.parts).ok()?;
        let name = self.vault.origin(&token, &self.owner(host), &digest, now)?;
        self.config.upstreams.iter().position(|up| *up.name == *name)
    }

    /// Whether the lists have to be asked before it is known where a request goes.
    pub(super) fn is_unlisted(&self, method: &str, parts: &Parts<'_>) -> bool {
        !self.is_single()
            && parts.state.is_none()
            && uri(method, parts).is_some_and(|uri| self.listed(&uri).is_none())
            && self.with_resources().nth(1).is_some()
    }

    /// Asks for the lists and holds the request until then.
    pub(super) fn look_up(&mut self, host: HostId, id: RequestId, held: Held, now: Timestamp) {
        self.gather_for(host, id, "resources/list", held, now);
    }

    /// The lists are there: goes on with a request that waited for them. With nobody's word for it and a list missing it
    /// fails, for the upstream that it is for may be the one that did not answer.
    pub(super) fn looked_up(
        &mut self,
        host: HostId,
        id: &RequestId,
        (method, held, failed): (&'static str, Held, Option<RpcError>),
        now: Timestamp,
    ) {
        let message;
        let (request, version) = match &held {
            Held::Modern(whole) => {
                message = jsonrpc::admit(whole.as_bytes(), &self.config.limits);
                let Ok(Message::Request(request)) = message else { return };
                (request, None)
            }
            Held::Legacy { method, params, version, .. } => {
                let params = params.as_deref().map(Json::trusted);
                (Request::made(id.clone(), method, params), Some(*version))
            }
        };
        let parts = request.parts();
        let known = uri(&request.method, &parts).is_some_and(|uri| self.listed(&uri).is_some());
        if !known && method == "resources/list" && failed.is_none() {
            return self.gather_for(host, id.clone(), "resources/templates/list", held, now);
        }
        if let Some(error) = failed.filter(|_| !known) {
            crate::trace::warn!("a list that would say whose a resource is did not come");
            return self.respond_error(host, id, ReplyClass::Internal, &error);
        }
        match (version, &held) {
            (None, Held::Modern(whole)) => {
                let Ok(meta) = RequestMeta::from_json(parts.meta) else { return };
                let whole = Json::trusted(whole);
                self.route_modern_on(host, &Modern { whole, request, meta, parts }, now);
            }
            _ => self.route_legacy_on(host, &request, now),
        }
    }
}

/// A request of a legacy host, to be gone on with.
pub(super) fn held_legacy(request: &Request<'_>, version: Version, declared: Box<str>) -> Held {
    Held::Legacy {
        method: String::from(&*request.method).into(),
        params: request.params.map(|params| params.as_str().into()),
        version,
        declared,
    }
}
