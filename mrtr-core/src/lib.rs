//! The protocol core of **mrtr**: multi round-trip requests of the Model Context Protocol, as values and pure
//! functions. Bytes in, bytes out; no I/O, no clock, no randomness, no environment.
//!
//! Since revision 2026-07-28 an MCP server sends no requests of its own. One that needs an answer replies early:
//! `resultType: "input_required"`, questions, and an opaque `requestState`. The client collects the answers and
//! sends the request again with them and the state.
//!
//! # The flow on one page
//!
//! ```text
//!   bytes ─▶ jsonrpc::admit ─▶ server::read ─▶ catalog::route ─▶ open ─▶ Exchange<Pending | Retrying>
//!            one bounded pass   _meta, headers   does it exist?   seal ─▶ journal     │
//!                                                                                     ▼
//!   bytes ◀─ InputRequired ◀─ seal ◀─ journal ◀── Send ─┐                     handler + tape
//!   bytes ◀─ Complete      ◀──────────────────── Return ┴──────────────────── runs from its start,
//!                                                                             answers released round by round
//! ```
//!
//! A [`handler::Service`] does all of it: give it the bytes of a request, drive what comes out, send what it wrote.
//! A [`client::Client`] is the other half.
//!
//! ```
//! use mrtr_core::{
//!     Entropy, Timestamp,
//!     catalog::Tool,
//!     handler::{Ctx, Output, Reception, RpcError, Service, ToolResult},
//!     seal::{KeyRing, Principal, Sealer, Secret},
//!     server::{Config, RoundEnv, Server},
//!     wire::{Action, Implementation},
//! };
//!
//! async fn delete(ctx: Ctx) -> Result<Output, RpcError> {
//!     let path: String = ctx.argument("path")?;
//!     match ctx.confirm("sure", format!("Delete {path}?")).await? {
//!         Action::Accept => Ok(ToolResult::text(format!("Deleted {path}.")).into()),
//!         Action::Decline | Action::Cancel => Ok(ToolResult::text("Nothing was deleted.").into()),
//!     }
//! }
//!
//! let ring = KeyRing::new(Secret::from_bytes(b"32 bytes from a random source ..")?);
//! let config = Config::new(Implementation::new("files", "1.0"), Sealer::encrypted(&ring, "files"));
//! let service = Service::new(Server::new(config)).tool(Tool::new("delete", "Deletes a file"), delete)?;
//!
//! let request = br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{
//!     "name":"delete","arguments":{"path":"notes.txt"},
//!     "_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",
//!              "io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}}}"#;
//! let now = Timestamp::from_unix_millis(1_800_000_000_000);
//! let env = RoundEnv::new(now, Entropy::new([7; 32]), Principal::Authenticated(b"alice"));
//! let Reception::Run(run) = service.receive(request, env) else { panic!("a tool runs") };
//! let mut reply = Vec::new();
//! run.run(now, &mut reply);
//! assert!(reply.starts_with(br#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required""#));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # The rooms
//!
//! | room | what is decided there |
//! |---|---|
//! | [`jsonrpc`] | what is a message: one bounded pass before anything else looks at it |
//! | [`wire`] | the protocol's words: methods, `_meta`, capabilities, asks, answers, results, eras |
//! | [`digest`] | when two JSON values are the same; what a question looked like |
//! | [`form`] | what a form may contain, and whether an answer fits it |
//! | [`seal`] | that nobody bends a state: keys, rotation, binding, verdicts |
//! | [`journal`], [`tape`] | what was asked and answered, and how a handler meets it again |
//! | [`audit`] | what is told of an exchange to those who keep count: keys and outcomes, no content |
//! | [`server`], [`handler`] | the server's half of an exchange: by hand, or by async handlers |
//! | [`legacy`] | sessions of 2025-11-25 and before, with the same handlers |
//! | [`ledger`] | that a state is used once, and a lost reply is found again |
//! | [`client`] | the client's half, which can be stopped, stored and resumed |
//! | [`translate`] | one message of one era in the words of the other |
//! | [`bridge`] | any host, any server: what crosses, what waits, who is asked |
//! | [`catalog`] | what a server offers and which of it a request names |
//! | [`http`], [`framing`] | headers, statuses, host and origin; lines and event streams |
//!
//! # What holds everywhere
//!
//! - No input makes anything here panic, or take memory or time beyond the [`Limits`].
//! - An answer only ever answers the question that was asked.
//! - A state is accepted from nobody else, nowhere else, never changed and not too late.
//! - No secret, state or answer is in a log, an error or a `Debug`.
//! - The same bytes, time and entropy give the same bytes.
//!
//! Errors are what peers and embedders do wrong and are values; a panic would be a bug of this crate.
//!
//! # Features
//!
//! | feature | default | adds |
//! |---|---|---|
//! | `std` | yes | [`handler`] and the server's side of [`legacy`]: everything else is `no_std` with `alloc` |
//! | `encrypted` | yes | states that the client cannot read (XChaCha20-Poly1305) |
//! | `aes-gcm` | no | the same with AES-256-GCM, for shops that must |
//! | `schemars` | no | forms from Rust types |
//! | `tracing` | no | verdicts and limits as `tracing` events |
//! | `testkit` | no | `testkit`: a server that misbehaves, for tests of clients |
//! | `test-utils` | no | a suite that seals nothing, for tests and fuzzing |
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

pub mod audit;
pub mod bridge;
pub mod catalog;
pub mod client;
pub mod digest;
pub mod form;
pub mod framing;
#[cfg(feature = "std")]
pub mod handler;
pub mod http;
pub mod journal;
pub mod jsonrpc;
pub mod ledger;
pub mod legacy;
pub mod manual;
pub mod seal;
pub mod server;
pub mod tape;
#[cfg(feature = "testkit")]
pub mod testkit;
pub mod translate;
pub mod wire;

mod entropy;
mod error;
mod limits;
mod time;
pub(crate) mod trace;

pub use entropy::Entropy;
pub use error::{ErrorCode, RpcError};
pub use limits::Limits;
pub use time::Timestamp;
