//! The id of a request.

use alloc::boxed::Box;

use super::{Json, JsonKind, write};

/// A JSON-RPC id: a string or an integer, never null, never a fraction.
///
/// It is echoed with the JSON type it came with: the integer 1 and the string "1" are two ids.
/// Integers of any size are kept to the digit; -0 is 0. A fraction is none even where its value is whole
/// (`1.0`, `1e2`), and a string with a lone surrogate is no text and so no id.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(Repr);

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Repr {
    Integer(i64),
    /// Digits of an integer beyond 64 bits, as they came.
    Big(Box<str>),
    Text(Box<str>),
}

impl RequestId {
    /// Reads an id; `None` if the value is neither a string nor an integer.
    #[must_use]
    pub fn from_json(value: Json<'_>) -> Option<Self> {
        match value.kind() {
            JsonKind::String => value.as_string().map(|text| Self(Repr::Text(text.into()))),
            JsonKind::Number => {
                let text = value.as_str();
                let digits = text.strip_prefix('-').unwrap_or(text);
                // The grammar is checked once more, because an id is also looked for in text that was not
                // admitted, and what is echoed must be JSON.
                let canonical = digits == "0" || digits.bytes().next().is_some_and(|first| first != b'0');
                if !canonical || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
                    return None;
                }
                Some(Self(text.parse().map_or_else(|_| Repr::Big(text.into()), Repr::Integer)))
            }
            JsonKind::Null | JsonKind::Bool | JsonKind::Array | JsonKind::Object => None,
        }
    }

    /// The integer, if it is one of at most 64 bits.
    #[must_use]
    pub fn as_i64(&self) -> Option<i64> {
        match self.0 {
            Repr::Integer(number) => Some(number),
            Repr::Big(_) | Repr::Text(_) => None,
        }
    }

    /// The string, if it is one.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        match &self.0 {
            Repr::Text(text) => Some(text),
            Repr::Integer(_) | Repr::Big(_) => None,
        }
    }

    /// Appends the id as JSON.
    pub fn write(&self, out: &mut alloc::vec::Vec<u8>) {
        match &self.0 {
            Repr::Integer(number) => write::integer(out, *number),
            Repr::Big(digits) => out.extend_from_slice(digits.as_bytes()),
            Repr::Text(text) => write::string(out, text),
        }
    }
}

impl From<i64> for RequestId {
    fn from(number: i64) -> Self {
        Self(Repr::Integer(number))
    }
}

impl From<&str> for RequestId {
    fn from(text: &str) -> Self {
        Self(Repr::Text(text.into()))
    }
}

/// Writes the id as it is, an integer and a string of the same digits alike; for JSON use
/// [`RequestId::write`].
impl core::fmt::Display for RequestId {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match &self.0 {
            Repr::Integer(number) => number.fmt(f),
            Repr::Big(text) | Repr::Text(text) => f.write_str(text),
        }
    }
}
