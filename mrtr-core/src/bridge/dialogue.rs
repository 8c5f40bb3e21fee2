//! A legacy host's call at a modern upstream: the bridge runs the rounds. The host is asked by requests of the bridge's
//! own, all questions of a round at a time, on the stream of its call; a round without questions is invisible to it.

use alloc::{borrow::Cow, boxed::Box, format, vec::Vec};

use super::{
    Bridge, HostId, HostStream, LinkId, Output, Reason,
    host::{AskedHost, Whose},
    inbox::{Asker, Entry},
    link::{Purpose, Then},
    relay::{class_of, head, progress, progress_of, renamed, result_error},
    timers::Whom,
};
use crate::{
    error::{ErrorCode, RpcError},
    http::ReplyClass,
    jsonrpc::{Json, Request, RequestId, write},
    time::Timestamp,
    translate::{
        ModernMeta, Origin, Wording, answer_to_modern, ask_to_legacy, caused, error_to_legacy,
        params_to_modern, promise, result_to_legacy,
    },
    wire::{Action, AskKind, ClientCapabilities, InterimResult, LogLevel, ResultKind, Version, read_result},
};

pub(super) struct Dialogue {
    host: HostId,
    id: RequestId,
    upstream: usize,
    method: Cow<'static, str>,
    /// The tool's or prompt's name, or the uri.
    target: Box<str>,
    /// As the host sent them, but for the name.
    params: Option<Box<str>>,
    version: Version,
    can: ClientCapabilities,
    level: Option<LogLevel>,
    progress: Option<RequestId>,
    /// What the host was told last, and what earlier rounds came to: it only ever grows.
    shown: f64,
    base: f64,
    sent: Option<i64>,
    asks: Vec<Ask>,
    state: Option<Box<str>>,
    rounds: u32,
    state_only: u32,
    in_a_row: u32,
    relisted: bool,
    /// Pages that the person agreed to open: url and the id that was minted.
    opened: Vec<(Box<str>, Box<str>)>,
    pause: Option<Timestamp>,
    alive: Timestamp,
    timer: Option<Timestamp>,
}

struct Ask {
    key: Box<str>,
    answer: Option<Vec<u8>>,
    /// Of a url ask: the url and the id that was minted.
    url: Option<(Box<str>, Box<str>)>,
}

impl Dialogue {
    pub(super) fn reason(&self) -> Reason {
        if self.pause.is_some_and(|pause| pause < self.alive) { Reason::Paced } else { Reason::Alive }
    }

    pub(super) fn log_target(&self) -> (HostId, RequestId, Option<LogLevel>) {
        (self.host, self.id.clone(), self.level)
    }

    fn stream(&self) -> HostStream {
        HostStream::Request(self.id.clone())
    }
}

impl Bridge {
    pub(super) fn begin_dialogue(
        &mut self,
        host: HostId,
        request: &Request<'_>,
        upstream: usize,
        name: Option<&str>,
        now: Timestamp,
    ) {
        let Some(legacy) = self.hosts.get_mut(&host).and_then(super::Host::legacy) else { return };
        let (version, can, level) = (legacy.version, legacy.capabilities, legacy.level);
        let named = name.zip(request.params).map(|(name, params)| renamed(params, name));
        let params = named.as_deref().or(request.params.map(Json::as_str));
        let parts = request.parts();
        let target = parts.name.or(parts.uri).and_then(Json::as_string).unwrap_or_default();
        let dialogue = Dialogue {
            host,
            id: request.id.clone(),
            upstream,
            method: super::relay::known(&request.method),
            target: target.into_owned().into(),
            params: params.map(Box::from),
            version,
            can,
            level,
            progress: progress_of(request),
            shown: 0.0,
            base: 0.0,
            sent: None,
            asks: Vec::new(),
            state: None,
            rounds: 0,
            state_only: 0,
            in_a_row: 0,
            relisted: false,
            opened: Vec::new(),
            pause: None,
            alive: now.saturating_add(self.config.waits.alive),
            timer: None,
        };
        let call = u64::try_from(self.fresh_id()).unwrap_or(0);
        self.dialogues.insert(call, Box::new(dialogue));
        self.set_open(host, &request.id, super::host::Open::Dialogue(call));
        self.send_round(call, now);
    }

    /// Sends the call, or its retry with the answers and, to the letter, the state: always under a new id (R-091).
    fn send_round(&mut self, call: u64, now: Timestamp) {
        let id = self.fresh_id();
        let Some(dialogue) = self.dialogues.get_mut(&call) else { return };
        let mut answers = Vec::new();
        for ask in &mut dialogue.asks {
            answers.push(if answers.is_empty() { b'{' } else { b',' });
            write::string(&mut answers, &ask.key);
            answers.push(b':');
            answers.extend_from_slice(ask.answer.as_deref().unwrap_or(b"null"));
        }
        if !answers.is_empty() {
            answers.push(b'}');
        }
        dialogue.asks.clear();
        dialogue.pause = None;
        let state = dialogue.state.take();
        let token = RequestId::from(id);
        let mut bytes = head(id, &dialogue.method);
        let from = bytes.len();
        let (_, declared) = promise(dialogue.can.union(self.config.inbox), Version::LATEST);
        let meta = ModernMeta {
            client: &self.config.info,
            capabilities: &declared,
            log_level: dialogue.level,
            progress_token: dialogue.progress.as_ref().map(|_| &token),
        };
        let params = dialogue.params.as_deref().map(Json::trusted);
        let answers = (!answers.is_empty()).then_some(&*answers);
        params_to_modern(&mut bytes, params, &meta, answers, state.as_deref());
        dialogue.sent = Some(id);
        // Kept for a repetition after `-32020`.
        dialogue.state = state;
        let (upstream, method) = (dialogue.upstream, dialogue.method.clone());
        let params = core::str::from_utf8(bytes.get(from..).unwrap_or_default()).unwrap_or("{}");
        let headers = self.headers(upstream, &method, Json::trusted(params));
        bytes.push(b'}');
        match headers {
            Ok(headers) => {
                let link = self.modern_link(upstream);
                self.send(link, id, bytes, headers, Purpose::Dialogue(call), now);
                self.schedule_dialogue(call);
            }
            Err(error) => self.end_dialogue(call, ReplyClass::HandlerError, &error),
        }
    }

    pub(super) fn dialogue_response(
        &mut self,
        call: u64,
        outcome: Result<Json<'_>, RpcError>,
        now: Timestamp,
    ) {
        let Some(dialogue) = self.dialogues.get_mut(&call) else { return };
        dialogue.sent = None;
        let result = match outcome {
            Ok(result) => result,
            Err(error) => {
                // The first request has no answers that would be lost with it.
                if error.code == ErrorCode::HEADER_MISMATCH && !dialogue.relisted && dialogue.rounds == 0 {
                    dialogue.relisted = true;
                    let upstream = dialogue.upstream;
                    return self.relist(upstream, Then::Dialogue(call), now);
                }
                let error = {
                    let read = dialogue.method == "resources/read";
                    error_to_legacy(error, read.then_some(&*dialogue.target))
                };
                return self.end_dialogue(call, class_of(error.code), &error);
            }
        };
        match read_result(result, &self.config.limits) {
            Ok(ResultKind::Complete(result)) => {
                self.completed_pages(call, &[]);
                let Some(dialogue) = self.dialogues.get(&call) else { return };
                let (upstream, method) = (dialogue.upstream, dialogue.method.clone());
                self.learn_resources(upstream, &method, result);
                let Some(dialogue) = self.dialogues.get(&call) else { return };
                let mut body = b"\"result\":".to_vec();
                result_to_legacy(&mut body, &dialogue.method, result, dialogue.version);
                let (host, id) = (dialogue.host, dialogue.id.clone());
                self.forget_dialogue(call);
                self.respond(host, &id, ReplyClass::Result, |out| out.extend_from_slice(&body));
            }
            Ok(ResultKind::InputRequired(interim)) => self.next_round(call, &interim, now),
            Err(fault) => {
                crate::trace::warn!(fault = %fault, "the upstream's result breaks the protocol");
                let error = result_error(&fault, "the upstream's result is not valid");
                self.end_dialogue(call, ReplyClass::Internal, &error);
            }
        }
    }

    /// Questions, or none: then the bridge goes on by itself after a pause (R-066, G-06).
    fn next_round(&mut self, call: u64, interim: &InterimResult<'_>, now: Timestamp) {
        let urls: Vec<Cow<'_, str>> = interim.asks.iter().filter_map(|(_, ask)| ask.url()).collect();
        self.completed_pages(call, &urls);
        let limits = &self.config.limits;
        let waits = &self.config.waits;
        let Some(dialogue) = self.dialogues.get_mut(&call) else { return };
        dialogue.state = interim.state.map(|state| state.as_str().into());
        dialogue.base = dialogue.shown;
        if interim.asks.is_empty() {
            dialogue.state_only += 1;
            if dialogue.state_only > limits.state_only_rounds {
                let error = RpcError::internal(
                    "the upstream lets its caller wait too often (Limits::state_only_rounds)",
                );
                return self.end_dialogue(call, ReplyClass::Internal, &error);
            }
            let pause =
                waits.pause_first.saturating_mul(1 << dialogue.in_a_row.min(10)).min(waits.pause_longest);
            dialogue.in_a_row += 1;
            dialogue.pause = Some(now.saturating_add(pause));
            return self.schedule_dialogue(call);
        }
        dialogue.in_a_row = 0;
        dialogue.rounds += 1;
        if dialogue.rounds > limits.rounds {
            let limit = limits.rounds;
            let error = RpcError::internal(format!("more than {limit} rounds of questions (Limits::rounds)"));
            return self.end_dialogue(call, ReplyClass::Internal, &error);
        }
        // All are put into words before any is asked: nobody is asked for an answer that would not be sent.
        let (version, capabilities, upstream) = (dialogue.version, dialogue.can, dialogue.upstream);
        let (host, stream, id) = (dialogue.host, dialogue.stream(), dialogue.id.clone());
        let (mut requests, mut diverted) = (Vec::new(), Vec::new());
        for (key, ask) in &interim.asks {
            let number = self.fresh_id();
            let minted = ask.url().map(|url| (Box::from(&*url), self.elicitation_id()));
            let name = self.config.upstreams.get(upstream).map_or("", |up| &*up.name);
            let wording = Wording {
                version,
                capabilities,
                elicitation_id: minted.as_ref().map_or("", |(_, id)| id),
                origin: if self.named { Origin::Named(name) } else { Origin::Untouched },
            };
            let mut bytes = Vec::new();
            let said = ask_to_legacy(&mut bytes, number, ask, &wording).is_ok();
            if !said && self.config.inbox.allow(ask.requirement()) {
                let mut question = Vec::new();
                ask.write(&mut question);
                diverted.push((Box::from(&**key), ask.kind(), question));
                continue;
            }
            if !said {
                let needs = interim.asks.iter().map(|(_, ask)| ask.requirement());
                // One that was declared and cannot be said counts as missing (BT-5).
                let data = capabilities.missing(needs);
                let error =
                    RpcError::internal("the host cannot be asked what the tool needs").with_raw_data(data);
                return self.end_dialogue(call, ReplyClass::Internal, &error);
            }
            requests.push((number, Box::from(&**key), ask.kind(), minted, bytes));
        }
        for (key, kind, question) in diverted {
            let Some(dialogue) = self.dialogues.get_mut(&call) else { return };
            let key: Box<str> = key;
            dialogue.asks.push(Ask { key: key.clone(), answer: None, url: None });
            let entry = Entry {
                owner: self.hosts.get(&host).map_or(super::Owner(None), |host| host.owner.clone()),
                upstream,
                target: dialogue.target.clone(),
                kind,
                question: core::str::from_utf8(&question).unwrap_or_default().into(),
                created: now,
                expires: now.saturating_add(self.config.waits.inbox),
                asker: Asker::Dialogue(call),
                key,
            };
            let _ = self.inbox.add(entry);
            self.schedule_inbox();
        }
        for (number, key, kind, url, bytes) in requests {
            let Some(dialogue) = self.dialogues.get_mut(&call) else { return };
            let key: Box<str> = key;
            dialogue.asks.push(Ask { key: key.clone(), answer: None, url });
            if let Some(legacy) = self.hosts.get_mut(&host).and_then(super::Host::legacy) {
                let whose = Whose::Dialogue { call, key, kind };
                legacy.asked.insert(number, AskedHost { whose, call: Some(id.clone()) });
            }
            self.ask_host(host, stream.clone(), bytes);
        }
        self.schedule_dialogue(call);
    }

    /// An answer of the host. The upstream hears of it when all are there (BT-1).
    pub(super) fn dialogue_answered(
        &mut self,
        call: u64,
        key: &str,
        kind: AskKind,
        outcome: Result<Json<'_>, RpcError>,
        now: Timestamp,
    ) {
        let limit = self.config.limits.answer_bytes;
        let Some(dialogue) = self.dialogues.get_mut(&call) else { return };
        let mut answer = Vec::new();
        let error = match outcome {
            Ok(result) if result.as_str().len() > limit => Some(RpcError::internal(format!(
                "the host's answer is over the limit of {limit} bytes (Limits::answer_bytes)"
            ))),
            Ok(result) => match answer_to_modern(&mut answer, kind, result) {
                Ok(()) => {
                    let accepted = result.get("action").and_then(Json::as_string).as_deref()
                        == Some(Action::Accept.name());
                    let ask = dialogue.asks.iter_mut().find(|ask| *ask.key == *key);
                    if let Some(ask) = ask {
                        ask.answer = Some(answer);
                        if let Some(url) = ask.url.take().filter(|_| accepted) {
                            dialogue.opened.push(url);
                        }
                    }
                    None
                }
                Err(fault) => Some(RpcError::internal(format!("the host's answer{fault}"))),
            },
            // R-237: a refusal has no words in the modern era. The call ends, and says why.
            Err(error) => Some(caused("the host refused to answer", &error)),
        };
        if let Some(error) = error {
            return self.end_dialogue(call, ReplyClass::Internal, &error);
        }
        if dialogue.asks.iter().all(|ask| ask.answer.is_some()) {
            self.send_round(call, now);
        }
    }

    pub(super) fn dialogue_failed(&mut self, call: u64, error: &RpcError, _now: Timestamp) {
        self.counts.lost += 1;
        self.end_dialogue(call, ReplyClass::Internal, error);
    }

    /// Responds with an error; questions that are out are taken back.
    fn end_dialogue(&mut self, call: u64, class: ReplyClass, error: &RpcError) {
        let Some(dialogue) = self.dialogues.get(&call) else { return };
        let (host, id) = (dialogue.host, dialogue.id.clone());
        self.withdraw_asks(host, &id);
        self.forget_dialogue(call);
        self.respond_error(host, &id, class, error);
    }

    pub(super) fn cancel_dialogue(&mut self, call: u64, now: Timestamp) {
        if let Some(sent) = self.dialogues.get(&call).and_then(|dialogue| dialogue.sent) {
            self.cancel_sent(sent, now);
        }
        self.forget_dialogue(call);
    }

    fn forget_dialogue(&mut self, call: u64) {
        self.inbox.withdraw(&Asker::Dialogue(call), None);
        self.schedule_inbox();
        if let Some(mut dialogue) = self.dialogues.remove(&call) {
            self.timers.set(Whom::Dialogue(call), &mut dialogue.timer, None);
        }
    }

    fn schedule_dialogue(&mut self, call: u64) {
        if let Some(dialogue) = self.dialogues.get_mut(&call) {
            let next = dialogue.pause.map_or(dialogue.alive, |pause| pause.min(dialogue.alive));
            self.timers.set(Whom::Dialogue(call), &mut dialogue.timer, Some(next));
        }
    }

    pub(super) fn dialogue_due(&mut self, call: u64, now: Timestamp) {
        let Some(dialogue) = self.dialogues.get_mut(&call) else { return };
        dialogue.timer = None;
        if dialogue.alive <= now {
            dialogue.alive = now.saturating_add(self.config.waits.alive);
            let (host, stream) = (dialogue.host, dialogue.stream());
            if let Some(token) = &dialogue.progress {
                // It must grow; how much is nobody's business.
                dialogue.shown += 0.001;
                let value = format!("{}", dialogue.shown);
                let params = Json::trusted(r#"{"progressToken":0,"progress":0}"#);
                let bytes = progress(params, token, Some(&value));
                self.tell(host, stream, bytes);
            } else {
                self.out.push_back(Output::KeepAlive { host, stream });
            }
        }
        if self.dialogues.get(&call).is_some_and(|dialogue| dialogue.pause.is_some_and(|at| at <= now)) {
            self.send_round(call, now);
        }
        self.schedule_dialogue(call);
    }

    /// Progress of one round, on top of what the earlier ones came to: it only ever grows for the host (BT-8, R-196).
    pub(super) fn dialogue_progress(&mut self, call: u64, params: Json<'_>, _now: Timestamp) {
        let Some(dialogue) = self.dialogues.get_mut(&call) else { return };
        let Some(token) = &dialogue.progress else { return };
        let value: Option<f64> = params.get("progress").and_then(|value| value.as_str().parse().ok());
        let Some(value) = value.filter(|value| value.is_finite()) else { return };
        let sum = dialogue.base + value;
        if sum <= dialogue.shown && dialogue.shown > 0.0 {
            return;
        }
        dialogue.shown = sum;
        let own = (dialogue.base > 0.0).then(|| format!("{sum}"));
        let bytes = progress(params, token, own.as_deref());
        let (host, stream) = (dialogue.host, dialogue.stream());
        self.tell(host, stream, bytes);
    }

    /// Pages that the upstream no longer asks for are done with: a host of 2025-11-25 is told (BT-2, R-234).
    fn completed_pages(&mut self, call: u64, still: &[Cow<'_, str>]) {
        let Some(dialogue) = self.dialogues.get_mut(&call) else { return };
        let (host, stream) = (dialogue.host, dialogue.stream());
        let (kept, done) = core::mem::take(&mut dialogue.opened)
            .into_iter()
            .partition(|(url, _)| still.iter().any(|asked| **asked == **url));
        dialogue.opened = kept;
        let done: Vec<(Box<str>, Box<str>)> = done;
        for (_, id) in done {
            let mut params = b"{\"elicitationId\":".to_vec();
            write::string(&mut params, &id);
            params.push(b'}');
            let mut bytes = Vec::new();
            write::notification(
                &mut bytes,
                "notifications/elicitation/complete",
                core::str::from_utf8(&params).unwrap_or("{}"),
            );
            self.tell(host, stream.clone(), bytes);
        }
    }

    /// A new, opaque, unique id (R-233), in the form of a UUID of version 4.
    fn elicitation_id(&mut self) -> Box<str> {
        let bytes: [u8; 16] = self.random.bytes(b"bridge/elicitation");
        let number = u128::from_be_bytes(bytes) & !(0xf << 76) & !(0x3 << 62) | (0x4 << 76) | (0x2 << 62);
        let hex = format!("{number:032x}");
        let part = |from, to| hex.get(from..to).unwrap_or_default();
        let parts = [part(0, 8), part(8, 12), part(12, 16), part(16, 20), part(20, 32)];
        parts.join("-").into()
    }

    pub(super) fn repeat_dialogue(&mut self, call: u64, now: Timestamp) {
        self.send_round(call, now);
    }

    /// Takes back what a legacy upstream asked a legacy host.
    pub(super) fn pair_cancels(&mut self, link: LinkId, host: HostId, id: &RequestId) {
        let asked = |asker: &Asker| matches!(asker, Asker::Pair { link: other, id: theirs, .. } if *other == link && theirs == id);
        if self.withdraw_inbox(asked) {
            return;
        }
        let Some(legacy) = self.hosts.get_mut(&host).and_then(super::Host::legacy) else { return };
        let found = legacy.asked.iter().find_map(|(number, asked)| match &asked.whose {
            Whose::Pair { link: other, id: theirs } if *other == link && theirs == id => {
                let stream = asked.call.clone().map_or(HostStream::Common, HostStream::Request);
                Some((*number, stream))
            }
            Whose::Pair { .. } | Whose::Dialogue { .. } => None,
        });
        let Some((number, stream)) = found else { return };
        legacy.asked.remove(&number);
        self.cancel_ask(host, stream, number);
    }
}
