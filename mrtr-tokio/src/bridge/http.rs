//! The front for hosts over HTTP: both eras at one address, and two pages for an operator.

use std::{
    future::{Future, poll_fn},
    io,
    ops::ControlFlow,
    pin::pin,
    sync::{Arc, OnceLock},
    time::Duration,
};

use http::{Method, Request, Response, StatusCode, request::Parts};
use mrtr_core::http::{Accepts, Bind, Content, Gate, NotAName, ReplyBody as Reply, ReplyHead, name};
use tokio::{
    net::TcpListener,
    sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch},
    time::{Instant, sleep, sleep_until},
};

use super::{
    Bridge,
    driver::In,
    hosts::Visit,
    metrics,
    sink::{Item, Items, Sink},
};
use crate::{
    room::{Room, Taken},
    server::{
        self, Bounds, Identity, Principals, ReplyBody,
        body::{Output, Producer},
        drain::{self, Watched},
        entrance::{Entered, Entrance},
        exchange::{raised, restart},
        listen::{self, nothing_here},
        principal::Complaint,
        rules::{self, Extra, Ruled},
    },
};

/// A bridge's front over HTTP.
pub struct Front {
    shared: Arc<Shared>,
}

struct Shared {
    bridge: Bridge,
    principals: Box<dyn Principals>,
    gate: Gate,
    bind: Bind,
    bounds: Bounds,
    requests: Arc<Semaphore>,
    streams: Arc<Semaphore>,
    room: Room,
    complaint: Complaint,
    closing: watch::Sender<bool>,
    /// One receiver for every request in hand.
    busy: watch::Sender<()>,
}

impl Front {
    /// A front for hosts on this machine: `Host` and `Origin` must name it. For a network, [`bind`](Self::bind) it.
    pub fn new(bridge: Bridge, principals: impl Principals, bounds: Bounds) -> Self {
        let limits = &bridge.limits();
        let gate = Gate::new(Bind::Loopback, limits).serve_sessions();
        let permits = |count: usize| Arc::new(Semaphore::new(count.min(Semaphore::MAX_PERMITS)));
        let shared = Shared {
            principals: Box::new(principals),
            gate,
            bind: Bind::Loopback,
            requests: permits(bounds.requests),
            streams: permits(bounds.streams),
            room: Room::new(bounds.body_bytes.max(limits.message_bytes)),
            bounds,
            bridge,
            complaint: Complaint::default(),
            closing: watch::Sender::new(false),
            busy: watch::Sender::new(()),
        };
        Self { shared: Arc::new(shared) }
    }

    /// Where it listens, and which further names may call it.
    ///
    /// # Errors
    ///
    /// Those of `allow`.
    pub fn bind(
        mut self,
        bind: Bind,
        allow: impl FnOnce(Gate) -> Result<Gate, NotAName>,
    ) -> Result<Self, NotAName> {
        let gate = allow(Gate::new(bind, &self.shared.bridge.limits()))?.serve_sessions();
        if let Some(shared) = Arc::get_mut(&mut self.shared) {
            (shared.gate, shared.bind) = (gate, bind);
        }
        Ok(self)
    }

    /// Serves until `shutdown` is ready, and then until what is in hand has been answered or the grace is over.
    ///
    /// Beside the endpoint's path there are `/healthz` (200, or 503 while no new calls are taken) and `/metrics`
    /// (Prometheus text, no content of any message).
    ///
    /// # Errors
    ///
    /// If the listener has no address.
    pub async fn serve(
        self,
        listener: TcpListener,
        options: server::Options,
        shutdown: impl Future<Output = ()>,
    ) -> io::Result<()> {
        listen::carry(listener, self, options, shutdown).await
    }
}

impl core::fmt::Debug for Front {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Front").field("gate", &self.shared.gate).finish_non_exhaustive()
    }
}

impl listen::Front for Front {
    async fn answer(&self, path: &str, request: Request<hyper::body::Incoming>) -> Response<ReplyBody> {
        match request.uri().path() {
            found if found == path => answer(Arc::clone(&self.shared), request).await,
            "/healthz" | "/metrics" => {
                let (parts, body) = request.into_parts();
                let response = operator(&self.shared, &parts).await;
                drain::unread(Request::from_parts(parts, body), response).await
            }
            _ => drain::unread(request, nothing_here()).await,
        }
    }

    fn close(&self) {
        self.shared.closing.send_replace(true);
    }

    async fn idle(&self) {
        self.shared.busy.closed().await;
    }

    fn binding(&self) -> Bind {
        self.shared.bind
    }
}

/// A page for an operator, under the names of the endpoint only.
async fn operator(shared: &Shared, parts: &Parts) -> Response<ReplyBody> {
    if let Ruled::Answer(response) = rules::judge(&shared.gate, parts)
        && response.status() == StatusCode::FORBIDDEN
    {
        return response;
    }
    if parts.method != Method::GET && parts.method != Method::HEAD {
        return rules::bare(StatusCode::METHOD_NOT_ALLOWED, Extra::default(), "GET only\n");
    }
    let Some((counts, draining)) = shared.bridge.numbers().await else {
        return rules::bare(StatusCode::SERVICE_UNAVAILABLE, Extra::default(), "ended\n");
    };
    if parts.uri.path() == "/metrics" {
        return rules::text(StatusCode::OK, metrics::text(&counts, draining));
    }
    match draining {
        false => rules::bare(StatusCode::OK, Extra::default(), "ok\n"),
        true => rules::bare(StatusCode::SERVICE_UNAVAILABLE, Extra::default(), "draining\n"),
    }
}

async fn answer<B>(shared: Arc<Shared>, request: Request<B>) -> Response<ReplyBody>
where
    B: http_body::Body,
    B::Data: bytes::Buf,
{
    let (parts, body) = request.into_parts();
    let body = pin!(body);
    let mut body = Watched::new(&parts, body);
    match take(&shared, parts, &mut body).await {
        ControlFlow::Continue((given, extra)) => respond(shared, given, extra).await,
        ControlFlow::Break(response) => {
            body.drain(response.status()).await;
            response
        }
    }
}

/// Reads a request whole, or says how it is answered.
async fn take<B>(
    shared: &Shared,
    parts: Parts,
    body: &mut Watched<'_, B>,
) -> ControlFlow<Response<ReplyBody>, (Given, Extra)>
where
    B: http_body::Body,
    B::Data: bytes::Buf,
{
    let entrance = Entrance {
        gate: &shared.gate,
        requests: &shared.requests,
        principals: &*shared.principals,
        complaint: &shared.complaint,
    };
    let Entered { accepts, extra, permit, identity } = entrance.pass(&parts)?;
    let limit = shared.bridge.limits().message_bytes;
    let mut room = shared.room.take();
    let mut bytes = Vec::new();
    if parts.method == Method::POST {
        bytes = match rules::read(body, limit, shared.bounds.body_timeout, &mut room).await {
            Ok(bytes) => bytes,
            Err(fault) => return ControlFlow::Break(rules::unread(fault, limit, extra)),
        };
    }
    ControlFlow::Continue((Given { parts, identity, bytes, accepts, room, permit }, extra))
}

async fn respond(shared: Arc<Shared>, given: Given, mut extra: Extra) -> Response<ReplyBody> {
    let named = Arc::new(OnceLock::new());
    let (sender, output) = mpsc::channel(1);
    let writer = Writer { shared, named: Arc::clone(&named), output: sender };
    let produce = writer.run(given);
    let mut producer = Producer::new(produce, output, Arc::default());
    let first = poll_fn(|cx| producer.poll_next(cx)).await;
    let Some(Output { head: Some(head), bytes, last }) = first else {
        // A stream that ends without a word is one of a session, or of a bridge, that has ended.
        return rules::bare(StatusCode::NOT_FOUND, extra, "the session has ended\n");
    };
    if let Some(id) = named.get() {
        extra.put(name::SESSION_ID, id);
    }
    let body = match head.content {
        Content::EventStream if !last => ReplyBody::stream(bytes, producer),
        Content::Empty => ReplyBody::empty(),
        Content::Json | Content::EventStream | _ => ReplyBody::whole(bytes),
    };
    rules::reply(head, extra, body)
}

struct Given {
    parts: Parts,
    identity: Identity,
    bytes: Vec<u8>,
    accepts: Accepts,
    room: Taken,
    permit: OwnedSemaphorePermit,
}

/// Says that nobody reads a response any more, unless it is over.
struct Leave<'b> {
    bridge: &'b Bridge,
    ticket: u64,
    over: bool,
}

impl Drop for Leave<'_> {
    fn drop(&mut self) {
        if !self.over {
            self.bridge.tell(In::Left { ticket: self.ticket });
        }
    }
}

/// A request that has waited so long is one that waits for a person.
const LONG: Duration = Duration::from_secs(1);

struct Writer {
    shared: Arc<Shared>,
    named: Arc<OnceLock<String>>,
    output: mpsc::Sender<Output>,
}

impl Writer {
    /// Hands the request to the bridge and writes what comes back.
    async fn run(self, taken: Given) {
        let Given { parts, identity, bytes, accepts, room, permit } = taken;
        let bridge = &self.shared.bridge;
        let _busy = self.shared.busy.subscribe();
        let listens = parts.method == Method::GET;
        let (sink, items) = Sink::new(bridge.queued());
        let ticket = bridge.ticket();
        let mut leave = Leave { bridge, ticket, over: false };
        bridge.tell(In::Visit(Box::new(Visit { parts, identity, body: bytes, sink, ticket, room })));
        self.write(items, accepts, listens, permit).await;
        leave.over = true;
    }

    async fn write(&self, mut items: Items, accepts: Accepts, listens: bool, permit: OwnedSemaphorePermit) {
        let accepts = if listens { Accepts::EVENT_STREAM } else { accepts };
        let mut reply = Reply::new(accepts);
        let mut prime = None;
        let mut closing = self.shared.closing.subscribe();
        let every = self.shared.bounds.keep_alive;
        let mut silence = pin!(sleep(every));
        let mut permits = (Some(permit), None);
        let long = Instant::now() + LONG;
        let (mut quiet, mut opened) = (false, false);
        loop {
            let mut bytes = Vec::new();
            let mut last = false;
            let item = tokio::select! {
                biased;
                item = items.recv() => item,
                () = raised(&mut closing), if listens => None,
                () = &mut silence, if !quiet => Some(Item::Alive),
                () = sleep_until(long), if permits.0.is_some() && permits.1.is_none() => {
                    // Answers of people who are asked must find room among the requests.
                    permits.1 = Arc::clone(&self.shared.streams).try_acquire_owned().ok();
                    if permits.1.is_some() {
                        permits.0 = None;
                    } else {
                        permits.1 = permits.0.take();
                    }
                    continue;
                }
            };
            let head = match item {
                None => return,
                Some(Item::Quiet) => {
                    quiet = true;
                    continue;
                }
                Some(Item::Session(id)) => {
                    let _ = self.named.set(id);
                    continue;
                }
                Some(Item::Prime(id)) => {
                    prime = Some(id);
                    continue;
                }
                Some(Item::Opened | Item::Alive) => {
                    let head = reply.keep_alive(&mut bytes);
                    if let Some(id) = prime.take().filter(|_| head.is_some()) {
                        id.write_prime(&mut bytes);
                    }
                    head
                }
                // It has been taken up elsewhere while this was on its way.
                Some(Item::Message(_)) if items.is_cut() => return,
                Some(Item::Message(message)) => match message.last {
                    // Cancelled: its stream ends without a word.
                    Some(_) if message.bytes.is_empty() && opened => return,
                    Some(class) => {
                        last = true;
                        let opens = !accepts.json && accepts.event_stream && class.status() == 200;
                        if let Some(id) = message.event.filter(|_| opened || opens) {
                            id.write(&mut bytes);
                        }
                        reply.finish(class, &message.bytes, &mut bytes)
                    }
                    None => {
                        if let Some(id) = message.event.filter(|_| accepts.event_stream) {
                            id.write(&mut bytes);
                        }
                        reply.notification(&message.bytes, &mut bytes)
                    }
                },
            };
            opened |= head.is_some();
            restart(silence.as_mut(), every);
            self.send(head, bytes, last).await;
            if last {
                return;
            }
        }
    }

    async fn send(&self, head: Option<ReplyHead>, bytes: Vec<u8>, last: bool) {
        if head.is_some() || !bytes.is_empty() {
            // An error says that nobody reads any more, and then nobody polls this either.
            let _ = self.output.send(Output { head, bytes, last }).await;
        }
    }
}
