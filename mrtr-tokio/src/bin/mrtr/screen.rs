//! The terminal as a thing that several parts write to: a line at its bottom that says what is waited for, lines of the
//! server's standard error, and prompts, which nothing may write into.

use std::{
    io::{IsTerminal as _, Write as _},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use mrtr_core::jsonrpc::Json;
use tokio::time::Instant;

use crate::show;

static SCREEN: Mutex<Screen> = Mutex::new(Screen::new());

/// Lines of the server's that are held back while somebody answers.
const HELD: usize = 200;

/// Nothing is said of a wait before it has lasted so long.
const PATIENCE: Duration = Duration::from_millis(700);

struct Screen {
    /// What is waited for, and since when.
    waiting: Option<Instant>,
    /// What the server says of its progress.
    progress: String,
    /// The bottom line is there and has to be wiped off before anything else is written.
    drawn: bool,
    prompts: u32,
    held: Vec<String>,
    dropped: usize,
}

impl Screen {
    const fn new() -> Self {
        Self {
            waiting: None,
            progress: String::new(),
            drawn: false,
            prompts: 0,
            held: Vec::new(),
            dropped: 0,
        }
    }

    fn wipe(&mut self) {
        if std::mem::take(&mut self.drawn) {
            let _ = std::io::stderr().write_all(b"\r\x1b[K");
        }
    }
}

fn screen() -> MutexGuard<'static, Screen> {
    SCREEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Writes whole lines, with the bottom line out of the way.
pub(crate) fn write(write: impl FnOnce()) {
    let mut screen = screen();
    screen.wipe();
    write();
    drop(screen);
}

/// The server's reply is waited for.
pub(crate) fn waits() {
    let mut screen = screen();
    screen.waiting = Some(Instant::now());
    screen.progress.clear();
}

/// What the server says of how far it is.
pub(crate) fn progress(params: Json<'_>) {
    let text = how_far(params);
    screen().progress = text;
}

/// Nothing is waited for any more.
pub(crate) fn rests() {
    let mut screen = screen();
    screen.waiting = None;
    screen.wipe();
}

/// Draws the bottom line for as long as it is polled, if there is a terminal to draw it on.
pub(crate) async fn draw() -> std::convert::Infallible {
    if !std::io::stderr().is_terminal() {
        return std::future::pending().await;
    }
    let mut tick = tokio::time::interval(Duration::from_millis(200));
    loop {
        tick.tick().await;
        let mut screen = screen();
        let Some(since) = screen.waiting.filter(|since| since.elapsed() > PATIENCE && screen.prompts == 0)
        else {
            continue;
        };
        let text = match &*screen.progress {
            "" => String::from("waiting for the server"),
            progress => format!("the server is at {progress}"),
        };
        let text = show::line(&format!("… {text}, {} s", since.elapsed().as_secs()), 76);
        screen.drawn = true;
        let _ = std::io::stderr().write_all(format!("\r\x1b[K{text}").as_bytes());
    }
}

/// A line of the server's standard error, as its claim, and harmless.
pub(crate) fn server_line(line: &str) {
    let line = format!("server| {}", show::line(line, 2_000));
    let mut screen = screen();
    if screen.prompts == 0 {
        screen.wipe();
        let _ = writeln!(std::io::stderr(), "{line}");
    } else if screen.held.len() < HELD {
        screen.held.push(line);
    } else {
        screen.dropped += 1;
    }
}

/// Where log lines go.
pub(crate) struct Log;

impl std::io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let mut screen = screen();
        screen.wipe();
        std::io::stderr().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        std::io::stderr().flush()
    }
}

/// Whether somebody is asked at this moment.
pub(crate) fn prompting() -> bool {
    screen().prompts > 0
}

/// While it lives somebody is asked, and nothing else is written.
pub(crate) struct Prompting;

impl Prompting {
    pub(crate) fn begin() -> Self {
        let mut screen = screen();
        screen.prompts += 1;
        screen.wipe();
        Self
    }
}

impl Drop for Prompting {
    fn drop(&mut self) {
        let mut screen = screen();
        screen.prompts -= 1;
        if screen.prompts > 0 {
            return;
        }
        let mut out = std::io::stderr();
        for line in std::mem::take(&mut screen.held) {
            let _ = writeln!(out, "{line}");
        }
        let dropped = std::mem::take(&mut screen.dropped);
        if dropped > 0 {
            let _ = writeln!(out, "server| … and {dropped} lines more");
        }
        // The person's time is not the server's.
        if screen.waiting.is_some() {
            screen.waiting = Some(Instant::now());
        }
    }
}

/// `3 of 10 (30 %): reading`.
fn how_far(params: Json<'_>) -> String {
    let member = |name: &str| params.get(name);
    let number = |name: &str| {
        let text = member(name)?.as_str();
        text.parse::<f64>().ok().filter(|number| number.is_finite()).map(|number| (text, number))
    };
    let mut out = match (number("progress"), number("total")) {
        (Some((at, done)), Some((of, all))) if all > 0.0 && (0.0..=all).contains(&done) => {
            format!("{} of {} ({:.0} %)", show::line(at, 20), show::line(of, 20), done / all * 100.0)
        }
        (Some((at, _)), _) => show::line(at, 20),
        (None, _) => String::new(),
    };
    if let Some(message) = member("message").and_then(Json::as_string).filter(|text| !text.is_empty()) {
        if !out.is_empty() {
            out.push_str(": ");
        }
        out.push_str(&show::line(&message, 200));
    }
    out
}

#[cfg(test)]
mod tests {
    use mrtr_core::Limits;

    use super::*;

    #[test]
    fn progress_in_a_few_words() {
        for (params, expected) in [
            (r#"{"progress":3,"total":10,"message":"reading"}"#, "3 of 10 (30 %): reading"),
            (r#"{"progress":0.5}"#, "0.5"),
            (r#"{"progress":3,"total":0}"#, "3"),
            (r#"{"progress":30,"total":10}"#, "30"),
            (r#"{"progress":"3","message":"a\u001b[2Jb"}"#, "a\u{fffd}[2Jb"),
            (r#"{"progress":1e999,"total":2}"#, ""),
            ("{}", ""),
        ] {
            let params = Json::parse(params, &Limits::default()).unwrap();
            assert_eq!(how_far(params), expected);
        }
    }
}
