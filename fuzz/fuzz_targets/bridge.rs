//! Hosts and upstreams of both eras that say anything, in any order: no panic; every message is one line of JSON; a POST
//! gets one response; in the end nothing is left.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| mrtr_fuzz::bridge::drive(input));
