//! What legacy hosts are asked, and what they answer.

use alloc::{format, vec::Vec};

use super::{
    Bridge, HostId, HostKind, HostStream, LinkId,
    host::{AskedHost, Host, Whose},
    inbox::Asker,
};
use crate::{
    error::{ErrorCode, RpcError},
    http::ReplyClass,
    jsonrpc::{Json, RequestId, Response, write},
    time::Timestamp,
};

impl Bridge {
    pub(super) fn host_ready(&mut self, host: HostId, now: Timestamp) {
        let Some(legacy) = self.hosts.get_mut(&host).and_then(Host::legacy) else { return };
        legacy.ready = true;
        for (stream, bytes) in core::mem::take(&mut legacy.waiting) {
            self.tell(host, stream, bytes);
        }
        self.listen_for(host, now);
    }

    pub(super) fn host_response(&mut self, host: HostId, response: Response<'_>, now: Timestamp) {
        if let Some(id) = &response.id {
            self.host_answered(host, id, response.outcome, now);
        }
        if self.hosts.get(&host).is_some_and(|entry| entry.kind == HostKind::Post) {
            let error = RpcError::new(
                ErrorCode::INVALID_REQUEST,
                "Invalid request: no request of this server is open",
            );
            self.reply_unasked(host, None, &error, ReplyClass::InvalidRequest);
        }
    }

    /// Answers are matched by id and nothing else (B-61); late and unknown ones are ignored.
    pub(super) fn host_answered(
        &mut self,
        host: HostId,
        id: &RequestId,
        outcome: Result<Json<'_>, RpcError>,
        now: Timestamp,
    ) -> bool {
        let Some(legacy) = self.hosts.get_mut(&host).and_then(Host::legacy) else { return false };
        let Some(asked) = id.as_i64().and_then(|id| legacy.asked.remove(&id)) else { return false };
        match asked.whose {
            Whose::Dialogue { call, key, kind } => self.dialogue_answered(call, &key, kind, outcome, now),
            Whose::Pair { link, id } => self.pair_answered(link, &id, outcome),
        }
        true
    }

    /// Takes back what a legacy host was asked for a call.
    pub(super) fn withdraw_asks(&mut self, host: HostId, call: &RequestId) {
        let of = |asker: &Asker| matches!(asker, Asker::Pair { call: Some((of, id)), .. } if *of == host && id == call);
        self.withdraw_inbox(of);
        let Some(legacy) = self.hosts.get_mut(&host).and_then(Host::legacy) else { return };
        if legacy.asked.is_empty() {
            return;
        }
        let gone: Vec<i64> = legacy
            .asked
            .iter()
            .filter(|(_, asked)| asked.call.as_ref() == Some(call))
            .map(|(id, _)| *id)
            .collect();
        for id in &gone {
            legacy.asked.remove(id);
        }
        for id in gone {
            self.cancel_ask(host, HostStream::Request(call.clone()), id);
        }
    }

    /// Takes back what a legacy upstream that is gone had asked a legacy host.
    pub(super) fn withdraw_pair(&mut self, link: LinkId, host: HostId) {
        let Some(legacy) = self.hosts.get_mut(&host).and_then(Host::legacy) else { return };
        let of =
            |asked: &AskedHost| matches!(&asked.whose, Whose::Pair { link: other, .. } if *other == link);
        let gone: Vec<(i64, Option<RequestId>)> = legacy
            .asked
            .iter()
            .filter(|(_, asked)| of(asked))
            .map(|(id, asked)| (*id, asked.call.clone()))
            .collect();
        for (id, call) in gone {
            if let Some(legacy) = self.hosts.get_mut(&host).and_then(Host::legacy) {
                legacy.asked.remove(&id);
            }
            self.cancel_ask(host, call.map_or(HostStream::Common, HostStream::Request), id);
        }
    }

    /// The same of what waits in the inbox.
    pub(super) fn withdraw_pair_inbox(&mut self, link: LinkId) {
        self.withdraw_inbox(|asker| matches!(asker, Asker::Pair { link: other, .. } if *other == link));
    }

    pub(super) fn withdraw_inbox(&mut self, gone: impl Fn(&Asker) -> bool) -> bool {
        let found = self.inbox.len() > 0 && self.inbox.withdraw_of(gone);
        if found {
            self.schedule_inbox();
        }
        found
    }

    pub(super) fn cancel_ask(&mut self, host: HostId, stream: HostStream, id: i64) {
        let mut bytes = Vec::new();
        write::notification(&mut bytes, "notifications/cancelled", &format!("{{\"requestId\":{id}}}"));
        self.tell(host, stream, bytes);
    }

    /// Asks a legacy host, once it is ready to be asked.
    pub(super) fn ask_host(&mut self, host: HostId, stream: HostStream, bytes: Vec<u8>) {
        let Some(legacy) = self.hosts.get_mut(&host).and_then(Host::legacy) else { return };
        self.counts.asks += 1;
        if legacy.ready {
            self.tell(host, stream, bytes);
        } else {
            legacy.waiting.push((stream, bytes));
        }
    }
}
