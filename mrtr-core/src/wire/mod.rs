//! The protocol's own words: methods, `_meta`, capabilities, asks, answers, results, eras.
//!
//! Everything is read from [`Json`](crate::jsonrpc::Json) by name; unknown members are tolerated everywhere
//! and what is only passed on stays the text it was.

mod answer;
mod ask;
mod capability;
mod echo;
mod era;
mod meta;
mod method;
mod result;
mod sampling;

pub use answer::{Action, Answer, AnswerFault, read_answer};
pub use ask::{AskFault, AskKind, InputRequest};
pub use capability::{ClientCapabilities, Requirement};
pub use echo::{Change, Echo};
pub use era::{Era, Version};
pub use meta::{Implementation, LogLevel, MetaFault, RequestMeta, key};
pub use method::AskingMethod;
pub(crate) use result::read_parts;
pub use result::{InterimResult, ResultFault, ResultKind, read_result};
pub use sampling::{Root, Sampled, Sampling};
