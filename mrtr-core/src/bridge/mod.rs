//! The bridge: any host, any server, no question lost between them (R-248…R-265, BT-1…BT-8).
//!
//! ```text
//!            host modern                     host legacy
//!  upstream  relay: bytes through,           dialogue: the bridge runs the rounds and asks
//!  modern    its state wrapped, nothing held the host by requests of its own
//!
//!  upstream  parked: the upstream's call     relay: ids mapped, one session a host
//!  legacy    waits here between the rounds
//! ```
//!
//! One machine without I/O, clock or randomness. The embedder names hosts' connections ([`HostId`]), the bridge names
//! connections to upstreams ([`LinkId`]).
//!
//! | what happened | tell the bridge |
//! |---|---|
//! | a pipe, a legacy HTTP session or a modern POST begins | [`open_host`](Bridge::open_host) |
//! | a message of a host | [`handle_host`](Bridge::handle_host) |
//! | it is gone: the pipe, the session, or the POST's stream before its response | [`close_host`](Bridge::close_host) |
//! | a message of an upstream | [`handle_upstream`](Bridge::handle_upstream) |
//! | a line of an upstream that is over the bound | [`handle_overlong`](Bridge::handle_overlong) |
//! | an HTTP response ended without a JSON-RPC response | [`fail_call`](Bridge::fail_call) |
//! | a process has ended, a session is unknown (404), a start failed | [`close_upstream`](Bridge::close_upstream) |
//! | a message of another process | [`handle_peer`](Bridge::handle_peer) |
//! | other processes cannot be reached, or can again | [`peers_reachable`](Bridge::peers_reachable) |
//! | time is up | [`handle_timeout`](Bridge::handle_timeout) at [`poll_timeout`](Bridge::poll_timeout) |
//!
//! After each of them take [`poll_output`](Bridge::poll_output) until it is `None`; order matters.
//!
//! # Two HTTP fronts
//!
//! A modern POST is a host of its own ([`HostKind::Post`]): open it, hand in its body with its headers, write what comes
//! for it with [`http::ReplyBody`](crate::http::ReplyBody); it is forgotten after its last message. A legacy session
//! ([`HostKind::Session`]) is one host from `initialize` on; each message names the POST it belongs to
//! ([`HostStream`]). Which a POST is, and of which session, [`HostSessions`] tells.
//!
//! # What is held
//!
//! *Modern to modern*: nothing between two rounds. The upstream's state travels inside one of the bridge's, bound to
//! principal, request and upstream, so any replica with the keys takes the next round.
//!
//! *Parked*: the upstream's call, its session, its questions. The state that the host carries is a handle to it, which
//! names the process that holds it ([`epoch`](Bridge::epoch)): elsewhere it is "lost", never run again.
//!
//! *Replayed* ([`Upstream::replay`]): nothing; the state has the answers so far, and the call is made anew each round.
//!
//! | file | what |
//! |---|---|
//! | `config`, `output`, `failure` | what goes in, what comes out, why there is no response |
//! | `host`, `questions` | hosts' connections and the messages they bring; what legacy hosts are asked |
//! | `route`, `resources` | which upstream a request is for; whose a resource is |
//! | `gather` | lists of several upstreams, put together |
//! | `relay` | one request, one response, all four ways |
//! | `listen` | changes of lists and resources |
//! | `profile` | who the upstreams are, for `server/discover` and `initialize` |
//! | `link`, `missing`, `pool`, `own` | connections to upstreams; what never comes on them; sessions with legacy ones, shared or a host's own |
//! | `parked` | a modern host's call at a legacy upstream (BT-7), or run again instead (G-48) |
//! | `handoff` | retries that reached another process than the call's |
//! | `inbox` | questions for hosts that cannot show them |
//! | `dialogue` | a legacy host's call at a modern upstream |
//! | `sessions` | which HTTP request of a legacy host belongs to which session |
//! | `state`, `timers` | what is sealed; deadlines |

mod config;
mod dialogue;
mod failure;
mod gather;
mod handoff;
mod host;
mod inbox;
mod level;
mod link;
mod listen;
mod missing;
mod output;
mod own;
mod parked;
mod pool;
mod profile;
mod questions;
mod relay;
mod resources;
mod route;
mod send;
mod sessions;
mod state;
mod timers;

use alloc::{
    boxed::Box,
    collections::{BTreeMap, VecDeque},
    sync::Arc,
    vec::Vec,
};

pub use config::{Config, ConfigError, Pool, Quota, Transport, Upstream, Waits};
pub use failure::CallFailure;
pub use inbox::{InboxAnswer, InboxEntry, InboxError, InboxId};
pub use output::{Counts, HostId, HostKind, HostStream, LinkId, Output, Reason};
pub use sessions::{EventId, HostSessions, Missed, Posted, Resumed, SessionBounds, SessionFault};

use self::{
    dialogue::Dialogue,
    gather::Gather,
    handoff::{Forwarded, Remotes},
    host::{Host, Open},
    link::{Link, Purpose, Sent, UpstreamState},
    parked::Parked,
    pool::Queued,
    profile::Curious,
    state::{Random, Vault},
    timers::{Timers, Whom},
};
use crate::{
    entropy::Entropy,
    http::ReplyClass,
    jsonrpc::{RequestId, write},
    seal::Principal,
    time::Timestamp,
};

/// Who a host was authenticated as: what everything here is bound to. `Debug` does not show it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Owner(Option<Arc<[u8]>>);

impl Owner {
    fn new(principal: Principal<'_>) -> Self {
        Self(match principal {
            Principal::Anonymous => None,
            Principal::Authenticated(name) => Some(name.into()),
        })
    }

    fn principal(&self) -> Principal<'_> {
        self.0.as_deref().map_or(Principal::Anonymous, Principal::Authenticated)
    }
}

/// What one principal has under way.
#[derive(Clone, Copy, Debug, Default)]
struct Usage {
    calls: usize,
    parked: usize,
}

/// The bridge. See the [module](self).
///
/// Every method appends its outputs to a queue; taking them is [`poll_output`](Self::poll_output)'s.
pub struct Bridge {
    config: Config,
    vault: Vault,
    random: Random,
    epoch: [u8; 16],
    /// The most severe need for names: several upstreams, or configured.
    named: bool,
    hosts: BTreeMap<HostId, Host>,
    upstreams: Vec<UpstreamState>,
    links: BTreeMap<LinkId, Link>,
    sent: BTreeMap<i64, Sent>,
    parked: BTreeMap<u64, Box<Parked>>,
    dialogues: BTreeMap<u64, Box<Dialogue>>,
    queue: VecDeque<Queued>,
    queue_timer: Option<Timestamp>,
    usage: BTreeMap<Owner, Usage>,
    timers: Timers,
    out: VecDeque<Output>,
    counts: Counts,
    next_id: i64,
    next_link: u64,
    draining: bool,
    curious: Vec<Curious>,
    gathers: BTreeMap<u64, Gather>,
    inbox: inbox::Inbox,
    listeners: BTreeMap<u64, listen::Listener>,
    next_listener: u64,
    /// Requests that other processes work on.
    forwarded: Forwarded,
    /// Hosts of other processes.
    remotes: Remotes,
    next_gather: u64,
}

impl Bridge {
    /// A bridge. `seed` is the source of all its randomness, used for as long as it lives.
    ///
    /// # Errors
    ///
    /// If the upstreams cannot be told apart.
    pub fn new(config: Config, seed: Entropy) -> Result<Self, ConfigError> {
        config.check()?;
        let mut random = Random::new(seed);
        let epoch = random.bytes(b"bridge/epoch");
        Ok(Self {
            vault: Vault::new(&config.sealer, &config.limits),
            named: config.name_origin || config.upstreams.len() > 1,
            upstreams: config.upstreams.iter().map(|_| UpstreamState::default()).collect(),
            config,
            random,
            epoch,
            hosts: BTreeMap::new(),
            links: BTreeMap::new(),
            sent: BTreeMap::new(),
            parked: BTreeMap::new(),
            dialogues: BTreeMap::new(),
            queue: VecDeque::new(),
            queue_timer: None,
            usage: BTreeMap::new(),
            timers: Timers::default(),
            out: VecDeque::new(),
            counts: Counts::default(),
            next_id: 1,
            next_link: 1,
            draining: false,
            curious: Vec::new(),
            gathers: BTreeMap::new(),
            inbox: inbox::Inbox::default(),
            listeners: BTreeMap::new(),
            next_listener: 0,
            forwarded: Forwarded::default(),
            remotes: Remotes::default(),
            next_gather: 0,
        })
    }

    /// Its configuration.
    #[must_use]
    pub const fn config(&self) -> &Config {
        &self.config
    }

    /// Names this process in the handles that it seals: another one, or this one after a restart, has another.
    #[must_use]
    pub const fn epoch(&self) -> &[u8; 16] {
        &self.epoch
    }

    /// The next thing to do.
    pub fn poll_output(&mut self) -> Option<Output> {
        loop {
            let output = self.out.pop_front()?;
            if !Remotes::concerns(&output) {
                return Some(output);
            }
            self.redirect(output);
        }
    }

    /// When to call [`handle_timeout`](Self::handle_timeout) at the latest, and what for.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<(Timestamp, Reason)> {
        let (at, whom) = self.timers.next()?;
        let reason = match whom {
            Whom::Parked(call) => self.parked.get(&call).map_or(Reason::Kept, |call| call.reason()),
            Whom::Dialogue(call) => {
                self.dialogues.get(&call).map_or(Reason::Alive, |dialogue| dialogue.reason())
            }
            Whom::Sent(_) => Reason::Deadline,
            Whom::Link(_) => Reason::Session,
            Whom::Queue => Reason::NoSession,
            Whom::Inbox => Reason::Unanswered,
            Whom::Handed(_) => Reason::Owner,
            Whom::Remote(_) => Reason::Forwarder,
        };
        Some((at, reason))
    }

    /// Does what is due.
    pub fn handle_timeout(&mut self, now: Timestamp) {
        while let Some(whom) = self.timers.due(now) {
            match whom {
                Whom::Parked(call) => self.parked_due(call, now),
                Whom::Dialogue(call) => self.dialogue_due(call, now),
                Whom::Sent(id) => self.sent_due(id, now),
                Whom::Link(link) => self.link_due(link, now),
                Whom::Queue => self.queue_due(now),
                Whom::Inbox => self.inbox_due(now),
                Whom::Handed(number) => self.handed_due(number, now),
                Whom::Remote(host) => self.remote_due(host, now),
            }
        }
    }

    /// Takes no new calls from now on; retries of parked ones are served (SIGTERM).
    pub const fn drain(&mut self) {
        self.draining = true;
    }

    /// Whether nothing is under way and nothing waits for a retry: a draining bridge may end. Subscriptions, which have no
    /// end of their own, do not count.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.counts.parked == 0 && !self.hosts.values().any(|host| self.is_owed(host))
    }

    /// Whether a request of this host, no subscription, is still to be answered. One that was cancelled is not.
    #[must_use]
    pub fn owes(&self, host: HostId) -> bool {
        self.hosts.get(&host).is_some_and(|host| self.is_owed(host))
    }

    fn is_owed(&self, host: &Host) -> bool {
        let relayed = |number: &i64| {
            let purpose = self.sent.get(number).map(|sent| &sent.purpose);
            matches!(purpose, Some(Purpose::Relay(relay)) if relay.method == "subscriptions/listen")
        };
        let endless = |open: &Open| {
            matches!(open, Open::Listen(_)) || matches!(open, Open::Sent(number) if relayed(number))
        };
        !host.open.values().all(endless)
    }

    /// Numbers for an operator.
    #[must_use]
    pub fn counts(&self) -> Counts {
        Counts {
            inbox: self.inbox.len(),
            running: self.parked.len().saturating_sub(self.counts.parked).saturating_sub(self.counts.kept),
            dialogues: self.dialogues.len(),
            cut_off: self.forwarded.is_cut_off(),
            handed_open: self.forwarded.len(),
            remote_open: self.remotes.len(),
            sessions: self.sessions_in_all(),
            waiting: self.queue.len(),
            ..self.counts
        }
    }

    const fn fresh_id(&mut self) -> i64 {
        let id = self.next_id;
        self.next_id += 1;
        id
    }

    /// Responds to a host's request; `body` writes what follows the id: `"result":…` or `"error":…`.
    fn respond(&mut self, host: HostId, id: &RequestId, class: ReplyClass, body: impl FnOnce(&mut Vec<u8>)) {
        let mut bytes = Vec::with_capacity(256);
        bytes.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
        id.write(&mut bytes);
        bytes.push(b',');
        body(&mut bytes);
        bytes.push(b'}');
        self.finish(host, id, class, bytes);
    }

    fn respond_error(&mut self, host: HostId, id: &RequestId, class: ReplyClass, error: &crate::RpcError) {
        let mut bytes = Vec::with_capacity(256);
        write::error(&mut bytes, Some(id), error);
        self.finish(host, id, class, bytes);
    }

    /// Sends the last message for a host's request and forgets the request. Nothing if the host is gone.
    fn finish(&mut self, host: HostId, id: &RequestId, class: ReplyClass, bytes: Vec<u8>) {
        // Whoever gets the outcome has nothing left to answer.
        self.withdraw_asks(host, id);
        let Some(entry) = self.hosts.get_mut(&host) else { return };
        if entry.open.remove(id).is_none() {
            return;
        }
        // In this era 404 says that the session is gone.
        let modern = matches!(class, ReplyClass::MethodNotFound | ReplyClass::MissingCapability);
        let class = if modern && entry.is_legacy() { ReplyClass::HandlerError } else { class };
        let (owner, kind) = (entry.owner.clone(), entry.kind);
        self.counts.open -= 1;
        self.release(&owner, |usage| &mut usage.calls);
        if kind == HostKind::Post {
            self.hosts.remove(&host);
        }
        let stream = HostStream::Request(id.clone());
        self.out.push_back(Output::ToHost { host, stream, bytes, last: Some(class) });
    }

    fn release(&mut self, owner: &Owner, what: impl Fn(&mut Usage) -> &mut usize) {
        if let Some(usage) = self.usage.get_mut(owner) {
            let count = what(usage);
            *count = count.saturating_sub(1);
            if usage.calls == 0 && usage.parked == 0 {
                self.usage.remove(owner);
            }
        }
    }

    /// A message to a host that ends nothing.
    fn tell(&mut self, host: HostId, stream: HostStream, bytes: Vec<u8>) {
        if self.hosts.contains_key(&host) {
            self.out.push_back(Output::ToHost { host, stream, bytes, last: None });
        }
    }
}

impl core::fmt::Debug for Bridge {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Bridge")
            .field("hosts", &self.hosts.len())
            .field("links", &self.links.len())
            .field("sent", &self.sent.len())
            .field("parked", &self.parked.len())
            .field("dialogues", &self.dialogues.len())
            .field("outputs", &self.out.len())
            .finish_non_exhaustive()
    }
}
