//! Legacy to legacy: ids and tokens are mapped, nothing else.

use super::*;

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
            None => match self.may_have_own(host, &[upstream]) {
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
        };
        self.set_open(host, &request.id, Open::Sent(id));
        self.send(link, id, bytes, Vec::new(), Purpose::Relay(Box::new(relay)), now);
    }

    /// A legacy upstream asks a legacy host: under an id of ours, on the stream of the call it belongs to (B-72).
    pub(in crate::bridge) fn pair_ask(
        &mut self,
        link: LinkId,
        host: HostId,
        call: Option<i64>,
        request: &Request<'_>,
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
        let limit = self.config.limits.asks_accepted;
        let Some(legacy) = self.hosts.get_mut(&host).and_then(crate::bridge::Host::legacy) else { return };
        let of = |asked: &&crate::bridge::host::AskedHost| matches!(&asked.whose, crate::bridge::host::Whose::Pair { link: other, .. } if *other == link);
        if legacy.asked.values().filter(of).count() >= limit {
            let error = RpcError::internal("too many questions at a time (Limits::asks_accepted)");
            return self.answer_upstream_error(link, &request.id, &error);
        }
        let id = self.fresh_id();
        let whose = crate::bridge::host::Whose::Pair { link, id: request.id.clone() };
        // What is only guessed must not be taken back with the call.
        let call = match &stream {
            HostStream::Request(id) if call.is_some() => Some(id.clone()),
            HostStream::Request(_) | HostStream::Common => None,
        };
        let Some(legacy) = self.hosts.get_mut(&host).and_then(crate::bridge::Host::legacy) else { return };
        legacy.asked.insert(id, crate::bridge::host::AskedHost { whose, call });
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
            crate::bridge::link::LinkKind::Legacy(session) => session,
            crate::bridge::link::LinkKind::Modern => return None,
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
