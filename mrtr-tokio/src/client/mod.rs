//! A client over streamable HTTP and over the stdio of a child process.
//!
//! What the protocol wants of a client is the core's: which request goes out, what a reply means, when to stop.
//! This brings the bytes to the server, and the questions to an [`Answerer`](core::Answerer).
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
//! | `call` | one call, from its first request to its outcome |
//! | `waiting` | a call between two rounds: kept, saved, carried on |
//! | `event` | what happens on the wire, for traces |
//! | `list` | lists of tools, prompts and resources |
//! | `wire` | a request and the messages that come back for it, over either transport |
//! | `http`, `connect`, `redirect`, `authorize` | streamable HTTP: messages, connections, credentials |
//! | `pipe`, `child`, `head` | stdio: lines, and the process at their other end |

mod authorize;
mod call;
mod child;
mod connect;
mod event;
mod head;
mod http;
mod list;
mod pipe;
mod redirect;
mod waiting;
mod wire;

use std::{
    collections::BTreeMap,
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use ::http::{HeaderName, HeaderValue};
use mrtr_core::{
    Limits,
    client::{self as core, Asking, Channel, Config, Progress},
    http::ParamHeaders,
    jsonrpc::RequestId,
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    process::Command,
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

/// Calls one server. Cheap to clone; calls run side by side.
#[derive(Clone)]
pub struct Client {
    inner: Arc<Inner>,
}

struct Inner {
    core: core::Client,
    wire: wire::Wire,
    /// What saved calls are tied to.
    server: Arc<str>,
    clock: Clock,
    limits: Limits,
    asking: Asking,
    progress: Progress,
    events: Option<OnEvent>,
    next_id: AtomicI64,
    /// Annotations of the tools that were listed (R-173).
    annotations: Mutex<BTreeMap<String, Arc<ParamHeaders>>>,
}

impl Client {
    /// A client of the server at this address. Nothing is sent yet.
    ///
    /// # Errors
    ///
    /// If it is no `http` or `https` address, or the system has no TLS roots for `https`.
    pub fn http(url: &str, config: Config, options: Options) -> Result<Self, UrlError> {
        let http = http::Http::new(url, &options)?;
        let server = http.server();
        Ok(Self::new(wire::Wire::Http(http), server, config.channel(Channel::Own), &options))
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
        let (limit, stderr) = (options.limits.message_bytes, options.stderr.clone());
        let pipe = pipe::Pipe::child(command, limit, options.grace, stderr);
        Self::new(wire::Wire::Pipe(pipe), server, config.channel(Channel::Shared), &options)
    }

    /// A client of whoever reads `output` and writes `input`, one message a line. Must be called within a tokio
    /// runtime.
    pub fn pipe(
        input: impl AsyncRead + Send + 'static,
        output: impl AsyncWrite + Send + 'static,
        config: Config,
        options: Options,
    ) -> Self {
        let pipe = pipe::Pipe::open(input, output, options.limits.message_bytes, options.grace);
        let server = String::from("pipe:");
        Self::new(wire::Wire::Pipe(pipe), server, config.channel(Channel::Shared), &options)
    }

    fn new(wire: wire::Wire, server: String, config: Config, options: &Options) -> Self {
        let core = core::Client::new(config.limits(options.limits.clone()));
        let inner = Inner {
            core,
            wire,
            server: server.into(),
            clock: options.clock,
            limits: options.limits.clone(),
            asking: options.asking.clone(),
            progress: if options.progress { Progress::RequestId } else { Progress::Unwanted },
            events: options.events.clone(),
            next_id: AtomicI64::new(1),
            annotations: Mutex::new(BTreeMap::new()),
        };
        Self { inner: Arc::new(inner) }
    }

    /// Ends the connection in order: the child's input is closed, and it is waited for. Over HTTP nothing is to
    /// be done.
    pub async fn close(&self) {
        if let wire::Wire::Pipe(pipe) = &self.inner.wire {
            pipe.close().await;
        }
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { core, wire, .. } = &*self.inner;
        f.debug_struct("Client").field("core", core).field("wire", wire).finish_non_exhaustive()
    }
}

impl Inner {
    fn next_id(&self) -> RequestId {
        self.next_id.fetch_add(1, Ordering::Relaxed).into()
    }

    /// Goes on with ids that another process has not used for the same call.
    fn skip_ids(&self) {
        let mut random = [0; 4];
        let random = getrandom::fill(&mut random).map(|()| i64::from(u32::from_le_bytes(random)));
        self.next_id.fetch_max(random.unwrap_or_default() | 1 << 32, Ordering::Relaxed);
    }

    fn annotations(&self) -> MutexGuard<'_, BTreeMap<String, Arc<ParamHeaders>>> {
        // Nothing panics while it is held.
        self.annotations.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
