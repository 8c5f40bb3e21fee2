//! An ask: a future of the answer.

use alloc::{string::String, sync::Arc};
use core::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};

use super::shared::Shared;
use crate::{
    error::{ErrorCode, RpcError},
    jsonrpc::{Json, write},
    tape::{Resolution, Ticket},
};

/// Why an ask has no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AskError {
    /// Optional, and the client cannot answer it (G-13).
    #[error("the client cannot answer this")]
    Unavailable,
    /// The content did not fit three times (G-18), or does not decode into the type asked for; the reason, in
    /// a sentence for the person.
    #[error("the answer does not fit: {0}")]
    Invalid(String),
    /// The attempt was over before the answer came: only asks in detached tasks see it.
    #[error("the request is over")]
    Ended,
    /// A legacy client refused with an error of its own (R-237, R-238).
    #[error("the client refused: {message} ({code})")]
    Refused {
        /// Its code.
        code: ErrorCode,
        /// Its message.
        message: String,
    },
}

impl From<AskError> for RpcError {
    /// What a handler's `?` makes of it: `-32602` for a client at fault, else `-32603`; a refusal is named in
    /// `data.cause` (BT-6).
    fn from(error: AskError) -> Self {
        match &error {
            AskError::Invalid(_) => Self::invalid_params(alloc::format!("Invalid params: {error}")),
            AskError::Unavailable | AskError::Ended => {
                Self::internal(alloc::format!("Internal error: {error}"))
            }
            AskError::Refused { code, message } => {
                let mut data = alloc::format!("{{\"cause\":{{\"code\":{code},\"message\":").into_bytes();
                write::string(&mut data, message);
                data.extend_from_slice(b"}}");
                Self::internal("Internal error: the client refused a question")
                    .with_raw_data(String::from_utf8(data).unwrap_or_default())
            }
        }
    }
}

/// The future of an answer. It was registered when it was made, not when it is first polled (A1): asks made
/// side by side share a round. Dropping it withdraws the ask.
///
/// To wait for the first of several, use [`race`](super::race) or a `select!` that is told `biased;`, and never race an ask
/// against I/O or a timer: which of them wins would differ between two runs of the same path.
#[must_use = "an ask that nobody awaits is withdrawn"]
pub struct Ask<T> {
    pub(super) shared: Arc<Shared>,
    pub(super) ticket: Ticket,
    decode: fn(&str) -> Result<T, String>,
    /// For asks whose resolution has no text.
    passed: fn() -> Option<T>,
}

impl<T> Ask<T> {
    pub(super) fn new(shared: Arc<Shared>, ticket: Ticket, decode: fn(&str) -> Result<T, String>) -> Self {
        Self { shared, ticket, decode, passed: || None }
    }

    pub(super) const fn passing(mut self, passed: fn() -> Option<T>) -> Self {
        self.passed = passed;
        self
    }

    /// Go on without it if the client did not declare that it can answer: the ask then resolves to
    /// [`AskError::Unavailable`]. Without this, such a request ends with `-32021` (G-13).
    pub fn optional(self) -> Self {
        self.shared.lock().tape.set_optional(self.ticket, true);
        self
    }

    /// Takes no answer that comes without a state (A7): for questions whose asking matters, like consent to
    /// something concrete. [`confirm`](super::Ctx::confirm) and [`elicit_url`](super::Ctx::elicit_url) are so
    /// always.
    pub fn solicited(self) -> Self {
        self.shared.lock().tape.set_solicited(self.ticket);
        self
    }

    /// Journals what `project` makes of the answer instead of the answer itself (A11): the state stays small,
    /// and the rest of the answer is not in it. Every run has to ask so: where one finds a projection and asks for the
    /// answer itself, after a deploy say, the ask resolves to [`AskError::Invalid`].
    pub fn keep<U, F>(self, project: F) -> Kept<T, U, F>
    where
        U: serde::Serialize + serde::de::DeserializeOwned,
        F: FnOnce(T) -> U,
    {
        Kept { ask: self, project: Some(project) }
    }

    fn resolve(&self, resolution: &Resolution) -> Result<T, AskError> {
        match resolution {
            Resolution::Answer(text) => (self.decode)(text).map_err(AskError::Invalid),
            Resolution::Passed => (self.passed)().ok_or(AskError::Ended),
            Resolution::Unavailable => Err(AskError::Unavailable),
            Resolution::Invalid(reason) => Err(AskError::Invalid(String::from(&**reason))),
            Resolution::Refused { code, message } => {
                Err(AskError::Refused { code: *code, message: String::from(&**message) })
            }
            Resolution::Ended => Err(AskError::Ended),
        }
    }
}

impl<T> Future for Ask<T> {
    type Output = Result<T, AskError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.shared.take(self.ticket, cx.waker()) {
            Some(resolution) => Poll::Ready(self.resolve(&resolution)),
            None => Poll::Pending,
        }
    }
}

impl<T> Drop for Ask<T> {
    fn drop(&mut self) {
        self.shared.withdraw(self.ticket);
    }
}

impl<T> core::fmt::Debug for Ask<T> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_tuple("Ask").field(&self.ticket).finish()
    }
}

/// The future of what is kept of an answer; see [`Ask::keep`].
#[must_use = "an ask that nobody awaits is withdrawn"]
#[derive(Debug)]
pub struct Kept<T, U, F: FnOnce(T) -> U> {
    ask: Ask<T>,
    project: Option<F>,
}

// Nothing in it is ever pinned.
impl<T, U, F: FnOnce(T) -> U> Unpin for Kept<T, U, F> {}

impl<T, U, F> Future for Kept<T, U, F>
where
    U: serde::Serialize + serde::de::DeserializeOwned,
    F: FnOnce(T) -> U,
{
    type Output = Result<U, AskError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let Some(resolution) = this.ask.shared.take(this.ask.ticket, cx.waker()) else {
            return Poll::Pending;
        };
        let unfit = |error: serde_json::Error| AskError::Invalid(unfit(&error));
        if let Resolution::Answer(text) = &resolution
            && let Some(kept) = text.strip_prefix('k')
        {
            return Poll::Ready(Json::trusted(kept).decode().map_err(unfit));
        }
        let result = this.ask.resolve(&resolution).and_then(|answer| {
            let project = this.project.take().ok_or(AskError::Ended)?;
            let text = serde_json::to_string(&project(answer)).map_err(unfit)?;
            this.ask.shared.lock().tape.keep(this.ask.ticket, &text);
            // Read back what was written, so that the first run sees what every later one will see.
            serde_json::from_str(&text).map_err(unfit)
        });
        Poll::Ready(result)
    }
}

/// Why an answer that fits its form is not what the handler reads it as. serde's own text quotes the value, and no
/// answer is ever in an error.
pub(super) fn unfit(error: &serde_json::Error) -> String {
    alloc::format!("not of the type that the handler reads (at byte {})", error.column())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_answer_is_in_the_error_that_says_it_does_not_fit() {
        for answer in [r#""hunter2""#, r#"{"hunter2":1}"#, r#"["hunter2"]"#] {
            let error = serde_json::from_str::<u8>(answer).err();
            let text = error.as_ref().map(unfit).unwrap_or_default();
            assert!(text.starts_with("not of the type") && !text.contains("hunter2"), "{text}");
        }
    }
}
