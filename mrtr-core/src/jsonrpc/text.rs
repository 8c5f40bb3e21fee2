//! What a string token says: escapes decoded, and two tokens compared without decoding them into memory.

use alloc::{borrow::Cow, string::String};
use core::cmp::Ordering;

use super::lex;

/// A string held a `\uD800`…`\uDFFF` escape without its partner: it names no text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LoneSurrogate;

/// What stands between the quotes of the string that opens at `at`, and whether it has no escapes.
pub(crate) fn inside(text: &str, at: usize) -> (&str, bool) {
    let (end, plain) = lex::skip_string_plain(text.as_bytes(), at);
    (text.get(at + 1..end.saturating_sub(1)).unwrap_or(""), plain)
}

/// Decodes a string token, quotes included. Borrowed when it has no escapes.
pub(crate) fn decode(token: &str) -> Result<Cow<'_, str>, LoneSurrogate> {
    decode_inside(token.get(1..token.len().saturating_sub(1)).unwrap_or(""))
}

/// Decodes what stands between the quotes of a string token.
pub(crate) fn decode_inside(inside: &str) -> Result<Cow<'_, str>, LoneSurrogate> {
    if !inside.contains('\\') {
        return Ok(Cow::Borrowed(inside));
    }
    let mut out = String::with_capacity(inside.len());
    for piece in pieces(inside) {
        match piece {
            Piece::Run(run) => out.push_str(run),
            Piece::Point(point) => out.push(char::from_u32(point).ok_or(LoneSurrogate)?),
        }
    }
    Ok(Cow::Owned(out))
}

/// A part of a string token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Piece<'a> {
    /// Text that stands for itself.
    Run(&'a str),
    /// What one escape (or two that are a surrogate pair) stands for: a code point, which is a scalar value
    /// unless it is a lone surrogate.
    Point(u32),
}

/// The parts of what stands between the quotes of a string token.
pub(crate) const fn pieces(inside: &str) -> Pieces<'_> {
    Pieces { rest: inside }
}

/// See [`pieces`].
#[derive(Clone, Debug)]
pub(crate) struct Pieces<'a> {
    rest: &'a str,
}

impl<'a> Iterator for Pieces<'a> {
    type Item = Piece<'a>;

    fn next(&mut self) -> Option<Piece<'a>> {
        if let Some(escape) = self.rest.strip_prefix('\\') {
            let (point, rest) = unescape(escape);
            self.rest = rest;
            return Some(Piece::Point(point));
        }
        let (run, rest) = self.rest.split_at_checked(self.rest.find('\\').unwrap_or(self.rest.len()))?;
        self.rest = rest;
        (!run.is_empty()).then_some(Piece::Run(run))
    }
}

/// The code point of an escape, given what follows its backslash, and what follows the escape. An escape that
/// is not valid stands for its own character.
fn unescape(escape: &str) -> (u32, &str) {
    let mut chars = escape.chars();
    let point = match chars.next().unwrap_or('\\') {
        'n' => 0x0a,
        't' => 0x09,
        'r' => 0x0d,
        'b' => 0x08,
        'f' => 0x0c,
        'u' => {
            let Some((unit, rest)) = hex4(chars.as_str()) else { return ('u'.into(), chars.as_str()) };
            if (0xd800..0xdc00).contains(&unit)
                && let Some((low @ 0xdc00..=0xdfff, rest)) = rest.strip_prefix("\\u").and_then(hex4)
            {
                return (0x1_0000 + ((unit - 0xd800) << 10) + (low - 0xdc00), rest);
            }
            return (unit, rest);
        }
        // `"`, `\` and `/` stand for themselves.
        other => other.into(),
    };
    (point, chars.as_str())
}

/// Four hexadecimal digits and what follows them.
fn hex4(text: &str) -> Option<(u32, &str)> {
    let (digits, rest) = text.split_at_checked(4)?;
    let value = digits.chars().try_fold(0, |value, digit| Some((value << 4) | digit.to_digit(16)?))?;
    Some((value, rest))
}

/// The code point at `at` inside a string, a boundary of characters and escapes, and where the next one
/// stands; `None` at the closing quote. Lone surrogates are code points here.
#[inline]
pub(crate) fn point(text: &str, at: usize) -> Option<(u32, usize)> {
    match text.as_bytes().get(at) {
        None | Some(b'"') => None,
        Some(b'\\') => {
            let (point, rest) = unescape(text.get(at + 1..)?);
            Some((point, text.len() - rest.len()))
        }
        Some(&byte @ ..0x80) => Some((byte.into(), at + 1)),
        Some(0x80..) => {
            let character = text.get(at..)?.chars().next()?;
            Some((character.into(), at + character.len_utf8()))
        }
    }
}

/// Orders two strings of `text`, given where they open, by what they decode to: by code point, which for text
/// is the order of its UTF-8 bytes. Lone surrogates are equal only to themselves.
///
/// Allocates nothing and looks no further than the first difference.
pub(crate) fn compare(text: &str, left: usize, right: usize) -> Ordering {
    let bytes = text.as_bytes();
    let (mut left, mut right) = (left + 1, right + 1);
    loop {
        let (Some(&a), Some(&b)) = (bytes.get(left), bytes.get(right)) else { return Ordering::Equal };
        if a == b'\\' || b == b'\\' {
            // Both sides are equal up to here and one goes on with ASCII: a boundary of characters in both.
            match (point(text, left), point(text, right)) {
                (Some((a, after_left)), Some((b, after_right))) if a == b => {
                    (left, right) = (after_left, after_right);
                }
                (a, b) => return a.cmp(&b),
            }
            continue;
        }
        match (a, b) {
            (b'"', b'"') => return Ordering::Equal,
            (b'"', _) => return Ordering::Less,
            (_, b'"') => return Ordering::Greater,
            _ if a != b => return a.cmp(&b),
            _ => (left, right) = (left + 1, right + 1),
        }
    }
}

/// Whether the string that opens at `at` decodes to `name`.
pub(crate) fn is(text: &str, at: usize, name: &str) -> bool {
    let from = at + 1;
    let end = from + name.len();
    if text.get(from..end) == Some(name) && !name.contains('\\') {
        // Escapes may follow, but none that stand for nothing.
        return text.as_bytes().get(end) == Some(&b'"');
    }
    let mut at = from;
    for character in name.chars() {
        match point(text, at) {
            Some((point, after)) if point == u32::from(character) => at = after,
            _ => return false,
        }
    }
    point(text, at).is_none()
}

#[cfg(test)]
mod tests {
    use alloc::{format, vec::Vec};

    use super::*;

    const TOKENS: [&str; 24] = [
        r#""""#,
        r#""a""#,
        // What is less than a quote, where another name ends with one.
        r#""a ""#,
        r#""a!""#,
        r#""\u0061""#,
        r#""ab""#,
        r#""a\u0062""#,
        r#""b""#,
        r#""\"""#,
        r#""\\""#,
        r#""\/""#,
        r#""/""#,
        r#""\n""#,
        r#""\u000A""#,
        r#""é""#,
        r#""\u00e9""#,
        r#""\uffff""#,
        "\"\u{ffff}\"",
        r#""\ud83d\ude00""#,
        r#""😀""#,
        r#""\ud83d""#,
        r#""\ude00\ud83d""#,
        r#""a\ud83dz""#,
        r#""a\ud83d""#,
    ];

    /// The code points, by a decoder of its own over UTF-16.
    fn reference(token: &str) -> Vec<u32> {
        let units: Vec<u16> = {
            let mut units = Vec::new();
            let mut chars = token[1..token.len() - 1].chars();
            while let Some(character) = chars.next() {
                let unit = match character {
                    '\\' => match chars.next().unwrap() {
                        'n' => 10,
                        'u' => {
                            let digits: String = chars.by_ref().take(4).collect();
                            u16::from_str_radix(&digits, 16).unwrap()
                        }
                        other => u16::try_from(u32::from(other)).unwrap(),
                    },
                    other => {
                        units.extend_from_slice(other.encode_utf16(&mut [0; 2]));
                        continue;
                    }
                };
                units.push(unit);
            }
            units
        };
        char::decode_utf16(units)
            .map(|unit| unit.map_or_else(|lone| u32::from(lone.unpaired_surrogate()), u32::from))
            .collect()
    }

    #[test]
    fn compares_as_the_decoded_code_points() {
        for left in TOKENS {
            for right in TOKENS {
                let text = format!("{left}{right}");
                let (a, b) = (reference(left), reference(right));
                assert_eq!(compare(&text, 0, left.len()), a.cmp(&b), "{left} {right}");
                let decoded = decode(right).ok();
                if let Some(name) = decoded.as_deref() {
                    assert_eq!(is(left, 0, name), a == b, "{left} {right}");
                }
            }
        }
    }

    #[test]
    fn decodes_what_is_text_and_nothing_else() {
        for token in TOKENS {
            let expected: Option<String> = reference(token).into_iter().map(char::from_u32).collect();
            assert_eq!(decode(token).ok().as_deref(), expected.as_deref(), "{token}");
        }
    }

    #[test]
    fn broken_tokens_do_not_panic() {
        for text in ["\"", "\"\\", "\"\\u", "\"\\u12", "\"\\ud83d\\u", "\"é\\", "", "\"\\é\"", "x"] {
            let _ = (
                decode(text),
                inside(text, 0).0.len(),
                compare(text, 0, 0),
                is(text, 0, "a"),
                point(text, 1),
            );
        }
    }
}
