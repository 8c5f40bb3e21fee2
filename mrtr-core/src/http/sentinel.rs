//! How text that is no plain header value stands in a header: `=?base64?…?=` (R-167, R-168).

use alloc::{borrow::Cow, format, string::String};

use base64::{Engine as _, engine::general_purpose::STANDARD};

use super::headers::{plain, trim};

const PREFIX: &str = "=?base64?";
const SUFFIX: &str = "?=";

/// Why a header value could not be decoded (R-166, R-168).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SentinelFault {
    /// A character that no header value may have.
    #[error("has characters other than visible ASCII, space and tab")]
    Characters,
    /// Between prefix and suffix stands no strict Base64.
    #[error("is marked as Base64 and is none (alphabet, padding)")]
    Base64,
    /// The Base64 decodes to something that is no UTF-8.
    #[error("is marked as Base64 of text and decodes to something else")]
    NotText,
}

/// A text as a header value: itself, or in Base64 if it is not ASCII, has control characters, begins or ends
/// with a space, or could be taken for an encoded value. Spaces inside stay; an empty text is an empty value.
///
/// ```
/// use mrtr_core::http::encode_value;
///
/// assert_eq!(encode_value("eu west"), "eu west");
/// assert_eq!(encode_value(" padded"), "=?base64?IHBhZGRlZA==?=");
/// ```
#[must_use]
pub fn encode_value(text: &str) -> Cow<'_, str> {
    let safe = text.bytes().all(|byte| matches!(byte, b' '..=b'~'))
        && trim(text.as_bytes()).len() == text.len()
        // Also where the two marks overlap: not every reader takes that for a literal.
        && !(text.starts_with(PREFIX) && text.ends_with(SUFFIX));
    if safe { Cow::Borrowed(text) } else { Cow::Owned(format!("{PREFIX}{}{SUFFIX}", STANDARD.encode(text))) }
}

/// The text that a header value stands for. White space around the value is not part of it.
///
/// Decoding is strict: the standard alphabet, full padding, no stray bits. A value without the exact prefix
/// **and** suffix is literal.
///
/// # Errors
///
/// What is wrong with the value.
pub fn decode_value(value: &[u8]) -> Result<Cow<'_, str>, SentinelFault> {
    let literal = plain(trim(value)).ok_or(SentinelFault::Characters)?;
    let Some(encoded) = literal.strip_prefix(PREFIX).and_then(|rest| rest.strip_suffix(SUFFIX)) else {
        return Ok(Cow::Borrowed(literal));
    };
    let bytes = STANDARD.decode(encoded).map_err(|_| SentinelFault::Base64)?;
    String::from_utf8(bytes).map(Cow::Owned).map_err(|_| SentinelFault::NotText)
}
