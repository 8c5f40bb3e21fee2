//! What is done with a request before its body is read: the rules for its head, room for it, and who sends it.

use std::{ops::ControlFlow, sync::Arc};

use http::{Response, StatusCode, request::Parts};
use mrtr_core::http::{Accepts, Gate};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::{
    Identity, Principals, ReplyBody,
    principal::Complaint,
    rules::{self, Extra, Ruled},
};

/// What a request has to pass.
pub(crate) struct Entrance<'s> {
    pub(crate) gate: &'s Gate,
    pub(crate) requests: &'s Arc<Semaphore>,
    pub(crate) principals: &'s dyn Principals,
    pub(crate) complaint: &'s Complaint,
}

/// What is known of a request that has passed.
pub(crate) struct Entered {
    pub(crate) accepts: Accepts,
    /// Headers to be added to whatever is answered.
    pub(crate) extra: Extra,
    pub(crate) permit: OwnedSemaphorePermit,
    pub(crate) identity: Identity,
}

impl Entrance<'_> {
    /// Lets a request in, or says how it is answered unread.
    pub(crate) fn pass(&self, parts: &Parts) -> ControlFlow<Response<ReplyBody>, Entered> {
        let (accepts, extra) = match rules::judge(self.gate, parts) {
            Ruled::Read { accepts, extra } => (accepts, extra),
            Ruled::Answer(response) => return ControlFlow::Break(response),
        };
        let Ok(permit) = Arc::clone(self.requests).try_acquire_owned() else {
            let text = "too many requests at once\n";
            return ControlFlow::Break(rules::bare(StatusCode::SERVICE_UNAVAILABLE, extra, text));
        };
        match self.principals.identify(parts) {
            Ok(identity) => ControlFlow::Continue(Entered { accepts, extra, permit, identity }),
            Err(fault) => {
                self.complaint.log(&fault);
                let text = "the server's configuration does not allow this request\n";
                ControlFlow::Break(rules::bare(StatusCode::INTERNAL_SERVER_ERROR, extra, text))
            }
        }
    }
}
