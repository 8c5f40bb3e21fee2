//! What a bridge wants done, and who is who.

use alloc::{boxed::Box, vec::Vec};
use core::time::Duration;

use crate::{http::ReplyClass, jsonrpc::RequestId, seal::Verdict};

/// A host's connection, named by the embedder: one pipe, one legacy HTTP session, or one modern POST. Never used twice;
/// below 2⁶³, for those from there on are hosts of other processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(clippy::exhaustive_structs)]
pub struct HostId(pub u64);

/// A connection to an upstream, named by the bridge: one process, one legacy HTTP session, or all requests to a modern
/// HTTP server. Never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(clippy::exhaustive_structs)]
pub struct LinkId(pub u64);

/// What a host's connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums)]
pub enum HostKind {
    /// A pipe. Its first message says which era it speaks.
    Pipe,
    /// A session of the legacy era over HTTP, from its `initialize` on.
    Session,
    /// One POST of the modern era and its response. The bridge forgets it after the response.
    Post,
}

/// Where a message to a host goes. On a pipe there is one place.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(clippy::exhaustive_enums)]
pub enum HostStream {
    /// The response to the POST that brought this request (R-231, B-72).
    Request(RequestId),
    /// The stream that a legacy host has opened by GET, for what belongs to no request.
    Common,
}

/// One thing to do, in order.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Output {
    /// Send a message to a host.
    ToHost {
        /// Whom.
        host: HostId,
        /// Where.
        stream: HostStream,
        /// One whole message on one line; empty if the stream ends without one.
        bytes: Vec<u8>,
        /// What it is, if it is the last message on its stream: the response, for its status.
        last: Option<ReplyClass>,
    },
    /// Write a comment on an event stream, so that nobody takes it for dead while a person thinks.
    KeepAlive {
        /// Whom.
        host: HostId,
        /// Where.
        stream: HostStream,
    },
    /// Get a connection ready: start a process, begin an HTTP session. If that fails, close it with
    /// [`close_upstream`](super::Bridge::close_upstream). What is to be sent follows at once.
    OpenUpstream {
        /// Its name from now on.
        link: LinkId,
        /// Index in [`Config::upstreams`](super::Config::upstreams).
        upstream: usize,
    },
    /// Send a message to an upstream. Over HTTP it is the body of a POST.
    ToUpstream {
        /// Which connection.
        link: LinkId,
        /// The request's number, if it is a request: over HTTP the messages of the response belong to it.
        call: Option<i64>,
        /// One whole message on one line.
        bytes: Vec<u8>,
        /// Over HTTP: headers that go with this body. The session id is the embedder's to add.
        headers: Vec<(Box<str>, Box<str>)>,
    },
    /// Over HTTP: close the response stream of a request, which cancels it.
    CloseStream {
        /// Which connection.
        link: LinkId,
        /// Which request.
        call: i64,
    },
    /// Send bytes to another process: append them to the stream that its epoch names
    /// ([`handle_peer`](super::Bridge::handle_peer) there).
    ToPeer {
        /// The other's [epoch](super::Bridge::epoch).
        peer: [u8; 16],
        /// Sealed.
        bytes: Vec<u8>,
        /// For how long from now they are worth sending: what could not be sent until then is dropped.
        keep: Duration,
    },
    /// End a connection: the process, or the HTTP session (DELETE). Nothing that still comes from it counts.
    CloseUpstream {
        /// Which.
        link: LinkId,
    },
}

impl core::fmt::Debug for Output {
    /// Shows no content.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::ToHost { host, stream, bytes, last } => {
                write!(f, "ToHost({host:?}, {stream:?}, {} bytes, {last:?})", bytes.len())
            }
            Self::KeepAlive { host, stream } => write!(f, "KeepAlive({host:?}, {stream:?})"),
            Self::OpenUpstream { link, upstream } => write!(f, "OpenUpstream({link:?}, {upstream})"),
            Self::ToUpstream { link, call, bytes, .. } => {
                write!(f, "ToUpstream({link:?}, {call:?}, {} bytes)", bytes.len())
            }
            Self::CloseStream { link, call } => write!(f, "CloseStream({link:?}, {call})"),
            Self::ToPeer { bytes, .. } => write!(f, "ToPeer({} bytes)", bytes.len()),
            Self::CloseUpstream { link } => write!(f, "CloseUpstream({link:?})"),
        }
    }
}

/// Why the bridge wants to be woken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Reason {
    /// Questions that came together are to be sent.
    Coalesced,
    /// Nobody has come back for a parked call.
    Abandoned,
    /// A held retry gets a state-only result.
    Held,
    /// The lost stream of a round was not taken up again.
    StreamLost,
    /// A sign of life is due.
    Alive,
    /// No session became free.
    NoSession,
    /// The process that holds a call is silent.
    Owner,
    /// A process that has handed a retry over waits for a sign of life, or is silent.
    Forwarder,
    /// Nobody has answered a question in the inbox.
    Unanswered,
    /// A kept result is no longer kept.
    Kept,
    /// A state-only round is gone on with.
    Paced,
    /// A request has run as long as an exchange may.
    Deadline,
    /// A session has nothing to do, or did not end a cancelled call.
    Session,
}

/// Numbers for an operator: what is there now, and what has happened so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counts {
    /// Requests of hosts that wait for their response.
    pub open: usize,
    /// Calls that wait for answers, their upstream requests in flight.
    pub parked: usize,
    /// Calls of modern hosts that a legacy upstream works on now.
    pub running: usize,
    /// Calls of legacy hosts at modern upstreams.
    pub dialogues: usize,
    /// Final results that are kept in case they were lost.
    pub kept: usize,
    /// Sessions with legacy upstreams.
    pub sessions: usize,
    /// Requests that wait for a session.
    pub waiting: usize,
    /// Questions that wait in the inbox.
    pub inbox: usize,
    /// Hosts' requests so far.
    pub requests: u64,
    /// Interim results to modern hosts so far.
    pub rounds: u64,
    /// Questions put to hosts so far, those asked again included.
    pub asks: u64,
    /// Questions put again because their answers did not come.
    pub asked_again: u64,
    /// States refused, whatever the reason.
    pub refused: u64,
    /// The same by verdict, in the order of [`Verdict::ALL`].
    pub refused_by: [u64; Verdict::ALL.len()],
    /// Retries that came twice and got the same outcome.
    pub replayed: u64,
    /// Calls made again with the answers so far, of tools that are replayed.
    pub rerun: u64,
    /// Parked calls that nobody came back for.
    pub abandoned: u64,
    /// Calls whose upstream died.
    pub lost: u64,
    /// Requests refused because of a bound.
    pub over: u64,
    /// Other processes cannot be reached now.
    pub cut_off: bool,
    /// Requests that other processes work on.
    pub handed_open: usize,
    /// Requests of other processes that run here.
    pub remote_open: usize,
    /// Retries handed to the process that holds their call so far.
    pub handed: u64,
    /// Those that it has acknowledged.
    pub acknowledged: u64,
    /// Hand-offs sent again.
    pub resent: u64,
    /// Retries whose call's owner is gone, or cannot be reached from here: what became of the call nobody can tell.
    pub handed_lost: u64,
    /// Hand-offs that failed because other processes could not be reached.
    pub unreachable: u64,
    /// Retries of other processes taken so far.
    pub taken: u64,
    /// Messages of other processes refused: not authentic, not for this process, too old, or not the first of their kind.
    pub peer_refused: u64,
}
