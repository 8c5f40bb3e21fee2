//! What a bridge seals: an upstream's state for one principal (R-254, R-255), the handle of a parked call (R-256),
//! or what a call that is run again needs to know (G-48).
//!
//! ```text
//! wrapped   0x01 ‖ length of the upstream's name 1 ‖ name ‖ the state as the JSON text of a string, or nothing
//! handle    0x02 ‖ length of the upstream's name 1 ‖ name ‖ epoch of the owner 16 ‖ call 8 ‖ round 4
//! record    0x03 ‖ length of the upstream's name 1 ‖ name ‖ record
//! ```

use alloc::{boxed::Box, string::String, vec::Vec};

use super::{Owner, parked::replay::Record};
use crate::{
    Entropy,
    jsonrpc::{Json, JsonKind},
    limits::Limits,
    seal::{Binding, Claims, NewClaims, SealError, Sealer, Verdict},
    time::Timestamp,
};

/// The bridge's one source of randomness: a seed that is expanded anew for each need.
pub(super) struct Random {
    current: Entropy,
    drawn: u32,
}

impl Random {
    pub(super) fn new(mut seed: Entropy) -> Self {
        seed.prepare();
        Self { current: seed, drawn: 0 }
    }

    /// Good for as many nonces as one wants to take at once.
    pub(super) fn draw(&mut self) -> &Entropy {
        self.drawn += 1;
        // Long before the counter inside runs out.
        if self.drawn > 1 << 24 {
            let mut next = Entropy::new(self.current.expand(b"bridge/next"));
            next.prepare();
            *self = Self { current: next, drawn: 1 };
        }
        &self.current
    }

    pub(super) fn bytes<const N: usize>(&mut self, what: &[u8]) -> [u8; N] {
        let nonce = self.draw().nonce();
        let mut label = Vec::with_capacity(what.len() + nonce.len());
        label.extend_from_slice(what);
        label.extend_from_slice(&nonce);
        self.current.expand(&label)
    }
}

/// What a state was found to be.
pub(super) enum Carried {
    Wrapped { state: Option<Box<str>> },
    Handle { epoch: [u8; 16], call: u64, round: u32 },
    Record(Record),
}

pub(super) struct OpenedState {
    pub(super) claims: Claims,
    pub(super) carried: Carried,
}

/// What a state is bound to.
pub(super) struct Bound<'a> {
    pub(super) owner: &'a Owner,
    pub(super) request: &'a [u8; 32],
    pub(super) upstream: &'a str,
}

impl Bound<'_> {
    fn binding(&self) -> Binding<'_> {
        Binding { principal: self.owner.principal(), request: self.request }
    }
}

pub(super) struct Vault {
    sealer: Sealer,
}

impl Vault {
    pub(super) fn new(sealer: &Sealer, limits: &Limits) -> Self {
        Self { sealer: sealer.clone().max_token(limits.state_accepted) }
    }

    /// Wraps an upstream's state; none stays none inside.
    pub(super) fn wrap(
        &self,
        claims: &NewClaims,
        state: Option<&str>,
        bound: &Bound<'_>,
        now: Timestamp,
        random: &mut Random,
    ) -> Result<String, SealError> {
        let mut payload = head(1, bound.upstream);
        payload.extend_from_slice(state.unwrap_or_default().as_bytes());
        self.sealer.seal(claims, &payload, &bound.binding(), now, random.draw())
    }

    pub(super) fn handle(
        &self,
        claims: &NewClaims,
        (epoch, call): (&[u8; 16], u64),
        bound: &Bound<'_>,
        now: Timestamp,
        random: &mut Random,
    ) -> Result<String, SealError> {
        let mut payload = head(2, bound.upstream);
        payload.extend_from_slice(epoch);
        payload.extend_from_slice(&call.to_be_bytes());
        payload.extend_from_slice(&claims.round.to_be_bytes());
        self.sealer.seal(claims, &payload, &bound.binding(), now, random.draw())
    }

    pub(super) fn record(
        &self,
        claims: &NewClaims,
        record: &Record,
        bound: &Bound<'_>,
        now: Timestamp,
        random: &mut Random,
    ) -> Result<String, SealError> {
        let mut payload = head(3, bound.upstream);
        record.write(&mut payload);
        self.sealer.seal(claims, &payload, &bound.binding(), now, random.draw())
    }

    /// The upstream that a state is of; nothing, if it is not this principal's for this request.
    pub(super) fn origin(
        &self,
        token: &str,
        owner: &Owner,
        request: &[u8; 32],
        now: Timestamp,
    ) -> Option<Box<str>> {
        let binding = Binding { principal: owner.principal(), request };
        let opened = self.sealer.open(token, &binding, now).ok()?;
        read(&opened.payload).map(|(upstream, _)| upstream.into())
    }

    /// Opens a state of ours. That it is for this upstream is part of what is checked.
    pub(super) fn open(
        &self,
        token: &str,
        bound: &Bound<'_>,
        now: Timestamp,
    ) -> Result<OpenedState, Verdict> {
        let opened = self.sealer.open(token, &bound.binding(), now).map_err(|refused| refused.verdict)?;
        let (upstream, carried) = read(&opened.payload).ok_or(Verdict::Malformed)?;
        if upstream != bound.upstream {
            return Err(Verdict::OtherRequest);
        }
        Ok(OpenedState { claims: opened.claims, carried })
    }
}

fn head(kind: u8, upstream: &str) -> Vec<u8> {
    let mut payload = Vec::with_capacity(64 + upstream.len());
    payload.push(kind);
    // At most 64: names are checked.
    payload.push(u8::try_from(upstream.len()).unwrap_or(u8::MAX));
    payload.extend_from_slice(upstream.as_bytes());
    payload
}

fn read(payload: &[u8]) -> Option<(&str, Carried)> {
    let (&kind, rest) = payload.split_first()?;
    let (&length, rest) = rest.split_first()?;
    let (name, rest) = rest.split_at_checked(length.into())?;
    let name = core::str::from_utf8(name).ok()?;
    match kind {
        1 if rest.is_empty() => Some((name, Carried::Wrapped { state: None })),
        1 => {
            let text = core::str::from_utf8(rest).ok()?;
            let state = Json::parse(text, &Limits::default()).ok()?;
            (state.kind() == JsonKind::String).then(|| (name, Carried::Wrapped { state: Some(text.into()) }))
        }
        2 => {
            let (epoch, rest) = rest.split_first_chunk()?;
            let (call, round) = rest.split_first_chunk()?;
            let (call, round) = (u64::from_be_bytes(*call), u32::from_be_bytes(round.try_into().ok()?));
            Some((name, Carried::Handle { epoch: *epoch, call, round }))
        }
        3 => Some((name, Carried::Record(Record::read(rest)?))),
        _ => None,
    }
}
