//! The members of an object as they stand in the text, for what is passed on and not read.

use alloc::{string::String, vec::Vec};

use crate::jsonrpc::{Json, lex, write};

/// A member of an object, name and value as they were written.
#[derive(Clone, Copy)]
pub(crate) struct Member<'a> {
    /// The name's token, quotes included.
    name: &'a str,
    pub(crate) value: Json<'a>,
}

impl Member<'_> {
    /// Whether the name, decoded, is `name`.
    pub(crate) fn is_called(&self, name: &str) -> bool {
        crate::jsonrpc::text::is(self.name, 0, name)
    }

    /// Appends `"name":value`, on one line.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.name.as_bytes());
        out.push(b':');
        write::one_line(out, self.value.as_str());
    }
}

/// The members of an object, also those whose names are no text; `None` if this is no object.
pub(crate) fn members(object: Json<'_>) -> Option<Members<'_>> {
    object.is_object().then_some(Members { text: object.as_str(), at: 1 })
}

/// See [`members`].
#[derive(Clone)]
pub(crate) struct Members<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Iterator for Members<'a> {
    type Item = Member<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        let bytes = self.text.as_bytes();
        let mut at = lex::skip_space(bytes, self.at);
        if bytes.get(at) == Some(&b',') {
            at = lex::skip_space(bytes, at + 1);
        }
        if bytes.get(at) != Some(&b'"') {
            return None;
        }
        let name_end = lex::skip_string(bytes, at);
        let name = self.text.get(at..name_end)?;
        let colon = lex::skip_space(bytes, name_end);
        let start = lex::skip_space(bytes, colon + 1);
        self.at = lex::skip_value(bytes, start);
        let value = Json::trusted(self.text.get(start..self.at)?);
        Some(Member { name, value })
    }
}

/// What was written piece by piece from text.
pub(crate) fn into_string(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_default()
}

/// At most 64 characters of a peer's word, for an error.
pub(crate) fn excerpt(word: &str) -> String {
    word.chars().take(64).collect()
}
