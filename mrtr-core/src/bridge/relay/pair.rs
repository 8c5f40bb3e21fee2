//! Legacy to legacy: ids and tokens are mapped, nothing else.

use super::*;
use crate::{
    bridge::{
        inbox::{Asker, Entry},
        link::LinkKind,
    },
    translate::{Origin, answer_to_legacy, ask_to_modern, promise},
};

impl Bridge {
    /// A legacy host's request for a legacy upstream: ids and tokens are mapped, nothing else.
    pub(in crate::bridge) fn relay_pair(
        &mut self,
        host: HostId,
        request: &Request<'_>,
        upstream: usize,
        name: Option<&str>,
        now: Timestamp,
    ) {
        // One that has died is begun anew: what was in flight on it has failed, and the host was told.
        let link = match self.dedicated(host, upstream) {
            Some(link) => link,
            None => match self.may_have_own(host, &[upstream], now) {
                Ok(()) => self.open_dedicated(host, upstream, now),
                Err(error) => return self.respond_error(host, &request.id, ReplyClass::Internal, &error),
            },
        };
        let Some(legacy) = self.hosts.get_mut(&host).and_then(crate::bridge::Host::legacy) else { return };
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
            target: self.target_for_inbox(request),
        };
        self.set_open(host, &request.id, Open::Sent(id));
        self.send(link, id, bytes, Vec::new(), Purpose::Relay(Box::new(relay)), now);
    }

    /// What is called, if anybody may have to read it.
    fn target_for_inbox(&self, request: &Request<'_>) -> Option<Box<str>> {
        if self.config.inbox == ClientCapabilities::default() {
            return None;
        }
        AskingMethod::from_name(&request.method)?;
        let name = request.param("name").or_else(|| request.param("uri"))?.as_string()?;
        Some(name.into_owned().into())
    }

    /// A legacy upstream asks a legacy host: under an id of ours, on the stream of the call it belongs to (B-72).
    pub(in crate::bridge) fn pair_ask(
        &mut self,
        link: LinkId,
        host: HostId,
        call: Option<i64>,
        request: &Request<'_>,
        now: Timestamp,
    ) {
        let found = match call {
            Some(call) => self.host_stream(link, call),
            // On a pipe nothing says which call it belongs to. All are this host's: the newest that may ask.
            None => self.newest_asking(link),
        };
        let Some(stream) = found else {
            let error = RpcError::invalid_params("no request that may ask is in flight in this session");
            return self.answer_upstream_error(link, &request.id, &error);
        };
        // What is only guessed must not be taken back with the call.
        let sure = match &stream {
            HostStream::Request(id) if call.is_some() => Some(id.clone()),
            HostStream::Request(_) | HostStream::Common => None,
        };
        if self.divert_pair(link, host, sure.clone(), request, now) {
            return;
        }
        let limit = self.config.limits.asks_accepted;
        let Some(legacy) = self.hosts.get_mut(&host).and_then(crate::bridge::Host::legacy) else { return };
        let of = |asked: &&crate::bridge::host::AskedHost| matches!(&asked.whose, crate::bridge::host::Whose::Pair { link: other, .. } if *other == link);
        if legacy.asked.values().filter(of).count() >= limit {
            let error = RpcError::internal("too many questions at a time (Limits::asks_accepted)");
            return self.answer_upstream_error(link, &request.id, &error);
        }
        let id = self.fresh_id();
        let whose = crate::bridge::host::Whose::Pair { link, id: request.id.clone() };
        let Some(legacy) = self.hosts.get_mut(&host).and_then(crate::bridge::Host::legacy) else { return };
        legacy.asked.insert(id, crate::bridge::host::AskedHost { whose, call: sure });
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
                        "message" => write_message(out, value, Origin::Named(&up.name)),
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

    /// What the host cannot be asked and the inbox can goes there; whether it did.
    fn divert_pair(
        &mut self,
        link: LinkId,
        host: HostId,
        call: Option<RequestId>,
        request: &Request<'_>,
        now: Timestamp,
    ) -> bool {
        let Some(legacy) = self.hosts.get_mut(&host).and_then(crate::bridge::Host::legacy) else {
            return false;
        };
        let can = legacy.capabilities;
        let upstream = self.links.get(&link).map_or(0, |link| link.upstream);
        let name = self.config.upstreams.get(upstream).map_or("", |up| &*up.name);
        let origin = if self.named { Origin::Named(name) } else { Origin::Untouched };
        let mut question = Vec::new();
        let read = ask_to_modern(&mut question, &request.method, request.params, self.config.inbox, origin);
        let Ok(ask) = read else { return false };
        if can.allow(ask.needs) || !self.config.inbox.allow(ask.needs) {
            return false;
        }
        let of = |asker: &Asker| matches!(asker, Asker::Pair { link: other, .. } if *other == link);
        if self.inbox.count_of(of) >= self.config.limits.asks_accepted {
            let error = RpcError::internal("too many questions at a time (Limits::asks_accepted)");
            self.answer_upstream_error(link, &request.id, &error);
            return true;
        }
        let entry = Entry {
            owner: self.owner(host),
            upstream,
            target: self.newest_target(link).unwrap_or_default(),
            kind: ask.kind,
            question: String::from_utf8(question).unwrap_or_default().into(),
            created: now,
            expires: now.saturating_add(self.config.waits.inbox),
            asker: Asker::Pair { link, id: request.id.clone(), call: call.map(|id| (host, id)) },
            key: "".into(),
        };
        let _ = self.inbox.add(entry);
        self.counts.asks += 1;
        self.schedule_inbox();
        true
    }

    /// The tool, prompt or resource of the newest call that may ask.
    fn newest_target(&self, link: LinkId) -> Option<Box<str>> {
        let LinkKind::Legacy(session) = &self.links.get(&link)?.kind else { return None };
        let mut calls = session.in_flight.iter().rev().filter_map(|id| self.sent_on(link, *id)?.relay());
        calls.find_map(|relay| relay.target.clone())
    }

    /// An answer from the inbox for a legacy upstream.
    pub(in crate::bridge) fn pair_inbox(
        &mut self,
        link: LinkId,
        id: &RequestId,
        kind: AskKind,
        outcome: Result<Json<'_>, RpcError>,
    ) {
        match outcome {
            Ok(answer) => {
                let mut value = Vec::new();
                // It was checked when it was given.
                if answer_to_legacy(&mut value, kind, answer).is_ok() {
                    self.answer_upstream(link, id, &value);
                }
            }
            Err(error) => self.answer_upstream_error(link, id, &error),
        }
    }

    /// What the upstream behind a connection is told that a legacy host can answer: what the host says, and the inbox.
    pub(in crate::bridge) fn declared_with_inbox(
        &self,
        declared: &str,
        host: ClientCapabilities,
        version: Version,
    ) -> String {
        let both = host.union(self.config.inbox);
        let (_, together) = promise(both, version);
        let together = Json::trusted(&together);
        let own = Json::trusted(declared);
        if both == host {
            return declared.into();
        }
        let mut out = Vec::new();
        let (_, alone) = promise(host, version);
        let alone = Json::trusted(&alone);
        let grown = |name: &str| {
            let new = together.get(name)?;
            (alone.get(name).map(Json::as_str) != Some(new.as_str())).then_some(new)
        };
        let edit = |name: &str, _: Json<'_>, out: &mut Vec<u8>| match grown(name) {
            Some(new) => {
                out.extend_from_slice(new.as_str().as_bytes());
                Edit::Replaced
            }
            None => Edit::Keep,
        };
        edit_object(&mut out, own, edit, |tail: &mut Tail<'_>| {
            for name in ["elicitation", "sampling", "roots"] {
                if own.get(name).is_none()
                    && let Some(new) = grown(name)
                {
                    tail.member(name).extend_from_slice(new.as_str().as_bytes());
                }
            }
        });
        String::from_utf8(out).unwrap_or_default()
    }

    /// A notification of a legacy host, for the sessions that it has for itself.
    pub(in crate::bridge) fn tell_dedicated(&mut self, host: HostId, notification: &Notification<'_>) {
        for upstream in 0..self.upstreams.len() {
            if let Some(link) = self.dedicated(host, upstream) {
                self.transmit(link, None, notes::with_params(notification), Vec::new());
            }
        }
    }

    pub(super) fn newest_asking(&self, link: LinkId) -> Option<HostStream> {
        let session = match &self.links.get(&link)?.kind {
            LinkKind::Legacy(session) => session,
            LinkKind::Modern => return None,
        };
        let mut calls = session.in_flight.iter().rev().filter_map(|id| self.sent_on(link, *id));
        calls.find_map(|sent| {
            let relay = sent.relay().filter(|relay| AskingMethod::from_name(&relay.method).is_some())?;
            Some(HostStream::Request(relay.id.clone()))
        })
    }

    /// A legacy host's answer for a legacy upstream, as it is.
    pub(in crate::bridge) fn pair_answered(
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
}
