//! The structural digest of one value, in one pass that does not recurse.

use sha2::{Digest as _, Sha256};

use super::{DigestFault, number::Decimal};
use crate::jsonrpc::{Json, lex, names, stack::Stack, text};

/// The digest of `value`; see the module above for the format. If the value is an object, its own member
/// called `without` is left out, and not looked at.
pub(super) fn hash(value: Json<'_>, without: Option<&str>) -> Result<[u8; 32], DigestFault> {
    let text = value.as_str();
    match text.as_bytes().first() {
        Some(b'{' | b'[') => Walk::new(text).run(without),
        _ => {
            let mut sink = Sink::default();
            sink.scalar(text, 0)?;
            Ok(sink.finish())
        }
    }
}

/// The digest of `{"mode":"form","message":…,"requestedSchema":…}`, given the digest of the schema.
pub(super) fn hash_form(message: &str, requested: &[u8; 32]) -> [u8; 32] {
    let mut sink = Sink::default();
    sink.put(b"o");
    sink.length(3);
    for (name, text) in [("message", message), ("mode", "form")] {
        sink.plain(name);
        sink.put(b"s");
        sink.plain(text);
    }
    sink.plain("requestedSchema");
    sink.head(b'o', 32);
    sink.put(requested);
    sink.finish()
}

/// What a container is; a whole word, so that a [`Frame`] has no padding and is copied as it was written.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
#[repr(u64)]
enum Kind {
    #[default]
    Array,
    Object,
}

/// A container whose end has not been seen.
#[derive(Clone, Copy, Default)]
struct Frame {
    kind: Kind,
    /// Where its own children begin among all.
    children_from: usize,
    /// Where its children's digests begin among all.
    digests_from: usize,
}

/// A member or an element of an open container: 24 bytes, whatever it says.
#[derive(Clone, Copy, Default)]
struct Child {
    /// Where the name stands in the text; of no meaning in an array.
    name: usize,
    /// Where the value stands in the text.
    value: usize,
    /// If the value is a container: the index of its digest.
    digest: usize,
}

struct Walk<'a> {
    text: &'a str,
    open: Stack<Frame, 8>,
    /// The children of all open containers; those of the innermost are at the end.
    children: Stack<Child, 16>,
    /// The digests of those children that are containers, in the same order.
    digests: Stack<[u8; 32], 4>,
    #[cfg(test)]
    hashed: usize,
}

impl<'a> Walk<'a> {
    fn new(text: &'a str) -> Self {
        Self {
            text,
            open: Stack::new(),
            children: Stack::new(),
            digests: Stack::new(),
            #[cfg(test)]
            hashed: 0,
        }
    }

    fn run(&mut self, without: Option<&str>) -> Result<[u8; 32], DigestFault> {
        let bytes = self.text.as_bytes();
        let mut at = 0;
        // The name that was read and waits for its value; `None` where a name comes next.
        let mut name = None;
        loop {
            at = lex::skip_space(bytes, at);
            // Valid text ends with the outermost container. Any other is taken to close what is open.
            let byte = bytes.get(at).copied().unwrap_or(b'}');
            let in_object = self.open.as_slice().last().is_some_and(|frame| frame.kind == Kind::Object);
            match byte {
                b',' | b':' => at += 1,
                b'}' | b']' => {
                    if let Some(digest) = self.close()? {
                        return Ok(digest);
                    }
                    at += 1;
                }
                b'"' if in_object && name.is_none() => {
                    let end = lex::skip_string(bytes, at);
                    if self.open.len() == 1 && without.is_some_and(|without| text::is(self.text, at, without))
                    {
                        let colon = lex::skip_space(bytes, end);
                        at = lex::skip_value(bytes, lex::skip_space(bytes, colon + 1));
                    } else {
                        name = Some(at);
                        at = end;
                    }
                }
                _ => {
                    if !self.open.is_empty() {
                        self.children.push(Child { name: name.take().unwrap_or(at), value: at, digest: 0 });
                    }
                    if matches!(byte, b'{' | b'[') {
                        self.open.push(Frame {
                            kind: if byte == b'{' { Kind::Object } else { Kind::Array },
                            children_from: self.children.len(),
                            digests_from: self.digests.len(),
                        });
                        at += 1;
                    } else {
                        at = lex::skip_value(bytes, at);
                    }
                }
            }
        }
    }

    /// Hashes the innermost container and hands the digest to the one around it, or out.
    fn close(&mut self) -> Result<Option<[u8; 32]>, DigestFault> {
        let Some(frame) = self.open.pop() else { return Ok(Some(Sink::default().finish())) };
        let own = self.children.as_mut_slice().get_mut(frame.children_from..).unwrap_or_default();
        let mut sink = Sink::default();
        let is_object = frame.kind == Kind::Object;
        sink.put(if is_object { b"o" } else { b"a" });
        sink.length(own.len());
        if is_object {
            // Names are unique in admitted text; in any other, equal ones keep their order.
            let _ = names::sort(self.text, own, |child| child.name);
        }
        for child in own {
            if is_object {
                sink.string(self.text, child.name)?;
            }
            let value = self.text.get(child.value..).unwrap_or("");
            match value.as_bytes().first() {
                Some(&tag @ (b'{' | b'[')) => {
                    sink.head(if tag == b'{' { b'o' } else { b'a' }, 32);
                    sink.put(
                        self.digests.as_slice().get(child.digest).map_or(&[], |digest| digest.as_slice()),
                    );
                }
                _ => sink.scalar(self.text, child.value)?,
            }
        }
        self.children.truncate(frame.children_from);
        self.digests.truncate(frame.digests_from);
        #[cfg(test)]
        {
            self.hashed += sink.bytes;
        }
        let digest = sink.finish();
        if self.open.is_empty() {
            return Ok(Some(digest));
        }
        if let Some(child) = self.children.as_mut_slice().last_mut() {
            child.digest = self.digests.len();
            self.digests.push(digest);
        }
        Ok(None)
    }
}

/// The hash, and the encodings that go into it.
#[derive(Default)]
struct Sink {
    hash: Sha256,
    #[cfg(test)]
    bytes: usize,
}

impl Sink {
    fn put(&mut self, bytes: &[u8]) {
        self.hash.update(bytes);
        #[cfg(test)]
        {
            self.bytes += bytes.len();
        }
    }

    fn length(&mut self, length: usize) {
        // A length of this process's memory: usize is at most 64 bits wide.
        self.put(&u64::try_from(length).unwrap_or(u64::MAX).to_be_bytes());
    }

    /// A tag and a length.
    fn head(&mut self, tag: u8, length: usize) {
        self.put(&[tag]);
        self.length(length);
    }

    /// The length and the UTF-8 of text without escapes.
    fn plain(&mut self, text: &str) {
        self.length(text.len());
        self.put(text.as_bytes());
    }

    /// A string, by where it opens: its length and its UTF-8.
    fn string(&mut self, text: &str, at: usize) -> Result<(), DigestFault> {
        let (inside, plain) = text::inside(text, at);
        if plain {
            self.plain(inside);
            return Ok(());
        }
        let mut length = 0;
        for piece in text::pieces(inside) {
            length += match piece {
                text::Piece::Run(run) => run.len(),
                text::Piece::Point(point) => {
                    char::from_u32(point).ok_or(DigestFault::LoneSurrogate { at })?.len_utf8()
                }
            };
        }
        self.length(length);
        for piece in text::pieces(inside) {
            match piece {
                text::Piece::Run(run) => self.put(run.as_bytes()),
                text::Piece::Point(point) => {
                    let character = char::from_u32(point).unwrap_or(char::REPLACEMENT_CHARACTER);
                    self.put(character.encode_utf8(&mut [0; 4]).as_bytes());
                }
            }
        }
        Ok(())
    }

    /// A value that is no container, by where it stands.
    fn scalar(&mut self, text: &str, at: usize) -> Result<(), DigestFault> {
        match text.as_bytes().get(at) {
            Some(b'"') => {
                self.put(b"s");
                self.string(text, at)?;
            }
            Some(&tag @ (b'n' | b't' | b'f')) => self.head(tag, 0),
            _ => {
                let end = lex::skip_value(text.as_bytes(), at);
                match Decimal::read(text.get(at..end).unwrap_or(""), at)? {
                    None => self.head(b'd', 0),
                    Some(number) => {
                        self.head(b'd', 9 + number.len());
                        self.put(if number.negative { b"-" } else { b"+" });
                        self.put(&number.exponent.to_be_bytes());
                        for digits in number.digits {
                            self.put(digits);
                        }
                    }
                }
            }
        }
        Ok(())
    }

    fn finish(self) -> [u8; 32] {
        self.hash.finalize().into()
    }
}

#[cfg(test)]
mod tests {
    use alloc::{format, string::String};

    use super::*;

    /// The work is bounded by the size of the text, whatever is in it: at most 25 bytes hashed for each of its.
    #[test]
    fn hashes_at_most_25_bytes_for_each_byte_of_text() {
        let many = |one: &str| format!("[{}null]", format!("{one},").repeat(4_000));
        let members: String = (0..100_000).map(|n| format!("\"{n:x}\":1,")).collect();
        for text in [
            many("1"),
            many("\"\""),
            many("[]"),
            many("{}"),
            many("[[]]"),
            many("{\"\":0}"),
            many("1e-999999999"),
            many("\"\\u00e9\""),
            format!("{{{}}}", members.trim_end_matches(',')),
            "[".repeat(50_000) + &"]".repeat(50_000),
            "{\"\":".repeat(50_000) + "1" + &"}".repeat(50_000),
            format!("[1{}]", "0".repeat(200_000)),
            format!("[\"{}\"]", "\\n".repeat(200_000)),
        ] {
            let mut walk = Walk::new(&text);
            walk.run(None).unwrap();
            assert!(walk.hashed > 0);
            let start = text.get(..40).unwrap_or("");
            assert!(walk.hashed <= 25 * text.len(), "{start}: {} for {}", walk.hashed, text.len());
        }
    }

    /// Text that is not JSON has some digest, or none, and never panics or hangs.
    #[test]
    fn broken_text_ends() {
        for text in [
            "[", "{", "{\"a\"", "{\"a\":", "[[[", "{]", "[}", "[\"", "{\"\\", "[1 2]", "{1}", "{,,}", "-",
            "", "x",
        ] {
            let _ = hash(Json::trusted(text), Some("a"));
        }
    }
}
