//! Where values stand in a journal, by their names, and how often a name was used: a run looks for them often, and there may
//! be as many as a request has elements.
//!
//! The journal is taken out when the attempt is over, and a detached task may still look: what is not there is not found.

use alloc::{sync::Arc, vec::Vec};
use core::cmp::Ordering;

use crate::journal::{Named, Once};

/// The order of a list by something that its elements have; taken once there are more than a few of them. Four bytes an
/// element, for putting one in moves half of the others.
#[derive(Debug, Default)]
struct Order(Vec<u32>);

/// So many are looked through one by one: nearly every handler has fewer.
const FEW: usize = 16;

impl Order {
    /// Which element of a list of this length it is; `compare` holds an element against what is looked for.
    fn find(&self, length: usize, compare: impl Fn(usize) -> Ordering) -> Option<usize> {
        if self.0.is_empty() {
            return (0..length).find(|at| compare(*at).is_eq());
        }
        let place = self.0.binary_search_by(|at| compare(*at as usize)).ok()?;
        self.0.get(place).map(|at| *at as usize)
    }

    /// Takes up what was appended to the list; `compare` holds two elements against one another.
    fn append(&mut self, length: usize, compare: impl Fn(usize, usize) -> Ordering) {
        if length <= FEW {
            return;
        }
        for next in self.0.len()..length {
            let place = self.0.binary_search_by(|at| compare(*at as usize, next));
            self.0.insert(place.unwrap_or_else(|place| place), u32::try_from(next).unwrap_or(u32::MAX));
        }
    }
}

/// Names, each with how often it was counted, in the order in which they first were.
#[derive(Debug, Default)]
pub(super) struct Counted {
    all: Vec<(Arc<str>, u32)>,
    order: Order,
}

impl Counted {
    fn place(&self, name: &str) -> Option<usize> {
        self.order
            .find(self.all.len(), |at| self.all.get(at).map_or(Ordering::Less, |(own, _)| (**own).cmp(name)))
    }

    /// How often it was counted.
    pub(super) fn get(&self, name: &str) -> u32 {
        self.place(name).and_then(|at| self.all.get(at)).map_or(0, |(_, count)| *count)
    }

    /// Counts it, and gives how often it had been before. `own` makes the name that is kept.
    pub(super) fn count(&mut self, name: &str, own: impl FnOnce() -> Arc<str>) -> u32 {
        if let Some((_, count)) = self.place(name).and_then(|at| self.all.get_mut(at)) {
            let before = *count;
            *count = before.saturating_add(1);
            return before;
        }
        if self.all.is_empty() {
            self.all.reserve(FEW);
        }
        self.all.push((own(), 1));
        let all = &self.all;
        let name = |at: usize| all.get(at).map(|(name, _)| name);
        self.order.append(all.len(), |one, other| name(one).cmp(&name(other)));
        0
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.all.iter().map(|(name, _)| &**name)
    }
}

/// Once-values by name and use (A11), and the uses of this run.
#[derive(Debug, Default)]
pub(super) struct OnceNames {
    uses: Counted,
    order: Order,
}

impl OnceNames {
    pub(super) fn of(list: &[Once]) -> Self {
        let mut names = Self::default();
        names.append(list);
        names
    }

    /// The list has changed: takes its places again. Uses are kept.
    pub(super) fn find_again(&mut self, list: &[Once]) {
        self.order = Order::default();
        self.append(list);
    }

    /// Values were appended to the list.
    pub(super) fn append(&mut self, list: &[Once]) {
        let which = |at: usize| list.get(at).map(|once| (&once.name, once.nth));
        self.order.append(list.len(), |one, other| which(one).cmp(&which(other)));
    }

    /// Which use of the name comes next in this run, from 0.
    pub(super) fn next_use(&mut self, name: &str) -> u32 {
        self.uses.count(name, || name.into())
    }

    pub(super) fn find<'j>(&self, list: &'j [Once], name: &str, nth: u32) -> Option<&'j Once> {
        let compare = |once: &Once| (*once.name).cmp(name).then(once.nth.cmp(&nth));
        let at = self.order.find(list.len(), |at| list.get(at).map_or(Ordering::Less, compare))?;
        list.get(at)
    }
}

/// Named values (A11), and which were read, in that order.
#[derive(Debug, Default)]
pub(super) struct ValueNames {
    read: Counted,
    order: Order,
}

impl ValueNames {
    pub(super) fn of(list: &[Named]) -> Self {
        let mut names = Self::default();
        names.append(list);
        names
    }

    /// Values were appended to the list.
    pub(super) fn append(&mut self, list: &[Named]) {
        let name = |at: usize| list.get(at).map(|value| &value.name);
        self.order.append(list.len(), |one, other| name(one).cmp(&name(other)));
    }

    pub(super) fn place(&self, list: &[Named], name: &str) -> Option<usize> {
        self.order.find(list.len(), |at| list.get(at).map_or(Ordering::Less, |value| (*value.name).cmp(name)))
    }

    pub(super) fn find<'j>(&self, list: &'j [Named], name: &str) -> Option<&'j Named> {
        self.place(list, name).and_then(|at| list.get(at))
    }

    pub(super) fn note_read(&mut self, name: &str) {
        self.read.count(name, || name.into());
    }

    /// The names that were read, in the order in which they first were.
    pub(super) fn read(&self) -> impl Iterator<Item = &str> {
        self.read.names()
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
        list.push(once("a", 1));
        names.append(&list);
        assert!(names.find(&list, "a", 1) == Some(&once("a", 1)) && names.find(&list, "a", 7).is_some());
        list.retain(|once| once.segment == 0);
        names.find_again(&list);
        assert!(names.find(&list, "a", 0).is_some() && names.find(&list, "a", 1).is_none());
        assert_eq!((names.next_use("a"), names.next_use("c")), (2, 0));
        // Taken out, with places left behind.
        assert!(names.find(&[], "a", 0).is_none() && names.find(&[once("b", 0)], "a", 0).is_none());
    }

    /// The same by looking through a few and by the order of many, whatever comes first.
    #[test]
    fn many_are_found_as_few_are() {
        for count in [FEW - 1, FEW, FEW + 1, 100] {
            let name = |n: usize| alloc::format!("k{}", n * 37 % count);
            let mut list = Vec::new();
            let (mut names, mut counted) = (OnceNames::default(), Counted::default());
            for n in 0..count {
                assert!(names.find(&list, &name(n), 7).is_none() && counted.get(&name(n)) == 0);
                assert_eq!(counted.count(&name(n), || name(n).into()), 0);
                list.push(once(&name(n), 7));
                names.append(&list);
            }
            let again = OnceNames::of(&list);
            for n in 0..count {
                for names in [&names, &again] {
                    assert!(names.find(&list, &name(n), 7) == list.get(n));
                    assert!(
                        names.find(&list, &name(n), 6).is_none() && names.find(&[], &name(n), 7).is_none()
                    );
                }
                assert_eq!((counted.get(&name(n)), counted.count(&name(n), || "".into())), (1, 1));
            }
            assert!(counted.get("") == 0 && counted.names().eq((0..count).map(name)));
        }
    }
}
