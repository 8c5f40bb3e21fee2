//! A bound on the bytes that peers can make this side hold at once.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering::Relaxed},
};

/// Room for a number of bytes, shared by all who take of it.
#[derive(Clone, Debug)]
pub(crate) struct Room(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    bound: usize,
    taken: AtomicUsize,
}

/// There is not so much room at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Full;

/// What one of them has taken; given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Taken {
    room: Room,
    bytes: usize,
}

impl Room {
    pub(crate) fn new(bound: usize) -> Self {
        Self(Arc::new(Inner { bound, taken: AtomicUsize::new(0) }))
    }

    /// Nothing yet.
    pub(crate) fn take(&self) -> Taken {
        Taken { room: self.clone(), bytes: 0 }
    }
}

impl Taken {
    /// Takes more; exactly the bound is still fine.
    pub(crate) fn grow(&mut self, bytes: usize) -> Result<(), Full> {
        let Inner { bound, taken } = &*self.room.0;
        let more = |taken: usize| taken.checked_add(bytes).filter(|sum| sum <= bound);
        // A mere count: nothing else is made visible by it.
        taken.fetch_update(Relaxed, Relaxed, more).map_err(|_| Full)?;
        self.bytes += bytes;
        Ok(())
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        self.room.0.taken.fetch_sub(self.bytes, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bound_is_inclusive_and_what_is_dropped_is_free_again() {
        let room = Room::new(10);
        let (mut one, mut two) = (room.take(), room.take());
        assert_eq!(one.grow(4), Ok(()));
        assert_eq!(two.grow(6), Ok(()));
        assert_eq!((one.grow(1), two.grow(usize::MAX), one.grow(0)), (Err(Full), Err(Full), Ok(())));
        drop(two);
        assert_eq!((one.grow(7), one.grow(6)), (Err(Full), Ok(())));
        drop(one);
        assert_eq!(room.0.taken.load(Relaxed), 0);
    }
}
