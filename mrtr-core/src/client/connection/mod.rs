//! Many calls on one connection to one server of whatever era, as a machine without I/O.
//!
//! A [`Connection`] gives requests their ids, finds out the server's era, hands every message to the call it belongs
//! to, goes on by itself where nobody has to be asked, and ends every call with one [`Outcome`].
//!
//! ```text
//!   handle_message, handle_overlong, handle_http,              call, proceed, resume, restart, cancel
//!   handle_lost, handle_closed, handle_timeout                 answer, refuse
//!   adapter ─────────────────────────────────▶ Connection ◀──────────────────────────────── embedder
//!           ◀─────────────────────────────────            ────────────────────────────────▶
//!                     poll_transmit                                 poll_event
//! ```
//!
//! After each call of a method that takes a time, drain [`poll_transmit`](Connection::poll_transmit) and
//! [`poll_event`](Connection::poll_event), and set one timer to [`poll_timeout`](Connection::poll_timeout).
//!
//! ```
//! use mrtr_core::{Timestamp, client::{Call, Config, Connection, ConnectionConfig, NoAnswers}};
//! use mrtr_core::client::connection::{Event, Transmit, Via};
//! use mrtr_core::wire::{ClientCapabilities, Era, Implementation};
//!
//! let now = Timestamp::from_unix_millis(0);
//! let client = Config::new(Implementation::new("host", "1"), ClientCapabilities::of(&NoAnswers));
//! let mut connection = Connection::on_pipe(client, ConnectionConfig::default());
//!
//! // Two calls wait until it is known what the server is.
//! let first = connection.call(Call::new("tools/call", r#"{"name":"a","arguments":{}}"#), now)?;
//! let second = connection.call(Call::new("tools/call", r#"{"name":"b","arguments":{}}"#), now)?;
//! let Some(Transmit::Request { bytes, .. }) = connection.poll_transmit() else { panic!() };
//! assert!(bytes.starts_with(br#"{"jsonrpc":"2.0","id":1,"method":"server/discover""#));
//! assert!(connection.poll_transmit().is_none());
//!
//! let reply = br#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","supportedVersions":["2026-07-28"]}}"#;
//! connection.handle_message(Via::Pipe, reply, now);
//! assert!(matches!(connection.poll_event(), Some(Event::Era(Era::Modern))));
//! for call in [first, second] {
//!     let Some(Transmit::Request { call: Some(of), .. }) = connection.poll_transmit() else { panic!() };
//!     assert_eq!(of, call);
//! }
//!
//! // Replies come in any order, amid rubbish.
//! connection.handle_message(Via::Pipe, b"Server ready.", now);
//! connection.handle_message(Via::Pipe, br#"{"jsonrpc":"2.0","id":3,"result":{"content":[]}}"#, now);
//! let Some(Event::Done { call, outcome }) = connection.poll_event() else { panic!() };
//! assert_eq!((call, outcome.json().map(|json| json.as_str())), (second, Some(r#"{"content":[]}"#)));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # The server's era (R-049…R-051)
//!
//! | | first | modern | legacy |
//! |---|---|---|---|
//! | pipe | `server/discover` | a discovery, or an error that only modern servers send | any other error, or silence |
//! | HTTP | the first call, modern | any JSON-RPC reply | status 400 without a modern error |
//!
//! In both, `initialize` that meets a modern error leads back. Calls wait until the era is known (on a pipe), or are
//! sent again (HTTP, where a 400 says that they were not begun). What is known from before comes in by
//! [`ConnectionConfig::era`] and goes out by [`Event::Era`]; [`EraCache`] keeps it.
//!
//! # Over HTTP
//!
//! Each [`Transmit::Request`] is a POST. A body that was read whole goes through [`judge`](crate::http::judge) into
//! [`handle_http`](Connection::handle_http); events go into [`handle_message`](Connection::handle_message) one by one;
//! a stream that ends is told by [`handle_lost`](Connection::handle_lost), which does no harm after the reply; an answer
//! that is not accepted, by [`handle_unaccepted`](Connection::handle_unaccepted). The session id of a legacy server comes
//! with the response to the POST whose message is `initialize`; the adapter keeps
//! it and sends it with [`HeaderRules::Legacy`].
//!
//! # What it promises
//!
//! - Every call ends exactly once: with [`Event::Done`], with [`Event::InputRequired`] that hands it over, or with
//!   [`Connection::cancel`].
//! - A message that is broken fails the call it replies to; late and unknown replies and rubbish are ignored (R-191,
//!   B-61, B-81). The server's death fails what is on the wire and nothing else (R-185): exchanges that wait for
//!   answers are not in here.
//! - No state or answer of one call comes near another (R-092).

mod calls;
mod config;
mod era;
mod event;
mod held;
mod receive;

use alloc::{
    collections::{BTreeMap, VecDeque},
    string::String,
};

use super::{Channel, Client, Config, ongoing::Ongoing};
use crate::{
    jsonrpc::Json,
    legacy::client::{AskId, ClientSession},
    time::Timestamp,
    wire::{ClientCapabilities, Era, Version},
};
use calls::{Entry, Flying, Stage};
use held::AskOf;

pub use config::{ConnectionConfig, EraCache};
pub use event::{CallError, CallId, Event, Failure, HeaderRules, Outcome, PostId, Transmit, Via};

/// A connection to one server. See the [module](self).
///
/// `Debug` shows counts only.
pub struct Connection {
    client: Client,
    config: ConnectionConfig,
    state: State,
    /// The era was seen, and is not only assumed.
    confirmed: bool,
    /// Never goes back.
    next_id: i64,
    next_call: u64,
    calls: BTreeMap<CallId, Entry>,
    /// Whose the modern requests on the wire are.
    posts: BTreeMap<PostId, CallId>,
    /// Whose the legacy requests on the wire are.
    requests: BTreeMap<crate::legacy::client::CallId, CallId>,
    asks: BTreeMap<AskId, AskOf>,
    out: VecDeque<Transmit>,
    events: VecDeque<Event>,
}

/// What is known of the server.
enum State {
    /// Nothing, or only what was assumed.
    Unknown,
    /// `server/discover` is on the wire, on a pipe.
    Probing {
        post: PostId,
        until: Timestamp,
    },
    Modern,
    /// `initialize` is on the wire. A probe that was given up may still be answered.
    Opening {
        session: alloc::boxed::Box<ClientSession>,
        probe: Option<PostId>,
        fault: Option<crate::http::HttpError>,
    },
    Legacy(alloc::boxed::Box<ClientSession>),
    Closed,
}

impl Connection {
    /// A connection over a pipe.
    #[must_use]
    pub fn on_pipe(client: Config, config: ConnectionConfig) -> Self {
        Self::new(client.channel(Channel::Shared), config)
    }

    /// A connection over HTTP.
    #[must_use]
    pub fn over_http(client: Config, config: ConnectionConfig) -> Self {
        Self::new(client.channel(Channel::Own), config)
    }

    fn new(client: Config, config: ConnectionConfig) -> Self {
        Self {
            client: Client::new(client),
            config,
            state: State::Unknown,
            confirmed: false,
            next_id: 1,
            next_call: 0,
            calls: BTreeMap::new(),
            posts: BTreeMap::new(),
            requests: BTreeMap::new(),
            asks: BTreeMap::new(),
            out: VecDeque::new(),
            events: VecDeque::new(),
        }
    }

    /// The client of its exchanges, to [resume](Client::resume) saved ones.
    #[must_use]
    pub const fn client(&self) -> &Client {
        &self.client
    }

    /// The server's era, once it is known.
    #[must_use]
    pub const fn era(&self) -> Option<Era> {
        match &self.state {
            State::Modern => Some(Era::Modern),
            State::Legacy(_) => Some(Era::Legacy),
            State::Unknown | State::Probing { .. } | State::Opening { .. } | State::Closed => None,
        }
    }

    /// The revision that was settled on with a legacy server.
    #[must_use]
    pub fn legacy_version(&self) -> Option<Version> {
        self.session().and_then(ClientSession::version)
    }

    /// The result of `initialize`, of a legacy server.
    #[must_use]
    pub fn legacy_peer(&self) -> Option<Json<'_>> {
        self.session().and_then(ClientSession::peer)
    }

    /// The name that a legacy server gives itself. It may be anything (R-122). Modern ones name themselves in each
    /// round ([`Exchange::server_name`](super::Exchange::server_name)).
    #[must_use]
    pub fn server_name(&self) -> Option<String> {
        let name = self.legacy_peer()?.get("serverInfo")?.get("name")?.as_string()?;
        Some(name.into_owned())
    }

    /// The calls that are here: on the wire, or about to be.
    pub fn calls(&self) -> impl ExactSizeIterator<Item = CallId> {
        self.calls.keys().copied()
    }

    /// What is to be done on the wire next.
    pub fn poll_transmit(&mut self) -> Option<Transmit> {
        self.out.pop_front()
    }

    /// What happened next.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// When to call [`handle_timeout`](Self::handle_timeout).
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Timestamp> {
        let own = match &self.state {
            State::Probing { until, .. } => Some(*until),
            State::Opening { session, .. } | State::Legacy(session) => session.poll_timeout(),
            State::Unknown | State::Modern | State::Closed => None,
        };
        self.calls.values().filter_map(Entry::due).chain(own).min()
    }

    /// Does what is due: gives up what takes too long (R-192), goes on with what only waited.
    pub fn handle_timeout(&mut self, now: Timestamp) {
        if let State::Probing { post, until } = self.state
            && until <= now
        {
            // R-050: silence means a legacy server. It may only be slow, so the reply is still waited for.
            self.fall_back(Some(post), now);
        }
        self.wake(now);
        if let State::Opening { session, .. } | State::Legacy(session) = &mut self.state {
            session.handle_timeout(now);
            self.pump(now);
        }
    }

    fn session(&self) -> Option<&ClientSession> {
        match &self.state {
            State::Opening { session, .. } | State::Legacy(session) => Some(session),
            State::Unknown | State::Probing { .. } | State::Modern | State::Closed => None,
        }
    }

    fn is_pipe(&self) -> bool {
        self.client.shared.config.channel == Channel::Shared
    }

    fn capabilities(&self) -> ClientCapabilities {
        self.client.shared.config.capabilities
    }

    /// An id that nothing on this connection had, a session of it included.
    fn take_id(&mut self) -> PostId {
        if let State::Opening { session, .. } | State::Legacy(session) = &mut self.state {
            return PostId::of(session.take_call());
        }
        let id = PostId(self.next_id);
        self.next_id = self.next_id.saturating_add(1);
        id
    }

    /// An id that this exchange did not have before either: it may have been resumed.
    fn take_id_for(&mut self, exchange: &Ongoing) -> PostId {
        loop {
            let id = self.take_id();
            if !exchange.had(&id.request_id()) {
                return id;
            }
        }
    }

    const fn take_call(&mut self) -> CallId {
        let call = CallId(self.next_call);
        self.next_call = self.next_call.saturating_add(1);
        call
    }

    /// Ends a call that is not in the books any more.
    fn done(&mut self, call: CallId, outcome: Outcome) {
        self.events.push_back(Event::Done { call, outcome });
    }

    fn failed(&mut self, call: CallId, failure: Failure) {
        let era = self.era();
        self.done(call, Outcome::failed(failure, era));
    }

    /// Tells something that may be missed.
    fn tell(&mut self, event: Event) {
        if self.events.len() < self.config.events {
            self.events.push_back(event);
        }
    }
}

impl core::fmt::Debug for Connection {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Connection")
            .field("era", &self.era())
            .field("calls", &self.calls.len())
            .field("asks", &self.asks.len())
            .field("out", &self.out.len())
            .field("events", &self.events.len())
            .finish_non_exhaustive()
    }
}

const _: () = {
    const fn sent<T: Send + Sync>() {}
    sent::<Connection>();
};
