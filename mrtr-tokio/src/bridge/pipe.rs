//! The front for a host at the other end of a pair of pipes.

use std::{future::Future, io, pin::pin, sync::Arc};

use mrtr_core::http::ReplyClass;
use mrtr_core::{
    ErrorCode, RpcError,
    framing::{LineDecoder, write_line},
    jsonrpc::write_error,
};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    sync::{Semaphore, oneshot},
    time::timeout,
};

use super::{
    Bridge,
    driver::In,
    sink::{Item, Items, Sink},
};
use crate::server::Identity;

/// Bytes of one read.
const READ: usize = 16 << 10;

/// Messages of a host that wait for the bridge to look at them.
const AHEAD: usize = 64;

/// Tells the bridge that the host is gone, however this ends.
struct Gone<'b>(&'b Bridge, mrtr_core::bridge::HostId);

impl Drop for Gone<'_> {
    fn drop(&mut self) {
        self.0.tell(In::Gone { host: self.1 });
    }
}

pub(super) async fn serve(
    bridge: &Bridge,
    identity: Identity,
    input: impl AsyncRead,
    output: impl AsyncWrite + Send + 'static,
    shutdown: impl Future<Output = ()>,
) -> io::Result<()> {
    let host = bridge.host();
    let limits = bridge.limits();
    let (sink, items) = Sink::new(bridge.queued());
    let mut writing = tokio::spawn(write(output, items));
    bridge.tell(In::Pipe { host, identity, sink: sink.clone() });
    let gone = Gone(bridge, host);
    let ahead = Arc::new(Semaphore::new(AHEAD));
    let line = async |line: &[u8]| {
        let permit = Arc::clone(&ahead).acquire_owned().await.ok();
        bridge.tell(In::Line { host, bytes: line.to_vec(), permit });
    };
    let mut decoder = LineDecoder::new(limits.message_bytes);
    let mut buffer = vec![0; READ];
    let (mut input, mut shutdown) = (pin!(input), pin!(shutdown));
    let reading = loop {
        let read = tokio::select! {
            biased;
            () = &mut shutdown => return Ok(()),
            written = &mut writing => return written.unwrap_or_else(|_| Err(io::ErrorKind::BrokenPipe.into())),
            read = input.read(&mut buffer) => read,
        };
        match read {
            Ok(0) => {
                // A peer that ends without a newline has still said its last line.
                if let Some(Ok(last)) = decoder.finish() {
                    line(last).await;
                }
                break Ok(());
            }
            Ok(read) => decoder.push(buffer.get(..read).unwrap_or_default()),
            Err(error) => break Err(error),
        }
        while let Some(found) = decoder.next() {
            match found {
                Ok(found) => line(found).await,
                Err(error) => {
                    let text = format!("Invalid request: {error}");
                    let mut bytes = Vec::new();
                    write_error(&mut bytes, None, &RpcError::new(ErrorCode::INVALID_REQUEST, text));
                    let _ = sink.message(bytes, Some(ReplyClass::InvalidRequest));
                }
            }
        }
    };
    // What is in hand may still be answered.
    let (told, everything) = oneshot::channel();
    bridge.tell(In::Finished { host, told });
    if timeout(bridge.grace(), everything).await.is_err() {
        tracing::warn!("requests are cut off at the end of the grace");
    }
    drop((gone, sink));
    let written = timeout(bridge.grace(), writing).await;
    reading?;
    match written {
        Ok(Ok(written)) => written,
        Ok(Err(_)) | Err(_) => Err(io::ErrorKind::TimedOut.into()),
    }
}

async fn write(output: impl AsyncWrite, mut items: Items) -> io::Result<()> {
    let mut output = pin!(output);
    while let Some(item) = items.recv().await {
        let Item::Message(message) = item else { continue };
        let mut line = Vec::with_capacity(message.bytes.len() + 1);
        write_line(&mut line, &message.bytes);
        output.write_all(&line).await?;
        if items.is_empty() {
            output.flush().await?;
        }
    }
    output.flush().await
}
