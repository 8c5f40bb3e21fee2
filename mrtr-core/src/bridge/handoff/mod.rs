//! Between replicas: a retry that reaches another process than the one that holds its call is handed to the owner, and
//! what the owner says comes back. This is the pure part; carrying the bytes is the embedder's.
//!
//! ```text
//! message   version 1 = 0x01 ‖ kind 1 ‖ to 16 ‖ from 16 ‖ call 8 ‖ round 4 ‖ number 8 ‖ turn 4 ‖ sealed
//! ```
//!
//! `to` and `from` are [epochs](super::Bridge::epoch): each process reads the stream named by its own. `number` is the
//! forwarder's for this hand-off, `turn` counts the messages that its sender has sent for it. All that stands before the
//! sealed bytes is authenticated with them ([`BlobKind::Handle`]), so nobody who can write to the store can move a
//! message to another call, send the reply elsewhere, or have one message count twice.
//!
//! | kind | from | sealed |
//! |---|---|---|
//! | 1 request | forwarder | when it was sent, verified principal, the host's request |
//! | 2 acknowledgement | owner | nothing |
//! | 3 message | owner | whether it is the last, its class, the message |
//! | 4 cancellation | forwarder | nothing |
//! | 5 sign of life | owner | nothing |
//! | 6 still waited for | forwarder | nothing: the reply to 5 |
//! | 7 full | owner | nothing: it takes no more |
//!
//! The owner acknowledges at once; the forwarder sends again after a second without, and gives up after five: the
//! call is lost, never run again. A request that comes twice is one; a reply that got lost is found again by the retry
//! itself (BT-7). A side that has not heard of the other for four signs of life takes it for gone: the forwarder tells
//! its host so, the owner treats the host as one whose stream was lost.
//!
//! What stops in between, the store or the way to it, is told by [`Bridge::peers_reachable`].
//!
//! | file | what |
//! |---|---|
//! | `message` | the bytes |
//! | `forwarder` | requests that other processes work on |
//! | `owner` | requests of other processes that run here |

mod forwarder;
mod message;
mod owner;

use core::time::Duration;

use self::message::{Head, Kind};
pub(super) use self::{
    forwarder::{Forwarded, elsewhere},
    owner::Remotes,
};
use super::{Bridge, Output};
use crate::{seal::BlobKind, time::Timestamp};

/// After which a request without acknowledgement is sent again.
const RESEND: Duration = Duration::from_secs(1);

/// After which an owner that has not acknowledged a request is gone.
const PATIENCE: Duration = Duration::from_secs(5);

/// Without a sign of life of the other side for so many of its intervals it counts as gone.
const SILENCE: u32 = 4;

impl Bridge {
    /// A message of another process, from the stream that this one's [`epoch`](Self::epoch) names. What is not sealed
    /// for this place, is too old, or came before is dropped and counted.
    pub fn handle_peer(&mut self, message: &[u8], now: Timestamp) {
        // More than a message and what is around it can only be nonsense.
        let fits = message.len() <= self.config.limits.message_bytes.saturating_add(64 << 10);
        let read = Head::read(message).filter(|(_, head, _)| fits && head.to == self.epoch);
        let Some((kind, head, sealed)) = read else {
            return self.refuse_peer("it is none, or not for this process");
        };
        let place = head.bytes(kind);
        let Ok(opened) = self.config.sealer.open_blob(BlobKind::Handle, &place, sealed) else {
            return self.refuse_peer("it is not authentic");
        };
        let taken = match kind {
            Kind::Request => self.peer_request(head, &opened, now),
            Kind::Cancel => self.peer_cancel(head, now),
            Kind::Waiting => self.remotes.heard_of(head, now),
            Kind::Ack | Kind::Alive | Kind::Message | Kind::Full => self.peer_reply(kind, head, &opened, now),
        };
        if !taken {
            self.refuse_peer("it came before, came late, or belongs to nothing");
        }
    }

    /// Whether other processes can be reached: what carries [`Output::ToPeer`] says so when it breaks, and again when it
    /// is back. At first they can.
    ///
    /// When they cannot, retries that were handed over and not acknowledged, and those that come now, get `-32603` with
    /// `data.retryAfterMs`; what was acknowledged goes on, and calls that are held here are untouched. When they can
    /// again, what is still open is said once more, for the store may have forgotten it.
    pub fn peers_reachable(&mut self, reachable: bool, now: Timestamp) {
        self.forwarded.unreachable = !reachable;
        if reachable {
            self.remotes.hear_all(now);
            self.forward_again(now);
        } else {
            self.fail_unacknowledged();
        }
    }

    fn refuse_peer(&mut self, why: &'static str) {
        self.counts.peer_refused += 1;
        // Whoever can write to the store must not be able to fill the log.
        if self.counts.peer_refused.is_power_of_two() {
            let total = self.counts.peer_refused;
            crate::trace::warn!(total = %total, why = %why, "a message of another process was refused");
        }
    }

    /// How long the other side may be silent.
    fn silence(&self) -> Duration {
        self.config.waits.alive.saturating_mul(SILENCE)
    }

    fn post(&mut self, kind: Kind, head: Head, payload: &[u8], keep: Duration) -> bool {
        let mut bytes = head.bytes(kind);
        let sealed = self.config.sealer.seal_blob(BlobKind::Handle, &bytes, payload, self.random.draw());
        let Ok(sealed) = sealed else { return false };
        bytes.extend_from_slice(&sealed);
        self.out.push_back(Output::ToPeer { peer: head.to, bytes, keep });
        true
    }
}
