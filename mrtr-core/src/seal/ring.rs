//! The secrets in force: one mints, all open.

use alloc::vec::Vec;

use super::{
    current::KeyUse,
    key::{KeyId, Keys, Secret},
    suite::Suite,
};

/// The secrets in force: one mints, all open.
///
/// Replacing OLD by NEW never refuses a state younger than its TTL if it is done in this order, with every
/// replica through one step before any starts the next (B-17, W-06):
///
/// 1. [`accept`](Self::accept)`(NEW)`: everyone opens what NEW seals; OLD still mints.
/// 2. [`promote`](Self::promote)`(NEW)`: NEW mints; OLD still opens.
/// 3. After the last replica was promoted, wait for the longest TTL in use (and the longest life of a ticket or
///    a stored reply); [`Sealer::key_use`](super::Sealer::key_use) and
///    [`Opened::by_retired_key`](super::Opened::by_retired_key) tell that OLD is still seen. Then
///    [`retire`](Self::retire)`(OLD)`.
///
/// Each order of steps but this one refuses states: a replica that mints with NEW before another accepts it, or one
/// that retires OLD while states that it sealed are still young. The same three steps answer a secret that leaked,
/// but for the waiting: retire it at once, and every call that waits for an answer under it begins again.
///
/// A ring is a value: change it, then give it to `Sealer::set_ring`, which changes a running service, or to
/// [`Sealer::with_ring`](super::Sealer::with_ring).
///
/// ```
/// use mrtr_core::seal::{KeyRing, Secret};
///
/// let (old, new) = (Secret::from_bytes(&[1; 32])?, Secret::from_bytes(&[2; 32])?);
/// let (old_id, new_id) = (old.key_id(), new.key_id());
/// let mut ring = KeyRing::new(old);
/// ring.accept(new)?;
/// ring.promote(new_id)?;
/// assert_eq!(ring.minting(), new_id);
/// ring.retire(old_id)?;
/// assert_eq!(ring.ids().collect::<Vec<_>>(), [new_id]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct KeyRing {
    minting: Secret,
    opening: Vec<Secret>,
}

impl KeyRing {
    /// A ring of one secret, which mints and opens.
    #[must_use]
    pub const fn new(mint: Secret) -> Self {
        Self { minting: mint, opening: Vec::new() }
    }

    /// Also opens what `secret` sealed.
    ///
    /// # Errors
    ///
    /// [`RingError::SameSecret`] if it is here already, [`RingError::SameKeyId`] if another secret here has the
    /// same key id (one pair in 2³²: make a new secret).
    pub fn accept(&mut self, secret: Secret) -> Result<(), RingError> {
        if let Some(here) = self.secrets().find(|here| here.key_id() == secret.key_id()) {
            let id = secret.key_id();
            return Err(if here.same_as(&secret) {
                RingError::SameSecret(id)
            } else {
                RingError::SameKeyId(id)
            });
        }
        self.opening.push(secret);
        Ok(())
    }

    /// Mints with `id` from now on; the secret that minted so far still opens. Does nothing if `id` mints already.
    ///
    /// # Errors
    ///
    /// [`RingError::Unknown`] if `id` is not in the ring.
    pub fn promote(&mut self, id: KeyId) -> Result<(), RingError> {
        if id == self.minting.key_id() {
            return Ok(());
        }
        let next = self.opening.iter_mut().find(|secret| secret.key_id() == id);
        core::mem::swap(next.ok_or(RingError::Unknown(id))?, &mut self.minting);
        Ok(())
    }

    /// Forgets `id`: what it sealed is refused from now on.
    ///
    /// # Errors
    ///
    /// [`RingError::Minting`] if `id` mints, [`RingError::Unknown`] if it is not in the ring.
    pub fn retire(&mut self, id: KeyId) -> Result<(), RingError> {
        if id == self.minting.key_id() {
            return Err(RingError::Minting(id));
        }
        let at =
            self.opening.iter().position(|secret| secret.key_id() == id).ok_or(RingError::Unknown(id))?;
        self.opening.remove(at);
        Ok(())
    }

    /// The key that mints.
    #[must_use]
    pub const fn minting(&self) -> KeyId {
        self.minting.key_id()
    }

    /// All keys that open, the minting one first.
    pub fn ids(&self) -> impl Iterator<Item = KeyId> + '_ {
        self.secrets().map(Secret::key_id)
    }

    fn secrets(&self) -> impl Iterator<Item = &Secret> {
        core::iter::once(&self.minting).chain(&self.opening)
    }
}

impl core::fmt::Debug for KeyRing {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("KeyRing").field("minting", &self.minting).field("opening", &self.opening).finish()
    }
}

/// Why a [`KeyRing`] was not changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RingError {
    /// The secret is in the ring already.
    #[error("the secret {0} is in the ring already")]
    SameSecret(KeyId),
    /// Another secret of the ring has the same key id.
    #[error("another secret in the ring has the key id {0} too")]
    SameKeyId(KeyId),
    /// No secret of the ring has this key id.
    #[error("no secret in the ring has the key id {0}")]
    Unknown(KeyId),
    /// The key mints; promote another one first.
    #[error("the key {0} mints: promote another one before retiring it")]
    Minting(KeyId),
}

/// A ring under one suite, with every key derived.
pub(super) struct DerivedRing {
    pub(super) suite: &'static Suite,
    pub(super) minting: Keys,
    opening: Vec<Keys>,
}

impl DerivedRing {
    pub(super) fn new(ring: &KeyRing, suite: &'static Suite) -> Self {
        Self {
            suite,
            minting: Keys::derive(&ring.minting, suite),
            opening: ring.opening.iter().map(|secret| Keys::derive(secret, suite)).collect(),
        }
    }

    /// This ring, in which keys that are also in `before` go on counting where they were.
    #[cfg(feature = "std")]
    pub(super) fn with_counts_of(mut self, before: &Self) -> Self {
        for keys in core::iter::once(&mut self.minting).chain(&mut self.opening) {
            if let Some(known) = before.find(keys.id) {
                keys.counts = known.counts.clone();
            }
        }
        self
    }

    pub(super) fn key_use(&self) -> impl Iterator<Item = KeyUse> + '_ {
        self.keys().map(|keys| keys.counts.read(keys.id, keys.id == self.minting.id))
    }

    pub(super) fn find(&self, id: KeyId) -> Option<&Keys> {
        self.keys().find(|keys| keys.id == id)
    }

    pub(super) fn ids(&self) -> impl Iterator<Item = KeyId> {
        self.keys().map(|keys| keys.id)
    }

    fn keys(&self) -> impl Iterator<Item = &Keys> {
        core::iter::once(&self.minting).chain(&self.opening)
    }
}
