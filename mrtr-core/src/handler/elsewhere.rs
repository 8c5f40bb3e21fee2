//! Handlers whose code runs in another engine: plain JavaScript functions, say.

use super::{Ctx, shared::Elsewhere};

impl Ctx {
    /// Says that the handler's code runs in another engine, and that the future it was given as only stands for
    /// it. Such a future is pending all the time, so that being pending says nothing (A2): the run takes no step
    /// until it is told that the code [rests](Self::rests).
    ///
    /// Call it before the future is polled for the first time.
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
}
