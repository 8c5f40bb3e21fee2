//! An event stream cut into pieces anywhere gives the same events.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| mrtr_core::framing::fuzzing::events_of_any_split(input));
