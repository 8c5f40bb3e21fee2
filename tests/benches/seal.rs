//! What sealing costs over its bare primitives, one line a figure: `cargo bench -p mrtr-tests --bench seal`.
//!
//! "Bare" is the suite's primitive once to protect and once to check the payload alone, plus base64 both ways, over
//! the same bytes in the same run. Both are measured in turns, and the best of many turns counts: what other programs
//! on the machine do can only make a turn slower. `--check` makes it fail where a bound is exceeded.

#![expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

use std::{
    hint::black_box,
    time::{Duration, Instant},
};

use aes_gcm::Aes256Gcm;
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use chacha20poly1305::{KeyInit as _, XChaCha20Poly1305, aead::AeadInOut as _};
use hmac::{Hmac, Mac as _};
use mrtr_core::{
    Entropy, Timestamp,
    seal::{Binding, ExchangeId, KeyRing, NewClaims, Principal, Sealer, Secret},
};
use sha2::Sha256;

const TURNS: u32 = 400;
const NOW: Timestamp = Timestamp::from_unix_millis(1_785_000_000_000);

/// A suite's primitive and base64, both ways.
type Bare = fn(&[u8]);

fn main() {
    let given = |name: &str| std::env::args().any(|arg| arg == name);
    // `cargo bench` says so; `cargo test --all-targets` starts this too, where measuring makes no sense.
    if !given("--bench") {
        return;
    }
    let ring = KeyRing::new(Secret::from_bytes(&[7; 32]).expect("32 bytes"));
    let suites: [(&str, Sealer, Bare, f64); 3] = [
        ("hmac-sha256", Sealer::signed_readable(&ring, "bench"), bare_hmac, 1.5),
        ("xchacha20-poly1305", Sealer::encrypted(&ring, "bench"), bare_xchacha, 1.5),
        ("aes-256-gcm", Sealer::encrypted_aes_gcm(&ring, "bench"), bare_aes_gcm, 2.0),
    ];
    let mut exceeded = false;
    for (name, sealer, bare, bound) in &suites {
        for size in [16, 1_024, 4_096, 16_384] {
            let payload: Vec<u8> = (0..size).map(|n: u32| n.to_le_bytes()[0] ^ 0x5a).collect();
            let (ours, bare) = compare(|| round(sealer, &payload), || bare(&payload));
            let ratio = ours.as_secs_f64() / bare.as_secs_f64();
            let (ours, bare) = (ours.as_nanos(), bare.as_nanos());
            print!("seal+open {name} {size} B: {ours} ns, bare {bare} ns, ratio {ratio:.2}");
            // The bound is one of a common state; a tiny one is nearly all fixed cost.
            if size == 4_096 {
                print!(" (bound {bound})");
                exceeded |= ratio > *bound;
            }
            println!();
        }
    }
    assert!(!(given("--check") && exceeded), "a bound is exceeded");
}

/// The best time of one call of each, in turns of about equal length.
fn compare(a: impl Fn(), b: impl Fn()) -> (Duration, Duration) {
    let time = |f: &dyn Fn(), calls: u32| {
        let start = Instant::now();
        for _ in 0..calls {
            f();
        }
        start.elapsed() / calls
    };
    let (mut best_a, mut best_b) = (Duration::MAX, Duration::MAX);
    for _ in 0..TURNS {
        best_a = best_a.min(time(&a, 50));
        best_b = best_b.min(time(&b, 50));
    }
    (best_a, best_b)
}

fn round(sealer: &Sealer, payload: &[u8]) {
    let entropy = Entropy::new([9; 32]);
    let claims = NewClaims {
        exchange: ExchangeId::from_bytes([1; 16]),
        round: 1,
        state_only: 0,
        deadline: NOW.saturating_add(Duration::from_secs(3_600)),
        ttl: None,
    };
    let binding =
        Binding { principal: Principal::Authenticated(b"https://issuer.example|ada"), request: &[3; 32] };
    let token = sealer.seal(&claims, black_box(payload), &binding, NOW, &entropy).expect("within the limits");
    let opened = sealer.open(black_box(&token), &binding, NOW).expect("its own token");
    black_box(&opened.payload);
}

fn bare_hmac(payload: &[u8]) {
    let mac = Hmac::<Sha256>::new_from_slice(black_box(&[7; 32])).expect("any length");
    let mut sealed = black_box(payload).to_vec();
    let tag = mac.clone().chain_update(&sealed).finalize().into_bytes();
    sealed.extend_from_slice(&tag);
    let decoded = through_text(&sealed);
    let (body, tag) = decoded.split_at(payload.len());
    assert!(mac.chain_update(body).verify_slice(tag).is_ok());
    black_box(body);
}

fn bare_xchacha(payload: &[u8]) {
    let cipher = XChaCha20Poly1305::new(black_box(&[7; 32]).into());
    let nonce = black_box([9; 24]).into();
    let mut sealed = black_box(payload).to_vec();
    let tag = cipher.encrypt_inout_detached(&nonce, &[], sealed.as_mut_slice().into()).expect("short enough");
    sealed.extend_from_slice(&tag);
    let mut decoded = through_text(&sealed);
    let (body, tag) = decoded.split_at_mut(payload.len());
    let tag = (&*tag).try_into().expect("16 bytes");
    cipher.decrypt_inout_detached(&nonce, &[], (&mut *body).into(), &tag).expect("unchanged");
    black_box(body);
}

fn bare_aes_gcm(payload: &[u8]) {
    let cipher = Aes256Gcm::new(black_box(&[7; 32]).into());
    let nonce = black_box([9; 12]).into();
    let mut sealed = black_box(payload).to_vec();
    let tag = cipher.encrypt_inout_detached(&nonce, &[], sealed.as_mut_slice().into()).expect("short enough");
    sealed.extend_from_slice(&tag);
    let mut decoded = through_text(&sealed);
    let (body, tag) = decoded.split_at_mut(payload.len());
    let tag = (&*tag).try_into().expect("16 bytes");
    cipher.decrypt_inout_detached(&nonce, &[], (&mut *body).into(), &tag).expect("unchanged");
    black_box(body);
}

fn through_text(sealed: &[u8]) -> Vec<u8> {
    URL_SAFE_NO_PAD.decode(black_box(URL_SAFE_NO_PAD.encode(sealed))).expect("its own text")
}
