//! Any text as a state: no suite opens it (nobody has the key), none panics, and looking into it does not either.
#![no_main]

use libfuzzer_sys::fuzz_target;
use mrtr_core::seal::{Binding, Principal, inspect};

fuzz_target!(|token: &str| {
    let _ = inspect(token);
    let binding = Binding { principal: Principal::Authenticated(b"alice"), request: &[7; 32] };
    for sealer in mrtr_fuzz::server::sealers() {
        let refused = sealer.open(token, &binding, mrtr_fuzz::server::NOW).expect_err("nobody has the key");
        assert!(!format!("{refused:?} {refused}").contains(token) || token.len() < 8);
        assert!(sealer.open_ticket(token, Principal::Anonymous, mrtr_fuzz::server::NOW).is_err());
    }
});
