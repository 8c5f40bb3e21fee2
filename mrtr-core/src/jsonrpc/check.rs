//! The bounded pass over JSON text: grammar, depth, number of values, duplicate names (G-38, B-82).
//!
//! It never recurses, and what it allocates is proportional to the names of the objects that are open at one
//! time, never to the length of a string. For ordinary messages that is nothing.

use super::{
    Json, Refusal,
    ended::{Ended, Place},
    lex, names,
    stack::Stack,
};
use crate::limits::Limits;

/// Checks that `text` is one JSON value, white space around it allowed, and within the bounds.
pub(super) fn check_value<'a>(text: &'a str, limits: &Limits) -> Result<Json<'a>, Refusal> {
    check_objects(text, limits, &mut |_| {})
}

/// Does the same, and calls `ended` with the object at the top and before that with those that are values of its
/// members, each where it ends. What was seen counts only if the whole is good.
pub(super) fn check_objects<'a>(
    text: &'a str,
    limits: &Limits,
    ended: &mut dyn FnMut(Ended<'_, 'a>),
) -> Result<Json<'a>, Refusal> {
    let mut pass =
        Pass { bytes: text.as_bytes(), inner: Frame::Nothing, names: Names { text, places: Stack::new() } };
    // The containers around the innermost open one, and how many are open.
    let mut outer = Stack::<Frame, 16>::new();
    let mut depth = 0usize;
    let mut nodes = 0usize;
    let start = lex::skip_space(pass.bytes, 0);
    let mut at = start;
    loop {
        // A value begins at `at`.
        let Some(&byte) = pass.bytes.get(at) else { return Err(Refusal::Syntax { at }) };
        let open = matches!(byte, b'{' | b'[');
        let end = match byte {
            b'"' => check_string(pass.bytes, at)?.0,
            b'{' | b'[' => at + 1,
            _ => check_scalar(pass.bytes, at, byte)?,
        };
        nodes += 1;
        if nodes > limits.nodes {
            return Err(Refusal::TooManyNodes { limit: limits.nodes });
        }
        at = end;
        if open {
            if depth >= limits.depth {
                return Err(Refusal::TooDeep { limit: limits.depth });
            }
            outer.push(pass.inner);
            depth += 1;
            at = lex::skip_space(pass.bytes, at);
            let close = if byte == b'{' {
                pass.inner =
                    Frame::Object(Object { names_from: pass.names.places.len(), seen: Seen::default() });
                b'}'
            } else {
                pass.inner = Frame::Array;
                b']'
            };
            if pass.bytes.get(at) != Some(&close) {
                if byte == b'{' {
                    at = pass.name(at)?;
                }
                continue;
            }
        }
        // A value has ended, or a container ends at `at`: go on to the next value.
        loop {
            if depth == 0 {
                let rest = lex::skip_space(pass.bytes, at);
                if rest != pass.bytes.len() {
                    return Err(Refusal::Syntax { at: rest });
                }
                return text.get(start..at).map(Json::trusted).ok_or(Refusal::Syntax { at: start });
            }
            at = lex::skip_space(pass.bytes, at);
            match (pass.inner, pass.bytes.get(at)) {
                (Frame::Object(_), Some(b',')) => {
                    at = pass.name(lex::skip_space(pass.bytes, at + 1))?;
                    break;
                }
                (Frame::Array, Some(b',')) => {
                    at = lex::skip_space(pass.bytes, at + 1);
                    break;
                }
                (Frame::Object(object), Some(b'}')) => {
                    if depth <= 2 {
                        pass.names.show(object, depth, at, ended);
                    }
                    pass.names.close(object)?;
                }
                (Frame::Array, Some(b']')) => {}
                _ => return Err(Refusal::Syntax { at }),
            }
            pass.inner = outer.pop().unwrap_or_default();
            depth -= 1;
            at += 1;
        }
    }
}

/// What is known of the containers that are open.
struct Pass<'a> {
    bytes: &'a [u8],
    /// The innermost one.
    inner: Frame,
    names: Names<'a>,
}

impl Pass<'_> {
    /// Reads the name that must begin at `at` and the colon. Gives where the value begins.
    #[inline(always)]
    fn name(&mut self, at: usize) -> Result<usize, Refusal> {
        if self.bytes.get(at) != Some(&b'"') {
            return Err(Refusal::Syntax { at });
        }
        let (end, plain) = check_string(self.bytes, at)?;
        if let Frame::Object(object) = &mut self.inner {
            object.seen.add(self.bytes, at, end, plain);
        }
        self.names.places.push(Place { at, end: if plain == Plain::Yes { end } else { at } });
        let colon = lex::skip_space(self.bytes, end);
        if self.bytes.get(colon) != Some(&b':') {
            return Err(Refusal::Syntax { at: colon });
        }
        Ok(lex::skip_space(self.bytes, colon + 1))
    }
}

/// A container that is still open, or what is around the outermost.
///
/// Of whole words, and without padding: these are pushed and popped for every container, and a copy in pieces of other
/// sizes than those it was written in makes the processor wait.
#[derive(Clone, Copy, Default)]
#[repr(u64)]
enum Frame {
    #[default]
    Nothing,
    Array,
    Object(Object),
}

/// An object that is still open.
#[derive(Clone, Copy)]
struct Object {
    /// The index of its first name.
    names_from: usize,
    seen: Seen,
}

/// Whether the names so far may contain one twice: a set of 64 buckets, all of them once a bucket is hit again. Most
/// objects have few names, and no doubt saves comparing them.
#[derive(Clone, Copy, Default)]
struct Seen(u64);

impl Seen {
    const DOUBT: Self = Self(u64::MAX);

    /// Adds the name whose quotes are at `at` and just before `end`; `plain` if it has no escapes.
    #[inline(always)]
    fn add(&mut self, bytes: &[u8], at: usize, end: usize, plain: Plain) {
        let length = end - at - 2;
        // The last eight bytes, or, if there are fewer, those with what stands before them shifted away.
        let tail = bytes.get(end.saturating_sub(9)..end - 1).and_then(|tail| tail.first_chunk::<8>());
        let (Plain::Yes, Some(tail)) = (plain, tail) else {
            *self = Self::DOUBT;
            return;
        };
        let mut tail = u64::from_le_bytes(*tail);
        if length < 8 {
            // By at most 64 bits, in two halves because 64 at once is no shift.
            tail = (tail >> (4 * (8 - length))) >> (4 * (8 - length));
        }
        let mixed = (tail ^ length as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let bucket = 1 << (mixed >> 58);
        *self = if self.0 & bucket == 0 { Self(self.0 | bucket) } else { Self::DOUBT };
    }

    /// Whether a name may stand there twice.
    fn doubtful(self) -> bool {
        self.0 == Self::DOUBT.0
    }
}

/// Where the names of all open objects stand, one object after another; an object's own are at the end when
/// it closes.
struct Names<'a> {
    text: &'a str,
    places: Stack<Place, 32>,
}

impl<'a> Names<'a> {
    /// Shows an object that is the one at the top, or in it, and closes at `end`.
    #[inline(never)]
    fn show(&self, object: Object, depth: usize, end: usize, ended: &mut dyn FnMut(Ended<'_, 'a>)) {
        let places = self.places.as_slice();
        let name = object.names_from.checked_sub(1).and_then(|last| places.get(last)).copied();
        // What is in an array at the top is no member's value.
        if name.is_some() == (depth == 2) {
            let names = places.get(object.names_from..).unwrap_or_default();
            ended(Ended { text: self.text, name, names, end });
        }
    }

    /// Closes an object, unless two of its names are the same.
    fn close(&mut self, object: Object) -> Result<(), Refusal> {
        let second = if object.seen.doubtful() {
            let own = self.places.as_mut_slice().get_mut(object.names_from..).unwrap_or_default();
            names::sort(self.text, own, |name| name.at)
        } else {
            None
        };
        self.places.truncate(object.names_from);
        second.map_or(Ok(()), |at| Err(Refusal::DuplicateName { at }))
    }
}

/// The end of a value that is no array, object or string and begins with `byte` at `at`.
fn check_scalar(bytes: &[u8], at: usize, byte: u8) -> Result<usize, Refusal> {
    match byte {
        b't' => check_word(bytes, at, b"true"),
        b'f' => check_word(bytes, at, b"false"),
        b'n' => check_word(bytes, at, b"null"),
        b'-' | b'0'..=b'9' => check_number(bytes, at),
        _ => Err(Refusal::Syntax { at }),
    }
}

/// Whether a string stands for itself: has no escapes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Plain {
    Yes,
    No,
}

/// The end of a string token that begins at `at`. Most have no escapes, and most of a message is strings: what they
/// cost is a call less.
#[inline(always)]
fn check_string(bytes: &[u8], at: usize) -> Result<(usize, Plain), Refusal> {
    let end = lex::skip_plain(bytes, at + 1);
    if bytes.get(end) == Some(&b'"') { Ok((end + 1, Plain::Yes)) } else { check_escapes(bytes, end) }
}

/// The end of a string of which all before `at` is good.
#[cold]
fn check_escapes(bytes: &[u8], mut at: usize) -> Result<(usize, Plain), Refusal> {
    loop {
        match bytes.get(at) {
            Some(b'"') => return Ok((at + 1, Plain::No)),
            Some(b'\\') => match bytes.get(at + 1) {
                Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => at += 2,
                Some(b'u') => {
                    let digits = bytes.get(at + 2..at + 6);
                    if !digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit)) {
                        return Err(Refusal::Syntax { at });
                    }
                    at += 6;
                }
                Some(_) | None => return Err(Refusal::Syntax { at }),
            },
            Some(_) | None => return Err(Refusal::Syntax { at }),
        }
        at = lex::skip_plain(bytes, at);
    }
}

fn check_word(bytes: &[u8], at: usize, word: &[u8]) -> Result<usize, Refusal> {
    if bytes.get(at..at + word.len()) == Some(word) {
        Ok(at + word.len())
    } else {
        Err(Refusal::Syntax { at })
    }
}

/// The end of a number: an optional minus, digits without a leading zero, a fraction, an exponent.
fn check_number(bytes: &[u8], at: usize) -> Result<usize, Refusal> {
    let digits = |from: usize| {
        let mut end = from;
        while bytes.get(end).is_some_and(u8::is_ascii_digit) {
            end += 1;
        }
        if end == from { Err(Refusal::Syntax { at: from }) } else { Ok(end) }
    };
    let first = if bytes.get(at) == Some(&b'-') { at + 1 } else { at };
    let mut end = digits(first)?;
    if bytes.get(first) == Some(&b'0') && end > first + 1 {
        return Err(Refusal::Syntax { at: first + 1 });
    }
    if bytes.get(end) == Some(&b'.') {
        end = digits(end + 1)?;
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        end = digits(end + 1 + sign)?;
    }
    Ok(end)
}
