//! What the embedder sends: the handshake, requests, answers, cancellations, notifications.

use alloc::vec::Vec;

use super::{
    AskId, CallId, Carries, ClientSession, Closed,
    session::{Call, Phase},
};
use crate::{
    client::text,
    error::RpcError,
    jsonrpc::{Json, write},
    time::Timestamp,
    wire::{AskingMethod, key},
};

/// Why a request or a notification is not sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// The handshake is not done.
    #[error("the session is not open yet")]
    NotOpen,
    /// The session is over.
    #[error("the session is over")]
    Closed,
    /// The parameters are no object.
    #[error("params is not an object")]
    NotAnObject,
    /// Too many requests are under way.
    #[error("more than {limit} requests at a time (ClientConfig::calls)")]
    TooManyCalls {
        /// The bound, in requests.
        limit: usize,
    },
    /// The message would be over the limit.
    #[error("message of {bytes} bytes is over the limit of {limit} (Limits::message_bytes)")]
    TooLarge {
        /// Bytes of the message.
        bytes: usize,
        /// The bound, in bytes.
        limit: usize,
    },
}

/// An ask was answered already, or was withdrawn: nothing is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no such ask waits for an answer")]
#[allow(clippy::exhaustive_structs)]
pub struct AskGone;

impl ClientSession {
    /// Begins the handshake. Does nothing if it was begun before.
    pub fn open(&mut self, now: Timestamp) {
        if !matches!(self.phase, Phase::New) {
            return;
        }
        let Some(version) = self.config.best() else {
            return self.close(Closed::Malformed("cannot be asked for: no legacy version is configured"));
        };
        let call = self.take_call();
        self.phase = Phase::Opening(call);
        let mut bytes = head(call, "initialize");
        bytes.extend_from_slice(b",\"params\":");
        self.config.write_opening(version, &mut bytes);
        bytes.push(b'}');
        self.calls.insert(call, Call::new(now, false));
        self.transmit(Carries::Request(call), bytes);
    }

    /// Sends a request. `params` goes out as the text it is, without line breaks.
    ///
    /// # Errors
    ///
    /// If it cannot be sent.
    pub fn request(
        &mut self,
        method: &str,
        params: Option<Json<'_>>,
        now: Timestamp,
    ) -> Result<CallId, RequestError> {
        self.send_request(method, params, false, now)
    }

    /// Sends a request that wants progress: `params._meta.progressToken` is written, its own id; one that is there
    /// is replaced. All else goes out as it is.
    ///
    /// # Errors
    ///
    /// If it cannot be sent.
    pub fn request_with_progress(
        &mut self,
        method: &str,
        params: Option<Json<'_>>,
        now: Timestamp,
    ) -> Result<CallId, RequestError> {
        self.send_request(method, params, true, now)
    }

    fn send_request(
        &mut self,
        method: &str,
        params: Option<Json<'_>>,
        progress: bool,
        now: Timestamp,
    ) -> Result<CallId, RequestError> {
        self.may_send(params)?;
        if self.calls.len() >= self.config.calls {
            return Err(RequestError::TooManyCalls { limit: self.config.calls });
        }
        let call = self.take_call();
        let mut bytes = head(call, method);
        if progress {
            bytes.extend_from_slice(b",\"params\":");
            write_with_token(params.unwrap_or(Json::EMPTY_OBJECT), call, &mut bytes);
        } else if let Some(params) = params {
            bytes.extend_from_slice(b",\"params\":");
            write::one_line(&mut bytes, params.as_str());
        }
        bytes.push(b'}');
        self.fits(&bytes)?;
        let may_ask = AskingMethod::from_name(method).is_some();
        self.calls.insert(call, Call { may_ask, ..Call::new(now, progress) });
        self.transmit(Carries::Request(call), bytes);
        Ok(call)
    }

    /// Sends a notification: changed roots, or progress of an ask that carries a token.
    ///
    /// # Errors
    ///
    /// If it cannot be sent.
    pub fn notify(&mut self, method: &str, params: Option<Json<'_>>) -> Result<(), RequestError> {
        self.may_send(params)?;
        let mut bytes = b"{\"jsonrpc\":\"2.0\",\"method\":".to_vec();
        write::string(&mut bytes, method);
        if let Some(params) = params {
            bytes.extend_from_slice(b",\"params\":");
            write::one_line(&mut bytes, params.as_str());
        }
        bytes.push(b'}');
        self.fits(&bytes)?;
        self.transmit(Carries::Notification, bytes);
        Ok(())
    }

    /// Answers an ask: `result` goes out as the text it is, without line breaks. It is not checked.
    ///
    /// # Errors
    ///
    /// If the ask does not wait any more.
    pub fn answer(&mut self, ask: AskId, result: Json<'_>, now: Timestamp) -> Result<(), AskGone> {
        let waiting = self.asks.remove(&ask).ok_or(AskGone)?;
        let mut bytes = Vec::new();
        write::result_head(&mut bytes, &waiting.id);
        write::one_line(&mut bytes, result.as_str());
        bytes.push(b'}');
        self.transmit(Carries::Reply(waiting.call), bytes);
        self.settle(now);
        Ok(())
    }

    /// Answers an ask with an error: `-1` if somebody refused to have the model asked, another code if
    /// nobody could be asked. A person who declines an elicitation gives an [`answer`](Self::answer).
    ///
    /// # Errors
    ///
    /// If the ask does not wait any more.
    pub fn refuse(&mut self, ask: AskId, error: &RpcError, now: Timestamp) -> Result<(), AskGone> {
        let waiting = self.asks.remove(&ask).ok_or(AskGone)?;
        self.send_error(&waiting.id, waiting.call, error);
        self.settle(now);
        Ok(())
    }

    /// Gives a request up. There is no event for it; a response that still comes is ignored. If the request
    /// was not taken by [`poll_transmit`](Self::poll_transmit) yet, nothing of it is sent.
    pub fn cancel(&mut self, call: CallId, reason: &str, now: Timestamp) {
        let opening = matches!(&self.phase, Phase::Opening(opening) if *opening == call);
        if opening || self.calls.remove(&call).is_none() {
            return;
        }
        self.send_cancellation(call, reason);
        self.settle(now);
    }

    pub(super) fn send_cancellation(&mut self, call: CallId, reason: &str) {
        let carries = Carries::Request(call);
        if let Some(unsent) = self.out.iter().position(|transmit| transmit.carries == carries) {
            self.out.remove(unsent);
            return;
        }
        let mut bytes = Vec::new();
        write::cancelled(&mut bytes, &call.request_id(), reason);
        self.transmit(Carries::Notification, bytes);
    }

    fn may_send(&self, params: Option<Json<'_>>) -> Result<(), RequestError> {
        match self.phase {
            Phase::New | Phase::Opening(_) => Err(RequestError::NotOpen),
            Phase::Closed => Err(RequestError::Closed),
            Phase::Open(_) if params.is_some_and(|params| !params.is_object()) => {
                Err(RequestError::NotAnObject)
            }
            Phase::Open(_) => Ok(()),
        }
    }

    const fn fits(&self, message: &[u8]) -> Result<(), RequestError> {
        let (bytes, limit) = (message.len(), self.config.limits.message_bytes);
        if bytes > limit { Err(RequestError::TooLarge { bytes, limit }) } else { Ok(()) }
    }
}

impl Call {
    const fn new(now: Timestamp, progress: bool) -> Self {
        Self { may_ask: false, progress, sent: now, heard: now, paused: None }
    }
}

/// `{"jsonrpc":"2.0","id":…,"method":…`
fn head(call: CallId, method: &str) -> Vec<u8> {
    let mut bytes = b"{\"jsonrpc\":\"2.0\",\"id\":".to_vec();
    write::integer(&mut bytes, call.0);
    bytes.extend_from_slice(b",\"method\":");
    write::string(&mut bytes, method);
    bytes
}

/// Appends the parameters with this progress token, and all else as it was.
fn write_with_token(params: Json<'_>, token: CallId, out: &mut Vec<u8>) {
    let mut meta = Vec::new();
    out.push(b'{');
    for member in text::members(params).into_iter().flatten() {
        if member.is_called("_meta") {
            for inner in text::members(member.value).into_iter().flatten() {
                if !inner.is_called(key::PROGRESS_TOKEN) {
                    inner.write(&mut meta);
                    meta.push(b',');
                }
            }
        } else {
            member.write(out);
            out.push(b',');
        }
    }
    out.extend_from_slice(b"\"_meta\":{");
    out.extend_from_slice(&meta);
    out.extend_from_slice(b"\"progressToken\":");
    write::integer(out, token.0);
    out.extend_from_slice(b"}}");
}
