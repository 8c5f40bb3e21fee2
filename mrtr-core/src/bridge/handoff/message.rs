//! The bytes that cross between processes.

use alloc::vec::Vec;

use crate::{http::ReplyClass, seal::Principal, time::Timestamp};

/// Bytes before the sealed ones.
const HEAD: usize = 58;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Request = 1,
    Ack = 2,
    Message = 3,
    Cancel = 4,
    Alive = 5,
    Waiting = 6,
    Full = 7,
}

impl Kind {
    const ALL: [Self; 7] =
        [Self::Request, Self::Ack, Self::Message, Self::Cancel, Self::Alive, Self::Waiting, Self::Full];
}

/// What stands before the sealed bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) to: [u8; 16],
    pub(super) from: [u8; 16],
    pub(super) call: u64,
    pub(super) round: u32,
    pub(super) number: u64,
    pub(super) turn: u32,
}

impl Head {
    pub(super) fn bytes(&self, kind: Kind) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEAD);
        bytes.extend_from_slice(&[1, kind as u8]);
        bytes.extend_from_slice(&self.to);
        bytes.extend_from_slice(&self.from);
        bytes.extend_from_slice(&self.call.to_be_bytes());
        bytes.extend_from_slice(&self.round.to_be_bytes());
        bytes.extend_from_slice(&self.number.to_be_bytes());
        bytes.extend_from_slice(&self.turn.to_be_bytes());
        bytes
    }

    pub(super) fn read(bytes: &[u8]) -> Option<(Kind, Self, &[u8])> {
        let ([1, kind], rest) = bytes.split_first_chunk::<2>().map(|(head, rest)| (*head, rest))? else {
            return None;
        };
        let kind = Kind::ALL.into_iter().find(|known| *known as u8 == kind)?;
        let (to, rest) = rest.split_first_chunk()?;
        let (from, rest) = rest.split_first_chunk()?;
        let (call, rest) = rest.split_first_chunk()?;
        let (round, rest) = rest.split_first_chunk()?;
        let (number, rest) = rest.split_first_chunk()?;
        let (turn, sealed) = rest.split_first_chunk()?;
        let head = Self {
            to: *to,
            from: *from,
            call: u64::from_be_bytes(*call),
            round: u32::from_be_bytes(*round),
            number: u64::from_be_bytes(*number),
            turn: u32::from_be_bytes(*turn),
        };
        Some((kind, head, sealed))
    }
}

/// Principal and request, as they stay the same however often they are sent.
pub(super) fn request(principal: Principal<'_>, request: &str) -> Vec<u8> {
    let mut payload = Vec::with_capacity(request.len() + 64);
    match principal {
        Principal::Anonymous => payload.push(0),
        Principal::Authenticated(name) => {
            payload.push(1);
            payload.extend_from_slice(&u32::try_from(name.len()).unwrap_or(u32::MAX).to_be_bytes());
            payload.extend_from_slice(name);
        }
    }
    payload.extend_from_slice(request.as_bytes());
    payload
}

pub(super) fn sent_at(now: Timestamp, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(payload.len() + 8);
    bytes.extend_from_slice(&now.as_unix_millis().to_be_bytes());
    bytes.extend_from_slice(payload);
    bytes
}

/// When it was sent, for whom, and what.
pub(super) fn read_request(opened: &[u8]) -> Option<(Timestamp, Principal<'_>, &[u8])> {
    let (sent, rest) = opened.split_first_chunk()?;
    let sent = Timestamp::from_unix_millis(u64::from_be_bytes(*sent));
    let (&known, rest) = rest.split_first()?;
    if known == 0 {
        return Some((sent, Principal::Anonymous, rest));
    }
    let (length, rest) = rest.split_first_chunk()?;
    let length = usize::try_from(u32::from_be_bytes(*length)).ok()?;
    let (name, request) = rest.split_at_checked(length)?;
    Some((sent, Principal::Authenticated(name), request))
}

/// A message for a host, and what it is if it is the last.
pub(super) fn message(bytes: &[u8], last: Option<ReplyClass>) -> Vec<u8> {
    let mut payload = Vec::with_capacity(bytes.len() + 2);
    payload.extend_from_slice(&[u8::from(last.is_some()), last.map_or(0, class_code)]);
    payload.extend_from_slice(bytes);
    payload
}

pub(super) fn read_message(opened: &[u8]) -> Option<(&[u8], Option<ReplyClass>)> {
    let ([last, class], bytes) = opened.split_first_chunk::<2>()?;
    Some((bytes, (*last != 0).then(|| class_from(*class))))
}

const CLASSES: [ReplyClass; 6] = [
    ReplyClass::Internal,
    ReplyClass::Result,
    ReplyClass::HandlerError,
    ReplyClass::MissingCapability,
    ReplyClass::MethodNotFound,
    ReplyClass::InvalidRequest,
];

fn class_code(class: ReplyClass) -> u8 {
    CLASSES.iter().position(|known| *known == class).and_then(|index| u8::try_from(index).ok()).unwrap_or(0)
}

fn class_from(code: u8) -> ReplyClass {
    CLASSES.get(usize::from(code)).copied().unwrap_or(ReplyClass::Internal)
}
