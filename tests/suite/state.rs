//! The modules of the suite that are about messages and sealed states, alone: what `tests/mutants/run` runs.

mod client;
mod digest;
mod json_tree;
mod jsonrpc;
mod ledger;
mod lines;
mod seal;
