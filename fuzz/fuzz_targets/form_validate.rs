//! A form and an answer to it, one a line: no panic; what is left of a valid answer is valid and stays as it is.
#![no_main]

use libfuzzer_sys::fuzz_target;
use mrtr_core::{Limits, form::Schema, jsonrpc::Json};

fuzz_target!(|text: &str| {
    let limits = Limits::default();
    let mut lines = text.splitn(2, '\n').filter_map(|line| Json::parse(line, &limits).ok());
    let (Some(schema), Some(content)) = (lines.next(), lines.next()) else { return };
    let Ok(schema) = Schema::read(schema) else { return };
    match schema.validate(content) {
        Ok(cleaned) => {
            let again = schema.validate(cleaned.as_json()).expect("what is left is valid");
            assert_eq!(again.as_str(), cleaned.as_str());
        }
        Err(invalid) => assert!(!format!("{invalid}").is_empty()),
    }
});
