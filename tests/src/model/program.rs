//! A handler as a tree, and the tree as an async handler.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicI64, AtomicU64, Ordering},
    },
};

use futures::{
    future::{self, BoxFuture, Either, FutureExt},
    stream::{FuturesUnordered, StreamExt},
};
use mrtr_core::{
    form::{Elicited, Field, Form},
    handler::{AskError, Ctx, RpcError},
    wire::{Action, Sampling},
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
    /// Yes or no, never answered without a state.
    Confirm,
    /// A form of which only what the handler makes of the answer is kept.
    Kept,
    /// A form whose message is another each time the world outside has moved on.
    Shaky,
    /// A url whose errand is done the n-th time it is looked at; the client may not know urls.
    Errand(u32),
}

impl Kind {
    /// Whether it is shown as a form.
    pub fn is_form(self) -> bool {
        match self {
            Self::Form | Self::Solicited | Self::Confirm | Self::Kept | Self::Shaky => true,
            Self::OptionalSampling | Self::OptionalRoots | Self::RequiredRoots | Self::Errand(_) => false,
        }
    }

    /// Whether the form has a field that an answer may get wrong.
    pub fn has_fields(self) -> bool {
        self.is_form() && self != Self::Confirm
    }

    /// Whether an answer without a state is never taken (A7).
    pub fn is_solicited(self) -> bool {
        matches!(self, Self::Solicited | Self::Confirm | Self::Errand(_))
    }

    /// What an accept, or a result, with this number comes to in the handler.
    pub fn value(self, number: i64) -> i64 {
        match self {
            Self::Confirm => CONFIRMED,
            Self::Errand(_) => DONE,
            Self::Kept => number + KEPT,
            Self::Form
            | Self::Solicited
            | Self::Shaky
            | Self::OptionalSampling
            | Self::OptionalRoots
            | Self::RequiredRoots => number,
        }
    }
}

/// What a handler finds outside: it changes while nobody looks, and no state holds it.
#[derive(Debug, Default)]
pub struct Outside {
    /// How many once-values were really made.
    pub made: AtomicI64,
    /// What shaky questions are about.
    pub version: AtomicU64,
    /// How often each errand was looked at.
    pub looks: Mutex<BTreeMap<String, u32>>,
}

/// What a shaky question says.
pub fn shaky_message(key: &str, version: u64) -> String {
    format!("{key} v{version}")
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
    /// A checkpoint, and after it a program.
    Checkpoint(Box<Program>),
}

/// Values of what is no number.
pub const DECLINED: i64 = 77;
pub const CANCELLED: i64 = 78;
pub const UNAVAILABLE: i64 = 7;
pub const INVALID: i64 = 13;
/// An error of a legacy client's own.
pub const REFUSED: i64 = 79;
pub const CONFIRMED: i64 = 17;
pub const DONE: i64 = 19;
const KEPT: i64 = 100;

pub fn sequence_step(total: i64, value: i64) -> i64 {
    (total * 31 + value).rem_euclid(1_000_003)
}

impl Program {
    /// A random program of at most this depth. Keys are paths in the tree, so no key is used twice at a time.
    pub fn random(random: &mut Random, depth: u32, path: &str) -> Self {
        let mut questions = 0;
        let mut question = |random: &mut Random| {
            questions += 1;
            let kind = match random.below(14) {
                0..=2 => Kind::Form,
                3 => Kind::Solicited,
                4 | 5 => Kind::OptionalSampling,
                6 => Kind::OptionalRoots,
                7 => Kind::Confirm,
                8 => Kind::Kept,
                9 | 10 => Kind::Shaky,
                11 => Kind::Errand(1 + u32::try_from(random.below(3)).expect("few")),
                _ if random.chance(6) => Kind::RequiredRoots,
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
        match random.below(9) {
            0 => Self::Sequence(children(random)),
            1 => Self::Join(children(random)),
            2 => Self::Unordered(children(random)),
            3 => {
                let raced = question(random);
                Self::Race(raced, Box::new(Self::random(random, depth - 1, &format!("{path}r."))))
            }
            4 => Self::Loop(Question { key: format!("{path}loop"), kind: Kind::Form }),
            5 | 7 => Self::Once(
                format!("{path}once"),
                Box::new(Self::random(random, depth - 1, &format!("{path}o."))),
            ),
            6 => Self::Checkpoint(Box::new(Self::random(random, depth - 1, &format!("{path}c.")))),
            _ => Self::Ask(question(random)),
        }
    }

    /// Every question in it.
    pub fn questions(&self) -> Vec<&Question> {
        let (mut found, mut todo) = (Vec::new(), vec![self]);
        while let Some(program) = todo.pop() {
            match program {
                Self::Ask(question) | Self::Loop(question) => found.push(question),
                Self::Sequence(children) | Self::Join(children) | Self::Unordered(children) => {
                    todo.extend(children);
                }
                Self::Race(question, child) => {
                    found.push(question);
                    todo.push(child);
                }
                Self::Once(_, child) | Self::Checkpoint(child) => todo.push(child),
            }
        }
        found
    }
}

async fn ask(ctx: Ctx, question: Question, outside: Arc<Outside>) -> i64 {
    let missing = |error: AskError| match error {
        AskError::Unavailable => UNAVAILABLE,
        AskError::Invalid(_) => INVALID,
        AskError::Refused { .. } => REFUSED,
        other => panic!("{other}"),
    };
    let form = |message: &str| {
        let field = Field::integer("n").minimum(0).maximum(9).required();
        Form::builder(message).field(field).build().expect("a valid form")
    };
    let number = |given: Elicited<BTreeMap<String, i64>>| match given {
        Elicited::Accept(content) => content["n"],
        Elicited::Decline => DECLINED,
        Elicited::Cancel => CANCELLED,
    };
    let action = |action: Action, accepted: i64| match action {
        Action::Accept => accepted,
        Action::Decline => DECLINED,
        Action::Cancel => CANCELLED,
    };
    let key = question.key.as_str();
    match question.kind {
        Kind::Form => ctx.elicit(key, &form(key)).await.map_or_else(missing, number),
        Kind::Solicited => ctx.elicit(key, &form(key)).solicited().await.map_or_else(missing, number),
        Kind::Shaky => {
            let message = shaky_message(key, outside.version.load(Ordering::Relaxed));
            ctx.elicit(key, &form(&message)).await.map_or_else(missing, number)
        }
        Kind::Kept => {
            let kept = ctx.elicit::<BTreeMap<String, i64>>(key, &form(key)).keep(|given| match given {
                Elicited::Accept(content) => content["n"] + KEPT,
                Elicited::Decline => DECLINED,
                Elicited::Cancel => CANCELLED,
            });
            kept.await.unwrap_or_else(missing)
        }
        Kind::Confirm => ctx.confirm(key, key).await.map_or_else(missing, |said| action(said, CONFIRMED)),
        Kind::Errand(needed) => {
            let url = ctx.elicit_url(key, key, "https://example.org/").optional();
            let until = url.until(|| {
                let mut looks = outside.looks.lock().expect("unpoisoned");
                let looks = looks.entry(question.key.clone()).or_insert(0);
                *looks += 1;
                future::ready(*looks >= needed)
            });
            until.await.map_or_else(missing, |said| action(said, DONE))
        }
        Kind::OptionalSampling => {
            let sampled = ctx.sample(key, &Sampling::new(5).user(key)).optional().await;
            sampled.map_or_else(missing, |sampled| sampled.text().parse().expect("a number"))
        }
        Kind::OptionalRoots | Kind::RequiredRoots => {
            let roots = ctx.roots(key);
            let roots = if question.kind == Kind::OptionalRoots { roots.optional() } else { roots };
            roots.await.map_or_else(missing, |roots| i64::try_from(roots.len()).expect("few"))
        }
    }
}

/// The program as an async handler.
pub fn run(ctx: Ctx, program: Program, outside: Arc<Outside>) -> BoxFuture<'static, i64> {
    async move {
        let start = |child: Program| run(ctx.clone(), child, outside.clone());
        match program {
            Program::Ask(question) => ask(ctx, question, outside).await,
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
                match future::select(Box::pin(ask(ctx.clone(), question, outside.clone())), start(*child))
                    .await
                {
                    Either::Left((value, rest)) => sequence_step(value + 3, rest.await),
                    Either::Right((value, rest)) => sequence_step(value + 4, rest.await),
                }
            }
            Program::Loop(question) => {
                let mut turns = 0;
                loop {
                    turns += 1;
                    let value = ask(ctx.clone(), question.clone(), outside.clone()).await;
                    if value % 3 != 0 || turns > 3 {
                        break value + turns;
                    }
                }
            }
            Program::Once(name, child) => {
                let make = || outside.made.fetch_add(1, Ordering::Relaxed);
                let value: Result<i64, RpcError> = ctx.once(&name, make);
                sequence_step(value.expect("a number"), start(*child).await)
            }
            Program::Checkpoint(child) => {
                ctx.checkpoint().await.expect("passed");
                start(*child).await
            }
        }
    }
    .boxed()
}
