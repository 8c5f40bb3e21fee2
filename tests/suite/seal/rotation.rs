//! The ring, and a rotation rolled over replicas (B-17, G-53, W-06, trap 22).

use mrtr_core::{
    Timestamp,
    seal::{KeyRing, RingError, Sealer, Secret, Verdict},
};

use super::{ADA, NOW, Random, SUITES, after, claims, entropy, sealers, secret, token, unhex, verdict};

const TTL: u64 = 600_000;

#[test]
fn the_ring_keeps_its_own_rules() {
    let (a, b, c) = (secret(1).key_id(), secret(2).key_id(), secret(3).key_id());
    let mut ring = KeyRing::new(secret(1));
    assert_eq!(ring.accept(secret(1)), Err(RingError::SameSecret(a)));
    assert_eq!(ring.accept(secret(2)), Ok(()));
    assert_eq!(ring.accept(secret(2)), Err(RingError::SameSecret(b)));
    assert_eq!(ring.promote(c), Err(RingError::Unknown(c)));
    assert_eq!(ring.retire(c), Err(RingError::Unknown(c)));
    assert_eq!(ring.retire(a), Err(RingError::Minting(a)));
    assert_eq!(ring.promote(a), Ok(()));
    assert_eq!((ring.minting(), ring.ids().collect::<Vec<_>>()), (a, vec![a, b]));
    assert_eq!(ring.promote(b), Ok(()));
    assert_eq!((ring.minting(), ring.ids().collect::<Vec<_>>()), (b, vec![b, a]));
    assert_eq!(ring.retire(b), Err(RingError::Minting(b)));
    assert_eq!(ring.retire(a), Ok(()));
    assert_eq!(ring.retire(a), Err(RingError::Unknown(a)));
    assert_eq!(ring.accept(secret(1)), Ok(()));
}

// Two secrets with one key id would make opening ambiguous. These two were searched for.
#[test]
fn two_secrets_with_one_key_id() {
    let [a, b] = COLLISION.map(|text| Secret::from_bytes(&unhex(text)).expect("32 bytes"));
    assert_eq!(a.key_id(), b.key_id());
    let mut ring = KeyRing::new(a);
    assert_eq!(ring.accept(b), Err(RingError::SameKeyId(ring.minting())));
}

const COLLISION: [&str; 2] = [
    "d2aa4c6717a23ad163c56c5ec6d88af970f78f40d57f4ff576ed798525e76670",
    "0833fc65458ac8383ba46e63d1d653a2fadb9d697486e27a2d773680573cdb26",
];

// B-19: a key of the wrong size is refused where it is made.
#[test]
fn short_secrets() {
    for bytes in 0..32 {
        let error = Secret::from_bytes(&vec![1; bytes]).unwrap_err();
        assert_eq!(error.bytes, bytes);
    }
    assert!(Secret::from_bytes(&[1; 32]).is_ok());
    assert!(Secret::from_bytes(&[1; 33]).is_ok());
    assert_ne!(
        Secret::from_bytes(&[1; 32]).map(|s| s.key_id()),
        Secret::from_bytes(&[1; 33]).map(|s| s.key_id())
    );
}

#[test]
fn each_phase_of_a_rotation() {
    let (old, new) = (secret(1).key_id(), secret(2).key_id());
    for (_, make) in SUITES {
        let mut ring = KeyRing::new(secret(1));
        let zero = make(&ring, "billing");
        ring.accept(secret(2)).expect("another");
        let one = zero.with_ring(&ring);
        ring.promote(new).expect("in the ring");
        let two = zero.with_ring(&ring);
        ring.retire(old).expect("does not mint");
        let three = zero.with_ring(&ring);
        assert_eq!([&zero, &one, &two, &three].map(Sealer::minting), [old, old, new, new]);

        let (by_old, by_new) = (token(&one, b"", 1), token(&two, b"", 2));
        let found = |sealer: &Sealer, token: &str| {
            verdict(sealer.open(token, &ADA, NOW)).map(|opened| (opened.key, opened.by_retired_key))
        };
        assert_eq!(found(&zero, &by_old), Ok((old, false)));
        assert_eq!(found(&zero, &by_new), Err(Verdict::UnknownKey));
        assert_eq!(found(&one, &by_old), Ok((old, false)));
        assert_eq!(found(&one, &by_new), Ok((new, true)));
        assert_eq!(found(&two, &by_old), Ok((old, true)));
        assert_eq!(found(&two, &by_new), Ok((new, false)));
        assert_eq!(found(&three, &by_old), Err(Verdict::UnknownKey));
        assert_eq!(found(&three, &by_new), Ok((new, false)));
    }
}

/// How a rotation is rolled out.
#[derive(Clone, Copy, PartialEq)]
enum Plan {
    /// As `KeyRing` says.
    InOrder,
    /// The old key is retired as soon as all replicas mint with the new one.
    WithoutWaiting,
    /// A replica goes through the steps without waiting for the others.
    WithoutOthers,
}

/// Rolls one rotation over three replicas at random moments, while states are minted all the time and every state that
/// is younger than its TTL is shown to every replica at every moment. Returns how many were shown and how many refused.
fn roll(plan: Plan, sealer: &Sealer, random: &mut Random) -> (u32, u32) {
    let (old, new) = (secret(7).key_id(), secret(2).key_id());
    let mut rings = [(); 3].map(|()| KeyRing::new(secret(7)));
    let mut steps = [0; 3];
    let mut states: Vec<(Timestamp, String)> = Vec::new();
    let (mut shown, mut refused) = (0, 0);
    let mut now = NOW;
    let mut all_promoted = None;
    let mut seed = random.next();
    while steps != [3; 3] {
        now = after(now, random.next() % 120_000);
        // One replica takes its next step, if the plan lets it.
        let replica = random.below(3);
        let step = steps[replica];
        let waited = all_promoted.is_some_and(|since| now >= after(since, TTL));
        let allowed = match plan {
            Plan::InOrder => steps.iter().all(|other| *other >= step) && (step < 2 || waited),
            Plan::WithoutWaiting => steps.iter().all(|other| *other >= step),
            Plan::WithoutOthers => true,
        };
        if allowed && step < 3 {
            let ring = &mut rings[replica];
            match step {
                0 => ring.accept(secret(2)),
                1 => ring.promote(new),
                _ => ring.retire(old),
            }
            .expect("each step once");
            steps[replica] += 1;
            if steps.iter().all(|step| *step >= 2) {
                all_promoted.get_or_insert(now);
            }
        }
        let replicas = rings.each_ref().map(|ring| sealer.with_ring(ring));
        // Each replica mints.
        for replica in &replicas {
            seed += 1;
            let deadline = after(now, 3_600_000);
            let claims = mrtr_core::seal::NewClaims { deadline, ..claims(1) };
            states.push((now, replica.seal(&claims, b"", &ADA, now, &entropy(seed)).expect("sealed")));
        }
        states.retain(|(minted, _)| now < after(*minted, TTL));
        for (_, token) in &states {
            for replica in &replicas {
                shown += 1;
                match verdict(replica.open(token, &ADA, now)) {
                    Ok(_) => {}
                    Err(Verdict::UnknownKey) => refused += 1,
                    Err(other) => panic!("{other}"),
                }
            }
        }
    }
    (shown, refused)
}

#[test]
fn a_rolling_rotation_refuses_no_state_younger_than_its_ttl() {
    let mut random = Random(5);
    for sealer in sealers() {
        let mut total = 0;
        for _ in 0..if cfg!(debug_assertions) { 1 } else { 30 } {
            let (shown, refused) = roll(Plan::InOrder, &sealer, &mut random);
            assert_eq!(refused, 0);
            total += shown;
        }
        assert!(total > 500, "{total} were shown");
    }
}

// That the law above can fail: each of its two conditions is needed.
#[test]
fn a_rotation_out_of_order_does_refuse() {
    for plan in [Plan::WithoutWaiting, Plan::WithoutOthers] {
        let mut random = Random(6);
        let sealer = sealers().next().expect("a suite");
        let refused: u32 = (0..4).map(|_| roll(plan, &sealer, &mut random).1).sum();
        assert!(refused > 0);
    }
}
