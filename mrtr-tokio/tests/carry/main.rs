//! The adapter through its public API: over real sockets and pipes, or under virtual time. No sleeps.

// Tests may panic, helpers included.
#![allow(clippy::std_instead_of_core, clippy::unwrap_used, clippy::indexing_slicing)]

mod audit;
mod client;
mod command;
mod endpoint;
mod http;
mod inspect;
mod ledger;
mod legacy;
mod legacy_edges;
mod stdio;
mod support;
