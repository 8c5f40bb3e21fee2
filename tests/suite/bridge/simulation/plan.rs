//! What is to happen in each exchange, from a seed: what the upstream asks, what the host does, what goes wrong.

use serde_json::{Value, json};

/// A random source that is the same on every machine.
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub(super) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    pub(super) fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

/// What goes wrong in an exchange.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Fault {
    None,
    /// A retry is sent twice.
    Twice,
    /// The stream of a retry closes, and the retry is sent again.
    Dropped,
    /// Nobody comes back.
    Abandoned,
    /// The upstream's process dies.
    Dies,
    /// The upstream never responds.
    Hangs,
    /// Somebody else shows the state, and the owner shows it with other arguments.
    Stolen,
    /// Answers come one by one.
    Partial,
    /// The upstream takes its questions back.
    TakenBack,
}

/// One exchange: what the upstream asks, what the host does.
pub(super) struct Plan {
    pub(super) principal: String,
    /// Questions in each round.
    pub(super) rounds: Vec<u64>,
    pub(super) fault: Fault,
    pub(super) legacy_host: bool,
}

pub(super) fn plan(k: u64, seed: u64) -> Plan {
    let mut random = Random(seed ^ (k + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    for _ in 0..4 {
        random.next();
    }
    let faults = [
        Fault::Twice,
        Fault::Dropped,
        Fault::Abandoned,
        Fault::Dies,
        Fault::Hangs,
        Fault::Stolen,
        Fault::Partial,
        Fault::TakenBack,
    ];
    let fault = if random.chance(60) { Fault::None } else { faults[random.below(8) as usize] };
    let rounds = (0..random.below(4)).map(|_| 1 + random.below(2)).collect();
    Plan { principal: format!("p{}", random.below(3)), rounds, fault, legacy_host: random.chance(30) }
}

pub(super) fn message(k: u64, round: usize, question: u64) -> String {
    format!("{k}/{round}/{question}")
}

/// What a host answers to a question: nothing else is right.
pub(super) fn answer(message: &str) -> Value {
    json!({"action": "accept", "content": {"n": format!("to {message}")}})
}

/// What the tool says in the end, with every answer it got.
pub(super) fn outcome(k: u64, rounds: &[u64]) -> Value {
    let answers: Vec<String> = rounds
        .iter()
        .enumerate()
        .flat_map(|(round, count)| {
            (0..*count).map(move |question| format!("to {}", message(k, round, question)))
        })
        .collect();
    json!([{"type": "text", "text": format!("{k}: {}", answers.join(", "))}])
}
