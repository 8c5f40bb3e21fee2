//! Asks as requests to the client, in the words of its revision (BT-1…BT-5, R-229, R-233, R-246).

use alloc::vec::Vec;

use super::messages;
use crate::{
    form::downgrade,
    jsonrpc::{Json, write},
    tape::OutgoingAsk,
    wire::{AskKind, ClientCapabilities, InputRequest, Version},
};

/// What the modern era calls the reason why the last answer did not fit; here it stands in the request's `_meta`.
const INVALID: &str = "dev.mrtr/invalid";

/// Whether a revision has words for an ask whose kind was declared.
pub(crate) fn sayable(version: Version) -> fn(&InputRequest<'_>) -> bool {
    match version {
        Version::V2026_07_28 | Version::V2025_11_25 => |_| true,
        Version::V2025_06_18 | Version::V2025_03_26 => narrowly_sayable,
    }
}

fn narrowly_sayable(ask: &InputRequest<'_>) -> bool {
    match (ask.kind(), ask.params()) {
        (AskKind::Form, Some(params)) => downgrade(params).is_ok(),
        (AskKind::Sampling, Some(params)) => {
            let mut messages = params.get("messages").and_then(Json::items).into_iter().flatten();
            messages.all(|message| {
                message.get("content").is_none_or(|content| content.is_object() && !is_of_tools(content))
            })
        }
        (AskKind::Url, _) | (AskKind::Form | AskKind::Sampling, None) => false,
        (AskKind::Roots, _) => true,
    }
}

/// Whether a block of content speaks of tools, which revisions before 2025-11-25 do not know in sampling.
fn is_of_tools(block: Json<'_>) -> bool {
    let kind = block.get("type").and_then(Json::as_string);
    matches!(kind.as_deref(), Some("tool_use" | "tool_result"))
}

/// How an ask is put.
pub(crate) struct Wording<'a> {
    pub(crate) version: Version,
    pub(crate) capabilities: ClientCapabilities,
    /// For url asks: new, opaque, unique.
    pub(crate) elicitation: &'a str,
}

/// Appends the whole request.
pub(crate) fn write_request(out: &mut Vec<u8>, id: i64, ask: &OutgoingAsk, wording: &Wording<'_>) {
    let kind = ask.request.kind();
    out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
    write::integer(out, id);
    out.extend_from_slice(b",\"method\":");
    write::string(out, kind.method());
    out.extend_from_slice(b",\"params\":");
    let params = ask.request.params().unwrap_or(Json::EMPTY_OBJECT);
    let narrowed = match (kind, wording.version) {
        // Only what can be said gets here.
        (AskKind::Form, Version::V2025_06_18 | Version::V2025_03_26) => downgrade(params).ok(),
        (AskKind::Form | AskKind::Url | AskKind::Sampling | AskKind::Roots, _) => None,
    };
    write_params(out, narrowed.as_deref().map_or(params, Json::trusted), ask, wording);
    out.push(b'}');
}

fn write_params(out: &mut Vec<u8>, params: Json<'_>, ask: &OutgoingAsk, wording: &Wording<'_>) {
    // Earlier revisions have no such declaration: there the member is ordinary.
    let context = wording.capabilities.sampling_context || wording.version < Version::V2025_11_25;
    let mut meta = None;
    let mut first = true;
    let mut member = |out: &mut Vec<u8>, name: &str| {
        out.push(if core::mem::take(&mut first) { b'{' } else { b',' });
        write::string(out, name);
        out.push(b':');
    };
    for (name, value) in params.members().into_iter().flatten() {
        match (ask.request.kind(), &*name) {
            (AskKind::Sampling, "includeContext") if !context => {}
            (AskKind::Url, "elicitationId") => {}
            (AskKind::Sampling, "messages") => {
                member(out, &name);
                messages::write(out, value);
            }
            (_, "_meta") if ask.invalid.is_some() => meta = Some(value),
            (AskKind::Form | AskKind::Url | AskKind::Sampling | AskKind::Roots, _) => {
                member(out, &name);
                write::one_line(out, value.as_str());
            }
        }
    }
    if ask.request.kind() == AskKind::Url {
        member(out, "elicitationId");
        write::string(out, wording.elicitation);
    }
    if let Some(reason) = &ask.invalid {
        member(out, "_meta");
        out.push(b'{');
        for (name, value) in
            meta.and_then(Json::members).into_iter().flatten().filter(|(name, _)| name != INVALID)
        {
            write::string(out, &name);
            out.push(b':');
            write::one_line(out, value.as_str());
            out.push(b',');
        }
        write::string(out, INVALID);
        out.push(b':');
        write::string(out, reason);
        out.push(b'}');
    }
    out.extend_from_slice(if first { b"{}" } else { b"}" });
}
