//! A client over streamable HTTP and over the stdio of a child process.
//!
//! What the protocol wants of a client is the core's: which request goes out, what a reply means, when to stop.
//! This brings the bytes to the server, and the questions to an [`Answerer`](mrtr_core::client::Answerer).
//!
//! ```no_run
//! # async fn call() -> Result<(), Box<dyn std::error::Error>> {
//! use mrtr_core::{client::{Answerer, Answering, Config, Elicit, Question}, form::Elicited, wire::{ClientCapabilities, Implementation}};
//! use mrtr_tokio::client::{Client, Options};
//!
//! /// Says no to every form.
//! struct Never;
//!
//! impl Answerer for Never {
//!     fn forms(&self) -> Option<&dyn Elicit> {
//!         Some(self)
//!     }
//! }
//!
//! impl Elicit for Never {
//!     fn elicit<'a>(&'a self, question: Question<'a>) -> Answering<'a, Elicited<String>> {
//!         eprintln!("{:?}", question.request().message());
//!         Box::pin(async { Ok(Elicited::Decline) })
//!     }
//! }
//!
//! let config = Config::new(Implementation::new("host", "1.0"), ClientCapabilities::of(&Never));
//! let client = Client::http("http://127.0.0.1:3000/mcp", config, Options::default())?;
//! let reply = client.call_tool("delete", r#"{"path":"notes.txt"}"#, &Never).await?;
//! println!("{}", reply.result().as_str());
//! # Ok(())
//! # }
//! ```
//!
//! Nothing is cached here: no list, no result, no question. Whoever does looks at [`Reply::may_be_kept`] first (R-202),
//! and answers from a cache only what was asked with the same method and parameters, for the same party (R-203).
//!
//! | file | what |
//! |---|---|
//! | `machine` | the core's connection, with a clock and a lock |
//! | `call` | one call, from its first request to its outcome |
//! | `waiting` | a call between two rounds: kept, saved, carried on |
//! | `event` | what happens on the wire, for traces |
//! | `list` | lists of tools, prompts and resources |
//! | `wire` | a request and the messages that come back for it, over either transport |
//! | `http`, `connect`, `redirect`, `authorize` | streamable HTTP: messages, connections, credentials |
//! | `pipe`, `child`, `head` | stdio: lines, and the process at their other end |

mod authorize;
mod call;
#[cfg(feature = "bridge")]
pub(crate) mod carry;
mod child;
mod connect;
mod event;
mod http;
mod list;
mod machine;
mod pipe;
mod post;
mod redirect;
mod waiting;
mod wire;

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use ::http::{HeaderName, HeaderValue};
use mrtr_core::{
    Limits,
    client::{
        Asking, Config, Progress,
        connection::{Connection, ConnectionConfig},
    },
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    process::Command,
    sync::{mpsc, oneshot},
    task::AbortHandle,
};

use self::{
    http::Http,
    machine::{Machine, Out},
    pipe::{Pipe, Source},
    post::Posts,
};

pub use authorize::{Authorize, Bearer, Challenge, Credentials, NotAToken};
pub use call::{CallError, Reply};
pub use child::Stderr;
pub use connect::{Proxy, Roots};
pub use event::{Event, OnEvent};
pub use http::{Head, OnHead, UrlError};
pub use list::Tool;
pub use waiting::Waiting;
pub use wire::{Ended, WireError};

use crate::clock::Clock;

/// How a [`Client`] carries its messages.
#[derive(Clone)]
#[non_exhaustive]
pub struct Options {
    /// The bounds of messages, in both directions. They replace those of the configuration.
    pub limits: Limits,
    /// Headers of every HTTP request, beside those of the protocol. Like everything else they go to the origin of the
    /// server's url alone: no redirect to another one is followed.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// Who gives the credentials of every HTTP request: a [`Bearer`] token, or a hook that renews it.
    pub authorize: Option<Arc<dyn Authorize>>,
    /// Which eras are spoken, and how they are told apart.
    pub connection: ConnectionConfig,
    /// Whether the stream is opened, by GET, on which legacy servers say what belongs to no call. Default: yes.
    pub listens: bool,
    /// How questions are put to answerers.
    pub asking: Asking,
    /// Whether progress is asked for where [`Client::call_tool`] and its kind make the call. Servers may answer with a
    /// stream then. Default: no.
    pub progress: bool,
    /// Hears what happens on the wire: for progress bars and traces.
    pub events: Option<OnEvent>,
    /// Hears the head of every HTTP request and response: for traces.
    pub heads: Option<OnHead>,
    /// Through which proxy HTTP goes. Default: the one that the environment names.
    pub proxy: Proxy,
    /// Who is believed when an HTTPS server shows its certificate. Default: the system's roots.
    pub roots: Roots,
    /// How long connecting may take, TLS and proxy included. Default 10 s.
    pub connect_timeout: Duration,
    /// How long the child may take to end once its input is closed, before it is told to (SIGTERM, where there is such
    /// a thing), and after as much again killed. Default 3 s.
    pub grace: Duration,
    /// What becomes of what the child says on its standard error. Default: its last lines are in the error if it dies.
    pub stderr: Stderr,
    /// Where the time comes from.
    pub clock: Clock,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            limits: Limits::default(),
            headers: Vec::new(),
            authorize: None,
            connection: ConnectionConfig::default(),
            listens: true,
            asking: Asking::default(),
            progress: false,
            events: None,
            heads: None,
            proxy: Proxy::default(),
            roots: Roots::default(),
            connect_timeout: Duration::from_secs(10),
            grace: Duration::from_secs(3),
            stderr: Stderr::default(),
            clock: Clock::system(),
        }
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.headers.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("Options")
            .field("limits", &self.limits)
            .field("headers", &names)
            .field("authorize", &self.authorize.is_some())
            .field("proxy", &self.proxy)
            .field("connect_timeout", &self.connect_timeout)
            .field("grace", &self.grace)
            .field("stderr", &self.stderr)
            .finish_non_exhaustive()
    }
}

/// Calls one server, of whatever era. Cheap to clone; calls run side by side. Everything is ended when the last clone is
/// dropped; [`close`](Self::close) does it in order.
#[derive(Clone)]
pub struct Client {
    inner: Arc<Inner>,
}

struct Inner {
    machine: Arc<Machine>,
    /// What the tasks are made from, until the first call.
    idle: Mutex<Option<Idle>>,
    queue: mpsc::UnboundedSender<Out>,
    tasks: Mutex<Vec<AbortHandle>>,
    /// What saved calls are tied to.
    server: Arc<str>,
    over_http: bool,
    asking: Asking,
    progress: Progress,
}

struct Idle {
    transport: Transport,
    queue: mpsc::UnboundedReceiver<Out>,
}

enum Transport {
    Http(Arc<Posts>),
    Pipe(Pipe),
}

impl Client {
    /// A client of the server at this url. Nothing is sent yet. Calls must be made within a tokio runtime.
    ///
    /// # Errors
    ///
    /// If it is no `http` or `https` address, or the proxy or the TLS roots cannot be used.
    pub fn http(url: &str, config: Config, options: Options) -> Result<Self, UrlError> {
        let posts = Posts::new(Http::new(url, &options)?, options.listens);
        let server = posts.server();
        let connection =
            Connection::over_http(config.limits(options.limits.clone()), options.connection.clone());
        Ok(Self::new(Transport::Http(Arc::new(posts)), server, connection, options))
    }

    /// A client of the server that this command starts. It is started with the first request, and again if it
    /// has ended in between (R-185); it is killed when the last clone of the client is dropped. To let it end by
    /// itself, [`close`](Self::close) the client.
    ///
    /// Standard input and output are taken for the protocol; standard error is as [`Options::stderr`] says.
    #[must_use]
    pub fn stdio(command: Command, config: Config, options: Options) -> Self {
        let words = std::iter::once(command.as_std().get_program()).chain(command.as_std().get_args());
        let words: Vec<String> = words.map(|word| call::quoted(&word.to_string_lossy())).collect();
        let server = format!("stdio:[{}]", words.join(","));
        let source = Source::Command(Box::new(command), options.stderr.clone());
        Self::piped(source, server, config, options)
    }

    /// A client of whoever reads `output` and writes `input`, one message a line. What is saved of its calls is tied to
    /// no server in particular.
    #[must_use]
    pub fn pipe(
        input: impl AsyncRead + Send + 'static,
        output: impl AsyncWrite + Send + 'static,
        config: Config,
        options: Options,
    ) -> Self {
        let source = Source::Given(Some((Box::pin(input), Box::pin(output))));
        Self::piped(source, String::from("pipe:"), config, options)
    }

    fn piped(source: Source, server: String, config: Config, options: Options) -> Self {
        let pipe = Pipe { source, grace: options.grace };
        let connection =
            Connection::on_pipe(config.limits(options.limits.clone()), options.connection.clone());
        Self::new(Transport::Pipe(pipe), server, connection, options)
    }

    fn new(transport: Transport, server: String, connection: Connection, options: Options) -> Self {
        let (sender, queue) = mpsc::unbounded_channel();
        let (over_http, restarts) = match &transport {
            Transport::Http(_) => (true, false),
            Transport::Pipe(pipe) => (false, pipe.restarts()),
        };
        let surroundings = (options.clock, options.limits);
        let machine = Machine::new(connection, sender.clone(), surroundings, options.events, restarts);
        let inner = Inner {
            machine: Arc::new(machine),
            idle: Mutex::new(Some(Idle { transport, queue })),
            queue: sender,
            tasks: Mutex::default(),
            server: server.into(),
            over_http,
            asking: options.asking,
            progress: if options.progress { Progress::RequestId } else { Progress::Unwanted },
        };
        Self { inner: Arc::new(inner) }
    }

    /// Ends the connection in order: the child's input is closed, and it is waited for; the session of a legacy server
    /// over HTTP is given back. What is under way fails. The next call begins anew.
    pub async fn close(&self) {
        let begun = lock(&self.inner.idle).is_none();
        let (done, ended) = oneshot::channel();
        if begun && self.inner.queue.send(Out::End(done)).is_ok() {
            let _ = ended.await;
        }
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("connection", &self.inner.machine).finish_non_exhaustive()
    }
}

impl Inner {
    /// Starts what carries messages and wakes timers, unless it runs.
    fn start(&self) {
        let Some(Idle { transport, queue }) = lock(&self.idle).take() else { return };
        let (machine, timed) = (Arc::clone(&self.machine), Arc::clone(&self.machine));
        let carrying = match transport {
            Transport::Http(posts) => tokio::spawn(posts.carry(machine, queue)),
            Transport::Pipe(pipe) => tokio::spawn(pipe.carry(machine, queue, self.queue.downgrade())),
        };
        let ticking = tokio::spawn(async move { timed.tick().await });
        lock(&self.tasks).extend([carrying.abort_handle(), ticking.abort_handle()]);
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        for task in lock(&self.tasks).drain(..) {
            task.abort();
        }
    }
}

/// Nothing panics while one of these is held.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
