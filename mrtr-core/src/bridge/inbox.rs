//! Questions for hosts that cannot show them: they wait here and are answered out of band (wish W-16).
//!
//! Only kinds of [`Config::inbox`](super::Config::inbox) that the host lacks come here; the upstream is promised host
//! and inbox together. A modern host's call is held for a while and then gets state-only results until there is an
//! answer; a legacy host's is held throughout, whatever its server speaks. Modern to modern is a relay that holds nothing: there the host's own
//! capabilities count alone.

use alloc::{boxed::Box, collections::BTreeMap, string::String, vec::Vec};

use super::{Bridge, HostId, LinkId, Owner, timers::Whom};
use crate::{
    error::RpcError,
    form::{Invalid, Schema},
    jsonrpc::{Json, RequestId},
    seal::Principal,
    time::Timestamp,
    wire::{Action, Answer, AnswerFault, AskKind, read_answer},
};

/// Names an entry, for as long as the process lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(clippy::exhaustive_structs)]
pub struct InboxId(pub u64);

impl core::fmt::Display for InboxId {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.0.fmt(f)
    }
}

/// A question that waits, as those may see it who may answer it.
#[derive(Clone)]
#[non_exhaustive]
pub struct InboxEntry<'a> {
    /// Its name.
    pub id: InboxId,
    /// On whose behalf the call was made.
    pub principal: Principal<'a>,
    /// Which upstream asks.
    pub upstream: &'a str,
    /// The tool, prompt or resource whose call asks.
    pub target: &'a str,
    /// What kind of question it is.
    pub kind: AskKind,
    /// The question: JSON text of `{"method":…,"params":…}`.
    pub question: &'a str,
    /// Since when it waits.
    pub created: Timestamp,
    /// Until when it waits; then it is answered as by nobody.
    pub expires: Timestamp,
}

impl core::fmt::Debug for InboxEntry<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("InboxEntry")
            .field("id", &self.id)
            .field("upstream", &self.upstream)
            .field("kind", &self.kind)
            .finish_non_exhaustive()
    }
}

/// An answer that was taken, for the record.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct InboxAnswer {
    /// The entry.
    pub id: InboxId,
    /// Who gave it, as the embedder has verified it.
    pub by: String,
    /// When.
    pub at: Timestamp,
    /// It was no refusal.
    pub accepted: bool,
}

/// Why an answer was not taken. The question waits on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InboxError {
    /// There is no such question, or not any more.
    #[error("there is no such question, or it was answered, withdrawn or given up")]
    Unknown,
    /// The answer does not fit the kind of question.
    #[error("the answer{0}")]
    Answer(AnswerFault),
    /// The content does not fit the form: whoever gives it hears so, and not the tool that asked.
    #[error("the answer does not fit the form: {0}")]
    Content(Invalid),
    /// Longer than the limit.
    #[error("the answer is over the limit of {limit} bytes (Limits::answer_bytes)")]
    TooLarge {
        /// The bound, in bytes.
        limit: usize,
    },
}

/// Whose question it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Asker {
    Parked(u64),
    Dialogue(u64),
    /// A legacy upstream's own request, in the session that a legacy host has for itself; the host's call, if it is known
    /// which one it belongs to.
    Pair {
        link: LinkId,
        id: RequestId,
        call: Option<(HostId, RequestId)>,
    },
}

pub(super) struct Entry {
    pub(super) owner: Owner,
    pub(super) upstream: usize,
    pub(super) target: Box<str>,
    pub(super) kind: AskKind,
    pub(super) question: Box<str>,
    pub(super) created: Timestamp,
    pub(super) expires: Timestamp,
    pub(super) asker: Asker,
    pub(super) key: Box<str>,
}

impl Entry {
    /// Holds the content of an accepted form against it. A form that is none of the protocol's judges nothing: then the
    /// upstream does.
    fn fits(&self, answer: &Answer<'_>) -> Result<(), Invalid> {
        let Answer::Form { action: Action::Accept, content } = answer else { return Ok(()) };
        let params = Json::trusted(&self.question).get("params");
        let schema = params.and_then(|params| params.get("requestedSchema")).map(Schema::read);
        schema.and_then(Result::ok).map_or(Ok(()), |schema| schema.validate(*content).map(drop))
    }
}

/// All that waits, as a pure machine: nothing here knows of calls.
#[derive(Default)]
pub(super) struct Inbox {
    entries: BTreeMap<u64, Entry>,
    next: u64,
    pub(super) timer: Option<Timestamp>,
}

impl Inbox {
    pub(super) fn add(&mut self, entry: Entry) -> u64 {
        self.next += 1;
        self.entries.insert(self.next, entry);
        self.next
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn remove(&mut self, id: u64) -> Option<Entry> {
        self.entries.remove(&id)
    }

    /// Forgets what a call has asked; `key` alone, if one is given.
    pub(super) fn withdraw(&mut self, asker: &Asker, key: Option<&str>) {
        self.entries.retain(|_, entry| entry.asker != *asker || key.is_some_and(|key| *entry.key != *key));
    }

    /// Forgets what these have asked; whether there was anything.
    pub(super) fn withdraw_of(&mut self, gone: impl Fn(&Asker) -> bool) -> bool {
        let before = self.entries.len();
        self.entries.retain(|_, entry| !gone(&entry.asker));
        self.entries.len() < before
    }

    pub(super) fn count_of(&self, of: impl Fn(&Asker) -> bool) -> usize {
        self.entries.values().filter(|entry| of(&entry.asker)).count()
    }

    pub(super) fn next_expiry(&self) -> Option<Timestamp> {
        self.entries.values().map(|entry| entry.expires).min()
    }

    fn expired(&mut self, now: Timestamp) -> Vec<Entry> {
        let gone: Vec<u64> =
            self.entries.iter().filter(|(_, entry)| entry.expires <= now).map(|(id, _)| *id).collect();
        gone.into_iter().filter_map(|id| self.entries.remove(&id)).collect()
    }
}

impl Bridge {
    /// The questions that wait, oldest first.
    pub fn inbox(&self) -> impl Iterator<Item = InboxEntry<'_>> {
        self.inbox.entries.iter().map(|(id, entry)| InboxEntry {
            id: InboxId(*id),
            principal: entry.owner.principal(),
            upstream: self.config.upstreams.get(entry.upstream).map_or("", |up| &up.name),
            target: &entry.target,
            kind: entry.kind,
            question: &entry.question,
            created: entry.created,
            expires: entry.expires,
        })
    }

    /// Answers a question with a value of `inputResponses`. `by` is who does it, for the record; whether they may is
    /// for the embedder to say.
    ///
    /// # Errors
    ///
    /// It is not there any more, or the answer does not fit.
    pub fn answer_inbox(
        &mut self,
        id: InboxId,
        by: &str,
        answer: Json<'_>,
        now: Timestamp,
    ) -> Result<InboxAnswer, InboxError> {
        let limit = self.config.limits.answer_bytes;
        let entry = self.inbox.entries.get(&id.0).ok_or(InboxError::Unknown)?;
        let kind = entry.kind;
        if answer.as_str().len() > limit {
            return Err(InboxError::TooLarge { limit });
        }
        let read = read_answer(kind, answer).map_err(InboxError::Answer)?;
        entry.fits(&read).map_err(InboxError::Content)?;
        let entry = self.inbox.remove(id.0).ok_or(InboxError::Unknown)?;
        crate::trace::debug!(id = %id, by = %by, kind = %kind, "a question was answered out of band");
        let accepted = answer.get("action").and_then(Json::as_string).is_none_or(|action| action == "accept");
        self.inbox_outcome(entry, Ok(answer), now);
        self.schedule_inbox();
        Ok(InboxAnswer { id, by: by.into(), at: now, accepted })
    }

    /// Declines a question: an elicitation gets `decline`, sampling and roots get an error.
    ///
    /// # Errors
    ///
    /// It is not there any more.
    pub fn decline_inbox(
        &mut self,
        id: InboxId,
        by: &str,
        now: Timestamp,
    ) -> Result<InboxAnswer, InboxError> {
        let entry = self.inbox.remove(id.0).ok_or(InboxError::Unknown)?;
        crate::trace::debug!(id = %id, by = %by, kind = %entry.kind, "a question was declined out of band");
        self.refuse_inbox(entry, r#"{"action":"decline"}"#, now);
        self.schedule_inbox();
        Ok(InboxAnswer { id, by: by.into(), at: now, accepted: false })
    }

    fn refuse_inbox(&mut self, entry: Entry, elicited: &'static str, now: Timestamp) {
        let outcome = match entry.kind {
            AskKind::Form | AskKind::Url => Ok(Json::trusted(elicited)),
            AskKind::Sampling | AskKind::Roots => {
                Err(RpcError::new(crate::ErrorCode::LEGACY_REJECTED, "the question was not answered"))
            }
        };
        self.inbox_outcome(entry, outcome, now);
    }

    fn inbox_outcome(&mut self, entry: Entry, outcome: Result<Json<'_>, RpcError>, now: Timestamp) {
        match entry.asker {
            Asker::Parked(call) => self.parked_inbox(call, &entry.key, outcome, now),
            Asker::Dialogue(call) => self.dialogue_answered(call, &entry.key, entry.kind, outcome, now),
            Asker::Pair { link, id, .. } => self.pair_inbox(link, &id, entry.kind, outcome),
        }
    }

    pub(super) fn schedule_inbox(&mut self) {
        let next = self.inbox.next_expiry();
        self.timers.set(Whom::Inbox, &mut self.inbox.timer, next);
    }

    pub(super) fn inbox_due(&mut self, now: Timestamp) {
        self.inbox.timer = None;
        for entry in self.inbox.expired(now) {
            self.refuse_inbox(entry, r#"{"action":"cancel"}"#, now);
        }
        self.schedule_inbox();
    }
}
