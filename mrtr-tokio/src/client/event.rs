//! What happens on the wire, for traces and progress bars.

use std::{borrow::Cow, sync::Arc, time::Duration};

use mrtr_core::{
    jsonrpc::{Json, RequestId},
    wire::InputRequest,
};

/// Hears [`Event`]s. It is called where they happen and must not block for long.
pub type OnEvent = Arc<dyn Fn(Event<'_>) + Send + Sync>;

/// What happens on the wire, as [`Options::events`](super::Options::events) hears it. It may hold answers and what the
/// server says, never a state.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// A request goes out.
    Sent {
        /// Which leg of the call, from 1.
        round: u32,
        /// Its method.
        method: &'a str,
        /// Its id.
        id: &'a RequestId,
        /// Bytes of the message.
        bytes: usize,
    },
    /// The server says how far it is.
    Progress {
        /// The parameters of `notifications/progress`.
        params: Json<'a>,
    },
    /// Another notification.
    Notification {
        /// Its method.
        method: &'a str,
        /// Its parameters.
        params: Option<Json<'a>>,
    },
    /// The server asks, or only wants the call again.
    Asked {
        /// Which leg of the call, from 1.
        round: u32,
        /// The questions, with their keys if they have some; none if the server only defers.
        asks: Vec<(Option<&'a str>, &'a InputRequest<'static>)>,
        /// How long the state is that goes with them, and how it begins.
        state: Option<(usize, String)>,
        /// Bytes of the message.
        bytes: usize,
        /// Since the request went out.
        after: Duration,
    },
    /// A question was answered.
    Answered {
        /// Its key, if it has one.
        key: Option<&'a str>,
        /// Its answer on the wire.
        answer: Json<'a>,
    },
    /// The call waits before it goes on, for the server wants it to come again later.
    Waiting(Duration),
    /// The outcome is there.
    Done {
        /// Which leg of the call, from 1.
        round: u32,
        /// Why it failed, or nothing.
        error: Option<Cow<'a, str>>,
        /// Bytes of the message.
        bytes: usize,
        /// Since the request went out.
        after: Duration,
    },
}
