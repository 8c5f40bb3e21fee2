//! Which part of the catalog a request names.

use alloc::{string::String, vec::Vec};

use super::{Catalog, Filter, Listen, OfferedTool, Prompt, Tool};
use crate::{
    error::{ErrorCode, RpcError},
    http::{self, ParamHeaders, ReplyClass},
    jsonrpc::{Json, Request, write},
    seal::Ttl,
    server::{Call, Plain, Rejected, Server, write_result},
    wire::AskingMethod,
};

/// Where a request goes.
#[derive(Debug)]
#[non_exhaustive]
pub enum Route<'c, 'a, H> {
    /// To a handler; the parts of the uri if a template matched.
    Handler {
        /// The request.
        call: Call<'a>,
        /// What runs it.
        handler: &'c H,
        /// Parts of a template's uri by their names.
        parts: Vec<(String, String)>,
    },
    /// To nobody: unknown, or not in order.
    Refused(Rejected),
}

/// What became of a request that needs no handler.
#[derive(Debug)]
#[non_exhaustive]
pub enum Answered {
    /// Answered here.
    Reply {
        /// The whole response.
        bytes: Vec<u8>,
        /// What it is, for its HTTP status.
        class: ReplyClass,
    },
    /// `subscriptions/listen`: the stream stays open.
    Listen(Listen),
}

impl<'c, 'a, H> Route<'c, 'a, H> {
    fn to(call: Call<'a>, handler: &'c H, ttl: Option<Ttl>, parts: Vec<(String, String)>) -> Self {
        let call = match ttl {
            Some(ttl) => call.state_ttl(ttl),
            None => call,
        };
        Self::Handler { call, handler, parts }
    }
}

impl<H> Catalog<H> {
    /// Routes a request that may ask. Headers that mirror arguments are checked here, for only the tool's
    /// schema names them, and so are declared requirements.
    pub fn route<'c, 'a>(&'c self, call: Call<'a>) -> Route<'c, 'a, H> {
        let refused = |call: Call<'a>, error, class| Route::Refused(call.reject(error, class));
        match call.method() {
            AskingMethod::ToolsCall => {
                let found = self.tools.iter().find(|offered| offered.tool.name == call.target());
                let Some(OfferedTool { tool, headers, handler }) = found else {
                    let error = unknown("tool", call.target());
                    return refused(call, error, ReplyClass::HandlerError);
                };
                match check_tool(tool, headers, &call) {
                    Err((error, class)) => refused(call, error, class),
                    Ok(()) => Route::to(call, handler, tool.state_ttl, Vec::new()),
                }
            }
            AskingMethod::PromptsGet => {
                let found = self.prompts.iter().find(|(prompt, _)| prompt.name == call.target());
                let Some((prompt, handler)) = found else {
                    let error = unknown("prompt", call.target());
                    return refused(call, error, ReplyClass::HandlerError);
                };
                match check_prompt(prompt, &call) {
                    Err(error) => refused(call, error, ReplyClass::HandlerError),
                    Ok(()) => Route::to(call, handler, prompt.state_ttl, Vec::new()),
                }
            }
            AskingMethod::ResourcesRead => {
                if let Some((resource, handler)) =
                    self.resources.iter().find(|(resource, _)| resource.uri == call.target())
                {
                    return Route::to(call, handler, resource.state_ttl, Vec::new());
                }
                for (template, handler) in &self.templates {
                    if let Some(parts) = template.matches(call.target()) {
                        return Route::to(call, handler, template.state_ttl, parts);
                    }
                }
                let error = no_resource(call.target());
                refused(call, error, ReplyClass::HandlerError)
            }
        }
    }

    /// Answers a request of a method that never asks.
    #[must_use]
    pub fn answer(&self, server: &Server, plain: &Plain<'_>) -> Answered {
        let request = &plain.request;
        let result = match &*request.method {
            "server/discover" => Ok(self.discover(&server.version_names())),
            "tools/list" if !self.tools.is_empty() => one_page(plain, || self.list_tools()),
            "prompts/list" if !self.prompts.is_empty() => one_page(plain, || self.list_prompts()),
            "resources/list" if self.has_resources() => one_page(plain, || self.list_resources()),
            "resources/templates/list" if self.has_resources() => one_page(plain, || self.list_templates()),
            "completion/complete" if self.has_completions() => self.complete(request),
            "subscriptions/listen" if self.changes => match Filter::from_request(request) {
                Ok(filter) => return Answered::Listen(Listen::new(server, request.id.clone(), filter)),
                Err(error) => Err(error),
            },
            _ => {
                let error = RpcError::new(ErrorCode::METHOD_NOT_FOUND, "Method not found");
                let mut bytes = Vec::new();
                write::error(&mut bytes, Some(&request.id), &error);
                return Answered::Reply { bytes, class: ReplyClass::MethodNotFound };
            }
        };
        let mut bytes = Vec::new();
        match result {
            Ok(result) => {
                let text = core::str::from_utf8(&result).unwrap_or("{}");
                let info = &server.config().info;
                write_result(&mut bytes, &request.id, info, Json::trusted(text), crate::server::Hints::AsIs);
                Answered::Reply { bytes, class: ReplyClass::Result }
            }
            Err(error) => {
                write::error(&mut bytes, Some(&request.id), &error);
                Answered::Reply { bytes, class: ReplyClass::HandlerError }
            }
        }
    }

    /// `completion/complete` for prompt arguments: offered values that begin with what was typed, at most 100.
    pub(crate) fn complete(&self, request: &Request<'_>) -> Result<Vec<u8>, RpcError> {
        let invalid =
            |what| RpcError::invalid_params(alloc::format!("Invalid params: {what} is missing or malformed"));
        let text = |value: Option<Json<'_>>| value.and_then(Json::as_string).map(String::from);
        let reference = request.param("ref").ok_or_else(|| invalid("ref"))?;
        let argument = request.param("argument").ok_or_else(|| invalid("argument"))?;
        let name = text(argument.get("name")).ok_or_else(|| invalid("argument.name"))?;
        let typed = text(argument.get("value")).ok_or_else(|| invalid("argument.value"))?;
        let empty = Vec::new();
        let offered = match text(reference.get("type")).as_deref() {
            Some("ref/prompt") => {
                let prompt = text(reference.get("name")).ok_or_else(|| invalid("ref.name"))?;
                let found = self.prompts.iter().find(|(found, _)| found.name == prompt);
                let (found, _) = found.ok_or_else(|| unknown("prompt", &prompt))?;
                found
                    .arguments
                    .iter()
                    .find(|found| found.name == name)
                    .map_or(&empty, |found| &found.completions)
            }
            Some("ref/resource") => &empty,
            _ => return Err(invalid("ref.type")),
        };
        let fitting: Vec<&String> = offered.iter().filter(|value| value.starts_with(&*typed)).collect();
        let mut out = b"{\"completion\":{\"values\":[".to_vec();
        for (index, value) in fitting.iter().take(100).enumerate() {
            if index > 0 {
                out.push(b',');
            }
            write::string(&mut out, value);
        }
        out.extend_from_slice(b"],\"total\":");
        write::integer(&mut out, i64::try_from(fitting.len()).unwrap_or(i64::MAX));
        out.extend_from_slice(if fitting.len() > 100 {
            b",\"hasMore\":true}}"
        } else {
            b",\"hasMore\":false}}"
        });
        Ok(out)
    }
}

/// Lists are one page: any cursor is one that was never given out.
fn one_page(plain: &Plain<'_>, list: impl FnOnce() -> Vec<u8>) -> Result<Vec<u8>, RpcError> {
    match plain.request.param("cursor") {
        None => Ok(list()),
        Some(_) => Err(RpcError::invalid_params("Invalid params: unknown cursor")),
    }
}

fn check_tool(tool: &Tool, mirrored: &ParamHeaders, call: &Call<'_>) -> Result<(), (RpcError, ReplyClass)> {
    if let Some(headers) = call.headers() {
        http::check_params(headers, call.request(), mirrored)
            .map_err(|fault| (fault.error(), ReplyClass::HeaderMismatch))?;
    }
    let capabilities = call.meta().capabilities;
    if tool.requires.iter().all(|need| capabilities.allow(*need)) {
        return Ok(());
    }
    let error = RpcError::new(
        ErrorCode::MISSING_CAPABILITY,
        "The request does not declare a client capability that this tool needs",
    );
    let data = capabilities.missing(tool.requires.iter().copied());
    Err((error.with_raw_data(data), ReplyClass::MissingCapability))
}

fn check_prompt(prompt: &Prompt, call: &Call<'_>) -> Result<(), RpcError> {
    let arguments = call.request().param("arguments");
    let given = |name: &str| {
        arguments.and_then(|arguments| arguments.get(name)).is_some_and(|value| !value.is_null())
    };
    match prompt.arguments.iter().find(|argument| argument.required && !given(&argument.name)) {
        None => Ok(()),
        Some(argument) => Err(RpcError::invalid_params(alloc::format!(
            "Invalid params: the argument {:?} is missing",
            argument.name
        ))),
    }
}

/// `-32602` for a name nobody declared. The name is the peer's own.
pub(crate) fn unknown(what: &str, name: &str) -> RpcError {
    let shown: String = name.chars().take(64).collect();
    RpcError::invalid_params(alloc::format!("Unknown {what}: {shown}"))
}

/// `-32602` with the uri in `data`; never an empty `contents`.
pub(crate) fn no_resource(uri: &str) -> RpcError {
    let mut data = b"{\"uri\":".to_vec();
    write::string(&mut data, uri);
    data.push(b'}');
    RpcError::invalid_params("Resource not found").with_raw_data(String::from_utf8(data).unwrap_or_default())
}
