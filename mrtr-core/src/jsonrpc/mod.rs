//! JSON-RPC 2.0 messages: one bounded pass over the bytes, then borrowed views (R-001…R-011, G-38).
//!
//! | file | what |
//! |---|---|
//! | `admit` | the bounded pass: size, depth, nodes, duplicate names, what kind of message it is |
//! | `lex` | the tokens of JSON, shared with the structural digest |
//! | `json` | [`Json`], a slice of text known to be one JSON value, read lazily |
//! | `id` | [`RequestId`] |
//! | `message` | [`Message`] and its three kinds |
//! | `write` | appends whole messages to a buffer |

mod admit;
mod id;
mod json;
pub(crate) mod lex;
mod message;
pub(crate) mod write;

pub use admit::{Refusal, Refused, admit};
pub use id::RequestId;
pub use json::{Items, Json, JsonKind, Members};
pub use message::{Message, Notification, Request, Response};
