//! A pipe cut into pieces anywhere gives the same messages.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| mrtr_core::framing::fuzzing::lines_of_any_split(input));
