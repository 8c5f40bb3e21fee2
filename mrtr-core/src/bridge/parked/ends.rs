//! How a parked call ends.

use super::*;

/// Why the questions of a call that is taken back get no answer.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Unanswered {
    /// Nobody came back with one, or the bridge cannot go on.
    Nobody,
    /// The host cannot be asked.
    Undeclared,
    /// It is for another run (G-48).
    Later,
}

impl Bridge {
    /// The final result goes to whoever waits for it, and is kept for as long as the state that led to it is good.
    pub(super) fn deliver(&mut self, call: u64, now: Timestamp) {
        let Some(parked) = self.parked.get_mut(&call) else { return };
        let Some(outcome) = &parked.outcome else { return };
        let (class, body) = (outcome.class, outcome.body.clone());
        let keep = parked.expires.is_some_and(|at| at > now)
            && body.len() <= KEPT
            && self.counts.kept < KEPT_AT_A_TIME;
        let hosts = take_hosts(parked);
        if keep {
            if !core::mem::replace(&mut parked.delivered, true) {
                self.counts.kept += 1;
            }
            (parked.params, parked.urls, parked.asks) = (None, None, Vec::new());
            (parked.flush, parked.hold, parked.grace, parked.alive) = (None, None, None, None);
            self.schedule(call);
        } else {
            self.forget(call);
        }
        for (host, id) in hosts {
            self.respond(host, &id, class, |out| out.extend_from_slice(&body));
        }
    }

    /// The upstream has responded to the call.
    pub(in crate::bridge) fn parked_response(
        &mut self,
        call: u64,
        outcome: Result<Json<'_>, RpcError>,
        now: Timestamp,
    ) {
        let Some(parked) = self.parked.get(&call) else { return };
        if let Ok(result) = &outcome {
            self.learn_resources(parked.upstream, parked.method.name(), *result);
        }
        let Some(parked) = self.parked.get_mut(&call) else { return };
        parked.in_flight = None;
        let error = match outcome {
            Ok(result) if result.is_object() => {
                let info = self
                    .upstreams
                    .get(parked.upstream)
                    .and_then(|state| state.profile.as_ref()?.info.as_deref());
                let mut body = b"\"result\":".to_vec();
                result_to_modern(&mut body, parked.method.name(), result, info.map(Json::trusted));
                parked.outcome = Some(Outcome { class: ReplyClass::Result, body: body.into() });
                None
            }
            Ok(_) => Some(RpcError::internal("the upstream's result is not valid")),
            Err(error) => match url_required(&error) {
                Ok(Some(urls)) => return self.urls_required(call, urls, now),
                Ok(None) => Some({
                    let read = parked.method == AskingMethod::ResourcesRead;
                    let error = error_to_modern(error, read.then_some(&*parked.target));
                    lacking_to_modern(error, parked.can)
                }),
                Err(_) => Some(RpcError::internal("the upstream wants urls opened and names none")),
            },
        };
        if let Some(error) = error {
            parked.error(&error);
        }
        self.finished(call, now);
    }

    /// There is an outcome: the session is free, the questions are moot.
    pub(super) fn finished(&mut self, call: u64, now: Timestamp) {
        let Some(parked) = self.parked.get_mut(&call) else { return };
        parked.asks.clear();
        parked.urls = None;
        (parked.flush, parked.hold, parked.grace) = (None, None, None);
        self.inbox.withdraw(&Asker::Parked(call), None);
        let Some(parked) = self.parked.get_mut(&call) else { return };
        if let Some(link) = parked.link.take() {
            let owner = parked.owner.clone();
            self.give_back(link, &owner, None, now);
        }
        self.advance(call, now);
        self.drop_if_useless(call);
    }

    /// Without a state there is no way back to it.
    pub(super) fn drop_if_useless(&mut self, call: u64) {
        let useless = |p: &Parked| p.attached.is_none() && p.outcome.is_some() && p.expires.is_none();
        if self.parked.get(&call).is_some_and(|parked| useless(parked)) {
            self.forget(call);
        }
    }

    /// The call has failed: its upstream died, was not reached, or did not respond.
    pub(in crate::bridge) fn parked_failed(&mut self, call: u64, error: &RpcError, now: Timestamp) {
        let Some(parked) = self.parked.get_mut(&call) else { return };
        parked.in_flight = None;
        if parked.outcome.is_none() {
            parked.error(error);
            self.counts.lost += 1;
        }
        self.finished(call, now);
    }

    /// The session that a call has alone is gone.
    pub(in crate::bridge) fn session_lost(&mut self, call: u64, now: Timestamp) {
        let Some(parked) = self.parked.get_mut(&call) else { return };
        parked.link = None;
        let (upstream, owner) = (parked.upstream, parked.owner.clone());
        let waits = parked.in_flight.is_none();
        self.free_share(upstream, &owner);
        if waits {
            self.parked_failed(call, &gone(), now);
        }
    }

    /// Ends a call that the bridge cannot go on with, telling its host.
    pub(super) fn fail_call_of(&mut self, call: u64, error: &RpcError, now: Timestamp) {
        let Some(parked) = self.parked.get_mut(&call) else { return };
        for (host, id) in take_hosts(parked) {
            self.respond_error(host, &id, ReplyClass::Internal, error);
        }
        self.end_call(call, Unanswered::Nobody, now);
    }

    /// Takes the call back from the upstream: its questions are answered as by nobody, the call is cancelled (BT-7).
    ///
    /// One that will be run again is cancelled first, and its questions get errors: nobody has turned them down, and what
    /// a tool does when somebody has must not happen.
    pub(super) fn end_call(&mut self, call: u64, why: Unanswered, now: Timestamp) {
        self.unqueue_parked(call);
        let Some(parked) = self.parked.get_mut(&call) else { return };
        let (asks, in_flight) = (core::mem::take(&mut parked.asks), parked.in_flight.take());
        let (link, owner) = (parked.link.take(), parked.owner.clone());
        if let Some(link) = link {
            let first = in_flight.filter(|_| why == Unanswered::Later);
            if let Some(id) = first {
                self.cancel_upstream(id);
            }
            for ask in asks {
                let From::Upstream(id) = ask.from else { continue };
                match ask.kind {
                    AskKind::Form | AskKind::Url if why == Unanswered::Nobody => {
                        self.answer_upstream(link, &id, br#"{"action":"cancel"}"#);
                    }
                    AskKind::Form | AskKind::Url | AskKind::Sampling | AskKind::Roots => {
                        let error = match why {
                            Unanswered::Nobody => RpcError::internal("nobody answers"),
                            Unanswered::Undeclared => {
                                RpcError::invalid_params("the host does not support this kind of question")
                            }
                            Unanswered::Later => RpcError::internal("the call will be made again"),
                        };
                        self.answer_upstream_error(link, &id, &error);
                    }
                }
            }
            if let Some(id) = in_flight {
                if first.is_none() {
                    self.cancel_upstream(id);
                }
                let _ = self.forget_sent(id);
                if let Some(session) = self.links.get_mut(&link).and_then(Link::session) {
                    session.in_flight.remove(&id);
                }
            }
            if why == Unanswered::Later {
                self.leave(link, &owner, in_flight, now);
            } else {
                self.give_back(link, &owner, in_flight, now);
                self.settle(link, now);
            }
        }
        self.forget(call);
    }

    pub(super) fn forget(&mut self, call: u64) {
        self.unpark(call);
        self.inbox.withdraw(&Asker::Parked(call), None);
        self.schedule_inbox();
        if let Some(mut parked) = self.parked.remove(&call) {
            self.counts.kept -= usize::from(parked.delivered);
            self.timers.set(Whom::Parked(call), &mut parked.timer, None);
        }
    }

    pub(super) fn unpark(&mut self, call: u64) {
        let Some(parked) = self.parked.get_mut(&call) else { return };
        if core::mem::take(&mut parked.counted) {
            let owner = parked.owner.clone();
            self.counts.parked -= 1;
            self.release(&owner, |usage| &mut usage.parked);
        }
    }
}

/// Everybody who waits for a response.
pub(super) fn take_hosts(parked: &mut Parked) -> Vec<(HostId, RequestId)> {
    let attached = parked.attached.take().map(|attached| (attached.host, attached.id));
    attached.into_iter().chain(core::mem::take(&mut parked.waiters)).collect()
}
