//! The tokens of JSON text that is already known to be valid: finding where a value ends, reading strings.
//!
//! Nothing here recurses, so depth costs no stack; and every function is total: text that is not valid JSON
//! gives some wrong span, never a panic or an endless loop.

use alloc::{borrow::Cow, string::String};

/// First position at or after `at` that is no JSON white space.
pub(crate) fn skip_space(text: &[u8], mut at: usize) -> usize {
    while matches!(text.get(at), Some(b' ' | b'\t' | b'\n' | b'\r')) {
        at += 1;
    }
    at
}

/// End of the string whose opening quote is at `at` (one past the closing quote).
pub(crate) fn skip_string(text: &[u8], at: usize) -> usize {
    let mut at = at + 1;
    while let Some(&byte) = text.get(at) {
        match byte {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    text.len()
}

/// End of the value that begins at `at`.
pub(crate) fn skip_value(text: &[u8], at: usize) -> usize {
    match text.get(at) {
        Some(b'"') => skip_string(text, at),
        Some(b'{' | b'[') => {
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

/// A string held a `\uD800`…`\uDFFF` escape without its partner: it names no text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LoneSurrogate;

/// Decodes a string token, quotes included. Borrowed when it has no escapes.
pub(crate) fn decode_string(token: &str) -> Result<Cow<'_, str>, LoneSurrogate> {
    let inner = token.get(1..token.len().saturating_sub(1)).unwrap_or("");
    let Some(first) = inner.find('\\') else {
        return Ok(Cow::Borrowed(inner));
    };
    let mut out = String::with_capacity(inner.len());
    out.push_str(inner.get(..first).unwrap_or(""));
    let mut rest = inner.get(first..).unwrap_or("");
    while let Some(found) = rest.find('\\') {
        out.push_str(rest.get(..found).unwrap_or(""));
        rest = rest.get(found + 1..).unwrap_or("");
        let mut chars = rest.chars();
        let escape = chars.next().unwrap_or('\\');
        rest = chars.as_str();
        match escape {
            'n' => out.push('\n'),
            't' => out.push('\t'),
            'r' => out.push('\r'),
            'b' => out.push('\u{8}'),
            'f' => out.push('\u{c}'),
            'u' => {
                let (unit, after) = hex4(rest).ok_or(LoneSurrogate)?;
                rest = after;
                let scalar = match unit {
                    0xd800..=0xdbff => {
                        let low = rest.strip_prefix("\\u").and_then(hex4);
                        match low {
                            Some((low @ 0xdc00..=0xdfff, after)) => {
                                rest = after;
                                0x1_0000 + ((unit - 0xd800) << 10) + (low - 0xdc00)
                            }
                            _ => return Err(LoneSurrogate),
                        }
                    }
                    other => other,
                };
                out.push(char::from_u32(scalar).ok_or(LoneSurrogate)?);
            }
            // `"`, `\` and `/` stand for themselves.
            other => out.push(other),
        }
    }
    out.push_str(rest);
    Ok(Cow::Owned(out))
}

/// Four hexadecimal digits and what follows them.
fn hex4(text: &str) -> Option<(u32, &str)> {
    let digits = text.get(..4)?;
    if !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
        return None;
    }
    Some((u32::from_str_radix(digits, 16).ok()?, text.get(4..)?))
}
