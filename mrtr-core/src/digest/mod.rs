//! Digests of JSON by value: equal for every way to write a value, different for different values (G-09, B-25).
//!
//! A state is bound to the arguments it was minted for, and an answer to the question it was given for. Both
//! go through peers that parse JSON and write it again: members change places, `é` becomes `\u00e9`, `1.0`
//! becomes `1`. None of that may change a digest, and everything else must. RFC 8785 cannot serve: it rounds
//! numbers to doubles, so that 9007199254740992 and 9007199254740993 have one text. Here no number is rounded
//! and no text is built; the hash goes over the structure.
//!
//! # The format
//!
//! `‖` joins bytes, `u64` is eight bytes and `i64` eight bytes in two's complement, the most significant
//! first. Text is UTF-8 with all escapes decoded. A value is encoded as `E(value) = tag ‖ u64 length ‖ content`:
//!
//! | value | tag | content |
//! |---|---|---|
//! | `null` | `n` | nothing |
//! | `false` | `f` | nothing |
//! | `true` | `t` | nothing |
//! | zero, of either sign | `d` | nothing |
//! | any other number | `d` | sign ‖ `i64` exponent ‖ digits |
//! | string | `s` | its text |
//! | array | `a` | SHA-256(`a` ‖ `u64` number of elements ‖ E(first) ‖ …) |
//! | object | `o` | SHA-256(`o` ‖ `u64` number of members ‖ `u64` length of name ‖ name ‖ E(value) ‖ …) |
//!
//! Sign is `+` or `-`. Digits are ASCII, from the first that is not 0 to the last that is not 0; the number
//! is the digits as an integer times ten to the exponent: 120.50 is `+`, −1, `1205`. Members are sorted by the
//! bytes of their names.
//!
//! The structural digest of an array or object is the content above (32 bytes); of any other value it is
//! SHA-256(E(value)). The other two are
//!
//! ```text
//! request:     SHA-256("mrtr/v1/request" ‖ u64 length ‖ method ‖ u64 length ‖ target ‖ structural(arguments))
//! fingerprint: SHA-256("mrtr/v1/ask" ‖ kind, 1 byte ‖ structural(params without `_meta`))
//! ```
//!
//! where kind is 1 form, 2 url, 3 sampling, 4 roots, and absent arguments or params are `{}`. A fingerprint does not
//! name the exchange: the sealed state it stands in does. So it can be taken once for a form that is asked in every run
//! of every exchange; and as nothing salts it, it is not cut short, for two questions with one fingerprint could be
//! looked for at leisure.
//!
//! # What has no digest
//!
//! A string or name with a lone surrogate (it is no text, and peers replace it by different characters), and a
//! number whose exponent, as written, has more than ten digits or is beyond ±10^9. Such a request gets
//! `-32602` ([`DigestFault::error`]).
//!
//! # Cost
//!
//! One pass over the text without recursion; O(n log n) in the members of an object, whatever their names have
//! in common; at most 25 bytes hashed for each byte of text; 24 bytes of memory for each member or element of
//! the containers that are open at one time, and 40 more for those of one object with many members while they
//! are sorted. What is allocated for a value of a few members is nothing.

use sha2::{Digest as _, Sha256};

use crate::{error::RpcError, jsonrpc::Json, wire::AskKind};

mod number;
mod walk;

/// Why a value has no digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DigestFault {
    /// A number's exponent has more than ten digits as written, or is beyond ±10^9.
    #[error("a number's exponent is out of bounds: byte {at}")]
    Number {
        /// Offset of the number in the text of the value.
        at: usize,
    },
    /// A string or a name holds a lone surrogate.
    #[error("a string is no text (a lone surrogate): byte {at}")]
    LoneSurrogate {
        /// Offset of the string in the text of the value.
        at: usize,
    },
}

impl DigestFault {
    /// What to tell the peer: `-32602`. It says what is wrong and where, and repeats nothing.
    #[must_use]
    pub fn error(&self) -> RpcError {
        RpcError::invalid_params(alloc::format!("Invalid params: {self}"))
    }
}

/// The structural digest of a value. If several parts of it have none, any of them is reported.
///
/// # Errors
///
/// If a part of the value has no digest.
pub fn structural(value: Json<'_>) -> Result<[u8; 32], DigestFault> {
    walk::hash(value, None)
}

/// What a state is bound to of the request it was minted for: method, target and arguments (G-09).
///
/// Nothing that may change between the attempts of one exchange goes in: no id, no `_meta`, no
/// `inputResponses`, no `requestState`, no capabilities (B-24). [`Debug`](core::fmt::Debug) shows nothing,
/// because arguments of few possible values could be found by trying.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct RequestDigest([u8; 32]);

impl RequestDigest {
    /// Digests a request. `target` is the name of the tool or prompt, or the uri of the resource; absent
    /// `arguments` are the same as `{}`.
    ///
    /// ```
    /// use mrtr_core::{Limits, digest::RequestDigest, jsonrpc::Json};
    ///
    /// let limits = Limits::default();
    /// let digest = |arguments| {
    ///     let arguments = Json::parse(arguments, &limits).expect("valid JSON");
    ///     RequestDigest::new("tools/call", "transfer", Some(arguments)).expect("within bounds")
    /// };
    /// assert_eq!(digest(r#"{"to": "é", "amount": 10}"#), digest(r#"{"amount":1e1,"to":"\u00e9"}"#));
    /// assert_ne!(digest(r#"{"amount":9007199254740992}"#), digest(r#"{"amount":9007199254740993}"#));
    /// ```
    ///
    /// # Errors
    ///
    /// If a part of the arguments has no digest: answer with [`DigestFault::error`].
    pub fn new(method: &str, target: &str, arguments: Option<Json<'_>>) -> Result<Self, DigestFault> {
        let arguments = structural(arguments.unwrap_or(Json::EMPTY_OBJECT))?;
        let mut hash = Sha256::new();
        hash.update(b"mrtr/v1/request");
        for text in [method, target] {
            hash.update(u64::try_from(text.len()).unwrap_or(u64::MAX).to_be_bytes());
            hash.update(text);
        }
        hash.update(arguments);
        Ok(Self(hash.finalize().into()))
    }

    /// The digest.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl core::fmt::Debug for RequestDigest {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("RequestDigest(..)")
    }
}

/// What a person saw when they were asked: an answer counts only for a question with the same fingerprint.
///
/// It covers the kind and the params except their `_meta`, which may change when the question is sent again.
/// [`Debug`](core::fmt::Debug) shows nothing.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fingerprint([u8; 32]);

impl Fingerprint {
    /// Takes the fingerprint of an ask. Absent `params` (only `roots/list` may lack them) are the same as `{}`.
    ///
    /// # Errors
    ///
    /// If a part of the params, other than `_meta`, has no digest.
    pub fn new(kind: AskKind, params: Option<Json<'_>>) -> Result<Self, DigestFault> {
        walk::hash(params.unwrap_or(Json::EMPTY_OBJECT), Some("_meta")).map(|params| Self::of(kind, &params))
    }

    /// The fingerprint of a form with this message, given the structural digest of its schema.
    pub(crate) fn of_form(message: &str, requested: &[u8; 32]) -> Self {
        Self::of(AskKind::Form, &walk::hash_form(message, requested))
    }

    fn of(kind: AskKind, params: &[u8; 32]) -> Self {
        let hash =
            Sha256::new().chain_update(b"mrtr/v1/ask").chain_update([kind.code()]).chain_update(params);
        Self(hash.finalize().into())
    }

    /// The fingerprint that was stored as these bytes.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The bytes to store.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl core::fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Fingerprint(..)")
    }
}
