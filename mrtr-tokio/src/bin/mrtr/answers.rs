//! Answers given in advance: `--answer KEY=JSON`, `--answers FILE`.

use std::{collections::BTreeMap, io::Read as _, path::Path};

use mrtr_core::{
    Limits,
    form::Schema,
    jsonrpc::{Json, Refusal},
    wire::{Action, AskKind, InputRequest, Root},
};

use crate::Failure;

/// An answer, from the command line or from the person.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// The content of a form: JSON text of an object.
    Accept(String),
    /// Somebody agreed to open the url.
    AcceptUrl,
    Decline,
    Cancel,
    /// The model's reply: JSON text of an object.
    Sampling(String),
    Roots(Vec<Root>),
}

/// The answers of the command line, by key.
#[derive(Debug, Default)]
pub(crate) struct Prepared {
    answers: BTreeMap<String, Given>,
}

#[derive(Debug)]
struct Given {
    text: String,
    used: bool,
}

impl Prepared {
    /// Those of the options; one that is given by name wins over one in a file.
    pub(crate) fn new(all: &[String], file: Option<&Path>) -> Result<Self, Failure> {
        let mut prepared = Self::default();
        for (index, one) in all.iter().enumerate() {
            // What it says is not repeated: it may be an answer whose key was forgotten.
            let Some((key, text)) = one.split_once('=').filter(|(key, _)| !key.is_empty()) else {
                return Err(Failure::usage(format!("--answer: number {} is not KEY=JSON", index + 1)));
            };
            if !prepared.add(key, text.trim()) {
                return Err(Failure::usage(format!("--answer: the key {key:?} is given twice")));
            }
        }
        if let Some(path) = file {
            for (key, text) in from_file(path)? {
                prepared.add(&key, &text);
            }
        }
        Ok(prepared)
    }

    fn add(&mut self, key: &str, text: &str) -> bool {
        let given = Given { text: text.into(), used: false };
        match self.answers.entry(key.into()) {
            std::collections::btree_map::Entry::Vacant(vacant) => drop(vacant.insert(given)),
            std::collections::btree_map::Entry::Occupied(_) => return false,
        }
        true
    }

    /// Keys of answers to questions that never came.
    pub(crate) fn unused(&self) -> impl Iterator<Item = &str> {
        self.answers.iter().filter(|(_, given)| !given.used).map(|(key, _)| key.as_str())
    }

    /// The answer to a question, if one was given; what is wrong with it, if it does not fit.
    pub(crate) fn answer(&mut self, key: &str, request: &InputRequest<'_>) -> Option<Result<Answer, String>> {
        let given = self.answers.get_mut(key)?;
        given.used = true;
        Some(read(&given.text, request).map_err(|problem| format!("the answer given for {key:?}: {problem}")))
    }
}

/// A JSON object with a member a question; `-` is standard input.
fn from_file(path: &Path) -> Result<Vec<(String, String)>, Failure> {
    let mut text = String::new();
    let read = if path.as_os_str() == "-" {
        std::io::stdin().lock().read_to_string(&mut text)
    } else {
        std::fs::File::open(path).and_then(|mut file| file.read_to_string(&mut text))
    };
    read.map_err(|error| Failure::new(format!("--answers {}: {error}", path.display())))?;
    let wrong = |what: String| Failure::usage(format!("--answers {}: {what}", path.display()));
    let json = Json::parse(text.trim(), &Limits::default()).map_err(|error| wrong(fault(error)))?;
    let members =
        json.members().ok_or_else(|| wrong(String::from("not an object with a member for each question")))?;
    Ok(members.map(|(key, value)| (key.into_owned(), String::from(value.as_str()))).collect())
}

/// What a text means as the answer to this question.
pub(crate) fn read(text: &str, request: &InputRequest<'_>) -> Result<Answer, String> {
    let kind = request.kind();
    let elicitation = matches!(kind, AskKind::Form | AskKind::Url);
    match text {
        "decline" if elicitation => return Ok(Answer::Decline),
        "cancel" if elicitation => return Ok(Answer::Cancel),
        "accept" | "true" if kind == AskKind::Url => return Ok(Answer::AcceptUrl),
        "accept" if kind == AskKind::Form => return form("{}", request),
        _ => {}
    }
    let json = parsed(text)?;
    if elicitation && let Some(action) = whole(json, request) {
        return match (action, kind, json.get("content")) {
            (Action::Decline, ..) => Ok(Answer::Decline),
            (Action::Cancel, ..) => Ok(Answer::Cancel),
            (Action::Accept, AskKind::Form, content) => form(content.map_or("{}", Json::as_str), request),
            (Action::Accept, _, None) => Ok(Answer::AcceptUrl),
            (Action::Accept, _, Some(_)) => Err(String::from("the answer to a url has no content")),
        };
    }
    match kind {
        AskKind::Form => form(text, request),
        // In a file there are no words without quotes.
        AskKind::Url => match json.as_string().as_deref().and_then(Action::from_name) {
            Some(Action::Accept) => Ok(Answer::AcceptUrl),
            Some(Action::Decline) => Ok(Answer::Decline),
            Some(Action::Cancel) => Ok(Answer::Cancel),
            None => Err(String::from("a url is answered with accept, decline or cancel")),
        },
        AskKind::Sampling if json.is_object() => Ok(Answer::Sampling(text.into())),
        AskKind::Sampling => match json.as_string() {
            Some(said) => Ok(Answer::Sampling(sampled(&said))),
            None => Err(String::from("a model's reply is a string, or a whole result as an object")),
        },
        AskKind::Roots => match json.get("roots").unwrap_or(json).items() {
            Some(items) => Ok(Answer::Roots(roots(items)?)),
            None => Err(String::from("roots are an array of file:// urls, or of objects with a uri")),
        },
    }
}

/// The action of a whole answer, as it would stand on the wire: `{"action":"decline"}`. A form that has such a field
/// itself is answered with its content.
pub(crate) fn whole(json: Json<'_>, request: &InputRequest<'_>) -> Option<Action> {
    let action = Action::from_name(&json.get("action")?.as_string()?)?;
    let others = json.members()?.any(|(name, _)| !matches!(&*name, "action" | "content"));
    let fields = request.requested_schema().and_then(|schema| schema.get("properties"));
    let a_field = fields.is_some_and(|fields| fields.get("action").is_some());
    (!others && !a_field).then_some(action)
}

fn parsed(text: &str) -> Result<Json<'_>, String> {
    Json::parse(text, &Limits::default())
        .map_err(|error| format!("{} (a text is given in quotes, '\"some text\"')", fault(error)))
}

/// What is wrong with a JSON text that was typed, which is no message.
pub(crate) fn fault(refusal: Refusal) -> String {
    if let Refusal::Syntax { at } = refusal { format!("not JSON at byte {at}") } else { refusal.to_string() }
}

/// The content of a form; the value alone will do for a form with one field.
///
/// A member that the form does not have is refused: `{"action":"decline"}` must not become a yes.
fn form(text: &str, request: &InputRequest<'_>) -> Result<Answer, String> {
    let schema = request.requested_schema().ok_or("the question has no form")?;
    let schema =
        Schema::read(schema).map_err(|fault| format!("the server's form cannot be used: {fault}"))?;
    let content = parsed(text)?;
    // In a file there are no words without quotes; a form without fields has no content to take them for.
    if schema.fields().is_empty()
        && let Some(action) = content.as_string().as_deref().and_then(Action::from_name)
    {
        return Ok(match action {
            Action::Accept => Answer::Accept(String::from("{}")),
            Action::Decline => Answer::Decline,
            Action::Cancel => Answer::Cancel,
        });
    }
    let known = |name: &str| schema.fields().iter().any(|field| field.name() == name);
    for (name, _) in content.members().into_iter().flatten() {
        if !known(&name) {
            return Err(if schema.fields().is_empty() {
                String::from("a yes or no is answered with accept, decline or cancel")
            } else {
                format!("the form has no field {name:?}")
            });
        }
    }
    let wrapped = match schema.fields() {
        [field] if !content.is_object() => format!("{{{}:{text}}}", quoted(field.name())),
        [] if content.as_bool() == Some(true) => String::from("{}"),
        [] if !content.is_object() => {
            return Err(String::from("a yes or no is answered with accept, decline or cancel"));
        }
        _ => text.into(),
    };
    let content = parsed(&wrapped)?;
    let cleaned = schema.validate(content).map_err(|invalid| invalid.to_string())?;
    Ok(Answer::Accept(cleaned.into_string()))
}

/// A model's reply that is a text.
pub(crate) fn sampled(text: &str) -> String {
    let text = quoted(text);
    format!(
        r#"{{"role":"assistant","content":{{"type":"text","text":{text}}},"model":"person","stopReason":"endTurn"}}"#
    )
}

fn roots<'a>(items: impl Iterator<Item = Json<'a>>) -> Result<Vec<Root>, String> {
    let root = |item: Json<'_>| {
        let uri = item.as_string().or_else(|| item.get("uri").and_then(Json::as_string));
        let uri = uri.filter(|uri| uri.starts_with("file://"));
        let root = Root::new(uri.ok_or("a root is a file:// url, or an object with a uri")?);
        let name = item.get("name").and_then(Json::as_string);
        Ok(match name {
            Some(name) => root.named(name),
            None => root,
        })
    };
    items.map(root).collect()
}

pub(crate) fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str = r#"{"method":"elicitation/create","params":{"message":"?","requestedSchema":{"type":"object","properties":{"days":{"type":"integer","minimum":1}},"required":["days"]}}}"#;
    const URL: &str =
        r#"{"method":"elicitation/create","params":{"mode":"url","message":"?","url":"https://a.example"}}"#;
    const MODEL: &str = r#"{"method":"sampling/createMessage","params":{"messages":[],"maxTokens":1}}"#;

    const FIELD: &str = r#"{"method":"elicitation/create","params":{"message":"?","requestedSchema":{"type":"object","properties":{"action":{"type":"string"}}}}}"#;
    const SURE: &str = r#"{"method":"elicitation/create","params":{"message":"?","requestedSchema":{"type":"object","properties":{}}}}"#;

    #[test]
    fn only_a_yes_is_a_yes() {
        for yes in ["accept", "true", "{}"] {
            assert_eq!(read(yes, &asked(SURE)), Ok(Answer::Accept("{}".into())), "{yes}");
        }
        let others = [
            r#"{"action":"yes"}"#,
            r#"{"action":true}"#,
            r#"{"action":"accept","sure":true}"#,
            r#"{"confirm":false}"#,
            "false",
            "null",
            "0",
            "[]",
            "no",
            "",
        ];
        for other in others {
            assert!(read(other, &asked(SURE)).is_err(), "{other}");
        }
        assert!(read(r#"{"days":3,"action":"decline"}"#, &asked(ONE)).is_err());
        // A no is a no, in whatever way it is written.
        for no in ["decline", r#""decline""#, r#"{"action":"decline"}"#] {
            assert_eq!(read(no, &asked(SURE)), Ok(Answer::Decline), "{no}");
        }
    }

    #[test]
    fn whole_answers_are_those_of_the_wire() {
        let answer = |text| read(text, &asked(ONE));
        let accepted = Ok(Answer::Accept(r#"{"days":3}"#.into()));
        assert_eq!(answer(r#"{"action":"accept","content":{"days":3}}"#), accepted);
        assert!(answer(r#"{"action":"accept"}"#).is_err());
        assert_eq!(answer(r#"{"action":"cancel"}"#), Ok(Answer::Cancel));
        assert_eq!(read(r#"{"action":"accept"}"#, &asked(URL)), Ok(Answer::AcceptUrl));
        assert_eq!(read(r#""decline""#, &asked(URL)), Ok(Answer::Decline));
        assert!(read(r#"{"action":"accept","content":{}}"#, &asked(URL)).is_err());
        // Where it is a field of the form, it is one.
        let content = r#"{"action":"decline"}"#;
        assert_eq!(read(content, &asked(FIELD)), Ok(Answer::Accept(content.into())));
    }

    fn asked(json: &'static str) -> InputRequest<'static> {
        InputRequest::from_json(Json::parse(json, &Limits::default()).unwrap()).unwrap()
    }

    #[test]
    fn answers_are_read_by_what_is_asked() {
        let accepted = |text| read(text, &asked(ONE));
        assert_eq!(accepted("3"), Ok(Answer::Accept(r#"{"days":3}"#.into())));
        assert_eq!(accepted(r#"{"days":3}"#), Ok(Answer::Accept(r#"{"days":3}"#.into())));
        assert_eq!(accepted("decline"), Ok(Answer::Decline));
        // Never filled in with something that was not given.
        assert!(accepted("accept").is_err() && accepted("0").is_err() && accepted("{}").is_err());
        assert_eq!(read("accept", &asked(URL)), Ok(Answer::AcceptUrl));
        assert!(read("3", &asked(URL)).is_err());
        assert!(read("decline", &asked(MODEL)).is_err());
        let Ok(Answer::Sampling(reply)) = read(r#""Short.""#, &asked(MODEL)) else { panic!() };
        assert!(reply.contains(r#""text":"Short.""#));
    }

    #[test]
    fn each_key_once_and_by_name_before_the_file() {
        let prepared =
            |all: &[&str]| Prepared::new(&all.iter().map(|one| String::from(*one)).collect::<Vec<_>>(), None);
        assert!(prepared(&["days"]).is_err());
        assert!(prepared(&["days=1", "days=2"]).is_err());
        let mut both = prepared(&["days=1", "other=2"]).unwrap();
        assert!(!both.add("days", "9"));
        assert!(both.answer("pace", &asked(ONE)).is_none());
        let days = both.answer("days", &asked(ONE)).unwrap();
        assert_eq!(days, Ok(Answer::Accept(r#"{"days":1}"#.into())));
        assert_eq!(both.unused().collect::<Vec<_>>(), ["other"]);
    }
}
