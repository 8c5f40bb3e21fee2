//! Secrets, and the keys that are derived from them.

use alloc::{boxed::Box, format, sync::Arc};

use hkdf::Hkdf;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;
use subtle::ConstantTimeEq as _;
use zeroize::{Zeroize as _, Zeroizing};

use super::{
    current::Counts,
    suite::{Cipher, Suite},
};

/// A secret that states are sealed with: at least 32 bytes, the same on every replica (G-53, B-17).
///
/// What is kept is the HKDF-SHA256 pseudorandom key (no salt), never the bytes that came in; it is wiped when
/// dropped and `Debug` shows the key id alone. Make the bytes with a cryptographic random source: a password
/// is no secret in this sense, because nothing here slows down guessing.
#[derive(Clone)]
pub struct Secret {
    prk: Zeroizing<[u8; 32]>,
    id: KeyId,
}

impl Secret {
    /// The least number of bytes.
    pub const MIN_BYTES: usize = 32;

    /// Takes a secret of [`MIN_BYTES`](Self::MIN_BYTES) or more.
    ///
    /// # Errors
    ///
    /// [`KeyTooShort`] for fewer bytes.
    pub fn from_bytes(secret: &[u8]) -> Result<Self, KeyTooShort> {
        if secret.len() < Self::MIN_BYTES {
            return Err(KeyTooShort { bytes: secret.len() });
        }
        let (mut extracted, _) = Hkdf::<Sha256>::extract(None, secret);
        let prk = Zeroizing::new(extracted.into());
        extracted.as_mut_slice().zeroize();
        let [a, b, c, d, ..] = *derive(&prk, "mrtr/v1/kid");
        Ok(Self { prk, id: KeyId([a, b, c, d]) })
    }

    /// The public name of this secret, derived from it: every token carries the one it was sealed under.
    #[must_use]
    pub const fn key_id(&self) -> KeyId {
        self.id
    }

    /// Whether both are the same secret; takes the same time for all secrets.
    pub(super) fn same_as(&self, other: &Self) -> bool {
        self.prk.ct_eq(&*other.prk).into()
    }
}

impl core::fmt::Debug for Secret {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Secret({}, ..)", self.id)
    }
}

/// A secret is shorter than [`Secret::MIN_BYTES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a sealing secret needs at least 32 bytes, this one has {bytes}")]
#[non_exhaustive]
pub struct KeyTooShort {
    /// How many bytes there were.
    pub bytes: usize,
}

/// The public name of a [`Secret`]: four bytes derived from it, shown as eight hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyId(pub(super) [u8; 4]);

impl KeyId {
    /// The four bytes, as they stand in a token.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 4] {
        &self.0
    }
}

impl core::fmt::Display for KeyId {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{:08x}", u32::from_be_bytes(self.0))
    }
}

impl core::fmt::Debug for KeyId {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "KeyId({self})")
    }
}

/// What a sealed thing is for; each has its own key, so that none can be passed off as another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    State,
    Ticket,
    Ledger,
    Handle,
    Saved,
}

impl Purpose {
    const fn label(self) -> &'static str {
        match self {
            Self::State => "seal",
            Self::Ticket => "ticket",
            Self::Ledger => "ledger",
            Self::Handle => "handle",
            Self::Saved => "saved",
        }
    }
}

/// Everything that one secret gives under one suite, derived once.
pub(super) struct Keys {
    pub(super) id: KeyId,
    pub(super) bind: Hmac<Sha256>,
    state: Box<dyn Cipher>,
    ticket: Box<dyn Cipher>,
    ledger: Box<dyn Cipher>,
    handle: Box<dyn Cipher>,
    saved: Box<dyn Cipher>,
    pub(super) counts: Arc<Counts>,
}

impl Keys {
    pub(super) fn derive(secret: &Secret, suite: &Suite) -> Self {
        let cipher = |purpose: Purpose| {
            let label = format!("mrtr/v1/{}/{}", purpose.label(), suite.name);
            (suite.prepare)(&derive(&secret.prk, &label), &label)
        };
        Self {
            id: secret.id,
            bind: hmac_key(&derive(&secret.prk, "mrtr/v1/bind")),
            state: cipher(Purpose::State),
            ticket: cipher(Purpose::Ticket),
            ledger: cipher(Purpose::Ledger),
            handle: cipher(Purpose::Handle),
            saved: cipher(Purpose::Saved),
            counts: Arc::default(),
        }
    }

    pub(super) fn cipher(&self, purpose: Purpose) -> &dyn Cipher {
        match purpose {
            Purpose::State => &*self.state,
            Purpose::Ticket => &*self.ticket,
            Purpose::Ledger => &*self.ledger,
            Purpose::Handle => &*self.handle,
            Purpose::Saved => &*self.saved,
        }
    }
}

/// HKDF-Expand to 32 bytes. One block of output is one HMAC, which, unlike the general function, cannot fail.
fn derive(prk: &[u8; 32], info: &str) -> Zeroizing<[u8; 32]> {
    let mut mac = hmac_key(prk);
    mac.update(info.as_bytes());
    mac.update(&[1]);
    let mut block = mac.finalize().into_bytes();
    let key = Zeroizing::new(block.into());
    block.as_mut_slice().zeroize();
    key
}

/// HMAC-SHA256 with its key absorbed, to be cloned for each message.
pub(super) fn hmac_key(key: &[u8; 32]) -> Hmac<Sha256> {
    // `new` takes a whole block (64 bytes); a shorter key is padded with zeros, which is what HMAC says.
    let mut block = Zeroizing::new([0; 64]);
    for (to, from) in block.iter_mut().zip(key) {
        *to = *from;
    }
    Hmac::<Sha256>::new((&*block).into())
}
