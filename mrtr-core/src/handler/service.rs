//! A server and a catalog of async handlers: bytes in, and either a reply or an attempt to drive out.

use alloc::{boxed::Box, string::String, sync::Arc, vec::Vec};
use core::{future::Future, pin::Pin};

use super::{Ctx, Output, RpcError, Run};
use crate::{
    catalog::{
        Answered, CacheHints, Catalog, CatalogError, Listen, Prompt, Resource, ResourceTemplate, Route, Tool,
    },
    http::ReplyClass,
    jsonrpc::{self, Json, Message, Notification, RequestId, admit},
    seal::{Principal, Refused, Ticket},
    server::{Incoming, Received, Rejected, RoundEnv, Server},
    time::Timestamp,
};

/// The future of a handler.
pub type HandlerFuture = Pin<Box<dyn Future<Output = Result<Output, RpcError>> + Send>>;

/// A handler.
pub type BoxHandler = Arc<dyn Fn(Ctx) -> HandlerFuture + Send + Sync>;

/// A server with what it offers. Immutable once built; cheap to clone.
#[derive(Clone)]
pub struct Service {
    server: Server,
    catalog: Arc<Catalog<BoxHandler>>,
}

/// What became of a message.
#[derive(Debug)]
#[non_exhaustive]
pub enum Reception<'a> {
    /// A handler runs: drive it.
    Run(Run<'a>),
    /// Answered: send these bytes, if there are any.
    Reply {
        /// One whole message; empty where nothing is to be sent.
        bytes: Vec<u8>,
        /// What it is, for its HTTP status.
        class: ReplyClass,
    },
    /// A stream of changes: keep it open.
    Listen(Listen),
    /// The client no longer wants this request's answer: stop what runs under that id, send nothing
    /// more for it. Unknown ids are ignored. Never over HTTP.
    Cancelled(RequestId),
    /// A notification that needs nothing.
    Accepted,
}

impl Service {
    /// A service without anything to offer yet.
    #[must_use]
    pub fn new(server: Server) -> Self {
        Self { server, catalog: Arc::new(Catalog::new()) }
    }

    /// Its server.
    #[must_use]
    pub const fn server(&self) -> &Server {
        &self.server
    }

    /// What it offers, for the legacy eras.
    pub(crate) fn catalog(&self) -> &Catalog<BoxHandler> {
        &self.catalog
    }

    fn edit(&mut self) -> &mut Catalog<BoxHandler> {
        Arc::make_mut(&mut self.catalog)
    }

    /// Offers a tool.
    ///
    /// # Errors
    ///
    /// As for [`Catalog::add_tool`].
    pub fn tool<F, R, O, E>(mut self, tool: Tool, handler: F) -> Result<Self, CatalogError>
    where
        F: Fn(Ctx) -> R + Send + Sync + 'static,
        R: Future<Output = Result<O, E>> + Send + 'static,
        O: Into<Output>,
        E: Into<RpcError>,
    {
        self.edit().add_tool(tool, boxed(handler))?;
        Ok(self)
    }

    /// Offers a prompt.
    ///
    /// # Errors
    ///
    /// As for [`Catalog::add_prompt`].
    pub fn prompt<F, R, O, E>(mut self, prompt: Prompt, handler: F) -> Result<Self, CatalogError>
    where
        F: Fn(Ctx) -> R + Send + Sync + 'static,
        R: Future<Output = Result<O, E>> + Send + 'static,
        O: Into<Output>,
        E: Into<RpcError>,
    {
        self.edit().add_prompt(prompt, boxed(handler))?;
        Ok(self)
    }

    /// Offers a resource.
    ///
    /// # Errors
    ///
    /// As for [`Catalog::add_resource`].
    pub fn resource<F, R, O, E>(mut self, resource: Resource, handler: F) -> Result<Self, CatalogError>
    where
        F: Fn(Ctx) -> R + Send + Sync + 'static,
        R: Future<Output = Result<O, E>> + Send + 'static,
        O: Into<Output>,
        E: Into<RpcError>,
    {
        self.edit().add_resource(resource, boxed(handler))?;
        Ok(self)
    }

    /// Offers a family of resources.
    ///
    /// # Errors
    ///
    /// As for [`Catalog::add_template`].
    pub fn template<F, R, O, E>(
        mut self,
        template: ResourceTemplate,
        handler: F,
    ) -> Result<Self, CatalogError>
    where
        F: Fn(Ctx) -> R + Send + Sync + 'static,
        R: Future<Output = Result<O, E>> + Send + 'static,
        O: Into<Output>,
        E: Into<RpcError>,
    {
        self.edit().add_template(template, boxed(handler))?;
        Ok(self)
    }

    /// Text that discovery gives to the model.
    #[must_use]
    pub fn instructions(mut self, text: impl Into<String>) -> Self {
        self.edit().set_instructions(text);
        self
    }

    /// Caching hints of lists and of discovery.
    #[must_use]
    pub fn hints(mut self, hints: CacheHints) -> Self {
        self.edit().set_hints(hints);
        self
    }

    /// Announces that lists and resources change: the adapter serves `subscriptions/listen`.
    #[must_use]
    pub fn announce_changes(mut self) -> Self {
        self.edit().set_changes(true);
        self
    }

    /// Opens a [ticket](Ctx::ticket) that came with a request for the page behind a url, for its visitor.
    ///
    /// # Errors
    ///
    /// As for [`Sealer::open_ticket`](crate::seal::Sealer::open_ticket).
    pub fn open_ticket(
        &self,
        token: &str,
        principal: Principal<'_>,
        now: Timestamp,
    ) -> Result<Ticket, Refused> {
        self.server.config().sealer.open_ticket(token, principal, now)
    }

    /// Takes one message.
    ///
    /// Whether what it names exists, its headers and its capabilities are judged before any state is opened,
    /// every round anew (G-51).
    #[must_use]
    pub fn receive<'a>(&self, input: &'a [u8], env: RoundEnv<'a>) -> Reception<'a> {
        self.receive_message(admit(input, &self.server.config().limits), env)
    }

    /// The same for a message that was admitted before: see [`Server::read_message`].
    #[must_use]
    pub fn receive_message<'a>(
        &self,
        message: Result<Message<'a>, jsonrpc::Refused>,
        env: RoundEnv<'a>,
    ) -> Reception<'a> {
        let over_http = env.headers.is_some();
        match self.server.read_message(message, env) {
            Incoming::Rejected(rejected) => refused(&rejected),
            // Over HTTP, ids of different clients' requests may be the same, and a request is cancelled by closing
            // its stream.
            Incoming::Notification(_) if over_http => Reception::Accepted,
            Incoming::Notification(notification) => noticed(&notification),
            Incoming::Other(plain) => match self.catalog.answer(&self.server, &plain) {
                Answered::Reply { bytes, class } => Reception::Reply { bytes, class },
                Answered::Listen(listen) => Reception::Listen(listen),
            },
            Incoming::Call(call) => match self.catalog.route(call) {
                Route::Refused(rejected) => refused(&rejected),
                Route::Handler { call, handler, parts } => match call.open() {
                    Received::Pending(exchange) => {
                        Reception::Run(Run::with_parts(exchange, parts, called(handler)))
                    }
                    Received::Retrying(exchange) => {
                        Reception::Run(Run::with_parts(exchange, parts, called(handler)))
                    }
                    Received::Rejected(rejected) => refused(&rejected),
                    Received::Other(_) | Received::Notification(_) => Reception::Accepted,
                },
            },
        }
    }
}

/// With a ledger, a handler is called when its claim is granted, which is later.
fn called(handler: &BoxHandler) -> impl FnOnce(Ctx) -> HandlerFuture + Send + use<> {
    let handler = Arc::clone(handler);
    move |ctx| handler(ctx)
}

pub(super) fn boxed<F, R, O, E>(handler: F) -> BoxHandler
where
    F: Fn(Ctx) -> R + Send + Sync + 'static,
    R: Future<Output = Result<O, E>> + Send + 'static,
    O: Into<Output>,
    E: Into<RpcError>,
{
    Arc::new(move |ctx| {
        let future = handler(ctx);
        Box::pin(async move { future.await.map(Into::into).map_err(Into::into) })
    })
}

/// The reply to a refused message; the log gets the reason (G-11).
fn refused<'a>(rejected: &Rejected) -> Reception<'a> {
    rejected.log();
    let mut bytes = Vec::new();
    rejected.write(&mut bytes);
    Reception::Reply { bytes, class: rejected.class() }
}

fn noticed<'a>(notification: &Notification<'_>) -> Reception<'a> {
    match &*notification.method {
        "notifications/cancelled" => notification
            .param("requestId")
            .and_then(|id: Json<'_>| RequestId::from_json(id))
            .map_or(Reception::Accepted, Reception::Cancelled),
        _ => Reception::Accepted,
    }
}

impl core::fmt::Debug for Service {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Service").field("server", &self.server).finish_non_exhaustive()
    }
}
