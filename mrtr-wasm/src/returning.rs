//! Return-style handlers: JavaScript looks at what was answered, and returns a result or what it wants to ask.

use std::{sync::Arc, task::Poll};

use mrtr_core::{
    RpcError,
    handler::Output as Result_,
    http::ReplyClass,
    jsonrpc::Json,
    server::{Exchange, Given, InputRequests, Pending, Retrying},
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

/// The state that an earlier round left.
pub(crate) fn state(exchange: &Exchange<'_, Retrying>) -> Option<String> {
    exchange.state_json().map(|state| state.as_str().to_owned())
}

enum Next {
    Wish(Wish),
    Returned(Result<Result_, RpcError>),
    Left,
    Silent,
}

pub(crate) async fn serve(
    exchange: Exchange<'_, Pending>,
    state: Option<String>,
    handler: u32,
    mail: &Arc<Mail>,
    output: &mut Output,
) {
    mail.event(Event::Start { handler, returning: true });
    let mut message = Vec::new();
    let class = loop {
        let next = std::future::poll_fn(|_| {
            let mut inner = mail.lock();
            if let Some(wish) = inner.wish.take() {
                return Poll::Ready(Next::Wish(wish));
            }
            if let Some(result) = inner.result.take() {
                return Poll::Ready(Next::Returned(result));
            }
            if core::mem::take(&mut inner.silent) {
                return Poll::Ready(Next::Silent);
            }
            if inner.left { Poll::Ready(Next::Left) } else { Poll::Pending }
        })
        .await;
        match next {
            Next::Left => return,
            Next::Silent => output.keep_alive(),
            Next::Wish(Wish::Answer { key, request }) => {
                mail.lock().granted = Some(given(exchange.answer(&key, &request)));
            }
            Next::Wish(Wish::State) => {
                mail.lock().granted =
                    Some(state.as_ref().map_or_else(String::new, |text| lettered('a', text)));
            }
            Next::Wish(Wish::Target) => mail.lock().granted = Some(exchange.target().to_owned()),
            Next::Wish(Wish::Arguments) => {
                mail.lock().granted = Some(exchange.arguments().as_str().to_owned());
            }
            Next::Wish(Wish::Require { asks, state }) => {
                let now = mail.now();
                // An error has written its reply too; which one, its code says to the core.
                let state = raw(&state).unwrap_or(Json::NULL);
                let class = match exchange.require_json(asks, state, now, &mut message) {
                    Ok(_) => ReplyClass::Result,
                    Err(error) => {
                        mail.event(Event::Suspended(Some(error.to_string())));
                        error.class()
                    }
                };
                break class;
            }
            Next::Returned(Ok(result)) => break exchange.complete_output(&result, &mut message).class(),
            Next::Returned(Err(error)) => break exchange.fail(&error, &mut message).class(),
        }
    };
    output.finish(class, &message);
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
