//! Errors by era (BT-6, R-024, R-235, R-243, R-260, R-261).

use alloc::{borrow::Cow, boxed::Box, string::String, vec::Vec};

use crate::{
    error::{ErrorCode, RpcError},
    jsonrpc::{Json, write},
    wire::ClientCapabilities,
};

/// Most urls that one `-32042` may name.
const URLS: usize = 64;

/// An error of a legacy server for a modern host. `uri` is the resource asked for, if one was.
///
/// | there | here |
/// |---|---|
/// | `-32002` | `-32602` with `data.uri` |
/// | `-32042`, `-32020`, `-32021`, `-32022` | `-32603` with `data.cause` |
/// | anything else | the same |
///
/// `-32042` with urls is [`url_required`] before it is this, and `-32603` for want of a capability
/// [`lacking_to_modern`] after it. The `-3202x` mean nothing in a legacy server's mouth, and
/// a modern host would act on them.
#[must_use]
pub fn error_to_modern(error: RpcError, uri: Option<&str>) -> RpcError {
    match error.code {
        ErrorCode::LEGACY_RESOURCE_NOT_FOUND => {
            let named = error.data.as_deref().is_some_and(|data| Json::trusted(data).get("uri").is_some());
            let RpcError { message, mut data, .. } = error;
            if !named && let Some(uri) = uri {
                let mut text = b"{\"uri\":".to_vec();
                write::string(&mut text, uri);
                text.push(b'}');
                data = String::from_utf8(text).ok();
            }
            let error = RpcError::invalid_params(message);
            match data {
                Some(data) => error.with_raw_data(data),
                None => error,
            }
        }
        ErrorCode::LEGACY_URL_REQUIRED
        | ErrorCode::HEADER_MISMATCH
        | ErrorCode::MISSING_CAPABILITY
        | ErrorCode::UNSUPPORTED_VERSION => caused("the upstream failed", &error),
        _ => error,
    }
}

/// A legacy server's `-32603` that names capabilities which the host lacks is what `-32021` is for (R-021, R-106, BT-6):
/// a bridge to a legacy host, and this crate's own sessions, say it so. `can` is what the host declared with its request.
/// One that names nothing else than what was declared stays what it is: the host could do no better.
#[must_use]
pub fn lacking_to_modern(error: RpcError, can: ClientCapabilities) -> RpcError {
    let lacks = |required: Json<'_>| {
        let objects = required.members().is_some_and(|mut all| all.all(|(_, value)| value.is_object()));
        ClientCapabilities::from_json(required).filter(|_| objects).is_some_and(|needed| {
            [
                (needed.form, can.form),
                (needed.url, can.url),
                (needed.sampling, can.sampling),
                (needed.sampling_tools, can.sampling_tools),
                (needed.roots, can.roots),
            ]
            .into_iter()
            .any(|(needed, declared)| needed && !declared)
        })
    };
    let data = error.data().and_then(|data| data.get("requiredCapabilities"));
    if error.code != ErrorCode::INTERNAL_ERROR || !data.is_some_and(lacks) {
        return error;
    }
    let RpcError { data, .. } = error;
    RpcError::new(ErrorCode::MISSING_CAPABILITY, "Missing required client capability")
        .with_raw_data(data.unwrap_or_default())
}

/// An error of a modern server for a legacy host. `uri` is the resource asked for, if one was (`resources/read`).
///
/// | there | here |
/// |---|---|
/// | `-32602` whose `data.uri` is that uri | `-32002` |
/// | `-32021` | `-32603` with its `data.requiredCapabilities` |
/// | `-32020`, `-32022` | `-32603` |
/// | anything else | the same |
#[must_use]
pub fn error_to_legacy(mut error: RpcError, uri: Option<&str>) -> RpcError {
    match error.code {
        ErrorCode::MISSING_CAPABILITY => error.code = ErrorCode::INTERNAL_ERROR,
        ErrorCode::HEADER_MISMATCH | ErrorCode::UNSUPPORTED_VERSION => {
            error = caused("the upstream failed", &error);
        }
        ErrorCode::INVALID_PARAMS => {
            let named = error.data.as_deref().and_then(|data| Json::trusted(data).get("uri")?.as_string());
            if named.is_some() && named.as_deref() == uri {
                error.code = ErrorCode::LEGACY_RESOURCE_NOT_FOUND;
            }
        }
        _ => {}
    }
    error
}

/// `-32603` that says what another peer's error was in `data.cause`.
pub(crate) fn caused(message: &'static str, error: &RpcError) -> RpcError {
    let mut data = b"{\"cause\":{\"code\":".to_vec();
    write::integer(&mut data, error.code.get());
    data.extend_from_slice(b",\"message\":");
    let shown: String = error.message.chars().take(500).collect();
    write::string(&mut data, &shown);
    data.extend_from_slice(b"}}");
    let error = RpcError::internal(message);
    match String::from_utf8(data) {
        Ok(data) => error.with_raw_data(data),
        Err(_) => error,
    }
}

/// A url that a legacy server wants opened before it takes the call.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct UrlRequired {
    /// Names the interaction in `notifications/elicitation/complete`.
    pub elicitation_id: Box<str>,
    /// Says why.
    pub message: Box<str>,
    /// What to open, unmodified.
    pub url: Box<str>,
}

impl core::fmt::Debug for UrlRequired {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("UrlRequired(..)")
    }
}

/// `-32042` without usable `data.elicitations`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the error asks for urls to be opened and names none, or names them wrongly")]
#[allow(clippy::exhaustive_structs)]
pub struct NoUrls;

/// Reads `data.elicitations` of `-32042`. `Ok(None)` for any other error.
///
/// # Errors
///
/// The list is missing, empty, malformed or too long: the host gets `-32603`.
pub fn url_required(error: &RpcError) -> Result<Option<Vec<UrlRequired>>, NoUrls> {
    if error.code != ErrorCode::LEGACY_URL_REQUIRED {
        return Ok(None);
    }
    let data = error.data.as_deref().ok_or(NoUrls)?;
    let items = Json::trusted(data).get("elicitations").and_then(Json::items).ok_or(NoUrls)?;
    let mut urls = Vec::new();
    for item in items {
        let text =
            |name| item.get(name).and_then(Json::as_string).map(Cow::into_owned).map(String::into_boxed_str);
        let read = || {
            Some(UrlRequired {
                elicitation_id: text("elicitationId")?,
                message: text("message")?,
                url: text("url").filter(|url| !url.is_empty())?,
            })
        };
        if urls.len() == URLS {
            return Err(NoUrls);
        }
        urls.push(read().ok_or(NoUrls)?);
    }
    if urls.is_empty() { Err(NoUrls) } else { Ok(Some(urls)) }
}
