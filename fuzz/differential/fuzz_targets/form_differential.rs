//! A form and an answer that nearly fit each other, made from the bytes: the `jsonschema` crate finds the same fields at
//! fault, and what is left of a valid answer is valid to it (R-132, G-22, B-31, B-32).
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    mrtr_tests::form::differential(data);
});
