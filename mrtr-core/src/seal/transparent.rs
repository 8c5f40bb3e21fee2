//! Suite 255, no protection at all: for fuzzers, which must get past the tag to reach what lies behind it.

use alloc::{boxed::Box, vec::Vec};

use super::suite::{Cipher, Nonce, Suite, TooLong, Unauthentic};

pub(super) static TRANSPARENT: Suite = Suite {
    id: 255,
    name: "transparent",
    tag_bytes: 0,
    readable: true,
    prepare: |_, _| Box::new(Transparent),
};

struct Transparent;

impl Cipher for Transparent {
    fn seal(&self, _: &Nonce, _: &[u8], _: &mut Vec<u8>, _: usize) -> Result<(), TooLong> {
        Ok(())
    }

    fn open(&self, _: &Nonce, _: &[u8], _: &mut [u8], _: &[u8]) -> Result<(), Unauthentic> {
        Ok(())
    }
}
