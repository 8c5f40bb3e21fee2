//! `mrtr demo`: the example tools, served and called in one process, over real HTTP.

use mrtr_tokio::{
    client::{Client, Options},
    example_tools,
    keys::{self, KeySource},
    server::{self, Anonymous, Endpoint},
};
use tokio::{net::TcpListener, sync::oneshot};

use crate::{Failure, args::Demo, call, show, terminal};

/// The tools, with arguments that fit.
const TOOLS: [(&str, &str); 8] = [
    ("plan", r#"{"city":"Lisbon"}"#),
    ("book_table", r#"{"people":2}"#),
    ("greet_two", "{}"),
    ("delete_files", "{}"),
    (
        "summarize",
        r#"{"text":"A server asks in mid-request. The client answers and sends the request again. Nothing is kept in between."}"#,
    ),
    ("list_project", "{}"),
    ("connect_account", r#"{"service":"calendar"}"#),
    ("plain", r#"{"text":"Hello."}"#),
];

pub(crate) async fn run(demo: Demo) -> Result<(), Failure> {
    let (tool, args) = chosen(&demo)?;
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
    if demo.answering.trace {
        show::note(&format!("serving {} at {url}; calling {tool} {args}", example_tools::NAME));
    }
    let client = Client::http(&url, call::config(), Options::default()).map_err(Failure::new)?;
    let done = call::one(&client, &tool, &args, &demo.answering).await;
    drop((client, stop));
    match serving.await {
        Ok(Ok(())) => done,
        Ok(Err(error)) => done.and(Err(Failure::new(error))),
        Err(_) => done.and(Err(Failure::new("the server ended unexpectedly"))),
    }
}

fn chosen(demo: &Demo) -> Result<(String, String), Failure> {
    let tool = match &demo.tool {
        Some(tool) => tool.clone(),
        None if terminal::is_there() && demo.answering.answers.is_empty() => {
            let names = TOOLS.map(|(name, _)| name).to_vec();
            inquire::Select::new("Which tool?", names)
                .prompt()
                .map_err(|_| Failure { text: String::from("given up"), code: Failure::INTERRUPTED })?
                .into()
        }
        None => String::from("plan"),
    };
    let fitting = TOOLS.iter().find(|(name, _)| *name == tool).map_or("{}", |(_, args)| args);
    let args = demo.args.clone().unwrap_or_else(|| fitting.into());
    Ok((tool, args))
}
