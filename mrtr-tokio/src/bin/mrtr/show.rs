//! What goes to the terminal. Results to standard output, everything else to standard error.

use std::{
    borrow::Cow,
    io::{self, Write},
    sync::{
        OnceLock,
        atomic::{AtomicBool, Ordering},
    },
};

use mrtr_core::jsonrpc::Json;

use crate::screen;

/// What a terminal would obey: control characters but line breaks and tabs, and marks that turn the direction of writing
/// around.
fn harmful(letter: char) -> bool {
    (letter.is_control() && !matches!(letter, '\n' | '\t'))
        || matches!(letter, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}' | '\u{061c}')
}

/// Text of a peer without what a terminal would obey.
pub(crate) fn harmless(text: &str) -> Cow<'_, str> {
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

static PRINTED: AtomicBool = AtomicBool::new(false);
static LOST: OnceLock<String> = OnceLock::new();

/// Whether anything was said on standard output.
pub(crate) fn printed() -> bool {
    PRINTED.load(Ordering::Relaxed)
}

/// Why standard output did not take all that was said there.
pub(crate) fn lost() -> Option<&'static str> {
    LOST.get().map(String::as_str)
}

fn write(mut to: impl Write, text: &str) -> io::Result<()> {
    let mut written = Ok(());
    screen::write(|| written = writeln!(to, "{text}").and_then(|()| to.flush()));
    written
}

/// A reader that has left, `mrtr … | head`, is no failure; a full disk is one.
pub(crate) fn result(text: &str) {
    PRINTED.store(true, Ordering::Relaxed);
    match write(io::stdout(), &harmless(text)) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            let _ = LOST.set(error.to_string());
        }
        Ok(()) | Err(_) => {}
    }
}

/// JSON, whose meaning stays: what a terminal would obey can stand in strings only, and is written as an escape there.
pub(crate) fn json(text: &str) {
    result(&escaped(text));
}

fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            // Space between tokens.
            '\r' => escaped.push(' '),
            letter if harmful(letter) => escaped.push_str(&format!("\\u{:04x}", u32::from(letter))),
            letter => escaped.push(letter),
        }
    }
    escaped
}

pub(crate) fn note(text: &str) {
    as_is(&harmless(text));
}

/// A note whose control characters are ours; nothing of a peer's goes in here that is not harmless.
pub(crate) fn as_is(text: &str) {
    // There is no other place to say that this one is gone.
    let _ = write(io::stderr(), text);
}

pub(crate) fn complain(text: &str) {
    note(&format!("mrtr: {text}"));
}

/// Gives the terminal back as it was, if a prompt still has it.
pub(crate) fn leave() {
    if screen::prompting() {
        let _ = crossterm::terminal::disable_raw_mode();
        let _ = crossterm::execute!(
            io::stderr(),
            crossterm::event::DisableBracketedPaste,
            crossterm::cursor::Show,
            crossterm::style::Print("\r\n")
        );
    }
}

/// A result for people: the texts of a tool, a prompt or a resource, and a word on everything else. Whether it is of a
/// tool that failed.
pub(crate) fn called(result: Json<'_>) -> (String, bool) {
    let items = |name: &str| result.get(name).and_then(Json::items).into_iter().flatten();
    let mut out: Vec<String> = items("content").map(block).collect();
    out.extend(items("messages").map(|message| {
        let role = message.get("role").and_then(Json::as_string).unwrap_or_default();
        format!("{role}: {}", message.get("content").map(block).unwrap_or_default())
    }));
    out.extend(items("contents").map(block));
    if out.is_empty() {
        out.push(result.as_str().into());
    }
    (out.join("\n"), result.get("isError").and_then(Json::as_bool).unwrap_or(false))
}

/// The text of a block of content, or what it is.
fn block(block: Json<'_>) -> String {
    let word = |name: &str| block.get(name).and_then(Json::as_string);
    let kind = word("type").unwrap_or("resource".into());
    match word("text") {
        Some(text) => text.into_owned(),
        None => format!("[{kind}, {}]", word("mimeType").unwrap_or("no media type".into())),
    }
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

    /// What is written as JSON is read as what it was.
    #[test]
    fn json_keeps_its_meaning() {
        let text = "a\u{200f}b\u{202e}c\u{7f}d\u{9b}\n\u{2066}";
        let json = serde_json::json!({"text": text});
        let shown = escaped(&format!("{json:#}\r\n"));
        assert!(!shown.contains(harmful), "{shown}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).unwrap(), json);
    }
}
