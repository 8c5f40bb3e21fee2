//! One message of one era into the other: BT-1…BT-6.

mod asks;
mod outcomes;
mod requests;

use mrtr_core::{Limits, jsonrpc::Json};

fn json(text: &str) -> Json<'_> {
    Json::parse(text, &Limits::default()).unwrap_or_else(|refusal| panic!("{refusal}: {text}"))
}

fn written(write: impl FnOnce(&mut Vec<u8>)) -> String {
    let mut out = Vec::new();
    write(&mut out);
    let text = String::from_utf8(out).expect("UTF-8");
    assert!(!text.contains('\n'), "{text}");
    if !text.is_empty() {
        json(&text);
    }
    text
}
