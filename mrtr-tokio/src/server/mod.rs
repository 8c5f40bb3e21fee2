//! A server over streamable HTTP.
//!
//! [`Endpoint`] answers requests: give it to [`serve`] together with a listener, or mount it in a framework as a
//! `tower::Service` (feature `tower`). Every bound and every timeout has a default that suits a public server.
//!
//! ```text
//!  socket ─▶ serve ─────▶ Endpoint ─▶ the core's gate ─▶ who is it? ─▶ body ─▶ Service::receive ─▶ reply
//!            connections   requests    Host, Origin,      Principals            attempt: polled as
//!            idle, slow    at once     type, length                             the peer reads
//! ```
//!
//! | file | what |
//! |---|---|
//! | `endpoint` | [`Endpoint`]: what is shared by all requests |
//! | `rules` | between hyper's types and the core's rules of HTTP |
//! | `exchange` | one request, from its head to the last byte of its reply |
//! | `body` | the reply's body; what becomes of an attempt when the peer leaves |
//! | `sessions` | clients of the legacy eras: their POST, GET and DELETE |
//! | `stream` | one stream of a session: what drives it, and what writes it |
//! | `principal` | who sends a request |
//! | `listen` | [`serve`]: connections, slow peers, graceful shutdown |
//! | `patience` | a connection that gives up on peers that take nothing |

pub(crate) mod body;
pub(crate) mod drain;
mod endpoint;
pub(crate) mod entrance;
pub(crate) mod exchange;
pub(crate) mod listen;
mod patience;
pub(crate) mod principal;
pub(crate) mod rules;
mod sessions;
mod stream;
#[cfg(feature = "tower")]
mod tower;

pub use body::ReplyBody;
pub use endpoint::{Bounds, Endpoint, EndpointBuilder};
pub use listen::{Options, serve};
pub use mrtr_core::{
    http::{Bind, Gate, NotAName},
    legacy::Config as LegacyConfig,
};
pub use principal::{Anonymous, FromExtension, Identity, Misconfigured, Principals};
