//! What the ledger's store is asked, and what it says.

use super::Call;
use crate::settings::date;
use mrtr_core::ledger::{Operation, StoreEvent};
use wasm_bindgen::prelude::*;

#[wasm_bindgen]
impl Call {
    /// The key of the entry, as text.
    pub fn store_key(&self) -> String {
        self.command.as_ref().map(|command| command.key.to_string()).unwrap_or_default()
    }

    /// Whether it is a compare-and-set.
    pub fn store_sets(&self) -> bool {
        self.command
            .as_ref()
            .is_some_and(|command| matches!(command.operation, Operation::CompareAndSet { .. }))
    }

    /// Bytes that must be there.
    pub fn store_expected(&self) -> Option<Vec<u8>> {
        match &self.command.as_ref()?.operation {
            Operation::CompareAndSet { expected, .. } => expected.clone(),
            Operation::Get => None,
        }
    }

    /// Bytes to put there.
    pub fn store_new(&self) -> Option<Vec<u8>> {
        match &self.command.as_ref()?.operation {
            Operation::CompareAndSet { new, .. } => new.clone(),
            Operation::Get => None,
        }
    }

    /// When the store forgets them.
    pub fn store_expires(&self) -> f64 {
        match self.command.as_ref().map(|command| &command.operation) {
            Some(Operation::CompareAndSet { expires, .. }) => date(*expires),
            Some(Operation::Get) | None => 0.0,
        }
    }

    /// What the store said: `a`pplied, the `c`urrent bytes, `f`ull, or nothing.
    pub fn stored(&mut self, what: char, current: Option<Vec<u8>>) {
        self.command = None;
        self.mail.lock().stored = Some(match what {
            'a' => StoreEvent::Applied,
            'c' => StoreEvent::Current(current),
            'f' => StoreEvent::Full,
            _ => StoreEvent::Unavailable,
        });
    }
}
