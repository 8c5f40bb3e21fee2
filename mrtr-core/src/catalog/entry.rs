//! One tool, prompt, resource or template, as its author declares it.

use alloc::{string::String, vec::Vec};

use crate::{
    http::ParamHeaders,
    jsonrpc::{Json, write},
    limits::Limits,
    seal::Ttl,
    wire::Requirement,
};

/// Why something cannot be offered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CatalogError {
    /// There is one of that name.
    #[error("{0:?} is declared twice")]
    Taken(String),
    /// The name is not fit to be sent: 1 to 64 of `A-Z a-z 0-9 _ . - /` for a tool, not empty for the rest.
    #[error("{0:?} is not a valid name")]
    Name(String),
    /// A schema is no JSON object.
    #[error("{name:?}: the {which} is not a JSON object")]
    Schema {
        /// Of what.
        name: String,
        /// Which schema.
        which: &'static str,
    },
    /// An `x-mcp-header` annotation no client may follow.
    #[error("{name:?}: {problem}")]
    Header {
        /// Of what.
        name: String,
        /// What is wrong.
        problem: String,
    },
    /// A template this catalog cannot match.
    #[error("{0:?} is not a template of text and {{name}} parts")]
    Template(String),
}

/// A tool.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Tool {
    /// Its name: 1 to 64 of `A-Z a-z 0-9 _ . - /`.
    pub name: String,
    /// For people.
    pub title: Option<String>,
    /// For the model.
    pub description: String,
    /// JSON text of the arguments' schema, an object. Default: any object.
    pub input_schema: String,
    /// JSON text of the structured result's schema.
    pub output_schema: Option<String>,
    /// JSON text of `annotations`.
    pub annotations: Option<String>,
    /// What the tool will ask for in any case: gated before its first line runs.
    pub requires: Vec<Requirement>,
    /// How long a question of this tool may wait for its answer; `None`: as long as the sealer says.
    pub state_ttl: Option<Ttl>,
}

impl Tool {
    /// A tool that takes any object.
    #[must_use]
    pub fn new(name: impl Into<String>, description: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            title: None,
            description: description.into(),
            input_schema: String::from("{\"type\":\"object\"}"),
            output_schema: None,
            annotations: None,
            requires: Vec::new(),
            state_ttl: None,
        }
    }

    /// The name shown to people.
    #[must_use]
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.title = Some(title.into());
        self
    }

    /// The schema of the arguments as JSON text.
    #[must_use]
    pub fn input_schema(mut self, json: impl Into<String>) -> Self {
        self.input_schema = json.into();
        self
    }

    /// The schema of the structured result as JSON text.
    #[must_use]
    pub fn output_schema(mut self, json: impl Into<String>) -> Self {
        self.output_schema = Some(json.into());
        self
    }

    /// The annotations (`readOnlyHint`, …) as JSON text.
    #[must_use]
    pub fn annotations(mut self, json: impl Into<String>) -> Self {
        self.annotations = Some(json.into());
        self
    }

    /// Declares that the tool will ask for this in any case: a request that does not declare the capability
    /// gets `-32021` before the first line of the tool runs.
    #[must_use]
    pub fn requires(mut self, need: Requirement) -> Self {
        self.requires.push(need);
        self
    }

    /// How long a question of this tool may wait for its answer, instead of what the sealer says: longer where
    /// people must look something up, shorter where an answer soon means nothing. Never beyond the exchange's own
    /// deadline, [`Limits::exchange`]. A rotation of keys waits for the longest of all.
    #[must_use]
    pub fn state_ttl(mut self, ttl: Ttl) -> Self {
        self.state_ttl = Some(ttl);
        self
    }

    /// Checks all of it; gives what the schema says of headers.
    pub(super) fn check(&self) -> Result<ParamHeaders, CatalogError> {
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-' | b'/');
        if !(1..=64).contains(&self.name.len()) || !self.name.bytes().all(fits) {
            return Err(CatalogError::Name(self.name.clone()));
        }
        let object = |text: &str, which| {
            let limits = Limits::default();
            Json::parse(text, &limits)
                .is_ok_and(Json::is_object)
                .then_some(())
                .ok_or_else(|| CatalogError::Schema { name: self.name.clone(), which })
        };
        object(&self.input_schema, "input schema")?;
        self.output_schema.as_deref().map_or(Ok(()), |text| object(text, "output schema"))?;
        self.annotations.as_deref().map_or(Ok(()), |text| object(text, "annotations"))?;
        ParamHeaders::from_schema(Json::trusted(&self.input_schema)).map_err(|fault| CatalogError::Header {
            name: self.name.clone(),
            problem: alloc::format!("{fault}"),
        })
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        named(out, &self.name, self.title.as_deref(), Some(&self.description));
        member(out, "inputSchema", &self.input_schema);
        if let Some(schema) = &self.output_schema {
            member(out, "outputSchema", schema);
        }
        if let Some(annotations) = &self.annotations {
            member(out, "annotations", annotations);
        }
        out.push(b'}');
    }
}

/// A prompt.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Prompt {
    /// Its name.
    pub name: String,
    /// For people.
    pub title: Option<String>,
    /// What it is for.
    pub description: String,
    /// Its arguments: name, description, whether required, and values to offer as completions.
    pub arguments: Vec<PromptArgument>,
    /// How long a question of this prompt may wait for its answer; `None`: as long as the sealer says.
    pub state_ttl: Option<Ttl>,
}

/// An argument of a prompt.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PromptArgument {
    /// Its name.
    pub name: String,
    /// What it is.
    pub description: String,
    /// Must be given.
    pub required: bool,
    /// Values to offer.
    pub completions: Vec<String>,
}

impl Prompt {
    /// A prompt without arguments.
    #[must_use]
    pub fn new(name: impl Into<String>, description: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            title: None,
            description: description.into(),
            arguments: Vec::new(),
            state_ttl: None,
        }
    }

    /// The name shown to people.
    #[must_use]
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.title = Some(title.into());
        self
    }

    /// Adds an argument that may be left out.
    #[must_use]
    pub fn argument(self, name: impl Into<String>, description: impl Into<String>) -> Self {
        self.push(name.into(), description.into(), false)
    }

    /// Adds an argument that must be given: without it the request is `-32602`.
    #[must_use]
    pub fn required_argument(self, name: impl Into<String>, description: impl Into<String>) -> Self {
        self.push(name.into(), description.into(), true)
    }

    fn push(mut self, name: String, description: String, required: bool) -> Self {
        self.arguments.push(PromptArgument { name, description, required, completions: Vec::new() });
        self
    }

    /// Values to offer for the argument added last.
    #[must_use]
    pub fn completions<T: Into<String>>(mut self, values: impl IntoIterator<Item = T>) -> Self {
        if let Some(argument) = self.arguments.last_mut() {
            argument.completions = values.into_iter().map(Into::into).collect();
        }
        self
    }

    /// How long a question of this prompt may wait for its answer, instead of what the sealer says: longer where
    /// people must look something up, shorter where an answer soon means nothing. Never beyond the exchange's own
    /// deadline, [`Limits::exchange`]. A rotation of keys waits for the longest of all.
    #[must_use]
    pub fn state_ttl(mut self, ttl: Ttl) -> Self {
        self.state_ttl = Some(ttl);
        self
    }

    pub(super) fn check(&self) -> Result<(), CatalogError> {
        if self.name.is_empty() { Err(CatalogError::Name(self.name.clone())) } else { Ok(()) }
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        named(out, &self.name, self.title.as_deref(), Some(&self.description));
        if !self.arguments.is_empty() {
            out.extend_from_slice(b",\"arguments\":[");
            for (index, argument) in self.arguments.iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                named(out, &argument.name, None, Some(&argument.description));
                member(out, "required", if argument.required { "true" } else { "false" });
                out.push(b'}');
            }
            out.push(b']');
        }
        out.push(b'}');
    }
}

/// A resource.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Resource {
    /// Its uri, as requests name it.
    pub uri: String,
    /// Its name, for programs.
    pub name: String,
    /// For people.
    pub title: Option<String>,
    /// What it is.
    pub description: Option<String>,
    /// Its media type.
    pub mime_type: Option<String>,
    /// How long a question of this resource may wait for its answer; `None`: as long as the sealer says.
    pub state_ttl: Option<Ttl>,
}

impl Resource {
    /// A resource.
    #[must_use]
    pub fn new(uri: impl Into<String>, name: impl Into<String>) -> Self {
        Self {
            uri: uri.into(),
            name: name.into(),
            title: None,
            description: None,
            mime_type: None,
            state_ttl: None,
        }
    }

    /// What it is.
    #[must_use]
    pub fn description(mut self, text: impl Into<String>) -> Self {
        self.description = Some(text.into());
        self
    }

    /// Its media type.
    #[must_use]
    pub fn mime_type(mut self, text: impl Into<String>) -> Self {
        self.mime_type = Some(text.into());
        self
    }

    /// How long a question of this resource may wait for its answer, instead of what the sealer says: longer where
    /// people must look something up, shorter where an answer soon means nothing. Never beyond the exchange's own
    /// deadline, [`Limits::exchange`]. A rotation of keys waits for the longest of all.
    #[must_use]
    pub fn state_ttl(mut self, ttl: Ttl) -> Self {
        self.state_ttl = Some(ttl);
        self
    }

    pub(super) fn check(&self) -> Result<(), CatalogError> {
        if self.uri.is_empty() || self.name.is_empty() {
            Err(CatalogError::Name(self.uri.clone()))
        } else {
            Ok(())
        }
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        named(out, &self.name, self.title.as_deref(), self.description.as_deref());
        text_member(out, "uri", &self.uri);
        if let Some(mime_type) = &self.mime_type {
            text_member(out, "mimeType", mime_type);
        }
        out.push(b'}');
    }
}

/// A family of resources: text with `{name}` parts, each of which stands for one or more characters other
/// than `/`.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ResourceTemplate {
    /// The template.
    pub uri_template: String,
    /// Its name, for programs.
    pub name: String,
    /// What it is.
    pub description: Option<String>,
    /// The media type of all of them.
    pub mime_type: Option<String>,
    /// How long a question of this family may wait for its answer; `None`: as long as the sealer says.
    pub state_ttl: Option<Ttl>,
}

impl ResourceTemplate {
    /// A template.
    #[must_use]
    pub fn new(uri_template: impl Into<String>, name: impl Into<String>) -> Self {
        Self {
            uri_template: uri_template.into(),
            name: name.into(),
            description: None,
            mime_type: None,
            state_ttl: None,
        }
    }

    /// What it is.
    #[must_use]
    pub fn description(mut self, text: impl Into<String>) -> Self {
        self.description = Some(text.into());
        self
    }

    /// Its media type.
    #[must_use]
    pub fn mime_type(mut self, text: impl Into<String>) -> Self {
        self.mime_type = Some(text.into());
        self
    }

    /// How long a question of this family may wait for its answer, instead of what the sealer says: longer where
    /// people must look something up, shorter where an answer soon means nothing. Never beyond the exchange's own
    /// deadline, [`Limits::exchange`]. A rotation of keys waits for the longest of all.
    #[must_use]
    pub fn state_ttl(mut self, ttl: Ttl) -> Self {
        self.state_ttl = Some(ttl);
        self
    }

    pub(super) fn check(&self) -> Result<(), CatalogError> {
        let mut rest = self.uri_template.as_str();
        let mut parts = 0;
        while let Some((text, after)) = rest.split_once('{') {
            if text.contains('}') {
                break;
            }
            let name = after.split_once('}').filter(|(name, _)| {
                !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
            });
            let Some((_, after)) = name else {
                return Err(CatalogError::Template(self.uri_template.clone()));
            };
            // Two parts side by side have no border between them.
            if after.starts_with('{') {
                return Err(CatalogError::Template(self.uri_template.clone()));
            }
            rest = after;
            parts += 1;
        }
        if parts == 0 || rest.contains('}') {
            Err(CatalogError::Template(self.uri_template.clone()))
        } else {
            Ok(())
        }
    }

    /// The parts of `uri` by their names, if it is one of the family.
    pub(crate) fn matches(&self, uri: &str) -> Option<Vec<(String, String)>> {
        let mut found = Vec::new();
        let (mut template, mut uri) = (self.uri_template.as_str(), uri);
        while let Some((text, after)) = template.split_once('{') {
            let (name, after) = after.split_once('}')?;
            uri = uri.strip_prefix(text)?;
            let border = after.split('{').next().unwrap_or("");
            // The last part reaches to the end; any other to the first border behind its first character.
            let end = if border.len() == after.len() {
                uri.strip_suffix(border)?.len()
            } else {
                let first = uri.chars().next()?.len_utf8();
                first + uri.get(first..)?.find(border)?
            };
            let value = uri.get(..end).filter(|value| !value.is_empty() && !value.contains('/'))?;
            found.push((name.into(), value.into()));
            uri = uri.get(end..)?;
            template = after;
        }
        (template == uri).then_some(found)
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        named(out, &self.name, None, self.description.as_deref());
        text_member(out, "uriTemplate", &self.uri_template);
        if let Some(mime_type) = &self.mime_type {
            text_member(out, "mimeType", mime_type);
        }
        out.push(b'}');
    }
}

/// Opens an object with the members that every entry has.
fn named(out: &mut Vec<u8>, name: &str, title: Option<&str>, description: Option<&str>) {
    out.extend_from_slice(b"{\"name\":");
    write::string(out, name);
    if let Some(title) = title {
        text_member(out, "title", title);
    }
    if let Some(description) = description {
        text_member(out, "description", description);
    }
}

fn member(out: &mut Vec<u8>, name: &str, json: &str) {
    out.push(b',');
    write::string(out, name);
    out.push(b':');
    write::one_line(out, json);
}

fn text_member(out: &mut Vec<u8>, name: &str, text: &str) {
    out.push(b',');
    write::string(out, name);
    out.push(b':');
    write::string(out, text);
}
