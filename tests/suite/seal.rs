//! Sealed states through the public API (R-069…R-078).

mod blobs;
mod frozen;
mod inspecting;
mod laws;
mod rotation;
mod secrecy;
mod tampering;
mod tickets;
mod vectors;
mod verdicts;

use std::time::Duration;

use mrtr_core::{
    Entropy, RpcError, Timestamp,
    seal::{Binding, ExchangeId, KeyRing, NewClaims, Principal, Refused, Sealer, Secret, Verdict},
};

pub(crate) const NOW: Timestamp = Timestamp::from_unix_millis(1_785_000_000_000);
pub(crate) const REQUEST: [u8; 32] = [3; 32];
pub(crate) const ADA: Binding<'static> =
    Binding { principal: Principal::Authenticated(b"https://issuer.example|ada"), request: &REQUEST };

/// A constructor of a sealer.
pub(crate) type Make = fn(&KeyRing, &str) -> Sealer;

/// The suites that protect.
pub(crate) const SUITES: [(&str, Make); 3] = [
    ("hmac-sha256", Sealer::signed_readable),
    ("xchacha20-poly1305", Sealer::encrypted),
    ("aes-256-gcm", Sealer::encrypted_aes_gcm),
];

pub(crate) fn make(suite: &str) -> Make {
    SUITES.iter().find(|(name, _)| *name == suite).expect("a suite of the list").1
}

pub(crate) fn secret(byte: u8) -> Secret {
    Secret::from_bytes(&[byte; 32]).expect("32 bytes")
}

pub(crate) fn sealers() -> impl Iterator<Item = Sealer> {
    SUITES.iter().map(|(_, make)| make(&KeyRing::new(secret(7)), "billing"))
}

pub(crate) fn claims(round: u32) -> NewClaims {
    NewClaims {
        exchange: ExchangeId::from_bytes([0xe1; 16]),
        round,
        state_only: 0,
        deadline: after(NOW, 3_600_000),
        ttl: None,
    }
}

/// A state that is good for the default TTL from `NOW` on.
pub(crate) fn token(sealer: &Sealer, payload: &[u8], seed: u64) -> String {
    sealer.seal(&claims(1), payload, &ADA, NOW, &entropy(seed)).expect("within the limits")
}

pub(crate) fn entropy(seed: u64) -> Entropy {
    let mut random = Random(seed);
    Entropy::new(core::array::from_fn(|_| random.byte()))
}

pub(crate) fn after(time: Timestamp, millis: u64) -> Timestamp {
    time.saturating_add(Duration::from_millis(millis))
}

pub(crate) fn before(time: Timestamp, millis: u64) -> Timestamp {
    Timestamp::from_unix_millis(time.as_unix_millis() - millis)
}

/// The verdict of a refusal, whose message on the wire must be the one of all (G-11).
pub(crate) fn verdict<T>(opened: Result<T, Refused>) -> Result<T, Verdict> {
    opened.map_err(|refused| {
        let error = RpcError::from(refused);
        assert_eq!(
            (error.code.get(), &*error.message, error.data()),
            (-32602, "Invalid or expired requestState", None)
        );
        refused.verdict
    })
}

/// SplitMix64: the same numbers in every run.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn byte(&mut self) -> u8 {
        self.next().to_le_bytes()[0]
    }

    pub(crate) fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % u64::try_from(bound).expect("small")).expect("below a usize")
    }
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub(crate) fn unhex(text: &str) -> Vec<u8> {
    assert!(text.len().is_multiple_of(2));
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).expect("hex")).collect()
}

pub(crate) fn array<const N: usize>(text: &str) -> [u8; N] {
    unhex(text).try_into().expect("as many bytes as the field has")
}
