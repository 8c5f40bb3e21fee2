//! JSON-RPC 2.0 messages: one bounded pass over the bytes, then borrowed views (R-001…R-011, G-38).
//!
//! | file | what |
//! |---|---|
//! | `admit` | what kind of message it is, or why it is none and what to answer |
//! | `admission` | [`Admission`]: the same for a message that is kept |
//! | `begun` | what the beginning of a message says that is too long to be held |
//! | `check` | the bounded pass: grammar, depth, nodes, duplicate names |
//! | `ended` | an object that the pass went over: its members |
//! | `lex` | where the tokens of valid JSON end, shared with the structural digest |
//! | `text` | what string tokens say |
//! | `names` | sorting the names of an object |
//! | `stack` | a stack that small values need no allocation for |
//! | `json` | [`Json`], a slice of text known to be one JSON value, read lazily |
//! | `id` | [`RequestId`] |
//! | `message` | [`Message`] and its three kinds |
//! | `parts` | the members of `params` and `result` that are read of most messages, as admission saw them |
//! | `write` | appends whole messages to a buffer |

mod admission;
mod admit;
mod begun;
mod check;
mod ended;
mod id;
mod json;
pub(crate) mod lex;
mod message;
pub(crate) mod names;
mod parts;
pub(crate) mod stack;
pub(crate) mod text;
pub(crate) mod write;

pub use admission::Admission;
pub use admit::{Refusal, Refused, admit};
pub(crate) use begun::{Begun, reply_begun};
pub use id::RequestId;
pub use json::{Items, Json, JsonKind, Members};
pub use message::{Message, Notification, Request, Response};
pub(crate) use parts::Parts;
pub use write::error as write_error;
