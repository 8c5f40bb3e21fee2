//! What `Debug`, `Display` and errors must not show, and who can read a token.

use mrtr_core::seal::{Expected, KeyRing, Principal, Sealer, Secret, Verdict, inspect, inspect_with};

use super::{ADA, NOW, SUITES, claims, entropy, hex, token};

const SECRET: &[u8; 32] = b"correct horse battery staple 123";
const PAYLOAD: &[u8] = b"the answer is forty-two";

/// `text` contains `bytes` neither as text, nor in hexadecimal, nor as a list of numbers, nor in base64.
fn assert_hides(text: &str, bytes: &[u8]) {
    use base64::{Engine as _, engine::general_purpose};
    let list = format!("{bytes:?}");
    let spellings = [
        String::from_utf8_lossy(bytes).into_owned(),
        hex(bytes),
        hex(bytes).to_uppercase(),
        list[1..list.len() - 1].to_string(),
        general_purpose::STANDARD_NO_PAD.encode(bytes),
        general_purpose::URL_SAFE_NO_PAD.encode(bytes),
    ];
    for spelling in spellings {
        assert!(!text.contains(&spelling), "{spelling} in {text}");
    }
}

// Guarantee: no secret, state or answer in a log or `Debug`.
#[test]
fn nothing_shows_keys_payloads_principals_or_digests() {
    let secret = Secret::from_bytes(SECRET).expect("32 bytes");
    let mut ring = KeyRing::new(secret.clone());
    ring.accept(Secret::from_bytes(&[9; 32]).expect("32 bytes")).expect("another");
    for (_, make) in SUITES {
        let sealer = make(&ring, "billing");
        let entropy = entropy(1);
        let token = sealer.seal(&claims(1), PAYLOAD, &ADA, NOW, &entropy).expect("sealed");
        let opened = sealer.open(&token, &ADA, NOW).expect("its own");
        let expected =
            Expected { principal: Some(ADA.principal), request: Some(ADA.request), ..Expected::default() };
        let inspected = inspect_with(&ring, &token, &expected).expect("its own");
        let refused = sealer.open(&token[1..], &ADA, NOW).unwrap_err();
        let shown = [
            format!("{secret:?}"),
            format!("{ring:?} {ring:#?}"),
            format!("{sealer:?} {sealer:#?}"),
            format!("{entropy:?} {ADA:?} {expected:?}"),
            format!("{opened:?} {opened:#?} {:?}", (claims(1).exchange, secret.key_id())),
            format!("{inspected:?} {:?}", inspect(&token).expect("its own")),
            format!("{refused:?} {refused} {:?}", mrtr_core::RpcError::from(refused)),
        ]
        .join("\n");
        for hidden in [&SECRET[..], &SECRET[..8], &[9; 8], PAYLOAD, b"forty-two", b"ada", &ADA.request[..8]] {
            assert_hides(&shown, hidden);
        }
        assert!(!shown.contains(&token[..16]) && !shown.contains(&token[token.len() - 16..]));
        // What is fine to log is there.
        for there in
            ["Secret(", "KeyRing {", "Binding {", "Expected {", "Opened {", "Inspected {", "Visible {"]
        {
            assert!(shown.contains(there), "{there}");
        }
        for id in ring.ids() {
            assert!(format!("{sealer:?}").contains(&format!("KeyId({id})")));
        }
        assert!(shown.contains(&format!("ExchangeId({})", claims(1).exchange)));
    }
    assert_eq!(format!("{:?}", Principal::Anonymous), "Anonymous");
}

// R-077, G-50: readable under the signed suite, where the name says so; secret under the others, size apart.
#[test]
fn who_can_read_a_state() {
    let readable = SUITES.map(|(_, make)| {
        use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
        let sealer = make(&KeyRing::new(Secret::from_bytes(SECRET).expect("32 bytes")), "billing");
        let sealed = URL_SAFE_NO_PAD.decode(token(&sealer, PAYLOAD, 1)).expect("canonical");
        assert!(!sealed.windows(3).any(|window| window == b"ada"), "the principal is in no token");
        let finds = |bytes: &[u8]| sealed.windows(bytes.len()).any(|window| window == bytes);
        assert_eq!(finds(PAYLOAD), finds(claims(1).exchange.as_bytes()));
        finds(PAYLOAD)
    });
    assert_eq!(readable, [true, false, false]);
}

// R-078, G-10: two states of one person for one request share nothing that an observer could link them by.
#[test]
fn states_of_one_person_do_not_show_it() {
    use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
    for (_, make) in SUITES {
        let sealer = make(&KeyRing::new(Secret::from_bytes(SECRET).expect("32 bytes")), "billing");
        let [a, b] = [1, 2].map(|seed| URL_SAFE_NO_PAD.decode(token(&sealer, b"", seed)).expect("canonical"));
        // The bound tags lie at 68 to 116, in clear under the signed suite.
        for at in 68..116 - 4 {
            assert_ne!(a[at..at + 4], b[at..at + 4]);
        }
    }
}

// The suite without protection exists in builds for tests only, and says what it is.
#[test]
fn the_transparent_suite_protects_nothing() {
    use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
    let sealer = Sealer::transparent(&KeyRing::new(Secret::from_bytes(SECRET).expect("32 bytes")), "billing");
    assert!(format!("{sealer:?}").contains("transparent"));
    let mut sealed = URL_SAFE_NO_PAD.decode(token(&sealer, PAYLOAD, 1)).expect("canonical");
    *sealed.last_mut().expect("a payload") = b'!';
    let changed = URL_SAFE_NO_PAD.encode(&sealed);
    assert_eq!(&*sealer.open(&changed, &ADA, NOW).expect("unprotected").payload, b"the answer is forty-tw!");
    for (_, make) in SUITES {
        let real = make(&KeyRing::new(Secret::from_bytes(SECRET).expect("32 bytes")), "billing");
        assert_eq!(super::verdict(real.open(&changed, &ADA, NOW)).map(drop), Err(Verdict::Malformed));
    }
}
