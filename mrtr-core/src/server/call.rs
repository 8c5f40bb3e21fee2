//! A request that may ask, and its exchange.

use alloc::{borrow::Cow, boxed::Box, sync::Arc, vec::Vec};

use super::{Received, Rejected, RoundEnv, Server, observe::Telling, read::CallParams, reject::RejectReason};
#[cfg(feature = "std")]
use crate::tape::{Tape, TapeSetup};
use crate::{
    audit::Event,
    entropy::Entropy,
    error::RpcError,
    http::{Headers, ReplyClass},
    journal::{Journal, Verdict},
    jsonrpc::{Json, Request},
    ledger,
    seal::{self, Binding, Claims, ExchangeId, KeyId, Principal, Ttl},
    tape::{Answers, owned_answers},
    time::Timestamp,
    wire::{AskingMethod, RequestMeta, read_answer},
};

/// A request that may ask, its state not opened yet: look up whether what it names exists, then
/// [`open`](Self::open) it (G-51).
#[derive(Debug)]
#[must_use = "a request wants an answer"]
pub struct Call<'a>(Box<Inner<'a>>);

/// An exchange in the state `S`. A dropped exchange has answered nothing.
#[derive(Debug)]
#[must_use = "a request wants an answer"]
pub struct Exchange<'a, S> {
    pub(super) inner: Box<Inner<'a>>,
    pub(super) state: S,
}

/// The first request of an exchange. It may carry answers nobody asked for yet.
#[derive(Debug)]
#[non_exhaustive]
pub struct Pending;

/// A retry: its state was opened and its answers fit what was asked.
#[derive(Debug)]
#[non_exhaustive]
pub struct Retrying {
    /// Which round's answers it brings, from 1.
    pub round: u32,
    /// The key that its state was sealed under.
    pub key: KeyId,
    /// That key no longer mints here: a rotation is not over as long as there are such states.
    pub by_retired_key: bool,
}

/// A claim to be made.
#[cfg(feature = "std")]
pub(crate) struct ToClaim {
    pub(crate) retry: ledger::Retry,
    pub(crate) policy: ledger::Policy,
    pub(crate) entropy: Entropy,
    pub(crate) sealer: seal::Sealer,
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::Pending {}
    impl Sealed for super::Retrying {}
}

/// The states in which an exchange waits for the server's reply.
pub trait Open: sealed::Sealed {}
impl Open for Pending {}
impl Open for Retrying {}

pub(super) struct Inner<'a> {
    pub(super) server: Server,
    pub(super) request: Request<'a>,
    pub(super) meta: RequestMeta<'a>,
    pub(super) method: AskingMethod,
    pub(super) params: CallParams<'a>,
    pub(super) principal: Principal<'a>,
    pub(super) headers: Option<&'a (dyn Headers + Sync)>,
    /// Shared with the handler's context, which seals tickets.
    pub(super) entropy: Arc<Entropy>,
    pub(super) received: Timestamp,
    /// Zeros until the exchange is opened: then it is new, or the state's.
    pub(super) exchange: ExchangeId,
    pub(super) deadline: Timestamp,
    /// How long its states may be used, where that is not the sealer's to say.
    pub(super) state_ttl: Option<Ttl>,
    pub(super) journal: Journal,
    pub(super) answers: Answers,
    /// Whether the request carried answers or a state: its result must not be cached (R-202, G-40).
    pub(super) second_hand: bool,
    /// When the observer is told what happens.
    pub(super) telling: Telling,
    /// What the ledger is asked about; with a ledger, for a retry whose answers are taken.
    pub(super) retry: Option<Box<ledger::Retry>>,
}

impl core::fmt::Debug for Inner<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Request")
            .field("id", &self.request.id)
            .field("method", &self.method)
            .field("target", &self.params.target)
            .field("exchange", &self.exchange)
            .field("journal", &self.journal)
            .finish_non_exhaustive()
    }
}

impl<'a> Call<'a> {
    pub(super) fn new(
        server: Server,
        request: Request<'a>,
        meta: RequestMeta<'a>,
        method: AskingMethod,
        params: CallParams<'a>,
        env: RoundEnv<'a>,
    ) -> Self {
        let deadline = env.now.saturating_add(server.config().limits.exchange);
        let second_hand = params.state.is_some() || params.responses.is_some();
        Self(Box::new(Inner {
            server,
            request,
            meta,
            method,
            params,
            principal: env.principal,
            headers: env.headers,
            entropy: Arc::new(env.entropy),
            received: env.now,
            exchange: ExchangeId::from_bytes([0; 16]),
            deadline,
            state_ttl: None,
            journal: Journal::new(env.now),
            answers: Answers::None,
            second_hand,
            telling: Telling::default(),
            retry: None,
        }))
    }

    /// Which of the three methods.
    #[must_use]
    pub fn method(&self) -> AskingMethod {
        self.0.method
    }

    /// The tool's or prompt's name, or the resource's uri.
    #[must_use]
    pub fn target(&self) -> &str {
        &self.0.params.target
    }

    /// The request.
    #[must_use]
    pub fn request(&self) -> &Request<'a> {
        &self.0.request
    }

    /// Its `_meta`.
    #[must_use]
    pub fn meta(&self) -> &RequestMeta<'a> {
        &self.0.meta
    }

    /// The headers it came with.
    #[must_use]
    pub fn headers(&self) -> Option<&'a (dyn Headers + Sync)> {
        self.0.headers
    }

    /// How long the states of this exchange may be used, instead of the sealer's time. Like everything that a
    /// server knows of a tool it is said again each round. [`Catalog::route`](crate::catalog::Catalog::route) does it
    /// for what was declared with one.
    pub fn state_ttl(mut self, ttl: Ttl) -> Self {
        self.0.state_ttl = Some(ttl);
        self
    }

    /// Refuses it before its state is opened.
    pub fn reject(self, error: RpcError, class: ReplyClass) -> Rejected {
        Rejected::new(Some(self.0.request.id), error, class, RejectReason::Unknown)
    }

    /// Opens the exchange: verifies the state if there is one, checks the answers against what was asked.
    ///
    /// A state that is not ours, changed, expired, of another principal or request is refused with one
    /// sentence whatever the reason (G-11). An answer whose structure does not fit what was asked under its
    /// key, or that is over [`Limits::answer_bytes`](crate::Limits::answer_bytes), is `-32602` with its path, and
    /// nothing is consumed (A5, R-079, R-080); what stands under a key that was not asked is ignored, whatever its
    /// size.
    #[must_use]
    pub fn open(mut self) -> Received<'a> {
        let inner = &mut *self.0;
        let limits = &inner.server.config().limits;
        let too_large = |value: Json<'_>| value.as_str().len() > limits.answer_bytes;
        let Some(token) = &inner.params.state else {
            // One expansion for the exchange's id, one for the nonce of the state that is likely to follow.
            if let Some(entropy) = Arc::get_mut(&mut inner.entropy) {
                entropy.prepare();
            }
            inner.exchange = ExchangeId::from_entropy(&inner.entropy);
            if let Some(given) = inner.params.responses
                && !inner.server.config().require_state
            {
                // What will be asked is not known yet: any of them might be kept.
                let mut read = responses(&inner.params).take(limits.asks_accepted);
                if let Some((key, _)) = read.find(|(_, value)| too_large(*value)) {
                    let error = over_limit(&key, limits.answer_bytes);
                    return self.refuse(error, RejectReason::Answer);
                }
                inner.answers = Answers::Early(owned_answers(given, limits.asks_accepted));
            }
            return Received::Pending(Exchange { inner: self.0, state: Pending });
        };
        let binding = Binding { principal: inner.principal, request: inner.params.digest.as_bytes() };
        let opened = match inner.server.config().sealer.open(token, &binding, inner.received) {
            Ok(opened) => opened,
            Err(refused) => {
                inner
                    .server
                    .observe(&Event::Refused { exchange: refused.exchange, verdict: refused.verdict });
                return Received::Rejected(Rejected::state(self.0.request.id, RejectReason::State(refused)));
            }
        };
        let journal = match Journal::decode(&opened.payload, limits) {
            Ok(journal) => journal,
            Err(fault) => {
                return Received::Rejected(Rejected::state(self.0.request.id, RejectReason::Journal(fault)));
            }
        };
        inner.exchange = opened.claims.exchange;
        inner.deadline = opened.claims.deadline;
        inner.journal = journal;
        let mut answers = Vec::new();
        if let Some(round) = inner.journal.last_sent() {
            for (key, value) in responses(&inner.params) {
                let Some(asked) = round.asks.iter().find(|asked| *asked.key == *key) else { continue };
                if opened.expired {
                    // Soft expiry: they only tell the ledger which retry this is. They are not taken, so not judged.
                    answers.push((Box::from(&*key), Box::from(value.as_str())));
                    continue;
                }
                if too_large(value) {
                    let error = over_limit(&key, limits.answer_bytes);
                    return self.refuse(error, RejectReason::Answer);
                }
                if let Err(fault) = read_answer(asked.kind, value) {
                    let message = alloc::format!("Invalid params: inputResponses[{:?}]{fault}", shown(&key));
                    return self.refuse(RpcError::invalid_params(message), RejectReason::Answer);
                }
                answers.push((Box::from(&*key), Box::from(value.as_str())));
            }
        }
        // One whose answers are not taken is used all the same, by asking again; if it was used before, it stays so.
        if inner.server.config().ledger.is_some() {
            match inner.to_claim(&opened.claims, &answers) {
                Ok(retry) => inner.retry = Some(Box::new(retry)),
                Err(fault) => return self.refuse(fault.to_error(), RejectReason::Answer),
            }
        }
        // Soft expiry: the answers of an expired state are not taken, the questions are asked again.
        inner.answers = Answers::LastRound(if opened.expired { Vec::new() } else { answers });
        let seal::Opened { claims, key, by_retired_key, .. } = opened;
        if by_retired_key {
            crate::trace::debug!(
                key = %key, exchange = %claims.exchange, round = claims.round,
                "a state was opened with a key that no longer mints"
            );
        }
        Received::Retrying(Exchange {
            inner: self.0,
            state: Retrying { round: claims.round, key, by_retired_key },
        })
    }

    fn refuse(self, error: RpcError, reason: RejectReason) -> Received<'a> {
        Received::Rejected(Rejected::new(Some(self.0.request.id), error, ReplyClass::HandlerError, reason))
    }
}

fn responses<'a>(params: &CallParams<'a>) -> impl Iterator<Item = (Cow<'a, str>, Json<'a>)> + use<'a> {
    params.responses.and_then(Json::members).into_iter().flatten()
}

fn over_limit(key: &str, limit: usize) -> RpcError {
    RpcError::invalid_params(alloc::format!(
        "Invalid params: inputResponses[{:?}] is over the limit of {limit} bytes (Limits::answer_bytes)",
        shown(key)
    ))
}

fn shown(key: &str) -> alloc::string::String {
    key.chars().take(64).collect()
}

impl<'a, S> Exchange<'a, S> {
    /// Which of the three methods.
    #[must_use]
    pub fn method(&self) -> AskingMethod {
        self.inner.method
    }

    /// The tool's or prompt's name, or the resource's uri.
    #[must_use]
    pub fn target(&self) -> &str {
        &self.inner.params.target
    }

    /// The arguments; `{}` if there are none.
    #[must_use]
    pub fn arguments(&self) -> Json<'a> {
        self.inner.params.arguments.unwrap_or(Json::EMPTY_OBJECT)
    }

    /// The request.
    #[must_use]
    pub fn request(&self) -> &Request<'a> {
        &self.inner.request
    }

    /// Its `_meta`.
    #[must_use]
    pub fn meta(&self) -> &RequestMeta<'a> {
        &self.inner.meta
    }

    /// Names the exchange in logs, and in the ledger.
    #[must_use]
    pub fn id(&self) -> ExchangeId {
        self.inner.exchange
    }

    /// When the exchange must be over.
    #[must_use]
    pub fn deadline(&self) -> Timestamp {
        self.inner.deadline
    }

    /// The journal as it stands.
    #[must_use]
    pub fn journal(&self) -> &Journal {
        &self.inner.journal
    }
}

#[cfg(feature = "std")]
impl<S> Exchange<'_, S> {
    /// The reply goes out: tells the observer what has waited for that.
    pub(crate) fn told(&mut self) {
        self.inner.tell_now();
    }
}

impl<'a, S: Open> Exchange<'a, S> {
    /// The same exchange for code that treats first and later rounds alike, and is then compiled once. What it asks
    /// and answers stays the same; `raw_response` of a retry finds nothing in it.
    pub fn either(self) -> Exchange<'a, Pending> {
        Exchange { inner: self.inner, state: Pending }
    }
}

/// What the driver of handlers needs.
#[cfg(feature = "std")]
impl<'a, S: Open> Exchange<'a, S> {
    /// What a handler's run made of the answers it met, for the observer.
    pub(crate) fn observe_run(
        &mut self,
        notes: Vec<crate::tape::Note>,
        divergences: Vec<crate::journal::Divergence>,
    ) {
        self.inner.observe_run(notes, divergences);
    }

    /// Tells the observer nothing until the reply is settled ([`told`](Exchange::told)).
    pub(crate) fn tell_later(&mut self) {
        self.inner.tell_later();
    }

    /// Tells the observer nothing from now on.
    pub(crate) fn tell_never(&mut self) {
        self.inner.tell_never();
    }

    /// What seals a ticket: the sealer's server, this round's randomness, the time of receipt.
    pub(crate) fn for_tickets(&self) -> (Server, Arc<Entropy>, Timestamp) {
        (self.inner.server.clone(), self.inner.entropy.clone(), self.inner.received)
    }

    pub(crate) fn principal(&self) -> Principal<'a> {
        self.inner.principal
    }

    /// The tape that replays this exchange. It has the journal until it is handed [back](Self::set_journal).
    pub(crate) fn tape(&mut self) -> Tape {
        let config = self.inner.server.config();
        let emptied = Journal::new(self.inner.journal.started());
        let journal = core::mem::replace(&mut self.inner.journal, emptied);
        let mut setup = TapeSetup::new(self.inner.exchange, journal, self.inner.deadline);
        setup.answers = core::mem::take(&mut self.inner.answers);
        setup.capabilities = self.inner.meta.capabilities;
        setup.policy = config.tape.clone();
        setup.limits = config.limits.clone();
        setup.noting = config.observer.is_some();
        Tape::new(setup)
    }

    /// What the ledger is to be asked before a handler runs, and the entropy for it.
    #[cfg(feature = "std")]
    pub(crate) fn take_claim(&mut self) -> Option<ToClaim> {
        let retry = *self.inner.retry.take()?;
        let config = self.inner.server.config();
        Some(ToClaim {
            retry,
            policy: config.ledger?,
            entropy: Entropy::new(self.inner.entropy.expand(b"ledger")),
            sealer: config.sealer.clone(),
        })
    }

    pub(crate) fn set_journal(&mut self, journal: Journal) {
        self.inner.journal = journal;
    }
}

impl Inner<'_> {
    /// The state that this retry uses, and the effective answers that it brings (B2).
    fn to_claim(
        &self,
        claims: &Claims,
        answers: &[(Box<str>, Box<str>)],
    ) -> Result<ledger::Retry, ledger::Undigestible> {
        let asks = self.journal.last_sent().map_or(&[][..], |round| &round.asks);
        let digest = ledger::effective_digest(asks.iter().map(|asked| &*asked.key), |key| {
            answers.iter().find(|(found, _)| &**found == key).map(|(_, text)| Json::trusted(text))
        })?;
        // A divergence drops rounds (A8), after which their numbers come again. It counts itself, so the two
        // together name each state of an exchange. A sealed round fits in 16 bits.
        let round = (u32::from(self.journal.divergences) << 16) | (claims.round & 0xffff);
        let sealer = &self.server.config().sealer;
        let key = ledger::Key::new(sealer.audience(), *claims.exchange.as_bytes(), round);
        // The last moment at which this replica opens it, and any that is set up alike.
        let expires = if sealer.is_soft() { claims.deadline } else { claims.expires };
        Ok(ledger::Retry::new(key, digest, expires))
    }

    /// Records the answers in hand as they came, for return-style servers: their content is judged when it is
    /// asked for.
    pub(super) fn record_answers(&mut self) {
        self.observe_answers();
        let Answers::LastRound(answers) = &self.answers else { return };
        let Some(round) = self.journal.rounds.last_mut() else { return };
        for (key, text) in answers {
            let Some(asked) = round.asks.iter_mut().find(|asked| *asked.key == **key) else { continue };
            if let Ok(answer) = read_answer(asked.kind, Json::trusted(text)) {
                asked.verdict = Verdict::Answer(super::answer::recorded_text(&answer));
            }
        }
        self.answers = Answers::None;
    }
}
