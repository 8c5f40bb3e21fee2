//! Who answers: the command line first, then the person at the terminal, and nobody else.

use std::{
    io::IsTerminal as _,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
};

use mrtr_core::{
    client::{Answerer, Answering, Elicit, ElicitUrl, ListRoots, NotAnswered, Question, Sample},
    form::{Elicited, FieldKind, Options, Schema},
    wire::{Action, AskKind, Root},
};
use tokio::sync::{Mutex as AsyncMutex, Notify};

use crate::{
    Failure,
    answers::{Answer, Prepared, quoted},
    args, prompt, show,
};

pub(crate) struct Terminal {
    prepared: Mutex<Prepared>,
    /// Whether somebody is there to be asked.
    person: bool,
    /// One question at a time.
    turn: AsyncMutex<()>,
    /// Questions without keys so far.
    nameless: AtomicU32,
    interrupted: AtomicBool,
    interrupt: Notify,
}

/// Whether there is somebody who sees questions and can type.
pub(crate) fn is_there() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

impl Terminal {
    pub(crate) fn new(answering: &args::Answering) -> Result<Self, Failure> {
        Ok(Self {
            prepared: Mutex::new(Prepared::new(&answering.answers, answering.answers_file.as_deref())?),
            person: is_there() && !answering.no_prompt,
            turn: AsyncMutex::new(()),
            nameless: AtomicU32::new(0),
            interrupted: AtomicBool::new(false),
            interrupt: Notify::new(),
        })
    }

    /// Whether somebody is there to be asked.
    pub(crate) const fn has_person(&self) -> bool {
        self.person
    }

    /// Ready when Ctrl-C was pressed at a prompt.
    pub(crate) async fn interrupted(&self) {
        self.interrupt.notified().await;
    }

    pub(crate) fn was_interrupted(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }

    /// Says which answers were of no use.
    pub(crate) fn finish(&self) {
        for key in self.prepared().unused() {
            show::note(&format!("mrtr: the answer to {key:?} was not used: no question with this key came"));
        }
    }

    fn prepared(&self) -> MutexGuard<'_, Prepared> {
        self.prepared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The answer given in advance.
    fn given(&self, question: &Question<'_>, key: &str) -> Option<Result<Answer, String>> {
        let request = question.request();
        let mut prepared = self.prepared();
        let by_key = prepared.answer(key, request);
        // Questions of the older revisions have no keys.
        by_key.or_else(|| match question.key() {
            Some(_) => None,
            None => prepared.answer(&only_field(question)?, request),
        })
    }

    async fn ask(&self, question: Question<'_>) -> Result<Answer, NotAnswered> {
        let key = match question.key() {
            Some(key) => String::from(key),
            // Asked again because the answer did not fit, it is still the same question.
            None if question.problem().is_some() => self.nameless.load(Ordering::Relaxed).to_string(),
            None => (self.nameless.fetch_add(1, Ordering::Relaxed) + 1).to_string(),
        };
        let unavailable = |reason: String| Err(NotAnswered::Unavailable(reason));
        match (self.given(&question, &key), question.problem()) {
            (Some(Ok(answer)), None) => return Ok(answer),
            // The same again would not fit again.
            (Some(Ok(_)), Some(problem)) => {
                return unavailable(misfitting(
                    &format!("the answer given does not fit: {problem}"),
                    &question,
                ));
            }
            (Some(Err(problem)), _) => return unavailable(misfitting(&problem, &question)),
            (None, _) if !self.person => return unavailable(no_terminal(&question, &key)),
            (None, _) => {}
        }
        let _turn = self.turn.lock().await;
        if self.was_interrupted() {
            return unavailable(String::from("given up"));
        }
        if let Some(problem) = question.problem() {
            show::note(&format!("That does not fit: {problem}"));
        }
        let put = prompt::Put::new(&question);
        // Prompts block; the connection's own tasks go on.
        match tokio::task::spawn_blocking(move || put.ask()).await {
            Ok(prompt::Outcome::Answer(answer)) => Ok(answer),
            Ok(prompt::Outcome::NotShown(reason)) => unavailable(reason),
            Ok(prompt::Outcome::Interrupted) => {
                self.interrupted.store(true, Ordering::Relaxed);
                self.interrupt.notify_one();
                match question.key() {
                    Some(_) => unavailable(String::from("given up")),
                    // A server that holds the call would take it for an answer. It is cancelled instead.
                    None => std::future::pending().await,
                }
            }
            Err(_) => unavailable(String::from("the prompt failed")),
        }
    }
}

impl Answerer for Terminal {
    fn forms(&self) -> Option<&dyn Elicit> {
        Some(self)
    }

    fn urls(&self) -> Option<&dyn ElicitUrl> {
        Some(self)
    }

    fn sampling(&self) -> Option<&dyn Sample> {
        Some(self)
    }

    fn roots(&self) -> Option<&dyn ListRoots> {
        Some(self)
    }

    fn could_answer(&self, question: Question<'_>) -> Result<(), NotAnswered> {
        let Some(key) = question.key() else { return Ok(()) };
        match self.given(&question, key) {
            Some(Ok(_)) => Ok(()),
            Some(Err(problem)) => Err(NotAnswered::Unavailable(misfitting(&problem, &question))),
            None if self.person => Ok(()),
            None => Err(NotAnswered::Unavailable(no_terminal(&question, key))),
        }
    }
}

/// An answer of another kind than the question's. Nothing here makes one.
fn misfit<T>() -> Result<T, NotAnswered> {
    Err(NotAnswered::Unavailable(String::from("the answer is of another kind")))
}

impl Elicit for Terminal {
    fn elicit<'a>(&'a self, question: Question<'a>) -> Answering<'a, Elicited<String>> {
        Box::pin(async move {
            match self.ask(question).await? {
                Answer::Accept(content) => Ok(Elicited::Accept(content)),
                Answer::Decline => Ok(Elicited::Decline),
                Answer::Cancel => Ok(Elicited::Cancel),
                Answer::AcceptUrl | Answer::Sampling(_) | Answer::Roots(_) => misfit(),
            }
        })
    }
}

impl ElicitUrl for Terminal {
    fn elicit_url<'a>(&'a self, question: Question<'a>) -> Answering<'a, Action> {
        Box::pin(async move {
            match self.ask(question).await? {
                Answer::AcceptUrl => Ok(Action::Accept),
                Answer::Decline => Ok(Action::Decline),
                Answer::Cancel => Ok(Action::Cancel),
                Answer::Accept(_) | Answer::Sampling(_) | Answer::Roots(_) => misfit(),
            }
        })
    }
}

impl Sample for Terminal {
    fn sample<'a>(&'a self, question: Question<'a>) -> Answering<'a, String> {
        Box::pin(async move {
            match self.ask(question).await? {
                Answer::Sampling(reply) => Ok(reply),
                Answer::Accept(_)
                | Answer::AcceptUrl
                | Answer::Decline
                | Answer::Cancel
                | Answer::Roots(_) => misfit(),
            }
        })
    }
}

impl ListRoots for Terminal {
    fn list_roots<'a>(&'a self, question: Question<'a>) -> Answering<'a, Vec<Root>> {
        Box::pin(async move {
            match self.ask(question).await? {
                Answer::Roots(roots) => Ok(roots),
                Answer::Accept(_)
                | Answer::AcceptUrl
                | Answer::Decline
                | Answer::Cancel
                | Answer::Sampling(_) => misfit(),
            }
        })
    }
}

/// The name of a form's only field.
fn only_field(question: &Question<'_>) -> Option<String> {
    let schema = Schema::read(question.request().requested_schema()?).ok()?;
    match schema.fields() {
        [field] => Some(field.name().into()),
        _ => None,
    }
}

fn no_terminal(question: &Question<'_>, key: &str) -> String {
    let wanted = wanted(question);
    let wanted = match question.request().message() {
        Some(message) => format!("{} Wanted: {wanted}", show::line(&message, 120)),
        None => format!("wanted: {wanted}"),
    };
    format!("{wanted}; there is no terminal to ask at: give --answer {}=…", show::line(key, 64))
}

/// An answer was given, and is none.
fn misfitting(problem: &str, question: &Question<'_>) -> String {
    format!("{problem}; wanted: {}", wanted(question))
}

/// What kind of answer a question wants, in a few words.
fn wanted(question: &Question<'_>) -> String {
    match question.request().kind() {
        AskKind::Url => String::from("accept, decline or cancel, for the opening of a url"),
        AskKind::Sampling => String::from("a model's reply, a text in quotes"),
        AskKind::Roots => String::from("roots, a list of file:// urls in quotes"),
        AskKind::Form => {
            let schema = question.request().requested_schema().and_then(|schema| Schema::read(schema).ok());
            let fields: Vec<String> = schema
                .as_ref()
                .map(|schema| schema.fields())
                .unwrap_or_default()
                .iter()
                .map(|field| {
                    let kind = match field.kind() {
                        FieldKind::String(_) => String::from("text in quotes"),
                        FieldKind::Number(rules) if rules.whole => String::from("integer"),
                        FieldKind::Number(_) => String::from("number"),
                        FieldKind::Boolean(_) => String::from("true or false"),
                        FieldKind::Select(rules) => format!("one of {}", choices(&rules.options)),
                        FieldKind::MultiSelect(rules) => format!("list of {}", choices(&rules.options)),
                    };
                    let optional = if field.is_required() { "" } else { ", optional" };
                    format!("{} ({kind}{optional})", show::line(field.name(), 64))
                })
                .collect();
            if fields.is_empty() { String::from("accept, decline or cancel") } else { fields.join(", ") }
        }
    }
}

/// The first choices, as they are written in an answer.
fn choices(options: &Options) -> String {
    const SHOWN: usize = 20;
    let all = options.choices();
    let mut shown: Vec<String> =
        all.iter().take(SHOWN).map(|choice| quoted(&show::line(&choice.value, 64))).collect();
    if all.len() > SHOWN {
        shown.push(format!("{} more", all.len() - SHOWN));
    }
    shown.join(", ")
}
