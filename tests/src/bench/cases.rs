//! What is measured of an exchange, piece by piece.

use core::hint::black_box;

use mrtr_core::{Limits, jsonrpc::admit};

use super::Case;
use crate::{
    bridge_bench::Relay,
    exchange::{Bench, SUITES},
};

/// All cases.
///
/// # Panics
///
/// If what they are made of is wrong.
#[must_use]
pub fn cases() -> Vec<Case> {
    let call = retry(1);
    let long = retry(64);
    let mut cases = vec![
        Case::new("admit/retry", move || {
            black_box(admit(black_box(call.as_bytes()), &Limits::default()).expect("a good message"));
        }),
        Case::new("admit/retry-64-answers", move || {
            black_box(admit(black_box(long.as_bytes()), &Limits::default()).expect("a good message"));
        }),
    ];
    // Call, interim result, answer, retry, result; both sides, bytes to bytes.
    for suite in SUITES {
        let (bench, mut number) = (Bench::new(suite, 1), 0);
        cases.push(Case::new(whole(suite), move || {
            number += 1;
            black_box(bench.exchange(number));
        }));
    }
    // Through a bridge, modern to modern: a call and its result; a call and questions, whose state is wrapped.
    for (name, interim) in [("bridge/relay-two-messages", false), ("bridge/relay-two-messages-wrapped", true)]
    {
        let mut relay = Relay::new();
        cases.push(Case::new(name, move || {
            black_box(relay.exchange(interim));
        }));
    }
    // The last request of an exchange with ten recorded asks, bytes to bytes.
    let bench = Bench::new("xchacha", 10);
    let (request, mut reply, mut number) = (bench.exchange(0), Vec::new(), 0);
    cases.push(Case::new("replay/10-asks", move || {
        number += 1;
        reply.clear();
        bench.serve(&request, 256 + number, &mut reply);
        black_box(&reply);
    }));
    // The same request without its replay: admitted, digested, its state opened and read, and the run dropped.
    let bench = Bench::new("xchacha", 10);
    let (request, mut number) = (bench.exchange(0), 0);
    cases.push(Case::new("replay/10-asks-received", move || {
        number += 1;
        bench.receive(&request, 256 + number);
    }));
    // And what its handler does by itself: ten keys, ten answers decoded.
    cases.push(Case::new("replay/10-asks-alone", || {
        black_box(Bench::alone(black_box(10)));
    }));
    cases
}

fn whole(suite: &str) -> &'static str {
    match suite {
        "hmac" => "exchange/hmac",
        "xchacha" => "exchange/xchacha",
        "aes-gcm" => "exchange/aes-gcm",
        other => panic!("no suite {other}"),
    }
}

/// A retry as it arrives: answers, a state of usual size, the metadata of a modern request.
fn retry(answers: usize) -> String {
    let answers: Vec<String> = (0..answers)
        .map(|n| {
            format!(r#""question_{n}":{{"action":"accept","content":{{"name":"Ada Lovelace","age":36}}}}"#)
        })
        .collect();
    format!(
        concat!(
            r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{"name":"book","arguments":{{"city":"Lisbon","#,
            r#""nights":3,"budget":450.5}},"inputResponses":{{{answers}}},"requestState":"{state}","_meta":{{"#,
            r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{{"name":"#,
            r#""bench","version":"1"}},"io.modelcontextprotocol/clientCapabilities":{{"elicitation":{{}}}}}}}}}}"#
        ),
        answers = answers.join(","),
        state = "A".repeat(400),
    )
}
