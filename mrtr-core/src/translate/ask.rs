//! Questions (BT-1…BT-4, R-251, R-252, R-264, G-39).

use alloc::{boxed::Box, string::String, vec::Vec};

use super::edit::{Edit, Keep, edit_object};
use crate::{
    form::{NotExpressible, downgrade},
    jsonrpc::{Json, RequestId, write},
    wire::{AskFault, AskKind, ClientCapabilities, InputRequest, Requirement, Version},
};

/// `_meta` of a task's ask in 2025-11-25: it means nothing to a modern client.
const RELATED_TASK: &str = "io.modelcontextprotocol/related-task";

/// Vendor member of `_meta` that names the upstream which asks, where there is no message to show it in.
const ORIGIN: &str = "dev.mrtr/origin";

/// Whose name the person sees with a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums)]
pub enum Origin<'a> {
    /// No name is added: the question goes through as it is.
    Untouched,
    /// This name: in brackets before the `message` of an elicitation, in `_meta["dev.mrtr/origin"]` of any other ask.
    Named(&'a str),
}

/// What of a legacy question does not go into the modern one, and what it needs.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ModernAsk {
    /// Its kind.
    pub kind: AskKind,
    /// What the host must have declared.
    pub needs: Requirement,
    /// `elicitationId` of a url ask, for `notifications/elicitation/complete`.
    pub elicitation_id: Option<Box<str>>,
    /// The token under which the upstream wants to hear that its question is being worked on.
    pub progress_token: Option<RequestId>,
}

/// Appends a legacy server's question as an entry of `inputRequests`: `method` and the params of 2026 (BT-1).
///
/// Dropped: `params.task`, `params.elicitationId`, `_meta.progressToken`, `_meta["…/related-task"]`, `execution` of
/// sampling tools, and `includeContext` unless `host` declared `sampling.context`. `_meta` keeps what is a vendor's
/// (G-39). A url is neither changed nor fetched, a schema is passed verbatim.
///
/// # Errors
///
/// It is no question of the three methods. Nothing was appended: answer the upstream `-32602`.
pub fn ask_to_modern(
    out: &mut Vec<u8>,
    method: &str,
    params: Option<Json<'_>>,
    host: ClientCapabilities,
    origin: Origin<'_>,
) -> Result<ModernAsk, AskFault> {
    let ask = InputRequest::from_parts(method, params)?;
    let kind = ask.kind();
    let mut modern = ModernAsk { kind, needs: ask.requirement(), elicitation_id: None, progress_token: None };
    if let Some(params) = params {
        if kind == AskKind::Url {
            let id = params.get("elicitationId").and_then(Json::as_string);
            modern.elicitation_id = id.map(|id| id.into_owned().into_boxed_str());
        }
        let token = params.get("_meta").and_then(|meta| meta.get("progressToken"));
        modern.progress_token = token.and_then(RequestId::from_json);
    }
    out.extend_from_slice(b"{\"method\":\"");
    out.extend_from_slice(kind.method().as_bytes());
    out.push(b'"');
    match params {
        Some(params) => {
            out.extend_from_slice(b",\"params\":");
            write_params(out, params, kind, host, origin);
        }
        None => {
            if let Origin::Named(name) = origin {
                out.extend_from_slice(b",\"params\":{\"_meta\":{");
                write_origin(out, name);
                out.extend_from_slice(b"}}");
            }
        }
    }
    out.push(b'}');
    Ok(modern)
}

fn write_origin(out: &mut Vec<u8>, name: &str) {
    write::string(out, ORIGIN);
    out.push(b':');
    write::string(out, name);
}

fn write_params(
    out: &mut Vec<u8>,
    params: Json<'_>,
    kind: AskKind,
    host: ClientCapabilities,
    origin: Origin<'_>,
) {
    // Where the name of the origin still has to go.
    let mut unnamed = match (kind, origin) {
        (AskKind::Sampling | AskKind::Roots, Origin::Named(name)) => Some(name),
        (AskKind::Form | AskKind::Url, _) | (_, Origin::Untouched) => None,
    };
    let mut meta_named = false;
    let naming = unnamed;
    let edit = |name: &str, value: Json<'_>, out: &mut Vec<u8>| match (kind, name) {
        (_, "task") | (AskKind::Url, "elicitationId") => Edit::Drop,
        (AskKind::Sampling, "includeContext") if !host.sampling_context => Edit::Drop,
        (AskKind::Sampling, "tools") => each(out, value, |out, tool| drop_member(out, tool, "execution")),
        (AskKind::Form | AskKind::Url, "message") => write_message(out, value, origin),
        (_, "_meta") => {
            meta_named = true;
            write_vendor_meta(out, value, naming)
        }
        (AskKind::Form | AskKind::Url | AskKind::Sampling | AskKind::Roots, _) => Edit::Keep,
    };
    let start = out.len();
    edit_object(out, params, edit, Keep);
    if meta_named {
        unnamed = None;
    }
    if let Some(name) = unnamed {
        out.pop();
        out.extend_from_slice(if out.len() == start + 1 { b"\"_meta\":{" } else { b",\"_meta\":{" });
        write_origin(out, name);
        out.extend_from_slice(b"}}");
    }
}

/// `message` with the origin before it.
pub(super) fn write_message(out: &mut Vec<u8>, message: Json<'_>, origin: Origin<'_>) -> Edit {
    let Origin::Named(name) = origin else { return Edit::Keep };
    if message.as_str().len() < 2 || message.as_string().is_none() {
        return Edit::Keep;
    }
    write::string(out, name);
    // The name's closing quote goes, the message follows as it was spelled.
    out.pop();
    let opening = out.len() - (written_len(name));
    out.insert(opening, b'[');
    out.extend_from_slice(b"] ");
    out.extend_from_slice(message.as_str().as_bytes().get(1..).unwrap_or_default());
    Edit::Replaced
}

/// Bytes of the name as [`write::string`] writes it, without the quotes.
fn written_len(name: &str) -> usize {
    let mut spelled = Vec::new();
    write::string(&mut spelled, name);
    spelled.len() - 2
}

fn write_vendor_meta(out: &mut Vec<u8>, meta: Json<'_>, name: Option<&str>) -> Edit {
    if !meta.is_object() {
        return Edit::Drop;
    }
    let mark = out.len();
    let edit = |key: &str, _: Json<'_>, _: &mut Vec<u8>| {
        let ours = key == "progressToken" || key == RELATED_TASK || (name.is_some() && key == ORIGIN);
        if ours { Edit::Drop } else { Edit::Keep }
    };
    match name {
        Some(name) => edit_object(out, meta, edit, |tail: &mut super::edit::Tail<'_>| {
            write::string(tail.member(ORIGIN), name);
        }),
        None => edit_object(out, meta, edit, Keep),
    }
    // An empty `_meta` says nothing.
    if out.get(mark..) == Some(b"{}") { Edit::Drop } else { Edit::Replaced }
}

/// Appends an array whose objects `write` writes.
fn each(out: &mut Vec<u8>, array: Json<'_>, write: impl Fn(&mut Vec<u8>, Json<'_>)) -> Edit {
    let Some(items) = array.items() else { return Edit::Keep };
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

fn drop_member(out: &mut Vec<u8>, object: Json<'_>, gone: &str) {
    edit_object(out, object, |name, _, _| if name == gone { Edit::Drop } else { Edit::Keep }, Keep);
}

/// How a modern question is put to a legacy host.
#[derive(Clone, Copy, Debug)]
#[allow(clippy::exhaustive_structs)]
pub struct Wording<'a> {
    /// Whose words.
    pub version: Version,
    /// What the host declared in `initialize`.
    pub capabilities: ClientCapabilities,
    /// For url asks: new, opaque, unique.
    pub elicitation_id: &'a str,
    /// Whose name is shown.
    pub origin: Origin<'a>,
}

/// Why a question cannot be put to a host of an older revision (BT-5): end the call as if the capability were missing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unsayable {
    /// The host did not declare it, or its revision does not know it.
    #[error("the host cannot be asked this")]
    Undeclared,
    /// A form that the revision has no words for.
    #[error(transparent)]
    Form(#[from] NotExpressible),
    /// Several content blocks in one message: 2025-06-18 knows one.
    #[error("a message has several content blocks")]
    Blocks,
}

/// Appends a modern question as a request to a legacy host, with `jsonrpc`, `id`, and for url asks a fresh
/// `elicitationId`. Everything else is copied, but for `includeContext` where it was not declared, outputs of
/// sampling tools that are no objects (BT-3), and what 2025-06-18 has no words for (BT-5).
///
/// # Errors
///
/// The host cannot be asked this. Nothing was appended.
pub fn ask_to_legacy(
    out: &mut Vec<u8>,
    id: i64,
    ask: &InputRequest<'_>,
    wording: &Wording<'_>,
) -> Result<(), Unsayable> {
    let kind = ask.kind();
    let capabilities = super::understood(wording.capabilities, wording.version);
    if !capabilities.allow(ask.requirement()) {
        return Err(Unsayable::Undeclared);
    }
    let narrow = wording.version < Version::V2025_11_25;
    let params = ask.params();
    let mut rewritten: Option<String> = None;
    if let Some(params) = params.filter(|_| narrow) {
        match kind {
            AskKind::Form => rewritten = Some(downgrade(params)?),
            AskKind::Sampling => {
                let mut messages = params.get("messages").and_then(Json::items).into_iter().flatten();
                if !messages.all(|message| message.get("content").is_none_or(Json::is_object)) {
                    return Err(Unsayable::Blocks);
                }
            }
            AskKind::Url | AskKind::Roots => {}
        }
    }
    out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
    write::integer(out, id);
    out.extend_from_slice(b",\"method\":\"");
    out.extend_from_slice(kind.method().as_bytes());
    out.push(b'"');
    if let Some(params) = rewritten.as_deref().map(Json::trusted).or(params) {
        out.extend_from_slice(b",\"params\":");
        // Earlier revisions have no such declaration: there the member is ordinary.
        let context = capabilities.sampling_context || narrow;
        let edit = |name: &str, value: Json<'_>, out: &mut Vec<u8>| match (kind, name) {
            (AskKind::Sampling, "includeContext") if !context => Edit::Drop,
            (AskKind::Sampling, "tools") => each(out, value, |out, tool| {
                let edit = |name: &str, value: Json<'_>, _: &mut Vec<u8>| {
                    if name == "outputSchema" && !is_object_schema(value) { Edit::Drop } else { Edit::Keep }
                };
                edit_object(out, tool, edit, Keep);
            }),
            (AskKind::Sampling, "messages") => each(out, value, write_message_blocks),
            (AskKind::Form | AskKind::Url, "message") => write_message(out, value, wording.origin),
            (AskKind::Url, "elicitationId") => Edit::Drop,
            (AskKind::Form | AskKind::Url | AskKind::Sampling | AskKind::Roots, _) => Edit::Keep,
        };
        if kind == AskKind::Url {
            let more = |tail: &mut super::edit::Tail<'_>| {
                write::string(tail.member("elicitationId"), wording.elicitation_id);
            };
            edit_object(out, params, edit, more);
        } else {
            edit_object(out, params, edit, Keep);
        }
    }
    out.push(b'}');
    Ok(())
}

pub(super) fn is_object_schema(schema: Json<'_>) -> bool {
    schema.get("type").and_then(Json::as_string).as_deref() == Some("object")
}

/// A sampling message, without structured outputs of tools that are no objects.
fn write_message_blocks(out: &mut Vec<u8>, message: Json<'_>) {
    let block = |out: &mut Vec<u8>, block: Json<'_>| {
        let edit = |name: &str, value: Json<'_>, _: &mut Vec<u8>| {
            if name == "structuredContent" && !value.is_object() { Edit::Drop } else { Edit::Keep }
        };
        edit_object(out, block, edit, Keep);
    };
    let edit = |name: &str, value: Json<'_>, out: &mut Vec<u8>| {
        if name != "content" {
            return Edit::Keep;
        }
        if value.is_object() {
            block(out, value);
            return Edit::Replaced;
        }
        each(out, value, block)
    };
    edit_object(out, message, edit, Keep);
}
