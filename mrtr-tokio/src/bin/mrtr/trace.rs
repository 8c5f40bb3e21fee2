//! `--trace`: what happens on the wire, round by round.

use std::sync::Arc;

use mrtr_core::jsonrpc::Json;
use mrtr_tokio::client::Event;

use crate::{args::Answering, screen, show};

/// Hears what happens: shows it if that is wanted, and tells the screen what is waited for.
pub(crate) fn events(answering: &Answering) -> Arc<dyn Fn(Event<'_>) + Send + Sync> {
    let (trace, answers) = (answering.trace, answering.trace_answers);
    Arc::new(move |event| {
        match &event {
            Event::Sent { .. } => screen::waits(),
            Event::Progress { params } => screen::progress(*params),
            Event::Asked { .. } | Event::Done { .. } => screen::rests(),
            Event::Notification { .. } | Event::Answered { .. } | Event::Waiting(_) | _ => {}
        }
        if trace {
            show_event(&event, answers);
        }
    })
}

fn show_event(event: &Event<'_>, answers: bool) {
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
            show::note(&format!("← {round}  {questions}  {state}  {bytes} bytes  {} ms", after.as_millis()));
            for (key, request) in asks {
                let message = request.message().map(|text| show::line(&text, 160)).unwrap_or_default();
                let key = show::line(key.unwrap_or("(no key)"), 64);
                show::note(&format!("     {key}  {}  {message}", request.kind()));
            }
        }
        Event::Answered { key, answer } => {
            let action = answer.get("action").and_then(Json::as_string).unwrap_or("answered".into());
            let shown = if answers { show::line(answer.as_str(), 400) } else { show::line(&action, 20) };
            show::note(&format!("     {}: {shown}", show::line(key.unwrap_or("(no key)"), 64)));
        }
        Event::Progress { params } => {
            show::note(&format!("←    notifications/progress  {}", show::line(params.as_str(), 200)));
        }
        Event::Notification { method, params } => {
            let params = params.map_or("", Json::as_str);
            show::note(&format!("←    {}  {}", show::line(method, 64), show::line(params, 200)));
        }
        Event::Waiting(wait) => show::note(&format!("     waits {} ms", wait.as_millis())),
        Event::Done { round, error, bytes, after } => {
            let what =
                error.as_deref().map_or_else(|| String::from("result"), |error| show::line(error, 200));
            show::note(&format!("← {round}  {what}  {bytes} bytes  {} ms", after.as_millis()));
        }
        // Of a later version.
        _ => {}
    }
}
