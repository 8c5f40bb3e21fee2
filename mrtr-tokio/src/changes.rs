//! Tells open subscriptions that something changed.

use std::sync::Arc;

use mrtr_core::catalog::Change;
use tokio::sync::broadcast;

/// Changes that a subscription may be behind before it is closed.
const BACKLOG: usize = 1_024;

/// A handle to announce changes with. Cheap to clone: give one to the handlers, and the same one to the
/// [`Endpoint`](crate::server::Endpoint) or to [`stdio`](crate::stdio).
///
/// A subscriber that falls more than 1,024 changes behind is not told less than happened: its stream is closed
/// in order, and it has to subscribe again and read anew.
///
/// ```
/// use mrtr_core::catalog::Change;
/// use mrtr_tokio::changes::Changes;
///
/// let changes = Changes::new();
/// changes.notify(Change::Tools); // nobody listens yet: nothing happens
/// ```
#[derive(Clone, Debug)]
pub struct Changes(broadcast::Sender<Arc<Change>>);

impl Changes {
    /// A hub of its own.
    #[must_use]
    pub fn new() -> Self {
        Self(broadcast::Sender::new(BACKLOG))
    }

    /// Announces a change to every subscription that wants to hear of it. Never waits.
    pub fn notify(&self, change: Change) {
        // An error says that nobody listens.
        let _ = self.0.send(Arc::new(change));
    }

    /// Everything announced from now on.
    pub(crate) fn subscribe(&self) -> Subscription {
        Subscription(self.0.subscribe())
    }
}

impl Default for Changes {
    fn default() -> Self {
        Self::new()
    }
}

pub(crate) struct Subscription(broadcast::Receiver<Arc<Change>>);

impl Subscription {
    /// The next change; `None` if some were lost or no more can come. Safe to drop half-way.
    pub(crate) async fn next(&mut self) -> Option<Arc<Change>> {
        match self.0.recv().await {
            Ok(change) => Some(change),
            Err(broadcast::error::RecvError::Lagged(lost)) => {
                tracing::warn!(lost, "a subscription fell behind and is closed");
                None
            }
            // Every handle is gone, this endpoint's included: the server is going away.
            Err(broadcast::error::RecvError::Closed) => None,
        }
    }
}
