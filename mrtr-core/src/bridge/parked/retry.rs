//! Retries, and hosts that go.

use super::*;

impl Bridge {
    /// A retry of a parked call. Who sends it, and that it is the same request, the seal has said.
    pub(super) fn resume(
        &mut self,
        call: u64,
        round: u32,
        attached: Attached,
        m: &Modern<'_>,
        now: Timestamp,
    ) {
        let (host, id) = (attached.host, attached.id.clone());
        let Some(parked) = self.parked.get_mut(&call) else {
            return self.refuse_state(host, &id, Verdict::Expired);
        };
        let given = |key: &str| m.parts.responses.and_then(|responses| responses.get(key));
        if round == parked.round && !parked.consumed {
            // Checked before anything is used: what is refused consumes nothing (A5).
            let answers = match check(parked, given, self.config.limits.answer_bytes) {
                Ok(answers) => answers,
                Err(error) => return self.respond_error(host, &id, ReplyClass::HandlerError, &error),
            };
            let shown = parked.asks.iter().filter(|ask| ask.inbox.is_none());
            let keys: Vec<Box<str>> = shown.map(|ask| ask.key.clone()).collect();
            match effective_digest(keys.iter().map(|key| &**key), given) {
                Ok(digest) => parked.last = Some(Box::new(Last { round, keys, digest })),
                Err(fault) => {
                    return self.respond_error(host, &id, ReplyClass::HandlerError, &fault.to_error());
                }
            }
            parked.can = m.meta.capabilities;
            return self.continue_call(call, attached, answers, now);
        }
        let same = parked.last.as_ref().filter(|last| last.round == round).is_some_and(|last| {
            effective_digest(last.keys.iter().map(|key| &**key), given)
                .is_ok_and(|digest| digest == last.digest)
        });
        if !same {
            return self.refuse_state(host, &id, Verdict::Expired);
        }
        self.counts.replayed += 1;
        self.set_open(host, &id, Open::Parked(call));
        let Some(parked) = self.parked.get_mut(&call) else { return };
        if let Some(outcome) = &parked.outcome {
            let (class, body) = (outcome.class, outcome.body.clone());
            return self.respond(host, &id, class, |out| out.extend_from_slice(&body));
        }
        if !parked.consumed {
            // The next questions were on their way.
            return match self.interim(call, now) {
                Ok((body, _)) => {
                    self.respond(host, &id, ReplyClass::Result, |out| out.extend_from_slice(&body))
                }
                Err(error) => self.respond_error(host, &id, ReplyClass::Internal, &error),
            };
        }
        if parked.attached.is_none() {
            parked.attached = Some(attached);
            parked.grace = None;
            self.advance(call, now);
        } else if parked.waiters.len() < WAITERS {
            parked.waiters.push((host, id));
        } else {
            let error =
                RpcError::internal("this retry is being worked on").with_raw_data("{\"retry\":true}".into());
            self.respond_error(host, &id, ReplyClass::Internal, &error);
        }
    }

    /// The answers go to the upstream; the host's new request waits for what comes of them.
    pub(super) fn continue_call(
        &mut self,
        call: u64,
        attached: Attached,
        answers: Vec<Given>,
        now: Timestamp,
    ) {
        self.unpark(call);
        let (host, id) = (attached.host, attached.id.clone());
        self.set_open(host, &id, Open::Parked(call));
        let Some(parked) = self.parked.get_mut(&call) else { return };
        parked.consumed = true;
        parked.attached = Some(attached);
        parked.alive = Some(now.saturating_add(self.config.waits.alive));
        // What the upstream has finished by itself needs no answers.
        if parked.outcome.is_none() {
            let link = parked.link;
            let (mut refused, mut replies) = (false, Vec::new());
            for Given { key, value, action } in answers {
                let Some(place) = parked.asks.iter().position(|ask| ask.key == key) else { continue };
                match parked.asks.remove(place).from {
                    From::Upstream(id) => replies.push((id, value)),
                    From::Url => refused |= action != Some(Action::Accept),
                }
            }
            for (id, value) in replies {
                if let Some(link) = link {
                    self.answer_upstream(link, &id, &value);
                }
            }
            let Some(parked) = self.parked.get_mut(&call) else { return };
            if refused {
                return self.refused_url(call, now);
            }
            if parked.asks.iter().any(|ask| ask.inbox.is_some()) {
                parked.hold = Some(now.saturating_add(self.config.waits.hold));
            }
            if parked.asks.iter().any(|ask| ask.inbox.is_none()) {
                // Those that are missing are asked again (BT-7).
                parked.flush = Some(now.saturating_add(self.config.waits.coalesce));
            } else if let Some(urls) = &mut parked.urls {
                urls.wait = Some(now.saturating_add(self.config.waits.hold));
            } else if parked.withdrawn {
                parked.hold = Some(now.saturating_add(self.config.waits.hold));
            }
        }
        self.advance(call, now);
    }

    /// A host's stream closed before its response. With a state it may come back within the grace; without one it
    /// cannot, and the call is cancelled.
    pub(in crate::bridge) fn detach(&mut self, call: u64, host: HostId, id: &RequestId, now: Timestamp) {
        let Some(parked) = self.parked.get_mut(&call) else { return };
        if !parked.attached.as_ref().is_some_and(|attached| attached.host == host && attached.id == *id) {
            parked.waiters.retain(|(other, waiting)| !(*other == host && waiting == id));
            return;
        }
        parked.attached = None;
        if let Some((host, id)) = parked.waiters.pop() {
            parked.attached = Some(Attached { host, id, progress: None, level: None });
        } else if parked.last.is_some() {
            parked.grace = Some(now.saturating_add(self.config.waits.grace));
        } else {
            return self.end_call(call, Unanswered::Nobody, now);
        }
        self.schedule(call);
    }

    /// A host cancels its request.
    pub(in crate::bridge) fn cancel_parked(
        &mut self,
        call: u64,
        host: HostId,
        id: &RequestId,
        now: Timestamp,
    ) {
        let Some(parked) = self.parked.get_mut(&call) else { return };
        if parked.attached.as_ref().is_some_and(|attached| attached.host == host && attached.id == *id) {
            parked.attached = None;
            let error = RpcError::internal("the call was cancelled");
            self.fail_call_of(call, &error, now);
        } else {
            parked.waiters.retain(|(other, waiting)| !(*other == host && waiting == id));
        }
    }
}

/// An answer that fits its question, as the upstream will read it.
pub(super) struct Given {
    key: Box<str>,
    value: Vec<u8>,
    action: Option<Action>,
}

/// Reads the answers to the questions that are out.
pub(super) fn check<'a>(
    parked: &Parked,
    given: impl Fn(&str) -> Option<Json<'a>>,
    limit: usize,
) -> Result<Vec<Given>, RpcError> {
    let mut answers = Vec::new();
    // What is over needs no answers.
    if parked.outcome.is_some() {
        return Ok(answers);
    }
    for ask in parked.asks.iter().filter(|ask| ask.shown && ask.inbox.is_none()) {
        let Some(answer) = given(&ask.key) else { continue };
        let (value, action) = read_answer(&ask.key, ask.kind, answer, limit)?;
        answers.push(Given { key: ask.key.clone(), value, action });
    }
    Ok(answers)
}

/// Reads the answer to a question of this kind: as the upstream will read it, and its action if it has one.
pub(super) fn read_answer(
    key: &str,
    kind: AskKind,
    answer: Json<'_>,
    limit: usize,
) -> Result<(Vec<u8>, Option<Action>), RpcError> {
    let bad =
        |what: String| RpcError::invalid_params(format!("Invalid params: inputResponses[{key:?}]{what}"));
    if answer.as_str().len() > limit {
        return Err(bad(format!(" is over the limit of {limit} bytes (Limits::answer_bytes)")));
    }
    let mut value = Vec::new();
    answer_to_legacy(&mut value, kind, answer).map_err(|fault| bad(format!("{fault}")))?;
    let action = answer.get("action").and_then(Json::as_string).and_then(|action| Action::from_name(&action));
    Ok((value, action))
}
