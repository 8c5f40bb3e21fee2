//! `mrtr demo`: the example tools, served and called in one process, over real HTTP.

use mrtr_tokio::{
    client::Client,
    example_tools,
    keys::{self, KeySource},
    server::{self, Anonymous, Endpoint},
};
use tokio::{net::TcpListener, sync::oneshot};

use crate::{
    Failure,
    args::{Demo, Kind},
    call, reach, show,
    terminal::{self, Terminal},
};

/// The tools, with what they show and arguments that fit.
const TOOLS: [(&str, &str, &str); 8] = [
    ("plan", "two questions, the second depends on the first answer", r#"{"city":"Lisbon"}"#),
    ("book_table", "several steps, choices, a last yes", r#"{"people":2}"#),
    ("greet_two", "two questions in one round", "{}"),
    ("delete_files", "a yes to something that may change while you think", "{}"),
    (
        "summarize",
        "a question to the client's model",
        r#"{"text":"A server asks in mid-request. The client answers and sends the request again. Nothing is kept in between."}"#,
    ),
    ("list_project", "a question to the client: its folders", "{}"),
    ("connect_account", "a page to open, and waiting until it is done", r#"{"service":"calendar"}"#),
    ("plain", "no question at all", r#"{"text":"Hello."}"#),
];

struct Offer(&'static str, &'static str);

impl std::fmt::Display for Offer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:<15} {}", self.0, self.1)
    }
}

pub(crate) async fn run(demo: Demo) -> Result<(), Failure> {
    let (tool, args) = chosen(&demo)?;
    call::check_args(&args)?;
    let terminal = Terminal::new(&demo.answering)?;
    // The server ends with this process, so nothing is lost with its key.
    let key = keys::generate().and_then(|text| keys::decode(&text)).map_err(Failure::new)?;
    let sealer = KeySource::Bytes(&key).sealer(example_tools::NAME).map_err(Failure::new)?;
    let service = example_tools::service(sealer).map_err(Failure::new)?;
    let listener = TcpListener::bind("127.0.0.1:0").await.map_err(Failure::new)?;
    let url = format!("http://{}/mcp", listener.local_addr().map_err(Failure::new)?);
    let (stop, stopped) = oneshot::channel::<()>();
    let endpoint = Endpoint::new(service, Anonymous::new());
    let stopped = async {
        // Dropping the sender stops it, too.
        let _ = stopped.await;
    };
    let serving = tokio::spawn(server::serve(listener, endpoint, server::Options::default(), stopped));
    show::note(&format!("serving {} at {url}; calling {tool} {args}", example_tools::NAME));
    let options = reach::options(&demo.answering);
    let client = Client::http(&url, reach::config(), options).map_err(Failure::new)?;
    let done = call::one(&client, Kind::Tool, &tool, &args, &terminal).await;
    let done = call::tell(done, &client, &demo.answering, &call::Aside::Nowhere, &terminal);
    drop((client, stop));
    if let Ok(requests) = done {
        show::note(&what_happened(requests, demo.answering.trace));
    }
    let done = done.map(|_| ());
    match serving.await {
        Ok(Ok(())) => done,
        Ok(Err(error)) => done.and(Err(Failure::new(error))),
        Err(_) => done.and(Err(Failure::new("the server ended unexpectedly"))),
    }
}

/// For somebody who has never seen it.
fn what_happened(requests: u32, traced: bool) -> String {
    let more = if traced { "" } else { "\n--trace shows each of them." };
    if requests <= 1 {
        return format!("\nWhat happened: one request, and its result. This tool had nothing to ask.{more}");
    }
    format!(
        "\nWhat happened: this one call took {requests} requests. The server answered each but the last with what it still \
         needed and a sealed state,\nand forgot the call. The client sent the request again with the state and the answers, \
         so any replica could have gone on.{more}"
    )
}

fn chosen(demo: &Demo) -> Result<(String, String), Failure> {
    let tool = match &demo.tool {
        Some(tool) => tool.clone(),
        None if terminal::is_there() && !demo.answering.gives_answers() && !demo.answering.no_prompt => {
            let offers = TOOLS.map(|(name, about, _)| Offer(name, about)).into();
            inquire::Select::new("Which tool?", offers)
                .with_page_size(TOOLS.len())
                .prompt()
                .map_err(|_| Failure::interrupted())?
                .0
                .into()
        }
        None => String::from("plan"),
    };
    let fitting = TOOLS.iter().find(|(name, ..)| *name == tool).map_or("{}", |(.., args)| args);
    let args = demo.args.clone().unwrap_or_else(|| fitting.into());
    Ok((tool, args))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_help_names_every_tool() {
        let mut command = crate::args::Args::command();
        let help = command.find_subcommand_mut("demo").unwrap().render_help().to_string();
        for (name, ..) in TOOLS {
            assert!(help.contains(&format!("`{name}`")), "{name}: {help}");
        }
    }
}
