//! One test binary for everything that goes through the public API: one link, many modules.

mod bridge;
mod client;
mod connection;
mod digest;
mod form;
mod framing;
mod handlers;
mod hostile;
mod http;
mod json_tree;
mod jsonrpc;
mod ledger;
mod ledger_wired;
mod legacy;
mod legacy_client;
mod lines;
mod replay_random;
mod replay_rules;
// Needs tokio and threads.
#[cfg(not(target_family = "wasm"))]
mod runtime;
mod seal;
mod server;
mod translate;
mod vectors;
