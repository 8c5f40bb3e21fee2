//! Any text as a state: no suite opens it (nobody has the key), none panics, and looking into it does not either.
#![no_main]

use libfuzzer_sys::fuzz_target;
use mrtr_core::seal::{Binding, Principal, inspect};

fuzz_target!(|token: &str| {
    let _ = inspect(token);
    let binding = Binding { principal: Principal::Authenticated(b"alice"), request: &[7; 32] };
    for sealer in mrtr_fuzz::server::sealers() {
        let refused = sealer.open(token, &binding, mrtr_fuzz::server::NOW).expect_err("nobody has the key");
        // What could be a state: longer than any word of ours, and of the alphabet of states.
        let state = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        if token.len() >= 24 && token.bytes().all(state) {
            assert!(!format!("{refused:?} {refused}").contains(token));
        }
        assert!(sealer.open_ticket(token, Principal::Anonymous, mrtr_fuzz::server::NOW).is_err());
    }
});
