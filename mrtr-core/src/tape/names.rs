//! Where values stand in a journal, by their names: a run looks for them often, and there may be as many as a request has
//! elements.
//!
//! A place counts only if what stands there has the name: the journal is taken out when the attempt is over, and a
//! detached task may still look.

use alloc::{boxed::Box, collections::BTreeMap, vec::Vec};

use crate::journal::{Named, Once};

/// Once-values by name and use (A11).
#[derive(Debug, Default)]
pub(super) struct OnceNames(BTreeMap<Box<str>, Uses>);

#[derive(Debug, Default)]
struct Uses {
    /// Uses of the name in this run.
    so_far: u32,
    /// Where the value of each use stands.
    places: BTreeMap<u32, usize>,
}

impl OnceNames {
    pub(super) fn of(list: &[Once]) -> Self {
        let mut names = Self::default();
        names.find_again(list);
        names
    }

    /// The list has changed: takes its places again. Uses are kept.
    pub(super) fn find_again(&mut self, list: &[Once]) {
        self.0.values_mut().for_each(|uses| uses.places.clear());
        list.iter().enumerate().for_each(|(at, once)| self.add(once, at));
    }

    /// A value that stands there.
    pub(super) fn add(&mut self, once: &Once, at: usize) {
        self.with(&once.name, |uses| uses.places.insert(once.nth, at));
    }

    /// Which use of the name comes next in this run, from 0.
    pub(super) fn next_use(&mut self, name: &str) -> u32 {
        self.with(name, |uses| {
            let nth = uses.so_far;
            uses.so_far = nth.saturating_add(1);
            nth
        })
    }

    pub(super) fn find<'j>(&self, list: &'j [Once], name: &str, nth: u32) -> Option<&'j Once> {
        let at = *self.0.get(name)?.places.get(&nth)?;
        list.get(at).filter(|once| &*once.name == name && once.nth == nth)
    }

    fn with<T>(&mut self, name: &str, act: impl FnOnce(&mut Uses) -> T) -> T {
        match self.0.get_mut(name) {
            Some(uses) => act(uses),
            None => act(self.0.entry(name.into()).or_default()),
        }
    }
}

/// Named values (A11), and which were read, in that order.
#[derive(Debug, Default)]
pub(super) struct ValueNames {
    places: BTreeMap<Box<str>, usize>,
    read: BTreeMap<Box<str>, usize>,
}

impl ValueNames {
    pub(super) fn of(list: &[Named]) -> Self {
        let places = list.iter().enumerate().map(|(at, value)| (value.name.clone(), at)).collect();
        Self { places, read: BTreeMap::new() }
    }

    pub(super) fn add(&mut self, name: &str, at: usize) {
        self.places.insert(name.into(), at);
    }

    pub(super) fn place(&self, list: &[Named], name: &str) -> Option<usize> {
        let at = *self.places.get(name)?;
        list.get(at).filter(|value| &*value.name == name).map(|_| at)
    }

    pub(super) fn find<'j>(&self, list: &'j [Named], name: &str) -> Option<&'j Named> {
        self.place(list, name).and_then(|at| list.get(at))
    }

    pub(super) fn note_read(&mut self, name: &str) {
        if !self.read.contains_key(name) {
            self.read.insert(name.into(), self.read.len());
        }
    }

    /// The names that were read, in the order in which they first were.
    pub(super) fn read(&self) -> impl Iterator<Item = &str> {
        let mut read: Vec<(usize, &str)> = self.read.iter().map(|(name, at)| (*at, &**name)).collect();
        read.sort_unstable();
        read.into_iter().map(|(_, name)| name)
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;
    use crate::{
        journal::Journal,
        seal::ExchangeId,
        tape::{Tape, TapeSetup},
        time::Timestamp,
    };

    fn once(name: &str, nth: u32) -> Once {
        Once { name: name.into(), nth, segment: nth, value: alloc::format!("\"{name}{nth}\"").into() }
    }

    /// A11: a value that is set again is the one that was set last; others stay. What was read is told in its order.
    #[test]
    fn named_values_do_not_touch_one_another() {
        let start = Timestamp::from_unix_millis(0);
        let mut journal = Journal::new(start);
        journal.values.push(Named { name: "z".into(), value: "0".into() });
        let mut tape = Tape::new(TapeSetup::new(ExchangeId::from_bytes([0; 16]), journal, start));
        for (name, value) in [("a", "1"), ("b", "2"), ("a", "3"), ("z", "4")] {
            tape.set_value(name, value.into());
        }
        let read = ["z", "c", "a", "b", "z"].map(|name| tape.value(name));
        assert_eq!(
            read.each_ref().map(|value| value.as_deref()),
            [Some("4"), None, Some("3"), Some("2"), Some("4")]
        );
        assert_eq!(tape.values.read().collect::<Vec<_>>(), ["z", "c", "a", "b"]);
        assert_eq!(tape.journal().values.len(), 3);
    }

    /// A11, A8: values are found by name and use wherever they stand, uses count on when some are dropped, and what is not
    /// there any more is not found.
    #[test]
    fn once_values_are_found_by_name_and_use() {
        let mut list = vec![once("b", 1), once("a", 0), once("b", 0), once("a", 7)];
        let mut names = OnceNames::of(&list);
        let uses = ["a", "b", "a", "b", "b"].map(|name| {
            let nth = names.next_use(name);
            (nth, names.find(&list, name, nth).is_some())
        });
        assert_eq!(uses, [(0, true), (0, true), (1, false), (1, true), (2, false)]);
        names.add(&once("a", 1), list.len());
        list.push(once("a", 1));
        assert!(names.find(&list, "a", 1) == Some(&once("a", 1)) && names.find(&list, "a", 7).is_some());
        list.retain(|once| once.segment == 0);
        names.find_again(&list);
        assert!(names.find(&list, "a", 0).is_some() && names.find(&list, "a", 1).is_none());
        assert_eq!((names.next_use("a"), names.next_use("c")), (2, 0));
        // Taken out, with places left behind.
        assert!(names.find(&[], "a", 0).is_none() && names.find(&[once("b", 0)], "a", 0).is_none());
    }
}
