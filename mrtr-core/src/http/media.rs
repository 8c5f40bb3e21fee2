//! `Content-Type` and `Accept`.

use super::headers::{Headers, name, trim};

pub(super) const JSON: &str = "application/json";
pub(super) const EVENT_STREAM: &str = "text/event-stream";

/// The media type of a `Content-Type`, without its parameters.
pub(super) fn essence(content_type: &[u8]) -> &[u8] {
    trim(content_type.split(|byte| *byte == b';').next().unwrap_or_default())
}

/// Whether this is JSON in UTF-8, which is what a `charset` must say if there is one.
pub(super) fn is_json(content_type: &[u8]) -> bool {
    let utf8 = |value: &[u8]| {
        let value = value.strip_prefix(b"\"").and_then(|v| v.strip_suffix(b"\"")).unwrap_or(value);
        value.eq_ignore_ascii_case(b"utf-8") || value.eq_ignore_ascii_case(b"utf8")
    };
    essence(content_type).eq_ignore_ascii_case(JSON.as_bytes())
        && parameters(content_type).all(|(name, value)| !name.eq_ignore_ascii_case(b"charset") || utf8(value))
}

/// Whether this is an event stream.
pub(super) fn is_event_stream(content_type: &[u8]) -> bool {
    essence(content_type).eq_ignore_ascii_case(EVENT_STREAM.as_bytes())
}

/// What a client can read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Accepts {
    /// A body of `application/json`.
    pub json: bool,
    /// A body of `text/event-stream`.
    pub event_stream: bool,
}

impl Accepts {
    /// Both, as every client must.
    pub const BOTH: Self = Self { json: true, event_stream: true };

    /// Only JSON: notifications to this client are dropped, for there is no stream to carry them.
    pub const JSON: Self = Self { json: true, event_stream: false };

    /// Only event streams: results are sent as a stream of one event.
    pub const EVENT_STREAM: Self = Self { json: false, event_stream: true };

    /// Reads `Accept`. Without one, or with an empty one, everything is accepted.
    #[must_use]
    pub fn from_headers<H: Headers + ?Sized>(headers: &H) -> Self {
        let (mut json, mut stream, mut any) = (Rank::default(), Rank::default(), false);
        headers.get_all(name::ACCEPT, &mut |value| {
            for range in value.split(|byte| *byte == b',') {
                let media = essence(range);
                if media.is_empty() {
                    continue;
                }
                any = true;
                let refused =
                    parameters(range).any(|(name, value)| name.eq_ignore_ascii_case(b"q") && is_zero(value));
                json.see(media, JSON, b"application/*", !refused);
                stream.see(media, EVENT_STREAM, b"text/*", !refused);
            }
        });
        if any { Self { json: json.accepted, event_stream: stream.accepted } } else { Self::BOTH }
    }
}

/// The most specific range that named a type decides.
#[derive(Default)]
struct Rank {
    precision: u8,
    accepted: bool,
}

impl Rank {
    fn see(&mut self, media: &[u8], exact: &str, family: &[u8], accepted: bool) {
        let precision = if media.eq_ignore_ascii_case(exact.as_bytes()) {
            3
        } else if media.eq_ignore_ascii_case(family) {
            2
        } else {
            u8::from(media == b"*/*")
        };
        if precision > self.precision {
            *self = Self { precision, accepted };
        }
    }
}

fn is_zero(quality: &[u8]) -> bool {
    match quality {
        [b'0'] => true,
        [b'0', b'.', rest @ ..] => rest.iter().all(|digit| *digit == b'0'),
        _ => false,
    }
}

fn parameters(value: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    value.split(|byte| *byte == b';').skip(1).filter_map(|parameter| {
        let equals = parameter.iter().position(|byte| *byte == b'=')?;
        let (name, value) = parameter.split_at(equals);
        Some((trim(name), trim(value.get(1..)?)))
    })
}
