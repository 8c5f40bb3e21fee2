//! The run, rule by rule: B5, B6, and B7 at the commit and at the end.

use core::time::Duration;

use mrtr_core::{
    ErrorCode,
    ledger::{
        Action, End, Entry, Memory, MemoryLimits, Once, Outcome, Phase, Refusal, ReplyKind, RunAction,
        StoreEvent,
    },
};

use super::support::*;

fn with(once: Once) -> Bench {
    Bench::new(policy(|policy| policy.once = once))
}

/// An uncontended claim and its end are two commands, a commit is a third; renewals of short runs are none.
#[test]
fn two_round_trips_and_one_for_a_commit() {
    let mut bench = with(Once::AtLeastOnce);
    let run = bench.run(0.0);
    bench.finish(9.9, run, COMPLETE);
    assert_eq!(bench.commands, 2);

    let mut bench = with(Once::AtLeastOnce);
    let mut run = bench.run(0.0);
    bench.commit(1.0, &mut run);
    bench.finish(2.0, run, COMPLETE);
    assert_eq!(bench.commands, 3);
}

/// B5: an interim result, a complete one and the handler's own error all use the state up.
#[test]
fn b5_every_reply_consumes() {
    for kind in [ReplyKind::Interim, ReplyKind::Complete, ReplyKind::HandlerError] {
        for once in [Once::AtLeastOnce, Once::AtMostOnce] {
            let mut bench = with(once);
            let run = bench.run(0.0);
            bench.finish(1.0, run, Outcome::Reply(kind, b"{}"));
            assert!(matches!(bench.entry(1.0), Some(Entry::Done(_))));
            assert_eq!(bench.replayed(2.0, retry()).kind(), kind);
        }
    }
}

/// B5: what consumes nothing (-32021, a limit at mint, cancellation or panic before the commits) frees the state,
/// for any answers; under `AtMostOnce` it is lost.
#[test]
fn b5_not_consumed_is_free_again_or_lost() {
    let mut bench = with(Once::AtLeastOnce);
    let run = bench.run(0.0);
    bench.finish(1.0, run, Outcome::NotConsumed);
    assert_eq!(bench.entry(1.0), None);
    let other = mrtr_core::ledger::Retry::new(key(), answers(2), at(600.0));
    drop(bench.run_of(2.0, other));

    let mut bench = with(Once::AtMostOnce);
    let run = bench.run(0.0);
    bench.finish(1.0, run, Outcome::NotConsumed);
    assert_eq!(bench.refused(2.0, retry()), Refusal::Lost);
}

/// B6: `Committing` is in the store before anybody is told to commit.
#[test]
fn b6_committing_is_stored_first() {
    let mut bench = with(Once::AtLeastOnce);
    let mut run = bench.run(0.0);
    run.begin_commit();
    let RunAction::Store(command) = run.poll(at(1.0)) else { panic!() };
    assert!(matches!(run.poll(at(1.0)), RunAction::Idle));
    let event = bench.apply(1.0, &command);
    let Some(Entry::Held(held)) = bench.entry(1.0) else { panic!() };
    assert_eq!(held.phase, Phase::Committing);
    run.handle_store(at(1.0), event, &TestVault);
    assert!(matches!(run.poll(at(1.0)), RunAction::Commit));
    run.begin_commit();
    assert!(matches!(run.poll(at(1.0)), RunAction::Wait(_)), "commits begin once");
}

/// B6: a crash in the handler shows when its lease has run out, and not a moment earlier (with the skew of the
/// clocks); then the state is free, or lost.
#[test]
fn b6_crash_while_running() {
    let mut bench = with(Once::AtLeastOnce);
    drop(bench.run(0.0));
    let mut second = bench.claim(retry());
    assert!(matches!(bench.drive(34.999, &mut second), Action::Wait(_)));
    drop(bench.run(35.0));

    let mut bench = with(Once::AtMostOnce);
    drop(bench.run(0.0));
    let mut second = bench.claim(retry());
    assert!(matches!(bench.drive(34.999, &mut second), Action::Wait(_)));
    assert!(matches!(bench.drive(35.0, &mut second), Action::Refuse(Refusal::Lost)));
    assert!(matches!(bench.entry(35.0), Some(Entry::Lost(_))), "written down for replicas with other clocks");
    assert_eq!(bench.refused(10.0, retry()), Refusal::Lost);
}

/// B6: a replica with the stricter policy keeps one with the looser from running again, and the other way round.
#[test]
fn b6_the_stricter_of_two_policies_decides() {
    for (first, then) in [(Once::AtMostOnce, Once::AtLeastOnce), (Once::AtLeastOnce, Once::AtMostOnce)] {
        let mut bench = with(first);
        drop(bench.run(0.0));
        bench.policy.once = then;
        assert_eq!(bench.refused(35.0, retry()), Refusal::Lost);
    }
}

/// B6: a crash while committing is lost under both policies, with the words for it.
#[test]
fn b6_crash_while_committing() {
    for once in [Once::AtLeastOnce, Once::AtMostOnce] {
        let mut bench = with(once);
        let mut run = bench.run(0.0);
        bench.commit(1.0, &mut run);
        drop(run);
        assert_eq!(bench.refused(36.0, retry()), Refusal::Lost);
        assert_eq!(bench.refused(500.0, retry()), Refusal::Lost);
    }
    let error = Refusal::Lost.to_error();
    assert_eq!(error.code, ErrorCode::INTERNAL_ERROR);
    assert!(error.message.contains("unknown"));
    assert_eq!(error.data(), None, "nobody is told to try again");
}

/// B6: a commit that panics leaves its state lost at once; one that was granted but never begun does not.
#[test]
fn b6_a_panic_in_a_commit_is_lost() {
    let mut bench = with(Once::AtLeastOnce);
    let mut run = bench.run(0.0);
    bench.commit(1.0, &mut run);
    bench.finish(2.0, run, Outcome::NotConsumed);
    assert_eq!(bench.refused(3.0, retry()), Refusal::Lost);

    let mut bench = with(Once::AtLeastOnce);
    let mut run = bench.run(0.0);
    run.begin_commit();
    let RunAction::Store(command) = run.poll(at(1.0)) else { panic!() };
    let event = bench.apply(1.0, &command);
    run.handle_store(at(1.0), event, &TestVault);
    bench.finish(1.0, run, Outcome::NotConsumed);
    assert_eq!(bench.entry(1.0), None);
}

/// B6: a lease is renewed every third of its length for as long as the run is polled, so that a handler may take
/// longer than a lease and longer than its state lives.
#[test]
fn b6_a_run_that_is_polled_keeps_its_claim() {
    let mut bench = with(Once::AtMostOnce);
    let mut run = bench.run(0.0);
    let mut now = 0.0;
    let mut renewals = 0;
    while now < 2_000.0 {
        let RunAction::Wait(until) = bench.drive_run(now, &mut run) else { panic!() };
        now = until.saturating_since(at(0.0)).as_secs_f64();
        renewals += 1;
        let Some(Entry::Held(held)) = bench.entry(now) else { panic!("gone at {now}") };
        assert!(held.lease_until >= at(now + 19.0));
    }
    assert_eq!(renewals, 200);
    bench.commit(now, &mut run);
    bench.finish(now, run, COMPLETE);
    assert!(matches!(bench.entry(now), Some(Entry::Done(_))));
}

/// B6, B4: a held entry outlives its lease in the store, however long that is, and a renewal keeps the places of
/// those who wait.
#[test]
fn b6_a_long_lease_is_kept_and_renewed_with_its_waiters() {
    let mut bench = Bench::new(policy(|policy| policy.lease = Duration::from_secs(3_000)));
    let mut run = bench.run(599.0);
    let mut second = bench.claim(retry());
    assert!(matches!(bench.drive(599.5, &mut second), Action::Wait(_)));
    assert!(matches!(bench.drive_run(599.5, &mut run), RunAction::Wait(until) if until == at(1_599.0)));
    assert!(matches!(bench.drive_run(1_599.0, &mut run), RunAction::Wait(_)));
    assert!(matches!(bench.entry(4_598.0), Some(Entry::Held(held)) if held.lease_until == at(4_599.0)));

    let mut bench = with(Once::AtLeastOnce);
    let mut run = bench.run(0.0);
    let mut second = bench.claim(retry());
    assert!(matches!(bench.drive(9.0, &mut second), Action::Wait(_)));
    assert!(matches!(bench.drive_run(10.0, &mut run), RunAction::Wait(_)));
    assert!(matches!(bench.entry(10.0), Some(Entry::Held(held)) if held.waiters.len() == 1));
    bench.commit(11.0, &mut run);
    assert!(matches!(bench.entry(11.0), Some(Entry::Held(held)) if held.waiters.len() == 1));
}

/// B6: a renewal that fails is tried again within the lease; one that finds another owner says so, once.
#[test]
fn b6_renewals_fail_and_recover() {
    let mut bench = with(Once::AtLeastOnce);
    let mut run = bench.run(0.0);
    let mut tries = 0;
    let mut now = at(10.0);
    while now < at(30.0) {
        match run.poll(now) {
            RunAction::Store(_) => {
                tries += 1;
                run.handle_store(now, StoreEvent::Unavailable, &TestVault);
            }
            RunAction::Wait(until) => now = until,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(tries, 7);
    assert!(matches!(bench.drive_run(30.0, &mut run), RunAction::Wait(_)));

    // Then it stops being polled, and another takes over.
    let second = bench.run(65.0);
    assert!(matches!(bench.drive_run(65.0, &mut run), RunAction::Superseded));
    assert!(matches!(bench.drive_run(65.0, &mut run), RunAction::Idle));
    run.begin_commit();
    assert!(matches!(bench.drive_run(66.0, &mut run), RunAction::End(End::Refuse(Refusal::Busy))));
    bench.finish(67.0, second, COMPLETE);
}

/// B3, B6: a run that was overtaken sends what all other copies get: never a reply of its own beside it.
#[test]
fn b6_an_overtaken_run_sends_the_reply_that_counts() {
    let own = Outcome::Reply(ReplyKind::Interim, b"{\"late\":1}");
    let mut bench = with(Once::AtLeastOnce);
    let mut slow = bench.run(0.0);
    let mut second = bench.run(35.0);
    bench.commit(35.0, &mut second);
    bench.finish(36.0, second, COMPLETE);
    slow.finish(own, &TestVault);
    let RunAction::End(End::Replay(reply)) = bench.drive_run(37.0, &mut slow) else { panic!() };
    assert_eq!((reply.kind(), reply.member()), (ReplyKind::Complete, RESULT));

    // Overtaken by a copy that still runs, or by one with other answers.
    for (which, refusal) in [(1, Refusal::Busy), (2, Refusal::OtherAnswers)] {
        let mut bench = with(Once::AtLeastOnce);
        let mut slow = bench.run(0.0);
        let _second = bench.run_of(35.0, mrtr_core::ledger::Retry::new(key(), answers(which), at(600.0)));
        slow.finish(own, &TestVault);
        assert!(
            matches!(bench.drive_run(36.0, &mut slow), RunAction::End(End::Refuse(found)) if found == refusal)
        );
    }
}

/// B6: a run that was only slow settles what others took for lost; from then on its reply is known.
#[test]
fn b6_a_slow_run_settles_what_was_taken_for_lost() {
    for commit in [false, true] {
        let mut bench = with(Once::AtMostOnce);
        let mut run = bench.run(0.0);
        if commit {
            bench.commit(1.0, &mut run);
        }
        assert_eq!(bench.refused(40.0, retry()), Refusal::Lost);
        bench.finish(41.0, run, COMPLETE);
        assert_eq!(bench.replayed(42.0, retry()).member(), RESULT);
    }
    // One that was overtaken by a run that was lost itself settles nothing: that run may have committed.
    let mut bench = with(Once::AtLeastOnce);
    let mut slow = bench.run(0.0);
    let mut second = bench.run(35.0);
    bench.commit(35.0, &mut second);
    drop(second);
    assert_eq!(bench.refused(71.0, retry()), Refusal::Lost);
    slow.finish(COMPLETE, &TestVault);
    assert!(matches!(bench.drive_run(72.0, &mut slow), RunAction::End(End::Refuse(Refusal::Lost))));
    assert_eq!(bench.refused(73.0, retry()), Refusal::Lost);

    // It may not begin a commit any more.
    let mut bench = with(Once::AtMostOnce);
    let mut run = bench.run(0.0);
    assert_eq!(bench.refused(40.0, retry()), Refusal::Lost);
    run.begin_commit();
    assert!(matches!(bench.drive_run(41.0, &mut run), RunAction::End(End::Refuse(Refusal::Lost))));
}

/// B7: no commit begins that could not be written down, under either way to fail.
#[test]
fn b7_store_down_at_the_commit() {
    let mut bench = with(Once::AtLeastOnce);
    let mut run = bench.run(0.0);
    run.begin_commit();
    let (asked, action) = bench.drive_run_in_the_dark(1.0, &mut run);
    assert!(matches!(action, RunAction::End(End::Refuse(Refusal::StoreDown))));
    assert_eq!(asked, 3);
    run.begin_commit();
    run.finish(COMPLETE, &TestVault);
    assert!(matches!(run.poll(at(9.0)), RunAction::Idle), "a run ends once");
}

/// B7: with the store down at the end the reply goes out and the entry ages: free again, or lost once a commit
/// had begun.
#[test]
fn b7_store_down_at_the_end() {
    for (commit, once) in [(false, Once::AtLeastOnce), (true, Once::AtLeastOnce), (false, Once::AtMostOnce)] {
        let mut bench = with(once);
        let mut run = bench.run(0.0);
        if commit {
            bench.commit(0.0, &mut run);
        }
        run.finish(COMPLETE, &TestVault);
        assert!(matches!(bench.drive_run_in_the_dark(1.0, &mut run), (3, RunAction::End(End::Own))));
        if commit || once == Once::AtMostOnce {
            assert_eq!(bench.refused(40.0, retry()), Refusal::Lost);
        } else {
            drop(bench.run(40.0));
        }
    }
}

/// B7: commands of a run whose replies are lost are recognised as its own, and done once.
#[test]
fn b7_applied_commands_whose_replies_were_lost() {
    let mut bench = with(Once::AtLeastOnce);
    let mut run = bench.run(0.0);
    // A renewal, the commit and the end: each takes place, and nobody hears of it at first.
    for (seconds, wanted) in [(10.0, "renew"), (15.0, "commit"), (20.0, "end")] {
        match wanted {
            "commit" => run.begin_commit(),
            "end" => run.finish(COMPLETE, &TestVault),
            _ => {}
        }
        let (mut now, mut lost, mut applied) = (at(seconds), 0, 0);
        let action = loop {
            match run.poll(now) {
                RunAction::Store(command) => {
                    let mut event = bench.store.apply(now, &command);
                    if event == StoreEvent::Applied {
                        applied += 1;
                        if lost == 0 {
                            (lost, event) = (1, StoreEvent::Unavailable);
                        }
                    }
                    run.handle_store(now, event, &TestVault);
                }
                RunAction::Wait(until) if until < at(seconds + 5.0) => now = until,
                other => break other,
            }
        };
        assert_eq!(lost, 1, "{wanted}");
        match wanted {
            "commit" => assert!(matches!((action, applied), (RunAction::Commit, 1))),
            "end" => assert!(matches!((action, applied), (RunAction::End(End::Own), 1))),
            _ => assert!(matches!((action, applied), (RunAction::Wait(until), 1) if until == at(20.0))),
        }
    }
    assert_eq!(bench.replayed(26.0, retry()).member(), RESULT);
}

/// B7, G-28: a store that has forgotten a claim (a fail-over) gets the end of its run all the same.
#[test]
fn b7_an_end_is_written_over_a_forgotten_claim() {
    for commit in [false, true] {
        let mut bench = with(Once::AtLeastOnce);
        let mut run = bench.run(0.0);
        if commit {
            bench.commit(0.0, &mut run);
        }
        bench.put(1.0, key(), None);
        bench.finish(2.0, run, COMPLETE);
        assert_eq!(bench.replayed(3.0, retry()).member(), RESULT);
    }
    // A commit is not begun over one: somebody else may have been here.
    let mut bench = with(Once::AtLeastOnce);
    let mut run = bench.run(0.0);
    bench.put(1.0, key(), None);
    run.begin_commit();
    assert!(matches!(bench.drive_run(2.0, &mut run), RunAction::End(End::Refuse(Refusal::Busy))));
}

/// B3, B7: a store without room for the reply keeps that the state is used.
#[test]
fn b7_no_room_for_the_reply() {
    let mut limits = MemoryLimits::default();
    limits.reply_bytes = 1_000;
    let mut bench = with(Once::AtLeastOnce);
    bench.store = Memory::new(limits);
    let member = format!("\"{}\"", "x".repeat(2_000));
    let run = bench.run(0.0);
    bench.finish(1.0, run, Outcome::Reply(ReplyKind::Complete, member.as_bytes()));
    assert_eq!(bench.refused(2.0, retry()), Refusal::NotKept);
}

/// A store that breaks its promises ends a run too, and cannot make it spin (guarantee: no unbounded time).
#[test]
fn a_store_that_talks_nonsense_does_not_hold_a_run() {
    let mut bench = with(Once::AtLeastOnce);
    let run = bench.run(0.0);
    let own = bench.bytes(0.0);
    drop(run);
    for event in [
        StoreEvent::Current(None),
        StoreEvent::Current(Some(b"GARBAGE".to_vec())),
        StoreEvent::Current(own),
        StoreEvent::Full,
        StoreEvent::Unavailable,
    ] {
        for step in 0..3 {
            let mut bench = with(Once::AtLeastOnce);
            let mut run = bench.run(0.0);
            match step {
                0 => run.begin_commit(),
                1 => run.finish(COMPLETE, &TestVault),
                _ => run.finish(Outcome::NotConsumed, &TestVault),
            }
            let mut now = at(1.0);
            let mut steps = 0;
            loop {
                steps += 1;
                assert!(steps < 500, "{event:?} goes on for ever");
                match run.poll(now) {
                    RunAction::Store(_) => run.handle_store(now, event.clone(), &TestVault),
                    RunAction::Wait(until) => now = until,
                    RunAction::End(_) => break,
                    other => panic!("{other:?}"),
                }
            }
            assert!(now < at(3.0));
            assert!(matches!(run.poll(now), RunAction::Idle));
        }
        // A renewal that is answered so for a minute asks a bounded number of times.
        let mut run = bench_run();
        let (mut now, mut asked) = (at(0.0), 0);
        while now < at(60.0) {
            match run.poll(now) {
                RunAction::Store(_) => {
                    asked += 1;
                    run.handle_store(now, event.clone(), &TestVault);
                }
                RunAction::Wait(until) => now = until,
                RunAction::Superseded | RunAction::Idle => now = now.saturating_add(Duration::from_secs(1)),
                other => panic!("{other:?}"),
            }
        }
        assert!(asked < 700, "{asked} renewals for {event:?}");
    }
}

fn bench_run() -> Box<mrtr_core::ledger::Run> {
    with(Once::AtLeastOnce).run(0.0)
}
