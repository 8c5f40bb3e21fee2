//! Asks the person at the terminal.
//!
//! Who asks and what it says is shown first, every word of it as a claim of the server's. Each field is checked as
//! it is typed. Esc in a field offers to decline, to dismiss, or to go on; Ctrl-C gives up the call, and nothing is
//! sent. A url is shown whole and never opened.

use inquire::{
    InquireError, MultiSelect, Select, Text,
    list_option::ListOption,
    validator::{StringValidator, Validation},
};
use mrtr_core::{
    Limits,
    form::{Choice, Field, FieldKind, Options, Schema},
    jsonrpc::{Json, JsonKind},
    wire::{Action, AskKind, InputRequest},
};
use mrtr_tokio::client::{Answer, Question};

use crate::{
    answers::{quoted, sampled},
    show,
};

/// A question, taken out of the call that it belongs to.
pub(crate) struct Put {
    request: InputRequest<'static>,
    server: Option<String>,
    before: Option<Action>,
}

/// What came of it.
pub(crate) enum Outcome {
    Answer(Answer),
    /// Ctrl-C: not an answer.
    Interrupted,
    /// The question cannot be shown, which is no refusal of the person's.
    NotShown(String),
}

/// Why a prompt ended without a value.
enum Broken {
    /// Esc.
    Escaped,
    Interrupted,
    NotShown(String),
}

impl From<InquireError> for Broken {
    fn from(error: InquireError) -> Self {
        match error {
            InquireError::OperationCanceled => Self::Escaped,
            InquireError::OperationInterrupted => Self::Interrupted,
            InquireError::NotTTY
            | InquireError::InvalidConfiguration(_)
            | InquireError::IO(_)
            | InquireError::Custom(_) => Self::NotShown(error.to_string()),
        }
    }
}

/// What is done with a question as a whole.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Choose {
    Go,
    Decline,
    Dismiss,
}

struct Offer(Choose, &'static str);

impl std::fmt::Display for Offer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.1)
    }
}

impl Put {
    pub(crate) fn new(question: &Question<'_>) -> Self {
        Self {
            request: question.request().clone(),
            server: question.server().map(String::from),
            before: question.before(),
        }
    }

    /// Blocks until the person has answered.
    pub(crate) fn ask(self) -> Outcome {
        let server =
            self.server.as_deref().map_or_else(|| String::from("The server"), |name| show::line(name, 80));
        show::note("");
        let asked = match self.request.kind() {
            AskKind::Form => self.form(&server),
            AskKind::Url => self.url(&server),
            AskKind::Sampling => self.sampling(&server),
            AskKind::Roots => roots(&server),
        };
        match asked {
            Ok(answer) => Outcome::Answer(answer),
            Err(Broken::NotShown(reason)) => Outcome::NotShown(reason),
            Err(Broken::Interrupted) => Outcome::Interrupted,
            // Where nothing can be declined, leaving is giving up.
            Err(Broken::Escaped) => Outcome::Interrupted,
        }
    }

    fn say(&self, server: &str, what: &str) {
        show::note(&format!("{server} {what}"));
        for line in self.request.message().unwrap_or_default().lines() {
            show::note(&format!("  {}", show::line(line, 2_000)));
        }
        if self.before == Some(Action::Cancel) {
            show::note("  (You dismissed this question before.)");
        }
    }

    fn form(&self, server: &str) -> Result<Answer, Broken> {
        let schema = self.request.requested_schema().map(Schema::read);
        let schema = match schema {
            Some(Ok(schema)) => schema,
            Some(Err(fault)) => {
                return Err(Broken::NotShown(format!("the server's form cannot be shown: {fault}")));
            }
            None => return Err(Broken::NotShown(String::from("the question has no form"))),
        };
        self.say(server, "asks:");
        if schema.fields().is_empty() {
            return Ok(match consent("Your answer", &["Yes", "No", "Neither: leave it open"])? {
                Choose::Go => Answer::Accept(String::from("{}")),
                Choose::Decline => Answer::Decline,
                Choose::Dismiss => Answer::Cancel,
            });
        }
        loop {
            match fill_in(&schema) {
                Ok(content) => {
                    if schema.fields().len() > 1 {
                        match choose(
                            "Send these answers?",
                            &["Send", "Decline: send a no", "Dismiss: send that you do not answer"],
                        ) {
                            Ok(Choose::Go) => return Ok(Answer::Accept(content)),
                            Ok(Choose::Decline) => return Ok(Answer::Decline),
                            Ok(Choose::Dismiss) => return Ok(Answer::Cancel),
                            Err(Broken::Escaped) => continue,
                            Err(broken) => return Err(broken),
                        }
                    }
                    return Ok(Answer::Accept(content));
                }
                Err(Broken::Escaped) => {}
                Err(broken) => return Err(broken),
            }
            let options = ["Fill it in", "Decline: send a no", "Dismiss: send that you do not answer"];
            match choose("What now?", &options) {
                Ok(Choose::Decline) => return Ok(Answer::Decline),
                Ok(Choose::Dismiss) => return Ok(Answer::Cancel),
                Ok(Choose::Go) | Err(Broken::Escaped) => {}
                Err(broken) => return Err(broken),
            }
        }
    }

    fn url(&self, server: &str) -> Result<Answer, Broken> {
        let Some(url) = self.request.url() else {
            return Err(Broken::NotShown(String::from("the question has no url")));
        };
        let shown = show::harmless(&url);
        if shown != url || url.contains(char::is_whitespace) {
            return Err(Broken::NotShown(String::from("the url has characters in it that no url has")));
        }
        self.say(server, "asks you to open a page in your browser:");
        show::note("");
        show::note(&format!("  {shown}"));
        show::note("");
        match host(&url) {
            Some(host) if host.is_ascii() => {
                show::note(&format!("  It leads to {host}. This program does not open it."))
            }
            Some(host) => show::note(&format!("  Look twice: {host} has letters that may look like others.")),
            None => show::note("  It does not lead to a web site. This program does not open it."),
        }
        let options: &[&'static str] = if self.before == Some(Action::Accept) {
            &["Go on: I am done there", "No", "Not now"]
        } else {
            &["I have opened it", "No", "Not now"]
        };
        Ok(match consent("Your answer", options)? {
            Choose::Go => Answer::AcceptUrl,
            Choose::Decline => Answer::Decline,
            Choose::Dismiss => Answer::Cancel,
        })
    }

    fn sampling(&self, server: &str) -> Result<Answer, Broken> {
        show::note(&format!("{server} asks your model. There is none here: you may answer in its place."));
        let member = |name: &str| self.request.params().and_then(|params| params.get(name));
        if let Some(system) = member("systemPrompt").and_then(Json::as_string) {
            show::note(&format!("  system: {}", show::line(&system, 2_000)));
        }
        for message in member("messages").and_then(Json::items).into_iter().flatten().take(100) {
            let role = message.get("role").and_then(Json::as_string).unwrap_or_default();
            let content = message.get("content");
            let text = content.and_then(|content| content.get("text")).and_then(Json::as_string);
            let text = text.unwrap_or_else(|| content.map_or("", Json::as_str).into());
            show::note(&format!("  {}: {}", show::line(&role, 20), show::line(&text, 2_000)));
        }
        let said = Text::new("The reply:").with_help_message("Esc or Ctrl-C gives up the call").prompt()?;
        Ok(Answer::Sampling(sampled(&said)))
    }
}

fn roots(server: &str) -> Result<Answer, Broken> {
    show::note(&format!("{server} asks which folders it may see."));
    let mut urls = Vec::new();
    loop {
        let folder = Text::new("A folder as a file:// url:")
            .with_help_message("Empty: no (further) folder · Esc or Ctrl-C gives up the call")
            .with_validator(|text: &str| {
                let fits = text.is_empty() || text.starts_with("file://");
                Ok(if fits { Validation::Valid } else { Validation::Invalid("begins with file://".into()) })
            })
            .prompt()?;
        if folder.is_empty() {
            let all: Vec<String> =
                urls.iter().map(|url: &String| format!("{{\"uri\":{}}}", quoted(url))).collect();
            return Ok(Answer::Roots(format!("[{}]", all.join(","))));
        }
        urls.push(folder);
    }
}

/// The first of the options is going on, the second declining, the third dismissing.
fn choose(prompt: &str, options: &[&'static str]) -> Result<Choose, Broken> {
    choose_from(prompt, options, 0)
}

/// The same where going on is consent: a key pressed too often must not give it, so "no" is under the cursor.
fn consent(prompt: &str, options: &[&'static str]) -> Result<Choose, Broken> {
    choose_from(prompt, options, 1)
}

fn choose_from(prompt: &str, options: &[&'static str], cursor: usize) -> Result<Choose, Broken> {
    let all = [Choose::Go, Choose::Decline, Choose::Dismiss];
    let offers = all.into_iter().zip(options).map(|(choose, text)| Offer(choose, text)).collect();
    let select = Select::new(prompt, offers).without_filtering().without_help_message();
    Ok(select.with_starting_cursor(cursor).prompt()?.0)
}

/// Field by field; the content as JSON text.
fn fill_in(schema: &Schema) -> Result<String, Broken> {
    let mut members = Vec::new();
    for field in schema.fields() {
        if let Some(value) = fill_in_field(field)? {
            members.push(format!("{}:{value}", quoted(field.name())));
        }
    }
    let content = format!("{{{}}}", members.join(","));
    // Nothing that was checked at its field can fail here.
    let parsed =
        Json::parse(&content, &Limits::default()).map_err(|error| Broken::NotShown(error.to_string()))?;
    let cleaned = schema.validate(parsed).map_err(|invalid| Broken::NotShown(invalid.to_string()))?;
    Ok(cleaned.into_string())
}

/// The value as JSON text; nothing for an optional field that is left out.
fn fill_in_field(field: &Field) -> Result<Option<String>, Broken> {
    let label = show::line(field.label(), 200);
    let help = help(field);
    match field.kind() {
        FieldKind::String(rules) => {
            let initial = rules.default.clone().unwrap_or_default();
            let text = Text::new(&label)
                .with_help_message(&help)
                .with_initial_value(&initial)
                .with_validator(checked(field, quoted))
                .prompt()?;
            Ok((field.is_required() || !text.is_empty()).then(|| quoted(&text)))
        }
        FieldKind::Number(rules) => {
            let initial = rules.default.as_ref().map(|number| number.as_str().to_owned()).unwrap_or_default();
            let text = Text::new(&label)
                .with_help_message(&help)
                .with_initial_value(&initial)
                .with_validator(checked(field, |text| text.trim().into()))
                .prompt()?;
            let text = text.trim();
            Ok((!text.is_empty()).then(|| text.into()))
        }
        FieldKind::Boolean(rules) => {
            let all = [Some(true), Some(false), None];
            let options = all.iter().filter(|value| value.is_some() || !field.is_required());
            let options: Vec<Truth> = options.map(|value| Truth(*value)).collect();
            let start = options.iter().position(|truth| rules.default.is_some() && truth.0 == rules.default);
            let chosen = Select::new(&label, options)
                .with_help_message(&help)
                .with_starting_cursor(start.unwrap_or_default())
                .without_filtering()
                .prompt()?;
            Ok(chosen.0.map(|truth| truth.to_string()))
        }
        FieldKind::Select(rules) => {
            let mut options = picks(&rules.options);
            if !field.is_required() {
                options.push(Pick { value: None, label: String::from("(leave out)") });
            }
            let start = options.iter().position(|pick| pick.value.is_some() && pick.value == rules.default);
            let chosen = Select::new(&label, options)
                .with_help_message(&help)
                .with_starting_cursor(start.unwrap_or_default())
                .prompt()?;
            Ok(chosen.value.map(|value| quoted(&value)))
        }
        FieldKind::MultiSelect(rules) => {
            let options = picks(&rules.options);
            let default = rules.default.as_deref().unwrap_or_default();
            let chosen: Vec<usize> = (0..options.len())
                .filter(|at| {
                    options
                        .get(*at)
                        .and_then(|pick| pick.value.as_ref())
                        .is_some_and(|value| default.contains(value))
                })
                .collect();
            let owned = field.clone();
            let picked = MultiSelect::new(&label, options)
                .with_help_message(&help)
                .with_default(&chosen)
                .with_validator(move |picked: &[ListOption<&Pick>]| {
                    let values = picked.iter().filter_map(|option| option.value.value.as_deref());
                    Ok(judged(&owned, &array(values), picked.is_empty() && !owned.is_required()))
                })
                .prompt()?;
            let values: Vec<String> = picked.into_iter().filter_map(|pick| pick.value).collect();
            Ok((field.is_required() || !values.is_empty()).then(|| array(values.iter().map(String::as_str))))
        }
    }
}

#[derive(Clone, Copy)]
struct Truth(Option<bool>);

impl std::fmt::Display for Truth {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self.0 {
            Some(true) => "Yes",
            Some(false) => "No",
            None => "(leave out)",
        })
    }
}

#[derive(Clone)]
struct Pick {
    value: Option<String>,
    label: String,
}

impl std::fmt::Display for Pick {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.label)
    }
}

fn picks(options: &Options) -> Vec<Pick> {
    let pick =
        |choice: &Choice| Pick { value: Some(choice.value.clone()), label: show::line(choice.label(), 200) };
    options.choices().iter().map(pick).collect()
}

fn array<'a>(values: impl Iterator<Item = &'a str>) -> String {
    format!("[{}]", values.map(quoted).collect::<Vec<_>>().join(","))
}

/// Checks what is typed against the field's own rules.
fn checked(field: &Field, json: impl Fn(&str) -> String + Clone + 'static) -> impl StringValidator + 'static {
    let field = field.clone();
    move |text: &str| {
        let text_field = matches!(field.kind(), FieldKind::String(_));
        let left_out =
            if text_field { text.is_empty() } else { text.trim().is_empty() } && !field.is_required();
        Ok(judged(&field, &json(text), left_out))
    }
}

fn judged(field: &Field, json: &str, left_out: bool) -> Validation {
    if left_out {
        return Validation::Valid;
    }
    let number = matches!(field.kind(), FieldKind::Number(_));
    match Json::parse(json, &Limits::default()) {
        Ok(value) if number && value.kind() != JsonKind::Number => Validation::Invalid("not a number".into()),
        Ok(value) => match field.check(value) {
            Ok(()) => Validation::Valid,
            Err(problem) => Validation::Invalid(problem.into()),
        },
        Err(_) if number => Validation::Invalid("not a number".into()),
        Err(refusal) => Validation::Invalid(refusal.into()),
    }
}

fn help(field: &Field) -> String {
    let mut parts = Vec::new();
    if let Some(description) = field.description() {
        parts.push(show::line(description, 200));
    }
    if !field.is_required()
        && matches!(field.kind(), FieldKind::String(_) | FieldKind::Number(_) | FieldKind::MultiSelect(_))
    {
        parts.push(String::from("empty: left out"));
    }
    if matches!(field.kind(), FieldKind::MultiSelect(_)) {
        parts.push(String::from("space picks, enter ends"));
    }
    parts.push(String::from("Esc: decline or dismiss"));
    parts.join(" · ")
}

/// The host that a web address leads to: what stands between the slashes, after any user name and before any port.
fn host(url: &str) -> Option<&str> {
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"))?;
    let authority = rest.split(['/', '?', '#', '\\']).next()?;
    let host = authority.rsplit('@').next()?;
    let host =
        if host.starts_with('[') { host.split_inclusive(']').next()? } else { host.split(':').next()? };
    (!host.is_empty()).then_some(host)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_is_where_a_browser_would_go() {
        assert_eq!(host("https://bank.example@evil.example/login"), Some("evil.example"));
        assert_eq!(host("https://a.example:8443?x=https://b.example"), Some("a.example"));
        assert_eq!(host("https://evil.example\\@bank.example"), Some("evil.example"));
        assert_eq!(host("http://[::1]:3000/"), Some("[::1]"));
        assert_eq!(host("javascript:alert(1)"), None);
    }

    #[test]
    fn typed_values_are_judged_by_the_field() {
        let json = r#"{"type":"object","properties":{"n":{"type":"integer","minimum":1},"s":{"type":"string","minLength":2}},"required":["n"]}"#;
        let schema = Schema::read(Json::parse(json, &Limits::default()).unwrap()).unwrap();
        let (n, s) = (schema.field("n").unwrap(), schema.field("s").unwrap());
        assert_eq!(judged(n, "3", false), Validation::Valid);
        for wrong in ["0", "three", "", "1.5", "\"3\"", "1e99999999999"] {
            assert_ne!(judged(n, wrong, false), Validation::Valid, "{wrong}");
        }
        assert_ne!(judged(s, "\"a\"", false), Validation::Valid);
        assert_eq!(judged(s, "\"\"", true), Validation::Valid);
    }
}
