//! The event streams of an upstream, over all connections that they are read from.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, StatusCode, header};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use mrtr_core::{
    Limits,
    framing::EventStreamDecoder,
    http::BodyPlan,
    jsonrpc::{Message, RequestId, admit},
    wire::Era,
};
use tokio::time::sleep;

use super::{Shared, plan};
use crate::client::WireError;

/// A stream is taken up again so often without an event in between.
const RESUMES: u32 = 5;

/// The pause before that, unless the server says another one.
const RETRY: Duration = Duration::from_secs(1);

/// However long the server says.
const LONGEST_RETRY: Duration = Duration::from_secs(30);

/// However short: a server that ends each stream at once must not keep this busy.
const SHORTEST_RETRY: Duration = Duration::from_millis(100);

/// An event stream, over all connections that it is read from.
pub(super) struct Stream {
    call: Option<i64>,
    last_event: Vec<u8>,
    pub(super) retry: Duration,
    events: u64,
}

impl Stream {
    pub(super) const fn new(call: Option<i64>) -> Self {
        Self { call, last_event: Vec::new(), retry: RETRY, events: 0 }
    }

    /// Reads to its end; whether the reply has come.
    pub(super) async fn read(&mut self, shared: &Shared, mut body: Incoming) -> Result<bool, WireError> {
        let limit = shared.limits.message_bytes;
        let mut decoder = EventStreamDecoder::new(limit);
        loop {
            while let Some(event) = decoder.next() {
                self.events += 1;
                let event = event.map_err(|_| WireError::TooLarge { limit })?;
                if event.is_message() && !event.data.is_empty() {
                    let bytes = event.data.to_vec();
                    let last = self.is_reply(&bytes, &shared.limits);
                    shared.tell(self.call, bytes).await;
                    if last {
                        return Ok(true);
                    }
                }
            }
            if !decoder.last_event_id().is_empty() {
                self.last_event = decoder.last_event_id().into();
            }
            self.retry = decoder.retry().unwrap_or(self.retry).clamp(SHORTEST_RETRY, LONGEST_RETRY);
            match body.frame().await {
                None => return Ok(false),
                Some(Err(error)) => return Err(WireError::Broken { cause: Some(error.into()) }),
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        decoder.push(&data);
                    }
                }
            }
        }
    }

    fn is_reply(&self, data: &[u8], limits: &Limits) -> bool {
        let Some(call) = self.call.map(RequestId::from) else { return false };
        match admit(data, limits) {
            Ok(Message::Response(response)) => response.id.is_none_or(|id| id == call),
            Ok(Message::Request(_) | Message::Notification(_)) => false,
            Err(refused) => refused.response_to == Some(call),
        }
    }
}

impl Shared {
    pub(super) fn resumable(&self, stream: &Stream) -> bool {
        self.era == Era::Legacy && !stream.last_event.is_empty()
    }

    /// Reads a stream by GET, and again whenever it has ended, until it brings the reply, or nothing any more.
    pub(super) async fn take_up(&self, stream: &mut Stream) {
        let mut empty = 0;
        while empty < RESUMES {
            let Some(mut headers) = self.of_session() else { return };
            headers.insert(header::ACCEPT, HeaderValue::from_static("text/event-stream"));
            if let Ok(last) = HeaderValue::from_bytes(&stream.last_event)
                && !last.is_empty()
            {
                headers.insert(HeaderName::from_static("last-event-id"), last);
            }
            let Ok(response) = self.url.send(Method::GET, headers, Bytes::new()).await else { return };
            if response.status() != StatusCode::OK || plan(&response) != BodyPlan::Events {
                return;
            }
            let before = stream.events;
            if let Ok(true) = stream.read(self, response.into_body()).await {
                return;
            }
            empty = if stream.events > before { 0 } else { empty + 1 };
            sleep(stream.retry).await;
        }
    }
}
