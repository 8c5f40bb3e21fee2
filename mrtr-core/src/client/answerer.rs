//! Who answers: one trait for the asks of both eras.

use alloc::{boxed::Box, string::String, vec::Vec};
use core::{future::Future, pin::Pin};

use crate::{
    form::Elicited,
    wire::{Action, ClientCapabilities, InputRequest, Root},
};

/// What answers a question: a boxed future, so that an [`Answerer`] can be a trait object on any runtime, or on none.
pub type Answering<'a, T> = Pin<Box<dyn Future<Output = Result<T, NotAnswered>> + Send + 'a>>;

/// Answers what servers ask: a terminal, a dialog, a model, a table of prepared answers.
///
/// The same answerer serves the rounds of modern servers ([`Exchange::ask_all`](super::Exchange::ask_all)) and the
/// requests of legacy ones ([`answer_one`](super::answer_one)). What it can do is what it has a part for, and that
/// is what is declared to servers: [`ClientCapabilities::of`].
///
/// ```
/// use mrtr_core::{client::{Answerer, Answering, Elicit, Question}, form::Elicited, wire::ClientCapabilities};
///
/// struct Yes;
///
/// impl Answerer for Yes {
///     fn forms(&self) -> Option<&dyn Elicit> {
///         Some(self)
///     }
/// }
///
/// impl Elicit for Yes {
///     fn elicit<'a>(&'a self, _: Question<'a>) -> Answering<'a, Elicited<String>> {
///         Box::pin(async { Ok(Elicited::Accept(String::from("{}"))) })
///     }
/// }
///
/// assert_eq!(ClientCapabilities::of(&Yes).to_json(), r#"{"elicitation":{"form":{}}}"#);
/// ```
pub trait Answerer: Send + Sync {
    /// Fills in forms (R-100).
    fn forms(&self) -> Option<&dyn Elicit> {
        None
    }

    /// Opens urls (R-100).
    fn urls(&self) -> Option<&dyn ElicitUrl> {
        None
    }

    /// Asks a model (R-101).
    fn sampling(&self) -> Option<&dyn Sample> {
        None
    }

    /// Knows roots (R-105).
    fn roots(&self) -> Option<&dyn ListRoots> {
        None
    }

    /// Whether this question could be answered now. All questions of a round are put to this before the first of them
    /// is asked: nobody is asked something whose answer will not be sent because another one cannot be answered.
    ///
    /// # Errors
    ///
    /// Why it could not.
    fn could_answer(&self, question: Question<'_>) -> Result<(), NotAnswered> {
        let _ = question;
        Ok(())
    }
}

/// Fills in forms.
pub trait Elicit: Send + Sync {
    /// Shows a form, with the name of who asks (R-122), and gives what somebody did with it: for an accept, the JSON
    /// text of an object. It is validated before it is sent; one that does not fit is asked for again, with the
    /// [problem](Question::problem) (R-098).
    ///
    /// A form that cannot be shown as it is (R-123) is dismissed, [`Elicited::Cancel`] (G-16); if nobody is there at
    /// all, the outcome is an error.
    fn elicit<'a>(&'a self, question: Question<'a>) -> Answering<'a, Elicited<String>>;
}

/// Opens urls.
pub trait ElicitUrl: Send + Sync {
    /// Shows a url in full and who asks for it to be opened, and opens it if, and only if, somebody says so (R-141).
    /// [`Action::Accept`] says that they did, not that they are done (R-137). One that was accepted
    /// [before](Question::before) is not opened again (G-32).
    fn elicit_url<'a>(&'a self, question: Question<'a>) -> Answering<'a, Action>;
}

/// Asks a model.
pub trait Sample: Send + Sync {
    /// Gives the model's reply: JSON text of an object with `role`, `content` and `model` (R-150). A person should see
    /// what is asked and what comes of it (R-097); if they refuse, that is [`NotAnswered::Refused`].
    fn sample<'a>(&'a self, question: Question<'a>) -> Answering<'a, String>;

    /// Whether `tools` and `toolChoice` are understood (R-102). Default: no.
    fn tools(&self) -> bool {
        false
    }

    /// Whether `includeContext` is understood (R-104). Default: no.
    fn context(&self) -> bool {
        false
    }
}

/// Knows roots.
pub trait ListRoots: Send + Sync {
    /// Gives the folders that the server may see (R-155).
    fn list_roots<'a>(&'a self, question: Question<'a>) -> Answering<'a, Vec<Root>>;
}

/// One question, as it is put to an [`Answerer`].
///
/// `Debug` shows key, kind and sizes.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    pub(super) key: Option<&'a str>,
    pub(super) request: &'a InputRequest<'static>,
    pub(super) server: Option<&'a str>,
    pub(super) before: Option<Action>,
    pub(super) problem: Option<&'a str>,
}

impl<'a> Question<'a> {
    /// A question of a legacy server, which has no key.
    #[must_use]
    pub const fn new(request: &'a InputRequest<'static>, server: Option<&'a str>) -> Self {
        Self { key: None, request, server, before: None, problem: None }
    }

    /// The server's key for it; none in the legacy eras.
    #[must_use]
    pub const fn key(&self) -> Option<&'a str> {
        self.key
    }

    /// What is asked.
    #[must_use]
    pub const fn request(&self) -> &'a InputRequest<'static> {
        self.request
    }

    /// The name that the server gives itself. It may be anything: show it as a claim (R-122).
    #[must_use]
    pub const fn server(&self) -> Option<&'a str> {
        self.server
    }

    /// What was done when the same question was put earlier in this call.
    #[must_use]
    pub const fn before(&self) -> Option<Action> {
        self.before
    }

    /// Why the last answer to it was not taken, if there was one.
    #[must_use]
    pub const fn problem(&self) -> Option<&'a str> {
        self.problem
    }
}

/// Why a question has no answer. Neither is a decline: nothing is sent for it to a modern server (R-094, W-15), an
/// error to a legacy one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotAnswered {
    /// Nobody could be asked, for this reason. Put no content of questions into it.
    #[error("nobody could be asked: {0}")]
    Unavailable(String),
    /// Somebody refuses to have the model asked or the roots shown. For forms and urls a refusal is an answer.
    #[error("refused: {0}")]
    Refused(String),
}

impl ClientCapabilities {
    /// What an answerer can do, as it is declared to servers: each mode by itself (R-100…R-105).
    #[must_use]
    pub fn of(answerer: &dyn Answerer) -> Self {
        let (form, url) = (answerer.forms().is_some(), answerer.urls().is_some());
        let sampling = answerer.sampling();
        Self {
            elicitation: form || url,
            form,
            url,
            sampling: sampling.is_some(),
            sampling_tools: sampling.is_some_and(Sample::tools),
            sampling_context: sampling.is_some_and(Sample::context),
            roots: answerer.roots().is_some(),
        }
    }
}

/// Answers nothing and declares nothing.
#[derive(Clone, Copy, Debug, Default)]
#[allow(clippy::exhaustive_structs)]
pub struct NoAnswers;

impl Answerer for NoAnswers {}
