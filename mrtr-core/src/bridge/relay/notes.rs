//! Progress, logs and other notifications of upstreams.

use super::*;

impl Bridge {
    /// Progress goes where the token says, under the host's own token (R-258, BT-8).
    pub(in crate::bridge) fn on_progress(
        &mut self,
        link: LinkId,
        notification: &Notification<'_>,
        now: Timestamp,
    ) {
        let token = notification.param("progressToken").and_then(RequestId::from_json);
        let Some(id) = token.as_ref().and_then(RequestId::as_i64) else { return };
        let Some(params) = notification.params else { return };
        match self.sent_on(link, id).map(|sent| &sent.purpose) {
            Some(Purpose::Relay(relay)) => {
                let Some(token) = relay.progress.clone() else { return };
                let (host, stream) = (relay.host, HostStream::Request(relay.id.clone()));
                self.tell(host, stream, progress(params, &token, None));
            }
            Some(Purpose::Parked(call)) => self.parked_progress(*call, params),
            Some(Purpose::Dialogue(call)) => self.dialogue_progress(*call, params, now),
            _ => {}
        }
    }

    /// A log message goes to the request it came with: by its stream, or because no other is in flight. Requests that
    /// did not ask for that level get none.
    pub(in crate::bridge) fn on_log(
        &mut self,
        link: LinkId,
        call: Option<i64>,
        notification: &Notification<'_>,
    ) {
        let level = notification.param("level").and_then(Json::as_string);
        let Some(level) = level.as_deref().and_then(LogLevel::from_name) else { return };
        if let Some(host) = self.host_of(link) {
            // The host's own session: it has set the level itself.
            let stream = call.and_then(|call| self.host_stream(link, call)).unwrap_or(HostStream::Common);
            return self.tell(host, stream, with_params(notification));
        }
        let id = call.or_else(|| self.only_on(link));
        let Some(id) = id else { return };
        let found = match self.sent_on(link, id).map(|sent| &sent.purpose) {
            Some(Purpose::Relay(relay)) => Some((relay.host, relay.id.clone(), relay.level)),
            Some(Purpose::Parked(call)) => self.parked.get(call).and_then(|call| call.log_target()),
            Some(Purpose::Dialogue(call)) => self.dialogues.get(call).map(|dialogue| dialogue.log_target()),
            _ => None,
        };
        let Some((host, id, Some(wanted))) = found else { return };
        if level >= wanted {
            self.tell(host, HostStream::Request(id), with_params(notification));
        }
    }

    /// The one request that is in flight on a connection.
    pub(super) fn only_on(&mut self, link: LinkId) -> Option<i64> {
        if let Some(session) = self.links.get_mut(&link).and_then(Link::session) {
            return (session.in_flight.len() == 1).then(|| session.in_flight.first().copied()).flatten();
        }
        let talks = |sent: &Sent| sent.link == link && !matches!(sent.purpose, Purpose::Listen(_));
        let mut found = self.sent.iter().filter(|(_, sent)| talks(sent)).map(|(id, _)| *id);
        let first = found.next();
        if found.next().is_some() { None } else { first }
    }

    pub(in crate::bridge) fn host_stream(&self, link: LinkId, call: i64) -> Option<HostStream> {
        match self.sent_on(link, call)? {
            Sent { purpose: Purpose::Relay(relay), .. } => Some(HostStream::Request(relay.id.clone())),
            _ => None,
        }
    }

    /// Other notifications cross between peers of one era: a legacy host's own session, a modern host's own stream.
    pub(in crate::bridge) fn on_change(
        &mut self,
        link: LinkId,
        call: Option<i64>,
        notification: &Notification<'_>,
    ) {
        if let Some(host) = self.host_of(link) {
            let stream = call.and_then(|call| self.host_stream(link, call)).unwrap_or(HostStream::Common);
            return self.tell(host, stream, with_params(notification));
        }
        if self
            .links
            .get(&link)
            .is_some_and(|link| matches!(link.kind, crate::bridge::link::LinkKind::Legacy(_)))
        {
            return self.changed(link, None, notification);
        }
        // which stream it belongs to.
        let meta = notification.param("_meta");
        let named = meta.and_then(|meta| meta.get(key::SUBSCRIPTION_ID)).and_then(RequestId::from_json);
        let Some(id) = named.as_ref().and_then(RequestId::as_i64) else { return };
        let relay = match self.sent_on(link, id).map(|sent| &sent.purpose) {
            Some(Purpose::Relay(relay)) if relay.version.is_none() => relay,
            Some(Purpose::Listen(number)) => {
                let number = *number;
                return self.changed(link, Some(number), notification);
            }
            _ => return,
        };
        let (host, id) = (relay.host, relay.id.clone());
        let mut bytes = b"{\"jsonrpc\":\"2.0\",\"method\":".to_vec();
        write::string(&mut bytes, &notification.method);
        bytes.extend_from_slice(b",\"params\":");
        let own = id.clone();
        let edit = |member: &str, value: Json<'_>, out: &mut Vec<u8>| {
            if member != "_meta" {
                return Edit::Keep;
            }
            let edit = |member: &str, _: Json<'_>, out: &mut Vec<u8>| {
                if member != key::SUBSCRIPTION_ID {
                    return Edit::Keep;
                }
                own.write(out);
                Edit::Replaced
            };
            edit_object(out, value, edit, Keep);
            Edit::Replaced
        };
        edit_object(&mut bytes, notification.params.unwrap_or(Json::EMPTY_OBJECT), edit, Keep);
        bytes.push(b'}');
        self.tell(host, HostStream::Request(id), bytes);
    }
}

/// A progress notification under the host's token; `value` is a progress of the bridge's own, if it is not the
/// upstream's.
pub(in crate::bridge) fn progress(params: Json<'_>, token: &RequestId, value: Option<&str>) -> Vec<u8> {
    let mut bytes = b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":".to_vec();
    let edit = |member: &str, _: Json<'_>, out: &mut Vec<u8>| match (member, value) {
        ("progressToken", _) => {
            token.write(out);
            Edit::Replaced
        }
        // It was a total of the upstream's own count.
        ("total", Some(_)) => Edit::Drop,
        ("progress", Some(value)) => {
            out.extend_from_slice(value.as_bytes());
            Edit::Replaced
        }
        _ => Edit::Keep,
    };
    edit_object(&mut bytes, params, edit, Keep);
    bytes.push(b'}');
    bytes
}

/// A notification as it came.
pub(super) fn with_params(notification: &Notification<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    let params = notification.params.map_or("{}", Json::as_str);
    write::notification(&mut bytes, &notification.method, params);
    bytes
}
