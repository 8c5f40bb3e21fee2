//! `mrtr inbox`: questions that hosts cannot show, answered from a terminal.

mod place;
mod speak;

use clap::{Args, Subcommand};
use mrtr_core::{
    Limits,
    form::Schema,
    jsonrpc::Json,
    wire::{Action, InputRequest, Root},
};
use serde_json::{Value, json};

pub(crate) use self::place::{Place, TokenArgs};

use crate::{
    Failure,
    answers::{self, Answer},
    failure::Exit,
    show,
};

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
        /// What `mrtr call --answer` takes: a form's content, or the value alone if it has one field; `accept`,
        /// `decline` or `cancel`; a model's reply as a string; roots as an array of urls; or a whole answer.
        #[arg(allow_negative_numbers = true)]
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
    let ask = async |request: Value| speak::ask(&opened, &request.to_string()).await;
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
            show::json(&serde_json::to_string_pretty(entry(&listed, *id)?).map_err(Failure::new)?);
        }
        What::Answer { id, answer } => {
            // What is asked says what the answer means: nothing but a yes is one to a question of yes or no.
            let listed = ask(json!({"op": "list"})).await?;
            let answer = meant(answer.trim(), entry(&listed, *id)?)?;
            let request = format!(r#"{{"op":"answer","id":{id},"answer":{answer}}}"#);
            answered(&speak::ask(&opened, &request).await?, *id)?;
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

fn entry(listed: &Value, id: u64) -> Result<&Value, Failure> {
    let found = entries(listed)?.into_iter().find(|(of, _)| *of == id);
    found.map(|(_, entry)| entry).ok_or_else(|| Failure::with(Exit::Refused, "there is no such question"))
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

/// An answer on the wire, JSON text, of a text that was typed for this question. What was typed stays as it is: a number is
/// not what another program would make of it.
fn meant(text: &str, entry: &Value) -> Result<String, Failure> {
    let no_question = |_| Failure::with(Exit::Protocol, "the inbox's reply has no question that can be read");
    let question = entry.get("question").map(Value::to_string).unwrap_or_default();
    let question = Json::parse(&question, &Limits::default()).map_err(|_| no_question(()))?;
    let request = InputRequest::from_json(question).map_err(|_| no_question(()))?;
    let is_foreign = request.requested_schema().is_some_and(|schema| Schema::read(schema).is_err());
    let answer = if is_foreign { foreign(text, &request) } else { answers::read(text, &request) };
    let answer = answer.map_err(|problem| Failure::usage(format_args!("the answer: {problem}")))?;
    let on_wire = match answer {
        Answer::Accept(content) => format!(r#"{{"action":"accept","content":{content}}}"#),
        Answer::AcceptUrl => String::from(r#"{"action":"accept"}"#),
        Answer::Decline => String::from(r#"{"action":"decline"}"#),
        Answer::Cancel => String::from(r#"{"action":"cancel"}"#),
        Answer::Sampling(reply) => reply,
        Answer::Roots(roots) => {
            let root = |root: &Root| match &root.name {
                Some(name) => json!({"uri": root.uri, "name": name}),
                None => json!({"uri": root.uri}),
            };
            json!({"roots": roots.iter().map(root).collect::<Vec<_>>()}).to_string()
        }
    };
    // A line is a request: in JSON a line break is nothing but space.
    Ok(on_wire.replace(['\n', '\r'], " "))
}

/// The same for a form that is none of the protocol's, whose content its server alone can judge.
fn foreign(text: &str, request: &InputRequest<'_>) -> Result<Answer, String> {
    let said = |action| match action {
        Action::Accept => Answer::Accept(String::from("{}")),
        Action::Decline => Answer::Decline,
        Action::Cancel => Answer::Cancel,
    };
    if let Some(action) = Action::from_name(text) {
        return Ok(said(action));
    }
    let json = Json::parse(text, &Limits::default()).map_err(answers::fault)?;
    let content = match answers::whole(json, request) {
        Some(Action::Accept) => json.get("content").unwrap_or(Json::EMPTY_OBJECT),
        Some(action) => return Ok(said(action)),
        None => json,
    };
    if content.is_object() {
        Ok(Answer::Accept(content.as_str().into()))
    } else {
        Err(String::from("the content of a form is an object"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_as(text: &str, entry: &Value) -> Result<Value, Failure> {
        meant(text, entry).map(|json| serde_json::from_str(&json).unwrap())
    }

    /// R-098: what is no yes becomes none on its way, whatever the question is.
    #[test]
    fn an_answer_means_what_the_question_makes_of_it() {
        let form = |properties: Value| {
            let schema = json!({"type": "object", "properties": properties});
            json!({"question": {"method": "elicitation/create", "params": {"message": "?", "requestedSchema": schema}}})
        };
        let sure = form(json!({}));
        for no_yes in [r#"{"sure":false}"#, r#"{"action":"no"}"#, "false", "no", "null", ""] {
            assert_eq!(read_as(no_yes, &sure).unwrap_err().exit, Exit::Usage, "{no_yes}");
        }
        assert_eq!(read_as("accept", &sure).unwrap(), json!({"action": "accept", "content": {}}));
        assert_eq!(read_as("decline", &sure).unwrap(), json!({"action": "decline"}));
        let days = form(json!({"days": {"type": "integer"}}));
        let accepted = json!({"action": "accept", "content": {"days": -3}});
        for text in ["-3", r#"{"days":-3}"#, r#"{"action":"accept","content":{"days":-3}}"#] {
            assert_eq!(read_as(text, &days).unwrap(), accepted, "{text}");
        }
        // Whether this fits is not known here.
        let foreign = form(json!({"deep": {"type": "object"}}));
        let accepted = json!({"action": "accept", "content": {"deep": {}}});
        assert_eq!(read_as(r#"{"deep":{}}"#, &foreign).unwrap(), accepted);
        assert_eq!(read_as(r#"{"action":"accept","content":{"deep":{}}}"#, &foreign).unwrap(), accepted);
        for (text, action) in [("cancel", "cancel"), (r#"{"action":"decline"}"#, "decline")] {
            assert_eq!(read_as(text, &foreign).unwrap(), json!({"action": action}), "{text}");
        }
        for none in ["null", "5", "\"accept\"", r#"{"action":"accept","content":null}"#, r#"{"a":1,"a":2}"#] {
            assert_eq!(read_as(none, &foreign).unwrap_err().exit, Exit::Usage, "{none}");
        }
        // A field of that name is answered, and says nothing about the form.
        let named = form(json!({"action": {"type": "object"}}));
        let accepted = json!({"action": "accept", "content": {"action": "decline"}});
        assert_eq!(read_as(r#"{"action":"decline"}"#, &named).unwrap(), accepted);
        let ask = |method: &str, params: Value| json!({"question": {"method": method, "params": params}});
        let roots = ask("roots/list", json!({}));
        let listed = json!({"roots": [{"uri": "file:///a"}]});
        for text in [r#"["file:///a"]"#, r#"{"roots":[{"uri":"file:///a"}]}"#] {
            assert_eq!(read_as(text, &roots).unwrap(), listed, "{text}");
        }
        let model = ask("sampling/createMessage", json!({"messages": [], "maxTokens": 1}));
        assert_eq!(read_as("\"Short.\"", &model).unwrap()["content"]["text"], "Short.");
        assert_eq!(read_as("1", &json!({"question": {}})).unwrap_err().exit, Exit::Protocol);
    }

    /// Nothing is read into another program's numbers on the way, and a request is one line.
    #[test]
    fn what_was_typed_stays_as_it_is() {
        for kind in ["number", "object"] {
            let schema = json!({"type": "object", "properties": {"n": {"type": kind}}});
            let params = json!({"message": "?", "requestedSchema": schema});
            let entry = json!({"question": {"method": "elicitation/create", "params": params}});
            for number in ["12345678901234567890123", "9007199254740993.5"] {
                let said = meant(&format!("{{\n\"n\":\r\n{number}}}"), &entry).unwrap();
                assert!(said.contains(number) && !said.contains(['\n', '\r']), "{said}");
            }
        }
    }

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
