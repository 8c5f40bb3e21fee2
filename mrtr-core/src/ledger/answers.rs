//! Which answers a retry brings: the digest that tells two retries with one state apart (B2).

use alloc::{string::String, vec::Vec};
use core::fmt;

use sha2::{Digest as _, Sha256};

use crate::{digest::structural, error::RpcError, jsonrpc::Json};

/// The digest of the effective answers of one retry; see [`effective_digest`].
///
/// `Debug` does not show it: an answer is often one of few ("accept", "decline"), so whoever knows the digest
/// can find the answer by trying.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct AnswersDigest([u8; 32]);

impl AnswersDigest {
    /// A digest made elsewhere; it must be equal for two retries exactly if their effective answers are.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Its bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Debug for AnswersDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AnswersDigest(..)")
    }
}

/// An answer has no digest: it holds a string that is no text, or a number out of bounds.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the answer under {key:?} holds a string that is no text or a number that is out of bounds")]
#[non_exhaustive]
pub struct Undigestible {
    /// The outstanding key it came under.
    pub key: String,
}

impl Undigestible {
    /// `-32602` that names the key; nothing has run and nothing is consumed (A5, B1).
    #[must_use]
    pub fn to_error(&self) -> RpcError {
        RpcError::invalid_params(alloc::format!("Invalid inputResponses: {self}"))
    }
}

/// The digest of the effective answers: those to outstanding keys only, a missing one as missing (B2).
///
/// `outstanding` are the keys that the state asks about, in any order; `answer` looks a key up in the
/// request's `inputResponses`. Answers under other keys do not count, nor does the order of members, white
/// space, or how a string is escaped. No outstanding key (a state-only round) is a digest of its own.
///
/// # Errors
///
/// [`Undigestible`] with the first key, in sorted order, whose answer has no digest.
pub fn effective_digest<'k, 'a>(
    outstanding: impl IntoIterator<Item = &'k str>,
    answer: impl Fn(&str) -> Option<Json<'a>>,
) -> Result<AnswersDigest, Undigestible> {
    let mut keys: Vec<&str> = outstanding.into_iter().collect();
    keys.sort_unstable();
    keys.dedup();
    let mut hash = Sha256::new();
    hash.update(b"mrtr/v1/ledger/answers");
    hash.update(length(keys.len()));
    for key in keys {
        hash.update(length(key.len()));
        hash.update(key.as_bytes());
        match answer(key) {
            None => hash.update([0]),
            Some(value) => {
                let digest = structural(value).map_err(|_| Undigestible { key: key.into() })?;
                hash.update([1]);
                hash.update(digest);
            }
        }
    }
    Ok(AnswersDigest(hash.finalize().into()))
}

/// A length as 8 bytes, big-endian.
fn length(length: usize) -> [u8; 8] {
    u64::try_from(length).unwrap_or(u64::MAX).to_be_bytes()
}
