//! The core's [`Connection`] with what it lacks: a clock, a lock, somebody who listens.
//!
//! Whoever has something for the connection (a call, a transport, the timer) does it under the lock; what comes out
//! of it goes to the transport's queue and to the calls before the lock is given back, and to the hook after.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use mrtr_core::{
    Limits, Timestamp,
    client::{
        Exchange, InputRequired,
        connection::{
            self, CallId, Connection, Event as Happened, HeaderRules, Outcome, PostId, Transmit, Via,
        },
    },
    http::{Judgement, ParamHeaders},
    jsonrpc::{Json, Message, RequestId, admit},
    legacy::client::AskId,
    wire::{Era, InputRequest},
};
use tokio::sync::{Notify, mpsc, oneshot};

use super::{Event, OnEvent, WireError};
use crate::clock::Clock;

/// After so many deaths of the server without a result in between, calls are not sent to another process any more.
const RESTARTS: u32 = 3;

pub(super) struct Machine {
    state: Mutex<State>,
    /// When something is due may have changed.
    changed: Notify,
    queue: mpsc::UnboundedSender<Out>,
    pub(super) clock: Clock,
    pub(super) limits: Limits,
    on_event: Option<OnEvent>,
    /// Annotations of the tools that were listed.
    annotations: Mutex<BTreeMap<String, Arc<ParamHeaders>>>,
    /// Whether a server that has died is started again.
    restarts: bool,
}

struct State {
    connection: Connection,
    calls: BTreeMap<CallId, Slot>,
    asks: BTreeMap<AskId, CallId>,
    /// Why the transport failed, for calls that do not know.
    fault: Option<WireError>,
    /// Deaths of the server since the last result.
    deaths: u32,
}

/// Who waits for a call.
struct Slot {
    news: mpsc::UnboundedSender<News>,
    /// Requests so far.
    round: u32,
    sent: Timestamp,
    /// What happened to its request on the way.
    fault: Option<WireError>,
}

/// What a transport has to do, in this order.
#[derive(Debug)]
pub(super) enum Out {
    Request {
        post: PostId,
        call: Option<CallId>,
        bytes: Vec<u8>,
        headers: HeaderRules,
    },
    Message {
        call: Option<CallId>,
        bytes: Vec<u8>,
        headers: HeaderRules,
    },
    Close {
        post: PostId,
    },
    /// A session of a legacy era is open.
    Opened,
    /// The child has closed its output.
    Died {
        process: u64,
    },
    /// End in order, and say so.
    End(oneshot::Sender<()>),
}

/// What a call hears.
pub(super) enum News {
    Asked(Exchange<InputRequired>, Receipt),
    Deferred { until: Timestamp },
    Ask { ask: AskId, request: InputRequest<'static>, receipt: Receipt },
    Withdrawn(AskId),
    Done { outcome: Outcome, fault: Option<WireError>, receipt: Receipt },
}

/// How a message came.
#[derive(Clone, Copy, Debug)]
pub(super) struct Receipt {
    /// Which leg of the call it belongs to.
    pub(super) round: u32,
    /// Bytes of the message.
    pub(super) bytes: usize,
    /// Since the request went out.
    pub(super) after: Duration,
}

/// What the hook hears once the lock is given back.
enum Heard {
    Sent { round: u32, post: PostId, method: String, bytes: usize },
    Progress(Box<str>),
    Notification { method: Box<str>, params: Option<Box<str>> },
}

impl Machine {
    pub(super) fn new(
        connection: Connection,
        queue: mpsc::UnboundedSender<Out>,
        (clock, limits): (Clock, Limits),
        on_event: Option<OnEvent>,
        restarts: bool,
    ) -> Self {
        let (calls, asks) = (BTreeMap::new(), BTreeMap::new());
        Self {
            state: Mutex::new(State { connection, calls, asks, fault: None, deaths: 0 }),
            changed: Notify::new(),
            queue,
            clock,
            limits,
            on_event,
            annotations: Mutex::new(BTreeMap::new()),
            restarts,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing panics while it is held.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn annotations(&self) -> MutexGuard<'_, BTreeMap<String, Arc<ParamHeaders>>> {
        self.annotations.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks at the connection.
    pub(super) fn look<T>(&self, look: impl FnOnce(&Connection) -> T) -> T {
        look(&self.state().connection)
    }

    /// Does something with the connection, and passes on what comes of it.
    pub(super) fn act<T>(&self, act: impl FnOnce(&mut Connection, Timestamp) -> T) -> T {
        self.act_at(self.clock.now(), 0, act)
    }

    fn act_at<T>(
        &self,
        now: Timestamp,
        bytes: usize,
        act: impl FnOnce(&mut Connection, Timestamp) -> T,
    ) -> T {
        let mut state = self.state();
        if bytes > 0 {
            // It works again.
            state.fault = None;
        }
        let done = act(&mut state.connection, now);
        let heard = self.pass_on(&mut state, now, bytes);
        drop(state);
        self.after(heard);
        done
    }

    /// Begins a call: what is to be heard of it comes through the receiver, the last of it is its outcome.
    pub(super) fn begin(
        &self,
        mut begin: impl FnMut(&mut Connection, Timestamp) -> Result<CallId, connection::CallError>,
    ) -> Result<(CallId, mpsc::UnboundedReceiver<News>), connection::CallError> {
        let (news, receiver) = mpsc::unbounded_channel();
        let now = self.clock.now();
        let mut state = self.state();
        if state.calls.is_empty() {
            state.deaths = 0;
        }
        let call = match begin(&mut state.connection, now) {
            Err(connection::CallError::Closed) if self.restarts => {
                (state.fault, state.deaths) = (None, 0);
                state.connection.handle_restarted(now);
                begin(&mut state.connection, now)
            }
            begun => begun,
        }?;
        state.calls.insert(call, Slot { news, round: 0, sent: now, fault: None });
        let heard = self.pass_on(&mut state, now, 0);
        drop(state);
        self.after(heard);
        Ok((call, receiver))
    }

    /// Gives a call up, unless it is over.
    pub(super) fn cancel(&self, call: CallId) {
        self.state().calls.remove(&call);
        self.act(|connection, now| connection.cancel(call, "", now));
    }

    /// A message has come.
    pub(super) fn message(&self, via: Via, bytes: &[u8]) {
        self.act_at(self.clock.now(), bytes.len(), |connection, now| {
            connection.handle_message(via, bytes, now);
        });
    }

    /// A message was too long.
    pub(super) fn overlong(&self, via: Via, beginning: &[u8]) {
        tracing::warn!(
            limit = self.limits.message_bytes,
            "a message of the server was skipped: it is too long"
        );
        self.act(|connection, now| connection.handle_overlong(via, beginning, now));
    }

    /// The response to a POST was read whole.
    pub(super) fn response(&self, post: PostId, judgement: Judgement<'_>, bytes: usize) {
        self.act_at(self.clock.now(), bytes, |connection, now| connection.handle_http(post, judgement, now));
    }

    /// No response came to a POST, for this reason.
    pub(super) fn lost(&self, post: PostId, call: Option<CallId>, fault: WireError) {
        let now = self.clock.now();
        let mut state = self.state();
        match call.and_then(|call| state.calls.get_mut(&call)) {
            Some(slot) => slot.fault = Some(fault),
            None => state.fault = Some(fault),
        }
        state.connection.handle_lost(post, now);
        let heard = self.pass_on(&mut state, now, 0);
        drop(state);
        self.after(heard);
    }

    /// An answer to a question of this call was not accepted.
    pub(super) fn unaccepted(&self, call: CallId, fault: WireError) {
        let now = self.clock.now();
        let mut state = self.state();
        if let Some(slot) = state.calls.get_mut(&call) {
            slot.fault = Some(fault);
        }
        state.connection.handle_unaccepted(call, now);
        let heard = self.pass_on(&mut state, now, 0);
        drop(state);
        self.after(heard);
    }

    /// The server's process is gone, or there is none. `silent`: it has not said a word.
    pub(super) fn died(&self, fault: WireError, silent: bool) {
        let now = self.clock.now();
        let mut state = self.state();
        state.fault = Some(fault);
        state.deaths += 1;
        if self.restarts && !silent && state.deaths <= RESTARTS {
            state.connection.handle_restarted(now);
        } else {
            state.connection.handle_closed(now);
        }
        let heard = self.pass_on(&mut state, now, 0);
        drop(state);
        self.after(heard);
    }

    /// Does what is due, at its time, for as long as it is polled.
    pub(super) async fn tick(&self) {
        loop {
            let due = self.look(Connection::poll_timeout);
            let sleeping = async {
                match due {
                    Some(due) => {
                        tokio::time::sleep(self.clock.until(due)).await;
                        due
                    }
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = self.changed.notified() => {}
                // The sleep is over, so it is at least that late, whatever a clock says that was set.
                due = sleeping => self.act_at(self.clock.now().max(due), 0, Connection::handle_timeout),
            }
        }
    }

    /// Empties the connection.
    fn pass_on(&self, state: &mut State, now: Timestamp, bytes: usize) -> Vec<Heard> {
        let mut heard = Vec::new();
        loop {
            // What is to be done at an event comes right behind the message that was written at it.
            let sent = state.connection.poll_transmit();
            let mut idle = sent.is_none();
            if let Some(transmit) = sent {
                self.send(state, transmit, now, &mut heard);
            }
            while let Some(event) = state.connection.poll_event() {
                self.hear(state, event, now, bytes, &mut heard);
                idle = false;
            }
            if idle {
                return heard;
            }
        }
    }

    fn send(&self, state: &mut State, transmit: Transmit, now: Timestamp, heard: &mut Vec<Heard>) {
        let out = match transmit {
            Transmit::Request { post, call, bytes, headers } => {
                if let Some(slot) = call.and_then(|call| state.calls.get_mut(&call)) {
                    slot.round += 1;
                    slot.sent = now;
                    slot.fault = None;
                    if self.on_event.is_some() {
                        let (round, method) = (slot.round, method(&bytes, &self.limits));
                        heard.push(Heard::Sent { round, post, method, bytes: bytes.len() });
                    }
                }
                Out::Request { post, call, bytes, headers }
            }
            Transmit::Message { call, bytes, headers } => Out::Message { call, bytes, headers },
            Transmit::Close { post } => Out::Close { post },
            _ => return,
        };
        // The receiver is gone only when the client is.
        let _ = self.queue.send(out);
    }

    fn hear(&self, state: &mut State, event: Happened, now: Timestamp, bytes: usize, heard: &mut Vec<Heard>) {
        let receipt = |slot: &Slot| {
            let after = now.saturating_since(slot.sent);
            Receipt { round: slot.round, bytes, after }
        };
        match event {
            Happened::Era(era) => {
                tracing::debug!(?era, "the server's era is known");
                if era == Era::Legacy {
                    let _ = self.queue.send(Out::Opened);
                }
            }
            Happened::InputRequired { call, exchange } => {
                if let Some(slot) = state.calls.get(&call) {
                    let _ = slot.news.send(News::Asked(exchange, receipt(slot)));
                }
            }
            Happened::Deferred { call, until } => {
                if let Some(slot) = state.calls.get(&call) {
                    let _ = slot.news.send(News::Deferred { until });
                }
            }
            Happened::Ask { ask, call, request, .. } => {
                // One that belongs to no call is for whoever is here.
                let call = call.or_else(|| state.calls.keys().next().copied());
                match call.and_then(|call| Some((call, state.calls.get(&call)?))) {
                    Some((call, slot)) => {
                        let _ = slot.news.send(News::Ask { ask, request, receipt: receipt(slot) });
                        state.asks.insert(ask, call);
                    }
                    None => {
                        let error = mrtr_core::RpcError::internal("Nobody is there to answer");
                        let _ = state.connection.refuse(ask, &error, now);
                    }
                }
            }
            Happened::AskWithdrawn { ask } => {
                let slot = state.asks.remove(&ask).and_then(|call| state.calls.get(&call));
                if let Some(slot) = slot {
                    let _ = slot.news.send(News::Withdrawn(ask));
                }
            }
            Happened::Done { call, outcome } => {
                let Some(slot) = state.calls.remove(&call) else { return };
                if outcome.result.is_ok() {
                    state.deaths = 0;
                }
                let fault = match slot.fault {
                    None => state.fault.as_ref().map(WireError::again),
                    Some(fault) => Some(fault),
                };
                let receipt = Receipt { round: slot.round, bytes, after: now.saturating_since(slot.sent) };
                let _ = slot.news.send(News::Done { outcome, fault, receipt });
            }
            Happened::Progress { params, .. } => heard.push(Heard::Progress(params)),
            Happened::Notification { method, params, .. } => {
                heard.push(Heard::Notification { method, params });
            }
            _ => {}
        }
    }

    fn after(&self, heard: Vec<Heard>) {
        self.changed.notify_one();
        if self.on_event.is_none() {
            return;
        }
        let json = |text: &str, then: &mut dyn FnMut(Json<'_>)| {
            // What the core passes on it has read.
            if let Ok(json) = Json::parse(text, &self.limits) {
                then(json);
            }
        };
        for one in heard {
            match one {
                Heard::Sent { round, post, method, bytes } => {
                    let id: RequestId = post.request_id();
                    self.tell(Event::Sent { round, method: &method, id: &id, bytes });
                }
                Heard::Progress(params) => json(&params, &mut |params| self.tell(Event::Progress { params })),
                Heard::Notification { method, params: None } => {
                    self.tell(Event::Notification { method: &method, params: None });
                }
                Heard::Notification { method, params: Some(params) } => json(&params, &mut |params| {
                    self.tell(Event::Notification { method: &method, params: Some(params) });
                }),
            }
        }
    }

    pub(super) fn tell(&self, event: Event<'_>) {
        if let Some(on_event) = &self.on_event {
            on_event(event);
        }
    }
}

/// For the hook alone: what the core has written, it can read.
fn method(bytes: &[u8], limits: &Limits) -> String {
    match admit(bytes, limits) {
        Ok(Message::Request(request)) => request.method.into_owned(),
        Ok(Message::Notification(_) | Message::Response(_)) | Err(_) => String::new(),
    }
}

impl fmt::Debug for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.look(|connection| connection.fmt(f))
    }
}
