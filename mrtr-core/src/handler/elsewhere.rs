//! Handlers whose code runs in another engine: plain JavaScript functions, say.

use alloc::string::String;

use super::{Ask, Ctx, RpcError, shared::Elsewhere};
use crate::{form::Elicited, jsonrpc::Json};

impl Ask<Elicited<String>> {
    /// [`keep`](Self::keep) for code in another engine, which makes something of the answer after this ask has
    /// resolved: journals `kept` instead of the answer (A11). Nothing happens without an answer.
    ///
    /// On later runs the ask resolves to an accept of `k` and `kept` as JSON text; no other answer begins with a `k`.
    ///
    /// # Errors
    ///
    /// If `kept` cannot be written as JSON.
    pub fn keep_elsewhere<U: serde::Serialize + ?Sized>(&self, kept: &U) -> Result<(), RpcError> {
        let text = serde_json::to_string(kept).map_err(|_| RpcError::internal("Internal error"))?;
        self.shared.lock().tape.keep(self.ticket, &text);
        Ok(())
    }

    /// [`keep_elsewhere`](Self::keep_elsewhere) of what is JSON already.
    pub fn keep_elsewhere_json(&self, kept: Json<'_>) {
        self.shared.lock().tape.keep(self.ticket, kept.as_str());
    }
}

impl Ctx {
    /// Says that the handler's code runs in another engine, and that the future it was given as only stands for
    /// it. Such a future is pending all the time, so that being pending says nothing (A2): the run takes no step
    /// until it is told that the code [rests](Self::rests).
    ///
    /// That takes a runtime: [`Run::run`](super::Run::run) waits for nobody, and ends such an attempt as any that waits.
    ///
    /// Call it before the future is polled for the first time, and again when the code goes on for a reason of its own
    /// after it [rested](Self::rests).
    pub fn runs_elsewhere(&self) {
        self.shared.lock().elsewhere = Elsewhere::Running;
    }

    /// The code elsewhere gets no further by itself, for now: the run is polled, and judges what is open (A3, A6).
    ///
    /// Before it says so, the other engine lets everything settle that needs no answer, so that asks that are made
    /// side by side are all there. Once answers are released, the code counts as running again. Nothing happens in
    /// a handler that does not [run elsewhere](Self::runs_elsewhere).
    pub fn rests(&self) {
        let mut inner = self.shared.lock();
        if inner.elsewhere == Elsewhere::Running {
            inner.elsewhere = Elsewhere::AtRest;
        }
    }

    /// Whether the code elsewhere counts as running: what waits for an answer there has to be looked at, and once it
    /// gets no further, [said so](Self::rests). A release need not bring an answer: an errand behind a url may have to
    /// be looked at, or a question that is recorded as asked again is asked again (A10).
    #[must_use]
    pub fn counts_as_running(&self) -> bool {
        self.shared.lock().elsewhere == Elsewhere::Running
    }
}
