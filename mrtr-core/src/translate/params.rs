//! Parameters of requests (BT-8, R-032, R-258).

use alloc::vec::Vec;

use super::edit::{Edit, Tail, edit_object};
use crate::{
    jsonrpc::{Json, RequestId, write},
    wire::{Implementation, LogLevel, Version, key},
};

/// `_meta` of a modern request that is made for a legacy host.
#[derive(Clone, Copy, Debug)]
#[allow(clippy::exhaustive_structs)]
pub struct ModernMeta<'a> {
    /// Who calls: the bridge.
    pub client: &'a Implementation,
    /// What the host can answer: JSON text of a capabilities object.
    pub capabilities: &'a str,
    /// What the host set by `logging/setLevel`.
    pub log_level: Option<LogLevel>,
    /// The token of this leg and round, if the host gave one (R-258, G-35).
    pub progress_token: Option<&'a RequestId>,
}

/// Members of `_meta` that belong to one leg.
fn is_protocols(name: &str) -> bool {
    matches!(
        name,
        key::PROTOCOL_VERSION
            | key::CLIENT_CAPABILITIES
            | key::CLIENT_INFO
            | key::LOG_LEVEL
            | key::PROGRESS_TOKEN
    )
}

/// Appends the params of a modern request for a legacy server: without the protocol's members of `_meta`,
/// `inputResponses` and `requestState`; with this leg's `progressToken`, if the host wants progress. Vendors' members of
/// `_meta`, `traceparent` among them, are kept.
pub fn params_to_legacy(out: &mut Vec<u8>, params: Json<'_>, progress_token: Option<&RequestId>) {
    let token = |tail: &mut Tail<'_>| {
        if let Some(token) = progress_token {
            token.write(tail.member(key::PROGRESS_TOKEN));
        }
    };
    let mut met = false;
    let edit = |name: &str, value: Json<'_>, out: &mut Vec<u8>| match name {
        "inputResponses" | "requestState" => Edit::Drop,
        "_meta" => {
            met = true;
            let mark = out.len();
            let own = |name: &str, _: Json<'_>, _: &mut Vec<u8>| {
                if is_protocols(name) { Edit::Drop } else { Edit::Keep }
            };
            edit_object(out, value, own, token);
            if out.get(mark..) == Some(b"{}") { Edit::Drop } else { Edit::Replaced }
        }
        _ => Edit::Keep,
    };
    let start = out.len();
    edit_object(out, params, edit, super::Keep);
    if !met && let Some(token) = progress_token {
        out.pop();
        let first = out.len() == start + 1;
        out.extend_from_slice(if first {
            b"\"_meta\":{\"progressToken\":"
        } else {
            b",\"_meta\":{\"progressToken\":"
        });
        token.write(out);
        out.extend_from_slice(b"}}");
    }
}

/// Appends the params of a legacy request for a modern server: with the protocol's members of `_meta`, then
/// the host's other ones, then, in a retry, `answers` as `inputResponses` and `state`, the JSON text of a string, as
/// `requestState`. `params.task` is dropped: tasks are not declared.
pub fn params_to_modern(
    out: &mut Vec<u8>,
    params: Option<Json<'_>>,
    meta: &ModernMeta<'_>,
    answers: Option<&[u8]>,
    state: Option<&str>,
) {
    let params = params.unwrap_or(Json::EMPTY_OBJECT);
    let edit = |name: &str, _: Json<'_>, _: &mut Vec<u8>| {
        if matches!(name, "_meta" | "task" | "inputResponses" | "requestState") {
            Edit::Drop
        } else {
            Edit::Keep
        }
    };
    let more = |tail: &mut Tail<'_>| {
        write_meta(tail.member("_meta"), params.get("_meta"), meta);
        if let Some(answers) = answers {
            tail.member("inputResponses").extend_from_slice(answers);
        }
        if let Some(state) = state {
            tail.member("requestState").extend_from_slice(state.as_bytes());
        }
    };
    edit_object(out, params, edit, more);
}

fn write_meta(out: &mut Vec<u8>, own: Option<Json<'_>>, meta: &ModernMeta<'_>) {
    let own = own.filter(|own| own.is_object()).unwrap_or(Json::EMPTY_OBJECT);
    let edit =
        |name: &str, _: Json<'_>, _: &mut Vec<u8>| if is_protocols(name) { Edit::Drop } else { Edit::Keep };
    let more = |tail: &mut Tail<'_>| {
        write::string(tail.member(key::PROTOCOL_VERSION), Version::LATEST.name());
        meta.client.write(tail.member(key::CLIENT_INFO));
        write::one_line(tail.member(key::CLIENT_CAPABILITIES), meta.capabilities);
        if let Some(level) = meta.log_level {
            write::string(tail.member(key::LOG_LEVEL), level.name());
        }
        if let Some(token) = meta.progress_token {
            token.write(tail.member(key::PROGRESS_TOKEN));
        }
    };
    edit_object(out, own, edit, more);
}
