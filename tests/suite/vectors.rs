//! The exchanges of `tests/vectors`: loading, matching, and running them against a party.
//!
//! [`server::run`] drives a [`server::Party`], [`client::run`] a [`client::Caller`]; both are told the time and the
//! principal, and neither knows what is behind the trait. `proof` shows with scripted parties that each expectation of
//! each file is looked at: with any one of them violated the run fails.

mod client;
mod format;
mod parties;
mod pattern;
mod proof;
mod server;

use core::fmt;

/// Why a party's behaviour is not that of an exchange.
#[derive(Debug)]
struct Failure {
    title: String,
    step: usize,
    why: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "“{}”, step {}: {}", self.title, self.step + 1, self.why)
    }
}
