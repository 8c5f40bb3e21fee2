//! Our validation against the `jsonschema` crate: R-132, G-22, B-31, B-32.

use mrtr_tests::form::{Verdict, compare, differential};

/// Bytes from a seed (splitmix64).
fn bytes(seed: u64) -> Vec<u8> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)).to_le_bytes()
    };
    (0..16).flat_map(|_| next()).collect()
}

/// R-132: the same fields at fault over 8,000 pairs, and both verdicts well represented.
#[test]
fn agrees_with_jsonschema() {
    let pairs = 8_000;
    let valid = (0..pairs).filter(|seed| differential(&bytes(*seed)) == Verdict::Valid).count();
    assert!(valid > 1_000 && valid < 7_000, "{valid} of {pairs} valid");
}

/// G-22, B-32: the numbers of the issue, each as value and as bound.
#[test]
fn agrees_on_every_pair_of_hard_numbers() {
    // Not among them: decimals beyond 2^53 and below 1e-308, which the oracle rounds; the table of shapes has those.
    let numbers = [
        "0",
        "-0",
        "-0.0",
        "1",
        "1.0",
        "1.5",
        "1e2",
        "100",
        "100.0",
        "9007199254740992",
        "9007199254740993",
        "9223372036854775808",
        "18446744073709551615",
        "18446744073709551616",
        "-9223372036854775809",
        "1e400",
        "0.1",
        "0.10",
        "0.10000000000000000000000000000000001",
    ];
    for kind in ["integer", "number"] {
        for keyword in ["minimum", "maximum"] {
            for bound in numbers {
                let schema = format!(
                    r#"{{"type":"object","properties":{{"n":{{"type":"{kind}","{keyword}":{bound}}}}}}}"#
                );
                for value in numbers {
                    compare(&schema, &format!(r#"{{"n":{value}}}"#));
                }
            }
        }
    }
}
