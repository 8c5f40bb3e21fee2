//! The spellings of well-known encoders.

use std::fmt::Write as _;

use super::{Decimal, Tree, positional_number};

/// How well-known encoders write a value whose numbers are doubles.
#[derive(Clone, Copy, Debug)]
pub enum Encoder {
    /// `JSON.stringify`
    JavaScript,
    /// `json.dumps`
    Python,
    /// `encoding/json`
    Go,
}

impl Encoder {
    pub fn encode(self, tree: &Tree) -> String {
        let mut out = String::new();
        self.value(tree, &mut out);
        out
    }

    fn value(self, tree: &Tree, out: &mut String) {
        let (comma, colon) = match self {
            Self::Python => (", ", ": "),
            Self::JavaScript | Self::Go => (",", ":"),
        };
        match tree {
            Tree::Null => out.push_str("null"),
            Tree::Bool(value) => write!(out, "{value}").unwrap(),
            Tree::Number(number) => self.number(number, out),
            Tree::Text(text) => self.text(text, out),
            Tree::Array(elements) => {
                out.push('[');
                for (n, element) in elements.iter().enumerate() {
                    out.push_str(if n == 0 { "" } else { comma });
                    self.value(element, out);
                }
                out.push(']');
            }
            Tree::Object(members) => {
                // JavaScript and Python keep the order of the text that was read: any. Go sorts.
                let mut members: Vec<_> = members.iter().collect();
                if !matches!(self, Self::Go) {
                    members.reverse();
                }
                out.push('{');
                for (n, (name, member)) in members.into_iter().enumerate() {
                    out.push_str(if n == 0 { "" } else { comma });
                    self.text(name, out);
                    out.push_str(colon);
                    self.value(member, out);
                }
                out.push('}');
            }
        }
    }

    fn number(self, number: &Decimal, out: &mut String) {
        let Decimal { negative, digits, exponent } = number;
        out.push_str(if *negative { "-" } else { "" });
        if digits.is_empty() {
            out.push_str(if matches!(self, Self::Python) { "0.0" } else { "0" });
            return;
        }
        // The exponent of the scientific form.
        let scientific = exponent + i64::try_from(digits.len()).unwrap() - 1;
        let (from, to) = if matches!(self, Self::Python) { (-4, 16) } else { (-6, 21) };
        if (from..to).contains(&scientific) {
            positional_number(digits, *exponent, out);
            if matches!(self, Self::Python) && *exponent >= 0 {
                out.push_str(".0");
            }
            return;
        }
        let (first, rest) = digits.split_at(1);
        out.push_str(first);
        if !rest.is_empty() {
            write!(out, ".{rest}").unwrap();
        }
        let sign = if scientific < 0 { '-' } else { '+' };
        match self {
            Self::Python => write!(out, "e{sign}{:02}", scientific.abs()).unwrap(),
            Self::JavaScript | Self::Go => write!(out, "e{sign}{}", scientific.abs()).unwrap(),
        }
    }

    fn text(self, text: &str, out: &mut String) {
        out.push('"');
        for character in text.chars() {
            match (self, character) {
                (_, '"' | '\\') => out.extend(['\\', character]),
                (_, '\n') => out.push_str("\\n"),
                (_, '\r') => out.push_str("\\r"),
                (_, '\t') => out.push_str("\\t"),
                (_, '\u{8}') => out.push_str("\\b"),
                (_, '\u{c}') => out.push_str("\\f"),
                (Self::Python, '\u{7f}'..) | (_, '\0'..=' ') if character != ' ' => {
                    for unit in character.encode_utf16(&mut [0; 2]) {
                        write!(out, "\\u{unit:04x}").unwrap();
                    }
                }
                (Self::Go, '<' | '>' | '&' | '\u{2028}' | '\u{2029}') => {
                    write!(out, "\\u{:04x}", u32::from(character)).unwrap();
                }
                _ => out.push(character),
            }
        }
        out.push('"');
    }
}
