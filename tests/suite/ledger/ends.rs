//! How a run ends that finds something else in the store than its claim (B5, B6).

use mrtr_core::ledger::{End, Entry, Once, Outcome, Refusal, RunAction};

use super::support::*;

/// What the store holds instead when the run ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    /// Nothing any more.
    Nothing,
    /// An entry nobody can read.
    Foreign,
}

/// Ends a run and gives its end and how many commands that took. `late`: after its state has expired.
fn end(once: Once, commit: bool, outcome: Outcome<'_>, found: Found, late: bool) -> (End, usize) {
    let mut bench = Bench::new(policy(|policy| policy.once = once));
    let mut run = bench.run(0.0);
    if commit {
        bench.commit(1.0, &mut run);
    }
    let now = if late { 601.0 } else { 2.0 };
    let there = match found {
        Found::Nothing => None,
        Found::Foreign => Some(vec![2, 1, 2, 3]),
    };
    bench.put(now, key(), there);
    let before = bench.commands;
    run.finish(outcome, &TestVault);
    match bench.drive_run(now, &mut run) {
        RunAction::End(end) => (end, bench.commands - before),
        other => panic!("{other:?}"),
    }
}

/// B5, B6: only a run that has a reply to keep, and has committed nothing, has to give way. One whose commits have begun
/// tells the truth, and one that consumes nothing does not care.
#[test]
fn b6_who_gives_way_to_what_is_in_the_store() {
    let (least, most) = (Once::AtLeastOnce, Once::AtMostOnce);
    for found in [Found::Nothing, Found::Foreign] {
        for once in [least, most] {
            let (reply, _) = end(once, false, COMPLETE, found, true);
            let expected = if found == Found::Nothing { Refusal::Lost } else { Refusal::Unreadable };
            assert_eq!(reply, End::Refuse(expected), "{found:?} {once:?}");
            assert_eq!(end(once, true, COMPLETE, found, true), (End::Own, 1), "{found:?} {once:?}");
            assert_eq!(
                end(once, true, Outcome::NotConsumed, found, true),
                (End::Own, 1),
                "{found:?} {once:?}"
            );
            assert_eq!(
                end(once, false, Outcome::NotConsumed, found, true),
                (End::Own, 1),
                "{found:?} {once:?}"
            );
        }
    }
    // As long as the state lives, an end is written where there is nothing.
    for commit in [false, true] {
        assert_eq!(end(least, commit, COMPLETE, Found::Nothing, false), (End::Own, 2), "{commit}");
    }
    assert_eq!(end(most, false, Outcome::NotConsumed, Found::Nothing, false), (End::Own, 2));
    assert_eq!(end(most, false, Outcome::NotConsumed, Found::Foreign, false), (End::Own, 1));
}

/// B6: a slow run that was taken for lost writes down what it came to, if it came to something.
#[test]
fn b6_lost_stays_lost_without_an_outcome() {
    for (outcome, commands) in [(COMPLETE, 2), (Outcome::NotConsumed, 1)] {
        let mut bench = Bench::new(policy(|policy| policy.once = Once::AtMostOnce));
        let mut slow = bench.run(0.0);
        assert_eq!(bench.refused(100.0, retry()), Refusal::Lost);
        let before = bench.commands;
        slow.finish(outcome, &TestVault);
        assert!(matches!(bench.drive_run(101.0, &mut slow), RunAction::End(End::Own)));
        assert_eq!(bench.commands - before, commands);
        assert_eq!(matches!(bench.entry(101.0), Some(Entry::Lost(_))), commands == 1);
    }
}
