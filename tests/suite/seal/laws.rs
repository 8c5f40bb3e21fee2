//! Laws over random inputs.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use mrtr_core::{
    Entropy, Timestamp,
    seal::{
        Binding, BlobKind, ExchangeId, Expected, KeyRing, NewClaims, Principal, Sealer, Ttl, inspect,
        inspect_with,
    },
};
use proptest::{collection::vec, option, prelude::*};

use super::{ADA, NOW, SUITES, secret, verdict};

#[derive(Clone, Debug)]
struct Case {
    suite: usize,
    audience: String,
    principal: Option<Vec<u8>>,
    request: [u8; 32],
    entropy: [u8; 32],
    claims: NewClaims,
    payload: Vec<u8>,
    now: u64,
}

prop_compose! {
    fn case()(
        suite in 0..3usize,
        audience in ".{0,12}",
        principal in option::of(vec(any::<u8>(), 0..80)),
        request in any::<[u8; 32]>(),
        entropy in any::<[u8; 32]>(),
        exchange in any::<[u8; 16]>(),
        counts in any::<(u16, u16)>(),
        ttl in option::of(1..=2_592_000_000u64),
        now in 0..1u64 << 47,
        left in 1..1u64 << 47,
        payload in vec(any::<u8>(), 0..600),
    ) -> Case {
        let claims = NewClaims {
            exchange: ExchangeId::from_bytes(exchange),
            round: counts.0.into(),
            state_only: counts.1.into(),
            deadline: Timestamp::from_unix_millis(now + left),
            ttl: ttl.map(|millis| Ttl::new(core::time::Duration::from_millis(millis)).expect("in range")),
        };
        Case { suite, audience, principal, request, entropy, claims, payload, now }
    }
}

impl Case {
    fn sealer(&self) -> Sealer {
        SUITES[self.suite].1(&KeyRing::new(secret(7)), &self.audience)
    }

    fn binding(&self) -> Binding<'_> {
        let principal = self.principal.as_deref().map_or(Principal::Anonymous, Principal::Authenticated);
        Binding { principal, request: &self.request }
    }

    fn now(&self) -> Timestamp {
        Timestamp::from_unix_millis(self.now)
    }

    fn sealed(&self) -> String {
        let entropy = Entropy::new(self.entropy);
        self.sealer()
            .seal(&self.claims, &self.payload, &self.binding(), self.now(), &entropy)
            .expect("sealed")
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    // R-069…R-074: what is sealed opens with the same binding, to the same claims and bytes, while it lives; the same
    // inputs make the same token.
    #[test]
    fn what_is_sealed_opens(case in case(), at in 0.0..1.0f64) {
        let (sealer, token) = (case.sealer(), case.sealed());
        prop_assert_eq!(&token, &case.sealed());
        let life = case.claims.ttl.unwrap_or(Ttl::DEFAULT).get();
        let expires = case.now().saturating_add(life).min(case.claims.deadline).as_unix_millis();
        let span = expires - case.now;
        let offset = (at * span as f64) as u64;
        let now = Timestamp::from_unix_millis(case.now + offset.min(span - 1));
        let opened = sealer.open(&token, &case.binding(), now).expect("alive");
        prop_assert_eq!(&*opened.payload, &case.payload);
        prop_assert_eq!(opened.claims.exchange, case.claims.exchange);
        prop_assert_eq!(opened.claims.round, case.claims.round);
        prop_assert_eq!(opened.claims.state_only, case.claims.state_only);
        prop_assert_eq!(opened.claims.issued, case.now());
        prop_assert_eq!(opened.claims.expires.as_unix_millis(), expires);
        prop_assert_eq!(opened.claims.deadline, case.claims.deadline);
        prop_assert!(sealer.open(&token, &case.binding(), opened.claims.expires).is_err());
    }

    // G-52: two different bindings never open each other's states.
    #[test]
    fn different_bindings_are_different(a in case(), b in case(), keep in any::<[bool; 3]>()) {
        let mut b = Case { suite: a.suite, ..b };
        if keep[0] { b.audience.clone_from(&a.audience); }
        if keep[1] { b.principal.clone_from(&a.principal); }
        if keep[2] { b.request = a.request; }
        let same = (&a.audience, &a.principal, a.request) == (&b.audience, &b.principal, b.request);
        let opened = verdict(b.sealer().open(&a.sealed(), &b.binding(), a.now()));
        prop_assert_eq!(opened.is_ok(), same);
    }

    // R-070, trap 20: no text makes anything panic, and nothing but what was sealed opens.
    #[test]
    fn arbitrary_text(text in "[A-Za-z0-9_-]{0,400}|.{0,60}") {
        let ring = KeyRing::new(secret(7));
        for (_, make) in SUITES {
            let sealer = make(&ring, "billing");
            prop_assert!(verdict(sealer.open(&text, &ADA, NOW)).is_err());
            prop_assert!(verdict(sealer.open_ticket(&text, ADA.principal, NOW)).is_err());
            prop_assert!(sealer.open_blob(BlobKind::Ledger, b"", text.as_bytes()).is_err());
        }
        let _ = inspect(&text);
        prop_assert!(inspect_with(&ring, &text, &Expected::default()).is_err()
            || text.starts_with("Af")); // the transparent suite, in this build
    }

    // The same for bytes with a plausible head, also without protection behind it: then what lies behind the tag is
    // reached.
    #[test]
    fn arbitrary_bytes_behind_a_head(
        suite in prop_oneof![Just(1u8), Just(2), Just(3), Just(255)],
        rest in vec(any::<u8>(), 0..300),
    ) {
        let ring = KeyRing::new(secret(7));
        let sealed = [&[1, suite][..], secret(7).key_id().as_bytes(), &rest].concat();
        let text = URL_SAFE_NO_PAD.encode(&sealed);
        for (_, make) in SUITES {
            prop_assert!(verdict(make(&ring, "billing").open(&text, &ADA, NOW)).is_err());
        }
        let transparent = Sealer::transparent(&ring, "billing").soft_expiry();
        prop_assert!(verdict(transparent.open(&text, &ADA, NOW)).is_err(), "the bound tags are not guessed");
        let _ = transparent.open_ticket(&text, ADA.principal, NOW);
        let _ = transparent.open_blob(BlobKind::Handle, b"", &sealed);
        let _ = inspect(&text);
        if let Ok(found) = inspect_with(&ring, &text, &Expected::default()) {
            prop_assert_eq!(found.visible.suite, "transparent");
            prop_assert!(found.claims.issued < found.claims.expires);
        }
    }
}
