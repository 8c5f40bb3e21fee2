//! The headers that our client makes of a request are the ones that our server wants of it.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| mrtr_core::http::fuzzing::client_and_server_agree(input));
