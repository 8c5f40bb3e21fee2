//! Finding out the server's era (R-049…R-051).

use alloc::{boxed::Box, vec::Vec};

use super::{Connection, Event, Failure, HeaderRules, PostId, Stage, State, Transmit};
use crate::{
    client::Call,
    error::RpcError,
    http::{HttpError, is_modern},
    jsonrpc::Json,
    legacy::client::{ClientConfig, ClientSession, Closed},
    time::Timestamp,
    wire::{Era, Implementation, Version},
};

impl Connection {
    /// Nothing is known, and there is something to send.
    pub(super) fn find_out(&mut self, now: Timestamp) {
        match self.config.era {
            Some(Era::Legacy) if !self.config.legacy.is_empty() => self.open_session(None, now),
            // HTTP: the calls themselves are the probe.
            Some(Era::Modern | Era::Legacy) => self.launch_all(now),
            None if !self.is_pipe() || self.config.legacy.is_empty() => self.launch_all(now),
            None => self.probe(now),
        }
    }

    /// Sends `server/discover`.
    fn probe(&mut self, now: Timestamp) {
        let post = self.take_id();
        let mut bytes = Vec::new();
        // It has no parameters that could be wrong.
        if self.client.start(post.request_id(), Call::new("server/discover", "{}"), now, &mut bytes).is_err()
        {
            return self.launch_all(now);
        }
        let headers = HeaderRules::Modern;
        self.out.push_back(Transmit::Request { post, call: None, bytes, headers });
        self.state = State::Probing { post, until: now.saturating_add(self.config.probe) };
    }

    /// What came in reply to `server/discover`. `None`: a reply that cannot be read.
    pub(super) fn probed(&mut self, outcome: Option<Result<Json<'_>, RpcError>>, now: Timestamp) {
        match outcome {
            Some(Ok(result)) => match result.get("supportedVersions").filter(|list| list.items().is_some()) {
                None => self.fall_back(None, now),
                Some(list) => self.discovered(list, now),
            },
            Some(Err(error)) if is_modern(&error) => self.be_modern(now),
            Some(Err(_)) | None => self.fall_back(None, now),
        }
    }

    fn discovered(&mut self, list: Json<'_>, now: Timestamp) {
        let speaks = |ours: &[Version]| {
            let mut theirs = list.items().into_iter().flatten().filter_map(Json::as_string);
            theirs.any(|name| ours.iter().any(|version| version.name() == name))
        };
        if speaks(&self.client.shared.config.versions) {
            self.be_modern(now);
        } else if speaks(&self.config.legacy) {
            self.fall_back(None, now);
        } else {
            self.state = State::Unknown;
            for call in self.waiting() {
                if self.calls.remove(&call).is_some() {
                    self.failed(call, Failure::NoCommonVersion);
                }
            }
        }
    }

    /// The server is modern.
    pub(super) fn be_modern(&mut self, now: Timestamp) {
        if let State::Opening { session, .. } | State::Legacy(session) = &self.state {
            self.next_id = self.next_id.max(session.next_id());
        }
        self.state = State::Modern;
        self.confirm(Era::Modern);
        self.launch_all(now);
    }

    /// Takes note that an era was seen.
    pub(super) fn confirm(&mut self, era: Era) {
        if !core::mem::replace(&mut self.confirmed, true) || self.config.era != Some(era) {
            self.events.push_back(Event::Era(era));
        }
        self.config.era = Some(era);
    }

    /// The server is taken for a legacy one. `probe` may still be answered.
    pub(super) fn fall_back(&mut self, probe: Option<PostId>, now: Timestamp) {
        if self.config.legacy.is_empty() {
            self.state = State::Modern;
            return self.launch_all(now);
        }
        self.open_session(probe, now);
    }

    fn open_session(&mut self, probe: Option<PostId>, now: Timestamp) {
        let client = &self.client.shared.config;
        let nameless = || Implementation::new("unnamed", "0");
        let info = client.info.clone().unwrap_or_else(nameless);
        let mut config = ClientConfig::new(info, self.capabilities());
        config.members.clone_from(&client.members);
        config.versions.clone_from(&self.config.legacy);
        config.limits = client.limits.clone();
        config.calls = self.config.calls;
        config.unsolicited = self.config.unsolicited;
        config.request_timeout = client.policy.request_timeout;
        config.request_longest = client.policy.request_longest;
        config.events = self.config.events;
        config.first_id = self.next_id;
        let mut session = Box::new(ClientSession::new(config));
        session.open(now);
        self.state = State::Opening { session, probe, fault: None };
        self.pump(now);
    }

    /// The handshake failed, or the session is over.
    pub(super) fn session_closed(&mut self, why: Closed, now: Timestamp) {
        let State::Opening { session, probe, fault } = core::mem::replace(&mut self.state, State::Unknown)
        else {
            return;
        };
        self.next_id = self.next_id.max(session.next_id());
        let modern = match (&why, &fault) {
            (Closed::Refused(error), _) => is_modern(error),
            (_, Some(HttpError { error: Some(error), .. })) => is_modern(error),
            _ => false,
        };
        if modern {
            return self.be_modern(now);
        }
        // It was only assumed to be legacy: what was not tried yet is tried now.
        if self.config.era == Some(Era::Legacy) && probe.is_none() && !self.confirmed {
            self.config.era = None;
            return self.find_out(now);
        }
        for call in self.waiting() {
            let Some(entry) = self.calls.remove(&call) else { continue };
            let failure = match (entry.stage, &fault) {
                (Stage::Doubted(failure), _) => failure,
                (_, Some(fault)) => Failure::Http(fault.clone()),
                (_, None) => Failure::Session(why.clone()),
            };
            self.failed(call, failure);
        }
    }
}
