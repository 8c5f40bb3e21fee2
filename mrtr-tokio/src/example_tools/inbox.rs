//! `delete_files`: a yes to something that may have changed by the time the yes arrives.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use mrtr_core::{
    handler::{Ctx, RpcError, ToolResult},
    wire::Action,
};
use tokio::time::Instant;

/// Files that arrive by themselves, up to this many.
const ARRIVING: usize = 20;

/// Most files there can be.
const FILES: usize = 1_000;

/// A listing of files in memory that grows while nobody looks.
#[derive(Clone, Debug)]
pub struct Inbox(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    files: Vec<String>,
    arrived: usize,
    next: Instant,
    every: Duration,
}

impl Inbox {
    /// Three files, and one more every 30 seconds. Must be called within a tokio runtime.
    #[must_use]
    pub fn new() -> Self {
        Self::growing_every(Duration::from_secs(30))
    }

    /// Three files, and one more every so often.
    #[must_use]
    pub fn growing_every(every: Duration) -> Self {
        let every = every.max(Duration::from_millis(1));
        let files = ["minutes.txt", "invoice.pdf", "holiday.jpg"].map(String::from).to_vec();
        let next = Instant::now() + every;
        Self(Arc::new(Mutex::new(State { files, arrived: 0, next, every })))
    }

    /// What is there now.
    #[must_use]
    pub fn files(&self) -> Vec<String> {
        self.change(|files| files.clone())
    }

    /// Puts a file there; `false` if there is no room.
    #[must_use]
    pub fn put(&self, name: &str) -> bool {
        self.change(|files| {
            let room = files.len() < FILES;
            if room && !files.iter().any(|file| file == name) {
                files.push(name.into());
            }
            room
        })
    }

    fn remove(&self, names: &[String]) {
        self.change(|files| files.retain(|file| !names.contains(file)));
    }

    fn change<T>(&self, with: impl FnOnce(&mut Vec<String>) -> T) -> T {
        // Nothing panics while it is held.
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        while state.arrived < ARRIVING && state.next <= now {
            state.arrived += 1;
            let name = format!("scan-{:02}.pdf", state.arrived);
            state.files.push(name);
            let every = state.every;
            state.next += every;
        }
        with(&mut state.files)
    }
}

impl Default for Inbox {
    fn default() -> Self {
        Self::new()
    }
}

pub(super) async fn delete(ctx: Ctx, inbox: Inbox) -> Result<ToolResult, RpcError> {
    // Read anew in every round, on purpose: if it has changed, the question is another one, and the yes to the old
    // one does not answer it.
    let files = inbox.files();
    if files.is_empty() {
        return Ok(ToolResult::text("There is nothing to delete."));
    }
    let count = if files.len() == 1 { String::from("1 file") } else { format!("{} files", files.len()) };
    let question = format!("Delete {count} for ever? {}", files.join(", "));
    match ctx.confirm("sure", question).await? {
        Action::Accept => {
            // What was said yes to, and nothing that has come since; once, and only if all has gone well.
            ctx.on_commit(move || {
                inbox.remove(&files);
                Ok(())
            });
            Ok(ToolResult::text(format!("Deleted {count}.")))
        }
        Action::Decline | Action::Cancel => Ok(ToolResult::text("Nothing was deleted.")),
    }
}

pub(super) async fn add(ctx: Ctx, inbox: Inbox) -> Result<ToolResult, RpcError> {
    let name: String = ctx.argument("name")?;
    if name.is_empty() || name.chars().count() > 80 || name.chars().any(char::is_control) {
        return Err(RpcError::invalid_params("Invalid params: arguments.name is not the name of a file"));
    }
    if inbox.put(&name) {
        Ok(ToolResult::text(format!("The inbox has {} files now.", inbox.files().len())))
    } else {
        Ok(ToolResult::error("The inbox is full."))
    }
}
