//! A stack that needs no allocation while it is small, as most messages keep it.

use alloc::vec::Vec;

/// Up to `N` elements live in the stack itself; with one more, all of them move to the heap and stay there.
pub(crate) struct Stack<T, const N: usize> {
    few: [T; N],
    /// How many of `few` are in use; of no meaning once `many` is.
    count: usize,
    many: Option<Vec<T>>,
}

impl<T: Copy + Default, const N: usize> Stack<T, N> {
    pub(crate) fn new() -> Self {
        Self { few: [T::default(); N], count: 0, many: None }
    }

    #[inline]
    pub(crate) fn as_slice(&self) -> &[T] {
        match &self.many {
            None => self.few.get(..self.count).unwrap_or_default(),
            Some(many) => many,
        }
    }

    #[inline]
    pub(crate) fn as_mut_slice(&mut self) -> &mut [T] {
        match &mut self.many {
            None => self.few.get_mut(..self.count).unwrap_or_default(),
            Some(many) => many,
        }
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.as_slice().len()
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.as_slice().is_empty()
    }

    #[inline]
    pub(crate) fn push(&mut self, item: T) {
        match (&mut self.many, self.few.get_mut(self.count)) {
            (Some(many), _) => many.push(item),
            (None, Some(place)) => {
                *place = item;
                self.count += 1;
            }
            (None, None) => {
                let mut many = Vec::with_capacity(4 * N);
                many.extend_from_slice(&self.few);
                many.push(item);
                self.many = Some(many);
            }
        }
    }

    #[inline]
    pub(crate) fn pop(&mut self) -> Option<T> {
        let last = self.as_slice().last().copied();
        self.truncate(self.len().saturating_sub(1));
        last
    }

    #[inline]
    pub(crate) fn truncate(&mut self, len: usize) {
        match &mut self.many {
            None => self.count = self.count.min(len),
            Some(many) => many.truncate(len),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The same steps on a vector, across the border of what is kept inline.
    #[test]
    fn does_what_a_vector_does() {
        let mut random = 7u32;
        let (mut ours, mut theirs) = (Stack::<u32, 4>::new(), Vec::new());
        for _ in 0..2_000 {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            match random >> 29 {
                0..4 => {
                    ours.push(random);
                    theirs.push(random);
                }
                4..7 => assert_eq!(ours.pop(), theirs.pop()),
                _ => {
                    let len = usize::try_from(random >> 8 & 7).unwrap();
                    ours.truncate(len);
                    theirs.truncate(len);
                }
            }
            assert_eq!(ours.as_slice(), theirs);
            assert_eq!(ours.as_mut_slice(), theirs);
            assert_eq!(ours.len(), theirs.len());
            if random >> 20 & 63 == 0 {
                (ours, theirs) = (Stack::new(), Vec::new());
            }
        }
    }
}
