//! JSON-RPC admission and the lazy view of JSON, through the public API: R-001…R-011, G-38, B-81, B-82.

mod differential;
mod grammar;
mod messages;

use mrtr_core::{
    Limits,
    jsonrpc::{Message, Refused, admit},
};

/// Limits that nothing here breaks but what wants to.
fn wide() -> Limits {
    let mut limits = Limits::default();
    (limits.message_bytes, limits.depth, limits.nodes) = (usize::MAX, usize::MAX, usize::MAX);
    limits
}

fn refused(text: &str) -> Refused {
    refused_by(text.as_bytes(), &Limits::default())
}

fn refused_by(bytes: &[u8], limits: &Limits) -> Refused {
    admit(bytes, limits).expect_err(&String::from_utf8_lossy(&bytes[..bytes.len().min(200)]))
}

fn admitted(text: &str) -> Message<'_> {
    admit(text.as_bytes(), &Limits::default()).unwrap_or_else(|refused| panic!("{}: {text}", refused.reason))
}

/// A request with this text as its id.
fn request(id: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"m"}}"#)
}

/// A request whose params have a member with this text.
fn with(value: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":"i","method":"m","params":{{"value":{value}}}}}"#)
}
