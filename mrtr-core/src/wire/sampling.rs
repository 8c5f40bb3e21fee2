//! Sampling and roots: the two kinds that are deprecated and work (R-144…R-157).

use alloc::{borrow::Cow, string::String, vec::Vec};

use super::{AskKind, InputRequest};
use crate::jsonrpc::{Json, write};

/// A request that the client's model be asked (R-145…R-149).
///
/// ```
/// # use mrtr_core::wire::Sampling;
/// let ask = Sampling::new(100).system("Answer in one word.").user("What is the capital of France?").request();
/// ```
///
/// Images and audio go into [`user_content`](Self::user_content); a model that wants tools is answered with
/// [`tool_results`](Self::tool_results).
#[derive(Clone)]
pub struct Sampling {
    messages: Vec<(&'static str, String)>,
    max_tokens: u32,
    members: Vec<(Cow<'static, str>, String)>,
}

impl Sampling {
    /// A request for at most `max_tokens` tokens, without messages yet.
    #[must_use]
    pub const fn new(max_tokens: u32) -> Self {
        Self { messages: Vec::new(), max_tokens, members: Vec::new() }
    }

    /// Adds a text of the user's.
    #[must_use]
    pub fn user(self, text: &str) -> Self {
        self.message("user", text_block(text))
    }

    /// Adds a text of the assistant's.
    #[must_use]
    pub fn assistant(self, text: &str) -> Self {
        self.message("assistant", text_block(text))
    }

    /// Adds a message whose content is JSON text.
    pub(crate) fn message(mut self, role: &'static str, content: String) -> Self {
        self.messages.push((role, content));
        self
    }

    /// The system prompt.
    #[must_use]
    pub fn system(self, text: &str) -> Self {
        let mut json = Vec::new();
        write::string(&mut json, text);
        self.member("systemPrompt", String::from_utf8(json).unwrap_or_default())
    }

    /// Any other member of the parameters as JSON text: `temperature`, `stopSequences`, `modelPreferences`,
    /// `tools` and `toolChoice` (both need `sampling.tools`, R-102), …. `includeContext` is left out for a client that
    /// does not declare `sampling.context`, for which it means `"none"` then (R-104). A member that is no JSON makes the ask
    /// invalid, which its first use reports.
    #[must_use]
    pub fn member(mut self, name: impl Into<Cow<'static, str>>, json: impl Into<String>) -> Self {
        let name = name.into();
        self.members.retain(|(found, _)| *found != name);
        self.members.push((name, json.into()));
        self
    }

    /// The ask.
    #[must_use]
    pub fn request(&self) -> InputRequest<'static> {
        let mut out = b"{\"messages\":[".to_vec();
        for (index, (role, content)) in self.messages.iter().enumerate() {
            if index > 0 {
                out.push(b',');
            }
            out.extend_from_slice(b"{\"role\":");
            write::string(&mut out, role);
            out.extend_from_slice(b",\"content\":");
            out.extend_from_slice(content.as_bytes());
            out.push(b'}');
        }
        out.extend_from_slice(b"],\"maxTokens\":");
        write::integer(&mut out, i64::from(self.max_tokens));
        for (name, json) in &self.members {
            out.push(b',');
            write::string(&mut out, name);
            out.push(b':');
            write::one_line(&mut out, json);
        }
        out.push(b'}');
        InputRequest::from_trusted(AskKind::Sampling, String::from_utf8(out).ok())
    }
}

impl core::fmt::Debug for Sampling {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Sampling({} messages, at most {} tokens)", self.messages.len(), self.max_tokens)
    }
}

fn text_block(text: &str) -> String {
    let mut out = b"{\"type\":\"text\",\"text\":".to_vec();
    write::string(&mut out, text);
    out.push(b'}');
    String::from_utf8(out).unwrap_or_default()
}

/// What the client's model said: a `CreateMessageResult` whose structure was checked (R-150).
#[derive(Clone, PartialEq, Eq)]
pub struct Sampled(String);

impl Sampled {
    pub(crate) fn new(json: String) -> Self {
        Self(json)
    }

    /// The whole result. `content` may be a block or an array of them.
    #[must_use]
    pub fn json(&self) -> Json<'_> {
        Json::trusted(&self.0)
    }

    /// All text blocks, joined.
    #[must_use]
    pub fn text(&self) -> String {
        let Some(content) = self.json().get("content") else { return String::new() };
        let mut out = String::new();
        let mut add = |block: Json<'_>| {
            if block.get("type").and_then(Json::as_string).as_deref() == Some("text") {
                out.push_str(&block.get("text").and_then(Json::as_string).unwrap_or_default());
            }
        };
        match content.items() {
            Some(blocks) => blocks.for_each(&mut add),
            None => add(content),
        }
        out
    }

    /// The model's name.
    #[must_use]
    pub fn model(&self) -> Cow<'_, str> {
        self.json().get("model").and_then(Json::as_string).unwrap_or_default()
    }

    /// Why it stopped, if it says so: an open set of words.
    #[must_use]
    pub fn stop_reason(&self) -> Option<Cow<'_, str>> {
        self.json().get("stopReason").and_then(Json::as_string)
    }
}

impl core::fmt::Debug for Sampled {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Sampled({} bytes)", self.0.len())
    }
}

/// A folder or file that the client lets the server see (R-155).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Root {
    /// Begins with `file://`. Check it against traversal before use (R-157).
    pub uri: String,
    /// For people.
    pub name: Option<String>,
}

impl Root {
    /// A root at `uri`, which has to begin with `file://` (R-155).
    #[must_use]
    pub fn new(uri: impl Into<String>) -> Self {
        Self { uri: uri.into(), name: None }
    }

    /// The same with a name for people.
    #[must_use]
    pub fn named(self, name: impl Into<String>) -> Self {
        Self { name: Some(name.into()), ..self }
    }

    /// Reads the checked array of an answer.
    pub(crate) fn list(roots: Json<'_>) -> Vec<Self> {
        let text = |root: Json<'_>, name| root.get(name).and_then(Json::as_string).map(Cow::into_owned);
        let roots = roots.items().into_iter().flatten();
        roots.filter_map(|root| Some(Self { uri: text(root, "uri")?, name: text(root, "name") })).collect()
    }
}

impl InputRequest<'static> {
    /// An ask for the client's roots.
    #[must_use]
    pub fn roots() -> Self {
        Self::from_trusted(AskKind::Roots, Some(String::from("{}")))
    }

    /// An ask that a url be opened. `message` says why; `url` is opened only with the person's consent (R-141).
    /// Put nothing sensitive into it (R-140).
    #[must_use]
    pub fn open_url(message: &str, url: &str) -> Self {
        let mut out = b"{\"mode\":\"url\",\"message\":".to_vec();
        write::string(&mut out, message);
        out.extend_from_slice(b",\"url\":");
        write::string(&mut out, url);
        out.push(b'}');
        Self::from_trusted(AskKind::Url, String::from_utf8(out).ok())
    }

    /// An ask that a form be filled in, with a schema that is at hand as JSON. What a form may contain is judged when
    /// it is asked (R-123); [`Form`](crate::form::Form) builds one that is.
    #[must_use]
    pub fn form(message: &str, requested_schema: Json<'_>) -> Self {
        let mut out = b"{\"mode\":\"form\",\"message\":".to_vec();
        write::string(&mut out, message);
        out.extend_from_slice(b",\"requestedSchema\":");
        write::one_line(&mut out, requested_schema.as_str());
        out.push(b'}');
        Self::from_trusted(AskKind::Form, String::from_utf8(out).ok())
    }

    /// An ask for a yes: a form without fields.
    #[must_use]
    pub fn confirm(message: &str) -> Self {
        let mut out = b"{\"mode\":\"form\",\"message\":".to_vec();
        write::string(&mut out, message);
        out.extend_from_slice(b",\"requestedSchema\":{\"type\":\"object\",\"properties\":{}}}");
        Self::from_trusted(AskKind::Form, String::from_utf8(out).ok())
    }
}
