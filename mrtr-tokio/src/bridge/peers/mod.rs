//! Other processes of the same bridge, through streams in one Redis. What is said there is the core's, sealed; this
//! carries it.
//!
//! ```text
//! mrtr:bridge:EPOCH   a stream for each process, read by it alone, written by the others
//!                     entry: one field `m`, the message
//! ```
//!
//! A stream is a letter-box: what was read is deleted, so it holds what is unread, and after every break it is read from
//! its beginning. Nobody reads that of a process that has died: it takes [`LENGTH`] entries at most and is gone after
//! [`LIFE`] without a word. What was written or read twice because a connection broke in the middle, the core tells apart.
//!
//! One task has two connections, one that waits for messages and one that writes them in order. When one breaks both are
//! made anew, at once and then with pauses that double from 50 ms to 1 s; while they cannot be made the bridge knows
//! ([`peers_reachable`](mrtr_core::bridge::Bridge::peers_reachable)), and what is to be said waits, for as long as it is
//! worth saying and within the bound of a queue to a peer.

mod line;

use std::{convert::Infallible, fmt, fmt::Write as _, time::Duration};

use mrtr_core::bridge::Output;
use redis::{Client, RedisResult, Value, aio::MultiplexedConnection};
use tokio::{
    sync::oneshot,
    task::JoinHandle,
    time::{Instant, sleep, timeout},
};

use self::line::{Held, Line, Waiting};
use super::driver::{Events, In};
use crate::store::{self, RedisError, checked};

/// Entries of one stream.
const LENGTH: usize = 10_000;

/// A stream that nobody has touched for so long is gone.
const LIFE: Duration = Duration::from_secs(120);

/// How long the Redis may hold back its reply while nothing has come; it is known by then whether it is there.
const BLOCK: Duration = Duration::from_secs(2);

/// What a command may take, and a connection to come about.
const PATIENCE: Duration = Duration::from_secs(2);

/// Messages that are read at a time.
const READ: usize = 16;

/// The first pause before another try to connect; it doubles.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// The Redis (6.2 or newer) through which the processes of one bridge reach one another: a retry that comes to another
/// process than the one that holds its call is handed to it.
///
/// All processes need the same keys. The Redis must not evict (`maxmemory-policy noeviction`, which is checked). It may
/// be restarted and may forget everything: what was handed over and not finished is said again then.
#[derive(Clone)]
pub struct Peers {
    client: Client,
}

impl Peers {
    /// Connects to `redis://[user:password@]host[:port][/database]` and checks that nothing is evicted there.
    ///
    /// # Errors
    ///
    /// [`RedisError`]; the address with its password is not in it.
    pub async fn connect(url: &str) -> Result<Self, RedisError> {
        Ok(Self { client: checked(url).await?.0 })
    }

    /// Begins to carry, for the process of this epoch. At most `bytes` wait to be written.
    pub(super) fn start(&self, epoch: [u8; 16], bytes: usize, events: Events) -> Mail {
        let (line, waiting) = Line::new(bytes);
        let carrier = Carrier { client: self.client.clone(), own: name(&epoch), events, reachable: true };
        Mail { line, carrier: tokio::spawn(carrier.run(waiting)) }
    }
}

impl fmt::Debug for Peers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Peers").finish_non_exhaustive()
    }
}

/// The driver's end.
pub(super) struct Mail {
    line: Line,
    carrier: JoinHandle<()>,
}

impl Mail {
    /// Puts a message for another process in line.
    pub(super) fn send(&self, output: Output) {
        if let Output::ToPeer { peer, bytes, keep } = output {
            self.line.put(name(&peer), bytes, keep);
        }
    }

    /// Writes what is in line, removes the stream, and ends; cut off after the grace.
    pub(super) async fn finish(self, grace: Duration) {
        let Self { line, mut carrier } = self;
        drop(line);
        if timeout(grace, &mut carrier).await.is_err() {
            tracing::warn!("other processes do not get the last that was to be said to them");
            carrier.abort();
        }
    }
}

/// The stream of a process.
fn name(epoch: &[u8; 16]) -> String {
    let mut name = String::from("mrtr:bridge:");
    for byte in epoch {
        // Writing to a string does not fail.
        let _ = write!(name, "{byte:02x}");
    }
    name
}

struct Carrier {
    client: Client,
    own: String,
    events: Events,
    reachable: bool,
}

/// The two connections.
struct Both {
    reading: MultiplexedConnection,
    writing: MultiplexedConnection,
}

impl Carrier {
    async fn run(mut self, mut waiting: Waiting) {
        let mut held = Held::default();
        let mut pause = Duration::ZERO;
        let mut first = true;
        loop {
            if !pause.is_zero() {
                sleep(pause).await;
            }
            pause = (pause * 2).clamp(FIRST_PAUSE, LONGEST_PAUSE);
            let connected = match timeout(PATIENCE * 2, self.connect()).await {
                Ok(connected) => connected,
                Err(_) => Err((redis::ErrorKind::Io, "no answer in time").into()),
            };
            let mut both = match connected {
                Ok(both) => both,
                Err(error) => {
                    self.lost(&error);
                    continue;
                }
            };
            // What could not be written before says best whether it can be now.
            if let Err(error) = held.write(&mut both.writing).await {
                self.lost(&error);
                continue;
            }
            // Nor can they be reached where nothing may be read, or deleted: there is no such entry, but that may be said.
            let mut done = Vec::from([b"0-1".to_vec()]);
            let messages = match self.take(&mut both.reading, &mut done, None).await {
                Ok(messages) => messages,
                Err(error) => {
                    self.lost(&error);
                    continue;
                }
            };
            if !first || !self.reachable {
                self.found();
            }
            first = false;
            let since = Instant::now();
            let broke = tokio::select! {
                broke = self.read(&mut both.reading, messages, done) => match broke {
                    Ok(never) => match never {},
                    Err(error) => error,
                },
                written = held.write_all(&mut both.writing, &mut waiting) => match written {
                    Ok(()) => return self.leave(both.writing).await,
                    Err(error) => error,
                },
            };
            tracing::warn!(error = ?broke.kind(), "the connection to the bridges' Redis broke");
            // One that refuses what it is told must not be asked without end, one that was restarted may be asked at once.
            let refuses = matches!(broke.kind(), redis::ErrorKind::Server(_));
            if refuses {
                self.lost(&broke);
            } else if since.elapsed() > LONGEST_PAUSE {
                pause = Duration::ZERO;
            }
        }
    }

    async fn connect(&self) -> RedisResult<Both> {
        let connect = async |patience: Duration| {
            let mut connection = store::connect(&self.client, patience).await?;
            // One that is still loading, or no longer a primary, says so.
            redis::cmd("PING").exec_async(&mut connection).await?;
            Ok::<_, redis::RedisError>(connection)
        };
        let (reading, writing) = tokio::try_join!(connect(BLOCK + PATIENCE), connect(PATIENCE))?;
        Ok(Both { reading, writing })
    }

    fn lost(&mut self, error: &redis::RedisError) {
        if std::mem::replace(&mut self.reachable, false) {
            tracing::error!(error = ?error.kind(), code = error.code(), "other bridges cannot be reached: their Redis fails");
        }
        self.events.send(In::Reachable(false));
    }

    fn found(&mut self) {
        if !std::mem::replace(&mut self.reachable, true) {
            tracing::warn!("other bridges can be reached again");
        }
        self.events.send(In::Reachable(true));
    }

    /// Reads what others write, until the connection breaks. `messages` were read already, `done` are their entries.
    async fn read(
        &self,
        connection: &mut MultiplexedConnection,
        mut messages: Vec<Vec<u8>>,
        mut done: Vec<Vec<u8>>,
    ) -> RedisResult<Infallible> {
        loop {
            if !messages.is_empty() {
                // The next ones when these are dealt with: nothing piles up here.
                let (dealt, with) = oneshot::channel();
                self.events.send(In::Peers { messages, dealt });
                if with.await.is_err() {
                    std::future::pending::<()>().await;
                }
            }
            let asked = Instant::now();
            messages = self.take(connection, &mut done, Some(BLOCK)).await?;
            if done.is_empty() && asked.elapsed() < FIRST_PAUSE {
                // Who does not hold back its reply (a proxy, one that gives what is no entry) is not asked without end.
                sleep(FIRST_PAUSE).await;
            }
        }
    }

    /// Deletes what is done, and reads what is there then, or comes within this time.
    async fn take(
        &self,
        connection: &mut MultiplexedConnection,
        done: &mut Vec<Vec<u8>>,
        within: Option<Duration>,
    ) -> RedisResult<Vec<Vec<u8>>> {
        let mut commands = redis::pipe();
        if !done.is_empty() {
            commands.cmd("XDEL").arg(&self.own).arg(&*done).ignore();
        }
        commands.cmd("PEXPIRE").arg(&self.own).arg(LIFE.as_millis().to_string()).ignore();
        commands.cmd("XREAD").arg("COUNT").arg(READ);
        if let Some(within) = within {
            commands.arg("BLOCK").arg(within.as_millis().to_string());
        }
        commands.arg("STREAMS").arg(&self.own).arg("0-0");
        let (read,): (Value,) = commands.query_async(connection).await?;
        let mut messages = Vec::new();
        done.clear();
        for (id, message) in entries(read) {
            done.push(id);
            messages.extend(message);
        }
        Ok(messages)
    }

    /// Nobody is to write to a process that has ended in order.
    async fn leave(&self, mut connection: MultiplexedConnection) {
        if let Err(error) = redis::cmd("DEL").arg(&self.own).exec_async(&mut connection).await {
            tracing::debug!(error = ?error.kind(), "the stream is left to expire");
        }
    }
}

/// The ids and messages of one stream's entries; of one that is no message the id alone.
fn entries(read: Value) -> Vec<(Vec<u8>, Option<Vec<u8>>)> {
    // [[stream, [[id, [field, value, …]], …]]]
    let Value::Array(streams) = read else { return Vec::new() };
    let Some(Value::Array(mut stream)) = streams.into_iter().next() else { return Vec::new() };
    let Some(Value::Array(entries)) = stream.pop() else { return Vec::new() };
    let mut found = Vec::new();
    for entry in entries {
        let Value::Array(entry) = entry else { continue };
        let mut entry = entry.into_iter();
        let (Some(Value::BulkString(id)), Some(fields)) = (entry.next(), entry.next()) else { continue };
        let fields = if let Value::Array(fields) = fields { fields } else { Vec::new() };
        let message = match <[Value; 2]>::try_from(fields) {
            Ok([Value::BulkString(field), Value::BulkString(message)]) if field == b"m" => Some(message),
            _ => None,
        };
        found.push((id, message));
    }
    found
}
