//! `mrtr inbox`: questions that hosts cannot show, answered from a terminal.

mod place;
mod speak;

use clap::{Args, Subcommand};
use serde_json::{Value, json};

pub(crate) use self::place::{Place, TokenArgs};

use crate::{Failure, failure::Exit, show};

#[derive(Args)]
#[group(id = "at-inbox")]
pub(crate) struct Inbox {
    #[command(subcommand)]
    what: What,
    /// What `mrtr bridge --inbox` was given: the path of a socket, or an address on this machine.
    #[arg(long, global = true, value_name = "ADDR|PATH")]
    inbox: Option<Place>,
    #[command(flatten)]
    token: TokenArgs,
}

#[derive(Subcommand)]
enum What {
    /// Lists the questions that wait, a line each: number, kind, server, tool, question.
    List,
    /// Shows a question in full, as JSON.
    Show {
        /// Its number.
        id: u64,
    },
    /// Answers a question.
    Answer {
        /// Its number.
        id: u64,
        /// A form's content, an object; `accept`, `decline` or `cancel`; or a whole answer.
        answer: String,
    },
    /// Declines a question.
    Decline {
        /// Its number.
        id: u64,
    },
}

pub(crate) async fn run(inbox: Inbox) -> Result<(), Failure> {
    let Some(place) = &inbox.inbox else {
        return Err(Failure::usage("which inbox? mrtr inbox --inbox ADDR|PATH …"));
    };
    let opened = inbox.token.open(place)?;
    let ask = async |request: Value| speak::ask(&opened, &request).await;
    match &inbox.what {
        What::List => {
            let listed = ask(json!({"op": "list"})).await?;
            for (id, entry) in entries(&listed)? {
                let text = |pointer: &str| {
                    show::line(entry.pointer(pointer).and_then(Value::as_str).unwrap_or_default(), 200)
                };
                let (kind, upstream, target) = (text("/kind"), text("/upstream"), text("/target"));
                show::result(&format!(
                    "{id}  {kind}  {upstream}  {target}  {}",
                    text("/question/params/message")
                ));
            }
        }
        What::Show { id } => {
            let listed = ask(json!({"op": "list"})).await?;
            let found = entries(&listed)?.into_iter().find(|(of, _)| of == id);
            let (_, found) =
                found.ok_or_else(|| Failure::with(Exit::Refused, "there is no such question"))?;
            show::result(&serde_json::to_string_pretty(found).map_err(Failure::new)?);
        }
        What::Answer { id, answer } => {
            answered(&ask(json!({"op": "answer", "id": id, "answer": whole(answer)?})).await?, *id)?;
        }
        What::Decline { id } => answered(&ask(json!({"op": "decline", "id": id})).await?, *id)?,
    }
    Ok(())
}

/// The questions, each with its number.
fn entries(listed: &Value) -> Result<Vec<(u64, &Value)>, Failure> {
    let entries = listed.get("entries").and_then(Value::as_array);
    entries
        .and_then(|entries| entries.iter().map(|entry| Some((entry.get("id")?.as_u64()?, entry))).collect())
        .ok_or_else(|| Failure::with(Exit::Protocol, "the inbox's reply is no list of questions"))
}

/// Nothing else than this question was answered.
fn answered(reply: &Value, id: u64) -> Result<(), Failure> {
    match reply.get("answered").and_then(Value::as_u64) {
        Some(answered) if answered == id => Ok(()),
        _ => Err(Failure::with(
            Exit::Protocol,
            "the inbox's reply does not say that the question was answered",
        )),
    }
}

/// An answer on the wire.
fn whole(text: &str) -> Result<Value, Failure> {
    if matches!(text, "accept" | "decline" | "cancel") {
        return Ok(json!({"action": text}));
    }
    let value: Value = serde_json::from_str(text)
        .map_err(|error| Failure::usage(format!("the answer is not JSON: {error}")))?;
    let is_whole = ["action", "role", "roots"].iter().any(|name| value.get(name).is_some());
    Ok(if is_whole { value } else { json!({"action": "accept", "content": value}) })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is no reply of an inbox is no success, whatever was asked.
    #[test]
    fn another_reply_is_none() {
        for listed in
            [json!({}), json!({"entries": 5}), json!({"entries": [5]}), json!({"entries": [{"id": "1"}]})]
        {
            assert_eq!(entries(&listed).unwrap_err().exit, Exit::Protocol, "{listed}");
        }
        assert_eq!(entries(&json!({"entries": []})).unwrap().len(), 0);
        assert_eq!(entries(&json!({"entries": [{"id": 3}]})).unwrap()[0].0, 3);
        for reply in [json!({}), json!({"answered": 2}), json!({"answered": true})] {
            assert_eq!(answered(&reply, 1).unwrap_err().exit, Exit::Protocol, "{reply}");
        }
        answered(&json!({"answered": 1, "accepted": true}), 1).unwrap();
    }
}
