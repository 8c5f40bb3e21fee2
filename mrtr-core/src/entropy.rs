//! Randomness. The embedder supplies it; nothing here draws any.

use core::sync::atomic::{AtomicU32, Ordering};

use hkdf::Hkdf;
use sha2::Sha256;
use zeroize::Zeroizing;

/// 32 bytes from a cryptographic random source, good for one round.
///
/// Moved in and not [`Clone`], so that one draw cannot make two nonces. What a round needs (a nonce, an
/// exchange id) is expanded from it by HKDF-SHA256, each under its own label. It is expanded without being extracted
/// first (RFC 5869, section 3.3), for it is a key already: take it from nothing less than such a source.
pub struct Entropy {
    seed: Zeroizing<[u8; 32]>,
    /// With the seed absorbed as the key, if more than one expansion is to come.
    keyed: Option<Hkdf<Sha256>>,
    nonces: AtomicU32,
}

impl Entropy {
    /// Takes 32 bytes that nobody else has seen and that are used nowhere else.
    #[must_use]
    pub fn new(bytes: [u8; 32]) -> Self {
        Self { seed: Zeroizing::new(bytes), keyed: None, nonces: AtomicU32::new(0) }
    }

    /// A nonce that this entropy has not given before: one round may seal a state, tickets and a stored reply,
    /// and no two of them may share one. The n-th call (from 0) expands `"nonce" ‖ n` (u32, big-endian).
    pub(crate) fn nonce(&self) -> [u8; 24] {
        let n = self.nonces.fetch_add(1, Ordering::Relaxed).to_be_bytes();
        let [a, b, c, d] = n;
        self.expand(&[b'n', b'o', b'n', b'c', b'e', a, b, c, d])
    }

    /// Absorbs the seed once for all expansions to come. Not done in [`new`](Self::new), because most rounds
    /// that bring the last answer expand nothing.
    pub(crate) fn prepare(&mut self) {
        self.keyed = Some(self.key());
    }

    fn key(&self) -> Hkdf<Sha256> {
        Hkdf::from_prk(&*self.seed).unwrap_or_else(|_| unreachable!("the seed has the size of a hash"))
    }

    /// `N` bytes for the purpose that `label` names: the same entropy and label give the same bytes.
    pub(crate) fn expand<const N: usize>(&self, label: &[u8]) -> [u8; N] {
        let mut out = [0u8; N];
        // HKDF-SHA256 expands to at most 8,160 bytes; N is a small constant of this crate.
        match &self.keyed {
            Some(keyed) => keyed.expand(label, &mut out),
            None => self.key().expand(label, &mut out),
        }
        .unwrap_or_else(|_| unreachable!("N is at most 64"));
        out
    }
}

impl core::fmt::Debug for Entropy {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Entropy(..)")
    }
}
