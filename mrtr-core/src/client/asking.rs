//! Puts questions to an [`Answerer`]: those of a round at the same time, each until its answer fits.

use alloc::{
    boxed::Box,
    string::{String, ToString as _},
    vec::Vec,
};
use core::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};

use super::{
    AnswerError, Answerer, Exchange, InputRequired, InputResponse, NotAnswered, Question,
    input_required::Asked,
    response::{self, Answered},
};
use crate::{
    Limits,
    error::{ErrorCode, RpcError},
    form::Elicited,
    jsonrpc::{Json, write},
    wire::{Action, AskKind, InputRequest, Root},
};

/// How the questions of a round are asked.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Asking {
    /// Questions that may be with the answerer at a time; 0 counts as 1. Default 8.
    pub at_a_time: usize,
    /// How often a question is asked whose answer does not fit; 0 counts as 1. Default 3.
    pub attempts: u32,
}

impl Default for Asking {
    fn default() -> Self {
        Self { at_a_time: 8, attempts: 3 }
    }
}

/// Questions of a round that have no answer. The answers to the others are kept in the exchange.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not answered: {}", List(.unanswered))]
#[non_exhaustive]
pub struct RoundFailed {
    /// Which, and why; never empty.
    pub unanswered: Vec<Unanswered>,
}

/// A question that has no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Unanswered {
    /// Its key; empty for one of a legacy server.
    pub key: String,
    /// Its kind.
    pub kind: AskKind,
    /// Why.
    pub why: Why,
}

/// Why a question has no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Why {
    /// The answerer has no part for its kind: another one made the call.
    #[error("there is nobody who answers such questions")]
    NotImplemented,
    /// Nobody answered it.
    #[error(transparent)]
    NotAnswered(#[from] NotAnswered),
    /// The answers did not fit, as often as they were asked for; this is about the last.
    #[error(transparent)]
    Invalid(#[from] AnswerError),
}

impl Unanswered {
    /// The error that a legacy server gets instead of an answer: `-1` if somebody refused to sample, else
    /// `-32603`. Neither is anybody's decline.
    #[must_use]
    pub fn to_error(&self) -> RpcError {
        match (&self.why, self.kind) {
            (Why::NotAnswered(NotAnswered::Refused(_)), AskKind::Sampling) => {
                RpcError::new(ErrorCode::LEGACY_REJECTED, "User rejected sampling request")
            }
            (
                Why::NotImplemented | Why::NotAnswered(_) | Why::Invalid(_),
                AskKind::Form | AskKind::Url | AskKind::Sampling | AskKind::Roots,
            ) => RpcError::internal("The question could not be answered"),
        }
    }
}

impl core::fmt::Display for Unanswered {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{:?} ({})", super::text::excerpt(&self.key), self.why)
    }
}

struct List<'a>(&'a [Unanswered]);

impl core::fmt::Display for List<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        for (at, one) in self.0.iter().enumerate() {
            if at > 0 {
                f.write_str(", ")?;
            }
            write!(f, "{one}")?;
        }
        Ok(())
    }
}

/// The questions of a round with an answerer: done when all are answered, or one cannot be. See
/// [`Exchange::ask_all`].
///
/// Every answer is in the exchange as soon as it fits, so dropping this loses none that was given.
#[must_use = "nobody is asked before this is polled"]
pub struct Round<'a> {
    /// Not asked yet, the first last.
    waiting: Vec<Put<'a>>,
    /// With the answerer.
    asked: Vec<Put<'a>>,
    at_a_time: usize,
    unanswered: Vec<Unanswered>,
}

type Put<'a> = Pin<Box<dyn Future<Output = Result<(), Unanswered>> + Send + 'a>>;

impl Exchange<InputRequired> {
    /// Puts the questions that have no answer yet to `answerer`, [some](Asking::at_a_time) at the same time. What fits
    /// is kept; then the exchange can [proceed](Exchange::proceed).
    ///
    /// If one cannot be answered, no further one is asked: the call cannot go on (R-087, G-17). Those that are with
    /// somebody are waited for, and their answers kept: the exchange can be saved, and asked again another day.
    pub fn ask_all<'a>(&'a mut self, answerer: &'a dyn Answerer, asking: &Asking) -> Round<'a> {
        let server = self.state.meta.as_deref().map(Json::trusted).and_then(server_name);
        let attempts = asking.attempts;
        let mut round = Round {
            waiting: Vec::new(),
            asked: Vec::new(),
            at_a_time: asking.at_a_time.max(1),
            unanswered: Vec::new(),
        };
        let limits = &self.call.shared.config.limits;
        for ask in self.state.asks.iter_mut().rev().filter(|ask| ask.answer.is_none()) {
            let question = ask.question(server.as_deref());
            if let Err(why) = could_answer(answerer, question) {
                round.unanswered.push(Unanswered::of(question, why));
            }
            let server = server.clone();
            round.waiting.push(Box::pin(async move {
                let question = ask.question(server.as_deref());
                let answered = put(answerer, question, limits, attempts).await?;
                ask.answer = Some(answered);
                Ok(())
            }));
        }
        if !round.unanswered.is_empty() {
            // Not a single one is asked.
            round.unanswered.reverse();
            round.waiting.clear();
        }
        round
    }

    /// The name that the server gives itself in this round. It may be anything.
    #[must_use]
    pub fn server_name(&self) -> Option<String> {
        self.meta().and_then(server_name)
    }
}

/// Puts one question of a legacy server to `answerer`, and gives the answer as it stands on the wire: the `result` of
/// the response. `server` is the name that the server gave itself.
///
/// # Errors
///
/// [`Unanswered`], whose [`to_error`](Unanswered::to_error) is to be sent.
pub async fn answer_one(
    answerer: &dyn Answerer,
    request: &InputRequest<'static>,
    server: Option<&str>,
    limits: &Limits,
    asking: &Asking,
) -> Result<String, Unanswered> {
    let question = Question::new(request, server);
    could_answer(answerer, question).map_err(|why| Unanswered::of(question, why))?;
    put(answerer, question, limits, asking.attempts).await.map(|answered| answered.text)
}

fn server_name(meta: Json<'_>) -> Option<String> {
    let name = meta.get(crate::wire::key::SERVER_INFO)?.get("name")?.as_string()?;
    Some(name.into_owned())
}

fn could_answer(answerer: &dyn Answerer, question: Question<'_>) -> Result<(), Why> {
    let part = match question.request.kind() {
        AskKind::Form => answerer.forms().is_some(),
        AskKind::Url => answerer.urls().is_some(),
        AskKind::Sampling => answerer.sampling().is_some(),
        AskKind::Roots => answerer.roots().is_some(),
    };
    if !part {
        return Err(Why::NotImplemented);
    }
    answerer.could_answer(question).map_err(Why::NotAnswered)
}

/// Asks until the answer fits.
async fn put(
    answerer: &dyn Answerer,
    question: Question<'_>,
    limits: &Limits,
    attempts: u32,
) -> Result<Answered, Unanswered> {
    let mut problem: Option<String> = None;
    let mut left = attempts.max(1);
    loop {
        let asked = Question { problem: problem.as_deref(), ..question };
        let outcome = match put_once(answerer, asked).await {
            Ok(given) => given.check(question.request, limits).map_err(Why::Invalid),
            Err(why) => Err(why),
        };
        left -= 1;
        match outcome {
            Ok(answered) => return Ok(answered),
            Err(Why::Invalid(fault)) if left > 0 => problem = Some(fault.to_string()),
            Err(why) => return Err(Unanswered::of(question, why)),
        }
    }
}

/// What an answerer gave, of whatever kind: texts are not checked to be JSON yet.
enum Given {
    Form(Elicited<String>),
    Url(Action),
    Sampling(String),
    Roots(Vec<Root>),
}

async fn put_once(answerer: &dyn Answerer, question: Question<'_>) -> Result<Given, Why> {
    let missing = || Why::NotImplemented;
    Ok(match question.request.kind() {
        AskKind::Form => Given::Form(answerer.forms().ok_or_else(missing)?.elicit(question).await?),
        AskKind::Url => Given::Url(answerer.urls().ok_or_else(missing)?.elicit_url(question).await?),
        AskKind::Sampling => {
            Given::Sampling(answerer.sampling().ok_or_else(missing)?.sample(question).await?)
        }
        AskKind::Roots => Given::Roots(answerer.roots().ok_or_else(missing)?.list_roots(question).await?),
    })
}

impl Given {
    fn check(self, request: &InputRequest<'_>, limits: &Limits) -> Result<Answered, AnswerError> {
        let refusal = |action| match action {
            Action::Decline => InputResponse::decline(),
            Action::Accept | Action::Cancel => InputResponse::cancel(),
        };
        let json = |text| Json::parse(text, limits).map_err(AnswerError::Json);
        match &self {
            Self::Form(Elicited::Accept(content)) => {
                response::check(request, &InputResponse::accept(json(content)?), limits)
            }
            Self::Form(refused @ (Elicited::Decline | Elicited::Cancel)) => {
                response::check(request, &refusal(refused.action()), limits)
            }
            Self::Url(Action::Accept) => response::check(request, &InputResponse::accepted_url(), limits),
            Self::Url(refused @ (Action::Decline | Action::Cancel)) => {
                response::check(request, &refusal(*refused), limits)
            }
            Self::Sampling(result) => {
                response::check(request, &InputResponse::sampling(json(result)?), limits)
            }
            Self::Roots(roots) => {
                let mut list = Vec::from(b"[");
                for (at, root) in roots.iter().enumerate() {
                    if at > 0 {
                        list.push(b',');
                    }
                    list.extend_from_slice(b"{\"uri\":");
                    write::string(&mut list, &root.uri);
                    if let Some(name) = &root.name {
                        list.extend_from_slice(b",\"name\":");
                        write::string(&mut list, name);
                    }
                    list.push(b'}');
                }
                list.push(b']');
                let list = super::text::into_string(list);
                response::check(request, &InputResponse::roots(json(&list)?), limits)
            }
        }
    }
}

impl Unanswered {
    fn of(question: Question<'_>, why: Why) -> Self {
        Self { key: question.key.unwrap_or("").into(), kind: question.request.kind(), why }
    }
}

impl Asked {
    fn question<'a>(&'a self, server: Option<&'a str>) -> Question<'a> {
        Question { key: Some(&self.key), request: &self.request, server, before: self.before, problem: None }
    }
}

impl Future for Round<'_> {
    type Output = Result<(), RoundFailed>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let round = &mut *self;
        loop {
            while round.asked.len() < round.at_a_time {
                let Some(next) = round.waiting.pop() else { break };
                round.asked.push(next);
            }
            let before = round.asked.len();
            let unanswered = &mut round.unanswered;
            // Each that waits has this waker, so a wake looks at all of them; they are few.
            round.asked.retain_mut(|one| match one.as_mut().poll(cx) {
                Poll::Pending => true,
                Poll::Ready(Ok(())) => false,
                Poll::Ready(Err(failed)) => {
                    unanswered.push(failed);
                    false
                }
            });
            if !round.unanswered.is_empty() {
                round.waiting.clear();
            }
            if round.asked.is_empty() && round.waiting.is_empty() {
                return Poll::Ready(match core::mem::take(&mut round.unanswered) {
                    none if none.is_empty() => Ok(()),
                    unanswered => Err(RoundFailed { unanswered }),
                });
            }
            if round.asked.len() == before {
                return Poll::Pending;
            }
        }
    }
}

impl core::fmt::Debug for Round<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Round")
            .field("waiting", &self.waiting.len())
            .field("asked", &self.asked.len())
            .field("unanswered", &self.unanswered)
            .finish_non_exhaustive()
    }
}
