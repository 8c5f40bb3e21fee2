//! Claims and runs at their edges: the last moment of a place, the last race that may be lost, what a change and a
//! cancellation cost, what is shown and logged (B4…B7).

use core::time::Duration;

use mrtr_core::ledger::{
    Action, End, Entry, Held, Once, Policy, Refusal, RunAction, StoreEvent, StoredReply,
};

use super::support::*;
use crate::lines::Lines;

/// The bytes of a claim with places of these ids until these seconds instead of its own.
fn with_places(held: &Held, places: &[(u8, f64)]) -> Vec<u8> {
    let mut held = held.clone();
    held.waiters.clear();
    let mut bytes = Entry::Held(held).encode();
    *bytes.last_mut().unwrap() = u8::try_from(places.len()).unwrap();
    for (id, until) in places {
        bytes.extend([*id; 8]);
        bytes.extend(at(*until).as_unix_millis().to_be_bytes());
    }
    bytes
}

/// Somebody else's claim, with these places.
fn held(bench: &mut Bench, lease_until: f64, places: &[(u8, f64)]) {
    drop(bench.run(0.0));
    let Some(Entry::Held(mut held)) = bench.entry(0.0) else { panic!() };
    held.lease_until = at(lease_until);
    bench.put(0.0, key(), Some(with_places(&held, places)));
}

fn waiters(bench: &mut Bench, seconds: f64) -> Vec<[u8; 8]> {
    match bench.entry(seconds) {
        Some(Entry::Held(held)) => held.waiters.iter().map(|waiter| waiter.id).collect(),
        other => panic!("{other:?}"),
    }
}

/// B4: a place is over at its last moment: for whoever joins, takes over or renews.
#[test]
fn b4_a_place_is_over_at_its_time() {
    let mut bench = Bench::new(Policy::default());
    held(&mut bench, 60.0, &[(1, 10.0), (2, 10.001)]);
    let mut joining = bench.claim(retry());
    assert!(matches!(bench.drive(10.0, &mut joining), Action::Wait(_)));
    let there = waiters(&mut bench, 10.0);
    assert!(there.len() == 2 && there[0] == [2; 8], "{there:?}");

    let mut bench = Bench::new(policy(|policy| policy.skew = Duration::ZERO));
    held(&mut bench, 5.0, &[(1, 10.0), (2, 10.001)]);
    let run = bench.run(10.0);
    assert_eq!(waiters(&mut bench, 10.0), [[2; 8]]);
    drop(run);

    let mut bench = Bench::new(Policy::default());
    let mut run = bench.run(0.0);
    let RunAction::Wait(renewal) = bench.drive_run(0.0, &mut run) else { panic!() };
    assert_eq!(renewal, at(10.0));
    let mut claims = [bench.claim(retry()), bench.claim(retry())];
    for claim in &mut claims {
        assert!(matches!(bench.drive(1.0, claim), Action::Wait(_)));
    }
    let Some(Entry::Held(mut held)) = bench.entry(1.0) else { panic!() };
    held.waiters[0].until = at(10.0);
    bench.put(1.0, key(), Some(Entry::Held(held.clone()).encode()));
    assert!(matches!(bench.drive_run(10.0, &mut run), RunAction::Wait(_)));
    assert_eq!(waiters(&mut bench, 10.0), [held.waiters[1].id]);
}

/// B4: told of a change, a copy that waits looks at once.
#[test]
fn b4_a_change_is_looked_at_at_once() {
    let mut bench = Bench::new(Policy::default());
    let _run = bench.run(0.0);
    let mut second = bench.claim(retry());
    let Action::Wait(until) = bench.drive(1.0, &mut second) else { panic!() };
    assert!(matches!(second.poll(at(1.0)), Action::Wait(again) if again == until));
    second.handle_change();
    assert!(matches!(second.poll(at(1.0)), Action::Store(_)));
}

/// B5: a copy that holds nothing is cancelled without asking the store.
#[test]
fn b5_a_waiting_copy_is_cancelled_for_nothing() {
    let mut bench = Bench::new(Policy::default());
    let _run = bench.run(0.0);
    let mut second = bench.claim(retry());
    assert!(matches!(bench.drive(1.0, &mut second), Action::Wait(_)));
    second.handle_cancel();
    assert!(matches!(second.poll(at(1.0)), Action::Refuse(Refusal::Cancelled)));
}

/// Nobody loops for ever: a claim that loses 32 races in a row is told to come again, a run that loses 33 ends
/// without the store.
#[test]
fn b7_races_are_bounded() {
    let mut bench = Bench::new(Policy::default());
    let mut claim = bench.claim(retry());
    let mut lost = 0;
    let refusal = loop {
        match claim.poll(at(0.0)) {
            Action::Store(_) => {
                lost += 1;
                claim.handle_store(at(0.0), StoreEvent::Current(None), &TestVault);
            }
            Action::Refuse(refusal) => break refusal,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!((lost, refusal), (32, Refusal::Busy));

    let mut run = bench.run(0.0);
    let Some(Entry::Held(held)) = bench.entry(0.0) else { panic!() };
    run.finish(COMPLETE, &TestVault);
    let mut lost = 0;
    loop {
        match run.poll(at(1.0)) {
            RunAction::Store(_) => {
                lost += 1;
                let current = Some(with_places(&held, &[(lost, 9.0)]));
                run.handle_store(at(1.0), StoreEvent::Current(current), &TestVault);
            }
            RunAction::End(End::Own) => break,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(lost, 33);
}

/// B7: failures count in a row: a store that answers in between is not down.
#[test]
fn b7_only_failures_in_a_row_count() {
    let mut bench = Bench::new(Policy::default());
    let mut run = bench.run(0.0);
    let mut now = at(0.0);
    let mut fail_twice = |run: &mut mrtr_core::ledger::Run| {
        for pause in [50, 100] {
            let RunAction::Store(_) = run.poll(now) else { panic!() };
            run.handle_store(now, StoreEvent::Unavailable, &TestVault);
            let again = now.saturating_add(Duration::from_millis(pause));
            // Not before its time, and then, however late.
            assert!(matches!(run.poll(now), RunAction::Wait(at) if at == again));
            now = again.saturating_add(Duration::from_millis(1));
        }
        now.saturating_since(at(0.0)).as_secs_f64()
    };
    run.begin_commit();
    let seconds = fail_twice(&mut run);
    assert!(matches!(bench.drive_run(seconds, &mut run), RunAction::Commit));
    run.finish(COMPLETE, &TestVault);
    let seconds = fail_twice(&mut run);
    assert!(matches!(bench.drive_run(seconds, &mut run), RunAction::End(End::Own)));
    assert!(matches!(bench.entry(seconds), Some(Entry::Done(_))));
}

/// Sixteen places can be written and read, not one more.
#[test]
fn b4_an_entry_has_at_most_sixteen_places() {
    let mut bench = Bench::new(Policy::default());
    drop(bench.run(0.0));
    let Some(Entry::Held(held)) = bench.entry(0.0) else { panic!() };
    for places in [15, 16, 17, 18] {
        let bytes = with_places(&held, &vec![(9, 10.0); places]);
        let read = Entry::decode(&bytes);
        assert_eq!(read.is_ok(), places <= 16, "{places}");
        assert!(read.map_or(true, |entry| entry.encode() == bytes));
    }
}

/// What is shown of the parts of a ledger: which, and how large, never a digest, an owner or a reply.
#[test]
fn what_is_shown() {
    let mut bench = Bench::new(Policy::default());
    assert!(bench.store.is_empty());
    let mut claim = bench.claim(retry());
    assert!(format!("{claim:?}").contains("ready"));
    assert!(matches!(claim.poll(at(0.0)), Action::Store(_)));
    assert!(format!("{claim:?}").contains("asking the store"));
    let run = bench.run(0.0);
    assert!(!bench.store.is_empty());
    assert!(format!("{run:?}").contains("covered: true"));
    let held = format!("{:?}", bench.entry(0.0).unwrap());
    assert!(held.starts_with("Held") && held.contains("waiters: 0"), "{held}");
    bench.finish(1.0, run, COMPLETE);
    let done = format!("{:?}", bench.entry(1.0).unwrap());
    assert!(done.starts_with("Done") && done.contains("sealed_bytes: Some("), "{done}");
    let reply: StoredReply = bench.replayed(2.0, retry());
    assert_eq!(format!("{reply:?}"), format!("StoredReply(Complete, {} bytes)", RESULT.len()));
    let Action::Store(command) = bench.claim(retry()).poll(at(2.0)) else { panic!() };
    let shown = format!("{command:?}");
    assert!(shown.contains("CompareAndSet") && shown.contains("expected_bytes: None"), "{shown}");
    let events = [StoreEvent::Applied, StoreEvent::Current(Some(vec![1, 2])), StoreEvent::Unavailable];
    assert_eq!(format!("{events:?}"), "[Applied, Current(2 bytes), Unavailable]");
    let store = format!("{:?}", bench.store);
    assert!(store.contains("entries: 1"), "{store}");
    let outcome = format!("{COMPLETE:?}");
    assert!(outcome.contains(&RESULT.len().to_string()) && !outcome.contains("resultType"), "{outcome}");
    assert_eq!(format!("{:?}", answers(1)), "AnswersDigest(..)");
    assert_eq!(format!("{:?}", key()), key().to_string());
    let mut bench = Bench::new(policy(|policy| policy.once = Once::AtMostOnce));
    let run = bench.run(0.0);
    bench.finish(1.0, run, mrtr_core::ledger::Outcome::NotConsumed);
    assert_eq!(format!("{:?}", bench.entry(1.0).unwrap()), "Lost");
}

/// B6: an outcome that is not known is for somebody to look at; nothing else is a warning.
#[test]
fn b6_an_unknown_outcome_is_a_warning() {
    let log = Lines::default();
    tracing::subscriber::with_default(log.clone(), || {
        let mut bench = Bench::new(Policy::default());
        let mut run = bench.run(0.0);
        let other = mrtr_core::ledger::Retry::new(key(), answers(2), at(600.0));
        assert_eq!(bench.refused(1.0, other), Refusal::OtherAnswers);
        let warnings = |lines: Vec<String>| lines.iter().filter(|line| line.starts_with("WARN")).count();
        assert_eq!(warnings(log.take()), 0);
        bench.commit(1.0, &mut run);
        drop(run);
        assert_eq!(bench.refused(100.0, retry()), Refusal::Lost);
        assert_eq!(warnings(log.take()), 1);
        // A run that has its own end says nothing; one that learns another does.
        let mut bench = Bench::new(policy(|policy| policy.skew = Duration::ZERO));
        let run = bench.run(0.0);
        bench.finish(1.0, run, COMPLETE);
        assert_eq!(log.take(), Vec::<String>::new());
        let mut bench = Bench::new(policy(|policy| policy.skew = Duration::ZERO));
        let mut slow = bench.run(0.0);
        let fast = bench.run(40.0);
        bench.finish(41.0, fast, COMPLETE);
        slow.finish(COMPLETE, &TestVault);
        let RunAction::End(end) = bench.drive_run(42.0, &mut slow) else { panic!() };
        assert_ne!(end, End::Own);
        assert!(log.take().iter().any(|line| line.contains("without its own reply")));
    });
}
