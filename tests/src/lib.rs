//! Support for the tests of mrtr: everything here goes through the public API, with virtual time and fixed
//! entropy.

pub mod form;
pub mod legacy;
pub mod model;
pub mod world;
