//! Answers given in advance: `--answer KEY=JSON`.

use std::collections::BTreeMap;

use mrtr_core::{
    Limits,
    form::Schema,
    jsonrpc::{Json, JsonKind},
    wire::{AskKind, InputRequest},
};
use mrtr_tokio::client::Answer;

use crate::Failure;

/// The answers of the command line, by key.
pub(crate) struct Prepared {
    answers: BTreeMap<String, Given>,
}

struct Given {
    text: String,
    used: bool,
}

impl Prepared {
    pub(crate) fn parse(all: &[String]) -> Result<Self, Failure> {
        let mut answers = BTreeMap::new();
        for one in all {
            let Some((key, text)) = one.split_once('=').filter(|(key, _)| !key.is_empty()) else {
                return Err(Failure::usage(format!("--answer {one:?} is not of the form KEY=JSON")));
            };
            let given = Given { text: text.trim().into(), used: false };
            if answers.insert(String::from(key), given).is_some() {
                return Err(Failure::usage(format!("--answer: the key {key:?} is given twice")));
            }
        }
        Ok(Self { answers })
    }

    /// Keys of answers to questions that never came.
    pub(crate) fn unused(&self) -> impl Iterator<Item = &str> {
        self.answers.iter().filter(|(_, given)| !given.used).map(|(key, _)| key.as_str())
    }

    /// The answer to a question, if one was given; what is wrong with it, if it does not fit.
    pub(crate) fn answer(&mut self, key: &str, request: &InputRequest<'_>) -> Option<Result<Answer, String>> {
        let given = self.answers.get_mut(key)?;
        given.used = true;
        Some(read(&given.text, request).map_err(|problem| format!("--answer {key}=…: {problem}")))
    }
}

fn read(text: &str, request: &InputRequest<'_>) -> Result<Answer, String> {
    let elicitation = matches!(request.kind(), AskKind::Form | AskKind::Url);
    match text {
        "decline" if elicitation => return Ok(Answer::Decline),
        "cancel" if elicitation => return Ok(Answer::Cancel),
        "accept" | "true" if request.kind() == AskKind::Url => return Ok(Answer::AcceptUrl),
        "accept" if request.kind() == AskKind::Form => return form("{}", request),
        _ => {}
    }
    let json = parsed(text)?;
    match request.kind() {
        AskKind::Form => form(text, request),
        AskKind::Url => Err(String::from("a url is answered with accept, decline or cancel")),
        AskKind::Sampling if json.is_object() => Ok(Answer::Sampling(text.into())),
        AskKind::Sampling => match json.as_string() {
            Some(said) => Ok(Answer::Sampling(sampled(&said))),
            None => Err(String::from("a model's reply is a string, or a whole result as an object")),
        },
        AskKind::Roots => match json.items() {
            Some(items) => Ok(Answer::Roots(roots(items)?)),
            None => Err(String::from("roots are an array of file:// urls, or of objects with a uri")),
        },
    }
}

fn parsed(text: &str) -> Result<Json<'_>, String> {
    Json::parse(text, &Limits::default())
        .map_err(|error| format!("{error} (a text is given in quotes, 'KEY=\"some text\"')"))
}

/// The content of a form; the value alone will do for a form with one field.
///
/// A member that the form does not have is refused: `{"action":"decline"}` must not become a yes.
fn form(text: &str, request: &InputRequest<'_>) -> Result<Answer, String> {
    let schema = request.requested_schema().ok_or("the question has no form")?;
    let schema =
        Schema::read(schema).map_err(|fault| format!("the server's form cannot be used: {fault}"))?;
    let content = parsed(text)?;
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

fn roots<'a>(items: impl Iterator<Item = Json<'a>>) -> Result<String, String> {
    let mut all = Vec::new();
    for item in items {
        all.push(match item.kind() {
            JsonKind::String => format!("{{\"uri\":{}}}", item.as_str()),
            JsonKind::Object => item.as_str().into(),
            JsonKind::Null | JsonKind::Bool | JsonKind::Number | JsonKind::Array => {
                return Err(String::from("a root is a file:// url, or an object with a uri"));
            }
        });
    }
    Ok(format!("[{}]", all.join(",")))
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

    const SURE: &str = r#"{"method":"elicitation/create","params":{"message":"?","requestedSchema":{"type":"object","properties":{}}}}"#;

    #[test]
    fn only_a_yes_is_a_yes() {
        for yes in ["accept", "true", "{}"] {
            assert_eq!(read(yes, &asked(SURE)), Ok(Answer::Accept("{}".into())), "{yes}");
        }
        let others = [
            r#"{"action":"decline"}"#,
            r#"{"action":"accept"}"#,
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
    fn each_key_once() {
        assert!(Prepared::parse(&["days".into()]).is_err());
        assert!(Prepared::parse(&["days=1".into(), "days=2".into()]).is_err());
        let mut prepared = Prepared::parse(&["days=1".into(), "other=2".into()]).unwrap();
        assert!(prepared.answer("pace", &asked(ONE)).is_none());
        assert!(prepared.answer("days", &asked(ONE)).is_some_and(|answer| answer.is_ok()));
        assert_eq!(prepared.unused().collect::<Vec<_>>(), ["other"]);
    }
}
