//! Results and errors without what the legacy eras do not know (R-244, R-260, BT-6).

use alloc::{string::String, vec::Vec};

use crate::{
    catalog::Output,
    error::{ErrorCode, RpcError},
    jsonrpc::{Json, JsonKind, RequestId, write},
    wire::{AskingMethod, Version, key},
};

/// Appends the response to a call.
pub(crate) fn write_outcome(
    out: &mut Vec<u8>,
    id: &RequestId,
    call: (AskingMethod, &str),
    version: Version,
    outcome: Result<Output, RpcError>,
) {
    match outcome {
        Ok(output) => {
            let result = Json::trusted(&output.json);
            let interim =
                result.get("resultType").is_some_and(|kind| kind.as_string().as_deref() != Some("complete"));
            if !result.is_object() || interim {
                crate::trace::warn!(target = %call.1, "a result is not a JSON object, or not a final one");
                return write::error(out, Some(id), &RpcError::internal("Internal error"));
            }
            write::result_head(out, id);
            write_result(out, result, call.0 == AskingMethod::ToolsCall, version);
            out.push(b'}');
        }
        Err(error) => write::error(out, Some(id), &narrow_error(error, call)),
    }
}

/// Appends a result without `resultType`, caching hints and the protocol's own members of `_meta`.
fn write_result(out: &mut Vec<u8>, result: Json<'_>, tool: bool, version: Version) {
    let mut first = true;
    let mut member = |out: &mut Vec<u8>, name: &str| {
        out.push(if core::mem::take(&mut first) { b'{' } else { b',' });
        write::string(out, name);
        out.push(b':');
    };
    // Text that says what a structured result says that this client cannot read.
    let mut unread = None;
    let mut empty = tool;
    for (name, value) in result.members().into_iter().flatten() {
        match &*name {
            "resultType" | "ttlMs" | "cacheScope" => {}
            "_meta" => {
                let mut meta = Vec::new();
                write_meta(&mut meta, value);
                if !meta.is_empty() {
                    member(out, "_meta");
                    out.extend_from_slice(&meta);
                }
            }
            "structuredContent" if tool && (version < Version::V2025_06_18 || !value.is_object()) => {
                unread = Some(value)
            }
            "content" if tool && value.items().is_some_and(|mut items| items.next().is_none()) => {}
            _ => {
                empty &= name != "content";
                member(out, &name);
                write::one_line(out, value.as_str());
            }
        }
    }
    if empty {
        member(out, "content");
        out.push(b'[');
        if let Some(value) = unread {
            out.extend_from_slice(b"{\"type\":\"text\",\"text\":");
            write::string(out, value.as_str());
            out.push(b'}');
        }
        out.push(b']');
    }
    out.extend_from_slice(if first { b"{}" } else { b"}" });
}

fn write_meta(out: &mut Vec<u8>, meta: Json<'_>) {
    const MODERN: [&str; 6] = [
        key::PROTOCOL_VERSION,
        key::CLIENT_CAPABILITIES,
        key::CLIENT_INFO,
        key::LOG_LEVEL,
        key::SERVER_INFO,
        key::SUBSCRIPTION_ID,
    ];
    for (name, value) in meta.members().into_iter().flatten().filter(|(name, _)| !MODERN.contains(&&**name)) {
        out.push(if out.is_empty() { b'{' } else { b',' });
        write::string(out, &name);
        out.push(b':');
        write::one_line(out, value.as_str());
    }
    if !out.is_empty() {
        out.push(b'}');
    }
}

/// A handler's error with a code of the legacy eras: no `-3202x`, and `-32002` for a resource that is not there
/// (R-243, BT-6).
pub(crate) fn narrow_error(mut error: RpcError, (method, target): (AskingMethod, &str)) -> RpcError {
    if matches!(
        error.code,
        ErrorCode::HEADER_MISMATCH | ErrorCode::MISSING_CAPABILITY | ErrorCode::UNSUPPORTED_VERSION
    ) {
        error.code = ErrorCode::INTERNAL_ERROR;
    }
    let names_target = || {
        let uri = error.data()?.get("uri")?.as_string()?;
        Some(uri == target)
    };
    if method == AskingMethod::ResourcesRead
        && error.code == ErrorCode::INVALID_PARAMS
        && names_target() == Some(true)
    {
        error.code = ErrorCode::LEGACY_RESOURCE_NOT_FOUND;
    }
    error
}

/// Rewrites a list of the catalog: without caching hints, and without members that the revision does not know.
pub(crate) fn list(list: &[u8], version: Version) -> String {
    let text = core::str::from_utf8(list).unwrap_or("{}");
    let mut out = b"{".to_vec();
    for (name, value) in Json::trusted(text).members().into_iter().flatten() {
        if value.kind() != JsonKind::Array {
            continue;
        }
        write::string(&mut out, &name);
        out.extend_from_slice(b":[");
        for (index, entry) in value.items().into_iter().flatten().enumerate() {
            if index > 0 {
                out.push(b',');
            }
            write_entry(&mut out, entry, version);
        }
        out.push(b']');
    }
    out.push(b'}');
    String::from_utf8(out).unwrap_or_default()
}

fn write_entry(out: &mut Vec<u8>, entry: Json<'_>, version: Version) {
    let mut first = true;
    for (name, value) in entry.members().into_iter().flatten() {
        let known = match &*name {
            "title" => version >= Version::V2025_06_18,
            "outputSchema" => {
                let object = value.get("type").and_then(Json::as_string).as_deref() == Some("object");
                version >= Version::V2025_06_18 && object
            }
            _ => true,
        };
        if known {
            out.push(if core::mem::take(&mut first) { b'{' } else { b',' });
            write::string(out, &name);
            out.push(b':');
            write::one_line(out, value.as_str());
        }
    }
    out.extend_from_slice(if first { b"{}" } else { b"}" });
}
