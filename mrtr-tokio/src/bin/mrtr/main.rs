//! The command `mrtr`: multi round-trip requests from a terminal.

#![allow(clippy::std_instead_of_core)]

mod answers;
mod args;
mod bridge;
mod call;
mod demo;
mod failure;
mod hostile;
#[cfg(unix)]
mod inbox;
mod prompt;
mod reach;
mod resume;
mod saved;
mod screen;
mod serve;
mod show;
mod state;
mod terminal;
mod trace;
mod utc;

use std::process::ExitCode;

use clap::Parser as _;

use args::{Args, Command};
use failure::{Exit, Failure};

fn main() -> ExitCode {
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(error) => return misread(&error),
    };
    let json = args.command.wants_json();
    tracing_subscriber::fmt()
        .with_writer(|| screen::Log)
        .with_max_level(args.log.level())
        .with_target(false)
        .with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr()))
        .init();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            show::complain(&error.to_string());
            return ExitCode::from(Exit::Failed.code());
        }
    };
    let done = runtime.block_on(run(args.command));
    // A read of standard input that nothing will ever answer must not keep the process.
    runtime.shutdown_background();
    // Nor may a prompt that nobody will answer keep the terminal.
    show::leave();
    let failure = match (done, show::lost()) {
        (Ok(()), None) => return ExitCode::SUCCESS,
        (Ok(()), Some(error)) => Failure::new(format!("standard output: {error}")),
        (Err(failure), _) => failure,
    };
    if json && !show::printed() {
        show::json(&failure.json(serde_json::Value::Null));
    }
    show::complain(&failure.text);
    ExitCode::from(failure.exit.code())
}

/// What was typed is no command, or asks for help. A script that wants JSON gets it here, too.
fn misread(error: &clap::Error) -> ExitCode {
    if error.use_stderr() && args::json_is_wanted(std::env::args_os()) {
        show::json(&Failure::usage(error.to_string().trim_end()).json(serde_json::Value::Null));
    }
    let _ = error.print();
    ExitCode::from(if error.use_stderr() { Exit::Usage.code() } else { 0 })
}

async fn run(command: Command) -> Result<(), Failure> {
    match command {
        Command::Demo(demo) => demo::run(demo).await,
        Command::Serve(serve) => serve::run(serve).await,
        Command::Bridge(bridge) => bridge::run(*bridge).await,
        #[cfg(unix)]
        Command::Inbox(inbox) => inbox::run(inbox).await,
        Command::Call(call) => call::run(call).await,
        Command::Resume(resume) => resume::run(resume).await,
        Command::State(args::State::Inspect(inspect)) => state::run(&inspect).await,
        Command::Hostile(hostile) => hostile::run(hostile).await,
        Command::Keygen { out } => keygen(out.as_deref()),
    }
}

fn keygen(out: Option<&std::path::Path>) -> Result<(), Failure> {
    match out {
        Some(path) => {
            mrtr_tokio::keys::generate_file(path).map_err(Failure::new)?;
            show::note(&format!("wrote a new key to {}", path.display()));
        }
        None => show::result(&mrtr_tokio::keys::generate().map_err(Failure::new)?),
    }
    Ok(())
}
