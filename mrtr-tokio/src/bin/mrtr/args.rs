//! The command line.

use std::{ffi::OsString, net::SocketAddr, path::PathBuf};

use clap::{Args as Group, Parser, Subcommand, ValueEnum};
use mrtr_core::wire::AskingMethod;
use tracing_subscriber::filter::LevelFilter;

use crate::failure::EXITS;

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
    /// Puts a modern front on an old server, or an old one on a modern server: any host, any server.
    Bridge(Box<crate::bridge::Bridge>),
    /// Answers questions that wait in the inbox of a bridge, for hosts that cannot show them.
    #[cfg(unix)]
    Inbox(crate::inbox::Inbox),
    /// Calls a tool, a prompt or a resource of a server, and asks you what it asks. Without NAME, lists what there is.
    #[command(after_help = EXITS)]
    Call(Call),
    /// Carries on a call that `mrtr call --save` has saved, with the answers that it waits for.
    #[command(after_help = EXITS)]
    Resume(Resume),
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
    /// An answer given in advance, for the question with this key: the form's content, or the value alone if it has
    /// one field; `accept`, `decline` or `cancel`; a model's reply as a string; roots as an array of urls. Questions
    /// of servers before 2026-07-28 have no keys: the name of a form's only field will do, or 1, 2, 3 … in their order.
    #[arg(long = "answer", value_name = "KEY=JSON", help_heading = "Answers")]
    pub(crate) answers: Vec<String>,
    /// Answers given in a file, a JSON object with a member for each key; `-` is standard input. A value is what
    /// --answer takes, or a whole answer: {"action":"accept","content":{…}}.
    #[arg(long = "answers", value_name = "FILE", help_heading = "Answers")]
    pub(crate) answers_file: Option<PathBuf>,
    /// Asks nobody: a question without an answer ends the call, as it does where there is no terminal.
    #[arg(long, help_heading = "Answers")]
    pub(crate) no_prompt: bool,
    /// Shows each round: what was sent, what was asked, how long it took. Answers are not shown, and of a state
    /// only its length and its first eight characters.
    #[arg(long, help_heading = "Output")]
    pub(crate) trace: bool,
    /// Shows the answers too.
    #[arg(long, requires = "trace", help_heading = "Output")]
    pub(crate) trace_answers: bool,
    /// Prints the whole result as JSON, of a list an object a line. If there is none, an object with `error`: its
    /// kind, its text, and the questions of a server of 2026-07-28 that are not answered.
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
}

impl Answering {
    /// Whether answers were given in advance.
    pub(crate) fn gives_answers(&self) -> bool {
        !self.answers.is_empty() || self.answers_file.is_some()
    }
}

impl Command {
    /// Whether a failure is to be said as JSON, too.
    pub(crate) const fn wants_json(&self) -> bool {
        match self {
            Self::Demo(demo) => demo.answering.json,
            Self::Call(call) => call.answering.json,
            Self::Resume(resume) => resume.answering.json,
            Self::State(State::Inspect(inspect)) => inspect.json,
            Self::Serve(_) | Self::Bridge(_) | Self::Hostile(_) | Self::Keygen { .. } => false,
            #[cfg(unix)]
            Self::Inbox(_) => false,
        }
    }
}

/// The same of a command line that could not be read.
pub(crate) fn json_is_wanted(line: impl Iterator<Item = OsString>) -> bool {
    let options: Vec<_> = line.take_while(|word| word != "--").collect();
    let says = |word: &str| options.iter().any(|option| option == word);
    says("--json") && ["demo", "call", "resume", "inspect"].into_iter().any(says)
}

/// An address to listen at.
pub(crate) fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse()
        .map_err(|_| String::from("not an IP address and a port, as 127.0.0.1:3000 and [::1]:3000 are"))
}

/// How a call is put aside for later.
#[derive(Group, Default)]
pub(crate) struct Saving {
    /// If a question is not answered, saves the call into this file, which only you can read: `mrtr resume FILE`
    /// carries it on. The file must not exist yet. Servers before 2026-07-28 hold a call themselves: it cannot be saved.
    #[arg(long, value_name = "FILE", help_heading = "Answers")]
    pub(crate) save: Option<PathBuf>,
    /// Seals saved calls with the key in this file (see `mrtr keygen`). Without one the answers and the server's
    /// state can be read in them.
    #[arg(long, value_name = "FILE", requires = "save", help_heading = "Answers")]
    pub(crate) key_file: Option<PathBuf>,
}

/// How the server is reached.
#[derive(Group, Default)]
pub(crate) struct Reach {
    /// Starts the server with the command after `--`, and calls it over its standard input and output.
    #[arg(long, help_heading = "Server")]
    pub(crate) stdio: bool,
    /// A header of every request: `Name: value`. Sent to the server's origin alone.
    #[arg(long = "header", value_name = "NAME: VALUE", conflicts_with = "stdio", help_heading = "Server")]
    pub(crate) headers: Vec<String>,
    /// The environment variable with a token, sent as `Authorization: Bearer` to the server's origin alone.
    #[arg(long, value_name = "NAME", conflicts_with = "stdio", help_heading = "Server")]
    pub(crate) bearer_env: Option<String>,
    /// The proxy, `http://host:port`, instead of the one that HTTPS_PROXY, HTTP_PROXY, ALL_PROXY and NO_PROXY say;
    /// `none` for none at all.
    #[arg(long, value_name = "URL", conflicts_with = "stdio", help_heading = "Server")]
    pub(crate) proxy: Option<String>,
    /// A file with certificates (PEM) that the server's may be issued by, beside the system's.
    #[arg(long, value_name = "FILE", conflicts_with = "stdio", help_heading = "Server")]
    pub(crate) ca_file: Option<PathBuf>,
    /// Seconds that one request may go without a reply or progress; with progress it may take 600, or as many as are
    /// given here. The time you take to answer does not count. Left out: 60.
    #[arg(long, value_name = "SECONDS", help_heading = "Server", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) timeout: Option<u64>,
    /// The server's era: `modern` is 2026-07-28, `legacy` are 2025-11-25, 2025-06-18 and 2025-03-26. Left out: it is
    /// found out.
    #[arg(long, value_enum, value_name = "ERA", help_heading = "Server")]
    pub(crate) era: Option<EraName>,
    /// Shows the heads of all HTTP messages. Credentials are not shown.
    #[arg(long, conflicts_with = "stdio", help_heading = "Output")]
    pub(crate) trace_headers: bool,
    /// The server's command, with --stdio.
    #[arg(last = true, value_name = "CMD", requires = "stdio")]
    pub(crate) server: Vec<String>,
}

#[derive(Group)]
pub(crate) struct Demo {
    /// The tool: `plan`, `book_table`, `greet_two`, `delete_files`, `summarize`, `list_project`, `connect_account` or
    /// `plain`. Left out: you choose, or `plan` if there is no terminal or answers are given.
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
    #[arg(
        long, value_name = "METHOD", requires = "target", default_value = AskingMethod::ToolsCall.name(),
        value_parser = [AskingMethod::ToolsCall.name(), AskingMethod::PromptsGet.name(), AskingMethod::ResourcesRead.name()]
    )]
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
    /// Prints JSON; of what is no state, or cannot be read, an object with `error`.
    #[arg(long)]
    pub(crate) json: bool,
}

/// The keys that states are sealed with.
#[derive(Group)]
pub(crate) struct Keys {
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
}

#[derive(Group)]
#[group(id = "serve")]
#[command(group = clap::ArgGroup::new("where").required(true))]
pub(crate) struct Serve {
    /// Serves over HTTP at this address, 127.0.0.1:3000 say, port 0 for any. The endpoint's url is printed.
    #[arg(long, value_name = "ADDR", group = "where", value_parser = address)]
    pub(crate) listen: Option<SocketAddr>,
    /// Serves on standard input and output.
    #[arg(long, group = "where")]
    pub(crate) stdio: bool,
    #[command(flatten)]
    pub(crate) keys: Keys,
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

/// An era of the protocol.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum EraName {
    Modern,
    Legacy,
}

/// What is called.
#[derive(Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kind {
    #[default]
    Tool,
    Prompt,
    /// NAME is its uri.
    Resource,
}

#[derive(Group)]
#[command(
    override_usage = "mrtr call [OPTIONS] URL [NAME]\n       mrtr call [OPTIONS] --stdio [NAME] -- CMD…"
)]
pub(crate) struct Call {
    /// The server's url (not with --stdio), then the name of the tool.
    #[arg(value_name = "URL] [NAME", num_args = 0..=2)]
    pub(crate) target: Vec<String>,
    /// Its arguments, an object; a resource has none.
    #[arg(long, value_name = "JSON", default_value = "{}")]
    pub(crate) args: String,
    /// What is called.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) kind: Kind,
    #[command(flatten)]
    pub(crate) answering: Answering,
    #[command(flatten)]
    pub(crate) saving: Saving,
    #[command(flatten)]
    pub(crate) reach: Reach,
}

#[derive(Group)]
#[command(
    override_usage = "mrtr resume [OPTIONS] FILE [URL]\n       mrtr resume [OPTIONS] FILE --stdio -- CMD…"
)]
pub(crate) struct Resume {
    /// What --save has written. It is rewritten if the server asks again, and removed when the call is over.
    pub(crate) file: PathBuf,
    /// The server's url. Left out: the one in the file; with credentials it has to be given.
    #[arg(conflicts_with = "stdio")]
    pub(crate) url: Option<String>,
    /// The file with the key that it is sealed with.
    #[arg(long, value_name = "FILE")]
    pub(crate) key_file: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) answering: Answering,
    #[command(flatten)]
    pub(crate) reach: Reach,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;
    use mrtr_core::{
        bridge::{Pool, Quota},
        client::Policy,
    };

    use super::*;

    /// What is left out is what the library's defaults say.
    #[test]
    fn the_help_says_the_defaults() {
        let mut command = Args::command();
        let mut help = |name: &str, option: &str| {
            let command = command.find_subcommand_mut(name).unwrap();
            let option = command.get_arguments().find(|one| one.get_long() == Some(option)).unwrap();
            option.get_help().unwrap().to_string()
        };
        let (policy, quota) = (Policy::default(), Quota::default());
        let timeout = help("call", "timeout");
        assert!(timeout.ends_with(&format!("Left out: {}", policy.request_timeout.as_secs())), "{timeout}");
        assert!(timeout.contains(&format!("may take {},", policy.request_longest.as_secs())), "{timeout}");
        let processes = help("bridge", "processes");
        assert!(processes.contains(&format!("{} at most", Pool::default().own_processes)), "{processes}");
        for (option, default) in [
            ("processes", Pool::default().processes),
            ("quota-calls", quota.calls),
            ("quota-parked", quota.parked),
        ] {
            let said = help("bridge", option);
            assert!(said.ends_with(&format!("Left out: {default}")), "{said}");
        }
    }

    #[test]
    fn json_is_wanted_by_an_option_of_ours_alone() {
        let wanted = |line: &str| json_is_wanted(line.split(' ').map(OsString::from));
        assert!(wanted("mrtr call --json") && wanted("mrtr --log off demo plan --json --bad"));
        assert!(!wanted("mrtr call --stdio x -- server --json") && !wanted("mrtr hostile --json"));
    }
}
