//! A world for the ledger: actors that each carry one copy of a retry through claim, handler, commits and end,
//! a store that they share, and the laws that hold at every step of it.

use core::{hash::Hasher as _, time::Duration};
use std::{
    collections::BTreeMap,
    hash::{DefaultHasher, Hash as _},
};

use mrtr_core::{
    Entropy, Timestamp,
    ledger::{
        Action, Claim, Command, End, Entry, Held, Memory, Once, Operation, Outcome, Phase, Policy, Refusal,
        ReplyKind, Retry, Run, RunAction, StoreEvent,
    },
};

use super::support::*;

/// What an actor's handler does.
#[derive(Clone, Copy, Debug)]
pub struct Script {
    pub answers: u8,
    pub work: Duration,
    pub commit: Option<Duration>,
    /// Whether it ends with a reply, or consumes nothing (and then panics in its commit, if it has one).
    pub replies: bool,
    /// Whether it stops when it is told that it was superseded.
    pub yields: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Observed {
    /// It sent its own reply, or nothing if it had none.
    Own,
    Replayed(Vec<u8>),
    Refused(Refusal),
}

pub struct Actor {
    number: usize,
    script: Script,
    /// Its clock is this many milliseconds ahead of the true one.
    ahead: i64,
    stage: Stage,
    /// The command that it waits for.
    pub out: Option<Command>,
    /// When it wants to be polled, in true time.
    pub wake: Option<Timestamp>,
    log: DefaultHasher,
    polled: Option<Timestamp>,
}

enum Stage {
    Claiming(Box<Claim>),
    /// `busy_until` while the handler or its commits work.
    Running {
        run: Box<Run>,
        busy_until: Option<Timestamp>,
        asked: bool,
    },
    Over,
}

impl Actor {
    pub fn new(number: usize, script: Script, ahead: i64, policy: &Policy, retry: Retry) -> Self {
        let entropy = Entropy::new([u8::try_from(number).unwrap() + 1; 32]);
        Self {
            number,
            script,
            ahead,
            stage: Stage::Claiming(Box::new(Claim::new(retry, policy, entropy))),
            out: None,
            wake: None,
            log: DefaultHasher::new(),
            polled: None,
        }
    }

    pub fn is_over(&self) -> bool {
        matches!(self.stage, Stage::Over)
    }

    pub fn is_claiming(&self) -> bool {
        matches!(self.stage, Stage::Claiming(_))
    }

    /// Equal for actors that have lived through the same.
    pub fn fingerprint(&self) -> u64 {
        self.log.finish()
    }

    pub fn clock(&self, now: Timestamp) -> Timestamp {
        Timestamp::from_unix_millis(now.as_unix_millis().checked_add_signed(self.ahead).unwrap())
    }

    fn true_time(&self, own: Timestamp) -> Timestamp {
        Timestamp::from_unix_millis(own.as_unix_millis().saturating_add_signed(-self.ahead))
    }

    /// It is gone, without a word.
    pub fn crash(&mut self, laws: &mut Laws) {
        self.stage = Stage::Over;
        (self.out, self.wake) = (None, None);
        self.log.write_u8(b'x');
        laws.crashed(self.number);
    }

    pub fn cancel(&mut self) {
        if let Stage::Claiming(claim) = &mut self.stage {
            claim.handle_cancel();
            self.log.write_u8(b'c');
        }
    }

    pub fn handle(&mut self, now: Timestamp, event: StoreEvent) {
        self.out = None;
        now.as_unix_millis().hash(&mut self.log);
        match &event {
            StoreEvent::Applied => self.log.write_u8(1),
            StoreEvent::Current(bytes) => bytes.hash(&mut self.log),
            StoreEvent::Full => self.log.write_u8(3),
            StoreEvent::Unavailable => self.log.write_u8(4),
        }
        let own = self.clock(now);
        match &mut self.stage {
            Stage::Claiming(claim) => claim.handle_store(own, event, &TestVault),
            Stage::Running { run, .. } => run.handle_store(own, event, &TestVault),
            Stage::Over => {}
        }
    }

    /// Does everything that can be done without the store or time.
    pub fn settle(&mut self, now: Timestamp, laws: &mut Laws) {
        if self.polled != Some(now) {
            self.polled = Some(now);
            now.as_unix_millis().hash(&mut self.log);
        }
        let own = self.clock(now);
        self.wake = None;
        loop {
            match &mut self.stage {
                Stage::Over => return,
                Stage::Claiming(claim) => match claim.poll(own) {
                    Action::Store(command) => self.out = Some(command),
                    Action::Wait(until) => return self.wake = Some(self.true_time(until)),
                    Action::Idle => return,
                    Action::Run(run) => {
                        assert!(matches!(claim.poll(own), Action::Idle), "law 7");
                        laws.started(self.number, self.script.answers);
                        if run.is_covered() {
                            laws.check_holder(now, self.number, self.script.answers);
                        }
                        let busy_until = Some(own.saturating_add(self.script.work));
                        self.stage = Stage::Running { run, busy_until, asked: false };
                    }
                    Action::Reply(reply) => self.end(laws, Observed::Replayed(reply.member().to_vec())),
                    Action::Refuse(refusal) => self.end(laws, Observed::Refused(refusal)),
                },
                Stage::Running { run, busy_until, asked } => {
                    if busy_until.is_some_and(|until| own >= until) {
                        *busy_until = None;
                        if self.script.commit.is_some() && !*asked {
                            *asked = true;
                            run.begin_commit();
                        } else {
                            finish(run, self.number, self.script);
                        }
                    }
                    match run.poll(own) {
                        RunAction::Store(command) => self.out = Some(command),
                        RunAction::Commit => {
                            laws.commit_begins(self.number);
                            *busy_until = Some(own.saturating_add(self.script.commit.unwrap()));
                        }
                        RunAction::Superseded => {
                            if self.script.yields && !*asked {
                                *busy_until = None;
                                self.script.replies = false;
                                run.finish(Outcome::NotConsumed, &TestVault);
                            }
                        }
                        RunAction::Wait(until) => {
                            let until = busy_until.map_or(until, |busy| busy.min(until));
                            return self.wake = Some(self.true_time(until));
                        }
                        RunAction::Idle => {
                            let until = *busy_until;
                            return self.wake = until.map(|until| self.true_time(until));
                        }
                        RunAction::End(end) => {
                            assert!(matches!(run.poll(own), RunAction::Idle), "law 7");
                            let observed = match end {
                                End::Own => Observed::Own,
                                End::Replay(reply) => Observed::Replayed(reply.member().to_vec()),
                                End::Refuse(refusal) => Observed::Refused(refusal),
                            };
                            self.end(laws, observed);
                        }
                    }
                }
            }
        }
    }

    fn end(&mut self, laws: &mut Laws, observed: Observed) {
        self.stage = Stage::Over;
        laws.ended(self.number, self.script, observed);
    }
}

fn finish(run: &mut Run, number: usize, script: Script) {
    let member = reply_of(number);
    let outcome =
        if script.replies { Outcome::Reply(ReplyKind::Complete, &member) } else { Outcome::NotConsumed };
    run.finish(outcome, &TestVault);
}

/// Every handler gives another reply, so that they can be told apart.
fn reply_of(number: usize) -> Vec<u8> {
    format!("{{\"by\":{number}}}").into_bytes()
}

/// What must hold, checked as it happens. Laws 1 to 5 and 7 (6 is the store's).
pub struct Laws {
    policy: Policy,
    pub store: Memory,
    owners: BTreeMap<[u8; 16], usize>,
    starts: Vec<usize>,
    commits: Vec<usize>,
    done: Option<(usize, u8)>,
    /// Replies that left, with the answers they were for.
    sent: Vec<(u8, Vec<u8>)>,
    pub ends: BTreeMap<usize, Option<Observed>>,
    /// The store has failed somebody: then replies may leave that it does not hold (B7).
    pub store_failed: bool,
}

impl Laws {
    pub fn new(policy: Policy) -> Self {
        Self {
            policy,
            store: Memory::default(),
            owners: BTreeMap::new(),
            starts: Vec::new(),
            commits: Vec::new(),
            done: None,
            sent: Vec::new(),
            ends: BTreeMap::new(),
            store_failed: false,
        }
    }

    pub fn starts(&self) -> usize {
        self.starts.len()
    }

    pub fn commits(&self) -> usize {
        self.commits.len()
    }

    /// What the store, the handlers and the peers have seen.
    pub fn fingerprint(&mut self, now: Timestamp) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.bytes(now).hash(&mut hasher);
        (&self.starts, &self.commits, &self.done, &self.sent, self.store_failed).hash(&mut hasher);
        hasher.finish()
    }

    /// Carries out a command that `actor` sent, whenever it arrives, and checks the change.
    pub fn apply(&mut self, now: Timestamp, actor: usize, command: &Command, actors: &[Actor]) -> StoreEvent {
        let before = self.entry(now);
        let event = self.store.apply(now, command);
        let after = self.entry(now);
        if before != after {
            self.changed(now, actor, before, after, actors);
        }
        event
    }

    fn bytes(&mut self, now: Timestamp) -> Option<Vec<u8>> {
        match self.store.apply(now, &Command::new(key(), Operation::Get)) {
            StoreEvent::Current(current) => current,
            other => panic!("{other:?}"),
        }
    }

    fn entry(&mut self, now: Timestamp) -> Option<Entry> {
        self.bytes(now).map(|bytes| Entry::decode(&bytes).unwrap())
    }

    fn changed(
        &mut self,
        now: Timestamp,
        by: usize,
        before: Option<Entry>,
        after: Option<Entry>,
        actors: &[Actor],
    ) {
        if let Some(after) = &after {
            let new_owner = before.as_ref().is_none_or(|before| before.owner() != after.owner());
            if new_owner {
                self.owners.entry(*after.owner()).or_insert(by);
                assert_eq!(self.owners[after.owner()], by, "only its run writes an owner's name");
            }
        }
        let owner = |entry: &Entry| self.owners[entry.owner()];
        let lease_over = |held: &Held| actors[self.owners[&held.owner]].clock(now) >= held.lease_until;
        let legal = match (&before, &after) {
            (None, None) => true,
            (None, Some(Entry::Held(new))) => new.phase == Phase::Running && new.waiters.is_empty(),
            (None, Some(new @ (Entry::Done(_) | Entry::Lost(_)))) => owner(new) == by,
            (Some(Entry::Held(old)), Some(Entry::Held(new))) => {
                let live = new.waiters.iter().filter(|waiter| waiter.until > now).count();
                let bounded = live <= self.policy.waiters;
                if old.owner == new.owner {
                    let forward = old.phase == new.phase
                        || (old.phase, new.phase) == (Phase::Running, Phase::Committing)
                            && self.owners[&new.owner] == by;
                    bounded && forward && old.digest == new.digest && old.lease_until <= new.lease_until
                } else {
                    // Law 1: nobody takes over before the lease is out on its holder's own clock.
                    bounded
                        && (old.phase, new.phase) == (Phase::Running, Phase::Running)
                        && old.once == Once::AtLeastOnce
                        && lease_over(old)
                }
            }
            (Some(old @ Entry::Held(_)), Some(Entry::Done(done))) => {
                old.owner() == &done.owner && owner(old) == by && old.digest() == &done.digest
            }
            (Some(old @ Entry::Held(held)), Some(Entry::Lost(lost))) => {
                let same = held.owner == lost.owner && held.digest == lost.digest;
                let over = lease_over(held)
                    && (held.phase == Phase::Committing || self.policy.once == Once::AtMostOnce);
                same && (owner(old) == by || over)
            }
            (Some(old @ Entry::Held(_)), None) => owner(old) == by && !self.commits.contains(&by),
            (Some(old @ Entry::Lost(lost)), Some(Entry::Done(done))) => {
                owner(old) == by && lost.owner == done.owner && lost.digest == done.digest
            }
            // Law 4: done is done; and what is lost stays so for everybody but its own run.
            (Some(Entry::Lost(_) | Entry::Done(_)), _) => false,
            _ => false,
        };
        assert!(legal, "actor {by} changed {before:?} to {after:?}");
        if let Some(Entry::Done(done)) = &after {
            self.done = Some((self.owners[&done.owner], done.digest.as_bytes()[0]));
        }
    }

    fn started(&mut self, actor: usize, which: u8) {
        self.starts.push(actor);
        // Law 2, and more: not even after a run that consumed nothing.
        if self.policy.once == Once::AtMostOnce {
            assert_eq!(self.starts.len(), 1, "law 2: started by {:?}", self.starts);
        }
        // Laws 3, 4 and 5: after a commit or an end nobody runs, with whatever answers.
        assert!(self.commits.is_empty(), "law 3: actor {actor} runs after a commit of {:?}", self.commits);
        assert_eq!(self.done, None, "law 4: actor {actor} runs with {which} after the end");
    }

    /// Law 1: whoever starts is the one that the store names.
    fn check_holder(&mut self, now: Timestamp, actor: usize, which: u8) {
        match self.entry(now) {
            Some(Entry::Held(held)) => {
                assert_eq!(self.owners[&held.owner], actor, "law 1");
                assert_eq!(held.digest, answers(which), "law 5");
            }
            other => panic!("law 1: actor {actor} starts over {other:?}"),
        }
    }

    fn commit_begins(&mut self, actor: usize) {
        self.commits.push(actor);
        assert_eq!(self.commits.len(), 1, "law 3: commits of {:?}", self.commits);
    }

    fn crashed(&mut self, actor: usize) {
        assert!(self.ends.insert(actor, None).is_none());
    }

    fn ended(&mut self, actor: usize, script: Script, observed: Observed) {
        let reply = match &observed {
            Observed::Own if script.replies => Some(reply_of(actor)),
            Observed::Replayed(member) => {
                let (owner, which) = self.done.expect("law 4: a stored reply comes from an end");
                assert_eq!(which, script.answers, "law 5");
                assert_eq!(*member, reply_of(owner), "law 4");
                Some(member.clone())
            }
            Observed::Own | Observed::Refused(_) => None,
        };
        // Law 4: all copies get the same bytes, slow runs too, unless the store failed somebody (B7).
        if let Some(reply) = reply {
            if !self.store_failed {
                for (which, other) in &self.sent {
                    assert_eq!((*which, other), (script.answers, &reply), "laws 4 and 5");
                }
            }
            self.sent.push((script.answers, reply));
        }
        assert!(self.ends.insert(actor, Some(observed)).is_none(), "law 7: one end");
    }
}
