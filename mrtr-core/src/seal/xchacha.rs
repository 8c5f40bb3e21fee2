//! Suite 2, XChaCha20-Poly1305: 192-bit nonces, so random ones never meet; fast without AES instructions.

use alloc::{boxed::Box, vec::Vec};

use chacha20poly1305::{KeyInit as _, Tag, XChaCha20Poly1305, aead::AeadInOut as _};

use super::suite::{Cipher, Nonce, Suite, TooLong, Unauthentic};

pub(super) static XCHACHA20_POLY1305: Suite = Suite {
    id: 2,
    name: "xchacha20-poly1305",
    tag_bytes: 16,
    readable: false,
    prepare: |key, _| Box::new(XChaCha(XChaCha20Poly1305::new(key.into()))),
};

struct XChaCha(XChaCha20Poly1305);

impl Cipher for XChaCha {
    fn seal(&self, nonce: &Nonce, aad: &[u8], message: &mut Vec<u8>, head: usize) -> Result<(), TooLong> {
        let body = message.get_mut(head..).unwrap_or_default();
        let tag = self.0.encrypt_inout_detached(nonce.into(), aad, body.into()).map_err(|_| TooLong)?;
        message.extend_from_slice(&tag);
        Ok(())
    }

    fn open(&self, nonce: &Nonce, aad: &[u8], body: &mut [u8], tag: &[u8]) -> Result<(), Unauthentic> {
        let tag = Tag::try_from(tag).map_err(|_| Unauthentic)?;
        self.0.decrypt_inout_detached(nonce.into(), aad, body.into(), &tag).map_err(|_| Unauthentic)
    }
}
