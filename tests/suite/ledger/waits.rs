//! Copies that wait for another copy of the same retry (B4).

use core::time::Duration;

use mrtr_core::{
    ErrorCode,
    ledger::{Action, End, Entry, Once, Outcome, Policy, Refusal, RunAction},
};

use super::support::*;

/// B4, G-28: a second copy waits while the first runs or commits, and gets its reply.
#[test]
fn b4_a_second_copy_waits_for_the_reply() {
    let mut bench = Bench::new(Policy::default());
    let mut run = bench.run(0.0);
    let mut second = bench.claim(retry());
    let Action::Wait(until) = bench.drive(1.0, &mut second) else { panic!() };
    assert!(until > at(1.0));
    bench.commit(2.0, &mut run);
    assert!(matches!(bench.drive(3.0, &mut second), Action::Wait(_)), "committing is still running");
    bench.finish(4.0, run, COMPLETE);
    second.handle_change();
    let Action::Reply(reply) = bench.drive(4.0, &mut second) else { panic!() };
    assert_eq!(reply.member(), RESULT);
}

/// B4: the pauses between looks grow to a second and end with the wait; a wait costs at most 40 looks.
#[test]
fn b4_waiting_looks_at_growing_intervals() {
    let mut bench = Bench::new(Policy::default());
    let _run = bench.run(0.0);
    let before = bench.commands;
    let mut second = bench.claim(retry());
    let mut now = at(0.0);
    let refusal = loop {
        match second.poll(now) {
            Action::Store(command) => {
                bench.commands += 1;
                let event = bench.store.apply(at(0.0), &command);
                second.handle_store(now, event, &TestVault);
            }
            Action::Wait(until) => {
                assert!(until > now && until.saturating_since(now) <= Duration::from_secs(1));
                now = until;
            }
            Action::Refuse(refusal) => break refusal,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!((refusal, now), (Refusal::Busy, at(30.0)));
    assert!(bench.commands - before <= 40, "{} commands", bench.commands - before);
}

/// B4: at most four wait at an entry, and the fifth is told to try again; a place is free when its time is over,
/// whatever became of who had it.
#[test]
fn b4_four_wait_and_the_fifth_is_told_to_retry() {
    let mut bench = Bench::new(policy(|policy| policy.wait = Duration::from_secs(5)));
    let mut run = bench.run(0.0);
    let mut waiting: Vec<_> = (0..4).map(|_| bench.claim(retry())).collect();
    for claim in &mut waiting {
        assert!(matches!(bench.drive(1.0, claim), Action::Wait(_)));
    }
    let Some(Entry::Held(held)) = bench.entry(1.0) else { panic!() };
    assert_eq!(held.waiters.len(), 4);
    assert_eq!(bench.refused(2.0, retry()), Refusal::Busy);
    let error = Refusal::Busy.to_error();
    assert_eq!(
        (error.code, error.data().map(|data| data.as_str())),
        (ErrorCode::INTERNAL_ERROR, Some("{\"retry\":true}"))
    );

    // The first four crash; their places run out.
    drop(waiting);
    assert_eq!(bench.refused(5.999, retry()), Refusal::Busy);
    let mut late = bench.claim(retry());
    assert!(matches!(bench.drive(6.0, &mut late), Action::Wait(_)));

    // Waiters change the entry under the run; it ends all the same.
    run.finish(COMPLETE, &TestVault);
    assert!(matches!(bench.drive_run(7.0, &mut run), RunAction::End(End::Own)));
}

/// B4: the wait ends with the request's deadline, with the policy's, and with the lease, whichever comes first.
#[test]
fn b4_a_wait_is_bounded_three_ways() {
    for (deadline, wait, lease, end) in
        [(Some(3.0), 9.0, 30.0, 3.0), (None, 9.0, 30.0, 9.0), (None, 60.0, 4.0, 9.0)]
    {
        let mut bench = Bench::new(policy(|policy| {
            policy.wait = Duration::from_secs_f64(wait);
            policy.lease = Duration::from_secs_f64(lease);
            policy.once = Once::AtMostOnce;
        }));
        let _run = bench.run(0.0);
        let mut bounded = retry();
        bounded.deadline = deadline.map(at);
        let mut second = bench.claim(bounded);
        let mut now = at(0.0);
        while let Action::Wait(until) = bench.drive(now.saturating_since(at(0.0)).as_secs_f64(), &mut second)
        {
            now = until;
        }
        assert_eq!(now, at(end), "lease {lease}, wait {wait}, deadline {deadline:?}");
    }
}

/// B4: a copy that waited for a run that gave the state back runs itself.
#[test]
fn b4_a_waiter_runs_when_the_first_copy_consumed_nothing() {
    let mut bench = Bench::new(Policy::default());
    let run = bench.run(0.0);
    let mut second = bench.claim(retry());
    assert!(matches!(bench.drive(0.0, &mut second), Action::Wait(_)));
    bench.finish(1.0, run, Outcome::NotConsumed);
    assert!(matches!(bench.drive(2.0, &mut second), Action::Run(_)));
}

/// B4: whoever waited and takes over frees its own place and keeps the places of the others.
#[test]
fn b4_a_waiter_that_takes_over_frees_its_place() {
    let mut bench = Bench::new(policy(|policy| policy.wait = Duration::from_secs(60)));
    drop(bench.run(0.0));
    let mut waiting: Vec<_> = (0..3).map(|_| bench.claim(retry())).collect();
    for claim in &mut waiting {
        assert!(matches!(bench.drive(1.0, claim), Action::Wait(_)));
    }
    let before: Vec<_> = match bench.entry(1.0) {
        Some(Entry::Held(held)) => held.waiters.iter().map(|waiter| waiter.id).collect(),
        other => panic!("{other:?}"),
    };
    // Their wait ends with the lease; the first to look takes over.
    let Some(Entry::Held(held)) = bench.entry(1.0) else { panic!() };
    assert!(held.waiters.iter().all(|waiter| waiter.until == at(35.0)));
    bench.policy.skew = Duration::ZERO;
    let mut fast = bench.claim(retry());
    let Action::Run(_run) = bench.drive(34.0, &mut fast) else { panic!() };
    let Some(Entry::Held(held)) = bench.entry(34.0) else { panic!() };
    assert_eq!(held.waiters.iter().map(|waiter| waiter.id).collect::<Vec<_>>(), before, "others keep theirs");

    let Action::Run(_run) = bench.drive(69.0, &mut waiting[0]) else { panic!() };
    let Some(Entry::Held(held)) = bench.entry(69.0) else { panic!() };
    assert!(held.waiters.is_empty(), "all are over by then");

    let mut bench = Bench::new(Policy::default());
    drop(bench.run(0.0));
    let mut waiting: Vec<_> = (0..3).map(|_| bench.claim(retry())).collect();
    for claim in &mut waiting {
        assert!(matches!(bench.drive(20.0, claim), Action::Wait(_)));
    }
    // A place that lasts beyond the lease, as a replica with another skew would write it.
    let Some(Entry::Held(mut held)) = bench.entry(20.0) else { panic!() };
    let ids: Vec<_> = held.waiters.iter().map(|waiter| waiter.id).collect();
    for waiter in &mut held.waiters {
        waiter.until = at(50.0);
    }
    bench.put(20.0, key(), Some(Entry::Held(held).encode()));
    let Action::Run(_run) = bench.drive(35.0, &mut waiting[1]) else { panic!() };
    let Some(Entry::Held(held)) = bench.entry(35.0) else { panic!() };
    assert_eq!(held.waiters.iter().map(|waiter| waiter.id).collect::<Vec<_>>(), [ids[0], ids[2]]);
}
