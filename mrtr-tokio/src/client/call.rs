//! One call, from its first request to its outcome.

use std::{borrow::Cow, fmt, sync::Arc, time::Duration};

use mrtr_core::{
    ErrorCode, RpcError, Timestamp,
    client::{
        Answerer, Aside, Ask, Call, Complete, Exchange, IdFault, InputRequired, NotSent, Open, Pending,
        Reason, Received, Resend, Retrying, RoundFailed, StartError, StateRefused, Stopped, Violation,
    },
    http::ParamHeaders,
    jsonrpc::Json,
    wire::AskingMethod,
};
use tokio::time::timeout;

use super::{
    Client, Event, Inner, Waiting, WireError,
    wire::{Replies, Wire},
};

/// Why a call has no result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// The server says that it failed.
    #[error("the server answers: {0}")]
    Peer(RpcError),
    /// The server refuses a retry, most likely for its state: it has expired, or the server's key has changed.
    /// The call can be made anew.
    #[error("the server refuses to go on: {0}")]
    StateRefused(RpcError),
    /// The request cannot be made.
    #[error(transparent)]
    Start(#[from] StartError),
    /// No message came back.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// The reply did not come in time (`Policy::request_timeout`, `Policy::request_longest`, `Limits::exchange`);
    /// the request was cancelled.
    #[error("the reply did not come in time")]
    Timeout,
    /// The server breaks the protocol.
    #[error("the server breaks the protocol: {0}")]
    Violation(Violation),
    /// The reply is legal, but this client goes no further.
    #[error(transparent)]
    Stopped(#[from] Stopped),
    /// The retry was not sent.
    #[error(transparent)]
    NotSent(Reason),
    /// Questions that have no answer. Nothing was sent for them.
    #[error("{failed}")]
    Unanswered {
        /// Which, and why.
        failed: RoundFailed,
        /// The call, as it waits for them, with what else was answered: to be [saved](Waiting::save), or
        /// [taken up](Client::resume) when somebody is there.
        waiting: Box<Waiting>,
    },
    /// The call was made by a client of another server: its state goes there and nowhere else.
    #[error("the call belongs to another server")]
    OtherServer,
}

impl CallError {
    /// The call, if it only waits for answers.
    #[must_use]
    pub fn into_waiting(self) -> Option<Waiting> {
        match self {
            Self::Unanswered { waiting, .. } => Some(*waiting),
            Self::Peer(_)
            | Self::StateRefused(_)
            | Self::Start(_)
            | Self::Wire(_)
            | Self::Timeout
            | Self::Violation(_)
            | Self::Stopped(_)
            | Self::NotSent(_)
            | Self::OtherServer => None,
        }
    }
}

/// The result of a call. `Debug` shows its size.
pub struct Reply(Exchange<Complete>);

impl Reply {
    /// The result, an object.
    #[must_use]
    pub fn result(&self) -> Json<'_> {
        // Made only from exchanges that ended in one.
        self.0.result().unwrap_or(Json::NULL)
    }

    /// How many request/result legs it took: 1 if nothing was asked.
    #[must_use]
    pub fn rounds(&self) -> u32 {
        self.0.rounds()
    }

    /// Whether the result may be kept for as long as its hints say: not if it depends on answers.
    #[must_use]
    pub fn may_be_kept(&self) -> bool {
        !self.0.carried_answers_or_state()
    }
}

impl fmt::Debug for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// How a request/result leg ended, if not in an error.
enum Leg {
    Asked(Exchange<InputRequired>),
    Complete(Exchange<Complete>),
    Refused(StateRefused),
}

impl Client {
    /// Makes a call, and puts the server's questions to `answerer` until the result is there.
    ///
    /// Dropping the future cancels the request that is under way.
    ///
    /// # Errors
    ///
    /// If there is no result.
    pub async fn call(&self, call: Call<'_>, answerer: &dyn Answerer) -> Result<Reply, CallError> {
        self.inner.call(call, ParamHeaders::NONE, answerer).await
    }

    /// Calls a tool; `arguments` is the JSON text of an object.
    ///
    /// Over HTTP, arguments that the tool wants mirrored into headers are, if the tool was
    /// [listed](Self::list_tools). If it was not and the server insists, the tools are listed and the call is made
    /// again.
    ///
    /// # Errors
    ///
    /// If there is no result. A tool that failed has one: look at its `isError`.
    pub async fn call_tool(
        &self,
        name: &str,
        arguments: &str,
        answerer: &dyn Answerer,
    ) -> Result<Reply, CallError> {
        let params = AskingMethod::ToolsCall.params(name, Some(arguments));
        let call = self.named(AskingMethod::ToolsCall, &params);
        let known = self.inner.annotations().get(name).cloned();
        let Some(annotations) = known else {
            let first = self.inner.call(call.clone(), ParamHeaders::NONE, answerer).await;
            return match first {
                Err(CallError::Peer(error)) if error.code == ErrorCode::HEADER_MISMATCH => {
                    self.list_tools().await?;
                    let annotations = self.inner.annotations().get(name).cloned();
                    match annotations.filter(|annotations| !annotations.is_empty()) {
                        Some(annotations) => self.inner.call(call, &annotations, answerer).await,
                        None => Err(CallError::Peer(error)),
                    }
                }
                other => other,
            };
        };
        self.inner.call(call, &annotations, answerer).await
    }

    /// Gets a prompt; `arguments` is the JSON text of an object of strings.
    ///
    /// # Errors
    ///
    /// If there is no result.
    pub async fn get_prompt(
        &self,
        name: &str,
        arguments: &str,
        answerer: &dyn Answerer,
    ) -> Result<Reply, CallError> {
        let params = AskingMethod::PromptsGet.params(name, Some(arguments));
        self.call(self.named(AskingMethod::PromptsGet, &params), answerer).await
    }

    /// Reads a resource.
    ///
    /// # Errors
    ///
    /// If there is no result.
    pub async fn read_resource(&self, uri: &str, answerer: &dyn Answerer) -> Result<Reply, CallError> {
        let params = AskingMethod::ResourcesRead.params(uri, None);
        self.call(self.named(AskingMethod::ResourcesRead, &params), answerer).await
    }

    fn named<'a>(&self, method: AskingMethod, params: &'a str) -> Call<'a> {
        Call::new(method.name(), params).progress(self.inner.progress.clone())
    }
}

/// A string as JSON.
pub(super) fn quoted(text: &str) -> String {
    // Writing a string cannot fail.
    serde_json::to_string(text).unwrap_or_default()
}

impl Inner {
    async fn call(
        &self,
        call: Call<'_>,
        annotations: &ParamHeaders,
        answerer: &dyn Answerer,
    ) -> Result<Reply, CallError> {
        let mut message = Vec::new();
        let pending = self.core.start(self.next_id(), call, self.clock.now(), &mut message)?;
        let leg = self.leg::<Pending>(pending, message, annotations, 1).await?;
        self.to_the_end(leg, annotations, 1, answerer).await
    }

    /// Carries on a call that waits for answers.
    pub(super) async fn carry_on(
        &self,
        waiting: Exchange<InputRequired>,
        annotations: &ParamHeaders,
        answerer: &dyn Answerer,
    ) -> Result<Reply, CallError> {
        self.to_the_end(Leg::Asked(waiting), annotations, 1, answerer).await
    }

    async fn to_the_end(
        &self,
        mut leg: Leg,
        annotations: &ParamHeaders,
        mut round: u32,
        answerer: &dyn Answerer,
    ) -> Result<Reply, CallError> {
        loop {
            match leg {
                Leg::Complete(exchange) => {
                    return match exchange.result() {
                        Ok(_) => Ok(Reply(exchange)),
                        Err(error) => Err(CallError::Peer(error.clone())),
                    };
                }
                Leg::Refused(refused) => {
                    let exchange = refused.into_outcome();
                    return match exchange.result() {
                        Ok(_) => Ok(Reply(exchange)),
                        Err(error) => Err(CallError::StateRefused(error.clone())),
                    };
                }
                Leg::Asked(asked) => {
                    let asked = self.ask(asked, answerer).await?;
                    let mut message = Vec::new();
                    let retrying = self.proceed(asked, &mut message).await?;
                    round += 1;
                    leg = self.leg::<Retrying>(retrying, message, annotations, round).await?;
                }
            }
        }
    }

    /// Puts the questions of a round to the answerer.
    async fn ask(
        &self,
        mut asked: Exchange<InputRequired>,
        answerer: &dyn Answerer,
    ) -> Result<Exchange<InputRequired>, CallError> {
        let open: Vec<String> = asked.missing().map(String::from).collect();
        let failed = asked.ask_all(answerer, &self.asking).await.err();
        for key in &open {
            if let Some(answer) = asked.ask(key).and_then(Ask::answer) {
                self.tell(Event::Answered { key: Some(key), answer });
            }
        }
        match failed {
            None => Ok(asked),
            Some(failed) => Err(CallError::Unanswered { failed, waiting: self.waiting(asked) }),
        }
    }

    fn tell(&self, event: Event<'_>) {
        if let Some(events) = &self.events {
            events(event);
        }
    }

    fn aside(&self, aside: &Aside<'_>) {
        match aside {
            Aside::Progress(progress) => {
                self.tell(Event::Progress { params: progress.params.unwrap_or(Json::EMPTY_OBJECT) });
            }
            Aside::Notification(notification) => {
                let (method, params) = (&*notification.method, notification.params);
                self.tell(Event::Notification { method, params });
            }
            // Messages that mean nothing to a modern client.
            Aside::Reply(_) | Aside::Request(_) | Aside::Error(_) | Aside::Unreadable(_) | _ => {}
        }
    }

    fn waiting(&self, exchange: Exchange<InputRequired>) -> Box<Waiting> {
        Box::new(Waiting { exchange, server: Arc::clone(&self.server) })
    }

    /// Writes the retry, once its time has come (G-06).
    async fn proceed(
        &self,
        mut asked: Exchange<InputRequired>,
        message: &mut Vec<u8>,
    ) -> Result<Exchange<Retrying>, CallError> {
        let mut skips = 3;
        loop {
            match asked.proceed(self.next_id(), self.clock.now(), message) {
                Ok(retrying) => return Ok(retrying),
                // Of a call that was saved by another process, which had counted further.
                Err(NotSent { given_back, reason: Reason::Id(IdFault::Reused) }) if skips > 0 => {
                    asked = given_back;
                    skips -= 1;
                    self.skip_ids();
                }
                Err(NotSent { given_back, reason: Reason::TooEarly { not_before } }) => {
                    asked = given_back;
                    let wait = self.clock.until(not_before).max(Duration::from_millis(1));
                    self.tell(Event::Waiting(wait));
                    tokio::time::sleep(wait).await;
                }
                Err(NotSent { reason, .. }) => return Err(CallError::NotSent(reason)),
            }
        }
    }

    /// Sends a request, and reads until its reply is there.
    async fn leg<S: Open>(
        &self,
        exchange: Exchange<S>,
        mut message: Vec<u8>,
        annotations: &ParamHeaders,
        round: u32,
    ) -> Result<Leg, CallError> {
        let mut flight = InFlight { exchange: Some(exchange), wire: &self.wire };
        loop {
            let sent = self.clock.now();
            let resend = match self.once(&mut flight, message, annotations, (round, sent)).await? {
                Once::Leg(leg) => return Ok(leg),
                Once::Again(resend) => resend,
            };
            message = Vec::new();
            match resend.send(self.next_id(), self.clock.now(), &mut message) {
                Ok(exchange) => flight.exchange = Some(exchange),
                Err(NotSent { reason, .. }) => return Err(CallError::NotSent(reason)),
            }
        }
    }

    async fn once<S: Open>(
        &self,
        flight: &mut InFlight<'_, S>,
        message: Vec<u8>,
        annotations: &ParamHeaders,
        (round, sent): (u32, Timestamp),
    ) -> Result<Once<S>, CallError> {
        let Some(exchange) = &flight.exchange else { return Err(Stopped::Lost.into()) };
        let (method, id, bytes) = (exchange.method(), exchange.request_id(), message.len());
        self.tell(Event::Sent { round, method, id, bytes });
        let opening = self.wire.open(exchange.request_id(), message, annotations);
        let mut replies = match timeout(self.clock.until(exchange.timeout()), opening).await {
            Ok(Ok(replies)) => replies,
            Ok(Err(error)) => return lost(flight, error),
            Err(_) => return Err(CallError::Timeout),
        };
        loop {
            // While it is here, dropping this future cancels the request.
            let until = flight
                .exchange
                .as_ref()
                .map_or(Duration::ZERO, |exchange| self.clock.until(exchange.timeout()));
            let received = match timeout(until, Replies::next(&mut replies)).await {
                Ok(Ok(received)) => received,
                Ok(Err(error)) => return lost(flight, error),
                Err(_) => return Err(CallError::Timeout),
            };
            let Some(exchange) = flight.exchange.take() else { return Err(Stopped::Lost.into()) };
            let now = self.clock.now();
            let (bytes, after) = (received.len(), now.saturating_since(sent));
            let done = |error: Option<Cow<'_, str>>| self.tell(Event::Done { round, error, bytes, after });
            match exchange.receive(&received, now) {
                Received::Aside(exchange, aside) => {
                    self.aside(&aside);
                    flight.exchange = Some(exchange);
                }
                Received::InputRequired(asked) => {
                    let asks = asked.asks().map(|ask| (Some(ask.key()), ask.request())).collect();
                    let state = asked.state_excerpt();
                    self.tell(Event::Asked { round, asks, state, bytes, after });
                    return Ok(Once::Leg(Leg::Asked(asked)));
                }
                Received::Complete(exchange) => {
                    done(exchange.result().err().map(|error| error.to_string().into()));
                    return Ok(Once::Leg(Leg::Complete(exchange)));
                }
                Received::StateRefused(refused) => {
                    done(Some("the state was refused".into()));
                    return Ok(Once::Leg(Leg::Refused(refused)));
                }
                Received::Resend(resend) => return Ok(Once::Again(resend)),
                Received::Invalid(violation) => {
                    done(Some(violation.to_string().into()));
                    return Err(CallError::Violation(violation));
                }
                Received::Stopped(stopped) => {
                    done(Some(stopped.to_string().into()));
                    return Err(stopped.into());
                }
            }
        }
    }
}

enum Once<S: Open> {
    Leg(Leg),
    /// The request has to go out once more.
    Again(Resend<S>),
}

/// No reply comes: whether the request may go out again is for the core to say.
fn lost<S: Open>(flight: &mut InFlight<'_, S>, error: WireError) -> Result<Once<S>, CallError> {
    let Some(exchange) = flight.exchange.take() else { return Err(error.into()) };
    match error {
        // Why it broke says more than that it may not be sent again.
        WireError::Broken { .. } | WireError::Ended(_) => {
            exchange.lost().map(Once::Again).map_err(|_| error.into())
        }
        WireError::Connect(_)
        | WireError::Http(_)
        | WireError::Header(_)
        | WireError::TooLarge { .. }
        | WireError::Redirect { .. }
        | WireError::Credentials(_) => Err(error.into()),
    }
}

/// A request that is under way: dropping it gives the request up.
struct InFlight<'w, S: Open> {
    exchange: Option<Exchange<S>>,
    wire: &'w Wire,
}

impl<S: Open> Drop for InFlight<'_, S> {
    fn drop(&mut self) {
        if let Some(exchange) = self.exchange.take() {
            let mut message = Vec::new();
            exchange.cancel("", &mut message);
            self.wire.post(&message);
        }
    }
}
