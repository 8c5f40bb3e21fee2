//! The command at a terminal: keys in, what a person would read out.

use std::{
    fs::File,
    io::{Read as _, Write as _},
    os::fd::OwnedFd,
    process::{Child, Command, ExitStatus, Stdio},
    sync::mpsc::{Receiver, RecvTimeoutError, channel},
    time::Duration,
};

use rustix::{
    fs::{Mode, OFlags},
    process::{Pid, Signal, kill_process},
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
    termios::{Winsize, tcsetwinsize},
};
use tokio::time::Instant;

pub(crate) const UP: &str = "\x1b[A";
pub(crate) const DOWN: &str = "\x1b[B";
pub(crate) const ENTER: &str = "\r";
pub(crate) const ESC: &str = "\x1b";
pub(crate) const CTRL_C: &str = "\x03";
pub(crate) const BACKSPACE: &str = "\x7f";

/// What is waited for comes in this time, or never. A slow machine needs a fraction of it.
const PATIENCE: Duration = Duration::from_secs(20);

/// A command whose standard input and error are a terminal. Its standard output is a pipe.
pub(crate) struct Terminal {
    child: Child,
    keys: File,
    shown: Receiver<Vec<u8>>,
    /// What was shown and not looked for yet, without what only moves and colours.
    text: String,
    /// All of it, as it came.
    pub(crate) raw: String,
}

impl Terminal {
    pub(crate) fn start(mut command: Command) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let size = Winsize { ws_row: 50, ws_col: 160, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&master, size).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        let other: OwnedFd = rustix::fs::open(&name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).unwrap();
        command.stdin(other.try_clone().unwrap()).stderr(other).stdout(Stdio::piped()).env("TERM", "xterm");
        let child = command.spawn().unwrap();
        drop(command);
        let keys = File::from(master);
        let mut read = keys.try_clone().unwrap();
        let (sender, shown) = channel();
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            // The last process that had the terminal open has left: that is an error here.
            while let Ok(count @ 1..) = read.read(&mut buffer) {
                if sender.send(buffer[..count].to_vec()).is_err() {
                    break;
                }
            }
        });
        Self { child, keys, shown, text: String::new(), raw: String::new() }
    }

    /// Waits until this is shown, and forgets everything up to there. Gives what stood before it.
    pub(crate) fn until(&mut self, wanted: &str) -> String {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(at) = self.text.find(wanted) {
                let rest = self.text.split_off(at + wanted.len());
                let mut before = std::mem::replace(&mut self.text, rest);
                before.truncate(at);
                return before;
            }
            assert!(self.more(deadline), "{wanted:?} was not shown, but:\n{}\n{:?}", self.text, self.raw);
        }
    }

    /// Takes in what is shown next; false if nothing comes any more.
    fn more(&mut self, deadline: Instant) -> bool {
        match self.shown.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(bytes) => {
                self.raw.push_str(&String::from_utf8_lossy(&bytes));
                self.text.push_str(&plain(&String::from_utf8_lossy(&bytes)));
                true
            }
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => false,
        }
    }

    pub(crate) fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    /// Ctrl-C where no prompt reads keys: what a terminal makes of it.
    pub(crate) fn interrupt(&self) {
        self.signal(Signal::INT);
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap();
        kill_process(pid, signal).unwrap();
    }

    /// Standard output, what else was shown, and how it ended.
    pub(crate) fn end(mut self) -> (String, String, ExitStatus) {
        let deadline = Instant::now() + PATIENCE;
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(Instant::now() < deadline, "it does not end: {}", self.text);
            let _ = self.more(Instant::now() + Duration::from_millis(20));
        };
        let mut out = String::new();
        self.child.stdout.take().unwrap().read_to_string(&mut out).unwrap();
        while self.more(Instant::now() + Duration::from_millis(200)) {}
        (out, self.text, status)
    }
}

/// Without escape sequences.
fn plain(text: &str) -> String {
    let mut out = String::new();
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        if letter != '\x1b' {
            out.push(letter);
            continue;
        }
        // Control sequences end with a letter; nothing else is used here.
        if letters.next() == Some('[') {
            let _ = letters.find(|letter| matches!(letter, '@'..='~'));
        }
    }
    out
}
