//! The ring in force: one that a running service may replace, and what is counted of each key.

use alloc::{sync::Arc, vec::Vec};
use core::sync::atomic::{AtomicUsize, Ordering};

use super::{Sealer, key::KeyId, ring::DerivedRing};
#[cfg(feature = "std")]
use super::{ring::KeyRing, suite::Suite};

/// What was done under one key since the sealer was made, or since the key came into its ring. Where pointers have 32 bits
/// each number begins anew after 2³².
///
/// Two keys tell how far a rotation has come: when no replica seals under the old one any more, and none opens
/// anything under it ([`opened_retired`](Self::opened_retired) stands still for a whole TTL), it may be
/// [retired](super::KeyRing::retire).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct KeyUse {
    /// The key.
    pub key: KeyId,
    /// It is the one that mints.
    pub mints: bool,
    /// States, tickets and blobs that were sealed under it.
    pub sealed: u64,
    /// States, tickets and blobs that were found authentic under it, also those that were refused as late or as
    /// someone else's.
    pub opened: u64,
    /// Those of [`opened`](Self::opened) that came while another key minted.
    pub opened_retired: u64,
}

/// Counters of one key; they stay with it when the ring around it is replaced. As wide as every machine counts at once.
#[derive(Debug, Default)]
pub(super) struct Counts {
    sealed: AtomicUsize,
    opened: AtomicUsize,
    opened_retired: AtomicUsize,
}

impl Counts {
    pub(super) fn sealed(&self) {
        self.sealed.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn opened(&self, mints: bool) {
        self.opened.fetch_add(1, Ordering::Relaxed);
        if !mints {
            self.opened_retired.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(super) fn read(&self, key: KeyId, mints: bool) -> KeyUse {
        let read = |count: &AtomicUsize| u64::try_from(count.load(Ordering::Relaxed)).unwrap_or(u64::MAX);
        KeyUse {
            key,
            mints,
            sealed: read(&self.sealed),
            opened: read(&self.opened),
            opened_retired: read(&self.opened_retired),
        }
    }
}

/// The ring that all clones of a sealer share. Without `std` there is no lock to replace it under.
#[cfg(feature = "std")]
#[derive(Clone)]
pub(super) struct Current(Arc<std::sync::RwLock<Arc<DerivedRing>>>);

#[cfg(not(feature = "std"))]
#[derive(Clone)]
pub(super) struct Current(Arc<DerivedRing>);

#[cfg(feature = "std")]
impl Current {
    pub(super) fn new(ring: DerivedRing) -> Self {
        Self(Arc::new(std::sync::RwLock::new(Arc::new(ring))))
    }

    /// The ring as it is now. Whoever does more than one thing with it takes it once. The lock is held for as long
    /// as it takes to count a reference.
    pub(super) fn get(&self) -> Arc<DerivedRing> {
        self.0.read().unwrap_or_else(std::sync::PoisonError::into_inner).clone()
    }

    fn replace(&self, ring: &KeyRing, suite: &'static Suite) {
        // Deriving keys takes a while: not under the lock that readers wait for.
        let fresh = DerivedRing::new(ring, suite);
        let mut place = self.0.write().unwrap_or_else(std::sync::PoisonError::into_inner);
        let fresh = Arc::new(fresh.with_counts_of(&place));
        let before = core::mem::replace(&mut *place, fresh);
        drop(place);
        // Perhaps the last reference: keys are wiped here, again without the lock.
        drop(before);
    }
}

#[cfg(not(feature = "std"))]
impl Current {
    pub(super) fn new(ring: DerivedRing) -> Self {
        Self(Arc::new(ring))
    }

    pub(super) fn get(&self) -> Arc<DerivedRing> {
        self.0.clone()
    }
}

impl Sealer {
    /// Replaces the keys of this sealer **and of all its clones**, also the one inside a running
    /// [`Server`](crate::server::Server): whatever is sealed or opened from now on, in an attempt that runs already
    /// too, is sealed and opened with `ring`. Counts stay with their keys.
    ///
    /// This is each single step of a rotation; [`KeyRing`] says in which order.
    ///
    /// ```
    /// use mrtr_core::seal::{KeyRing, Sealer, Secret};
    ///
    /// let (old, new) = (Secret::from_bytes(&[1; 32])?, Secret::from_bytes(&[2; 32])?);
    /// let (old_id, new_id) = (old.key_id(), new.key_id());
    /// let mut ring = KeyRing::new(old);
    /// let sealer = Sealer::signed_readable(&ring, "billing"); // keep one; give a clone to the server
    ///
    /// ring.accept(new)?;
    /// sealer.set_ring(&ring); // on every replica, and only then
    /// ring.promote(new_id)?;
    /// sealer.set_ring(&ring); // on every replica; then wait for the longest TTL
    /// ring.retire(old_id)?;
    /// sealer.set_ring(&ring);
    /// assert_eq!(sealer.minting(), new_id);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[cfg(feature = "std")]
    pub fn set_ring(&self, ring: &KeyRing) {
        self.current.replace(ring, self.suite);
    }

    /// What was done under each key of the ring, the minting one first. Clones count together.
    #[must_use]
    pub fn key_use(&self) -> Vec<KeyUse> {
        self.current.get().key_use().collect()
    }
}
