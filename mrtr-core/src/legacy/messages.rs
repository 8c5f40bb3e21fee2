//! Messages for a client's model, in the words of the revisions before 2026-07-28.

use alloc::vec::Vec;

use crate::jsonrpc::{Json, write as json};

/// Messages for a model. In these revisions the structured content of a tool's result is an object; any other
/// value is left out: the content beside it says the same.
pub(super) fn write(out: &mut Vec<u8>, messages: Json<'_>) {
    let fits = |block: Json<'_>| block.get("structuredContent").is_none_or(Json::is_object);
    let mut all = messages.items().into_iter().flatten();
    if all.all(|message| fits(content(message)) && content(message).items().into_iter().flatten().all(fits)) {
        return json::one_line(out, messages.as_str());
    }
    write_list(out, messages, |out, message| {
        write_members(out, message, |out, name, value| match value.items() {
            Some(_) if name == "content" => write_list(out, value, write_block),
            None if name == "content" => write_block(out, value),
            Some(_) | None => json::one_line(out, value.as_str()),
        });
    });
}

fn content(message: Json<'_>) -> Json<'_> {
    message.get("content").unwrap_or(Json::NULL)
}

fn write_block(out: &mut Vec<u8>, block: Json<'_>) {
    let mut first = true;
    out.push(b'{');
    for (name, value) in block.members().into_iter().flatten() {
        if name == "structuredContent" && !value.is_object() {
            continue;
        }
        if !core::mem::take(&mut first) {
            out.push(b',');
        }
        json::string(out, &name);
        out.push(b':');
        json::one_line(out, value.as_str());
    }
    out.push(b'}');
}

fn write_list(out: &mut Vec<u8>, list: Json<'_>, write: impl Fn(&mut Vec<u8>, Json<'_>)) {
    out.push(b'[');
    for (index, item) in list.items().into_iter().flatten().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        write(out, item);
    }
    out.push(b']');
}

fn write_members(out: &mut Vec<u8>, object: Json<'_>, write: impl Fn(&mut Vec<u8>, &str, Json<'_>)) {
    out.push(b'{');
    for (index, (name, value)) in object.members().into_iter().flatten().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        json::string(out, &name);
        out.push(b':');
        write(out, &name, value);
    }
    out.push(b'}');
}
