//! Replies that are kept for a retry whose reply was lost (B3).

use alloc::vec::Vec;
use core::fmt;

use sha2::{Digest as _, Sha256};
use zeroize::Zeroizing;

use super::{AnswersDigest, Key};
use crate::{
    entropy::Entropy,
    error::RpcError,
    jsonrpc::{RequestId, write},
};

/// Seals replies for a store that others may read or write; under the label `/ledger` in this crate's rings.
pub trait Vault {
    /// Encrypts and authenticates. `entropy` is for the nonce.
    fn seal(&self, plaintext: &[u8], entropy: Entropy) -> Vec<u8>;

    /// Gives back what [`Vault::seal`] took, or `None` for anything that no ring of ours has sealed.
    fn open(&self, sealed: &[u8]) -> Option<Vec<u8>>;
}

/// What kind of reply ended a run; all three leave the state used (B5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums)]
pub enum ReplyKind {
    /// A result `input_required`, with a state of its own.
    Interim,
    /// The final result.
    Complete,
    /// The handler's own JSON-RPC error.
    HandlerError,
}

/// A reply from the store, to be sent under the id of the request that repeats the retry.
///
/// `Debug` shows its kind and size.
#[derive(Clone, PartialEq, Eq)]
pub struct StoredReply {
    kind: ReplyKind,
    /// [`PREFIX`] bytes, then the member.
    plaintext: Vec<u8>,
}

/// Binding 32 ‖ kind 1 stand before the member in what is sealed.
const PREFIX: usize = 33;

impl StoredReply {
    /// What ended the run.
    #[must_use]
    pub const fn kind(&self) -> ReplyKind {
        self.kind
    }

    /// The `result` member, or the `error` member of a [`ReplyKind::HandlerError`]: the JSON text that the
    /// first reply carried, byte for byte.
    #[must_use]
    pub fn member(&self) -> &[u8] {
        self.plaintext.get(PREFIX..).unwrap_or_default()
    }

    /// Appends the whole response under the **new** id (B3, R-003).
    pub fn write(&self, id: &RequestId, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
        id.write(out);
        out.extend_from_slice(match self.kind {
            ReplyKind::Interim | ReplyKind::Complete => b",\"result\":".as_slice(),
            ReplyKind::HandlerError => b",\"error\":".as_slice(),
        });
        out.extend_from_slice(self.member());
        out.push(b'}');
    }

    /// Opens what [`seal`] sealed for the same key and digest.
    pub(super) fn open(vault: &dyn Vault, key: &Key, digest: &AnswersDigest, sealed: &[u8]) -> Option<Self> {
        let plaintext = vault.open(sealed)?;
        let (bound, rest) = plaintext.split_first_chunk::<32>()?;
        if *bound != binding(key, digest) {
            return None;
        }
        let kind = match rest.first()? {
            1 => ReplyKind::Interim,
            2 => ReplyKind::Complete,
            3 => ReplyKind::HandlerError,
            _ => return None,
        };
        Some(Self { kind, plaintext })
    }
}

impl fmt::Debug for StoredReply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StoredReply({:?}, {} bytes)", self.kind, self.member().len())
    }
}

/// Seals a reply together with what it belongs to, so that whoever can write to the store cannot move one
/// caller's reply under another's key.
pub(super) fn seal(
    vault: &dyn Vault,
    entropy: Entropy,
    key: &Key,
    digest: &AnswersDigest,
    kind: ReplyKind,
    member: &[u8],
) -> Vec<u8> {
    let mut plaintext = Zeroizing::new(Vec::with_capacity(PREFIX + member.len()));
    plaintext.extend_from_slice(&binding(key, digest));
    plaintext.push(match kind {
        ReplyKind::Interim => 1,
        ReplyKind::Complete => 2,
        ReplyKind::HandlerError => 3,
    });
    plaintext.extend_from_slice(member);
    vault.seal(&plaintext, entropy)
}

fn binding(key: &Key, digest: &AnswersDigest) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update(b"mrtr/v1/ledger/reply");
    hash.update(key.to_bytes());
    hash.update(digest.as_bytes());
    hash.finalize().into()
}

/// How a run ended, with the member of its reply: JSON text on one line, as it is sent.
///
/// `Debug` shows the kind and size.
#[derive(Clone, Copy)]
#[allow(clippy::exhaustive_enums)]
pub enum Outcome<'a> {
    /// A reply that uses the state up (B5).
    Reply(ReplyKind, &'a [u8]),
    /// Nothing was consumed: `-32021`, a limit when the next state was minted, or the handler was cancelled
    /// or panicked before [`Run::begin_commit`](super::Run::begin_commit) (B5). What is sent, if anything, is
    /// not kept.
    NotConsumed,
}

impl fmt::Debug for Outcome<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Reply(kind, member) => write!(f, "Reply({kind:?}, {} bytes)", member.len()),
            Self::NotConsumed => f.write_str("NotConsumed"),
        }
    }
}

/// The `error` member for an error of the handler's own, for [`Outcome::Reply`].
#[must_use]
pub fn error_member(error: &RpcError) -> Vec<u8> {
    let mut out = Vec::with_capacity(64);
    out.extend_from_slice(b"{\"code\":");
    write::integer(&mut out, error.code.get());
    out.extend_from_slice(b",\"message\":");
    write::string(&mut out, &error.message);
    if let Some(data) = &error.data {
        out.extend_from_slice(b",\"data\":");
        write::one_line(&mut out, data);
    }
    out.push(b'}');
    out
}
