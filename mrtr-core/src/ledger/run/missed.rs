//! A run whose compare-and-set did not take place: what is there instead, and what follows (B3, B6).

use super::{
    super::{
        Refusal, StoredReply, Vault,
        entry::{Entry, Lost, Phase},
        standing::{Standing, judge},
    },
    Base, End, Run, State, Step, Wish,
};
use crate::time::Timestamp;

impl Run {
    /// The store holds something else than we believed.
    pub(super) fn missed(&mut self, step: Step, current: Option<&[u8]>, now: Timestamp, vault: &dyn Vault) {
        let standing = judge(current, &self.retry, &self.owner, &self.policy, now);
        match (step, standing) {
            // A waiter came, or a command whose reply was lost took place: go on from what is there.
            (Step::Renew | Step::Settle, Standing::Mine(held)) => self.hold(held),
            (Step::Commit, Standing::Mine(held)) => {
                let committing = held.phase == Phase::Committing;
                self.hold(held);
                if committing {
                    self.committing();
                }
            }
            (Step::Renew, _) => {
                self.renew_at = None;
                self.superseded = true;
            }
            (Step::Commit, standing) => self.state = State::End(self.overtaken(standing, vault)),
            (Step::Settle, standing) => self.settle(standing, now, vault),
        }
    }

    /// The entry is not held by us when we settle it.
    fn settle(&mut self, standing: Standing, now: Timestamp, vault: &dyn Vault) {
        let consumed = match &self.wish {
            Wish::Settle(Some(entry)) => matches!(entry, Entry::Done(_)),
            Wish::Settle(None) | Wish::Keep | Wish::Commit => return self.state = State::End(End::Own),
        };
        match standing {
            // We were slow and marked lost; now the outcome is known after all.
            Standing::Lost { mine: true } if consumed => {
                self.claim = Some(Base::Lost(Lost { digest: self.retry.digest, owner: self.owner }));
            }
            // The store has lost the entry, or a run that took over gave it back: leave ours, so that later
            // copies find it.
            Standing::Free if now <= self.retry.expires => self.claim = Some(Base::Nothing),
            // Forgotten, which takes longer than any lease: another run may have come and gone.
            Standing::Free if consumed && !self.began => {
                self.state = State::End(End::Refuse(Refusal::Lost));
            }
            // After a commit has begun here no other run can have had an end of its own: ours is the truth.
            // An end that consumes nothing does not care who runs now.
            Standing::Free
            | Standing::Mine(_)
            | Standing::Done { mine: true, .. }
            | Standing::Lost { mine: true } => self.state = State::End(End::Own),
            other if consumed && !self.began => self.state = State::End(self.overtaken(other, vault)),
            Standing::Live(_)
            | Standing::Abandoned(_)
            | Standing::Dead(_)
            | Standing::Done { .. }
            | Standing::Lost { .. }
            | Standing::OtherAnswers
            | Standing::Unreadable => self.state = State::End(End::Own),
        }
    }

    /// Somebody else has the entry: what this request is told.
    fn overtaken(&self, standing: Standing, vault: &dyn Vault) -> End {
        let refusal = match standing {
            Standing::Done { sealed: Some(sealed), .. } => {
                match StoredReply::open(vault, &self.retry.key, &self.retry.digest, &sealed) {
                    Some(reply) => return End::Replay(reply),
                    None => Refusal::Unreadable,
                }
            }
            Standing::Done { sealed: None, .. } => Refusal::NotKept,
            Standing::Lost { .. } | Standing::Dead(_) => Refusal::Lost,
            Standing::OtherAnswers => Refusal::OtherAnswers,
            Standing::Unreadable => Refusal::Unreadable,
            Standing::Free | Standing::Live(_) | Standing::Abandoned(_) | Standing::Mine(_) => Refusal::Busy,
        };
        End::Refuse(refusal)
    }
}
