//! State `Complete`: the outcome is there.

use alloc::{boxed::Box, vec::Vec};

use super::{
    Exchange, NotSent, Pending, Thinking,
    ongoing::Tail,
    receive::{Flight, InFlight as _},
};
use crate::{
    error::RpcError,
    jsonrpc::{Json, RequestId},
    time::Timestamp,
};

/// The outcome is there: a result, or an error that the peer sent.
pub struct Complete {
    pub(super) outcome: Result<Box<str>, RpcError>,
}

impl Exchange<Complete> {
    /// The result as the peer sent it, or the error that it sent instead.
    ///
    /// # Errors
    ///
    /// The peer's error.
    pub fn result(&self) -> Result<Json<'_>, &RpcError> {
        self.state.outcome.as_deref().map(Json::trusted)
    }

    /// How many request/result legs it took: 1 if nothing was asked. Requests that were sent again count once.
    #[must_use]
    pub fn rounds(&self) -> u32 {
        self.call.rounds()
    }

    /// Whether the request that led to this outcome carried `inputResponses` or `requestState`. If so, the
    /// outcome must not be cached.
    #[must_use]
    pub fn carried_answers_or_state(&self) -> bool {
        !self.call.tail.text.is_empty()
    }
}

impl core::fmt::Debug for Complete {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match &self.outcome {
            Ok(result) => write!(f, "Complete(result, {} bytes)", result.len()),
            Err(error) => write!(f, "Complete(error {})", error.code),
        }
    }
}

/// A retry that carried a state was refused with `-32602`: the state has expired, or does not fit (G-11). The
/// protocol does not say so more exactly, so it may be the answers, too.
#[derive(Debug)]
#[must_use = "take the outcome, or restart"]
pub struct StateRefused {
    pub(super) exchange: Exchange<Complete>,
}

impl StateRefused {
    pub(super) const fn new(exchange: Exchange<Complete>) -> Self {
        Self { exchange }
    }

    /// The outcome as any other.
    pub fn into_outcome(self) -> Exchange<Complete> {
        self.exchange
    }

    /// Begins again: appends the original request under a new id, without answers and state. People may be asked
    /// the same once more.
    ///
    /// What was used up stays used up (retries, time), and what was declined stays declined, so a server that
    /// refuses every state keeps nobody busy for ever.
    ///
    /// # Errors
    ///
    /// If the id cannot be used; this is given back and nothing is appended.
    pub fn restart(
        self,
        id: RequestId,
        now: Timestamp,
        out: &mut Vec<u8>,
    ) -> Result<Exchange<Pending>, NotSent<Self>> {
        let mut call = self.exchange.call;
        match call.write_next(&id, &Tail::default(), out) {
            Ok(base) => {
                call.counts.in_a_row = 0;
                call.spent = match call.shared.config.policy.thinking {
                    Thinking::Free => call.spent.passing_over(now),
                    Thinking::Counted => call.spent.counting(now),
                };
                call.sent(id, Tail::default(), base);
                Ok(Exchange { call, state: Pending::new(Flight::new(now)) })
            }
            Err(unsent) => {
                let exchange = Exchange { call, state: self.exchange.state };
                Err(NotSent { given_back: Self { exchange }, reason: unsent.into() })
            }
        }
    }
}
