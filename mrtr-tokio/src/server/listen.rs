//! Connections: accepts them, bounds them, and lets them end well.

use std::{convert::Infallible, future::Future, io, pin::pin, sync::Arc, time::Duration};

use http::{Request, Response, StatusCode};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use mrtr_core::http::Bind;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore, watch},
    time::timeout,
};

use super::{Endpoint, ReplyBody, drain, exchange::raised, patience::Patient, rules};

/// How [`serve`] serves.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Options {
    /// The one path that is served. Default `/mcp`.
    pub path: String,
    /// Connections at once. Further ones wait in the listener's queue, and that is logged. Default 4,096.
    pub connections: usize,
    /// How long a connection may lie idle, and how long the head of a request may take. Default 30 s.
    pub idle: Duration,
    /// How long a peer may take nothing of what is written. Default 30 s.
    pub stall: Duration,
    /// Bytes of a request's head. Default 32 KiB; hyper takes at most 100 headers in it.
    pub head_bytes: usize,
    /// How long a shutdown waits for requests in hand, and then for commits that go on without their
    /// connection. Default 10 s.
    pub grace: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            path: String::from("/mcp"),
            connections: 4_096,
            idle: Duration::from_secs(30),
            stall: Duration::from_secs(30),
            head_bytes: 32 << 10,
            grace: Duration::from_secs(10),
        }
    }
}

/// Serves until `shutdown` is ready, and then until what is in hand has been answered or the grace is over:
/// nothing new is taken, subscriptions are closed in order, replies are finished, commits are waited for.
///
/// # Errors
///
/// If the listener has no address. A connection that fails ends alone.
pub async fn serve(
    listener: TcpListener,
    endpoint: Endpoint,
    options: Options,
    shutdown: impl Future<Output = ()>,
) -> io::Result<()> {
    carry(listener, endpoint, options, shutdown).await
}

/// What answers the requests of a listener's connections.
pub(crate) trait Front: Send + Sync + 'static {
    /// Answers one request; `path` is the endpoint's.
    fn answer(
        &self,
        path: &str,
        request: Request<Incoming>,
    ) -> impl Future<Output = Response<ReplyBody>> + Send;

    /// Nothing new comes; what would stay for long is closed.
    fn close(&self);

    /// Waits until nothing goes on.
    fn idle(&self) -> impl Future<Output = ()> + Send;

    /// Which names it takes.
    fn binding(&self) -> Bind;
}

impl Front for Endpoint {
    async fn answer(&self, path: &str, request: Request<Incoming>) -> Response<ReplyBody> {
        if request.uri().path() == path {
            self.call(request).await
        } else {
            drain::unread(request, nothing_here()).await
        }
    }

    fn close(&self) {
        Self::close(self);
    }

    fn idle(&self) -> impl Future<Output = ()> + Send {
        Self::idle(self)
    }

    fn binding(&self) -> Bind {
        Self::binding(self)
    }
}

/// The answer at a path that is not served.
pub(crate) fn nothing_here() -> Response<ReplyBody> {
    let text = "nothing here; the endpoint has another path\n";
    rules::bare(StatusCode::NOT_FOUND, rules::Extra::default(), text)
}

/// Carries the requests of a listener's connections to whoever answers them.
pub(crate) async fn carry<F: Front>(
    listener: TcpListener,
    endpoint: F,
    options: Options,
    shutdown: impl Future<Output = ()>,
) -> io::Result<()> {
    let address = listener.local_addr()?;
    if endpoint.binding() == Bind::Loopback && !address.ip().is_loopback() {
        tracing::warn!(
            %address,
            "this server listens on a network but takes only requests to loopback names: see EndpointBuilder::bind"
        );
    }
    let connections = Arc::new(Semaphore::new(options.connections.min(Semaphore::MAX_PERMITS)));
    // Receivers count the connections that are open.
    let (stop, _) = watch::channel(false);
    let shared = Arc::new((endpoint, options));
    let mut shutdown = pin!(shutdown);
    let mut full = 0;
    loop {
        let (stream, permit) = tokio::select! {
            biased;
            () = &mut shutdown => break,
            accepted = accept(&listener, &connections, &mut full) => accepted,
        };
        tokio::spawn(connection(stream, Arc::clone(&shared), stop.subscribe(), permit));
    }
    drop(listener);
    let (endpoint, options) = &*shared;
    endpoint.close();
    stop.send_replace(true);
    if timeout(options.grace, stop.closed()).await.is_err() {
        tracing::warn!(
            connections = stop.receiver_count(),
            "connections are cut off at the end of the grace"
        );
    }
    drop(stop);
    if timeout(options.grace, endpoint.idle()).await.is_err() {
        tracing::warn!("commits were still going on at the end of the grace");
    }
    Ok(())
}

/// Fewer bytes hyper does not take for its buffers.
const LEAST_BUFFER: usize = 8 << 10;

/// The next connection, once there is room for it. `full` counts how often there was none.
async fn accept(
    listener: &TcpListener,
    connections: &Arc<Semaphore>,
    full: &mut u64,
) -> (TcpStream, OwnedSemaphorePermit) {
    loop {
        let free = match Arc::clone(connections).try_acquire_owned() {
            Ok(permit) => Ok(permit),
            Err(_) => {
                *full = full.saturating_add(1);
                // Whoever keeps the door full must not be able to fill the log.
                if full.is_power_of_two() {
                    tracing::warn!(
                        total = *full,
                        "as many connections are open as may be: further ones wait"
                    );
                }
                Arc::clone(connections).acquire_owned().await
            }
        };
        // The semaphore is never closed.
        let Ok(permit) = free else { return std::future::pending().await };
        match listener.accept().await {
            Ok((stream, _)) => return (stream, permit),
            // The peer left before it was its turn, or this process has no more files: the next one may do better.
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }
}

async fn connection<F: Front>(
    stream: TcpStream,
    shared: Arc<(F, Options)>,
    mut stop: watch::Receiver<bool>,
    _permit: OwnedSemaphorePermit,
) {
    // Without it the last bytes of an event stream may wait 40 ms for the acknowledgement of those before.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "a connection without TCP_NODELAY");
    }
    let options = &shared.1;
    let service = service_fn(|request: Request<Incoming>| {
        let shared = Arc::clone(&shared);
        async move {
            let (front, options) = &*shared;
            Ok::<_, Infallible>(front.answer(&options.path, request).await)
        }
    });
    let io = TokioIo::new(Patient::new(stream, options.stall));
    let mut connection = pin!(
        http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(options.idle)
            .max_header_size(options.head_bytes)
            .max_buf_size(options.head_bytes.max(LEAST_BUFFER))
            .serve_connection(io, service)
    );
    let mut ended = tokio::select! {
        ended = connection.as_mut() => Some(ended),
        () = raised(&mut stop) => None,
    };
    if ended.is_none() {
        connection.as_mut().graceful_shutdown();
        ended = tokio::select! {
            ended = connection.as_mut() => Some(ended),
            () = gone(&mut stop) => None,
        };
    }
    if let Some(Err(error)) = ended {
        tracing::debug!(%error, "a connection broke");
    }
}

/// Ready when the sender is dropped, which is at the end of the grace.
async fn gone(stop: &mut watch::Receiver<bool>) {
    while stop.changed().await.is_ok() {}
}
