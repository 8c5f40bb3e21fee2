//! The response to a relayed request, in the words of its host.

use super::*;

impl Bridge {
    pub(in crate::bridge) fn relay_response(
        &mut self,
        mut relay: Relay,
        whole: Json<'_>,
        outcome: Result<Json<'_>, RpcError>,
        now: Timestamp,
    ) {
        let result = match outcome {
            Ok(result) if result.is_object() => result,
            Ok(_) => {
                let error = RpcError::internal("the upstream's result is not valid");
                return self.relay_failed(&relay, &error);
            }
            Err(error) => {
                if error.code == ErrorCode::HEADER_MISMATCH
                    && let Some(body) = relay.asking.as_mut().and_then(|asking| asking.repeat.take())
                {
                    let upstream = relay.upstream;
                    return self.relist(upstream, Then::Relay(Box::new(relay), body), now);
                }
                return self.relay_error(&relay, whole, error);
            }
        };
        self.learn(relay.upstream, &relay.method, result);
        match (relay.version, relay.upstream_era) {
            (None, Era::Modern) => self.pass_modern(&relay, whole, result, now),
            (None, Era::Legacy) => {
                let mut body = b"\"result\":".to_vec();
                let info = self.server_info(relay.upstream).map(Json::trusted);
                result_to_modern(&mut body, &relay.method, result, info);
                self.respond(relay.host, &relay.id, ReplyClass::Result, |out| out.extend_from_slice(&body));
            }
            (Some(version), Era::Modern) => {
                if !matches!(read_result(result, &self.config.limits), Ok(ResultKind::Complete(_))) {
                    let error = RpcError::internal("the upstream's result is not valid");
                    return self.relay_failed(&relay, &error);
                }
                self.respond(relay.host, &relay.id, ReplyClass::Result, |out| {
                    out.extend_from_slice(b"\"result\":");
                    result_to_legacy(out, &relay.method, result, version);
                });
            }
            (Some(_), Era::Legacy) => {
                let bytes = with_id(whole, &relay.id);
                self.finish(relay.host, &relay.id, ReplyClass::Result, bytes);
            }
        }
    }

    pub(super) fn relay_error(&mut self, relay: &Relay, whole: Json<'_>, error: RpcError) {
        let error = match (relay.version, relay.upstream_era) {
            (None, Era::Modern) => match error.code {
                // Between the bridge and the upstream; the host would look for the fault in its own request.
                ErrorCode::HEADER_MISMATCH | ErrorCode::UNSUPPORTED_VERSION => {
                    crate::translate::caused("the upstream refused the bridge's request", &error)
                }
                code => {
                    let class = class_of(code);
                    let bytes = with_id(whole, &relay.id);
                    return self.finish(relay.host, &relay.id, class, bytes);
                }
            },
            (Some(_), Era::Legacy) => {
                let bytes = with_id(whole, &relay.id);
                return self.finish(relay.host, &relay.id, ReplyClass::HandlerError, bytes);
            }
            (None, Era::Legacy) => lacking_to_modern(error_to_modern(error, None), relay.can),
            (Some(_), Era::Modern) => error_to_legacy(error, None),
        };
        self.respond_error(relay.host, &relay.id, class_of(error.code), &error);
    }

    /// A modern result for a modern host.
    pub(super) fn pass_modern(&mut self, relay: &Relay, whole: Json<'_>, result: Json<'_>, now: Timestamp) {
        let stamped = result.get("resultType");
        let invalid = |this: &mut Self, what: &'static str| {
            crate::trace::warn!(what = %what, "the upstream's result breaks the protocol");
            this.relay_failed(relay, &RpcError::internal(what));
        };
        match stamped.map(Json::as_string) {
            None => {
                // An earlier draft's server: every result says what it is.
                let stamp = |tail: &mut Tail<'_>| write::string(tail.member("resultType"), "complete");
                let bytes = with_result(whole, &relay.id, |out, result| {
                    edit_object(out, result, |_, _, _| Edit::Keep, stamp);
                });
                self.finish(relay.host, &relay.id, ReplyClass::Result, bytes);
            }
            Some(Some(kind)) if kind == "complete" => {
                let bytes = with_id(whole, &relay.id);
                self.finish(relay.host, &relay.id, ReplyClass::Result, bytes);
            }
            Some(Some(kind)) if kind == "input_required" => match &relay.asking {
                None => invalid(self, "the upstream asks where nothing may be asked"),
                Some(asking) => self.pass_interim(relay, asking, whole, result, now),
            },
            Some(_) => invalid(self, "the upstream's result is of an unknown kind"),
        }
    }

    /// Questions of a modern upstream for a modern host: its state wrapped, everything else as it is.
    pub(super) fn pass_interim(
        &mut self,
        relay: &Relay,
        asking: &Asking,
        whole: Json<'_>,
        result: Json<'_>,
        now: Timestamp,
    ) {
        let interim = match read_result(result, &self.config.limits) {
            Ok(ResultKind::InputRequired(interim)) => interim,
            Ok(ResultKind::Complete(_)) => return,
            Err(fault) => {
                crate::trace::warn!(fault = %fault, "the upstream's questions break the protocol");
                let error = result_error(&fault, "the upstream's questions are not valid");
                return self.relay_failed(relay, &error);
            }
        };
        // by what this request declared, whoever asks.
        let needs: Vec<_> = interim.asks.iter().map(|(_, ask)| ask.requirement()).collect();
        if needs.iter().any(|need| !relay.can.allow(*need)) {
            return self.undeclared(relay.host, &relay.id, relay.can.missing(needs));
        }
        let owner = self.owner(relay.host);
        let name = self.config.upstreams.get(relay.upstream).map_or("", |up| &*up.name);
        let (exchange, round, deadline) = asking.exchange.unwrap_or_else(|| {
            let exchange = ExchangeId::from_bytes(self.random.bytes(b"bridge/exchange"));
            (exchange, 0, now.saturating_add(self.config.limits.exchange))
        });
        let claims = NewClaims {
            exchange,
            round: round.saturating_add(1),
            state_only: 0,
            deadline,
            ttl: Some(self.config.waits.wrapped),
        };
        let digest = match asking.digest.take() {
            Ok(digest) => digest,
            Err(error) => {
                return self.respond_error(relay.host, &relay.id, ReplyClass::HandlerError, &error);
            }
        };
        let bound = Bound { owner: &owner, request: &digest, upstream: name };
        let state = interim.state.map(Json::as_str);
        let token = match self.vault.wrap(&claims, state, &bound, now, &mut self.random) {
            Ok(token) => token,
            Err(error) => return self.relay_failed(relay, &seal_error(&error)),
        };
        let count = interim.asks.len();
        let origin = self.named.then_some(name);
        let had_state = result.get("requestState").is_some();
        let bytes = with_result(whole, &relay.id, |out, result| {
            let edit = |member: &str, value: Json<'_>, out: &mut Vec<u8>| match (member, origin) {
                ("requestState", _) => {
                    write::string(out, &token);
                    Edit::Replaced
                }
                ("inputRequests", Some(name)) if value.is_object() => {
                    edit_object(out, value, |_, ask, out| named_ask(out, ask, name), Keep);
                    Edit::Replaced
                }
                _ => Edit::Keep,
            };
            if had_state {
                edit_object(out, result, edit, Keep);
            } else {
                edit_object(out, result, edit, |tail: &mut Tail<'_>| {
                    write::string(tail.member("requestState"), &token);
                });
            }
        });
        self.counts.rounds += 1;
        self.counts.asks += u64::try_from(count).unwrap_or(u64::MAX);
        self.finish(relay.host, &relay.id, ReplyClass::Result, bytes);
    }

    /// `-32021` with what is missing.
    pub(in crate::bridge) fn undeclared(&mut self, host: HostId, id: &RequestId, data: String) {
        let error = RpcError::new(ErrorCode::MISSING_CAPABILITY, "Missing required client capability");
        self.respond_error(host, id, ReplyClass::MissingCapability, &error.with_raw_data(data));
    }

    /// `-32020`: the bridge's headers came from a stale schema. The list is read again and the call made once more
    /// (BT-6).
    pub(in crate::bridge) fn relist(&mut self, upstream: usize, then: Then, now: Timestamp) {
        let id = self.fresh_id();
        let mut bytes = head(id, "tools/list");
        let from = bytes.len();
        let info = &self.config.info;
        let meta = ModernMeta { client: info, capabilities: "{}", log_level: None, progress_token: None };
        params_to_modern(&mut bytes, None, &meta, None, None);
        let params = core::str::from_utf8(bytes.get(from..).unwrap_or_default()).unwrap_or("{}");
        let headers = self.headers(upstream, "tools/list", Json::trusted(params)).unwrap_or_default();
        bytes.push(b'}');
        let link = self.modern_link(upstream);
        match &then {
            Then::Relay(relay, _) => self.set_open(relay.host, &relay.id, Open::Sent(id)),
            Then::Dialogue(_) => {}
        }
        self.send(link, id, bytes, headers, Purpose::Relist(upstream, then), now);
    }

    pub(in crate::bridge) fn relisted(
        &mut self,
        upstream: usize,
        then: Then,
        outcome: Result<Json<'_>, RpcError>,
        now: Timestamp,
    ) {
        if let Ok(result) = outcome {
            self.learn(upstream, "tools/list", result);
        }
        let (relay, body) = match then {
            Then::Relay(relay, body) => (relay, body),
            Then::Dialogue(call) => return self.repeat_dialogue(call, now),
        };
        let text = Json::trusted(core::str::from_utf8(&body).unwrap_or("{}"));
        let id = self.fresh_id();
        let mut bytes = Vec::with_capacity(body.len() + 16);
        let edit = |member: &str, value: Json<'_>, out: &mut Vec<u8>| match member {
            "id" => {
                write::integer(out, id);
                Edit::Replaced
            }
            "params" => {
                edit_object(out, value, |name, value, out| token_edit(name, value, id, out), Keep);
                Edit::Replaced
            }
            _ => Edit::Keep,
        };
        edit_object(&mut bytes, text, edit, Keep);
        match self.headers(upstream, "tools/call", text.get("params").unwrap_or(Json::EMPTY_OBJECT)) {
            Ok(headers) => {
                let link = self.modern_link(upstream);
                self.set_open(relay.host, &relay.id, Open::Sent(id));
                self.send(link, id, bytes, headers, Purpose::Relay(relay), now);
            }
            Err(error) => self.relay_failed(&relay, &error),
        }
    }
}

/// An interim result that is not passed on: which bound, by its name, if it is over one.
pub(in crate::bridge) fn result_error(fault: &ResultFault, otherwise: &'static str) -> RpcError {
    if matches!(fault, ResultFault::TooManyAsks { .. } | ResultFault::StateTooLarge { .. }) {
        return RpcError::internal(format!("the upstream's {fault}"));
    }
    RpcError::internal(otherwise)
}

/// A question of a modern upstream with its name.
pub(super) fn named_ask(out: &mut Vec<u8>, ask: Json<'_>, name: &str) -> Edit {
    use crate::translate::Origin;
    let Ok(read) = InputRequest::from_json(ask) else { return Edit::Keep };
    let elicits = matches!(read.kind(), AskKind::Form | AskKind::Url);
    let vendor = |tail: &mut Tail<'_>| write::string(tail.member("dev.mrtr/origin"), name);
    if ask.get("params").is_none() {
        edit_object(
            out,
            ask,
            |_, _, _| Edit::Keep,
            |tail: &mut Tail<'_>| {
                edit_object(
                    tail.member("params"),
                    Json::EMPTY_OBJECT,
                    |_, _, _| Edit::Keep,
                    |tail: &mut Tail<'_>| {
                        edit_object(tail.member("_meta"), Json::EMPTY_OBJECT, |_, _, _| Edit::Keep, vendor);
                    },
                );
            },
        );
        return Edit::Replaced;
    }
    let edit = |member: &str, params: Json<'_>, out: &mut Vec<u8>| {
        if member != "params" {
            return Edit::Keep;
        }
        let edit = |member: &str, value: Json<'_>, out: &mut Vec<u8>| match member {
            "message" if elicits => write_message(out, value, Origin::Named(name)),
            "_meta" if !elicits && value.is_object() => {
                edit_object(out, value, |_, _, _| Edit::Keep, vendor);
                Edit::Replaced
            }
            _ => Edit::Keep,
        };
        if elicits || params.get("_meta").is_some() {
            edit_object(out, params, edit, Keep);
        } else {
            edit_object(out, params, edit, |tail: &mut Tail<'_>| {
                edit_object(tail.member("_meta"), Json::EMPTY_OBJECT, |_, _, _| Edit::Keep, vendor);
            });
        }
        Edit::Replaced
    };
    edit_object(out, ask, edit, Keep);
    Edit::Replaced
}

/// The message under another id.
pub(super) fn with_id(whole: Json<'_>, id: &RequestId) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(whole.as_str().len() + 16);
    let edit = |member: &str, _: Json<'_>, out: &mut Vec<u8>| {
        if member != "id" {
            return Edit::Keep;
        }
        id.write(out);
        Edit::Replaced
    };
    edit_object(&mut bytes, whole, edit, Keep);
    bytes
}

/// The message under another id and with its result rewritten.
pub(super) fn with_result(
    whole: Json<'_>,
    id: &RequestId,
    result: impl Fn(&mut Vec<u8>, Json<'_>),
) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(whole.as_str().len() + 256);
    let edit = |member: &str, value: Json<'_>, out: &mut Vec<u8>| match member {
        "id" => {
            id.write(out);
            Edit::Replaced
        }
        "result" => {
            result(out, value);
            Edit::Replaced
        }
        _ => Edit::Keep,
    };
    edit_object(&mut bytes, whole, edit, Keep);
    bytes
}
