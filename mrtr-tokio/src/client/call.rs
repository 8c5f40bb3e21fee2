//! One call, from its first request to its outcome.

use std::{fmt, future::Future, pin::Pin, sync::Arc, task::Poll};

use mrtr_core::{
    ErrorCode, RpcError,
    client::{
        Answerer, Ask, Call, Exchange, InputRequired, NotAnswered, Reason, StartError, Stopped, Unanswered,
        Violation, Why, answer_one,
        connection::{self, CallId, Failure, Outcome},
    },
    jsonrpc::Json,
    legacy::client::{AskId, Closed},
    wire::{AskingMethod, Era},
};
use tokio::sync::mpsc;

use super::{
    Client, Event, Inner, Waiting, WireError,
    machine::{Machine, News, Receipt},
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
    /// Too many calls are under way.
    #[error("more than {limit} calls at a time (ConnectionConfig::calls)")]
    TooMany {
        /// The bound, in calls.
        limit: usize,
    },
    /// No message came back.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// No session with a server of a legacy era.
    #[error("no session: {0}")]
    Session(Closed),
    /// Server and client have no version in common.
    #[error("server and client have no version of the protocol in common")]
    NoCommonVersion,
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
    /// A legacy server asks too often in one call.
    #[error("the server asks more than {limit} times in one call (ConnectionConfig::asks_per_call)")]
    TooManyAsks {
        /// The bound, in asks.
        limit: u32,
    },
    /// The retry was not sent.
    #[error(transparent)]
    NotSent(Reason),
    /// Questions that have no answer. Nobody's refusal was sent for them.
    #[error("not answered: {}", listed(unanswered))]
    Unanswered {
        /// Which, and why.
        unanswered: Vec<Unanswered>,
        /// The call, as it waits for them, with what else was answered: to be [saved](Waiting::save), or
        /// [taken up](Client::resume) when somebody is there. None with a legacy server, which does not wait: its call
        /// was cancelled.
        waiting: Option<Box<Waiting>>,
    },
    /// The call was made by a client of another server: its state goes there and nowhere else.
    #[error("the call belongs to another server")]
    OtherServer,
    /// The call waits for a modern server, and this one is not, or not any more.
    #[error("the server is of an era that cannot go on with this call")]
    OtherEra,
}

fn listed(all: &[Unanswered]) -> String {
    let one = |unanswered: &Unanswered| match &*unanswered.key {
        "" => format!("a question ({}: {})", unanswered.kind, unanswered.why),
        _ => unanswered.to_string(),
    };
    all.iter().map(one).collect::<Vec<_>>().join(", ")
}

impl CallError {
    /// The call, if it only waits for answers.
    #[must_use]
    pub fn into_waiting(self) -> Option<Waiting> {
        match self {
            Self::Unanswered { waiting, .. } => waiting.map(|waiting| *waiting),
            Self::Peer(_)
            | Self::StateRefused(_)
            | Self::Start(_)
            | Self::TooMany { .. }
            | Self::Wire(_)
            | Self::Session(_)
            | Self::NoCommonVersion
            | Self::Timeout
            | Self::Violation(_)
            | Self::Stopped(_)
            | Self::TooManyAsks { .. }
            | Self::NotSent(_)
            | Self::OtherServer
            | Self::OtherEra => None,
        }
    }

    /// `fault`: what happened on the way, if anything did.
    fn of(failure: Failure, fault: Option<WireError>) -> Self {
        let lost = |fault: Option<WireError>| Self::Wire(fault.unwrap_or(WireError::ENDED));
        match failure {
            Failure::Peer(error) => Self::Peer(error),
            Failure::StateRefused(refused) => match refused.into_outcome().result() {
                Err(error) => Self::StateRefused(error.clone()),
                Ok(_) => lost(None),
            },
            Failure::Violation(violation) => Self::Violation(violation),
            Failure::Stopped(stopped) => Self::Stopped(stopped),
            Failure::Overlong { limit } => Self::Wire(WireError::TooLarge { limit }),
            Failure::Timeout => Self::Timeout,
            Failure::Lost | Failure::Closed => lost(fault),
            Failure::Http(error) => Self::Wire(error.into()),
            Failure::Session(closed) => fault.map_or(Self::Session(closed), Self::Wire),
            Failure::NoCommonVersion => Self::NoCommonVersion,
            Failure::OtherEra => Self::OtherEra,
            Failure::TooManyAsks { limit } => Self::TooManyAsks { limit },
            Failure::Start(error) => Self::Start(error),
            Failure::NotSent(reason) => Self::NotSent(reason),
            Failure::Unaccepted | _ => lost(fault),
        }
    }
}

impl From<connection::CallError> for CallError {
    fn from(error: connection::CallError) -> Self {
        match error {
            connection::CallError::Start(error) => Self::Start(error),
            connection::CallError::TooMany { limit } => Self::TooMany { limit },
            connection::CallError::Closed | _ => Self::Wire(WireError::ENDED),
        }
    }
}

/// The result of a call. `Debug` shows its size.
pub struct Reply(Outcome);

impl Reply {
    /// The result, an object unless a legacy server sends something else.
    #[must_use]
    pub fn result(&self) -> Json<'_> {
        // Made only from outcomes that have one.
        self.0.json().unwrap_or(Json::NULL)
    }

    /// How many request/result legs it took, or with a legacy server its questions and one: 1 if nothing was asked.
    #[must_use]
    pub const fn rounds(&self) -> u32 {
        self.0.rounds
    }

    /// Whether the result may be kept for as long as its hints say: not if it depends on answers.
    #[must_use]
    pub const fn may_be_kept(&self) -> bool {
        self.0.may_be_kept()
    }
}

impl fmt::Debug for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
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
        self.inner.run(|connection, now| connection.call(call.clone(), now), answerer).await
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
        let known = self.inner.machine.annotations().get(name).cloned();
        match self.call(call.clone(), answerer).await {
            Err(CallError::Peer(error)) if error.code == ErrorCode::HEADER_MISMATCH => {
                self.list_tools().await?;
                let listed = self.inner.machine.annotations().get(name).cloned();
                // Otherwise the same would be sent again.
                if listed.as_ref().is_none_or(|listed| listed.is_empty()) || listed == known {
                    return Err(CallError::Peer(error));
                }
                self.call(call, answerer).await
            }
            other => other,
        }
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

    /// The server's era, once a call has found it out. For [`ConnectionConfig::era`](connection::ConnectionConfig::era)
    /// of the next client of the same server.
    #[must_use]
    pub fn era(&self) -> Option<Era> {
        self.inner.machine.look(connection::Connection::era)
    }
}

/// A string as JSON.
pub(super) fn quoted(text: &str) -> String {
    // Writing a string cannot fail.
    serde_json::to_string(text).unwrap_or_default()
}

/// A call that is in the books of the connection: dropping it gives the call up.
struct Open<'m> {
    machine: &'m Machine,
    call: CallId,
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.machine.cancel(self.call);
    }
}

/// A question of a legacy server that somebody is answering.
struct Asking<'a> {
    ask: AskId,
    answer: Pin<Box<dyn Future<Output = Result<String, Unanswered>> + Send + 'a>>,
}

enum Next {
    News(News),
    Answered(AskId, Result<String, Unanswered>),
}

impl Inner {
    /// Follows a call to its end.
    pub(super) async fn run(
        &self,
        begin: impl FnMut(
            &mut connection::Connection,
            mrtr_core::Timestamp,
        ) -> Result<CallId, connection::CallError>,
        answerer: &dyn Answerer,
    ) -> Result<Reply, CallError> {
        self.start();
        let machine = &*self.machine;
        let (call, mut news) = machine.begin(begin)?;
        let _open = Open { machine, call };
        let mut asking: Vec<Asking<'_>> = Vec::new();
        loop {
            match self.next(&mut news, &mut asking).await? {
                Next::News(News::Asked(exchange, receipt)) => {
                    self.asked(&exchange, receipt);
                    let exchange = self.ask(exchange, answerer).await?;
                    self.proceed(call, exchange)?;
                }
                Next::News(News::Deferred { until }) => {
                    machine.tell(Event::Waiting(machine.clock.until(until)));
                }
                Next::News(News::Ask { ask, request, receipt }) => {
                    let Receipt { round, bytes, after } = receipt;
                    let asks = vec![(None, &request)];
                    machine.tell(Event::Asked { round, asks, state: None, bytes, after });
                    let server = machine.look(connection::Connection::server_name);
                    let answer = Box::pin(async move {
                        answer_one(answerer, &request, server.as_deref(), &machine.limits, &self.asking).await
                    });
                    asking.push(Asking { ask, answer });
                }
                Next::News(News::Withdrawn(ask)) => asking.retain(|asking| asking.ask != ask),
                Next::Answered(ask, answer) => self.answered(ask, answer)?,
                Next::News(News::Done { outcome, fault, receipt }) => {
                    return self.done(outcome, fault, receipt);
                }
            }
        }
    }

    /// The next thing that happens: to the call, or because somebody has answered.
    async fn next(
        &self,
        news: &mut mpsc::UnboundedReceiver<News>,
        asking: &mut Vec<Asking<'_>>,
    ) -> Result<Next, CallError> {
        std::future::poll_fn(|cx| {
            if let Poll::Ready(news) = news.poll_recv(cx) {
                // It is never without an end that is told.
                return Poll::Ready(news.map(Next::News).ok_or(CallError::Wire(WireError::ENDED)));
            }
            for at in 0..asking.len().min(self.asking.at_a_time.max(1)) {
                let Some(one) = asking.get_mut(at) else { break };
                if let Poll::Ready(answer) = one.answer.as_mut().poll(cx) {
                    let ask = one.ask;
                    drop(asking.remove(at));
                    return Poll::Ready(Ok(Next::Answered(ask, answer)));
                }
            }
            Poll::Pending
        })
        .await
    }

    fn asked(&self, exchange: &Exchange<InputRequired>, Receipt { round, bytes, after }: Receipt) {
        let asks = exchange.asks().map(|ask| (Some(ask.key()), ask.request())).collect();
        let state = exchange.state_excerpt();
        self.machine.tell(Event::Asked { round, asks, state, bytes, after });
    }

    /// Puts the questions of a round to the answerer.
    pub(super) async fn ask(
        &self,
        mut asked: Exchange<InputRequired>,
        answerer: &dyn Answerer,
    ) -> Result<Exchange<InputRequired>, CallError> {
        let open: Vec<String> = asked.missing().map(String::from).collect();
        let failed = asked.ask_all(answerer, &self.asking).await.err();
        for key in &open {
            if let Some(answer) = asked.ask(key).and_then(Ask::answer) {
                self.machine.tell(Event::Answered { key: Some(key), answer });
            }
        }
        match failed {
            None => Ok(asked),
            Some(failed) => {
                let waiting = Waiting { exchange: asked, server: Arc::clone(&self.server) };
                let waiting = Some(Box::new(waiting));
                Err(CallError::Unanswered { unanswered: failed.unanswered, waiting })
            }
        }
    }

    fn proceed(&self, call: CallId, exchange: Exchange<InputRequired>) -> Result<(), CallError> {
        let proceeded = self.machine.act(|connection, now| connection.proceed(call, exchange, now));
        proceeded.map_err(|unsent| CallError::NotSent(unsent.reason))
    }

    /// Somebody has answered a legacy server, or nobody could.
    fn answered(&self, ask: AskId, answer: Result<String, Unanswered>) -> Result<(), CallError> {
        let machine = &*self.machine;
        let text = match answer {
            Ok(text) => text,
            Err(unanswered) => {
                let error = unanswered.to_error();
                // The server may have withdrawn it in between.
                let _ = machine.act(|connection, now| connection.refuse(ask, &error, now));
                return match unanswered.why {
                    // Somebody was asked, and the server knows what to make of it.
                    Why::NotAnswered(NotAnswered::Refused(_)) => Ok(()),
                    Why::NotImplemented | Why::NotAnswered(_) | Why::Invalid(_) | _ => {
                        Err(CallError::Unanswered { unanswered: vec![unanswered], waiting: None })
                    }
                };
            }
        };
        let Ok(json) = Json::parse(&text, &machine.limits) else {
            return Err(CallError::Wire(WireError::TooLarge { limit: machine.limits.message_bytes }));
        };
        machine.tell(Event::Answered { key: None, answer: json });
        let _ = machine.act(|connection, now| connection.answer(ask, json, now));
        Ok(())
    }

    fn done(
        &self,
        outcome: Outcome,
        fault: Option<WireError>,
        Receipt { round, bytes, after }: Receipt,
    ) -> Result<Reply, CallError> {
        let done = if outcome.result.is_ok() {
            Ok(Reply(outcome))
        } else {
            let failure = outcome.result.err().unwrap_or(Failure::Lost);
            Err(CallError::of(failure, fault))
        };
        let error = done.as_ref().err().map(|error| error.to_string().into());
        self.machine.tell(Event::Done { round, error, bytes, after });
        done
    }
}
