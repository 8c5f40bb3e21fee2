//! The client's half, on the way out: the headers of a request, built from its body.

use alloc::{borrow::Cow, format, string::String, vec::Vec};

use super::{
    check::named_by,
    headers::{Headers, name, plain, trim},
    media::JSON,
    number::safe_integer,
    params::ParamHeaders,
    sentinel::encode_value,
};
use crate::{
    jsonrpc::{Json, JsonKind, Message},
    wire::{Version, key},
};

/// Why no headers can be built for a message: a mistake on this side, found before anything is sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HeaderFault {
    /// A client sends requests and notifications only (R-006, R-158).
    #[error("a client sends no responses")]
    Response,
    /// A request without a version in `_meta` (R-032, R-161).
    #[error("params._meta has no io.modelcontextprotocol/protocolVersion")]
    Version,
    /// A version or method that no header can carry; these have no encoded form.
    #[error("the body's value for {header} is not plain text")]
    NotPlain {
        /// The header.
        header: &'static str,
    },
    /// A value to be mirrored that is no string, number or boolean, or a string that is no text.
    #[error("{header} has to mirror a value that is not a string, an integer or a boolean")]
    Value {
        /// The header.
        header: String,
    },
}

/// The headers of a request: names and values, ready to be sent. [`Debug`](core::fmt::Debug) shows the names.
#[derive(Clone, PartialEq, Eq)]
pub struct RequestHeaders<'a>(Vec<(&'a str, Cow<'a, str>)>);

impl RequestHeaders<'_> {
    /// Names and values. The values are visible ASCII and spaces.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (*name, &**value))
    }
}

impl Headers for RequestHeaders<'_> {
    fn get_all<'h>(&'h self, name: &str, each: &mut dyn FnMut(&'h [u8])) {
        for (found, value) in &self.0 {
            if found.eq_ignore_ascii_case(name) {
                each(value.as_bytes());
            }
        }
    }
}

impl core::fmt::Debug for RequestHeaders<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_list().entries(self.iter().map(|(name, _)| name)).finish()
    }
}

/// Both kinds of answer, as every client must take them (R-158, R-177).
const BOTH: &str = "application/json, text/event-stream";

/// The headers of a POST with this message as its body: `Content-Type`, `Accept`, `MCP-Protocol-Version`,
/// `Mcp-Method`, `Mcp-Name`, `Mcp-Param-*` (R-158, R-161…R-167, R-173, R-175).
///
/// They depend on the method, the version, the name and the arguments alone, never on `inputResponses` or
/// `requestState`: every retry of a request has the headers of the first attempt (R-165). A notification
/// carries the version of its `_meta`, or else the newest (G-49).
///
/// `annotations` are those of the called tool; [`ParamHeaders::NONE`] for everything else, and for a tool whose
/// schema is not known, which is called without them first (R-176).
///
/// # Errors
///
/// If the message cannot be sent over HTTP.
///
/// ```
/// use mrtr_core::{Limits, http::{ParamHeaders, request_headers}, jsonrpc::{Json, admit}};
///
/// let limits = Limits::default();
/// let schema = r#"{"properties":{"city":{"type":"string","x-mcp-header":"City"}}}"#;
/// let annotations = ParamHeaders::from_schema(Json::parse(schema, &limits).unwrap()).unwrap();
/// let body = br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"weather",
///     "arguments":{"city":"Bern"},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",
///     "io.modelcontextprotocol/clientCapabilities":{}}}}"#;
/// let headers = request_headers(&admit(body, &limits).unwrap(), &annotations).unwrap();
/// assert_eq!(headers.iter().collect::<Vec<_>>(), [
///     ("Content-Type", "application/json"),
///     ("Accept", "application/json, text/event-stream"),
///     ("MCP-Protocol-Version", "2026-07-28"),
///     ("Mcp-Method", "tools/call"),
///     ("Mcp-Name", "weather"),
///     ("Mcp-Param-City", "Bern"),
/// ]);
/// ```
pub fn request_headers<'a>(
    message: &Message<'a>,
    annotations: &'a ParamHeaders,
) -> Result<RequestHeaders<'a>, HeaderFault> {
    let (method, params, is_request) = match message {
        Message::Request(request) => (&request.method, request.params, true),
        Message::Notification(notification) => (&notification.method, notification.params, false),
        Message::Response(_) => return Err(HeaderFault::Response),
    };
    let param = |name: &str| params.and_then(|params| params.get(name));
    let version = match param("_meta").and_then(|meta| meta.get(key::PROTOCOL_VERSION)) {
        Some(version) => version.as_string().ok_or(HeaderFault::Version)?,
        None if is_request => return Err(HeaderFault::Version),
        None => Cow::Borrowed(Version::LATEST.name()),
    };
    let mut headers = RequestHeaders(Vec::from([
        (name::CONTENT_TYPE, JSON.into()),
        (name::ACCEPT, BOTH.into()),
        (name::PROTOCOL_VERSION, as_is(name::PROTOCOL_VERSION, version)?),
        (name::METHOD, as_is(name::METHOD, method.clone())?),
    ]));
    if !is_request {
        return Ok(headers);
    }
    let named = named_by(method).and_then(param).filter(|value| value.kind() == JsonKind::String);
    let params = if *method == "tools/call" { annotations } else { ParamHeaders::NONE };
    let arguments = param("arguments").unwrap_or(Json::EMPTY_OBJECT);
    let params = params.iter().map(|param| (param.header(), param.value(arguments)));
    for (header, value) in [(name::NAME, named)].into_iter().chain(params) {
        if let Some(value) = value {
            let value = mirrored(value).ok_or_else(|| HeaderFault::Value { header: header.into() })?;
            headers.0.push((header, value));
        }
    }
    Ok(headers)
}

fn as_is<'a>(header: &'static str, value: Cow<'a, str>) -> Result<Cow<'a, str>, HeaderFault> {
    let bytes = value.as_bytes();
    if !bytes.is_empty() && plain(bytes).is_some() && trim(bytes).len() == bytes.len() {
        Ok(value)
    } else {
        Err(HeaderFault::NotPlain { header })
    }
}

/// The argument as text (R-167): strings as they are, integers in decimal, booleans as words.
fn mirrored(value: Json<'_>) -> Option<Cow<'_, str>> {
    match value.kind() {
        JsonKind::String => value.as_string().map(encode),
        JsonKind::Bool => Some(Cow::Borrowed(value.as_str())),
        // A number that is no integer, or a larger one than all peers can hold, keeps its spelling.
        JsonKind::Number => {
            let text = value.as_str();
            Some(safe_integer(text).map_or(Cow::Borrowed(text), |number| Cow::Owned(format!("{number}"))))
        }
        JsonKind::Null | JsonKind::Array | JsonKind::Object => None,
    }
}

fn encode(text: Cow<'_, str>) -> Cow<'_, str> {
    match text {
        Cow::Borrowed(text) => encode_value(text),
        Cow::Owned(text) => Cow::Owned(encode_value(&text).into_owned()),
    }
}
