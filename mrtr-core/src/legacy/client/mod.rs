//! Sessions of 2025-11-25, 2025-06-18 and 2025-03-26: the client's side, as a machine without I/O.
//!
//! One [`ClientSession`] is one session with one server: over a pipe, or over HTTP. It opens the session, sends
//! requests under ids of its own, and gives what comes back as [`Event`]s: results as the text they came in, the
//! server's own requests as asks to be answered one by one, notifications.
//!
//! ```text
//!              handle_message, handle_overlong, handle_closed          request, answer, refuse, cancel, notify
//!  adapter ──────────────────────────────────────────▶ ClientSession ◀──────────────────────────── embedder
//!          ◀──────────────────────────────────────────               ──────────────────────────────▶
//!                        poll_transmit                                             poll_event
//! ```
//!
//! After each call of a method that takes a time, drain [`poll_transmit`](ClientSession::poll_transmit) and
//! [`poll_event`](ClientSession::poll_event), and set one timer to [`poll_timeout`](ClientSession::poll_timeout).
//!
//! ```
//! use mrtr_core::{Limits, Timestamp, jsonrpc::Json, wire::{ClientCapabilities, Implementation}};
//! use mrtr_core::legacy::client::{ClientConfig, ClientSession, Event, Via};
//!
//! let now = Timestamp::from_unix_millis(0);
//! let mut can = ClientCapabilities::default();
//! can.form = true;
//! let mut session = ClientSession::new(ClientConfig::new(Implementation::new("host", "1"), can));
//! let json = |text: &'static str| Json::parse(text, &Limits::default()).unwrap();
//!
//! session.open(now);
//! assert!(session.poll_transmit().unwrap().bytes.starts_with(br#"{"jsonrpc":"2.0","id":1,"method":"initialize""#));
//! session.handle_message(Via::Pipe, br#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25",
//!     "capabilities":{"tools":{}},"serverInfo":{"name":"files","version":"1"}}}"#, now);
//! assert!(matches!(session.poll_event(), Some(Event::Opened)));
//! assert_eq!(session.poll_transmit().unwrap().bytes, br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
//!
//! let call = session.request("tools/call", Some(json(r#"{"name":"delete","arguments":{}}"#)), now)?;
//! assert!(session.poll_transmit().is_some());
//! session.handle_message(Via::Pipe, br#"{"jsonrpc":"2.0","id":7,"method":"elicitation/create","params":
//!     {"message":"Delete it?","requestedSchema":{"type":"object","properties":{}}}}"#, now);
//! let Some(Event::Ask(asked)) = session.poll_event() else { panic!() };
//! assert_eq!((asked.call, asked.request.message().as_deref()), (Some(call), Some("Delete it?")));
//! session.answer(asked.id, json(r#"{"action":"accept","content":{}}"#), now)?;
//! assert_eq!(session.poll_transmit().unwrap().bytes,
//!     br#"{"jsonrpc":"2.0","id":7,"result":{"action":"accept","content":{}}}"#);
//!
//! session.handle_message(Via::Pipe, br#"{"jsonrpc":"2.0","id":2,"result":{"content":[]}}"#, now);
//! let Some(Event::Response { outcome: Ok(result), .. }) = session.poll_event() else { panic!() };
//! assert_eq!(&*result, r#"{"content":[]}"#);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Over HTTP
//!
//! Each [`Transmit`] is a POST. What the reply to the POST of a [request](Carries::Request) brings, as JSON or event by
//! event, is handed in as [`Via::Call`]; so is what a stream resumed by `Last-Event-ID` brings (R-242). The others are
//! answered with 202 and no message. A stream of its own that the client has opened by GET is
//! [`Via::Standalone`]. The session id is the adapter's to keep and to send (R-240), the version to send with it is
//! [`Transmit::version`] (R-241). A stream that ends without its response is no cancellation (R-239): resume it, or say
//! [`lost`](ClientSession::lost). A 404 for the session id is [`handle_closed`](ClientSession::handle_closed).
//!
//! # What it promises
//!
//! - An id is used once in a session, for requests as for asks (R-229): a late answer never meets another question.
//! - A message that is broken costs the request it replies to and nothing else; what is no reply is ignored.
//! - Nothing is answered that nobody answered: an ask that nobody may be shown gets an error, never a refusal.
//! - The peer cannot make it hold more than [`ClientConfig`] allows.

mod config;
mod event;
mod receive;
mod send;
mod session;

pub use config::{ClientConfig, Unsolicited};
pub use event::{AskId, Asked, CallId, Carries, Closed, Event, Failure, Transmit, Via, Withdrawn};
pub use send::{AskGone, RequestError};
pub use session::ClientSession;
