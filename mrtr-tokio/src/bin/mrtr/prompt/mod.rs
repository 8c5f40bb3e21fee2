//! Asks the person at the terminal.
//!
//! Who asks and what it says is shown first, every word of it as a claim of the server's. Each field is checked as
//! it is typed. Esc in a field offers to decline, to dismiss, or to go on; Ctrl-C gives up the call, and nothing is
//! sent. A url is shown whole, and opened if somebody has said so.

mod field;
mod web;

use inquire::{InquireError, Select, Text, validator::Validation};
use mrtr_core::{
    client::Question,
    form::Schema,
    jsonrpc::Json,
    wire::{Action, AskKind, InputRequest, Root},
};

use self::{
    field::fill_in,
    web::{Web, can_open},
};
use crate::{
    answers::{Answer, sampled},
    screen::Prompting,
    show,
};

/// A longer url is not put to anybody: nobody can look at it.
const LONGEST_URL: usize = 8_000;

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
    /// Go on, and open the page.
    Open,
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
        let _nothing_else = Prompting::begin();
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
                Choose::Go | Choose::Open => Answer::Accept(String::from("{}")),
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
                            Ok(Choose::Go | Choose::Open) => return Ok(Answer::Accept(content)),
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
                Ok(Choose::Go | Choose::Open) | Err(Broken::Escaped) => {}
                Err(broken) => return Err(broken),
            }
        }
    }

    fn url(&self, server: &str) -> Result<Answer, Broken> {
        let Some(url) = self.request.url() else {
            return Err(Broken::NotShown(String::from("the question has no url")));
        };
        if show::harmless(&url) != url || url.contains(char::is_whitespace) || url.len() > LONGEST_URL {
            let why = "the url is too long, or has characters in it that no url has";
            return Err(Broken::NotShown(String::from(why)));
        }
        let web = Web::read(&url);
        self.say(server, "asks you to open a page in your browser:");
        let shown = web.as_ref().map_or_else(|| url.clone().into_owned(), Web::shown);
        show::as_is(&format!("\n  {shown}\n"));
        match &web {
            Some(web) => {
                show::note(&format!("  It leads to {}.", web.host));
                for warning in web.warnings() {
                    show::note(&format!("  Look twice: {warning}"));
                }
            }
            None => {
                show::note("  It does not lead to a web site that this program knows. It is not opened here.")
            }
        }
        // Opened once: it comes again because whatever is to be done there is not done yet (G-32).
        let before = self.before == Some(Action::Accept);
        let mut opens = web.is_some() && can_open() && !before;
        loop {
            let go = if before { "Go on: I am done there" } else { "Yes: I open it myself" };
            let mut offers = vec![
                Offer(Choose::Go, go),
                Offer(Choose::Decline, "No"),
                Offer(Choose::Dismiss, "Not now: leave it open"),
            ];
            if opens {
                offers.insert(0, Offer(Choose::Open, "Yes: open it in the browser"));
            }
            return Ok(match pick("Your answer", offers, Choose::Decline)? {
                Choose::Open => match web::open(&url) {
                    Ok(()) => Answer::AcceptUrl,
                    Err(problem) => {
                        show::note(&format!(
                            "  The browser could not be started ({problem}): open it yourself."
                        ));
                        opens = false;
                        continue;
                    }
                },
                Choose::Go => Answer::AcceptUrl,
                Choose::Decline => Answer::Decline,
                Choose::Dismiss => Answer::Cancel,
            });
        }
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
    let mut roots = Vec::new();
    loop {
        let folder = Text::new("A folder as a file:// url:")
            .with_help_message("Empty: no (further) folder · Esc or Ctrl-C gives up the call")
            .with_validator(|text: &str| {
                let fits = text.is_empty() || text.starts_with("file://");
                Ok(if fits { Validation::Valid } else { Validation::Invalid("begins with file://".into()) })
            })
            .prompt()?;
        if folder.is_empty() {
            return Ok(Answer::Roots(roots));
        }
        roots.push(Root::new(folder));
    }
}

/// The first of the options is going on, the second declining, the third dismissing.
fn choose(prompt: &str, options: &[&'static str; 3]) -> Result<Choose, Broken> {
    pick(prompt, offers(options), Choose::Go)
}

/// The same where going on is consent: a key pressed too often must not give it, so "no" is under the cursor.
fn consent(prompt: &str, options: &[&'static str; 3]) -> Result<Choose, Broken> {
    pick(prompt, offers(options), Choose::Decline)
}

fn offers([go, decline, dismiss]: &[&'static str; 3]) -> Vec<Offer> {
    vec![Offer(Choose::Go, go), Offer(Choose::Decline, decline), Offer(Choose::Dismiss, dismiss)]
}

fn pick(prompt: &str, offers: Vec<Offer>, under_the_cursor: Choose) -> Result<Choose, Broken> {
    let at = offers.iter().position(|offer| offer.0 == under_the_cursor).unwrap_or_default();
    let select = Select::new(prompt, offers).without_filtering().without_help_message();
    Ok(select.with_starting_cursor(at).prompt()?.0)
}
