//! Asking in the best way the client can answer: a form, else a url, else nothing (B-50, G-13).

use alloc::{format, string::String, sync::Arc};
use core::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};

use super::{Ask, AskError, Ctx, shared::Shared};
use crate::{
    form::{Elicited, Form},
    wire::Action,
};

/// How a person was reached; see [`Ctx::elicit_or_url`].
#[derive(Clone, Copy, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums)]
pub enum Reached<T> {
    /// Through the form.
    Form(Elicited<T>),
    /// Through the url, whose page does the asking: accept is consent to open it (R-137).
    Url(Action),
}

impl<T> core::fmt::Debug for Reached<T> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Form(answer) => write!(f, "Form({answer:?})"),
            Self::Url(action) => write!(f, "Url({action:?})"),
        }
    }
}

impl Ctx {
    /// Asks for a form to be filled in; a client that shows no forms is asked under `{key}.url` to open a page
    /// that does the same; one that can do neither is refused with `-32021`, which names forms, unless the ask is
    /// [`optional`](FormOrUrl::optional).
    ///
    /// Which way was taken depends on what the request in hand declared, and a client may declare something
    /// else next time (R-108). That is why this is made of optional asks and not of a look at
    /// [`capabilities`](Ctx::capabilities): that a form could not be asked is recorded as an answer would be, and
    /// the next run takes the same way whatever its request declares. A choice by anything else that may change
    /// between two rounds belongs in [`once`](Ctx::once) for the same reason.
    ///
    /// ```
    /// # use mrtr_core::form::{Elicited, Field, Form};
    /// # use mrtr_core::handler::{Ctx, Output, Reached, RpcError, ToolResult};
    /// # use mrtr_core::wire::Action;
    /// # #[derive(serde::Deserialize)] struct Address { street: String }
    /// async fn ship(ctx: Ctx) -> Result<Output, RpcError> {
    ///     let form = Form::builder("Where to?").field(Field::string("street").required()).build()?;
    ///     match ctx.elicit_or_url::<Address>("to", &form, "https://shop.example/address").await? {
    ///         Reached::Form(Elicited::Accept(to)) => Ok(ToolResult::text(to.street).into()),
    ///         Reached::Url(Action::Accept) => Ok(ToolResult::text("Fill it in, then call again.").into()),
    ///         Reached::Form(_) | Reached::Url(_) => Ok(ToolResult::error("Nowhere to ship to.").into()),
    ///     }
    /// }
    /// ```
    pub fn elicit_or_url<T>(&self, key: &str, form: &Form, url: impl Into<String>) -> FormOrUrl<T>
    where
        T: serde::de::DeserializeOwned,
    {
        FormOrUrl {
            shared: self.shared.clone(),
            stage: Stage::Form(self.elicit(key, form).optional()),
            key: key.into(),
            form: form.clone(),
            url: url.into(),
            optional: false,
        }
    }
}

/// The future of an answer by form or by url; see [`Ctx::elicit_or_url`]. The form was registered when it was made.
#[must_use = "an ask that nobody awaits is withdrawn"]
pub struct FormOrUrl<T> {
    shared: Arc<Shared>,
    stage: Stage<T>,
    key: String,
    form: Form,
    url: String,
    optional: bool,
}

enum Stage<T> {
    Form(Ask<Elicited<T>>),
    Url(Ask<Action>),
    /// The form again, required: refused by the gate, in the protocol's own words (A6).
    Refuse(Ask<Elicited<T>>),
}

impl<T> FormOrUrl<T> {
    /// Go on without it if the client can do neither: resolves to [`AskError::Unavailable`].
    pub fn optional(mut self) -> Self {
        self.optional = true;
        self
    }
}

impl<T: serde::de::DeserializeOwned> Future for FormOrUrl<T> {
    type Output = Result<Reached<T>, AskError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let ctx = Ctx { shared: this.shared.clone() };
        loop {
            this.stage = match &mut this.stage {
                Stage::Form(ask) => match Pin::new(ask).poll(cx) {
                    Poll::Ready(Err(AskError::Unavailable)) => {
                        let message = this.form.to_request();
                        let message = message.message().unwrap_or_default();
                        let url = ctx.elicit_url(&format!("{}.url", this.key), message, &this.url);
                        Stage::Url(url.optional())
                    }
                    Poll::Ready(answer) => return Poll::Ready(answer.map(Reached::Form)),
                    Poll::Pending => return Poll::Pending,
                },
                Stage::Url(ask) => match Pin::new(ask).poll(cx) {
                    Poll::Ready(Err(AskError::Unavailable)) if !this.optional => {
                        Stage::Refuse(ctx.elicit(&this.key, &this.form))
                    }
                    Poll::Ready(answer) => return Poll::Ready(answer.map(Reached::Url)),
                    Poll::Pending => return Poll::Pending,
                },
                Stage::Refuse(ask) => return Pin::new(ask).poll(cx).map_ok(Reached::Form),
            };
        }
    }
}

impl<T> core::fmt::Debug for FormOrUrl<T> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("FormOrUrl").field("key", &self.key).finish_non_exhaustive()
    }
}
