//! The claim: one copy of a retry asks whether it may run.

use alloc::{boxed::Box, vec::Vec};
use core::{fmt, time::Duration};

use super::{
    Command, Operation, Policy, Refusal, Retry, Run, StoreEvent, StoredReply, Vault, WhenDown,
    entry::{Entry, Held, Lost, Phase, Waiter},
    standing::{Standing, judge},
};
use crate::{entropy::Entropy, time::Timestamp, trace};

/// First and longest pause between two looks at an entry that another copy holds.
const FIRST_LOOK: Duration = Duration::from_millis(25);
const LONGEST_LOOK: Duration = Duration::from_secs(1);

/// What the embedder does next for a claim.
#[derive(Debug)]
#[must_use = "a claim does nothing by itself"]
#[allow(clippy::exhaustive_enums)]
pub enum Action {
    /// Carry this out and report with [`Claim::handle_store`]. Given out once.
    Store(Command),
    /// Poll again at this time. When somebody tells earlier that the entry changed, call
    /// [`Claim::handle_change`] first.
    Wait(Timestamp),
    /// Run the handler. The claim has ended.
    Run(Box<Run>),
    /// Send this under the request's own id. The claim has ended (B3).
    Reply(StoredReply),
    /// Send [`Refusal::to_error`]. The claim has ended.
    Refuse(Refusal),
    /// Nothing: a command is out, or the end has been given out.
    Idle,
}

/// The claim of one retry: ends, given time and a store that answers or is said not to, in exactly one of
/// [`Action::Run`], [`Action::Reply`] and [`Action::Refuse`].
///
/// Loop: [`poll`](Self::poll), do as it says, report, again. Uncontended it takes one command.
#[must_use = "a claim does nothing by itself"]
pub struct Claim {
    retry: Retry,
    policy: Policy,
    /// Until the run takes it over.
    entropy: Option<Entropy>,
    owner: [u8; 16],
    waiter: [u8; 8],
    state: State,
    /// A compare-and-set that makes the entry ours was sent and nothing seen since rules out that it took
    /// place.
    maybe_taken: bool,
    cancelled: bool,
    /// The end of our wait, fixed by the first live lease we see.
    wait_end: Option<Timestamp>,
    look: Duration,
    failures: u8,
    turns: u8,
}

enum State {
    /// To be made into a command by the next poll, once it is that time.
    Ready(Step, Option<Timestamp>),
    /// The command is out.
    Out(Step, Sent),
    /// To be given out by the next poll.
    End(End),
    Over,
}

/// What the next command is for.
#[derive(Clone)]
enum Step {
    /// See what is there.
    Look,
    /// Make it ours: a free entry, an abandoned one, or our own whose lease ran out while we asked.
    Take(Option<Held>),
    /// Take a waiter's place.
    Join(Held),
    /// Mark a dead run as lost.
    Bury(Held),
    /// Give back what we hold before anything ran, and say why.
    Free(Held, Refusal),
}

/// What a command would put there, if it puts something there that is ours.
type Sent = Option<Held>;

enum End {
    Run(Held),
    Uncovered,
    Reply(StoredReply),
    Refuse(Refusal),
}

impl Claim {
    /// Begins a claim. Nothing is asked of the store before the first poll.
    ///
    /// `entropy` is drawn for this claim alone: it tells this claim from all others of the same retry.
    pub fn new(retry: Retry, policy: &Policy, entropy: Entropy) -> Self {
        let names: [u8; 24] = entropy.expand(b"ledger/claim");
        let (mut owner, mut waiter) = ([0; 16], [0; 8]);
        for (to, from) in owner.iter_mut().chain(&mut waiter).zip(names) {
            *to = from;
        }
        Self {
            retry,
            policy: *policy,
            entropy: Some(entropy),
            owner,
            waiter,
            // Most claims find the state free, so the first command takes it; if it is not free, the answer
            // says what is there.
            state: State::Ready(Step::Take(None), None),
            maybe_taken: false,
            cancelled: false,
            wait_end: None,
            look: FIRST_LOOK,
            failures: 0,
            turns: 0,
        }
    }

    /// What to do next. `now` is this replica's clock.
    pub fn poll(&mut self, now: Timestamp) -> Action {
        match core::mem::replace(&mut self.state, State::Over) {
            State::Ready(step, Some(at)) if now < at => {
                self.state = State::Ready(step, Some(at));
                Action::Wait(at)
            }
            State::Ready(step, _) => self.command(step, now),
            State::Out(step, sent) => {
                self.state = State::Out(step, sent);
                Action::Idle
            }
            State::End(End::Run(held)) if now >= held.lease_until => {
                self.command(Step::Take(Some(held)), now)
            }
            State::End(End::Run(held)) => {
                let run =
                    Run::covered(self.retry.clone(), self.policy, self.owner, held, self.entropy.take());
                Action::Run(Box::new(run))
            }
            State::End(End::Uncovered) => {
                let run = Run::uncovered(self.retry.clone(), self.policy, self.owner);
                Action::Run(Box::new(run))
            }
            State::End(End::Reply(reply)) => Action::Reply(reply),
            State::End(End::Refuse(refusal)) => {
                trace::debug!(entry = %self.retry.key, reason = %refusal, "retry refused by the ledger");
                if refusal == Refusal::Lost {
                    trace::warn!(entry = %self.retry.key, "outcome of an earlier run is unknown");
                }
                Action::Refuse(refusal)
            }
            State::Over => Action::Idle,
        }
    }

    /// Reports what the store said to the last command. Ignored when none is out.
    pub fn handle_store(&mut self, now: Timestamp, event: StoreEvent, vault: &dyn Vault) {
        let (step, sent) = match core::mem::replace(&mut self.state, State::Over) {
            State::Out(step, sent) => (step, sent),
            state @ (State::Ready(..) | State::End(_) | State::Over) => {
                self.state = state;
                return;
            }
        };
        self.state = match event {
            StoreEvent::Applied => self.applied(step, sent, now),
            StoreEvent::Current(current) => {
                self.failures = 0;
                if !matches!(step, Step::Look) {
                    self.turns = self.turns.saturating_add(1);
                }
                self.decide(current.as_deref(), now, vault)
            }
            StoreEvent::Full => match step {
                Step::Look | Step::Take(_) => self.store_down(now),
                Step::Join(_) => refuse(Refusal::Busy),
                Step::Bury(_) => refuse(Refusal::Lost),
                Step::Free(_, reason) => refuse(reason),
            },
            StoreEvent::Unavailable => self.failed(step, now),
        };
    }

    /// The entry may have changed: look now instead of at the end of the pause. For stores that can notify;
    /// wrong or too many calls cost a look each.
    pub fn handle_change(&mut self) {
        if let State::Ready(Step::Look, at) = &mut self.state {
            *at = None;
        }
    }

    /// The request was cancelled or its connection closed. The claim ends in [`Refusal::Cancelled`] unless it
    /// has ended already; if the state was taken by then, it is given back first, for no handler has run (B5).
    ///
    /// A claim that is dropped instead leaves, at worst, a lease that runs out.
    pub fn handle_cancel(&mut self) {
        self.cancelled = true;
        self.state = match core::mem::replace(&mut self.state, State::Over) {
            State::End(End::Run(held)) | State::Ready(Step::Free(held, _), _) => {
                State::Ready(Step::Free(held, Refusal::Cancelled), None)
            }
            State::Ready(..) if self.maybe_taken => State::Ready(Step::Look, None),
            State::Ready(..) | State::End(_) => refuse(Refusal::Cancelled),
            state @ (State::Out(..) | State::Over) => state,
        };
    }

    /// Writes the command for `step`.
    fn command(&mut self, step: Step, now: Timestamp) -> Action {
        let (expected, new) = match &step {
            Step::Look => {
                self.state = State::Out(step, None);
                return Action::Store(Command { key: self.retry.key, operation: Operation::Get });
            }
            Step::Take(from) => {
                if let Some(reason) = self.too_late(now) {
                    // What may be ours is not left behind: the look finds it, and it is given back.
                    return if self.maybe_taken {
                        self.command(Step::Look, now)
                    } else {
                        Action::Refuse(reason)
                    };
                }
                self.maybe_taken = true;
                (from.clone(), Some(Entry::Held(self.claimed(from.as_ref(), now))))
            }
            Step::Join(from) => {
                let mut held = from.clone();
                held.waiters.retain(|waiter| waiter.until > now);
                held.waiters.push(Waiter { id: self.waiter, until: self.wait_end.unwrap_or(now) });
                (Some(from.clone()), Some(Entry::Held(held)))
            }
            Step::Bury(dead) => {
                (Some(dead.clone()), Some(Entry::Lost(Lost { digest: dead.digest, owner: dead.owner })))
            }
            Step::Free(held, _) => (Some(held.clone()), None),
        };
        let operation = Operation::CompareAndSet {
            expected: expected.map(|held| Entry::Held(held).encode()),
            new: new.as_ref().map(Entry::encode),
            expires: self.retry.kept_until(&self.policy, now, new.as_ref()),
        };
        let sent = match (&step, new) {
            (Step::Take(_), Some(Entry::Held(held))) => Some(held),
            _ => None,
        };
        self.state = State::Out(step, sent);
        Action::Store(Command { key: self.retry.key, operation })
    }

    /// Our claim on what `from` held.
    fn claimed(&self, from: Option<&Held>, now: Timestamp) -> Held {
        let mut waiters = from.map_or_else(Vec::new, |held| held.waiters.clone());
        waiters.retain(|waiter| waiter.until > now && waiter.id != self.waiter);
        Held {
            phase: Phase::Running,
            once: self.policy.once,
            digest: self.retry.digest,
            owner: self.owner,
            lease_until: now.saturating_add(self.policy.effective_lease()),
            waiters,
        }
    }

    /// Why no run may begin any more. Once a state has expired, an absent entry no longer means that nobody
    /// used it: the entry may have been forgotten.
    fn too_late(&self, now: Timestamp) -> Option<Refusal> {
        if now > self.retry.expires {
            Some(Refusal::Expired)
        } else if self.retry.deadline.is_some_and(|deadline| now >= deadline) {
            Some(Refusal::Busy)
        } else {
            None
        }
    }

    /// The store did it.
    fn applied(&mut self, step: Step, sent: Sent, now: Timestamp) -> State {
        self.failures = 0;
        match (step, sent) {
            (Step::Take(_), Some(held)) => self.taken(held, now),
            (Step::Join(_), _) => self.wait(now),
            (Step::Bury(_), _) => refuse(Refusal::Lost),
            (Step::Free(_, reason), _) => refuse(reason),
            // No store applies a get.
            (step @ (Step::Look | Step::Take(_)), _) => self.failed(step, now),
        }
    }

    /// The entry is ours.
    fn taken(&mut self, held: Held, now: Timestamp) -> State {
        let reason = if self.cancelled { Some(Refusal::Cancelled) } else { self.too_late(now) };
        match reason {
            Some(reason) => State::Ready(Step::Free(held, reason), None),
            None if now < held.lease_until => State::End(End::Run(held)),
            // The command was so slow that others may think us dead. (Poll checks again, but does not count.)
            None => self.turn(Step::Take(Some(held))),
        }
    }

    /// Acts on what the store holds.
    fn decide(&mut self, current: Option<&[u8]>, now: Timestamp, vault: &dyn Vault) -> State {
        let standing = judge(current, &self.retry, &self.owner, &self.policy, now);
        if let Standing::Mine(held) = standing {
            return if held.phase == Phase::Running {
                self.taken(held, now)
            } else {
                refuse(Refusal::Unreadable)
            };
        }
        self.maybe_taken = false;
        if self.cancelled {
            return refuse(Refusal::Cancelled);
        }
        match standing {
            Standing::Free => self.turn(Step::Take(None)),
            Standing::Abandoned(held) => self.turn(Step::Take(Some(held))),
            Standing::Dead(held) => self.turn(Step::Bury(held)),
            Standing::Live(held) => self.stand_by(held, now),
            Standing::Done { sealed: None, .. } => refuse(Refusal::NotKept),
            Standing::Done { sealed: Some(sealed), .. } => {
                match StoredReply::open(vault, &self.retry.key, &self.retry.digest, &sealed) {
                    Some(reply) => State::End(End::Reply(reply)),
                    None => refuse(Refusal::Unreadable),
                }
            }
            Standing::Lost { .. } => refuse(Refusal::Lost),
            Standing::OtherAnswers => refuse(Refusal::OtherAnswers),
            Standing::Mine(_) | Standing::Unreadable => refuse(Refusal::Unreadable),
        }
    }

    /// Another copy runs: wait for it, if there is time and a place (B4).
    fn stand_by(&mut self, held: Held, now: Timestamp) -> State {
        let wait_end = *self.wait_end.get_or_insert_with(|| {
            let lease_end = held.lease_until.saturating_add(self.policy.skew);
            let end = now.saturating_add(self.policy.wait).min(lease_end);
            self.retry.deadline.map_or(end, |deadline| end.min(deadline))
        });
        if now >= wait_end {
            return refuse(Refusal::Busy);
        }
        if held.waiters.iter().any(|waiter| waiter.id == self.waiter) {
            return self.wait(now);
        }
        let waiting = held.waiters.iter().filter(|waiter| waiter.until > now).count();
        if waiting < self.policy.effective_waiters() {
            self.turn(Step::Join(held))
        } else {
            refuse(Refusal::Busy)
        }
    }

    /// Looks again after a pause that grows, at the latest when the wait is over.
    fn wait(&mut self, now: Timestamp) -> State {
        let next = now.saturating_add(self.look);
        self.look = self.look.saturating_mul(2).min(LONGEST_LOOK);
        State::Ready(Step::Look, Some(self.wait_end.map_or(next, |end| next.min(end))))
    }

    /// Goes on to `step`, unless too many races were lost already.
    fn turn(&self, step: Step) -> State {
        if self.turns < Policy::TURNS { State::Ready(step, None) } else { refuse(Refusal::Busy) }
    }

    /// The store did not answer to `step`: try again, or take it for down.
    fn failed(&mut self, step: Step, now: Timestamp) -> State {
        self.failures = self.failures.saturating_add(1);
        match step {
            _ if self.cancelled => refuse(Refusal::Cancelled),
            Step::Free(_, reason) => refuse(reason),
            // It is as good as lost, whether that could be written down or not.
            Step::Bury(_) => refuse(Refusal::Lost),
            step if self.failures < Policy::TRIES => {
                State::Ready(step, Some(now.saturating_add(Policy::pause(self.failures))))
            }
            Step::Look | Step::Take(_) | Step::Join(_) => self.store_down(now),
        }
    }

    /// No claim can be had (B7). With another copy known to run, even an open policy does not run a second.
    fn store_down(&self, now: Timestamp) -> State {
        if self.wait_end.is_some() {
            return refuse(Refusal::Busy);
        }
        match (self.policy.when_down, self.too_late(now)) {
            (WhenDown::FailClosed, _) => refuse(Refusal::StoreDown),
            (WhenDown::FailOpen, Some(reason)) => refuse(reason),
            (WhenDown::FailOpen, None) => State::End(End::Uncovered),
        }
    }
}

const fn refuse(refusal: Refusal) -> State {
    State::End(End::Refuse(refusal))
}

impl fmt::Debug for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match &self.state {
            State::Ready(_, Some(_)) => "waiting",
            State::Ready(_, None) => "ready",
            State::Out(..) => "asking the store",
            State::End(_) => "ending",
            State::Over => "over",
        };
        f.debug_struct("Claim").field("key", &self.retry.key).field("state", &state).finish_non_exhaustive()
    }
}
