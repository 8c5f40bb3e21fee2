//! Return-style handlers: JavaScript looks at what was answered, and returns a result or what it wants to ask.

use std::{sync::Arc, task::Poll};

use mrtr_core::{
    handler::{Attempt, AttemptEvent},
    jsonrpc::Json,
    server::{Exchange, Given, InputRequests, Pending},
    wire::InputRequest,
};

use crate::{
    asks::lettered,
    mail::{Event, Mail},
    serve::Output,
    settings::raw,
};

/// What a handler wants of its exchange.
pub(crate) enum Wish {
    /// The answer to this question. As [`crate::asks`] has it, and further: `m` missing, `h` changed.
    Answer {
        key: String,
        request: InputRequest<'static>,
    },
    /// Its own state of the last round: `a` and JSON text, or nothing.
    State,
    Target,
    Arguments,
    /// To ask, with a state of its own.
    Require {
        asks: InputRequests,
        /// JSON text, checked.
        state: String,
    },
}

pub(crate) async fn serve(
    exchange: Exchange<'_, Pending>,
    handler: u32,
    mail: &Arc<Mail>,
    output: &mut Output,
) {
    let mut attempt = Attempt::new(exchange);
    // Whether the handler has ended it, and why its questions could not be asked.
    let (mut replied, mut fault) = (false, None);
    let mut message = Vec::new();
    loop {
        let next = std::future::poll_fn(|_| {
            let mut inner = mail.lock();
            let (stored, wish, result) = (inner.stored.take(), inner.wish.take(), inner.result.take());
            let (left, silent) = (inner.left, core::mem::take(&mut inner.silent));
            drop(inner);
            let now = mail.now();
            if let Some(event) = stored {
                attempt.handle_store(now, event);
            }
            if left {
                if !attempt.is_claimed() {
                    return Poll::Ready(None);
                }
                attempt.cancel();
            }
            if let Some(Wish::Require { asks, state }) = wish {
                replied = true;
                let state = raw(&state).unwrap_or(Json::NULL);
                fault = attempt.require_json(asks, state, now).err().map(|error| error.to_string());
            } else if let (Some(wish), Some(exchange)) = (wish, attempt.exchange()) {
                mail.lock().granted = grant(exchange, &wish);
            }
            if let Some(result) = result {
                replied = true;
                match result {
                    Ok(output) => attempt.complete(&output),
                    Err(error) => attempt.fail(&error),
                }
            }
            if silent {
                return Poll::Ready(Some(Next::Silent));
            }
            let polled = attempt.poll(now, &mut message);
            let mut inner = mail.lock();
            inner.wake_at = attempt.wake_at();
            inner.goes_on = attempt.is_claimed();
            polled.map(|event| Some(Next::Event(event)))
        })
        .await;
        match next {
            None => return,
            Some(Next::Silent) => output.keep_alive(),
            Some(Next::Event(AttemptEvent::Store(command))) => mail.event(Event::Store(command)),
            Some(Next::Event(AttemptEvent::Look)) => mail.event(Event::Start { handler, returning: true }),
            Some(Next::Event(AttemptEvent::Finished(outcome))) => {
                if !replied || fault.is_some() {
                    mail.event(Event::Suspended(fault));
                }
                output.finish(outcome.class(), &message);
                return;
            }
            Some(Next::Event(_)) => {}
        }
    }
}

enum Next<'a> {
    Silent,
    Event(AttemptEvent<'a>),
}

/// What the handler sees of its exchange.
fn grant(exchange: &Exchange<'_, Pending>, wish: &Wish) -> Option<String> {
    Some(match wish {
        Wish::Answer { key, request } => given(exchange.answer(key, request)),
        Wish::State => exchange.state_json().map_or_else(String::new, |state| lettered('a', state.as_str())),
        Wish::Target => exchange.target().to_owned(),
        Wish::Arguments => exchange.arguments().as_str().to_owned(),
        Wish::Require { .. } => return None,
    })
}

fn given(given: Given<String>) -> String {
    match given {
        Given::Given(content) => lettered('a', &content),
        Given::Declined => "d".into(),
        Given::Cancelled => "c".into(),
        Given::Invalid(reason) => lettered('i', &reason),
        Given::Changed => "h".into(),
        Given::Missing | _ => "m".into(),
    }
}
