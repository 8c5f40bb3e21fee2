//! Return-style servers: the answer to an ask as it is now, with the protection that handlers have.

use alloc::{boxed::Box, string::String, sync::Arc};

use super::{Exchange, Open};
use crate::{
    journal::{Asked, Verdict},
    jsonrpc::Json,
    tape::{Answers, replay::judge},
    wire::{Action, Answer, AskKind, InputRequest, read_answer},
};

/// What became of an ask.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Given<T> {
    /// Answered: for forms the accepted content, for a url consent, for sampling and roots the result.
    Given(T),
    /// The person said no (R-133).
    Declined,
    /// The person dismissed it (R-133).
    Cancelled,
    /// Not answered yet: ask (again).
    Missing,
    /// Answered with content that does not fit; why, in a sentence for the person. Ask again.
    Invalid(String),
    /// What was answered under this key was another question: ask this one (G-26).
    Changed,
}

/// An answer's text as a journal keeps it.
pub(super) fn recorded_text(answer: &Answer<'_>) -> Arc<str> {
    match answer {
        Answer::Form { action: Action::Accept, content } => alloc::format!("a{}", content.as_str()).into(),
        Answer::Url(Action::Accept) => "a".into(),
        Answer::Form { action: Action::Decline, .. } | Answer::Url(Action::Decline) => "d".into(),
        Answer::Form { action: Action::Cancel, .. } | Answer::Url(Action::Cancel) => "c".into(),
        Answer::Sampling(value) | Answer::Roots(value) => value.as_str().into(),
    }
}

impl<S: Open> Exchange<'_, S> {
    /// The answer to `ask` under `key`, from this request or an earlier round, if it answers this very
    /// question: kind and fingerprint are compared with what was sealed, content with the form as it is now. Once
    /// another question was asked under the key, what was answered before it no longer counts, even if the question
    /// becomes again what it was.
    ///
    /// An answer that came without a state is taken for forms, sampling and roots only (A7). It is not carried on, for nobody
    /// has asked for it: after a round that asks for something else it is [`Missing`](Given::Missing), unless you put it into
    /// your own state.
    ///
    /// ```
    /// # use mrtr_core::server::{Exchange, Given, Open};
    /// # use mrtr_core::wire::InputRequest;
    /// # use mrtr_core::jsonrpc::Json;
    /// # fn f<S: Open>(exchange: &Exchange<'_, S>, ask: &InputRequest<'_>) {
    /// match exchange.answer("date", ask) {
    ///     Given::Given(content) => { /* JSON text of the form's content */ }
    ///     _ => { /* ask, or give up */ }
    /// }
    /// # }
    /// ```
    #[must_use]
    pub fn answer(&self, key: &str, ask: &InputRequest<'_>) -> Given<String> {
        self.answer_to(key, ask, ask.kind() == AskKind::Url)
    }

    /// [`answer`](Self::answer); a `solicited` one is never taken from a request without a state (A7).
    pub(super) fn answer_to(&self, key: &str, ask: &InputRequest<'_>, solicited: bool) -> Given<String> {
        let Ok(fingerprint) = ask.fingerprint() else {
            return Given::Missing;
        };
        let same = |asked: &&Asked| asked.kind == ask.kind() && asked.fingerprint == fingerprint;
        let find = |list: &[(Box<str>, Box<str>)]| {
            let (_, text) = list.iter().find(|(found, _)| &**found == key)?;
            read_answer(ask.kind(), Json::trusted(text)).ok().map(|answer| recorded_text(&answer))
        };
        let mut asked_so = false;
        for (index, round) in self.inner.journal.rounds.iter().enumerate().rev() {
            let Some(asked) = round.asks.iter().find(|asked| &*asked.key == key) else { continue };
            if !same(&asked) {
                // What was said before this other question was asked is not what the person says now.
                return if asked_so { Given::Missing } else { Given::Changed };
            }
            asked_so = true;
            let last = index + 1 == self.inner.journal.rounds.len();
            let fresh = match &self.inner.answers {
                Answers::LastRound(list) if last => find(list),
                Answers::None | Answers::LastRound(_) | Answers::Early(_) => None,
            };
            if let Some(text) = &fresh {
                return given(ask, text);
            }
            if let Verdict::Answer(text) = &asked.verdict {
                return given(ask, text);
            }
        }
        if asked_so {
            return Given::Missing;
        }
        match &self.inner.answers {
            Answers::Early(list) if !solicited => find(list).map_or(Given::Missing, |text| given(ask, &text)),
            Answers::None | Answers::LastRound(_) | Answers::Early(_) => Given::Missing,
        }
    }
}

fn given(ask: &InputRequest<'_>, text: &str) -> Given<String> {
    match (text.strip_prefix('a'), text) {
        (Some(""), _) => Given::Given(String::new()),
        (Some(content), _) => match judge(ask, Json::trusted(content), "") {
            Ok(cleaned) => Given::Given(cleaned),
            Err(reason) => Given::Invalid(reason),
        },
        (None, "d") => Given::Declined,
        (None, "c") => Given::Cancelled,
        (None, other) => Given::Given(other.into()),
    }
}
