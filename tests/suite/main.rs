//! One test binary for everything that goes through the public API: one link, many modules.

mod digest;
mod json_tree;
mod replay_random;
mod replay_rules;
mod seal;
mod client;
mod seal;
