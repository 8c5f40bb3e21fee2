//! The adapter through its public API: over real sockets and pipes, or under virtual time. No sleeps.

// Tests may panic, helpers included.
#![allow(clippy::std_instead_of_core, clippy::unwrap_used, clippy::indexing_slicing)]

mod audit;
mod bridge;
mod child;
mod client;
mod command;
mod endpoint;
mod eras;
mod hostile;
mod http;
mod inspect;
mod later;
mod ledger;
mod legacy;
mod legacy_edges;
#[cfg(unix)]
mod pty;
mod stdio;
mod support;
#[cfg(unix)]
mod terminal;
mod tls;
mod unaccepted;
