//! `mrtr call`: one tool of a server.

use std::process::Stdio;

use http::{HeaderName, HeaderValue};
use mrtr_core::{
    Limits,
    client::Config,
    jsonrpc::Json,
    wire::{ClientCapabilities, Implementation},
};
use mrtr_tokio::client::{CallError, Client, Options};

use crate::{
    Failure,
    args::{Answering, Call},
    show,
    terminal::Terminal,
};

pub(crate) async fn run(call: Call) -> Result<(), Failure> {
    let (client, tool) = connect(&call)?;
    let done = match tool {
        Some(tool) => one(&client, &tool, &call.args, &call.answering).await.map(|_| ()),
        None => list(&client, call.answering.json).await,
    };
    client.close().await;
    done
}

/// What this client says of itself. It can show everything; what nobody answers in the end fails then, by name.
pub(crate) fn config() -> Config {
    let mut can = ClientCapabilities::default();
    (can.form, can.url, can.sampling, can.roots) = (true, true, true, true);
    Config::new(Implementation::new("mrtr", env!("CARGO_PKG_VERSION")), can)
}

fn connect(call: &Call) -> Result<(Client, Option<String>), Failure> {
    let mut options = Options::default();
    let mut target = call.target.iter().cloned();
    if call.stdio {
        let Some((program, args)) = call.server.split_first() else {
            return Err(Failure::usage("--stdio needs the server's command after `--`"));
        };
        if call.target.len() > 1 {
            return Err(Failure::usage("with --stdio there is no url: mrtr call --stdio TOOL -- CMD…"));
        }
        let mut command = tokio::process::Command::new(program);
        command.args(args).stderr(Stdio::inherit());
        return Ok((Client::stdio(command, config(), options), target.next()));
    }
    let Some(url) = target.next() else {
        return Err(Failure::usage(
            "where is the server? mrtr call URL TOOL, or mrtr call --stdio TOOL -- CMD…",
        ));
    };
    for header in &call.headers {
        options.headers.push(parse_header(header)?);
    }
    if let Some(name) = &call.bearer_env {
        let token = std::env::var(name)
            .map_err(|_| Failure::new(format!("the environment variable {name} is not set")))?;
        let mut value = HeaderValue::try_from(format!("Bearer {token}"))
            .map_err(|_| Failure::new(format!("the token in {name} cannot stand in a header")))?;
        value.set_sensitive(true);
        options.headers.push((http::header::AUTHORIZATION, value));
    }
    let client = Client::http(&url, config(), options).map_err(Failure::usage)?;
    Ok((client, target.next()))
}

fn parse_header(header: &str) -> Result<(HeaderName, HeaderValue), Failure> {
    let wrong =
        || Failure::usage(format!("--header {:?} is not of the form `Name: value`", show::line(header, 20)));
    let (name, value) = header.split_once(':').ok_or_else(wrong)?;
    let mut value = HeaderValue::try_from(value.trim()).map_err(|_| wrong())?;
    value.set_sensitive(true);
    Ok((HeaderName::try_from(name.trim()).map_err(|_| wrong())?, value))
}

/// Calls a tool and prints what comes of it. How many requests it took.
pub(crate) async fn one(
    client: &Client,
    tool: &str,
    args: &str,
    answering: &Answering,
) -> Result<u32, Failure> {
    match Json::parse(args, &Limits::default()) {
        Ok(args) if args.is_object() => {}
        Ok(_) => return Err(Failure::usage("--args is not a JSON object")),
        Err(error) => return Err(Failure::usage(format!("--args: {error}"))),
    }
    let mut terminal = Terminal::new(answering)?;
    let done = client.call_tool(tool, args, &mut terminal).await;
    terminal.finish();
    let reply = match done {
        Ok(reply) => reply,
        Err(CallError::Unanswered(_)) if terminal.interrupted => {
            return Err(Failure { text: String::from("given up"), code: Failure::INTERRUPTED });
        }
        Err(error @ CallError::Unanswered(_)) => {
            return Err(Failure { text: error.to_string(), code: Failure::UNANSWERED });
        }
        Err(error) => return Err(Failure::new(error)),
    };
    let (text, failed) = show::tool_result(reply.result());
    if answering.json {
        show::result(reply.result().as_str());
    } else if !failed {
        show::result(&text);
    }
    if failed { Err(Failure::new(format!("the tool failed: {text}"))) } else { Ok(reply.rounds()) }
}

async fn list(client: &Client, json: bool) -> Result<(), Failure> {
    for tool in client.list_tools().await.map_err(Failure::new)? {
        if json {
            show::result(&tool.json);
        } else {
            let about = tool.description.as_deref().or(tool.title.as_deref()).unwrap_or_default();
            show::result(&format!("{}  {}", show::line(&tool.name, 64), show::line(about, 400)));
        }
    }
    Ok(())
}
