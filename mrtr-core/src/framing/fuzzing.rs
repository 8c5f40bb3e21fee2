//! Laws of the decoders as functions of any bytes: the bodies of fuzz targets, and of property tests.
//!
//! The first byte of the input is the limit, the second says how many of the following bytes are the sizes of
//! the pieces; the rest is the stream.

use alloc::vec::Vec;

use super::{EventStreamDecoder, LineDecoder};

/// However a stream is cut, the lines are the same, and no more than the limit and one byte are held.
///
/// # Panics
///
/// If the law is broken.
pub fn lines_of_any_split(input: &[u8]) {
    let (limit, sizes, stream) = parts(input);
    let decode = |pieces: &mut dyn Iterator<Item = &[u8]>| {
        let mut decoder = LineDecoder::new(limit);
        let mut lines = Vec::new();
        for piece in pieces {
            decoder.push(piece);
            while let Some(line) = decoder.next() {
                lines.push(line.map(<[u8]>::to_vec));
            }
            assert!(decoder.buffered() <= limit + 1, "holds {} bytes", decoder.buffered());
        }
        lines.extend(decoder.finish().map(|line| line.map(<[u8]>::to_vec)));
        lines
    };
    let whole = decode(&mut core::iter::once(stream));
    assert_eq!(whole, decode(&mut pieces(sizes, stream)));
    assert!(whole.iter().flatten().all(|line| line.len() <= limit && !line.contains(&b'\n')));
}

/// However a stream is cut, the events are the same, and what is held stays bounded.
///
/// # Panics
///
/// If the law is broken.
pub fn events_of_any_split(input: &[u8]) {
    let (limit, sizes, stream) = parts(input);
    let decode = |pieces: &mut dyn Iterator<Item = &[u8]>| {
        let mut decoder = EventStreamDecoder::new(limit);
        let mut events = Vec::new();
        for piece in pieces {
            decoder.push(piece);
            while let Some(event) = decoder.next() {
                events.push(event.map(|event| (event.data.to_vec(), event.kind.to_vec(), event.id.to_vec())));
            }
            // The data of an event, a line, `event`, and `id` twice.
            let bound = 2 * limit + 8 + 3 * 1024;
            assert!(decoder.buffered() <= bound, "holds {} bytes", decoder.buffered());
        }
        (events, decoder.last_event_id().to_vec(), decoder.retry())
    };
    let whole = decode(&mut core::iter::once(stream));
    assert_eq!(whole, decode(&mut pieces(sizes, stream)));
    assert!(whole.0.iter().flatten().all(|(data, ..)| data.len() <= limit));
}

fn parts(input: &[u8]) -> (usize, &[u8], &[u8]) {
    let limit = input.first().map_or(0, |byte| usize::from(*byte));
    let count = input.get(1).map_or(0, |byte| usize::from(*byte));
    let rest = input.get(2..).unwrap_or_default();
    let (sizes, stream) = rest.split_at(count.min(rest.len()));
    (limit, sizes, stream)
}

/// The stream in pieces of these sizes, again and again (0 is an empty piece); without sizes in one piece.
fn pieces<'a>(sizes: &'a [u8], mut stream: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
    let endless = sizes.iter().all(|size| *size == 0);
    let mut sizes = sizes.iter().cycle();
    core::iter::from_fn(move || {
        if stream.is_empty() {
            return None;
        }
        let size = if endless { stream.len() } else { usize::from(*sizes.next()?).min(stream.len()) };
        let (piece, rest) = stream.split_at(size);
        stream = rest;
        Some(piece)
    })
}
