//! The claim, rule by rule: B1, B2, B3, B5 and B7 at the claim.

use core::time::Duration;

use mrtr_core::{
    ErrorCode,
    jsonrpc::RequestId,
    ledger::{
        Action, End, Entry, Key, Memory, MemoryLimits, Once, Operation, Outcome, Phase, Policy, Refusal,
        ReplyKind, Retry, RunAction, StoreEvent, WhenDown,
    },
};

use super::support::*;

/// B1: nothing happens before the first poll, the first command is the claim itself, and nobody runs before the
/// store has said yes.
#[test]
fn b1_one_compare_and_set_stands_before_the_handler() {
    let mut bench = Bench::new(Policy::default());
    let mut claim = bench.claim(retry());
    assert!(bench.store.is_empty());
    let Action::Store(command) = claim.poll(at(0.0)) else { panic!() };
    let Operation::CompareAndSet { expected: None, new: Some(new), expires } = &command.operation else {
        panic!()
    };
    let Ok(Entry::Held(held)) = Entry::decode(new) else { panic!() };
    assert_eq!((held.phase, held.lease_until), (Phase::Running, at(30.0)));
    assert_eq!(*expires, at(660.0), "kept for the retention after the state has expired");
    assert!(matches!(claim.poll(at(0.0)), Action::Idle), "a command is given out once");
    claim.handle_store(at(0.0), bench.store.apply(at(0.0), &command), &TestVault);
    let Action::Run(run) = claim.poll(at(0.0)) else { panic!() };
    assert!(run.is_covered());
    assert!(matches!(claim.poll(at(0.0)), Action::Idle), "a claim ends once");
}

/// B1: what is refused before the claim consumes nothing: here a state that expires on the way.
#[test]
fn b1_an_expired_state_is_not_claimed() {
    let mut bench = Bench::new(Policy::default());
    assert_eq!(bench.refused(600.001, retry()), Refusal::Expired);
    assert_eq!(bench.commands, 0);
    assert!(matches!(bench.run(600.0).poll(at(600.0)), RunAction::Wait(_)), "the last moment is still fine");
}

/// B1: a claim whose command came back after the state had expired does not run, and gives the state back: the
/// entry of an earlier run may have been forgotten before the slow command arrived.
#[test]
fn b1_a_claim_that_took_too_long_does_not_run() {
    let mut bench = Bench::new(Policy::default());
    let mut claim = bench.claim(retry());
    let Action::Store(command) = claim.poll(at(599.0)) else { panic!() };
    let event = bench.apply(700.0, &command);
    claim.handle_store(at(700.0), event, &TestVault);
    assert!(matches!(bench.drive(700.0, &mut claim), Action::Refuse(Refusal::Expired)));
    assert_eq!(bench.entry(700.0), None);
}

/// B2, R-075, B-29: other answers on an entry that is not free get the one sentence, in every state.
#[test]
fn b2_other_answers_are_refused_with_the_one_sentence() {
    let other = Retry::new(key(), answers(2), at(600.0));
    let mut bench = Bench::new(Policy::default());
    let mut run = bench.run(0.0);
    assert_eq!(bench.refused(1.0, other.clone()), Refusal::OtherAnswers, "running");
    bench.commit(1.0, &mut run);
    assert_eq!(bench.refused(2.0, other.clone()), Refusal::OtherAnswers, "committing");
    assert_eq!(bench.refused(100.0, other.clone()), Refusal::OtherAnswers, "committing, lease out");
    bench.finish(100.0, run, COMPLETE);
    assert_eq!(bench.refused(101.0, other.clone()), Refusal::OtherAnswers, "done");

    let mut bench = Bench::new(policy(|policy| policy.once = Once::AtMostOnce));
    let run = bench.run(0.0);
    assert_eq!(bench.refused(100.0, other.clone()), Refusal::OtherAnswers, "lease out");
    bench.finish(100.0, run, Outcome::NotConsumed);
    assert_eq!(bench.refused(101.0, other), Refusal::OtherAnswers, "lost");

    let error = Refusal::OtherAnswers.to_error();
    assert_eq!((error.code, &*error.message), (ErrorCode::INVALID_PARAMS, "Invalid or expired requestState"));
    assert_eq!(Refusal::Expired.to_error(), error);
}

/// B2: keys differ by audience, exchange and round; none of them shares an entry with another.
#[test]
fn b2_other_states_are_other_entries() {
    let mut bench = Bench::new(Policy::default());
    let keys = [
        key(),
        Key::new("other", [1; 16], 0),
        Key::new("billing", [2; 16], 0),
        Key::new("billing", [1; 16], 1),
    ];
    assert_eq!(keys.map(|key| key.exchange()), [[1; 16], [1; 16], [2; 16], [1; 16]]);
    for key in keys {
        drop(bench.run_of(0.0, Retry::new(key, answers(1), at(600.0))));
    }
    assert_eq!(bench.store.len(), keys.len());
}

/// B3, R-096, G-28, G-29: the same retry under another id gets the stored member, byte for byte, under that id.
#[test]
fn b3_a_lost_reply_is_sent_again_under_the_new_id() {
    let error = br#"{"code":7,"message":"no such account"}"#.as_slice();
    let interim = br#"{"resultType":"input_required","requestState":"abc"}"#.as_slice();
    for (kind, member, name) in [
        (ReplyKind::Interim, interim, "result"),
        (ReplyKind::Complete, RESULT, "result"),
        (ReplyKind::HandlerError, error, "error"),
    ] {
        let mut bench = Bench::new(Policy::default());
        let run = bench.run(0.0);
        bench.finish(1.0, run, Outcome::Reply(kind, member));
        for (seconds, id) in [(1.0, RequestId::from(8)), (600.0, RequestId::from("again\n"))] {
            let reply = bench.replayed(seconds, retry());
            assert_eq!((reply.kind(), reply.member()), (kind, member));
            let mut out = Vec::new();
            reply.write(&id, &mut out);
            let mut wanted = b"{\"jsonrpc\":\"2.0\",\"id\":".to_vec();
            id.write(&mut wanted);
            wanted.extend_from_slice(format!(",\"{name}\":").as_bytes());
            wanted.extend_from_slice(member);
            wanted.push(b'}');
            assert_eq!(out, wanted);
            serde_json::from_slice::<serde_json::Value>(&out).unwrap();
        }
    }
}

/// B3: kept until the state's own expiry, and for the retention after it; then the store is empty again.
#[test]
fn b3_a_reply_is_kept_as_long_as_its_state() {
    let mut bench = Bench::new(Policy::default());
    let run = bench.run(0.0);
    bench.finish(1.0, run, COMPLETE);
    assert!(bench.entry(659.999).is_some());
    assert_eq!(bench.entry(660.0), None);
    assert!(bench.store.is_empty());
    assert_eq!(bench.refused(660.0, retry()), Refusal::Expired, "forgotten is not free");
}

/// B3: what is stored is sealed, and bound to its key and answers: moved or changed it opens nothing.
#[test]
fn b3_stored_replies_are_sealed_and_cannot_be_moved() {
    let mut bench = Bench::new(Policy::default());
    let run = bench.run(0.0);
    bench.finish(1.0, run, COMPLETE);
    let bytes = bench.bytes(1.0).unwrap();
    assert!(!bytes.windows(8).any(|window| RESULT.windows(8).any(|secret| secret == window)));

    let elsewhere = Key::new("billing", [9; 16], 0);
    bench.put(1.0, elsewhere, Some(bytes.clone()));
    assert_eq!(bench.refused(2.0, Retry::new(elsewhere, answers(1), at(600.0))), Refusal::Unreadable);

    // The digest stands at bytes 2 to 34: relabelled for other answers.
    let mut relabelled = bytes.clone();
    relabelled[2..34].copy_from_slice(answers(2).as_bytes());
    bench.put(1.0, key(), Some(relabelled));
    assert_eq!(bench.refused(2.0, Retry::new(key(), answers(2), at(600.0))), Refusal::Unreadable);

    let mut changed = bytes;
    *changed.last_mut().unwrap() ^= 1;
    bench.put(1.0, key(), Some(changed));
    assert_eq!(bench.refused(2.0, retry()), Refusal::Unreadable);
    assert_eq!(Refusal::Unreadable.to_error().code, ErrorCode::INTERNAL_ERROR);
}

/// B3: the bound on what is kept is inclusive; beyond it the state stays used and the reply is gone.
#[test]
fn b3_a_reply_over_the_bound_is_sent_but_not_kept() {
    let bound = Policy::default().reply_bytes;
    assert_eq!(bound, 256 * 1024);
    for (bytes, kept) in [(bound, true), (bound + 1, false)] {
        let member = format!("\"{}\"", "x".repeat(bytes - 2));
        let mut bench = Bench::new(Policy::default());
        let run = bench.run(0.0);
        bench.finish(1.0, run, Outcome::Reply(ReplyKind::Complete, member.as_bytes()));
        if kept {
            assert_eq!(bench.replayed(2.0, retry()).member(), member.as_bytes());
        } else {
            assert_eq!(bench.refused(2.0, retry()), Refusal::NotKept);
            assert_eq!(Refusal::NotKept.to_error().code, ErrorCode::INTERNAL_ERROR);
        }
    }
}

/// B5: a claim that is cancelled gives back what it took, for no handler ran, under both policies; with a command
/// out it does so as soon as it knows.
#[test]
fn b5_a_cancelled_claim_gives_the_state_back() {
    for once in [Once::AtLeastOnce, Once::AtMostOnce] {
        for (lose_reply, report_first) in [(false, false), (false, true), (true, false), (true, true)] {
            let mut bench = Bench::new(policy(|policy| policy.once = once));
            let mut claim = bench.claim(retry());
            let Action::Store(command) = claim.poll(at(0.0)) else { panic!() };
            let mut event = bench.apply(0.0, &command);
            if lose_reply {
                event = StoreEvent::Unavailable;
            }
            if report_first {
                claim.handle_store(at(0.0), event, &TestVault);
                claim.handle_cancel();
            } else {
                claim.handle_cancel();
                claim.handle_store(at(0.0), event, &TestVault);
            }
            assert!(matches!(bench.drive(0.0, &mut claim), Action::Refuse(Refusal::Cancelled)));
            // Cancelled with its only command unanswered it has nothing left to ask: the lease runs out.
            assert_eq!(bench.entry(0.0).is_none(), !lose_reply || report_first);
        }
    }
}

/// B7: with the store down a claim is refused after three tries (the default), or runs without the ledger.
#[test]
fn b7_store_down_at_the_claim() {
    let mut bench = Bench::new(Policy::default());
    let mut claim = bench.claim(retry());
    let (asked, action) = bench.drive_in_the_dark(0.0, &mut claim);
    assert!(matches!(action, Action::Refuse(Refusal::StoreDown)));
    assert_eq!(asked, 3);
    assert_eq!(Refusal::StoreDown.to_error().code, ErrorCode::INTERNAL_ERROR);

    let mut bench = Bench::new(policy(|policy| policy.when_down = WhenDown::FailOpen));
    let mut claim = bench.claim(retry());
    let (_, Action::Run(mut run)) = bench.drive_in_the_dark(0.0, &mut claim) else { panic!() };
    assert!(!run.is_covered());
    assert!(matches!(run.poll(at(1.0)), RunAction::Idle));
    run.begin_commit();
    assert!(matches!(run.poll(at(1.0)), RunAction::Commit));
    run.finish(COMPLETE, &TestVault);
    assert!(matches!(run.poll(at(1.0)), RunAction::End(End::Own)));
    assert!(matches!(run.poll(at(1.0)), RunAction::Idle));
}

/// B7: even an open policy runs no second copy beside one that it has seen, nor after the state has expired.
#[test]
fn b7_fail_open_is_not_blind() {
    let open = policy(|policy| policy.when_down = WhenDown::FailOpen);
    let mut bench = Bench::new(open);
    let _run = bench.run(0.0);
    let mut second = bench.claim(retry());
    assert!(matches!(bench.drive(0.0, &mut second), Action::Wait(_)));
    assert!(matches!(bench.drive_in_the_dark(0.0, &mut second).1, Action::Refuse(Refusal::Busy)));

    let mut bench = Bench::new(open);
    let mut claim = bench.claim(retry());
    assert!(matches!(bench.drive_in_the_dark(599.9, &mut claim).1, Action::Refuse(Refusal::Expired)));
}

/// B7: a full store refuses claims like one that is down, and never drops what it has.
#[test]
fn b7_a_full_store_counts_as_down() {
    let mut limits = MemoryLimits::default();
    limits.entries = 1;
    let mut bench = Bench::new(Policy::default());
    bench.store = Memory::new(limits);
    let run = bench.run(0.0);
    let other = Retry::new(Key::new("billing", [2; 16], 0), answers(1), at(600.0));
    assert_eq!(bench.refused(1.0, other.clone()), Refusal::StoreDown);
    bench.finish(2.0, run, COMPLETE);
    assert_eq!(bench.replayed(3.0, retry()).member(), RESULT);
    assert_eq!(bench.refused(4.0, other), Refusal::StoreDown);
}

/// A command that was applied while its reply was lost is recognised by the claim's own nonce, without a second
/// entry (B7).
#[test]
fn b7_an_applied_claim_whose_reply_was_lost_is_ours() {
    let mut bench = Bench::new(Policy::default());
    let mut claim = bench.claim(retry());
    let Action::Store(command) = claim.poll(at(0.0)) else { panic!() };
    bench.apply(0.0, &command);
    claim.handle_store(at(0.0), StoreEvent::Unavailable, &TestVault);
    let Action::Wait(until) = claim.poll(at(0.0)) else { panic!() };
    assert_eq!(until.saturating_since(at(0.0)), Duration::from_millis(50));
    assert!(matches!(bench.drive(0.1, &mut claim), Action::Run(_)));
    assert_eq!(bench.commands, 2);

    // Seen only after its lease: it is asked for again before anybody runs.
    let mut bench = Bench::new(Policy::default());
    let mut claim = bench.claim(retry());
    let Action::Store(command) = claim.poll(at(0.0)) else { panic!() };
    let event = bench.apply(0.0, &command);
    claim.handle_store(at(31.0), event, &TestVault);
    assert!(matches!(bench.drive(31.0, &mut claim), Action::Run(_)));
    let Some(Entry::Held(held)) = bench.entry(31.0) else { panic!() };
    assert_eq!(held.lease_until, at(61.0));
}

/// B1, B6: a claim whose grant is picked up only after its lease asks again, and does not run beside another.
#[test]
fn b6_a_grant_that_is_picked_up_late_is_asked_for_again() {
    let mut bench = Bench::new(Policy::default());
    let mut claim = bench.claim(retry());
    let Action::Store(command) = claim.poll(at(0.0)) else { panic!() };
    let event = bench.apply(0.0, &command);
    claim.handle_store(at(0.0), event, &TestVault);
    // Nobody polls for a while; another copy takes over.
    let _second = bench.run(35.0);
    assert!(matches!(bench.drive(36.0, &mut claim), Action::Wait(_)), "it waits like any other copy");
}

/// B1, B5: what may have been taken is looked for and given back when time has run out meanwhile.
#[test]
fn b5_a_claim_that_runs_out_of_time_gives_the_state_back() {
    let mut bounded = retry();
    bounded.deadline = Some(at(40.0));

    // The answer was lost, and the deadline passes before the next try.
    let mut bench = Bench::new(policy(|policy| policy.once = Once::AtMostOnce));
    let mut claim = bench.claim(bounded.clone());
    let Action::Store(command) = claim.poll(at(39.9)) else { panic!() };
    bench.apply(39.9, &command);
    claim.handle_store(at(39.9), StoreEvent::Unavailable, &TestVault);
    assert!(matches!(bench.drive(40.0, &mut claim), Action::Refuse(Refusal::Busy)));
    assert_eq!(bench.entry(40.0), None);

    // The lease ran out before the answer came, and the deadline passes before it is renewed.
    let mut bench = Bench::new(policy(|policy| policy.once = Once::AtMostOnce));
    let mut claim = bench.claim(bounded);
    let Action::Store(command) = claim.poll(at(0.0)) else { panic!() };
    let event = bench.apply(0.0, &command);
    claim.handle_store(at(39.9), event, &TestVault);
    assert!(matches!(bench.drive(40.0, &mut claim), Action::Refuse(Refusal::Busy)));
    assert_eq!(bench.entry(40.0), None);
}

/// A store that breaks its promises ends a claim too: it may not loop (guarantee: no unbounded time).
#[test]
fn a_store_that_talks_nonsense_ends_in_a_refusal() {
    let mut bench = Bench::new(Policy::default());
    let _run = bench.run(0.0);
    let held = bench.bytes(0.0);
    for event in [
        StoreEvent::Current(None),
        StoreEvent::Current(Some(vec![])),
        StoreEvent::Current(Some(b"GARBAGE".to_vec())),
        StoreEvent::Current(held),
        StoreEvent::Full,
    ] {
        let mut claim = bench.claim(retry());
        let mut now = at(0.0);
        let mut steps = 0;
        let end = loop {
            steps += 1;
            assert!(steps < 500, "{event:?} goes on for ever");
            match claim.poll(now) {
                Action::Store(_) => claim.handle_store(now, event.clone(), &TestVault),
                Action::Wait(until) => now = until,
                Action::Refuse(refusal) => break refusal,
                other => panic!("{other:?}"),
            }
        };
        // Reports that nobody asked for change nothing.
        claim.handle_store(now, StoreEvent::Applied, &TestVault);
        claim.handle_change();
        assert!(matches!(claim.poll(now), Action::Idle));
        assert!(matches!(end, Refusal::Busy | Refusal::Unreadable | Refusal::StoreDown));
    }
}

/// The same for one that keeps showing the claim itself, with the lease of long ago or one that ends just now.
#[test]
fn a_store_that_shows_an_old_lease_ends_in_a_refusal() {
    for seconds in [31.0, 30.0] {
        let mut bench = Bench::new(Policy::default());
        let mut claim = bench.claim(retry());
        let Action::Store(command) = claim.poll(at(0.0)) else { panic!() };
        let Operation::CompareAndSet { new, .. } = command.operation else { panic!() };
        let refused = (0..100).any(|_| {
            claim.handle_store(at(seconds), StoreEvent::Current(new.clone()), &TestVault);
            match claim.poll(at(seconds)) {
                Action::Store(_) => false,
                Action::Refuse(Refusal::Busy) => true,
                other => panic!("{other:?}"),
            }
        });
        assert!(refused, "goes on for ever after {seconds} s");
    }
}

/// No digest, reply or answer shows in `Debug` (guarantee: no secret, state or answer in a log).
#[test]
fn debug_shows_no_content() {
    let mut bench = Bench::new(Policy::default());
    let mut claim = bench.claim(retry());
    let Action::Store(command) = claim.poll(at(0.0)) else { panic!() };
    let event = bench.apply(0.0, &command);
    claim.handle_store(at(0.0), event, &TestVault);
    let mut shown = format!("{claim:?} {command:?} {:?}", answers(1));
    let Action::Run(mut run) = claim.poll(at(0.0)) else { panic!() };
    shown += &format!("{run:?} {COMPLETE:?} {:?}", bench.entry(0.0));
    run.finish(COMPLETE, &TestVault);
    assert!(matches!(bench.drive_run(0.0, &mut run), RunAction::End(End::Own)));
    shown += &format!("{:?} {:?} {:?}", bench.entry(0.0), bench.replayed(0.0, retry()), bench.store);
    for secret in ["content", "resultType", "[1, 1", "0101", "123, 34"] {
        // The exchange id of the key is made of ones too, and may be shown.
        let shown = shown.replace("01010101010101010101010101010101", "");
        assert!(!shown.contains(secret), "{secret} in {shown}");
    }
}
