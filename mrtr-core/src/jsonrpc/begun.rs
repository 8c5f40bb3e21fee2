//! What the beginning of a message says of it, where the message is too long to be held.

use super::{RequestId, admit::Outline};

/// What the beginning of a message says of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Begun {
    /// It is a response to this request.
    Reply(RequestId),
    /// It is a request, of this id.
    Request(RequestId),
    /// It is no response: a notification, a request whose id comes later, or no message at all.
    NoReply,
    /// It may be a response to anything: its id does not stand before what it brings.
    Unclear,
}

/// Looks at messages that are too long to be held: they are cut off anywhere.
pub(crate) fn reply_begun(beginning: &[u8]) -> Begun {
    let valid = match core::str::from_utf8(beginning) {
        Ok(text) => text,
        Err(cut) => {
            let valid = beginning.get(..cut.valid_up_to()).unwrap_or_default();
            core::str::from_utf8(valid).unwrap_or_default()
        }
    };
    let outline = Outline::read(valid);
    let replies = outline.replies();
    let asks = outline.method.is_some() && !replies;
    // The id is whole only if something follows it.
    if asks
        && outline.params.is_some()
        && !outline.two_ids
        && let Some(id) = outline.id.and_then(RequestId::from_json)
    {
        return Begun::Request(id);
    }
    if asks || !valid.trim_ascii_start().starts_with('{') && !beginning.is_empty() {
        return Begun::NoReply;
    }
    let id = outline.id.filter(|_| replies && !outline.two_ids).and_then(RequestId::from_json);
    id.map_or(Begun::Unclear, Begun::Reply)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_message_is_that_is_cut_off() {
        let reply = |id: i64| Begun::Reply(id.into());
        for (beginning, expected) in [
            (r#"{"jsonrpc":"2.0","id":7,"result":{"x"#, reply(7)),
            (r#" { "id" : 7 , "error":"#, reply(7)),
            (r#"{"jsonrpc":"2.0","method":"notifications/message","params":"#, Begun::NoReply),
            (r#"{"id":7,"method":"ping","params"#, Begun::NoReply),
            (r#"{"id":7,"method":"ping","params":{"a":"x"#, Begun::Request(7.into())),
            (r#"{"method":"ping","params":{"a":"x"#, Begun::NoReply),
            (r#"{"id":7,"id":8,"method":"ping","params":{"#, Begun::NoReply),
            ("xxxxxx", Begun::NoReply),
            (r#"["#, Begun::NoReply),
            (r#"{"jsonrpc":"2.0","result":{"id":7"#, Begun::Unclear),
            (r#"{"id":12"#, Begun::Unclear),
            (r#"{"id":12,"jsonrpc":"2.0","#, Begun::Unclear),
            (r#"{"id":7,"id":8,"result":{"x"#, Begun::Unclear),
            (r#"{"id":1.5,"result":"#, Begun::Unclear),
            (r#"{"id":7,"method":"ping","result":{"x"#, reply(7)),
            (r#"{"id":7,"method":"ping","result":null,"params":{"a":"x"#, Begun::Request(7.into())),
            ("", Begun::Unclear),
        ] {
            assert_eq!(reply_begun(beginning.as_bytes()), expected, "{beginning}");
        }
    }
}
