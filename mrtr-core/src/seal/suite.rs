//! What a suite is: a number in the token, a name in the key's label, and a way to seal in place.

use alloc::{boxed::Box, vec::Vec};

/// A suite, chosen by the constructor of the [`Sealer`](super::Sealer) and never by the token.
///
/// A table of plain functions, so that a program that never names a suite does not carry its algorithm.
pub(super) struct Suite {
    pub(super) id: u8,
    pub(super) name: &'static str,
    pub(super) tag_bytes: usize,
    pub(super) readable: bool,
    /// Prepares a derived key; the label is the one that the key was derived under.
    pub(super) prepare: fn(key: &[u8; 32], label: &str) -> Box<dyn Cipher>,
}

pub(super) type Nonce = [u8; 24];

/// A key under one suite, ready for use.
pub(super) trait Cipher: Send + Sync {
    /// Seals what follows the first `head` bytes of `message`, where it lies, and appends the tag.
    fn seal(&self, nonce: &Nonce, aad: &[u8], message: &mut Vec<u8>, head: usize) -> Result<(), TooLong>;

    /// Checks the tag, then opens `body` where it lies. If the tag is wrong, `body` is as it was.
    fn open(&self, nonce: &Nonce, aad: &[u8], body: &mut [u8], tag: &[u8]) -> Result<(), Unauthentic>;
}

/// The message is longer than the algorithm can take (64 GiB for AES-GCM).
#[derive(Debug)]
pub(super) struct TooLong;

/// The tag does not belong to the message.
#[derive(Debug)]
pub(super) struct Unauthentic;

/// The suite with this number, if it is compiled in. Only for looking at tokens: a [`Sealer`](super::Sealer)
/// takes nothing but its own suite.
pub(super) fn by_id(id: u8) -> Option<&'static Suite> {
    all().find(|suite| suite.id == id)
}

fn all() -> impl Iterator<Item = &'static Suite> {
    [
        &super::hmac::HMAC_SHA256,
        #[cfg(feature = "encrypted")]
        &super::xchacha::XCHACHA20_POLY1305,
        #[cfg(feature = "aes-gcm")]
        &super::aes_gcm::AES_256_GCM,
        #[cfg(any(fuzzing, feature = "test-utils"))]
        &super::transparent::TRANSPARENT,
    ]
    .into_iter()
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeSet;

    use super::*;

    // a token of one suite never verifies as another.
    #[test]
    fn numbers_and_names_are_distinct() {
        let (ids, names): (BTreeSet<_>, BTreeSet<_>) = all().map(|suite| (suite.id, suite.name)).unzip();
        assert_eq!((ids.len(), names.len()), (all().count(), all().count()));
    }
}
