//! What a session does with a message of the client.

use alloc::{borrow::Cow, string::String, vec::Vec};

use super::{
    Handled, Session,
    asks::sayable,
    narrow,
    outlet::Outlet,
    revision::effective,
    session::{Call, Peer},
};
use crate::{
    catalog::{
        Catalog,
        route::{no_resource, unknown},
    },
    error::{ErrorCode, RpcError},
    handler::{
        BoxHandler,
        live::{LiveRun, LiveSetup},
    },
    http::ReplyClass,
    jsonrpc::{self, Json, Message, Notification, Refused, Request, RequestId, Response, write},
    seal::ExchangeId,
    tape::held::Held,
    time::Timestamp,
    wire::{AskingMethod, ClientCapabilities, LogLevel, Version, key, read_answer},
};

/// Bytes of a uri that is subscribed to: each is held as long as the session.
const URI_BYTES: usize = 4_096;

/// Characters kept of an error message of the client's.
const REFUSAL_CHARS: usize = 500;

impl Session {
    /// Takes one message of the client.
    pub fn handle(&mut self, input: &[u8], now: Timestamp) -> Handled {
        let limits = &self.service.server().config().limits;
        let message = jsonrpc::admit(input, limits);
        self.handle_admitted(message, now, true)
    }

    /// The same for a message that was admitted already. Where no stream can be written (`streams` is false: the
    /// client reads JSON alone) a call has nothing to ask through.
    pub(super) fn handle_admitted(
        &mut self,
        message: Result<Message<'_>, Refused>,
        now: Timestamp,
        streams: bool,
    ) -> Handled {
        self.touched = self.touched.max(Some(now));
        if self.over {
            return self.on_late(&message);
        }
        match message {
            Ok(Message::Request(request)) => self.on_request(&request, now, streams),
            Ok(Message::Notification(notification)) => {
                self.on_notification(&notification);
                Handled::Accepted
            }
            Ok(Message::Response(response)) => {
                self.on_response(response);
                Handled::Accepted
            }
            Err(refused) => self.on_refused(&refused),
        }
    }

    /// What comes after the end: the message was on its way.
    fn on_late(&self, message: &Result<Message<'_>, Refused>) -> Handled {
        let Ok(Message::Request(request)) = message else { return Handled::Accepted };
        let mut bytes = Vec::new();
        write::error(&mut bytes, Some(&request.id), &invalid("this session has ended"));
        Handled::Reply { bytes, class: ReplyClass::UnknownSession }
    }

    /// What was not admitted. A broken response still says which of our requests has failed; then it was no request.
    fn on_refused(&mut self, refused: &Refused) -> Handled {
        let mut bytes = Vec::new();
        let malformed = |_| Held::Malformed(alloc::format!("{}", refused.reason).into());
        let failed = refused.response_to.as_ref().is_some_and(|id| self.resolve(id, malformed));
        let id = refused.id.as_ref();
        if refused.wants_answer() && !(failed && id.is_some()) {
            write::error(&mut bytes, id, &refused.error());
        }
        Handled::Reply { bytes, class: ReplyClass::from(refused) }
    }

    /// Responses are matched by id and nothing else (B-61); late and unknown ones are ignored.
    fn on_response(&mut self, response: Response<'_>) {
        let Some(id) = response.id else { return };
        if id.as_i64().is_some_and(|id| self.pings.remove(&id)) {
            return;
        }
        let limit = self.service.server().config().limits.answer_bytes;
        self.resolve(&id, |kind| match response.outcome {
            Ok(result) if result.as_str().len() > limit => Held::Malformed(
                alloc::format!("the answer is over the limit of {limit} bytes (Limits::answer_bytes)").into(),
            ),
            Ok(result) => match read_answer(kind, result) {
                Ok(_) => Held::Answer(result.as_str().into()),
                Err(fault) => Held::Malformed(alloc::format!("the answer{fault}").into()),
            },
            Err(error) => Held::Refused(
                error.code,
                error.message.chars().take(REFUSAL_CHARS).collect::<String>().into(),
            ),
        });
    }

    /// Gives an ask its outcome; whether there was one of that id.
    fn resolve(&mut self, id: &RequestId, outcome: impl FnOnce(crate::wire::AskKind) -> Held) -> bool {
        let Some(asked) = id.as_i64().and_then(|id| self.asked.remove(&id)) else { return false };
        if let Some(run) = self.calls.get_mut(&asked.call).and_then(|call| call.run.as_mut()) {
            run.answer(&asked.key, outcome(asked.kind));
        }
        self.wake_call(&asked.call);
        true
    }

    fn on_notification(&mut self, notification: &Notification<'_>) {
        match &*notification.method {
            "notifications/initialized" if self.peer.is_some() => self.make_ready(),
            "notifications/cancelled" => {
                if let Some(id) = notification.param("requestId").and_then(RequestId::from_json) {
                    self.cancel(&id);
                }
            }
            _ => {}
        }
    }

    fn on_request(&mut self, request: &Request<'_>, now: Timestamp, streams: bool) -> Handled {
        // A second answer under the id of a call that runs could only be taken for that call's.
        if self.calls.get(&request.id).is_some_and(|call| call.run.is_some()) {
            let mut bytes = Vec::new();
            write::error(&mut bytes, None, &invalid("the id of a request that runs was used again"));
            return Handled::Reply { bytes, class: ReplyClass::InvalidRequest };
        }
        let outcome = match (&*request.method, self.peer) {
            ("ping", _) => Ok(String::from("{}")),
            ("initialize", None) => self.initialize(request),
            ("initialize", Some(_)) => Err(invalid("this session is initialised")),
            (_, None) => Err(invalid("this session is not initialised")),
            (method, Some(peer)) => match AskingMethod::from_name(method) {
                Some(method) => match self.call(method, request, peer, now, streams) {
                    Ok(()) => return Handled::Running(request.id.clone()),
                    Err(error) => Err(error),
                },
                None => self.plain(request, peer),
            },
        };
        let mut bytes = Vec::new();
        let class = match outcome {
            Ok(result) => {
                write::result_head(&mut bytes, &request.id);
                write::one_line(&mut bytes, &result);
                bytes.push(b'}');
                ReplyClass::Result
            }
            Err(error) => {
                write::error(&mut bytes, Some(&request.id), &error);
                ReplyClass::HandlerError
            }
        };
        Handled::Reply { bytes, class }
    }

    /// Settles revision and capabilities. Our newest legacy revision is offered to a client that asks for
    /// one we do not serve: whether it can speak that is for the client to say.
    fn initialize(&mut self, request: &Request<'_>) -> Result<String, RpcError> {
        let params = |what| RpcError::invalid_params(alloc::format!("Invalid params: {what}"));
        let requested = request.param("protocolVersion").and_then(Json::as_string);
        let requested = requested.ok_or_else(|| params("protocolVersion is missing or not a string"))?;
        let declared = request.param("capabilities").unwrap_or(Json::EMPTY_OBJECT);
        let declared = ClientCapabilities::from_json(declared)
            .ok_or_else(|| params("capabilities is not an object of objects"))?;
        let version = self.config.negotiate(Version::from_name(&requested));
        let version = version.ok_or_else(|| invalid("no legacy revision is served"))?;
        self.peer = Some(Peer { version, capabilities: effective(declared, version) });
        let mut out = b"{\"protocolVersion\":".to_vec();
        write::string(&mut out, version.name());
        out.extend_from_slice(b",\"capabilities\":");
        let catalog = self.service.catalog();
        catalog.write_capabilities(&mut out);
        out.extend_from_slice(b",\"serverInfo\":");
        self.service.server().config().info.write(&mut out);
        if let Some(instructions) = &catalog.instructions {
            out.extend_from_slice(b",\"instructions\":");
            write::string(&mut out, instructions);
        }
        out.push(b'}');
        Ok(String::from_utf8(out).unwrap_or_default())
    }

    /// A request of a method that never asks.
    fn plain(&mut self, request: &Request<'_>, peer: Peer) -> Result<String, RpcError> {
        let catalog = self.service.catalog();
        let page = |list: Vec<u8>| match request.param("cursor") {
            None => Ok(narrow::list(&list, peer.version)),
            Some(_) => Err(RpcError::invalid_params("Invalid params: unknown cursor")),
        };
        match &*request.method {
            "tools/list" if !catalog.tools.is_empty() => page(catalog.list_tools()),
            "prompts/list" if !catalog.prompts.is_empty() => page(catalog.list_prompts()),
            "resources/list" if catalog.has_resources() => page(catalog.list_resources()),
            "resources/templates/list" if catalog.has_resources() => page(catalog.list_templates()),
            "completion/complete" if catalog.has_completions() => {
                catalog.complete(request).map(|text| String::from_utf8(text).unwrap_or_default())
            }
            "logging/setLevel" if catalog.logging => {
                let level = request.param("level").and_then(Json::as_string);
                let level = level.as_deref().and_then(LogLevel::from_name);
                let unknown = || RpcError::invalid_params("Invalid params: level is not a log level");
                self.level = Some(level.ok_or_else(unknown)?);
                Ok(String::from("{}"))
            }
            "resources/subscribe" if catalog.has_resources() && catalog.changes => {
                let uri = uri_of(request)?;
                if uri.len() > URI_BYTES {
                    return Err(RpcError::invalid_params("Invalid params: uri is over 4096 bytes"));
                }
                find_resource(catalog, &uri).ok_or_else(|| not_found(&uri))?;
                let limit = self.config.subscriptions;
                if self.subscriptions.len() >= limit && !self.subscriptions.contains(&*uri) {
                    return Err(over("subscriptions", limit, "subscriptions"));
                }
                self.subscriptions.insert((*uri).into());
                Ok(String::from("{}"))
            }
            "resources/unsubscribe" if catalog.has_resources() && catalog.changes => {
                self.subscriptions.remove(&*uri_of(request)?);
                Ok(String::from("{}"))
            }
            _ => Err(RpcError::new(ErrorCode::METHOD_NOT_FOUND, "Method not found")),
        }
    }

    fn call(
        &mut self,
        method: AskingMethod,
        request: &Request<'_>,
        peer: Peer,
        now: Timestamp,
        streams: bool,
    ) -> Result<(), RpcError> {
        if self.calls.values().filter(|call| call.is_under_way()).count() >= self.config.calls {
            return Err(over("calls at a time", self.config.calls, "calls"));
        }
        let params = CallParams::read(method, request)?;
        let capabilities = if streams { peer.capabilities } else { ClientCapabilities::default() };
        let catalog = self.service.catalog();
        let (handler, parts) = route(catalog, method, &params, capabilities)?;
        let handler = handler.clone();
        let config = self.service.server().config();
        let (limits, policy) = (config.limits.clone(), config.tape.clone());
        let setup = LiveSetup {
            method,
            target: &params.target,
            arguments: params.arguments,
            parts,
            capabilities,
            principal: self.principal.clone(),
            exchange: ExchangeId::from_bytes(self.draw()),
            progress_token: params.progress_token,
            tickets: (self.service.server().clone(), alloc::sync::Arc::new(self.draw_entropy()), now),
            limits,
            policy,
            now,
            sayable: sayable(peer.version),
        };
        let call = Call {
            method,
            target: (*params.target).into(),
            run: Some(LiveRun::new(setup, &handler)),
            outlet: Outlet::new(self.take_stream(), true),
            waiting: Vec::new(),
            cancelled: false,
            finished: None,
        };
        self.calls.insert(request.id.clone(), call);
        self.wake_call(&request.id);
        Ok(())
    }
}

/// The parameters of a call, checked for their shape. What belongs to the modern era is not looked at.
struct CallParams<'a> {
    target: Cow<'a, str>,
    arguments: Json<'a>,
    progress_token: Option<RequestId>,
}

impl<'a> CallParams<'a> {
    fn read(method: AskingMethod, request: &Request<'a>) -> Result<Self, RpcError> {
        let wrong = |path: &str, what: &str| {
            RpcError::invalid_params(alloc::format!("Invalid params: {path} is not {what}"))
        };
        let target = request.param(method.target_param()).and_then(Json::as_string);
        let target = target.ok_or_else(|| wrong(method.target_param(), "a string"))?;
        let arguments = request.param("arguments").unwrap_or(Json::EMPTY_OBJECT);
        if !arguments.is_object() {
            return Err(wrong("arguments", "an object"));
        }
        let token = request.param("_meta").and_then(|meta| meta.get(key::PROGRESS_TOKEN));
        let progress_token = token
            .map(|token| {
                RequestId::from_json(token)
                    .ok_or_else(|| wrong("_meta.progressToken", "a string or an integer"))
            })
            .transpose()?;
        Ok(Self { target, arguments, progress_token })
    }
}

/// Who serves a call, with the parts of the uri if a template matched.
type Served<'c> = (&'c BoxHandler, Vec<(String, String)>);

fn route<'c>(
    catalog: &'c Catalog<BoxHandler>,
    method: AskingMethod,
    params: &CallParams<'_>,
    capabilities: ClientCapabilities,
) -> Result<Served<'c>, RpcError> {
    let target = &*params.target;
    match method {
        AskingMethod::ToolsCall => {
            let found = catalog.tools.iter().find(|offered| offered.tool.name == target);
            let offered = found.ok_or_else(|| unknown("tool", target))?;
            let (tool, handler) = (&offered.tool, &offered.handler);
            if tool.requires.iter().all(|need| capabilities.allow(*need)) {
                return Ok((handler, Vec::new()));
            }
            let data = capabilities.missing(tool.requires.iter().copied());
            Err(RpcError::internal("The client did not declare a capability that this tool needs")
                .with_raw_data(data))
        }
        AskingMethod::PromptsGet => {
            let found = catalog.prompts.iter().find(|(prompt, _)| prompt.name == target);
            let (prompt, handler) = found.ok_or_else(|| unknown("prompt", target))?;
            let given = |name: &str| params.arguments.get(name).is_some_and(|value| !value.is_null());
            match prompt.arguments.iter().find(|argument| argument.required && !given(&argument.name)) {
                None => Ok((handler, Vec::new())),
                Some(argument) => Err(RpcError::invalid_params(alloc::format!(
                    "Invalid params: the argument {:?} is missing",
                    argument.name
                ))),
            }
        }
        AskingMethod::ResourcesRead => find_resource(catalog, target).ok_or_else(|| not_found(target)),
    }
}

fn find_resource<'c>(catalog: &'c Catalog<BoxHandler>, uri: &str) -> Option<Served<'c>> {
    let single = catalog.resources.iter().find(|(resource, _)| resource.uri == uri);
    let single = single.map(|(_, handler)| (handler, Vec::new()));
    single.or_else(|| {
        catalog.templates.iter().find_map(|(template, handler)| Some((handler, template.matches(uri)?)))
    })
}

/// `-32002`.
fn not_found(uri: &str) -> RpcError {
    let mut error = no_resource(uri);
    error.code = ErrorCode::LEGACY_RESOURCE_NOT_FOUND;
    error
}

fn uri_of<'a>(request: &Request<'a>) -> Result<Cow<'a, str>, RpcError> {
    let uri = request.param("uri").and_then(Json::as_string);
    uri.ok_or_else(|| RpcError::invalid_params("Invalid params: uri is not a string"))
}

pub(super) fn invalid(what: &str) -> RpcError {
    RpcError::new(ErrorCode::INVALID_REQUEST, alloc::format!("Invalid request: {what}"))
}

/// A bound of [`Config`](super::Config) is reached.
pub(super) fn over(what: &str, limit: usize, field: &str) -> RpcError {
    RpcError::internal(alloc::format!(
        "Internal error: over the limit of {limit} {what} (legacy::Config::{field})"
    ))
}
