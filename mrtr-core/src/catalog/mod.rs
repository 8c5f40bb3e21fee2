//! What a server offers, declared: tools, prompts, resources, templates, completions — and which of it a
//! request names.
//!
//! A catalog holds no handlers of its own: `H` is whatever the embedder runs (a Rust closure, the index of a
//! JavaScript function). [`Server`](crate::server::Server) does not know the catalog; a service puts the two
//! together.

mod conversation;
mod entry;
mod list;
mod results;
pub(crate) mod route;
mod subscribe;

use alloc::{string::String, vec::Vec};
use core::time::Duration;

pub use conversation::ToolUse;
pub(crate) use conversation::is_balanced;
pub use entry::{CatalogError, Prompt, Resource, ResourceTemplate, Tool};
pub use results::{Content, Output, PromptResult, ResourceResult, ToolResult};
pub use route::{Answered, Route};
pub use subscribe::{Change, Filter, Listen};

use crate::http::ParamHeaders;

/// How long clients may keep lists and descriptions, and who shares them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CacheHints {
    /// `ttlMs`.
    pub ttl: Duration,
    /// `cacheScope: "public"`: the same for every caller. Default false.
    pub public: bool,
}

impl Default for CacheHints {
    fn default() -> Self {
        Self { ttl: Duration::from_secs(60), public: false }
    }
}

impl CacheHints {
    /// Hints of your own.
    #[must_use]
    pub const fn new(ttl: Duration, public: bool) -> Self {
        Self { ttl, public }
    }
}

/// Tools, prompts, resources and templates by name, each with a handler of type `H`.
#[derive(Clone, Debug)]
pub struct Catalog<H> {
    pub(crate) tools: Vec<OfferedTool<H>>,
    pub(crate) prompts: Vec<(Prompt, H)>,
    pub(crate) resources: Vec<(Resource, H)>,
    pub(crate) templates: Vec<(ResourceTemplate, H)>,
    pub(crate) instructions: Option<String>,
    pub(crate) hints: CacheHints,
    pub(crate) logging: bool,
    pub(crate) changes: bool,
}

/// A tool with what is read from its schema once.
#[derive(Clone, Debug)]
pub(crate) struct OfferedTool<H> {
    pub(crate) tool: Tool,
    /// Arguments that it wants mirrored into headers.
    pub(crate) headers: ParamHeaders,
    pub(crate) handler: H,
}

impl<H> Default for Catalog<H> {
    fn default() -> Self {
        Self {
            tools: Vec::new(),
            prompts: Vec::new(),
            resources: Vec::new(),
            templates: Vec::new(),
            instructions: None,
            hints: CacheHints::default(),
            logging: true,
            changes: false,
        }
    }
}

impl<H> Catalog<H> {
    /// An empty catalog.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a tool.
    ///
    /// # Errors
    ///
    /// If the name is taken or not fit to be sent, or a schema is not a JSON object, or one of its
    /// `x-mcp-header` annotations is invalid.
    pub fn add_tool(&mut self, tool: Tool, handler: H) -> Result<(), CatalogError> {
        let headers = tool.check()?;
        if self.tools.iter().any(|found| found.tool.name == tool.name) {
            return Err(CatalogError::Taken(tool.name));
        }
        self.tools.push(OfferedTool { tool, headers, handler });
        Ok(())
    }

    /// The headers that the tools want their arguments mirrored into, with their prefix: each once, in some order.
    #[must_use]
    pub fn param_headers(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for param in self.tools.iter().flat_map(|offered| offered.headers.iter()) {
            let name = param.header();
            if let Err(at) = names.binary_search_by(|known| folded(known).cmp(folded(name))) {
                names.insert(at, name);
            }
        }
        names
    }

    /// Adds a prompt.
    ///
    /// # Errors
    ///
    /// If the name is taken or empty.
    pub fn add_prompt(&mut self, prompt: Prompt, handler: H) -> Result<(), CatalogError> {
        prompt.check()?;
        if self.prompts.iter().any(|(found, _)| found.name == prompt.name) {
            return Err(CatalogError::Taken(prompt.name));
        }
        self.prompts.push((prompt, handler));
        Ok(())
    }

    /// Adds a resource.
    ///
    /// # Errors
    ///
    /// If the uri is taken or empty.
    pub fn add_resource(&mut self, resource: Resource, handler: H) -> Result<(), CatalogError> {
        resource.check()?;
        if self.resources.iter().any(|(found, _)| found.uri == resource.uri) {
            return Err(CatalogError::Taken(resource.uri));
        }
        self.resources.push((resource, handler));
        Ok(())
    }

    /// Adds a resource template. Templates are tried in the order in which they were added, after resources.
    ///
    /// # Errors
    ///
    /// If the template is taken, or not of the form this catalog matches: text and `{name}` parts.
    pub fn add_template(&mut self, template: ResourceTemplate, handler: H) -> Result<(), CatalogError> {
        template.check()?;
        if self.templates.iter().any(|(found, _)| found.uri_template == template.uri_template) {
            return Err(CatalogError::Taken(template.uri_template));
        }
        self.templates.push((template, handler));
        Ok(())
    }

    /// Text that `server/discover` gives to the model.
    pub fn set_instructions(&mut self, text: impl Into<String>) {
        self.instructions = Some(text.into());
    }

    /// Caching hints of lists and of discovery.
    pub fn set_hints(&mut self, hints: CacheHints) {
        self.hints = hints;
    }

    /// Announces `listChanged` and `subscribe`: the adapter then serves `subscriptions/listen`.
    pub fn set_changes(&mut self, announced: bool) {
        self.changes = announced;
    }
}

/// Names of headers are compared without regard to case.
fn folded(name: &str) -> impl Iterator<Item = u8> {
    name.bytes().map(|byte| byte.to_ascii_lowercase())
}
