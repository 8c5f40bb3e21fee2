//! How replay works: a handler is run again from its start on every round, and its recorded answers carry it back
//! to where it was.
//!
//! # Which lines run twice
//!
//! This handler asks two questions, so its client sends three requests, and it starts three times. Beside each line
//! stands how often it runs; the numbers are counted by the code below, which is a test.
//!
//! ```
//! use std::sync::atomic::{AtomicUsize, Ordering};
//! use mrtr_core::handler::{Ctx, RpcError, ToolResult};
//! # use mrtr_core::{Entropy, Timestamp, catalog::Tool, handler::{Reception, Service}, wire::Implementation};
//! # use mrtr_core::{seal::{KeyRing, Principal, Sealer, Secret}, server::{Config, RoundEnv, Server}};
//! #
//! # static RUNS: [AtomicUsize; 6] = [const { AtomicUsize::new(0) }; 6];
//! # fn count(line: usize) { RUNS[line].fetch_add(1, Ordering::Relaxed); }
//!
//! async fn deploy(ctx: Ctx) -> Result<ToolResult, RpcError> {
//!     count(0);                                                        // 3 times: before the first question
//!     let job = ctx.once("job", || { count(1); 4711 })?;               // 1 time in an exchange
//!     ctx.confirm("build", format!("Build job {job}?")).await?;
//!     count(2);                                                        // 2 times: between the questions
//!     let tag = ctx.once("tag", || { count(3); "v1".to_owned() })?;    // 1 time
//!     ctx.confirm("ship", format!("Ship {tag}?")).await?;
//!     count(4);                                                        // 1 time: after the last question
//!     ctx.on_commit(|| { count(5); Ok(()) });                          // 1 time, and only after success
//!     Ok(ToolResult::text(format!("Job {job} is live as {tag}.")))
//! }
//!
//! # let ring = KeyRing::new(Secret::from_bytes(&[7; 32])?);
//! # let config = Config::new(Implementation::new("s", "1"), Sealer::encrypted(&ring, "s"));
//! # let service = Service::new(Server::new(config)).tool(Tool::new("deploy", ""), deploy)?;
//! # let now = Timestamp::from_unix_millis(1_800_000_000_000);
//! # let mut request_number = 0u8;
//! # let mut call = |further: String| {
//! #     request_number += 1;
//! #     let request = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"deploy",{further}
//! #         "_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28",
//! #         "io.modelcontextprotocol/clientCapabilities":{{"elicitation":{{}}}}}}}}}}"#);
//! #     let env = RoundEnv::new(now, Entropy::new([request_number; 32]), Principal::Authenticated(b"ada"));
//! #     let Reception::Run(run) = service.receive(request.as_bytes(), env) else { panic!("a tool runs") };
//! #     let mut out = Vec::new();
//! #     run.run(now, &mut out);
//! #     serde_json::from_slice::<serde_json::Value>(&out).unwrap()["result"].clone()
//! # };
//! # let yes = |result: &serde_json::Value, key: &str| format!(
//! #     r#""requestState":{},"inputResponses":{{"{key}":{{"action":"accept"}}}},"#, result["requestState"]);
//! # let runs = || -> Vec<usize> { RUNS.iter().map(|line| line.load(Ordering::Relaxed)).collect() };
//! let first = call(String::new());                // asks `build`
//! assert_eq!(runs(), [1, 1, 0, 0, 0, 0]);
//! let second = call(yes(&first, "build"));        // asks `ship`
//! assert_eq!(runs(), [2, 1, 1, 1, 0, 0]);
//! let third = call(yes(&second, "ship"));         // the result
//! assert_eq!(runs(), [3, 1, 2, 1, 1, 1]);
//! assert_eq!(third["content"][0]["text"], "Job 4711 is live as v1.");
//!
//! // A client that never saw the first reply sends its first request anew: another exchange, which knows nothing.
//! call(String::new());
//! assert_eq!(runs(), [4, 2, 2, 1, 1, 1]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! So: everything above an answer runs again whenever a later answer comes. What must not, has three places:
//!
//! | where | runs |
//! |---|---|
//! | [`Ctx::once`], [`Ctx::once_async`] | once in an exchange; its value travels in the state |
//! | below the last question | once for each accepted copy of the last retry |
//! | [`Ctx::on_commit`] | the same, but only when the handler has succeeded, and never cancelled once begun |
//!
//! *Once for each accepted copy*: a state can be shown twice until it expires, by a client that lost a reply or a
//! person who clicked twice. Single use needs memory that the replicas share, which is the ledger's.
//!
//! # Rounds
//!
//! A round ends where the handler is *blocked*: it is pending, and a question it waits for is open. Everything that
//! is open then goes out together, in the order of the calls. A question is open from the call, not from the first
//! poll:
//!
//! ```
//! # use mrtr_core::handler::testing::{Script, accept, withhold};
//! # use mrtr_core::handler::{Ctx, RpcError, ToolResult};
//! async fn two(ctx: Ctx) -> Result<ToolResult, RpcError> {
//!     let (a, b) = (ctx.confirm("a", "First?"), ctx.confirm("b", "Second?"));
//!     Ok(ToolResult::text(format!("{:?} {:?}", a.await?, b.await?)))
//! }
//!
//! let yes = || accept(&serde_json::json!({}));
//! let played = Script::new(two).answer("a", yes()).answer("b", yes()).play();
//! assert_eq!(played.keys(), [vec!["a", "b"]]);
//!
//! // A client that answers one of them is asked for the other alone; what it answered is in the state.
//! let played = Script::new(two).answer("a", yes()).answer("b", withhold()).answer("b", yes()).play();
//! assert_eq!(played.keys(), [vec!["a", "b"], vec!["b"]]);
//! ```
//!
//! On replay the answers come back round by round, each where it came before. A handler that takes whichever of two
//! answers is first meets the same one first again:
//!
//! ```
//! # use mrtr_core::handler::testing::{Script, accept, withhold};
//! # use mrtr_core::handler::{Ctx, RpcError, ToolResult};
//! # use futures::future::{Either, select};
//! async fn either(ctx: Ctx) -> Result<ToolResult, RpcError> {
//!     let first = match select(ctx.confirm("a", "A?"), ctx.confirm("b", "B?")).await {
//!         Either::Left(_) => "a",
//!         Either::Right(_) => "b",
//!     };
//!     ctx.confirm("on", format!("On with {first}?")).await?;
//!     Ok(ToolResult::text(first))
//! }
//!
//! let yes = || accept(&serde_json::json!({}));
//! let played = Script::new(either).answer("a", withhold()).answer("b", yes()).answer("on", yes()).play();
//! assert_eq!(played.text(), "b");
//! ```
//!
//! # What must be the same twice
//!
//! The questions: their keys, kinds and texts. So whatever decides about them must be, too.
//!
//! - The time is [`Ctx::started`], randomness [`Ctx::seed`]; readings of the outside world go into
//!   [`Ctx::once`].
//! - `select!` needs `biased;`. Never select a question against I/O or a timer.
//! - What [`Ctx::get`] finds is memory, not path: it may count attempts, it must not decide about a question.
//! - What the request in hand declares may change from round to round: make an ask
//!   [`optional`](crate::handler::Ask::optional), or use [`Ctx::elicit_or_url`].
//!
//! If a question changed all the same (a deploy in between, say), nobody's answer is given to another question: it
//! is asked anew, and what is still the same keeps its answer. A question that changes a third time in one exchange
//! ends it, and the log names the key.
//!
//! [`handler::testing::Script`](crate::handler::testing::Script) runs every segment twice in a unit test and shows
//! what differs.
//!
//! # Under a runtime
//!
//! A handler may await I/O: before a question, in `once_async`, or in a sibling of a `join!`. A sibling that is not
//! done when the questions go out is dropped with the rest of the attempt and starts again with the next one. Tasks
//! that were spawned are not: a question alive in one resolves to [`AskError::Ended`](crate::handler::AskError)
//! when the attempt is over, so that the task can end.
//!
//! [`Ctx::once`]: crate::handler::Ctx::once
//! [`Ctx::once_async`]: crate::handler::Ctx::once_async
//! [`Ctx::on_commit`]: crate::handler::Ctx::on_commit
//! [`Ctx::started`]: crate::handler::Ctx::started
//! [`Ctx::seed`]: crate::handler::Ctx::seed
//! [`Ctx::get`]: crate::handler::Ctx::get
//! [`Ctx::elicit_or_url`]: crate::handler::Ctx::elicit_or_url
