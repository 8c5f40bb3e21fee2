//! Steps 3, 5 and 7: what headers and body must agree on.

use alloc::{borrow::Cow, format};

use super::{
    headers::{Headers, Single, is_present, name, plain, single},
    number,
    params::ParamHeaders,
    sentinel::{SentinelFault, decode_value},
};
use crate::{
    error::{ErrorCode, RpcError},
    jsonrpc::{Json, JsonKind, Notification, Request},
    wire::RequestMeta,
};

/// A header is missing, malformed or at odds with the body: `-32020`, status 400.
///
/// It names the header and never repeats a value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{header} {problem}")]
#[non_exhaustive]
pub struct HeaderMismatch {
    /// The header.
    pub header: Cow<'static, str>,
    /// What is wrong with it.
    pub problem: HeaderProblem,
}

/// What is wrong with a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HeaderProblem {
    /// It was not sent.
    #[error("is missing")]
    Missing,
    /// It was sent more than once, with different values.
    #[error("was sent more than once, with different values")]
    Conflicting,
    /// Its value cannot be read.
    #[error("{0}")]
    Malformed(SentinelFault),
    /// Its value is not the one in the body.
    #[error("differs from the value in the body")]
    Differs,
    /// The body has no such value, or null.
    #[error("was sent, but the body has no such value")]
    Unexpected,
}

impl HeaderMismatch {
    /// What to tell the peer.
    #[must_use]
    pub fn error(&self) -> RpcError {
        RpcError::new(ErrorCode::HEADER_MISMATCH, format!("Header mismatch: {self}"))
    }
}

/// Step 3: the version header is there. Gives its value.
///
/// # Errors
///
/// If it is missing, empty, contradictory, or has characters that no value may have.
pub fn check_version_present<H: Headers + ?Sized>(headers: &H) -> Result<&str, HeaderMismatch> {
    match required(headers, name::PROTOCOL_VERSION)? {
        "" => Err(mismatch(name::PROTOCOL_VERSION, HeaderProblem::Missing)),
        version => Ok(version),
    }
}

/// Step 5: the version header, as [`check_version_present`] gave it, says what `_meta` says. Whether that
/// version is served is step 6, and a matter of the server's.
///
/// # Errors
///
/// If the two differ.
pub fn check_version_matches(version: &str, meta: &RequestMeta<'_>) -> Result<(), HeaderMismatch> {
    if version == meta.protocol_version {
        Ok(())
    } else {
        Err(mismatch(name::PROTOCOL_VERSION, HeaderProblem::Differs))
    }
}

/// Step 7, first part: `Mcp-Method` and `Mcp-Name` say what the body says.
///
/// `Mcp-Name` is expected of the methods that name something ([`named_by`]) when the body does name it; a body
/// that does not is refused later, as bad parameters.
///
/// # Errors
///
/// The first header that is missing, malformed or different.
pub fn check_standard<H: Headers + ?Sized>(headers: &H, request: &Request<'_>) -> Result<(), HeaderMismatch> {
    if required(headers, name::METHOD)? != request.method {
        return Err(mismatch(name::METHOD, HeaderProblem::Differs));
    }
    let Some(member) = named_by(&request.method) else { return Ok(()) };
    let value = request.param(member).filter(|value| value.kind() == JsonKind::String);
    check_value(headers, name::NAME, value).map_err(|problem| mismatch(name::NAME, problem))
}

/// Step 7, second part: the `Mcp-Param-*` headers of a `tools/call` say what its arguments say, for the
/// arguments that the called tool's schema annotates. Other `Mcp-Param-*` headers are nobody's business.
///
/// # Errors
///
/// The first header that is missing, malformed or different, or that was sent for an argument that is absent
/// or null.
pub fn check_params<H: Headers + ?Sized>(
    headers: &H,
    request: &Request<'_>,
    annotations: &ParamHeaders,
) -> Result<(), HeaderMismatch> {
    let arguments = request.param("arguments").unwrap_or(Json::EMPTY_OBJECT);
    for param in annotations.iter() {
        check_value(headers, param.header(), param.value(arguments))
            .map_err(|problem| HeaderMismatch { header: Cow::Owned(param.header().into()), problem })?;
    }
    Ok(())
}

/// The headers of a notification: none is required of it (G-49), and those that were sent must be true.
///
/// # Errors
///
/// A header that is malformed or different.
pub fn check_notification<H: Headers + ?Sized>(
    headers: &H,
    notification: &Notification<'_>,
) -> Result<(), HeaderMismatch> {
    if is_present(headers, name::METHOD) && required(headers, name::METHOD)? != notification.method {
        return Err(mismatch(name::METHOD, HeaderProblem::Differs));
    }
    Ok(())
}

/// The parameter that `Mcp-Name` repeats for requests of this method.
#[must_use]
pub fn named_by(method: &str) -> Option<&'static str> {
    match method {
        "tools/call" | "prompts/get" => Some("name"),
        "resources/read" => Some("uri"),
        "tasks/get" | "tasks/update" | "tasks/cancel" => Some("taskId"),
        _ => None,
    }
}

/// A header that must be sent, and is compared as it is: these two have no encoded form.
fn required<'h, H: Headers + ?Sized>(headers: &'h H, name: &'static str) -> Result<&'h str, HeaderMismatch> {
    let problem = match single(headers, name) {
        Single::Absent => HeaderProblem::Missing,
        Single::Conflicting => HeaderProblem::Conflicting,
        Single::One(value) => match plain(value) {
            Some(text) => return Ok(text),
            None => HeaderProblem::Malformed(SentinelFault::Characters),
        },
    };
    Err(mismatch(name, problem))
}

/// Compares a header with the value it mirrors.
fn check_value<H: Headers + ?Sized>(
    headers: &H,
    name: &str,
    value: Option<Json<'_>>,
) -> Result<(), HeaderProblem> {
    let sent = match (single(headers, name), value) {
        (Single::Absent, None) => return Ok(()),
        (Single::Absent, Some(_)) => return Err(HeaderProblem::Missing),
        (Single::Conflicting, _) => return Err(HeaderProblem::Conflicting),
        (Single::One(sent), _) => decode_value(sent).map_err(HeaderProblem::Malformed)?,
    };
    let Some(value) = value else { return Err(HeaderProblem::Unexpected) };
    let same = match value.kind() {
        JsonKind::String => value.as_string().is_some_and(|text| text == sent),
        JsonKind::Number => value.as_str() == sent || number::same(value.as_str(), &sent),
        JsonKind::Bool => value.as_str() == sent,
        // No header can say this; the argument is of a wrong type anyway.
        JsonKind::Array | JsonKind::Object | JsonKind::Null => false,
    };
    if same { Ok(()) } else { Err(HeaderProblem::Differs) }
}

fn mismatch(header: &'static str, problem: HeaderProblem) -> HeaderMismatch {
    HeaderMismatch { header: Cow::Borrowed(header), problem }
}
