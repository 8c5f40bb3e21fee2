//! `--trace`: what happens on the wire, round by round.

use mrtr_core::{client::Aside, jsonrpc::Json};
use mrtr_tokio::client::Event;

use crate::show;

pub(crate) struct Trace {
    answers: bool,
}

impl Trace {
    pub(crate) const fn new(answers: bool) -> Self {
        Self { answers }
    }

    pub(crate) fn show(&mut self, event: &Event<'_>) {
        match event {
            Event::Sent { round, method, id, bytes } => {
                show::note(&format!("→ {round}  {method}  id {id}  {bytes} bytes"));
            }
            Event::Asked { round, asks, state, bytes, after } => {
                let questions = match asks.len() {
                    0 => String::from("come again"),
                    1 => String::from("1 question"),
                    many => format!("{many} questions"),
                };
                let state = match state {
                    Some((length, begin)) => format!("state {length} characters {begin}…"),
                    None => String::from("no state"),
                };
                show::note(&format!(
                    "← {round}  {questions}  {state}  {bytes} bytes  {} ms",
                    after.as_millis()
                ));
                for ask in asks {
                    let message =
                        ask.request().message().map(|text| show::line(&text, 160)).unwrap_or_default();
                    show::note(&format!(
                        "     {}  {}  {message}",
                        show::line(ask.key(), 64),
                        ask.request().kind()
                    ));
                }
            }
            Event::Answered { ask, answer } => {
                let action = answer.get("action").and_then(Json::as_string).unwrap_or("answered".into());
                let shown =
                    if self.answers { show::line(answer.as_str(), 400) } else { show::line(&action, 20) };
                show::note(&format!("     {}: {shown}", show::line(ask.key(), 64)));
            }
            Event::Aside(Aside::Progress(notification) | Aside::Notification(notification)) => {
                let params = notification.params.map_or("", Json::as_str);
                show::note(&format!(
                    "←    {}  {}",
                    show::line(&notification.method, 64),
                    show::line(params, 200)
                ));
            }
            Event::Waiting(wait) => show::note(&format!("     waits {} ms", wait.as_millis())),
            Event::Done { round, error: None, bytes, after } => {
                show::note(&format!("← {round}  result  {bytes} bytes  {} ms", after.as_millis()));
            }
            Event::Done { round, error: Some(error), bytes, after } => {
                let error = show::line(error, 200);
                show::note(&format!("← {round}  {error}  {bytes} bytes  {} ms", after.as_millis()));
            }
            // Messages that mean nothing to a modern client, and events of later versions.
            Event::Aside(_) | _ => {}
        }
    }
}
