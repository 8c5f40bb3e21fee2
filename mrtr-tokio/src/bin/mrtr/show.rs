//! What goes to the terminal. Results to standard output, everything else to standard error.

use std::{
    borrow::Cow,
    io::{self, Write},
};

use mrtr_core::jsonrpc::Json;

/// Text of a peer without what a terminal would obey: control characters, and marks that turn the direction of
/// writing around. Line breaks and tabs stay.
pub(crate) fn harmless(text: &str) -> Cow<'_, str> {
    let harmful = |letter: char| {
        (letter.is_control() && !matches!(letter, '\n' | '\t'))
            || matches!(letter, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}' | '\u{061c}')
    };
    if text.contains(harmful) {
        Cow::Owned(text.chars().map(|letter| if harmful(letter) { '\u{fffd}' } else { letter }).collect())
    } else {
        Cow::Borrowed(text)
    }
}

/// [`harmless`] on one line, cut off after so many characters.
pub(crate) fn line(text: &str, most: usize) -> String {
    let text = harmless(text);
    let mut letters = text.chars().map(|letter| if letter.is_whitespace() { ' ' } else { letter });
    let mut out: String = letters.by_ref().take(most).collect();
    if letters.next().is_some() {
        out.push('…');
    }
    out
}

/// A reader that has left, `mrtr … | head`, is no failure.
fn write(mut to: impl Write, text: &str) {
    let _ = writeln!(to, "{text}").and_then(|()| to.flush());
}

pub(crate) fn result(text: &str) {
    write(io::stdout(), &harmless(text));
}

pub(crate) fn note(text: &str) {
    write(io::stderr(), &harmless(text));
}

pub(crate) fn complain(text: &str) {
    write(io::stderr(), &format!("mrtr: {}", harmless(text)));
}

/// A tool's result for people: its text blocks, and a word on each of the others. Whether the tool failed.
pub(crate) fn tool_result(result: Json<'_>) -> (String, bool) {
    let mut out: Vec<String> = Vec::new();
    for block in result.get("content").and_then(Json::items).into_iter().flatten() {
        let word = |name: &str| block.get(name).and_then(Json::as_string);
        let kind = word("type").unwrap_or_default();
        match word("text") {
            Some(text) if kind == "text" => out.push(text.into_owned()),
            _ => out.push(format!("[{kind}, {}]", word("mimeType").unwrap_or("no media type".into()))),
        }
    }
    if out.is_empty() {
        out.push(result.as_str().into());
    }
    (out.join("\n"), result.get("isError").and_then(Json::as_bool).unwrap_or(false))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_cannot_drive_the_terminal() {
        assert_eq!(harmless("plain\ttext\n"), "plain\ttext\n");
        assert_eq!(harmless("a\u{1b}[2Jb\rc\u{202e}d"), "a\u{fffd}[2Jb\u{fffd}c\u{fffd}d");
        assert_eq!(line("a\nb\u{7}c", 9), "a b\u{fffd}c");
        assert_eq!(line("abcdef", 3), "abc…");
    }
}
