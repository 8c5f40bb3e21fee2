//! A call between two rounds: kept, saved, carried on in another process.

use std::{fmt, sync::Arc};

use mrtr_core::{
    client::{Answerer, Ask, Exchange, InputRequired, ResumeError},
    http::ParamHeaders,
};

use super::{CallError, Client, Reply};

/// A call that waits for answers. It holds the server's state and the answers so far, and is tied to the server.
///
/// `Debug` shows keys and sizes.
pub struct Waiting {
    pub(super) exchange: Exchange<InputRequired>,
    pub(super) server: Arc<str>,
}

impl Waiting {
    /// Its questions, with the answers that are there.
    pub fn asks(&self) -> impl ExactSizeIterator<Item = Ask<'_>> {
        self.exchange.asks()
    }

    /// The method that was called.
    #[must_use]
    pub fn method(&self) -> &str {
        self.exchange.method()
    }

    /// Appends it as bytes that [`Client::load`] reads, in this process or another, on this day or another. They are
    /// plain: whoever can read them has the answers and the state, and whoever can change them changes the call.
    pub fn save(&self, out: &mut Vec<u8>) {
        self.exchange.save(&self.server, out);
    }
}

impl fmt::Debug for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Waiting").field("exchange", &self.exchange).finish_non_exhaustive()
    }
}

impl Client {
    /// What saved calls are tied to: the server's url without its fragment, or its command.
    #[must_use]
    pub fn server(&self) -> &str {
        &self.inner.server
    }

    /// Reads a call that [`Waiting::save`] wrote for this server.
    ///
    /// # Errors
    ///
    /// If the bytes are not whole, were saved for another server, or are over what this client allows.
    pub fn load(&self, saved: &[u8]) -> Result<Waiting, ResumeError> {
        let exchange = self.inner.core.resume(saved, &self.inner.server)?;
        Ok(Waiting { exchange, server: Arc::clone(&self.inner.server) })
    }

    /// Carries a call on: puts what is not answered yet to `answerer`, and so on until the result is there.
    ///
    /// # Errors
    ///
    /// Those of [`call`](Self::call). [`CallError::OtherServer`] if it was made by a client of another server.
    pub async fn resume(&self, waiting: Waiting, answerer: &dyn Answerer) -> Result<Reply, CallError> {
        if waiting.server != self.inner.server {
            return Err(CallError::OtherServer);
        }
        self.inner.carry_on(waiting.exchange, ParamHeaders::NONE, answerer).await
    }
}
