//! Suite 3, AES-256-GCM under a key of its own for each token: its 96-bit nonces are too short to draw at random
//! under one key for long (2³² messages), so key and nonce are both derived from the token's 192-bit nonce.

use alloc::{boxed::Box, string::String, vec::Vec};

use aes_gcm::{Aes256Gcm, KeyInit as _, Tag, aead::AeadInOut as _};
use hkdf::Hkdf;
use sha2::Sha256;
use zeroize::Zeroizing;

use super::suite::{Cipher, Nonce, Suite, TooLong, Unauthentic};

pub(super) static AES_256_GCM: Suite = Suite {
    id: 3,
    name: "aes-256-gcm",
    tag_bytes: 16,
    readable: false,
    prepare: |key, label| {
        let mut info = String::from(label);
        info.push_str("/token");
        Box::new(AesGcm { key: Zeroizing::new(*key), info })
    },
};

struct AesGcm {
    key: Zeroizing<[u8; 32]>,
    info: String,
}

impl AesGcm {
    /// The key and the IV of the token with this nonce. (The cipher is made where it is used: it is a kilobyte to move.)
    fn token(&self, nonce: &Nonce) -> Option<Zeroizing<([u8; 32], [u8; 12])>> {
        let mut derived = Zeroizing::new([0; 44]);
        Hkdf::<Sha256>::new(Some(nonce), &*self.key).expand(self.info.as_bytes(), &mut *derived).ok()?;
        let (key, iv) = derived.split_first_chunk()?;
        Some(Zeroizing::new((*key, iv.try_into().ok()?)))
    }
}

impl Cipher for AesGcm {
    fn seal(&self, nonce: &Nonce, aad: &[u8], message: &mut Vec<u8>, head: usize) -> Result<(), TooLong> {
        let token = self.token(nonce).ok_or(TooLong)?;
        let (key, iv) = &*token;
        let body = message.get_mut(head..).unwrap_or_default();
        let tag = Aes256Gcm::new(key.into())
            .encrypt_inout_detached(iv.into(), aad, body.into())
            .map_err(|_| TooLong)?;
        message.extend_from_slice(&tag);
        Ok(())
    }

    fn open(&self, nonce: &Nonce, aad: &[u8], body: &mut [u8], tag: &[u8]) -> Result<(), Unauthentic> {
        let token = self.token(nonce).ok_or(Unauthentic)?;
        let (key, iv) = &*token;
        let tag = Tag::try_from(tag).map_err(|_| Unauthentic)?;
        Aes256Gcm::new(key.into())
            .decrypt_inout_detached(iv.into(), aad, body.into(), &tag)
            .map_err(|_| Unauthentic)
    }
}
