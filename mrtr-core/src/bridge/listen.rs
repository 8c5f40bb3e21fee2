//! Changes: `subscriptions/listen` on the one side, `resources/subscribe` and list_changed on the other (BT-8, R-039,
//! Between a modern host and a single modern upstream the request is relayed like any other; between a
//! legacy host and its own legacy session everything is.

use alloc::{boxed::Box, collections::BTreeSet, vec::Vec};

use super::{
    Bridge, HostId, HostStream, LinkId,
    host::{Modern, Open},
    link::{Link, Purpose},
    pool::Want,
    relay::head,
};
use crate::{
    error::RpcError,
    http::ReplyClass,
    jsonrpc::{Json, Notification, Request, RequestId, write},
    time::Timestamp,
    translate::{Edit, Keep, ModernMeta, Tail, edit_object, params_to_modern},
    wire::{ClientCapabilities, Era, key},
};

/// Uris that one listener may watch.
const URIS: usize = 1_000;

/// Bytes of a uri that is watched.
const URI_BYTES: usize = 4_096;

/// Somebody who wants to hear of changes.
pub(super) struct Listener {
    host: HostId,
    /// The request of a modern host, which names the subscription; none for a legacy host.
    id: Option<RequestId>,
    /// Methods that are wanted.
    lists: BTreeSet<&'static str>,
    uris: BTreeSet<Box<str>>,
    /// Sessions with legacy upstreams that tell.
    links: Vec<LinkId>,
    /// Requests to modern upstreams that do.
    sent: Vec<i64>,
}

const LISTS: [(&str, &str, &str); 3] = [
    ("toolsListChanged", "notifications/tools/list_changed", "tools"),
    ("promptsListChanged", "notifications/prompts/list_changed", "prompts"),
    ("resourcesListChanged", "notifications/resources/list_changed", "resources"),
];

const UPDATED: &str = "notifications/resources/updated";

impl Listener {
    fn wants(&self, notification: &Notification<'_>) -> bool {
        if notification.method == UPDATED {
            let uri = notification.param("uri").and_then(Json::as_string);
            return uri.is_some_and(|uri| self.uris.contains(&*uri));
        }
        self.lists.contains(&*notification.method)
    }

    /// The filter, as `subscriptions/listen` has it.
    fn write_filter(&self, out: &mut Vec<u8>) {
        let more = |tail: &mut Tail<'_>| {
            for (name, method, _) in LISTS {
                if self.lists.contains(method) {
                    tail.member(name).extend_from_slice(b"true");
                }
            }
            if !self.uris.is_empty() {
                let out = tail.member("resourceSubscriptions");
                for (index, uri) in self.uris.iter().enumerate() {
                    out.push(if index == 0 { b'[' } else { b',' });
                    write::string(out, uri);
                }
                out.push(b']');
            }
        };
        edit_object(out, Json::EMPTY_OBJECT, |_, _, _| Edit::Keep, more);
    }
}

impl Bridge {
    /// `subscriptions/listen` of a modern host that cannot be relayed as it is.
    pub(super) fn listen(&mut self, host: HostId, m: &Modern<'_>, now: Timestamp) {
        let id = m.request.id.clone();
        let wanted = m.request.param("notifications").filter(|wanted| wanted.is_object());
        let uris = wanted.and_then(|wanted| wanted.get("resourceSubscriptions"));
        let uris: Option<BTreeSet<Box<str>>> = uris.map_or_else(
            || Some(BTreeSet::new()),
            |uris| uris.items()?.map(|uri| uri.as_string().map(|uri| Box::from(&*uri))).collect(),
        );
        let (Some(wanted), Some(uris)) = (wanted, uris) else {
            let error = RpcError::invalid_params("Invalid params: notifications is not a filter");
            return self.respond_error(host, &id, ReplyClass::HandlerError, &error);
        };
        if uris.len() > URIS || uris.iter().any(|uri| uri.len() > URI_BYTES) {
            let error =
                RpcError::invalid_params("Invalid params: too many or too long resourceSubscriptions");
            return self.respond_error(host, &id, ReplyClass::HandlerError, &error);
        }
        let asked = |name: &str| wanted.get(name).and_then(Json::as_bool) == Some(true);
        let lists = LISTS.iter().filter(|(name, _, _)| asked(name)).map(|(_, method, _)| *method).collect();
        let listener =
            Listener { host, id: Some(id.clone()), lists, uris, links: Vec::new(), sent: Vec::new() };
        let mut bytes = b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/subscriptions/acknowledged\",\"params\":{\"notifications\":".to_vec();
        listener.write_filter(&mut bytes);
        bytes.extend_from_slice(b",\"_meta\":{");
        write::string(&mut bytes, key::SUBSCRIPTION_ID);
        bytes.push(b':');
        id.write(&mut bytes);
        bytes.extend_from_slice(b"}}}");
        let number = self.add_listener(listener);
        self.set_open(host, &id, Open::Listen(number));
        self.tell(host, HostStream::Request(id), bytes);
        for upstream in 0..self.upstreams.len() {
            self.tune_in(number, upstream, m.meta.capabilities, now);
        }
    }

    fn add_listener(&mut self, listener: Listener) -> u64 {
        self.next_listener += 1;
        self.listeners.insert(self.next_listener, listener);
        self.next_listener
    }

    /// Asks one upstream to tell.
    fn tune_in(&mut self, number: u64, upstream: usize, can: ClientCapabilities, now: Timestamp) {
        match self.config.upstreams.get(upstream).map(|up| up.era) {
            Some(Era::Modern) => self.listen_upstream(number, upstream, now),
            Some(Era::Legacy) => {
                let Some(listener) = self.listeners.get(&number) else { return };
                let uris: Vec<Box<str>> = listener.uris.iter().cloned().collect();
                let want = Want { upstream, owner: self.owner(listener.host), host: can, asking: false };
                // Without a session there is nothing to hear: the next change of a list is found by asking.
                let Some(link) = self.acquire(&want, now) else { return };
                if let Some(session) = self.links.get_mut(&link).and_then(Link::session) {
                    session.listeners += 1;
                }
                if let Some(listener) = self.listeners.get_mut(&number) {
                    listener.links.push(link);
                }
                for uri in uris {
                    self.subscribe(link, "resources/subscribe", &uri, now);
                }
                self.settle(link, now);
            }
            None => {}
        }
    }

    fn subscribe(&mut self, link: LinkId, method: &str, uri: &str, now: Timestamp) {
        let id = self.fresh_id();
        let mut bytes = head(id, method);
        bytes.extend_from_slice(b"{\"uri\":");
        write::string(&mut bytes, uri);
        bytes.extend_from_slice(b"}}");
        self.send(link, id, bytes, Vec::new(), Purpose::Ignored, now);
    }

    fn listen_upstream(&mut self, number: u64, upstream: usize, now: Timestamp) {
        let Some(listener) = self.listeners.get(&number) else { return };
        let mut params = b"{\"notifications\":".to_vec();
        listener.write_filter(&mut params);
        params.push(b'}');
        let params = core::str::from_utf8(&params).unwrap_or("{}");
        let id = self.fresh_id();
        let info = &self.config.info;
        let meta = ModernMeta { client: info, capabilities: "{}", log_level: None, progress_token: None };
        let mut bytes = head(id, "subscriptions/listen");
        let from = bytes.len();
        params_to_modern(&mut bytes, Some(Json::trusted(params)), &meta, None, None);
        let sent = core::str::from_utf8(bytes.get(from..).unwrap_or_default()).unwrap_or("{}");
        let headers = self.headers(upstream, "subscriptions/listen", Json::trusted(sent)).unwrap_or_default();
        bytes.push(b'}');
        let link = self.modern_link(upstream);
        self.send(link, id, bytes, headers, Purpose::Listen(number), now);
        if let Some(listener) = self.listeners.get_mut(&number) {
            listener.sent.push(id);
        }
    }

    /// A legacy host is ready: what modern upstreams say of their lists reaches it from now on.
    pub(super) fn listen_for(&mut self, host: HostId, now: Timestamp) {
        let modern =
            |index: &usize| self.config.upstreams.get(*index).is_some_and(|up| up.era == Era::Modern);
        let upstreams: Vec<usize> = (0..self.upstreams.len()).filter(modern).collect();
        let said = |list: &str| {
            upstreams.iter().any(|index| {
                self.upstreams
                    .get(*index)
                    .and_then(|state| state.profile.as_ref())
                    .is_some_and(|p| p.says(list, "listChanged"))
            })
        };
        let lists: BTreeSet<&'static str> =
            LISTS.iter().filter(|(_, _, list)| said(list)).map(|(_, method, _)| *method).collect();
        if lists.is_empty() || self.listener_of(host).is_some() {
            return;
        }
        let listener =
            Listener { host, id: None, lists, uris: BTreeSet::new(), links: Vec::new(), sent: Vec::new() };
        let number = self.add_listener(listener);
        for upstream in upstreams {
            self.listen_upstream(number, upstream, now);
        }
    }

    fn listener_of(&self, host: HostId) -> Option<u64> {
        let of = |listener: &Listener| listener.host == host && listener.id.is_none();
        self.listeners.iter().find(|(_, listener)| of(listener)).map(|(number, _)| *number)
    }

    /// `resources/subscribe` and `resources/unsubscribe` of a legacy host, for a modern upstream: its stream is opened
    /// anew with what is wanted now.
    pub(super) fn subscribe_modern(&mut self, host: HostId, request: &Request<'_>, now: Timestamp) {
        let Some(uri) = request.param("uri").and_then(Json::as_string).filter(|uri| uri.len() <= URI_BYTES)
        else {
            let error =
                RpcError::invalid_params("Invalid params: uri is missing or no string of at most 4096 bytes");
            return self.respond_error(host, &request.id, ReplyClass::HandlerError, &error);
        };
        let number = self.listener_of(host).unwrap_or_else(|| {
            self.add_listener(Listener {
                host,
                id: None,
                lists: BTreeSet::new(),
                uris: BTreeSet::new(),
                links: Vec::new(),
                sent: Vec::new(),
            })
        });
        let Some(listener) = self.listeners.get_mut(&number) else { return };
        if request.method == "resources/unsubscribe" {
            listener.uris.remove(&*uri);
        } else if listener.uris.len() < URIS {
            listener.uris.insert(Box::from(&*uri));
        } else {
            let error = RpcError::internal("too many resources are subscribed to");
            return self.respond_error(host, &request.id, ReplyClass::Internal, &error);
        }
        for sent in core::mem::take(&mut listener.sent) {
            self.cancel_sent(sent, now);
        }
        for upstream in 0..self.upstreams.len() {
            if self.config.upstreams.get(upstream).is_some_and(|up| up.era == Era::Modern) {
                self.listen_upstream(number, upstream, now);
            }
        }
        self.respond(host, &request.id, ReplyClass::Result, |out| out.extend_from_slice(b"\"result\":{}"));
    }

    /// A change that an upstream tells of, for whoever wants to hear of it.
    pub(super) fn changed(&mut self, link: LinkId, own: Option<u64>, notification: &Notification<'_>) {
        let wanted = |number: u64, listener: &Listener| {
            (own == Some(number) || own.is_none() && listener.links.contains(&link))
                && listener.wants(notification)
        };
        let told: Vec<(HostId, Option<RequestId>)> = self
            .listeners
            .iter()
            .filter(|(number, listener)| wanted(**number, listener))
            .map(|(_, listener)| (listener.host, listener.id.clone()))
            .collect();
        for (host, id) in told {
            let mut bytes = b"{\"jsonrpc\":\"2.0\",\"method\":".to_vec();
            write::string(&mut bytes, &notification.method);
            bytes.extend_from_slice(b",\"params\":");
            let params = notification.params.unwrap_or(Json::EMPTY_OBJECT);
            let edit = |member: &str, value: Json<'_>, out: &mut Vec<u8>| {
                if member != "_meta" {
                    return Edit::Keep;
                }
                let mark = out.len();
                let own = |name: &str, _: Json<'_>, _: &mut Vec<u8>| {
                    if name == key::SUBSCRIPTION_ID { Edit::Drop } else { Edit::Keep }
                };
                edit_object(out, value, own, Keep);
                if id.is_some() || out.get(mark..) == Some(b"{}") { Edit::Drop } else { Edit::Replaced }
            };
            match &id {
                Some(id) => edit_object(&mut bytes, params, edit, |tail: &mut Tail<'_>| {
                    let meta = params.get("_meta").unwrap_or(Json::EMPTY_OBJECT);
                    let own = |name: &str, _: Json<'_>, _: &mut Vec<u8>| {
                        if name == key::SUBSCRIPTION_ID { Edit::Drop } else { Edit::Keep }
                    };
                    edit_object(tail.member("_meta"), meta, own, |tail: &mut Tail<'_>| {
                        id.write(tail.member(key::SUBSCRIPTION_ID));
                    });
                }),
                None => edit_object(&mut bytes, params, edit, Keep),
            }
            bytes.push(b'}');
            let stream = id.map_or(HostStream::Common, HostStream::Request);
            self.tell(host, stream, bytes);
        }
    }

    /// A modern upstream's stream has ended: a modern host is told, so that it listens again; for a legacy host nothing
    /// is lost but time, it is opened again with its next subscription.
    pub(super) fn listening_ended(&mut self, number: u64, error: &RpcError, now: Timestamp) {
        let Some(listener) = self.listeners.get(&number) else { return };
        if let Some(id) = listener.id.clone() {
            let host = listener.host;
            self.stop_listening(number, now);
            self.respond_error(host, &id, ReplyClass::Internal, error);
        }
    }

    /// The session that told a listener of changes is gone.
    pub(super) fn listeners_lost(&mut self, link: LinkId, error: &RpcError, now: Timestamp) {
        let lost = |listener: &Listener| listener.links.contains(&link);
        let numbers: Vec<u64> =
            self.listeners.iter().filter(|(_, listener)| lost(listener)).map(|(number, _)| *number).collect();
        for number in numbers {
            if let Some(listener) = self.listeners.get_mut(&number) {
                listener.links.retain(|other| *other != link);
            }
            self.listening_ended(number, error, now);
        }
    }

    pub(super) fn stop_listening(&mut self, number: u64, now: Timestamp) {
        let Some(listener) = self.listeners.remove(&number) else { return };
        for sent in listener.sent {
            self.cancel_sent(sent, now);
        }
        for link in listener.links {
            for uri in &listener.uris {
                let others = |other: &Listener| other.links.contains(&link) && other.uris.contains(uri);
                if !self.listeners.values().any(others) {
                    self.subscribe(link, "resources/unsubscribe", uri, now);
                }
            }
            if let Some(session) = self.links.get_mut(&link).and_then(Link::session) {
                session.listeners -= 1;
            }
            self.settle(link, now);
        }
    }

    /// A host is gone: nobody listens for it.
    pub(super) fn stop_listening_for(&mut self, host: HostId, now: Timestamp) {
        let numbers: Vec<u64> = self
            .listeners
            .iter()
            .filter(|(_, listener)| listener.host == host)
            .map(|(number, _)| *number)
            .collect();
        for number in numbers {
            self.stop_listening(number, now);
        }
    }
}
