//! Support for the tests of mrtr: everything here goes through the public API.

pub mod bench;
