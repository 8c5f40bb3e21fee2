//! What all requests share.

use std::{sync::Arc, time::Duration};

use http::{Method, Request, Response};
use mrtr_core::{
    handler::Service,
    http::{Bind, Gate},
    legacy,
};
use tokio::sync::{Semaphore, watch};

use super::{
    ReplyBody, exchange,
    principal::{Complaint, Principals},
    rules,
    sessions::Hub,
};
use crate::{
    changes::Changes,
    clock::Clock,
    room::Room,
    store::{self, AnyStore, Store},
};

/// Bounds on what peers can make the endpoint hold, and for how long.
///
/// The size of a message is the core's (`Limits::message_bytes`).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Bounds {
    /// Requests at once. Those over the bound get a 503 at once. Default 1,024.
    pub requests: usize,
    /// Subscriptions at once, not counted among the requests. Default 1,024.
    pub subscriptions: usize,
    /// Streams of legacy sessions at once, not counted among the requests: calls that run, with or without a
    /// connection, and streams opened by GET. A call may wait for a person for hours, and the answer, which is a
    /// request, has to find room. Default 1,024.
    pub streams: usize,
    /// Bytes of bodies that are held at once: those that arrive, and those whose requests are in hand. A body that
    /// finds no room gets a 503. One message finds it always: less than `Limits::message_bytes` is taken for as
    /// much. Default 256 MiB.
    pub body_bytes: usize,
    /// How long a body may take to arrive. Default 30 s.
    pub body_timeout: Duration,
    /// How long a reply may be silent before a comment is sent, so that nobody takes the connection for dead.
    /// The comment opens the event stream. Default 15 s.
    pub keep_alive: Duration,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            requests: 1_024,
            subscriptions: 1_024,
            streams: 1_024,
            body_bytes: 256 << 20,
            body_timeout: Duration::from_secs(30),
            keep_alive: Duration::from_secs(15),
        }
    }
}

/// Answers requests for one [`Service`]. Cheap to clone; must be used within a tokio runtime.
#[derive(Clone)]
pub struct Endpoint {
    shared: Arc<Shared>,
}

pub(super) struct Shared {
    pub(super) service: Service,
    pub(super) principals: Box<dyn Principals>,
    pub(super) gate: Gate,
    pub(super) bind: Bind,
    pub(super) changes: Changes,
    pub(super) bounds: Bounds,
    pub(super) clock: Clock,
    pub(super) store: Option<AnyStore>,
    pub(super) requests: Arc<Semaphore>,
    pub(super) room: Room,
    pub(super) subscriptions: Arc<Semaphore>,
    /// Whether the server is going away: subscriptions are closed in order.
    pub(super) closing: watch::Sender<bool>,
    /// One receiver for every request in hand.
    pub(super) busy: watch::Sender<()>,
    pub(super) complaint: Complaint,
    /// Sessions of the legacy eras, if they are served.
    pub(super) legacy: Option<Hub>,
}

impl Endpoint {
    /// An endpoint for callers on this machine: `Host` and `Origin` must name it. For a network, give it
    /// [another gate](EndpointBuilder::bind).
    pub fn new(service: Service, principals: impl Principals) -> Self {
        Self::builder(service, principals).build()
    }

    /// An endpoint to be set up in detail.
    pub fn builder(service: Service, principals: impl Principals) -> EndpointBuilder {
        let gate = Gate::new(Bind::Loopback, &service.server().config().limits);
        EndpointBuilder {
            service,
            principals: Box::new(principals),
            gate,
            bind: Bind::Loopback,
            changes: Changes::new(),
            bounds: Bounds::default(),
            clock: Clock::system(),
            store: None,
            legacy: None,
        }
    }

    /// Answers one request. The future must be polled within a tokio runtime; dropping it, or the body of the
    /// response, cancels the request (R-187), unless it belongs to a legacy session: there a lost connection
    /// cancels nothing (R-239).
    pub async fn call<B>(&self, request: Request<B>) -> Response<ReplyBody>
    where
        B: http_body::Body,
        B::Data: bytes::Buf,
    {
        let head = request.method() == Method::HEAD;
        let response = exchange::answer(Arc::clone(&self.shared), request).await;
        if head { rules::without_body(response) } else { response }
    }

    /// What tells open subscriptions of changes.
    #[must_use]
    pub fn changes(&self) -> &Changes {
        &self.shared.changes
    }

    /// Closes all subscriptions in order (R-205), and those to come. [`serve`](super::serve) does this by
    /// itself when it shuts down.
    pub fn close(&self) {
        self.shared.closing.send_replace(true);
    }

    /// Waits until no request is in hand, commits included that go on without their connection.
    pub async fn idle(&self) {
        self.shared.busy.closed().await;
    }

    pub(super) fn binding(&self) -> Bind {
        self.shared.bind
    }
}

impl core::fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Endpoint")
            .field("service", &self.shared.service)
            .field("gate", &self.shared.gate)
            .field("bounds", &self.shared.bounds)
            .finish_non_exhaustive()
    }
}

/// Sets up an [`Endpoint`].
#[must_use = "build it"]
pub struct EndpointBuilder {
    service: Service,
    principals: Box<dyn Principals>,
    gate: Gate,
    bind: Bind,
    changes: Changes,
    bounds: Bounds,
    clock: Clock,
    store: Option<AnyStore>,
    legacy: Option<legacy::Config>,
}

impl EndpointBuilder {
    /// Where it listens, and which further names may call it: `allow` adds them to a gate of that binding.
    ///
    /// ```
    /// # use mrtr_tokio::server::{Anonymous, Bind, Endpoint};
    /// # fn f(service: mrtr_core::handler::Service) -> Result<(), Box<dyn std::error::Error>> {
    /// let endpoint = Endpoint::builder(service, Anonymous::new())
    ///     .bind(Bind::Network, |gate| gate.allow_host("mcp.example.com")?.allow_origin("https://app.example.com"))?
    ///     .build();
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// Those of `allow`.
    pub fn bind<E>(mut self, bind: Bind, allow: impl FnOnce(Gate) -> Result<Gate, E>) -> Result<Self, E> {
        self.gate = allow(Gate::new(bind, &self.service.server().config().limits))?;
        self.bind = bind;
        Ok(self)
    }

    /// The handle that handlers announce changes with.
    pub fn changes(self, changes: Changes) -> Self {
        Self { changes, ..self }
    }

    /// Also serves clients of the legacy eras, in sessions, at the same address: each message says which era it
    /// belongs to (R-052, G-44). Without this they are told which revision is served. [`Bounds::streams`] and the
    /// bounds of `config` hold for all sessions together.
    pub fn legacy(self, config: legacy::Config) -> Self {
        Self { legacy: Some(config), ..self }
    }

    /// Other bounds.
    pub fn bounds(self, bounds: Bounds) -> Self {
        Self { bounds, ..self }
    }

    /// Another clock.
    pub fn clock(self, clock: Clock) -> Self {
        Self { clock, ..self }
    }

    /// Where the entries of the ledger are kept that the service's
    /// [configuration](mrtr_core::server::Config::ledger) has. Without a store, every retry meets one that is
    /// down.
    pub fn ledger(self, store: impl Store) -> Self {
        Self { store: Some(AnyStore::new(store)), ..self }
    }

    /// The endpoint.
    #[must_use]
    pub fn build(self) -> Endpoint {
        store::check(self.service.server().config(), self.store.as_ref());
        let legacy = self.legacy.map(|config| Hub::new(self.service.clone(), config, self.bounds.streams));
        let message = self.service.server().config().limits.message_bytes;
        Endpoint {
            shared: Arc::new(Shared {
                room: Room::new(self.bounds.body_bytes.max(message)),
                requests: Arc::new(Semaphore::new(self.bounds.requests.min(Semaphore::MAX_PERMITS))),
                subscriptions: Arc::new(Semaphore::new(
                    self.bounds.subscriptions.min(Semaphore::MAX_PERMITS),
                )),
                service: self.service,
                principals: self.principals,
                gate: if legacy.is_some() { self.gate.serve_sessions() } else { self.gate },
                bind: self.bind,
                changes: self.changes,
                bounds: self.bounds,
                clock: self.clock,
                store: self.store,
                closing: watch::Sender::new(false),
                busy: watch::Sender::new(()),
                complaint: Complaint::default(),
                legacy,
            }),
        }
    }
}

impl core::fmt::Debug for EndpointBuilder {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("EndpointBuilder")
            .field("gate", &self.gate)
            .field("bounds", &self.bounds)
            .finish_non_exhaustive()
    }
}
