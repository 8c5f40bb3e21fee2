//! What a bridge is made of and what it puts up with.

use alloc::{boxed::Box, string::String, vec::Vec};
use core::time::Duration;

use crate::{
    limits::Limits,
    seal::{Sealer, Ttl},
    wire::{ClientCapabilities, Era, Implementation, Version},
};

/// How messages travel between the bridge and one upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums)]
pub enum Transport {
    /// A process's standard streams: one pipe for everything.
    Pipe,
    /// HTTP: every request has a response stream of its own.
    Http,
}

/// One server behind the bridge.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Upstream {
    /// Its name: 1 to 64 of `[A-Za-z0-9-]`. With several upstreams it stands before the names of tools and prompts, and
    /// with [`Config::name_origin`] it is shown with every question.
    pub name: Box<str>,
    /// How it is reached.
    pub transport: Transport,
    /// What it speaks. Found out by the embedder (`server/discover` first, then `initialize`).
    pub era: Era,
    /// Tools of a legacy upstream, by its own names for them, that are run again instead of parked (G-48). None by
    /// default.
    ///
    /// A call of such a tool is cancelled when it asks; the questions go to the host, and the answers so far stay in the
    /// state that it carries. Each retry, at any process with the same keys, makes the call anew and answers what it
    /// asks again from that state. So nothing is held between two rounds, but **whatever the tool does before its last
    /// question it does once a round, and all of it once more for a retry that is sent twice**. Name only tools for which that does
    /// no harm and which ask the same thing in the same words in every run; only the operator can know. A server's own
    /// word on it (`idempotentHint` and other annotations) is never read. A run takes a session of its own, which is
    /// closed when the run is left: on a pipe, a process a round.
    ///
    /// Such calls leave nothing in the inbox: what a host cannot show, the upstream cannot ask. Modern upstreams hold
    /// nothing anyway, and names here change nothing for them.
    pub replay: Vec<Box<str>>,
}

impl Upstream {
    /// An upstream, of whose tools none is replayed.
    #[must_use]
    pub fn new(name: impl Into<Box<str>>, transport: Transport, era: Era) -> Self {
        Self { name: name.into(), transport, era, replay: Vec::new() }
    }
}

/// Everything a [`Bridge`](super::Bridge) is made from. All bounds are inclusive.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Config {
    /// Who the bridge says it is, to upstreams and (where no upstream's own name is at hand) to hosts.
    pub info: Implementation,
    /// Seals wrapped states and handles. The same keys and audience on every replica.
    pub sealer: Sealer,
    /// Bounds. Of these the bridge uses `message_bytes`, `depth`, `nodes`, `asks_accepted`, `answer_bytes`,
    /// `state_accepted` (a state above it is a named error), `rounds`, `state_only_rounds` and `exchange`.
    pub limits: Limits,
    /// The servers behind it, one at least.
    pub upstreams: Vec<Upstream>,
    /// Shows the upstream's name with every question. Always on with several upstreams.
    pub name_origin: bool,
    /// Bounds of sessions with legacy upstreams.
    pub pool: Pool,
    /// Bounds of one principal.
    pub quota: Quota,
    /// Waits.
    pub waits: Waits,
    /// Kinds of question that an inbox answers for hosts that cannot; none by default. Between a modern host and a modern
    /// upstream nothing is held, so nothing of theirs waits in it either.
    pub inbox: ClientCapabilities,
    /// There are other processes with the same keys, and [`Output::ToPeer`](super::Output::ToPeer) reaches them: a retry
    /// whose call another one holds is handed to it. Default false: such a retry is "lost".
    pub replicas: bool,
    /// Legacy revisions served to hosts. Default 2025-11-25, 2025-06-18, 2025-03-26.
    pub versions: Vec<Version>,
}

/// Sessions with legacy upstreams (design: the bridge).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Pool {
    /// Processes of one upstream that modern hosts share. A call that could be asked something has one for itself until it
    /// is over, and all of one principal half of them at most; anonymous callers are one. Default 4.
    pub processes: usize,
    /// Those of all upstreams. Default 32.
    pub processes_in_all: usize,
    /// Processes of one upstream that legacy hosts over HTTP have for themselves, one a session for as long as it lasts;
    /// of all upstreams twice as many. One authenticated principal gets at most half. Over it one goes that has rested
    /// for [`Waits::idle`] (its host's next request begins another), and if there is none, `initialize` is refused.
    /// They take nothing from the others here, and a host on a pipe has its own in any case. Default 16.
    pub own_processes: usize,
    /// HTTP sessions of one upstream that modern hosts share, and as many again that legacy hosts over HTTP have for
    /// themselves. Default 10,000.
    pub http_sessions: usize,
    /// Requests that wait for a session. Default 64.
    pub waiters: usize,
    /// Plain requests in flight in one session. Default 64.
    pub in_flight: usize,
    /// Keeps the sessions of different principals apart (BT-8). Default true.
    pub per_principal: bool,
}

impl Default for Pool {
    fn default() -> Self {
        Self {
            processes: 4,
            processes_in_all: 32,
            own_processes: 16,
            http_sessions: 10_000,
            waiters: 64,
            in_flight: 64,
            per_principal: true,
        }
    }
}

/// What one principal may have at a time. Anonymous callers cannot be told apart and are one.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Quota {
    /// Requests under way. Default 1,000.
    pub calls: usize,
    /// Calls that wait for answers. Default 10,000. Of each upstream's sessions one principal gets at most half,
    /// whatever stands here.
    pub parked: usize,
}

impl Default for Quota {
    fn default() -> Self {
        Self { calls: 1_000, parked: 10_000 }
    }
}

/// How long is waited for what.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Waits {
    /// Questions of a legacy upstream that come within this time share a round. Default 10 ms.
    pub coalesce: Duration,
    /// A call waits for a free session. Default 10 s.
    pub session: Duration,
    /// An upstream says who it is: its response to `initialize` or to the bridge's own `server/discover`. Default 60 s, for
    /// whoever calls meanwhile waits too; never longer than an exchange.
    pub handshake: Duration,
    /// A parked call waits for its retry, on a pipe. Default 120 s.
    pub parked_pipe: Duration,
    /// The same over HTTP. Default 600 s.
    pub parked_http: Duration,
    /// The lost stream of a running round is waited for. Default 5 s.
    pub grace: Duration,
    /// A retry is held before it gets a state-only result. Default 25 s.
    pub hold: Duration,
    /// Between two signs of life to who waits: comments, progress. Default 15 s.
    pub alive: Duration,
    /// A question waits in the inbox. Default 1,800 s; never longer than its exchange.
    pub inbox: Duration,
    /// A session whose call was cancelled may still end it. Default 5 s; then, or when it has, the session is closed.
    pub drain: Duration,
    /// A session without work is kept. Default 300 s.
    pub idle: Duration,
    /// The first pause before a state-only round is gone on with for a legacy host; it doubles. Default 50 ms.
    pub pause_first: Duration,
    /// The longest such pause. Default 250 ms.
    pub pause_longest: Duration,
    /// A wrapped state may be used, and that of a tool which is replayed. Default 3,600 s: the upstream's own limit is
    /// likely to be shorter.
    pub wrapped: Ttl,
}

impl Default for Waits {
    fn default() -> Self {
        Self {
            coalesce: Duration::from_millis(10),
            session: Duration::from_secs(10),
            handshake: Duration::from_secs(60),
            parked_pipe: Duration::from_secs(120),
            parked_http: Duration::from_secs(600),
            grace: Duration::from_secs(5),
            hold: Duration::from_secs(25),
            alive: Duration::from_secs(15),
            inbox: Duration::from_secs(1_800),
            drain: Duration::from_secs(5),
            idle: Duration::from_secs(300),
            pause_first: Duration::from_millis(50),
            pause_longest: Duration::from_millis(250),
            wrapped: Ttl::new(Duration::from_secs(3_600)).unwrap_or(Ttl::DEFAULT),
        }
    }
}

/// Why a bridge cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// Nothing to bridge to.
    #[error("a bridge needs at least one upstream")]
    NoUpstream,
    /// A name that cannot stand before the name of a tool.
    #[error("the upstream name {0:?} is not 1 to 64 of A-Z a-z 0-9 -")]
    Name(String),
    /// Two upstreams of one name.
    #[error("two upstreams are called {0:?}")]
    Taken(String),
    /// An empty name in [`Upstream::replay`].
    #[error("the upstream {0:?} is to replay a tool without a name")]
    Nameless(String),
}

impl Config {
    /// A configuration with the defaults.
    #[must_use]
    pub fn new(info: Implementation, sealer: Sealer, upstreams: Vec<Upstream>) -> Self {
        Self {
            info,
            sealer,
            limits: Limits::default(),
            upstreams,
            name_origin: false,
            pool: Pool::default(),
            quota: Quota::default(),
            waits: Waits::default(),
            inbox: ClientCapabilities::default(),
            replicas: false,
            versions: alloc::vec![Version::V2025_11_25, Version::V2025_06_18, Version::V2025_03_26],
        }
    }

    pub(super) fn check(&self) -> Result<(), ConfigError> {
        if self.upstreams.is_empty() {
            return Err(ConfigError::NoUpstream);
        }
        for (index, upstream) in self.upstreams.iter().enumerate() {
            let name = &*upstream.name;
            let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
            if name.is_empty() || name.len() > 64 || !name.bytes().all(fits) {
                return Err(ConfigError::Name(name.chars().take(64).collect()));
            }
            if self.upstreams.iter().take(index).any(|earlier| earlier.name == upstream.name) {
                return Err(ConfigError::Taken(name.into()));
            }
            if upstream.replay.iter().any(|tool| tool.is_empty()) {
                return Err(ConfigError::Nameless(name.into()));
            }
        }
        Ok(())
    }

    /// The revision for a host that asked for `requested`.
    pub(super) fn negotiate(&self, requested: Option<Version>) -> Option<Version> {
        let served = || self.versions.iter().copied().filter(|version| version.era() == Era::Legacy);
        served().find(|version| Some(*version) == requested).or_else(|| served().max())
    }
}
