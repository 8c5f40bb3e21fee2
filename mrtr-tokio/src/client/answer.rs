//! Who is asked.

use std::{borrow::Cow, future::Future, time::Duration};

use mrtr_core::{
    client::{Aside, Ask},
    jsonrpc::{Json, RequestId},
    wire::{Action, InputRequest},
};

/// One question, as it is put to an [`Answerer`].
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    pub(super) ask: Ask<'a>,
    pub(super) server: Option<&'a str>,
    pub(super) problem: Option<&'a str>,
}

impl<'a> Question<'a> {
    /// The server's key for it.
    #[must_use]
    pub const fn key(&self) -> &'a str {
        self.ask.key()
    }

    /// What is asked.
    #[must_use]
    pub const fn request(&self) -> &'a InputRequest<'static> {
        self.ask.request()
    }

    /// The name that the server gives itself. It may be anything: show it as a claim.
    #[must_use]
    pub const fn server(&self) -> Option<&'a str> {
        self.server
    }

    /// What was done when the same question was put earlier in this call.
    #[must_use]
    pub const fn before(&self) -> Option<Action> {
        self.ask.before()
    }

    /// Why the last answer to it was not taken, if there was one.
    #[must_use]
    pub const fn problem(&self) -> Option<&'a str> {
        self.problem
    }
}

/// An answer. `Debug` shows its kind only.
#[derive(Clone, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums)]
pub enum Answer {
    /// A form was filled in: JSON text of an object.
    Accept(String),
    /// Somebody agreed to open the url.
    AcceptUrl,
    /// Somebody said no.
    Decline,
    /// Somebody dismissed the question.
    Cancel,
    /// The model's reply: JSON text of an object with `role`, `content` and `model`.
    Sampling(String),
    /// The permitted roots: JSON text of an array.
    Roots(String),
    /// A whole answer as it stands on the wire.
    Wire(String),
    /// Nobody could be asked, for this reason. This is no refusal: the call is given up, and nothing is sent
    ///
    Unavailable(String),
}

impl std::fmt::Debug for Answer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Accept(text) => write!(f, "Accept({} bytes)", text.len()),
            Self::AcceptUrl => f.write_str("AcceptUrl"),
            Self::Decline => f.write_str("Decline"),
            Self::Cancel => f.write_str("Cancel"),
            Self::Sampling(text) => write!(f, "Sampling({} bytes)", text.len()),
            Self::Roots(text) => write!(f, "Roots({} bytes)", text.len()),
            Self::Wire(text) => write!(f, "Wire({} bytes)", text.len()),
            Self::Unavailable(reason) => write!(f, "Unavailable({reason:?})"),
        }
    }
}

/// Answers the questions of a server: a person at a terminal, a dialog, a table of prepared answers.
pub trait Answerer: Send {
    /// Whether this question could be answered. All questions of a round are put to this before the first of
    /// them is put to [`answer`](Self::answer): nobody is asked something whose answer will not be sent because
    /// another one is missing.
    ///
    /// # Errors
    ///
    /// Why it could not.
    fn could_answer(&mut self, question: Question<'_>) -> Result<(), String> {
        let _ = question;
        Ok(())
    }

    /// Answers one question. An answer that does not fit is asked for again, with the
    /// [problem](Question::problem), twice.
    fn answer(&mut self, question: Question<'_>) -> impl Future<Output = Answer> + Send;

    /// Hears what happens on the wire. For progress bars and traces.
    fn observe(&mut self, event: Event<'_>) {
        let _ = event;
    }
}

/// Answers nothing: for calls to servers that do not ask.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoAnswers;

impl Answerer for NoAnswers {
    fn could_answer(&mut self, _: Question<'_>) -> Result<(), String> {
        Err(String::from("nobody is there to answer"))
    }

    async fn answer(&mut self, _: Question<'_>) -> Answer {
        Answer::Unavailable(String::from("nobody is there to answer"))
    }
}

/// What happens on the wire.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// A request goes out.
    Sent {
        /// Which leg of the call, from 1.
        round: u32,
        /// Its method.
        method: &'a str,
        /// Its id.
        id: &'a RequestId,
        /// Bytes of the message.
        bytes: usize,
    },
    /// A notification or another message that is no reply.
    Aside(&'a Aside<'a>),
    /// The server asks, or only wants the call again.
    Asked {
        /// Which leg of the call, from 1.
        round: u32,
        /// The questions; none if the server only defers.
        asks: Vec<Ask<'a>>,
        /// How long the state is that goes with them, and how it begins.
        state: Option<(usize, String)>,
        /// Bytes of the message.
        bytes: usize,
        /// Since the request went out.
        after: Duration,
    },
    /// A question was answered.
    Answered {
        /// Which one.
        ask: Ask<'a>,
        /// Its answer on the wire.
        answer: Json<'a>,
    },
    /// The call waits before it goes on, for the server wants it to come again later.
    Waiting(Duration),
    /// The outcome is there.
    Done {
        /// Which leg of the call, from 1.
        round: u32,
        /// Why it failed, or nothing.
        error: Option<Cow<'a, str>>,
        /// Bytes of the message.
        bytes: usize,
        /// Since the request went out.
        after: Duration,
    },
}
