//! The bounded pass over JSON text: grammar, depth, number of values, duplicate names (G-38, B-82).
//!
//! It never recurses, and what it allocates is proportional to the names of the objects that are open at one
//! time, never to the length of a string.

use alloc::vec::Vec;

use super::{Json, Refusal, lex, text};
use crate::limits::Limits;

/// Checks that `text` is one JSON value, white space around it allowed, and within the bounds.
pub(super) fn check_value<'a>(text: &'a str, limits: &Limits) -> Result<Json<'a>, Refusal> {
    let bytes = text.as_bytes();
    let mut frames: Vec<Frame> = Vec::with_capacity(16);
    let mut names = Names { text, places: Vec::with_capacity(32) };
    let mut nodes = 0usize;
    let start = lex::skip_space(bytes, 0);
    let mut at = start;
    let mut expect = Expect::Value;
    loop {
        at = lex::skip_space(bytes, at);
        let Some(&byte) = bytes.get(at) else { return Err(Refusal::Syntax { at }) };
        match (expect, byte) {
            (Expect::Name | Expect::NameOrEnd, b'"') => {
                names.places.push(at);
                at = lex::skip_space(bytes, check_string(bytes, at)?);
                if bytes.get(at) != Some(&b':') {
                    return Err(Refusal::Syntax { at });
                }
                at += 1;
                expect = Expect::Value;
                continue;
            }
            (Expect::NameOrEnd | Expect::CommaOrEnd, b'}')
            | (Expect::ValueOrEnd | Expect::CommaOrEnd, b']') => {
                match (frames.pop(), byte) {
                    (Some(Frame::Array), b']') => {}
                    (Some(Frame::Object { names_from }), b'}') => names.close(names_from)?,
                    _ => return Err(Refusal::Syntax { at }),
                }
                at += 1;
                expect = Expect::CommaOrEnd;
            }
            (Expect::CommaOrEnd, b',') => {
                expect = match frames.last() {
                    Some(Frame::Object { .. }) => Expect::Name,
                    Some(Frame::Array) => Expect::Value,
                    None => return Err(Refusal::Syntax { at }),
                };
                at += 1;
                continue;
            }
            (Expect::Value | Expect::ValueOrEnd, _) => {
                let open = matches!(byte, b'{' | b'[');
                let end = if open { at + 1 } else { check_scalar(bytes, at, byte)? };
                nodes += 1;
                if nodes > limits.nodes {
                    return Err(Refusal::TooManyNodes { limit: limits.nodes });
                }
                at = end;
                if open {
                    if frames.len() >= limits.depth {
                        return Err(Refusal::TooDeep { limit: limits.depth });
                    }
                    if byte == b'{' {
                        frames.push(Frame::Object { names_from: names.places.len() });
                        expect = Expect::NameOrEnd;
                    } else {
                        frames.push(Frame::Array);
                        expect = Expect::ValueOrEnd;
                    }
                    continue;
                }
                expect = Expect::CommaOrEnd;
            }
            (Expect::Name | Expect::NameOrEnd | Expect::CommaOrEnd, _) => {
                return Err(Refusal::Syntax { at });
            }
        }
        if frames.is_empty() {
            let rest = lex::skip_space(bytes, at);
            if rest != bytes.len() {
                return Err(Refusal::Syntax { at: rest });
            }
            return text.get(start..at).map(Json::trusted).ok_or(Refusal::Syntax { at: start });
        }
    }
}

/// What may stand at a position of the pass.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Expect {
    /// A value.
    Value,
    /// A value or `]`: just after `[`.
    ValueOrEnd,
    /// A name or `}`: just after `{`.
    NameOrEnd,
    /// A name: after a comma in an object.
    Name,
    /// A comma or the end of the container.
    CommaOrEnd,
}

/// A container that is still open: an array, or an object with the index of its first name.
#[derive(Clone, Copy)]
enum Frame {
    Array,
    Object { names_from: usize },
}

/// Where the names of all open objects stand, one object after another; an object's own are at the end when
/// it closes.
struct Names<'a> {
    text: &'a str,
    places: Vec<usize>,
}

impl Names<'_> {
    /// Closes the object whose names begin at the index `from`, unless two of them are the same.
    fn close(&mut self, from: usize) -> Result<(), Refusal> {
        let own = self.places.get_mut(from..).unwrap_or_default();
        let twice = |a: usize, b: usize| text::compare(self.text, a, b).is_eq();
        let second = match *own {
            [] | [_] => None,
            [a, b] => twice(a, b).then_some(b),
            _ => {
                own.sort_unstable_by(|&a, &b| text::compare(self.text, a, b).then(a.cmp(&b)));
                own.windows(2).find_map(|pair| match *pair {
                    [a, b] if twice(a, b) => Some(b),
                    _ => None,
                })
            }
        };
        self.places.truncate(from);
        second.map_or(Ok(()), |at| Err(Refusal::DuplicateName { at }))
    }
}

/// The end of a value that is neither array nor object and begins with `byte` at `at`.
fn check_scalar(bytes: &[u8], at: usize, byte: u8) -> Result<usize, Refusal> {
    match byte {
        b'"' => check_string(bytes, at),
        b't' => check_word(bytes, at, b"true"),
        b'f' => check_word(bytes, at, b"false"),
        b'n' => check_word(bytes, at, b"null"),
        b'-' | b'0'..=b'9' => check_number(bytes, at),
        _ => Err(Refusal::Syntax { at }),
    }
}

/// The end of a string token that begins at `at`.
fn check_string(bytes: &[u8], at: usize) -> Result<usize, Refusal> {
    let mut at = at + 1;
    loop {
        at = lex::skip_plain(bytes, at);
        match bytes.get(at) {
            Some(b'"') => return Ok(at + 1),
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
