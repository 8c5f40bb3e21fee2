//! One test binary for everything that goes through the public API: one link, many modules.

mod replay_random;
mod replay_rules;
