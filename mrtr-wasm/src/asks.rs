//! What a handler waits for. JavaScript knows each by its number.
//!
//! What a wait came to crosses the border as one string: a letter, and what goes with it.
//!
//! | letter | what | behind it |
//! |---|---|---|
//! | `a` | accepted, or there | JSON text, behind a `k` what was kept; empty for a url |
//! | `d`, `c` | declined, cancelled | |
//! | `u` | the client cannot answer it | |
//! | `i` | the content did not fit | why |
//! | `x` | it cannot be had | why |
//! | `l` | answered through the url instead of the form | a letter of the above |

use std::{
    cell::{Cell, RefCell},
    future::Future,
    pin::Pin,
    rc::Rc,
    task::{Context, Poll, Waker},
};

use mrtr_core::{
    RpcError,
    form::Elicited,
    handler::{Ask, AskError, Ctx},
    wire::{Action, InputRequest},
};

use crate::settings::raw;

type Waiting = Pin<Box<dyn Future<Output = String>>>;

/// Everything that one attempt waits for.
#[derive(Default)]
pub(crate) struct Waits(Vec<Option<Wait>>);

struct Wait {
    future: Waiting,
    cell: Rc<Given>,
}

/// What JavaScript gives to a wait.
#[derive(Default)]
struct Given {
    /// It is to look whether an errand is done.
    looking: Cell<bool>,
    looked: Cell<Option<bool>>,
    /// The value of a `once`, or what is kept of an answer; JSON text.
    made: RefCell<Option<String>>,
    /// JavaScript keeps something else than the answer.
    keeps: Cell<bool>,
    /// The answer that it makes something of.
    answer: Cell<Option<String>>,
}

impl Waits {
    fn add(&mut self, future: Waiting, cell: Rc<Given>) -> u32 {
        self.0.push(Some(Wait { future, cell }));
        u32::try_from(self.0.len() - 1).unwrap_or(u32::MAX)
    }

    fn get(&mut self, number: u32) -> Option<&mut Option<Wait>> {
        self.0.get_mut(usize::try_from(number).ok()?)
    }

    /// A question.
    pub(crate) fn ask(
        &mut self,
        ctx: &Ctx,
        key: &str,
        request: InputRequest<'_>,
        optional: bool,
        solicited: bool,
    ) -> u32 {
        let mut ask = ctx.ask(key, request);
        if optional {
            ask = ask.optional();
        }
        if solicited {
            ask = ask.solicited();
        }
        let cell = Rc::new(Given::default());
        let given = Rc::clone(&cell);
        let future = async move {
            let text = answered((&mut ask).await);
            if !given.keeps.get() || text.starts_with("ak") || text.starts_with(['u', 'i', 'x']) {
                return text;
            }
            given.answer.set(Some(text));
            let kept = Made(given).await;
            if let Ok(kept) = raw(&kept) {
                ask.keep_elsewhere_json(kept);
            }
            lettered('a', &lettered('k', &kept))
        };
        self.add(Box::pin(future), cell)
    }

    /// A url whose errand JavaScript looks after.
    pub(crate) fn until(&mut self, ctx: &Ctx, key: &str, message: &str, url: &str, optional: bool) -> u32 {
        let mut ask = ctx.elicit_url(key, message, url);
        if optional {
            ask = ask.optional();
        }
        let cell = Rc::new(Given::default());
        let looks = Rc::clone(&cell);
        let until = ask.until(move || {
            looks.looking.set(true);
            Looked(Rc::clone(&looks))
        });
        self.add(Box::pin(async move { acted(until.await) }), cell)
    }

    pub(crate) fn checkpoint(&mut self, ctx: &Ctx) -> u32 {
        let ask: Ask<()> = ctx.checkpoint();
        self.add(Box::pin(async move { ask.await.map_or_else(failed, |()| "a".into()) }), Rc::default())
    }

    /// A value that is made once.
    pub(crate) fn once(&mut self, ctx: &Ctx, name: &str) -> u32 {
        let cell = Rc::new(Given::default());
        let (ctx, name, made) = (ctx.clone(), name.to_owned(), Rc::clone(&cell));
        let future = async move {
            match ctx.once_json(&name, Made(made)).await {
                Ok(value) => lettered('a', &value),
                Err(error) => lettered('x', &error.message),
            }
        };
        self.add(Box::pin(future), cell)
    }

    /// What it came to, if it is there.
    pub(crate) fn poll(&mut self, number: u32) -> Option<String> {
        let slot = self.get(number)?;
        let wait = slot.as_mut()?;
        let mut cx = Context::from_waker(Waker::noop());
        match wait.future.as_mut().poll(&mut cx) {
            Poll::Ready(text) => {
                *slot = None;
                Some(text)
            }
            Poll::Pending => wait.cell.answer.take(),
        }
    }

    /// Something else than the answer is kept; to be said before it is looked at.
    pub(crate) fn keeps(&mut self, number: u32) {
        if let Some(wait) = self.get(number).and_then(Option::as_mut) {
            wait.cell.keeps.set(true);
        }
    }

    /// Whether JavaScript is to look after the errand now.
    pub(crate) fn looks(&mut self, number: u32) -> bool {
        let slot = self.get(number).and_then(Option::as_mut);
        slot.is_some_and(|wait| wait.cell.looking.take())
    }

    pub(crate) fn looked(&mut self, number: u32, done: bool) {
        if let Some(wait) = self.get(number).and_then(Option::as_mut) {
            wait.cell.looked.set(Some(done));
        }
    }

    pub(crate) fn made(&mut self, number: u32, value: String) {
        if let Some(wait) = self.get(number).and_then(Option::as_mut) {
            wait.cell.made.replace(Some(value));
        }
    }

    /// Nobody waits for it any more: it is withdrawn.
    pub(crate) fn drop(&mut self, number: u32) {
        if let Some(slot) = self.get(number) {
            *slot = None;
        }
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}

struct Looked(Rc<Given>);

impl Future for Looked {
    type Output = bool;

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<bool> {
        self.0.looked.take().map_or(Poll::Pending, Poll::Ready)
    }
}

struct Made(Rc<Given>);

impl Future for Made {
    type Output = String;

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<String> {
        self.0.made.borrow_mut().take().map_or(Poll::Pending, Poll::Ready)
    }
}

/// What crosses the border: a letter and a text.
pub(crate) fn lettered(letter: char, text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 1);
    out.push(letter);
    out.push_str(text);
    out
}

fn answered(answer: Result<Elicited<String>, AskError>) -> String {
    match answer {
        Ok(Elicited::Accept(content)) => lettered('a', &content),
        Ok(Elicited::Decline) => "d".into(),
        Ok(Elicited::Cancel) => "c".into(),
        Err(error) => failed(error),
    }
}

fn acted(answer: Result<Action, AskError>) -> String {
    match answer {
        Ok(Action::Accept) => "a".into(),
        Ok(Action::Decline) => "d".into(),
        Ok(Action::Cancel) => "c".into(),
        Err(error) => failed(error),
    }
}

fn failed(error: AskError) -> String {
    match error {
        AskError::Unavailable => "u".into(),
        AskError::Invalid(reason) => lettered('i', &reason),
        other @ (AskError::Ended | AskError::Refused { .. } | _) => lettered('x', &other.to_string()),
    }
}

/// What a handler that does not catch an ask's failure ends with: as `?` in Rust.
pub(crate) fn uncaught(kind: &str, reason: &str) -> RpcError {
    match kind {
        "u" => AskError::Unavailable.into(),
        "i" => AskError::Invalid(reason.into()).into(),
        _ => RpcError::internal("Internal error"),
    }
}
