//! The journal's bytes: what reads writes the same bytes again, whatever else reads nothing.
#![no_main]

use libfuzzer_sys::fuzz_target;
use mrtr_core::{Limits, journal::Journal};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(journal) = Journal::decode(bytes, &Limits::default()) {
        let mut again = Vec::new();
        journal.encode(&mut again);
        assert_eq!(again, bytes);
        assert!(journal.rounds_sent() <= journal.asks().count() + bytes.len());
        assert!(!format!("{journal:?}").is_empty());
    }
});
