//! Single use of a sealed state, and replay of a reply that was lost (B1…B7, R-075, R-076, R-096, G-28, G-29).
//!
//! Sealing shows that a state is genuine, not that it is new: the same retry sent twice runs twice. A server
//! with a ledger asks a store first. Two things come of it: a state is used once, with one set of answers; and
//! a client whose connection broke may send the same retry again under a new id and gets the reply it missed,
//! byte for byte.
//!
//! Everything is decided here, by pure machines. A store does two things, get and compare-and-set
//! ([`Operation`]): [`Memory`], Redis, a Durable Object.
//!
//! ```text
//!            claim              begin_commit
//!    free ──────────► Running ────────────────► Committing
//!     ▲                │ │ │                     │     │
//!     │  not consumed, │ │ │  a reply            │     │ crash, or a panic in a commit
//!     └──or a crash────┘ │ └─────────► Done ◄────┘     │
//!        (AtLeastOnce)   │              ▲              │
//!                        │ AtMostOnce   │ was slow     │
//!                        └───────────► Lost ◄──────────┘
//! ```
//!
//! A crash shows when the lease of the run is out; a run that lives renews it.
//!
//! | file | what |
//! |---|---|
//! | `standing` | the one table: what an entry means to a claim or a run |
//! | `claim` | [`Claim`]: may this copy run, or is there a reply for it? |
//! | `run` | [`Run`]: keeps the claim, begins the commits, settles the entry |
//! | `entry` | [`Entry`], the record in the store |
//! | `reply` | [`StoredReply`], sealed by a [`Vault`] |
//! | `answers` | [`effective_digest`]: which answers a retry brings |
//! | `memory` | [`Memory`], a bounded store in this process |
//!
//! # One retry
//!
//! ```
//! use core::time::Duration;
//! use mrtr_core::ledger::*;
//! use mrtr_core::{Entropy, Timestamp, jsonrpc::RequestId};
//!
//! # struct Plain;
//! # impl Vault for Plain {
//! #     fn seal(&self, plaintext: &[u8], _: Entropy) -> Vec<u8> { plaintext.to_vec() }
//! #     fn open(&self, sealed: &[u8]) -> Option<Vec<u8>> { Some(sealed.to_vec()) }
//! # }
//! # let (vault, digest, exchange) = (Plain, effective_digest([], |_| None).unwrap(), [1; 16]);
//! let mut store = Memory::default();
//! let now = Timestamp::from_unix_millis(1_000_000);
//! let retry = Retry::new(Key::new("billing", exchange, 0), digest, now.saturating_add(Duration::from_secs(600)));
//!
//! // The first copy finds the state free.
//! let mut claim = Claim::new(retry.clone(), &Policy::default(), Entropy::new([1; 32]));
//! let Action::Store(command) = claim.poll(now) else { unreachable!() };
//! claim.handle_store(now, store.apply(now, &command), &vault);
//! let Action::Run(mut run) = claim.poll(now) else { unreachable!() };
//!
//! // … the handler runs, and ends …
//! run.finish(Outcome::Reply(ReplyKind::Complete, br#"{"resultType":"complete","content":[]}"#), &vault);
//! let RunAction::Store(command) = run.poll(now) else { unreachable!() };
//! run.handle_store(now, store.apply(now, &command), &vault);
//! assert!(matches!(run.poll(now), RunAction::End(End::Own)));
//!
//! // The reply was lost on its way. The same retry under another id gets it from the store.
//! let mut again = Claim::new(retry, &Policy::default(), Entropy::new([2; 32]));
//! let Action::Store(command) = again.poll(now) else { unreachable!() };
//! again.handle_store(now, store.apply(now, &command), &vault);
//! let Action::Reply(reply) = again.poll(now) else { unreachable!() };
//! let mut out = Vec::new();
//! reply.write(&RequestId::from(8), &mut out);
//! assert_eq!(out, br#"{"jsonrpc":"2.0","id":8,"result":{"resultType":"complete","content":[]}}"#);
//! ```
//!
//! # In a server
//!
//! [`Config::ledger`](crate::server::Config::ledger) turns it on: [`handler::Run`](crate::handler::Run) then drives
//! these machines for each retry, with replies sealed under the ring's ledger key
//! ([`BlobKind::Ledger`](crate::seal::BlobKind::Ledger)) and tied to key ‖ digest, and gives out the commands. The
//! round in the key is the sealed round, with the number of divergences in the upper 16 bits: a divergence drops
//! rounds, whose numbers then come again (A8). An expired state that is opened all the same (soft expiry) is used by
//! asking again: once, and not if it was used before it expired. So with a sealer that opens such states, entries are kept
//! up to the exchange's deadline. A replica without such a sealer keeps them shorter, and one with it would open what the
//! other has forgotten: before you turn soft expiry on in a service with a ledger, set [`Policy::retention`] to
//! [`Limits::exchange`](crate::Limits::exchange) on all replicas, and wait for as long. Servers that answer an
//! [`Exchange`](crate::server::Exchange) by themselves are not covered.
//!
//! # For whoever carries it
//!
//! - Give every command to the store once, and report every one: a command without an answer within your
//!   patience is [`StoreEvent::Unavailable`], whether it took place or not.
//! - Keep polling a [`Run`] while its handler works, at the times it names: that renews the lease.
//! - From [`RunAction::Commit`] on let the run go on without its connection (B6). Before, a closed connection may
//!   cancel it: [`Outcome::NotConsumed`].
//! - A claim that is no longer wanted is cancelled, not dropped: [`Claim::handle_cancel`], then poll it to its end.
//!
//! # What is guaranteed
//!
//! For one key, as long as the store keeps what it was given:
//!
//! - `on_commit` begins at most once, whatever the clocks, the network and the crashes do.
//! - Under [`Once::AtMostOnce`] the handler starts at most once.
//! - Under [`Once::AtLeastOnce`] it starts again only after a run that ended without consuming the state, or
//!   that gave no sign of life for a whole lease.
//! - Once an entry is done, every copy with the same answers gets the same bytes, and a copy with other
//!   answers gets the sentence of every refused state.
//!
//! # What it cannot do
//!
//! - **First requests are not covered.** They carry no exchange id, so two copies of one are two exchanges. A
//!   server with a ledger therefore takes no answers without a state (B7, A7).
//! - **A store that forgets, forgets claims.** A Redis must not evict (`noeviction`), and a fail-over to a
//!   replica that lags behind may lose the last writes: a state whose claim was lost can be used again. Where
//!   that must not happen, wait for the replica (`WAIT`) or use a store with consensus.
//! - **A reply can leave and still not be kept**: when the store is down at the end of a run, or the reply is
//!   longer than [`Policy::reply_bytes`]. A repetition then runs again (only under [`Once::AtLeastOnce`], and
//!   only if nothing was committed), or is told that the outcome is unknown or gone.
//! - **With [`WhenDown::FailOpen`] nothing holds while the store is down.**
//! - **Whoever can write to the store can free a state.** Replies are sealed and bound to their key and
//!   answers; claims are not. Whoever can read it can test guesses of the answers against their digest.

mod answers;
mod claim;
mod entry;
mod key;
mod memory;
mod policy;
mod refusal;
mod reply;
mod run;
mod standing;
mod store;

pub use answers::{AnswersDigest, Undigestible, effective_digest};
pub use claim::{Action, Claim};
pub use entry::{Done, Entry, Held, Lost, Malformed, Phase, Waiter};
pub use key::Key;
pub use memory::{Memory, MemoryLimits};
pub use policy::{Once, Policy, WhenDown};
pub use refusal::Refusal;
pub use reply::{Outcome, ReplyKind, StoredReply, Vault, error_member};
pub use run::{End, Run, RunAction};
pub use standing::Retry;
pub use store::{Command, Operation, StoreEvent};
