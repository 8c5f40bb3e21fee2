//! The journal's bytes: what reads writes the same bytes again, whatever else reads nothing.
#![no_main]

use libfuzzer_sys::fuzz_target;
use mrtr_core::{Limits, journal::Journal};

fuzz_target!(|bytes: &[u8]| {
    let limits = Limits::default();
    if let Ok(journal) = Journal::decode(bytes, &limits) {
        let mut again = Vec::new();
        journal.encode(&mut again);
        assert_eq!(again, bytes);
        // A few bytes can stand for many rounds, but never for more than the caps.
        assert!(journal.rounds_sent() <= (limits.rounds + limits.state_only_rounds) as usize);
        assert!(!format!("{journal:?}").is_empty());
    }
});
