//! The ring, and a rotation rolled over replicas (B-17, G-53, W-06, trap 22).

use mrtr_core::{
    Timestamp,
    form::{Field, Form},
    handler::{Ctx, Reception, ToolResult},
    seal::{KeyRing, Principal, RingError, Sealer, Secret, Verdict, inspect},
    server::{Config, RoundEnv},
    wire::Implementation,
};
use mrtr_tests::world::{World, accept, service};
use serde_json::{Value, json};

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

/// A replica of a server that runs: its keys are changed from outside, by the sealer that it has a clone of.
struct Replica {
    world: World,
    sealer: Sealer,
    ring: KeyRing,
    step: usize,
}

/// An exchange that goes on: its state, who it belongs to, when the state was made, which answer is next.
struct Live {
    state: String,
    who: usize,
    minted: Timestamp,
    next: usize,
}

const QUESTIONS: usize = 5;

fn replica(number: u64) -> Replica {
    let ring = KeyRing::new(secret(7));
    let sealer = Sealer::encrypted(&ring, "srv");
    let config = Config::new(Implementation::new("srv", "1"), sealer.clone());
    let service = service(config, |ctx: Ctx| async move {
        let mut said = String::new();
        for question in 0..QUESTIONS {
            let form = Form::builder("Which?").field(Field::integer("n").required()).build().expect("a form");
            let answer = ctx.elicit::<Value>(&format!("q{question}"), &form).await?.accepted();
            said.push_str(&answer.expect("accepted")["n"].to_string());
        }
        Ok(ToolResult::text(said))
    });
    let mut world = World::of(service);
    world.skip_entropy(number << 32);
    Replica { world, sealer, ring, step: 0 }
}

/// Rolls a rotation over three servers that run, one SIGHUP, so to say, at a time, while exchanges begin, go on at
/// whichever replica is next, and end. Returns how many answers were given in time, and how many of them were refused.
fn serve_through(plan: Plan, random: &mut Random) -> (u32, u32) {
    let (old, new) = (secret(7).key_id(), secret(2).key_id());
    let mut replicas = [0, 1, 2].map(replica);
    let mut live: Vec<Live> = Vec::new();
    let (mut given, mut refused, mut late, mut begun) = (0, 0, 0, 0);
    let mut now = replicas[0].world.now;
    let mut all_promoted: Option<Timestamp> = None;
    let mut ended = 0;
    while replicas.iter().any(|replica| replica.step < 3) || ended < 20 {
        now = after(now, random.next() % 40_000);
        let at = random.below(3);
        let least = replicas.iter().map(|replica| replica.step).min().unwrap_or(0);
        let waited = all_promoted.is_some_and(|since| now >= after(since, TTL));
        let Replica { sealer, ring, step, .. } = &mut replicas[at];
        let allowed = match plan {
            Plan::InOrder => *step == least && (*step < 2 || waited),
            Plan::WithoutWaiting => *step == least,
            Plan::WithoutOthers => true,
        };
        // Rarely enough that every phase sees some traffic.
        if allowed && *step < 3 && random.below(6) == 0 {
            match step {
                0 => ring.accept(secret(2)),
                1 => ring.promote(new),
                _ => ring.retire(old),
            }
            .expect("each step once");
            sealer.set_ring(ring);
            *step += 1;
            if all_promoted.is_none() && replicas.iter().all(|replica| replica.step >= 2) {
                all_promoted = Some(now);
            }
        }
        // Somebody calls.
        let names = ["ada", "eve", "joe"];
        let who = random.below(3);
        let world = &mut replicas[random.below(3)].world;
        (world.now, world.principal) = (now, Some(names[who].into()));
        let state = world.call(json!({})).state().to_owned();
        live.push(Live { state, who, minted: now, next: 0 });
        begun += 1;
        // Somebody answers; now and then twice, because the first reply was lost.
        for _ in 0..4 {
            let index = random.below(live.len());
            let exchange = &mut live[index];
            let world = &mut replicas[random.below(3)].world;
            (world.now, world.principal) = (now, Some(names[exchange.who].into()));
            let mut answers = json!({});
            answers[format!("q{}", exchange.next)] = accept(json!({"n": exchange.next}));
            let params = json!({"requestState": exchange.state, "inputResponses": answers});
            let reply = world.call(params);
            let young = now < after(exchange.minted, TTL);
            if reply.0.get("error").is_some() {
                assert_eq!(reply.error(), (-32602, "Invalid or expired requestState"));
                if young {
                    (given, refused) = (given + 1, refused + 1)
                } else {
                    late += 1
                }
                live.swap_remove(index);
            } else {
                assert!(young, "a state older than its TTL is refused");
                given += 1;
                if exchange.next + 1 == QUESTIONS {
                    assert_eq!(reply.text(), "01234");
                    live.swap_remove(index);
                    ended += 1;
                } else if random.below(5) > 0 {
                    exchange.state = reply.state().to_owned();
                    (exchange.next, exchange.minted) = (exchange.next + 1, now);
                }
            }
            if live.is_empty() {
                break;
            }
        }
    }
    let counts: Vec<_> = replicas.iter().flat_map(|replica| replica.sealer.key_use()).collect();
    assert!(counts.iter().all(|uses| uses.key == new && uses.mints && uses.sealed > 0), "{counts:?}");
    assert!(begun > 0 && late + given > 0);
    (given, refused)
}

/// B-17, G-53: servers that run go through all phases, and no call that waits for its answer notices.
#[test]
fn b_17_running_servers_rotate_without_refusing_anybody() {
    let mut random = Random(11);
    let mut total = 0;
    for _ in 0..if cfg!(debug_assertions) { 4 } else { 30 } {
        let (given, refused) = serve_through(Plan::InOrder, &mut random);
        assert_eq!(refused, 0);
        total += given;
    }
    assert!(total > 500, "{total} were given");
}

// That the law above can fail.
#[test]
fn b_17_running_servers_that_rotate_out_of_order_refuse_some() {
    for plan in [Plan::WithoutWaiting, Plan::WithoutOthers] {
        let mut random = Random(12);
        let refused: u32 = (0..4).map(|_| serve_through(plan, &mut random).1).sum();
        assert!(refused > 0);
    }
}

/// G-53: counts go with their keys through a rotation, clones count together, and a sealer made with other keys counts
/// for itself.
#[test]
fn g_53_counts_per_key() {
    let (old, new) = (secret(7).key_id(), secret(2).key_id());
    for sealer in sealers() {
        let clone = sealer.clone();
        let counts = || {
            let uses = clone.key_use();
            uses.iter()
                .map(|it| (it.key, it.mints, it.sealed, it.opened, it.opened_retired))
                .collect::<Vec<_>>()
        };
        assert_eq!(counts(), [(old, true, 0, 0, 0)]);
        let by_old = token(&sealer, b"x", 1);
        assert!(sealer.open(&by_old, &ADA, NOW).is_ok());
        assert_eq!(counts(), [(old, true, 1, 1, 0)]);
        // Authentic, if late, counts; what is not does not.
        assert!(sealer.open(&by_old, &ADA, after(NOW, TTL)).is_err());
        assert!(sealer.open("AQ", &ADA, NOW).is_err());
        assert!(
            sealer.open(&token(&sealer.with_ring(&KeyRing::new(secret(2))), b"x", 1), &ADA, NOW).is_err()
        );
        assert_eq!(counts(), [(old, true, 1, 2, 0)]);
        let mut ring = KeyRing::new(secret(7));
        ring.accept(secret(2)).expect("another");
        ring.promote(new).expect("in the ring");
        clone.set_ring(&ring);
        assert_eq!((sealer.minting(), clone.minting()), (new, new));
        assert_eq!(counts(), [(new, true, 0, 0, 0), (old, false, 1, 2, 0)]);
        assert!(sealer.open(&by_old, &ADA, NOW).expect("accepted").by_retired_key);
        assert!(sealer.open(&token(&sealer, b"y", 2), &ADA, NOW).is_ok());
        assert_eq!(counts(), [(new, true, 1, 1, 0), (old, false, 1, 3, 1)]);
        ring.retire(old).expect("does not mint");
        sealer.set_ring(&ring);
        assert_eq!(verdict(sealer.open(&by_old, &ADA, NOW)).map(|_| ()), Err(Verdict::UnknownKey));
        assert_eq!(counts(), [(new, true, 1, 1, 0)]);
    }
}

/// B-17: keys that change while others seal and open: nobody waits, nobody is refused.
#[test]
#[cfg_attr(target_family = "wasm", ignore = "there are no threads")]
fn b_17_keys_change_between_threads() {
    let sealer = sealers().next().expect("a suite");
    let new = secret(2).key_id();
    let mut both = KeyRing::new(secret(7));
    both.accept(secret(2)).expect("another");
    sealer.set_ring(&both);
    let rounds = 300;
    std::thread::scope(|scope| {
        for seed in 0..2 {
            let sealer = &sealer;
            scope.spawn(move || {
                for round in 0..rounds {
                    let token = token(sealer, b"x", seed * rounds + round);
                    assert!(sealer.open(&token, &ADA, NOW).is_ok());
                }
            });
        }
        for _ in 0..20 {
            both.promote(new).expect("in the ring");
            sealer.set_ring(&both);
            both.promote(secret(7).key_id()).expect("in the ring");
            sealer.set_ring(&both);
        }
    });
    let uses = sealer.key_use();
    assert_eq!(uses.iter().map(|it| it.sealed).sum::<u64>(), 2 * rounds);
    assert_eq!(uses.iter().map(|it| it.opened).sum::<u64>(), 2 * rounds);
}

/// B-17: an attempt that runs while the keys change mints with those of the moment, not with those that it began with;
/// otherwise the wait for the longest TTL would have to begin when the last of such attempts ends.
#[test]
fn b_17_a_running_attempt_mints_with_the_keys_of_the_moment() {
    let Replica { mut world, sealer, mut ring, .. } = replica(9);
    let new = secret(2).key_id();
    let request = world.request("tools/call", json!({"name": "t", "arguments": {}})).to_string();
    let env = RoundEnv::new(world.now, entropy(5), Principal::Anonymous);
    let Reception::Run(run) = world.service.receive(request.as_bytes(), env) else { panic!("not a call") };
    ring.accept(secret(2)).expect("another");
    ring.promote(new).expect("in the ring");
    sealer.set_ring(&ring);
    let mut out = Vec::new();
    let _ = run.run(world.now, &mut out);
    let reply: Value = serde_json::from_slice(&out).expect("JSON");
    let state = reply["result"]["requestState"].as_str().expect("a state");
    assert_eq!(inspect(state).expect("a state").key, new);
}
