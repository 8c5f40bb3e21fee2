//! A connection that gives up on a peer that takes nothing.

use std::{
    future::Future,
    io,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Sleep, sleep},
};

/// Fails a write that makes no progress for a while. Reading is not watched here: a peer that waits for a
/// reply has nothing to say, and the head and the body of a request have timeouts of their own.
pub(super) struct Patient<S> {
    inner: S,
    patience: Duration,
    /// Runs while a write waits.
    stalled: Option<Pin<Box<Sleep>>>,
}

impl<S> Patient<S> {
    pub(super) const fn new(inner: S, patience: Duration) -> Self {
        Self { inner, patience, stalled: None }
    }

    fn watch<T>(&mut self, cx: &mut Context<'_>, polled: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if polled.is_ready() {
            self.stalled = None;
            return polled;
        }
        let timer = self.stalled.get_or_insert_with(|| Box::pin(sleep(self.patience)));
        ready!(timer.as_mut().poll(cx));
        tracing::debug!("a peer that takes nothing is given up");
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Patient<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(cx, buf)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Patient<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.inner).poll_write(cx, buf);
        self.watch(cx, polled)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.inner).poll_flush(cx);
        self.watch(cx, polled)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.inner).poll_shutdown(cx);
        self.watch(cx, polled)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.inner).poll_write_vectored(cx, bufs);
        self.watch(cx, polled)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _, duplex},
        time::Instant,
    };

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn only_a_peer_that_takes_nothing_is_given_up() {
        let (ours, mut theirs) = duplex(10);
        let mut patient = Patient::new(ours, Duration::from_secs(30));
        let started = Instant::now();
        // A slow peer, a byte every 20 seconds: each byte is progress.
        let writing = tokio::spawn(async move {
            let written = patient.write_all(&[7; 15]).await;
            (written, patient)
        });
        for _ in 0..5 {
            sleep(Duration::from_secs(20)).await;
            theirs.read_u8().await.unwrap();
        }
        let (written, mut patient) = writing.await.unwrap();
        written.unwrap();
        // It may be silent for as long as it likes while nothing is written.
        sleep(Duration::from_secs(1_000)).await;
        let stalled = Instant::now();
        let failed = patient.write_all(&[7; 15]).await.unwrap_err();
        assert_eq!(failed.kind(), io::ErrorKind::TimedOut);
        assert_eq!(stalled.elapsed(), Duration::from_secs(30));
        assert!(started.elapsed() > Duration::from_secs(1_000));
    }
}
