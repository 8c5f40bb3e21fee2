//! A pair of pipes: one message a line. The process at their other end is started when there is something to say to
//! it, and again when it has died and there is more.

use std::{
    fmt, io,
    pin::{Pin, pin},
    sync::Arc,
    time::Duration,
};

use mrtr_core::{
    client::connection::Via,
    framing::{LineDecoder, write_line},
};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    process::Command,
    sync::mpsc,
    task::JoinHandle,
    time::timeout,
};

use super::{
    WireError,
    child::{self, Running, Stderr},
    machine::{Machine, Out},
};

/// Bytes of one read.
const READ: usize = 16 << 10;

type Input = Pin<Box<dyn AsyncRead + Send>>;
type Output = Pin<Box<dyn AsyncWrite + Send>>;

/// Where the pipes come from.
pub(super) enum Source {
    Command(Box<Command>, Stderr),
    /// There is one pair, and no other after it.
    Given(Option<(Input, Output)>),
}

pub(super) struct Pipe {
    pub(super) source: Source,
    pub(super) grace: Duration,
}

/// A process that runs, or two ends of a pipe.
struct Process {
    number: u64,
    writer: mpsc::UnboundedSender<Vec<u8>>,
    reading: JoinHandle<Silent>,
    writing: JoinHandle<io::Result<()>>,
    child: Option<Running>,
}

/// Whether nothing was ever read.
type Silent = bool;

impl Drop for Process {
    fn drop(&mut self) {
        // The child is killed by its own drop.
        self.reading.abort();
        self.writing.abort();
    }
}

impl Pipe {
    /// Whether there is another process when one has died.
    pub(super) const fn restarts(&self) -> bool {
        matches!(self.source, Source::Command(..))
    }

    /// Carries messages, for as long as it is polled.
    pub(super) async fn carry(
        mut self,
        machine: Arc<Machine>,
        mut queue: mpsc::UnboundedReceiver<Out>,
        back: mpsc::WeakUnboundedSender<Out>,
    ) {
        let mut process: Option<Process> = None;
        let mut number = 0;
        while let Some(out) = queue.recv().await {
            match out {
                Out::Request { bytes, .. } | Out::Message { bytes, .. } => {
                    if process.is_none() {
                        number += 1;
                        match self.start(number, &machine, &back) {
                            Ok(started) => process = Some(started),
                            Err(fault) => {
                                machine.died(fault, true);
                                continue;
                            }
                        }
                    }
                    let mut line = Vec::with_capacity(bytes.len() + 1);
                    write_line(&mut line, &bytes);
                    if let Some(process) = &process {
                        // If it cannot be written, the reader will know why.
                        let _ = process.writer.send(line);
                    }
                }
                Out::Died { process: number } => {
                    let Some(mut dead) = process.take_if(|process| process.number == number) else {
                        continue;
                    };
                    let silent = (&mut dead.reading).await.unwrap_or(true);
                    let fault = match &dead.child {
                        Some(child) => WireError::Ended(child.ended().await),
                        None => WireError::ENDED,
                    };
                    machine.died(fault, silent);
                }
                Out::End(done) => {
                    if let Some(process) = process.take() {
                        process.end(self.grace).await;
                        // Whoever still waits need not wait any longer.
                        machine.died(WireError::ENDED, true);
                    }
                    let _ = done.send(());
                }
                // Streams of HTTP.
                Out::Close { .. } | Out::Opened => {}
            }
        }
    }

    fn start(
        &mut self,
        number: u64,
        machine: &Arc<Machine>,
        back: &mpsc::WeakUnboundedSender<Out>,
    ) -> Result<Process, WireError> {
        let (input, output, child): (Input, Output, _) = match &mut self.source {
            Source::Command(command, stderr) => {
                let (child, input, output) = child::spawn(command, stderr)?;
                (Box::pin(input), Box::pin(output), Some(child))
            }
            Source::Given(pipes) => {
                let (input, output) = pipes.take().ok_or(WireError::ENDED)?;
                (input, output, None)
            }
        };
        let (writer, lines) = mpsc::unbounded_channel();
        let (machine, back) = (Arc::clone(machine), back.clone());
        let reading = tokio::spawn(async move {
            let silent = read(input, &machine).await;
            if let Some(back) = back.upgrade() {
                let _ = back.send(Out::Died { process: number });
            }
            silent
        });
        let writing = tokio::spawn(write(output, lines));
        Ok(Process { number, writer, reading, writing, child })
    }
}

impl Process {
    /// Closes the server's input and waits for it to end.
    async fn end(mut self, grace: Duration) {
        // With the last sender the writer ends, and with the writer the input.
        let (closed, _) = mpsc::unbounded_channel();
        self.writer = closed;
        if timeout(grace, &mut self.writing).await.is_err() {
            self.writing.abort();
        }
        if let Some(child) = &self.child {
            child.stop(grace).await;
        }
    }
}

async fn write(output: impl AsyncWrite, mut lines: mpsc::UnboundedReceiver<Vec<u8>>) -> io::Result<()> {
    let mut output = pin!(output);
    while let Some(line) = lines.recv().await {
        output.write_all(&line).await?;
        output.flush().await?;
    }
    output.shutdown().await
}

/// Reads to the end. Whether there was nothing.
async fn read(input: impl AsyncRead, machine: &Machine) -> Silent {
    let mut input = pin!(input);
    let mut decoder = LineDecoder::new(machine.limits.message_bytes);
    let mut buffer = vec![0; READ];
    let mut silent = true;
    loop {
        match input.read(&mut buffer).await {
            Ok(0) => break,
            Ok(read) => decoder.push(buffer.get(..read).unwrap_or_default()),
            Err(error) => {
                tracing::debug!(%error, "the server's output cannot be read");
                break;
            }
        }
        silent = false;
        while let Some(line) = decoder.next() {
            match line {
                Ok(line) => machine.message(Via::Pipe, line),
                Err(_) => machine.overlong(Via::Pipe, decoder.overlong()),
            }
        }
    }
    // A last line without an end has still been said.
    if let Some(Ok(line)) = decoder.finish_whole() {
        machine.message(Via::Pipe, line);
    }
    silent
}

impl fmt::Debug for Pipe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pipe").finish_non_exhaustive()
    }
}
