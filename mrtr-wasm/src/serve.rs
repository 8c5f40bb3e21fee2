//! The future behind a call: from the bytes of a request to the last byte of its reply.

use std::{future::Future, pin::Pin, rc::Rc, sync::Arc, task::Poll};

use mrtr_core::{
    Entropy, Timestamp,
    catalog::{Answered, Route},
    handler::{HandlerFuture, Outcome, Run, RunEvent},
    http::{Accepts, ReplyBody, ReplyClass},
    seal::Principal,
    server::{Exchange, Incoming, Pending, Received, Rejected, RoundEnv},
};

use crate::{
    engine::{Entry, Parts},
    listen,
    mail::{Event, Mail, Returned},
    returning,
};

/// A request whose body is read.
pub(crate) struct Taken {
    pub(crate) headers: Rc<Vec<(String, String)>>,
    pub(crate) accepts: Accepts,
    pub(crate) body: Vec<u8>,
    /// `None`: anonymous.
    pub(crate) principal: Option<Vec<u8>>,
    pub(crate) entropy: [u8; 32],
    pub(crate) now: Timestamp,
}

/// Answers a request. What is to be sent and done goes into the mail.
pub(crate) async fn serve(parts: Rc<Parts>, taken: Taken, mail: Arc<Mail>) {
    let Taken { headers, accepts, body, principal, entropy, now } = taken;
    let mut output = Output { reply: ReplyBody::new(accepts), mail: Arc::clone(&mail) };
    let principal = principal.as_deref().map_or(Principal::Anonymous, Principal::Authenticated);
    let headers = &**headers;
    let env = RoundEnv::new(now, Entropy::new(entropy), principal).with_headers(&headers);
    match parts.server.read(&body, env) {
        Incoming::Rejected(rejected) => output.refuse(&rejected),
        Incoming::Notification(_) => output.finish(ReplyClass::Accepted, &[]),
        Incoming::Other(plain) => match parts.catalog.answer(&parts.server, &plain) {
            Answered::Reply { bytes, class } => output.finish(class, &bytes),
            Answered::Listen(listen) => listen::serve(&listen, accepts, &mail, &mut output).await,
            _ => output.finish(ReplyClass::Internal, &[]),
        },
        Incoming::Call(call) => match parts.catalog.route(call) {
            Route::Refused(rejected) => output.refuse(&rejected),
            Route::Handler { call, handler, parts } => match call.open() {
                Received::Pending(exchange) => {
                    handle(exchange, parts, *handler, &mail, &mut output).await;
                }
                Received::Retrying(exchange) => {
                    handle(exchange.either(), parts, *handler, &mail, &mut output).await;
                }
                Received::Rejected(rejected) => output.refuse(&rejected),
                Received::Other(_) | Received::Notification(_) | _ => {
                    output.finish(ReplyClass::Accepted, &[])
                }
            },
            _ => output.finish(ReplyClass::Internal, &[]),
        },
        _ => output.finish(ReplyClass::Internal, &[]),
    }
}

type Handled<'f> = Pin<Box<dyn Future<Output = ()> + 'f>>;

/// Hands an exchange to a handler. First and later rounds are one code, and a future of its own: the request that is
/// answered without a handler carries none of it.
fn handle<'f>(
    exchange: Exchange<'f, Pending>,
    parts: Vec<(String, String)>,
    entry: Entry,
    mail: &'f Arc<Mail>,
    output: &'f mut Output,
) -> Handled<'f> {
    if entry.returning {
        Box::pin(returning::serve(exchange, entry.index, mail, output))
    } else {
        Box::pin(run(exchange, parts, entry, mail, output))
    }
}

/// Drives an attempt to its end.
async fn run(
    exchange: Exchange<'_, Pending>,
    parts: Vec<(String, String)>,
    entry: Entry,
    mail: &Arc<Mail>,
    output: &mut Output,
) {
    let letters = Arc::clone(mail);
    let mut run = Run::with_parts(exchange, parts, move |ctx| -> HandlerFuture {
        ctx.runs_elsewhere();
        let mut inner = letters.lock();
        inner.ctx = Some(ctx);
        inner.events.push_back(Event::Start { handler: entry.index, returning: false });
        drop(inner);
        Box::pin(Returned(letters))
    });
    let mut message = Vec::new();
    let mut told = false;
    loop {
        let next = std::future::poll_fn(|cx| {
            let mut inner = mail.lock();
            let (stored, left) = (inner.stored.take(), inner.left);
            let silent = core::mem::take(&mut inner.silent);
            drop(inner);
            let now = mail.now();
            if let Some(event) = stored {
                run.handle_store(now, event);
            }
            if left {
                if !run.is_claimed() && !run.is_committing() {
                    return Poll::Ready(None);
                }
                // What is claimed is given back first; the handler is left now.
                if !told && !run.is_committing() {
                    mail.event(Event::Suspended(None));
                }
                told = true;
                run.cancel();
            }
            if silent {
                return Poll::Ready(Some(Next::Silent));
            }
            let polled = run.poll_run(cx, now, &mut message);
            let mut inner = mail.lock();
            inner.wake_at = run.wake_at();
            inner.goes_on = run.is_claimed() || run.is_committing();
            polled.map(|event| Some(Next::Event(event)))
        })
        .await;
        match next {
            None => return,
            Some(Next::Silent) => output.keep_alive(),
            Some(Next::Event(RunEvent::Store(command))) => mail.event(Event::Store(command)),
            Some(Next::Event(RunEvent::Notification)) => {
                output.notification(&message);
                message.clear();
            }
            Some(Next::Event(RunEvent::Finished(outcome))) => {
                let fault = run.fault().map(ToString::to_string);
                if fault.is_some() || matches!(outcome, Outcome::InputRequired(_)) {
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
    Event(RunEvent<'a>),
}

/// Frames messages as the core says, and leaves them to be sent.
pub(crate) struct Output {
    reply: ReplyBody,
    mail: Arc<Mail>,
}

impl Output {
    pub(crate) fn notification(&mut self, message: &[u8]) {
        let mut bytes = Vec::new();
        let head = self.reply.notification(message, &mut bytes);
        self.send(head, bytes);
    }

    pub(crate) fn keep_alive(&mut self) {
        let mut bytes = Vec::new();
        let head = self.reply.keep_alive(&mut bytes);
        self.send(head, bytes);
    }

    pub(crate) fn finish(&mut self, class: ReplyClass, message: &[u8]) {
        let mut bytes = Vec::with_capacity(message.len() + 32);
        let head = self.reply.finish(class, message, &mut bytes);
        self.send(head, bytes);
    }

    fn refuse(&mut self, rejected: &Rejected) {
        let mut bytes = Vec::new();
        rejected.write(&mut bytes);
        self.finish(rejected.class(), &bytes);
    }

    fn send(&self, head: Option<mrtr_core::http::ReplyHead>, bytes: Vec<u8>) {
        if head.is_some() || !bytes.is_empty() {
            self.mail.event(Event::Chunk { head, bytes, last: self.reply.is_ended() });
        }
    }
}
