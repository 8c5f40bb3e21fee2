//! Whose reply a line was that is too long to be read: told by how it begins.

use mrtr_core::{
    Limits,
    jsonrpc::{Json, RequestId},
};

/// Bytes of a line that are looked at.
const BYTES: usize = 512;

/// The beginning of the line that is coming in.
#[derive(Default)]
pub(super) struct Head {
    bytes: Vec<u8>,
    /// The line is over: the next byte begins another.
    over: bool,
}

impl Head {
    /// Takes bytes of one line; its end may be the last of them.
    pub(super) fn take(&mut self, piece: &[u8]) {
        if std::mem::take(&mut self.over) {
            self.bytes.clear();
        }
        let room = BYTES - self.bytes.len();
        self.bytes.extend(piece.iter().take(room));
        self.over = piece.ends_with(b"\n");
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Whose {
    /// It is no reply.
    Nobody,
    /// It says so.
    Id(RequestId),
    /// Anybody's.
    Unknown,
}

/// Looks at the first members of a message, as far as they are texts and numbers.
pub(super) fn whose(head: &[u8]) -> Whose {
    let Some(mut rest) = after(head, b'{') else { return Whose::Nobody };
    while let Some((name, tail)) = token(rest) {
        if name == b"\"method\"" {
            return Whose::Nobody;
        }
        let Some((value, tail)) = after(tail, b':').and_then(token) else { break };
        if name == b"\"id\"" {
            let whole = after(tail, b',').or_else(|| after(tail, b'}')).is_some();
            let text = std::str::from_utf8(value).ok().filter(|_| whole);
            let json = text.and_then(|text| Json::parse(text, &Limits::default()).ok());
            return json.and_then(RequestId::from_json).map_or(Whose::Unknown, Whose::Id);
        }
        let Some(tail) = after(tail, b',') else { break };
        rest = tail;
    }
    Whose::Unknown
}

/// What stands behind this byte, if it is the next one but for white space.
fn after(bytes: &[u8], mark: u8) -> Option<&[u8]> {
    bytes.trim_ascii_start().strip_prefix(&[mark])
}

/// A string or a number at the beginning, and what stands behind it.
fn token(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let bytes = bytes.trim_ascii_start();
    let end = match bytes.split_first()? {
        (b'"', inside) => {
            let mut escaped = false;
            let end = inside.iter().position(|byte| {
                let ends = *byte == b'"' && !escaped;
                escaped = *byte == b'\\' && !escaped;
                ends
            });
            end? + 2
        }
        // One that is not cut off.
        (b'-' | b'0'..=b'9', _) => bytes.iter().position(|byte| !matches!(byte, b'-' | b'0'..=b'9'))?,
        _ => return None,
    };
    bytes.split_at_checked(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn told_by_the_first_members() {
        for (head, expected) in [
            (r#"{"jsonrpc":"2.0","id":7,"result":{"x"#, Whose::Id(7.into())),
            (r#" { "id" : "a\"b" , "result":"#, Whose::Id(r#"a"b"#.into())),
            (r#"{"jsonrpc":"2.0","method":"notifications/message","params":"#, Whose::Nobody),
            (r#"{"id":1,"method":"ping"#, Whose::Id(1.into())),
            (r#"{"jsonrpc":"2.0","result":{"id":7"#, Whose::Unknown),
            (r#"{"id":12"#, Whose::Unknown),
            (r#"{"id":1.5,"#, Whose::Unknown),
            (r#"{"id":null,"error""#, Whose::Unknown),
            (r#"{"id":"never ends"#, Whose::Unknown),
            ("{", Whose::Unknown),
            ("xxxxxx", Whose::Nobody),
            ("", Whose::Nobody),
        ] {
            assert_eq!(whose(head.as_bytes()), expected, "{head}");
        }
    }

    #[test]
    fn each_line_has_its_own_beginning() {
        let mut head = Head::default();
        for piece in [b"ab".as_slice(), b"c\n", b"de\n", &[b'x'; 2 * BYTES]] {
            head.take(piece);
        }
        assert_eq!(head.bytes(), [b'x'; BYTES]);
        head.take(b"\n");
        head.take(b"f");
        assert_eq!(head.bytes(), b"f");
    }
}
