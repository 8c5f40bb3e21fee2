//! Any bytes as a saved exchange: no panic; what is taken up is saved as bytes that are taken up as the same; nothing is
//! taken up for another server; and the retry is one line of JSON with a new id.
#![no_main]

use libfuzzer_sys::fuzz_target;
use mrtr_core::{
    Limits, Timestamp,
    client::{Client, Config, InputResponse, ResumeError},
    jsonrpc::{Message, admit},
    wire::{AskKind, ClientCapabilities, Implementation},
};
use mrtr_fuzz::{saved_head, server::json};

fuzz_target!(|input: &[u8]| {
    let client = Client::new(Config::new(Implementation::new("fuzz", "1"), ClientCapabilities::ALL));
    // The digest of the origin cannot be guessed.
    let (origin, head) = saved_head(&client);
    let _ = client.resume(input, origin);
    let whole = [&head, input].concat();
    let Ok(exchange) = client.resume(&whole, origin) else { return };
    let (mut once, mut twice) = (Vec::new(), Vec::new());
    exchange.save(origin, &mut once);
    let mut again = client.resume(&once, origin).expect("our own bytes");
    again.save(origin, &mut twice);
    assert_eq!(once, twice);
    assert_eq!(client.resume(&once, "elsewhere").map(drop), Err(ResumeError::OtherOrigin));
    let asks: Vec<(String, AskKind)> =
        again.asks().map(|ask| (ask.key().to_owned(), ask.request().kind())).collect();
    for (key, kind) in asks {
        let response = match kind {
            AskKind::Form | AskKind::Url => InputResponse::decline(),
            AskKind::Roots => InputResponse::roots(json("[]")),
            AskKind::Sampling => InputResponse::sampling(json(
                r#"{"role":"assistant","model":"m","content":{"type":"text","text":""}}"#,
            )),
        };
        again.answer(&key, response).expect("it was asked");
    }
    let mut out = Vec::new();
    let late = Timestamp::from_unix_millis(u64::MAX);
    let Ok(retrying) = again.proceed("a new id".into(), late, &mut out) else {
        assert!(out.is_empty());
        return;
    };
    assert!(!out.contains(&b'\n'));
    let Ok(Message::Request(request)) = admit(&out, &Limits::default()) else { panic!("not a request") };
    assert_eq!(&request.id, retrying.request_id());
});
