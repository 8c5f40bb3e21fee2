//! Over a pair of pipes: one case, until the client leaves or the case wants the server to die.

use std::{collections::VecDeque, io, pin::pin};

use mrtr_core::{
    framing::LineDecoder,
    testkit::{Carrier, Case, End, Reply, Step},
};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    sync::mpsc,
};

use super::Watch;

/// Bytes of a line that are taken: more than any client has a reason to send.
const LINE: usize = 16 << 20;

/// Lines that wait while a reply hangs. A client that writes more than these is left waiting itself.
const WAITING: usize = 256;

/// Why the server is at its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums)]
pub enum Ended {
    /// The client has closed its pipe, or reads no more.
    Left,
    /// The case wants the server to die; the process should exit at once, and not with 0.
    Died,
}

/// Serves one case, a request after the other. What has no end of its own goes on until the next line comes.
///
/// `watch` is told what the lines show the client to do wrong.
///
/// # Errors
///
/// If the input cannot be read.
pub async fn stdio(
    case: &'static Case,
    input: impl AsyncRead + Send + 'static,
    output: impl AsyncWrite,
    watch: impl Watch,
) -> io::Result<Ended> {
    let (sender, receiver) = mpsc::channel(WAITING);
    let reading = tokio::spawn(read(input, sender));
    let mut server = Server { lines: receiver, waiting: VecDeque::new(), left: false, output: pin!(output) };
    let ended = loop {
        let Some(line) = server.line().await else { break Ended::Left };
        let reaction = case.receive(Carrier::Stdio, &line);
        if let Some(fault) = reaction.fault {
            watch.fault(case.name(), fault);
        }
        let Some(reply) = reaction.reply else { continue };
        match server.carry(&reply).await {
            Ok(()) if reply.end == End::Cut => break Ended::Died,
            Ok(()) => {}
            Err(_) => break Ended::Left,
        }
    };
    reading.abort();
    match reading.await {
        Ok(read) => read.map(|()| ended),
        Err(_) => Ok(ended),
    }
}

/// A server that hangs in one reply still sees that the client leaves.
async fn read(input: impl AsyncRead, lines: mpsc::Sender<Vec<u8>>) -> io::Result<()> {
    let mut input = pin!(input);
    let mut decoder = LineDecoder::new(LINE);
    let mut buffer = vec![0; 16 << 10];
    loop {
        let read = input.read(&mut buffer).await?;
        if read == 0 {
            return Ok(());
        }
        decoder.push(buffer.get(..read).unwrap_or_default());
        while let Some(line) = decoder.next() {
            // What is too long is no message, and the case says so.
            if lines.send(line.map_or_else(|_| Vec::new(), <[u8]>::to_vec)).await.is_err() {
                return Ok(());
            }
        }
    }
}

struct Server<W> {
    lines: mpsc::Receiver<Vec<u8>>,
    /// Came while a reply was carried.
    waiting: VecDeque<Vec<u8>>,
    left: bool,
    output: W,
}

impl<W: AsyncWrite> Server<std::pin::Pin<&mut W>> {
    async fn line(&mut self) -> Option<Vec<u8>> {
        match self.waiting.pop_front() {
            None if self.left => None,
            None => self.lines.recv().await,
            line => line,
        }
    }

    async fn carry(&mut self, reply: &Reply) -> io::Result<()> {
        for step in &reply.steps {
            self.step(step).await?;
        }
        if let End::Endless(steps) = &reply.end {
            let before = self.waiting.len();
            for step in steps.iter().cycle() {
                self.step(step).await?;
                if self.waiting.len() > before {
                    break;
                }
            }
        }
        Ok(())
    }

    async fn step(&mut self, step: &Step) -> io::Result<()> {
        match step {
            Step::Bytes(bytes) => {
                self.output.write_all(bytes).await?;
                self.output.flush().await
            }
            Step::Pause(pause) => {
                let mut pause = pin!(tokio::time::sleep(*pause));
                loop {
                    tokio::select! {
                        () = &mut pause => return Ok(()),
                        line = self.lines.recv(), if self.waiting.len() < WAITING => match line {
                            Some(line) => self.waiting.push_back(line),
                            // The client has left: nobody waits for the rest.
                            None => {
                                self.left = true;
                                return Err(io::ErrorKind::BrokenPipe.into());
                            }
                        },
                    }
                }
            }
        }
    }
}
