//! Support for the tests of mrtr: everything here goes through the public API, with virtual time and fixed
//! entropy.

pub mod bench;
pub mod bridge;
pub mod bridge_bench;
pub mod exchange;
pub mod form;
pub mod hostile;
pub mod legacy;
pub mod model;
pub mod world;

/// The README's example, compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
pub struct Readme;
