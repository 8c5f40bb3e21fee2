//! Shared by the tests of the ledger: a vault, and loops over a store in memory.

use core::time::Duration;

use mrtr_core::{
    Entropy, Timestamp,
    ledger::{
        Action, AnswersDigest, Claim, Command, End, Entry, Key, Memory, Operation, Outcome, Policy, Refusal,
        ReplyKind, Retry, Run, RunAction, StoreEvent, StoredReply, Vault,
    },
};

/// Stands in for a ring: hides the text and notices changes, nothing more.
pub struct TestVault;

impl Vault for TestVault {
    fn seal(&self, plaintext: &[u8], _: Entropy) -> Vec<u8> {
        let sum = plaintext.iter().fold(7u8, |sum, byte| sum.rotate_left(1) ^ byte);
        plaintext.iter().map(|byte| byte ^ 0x5a).chain([sum]).collect()
    }

    fn open(&self, sealed: &[u8]) -> Option<Vec<u8>> {
        let (sum, hidden) = sealed.split_last()?;
        let plaintext: Vec<u8> = hidden.iter().map(|byte| byte ^ 0x5a).collect();
        (plaintext.iter().fold(7u8, |sum, byte| sum.rotate_left(1) ^ byte) == *sum).then_some(plaintext)
    }
}

pub const RESULT: &[u8] = br#"{"resultType":"complete","content":[]}"#;
pub const COMPLETE: Outcome<'static> = Outcome::Reply(ReplyKind::Complete, RESULT);

/// Seconds after the beginning of the test.
pub fn at(seconds: f64) -> Timestamp {
    Timestamp::from_unix_millis(1_000_000_000).saturating_add(Duration::from_secs_f64(seconds))
}

pub fn key() -> Key {
    Key::new("billing", [1; 16], 0)
}

pub fn answers(which: u8) -> AnswersDigest {
    AnswersDigest::from_bytes([which; 32])
}

/// The default policy with a change.
pub fn policy(change: impl FnOnce(&mut Policy)) -> Policy {
    let mut policy = Policy::default();
    change(&mut policy);
    policy
}

/// A retry with answers 1 whose state expires after 600 s.
pub fn retry() -> Retry {
    Retry::new(key(), answers(1), at(600.0))
}

/// The claims of a test, each with entropy of its own, at one store.
pub struct Bench {
    pub store: Memory,
    pub policy: Policy,
    /// Commands carried out.
    pub commands: usize,
    claims: u8,
}

impl Bench {
    pub fn new(policy: Policy) -> Self {
        Self { store: Memory::default(), policy, commands: 0, claims: 0 }
    }

    pub fn claim(&mut self, retry: Retry) -> Claim {
        self.claims += 1;
        Claim::new(retry, &self.policy, Entropy::new([self.claims; 32]))
    }

    pub fn apply(&mut self, seconds: f64, command: &Command) -> StoreEvent {
        self.commands += 1;
        self.store.apply(at(seconds), command)
    }

    /// Polls a claim until it wants something else than the store.
    pub fn drive(&mut self, seconds: f64, claim: &mut Claim) -> Action {
        loop {
            match claim.poll(at(seconds)) {
                Action::Store(command) => {
                    let event = self.apply(seconds, &command);
                    claim.handle_store(at(seconds), event, &TestVault);
                }
                other => return other,
            }
        }
    }

    /// Polls a claim with a store that never answers, pauses included, until it wants something else.
    pub fn drive_in_the_dark(&mut self, seconds: f64, claim: &mut Claim) -> (usize, Action) {
        let (mut now, mut asked) = (at(seconds), 0);
        loop {
            match claim.poll(now) {
                Action::Store(_) => {
                    asked += 1;
                    claim.handle_store(now, StoreEvent::Unavailable, &TestVault);
                }
                Action::Wait(until) => now = until,
                other => return (asked, other),
            }
        }
    }

    /// Polls a run until it wants something else than the store.
    pub fn drive_run(&mut self, seconds: f64, run: &mut Run) -> RunAction {
        loop {
            match run.poll(at(seconds)) {
                RunAction::Store(command) => {
                    let event = self.apply(seconds, &command);
                    run.handle_store(at(seconds), event, &TestVault);
                }
                other => return other,
            }
        }
    }

    /// Polls a run with a store that never answers, pauses included, until it wants something else.
    pub fn drive_run_in_the_dark(&mut self, seconds: f64, run: &mut Run) -> (usize, RunAction) {
        let (mut now, mut asked) = (at(seconds), 0);
        loop {
            match run.poll(now) {
                RunAction::Store(_) => {
                    asked += 1;
                    run.handle_store(now, StoreEvent::Unavailable, &TestVault);
                }
                RunAction::Wait(until) => now = until,
                other => return (asked, other),
            }
        }
    }

    /// A claim that must be granted at once.
    pub fn run(&mut self, seconds: f64) -> Box<Run> {
        self.run_of(seconds, retry())
    }

    pub fn run_of(&mut self, seconds: f64, retry: Retry) -> Box<Run> {
        let mut claim = self.claim(retry);
        match self.drive(seconds, &mut claim) {
            Action::Run(run) => run,
            other => panic!("not granted: {other:?}"),
        }
    }

    /// Runs with an outcome, to an end that must be the run's own.
    pub fn finish(&mut self, seconds: f64, mut run: Box<Run>, outcome: Outcome<'_>) {
        run.finish(outcome, &TestVault);
        match self.drive_run(seconds, &mut run) {
            RunAction::End(End::Own) => {}
            other => panic!("ended with {other:?}"),
        }
    }

    /// Begins the commits of a run; they must be granted.
    pub fn commit(&mut self, seconds: f64, run: &mut Run) {
        run.begin_commit();
        match self.drive_run(seconds, run) {
            RunAction::Commit => {}
            other => panic!("not granted: {other:?}"),
        }
    }

    /// A claim that must be refused at once.
    pub fn refused(&mut self, seconds: f64, retry: Retry) -> Refusal {
        let mut claim = self.claim(retry);
        match self.drive(seconds, &mut claim) {
            Action::Refuse(refusal) => refusal,
            other => panic!("not refused: {other:?}"),
        }
    }

    /// A claim that must get a stored reply at once.
    pub fn replayed(&mut self, seconds: f64, retry: Retry) -> StoredReply {
        let mut claim = self.claim(retry);
        match self.drive(seconds, &mut claim) {
            Action::Reply(reply) => reply,
            other => panic!("no reply: {other:?}"),
        }
    }

    /// What the store holds under [`key`].
    pub fn entry(&mut self, seconds: f64) -> Option<Entry> {
        self.bytes(seconds).map(|bytes| Entry::decode(&bytes).unwrap())
    }

    pub fn bytes(&mut self, seconds: f64) -> Option<Vec<u8>> {
        match self.store.apply(at(seconds), &Command::new(key(), Operation::Get)) {
            StoreEvent::Current(current) => current,
            other => panic!("{other:?}"),
        }
    }

    /// Puts bytes under a key, as somebody with access to the store could.
    pub fn put(&mut self, seconds: f64, key: Key, new: Option<Vec<u8>>) {
        let StoreEvent::Current(expected) = self.store.apply(at(seconds), &Command::new(key, Operation::Get))
        else {
            panic!()
        };
        let operation = Operation::CompareAndSet { expected, new, expires: at(10_000.0) };
        assert_eq!(self.store.apply(at(seconds), &Command::new(key, operation)), StoreEvent::Applied);
    }
}
