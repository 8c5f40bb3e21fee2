//! The client through its public API: bytes in, bytes out, time as an argument.

mod answerers;
mod answers;
mod asks;
mod echoes;
mod exchange;
mod laws;
mod limits;
mod repeats;
mod request;
mod saved;
mod sealed;
mod transport;

use mrtr_core::{
    Limits, Timestamp,
    client::{
        Call, Client, Complete, Config, Exchange, InputRequired, Open, Pending, Policy, Received, Retrying,
        Stopped, Violation,
    },
    jsonrpc::Json,
    wire::{ClientCapabilities, Implementation},
};

/// A form.
const FORM: &str = r#"{"method":"elicitation/create","params":{"message":"ok?","requestedSchema":{"type":"object","properties":{"yes":{"type":"boolean"}}}}}"#;
/// Another form.
const NAME: &str = r#"{"method":"elicitation/create","params":{"mode":"form","message":"Name?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}}}}}"#;
const URL: &str = r#"{"method":"elicitation/create","params":{"mode":"url","message":"Sign in","url":"https://id.example/1"}}"#;
const SAMPLING: &str = r#"{"method":"sampling/createMessage","params":{"messages":[],"maxTokens":10}}"#;
const ROOTS: &str = r#"{"method":"roots/list"}"#;
/// The outcome.
const DONE: &str = r#"{"resultType":"complete","content":[{"type":"text","text":"ok"}]}"#;

const META: &str = concat!(
    r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","#,
    r#""io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"#,
    r#""io.modelcontextprotocol/clientCapabilities":{"elicitation":{"form":{},"url":{}},"#,
    r#""sampling":{"tools":{},"context":{}},"roots":{}}"#,
);

fn at(millis: u64) -> Timestamp {
    Timestamp::from_unix_millis(millis)
}

fn json(text: &str) -> Json<'_> {
    Json::parse(text, &Limits::default()).unwrap()
}

fn config() -> Config {
    Config::new(Implementation::new("t", "1"), ClientCapabilities::ALL)
}

fn client() -> Client {
    Client::new(config())
}

fn client_with(change: impl FnOnce(&mut Limits, &mut Policy)) -> Client {
    let (mut limits, mut policy) = (Limits::default(), Policy::default());
    change(&mut limits, &mut policy);
    Client::new(config().limits(limits).policy(policy))
}

/// The request that [`start`] sends, with this id and tail.
fn request(id: &str, tail: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"t","arguments":{{}},"_meta":{{{META}}}{tail}}}}}"#
    )
}

/// A call of the tool `t` under id 1 at time 0.
fn start(client: &Client) -> Exchange<Pending> {
    let mut out = Vec::new();
    let call = Call::new("tools/call", r#"{"name":"t","arguments":{}}"#);
    client.start(1.into(), call, at(0), &mut out).unwrap()
}

fn reply(id: &str, result: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#)
}

fn error(id: &str, code: i32, data: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":{code},"message":"no","data":{data}}}}}"#)
}

/// The inside of an interim result.
fn interim(members: &str) -> String {
    format!(r#"{{"resultType":"input_required",{members}}}"#)
}

/// An interim result with these asks and the state "s".
fn asks(entries: &[(&str, &str)]) -> String {
    let entries: Vec<_> = entries.iter().map(|(key, ask)| format!("{}:{ask}", text(key))).collect();
    interim(&format!(r#""inputRequests":{{{}}},"requestState":"s""#, entries.join(",")))
}

/// A string as JSON.
fn text(string: &str) -> String {
    serde_json::to_string(string).unwrap()
}

/// Hands the exchange a reply to its own request.
fn receive<S: Open>(exchange: Exchange<S>, result: &str, now: u64) -> Received<'static, S> {
    let mut id = Vec::new();
    exchange.request_id().write(&mut id);
    let message = reply(std::str::from_utf8(&id).unwrap(), result);
    match exchange.receive(message.as_bytes(), at(now)) {
        Received::InputRequired(exchange) => Received::InputRequired(exchange),
        Received::Complete(exchange) => Received::Complete(exchange),
        Received::Invalid(violation) => Received::Invalid(violation),
        Received::Stopped(reason) => Received::Stopped(reason),
        other @ (Received::Aside(..) | Received::Resend(_) | Received::StateRefused(_)) => {
            panic!("no reply: {other:?}")
        }
    }
}

fn asked<S: Open>(exchange: Exchange<S>, result: &str, now: u64) -> Exchange<InputRequired> {
    match receive(exchange, result, now) {
        Received::InputRequired(exchange) => exchange,
        other => panic!("not asked: {other:?}"),
    }
}

fn complete<S: Open>(exchange: Exchange<S>, result: &str) -> Exchange<Complete> {
    match receive(exchange, result, 0) {
        Received::Complete(exchange) => exchange,
        other => panic!("not complete: {other:?}"),
    }
}

fn invalid<S: Open>(exchange: Exchange<S>, result: &str) -> Violation {
    match receive(exchange, result, 0) {
        Received::Invalid(violation) => violation,
        other => panic!("not invalid: {other:?}"),
    }
}

fn stopped<S: Open>(exchange: Exchange<S>, result: &str, now: u64) -> Stopped {
    match receive(exchange, result, now) {
        Received::Stopped(reason) => reason,
        other => panic!("not stopped: {other:?}"),
    }
}

/// Sends the retry and gives its text.
fn proceed(exchange: Exchange<InputRequired>, id: i64, now: u64) -> (Exchange<Retrying>, String) {
    let mut out = b"before".to_vec();
    let exchange = exchange.proceed(id.into(), at(now), &mut out).unwrap();
    (exchange, String::from_utf8(out).unwrap().strip_prefix("before").unwrap().to_owned())
}
