//! The rules of HTTP, both halves.

mod client;
mod gate;
mod mirror;
mod opening;
mod params;
mod reply;
mod values;

use mrtr_core::{
    Limits,
    jsonrpc::{Json, Message, Request, admit},
};

/// A message as an adapter would read it.
fn message(text: &str) -> Message<'_> {
    admit(text.as_bytes(), &Limits::default()).unwrap()
}

fn request(text: &str) -> Request<'_> {
    match message(text) {
        Message::Request(request) => request,
        other => panic!("{other:?}"),
    }
}

fn json(text: &str) -> Json<'_> {
    Json::parse(text, &Limits::default()).unwrap()
}
