//! Times, counts and sizes, and the order in which faults are found (R-073, G-07, B-19, B-27).

use std::time::Duration;

use mrtr_core::{
    Timestamp,
    seal::{Binding, KeyRing, NewClaims, Opened, Principal, Refused, SealError, Sealer, Ttl, Verdict},
};

use super::{ADA, NOW, after, before, claims, entropy, sealers, secret, token, verdict};

const EVE: Binding<'static> = Binding { principal: Principal::Authenticated(b"eve"), request: &[0; 32] };

// G-11: with several faults the first in the order of `Verdict` is found. Each line mends the first fault of the one
// above it.
#[test]
fn the_first_fault_counts() {
    for sealer in sealers() {
        let honest = token(&sealer, b"", 1);
        let (old, long) = (before(NOW, 60_001), "*".repeat(65_537));
        let elsewhere = sealer.with_ring(&KeyRing::new(secret(8)));
        let broken = format!("{}{}", &honest[..100], if &honest[100..101] == "A" { "B" } else { "A" });
        let broken = format!("{broken}{}", &honest[101..]);
        let ledger = audience(&sealer, "ledger");
        let capped = || ledger.clone().max_rounds(0, 0);
        let late = after(NOW, 600_000);
        let cases: [(Verdict, Result<Opened, Refused>); 11] = [
            (Verdict::TooLarge, elsewhere.open(&long, &EVE, old)),
            (Verdict::Malformed, elsewhere.open(&long[..65_536], &EVE, old)),
            (Verdict::UnknownKey, elsewhere.open(&broken, &EVE, old)),
            (Verdict::Unauthentic, capped().open(&broken, &EVE, old)),
            (Verdict::Malformed, capped().open(&honest, &EVE, old)),
            (Verdict::NotYetValid, ledger.open(&honest, &EVE, old)),
            (Verdict::Expired, ledger.open(&honest, &EVE, late)),
            (Verdict::OtherAudience, ledger.open(&honest, &EVE, NOW)),
            (Verdict::OtherPrincipal, sealer.open(&honest, &EVE, NOW)),
            (Verdict::OtherPrincipal, sealer.open(&honest, &Binding { request: ADA.request, ..EVE }, NOW)),
            (Verdict::OtherRequest, sealer.open(&honest, &Binding { request: EVE.request, ..ADA }, NOW)),
        ];
        for (n, (expected, found)) in cases.into_iter().enumerate() {
            assert_eq!(verdict(found.map(drop)), Err(expected), "line {n}");
        }
        assert!(sealer.open(&honest, &ADA, NOW).is_ok());
        // In `ALL` they stand in that order, and their names are distinct.
        assert!(Verdict::ALL.is_sorted());
        let names: std::collections::BTreeSet<_> =
            Verdict::ALL.iter().map(|verdict| verdict.name()).collect();
        assert_eq!(names.len(), Verdict::ALL.len());
    }
}

fn audience(like: &Sealer, audience: &str) -> Sealer {
    let ring = KeyRing::new(secret(7));
    let mut all = super::SUITES.iter().map(|(_, make)| (make(&ring, like.audience()), make(&ring, audience)));
    let (_, other) = all.find(|(same, _)| format!("{same:?}") == format!("{like:?}")).expect("a suite");
    other
}

// The log learns the exchange, the round and the age, but only of authentic states.
#[test]
fn what_a_refusal_tells_the_log() {
    for sealer in sealers() {
        let honest = token(&sealer, b"", 1);
        let expired = sealer.open(&honest, &ADA, after(NOW, 600_123)).unwrap_err();
        assert_eq!(expired.exchange, Some(claims(1).exchange));
        assert_eq!((expired.round, expired.age), (Some(1), Some(Duration::from_millis(600_123))));
        assert_eq!(expired.key, Some(secret(7).key_id()));
        assert_eq!(expired.to_string(), "expired");

        let foreign = sealer.with_ring(&KeyRing::new(secret(8))).open(&honest, &ADA, NOW).unwrap_err();
        assert_eq!(foreign.key, Some(secret(7).key_id()));
        assert_eq!((foreign.exchange, foreign.round, foreign.age), (None, None, None));
    }
}

// R-073, B-19: one comparison, `now >= expires`.
#[test]
fn expiry_to_the_millisecond() {
    for (ttl, alive) in [
        (Duration::from_secs(600), 600_000),
        (Duration::from_millis(1), 1),
        (Duration::from_millis(500), 500),
        // Less than a millisecond is not cut to nothing.
        (Duration::from_nanos(1), 1),
        (Duration::from_micros(1_500), 2),
        (Duration::from_secs(3_599), 3_599_000),
        // Never beyond the deadline of the exchange.
        (Duration::from_secs(3_601), 3_600_000),
        (Ttl::MAX.get(), 3_600_000),
    ] {
        let ttl = Ttl::new(ttl).expect("valid");
        for sealer in sealers() {
            let by_sealer = sealer.clone().ttl(ttl).seal(&claims(1), b"", &ADA, NOW, &entropy(1));
            let by_call =
                sealer.seal(&NewClaims { ttl: Some(ttl), ..claims(1) }, b"", &ADA, NOW, &entropy(1));
            assert_eq!(by_sealer, by_call);
            let token = by_call.expect("sealed");
            let open = |now| verdict(sealer.open(&token, &ADA, now));
            let opened = open(after(NOW, alive - 1)).expect("alive");
            assert_eq!(opened.claims.expires, after(NOW, alive));
            assert_eq!(open(after(NOW, alive)).map(drop), Err(Verdict::Expired));
        }
    }
}

// B-19: a TTL is checked where it is made.
#[test]
fn no_ttl_of_nothing_or_for_ever() {
    for wrong in [Duration::ZERO, Ttl::MAX.get() + Duration::from_nanos(1), Duration::MAX] {
        assert_eq!(Ttl::new(wrong).unwrap_err().ttl, wrong);
    }
    assert_eq!(Ttl::DEFAULT.get(), Duration::from_secs(600));
    assert!(Ttl::new(Ttl::MAX.get()).is_ok());
}

// A state whose answer could not be used is never made (A6).
#[test]
fn nothing_is_sealed_at_or_after_the_deadline() {
    for sealer in sealers() {
        for late in [0, 1, 1_000_000_000] {
            let gone = NewClaims { deadline: before(NOW, late), ..claims(1) };
            assert_eq!(sealer.seal(&gone, b"", &ADA, NOW, &entropy(1)), Err(SealError::DeadlinePassed));
        }
        let last = NewClaims { deadline: after(NOW, 1), ..claims(1) };
        let token = sealer.seal(&last, b"", &ADA, NOW, &entropy(1)).expect("sealed");
        assert!(sealer.open(&token, &ADA, NOW).is_ok());
        assert_eq!(verdict(sealer.open(&token, &ADA, after(NOW, 1))).map(drop), Err(Verdict::Expired));
    }
}

// B-19: a clock that is ahead or steps back, within the skew and beyond it. The skew never prolongs a state.
#[test]
fn clocks_that_differ() {
    for sealer in sealers() {
        let token = token(&sealer, b"", 1);
        for (skew, fits) in [(60_000, None), (0, Some(0)), (1, Some(1)), (86_400_000, Some(86_400_000))] {
            let sealer =
                fits.map_or(sealer.clone(), |millis| sealer.clone().skew(Duration::from_millis(millis)));
            assert!(sealer.open(&token, &ADA, before(NOW, skew)).is_ok());
            let beyond = verdict(sealer.open(&token, &ADA, before(NOW, skew + 1))).map(drop);
            assert_eq!(beyond, Err(Verdict::NotYetValid));
            let late = verdict(sealer.open(&token, &ADA, after(NOW, 600_000))).map(drop);
            assert_eq!(late, Err(Verdict::Expired));
        }
        // The clock steps back by half a minute between sealing and opening, and again before the next round.
        let back = before(NOW, 30_000);
        let opened = sealer.open(&token, &ADA, back).expect("within the skew");
        let next = NewClaims { round: 2, deadline: opened.claims.deadline, ..claims(1) };
        let next = sealer.seal(&next, b"", &ADA, back, &entropy(2)).expect("sealed");
        assert_eq!(sealer.open(&next, &ADA, back).expect("in time").claims.issued, back);
    }
}

// No time makes it panic or live for ever.
#[test]
fn the_ends_of_time() {
    let end = Timestamp::from_unix_millis(u64::MAX);
    let last = Timestamp::from_unix_millis((1 << 48) - 1);
    for sealer in sealers() {
        let endless = NewClaims { deadline: end, ..claims(1) };
        let token = sealer.seal(&endless, b"", &ADA, NOW, &entropy(1)).expect("sealed");
        let opened = sealer.open(&token, &ADA, NOW).expect("in time");
        assert_eq!(opened.claims.deadline, last);
        for now in [last, after(last, 1), end] {
            assert_eq!(verdict(sealer.open(&token, &ADA, now)).map(drop), Err(Verdict::Expired));
            assert_eq!(sealer.seal(&endless, b"", &ADA, now, &entropy(1)), Err(SealError::DeadlinePassed));
        }
        let epoch = Timestamp::from_unix_millis(0);
        assert_eq!(verdict(sealer.open(&token, &ADA, epoch)).map(drop), Err(Verdict::NotYetValid));
        assert!(sealer.clone().skew(Duration::MAX).open(&token, &ADA, epoch).is_ok());
        let dawn = sealer.seal(&endless, b"", &ADA, epoch, &entropy(1)).expect("sealed");
        assert!(sealer.open(&dawn, &ADA, epoch).is_ok());
        let dusk = sealer.seal(&endless, b"", &ADA, before(last, 1), &entropy(1)).expect("sealed");
        assert!(sealer.open(&dusk, &ADA, before(last, 1)).is_ok());
    }
}

// Trap 27; design "soft expiry": opt-in, only if expiry is the sole fault, never past the deadline.
#[test]
fn soft_expiry() {
    for sealer in sealers() {
        let claims = NewClaims { round: 5, state_only: 2, ..claims(5) };
        let token = sealer.seal(&claims, b"journal", &ADA, NOW, &entropy(1)).expect("sealed");
        let soft = sealer.clone().soft_expiry();
        let (late, over) = (after(NOW, 600_000), after(NOW, 3_600_000));

        let fresh = soft.open(&token, &ADA, before(late, 1)).expect("alive");
        assert!(!fresh.expired);
        for now in [late, before(over, 1)] {
            let opened = soft.open(&token, &ADA, now).expect("forgiven");
            assert!(opened.expired);
            assert_eq!(&*opened.payload, b"journal");
            let kept = (opened.claims.round, opened.claims.state_only, opened.claims.deadline);
            assert_eq!(kept, (5, 2, claims.deadline));
            assert_eq!(verdict(sealer.open(&token, &ADA, now)).map(drop), Err(Verdict::Expired));
        }
        assert_eq!(verdict(soft.open(&token, &ADA, over)).map(drop), Err(Verdict::Expired));
        // With another fault, expiry is what is found, as without the option.
        for binding in [EVE, Binding { request: ADA.request, ..EVE }, Binding { request: EVE.request, ..ADA }]
        {
            assert_eq!(verdict(soft.open(&token, &binding, late)).map(drop), Err(Verdict::Expired));
        }
        let elsewhere = audience(&sealer, "ledger").soft_expiry();
        assert_eq!(verdict(elsewhere.open(&token, &ADA, late)).map(drop), Err(Verdict::Expired));
        assert_eq!(verdict(elsewhere.open(&token, &ADA, NOW)).map(drop), Err(Verdict::OtherAudience));
    }
}

// G-07: what exceeds a cap is neither sealed nor opened.
#[test]
fn caps_on_rounds() {
    for sealer in sealers() {
        let capped = sealer.clone().max_rounds(16, 60);
        let counts = |round, state_only| NewClaims { round, state_only, ..claims(1) };
        let seal = |sealer: &Sealer, claims| sealer.seal(&claims, b"", &ADA, NOW, &entropy(1));
        let too_many = |rounds, limit| Err(SealError::TooManyRounds { rounds, limit });
        let too_idle = |rounds, limit| Err(SealError::TooManyStateOnlyRounds { rounds, limit });
        assert_eq!(seal(&capped, counts(17, 60)), too_many(17, 16));
        assert_eq!(seal(&capped, counts(16, 61)), too_idle(61, 60));
        assert_eq!(seal(&sealer, counts(65_536, 0)), too_many(65_536, 65_535));
        assert_eq!(seal(&sealer, counts(0, u32::MAX)), too_idle(u32::MAX, 65_535));
        assert!(capped.open(&seal(&capped, counts(16, 60)).expect("at the caps"), &ADA, NOW).is_ok());
        for counts in [counts(17, 0), counts(0, 61), counts(65_535, 65_535)] {
            let token = seal(&sealer, counts).expect("no caps");
            assert!(sealer.open(&token, &ADA, NOW).is_ok());
            let refused = capped.open(&token, &ADA, NOW).unwrap_err();
            assert_eq!((refused.verdict, refused.round), (Verdict::Malformed, Some(counts.round)));
        }
    }
}

// B-27, trap 36: the bound holds on both sides, to the character, and its error names bound and size.
#[test]
fn bounds_on_size() {
    for sealer in sealers() {
        let payload = vec![b'x'; 1_000];
        let size = token(&sealer, &payload, 1).len();
        let tight = sealer.clone().max_token(size);
        let token = tight.seal(&claims(1), &payload, &ADA, NOW, &entropy(1)).expect("exactly the bound");
        assert_eq!(token.len(), size);
        assert!(tight.open(&token, &ADA, NOW).is_ok());

        let tighter = sealer.clone().max_token(size - 1);
        let error = tighter.seal(&claims(1), &payload, &ADA, NOW, &entropy(1)).unwrap_err();
        assert_eq!(error, SealError::TooLarge { size, limit: size - 1 });
        assert!(error.to_string().contains(&size.to_string()) && error.to_string().contains("state_minted"));
        assert_eq!(verdict(tighter.open(&token, &ADA, NOW)).map(drop), Err(Verdict::TooLarge));

        // By default 64 KiB.
        let payload = vec![b'x'; 65_536];
        let error = sealer.seal(&claims(1), &payload, &ADA, NOW, &entropy(1)).unwrap_err();
        assert!(matches!(error, SealError::TooLarge { limit: 65_536, .. }));
    }
}

// "Envelope without answers at most 176 bytes before base64", with 20 bytes of them left for one outstanding ask.
#[test]
fn the_envelope_is_small() {
    let bytes: Vec<usize> = sealers().map(|sealer| token(&sealer, b"", 1).len() * 3 / 4).collect();
    assert_eq!(bytes, [148, 132, 132]);
    assert!(bytes.iter().all(|bytes| bytes + 20 <= 176));
}

// R-069, G-04, trap 26: what never was a state.
#[test]
fn what_was_never_a_state() {
    let long = "A".repeat(65_536);
    for sealer in sealers() {
        for text in ["", "A", "AQ", "state", "null", "undefined", "{}", "s-1", "é", "\0", &long] {
            assert_eq!(verdict(sealer.open(text, &ADA, NOW)).map(drop), Err(Verdict::Malformed), "{text}");
        }
    }
}
