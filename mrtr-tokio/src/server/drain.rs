//! What nobody wants is read on for a moment.
//!
//! A request that is refused by its head, or in the middle of its body, is answered before its sender has looked. If the
//! connection is closed then, what the sender still writes meets a closed door, and the reply is lost with it: it reads
//! "connection reset" where it should read which bound its message is over.

use std::{
    pin::{Pin, pin},
    task::{Context, Poll},
    time::Duration,
};

use bytes::Buf;
use http::{Request, Response, StatusCode, header, request::Parts};
use http_body::{Body, Frame, SizeHint};

use super::ReplyBody;

/// How long, and how much. Nothing of it is kept.
const WITHIN: Duration = Duration::from_secs(1);
const BYTES: u64 = 16 << 20;

/// A request's body, of which is known how far it was read.
pub(crate) struct Watched<'b, B> {
    body: Pin<&'b mut B>,
    /// Its sender waits for `100 Continue`, which it is told as soon as the body is looked at.
    waits: bool,
    begun: bool,
    /// Nothing comes any more, and it is not to be asked again.
    over: bool,
}

impl<'b, B: Body> Watched<'b, B> {
    pub(crate) fn new(parts: &Parts, body: Pin<&'b mut B>) -> Self {
        Self { body, waits: parts.headers.contains_key(header::EXPECT), begun: false, over: false }
    }

    /// Reads on after this status was decided on, unless it was too slow already; who has not been told to send is not told
    /// so now.
    pub(crate) async fn drain(mut self, told: StatusCode) {
        let hopeless = self.size_hint().lower() > BYTES;
        let silent = self.waits && !self.begun;
        if hopeless || silent || self.is_end_stream() || told == StatusCode::REQUEST_TIMEOUT {
            return;
        }
        let reading = async {
            let mut left = BYTES;
            while let Some(Ok(frame)) = std::future::poll_fn(|cx| Pin::new(&mut self).poll_frame(cx)).await {
                let read = frame.data_ref().map_or(0, Buf::remaining);
                match left.checked_sub(read as u64) {
                    Some(rest) => left = rest,
                    None => break,
                }
            }
        };
        let _ = tokio::time::timeout(WITHIN, reading).await;
    }
}

impl<B: Body> Body for Watched<'_, B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        if self.over {
            return Poll::Ready(None);
        }
        self.begun = true;
        let polled = self.body.as_mut().poll_frame(cx);
        self.over = matches!(polled, Poll::Ready(None | Some(Err(_))));
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.over || self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// The response to a request that was not read at all.
pub(crate) async fn unread<B: Body>(
    request: Request<B>,
    response: Response<ReplyBody>,
) -> Response<ReplyBody> {
    let (parts, body) = request.into_parts();
    Watched::new(&parts, pin!(body)).drain(response.status()).await;
    response
}
