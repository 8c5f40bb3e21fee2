//! Single use of an attempt's state: between a run and the ledger's machines (B1…B7).

use alloc::{boxed::Box, vec::Vec};

use crate::{
    entropy::Entropy,
    ledger::{
        Action, AnswersDigest, Claim, Command, End, Key, Outcome, Refusal, ReplyKind, Run, RunAction,
        StoreEvent, StoredReply, Vault,
    },
    seal::{BlobKind, Sealer},
    server::ToClaim,
    time::Timestamp,
};

/// The claim of an attempt, from the question whether it may run to the entry it leaves behind.
pub(super) struct Single {
    stage: Stage,
    vault: SealerVault,
}

enum Stage {
    Claim(Box<Claim>),
    Run(Box<Run>),
    Over,
}

/// What comes next.
pub(super) enum Turn {
    /// For the store.
    Store(Command),
    /// Nothing before this time.
    Wait(Timestamp),
    /// Nothing by itself.
    Idle,
    /// The handler may be called.
    Granted,
    /// The handler can be stopped: another run has taken over.
    Superseded,
    /// The commits may begin.
    Commit,
    /// Over: the attempt's own reply goes out.
    Own,
    /// Over: this goes out.
    Replay(StoredReply),
    /// Over: nothing of the attempt counts.
    Refuse(Refusal),
}

impl Single {
    pub(super) fn new(to_claim: ToClaim) -> Self {
        let ToClaim { retry, policy, entropy, sealer } = to_claim;
        let vault = SealerVault::new(sealer, &retry.key, &retry.digest);
        Self { stage: Stage::Claim(Box::new(Claim::new(retry, &policy, entropy))), vault }
    }

    pub(super) fn poll(&mut self, now: Timestamp) -> Turn {
        let turn = match &mut self.stage {
            Stage::Claim(claim) => match claim.poll(now) {
                Action::Store(command) => Turn::Store(command),
                Action::Wait(at) => Turn::Wait(at),
                Action::Idle => Turn::Idle,
                Action::Reply(stored) => Turn::Replay(stored),
                Action::Refuse(refusal) => Turn::Refuse(refusal),
                Action::Run(run) => {
                    self.stage = Stage::Run(run);
                    return Turn::Granted;
                }
            },
            Stage::Run(run) => match run.poll(now) {
                RunAction::Store(command) => Turn::Store(command),
                RunAction::Wait(at) => Turn::Wait(at),
                RunAction::Idle => Turn::Idle,
                RunAction::Superseded => Turn::Superseded,
                RunAction::Commit => Turn::Commit,
                RunAction::End(End::Own) => Turn::Own,
                RunAction::End(End::Replay(stored)) => Turn::Replay(stored),
                RunAction::End(End::Refuse(refusal)) => Turn::Refuse(refusal),
            },
            Stage::Over => Turn::Idle,
        };
        if matches!(turn, Turn::Own | Turn::Replay(_) | Turn::Refuse(_)) {
            self.stage = Stage::Over;
        }
        turn
    }

    pub(super) fn handle_store(&mut self, now: Timestamp, event: StoreEvent) {
        match &mut self.stage {
            Stage::Claim(claim) => claim.handle_store(now, event, &self.vault),
            Stage::Run(run) => run.handle_store(now, event, &self.vault),
            Stage::Over => {}
        }
    }

    /// Gives up a claim that was not granted yet.
    pub(super) fn cancel(&mut self) {
        if let Stage::Claim(claim) = &mut self.stage {
            claim.handle_cancel();
        }
    }

    pub(super) fn begin_commit(&mut self) {
        if let Stage::Run(run) = &mut self.stage {
            run.begin_commit();
        }
    }

    /// Ends with this reply, or, without a kind, with nothing consumed (B5). `message` is the whole reply.
    pub(super) fn finish(&mut self, kind: Option<ReplyKind>, message: &[u8]) {
        let Stage::Run(run) = &mut self.stage else { return };
        let outcome = match kind.and_then(|kind| Some((kind, member(kind, message)?))) {
            Some((kind, member)) => Outcome::Reply(kind, member),
            None => Outcome::NotConsumed,
        };
        run.finish(outcome, &self.vault);
    }
}

/// The `result` or `error` member of a reply that this crate wrote: all after its name but the last brace.
fn member(kind: ReplyKind, message: &[u8]) -> Option<&[u8]> {
    let message = core::str::from_utf8(message).ok()?;
    let name = match kind {
        ReplyKind::Interim | ReplyKind::Complete => "result",
        ReplyKind::HandlerError => "error",
    };
    Some(crate::jsonrpc::Json::trusted(message).get(name)?.as_str().as_bytes())
}

/// Seals replies under the ring's ledger key, tied to the entry they belong to.
struct SealerVault {
    sealer: Sealer,
    /// Key ‖ digest of the answers.
    place: [u8; Key::BYTES + 32],
}

impl SealerVault {
    fn new(sealer: Sealer, key: &Key, digest: &AnswersDigest) -> Self {
        let mut place = [0; Key::BYTES + 32];
        let parts = key.to_bytes().into_iter().chain(*digest.as_bytes());
        for (to, from) in place.iter_mut().zip(parts) {
            *to = from;
        }
        Self { sealer, place }
    }
}

impl Vault for SealerVault {
    fn seal(&self, plaintext: &[u8], entropy: Entropy) -> Vec<u8> {
        // It fails above 64 GiB alone, and the ledger keeps 4 MiB at most; no bytes are what nobody can open.
        self.sealer.seal_blob(BlobKind::Ledger, &self.place, plaintext, &entropy).unwrap_or_default()
    }

    fn open(&self, sealed: &[u8]) -> Option<Vec<u8>> {
        match self.sealer.open_blob(BlobKind::Ledger, &self.place, sealed) {
            Ok(plaintext) => Some(plaintext.to_vec()),
            Err(verdict) => {
                crate::trace::warn!(verdict = %verdict, "a stored reply cannot be opened");
                None
            }
        }
    }
}
