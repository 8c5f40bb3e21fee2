//! An upstream that is a process: its lines, its end.

use std::{pin::pin, sync::Arc, time::Duration};

use mrtr_core::{
    bridge::LinkId,
    framing::{LineDecoder, write_line},
};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    process::Command,
    sync::Semaphore,
    task::JoinHandle,
    time::timeout,
};

use super::{
    driver::{Events, In},
    sink::{Item, Items, Sink},
};
use crate::{
    client::{Stderr, WireError, carry},
    room::Full,
};

/// Bytes of one read.
const READ: usize = 16 << 10;

/// Messages of one process that wait for the bridge to look at them.
const AHEAD: usize = 64;

/// A process behind one connection.
pub(super) struct Process {
    sink: Sink,
    child: carry::Process,
    writing: JoinHandle<()>,
    /// Reads it, and tells how it ended.
    reading: JoinHandle<()>,
}

impl Process {
    pub(super) fn start(
        link: LinkId,
        mut command: Command,
        stderr: &Stderr,
        (limit, queued): (usize, usize),
        events: &Events,
    ) -> Result<Self, WireError> {
        let (child, output, input) = carry::Process::start(&mut command, stderr)?;
        let (sink, items) = Sink::new(queued);
        let writing = tokio::spawn(write(input, items));
        let (events, running) = (events.clone(), child.clone());
        let reading = tokio::spawn(async move {
            read(link, output, limit, &events).await;
            events.send(In::Closed { link });
            let ended = running.ended().await;
            tracing::info!(link = link.0, status = ?ended.status.and_then(|status| status.code()), "an upstream process has ended");
        });
        Ok(Self { sink, child, writing, reading })
    }

    pub(super) fn send(&self, bytes: Vec<u8>) -> Result<(), Full> {
        self.sink.message(bytes, None)
    }

    /// Closes its input and waits for it to end, and for its end to be told: the runtime may end next.
    pub(super) async fn end(self, grace: Duration) {
        let Self { sink, child, mut writing, reading } = self;
        drop(sink);
        if timeout(grace, &mut writing).await.is_err() {
            writing.abort();
        }
        child.stop(grace).await;
        // A grandchild may hold the pipe.
        let _ = timeout(grace, reading).await;
    }
}

async fn write(output: impl AsyncWrite, mut items: Items) {
    let mut output = pin!(output);
    while let Some(item) = items.recv().await {
        let Item::Message(message) = item else { continue };
        let mut line = Vec::with_capacity(message.bytes.len() + 1);
        write_line(&mut line, &message.bytes);
        let written = async {
            output.write_all(&line).await?;
            output.flush().await
        };
        if let Err(error) = written.await {
            // The reader sees the end.
            tracing::debug!(%error, "an upstream process does not read");
            return;
        }
    }
    let _ = output.shutdown().await;
}

async fn read(link: LinkId, input: impl AsyncRead, limit: usize, events: &Events) {
    let mut input = pin!(input);
    let mut decoder = LineDecoder::new(limit);
    let mut buffer = vec![0; READ];
    let ahead = Arc::new(Semaphore::new(AHEAD));
    loop {
        match input.read(&mut buffer).await {
            Ok(0) => break,
            Ok(read) => decoder.push(buffer.get(..read).unwrap_or_default()),
            Err(error) => {
                tracing::debug!(%error, "the output of an upstream process cannot be read");
                break;
            }
        }
        while let Some(line) = decoder.next() {
            match line {
                Ok(line) => {
                    let bytes = line.to_vec();
                    // Never closed.
                    let Ok(permit) = Arc::clone(&ahead).acquire_owned().await else { return };
                    events.send(In::Upstream { link, call: None, bytes, permit: Some(permit) });
                }
                Err(error) => {
                    tracing::warn!(link = link.0, %error, "a line of an upstream process is skipped");
                    events.send(In::Overlong { link, beginning: decoder.overlong().to_vec() });
                }
            }
        }
    }
    // A last line without an end has still been said.
    match decoder.finish_whole().map(|last| last.map(<[u8]>::to_vec)) {
        Some(Ok(bytes)) => events.send(In::Upstream { link, call: None, bytes, permit: None }),
        Some(Err(_)) => events.send(In::Overlong { link, beginning: decoder.overlong().to_vec() }),
        None => {}
    }
}
