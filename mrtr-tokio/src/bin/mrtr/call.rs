//! `mrtr call`: one tool, prompt or resource of a server.

use std::{future::Future, time::Duration};

use mrtr_core::{Limits, jsonrpc::Json};
use mrtr_tokio::client::{CallError, Client, Reply};
use serde_json::{Value, json};

use crate::{
    Failure, answers,
    args::{Answering, Call, Kind},
    failure::Exit,
    saved::Store,
    screen,
    serve::asked_to_stop,
    show,
    terminal::Terminal,
};

pub(crate) async fn run(call: Call) -> Result<(), Failure> {
    let mut target = call.target.iter().map(String::as_str);
    let url = if call.reach.stdio { None } else { target.next() };
    let name = target.next();
    if target.next().is_some() {
        return Err(Failure::usage("with --stdio there is no url: mrtr call --stdio NAME -- CMD…"));
    }
    let given = check_args(&call.args)?;
    if call.kind == Kind::Resource && given > 0 {
        return Err(Failure::usage("--args: a resource is read by its uri alone, and has no arguments"));
    }
    let terminal = Terminal::new(&call.answering)?;
    let store = call.saving.save.as_deref();
    let store = store.map(|path| Store::new(path, call.saving.key_file.as_deref())).transpose()?;
    if let Some(store) = &store {
        store.must_be_free()?;
    }
    let client = call.reach.client(url, &call.answering)?;
    let Some(name) = name else {
        let listed = conduct(&terminal, list(&client, &call)).await;
        terminal.finish();
        client.close().await;
        return listed.unwrap_or_else(|| Err(Failure::interrupted()));
    };
    let done = one(&client, call.kind, name, &call.args, &terminal).await;
    let said = tell(done, &client, &call.answering, &store.as_ref().into(), &terminal);
    client.close().await;
    said.map(|_| ())
}

/// Arguments are an object; the server is not asked to say so. How many there are.
pub(crate) fn check_args(text: &str) -> Result<usize, Failure> {
    let args = Json::parse(text, &Limits::default())
        .map_err(|error| Failure::usage(format!("--args: {}", answers::fault(error))))?;
    let members = args.members().ok_or_else(|| Failure::usage("--args is not a JSON object"))?;
    Ok(members.count())
}

/// Makes the call; nothing if it was given up with Ctrl-C.
pub(crate) async fn one(
    client: &Client,
    kind: Kind,
    name: &str,
    args: &str,
    terminal: &Terminal,
) -> Option<Result<Reply, CallError>> {
    match kind {
        Kind::Tool => conduct(terminal, client.call_tool(name, args, terminal)).await,
        Kind::Prompt => conduct(terminal, client.get_prompt(name, args, terminal)).await,
        Kind::Resource => conduct(terminal, client.read_resource(name, terminal)).await,
    }
}

/// Waits for something, and says so; Ctrl-C or SIGTERM drops it, which cancels what is under way.
pub(crate) async fn conduct<T>(terminal: &Terminal, work: impl Future<Output = T>) -> Option<T> {
    let mut work = std::pin::pin!(work);
    let done = tokio::select! {
        biased;
        done = &mut work => Some(done),
        // Between rounds a call that is given up ends by itself, and can still be saved.
        () = terminal.interrupted() => tokio::time::timeout(Duration::from_millis(500), &mut work).await.ok(),
        () = told_to_stop() => None,
        never = screen::draw() => match never {},
    };
    screen::rests();
    done
}

async fn told_to_stop() {
    asked_to_stop().await;
    show::note("mrtr: cancelling; Ctrl-C again leaves at once");
    tokio::spawn(async {
        asked_to_stop().await;
        show::leave();
        std::process::exit(Exit::Interrupted.code().into());
    });
}

/// Where a call that waits is put aside.
pub(crate) enum Aside<'s> {
    /// This command cannot.
    Nowhere,
    /// It can be asked to.
    IfAsked,
    /// It was asked to.
    Into(&'s Store),
}

impl<'s> From<Option<&'s Store>> for Aside<'s> {
    fn from(store: Option<&'s Store>) -> Self {
        store.map_or(Self::IfAsked, Self::Into)
    }
}

/// Says what came of a call, and puts it aside if it waits. How many requests it took.
pub(crate) fn tell(
    done: Option<Result<Reply, CallError>>,
    client: &Client,
    answering: &Answering,
    aside: &Aside<'_>,
    terminal: &Terminal,
) -> Result<u32, Failure> {
    terminal.finish();
    let error = match done {
        None => return Err(said(Failure::interrupted(), answering, Value::Null)),
        Some(Ok(reply)) => return result(&reply, answering),
        Some(Err(error)) => error,
    };
    let mut failure = Failure::from(&error);
    if terminal.was_interrupted() && failure.exit == Exit::Unanswered {
        failure = Failure::interrupted();
    }
    let mut more = json!({});
    if let CallError::Peer(peer) | CallError::StateRefused(peer) = &error {
        more = json!({ "code": peer.code.get(), "data": peer.data().map(|data| raw(data.as_str())) });
    }
    // Only servers of 2026-07-28 leave a call to its client while it waits.
    let gone = matches!(&error, CallError::Unanswered { waiting: None, .. });
    if gone && matches!(aside, Aside::Into(_)) {
        failure.text.push_str(
            "\nmrtr: not saved: a server of 2025-11-25 or before holds the call itself, and it was cancelled there",
        );
    }
    if let Some(waiting) = error.into_waiting() {
        let open = waiting.asks().filter(|ask| ask.answer().is_none());
        let questions: Vec<Value> = open
            .map(|ask| {
                let mut text = Vec::new();
                ask.request().write(&mut text);
                json!({ "key": ask.key(), "request": raw(&String::from_utf8_lossy(&text)) })
            })
            .collect();
        more = json!({ "questions": questions });
        match aside {
            Aside::IfAsked if !terminal.has_person() => failure.text.push_str(
                "\nmrtr: with --save FILE the call is put aside, to be carried on by mrtr resume FILE",
            ),
            Aside::Nowhere | Aside::IfAsked => {}
            Aside::Into(store) => {
                if let Err(fault) = store.write(client, &waiting) {
                    // What was not answered is worth knowing nevertheless.
                    failure = Failure::new(format_args!("{}\nmrtr: not saved: {}", failure.text, fault.text));
                } else {
                    more = json!({ "questions": questions, "saved": store.path.display().to_string() });
                    let command = store.command(client);
                    failure.text = format!("{}\nmrtr: saved: {command} carries it on", failure.text);
                }
            }
        }
    }
    Err(said(failure, answering, more))
}

/// JSON of a peer's as a value of ours.
fn raw(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or(Value::Null)
}

/// With `--json`, standard output says what went wrong, too.
fn said(failure: Failure, answering: &Answering, more: Value) -> Failure {
    if answering.json {
        show::json(&failure.json(more));
    }
    failure
}

fn result(reply: &Reply, answering: &Answering) -> Result<u32, Failure> {
    let (text, failed) = show::called(reply.result());
    if answering.json {
        show::json(reply.result().as_str());
    } else if !failed {
        show::result(&text);
    }
    if failed { Err(Failure::new(format!("the tool failed: {text}"))) } else { Ok(reply.rounds()) }
}

async fn list(client: &Client, call: &Call) -> Result<(), Failure> {
    let failed = |error: CallError| said(Failure::from(&error), &call.answering, Value::Null);
    let all: Vec<String> = match call.kind {
        Kind::Tool => client.list_tools().await.map_err(failed)?.into_iter().map(|tool| tool.json).collect(),
        Kind::Prompt => client.list_prompts().await.map_err(failed)?,
        Kind::Resource => client.list_resources().await.map_err(failed)?,
    };
    let name = if call.kind == Kind::Resource { "uri" } else { "name" };
    for json in all {
        if call.answering.json {
            show::json(&json);
            continue;
        }
        let Ok(declared) = Json::parse(&json, &Limits::default()) else { continue };
        let text = |member: &str| declared.get(member).and_then(Json::as_string).unwrap_or_default();
        let about = if text("description").is_empty() { text("title") } else { text("description") };
        show::result(&format!("{}  {}", show::line(&text(name), 200), show::line(&about, 400)));
    }
    Ok(())
}
