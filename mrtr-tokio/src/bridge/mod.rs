//! A bridge over tokio: hosts on pipes and over HTTP, upstreams that are processes or behind urls.
//!
//! What crosses and how is [`mrtr_core::bridge`]'s. This brings it the bytes and the time: one task owns the core's
//! machine, everything else reads and writes.
//!
//! ```no_run
//! # async fn bridge() -> Result<(), Box<dyn std::error::Error>> {
//! use mrtr_core::{bridge::{Config, Transport, Upstream}, wire::Implementation};
//! use mrtr_tokio::{bridge::{Bridge, Front, Options, Reach}, keys::KeySource, server::{self, Anonymous, Bounds}};
//!
//! let reach = Reach::process(|| tokio::process::Command::new("old-server"), Default::default());
//! let era = reach.era(&Default::default()).await?;
//! let upstream = Upstream::new("old", Transport::Pipe, era);
//! let sealer = KeySource::Env("MRTR_KEY").sealer("bridge")?;
//! let config = Config::new(Implementation::new("bridge", "1.0"), sealer, vec![upstream]);
//! let bridge = Bridge::start(config, vec![reach], Options::default())?;
//!
//! let listener = tokio::net::TcpListener::bind("127.0.0.1:3000").await?;
//! let front = Front::new(bridge.clone(), Anonymous::new(), Bounds::default());
//! front.serve(listener, server::Options::default(), std::future::pending()).await?;
//! bridge.close().await;
//! # Ok(())
//! # }
//! ```
//!
//! Whoever does not read what is said to it is given up: a queue to a peer is bounded in bytes and the bridge waits for
//! nobody.
//!
//! | file | what |
//! |---|---|
//! | `driver` | the task that owns the machine |
//! | `hosts` | which response a message for a host over HTTP goes to |
//! | `http`, `pipe` | the fronts: HTTP, a pair of pipes |
//! | `process`, `url` | connections to upstreams |
//! | `leaving` | processes that were told to end and have not |
//! | `inbox` | the doors for whoever answers questions that hosts cannot show |
//! | `peers` | other processes of the same bridge, by streams in a Redis (feature `redis`) |
//! | `probe` | which era an upstream is of |
//! | `sink`, `metrics` | the queue to a peer; numbers for an operator |

mod driver;
mod hosts;
mod http;
#[cfg(unix)]
mod inbox;
mod leaving;
mod metrics;
#[cfg(feature = "redis")]
mod peers;
mod pipe;
mod probe;
mod process;
mod sink;
mod url;

use std::{
    fmt,
    future::Future,
    io,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use mrtr_core::{
    Limits,
    bridge::{Config, ConfigError, Counts, HostId, SessionBounds, Transport},
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    process::Command,
    sync::oneshot,
};

use self::driver::{Driver, Events, In};
#[cfg(unix)]
pub use self::inbox::{InboxToken, TokenError, bind_inbox};
#[cfg(feature = "redis")]
pub use self::peers::Peers;
pub use self::{http::Front, probe::EraUnknown};
use crate::{
    client::{self, Stderr, UrlError, carry::Url},
    clock::{self, Clock},
    server::Identity,
};

/// How an upstream is reached.
#[derive(Clone)]
pub struct Reach(Way);

#[derive(Clone)]
enum Way {
    /// A process for each connection, its command made anew.
    Process {
        command: Arc<dyn Fn() -> Command + Send + Sync>,
        stderr: Stderr,
    },
    Url(Url),
}

impl Reach {
    /// A process for each connection, made by `command`. It speaks on its standard input and output.
    #[must_use]
    pub fn process(command: impl Fn() -> Command + Send + Sync + 'static, stderr: Stderr) -> Self {
        Self(Way::Process { command: Arc::new(command), stderr })
    }

    /// A server behind a url. Of the options those of messages and connections count: limits, headers, credentials,
    /// proxy, roots, time to connect. No credentials of a host are ever among what is sent (R-257).
    ///
    /// # Errors
    ///
    /// As [`Client::http`](client::Client::http).
    pub fn url(url: &str, options: &client::Options) -> Result<Self, UrlError> {
        Ok(Self(Way::Url(Url::new(url, options)?)))
    }

    /// How messages travel.
    #[must_use]
    pub const fn transport(&self) -> Transport {
        match &self.0 {
            Way::Process { .. } => Transport::Pipe,
            Way::Url(_) => Transport::Http,
        }
    }
}

impl fmt::Debug for Reach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Way::Process { stderr, .. } => {
                f.debug_struct("Process").field("stderr", stderr).finish_non_exhaustive()
            }
            Way::Url(url) => f.debug_tuple("Url").field(url).finish(),
        }
    }
}

/// How a [`Bridge`] is carried.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// Sessions of legacy hosts over HTTP.
    pub sessions: SessionBounds,
    /// Bytes that may wait for one peer to take them; more, and it is given up. One message finds room always: less
    /// than `Limits::message_bytes` is taken for as much. Default 16 MiB.
    pub queued_bytes: usize,
    /// How long a process may take to end once its input is closed, before it is told to (SIGTERM), and after as much
    /// again killed; how long requests of a host whose input has ended may still take. Default 3 s.
    pub grace: Duration,
    /// Where the time comes from.
    pub clock: Clock,
    /// The way to other processes with the same keys: a retry whose call one of them holds is handed to it. Default
    /// none: such a retry gets an error, and whoever sends it must always be sent to the same process.
    #[cfg(feature = "redis")]
    pub peers: Option<Peers>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            sessions: SessionBounds::default(),
            queued_bytes: 16 << 20,
            grace: Duration::from_secs(3),
            clock: Clock::system(),
            #[cfg(feature = "redis")]
            peers: None,
        }
    }
}

impl Options {
    fn queued(&self, limits: &Limits) -> usize {
        self.queued_bytes.max(limits.message_bytes)
    }
}

/// Why a bridge cannot start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// Its upstreams cannot be told apart.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// There are not as many upstreams as ways to reach them, or they are reached otherwise than the configuration says.
    #[error("the upstreams of the configuration and the ways to reach them differ")]
    Reaches,
    /// The configuration names other processes, and the options no way to them.
    #[error("the configuration speaks of replicas, and there is no way to reach them")]
    NoPeers,
    /// The system gives no randomness.
    #[error("the system gives no entropy: {0}")]
    Entropy(#[from] io::Error),
}

/// A bridge that runs. Cheap to clone; it ends when it is [closed](Self::close), or the last clone is dropped.
#[derive(Clone)]
pub struct Bridge {
    inner: Arc<Inner>,
}

struct Inner {
    events: Events,
    numbers: Arc<Numbers>,
    limits: Limits,
    options: Options,
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.events.send(In::Close(None));
    }
}

/// Counts up.
#[derive(Default)]
struct Numbers {
    hosts: AtomicU64,
    tickets: AtomicU64,
}

impl Numbers {
    fn host(&self) -> HostId {
        HostId(self.hosts.fetch_add(1, Relaxed))
    }
}

impl Bridge {
    /// Starts it. Must be called within a tokio runtime. `reaches` are those of the configuration's upstreams, in their
    /// order. With [`Options::peers`] the configuration's `replicas` is set.
    ///
    /// # Errors
    ///
    /// If the configuration is not one, or the two differ.
    pub fn start(mut config: Config, reaches: Vec<Reach>, options: Options) -> Result<Self, StartError> {
        #[cfg(feature = "redis")]
        let peers = options.peers.is_some();
        #[cfg(not(feature = "redis"))]
        let peers = false;
        if config.replicas && !peers {
            return Err(StartError::NoPeers);
        }
        config.replicas = peers;
        let transports = config.upstreams.iter().map(|upstream| upstream.transport);
        if !transports.eq(reaches.iter().map(Reach::transport)) {
            return Err(StartError::Reaches);
        }
        let limits = config.limits.clone();
        let bridge = mrtr_core::bridge::Bridge::new(config, clock::entropy()?)?;
        let (events, queue) = Events::new();
        let numbers = Arc::new(Numbers::default());
        let driver = Driver::new(bridge, reaches, options.clone(), (events.clone(), Arc::clone(&numbers)));
        tokio::spawn(driver.run(queue));
        Ok(Self { inner: Arc::new(Inner { events, numbers, limits, options }) })
    }

    /// Serves the host at the other end of a pair of pipes, until its input ends or `shutdown` is ready.
    ///
    /// # Errors
    ///
    /// If reading or writing fails. An output that nobody reads any more is an error; an input that ends is not.
    pub async fn serve_pipe(
        &self,
        identity: Identity,
        input: impl AsyncRead,
        output: impl AsyncWrite + Send + 'static,
        shutdown: impl Future<Output = ()>,
    ) -> io::Result<()> {
        pipe::serve(self, identity, input, output, shutdown).await
    }

    /// Serves those who answer questions in the inbox, for as long as it is polled. A request is an object on a line, and
    /// so is its reply:
    ///
    /// ```text
    /// {"op":"list"}                         {"entries":[{"id":1,"kind":"form","upstream":"up","target":"t","question":…,…}]}
    /// {"op":"answer","id":1,"answer":{…}}   {"answered":1,"accepted":true}
    /// {"op":"decline","id":1}               {"answered":1,"accepted":false}
    /// anything else                         {"error":"…"}
    /// ```
    ///
    /// Whoever can open the socket may answer for everybody: [`bind_inbox`] makes one that only its owner can open. Who
    /// has answered what is logged, what was answered is not.
    #[cfg(unix)]
    pub async fn serve_inbox(&self, listener: tokio::net::UnixListener) {
        inbox::serve(self, listener).await;
    }

    /// Serves those who have the token and answer questions in the inbox, for as long as it is polled. What goes by a line
    /// at a socket ([`serve_inbox`](Self::serve_inbox)) goes here by `POST /inbox` with `Content-Type: application/json`,
    /// the request as its body and `Authorization: Bearer` with the token; the reply is the body of the response (200).
    ///
    /// Without the token it is 401. A request with `Origin`, which only a page in a browser sends, or with a `Host` that
    /// is not this machine, is 403 even with it.
    ///
    /// # Errors
    ///
    /// If the listener's address is not a loopback address, or it has none.
    #[cfg(unix)]
    pub async fn serve_inbox_at(
        &self,
        listener: tokio::net::TcpListener,
        token: InboxToken,
    ) -> io::Result<()> {
        inbox::serve_loopback(self, listener, token).await
    }

    /// Its numbers; `None` once it has ended.
    pub async fn counts(&self) -> Option<Counts> {
        self.numbers().await.map(|(counts, _)| counts)
    }

    /// Takes no new calls from now on. Ready when nothing is under way any more and no parked call waits for its retry.
    pub async fn drain(&self) {
        let (done, idle) = oneshot::channel();
        self.tell(In::Drain);
        self.tell(In::Idle(done));
        // An error says that it has ended, and then it is idle.
        let _ = idle.await;
    }

    /// Ends everything: requests under way fail, sessions and processes are ended in order and waited for.
    pub async fn close(&self) {
        let (done, closed) = oneshot::channel();
        self.tell(In::Close(Some(done)));
        let _ = closed.await;
    }

    async fn numbers(&self) -> Option<(Counts, bool)> {
        let (who, told) = oneshot::channel();
        self.tell(In::Counts(who));
        told.await.ok()
    }

    fn tell(&self, event: In) {
        self.inner.events.send(event);
    }

    fn host(&self) -> HostId {
        self.inner.numbers.host()
    }

    fn ticket(&self) -> u64 {
        self.inner.numbers.tickets.fetch_add(1, Relaxed)
    }

    fn limits(&self) -> Limits {
        self.inner.limits.clone()
    }

    fn queued(&self) -> usize {
        self.inner.options.queued(&self.inner.limits)
    }

    fn grace(&self) -> Duration {
        self.inner.options.grace
    }
}

impl fmt::Debug for Bridge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bridge").field("options", &self.inner.options).finish_non_exhaustive()
    }
}
