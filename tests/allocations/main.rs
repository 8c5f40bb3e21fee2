//! What does not allocate, or allocates a known number of times. A binary of its own, for it replaces the allocator.

mod abandoned;
mod hostile;

use std::time::Duration;

use mrtr_core::{
    Entropy, Timestamp,
    seal::{Binding, ExchangeId, KeyRing, NewClaims, Principal, Sealer, Secret, Verdict},
};
use mrtr_tests::exchange::{Bench, SUITES};

const NOW: Timestamp = Timestamp::from_unix_millis(1_785_000_000_000);
const ADA: Binding<'static> = Binding { principal: Principal::Authenticated(b"ada"), request: &[3; 32] };

fn sealers() -> [Sealer; 3] {
    let ring = KeyRing::new(Secret::from_bytes(&[7; 32]).expect("32 bytes"));
    [
        Sealer::signed_readable(&ring, "billing"),
        Sealer::encrypted(&ring, "billing"),
        Sealer::encrypted_aes_gcm(&ring, "billing"),
    ]
}

// B-27: a token of 3 MB is refused by its length: not decoded, and nothing allocated for it.
#[test]
fn a_token_that_is_too_long_costs_nothing() {
    let huge = "A".repeat(3_000_000);
    for sealer in sealers() {
        let count = allocation_counter::measure(|| {
            let refused = sealer.open(&huge, &ADA, NOW).map(drop).unwrap_err();
            assert_eq!(refused.verdict, Verdict::TooLarge);
            let refused = sealer.open_ticket(&huge, ADA.principal, NOW).unwrap_err();
            assert_eq!(refused.verdict, Verdict::TooLarge);
        });
        assert_eq!(count.count_total, 0);
    }
}

// B-27: nor does it cost anything in a request, however it is written.
#[test]
fn a_request_with_a_token_that_is_too_long_costs_next_to_nothing() {
    for suite in SUITES {
        let bench = Bench::new(suite, 1);
        for state in
            ["A".repeat(3_000_000), "\\u0041".repeat(500_000), format!("\\n{}", "A".repeat(3_000_000))]
        {
            let message = serde_json::json!({
                "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
                    "name": "greet", "arguments": {}, "requestState": "@", "inputResponses": {}, "_meta": {
                        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                        "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
                        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}},
                    },
                },
            });
            let message = message.to_string().replace('@', &state);
            let mut reply = Vec::new();
            let count = allocation_counter::measure(|| reply = bench.refuse(message.as_bytes(), 1));
            let reply: serde_json::Value = serde_json::from_slice(&reply).expect("JSON");
            assert_eq!(reply["error"]["message"], "Invalid or expired requestState", "{reply}");
            assert!(count.bytes_total < 4_096, "{suite}: {count:?}");
        }
    }
}

// G-07: what is allocated for a state is a small multiple of its length, in a fixed number of pieces.
#[test]
fn a_state_costs_a_few_allocations() {
    for sealer in sealers() {
        let claims = NewClaims {
            exchange: ExchangeId::from_bytes([1; 16]),
            round: 1,
            state_only: 0,
            deadline: NOW.saturating_add(Duration::from_secs(3_600)),
            ttl: None,
        };
        let payload = vec![0x5a; 30_000];
        let entropy = Entropy::new([9; 32]);
        let mut token = String::new();
        let sealing = allocation_counter::measure(|| {
            token = sealer.seal(&claims, &payload, &ADA, NOW, &entropy).expect("within the limits");
        });
        // The sealed bytes, their text, and what is authenticated.
        assert!(sealing.count_total <= 3, "{sealing:?}");
        assert!(sealing.bytes_max <= 100_000, "{sealing:?}");

        let opening = allocation_counter::measure(|| drop(sealer.open(&token, &ADA, NOW).expect("its own")));
        // The bytes, in which the payload stays, and what is authenticated.
        assert!(opening.count_total <= 2, "{opening:?}");
        assert!(opening.bytes_max <= 40_000, "{opening:?}");

        // A stranger's token is no dearer.
        let stranger = format!("{}{}", &token[..60_000 / 4 * 2], "A".repeat(10_000));
        let refusing = allocation_counter::measure(|| {
            assert!(sealer.open(&stranger, &ADA, NOW).is_err());
        });
        assert!(refusing.bytes_max <= 40_000, "{refusing:?}");
    }
}

/// A whole exchange, server and client, from the call to the result.
#[test]
fn an_exchange_allocates_at_most_60_times() {
    for suite in SUITES {
        let bench = Bench::new(suite, 1);
        let count = allocation_counter::measure(|| drop(bench.exchange(1)));
        assert!(count.count_total <= 60, "{suite}: {count:?}");
    }
}

/// The last request of an exchange of ten questions: what the handler makes of each answer included.
#[test]
fn a_replayed_ask_allocates_at_most_9_times() {
    let serve = |rounds| {
        let bench = Bench::new("xchacha", rounds);
        let (request, mut reply) = (bench.exchange(1), Vec::with_capacity(4_096));
        allocation_counter::measure(|| bench.serve(&request, 256, &mut reply)).count_total
    };
    let (one, ten) = (serve(1), serve(10));
    assert!(ten <= one + 9 * 9, "{one} for one ask, {ten} for ten");
}

// Design: the bridge. 10,000 parked calls on HTTP sessions cost at most 4 KiB each beyond the questions themselves.
#[test]
fn a_parked_call_is_small() {
    let mut held = None;
    let count = 10_000;
    let info = allocation_counter::measure(|| held = Some(mrtr_tests::bridge_bench::parked(count)));
    let question = 150;
    let each = u64::try_from(info.bytes_current).expect("something is held") / count;
    println!("{each} bytes a parked call");
    assert!(each <= 4_096 + question, "{each}");
    drop(held);
}
