//! The ledger: single use and replay of lost replies (B1…B7, R-075, R-076, R-096, G-28, G-29).

mod answers;
mod claims;
mod codec;
mod edges;
mod ends;
mod explore;
mod memory;
mod random;
mod runs;
mod support;
mod waits;
mod world;
