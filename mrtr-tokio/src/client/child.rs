//! A server that is a child of this process: how it starts, what it says on its standard error, how it ends.

use std::{
    collections::VecDeque,
    fmt, io,
    process::Stdio,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{
    io::AsyncReadExt as _,
    process::{Child, ChildStderr, ChildStdin, ChildStdout, Command},
    sync::Mutex as AsyncMutex,
    time::timeout,
};

use super::{WireError, wire::Ended};

/// Lines of standard error that are kept for the error when the child dies.
const LINES: usize = 20;

/// Characters of each.
const LETTERS: usize = 500;

/// How long a child that has closed its output, or its standard error, may take to end.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// Hears lines of standard error.
type Hears = Arc<dyn Fn(&str) + Send + Sync>;

/// What becomes of the standard error of a server that is a child.
#[derive(Clone, Default)]
#[non_exhaustive]
pub enum Stderr {
    /// It is read. Its last lines are in the error if the server dies; each line is logged at debug level.
    #[default]
    Read,
    /// The same, and each line is given to this as well: without its end, cut into pieces of at most 8 KiB. Called from a
    /// task of the runtime; it must not block for long.
    Lines(Arc<dyn Fn(&str) + Send + Sync>),
    /// As the command says; if it says nothing, this process's own.
    AsCommanded,
}

impl fmt::Debug for Stderr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Read => "Read",
            Self::Lines(_) => "Lines(…)",
            Self::AsCommanded => "AsCommanded",
        })
    }
}

/// A running child. Killed when the last handle is dropped.
#[derive(Clone)]
pub(super) struct Running {
    child: Arc<AsyncMutex<Child>>,
    heard: Arc<Heard>,
}

/// What was heard on standard error.
#[derive(Default)]
struct Heard {
    last: Mutex<VecDeque<String>>,
    over: tokio::sync::Notify,
}

impl Heard {
    fn last(&self) -> MutexGuard<'_, VecDeque<String>> {
        // Nothing panics while it is held.
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Starts the server.
pub(super) fn spawn(
    command: &mut Command,
    stderr: &Stderr,
) -> Result<(Running, ChildStdout, ChildStdin), WireError> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
    if !matches!(stderr, Stderr::AsCommanded) {
        command.stderr(Stdio::piped());
    }
    let mut child = command.spawn().map_err(|error| {
        let program = command.as_std().get_program().display();
        WireError::Connect(io::Error::new(error.kind(), format!("{program}: {error}")).into())
    })?;
    let (Some(output), Some(input)) = (child.stdout.take(), child.stdin.take()) else {
        return Err(WireError::Connect("the child has no pipes".into()));
    };
    let heard = Arc::new(Heard::default());
    match (child.stderr.take(), stderr) {
        (Some(said), Stderr::Lines(each)) => {
            tokio::spawn(listen(said, Arc::clone(&heard), Some(Arc::clone(each))));
        }
        (Some(said), Stderr::Read | Stderr::AsCommanded) => {
            tokio::spawn(listen(said, Arc::clone(&heard), None));
        }
        (None, _) => heard.over.notify_one(),
    }
    Ok((Running { child: Arc::new(AsyncMutex::new(child)), heard }, output, input))
}

impl Running {
    /// How it ended, once its output is closed. A child that goes on without an output has no status.
    pub(super) async fn ended(&self) -> Ended {
        let status = timeout(LAST_WORDS, async { self.child.lock().await.wait().await }).await;
        // A grandchild may hold the pipe.
        let _ = timeout(LAST_WORDS, self.heard.over.notified()).await;
        let last = self.heard.last().iter().cloned().collect();
        Ended { status: status.ok().and_then(Result::ok), last }
    }

    /// Waits for it to end, with its input closed; told to end after `grace`, killed after as much again.
    pub(super) async fn stop(&self, grace: Duration) {
        let mut child = self.child.lock().await;
        if timeout(grace, child.wait()).await.is_ok() {
            return;
        }
        if terminate(&child) && timeout(grace, child.wait()).await.is_ok() {
            return;
        }
        tracing::warn!("the server did not end by itself and is killed");
        let _ = child.kill().await;
    }

    /// Its status, if it has ended.
    #[cfg(test)]
    async fn status(&self) -> Option<std::process::ExitStatus> {
        self.child.lock().await.try_wait().ok().flatten()
    }
}

/// SIGTERM.
#[cfg(unix)]
fn terminate(child: &Child) -> bool {
    use rustix::process::{Pid, Signal, kill_process};
    let pid = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
    pid.is_some_and(|pid| kill_process(pid, Signal::TERM).is_ok())
}

#[cfg(not(unix))]
fn terminate(_: &Child) -> bool {
    false
}

/// Reads standard error to its end, so that the child never waits for it.
async fn listen(mut said: ChildStderr, heard: Arc<Heard>, each: Option<Hears>) {
    let mut buffer = [0; 8 << 10];
    let mut line = Vec::new();
    let say = |line: &mut Vec<u8>| {
        let text = String::from_utf8_lossy(line).into_owned();
        line.clear();
        let text = text.trim_end();
        if text.is_empty() {
            return;
        }
        tracing::debug!(line = text, "the server's standard error");
        if let Some(each) = &each {
            each(text);
        }
        let mut last = heard.last();
        if last.len() == LINES {
            last.pop_front();
        }
        last.push_back(text.chars().take(LETTERS).collect());
    };
    while let Ok(read @ 1..) = said.read(&mut buffer).await {
        for byte in buffer.get(..read).unwrap_or_default() {
            if *byte == b'\n' || line.len() == buffer.len() {
                say(&mut line);
            }
            if *byte != b'\n' {
                line.push(*byte);
            }
        }
    }
    say(&mut line);
    heard.over.notify_one();
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.arg("-c").arg(script);
        command
    }

    #[tokio::test]
    async fn what_it_said_last_and_how_it_ended() {
        let script = "for i in $(seq 30); do echo line $i >&2; done; printf 'no end' >&2; exit 7";
        let lines = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&lines);
        let each = Stderr::Lines(Arc::new(move |line: &str| seen.lock().unwrap().push(String::from(line))));
        let (running, _output, _input) = spawn(&mut shell(script), &each).unwrap();
        let ended = running.ended().await;
        assert_eq!(ended.status.unwrap().code(), Some(7));
        assert_eq!((ended.last.len(), &*ended.last[0], &*ended.last[19]), (20, "line 12", "no end"));
        assert_eq!(lines.lock().unwrap().len(), 31);
        assert!(
            ended.to_string().starts_with("the server ended (exit status: 7), and said last:\nline 12\n")
        );
    }

    #[tokio::test]
    async fn endless_lines_are_cut_and_bounded() {
        let script = "head -c 100000 /dev/zero | tr '\\0' x >&2";
        let (running, _output, _input) = spawn(&mut shell(script), &Stderr::Read).unwrap();
        let ended = running.ended().await;
        // In pieces of 8 KiB.
        assert_eq!((ended.last.len(), ended.last[0].len()), (13, LETTERS));
    }

    #[tokio::test]
    async fn one_that_stays_is_told_and_then_killed() {
        let grace = Duration::from_millis(50);
        let (polite, _output, _input) = spawn(&mut shell("read x; exec sleep 60"), &Stderr::Read).unwrap();
        drop(_input);
        polite.stop(grace).await;
        let script = "trap '' TERM; read x; while :; do sleep 60; done";
        let (deaf, _output, _input) = spawn(&mut shell(script), &Stderr::Read).unwrap();
        drop(_input);
        deaf.stop(grace).await;
        use std::os::unix::process::ExitStatusExt as _;
        assert_eq!(polite.status().await.unwrap().signal(), Some(15));
        assert_eq!(deaf.status().await.unwrap().signal(), Some(9));
    }
}
