//! Which requests claim a state, and what their claims meet: B1…B5, B7.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};

use mrtr_core::{
    handler::{Reception, RpcError, RunEvent, ToolResult},
    ledger::Policy,
    seal::Principal,
    server::RoundEnv,
    wire::Action,
};
use serde_json::{Value, json};

use super::{Bench, REFUSED, error, ledgered, number, same, state, text};

#[test]
fn a_retry_whose_reply_was_lost_gets_it_under_its_new_id_b3() {
    let (mut bench, counts) = Bench::committing(Policy::default());
    let state = bench.state();
    let (one, two) = (bench.retry(&state, 3), bench.retry(&state, 3));
    let first = bench.send(&one);
    assert_eq!(text(&first), "did 3");
    // Just before the state expires.
    bench.pass(Duration::from_secs(599));
    let second = bench.send(&two);
    assert!(same(&first, &second), "{first} {second}");
    assert_eq!(counts.get(), (1, 1, 1));
}

#[test]
fn only_what_was_asked_counts_as_an_answer_b2() {
    let (mut bench, counts) = Bench::committing(Policy::default());
    let state = bench.state();
    let one = bench.retry(&state, 3);
    let first = bench.send(&one);
    // Other answers, and none, are refused with the one sentence.
    let others = bench.retry(&state, 4);
    let none = bench.retry_with(&state, json!({}));
    assert_eq!(error(&bench.send(&others)), REFUSED);
    assert_eq!(error(&bench.send(&none)), REFUSED);
    // What was not asked does not count, nor how a number is written.
    let answers = json!({"other": {"x": 1}, "n": {"content": {"n": 3.0}, "action": "accept"}});
    let more = bench.retry_with(&state, answers);
    assert!(same(&first, &bench.send(&more)));
    assert_eq!(counts.get(), (1, 1, 1));
}

#[test]
fn an_interim_reply_and_a_handlers_error_use_a_state_up_b5() {
    let counts = Arc::new(AtomicUsize::new(0));
    let seen = counts.clone();
    let mut bench = Bench::new(ledgered(Policy::default()), move |ctx| {
        let seen = seen.clone();
        async move {
            let n = number(&ctx, "n").await?;
            seen.fetch_add(1, SeqCst);
            let m = number(&ctx, "m").await?;
            Err(RpcError::invalid_params(format!("{n} and {m} do not go together")))
        }
    });
    let first = bench.state();
    let (one, two) = (bench.retry(&first, 1), bench.retry(&first, 1));
    let (asked, again) = (bench.send(&one), bench.send(&two));
    assert!(same(&asked, &again), "one state for both copies: {asked} {again}");
    assert_eq!(counts.load(SeqCst), 1);
    let second = state(&asked);
    let answers = json!({"m": {"action": "accept", "content": {"n": 2}}});
    let (one, two) = (bench.retry_with(&second, answers.clone()), bench.retry_with(&second, answers));
    let (failed, again) = (bench.send(&one), bench.send(&two));
    assert_eq!(error(&failed), (-32602, "1 and 2 do not go together"));
    assert!(same(&failed, &again));
    assert_eq!(counts.load(SeqCst), 2);
}

#[test]
fn no_handler_is_called_before_its_claim_is_granted_b1() {
    let calls = Arc::new(AtomicUsize::new(0));
    let seen = calls.clone();
    let mut bench = Bench::new(ledgered(Policy::default()), move |ctx| {
        // Counts the call itself, not the first poll.
        seen.fetch_add(1, SeqCst);
        async move { number(&ctx, "n").await.map(|n| ToolResult::text(n.to_string()).into()) }
    });
    let state = bench.state();
    assert_eq!(calls.load(SeqCst), 1);
    let message = bench.retry(&state, 1);
    let mut run = bench.attempt(&message);
    assert_eq!(calls.load(SeqCst), 1);
    let mut out = Vec::new();
    let Some(RunEvent::Store(command)) = bench.poll(&mut run, &mut out) else { panic!("no command") };
    assert!(bench.poll(&mut run, &mut out).is_none(), "it waits for the store");
    assert_eq!(calls.load(SeqCst), 1);
    run.handle_store(bench.now, bench.store.apply(bench.now, &command));
    assert_eq!(text(&bench.drive(&mut run).unwrap()), "1");
    assert_eq!(calls.load(SeqCst), 2);
}

#[test]
fn what_is_refused_earlier_consumes_nothing_b1_a5() {
    let (mut bench, counts) = Bench::committing(Policy::default());
    let state = bench.state();
    let broken = bench.retry_with(&state, json!({"n": {"action": "perhaps"}}));
    let env = RoundEnv::new(bench.now, bench.entropy(), Principal::Authenticated(b"alice"));
    assert!(matches!(bench.service.receive(&broken, env), Reception::Reply { .. }));
    assert!(bench.store.is_empty());
    let good = bench.retry(&state, 1);
    assert_eq!(text(&bench.send(&good)), "did 1");
    assert_eq!(counts.get(), (1, 1, 1));
}

#[test]
fn a_second_copy_waits_for_the_first_ones_reply_b4() {
    let (mut bench, counts) = Bench::committing(Policy::default());
    let state = bench.state();
    counts.open.store(false, SeqCst);
    let messages: Vec<_> = (0..6).map(|_| bench.retry(&state, 3)).collect();
    let mut runs: Vec<_> = messages.iter().map(|message| bench.attempt(message)).collect();
    let mut early = 0;
    for run in &mut runs {
        if let Some(busy) = bench.drive(run) {
            // The first runs, four wait: the sixth is told to come again.
            assert_eq!((error(&busy).0, &busy["error"]["data"]["retry"]), (-32603, &json!(true)));
            early += 1;
        }
    }
    assert_eq!((early, counts.get()), (1, (1, 0, 0)));
    let other = bench.retry(&state, 4);
    assert_eq!(error(&bench.send(&other)), REFUSED);
    counts.open.store(true, SeqCst);
    let mut runs = runs.into_iter().take(5);
    let first = bench.finish(&mut runs.next().unwrap());
    for mut run in runs {
        bench.now = bench.now.max(run.wake_at().expect("it says when it looks again"));
        assert!(same(&first, &bench.drive(&mut run).expect("the entry is done")));
    }
    assert_eq!(counts.get(), (1, 1, 1));
}

#[test]
fn a_handler_that_takes_long_keeps_its_claim_b6() {
    let (mut bench, counts) = Bench::committing(Policy::default());
    let state = bench.state();
    counts.open.store(false, SeqCst);
    let message = bench.retry(&state, 3);
    let mut run = bench.attempt(&message);
    let begin = bench.now;
    while bench.now.saturating_since(begin) < Duration::from_secs(300) {
        assert!(bench.drive(&mut run).is_none());
        bench.now = run.wake_at().expect("a renewal");
    }
    let other = bench.retry(&state, 3);
    let mut other = bench.attempt(&other);
    assert!(bench.drive(&mut other).is_none(), "five minutes later the claim still holds");
    counts.open.store(true, SeqCst);
    assert_eq!(text(&bench.finish(&mut run)), "did 3");
    assert_eq!(counts.get(), (1, 1, 1));
}

#[test]
fn first_requests_are_not_covered_and_bring_no_answers_b7_a7() {
    let (mut bench, counts) = Bench::committing(Policy::default());
    let early = json!({"inputResponses": {"n": {"action": "accept", "content": {"n": 1}}}});
    let message = bench.request(early);
    let asked = bench.send(&message);
    assert!(asked["result"]["inputRequests"]["n"].is_object(), "{asked}");
    assert!(bench.store.is_empty());
    assert_eq!(counts.get(), (0, 0, 0));
}

#[test]
fn rounds_that_come_again_after_a_divergence_are_states_of_their_own_a8() {
    let turn = Arc::new(AtomicUsize::new(0));
    let seen = turn.clone();
    let mut bench = Bench::new(ledgered(Policy::default()), move |ctx| {
        let seen = seen.clone();
        async move {
            // What it asks first changes from run to run, as no handler should.
            let key = ["a", "a", "b"][seen.fetch_add(1, SeqCst).min(2)];
            let n = number(&ctx, key).await?;
            let sure = ctx.confirm("sure", format!("{n}?")).await?;
            assert_eq!(sure, Action::Accept);
            Ok(ToolResult::text(format!("{key} {n}")).into())
        }
    });
    let answer = |key: &str, n: u64| json!({key: {"action": "accept", "content": {"n": n}}});
    let first = bench.state();
    let message = bench.retry_with(&first, answer("a", 1));
    let second = state(&bench.send(&message));
    let sure = json!({"sure": {"action": "accept", "content": {"confirmed": true}}});
    // Round 1 is asked anew under another key, and its rounds have the numbers of those that were dropped.
    let message = bench.retry_with(&second, sure.clone());
    let third = bench.send(&message);
    assert!(third["result"]["inputRequests"]["b"].is_object(), "{third}");
    let message = bench.retry_with(&state(&third), answer("b", 2));
    let fourth = bench.send(&message);
    assert!(fourth["result"]["inputRequests"]["sure"].is_object(), "{fourth}");
    let message = bench.retry_with(&state(&fourth), fourth_answer(&fourth));
    assert_eq!(text(&bench.send(&message)), "b 2");
}

/// Accepts what `confirm` asks, whatever its form.
fn fourth_answer(asked: &Value) -> Value {
    let schema = &asked["result"]["inputRequests"]["sure"]["params"]["requestedSchema"]["properties"];
    let content: serde_json::Map<String, Value> =
        schema.as_object().into_iter().flatten().map(|(name, _)| (name.clone(), Value::Bool(true))).collect();
    json!({"sure": {"action": "accept", "content": content}})
}

#[test]
fn each_round_without_a_question_is_a_state_of_its_own_a10() {
    let mut bench = Bench::new(ledgered(Policy::default()), |ctx| async move {
        for _ in 0..3 {
            ctx.checkpoint().await?;
        }
        Ok(ToolResult::text("rested").into())
    });
    let mut token = bench.state();
    for _ in 0..2 {
        let message = bench.retry_with(&token, json!({}));
        let reply = bench.send(&message);
        let again = bench.retry_with(&token, json!({}));
        assert!(same(&reply, &bench.send(&again)));
        token = state(&reply);
    }
    let message = bench.retry_with(&token, json!({}));
    assert_eq!(text(&bench.send(&message)), "rested");
}

/// R-075, B2, B3: soft expiry asks a question again, and does not free a state that was used: the same retry gets the
/// reply that it was given, another one nothing, also long after the state has expired. One that was not used is used by
/// being asked again: once.
#[test]
fn a_state_that_was_used_stays_used_when_it_expires_r075() {
    let mut config = ledgered(Policy::default());
    config.sealer = config.sealer.soft_expiry();
    let (mut bench, counts) = Bench::committing_with(config);
    let used = bench.state();
    let retry = bench.retry(&used, 1);
    let done = bench.send(&retry);
    assert_eq!(text(&done), "did 1");
    let unused = bench.state();
    for _ in 0..4 {
        // Twelve minutes: beyond the state's ten and the minute that an entry is kept longer.
        bench.pass(Duration::from_secs(720));
        let same_answers = bench.retry(&used, 1);
        assert!(same(&bench.send(&same_answers), &done));
        for answers in [json!({}), json!({"n": 5}), json!({"n": {"action": "accept", "content": {"n": 2}}})] {
            let other = bench.retry_with(&used, answers);
            assert_eq!(error(&bench.send(&other)), REFUSED);
        }
    }
    assert_eq!(counts.get(), (1, 1, 1));

    let asked = bench.retry(&unused, 3);
    let asked = bench.send(&asked);
    let again = bench.retry(&unused, 3);
    assert!(same(&bench.send(&again), &asked), "the same question, not another one");
    let other = bench.retry(&unused, 4);
    assert_eq!(error(&bench.send(&other)), REFUSED);
    let answered = bench.retry(&state(&asked), 5);
    assert_eq!(text(&bench.send(&answered)), "did 5");
    assert_eq!(counts.get(), (2, 2, 2));
}

/// R-075, B2: where soft expiry is turned on, entries of replicas without it have to be kept as long as states are opened
/// then: a used one stays used.
#[test]
fn soft_expiry_comes_after_long_retention_r075() {
    let mut policy = Policy::default();
    policy.retention = mrtr_core::Limits::default().exchange;
    let (mut hard, _) = Bench::committing_with(ledgered(policy));
    let used = hard.state();
    let retry = hard.retry(&used, 1);
    let done = hard.send(&retry);
    assert_eq!(text(&done), "did 1");
    let mut config = ledgered(policy);
    config.sealer = config.sealer.soft_expiry();
    let (mut soft, counts) = Bench::committing_with(config);
    (soft.store, soft.now, soft.draws, soft.id) = (hard.store, hard.now, 1_000, 50);
    for _ in 0..4 {
        soft.pass(Duration::from_secs(720));
        let again = soft.retry(&used, 1);
        assert!(same(&soft.send(&again), &done));
        let other = soft.retry(&used, 2);
        assert_eq!(error(&soft.send(&other)), REFUSED);
    }
    assert_eq!(counts.get(), (0, 0, 0));
}
