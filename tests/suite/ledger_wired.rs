//! The ledger as a server's retries meet it: through `Service`, `Run` and a store in memory (B1…B7).

use std::{
    future::poll_fn,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    },
    task::{Context, Poll, Waker},
    time::Duration,
};

use mrtr_core::{
    Entropy, Timestamp,
    form::{Elicited, Field, Form},
    handler::{Ctx, Output, Reception, RpcError, Run, RunEvent, Service, ToolResult},
    ledger::{Command, Memory, Once, Policy, StoreEvent, WhenDown},
    seal::Principal,
    server::{Config, RoundEnv},
    wire::{Action, Sampling},
};
use mrtr_tests::world::{START, config, lawful, service};
use serde_json::{Value, json};

const REFUSED: (i64, &str) = (-32602, "Invalid or expired requestState");

/// How often things happened.
#[derive(Clone, Default)]
struct Counts {
    handler: Arc<AtomicUsize>,
    first: Arc<AtomicUsize>,
    second: Arc<AtomicUsize>,
    open: Arc<AtomicBool>,
}

impl Counts {
    fn get(&self) -> (usize, usize, usize) {
        (self.handler.load(SeqCst), self.first.load(SeqCst), self.second.load(SeqCst))
    }
}

/// A service, its store and a clock that only the test moves.
struct Bench {
    service: Service,
    store: Memory,
    now: Timestamp,
    capabilities: Value,
    draws: u64,
    id: u64,
}

fn ledgered(policy: Policy) -> Config {
    let mut config = config();
    config.ledger = Some(policy);
    config
}

impl Bench {
    fn new<F, R>(config: Config, handler: F) -> Self
    where
        F: Fn(Ctx) -> R + Send + Sync + Clone + 'static,
        R: Future<Output = Result<Output, RpcError>> + Send + 'static,
    {
        Self {
            service: service(config, handler),
            store: Memory::default(),
            now: Timestamp::from_unix_millis(START),
            capabilities: json!({"elicitation": {"form": {}}, "sampling": {}}),
            draws: 0,
            id: 0,
        }
    }

    /// Asks a form, waits for the gate, leaves two steps to be done at the end.
    fn committing(policy: Policy) -> (Self, Counts) {
        let counts = Counts::default();
        let seen = counts.clone();
        let bench = Self::new(ledgered(policy), move |ctx| {
            let seen = seen.clone();
            async move {
                let n = number(&ctx, "n").await?;
                seen.handler.fetch_add(1, SeqCst);
                gate(&seen.open).await;
                let (first, second) = (seen.first.clone(), seen.second.clone());
                ctx.on_commit(move || {
                    first.fetch_add(1, SeqCst);
                    Ok(())
                });
                let mut waited = false;
                ctx.on_commit_async(move || async move {
                    // A step that takes one poll more than it has to.
                    poll_fn(|cx| {
                        cx.waker().wake_by_ref();
                        if std::mem::replace(&mut waited, true) { Poll::Ready(()) } else { Poll::Pending }
                    })
                    .await;
                    second.fetch_add(1, SeqCst);
                    Ok(())
                });
                Ok(ToolResult::text(format!("did {n}")).into())
            }
        });
        counts.open.store(true, SeqCst);
        (bench, counts)
    }

    fn pass(&mut self, time: Duration) {
        self.now = self.now.saturating_add(time);
    }

    fn entropy(&mut self) -> Entropy {
        self.draws += 1;
        let mut bytes = [9; 32];
        bytes[..8].copy_from_slice(&self.draws.to_be_bytes());
        Entropy::new(bytes)
    }

    /// A call of the tool under a new id.
    fn request(&mut self, params: Value) -> Vec<u8> {
        self.id += 1;
        let mut all = json!({"name": "t", "arguments": {}, "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": self.capabilities,
        }});
        for (name, value) in params.as_object().unwrap() {
            all[name] = value.clone();
        }
        json!({"jsonrpc": "2.0", "id": self.id, "method": "tools/call", "params": all}).to_string().into()
    }

    fn retry(&mut self, state: &str, n: u64) -> Vec<u8> {
        self.retry_with(state, json!({"n": {"action": "accept", "content": {"n": n}}}))
    }

    fn retry_with(&mut self, state: &str, answers: Value) -> Vec<u8> {
        self.request(json!({"inputResponses": answers, "requestState": state}))
    }

    /// An attempt, not driven yet.
    fn attempt<'a>(&mut self, message: &'a [u8]) -> Run<'a> {
        let env = RoundEnv::new(self.now, self.entropy(), Principal::Authenticated(b"alice"));
        match self.service.receive(message, env) {
            Reception::Run(run) => run,
            other => panic!("no attempt: {other:?}"),
        }
    }

    /// Receives a message and runs what it starts, without a runtime.
    fn send(&mut self, message: &[u8]) -> Value {
        let now = self.now;
        let run = self.attempt(message);
        let mut out = Vec::new();
        let _ = run.run_with(now, &mut out, &mut |command| self.store.apply(now, &command));
        lawful(&out)
    }

    /// The state of a first request's reply.
    fn state(&mut self) -> String {
        let first = self.request(json!({}));
        state(&self.send(&first))
    }

    /// Polls once; carries out no command.
    fn poll<'a>(&self, run: &mut Run<'a>, out: &mut Vec<u8>) -> Option<RunEvent<'a>> {
        match run.poll_run(&mut Context::from_waker(Waker::noop()), self.now, out) {
            Poll::Ready(event) => Some(event),
            Poll::Pending => None,
        }
    }

    /// Polls and serves the store until the run waits for something else or has ended.
    fn drive(&mut self, run: &mut Run<'_>) -> Option<Value> {
        let mut out = Vec::new();
        loop {
            match self.poll(run, &mut out) {
                Some(RunEvent::Store(command)) => {
                    let event = self.store.apply(self.now, &command);
                    run.handle_store(self.now, event);
                }
                Some(RunEvent::Finished(_)) => return Some(lawful(&out)),
                Some(_) => out.clear(),
                None => return None,
            }
        }
    }

    /// Drives to the end, through what wakes itself.
    fn finish(&mut self, run: &mut Run<'_>) -> Value {
        (0..9).find_map(|_| self.drive(run)).expect("it waits for something")
    }
}

fn state(reply: &Value) -> String {
    reply["result"]["requestState"].as_str().unwrap_or_else(|| panic!("no state: {reply}")).to_owned()
}

fn error(reply: &Value) -> (i64, &str) {
    (reply["error"]["code"].as_i64().unwrap(), reply["error"]["message"].as_str().unwrap())
}

fn text(reply: &Value) -> &str {
    reply["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("no text: {reply}"))
}

/// The same reply but for its id (B3).
fn same(one: &Value, other: &Value) -> bool {
    one["id"] != other["id"] && one["result"] == other["result"] && one["error"] == other["error"]
}

fn form() -> Form {
    Form::builder("n?").field(Field::integer("n").required()).build().unwrap()
}

async fn number(ctx: &Ctx, key: &str) -> Result<u64, RpcError> {
    match ctx.elicit::<Value>(key, &form()).await? {
        Elicited::Accept(content) => Ok(content["n"].as_u64().unwrap()),
        Elicited::Decline | Elicited::Cancel => Err(RpcError::invalid_params("no number")),
    }
}

/// Pending until it is opened; nobody wakes it.
async fn gate(open: &AtomicBool) {
    poll_fn(|_| if open.load(SeqCst) { Poll::Ready(()) } else { Poll::Pending }).await;
}

fn is_lost(reply: &Value) -> bool {
    reply["error"]["message"].as_str().is_some_and(|message| message.starts_with("Outcome unknown"))
}

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

/// What becomes of the first copy.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fate {
    /// Its process dies before the command reaches the store.
    Dies,
    /// Its process dies after the store has carried the command out.
    DiesAfter,
    /// Its connection is closed, and it is polled to its end.
    Cancelled,
}

/// Drives the first copy up to its n-th event, lets it meet its fate, and returns what a second copy gets, how
/// often what happened, and whether the first copy ended before its turn came.
fn crash(policy: Policy, at: usize, fate: Fate) -> (Value, (usize, usize, usize), bool) {
    let (mut bench, counts) = Bench::committing(policy);
    let state = bench.state();
    let message = bench.retry(&state, 5);
    let mut run = bench.attempt(&message);
    let (mut out, mut ended) = (Vec::new(), false);
    counts.open.store(false, SeqCst);
    for step in 0.. {
        let event = bench.poll(&mut run, &mut out);
        let now = step == at;
        match event {
            Some(RunEvent::Store(command)) => {
                if !now || fate != Fate::Dies {
                    let said = bench.store.apply(bench.now, &command);
                    run.handle_store(bench.now, said);
                }
            }
            Some(RunEvent::Finished(_)) => ended = true,
            // The handler waits for the gate: it has been seen while it runs.
            None if !now => counts.open.store(true, SeqCst),
            Some(_) | None => {}
        }
        if now || ended {
            break;
        }
    }
    if fate == Fate::Cancelled && !ended {
        run.cancel();
        assert!(run.is_claimed());
        bench.finish(&mut run);
    } else {
        bench.pass(Duration::from_secs(36));
    }
    drop(run);
    counts.open.store(true, SeqCst);
    let again = bench.retry(&state, 5);
    let mut again = bench.attempt(&again);
    let reply = bench.finish(&mut again);
    (reply, counts.get(), ended)
}

#[test]
fn no_step_of_a_commit_runs_twice_wherever_a_copy_dies_b6() {
    for once in [Once::AtLeastOnce, Once::AtMostOnce] {
        let mut policy = Policy::default();
        policy.once = once;
        for fate in [Fate::Dies, Fate::DiesAfter, Fate::Cancelled] {
            let (mut lost, mut done) = (0, 0);
            for at in 0.. {
                assert!(at < 50, "the first copy never ends");
                let (reply, (handler, first, second), ended) = crash(policy, at, fate);
                let what = format!("{once:?} {fate:?} at {at}: {reply}");
                assert!(first <= 1 && second <= 1, "{what}");
                assert!(once == Once::AtLeastOnce || handler <= 1, "{what}");
                if is_lost(&reply) {
                    lost += 1;
                    assert!(!ended, "{what}");
                } else {
                    done += 1;
                    assert_eq!((text(&reply), first, second), ("did 5", 1, 1), "{what}");
                }
                if ended {
                    break;
                }
            }
            // Both ways happen where they can: cancelled before the commit under AtLeastOnce, nothing is lost.
            assert!(done > 0, "{once:?} {fate:?}");
            assert_eq!(lost == 0, (once, fate) == (Once::AtLeastOnce, Fate::Cancelled), "{once:?} {fate:?}");
        }
    }
}

#[test]
fn a_missing_capability_does_not_consume_b5_g13() {
    let mut bench = Bench::new(ledgered(Policy::default()), |ctx| async move {
        let n = number(&ctx, "n").await?;
        let said = ctx.sample("say", &Sampling::new(9).user("hi")).await?;
        let _ = said;
        Ok(ToolResult::text(n.to_string()).into())
    });
    let first = bench.state();
    bench.capabilities = json!({"elicitation": {"form": {}}});
    let without = bench.retry(&first, 1);
    assert_eq!(error(&bench.send(&without)).0, -32021);
    assert!(bench.store.is_empty());
    bench.capabilities = json!({"elicitation": {"form": {}}, "sampling": {}});
    // Free again: with other answers, too.
    let with = bench.retry(&first, 2);
    let asked = bench.send(&with);
    assert!(asked["result"]["inputRequests"]["say"].is_object(), "{asked}");
}

#[test]
fn a_limit_at_the_next_question_does_not_consume_b5() {
    let mut config = ledgered(Policy::default());
    config.limits.rounds = 1;
    let mut bench = Bench::new(config, |ctx| async move {
        let n = number(&ctx, "n").await?;
        Ok(ToolResult::text((n + number(&ctx, "m").await?).to_string()).into())
    });
    let first = bench.state();
    for n in [1, 2] {
        let message = bench.retry(&first, n);
        assert_eq!(error(&bench.send(&message)).0, -32603);
        assert!(bench.store.is_empty());
    }
}

#[test]
fn a_panic_frees_the_state_before_the_commit_and_loses_it_in_it_b5_b6() {
    let panics = Arc::new(Mutex::new(Some(false)));
    let seen = panics.clone();
    let mut bench = Bench::new(ledgered(Policy::default()), move |ctx| {
        let seen = seen.clone();
        async move {
            let n = number(&ctx, "n").await?;
            let when = seen.lock().unwrap().take();
            if when == Some(false) {
                panic!("in the handler");
            }
            ctx.on_commit(move || {
                assert!(when.is_none(), "in the commit");
                Ok(())
            });
            Ok(ToolResult::text(n.to_string()).into())
        }
    });
    let state = bench.state();
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let (one, two) = (bench.retry(&state, 1), bench.retry(&state, 2));
    let broke = bench.send(&one);
    assert_eq!(error(&broke), (-32603, "Internal error"));
    assert!(bench.store.is_empty());
    *panics.lock().unwrap() = Some(true);
    assert_eq!(error(&bench.send(&two)), (-32603, "Internal error"));
    std::panic::set_hook(hook);
    let again = bench.retry(&state, 2);
    assert!(is_lost(&bench.send(&again)));
}

#[test]
fn without_a_store_the_policy_decides_b7() {
    for when_down in [WhenDown::FailClosed, WhenDown::FailOpen] {
        let mut policy = Policy::default();
        policy.when_down = when_down;
        let (mut bench, counts) = Bench::committing(policy);
        let state = bench.state();
        for _ in 0..2 {
            let message = bench.retry(&state, 7);
            let run = bench.attempt(&message);
            let mut out = Vec::new();
            let _ = run.run(bench.now, &mut out);
            let reply = lawful(&out);
            match when_down {
                WhenDown::FailClosed => assert_eq!(error(&reply).0, -32603),
                WhenDown::FailOpen => assert_eq!(text(&reply), "did 7"),
            }
        }
        let runs = if when_down == WhenDown::FailOpen { 2 } else { 0 };
        assert_eq!(counts.get(), (runs, runs, runs));
    }
}

#[test]
fn a_store_that_goes_down_at_the_end_does_not_hold_the_reply_back_b7() {
    let (mut bench, counts) = Bench::committing(Policy::default());
    let state = bench.state();
    let message = bench.retry(&state, 7);
    let run = bench.attempt(&message);
    let (now, mut commands, mut out) = (bench.now, 0, Vec::new());
    let store = &mut bench.store;
    let _ = run.run_with(now, &mut out, &mut |command: Command| {
        commands += 1;
        // The claim and the commit are stored, the end is not.
        if commands <= 2 { store.apply(now, &command) } else { StoreEvent::Unavailable }
    });
    assert_eq!(text(&lawful(&out)), "did 7");
    bench.pass(Duration::from_secs(36));
    let again = bench.retry(&state, 7);
    assert!(is_lost(&bench.send(&again)), "nobody knows how far it came");
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
