//! Results as bytes: `resultType`, `_meta` and caching hints go in here and nowhere else.

use alloc::vec::Vec;

use crate::{
    jsonrpc::{Json, RequestId, write},
    seal::Sealed,
    tape::Outgoing,
    wire::{ClientCapabilities, Implementation, key},
};

/// Our own member of an interim result's `_meta`: why the last answers to these keys did not fit.
pub(crate) const INVALID: &str = "dev.mrtr/invalid";

/// About what a reply takes beside what it carries, if id and names are short: its buffer is made once.
const FRAME: usize = 256;

/// What becomes of caching hints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hints {
    /// As the result has them.
    AsIs,
    /// As the result has them, else not cacheable.
    Default,
    /// Not cacheable, whatever the result says.
    Never,
}

/// Appends a whole `complete` response: the members of `result` with ours put in.
pub(crate) fn write_result(
    out: &mut Vec<u8>,
    id: &RequestId,
    info: &Implementation,
    result: Json<'_>,
    hints: Hints,
) {
    out.reserve(FRAME + result.as_str().len());
    write::result_head(out, id);
    out.extend_from_slice(b"{\"resultType\":\"complete\"");
    let (mut meta, mut ttl, mut scope) = (None, false, false);
    for (name, value) in result.members().into_iter().flatten() {
        match &*name {
            "resultType" => continue,
            "_meta" => {
                meta = Some(value);
                continue;
            }
            "ttlMs" | "cacheScope" if hints == Hints::Never => continue,
            "ttlMs" => ttl = true,
            "cacheScope" => scope = true,
            _ => {}
        }
        out.push(b',');
        write::string(out, &name);
        out.push(b':');
        write::one_line(out, value.as_str());
    }
    if hints != Hints::AsIs {
        if !ttl {
            out.extend_from_slice(b",\"ttlMs\":0");
        }
        if !scope {
            out.extend_from_slice(b",\"cacheScope\":\"private\"");
        }
    }
    out.extend_from_slice(b",\"_meta\":{");
    server_info(out, info);
    for (name, value) in
        meta.and_then(Json::members).into_iter().flatten().filter(|(name, _)| name != key::SERVER_INFO)
    {
        out.push(b',');
        write::string(out, &name);
        out.push(b':');
        write::one_line(out, value.as_str());
    }
    out.extend_from_slice(b"}}}");
}

/// Appends a whole `input_required` response. No caching hints; never an empty map (G-02); asks as the client
/// with these capabilities may have them.
pub(crate) fn write_interim(
    out: &mut Vec<u8>,
    id: &RequestId,
    info: &Implementation,
    asks: &Outgoing,
    capabilities: ClientCapabilities,
    state: &Sealed,
) {
    let asked = asks.asks.iter().map(|ask| ask.size()).sum::<usize>();
    out.reserve(FRAME + asked + state.text_len());
    write::result_head(out, id);
    out.extend_from_slice(b"{\"resultType\":\"input_required\"");
    if !asks.asks.is_empty() {
        out.extend_from_slice(b",\"inputRequests\":{");
        for (index, ask) in asks.asks.iter().enumerate() {
            if index > 0 {
                out.push(b',');
            }
            write::string(out, &ask.key);
            out.push(b':');
            ask.request.write_for(capabilities, out);
        }
        out.push(b'}');
    }
    out.extend_from_slice(b",\"requestState\":\"");
    state.write(out);
    out.extend_from_slice(b"\",\"_meta\":{");
    server_info(out, info);
    let mut invalid = asks.asks.iter().filter_map(|ask| Some((&ask.key, ask.invalid.as_deref()?))).peekable();
    if invalid.peek().is_some() {
        out.push(b',');
        write::word(out, INVALID);
        out.extend_from_slice(b":{");
        for (index, (key, reason)) in invalid.enumerate() {
            if index > 0 {
                out.push(b',');
            }
            write::string(out, key);
            out.push(b':');
            write::string(out, reason);
        }
        out.push(b'}');
    }
    out.extend_from_slice(b"}}}");
}

fn server_info(out: &mut Vec<u8>, info: &Implementation) {
    write::word(out, key::SERVER_INFO);
    out.push(b':');
    info.write(out);
}
