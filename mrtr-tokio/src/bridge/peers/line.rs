//! What is to be written to other processes: in order, bounded in bytes, dropped when it is no longer worth saying.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use redis::{RedisResult, Value, aio::MultiplexedConnection};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, mpsc},
    time::Instant,
};

use super::{LENGTH, LIFE};

/// Messages that are written at a time.
const WRITE: usize = 64;

/// What a message takes beside its bytes.
const BESIDE: usize = 256;

pub(super) struct Post {
    stream: String,
    bytes: Vec<u8>,
    until: Instant,
    _room: OwnedSemaphorePermit,
}

/// The end that is filled.
pub(super) struct Line {
    posts: mpsc::UnboundedSender<Post>,
    room: Arc<Semaphore>,
}

/// The end that is emptied.
pub(super) type Waiting = mpsc::UnboundedReceiver<Post>;

impl Line {
    pub(super) fn new(bytes: usize) -> (Self, Waiting) {
        let (posts, waiting) = mpsc::unbounded_channel();
        let room = Arc::new(Semaphore::new(bytes.saturating_add(BESIDE).min(Semaphore::MAX_PERMITS)));
        (Self { posts, room }, waiting)
    }

    /// What finds no room is dropped: it is as if the Redis had lost it.
    pub(super) fn put(&self, stream: String, bytes: Vec<u8>, keep: Duration) {
        let weight = u32::try_from(bytes.len().saturating_add(BESIDE)).unwrap_or(u32::MAX);
        match Arc::clone(&self.room).try_acquire_many_owned(weight) {
            // An error says that the carrier has ended.
            Ok(room) => {
                drop(self.posts.send(Post { stream, bytes, until: Instant::now() + keep, _room: room }))
            }
            Err(_) => tracing::warn!("too much is to be said to other processes; a message is dropped"),
        }
    }
}

/// What was taken from the line and is not known to be written.
#[derive(Default)]
pub(super) struct Held(VecDeque<Post>);

impl Held {
    /// Writes what comes, until nothing more can come.
    pub(super) async fn write_all(
        &mut self,
        connection: &mut MultiplexedConnection,
        waiting: &mut Waiting,
    ) -> RedisResult<()> {
        while let Some(post) = waiting.recv().await {
            self.0.push_back(post);
            while self.0.len() < WRITE
                && let Ok(post) = waiting.try_recv()
            {
                self.0.push_back(post);
            }
            self.write(connection).await?;
        }
        Ok(())
    }

    /// Writes what is held. What fails is held still, but for what can never be written.
    pub(super) async fn write(&mut self, connection: &mut MultiplexedConnection) -> RedisResult<()> {
        let now = Instant::now();
        self.0.retain(|post| post.until > now);
        if self.0.is_empty() {
            return Ok(());
        }
        let mut commands = redis::pipe();
        for post in &self.0 {
            commands.cmd("XADD").arg(&post.stream).arg("MAXLEN").arg("~").arg(LENGTH);
            commands.arg("*").arg("m").arg(&post.bytes);
            commands.cmd("PEXPIRE").arg(&post.stream).arg(LIFE.as_millis().to_string()).ignore();
        }
        commands.ignore_errors();
        let written: Vec<RedisResult<Value>> = commands.query_async(connection).await?;
        let mut fault = None;
        let mut written = written.into_iter();
        self.0.retain(|_| match written.next() {
            // Order matters: what comes after one that has failed is written again, and told apart by whoever reads it.
            _ if fault.is_some() => true,
            Some(Ok(_)) => false,
            Some(Err(error)) if error.code() == Some("WRONGTYPE") => {
                tracing::error!(
                    "the stream of another process is none: somebody else writes to the bridges' Redis"
                );
                false
            }
            Some(Err(error)) => {
                fault = Some(error);
                true
            }
            None => true,
        });
        fault.map_or(Ok(()), Err)
    }
}
