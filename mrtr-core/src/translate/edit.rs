//! Rewriting single members of an object: the rest is copied byte for byte.

use alloc::{borrow::Cow, vec::Vec};

use crate::jsonrpc::{Json, lex, text, write};

/// What becomes of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Edit {
    /// It is copied.
    Keep,
    /// It is left out.
    Drop,
    /// The caller has appended another value.
    Replaced,
}

/// Members appended after the ones that were there.
pub(crate) struct Tail<'o> {
    out: &'o mut Vec<u8>,
    first: bool,
}

impl Tail<'_> {
    /// Begins a member; the caller appends its value.
    pub(crate) fn member(&mut self, name: &str) -> &mut Vec<u8> {
        if !core::mem::take(&mut self.first) {
            self.out.push(b',');
        }
        write::string(self.out, name);
        self.out.push(b':');
        self.out
    }
}

/// For objects to which nothing is added.
pub(crate) struct Keep;

/// What adds members to an object after its own.
pub(crate) trait Add {
    fn add(self, tail: &mut Tail<'_>);
}

impl Add for Keep {
    fn add(self, _: &mut Tail<'_>) {}
}

impl<F: FnOnce(&mut Tail<'_>)> Add for F {
    fn add(self, tail: &mut Tail<'_>) {
        self(tail);
    }
}

/// Appends `object`, each member of which `edit` looks at in turn; then come the members of `more`. Raw line breaks
/// between tokens are dropped, for a message is one line (R-182). A value that is no object is copied.
///
/// `edit` may append to the buffer only if it returns [`Edit::Replaced`].
pub(crate) fn edit_object(
    out: &mut Vec<u8>,
    object: Json<'_>,
    mut edit: impl FnMut(&str, Json<'_>, &mut Vec<u8>) -> Edit,
    more: impl Add,
) {
    let whole = object.as_str();
    let bytes = whole.as_bytes();
    if !object.is_object() {
        return write::one_line(out, whole);
    }
    let slice = |from: usize, to: usize| whole.get(from..to).unwrap_or_default();
    out.push(b'{');
    let (mut at, mut first) = (1, true);
    // What stands before `at` has been written, or dropped.
    loop {
        let mut name_at = lex::skip_space(bytes, at);
        if bytes.get(name_at) == Some(&b',') {
            name_at = lex::skip_space(bytes, name_at + 1);
        }
        if bytes.get(name_at) != Some(&b'"') {
            break;
        }
        let (name_end, plain) = lex::skip_string_plain(bytes, name_at);
        let colon = lex::skip_space(bytes, name_end);
        let start = lex::skip_space(bytes, colon + 1);
        let end = lex::skip_value(bytes, start);
        let name = if plain {
            Cow::Borrowed(slice(name_at + 1, name_end.saturating_sub(1)))
        } else {
            // A name that is no text is nobody's: it is kept.
            text::decode(slice(name_at, name_end)).unwrap_or_default()
        };
        let mark = out.len();
        // The separator as it was, unless there is nothing to separate from.
        let separator = if first { name_at } else { at };
        write::one_line(out, slice(separator, start));
        match edit(&name, Json::trusted(slice(start, end)), out) {
            Edit::Keep => {
                write::one_line(out, slice(start, end));
                first = false;
            }
            Edit::Replaced => first = false,
            Edit::Drop => out.truncate(mark),
        }
        at = end;
    }
    let mut tail = Tail { out, first };
    more.add(&mut tail);
    out.push(b'}');
}

#[cfg(test)]
mod tests {
    use alloc::string::String;

    use super::*;
    use crate::Limits;

    fn edited(text: &str, edit: impl FnMut(&str, Json<'_>, &mut Vec<u8>) -> Edit, more: impl Add) -> String {
        let mut out = Vec::new();
        edit_object(&mut out, Json::parse(text, &Limits::default()).unwrap(), edit, more);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn what_is_kept_is_kept_to_the_byte() {
        for text in ["{}", "{\"a\" : 1.50 , \"\\u0062\":[ {} ]}", r#"{"\ud800":1e999,"a":{"a":null}}"#] {
            assert_eq!(edited(text, |_, _, _| Edit::Keep, Keep), text);
        }
        assert_eq!(edited("{\n\"a\":\n1}", |_, _, _| Edit::Keep, Keep), "{\"a\":1}");
    }

    #[test]
    fn members_go_and_come_at_every_place() {
        let text = r#"{"a":1, "b":2 ,"c":3}"#;
        let without = |gone: &'static str| edited(text, move |name, _, _| drop_if(gone.contains(name)), Keep);
        assert_eq!(without("a"), r#"{"b":2 ,"c":3}"#);
        assert_eq!(without("b"), r#"{"a":1 ,"c":3}"#);
        assert_eq!(without("c"), r#"{"a":1, "b":2}"#);
        assert_eq!(without("ab"), r#"{"c":3}"#);
        assert_eq!(without("abc"), "{}");
        let more = |tail: &mut Tail<'_>| tail.member("d").push(b'4');
        assert_eq!(edited(text, |name, _, _| drop_if(name != "b"), more), r#"{"b":2,"d":4}"#);
        assert_eq!(edited("{}", |_, _, _| Edit::Keep, more), r#"{"d":4}"#);
        let seven = |name: &str, _: Json<'_>, out: &mut Vec<u8>| {
            if name != "b" {
                return Edit::Keep;
            }
            out.push(b'7');
            Edit::Replaced
        };
        assert_eq!(edited(text, seven, Keep), r#"{"a":1, "b":7 ,"c":3}"#);
    }

    fn drop_if(gone: bool) -> Edit {
        if gone { Edit::Drop } else { Edit::Keep }
    }
}
