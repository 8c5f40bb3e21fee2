//! One request, from its head to the last byte of its reply.

use std::{
    ops::ControlFlow,
    pin::{Pin, pin},
    sync::Arc,
    time::Duration,
};

use http::{Method, Request, Response, StatusCode, request::Parts};
use mrtr_core::{
    catalog::Listen,
    handler::{Reception, Run},
    http::{Accepts, Content, ReplyBody as Reply, ReplyClass},
    jsonrpc::Admission,
    server::RoundEnv,
};
use tokio::{
    sync::{OwnedSemaphorePermit, mpsc, watch},
    time::{Instant, Sleep, sleep},
};

use super::{
    ReplyBody,
    body::{Output, Producer},
    drain::Watched,
    endpoint::Shared,
    entrance::{Entered, Entrance},
    principal::Identity,
    rules::{self, Extra, Head},
    sessions::{Posting, Visit},
};
use crate::{
    clock,
    drive::{Attempt, Committing, Next},
    room,
};

/// Answers a request.
pub(super) async fn answer<B>(shared: Arc<Shared>, request: Request<B>) -> Response<ReplyBody>
where
    B: http_body::Body,
    B::Data: bytes::Buf,
{
    let (parts, body) = request.into_parts();
    let body = pin!(body);
    let mut body = Watched::new(&parts, body);
    match take(shared, parts, &mut body).await {
        ControlFlow::Continue((taken, extra)) => respond(taken, extra).await,
        ControlFlow::Break(response) => {
            body.drain(response.status()).await;
            response
        }
    }
}

/// Reads a request whole, or says how it is answered.
async fn take<B>(
    shared: Arc<Shared>,
    parts: Parts,
    body: &mut Watched<'_, B>,
) -> ControlFlow<Response<ReplyBody>, (Taken, Extra)>
where
    B: http_body::Body,
    B::Data: bytes::Buf,
{
    let entrance = Entrance {
        gate: &shared.gate,
        requests: &shared.requests,
        principals: &*shared.principals,
        complaint: &shared.complaint,
    };
    let Entered { accepts, mut extra, permit, identity } = entrance.pass(&parts)?;
    if let Some(hub) = &shared.legacy
        && parts.method != Method::POST
    {
        let visit = Visit { parts: &parts, identity: &identity, accepts };
        return ControlFlow::Break(hub.without_body(&shared, &visit, extra).await);
    }
    let limit = shared.service.server().config().limits.message_bytes;
    let mut room = shared.room.take();
    let bytes = match rules::read(body, limit, shared.bounds.body_timeout, &mut room).await {
        Ok(bytes) => bytes,
        Err(fault) => return ControlFlow::Break(rules::unread(fault, limit, extra)),
    };
    let admission = Admission::of(bytes, &shared.service.server().config().limits);
    if let Some(hub) = &shared.legacy {
        let visit = Visit { parts: &parts, identity: &identity, accepts };
        match hub.post(&shared, &visit, &admission, extra).await {
            Posting::Answered(response) => return ControlFlow::Break(response),
            Posting::Modern(given) => extra = given,
        }
    }
    ControlFlow::Continue((Taken { shared, parts, identity, accepts, admission, room, permit }, extra))
}

/// A request whose body is read.
struct Taken {
    shared: Arc<Shared>,
    parts: Parts,
    identity: Identity,
    accepts: Accepts,
    admission: Admission,
    room: room::Taken,
    permit: OwnedSemaphorePermit,
}

async fn respond(taken: Taken, extra: Extra) -> Response<ReplyBody> {
    let (sender, receiver) = mpsc::channel(1);
    let committing = Arc::new(Committing::default());
    let output = Writer { reply: Reply::new(taken.accepts), output: sender };
    let produce = produce(taken, output, Arc::clone(&committing));
    // Nothing at all only if there was no entropy.
    let nothing = StatusCode::INTERNAL_SERVER_ERROR;
    begin(Producer::new(produce, receiver, committing), extra, nothing, "the server failed\n").await
}

/// Runs a producer up to the first bytes of its reply; an event stream goes on as the response's body. A producer
/// that gives nothing is answered for with `nothing`.
pub(crate) async fn begin(
    mut producer: Producer,
    extra: Extra,
    nothing: StatusCode,
    text: &'static str,
) -> Response<ReplyBody> {
    let first = std::future::poll_fn(|cx| producer.poll_next(cx)).await;
    let Some(Output { head: Some(head), bytes, last }) = first else {
        return rules::bare(nothing, extra, text);
    };
    let body = match head.content {
        Content::EventStream if !last => ReplyBody::stream(bytes, producer),
        Content::Empty => ReplyBody::empty(),
        Content::Json | Content::EventStream | _ => ReplyBody::whole(bytes),
    };
    rules::reply(head, extra, body)
}

/// Writes the reply, piece by piece.
///
/// The attempt borrows the body, the headers and the principal, so all of them live in this one future.
async fn produce(taken: Taken, mut output: Writer, committing: Arc<Committing>) {
    // The room is that of the message, and kept as long.
    let Taken { shared, parts, identity, accepts, admission, room: _room, permit } = taken;
    let busy = shared.busy.subscribe();
    let entropy = match clock::entropy() {
        Ok(entropy) => entropy,
        Err(error) => {
            tracing::error!(%error, "the system gives no entropy");
            return;
        }
    };
    let head = Head(&parts);
    let env = RoundEnv::new(shared.clock.now(), entropy, identity.principal()).with_headers(&head);
    match shared.service.receive_message(admission.message(), env) {
        Reception::Reply { bytes, class } => output.finish(class, &bytes).await,
        Reception::Run(run) => drive(run, &shared, &mut output, &committing).await,
        Reception::Listen(listen) => {
            // It may stay for days, and does nothing: it does not count among the requests.
            drop((permit, busy));
            subscribe(&listen, &shared, accepts, &mut output).await;
        }
        // Over HTTP, what a notification cancels is cancelled by closing its stream.
        Reception::Accepted | Reception::Cancelled(_) | _ => output.finish(ReplyClass::Accepted, &[]).await,
    }
}

/// Drives an attempt to its end.
async fn drive(run: Run<'_>, shared: &Shared, output: &mut Writer, committing: &Committing) {
    let every = shared.bounds.keep_alive;
    let mut silence = pin!(sleep(every));
    let mut attempt = Attempt::new(run, &shared.clock, shared.store.as_ref(), committing);
    loop {
        tokio::select! {
            biased;
            next = attempt.next() => match next {
                Next::Notification(message) => output.notification(&message).await,
                Next::Reply(class, message) => {
                    output.finish(class, &message).await;
                    return;
                }
            },
            () = &mut silence => output.keep_alive().await,
        }
        restart(silence.as_mut(), every);
    }
}

/// Serves a subscription until the peer leaves or the server goes away.
async fn subscribe(listen: &Listen, shared: &Shared, accepts: Accepts, output: &mut Writer) {
    let room = Arc::clone(&shared.subscriptions).try_acquire_owned();
    let mut message = Vec::new();
    let Ok(_room) = room else {
        // Closed in order as soon as it is open: the peer may come again.
        tracing::warn!("a subscription was closed at once: too many are open");
        listen.acknowledge(&mut message);
        output.notification(&message).await;
        message.clear();
        listen.close(&mut message);
        output.finish(ReplyClass::Result, &message).await;
        return;
    };
    let mut changes = shared.changes.subscribe();
    let mut closing = shared.closing.subscribe();
    let every = shared.bounds.keep_alive;
    let mut silence = pin!(sleep(every));
    listen.acknowledge(&mut message);
    if accepts.event_stream {
        output.notification(&message).await;
        loop {
            message.clear();
            let change = tokio::select! {
                biased;
                () = raised(&mut closing) => None,
                change = changes.next() => change,
                () = &mut silence => {
                    output.keep_alive().await;
                    restart(silence.as_mut(), every);
                    continue;
                }
            };
            let Some(change) = change else { break };
            if listen.change(&change, &mut message) {
                output.notification(&message).await;
                restart(silence.as_mut(), every);
            }
        }
    }
    message.clear();
    listen.close(&mut message);
    output.finish(ReplyClass::Result, &message).await;
}

/// Ready when the flag is up, or nobody is left to raise it.
pub(crate) async fn raised(flag: &mut watch::Receiver<bool>) {
    // What `wait_for` gives holds a lock: it ends here.
    let _ = flag.wait_for(|up| *up).await;
}

pub(crate) fn restart(mut sleep: Pin<&mut Sleep>, after: Duration) {
    // A duration that no clock can reach means never.
    let now = Instant::now();
    let at = now.checked_add(after).unwrap_or_else(|| now + NEVER);
    sleep.as_mut().reset(at);
}

/// Thirty years.
const NEVER: Duration = Duration::from_secs(946_080_000);

/// The end of the channel that messages go into, framed as the core says.
struct Writer {
    reply: Reply,
    output: mpsc::Sender<Output>,
}

impl Writer {
    async fn notification(&mut self, message: &[u8]) {
        let mut bytes = Vec::new();
        let head = self.reply.notification(message, &mut bytes);
        self.send(head, bytes).await;
    }

    async fn keep_alive(&mut self) {
        let mut bytes = Vec::new();
        let head = self.reply.keep_alive(&mut bytes);
        self.send(head, bytes).await;
    }

    async fn finish(&mut self, class: ReplyClass, message: &[u8]) {
        let mut bytes = Vec::new();
        let head = self.reply.finish(class, message, &mut bytes);
        self.send(head, bytes).await;
    }

    async fn send(&self, head: Option<mrtr_core::http::ReplyHead>, bytes: Vec<u8>) {
        if head.is_none() && bytes.is_empty() {
            return;
        }
        let last = self.reply.is_ended();
        // An error says that nobody reads any more: then this is a commit that goes on without its peer.
        let _ = self.output.send(Output { head, bytes, last }).await;
    }
}
