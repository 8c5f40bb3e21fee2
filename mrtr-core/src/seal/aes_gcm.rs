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
    /// The cipher and the IV of the token with this nonce.
    fn token(&self, nonce: &Nonce) -> Option<(Aes256Gcm, [u8; 12])> {
        let mut derived = Zeroizing::new([0; 44]);
        Hkdf::<Sha256>::new(Some(nonce), &*self.key).expand(self.info.as_bytes(), &mut *derived).ok()?;
        let (key, iv) = derived.split_first_chunk::<32>()?;
        Some((Aes256Gcm::new(key.into()), iv.try_into().ok()?))
    }
}

impl Cipher for AesGcm {
    fn seal(&self, nonce: &Nonce, aad: &[u8], message: &mut Vec<u8>, head: usize) -> Result<(), TooLong> {
        let (cipher, iv) = self.token(nonce).ok_or(TooLong)?;
        let body = message.get_mut(head..).unwrap_or_default();
        let tag = cipher.encrypt_inout_detached(&iv.into(), aad, body.into()).map_err(|_| TooLong)?;
        message.extend_from_slice(&tag);
        Ok(())
    }

    fn open(&self, nonce: &Nonce, aad: &[u8], body: &mut [u8], tag: &[u8]) -> Result<(), Unauthentic> {
        let (cipher, iv) = self.token(nonce).ok_or(Unauthentic)?;
        let tag = Tag::try_from(tag).map_err(|_| Unauthentic)?;
        cipher.decrypt_inout_detached(&iv.into(), aad, body.into(), &tag).map_err(|_| Unauthentic)
    }
}
