//! Suite 1, HMAC-SHA256: tamper-proof and readable by whoever holds the token.

use alloc::{boxed::Box, vec::Vec};

use hmac::{Hmac, Mac as _};
use sha2::Sha256;
use subtle::ConstantTimeEq as _;

use super::{
    key::hmac_key,
    suite::{Cipher, Nonce, Suite, TooLong, Unauthentic},
};

pub(super) static HMAC_SHA256: Suite = Suite {
    id: 1,
    name: "hmac-sha256",
    tag_bytes: 32,
    readable: true,
    prepare: |key, _| Box::new(HmacSha256(hmac_key(key))),
};

struct HmacSha256(Hmac<Sha256>);

impl HmacSha256 {
    /// The nonce is the end of what `aad` starts with, so it needs no place of its own.
    fn tag(&self, aad: &[u8], body: &[u8]) -> [u8; 32] {
        let mut mac = self.0.clone();
        mac.update(aad);
        mac.update(body);
        mac.finalize().into_bytes().into()
    }
}

impl Cipher for HmacSha256 {
    fn seal(&self, _: &Nonce, aad: &[u8], message: &mut Vec<u8>, head: usize) -> Result<(), TooLong> {
        let tag = self.tag(aad, message.get(head..).unwrap_or_default());
        message.extend_from_slice(&tag);
        Ok(())
    }

    fn open(&self, _: &Nonce, aad: &[u8], body: &mut [u8], tag: &[u8]) -> Result<(), Unauthentic> {
        if self.tag(aad, body).ct_eq(tag).into() { Ok(()) } else { Err(Unauthentic) }
    }
}
