//! Blobs: bytes that this service stores or sends to itself, sealed and tied to the place where they belong.

use alloc::vec::Vec;

use zeroize::Zeroizing;

use super::{
    Sealer,
    binding::length,
    envelope,
    key::Purpose,
    token::keep,
    verdict::{SealError, Verdict},
};
use crate::Entropy;

/// What a blob is; each kind has its own key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BlobKind {
    /// A reply that the ledger keeps in a store.
    Ledger,
    /// A handle to something that a replica holds, and what is handed to that replica.
    Handle,
    /// A client's exchange that waits for answers ([`Exchange::save_sealed`](crate::client::Exchange::save_sealed)).
    Saved,
}

impl BlobKind {
    const fn purpose(self) -> Purpose {
        match self {
            Self::Ledger => Purpose::Ledger,
            Self::Handle => Purpose::Handle,
            Self::Saved => Purpose::Saved,
        }
    }
}

impl Sealer {
    /// Seals `bytes` so that they open only as this kind, under this audience and with the same `place`: a
    /// store's key, for instance, so that nobody who can write to the store can move one entry to another's place.
    ///
    /// It carries no expiry; the signed suite leaves it readable.
    ///
    /// # Errors
    ///
    /// [`SealError::TooLongForCipher`] for more than 64 GiB.
    pub fn seal_blob(
        &self,
        kind: BlobKind,
        place: &[u8],
        bytes: &[u8],
        entropy: &Entropy,
    ) -> Result<Vec<u8>, SealError> {
        let (audience, nonce) = (self.audience.as_bytes(), entropy.nonce());
        let extra: [&[u8]; 4] = [&length(audience.len()), audience, &length(place.len()), place];
        envelope::seal(&self.current.get(), kind.purpose(), &extra, nonce, bytes.len(), |_, body| {
            body.extend_from_slice(bytes);
        })
        .map_err(|_| SealError::TooLongForCipher)
    }

    /// Opens a blob of this kind, audience and place.
    ///
    /// # Errors
    ///
    /// [`Verdict::Malformed`], [`Verdict::UnknownKey`] or [`Verdict::Unauthentic`], which another audience or
    /// place is too.
    pub fn open_blob(
        &self,
        kind: BlobKind,
        place: &[u8],
        blob: &[u8],
    ) -> Result<Zeroizing<Vec<u8>>, Verdict> {
        let audience = self.audience.as_bytes();
        let extra: [&[u8]; 4] = [&length(audience.len()), audience, &length(place.len()), place];
        let mut bytes = Zeroizing::new(Vec::from(blob));
        let ring = self.current.get();
        let opening = envelope::open(&ring, kind.purpose(), &extra, 0, &mut bytes);
        let opening = opening.map_err(|refused| refused.verdict)?;
        Ok(keep(bytes, &opening, 0))
    }
}
