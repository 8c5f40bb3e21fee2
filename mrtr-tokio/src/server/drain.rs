//! What nobody wants is read on for a moment.
//!
//! A request that is refused by its head, or in the middle of its body, is answered before its sender has looked. If the
//! connection is closed then, what the sender still writes meets a closed door, and the reply is lost with it: it reads
//! "connection reset" where it should read which bound its message is over.

use std::{pin::Pin, time::Duration};

use http::{StatusCode, header, request::Parts};

/// How long, and how much. Nothing of it is kept.
const WITHIN: Duration = Duration::from_secs(1);
const BYTES: u64 = 16 << 20;

/// Whether this sender is going to send its body whatever it is told: who waits for `100 Continue` must not be told to.
#[derive(Clone, Copy)]
pub(crate) struct Sends(bool);

impl Sends {
    pub(crate) fn of(parts: &Parts) -> Self {
        Self(!parts.headers.contains_key(header::EXPECT))
    }

    /// Reads on, unless it was too slow already.
    pub(crate) async fn drain<B>(self, mut body: Pin<&mut B>, told: StatusCode)
    where
        B: http_body::Body,
        B::Data: bytes::Buf,
    {
        let hopeless = body.size_hint().lower() > BYTES;
        if !self.0 || hopeless || body.is_end_stream() || told == StatusCode::REQUEST_TIMEOUT {
            return;
        }
        let reading = async {
            let mut left = BYTES;
            while let Some(Ok(frame)) = std::future::poll_fn(|cx| body.as_mut().poll_frame(cx)).await {
                let read = frame.data_ref().map_or(0, bytes::Buf::remaining);
                match left.checked_sub(read as u64) {
                    Some(rest) => left = rest,
                    None => break,
                }
            }
        };
        let _ = tokio::time::timeout(WITHIN, reading).await;
    }
}
