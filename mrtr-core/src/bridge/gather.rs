//! Lists of several upstreams, put together: each is asked for all its pages, and tools and prompts go under its name.

use alloc::{boxed::Box, collections::BTreeMap, format, string::String, vec::Vec};

use super::{
    Bridge, HostId,
    host::{Open, busy},
    link::Purpose,
    pool::Want,
    resources::Held,
    route::{SEPARATOR, list_member},
};
use crate::{
    error::{ErrorCode, RpcError},
    http::{ParamHeaders, ReplyClass},
    jsonrpc::{Json, RequestId, write},
    time::Timestamp,
    translate::{ModernMeta, params_to_legacy, params_to_modern, result_to_legacy, result_to_modern},
    wire::{Era, Version},
};

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

impl Bridge {
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
    pub(super) fn gather(
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
}
