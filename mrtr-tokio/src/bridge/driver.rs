//! The task that owns the core's bridge: everything that happens comes in by one queue, everything that is to be done
//! goes out at once.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
    time::Duration,
};

use mrtr_core::{
    Timestamp,
    bridge::{Bridge, CallFailure, Counts, HostId, HostKind, HostSessions, HostStream, LinkId, Output},
    http::ReplyClass,
};
use tokio::{
    sync::{OwnedSemaphorePermit, mpsc, oneshot},
    task::JoinSet,
    time::{Instant, sleep_until},
};

use super::{
    Numbers, Options, Reach, Way,
    hosts::{Current, Stream, Visit},
    leaving::Leaving,
    process::Process,
    sink::{Item, Sink},
    url,
};
use crate::{clock::Clock, server::Identity};

/// What happens.
pub(super) enum In {
    /// A host is there, at the other end of a pipe.
    Pipe { host: HostId, identity: Identity, sink: Sink },
    /// A message of it.
    Line { host: HostId, bytes: Vec<u8>, permit: Option<OwnedSemaphorePermit> },
    /// It says nothing more, and wants to know when everything is said to it.
    Finished { host: HostId, told: oneshot::Sender<()> },
    /// It is gone.
    Gone { host: HostId },
    /// An HTTP request.
    Visit(Box<Visit>),
    /// Nobody reads its response any more.
    Left { ticket: u64 },
    /// A message of an upstream.
    Upstream { link: LinkId, call: Option<i64>, bytes: Vec<u8>, permit: Option<OwnedSemaphorePermit> },
    /// A line of an upstream was too long; how it began.
    Overlong { link: LinkId, beginning: Vec<u8> },
    /// No response comes to this request.
    Failed { link: LinkId, call: i64, failure: CallFailure },
    /// An upstream did not accept the answer to a question of its own.
    Unaccepted { link: LinkId, failure: CallFailure },
    /// A connection is gone.
    Closed { link: LinkId },
    /// A process that was told to end has ended.
    Ended { upstream: usize },
    /// Messages of other processes, and who is to hear that they were dealt with.
    #[cfg(feature = "redis")]
    Peers { messages: Vec<Vec<u8>>, dealt: oneshot::Sender<()> },
    /// Whether other processes can be reached.
    #[cfg(feature = "redis")]
    Reachable(bool),
    /// Somebody wants to know the numbers.
    Counts(oneshot::Sender<(Counts, bool)>),
    /// A line of somebody who looks into the inbox, and who that is.
    #[cfg(unix)]
    Inbox { line: Vec<u8>, by: String, done: oneshot::Sender<String> },
    /// No new calls.
    Drain,
    /// Somebody wants to know when nothing is under way.
    Idle(oneshot::Sender<()>),
    /// The end.
    Close(Option<oneshot::Sender<()>>),
}

/// The end of the queue that is filled.
#[derive(Clone)]
pub(super) struct Events(mpsc::UnboundedSender<In>);

impl Events {
    pub(super) fn new() -> (Self, mpsc::UnboundedReceiver<In>) {
        let (sender, queue) = mpsc::unbounded_channel();
        (Self(sender), queue)
    }

    pub(super) fn send(&self, event: In) {
        // An error says that the bridge has ended.
        let _ = self.0.send(event);
    }
}

/// How a connection to an upstream is carried.
enum Link {
    Process(Process, usize),
    /// A process that is not started yet, and what it is to be told.
    Held(Vec<Vec<u8>>),
    Url(url::Connection),
}

/// How often sessions that have rested too long are looked for.
const SWEEP: Duration = Duration::from_secs(60);

pub(super) struct Driver {
    pub(super) bridge: Bridge,
    pub(super) sessions: HostSessions,
    reaches: Vec<Reach>,
    pub(super) options: Options,
    events: Events,
    pub(super) clock: Clock,
    pub(super) numbers: Arc<Numbers>,
    pub(super) pipes: BTreeMap<HostId, Sink>,
    /// Those whose input has ended.
    finished: BTreeMap<HostId, oneshot::Sender<()>>,
    pub(super) posts: BTreeMap<HostId, (Sink, u64)>,
    pub(super) streams: BTreeMap<(HostId, HostStream), Stream>,
    /// Whose response has this number.
    pub(super) tickets: BTreeMap<u64, (HostId, Option<HostStream>)>,
    /// What belongs to no call and waits for a stream to go on.
    pub(super) unheard: BTreeMap<HostId, VecDeque<Vec<u8>>>,
    pub(super) current: Option<Current>,
    links: BTreeMap<LinkId, Link>,
    /// What happened while something was done.
    pub(super) pending: VecDeque<In>,
    ending: JoinSet<()>,
    leaving: Leaving,
    /// The way to other processes.
    #[cfg(feature = "redis")]
    mail: Option<super::peers::Mail>,
    draining: bool,
    waiting: Vec<oneshot::Sender<()>>,
    next_sweep: Timestamp,
}

impl Driver {
    pub(super) fn new(
        bridge: Bridge,
        reaches: Vec<Reach>,
        options: Options,
        (events, numbers): (Events, Arc<Numbers>),
    ) -> Self {
        let clock = options.clock;
        #[cfg(feature = "redis")]
        let mail = options.peers.as_ref().map(|peers| {
            let bytes = options.queued(&bridge.config().limits);
            peers.start(*bridge.epoch(), bytes, events.clone())
        });
        Self {
            #[cfg(feature = "redis")]
            mail,
            sessions: HostSessions::new(options.sessions.clone()),
            bridge,
            reaches,
            next_sweep: clock.now().saturating_add(SWEEP),
            clock,
            options,
            events,
            numbers,
            pipes: BTreeMap::new(),
            finished: BTreeMap::new(),
            posts: BTreeMap::new(),
            streams: BTreeMap::new(),
            tickets: BTreeMap::new(),
            unheard: BTreeMap::new(),
            current: None,
            links: BTreeMap::new(),
            pending: VecDeque::new(),
            ending: JoinSet::new(),
            leaving: Leaving::default(),
            draining: false,
            waiting: Vec::new(),
        }
    }

    /// Drives the bridge until it is closed.
    pub(super) async fn run(mut self, mut queue: mpsc::UnboundedReceiver<In>) {
        let closed = loop {
            let due = self.bridge.poll_timeout().map(|(at, _)| at);
            let at = due.map_or(self.next_sweep, |due| due.min(self.next_sweep));
            let event = tokio::select! {
                biased;
                event = queue.recv() => event,
                () = sleep_until(Instant::now() + self.clock.until(at)) => {
                    let now = self.clock.now();
                    self.bridge.handle_timeout(now);
                    self.sweep(now);
                    self.flush();
                    self.settle();
                    continue;
                }
            };
            match event {
                Some(In::Close(done)) => break done,
                Some(event) => self.happened(event),
                None => break None,
            }
            while let Some(event) = self.pending.pop_front() {
                self.happened(event);
            }
            self.settle();
            while self.ending.try_join_next().is_some() {}
        };
        let now = self.clock.now();
        self.bridge.close(now);
        self.flush();
        // Whoever still waits for a response has got an error, and sees its stream end.
        (self.pipes, self.posts, self.streams) = Default::default();
        #[cfg(feature = "redis")]
        if let Some(mail) = self.mail.take() {
            mail.finish(self.options.grace).await;
        }
        while self.ending.join_next().await.is_some() {}
        if let Some(done) = closed {
            let _ = done.send(());
        }
    }

    fn happened(&mut self, event: In) {
        let now = self.clock.now();
        match event {
            In::Pipe { host, identity, sink } => {
                self.bridge.open_host(host, HostKind::Pipe, identity.principal());
                self.pipes.insert(host, sink);
            }
            In::Line { host, bytes, permit } => {
                self.bridge.handle_host(host, &bytes, None, now);
                drop(permit);
            }
            In::Finished { host, told } => drop(self.finished.insert(host, told)),
            In::Gone { host } => {
                self.pipes.remove(&host);
                self.finished.remove(&host);
                self.bridge.close_host(host, now);
            }
            In::Visit(visit) => return self.visit(*visit, now),
            In::Left { ticket } => self.left(ticket, now),
            In::Upstream { link, call, bytes, permit } => {
                self.bridge.handle_upstream(link, call, &bytes, now);
                drop(permit);
            }
            In::Overlong { link, beginning } => self.bridge.handle_overlong(link, &beginning, now),
            In::Failed { link, call, failure } => self.bridge.fail_call(link, call, failure, now),
            In::Unaccepted { link, failure } => self.bridge.fail_reply(link, failure, now),
            In::Closed { link } => {
                self.bridge.close_upstream(link, now);
                self.end(link);
            }
            In::Ended { upstream } => {
                if let Some(link) = self.leaving.ended(upstream) {
                    self.open_held(link, upstream);
                }
            }
            #[cfg(feature = "redis")]
            In::Peers { messages, dealt } => {
                for message in messages {
                    self.bridge.handle_peer(&message, now);
                }
                // An error says that nobody reads any more.
                let _ = dealt.send(());
            }
            #[cfg(feature = "redis")]
            In::Reachable(reachable) => self.bridge.peers_reachable(reachable, now),
            In::Counts(who) => {
                let _ = who.send((self.bridge.counts(), self.draining));
            }
            #[cfg(unix)]
            In::Inbox { line, by, done } => {
                let _ = done.send(super::inbox::reply(&mut self.bridge, &line, &by, now));
            }
            In::Drain => {
                self.draining = true;
                self.bridge.drain();
            }
            In::Idle(who) => self.waiting.push(who),
            // Dealt with in the loop.
            In::Close(_) => {}
        }
        self.flush();
    }

    /// Does what the bridge wants done.
    pub(super) fn flush(&mut self) {
        while let Some(output) = self.bridge.poll_output() {
            match output {
                Output::ToHost { host, stream, bytes, last } => self.tell_host(host, stream, bytes, last),
                Output::KeepAlive { host, stream } => self.keep_alive(host, stream),
                Output::OpenUpstream { link, upstream } => self.open(link, upstream),
                Output::ToUpstream { link, call, bytes, headers } => self.send(link, call, bytes, headers),
                Output::CloseStream { link, call } => {
                    if let Some(Link::Url(url)) = self.links.get(&link) {
                        url.close_stream(call);
                    }
                }
                Output::CloseUpstream { link } => self.end(link),
                #[cfg(feature = "redis")]
                output @ Output::ToPeer { .. } => {
                    if let Some(mail) = &self.mail {
                        mail.send(output);
                    }
                }
                // Without peers there is nobody to say it to, and a configuration that names any does not start.
                _ => {}
            }
        }
    }

    /// A message for an upstream.
    fn send(&mut self, link: LinkId, call: Option<i64>, bytes: Vec<u8>, headers: url::Headers) {
        let room = self.options.queued(&self.bridge.config().limits);
        let full = match self.links.get_mut(&link) {
            Some(Link::Process(process, _)) => process.send(bytes).is_err(),
            Some(Link::Held(messages)) => {
                messages.push(bytes);
                messages.iter().map(Vec::len).sum::<usize>() > room
            }
            Some(Link::Url(url)) => url.send(call, bytes, headers).is_err(),
            // It could not be opened; the bridge is about to hear of it.
            None => false,
        };
        if full {
            tracing::warn!(link = link.0, "an upstream that does not take what it is told is given up");
            self.pending.push_back(In::Closed { link });
        }
    }

    fn open(&mut self, link: LinkId, upstream: usize) {
        let config = self.bridge.config();
        let limits = &config.limits;
        let era = self.bridge.config().upstreams.get(upstream).map(|upstream| upstream.era);
        let (Some(reach), Some(era)) = (self.reaches.get(upstream), era) else {
            return self.pending.push_back(In::Closed { link });
        };
        let opened = match &reach.0 {
            Way::Process { .. } if self.leaving.hold(link, upstream, config.pool.processes) => {
                tracing::debug!(link = link.0, upstream, "a process waits for others to end");
                Ok(Link::Held(Vec::new()))
            }
            Way::Process { command, stderr } => {
                let bounds = (limits.message_bytes, self.options.queued(limits));
                let started = Process::start(link, command(), stderr, bounds, &self.events);
                started.map(|process| Link::Process(process, upstream))
            }
            Way::Url(url) => {
                let bounds = (limits.clone(), self.options.queued(limits) + url::MESSAGE);
                Ok(Link::Url(url::Connection::start(link, url.clone(), era, bounds, &self.events)))
            }
        };
        match opened {
            Ok(opened) => {
                tracing::info!(link = link.0, upstream, "a connection to an upstream begins");
                self.links.insert(link, opened);
            }
            Err(problem) => {
                tracing::error!(upstream, %problem, "an upstream cannot be started");
                self.pending.push_back(In::Closed { link });
            }
        }
    }

    /// Starts a process that has waited for others to end, and tells it what came meanwhile.
    fn open_held(&mut self, link: LinkId, upstream: usize) {
        let Some(Link::Held(messages)) = self.links.remove(&link) else { return };
        self.open(link, upstream);
        for bytes in messages {
            self.send(link, None, bytes, url::Headers::default());
        }
    }

    /// Ends a connection, in a task of its own.
    fn end(&mut self, link: LinkId) {
        let Some(found) = self.links.remove(&link) else { return };
        tracing::info!(link = link.0, "a connection to an upstream ends");
        let grace = self.options.grace;
        match found {
            Link::Process(process, upstream) => {
                self.leaving.begin(upstream);
                let events = self.events.clone();
                self.ending.spawn(async move {
                    process.end(grace).await;
                    events.send(In::Ended { upstream });
                });
            }
            Link::Held(_) => self.leaving.forget(link),
            Link::Url(url) => {
                self.ending.spawn(url.end(grace));
            }
        }
    }

    fn settle(&mut self) {
        // A sender that is dropped says so, too.
        self.finished.retain(|host, _| self.bridge.owes(*host));
        if !self.waiting.is_empty() && self.bridge.is_idle() {
            for who in self.waiting.drain(..) {
                let _ = who.send(());
            }
        }
    }

    fn sweep(&mut self, now: Timestamp) {
        if now < self.next_sweep {
            return;
        }
        self.next_sweep = now.saturating_add(SWEEP);
        let busy: BTreeSet<HostId> = self.streams.keys().map(|(host, _)| *host).collect();
        for host in self.sessions.sweep(now, |host| busy.contains(&host)) {
            tracing::debug!(host = host.0, "a session that has rested too long is ended");
            self.end_session(host, now);
        }
    }

    /// A message for a host.
    fn tell_host(&mut self, host: HostId, stream: HostStream, bytes: Vec<u8>, last: Option<ReplyClass>) {
        if let Some(sink) = self.pipes.get(&host) {
            if !(bytes.is_empty() && last.is_some()) && sink.message(bytes, last).is_err() {
                tracing::warn!(host = host.0, "a host that does not read is given up");
                self.pending.push_back(In::Gone { host });
            }
            return;
        }
        self.tell_http(host, stream, bytes, last);
    }

    fn keep_alive(&self, host: HostId, stream: HostStream) {
        let post = self.posts.get(&host).map(|(sink, _)| sink);
        let stream = || self.streams.get(&(host, stream)).map(|stream| &stream.sink);
        // On a pipe there is nothing that could be taken for dead.
        if let Some(sink) = post.or_else(stream) {
            sink.put(Item::Alive);
        }
    }
}
