//! The manual: prose whose code runs with the tests.
//!
//! - [how replay works](how_replay_works): which lines of a handler run twice, and what follows from that
//! - [sealing and rotation](sealing_and_rotation): keys, what a state is bound to, how a key is replaced

#[cfg(feature = "std")]
pub mod how_replay_works;
pub mod sealing_and_rotation;
