//! Random handlers and what they must do, worked out directly: without futures, without our tape.
//!
//! [`program`] makes a random handler as a tree; [`program::run`] is that tree as an async handler; [`oracle`]
//! evaluates the same tree step by step, keeping it alive between requests, and says what each request of an
//! exchange must be answered with.

pub mod oracle;
pub mod program;

/// A small generator of numbers: the same seed, the same numbers, on every machine.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5851_f42d_4c95_7f2d)
    }

    /// A number below `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % bound
    }

    pub fn chance(&mut self, of: u64) -> bool {
        self.below(of) == 0
    }
}
