//! Suite 2, XChaCha20-Poly1305: 192-bit nonces, so random ones never meet; fast without AES instructions.

use alloc::{boxed::Box, vec::Vec};

use chacha20::{
    XChaCha20,
    cipher::{KeyIvInit as _, StreamCipher as _},
};
use poly1305::{
    Poly1305, Tag,
    universal_hash::{KeyInit as _, UniversalHash as _},
};
use subtle::ConstantTimeEq as _;
use zeroize::{Zeroize as _, Zeroizing};

use super::suite::{Cipher, Nonce, Suite, TooLong, Unauthentic};

pub(super) static XCHACHA20_POLY1305: Suite = Suite {
    id: 2,
    name: "xchacha20-poly1305",
    tag_bytes: 16,
    readable: false,
    prepare: |key, _| Box::new(XChaCha(Zeroizing::new(*key))),
};

/// The key. The AEAD (RFC 8439, section 2.8) is put together here, because a state is short: where there are vectors, four
/// blocks of key stream take as long as one, and each of the two that an AEAD for any length begins with would be made alone.
struct XChaCha(Zeroizing<[u8; 32]>);

/// Bytes of a block of key stream. The first block is of the authenticator, the message has those that follow.
const BLOCK: usize = 64;

/// What is made of the key stream at once: with it a state of usual size is sealed.
const AT_ONCE: usize = 4 * BLOCK;

/// The longest message: its blocks, and the authenticator's, are counted in 32 bits.
const LONGEST: u64 = (u32::MAX as u64 - 1) * BLOCK as u64;

/// The key stream under one nonce.
struct Stream {
    /// Wiped when dropped.
    beginning: [u8; AT_ONCE],
    /// Makes what comes after the beginning.
    rest: XChaCha20,
}

impl Stream {
    /// `None` if the stream is too short for `body` bytes.
    fn new(key: &[u8; 32], nonce: &Nonce, body: usize) -> Option<Self> {
        if body as u64 > LONGEST {
            return None;
        }
        let mut rest = XChaCha20::new(key.into(), nonce.into());
        let mut beginning = [0; AT_ONCE];
        rest.apply_keystream(&mut beginning);
        Some(Self { beginning, rest })
    }

    /// The tag of what is authenticated.
    fn tag(&self, aad: &[u8], body: &[u8]) -> Option<Tag> {
        let mut mac = Poly1305::new(self.beginning.first_chunk::<32>()?.into());
        mac.update_padded(aad);
        mac.update_padded(body);
        let mut lengths = [0; 16];
        let (of_aad, of_body) = lengths.split_first_chunk_mut::<8>()?;
        *of_aad = (aad.len() as u64).to_le_bytes();
        of_body.copy_from_slice(&(body.len() as u64).to_le_bytes());
        mac.update(&[lengths.into()]);
        Some(mac.finalize())
    }

    /// Encrypts or decrypts the body.
    fn apply(&mut self, body: &mut [u8]) {
        let (near, far) = body.split_at_mut(body.len().min(AT_ONCE - BLOCK));
        for (byte, key) in near.iter_mut().zip(self.beginning.iter().skip(BLOCK)) {
            *byte ^= key;
        }
        self.rest.apply_keystream(far);
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.beginning.as_mut_slice().zeroize();
    }
}

impl Cipher for XChaCha {
    fn seal(&self, nonce: &Nonce, aad: &[u8], message: &mut Vec<u8>, head: usize) -> Result<(), TooLong> {
        let body = message.get_mut(head..).unwrap_or_default();
        let mut stream = Stream::new(&self.0, nonce, body.len()).ok_or(TooLong)?;
        stream.apply(body);
        let tag = stream.tag(aad, body).ok_or(TooLong)?;
        message.extend_from_slice(&tag);
        Ok(())
    }

    fn open(&self, nonce: &Nonce, aad: &[u8], body: &mut [u8], tag: &[u8]) -> Result<(), Unauthentic> {
        let mut stream = Stream::new(&self.0, nonce, body.len()).ok_or(Unauthentic)?;
        let expected = stream.tag(aad, body).ok_or(Unauthentic)?;
        if !bool::from(expected.as_slice().ct_eq(tag)) {
            return Err(Unauthentic);
        }
        stream.apply(body);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use chacha20poly1305::{XChaCha20Poly1305, aead::AeadInOut as _};

    use super::*;

    /// Every length around those at which another block begins, against the AEAD of the crate that has it whole.
    #[test]
    fn is_the_aead_of_the_standard() {
        let (key, nonce) = ([7; 32], [9; 24]);
        let (ours, theirs) = (XChaCha(Zeroizing::new(key)), XChaCha20Poly1305::new(&key.into()));
        for length in (0..600).chain([1023, 1024, 1025, 70_000]) {
            for (head, aad) in [(0, &b""[..]), (30, b"mrtr/v1"), (3, &[5; 37])] {
                let plain: Vec<u8> = (0..=250).cycle().take(length).collect();
                let mut sealed = vec![1; head];
                sealed.extend_from_slice(&plain);
                ours.seal(&nonce, aad, &mut sealed, head).unwrap();

                let mut expected = plain.clone();
                let tag = theirs
                    .encrypt_inout_detached(&nonce.into(), aad, expected.as_mut_slice().into())
                    .unwrap();
                assert_eq!(sealed[..head], vec![1; head], "{length}");
                assert_eq!(sealed[head..head + length], expected, "{length}");
                assert_eq!(sealed[head + length..], *tag, "{length}");

                let (body, tag) = sealed[head..].split_at_mut(length);
                ours.open(&nonce, aad, body, tag).unwrap();
                assert_eq!(body, plain, "{length}");
            }
        }
    }

    /// The example of draft-irtf-cfrg-xchacha-03, A.3.1.
    #[test]
    fn is_the_aead_of_the_draft() {
        let bytes = |hex: &str| -> Vec<u8> {
            (0..hex.len() / 2).map(|at| u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).unwrap()).collect()
        };
        let key =
            bytes("808182838485868788898a8b8c8d8e8f909192939495969798999a9b9c9d9e9f").try_into().unwrap();
        let nonce = bytes("404142434445464748494a4b4c4d4e4f5051525354555657").try_into().unwrap();
        let mut message =
            b"Ladies and Gentlemen of the class of '99: If I could offer you only one tip for the future, \
            sunscreen would be it."
                .to_vec();
        let aad = bytes("50515253c0c1c2c3c4c5c6c7");
        XChaCha(Zeroizing::new(key)).seal(&nonce, &aad, &mut message, 0).unwrap();
        let expected = bytes(concat!(
            "bd6d179d3e83d43b9576579493c0e939572a1700252bfaccbed2902c21396cbb731c7f1b0b4aa6440bf3a82f4eda7e39",
            "ae64c6708c54c216cb96b72e1213b4522f8c9ba40db5d945b11b69b982c1bb9e3f3fac2bc369488f76b2383565d3fff9",
            "21f9664c97637da9768812f615c68b13b52e",
            "c0875924c1c7987947deafd8780acf49"
        ));
        assert_eq!(message, expected);
    }

    /// The last block that the counter has, and no further.
    #[test]
    #[cfg(target_pointer_width = "64")]
    fn the_longest_message() {
        let stream = |body| Stream::new(&[7; 32], &[9; 24], body);
        assert!(stream(274_877_906_816).is_some());
        assert!(stream(274_877_906_817).is_none());
    }

    /// whatever bit is changed, nothing is opened and the body stays.
    #[test]
    fn what_was_changed_stays_shut() {
        let (cipher, nonce) = (XChaCha(Zeroizing::new([7; 32])), [9; 24]);
        let mut sealed = b"some plain text".to_vec();
        let length = sealed.len();
        cipher.seal(&nonce, b"aad", &mut sealed, 0).unwrap();
        for bit in 0..8 * sealed.len() {
            let mut changed = sealed.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            let before = changed.clone();
            let (body, tag) = changed.split_at_mut(length);
            assert!(cipher.open(&nonce, b"aad", body, tag).is_err(), "{bit}");
            assert_eq!(changed, before, "{bit}");
        }
        let (body, tag) = sealed.split_at_mut(length);
        assert!(cipher.open(&nonce, b"axd", body, tag).is_err());
        assert!(cipher.open(&[8; 24], b"aad", body, tag).is_err());
        for short in 0..tag.len() {
            assert!(cipher.open(&nonce, b"aad", body, &tag[..short]).is_err(), "{short}");
        }
        assert!(cipher.open(&nonce, b"aad", body, tag).is_ok());
    }
}
