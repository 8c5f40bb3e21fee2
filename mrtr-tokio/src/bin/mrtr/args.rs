//! The command line.

use std::{net::SocketAddr, path::PathBuf};

use clap::{Args as Group, Parser, Subcommand, ValueEnum};
use mrtr_core::wire::AskingMethod;
use tracing_subscriber::filter::LevelFilter;

/// Multi round-trip requests for the Model Context Protocol: servers that ask in mid-request.
#[derive(Parser)]
#[command(name = "mrtr", version, max_term_width = 100)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
    /// What is logged, to standard error.
    #[arg(long, global = true, value_name = "LEVEL", default_value = "warn")]
    pub(crate) log: Log,
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum Log {
    Off,
    Error,
    Warn,
    Info,
    Debug,
}

impl Log {
    pub(crate) const fn level(self) -> LevelFilter {
        match self {
            Self::Off => LevelFilter::OFF,
            Self::Error => LevelFilter::ERROR,
            Self::Warn => LevelFilter::WARN,
            Self::Info => LevelFilter::INFO,
            Self::Debug => LevelFilter::DEBUG,
        }
    }
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Serves the example tools on this machine, calls one of them over HTTP, and asks you what it asks.
    Demo(Demo),
    /// Serves the example tools.
    Serve(Serve),
    /// Calls a tool of a server, and asks you what it asks. Without TOOL, lists the tools.
    Call(Call),
    /// Looks into states, the `requestState` of an answer: for people who ask why one was refused.
    #[command(subcommand)]
    State(State),
    /// Serves one way of misbehaving, or each at its own path: for people who write clients.
    Hostile(crate::hostile::Hostile),
    /// Makes a key to seal states with: prints it, or writes it into a file that only you can read.
    Keygen {
        /// The file; it must not exist yet.
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
}

/// How questions are answered, and what is shown of it.
#[derive(Group, Default)]
pub(crate) struct Answering {
    /// An answer given in advance, for the question with this key: the form's content, `accept`, `decline` or
    /// `cancel`; a model's reply as a string; roots as an array of urls. Questions without one are put to you.
    #[arg(long = "answer", value_name = "KEY=JSON")]
    pub(crate) answers: Vec<String>,
    /// Shows each round: what was sent, what was asked, how long it took. Answers are not shown, and of a state
    /// only its length and its first eight characters.
    #[arg(long)]
    pub(crate) trace: bool,
    /// Shows the answers too.
    #[arg(long, requires = "trace")]
    pub(crate) trace_answers: bool,
    /// Prints the whole result as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Group)]
pub(crate) struct Demo {
    /// The tool. Left out: you choose, or `plan` if there is no terminal.
    pub(crate) tool: Option<String>,
    /// Its arguments, an object. Left out: ones that fit the example.
    #[arg(long, value_name = "JSON")]
    pub(crate) args: Option<String>,
    #[command(flatten)]
    pub(crate) answering: Answering,
}

#[derive(Subcommand)]
pub(crate) enum State {
    /// Shows what a state says: format, key, exchange, round, times, what was asked; with `--principal`, `--target` and
    /// the like, which part it is bound to differs. Accepts nothing, changes nothing, sends nothing.
    Inspect(Inspect),
}

#[derive(Group)]
pub(crate) struct Inspect {
    /// The state, or `-` to read it from standard input, where no list of processes shows it.
    #[arg(value_name = "TOKEN|-")]
    pub(crate) token: String,
    /// A file with the key it was sealed with, or several, one a line. May be given again. Left out: what anybody can
    /// see.
    #[arg(long = "key-file", value_name = "FILE")]
    pub(crate) key_files: Vec<PathBuf>,
    /// The name of the server that would open it, to compare.
    #[arg(long, value_name = "NAME", requires = "key_files")]
    pub(crate) audience: Option<String>,
    /// Who would send it, to compare.
    #[arg(long, value_name = "NAME", requires = "key_files")]
    pub(crate) principal: Option<String>,
    /// Nobody in particular would send it, to compare.
    #[arg(long, requires = "key_files", conflicts_with = "principal")]
    pub(crate) anonymous: bool,
    /// The method of the request that would carry it, to compare.
    #[arg(long, value_name = "METHOD", requires = "target", default_value = AskingMethod::ToolsCall.name())]
    pub(crate) method: String,
    /// The tool, prompt or uri of that request.
    #[arg(long, value_name = "NAME", requires = "key_files")]
    pub(crate) target: Option<String>,
    /// The arguments of that request, an object. Left out: none.
    #[arg(long, value_name = "JSON", requires = "target")]
    pub(crate) args: Option<String>,
    /// Shows the answers too.
    #[arg(long)]
    pub(crate) show_answers: bool,
    /// Prints JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Group)]
#[group(id = "serve")]
#[command(group = clap::ArgGroup::new("where").required(true))]
pub(crate) struct Serve {
    /// Serves over HTTP at this address, port 0 for any. The endpoint's url is printed.
    #[arg(long, value_name = "ADDR", group = "where")]
    pub(crate) listen: Option<SocketAddr>,
    /// Serves on standard input and output.
    #[arg(long, group = "where")]
    pub(crate) stdio: bool,
    /// The file with the key that states are sealed with (see `mrtr keygen`).
    #[arg(long, value_name = "FILE", conflicts_with = "key_env")]
    pub(crate) key_file: Option<PathBuf>,
    /// The environment variable with the key.
    #[arg(long, value_name = "NAME")]
    pub(crate) key_env: Option<String>,
    /// A file with further keys that states may be sealed with, one a line; it may be empty. All keys are read again at
    /// SIGHUP.
    #[arg(long, value_name = "FILE")]
    pub(crate) accept_key_file: Option<PathBuf>,
    /// A further name that may stand in `Host`: `mcp.example.com`, `mcp.example.com:8443`.
    #[arg(long = "allow-host", value_name = "HOST", conflicts_with = "stdio")]
    pub(crate) hosts: Vec<String>,
    /// Pages of this origin may call: `https://app.example.com`.
    #[arg(long = "allow-origin", value_name = "ORIGIN", conflicts_with = "stdio")]
    pub(crate) origins: Vec<String>,
    /// Serves 2026-07-28 alone. Otherwise clients of 2025-11-25, 2025-06-18 and 2025-03-26 are served as well.
    #[arg(long)]
    pub(crate) modern_only: bool,
}

#[derive(Group)]
#[command(
    override_usage = "mrtr call [OPTIONS] URL [TOOL]\n       mrtr call [OPTIONS] --stdio [TOOL] -- CMD…"
)]
pub(crate) struct Call {
    /// The server's url (not with --stdio), then the tool.
    #[arg(value_name = "URL] [TOOL", num_args = 0..=2)]
    pub(crate) target: Vec<String>,
    /// Starts the server with the command after `--`, and calls it over its standard input and output.
    #[arg(long)]
    pub(crate) stdio: bool,
    /// The tool's arguments, an object.
    #[arg(long, value_name = "JSON", default_value = "{}")]
    pub(crate) args: String,
    /// A header of every request: `Name: value`. Never follows a redirect.
    #[arg(long = "header", value_name = "NAME: VALUE", conflicts_with = "stdio")]
    pub(crate) headers: Vec<String>,
    /// The environment variable with a token, sent as `Authorization: Bearer`.
    #[arg(long, value_name = "NAME", conflicts_with = "stdio")]
    pub(crate) bearer_env: Option<String>,
    #[command(flatten)]
    pub(crate) answering: Answering,
    /// The server's command, with --stdio.
    #[arg(last = true, value_name = "CMD", requires = "stdio")]
    pub(crate) server: Vec<String>,
}
