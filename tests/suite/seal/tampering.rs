//! Whatever is done to a token's text or bytes, it is refused, with one message (R-070, R-071, G-11, B-19, trap 20).
//!
//! A debug build makes fewer of the changes that reach the cipher; a release build makes them all.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use mrtr_core::seal::{Binding, Principal, Sealer, Verdict};

use super::{ADA, NOW, Random, SUITES, after, before, make, sealers, secret, token, verdict};

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
const FOREIGN: [char; 14] =
    ['=', '+', '/', ' ', '\t', '\n', '\r', '\0', '.', ',', '~', '\u{7f}', 'é', '\u{1f511}'];

/// All the ways to change one byte, or a third of them where each takes long.
fn flips() -> impl Iterator<Item = u8> {
    (1..=255).filter(|flip: &u8| !cfg!(debug_assertions) || flip.is_power_of_two() || *flip == 255)
}

fn refused(sealer: &Sealer, token: &str) -> Verdict {
    match verdict(sealer.open(token, &ADA, NOW)) {
        Err(verdict) => verdict,
        Ok(_) => panic!("opened: {token}"),
    }
}

/// Ten tokens a suite, with payloads of 0 to 9 bytes: every length modulo the group of base64, and then some.
fn tokens() -> impl Iterator<Item = (Sealer, String)> {
    sealers().flat_map(|sealer| {
        (0..10).map(move |n| {
            let token = token(&sealer, &b"a journal"[..n.min(9)], u64::try_from(n).expect("small"));
            assert!(sealer.open(&token, &ADA, NOW).is_ok());
            (sealer.clone(), token)
        })
    })
}

#[test]
fn every_change_of_a_byte() {
    for (sealer, token) in tokens() {
        let sealed = URL_SAFE_NO_PAD.decode(&token).expect("canonical");
        for at in 0..sealed.len() {
            for flip in flips() {
                let mut changed = sealed.clone();
                changed[at] ^= flip;
                let found = refused(&sealer, &URL_SAFE_NO_PAD.encode(&changed));
                let expected = match at {
                    0..2 => Verdict::Malformed,
                    2..6 => Verdict::UnknownKey,
                    _ => Verdict::Unauthentic,
                };
                assert_eq!(found, expected, "byte {at} ^ {flip}");
            }
        }
    }
}

#[test]
fn every_change_of_a_character() {
    for (sealer, token) in tokens() {
        let whole = token.len() / 4 * 4;
        for at in 0..token.len() {
            let others = ALPHABET.iter().map(|&c| char::from(c)).chain(FOREIGN);
            // Those that decode are changes of bytes; all of them are made where the text ends.
            let others = others
                .enumerate()
                .filter(|(n, _)| !cfg!(debug_assertions) || *n >= 64 || at >= whole - 4 || n % 16 == at % 16);
            for (_, other) in others.filter(|(_, other)| !token[at..].starts_with(*other)) {
                let changed = format!("{}{other}{}", &token[..at], &token[at + 1..]);
                refused(&sealer, &changed);
            }
        }
    }
}

#[test]
fn every_truncation() {
    for (sealer, token) in tokens() {
        for at in 0..token.len() {
            refused(&sealer, &token[..at]);
            if at > 0 {
                refused(&sealer, &token[at..]);
            }
            refused(&sealer, &format!("{}{}", &token[..at], &token[at + 1..]));
        }
        let sealed = URL_SAFE_NO_PAD.decode(&token).expect("canonical");
        for at in 0..sealed.len() {
            refused(&sealer, &URL_SAFE_NO_PAD.encode(&sealed[..at]));
        }
    }
}

#[test]
fn everything_appended_or_inserted() {
    for (sealer, token) in tokens() {
        for other in ALPHABET.iter().map(|&c| char::from(c)).chain(FOREIGN) {
            for at in [0, 1, token.len() / 2, token.len() - 1, token.len()] {
                refused(&sealer, &format!("{}{other}{}", &token[..at], &token[at..]));
            }
        }
        let sealed = URL_SAFE_NO_PAD.decode(&token).expect("canonical");
        for byte in 0..=255 {
            refused(&sealer, &URL_SAFE_NO_PAD.encode([&sealed[..], &[byte]].concat()));
            refused(&sealer, &URL_SAFE_NO_PAD.encode([&[byte], &sealed[..]].concat()));
        }
        for tail in ["AA", "AAA", "AAAA", ".AAAA", "=", "==", "===", "\r\n", &*token] {
            refused(&sealer, &format!("{token}{tail}"));
        }
    }
}

// B-19: other texts that a lax decoder reads as the same bytes are not even looked at.
#[test]
fn every_other_spelling() {
    for (sealer, token) in tokens() {
        let last = ALPHABET.iter().position(|&c| token.as_bytes().ends_with(&[c])).expect("of the alphabet");
        let unused = match token.len() % 4 {
            2 => 16,
            3 => 4,
            _ => 1,
        };
        assert_eq!(last % unused, 0, "the canonical spelling leaves unused bits zero");
        for n in 1..unused {
            let other = format!("{}{}", &token[..token.len() - 1], char::from(ALPHABET[last + n]));
            assert_eq!(refused(&sealer, &other), Verdict::Malformed);
        }
        let padding = (4 - token.len() % 4) % 4;
        let spellings = [
            format!("{token}{}", "=".repeat(padding.max(1))),
            format!(" {token}"),
            format!("{token}\n"),
            format!("{}\r\n{}", &token[..76], &token[76..]),
            format!("\"{token}\""),
            token.replacen(&token[8..9], &format!("%{:02X}", token.as_bytes()[8]), 1),
        ];
        for spelling in spellings {
            assert_eq!(refused(&sealer, &spelling), Verdict::Malformed, "{spelling}");
        }
        let standard = token.replace('-', "+").replace('_', "/");
        if standard != token {
            assert_eq!(refused(&sealer, &standard), Verdict::Malformed);
        }
    }
    // Some of the thirty have a character in which the alphabets differ, or the last check checks nothing.
    assert!(tokens().any(|(_, token)| token.contains(['-', '_'])));
}

#[test]
fn a_random_change_at_every_place_of_a_thousand_more() {
    let mut random = Random(1);
    for sealer in sealers() {
        for n in 0..if cfg!(debug_assertions) { 40 } else { 1_000 } {
            let payload: Vec<u8> = (0..random.below(24)).map(|_| random.byte()).collect();
            let token = token(&sealer, &payload, 1_000 + n);
            let mut sealed = URL_SAFE_NO_PAD.decode(&token).expect("canonical");
            for at in 0..sealed.len() {
                let original = sealed[at];
                sealed[at] ^= random.byte().max(1);
                refused(&sealer, &URL_SAFE_NO_PAD.encode(&sealed));
                sealed[at] = original;
            }
            assert!(sealer.open(&token, &ADA, NOW).is_ok());
        }
    }
}

// G-52, traps 20, 23: every wrong key, audience, principal, request and time, for the ten and for
// a thousand more.
#[test]
fn every_wrong_place() {
    let others = ["", "Billing", "billing ", "billing\0", "billin", "ledger"];
    let names: [&[u8]; 7] = [
        b"",
        b"https://issuer.example|ad",
        b"https://issuer.example|ada\0",
        b"https://issuer.example|eve",
        b"https://other.example|ada",
        b"\x00",
        b"\x01",
    ];
    let principals = names.map(Principal::Authenticated).into_iter().chain([Principal::Anonymous]);
    for (nth, (suite, make_one)) in SUITES.iter().enumerate() {
        let sealer = make_one(&ring(7), "billing");
        let foreign_keys = make_one(&ring(8), "billing");
        let foreign_audiences = others.map(|audience| make_one(&ring(7), audience));
        let other_suite = make(SUITES[(nth + 1) % 3].0)(&ring(7), "billing");
        for n in 0..if cfg!(debug_assertions) { 50 } else { 1_010 } {
            let token = token(&sealer, b"payload", n);
            let at = |now| verdict(sealer.open(&token, &ADA, now)).err();
            assert_eq!(at(NOW), None, "{suite}");
            assert_eq!(at(before(NOW, 60_001)), Some(Verdict::NotYetValid));
            assert_eq!(at(after(NOW, 600_000)), Some(Verdict::Expired));
            assert_eq!(at(after(NOW, 3_600_000)), Some(Verdict::Expired));
            assert_eq!(refused(&foreign_keys, &token), Verdict::UnknownKey);
            assert_eq!(refused(&other_suite, &token), Verdict::Malformed);
            for foreign in &foreign_audiences {
                assert_eq!(refused(foreign, &token), Verdict::OtherAudience);
            }
            for principal in principals.clone() {
                let found = verdict(sealer.open(&token, &Binding { principal, ..ADA }, NOW)).err();
                assert_eq!(found, Some(Verdict::OtherPrincipal), "{principal:?}");
            }
            for bit in (0..256).step_by(if n < 10 { 1 } else { 37 }) {
                let mut request = *ADA.request;
                request[bit / 8] ^= 1 << (bit % 8);
                let found = verdict(sealer.open(&token, &Binding { request: &request, ..ADA }, NOW)).err();
                assert_eq!(found, Some(Verdict::OtherRequest));
            }
        }
    }
}

fn ring(byte: u8) -> mrtr_core::seal::KeyRing {
    mrtr_core::seal::KeyRing::new(secret(byte))
}
