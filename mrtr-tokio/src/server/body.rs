//! The body of a response: bytes that are known, or an attempt that is polled as the peer reads.

use std::{
    convert::Infallible,
    fmt,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use mrtr_core::http::ReplyHead;
use tokio::{runtime::Handle, sync::mpsc};

use crate::drive::Committing;

/// The body of a response.
///
/// Dropping it before its end cancels the request, unless the handler's commit has begun: that is
/// carried on without a reader (A12, B6). A claim on the request's state is given back (B5).
pub struct ReplyBody(Kind);

enum Kind {
    Whole(Option<Bytes>),
    Stream { first: Option<Bytes>, producer: Producer },
}

impl ReplyBody {
    pub(crate) fn empty() -> Self {
        Self(Kind::Whole(None))
    }

    pub(crate) fn whole(bytes: Vec<u8>) -> Self {
        Self(Kind::Whole((!bytes.is_empty()).then(|| bytes.into())))
    }

    pub(crate) fn stream(first: Vec<u8>, producer: Producer) -> Self {
        Self(Kind::Stream { first: Some(first.into()), producer })
    }
}

impl http_body::Body for ReplyBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let bytes = match &mut self.0 {
            Kind::Whole(bytes) => bytes.take(),
            Kind::Stream { first, .. } if first.is_some() => first.take(),
            Kind::Stream { producer, .. } => match producer.poll_next(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(output) => output.map(|output| output.bytes.into()),
            },
        };
        Poll::Ready(bytes.map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        matches!(self.0, Kind::Whole(None))
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Kind::Whole(bytes) => {
                let length = bytes.as_ref().map_or(0, Bytes::len);
                SizeHint::with_exact(u64::try_from(length).unwrap_or(u64::MAX))
            }
            Kind::Stream { .. } => SizeHint::default(),
        }
    }
}

impl fmt::Debug for ReplyBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Whole(bytes) => write!(f, "ReplyBody({} bytes)", bytes.as_ref().map_or(0, Bytes::len)),
            Kind::Stream { .. } => f.write_str("ReplyBody(event stream)"),
        }
    }
}

/// A piece of a response. The first one has a head.
pub(crate) struct Output {
    pub(crate) head: Option<ReplyHead>,
    pub(crate) bytes: Vec<u8>,
    /// Nothing comes after it.
    pub(crate) last: bool,
}

/// A future that writes a response, polled by whoever wants the next piece of it: no task of its own, so a
/// peer that does not read holds the handler back instead of filling memory.
pub(crate) struct Producer {
    future: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    output: mpsc::Receiver<Output>,
    committing: Arc<Committing>,
    runtime: Handle,
}

impl Producer {
    pub(crate) fn new(
        future: impl Future<Output = ()> + Send + 'static,
        output: mpsc::Receiver<Output>,
        committing: Arc<Committing>,
    ) -> Self {
        Self { future: Some(Box::pin(future)), output, committing, runtime: Handle::current() }
    }

    pub(crate) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Output>> {
        if let Some(future) = &mut self.future
            && future.as_mut().poll(cx).is_ready()
        {
            self.future = None;
        }
        self.output.poll_recv(cx)
    }
}

impl Drop for Producer {
    fn drop(&mut self) {
        if let Some(future) = self.future.take()
            && self.committing.is_on()
        {
            tracing::debug!("a connection was closed during a commit, which goes on, or under a claim");
            self.committing.leave();
            self.output.close();
            self.runtime.spawn(future);
        }
    }
}
