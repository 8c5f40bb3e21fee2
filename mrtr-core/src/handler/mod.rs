//! Async handlers that ask in mid-call, run again from their start on every round (feature `std`).
//!
//! ```
//! use mrtr_core::handler::{Ctx, Output, RpcError, ToolResult};
//! use mrtr_core::wire::Action;
//!
//! async fn delete(ctx: Ctx) -> Result<Output, RpcError> {
//!     let path: String = ctx.argument("path")?;
//!     // First request: the reply is `input_required` and this future is dropped here.
//!     // Retry: the same line returns the answer.
//!     match ctx.confirm("sure", format!("Delete {path}?")).await? {
//!         Action::Accept => Ok(ToolResult::text(format!("Deleted {path}.")).into()),
//!         Action::Decline | Action::Cancel => Ok(ToolResult::text("Nothing was deleted.").into()),
//!     }
//! }
//! ```
//!
//! The handler needs no runtime: [`Run::run`] drives it from its start to its end or its next question with
//! nothing but the recorded answers. Under a runtime, [`Run::poll_run`] does the same and lets it await I/O.
//!
//! [`testing::Script`] plays all rounds of a handler in a unit test and runs every segment twice; the
//! [manual](crate::manual::how_replay_works) says why that matters.
//!
//! Which lines run twice: all of them, up to the last answer. Put effects and readings of the outside world
//! into [`Ctx::once`]; take the time from [`Ctx::started`] and randomness from [`Ctx::seed`].

mod ask;
mod commit;
mod ctx;
mod degrade;
mod elsewhere;
pub(crate) mod live;
mod notify;
mod race;
mod returning;
mod run;
mod service;
mod shared;
mod single;
mod url;

pub mod testing;

pub use ask::{Ask, AskError, Kept};
pub use ctx::Ctx;
pub use degrade::{FormOrUrl, Reached};
pub use race::{Race, RaceAll, Won, race, race_all};
pub use returning::{Attempt, AttemptEvent};
pub use run::{Outcome, Run, RunEvent};
pub use service::{BoxHandler, HandlerFuture, Reception, Service};
pub use url::Until;

pub use crate::{
    catalog::{Content, Output, PromptResult, ResourceResult, ToolResult},
    error::RpcError,
};
