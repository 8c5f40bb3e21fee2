//! Results (BT-6, R-201, R-244, R-260, G-34, G-40).

use alloc::vec::Vec;

use super::{
    ask::is_object_schema,
    edit::{Edit, Keep, Tail, edit_object},
};
use crate::{
    http::ParamHeaders,
    jsonrpc::{Json, JsonKind, write},
    wire::{Version, key},
};

/// Whether results of the method carry caching hints.
fn is_cacheable(method: &str) -> bool {
    matches!(
        method,
        "tools/list"
            | "prompts/list"
            | "resources/list"
            | "resources/templates/list"
            | "resources/read"
            | "server/discover"
    )
}

/// Appends a legacy server's result for a modern host: with `resultType: "complete"`, whatever stood there (G-34); with
/// `ttlMs: 0` and `cacheScope: "private"` where the method has hints; and with `server_info` (JSON text of an object)
/// in `_meta` unless the result names a server itself. Tools lose `execution`, and invalid `x-mcp-header` annotations.
pub fn result_to_modern(out: &mut Vec<u8>, method: &str, result: Json<'_>, server_info: Option<Json<'_>>) {
    let tools = method == "tools/list";
    let info = |tail: &mut Tail<'_>| {
        if let Some(info) = server_info {
            write::one_line(tail.member(key::SERVER_INFO), info.as_str());
        }
    };
    let mut met = false;
    let edit = |name: &str, value: Json<'_>, out: &mut Vec<u8>| match name {
        "resultType" | "ttlMs" | "cacheScope" => Edit::Drop,
        "tools" if tools => write_list(out, value, |out, tool| {
            let invalid = |schema: Json<'_>| ParamHeaders::from_schema(schema).is_err();
            let edit = |name: &str, value: Json<'_>, out: &mut Vec<u8>| match name {
                "execution" => Edit::Drop,
                "inputSchema" if invalid(value) => {
                    without_annotations(out, value);
                    Edit::Replaced
                }
                _ => Edit::Keep,
            };
            edit_object(out, tool, edit, Keep);
        }),
        "_meta" if value.is_object() => {
            met = true;
            let named = value.get(key::SERVER_INFO).is_some();
            let keep = |_: &str, _: Json<'_>, _: &mut Vec<u8>| Edit::Keep;
            if named {
                edit_object(out, value, keep, Keep);
            } else {
                edit_object(out, value, keep, info);
            }
            Edit::Replaced
        }
        _ => Edit::Keep,
    };
    let start = out.len();
    edit_object(out, result, edit, Keep);
    if !result.is_object() {
        return;
    }
    out.pop();
    let mut first = out.len() == start + 1;
    let mut put = |out: &mut Vec<u8>, text: &[u8]| {
        if !core::mem::take(&mut first) {
            out.push(b',');
        }
        out.extend_from_slice(text);
    };
    put(out, b"\"resultType\":\"complete\"");
    if is_cacheable(method) {
        put(out, b"\"ttlMs\":0,\"cacheScope\":\"private\"");
    }
    if !met && let Some(info) = server_info {
        put(out, b"\"_meta\":{");
        write::string(out, key::SERVER_INFO);
        out.push(b':');
        write::one_line(out, info.as_str());
        out.push(b'}');
    }
    out.push(b'}');
}

fn write_list(out: &mut Vec<u8>, list: Json<'_>, write: impl Fn(&mut Vec<u8>, Json<'_>)) -> Edit {
    let Some(items) = list.items() else { return Edit::Keep };
    out.push(b'[');
    for (index, item) in items.enumerate() {
        if index > 0 {
            out.push(b',');
        }
        write(out, item);
    }
    out.push(b']');
    Edit::Replaced
}

/// A schema whose annotations break the rules, without any: a modern client would leave the tool out. Works on
/// the text, so that depth costs no stack; only names of members are looked at, so data keeps its strings.
fn without_annotations(out: &mut Vec<u8>, schema: Json<'_>) {
    use crate::jsonrpc::lex;
    const GONE: &str = "\"x-mcp-header\"";
    let text = schema.as_str();
    let bytes = text.as_bytes();
    let (mut from, mut at) = (0, 0);
    while at < bytes.len() {
        if bytes.get(at) != Some(&b'"') {
            at += 1;
            continue;
        }
        let end = lex::skip_string(bytes, at);
        let colon = lex::skip_space(bytes, end);
        let named = text.get(at..end) == Some(GONE) && bytes.get(colon) == Some(&b':');
        if named {
            let mut to = lex::skip_value(bytes, lex::skip_space(bytes, colon + 1));
            write::one_line(out, text.get(from..at).unwrap_or_default());
            let next = lex::skip_space(bytes, to);
            if bytes.get(next) == Some(&b',') {
                to = next + 1;
            } else if out.last() == Some(&b',') {
                out.pop();
            }
            (from, at) = (to, to);
        } else {
            at = end;
        }
    }
    write::one_line(out, text.get(from..).unwrap_or_default());
}

/// Appends a modern server's final result for a legacy host of `version`: without `resultType`, `ttlMs`, `cacheScope`
/// and the protocol's members of `_meta` (B-06).
///
/// A `structuredContent` that is no object is dropped, and its JSON put into a text block if there is no other content;
/// so is an `outputSchema` of a tool that is not `type: "object"`.
pub fn result_to_legacy(out: &mut Vec<u8>, method: &str, result: Json<'_>, version: Version) {
    let call = method == "tools/call";
    let mut unread = None;
    let mut empty = call;
    let edit = |name: &str, value: Json<'_>, out: &mut Vec<u8>| match name {
        "resultType" | "ttlMs" | "cacheScope" => Edit::Drop,
        "_meta" => write_meta(out, value),
        "structuredContent" if call && (version < Version::V2025_06_18 || !value.is_object()) => {
            unread = Some(alloc::string::String::from(value.as_str()));
            Edit::Drop
        }
        "content" if call && value.items().is_some_and(|mut items| items.next().is_none()) => Edit::Drop,
        "tools" if method == "tools/list" => write_list(out, value, |out, tool| {
            let edit = |name: &str, value: Json<'_>, _: &mut Vec<u8>| match name {
                "execution" => Edit::Drop,
                "title" if version < Version::V2025_06_18 => Edit::Drop,
                "outputSchema" if version < Version::V2025_06_18 || !is_object_schema(value) => Edit::Drop,
                _ => Edit::Keep,
            };
            edit_object(out, tool, edit, Keep);
        }),
        _ => {
            empty &= name != "content";
            Edit::Keep
        }
    };
    let start = out.len();
    edit_object(out, result, edit, Keep);
    if empty && result.is_object() {
        out.pop();
        out.extend_from_slice(if out.len() == start + 1 { b"\"content\":[" } else { b",\"content\":[" });
        if let Some(value) = unread {
            out.extend_from_slice(b"{\"type\":\"text\",\"text\":");
            write::string(out, &value);
            out.push(b'}');
        }
        out.extend_from_slice(b"]}");
    }
}

fn write_meta(out: &mut Vec<u8>, meta: Json<'_>) -> Edit {
    if meta.kind() != JsonKind::Object {
        return Edit::Drop;
    }
    let mark = out.len();
    let edit = |name: &str, _: Json<'_>, _: &mut Vec<u8>| {
        if name.starts_with("io.modelcontextprotocol/") && name != "io.modelcontextprotocol/related-task" {
            Edit::Drop
        } else {
            Edit::Keep
        }
    };
    edit_object(out, meta, edit, Keep);
    if out.get(mark..) == Some(b"{}") { Edit::Drop } else { Edit::Replaced }
}
