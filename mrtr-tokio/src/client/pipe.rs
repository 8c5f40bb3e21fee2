//! A pair of pipes: one message a line, replies told apart by their ids.

use std::{
    collections::BTreeMap,
    fmt, io,
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use mrtr_core::{
    Limits,
    framing::{LineDecoder, write_line},
    jsonrpc::{Message, RequestId, admit},
};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    process::Command,
    sync::{Mutex as AsyncMutex, mpsc, oneshot},
    task::JoinHandle,
    time::timeout,
};

use super::{
    WireError,
    child::{self, Running, Stderr},
    head::{Head, Whose, whose},
    wire::Ended,
};

/// Lines that wait for the server to read.
const QUEUE: usize = 64;

/// Notifications that wait for a call to look at them. Further ones are dropped; replies never are.
const NOTICES: usize = 256;

/// Bytes of one read.
const READ: usize = 16 << 10;

pub(super) struct Pipe {
    /// How to start the server, if that is ours to do.
    command: Option<Mutex<Command>>,
    connection: AsyncMutex<Option<Connection>>,
    /// The running connection's writer, for messages that must not wait.
    writer: Mutex<Option<mpsc::Sender<Vec<u8>>>>,
    limit: usize,
    grace: Duration,
    stderr: Stderr,
}

struct Connection {
    writer: mpsc::Sender<Vec<u8>>,
    waiting: Arc<Waiting>,
    reading: JoinHandle<()>,
    writing: JoinHandle<io::Result<()>>,
    child: Option<Running>,
}

impl Drop for Connection {
    fn drop(&mut self) {
        // The child is killed by its own drop.
        self.reading.abort();
        self.waiting.end(&Ending::Closed);
    }
}

/// The requests that wait for a reply.
#[derive(Default)]
struct Waiting(Mutex<Table>);

#[derive(Default)]
struct Table {
    requests: BTreeMap<RequestId, Slot>,
    /// The reader has ended: nothing more comes.
    ended: Option<Ending>,
}

/// Why nothing more comes.
#[derive(Clone)]
enum Ending {
    Closed,
    Child(Ended),
}

impl From<&Ending> for WireError {
    fn from(ending: &Ending) -> Self {
        match ending {
            Ending::Closed => Self::ENDED,
            Ending::Child(ended) => Self::Ended(ended.clone()),
        }
    }
}

struct Slot {
    reply: oneshot::Sender<Result<Vec<u8>, WireError>>,
    notices: mpsc::Sender<Arc<[u8]>>,
}

impl Waiting {
    fn table(&self) -> MutexGuard<'_, Table> {
        // Nothing panics while it is held.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets nobody wait any longer.
    fn end(&self, ending: &Ending) {
        let mut table = self.table();
        for slot in std::mem::take(&mut table.requests).into_values() {
            let _ = slot.reply.send(Err(ending.into()));
        }
        table.ended.get_or_insert_with(|| ending.clone());
    }

    /// A line was longer than the limit: whoever waits for it is told.
    fn too_long(&self, head: &[u8], limit: usize) {
        let mut table = self.table();
        let ids: Vec<RequestId> = match whose(head) {
            Whose::Nobody => Vec::new(),
            Whose::Id(id) => vec![id],
            Whose::Unknown => table.requests.keys().cloned().collect(),
        };
        for slot in ids.iter().filter_map(|id| table.requests.remove(id)) {
            let _ = slot.reply.send(Err(WireError::TooLarge { limit }));
        }
    }
}

impl Pipe {
    pub(super) fn child(command: Command, limit: usize, grace: Duration, stderr: Stderr) -> Self {
        Self {
            command: Some(Mutex::new(command)),
            connection: AsyncMutex::new(None),
            writer: Mutex::new(None),
            limit,
            grace,
            stderr,
        }
    }

    pub(super) fn open(
        input: impl AsyncRead + Send + 'static,
        output: impl AsyncWrite + Send + 'static,
        limit: usize,
        grace: Duration,
    ) -> Self {
        let connection = Connection::new(input, output, None, limit);
        let writer = Mutex::new(Some(connection.writer.clone()));
        let connection = AsyncMutex::new(Some(connection));
        Self { command: None, connection, writer, limit, grace, stderr: Stderr::default() }
    }

    /// Sends a request.
    pub(super) async fn request(&self, id: &RequestId, message: &[u8]) -> Result<Replies, WireError> {
        let (reply, receiver) = oneshot::channel();
        let (notices, queue) = mpsc::channel(NOTICES);
        let (writer, waiting) = {
            let mut connection = self.connection.lock().await;
            let connection = self.running(&mut connection)?;
            let mut table = connection.waiting.table();
            if let Some(ending) = &table.ended {
                return Err(ending.into());
            }
            table.requests.insert(id.clone(), Slot { reply, notices });
            drop(table);
            (connection.writer.clone(), Arc::clone(&connection.waiting))
        };
        let replies = Replies { reply: Some(receiver), notices: queue, waiting, id: id.clone() };
        let mut line = Vec::with_capacity(message.len() + 1);
        write_line(&mut line, message);
        // If it cannot be written, nothing comes back either, and the reader knows why.
        let _ = writer.send(line).await;
        Ok(replies)
    }

    /// The connection; a child that has ended is started anew.
    fn running<'c>(&self, slot: &'c mut Option<Connection>) -> Result<&'c Connection, WireError> {
        if let (Some(connection), Some(_)) = (&*slot, &self.command)
            && connection.waiting.table().ended.is_some()
        {
            *slot = None;
        }
        if slot.is_none()
            && let Some(command) = &self.command
        {
            let mut command = command.lock().unwrap_or_else(PoisonError::into_inner);
            let (child, input, output) = child::spawn(&mut command, &self.stderr)?;
            drop(command);
            let connection = Connection::new(input, output, Some(child), self.limit);
            *self.writer() = Some(connection.writer.clone());
            *slot = Some(connection);
        }
        slot.as_ref().ok_or(WireError::ENDED)
    }

    fn writer(&self) -> MutexGuard<'_, Option<mpsc::Sender<Vec<u8>>>> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends what wants no reply, unless the server is so far behind that it does not read.
    pub(super) fn post(&self, message: &[u8]) {
        let mut line = Vec::with_capacity(message.len() + 1);
        write_line(&mut line, message);
        if let Some(writer) = &*self.writer()
            && writer.try_send(line).is_err()
        {
            tracing::debug!("a message was not sent: the server does not read");
        }
    }

    /// Closes the server's input and waits for it to end.
    pub(super) async fn close(&self) {
        let taken = self.connection.lock().await.take();
        *self.writer() = None;
        let Some(mut connection) = taken else { return };
        let child = connection.child.take();
        // The last sender goes with the connection, the writer with it, and with the writer the input.
        let (closed, _) = mpsc::channel(1);
        connection.writer = closed;
        if timeout(self.grace, &mut connection.writing).await.is_err() {
            connection.writing.abort();
        }
        if let Some(child) = child {
            child.stop(self.grace).await;
        }
    }
}

impl Connection {
    fn new(
        input: impl AsyncRead + Send + 'static,
        output: impl AsyncWrite + Send + 'static,
        child: Option<Running>,
        limit: usize,
    ) -> Self {
        let (writer, queue) = mpsc::channel(QUEUE);
        let waiting = Arc::new(Waiting::default());
        let reading = tokio::spawn(read(input, Arc::clone(&waiting), limit, child.clone()));
        let writing = tokio::spawn(write(output, queue));
        Self { writer, waiting, reading, writing, child }
    }
}

async fn write(output: impl AsyncWrite, mut queue: mpsc::Receiver<Vec<u8>>) -> io::Result<()> {
    let mut output = pin!(output);
    while let Some(line) = queue.recv().await {
        output.write_all(&line).await?;
        output.flush().await?;
    }
    output.shutdown().await
}

/// Reads to the end, and then lets nobody wait any longer.
async fn read(input: impl AsyncRead, waiting: Arc<Waiting>, limit: usize, child: Option<Running>) {
    let mut input = pin!(input);
    let mut decoder = LineDecoder::new(limit);
    let mut buffer = vec![0; READ];
    let mut head = Head::default();
    let mut limits = Limits::default();
    limits.message_bytes = limit;
    loop {
        let read = match input.read(&mut buffer).await {
            Ok(0) => break,
            Ok(read) => buffer.get(..read).unwrap_or_default(),
            Err(error) => {
                tracing::debug!(%error, "the server's output cannot be read");
                break;
            }
        };
        for piece in read.split_inclusive(|byte| *byte == b'\n') {
            head.take(piece);
            decoder.push(piece);
            while let Some(line) = decoder.next() {
                match line {
                    Ok(line) => sort(line, &waiting, &limits),
                    Err(error) => {
                        tracing::warn!(%error, "a line of the server was skipped");
                        waiting.too_long(head.bytes(), limit);
                    }
                }
            }
        }
    }
    // A last line without an end has still been said.
    if let Some(Ok(line)) = decoder.finish() {
        sort(line, &waiting, &limits);
    }
    let ending = match child {
        Some(child) => Ending::Child(child.ended().await),
        None => Ending::Closed,
    };
    waiting.end(&ending);
}

/// Gives a line to those whom it may concern.
fn sort(line: &[u8], waiting: &Waiting, limits: &Limits) {
    let id = match admit(line, limits) {
        Ok(Message::Response(response)) => response.id,
        Ok(Message::Notification(_)) => {
            let notice: Arc<[u8]> = line.into();
            for slot in waiting.table().requests.values() {
                let _ = slot.notices.try_send(Arc::clone(&notice));
            }
            return;
        }
        Ok(Message::Request(_)) => {
            tracing::debug!("the server sends requests, which no modern server may");
            return;
        }
        Err(refused) => refused.response_to.or(refused.id),
    };
    let slot = id.and_then(|id| waiting.table().requests.remove(&id));
    match slot {
        Some(slot) => drop(slot.reply.send(Ok(line.to_vec()))),
        // Late replies to what was given up, and lines that are none.
        None => tracing::debug!(bytes = line.len(), "a line of the server belongs to nobody"),
    }
}

impl fmt::Debug for Pipe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pipe").field("child", &self.command.is_some()).finish_non_exhaustive()
    }
}

pub(super) struct Replies {
    /// Until it has come.
    reply: Option<oneshot::Receiver<Result<Vec<u8>, WireError>>>,
    notices: mpsc::Receiver<Arc<[u8]>>,
    waiting: Arc<Waiting>,
    id: RequestId,
}

impl Replies {
    /// Notifications first: those that were sent before the reply have come before it.
    pub(super) async fn next(&mut self) -> Result<Vec<u8>, WireError> {
        let reply = self.reply.as_mut().ok_or(WireError::ENDED)?;
        tokio::select! {
            biased;
            Some(notice) = self.notices.recv() => Ok(notice.to_vec()),
            reply = reply => {
                self.reply = None;
                reply.map_err(|_| WireError::ENDED)?
            }
        }
    }
}

impl Drop for Replies {
    fn drop(&mut self) {
        self.waiting.table().requests.remove(&self.id);
    }
}
