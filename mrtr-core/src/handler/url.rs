//! What is behind a url: whether it is done, and for whom it was asked (A10, R-137, R-138, R-142).

use alloc::{borrow::Cow, boxed::Box, string::String};
use core::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use super::{Ask, AskError, Ctx, RpcError};
use crate::{
    jsonrpc::Json,
    seal::{Principal, Ticket},
    tape::TICKETS,
    wire::Action,
};

impl Ask<Action> {
    /// For a [url](Ctx::elicit_url): waits for what is behind it. Accept is consent to open it, not completion
    /// (R-137); only when `check` then finds it done does the ask resolve to [`Action::Accept`].
    ///
    /// While it is not done, and under a runtime, the client's retry is held
    /// ([`hold_urls`](crate::tape::TapePolicy::hold_urls), 25 s) and looked at again every
    /// [`look_interval`](crate::tape::TapePolicy::look_interval); a `check` may as well wait for the news itself,
    /// and is dropped when the hold is over. Then, and at once without a runtime, the same url is asked again
    /// under the same key, and the client decides when to come back. A decline or cancel resolves as ever.
    ///
    /// `check` runs only in the segment that follows an accept, never on replay: what it found is in the state.
    ///
    /// ```
    /// # use mrtr_core::handler::{Ctx, Output, RpcError, ToolResult};
    /// # use mrtr_core::wire::Action;
    /// # async fn is_paid(order: &str) -> bool { true }
    /// async fn pay(ctx: Ctx) -> Result<Output, RpcError> {
    ///     let order: String = ctx.argument("order")?;
    ///     let ticket = ctx.ticket("pay", core::time::Duration::from_secs(900))?;
    ///     let ask = ctx.elicit_url("pay", "Pay here", format!("https://pay.example/?t={ticket}"));
    ///     match ask.until(|| is_paid(&order)).await? {
    ///         Action::Accept => Ok(ToolResult::text("Paid.").into()),
    ///         Action::Decline | Action::Cancel => Ok(ToolResult::error("Not paid.").into()),
    ///     }
    /// }
    /// ```
    pub fn until<C, F>(self, check: C) -> Until<C, F>
    where
        C: FnMut() -> F,
        F: Future<Output = bool>,
    {
        self.shared.lock().tape.wait_for_errand(self.ticket);
        Until { ask: self, check, looking: None }
    }
}

/// The future of a url whose errand is done; see [`Ask::until`].
#[must_use = "an ask that nobody awaits is withdrawn"]
pub struct Until<C, F> {
    ask: Ask<Action>,
    check: C,
    looking: Option<Pin<Box<F>>>,
}

// The future is boxed; nothing else is ever pinned.
impl<C, F> Unpin for Until<C, F> {}

impl<C, F> Future for Until<C, F>
where
    C: FnMut() -> F,
    F: Future<Output = bool>,
{
    type Output = Result<Action, AskError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        if let Poll::Ready(action) = Pin::new(&mut this.ask).poll(cx) {
            return Poll::Ready(action);
        }
        let looking = match &mut this.looking {
            Some(looking) => looking,
            // Its own statement: the author's code does not run under the lock.
            None => {
                let look = this.ask.shared.lock().tape.look(this.ask.ticket);
                if !look {
                    return Poll::Pending;
                }
                this.looking.insert(Box::pin((this.check)()))
            }
        };
        if let Poll::Ready(done) = looking.as_mut().poll(cx) {
            this.looking = None;
            this.ask.shared.looked(this.ask.ticket, done);
        }
        Poll::Pending
    }
}

impl<C, F> core::fmt::Debug for Until<C, F> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Until")
            .field("ask", &self.ask)
            .field("looking", &self.looking.is_some())
            .finish_non_exhaustive()
    }
}

impl Ctx {
    /// A ticket for the page behind the url that is asked **next** under `key`: sealed, good for `ttl` from the
    /// receipt of this request, and only for the principal who sent it (R-138, R-142). The page hands it to
    /// [`Service::open_ticket`](super::Service::open_ticket) and learns which ask of which exchange it serves.
    ///
    /// Its characters need no escaping in a url. It is remembered as a once-value, so that the url is the same
    /// on every run, at about 200 characters of state.
    ///
    /// # Errors
    ///
    /// `-32603` if `key` is empty or too long.
    pub fn ticket(&self, key: &str, ttl: Duration) -> Result<String, RpcError> {
        let inner = self.shared.lock();
        let key = inner.tape.next_key(key);
        drop(inner);
        let facts = &self.shared.facts;
        let (server, entropy, received) = &facts.tickets;
        let expires = received.saturating_add(ttl);
        let ticket = Ticket { exchange: facts.exchange, key, expires };
        let principal = facts.principal.as_deref().map_or(Principal::Anonymous, Principal::Authenticated);
        let name = alloc::format!("{TICKETS}{}", ticket.key);
        let text = self.once_text(&name, || {
            // Each call draws a nonce of its own from the round's entropy.
            let sealed = server.config().sealer.seal_ticket(&ticket, principal, entropy);
            sealed.map_or_else(|_| "null".into(), |token| alloc::format!("\"{token}\""))
        });
        let sealed = Json::trusted(&text).as_string().map(Cow::into_owned);
        sealed.ok_or_else(|| RpcError::internal("Internal error"))
    }
}
