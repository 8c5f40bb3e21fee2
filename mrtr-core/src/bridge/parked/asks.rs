//! The questions of a parked call: from the upstream to the host, or into the inbox.

use super::{ends::take_hosts, *};

impl Bridge {
    /// A question of a legacy upstream. It belongs to the call that has the session alone, or on HTTP to the one on
    /// whose stream it came (R-253, G-45).
    pub(in crate::bridge) fn upstream_asks(
        &mut self,
        link: LinkId,
        stream: Option<i64>,
        request: &Request<'_>,
        now: Timestamp,
    ) {
        let alone = self.links.get_mut(&link).and_then(Link::session).and_then(|session| session.call);
        // A stream of a request that is over tells that the question is of that one, whoever has the session now.
        let call = match stream {
            Some(id) => self.sent_on(link, id).and_then(|sent| sent.parked().or(alone)),
            None => alone,
        };
        let call = call.filter(|call| {
            self.parked.get(call).is_some_and(|p| p.in_flight.is_some() && p.link == Some(link))
        });
        let Some(call) = call else {
            let error = RpcError::invalid_params("no request that may ask is in flight in this session");
            return self.answer_upstream_error(link, &request.id, &error);
        };
        let named = self.named;
        let Some(parked) = self.parked.get_mut(&call) else { return };
        let name = self.config.upstreams.get(parked.upstream).map_or("", |up| &*up.name);
        let origin = if named { Origin::Named(name) } else { Origin::Untouched };
        let mut entry = Vec::new();
        // What waits in the inbox is held, and a call that is run again holds nothing.
        let inbox = if parked.replay.is_some() { ClientCapabilities::default() } else { self.config.inbox };
        let can = parked.can.union(inbox);
        let read = ask_to_modern(&mut entry, &request.method, request.params, can, origin);
        let error = match &read {
            Err(fault) => Some(RpcError::invalid_params(format!("Invalid params: the question {fault}"))),
            Ok(_) if parked.asks.len() >= self.config.limits.asks_accepted => {
                Some(RpcError::internal("too many questions at a time (Limits::asks_accepted)"))
            }
            Ok(_) => None,
        };
        let (Ok(ask), None) = (read, &error) else {
            let error = error.unwrap_or_else(|| RpcError::invalid_params("Invalid params"));
            return self.answer_upstream_error(link, &request.id, &error);
        };
        let entry = String::from_utf8(entry).unwrap_or_default();
        if let Some(replay) = &mut parked.replay {
            match replay.answer(ask.kind, false, &entry) {
                Ok(Some(answer)) => return self.answer_upstream(link, &request.id, &answer),
                Ok(None) => {}
                Err(fault) => return self.answer_upstream_error(link, &request.id, &fault.error()),
            }
        }
        parked.keys += 1;
        let ask = Ask {
            key: format!("u{}", parked.keys).into(),
            kind: ask.kind,
            needs: ask.needs,
            entry: entry.into(),
            from: From::Upstream(request.id.clone()),
            inbox: None,
            shown: false,
            token: ask.progress_token,
        };
        if ask.token.is_some() && parked.alive.is_none() {
            parked.alive = Some(now.saturating_add(self.config.waits.alive));
        }
        if !parked.can.allow(ask.needs) && inbox.allow(ask.needs) {
            parked.asks.push(ask);
            parked.withdrawn = false;
            return self.divert(call, now);
        }
        // at once where it is known that nobody can be asked.
        let hopeless = parked.attached.is_some() && !parked.can.allow(ask.needs);
        parked.asks.push(ask);
        parked.withdrawn = false;
        if hopeless {
            return self.undeclared_ask(call, now);
        }
        let soon = now.saturating_add(self.config.waits.coalesce);
        parked.flush = Some(parked.flush.map_or(soon, |at| at.max(now).min(soon)));
        self.schedule(call);
    }

    /// The host cannot be asked: `-32021` for it, errors for the questions, and the call is cancelled.
    pub(super) fn undeclared_ask(&mut self, call: u64, now: Timestamp) {
        let Some(parked) = self.parked.get_mut(&call) else { return };
        let data = parked.can.missing(parked.asks.iter().map(|ask| ask.needs));
        let hosts = take_hosts(parked);
        for (host, id) in hosts {
            self.undeclared(host, &id, data.clone());
        }
        self.end_call(call, Unanswered::Undeclared, now);
    }

    /// The questions that are open go to the host, which comes back with their answers.
    pub(super) fn flush(&mut self, call: u64, now: Timestamp) {
        let Some(parked) = self.parked.get_mut(&call) else { return };
        if parked.asks.iter().any(|ask| ask.inbox.is_none() && !parked.can.allow(ask.needs)) {
            return self.undeclared_ask(call, now);
        }
        let asks = parked.asks.iter().filter(|ask| ask.inbox.is_none()).count();
        if asks > 0 && parked.asked >= self.config.limits.rounds {
            let limit = self.config.limits.rounds;
            let error = RpcError::internal(format!("more than {limit} rounds of questions (Limits::rounds)"));
            return self.fail_call_of(call, &error, now);
        }
        parked.asked += u32::from(asks > 0);
        parked.round += 1;
        parked.consumed = false;
        parked.withdrawn = false;
        (parked.flush, parked.hold, parked.grace) = (None, None, None);
        let again = parked.asks.iter().filter(|ask| ask.shown).count();
        for ask in parked.asks.iter_mut().filter(|ask| ask.inbox.is_none()) {
            ask.shown = true;
        }
        let (body, expires) = match self.interim(call, now) {
            Ok(interim) => interim,
            Err(error) => return self.fail_call_of(call, &error, now),
        };
        let Some(parked) = self.parked.get_mut(&call) else { return };
        if parked.replay.is_some() {
            self.counts.rounds += 1;
            self.counts.asks += u64::try_from(asks).unwrap_or(0);
            return self.leave_run(call, &body, now);
        }
        parked.expires = Some(expires);
        let hosts = take_hosts(parked);
        parked.alive = parked
            .asks
            .iter()
            .any(|ask| ask.token.is_some())
            .then(|| now.saturating_add(self.config.waits.alive));
        if !core::mem::replace(&mut parked.counted, true) {
            let owner = parked.owner.clone();
            self.usage.entry(owner).or_default().parked += 1;
            self.counts.parked += 1;
        }
        self.counts.rounds += 1;
        self.counts.asks += u64::try_from(asks).unwrap_or(0);
        self.counts.asked_again += u64::try_from(again).unwrap_or(0);
        for (host, id) in hosts {
            self.respond(host, &id, ReplyClass::Result, |out| out.extend_from_slice(&body));
        }
    }

    /// The interim result of the round that is open, and until when its state is good.
    pub(super) fn interim(&mut self, call: u64, now: Timestamp) -> Result<(Vec<u8>, Timestamp), RpcError> {
        let Some(parked) = self.parked.get(&call) else { return Err(gone()) };
        let up = self.config.upstreams.get(parked.upstream);
        let replayed = parked.replay.is_some();
        let waits = match up.map_or(Transport::Pipe, |up| up.transport) {
            // Nothing waits here.
            _ if replayed => self.config.waits.wrapped.get(),
            Transport::Pipe => self.config.waits.parked_pipe,
            Transport::Http => self.config.waits.parked_http,
        };
        let claims = NewClaims {
            exchange: parked.exchange,
            round: parked.round,
            state_only: 0,
            deadline: parked.deadline,
            ttl: Some(Ttl::new(waits).unwrap_or(Ttl::DEFAULT)),
        };
        let token = if replayed {
            self.seal_record(call, &claims, now)?
        } else {
            let name = up.map_or("", |up| &*up.name);
            let bound = Bound { owner: &parked.owner, request: &parked.digest, upstream: name };
            let sealed = self.vault.handle(&claims, (&self.epoch, call), &bound, now, &mut self.random);
            sealed.map_err(|error| seal_error(&error))?
        };
        let Some(parked) = self.parked.get(&call) else { return Err(gone()) };
        let mut body = b"\"result\":{\"resultType\":\"input_required\"".to_vec();
        let asks = || parked.asks.iter().filter(|ask| ask.inbox.is_none());
        for (index, ask) in asks().enumerate() {
            body.extend_from_slice(if index == 0 { b",\"inputRequests\":{" } else { b"," });
            write::string(&mut body, &ask.key);
            body.push(b':');
            body.extend_from_slice(ask.entry.as_bytes());
        }
        if asks().next().is_some() {
            body.push(b'}');
        }
        body.extend_from_slice(b",\"requestState\":");
        write::string(&mut body, &token);
        if let Some(info) = self.server_info(parked.upstream) {
            body.extend_from_slice(b",\"_meta\":{");
            write::string(&mut body, key::SERVER_INFO);
            body.push(b':');
            write::one_line(&mut body, info);
            body.push(b'}');
        }
        body.push(b'}');
        Ok((body, now.saturating_add(waits).min(parked.deadline)))
    }

    /// Comments for a host that waits, progress for an upstream that does (design: the bridge).
    pub(super) fn show_life(&mut self, call: u64, now: Timestamp) {
        let Some(parked) = self.parked.get_mut(&call) else { return };
        let waiting = parked.attached.is_some();
        let tokens: Vec<RequestId> = parked.asks.iter().filter_map(|ask| ask.token.clone()).collect();
        parked.alive = (waiting || !tokens.is_empty()).then(|| now.saturating_add(self.config.waits.alive));
        parked.beats += 1;
        let (beats, link) = (parked.beats, parked.link);
        let hosts = parked.attached.iter().map(|attached| (attached.host, &attached.id));
        let hosts = hosts.chain(parked.waiters.iter().map(|(host, id)| (*host, id)));
        for (host, id) in hosts {
            self.out.push_back(Output::KeepAlive { host, stream: HostStream::Request(id.clone()) });
        }
        for token in tokens {
            let Some(link) = link else { break };
            let mut params = b"{\"progressToken\":".to_vec();
            token.write(&mut params);
            params.extend_from_slice(format!(",\"progress\":{beats}}}").as_bytes());
            let mut bytes = Vec::new();
            write::notification(
                &mut bytes,
                "notifications/progress",
                core::str::from_utf8(&params).unwrap_or("{}"),
            );
            self.transmit(link, None, bytes, Vec::new());
        }
    }

    /// Progress of the upstream, for the round that is open; with none open there is nobody to tell.
    pub(in crate::bridge) fn parked_progress(&mut self, call: u64, params: Json<'_>) {
        let Some(attached) = self.parked.get(&call).and_then(|parked| parked.attached.as_ref()) else {
            return;
        };
        let Some(token) = &attached.progress else { return };
        let (host, id, bytes) = (attached.host, attached.id.clone(), progress(params, token, None));
        self.tell(host, HostStream::Request(id), bytes);
    }

    /// The upstream takes a question back: a later answer to it is ignored.
    pub(in crate::bridge) fn upstream_cancels(&mut self, link: LinkId, id: &RequestId, now: Timestamp) {
        if let Some(host) = self.host_of(link) {
            return self.pair_cancels(link, host, id);
        }
        let of = |parked: &Parked| {
            parked.asks.iter().position(|ask| matches!(&ask.from, From::Upstream(own) if own == id))
        };
        let alone = self.links.get_mut(&link).and_then(Link::session).and_then(|session| session.call);
        let Some(call) = alone else { return };
        let Some(parked) = self.parked.get_mut(&call) else { return };
        let Some(place) = of(parked) else { return };
        let ask = parked.asks.remove(place);
        if let Some(entry) = ask.inbox {
            let _ = self.inbox.remove(entry);
        }
        if parked.asks.is_empty() {
            parked.flush = None;
            parked.withdrawn = ask.shown && parked.in_flight.is_some();
            if parked.withdrawn && parked.attached.is_some() {
                parked.hold = Some(now.saturating_add(self.config.waits.hold));
            }
        }
        self.schedule(call);
    }

    /// A question that the host cannot be asked goes to the inbox; its request is held, then gets a state alone.
    pub(super) fn divert(&mut self, call: u64, now: Timestamp) {
        let Some(parked) = self.parked.get_mut(&call) else { return };
        let target = parked.target.clone();
        let until = now.saturating_add(self.config.waits.inbox).min(parked.deadline);
        let Some(ask) = parked.asks.last_mut() else { return };
        let entry = Entry {
            owner: parked.owner.clone(),
            upstream: parked.upstream,
            target,
            kind: ask.kind,
            question: ask.entry.clone(),
            created: now,
            expires: until,
            asker: Asker::Parked(call),
            key: ask.key.clone(),
        };
        ask.inbox = Some(self.inbox.add(entry));
        if parked.attached.is_some() && parked.hold.is_none() {
            parked.hold = Some(now.saturating_add(self.config.waits.hold));
        }
        self.schedule_inbox();
        self.schedule(call);
    }

    /// An answer from the inbox.
    pub(in crate::bridge) fn parked_inbox(
        &mut self,
        call: u64,
        key: &str,
        outcome: Result<Json<'_>, RpcError>,
        now: Timestamp,
    ) {
        let Some(parked) = self.parked.get_mut(&call) else { return };
        let Some(place) = parked.asks.iter().position(|ask| *ask.key == *key) else { return };
        let ask = parked.asks.remove(place);
        if parked.asks.iter().all(|ask| ask.inbox.is_none()) {
            parked.hold = None;
        }
        let (From::Upstream(id), Some(link)) = (ask.from, parked.link) else { return };
        match outcome {
            Ok(answer) => {
                let mut value = Vec::new();
                // It was checked when it was given.
                if answer_to_legacy(&mut value, ask.kind, answer).is_ok() {
                    self.answer_upstream(link, &id, &value);
                }
            }
            Err(error) => self.answer_upstream_error(link, &id, &error),
        }
        self.advance(call, now);
    }
}
