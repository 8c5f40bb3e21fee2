//! What tools, prompts and resources give back.

use alloc::{string::String, vec::Vec};

use base64::Engine as _;

use crate::jsonrpc::{Json, write};

/// A result as JSON text of an object, and whether it says that the tool failed.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Output {
    pub(crate) json: String,
    pub(crate) is_error: bool,
}

impl Output {
    /// A result of your own making.
    ///
    /// # Errors
    ///
    /// If it cannot be written as JSON. (One that is no object becomes `-32603` when it is sent.)
    pub fn from_serialize<T: serde::Serialize + ?Sized>(value: &T) -> Result<Self, serde_json::Error> {
        Ok(Self::of(serde_json::to_string(value)?))
    }

    /// The same of what is JSON already. (What is no object becomes `-32603` when it is sent.)
    #[must_use]
    pub fn from_json(value: Json<'_>) -> Self {
        Self::of(value.as_str().into())
    }

    fn of(json: String) -> Self {
        let is_error = Json::trusted(&json).get("isError").and_then(Json::as_bool).unwrap_or(false);
        Self { json, is_error }
    }
}

impl core::fmt::Debug for Output {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Output({} bytes{})", self.json.len(), if self.is_error { ", isError" } else { "" })
    }
}

/// One block of content.
#[derive(Clone, PartialEq, Eq)]
pub struct Content(String);

impl Content {
    /// Text.
    #[must_use]
    pub fn text(text: &str) -> Self {
        let mut out = Vec::with_capacity(text.len() + 32);
        out.extend_from_slice(b"{\"type\":\"text\",\"text\":");
        write::string(&mut out, text);
        Self::close(out)
    }

    /// An image; `data` is encoded here.
    #[must_use]
    pub fn image(data: &[u8], mime_type: &str) -> Self {
        Self::binary("image", data, mime_type)
    }

    /// Sound; `data` is encoded here.
    #[must_use]
    pub fn audio(data: &[u8], mime_type: &str) -> Self {
        Self::binary("audio", data, mime_type)
    }

    /// A resource with its text in it.
    #[must_use]
    pub fn resource_text(uri: &str, mime_type: &str, text: &str) -> Self {
        let mut out = b"{\"type\":\"resource\",\"resource\":".to_vec();
        contents(&mut out, uri, mime_type, "text", text);
        Self::close(out)
    }

    fn binary(kind: &str, data: &[u8], mime_type: &str) -> Self {
        let mut out = b"{\"type\":".to_vec();
        write::string(&mut out, kind);
        out.extend_from_slice(b",\"data\":");
        write::string(&mut out, &base64::engine::general_purpose::STANDARD.encode(data));
        out.extend_from_slice(b",\"mimeType\":");
        write::string(&mut out, mime_type);
        Self::close(out)
    }

    fn close(mut out: Vec<u8>) -> Self {
        out.push(b'}');
        Self(text_of(out))
    }

    /// The block as JSON text.
    pub(super) fn into_json(self) -> String {
        self.0
    }
}

impl core::fmt::Debug for Content {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Content({} bytes)", self.0.len())
    }
}

/// What a tool gives back.
#[derive(Clone, Debug, Default)]
pub struct ToolResult {
    content: Vec<Content>,
    structured: Option<String>,
    is_error: bool,
}

impl ToolResult {
    /// No content yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A single text.
    #[must_use]
    pub fn text(text: impl AsRef<str>) -> Self {
        Self::new().content(Content::text(text.as_ref()))
    }

    /// A failure that the model should see: a `complete` result with `isError`.
    #[must_use]
    pub fn error(text: impl AsRef<str>) -> Self {
        Self { is_error: true, ..Self::text(text) }
    }

    /// Adds a block.
    #[must_use]
    pub fn content(mut self, block: Content) -> Self {
        self.content.push(block);
        self
    }

    /// Adds `structuredContent`.
    ///
    /// # Errors
    ///
    /// If it cannot be written as JSON.
    pub fn structured<T: serde::Serialize + ?Sized>(mut self, value: &T) -> Result<Self, serde_json::Error> {
        self.structured = Some(serde_json::to_string(value)?);
        Ok(self)
    }
}

impl From<ToolResult> for Output {
    fn from(result: ToolResult) -> Self {
        let blocks = result.content.iter().map(|block| block.0.len() + 1).sum::<usize>();
        let structured = result.structured.as_deref().map_or(0, str::len);
        let mut out = Vec::with_capacity(blocks + structured + 64);
        out.extend_from_slice(b"{\"content\":[");
        for (index, block) in result.content.iter().enumerate() {
            if index > 0 {
                out.push(b',');
            }
            out.extend_from_slice(block.0.as_bytes());
        }
        out.push(b']');
        if let Some(structured) = &result.structured {
            out.extend_from_slice(b",\"structuredContent\":");
            write::one_line(&mut out, structured);
        }
        if result.is_error {
            out.extend_from_slice(b",\"isError\":true");
        }
        out.push(b'}');
        Self { json: text_of(out), is_error: result.is_error }
    }
}

/// What a prompt gives back.
#[derive(Clone, Debug, Default)]
pub struct PromptResult {
    messages: Vec<(&'static str, Content)>,
    description: Option<String>,
}

impl PromptResult {
    /// No messages yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a message of the user's.
    #[must_use]
    pub fn user(mut self, content: Content) -> Self {
        self.messages.push(("user", content));
        self
    }

    /// Adds a message of the assistant's.
    #[must_use]
    pub fn assistant(mut self, content: Content) -> Self {
        self.messages.push(("assistant", content));
        self
    }

    /// What the prompt is for.
    #[must_use]
    pub fn description(mut self, text: impl Into<String>) -> Self {
        self.description = Some(text.into());
        self
    }
}

impl From<PromptResult> for Output {
    fn from(result: PromptResult) -> Self {
        let mut out = b"{\"messages\":[".to_vec();
        for (index, (role, content)) in result.messages.iter().enumerate() {
            if index > 0 {
                out.push(b',');
            }
            out.extend_from_slice(b"{\"role\":");
            write::string(&mut out, role);
            out.extend_from_slice(b",\"content\":");
            out.extend_from_slice(content.0.as_bytes());
            out.push(b'}');
        }
        out.push(b']');
        if let Some(description) = &result.description {
            out.extend_from_slice(b",\"description\":");
            write::string(&mut out, description);
        }
        out.push(b'}');
        Self { json: text_of(out), is_error: false }
    }
}

/// What a resource gives back.
#[derive(Clone, Debug, Default)]
pub struct ResourceResult {
    contents: Vec<String>,
    hints: Option<super::CacheHints>,
}

impl ResourceResult {
    /// A text.
    #[must_use]
    pub fn text(uri: &str, mime_type: &str, text: &str) -> Self {
        let mut out = Vec::new();
        contents(&mut out, uri, mime_type, "text", text);
        Self { contents: alloc::vec![text_of(out)], hints: None }
    }

    /// Bytes; encoded here.
    #[must_use]
    pub fn blob(uri: &str, mime_type: &str, data: &[u8]) -> Self {
        let mut out = Vec::new();
        contents(&mut out, uri, mime_type, "blob", &base64::engine::general_purpose::STANDARD.encode(data));
        Self { contents: alloc::vec![text_of(out)], hints: None }
    }

    /// Adds another resource's contents.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.contents.extend(other.contents);
        self
    }

    /// How long it may be kept. Not sent if the request carried answers or a state (R-202, G-40).
    #[must_use]
    pub const fn hints(mut self, hints: super::CacheHints) -> Self {
        self.hints = Some(hints);
        self
    }
}

impl From<ResourceResult> for Output {
    fn from(result: ResourceResult) -> Self {
        let mut out = b"{\"contents\":[".to_vec();
        out.extend_from_slice(result.contents.join(",").as_bytes());
        out.push(b']');
        if let Some(hints) = result.hints {
            super::list::write_hints(&mut out, hints);
        }
        out.push(b'}');
        Self { json: text_of(out), is_error: false }
    }
}

fn contents(out: &mut Vec<u8>, uri: &str, mime_type: &str, member: &str, value: &str) {
    out.extend_from_slice(b"{\"uri\":");
    write::string(out, uri);
    out.extend_from_slice(b",\"mimeType\":");
    write::string(out, mime_type);
    out.push(b',');
    write::string(out, member);
    out.push(b':');
    write::string(out, value);
    out.push(b'}');
}

/// What this crate writes is UTF-8.
pub(super) fn text_of(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_default()
}
