//! The tokens of JSON text that is already known to be valid: finding where a string or a value ends.
//!
//! Nothing here recurses, so depth costs no stack; and every function is total: text that is not valid JSON
//! gives some wrong span, never a panic or an endless loop.

/// First position at or after `at` that is no JSON white space.
#[inline]
pub(crate) fn skip_space(text: &[u8], mut at: usize) -> usize {
    while matches!(text.get(at), Some(b' ' | b'\t' | b'\n' | b'\r')) {
        at += 1;
    }
    at
}

/// Where the white space begins that ends at `at`.
#[inline]
pub(crate) fn space_before(text: &[u8], mut at: usize) -> usize {
    while let Some(before) = at.checked_sub(1)
        && matches!(text.get(before), Some(b' ' | b'\t' | b'\n' | b'\r'))
    {
        at = before;
    }
    at
}

/// First position at or after `at` that holds a quote, a backslash or a control character, or the end: what
/// lies before it stands for itself inside a string.
///
/// Reads eight bytes at a time, for strings are most of a message, and more of them once a string is long.
#[inline]
pub(crate) fn skip_plain(text: &[u8], mut at: usize) -> usize {
    let long = at + 48;
    while let Some(word) = text.get(at..).and_then(|rest| rest.first_chunk::<8>()) {
        let found = special(u64::from_le_bytes(*word));
        if found != 0 {
            // The lowest flag is the first byte; `trailing_zeros` is at most 63.
            return at + (found.trailing_zeros() >> 3) as usize;
        }
        at += 8;
        if at == long {
            at = skip_blocks(text, at);
        }
    }
    while text.get(at).is_some_and(|byte| !matches!(byte, b'"' | b'\\' | 0..=0x1f)) {
        at += 1;
    }
    at
}

/// Skips blocks of which no byte ends a run: states and texts are long, names are not.
#[inline(never)]
fn skip_blocks(text: &[u8], mut at: usize) -> usize {
    while text.get(at..).and_then(|rest| rest.first_chunk::<32>()).is_some_and(is_plain) {
        at += 32;
    }
    at
}

/// Whether nothing in a block ends a run. Looks at all of it, without branches, so that the compiler takes vectors.
#[inline]
fn is_plain(block: &[u8; 32]) -> bool {
    let mut special = 0;
    for &byte in block {
        special |= u8::from(byte == b'"') | u8::from(byte == b'\\') | u8::from(byte < 0x20);
    }
    special == 0
}

/// The high bit of every byte of `word` that is a quote, a backslash or a control character. Bytes above the
/// lowest flagged one may be flagged wrongly (a borrow runs upwards), the lowest never is.
#[inline]
const fn special(word: u64) -> u64 {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGHS: u64 = 0x8080_8080_8080_8080;
    // What is subtracted from borrows where the byte is below; and no byte with its high bit set is looked for.
    let quote = (word ^ (ONES * 0x22)).wrapping_sub(ONES);
    let backslash = (word ^ (ONES * 0x5c)).wrapping_sub(ONES);
    let control = word.wrapping_sub(ONES * 0x20);
    (quote | backslash | control) & !word & HIGHS
}

/// End of the string whose opening quote is at `at` (one past the closing quote).
#[inline]
pub(crate) fn skip_string(text: &[u8], at: usize) -> usize {
    skip_rest(text, at + 1)
}

/// The same, and whether the string has no escapes.
#[inline]
pub(crate) fn skip_string_plain(text: &[u8], at: usize) -> (usize, bool) {
    let end = skip_plain(text, at + 1);
    if text.get(end) == Some(&b'"') { (end + 1, true) } else { (skip_rest(text, end), false) }
}

/// End of the string that `at` is inside of, at a boundary of characters and escapes.
#[inline]
pub(crate) fn skip_rest(text: &[u8], mut at: usize) -> usize {
    loop {
        at = skip_plain(text, at);
        match text.get(at) {
            Some(b'"') => return at + 1,
            Some(b'\\') => at += 2,
            Some(_) => at += 1,
            None => return text.len(),
        }
    }
}

/// End of the value that begins at `at`.
pub(crate) fn skip_value(text: &[u8], at: usize) -> usize {
    match text.get(at) {
        Some(b'"') => skip_string(text, at),
        Some(b'{' | b'[') => skip_container(text, at),
        Some(_) => {
            let mut at = at;
            while let Some(&byte) = text.get(at) {
                if matches!(byte, b',' | b'}' | b']' | b':' | b' ' | b'\t' | b'\n' | b'\r') {
                    break;
                }
                at += 1;
            }
            at
        }
        None => at,
    }
}

/// End of the array or object whose opening bracket is at `at`.
fn skip_container(text: &[u8], at: usize) -> usize {
    let mut depth = 0usize;
    let mut at = at;
    while let Some(&byte) = text.get(at) {
        match byte {
            b'"' => {
                at = skip_string(text, at);
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return at + 1;
                }
            }
            _ => {}
        }
        at += 1;
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every byte at every place, in words, in blocks and in what is left, against the definition.
    #[test]
    fn plain_runs_end_where_the_definition_says() {
        for byte in 0..=u8::MAX {
            for place in 0..130 {
                for filler in [b'a', 0x21, 0x23, 0x5b, 0x5d, 0x7f, 0x80, 0xff] {
                    let mut text = [filler; 130];
                    text[place] = byte;
                    let expected =
                        text.iter().position(|b| matches!(b, b'"' | b'\\' | 0..=0x1f)).unwrap_or(130);
                    assert_eq!(skip_plain(&text, 0), expected, "{byte:#x} at {place}");
                }
            }
        }
    }

    /// A whole block of what ends a run, whatever it is.
    #[test]
    fn nothing_but_ends_is_no_run() {
        for byte in (0..=u8::MAX).filter(|byte| matches!(byte, b'"' | b'\\' | 0..=0x1f)) {
            for plain in 0..130 {
                let mut text = [b'a'; 130];
                text[plain..].fill(byte);
                assert_eq!(skip_plain(&text, 0), plain, "{byte:#x} from {plain}");
            }
        }
    }

    /// Two at once, as far apart as may be: the first ends the run, in a block too.
    #[test]
    fn the_first_of_two_ends_a_run() {
        for first in 0..120 {
            for second in first + 1..130 {
                for (one, other) in [(b'"', b'"'), (b'"', b'\\'), (b'\n', 0)] {
                    let mut text = [b'a'; 130];
                    (text[first], text[second]) = (one, other);
                    assert_eq!(skip_plain(&text, 0), first, "{first} {second}");
                }
            }
        }
    }

    #[test]
    fn broken_text_gives_spans_inside_the_text() {
        for text in ["\"", "\"\\", "{", "[\"", "{\"a\":", "]", "", "\"a\\\"", "[[[", "{\"\\u"] {
            assert!(skip_value(text.as_bytes(), 0) <= text.len(), "{text}");
        }
    }
}
