//! Any headers at the gate and the checks: no panic, no verdict that contradicts another.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| mrtr_core::http::fuzzing::any_headers(input));
