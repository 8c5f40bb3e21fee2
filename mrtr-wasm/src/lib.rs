//! `mrtr-core` for JavaScript. What is here carries values across the border and decides nothing: the protocol is in
//! the core, and what belongs to the host (promises, timers, `fetch`, randomness) is in the TypeScript beside it.
//!
//! | file | what |
//! |---|---|
//! | `engine` | a server with its catalog, its gate and its keys: [`Engine`] |
//! | `call` | one HTTP request: [`Call`], which JavaScript polls |
//! | `serve` | the future behind a call, from its bytes to the last byte of its reply |
//! | `returning`, `listen` | the same for return-style handlers and for subscriptions |
//! | `mail` | what the future and JavaScript leave for each other |
//! | `asks` | questions and other things that a handler waits for |
//! | `client` | the client's half |
//! | `settings` | reads what JavaScript hands over as JSON |

// This crate has a std.
#![allow(clippy::std_instead_of_core, clippy::std_instead_of_alloc)]

#[cfg(feature = "server")]
mod asks;
#[cfg(feature = "server")]
mod call;
#[cfg(feature = "client")]
mod client;
#[cfg(feature = "server")]
mod engine;
#[cfg(feature = "server")]
mod listen;
#[cfg(feature = "server")]
mod mail;
#[cfg(feature = "server")]
mod returning;
#[cfg(feature = "server")]
mod serve;
mod settings;

#[cfg(feature = "server")]
pub use call::Call;
#[cfg(feature = "client")]
pub use client::{Dialer, Trip};
#[cfg(feature = "server")]
pub use engine::Engine;
