//! JSON-RPC admission and the lazy view of JSON, through the public API: R-001…R-011, G-38, B-81, B-82.

mod differential;
mod grammar;
mod messages;

use mrtr_core::{
    Limits,
    jsonrpc::{Admission, Json, Message, Refused, admit},
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

/// Admits it, and once more as a message that is kept, which comes to the same, as often as it is looked at.
fn twice<'a>(bytes: &'a [u8], limits: &Limits) -> Result<Message<'a>, Refused> {
    let message = admit(bytes, limits);
    let kept = Admission::of(bytes.to_vec(), limits);
    for _ in 0..2 {
        assert_eq!(shown(&kept.message()), shown(&message), "{}", String::from_utf8_lossy(bytes));
    }
    message
}

/// Everything that is in it.
fn shown(message: &Result<Message<'_>, Refused>) -> String {
    let text = |value: Option<Json<'_>>| value.map(|value| value.as_str().to_owned());
    match message {
        Ok(Message::Request(it)) => format!("{:?} {} {:?}", it.id, it.method, text(it.params)),
        Ok(Message::Notification(it)) => format!("{} {:?}", it.method, text(it.params)),
        Ok(Message::Response(it)) => match &it.outcome {
            Ok(result) => format!("{:?} {}", it.id, result.as_str()),
            Err(error) => format!("{:?} {error:?}", it.id),
        },
        Err(refused) => format!("{refused:?}"),
    }
}

fn refused_by(bytes: &[u8], limits: &Limits) -> Refused {
    twice(bytes, limits).expect_err(&String::from_utf8_lossy(&bytes[..bytes.len().min(200)]))
}

fn admitted(text: &str) -> Message<'_> {
    twice(text.as_bytes(), &Limits::default()).unwrap_or_else(|refused| panic!("{}: {text}", refused.reason))
}

/// A request with this text as its id.
fn request(id: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"m"}}"#)
}

/// A request whose params have a member with this text.
fn with(value: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":"i","method":"m","params":{{"value":{value}}}}}"#)
}
