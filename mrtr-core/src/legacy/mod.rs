//! Sessions of 2025-11-25, 2025-06-18 and 2025-03-26: the server's side (feature `std`), and the client's
//! ([`client`]).
//!
//! The same [`Service`](crate::handler::Service) and the same handlers serve both eras (design decision 10). A
//! modern client gets its questions as a result and comes again; a legacy client is asked over the connection that
//! its call holds open, by requests of the server's own, and the handler runs once. What a handler sees is the
//! same: rounds end where it blocks, their answers come together, content that does not fit is asked again three
//! times, `once` makes a value once, a `checkpoint` passes after a while.
//!
//! ```text
//!  modern request ──▶ Service::receive ──▶ Run        one attempt a round, nothing kept
//!  pipe  ──▶ Pipe ──┤
//!  POST  ──▶ Sessions::post                           the era, message by message (R-052, G-44)
//!                   └─▶ Session ──▶ poll ──▶ Transmit  one held call after initialize
//! ```
//!
//! What legacy clients never see: `resultType`, `ttlMs`, `cacheScope`, the protocol's members of `_meta`,
//! `input_required`, `-3202x` (R-244, R-260, B-06). What they get instead: `elicitationId` (R-233), `-32002`
//! (R-243), `-32603` with `data.requiredCapabilities` (BT-6), and, before 2025-11-25, forms in the smaller language
//! of that revision (BT-5). A question that a revision has no words for counts as one the client cannot answer.
//!
//! ```
//! use core::task::{Context, Poll, Waker};
//! use mrtr_core::{Entropy, Timestamp, legacy::{Config, Handled, Session}, seal::Principal};
//! # use mrtr_core::{handler::{Ctx, RpcError, Service, ToolResult}, catalog::Tool, wire::{Action, Implementation}};
//! # use mrtr_core::{seal::{KeyRing, Sealer, Secret}, server};
//! # let ring = KeyRing::new(Secret::from_bytes(&[7; 32])?);
//! # let server = server::Server::new(server::Config::new(Implementation::new("srv", "1"), Sealer::signed_readable(&ring, "srv")));
//! let service = Service::new(server).tool(Tool::new("delete", "Deletes"), |ctx: Ctx| async move {
//!     let sure = ctx.confirm("sure", "Delete it?").await? == Action::Accept;
//!     Ok::<_, RpcError>(ToolResult::text(if sure { "Deleted." } else { "Kept." }))
//! })?;
//! let now = Timestamp::from_unix_millis(1_785_000_000_000);
//! let mut session = Session::on_pipe(service, Config::default(), Principal::Anonymous, Entropy::new([9; 32]));
//!
//! let hello = br#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25",
//!     "capabilities":{"elicitation":{}},"clientInfo":{"name":"c","version":"1"}}}"#;
//! assert!(matches!(session.handle(hello, now), Handled::Reply { .. }));
//! session.handle(br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#, now);
//! session.handle(br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"delete"}}"#, now);
//!
//! let mut cx = Context::from_waker(Waker::noop());
//! let Poll::Ready(ask) = session.poll(&mut cx, now) else { panic!() };
//! assert!(ask.bytes.starts_with(br#"{"jsonrpc":"2.0","id":1,"method":"elicitation/create""#));
//! assert!(session.poll(&mut cx, now).is_pending());
//!
//! session.handle(br#"{"jsonrpc":"2.0","id":1,"result":{"action":"accept","content":{}}}"#, now);
//! let Poll::Ready(done) = session.poll(&mut cx, now) else { panic!() };
//! assert_eq!(done.bytes, br#"{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"Deleted."}]}}"#);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Over HTTP
//!
//! | request | call | then |
//! |---|---|---|
//! | POST | [`Sessions::post`] | [`Posted`] says: modern, a reply, a new session, a message to [`deliver`](Delivery::deliver) |
//! | GET | [`Sessions::get`] | poll the stream it names, as an event stream |
//! | DELETE | [`Sessions::delete`] | the reply |
//!
//! [`http::Gate::serve_sessions`](crate::http::Gate::serve_sessions) lets GET and DELETE in. Each stream is written
//! with a [`StreamBody`]. A handler must run on when its POST is gone (R-239), so let one task poll each session
//! (from [`Posted::Opened`] until [`Session::is_over`]) and pass the messages to whoever writes the streams.
//!
//! Not here: legacy tasks (not declared, so a `task` parameter is ignored), batches of 2025-03-26 (refused),
//! `notifications/elicitation/complete` and `-32042` (both optional, R-234, R-235).

#[cfg(feature = "std")]
mod asks;
#[cfg(feature = "std")]
mod body;
pub mod client;
#[cfg(feature = "std")]
mod config;
#[cfg(feature = "std")]
mod drive;
#[cfg(feature = "std")]
mod messages;
#[cfg(feature = "std")]
mod narrow;
#[cfg(feature = "std")]
mod outlet;
#[cfg(feature = "std")]
mod pipe;
#[cfg(feature = "std")]
mod receive;
mod revision;
#[cfg(feature = "std")]
mod session;
#[cfg(feature = "std")]
mod sessions;

#[cfg(feature = "std")]
use alloc::vec::Vec;

#[cfg(feature = "std")]
pub use body::StreamBody;
#[cfg(feature = "std")]
pub use config::Config;
#[cfg(feature = "std")]
pub use pipe::{Pipe, Piped};
#[cfg(feature = "std")]
pub use session::{Handled, Session, Stream};
#[cfg(feature = "std")]
pub use sessions::{Delivery, Got, Posted, Reply, SessionHandle, SessionId, Sessions};

/// A message to be sent.
#[cfg(feature = "std")]
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Transmit {
    /// Where.
    pub stream: Stream,
    /// One whole message on one line, without a line break; empty if the stream ends without one (a call that the
    /// client has cancelled).
    pub bytes: Vec<u8>,
    /// The stream ends after it. Never on a pipe, never on the standalone stream.
    pub last: bool,
    /// Number of the stream and of the message on it; none on a pipe.
    event: Option<(u64, u64)>,
}

#[cfg(feature = "std")]
impl Transmit {
    /// Appends the `id` line of the event that carries this message (R-242); put it before the event's other lines.
    pub fn write_event_id(&self, out: &mut Vec<u8>) {
        if let Some((stream, event)) = self.event {
            out.extend_from_slice(alloc::format!("id: {stream}-{event}\n").as_bytes());
        }
    }
}

#[cfg(feature = "std")]
impl core::fmt::Debug for Transmit {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Transmit")
            .field("stream", &self.stream)
            .field("bytes", &self.bytes.len())
            .field("last", &self.last)
            .finish_non_exhaustive()
    }
}
