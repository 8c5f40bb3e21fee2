//! Sealed bytes as text: base64url without padding, in its one canonical spelling.

use alloc::{string::String, vec, vec::Vec};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use zeroize::Zeroizing;

use super::verdict::Verdict;

/// The number of characters that `bytes` bytes take.
pub(super) const fn text_len(bytes: usize) -> usize {
    bytes / 3 * 4
        + match bytes % 3 {
            0 => 0,
            1 => 2,
            _ => 3,
        }
}

pub(super) fn encode(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// Appends the text of `bytes`.
pub(super) fn append(bytes: &[u8], out: &mut Vec<u8>) {
    let from = out.len();
    out.resize(from + text_len(bytes.len()), 0);
    // The place is as long as the text.
    let written = URL_SAFE_NO_PAD.encode_slice(bytes, out.get_mut(from..).unwrap_or_default());
    debug_assert_eq!(written, Ok(out.len() - from));
}

/// Decodes a token of at most `limit` characters; the length is looked at before anything else (B-27).
///
/// Refused are padding, white space, the other alphabet and a last character with unused bits set (B-19).
pub(super) fn decode(token: &str, limit: usize) -> Result<Zeroizing<Vec<u8>>, Verdict> {
    if token.len() > limit {
        return Err(Verdict::TooLarge);
    }
    let whole = token.len() / 4 * 3;
    let mut bytes = Zeroizing::new(match token.len() % 4 {
        0 => vec![0; whole],
        2 => vec![0; whole + 1],
        3 => vec![0; whole + 2],
        _ => return Err(Verdict::Malformed),
    });
    match URL_SAFE_NO_PAD.decode_slice(token, &mut bytes) {
        Ok(written) if written == bytes.len() => Ok(bytes),
        Ok(_) | Err(_) => Err(Verdict::Malformed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // B-19, trap 20: one text for one sequence of bytes. All texts of up to three characters, and their like.
    #[test]
    fn what_decodes_is_what_would_be_encoded() {
        let characters = b"AQgwBCEz_-+/= \n\t.9";
        let mut texts = vec![String::new()];
        for _ in 0..3 {
            let longer = texts
                .iter()
                .flat_map(|text| characters.iter().map(move |&c| alloc::format!("{text}{}", char::from(c))));
            texts = longer.chain([String::new()]).collect();
            for text in &texts {
                for text in [text.clone(), alloc::format!("AAAA{text}")] {
                    if let Ok(bytes) = decode(&text, 99) {
                        assert_eq!(encode(&bytes), text);
                    }
                }
            }
        }
    }

    #[test]
    fn lengths_agree() {
        for bytes in 0..300 {
            let text = encode(&vec![7; bytes]);
            assert_eq!(text.len(), text_len(bytes));
            let mut appended = vec![b'x'];
            append(&vec![7; bytes], &mut appended);
            assert_eq!(appended, alloc::format!("x{text}").into_bytes());
            assert_eq!(decode(&text, text.len()).map(|decoded| decoded.len()), Ok(bytes));
            assert_eq!(decode(&text, text.len().wrapping_sub(1)).is_ok(), bytes == 0, "{bytes}");
        }
    }
}
