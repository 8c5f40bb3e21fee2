//! A request that has to go out once more, under a new id: its version was refused, or its connection broke.

use alloc::vec::Vec;

use super::{
    Exchange, NotSent, Stopped,
    call::Repeat,
    receive::{Flight, Open},
};
use crate::{
    error::RpcError,
    jsonrpc::{Json, RequestId},
    time::Timestamp,
    wire::Version,
};

/// The newest request of an exchange, to be sent again as it was but for its id and version.
#[must_use = "the request is not sent again before `send` is called"]
pub struct Resend<S: Open> {
    pub(super) exchange: Exchange<S>,
}

impl<S: Open> Resend<S> {
    /// The version it will be sent with.
    #[must_use]
    pub fn version(&self) -> Version {
        self.exchange.call.version
    }

    /// Appends the request under a new id, with the same answers and state.
    ///
    /// # Errors
    ///
    /// If the id cannot be used; the request is given back and nothing is appended.
    pub fn send(
        mut self,
        id: RequestId,
        now: Timestamp,
        out: &mut Vec<u8>,
    ) -> Result<Exchange<S>, NotSent<Self>> {
        let call = &mut self.exchange.call;
        match call.write_next(&id, &call.tail, out) {
            Ok(base) => {
                call.spent = call.spent.counting(now);
                let tail = core::mem::take(&mut call.tail);
                call.sent(id, tail, base);
                self.exchange.state = S::new(Flight::new(now));
                Ok(self.exchange)
            }
            Err(unsent) => Err(NotSent { given_back: self, reason: unsent.into() }),
        }
    }

    /// Gives up. Nothing is sent.
    pub fn abandon(self) {}
}

impl<S: Open> core::fmt::Debug for Resend<S> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Resend").field("exchange", &self.exchange).finish()
    }
}

impl<S: Open> Exchange<S> {
    /// The connection broke before a reply came: the request is lost and, if the call
    /// [may run twice](super::Call::may_run_twice), can be sent again under a new id (R-096, G-29).
    ///
    /// # Errors
    ///
    /// [`Stopped::Lost`] if the call may not run twice, or was sent again `Policy::resends` times already.
    pub fn lost(mut self) -> Result<Resend<S>, Stopped> {
        let call = &mut self.call;
        if call.options.repeat == Repeat::Never || call.counts.resends >= call.shared.config.policy.resends {
            return Err(Stopped::Lost);
        }
        call.counts.resends += 1;
        Ok(Resend { exchange: self })
    }

    /// What to do about `-32022`: choose a version that both sides speak, each at most once in an
    /// exchange. One that equals the refused version counts too, for some peers refuse the first request
    /// whatever it says.
    pub(super) fn with_another_version(mut self, error: RpcError) -> Result<Resend<S>, (Self, RpcError)> {
        let call = &mut self.call;
        let ours = &call.shared.config.versions;
        let tries = u32::try_from(ours.len()).unwrap_or(u32::MAX);
        let theirs = error.data().and_then(|data| data.get("supported"));
        let mutual = ours.iter().find(|version| {
            theirs
                .and_then(Json::items)
                .is_some_and(|mut list| list.any(|one| one.as_string().as_deref() == Some(version.name())))
        });
        match mutual.copied() {
            Some(version) if call.counts.versions < tries => {
                call.version = version;
                call.counts.versions += 1;
                Ok(Resend { exchange: self })
            }
            _ => Err((self, error)),
        }
    }
}
