//! Looking at a token without accepting it (W-11).

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use mrtr_core::seal::{Expected, InspectError, KeyRing, Principal, inspect, inspect_with};

use super::{ADA, NOW, SUITES, after, claims, entropy, secret, token};

const TAGS: [usize; 3] = [32, 16, 16];

#[test]
fn what_can_be_seen_without_a_key() {
    for ((suite, make), tag) in SUITES.iter().zip(TAGS) {
        let sealer = make(&KeyRing::new(secret(7)), "billing");
        let token = token(&sealer, b"journal", 1);
        let visible = inspect(&token).expect("its own");
        assert_eq!((visible.version, visible.suite), (1, *suite));
        assert_eq!(visible.key, secret(7).key_id());
        assert_eq!((visible.characters, visible.payload_bytes), (token.len(), 7));
        assert_eq!(token.len() * 3 / 4, 30 + 86 + 7 + tag);
        match visible.unverified {
            Some((read, payload)) => {
                assert_eq!(*suite, "hmac-sha256");
                assert_eq!((read.exchange, read.round), (claims(1).exchange, 1));
                assert_eq!((read.issued, read.expires), (NOW, after(NOW, 600_000)));
                assert_eq!(payload, b"journal");
            }
            None => assert_ne!(*suite, "hmac-sha256"),
        }
    }
}

#[test]
fn what_the_keys_show_and_which_part_differs() {
    // The ring need not mint with the token's key, nor the sealer be of its suite.
    let mut ring = KeyRing::new(secret(8));
    ring.accept(secret(7)).expect("another");
    for (suite, make) in SUITES {
        let token = token(&make(&KeyRing::new(secret(7)), "billing"), b"journal", 1);
        let nothing = inspect_with(&ring, &token, &Expected::default()).expect("the key is there");
        assert_eq!(nothing.visible.suite, suite);
        assert_eq!((nothing.same_audience, nothing.same_principal, nothing.same_request), (None, None, None));
        assert_eq!((nothing.claims.exchange, &**nothing.payload), (claims(1).exchange, &b"journal"[..]));
        let eve = Principal::Authenticated(b"eve");
        for (audience, a) in [("billing", true), ("ledger", false)] {
            for (principal, p) in [(ADA.principal, true), (eve, false), (Principal::Anonymous, false)] {
                for (request, r) in [(ADA.request, true), (&[0; 32], false)] {
                    let expected = Expected {
                        audience: Some(audience),
                        principal: Some(principal),
                        request: Some(request),
                    };
                    let found = inspect_with(&ring, &token, &expected).expect("the key is there");
                    let same = (found.same_audience, found.same_principal, found.same_request);
                    assert_eq!(same, (Some(a), Some(p), Some(r)));
                }
            }
        }
    }
}

#[test]
fn what_is_no_state() {
    let ring = KeyRing::new(secret(7));
    for ((_, make), tag) in SUITES.iter().zip(TAGS) {
        let sealer = make(&ring, "billing");
        let token = token(&sealer, b"", 1);
        let sealed = URL_SAFE_NO_PAD.decode(&token).expect("canonical");
        let with = |at: usize, byte: u8| {
            let mut sealed = sealed.clone();
            sealed[at] = byte;
            URL_SAFE_NO_PAD.encode(sealed)
        };
        let look = |token: &str| inspect_with(&ring, token, &Expected::default()).map(drop);
        assert_eq!(look(""), Err(InspectError::Short(0)));
        assert_eq!(look("AQ"), Err(InspectError::Short(1)));
        assert_eq!(look("no token"), Err(InspectError::Text));
        assert_eq!(look(&"A".repeat((4 << 20) + 1)), Err(InspectError::TooLarge));
        assert_eq!(look(&with(0, 2)), Err(InspectError::Version(2)));
        assert_eq!(look(&with(1, 77)), Err(InspectError::Suite(77)));
        let short = URL_SAFE_NO_PAD.encode(&sealed[..30 + 85 + tag]);
        assert_eq!(look(&short), Err(InspectError::Short(30 + 85 + tag)));
        assert_eq!(look(&with(60, sealed[60] ^ 1)), Err(InspectError::Unauthentic(secret(7).key_id())));
        let other = KeyRing::new(secret(8));
        let unknown = inspect_with(&other, &token, &Expected::default()).map(drop);
        assert_eq!(unknown, Err(InspectError::UnknownKey(secret(7).key_id())));
        let ticket = mrtr_core::seal::Ticket {
            exchange: claims(1).exchange,
            key: "k".repeat(99),
            expires: after(NOW, 1),
        };
        let ticket = sealer.seal_ticket(&ticket, ADA.principal, &entropy(1)).expect("sealed");
        assert_eq!(look(&ticket), Err(InspectError::Unauthentic(secret(7).key_id())));
        for error in [look("no token"), look(&with(0, 2)), look(&ticket)] {
            assert!(!error.unwrap_err().to_string().is_empty());
        }
    }
}
