//! A client that is told anything, message after message, a line each: no panic; nobody is asked more often than
//! retries go out plus one that is about to; every request that goes out is one line of JSON with a new id; an
//! exchange that is stored and taken up again goes on the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use mrtr_core::{
    Limits, Timestamp,
    client::{Call, Client, Config, InputResponse, Received},
    jsonrpc::{Message, RequestId, admit},
    wire::{AskKind, ClientCapabilities, Implementation},
};

fuzz_target!(|input: &[u8]| {
    let client = Client::new(Config::new(Implementation::new("fuzz", "1"), ClientCapabilities::ALL));
    let mut now = Timestamp::from_unix_millis(1_000_000);
    let mut out = Vec::new();
    let call = Call::new("tools/call", r#"{"name":"t","arguments":{}}"#);
    let Ok(pending) = client.start(RequestId::from(1), call, now, &mut out) else { return };
    request(&out, 1);
    let mut lines = input.split(|&byte| byte == b'\n').take(16);
    let state = match lines.next() {
        Some(line) => pending.receive(line, now),
        None => return,
    };
    let mut id = 1;
    // The first reply.
    let mut asked = match state {
        Received::InputRequired(asked) => asked,
        _ => return,
    };
    for line in lines {
        let mut disk = Vec::new();
        asked.save("https://fuzz.example", &mut disk);
        let mut resumed = client.resume(&disk, "https://fuzz.example").expect("our own bytes");
        assert!(client.resume(&disk, "https://other.example").is_err());
        let asks: Vec<(String, AskKind)> =
            asked.asks().map(|ask| (ask.key().to_owned(), ask.request().kind())).collect();
        for (key, kind) in &asks {
            for exchange in [&mut asked, &mut resumed] {
                let answer = match kind {
                    AskKind::Form | AskKind::Url => InputResponse::cancel(),
                    AskKind::Roots => InputResponse::roots(mrtr_fuzz::server::json("[]")),
                    AskKind::Sampling => InputResponse::sampling(mrtr_fuzz::server::json(
                        r#"{"role":"assistant","model":"m","content":{"type":"text","text":""}}"#,
                    )),
                };
                exchange.answer(key, answer).expect("it was asked");
            }
        }
        now = asked.not_before().unwrap_or(now).max(now);
        id += 1;
        out.clear();
        let mut again = Vec::new();
        let retrying = asked.proceed(RequestId::from(id), now, &mut out);
        let other = resumed.proceed(RequestId::from(id), now, &mut again);
        assert_eq!(retrying.is_ok(), other.is_ok());
        assert_eq!(out, again);
        let Ok(retrying) = retrying else { return };
        request(&out, id);
        let next = retrying.receive(line, now);
        match next {
            Received::InputRequired(next) => asked = next,
            _ => return,
        }
    }
});

fn request(out: &[u8], id: i64) {
    assert!(!out.contains(&b'\n'));
    match admit(out, &Limits::default()) {
        Ok(Message::Request(request)) => assert_eq!(request.id, RequestId::from(id)),
        other => panic!("{other:?}"),
    }
}
