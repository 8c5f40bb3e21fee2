//! The run: whoever was told to run the handler keeps the claim, begins the commits and settles the entry.

use core::fmt;

use super::{
    Command, Once, Operation, Outcome, Policy, Refusal, Retry, StoreEvent, StoredReply, Vault,
    entry::{Done, Entry, Held, Lost, Phase},
    reply,
};
use crate::{entropy::Entropy, time::Timestamp, trace};

mod missed;

/// What the embedder does next for a run.
#[derive(Debug)]
#[must_use = "a run does nothing by itself"]
#[allow(clippy::exhaustive_enums)]
pub enum RunAction {
    /// Carry this out and report with [`Run::handle_store`]. Given out once.
    Store(Command),
    /// Poll again at this time: the lease is to be renewed, or a command to be tried again.
    Wait(Timestamp),
    /// The claim was lost to another run, or marked lost, because this one gave no sign of life for a whole
    /// lease. No commit can begin any more, so the handler may be stopped. Given out once, as advice; end with
    /// [`Run::finish`] all the same. A handler that is stopped has no reply of its own: tell the peer what
    /// [`Refusal::Busy`] says, and its next copy gets the reply of the other run.
    Superseded,
    /// Begin the commits now (A12). From here the run must not be cancelled with its connection (B6). Given out
    /// once, after [`Run::begin_commit`].
    Commit,
    /// The run has ended; what to send is inside. Given out once.
    End(End),
    /// Nothing: a command is out, or there is nothing to do until the handler ends.
    Idle,
}

/// What is sent when a run has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums)]
pub enum End {
    /// The reply that the run itself made.
    Own,
    /// Another run was faster: its reply, under this request's id, so that all copies get the same (B3).
    Replay(StoredReply),
    /// The run may not commit or reply; nothing of it counts.
    Refuse(Refusal),
}

/// A claim that was granted: at most one run holds an entry while its lease lasts.
///
/// Poll it while the handler runs, so that the lease is renewed; call [`begin_commit`](Self::begin_commit)
/// before the first `on_commit` and [`finish`](Self::finish) at the end, and poll until [`RunAction::End`].
/// One command for each of the two, if nobody else waits. Dropped without an end it counts as crashed: the
/// lease runs out.
#[must_use = "a run that is dropped counts as crashed"]
pub struct Run {
    retry: Retry,
    policy: Policy,
    owner: [u8; 16],
    entropy: Option<Entropy>,
    /// `None`: the store was down and the policy is to run all the same (B7).
    claim: Option<Base>,
    wish: Wish,
    state: State,
    /// The commits may have begun.
    began: bool,
    /// Advice is due.
    superseded: bool,
    renew_at: Option<Timestamp>,
    again_at: Option<Timestamp>,
    failures: u8,
    turns: u8,
}

/// What we believe the store holds.
enum Base {
    Nothing,
    Held(Held),
    Lost(Lost),
}

/// What the embedder wants.
enum Wish {
    /// Keep the claim.
    Keep,
    /// Begin the commits.
    Commit,
    /// Leave this behind; `None` frees the state.
    Settle(Option<Entry>),
}

enum State {
    Resting,
    /// A command is out that would put this there.
    Out(Step, Option<Held>),
    /// To be given out.
    Commit,
    /// To be given out.
    End(End),
    Over,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    Renew,
    Commit,
    Settle,
}

impl Run {
    pub(super) fn covered(
        retry: Retry,
        policy: Policy,
        owner: [u8; 16],
        held: Held,
        entropy: Option<Entropy>,
    ) -> Self {
        let mut run = Self::uncovered(retry, policy, owner);
        run.rest_until(&held);
        run.claim = Some(Base::Held(held));
        run.entropy = entropy;
        run
    }

    pub(super) const fn uncovered(retry: Retry, policy: Policy, owner: [u8; 16]) -> Self {
        Self {
            retry,
            policy,
            owner,
            entropy: None,
            claim: None,
            wish: Wish::Keep,
            state: State::Resting,
            began: false,
            superseded: false,
            renew_at: None,
            again_at: None,
            failures: 0,
            turns: 0,
        }
    }

    /// Whether the ledger stands behind this run; not so if the store was down at the claim and the policy is
    /// [`WhenDown::FailOpen`](super::WhenDown::FailOpen).
    #[must_use]
    pub const fn is_covered(&self) -> bool {
        self.claim.is_some()
    }

    /// Wants to begin the commits. They begin when a poll gives out [`RunAction::Commit`]; if it gives out
    /// [`RunAction::End`] instead, they never do.
    pub fn begin_commit(&mut self) {
        if matches!(self.wish, Wish::Keep) && !self.began {
            self.wish = Wish::Commit;
            self.fresh_start();
        }
    }

    /// Says how the run ended. Only the first call counts.
    ///
    /// A reply is sealed and kept until the state expires, if it is not too long (B3, B5). What was not
    /// consumed is free again, or lost if a commit had begun or the policy is
    /// [`Once::AtMostOnce`] (B5, B6).
    pub fn finish(&mut self, outcome: Outcome<'_>, vault: &dyn Vault) {
        if matches!(self.wish, Wish::Settle(_)) {
            return;
        }
        if matches!(self.state, State::Commit) {
            // Nobody was told to begin.
            self.state = State::Resting;
        }
        let digest = self.retry.digest;
        let owner = self.owner;
        self.wish = Wish::Settle(match outcome {
            Outcome::Reply(kind, member) => {
                let sealed = match self.entropy.take() {
                    Some(entropy) if member.len() <= self.policy.effective_reply_bytes() => {
                        let entropy = Entropy::new(entropy.expand(b"ledger/reply"));
                        let sealed = reply::seal(vault, entropy, &self.retry.key, &digest, kind, member);
                        (sealed.len() <= self.policy.effective_reply_bytes().saturating_add(SEAL_BYTES))
                            .then_some(sealed)
                    }
                    _ => None,
                };
                Some(Entry::Done(Done { digest, owner, sealed }))
            }
            Outcome::NotConsumed if self.began || self.policy.once == Once::AtMostOnce => {
                Some(Entry::Lost(Lost { digest, owner }))
            }
            Outcome::NotConsumed => None,
        });
        self.fresh_start();
    }

    /// What to do next. `now` is this replica's clock.
    pub fn poll(&mut self, now: Timestamp) -> RunAction {
        match core::mem::replace(&mut self.state, State::Over) {
            State::Resting => {}
            State::Commit => {
                self.state = State::Resting;
                self.began = true;
                return RunAction::Commit;
            }
            State::End(end) => {
                if end != End::Own {
                    trace::debug!(entry = %self.retry.key, "run ended without its own reply");
                }
                return RunAction::End(end);
            }
            state @ (State::Out(..) | State::Over) => {
                self.state = state;
                return RunAction::Idle;
            }
        }
        self.state = State::Resting;
        let Some(base) = &self.claim else {
            return self.poll_uncovered();
        };
        if let Some(at) = self.again_at.filter(|at| now < *at) {
            return RunAction::Wait(at);
        }
        let made;
        let (step, new) = match (&self.wish, base) {
            (Wish::Keep, _) if self.superseded => {
                self.superseded = false;
                return RunAction::Superseded;
            }
            (Wish::Keep, Base::Held(held)) => match self.renew_at {
                None => return RunAction::Idle,
                Some(at) if now < at => return RunAction::Wait(at),
                Some(_) => {
                    made = Entry::Held(self.renewed(held, held.phase, now));
                    (Step::Renew, Some(&made))
                }
            },
            (Wish::Commit, Base::Held(held)) => {
                made = Entry::Held(self.renewed(held, Phase::Committing, now));
                (Step::Commit, Some(&made))
            }
            (Wish::Settle(last), _) => (Step::Settle, last.as_ref()),
            // A run believes in its claim until it settles.
            (Wish::Keep | Wish::Commit, Base::Nothing | Base::Lost(_)) => return RunAction::Idle,
        };
        let expected = match base {
            Base::Nothing => None,
            Base::Held(held) => Some(Entry::Held(held.clone()).encode()),
            Base::Lost(lost) => Some(Entry::Lost(lost.clone()).encode()),
        };
        let operation = Operation::CompareAndSet {
            expected,
            new: new.map(Entry::encode),
            expires: self.retry.kept_until(&self.policy, now, new),
        };
        let sent = match new {
            Some(Entry::Held(held)) => Some(held.clone()),
            Some(Entry::Done(_) | Entry::Lost(_)) | None => None,
        };
        self.state = State::Out(step, sent);
        RunAction::Store(Command { key: self.retry.key, operation })
    }

    /// Reports what the store said to the last command. Ignored when none is out.
    pub fn handle_store(&mut self, now: Timestamp, event: StoreEvent, vault: &dyn Vault) {
        let (step, sent) = match core::mem::replace(&mut self.state, State::Resting) {
            State::Out(step, sent) => (step, sent),
            state @ (State::Resting | State::Commit | State::End(_) | State::Over) => {
                self.state = state;
                return;
            }
        };
        match event {
            StoreEvent::Applied => {
                self.fresh_start();
                if let Some(held) = sent {
                    self.hold(held);
                }
                match step {
                    Step::Renew => {}
                    Step::Commit => self.committing(),
                    Step::Settle => self.state = State::End(End::Own),
                }
            }
            StoreEvent::Current(current) => {
                self.failures = 0;
                self.turns = self.turns.saturating_add(1);
                if self.turns > Policy::TURNS {
                    self.give_up(step, now);
                } else {
                    self.missed(step, current.as_deref(), now, vault);
                }
            }
            StoreEvent::Full => match &mut self.wish {
                // Without its reply the entry takes no more room than the claim did.
                Wish::Settle(Some(Entry::Done(done))) if step == Step::Settle && done.sealed.is_some() => {
                    done.sealed = None;
                }
                Wish::Settle(_) | Wish::Commit | Wish::Keep => self.failed(step, now),
            },
            StoreEvent::Unavailable => self.failed(step, now),
        }
    }

    fn poll_uncovered(&mut self) -> RunAction {
        match self.wish {
            Wish::Keep => RunAction::Idle,
            Wish::Commit => {
                self.wish = Wish::Keep;
                self.began = true;
                RunAction::Commit
            }
            Wish::Settle(_) => {
                self.state = State::Over;
                RunAction::End(End::Own)
            }
        }
    }

    fn fresh_start(&mut self) {
        self.again_at = None;
        self.failures = 0;
        self.turns = 0;
    }

    fn renewed(&self, held: &Held, phase: Phase, now: Timestamp) -> Held {
        let mut held = held.clone();
        held.phase = phase;
        held.lease_until = held.lease_until.max(now.saturating_add(self.policy.effective_lease()));
        held.waiters.retain(|waiter| waiter.until > now);
        held
    }

    fn hold(&mut self, held: Held) {
        self.rest_until(&held);
        self.claim = Some(Base::Held(held));
    }

    /// Sets the time of the next renewal: after a third of the lease, so that two can fail.
    fn rest_until(&mut self, held: &Held) {
        let left = self.policy.effective_lease() / 3 * 2;
        let millis = u64::try_from(left.as_millis()).unwrap_or(u64::MAX);
        self.renew_at =
            Some(Timestamp::from_unix_millis(held.lease_until.as_unix_millis().saturating_sub(millis)));
    }

    /// `Committing` is stored: the commits may begin, unless the embedder has ended the run meanwhile.
    fn committing(&mut self) {
        if matches!(self.wish, Wish::Commit) {
            self.wish = Wish::Keep;
            self.state = State::Commit;
        }
    }

    /// The store did not answer.
    fn failed(&mut self, step: Step, now: Timestamp) {
        self.failures = self.failures.saturating_add(1);
        if step == Step::Renew || self.failures >= Policy::TRIES {
            self.give_up(step, now);
        } else {
            self.again_at = Some(now.saturating_add(Policy::pause(self.failures)));
        }
    }

    /// Ends without the store (B7): no commit begins that is not written down, but a reply goes out. A renewal
    /// is tried again before long.
    fn give_up(&mut self, step: Step, now: Timestamp) {
        match step {
            Step::Renew => {
                self.fresh_start();
                self.renew_at = Some(now.saturating_add(self.policy.effective_lease() / 10));
            }
            Step::Commit => self.state = State::End(End::Refuse(Refusal::StoreDown)),
            Step::Settle => {
                trace::warn!(entry = %self.retry.key, "the end of a run could not be stored");
                self.state = State::End(End::Own);
            }
        }
    }
}

/// What a seal may add to a reply: version, key id, nonce, tag, with room to spare.
const SEAL_BYTES: usize = 4 << 10;

impl fmt::Debug for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Run")
            .field("key", &self.retry.key)
            .field("covered", &self.claim.is_some())
            .field("began", &self.began)
            .finish_non_exhaustive()
    }
}
