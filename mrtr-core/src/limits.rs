//! Bounds on everything a peer controls. Each has a name that the error of its breach repeats.

use core::time::Duration;

/// What one side accepts and emits. Every bound is inclusive: exactly the bound is still fine.
///
/// The defaults suit a public server. Change single fields:
///
/// ```
/// let mut limits = mrtr_core::Limits::default();
/// limits.rounds = 4;
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Bytes of one JSON-RPC message. Default 4 MiB.
    pub message_bytes: usize,
    /// Nesting of arrays and objects in a message. Default 64.
    pub depth: usize,
    /// JSON values in a message, members and elements counted. Default 100,000.
    pub nodes: usize,
    /// Asks that a server sends in one round. Default 16.
    pub asks_sent: usize,
    /// Asks that a client accepts in one round, and answers that a server reads in one retry (further ones
    /// are not looked at unless they answer an outstanding ask). Default 64.
    pub asks_accepted: usize,
    /// Bytes of one answer as JSON. Default 64 KiB.
    pub answer_bytes: usize,
    /// Characters of a `requestState` that a server mints (and therefore accepts). Default 64 KiB.
    pub state_minted: usize,
    /// Characters of a `requestState` that a client accepts. Default 256 KiB.
    pub state_accepted: usize,
    /// Rounds with questions that a server asks in one exchange. Default 16.
    pub rounds: u32,
    /// State-only rounds that a server makes in one exchange. Default 60.
    pub state_only_rounds: u32,
    /// How long an exchange may take from its first request to its last retry. Default 3,600 s.
    pub exchange: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            message_bytes: 4 << 20,
            depth: 64,
            nodes: 100_000,
            asks_sent: 16,
            asks_accepted: 64,
            answer_bytes: 64 << 10,
            state_minted: 64 << 10,
            state_accepted: 256 << 10,
            rounds: 16,
            state_only_rounds: 60,
            exchange: Duration::from_secs(3_600),
        }
    }
}
