//! mrtr over tokio: servers and clients of streamable HTTP and stdio, and the command `mrtr`.
//!
//! Nothing here knows the protocol. `mrtr-core` says what a message means and what is to be sent; this crate
//! brings the bytes, the time, the randomness and the name of whoever calls.
//!
//! | module | what | feature |
//! |---|---|---|
//! | [`server`] | an [`Endpoint`](server::Endpoint) over HTTP: [`serve`](server::serve), or mounted as a `tower::Service` | `server`, `tower` |
//! | [`stdio`] | [`serve`](stdio::serve): a server on stdin and stdout | `server` |
//! | [`store`] | where a ledger's entries are: in memory, in Redis | `server`, `redis` |
//! | [`client`] | [`Client`](client::Client) over HTTP and over a child's stdio, with an [`Answerer`](mrtr_core::client::Answerer), for servers of both eras | `client` |
//! | [`bridge`] | [`Bridge`](bridge::Bridge): any host before any server, over stdio and HTTP | `bridge` |
//! | [`changes`] | what handlers announce: lists that are other now, resources that were updated | `server` |
//! | [`keys`] | where sealing secrets come from: a file, an environment variable, bytes, this process alone | |
//! | [`audit`] | what happens in exchanges as `tracing` events, without content | |
//! | [`clock`] | the wall clock and the random source | |
//! | [`hostile`] | a server that misbehaves, for tests of clients | `hostile` |
//! | [`example_tools`] | tools worth playing with, as `mrtr demo` and `mrtr serve` offer them | `cli` |
//!
//! The default feature is `cli`, the command's; a library turns the defaults off and names what it needs:
//! `default-features = false, features = ["server"]`.
//!
//! A server in twelve lines:
//!
//! ```no_run
//! # #[cfg(feature = "server")]
//! # async fn serve() -> Result<(), Box<dyn std::error::Error>> {
//! use mrtr_core::{handler::{Ctx, RpcError, Service, ToolResult}, catalog::Tool, server::{Config, Server}, wire::{Action, Implementation}};
//! use mrtr_tokio::{keys::KeySource, server::{self, Anonymous, Endpoint}};
//!
//! async fn delete(ctx: Ctx) -> Result<ToolResult, RpcError> {
//!     let path: String = ctx.argument("path")?;
//!     match ctx.confirm("sure", format!("Delete {path}?")).await? {
//!         Action::Accept => Ok(ToolResult::text(format!("Deleted {path}."))),
//!         Action::Decline | Action::Cancel => Ok(ToolResult::text("Nothing was deleted.")),
//!     }
//! }
//!
//! let sealer = KeySource::Env("MRTR_KEY").sealer("files")?;
//! let config = Config::new(Implementation::new("files", "1.0"), sealer);
//! let service = Service::new(Server::new(config)).tool(Tool::new("delete", "Deletes a file."), delete)?;
//!
//! let listener = tokio::net::TcpListener::bind("127.0.0.1:3000").await?;
//! let endpoint = Endpoint::new(service, Anonymous::new());
//! server::serve(listener, endpoint, server::Options::default(), std::future::pending()).await?;
//! # Ok(())
//! # }
//! ```

#![forbid(unsafe_code)]
// That lint keeps mrtr-core without std; this crate is nothing without it.
#![allow(clippy::std_instead_of_core)]

pub mod audit;
#[cfg(feature = "bridge")]
pub mod bridge;
pub mod clock;
pub mod keys;

#[cfg(feature = "server")]
pub mod changes;
#[cfg(feature = "client")]
pub mod client;
#[cfg(feature = "server")]
mod drive;
#[cfg(feature = "cli")]
pub mod example_tools;
#[cfg(feature = "hostile")]
pub mod hostile;
#[cfg(feature = "server")]
mod room;
#[cfg(feature = "server")]
pub mod server;
#[cfg(feature = "server")]
pub mod stdio;
#[cfg(feature = "server")]
pub mod store;
