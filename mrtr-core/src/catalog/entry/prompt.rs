//! Prompts.

use alloc::{string::String, vec::Vec};

use super::{CatalogError, member, named, shared};
use crate::seal::Ttl;

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

    shared!(title);

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

    shared!(state_ttl of "prompt");

    pub(in crate::catalog) fn check(&self) -> Result<(), CatalogError> {
        if self.name.is_empty() { Err(CatalogError::Name(self.name.clone())) } else { Ok(()) }
    }

    pub(in crate::catalog) fn write(&self, out: &mut Vec<u8>) {
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
