//! `InputRequired`: the request was answered with questions, a state, or both.

use alloc::{string::String, sync::Arc, vec::Vec};

use super::{Complete, Exchange, Open, Pending, reply};
use crate::{
    error::{ErrorCode, RpcError},
    http::ReplyClass,
    journal::{Asked, Round, Verdict},
    jsonrpc::Json,
    seal::{Binding, NewClaims, SealError},
    tape::{Fault, Outgoing, OutgoingAsk},
    time::Timestamp,
    wire::{InputRequest, Requirement},
};

/// The request was answered `input_required`; the next one is a new request, perhaps at another replica.
#[derive(Debug)]
#[non_exhaustive]
pub struct InputRequired {
    /// Until when the state is good.
    pub expires: Timestamp,
}

/// The asks of a return-style server's round, in their order on the wire (G-36).
#[derive(Clone, Debug, Default)]
pub struct InputRequests(Vec<(String, InputRequest<'static>)>);

impl InputRequests {
    /// No asks: with a state, a state-only round.
    #[must_use]
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// Adds an ask. A later one under the same key takes the place of the earlier.
    #[must_use]
    pub fn ask(mut self, key: impl Into<String>, request: InputRequest<'_>) -> Self {
        let key = key.into();
        self.0.retain(|(found, _)| *found != key);
        self.0.push((key, request.into_owned()));
        self
    }
}

/// Why no questions went out. A complete error reply is in `out`: send it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RequireError {
    /// The client did not declare what these asks need: it was told so with `-32021`.
    #[error("the request does not declare the capabilities these asks need")]
    MissingCapability,
    /// A bound was reached, or a key or ask is not fit to be sent.
    #[error(transparent)]
    Fault(Fault),
    /// The state could not be sealed: it would be larger than allowed, most likely.
    #[error(transparent)]
    Seal(SealError),
    /// The typed state cannot be written as JSON.
    #[error("the state cannot be written as JSON")]
    State,
}

impl RequireError {
    /// What the reply is that was written instead, for its HTTP status.
    #[must_use]
    pub const fn class(&self) -> ReplyClass {
        match self {
            Self::MissingCapability => ReplyClass::MissingCapability,
            Self::Fault(_) | Self::Seal(_) | Self::State => ReplyClass::HandlerError,
        }
    }
}

impl<'a, S: Open> Exchange<'a, S> {
    /// Answers `input_required` with these asks and a state of the server's own.
    ///
    /// `state` is anything serde can write; it comes back with [`state`](Exchange::state) on the retry,
    /// sealed in between. Asks may be empty: the client then only comes again. Asks that the client
    /// cannot answer make the reply `-32021`.
    ///
    /// # Errors
    ///
    /// [`RequireError`]; `out` then holds a complete error reply, to be sent all the same.
    pub fn require<T: serde::Serialize + ?Sized>(
        self,
        asks: InputRequests,
        state: &T,
        now: Timestamp,
        out: &mut Vec<u8>,
    ) -> Result<Exchange<'a, InputRequired>, RequireError> {
        self.try_require(asks, state, now, out).map_err(|(_, error)| error)
    }

    /// [`require`](Self::require) with a state that is JSON already.
    ///
    /// # Errors
    ///
    /// As for [`require`](Self::require).
    pub fn require_json(
        self,
        asks: InputRequests,
        state: Json<'_>,
        now: Timestamp,
        out: &mut Vec<u8>,
    ) -> Result<Exchange<'a, InputRequired>, RequireError> {
        self.either().require_text(asks, state.as_str().into(), now, out).map_err(|(_, error)| error)
    }

    /// [`require`](Self::require); an error comes with the exchange that it ended.
    pub(crate) fn try_require<T: serde::Serialize + ?Sized>(
        self,
        asks: InputRequests,
        state: &T,
        now: Timestamp,
        out: &mut Vec<u8>,
    ) -> Result<Exchange<'a, InputRequired>, (Exchange<'a, Complete>, RequireError)> {
        let Ok(text) = serde_json::to_string(state) else {
            let error = RpcError::internal("Internal error");
            return Err((self.fail(&error, out), RequireError::State));
        };
        self.either().require_text(asks, text, now, out)
    }
}

/// Compiled once: what is asked and sealed is the same in every round.
impl<'a> Exchange<'a, Pending> {
    /// [`require`](Self::require) with JSON text; an error comes with the exchange that it ended.
    pub(crate) fn require_text(
        mut self,
        asks: InputRequests,
        text: String,
        now: Timestamp,
        out: &mut Vec<u8>,
    ) -> Result<Exchange<'a, InputRequired>, (Exchange<'a, Complete>, RequireError)> {
        let needs: Vec<Requirement> = asks.0.iter().map(|(_, ask)| ask.requirement()).collect();
        let capabilities = self.inner.meta.capabilities;
        if needs.iter().any(|need| !capabilities.allow(*need)) {
            let ended = self.missing(capabilities.missing(needs), out);
            return Err((ended, RequireError::MissingCapability));
        }
        self.inner.record_answers();
        let outgoing = match self.inner.open_round(asks.0, now) {
            Ok(outgoing) => outgoing,
            Err(fault) => {
                return Err((self.fail(&fault.error(), out), RequireError::Fault(fault)));
            }
        };
        self.inner.journal.state = Some(text.into());
        match self.suspend(&outgoing, now, out) {
            Ok(exchange) => Ok(exchange),
            Err((exchange, error)) => Err((exchange, RequireError::Seal(error))),
        }
    }

    /// Ends the request with `-32021` and this `data`.
    pub(crate) fn missing(self, data: String, out: &mut Vec<u8>) -> Exchange<'a, Complete> {
        let error = RpcError::new(
            ErrorCode::MISSING_CAPABILITY,
            "The request does not declare a client capability that answering it needs",
        )
        .with_raw_data(data);
        self.fail_as(&error, ReplyClass::MissingCapability, out)
    }

    /// Seals the journal and writes the interim result. If that is too large, a complete error goes out
    /// instead, for a question whose answer could not be used must not be asked.
    pub(crate) fn suspend(
        mut self,
        outgoing: &Outgoing,
        now: Timestamp,
        out: &mut Vec<u8>,
    ) -> Result<Exchange<'a, InputRequired>, (Exchange<'a, Complete>, SealError)> {
        let inner = &*self.inner;
        let journal = &inner.journal;
        let state_only = journal.rounds.iter().filter(|round| !round.silent && round.asks.is_empty()).count();
        let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        let claims = NewClaims {
            exchange: inner.exchange,
            round: count(journal.rounds_sent()),
            state_only: count(state_only),
            deadline: inner.deadline,
            ttl: inner.state_ttl,
        };
        let binding = Binding { principal: inner.principal, request: inner.params.digest.as_bytes() };
        let sealer = &inner.server.config().sealer;
        let expires = sealer.expiry(&claims, now);
        let payload = |body: &mut Vec<u8>| journal.encode(body);
        let sealed = sealer.seal_with(&claims, journal.encoded_len(), payload, &binding, now, &inner.entropy);
        let state = match sealed {
            Ok(state) => state,
            Err(error) => {
                let reply = RpcError::internal(alloc::format!("Internal error: {error}"));
                return Err((self.fail(&reply, out), error));
            }
        };
        let capabilities = inner.meta.capabilities;
        let info = &inner.server.config().info;
        reply::write_interim(out, &inner.request.id, info, outgoing, capabilities, &state);
        self.inner.observe_asks(outgoing, claims.round);
        Ok(Exchange { inner: self.inner, state: InputRequired { expires } })
    }
}

impl super::call::Inner<'_> {
    /// Records a return-style round, checking every bound.
    fn open_round(
        &mut self,
        asks: Vec<(String, InputRequest<'static>)>,
        now: Timestamp,
    ) -> Result<Outgoing, Fault> {
        let limits = &self.server.config().limits;
        if asks.len() > limits.asks_sent {
            return Err(Fault::Limit {
                what: "asks in a round",
                field: "asks_sent",
                limit: limits.asks_sent,
            });
        }
        if now >= self.deadline {
            return Err(Fault::Deadline);
        }
        let empty = asks.is_empty();
        let same = self
            .journal
            .rounds
            .iter()
            .filter(|round| !round.silent && round.asks.is_empty() == empty)
            .count();
        let (limit, what, field) = if empty {
            (limits.state_only_rounds, "state-only rounds", "state_only_rounds")
        } else {
            (limits.rounds, "rounds", "rounds")
        };
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        if same >= limit {
            return Err(Fault::Limit { what, field, limit });
        }
        let mut round = Round { checkpoint: empty, ..Round::default() };
        let mut outgoing = Outgoing::default();
        for (key, request) in asks {
            if !crate::tape::key_is_valid(&key) {
                return Err(Fault::BadKey(key.chars().take(80).collect()));
            }
            if !request.is_well_formed(limits) {
                return Err(Fault::BadAsk(key));
            }
            crate::tape::check_form(&key, &request)?;
            let fingerprint = request.fingerprint().map_err(|_| Fault::BadAsk(key.clone()))?;
            let key: Arc<str> = key.into();
            round.asks.push(Asked {
                key: key.clone(),
                kind: request.kind(),
                fingerprint,
                verdict: Verdict::Open,
            });
            outgoing.asks.push(OutgoingAsk { key, request, invalid: None });
        }
        self.journal.rounds.push(round);
        Ok(outgoing)
    }
}

impl Exchange<'_, InputRequired> {
    /// The keys that were asked.
    pub fn keys(&self) -> impl ExactSizeIterator<Item = &str> {
        let round = self.inner.journal.rounds.last();
        round.map_or(&[][..], |round| &round.asks).iter().map(|asked| &*asked.key)
    }

    /// Until when the state is good.
    #[must_use]
    pub const fn expires(&self) -> Timestamp {
        self.state.expires
    }
}

impl<S: Open> Exchange<'_, S> {
    /// The server's own state from the last round; `None` if there was none, as at a first request.
    ///
    /// # Errors
    ///
    /// If it does not fit `T`: after a deploy that changed the type, for instance.
    pub fn state<T: serde::de::DeserializeOwned>(&self) -> Result<Option<T>, serde_json::Error> {
        self.inner.journal.state.as_deref().map(serde_json::from_str).transpose()
    }

    /// The same as JSON.
    #[must_use]
    pub fn state_json(&self) -> Option<Json<'_>> {
        self.inner.journal.state.as_deref().map(Json::trusted)
    }
}
