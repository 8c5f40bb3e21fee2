//! Who answers: the command line first, then the person at the terminal, and nobody else.

use std::io::IsTerminal as _;

use mrtr_core::{
    form::{FieldKind, Options, Schema},
    wire::AskKind,
};
use mrtr_tokio::client::{Answer, Answerer, Event, Question};

use crate::{
    Failure,
    answers::{Prepared, quoted},
    args::Answering,
    prompt, show,
    trace::Trace,
};

pub(crate) struct Terminal {
    prepared: Prepared,
    /// Whether somebody is there to be asked.
    person: bool,
    trace: Option<Trace>,
    /// Ctrl-C was pressed at a prompt.
    pub(crate) interrupted: bool,
}

/// Whether there is somebody who sees questions and can type.
pub(crate) fn is_there() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

impl Terminal {
    pub(crate) fn new(answering: &Answering) -> Result<Self, Failure> {
        Ok(Self {
            prepared: Prepared::parse(&answering.answers)?,
            person: is_there(),
            trace: answering.trace.then(|| Trace::new(answering.trace_answers)),
            interrupted: false,
        })
    }

    /// Says which answers were of no use.
    pub(crate) fn finish(&self) {
        for key in self.prepared.unused() {
            show::note(&format!("mrtr: the answer to {key:?} was not used: no question with this key came"));
        }
    }
}

impl Answerer for Terminal {
    fn could_answer(&mut self, question: Question<'_>) -> Result<(), String> {
        match self.prepared.answer(question.key(), question.request()) {
            Some(answer) => answer.map(|_| ()),
            None if self.person => Ok(()),
            None => Err(format!(
                "{}; there is no terminal to ask at: give --answer {}=…",
                wanted(&question),
                show::line(question.key(), 64)
            )),
        }
    }

    async fn answer(&mut self, question: Question<'_>) -> Answer {
        if let Some(problem) = question.problem() {
            show::note(&format!("That does not fit: {problem}"));
        }
        match self.prepared.answer(question.key(), question.request()) {
            Some(Ok(answer)) if question.problem().is_none() => return answer,
            // The same again would not fit again.
            Some(Ok(_)) => return Answer::Unavailable(String::from("the answer given does not fit")),
            Some(Err(problem)) => return Answer::Unavailable(problem),
            None => {}
        }
        let put = prompt::Put::new(&question);
        // Prompts block; the connection's own tasks go on.
        match tokio::task::spawn_blocking(move || put.ask()).await {
            Ok(prompt::Outcome::Answer(answer)) => answer,
            Ok(prompt::Outcome::Interrupted) => {
                self.interrupted = true;
                Answer::Unavailable(String::from("given up"))
            }
            Ok(prompt::Outcome::NotShown(reason)) => Answer::Unavailable(reason),
            Err(_) => Answer::Unavailable(String::from("the prompt failed")),
        }
    }

    fn observe(&mut self, event: Event<'_>) {
        if let Some(trace) = &mut self.trace {
            trace.show(&event);
        }
    }
}

/// What kind of answer a question wants, in a few words.
fn wanted(question: &Question<'_>) -> String {
    let message = question.request().message().map(|message| show::line(&message, 120)).unwrap_or_default();
    match question.request().kind() {
        AskKind::Url => format!("{message} Wanted: accept, decline or cancel, for the opening of a url"),
        AskKind::Sampling => String::from("wanted: a model's reply, a text in quotes"),
        AskKind::Roots => String::from("wanted: roots, a list of file:// urls in quotes"),
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
            let fields =
                if fields.is_empty() { String::from("accept, decline or cancel") } else { fields.join(", ") };
            format!("{message} Wanted: {fields}")
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
