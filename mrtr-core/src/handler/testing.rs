//! Tests of handlers: all rounds with scripted answers, in one process, in no time.
//!
//! A [`Script`] plays the client. It calls the handler, answers what it asks, sends the call again with the sealed
//! state, and so on until there is a result, as any client would. And it runs **every segment a second time**,
//! from the sealed bytes, with the once-values of the first run: a handler that asks something else then, or ends
//! with another result, fails the test with both sides. What a handler must not do between two questions (read
//! the clock, count, shuffle) so shows in a unit test and not in production as a question that is asked twice.
//!
//! ```
//! use mrtr_core::form::{Elicited, Field, Form};
//! use mrtr_core::handler::testing::{Script, accept, decline};
//! use mrtr_core::handler::{Ctx, Output, RpcError, ToolResult};
//! use mrtr_core::wire::Action;
//!
//! #[derive(serde::Deserialize)]
//! struct Party { people: u8 }
//!
//! async fn book(ctx: Ctx) -> Result<Output, RpcError> {
//!     let form = Form::builder("For how many?").field(Field::integer("people").minimum(1).required()).build()?;
//!     let Elicited::Accept(Party { people }) = ctx.elicit("party", &form).await? else {
//!         return Ok(ToolResult::error("Nobody comes.").into());
//!     };
//!     match ctx.confirm("sure", format!("A table for {people}?")).await? {
//!         Action::Accept => Ok(ToolResult::text(format!("Booked for {people}.")).into()),
//!         Action::Decline | Action::Cancel => Ok(ToolResult::text("Not booked.").into()),
//!     }
//! }
//!
//! let played = Script::new(book)
//!     .answer("party", accept(&serde_json::json!({"people": 4})))
//!     .answer("sure", accept(&serde_json::json!({})))
//!     .play();
//! assert_eq!(played.keys(), [vec!["party"], vec!["sure"]]);
//! assert_eq!(played.rounds[1].asks[0].message, "A table for 4?");
//! assert_eq!(played.text(), "Booked for 4.");
//!
//! let played = Script::new(book).answer("party", decline()).play();
//! assert_eq!(played.text(), "Nobody comes.");
//! ```
//!
//! A handler that is not the same twice:
//!
//! ```
//! # use mrtr_core::handler::testing::{Script, accept};
//! # use mrtr_core::handler::{Ctx, RpcError, ToolResult};
//! # use std::sync::atomic::{AtomicU32, Ordering};
//! static FILES: AtomicU32 = AtomicU32::new(3);
//!
//! async fn delete(ctx: Ctx) -> Result<ToolResult, RpcError> {
//!     let files = FILES.fetch_add(1, Ordering::Relaxed); // should be in `ctx.once`
//!     ctx.confirm("sure", format!("Delete {files} files?")).await?;
//!     Ok(ToolResult::text("Deleted."))
//! }
//!
//! let failed = Script::new(delete).answer("sure", accept(&serde_json::json!({}))).try_play().unwrap_err();
//! assert_eq!(failed.to_string(), "\
//! round 1: the handler does not ask the same when it runs again
//!   - sure (form) \"Delete 3 files?\"
//!   + sure (form) \"Delete 4 files?\"
//! put what it reads from outside into `once`, and asks that wait for the same thing into one round");
//! ```

mod play;
mod report;

use alloc::{
    collections::{BTreeMap, VecDeque},
    string::{String, ToString},
    vec::Vec,
};
use core::{
    future::Future,
    pin::pin,
    task::{Context, Poll, Waker},
    time::Duration,
};

pub use report::{Asked, Played, Round, ScriptError};

use super::{BoxHandler, Ctx, Output, RpcError};
use crate::{
    Limits,
    tape::TapePolicy,
    wire::{AskingMethod, ClientCapabilities},
};

/// What a scripted person says to one question.
///
/// `Debug` shows nothing of it.
#[derive(Clone, PartialEq, Eq)]
pub struct Reply(Option<String>);

impl core::fmt::Debug for Reply {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(if self.0.is_some() { "Reply(..)" } else { "Reply(withheld)" })
    }
}

/// Yes, with this content; `{}` for confirmations and urls.
///
/// # Panics
///
/// If the content cannot be written as JSON: this is for tests.
#[must_use]
#[track_caller]
pub fn accept<T: serde::Serialize + ?Sized>(content: &T) -> Reply {
    raw(alloc::format!(r#"{{"action":"accept","content":{}}}"#, text(content)))
}

/// No.
#[must_use]
pub fn decline() -> Reply {
    raw(r#"{"action":"decline"}"#)
}

/// Dismissed.
#[must_use]
pub fn cancel() -> Reply {
    raw(r#"{"action":"cancel"}"#)
}

/// What a model says.
///
/// # Panics
///
/// Never: a string can be written.
#[must_use]
pub fn sampled(words: &str) -> Reply {
    raw(alloc::format!(
        r#"{{"role":"assistant","model":"scripted","content":{{"type":"text","text":{}}}}}"#,
        text(words)
    ))
}

/// Roots with these `file://` uris.
///
/// # Panics
///
/// Never: strings can be written.
#[must_use]
pub fn roots(uris: &[&str]) -> Reply {
    let roots: Vec<String> = uris.iter().map(|uri| alloc::format!(r#"{{"uri":{}}}"#, text(uri))).collect();
    raw(alloc::format!(r#"{{"roots":[{}]}}"#, roots.join(",")))
}

/// Any JSON, also one that is no answer.
#[must_use]
pub fn raw(json: impl Into<String>) -> Reply {
    Reply(Some(json.into()))
}

/// Nothing this time: the client comes again without an answer under this key, and is asked again.
#[must_use]
pub const fn withhold() -> Reply {
    Reply(None)
}

#[track_caller]
fn text<T: serde::Serialize + ?Sized>(value: &T) -> String {
    match serde_json::to_string(value) {
        Ok(text) => text,
        Err(error) => panic!("not to be written as JSON: {error}"),
    }
}

/// A client with a script; see the [module](self).
#[derive(Clone)]
pub struct Script {
    handler: BoxHandler,
    method: AskingMethod,
    target: String,
    arguments: String,
    capabilities: ClientCapabilities,
    limits: Limits,
    policy: TapePolicy,
    answers: BTreeMap<String, VecDeque<Reply>>,
    early: BTreeMap<String, Reply>,
}

impl Script {
    /// A script for this handler, as the tool `test` without arguments, of a client that can answer everything.
    #[must_use]
    pub fn new<F, R, O, E>(handler: F) -> Self
    where
        F: Fn(Ctx) -> R + Send + Sync + 'static,
        R: Future<Output = Result<O, E>> + Send + 'static,
        O: Into<Output>,
        E: Into<RpcError>,
    {
        Self {
            handler: super::service::boxed(handler),
            method: AskingMethod::ToolsCall,
            target: "test".to_string(),
            arguments: "{}".to_string(),
            capabilities: ClientCapabilities::ALL,
            limits: Limits::default(),
            policy: TapePolicy::default(),
            answers: BTreeMap::new(),
            early: BTreeMap::new(),
        }
    }

    /// Calls it as something else: a prompt or tool by name, a resource by uri.
    #[must_use]
    pub fn called(mut self, method: AskingMethod, target: impl Into<String>) -> Self {
        self.method = method;
        self.target = target.into();
        self
    }

    /// With these arguments, a JSON object.
    ///
    /// # Panics
    ///
    /// If they cannot be written as JSON: this is for tests.
    #[must_use]
    #[track_caller]
    pub fn arguments<T: serde::Serialize + ?Sized>(mut self, arguments: &T) -> Self {
        self.arguments = text(arguments);
        self
    }

    /// By a client that declares only this.
    #[must_use]
    pub const fn capabilities(mut self, capabilities: ClientCapabilities) -> Self {
        self.capabilities = capabilities;
        self
    }

    /// Under these limits.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Answers the question under this key on the wire. Once more for the same key: the answer to its next asking,
    /// in this order.
    #[must_use]
    pub fn answer(mut self, key: impl Into<String>, reply: Reply) -> Self {
        self.answers.entry(key.into()).or_default().push_back(reply);
        self
    }

    /// Gives an answer up front, with the first request (R-083).
    #[must_use]
    pub fn up_front(mut self, key: impl Into<String>, reply: Reply) -> Self {
        self.early.insert(key.into(), reply);
        self
    }

    /// Plays it to its end.
    ///
    /// # Panics
    ///
    /// With the text of the [`ScriptError`], if there is one.
    #[must_use]
    #[track_caller]
    pub fn play(self) -> Played {
        match self.try_play() {
            Ok(played) => played,
            Err(error) => panic!("{error}"),
        }
    }

    /// Plays it to its end, for handlers that need no runtime.
    ///
    /// Effects outside `once` happen twice, as every segment runs twice; commits once.
    ///
    /// # Errors
    ///
    /// If the handler is not the same twice, or the script has no answer to a question.
    pub fn try_play(self) -> Result<Played, ScriptError> {
        let played = pin!(play::play(self, play::Alone));
        match played.poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(played) => played,
            // Nothing in it waits: a handler that would has ended with an error.
            Poll::Pending => Err(ScriptError::Unplayable("a handler without a runtime waits".to_string())),
        }
    }

    /// Plays it to its end under a runtime, for handlers that await I/O. `sleep` makes the runtime's timers:
    /// `tokio::time::sleep`, for instance.
    ///
    /// # Errors
    ///
    /// As for [`try_play`](Self::try_play).
    pub async fn play_under<S, F>(self, sleep: S) -> Result<Played, ScriptError>
    where
        S: Fn(Duration) -> F,
        F: Future<Output = ()>,
    {
        play::play(self, play::Under(sleep)).await
    }
}

impl core::fmt::Debug for Script {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Script").field("target", &self.target).finish_non_exhaustive()
    }
}
