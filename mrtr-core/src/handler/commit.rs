//! What happens only when a handler has succeeded (A12).

use alloc::boxed::Box;
use core::{future::Future, pin::Pin};

use super::{Ctx, RpcError};

/// A step of the commit: made when its turn comes.
pub(super) type Commit =
    Box<dyn FnOnce() -> Pin<Box<dyn Future<Output = Result<(), RpcError>> + Send>> + Send>;

impl Ctx {
    /// Runs `step` after the handler has returned `Ok` (a tool result with `isError` is not `Ok`) with no
    /// question open, before the reply is written; in the order of registration. The first `Err` becomes the
    /// reply and ends the list (A12). A step may leave further ones, which run after those that are there.
    ///
    /// The place for effects that must not happen twice: unlike the lines of the handler, it does not run
    /// again. Once begun it is not cancelled by a closed connection. What a detached task leaves after the attempt is
    /// over is dropped.
    pub fn on_commit(&self, step: impl FnOnce() -> Result<(), RpcError> + Send + 'static) {
        self.on_commit_async(|| core::future::ready(step()));
    }

    /// [`on_commit`](Self::on_commit) for a step that takes waiting for.
    pub fn on_commit_async<F>(&self, step: impl FnOnce() -> F + Send + 'static)
    where
        F: Future<Output = Result<(), RpcError>> + Send + 'static,
    {
        let step: Commit = Box::new(move || Box::pin(LazyStep { step: Some(step), future: None }));
        let mut inner = self.shared.lock();
        // Kept for a commit that never comes, one that holds this context would keep itself.
        if !inner.tape.has_ended() {
            inner.commits.push_back(step);
        }
    }
}

/// Calls the step when it is first polled, so that a panic in it is met where the future's own would be.
struct LazyStep<S, F> {
    step: Option<S>,
    future: Option<Pin<Box<F>>>,
}

// The future is boxed; nothing else is pinned.
impl<S, F> Unpin for LazyStep<S, F> {}

impl<S: FnOnce() -> F, F: Future<Output = Result<(), RpcError>>> Future for LazyStep<S, F> {
    type Output = Result<(), RpcError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut core::task::Context<'_>) -> core::task::Poll<Self::Output> {
        if let Some(step) = self.step.take() {
            self.future = Some(Box::pin(step()));
        }
        match self.future.as_mut() {
            Some(future) => future.as_mut().poll(cx),
            None => core::task::Poll::Ready(Ok(())),
        }
    }
}
