//! Values that a run makes once and later runs find again (A11).

use alloc::{boxed::Box, string::String};

use super::{Fault, Tape};
use crate::journal::{Named, Once};

/// Once-values under such a name are tickets: not effects, and made for one key.
pub(crate) const TICKETS: &str = "mrtr/ticket/";

/// Which use of a once-name this is; hand it back with the value.
#[derive(Clone, Debug)]
pub struct OnceUse {
    name: Box<str>,
    nth: u32,
}

/// What a run made once, to be lent to another run of the same bytes.
#[cfg(feature = "std")]
#[derive(Clone, Default)]
pub(crate) struct OnceValues(alloc::vec::Vec<Once>);

#[cfg(feature = "std")]
impl crate::journal::Journal {
    pub(crate) fn once_values(&self) -> OnceValues {
        OnceValues(self.once.clone())
    }
}

#[cfg(feature = "std")]
impl Tape {
    /// Makes the once-values of another run known to this one.
    pub(crate) fn lend(&mut self, values: OnceValues) {
        for value in values.0 {
            if self.once.find(&self.journal.once, &value.name, value.nth).is_none() {
                self.push_once(value);
            }
        }
    }
}

impl Tape {
    /// The next use of a once-name in this run: its recorded value as JSON text, or the use to record.
    ///
    /// # Errors
    ///
    /// The use to make a value for: make it and hand both to [`record_once`](Self::record_once).
    pub fn once(&mut self, name: &str) -> Result<String, OnceUse> {
        let nth = self.once.next_use(name);
        match self.once.find(&self.journal.once, name, nth) {
            Some(once) => Ok(String::from(&*once.value)),
            None => Err(OnceUse { name: name.into(), nth }),
        }
    }

    /// Records the value of a use, JSON text.
    pub fn record_once(&mut self, which: OnceUse, value: String) {
        let segment = u32::try_from(self.segment).unwrap_or(u32::MAX);
        self.push_once(Once { name: which.name, nth: which.nth, segment, value: value.into() });
    }

    fn push_once(&mut self, value: Once) {
        self.journal.once.push(value);
        self.once.append(&self.journal.once);
    }

    /// A value could not be written or read: ends the attempt at the next step.
    pub fn spoil_once(&mut self, name: &str) {
        self.misuse.get_or_insert(Fault::BadValue(name.into()));
    }

    /// A named value as JSON text: memory across attempts, not part of the tape (A11). Divergence reports list
    /// the names read.
    pub fn value(&mut self, name: &str) -> Option<String> {
        self.values.note_read(name);
        self.values.find(&self.journal.values, name).map(|value| String::from(&*value.value))
    }

    /// Sets a named value, JSON text.
    pub fn set_value(&mut self, name: &str, value: String) {
        let (values, value) = (&mut self.journal.values, value.into());
        match self.values.place(values, name).and_then(|at| values.get_mut(at)) {
            Some(found) => found.value = value,
            None => {
                values.push(Named { name: name.into(), value });
                self.values.append(values);
            }
        }
    }
}
