//! The ledger as a server's retries meet it: through `Service`, `Run` and a store in memory (B1…B7).

mod claims;
mod faults;
mod races;
mod return_style;

use std::{
    future::poll_fn,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    },
    task::{Context, Poll, Waker},
    time::Duration,
};

use mrtr_core::{
    Entropy, Timestamp,
    form::{Elicited, Field, Form},
    handler::{Ctx, Output, Reception, RpcError, Run, RunEvent, Service, ToolResult},
    ledger::{Memory, Policy},
    seal::Principal,
    server::{Config, RoundEnv},
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
        Self::committing_with(ledgered(policy))
    }

    fn committing_with(config: Config) -> (Self, Counts) {
        let counts = Counts::default();
        let seen = counts.clone();
        let bench = Self::new(config, move |ctx| {
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
