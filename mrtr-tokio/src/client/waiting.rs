//! A call between two rounds: kept, saved, carried on in another process.

use std::{fmt, sync::Arc};

use mrtr_core::{
    Entropy,
    client::{
        Answerer, Ask, Exchange, InputRequired, ResumeError,
        connection::{self, Connection},
    },
    seal::{SealError, Sealer},
    wire::AskingMethod,
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

    /// [`save`](Self::save), sealed: nobody without the key can read or change it, nor have it taken for a call to
    /// another server.
    ///
    /// # Errors
    ///
    /// If the sealer only signs.
    pub fn save_sealed(
        &self,
        sealer: &Sealer,
        entropy: &Entropy,
        out: &mut Vec<u8>,
    ) -> Result<(), SealError> {
        self.exchange.save_sealed(&self.server, sealer, entropy, out)
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
        let exchange =
            self.inner.machine.look(|connection| connection.client().resume(saved, &self.inner.server))?;
        Ok(Waiting { exchange, server: Arc::clone(&self.inner.server) })
    }

    /// Reads a call that [`Waiting::save_sealed`] wrote for this server, under any key of the sealer's ring.
    ///
    /// # Errors
    ///
    /// Those of [`load`](Self::load), and if it does not open.
    pub fn load_sealed(&self, saved: &[u8], sealer: &Sealer) -> Result<Waiting, ResumeError> {
        let server = &self.inner.server;
        let exchange =
            self.inner.machine.look(|connection| connection.client().resume_sealed(saved, server, sealer))?;
        Ok(Waiting { exchange, server: Arc::clone(server) })
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
        let exchange = self.inner.ask(waiting.exchange, answerer).await?;
        // The retry has the headers of the first request, and another process may have listed the tools.
        if self.inner.over_http
            && exchange.method() == AskingMethod::ToolsCall.name()
            && self.inner.machine.annotations().is_empty()
            && let Err(error) = self.list_tools().await
        {
            tracing::debug!(%error, "the tools were not listed before a saved call went on");
        }
        let mut exchange = Some(exchange);
        let resume = move |connection: &mut Connection, now| match exchange.take() {
            Some(exchange) => connection.resume(exchange, now),
            None => Err(connection::CallError::Closed),
        };
        self.inner.run(resume, answerer).await
    }
}
