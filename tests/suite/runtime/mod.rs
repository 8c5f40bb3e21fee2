//! Handlers under a runtime (tokio, paused time): I/O beside asks, spawned tasks, races, holds.

mod beside_io;
mod holding;
mod logged;
mod racing;
mod rough;
mod scripted;
mod spawned;

use std::{pin::Pin, task::Poll};

use mrtr_core::{
    Timestamp,
    form::{Elicited, Field, Form},
    handler::{Ask, AskError, Ctx, Output, Reception, RpcError, Run, RunEvent},
    server::Config,
    tape::TapePolicy,
};
use mrtr_tests::world::{Reply, START, World, config, service};
use serde_json::{Value, json};
use tokio::time::{Instant, Sleep, sleep_until};

pub(crate) type Result<T> = std::result::Result<T, RpcError>;

/// A server whose clock is that of the runtime.
pub(crate) struct Room {
    pub(crate) world: World,
    clock: Clock,
}

/// The runtime's clock as the core wants it.
#[derive(Clone, Copy)]
pub(crate) struct Clock(Instant);

impl Clock {
    pub(crate) fn now(self) -> Timestamp {
        Timestamp::from_unix_millis(START).saturating_add(self.0.elapsed())
    }

    fn instant(self, at: Timestamp) -> Instant {
        self.0 + at.saturating_since(Timestamp::from_unix_millis(START))
    }
}

impl Room {
    pub(crate) fn new<F, R, O>(handler: F) -> Self
    where
        F: Fn(Ctx) -> R + Send + Sync + Clone + 'static,
        R: Future<Output = Result<O>> + Send + 'static,
        O: Into<Output> + 'static,
    {
        Self::of(config(), handler)
    }

    pub(crate) fn with<F, R, O>(policy: TapePolicy, handler: F) -> Self
    where
        F: Fn(Ctx) -> R + Send + Sync + Clone + 'static,
        R: Future<Output = Result<O>> + Send + 'static,
        O: Into<Output> + 'static,
    {
        let mut config = config();
        config.tape = policy;
        Self::of(config, handler)
    }

    pub(crate) fn of<F, R, O>(config: Config, handler: F) -> Self
    where
        F: Fn(Ctx) -> R + Send + Sync + Clone + 'static,
        R: Future<Output = Result<O>> + Send + 'static,
        O: Into<Output> + 'static,
    {
        Self { world: World::of(service(config, handler)), clock: Clock(Instant::now()) }
    }

    /// Sends a call of `t` and drives what it starts.
    pub(crate) async fn call(&mut self, params: Value) -> Reply {
        let request = self.world.tool_call(&params).to_string();
        self.world.now = self.clock.now();
        let clock = self.clock;
        match self.world.receive(request.as_bytes()) {
            Reception::Run(run) => drive(run, clock).await.0,
            Reception::Reply { bytes, .. } => parse(&bytes),
            other => panic!("no reply: {other:?}"),
        }
    }

    pub(crate) async fn retry(&mut self, last: &Reply, answers: Value) -> Reply {
        self.call(json!({"inputResponses": answers, "requestState": last.state()})).await
    }

    /// Lets `use_it` have the run of a call.
    pub(crate) async fn with_run<T>(
        &mut self,
        params: Value,
        use_it: impl AsyncFnOnce(Run<'_>, Clock) -> T,
    ) -> T {
        let request = self.world.tool_call(&params).to_string();
        self.world.now = self.clock.now();
        let clock = self.clock;
        match self.world.receive(request.as_bytes()) {
            Reception::Run(run) => use_it(run, clock).await,
            other => panic!("no run: {other:?}"),
        }
    }
}

fn parse(bytes: &[u8]) -> Reply {
    Reply(serde_json::from_slice(bytes).expect("a reply is JSON"))
}

/// What an adapter does with a run: polls it when it is woken and when it says so. The reply, and the notifications
/// before it.
pub(crate) async fn drive(mut run: Run<'_>, clock: Clock) -> (Reply, Vec<Value>) {
    let (mut out, mut notifications) = (Vec::new(), Vec::new());
    let mut timer: Option<Pin<Box<Sleep>>> = None;
    let reply = std::future::poll_fn(|cx| {
        loop {
            out.clear();
            match run.poll_run(cx, clock.now(), &mut out) {
                Poll::Ready(RunEvent::Notification) => {
                    notifications.push(serde_json::from_slice(&out).expect("a notification is JSON"));
                    continue;
                }
                Poll::Ready(_) => return Poll::Ready(parse(&out)),
                Poll::Pending => {}
            }
            let Some(at) = run.wake_at() else {
                timer = None;
                return Poll::Pending;
            };
            let sleep = timer.insert(Box::pin(sleep_until(clock.instant(at))));
            if sleep.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
        }
    })
    .await;
    (reply, notifications)
}

/// A form of one integer `n` from 0 to 9.
pub(crate) fn form(message: &str) -> Form {
    Form::builder(message)
        .field(Field::integer("n").minimum(0).maximum(9).required())
        .build()
        .expect("a valid form")
}

pub(crate) fn number(ctx: &Ctx, key: &str) -> Ask<Elicited<Value>> {
    ctx.elicit(key, &form(key))
}

pub(crate) fn shown(answer: std::result::Result<Elicited<Value>, AskError>) -> String {
    match answer {
        Ok(Elicited::Accept(content)) => content["n"].to_string(),
        Ok(Elicited::Decline) => "declined".into(),
        Ok(Elicited::Cancel) => "cancelled".into(),
        Err(error) => format!("{error:?}"),
    }
}

/// An accepted number.
pub(crate) fn n(number: i64) -> Value {
    mrtr_tests::world::accept(json!({"n": number}))
}
