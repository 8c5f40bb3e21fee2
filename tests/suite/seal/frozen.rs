//! Tokens of released formats, which must open for ever, and the promise that a changed format says so.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde::{Deserialize, Serialize};

use super::{
    hex, unhex,
    vectors::{BlobVector, StateVector, TicketVector},
};

#[derive(Deserialize, Serialize)]
struct Frozen {
    states: Vec<StateVector>,
    tickets: Vec<TicketVector>,
    blobs: Vec<BlobVector>,
}

/// Releases, and those whose tokens we still make byte for byte. How a nonce comes out of entropy is no part of the
/// format, and changed before the first release.
const RELEASES: [(&str, bool, &str); 2] = [
    ("v0.1-early", false, include_str!("../../frozen/v0.1-early/seal.json")),
    ("v0.1", true, include_str!("../../frozen/v0.1/seal.json")),
];

fn frozen() -> impl Iterator<Item = (&'static str, bool, Frozen)> {
    RELEASES
        .iter()
        .map(|(release, made, text)| (*release, *made, serde_json::from_str(text).expect("its JSON")))
}

// A service that is upgraded goes on serving the exchanges that are in flight (R-071, G-54).
#[test]
fn frozen_tokens_open() {
    for (release, _, frozen) in frozen() {
        for suite in super::SUITES.map(|(name, _)| name) {
            assert!(frozen.states.iter().any(|state| state.suite == suite), "{suite} in {release}");
            assert!(frozen.tickets.iter().any(|ticket| ticket.suite == suite), "{suite} in {release}");
            assert!(frozen.blobs.iter().any(|blob| blob.suite == suite), "{suite} in {release}");
        }
        frozen.states.iter().for_each(StateVector::opens);
        frozen.tickets.iter().for_each(TicketVector::opens);
        frozen.blobs.iter().for_each(BlobVector::opens);
    }
}

// If this fails, the format has changed: raise the version byte, keep opening the old version, and freeze anew.
#[test]
fn a_format_that_changes_has_another_version_byte() {
    let unchanged = |name: &str, frozen: &[u8], made: &[u8]| {
        if made[0] == frozen[0] {
            assert_eq!(made, frozen, "{name}: other bytes under version {}", made[0]);
        }
    };
    let decoded = |token: &str| URL_SAFE_NO_PAD.decode(token).expect("canonical");
    for (.., frozen) in frozen().filter(|(_, made, _)| *made) {
        for state in &frozen.states {
            unchanged(&state.name, &decoded(&state.token), &decoded(&state.sealed()));
        }
        for ticket in &frozen.tickets {
            unchanged(&ticket.name, &decoded(&ticket.token), &decoded(&ticket.sealed()));
        }
        for blob in &frozen.blobs {
            unchanged(&blob.name, &unhex(&blob.blob), &unhex(&blob.sealed()));
        }
    }
}

/// The file of the last release is what would be frozen now. With `MRTR_FREEZE=FILE` it is written, for the release of a
/// new format.
#[test]
fn frozen_anew_it_is_the_same() {
    let (mut states, mut tickets, mut blobs) = (Vec::new(), Vec::new(), Vec::new());
    for (n, (suite, _)) in super::SUITES.iter().enumerate() {
        let mut random = super::Random(0xf0 + u64::try_from(n).expect("small"));
        let mut bytes = |size: usize| hex(&(0..size).map(|_| random.byte()).collect::<Vec<_>>());
        for (name, principal, payload) in
            [("anonymous and empty", None, 0), ("a principal and a payload", Some(bytes(20)), 300)]
        {
            states.push(StateVector {
                name: name.into(),
                suite: (*suite).into(),
                secret: bytes(32),
                audience: "frozen".into(),
                principal: principal.clone(),
                request: bytes(32),
                entropy: bytes(32),
                exchange: bytes(16),
                round: 3,
                state_only: 1,
                issued: 1_785_000_000_000,
                ttl: 600_000,
                expires: 1_785_000_600_000,
                deadline: 1_785_003_600_000,
                payload: bytes(payload),
                token: String::new(),
            });
            tickets.push(TicketVector {
                name: name.into(),
                suite: (*suite).into(),
                secret: bytes(32),
                audience: "frozen".into(),
                principal,
                entropy: bytes(32),
                exchange: bytes(16),
                key: "pay#1".into(),
                expires: 1_785_000_600_000,
                token: String::new(),
            });
        }
        for kind in ["ledger", "handle"] {
            blobs.push(BlobVector {
                name: kind.into(),
                suite: (*suite).into(),
                kind: kind.into(),
                secret: bytes(32),
                audience: "frozen".into(),
                place: bytes(24),
                entropy: bytes(32),
                content: bytes(100),
                blob: String::new(),
            });
        }
    }
    states.iter_mut().for_each(|state| state.token = state.sealed());
    tickets.iter_mut().for_each(|ticket| ticket.token = ticket.sealed());
    blobs.iter_mut().for_each(|blob| blob.blob = blob.sealed());
    let frozen = Frozen { states, tickets, blobs };
    let text = format!("{}\n", serde_json::to_string_pretty(&frozen).expect("plain data"));
    if let Some(file) = std::env::var_os("MRTR_FREEZE") {
        std::fs::write(file, &text).expect("a file that can be written");
    }
    let (release, _, last) = RELEASES[RELEASES.len() - 1];
    assert_eq!(text.trim_end(), last.trim_end(), "{release}");
}
