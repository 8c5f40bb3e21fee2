//! Where a ledger's entries are kept: in this process, or in Redis (feature `redis`).
//!
//! A server whose [`Config::ledger`](mrtr_core::server::Config::ledger) is set uses each state once and gives a
//! retry whose reply was lost that reply again. What it needs for that it keeps in a [`Store`]:
//!
//! ```
//! # fn f(config: mrtr_core::server::Config) {
//! use mrtr_core::{handler::Service, ledger::Policy, server::Server};
//! use mrtr_tokio::{server::{Anonymous, Endpoint}, store::MemoryStore};
//!
//! # let mut config = config;
//! config.ledger = Some(Policy::default());
//! let service = Service::new(Server::new(config));
//! // One process; replicas share a Redis.
//! let endpoint = Endpoint::builder(service, Anonymous::new()).ledger(MemoryStore::default()).build();
//! # }
//! ```

use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
};

use mrtr_core::ledger::{Command, Memory, MemoryLimits, StoreEvent};

use crate::clock::Clock;

#[cfg(feature = "redis")]
mod redis;

#[cfg(feature = "redis")]
pub use redis::{Redis, RedisError};
#[cfg(all(feature = "redis", feature = "bridge"))]
pub(crate) use redis::{checked, connect};

/// Keeps the entries of a ledger: carries out one command at a time for one key, as
/// [`mrtr_core::ledger::Operation`] says.
pub trait Store: Send + Sync + 'static {
    /// Carries out a command, once. It answers in bounded time: a command whose end is not known within the
    /// store's patience is [`StoreEvent::Unavailable`], whether it took place or not.
    ///
    /// The future may be dropped, which counts as the same.
    fn apply(&self, command: Command) -> impl Future<Output = StoreEvent> + Send;
}

/// A store in this process, bounded; what it knows ends with the process. For one process: replicas need a
/// store that they share.
#[derive(Clone, Default)]
pub struct MemoryStore {
    memory: Arc<Mutex<Memory>>,
    clock: Clock,
}

impl MemoryStore {
    /// An empty store with these bounds and this clock, which should be that of whoever serves.
    #[must_use]
    pub fn new(limits: MemoryLimits, clock: Clock) -> Self {
        Self { memory: Arc::new(Mutex::new(Memory::new(limits))), clock }
    }

    /// Entries that it holds now. Those that have expired are forgotten first.
    #[must_use]
    pub fn len(&self) -> usize {
        let mut memory = self.lock();
        memory.expire(self.clock.now());
        memory.len()
    }

    /// Whether it holds none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Memory> {
        // Nothing panics while it is held.
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Store for MemoryStore {
    async fn apply(&self, command: Command) -> StoreEvent {
        // Each command forgets what has expired first, so nothing needs a timer.
        self.lock().apply(self.clock.now(), &command)
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("MemoryStore").field(&*self.lock()).finish()
    }
}

/// What a store says, some time later.
pub(crate) type Saying = Pin<Box<dyn Future<Output = StoreEvent> + Send>>;

/// Any store.
#[derive(Clone)]
pub(crate) struct AnyStore(Arc<dyn DynStore>);

trait DynStore: Send + Sync {
    fn apply(self: Arc<Self>, command: Command) -> Saying;
}

impl<S: Store> DynStore for S {
    fn apply(self: Arc<Self>, command: Command) -> Saying {
        Box::pin(async move { Store::apply(&*self, command).await })
    }
}

impl AnyStore {
    pub(crate) fn new(store: impl Store) -> Self {
        Self(Arc::new(store))
    }

    pub(crate) fn apply(&self, command: Command) -> Saying {
        Arc::clone(&self.0).apply(command)
    }
}

impl fmt::Debug for AnyStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Store")
    }
}

/// Says in the log if a ledger is configured that has no store: its retries then meet a store that is down.
pub(crate) fn check(config: &mrtr_core::server::Config, store: Option<&AnyStore>) {
    if config.ledger.is_some() && store.is_none() {
        tracing::error!("the server has a ledger but no store for it: give it one");
    }
}
