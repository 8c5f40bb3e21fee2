//! Tools.

use alloc::{string::String, vec::Vec};

use super::{CatalogError, member, named, shared};
use crate::{http::ParamHeaders, jsonrpc::Json, limits::Limits, seal::Ttl, wire::Requirement};

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

    shared!(title);

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

    shared!(state_ttl of "tool");

    /// Checks all of it; gives what the schema says of headers.
    pub(in crate::catalog) fn check(&self) -> Result<ParamHeaders, CatalogError> {
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

    pub(in crate::catalog) fn write(&self, out: &mut Vec<u8>) {
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
