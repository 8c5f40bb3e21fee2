//! One ask of a run, from its registration to its answer (A1).

use alloc::{boxed::Box, string::String, sync::Arc, vec::Vec};

use super::{Fault, Tape, hold::Errand, names::Counted};
use crate::{
    digest::Fingerprint,
    error::ErrorCode,
    journal::{Asked, Verdict},
    jsonrpc::Json,
    wire::{AskKind, InputRequest, Requirement},
};

/// Names an ask of this run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub(crate) u32);

/// What a handler asks.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct AskSpec {
    /// The author's key (A1): `[A-Za-z0-9_.-]{1,64}`.
    pub key: String,
    /// The question; `None` for a checkpoint (A10).
    pub request: Option<InputRequest<'static>>,
    /// Undeclared by the client: go on without (true), or `-32021` (false). G-13.
    pub optional: bool,
    /// Never taken from a request without a state (A7).
    pub solicited: bool,
}

impl AskSpec {
    /// A required ask that may be answered without a state, as far as its kind allows it: a url never may (A7).
    #[must_use]
    pub fn new(key: impl Into<String>, request: InputRequest<'static>) -> Self {
        let solicited = never_early(&request);
        Self { key: key.into(), request: Some(request), optional: false, solicited }
    }

    /// A checkpoint: a round without a question (A10).
    #[must_use]
    pub fn checkpoint() -> Self {
        Self { key: String::new(), request: None, optional: false, solicited: true }
    }
}

/// Whether an answer without a state is never taken, whoever asks (A7).
pub(crate) fn never_early(request: &InputRequest<'_>) -> bool {
    request.kind() == AskKind::Url
}

/// What an ask came to.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Resolution {
    /// The recorded answer: for forms and urls `a`, `d` or `c` and, after `a` of a form, the content; for
    /// sampling and roots the JSON; `k` and JSON for what [`keep`](Tape::keep) made of it.
    Answer(Arc<str>),
    /// A checkpoint was passed.
    Passed,
    /// Optional, and the client cannot answer it.
    Unavailable,
    /// The content did not fit three times; the last reason.
    Invalid(Box<str>),
    /// A legacy client answered with an error of its own.
    Refused {
        /// Its code.
        code: ErrorCode,
        /// Its message.
        message: Box<str>,
    },
    /// The attempt is over.
    Ended,
}

impl core::fmt::Debug for Resolution {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::Answer(_) => "Answer(..)",
            Self::Passed => "Passed",
            Self::Unavailable => "Unavailable",
            Self::Invalid(_) => "Invalid(..)",
            Self::Refused { .. } => "Refused(..)",
            Self::Ended => "Ended",
        })
    }
}

/// The asks of a round that goes out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Outgoing {
    /// In the order of registration; empty for a state-only round.
    pub asks: Vec<OutgoingAsk>,
}

/// One ask that goes out.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OutgoingAsk {
    /// Its key on the wire.
    pub key: Arc<str>,
    /// The question.
    pub request: InputRequest<'static>,
    /// Why the last answer to it did not fit, if it was asked before.
    pub invalid: Option<Box<str>>,
}

impl OutgoingAsk {
    /// About how many bytes it takes in a message.
    pub(crate) fn size(&self) -> usize {
        let params = self.request.params().map_or(0, |params| params.as_str().len());
        64 + self.key.len() + params + self.invalid.as_deref().map_or(0, str::len)
    }
}

#[derive(Debug)]
pub(super) struct Slot {
    /// What the journal knows it by; `None` for a checkpoint.
    pub(super) asked: Option<Asked>,
    pub(super) request: Option<InputRequest<'static>>,
    pub(super) optional: bool,
    pub(super) solicited: bool,
    /// Waited for in this run: only then does it block (A2).
    pub(super) polled: bool,
    pub(super) resolution: Option<Resolution>,
    /// The handler no longer wants it: as if it were not there.
    withdrawn: bool,
    /// Its resolution has been handed to the handler.
    pub(super) taken: bool,
    /// Consent to its url is not its answer yet (A10).
    pub(super) waits: bool,
    pub(super) errand: Errand,
    /// The segment it was registered in.
    pub(super) segment: usize,
    /// Round whose release resolved it.
    pub(super) resolved_by: Option<usize>,
}

impl Slot {
    pub(super) fn is_open(&self) -> bool {
        self.resolution.is_none() && !self.withdrawn
    }

    pub(super) fn blocks(&self) -> bool {
        self.polled && self.is_open()
    }

    /// Resolves with `Ended` if it is open; whether it was.
    pub(super) fn end(&mut self) -> bool {
        let open = self.is_open();
        if open {
            self.resolution = Some(Resolution::Ended);
        }
        open
    }

    pub(super) fn requirement(&self) -> Option<Requirement> {
        self.request.as_ref().map(InputRequest::requirement)
    }
}

/// The asks of a run by ticket, in the order of registration. Tickets only rise, so a list is a map.
#[derive(Debug, Default)]
pub(super) struct Slots {
    all: Vec<(u32, Slot)>,
    /// How many at the beginning are known to be resolved, which they stay: a long run looks at what is open often.
    resolved: usize,
    /// How many are withdrawn and still there: many that go one by one are removed together.
    withdrawn: usize,
}

impl Slots {
    pub(super) fn with_capacity(asks: usize) -> Self {
        Self { all: Vec::with_capacity(asks), resolved: 0, withdrawn: 0 }
    }

    fn place(&self, ticket: u32) -> Option<usize> {
        match self.all.last() {
            // The latest is the one that is mostly wanted.
            Some((last, _)) if *last == ticket => Some(self.all.len() - 1),
            Some(_) | None => self.all.binary_search_by_key(&ticket, |(ticket, _)| *ticket).ok(),
        }
    }

    /// Adds an ask; its ticket is higher than all that are here.
    pub(super) fn insert(&mut self, ticket: u32, slot: Slot) {
        while self.all.get(self.resolved).is_some_and(|(_, slot)| !slot.is_open()) {
            self.resolved += 1;
        }
        self.all.push((ticket, slot));
    }

    pub(super) fn get(&self, ticket: u32) -> Option<&Slot> {
        let found = self.place(ticket).and_then(|place| self.all.get(place));
        found.map(|(_, slot)| slot).filter(|slot| !slot.withdrawn)
    }

    pub(super) fn get_mut(&mut self, ticket: u32) -> Option<&mut Slot> {
        let found = self.place(ticket).and_then(|place| self.all.get_mut(place));
        found.map(|(_, slot)| slot).filter(|slot| !slot.withdrawn)
    }

    /// Takes out an ask that is open.
    pub(super) fn remove(&mut self, ticket: u32) {
        let Some(place) = self.place(ticket) else { return };
        let is_last = place + 1 == self.all.len();
        let Some((_, slot)) = self.all.get_mut(place).filter(|(_, slot)| slot.is_open()) else { return };
        if is_last {
            self.all.pop();
            return;
        }
        slot.withdrawn = true;
        slot.request = None;
        self.withdrawn += 1;
        if self.withdrawn > self.all.len() / 2 {
            self.retain(|_| true);
        }
    }

    /// All of them, resolved or not.
    pub(super) fn values(&self) -> impl Iterator<Item = &Slot> {
        self.all.iter().map(|(_, slot)| slot).filter(|slot| !slot.withdrawn)
    }

    /// Those that are open.
    pub(super) fn open(&self) -> impl Iterator<Item = &Slot> {
        let rest = self.all.get(self.resolved..).unwrap_or_default();
        rest.iter().map(|(_, slot)| slot).filter(|slot| slot.is_open())
    }

    pub(super) fn open_mut(&mut self) -> impl Iterator<Item = (Ticket, &mut Slot)> {
        let rest = self.all.get_mut(self.resolved..).unwrap_or_default();
        rest.iter_mut().map(|(ticket, slot)| (Ticket(*ticket), slot)).filter(|(_, slot)| slot.is_open())
    }

    pub(super) fn retain(&mut self, keep: impl Fn(&Slot) -> bool) {
        (self.resolved, self.withdrawn) = (0, 0);
        self.all.retain(|(_, slot)| !slot.withdrawn && keep(slot));
    }
}

/// How often each key of the author's has been used in a run (A1).
#[derive(Debug, Default)]
pub(super) struct Uses(Counted);

impl Uses {
    /// What [`next`](Self::next) will say.
    fn peek(&self, key: &str) -> String {
        match self.0.get(key) {
            0 => key.into(),
            uses => alloc::format!("{key}#{uses}"),
        }
    }

    /// The key on the wire of the next use, and whether it is the first; `recorded` is one that may be the same, to be
    /// shared.
    fn next(&mut self, key: &str, recorded: Option<&Arc<str>>) -> (Arc<str>, bool) {
        let mut first = None;
        let own = || {
            let own: Arc<str> =
                recorded.filter(|found| &***found == key).map_or_else(|| key.into(), Arc::clone);
            Arc::clone(first.insert(own))
        };
        let uses = self.0.count(key, own);
        first.map_or_else(|| (alloc::format!("{key}#{uses}").into(), false), |key| (key, true))
    }
}

pub(crate) fn key_is_valid(key: &str) -> bool {
    (1..=64).contains(&key.len())
        && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-'))
}

impl Tape {
    /// Registers an ask, at the call (A1). A fault is kept and ends the attempt at the next step; the ticket
    /// is good in any case.
    pub fn register(&mut self, spec: AskSpec) -> Ticket {
        let ticket = self.register_as(&spec.key, spec.request, spec.solicited);
        self.set_optional(ticket, spec.optional);
        ticket
    }

    /// [`register`](Self::register) for a required ask whose key is borrowed.
    pub(crate) fn register_as(
        &mut self,
        key: &str,
        request: Option<InputRequest<'static>>,
        solicited: bool,
    ) -> Ticket {
        let ticket = self.next_ticket;
        self.next_ticket = self.next_ticket.wrapping_add(1);
        let asked = request.as_ref().map(|request| self.name(key, request));
        self.slots.insert(
            ticket,
            Slot {
                asked,
                request,
                optional: false,
                solicited,
                polled: false,
                // What a detached task asks after the end, or a commit, has nobody to answer it.
                resolution: self.closed.then_some(Resolution::Ended),
                withdrawn: false,
                taken: false,
                waits: false,
                errand: Errand::Idle,
                segment: self.segment,
                resolved_by: None,
            },
        );
        Ticket(ticket)
    }

    /// Gives an ask its key for this run and its fingerprint.
    fn name(&mut self, key: &str, request: &InputRequest<'static>) -> Asked {
        if !key_is_valid(key) {
            self.misuse.get_or_insert(Fault::BadKey(key.chars().take(80).collect()));
        }
        let recorded = self.journal.rounds.get(self.segment);
        let recorded = recorded.and_then(|round| round.asks.iter().find(|asked| &*asked.key == key));
        let own = key;
        let (key, first) = self.uses.next(own, recorded.map(|asked| &asked.key));
        // Only then: a handler may ask as often as its request has elements.
        if !first && self.misuse.is_none() && self.is_in_use(own) {
            self.misuse = Some(Fault::KeyInUse(own.into()));
        }
        let kind = request.kind();
        if !request.is_well_formed(&self.limits) {
            self.misuse.get_or_insert(Fault::BadAsk(String::from(&*key)));
        }
        let fingerprint = request.fingerprint().unwrap_or_else(|_| {
            self.misuse.get_or_insert(Fault::BadAsk(String::from(&*key)));
            Fingerprint::from_bytes([0; 32])
        });
        Asked { key, kind, fingerprint, verdict: Verdict::Open }
    }

    fn is_in_use(&self, key: &str) -> bool {
        let mut open = self.slots.open().filter_map(|slot| slot.asked.as_ref());
        open.any(|asked| {
            asked.key.strip_prefix(key).is_some_and(|rest| rest.is_empty() || rest.starts_with('#'))
        })
    }

    /// The key that the next use of an author's key gets on the wire (A1).
    #[must_use]
    pub fn next_key(&self, key: &str) -> String {
        self.uses.peek(key)
    }

    /// Changes whether an ask is optional. Only before it has been waited for.
    pub fn set_optional(&mut self, ticket: Ticket, optional: bool) {
        if let Some(slot) = self.slots.get_mut(ticket.0) {
            slot.optional = optional;
        }
    }

    /// Forbids an answer without a state (A7).
    pub fn set_solicited(&mut self, ticket: Ticket) {
        if let Some(slot) = self.slots.get_mut(ticket.0) {
            slot.solicited = true;
        }
    }

    /// The handler waits for this ask: its resolution, once there is one. From the first call on, the ask
    /// blocks (A2).
    pub fn take(&mut self, ticket: Ticket) -> Option<Resolution> {
        let Some(slot) = self.slots.get_mut(ticket.0) else {
            // Finishing withdrew it (A9 c); whoever holds it still, in a commit or a task, waits for nobody.
            return self.closed.then_some(Resolution::Ended);
        };
        slot.polled = true;
        let resolution = slot.resolution.clone();
        slot.taken |= resolution.is_some();
        resolution
    }

    /// The handler no longer wants this ask: its future was dropped (A9 c).
    pub fn withdraw(&mut self, ticket: Ticket) {
        // A resolved ask stays known, so that a mark over it (A9 b) sees whether it was taken.
        if self.slots.get(ticket.0).is_some_and(Slot::is_open) {
            self.slots.remove(ticket.0);
        }
    }

    /// Journals `projection` (JSON text) instead of the whole answer of a resolved ask (A11).
    pub fn keep(&mut self, ticket: Ticket, projection: &str) {
        let Some(slot) = self.slots.get(ticket.0) else { return };
        let (Some(round), Some(asked)) = (slot.resolved_by, slot.asked.as_ref()) else { return };
        let recorded = self.journal.rounds.get_mut(round);
        let recorded =
            recorded.and_then(|round| round.asks.iter_mut().find(|found| found.same_question(asked)));
        if let Some(recorded) = recorded
            && let Verdict::Answer(text) = &mut recorded.verdict
            && !text.starts_with('k')
        {
            *text = alloc::format!("k{projection}").into();
        }
    }

    /// The question behind a ticket, for a driver that shows it.
    #[must_use]
    pub fn question(&self, ticket: Ticket) -> Option<Json<'_>> {
        self.slots.get(ticket.0)?.request.as_ref()?.params()
    }

    /// The key on the wire behind a ticket.
    #[must_use]
    pub fn key(&self, ticket: Ticket) -> Option<&str> {
        self.slots.get(ticket.0)?.asked.as_ref().map(|asked| &*asked.key)
    }
}
