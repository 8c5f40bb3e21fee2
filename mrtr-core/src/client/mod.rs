//! The client: calls that the server may answer with questions, as values that can be stopped and stored.
//!
//! A [`Client`] makes calls and keeps nothing. Each call is an [`Exchange`], which is in one of four states and
//! is consumed by every step that ends the state. What is to be sent is appended to a buffer, one whole message
//! or nothing. Nothing here runs callbacks, waits, or reads a clock.
//!
//! ```text
//!              start                 receive                    receive
//!  call ──────────────▶ Pending ───────────────▶ InputRequired ◀─────────┐
//!                          │                       │ answer …            │
//!                          │ receive               │ proceed             │
//!                          ▼                       ▼                     │
//!                       Complete ◀───────────── Retrying ────────────────┘
//!                                    receive       (and InputRequired ◀── save / resume)
//! ```
//!
//! # An exchange from end to end
//!
//! ```
//! use mrtr_core::{Timestamp, jsonrpc::Json, Limits};
//! use mrtr_core::client::{Call, Client, Config, InputResponse, Received};
//! use mrtr_core::wire::{ClientCapabilities, Implementation};
//!
//! let mut can = ClientCapabilities::default();
//! can.form = true;
//! let client = Client::new(Config::new(Implementation::new("host", "1.0"), can));
//! let at = Timestamp::from_unix_millis;
//!
//! // Pending: the first request is on the wire.
//! let mut out = Vec::new();
//! let call = Call::new("tools/call", r#"{"name":"greet","arguments":{"greeting":"Hello"}}"#);
//! let pending = client.start(1.into(), call, at(0), &mut out)?;
//! assert_eq!(
//!     std::str::from_utf8(&out)?,
//!     concat!(
//!         r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"greet","#,
//!         r#""arguments":{"greeting":"Hello"},"_meta":{"#,
//!         r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","#,
//!         r#""io.modelcontextprotocol/clientInfo":{"name":"host","version":"1.0"},"#,
//!         r#""io.modelcontextprotocol/clientCapabilities":{"elicitation":{"form":{}}}}}}"#,
//!     )
//! );
//!
//! // InputRequired: the server asks. This state can wait for a person, or lie on a disk.
//! let reply = concat!(
//!     r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required","inputRequests":{"who":"#,
//!     r#"{"method":"elicitation/create","params":{"message":"Your name?","requestedSchema":"#,
//!     r#"{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}}}},"#,
//!     r#""requestState":"AbC="}}"#,
//! );
//! let Received::InputRequired(asked) = pending.receive(reply.as_bytes(), at(20)) else { panic!() };
//! let mut disk = Vec::new();
//! asked.save("https://greeter.example", &mut disk);
//! drop(asked);
//!
//! // … the next day, in another process:
//! let mut asked = client.resume(&disk, "https://greeter.example")?;
//! let ask = asked.asks().next().unwrap();
//! assert_eq!((ask.key(), ask.request().message().as_deref()), ("who", Some("Your name?")));
//! assert!(!asked.can_proceed(at(86_400_000)));
//! asked.answer("who", InputResponse::accept(Json::parse(r#"{"name":"Ada"}"#, &Limits::default())?))?;
//!
//! // Retrying: the same call with the answer and, to the letter, the state.
//! out.clear();
//! let retrying = asked.proceed(2.into(), at(86_400_000), &mut out)?;
//! assert_eq!(
//!     std::str::from_utf8(&out)?,
//!     concat!(
//!         r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"greet","#,
//!         r#""arguments":{"greeting":"Hello"},"_meta":{"#,
//!         r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","#,
//!         r#""io.modelcontextprotocol/clientInfo":{"name":"host","version":"1.0"},"#,
//!         r#""io.modelcontextprotocol/clientCapabilities":{"elicitation":{"form":{}}}},"#,
//!         r#""inputResponses":{"who":{"action":"accept","content":{"name":"Ada"}}},"#,
//!         r#""requestState":"AbC="}}"#,
//!     )
//! );
//!
//! // Complete: the outcome, which must not be cached, for it depends on an answer.
//! let reply = concat!(
//!     r#"{"jsonrpc":"2.0","id":2,"result":{"resultType":"complete","#,
//!     r#""content":[{"type":"text","text":"Hello, Ada!"}]}}"#,
//! );
//! let Received::Complete(complete) = retrying.receive(reply.as_bytes(), at(86_400_020)) else { panic!() };
//! assert!(complete.result().is_ok_and(|result| result.get("content").is_some()));
//! assert_eq!((complete.rounds(), complete.carried_answers_or_state()), (2, true));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What it promises
//!
//! - A retry is the original request with the answers and the state of the round it answers, under a new id;
//!   never with those of an earlier round, never with those of another call (R-089…R-093).
//! - Nobody is asked a question whose answer would not be sent: every limit, the capabilities declared, and
//!   earlier refusals are checked first ([`Violation`], [`Stopped`]).
//! - Nothing is answered that nobody answered. An exchange that is dropped sends nothing more.
//! - `Debug`, errors and logs show keys, kinds and sizes; no state, no answer.

mod answerer;
mod asking;
mod call;
mod complete;
mod config;
pub mod connection;
mod error;
mod input_required;
mod ongoing;
mod pending;
mod policy;
mod question;
mod receive;
mod resend;
mod response;
mod retrying;
mod saved;
mod sealed;
pub(crate) mod text;

use alloc::{boxed::Box, string::String, sync::Arc};

use crate::{
    jsonrpc::{Json, RequestId},
    wire::{ClientCapabilities, Version},
};

pub use answerer::{
    Answerer, Answering, Elicit, ElicitUrl, ListRoots, NoAnswers, NotAnswered, Question, Sample,
};
pub use asking::{Asking, Round, RoundFailed, Unanswered, Why, answer_one};
pub use call::{Call, IdFault, Progress, StartError};
pub use complete::{Complete, StateRefused};
pub use config::{Channel, Config, ConfigError};
pub use connection::{Connection, ConnectionConfig, EraCache};
pub use error::{Stopped, Violation};
pub use input_required::{Ask, InputRequired, NotReady, NotSent, Reason};
pub use pending::Pending;
pub use policy::{Policy, Thinking};
pub use receive::{Aside, Open, Received};
pub use resend::Resend;
pub use response::{AnswerError, InputResponse};
pub use retrying::Retrying;
pub use saved::ResumeError;

/// Makes calls. Immutable, cheap to clone, shared by threads; all that happens is in the exchanges.
#[derive(Clone)]
pub struct Client {
    shared: Arc<Shared>,
}

/// The configuration with what is written into every request from it.
struct Shared {
    config: Config,
    /// The capabilities as a peer reads them.
    capabilities: ClientCapabilities,
    /// Their JSON text.
    declared: String,
    /// `"…/clientInfo":{…},` or nothing.
    info: String,
}

/// One call on its way to its outcome. `S` is its state: [`Pending`], [`InputRequired`], [`Retrying`] or
/// [`Complete`].
///
/// Every method appends whole messages or nothing; what is in the buffer after it is to be sent. `Debug` shows the
/// method, the newest id, the round, keys and sizes.
#[must_use = "an exchange that is dropped sends nothing more and its call has no outcome"]
pub struct Exchange<S> {
    // On the heap, so that a change of state moves a pointer.
    call: Box<ongoing::Ongoing>,
    state: S,
}

impl Client {
    /// A client that behaves as configured.
    #[must_use]
    pub fn new(config: Config) -> Self {
        let declared = config.declared(config.capabilities);
        let capabilities = as_declared(&declared);
        let info = config.client_info();
        Self { shared: Arc::new(Shared { config, capabilities, declared, info }) }
    }
}

/// The capabilities as a peer reads them, so that both sides agree on what may be asked.
fn as_declared(json: &str) -> ClientCapabilities {
    ClientCapabilities::from_json(Json::trusted(json)).unwrap_or_default()
}

impl<S> Exchange<S> {
    /// The method that is called.
    #[must_use]
    pub fn method(&self) -> &str {
        self.call.method.name()
    }

    /// The id of the newest request: the one under way, or the one that was answered last.
    #[must_use]
    pub fn request_id(&self) -> &RequestId {
        &self.call.id
    }

    /// The version of the newest request.
    #[must_use]
    pub fn version(&self) -> Version {
        self.call.version
    }
}

impl core::fmt::Debug for Client {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Client").field("config", &self.shared.config).finish()
    }
}

impl<S: core::fmt::Debug> core::fmt::Debug for Exchange<S> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let mut out = f.debug_struct("Exchange");
        self.call.describe(&mut out);
        out.field("state", &self.state).finish()
    }
}

// Services and exchanges go from thread to thread.
const _: () = {
    const fn goes_anywhere<T: Send + Sync>() {}
    goes_anywhere::<Client>();
    goes_anywhere::<Exchange<Pending>>();
    goes_anywhere::<Exchange<InputRequired>>();
    goes_anywhere::<Exchange<Complete>>();
};
