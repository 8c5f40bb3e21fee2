//! Which of several asks is answered first.

use alloc::vec::Vec;
use core::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};

/// Who won a [`race`], and the other, which goes on: await it, or drop it to withdraw its question.
#[derive(Debug)]
#[allow(clippy::exhaustive_enums)]
pub enum Won<A: Future, B: Future> {
    /// The first.
    First(A::Output, B),
    /// The second; the first is not ready.
    Second(B::Output, A),
}

/// Waits for whichever of two is ready; if both are, the first wins.
///
/// A `select!` that picks at random among those that are ready picks otherwise when the same handler runs again, and
/// then leaves its path (A8). Use this, [`race_all`], or a macro that is told `biased;`; and only with asks: I/O and
/// timers are ready at other times in another run.
///
/// ```
/// use mrtr_core::handler::{Ctx, RpcError, ToolResult, Won, race};
///
/// async fn either(ctx: Ctx) -> Result<ToolResult, RpcError> {
///     let (editor, owner) = (ctx.confirm("editor", "Publish?"), ctx.confirm("owner", "Publish?"));
///     // Both are asked in one round. Whoever of them answers decides; the other's question is withdrawn.
///     let said = match race(editor, owner).await {
///         Won::First(said, _) | Won::Second(said, _) => said?,
///     };
///     Ok(ToolResult::text(said.name()))
/// }
/// ```
pub fn race<A, B>(first: A, second: B) -> Race<A, B>
where
    A: Future + Unpin,
    B: Future + Unpin,
{
    Race(Some((first, second)))
}

/// Waits for whichever of many is ready, the earliest in the list if several are: its index, what it came to, and the
/// others in their order. Pending for ever if there is none.
pub fn race_all<F: Future + Unpin>(all: impl IntoIterator<Item = F>) -> RaceAll<F> {
    RaceAll(all.into_iter().collect())
}

/// The future of [`race`].
#[derive(Debug)]
#[must_use = "a race that nobody awaits has no winner"]
pub struct Race<A, B>(Option<(A, B)>);

/// The future of [`race_all`].
#[derive(Debug)]
#[must_use = "a race that nobody awaits has no winner"]
pub struct RaceAll<F>(Vec<F>);

impl<A: Future + Unpin, B: Future + Unpin> Future for Race<A, B> {
    type Output = Won<A, B>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Some((mut first, mut second)) = self.0.take() else { return Poll::Pending };
        if let Poll::Ready(output) = Pin::new(&mut first).poll(cx) {
            return Poll::Ready(Won::First(output, second));
        }
        if let Poll::Ready(output) = Pin::new(&mut second).poll(cx) {
            return Poll::Ready(Won::Second(output, first));
        }
        self.0 = Some((first, second));
        Poll::Pending
    }
}

// Nothing in it is ever pinned.
impl<A, B> Unpin for Race<A, B> {}

impl<F: Future + Unpin> Future for RaceAll<F> {
    type Output = (usize, F::Output, Vec<F>);

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let ready = self.0.iter_mut().enumerate().find_map(|(index, one)| match Pin::new(one).poll(cx) {
            Poll::Ready(output) => Some((index, output)),
            Poll::Pending => None,
        });
        let Some((index, output)) = ready else { return Poll::Pending };
        let mut rest = core::mem::take(&mut self.0);
        drop(rest.remove(index));
        Poll::Ready((index, output, rest))
    }
}
