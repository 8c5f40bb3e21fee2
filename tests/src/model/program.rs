//! A handler as a tree, and the tree as an async handler.

use std::sync::{
    Arc,
    atomic::{AtomicI64, Ordering},
};

use futures::{
    future::{self, BoxFuture, Either, FutureExt},
    stream::{FuturesUnordered, StreamExt},
};
use mrtr_core::{
    form::{Elicited, Field, Form},
    handler::{AskError, Ctx, RpcError},
    wire::Sampling,
};

use super::Random;

/// One question of a program.
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    pub key: String,
    pub kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// A form of one integer from 0 to 9; required.
    Form,
    /// The same, never answered without a state.
    Solicited,
    /// The model; the client may lack it.
    OptionalSampling,
    /// The roots; the client may lack them.
    OptionalRoots,
    /// The roots; a client that lacks them is refused.
    RequiredRoots,
}

/// A program: its value is a number that depends on every answer and on the order in which they came.
#[derive(Clone, Debug)]
pub enum Program {
    Ask(Question),
    Sequence(Vec<Program>),
    Join(Vec<Program>),
    /// A race of a question against a program; the loser stays alive and is awaited afterwards.
    Race(Question, Box<Program>),
    Unordered(Vec<Program>),
    /// Asks under one key until an answer is no multiple of three, at most four times.
    Loop(Question),
    /// A once-value, and after it a program.
    Once(String, Box<Program>),
}

/// Values of what is no number.
pub const DECLINED: i64 = 77;
pub const CANCELLED: i64 = 78;
pub const UNAVAILABLE: i64 = 7;
pub const INVALID: i64 = 13;
/// An error of a legacy client's own.
pub const REFUSED: i64 = 79;

pub fn sequence_step(total: i64, value: i64) -> i64 {
    (total * 31 + value).rem_euclid(1_000_003)
}

impl Program {
    /// A random program of at most this depth. Keys are paths in the tree, so no key is used twice at a time.
    pub fn random(random: &mut Random, depth: u32, path: &str) -> Self {
        let mut questions = 0;
        let mut question = |random: &mut Random| {
            questions += 1;
            let kind = match random.below(8) {
                0..=2 => Kind::Form,
                3 => Kind::Solicited,
                4 | 5 => Kind::OptionalSampling,
                6 => Kind::OptionalRoots,
                _ if random.chance(4) => Kind::RequiredRoots,
                _ => Kind::Form,
            };
            Question { key: format!("{path}q{questions}"), kind }
        };
        if depth == 0 {
            return Self::Ask(question(random));
        }
        let count = 1 + random.below(3);
        let children = |random: &mut Random| -> Vec<Self> {
            (0..count).map(|child| Self::random(random, depth - 1, &format!("{path}{child}."))).collect()
        };
        match random.below(7) {
            0 => Self::Sequence(children(random)),
            1 => Self::Join(children(random)),
            2 => Self::Unordered(children(random)),
            3 => {
                let raced = question(random);
                Self::Race(raced, Box::new(Self::random(random, depth - 1, &format!("{path}r."))))
            }
            4 => Self::Loop(Question { key: format!("{path}loop"), kind: Kind::Form }),
            5 => Self::Once(
                format!("{path}once"),
                Box::new(Self::random(random, depth - 1, &format!("{path}o."))),
            ),
            _ => Self::Ask(question(random)),
        }
    }
}

async fn ask(ctx: Ctx, question: Question) -> i64 {
    let missing = |error: AskError| match error {
        AskError::Unavailable => UNAVAILABLE,
        AskError::Invalid(_) => INVALID,
        AskError::Refused { .. } => REFUSED,
        other => panic!("{other}"),
    };
    match question.kind {
        Kind::Form | Kind::Solicited => {
            let form = Form::builder(question.key.as_str())
                .field(Field::integer("n").minimum(0).maximum(9).required())
                .build()
                .expect("a valid form");
            let ask = ctx.elicit::<std::collections::BTreeMap<String, i64>>(&question.key, &form);
            let ask = if question.kind == Kind::Solicited { ask.solicited() } else { ask };
            match ask.await {
                Ok(Elicited::Accept(content)) => content["n"],
                Ok(Elicited::Decline) => DECLINED,
                Ok(Elicited::Cancel) => CANCELLED,
                Err(error) => missing(error),
            }
        }
        Kind::OptionalSampling => {
            let sampled = ctx.sample(&question.key, &Sampling::new(5).user(&question.key)).optional().await;
            sampled.map_or_else(missing, |sampled| sampled.text().parse().expect("a number"))
        }
        Kind::OptionalRoots | Kind::RequiredRoots => {
            let roots = ctx.roots(&question.key);
            let roots = if question.kind == Kind::OptionalRoots { roots.optional() } else { roots };
            roots.await.map_or_else(missing, |roots| i64::try_from(roots.len()).expect("few"))
        }
    }
}

/// The program as an async handler. `made` counts the once-values that were really made.
pub fn run(ctx: Ctx, program: Program, made: Arc<AtomicI64>) -> BoxFuture<'static, i64> {
    async move {
        let start = |child: Program| run(ctx.clone(), child, made.clone());
        match program {
            Program::Ask(question) => ask(ctx, question).await,
            Program::Sequence(children) => {
                let mut total = 0;
                for child in children {
                    total = sequence_step(total, start(child).await);
                }
                total
            }
            Program::Join(children) => {
                let values = future::join_all(children.into_iter().map(start)).await;
                values.into_iter().fold(1, sequence_step)
            }
            Program::Unordered(children) => {
                let mut running: FuturesUnordered<_> = children.into_iter().map(start).collect();
                let mut total = 2;
                while let Some(value) = running.next().await {
                    total = sequence_step(total, value);
                }
                total
            }
            Program::Race(question, child) => {
                match future::select(Box::pin(ask(ctx.clone(), question)), start(*child)).await {
                    Either::Left((value, rest)) => sequence_step(value + 3, rest.await),
                    Either::Right((value, rest)) => sequence_step(value + 4, rest.await),
                }
            }
            Program::Loop(question) => {
                let mut turns = 0;
                loop {
                    turns += 1;
                    let value = ask(ctx.clone(), question.clone()).await;
                    if value % 3 != 0 || turns > 3 {
                        break value + turns;
                    }
                }
            }
            Program::Once(name, child) => {
                let value: Result<i64, RpcError> = ctx.once(&name, || made.fetch_add(1, Ordering::Relaxed));
                sequence_step(value.expect("a number"), start(*child).await)
            }
        }
    }
    .boxed()
}
