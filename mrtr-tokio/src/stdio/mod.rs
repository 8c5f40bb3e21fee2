//! A server on a pair of pipes: one message a line, both ways.
//!
//! Standard output belongs to the protocol alone; logs go to standard error. Requests run side by side;
//! their replies leave as they come, through one writer.

mod session;

use std::{
    collections::BTreeMap,
    future::Future,
    io,
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use mrtr_core::{
    ErrorCode, RpcError,
    catalog::Listen,
    framing::{LineDecoder, write_line},
    handler::{Reception, Run, Service},
    jsonrpc::{Admission, Message, RequestId, write_error},
    legacy,
    server::RoundEnv,
};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    sync::{mpsc, oneshot, watch},
    task::JoinSet,
    time::timeout,
};

use crate::{
    changes::Changes,
    clock::{self, Clock},
    drive::{Attempt, Committing, Next},
    room::Room,
    server::Identity,
    store::{self, AnyStore, Store},
};
use session::Legacy;

/// How [`serve`] serves.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// The handle that handlers announce changes with.
    pub changes: Changes,
    /// Requests at once, subscriptions included. Those over the bound get `-32603`. Default 256.
    pub requests: usize,
    /// Bytes of the lines of these requests. Those over the bound get `-32603`. One message finds room always: less
    /// than `Limits::message_bytes` is taken for as much. Default 64 MiB.
    pub request_bytes: usize,
    /// How long requests in hand may still take after the end of the input. Default 5 s.
    pub grace: Duration,
    /// Where the time comes from.
    pub clock: Clock,
    store: Option<AnyStore>,
    /// Whether clients of the legacy eras are served as well, in one session: each message says which era it
    /// belongs to (R-052, G-44). Default: no.
    pub legacy: Option<legacy::Config>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            changes: Changes::new(),
            requests: 256,
            request_bytes: 64 << 20,
            grace: Duration::from_secs(5),
            clock: Clock::system(),
            store: None,
            legacy: None,
        }
    }
}

impl Options {
    /// Where the entries of the ledger are kept that the service's
    /// [configuration](mrtr_core::server::Config::ledger) has. Without a store, every retry meets one that is
    /// down.
    #[must_use]
    pub fn ledger(self, store: impl Store) -> Self {
        Self { store: Some(AnyStore::new(store)), ..self }
    }
}

/// Serves `input` and `output` until the input ends or `shutdown` is ready, and then until what is in hand has
/// been answered or the grace is over. Subscriptions are closed in order.
///
/// All requests are of one `identity`: whoever started this process.
///
/// # Errors
///
/// If reading or writing fails. An output that nobody reads any more is an error; an input that ends is not.
pub async fn serve(
    service: Service,
    identity: Identity,
    input: impl AsyncRead,
    output: impl AsyncWrite + Send + 'static,
    options: Options,
    shutdown: impl Future<Output = ()>,
) -> io::Result<()> {
    let (lines, queue) = mpsc::channel(QUEUE);
    let mut writer = tokio::spawn(write(output, queue));
    let (closing, _) = watch::channel(false);
    let limit = service.server().config().limits.message_bytes;
    store::check(service.server().config(), options.store.as_ref());
    let legacy = match options.legacy {
        Some(config) => Some(Legacy::new(service.clone(), config, &identity)?),
        None => None,
    };
    let shared = Arc::new(Shared {
        service,
        identity,
        changes: options.changes,
        clock: options.clock,
        store: options.store,
        lines,
        running: Mutex::new(BTreeMap::new()),
        room: Room::new(options.request_bytes.max(limit)),
        legacy,
    });
    let mut tasks = JoinSet::new();
    if shared.legacy.is_some() {
        let (shared, closing) = (Arc::clone(&shared), closing.subscribe());
        tasks.spawn(async move { session::drive(&shared, closing).await });
    }
    let mut decoder = LineDecoder::new(limit);
    let mut buffer = vec![0; READ];
    let mut input = pin!(input);
    let mut shutdown = pin!(shutdown);
    let reading = loop {
        let read = tokio::select! {
            biased;
            () = &mut shutdown => break Ok(()),
            written = &mut writer => return written.unwrap_or_else(|_| Err(io::ErrorKind::BrokenPipe.into())),
            Some(_) = tasks.join_next(), if !tasks.is_empty() => continue,
            read = input.read(&mut buffer) => read,
        };
        let read = match read {
            Ok(0) => {
                // A peer that ends without a newline has still said its last line.
                if let Some(Ok(line)) = decoder.finish() {
                    shared.line(line.to_vec(), &mut tasks, &closing, options.requests).await;
                }
                break Ok(());
            }
            Ok(read) => read,
            Err(error) => break Err(error),
        };
        decoder.push(buffer.get(..read).unwrap_or_default());
        let lines = async {
            while let Some(line) = decoder.next() {
                match line {
                    Ok(line) => shared.line(line.to_vec(), &mut tasks, &closing, options.requests).await,
                    Err(error) => shared.refuse(None, format!("Invalid request: {error}")).await,
                }
            }
        };
        // A peer that does not read its replies makes this wait, and must not make it deaf.
        tokio::select! {
            biased;
            () = &mut shutdown => break Ok(()),
            () = lines => {}
        }
    };
    closing.send_replace(true);
    let rest = async { while tasks.join_next().await.is_some() {} };
    if timeout(options.grace, rest).await.is_err() {
        tracing::warn!(requests = tasks.len(), "requests are cut off at the end of the grace");
        tasks.shutdown().await;
    }
    // The last sender: the writer writes what is left and ends.
    drop(shared);
    let written = timeout(options.grace, writer).await;
    reading?;
    match written {
        Ok(Ok(written)) => written,
        Ok(Err(_)) | Err(_) => Err(io::ErrorKind::TimedOut.into()),
    }
}

/// Lines that wait for the peer to read: more make the requests wait that write them.
const QUEUE: usize = 64;

/// Bytes of one read.
const READ: usize = 16 << 10;

async fn write(output: impl AsyncWrite, mut queue: mpsc::Receiver<Vec<u8>>) -> io::Result<()> {
    let mut output = pin!(output);
    while let Some(line) = queue.recv().await {
        output.write_all(&line).await?;
        if queue.is_empty() {
            output.flush().await?;
        }
    }
    output.flush().await
}

struct Shared {
    service: Service,
    identity: Identity,
    changes: Changes,
    clock: Clock,
    store: Option<AnyStore>,
    lines: mpsc::Sender<Vec<u8>>,
    /// What runs, by its id, with what cancels it.
    running: Mutex<BTreeMap<RequestId, oneshot::Sender<()>>>,
    /// For their lines.
    room: Room,
    legacy: Option<Legacy>,
}

impl Shared {
    /// Takes a line. A request gets a task of its own; everything else is dealt with here, so that a
    /// cancellation meets the request that was sent before it.
    async fn line(
        self: &Arc<Self>,
        line: Vec<u8>,
        tasks: &mut JoinSet<()>,
        closing: &watch::Sender<bool>,
        limit: usize,
    ) {
        let bytes = line.len();
        let line = Admission::of(line, &self.service.server().config().limits);
        if let Some(legacy) = &self.legacy
            && let Some(reply) = legacy.take(&line, self.clock.now())
        {
            return self.send(&reply).await;
        }
        let id = match line.message() {
            Ok(Message::Request(request)) => request.id,
            Ok(Message::Notification(_) | Message::Response(_)) | Err(_) => return self.at_once(&line).await,
        };
        let (cancel, cancelled) = oneshot::channel();
        let mut room = self.room.take();
        let refusal = {
            let mut running = self.running();
            if running.contains_key(&id) {
                let text = "Invalid request: a request with this id is still running";
                Some(RpcError::new(ErrorCode::INVALID_REQUEST, text))
            } else if running.len() >= limit {
                Some(RpcError::internal("Internal error: too many requests at once"))
            } else if room.grow(bytes).is_err() {
                Some(RpcError::internal("Internal error: too many bytes of requests at once"))
            } else {
                running.insert(id.clone(), cancel);
                None
            }
        };
        if let Some(error) = refusal {
            return self.send_error(Some(&id), &error).await;
        }
        let (shared, closing) = (Arc::clone(self), closing.subscribe());
        tasks.spawn(async move {
            shared.request(&id, &line, cancelled, closing).await;
            drop((line, room));
            shared.running().remove(&id);
        });
    }

    /// A message that needs no task: a notification, or something to be refused.
    async fn at_once(&self, line: &Admission) {
        match self.receive(line) {
            Some(Reception::Cancelled(id)) => {
                // Unknown ids are ignored: the reply may have crossed.
                if let Some(cancel) = self.running().get_mut(&id) {
                    // Dropping the sender cancels; the entry stays until the task has ended, so that its id
                    // is not taken anew before.
                    *cancel = oneshot::channel().0;
                }
            }
            Some(Reception::Reply { bytes, .. }) => self.send(&bytes).await,
            Some(_) | None => {}
        }
    }

    fn running(&self) -> MutexGuard<'_, BTreeMap<RequestId, oneshot::Sender<()>>> {
        // Nothing panics while it is held.
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn receive<'a>(&'a self, line: &'a Admission) -> Option<Reception<'a>> {
        match clock::entropy() {
            Ok(entropy) => {
                let env = RoundEnv::new(self.clock.now(), entropy, self.identity.principal());
                Some(self.service.receive_message(line.message(), env))
            }
            Err(error) => {
                tracing::error!(%error, "the system gives no entropy");
                None
            }
        }
    }

    async fn request(
        &self,
        id: &RequestId,
        line: &Admission,
        cancelled: oneshot::Receiver<()>,
        closing: watch::Receiver<bool>,
    ) {
        match self.receive(line) {
            Some(Reception::Run(run)) => self.drive(run, cancelled).await,
            Some(Reception::Listen(listen)) => self.subscribe(&listen, cancelled, closing).await,
            Some(Reception::Reply { bytes, .. }) => self.send(&bytes).await,
            Some(_) => {}
            // A request is answered whatever is wrong on this side.
            None => self.send_error(Some(id), &RpcError::internal("Internal error")).await,
        }
    }

    /// Drives an attempt to its end, or until it is cancelled: then nothing more is sent for it. A
    /// commit that has begun goes on all the same (A12).
    async fn drive(&self, run: Run<'_>, mut cancelled: oneshot::Receiver<()>) {
        let committing = Committing::default();
        let mut silent = false;
        let mut attempt = Attempt::new(run, &self.clock, self.store.as_ref(), &committing);
        loop {
            let next = tokio::select! {
                biased;
                _ = &mut cancelled, if !silent => {
                    if !committing.is_on() {
                        return;
                    }
                    // A claim is given back (B5); a commit goes on.
                    committing.leave();
                    silent = true;
                    continue;
                }
                next = attempt.next() => next,
            };
            let (message, last) = match next {
                Next::Notification(message) => (message, false),
                Next::Reply(_, message) => (message, true),
            };
            if !silent {
                self.send(&message).await;
            }
            if last {
                return;
            }
        }
    }

    async fn subscribe(
        &self,
        listen: &Listen,
        mut cancelled: oneshot::Receiver<()>,
        mut closing: watch::Receiver<bool>,
    ) {
        let mut changes = self.changes.subscribe();
        let mut message = Vec::new();
        listen.acknowledge(&mut message);
        self.send(&message).await;
        loop {
            message.clear();
            let change = tokio::select! {
                biased;
                _ = &mut cancelled => return,
                _ = closing.changed() => None,
                change = changes.next() => change,
            };
            let Some(change) = change else { break };
            if listen.change(&change, &mut message) {
                self.send(&message).await;
            }
        }
        listen.close(&mut message);
        self.send(&message).await;
    }

    async fn refuse(&self, id: Option<&RequestId>, text: String) {
        self.send_error(id, &RpcError::new(ErrorCode::INVALID_REQUEST, text)).await;
    }

    async fn send_error(&self, id: Option<&RequestId>, error: &RpcError) {
        let mut message = Vec::new();
        write_error(&mut message, id, error);
        self.send(&message).await;
    }

    async fn send(&self, message: &[u8]) {
        if message.is_empty() {
            return;
        }
        let mut line = Vec::with_capacity(message.len() + 1);
        write_line(&mut line, message);
        // An error says that the writer has failed, which ends the server.
        let _ = self.lines.send(line).await;
    }
}
